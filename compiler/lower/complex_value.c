/* SPDX-License-Identifier: Apache-2.0 */
/* One complex value as two real ones, by the definitions of arithmetic. Each operand is split
 * once and its parts are shared, so a product of products is a graph of linear size. */
#include "lower/complex.h"

bool split_refuse(Splitter *s, Span span, const char *what)
{
    if (!s->failed) {
        diag_unsupported(&s->ctx->diags, E_TARGET, span, "target '%s' does not have %s",
                         s->target->name, what);
    }
    s->failed = true;
    return false;
}

bool split_is_complex(const Splitter *s, BufRef buf)
{
    return buf < s->from->bufs.n && dtype_is_complex(s->from->bufs.at[buf].dtype);
}

const Affine *split_at(Splitter *s, BufRef buf, const Affine *at, Affine r)
{
    return pair_at(s->arena, s->from->bufs.at[buf].rank, at, r);
}

static const Expr *number(Splitter *s, double v)
{
    return expr_const(s->arena, number_real(s->type, v));
}

static const Expr *op1(Splitter *s, Op op, const Expr *x)
{
    return expr_op(s->arena, op, s->type, 1, &x);
}

static const Expr *op2(Splitter *s, Op op, const Expr *x, const Expr *y)
{
    const Expr *arg[2] = {x, y};
    return expr_op(s->arena, op, s->type, 2, arg);
}

static const Expr *compare(Splitter *s, Op op, const Expr *x, const Expr *y)
{
    const Expr *arg[2] = {x, y};
    return expr_op(s->arena, op, DTYPE_BOOL, 2, arg);
}

/* Null is zero in all of these. */
static const Expr *negated(Splitter *s, const Expr *x)
{
    return x == NULL ? NULL : op1(s, OP_NEG, x);
}

static const Expr *sum(Splitter *s, const Expr *x, const Expr *y)
{
    return x == NULL ? y : y == NULL ? x : op2(s, OP_ADD, x, y);
}

static const Expr *difference(Splitter *s, const Expr *x, const Expr *y)
{
    return y == NULL ? x : x == NULL ? negated(s, y) : op2(s, OP_SUB, x, y);
}

static const Expr *product(Splitter *s, const Expr *x, const Expr *y)
{
    return x == NULL || y == NULL ? NULL : op2(s, OP_MUL, x, y);
}

static const Expr *given(Splitter *s, const Expr *x)
{
    return x == NULL ? number(s, 0) : x;
}

static Parts times(Splitter *s, Parts x, Parts y)
{
    return (Parts){difference(s, product(s, x.re, y.re), product(s, x.im, y.im)),
                   sum(s, product(s, x.re, y.im), product(s, x.im, y.re))};
}

static const Expr *square(Splitter *s, Parts x)
{
    return given(s, sum(s, product(s, x.re, x.re), product(s, x.im, x.im)));
}

/* x / y = x conj(y) / |y|^2 */
static Parts quotient(Splitter *s, Parts x, Parts y)
{
    if (y.im == NULL) {
        const Expr *by = given(s, y.re);
        return (Parts){x.re == NULL ? NULL : op2(s, OP_DIV, x.re, by),
                       x.im == NULL ? NULL : op2(s, OP_DIV, x.im, by)};
    }
    const Expr *inverse = op2(s, OP_DIV, number(s, 1), square(s, y));
    Parts z = times(s, x, (Parts){y.re, negated(s, y.im)});
    return (Parts){product(s, z.re, inverse), product(s, z.im, inverse)};
}

/* 1 where x is 0, else 0. */
static const Expr *zero_of(Splitter *s, const Expr *x)
{
    return expr_cast(s->arena, compare(s, OP_EQ, x, number(s, 0)), s->type);
}

/* The table of square roots does not have 0: there it is that of 1, less 1. */
static const Expr *root(Splitter *s, const Expr *q)
{
    const Expr *zero = zero_of(s, q);
    return difference(s, op1(s, OP_SQRT, sum(s, q, zero)), zero);
}

static const Expr *magnitude(Splitter *s, Parts x)
{
    return root(s, square(s, x));
}

static const Expr *choose(Splitter *s, const Expr *c, const Expr *x, const Expr *y)
{
    const Expr *arg[3] = {c, given(s, x), given(s, y)};
    return x == NULL && y == NULL ? NULL : expr_op(s->arena, OP_SELECT, s->type, 3, arg);
}

/* The root with a real part of at least 0: t = sqrt((|z| + |re|) / 2), and im / (2 t) is the other part, so that nothing cancels. On the
 * negative axis the imaginary part has the sign of im, of which -0 counts as 0. */
