/* SPDX-License-Identifier: Apache-2.0 */
/* The op table as data: the type checker, the IRs, the interpreters and the back ends read the
 * same rows. */
#ifndef OP_OP_H
#define OP_OP_H

#include "op/number.h"

typedef enum Op {
#define OP(id, name, kind, arity, rule, c, nki) id,
#include "op/ops.def"
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

/* The neutral element of a reduction (or of einsum's sum) in `dtype`: 0, 1, +-infinity, the
 * least or largest integer, false, true. */
Number op_neutral(Op op, DType dtype);
/* The scalar meaning of a MAP op, in the type `out` (every elementary result is rounded to it).
 */
Number op_value(Op op, DType out, const Number *arg);
/* The accumulator of a reduction (or of einsum's sum) after x has joined it. */
Number op_fold(Op op, DType acc, Number a, Number x);

#endif
