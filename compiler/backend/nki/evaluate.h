/* SPDX-License-Identifier: Apache-2.0 */
/* Values of expressions over a box, in tiles. */
#ifndef BACKEND_NKI_EVALUATE_H
#define BACKEND_NKI_EVALUATE_H

#include "backend/nki/view.h"

/* Evaluates `e` over a box; `bound` (or BUF_NONE) is a buffer whose value is the tile `bound_view`. */
typedef struct Evaluation {
    Lower *l;
    Labels p, f;
    const Box *box;
    BufRef bound;
    TileView bound_view;
    bool narrow; /* may the result be of a narrower type of floats? */
} Evaluation;
TileView evaluate(Evaluation *ev, const Expr *e, DType t, const TileView *into);
/* Evaluates the parts of `e` that do not depend on all labels, which are remembered. */
void evaluate_narrow(Evaluation *ev, const Expr *e);
/* Is it a function that one instruction of the Scalar engine ends with? */
bool evaluate_is_function(Op op);
/* Can it be evaluated? */
bool evaluate_has(Op op);
/* evaluate_in_place.c: may the statement's value be computed where it is kept, though it reads it? */
bool evaluate_in_place(const Stmt *s);

/* ---- memo.c ---- */

/* Subexpressions that two values share are computed once for each box. */
void memo_begin(Lower *l, const Expr *re, const Expr *im); /* im: or null */
void memo_clear(Lower *l);
Memo *memo_of(Lower *l, const Expr *e);

#endif
