/* SPDX-License-Identifier: Apache-2.0 */
/* What printing, reading and checking of kernels share: the text of single things (for
 * messages), which type a plain constant has in its place, and the limits of nesting that make
 * recursion safe. */
#ifndef LOOP_LOOP_TEXT_H
#define LOOP_LOOP_TEXT_H

#include "loop/loop.h"

/* A dump may be nested NESTING_LIMIT deep in all: loops, then the operations of a value in
 * them. */
#define EXPR_DEPTH_LIMIT     128
#define LOOP_DEPTH_LIMIT     64
#define PARALLEL_DEPTH_LIMIT 8
#define AFFINE_TERMS_LIMIT   256
/* Nodes of one value, shared ones counted each time they are used. */
#define EXPR_SIZE_LIMIT 100000

/* The statement on one line (a loop's head only), and one access `@T[i,k-$m]`. */
void loop_text_stmt(const Kernel *k, const Stmt *s, Text *out);
void loop_text_access(const Kernel *k, BufRef buf, const Affine *at, Text *out);

/* The element type that operand `arg` of `op` must have for it to make `made`, where that
 * follows; else DTYPE_NONE. A constant of the wanted type is printed without one. */
DType expr_wanted(Op op, DType made, uint32_t arg);

#endif
