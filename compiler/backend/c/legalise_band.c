/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, maxima and the like over a band of known width, sum[j <= i, j > i - 100](x[j]): where all of the band is there its positions
 * are counted from the row,
 *
 *     for i in 0..99:   y[i] = sum over j of j <= i && j > i - 100 ? x[j] : 0
 *     for i in 99..n:   y[i] = sum over j in i - 99 .. i + 1 of x[j]
 *
 * in vectors and without conditions. */
#include "backend/c/legalise.h"

#define WIDEST (1 << 16)
#define BLOCK  512 /* of a sum */

/* j - i >= least and j - i <= most, by numbers of the statement's indices. */
typedef struct Band {
    uint32_t row, folded;
    int64_t least, most;
    const Expr *value; /* under the condition */
} Band;

static bool is_whole(Range r)
{
    return r.start.n == 0 && r.start.base == 0 && r.span == 0;
}

static uint32_t index_with(const Stmt *s, VarRef v)
{
    uint32_t i = 0;
    while (i < s->n_index && s->index[i].var != v) {
        i++;
    }
    return i;
}

static bool band_of(Legaliser *l, const Stmt *s, Band *out)
{
    Affine x[MASK_CONDITIONS];
    const Expr *condition = NULL, *value = expr_under(s->fold, s->value, &condition);
    bool has[2] = {false, false};
    if (condition == NULL || s->scan > 0 || s->schedule != NULL ||
        condition_bounds(l->arena, condition, x) != 2) {
        return false;
    }
    *out = (Band){.row = s->n_index, .folded = s->n_index, .value = value};
    for (uint32_t i = 0; i < 2; i++) {
        if (x[i].n != 2 || x[i].term[0].coef * x[i].term[1].coef != -1) {
            return false;
        }
        uint32_t own[2] = {index_with(s, x[i].term[0].var), index_with(s, x[i].term[1].var)};
        uint32_t j =
            own[0] < s->n_index && !access_uses(l->k, s->dst, s->at, x[i].term[0].var) ? 0 : 1;
        if (own[0] == s->n_index || own[1] == s->n_index ||
            (i > 0 && (own[j] != out->folded || own[1 - j] != out->row))) {
            return false;
        }
        out->folded = own[j];
        out->row = own[1 - j];
        bool below = x[i].term[j].coef < 0; /* j <= i + base */
        has[below ? 1 : 0] = true;
        *(below ? &out->most : &out->least) = below ? x[i].base : -x[i].base;
    }
    const TileIndex *row = &s->index[out->row], *folded = &s->index[out->folded];
    return has[0] && has[1] && out->most <= 0 && out->least <= out->most &&
           out->most - out->least < WIDEST && is_whole(row->range) && is_whole(folded->range) &&
           dim_eq(row->range.limit, folded->range.limit) &&
           (row->range.limit.sym >= 0 ||
            row->range.limit.n > -out->least) && /* else none has all */
           access_uses(l->k, s->dst, s->at, row->var) &&
           !access_uses(l->k, s->dst, s->at, folded->var);
}

static bool is_shared(const Legaliser *l)
{
    bool any = false;
    for (const StmtBlock *b = l->block; b != NULL; b = b->outer) {
        any |= b->owner != NULL && b->owner->kind == STMT_FOR && b->owner->parallel;
    }
    return any;
}

/* The first n positions of all. */
static Range range_below(Range r, int64_t n)
{
    if (r.limit.sym < 0) {
        r.limit.n = r.limit.n < n ? r.limit.n : n;
    } else {
        r.span = n;
        r.clipped = true;
    }
    return r;
}

bool legalise_band(Legaliser *l, const Stmt *s)
{
    Band band;
    if (!band_of(l, s, &band)) {
        return false;
    }
    Arena *a = l->arena;
    Stmt *edge = arena_copy(a, s, sizeof *s), *inner = arena_copy(a, s, sizeof *s);
    TileIndex *of_edge = arena_copy(a, s->index, s->n_index * sizeof *of_edge);
    of_edge[band.row].range = range_below(of_edge[band.row].range, -band.least);
    /* Before the first row that has all of the band nothing lies behind it. Sums are cut by blocks. */
    of_edge[band.folded].range =
        range_below(of_edge[band.folded].range, round_up(-band.least, BLOCK));
    edge->index = of_edge;
    if (band.least < 0) {
        tile_legalise(l, edge);
    }
    Range rows = s->index[band.row].range;
    rows.start = affine_const(-band.least);
    rows.clipped = true;
    bool shared = is_shared(l);
    Affine row = affine_var(a, loop_open(l, "i", rows, 1, FOR_ALL));
    l->block->owner->parallel = !shared;
    TileIndex *index = ARENA_ARRAY(a, s->n_index, TileIndex);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (i != band.row) {
            index[n++] = s->index[i];
        }
        if (i == band.folded) {
            Affine from = row;
            from.base += band.least;
            index[n - 1].range = (Range){
                .start = from, .span = band.most - band.least + 1, .limit = dim_fixed(0)};
        }
    }
    Subst by = {s->index[band.row].var, row};
    inner->n_index = n;
    inner->index = index;
    inner->value = expr_subst(l->arena, l->k, band.value, &by, 1);
    inner->at = access_subst(l->arena, l->k->bufs.at[s->dst].rank, s->at, &by, 1);
    tile_legalise(l, inner);
    loop_close(l);
    return true;
}
