/* SPDX-License-Identifier: Apache-2.0 */
/* The type in which a statement computes, written into its expressions. It is the type of the value that the statement
 * gives, f32 where that has 16 bits (which are storage, and never computed in), and the component's type where reals
 * become complex. Reads, numbers and extents take it, so that nothing is rounded before the end. Two kinds of
 * expression have a type of their own: what a cast or a comparison takes, and what a reduction folds, unless that is a
 * plain product, since only a product of tensors costs nothing more in the wider type.
 *
 * A local of 16 bits that is not declared holds the f32, although its type is called f16: else an RMS norm written in two statements would
 * overflow where the same in one does not, and fusing two statements would change a value. The operand of a product of matrices is rounded all
 * the same, by rule and not by machine, so that C, Trainium and the interpreters agree. */
#include "front/check_types.h"

DType joint_type(DType a, DType b)
{
    DType complex = dtype_is_complex(a) ? a : b, other = dtype_is_complex(a) ? b : a;
    DType in = dtype_computes(a), with = dtype_computes(b);
    bool reals =
        (dtype_is_float(a) && dtype_is_float(b)) || (dtype_is_int(a) && dtype_is_int(b));
    if (dtype_is_complex(complex) && dtype_is_float(other)) {
        return dtype_widens(other, complex) ? complex : DTYPE_NONE;
    }
    return a == b || (reals && dtype_widens(b, a)) ? a
           : reals && dtype_widens(a, b)           ? b
           : reals                                 ? (dtype_widens(in, with) ? with : in)
                                                   : DTYPE_NONE;
}

DType result_type(DType t)
{
    return dtype_is_int(t) ? dtype_computes(t) : t;
}

static CheckedExpr *cast_to(Kern *k, CheckedExpr *e, DType t)
{
    if (e->dtype == t || e->dtype == DTYPE_NONE) {
        return e;
    }
    return expr_cast_to(k, e, t, true);
}

/* An undeclared value of a 16-bit type: it holds f32 as long as some reader computes with it. */
static bool holds_f32(const Value *v)
{
    return (v->kind == VALUE_TEMP || (v->kind == VALUE_LOCAL && !v->declared)) &&
           dtype_is_half(v->type.dtype);
}

static CheckedExpr *compute(Kern *k, CheckedExpr *e, DType t);

static CheckedExpr *compute_read(Kern *k, CheckedExpr *e, DType t)
{
    Value *v = &k->k->values.at[e->read];
    v->wide_uses += holds_f32(v) ? 1 : 0;
    e->dtype = t;
    return e;
}

static void compute_args(Kern *k, CheckedExpr *e, DType t)
{
    for (uint32_t a = 0; a < e->n; a++) {
        e->arg[a] = compute(k, e->arg[a], t);
    }
}

/* ---- functions and casts ---- */

/* The type in which an expression computes that nobody around it decides for: that of its operands. */
static DType own_type(const CheckedExpr *e)
{
    return dtype_computes(expr_type(e));
}

/* That in which two are compared. */
static DType own_type_of_two(const CheckedExpr *a, const CheckedExpr *b)
{
    return a->weak != WEAK_NO   ? own_type(b)
           : b->weak != WEAK_NO ? own_type(a)
                                : dtype_computes(joint_type(a->dtype, b->dtype));
}

static CheckedExpr *compute_cast(Kern *k, CheckedExpr *e, DType t)
{
    CheckedExpr *arg = e->arg[0];
    bool rounds = arg->kind == CHECKED_READ && arg->dtype == e->dtype; /* f16(x), x of f16 */
    e->arg[0] = rounds ? arg : compute(k, arg, own_type(arg));
    return cast_to(k, e, t);
}

static CheckedExpr *compute_map(Kern *k, CheckedExpr *e, DType t)
{
    DType in = t;
    uint32_t first = 0;
    switch (op_info(e->op)->rule) {
    case RULE_CAST:
        return compute_cast(k, e, t);
    case RULE_ORDER:
    case RULE_EQUAL:
        in = own_type_of_two(e->arg[0], e->arg[1]);
        break;
    case RULE_PART:
        if (dtype_is_complex(e->arg[0]->dtype)) {
            in = t == DTYPE_F64 ? DTYPE_C128 : e->arg[0]->dtype;
        }
        break;
    case RULE_SELECT:
        e->arg[0] = compute(k, e->arg[0], DTYPE_BOOL);
        first = 1;
        break;
    case RULE_ANY:
    case RULE_FLOAT:
    case RULE_REAL:
    case RULE_RFLOAT:
    case RULE_NUMBER:
    case RULE_LOGIC:
        break;
    }
    for (uint32_t a = first; a < e->n; a++) {
        e->arg[a] = cast_to(k, compute(k, e->arg[a], in), in);
    }
    e->dtype = t;
    return e;
}

/* ---- reductions ---- */

