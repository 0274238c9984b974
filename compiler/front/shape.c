/* SPDX-License-Identifier: Apache-2.0 */
/* Types as text, and the one size check every type passes. */
#include "front/shape.h"

void dim_print(Text *t, const DimTable *dims, Dim d)
{
    if (dim_is_wild(d)) {
        text_char(t, '?');
    } else {
        dim_put(t, dims, d, NULL);
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
    Text t = text_new(a);
    text_put(&t, d.sym >= 0 ? "dim " : "");
    dim_print(&t, dims, d);
    return t.at;
}

const char *shape_text(Arena *a, const DimTable *dims, const TensorType *type)
{
    Text t = text_new(a);
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
