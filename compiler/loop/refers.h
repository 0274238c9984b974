/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the verifier of kernels: what must hold before a statement can even be printed. References are to what the kernel has, and
 * the parts that a kind of statement or value needs are there. Each function says what is wrong; null: nothing is. */
#ifndef LOOP_REFERS_H
#define LOOP_REFERS_H

#include "loop/loop.h"

const char *dim_refers(const Kernel *k, Dim d);
/* Of the statement itself, not of those in its body. */
const char *stmt_refers(const Kernel *k, const Stmt *s);
/* What is wrong with what the kernel requires (loop/required.c), whose kernel of positions has been verified by itself. */
const char *required_problem(Arena *scratch, const Kernel *k);

#endif
