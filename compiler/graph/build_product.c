/* SPDX-License-Identifier: Apache-2.0 */
/* Chains and reductions. A chain is computed from left to right, one MAP node per link. A sum over a product is taken
 * apart first: tensors, and whatever else has summed indices, become the operands of one einsum (in which the order of
 * work is for others to choose); everything that lacks them is applied to its result, scalars multiplied among
 * themselves before. Only where a factor that is no tensor meets one that has all the indices, nothing would be
 * contracted: that is elementwise work and a reduction. */
#include "graph/build_parts.h"

/* ---- chains ---- */

static Op link_op(const CheckedExpr *e, uint32_t k)
{
    Op op = (Op)e->link[k];
    return e->dtype == DTYPE_BOOL && op == OP_MUL ? OP_AND : op;
}

static bool is_scalar_param(const Build *b, const CheckedExpr *e)
{
    return e->kind == CHECKED_READ && e->rank == 0 &&
           b->k->values.at[e->read].kind == VALUE_PARAM;
}

/* `beta * C[i,j]`: one factor is what the value being assigned held until now, all others are
 * scalars, and one at least is a parameter. Gives that factor, or UINT32_MAX. */
static uint32_t scaled_factor(const Build *b, const CheckedExpr *e)
{
    uint32_t found = UINT32_MAX;
    bool param = false;
    for (uint32_t k = 0; k < e->n; k++) {
        const CheckedExpr *f = e->arg[k];
        if (k > 0 && e->link[k] != OP_MUL) {
            return UINT32_MAX;
        }
        if (f->kind == CHECKED_READ && f->read == b->s->target) {
            if (found != UINT32_MAX) {
                return UINT32_MAX;
            }
            found = k;
        } else if (f->kind == CHECKED_CONST || f->kind == CHECKED_EXTENT ||
                   is_scalar_param(b, f)) {
            param = param || f->kind == CHECKED_READ;
        } else {
            return UINT32_MAX;
        }
    }
    return param ? found : UINT32_MAX;
}

/* x link y, where x may be nothing yet. */
static View join(Build *b, Op op, DType t, const View *x, View y, Span span, const Root *root)
{
    if (x == NULL) {
        return y;
    }
    View two[2] = {*x, y};
    return map_add(b, op, t, two, 2, span, root);
}

static View build_scale(Build *b, const CheckedExpr *e, uint32_t at, const Root *root)
{
    View scalar = {0};
    bool some = false;
    for (uint32_t k = 0; k < e->n; k++) {
        if (k != at) {
            View f = expr_build(b, e->arg[k], e->dtype, NULL);
            scalar = join(b, OP_MUL, e->dtype, some ? &scalar : NULL, f, e->span, NULL);
            some = true;
        }
    }
    View two[2] = {scalar, expr_build(b, e->arg[at], e->dtype, NULL)};
    return map_add(b, OP_SCALE, e->dtype, two, 2, e->span, root);
}

View chain_build(Build *b, const CheckedExpr *e, const Root *root)
{
    uint32_t scaled = e->op == OP_MUL ? scaled_factor(b, e) : UINT32_MAX;
    if (scaled != UINT32_MAX) {
        return build_scale(b, e, scaled, root);
    }
    View v = expr_build(b, e->arg[0], e->dtype, NULL);
    for (uint32_t k = 1; k < e->n; k++) {
        View f = expr_build(b, e->arg[k], e->dtype, NULL);
        v = join(b, link_op(e, k), e->dtype, &v, f, e->span, k + 1 == e->n ? root : NULL);
    }
    return v;
}

/* ---- sums of products ---- */

typedef struct Rest {
    const CheckedExpr *e;
    bool divides;
} Rest;

/* A product taken apart. */
typedef struct Product {
    VEC(const CheckedExpr *)
    tensors;           /* reads of rank 1 or more, and other factors with summed indices */
    VEC(Rest) scalars; /* rank 0, multiplied */
    VEC(Rest) rest;    /* everything else, in order */
    bool negative;
    bool mixed;  /* not all of `tensors` are reads */
    bool opaque; /* a divisor has a summed index */
} Product;

static bool mentions_summed(const Build *b, const CheckedExpr *e)
{
    if (e->kind == CHECKED_READ || e->kind == CHECKED_INDEX) {
        for (uint32_t a = 0; a < e->rank; a++) {
            if (e->label[a] >= 0 && b->stamp[e->label[a]] == b->serial) {
                return true;
            }
        }
    }
    for (uint32_t a = 0; a < e->n; a++) {
        if (mentions_summed(b, e->arg[a])) {
            return true;
        }
    }
    return false;
}

static bool is_rank0(const CheckedExpr *e)
{
    return e->kind == CHECKED_CONST || e->kind == CHECKED_EXTENT ||
           (e->kind == CHECKED_READ && e->rank == 0);
}

