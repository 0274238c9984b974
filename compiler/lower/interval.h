/* SPDX-License-Identifier: Apache-2.0 */
/* Between which whole numbers the values of a kernel lie: of each buffer, all its elements; of each variable, all its values. */
#ifndef LOWER_INTERVAL_H
#define LOWER_INTERVAL_H

#include "loop/loop.h"

/* lo <= x <= hi; nothing is known of what may be infinite. Whole numbers up to 2^53 are exact in it. */
typedef struct Interval {
    double lo, hi;
} Interval;

typedef struct Intervals {
    Arena *arena;
    const Kernel *k;
    Interval *var; /* [vars] */
    Interval *buf; /* [bufs] of those that hold integers */
} Intervals;

/* Of a kernel without open dims whose integer arguments lie between -given and given. */
void intervals_find(Intervals *iv, Arena *arena, const Kernel *k, double given);
/* What a statement adds to each element of its destination: the terms of a sum, or v in `@y[i] = add(@y[i], v)`; else null. */
const Expr *interval_added(const Kernel *k, const Stmt *s);
/* Of an integer or a bool; of an f32 that is no NaN, where something is known. */
Interval interval_of(const Intervals *iv, const Expr *e);

#endif
