/* SPDX-License-Identifier: Apache-2.0 */
/* Extents as products. An extent counts as a sum of products of dims: those that a call gives, quotients, and sums inside
 * of products, which are not multiplied out. */
#include "op/factors.h"

#include "op/affine.h"

/* coef * dim * dim * ..., none of them a product. */
typedef struct Product {
    int64_t coef;
    uint32_t n;
    int32_t *dim;
} Product;

typedef struct Sum {
    uint32_t n; /* products of different dims, none with coefficient 0 */
    Product *at;
} Sum;

static bool is_product(const DimInfo *info)
{
    return info->n_factors > 0 && info->divisor <= 1;
}

/* 3*n */
static bool is_multiple(const DimInfo *info)
{
    return info->n_terms == 1 && info->base == 0 && info->divisor <= 1;
}

#define FACTORS_LIMIT                                                                          \
    256 /* what is made of more than that, or nested deeper, is not looked into */
#define FACTORS_DEPTH 32
#define TERMS_LIMIT   64

/* Puts the factors of d into p; without one it counts them. */
static void multiply(const DimTable *t, Dim d, uint32_t depth, uint32_t *count, Product *p)
{
    const DimInfo *info = d.sym < 0 ? NULL : &t->list.at[d.sym];
    bool inside = info != NULL && depth < FACTORS_DEPTH && *count <= FACTORS_LIMIT;
    if (info == NULL) {
        if (p != NULL) {
            p->coef = sat_mul(p->coef, d.n);
        }
    } else if (inside && is_multiple(info) && info->term[0].coef > 0) {
        if (p != NULL) {
            p->coef = sat_mul(p->coef, info->term[0].coef);
        }
        multiply(t, info->term[0].dim, depth + 1, count, p);
    } else if (inside && is_product(info)) {
        for (uint32_t f = 0; f < info->n_factors; f++) {
            multiply(t, info->factor[f], depth + 1, count, p);
        }
    } else {
        if (p != NULL) {
            p->dim[*count] = d.sym;
        }
        ++*count;
    }
}

static Product product_of(Arena *a, const DimTable *t, Dim d)
{
    Product p = {1, 0, NULL};
    uint32_t n = 0;
    multiply(t, d, 0, &n, NULL);
    p.dim = ARENA_ARRAY(a, (size_t)n + 1, int32_t);
    if (n > FACTORS_LIMIT) {
        p.dim[0] = d.sym;
        p.n = 1;
    } else {
        multiply(t, d, 0, &p.n, &p);
    }
    return p;
}

/* x / by, if that has all factors of by; false else */
static bool divide(Arena *a, const Product *x, const Product *by, Product *out)
{
    Product q = {0, 0, ARENA_ARRAY(a, (size_t)x->n + 1, int32_t)};
    uint32_t taken = 0;
    bool *gone = ARENA_ARRAY(a, (size_t)x->n + 1, bool);
    if (by->coef == 0 || x->coef % by->coef != 0) {
        return false;
    }
    q.coef = x->coef / by->coef;
    if (x->coef == 0) { /* no elements, in rows of any length */
        *out = q;
        return true;
    }
    for (uint32_t i = 0; i < by->n; i++) { /* the last one first: it is the fastest */
        for (uint32_t j = x->n; j-- > 0;) {
            if (!gone[j] && x->dim[j] == by->dim[i]) {
                gone[j] = true;
                taken++;
                break;
            }
        }
    }
    for (uint32_t j = 0; j < x->n; j++) {
        if (!gone[j]) {
            q.dim[q.n++] = x->dim[j];
        }
    }
    *out = q;
    return taken == by->n;
}

static bool same_dims(Arena *a, const Product *x, const Product *y)
{
    Product one = {1, y->n, y->dim}, of = {1, x->n, x->dim}, rest;
    return x->n == y->n && divide(a, &of, &one, &rest);
}

static Sum sum_of_product(Arena *a, const DimTable *t, Product p)
{
    const DimInfo *info = p.n == 1 ? &t->list.at[p.dim[0]] : NULL;
    Sum s = {0, NULL};
    int64_t base = 0;
    if (info == NULL || info->n_terms == 0 || info->divisor > 1 ||
        info->n_terms > TERMS_LIMIT || !i64_try_mul(p.coef, info->base, &base)) {
        s.at = arena_copy(a, &p, sizeof p);
        s.n = 1;
        return s;
    }
    s.at = ARENA_ARRAY(a, (size_t)info->n_terms + 1, Product);
    for (uint32_t i = 0; i < info->n_terms; i++) {
        Product q = product_of(a, t, info->term[i].dim);
        q.coef = info->term[i].coef < 0 ? -sat_mul(q.coef, -info->term[i].coef)
                                        : sat_mul(q.coef, info->term[i].coef);
        q.coef = sat_mul(q.coef, p.coef);
        s.at[s.n++] = q;
    }
    if (base != 0) {
        s.at[s.n++] = (Product){base, 0, NULL};
    }
    return s;
}

