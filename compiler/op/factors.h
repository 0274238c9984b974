/* SPDX-License-Identifier: Apache-2.0 */
/* Extents as products: what one is divided by another, and one dimension as several, [s, n*dh] as [s, n, dh]. */
#ifndef OP_FACTORS_H
#define OP_FACTORS_H

#include "op/types.h"

/* The dim that is x / by, where that is whole for all sizes and seen to be: each product in x has all factors of `by`. It is
 * added to the table, in `arena`, unless it is there. */
bool dims_divide(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span, Dim x,
                 Dim by, Dim *out);

/* The product of the open factors that all these products have; a number, 1, where they have none in common. */
Dim dims_common(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                uint32_t n, const Dim *product);

/* The coarsest shape in which each dimension is a part of one of both shapes, row-major: of [n*dh] and [g, r*dh] with n = g*r it is
 * [g, r, dh]. `out`, `of_a` (the dimension of `a` that it is a part of) and `of_b` have room for *n entries. False where
 * elements would lie elsewhere, or that is not seen. */
bool dims_refine(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                 uint32_t rank_a, const Dim *a, uint32_t rank_b, const Dim *b, uint32_t *n,
                 Dim *out, uint32_t *of_a, uint32_t *of_b);

/* Is one shape the other, row-major, with dimensions taken together or apart? */
bool dims_same_elements(Arena *scratch, const DimTable *t, uint32_t rank_a, const Dim *a,
                        uint32_t rank_b, const Dim *b);
/* Is the second shape the first with no dimensions taken together? */
bool dims_only_split(Arena *scratch, const DimTable *t, uint32_t rank, const Dim *shape,
                     uint32_t n, const Dim *split);

#endif