static Parts square_root(Splitter *s, Parts x)
{
    const Expr *zero = number(s, 0);
    const Expr *re = given(s, x.re), *im = given(s, x.im);
    const Expr *positive = compare(s, OP_GE, re, zero), *below = compare(s, OP_LT, im, zero);
    const Expr *size = x.im == NULL ? op1(s, OP_ABS, re) : magnitude(s, x);
    const Expr *twice = sum(s, size, op1(s, OP_ABS, re));
    const Expr *t = root(s, product(s, twice, number(s, 0.5)));
    const Expr *by = product(s, sum(s, t, zero_of(s, t)), number(s, 2));
    const Expr *other = op2(s, OP_DIV, im, by);
    return (Parts){choose(s, positive, t, op1(s, OP_ABS, other)),
                   choose(s, positive, other, choose(s, below, negated(s, t), t))};
}

static Parts constant(Splitter *s, Number v)
{
    bool re = !(v.re <= 0 && v.re >= 0), im = !(v.im <= 0 && v.im >= 0);
    return (Parts){re ? number(s, v.re) : NULL, im ? number(s, v.im) : NULL};
}

static Parts load(Splitter *s, const Expr *e)
{
    return (Parts){
        expr_load(s->arena, s->to, e->buf, split_at(s, e->buf, e->at, affine_const(0))),
        expr_load(s->arena, s->to, e->buf, split_at(s, e->buf, e->at, affine_const(1)))};
}

static Parts refused_parts(Splitter *s, Span span, const char *what)
{
    split_refuse(s, span, what);
    return (Parts){number(s, 0), NULL};
}

static Parts cast_parts(Splitter *s, Parts x)
{
    return (Parts){x.re == NULL ? NULL : expr_cast(s->arena, x.re, s->type),
                   x.im == NULL ? NULL : expr_cast(s->arena, x.im, s->type)};
}

static Parts operation(Splitter *s, Span span, const Expr *e)
{
    if (e->op == OP_CAST) {
        const Expr *x = e->arg[0];
        return dtype_is_complex(x->dtype)
                   ? cast_parts(s, split_parts(s, span, x))
                   : (Parts){expr_cast(s->arena, split_real(s, span, x), s->type), NULL};
    }
    if (e->op == OP_SELECT) {
        const Expr *c = split_real(s, span, e->arg[0]);
        Parts x = split_parts(s, span, e->arg[1]), y = split_parts(s, span, e->arg[2]);
        return (Parts){choose(s, c, x.re, y.re), choose(s, c, x.im, y.im)};
    }
    Parts x = split_parts(s, span, e->arg[0]), y = {NULL, NULL};
    if (e->n_args > 1) {
        y = split_parts(s, span, e->arg[1]);
    }
    switch ((int)e->op) {
    case OP_COPY:
        return x;
    case OP_NEG:
        return (Parts){negated(s, x.re), negated(s, x.im)};
    case OP_CONJ:
        return (Parts){x.re, negated(s, x.im)};
    case OP_ADD:
        return (Parts){sum(s, x.re, y.re), sum(s, x.im, y.im)};
    case OP_SUB:
        return (Parts){difference(s, x.re, y.re), difference(s, x.im, y.im)};
    case OP_MUL:
        return times(s, x, y);
    case OP_DIV:
        return quotient(s, x, y);
    case OP_SCALE: {
        Parts z = times(s, x, y);
        const Expr *zero = compare(
            s, OP_EQ,
            sum(s, given(s, op1(s, OP_ABS, given(s, x.re))), op1(s, OP_ABS, given(s, x.im))),
            number(s, 0));
        return (Parts){choose(s, zero, NULL, z.re), choose(s, zero, NULL, z.im)};
    }
    case OP_EXP: {
        const Expr *size = x.re == NULL ? number(s, 1) : op1(s, OP_EXP, x.re);
        return x.im == NULL ? (Parts){size, NULL}
                            : (Parts){product(s, size, op1(s, OP_COS, x.im)),
                                      product(s, size, op1(s, OP_SIN, x.im))};
    }
    case OP_SQRT:
        return square_root(s, x);
    case OP_POW:
        if (e->arg[1]->kind == EXPR_CONST && y.im == NULL && y.re != NULL &&
            y.re->value.re >= 2.0 && y.re->value.re <= 2.0) {
            return times(s, x, x);
        }
        break;
    default:
        break;
    }
    return refused_parts(s, span,
                         str_format(s->arena, "%s of complex numbers; it goes to target 'c'",
                                    op_info(e->op)->name));
}

static Parts parts_of(Splitter *s, Span span, const Expr *e)
{
    switch (e->kind) {
    case EXPR_CONST:
        return constant(s, e->value);
    case EXPR_EXTENT:
    case EXPR_INDEX: {
        Expr *x = ARENA_NEW(s->arena, Expr);
        *x = *e;
        x->dtype = s->type;
        return (Parts){x, NULL};
    }
    case EXPR_LOAD:
        return load(s, e);
    case EXPR_OP:
        break;
    }
    if (e->op == OP_GATHER) {
        return refused_parts(s, span, "gather of complex numbers; it goes to target 'c'");
    }
    if (!dtype_is_complex(e->dtype)) {
        return refused_parts(
            s, span,
            str_format(s->arena, "%s here; it goes to target 'c'", dtype_name(e->dtype)));
    }
    return operation(s, span, e);
}

