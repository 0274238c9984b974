/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of open dims: those that a call gives, and those that are computed from them. */
#include "base/text.h"
#include "op/affine.h"

int64_t dim_typical(const DimTable *t, Dim d)
{
    if (d.sym < 0) {
        return d.n;
    }
    CHECK((uint32_t)d.sym < t->list.n);
    return t->list.at[d.sym].typical;
}

uint32_t dims_given(const DimTable *t)
{
    uint32_t least = 0, most = t->list.n;
    while (least < most) { /* there may be very many */
        uint32_t middle = least + (most - least) / 2;
        if (dim_is_given(&t->list.at[middle])) {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    return least;
}

static int64_t sum_value(const DimInfo *info, const int64_t *dims)
{
    int64_t least = 0, most = 0; /* what is taken away, and what is added */
    for (uint32_t i = 0; i <= info->n_terms; i++) {
        int64_t x = i == info->n_terms ? info->base : info->term[i].coef;
        int64_t by = i == info->n_terms ? 1 : dims[info->term[i].dim.sym];
        int64_t part = sat_mul(x < 0 ? (x == INT64_MIN ? INT64_MAX : -x) : x, by < 0 ? 0 : by);
        *(x < 0 ? &least : &most) = sat_add(x < 0 ? least : most, part);
        if (by < 0) {
            return -1; /* of no tensor */
        }
    }
    if (most < least) {
        return -1;
    }
    int64_t value = (most - least) / (info->divisor > 1 ? info->divisor : 1);
    return value > SIZE_LIMIT ? SIZE_LIMIT + 1 : value;
}

/* Rounded up. */
static int64_t quotient(int64_t n, int64_t divisor)
{
    return n / divisor + (n % divisor != 0 ? 1 : 0);
}

int64_t *dims_complete(Arena *arena, const DimTable *t, const int64_t *given)
{
    int64_t *all = ARENA_ARRAY(arena, (size_t)t->list.n + 1, int64_t);
    for (uint32_t d = 0; d < t->list.n; d++) {
        const DimInfo *info = &t->list.at[d];
        if (info->n_terms > 0) {
            all[d] = sum_value(info, all);
            continue;
        }
        all[d] = info->n_factors == 0 ? given[d] : 1;
        for (uint32_t f = 0; f < info->n_factors; f++) {
            Dim factor = info->factor[f];
            int64_t by = factor.sym < 0 ? factor.n : all[factor.sym];
            all[d] = all[d] < 0 || by < 0 ? -1 : sat_mul(all[d], by);
        }
        bool large = info->n_factors > 0 && all[d] > SIZE_LIMIT;
        all[d] = large ? SIZE_LIMIT + 1 : all[d];
        all[d] = info->divisor > 1 && all[d] > 0 ? quotient(all[d], info->divisor) : all[d];
    }
    return all;
}

/* Of a term or factor: known, or -1. */
static int64_t known_value(const int64_t *all, Dim d)
{
    return d.sym < 0 ? d.n : all[d.sym];
}

bool dims_solve(Arena *scratch, const DimTable *t, int32_t dim, int64_t value, int64_t *given)
{
    const int64_t *all = dims_complete(scratch, t, given);
    for (;;) {
        const DimInfo *info = &t->list.at[dim];
        int32_t unknown = -1;
        uint32_t n_unknown = 0, n = info->n_terms > 0 ? info->n_terms : info->n_factors;
        int64_t rest = info->n_terms > 0 ? info->base : 1, coef = 1;
        if (dim_is_given(info)) {
            bool is_new = given[dim] < 0 && value >= 0;
            given[dim] = is_new ? value : given[dim];
            return is_new;
        }
        for (uint32_t i = 0; i < n; i++) {
            Dim d = info->n_terms > 0 ? info->term[i].dim : info->factor[i];
            int64_t x = known_value(all, d), by = info->n_terms > 0 ? info->term[i].coef : 1;
            if (x < 0) {
                n_unknown++;
                unknown = d.sym;
                coef = info->n_terms > 0 ? by : coef;
            } else if (info->n_terms > 0) {
                rest = sat_add(rest, by < 0 ? -sat_mul(-by, x) : sat_mul(by, x));
            } else {
                rest = sat_mul(rest, x);
            }
        }
        coef = info->n_terms > 0 ? coef : rest;
        rest = info->n_terms > 0 ? rest : 0;
        bool fits = rest > -SIZE_LIMIT && rest < SIZE_LIMIT && value < SIZE_LIMIT;
        if (n_unknown != 1 || info->divisor > 1 || coef == 0 || !fits ||
            (value - rest) % coef != 0) {
            return false;
        }
        value = (value - rest) / coef;
        dim = unknown;
    }
}

/* The text, or with a number behind it if a dim has that name. */
static Sym dim_name(Arena *scratch, SymTable *syms, const DimTable *t, const char *text)
{
    Sym name = sym_cstr(syms, text);
    uint32_t again = 1;
    for (uint32_t d = 0; d < t->list.n; d++) {
        if (t->list.at[d].name == name) {
            name = sym_cstr(syms, str_format(scratch, "%s_%u", text, ++again));
            d = UINT32_MAX; /* from the first one on */
        }
    }
    return name;
}

/* "m_n", "n3_m". */
static Sym product_name(Arena *scratch, SymTable *syms, const DimTable *t, uint32_t n,
                        const Dim *factor)
{
    Text text = text_new(scratch);
    for (uint32_t f = 0; f < n; f++) {
        text_put(&text, f > 0 ? "_" : factor[f].sym < 0 ? "n" : "");
        if (factor[f].sym < 0) {
            text_i64(&text, factor[f].n);
        } else {
            text_put(&text, t->list.at[factor[f].sym].name->text);
        }
    }
    return dim_name(scratch, syms, t, text.at);
}

/* The factors, of which one that is a product stands as its own factors. */
static uint32_t flat_factors(const DimTable *t, uint32_t n, const Dim *factor, Dim *out)
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < n; f++) {
        const DimInfo *info = factor[f].sym < 0 ? NULL : &t->list.at[factor[f].sym];
        uint32_t many =
            info == NULL || info->divisor > 1 ? 0 : info->n_factors; /* none of a sum */
        for (uint32_t k = 0; k < many; k++, count++) {
            if (out != NULL) {
                out[count] = info->factor[k];
            }
        }
        if (many == 0 && out != NULL) {
            out[count] = factor[f];
        }
        count += many == 0 ? 1 : 0;
    }
    return count;
}

