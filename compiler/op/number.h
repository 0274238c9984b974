/* SPDX-License-Identifier: Apache-2.0 */
/* A number of any element type, exact within its own: one of f32 holds a double that is a
 * float, one of i32 an int64 that fits 32 bits. */
#ifndef OP_NUMBER_H
#define OP_NUMBER_H

#include "op/types.h"

/* `i` holds ints and bool; re and im hold floats and complex. */
typedef struct Number {
    DType dtype;
    int64_t i;
    double re, im;
} Number;

Number number_int(DType dtype, int64_t v);
Number number_real(DType dtype, double v);
bool number_is_zero(Number n);
/* The integer of type `t` with these low bits, whatever stands above them. */
int64_t integer_of_bits(DType t, uint64_t bits);
/* The pattern of a number of a real float type of at most 16 bits, and back. */
uint32_t number_bits(DType t, double v);
double number_of_bits(DType t, uint32_t bits);
/* `from` rounded or wrapped to `to` as a C conversion would (float to int: truncation, saturating; NaN: 0). */
Number number_cast(Number from, DType to);

#endif
