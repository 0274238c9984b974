/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as text, byte for byte both ways. */
#ifndef LOOP_LOOP_TEXT_H
#define LOOP_LOOP_TEXT_H

#include "loop/loop.h"

void kernel_dump(const Kernel *k, Text *out);
void kernel_module_dump(const KernelModule *m, Text *out);
KernelModule *kernel_module_read(Ctx *ctx, uint32_t source);
/* One kernel of a dump, verified; null after reporting. */
Kernel *kernel_read(DumpReader *in, const DumpLine *line);

/* For messages: the statement on one line (a loop's head only), and one access `@T[i,k-$m]`. */
void loop_text_stmt(const Kernel *k, const Stmt *s, Text *out);
void loop_text_access(const Kernel *k, BufRef buf, const Affine *at, Text *out);

/* The element type that operand `arg` of `op` must have for it to make `made`, where that
 * follows; else DTYPE_NONE. A constant of the wanted type is printed without one. */
DType expr_wanted(Op op, DType made, uint32_t arg);

#endif
