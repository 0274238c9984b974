/* SPDX-License-Identifier: Apache-2.0 */
/* See copy.h. */
#include "loop/copy.h"

#include "loop/clauses.h"
#include "loop/walk.h"

static Affine copy_affine(const StmtCopy *c, Affine x, int64_t less)
{
    Affine out = affine_const(x.base - less);
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        VarRef to = !affine_is_dim(v)
                        ? c->var[v]
                        : affine_dim(dim_mapped(c->dim, dim_open(affine_sym(v))).sym);
        const AffineTerm term = {to, x.term[i].coef};
        out = affine_add(c->arena, out, 1, (Affine){0, 1, &term});
    }
    return out;
}

static Range copy_range(const StmtCopy *c, Range r)
{
    r.start = copy_affine(c, r.start, 0);
    r.limit = dim_mapped(c->dim, r.limit);
    return r;
}

/* A position in the larger buffer. */
static Affine place_at(const StmtCopy *c, const StmtPlace *p, uint32_t d, const Affine *at)
{
    Affine out = affine_add(c->arena, p->plus[d], 1, affine_const(p->at[d].base));
    for (uint32_t i = 0; i < p->at[d].n; i++) {
        AffineTerm t = p->at[d].term[i];
        Affine of =
            affine_is_dim(t.var) ? affine_var(c->arena, t.var) : copy_affine(c, at[t.var], 0);
        out = affine_add(c->arena, out, t.coef, of);
    }
    return out;
}

static const Affine *copy_at(const StmtCopy *c, BufRef buf, const Affine *at)
{
    if (c->place != NULL && c->place[buf].at != NULL) {
        const StmtPlace *p = &c->place[buf];
        Affine *placed = ARENA_ARRAY(c->arena, p->rank, Affine);
        for (uint32_t d = 0; d < p->rank; d++) {
            placed[d] = place_at(c, p, d, at);
        }
        return placed;
    }
    uint32_t rank = c->from->bufs.at[buf].rank;
    Affine *out = rank == 0 ? NULL : ARENA_ARRAY(c->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        bool moved = c->shift != NULL && c->shift[buf].dim == d;
        out[d] = copy_affine(c, at[d], moved ? c->shift[buf].by : 0);
    }
    return out;
}

static void copy_place(void *user, Expr *e)
{
    const StmtCopy *c = user;
    if (e->kind == EXPR_INDEX) {
        Affine x = copy_affine(c, e->at[0], 0);
        e->at = arena_copy(c->arena, &x, sizeof x);
        return;
    }
    e->at = copy_at(c, e->buf, e->at);
    e->buf = c->buf[e->buf];
}

/* Of a larger buffer: positions of its dimensions, each one of the buffer's or a number of the other kernel. */
static void copy_gather(const StmtCopy *c, Expr *e)
{
    const StmtPlace *p = c->place == NULL ? NULL : &c->place[e->buf];
    if (p != NULL && p->at != NULL) {
        const Expr **arg = ARENA_ARRAY(c->arena, p->rank, const Expr *);
        for (uint32_t d = 0; d < p->rank; d++) {
            if (p->at[d].n == 1 && !affine_is_dim(p->at[d].term[0].var)) {
                arg[d] = e->arg[p->at[d].term[0].var];
                continue;
            }
            Affine at = place_at(c, p, d, NULL);
            arg[d] = expr_index(c->arena, DTYPE_I64, at);
        }
        e->arg = arg;
        e->n_args = p->rank;
    }
    e->buf = c->buf[e->buf];
}

static const Expr *copy_value(StmtCopy *c, const Expr *value)
{
    ExprWalk w;
    const Expr *out = expr_with_places(c->arena, value, copy_place, c);
    for (const Expr *x = expr_first(&w, out); x != NULL; x = expr_next(&w)) {
        Expr *own = (Expr *)(uintptr_t)x; /* a copy of ours */
        if (x->kind == EXPR_OP && x->op == OP_GATHER) {
            copy_gather(c, own);
        } else if (x->kind == EXPR_EXTENT) {
            own->dim = dim_mapped(c->dim, dim_open(x->dim)).sym;
        }
    }
    return out;
}

