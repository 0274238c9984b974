/* SPDX-License-Identifier: Apache-2.0 */
/* Copies out of PSUM, one for a bank instead of one for a transpose:
 *
 *     for w in 0..8 {                                 alloc @u : bf16[128,1024] acc
 *       alloc @t : bf16[128,128] acc                  for w in 0..8 { copy @u[p,128*w+f] = @x[f,128*w+p] }
 *       copy @t[p,f] = @x[f,128*w+p]            ->    copy [p, i in 0..8, f] @y[p,256*i+f] = @u[p,128*i+f]
 *       copy @y[p,256*w+f] = @t[p,f]
 *     }
 *
 * An instruction has some 200 cycles before its first column. */
#include "backend/nki/legalise.h"

#include "loop/copy.h"
#include "loop/term.h"

typedef struct BankCopies {
    Arena *arena;
    Ctx *ctx;
    const Kernel *from;
    Kernel *to;
    bool found;
} BankCopies;

/* A whole tile of PSUM, what it is set to, and the copy of it; the columns of one iteration. */
typedef struct Turned {
    const Stmt *alloc, *turn, *copy;
    int64_t n, columns;
} Turned;

static bool is_known(const TileIndex *x)
{
    return range_is_whole(&x->range) && x->window == NULL;
}

/* Is it a copy that sets [p, f], from 0 on, of all of its tile? */
static bool sets_whole(const Kernel *k, const Stmt *s, BufRef b)
{
    const Buffer *t = &k->bufs.at[b];
    bool whole = s->kind == STMT_TILE && s->dst == b && tile_kind(s) == TILE_COPY &&
                 s->n_index == 2 && t->rank == 2;
    for (uint32_t d = 0; whole && d < 2; d++) {
        Affine at = affine_var(k->arena, s->index[d].var);
        whole = is_known(&s->index[d]) && affine_eq(s->at[d], at) &&
                s->index[d].range.limit.n == t->extent[d].n;
    }
    return whole;
}

static bool is_turned(const BankCopies *x, const Stmt *loop, Turned *out)
{
    const Kernel *k = x->from;
    if (loop->kind != STMT_FOR || loop->n_body != 3 || loop->step != 1 ||
        loop->window != NULL || !range_is_whole(&loop->range)) {
        return false;
    }
    *out = (Turned){loop->body[0], loop->body[1], loop->body[2], loop->range.limit.n, 0};
    if (out->alloc->kind != STMT_ALLOC || out->copy->kind != STMT_TILE || out->n < 2) {
        return false;
    }
    BufRef b = out->alloc->buf;
    const Buffer *t = &k->bufs.at[b];
    const Stmt *copy = out->copy;
    if (t->space != SPACE_ACC || !sets_whole(k, out->turn, b) || tile_kind(copy) != TILE_COPY ||
        copy->n_index != 2 || copy->value->kind != EXPR_LOAD || copy->value->buf != b ||
        k->bufs.at[copy->dst].space != SPACE_TILE || k->bufs.at[copy->dst].rank != 2 ||
        expr_load_of(out->turn->value, copy->dst) != NULL) {
        return false;
    }
    for (uint32_t d = 0; d < 2; d++) {
        Affine at = affine_var(k->arena, copy->index[d].var);
        if (!is_known(&copy->index[d]) || !affine_eq(copy->value->at[d], at) ||
            copy->index[d].range.limit.n != t->extent[d].n ||
            (d == 0 && affine_coef(copy->at[0], loop->var) != 0)) {
            return false;
        }
    }
    out->columns = t->extent[1].n;
    int64_t bytes = out->columns * dtype_bytes(t->dtype);
    return affine_coef(copy->at[1], loop->var) >= out->columns &&
           bytes % 4 == 0 && /* rule G14 */
           out->n * bytes <= NKI_PSUM_BANK;
}

/* The tile for all iterations, the loop that sets its parts, and one copy of it. */
static void put_together(BankCopies *x, const Stmt *loop, const Turned *t, Stmt **out,
                         uint32_t *n)
{
    Arena *a = x->arena;
    const Buffer *old = &x->from->bufs.at[t->alloc->buf];
    Dim extent[2] = {old->extent[0], dim_fixed(t->n * t->columns)};
    BufRef all =
        kernel_buffer(x->to, &x->ctx->syms, old->name->text, old->dtype, SPACE_ACC, 2, extent);
    x->to->bufs.at[all].span = old->span;
    Stmt *alloc = arena_copy(a, t->alloc, sizeof *alloc),
         *turn = arena_copy(a, t->turn, sizeof *turn),
         *each = arena_copy(a, loop, sizeof *each),
         *copy = arena_copy(a, t->copy, sizeof *copy);
    alloc->buf = turn->dst = all;
    Affine *at = arena_copy(a, turn->at, 2 * sizeof *at);
    at[1] = affine_add(a, at[1], t->columns, affine_var(a, loop->var));
    turn->at = at;
    each->body = arena_copy(a, &turn, sizeof turn);
    each->n_body = 1;
    TileIndex *index = ARENA_ARRAY(a, 3, TileIndex);
    VarRef i = kernel_var(x->to, &x->ctx->syms, "i", false);
    index[0] = copy->index[0];
    index[1] = index[2] = copy->index[1];
    index[1].var = i;
    index[1].range = range_whole(dim_fixed(t->n));
    Affine *to = ARENA_ARRAY(a, 2, Affine), *from = ARENA_ARRAY(a, 2, Affine);
    to[0] = copy->at[0];
    to[1] = affine_subst(a, copy->at[1], loop->var, affine_var(a, i));
    from[0] = copy->value->at[0];
    from[1] = affine_add(a, copy->value->at[1], t->columns, affine_var(a, i));
    Expr *value = arena_copy(a, copy->value, sizeof *value);
    value->buf = all;
    value->at = from;
    copy->value = value;
    copy->at = to;
    copy->index = index;
    copy->n_index = 3;
    out[(*n)++] = alloc;
    out[(*n)++] = each;
    out[(*n)++] = copy;
    x->found = true;
}

static Stmt **body_of(BankCopies *x, Stmt *const *body, uint32_t n, uint32_t *made)
{
    Stmt **out = ARENA_ARRAY(x->arena, 3 * (size_t)n + 1, Stmt *);
    *made = 0;
    for (uint32_t i = 0; i < n; i++) {
        Turned t;
        if (is_turned(x, body[i], &t)) {
            put_together(x, body[i], &t, out, made);
            continue;
        }
        Stmt *s = body[i];
        if (stmt_has_body(s)) {
            s = arena_copy(x->arena, s, sizeof *s);
            s->body = body_of(x, s->body, s->n_body, &s->n_body);
        }
        out[(*made)++] = s;
    }
    return out;
}

Kernel *lower_bank_copies(const Lower *l, const Kernel *k)
{
    BankCopies x = {
        .arena = l->arena, .ctx = l->ctx, .from = k, .to = kernel_like(l->arena, k)};
    x.to->body = body_of(&x, k->body, k->n_body, &x.to->n_body);
    return x.found ? kernel_numbered(l->arena, x.to) : NULL;
}
