/* SPDX-License-Identifier: Apache-2.0 */
/* Products: the one statement of a LEGAL kernel that runs on a register tile of its own,
 *
 *     matmul [i in $i:12<m unroll, j in $j:32<n vector, k in 0..256] @C[i,j] += mul(@A[k,i-$i], @B[k,j-$j])
 *
 * Rows, columns, sum in this order. The sum is added up in registers, then joins the destination: one number for each
 * element. Where rows or columns are clipped, registers hold the whole tile none the less, so their operand must have
 * all of it: a panel as wide as the tile, of which that dimension is the last.
 *
 * A factor of all products, `mul(-1.0, mul(@A[k,i-$i], @B[k,j-$j]))`, is one of that number; of complex ones it is real.
 *
 * Any other term of two operands (loop/term.h) is folded likewise: `reduce [...] @C[i,j] reduce.max= add(@A[k,i-$i], @B[k,j-$j])`.
 *
 * Of complex numbers one operand at least is complex; either may be conjugated, and one may be of the type of the
 * parts (`cast.c64(@B[k,j])` of an f32 buffer). */
#ifndef BACKEND_C_PRODUCT_H
#define BACKEND_C_PRODUCT_H

#include "loop/walk.h"

typedef struct Product {
    const Stmt *s;
    DType t;
    const TileIndex *row, *column, *sum;
    const Expr *a, *b; /* loads: of the rows, of the columns */
    bool a_conj, b_conj;
    const Expr *by; /* the sum joins the destination times this; null: as it is */
    int64_t group;  /* operands are panels in groups of so many lines, for dot products; or 0 */
    const Expr *term; /* what is folded, of a and b, if it is no product of them; else null */
} Product;

/* Does this block, from an ACC buffer of rank >= 1 on, make a register tile, of what is no product? */
bool is_register_alloc(const Kernel *k, const Stmt *s);
/* Is it meant to be one: unrolled, over a sum that is not? */
bool stmt_is_product(const Stmt *s);
/* Null, or what is wrong with a statement that is meant to be one. */
const char *product_of(const Kernel *k, const Stmt *s, Product *out);
/* Is its tile never cut, and are elements of its rows side by side? */
bool product_is_whole(const Kernel *k, const Product *p);
/* Its sum's extent and the strides of its operands, of complex numbers in parts; false: they are no numbers, or it is more than a
 * product of a whole tile that is added or stored. */
typedef struct ProductNumbers {
    int64_t sum, cs_a, rs_a, rs_b, rs_c;
} ProductNumbers;
bool product_numbers(const Kernel *k, const Product *p, ProductNumbers *out);

#endif
