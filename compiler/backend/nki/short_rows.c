/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of arguments whose rows are short. A tile has 128 positions of the sum on partitions; where these are neighbours, each
 * is a descriptor of its own, and one of less than 512 bytes takes as long as one of 512. A sum may take its positions in any order,
 *
 *     C[i,j] += A[k,i] * B[k,j], of k in 0..128*m   ->   .. A[m*p+c,i] * B[m*p+c,j], of p in 0..128, c in 0..m
 *
 * and neighbours are then on one partition, where joined_loads.c loads several of them as one row. */
#include "backend/nki/lower.h"

#include <string.h>

typedef struct ShortRows {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    bool any;
} ShortRows;

/* The dimension in which alone the index is the position, with all of the dimensions behind it read whole; or -1. */
static int32_t row_dim(const Kernel *k, const Stmt *s, const Expr *load, VarRef var)
{
    const Buffer *b = &k->bufs.at[load->buf];
    int32_t dim = -1;
    for (uint32_t d = 0; d < b->rank; d++) {
        bool own = affine_uses(load->at[d], var), plain = load->at[d].n == 1;
        if (own) {
            plain &= dim < 0 && load->at[d].base == 0 && load->at[d].term[0].coef == 1;
            dim = (int32_t)d;
        } else if (dim >= 0) {
            plain &= load->at[d].base == 0 && load->at[d].term[0].coef == 1;
            for (uint32_t i = 0; i < s->n_index && plain; i++) {
                bool this = s->index[i].var == load->at[d].term[0].var;
                plain = !this || (range_is_whole(&s->index[i].range) &&
                                  dim_eq(s->index[i].range.limit, b->extent[d]));
            }
        }
        if ((own || dim >= 0) && !plain) {
            return -1;
        }
    }
    return dim;
}

/* Are the rows of the operand behind the index short, and is it an argument? */
static bool is_short(const Kernel *k, const Stmt *s, const Expr *operand, VarRef var)
{
    const Expr *load = expr_uncast(operand);
    if (load->kind != EXPR_LOAD || k->bufs.at[load->buf].space != SPACE_ARGUMENT) {
        return false;
    }
    const Buffer *b = &k->bufs.at[load->buf];
    int32_t dim = row_dim(k, s, load, var);
    return dim >= 0 && (uint32_t)dim + 1 < b->rank &&
           nki_elements(b, (uint32_t)dim + 1) * nki_bytes(b->dtype) < NKI_SHORT_RUN;
}

/* The one index of the sum, where both operands have short rows behind it; or null. */
static const TileIndex *sum_of_rows(const Kernel *k, const Stmt *s)
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
                  n % NKI_PARTITIONS == 0 && n > NKI_PARTITIONS;
    return splits && is_short(k, s, e->arg[0], x->var) && is_short(k, s, e->arg[1], x->var)
               ? x
               : NULL;
}

/* The index as m * p + c. */
typedef struct Split {
    const ShortRows *rows;
    VarRef var;
    Affine as;
} Split;

static void split_load(void *user, Expr *load)
{
    const Split *x = user;
    Arena *a = x->rows->arena;
    uint32_t rank = load->kind == EXPR_LOAD ? x->rows->to->bufs.at[load->buf].rank : 0;
    Affine *at = arena_copy(a, load->at, rank * sizeof *at);
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = affine_subst(a, at[d], x->var, x->as);
    }
    load->at = load->kind == EXPR_LOAD ? at : load->at;
}

static void split_sum(ShortRows *r, Stmt *s, const TileIndex *sum)
{
    Arena *a = r->arena;
    Kernel *k = r->to;
    uint32_t place = (uint32_t)(sum - s->index);
    int64_t each = sum->range.limit.n / NKI_PARTITIONS;
    VarRef p = kernel_var(k, &r->ctx->syms, "p", false),
           c = kernel_var(k, &r->ctx->syms, k->vars.at[sum->var].name->text, false);
    Split split = {r, sum->var, affine_add(a, affine_var(a, c), each, affine_var(a, p))};
    TileIndex *index = ARENA_ARRAY(a, s->n_index + 1, TileIndex);
    memcpy(index, s->index, s->n_index * sizeof *index);
    index[place].var = p;
    index[place].range = range_whole(dim_fixed(NKI_PARTITIONS));
    index[s->n_index] = index[place];
    index[s->n_index].var = c;
    index[s->n_index].range = range_whole(dim_fixed(each));
    Schedule *roles = arena_copy(a, s->schedule, sizeof *roles);
    uint32_t label[2] = {place, s->n_index++};
    roles->label[ROLE_K] = arena_copy(a, label, sizeof label);
    roles->n_labels[ROLE_K] = 2;
    s->value = expr_with_places(a, s->value, split_load, &split);
    s->index = index;
    s->schedule = roles;
    r->any = true;
}

static void split_all(ShortRows *r, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const TileIndex *sum = sum_of_rows(r->to, body[i]);
        if (sum != NULL) {
            split_sum(r, body[i], sum);
        } else if (stmt_has_body(body[i])) {
            split_all(r, body[i]->body, body[i]->n_body);
        }
    }
}

Kernel *nki_short_rows(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    ShortRows r = {ctx, arena, kernel_changeable(arena, k), false};
    split_all(&r, r.to->body, r.to->n_body);
    return r.any ? kernel_numbered(arena, r.to) : (Kernel *)(uintptr_t)k;
}