/* Each of them as often, in any order? */
static bool same_factors(const DimInfo *info, uint32_t n, const Dim *factor)
{
    bool same = info->n_factors == n;
    for (uint32_t f = 0; same && f < n; f++) {
        uint32_t here = 0, there = 0;
        for (uint32_t k = 0; k < n; k++) {
            here += dim_eq(factor[k], factor[f]);
            there += dim_eq(info->factor[k], factor[f]);
        }
        same = here == there;
    }
    return same;
}

Dim dims_product(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span,
                 uint32_t n, const Dim *factor)
{
    uint32_t count = flat_factors(t, n, factor, NULL);
    Dim *flat = ARENA_ARRAY(arena, count, Dim);
    (void)flat_factors(t, n, factor, flat);
    int64_t typical = 1;
    bool known = true;
    for (uint32_t f = 0; f < count; f++) {
        typical = sat_mul(typical, dim_typical(t, flat[f]));
        known &= flat[f].sym < 0;
    }
    if (known) {
        return dim_fixed(typical);
    }
    for (uint32_t d = 0; d < t->list.n; d++) {
        const DimInfo *info = &t->list.at[d];
        if (info->divisor <= 1 && same_factors(info, count, flat)) {
            return dim_open((int32_t)d);
        }
    }
    DimInfo info = {.name = product_name(scratch, syms, t, count, flat),
                    .typical = typical < 1            ? 1
                               : typical > SIZE_LIMIT ? SIZE_LIMIT
                                                      : typical,
                    .span = span,
                    .n_factors = count,
                    .factor = flat};
    vec_push(arena, &t->list, info);
    return dim_open((int32_t)t->list.n - 1);
}