static bool sum_eq(Arena *a, const Sum *x, const Sum *y)
{
    bool same = x->n == y->n;
    for (uint32_t i = 0; same && i < x->n; i++) {
        bool found = false;
        for (uint32_t j = 0; j < y->n && !found; j++) {
            found = x->at[i].coef == y->at[j].coef && same_dims(a, &x->at[i], &y->at[j]);
        }
        same = found;
    }
    return same;
}

/* An extent, or what is left of one. */
typedef struct Part {
    Sum sum;
    bool single; /* it is a product, with sums as its factors */
    Product product;
    bool rest; /* it is no dim so far */
    Dim dim;
    uint32_t of_a, of_b;
} Part;

static Part part_of(Arena *a, const DimTable *t, Dim d)
{
    Part p = {.single = true, .product = product_of(a, t, d), .dim = d};
    p.sum = sum_of_product(a, t, p.product);
    return p;
}

/* x / by, of sums: 5*w + 10 by w + 2 is 5. */
static bool divide_sums(Arena *a, const Sum *x, const Sum *by, Product *out)
{
    bool found = false;
    for (uint32_t i = 0; i < x->n && x->n == by->n && !found; i++) {
        Sum all = {by->n, ARENA_ARRAY(a, (size_t)by->n + 1, Product)};
        if (!divide(a, &x->at[i], &by->at[0], out)) {
            continue;
        }
        for (uint32_t j = 0; j < by->n; j++) {
            Product p = by->at[j];
            p.dim = ARENA_ARRAY(a, (size_t)p.n + out->n + 1, int32_t);
            for (uint32_t d = 0; d < by->at[j].n + out->n; d++) {
                p.dim[d] = d < by->at[j].n ? by->at[j].dim[d] : out->dim[d - by->at[j].n];
            }
            p.n += out->n;
            bool fits = i64_try_mul(p.coef, out->coef, &p.coef);
            all.at[j] = fits ? p : (Product){0, 0, NULL};
        }
        found = sum_eq(a, x, &all);
    }
    return found;
}

/* x / by, where each product in x has all factors of `by`, or x is a multiple of a sum */
static bool part_divide(Arena *a, const DimTable *t, const Part *x, const Part *by, Part *out)
{
    Part q = {.rest = true, .single = x->single};
    if (!by->single) {
        return false;
    }
    if (x->single && divide(a, &x->product, &by->product, &q.product)) {
        q.sum = sum_of_product(a, t, q.product);
        *out = q;
        return true;
    }
    if (by->sum.n > 1 && divide_sums(a, &x->sum, &by->sum, &q.product)) {
        q.single = true;
        q.sum = sum_of_product(a, t, q.product);
        *out = q;
        return true;
    }
    q.single = false;
    q.sum = (Sum){x->sum.n, ARENA_ARRAY(a, (size_t)x->sum.n + 1, Product)};
    for (uint32_t i = 0; i < x->sum.n; i++) {
        if (!divide(a, &x->sum.at[i], &by->product, &q.sum.at[i])) {
            return false;
        }
    }
    *out = q;
    return x->sum.n > 0;
}

/* ---- as dims ---- */

typedef struct Table {
    Arena *scratch, *arena;
    SymTable *syms;
    DimTable *t;
    Span span;
} Table;

static Dim dim_of_product(const Table *t, const Product *p)
{
    Dim *factor = ARENA_ARRAY(t->scratch, (size_t)p->n + 1, Dim);
    for (uint32_t i = 0; i < p->n; i++) {
        factor[i] = dim_open(p->dim[i]);
    }
    return p->n == 1 ? factor[0]
                     : dims_product(t->scratch, t->arena, t->syms, t->t, t->span, p->n, factor);
}

static Dim dim_of_sum(const Table *t, const Sum *s)
{
    DimTerm *term = ARENA_ARRAY(t->scratch, (size_t)s->n + 1, DimTerm);
    int64_t base = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->at[i].n == 0) {
            base = sat_add(base, s->at[i].coef);
            continue;
        }
        DimTerm x = {dim_of_product(t, &s->at[i]), s->at[i].coef};
        uint32_t to = n++;
        for (; to > 0 && term[to - 1].dim.sym > x.dim.sym; to--) {
            term[to] = term[to - 1];
        }
        term[to] = x;
    }
    return dims_sum(t->scratch, t->arena, t->syms, t->t, t->span, base, n, term, 1);
}

static Dim dim_of_part(const Table *t, Part *p)
{
    Sum one = {1, &p->product};
    return !p->rest ? p->dim : dim_of_sum(t, p->single ? &one : &p->sum);
}

