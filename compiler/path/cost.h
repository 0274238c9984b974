/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model of the search: the cost of one step from the log2 sizes of the tensors about it, as a log2. A
 * tree costs the sum of its steps; every objective is of this form, so that each strategy serves
 * all. The size objective has a score of its own, the largest tensor and then the multiply-adds; its steps cost a power
 * of the result, which only says where annealing moves. The exact account of the chosen tree is path/account.c's. */
#ifndef PATH_COST_H
#define PATH_COST_H

#include <math.h>

#include "path/net.h"

#define SIZE_POWER 4.0

/* A sum of numbers given by their log2. */
typedef struct LogSum {
    double top, rest; /* 2^top * rest */
} LogSum;

#define LOGSUM_ZERO ((LogSum){-INFINITY, 0.0})

static inline void logsum_add(LogSum *s, double x)
{
    if (x <= s->top) {
        s->rest += s->top > -1e300 ? exp2(x - s->top) : 1.0;
    } else {
        s->rest = (s->rest > 0.0 ? s->rest * exp2(s->top - x) : 0.0) + 1.0;
        s->top = x;
    }
}

static inline double logsum_value(LogSum s)
{
    return s.rest > 0.0 ? s.top + log2(s.rest) : -INFINITY;
}

/* log2(2^x + 2^y) by a table: good to 1e-6, the same on every machine. The rough one is good to
 * 1e-4 and stays in the nearest cache: for the energies of annealing. */
#define SOFT_STEPS  4096
#define ROUGH_STEPS 512
#define SOFT_RANGE  24.0
const double *soft_table_new(Arena *arena, int steps);

static inline double soft_look_up(const double *table, int steps, double x, double y)
{
    double hi = x > y ? x : y, lo = x < y ? x : y;
    double d = hi - lo;
    if (d >= SOFT_RANGE) {
        return hi;
    }
    double at = d * (steps / SOFT_RANGE);
    int i = (int)at;
    double f = at - (double)i;
    return hi + (table[i] + f * (table[i + 1] - table[i]));
}

typedef struct Model {
    PathObjective objective;
    double factor; /* log2 */
    double limit;  /* log2 of the largest tensor allowed; INFINITY: none */
    const double *soft, *rough;
} Model;

static inline double soft_max(const Model *m, double x, double y)
{
    return soft_look_up(m->soft, SOFT_STEPS, x, y);
}

static inline double rough_max(const Model *m, double x, double y)
{
    return soft_look_up(m->rough, ROUGH_STEPS, x, y);
}

/* u: all labels of the operands; a, b: the operands; r: the result. */
static inline double model_step(const Model *m, double u, double a, double b, double r)
{
    switch (m->objective) {
    case PATH_FLOPS:
        return u;
    case PATH_SIZE:
        return soft_max(m, r * SIZE_POWER, u);
    case PATH_WRITE:
        return r;
    case PATH_COMBO:
        return soft_max(m, u, r + m->factor);
    case PATH_ROOFLINE: {
        double moved = soft_max(m, soft_max(m, a, b), r) + m->factor;
        return u > moved ? u : moved;
    }
    }
    return u;
}

/* No step over these labels costs less. */
static inline double model_least(const Model *m, double u)
{
    return m->objective == PATH_WRITE ? -INFINITY : u;
}

/* What a step adds to the score of its tree. */
static inline double model_part(const Model *m, double step, double u)
{
    return m->objective == PATH_SIZE ? u : step;
}

/* Of a whole tree. Smaller `over` first, then smaller `first`, then smaller `cost`. */
typedef struct Score {
    double over; /* log2 by which the largest tensor exceeds the limit, 0 when it does not */
    double cost;
    double largest;
    double first; /* `largest` where that is the objective, else 0 */
} Score;

static inline Score model_score(const Model *m, LogSum parts, double largest)
{
    double over = largest > m->limit + 1e-9 ? largest - m->limit : 0.0;
    return (Score){over, logsum_value(parts), largest,
                   m->objective == PATH_SIZE ? largest : 0.0};
}

static inline bool score_less(Score x, Score y)
{
    if (x.over < y.over - 1e-9 || x.over > y.over + 1e-9) {
        return x.over < y.over;
    }
    if (x.first < y.first - 1e-9 || x.first > y.first + 1e-9) {
        return x.first < y.first;
    }
    return x.cost < y.cost - 1e-9;
}

#endif
