/* SPDX-License-Identifier: Apache-2.0 */
/* A label as two, so that an instruction fills all partitions, or takes all of what lies in groups of them.
 *
 *     m[q] = max(m[q], n[q]), 256 rows on chip:   m[0:128, 0:2] = max(m[0:128, 0:2], n[0:128, 0:2])
 *     y[i] = 2 * x[i], 12800 in memory:           y[0:128, 0:100] = 2 * x[0:128, 0:100] */
#include "backend/nki/home.h"
#include "backend/nki/statement.h"

#define CUT_LEAST  (2 * NKI_PARTITIONS) /* positions of a label that is cut into rows */
#define ROWS_LEAST 100 /* of the partitions, that are filled by rows without a rest */
#define CUT_GAIN   0.9 /* of the time, at most */

/* Into how many rows so many positions are cut: as many as leave no rest, where these fill most of the partitions. */
int64_t cut_rows_of(int64_t n)
{
    int64_t rows = NKI_PARTITIONS;
    while (rows > ROWS_LEAST && n % rows != 0) {
        rows--;
    }
    return n % rows == 0 ? rows : NKI_PARTITIONS;
}

/* How many of the positions from one step of the outer label to the next. */
static int64_t cut_inner(const Lower *l, LabelCut c)
{
    int64_t n = l->now.full.n[c.label];
    return c.kind == CUT_ROWS ? n / cut_rows_of(n) : NKI_PARTITIONS;
}

void cut_label(Lower *l, LabelCut c)
{
    int64_t inner = cut_inner(l, c), n = l->now.full.n[c.label];
    l->now.cut = c.label;
    l->now.flat = l->now.full.n[c.label] = inner;
    l->now.full.s[l->now.n_labels] = 0;
    l->now.full.n[l->now.n_labels] = n / inner;
}

void cut_end(Lower *l, const Box *full)
{
    l->now.full = *full;
    l->now.flat = 0;
    l->now.cut = 0;
}

static double shape_time(Lower *l, const Stmt *s)
{
    double ns = 0;
    Place dst = lower_target(l, s);
    (void)statement_shape_ns(l, &dst, s->value, statement_labels(l), &ns);
    return ns;
}

/* Does the access lie in whole chunks of the label's rows, which move nothing else? */
static bool lies_in_chunks(const Lower *l, const Place *x, uint32_t label)
{
    const Home *h = &l->home[x->buf];
    bool fits = h->on_chip && x->rank > 0 && x->n_terms == 0 && !psum_has(l, x->buf) &&
                h->rows_each <= 1 && x->label[h->pdim] == (int32_t)label &&
                x->base[h->pdim] % NKI_PARTITIONS == 0;
    for (uint32_t d = 0; d < x->rank && fits; d++) {
        fits = d == h->pdim || x->label[d] != (int32_t)label;
    }
    return fits;
}

/* Is a chunk too little for an instruction of its own? Longer ones overlap with what makes them and what uses them. */
static bool chunk_is_short(const Lower *l, uint32_t label)
{
    int64_t each = 1;
    for (uint32_t i = 0; i < l->now.n_labels; i++) {
        each = i == label ? each : sat_mul(each, l->now.full.n[i]);
    }
    return each <= NKI_LEAST_CYCLES;
}

/* May a label be cut so: does all that moves with it lie in memory, forwards, or in chunks? Of a fold nothing may be left, which would be
 * stored again. */
static bool may_cut(Lower *l, const Stmt *s, LabelCut c)
{
    int64_t n = l->now.full.n[c.label];
    Loads loads = {0};
    Place dst = lower_target(l, s);
    collect_loads(l, s->value, &loads);
    const Expr *next = lower_next_value(l, s);
    if (next != NULL) {
        collect_loads(l, next, &loads);
    }
    bool rows = c.kind == CUT_ROWS, may = n >= CUT_LEAST;
    may &= rows ? place_has(&dst, c.label) || n % cut_rows_of(n) == 0
                : n % NKI_PARTITIONS == 0 && l->now.full.s[c.label] % NKI_PARTITIONS == 0 &&
                      chunk_is_short(l, c.label);
    for (uint32_t i = 0; i <= loads.n && may; i++) {
        const Place *x = i < loads.n ? &loads.at[i] : &dst;
        if (i < loads.n && x->buf == s->dst) {
            continue; /* what the next statement reads */
        }
        if (!place_has(x, c.label)) {
            continue;
        }
        may = rows ? !l->home[x->buf].on_chip : lies_in_chunks(l, x, c.label);
        may &= !l->pair[x->buf] && !l->turn[x->buf].is;
        for (uint32_t d = 0; d < x->rank; d++) {
            may &= place_coef(x, d, c.label) >= 0;
        }
    }
    return may;
}

/* The cut that makes the statement much quicker, if there is one, and how long it takes. */
LabelCut cut_find(Lower *l, const Stmt *s, double *least)
{
    LabelCut best = {CUT_NONE, 0};
    Box full = l->now.full;
    *least = shape_time(l, s);
    if (l->now.part >= 0 || l->now.turned >= 0 || l->now.n_labels + 2 >= PART_LABEL) {
        return best;
    }
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        for (CutKind kind = CUT_ROWS; kind <= CUT_CHUNKS; kind++) {
            LabelCut c = {kind, label};
            if (!may_cut(l, s, c)) {
                continue;
            }
            cut_label(l, c);
            double ns = shape_time(l, s);
            cut_end(l, &full);
            bool better = ns < *least * (best.kind == CUT_NONE ? CUT_GAIN : 1.0);
            best = better ? c : best;
            *least = better ? ns : *least;
        }
    }
    return best;
}
