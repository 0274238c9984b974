/* SPDX-License-Identifier: Apache-2.0 */
/* Dense tensors, and the 16-bit float formats by their bits. */
#include "graph/tensor.h"

#include <math.h>
#include <string.h>

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

/* ---- 16-bit floats ---- */

static uint32_t float_bits(float v)
{
    uint32_t bits = 0;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits)
{
    float v = 0;
    memcpy(&v, &bits, sizeof v);
    return v;
}

uint16_t f16_from_float(float v)
{
    uint32_t bits = float_bits(v), sign = bits >> 16 & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (rest >= 0x477ff000u) { /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (rest < 0x38800000u) { /* below the least normal, 2^-14: a multiple of 2^-24 */
        return (uint16_t)(sign | (uint32_t)nearbyintf(fabsf(v) * 0x1p24f));
    }
    rest += 0xfffu + (rest >> 13 & 1u); /* to nearest even; a carry moves the exponent */
    return (uint16_t)(sign | ((rest - 0x38000000u) >> 13));
}

float f16_to_float(uint16_t v)
{
    uint32_t sign = (uint32_t)(v & 0x8000u) << 16, exponent = v >> 10 & 31u, low = v & 1023u;
    if (exponent == 0) {
        float tiny = (float)low * 0x1p-24f;
        return sign != 0 ? -tiny : tiny;
    }
    return float_from_bits(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) |
                           low << 13);
}

uint16_t bf16_from_float(float v)
{
    uint32_t bits = float_bits(v);
    if (isnan(v)) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

float bf16_to_float(uint16_t v)
{
    return float_from_bits((uint32_t)v << 16);
}

/* ---- elements ---- */

Number tensor_get(const Tensor *t, int64_t at)
{
    Number v = {.dtype = t->dtype};
    switch (t->dtype) {
    case DTYPE_F64:
        v.re = ((const double *)t->data)[at];
        return v;
    case DTYPE_F32:
        v.re = (double)((const float *)t->data)[at];
        return v;
    case DTYPE_F16:
        v.re = (double)f16_to_float(((const uint16_t *)t->data)[at]);
        return v;
    case DTYPE_BF16:
        v.re = (double)bf16_to_float(((const uint16_t *)t->data)[at]);
        return v;
    case DTYPE_I32:
        v.i = ((const int32_t *)t->data)[at];
        return v;
    case DTYPE_I64:
        v.i = ((const int64_t *)t->data)[at];
        return v;
    case DTYPE_BOOL:
        v.i = ((const uint8_t *)t->data)[at] != 0;
        return v;
    case DTYPE_C64:
        v.re = (double)((const float *)t->data)[2 * at];
        v.im = (double)((const float *)t->data)[2 * at + 1];
        return v;
    case DTYPE_C128:
        v.re = ((const double *)t->data)[2 * at];
        v.im = ((const double *)t->data)[2 * at + 1];
        return v;
    case DTYPE_NONE:
    case DTYPE_COUNT:
        break;
    }
    UNREACHABLE();
}

void tensor_set(Tensor *t, int64_t at, Number v)
{
    if (v.dtype != t->dtype) {
        v = number_cast(v, t->dtype);
    }
    switch (t->dtype) {
    case DTYPE_F64:
        ((double *)t->data)[at] = v.re;
        return;
    case DTYPE_F32:
        ((float *)t->data)[at] = (float)v.re;
        return;
    case DTYPE_F16:
        ((uint16_t *)t->data)[at] = f16_from_float((float)v.re);
        return;
    case DTYPE_BF16:
        ((uint16_t *)t->data)[at] = bf16_from_float((float)v.re);
        return;
    case DTYPE_I32:
        ((int32_t *)t->data)[at] = (int32_t)v.i;
        return;
    case DTYPE_I64:
        ((int64_t *)t->data)[at] = v.i;
        return;
    case DTYPE_BOOL:
        ((uint8_t *)t->data)[at] = v.i != 0;
        return;
    case DTYPE_C64:
        ((float *)t->data)[2 * at] = (float)v.re;
        ((float *)t->data)[2 * at + 1] = (float)v.im;
        return;
    case DTYPE_C128:
        ((double *)t->data)[2 * at] = v.re;
        ((double *)t->data)[2 * at + 1] = v.im;
        return;
    case DTYPE_NONE:
    case DTYPE_COUNT:
        break;
    }
    UNREACHABLE();
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
