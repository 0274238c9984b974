/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of two stages. Engines run in order, so what an iteration does first waits for what the one before does last, though
 * other engines do that. Here the second stage of an iteration stands in the first one of the next iteration. What a stage hands to the
 * other has a tile for each iteration, where SBUF has room for that,
 *
 *     for i in range(n + 1) { if i < n: begin(i); if i >= 1: second(i - 1); if i < n: end(i) }
 *
 * or else two tiles, in a loop over pairs of iterations:
 *
 *     begin(0); end(0); for p { begin(2p+1); second(2p); end(2p+1); if there is one: begin(2p+2); second(2p+1); if ..: end(2p+2) }
 */
#include "backend/nki/lower.h"

#include <string.h>

typedef struct Pipeline {
    Ctx *ctx;
    Arena *arena;
    const Kernel *from;
    Kernel *to;
    const Stmt *loop;
    uint32_t cut;    /* statements of the first stage, */
    uint32_t at;     /* and how many of them stand before the second one */
    bool wide;       /* a tile for each iteration */
    bool *shared;    /* [bufs] begins before the second stage, is used after it */
    bool *first;     /* [bufs] is used there */
    bool *crosses;   /* [bufs] and is used in the second */
    VarRef pair;     /* the loop over pairs */
    BufRef *copy[2]; /* [bufs] of even iterations, of odd ones */
    VarRef *var;     /* [vars] of loops inside, as the last copy of them calls it */
    bool *used;      /* [vars] has one that name already? */
} Pipeline;

static bool on_chip(const Kernel *k, BufRef b)
{
    return k->bufs.at[b].space == SPACE_TILE || k->bufs.at[b].space == SPACE_ACC;
}

/* Notes what begins before the second stage and is used after it, in the first one. */
static void note_shared(Pipeline *p, uint32_t at, const bool *here)
{
    for (uint32_t i = 0; i < p->at && at >= p->at; i++) {
        const Stmt *alloc = p->loop->body[i];
        if (alloc->kind == STMT_ALLOC) {
            p->shared[alloc->buf] |= here[alloc->buf];
        }
    }
}

/* Notes what a statement reads and writes, with all in it; false: it is not the same in each iteration, as it stands. */
static bool note_uses(Pipeline *p, const Stmt *s, bool *own, bool *read, bool *write)
{
    bool same = true;
    switch (s->kind) {
    case STMT_ALLOC:
        own[s->buf] = true;
        return on_chip(p->from, s->buf);
    case STMT_TILE:
        expr_mark_loads(s->value, read);
        write[s->dst] = true;
        return true;
    case STMT_FOR:
        same = s->window == NULL && !affine_uses(s->range.start, p->loop->var);
        break;
    case STMT_BLOCK:
        for (uint32_t g = 0; g < s->n_guards; g++) {
            same &= s->guard[g].var != p->loop->var;
        }
        break;
    }
    for (uint32_t i = 0; i < s->n_body && same; i++) {
        same = note_uses(p, s->body[i], own, read, write);
    }
    return same;
}

