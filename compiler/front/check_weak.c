/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers without a type. Literals, constants and extent(d) take the element type of what they meet; among themselves
 * they are computed here, exactly for integers (whose quotient is a decimal when it does not divide) and in f64 for
 * decimals. */
#include <math.h>

#include "front/check_types.h"

CheckedExpr *weak_const(Kern *k, AstId ast, Span span, Weak weak, int64_t i, double f)
{
    CheckedExpr *e = expr_new(k, CHECKED_CONST, ast, span);
    e->weak = weak;
    if (weak == WEAK_INT) {
        e->value = (Number){.dtype = DTYPE_I64, .i = i};
    } else {
        e->value = (Number){.dtype = DTYPE_F64, .re = f};
    }
    return e;
}

CheckedExpr *weak_complex(Kern *k, AstId ast, Span span, double re, double im)
{
    CheckedExpr *e = expr_new(k, CHECKED_CONST, ast, span);
    e->weak = WEAK_COMPLEX;
    e->value = (Number){.dtype = DTYPE_C128, .re = re, .im = im};
    return e;
}

DType weak_default(Weak w)
{
    return w == WEAK_INT ? DTYPE_I64 : w == WEAK_FLOAT ? DTYPE_F64 : DTYPE_C128;
}

DType expr_type(const CheckedExpr *e)
{
    return e->weak != WEAK_NO ? weak_default(e->weak) : e->dtype;
}

/* ---- settling ---- */

bool weak_suits(Kern *k, const CheckedExpr *e, DType t, Span why)
{
    if (e->weak == WEAK_NO || e->weak == WEAK_INT || dtype_is_complex(t) ||
        (e->weak == WEAK_FLOAT && dtype_is_float(t))) {
        return true;
    }
    if (e->weak == WEAK_COMPLEX) {
        Diagnostic *d = diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, e->span,
                                   "this is complex, and does not become %s", dtype_name(t));
        diag_help(d, "take re(...), im(...) or abs(...)");
        return false;
    }
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, e->span,
                               "a decimal number does not become %s", dtype_name(t));
    if (e->kind == CHECKED_CONST && why.source != 0 && why.lo != e->span.lo) {
        mark_other(k->c, d, why, str_format(k->c->arena, "this is %s", dtype_name(t)));
    }
    return false;
}

static bool settle_const(Kern *k, CheckedExpr *e, DType t)
{
    Diags *diags = &k->c->ctx->diags;
    if (t == DTYPE_BOOL) {
        return diag_refuse(diags, E_DTYPE_MISMATCH, e->span, "a number does not become bool");
    }
    Number v = number_cast(e->value, t);
    bool fits = dtype_is_int(t) ? v.i == e->value.i
                                : (isfinite(v.re) || !isfinite(e->value.re)) &&
                                      (isfinite(v.im) || !isfinite(e->value.im));
    if (!fits) {
        return diag_refuse(diags, E_NUMBER, e->span, "the number does not fit %s",
                           dtype_name(t));
    }
    bool lost = e->weak != WEAK_INT &&
                ((e->value.re != 0 && v.re == 0) || (e->value.im != 0 && v.im == 0));
    if (lost) {
        return diag_refuse(diags, E_NUMBER, e->span, "the number becomes 0 in %s",
                           dtype_name(t));
    }
    e->value = v;
    return true;
}

static bool has_kind(const CheckedExpr *e, CheckedKind kind)
{
    bool has = e->kind == kind;
    for (uint32_t a = 0; a < e->n && !has; a++) {
        has = has_kind(e->arg[a], kind);
    }
    return has;
}

/* The type in which `e` computes where t is asked for. Numbers with open extents compute among themselves, as they would be folded if the
 * extents were known; whole numbers with positions do, too. Decimals with positions compute in t, as they differ from element to
 * element: reals where t is complex, and f32 where it has 16 bits. */
static DType settled_type(const CheckedExpr *e, DType t)
{
    bool index = has_kind(e, CHECKED_INDEX);
    if ((e->kind != CHECKED_MAP && e->kind != CHECKED_CHAIN) ||
        (!index && !has_kind(e, CHECKED_EXTENT))) {
        return t;
    }
    bool here = index && e->weak == WEAK_FLOAT && (dtype_is_float(t) || dtype_is_complex(t));
    return here ? dtype_computes(dtype_part(t)) : weak_default(e->weak);
}

/* `e` computed in the type `in`, then cast. */
static bool settle_apart(Kern *k, CheckedExpr *e, DType in, DType t)
{
    CheckedExpr *inner = arena_copy(k->c->arena, e, sizeof *e);
    if (!weak_settle(k, inner, in, (Span){0})) {
        return false;
    }
    *e = *expr_cast_to(k, inner, t, true);
    return true;
}

