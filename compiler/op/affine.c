/* SPDX-License-Identifier: Apache-2.0 */
/* Affine arithmetic. */
#include "op/affine.h"

bool i64_try_add(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
        return false;
    }
    *out = a + b;
    return true;
}

bool i64_try_mul(int64_t a, int64_t b, int64_t *out)
{
    if (a == 0 || b == 0) {
        *out = 0;
        return true;
    }
    bool out_of_range;
    if (a > 0) {
        out_of_range = b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a;
    } else {
        out_of_range = b > 0 ? a < INT64_MIN / b : b < INT64_MAX / a;
    }
    if (out_of_range) {
        return false;
    }
    *out = a * b;
    return true;
}

Affine affine_const(int64_t base)
{
    return (Affine){base, 0, NULL};
}

Affine affine_var(Arena *a, VarRef v)
{
    AffineTerm *term = ARENA_NEW(a, AffineTerm);
    *term = (AffineTerm){v, 1};
    return (Affine){0, 1, term};
}

Affine affine_extent(Arena *a, Dim d)
{
    return d.sym < 0 ? affine_const(d.n) : affine_var(a, affine_dim(d.sym));
}

Affine affine_copy(Arena *a, Affine x)
{
    x.term = x.n == 0 ? NULL : arena_copy(a, x.term, x.n * sizeof *x.term);
    return x;
}

/* to += scale*from */
static bool add_scaled(int64_t *to, int64_t scale, int64_t from)
{
    int64_t product;
    return i64_try_mul(scale, from, &product) && i64_try_add(*to, product, to);
}

bool affine_try_add(Arena *a, Affine x, int64_t scale, Affine y, Affine *out)
{
    AffineTerm *term = x.n + y.n == 0 ? NULL : ARENA_ARRAY(a, (size_t)x.n + y.n, AffineTerm);
    uint32_t n = 0;
    uint32_t i = 0;
    uint32_t j = 0;
    int64_t base = x.base;
    if (!add_scaled(&base, scale, y.base)) {
        return false;
    }
    while (i < x.n || j < y.n) {
        VarRef from_x = i < x.n ? x.term[i].var : UINT32_MAX;
        VarRef from_y = j < y.n ? y.term[j].var : UINT32_MAX;
        AffineTerm t = {from_x < from_y ? from_x : from_y, 0};
        if (from_x == t.var) {
            t.coef = x.term[i++].coef;
        }
        if (from_y == t.var && !add_scaled(&t.coef, scale, y.term[j++].coef)) {
            return false;
        }
        if (t.coef != 0) {
            term[n++] = t;
        }
    }
    *out = (Affine){base, n, n == 0 ? NULL : term};
    return true;
}

Affine affine_add(Arena *a, Affine x, int64_t scale, Affine y)
{
    Affine out = {0};
    CHECK(affine_try_add(a, x, scale, y, &out));
    return out;
}

int64_t affine_at(Affine x, const int64_t *env)
{
    int64_t at = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        at = sat_add(at, sat_mul(x.term[i].coef, env[x.term[i].var]));
    }
    return at;
}

int64_t affine_coef(Affine x, VarRef v)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.term[i].var == v) {
            return x.term[i].coef;
        }
    }
    return 0;
}

Affine affine_subst(Arena *a, Affine x, VarRef v, Affine by)
{
    int64_t coef = affine_coef(x, v);
    if (coef == 0) {
        return x;
    }
    const AffineTerm term = {v, coef};
    Affine without = affine_add(a, x, -1, (Affine){0, 1, &term});
    return affine_add(a, without, coef, by);
}

Affine affine_rename(Arena *a, Affine x, const VarRef *to)
{
    Affine out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm term = x.term[i];
        term.var = affine_is_dim(term.var) ? term.var : to[term.var];
        out = affine_add(a, out, 1, (Affine){0, 1, &term});
    }
    return out;
}

uint32_t affine_steps(Affine x, AffineTerm *term)
{
    uint32_t n = 0;
    for (; n < x.n && !affine_is_dim(x.term[n].var); n++) {
        uint32_t to = n;
        if (x.term[n].coef < 0) {
            return 0;
        }
        for (; to > 0 && term[to - 1].coef >= x.term[n].coef; to--) {
            term[to] = term[to - 1];
        }
        term[to] = x.term[n];
    }
    return n;
}

Dim affine_to_dim(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                  Affine x, int64_t divisor)
{
    DimTerm *term = ARENA_ARRAY(arena, x.n, DimTerm);
    for (uint32_t i = 0; i < x.n; i++) {
        term[i] = (DimTerm){dim_open(affine_sym(x.term[i].var)), x.term[i].coef};
    }
    return dims_sum(scratch, arena, syms, t, span, x.base, x.n, term, divisor);
}

bool affine_is_canonical(Affine x, uint32_t n_vars, uint32_t n_dims)
{
    bool fine = true;
    for (uint32_t i = 0; fine && i < x.n; i++) {
        VarRef v = x.term[i].var;
        fine = v < (affine_is_dim(v) ? affine_dim((int32_t)n_dims) : n_vars) &&
               x.term[i].coef != 0 && (i == 0 || v > x.term[i - 1].var);
    }
    return fine;
}

bool affine_eq(Affine x, Affine y)
{
    if (x.base != y.base || x.n != y.n) {
        return false;
    }
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.term[i].var != y.term[i].var || x.term[i].coef != y.term[i].coef) {
            return false;
        }
    }
    return true;
}

bool affine_uses(Affine x, VarRef v)
{
    return affine_coef(x, v) != 0;
}
