/* SPDX-License-Identifier: Apache-2.0 */
/* See pairs.h. The triangle of pairs is cut into strips of columns and these into pieces by rows, near squares of which each needs the rows of
 * two sides. Strips and pieces are those of the least cost among limits of work and of rows that are tried; each limit is met with the
 * fewest pieces, by dynamic programming over where strips begin. */
#include "pairs.h"

#include <string.h>

/* What one row more than a square's costs, beside the work of a piece. */
#define ROWS_WEIGHT 0.5

/* Pairs of columns [c0, c1) above the diagonal, and on it. */
static int64_t strip_pairs(int64_t c0, int64_t c1)
{
    int64_t w = c1 - c0;
    return w * c0 + w * (w + 1) / 2;
}

/* The row of pair number q of the strip. */
static int64_t row_of(int64_t c0, int64_t c1, int64_t q)
{
    int64_t w = c1 - c0;
    if (q < w * c0) {
        return q / w;
    }
    int64_t row = c0;
    for (q -= w * c0; q >= c1 - row && row < c1 - 1; row++) {
        q -= c1 - row;
    }
    return row;
}

static PairPiece piece_of(int64_t c0, int64_t c1, int64_t pieces, int64_t k)
{
    int64_t all = strip_pairs(c0, c1);
    PairPiece p = {c0, c1, all * k / pieces, all * (k + 1) / pieces, 0, 0, c0, c1};
    if (p.first >= p.last) {
        return (PairPiece){0};
    }
    p.row_lo = row_of(c0, c1, p.first);
    p.row_hi = row_of(c0, c1, p.last - 1) + 1;
    p.col_lo = p.row_lo > c0 ? p.row_lo : c0;
    if (p.row_hi > p.col_lo) { /* rows that are columns too are needed once */
        p.col_lo = p.row_lo < p.col_lo ? p.row_lo : p.col_lo;
        p.row_lo = p.col_lo;
        p.row_hi = c1;
    }
    return p;
}

static int64_t rows_of(const PairPiece *p)
{
    int64_t rows = p->row_hi - p->row_lo, columns = p->col_hi - p->col_lo;
    return p->row_lo == p->col_lo ? columns : rows + columns;
}

/* The fewest pieces of a strip, `limit` at most, that have at most so much work and so many rows; 0: none. */
static int64_t pieces_within(int64_t c0, int64_t c1, int64_t work, int64_t rows, int64_t limit)
{
    int64_t all = strip_pairs(c0, c1), area = (c1 - c0) * rows;
    area = area < work ? area : work;
    limit = limit < all ? limit : all;
    for (int64_t pieces = (all + area - 1) / area; pieces <= limit; pieces++) {
        int64_t most = 0;
        for (int64_t k = 0; k < pieces && most <= rows; k++) {
            PairPiece p = piece_of(c0, c1, pieces, k);
            int64_t n = rows_of(&p);
            most = n > most ? n : most;
        }
        if (most <= rows) {
            return pieces;
        }
    }
    return 0;
}

/* Strips with the fewest pieces in all; false: more than there are parts. */
static bool find_strips(Pairs *p, int64_t work, int64_t rows)
{
    int64_t least[TDSL_PAIR_LEAVES + 1] = {0}, from[TDSL_PAIR_LEAVES + 1] = {0},
                                     pieces[TDSL_PAIR_LEAVES + 1] = {0};
    for (int64_t c1 = 1; c1 <= p->n; c1++) {
        least[c1] = INT64_MAX;
        for (int64_t c0 = c1 - 1; c0 >= 0 && c1 - c0 <= rows; c0--) {
            int64_t most = least[c1] - 1 < p->parts ? least[c1] - 1 : p->parts;
            int64_t k =
                least[c0] < most ? pieces_within(c0, c1, work, rows, most - least[c0]) : 0;
            if (k > 0) {
                least[c1] = least[c0] + k;
                from[c1] = c0;
                pieces[c1] = k;
            }
        }
    }
    if (least[p->n] > p->parts) {
        return false;
    }
    p->n_strips = 0;
    for (int64_t c = p->n; c > 0; c = from[c]) {
        p->n_strips++;
    }
    p->bound[p->n_strips] = p->n;
    p->all = least[p->n];
    int32_t strip = p->n_strips;
    for (int64_t c = p->n; c > 0; c = from[c]) {
        p->pieces[--strip] = pieces[c];
        p->bound[strip] = from[c];
    }
    return true;
}

/* libtdsl has no libm. */
static double square_root(double x)
{
    double y = x < 1 ? 1 : x;
    for (int k = 0; k < 40; k++) {
        y = (y + x / y) / 2;
    }
    return y;
}

