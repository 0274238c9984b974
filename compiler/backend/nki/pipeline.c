/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of two stages. Engines run in order, so what an iteration does first waits for what the one before does last, though
 * other engines do that. Here the first stage of an iteration stands before the second one of the iteration before, in a loop over
 * pairs of iterations, so that what a stage hands to the other has two places:
 *
 *     first(0); for p { first(2p+1); second(2p); if there is one: first(2p+2); second(2p+1) }
 */
#include "backend/nki/lower.h"

#include <string.h>

typedef struct Pipeline {
    Ctx *ctx;
    Arena *arena;
    const Kernel *from;
    Kernel *to;
    const Stmt *loop;
    uint32_t cut;    /* statements of the first stage */
    bool *first;     /* [bufs] begins there */
    bool *crosses;   /* [bufs] and is used in the second */
    VarRef pair;     /* the loop over pairs */
    BufRef *copy[2]; /* [bufs] of even iterations, of odd ones */
} Pipeline;

static bool on_chip(const Kernel *k, BufRef b)
{
    return k->bufs.at[b].space == SPACE_TILE || k->bufs.at[b].space == SPACE_ACC;
}

/* Is what the first stage reads or writes its own, but for what nobody in the loop writes? */
static bool may_cut(Pipeline *p)
{
    const Kernel *k = p->from;
    bool *own = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool);
    bool *read = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool);
    bool *written = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool), may = true, any = false;
    for (uint32_t i = 0; i < p->loop->n_body; i++) {
        const Stmt *s = p->loop->body[i];
        if (s->kind == STMT_ALLOC) {
            own[s->buf] = true;
            p->first[s->buf] = i < p->cut;
            may &= on_chip(k, s->buf);
            continue;
        }
        may &= s->kind == STMT_TILE;
        if (!may) {
            return false;
        }
        if (i < p->cut) {
            may &= own[s->dst];
            expr_mark_loads(s->value, read);
            continue;
        }
        bool *here = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool);
        expr_mark_loads(s->value, here);
        here[s->dst] = true;
        written[s->dst] = true;
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            p->crosses[b] |= here[b] && own[b] && p->first[b];
        }
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        may &= !(read[b] && written[b] && !own[b]);
        may &= !p->crosses[b] || k->bufs.at[b].space == SPACE_TILE;
        any |= p->crosses[b];
    }
    return may && any;
}

/* ---- stages at an iteration ---- */

typedef struct Stage {
    Pipeline *p;
    Affine at; /* the loop's variable */
    uint32_t parity;
} Stage;

static const Affine *moved(const Stage *g, BufRef buf, const Affine *at)
{
    uint32_t rank = g->p->from->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(g->p->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = affine_subst(g->p->arena, at[d], g->p->loop->var, g->at);
    }
    return out;
}

static BufRef copy_of(const Stage *g, BufRef buf)
{
    return g->p->copy[g->parity][buf];
}

static void moved_load(void *user, Expr *load)
{
    const Stage *g = user;
    if (load->kind == EXPR_LOAD) {
        load->at = moved(g, load->buf, load->at);
        load->buf = copy_of(g, load->buf);
    }
}

typedef struct Stmts {
    VEC(Stmt *) list;
} Stmts;

/* Statements [from, to) of the body, of that iteration; tiles of these alone begin again each time. */
static void put_stage(Pipeline *p, Stmts *out, uint32_t from, uint32_t to, Affine at,
                      uint32_t parity)
{
    Stage g = {p, at, parity};
    for (uint32_t i = from; i < to; i++) {
        const Stmt *s = p->loop->body[i];
        Stmt *t = arena_copy(p->arena, s, sizeof *s);
        if (s->kind == STMT_ALLOC && p->crosses[s->buf]) {
            continue;
        }
        if (s->kind == STMT_ALLOC) {
            const Buffer *b = &p->from->bufs.at[s->buf];
            p->copy[parity][s->buf] = kernel_buffer(p->to, &p->ctx->syms, b->name->text,
                                                    b->dtype, b->space, b->rank, b->extent);
            t->buf = p->copy[parity][s->buf];
        } else {
            t->at = moved(&g, s->dst, s->at);
            t->dst = copy_of(&g, s->dst);
            t->value = expr_with_places(p->arena, s->value, moved_load, &g);
        }
        vec_push(p->arena, &out->list, t);
    }
}

