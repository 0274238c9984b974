/* SPDX-License-Identifier: Apache-2.0 */
/* Why writer and reader of a value can share no loop, dimension by dimension. */
#ifndef DRIVER_REPORT_TRACE_H
#define DRIVER_REPORT_TRACE_H

#include "nest/facts.h"

typedef enum BarrierKind {
    BARRIER_NONE,     /* a loop over the dimension may hold them */
    BARRIER_FOLD,     /* `at` folds it before the reader may begin */
    BARRIER_ORDERS,   /* it is more than one index of `at`, or one with another dimension */
    BARRIER_DIAGONAL, /* `at` reads a diagonal along it */
    BARRIER_POSITION, /* `at` reads one position of it */
    BARRIER_MATRIX    /* `at` is a dense step, which reads it whole */
} BarrierKind;

typedef struct NestBarrier {
    BarrierKind kind;
    NodeRef at, via; /* where; by its reading of which */
} NestBarrier;

/* in[x]: is x `from`, one of `to`, or on a way between? False when there are more than a person could read. */
bool nest_ways(Arena *arena, const NestFacts *f, NodeRef from, uint32_t n_to, const NodeRef *to,
               bool *in, uint32_t *count);
/* Traces the dimensions of `from` to its readers `to`, all in one loop. False as nest_ways, `dim` ([rank]) being unset then. */
bool nest_trace(Arena *arena, const NestFacts *f, NodeRef from, uint32_t n_to,
                const NodeRef *to, NestBarrier *dim);

#endif