/* Is what the first stage reads or writes its own, but for what nobody in the loop writes, or it alone uses? */
static bool may_cut(Pipeline *p)
{
    const Kernel *k = p->from;
    bool *own = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool);
    bool *read = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool);
    bool *written_first = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool);
    bool *used_second = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool);
    bool *written = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool), may = true, any = false;
    bool *here =
        ARENA_ARRAY(p->arena, k->bufs.n + 1, bool); /* of the statement at hand: read, */
    bool *write = ARENA_ARRAY(p->arena, k->bufs.n + 1, bool); /* and written */
    for (uint32_t i = 0; i < p->loop->n_body; i++) {
        const Stmt *s = p->loop->body[i];
        memset(here, 0, k->bufs.n * sizeof *here);
        memset(write, 0, k->bufs.n * sizeof *write);
        if (!note_uses(p, s, own, here, write)) {
            return false;
        }
        for (uint32_t b = 0; b < k->bufs.n; b++) {
            read[b] |= i < p->cut && here[b];
            written_first[b] |= i < p->cut && write[b] && !own[b];
            written[b] |= i >= p->cut && write[b];
            here[b] |= write[b];
            p->first[b] |= i < p->cut && here[b];
            used_second[b] |= i >= p->cut && here[b];
            p->crosses[b] |= i >= p->cut && here[b] && own[b] && p->first[b];
        }
        if (i < p->cut) {
            note_shared(p, i, here);
        }
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        may &= !(read[b] && written[b] && !own[b]);
        may &= !written_first[b] || (on_chip(k, b) && !used_second[b]);
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

static Affine moved_position(const Stage *g, Affine at)
{
    Affine out = affine_subst(g->p->arena, at, g->p->loop->var, g->at);
    for (uint32_t i = 0; i < at.n; i++) {
        VarRef v = at.term[i].var;
        if (g->p->var[v] != v) {
            out = affine_subst(g->p->arena, out, v, affine_var(g->p->arena, g->p->var[v]));
        }
    }
    return out;
}

static const Affine *moved(const Stage *g, BufRef buf, const Affine *at)
{
    uint32_t rank = g->p->from->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(g->p->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = moved_position(g, at[d]);
    }
    if (g->p->wide && g->p->crosses[buf]) {
        out[1] = affine_add(g->p->arena, out[1], g->p->from->bufs.at[buf].extent[1].n, g->at);
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
    } else if (load->kind == EXPR_INDEX) {
        Affine at = moved_position(g, load->at[0]);
        load->at = arena_copy(g->p->arena, &at, sizeof at);
    }
}

typedef struct Stmts {
    VEC(Stmt *) list;
} Stmts;

/* A tile for the buffer, of one iteration or of all. */
static void put_alloc(Pipeline *p, Stmts *out, const Stmt *s, uint32_t parity)
{
    const Buffer *b = &p->from->bufs.at[s->buf];
    Stmt *t = arena_copy(p->arena, s, sizeof *s);
    Dim extent[2] = {b->extent[0], b->extent[1]};
    if (p->wide && p->crosses[s->buf]) {
        extent[1] = dim_fixed(sat_mul(extent[1].n, p->loop->range.limit.n));
    }
    t->buf = p->copy[parity][s->buf] =
        kernel_buffer(p->to, &p->ctx->syms, b->name->text, b->dtype, b->space, b->rank, extent);
    vec_push(p->arena, &out->list, t);
}

/* The tiles of the first stage that are allocated apart: those that cross to the second one, or are shared. */
static void put_allocs(Pipeline *p, Stmts *out, const bool *which, uint32_t parity)
{
    for (uint32_t i = 0; i < p->cut; i++) {
        const Stmt *s = p->loop->body[i];
        if (s->kind == STMT_ALLOC && which[s->buf]) {
            put_alloc(p, out, s, parity);
        }
    }
}

/* A copy of a statement in that iteration, with all in it. */
static Stmt *moved_stmt(const Stage *g, const Stmt *s)
{
    Pipeline *p = g->p;
    Stmt *t = arena_copy(p->arena, s, sizeof *s);
    if (s->kind == STMT_TILE) {
        t->at = moved(g, s->dst, s->at);
        t->dst = copy_of(g, s->dst);
        t->value = expr_with_places(p->arena, s->value, moved_load, (void *)(uintptr_t)g);
        return t;
    }
    if (s->kind == STMT_FOR) {
        const char *name = p->from->vars.at[s->var].name->text;
        p->var[s->var] =
            p->used[s->var] ? kernel_var(p->to, &p->ctx->syms, name, true) : s->var;
        p->used[s->var] = true;
        t->var = p->var[s->var];
        t->range.start = moved_position(g, s->range.start);
    }
    Guard *guard = ARENA_ARRAY(p->arena, s->n_guards + 1, Guard);
    for (uint32_t i = 0; i < s->n_guards; i++) {
        guard[i] = s->guard[i];
        guard[i].var = p->var[guard[i].var];
    }
    t->guard = guard;
    Stmts in = {0};
    for (uint32_t i = 0; i < s->n_body; i++) {
        if (s->body[i]->kind == STMT_ALLOC) {
            put_alloc(p, &in, s->body[i], g->parity);
        } else {
            Stmt *inside = moved_stmt(g, s->body[i]);
            vec_push(p->arena, &in.list, inside);
        }
    }
    t->body = in.list.at;
    t->n_body = in.list.n;
    return t;
}

/* Statements [from, to) of the body, of that iteration; tiles of these alone begin again each time. */
static void put_stage(Pipeline *p, Stmts *out, uint32_t from, uint32_t to, Affine at,
                      uint32_t parity)
{
    Stage g = {p, at, parity};
    bool second = from == p->cut;
    for (uint32_t i = second ? 0 : from; i < to; i++) {
        const Stmt *s = p->loop->body[i];
        if (s->kind == STMT_ALLOC) {
            bool here = i < p->cut ? p->first[s->buf] != second : second;
            if (here && !p->crosses[s->buf] && !p->shared[s->buf]) {
                put_alloc(p, out, s, parity);
            }
        } else if (i >= from) {
            Stmt *t = moved_stmt(&g, s);
            vec_push(p->arena, &out->list, t);
        }
    }
}

/* The same where lo <= var < hi. */
static void put_guarded(Pipeline *p, Stmts *out, uint32_t from, uint32_t to, Affine at,
                        uint32_t parity, Guard when)
{
    Stmts in = {0};
    put_stage(p, &in, from, to, at, parity);
    if (in.list.n == 0) {
        return;
    }
    Stmt *block = ARENA_NEW(p->arena, Stmt);
    *block = (Stmt){.kind = STMT_BLOCK, .span = p->loop->span, .n_guards = 1};
    block->guard = arena_copy(p->arena, &when, sizeof when);
    block->body = in.list.at;
    block->n_body = in.list.n;
    vec_push(p->arena, &out->list, block);
}

/* ---- the loop ---- */

static void put_loop_over(Pipeline *p, Stmts *out, const Stmts *body, int64_t trips)
{
    Stmt *loop = arena_copy(p->arena, p->loop, sizeof *loop);
    loop->var = p->pair;
    loop->range = range_whole(dim_fixed(trips));
    loop->body = body->list.at;
    loop->n_body = body->list.n;
    vec_push(p->arena, &out->list, loop);
}

static void put_wide(Pipeline *p, Stmts *out)
{
    int64_t n = p->loop->range.limit.n;
    Affine now = affine_var(p->arena, p->pair);
    Affine last = affine_add(p->arena, affine_const(-1), 1, now);
    Guard first = {p->pair, 0, n}, second = {p->pair, 1, n + 1};
    Stmts body = {0};
    put_allocs(p, out, p->crosses, 0);
    put_allocs(p, &body, p->shared, 0);
    put_guarded(p, &body, 0, p->at, now, 0, first);
    put_guarded(p, &body, p->cut, p->loop->n_body, last, 0, second);
    put_guarded(p, &body, p->at, p->cut, now, 0, first);
    put_loop_over(p, out, &body, n + 1);
}

static void put_pairs(Pipeline *p, Stmts *out)
{
    Arena *a = p->arena;
    int64_t pairs = p->loop->range.limit.n / 2;
    uint32_t n = p->loop->n_body;
    Affine twice = affine_add(a, affine_const(0), 2, affine_var(a, p->pair)), at[3];
    for (int64_t i = 0; i < 3; i++) {
        at[i] = affine_add(a, affine_const(i), 1, twice);
    }
    Guard more = {p->pair, 0, pairs - 1};
    Stmts body = {0};
    put_allocs(p, out, p->crosses, 0);
    put_allocs(p, out, p->crosses, 1);
    put_allocs(p, out, p->shared, 0);
    put_stage(p, out, 0, p->cut, affine_const(0), 0);
    put_allocs(p, &body, p->shared, 1);
    put_stage(p, &body, 0, p->at, at[1], 1);
    put_stage(p, &body, p->cut, n, at[0], 0);
    put_stage(p, &body, p->at, p->cut, at[1], 1);
    put_allocs(p, &body, p->shared, 0);
    put_guarded(p, &body, 0, p->at, at[2], 0, more);
    put_stage(p, &body, p->cut, n, at[1], 1);
    put_guarded(p, &body, p->at, p->cut, at[2], 0, more);
    put_loop_over(p, out, &body, pairs);
}

/* A copy of the statements with the loop in its new form. */
static void rebuild(Pipeline *p, Stmts *out, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (body[i] == p->loop) {
            (p->wide ? put_wide : put_pairs)(p, out);
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

Kernel *lower_pipelined(Ctx *ctx, Arena *arena, const Kernel *k, const Stmt *loop,
                        Stages stages)
{
    ArenaMark before = arena_mark(arena);
    Pipeline p = {.ctx = ctx, .arena = arena, .from = k, .loop = loop};
    p.cut = stages.cut;
    p.at = stages.at;
    p.wide = stages.wide;
    p.first = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    p.crosses = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    p.shared = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    if (loop->window != NULL || loop->range.start.n > 0 || loop->range.limit.n < 4 ||
        (!p.wide && loop->range.limit.n % 2 != 0) || !may_cut(&p)) {
        arena_reset(arena, before);
        return NULL;
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        p.shared[b] = p.shared[b] && !p.crosses[b];
    }
    p.var = ARENA_ARRAY(arena, k->vars.n + 1, VarRef);
    p.used = ARENA_ARRAY(arena, k->vars.n + 1, bool);
    for (VarRef v = 0; v < k->vars.n; v++) {
        p.var[v] = v;
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
