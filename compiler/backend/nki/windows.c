/* SPDX-License-Identifier: Apache-2.0 */
/* A loop over tiles of which some change nothing (Window), inside of loops that stay: its ends move with these. Tiles that a mask cuts
 * stand before and behind the loop, by themselves, so that those between are computed without masks:
 *
 *     for q { for k in range(q) { all of tile k } what the mask leaves of tile q }
 */
#include "backend/nki/lower_stmt.h"
#include "backend/nki/whole.h"
#include "backend/nki/windows.h"

#define MASKED_MOST 4 /* tiles at an end that stand by themselves */

/* Is there a position in the tile that a comparison of positions holds for, and one that it does not? */
static bool is_masked(Lower *l, const Stmt *s, const WindowTiles *t, int64_t tile, uint32_t end)
{
    StmtWalk w;
    ExprWalk v;
    IndexSum x;
    bool masked = false;
    window_set(l, s, t, tile, end);
    for (const Stmt *in = tile_first(&w, s->body, s->n_body); in != NULL; in = tile_next(&w)) {
        lower_enter(l, in);
        for (const Expr *e = expr_first(&v, in->value); e != NULL; e = expr_next(&v)) {
            masked |= whole_compares(l, e, &x) && whole_decides(l, e, &l->now.full) < 0;
        }
    }
    return masked;
}

static void lower_at(Lower *l, const Stmt *s, const WindowTiles *t, int64_t tile, uint32_t end)
{
    window_set(l, s, t, tile, end);
    lower_block(l, s->body, s->n_body);
    l->loops.moves[s->var] = affine_const(0);
}

/* From a tile that moves with loops around on: the variable is the tile, in all iterations of these. */
static void lower_from(Lower *l, const Stmt *s, const WindowTiles *t, Affine first, int64_t end)
{
    if (!open_loop_from(l, s, t->start, first, end)) {
        retry_unrolled(l, first);
        return;
    }
    lower_block(l, s->body, s->n_body);
    lower_end_loop(l);
}

/* Tiles between those that stand by themselves: `last` of them, and one. */
static void lower_between(Lower *l, const Stmt *s, const WindowTiles *t, int64_t from,
                          Affine last)
{
    Affine moves = affine_add(l->arena, affine_const(0), s->step, t->by[0]);
    bool fewer = window_has_fewer(last);
    if (fewer && window_may_begin(t)) {
        Affine first = affine_add(l->arena, affine_const(from), 1, t->by[0]);
        lower_from(l, s, t, first, from + last.base + 1);
        return;
    }
    if (!fewer && open_loop_window(l, s, t->start + s->step * from, moves, last)) {
        lower_block(l, s->body, s->n_body);
        lower_end_loop(l);
        return;
    }
    if (last.n > 0) {
        retry_unrolled(l, last);
        return;
    }
    for (int64_t i = 0; i <= last.base && !l->tried.failed; i++) {
        lower_at(l, s, t, from + i, 0);
    }
}

bool lower_window(Lower *l, const Stmt *s)
{
    WindowTiles t;
    if (window_goes_on(s) || !window_find(l, s, &t)) {
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
    position_range(l, last, &lo, &hi);
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
