/* SPDX-License-Identifier: Apache-2.0 */
/* A loop over tiles of which some change nothing (Window), inside of loops that stay: its ends move with these. Tiles that a mask cuts
 * stand before and behind the loop, by themselves, so that those between are computed without masks:
 *
 *     for q { for k in range(q) { all of tile k } what the mask leaves of tile q }
 */
#include "backend/nki/lower.h"

#define MASKED_MOST 4 /* tiles at an end that stand by themselves */

/* Tiles [from, to) in the first iterations of loops that stay; [0] says how `from` moves with these, [1] how `to` does. */
typedef struct Tiles {
    int64_t start, from, to;
    Affine by[2];
} Tiles;

/* x / step, where all that moves is a multiple of it. */
static bool divided(Lower *l, Affine x, int64_t step, Affine *out)
{
    *out = affine_const(0);
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.term[i].coef % step != 0) {
            return false;
        }
        Affine var = affine_var(l->arena, x.term[i].var);
        *out = affine_add(l->arena, *out, x.term[i].coef / step, var);
    }
    return true;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

/* False: the tiles of some iterations are no such interval. */
static bool find_tiles(Lower *l, const Stmt *s, Tiles *t)
{
    const Window *w = s->window;
    int64_t end = 0, least = 0, most = 0;
    lower_range(l, s, s->var, &s->range, &t->start, &end);
    int64_t full = (end - t->start) / s->step;
    t->from = 0;
    t->to = full;
    t->by[0] = t->by[1] = affine_const(0);
    if (w == NULL) { /* from the tile of a loop around */
        Affine moves = position_moves(l, s->range.start);
        return s->part == FOR_ALL && (end - t->start) % s->step == 0 &&
               divided(l, moves, s->step, &t->by[0]);
    }
    if (s->part != FOR_ALL || position_moves(l, s->range.start).n > 0 ||
        (w->has_lo && !divided(l, position_moves(l, w->lo), s->step, &t->by[0])) ||
        (w->has_hi && !divided(l, position_moves(l, w->hi), s->step, &t->by[1]))) {
        return false;
    }
    if (w->has_lo) {
        t->from = floor_div(position_value(l, w->lo) - t->start, s->step);
    }
    if (w->has_hi) {
        t->to = -floor_div(t->start - position_value(l, w->hi), s->step);
    }
    stay_range(l, t->by[0], &least, &most);
    bool begins = t->by[0].n == 0 || t->from + least >= 0;
    stay_range(l, t->by[1], &least, &most);
    bool ends = t->by[1].n == 0 || t->to + most <= full;
    t->from = t->by[0].n == 0 && t->from < 0 ? 0 : t->from;
    t->to = t->by[1].n == 0 && t->to > full ? full : t->to;
    return begins && ends;
}

static bool goes_on(const Stmt *s)
{
    StmtWalk w;
    bool first = false;
    for (const Stmt *t = tile_first(&w, s->body, s->n_body); t != NULL; t = tile_next(&w)) {
        first |= t->n_first > 0;
    }
    return first;
}

/* Its variable is that of a tile, which moves so. */
static void set_tile(Lower *l, const Stmt *s, const Tiles *t, int64_t tile, uint32_t end)
{
    l->value[s->var] = t->start + s->step * tile;
    l->loops.moves[s->var] = affine_add(l->arena, affine_const(0), s->step, t->by[end]);
}

/* Does a loop have fewer tiles in later iterations of one around? These are not numbered from 0 on, since the end of such a loop would
 * be a difference. */
static bool has_fewer(Affine last)
{
    bool fewer = false;
    for (uint32_t i = 0; i < last.n; i++) {
        fewer |= last.term[i].coef < 0;
    }
    return fewer;
}

/* May its tiles be numbered from the window's first to a number? */
static bool may_begin(const Tiles *t)
{
    return t->by[1].n == 0 && !has_fewer(t->by[0]);
}

