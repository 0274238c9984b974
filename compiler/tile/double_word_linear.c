/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are made of sums by addition, and times numbers, as double words. See double_word.h. */
#include <math.h>

#include "tile/double_word.h"

static bool is_power_of_two(double x)
{
    int e = 0;
    double m = fabs(frexp(x, &e));
    return !(m < 0.5) && !(m > 0.5) && e > -60 && e < 60;
}

static const Expr *scaled(Words *w, const Expr *x, double by)
{
    return by < 1 || by > 1 ? words_two(w, OP_MUL, x, words_number(w, by)) : x;
}

static bool reads_sums(const Words *w, const Expr *e)
{
    ExprWalk walk;
    bool reads = false;
    for (const Expr *x = load_first(&walk, e); x != NULL; x = load_next(&walk)) {
        reads |= w->wide[x->buf];
    }
    return reads;
}

/* A value over the indices of the statement at hand, in a tile. */
static const Expr *tile(Words *w, const char *hint, const Expr *value)
{
    const Stmt *s = w->now;
    BufRef buf = words_tile_of(w, hint, s->n_index, s->index);
    const Affine *at = words_at(w, s->n_index, s->index);
    words_set(w, s->n_index, s->index, buf, at, OP_COPY, value);
    return words_load(w, buf, at);
}

/* x = half[0] + half[1], of 12 bits each (G. W. Veltkamp, in T. J. Dekker, "A floating-point technique for extending the available
 * precision", Numer. Math. 18, 1971): products of such halves are exact. */
static void halve(Words *w, const Expr *x, const Expr **half)
{
    const Expr *t = tile(w, "t", words_two(w, OP_MUL, x, words_number(w, 4097)));
    half[0] = tile(w, "upper", words_two(w, OP_SUB, t, words_two(w, OP_SUB, t, x)));
    half[1] = tile(w, "lower", words_two(w, OP_SUB, x, half[0]));
}

/* The upper 12 bits of a number. */
static double upper(double x)
{
    int e = 0;
    double m = frexp(x, &e);
    return ldexp(nearbyint(ldexp(m, 12)), e - 12);
}

static void factor_parts(Words *w, const Expr *factor, double by, const Expr **part)
{
    if (factor->kind == EXPR_CONST) {
        double left = by * factor->value.re;
        for (int i = 0; i < 3; i++) {
            double x = i < 2 ? upper(left) : left;
            part[i] = fabs(x) > 0 ? words_number(w, x) : NULL;
            left -= x;
        }
        return;
    }
    halve(w, tile(w, "factor", scaled(w, words_term(w, factor), by)), part);
    part[2] = NULL;
}

static const Expr *plus_product(Words *w, const Expr *sum, const Expr *x, const Expr *y)
{
    const Expr *xy = y == NULL ? NULL : words_two(w, OP_MUL, x, y);
    return xy == NULL ? sum : sum == NULL ? xy : words_two(w, OP_ADD, sum, xy);
}

/* The same number, with a lower word that is less than half of the last place of the upper one. */
static DoubleWord normalised(Words *w, DoubleWord y)
{
    const Stmt *s = w->now;
    DoubleWord z = words_new(w, s->n_index, s->index);
    words_begin(w, s->n_index, s->index, z, words_load(w, y.hi, y.at), NULL);
    words_add(w, s->n_index, s->index, z, words_load(w, y.lo, y.at), NULL);
    return z;
}

/* x += by * factor * y */
static void add_product(Words *w, DoubleWord x, DoubleWord y, const Expr *factor, double by)
{
    const Stmt *s = w->now;
    const Expr *half[2], *f[3];
    y = normalised(w, y);
    halve(w, words_load(w, y.hi, y.at), half);
    factor_parts(w, factor, by, f);
    if (f[0] == NULL) {
        return; /* times 0 */
    }
    const Expr *lo = words_load(w, y.lo, y.at), *rest = words_two(w, OP_MUL, lo, f[0]);
    rest = plus_product(w, plus_product(w, rest, lo, f[1]), half[1], f[2]);
    rest = plus_product(w, plus_product(w, rest, half[1], f[1]), half[0], f[2]);
    for (int i = 0; i < 3; i++) {
        const Expr *by_this = i == 1 ? f[1] : f[0];
        if (by_this != NULL) {
            const Expr *exact =
                tile(w, "product", words_two(w, OP_MUL, half[i == 2 ? 1 : 0], by_this));
            words_add(w, s->n_index, s->index, x, exact, i == 2 ? rest : NULL);
        }
    }
}