static const Guard *copy_guards(const StmtCopy *c, const Stmt *s)
{
    Guard *out = s->n_guards == 0 ? NULL : ARENA_ARRAY(c->arena, s->n_guards, Guard);
    for (uint32_t i = 0; i < s->n_guards; i++) {
        out[i] = s->guard[i];
        out[i].var = c->var[s->guard[i].var];
        out[i].from = copy_affine(c, s->guard[i].from, 0);
    }
    return out;
}

static const Prefetch *copy_prefetch(const StmtCopy *c, const Prefetch *p)
{
    Prefetch *out = arena_copy(c->arena, p, sizeof *p);
    out->at = copy_at(c, p->buf, p->at);
    out->past = p->past == NULL ? NULL : copy_at(c, p->buf, p->past);
    out->var = p->past == NULL ? 0 : c->var[p->var];
    out->buf = c->buf[p->buf];
    return out;
}

static const Window *copy_window(const StmtCopy *c, const Window *w)
{
    Window *out = w == NULL ? NULL : arena_copy(c->arena, w, sizeof *w);
    if (out != NULL) {
        out->lo = copy_affine(c, w->lo, 0);
        out->hi = copy_affine(c, w->hi, 0);
    }
    return out;
}

static void copy_clauses(const StmtCopy *c, const Stmt *out)
{
    Clauses has;
    clauses_of(c->from, out, &has);
    for (const Clause *x = has.at; x < has.at + has.n; x++) {
        if (x->at != NULL) {
            *x->at = copy_at(c, *x->buf - 1, *x->at);
        }
        if (x->buf != NULL) {
            *x->buf = 1 + c->buf[*x->buf - 1];
        }
        if (x->loop != NULL) {
            VarRef *loop = ARENA_ARRAY(c->arena, *x->n_loops, VarRef);
            for (uint32_t i = 0; i < *x->n_loops; i++) {
                loop[i] = c->var[(*x->loop)[i]];
            }
            *x->loop = loop;
        }
    }
}

static Stmt *copy_stmt(const StmtCopy *c, const Stmt *s)
{
    Stmt *out = arena_copy(c->arena, s, sizeof *s);
    copy_clauses(c, out);
    switch (s->kind) {
    case STMT_FOR:
        out->var = c->var[s->var];
        out->range = copy_range(c, s->range);
        out->window = copy_window(c, s->window);
        out->body = stmts_copy(c, s->body, s->n_body);
        return out;
    case STMT_BLOCK:
        out->body = stmts_copy(c, s->body, s->n_body);
        out->guard = copy_guards(c, s);
        return out;
    case STMT_ALLOC:
        out->buf = c->buf[s->buf];
        out->prefetch = s->prefetch == NULL ? NULL : copy_prefetch(c, s->prefetch);
        return out;
    case STMT_TILE:
        break;
    }
    StmtCopy of_value = *c;
    TileIndex *index = ARENA_ARRAY(c->arena, s->n_index, TileIndex);
    for (uint32_t i = 0; i < s->n_index; i++) {
        index[i] = s->index[i];
        index[i].range = copy_range(c, s->index[i].range);
        index[i].var = c->var[s->index[i].var];
        index[i].window = copy_window(c, s->index[i].window);
    }
    out->index = index;
    out->dst = c->buf[s->dst];
    out->at = copy_at(c, s->dst, s->at);
    out->value = copy_value(&of_value, s->value);
    return out;
}

Stmt **stmts_copy(const StmtCopy *c, Stmt *const *body, uint32_t n)
{
    Stmt **out = ARENA_ARRAY(c->arena, n, Stmt *);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = copy_stmt(c, body[i]);
    }
    return out;
}

Stmt *stmt_neutral(Arena *a, const Kernel *k, const Stmt *fold)
{
    Stmt *s = arena_copy(a, fold, sizeof *fold);
    TileIndex *index = ARENA_ARRAY(a, fold->n_index, TileIndex);
    s->n_index = 0;
    for (uint32_t i = 0; i < fold->n_index; i++) {
        if (access_uses(k, fold->dst, fold->at, fold->index[i].var)) {
            index[s->n_index++] = fold->index[i];
        }
    }
    s->index = index;
    s->fold = OP_COPY;
    s->begins = false;
    s->places = 0;
    s->schedule = NULL;
    s->value = expr_const(a, op_neutral(fold->fold, k->bufs.at[fold->dst].dtype));
    return s;
}
