/* SPDX-License-Identifier: Apache-2.0 */
/* Positions with an index times an open dim, X[s, h*dh + d]. The dimension n*dh counts as two there, n and dh: what has the factor dh is
 * a position in the first, the rest one in the second, and each stays inside of its own. So the position is in rows, and no row goes on into the
 * next one. */
#include "front/check_positions.h"
#include "op/factors.h"

/* ---- products ---- */

static Affine product_var(Kern *k, VarRef label, Dim factor)
{
    uint32_t at = 0;
    for (; at < k->products.n; at++) {
        const IndexProduct *p = &k->products.at[at];
        if (p->label == label && dim_eq(p->factor, factor)) {
            break;
        }
    }
    if (at == k->products.n) {
        vec_push(k->c->arena, &k->products, ((IndexProduct){label, factor}));
    }
    return affine_var(k->c->arena, PRODUCT_VAR + at);
}

static bool has_index(Affine x)
{
    return x.n > 0 && !affine_is_dim(x.term[0].var);
}

/* Open dims as a number times one of them. */
static Dim one_dim(Kern *k, Span at, Affine x, int64_t *coef)
{
    *coef = 1;
    if (x.n == 1 && x.base == 0) {
        *coef = x.term[0].coef;
        return dim_open(affine_sym(x.term[0].var));
    }
    return extent_of_sum(k, at, x, 1);
}

static Affine times_dim(Kern *k, Span at, VarRef v, Dim by)
{
    Arena *a = k->c->arena;
    SymTable *syms = &k->c->ctx->syms;
    if (!affine_is_dim(v) && !is_product_var(v)) {
        return product_var(k, v, by);
    }
    const IndexProduct *p = affine_is_dim(v) ? NULL : &k->products.at[v - PRODUCT_VAR];
    Dim factor[2] = {p != NULL ? p->factor : dim_open(affine_sym(v)), by};
    VarRef label = p != NULL ? p->label : 0;
    Dim product = dims_product(a, a, syms, &k->k->dims, at, 2, factor);
    return p != NULL ? product_var(k, label, product) : affine_extent(a, product);
}

static bool refuse(Kern *k, Span at, const char *what)
{
    Diagnostic *d = diag_error(&k->c->ctx->diags, E_SYNTAX, at, "%s", what);
    diag_help(d,
              "a position is a sum of indices, dims and whole numbers: i, 2*i + d, h*dh + d");
    return false;
}

bool position_times(Kern *k, Span at, Affine *x, Affine y)
{
    Arena *a = k->c->arena;
    Affine scale = has_index(y) || x->n == 0 ? *x : y,
           other = has_index(y) || x->n == 0 ? y : *x;
    Affine product = affine_const(0);
    if (has_index(scale)) {
        return refuse(k, at, "a product of indices is no position");
    }
    if (scale.n == 0) {
        if (!affine_try_add(a, product, scale.base, other, &product)) {
            return refuse(k, at, "this position does not fit 64 bits");
        }
        *x = product;
        return true;
    }
    int64_t coef = 1;
    Dim by = one_dim(k, at, scale, &coef);
    bool fits = affine_try_add(a, product, other.base, affine_extent(a, by), &product);
    for (uint32_t i = 0; i < other.n && fits; i++) {
        fits = affine_try_add(a, product, other.term[i].coef,
                              times_dim(k, at, other.term[i].var, by), &product);
    }
    Affine all = affine_const(0);
    if (!fits || !affine_try_add(a, all, coef, product, &all)) {
        return refuse(k, at, "this position does not fit 64 bits");
    }
    *x = all;
    return true;
}

/* ---- positions in parts of a dimension ---- */

/* The fastest part comes first. */
typedef struct Parts {
    uint32_t n;
    Affine at[RANK_LIMIT];
    Dim dim[RANK_LIMIT];
} Parts;

static bool divides(Kern *k, Span at, Dim x, Dim by, Dim *out)
{
    Arena *a = k->c->arena;
    return dims_divide(a, a, &k->c->ctx->syms, &k->k->dims, at, x, by, out);
}

