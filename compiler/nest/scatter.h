/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters: `G[v,e] = sum[n, tok[n] == v](dY[n,e])` takes each element of dY once, to the place that its key says; and lookups, of which the
 * index of the place is folded: `Y[n,e] = sum[v, tok[n] == v](W[v,e])`; and stores, `K[b,p,e] = select(at[b] == index(p), k[b,e], K[b,p,e])`
 * in the place of K. */
#ifndef NEST_SCATTER_H
#define NEST_SCATTER_H

#include "nest/nest.h"

/* Can node `n`, a leaf of the nest, be computed so? Not where a loop of the nest is along the label, or is folded over. */
bool nest_scatter(Arena *arena, const Nest *nest, const NestValue *values, NodeRef n,
                  PlaceKey *out);

/* May the leaf be said to be a scatter, if it is? */
bool nest_scatter_holds(Arena *scratch, const Nest *nest, NodeRef n);

/* How often fewer positions a leaf looks at for being a scatter, of those that its labels have; 1: it is none. The label has one from
 * here on. */
double nest_scatter_repeats(Arena *scratch, const Nest *nest, NodeRef n, double *extent);

/* All that can, on machines with caches. */
void nest_set_scatters(Arena *arena, const Machine *machine, const Nest *nest,
                       NestValue *values);

#endif