/* Are both computed alike, from the same dims? */
static bool same_info(const DimInfo *x, const DimInfo *y)
{
    bool same = x->n_factors == y->n_factors && x->n_terms == y->n_terms &&
                x->base == y->base &&
                (x->divisor > 1 ? x->divisor : 1) == (y->divisor > 1 ? y->divisor : 1);
    for (uint32_t f = 0; same && f < x->n_factors; f++) {
        same = dim_eq(x->factor[f], y->factor[f]);
    }
    for (uint32_t f = 0; same && f < x->n_terms; f++) {
        same = dim_eq(x->term[f].dim, y->term[f].dim) && x->term[f].coef == y->term[f].coef;
    }
    return same;
}

Dim dims_quotient(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span, Dim n,
                  int64_t step)
{
    if (n.sym < 0 || step == 1) {
        return n.sym < 0 ? dim_fixed(quotient(n.n, step)) : n;
    }
    DimInfo info = t->list.at[n.sym];
    if (info.n_factors == 0) {
        info.n_terms = 0;
        info.term = NULL;
        info.base = info.divisor = 0;
        info.n_factors = 1;
        info.factor = arena_copy(arena, &n, sizeof n);
    }
    CHECK(info.divisor <= 1);
    info.divisor = step;
    for (uint32_t d = 0; d < t->list.n; d++) {
        if (same_info(&t->list.at[d], &info)) {
            return dim_open((int32_t)d);
        }
    }
    info.typical = quotient(info.typical, step);
    info.span = span;
    info.name = dim_name(scratch, syms, t,
                         str_format(scratch, "%s_%lld", info.name->text, (long long)step));
    vec_push(arena, &t->list, info);
    return dim_open((int32_t)t->list.n - 1);
}

/* "n_plus_2", "n2_m_less_1_over_3". */
static Sym sum_name(Arena *scratch, SymTable *syms, const DimTable *t, const DimInfo *info)
{
    Text text = text_new(scratch);
    for (uint32_t pass = 0; pass < 2; pass++) { /* what is added first */
        for (uint32_t i = 0; i < info->n_terms; i++) {
            int64_t coef = info->term[i].coef;
            if ((coef < 0) != (pass == 1)) {
                continue;
            }
            text_put(&text, pass == 1 ? "_less_" : text.n > 0 ? "_" : "");
            text_put(&text, t->list.at[info->term[i].dim.sym].name->text);
            if (coef != 1 && coef != -1) {
                text_printf(&text, "_%lld", (long long)(coef < 0 ? -coef : coef));
            }
        }
        if (pass == 0 && text.n == 0) {
            text_printf(&text, "n%lld", (long long)(info->base < 0 ? 0 : info->base));
        } else if (pass == 0 && info->base > 0) {
            text_printf(&text, "_plus_%lld", (long long)info->base);
        }
    }
    if (info->base < 0) {
        text_printf(&text, "_less_%lld", (long long)(0 - (uint64_t)info->base));
    }
    if (info->divisor > 1) {
        text_printf(&text, "_over_%lld", (long long)info->divisor);
    }
    return dim_name(scratch, syms, t, text.at);
}

Dim dims_sum(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span, int64_t base,
             uint32_t n, const DimTerm *term, int64_t divisor)
{
    DimInfo info = {.span = span, .n_terms = n, .term = term, .base = base, .divisor = divisor};
    if (n == 0) {
        return dim_fixed(sum_value(&info, NULL));
    }
    if (n == 1 && base == 0 && divisor <= 1 && term[0].coef == 1) {
        return term[0].dim;
    }
    for (uint32_t d = 0; d < t->list.n; d++) {
        if (same_info(&t->list.at[d], &info)) {
            return dim_open((int32_t)d);
        }
    }
    int64_t *typical = ARENA_ARRAY(scratch, t->list.n, int64_t);
    for (uint32_t d = 0; d < t->list.n; d++) {
        typical[d] = t->list.at[d].typical;
    }
    info.term = arena_copy(arena, term, n * sizeof *term);
    info.typical = sum_value(&info, typical);
    info.typical = info.typical < 1 ? 1 : info.typical > SIZE_LIMIT ? SIZE_LIMIT : info.typical;
    info.name = sum_name(scratch, syms, t, &info);
    vec_push(arena, &t->list, info);
    return dim_open((int32_t)t->list.n - 1);
}

