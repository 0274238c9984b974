/* SPDX-License-Identifier: Apache-2.0 */
/* Folds of rows under a condition on values, sum[j](select(tok[t] == index(j), W[j,d], 0)): the row d of the result goes innermost, and
 * takes the row of each j that fulfils the condition, which is asked once for all of it:
 *
 *     for t: for j: if (tok[t] == j)  for d: Y[t,d] += W[j,d] */
#include "backend/c/legalise.h"

#define SHORTEST 8 /* positions of a row that is worth a call */

/* The index of a row: side by side in the result, and the same for the condition; n_index: there is none. */
static uint32_t row_of(const Legaliser *l, const Stmt *s, const Expr *condition)
{
    uint32_t row = s->n_index;
    for (uint32_t i = 0; i < s->n_index; i++) {
        const TileIndex *x = &s->index[i];
        if (access_is_unit(l->k, s->dst, s->at, x->var) &&
            !expr_uses(l->k, condition, x->var) && range_typical(l->k, x->range) >= SHORTEST) {
            row = i;
        }
    }
    return row;
}

bool legalise_rows(Legaliser *l, const Stmt *s)
{
    const Expr *condition = NULL, *value = expr_under(s->fold, s->value, &condition);
    DType t = l->k->bufs.at[s->dst].dtype;
    ExprWalk w;
    if (condition == NULL || load_first(&w, condition) == NULL || s->scan > 0 ||
        dtype_is_complex(t) || t != value->dtype) {
        return false;
    }
    uint32_t row = row_of(l, s, condition);
    bool folds = false;
    for (uint32_t i = 0; i < s->n_index; i++) {
        folds |= expr_uses(l->k, condition, s->index[i].var) &&
                 !access_uses(l->k, s->dst, s->at, s->index[i].var);
    }
    if (row == s->n_index || !folds) {
        return false;
    }
    s = legalise_begin(l, s);
    StmtBlock *outside = l->block;
    Subst *by = ARENA_ARRAY(l->arena, s->n_index, Subst);
    uint32_t n = 0;
    for (uint32_t pass = 0; pass < 2;
         pass++) { /* positions of the result, then those that are folded */
        for (uint32_t i = 0; i < s->n_index; i++) {
            const TileIndex *x = &s->index[i];
            if (i != row && access_uses(l->k, s->dst, s->at, x->var) == (pass == 0)) {
                VarRef v = loop_open(l, "x", x->range, 1, FOR_ALL);
                by[n++] = (Subst){x->var, affine_var(l->arena, v)};
            }
        }
    }
    uint32_t rank = l->k->bufs.at[s->dst].rank;
    const Affine *at = access_subst(l->arena, rank, s->at, by, n);
    const Expr *operand[2] = {expr_load(l->arena, l->k, s->dst, at),
                              expr_subst(l->arena, l->k, s->value, by, n)};
    TileIndex index = s->index[row];
    index.mode = lanes_of(t);
    tile_add(l, 1, &index, s->dst, at, OP_COPY,
             expr_op(l->arena, op_joined_by(s->fold, t), t, 2, operand));
    while (l->block != outside) {
        loop_close(l);
    }
    return true;
}
