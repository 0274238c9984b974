/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that stay loops. The body is lowered once, for all iterations: positions that move with the loop are sums of its
 * variable, beside their numbers in the first iteration. That needs a body that is the same each time: ranges of one length, no value
 * of a position, no tile on chip of which each iteration has another part. Where one is not, the loop is unrolled. */
#include "backend/nki/open_loops.h"

#include <string.h>

#define LIFTED                                                                                 \
    16 /* of what may be packed, all but such a part may be for tiles that are made before loops */

/* ---- what is the same in each iteration ---- */

static bool is_written_in(const OpenLoop *o, BufRef buf)
{
    const Stmt *loop = o->stmt;
    if (o->tiles) {
        return false;
    }
    if (loop->kind == STMT_TILE) {
        return loop->dst == buf || (o->with != NULL && o->with->dst == buf);
    }
    StmtWalk w;
    const Stmt *s = tile_first(&w, loop->body, loop->n_body);
    while (s != NULL && s->dst != buf) {
        s = tile_next(&w);
    }
    return s != NULL;
}

/* `depth`, where there is room. */
static uint32_t depth_with_room(const Lower *l, uint32_t depth, int64_t bytes)
{
    int64_t lifted = bytes;
    for (uint32_t d = 0; d < l->loops.depth; d++) {
        lifted += l->loops.open[d].lifted;
    }
    bool room = lifted <= l->room.cache_limit / LIFTED * (LIFTED - 1);
    return room ? depth : l->loops.depth;
}

uint32_t hoist_depth_of(const Lower *l, Affine moves, int64_t bytes)
{
    return depth_with_room(l, moving_depth(l, moves), bytes);
}

uint32_t hoist_depth(const Lower *l, const Place *x, int64_t bytes)
{
    uint32_t depth = l->loops.depth, moving = place_moving_depth(l, x);
    while (depth > moving && !is_written_in(&l->loops.open[depth - 1], x->buf)) {
        depth--;
    }
    return depth_with_room(l, depth, bytes);
}

Hoist hoist_begin(Lower *l, uint32_t depth, int64_t bytes)
{
    Hoist hoist = {.depth = l->loops.depth, .times = l->loops.times};
    if (depth == l->loops.depth) {
        return hoist;
    }
    OpenLoop *o = &l->loops.open[depth]; /* the statements before it */
    memcpy(&hoist.out, &l->out, sizeof l->out);
    memcpy(&l->out, &o->out, sizeof l->out);
    o->lifted += bytes;
    hoist.around = arena_copy(l->arena, o, (l->loops.depth - depth) * sizeof *o);
    for (uint32_t d = depth; d < l->loops.depth; d++) {
        l->loops.times /= l->loops.open[d].mean;
    }
    l->loops.depth = depth;
    return hoist;
}

void hoist_end(Lower *l, const Hoist *hoist)
{
    if (hoist->depth == l->loops.depth) {
        return;
    }
    OpenLoop *o = &l->loops.open[l->loops.depth];
    memcpy(o, hoist->around, (hoist->depth - l->loops.depth) * sizeof *o);
    memcpy(&o->out, &l->out, sizeof l->out);
    memcpy(&l->out, &hoist->out, sizeof l->out);
    l->loops.times = hoist->times;
    l->loops.depth = hoist->depth;
}

/* ---- loops ---- */

/* What is written inside is not what it was before, for the iterations after the first. */
static void renew_written(Lower *l, const OpenLoop *o)
{
    const Stmt *loop = o->stmt;
    if (o->tiles) {
        return;
    }
    if (loop->kind == STMT_TILE) {
        l->home[loop->dst].version++;
        l->home[o->with != NULL ? o->with->dst : loop->dst].version++;
        return;
    }
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, loop->body, loop->n_body); s != NULL;
         s = tile_next(&w)) {
        l->home[s->dst].version++;
    }
}

static OpenLoop *begin(Lower *l, const Stmt *s, const char *name, int64_t trips)
{
    OpenLoop *o = &l->loops.open[l->loops.depth], before = *o;
    *o = (OpenLoop){.stmt = s,
                    .trips = trips,
                    .mean = trips,
                    .first = affine_const(0),
                    .last = affine_const(trips - 1),
                    .clock = ++l->room.clock};
    bool again = before.probed && before.stmt == s;
    o->var = again ? before.var : kernel_var(l->to, &l->ctx->syms, name, true);
    return o;
}

/* From here on statements are in the loop. */
static void enter(Lower *l, OpenLoop *o)
{
    renew_written(l, o);
    memcpy(&o->out, &l->out, sizeof l->out);
    memset(&l->out, 0, sizeof l->out);
    l->loops.times = sat_mul(l->loops.times, o->mean);
}

/* The window of a loop of which not all iterations are those of the first ones around; else null. */
static const Window *window_of(Lower *l, const OpenLoop *o)
{
    if (o->last.n == 0) {
        return NULL;
    }
    Window *w = ARENA_NEW(l->arena, Window);
    *w = (Window){.has_hi = true, .hi = affine_add(l->arena, o->last, 1, affine_const(1))};
    return w;
}

