/* SPDX-License-Identifier: Apache-2.0 */
/* The op table as data. It lives in front because the type checker is its first reader; the
 * IRs, the interpreters and the back ends read the same rows. */
#ifndef FRONT_OP_H
#define FRONT_OP_H

#include "front/types.h"

typedef enum Op {
#define OP(id, name, kind, arity, rule, c, nki) id,
#include "front/ops.def"
#undef OP
    OP_COUNT
} Op;

typedef enum OpKind { OPKIND_LEAF, OPKIND_CONTRACT, OPKIND_MAP, OPKIND_REDUCE } OpKind;

typedef enum OpRule {
    RULE_ANY,
    RULE_FLOAT,
    RULE_REAL,
    RULE_RFLOAT,
    RULE_NUMBER,
    RULE_ORDER,
    RULE_EQUAL,
    RULE_LOGIC,
    RULE_SELECT,
    RULE_PART,
    RULE_CAST
} OpRule;

#define ARITY_ANY (-1)

typedef struct OpInfo {
    const char *name;
    OpKind kind;
    int arity;
    OpRule rule;
    const char *c;
    const char *nki;
} OpInfo;

const OpInfo *op_info(Op op);
bool op_from_name(Str name, Op *out); /* the table's names: "einsum", "reduce.sum", ... */
/* The result type for operand types `in`; false when the rule refuses them. CAST and leaves:
 * the caller knows. */
bool op_result_type(Op op, const DType *in, uint32_t n, DType *out);

/* A number of any element type. i64 holds ints and bool; re/im hold floats and complex. */
typedef struct Number {
    DType dtype;
    int64_t i;
    double re, im;
} Number;

/* The neutral element of a reduction (or of einsum's sum) in `dtype`: 0, 1, +-infinity, the
 * least or largest integer, false, true. */
Number op_neutral(Op op, DType dtype);
Number number_int(DType dtype, int64_t v);
Number number_real(DType dtype, double v);
bool number_is_zero(Number n);
/* `from` rounded or wrapped to `to` as a C conversion would (float to int: truncation,
 * saturating; NaN: 0). */
Number number_cast(Number from, DType to);

#endif
