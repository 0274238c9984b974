/* SPDX-License-Identifier: Apache-2.0 */
/* What a nest costs, for typical extents unless they are given. */
#ifndef NEST_ESTIMATE_H
#define NEST_ESTIMATE_H

#include "nest/nest.h"

/* Sets `cost`, `unfused` and `compulsory`. */
void nest_estimate(Ctx *ctx, const Machine *machine, Nest *nest);
/* Of each leaf, in [items]: what one thread computes and waits; that of a recurrence's steps is 0, and so are loops. */
void nest_leaf_seconds(Ctx *ctx, const Machine *machine, const Nest *nest, double *seconds);
/* What the nest costs where an open dim has this size. */
NestCost nest_cost_at(Arena *scratch, const Machine *machine, const Nest *nest, int32_t dim,
                      int64_t size);
/* Multiply-adds of its contractions, and their seconds in full register tiles. */
void nest_full_tiles(const Nest *nest, const Graph *g, const Machine *m, Arena *arena,
                     double *adds, double *seconds);
/* What threads share of a dense step (dense.c). */
const char *dense_share(const Graph *g, const Node *n);

#endif
