/* SPDX-License-Identifier: Apache-2.0 */
/* What each op does to numbers: the words that the op table computes its values with, and the table made of them. Types of at most 32 bits
 * use libm's float functions, as the generated C does; for sums, products, quotients and roots
 * a double rounded once more to a shorter type is the correctly rounded result, so those are
 * computed in double. */
#include "op/op.h"

#include <complex.h>
#include <math.h>
#include <string.h>

static bool is_single(DType t)
{
    return t != DTYPE_F64 && t != DTYPE_C128;
}

/* ---- integers: wrapping, as unsigned ---- */

static int64_t signed_of(uint64_t v)
{
    return v <= INT64_MAX ? (int64_t)v : (int64_t)(v - (uint64_t)INT64_MAX - 1) + INT64_MIN;
}

static int64_t int_add(int64_t x, int64_t y)
{
    return signed_of((uint64_t)x + (uint64_t)y);
}

static int64_t int_mul(int64_t x, int64_t y)
{
    return signed_of((uint64_t)x * (uint64_t)y);
}

static int64_t int_neg(int64_t x)
{
    return signed_of(0 - (uint64_t)x);
}

static int64_t int_div(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? int_neg(x) : x / y;
}

/* Of floor: with the sign of y. */
static int64_t int_mod(int64_t x, int64_t y)
{
    int64_t rest = y == 0 || y == -1 ? 0 : x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/* ---- real floats ---- */

/* A remainder of 0 has the sign of y, as one of floor has. */
static double float_mod(double x, double y)
{
    double rest = fmod(x, y);
    bool other = rest < 0 || rest > 0 ? (rest < 0) != (y < 0) : false;
    return other ? rest + y : rest < 0 || rest > 0 || isnan(rest) ? rest : copysign(0.0, y);
}

static double sigmoid(DType t, double x)
{
    double e = is_single(t) ? (double)expf((float)-x) : exp(-x);
    double below = number_real(t, 1 + number_real(t, e).re).re;
    return 1 / below;
}

static double gelu(DType t, double x)
{
    double at = number_real(t, x * number_real(t, 0.70710678118654752440).re).re;
    double e = number_real(t, is_single(t) ? (double)erff((float)at) : erf(at)).re;
    return number_real(t, 0.5 * x).re * number_real(t, 1 + e).re;
}

/* ---- complex ---- */

/* Not re + im * I, which mixes the parts when one is infinite; CMPLX is missing with some compilers. */
static double complex complex_of(Number v)
{
    double parts[2] = {v.re, v.im};
    double complex z = 0;
    memcpy(&z, parts, sizeof z);
    return z;
}

static Number number_complex(DType out, double complex z)
{
    return number_cast((Number){.dtype = DTYPE_C128, .re = creal(z), .im = cimag(z)}, out);
}

/* In the type's own precision, by C's rules for complex numbers. */
static double complex complex_mul(DType t, double complex x, double complex y)
{
    return is_single(t) ? (double complex)((float complex)x * (float complex)y) : x * y;
}

static double complex complex_div(DType t, double complex x, double complex y)
{
    return is_single(t) ? (double complex)((float complex)x / (float complex)y) : x / y;
}

/* ---- comparisons ---- */

/* -1, 0 or 1; 2: one of them is a NaN, or they are complex and differ in the imaginary part. */
static int order_of(const Number *arg)
{
    Number x = arg[0], y = arg[1];
    if (dtype_is_exact(x.dtype)) {
        return x.i < y.i ? -1 : x.i > y.i;
    }
    return x.re < y.re ? -1 : x.re > y.re ? 1 : x.re == y.re && x.im == y.im ? 0 : 2;
}

static bool below(const Number *arg)
{
    return order_of(arg) == -1;
}

static bool same(const Number *arg)
{
    return order_of(arg) == 0;
}

static bool above(const Number *arg)
{
    return order_of(arg) == 1;
}

static Number number_bool(bool v)
{
    return (Number){.dtype = DTYPE_BOOL, .i = v};
}

/* ---- one function per op, from its row ---- */

/* No number of this class gets here: the op's rule lets none in. */
static int no_value(void)
{
    UNREACHABLE();
}

#define NONE       no_value()
#define ROUND(v)   number_real(t, v).re
#define LIBM(fn)   (single ? (double)fn##f((float)x) : fn(x))
#define LIBM_2(fn) (single ? (double)fn##f((float)x, (float)y) : fn(x, y))
#define LIBM_C(fn) (single ? (double complex)fn##f((float complex)x) : (double complex)fn(x))
#define LIBM_C2(fn)                                                                            \
    (single ? (double complex)fn##f((float complex)x, (float complex)y) : fn(x, y))

#define WORDS(type, from)                                                                      \
    type x = from(arg[0]), y = from(arg[n - 1]);                                               \
    (void)x;                                                                                   \
    (void)y;

#define WHOLE(a) (a).i
#define RE_OF(a) (a).re
#define BY_CLASS(whole, real, complex_)                                                        \
    DType t = arg[0].dtype;                                                                    \
    bool single = is_single(t);                                                                \
    (void)single;                                                                              \
    if (dtype_is_complex(t)) {                                                                 \
        WORDS(double complex, complex_of)                                                      \
        return number_complex(out, complex_);                                                  \
    }                                                                                          \
    if (dtype_is_int(t)) {                                                                     \
        WORDS(int64_t, WHOLE)                                                                  \
        return number_int(out, whole);                                                         \
    }                                                                                          \
    WORDS(double, RE_OF)                                                                       \
    return number_real(out, real);
#define ANY(value)                                                                             \
    (void)n;                                                                                   \
    (void)out;                                                                                 \
    return value;

#define LEAF(...)
#define VIEW(...)
#define JOIN(...)
#define GATHER(...)
#define STEPS(...)
#define DENSE(...)
#define FOLD(...)
#define MAP(id, name, arity, rule, symbol, level, literal, sign, folds, lanes, value, ...)     \
    static Number value_of_##id(DType out, uint32_t n, const Number *arg)                      \
    {                                                                                          \
        value                                                                                  \
    }
#include "op/ops.def"
#undef MAP
#define MAP(id, ...) [id] = value_of_##id,

static Number (*const values[OP_COUNT])(DType, uint32_t, const Number *) = {
#include "op/ops.def"
};
#undef LEAF
#undef VIEW
#undef JOIN
#undef GATHER
#undef STEPS
#undef DENSE
#undef FOLD
#undef MAP

Number op_value(Op op, DType out, const Number *arg)
{
    CHECK(op_info(op)->kind == OPKIND_MAP);
    return values[op](out, (uint32_t)op_info(op)->arity, arg);
}

Number op_fold(Op op, DType acc, Number a, Number x)
{
    Op by = op_joined_by(op, acc);
    Number new_last[2] = {a, x};
    Number new_first[2] = {x, a}; /* so that a NaN among either wins */
    return op_value(by, acc, by == OP_MIN || by == OP_MAX ? new_first : new_last);
}