Parts split_parts(Splitter *s, Span span, const Expr *e)
{
    DType outer = s->type;
    s->type = dtype_part(e->dtype);
    Parts out = parts_of(s, span, e);
    s->type = outer;
    return out;
}

/* ---- real values ---- */

static const Expr *real_of_complex(Splitter *s, Span span, const Expr *e)
{
    s->type = dtype_part(e->arg[0]->dtype);
    Parts x = split_parts(s, span, e->arg[0]), y = {NULL, NULL};
    if (e->n_args > 1) {
        y = split_parts(s, span, e->arg[1]);
    }
    switch ((int)e->op) {
    case OP_RE:
        return given(s, x.re);
    case OP_IM:
        return given(s, x.im);
    case OP_ABS:
        return x.im == NULL ? op1(s, OP_ABS, given(s, x.re)) : magnitude(s, x);
    case OP_EQ:
    case OP_NE: {
        const Expr *arg[2] = {compare(s, e->op, given(s, x.re), given(s, y.re)),
                              compare(s, e->op, given(s, x.im), given(s, y.im))};
        return expr_op(s->arena, e->op == OP_EQ ? OP_AND : OP_OR, DTYPE_BOOL, 2, arg);
    }
    default:
        split_refuse(s, span,
                     str_format(s->arena, "%s of complex numbers; it goes to target 'c'",
                                op_info(e->op)->name));
        return number(s, 0);
    }
}

const Expr *split_real(Splitter *s, Span span, const Expr *e)
{
    if (e->kind != EXPR_OP) {
        return e;
    }
    for (uint32_t i = 0; i < e->n_args; i++) {
        if (dtype_is_complex(e->arg[i]->dtype)) {
            DType outer = s->type;
            const Expr *out = real_of_complex(s, span, e);
            s->type = outer;
            return out;
        }
    }
    const Expr **arg = ARENA_ARRAY(s->arena, e->n_args, const Expr *);
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = split_real(s, span, e->arg[i]);
    }
    Expr *out = arena_copy(s->arena, e, sizeof *e);
    out->arg = arg;
    return out;
}

/* ---- the part as a label ---- */

static bool is_real_number(const Expr *e)
{
    while (e->kind == EXPR_OP && e->op == OP_CAST) {
        e = e->arg[0];
    }
    return e->kind == EXPR_CONST && !(e->value.im < 0) && !(e->value.im > 0);
}

static const Expr *real_number(Splitter *s, const Expr *e)
{
    while (e->kind == EXPR_OP && e->op == OP_CAST) {
        e = e->arg[0];
    }
    return expr_const(s->arena, number_cast(e->value, s->type));
}

bool split_is_uniform(const Splitter *s, const Expr *e, VarRef last)
{
    if (e->kind == EXPR_CONST) {
        return !(e->value.re < e->value.im) && !(e->value.re > e->value.im);
    }
    if (e->kind == EXPR_LOAD) {
        bool has = last == UINT32_MAX || access_uses(s->from, e->buf, e->at, last);
        return has && split_is_complex(s, e->buf);
    }
    if (e->kind != EXPR_OP) {
        return false;
    }
    switch ((int)e->op) {
    case OP_COPY:
    case OP_NEG:
        return split_is_uniform(s, e->arg[0], last);
    case OP_ADD:
    case OP_SUB:
        return split_is_uniform(s, e->arg[0], last) && split_is_uniform(s, e->arg[1], last);
    case OP_MUL:
        return (is_real_number(e->arg[0]) && split_is_uniform(s, e->arg[1], last)) ||
               (is_real_number(e->arg[1]) && split_is_uniform(s, e->arg[0], last));
    case OP_DIV:
        return is_real_number(e->arg[1]) && split_is_uniform(s, e->arg[0], last);
    default:
        return false;
    }
}

const Expr *split_uniform(Splitter *s, const Expr *e)
{
    if (e->kind == EXPR_CONST) {
        return number(s, e->value.re);
    }
    if (e->kind == EXPR_LOAD) {
        return expr_load(s->arena, s->to, e->buf,
                         split_at(s, e->buf, e->at, affine_var(s->arena, s->part)));
    }
    const Expr *arg[2] = {NULL, NULL};
    bool scaled = e->op == OP_MUL || e->op == OP_DIV;
    for (uint32_t i = 0; i < e->n_args; i++) {
        bool factor = scaled && is_real_number(e->arg[i]) &&
                      (e->op == OP_DIV ? i == 1 : i == 0 || !is_real_number(e->arg[0]));
        arg[i] = factor ? real_number(s, e->arg[i]) : split_uniform(s, e->arg[i]);
    }
    return e->op == OP_COPY ? arg[0] : expr_op(s->arena, e->op, s->type, e->n_args, arg);
}