static void leave(Lower *l)
{
    OpenLoop *o = &l->loops.open[--l->loops.depth];
    Stmt *s = ARENA_NEW(l->arena, Stmt);
    *s = (Stmt){.kind = STMT_FOR, .span = o->stmt->span, .var = o->var, .step = 1};
    s->range = range_whole(dim_fixed(o->trips));
    s->range.start = o->first;
    s->window = window_of(l, o);
    s->body = l->out.at;
    s->n_body = l->out.n;
    memcpy(&l->out, &o->out, sizeof l->out);
    if (s->n_body > 0) {
        vec_push(l->arena, &l->out, s);
    }
    l->loops.times /= o->mean;
    cache_leave(l, o->tiles ? o->clock
                            : 0); /* loops of tiles may stand before others that are open */
    renew_written(l, o);
}

static bool may_open(const Lower *l, int64_t trips)
{
    return trips > 1 && l->loops.depth < LOOP_DEPTH_LIMIT && !l->task.unrolled;
}

/* The loop is open, of iterations from `start` on; false, and it is not: its body is not the same in all of them. */
static bool open_steady(Lower *l, OpenLoop *o, const Stmt *s, int64_t start, Affine moves)
{
    Affine before = l->loops.moves[s->var];
    l->value[s->var] = start;
    l->loops.moves[s->var] = affine_add(l->arena, moves, s->step, affine_var(l->arena, o->var));
    l->loops.depth++;
    if (body_is_steady(l, s->body, s->n_body)) {
        return true;
    }
    l->loops.depth--;
    l->loops.moves[s->var] = before;
    return false;
}

bool open_loop(Lower *l, const Stmt *s, int64_t start, int64_t trips)
{
    if (!may_open(l, trips) || l->loops.concrete[s->var]) {
        return false;
    }
    OpenLoop *o = begin(l, s, l->from->vars.at[s->var].wish->text, trips);
    if (!open_steady(l, o, s, start, position_moves(l, s->range.start))) {
        return false;
    }
    enter(l, o);
    return true;
}

#define PEEL_MOST 4

int64_t loop_peeled(Lower *l, const Stmt *s, int64_t start, int64_t trips)
{
    for (int64_t n = 0; n <= PEEL_MOST && may_open(l, trips - n); n++) {
        OpenLoop *o = begin(l, s, l->from->vars.at[s->var].wish->text, trips - n);
        o->probed = true;
        Affine moves = position_moves(l, s->range.start);
        if (open_steady(l, o, s, start + n * s->step, moves)) {
            l->loops.depth--;
            l->loops.moves[s->var] = affine_const(0);
            return n;
        }
    }
    return 0;
}

bool open_loop_window(Lower *l, const Stmt *s, int64_t start, Affine moves, Affine last)
{
    int64_t lo = 0, hi = 0;
    position_range(l, last, &lo, &hi);
    if (!may_open(l, hi + 1) || l->loops.concrete[s->var]) {
        return false;
    }
    OpenLoop *o = begin(l, s, l->from->vars.at[s->var].wish->text, hi + 1);
    o->last = last;
    o->mean = lo + hi > 0 ? (lo + hi + 3) / 2 : 1;
    if (!open_steady(l, o, s, start, moves)) {
        return false;
    }
    enter(l, o);
    return true;
}

bool open_loop_from(Lower *l, const Stmt *s, int64_t start, Affine first, int64_t trips)
{
    int64_t lo = 0, hi = 0;
    position_range(l, first, &lo, &hi);
    if (!may_open(l, trips) || l->loops.concrete[s->var]) {
        return false;
    }
    OpenLoop *o = begin(l, s, l->from->vars.at[s->var].wish->text, trips);
    o->first = first;
    o->mean = trips - (lo + hi) / 2;
    if (!open_steady(l, o, s, start, affine_const(0))) {
        return false;
    }
    enter(l, o);
    return true;
}

void close_loop(Lower *l)
{
    const Stmt *s = l->loops.open[l->loops.depth - 1].stmt;
    leave(l);
    l->loops.moves[s->var] = affine_const(0);
}

bool open_label(Lower *l, uint32_t label, int64_t step, Affine first, const Stmt *with)
{
    const Stmt *s = l->now.stmt;
    int64_t trips = l->now.full.n[label] / step, lo = 0, hi = 0;
    if (!may_open(l, trips)) {
        return false;
    }
    position_range(l, first, &lo, &hi);
    OpenLoop *o = begin(l, s, l->from->vars.at[s->index[label].var].wish->text, trips);
    o->first = first;
    o->mean = trips - (lo + hi) / 2;
    o->with = with;
    l->loops.depth++;
    enter(l, o);
    l->now.full.n[label] = step;
    l->now.moves[label] =
        affine_add(l->arena, l->now.moves[label], step, affine_var(l->arena, o->var));
    return true;
}

bool open_tiles(Lower *l, const char *name, int64_t trips)
{
    if (!may_open(l, trips) || l->loops.concrete[l->from->vars.n]) {
        return false;
    }
    OpenLoop *o = begin(l, l->now.stmt, name, trips);
    o->tiles = true;
    l->loops.depth++;
    enter(l, o);
    return true;
}

void close_tiles(Lower *l)
{
    leave(l);
}

void close_label(Lower *l, uint32_t label, int64_t step, const Box *full, Affine moves)
{
    int64_t done = l->loops.open[l->loops.depth - 1].trips * step;
    leave(l);
    l->now.moves[label] = moves;
    l->now.full.s[label] = full->s[label] + done;
    l->now.full.n[label] = full->n[label] - done;
}