static bool has_division(const CheckedExpr *e)
{
    for (uint32_t k = 1; k < e->n; k++) {
        if (e->link[k] == OP_DIV) {
            return true;
        }
    }
    return false;
}

/* Summed labels carry the stamp. `top`: nothing but minus signs around; there a divisor of a float may be taken out of
 * the sum. */
static void take_apart(Build *b, Product *p, const CheckedExpr *e, bool top)
{
    bool exact = dtype_is_exact(e->dtype);
    bool product = e->kind == CHECKED_CHAIN &&
                   (e->op == OP_MUL || e->op == OP_DIV || (e->op == OP_AND)) &&
                   (!has_division(e) || (top && !exact));
    if (e->kind == CHECKED_MAP && e->op == OP_NEG) {
        p->negative = !p->negative;
        take_apart(b, p, e->arg[0], top);
    } else if (product) {
        for (uint32_t k = 0; k < e->n; k++) {
            if (k > 0 && e->link[k] == OP_DIV) {
                p->opaque = p->opaque || mentions_summed(b, e->arg[k]);
                vec_push(b->arena, &p->rest, ((Rest){e->arg[k], true}));
            } else {
                take_apart(b, p, e->arg[k], false);
            }
        }
    } else if (e->kind == CHECKED_READ && e->rank > 0) {
        vec_push(b->arena, &p->tensors, e);
    } else if (is_rank0(e)) {
        vec_push(b->arena, &p->scalars, ((Rest){e, false}));
    } else if (mentions_summed(b, e)) {
        p->mixed = true;
        vec_push(b->arena, &p->tensors, e);
    } else {
        vec_push(b->arena, &p->rest, ((Rest){e, false}));
    }
}

/* The scalars among themselves, then times `v`. */
static View apply_scalars(Build *b, const Product *p, DType t, View v, Span span,
                          const Root *root)
{
    Op mul = t == DTYPE_BOOL ? OP_AND : OP_MUL;
    View s = expr_build(b, p->scalars.at[0].e, t, NULL);
    for (uint32_t k = 1; k < p->scalars.n; k++) {
        s = join(b, mul, t, &s, expr_build(b, p->scalars.at[k].e, t, NULL), span, NULL);
    }
    if (p->negative) {
        s = map_add(b, OP_NEG, t, &s, 1, span, NULL);
    }
    View two[2] = {s, v};
    return map_add(b, mul, t, two, 2, span, root);
}

static View apply_rest(Build *b, const Product *p, DType t, View v, Span span, const Root *root)
{
    uint32_t left = p->rest.n + (p->scalars.n > 0 ? 1 : 0) + (p->negative && p->scalars.n == 0);
    if (p->scalars.n > 0) {
        left--;
        v = apply_scalars(b, p, t, v, span, left == 0 ? root : NULL);
    } else if (p->negative) {
        left--;
        v = map_add(b, OP_NEG, t, &v, 1, span, left == 0 ? root : NULL);
    }
    for (uint32_t k = 0; k < p->rest.n; k++) {
        Op op = p->rest.at[k].divides ? OP_DIV : t == DTYPE_BOOL ? OP_AND : OP_MUL;
        left--;
        v = join(b, op, t, &v, expr_build(b, p->rest.at[k].e, t, NULL), span,
                 left == 0 ? root : NULL);
    }
    return v;
}

static uint32_t count_labels(Build *b, const View *v, uint32_t n)
{
    uint32_t count = 0;
    b->serial++;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t a = 0; a < v[k].rank; a++) {
            int32_t l = v[k].index[a].label;
            if (l >= 0 && b->stamp[l] != b->serial) {
                b->stamp[l] = b->serial;
                count++;
            }
        }
    }
    return count;
}

/* Does one factor alone have all the indices? Then this is no contraction, but elementwise work with a sum after it. */
static bool is_elementwise(Build *b, const View *v, uint32_t n)
{
    uint32_t all = count_labels(b, v, n);
    for (uint32_t k = 0; k < n; k++) {
        if (count_labels(b, &v[k], 1) == all) {
            return true;
        }
    }
    return false;
}

static View *build_factors(Build *b, const Product *p)
{
    View *v = ARENA_ARRAY(b->arena, p->tensors.n, View);
    for (uint32_t k = 0; k < p->tensors.n; k++) {
        v[k] = operand_build(b, p->tensors.at[k]);
    }
    return v;
}

static View contract(Build *b, const CheckedExpr *e, const Product *p, const View *v,
                     const Root *root)
{
    uint32_t n = p->tensors.n;
    OutLabels out = out_labels(b, v, n, e->label, e->rank);
    bool last = p->rest.n == 0 && p->scalars.n == 0 && !p->negative;
    Op op = n > 1 ? OP_EINSUM : e->op;
    View r = node_add(b, op, e->dtype, v, n, &out, e->span, last ? root : NULL);
    return apply_rest(b, p, e->dtype, r, e->span, root);
}

