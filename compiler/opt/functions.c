/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of f32 that a machine has not, by those that it has:
 *
 *     round(x)   |x| + 2^23 - 2^23, with the sign of x, where |x| < 2^23; else x, which is whole (or no number)
 *     floor(x)   r = round(x), less 1 where r > x             ceil(x)    r, and 1 where r < x
 *     finite(x)  0 where |x| is infinite, else x
 *     exp2(x)    exp(x * log 2)                               log2(x)    log(x) * (1 / log 2)
 *     expm1(x)   the Taylor polynomial of degree 7 where |x| < 1/4 (its error is below 2^-29 of x); else exp(x) - 1
 *     log1p(x)   2 artanh(s), s = x / (2 + x), by a polynomial of degree 9 in s there (below 2^-31); else log(1 + x)
 *     atan(x)    a polynomial of degree 8 in t^2, times t, of t = |x|, or of 1 / |x| and taken from pi / 2 where |x| > 1 (its error is below
 *                2^-25); with the sign of x
 *     mod(x, y)  r = x less whole multiples of 2^11 y, to the nearest, then of y; r + y where it has not the sign of y. A multiple q, to 2^11,
 *                of y = upper + lower, of 12 digits each, is taken away in two parts: q * upper and q * lower have no more than 24 digits,
 *                and what is left is less than 2 y, and a multiple of the last digit of y, so nothing is rounded. For |x / y| up to 2^22.
 *     atan2(y, x)    the same of the smaller magnitude over the larger one, taken from pi where x < 0; -0 counts as 0
 *
 * round, floor, ceil, finite and mod are exact; the others have the accuracy of the machine's exp and log, of exp2 also the rounding of its
 * argument, 2^-24 |x|. */
#include "opt/opt.h"

#include <math.h>

#include "opt/rewrite.h"

#define WHOLE    8388608.0 /* 2^23: f32 from here on are whole */
#define MULTIPLE 2048.0    /* 2^11 */
#define SPLIT    4097.0    /* 2^12 + 1: T. J. Dekker's splitting of 24 digits into 12 and 12 */
#define NEAR     0.25
#define LOG_OF_2 0.69314718055994530942
#define PI       3.14159265358979323846
#define FAR                                                                                    \
    0x1p42 /* reciprocals of larger numbers are none that a machine must have: atan is pi / 2 there */

/* A value over the labels of the spec, and how those read it. */
typedef struct Read {
    NodeRef node;
    Access at;
} Read;

typedef struct Writer {
    Rewriter *r;
    NodeSpec *s;
} Writer;

static Read operand_at(const Writer *w, uint32_t k)
{
    return (Read){w->s->operand[k], w->s->access[k]};
}

static Read operand_of(const Writer *w)
{
    return operand_at(w, 0);
}

static Read number(const Writer *w, double v)
{
    return (Read){graph_const(w->r->to, number_real(w->s->dtype, v), w->s->span), {0, NULL}};
}

/* The spec becomes `op` of these. */
static void become(const Writer *w, NodeSpec *s, Op op, DType t, uint32_t n, const Read *x)
{
    NodeRef *operand = ARENA_ARRAY(&w->r->scratch, n, NodeRef);
    Access *access = ARENA_ARRAY(&w->r->scratch, n, Access);
    for (uint32_t k = 0; k < n; k++) {
        operand[k] = x[k].node;
        access[k] = x[k].at;
    }
    s->dtype = t;
    (void)spec_set(w->r, s, op, n, operand, access);
}

static Read map_of(const Writer *w, Op op, DType t, uint32_t n, const Read *x)
{
    NodeSpec s = *w->s;
    Access own = access_of(&w->r->scratch, s.rank, s.out);
    s.name = NULL;
    s.keep = false;
    become(w, &s, op, t, n, x);
    return (Read){rewrite_add(w->r, &s), own};
}

static Read one(const Writer *w, Op op, Read x)
{
    return map_of(w, op, w->s->dtype, 1, &x);
}

static Read two(const Writer *w, Op op, Read x, Read y)
{
    const Read both[2] = {x, y};
    return map_of(w, op, w->s->dtype, 2, both);
}

static Read is(const Writer *w, Op op, Read x, Read y)
{
    const Read both[2] = {x, y};
    return map_of(w, op, DTYPE_BOOL, 2, both);
}

static Read either(const Writer *w, Read c, Read x, Read y)
{
    const Read three[3] = {c, x, y};
    return map_of(w, OP_SELECT, w->s->dtype, 3, three);
}

