/* SPDX-License-Identifier: Apache-2.0 */
/* Scatters: `G[v,e] = sum[n, tok[n] == v](dY[n,e])` takes each element of dY once, to the place that its key says; and lookups, of which the
 * index of the place is folded: `Y[n,e] = sum[v, tok[n] == v](W[v,e])`; and stores, `K[b,p,e] = select(at[b] == index(p), k[b,e], K[b,p,e])`
 * in the place of K. */
#ifndef NEST_SCATTER_H
#define NEST_SCATTER_H

#include "nest/leaves.h"

/* Can node `n`, a leaf of the nest, be computed so, if no loop of the nest is along a label of the keys, or is folded over? */
bool nest_scatter(Arena *arena, const Nest *nest, const NestValue *values, NodeRef n,
                  PlaceKeys *out);

#endif
