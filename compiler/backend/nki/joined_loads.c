/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of rows that follow each other in memory and on their partitions, as loads of longer rows:
 *
 *     for i in 0..256 { copy [p, f] @a[p,64*i+f] = @A[256*p+i,f] }
 *  -> for i in 0..32 { copy [p, u in 0..8, f] @a[p,512*i+64*u+f] = @A[256*p+8*i+u,f] }
 *
 * A row of less than 512 bytes takes as long as one of 512, and each of them is a descriptor. */
#include "backend/nki/legalise.h"

#include "loop/copy.h"

#include <string.h>

#define ROW_BYTES 2048 /* that are worth joining rows for */

typedef struct JoinedLoads {
    Ctx *ctx;
    Arena *arena;
    const Kernel *from;
    Kernel *to;
    bool any;
} JoinedLoads;

/* Elements of a row that the copy loads whole in each iteration of the loop, which goes to the next row; 0: it does not. *dim: its dimension. */
static int64_t row_of(const Kernel *k, const Stmt *s, VarRef loop, uint32_t *dim)
{
    if (s->kind != STMT_TILE || s->fold != OP_COPY || s->value->kind != EXPR_LOAD ||
        s->n_index < 2 || k->bufs.at[s->dst].space != SPACE_TILE ||
        k->bufs.at[s->value->buf].space != SPACE_ARGUMENT || k->bufs.at[s->dst].rank != 2 ||
        affine_uses(s->at[0], loop)) {
        return 0;
    }
    const Buffer *b = &k->bufs.at[s->value->buf];
    int64_t row = 0;
    for (uint32_t d = 0; d < b->rank; d++) {
        Affine at = s->value->at[d];
        int64_t moves = affine_coef(at, loop);
        if (row == 0) {
            row = moves == 1 ? 1 : 0;
            *dim = d;
            if (moves != 0 && moves != 1) {
                return 0;
            }
            continue;
        }
        bool whole = false;
        for (uint32_t i = 0; i < s->n_index; i++) {
            const TileIndex *x = &s->index[i];
            whole |= affine_is(at, x->var) && range_is_whole(&x->range) &&
                     dim_eq(x->range.limit, b->extent[d]);
        }
        if (!whole) {
            return 0;
        }
        row = sat_mul(row, b->extent[d].n);
    }
    return row > 0 && affine_coef(s->at[1], loop) == row ? row : 0;
}

/* How many rows of each load in the loop become one; 1: they stay. */
static int64_t rows_of(const Kernel *k, const Stmt *loop)
{
    bool plain = loop->kind == STMT_FOR && !loop->parallel && loop->step == 1 &&
                 loop->window == NULL && loop->part == FOR_ALL && loop->range.start.n == 0 &&
                 loop->range.start.base == 0;
    int64_t least = 0, trips = plain ? loop->range.limit.n : 1, rows = 1;
    for (uint32_t i = 0; i < loop->n_body && plain; i++) {
        uint32_t dim = 0;
        const Stmt *s = loop->body[i];
        int64_t row = row_of(k, s, loop->var, &dim);
        int64_t bytes = row * (row > 0 ? dtype_bytes(k->bufs.at[s->value->buf].dtype) : 0);
        plain = row > 0;
        least = i == 0 || bytes < least ? bytes : least;
    }
    if (!plain || least >= NKI_SHORT_RUN) {
        return 1;
    }
    for (int64_t n = 2; n <= trips && rows * least < ROW_BYTES; n++) {
        rows = trips % n == 0 ? n : rows;
    }
    return rows;
}

static Stmt *joined(JoinedLoads *x, const Stmt *loop, const Stmt *s, int64_t rows)
{
    Arena *a = x->arena;
    uint32_t dim = 0, rank = x->from->bufs.at[s->value->buf].rank;
    (void)row_of(x->from, s, loop->var, &dim);
    VarRef u = kernel_var(x->to, &x->ctx->syms, "u", false);
    bool one = loop->range.limit.n == rows;
    Affine now = one ? affine_var(a, u)
                     : affine_add(a, affine_var(a, u), rows, affine_var(a, loop->var));
    Stmt *t = arena_copy(a, s, sizeof *s);
    TileIndex *index = ARENA_ARRAY(a, s->n_index + 1, TileIndex);
    index[0] = s->index[0];
    index[1] = s->index[1];
    index[1].var = u;
    index[1].range = range_whole(dim_fixed(rows));
    memcpy(index + 2, s->index + 1, (s->n_index - 1) * sizeof *index);
    Affine *to = arena_copy(a, s->at, 2 * sizeof *to);
    Affine *from = arena_copy(a, s->value->at, rank * sizeof *from);
    to[1] = affine_subst(a, to[1], loop->var, now);
    from[dim] = affine_subst(a, from[dim], loop->var, now);
    Expr *value = arena_copy(a, s->value, sizeof *value);
    value->at = from;
    t->value = value;
    t->at = to;
    t->index = index;
    t->n_index = s->n_index + 1;
    return t;
}

static Stmts body_of(JoinedLoads *x, Stmt *const *body, uint32_t n)
{
    Stmts out = {0};
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        int64_t rows = stmt_has_body(s) ? rows_of(x->from, s) : 1;
        if (!stmt_has_body(s)) {
            vec_push(x->arena, &out, s);
            continue;
        }
        Stmts in = {0};
        if (rows > 1) {
            for (uint32_t j = 0; j < s->n_body; j++) {
                Stmt *load = joined(x, s, s->body[j], rows);
                vec_push(x->arena, &in, load);
            }
            x->any = true;
        } else {
            in = body_of(x, s->body, s->n_body);
        }
        if (rows > 1 && rows == s->range.limit.n) {
            for (uint32_t j = 0; j < in.n; j++) {
                vec_push(x->arena, &out, in.at[j]);
            }
            continue;
        }
        Stmt *t = arena_copy(x->arena, s, sizeof *s);
        t->range = rows > 1 ? range_whole(dim_fixed(s->range.limit.n / rows)) : s->range;
        t->body = in.at;
        t->n_body = in.n;
        vec_push(x->arena, &out, t);
    }
    return out;
}

Kernel *lower_joined_loads(const Lower *l, const Kernel *k)
{
    JoinedLoads x = {
        .arena = l->arena, .ctx = l->ctx, .from = k, .to = kernel_like(l->arena, k)};
    Stmts body = body_of(&x, k->body, k->n_body);
    x.to->body = body.at;
    x.to->n_body = body.n;
    return x.any ? kernel_numbered(l->arena, x.to) : NULL;
}
