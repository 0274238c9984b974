/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of arguments whose rows are short. A tile has 128 positions of the sum on partitions; where these are neighbours, each
 * is a descriptor of its own, and one of less than 512 bytes takes as long as one of 512. A sum may take its positions in any order,
 *
 *     C[i,j] += A[k,i] * B[k,j], of k in 0..128*m   ->   .. A[m*p+c,i] * B[m*p+c,j], of p in 0..128, c in 0..m
 *
 * and neighbours are then on one partition, where joined_loads.c loads several of them as one row. A long sum is a loop over strips. */
#include "tile/tile.h"

#include "loop/copy.h"

#include <string.h>

#define WHOLE_BYTES  (64 << 10) /* of a partition, of a longer row: all positions at once */
#define STRIP_BYTES  (16 << 10)
#define JOINED_BYTES 128 /* of joined rows, that are worth a loop over batches */

typedef struct ShortRows {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    int64_t granule; /* bytes: a shorter row takes as long as one of these */
    bool any;
} ShortRows;

/* Does the statement read all positions of a dimension, at each one of an index, or the only one? */
static bool is_read_whole(const Stmt *s, Affine at, Dim extent)
{
    if (at.n == 0) {
        return extent.sym < 0 && extent.n == 1;
    }
    bool whole = false;
    for (uint32_t i = 0; i < s->n_index; i++) {
        const TileIndex *x = &s->index[i];
        whole |= affine_is(at, x->var) && range_is_whole(&x->range) &&
                 dim_eq(x->range.limit, extent);
    }
    return whole;
}

/* The dimension in which alone the index is the position, with all of the dimensions behind it read whole; or -1. */
static int32_t row_dim(const Kernel *k, const Stmt *s, const Expr *load, VarRef var)
{
    const Buffer *b = &k->bufs.at[load->buf];
    uint32_t dim = access_dim(k, load->buf, load->at, var);
    bool whole = dim < b->rank;
    for (uint32_t d = dim + 1; d < b->rank && whole; d++) {
        whole = is_read_whole(s, load->at[d], b->extent[d]);
    }
    return whole ? (int32_t)dim : -1;
}

/* Are the rows of the operand behind the index short, and is it an argument? */
static bool is_short(const ShortRows *r, const Stmt *s, const Expr *operand, VarRef var)
{
    const Kernel *k = r->to;
    const Expr *load = expr_uncast(operand);
    if (load->kind != EXPR_LOAD || k->bufs.at[load->buf].space != SPACE_ARGUMENT) {
        return false;
    }
    const Buffer *b = &k->bufs.at[load->buf];
    int32_t dim = row_dim(k, s, load, var);
    return dim >= 0 && (uint32_t)dim + 1 < b->rank &&
           buffer_elements(b, (uint32_t)dim + 1) * dtype_bytes(b->dtype) < r->granule;
}

/* The one index of the sum, where both operands have short rows behind it; or null. */
static const TileIndex *sum_of_rows(const ShortRows *r, const Stmt *s)
{
    const Schedule *roles = s->kind == STMT_TILE ? s->schedule : NULL;
    const Expr *e = roles == NULL ? NULL : expr_uncast(s->value);
    if (roles == NULL || roles->given || roles->n_labels[ROLE_K] != 1 || s->fold != OP_SUM ||
        e->kind != EXPR_OP || e->op != OP_MUL) {
        return NULL;
    }
    const TileIndex *x = &s->index[roles->label[ROLE_K][0]];
    int64_t n = x->range.limit.n;
    bool splits = range_is_whole(&x->range) && x->window == NULL && x->range.limit.sym < 0 &&
                  n % TILE_ROWS == 0 && n > TILE_ROWS;
    return splits && is_short(r, s, e->arg[0], x->var) && is_short(r, s, e->arg[1], x->var)
               ? x
               : NULL;
}

