/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: the one circle of the checker, as each kind has others in it. Everything else that it needs is below, and whoever needs an
 * expression above. */
#ifndef FRONT_CHECK_EXPR_H
#define FRONT_CHECK_EXPR_H

#include "front/check_positions.h"

/* ---- check_expr.c ---- */
CheckedExpr *expr_check(Kern *k, AstId ast);
/* Outside of any statement: a constant, or an extent, in a kernel of a library or not. */
CheckedExpr *expr_constant(Check *c, AstId ast, bool in_extent, bool library);
CheckedExpr *call_einsum(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *call_extent(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *call_index(Kern *k, AstId ast, const AstNode *n);
/* Has the call so many arguments? False after a report. */
bool arguments_fit(Kern *k, const AstNode *n, uint32_t wanted);

/* ---- check_gather.c ---- */
/* What is written so as a number: an index in it is its position. Poison after a report. */
CheckedExpr *position_computed(Kern *k, AstId id);
/* The position in one dimension of a value, as a number of i64. Poison after a report. */
CheckedExpr *position_check(Kern *k, uint32_t value, uint32_t axis, AstId id);
CheckedExpr *gather_check(Kern *k, AstId ast, uint32_t value);

/* ---- check_fold.c ---- */
/* `i < n` where an index is listed: *label is a new index of extent n. Or `j <= i`, `i - w < j`: a condition, *label new or -1.
 * False after a report. */
bool position_item(Kern *k, AstId id, bool left, int32_t *label, CheckedExpr **condition);
/* What a fold folds, once its indices are bound; `fold` has their labels. Poison after a report. */
typedef CheckedExpr *FoldBody(Kern *k, AstId ast, const AstNode *n, const CheckedExpr *fold);
/* The fold of `op` over the indices that `n`, a reduction, names, of those elements for which its conditions hold; *condition is
 * all of them (null: none; may be null). Poison after a report. */
CheckedExpr *fold_check(Kern *k, AstId ast, const AstNode *n, Op op, FoldBody *make,
                        CheckedExpr **condition);
/* The same inside of a fold over the same names: the indices are others, with names of their own. */
CheckedExpr *fold_again(Kern *k, AstId ast, const AstNode *n, Op op, FoldBody *make,
                        CheckedExpr **condition);
/* Two conditions; `when` may be null. */
CheckedExpr *both_hold(Kern *k, AstId id, Span span, CheckedExpr *when, CheckedExpr *also);
/* The body where the condition holds, and what changes nothing elsewhere. */
CheckedExpr *fold_where(Kern *k, Op op, CheckedExpr *body, CheckedExpr *when);
/* The labels of the list of `n`, to e->label, in which there is room for them, and the conditions; false after a report. At the end names
 * mean what they did before. */
bool fold_open(Kern *k, const AstNode *n, CheckedExpr *e, CheckedExpr **when, uint32_t *before);
void fold_close(Kern *k, const CheckedExpr *e, const uint32_t *before);
/* A name that no index of the statement has: this one with a number behind it. */
Sym fold_unused_name(Kern *k, Sym name);
FoldBody fold_plain; /* what stands in parentheses */
CheckedExpr *reduction_check(Kern *k, AstId ast, const AstNode *n);

/* ---- check_expand.c ---- */
/* What stands so in a program, by its name: none that is FOREIGN. */
CheckedExpr *name_check(Kern *k, AstId ast, const AstNode *n);

/* ---- check_dense.c ---- */
CheckedExpr *dense_cholesky(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *dense_solve(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *dense_inverse(Kern *k, AstId ast, const AstNode *n);
CheckedExpr *dense_logdet(Kern *k, AstId ast, const AstNode *n);
/* Which triangle a value is that is assigned this, at these labels. */
Triangle dense_triangle(const Kern *k, const CheckedExpr *e, const int32_t *left,
                        uint32_t rank);
/* `lower(0, 1)` of a declaration. */
void triangle_check(Kern *k, const AstNode *attr, Value *v, bool is_param, uint32_t row,
                    uint32_t column);

/* ---- check_extent.c ---- */
/* The extent that an expression of numbers and dims says; *ok false after a report. */
Dim extent_of(Kern *k, AstId id, bool *ok);
/* The dims that the kernel's head and body name, in their order: those that a call gives come before all that are computed. */
void dims_scan(Kern *k, const AstNode *kernel);

#endif
