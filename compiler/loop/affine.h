/* SPDX-License-Identifier: Apache-2.0 */
/* Affine arithmetic that says when it overflows, for readers and verifiers: what they are given
 * may be anything. The functions of loop.h are for builders, whose numbers are in range if the
 * compiler is right. */
#ifndef LOOP_AFFINE_H
#define LOOP_AFFINE_H

#include "loop/loop.h"

/* x + scale*y; false, and *out untouched, when a number leaves 64 bits. */
bool affine_try_add(Arena *a, Affine x, int64_t scale, Affine y, Affine *out);
/* The coefficient of v, 0 when x does not use it. */
int64_t affine_coef(Affine x, VarRef v);

bool i64_try_add(int64_t a, int64_t b, int64_t *out);
bool i64_try_mul(int64_t a, int64_t b, int64_t *out);

#endif
