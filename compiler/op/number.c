/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of any element type: made, compared with zero, converted as C converts. */
#include "op/number.h"

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
    return dtype_is_exact(n.dtype) ? n.i == 0 : n.re == 0 && n.im == 0;
}

/* `v` rounded to a float type of fewer digits, to nearest even. */
static double round_binary(double v, DType t)
{
    if (isinf(v) && dtype_info(t)->beyond == BEYOND_FINITE) {
        return copysign(dtype_most(t), v);
    }
    if (!isfinite(v) || v == 0) {
        return v;
    }
    int exponent = 0, least = dtype_unit(t);
    (void)frexp(v, &exponent);
    int unit = exponent - dtype_info(t)->fraction - 1;
    unit = unit < least ? least : unit;
    double r = ldexp(nearbyint(ldexp(v, -unit)), unit);
    if (fabs(r) <= dtype_most(t)) {
        return r;
    }
    bool infinite = dtype_info(t)->beyond == BEYOND_INFINITE;
    return copysign(infinite ? (double)INFINITY : dtype_most(t), v);
}

static double round_to(double v, DType t)
{
    const DTypeInfo *x = dtype_info(t);
    return x->fraction == dtype_info(DTYPE_F64)->fraction ? v : round_binary(v, t);
}

static int64_t truncate_to(double v, DType t)
{
    if (isnan(v)) {
        return 0;
    }
    double cut = trunc(v);
    int64_t least = dtype_lowest(t), most = dtype_highest(t);
    if (cut <= (double)least) {
        return least;
    }
    return cut >= (double)most ? most : (int64_t)cut;
}

int64_t integer_of_bits(DType t, uint64_t v)
{
    const DTypeInfo *x = dtype_info(t);
    bool is_signed = x->is == DTYPE_IS_INT;
    int unused = 64 - x->fraction - (is_signed ? 1 : 0);
    uint64_t low = v << unused >> unused;
    uint64_t sign = is_signed ? (uint64_t)1 << x->fraction : 0;
    low = (low ^ sign) - sign;
    return low <= INT64_MAX ? (int64_t)low : -(int64_t)(~low) - 1;
}

/* ---- patterns of short floats ---- */

/* Of infinity; of the NaN of a type that has none. */
static uint32_t infinite_bits(const DTypeInfo *x)
{
    uint32_t top = ((1u << x->exponent) - 1) << x->fraction;
    return x->beyond == BEYOND_FINITE ? top | ((1u << x->fraction) - 1) : top;
}

uint32_t number_bits(DType t, double v)
{
    const DTypeInfo *x = dtype_info(t);
    uint32_t sign = signbit(v) != 0 ? 1u << (x->exponent + x->fraction) : 0;
    if (isnan(v)) {
        return sign | infinite_bits(x) | 1u << (x->fraction - 1);
    }
    if (isinf(v)) {
        return sign | infinite_bits(x);
    }
    int exponent = 0, unit = dtype_unit(t);
    (void)frexp(v, &exponent);
    int last = exponent - x->fraction - 1; /* of the exponents of its digits */
    last = v == 0 || last < unit ? unit : last;
    uint32_t digits =
        (uint32_t)ldexp(fabs(v), -last); /* the leading one adds to the exponent */
    return sign | (((uint32_t)(last - unit) << x->fraction) + digits);
}

double number_of_bits(DType t, uint32_t bits)
{
    const DTypeInfo *x = dtype_info(t);
    uint32_t size = bits & ((1u << (x->exponent + x->fraction)) - 1);
    uint32_t exponent = size >> x->fraction, low = size & ((1u << x->fraction) - 1);
    double v = exponent == 0
                   ? ldexp(low, dtype_unit(t))
                   : ldexp(low + (1u << x->fraction), dtype_unit(t) + (int)exponent - 1);
    if (size >= infinite_bits(x)) {
        v = size == infinite_bits(x) && x->beyond != BEYOND_FINITE ? (double)INFINITY
                                                                   : (double)NAN;
    }
    return size == bits ? v : -v;
}

/* ---- conversions ---- */

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
    if (!dtype_is_exact(from.dtype)) {
        return round_to(from.re, to);
    }
    bool wide = dtype_part(to) == DTYPE_F64;
    return wide ? (double)from.i : round_to(double_near(from.i), to);
}

Number number_cast(Number from, DType to)
{
    bool exact = dtype_is_exact(from.dtype);
    Number v = {.dtype = to};
    if (to == DTYPE_BOOL) {
        v.i = !number_is_zero(from);
    } else if (dtype_is_int(to)) {
        v.i = exact ? integer_of_bits(to, (uint64_t)from.i) : truncate_to(from.re, to);
    } else if (to != DTYPE_NONE) {
        v.re = real_to(from, to);
        v.im = exact || !dtype_is_complex(to) ? 0 : round_to(from.im, to);
    }
    return v;
}
