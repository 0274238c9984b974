/* SPDX-License-Identifier: Apache-2.0 */
/* Combines elements of any type. Sums of 16-bit floats are those of f32, rounded; NaN comes through a minimum or a maximum. */
#include "fold.h"

#include <string.h>

#include "tdsl/dist.h"

/* ---- 16-bit floats ---- */

static float from_bits(uint32_t bits)
{
    float f = 0;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t to_bits(float f)
{
    uint32_t bits = 0;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float from_bf16(uint16_t h)
{
    return from_bits((uint32_t)h << 16);
}

static uint16_t to_bf16(float f)
{
    uint32_t bits = to_bits(f);
    if (f != f) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, rest = h & 0x3ff;
    if (exponent == 31) {
        return from_bits(sign | 0x7f800000 | rest << 13);
    }
    if (exponent == 0) {
        float f = (float)rest / 16777216.0f; /* 2^-24 */
        return sign != 0 ? -f : f;
    }
    return from_bits(sign | (exponent + 112) << 23 | rest << 13);
}

static uint16_t to_f16(float f)
{
    uint32_t bits = to_bits(f), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00);
    }
    if (size >= 0x477ff000) { /* rounds to more than the largest */
        return (uint16_t)(sign | 0x7c00);
    }
    if (size < 0x38800000) { /* below the least normal number: in steps of 2^-24 */
        float steps = from_bits(size) * 16777216.0f;
        uint32_t whole = (uint32_t)steps;
        float left = steps - (float)whole;
        whole += left > 0.5f || (left == 0.5f && (whole & 1) != 0) ? 1 : 0;
        return (uint16_t)(sign | whole);
    }
    return (uint16_t)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

/* ---- one combination of one type ---- */

#define SUM(x, y)  ((x) + (y))
#define PROD(x, y) ((x) * (y))
#define LESS(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))
#define MORE(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))

#define EACH(type, wide, load, store, combine)                                                 \
    for (int64_t k = 0; k < count; k++) {                                                      \
        type *a = (type *)(void *)to + k;                                                      \
        const type *b = (const type *)(const void *)from + k;                                  \
        wide x = load(*a), y = load(*b);                                                       \
        *a = (type)store(combine(x, y));                                                       \
    }

#define FOLDS(name, type, wide, load, store)                                                   \
    static void name(int32_t fold, char *to, const char *from, int64_t count)                  \
    {                                                                                          \
        switch (fold) {                                                                        \
        case TDSL_FOLD_SUM:                                                                    \
            EACH(type, wide, load, store, SUM)                                                 \
            break;                                                                             \
        case TDSL_FOLD_PROD:                                                                   \
            EACH(type, wide, load, store, PROD)                                                \
            break;                                                                             \
        case TDSL_FOLD_MIN:                                                                    \
            EACH(type, wide, load, store, LESS)                                                \
            break;                                                                             \
        case TDSL_FOLD_MAX:                                                                    \
            EACH(type, wide, load, store, MORE)                                                \
            break;                                                                             \
        default:                                                                               \
            break;                                                                             \
        }                                                                                      \
    }

FOLDS(fold_f64, double, double, , )
FOLDS(fold_f32, float, float, , )
FOLDS(fold_f16, uint16_t, float, from_f16, to_f16)
FOLDS(fold_bf16, uint16_t, float, from_bf16, to_bf16)

/* Integers wrap: sums and products as unsigned ones, comparisons as they are. */
#define WRAPS(name, type, wrapped)                                                             \
    static void name(int32_t fold, char *to, const char *from, int64_t count)                  \
    {                                                                                          \
        if (fold == TDSL_FOLD_SUM) {                                                           \
            EACH(wrapped, wrapped, , , SUM)                                                    \
        } else if (fold == TDSL_FOLD_PROD) {                                                   \
            EACH(wrapped, wrapped, , , PROD)                                                   \
        } else if (fold == TDSL_FOLD_MIN) {                                                    \
            EACH(type, type, , , LESS_INT)                                                     \
        } else {                                                                               \
            EACH(type, type, , , MORE_INT)                                                     \
        }                                                                                      \
    }

#define LESS_INT(x, y) ((x) < (y) ? (x) : (y))
#define MORE_INT(x, y) ((x) > (y) ? (x) : (y))

WRAPS(fold_i32, int32_t, uint32_t)
WRAPS(fold_i64, int64_t, uint64_t)

static void fold_bool(int32_t fold, char *to, const char *from, int64_t count)
{
    bool all = fold == TDSL_FOLD_ALL || fold == TDSL_FOLD_PROD || fold == TDSL_FOLD_MIN;
    for (int64_t k = 0; k < count; k++) {
        to[k] = all ? (char)(to[k] & from[k]) : (char)(to[k] | from[k]);
    }
}

void tdsl_fold(int32_t dtype, int32_t fold, char *to, const char *from, int64_t count)
{
    switch (dtype) {
    case TDSL_F64:
        fold_f64(fold, to, from, count);
        break;
    case TDSL_C128: /* only sums: part by part */
        fold_f64(fold, to, from, 2 * count);
        break;
    case TDSL_F32:
        fold_f32(fold, to, from, count);
        break;
    case TDSL_C64:
        fold_f32(fold, to, from, 2 * count);
        break;
    case TDSL_F16:
        fold_f16(fold, to, from, count);
        break;
    case TDSL_BF16:
        fold_bf16(fold, to, from, count);
        break;
    case TDSL_I32:
        fold_i32(fold, to, from, count);
        break;
    case TDSL_I64:
        fold_i64(fold, to, from, count);
        break;
    default:
        fold_bool(fold, to, from, count);
    }
}
