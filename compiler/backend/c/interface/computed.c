/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that are computed from open dims: the variables that functions have for them, and their table, from which the
 * functions that all kernels share (shared.c) compute and check them before anything runs. */
#include "backend/c/interface/entry.h"

ArgShape arg_shape(const Kernel *k, uint32_t arg)
{
    const Arg *a = &k->args.at[arg];
    const Buffer *b = &k->bufs.at[a->buf];
    return a->shape != NULL ? (ArgShape){a->rank, a->shape} : (ArgShape){b->rank, b->extent};
}

/* ---- variables ---- */

/* (2 * n + m - 1) / 3, of an extent that the entry has found to be no less than 0 */
static const char *sum_text(const Emitter *e, const DimInfo *info)
{
    Text t;
    text_init(&t, e->w.arena);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < info->n_terms; i++) {
            int64_t coef = info->term[i].coef;
            if ((coef < 0) != (pass == 1)) {
                continue;
            }
            text_put(&t, t.n == 0 ? (coef < 0 ? "-" : "") : coef < 0 ? " - " : " + ");
            if (coef != 1 && coef != -1) {
                text_printf(&t, "%lld * ", (long long)(coef < 0 ? -coef : coef));
            }
            text_put(&t, c_dim_text(&e->w, info->term[i].dim));
        }
        if (pass == 0 && info->base > 0) {
            text_printf(&t, t.n == 0 ? "%lld" : " + %lld", (long long)info->base);
        }
    }
    if (info->base < 0) {
        text_printf(&t, " - %lld", (long long)-info->base);
    }
    return info->divisor > 1
               ? str_format(e->w.arena, "(%s) / %lld", t.at, (long long)info->divisor)
               : t.at;
}

void dims_computed_emit(Emitter *e, const char *text)
{
    const Kernel *k = e->w.k;
    bool *needed = ARENA_ARRAY(e->w.arena, (size_t)k->dims.list.n + 1, bool);
    for (uint32_t d = k->dims.list.n;
         d-- > dims_given(&k->dims);) { /* and what those are made of */
        const DimInfo *info = &k->dims.list.at[d];
        needed[d] = needed[d] || mentions(text, e->w.dim[d]);
        for (uint32_t f = 0; needed[d] && f < info->n_factors; f++) {
            needed[info->factor[f].sym < 0 ? k->dims.list.n : (uint32_t)info->factor[f].sym] =
                true;
        }
        for (uint32_t i = 0; needed[d] && i < info->n_terms; i++) {
            needed[info->term[i].dim.sym] = true;
        }
    }
    for (uint32_t d = dims_given(&k->dims); d < k->dims.list.n; d++) {
        const DimInfo *info = &k->dims.list.at[d];
        if (!needed[d]) {
            continue;
        }
        if (info->n_terms > 0) {
            line_printf(&e->w, "const int64_t %s = %s;", e->w.dim[d], sum_text(e, info));
            continue;
        }
        const char *value = c_dim_text(&e->w, info->factor[0]);
        for (uint32_t f = 1; f < info->n_factors; f++) {
            value = str_format(e->w.arena, "%s(%s, %s)", help_fixed(e->w.help, "tdsl_product"),
                               value, c_dim_text(&e->w, info->factor[f]));
        }
        if (info->divisor > 1) {
            value =
                str_format(e->w.arena, "%s(0, %s, %lld)", help_fixed(e->w.help, "tdsl_steps"),
                           value, (long long)info->divisor);
        }
        line_printf(&e->w, "const int64_t %s = %s;", e->w.dim[d], value);
    }
}

/* ---- the table ---- */

/* Which dims the table computes: every sum, as one below 0 is refused wherever it is used; products in shapes of arguments,
 * and all where a plan for ranks may have them in shapes of values; and what these are made of. */
static bool *computed_find(Arena *arena, const Kernel *k)
{
    bool *in = ARENA_ARRAY(arena, (size_t)k->dims.list.n + 1, bool);
    for (uint32_t i = 0; i < k->args.n; i++) {
        ArgShape s = arg_shape(k, i);
        for (uint32_t d = 0; d < s.rank; d++) {
            in[s.extent[d].sym < 0 ? k->dims.list.n : (uint32_t)s.extent[d].sym] = true;
        }
    }
    for (uint32_t d = k->dims.list.n; d-- > 0;) {
        const DimInfo *info = &k->dims.list.at[d];
        bool plan = k->ranks.n > 0 && info->n_factors > 0 && info->divisor <= 1;
        in[d] = ((in[d] || plan) && !dim_is_given(info)) || info->n_terms > 0;
        for (uint32_t f = 0; in[d] && f < info->n_factors; f++) {
            in[info->factor[f].sym < 0 ? k->dims.list.n : (uint32_t)info->factor[f].sym] = true;
        }
        for (uint32_t i = 0; in[d] && i < info->n_terms; i++) {
            in[info->term[i].dim.sym] = true;
        }
    }
    return in;
}