static bool has_label(const int32_t *label, uint32_t n, int32_t l)
{
    for (uint32_t a = 0; a < n; a++) {
        if (label[a] == l) {
            return true;
        }
    }
    return false;
}

static bool reads_folded(const CheckedExpr *e, const CheckedExpr *fold)
{
    bool labels = e->kind == CHECKED_READ || e->kind == CHECKED_INDEX;
    for (uint32_t a = 0; labels && a < e->rank; a++) {
        if (has_label(fold->label, fold->rank, e->label[a])) {
            return true;
        }
    }
    for (uint32_t a = 0; a < e->n; a++) {
        if (reads_folded(e->arg[a], fold)) {
            return true;
        }
    }
    return false;
}

static bool is_minus(const CheckedExpr *e)
{
    return e->kind == CHECKED_MAP && e->op == OP_NEG;
}

/* Do all folded indices stand in factors that are tensors? */
static bool is_plain_product(const CheckedExpr *e, const CheckedExpr *fold)
{
    if (!expr_is_product(e) && !is_minus(e)) {
        return e->kind == CHECKED_READ || !reads_folded(e, fold);
    }
    for (uint32_t a = 0; a < e->n; a++) {
        bool divisor = expr_is_product(e) && a > 0 && e->link[a] == OP_DIV;
        if (divisor ? reads_folded(e->arg[a], fold) : !is_plain_product(e->arg[a], fold)) {
            return false;
        }
    }
    return true;
}

typedef VEC(CheckedExpr *) Factors;

/* The tensors of a plain product. */
static void collect_factors(Kern *k, CheckedExpr *e, Factors *out)
{
    if (e->kind == CHECKED_READ && e->rank > 0) {
        vec_push(k->c->arena, out, e);
    }
    for (uint32_t a = 0; (expr_is_product(e) || is_minus(e)) && a < e->n; a++) {
        if (a == 0 || is_minus(e) || e->link[a] != OP_DIV) {
            collect_factors(k, e->arg[a], out);
        }
    }
}

/* Has `x` an index that stays and that `y` lacks? */
static bool has_own_label(const CheckedExpr *x, const CheckedExpr *y, const CheckedExpr *fold)
{
    for (uint32_t a = 0; a < x->rank; a++) {
        if (!has_label(fold->label, fold->rank, x->label[a]) &&
            !has_label(y->label, y->rank, x->label[a])) {
            return true;
        }
    }
    return false;
}

/* A product of matrices reads 16-bit operands as they are called, which is what matrix units take: rows in one factor,
 * columns in another. */
static bool is_matrix_product(const Factors *f, const CheckedExpr *fold)
{
    for (uint32_t x = 0; x < f->n; x++) {
        for (uint32_t y = x + 1; y < f->n; y++) {
            if (has_own_label(f->at[x], f->at[y], fold) &&
                has_own_label(f->at[y], f->at[x], fold)) {
                return true;
            }
        }
    }
    return false;
}

/* What a product does with operands of 16 bits that hold f32. */
typedef enum Narrow {
    NARROW_NOT,
    NARROW_READS, /* a contraction reads their 16 bits */
    NARROW_ROUNDS /* they are rounded to 16 bits, and read in the type of the product */
} Narrow;

static CheckedExpr *compute_product(Kern *k, CheckedExpr *e, DType t, Narrow narrow)
{
    if (narrow != NARROW_NOT && e->kind == CHECKED_READ && e->rank > 0) {
        const Value *v = &k->k->values.at[e->read];
        if (holds_f32(v)) {
            return narrow == NARROW_READS ? e : cast_to(k, e, t);
        }
    }
    if (!expr_is_product(e) && !is_minus(e)) {
        return compute(k, e, t);
    }
    for (uint32_t a = 0; a < e->n; a++) {
        bool divisor = expr_is_product(e) && a > 0 && e->link[a] == OP_DIV;
        e->arg[a] = compute_product(k, e->arg[a], t, divisor ? NARROW_NOT : narrow);
    }
    e->dtype = t;
    return e;
}

/* Does the fold add up such a product of matrices? */
static bool adds_matrix_product(Kern *k, CheckedExpr *body, const CheckedExpr *fold)
{
    Factors f = {0};
    if (fold->op != OP_SUM || !is_plain_product(body, fold)) {
        return false;
    }
    collect_factors(k, body, &f);
    return is_matrix_product(&f, fold);
}

/* `select(condition, x, 0)`, which a sum of x under a condition adds up (fold_where). */
static bool is_restricted(const CheckedExpr *e)
{
    return e->kind == CHECKED_MAP && e->op == OP_SELECT && e->arg[2]->kind == CHECKED_CONST &&
           e->arg[2]->value.re == 0 && e->arg[2]->value.i == 0;
}