/* The common factor of what indices are multiplied by; a number: there is no such product, or (*ok is false) none. */
static Dim common_step(Kern *k, Span at, Affine x, bool *ok)
{
    Arena *a = k->c->arena;
    Dim *factor = ARENA_ARRAY(a, x.n, Dim);
    uint32_t n = 0;
    for (uint32_t i = 0; i < x.n; i++) {
        if (is_product_var(x.term[i].var)) {
            factor[n++] = k->products.at[x.term[i].var - PRODUCT_VAR].factor;
        }
    }
    *ok = true;
    if (n == 0) {
        return dim_fixed(1);
    }
    Dim step = dims_common(a, a, &k->c->ctx->syms, &k->k->dims, at, n, factor);
    if (step.sym < 0) {
        Diagnostic *d = diag_unsupported(
            &k->c->ctx->diags, E_NOT_YET, at,
            "an index times %s beside one times %s is not compiled by this version",
            dim_text(a, &k->k->dims, factor[0]), dim_text(a, &k->k->dims, factor[n - 1]));
        diag_help(
            d, "steps are multiples of each other: (i*n + j)*m + k; or make one of these dims "
               "a number, by dim or -D");
        *ok = false;
    }
    return step;
}

/* The number that all products of an index have as a factor. */
static int64_t common_number(Affine x)
{
    int64_t all = 0;
    for (uint32_t i = 0; i < x.n; i++) {
        if (is_product_var(x.term[i].var)) {
            all = gcd(all, x.term[i].coef);
        }
    }
    return all;
}

/* What rows of the dimension are long: the step, times the number if they are as long as that. */
static bool row_of(Kern *k, Affine x, Dim extent, Span at, Dim *step, int64_t *number,
                   Dim *rows)
{
    *number = common_number(x);
    if (*number > 1) {
        const AffineTerm term = {affine_dim(step->sym), *number};
        Dim longer = extent_of_sum(k, at, (Affine){0, 1, &term}, 1);
        if (divides(k, at, extent, longer, rows)) {
            *step = longer;
            return true;
        }
    }
    *number = 1;
    return divides(k, at, extent, *step, rows);
}

/* x = step * number * *quotient + *rest, where the row is step * number long */
static bool divide(Kern *k, Span at, Affine x, Dim step, int64_t number, Dim row,
                   Affine *quotient, Affine *rest)
{
    Arena *a = k->c->arena;
    bool fits = true, below = x.base < 0;
    *quotient = affine_const(0);
    *rest = affine_const(x.base);
    for (uint32_t i = 0; i < x.n && fits; i++) {
        const AffineTerm t = x.term[i];
        const IndexProduct *p =
            is_product_var(t.var) ? &k->products.at[t.var - PRODUCT_VAR] : NULL;
        VarRef label = p != NULL ? p->label : 0;
        bool dim = affine_is_dim(t.var);
        Dim q = dim_fixed(1);
        bool whole =
            (p != NULL || dim) &&
            divides(k, at, p != NULL ? p->factor : dim_open(affine_sym(t.var)), step, &q);
        Affine own = {0, 1, &t};
        if (whole && t.coef % number != 0) {
            whole = false; /* a dim: products are multiples */
        }
        if (!whole) {
            fits = affine_try_add(a, *rest, 1, own, rest);
            below = below || t.coef < 0;
            continue;
        }
        int64_t coef = t.coef / number;
        Affine of = dim         ? affine_extent(a, q)
                    : q.sym < 0 ? affine_var(a, label)
                                : product_var(k, label, q);
        fits = (dim || q.sym >= 0 || i64_try_mul(coef, q.n, &coef)) &&
               affine_try_add(a, *quotient, coef, of, quotient);
    }
    if (fits &&
        below) { /* backwards within a row: its last position is that of the row before plus step */
        quotient->base--;
        fits = affine_try_add(a, *rest, 1, affine_extent(a, row), rest);
    }
    return fits || refuse(k, at, "this position does not fit 64 bits");
}