/* A value that is made of sums, as a double word. */
static DoubleWord linear(Words *w, const Expr *e, uint32_t *sums)
{
    DoubleWord y = words_new(w, w->now->n_index, w->now->index);
    words_zero(w, w->now->n_index, w->now->index, y);
    words_add_linear(w, y, e, 1.0, sums);
    return y;
}

/* x += by * y * z: the upper word of z is a factor, and so is the lower one, of the upper word of y alone. */
static void add_product_of_sums(Words *w, DoubleWord x, DoubleWord y, DoubleWord z, double by)
{
    y = normalised(w, y);
    z = normalised(w, z);
    add_product(w, x, y, words_load(w, z.hi, z.at), by);
    const Expr *rest =
        words_two(w, OP_MUL, words_load(w, y.hi, y.at), words_load(w, z.lo, z.at));
    words_add(w, w->now->n_index, w->now->index, x, tile(w, "rest", scaled(w, rest, by)), NULL);
}

/* A factor of a product that is no sum, and the other one; null: there is none. */
static const Expr *find_factor(const Words *w, const Expr *e, const Expr **other)
{
    for (uint32_t i = 0; i < 2 && e->kind == EXPR_OP && e->op == OP_MUL; i++) {
        if (!reads_sums(w, e->arg[i])) {
            *other = e->arg[1 - i];
            return e->arg[i];
        }
    }
    return NULL;
}

/* 0 + x, which the graph has for a sum of one term. */
static bool is_one_term(const Words *w, const Expr *e)
{
    return e->kind == EXPR_OP && e->op == OP_ADD && e->arg[0]->kind == EXPR_CONST &&
           !(fabs(e->arg[0]->value.re) > 0) && !reads_sums(w, e->arg[1]);
}

void words_add_linear(Words *w, DoubleWord x, const Expr *e, double by, uint32_t *sums)
{
    const Stmt *s = w->now;
    const Expr *other = NULL, *factor = find_factor(w, e, &other);
    bool op = e->kind == EXPR_OP;
    if (e->kind == EXPR_LOAD && w->wide[e->buf] && !w->direct[e->buf]) {
        DoubleWord of = words_of(w, e->buf, e->at);
        words_add(w, s->n_index, s->index, x, scaled(w, words_load(w, of.hi, of.at), by),
                  scaled(w, words_load(w, of.lo, of.at), by));
        (*sums)++;
    } else if (is_one_term(w, e)) {
        const Expr *term = scaled(w, words_term(w, e->arg[1]), by);
        words_add(w, s->n_index, s->index, x, tile(w, "term", term), NULL);
        (*sums)++;
    } else if (e->kind == EXPR_CONST) {
        double value = by * e->value.re, hi = (double)(float)value;
        words_add(w, s->n_index, s->index, x, words_number(w, hi), words_number(w, value - hi));
    } else if (op && (e->op == OP_ADD || e->op == OP_SUB)) {
        words_add_linear(w, x, e->arg[0], by, sums);
        words_add_linear(w, x, e->arg[1], e->op == OP_SUB ? -by : by, sums);
    } else if (op && e->op == OP_NEG) {
        words_add_linear(w, x, e->arg[0], -by, sums);
    } else if (factor != NULL && factor->kind == EXPR_CONST &&
               is_power_of_two(factor->value.re)) {
        words_add_linear(w, x, other, by * factor->value.re, sums);
    } else if (factor != NULL) {
        add_product(w, x, linear(w, other, sums), factor, by);
    } else if (op && e->op == OP_MUL) {
        DoubleWord y = linear(w, e->arg[0], sums), z = linear(w, e->arg[1], sums);
        add_product_of_sums(w, x, y, z, by);
    } else if (op && e->op == OP_CAST && e->arg[0]->dtype != DTYPE_F64) {
        words_add(w, s->n_index, s->index, x, tile(w, "term", scaled(w, words_term(w, e), by)),
                  NULL);
    } else {
        words_refuse(w, "it is computed in f64: only sums, added, subtracted and multiplied, "
                        "can be");
    }
}