/* Bytes of the longer row behind a position of the sum. */
static int64_t row_bytes(const Kernel *k, const Stmt *s, const TileIndex *sum)
{
    const Expr *product = expr_uncast(s->value);
    int64_t row = 1;
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *load = expr_uncast(product->arg[i]);
        const Buffer *b = &k->bufs.at[load->buf];
        int64_t bytes = buffer_elements(b, (uint32_t)row_dim(k, s, load, sum->var) + 1) *
                        dtype_bytes(b->dtype);
        row = bytes > row ? bytes : row;
    }
    return row;
}

/* Positions that a partition has of a strip: all, or as many as fill a part of it, since loads of one strip run beside products of
 * another. */
static int64_t positions_each(const Kernel *k, const Stmt *s, const TileIndex *sum)
{
    int64_t all = sum->range.limit.n / TILE_ROWS, each = 1;
    int64_t row = row_bytes(k, s, sum);
    for (int64_t n = 2; n <= all && n * row <= STRIP_BYTES; n++) {
        each = all % n == 0 ? n : each;
    }
    return all * row <= WHOLE_BYTES ? all : each;
}

/* The statement, in a loop over strips of the sum where that is long. */
static void split_sum(ShortRows *r, Stmt *s, const TileIndex *sum, Stmts *out)
{
    Arena *a = r->arena;
    Kernel *k = r->to;
    uint32_t place = (uint32_t)(sum - s->index);
    int64_t all = sum->range.limit.n, each = positions_each(k, s, sum);
    const char *name = k->vars.at[sum->var].name->text;
    VarRef p = kernel_var(k, &r->ctx->syms, "p", false),
           c = kernel_var(k, &r->ctx->syms, name, false);
    Subst as = {sum->var, affine_add(a, affine_var(a, c), each, affine_var(a, p))};
    TileIndex *index = ARENA_ARRAY(a, s->n_index + 1, TileIndex);
    memcpy(index, s->index, s->n_index * sizeof *index);
    index[place].var = p;
    index[place].range = range_whole(dim_fixed(TILE_ROWS));
    index[s->n_index] = index[place];
    index[s->n_index].var = c;
    index[s->n_index].range = range_whole(dim_fixed(each));
    bool strips = each * TILE_ROWS < all;
    Stmt *loop = NULL, *fill = strips && s->begins ? stmt_neutral(a, k, s) : NULL;
    Schedule *roles = arena_copy(a, s->schedule, sizeof *roles);
    uint32_t label[2] = {place, s->n_index++};
    roles->label[ROLE_K] = arena_copy(a, label, sizeof label);
    roles->n_labels[ROLE_K] = 2;
    if (strips) {
        loop = ARENA_NEW(a, Stmt);
        *loop = (Stmt){.kind = STMT_FOR, .span = s->span};
        loop->var = kernel_var(k, &r->ctx->syms, name, true);
        loop->range = range_whole(dim_fixed(all));
        loop->step = each * TILE_ROWS;
        loop->body = arena_copy(a, &s, sizeof s);
        loop->n_body = 1;
        as.by = affine_add(a, as.by, 1, affine_var(a, loop->var)); /* behind the strip */
        s->begins = false;
    }
    s->value = expr_subst(a, k, s->value, &as, 1);
    s->index = index;
    s->schedule = roles;
    r->any = true;
    if (fill != NULL) {
        vec_push(a, out, fill);
    }
    s = loop == NULL ? s : loop;
    vec_push(a, out, s);
}

/* The statement without the index at that place, whose variable is a loop's. */
static void take_index(ShortRows *r, Stmt *s, uint32_t place, VarRef loop)
{
    Arena *a = r->arena;
    Subst as = {s->index[place].var, affine_var(a, loop)};
    TileIndex *index = arena_copy(a, s->index, s->n_index * sizeof *index);
    memmove(index + place, index + place + 1, (s->n_index - place - 1) * sizeof *index);
    Schedule *roles = arena_copy(a, s->schedule, sizeof *roles);
    for (uint32_t role = 0; role < ROLE_COUNT; role++) {
        uint32_t *label = ARENA_ARRAY(a, roles->n_labels[role] + 1, uint32_t), n = 0;
        for (uint32_t i = 0; i < roles->n_labels[role]; i++) {
            uint32_t old = roles->label[role][i];
            label[n] = old > place ? old - 1 : old;
            n += old != place;
        }
        roles->label[role] = label;
        roles->n_labels[role] = n;
    }
    s->value = expr_subst(a, r->to, s->value, &as, 1);
    s->at = access_subst(a, r->to->bufs.at[s->dst].rank, s->at, &as, 1);
    s->index = index;
    s->n_index--;
    s->schedule = roles;
}

