/* SPDX-License-Identifier: Apache-2.0 */
/* See copy.h. */
#include "backend/nki/copy.h"

static Affine copy_affine(const StmtCopy *c, Affine x, int64_t less)
{
    Affine out = affine_const(x.base - less);
    for (uint32_t i = 0; i < x.n; i++) {
        const AffineTerm term = {c->var[x.term[i].var], x.term[i].coef};
        out = affine_add(c->arena, out, 1, (Affine){0, 1, &term});
    }
    return out;
}

static const Affine *copy_at(const StmtCopy *c, BufRef buf, const Affine *at)
{
    uint32_t rank = c->from->bufs.at[buf].rank;
    Affine *out = rank == 0 ? NULL : ARENA_ARRAY(c->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        bool moved = c->shift != NULL && c->shift[buf].dim == d;
        out[d] = copy_affine(c, at[d], moved ? c->shift[buf].by : 0);
    }
    return out;
}

static const Expr *copy_expr(const StmtCopy *c, const Expr *e)
{
    Expr *out = arena_copy(c->arena, e, sizeof *e);
    if (e->kind == EXPR_LOAD) {
        out->buf = c->buf[e->buf];
        out->at = copy_at(c, e->buf, e->at);
    }
    const Expr **arg = ARENA_ARRAY(c->arena, e->n_args, const Expr *);
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = copy_expr(c, e->arg[i]);
    }
    out->arg = arg;
    return out;
}

static Stmt *copy_stmt(const StmtCopy *c, const Stmt *s)
{
    Stmt *out = arena_copy(c->arena, s, sizeof *s);
    switch (s->kind) {
    case STMT_FOR:
        out->var = c->var[s->var];
        out->range.start = copy_affine(c, s->range.start, 0);
        out->body = stmts_copy(c, s->body, s->n_body);
        return out;
    case STMT_ALLOC:
        out->buf = c->buf[s->buf];
        return out;
    case STMT_TILE:
        break;
    }
    TileIndex *index = ARENA_ARRAY(c->arena, s->n_index, TileIndex);
    for (uint32_t i = 0; i < s->n_index; i++) {
        index[i] = s->index[i];
        index[i].range.start = copy_affine(c, s->index[i].range.start, 0);
        index[i].var = c->var[s->index[i].var];
    }
    out->index = index;
    out->dst = c->buf[s->dst];
    out->at = copy_at(c, s->dst, s->at);
    out->value = copy_expr(c, s->value);
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
