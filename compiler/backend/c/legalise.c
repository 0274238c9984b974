/* SPDX-License-Identifier: Apache-2.0 */
/* TILED to LEGAL for C: the walk. Loops and buffers stay as they are; a tile statement becomes statements that a
 * printer can print one for one. */
#include "backend/c/legalise.h"
#include "loop/copy.h"
#include "loop/places.h"

#include "backend/c/c.h"
#include "lower/lower.h"

/* Does any local index not appear in the destination? */
static bool folds_indices(const Kernel *k, const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (!access_uses(k, s->dst, s->at, s->index[i].var)) {
            return true;
        }
    }
    return false;
}

/* Does each element that it changes take one value only, in all iterations of the loops around? */
static bool adds_once(const Legaliser *l, const Stmt *s)
{
    bool once = s->fold != OP_COPY && !s->begins && !folds_indices(l->k, s);
    for (const StmtBlock *b = l->block; once && b != NULL; b = b->outer) {
        once = b->owner == NULL || b->owner->kind != STMT_FOR ||
               access_uses(l->k, s->dst, s->at, b->owner->var);
    }
    return once;
}

/* dst = dst + value for dst += value: a map, which runs as vectors and on threads as any other. */
static const Stmt *as_map(Legaliser *l, const Stmt *s)
{
    DType t = l->k->bufs.at[s->dst].dtype;
    const Expr *operand[2] = {expr_load(l->arena, l->k, s->dst, s->at), s->value};
    Stmt *map = arena_copy(l->arena, s, sizeof *s);
    map->fold = OP_COPY;
    map->value = expr_op(l->arena, op_joined_by(s->fold, t), t, 2, operand);
    return map;
}

void tile_legalise(Legaliser *l, const Stmt *s)
{
    l->from = s;
    if (adds_once(l, s)) {
        legalise_plain(l, as_map(l, s));
    } else if (s->fold == OP_COPY || !folds_indices(l->k, s)) {
        legalise_plain(l, legalise_begin(l, s));
    } else if (!legalise_matmul(l, s) && !legalise_band(l, s) && !legalise_rows(l, s)) {
        legalise_reduce(l, s, true);
    }
    l->from = NULL;
}

/* The open dim that the sum of a product has, if it is one index from 0 on; or -1. */
static int32_t open_sum(const Stmt *s)
{
    const Schedule *b = s->schedule;
    if (b == NULL || b->n_levels == 0 || b->n_labels[ROLE_K] != 1) {
        return -1;
    }
    Range r = s->index[b->label[ROLE_K][0]].range;
    bool all = r.clipped && r.span == 0 && r.start.n == 0 && r.start.base == 0;
    return all ? r.limit.sym : -1;
}

static void begun_legalise(Legaliser *l, const Stmt *s, DimTest when)
{
    tested_open(l, when);
    l->positive = when.dim;
    tile_legalise(l, s);
    l->positive = -1;
    block_close(l);
}

static bool is_in_loop(const Legaliser *l)
{
    const StmtBlock *b = l->block;
    while (b != NULL && (b->owner == NULL || b->owner->kind != STMT_FOR)) {
        b = b->outer;
    }
    return b != NULL;
}

/* A product that begins, whose sum may be of nothing: then there are zeros. In a loop, where one block of the sum is
 * planned to hold all of it, there is a form for that too: what is packed in no loop over the sum may be hoisted. */
static void open_legalise(Legaliser *l, const Stmt *s, int32_t dim)
{
    const ScheduleLevel *k = schedule_outermost(s->schedule, ROLE_K);
    uint32_t i = s->schedule->label[ROLE_K][0];
    int64_t most = 0;
    scope_open(l); /* tests that follow each other are of one choice */
    tested_open(l, (DimTest){dim, 0, 0});
    tile_legalise(l, stmt_neutral(l->arena, l->k, s));
    block_close(l);
    if (k != NULL && is_in_loop(l) && range_typical(l->k, s->index[i].range) <= k->tile) {
        Stmt *whole = arena_copy(l->arena, s, sizeof *s);
        TileIndex *index = arena_copy(l->arena, s->index, s->n_index * sizeof *index);
        most = index[i].range.span = k->tile;
        whole->index = index;
        begun_legalise(l, whole, (DimTest){dim, 1, most});
    }
    begun_legalise(l, s, (DimTest){dim, most + 1, DIM_ANY_SIZE});
    block_close(l);
}

/* A scatter stays as it is, behind what it begins with; rows of it are vectors. */
static void places_legalise(Legaliser *l, const Stmt *s)
{
    Stmt *copy = arena_copy(l->arena, s, sizeof *s);
    if (s->begins) {
        tile_legalise(l, stmt_neutral(l->arena, l->k, s));
    }
    copy->begins = false;
    TileIndex *index = arena_copy(l->arena, s->index, s->n_index * sizeof *index);
    TileIndex *last = &index[s->n_index - 1];
    Scattered p;
    CHECK(stmt_places(l->arena, l->k, copy, &p));
    DType t = l->k->bufs.at[s->dst].dtype;
    bool lanes = p.key[s->n_index - 1] == NULL &&
                 access_is_unit(l->k, s->dst, s->at, last->var) && dtype_is_float(t) &&
                 value_runs(l, p.value, t, last);
    last->mode = lanes ? MODE_LANES : MODE_LOOP;
    copy->index = index;
    stmt_add(l, copy);
}

static void block_legalise(Legaliser *l, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *copy = arena_copy(l->arena, body[i], sizeof *copy);
        switch (copy->kind) {
        case STMT_FOR:
        case STMT_BLOCK:
            stmt_add(l, copy);
            block_open(l, copy);
            block_legalise(l, body[i]->body, body[i]->n_body);
            block_close(l);
            break;
        case STMT_ALLOC:
            copy->over = 0; /* c_share decides, when all of its readers are known */
            stmt_add(l, copy);
            break;
        case STMT_TILE: {
            int32_t dim = body[i]->begins ? open_sum(body[i]) : -1;
            if (body[i]->scan > 0) {
                scan_legalise(l, body[i]);
            } else if (body[i]->places > 0) {
                places_legalise(l, body[i]);
            } else if (dim >= 0) {
                open_legalise(l, body[i], dim);
            } else {
                tile_legalise(l, body[i]);
            }
            break;
        }
        }
    }
}

Kernel *c_legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    CHECK(k->form == LOOP_TILED);
    k = kernel_sums_apart(ctx, arena, k);
    Legaliser l = legaliser_start(target, ctx, arena, k);
    l.k->form = LOOP_LEGAL;
    l.k->target = target->name;
    block_open(&l, NULL);
    block_legalise(&l, k->body, k->n_body);
    l.k->body = l.block->list.at;
    l.k->n_body = l.block->list.n;
    kernel_name_vars(l.k, &ctx->syms);
    return l.failed ? NULL : l.k;
}

static bool shares(const Kernel *k)
{
    StmtWalk w;
    const Stmt *s = stmt_first(&w, k->body, k->n_body);
    while (s != NULL && (s->kind != STMT_ALLOC || s->over == 0)) {
        s = stmt_next(&w);
    }
    return s != NULL;
}

Kernel *c_share(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    Kernel *shared = kernel_like(arena, k);
    kernel_share(ctx, shared);
    return shares(shared) || shares(k) ? shared : (Kernel *)(uintptr_t)k;
}
