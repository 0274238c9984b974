/* SPDX-License-Identifier: Apache-2.0 */
/* What positions make in an expression: numbers by iota, choices between a tile and a number by affine_select. */
#include "backend/nki/evaluate_parts.h"
#include "backend/nki/make.h"

#include <math.h>

/* The only value that the box has. */
static int64_t lo_of_box(const Lower *l, const IndexSum *x, const Box *box)
{
    int64_t lo, hi;
    whole_range(l, x, box, &lo, &hi);
    return lo;
}

/* Positions, as a tile over the labels they depend on. */
const Val *eval_position(Evaluation *ev, IndexSum x)
{
    Lower *l = ev->l;
    int64_t lo, hi;
    whole_range(l, &x, &l->now.full, &lo, &hi);
    if (lo < -WHOLE_MOST || hi > WHOLE_MOST) {
        lower_refuse(l, l->now.stmt->span, "positions beyond 2^24, which f32 does not hold");
        return val_number(ev, 0);
    }
    Labels f = {0}, none = {0};
    bool hp = eval_partitions(ev) > 1, moves = false;
    for (uint32_t i = 0; i < ev->f.n; i++) {
        if (x.coef[ev->f.at[i]] != 0 && ev->box->n[ev->f.at[i]] > 1) {
            f.at[f.n++] = ev->f.at[i];
        }
    }
    for (uint32_t i = 0; i < ev->p.n; i++) {
        moves |= x.coef[ev->p.at[i]] != 0 && ev->box->n[ev->p.at[i]] > 1;
    }
    if (f.n == 0 && !moves && x.moves.n == 0) {
        return val_number(ev, (double)lo_of_box(l, &x, ev->box));
    }
    if (whole_on_partitions(&x, ev->p, ev->box)) {
        return val_tile(ev, whole_tile(l, &x, ev->p, f, ev->box), hp, f);
    }
    /* along a row, turned into a column, and what moves along the rows is added */
    IndexSum column = x, row = {.base = 0};
    for (uint32_t i = 0; i < f.n; i++) {
        row.coef[f.at[i]] = x.coef[f.at[i]];
        row.base -= row.coef[f.at[i]] * ev->box->s[f.at[i]];
    }
    for (uint32_t i = 0; i < f.n; i++) {
        column.coef[f.at[i]] = 0;
        column.base += row.coef[f.at[i]] * ev->box->s[f.at[i]];
    }
    TileView turned = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, eval_partitions(ev), 1);
    make_transpose(l, turned, whole_tile(l, &column, none, ev->p, ev->box));
    TileView v = tile_new(l, "at", DTYPE_F32, SPACE_TILE, eval_partitions(ev), 1);
    make_copy(l, v, turned);
    const Val *out = val_tile(ev, v, true, none);
    return f.n == 0
               ? out
               : eval_binary(ev, OP_ADD,
                             val_tile(ev, whole_tile(l, &row, ev->p, f, ev->box), hp, f), out);
}

/* Comparisons of positions that all must hold; false: there are others. */
static bool all_compare(Evaluation *ev, const Expr *e, uint32_t *n, const Expr **at)
{
    IndexSum x;
    if (*n == 8) {
        return false;
    }
    if (e->kind == EXPR_OP && e->op == OP_AND) {
        return all_compare(ev, e->arg[0], n, at) && all_compare(ev, e->arg[1], n, at);
    }
    at[(*n)++] = e;
    return whole_compares(ev->l, e, &x) && whole_on_partitions(&x, ev->p, ev->box);
}

/* A tile where positions compare so, a number elsewhere: by an instruction each. */
static const Val *select_by_position(Evaluation *ev, const Expr *e)
{
    Lower *l = ev->l;
    const Expr *at[8], *other = expr_uncast(e->arg[2]);
    uint32_t n = 0;
    double number = other->kind == EXPR_CONST ? eval_number_of(&other->value) : NAN;
    if (number != number || !all_compare(ev, e->arg[0], &n, at)) {
        return NULL;
    }
    const Val *x = eval(ev, e->arg[1], NULL);
    x = eval_out_of_psum(ev, eval_force(ev, x, DTYPE_F32, NULL));
    if (x->kind != VAL_TILE || !x->hp || view_dtype(l, x->v) != DTYPE_F32) {
        x = val_tile(ev, eval_full_tile(ev, x, DTYPE_F32, NULL), true, ev->f);
    }
    TileView dst = tile_new(l, "t", DTYPE_F32, SPACE_TILE, eval_partitions(ev),
                            labels_count(ev->f, ev->box));
    for (uint32_t i = 0; i < n; i++) {
        IndexSum w;
        int64_t lo, hi;
        (void)whole_compares(l, at[i], &w);
        whole_range(l, &w, &l->now.full, &lo, &hi);
        if (lo <= -INT32_MAX / 2 || hi >= INT32_MAX / 2) {
            lower_refuse(l, l->now.stmt->span, "positions beyond 2^30");
        }
        int64_t step[LABELS];
        for (uint32_t k = 0; k < ev->f.n; k++) {
            step[k] = eval_step(x, ev->f.at[k]);
        }
        whole_select(l, dst, x->v, step, &w, at[i]->op, number, ev->p, ev->f, ev->box);
        x = val_tile(ev, dst, eval_partitions(ev) > 1, ev->f);
    }
    return x;
}

/* What is made of positions in ways of its own, or null. */
const Val *eval_of_positions(Evaluation *ev, const Expr *e)
{
    IndexSum x;
    if (e->op == OP_SELECT && !dtype_is_int(e->dtype)) {
        return select_by_position(ev, e);
    }
    if (whole_compares(ev->l, e, &x)) {
        return eval_binary(ev, e->op, eval_position(ev, x), val_number(ev, 0));
    }
    return dtype_is_int(e->dtype) && whole_of(ev->l, e, &x) ? eval_position(ev, x) : NULL;
}
