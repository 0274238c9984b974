/* SPDX-License-Identifier: Apache-2.0 */
/* Elements at positions that are values: `W[tok[n], e]`, `x[2*col[i,k] + 1]`. A position is an index, a sum of indices as elsewhere, or a
 * whole number that the statement computes of values, in which an index stands for its position. */
#include <string.h>

#include "front/check_expr.h"

/* Indices whose positions are numbers here. */
static void note_valued(Kern *k, const CheckedExpr *e)
{
    if (e->kind == CHECKED_INDEX) {
        k->s.labels.at[e->label[0]].valued = true;
    }
    for (uint32_t a = 0; a < e->n; a++) {
        note_valued(k, e->arg[a]);
    }
}

static CheckedExpr *number_check(Kern *k, AstId id)
{
    const AstNode n = *kern_node(k, id);
    Affine x;
    if (!position_is_value(k, id)) {
        return position_affine(k, id, &x) ? position_number(k, id, n.span, x)
                                          : expr_poison(k, id, n.span);
    }
    if (n.kind == AST_UNARY && n.op == OP_NEG) {
        CheckedExpr *arg = number_check(k, n.child[0]);
        return expr_map(k, OP_NEG, id, n.span, n.at, &arg, 1);
    }
    Op op;
    if (n.kind == AST_CALL && function_named(n.name, &op) &&
        (uint32_t)op_info(op)->arity == n.n) {
        CheckedExpr *arg[3] = {NULL};
        for (uint32_t a = 0; a < n.n; a++) {
            arg[a] = number_check(k, n.child[a]);
        }
        return expr_map(k, op, id, n.span, n.at, arg, n.n);
    }
    if (n.kind != AST_CHAIN) {
        return expr_check(k, id);
    }
    CheckedExpr *chain = expr_new(k, CHECKED_CHAIN, id, n.span);
    chain->op = n.op;
    for (uint32_t c = 0; c < n.n; c++) {
        chain_add(k, chain, c == 0 ? n.op : (Op)n.link[c], number_check(k, n.child[c]));
    }
    return chain_type(k, chain);
}

CheckedExpr *position_computed(Kern *k, AstId id)
{
    CheckedExpr *e = number_check(k, id);
    note_valued(k, e);
    return e;
}

static CheckedExpr *as_position(Kern *k, CheckedExpr *e)
{
    if (e->weak == WEAK_NO && e->dtype != DTYPE_NONE && !dtype_is_int(e->dtype)) {
        Diagnostic *d =
            diag_error(&k->c->ctx->diags, E_DTYPE_MISMATCH, e->span,
                       "a position is a whole number, and this is %s", dtype_name(e->dtype));
        diag_help(d, "i64(...) cuts off");
        return expr_poison(k, e->ast, e->span);
    }
    note_valued(k, e);
    return e->weak != WEAK_NO || e->dtype != DTYPE_NONE ? compute_in(k, e, DTYPE_I64) : e;
}

CheckedExpr *position_check(Kern *k, uint32_t value, uint32_t axis, AstId id)
{
    int32_t label[RANK_LIMIT];
    uint32_t first = k->s.late.n;
    bool whole = false;
    Affine x;
    if (position_is_value(k, id)) {
        return as_position(k, number_check(k, id));
    }
    if (!position_of_axis(k, value, axis, id, &x, &whole)) {
        return expr_poison(k, id, kern_node(k, id)->span);
    }
    if (!whole) {
        positions_are_of(k, first, label, positions_labels(&x, 1, label));
    }
    return as_position(k, position_number(k, id, kern_node(k, id)->span, x));
}

CheckedExpr *gather_check(Kern *k, AstId ast, uint32_t value)
{
    const AstNode n = *kern_node(k, ast);
    k->s.indexed = true;
    k->s.reads++;
    if (!index_count_fits(k, &n, value)) {
        return expr_poison(k, ast, n.span);
    }
    CheckedExpr *e = expr_read(k, value, ast, n.span, NULL, 0);
    e->kind = CHECKED_GATHER;
    e->n = n.n - 1;
    e->arg = ARENA_ARRAY(k->c->arena, e->n, CheckedExpr *);
    bool ok = true;
    for (uint32_t a = 0; a < e->n; a++) {
        e->arg[a] = position_check(k, value, a, n.child[a + 1]);
        ok = ok && e->arg[a]->dtype != DTYPE_NONE;
    }
    return ok ? e : expr_poison(k, ast, n.span);
}