bool window_is_steady(Lower *l, const Stmt *s)
{
    Tiles t;
    int64_t lo = 0, hi = 0;
    if (!find_tiles(l, s, &t) || goes_on(s)) {
        return false;
    }
    Affine last = affine_add(l->arena, t.by[1], -1, t.by[0]);
    if (s->window != NULL && has_fewer(last) && !may_begin(&t)) {
        return false;
    }
    stay_range(l, last, &lo, &hi);
    set_tile(l, s, &t, t.to - 1, 1);
    bool steady =
        t.to - t.from + lo >= (s->window == NULL) && stay_steady(l, s->body, s->n_body);
    l->loops.moves[s->var] = affine_const(0);
    return steady;
}

/* Is there a position in the tile that a comparison of positions holds for, and one that it does not? */
static bool is_masked(Lower *l, const Stmt *s, const Tiles *t, int64_t tile, uint32_t end)
{
    StmtWalk w;
    ExprWalk v;
    IndexSum x;
    bool masked = false;
    set_tile(l, s, t, tile, end);
    for (const Stmt *in = tile_first(&w, s->body, s->n_body); in != NULL; in = tile_next(&w)) {
        lower_enter(l, in);
        for (const Expr *e = expr_first(&v, in->value); e != NULL; e = expr_next(&v)) {
            masked |= whole_compares(l, e, &x) && whole_decides(l, e, &l->now.full) < 0;
        }
    }
    return masked;
}

static void lower_at(Lower *l, const Stmt *s, const Tiles *t, int64_t tile, uint32_t end)
{
    set_tile(l, s, t, tile, end);
    lower_block(l, s->body, s->n_body);
    l->loops.moves[s->var] = affine_const(0);
}

/* From a tile that moves with loops around on: the variable is the tile, in all iterations of these. */
static void lower_from(Lower *l, const Stmt *s, const Tiles *t, Affine first, int64_t end)
{
    if (!stay_open_from(l, s, t->start, first, end)) {
        stay_refuse(l, first);
        return;
    }
    lower_block(l, s->body, s->n_body);
    stay_close(l);
}

/* Tiles between those that stand by themselves: `last` of them, and one. */
static void lower_between(Lower *l, const Stmt *s, const Tiles *t, int64_t from, Affine last)
{
    Affine moves = affine_add(l->arena, affine_const(0), s->step, t->by[0]);
    bool fewer = has_fewer(last);
    if (fewer && may_begin(t)) {
        Affine first = affine_add(l->arena, affine_const(from), 1, t->by[0]);
        lower_from(l, s, t, first, from + last.base + 1);
        return;
    }
    if (!fewer && stay_open_window(l, s, t->start + s->step * from, moves, last)) {
        lower_block(l, s->body, s->n_body);
        stay_close(l);
        return;
    }
    if (last.n > 0) {
        stay_refuse(l, last);
        return;
    }
    for (int64_t i = 0; i <= last.base && !l->tried.failed; i++) {
        lower_at(l, s, t, from + i, 0);
    }
}

bool lower_window(Lower *l, const Stmt *s)
{
    Tiles t;
    if (goes_on(s) || !find_tiles(l, s, &t)) {
        return false;
    }
    int64_t front = 0, back = 0, lo = 0, hi = 0;
    if (s->window == NULL) {
        lower_from(l, s, &t, t.by[0], t.to);
        return true;
    }
    while (back < MASKED_MOST && is_masked(l, s, &t, t.to - 1 - back, 1)) {
        back++;
    }
    while (s->window->has_lo && front < MASKED_MOST && is_masked(l, s, &t, t.from + front, 0)) {
        front++;
    }
    Affine last = affine_add(l->arena, t.by[1], -1, t.by[0]);
    stay_range(l, last, &lo, &hi);
    if (back == MASKED_MOST || front == MASKED_MOST || t.to - back - t.from - front + lo < 0) {
        back = front = 0;
    }
    last = affine_add(l->arena, last, 1, affine_const(t.to - back - t.from - front - 1));
    for (int64_t i = 0; i < front && !l->tried.failed; i++) {
        lower_at(l, s, &t, t.from + i, 0);
    }
    lower_between(l, s, &t, t.from + front, last);
    for (int64_t i = back; i > 0 && !l->tried.failed; i--) {
        lower_at(l, s, &t, t.to - i, 1);
    }
    return true;
}