static CheckedExpr *compute_reduce(Kern *k, CheckedExpr *e, DType t)
{
    CheckedExpr *body = e->arg[0];
    bool adds = e->op == OP_SUM || e->op == OP_PROD;
    if (adds && is_plain_product(body, e)) {
        e->arg[0] = compute_product(
            k, body, t, adds_matrix_product(k, body, e) ? NARROW_READS : NARROW_NOT);
    } else if (is_restricted(body) && dtype_is_half(e->dtype) &&
               adds_matrix_product(k, body->arg[1], e)) {
        body->arg[0] = compute(k, body->arg[0], DTYPE_BOOL);
        body->arg[1] = compute_product(k, body->arg[1], t, NARROW_ROUNDS);
        body->arg[2] = cast_to(k, compute(k, body->arg[2], t), t);
        body->dtype = t;
    } else {
        DType own = own_type(body);
        e->arg[0] = cast_to(k, compute(k, body, own), own);
        if (!adds) { /* the least of some numbers is one of them */
            e->dtype = own;
            return cast_to(k, e, t);
        }
    }
    e->dtype = t;
    return e;
}

/* ---- all kinds ---- */

/* `e` with t as the type in which it computes: a type that e widens to. What it gives has that type, but a constant with
 * one of its own, which whoever reads it converts. */
static CheckedExpr *compute(Kern *k, CheckedExpr *e, DType t)
{
    if (e->weak != WEAK_NO) {
        return weak_settle(k, e, t, (Span){0}) ? e : expr_poison(k, e->ast, e->span);
    }
    switch (e->kind) {
    case CHECKED_READ:
        return compute_read(k, e, t);
    case CHECKED_MAP:
        return compute_map(k, e, t);
    case CHECKED_CHAIN:
    case CHECKED_DENSE:
        compute_args(k, e, t);
        e->dtype = t;
        return e;
    case CHECKED_REDUCE:
        return compute_reduce(k, e, t);
    case CHECKED_GATHER: /* its positions compute in i64 already */
        return cast_to(k, e, t);
    case CHECKED_POISON:
    case CHECKED_CONST:
    case CHECKED_EXTENT:
    case CHECKED_INDEX:
        break;
    }
    return e;
}

CheckedExpr *compute_in(Kern *k, CheckedExpr *e, DType t)
{
    bool grows = dtype_is_complex(t) && e->weak == WEAK_NO && !dtype_is_complex(e->dtype);
    DType in = dtype_computes(grows ? dtype_part(t) : t);
    return cast_to(k, compute(k, e, in), dtype_computes(t));
}

/* ---- storing ---- */

/* Is this a 16-bit tensor in memory, or read as one? */
static bool is_stored(const Kern *k, const CheckedExpr *e, DType t)
{
    const Value *v = &k->k->values.at[e->read];
    return e->kind == CHECKED_READ && v->type.dtype == t && (e->dtype == t || !holds_f32(v));
}

/* A sum of 16-bit tensors, or of their products, which is rounded once by itself: sums of 16 bits run in f32. */
static bool rounds_once(const Kern *k, const CheckedExpr *e, DType t)
{
    const CheckedExpr *body = e->arg[0];
    if (body->kind != CHECKED_CHAIN) {
        return is_stored(k, body, t) && body->rank > 0;
    }
    for (uint32_t a = 0; a < body->n; a++) {
        const CheckedExpr *f = body->arg[a];
        if ((a > 0 && body->link[a] != OP_MUL) || e->op != OP_SUM || f->rank == 0 ||
            !is_stored(k, f, t)) {
            return false;
        }
    }
    return true;
}

static CheckedExpr *round_to(Kern *k, CheckedExpr *e, DType t)
{
    if (dtype_computes(t) == t || e->dtype == t) {
        return e;
    }
    if (e->kind == CHECKED_READ && is_stored(k, e, t)) {
        e->dtype = t;
        return e;
    }
    if (dtype_is_half(t) && e->kind == CHECKED_REDUCE && rounds_once(k, e, t)) {
        CheckedExpr *body = e->arg[0];
        for (uint32_t a = 0; a < body->n; a++) {
            body->arg[a]->dtype = t;
        }
        e->dtype = body->dtype = t;
        return e;
    }
    return cast_to(k, e, t);
}

CheckedExpr *compute_target(Kern *k, CheckedExpr *e, uint32_t target)
{
    const Value *v = &k->k->values.at[target];
    return holds_f32(v) ? e : round_to(k, e, v->type.dtype);
}

/* ---- undeclared values ---- */

void compute_locals(Kern *k)
{
    uint32_t *n = ARENA_ARRAY(k->c->arena, k->k->values.n, uint32_t);
    for (uint32_t s = 0; s < k->k->statements.n; s++) {
        n[k->k->statements.at[s].target]++;
    }
    for (uint32_t s = 0; s < k->k->statements.n; s++) {
        CheckedStatement *one = &k->k->statements.at[s];
        const Value *v = &k->k->values.at[one->target];
        if (holds_f32(v) && v->wide_uses == 0 && n[one->target] == 1) {
            one->right = round_to(k, one->right, v->type.dtype);
        }
    }
}