static void become_either(const Writer *w, Read c, Read x, Read y)
{
    const Read three[3] = {c, x, y};
    become(w, w->s, OP_SELECT, w->s->dtype, 3, three);
}

static void become_two(const Writer *w, Op op, Read x, Read y)
{
    const Read both[2] = {x, y};
    become(w, w->s, op, w->s->dtype, 2, both);
}

/* Nodes are made one after the other, in an order that no compiler chooses: what makes one is no argument beside another. */

/* c[0] + c[1] x + ... of n coefficients. */
static Read polynomial(const Writer *w, Read x, uint32_t n, const double *c)
{
    Read sum = number(w, c[n - 1]);
    for (uint32_t k = n - 1; k-- > 0;) {
        Read term = two(w, OP_MUL, sum, x), next = number(w, c[k]);
        sum = two(w, OP_ADD, term, next);
    }
    return sum;
}

static Read size_below(const Writer *w, double most)
{
    Read size = one(w, OP_ABS, operand_of(w)), end = number(w, most);
    return is(w, OP_LT, size, end);
}

static Read rounded(const Writer *w)
{
    Read x = operand_of(w), whole = number(w, WHOLE), zero = number(w, 0);
    Read more = two(w, OP_ADD, one(w, OP_ABS, x), whole);
    Read size = two(w, OP_SUB, more, whole), other = one(w, OP_NEG, size);
    Read below = is(w, OP_LT, x, zero), near = either(w, below, other, size);
    return either(w, size_below(w, WHOLE), near, x);
}

static void write_round(const Writer *w)
{
    Read x = rounded(w);
    become(w, w->s, OP_COPY, w->s->dtype, 1, &x);
}

static void write_floor(const Writer *w)
{
    bool down = w->s->op == OP_FLOOR;
    Read x = operand_of(w), whole = rounded(w), step = number(w, 1);
    Read beyond = is(w, down ? OP_GT : OP_LT, whole, x);
    Read next = two(w, down ? OP_SUB : OP_ADD, whole, step);
    become_either(w, beyond, next, whole);
}

static void write_finite(const Writer *w)
{
    Read x = operand_of(w), size = one(w, OP_ABS, x);
    Read infinity = number(w, (double)INFINITY), zero = number(w, 0);
    become_either(w, is(w, OP_EQ, size, infinity), zero, x);
}

static void write_exp2(const Writer *w)
{
    Read x = two(w, OP_MUL, operand_of(w), number(w, LOG_OF_2));
    become(w, w->s, OP_EXP, w->s->dtype, 1, &x);
}

static void write_log2(const Writer *w)
{
    Read log = one(w, OP_LOG, operand_of(w)), by = number(w, 1 / LOG_OF_2);
    become_two(w, OP_MUL, log, by);
}

