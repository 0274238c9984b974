/* SPDX-License-Identifier: Apache-2.0 */
/* See quotient.h. */
#include "lower/quotient.h"

#include <math.h>

#define EXACT 16777216.0 /* 2^24 */
#define ROUND 12582912.0 /* 1.5 * 2^23: sums with it are whole, for numbers up to 2^22 */
#define WHOLE 8388608.0  /* 2^23: f32 from here on are whole */

static const Expr *number(Arena *a, double v)
{
    return expr_const(a, number_real(DTYPE_F32, v));
}

static const Expr *make(Arena *a, Op op, const Expr *x, const Expr *y)
{
    const Expr *both[2] = {x, y};
    return expr_op(a, op, DTYPE_F32, y == NULL ? 1 : 2, both);
}

/* 1 where it holds, else 0. */
static const Expr *is(Arena *a, Op op, const Expr *x, const Expr *y)
{
    const Expr *both[2] = {x, y};
    return expr_cast(a, expr_op(a, op, DTYPE_BOOL, 2, both), DTYPE_F32);
}

static const Expr *rounded(Arena *a, const Expr *x, double by)
{
    return make(a, OP_SUB, make(a, OP_ADD, x, number(a, by)), number(a, by));
}

static double size(Interval v)
{
    return fmax(fabs(v.lo), fabs(v.hi));
}

typedef struct Quotient {
    const Expr *q, *r; /* rounded down, and what is left: 0 <= r < y */
} Quotient;

/* Of y > 0. By a number y, (x + 1/2) / y - 1/2 is as near to half of a whole number as 1 / (2 y), and is off by less where x is small:
 * three roundings of |x| / y, 2^-24 each, and one of 1/2. */
static Quotient divide(Arena *a, const Expr *x, const Expr *y, Interval of_x)
{
    const Expr *zero = number(a, 0);
    double by = y->kind == EXPR_CONST ? y->value.re : 0;
    if (by > 0 && 6 * size(of_x) + by < EXACT) {
        const Expr *half = number(a, 0.5 / by - 0.5);
        const Expr *q = rounded(a, make(a, OP_ADD, make(a, OP_DIV, x, y), half), ROUND);
        return (Quotient){q, make(a, OP_SUB, x, make(a, OP_MUL, q, y))};
    }
    const Expr *q = rounded(a, make(a, OP_DIV, x, y), ROUND);
    const Expr *r = make(a, OP_SUB, x, make(a, OP_MUL, q, y));
    const Expr *below = is(a, OP_LT, r, zero), *beyond = is(a, OP_GE, r, y);
    const Expr *less = make(a, OP_SUB, beyond, below);
    return (Quotient){make(a, OP_ADD, q, less), make(a, OP_SUB, r, make(a, OP_MUL, less, y))};
}

const Expr *quotient_of(Arena *a, Op op, const Expr *x, const Expr *y, Interval of_x,
                        Interval of_y)
{
    if (size(of_x) > ROUND / 3 || size(of_x) + 2 * fmax(size(of_y), 1) > EXACT) {
        return NULL;
    }
    const Expr *sign = of_y.lo > 0 ? NULL : make(a, OP_SIGN, y, NULL), *d = y;
    if (y->kind == EXPR_CONST) {
        sign = of_y.lo > 0 ? NULL : number(a, of_y.lo < 0 ? -1 : 0);
        d = number(a, of_y.lo == 0 ? 1 : size(of_y));
    } else if (of_y.lo <= 0) {
        d = of_y.lo < 0 ? make(a, OP_ABS, y, NULL) : y;
        d = of_y.hi >= 0 ? make(a, OP_MAX, d, number(a, 1)) : d;
    }
    if (op == OP_DIV) {
        bool positive = of_x.lo >= 0;
        Quotient by = divide(a, positive ? x : make(a, OP_ABS, x, NULL), d, of_x);
        const Expr *q = positive ? by.q : make(a, OP_MUL, by.q, make(a, OP_SIGN, x, NULL));
        return sign == NULL ? q : make(a, OP_MUL, q, sign);
    }
    bool turned = of_y.lo < 0;
    Quotient by = divide(a, turned ? make(a, OP_MUL, x, sign) : x, d, of_x);
    return sign == NULL ? by.r : make(a, OP_MUL, by.r, sign);
}

const Expr *quotient_nearest(Arena *a, const Expr *x, double by)
{
    return rounded(a, make(a, OP_MUL, x, number(a, 1 / by)), ROUND);
}

const Expr *quotient_wrapped(Arena *a, const Expr *x, Interval of_x, int bits, bool is_signed)
{
    double by = ldexp(1, is_signed ? bits + 1 : bits), half = 0.5 / by - (is_signed ? 0 : 0.5);
    if (size(of_x) >
        ROUND / 3) { /* less whole turns, to the nearest: half of one at most is left */
        const Expr *near = quotient_nearest(a, x, by);
        x = make(a, OP_SUB, x, make(a, OP_MUL, near, number(a, by)));
    }
    const Expr *turns = make(a, OP_ADD, make(a, OP_MUL, x, number(a, 1 / by)), number(a, half));
    return make(a, OP_SUB, x, make(a, OP_MUL, rounded(a, turns, ROUND), number(a, by)));
}

const Expr *quotient_truncated(Arena *a, const Expr *x, Interval of_x, Interval within)
{
    const Expr *zero = number(a, 0);
    if (!(of_x.lo >= within.lo && of_x.hi <= within.hi)) {
        x = make(a, OP_MIN, make(a, OP_MAX, x, number(a, within.lo)), number(a, within.hi));
        of_x = (Interval){fmax(of_x.lo, within.lo), fmin(of_x.hi, within.hi)};
    }
    const Expr *far = make(a, OP_ABS, x, NULL), *near = rounded(a, far, WHOLE);
    near = make(a, OP_SUB, near, is(a, OP_GT, near, far));
    if (!(size(of_x) < WHOLE)) {
        const Expr *both[2] = {far, number(a, WHOLE)};
        const Expr *three[3] = {expr_op(a, OP_LT, DTYPE_BOOL, 2, both), near, far};
        near = expr_op(a, OP_SELECT, DTYPE_F32, 3, three);
    }
    near = of_x.lo >= 0 ? near : make(a, OP_MUL, near, make(a, OP_SIGN, x, NULL));
    const Expr *both[2] = {x, x};
    const Expr *three[3] = {expr_op(a, OP_EQ, DTYPE_BOOL, 2, both), near, zero};
    return expr_op(a, OP_SELECT, DTYPE_F32, 3, three);
}
