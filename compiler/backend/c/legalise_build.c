/* SPDX-License-Identifier: Apache-2.0 */
/* Making LEGAL statements: a stack of open loops, variables used again where loops stand beside each other, and the
 * accesses of a statement with some of its variables replaced. */
#include "backend/c/legalise.h"

#include <stdio.h>
#include <string.h>

/* Is it called as buffer_declare calls the buffer of this number? */
static bool is_made(const char *name, uint32_t number)
{
    static const char *const hints[] = {"A_pack", "B_pack", "s",   "c",    "h",   "e",
                                        "turned", "b",      "sum", "scan", "part"};
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        char wanted[24];
        int n = snprintf(wanted, sizeof wanted, "%s%u", hints[i], number);
        if (strncmp(name, wanted, (size_t)n) == 0 &&
            strspn(name + n, "0123456789") == strlen(name + n)) { /* made unique */
            return true;
        }
    }
    return false;
}

/* How many buffers passes before have made: they are the last ones, and their names count. */
static uint32_t buffers_made(const Kernel *k)
{
    uint32_t given = 0, n = k->bufs.n;
    for (uint32_t i = 0; i < n; i++) {
        const Buffer *b = &k->bufs.at[i];
        if (b->space == SPACE_ARGUMENT || !is_made(b->name->text, i - given + 1)) {
            given = is_made(b->name->text, 1) ? i : i + 1;
        }
    }
    return n - given;
}

Legaliser legaliser_start(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    return (Legaliser){.ctx = ctx,
                       .arena = arena,
                       .k = kernel_like(arena, k),
                       .machine = target->machine,
                       .positive = -1,
                       .n_buffers = k->form == LOOP_LEGAL ? buffers_made(k) : 0};
}

void block_open(Legaliser *l, Stmt *owner)
{
    StmtBlock *b = ARENA_NEW(l->arena, StmtBlock);
    b->outer = l->block;
    b->owner = owner;
    l->block = b;
}

void block_close(Legaliser *l)
{
    StmtBlock *b = l->block;
    CHECK(b->owner != NULL);
    b->owner->body = b->list.at;
    b->owner->n_body = b->list.n;
    l->block = b->outer;
}

void stmt_add(Legaliser *l, Stmt *s)
{
    vec_push(l->arena, &l->block->list, s);
}

static Stmt *stmt_new(Legaliser *l, StmtKind kind)
{
    Stmt *s = ARENA_NEW(l->arena, Stmt);
    s->kind = kind;
    s->fold = OP_COPY;
    if (l->from != NULL) {
        s->span = l->from->span;
        s->name = kind == STMT_TILE ? l->from->name : NULL;
    }
    return s;
}

void scope_open(Legaliser *l)
{
    Stmt *s = stmt_new(l, STMT_BLOCK);
    stmt_add(l, s);
    block_open(l, s);
}

void tested_open(Legaliser *l, DimTest when)
{
    Stmt *s = stmt_new(l, STMT_BLOCK);
    s->when = arena_copy(l->arena, &when, sizeof when);
    stmt_add(l, s);
    block_open(l, s);
}

/* The variable alone, for a loop that is made by hand; used again after loop_var_give. */
static VarRef loop_var_take(Legaliser *l, const char *hint)
{
    uint32_t at = 0;
    while (at < l->loop_vars.n &&
           (l->loop_vars.at[at].open || strcmp(l->loop_vars.at[at].hint, hint) != 0)) {
        at++;
    }
    if (at == l->loop_vars.n) {
        LoopVar v = {kernel_var(l->k, &l->ctx->syms, hint, true), hint, false};
        vec_push(l->arena, &l->loop_vars, v);
    }
    l->loop_vars.at[at].open = true;
    return l->loop_vars.at[at].var;
}

static void loop_var_give(Legaliser *l, VarRef v)
{
    for (uint32_t i = 0; i < l->loop_vars.n; i++) {
        if (l->loop_vars.at[i].var == v) {
            l->loop_vars.at[i].open = false;
        }
    }
}

VarRef loop_open(Legaliser *l, const char *hint, Range range, int64_t step, ForPart part)
{
    VarRef v = loop_var_take(l, hint);
    Stmt *s = stmt_new(l, STMT_FOR);
    s->var = v;
    s->range = range;
    s->step = step;
    s->part = part;
    stmt_add(l, s);
    block_open(l, s);
    return s->var;
}

void loop_close(Legaliser *l)
{
    loop_var_give(l, l->block->owner->var);
    block_close(l);
}

VarRef local_var(Legaliser *l, const char *hint)
{
    for (uint32_t i = 0; i < l->local_vars.n; i++) {
        if (strcmp(l->local_vars.at[i].hint, hint) == 0) {
            return l->local_vars.at[i].var;
        }
    }
    LoopVar v = {kernel_var(l->k, &l->ctx->syms, hint, false), hint, false};
    vec_push(l->arena, &l->local_vars, v);
    return v.var;
}

BufRef buffer_alloc(Legaliser *l, const char *hint, DType t, Space space, uint32_t rank,
                    const int64_t *extent)
{
    Dim dims[4];
    CHECK(rank <= 4);
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = dim_fixed(extent[d]);
    }
    return buffer_declare(l, hint, t, space, rank, dims);
}

BufRef buffer_declare(Legaliser *l, const char *hint, DType t, Space space, uint32_t rank,
                      const Dim *dims)
{
    const char *name = str_format(l->arena, "%s%u", hint, ++l->n_buffers);
    BufRef b = kernel_buffer(l->k, &l->ctx->syms, name, t, space, rank, dims);
    Stmt *s = stmt_new(l, STMT_ALLOC);
    s->buf = b;
    stmt_add(l, s);
    return b;
}

BufRef panels_alloc(Legaliser *l, const char *hint, DType t, int64_t lines, int64_t columns,
                    int64_t width)
{
    const int64_t extent[2] = {lines, round_up(columns, width)};
    BufRef b = buffer_alloc(l, hint, t, SPACE_TILE, 2, extent);
    l->k->bufs.at[b].panels = width;
    return b;
}

TileIndex index_of(VarRef v, Range range, IndexMode mode)
{
    return (TileIndex){.var = v, .range = range, .mode = mode};
}

Range range_const(int64_t n)
{
    return (Range){
        .start = affine_const(0), .span = n, .clipped = false, .limit = dim_fixed(0)};
}

Range range_at(Affine start, int64_t span, const Range *clip)
{
    return (Range){
        .start = start, .span = span, .clipped = clip->clipped, .limit = clip->limit};
}

void tile_add(Legaliser *l, uint32_t n, const TileIndex *index, BufRef dst, const Affine *at,
              Op fold, const Expr *value)
{
    uint32_t rank = l->k->bufs.at[dst].rank;
    Stmt *s = stmt_new(l, STMT_TILE);
    s->n_index = n;
    s->index = n == 0 ? NULL : arena_copy(l->arena, index, n * sizeof *index);
    s->dst = dst;
    s->at = rank == 0 ? NULL : arena_copy(l->arena, at, rank * sizeof *at);
    s->fold = fold;
    s->value = value;
    stmt_add(l, s);
}

Affine affine_minus(Legaliser *l, Affine x, Affine y)
{
    return affine_add(l->arena, x, -1, y);
}

Affine var_minus(Legaliser *l, VarRef v, Affine base)
{
    return affine_minus(l, affine_var(l->arena, v), base);
}

Expr *load_at(Legaliser *l, BufRef buf, uint32_t rank, const Affine *at)
{
    CHECK(l->k->bufs.at[buf].rank == rank);
    return expr_load(l->arena, l->k, buf, at);
}
