/* SPDX-License-Identifier: Apache-2.0 */
/* The op table as C, the type rules, and the neutral elements. */
#include "op/op.h"

#include <math.h>

static const OpInfo op_table[OP_COUNT] = {
#define LEAF(id, name_) [id] = {.name = name_, .kind = OPKIND_LEAF, .rule = RULE_ANY},
#define VIEW(id, name_)                                                                        \
    [id] = {.name = name_, .kind = OPKIND_VIEW, .arity = 1, .rule = RULE_ANY},
#define JOIN(id, name_, arity_)                                                                \
    [id] = {.name = name_, .kind = OPKIND_JOIN, .arity = arity_, .rule = RULE_ANY},
#define GATHER(id, name_)                                                                      \
    [id] = {.name = name_,                                                                     \
            .kind = OPKIND_GATHER,                                                             \
            .arity = ARITY_ANY,                                                                \
            .rule = RULE_ANY,                                                                  \
            .symbol = "",                                                                      \
            .level = LEVEL_CALL,                                                               \
            .c = "",                                                                           \
            .nki = ""},
#define STEPS(id, name_)                                                                       \
    [id] = {.name = name_, .kind = OPKIND_STEPS, .arity = ARITY_ANY, .rule = RULE_ANY},
#define DENSE(id, name_, arity_, upper_, transposed_)                                          \
    [id] = {.name = name_,                                                                     \
            .kind = OPKIND_DENSE,                                                              \
            .arity = arity_,                                                                   \
            .rule = RULE_FLOAT,                                                                \
            .upper = upper_,                                                                   \
            .transposed = transposed_},
#define MAP(id, name_, arity_, rule_, symbol_, level_, literal_, sign_, folds_, lanes_, value, \
            c_, nki_)                                                                          \
    [id] = {.name = name_,                                                                     \
            .kind = OPKIND_MAP,                                                                \
            .arity = arity_,                                                                   \
            .rule = RULE_##rule_,                                                              \
            .symbol = symbol_,                                                                 \
            .level = level_,                                                                   \
            .literal = LITERAL_##literal_,                                                     \
            .sign = SIGN_##sign_,                                                              \
            .folds = FOLDS_##folds_,                                                           \
            .lanes = LANES_##lanes_,                                                           \
            .c = c_,                                                                           \
            .nki = nki_},
#define FOLD(id, name_, kind_, arity_, rule_, by_, by_bool, neutral_)                          \
    [id] = {.name = name_,                                                                     \
            .kind = OPKIND_##kind_,                                                            \
            .arity = arity_,                                                                   \
            .rule = RULE_##rule_,                                                              \
            .by = {by_, by_bool},                                                              \
            .neutral = NEUTRAL_##neutral_},
#include "op/ops.def"
#undef LEAF
#undef VIEW
#undef JOIN
#undef GATHER
#undef STEPS
#undef DENSE
#undef MAP
#undef FOLD
};

const OpInfo *op_info(Op op)
{
    CHECK((unsigned)op < OP_COUNT);
    return &op_table[op];
}

bool op_is_function(Op op)
{
    return op_info(op)->kind == OPKIND_MAP && op != OP_COPY && op != OP_CAST &&
           op != OP_SCALE && op != OP_WHERE;
}

bool op_takes_whole(Op op)
{
    return op_info(op)->kind == OPKIND_STEPS || op_info(op)->kind == OPKIND_DENSE;
}

bool op_from_name(Str name, Op *out)
{
    for (int k = 0; k < OP_COUNT; k++) {
        if (str_eq_cstr(name, op_table[k].name)) {
            *out = (Op)k;
            return true;
        }
    }
    return false;
}

static bool all_same(const DType *in, uint32_t n)
{
    for (uint32_t k = 1; k < n; k++) {
        if (in[k] != in[0]) {
            return false;
        }
    }
    return true;
}

/* The element types a rule takes as its (first value) operand. */
static bool rule_takes(OpRule rule, DType t)
{
    switch (rule) {
    case RULE_ANY:
    case RULE_EQUAL:
    case RULE_SELECT:
    case RULE_CAST:
        return true;
    case RULE_FLOAT:
        return dtype_is_float(t) || dtype_is_complex(t);
    case RULE_RFLOAT:
        return dtype_is_float(t);
    case RULE_REAL:
    case RULE_ORDER:
        return dtype_is_float(t) || dtype_is_int(t);
    case RULE_NUMBER:
    case RULE_PART:
        return t != DTYPE_BOOL;
    case RULE_LOGIC:
        return t == DTYPE_BOOL;
    }
    UNREACHABLE();
}

bool op_result_type(Op op, const DType *in, uint32_t n, DType *out)
{
    const OpInfo *info = op_info(op);
    for (uint32_t k = 0; k < n; k++) {
        if (in[k] == DTYPE_NONE) {
            *out = DTYPE_NONE;
            return true;
        }
    }
    if (info->arity != ARITY_ANY && (uint32_t)info->arity != n) {
        return false;
    }
    if (n == 0 || info->rule == RULE_CAST) {
        return false;
    }
    if (info->rule == RULE_SELECT) {
        *out = in[1];
        return in[0] == DTYPE_BOOL && in[1] == in[2];
    }
    if (!all_same(in, n) || !rule_takes(info->rule, in[0])) {
        return false;
    }
    if (info->rule == RULE_ORDER || info->rule == RULE_EQUAL) {
        *out = DTYPE_BOOL;
    } else {
        *out = info->rule == RULE_PART ? dtype_part(in[0]) : in[0];
    }
    return true;
}

static Number extreme(DType dtype, int sign)
{
    if (dtype_is_exact(dtype)) {
        int64_t end = sign < 0 ? dtype_lowest(dtype) : dtype_highest(dtype);
        return (Number){.dtype = dtype, .i = end};
    }
    return (Number){.dtype = dtype, .re = sign < 0 ? -(double)INFINITY : (double)INFINITY};
}

Number op_neutral(Op op, DType dtype)
{
    switch (op_info(op)->neutral) {
    case NEUTRAL_ZERO:
        return number_int(dtype, 0);
    case NEUTRAL_ONE:
        return number_int(dtype, 1);
    case NEUTRAL_LEAST:
        return extreme(dtype, -1);
    case NEUTRAL_MOST:
        return extreme(dtype, 1);
    }
    UNREACHABLE();
}

bool op_is_neutral(Op op, Number v)
{
    Number neutral = op_neutral(op, v.dtype);
    return v.i == neutral.i && v.re == neutral.re && v.im == neutral.im;
}

Op op_joined_by(Op op, DType acc)
{
    const OpInfo *info = op_info(op);
    CHECK(info->kind == OPKIND_CONTRACT || info->kind == OPKIND_REDUCE);
    return info->by[acc == DTYPE_BOOL];
}

bool op_is_in_terms(Op op, DType dtype)
{
    bool real = dtype == DTYPE_F32 || dtype == DTYPE_F64, whole = dtype_is_int(dtype);
    switch ((int)op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_NEG:
        return real || whole;
    case OP_DIV:
    case OP_ABS:
    case OP_MIN:
    case OP_MAX:
        return real;
    default:
        return false;
    }
}

bool op_folds_terms(Op op, DType dtype)
{
    bool real = dtype == DTYPE_F32 || dtype == DTYPE_F64;
    return op == OP_SUM ? real || dtype_is_int(dtype)
                        : (op == OP_RMIN || op == OP_RMAX) && real;
}
