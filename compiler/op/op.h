/* SPDX-License-Identifier: Apache-2.0 */
/* The op table as data: the type checker, the IRs, the interpreters and the back ends read the
 * same rows. */
#ifndef OP_OP_H
#define OP_OP_H

#include "op/number.h"

typedef enum Op {
#define LEAF(id, ...)   id,
#define VIEW(id, ...)   id,
#define JOIN(id, ...)   id,
#define GATHER(id, ...) id,
#define STEPS(id, ...)  id,
#define DENSE(id, ...)  id,
#define MAP(id, ...)    id,
#define FOLD(id, ...)   id,
#include "op/ops.def"
#undef LEAF
#undef VIEW
#undef JOIN
#undef GATHER
#undef STEPS
#undef DENSE
#undef MAP
#undef FOLD
    OP_COUNT
} Op;

typedef enum OpKind {
    OPKIND_LEAF,
    OPKIND_VIEW,
    OPKIND_JOIN,
    OPKIND_GATHER,
    OPKIND_STEPS,
    OPKIND_DENSE,
    OPKIND_CONTRACT,
    OPKIND_MAP,
    OPKIND_REDUCE
} OpKind;

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

/* What becomes of numbers without a type: a whole number stays one, a float is made, or the operation stays. */
typedef enum OpLiteral { LITERAL_NO, LITERAL_SAME, LITERAL_FLOAT } OpLiteral;
/* Of real floats, in each operand. */
typedef enum OpSign { SIGN_NONE, SIGN_EVEN, SIGN_ODD } OpSign;
/* May constants be computed here instead of on the target's machine? */
typedef enum OpFolds { FOLDS_NEVER, FOLDS_REAL, FOLDS_ALWAYS } OpFolds;
/* Of real floats, in a loop that becomes vectors: what an element costs. */
typedef enum OpLanes { LANES_NO, LANES_CHEAP, LANES_DIVIDE, LANES_FUNCTION } OpLanes;
typedef enum OpNeutral { NEUTRAL_ZERO, NEUTRAL_ONE, NEUTRAL_LEAST, NEUTRAL_MOST } OpNeutral;

#define ARITY_ANY (-1)

typedef struct OpInfo {
    const char *name;
    OpKind kind;
    int arity;
    OpRule rule;
    /* of MAP */
    const char *symbol; /* as an operator of the language; "": it is a call */
    int level;          /* how strongly the operator binds: LEVEL_CALL for calls */
    OpLiteral literal;
    OpSign sign;
    OpFolds folds;
    OpLanes lanes;
    const char *c, *nki;
    /* of DENSE */
    bool upper, transposed;
    /* of CONTRACT and REDUCE */
    Op by[2]; /* what joins an element and the accumulator: of numbers, of bools */
    OpNeutral neutral;
} OpInfo;

enum { LEVEL_COMPARISON = 3, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_UNARY, LEVEL_CALL };

const OpInfo *op_info(Op op);
/* Are all operands read as they are, and all at once: by no indices or positions of the node? */
bool op_takes_whole(Op op);
/* Is it called by its name, element by element: abs(x)? */
bool op_is_function(Op op);
bool op_from_name(Str name, Op *out); /* the table's names: "einsum", "reduce.sum", ... */
/* The result type for operand types `in`; false when the rule refuses them. CAST and leaves: the caller knows. */
bool op_result_type(Op op, const DType *in, uint32_t n, DType *out);

/* The neutral element of a reduction (or of einsum's sum) in `dtype`: 0, 1, +-infinity, the least or largest
 * integer, false, true. */
Number op_neutral(Op op, DType dtype);
/* Does a fold stay as it is where this joins it? */
bool op_is_neutral(Op op, Number v);
/* The MAP op by which a reduction (or einsum's sum) takes a new element into an accumulator of type `acc`. */
Op op_joined_by(Op op, DType acc);
/* A contraction folds terms of elements of two operands: products that are summed, or any term of at most TERM_OPS operations
 * such as `(x - y)^2` or `x + y` that is summed or of which the least or largest is taken. May the terms have the op, may they be
 * folded so? */
#define TERM_OPS 8
bool op_is_in_terms(Op op, DType dtype);
bool op_folds_terms(Op op, DType dtype);
/* The scalar meaning of a MAP op, in the type `out` (every elementary result is rounded to it). */
Number op_value(Op op, DType out, const Number *arg);
/* The accumulator of a reduction (or of einsum's sum) after x has joined it. */
Number op_fold(Op op, DType acc, Number a, Number x);

#endif