#define WRITTEN_DEPTH 8 /* of what is computed from what is computed; behind that are names */

static void put(Text *out, const DimTable *t, Dim d, const char *const *names, int depth);

static void sum_put(Text *out, const DimTable *t, const DimInfo *info, const char *const *names,
                    int depth)
{
    bool first = true;
    text_put(out, info->divisor > 1 ? "(" : "");
    for (uint32_t pass = 0; pass < 2; pass++) { /* what is added, then what is taken away */
        for (uint32_t i = 0; i < info->n_terms; i++) {
            int64_t coef = info->term[i].coef;
            if ((coef < 0) != (pass == 1)) {
                continue;
            }
            text_put(out, first ? (coef < 0 ? "-" : "") : coef < 0 ? " - " : " + ");
            if (coef != 1 && coef != -1) {
                text_printf(out, "%lld*", (long long)(coef < 0 ? -coef : coef));
            }
            Dim dim = info->term[i].dim;
            bool nested = t->list.at[dim.sym].n_terms > 0 && t->list.at[dim.sym].divisor <= 1;
            text_put(out, nested ? "(" : "");
            put(out, t, dim, names, depth + 1);
            text_put(out, nested ? ")" : "");
            first = false;
        }
        if (pass == 0 && info->base > 0) {
            text_printf(out, first ? "%lld" : " + %lld", (long long)info->base);
            first = false;
        }
    }
    if (info->base < 0) {
        text_printf(out, " - %lld", (long long)-info->base);
    }
    if (info->divisor > 1) {
        text_printf(out, ")/%lld", (long long)info->divisor);
    }
}

static void put(Text *out, const DimTable *t, Dim d, const char *const *names, int depth)
{
    const DimInfo *info = d.sym < 0 ? NULL : &t->list.at[d.sym];
    if (info == NULL) {
        text_i64(out, d.n);
    } else if (dim_is_given(info) || depth > WRITTEN_DEPTH ||
               (info->n_factors > 0 && info->divisor > 1)) { /* blocks are never written */
        text_put(out, names == NULL ? info->name->text : names[d.sym]);
    } else if (info->n_terms > 0) {
        sum_put(out, t, info, names, depth);
    } else {
        for (uint32_t f = 0; f < info->n_factors; f++) {
            Dim factor = info->factor[f];
            bool nested = factor.sym >= 0 && t->list.at[factor.sym].n_terms > 0;
            text_put(out, f > 0 ? nested ? "*(" : "*" : nested ? "(" : "");
            put(out, t, factor, names, depth + 1);
            text_put(out, nested ? ")" : "");
        }
    }
}

void dim_put(Text *out, const DimTable *t, Dim d, const char *const *names)
{
    put(out, t, d, names, 0);
}

const char *dim_written(Arena *arena, const DimTable *t, Dim d)
{
    Text text = text_new(arena);
    dim_put(&text, t, d, NULL);
    return text.at;
}

const char *dim_problem(const DimTable *t, uint32_t dim)
{
    const DimInfo *info = &t->list.at[dim];
    if (dim_is_given(info) != (dim < dims_given(t))) {
        return "what is computed stands behind what a call gives";
    }
    if (info->n_factors > 0 && info->n_terms > 0) {
        return "a dim is a product or a sum";
    }
    if (info->divisor < 0 || (dim_is_given(info) && info->divisor > 1)) {
        return "a product or a sum is divided by a positive number";
    }
    for (uint32_t f = 0; f < info->n_factors; f++) {
        Dim d = info->factor[f];
        if (d.sym < -1 || d.sym >= (int32_t)dim ||
            (d.sym < 0 && (d.n < 0 || d.n > SIZE_LIMIT))) {
            return "a factor is no number and no dim before it";
        }
    }
    for (uint32_t i = 0; i < info->n_terms; i++) {
        Dim d = info->term[i].dim;
        if (d.sym < 0 || d.sym >= (int32_t)dim || info->term[i].coef == 0 ||
            (i > 0 && d.sym <= info->term[i - 1].dim.sym)) {
            return "a term is of no dim before it, or of one that another is of";
        }
    }
    return NULL;
}