bool dims_divide(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span, Dim x,
                 Dim by, Dim *out)
{
    Table table = {scratch, arena, syms, t, span};
    Part whole = part_of(scratch, t, x), divisor = part_of(scratch, t, by), q;
    if (sum_eq(scratch, &whole.sum, &divisor.sum)) {
        *out = dim_fixed(1);
        return true;
    }
    if (!part_divide(scratch, t, &whole, &divisor, &q)) {
        return false;
    }
    *out = dim_of_part(&table, &q);
    return true;
}

Dim dims_common(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                uint32_t n, const Dim *product)
{
    Table table = {scratch, arena, syms, t, span};
    Product all = product_of(scratch, t, product[0]);
    for (uint32_t k = 1; k < n; k++) {
        Product next = product_of(scratch, t, product[k]);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < all.n; i++) {
            for (uint32_t j = 0; j < next.n; j++) {
                if (next.dim[j] == all.dim[i]) { /* each of them once */
                    next.dim[j] = next.dim[--next.n];
                    all.dim[kept++] = all.dim[i];
                    break;
                }
            }
        }
        all.n = kept;
    }
    return all.n == 0 ? dim_fixed(1) : dim_of_product(&table, &all);
}

/* ---- one shape as another ---- */

static bool is_one(const Part *p)
{
    return p->sum.n == 1 && p->sum.at[0].n == 0 && p->sum.at[0].coef == 1;
}

/* The parts of both shapes, the last first; `part` has room for as many as both have dimensions. */
static bool parts_of(Arena *a, const DimTable *t, uint32_t rank_a, const Dim *x,
                     uint32_t rank_b, const Dim *y, uint32_t *n, Part *part)
{
    Part p = {.rest = false}, q = {.rest = false}, rest = {.rest = false};
    bool have_p = false, have_q = false, empty = false;
    *n = 0;
    for (;;) {
        if (!have_p && rank_a > 0) {
            p = part_of(a, t, x[--rank_a]);
            have_p = true;
        }
        if (!have_q && rank_b > 0) {
            q = part_of(a, t, y[--rank_b]);
            have_q = true;
        }
        if (!have_p && !have_q) {
            return true;
        }
        if (!have_p || !have_q) {
            const Part *left = have_p ? &p : &q;
            if (!is_one(left) || *n == 0) {
                return empty; /* of no elements none lies elsewhere */
            }
            part[*n] = *left; /* dimensions of one position in front */
            part[*n].of_a = rank_a;
            part[(*n)++].of_b = rank_b;
            have_p = have_q = false;
            continue;
        }
        empty = empty || (dim_is(p.dim, 0) && !p.rest);
        bool same = sum_eq(a, &p.sum, &q.sum);
        bool split_p = !same && part_divide(a, t, &p, &q, &rest);
        bool split_q = !same && !split_p && part_divide(a, t, &q, &p, &rest);
        if (!same && !split_p && !split_q) {
            return false;
        }
        part[*n] = split_p || (same && p.rest) ? q : p;
        part[*n].of_a = rank_a;
        part[(*n)++].of_b = rank_b;
        have_p = split_p;
        have_q = split_q;
        p = split_p ? rest : p;
        q = split_q ? rest : q;
    }
}

bool dims_refine(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                 uint32_t rank_a, const Dim *a, uint32_t rank_b, const Dim *b, uint32_t *n,
                 Dim *out, uint32_t *of_a, uint32_t *of_b)
{
    Table table = {scratch, arena, syms, t, span};
    Part *part = ARENA_ARRAY(scratch, (size_t)rank_a + rank_b + 1, Part);
    uint32_t found = 0;
    if (!parts_of(scratch, t, rank_a, a, rank_b, b, &found, part) || found > *n) {
        return false;
    }
    for (uint32_t i = 0; i < found; i++) {
        Part *p = &part[found - 1 - i];
        out[i] = dim_of_part(&table, p);
        of_a[i] = p->of_a;
        of_b[i] = p->of_b;
    }
    *n = found;
    return true;
}

/* How many parts the two have in common when both have as many elements; UINT32_MAX: they have not. */
static uint32_t parts_count(Arena *scratch, const DimTable *t, uint32_t rank_a, const Dim *a,
                            uint32_t rank_b, const Dim *b)
{
    ArenaMark mark = arena_mark(scratch);
    Part *part = ARENA_ARRAY(scratch, (size_t)rank_a + rank_b + 1, Part);
    uint32_t n = 0;
    bool same = parts_of(scratch, t, rank_a, a, rank_b, b, &n, part);
    arena_reset(scratch, mark);
    return same ? n : UINT32_MAX;
}

bool dims_same_elements(Arena *scratch, const DimTable *t, uint32_t rank_a, const Dim *a,
                        uint32_t rank_b, const Dim *b)
{
    return parts_count(scratch, t, rank_a, a, rank_b, b) != UINT32_MAX;
}

bool dims_only_split(Arena *scratch, const DimTable *t, uint32_t rank, const Dim *shape,
                     uint32_t n, const Dim *split)
{
    return parts_count(scratch, t, rank, shape, n, split) == n;
}
