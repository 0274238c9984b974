/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `exact`: ranges that end before their limit wherever the loops around stand lose the limit, and loops over a remainder that there is
 * not are left out. Extents that are numbers, which steps often divide, are then printed without minima and without loops that never run:
 *
 *     for $yb in $k:64<384 step 32 { .. }    ->    for $yb in $k:64 step 32 { .. }
 *     for $j in 0..128 step 16 rest { .. }   ->
 */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "loop/bounds.h"
#include "op/affine.h"

typedef struct Exact {
    Arena *arena;  /* holds the new kernel */
    Arena proofs;  /* holds `bounds` */
    Arena scratch; /* holds the ranges of the statement at hand */
    Bounds bounds;
} Exact;

/* Removes the limit of a range that is proved to end before it: start + span <= limit. False: it stays. */
static bool exact_range(Exact *x, Range *r)
{
    Affine end = {0}, room = {0};
    if (!r->clipped || r->span == 0 || r->limit.sym >= 0) {
        return false;
    }
    bool exact = affine_try_add(&x->scratch, r->start, 1, affine_const(r->span), &end) &&
                 affine_try_add(&x->scratch, affine_const(r->limit.n), -1, end, &room) &&
                 bounds_at_least_zero(&x->bounds, room);
    r->clipped = !exact;
    r->limit = exact ? dim_fixed(0) : r->limit;
    return exact;
}

/* Is it the remainder of a length that the step divides? */
static bool is_nothing(const Stmt *s)
{
    const Range *r = &s->range;
    bool number = r->clipped && r->span == 0 && r->limit.sym < 0 && r->start.n == 0;
    int64_t length = number ? r->limit.n - r->start.base : r->span;
    return s->part == FOR_REST && s->window == NULL && (number || !r->clipped) &&
           length % s->step == 0;
}

/* The statement, or a copy of it whose ranges are exact. */
static Stmt *exact_tile(Exact *x, Stmt *s)
{
    ArenaMark before = arena_mark(&x->scratch);
    TileIndex *index = arena_copy(&x->scratch, s->index, s->n_index * sizeof *index);
    bool any = false;
    for (uint32_t i = 0; i < s->n_index; i++) {
        any |= exact_range(x, &index[i].range);
        bounds_push(&x->bounds, index[i].var, &index[i].range, 1, FOR_ALL);
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        bounds_pop(&x->bounds);
    }
    Stmt *out = s;
    if (any) {
        out = arena_copy(x->arena, s, sizeof *s);
        out->index = arena_copy(x->arena, index, s->n_index * sizeof *index);
    }
    arena_reset(&x->scratch, before);
    return out;
}

static Stmt **exact_body(Exact *x, Stmt **body, uint32_t n, uint32_t *left);

/* The loop or block, or a copy of it with exact ranges, its body included; null for a loop that never runs. */
static Stmt *exact_loop(Exact *x, Stmt *s)
{
    Stmt to = *s;
    bool is_loop = s->kind == STMT_FOR;
    bool any = is_loop && s->threads == NULL && exact_range(x, &to.range);
    if (is_loop && is_nothing(&to)) {
        return NULL;
    }
    if (is_loop && s->threads != NULL && s->threads->cut != 0) {
        return s; /* threads clip what is inside */
    }
    if (is_loop) {
        bounds_push(&x->bounds, to.var, &to.range, to.step, to.part);
    }
    to.body = exact_body(x, s->body, s->n_body, &to.n_body);
    if (is_loop) {
        bounds_pop(&x->bounds);
    }
    return any || to.body != s->body ? arena_copy(x->arena, &to, sizeof to) : s;
}

/* The statements that are left, `*left` of them: `body` itself where none changes. Recursion as deep as loops are nested. */
static Stmt **exact_body(Exact *x, Stmt **body, uint32_t n, uint32_t *left)
{
    Stmt **out = body;
    *left = 0;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i], *to = s;
        if (stmt_has_body(s)) {
            to = exact_loop(x, s);
        } else if (s->kind == STMT_TILE && s->places == 0) {
            to = exact_tile(x, s);
        }
        if (to != s && out == body) {
            out = arena_copy(x->arena, body, n * sizeof *body);
        }
        if (to != NULL) {
            if (out != body) {
                out[*left] = to;
            }
            ++*left;
        }
    }
    return out;
}

Kernel *c_exact(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    Exact x = {.arena = arena};
    arena_init(&x.proofs, &ctx->budget);
    arena_init(&x.scratch, &ctx->budget);
    bounds_init(&x.bounds, &x.proofs, k);
    uint32_t n = 0;
    Stmt **body = exact_body(&x, k->body, k->n_body, &n);
    arena_release(&x.scratch);
    arena_release(&x.proofs);
    if (body == k->body) {
        return (Kernel *)(uintptr_t)k;
    }
    Kernel *out = kernel_like(arena, k);
    out->body = body;
    out->n_body = n;
    return out;
}