/* The strips of least cost. */
static void choose_strips(Pairs *p)
{
    static const double over[] = {1, 1.03, 1.06, 1.1, 1.15, 1.2, 1.3, 1.5, 2, 4};
    double ideal = (double)(p->n * (p->n + 1) / 2) / p->parts, least = -1;
    double square = 2 * square_root(ideal); /* rows of a piece that is one */
    Pairs best = *p;
    for (size_t k = 0; k < sizeof over / sizeof over[0]; k++) {
        int64_t work = (int64_t)(ideal * over[k]) + 1, lo = 0, hi = p->n;
        Pairs tried = *p;
        if (!find_strips(&tried, work, p->n)) {
            continue;
        }
        Pairs good = tried;
        while (hi - lo > 1) { /* the fewest rows */
            int64_t rows = lo + (hi - lo) / 2;
            bool fits = find_strips(&tried, work, rows);
            good = fits ? tried : good;
            lo = fits ? lo : rows;
            hi = fits ? rows : hi;
        }
        double cost = (double)work / ideal + ROWS_WEIGHT * (double)hi / square;
        if (least < 0 || cost < least) {
            least = cost;
            best = good;
        }
    }
    *p = best;
}

/* ---- who has which piece: one with rows that are its own, if that can be ---- */

/* Piece number k of all. */
static PairPiece nth_piece(const Pairs *p, int64_t k)
{
    for (int32_t s = 0; s < p->n_strips; s++) {
        if (k < p->pieces[s]) {
            return piece_of(p->bound[s], p->bound[s + 1], p->pieces[s], k);
        }
        k -= p->pieces[s];
    }
    return (PairPiece){0};
}

static int64_t first_leaf(const Pairs *p, int64_t part)
{
    return (part * p->n + p->parts - 1) / p->parts;
}

static bool touches(const Pairs *p, int64_t part, const PairPiece *piece)
{
    int64_t lo = first_leaf(p, part), hi = first_leaf(p, part + 1);
    return (lo < piece->row_hi && hi > piece->row_lo) ||
           (lo < piece->col_hi && hi > piece->col_lo);
}

/* A maximum matching of parts and pieces, one part after the other by an augmenting path. */
typedef struct Matching {
    const Pairs *p;
    int64_t n; /* pieces that are looked at */
    PairPiece piece[TDSL_PAIR_PIECES];
    int8_t part[TDSL_PAIR_PIECES]; /* that has it; -1 */
    bool seen[TDSL_PAIR_PIECES];
} Matching;

static bool augment(Matching *m, int64_t part)
{
    for (int64_t k = 0; k < m->n; k++) {
        if (m->seen[k] || !touches(m->p, part, &m->piece[k])) {
            continue;
        }
        m->seen[k] = true;
        if (m->part[k] < 0 || augment(m, m->part[k])) {
            m->part[k] = (int8_t)part;
            return true;
        }
    }
    return false;
}

static void match(Pairs *p)
{
    Matching m = {.p = p, .n = p->all};
    for (int64_t k = 0; k < m.n; k++) {
        m.piece[k] = nth_piece(p, k);
        m.part[k] = -1;
    }
    p->owners = p->parts < p->n ? p->parts : p->n;
    for (int64_t part = 0; part < p->owners; part++) {
        memset(m.seen, 0, sizeof m.seen);
        (void)augment(&m, part);
        p->own[part] = -1;
    }
    for (int64_t k = 0; k < m.n; k++) {
        if (m.part[k] >= 0) {
            p->own[m.part[k]] = k;
        } else {
            p->rest[p->n_rest++] = (int16_t)k;
        }
    }
}

PairPiece tdsl_pairs_piece(const Pairs *p, int32_t part)
{
    int64_t rest = part - p->owners; /* those before it that take from the rest */
    if (part < p->owners && p->own[part] >= 0) {
        return nth_piece(p, p->own[part]);
    }
    for (int64_t i = 0; i < p->owners; i++) {
        rest += p->own[i] < 0 && (i < part || part >= p->owners) ? 1 : 0;
    }
    rest = part < p->owners ? rest - part + p->owners : rest;
    return rest < p->n_rest ? nth_piece(p, p->rest[rest]) : (PairPiece){0};
}

bool tdsl_pairs_has(const PairPiece *piece, int64_t a, int64_t b)
{
    if (a > b || b < piece->strip || b >= piece->end) {
        return false;
    }
    int64_t w = piece->end - piece->strip, past = a - piece->strip;
    int64_t q = past <= 0 ? a * w + b - piece->strip
                          : piece->strip * w + past * w - past * (past - 1) / 2 + b - a;
    return q >= piece->first && q < piece->last;
}

void tdsl_pairs_make(Pairs *p, int64_t n, int32_t parts)
{
    static _Thread_local Pairs last; /* calls are of the same sizes again and again */
    if (last.parts != parts || last.n != n) {
        Pairs made = {.n = n, .parts = parts};
        choose_strips(&made);
        match(&made);
        last = made;
    }
    *p = last;
}
