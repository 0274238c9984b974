/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about element types, as one table: each question of types.h is a look-up in it. */
#include "op/types.h"

#include "base/text.h"

typedef enum DTypeKind { KIND_NONE, KIND_FLOAT, KIND_INT, KIND_BOOL, KIND_COMPLEX } DTypeKind;

typedef struct DTypeInfo {
    const char *name;
    DTypeKind kind;
    int64_t bytes;
    uint32_t widens; /* bit t: a value becomes type t without loss and without a cast */
    DType accumulator;
} DTypeInfo;

#define TO(t) (1u << DTYPE_##t)

static const DTypeInfo dtype_info[DTYPE_COUNT] = {
    [DTYPE_NONE] = {"?", KIND_NONE, 0, 0, DTYPE_NONE},
    [DTYPE_F64] = {"f64", KIND_FLOAT, 8, TO(F64) | TO(C128), DTYPE_F64},
    [DTYPE_F32] = {"f32", KIND_FLOAT, 4, TO(F32) | TO(F64) | TO(C64) | TO(C128), DTYPE_F32},
    [DTYPE_F16] = {"f16", KIND_FLOAT, 2, TO(F16) | TO(F32) | TO(F64) | TO(C64) | TO(C128),
                   DTYPE_F32},
    [DTYPE_BF16] = {"bf16", KIND_FLOAT, 2, TO(BF16) | TO(F32) | TO(F64) | TO(C64) | TO(C128),
                    DTYPE_F32},
    [DTYPE_I32] = {"i32", KIND_INT, 4, TO(I32) | TO(I64), DTYPE_I32},
    [DTYPE_I64] = {"i64", KIND_INT, 8, TO(I64), DTYPE_I64},
    [DTYPE_BOOL] = {"bool", KIND_BOOL, 1, TO(BOOL), DTYPE_BOOL},
    [DTYPE_C64] = {"c64", KIND_COMPLEX, 8, TO(C64) | TO(C128), DTYPE_C64},
    [DTYPE_C128] = {"c128", KIND_COMPLEX, 16, TO(C128), DTYPE_C128},
};

const char *dtype_name(DType t)
{
    return dtype_info[t].name;
}

bool dtype_from_name(Str name, DType *out)
{
    for (int t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
        if (str_eq_cstr(name, dtype_info[t].name)) {
            *out = (DType)t;
            return true;
        }
    }
    return false;
}

int64_t dtype_bytes(DType t)
{
    return dtype_info[t].bytes;
}

bool dtype_is_float(DType t)
{
    return dtype_info[t].kind == KIND_FLOAT;
}

bool dtype_is_half(DType t)
{
    return t == DTYPE_F16 || t == DTYPE_BF16;
}

bool dtype_is_int(DType t)
{
    return dtype_info[t].kind == KIND_INT;
}

bool dtype_is_complex(DType t)
{
    return dtype_info[t].kind == KIND_COMPLEX;
}

DType dtype_part(DType t)
{
    return t == DTYPE_C64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_F64 : t;
}

bool dtype_widens(DType from, DType to)
{
    return (dtype_info[from].widens >> to) & 1u;
}

DType dtype_accumulator(DType t)
{
    return dtype_info[t].accumulator;
}

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
        if (t->list.at[middle].n_factors == 0) {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    return least;
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
        all[d] = info->n_factors == 0 ? given[d] : 1;
        for (uint32_t f = 0; f < info->n_factors; f++) {
            Dim factor = info->factor[f];
            all[d] = sat_mul(all[d], factor.sym < 0 ? factor.n : all[factor.sym]);
        }
        bool large = info->n_factors > 0 && all[d] > SIZE_LIMIT;
        all[d] = large ? SIZE_LIMIT + 1 : all[d];
        all[d] = info->divisor > 1 ? quotient(all[d], info->divisor) : all[d];
    }
    return all;
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
    Text text;
    text_init(&text, scratch);
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
        uint32_t many = info == NULL || info->divisor > 1 ? 0 : info->n_factors;
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
        bool same = info->n_factors == count && info->divisor <= 1;
        for (uint32_t f = 0; same && f < count; f++) {
            same = dim_eq(info->factor[f], flat[f]);
        }
        if (same) {
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

Dim dims_quotient(Arena *scratch, Arena *arena, SymTable *syms, DimTable *t, Span span, Dim n,
                  int64_t step)
{
    if (n.sym < 0 || step == 1) {
        return n.sym < 0 ? dim_fixed(quotient(n.n, step)) : n;
    }
    DimInfo info = t->list.at[n.sym];
    if (info.n_factors == 0) {
        info.n_factors = 1;
        info.factor = arena_copy(arena, &n, sizeof n);
    }
    CHECK(info.divisor <= 1);
    for (uint32_t d = 0; d < t->list.n; d++) {
        const DimInfo *other = &t->list.at[d];
        bool same = other->n_factors == info.n_factors && other->divisor == step;
        for (uint32_t f = 0; same && f < info.n_factors; f++) {
            same = dim_eq(info.factor[f], other->factor[f]);
        }
        if (same) {
            return dim_open((int32_t)d);
        }
    }
    info.typical = quotient(info.typical, step);
    info.divisor = step;
    info.span = span;
    info.name = dim_name(scratch, syms, t,
                         str_format(scratch, "%s_%lld", info.name->text, (long long)step));
    vec_push(arena, &t->list, info);
    return dim_open((int32_t)t->list.n - 1);
}

const char *dim_problem(const DimTable *t, uint32_t dim)
{
    const DimInfo *info = &t->list.at[dim];
    if ((info->n_factors == 0) != (dim < dims_given(t))) {
        return "products stand behind what a call gives";
    }
    if (info->divisor < 0 || (info->n_factors == 0 && info->divisor > 1)) {
        return "a product is divided by a positive number";
    }
    for (uint32_t f = 0; f < info->n_factors; f++) {
        Dim d = info->factor[f];
        if (d.sym < -1 || d.sym >= (int32_t)dims_given(t) ||
            (d.sym < 0 && (d.n < 0 || d.n > SIZE_LIMIT))) {
            return "a factor is no number and no dim that a call gives";
        }
    }
    return NULL;
}

bool dims_collapse_to(const DimTable *t, uint32_t rank, const Dim *shape, uint32_t n_collapsed,
                      const Dim *collapsed)
{
    uint32_t d = 0;
    for (uint32_t k = 0; k < n_collapsed; k++) {
        if (collapsed[k].sym < 0) {
            int64_t n = 1, want = collapsed[k].n;
            do {
                if (d == rank || shape[d].sym >= 0) {
                    return false;
                }
                n = sat_mul(n, shape[d++].n);
            } while (n != want && n != 0 && n < want);
            if (n != want) {
                return false;
            }
            continue;
        }
        const DimInfo *info = &t->list.at[collapsed[k].sym];
        if (info->n_factors == 0 || info->divisor > 1) {
            if (d == rank || !dim_eq(shape[d++], collapsed[k])) {
                return false;
            }
            continue;
        }
        for (uint32_t f = 0; f < info->n_factors; f++) {
            if (d == rank || !dim_eq(shape[d++], info->factor[f])) {
                return false;
            }
        }
    }
    return d == rank;
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