/* Batches are loops around it: tiles of several lie side by side in a load, and rows apart. */
static void split_batches(ShortRows *r, Stmt *s, Stmts *out)
{
    Arena *a = r->arena;
    if (s->schedule->n_labels[ROLE_BATCH] == 0) {
        split_sum(r, s, sum_of_rows(r, s), out);
        return;
    }
    uint32_t place = s->schedule->label[ROLE_BATCH][0];
    const TileIndex *batch = &s->index[place];
    Stmt *loop = ARENA_NEW(a, Stmt);
    *loop = (Stmt){.kind = STMT_FOR, .span = s->span, .range = batch->range, .step = 1};
    loop->var = kernel_var(r->to, &r->ctx->syms, r->to->vars.at[batch->var].name->text, true);
    take_index(r, s, place, loop->var);
    Stmts in = {0};
    split_batches(r, s, &in);
    loop->body = in.at;
    loop->n_body = in.n;
    vec_push(a, out, loop);
}

/* Do batches lie outside of the sum in both operands, so that rows behind it stay whole in a loop over them? */
static bool batches_outside(const Kernel *k, const Stmt *s, const TileIndex *sum)
{
    const Expr *product = expr_uncast(s->value);
    bool outside = true;
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *load = expr_uncast(product->arg[i]);
        uint32_t rank = k->bufs.at[load->buf].rank;
        for (uint32_t d = (uint32_t)row_dim(k, s, load, sum->var) + 1; d < rank; d++) {
            for (uint32_t b = 0; b < s->schedule->n_labels[ROLE_BATCH]; b++) {
                VarRef batch = s->index[s->schedule->label[ROLE_BATCH][b]].var;
                outside &= !affine_uses(load->at[d], batch);
            }
        }
    }
    return outside;
}

/* Is it worth it: are rows joined, and long where there is a loop over batches? */
static bool is_worth(const Kernel *k, const Stmt *s, const TileIndex *sum)
{
    const Schedule *roles = s->schedule;
    bool whole = batches_outside(k, s, sum);
    for (uint32_t i = 0; i < roles->n_labels[ROLE_BATCH]; i++) {
        const TileIndex *x = &s->index[roles->label[ROLE_BATCH][i]];
        whole &= range_is_whole(&x->range) && x->window == NULL;
    }
    int64_t each = positions_each(k, s, sum);
    return whole && each > 1 &&
           (roles->n_labels[ROLE_BATCH] == 0 || each * row_bytes(k, s, sum) >= JOINED_BYTES);
}

static Stmts split_all(ShortRows *r, Stmt *const *body, uint32_t n)
{
    Stmts out = {0};
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        const TileIndex *sum = sum_of_rows(r, s);
        if (sum != NULL && is_worth(r->to, s, sum)) {
            split_batches(r, s, &out);
            continue;
        }
        if (stmt_has_body(s)) {
            Stmts in = split_all(r, s->body, s->n_body);
            s->body = in.at;
            s->n_body = in.n;
        }
        vec_push(r->arena, &out, s);
    }
    return out;
}

Kernel *tile_short_rows(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    ShortRows r = {ctx, arena, kernel_changeable(arena, k), target->machine->level[0].granule,
                   false};
    Stmts body = split_all(&r, r.to->body, r.to->n_body);
    r.to->body = body.at;
    r.to->n_body = body.n;
    return r.any ? kernel_numbered(arena, r.to) : (Kernel *)(uintptr_t)k;
}
