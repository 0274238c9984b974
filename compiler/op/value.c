/* SPDX-License-Identifier: Apache-2.0 */
/* What each op does to numbers: the C texts of the op table, computed. Types of at most 32 bits
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

/* The ops that integers have, beside those of any type. */
static Number map_int(Op op, DType out, int64_t x, int64_t y)
{
    switch ((int)op) {
    case OP_NEG:
        return number_int(out, int_neg(x));
    case OP_ABS:
        return number_int(out, x < 0 ? int_neg(x) : x);
    case OP_RELU:
        return number_int(out, x < 0 ? 0 : x);
    case OP_ADD:
        return number_int(out, int_add(x, y));
    case OP_SUB:
        return number_int(out, int_add(x, int_neg(y)));
    case OP_MUL:
    case OP_SCALE:
        return number_int(out, int_mul(x, y));
    case OP_DIV:
        return number_int(out, int_div(x, y));
    case OP_MIN:
        return number_int(out, x < y ? x : y);
    case OP_MAX:
        return number_int(out, x > y ? x : y);
    }
    UNREACHABLE(); /* by the op table no other op takes integers */
}

/* ---- real floats ---- */

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

#define LIBM(fn) (single ? (double)fn##f((float)x) : fn(x))

static double real_unary(Op op, DType out, double x)
{
    bool single = is_single(out);
    switch ((int)op) {
    case OP_NEG:
        return -x;
    case OP_ABS:
        return fabs(x);
    case OP_EXP:
        return LIBM(exp);
    case OP_LOG:
        return LIBM(log);
    case OP_SQRT:
        return sqrt(x);
    case OP_RSQRT:
        return 1 / number_real(out, sqrt(x)).re;
    case OP_SIN:
        return LIBM(sin);
    case OP_COS:
        return LIBM(cos);
    case OP_TANH:
        return LIBM(tanh);
    case OP_ERF:
        return LIBM(erf);
    case OP_SIGMOID:
        return sigmoid(out, x);
    case OP_RELU:
        return x < 0 ? 0 : x;
    case OP_GELU:
        return gelu(out, x);
    }
    UNREACHABLE(); /* not of one real operand */
}

static double real_binary(Op op, DType out, double x, double y)
{
    switch ((int)op) {
    case OP_ADD:
        return x + y;
    case OP_SUB:
        return x - y;
    case OP_MUL:
        return x * y;
    case OP_SCALE:
        return x == 0 ? 0 : x * y;
    case OP_DIV:
        return x / y;
    case OP_POW:
        return is_single(out) ? (double)powf((float)x, (float)y) : pow(x, y);
    case OP_MIN:
        return x < y || isnan(x) ? x : y;
    case OP_MAX:
        return x > y || isnan(x) ? x : y;
    }
    UNREACHABLE(); /* not of two real operands */
}

/* ---- complex ---- */

/* Not re + im * I, which mixes the parts when one is infinite; CMPLX is missing with some
 * compilers. */
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

#define LIBM_C(fn) (single ? (double complex)fn##f((float complex)x) : fn(x))

static double complex complex_op(Op op, DType t, double complex x, double complex y)
{
    bool single = is_single(t);
    switch ((int)op) {
    case OP_NEG:
        return -x;
    case OP_EXP:
        return LIBM_C(cexp);
    case OP_LOG:
        return LIBM_C(clog);
    case OP_SQRT:
        return LIBM_C(csqrt);
    case OP_RSQRT:
        return complex_div(t, 1, LIBM_C(csqrt));
    case OP_SIN:
        return LIBM_C(csin);
    case OP_COS:
        return LIBM_C(ccos);
    case OP_TANH:
        return LIBM_C(ctanh);
    case OP_CONJ:
        return conj(x);
    case OP_ADD:
        return x + y;
    case OP_SUB:
        return x - y;
    case OP_MUL:
        return complex_mul(t, x, y);
    case OP_SCALE:
        return x == 0 ? 0 : complex_mul(t, x, y);
    case OP_DIV:
        return complex_div(t, x, y);
    case OP_POW:
        return single ? (double complex)cpowf((float complex)x, (float complex)y) : cpow(x, y);
    }
    UNREACHABLE(); /* by the op table no other op takes complex numbers */
}

/* ---- comparisons ---- */

static int order_of(Number x, Number y)
{
    if (dtype_is_int(x.dtype) || x.dtype == DTYPE_BOOL) {
        return x.i < y.i ? -1 : x.i > y.i;
    }
    return x.re < y.re ? -1 : x.re > y.re ? 1 : x.re == y.re && x.im == y.im ? 0 : 2;
}

