/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over pairs, each pair once: what a tile of pairs adds, times its weight, goes to the sum without a number of its own between.
 *
 *     part[] = sum(v)                         E[] += sum(weight[] * v)
 *     E[] += weight[] * part[]          ->
 *
 * Loops around then add rows to rows, each partition for itself, and the Tensor engine adds these up once, behind them. */
#include "tile/tile.h"

#include "loop/copy.h"
#include "loop/term.h"

/* Of `dst[] += weight[] * part[]`, the load of the weight; else null. */
static const Expr *weight_of(const Kernel *k, const Stmt *s, BufRef part)
{
    const Expr *e = expr_uncast(s->value), *weight = NULL;
    bool product = e->kind == EXPR_OP && e->op == OP_MUL;
    for (uint32_t i = 0; i < 2 && product; i++) {
        const Expr *x = expr_uncast(e->arg[i]), *y = expr_uncast(e->arg[1 - i]);
        bool is = x->kind == EXPR_LOAD && y->kind == EXPR_LOAD && y->buf == part &&
                  x->buf != part && k->bufs.at[x->buf].rank == 0;
        weight = is ? x : weight;
    }
    return weight;
}

/* A number that is 1 or 2 is so in f32; terms of an f64 sum are computed in that. */
static void make_f32(Kernel *k, Stmt *const *body, uint32_t n, BufRef weight)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (stmt_has_body(s)) {
            make_f32(k, s->body, s->n_body, weight);
        } else if (s->kind == STMT_TILE && s->dst == weight) {
            bool number = s->value->kind == EXPR_CONST;
            s->value = number ? expr_const(k->arena, number_cast(s->value->value, DTYPE_F32))
                              : expr_cast(k->arena, s->value, DTYPE_F32);
        }
    }
    k->bufs.at[weight].dtype = DTYPE_F32;
}

/* The sum at `at` becomes what is added of it behind it; false: they are something else. */
static bool put_together(Kernel *k, Stmt *const *body, uint32_t n, uint32_t at)
{
    Stmt *s = body[at];
    const Stmt *add = at + 1 < n ? body[at + 1] : NULL;
    bool sums = add != NULL && s->kind == STMT_TILE && s->fold == OP_SUM && s->begins &&
                tile_kind(s) == TILE_REDUCE && k->bufs.at[s->dst].rank == 0;
    if (!sums || add->kind != STMT_TILE || add->fold != OP_SUM || add->n_index > 0 ||
        add->begins) {
        return false;
    }
    const Expr *weight = weight_of(k, add, s->dst), *term = expr_uncast(s->value);
    DType t = k->bufs.at[s->dst].dtype;
    if (weight == NULL || kernel_readers(k, s->dst) > 1 || term->dtype != DTYPE_F32 ||
        (t != DTYPE_F32 && (t != DTYPE_F64 || kernel_readers(k, weight->buf) > 1))) {
        return false;
    }
    if (t == DTYPE_F64) {
        make_f32(k, k->body, k->n_body, weight->buf);
    }
    const Expr *arg[2] = {expr_load(k->arena, k, weight->buf, NULL), term};
    s->dst = add->dst;
    s->at = add->at;
    s->begins = false;
    s->value = expr_cast(k->arena, expr_op(k->arena, OP_MUL, DTYPE_F32, 2, arg), t);
    return true;
}

static uint32_t put_all(Kernel *k, Stmt **body, uint32_t n, bool *any)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        body[kept++] = s;
        if (stmt_has_body(s)) {
            s->n_body = put_all(k, s->body, s->n_body, any);
        } else if (put_together(k, body, n, i)) {
            *any = true;
            i++;
        }
    }
    return kept;
}

Kernel *tile_pair_sums(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    (void)ctx;
    bool any = false;
    Kernel *to = kernel_changeable(arena, k);
    to->n_body = put_all(to, to->body, to->n_body, &any);
    return any ? kernel_numbered(arena, to) : (Kernel *)(uintptr_t)k;
}
