/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and buffers numbered as they appear in the text, those that nothing uses left out:
 * what a reader would make of the kernel's dump, which then needs no `order` line. Builders
 * make things in the order they need them; this is their last step. */
#include "loop/loop.h"

#include "loop/affine.h"
#include "loop/loop_text.h"

#define UNNUMBERED UINT32_MAX

typedef struct Numbering {
    Arena *arena;
    const Kernel *from;
    Kernel *to;
    VarRef *var;         /* [from->vars] new number, or UNNUMBERED */
    BufRef *buf;         /* [from->bufs] */
    uint32_t expr_nodes; /* of the value at hand */
    bool too_large;      /* deeper or larger than loop_verify allows */
} Numbering;

static VarRef number_var(Numbering *n, VarRef v)
{
    if (n->var[v] == UNNUMBERED) {
        n->var[v] = n->to->vars.n;
        vec_push(n->arena, &n->to->vars, n->from->vars.at[v]);
    }
    return n->var[v];
}

static BufRef number_buf(Numbering *n, BufRef b)
{
    if (n->buf[b] == UNNUMBERED) {
        n->buf[b] = n->to->bufs.n;
        vec_push(n->arena, &n->to->bufs, n->from->bufs.at[b]);
    }
    return n->buf[b];
}

static Affine number_affine(Numbering *n, Affine x)
{
    Affine out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        const AffineTerm term = {number_var(n, x.term[i].var), x.term[i].coef};
        out = affine_add(n->arena, out, 1, (Affine){0, 1, &term});
    }
    return out;
}

static const Affine *number_at(Numbering *n, BufRef buf, const Affine *at)
{
    uint32_t rank = n->from->bufs.at[buf].rank;
    Affine *out = rank == 0 ? NULL : ARENA_ARRAY(n->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = number_affine(n, at[d]);
    }
    return out;
}

static const Expr *number_expr(Numbering *n, const Expr *e, uint32_t depth)
{
    if (depth > EXPR_DEPTH_LIMIT || n->expr_nodes++ > EXPR_SIZE_LIMIT) {
        n->too_large = true;
        return e;
    }
    if (e->kind == EXPR_CONST || e->kind == EXPR_EXTENT) {
        return e;
    }
    Expr *out = arena_copy(n->arena, e, sizeof *e);
    if (e->kind == EXPR_LOAD) {
        out->buf = number_buf(n, e->buf);
        out->at = number_at(n, e->buf, e->at);
        return out;
    }
    const Expr **arg = ARENA_ARRAY(n->arena, e->n_args, const Expr *);
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = number_expr(n, e->arg[i], depth + 1);
    }
    out->arg = arg;
    return out;
}

static Range number_range(Numbering *n, const Range *r)
{
    Range out = *r;
    out.start = number_affine(n, r->start);
    return out;
}

static Stmt **number_block(Numbering *n, Stmt *const *body, uint32_t n_body, uint32_t depth);

static Stmt *number_stmt(Numbering *n, const Stmt *s, uint32_t depth)
{
    Stmt *out = arena_copy(n->arena, s, sizeof *s);
    switch (s->kind) {
    case STMT_FOR:
        out->range = number_range(n, &s->range);
        out->var = number_var(n, s->var);
        out->body = number_block(n, s->body, s->n_body, depth + 1);
        return out;
    case STMT_ALLOC:
        out->buf = number_buf(n, s->buf);
        return out;
    case STMT_TILE:
        break;
    }
    TileIndex *index = ARENA_ARRAY(n->arena, s->n_index, TileIndex);
    for (uint32_t i = 0; i < s->n_index; i++) {
        index[i] = s->index[i];
        index[i].range = number_range(n, &s->index[i].range);
        index[i].var = number_var(n, s->index[i].var);
    }
    out->index = index;
    out->dst = number_buf(n, s->dst);
    out->at = number_at(n, s->dst, s->at);
    n->expr_nodes = 0;
    out->value = number_expr(n, s->value, 0);
    return out;
}

static Stmt **number_block(Numbering *n, Stmt *const *body, uint32_t n_body, uint32_t depth)
{
    Stmt **out = ARENA_ARRAY(n->arena, n_body, Stmt *);
    if (depth > LOOP_DEPTH_LIMIT) {
        n->too_large = true;
        return out;
    }
    for (uint32_t i = 0; i < n_body; i++) {
        out[i] = number_stmt(n, body[i], depth);
    }
    return out;
}

Kernel *kernel_numbered(Arena *arena, const Kernel *k)
{
    Numbering n = {.arena = arena, .from = k, .to = kernel_like(arena, k)};
    n.var = ARENA_ARRAY(arena, k->vars.n, VarRef);
    n.buf = ARENA_ARRAY(arena, k->bufs.n, BufRef);
    for (uint32_t i = 0; i < k->vars.n; i++) {
        n.var[i] = UNNUMBERED;
    }
    for (uint32_t i = 0; i < k->bufs.n; i++) {
        n.buf[i] = UNNUMBERED;
    }
    n.to->vars.at = NULL;
    n.to->vars.n = n.to->vars.cap = 0;
    n.to->bufs.at = NULL;
    n.to->bufs.n = n.to->bufs.cap = 0;
    n.to->args.at = NULL;
    n.to->args.n = n.to->args.cap = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        Arg arg = k->args.at[i];
        arg.buf = number_buf(&n, arg.buf);
        vec_push(arena, &n.to->args, arg);
    }
    n.to->body = number_block(&n, k->body, k->n_body, 0);
    return n.too_large ? kernel_like(arena, k) : n.to; /* loop_verify will say so */
}
