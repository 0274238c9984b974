/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops may stay loops: those whose body is the same in each iteration, but for positions that move with it. Ranges have one length,
 * and loops over tiles of which some change nothing (Window) have ends that move by whole tiles. */
#include "backend/nki/windows.h"

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
bool window_find(Lower *l, const Stmt *s, WindowTiles *t)
{
    const Window *w = s->window;
    int64_t end = 0, least = 0, most = 0;
    range_values(l, s, s->var, &s->range, &t->start, &end);
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
    position_range(l, t->by[0], &least, &most);
    bool begins = t->by[0].n == 0 || t->from + least >= 0;
    position_range(l, t->by[1], &least, &most);
    bool ends = t->by[1].n == 0 || t->to + most <= full;
    t->from = t->by[0].n == 0 && t->from < 0 ? 0 : t->from;
    t->to = t->by[1].n == 0 && t->to > full ? full : t->to;
    return begins && ends;
}

bool window_goes_on(const Stmt *s)
{
    StmtWalk w;
    bool first = false;
    for (const Stmt *t = tile_first(&w, s->body, s->n_body); t != NULL; t = tile_next(&w)) {
        first |= t->n_first > 0;
    }
    return first;
}

/* Its variable is that of a tile, which moves so. */
void window_set(Lower *l, const Stmt *s, const WindowTiles *t, int64_t tile, uint32_t end)
{
    l->value[s->var] = t->start + s->step * tile;
    l->loops.moves[s->var] = affine_add(l->arena, affine_const(0), s->step, t->by[end]);
}

/* Does a loop have fewer tiles in later iterations of one around? These are not numbered from 0 on, since the end of such a loop would
 * be a difference. */
bool window_has_fewer(Affine last)
{
    bool fewer = false;
    for (uint32_t i = 0; i < last.n; i++) {
        fewer |= last.term[i].coef < 0;
    }
    return fewer;
}

/* May its tiles be numbered from the window's first to a number? */
bool window_may_begin(const WindowTiles *t)
{
    return t->by[1].n == 0 && !window_has_fewer(t->by[0]);
}

/* Has a range the same length in each iteration? */
static bool is_steady(const Lower *l, const Range *r)
{
    Affine moves = position_moves(l, r->start);
    int64_t lo = 0, hi = 0;
    if (moves.n == 0) {
        return true;
    }
    position_range(l, moves, &lo, &hi);
    return r->span > 0 &&
           (!r->clipped || position_value(l, r->start) + hi + r->span <= r->limit.n);
}

static bool window_is_steady(Lower *l, const Stmt *s);

bool body_is_steady(Lower *l, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        bool steady = true;
        bool begins = s->kind == STMT_FOR && s->range.span == 0 &&
                      position_moves(l, s->range.start).n > 0;
        if (s->kind == STMT_FOR && (s->window != NULL || begins)) {
            steady = window_is_steady(l, s);
        } else if (s->kind == STMT_FOR) {
            Affine moves = position_moves(l, s->range.start), before = l->loops.moves[s->var];
            steady = is_steady(l, &s->range);
            l->loops.moves[s->var] = moves; /* of all its iterations alike */
            steady = steady && body_is_steady(l, s->body, s->n_body);
            l->loops.moves[s->var] = before;
        } else if (s->kind == STMT_BLOCK) {
            steady = s->when == NULL && body_is_steady(l, s->body, s->n_body);
        } else if (s->kind == STMT_TILE) {
            for (uint32_t x = 0; x < s->n_index; x++) {
                steady &= is_steady(l, &s->index[x].range);
            }
        }
        if (!steady) {
            return false;
        }
    }
    return true;
}

static bool window_is_steady(Lower *l, const Stmt *s)
{
    WindowTiles t;
    int64_t lo = 0, hi = 0;
    if (!window_find(l, s, &t) || window_goes_on(s)) {
        return false;
    }
    Affine last = affine_add(l->arena, t.by[1], -1, t.by[0]);
    if (s->window != NULL && window_has_fewer(last) && !window_may_begin(&t)) {
        return false;
    }
    position_range(l, last, &lo, &hi);
    window_set(l, s, &t, t.to - 1, 1);
    bool steady =
        t.to - t.from + lo >= (s->window == NULL) && body_is_steady(l, s->body, s->n_body);
    l->loops.moves[s->var] = affine_const(0);
    return steady;
}