static void put_crossing(Pipeline *p, Stmts *out, uint32_t parity)
{
    for (uint32_t i = 0; i < p->cut; i++) {
        const Stmt *s = p->loop->body[i];
        if (s->kind != STMT_ALLOC || !p->crosses[s->buf]) {
            continue;
        }
        const Buffer *b = &p->from->bufs.at[s->buf];
        Stmt *t = arena_copy(p->arena, s, sizeof *s);
        t->buf = p->copy[parity][s->buf] = kernel_buffer(
            p->to, &p->ctx->syms, b->name->text, b->dtype, b->space, b->rank, b->extent);
        vec_push(p->arena, &out->list, t);
    }
}

/* ---- the loop ---- */

static void put_loop(Pipeline *p, Stmts *out)
{
    Arena *a = p->arena;
    const Stmt *s = p->loop;
    int64_t pairs = s->range.limit.n / 2;
    uint32_t n = s->n_body;
    Affine twice = affine_add(a, affine_const(0), 2, affine_var(a, p->pair)), at[3];
    for (int64_t i = 0; i < 3; i++) {
        at[i] = affine_add(a, affine_const(i), 1, twice);
    }
    put_crossing(p, out, 0);
    put_crossing(p, out, 1);
    put_stage(p, out, 0, p->cut, affine_const(0), 0);
    Stmts body = {0}, next = {0};
    put_stage(p, &body, 0, p->cut, at[1], 1);
    put_stage(p, &body, p->cut, n, at[0], 0);
    put_stage(p, &next, 0, p->cut, at[2], 0);
    Guard *guard = ARENA_NEW(a, Guard);
    *guard = (Guard){p->pair, 0, pairs - 1};
    Stmt *block = ARENA_NEW(a, Stmt);
    *block = (Stmt){.kind = STMT_BLOCK, .span = s->span, .n_guards = 1, .guard = guard};
    block->body = next.list.at;
    block->n_body = next.list.n;
    vec_push(a, &body.list, block);
    put_stage(p, &body, p->cut, n, at[1], 1);
    Stmt *loop = arena_copy(a, s, sizeof *s);
    loop->var = p->pair;
    loop->range = range_whole(dim_fixed(pairs));
    loop->body = body.list.at;
    loop->n_body = body.list.n;
    vec_push(a, &out->list, loop);
}

/* A copy of the statements with the loop in its new form. */
static void rebuild(Pipeline *p, Stmts *out, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (body[i] == p->loop) {
            put_loop(p, out);
            continue;
        }
        Stmt *s = body[i];
        if (stmt_has_body(body[i])) {
            Stmts inside = {0};
            rebuild(p, &inside, body[i]->body, body[i]->n_body);
            s = arena_copy(p->arena, body[i], sizeof *s);
            s->body = inside.list.at;
            s->n_body = inside.list.n;
        }
        vec_push(p->arena, &out->list, s);
    }
}

Kernel *lower_pipelined(Ctx *ctx, Arena *arena, const Kernel *k, const Stmt *loop, uint32_t cut)
{
    Pipeline p = {.ctx = ctx, .arena = arena, .from = k, .loop = loop, .cut = cut};
    p.first = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    p.crosses = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    if (loop->range.limit.n < 4 || loop->range.limit.n % 2 != 0 || !may_cut(&p)) {
        return NULL;
    }
    p.to = kernel_like(arena, k);
    p.pair = kernel_var(p.to, &ctx->syms, k->vars.at[loop->var].name->text, true);
    for (int parity = 0; parity < 2; parity++) {
        p.copy[parity] = ARENA_ARRAY(arena, k->bufs.n + 1, BufRef);
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            p.copy[parity][b] = b;
        }
    }
    Stmts out = {0};
    rebuild(&p, &out, k->body, k->n_body);
    p.to->body = out.list.at;
    p.to->n_body = out.list.n;
    return kernel_numbered(arena, p.to);
}
