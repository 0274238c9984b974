/* SPDX-License-Identifier: Apache-2.0 */
/* The reference interpreter: checks every access again as it runs, and that nothing is read before it is written (alloc and results start
 * as undefined). */
#ifndef LOOP_LOOP_EVAL_H
#define LOOP_LOOP_EVAL_H

#include "loop/loop.h"

/* args in Kernel.args order without results; results as graph_eval. */
bool loop_eval(Ctx *ctx, Arena *arena, const Kernel *k, const int64_t *dims,
               Tensor *const *args, Tensor **results);

/* What a run does, for who asks. Its owner sets the arrays, to 0, and the calls or null. */
typedef struct LoopCounts {
    int64_t *loaded, *stored; /* [bufs] bytes, every element every time */
    int64_t multiply_adds;    /* of statements that are sums of products */
    void (*access)(void *user, const Stmt *tile, BufRef buf, int64_t element, bool stores);
    void (*iteration)(void *user, const Stmt *loop); /* one begins */
    void *user;
} LoopCounts;
bool loop_eval_counted(Ctx *ctx, Arena *arena, const Kernel *k, const int64_t *dims,
                       Tensor *const *args, Tensor **results, LoopCounts *counts);

#endif
