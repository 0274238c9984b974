/* SPDX-License-Identifier: Apache-2.0 */
/* Positions that are values, before a kernel runs: those of these arguments must lie inside. */
#ifndef DRIVER_RUN_POSITIONS_H
#define DRIVER_RUN_POSITIONS_H

#include "graph/tensor.h"
#include "loop/loop.h"

/* A position outside, in words. */
typedef struct Outside {
    const char *array, *text, *indices;
    uint32_t dimension, n_indices;
    int64_t position, extent;
    const int64_t *index; /* [n_indices], which `indices` names, "b,l" */
} Outside;

/* Reports it as E_POSITION. False. */
bool positions_report(Ctx *ctx, Span span, const Outside *o);
/* A matrix that is not positive definite (TDSL_E_DEFINITE), as E_DEFINITE. False. */
bool definite_report(Ctx *ctx, int64_t code);
/* Of a graph, and of a kernel, by their interpreters; `dims` are those that a call gives. False after a report. */
bool graph_positions_hold(Ctx *ctx, Arena *arena, const Graph *g, const int64_t *dims,
                          Tensor *const *args);
bool kernel_positions_hold(Ctx *ctx, Arena *arena, const Kernel *k, const int64_t *dims,
                           Tensor *const *args);

#endif