/* ---- any type ---- */

static Number map_number(Op op, DType out, const Number *arg)
{
    uint32_t n = (uint32_t)op_info(op)->arity;
    Number x = arg[0], y = n > 1 ? arg[1] : arg[0];
    if (dtype_is_complex(x.dtype)) {
        return number_complex(out, complex_op(op, x.dtype, complex_of(x), complex_of(y)));
    }
    if (dtype_is_int(x.dtype)) {
        return map_int(op, out, x.i, y.i);
    }
    return number_real(out,
                       n > 1 ? real_binary(op, out, x.re, y.re) : real_unary(op, out, x.re));
}

static Number map_abs(DType out, Number x)
{
    if (x.dtype == DTYPE_C64) {
        return number_real(out, (double)cabsf((float complex)complex_of(x)));
    }
    if (x.dtype == DTYPE_C128) {
        return number_real(out, cabs(complex_of(x)));
    }
    return map_number(OP_ABS, out, &x);
}

static Number number_bool(bool v)
{
    return (Number){.dtype = DTYPE_BOOL, .i = v};
}

Number op_value(Op op, DType out, const Number *arg)
{
    switch (op) {
    case OP_COPY:
        return arg[0];
    case OP_CAST:
        return number_cast(arg[0], out);
    case OP_ABS:
        return map_abs(out, arg[0]);
    case OP_RE:
        return dtype_is_complex(arg[0].dtype) ? number_real(out, arg[0].re) : arg[0];
    case OP_IM:
        return dtype_is_complex(arg[0].dtype) ? number_real(out, arg[0].im)
                                              : number_int(out, 0);
    case OP_CONJ:
        return dtype_is_complex(arg[0].dtype) ? map_number(op, out, arg) : arg[0];
    case OP_NOT:
        return number_bool(arg[0].i == 0);
    case OP_AND:
        return number_bool(arg[0].i != 0 && arg[1].i != 0);
    case OP_OR:
        return number_bool(arg[0].i != 0 || arg[1].i != 0);
    case OP_LT:
        return number_bool(order_of(arg[0], arg[1]) == -1);
    case OP_LE:
        return number_bool(order_of(arg[0], arg[1]) <= 0);
    case OP_GT:
        return number_bool(order_of(arg[0], arg[1]) == 1);
    case OP_GE:
        return number_bool(order_of(arg[0], arg[1]) == 1 || order_of(arg[0], arg[1]) == 0);
    case OP_EQ:
        return number_bool(order_of(arg[0], arg[1]) == 0);
    case OP_NE:
        return number_bool(order_of(arg[0], arg[1]) != 0);
    case OP_SELECT:
        return arg[0].i != 0 ? arg[1] : arg[2];
    case OP_NEG:
    case OP_EXP:
    case OP_LOG:
    case OP_SQRT:
    case OP_RSQRT:
    case OP_SIN:
    case OP_COS:
    case OP_TANH:
    case OP_ERF:
    case OP_SIGMOID:
    case OP_RELU:
    case OP_GELU:
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_POW:
    case OP_MIN:
    case OP_MAX:
    case OP_SCALE:
        return map_number(op, out, arg);
    case OP_INPUT:
    case OP_CONST:
    case OP_EXTENT:
    case OP_EINSUM:
    case OP_SUM:
    case OP_PROD:
    case OP_RMIN:
    case OP_RMAX:
    case OP_ANY:
    case OP_ALL:
    case OP_COUNT:
        break;
    }
    UNREACHABLE();
}

Number op_fold(Op op, DType acc, Number a, Number x)
{
    Number two[2] = {a, x};
    switch ((int)op) {
    case OP_EINSUM:
    case OP_SUM:
        return op_value(acc == DTYPE_BOOL ? OP_OR : OP_ADD, acc, two);
    case OP_PROD:
        return op_value(acc == DTYPE_BOOL ? OP_AND : OP_MUL, acc, two);
    case OP_RMIN:
    case OP_RMAX:
        two[0] = x; /* the new one first: a NaN among either wins */
        two[1] = a;
        return op_value(op == OP_RMIN ? OP_MIN : OP_MAX, acc, two);
    case OP_ANY:
        return op_value(OP_OR, acc, two);
    case OP_ALL:
        return op_value(OP_AND, acc, two);
    }
    UNREACHABLE(); /* no other op folds */
}