uint32_t computed_count(Arena *scratch, const Kernel *k)
{
    ArenaMark mark = arena_mark(scratch);
    const bool *in = computed_find(scratch, k);
    uint32_t n = 0;
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        n += in[d] ? 1 : 0;
    }
    arena_reset(scratch, mark);
    return n;
}

void computed_begin(Emitter *e, bool file_computes)
{
    const Kernel *k = e->w.k;
    const bool *in = computed_find(e->w.arena, k);
    uint32_t given = dims_given(&k->dims);
    e->file_computes = file_computes;
    e->number = ARENA_ARRAY(e->w.arena, (size_t)k->dims.list.n + 1, int32_t);
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        e->number[d] = d < given ? (int32_t)d : in[d] ? (int32_t)(given + e->n_computed++) : -1;
    }
}

int32_t dim_number(const Emitter *e, Dim d)
{
    if (d.sym < 0) {
        return -1;
    }
    CHECK(e->number[d.sym] >= 0);
    return e->number[d.sym];
}

static void sum_row(const Emitter *e, const DimInfo *info)
{
    Text *out = e->w.out;
    text_printf(out, "{%lld, %lld, 0, %u, (const tdsl_term[]){", (long long)info->base,
                (long long)(info->divisor > 1 ? info->divisor : 1), info->n_terms);
    uint32_t n = 0;
    for (uint32_t pass = 0; pass < 2; pass++) { /* as sum_text adds them */
        for (uint32_t i = 0; i < info->n_terms; i++) {
            if ((info->term[i].coef < 0) == (pass == 1)) {
                text_printf(out, "%s{%d, %lld}", n++ == 0 ? "" : ", ",
                            dim_number(e, info->term[i].dim), (long long)info->term[i].coef);
            }
        }
    }
    text_put(out, "}}");
}

static void product_row(const Emitter *e, const DimInfo *info)
{
    Text *out = e->w.out;
    int64_t base = 1;
    uint32_t n = 0;
    CHECK(info->divisor <= 1);
    for (uint32_t f = 0; f < info->n_factors; f++) {
        base = info->factor[f].sym < 0 ? sat_mul(base, info->factor[f].n) : base;
        n += info->factor[f].sym < 0 ? 0 : 1;
    }
    text_printf(out, "{%lld, 1, 1, %u, (const tdsl_term[]){", (long long)base, n);
    n = 0;
    for (uint32_t f = 0; f < info->n_factors; f++) {
        if (info->factor[f].sym >= 0) {
            text_printf(out, "%s{%d, 1}", n++ == 0 ? "" : ", ", dim_number(e, info->factor[f]));
        }
    }
    text_put(out, "}}");
}

void computed_emit(Emitter *e)
{
    const Kernel *k = e->w.k;
    Text *out = e->w.out;
    if (e->n_computed == 0) {
        return;
    }
    text_printf(out, "static const tdsl_computed tdsl_computed_%s[] = {\n", e->symbol);
    for (uint32_t d = dims_given(&k->dims); d < k->dims.list.n; d++) {
        if (e->number[d] < 0) {
            continue;
        }
        const DimInfo *info = &k->dims.list.at[d];
        text_put(out, "    ");
        if (info->n_terms > 0) {
            sum_row(e, info);
        } else {
            product_row(e, info);
        }
        text_put(out, ", /* ");
        dim_put(out, &k->dims, dim_open((int32_t)d), NULL);
        text_put(out, " */\n");
    }
    text_put(out, "};\n");
}

/* ---- calls that need no table ---- */

/* Binary digits of the number, which is at least 0. */
static int digits_of(int64_t n)
{
    int digits = 0;
    for (; n > 0; n /= 2) {
        digits++;
    }
    return digits;
}

/* An extent is below 2^(open * digits + more), if open dims are at most 2^digits. */
typedef struct Bound {
    int open, more;
} Bound;