const char *dim_tests_problem(const DimTable *t, uint32_t n, const DimTest *const *test)
{
    int64_t next = n == 0 ? DIM_ANY_SIZE : 0; /* the least size that no test has held for */
    for (uint32_t k = 0; k < n; k++) {
        if (test[k]->dim < 0 || (uint32_t)test[k]->dim >= t->list.n) {
            return "a test is of no open dim";
        }
        if (test[k]->dim != test[0]->dim) {
            return "tests beside each other are of two dims";
        }
        if (test[k]->most < test[k]->least) {
            return "a test holds for no size";
        }
        if (test[k]->least < next) {
            return "two tests hold for one size, or they are not in ascending order";
        }
        if (test[k]->least > next) {
            break;
        }
        next = test[k]->most == DIM_ANY_SIZE ? DIM_ANY_SIZE : test[k]->most + 1;
    }
    return next == DIM_ANY_SIZE ? NULL : "there is a size for which no test holds";
}

/* ---- what holds for all sizes ---- */

/* At least how large are the dims that sums of one other are known of? */
static int64_t *known_least(Arena *a, const DimTable *t, const int64_t *least)
{
    int64_t *known = ARENA_ARRAY(a, (size_t)t->list.n + 1, int64_t);
    for (uint32_t d = 0; d < t->list.n; d++) {
        known[d] = least[d];
    }
    for (uint32_t d = t->list.n; d-- > 0;) {
        const DimInfo *info = &t->list.at[d];
        int64_t divisor = info->divisor > 1 ? info->divisor : 1, want = 0, coef = 0;
        for (uint32_t f = 0; f < info->n_factors && known[d] > 0; f++) {
            int32_t sym = info->factor[f].sym;
            if (sym >= 0 && known[sym] < 1) {
                known[sym] = 1; /* a product is not 0 */
            }
        }
        if (info->n_terms != 1 || (coef = info->term[0].coef) < 1 ||
            !i64_try_mul(known[d], divisor, &want) || !i64_try_add(want, -info->base, &want)) {
            continue;
        }
        int64_t *of = &known[info->term[0].dim.sym];
        want = want <= 0 ? 0 : (want - 1) / coef + 1;
        *of = want > *of ? want : *of;
    }
    return known;
}

/* A number, and dims at their least. */
static bool is_at_least_zero(Affine x, const int64_t *known)
{
    int64_t value = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        int64_t part = 0;
        if (x.term[i].coef < 0 || !affine_is_dim(x.term[i].var) ||
            !i64_try_mul(x.term[i].coef, known[affine_sym(x.term[i].var)], &part) ||
            !i64_try_add(value, part, &value)) {
            return false;
        }
    }
    return value >= 0;
}

/* x + scale * what the d-th dim sums up */
static bool add_sum(Arena *a, const DimInfo *info, int64_t base, int64_t scale, Affine *x)
{
    Affine sum = affine_const(base);
    for (uint32_t i = 0; i < info->n_terms; i++) {
        const AffineTerm term = {affine_dim(info->term[i].dim.sym), info->term[i].coef};
        if (!affine_try_add(a, sum, 1, (Affine){0, 1, &term}, &sum)) {
            return false;
        }
    }
    return affine_try_add(a, *x, scale, sum, x);
}

