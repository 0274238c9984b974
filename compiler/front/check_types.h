/* SPDX-License-Identifier: Apache-2.0 */
/* Types: of numbers that have none of their own, of operations, and those in which statements compute. */
#ifndef FRONT_CHECK_TYPES_H
#define FRONT_CHECK_TYPES_H

#include "front/check_names.h"

/* ---- check_compute.c ---- */
/* The type in which two operands may stand together, or none: the wider of two floats or of two integers, complex numbers that
 * hold the other's real ones. */
DType joint_type(DType a, DType b);
/* What an operation gives whose operands have type t: integers that are storage are computed in a wider type. */
DType result_type(DType t);
/* The right side of a statement whose value has type t, a type that `e` widens to, computed in dtype_computes(t). */
CheckedExpr *compute_in(Kern *k, CheckedExpr *e, DType t);
/* What was computed so, as value `target` holds it: rounded once if that is stored in 16 bits. */
CheckedExpr *compute_target(Kern *k, CheckedExpr *e, uint32_t target);
/* At the end of a kernel: undeclared 16-bit values that nobody computes with in f32 are rounded where they are made. */
void compute_locals(Kern *k);

/* ---- check_weak.c ---- */
CheckedExpr *weak_const(Kern *k, AstId ast, Span span, Weak weak, int64_t i, double f);
CheckedExpr *weak_complex(Kern *k, AstId ast, Span span, double re, double im);
/* May `e` become a t? A decimal that meets an integer is reported, with `why` as what it meets. */
bool weak_suits(Kern *k, const CheckedExpr *e, DType t, Span why);
/* Gives all weak parts of `e` the type t; false when a decimal meets an integer or a number does not fit (reported). */
bool weak_settle(Kern *k, CheckedExpr *e, DType t, Span why);
/* The type of a weak expression nobody else decides, */
DType weak_default(Weak w);
/* or its own of one that is not weak. */
DType expr_type(const CheckedExpr *e);
/* Gives the expression that type. */
void weak_decide(Kern *k, CheckedExpr *e);
/* The value of `op` on weak constants, or null when it is no constant. Reports overflow. */
CheckedExpr *weak_fold(Kern *k, Op op, AstId ast, Span span, CheckedExpr *const *arg,
                       uint32_t n);

/* ---- check_types.c ---- */
CheckedExpr *expr_map(Kern *k, Op op, AstId ast, Span span, Span at, CheckedExpr *const *arg,
                      uint32_t n);
void chain_add(Kern *k, CheckedExpr *chain, Op link, CheckedExpr *arg);
CheckedExpr *chain_type(Kern *k, CheckedExpr *chain); /* once all arguments are there */
/* x link y, for OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_AND and OP_OR. */
CheckedExpr *chain_of_two(Kern *k, Op link, AstId ast, Span span, CheckedExpr *x,
                          CheckedExpr *y);

#endif