static void write_expm1(const Writer *w)
{
    static const double c[] = {1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
    Read x = operand_of(w), is_near = size_below(w, NEAR);
    Read near = two(w, OP_MUL, polynomial(w, x, sizeof c / sizeof c[0], c), x);
    Read exp = one(w, OP_EXP, x), less = number(w, 1), far = two(w, OP_SUB, exp, less);
    become_either(w, is_near, near, far);
}

static void write_log1p(const Writer *w)
{
    static const double c[] = {2, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9};
    Read x = operand_of(w), is_near = size_below(w, NEAR);
    Read part = two(w, OP_DIV, x, two(w, OP_ADD, x, number(w, 2)));
    Read square = two(w, OP_MUL, part, part);
    Read near = two(w, OP_MUL, polynomial(w, square, sizeof c / sizeof c[0], c), part);
    Read far = one(w, OP_LOG, two(w, OP_ADD, x, number(w, 1)));
    become_either(w, is_near, near, far);
}

/* The arc of a tangent from 0 to 1. */
static Read arc_of(const Writer *w, Read t)
{
    static const double c[] = {
        0.9999999847670032,   -0.33333073349661146, 0.19992619439645218,
        -0.14203644672574386, 0.10640934415201801,  -0.07504294746605389,
        0.04269151608044025,  -0.01606862416362103, 0.0028498878173928155};
    Read square = two(w, OP_MUL, t, t);
    return two(w, OP_MUL, polynomial(w, square, sizeof c / sizeof c[0], c), t);
}

/* from - x where it holds, else x. */
static Read turned(const Writer *w, Read holds, double from, Read x)
{
    Read begin = number(w, from), rest = two(w, OP_SUB, begin, x);
    return either(w, holds, rest, x);
}

static void become_signed(const Writer *w, Read sign_of, Read x)
{
    Read zero = number(w, 0), below = is(w, OP_LT, sign_of, zero), other = one(w, OP_NEG, x);
    become_either(w, below, other, x);
}

static void write_atan(const Writer *w)
{
    Read x = operand_of(w), size = one(w, OP_ABS, x), end = number(w, 1), far = number(w, FAR);
    Read steep = is(w, OP_GT, size, end), most = two(w, OP_MIN, size, far);
    Read inverse = two(w, OP_DIV, end, most), t = either(w, steep, inverse, size);
    become_signed(w, x, turned(w, steep, PI / 2, arc_of(w, t)));
}

static void write_atan2(const Writer *w)
{
    Read y = operand_at(w, 0), x = operand_at(w, 1), zero = number(w, 0), end = number(w, 1);
    Read up = one(w, OP_ABS, y), along = one(w, OP_ABS, x);
    Read most = two(w, OP_MAX, up, along), least = two(w, OP_MIN, up, along);
    Read none = is(w, OP_EQ, most, zero), by = either(w, none, end, most);
    Read steep = is(w, OP_GT, up, along), left = is(w, OP_LT, x, zero);
    Read arc = turned(w, steep, PI / 2, arc_of(w, two(w, OP_DIV, least, by)));
    become_signed(w, y, turned(w, left, PI, arc));
}

/* The upper 12 digits of a value, and the others. */
static void split(const Writer *w, Read x, Read *upper, Read *lower)
{
    const Node *n = graph_node(w->r->to, x.node);
    if (n->op == OP_CONST) { /* rounded here */
        float c = (float)SPLIT * (float)n->value.re, up = c - (c - (float)n->value.re);
        *upper = number(w, (double)up);
        *lower = number(w, n->value.re - (double)up);
        return;
    }
    Read c = two(w, OP_MUL, x, number(w, SPLIT));
    *upper = two(w, OP_SUB, c, two(w, OP_SUB, c, x));
    *lower = two(w, OP_SUB, x, *upper);
}

/* x less the multiple of y * by that is nearest to it. */
static Read less_multiples(const Writer *w, Read x, Read inverse, Read upper, Read lower,
                           double by)
{
    Read part = two(w, OP_MUL, inverse, number(w, 1 / by)), whole = number(w, 1.5 * WHOLE);
    Read near = two(w, OP_ADD, two(w, OP_MUL, x, part), whole);
    Read q = two(w, OP_MUL, two(w, OP_SUB, near, whole), number(w, by));
    Read rest = two(w, OP_SUB, x, two(w, OP_MUL, q, upper));
    return two(w, OP_SUB, rest, two(w, OP_MUL, q, lower));
}

static void write_mod(const Writer *w)
{
    Read x = operand_at(w, 0), y = operand_at(w, 1), zero = number(w, 0), upper, lower;
    Read inverse = two(w, OP_DIV, number(w, 1), y);
    split(w, y, &upper, &lower);
    Read rest = less_multiples(w, x, inverse, upper, lower, MULTIPLE);
    rest = less_multiples(w, rest, inverse, upper, lower, 1);
    Read along = two(w, OP_MUL, rest, one(w, OP_SIGN, y));
    Read below = is(w, OP_LT, along, zero), next = two(w, OP_ADD, rest, y);
    become_either(w, below, next, rest);
}

static Verdict write_function(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    const Writer w = {r, s};
    (void)done;
    static void (*const writers[OP_COUNT])(const Writer *) = {
        [OP_ROUND] = write_round, [OP_FLOOR] = write_floor,   [OP_CEIL] = write_floor,
        [OP_EXP2] = write_exp2,   [OP_LOG2] = write_log2,     [OP_EXPM1] = write_expm1,
        [OP_LOG1P] = write_log1p, [OP_FINITE] = write_finite, [OP_ATAN] = write_atan,
        [OP_ATAN2] = write_atan2, [OP_MOD] = write_mod,
    };
    if (s->dtype != DTYPE_F32 || writers[s->op] == NULL) {
        return RULE_NO;
    }
    writers[s->op](&w);
    return RULE_SPEC;
}

static const Rule rules[] = {{"function-by-others", OP_COUNT, write_function}};

Graph *opt_functions(Ctx *ctx, Arena *arena, const Graph *g)
{
    return rewrite_graph(ctx, arena, g, rules, 1);
}
