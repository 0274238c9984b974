/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of any element type: made, compared with zero, converted as C converts. */
#include "op/number.h"

#include <float.h>
#include <math.h>

Number number_int(DType dtype, int64_t v)
{
    return number_cast((Number){.dtype = DTYPE_I64, .i = v}, dtype);
}

Number number_real(DType dtype, double v)
{
    return number_cast((Number){.dtype = DTYPE_F64, .re = v}, dtype);
}

bool number_is_zero(Number n)
{
    return dtype_is_int(n.dtype) || n.dtype == DTYPE_BOOL ? n.i == 0 : n.re == 0 && n.im == 0;
}

/* `v` rounded to a binary format of `digits` bits and least normal exponent `least`, to nearest even; beyond
 * `most` it becomes infinite. */
static double round_binary(double v, int digits, int least, double most)
{
    if (!isfinite(v) || v == 0) {
        return v;
    }
    int exponent = 0;
    (void)frexp(v, &exponent);
    int unit = exponent - digits;
    if (unit < least + 1 - digits) {
        unit = least + 1 - digits;
    }
    double r = ldexp(nearbyint(ldexp(v, -unit)), unit);
    if (fabs(r) > most) {
        return v < 0 ? -(double)INFINITY : (double)INFINITY;
    }
    return r;
}

double number_most(DType t)
{
    return t == DTYPE_F32    ? 0x1.fffffep+127
           : t == DTYPE_F16  ? 65504.0
           : t == DTYPE_BF16 ? 0x1.fep+127
                             : DBL_MAX;
}

static double round_to(double v, DType t)
{
    if (t == DTYPE_F32 || t == DTYPE_C64) {
        return round_binary(v, 24, -126, number_most(DTYPE_F32));
    }
    if (t == DTYPE_F16) {
        return round_binary(v, 11, -14, number_most(t));
    }
    if (t == DTYPE_BF16) {
        return round_binary(v, 8, -126, number_most(t));
    }
    return v;
}

static int64_t truncate_to(double v, int64_t least, int64_t most)
{
    if (isnan(v)) {
        return 0;
    }
    double cut = trunc(v);
    if (cut <= (double)least) {
        return least;
    }
    return cut >= (double)most ? most : (int64_t)cut;
}

static int64_t wrap_i32(int64_t v)
{
    uint32_t low = (uint32_t)((uint64_t)v & 0xffffffffu);
    return low >= 0x80000000u ? (int64_t)low - ((int64_t)1 << 32) : (int64_t)low;
}

/* A double that rounds to every type of at most 32 digits as v does: beyond 2^53, where a
 * double would be rounded itself, what lies below 2^11 only says whether anything does. */
static double double_near(int64_t v)
{
    const int64_t exact = (int64_t)1 << 53, low = v % 2048;
    if (v >= -exact && v <= exact) {
        return (double)v;
    }
    return (double)(v - low + (low > 0 ? 1024 : low < 0 ? -1024 : 0));
}

/* Rounded once, whatever it comes from. */
static double real_to(Number from, DType to)
{
    if (!dtype_is_int(from.dtype) && from.dtype != DTYPE_BOOL) {
        return round_to(from.re, to);
    }
    bool wide = to == DTYPE_F64 || to == DTYPE_C128;
    return wide ? (double)from.i : round_to(double_near(from.i), to);
}

Number number_cast(Number from, DType to)
{
    bool exact = dtype_is_int(from.dtype) || from.dtype == DTYPE_BOOL;
    switch (to) {
    case DTYPE_BOOL:
        return (Number){.dtype = to, .i = !number_is_zero(from)};
    case DTYPE_I32:
        return (Number){.dtype = to,
                        .i = exact ? wrap_i32(from.i)
                                   : truncate_to(from.re, INT32_MIN, INT32_MAX)};
    case DTYPE_I64:
        return (Number){.dtype = to,
                        .i = exact ? from.i : truncate_to(from.re, INT64_MIN, INT64_MAX)};
    case DTYPE_F64:
    case DTYPE_F32:
    case DTYPE_F16:
    case DTYPE_BF16:
        return (Number){.dtype = to, .re = real_to(from, to)};
    case DTYPE_C64:
    case DTYPE_C128:
        return (Number){
            .dtype = to, .re = real_to(from, to), .im = exact ? 0 : round_to(from.im, to)};
    case DTYPE_NONE:
    case DTYPE_COUNT:
        break;
    }
    return (Number){.dtype = to};
}
