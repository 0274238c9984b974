/* SPDX-License-Identifier: Apache-2.0 */
/* LEGAL to LEGAL: what is packed the same way in every iteration of a loop is packed once, in front of it; and so on outwards:
 *
 *     for j in 0..n step 128 {                    alloc @pa, copy [..] @pa = @X[i, k]
 *       alloc @pa, copy [..] @pa = @X[i, k]       for j in 0..n step 128 {
 *       alloc @pb, copy [..] @pb = @Y[j, k]  ->     alloc @pb, copy [..] @pb = @Y[j, k]
 *       tiles of @pa and @pb                        tiles of @pa and @pb
 *     }                                           }
 *
 * A panel stays in its loop if anything in that says so: the loop's variable, a statement that writes what is packed. It stays,
 * too, where threads share the loop (the outermost parallel one), which would wait for the one that packs, and where the loop
 * has no second iteration.
 * nest/goto.c packs whole operands first where loops around leave them as they are, and counts on this. */
#include "backend/c/c.h"
#include "backend/c/legalise.h"

typedef VEC(Stmt *) Body;

typedef struct Hoist {
    Arena *arena;
    const Kernel *k;
    bool any; /* panels have left their loop */
} Hoist;

/* Does the statement, a part of one that packs, change with `v`? */
static bool moves_with(const Kernel *k, const Stmt *s, VarRef v)
{
    if (s->kind == STMT_FOR) {
        return affine_uses(s->range.start, v);
    }
    bool moves =
        s->kind == STMT_TILE && (access_uses(k, s->dst, s->at, v) || expr_uses(k, s->value, v));
    for (uint32_t i = 0; s->kind == STMT_TILE && i < s->n_index; i++) {
        moves |= affine_uses(s->index[i].range.start, v);
    }
    return moves;
}

/* Statements that allocate and fill panels, one behind the other. */
typedef struct Filling {
    Stmt *const *body;
    uint32_t n; /* 0: there are none */
} Filling;

static bool fills_alone(Stmt *const *s, BufRef panels)
{
    StmtWalk w;
    const Stmt *tile = tile_first(&w, s, 1);
    bool all = tile != NULL;
    for (; tile != NULL; tile = tile_next(&w)) {
        all &= tile->dst == panels && tile->fold == OP_COPY;
    }
    return all;
}

static Filling filling_at(const Kernel *k, Stmt *const *body, uint32_t n)
{
    Filling f = {body, 0};
    if (n > 0 && body[0]->kind == STMT_ALLOC && k->bufs.at[body[0]->buf].panels != 0) {
        f.n = 1;
        while (f.n < n && fills_alone(&body[f.n], body[0]->buf)) {
            f.n++;
        }
    }
    return f;
}

static bool reads(const Filling *f, BufRef buf)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, f->body, f->n); s != NULL; s = tile_next(&w)) {
        if (expr_load_of(s->value, buf) != NULL) {
            return true;
        }
    }
    return false;
}

/* Does one of the statements write what is packed, or the panels? */
static bool disturbs(const Filling *f, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        if ((s->kind == STMT_TILE && (s->dst == f->body[0]->buf || reads(f, s->dst))) ||
            (s->kind == STMT_ALLOC && reads(f, s->buf))) {
            return true;
        }
    }
    return false;
}

/* Is it the same in each iteration of the loop, in whose body it begins `at`? */
static bool stays(const Kernel *k, const Filling *f, const Stmt *loop, uint32_t at)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, f->body, f->n); s != NULL; s = stmt_next(&w)) {
        if (moves_with(k, s, loop->var)) {
            return false;
        }
    }
    uint32_t end = at + f->n;
    return !disturbs(f, loop->body, at) && !disturbs(f, loop->body + end, loop->n_body - end);
}

static void hoist_block(Hoist *h, Stmt *const *body, uint32_t n, bool shared, Body *out);

/* The loop or block without what need not be in it, which goes to `out` before it; `shared`: threads share a loop around. */
static void hoist_from(Hoist *h, const Stmt *from, bool shared, Body *out)
{
    Body inside = {0}, left = {0};
    Stmt *s = arena_copy(h->arena, from, sizeof *s);
    hoist_block(h, from->body, from->n_body, shared || from->parallel, &inside);
    s->body = inside.at;
    s->n_body = inside.n;
    bool repeats = s->kind == STMT_FOR && (shared || !s->parallel) && s->part != FOR_REST;
    for (uint32_t i = 0; repeats && i < inside.n;) {
        Filling f = filling_at(h->k, inside.at + i, inside.n - i);
        bool once = f.n > 1 && stays(h->k, &f, s, i);
        h->any |= once;
        for (uint32_t end = i + (f.n > 0 ? f.n : 1); i < end; i++) {
            vec_push(h->arena, once ? out : &left, inside.at[i]);
        }
    }
    s->body = repeats ? left.at : s->body;
    s->n_body = repeats ? left.n : s->n_body;
    vec_push(h->arena, out, s);
}

static void hoist_block(Hoist *h, Stmt *const *body, uint32_t n, bool shared, Body *out)
{
    for (uint32_t i = 0; i < n; i++) {
        if (stmt_has_body(body[i])) {
            hoist_from(h, body[i], shared, out);
        } else {
            vec_push(h->arena, out, body[i]);
        }
    }
}

Kernel *c_hoist(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    (void)ctx;
    Kernel *hoisted = kernel_like(arena, k);
    Hoist h = {arena, hoisted, false};
    Body out = {0};
    hoist_block(&h, k->body, k->n_body, false, &out);
    hoisted->body = out.at;
    hoisted->n_body = out.n;
    return h.any ? hoisted : (Kernel *)(uintptr_t)k;
}
