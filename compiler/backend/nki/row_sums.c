/* SPDX-License-Identifier: Apache-2.0 */
/* A function over a block, and the sums of its rows beside it: the instruction that makes the values adds them up. What is kept of
 * the values may be a narrower type alone. */
#include "backend/nki/evaluate.h"
#include "backend/nki/home.h"
#include "backend/nki/make.h"
#include "backend/nki/statement.h"

/* Does the statement read what `s` makes where that sets it, with the same indices, as kernel_sums_apart leaves a map and its sums? */
static bool reads_as_made(const Lower *l, const Stmt *s, const Stmt *reader)
{
    const Expr *load = expr_uncast(reader->value);
    bool same = load->kind == EXPR_LOAD && load->buf == s->dst && s->n_index == reader->n_index;
    for (uint32_t d = 0; same && d < l->from->bufs.at[s->dst].rank; d++) {
        same = affine_eq(s->at[d], load->at[d]);
    }
    for (uint32_t i = 0; same && i < s->n_index; i++) {
        const TileIndex *x = &s->index[i], *y = &reader->index[i];
        same = x->var == y->var && range_eq(&x->range, &y->range);
    }
    return same;
}

/* Is the fold the sum of the rows that the statement makes, each by itself? */
static bool sums_rows(Lower *l, const Stmt *s, const Stmt *fold)
{
    const Expr *fn = expr_uncast(s->value);
    return s->fold == OP_COPY && fold->fold == OP_SUM &&
           l->from->bufs.at[s->dst].dtype == DTYPE_F32 && fn->kind == EXPR_OP &&
           fn->n_args == 1 && l->home[s->dst].on_chip &&
           l->from->bufs.at[fold->dst].dtype == DTYPE_F32 && reads_as_made(l, s, fold);
}

bool lower_narrows(Lower *l, const Stmt *s, const Stmt *copy)
{
    const Buffer *b = &l->from->bufs.at[copy->dst];
    return copy->fold == OP_COPY && dtype_is_float(b->dtype) && dtype_bytes(b->dtype) < 4 &&
           l->home[copy->dst].on_chip && evaluate_is_function(expr_uncast(s->value)->op) &&
           reads_as_made(l, s, copy);
}

/* What was evaluated over a box. */
typedef struct Made {
    Box box;
    TileView v;
    bool direct;
} Made;

/* What is lowered: the function with its shape, the narrower copy or null, and the sum. */
typedef struct RowSums {
    const Stmt *stmt, *narrow, *fold;
    Stmt as; /* the statement, or as it makes the narrower copy */
    Place dst, sums;
    Shape shape;
} RowSums;