static bool split_position(Kern *k, uint32_t value, uint32_t axis, Affine x, Span at,
                           Parts *parts)
{
    Arena *a = k->c->arena;
    Dim extent = k->k->values.at[value].type.dims[axis];
    for (parts->n = 0; parts->n < RANK_LIMIT;) {
        bool ok = true;
        Dim step = common_step(k, at, x, &ok), rows;
        Affine quotient, rest;
        if (step.sym < 0) {
            parts->at[parts->n] = x;
            parts->dim[parts->n++] = extent;
            return ok;
        }
        Dim row = step;
        int64_t number = 1;
        if (!row_of(k, x, extent, at, &row, &number, &rows)) {
            const Value *v = &k->k->values.at[value];
            const char *by = dim_text(a, &k->k->dims, step);
            Diagnostic *d = diag_error(&k->c->ctx->diags, E_EXTENT_MISMATCH, at,
                                       "%s is a factor of this position, and not of the extent "
                                       "of dimension %u of '%s': %s",
                                       by, axis, v->name != NULL ? v->name->text : "the einsum",
                                       dim_text(a, &k->k->dims, v->type.dims[axis]));
            note_shape(k, d, value);
            diag_help(d, "write the extent as a product: f64[m*n], and x[i*n + j]");
            return false;
        }
        if (!divide(k, at, x, step, number, row, &quotient, &rest)) {
            return false;
        }
        parts->at[parts->n] = rest;
        parts->dim[parts->n++] = row;
        x = quotient;
        extent = rows;
    }
    return true;
}

static bool is_split(Affine x)
{
    bool any = false;
    for (uint32_t i = 0; i < x.n && !any; i++) {
        any = is_product_var(x.term[i].var);
    }
    return any;
}

void position_note(Kern *k, uint32_t value, uint32_t axis, Affine x, Span span)
{
    if (!is_split(x)) {
        LateRead r = {.value = value,
                      .axis = axis,
                      .at = x,
                      .span = span,
                      .extent = k->k->values.at[value].type.dims[axis]};
        vec_push(k->c->arena, &k->s.late, r);
    }
}

bool positions_split(Kern *k, uint32_t value, const Span *span, uint32_t *rank,
                     const Affine **at, const SplitShape **split)
{
    Arena *a = k->c->arena;
    bool any = false, ok = true;
    for (uint32_t d = 0; d < *rank; d++) {
        any = any || is_split((*at)[d]);
    }
    *split = NULL;
    if (!any) {
        return true;
    }
    Affine *position = ARENA_ARRAY(a, RANK_LIMIT, Affine);
    Dim *dims = ARENA_ARRAY(a, RANK_LIMIT, Dim);
    uint32_t *axis = ARENA_ARRAY(a, RANK_LIMIT, uint32_t);
    Parts *parts = ARENA_NEW(a, Parts);
    uint32_t n = 0;
    for (uint32_t d = 0; d < *rank; d++) {
        if (!split_position(k, value, d, (*at)[d], span[d], parts)) {
            ok = false;
            continue;
        }
        if (n + parts->n > RANK_LIMIT) {
            return diag_refuse_limit(&k->c->ctx->diags, E_LIMIT_SIZE, span[d],
                                     "a tensor has at most %d dimensions", RANK_LIMIT);
        }
        for (uint32_t p = parts->n; p-- > 0; n++) {
            position[n] = parts->at[p];
            dims[n] = parts->dim[p];
            axis[n] = d;
            if (parts->n > 1) {
                LateRead r = {.value = value,
                              .axis = d,
                              .at = position[n],
                              .span = span[d],
                              .extent = dims[n],
                              .part = true,
                              .slower = parts->n - 1 - p};
                vec_push(a, &k->s.late, r);
            }
        }
    }
    SplitShape *shape = ARENA_NEW(a, SplitShape);
    *shape = (SplitShape){n, dims, axis};
    *split = shape;
    *at = position;
    *rank = n;
    return ok;
}
