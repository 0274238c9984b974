/* SPDX-License-Identifier: Apache-2.0 */
/* The reference interpreter of graphs: naive loops, wide accumulators (f64 for floats), sharing no code with the
 * passes. What it computes is the meaning of a graph. */
#ifndef GRAPH_EVAL_H
#define GRAPH_EVAL_H

#include "graph/graph.h"
#include "graph/tensor.h"

/* `dims[open dim]` are the extents, `args[param]` the arguments (scalars as rank 0), `results[k]` receives new
 * tensors from `arena`; inout arguments are not changed. False when a size is out of bounds (reported). */
bool graph_eval(Ctx *ctx, Arena *arena, const Graph *g, const int64_t *dims,
                Tensor *const *args, Tensor **results);

/* ---- eval_dense.c ---- A dense step of a matrix, or of many, and of what is right of it or null. Sets ctx->indefinite. */
void dense_eval(Ctx *ctx, Arena *scratch, Op op, const Tensor *matrix, const Tensor *right,
                Tensor *to);

#endif
