/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers for machines that compute in f32, which holds all of them up to 2^24 and no more. A kernel with integers becomes one
 * whose values are f32: arguments stay i32, read by a cast and written by one, and of i64 the words are the last dimension of i32,
 *
 *     @p : i64[n]                            @p : i32[n,2], the low word first (little endian)
 *     @c[i] = (@p[i] - $j)          ->       @c[i] = f32(@p[i,0]) - f32($j)
 *     @q[i] = @c[i]                          @q[i,0] = i32(@c[i]); @q[i,1] = select(@c[i] < 0, -1, 0)
 *
 * Short integers are stored in arguments, and are bf16 of 8 bits, else f32, in the kernel: copies between memory and chip convert
 * (Buffer.stored).
 *
 *     @x : i8[n]                             @x : bf16[n] stored i8
 *
 * What is made of positions alone stays an integer: the machine has ways of its own for it.
 *
 * Exactness is proved, by intervals: of every value, and of every sum with the number of its terms. Callers promise that what they give
 * lies within INTEGERS_GIVEN, and who calls for them looks (libtdsl, the Python package). */
#ifndef LOWER_INTEGERS_H
#define LOWER_INTEGERS_H

#include "loop/loop.h"

/* Every whole number up to it is an f32. */
#define INTEGERS_EXACT 16777216
/* Arguments lie between minus this and this: sums and differences of four are exact. */
#define INTEGERS_GIVEN (INTEGERS_EXACT / 4)

/* The kernel (form TILED, no open dims) in f32; the kernel itself: it has no integers; null, and reported for `target`: some value may be
 * beyond INTEGERS_EXACT, or is made by an operation that f32 has not. */
Kernel *lower_integers(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);

#endif