/* ---- indices that what is folded does not have ---- */

static View number_view(Build *b, DType t, int64_t n, Span span)
{
    return build_view(b, graph_const(b->g, number_cast(number_int(DTYPE_I64, n), t), span),
                      NULL, 0);
}

static View extent_view(Build *b, Dim d, DType t, Span span)
{
    return d.sym < 0 ? number_view(b, t, d.n, span)
                     : build_view(b, graph_extent(b->g, d.sym, t, span), NULL, 0);
}

/* `body` where the index has a position, which is everywhere: so it has the index. */
static View along(Build *b, const CheckedExpr *e, View body, int32_t label)
{
    View index = build_view(b, graph_index(b->g, b->s->label[label].extent, DTYPE_I64, e->span),
                            &label, 1);
    View two[2] = {index, number_view(b, DTYPE_I64, 0, e->span)};
    View three[3] = {map_add(b, OP_GE, DTYPE_BOOL, two, 2, e->span, NULL), body, body};
    return map_add(b, OP_SELECT, body.dtype, three, 3, e->span, NULL);
}

/* What a fold over an index that `folded` lacks makes of it: of a sum a multiple; and what a fold of nothing gives where the
 * index has no positions. */
static View repeat(Build *b, const CheckedExpr *e, View folded, int32_t label, const Root *root)
{
    Dim extent = b->s->label[label].extent;
    DType t = folded.dtype;
    if (e->op == OP_SUM && t != DTYPE_BOOL) {
        View two[2] = {folded, extent_view(b, extent, t, e->span)};
        folded = map_add(b, OP_MUL, t, two, 2, e->span, extent.sym < 0 ? root : NULL);
    }
    if (extent.sym < 0 && extent.n > 0) {
        return folded;
    }
    View none = build_view(b, graph_const(b->g, op_neutral(e->op, t), e->span), NULL, 0);
    View two[2] = {extent_view(b, extent, DTYPE_I64, e->span),
                   number_view(b, DTYPE_I64, 0, e->span)};
    View three[3] = {map_add(b, OP_GT, DTYPE_BOOL, two, 2, e->span, NULL), folded, none};
    return map_add(b, OP_SELECT, t, three, 3, e->span, root);
}

/* The fold's indices that none of the operands has. */
static uint32_t find_missing(Build *b, const CheckedExpr *e, const View *v, uint32_t n,
                             int32_t *missing)
{
    uint32_t count = 0;
    (void)count_labels(b, v, n);
    for (uint32_t d = 0; d < e->rank; d++) {
        if (b->stamp[e->label[d]] != b->serial) {
            missing[count++] = e->label[d];
        }
    }
    return count;
}

static View repeat_all(Build *b, const CheckedExpr *e, View folded, const int32_t *missing,
                       uint32_t n, const Root *root)
{
    for (uint32_t k = 0; k < n; k++) {
        folded = repeat(b, e, folded, missing[k], k + 1 == n ? root : NULL);
    }
    return folded;
}

View reduce_build(Build *b, const CheckedExpr *e, const Root *root)
{
    int32_t *missing = ARENA_ARRAY(b->arena, (size_t)e->rank + 1, int32_t);
    const CheckedExpr *body = e->arg[0];
    bool products = body->dtype == DTYPE_BOOL ? e->op == OP_ANY : e->op == OP_SUM;
    if (products) {
        Product p = {.negative = false};
        b->serial++;
        for (uint32_t d = 0; d < e->rank; d++) {
            b->stamp[e->label[d]] = b->serial;
        }
        take_apart(b, &p, body, true);
        View *v = p.opaque || p.tensors.n == 0 ? NULL : build_factors(b, &p);
        if (v != NULL && !(p.mixed && is_elementwise(b, v, p.tensors.n))) {
            uint32_t n = find_missing(b, e, v, p.tensors.n, missing);
            View sum = contract(b, e, &p, v, n == 0 ? root : NULL);
            return repeat_all(b, e, sum, missing, n, root);
        }
    }
    View v = operand_build(b, body);
    uint32_t n = find_missing(b, e, &v, 1, missing);
    for (uint32_t k = 0; k < n && e->op == OP_PROD; k++) {
        v = along(b, e, v, missing[k]);
    }
    n = e->op == OP_PROD ? 0 : n;
    if (n == e->rank) { /* nothing is left to fold */
        View one =
            v.dtype == e->dtype ? v : map_add(b, OP_CAST, e->dtype, &v, 1, e->span, NULL);
        return repeat_all(b, e, one, missing, n, root);
    }
    OutLabels out = out_labels(b, &v, 1, e->label, e->rank);
    View folded = node_add(b, e->op, e->dtype, &v, 1, &out, e->span, n == 0 ? root : NULL);
    return repeat_all(b, e, folded, missing, n, root);
}
