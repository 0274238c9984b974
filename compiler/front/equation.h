/* SPDX-License-Identifier: Apache-2.0 */
/* An equation of the command line as a program of one kernel: `-e EQUATION --shape=...`. */
#ifndef FRONT_EQUATION_H
#define FRONT_EQUATION_H

#include "front/check.h"

typedef struct Equation {
    uint32_t source; /* its text is the equation */
    uint32_t n_operands;
    const TensorType *operand; /* extents are fixed, or DIM_WILD for `?` (front/shape.h) */
    DType dtype;               /* of all operands; those of `operand` are not looked at */
    const char *name;          /* of the kernel; null: einsum */
} Equation;

/* Operands are A, B, ... Z, op26, op27, ...; the result is R, or `out` when R is an operand. An extent that is open in
 * all its uses becomes a dim named after its label (d_... when that is no small letter, e0, e1, ... under an ellipsis); one
 * that is open in some takes the extent of the others. Null on an error (reported). */
Program *equation_check(Ctx *ctx, const Equation *equation);

#endif