bool weak_settle(Kern *k, CheckedExpr *e, DType t, Span why)
{
    if (e->weak == WEAK_NO || t == DTYPE_NONE) {
        return true;
    }
    bool ok = weak_suits(k, e, t, why);
    DType own = settled_type(e, t);
    if (ok && own != t) {
        return settle_apart(k, e, own, t);
    }
    switch (ok ? e->kind : CHECKED_POISON) {
    case CHECKED_POISON:
    case CHECKED_READ:
    case CHECKED_GATHER:
    case CHECKED_REDUCE:
    case CHECKED_DENSE:
        break;
    case CHECKED_CONST:
        ok = settle_const(k, e, t);
        break;
    case CHECKED_EXTENT:
    case CHECKED_INDEX:
    case CHECKED_MAP:
    case CHECKED_CHAIN:
        for (uint32_t a = 0; a < e->n && ok; a++) {
            if (e->arg[a]->weak == WEAK_NO) { /* the condition of a select */
                e->arg[a] = compute_in(k, e->arg[a], e->arg[a]->dtype);
            }
            ok = weak_settle(k, e->arg[a], t, why);
        }
        break;
    }
    e->weak = WEAK_NO;
    e->dtype = ok ? t : DTYPE_NONE;
    if (ok && e->kind == CHECKED_MAP) { /* abs, erf, ...: does the type have the operation? */
        DType in[3] = {DTYPE_NONE}, out = DTYPE_NONE;
        for (uint32_t a = 0; a < e->n; a++) {
            in[a] = e->arg[a]->dtype;
        }
        if (!op_result_type(e->op, in, e->n, &out)) {
            diag_error(&k->c->ctx->diags, E_BAD_TYPE, e->span, "'%s' is not defined for %s",
                       op_info(e->op)->name, dtype_name(t));
            ok = false;
        }
    }
    return ok;
}

void weak_decide(Kern *k, CheckedExpr *e)
{
    (void)weak_settle(k, e, expr_type(e), (Span){0});
}

/* ---- folding ---- */

/* What the op table computes of untyped numbers, as 64-bit integers or as f64. */
static Number value_of(Op op, DType t, CheckedExpr *const *arg, uint32_t n)
{
    Number in[2] = {{0}};
    DType out = t;
    for (uint32_t a = 0; a < n; a++) {
        in[a] = number_cast(arg[a]->value, t);
    }
    const DType types[2] = {t, t};
    (void)op_result_type(op, types, n, &out);
    return op_value(op, out, in);
}

/* The op as 64-bit integers; false when the result does not fit: then it has wrapped, and is far from what floats give. */
static bool whole_value(Op op, CheckedExpr *const *arg, uint32_t n, int64_t *out)
{
    *out = value_of(op, DTYPE_I64, arg, n).i;
    return fabs(value_of(op, DTYPE_F64, arg, n).re - (double)*out) < 0x1p62;
}

CheckedExpr *weak_fold(Kern *k, Op op, AstId ast, Span span, CheckedExpr *const *arg,
                       uint32_t n)
{
    bool ints = true, complex = false;
    for (uint32_t a = 0; a < n; a++) {
        if (arg[a]->kind != CHECKED_CONST || arg[a]->weak == WEAK_NO) {
            return NULL;
        }
        ints = ints && arg[a]->weak == WEAK_INT;
        complex = complex || arg[a]->weak == WEAK_COMPLEX;
    }
    OpLiteral literal = op_info(op)->literal;
    if (literal == LITERAL_NO) {
        return NULL; /* stays an operation */
    }
    if (ints && op == OP_DIV) { /* whole when it divides */
        int64_t x = arg[0]->value.i, y = arg[1]->value.i;
        if (y == 0) {
            diag_error(&k->c->ctx->diags, E_NUMBER, span, "division by zero");
            return expr_poison(k, ast, span);
        }
        literal = y == -1 || x % y == 0 ? LITERAL_SAME : LITERAL_FLOAT;
    }
    if (complex) {
        const DType in[2] = {DTYPE_C128, DTYPE_C128};
        DType out = DTYPE_NONE;
        if (!op_result_type(op, in, n, &out)) {
            return NULL; /* refused where it is settled */
        }
        Number z = value_of(op, DTYPE_C128, arg, n);
        return dtype_is_complex(out) ? weak_complex(k, ast, span, z.re, z.im)
                                     : weak_const(k, ast, span, WEAK_FLOAT, 0, z.re);
    }
    int64_t v = 0;
    if (ints && literal == LITERAL_SAME) {
        if (!whole_value(op, arg, n, &v)) {
            diag_error(&k->c->ctx->diags, E_NUMBER, span, "the number does not fit 64 bits");
            return expr_poison(k, ast, span);
        }
        return weak_const(k, ast, span, WEAK_INT, v, 0);
    }
    double f = value_of(op, DTYPE_F64, arg, n).re;
    return weak_const(k, ast, span, WEAK_FLOAT, 0, f);
}
