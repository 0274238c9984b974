/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that stay loops. The body is lowered once, for all iterations: positions that move with the loop are sums of its
 * variable, beside their numbers in the first iteration. That needs a body that is the same each time: ranges of one length, no value
 * of a position, no tile on chip of which each iteration has another part. Where one is not, the loop is unrolled. */
#include "backend/nki/lower.h"

#include <string.h>

#define LIFTED                                                                                 \
    16 /* of what may be packed, all but such a part may be for tiles that are made before loops */

Affine position_moves(const Lower *l, Affine x)
{
    Affine out = affine_const(0);
    for (uint32_t i = 0; i < x.n; i++) {
        const Affine *by = &l->loops.moves[x.term[i].var];
        out = by->n == 0 ? out : affine_add(l->arena, out, x.term[i].coef, *by);
    }
    return out;
}

/* The most that a sum of loop variables is. */
static int64_t most_of(const Lower *l, Affine x)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < x.n; i++) {
        for (uint32_t d = 0; d < l->loops.depth; d++) {
            bool here = l->loops.open[d].var == x.term[i].var && x.term[i].coef > 0;
            most += here ? x.term[i].coef * (l->loops.open[d].trips - 1) : 0;
        }
    }
    return most;
}

/* Has a range the same length in each iteration? */
static bool is_steady(const Lower *l, const Range *r)
{
    Affine moves = position_moves(l, r->start);
    if (moves.n == 0) {
        return true;
    }
    int64_t first = position_value(l, r->start);
    return r->span > 0 && (!r->clipped || first + most_of(l, moves) + r->span <= r->limit.n);
}

static bool has_moving_index(const Lower *l, const Stmt *s)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        for (uint32_t i = 0; e->kind == EXPR_INDEX && i < e->at[0].n; i++) {
            VarRef v = e->at[0].term[i].var;
            bool moves = l->loops.moves[v].n > 0;
            for (uint32_t x = 0; x < s->n_index; x++) {
                moves |=
                    s->index[x].var == v && position_moves(l, s->index[x].range.start).n > 0;
            }
            if (moves) {
                return true;
            }
        }
    }
    return false;
}

/* Are ranges and values of the statements the same in each iteration of the loops that are open? */
static bool body_is_steady(Lower *l, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        bool steady = true;
        if (s->kind == STMT_FOR) {
            Affine moves = position_moves(l, s->range.start), before = l->loops.moves[s->var];
            steady = is_steady(l, &s->range) && s->window == NULL;
            l->loops.moves[s->var] = moves; /* of all its iterations alike */
            steady = steady && body_is_steady(l, s->body, s->n_body);
            l->loops.moves[s->var] = before;
        } else if (s->kind == STMT_BLOCK) {
            steady = s->when == NULL && body_is_steady(l, s->body, s->n_body);
        } else if (s->kind == STMT_TILE) {
            for (uint32_t x = 0; x < s->n_index; x++) {
                steady &= is_steady(l, &s->index[x].range);
            }
            steady = steady && !has_moving_index(l, s);
        }
        if (!steady) {
            return false;
        }
    }
    return true;
}

/* ---- what is the same in each iteration ---- */

