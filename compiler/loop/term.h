/* SPDX-License-Identifier: Apache-2.0 */
/* What a contraction folds: a term of elements of two operands. A product may have factors that are converted or conjugated, and a
 * number that all products are multiplied by; any other term has operations of op_is_in_terms over loads of two accesses, each as
 * often as it likes, of one type or converted to it. */
#ifndef LOOP_TERM_H
#define LOOP_TERM_H

#include "loop/walk.h"

typedef struct FoldTerm {
    const Expr *operand[2]; /* loads, converted or conjugated */
    const Expr *by;         /* of a product: what it is multiplied by; null: nothing */
    const Expr *value;      /* of a term that is no product; null: it is one */
} FoldTerm;

/* False: the value is no such term. */
bool fold_term(const Kernel *k, Op fold, const Expr *value, FoldTerm *out);
/* The term with other operands. */
const Expr *fold_term_of(Arena *a, const Kernel *k, const FoldTerm *t,
                         const Expr *const with[2]);

#endif
