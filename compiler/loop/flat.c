/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/flat.h"

#include "loop/parallel.h"
#include "loop/walk.h"

/* Are all buffers that the statements write allocated among them? */
static bool writes_own(Arena *scratch, const Kernel *k, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    bool *own = ARENA_ARRAY(scratch, k->bufs.n, bool);
    bool all = true;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC) {
            own[s->buf] = true;
        }
        all = all && (s->kind != STMT_TILE || own[s->dst]) && s->threads == NULL;
        all = all && (s->kind != STMT_TILE || s->sums == 0 || own[s->sums - 1]);
    }
    return all;
}

Stmt *loop_flat_inner(Arena *scratch, const Kernel *k, const Stmt *loop)
{
    Stmt *inner = loop->n_body > 0 ? loop->body[loop->n_body - 1] : NULL;
    bool plain = inner != NULL && inner->kind == STMT_FOR && inner->part != FOR_REST &&
                 inner->window == NULL && loop->part != FOR_REST && loop->window == NULL;
    return plain && writes_own(scratch, k, loop->body, loop->n_body - 1) ? inner : NULL;
}

typedef struct Apart {
    Bounds bounds;
    ParallelLoop loop;
    bool *own; /* [bufs]: allocated inside */
    bool ok;
} Apart;

static void gather_access(Apart *a, const Stmt *s, BufRef buf, const Affine *at,
                          const bool *given, bool writes)
{
    if (!a->own[buf]) {
        parallel_access(&a->loop, &a->bounds, s, buf, at, given, writes);
    }
}

static void gather_tile(Apart *a, const Stmt *s)
{
    ExprWalk w;
    for (uint32_t i = 0; i < s->n_first; i++) {
        a->ok = a->ok && s->first[i] != a->loop.loop->var;
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        bounds_push(&a->bounds, s->index[i].var, &s->index[i].range, 1, FOR_ALL);
    }
    gather_access(a, s, s->dst, s->at, NULL, true);
    if (s->sums > 0) {
        gather_access(a, s, s->sums - 1, s->sums_at, NULL, true);
    }
    const Affine any[RANK_LIMIT] = {{0}};
    const bool none[RANK_LIMIT] = {false};
    for (const Expr *x = read_first(&w, s->value); x != NULL; x = read_next(&w)) {
        bool load = x->kind == EXPR_LOAD;
        gather_access(a, s, x->buf, load ? x->at : any, load ? NULL : none, false);
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        bounds_pop(&a->bounds);
    }
}

/* As deep as loop_verify allows. */
static void gather(Apart *a, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n && a->ok; i++) {
        const Stmt *s = body[i];
        switch (s->kind) {
        case STMT_ALLOC:
            a->own[s->buf] = true;
            break;
        case STMT_TILE:
            gather_tile(a, s);
            break;
        case STMT_BLOCK:
            gather(a, s->body, s->n_body);
            break;
        case STMT_FOR:
            bounds_push(&a->bounds, s->var, &s->range, s->step, s->part);
            gather(a, s->body, s->n_body);
            bounds_pop(&a->bounds);
            break;
        }
    }
}

bool loop_is_apart(Arena *scratch, const Kernel *k, const Stmt *const *around, uint32_t n,
                   const Stmt *loop)
{
    Apart a = {.ok = true};
    BufRef buf = 0;
    bounds_init(&a.bounds, scratch, k);
    a.own = ARENA_ARRAY(scratch, k->bufs.n, bool);
    for (uint32_t i = 0; i < n; i++) {
        bounds_push(&a.bounds, around[i]->var, &around[i]->range, around[i]->step,
                    around[i]->part);
    }
    bounds_push(&a.bounds, loop->var, &loop->range, loop->step, loop->part);
    a.loop = (ParallelLoop){.arena = scratch, .k = k, .loop = loop, .n_outer = a.bounds.vars.n};
    gather(&a, loop->body, loop->n_body);
    return a.ok && parallel_conflict(&a.loop, &buf) == NULL && !bounds_exhausted(&a.bounds);
}
