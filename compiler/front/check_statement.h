/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: both sides of one, and those that stand before it as it needs their values. */
#ifndef FRONT_CHECK_STATEMENT_H
#define FRONT_CHECK_STATEMENT_H

#include "front/check_expr.h"
#include "front/check_sums.h"
#include "front/einsum.h"

/* ---- check_statement.c ---- */
void statement_check(Kern *k, AstId ast);
/* A tensor expression without indices as a value of its own, whose statement is the kernel's last; poison: UINT32_MAX. */
uint32_t tensor_value(Kern *k, AstId ast);

/* ---- check_scatter.c ---- */
/* The left side of `G[tok[n], e] += ..`. */
typedef struct ScatterLeft {
    uint32_t target, rank;
    int32_t label[RANK_LIMIT];      /* of each dimension */
    CheckedExpr *place[RANK_LIMIT]; /* where the position is no plain index; else null */
    int32_t *summed;
    uint32_t n_summed;
} ScatterLeft;
/* False after a report. */
bool scatter_left(Kern *k, const AstNode *left, uint32_t target, ScatterLeft *s);
/* Has each place one element at most? False after a report. */
bool scatter_is_one(Kern *k, const AstNode *left, const ScatterLeft *s);
/* Where an element takes part. */
CheckedExpr *scatter_where(Kern *k, AstId ast, Span at, const ScatterLeft *s);
/* The sum, over what stands in positions, of what takes part. */
CheckedExpr *scatter_sum(Kern *k, const ScatterLeft *s, CheckedExpr *value, CheckedExpr *when);

/* ---- check_einsum.c ---- */
/* The type of what it makes of operands of type t: their own where they are moved only. */
TensorType einsum_type(Arena *arena, const EinsumSpec *spec, DType t);
/* The product of the values, summed over what the output lacks; the target is the caller's to set. */
CheckedStatement einsum_statement(Arena *arena, const EinsumSpec *spec, const uint32_t *value,
                                  DType dtype, AstId ast, Span span);
/* The call einsum(...): its value as a temp, whose statement is the kernel's last and still to be computed in a type;
 * poison: UINT32_MAX. */
uint32_t einsum_value(Kern *k, AstId ast);
/* The same, where it stands in an expression. */
uint32_t einsum_nested(Kern *k, AstId ast);

/* ---- check_kernel_call.c ---- */
/* The statements of calls of kernels, and of einsum strings, that the expression needs before it; what they give is read by it. */
void calls_check(Kern *k, AstId id);
/* `update(C, A);` */
void kernel_call_statement(Kern *k, AstId ast);

#endif
