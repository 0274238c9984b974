/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `exact`: ranges that end before their limit wherever the loops around stand lose the limit, and loops over a remainder that there is
 * not are left out; of a loop that runs once its body is left. Extents that are numbers, which steps often divide, are then printed without
 * minima and without such loops:
 *
 *     for $yb in $k:64<384 step 32 { .. }    ->    for $yb in $k:64 step 32 { .. }
 *     for $j in 0..128 step 16 rest { .. }   ->
 *     for $i in 60..64 step 4 { .. $i .. }   ->    .. 60 ..
 */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "loop/bounds.h"
#include "op/affine.h"

typedef struct Exact {
    const Kernel *kernel;
    Arena *arena;  /* holds the new kernel */
    Arena proofs;  /* holds `bounds` */
    Arena scratch; /* holds the ranges of the statement at hand */
    Bounds bounds;
    bool
        inner_of_flat; /* these statements are in the outer one of two loops that threads share as one */
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

/* ---- loops that run once ---- */

/* Does the loop run once, whatever the loops around it stand at? `*by`: the position then. */
static bool runs_once(Exact *x, const Stmt *s, Affine *by)
{
    const Range *r = &s->range;
    bool number = r->clipped && r->limit.sym < 0 && r->start.n == 0;
    int64_t room = number ? r->limit.n - r->start.base : 0;
    int64_t length = !r->clipped || (r->span > 0 && r->span < room) ? r->span : room;
    if ((r->clipped && !number) || s->threads != NULL || s->window != NULL) {
        return false;
    }
    int64_t whole = length / s->step, rest = length % s->step;
    int64_t skipped = s->part == FOR_REST ? whole * s->step : 0;
    return (s->part == FOR_FULL   ? whole == 1
            : s->part == FOR_REST ? rest > 0
                                  : whole + (rest > 0 ? 1 : 0) == 1) &&
           affine_try_add(x->arena, r->start, 1, affine_const(skipped), by);
}

/* Does the statement say of the loop more than where it stands? */
static bool names_loop(const Stmt *s, VarRef var)
{
    bool named = s->n_guards > 0 || s->threads != NULL || s->prefetch != NULL || s->places != 0;
    for (uint32_t i = 0; i < s->n_first; i++) {
        named = named || s->first[i] == var;
    }
    return named;
}

static bool body_names_loop(const Stmt *loop)
{
    StmtWalk w;
    bool named = false;
    for (const Stmt *s = stmt_first(&w, loop->body, loop->n_body); s != NULL;
         s = stmt_next(&w)) {
        named = named || names_loop(s, loop->var);
    }
    return named;
}

static const Window *window_at(Exact *x, const Window *w, Subst s)
{
    if (w == NULL) {
        return NULL;
    }
    Window to = *w;
    to.lo = affine_subst(x->arena, w->lo, s.var, s.by);
    to.hi = affine_subst(x->arena, w->hi, s.var, s.by);
    return arena_copy(x->arena, &to, sizeof to);
}

static void tile_at(Exact *x, Stmt *to, Subst s)
{
    const Kernel *k = x->kernel;
    TileIndex *index = arena_copy(x->arena, to->index, to->n_index * sizeof *index);
    for (uint32_t i = 0; i < to->n_index; i++) {
        index[i].range.start = affine_subst(x->arena, index[i].range.start, s.var, s.by);
        index[i].window = window_at(x, index[i].window, s);
    }
    to->index = index;
    to->at = access_subst(x->arena, k->bufs.at[to->dst].rank, to->at, &s, 1);
    to->value = expr_subst(x->arena, k, to->value, &s, 1);
    if (to->sums != 0) {
        to->sums_at = access_subst(x->arena, k->bufs.at[to->sums - 1].rank, to->sums_at, &s, 1);
    }
}

/* Copies of the statements with a position for the variable. Recursion as deep as loops are nested. */
static Stmt **body_at(Exact *x, Stmt *const *body, uint32_t n, Subst s)
{
    Stmt **out = ARENA_ARRAY(x->arena, (size_t)n + 1, Stmt *);
    for (uint32_t i = 0; i < n; i++) {
        Stmt *to = out[i] = arena_copy(x->arena, body[i], sizeof *to);
        if (to->kind == STMT_FOR) {
            to->range.start = affine_subst(x->arena, to->range.start, s.var, s.by);
            to->window = window_at(x, to->window, s);
        }
        if (stmt_has_body(to)) {
            to->body = body_at(x, to->body, to->n_body, s);
        } else if (to->kind == STMT_TILE) {
            tile_at(x, to, s);
        }
    }
    return out;
}

/* The block that a loop is which runs once; else the loop. */
static Stmt *without_loop(Exact *x, Stmt *s)
{
    Subst at = {.var = s->var};
    if (s->kind != STMT_FOR || x->inner_of_flat || !runs_once(x, s, &at.by) ||
        body_names_loop(s)) {
        return s;
    }
    Stmt to = {.kind = STMT_BLOCK, .span = s->span, .n_body = s->n_body};
    to.body = body_at(x, s->body, s->n_body, at);
    return arena_copy(x->arena, &to, sizeof to);
}

/* ---- all statements ---- */

static Stmt **exact_body(Exact *x, Stmt **body, uint32_t n, uint32_t *left);

/* The loop or block, or a copy of it with exact ranges, its body included; null for a loop that never runs. */
static Stmt *exact_loop(Exact *x, Stmt *loop)
{
    Stmt *s = without_loop(x, loop), to = *s;
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
    x->inner_of_flat = s->threads != NULL && s->threads->flat;
    to.body = exact_body(x, s->body, s->n_body, &to.n_body);
    x->inner_of_flat = false;
    if (is_loop) {
        bounds_pop(&x->bounds);
    }
    return any || to.body != s->body ? arena_copy(x->arena, &to, sizeof to) : s;
}

static bool has_buffers(const Stmt *block)
{
    uint32_t i = 0;
    while (i < block->n_body && block->body[i]->kind != STMT_ALLOC) {
        i++;
    }
    return i < block->n_body;
}

/* The statements that are left, `*left` of them: `body` itself where none changes. Recursion as deep as loops are nested. */
static Stmt **exact_body(Exact *x, Stmt **body, uint32_t n, uint32_t *left)
{
    VEC(Stmt *) out = {0};
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i], *to = s;
        if (stmt_has_body(s)) {
            to = exact_loop(x, s);
        } else if (s->kind == STMT_TILE && s->places == 0) {
            to = exact_tile(x, s);
        }
        any = any || to != s;
        if (to != NULL && to->kind != s->kind && !has_buffers(to)) { /* it was a loop */
            for (uint32_t b = 0; b < to->n_body; b++) {
                vec_push(x->arena, &out, to->body[b]);
            }
        } else if (to != NULL) {
            vec_push(x->arena, &out, to);
        }
    }
    *left = any ? out.n : n;
    return any ? out.at : body;
}

Kernel *c_exact(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    Exact x = {.kernel = k, .arena = arena};
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