/* One row for each partition, of now.full. */
static void lower_rows(Lower *l, const RowSums *r)
{
    const Stmt *narrow = r->narrow, *fold = r->fold;
    Place dst = r->dst, sums = r->sums;
    Shape shape = r->shape;
    int64_t pstep[LABELS], fstep[LABELS];
    box_steps(shape.p, &l->now.full, NKI_PARTITIONS, pstep);
    box_steps(shape.keep, &l->now.full, psum_row(l, r->stmt->value), fstep);
    int64_t all = labels_count(shape.keep, &l->now.full), at = 0;
    TileView whole = {0}, part = {0}, *spare = NULL;
    Box box = l->now.full;
    VEC(Made) made = {0}; /* kept once all is made, so that no engine waits for what keeps it */
    for (bool a = true; box_next(shape.p, &l->now.full, pstep, &box, a) && !l->tried.failed;
         a = false) {
        TileView acc = {0};
        Shape column = {.p = shape.p};
        bool direct = false; /* are the sums made where they are kept? */
        for (bool b = true;
             box_next(shape.keep, &l->now.full, fstep, &box, b) && !l->tried.failed;
             b = false) {
            if (b &&
                !(direct = fold->begins && statement_target(l, &sums, &column, &box, &acc))) {
                acc =
                    tile_new(l, "sums", DTYPE_F32, SPACE_TILE, labels_count(shape.p, &box), 1);
            }
            Made one = {.box = box};
            int64_t n = labels_count(shape.keep, &box);
            if (b && narrow != NULL && n < all &&
                !statement_target(l, &dst, &shape, &box, &whole)) {
                whole = tile_new(l, "t", l->from->bufs.at[dst.buf].dtype, SPACE_TILE,
                                 labels_count(shape.p, &box), all);
                spare = &part;
                at = 0;
            }
            part = view_part(whole, at, n);
            at += n;
            TileView v = one.v =
                statement_evaluate(l, &r->as, &dst, &shape, &box, spare, &one.direct);
            vec_push(l->arena, &made, one);
            if (!make_row_sums(l, acc, v, b)) {
                Evaluation ev = {l, shape.p, shape.keep, &box, LOWER_NONE, {0}, false};
                TileView sum = b ? acc : tile_new(l, "part", DTYPE_F32, SPACE_TILE, acc.np, 1);
                v = view_dtype(l, v) == DTYPE_F32
                        ? v
                        : evaluate(&ev, r->stmt->value, DTYPE_F32, NULL);
                make_reduce(l, sum, OP_SUM, v);
                if (!b) {
                    make_join(l, OP_SUM, acc, sum);
                }
            }
        }
        if (direct) {
            l->home[sums.buf].version++;
        } else {
            statement_fold_store(l, fold, &sums, shape.p, (Labels){0}, &box, acc, fold->begins);
        }
    }
    for (uint32_t i = 0; i < made.n && !l->tried.failed; i++) {
        const Made *one = &made.at[i];
        statement_keep(l, &dst, &shape, &one->box, one->v, one->direct);
    }
}

#define PASSES 4 /* over the elements, without: a difference of two tiles takes two */

/* Do the sums of rows take less time beside a function of each row by itself than by a reduction of all rows, which are then made at once? */
static bool rows_pay(int64_t many, int64_t elements)
{
    double each = (double)(elements / many), all = price_least((double)elements);
    return (double)many * (price_row(each) + NKI_LEAST_CYCLES) <=
           PASSES * all + (PASSES - 1) * NKI_START_CYCLES;
}

/* A function over a block, and the sums of its rows beside it: the pass that makes the values adds them up. */
bool lower_row_sums(Lower *l, const Stmt *s, const Stmt *narrow, const Stmt *fold, bool go)
{
    if (!sums_rows(l, s, fold) || place_is_flat(l, s)) {
        return false;
    }
    RowSums r = {.stmt = s, .narrow = narrow, .fold = fold, .as = *s};
    if (narrow != NULL) {
        const Buffer *b = &l->from->bufs.at[narrow->dst];
        r.as.dst = narrow->dst;
        r.as.at = narrow->at;
        r.as.value = expr_cast(l->arena, s->value, b->dtype);
    }
    r.dst = place_of(l, r.as.dst, r.as.at);
    r.sums = place_of(l, fold->dst, fold->at);
    r.shape = statement_shape(l, &r.dst, r.as.value, l->now.n_labels);
    bool rows = !statement_turns(l, s, &r.shape);
    Labels batch = {0}; /* rows that lie beside each other */
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        bool p = labels_have(r.shape.p, label), sum = place_has(&r.sums, label);
        rows &= sum || !p;
        if (sum && !p) {
            batch.at[batch.n++] = (uint8_t)label;
        }
    }
    rows &=
        rows_pay(labels_count(batch, &l->now.full), labels_count(r.shape.keep, &l->now.full));
    if (!rows || !go) {
        return rows;
    }
    Box full = l->now.full, one = full;
    int64_t step[LABELS];
    box_steps(batch, &full, 1, step);
    for (bool a = true; box_next(batch, &full, step, &one, a) && !l->tried.failed; a = false) {
        l->now.full = one;
        lower_rows(l, &r);
    }
    l->now.full = full;
    return true;
}
