/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients, remainders and truncation in f32 arithmetic, for machines that have neither division nor rounding: exact where f32 holds what
 * is between.
 *
 *     q = round(x * (1 / y))      by adding 1.5 * 2^23 and taking it away again
 *     r = x - q * y               exact; -y <= r < 2 y, as the quotient in f32 is off by less than 1
 *     q - (r < 0) + (r >= y)      rounded down                    r + y (r < 0) - y (r >= y)     the remainder */
#ifndef LOWER_QUOTIENT_H
#define LOWER_QUOTIENT_H

#include "lower/interval.h"

/* `OP_DIV` or `OP_MOD` of whole numbers in f32 that lie between these, as the language has them of integers: rounded toward 0; with the sign of
 * y; 0 where y is 0. Operands are read several times. Null: they may be too large. */
const Expr *quotient_of(Arena *a, Op op, const Expr *x, const Expr *y, Interval of_x,
                        Interval of_y);
/* An f32 without its fraction, 0 for a NaN, where f32 that are not below 2^23 are whole; the nearest of those within. */
const Expr *quotient_truncated(Arena *a, const Expr *x, Interval of_x, Interval within);
/* The whole number nearest to a quotient by a power of two, which is at most 2^22. */
const Expr *quotient_nearest(Arena *a, const Expr *x, double by);
/* The low bits of a whole number to 2^24, as a number of so many bits, beside them one for the sign. */
const Expr *quotient_wrapped(Arena *a, const Expr *x, Interval of_x, int bits, bool is_signed);

#endif
