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
    Arena *arena;
    Bounds bounds;
    bool any;
} Exact;

/* start + span <= limit */
static void exact_range(Exact *x, Range *r)
{
    Affine end = {0}, room = {0};
    if (!r->clipped || r->span == 0 || r->limit.sym >= 0) {
        return;
    }
    if (affine_try_add(x->arena, r->start, 1, affine_const(r->span), &end) &&
        affine_try_add(x->arena, affine_const(r->limit.n), -1, end, &room) &&
        bounds_at_least_zero(&x->bounds, room)) {
        r->clipped = false;
        r->limit = dim_fixed(0);
        x->any = true;
    }
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

static void exact_tile(Exact *x, Stmt *s)
{
    TileIndex *index = arena_copy(x->arena, s->index, s->n_index * sizeof *index);
    for (uint32_t i = 0; i < s->n_index; i++) {
        exact_range(x, &index[i].range);
        bounds_push(&x->bounds, index[i].var, &index[i].range, 1, FOR_ALL);
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        bounds_pop(&x->bounds);
    }
    s->index = index;
}

/* As deep as loops are. Returns how many statements are left. */
static uint32_t exact_block(Exact *x, Stmt **body, uint32_t n)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_TILE && s->places == 0) {
            exact_tile(x, s);
        } else if (s->kind == STMT_BLOCK) {
            s->n_body = exact_block(x, s->body, s->n_body);
        } else if (s->kind == STMT_FOR) {
            if (s->threads == NULL) {
                exact_range(x, &s->range);
            }
            if (is_nothing(s)) {
                x->any = true;
                continue;
            }
            if (s->threads == NULL ||
                s->threads->cut == 0) { /* else threads clip what is inside */
                bounds_push(&x->bounds, s->var, &s->range, s->step, s->part);
                s->n_body = exact_block(x, s->body, s->n_body);
                bounds_pop(&x->bounds);
            }
        }
        body[left++] = s;
    }
    return left;
}

Kernel *c_exact(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    (void)ctx;
    Kernel *out = kernel_changeable(arena, k);
    Exact x = {.arena = arena};
    bounds_init(&x.bounds, arena, out);
    out->n_body = exact_block(&x, out->body, out->n_body);
    return x.any ? out : (Kernel *)(uintptr_t)k;
}
