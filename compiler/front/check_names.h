/* SPDX-License-Identifier: Apache-2.0 */
/* Names: dims and constants, element types, what is called; values that are computed step by step; names that mean nothing. */
#ifndef FRONT_CHECK_NAMES_H
#define FRONT_CHECK_NAMES_H

#include "front/check_state.h"

/* ---- check_name.c ---- */
/* Is it a dim or a constant of the program? Kernels of a library know none of them. */
bool global_named(const Kern *k, Sym name, uint32_t *global);
Dim dim_named(Kern *k, Sym name, Span at, bool *ok);
/* Known already, as the kernel's or the program's? */
bool dim_known(Kern *k, Sym name);

/* The kinds of names.def, and what it says of a name. */
typedef enum NameKind {
    NAME_NONE,
    NAME_FORM,
    NAME_REDUCTION,
    NAME_FOLD,
    NAME_DENSE,
    NAME_FUNCTION,
    NAME_FOREIGN
} NameKind;
NameKind name_kind(Sym name);
/* Is it written with indices in brackets? */
static inline bool is_reduction(Sym name)
{
    NameKind kind = name_kind(name);
    return kind == NAME_REDUCTION || kind == NAME_FOLD || kind == NAME_DENSE;
}
/* The i-th name that stands for something here, or null. */
const char *name_at(uint32_t i);
/* How what is called so elsewhere is written here, or null. */
const char *name_cure(Sym name);
bool einsum_is(const AstNode *n);
/* Is there a kernel of this name? */
bool kernel_named(const Kern *k, Sym name, uint32_t *head);
/* An elementwise function of the op table. */
bool function_named(Sym name, Op *op);
/* The element type of this name; false where there is none. */
bool dtype_named(const Kern *k, Sym name, DType *out);
/* The element type that a declaration names; NONE after a report. */
DType dtype_declared(Kern *k, const AstNode *type);
/* What a word for element types stands for: WORDS if it is none. */
uint32_t dtype_word(Sym name);
bool dtype_suits_word(uint32_t word, DType t);
/* The type that it is where nothing says which. */
DType dtype_of_word(uint32_t word);

/* ---- check_steps.c ---- */
/* The value of a recurrence that is called so, or null; the statement as a part of one, or null; what is given of a value at a position,
 * or null. */
StepsName *steps_named(Kern *k, Sym name);
StepsMember *steps_member(StepsGroup *g, uint32_t statement);
const StepsGiven *steps_given_at(const StepsName *v, int64_t at);
/* `t`, of `t` or `t < n`; null: it is no index alone. */
Sym steps_index_alone(const Kern *k, AstId id);
/* `t - 2`: the name, and the number behind it, of at most STEPS_MOST; null: it is no such position. */
Sym steps_shifted(const Kern *k, AstId id, int64_t *by);
bool steps_has_name(const Kern *k, AstId id, Sym name);
/* The recurrence that the statement stands in, or null. */
StepsGroup *steps_group(Kern *k, uint32_t statement);
/* Finds the recurrences of the body, and writes it anew; false after a report. */
bool steps_scan(Kern *k, AstNode *body);

/* ---- check_steps_messages.c ---- */
void steps_refuse_two(Kern *k, Span at, const char *x, const char *y);
void steps_refuse_mixed(Kern *k, const StepsName *v);
void steps_refuse_both(Kern *k, const StepsName *v);
void steps_refuse_late(Kern *k, const StepsName *v, uint32_t statement);
/* `own`: at the position that the step computes. */
void steps_refuse_read(Kern *k, const StepsName *v, AstId read, Sym index, bool own);
/* The step reads position `at` (-1: the one before the first), which nothing gives. */
void steps_refuse_missing(Kern *k, const StepsName *v, int64_t at);
/* Says how to declare what a step reads of those before, if that began with a whole number and another type is meant. */
bool steps_help_type(Kern *k, Diagnostic *d, const CheckedExpr *read, DType t);
/* Does the statement read `name`, which it assigns, at other positions? Then that is reported. */
bool recurrence_reported(Kern *k, Sym name, Span at);
/* Warns where `+=` looks like steps. */
void recurrence_warn(Kern *k, AstId statement);

/* ---- check_steps_values.c ---- */
/* Before and after the statement that is looked at. */
void steps_begin(Kern *k);
void steps_end(Kern *k);
/* The element type that a value of a recurrence has from what it begins with, or what it begins with from the value; NONE: neither. */
DType steps_type(Kern *k, Sym name);
/* The label of index `axis` on the left of `target`, which no operand has, gets the extent of what is given for a value that is known, or
 * of the steps. */
void steps_bind(Kern *k, Sym target, uint32_t axis, int32_t label);
/* A position in a step, where its index has its least and its greatest value: those that are given are no steps; false: it has no such
 * index. */
bool steps_shift(Kern *k, Affine x, Affine *low, Affine *high);
/* Is it the step's index of the statement that is looked at? */
bool steps_index(Kern *k, Sym name);

/* ---- check_unknown.c ---- */
const char *suggest_dim(Kern *k, Sym name);
CheckedExpr *unknown_value(Kern *k, Sym name, Span at);
/* The value of this name, which has been assigned; false after a report. */
bool value_named(Kern *k, const AstNode *n, uint32_t *value);
/* Reports a call, or a reduction, of a name that stands for none. */
CheckedExpr *unknown_function(Kern *k, AstId ast, const AstNode *n);

#endif