static Bound bound_of(const Bound *all, Dim d)
{
    return d.sym < 0 ? (Bound){0, digits_of(d.n)} : all[d.sym];
}

static Bound *find_bounds(const Emitter *e)
{
    const DimTable *t = &e->w.k->dims;
    Bound *all = ARENA_ARRAY(e->w.arena, (size_t)t->list.n + 1, Bound);
    for (uint32_t d = 0; d < t->list.n; d++) {
        const DimInfo *info = &t->list.at[d];
        Bound own = {dim_is_given(info) ? 1 : 0, 0};
        for (uint32_t f = 0; f < info->n_factors; f++) {
            Bound b = bound_of(all, info->factor[f]);
            own = (Bound){own.open + b.open, own.more + b.more};
        }
        int64_t sizes = info->base < 0 ? -info->base : info->base; /* and of coefficients */
        for (uint32_t i = 0; i < info->n_terms; i++) {
            Bound b = bound_of(all, info->term[i].dim);
            int64_t coef = info->term[i].coef;
            own.open = b.open > own.open ? b.open : own.open;
            own.more = b.more > own.more ? b.more : own.more;
            sizes = sat_add(sizes, coef < 0 ? -coef : coef);
        }
        own.more += info->n_terms > 0 ? digits_of(sizes) : 0;
        bool large = own.open > 99 || own.more > 99; /* many such still fit an int */
        all[d] = large ? (Bound){99, 99} : own;
    }
    return all;
}

int safe_digits(const Emitter *e)
{
    const Kernel *k = e->w.k;
    const Bound *bounds = find_bounds(e);
    int least = 31;
    for (uint32_t i = 0; i < k->args.n; i++) {
        ArgShape s = arg_shape(k, i);
        int64_t fixed = dtype_bytes(k->bufs.at[k->args.at[i].buf].dtype);
        Bound all = {0, 0};
        for (uint32_t d = 0; d < s.rank; d++) {
            Bound b = s.extent[d].sym < 0 ? (Bound){0, 0} : bounds[s.extent[d].sym];
            all = (Bound){all.open + b.open, all.more + b.more};
            fixed = s.extent[d].sym < 0 ? sat_mul(fixed, s.extent[d].n) : fixed;
        }
        int most = all.open == 0 ? least : (61 - digits_of(fixed) - all.more) / all.open;
        least = most < least ? most : least;
    }
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        bool sum = k->dims.list.at[d].n_terms > 0;
        int most = sum ? (61 - bounds[d].more) / bounds[d].open : least;
        least = most < least ? most : least;
    }
    return least;
}

/* Is it 1 or more, if open dims are? */
static bool is_some(const DimInfo *info)
{
    bool some = info->base >= 0 && info->divisor <= 1;
    for (uint32_t i = 0; i < info->n_terms; i++) {
        some = some && info->term[i].coef > 0;
    }
    return some;
}

const char *computed_tests(Emitter *e, Text *test)
{
    const Kernel *k = e->w.k;
    Text t;
    bool *needed = ARENA_ARRAY(e->w.arena, (size_t)k->dims.list.n + 1, bool);
    for (uint32_t d = k->dims.list.n; d-- > 0;) {
        const DimInfo *info = &k->dims.list.at[d];
        needed[d] = needed[d] || (info->n_terms > 0 && !is_some(info));
        for (uint32_t f = 0; needed[d] && f < info->n_factors; f++) {
            Dim factor = info->factor[f];
            needed[factor.sym < 0 ? k->dims.list.n : (uint32_t)factor.sym] = true;
        }
        for (uint32_t i = 0; needed[d] && i < info->n_terms; i++) {
            needed[info->term[i].dim.sym] = true;
        }
    }
    text_init(&t, e->w.arena);
    for (uint32_t d = dims_given(&k->dims); d < k->dims.list.n; d++) {
        const DimInfo *info = &k->dims.list.at[d];
        if (!needed[d]) {
            continue;
        }
        text_printf(&t, "const int64_t %s = ", e->w.dim[d]);
        for (uint32_t f = 0; f < info->n_factors; f++) {
            text_put(&t, f > 0 ? " * " : "");
            text_put(&t, c_dim_text(&e->w, info->factor[f]));
        }
        text_printf(&t, "%s; ", info->n_terms > 0 ? sum_text(e, info) : "");
        if (info->n_terms > 0 && !is_some(info)) {
            text_printf(test, test->n == 0 ? "%s > 0" : " && %s > 0", e->w.dim[d]);
        }
    }
    return t.at;
}