static bool is_written_in(const OpenLoop *o, BufRef buf)
{
    const Stmt *loop = o->stmt;
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

uint32_t lift_depth(const Lower *l, const Place *x, int64_t bytes)
{
    uint32_t depth = l->loops.depth;
    for (; depth > 0; depth--) {
        const OpenLoop *o = &l->loops.open[depth - 1];
        bool moves = is_written_in(o, x->buf);
        for (uint32_t d = 0; d < x->rank && x->moves != NULL; d++) {
            moves |= affine_uses(x->moves[d], o->var);
        }
        if (moves) {
            break;
        }
    }
    int64_t lifted = bytes;
    for (uint32_t d = 0; d < l->loops.depth; d++) {
        lifted += l->loops.open[d].lifted;
    }
    bool room = lifted <= l->room.cache_limit / LIFTED * (LIFTED - 1);
    return room ? depth : l->loops.depth;
}

Lift lift_begin(Lower *l, uint32_t depth, int64_t bytes)
{
    Lift lift = {.depth = l->loops.depth, .times = l->loops.times};
    if (depth == l->loops.depth) {
        return lift;
    }
    OpenLoop *o = &l->loops.open[depth]; /* the statements before it */
    memcpy(&lift.out, &l->out, sizeof l->out);
    memcpy(&l->out, &o->out, sizeof l->out);
    o->lifted += bytes;
    for (uint32_t d = depth; d < l->loops.depth; d++) {
        l->loops.times /= l->loops.open[d].trips;
    }
    l->loops.depth = depth;
    return lift;
}

void lift_end(Lower *l, const Lift *lift)
{
    if (lift->depth == l->loops.depth) {
        return;
    }
    OpenLoop *o = &l->loops.open[l->loops.depth];
    memcpy(&o->out, &l->out, sizeof l->out);
    memcpy(&l->out, &lift->out, sizeof l->out);
    l->loops.times = lift->times;
    l->loops.depth = lift->depth;
}

/* ---- loops ---- */

/* What is written inside is not what it was before, for the iterations after the first. */
static void renew_written(Lower *l, const OpenLoop *o)
{
    const Stmt *loop = o->stmt;
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
    OpenLoop *o = &l->loops.open[l->loops.depth];
    *o = (OpenLoop){.stmt = s, .trips = trips, .clock = ++l->room.clock};
    o->var = kernel_var(l->to, &l->ctx->syms, name, true);
    return o;
}

/* From here on statements are in the loop. */
static void enter(Lower *l, OpenLoop *o)
{
    renew_written(l, o);
    memcpy(&o->out, &l->out, sizeof l->out);
    memset(&l->out, 0, sizeof l->out);
    l->loops.times = sat_mul(l->loops.times, o->trips);
}

static void leave(Lower *l)
{
    OpenLoop *o = &l->loops.open[--l->loops.depth];
    Stmt *s = ARENA_NEW(l->arena, Stmt);
    *s = (Stmt){.kind = STMT_FOR, .span = o->stmt->span, .var = o->var, .step = 1};
    s->range = range_whole(dim_fixed(o->trips));
    s->body = l->out.at;
    s->n_body = l->out.n;
    memcpy(&l->out, &o->out, sizeof l->out);
    if (s->n_body > 0) {
        vec_push(l->arena, &l->out, s);
    }
    l->loops.times /= o->trips;
    cache_leave(l);
    renew_written(l, o);
}

static bool may_open(const Lower *l, int64_t trips)
{
    return l->loops.stay && trips > 1 && l->loops.depth < LOOP_DEPTH_LIMIT;
}

bool stay_open(Lower *l, const Stmt *s, int64_t start, int64_t trips)
{
    if (!may_open(l, trips) || s->window != NULL || l->loops.concrete[s->var]) {
        return false;
    }
    OpenLoop *o = begin(l, s, l->from->vars.at[s->var].name->text, trips);
    Affine before = l->loops.moves[s->var];
    l->value[s->var] = start;
    l->loops.moves[s->var] = affine_add(l->arena, position_moves(l, s->range.start), s->step,
                                        affine_var(l->arena, o->var));
    l->loops.depth++;
    if (!body_is_steady(l, s->body, s->n_body)) {
        l->loops.depth--;
        l->loops.moves[s->var] = before;
        return false;
    }
    enter(l, o);
    return true;
}

void stay_close(Lower *l)
{
    const Stmt *s = l->loops.open[l->loops.depth - 1].stmt;
    leave(l);
    l->loops.moves[s->var] = affine_const(0);
    lower_columns(l);
}

bool stay_open_label(Lower *l, uint32_t label, int64_t step, const Stmt *with)
{
    const Stmt *s = l->now.stmt;
    int64_t trips = l->now.full.n[label] / step;
    if (!may_open(l, trips)) {
        return false;
    }
    OpenLoop *o = begin(l, s, l->from->vars.at[s->index[label].var].name->text, trips);
    o->with = with;
    l->loops.depth++;
    enter(l, o);
    l->now.full.n[label] = step;
    l->now.moves[label] =
        affine_add(l->arena, l->now.moves[label], step, affine_var(l->arena, o->var));
    return true;
}

void stay_close_label(Lower *l, uint32_t label, int64_t step, const Box *full, Affine moves)
{
    int64_t done = l->loops.open[l->loops.depth - 1].trips * step;
    leave(l);
    l->now.moves[label] = moves;
    l->now.full.s[label] = full->s[label] + done;
    l->now.full.n[label] = full->n[label] - done;
}

void stay_refuse(Lower *l, Affine moves)
{
    for (uint32_t d = l->loops.depth; d-- > 0;) {
        if (affine_uses(moves, l->loops.open[d].var)) {
            const Stmt *s = l->loops.open[d].stmt;
            uint32_t at = s->kind == STMT_FOR ? s->var : l->from->vars.n; /* nothing is cut */
            l->loops.concrete[at] = true;
            l->tried.again = l->tried.failed = true;
            return;
        }
    }
}
