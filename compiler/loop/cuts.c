/* SPDX-License-Identifier: Apache-2.0 */
/* See cuts.h. Each range inside that begins where an iteration does must be the whole of it, so that it ends where a shorter one ends; its
 * steps, and the panels that are filled or read there, say where cuts may be. Nothing else may ask where the iteration began, but to
 * number positions in buffers of its own. */
#include "loop/cuts.h"

#include "loop/term.h"
#include "loop/walk.h"
#include "op/affine.h"

typedef struct Cuts {
    const Kernel *k;
    const Stmt *loop;
    bool *own;    /* [bufs]: allocated inside */
    int64_t unit; /* 0: a statement does not allow it */
} Cuts;

/* Cuts are at multiples of `n`, too. */
static void unit_raise(Cuts *c, int64_t n)
{
    c->unit = c->unit == 0 ? 0 : sat_mul(c->unit / gcd(c->unit, n), n);
}

static bool is_iteration(const Cuts *c, const Range *r)
{
    return affine_is(r->start, c->loop->var) && r->span == c->loop->step && r->clipped &&
           c->loop->range.clipped && dim_eq(r->limit, c->loop->range.limit);
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
    bool alike = s->places > 0 || value->kind == EXPR_LOAD || value->kind == EXPR_CONST;
    for (uint32_t i = 0; i < s->n_index; i++) {
        bool modes = s->index[i].mode == MODE_LOOP ||
                     !affine_uses(s->index[i].range.start, c->loop->var);
        alike = alike && (s->places > 0 || s->fold == OP_COPY ||
                          access_uses(c->k, s->dst, s->at, s->index[i].var));
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
    if (s->sums > 0) {
        c->unit = 0; /* the order of a sum depends on where it is cut */
    }
    ExprWalk w;
    for (const Expr *x = expr_first(&w, s->value); x != NULL; x = expr_next(&w)) {
        if (x->kind == EXPR_LOAD) {
            check_access(c, s, x->buf, x->at);
        } else if (expr_buffer(x) != BUF_NONE && c->k->bufs.at[x->buf].param < 0) {
            c->unit = 0; /* any element of what the loop may make */
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

/* ---- panels ---- */

typedef struct Within {
    const Kernel *k;
    const Stmt *loop;
    const Stmt **inner; /* [vars]: loops inside */
    const Stmt *tile;   /* the statement at hand */
    int64_t panels;
} Within;

/* The range of a loop inside, or of an index; null. And the step of a loop. */
static const Range *range_of(const Within *w, VarRef v, int64_t *step)
{
    const Range *r = w->inner[v] != NULL ? &w->inner[v]->range : NULL;
    *step = w->inner[v] != NULL ? w->inner[v]->step : 1;
    for (uint32_t i = 0; r == NULL && i < w->tile->n_index; i++) {
        r = w->tile->index[i].var == v ? &w->tile->index[i].range : NULL;
    }
    return r;
}

/* Do the variable's values lie in tiles that begin with the iteration, tile in tile? */
static bool is_within(const Within *w, VarRef v)
{
    int64_t step = 0, outer = w->loop->step;
    while (v != w->loop->var) {
        const Range *r = affine_is_dim(v) ? NULL : range_of(w, v, &step);
        if (r == NULL || !affine_is_var(r->start) || r->span == 0) {
            return false;
        }
        v = r->start.term[0].var;
        outer = v != w->loop->var && w->inner[v] != NULL ? w->inner[v]->step : w->loop->step;
        if (r->span > outer) {
            return false;
        }
    }
    return true;
}

/* A position within the iteration, or one of the panel that is its last. */
static bool column_fits(const Within *w, Affine at)
{
    VarRef v[2] = {0};
    uint32_t n = 0;
    bool begins = false, fits = at.base == 0;
    for (uint32_t i = 0; i < at.n && fits; i++) {
        begins |= at.term[i].var == w->loop->var && at.term[i].coef == -1;
        if (at.term[i].var != w->loop->var) {
            fits = at.term[i].coef == 1 && n < 2;
            v[n < 2 ? n++ : 0] = at.term[i].var;
        }
    }
    if (!fits || !begins || n == 0) {
        return false;
    }
    if (n == 1) {
        return is_within(w, v[0]);
    }
    uint32_t edge = !affine_is_dim(v[0]) && w->inner[v[0]] != NULL ? 0 : 1;
    int64_t step = 0;
    const Stmt *rest = affine_is_dim(v[edge]) ? NULL : w->inner[v[edge]];
    const Range *r = affine_is_dim(v[1 - edge]) ? NULL : range_of(w, v[1 - edge], &step);
    return rest != NULL && rest->part == FOR_REST && rest->step == w->panels &&
           is_within(w, v[edge]) && r != NULL && r->start.n == 0 && r->start.base == 0 &&
           r->span > 0 && r->span <= w->panels;
}

bool loop_cuts_panels(Arena *scratch, const Kernel *k, const Stmt *loop, BufRef panels)
{
    Within w = {.k = k, .loop = loop, .panels = k->bufs.at[panels].panels};
    StmtWalk walk;
    w.inner = ARENA_ARRAY(scratch, k->vars.n, const Stmt *);
    bool fits = w.panels > 0, allocated = false;
    for (const Stmt *s = stmt_first(&walk, loop->body, loop->n_body); s != NULL && fits;
         s = stmt_next(&walk)) {
        if (s->kind == STMT_FOR) {
            w.inner[s->var] = s;
        }
        allocated |= s->kind == STMT_ALLOC && s->buf == panels && s->over == 0;
        fits = fits && !(s->kind == STMT_ALLOC && s->over == 1 + panels);
        w.tile = s;
        fits = fits && (s->kind != STMT_TILE || s->dst != panels || column_fits(&w, s->at[1]));
        ExprWalk x;
        for (const Expr *e = s->kind == STMT_TILE ? load_first(&x, s->value) : NULL;
             e != NULL && fits; e = load_next(&x)) {
            fits = e->buf != panels || column_fits(&w, e->at[1]);
        }
    }
    return fits && allocated;
}
