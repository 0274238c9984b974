/* SPDX-License-Identifier: Apache-2.0 */
/* Types as text, and the one size check every type passes. */
#include "front/shape.h"

/* "n + 2", "(2*n - 1)/3" */
static void sum_print(Text *t, const DimTable *dims, const DimInfo *info)
{
    bool first = true;
    text_put(t, info->divisor > 1 ? "(" : "");
    for (uint32_t pass = 0; pass < 2; pass++) { /* what is added, then what is taken away */
        for (uint32_t i = 0; i < info->n_terms; i++) {
            int64_t coef = info->term[i].coef;
            if ((coef < 0) != (pass == 1)) {
                continue;
            }
            text_put(t, first ? (coef < 0 ? "-" : "") : coef < 0 ? " - " : " + ");
            if (coef != 1 && coef != -1) {
                text_printf(t, "%lld*", (long long)(coef < 0 ? -coef : coef));
            }
            dim_print(t, dims, info->term[i].dim);
            first = false;
        }
    }
    if (info->base != 0) {
        text_printf(t, info->base < 0 ? " - %lld" : " + %lld",
                    (long long)(info->base < 0 ? -info->base : info->base));
    }
    if (info->divisor > 1) {
        text_printf(t, ")/%lld", (long long)info->divisor);
    }
}

void dim_print(Text *t, const DimTable *dims, Dim d)
{
    if (dim_is_wild(d)) {
        text_char(t, '?');
    } else if (d.sym >= 0 && dims->list.at[d.sym].n_terms > 0) {
        sum_print(t, dims, &dims->list.at[d.sym]);
    } else if (d.sym >= 0 && dims->list.at[d.sym].n_factors > 0) {
        const DimInfo *info = &dims->list.at[d.sym];
        for (uint32_t f = 0; f < info->n_factors; f++) {
            text_put(t, f > 0 ? "*" : "");
            dim_print(t, dims, info->factor[f]);
        }
    } else if (d.sym >= 0) {
        text_put(t, dims->list.at[d.sym].name->text);
    } else {
        text_i64(t, d.n);
    }
}

void shape_print(Text *t, const DimTable *dims, const TensorType *type)
{
    text_char(t, '[');
    for (uint32_t k = 0; k < type->rank; k++) {
        text_put(t, k > 0 ? ", " : "");
        dim_print(t, dims, type->dims[k]);
    }
    text_char(t, ']');
}

void type_print(Text *t, const DimTable *dims, const TensorType *type)
{
    text_put(t, dtype_name(type->dtype));
    if (type->rank > 0) {
        shape_print(t, dims, type);
    }
}

const char *dim_text(Arena *a, const DimTable *dims, Dim d)
{
    Text t;
    text_init(&t, a);
    text_put(&t, d.sym >= 0 ? "dim " : "");
    dim_print(&t, dims, d);
    return t.at;
}

const char *shape_text(Arena *a, const DimTable *dims, const TensorType *type)
{
    Text t;
    text_init(&t, a);
    shape_print(&t, dims, type);
    return t.at;
}

bool type_bytes(const TensorType *type, int64_t *bytes)
{
    int64_t n = dtype_bytes(type->dtype);
    bool zero = false;
    for (uint32_t k = 0; k < type->rank; k++) {
        Dim d = type->dims[k];
        zero = zero || dim_is(d, 0);
    }
    for (uint32_t k = 0; k < type->rank && !zero; k++) {
        if (type->dims[k].sym == -1 && !size_mul(n, type->dims[k].n, &n)) {
            return false;
        }
    }
    *bytes = zero ? 0 : n;
    return true;
}
