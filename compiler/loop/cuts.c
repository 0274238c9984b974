/* SPDX-License-Identifier: Apache-2.0 */
/* See cuts.h. Each range inside that begins where an iteration does must be the whole of it, so that it ends where a shorter one ends; its
 * steps, and the panels that are filled or read there, say where cuts may be. Nothing else may ask where the iteration began, but to
 * number positions in buffers of its own. */
#include "loop/cuts.h"

#include "loop/walk.h"
#include "op/affine.h"

typedef struct Cuts {
    const Kernel *k;
    const Stmt *loop;
    bool *own;    /* [bufs]: allocated inside */
    int64_t unit; /* 0: a statement does not allow it */
} Cuts;

static int64_t gcd(int64_t x, int64_t y)
{
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* Cuts are at multiples of `n`, too. */
static void unit_raise(Cuts *c, int64_t n)
{
    c->unit = c->unit == 0 ? 0 : sat_mul(c->unit / gcd(c->unit, n), n);
}

static bool is_iteration(const Cuts *c, const Range *r)
{
    return r->start.n == 1 && r->start.term[0].var == c->loop->var &&
           r->start.term[0].coef == 1 && r->start.base == 0 && r->span == c->loop->step &&
           r->clipped && c->loop->range.clipped && dim_eq(r->limit, c->loop->range.limit);
}

/* A range that begins where the iteration does, or does not ask for it. */
static void check_range(Cuts *c, const Range *r, int64_t step)
{
    if (!affine_uses(r->start, c->loop->var)) {
        return;
    }
    if (is_iteration(c, r)) {
        unit_raise(c, step);
    } else {
        c->unit = 0;
    }
}

/* Does the index of a dimension move with the loop: itself, or by an index that runs over an iteration? */
static bool moves(const Cuts *c, const Stmt *s, Affine at)
{
    bool any = affine_uses(at, c->loop->var);
    for (uint32_t i = 0; i < s->n_index; i++) {
        any |= is_iteration(c, &s->index[i].range) && affine_uses(at, s->index[i].var);
    }
    return any;
}

static void check_access(Cuts *c, const Stmt *s, BufRef buf, const Affine *at)
{
    const Buffer *b = &c->k->bufs.at[buf];
    if (!c->own[buf] && access_uses(c->k, buf, at, c->loop->var)) {
        c->unit = 0;
    }
    if (b->panels > 0 && moves(c, s, at[1])) {
        unit_raise(c, b->panels);
    }
}

static void check_tile(Cuts *c, const Stmt *s)
{
    const Expr *value = expr_uncast(s->value);
    bool alike = value->kind == EXPR_LOAD || value->kind == EXPR_CONST;
    for (uint32_t i = 0; i < s->n_index; i++) {
        bool modes = s->index[i].mode == MODE_LOOP ||
                     !affine_uses(s->index[i].range.start, c->loop->var);
        alike =
            alike && (s->fold == OP_COPY || access_uses(c->k, s->dst, s->at, s->index[i].var));
        c->unit = modes ? c->unit : 0;
        check_range(c, &s->index[i].range, 1);
    }
    for (uint32_t i = 0; i < s->n_first; i++) {
        c->unit = s->first[i] == c->loop->var ? 0 : c->unit;
    }
    if (s->scan != 0 || (!alike && tile_kind(s) != TILE_MATMUL && !tile_multiplies(s))) {
        c->unit = 0;
    }
    check_access(c, s, s->dst, s->at);
    ExprWalk w;
    for (const Expr *x = expr_first(&w, s->value); x != NULL; x = expr_next(&w)) {
        if (x->kind == EXPR_LOAD) {
            check_access(c, s, x->buf, x->at);
        } else if (x->kind == EXPR_INDEX && affine_uses(x->at[0], c->loop->var)) {
            c->unit = 0;
        }
    }
}

int64_t loop_cuts(Arena *scratch, const Kernel *k, const Stmt *loop)
{
    Cuts c = {.k = k, .loop = loop, .unit = 1};
    StmtWalk w;
    if (loop->part != FOR_ALL || loop->window != NULL || loop->range.span % loop->step != 0) {
        return 0;
    }
    c.own = ARENA_ARRAY(scratch, k->bufs.n, bool);
    for (const Stmt *s = stmt_first(&w, loop->body, loop->n_body); s != NULL && c.unit > 0;
         s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC) {
            c.own[s->buf] = true;
        } else if (s->kind == STMT_FOR) {
            check_range(&c, &s->range, s->step);
            c.unit = s->window != NULL ? 0 : c.unit;
        } else if (s->kind == STMT_TILE) {
            check_tile(&c, s);
        } else {
            c.unit = s->n_guards > 0 ? 0 : c.unit;
        }
    }
    return c.unit > 0 && loop->step % c.unit == 0 ? c.unit : 0;
}