bool dims_prove(Arena *scratch, const DimTable *t, Affine x, const int64_t *least)
{
    const int64_t *known = known_least(scratch, t, least);
    for (uint32_t d = t->list.n; d-- > 0;) { /* sums stand as what they are made of */
        const DimInfo *info = &t->list.at[d];
        int64_t coef = affine_coef(x, affine_dim((int32_t)d));
        int64_t divisor = info->divisor > 1 ? info->divisor : 1;
        if (coef == 0 || info->n_terms == 0) {
            continue;
        }
        const AffineTerm own = {affine_dim((int32_t)d), coef};
        bool fits = affine_try_add(scratch, x, -1, (Affine){0, 1, &own}, &x) &&
                    affine_try_add(scratch, affine_const(0), divisor, x, &x) &&
                    add_sum(scratch, info, coef > 0 ? info->base - (divisor - 1) : info->base,
                            coef, &x);
        if (!fits) {
            return false;
        }
    }
    if (is_at_least_zero(x, known)) {
        return true;
    }
    for (uint32_t d = 0; d < t->list.n; d++) { /* no computed extent is below 0 */
        const DimInfo *info = &t->list.at[d];
        Affine less = x;
        if (info->n_terms > 1 && add_sum(scratch, info, info->base, -1, &less) &&
            is_at_least_zero(less, known)) {
            return true;
        }
    }
    return false;
}

/* A label runs over all positions of its extent: its first or its last stands for it, whichever makes the expression smaller. */
static bool never_negative(Arena *scratch, const DimTable *dims, const Dim *label_extent,
                           const int64_t *least, Affine x)
{
    Affine out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        Affine own = {0, 1, &t};
        if (!affine_is_dim(t.var)) {
            Affine last = affine_extent(scratch, label_extent[t.var]);
            last.base--; /* a number alone, or 0 before */
            own = last;
            if (t.coef > 0) {
                continue; /* 0 */
            }
            if (!affine_try_add(scratch, out, t.coef, own, &out)) {
                return false;
            }
            continue;
        }
        if (!affine_try_add(scratch, out, 1, own, &out)) {
            return false;
        }
    }
    return dims_prove(scratch, dims, out, least);
}

int position_problem(Arena *scratch, const DimTable *dims, const Dim *label_extent,
                     uint32_t n_labels, Affine x, Dim extent)
{
    ArenaMark mark = arena_mark(scratch);
    int64_t *least = ARENA_ARRAY(scratch, (size_t)dims->list.n + 1, int64_t);
    Affine room = {0};
    for (uint32_t l = 0; l < n_labels; l++) {
        if (label_extent[l].sym >= 0) {
            least[label_extent[l].sym] = 1;
        }
    }
    bool fits = affine_try_add(scratch, affine_extent(scratch, extent), -1, x, &room) &&
                affine_try_add(scratch, room, 1, affine_const(-1), &room);
    int problem = !never_negative(scratch, dims, label_extent, least, x)               ? -1
                  : !fits || !never_negative(scratch, dims, label_extent, least, room) ? 1
                                                                                       : 0;
    arena_reset(scratch, mark);
    return problem;
}

/* ---- dims of another table ---- */

DimInfo dim_info_mapped(Arena *arena, const Dim *map, DimInfo info)
{
    Dim *factor = ARENA_ARRAY(arena, info.n_factors, Dim);
    DimTerm *term = ARENA_ARRAY(arena, info.n_terms, DimTerm);
    for (uint32_t f = 0; f < info.n_factors; f++) {
        factor[f] = dim_mapped(map, info.factor[f]);
    }
    for (uint32_t f = 0; f < info.n_terms; f++) {
        term[f] = (DimTerm){dim_mapped(map, info.term[f].dim), info.term[f].coef};
    }
    info.factor = factor;
    info.term = term;
    return info;
}

void dims_import(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t,
                 const DimTable *from, Dim *map)
{
    for (uint32_t d = 0; d < from->list.n; d++) {
        map[d] = dim_open((int32_t)d);
        if (dim_is_given(&from->list.at[d])) {
            continue;
        }
        DimInfo info = dim_info_mapped(arena, map, from->list.at[d]);
        uint32_t known = 0;
        while (known < t->list.n && !same_info(&t->list.at[known], &info)) {
            known++;
        }
        if (known == t->list.n) {
            info.name = dim_name(scratch, syms, t, info.name->text);
            vec_push(arena, &t->list, info);
        }
        map[d] = dim_open((int32_t)known);
    }
}
