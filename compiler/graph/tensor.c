/* SPDX-License-Identifier: Apache-2.0 */
/* Dense tensors. */
#include "graph/tensor.h"

/* No tensor of the tools is larger; memory budgets are usually met before. */
#define TENSOR_BYTES_LIMIT ((int64_t)1 << 36)

Tensor *tensor_new(Ctx *ctx, Arena *arena, DType dtype, uint32_t rank, const int64_t *extent)
{
    int64_t count = 1, bytes = dtype_bytes(dtype);
    bool fits = rank <= RANK_LIMIT, empty = false;
    for (uint32_t d = 0; d < rank && fits; d++) {
        fits = extent[d] >= 0 && extent[d] <= SIZE_LIMIT &&
               size_mul(bytes, extent[d], &bytes) && size_mul(count, extent[d], &count);
        empty = empty || extent[d] == 0;
        if (empty) { /* stays 0, but the other extents are still checked */
            bytes = 0;
            count = 0;
        }
    }
    if (!fits || bytes > TENSOR_BYTES_LIMIT) {
        diag_limit(&ctx->diags, E_LIMIT_SIZE, (Span){0, 0, 0},
                   "a tensor of more than %lld bytes", (long long)TENSOR_BYTES_LIMIT);
        return NULL;
    }
    Tensor *t = ARENA_NEW(arena, Tensor);
    t->dtype = dtype;
    t->rank = rank;
    t->extent = arena_copy(arena, extent, rank * sizeof *extent);
    t->count = count;
    t->data = arena_array(arena, (size_t)count, (size_t)dtype_bytes(dtype));
    return t;
}

/* ---- elements ---- */

void tensor_position(const Tensor *t, int64_t at, int64_t *position)
{
    for (uint32_t d = t->rank; d-- > 0;) {
        position[d] = at % t->extent[d];
        at /= t->extent[d];
    }
}

/* An integer of so many bytes, whose bits above are 0. */
static uint64_t bits_get(const void *data, int64_t at, int64_t bytes)
{
    return bytes == 1   ? ((const uint8_t *)data)[at]
           : bytes == 2 ? ((const uint16_t *)data)[at]
           : bytes == 4 ? ((const uint32_t *)data)[at]
                        : ((const uint64_t *)data)[at];
}

static void bits_set(void *data, int64_t at, int64_t bytes, uint64_t bits)
{
    if (bytes == 1) {
        ((uint8_t *)data)[at] = (uint8_t)bits;
    } else if (bytes == 2) {
        ((uint16_t *)data)[at] = (uint16_t)bits;
    } else if (bytes == 4) {
        ((uint32_t *)data)[at] = (uint32_t)bits;
    } else {
        ((uint64_t *)data)[at] = bits;
    }
}

static double real_get(const void *data, int64_t at, DType t)
{
    return t == DTYPE_F64   ? ((const double *)data)[at]
           : t == DTYPE_F32 ? (double)((const float *)data)[at]
                            : number_of_bits(t, (uint32_t)bits_get(data, at, dtype_bytes(t)));
}

static void real_set(void *data, int64_t at, DType t, double v)
{
    if (t == DTYPE_F64) {
        ((double *)data)[at] = v;
    } else if (t == DTYPE_F32) {
        ((float *)data)[at] = (float)v;
    } else {
        bits_set(data, at, dtype_bytes(t), number_bits(t, v));
    }
}

Number tensor_get(const Tensor *t, int64_t at)
{
    Number v = {.dtype = t->dtype};
    if (t->dtype == DTYPE_BOOL) {
        v.i = ((const uint8_t *)t->data)[at] != 0;
    } else if (dtype_is_int(t->dtype)) {
        v.i = integer_of_bits(t->dtype, bits_get(t->data, at, dtype_bytes(t->dtype)));
    } else if (dtype_is_float(t->dtype)) {
        v.re = real_get(t->data, at, t->dtype);
    } else {
        v.re = real_get(t->data, 2 * at, dtype_part(t->dtype));
        v.im = real_get(t->data, 2 * at + 1, dtype_part(t->dtype));
    }
    return v;
}

void tensor_set(Tensor *t, int64_t at, Number v)
{
    if (v.dtype != t->dtype) {
        v = number_cast(v, t->dtype);
    }
    if (dtype_is_exact(t->dtype)) {
        bits_set(t->data, at, dtype_bytes(t->dtype), (uint64_t)v.i);
    } else if (dtype_is_float(t->dtype)) {
        real_set(t->data, at, t->dtype, v.re);
    } else {
        real_set(t->data, 2 * at, dtype_part(t->dtype), v.re);
        real_set(t->data, 2 * at + 1, dtype_part(t->dtype), v.im);
    }
}

Tensor *tensor_as(Arena *arena, const Tensor *t, uint32_t rank, const Dim *shape,
                  const int64_t *dims)
{
    Tensor *as = arena_copy(arena, t, sizeof *t);
    int64_t *extent = ARENA_ARRAY(arena, (size_t)rank + 1, int64_t);
    for (uint32_t d = 0; d < rank; d++) {
        extent[d] = shape[d].sym < 0 ? shape[d].n : dims[shape[d].sym];
    }
    as->rank = rank;
    as->extent = extent;
    return as;
}
