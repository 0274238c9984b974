/* SPDX-License-Identifier: Apache-2.0 */
/* A run of one kernel that others are compared with: small integers as arguments, chosen so that
 * all is exact where the size of every value is bounded so, and what may differ where it is not. */
#ifndef DRIVER_TRIAL_H
#define DRIVER_TRIAL_H

#include "graph/graph.h"
#include "graph/tensor.h"

typedef struct Trial {
    const int64_t *dims;
    int64_t most;  /* arguments are 1 .. most, or -1 and 1 when it is 1 */
    bool doubles;  /* are f64 terms computed in f64? else in f32 */
    bool exact;    /* results are the same bits in every order */
    bool unknown;  /* nothing can be said of them */
    double terms;  /* of all sums together: roundings */
    double *scale; /* [results] no value is larger; 1 where nothing is known */
} Trial;

/* For these extents of the open dims. */
void trial_choose(Arena *arena, const Graph *g, const int64_t *dims, bool doubles, Trial *k);
/* [params] False after a diagnostic. */
bool trial_arguments(Ctx *ctx, Arena *arena, const Graph *g, const Trial *k, Tensor **args);
/* The first element of the result that is not what it was, up to rounding; -1: none. */
int64_t trial_difference(const Trial *k, uint32_t result, const Tensor *a, const Tensor *b);

#endif
