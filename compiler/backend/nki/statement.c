/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that are no matmul: maps, copies, fills and reductions, box by box. Which label goes on partitions is chosen by how
 * many of them it fills, what lies contiguous in HBM and how blocks on chip already lie; reduced labels go last on the free
 * axis. */
#include "backend/nki/evaluate.h"
#include "backend/nki/home.h"
#include "backend/nki/make.h"
#include "backend/nki/statement.h"
#include "backend/nki/view_parts.h"
#include "backend/nki/whole.h"

static void add_label(Labels *x, uint32_t label)
{
    x->at[x->n++] = (uint8_t)label;
}

#define MASKED_ELEMENTS 256 /* of a row, at a time */
/* ---- without a fold ---- */

bool statement_target(Lower *l, const Place *dst, const Shape *s, const Box *box, TileView *out)
{
    const Home *h = &l->home[dst->buf];
    if (!h->on_chip || (dst->rank > 0 && s->p.n != 1)) {
        return false;
    }
    if (dst->rank > 0 && dst->label[h->pdim] != (int32_t)s->p.at[0]) {
        return false;
    }
    *out = (TileView){
        .buf = h->buf, .np = labels_count(s->p, box), .step = 1, .moves = block_moves(l, dst)};
    view_block_start(l, dst, box, &out->p0, &out->f0);
    return out->p0 == 0 && view_block_run(l, dst, s->keep, box, out) && out->step == 1;
}

/* Evaluates a value whose shared subexpressions are remembered for this box only. */
static TileView evaluate_alone(Evaluation *ev, const Expr *e, DType t, const TileView *into)
{
    memo_begin(ev->l, e, NULL);
    TileView v = evaluate(ev, e, t, into);
    ev->l->now.memo.n = 0;
    return v;
}

/* What is in the box: in its block (*direct), or in a tile, `spare` if that is given. */
TileView statement_evaluate(Lower *l, const Stmt *s, const Place *dst, const Shape *shape,
                            const Box *box, const TileView *spare, bool *direct)
{
    DType t = l->from->bufs.at[dst->buf].dtype;
    TileView into;
    *direct = evaluate_in_place(s) && statement_target(l, dst, shape, box, &into);
    const Expr *e = expr_uncast(s->value);
    bool narrows = !*direct && t != DTYPE_F32 && dtype_is_float(t) && s->value->dtype == t &&
                   e->kind == EXPR_OP && evaluate_is_function(e->op);
    if (narrows) { /* no f32 tile before it */
        into = spare != NULL ? *spare
                             : tile_new(l, "t", t, SPACE_TILE, labels_count(shape->p, box),
                                        labels_count(shape->keep, box));
    }
    Evaluation ev = {l, shape->p, shape->keep, box, LOWER_NONE, {0}, false};
    TileView v = evaluate_alone(&ev, s->value, t, *direct || narrows ? &into : NULL);
    return v;
}

void statement_keep(Lower *l, const Place *dst, const Shape *shape, const Box *box, TileView v,
                    bool direct)
{
    if (direct) {
        l->home[dst->buf].version++;
    } else {
        view_store(l, dst, shape->p, shape->keep, box, v);
    }
}

/* Is a load turned, so that its rows reach over several boxes of partitions? */
bool statement_turns(Lower *l, const Stmt *s, const Shape *shape)
{
    Loads loads = {0};
    collect_loads(l, s->value, &loads);
    bool turns = false;
    for (uint32_t i = 0; i < loads.n; i++) {
        turns |= !l->home[loads.at[i].buf].on_chip &&
                 view_turns(l, &loads.at[i], shape->p, shape->keep, &l->now.full);
    }
    return turns;
}

/* A statement without a fold, box by box. */
static void statement_assign(Lower *l, const Stmt *s, const Place *dst, const Shape *shape)
{
    int64_t pstep[LABELS], fstep[LABELS];
    box_steps(shape->p, &l->now.full, NKI_PARTITIONS, pstep);
    int64_t most = psum_row(l, s->value);
    box_steps(shape->keep, &l->now.full, most, fstep);
    if (most == l->room.tile_elements) { /* else each box is a bank */
        box_even(shape->keep, &l->now.full, fstep);
    }
    bool inside =
        statement_turns(l, s, shape); /* the boxes that share rows follow each other */
    const Labels *outer = inside ? &shape->keep : &shape->p,
                 *inner = inside ? &shape->p : &shape->keep;
    const int64_t *outer_step = inside ? fstep : pstep, *inner_step = inside ? pstep : fstep;
    l->room.loads_first = inside;
    Box box = l->now.full;
    for (bool a = true; box_next(*outer, &l->now.full, outer_step, &box, a) && !l->tried.failed;
         a = false) {
        for (bool b = true;
             box_next(*inner, &l->now.full, inner_step, &box, b) && !l->tried.failed;
             b = false) {
            bool direct = false;
            TileView v = statement_evaluate(l, s, dst, shape, &box, NULL, &direct);
            statement_keep(l, dst, shape, &box, v, direct);
        }
    }
    l->room.loads_first = false;
}

/* Two statements for the two parts of the same elements: one tile holds both. */
void lower_parts(Lower *l, const Stmt *re, const Stmt *im)
{
    Place dst = place_of(l, re->dst, re->at), both = dst;
    both.label[dst.rank - 1] = PART_LABEL;
    Shape shape = statement_shape(l, &dst, re->value, l->now.n_labels), with = shape;
    add_label(&with.keep, PART_LABEL);
    int64_t pstep[LABELS], fstep[LABELS];
    box_steps(shape.p, &l->now.full, NKI_PARTITIONS, pstep);
    box_steps(shape.keep, &l->now.full, l->room.tile_elements / 2, fstep);
    memo_begin(l, re->value, im->value);
    bool reread =
        expr_load_of(re->value, re->dst) != NULL || expr_load_of(im->value, re->dst) != NULL;
    Box box = l->now.full;
    for (bool a = true; box_next(shape.p, &l->now.full, pstep, &box, a) && !l->tried.failed;
         a = false) {
        for (bool b = true;
             box_next(shape.keep, &l->now.full, fstep, &box, b) && !l->tried.failed;
             b = false) {
            int64_t nf = labels_count(shape.keep, &box);
            TileView tile;
            bool direct = !reread && statement_target(l, &both, &with, &box, &tile);
            if (!direct) {
                tile = tile_new(l, "parts", DTYPE_F32, SPACE_TILE, labels_count(shape.p, &box),
                                2 * nf);
            }
            memo_clear(l);
            for (int64_t r = 0; r < 2 && !l->tried.failed; r++) {
                TileView half = view_part(tile, r, nf);
                half.step = 2 * tile.step;
                Evaluation ev = {l, shape.p, shape.keep, &box, LOWER_NONE, {0}, false};
                (void)evaluate(&ev, r == 0 ? re->value : im->value, DTYPE_F32, &half);
            }
            if (direct) {
                l->home[dst.buf].version++;
            } else {
                view_store(l, &both, shape.p, with.keep, &box, tile);
            }
        }
    }
    l->now.memo.n = 0;
}

/* ---- with a fold ---- */

/* The fold of each part by itself, side by side. */
static TileView fold_free(Lower *l, const Stmt *s, const Shape *shape, Box *box,
                          const TileView *into);
static TileView fold_parts(Lower *l, const Stmt *s, const Shape *shape, Box *box)
{
    int64_t np = labels_count(shape->p, box), nk = labels_count(shape->keep, box);
    TileView acc = tile_new(l, "fold", DTYPE_F32, SPACE_TILE, np, nk);
    for (int64_t r = 0; r < 2 && !l->tried.failed; r++) {
        box->s[l->now.part] = r;
        box->n[l->now.part] = 1;
        TileView half = view_part(acc, r, nk / 2);
        half.step = 2;
        make_copy(l, half, fold_free(l, s, shape, box, NULL));
    }
    box->s[l->now.part] = 0;
    box->n[l->now.part] = 2;
    return acc;
}

static Op fold_f32(Op fold)
{
    return fold == OP_ANY ? OP_RMAX : fold == OP_ALL ? OP_RMIN : fold;
}

static bool is_last(Labels x, const Box *full, const Box *box)
{
    bool last = true;
    for (uint32_t i = 0; i < x.n; i++) {
        uint32_t label = x.at[i];
        last &= box->s[label] + box->n[label] == full->s[label] + full->n[label];
    }
    return last;
}

/* The boxes of the reduced labels beside `nk` positions that are kept. */
static void fold_steps(const Lower *l, const Stmt *s, const Shape *shape, int64_t nk,
                       int64_t *step)
{
    int64_t most = psum_row(l, s->value) / nk;
    if (whole_is_masked(
            l, s->value)) { /* what a mask decides costs less, as it is in no loop that stays */
        most = most < MASKED_ELEMENTS ? most : MASKED_ELEMENTS;
    }
    box_steps(shape->fold, &l->now.full, most < 1 ? 1 : most, step);
}

/* max(x * c) is max(x) * c where c > 0, also as both are rounded: what is folded, and *scale. */
static const Expr *without_scale(const Stmt *s, double *scale)
{
    const Expr *e = s->value;
    *scale = 1.0;
    while (e->kind == EXPR_OP && e->op == OP_CAST && e->dtype == DTYPE_F32) {
        e = e->arg[0];
    }
    bool scaled = (s->fold == OP_RMAX || s->fold == OP_RMIN) && e->kind == EXPR_OP &&
                  (e->op == OP_MUL || e->op == OP_DIV) && e->dtype == DTYPE_F32;
    for (uint32_t i = 0; i < 2 && scaled; i++) {
        const Expr *c = expr_uncast(e->arg[1 - i]);
        double by = c->kind == EXPR_CONST && dtype_is_float(c->dtype) ? c->value.re : 0.0;
        if ((e->op == OP_MUL || i == 0) && by > 0x1p-100 && by < 0x1p100) {
            *scale = e->op == OP_MUL ? by : 1.0 / by;
            return e->arg[i];
        }
    }
    return s->value;
}

static void join_or_begin(Lower *l, Op fold, TileView acc, TileView terms, bool begin)
{
    if (begin) {
        make_copy(l, acc, terms);
    } else {
        make_join(l, fold, acc, terms);
    }
}

/* One column per position of `keep`: the fold over the boxes of the reduced labels, in `into` if that is given. */
static TileView fold_free(Lower *l, const Stmt *s, const Shape *shape, Box *box,
                          const TileView *into)
{
    int64_t np = labels_count(shape->p, box), nk = labels_count(shape->keep, box);
    if (l->now.part >= 0 && box->n[l->now.part] == 2 &&
        labels_count(shape->fold, &l->now.full) > 1) {
        return fold_parts(l, s, shape, box);
    }
    double scale;
    const Expr *value = without_scale(s, &scale);
    bool any = false; /* has a box been folded? */
    Labels f = shape_free(shape);
    int64_t step[LABELS];
    if (into == NULL && l->now.flat == 0 && labels_count(shape->fold, &l->now.full) == 1 &&
        !(scale < 1.0 || scale > 1.0)) { /* nothing is folded here */
        Evaluation ev = {l, shape->p, f, box, LOWER_NONE, {0}, true};
        TileView v = evaluate_alone(&ev, value, DTYPE_F32, NULL);
        if (l->tried.failed ||
            (view_dtype(l, v) == DTYPE_F32 && view_space(l, v) == SPACE_TILE && v.step == 1)) {
            return v;
        }
        TileView copy = tile_new(l, "fold", DTYPE_F32, SPACE_TILE, np, nk);
        make_copy(l, copy, v);
        return copy;
    }
    TileView acc = into != NULL ? *into : tile_new(l, "fold", DTYPE_F32, SPACE_TILE, np, nk);
    fold_steps(l, s, shape, nk, step);
    for (bool a = true; box_next(shape->fold, &l->now.full, step, box, a) && !l->tried.failed;
         a = false) {
        Evaluation ev = {l, shape->p, f, box, LOWER_NONE, {0}, true};
        if (whole_is_neutral(l, s, box) && (any || !is_last(shape->fold, &l->now.full, box))) {
            continue;
        }
        bool opens = !any;
        any = true;
        TileView part = opens ? acc : tile_new(l, "part", DTYPE_F32, SPACE_TILE, np, nk);
        int64_t nr = labels_count(shape->fold, box);
        FoldTerms terms;
        if (nr == 1) {
            TileView v = evaluate_alone(&ev, value, DTYPE_F32, NULL);
            join_or_begin(l, s->fold, acc, v, opens);
            continue;
        }
        if (!fold_terms_lie(l, shape, value, box, &terms)) {
            TileView v = evaluate_alone(&ev, value, DTYPE_F32, NULL);
            terms = fold_terms_of(v, shape->fold_first, nk, nr);
        }
        fold_terms(l, part, fold_f32(s->fold), terms);
        if (!opens) {
            make_join(l, s->fold, acc, part);
        }
    }
    if (scale < 1.0 || scale > 1.0) {
        const Expr *arg[2] = {view_load(l, acc, DTYPE_F32),
                              expr_const(l->arena, number_real(DTYPE_F32, scale))};
        make_map(l, acc, expr_op(l->arena, OP_MUL, DTYPE_F32, 2, arg));
    }
    return acc;
}

/* [P, n] -> [1, n] for folds that a matmul cannot do. */
static TileView fold_rows(Lower *l, Op fold, TileView acc)
{
    TileView out = tile_new(l, "fold", DTYPE_F32, SPACE_TILE, 1, acc.nf);
    for (int64_t f = 0; f < acc.nf && !l->tried.failed; f += NKI_PARTITIONS) {
        int64_t n = acc.nf - f < NKI_PARTITIONS ? acc.nf - f : NKI_PARTITIONS;
        TileView turned = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, n, acc.np);
        make_transpose(l, turned, view_part(acc, f, n));
        TileView column = tile_new(l, "fold", DTYPE_F32, SPACE_TILE, n, 1);
        if (acc.np > 1) {
            make_reduce(l, column, fold_f32(fold), turned);
        } else {
            make_copy(l, column, turned);
        }
        TileView back = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, 1, n);
        make_transpose(l, back, column);
        make_copy(l, view_part(out, f, n), back);
    }
    return out;
}

void statement_fold_store(Lower *l, const Stmt *s, const Place *dst, Labels p, Labels keep,
                          const Box *box, TileView v, bool overwrite)
{
    if (!overwrite) {
        TileView old = view_of(l, dst, p, keep, box);
        bool there = old.buf == l->home[dst->buf].buf; /* its block */
        TileView sum = there ? old : tile_new(l, "fold", DTYPE_F32, SPACE_TILE, v.np, v.nf);
        const Expr *arg[2] = {view_load(l, old, DTYPE_F32), view_load(l, v, DTYPE_F32)};
        make_map(l, sum,
                 expr_op(l->arena, op_joined_by(s->fold, DTYPE_F32), DTYPE_F32, 2, arg));
        l->home[dst->buf].version++;
        v = sum;
        if (there) {
            return;
        }
    }
    view_store(l, dst, p, keep, box, v);
}

/* What all terms of the sums are multiplied by. */
static TileView factor_of(Lower *l, Labels p, Labels keep, const Box *box)
{
    Evaluation ev = {l, p, keep, box, LOWER_NONE, {0}, false};
    return evaluate_alone(&ev, l->now.factor, DTYPE_F32, NULL);
}

/* The sums, multiplied by that. */
static TileView with_factor(Lower *l, Labels p, Labels keep, const Box *box, TileView sums)
{
    if (l->now.factor == NULL || l->tried.failed) {
        return sums;
    }
    TileView by = factor_of(l, p, keep, box);
    TileView out = tile_new(l, "fold", DTYPE_F32, SPACE_TILE, sums.np, sums.nf);
    const Expr *arg[2] = {view_load(l, sums, DTYPE_F32), view_load(l, by, DTYPE_F32)};
    make_map(l, out, expr_op(l->arena, OP_MUL, DTYPE_F32, 2, arg));
    return out;
}

/* What the next statement makes of a fold's result; the result, where that is a copy or there is none. */
static TileView with_next(Lower *l, const Stmt *s, Labels p, Labels keep, const Box *box,
                          TileView result)
{
    const Expr *value = lower_next_value(l, s);
    if (value == NULL || l->tried.failed) {
        return result;
    }
    Evaluation ev = {l, p, keep, box, s->dst, result, false};
    return evaluate(&ev, value, l->from->bufs.at[l->now.next->dst].dtype, NULL);
}

static void fold_over_partitions(Lower *l, const Stmt *s, const Place *dst, const Shape *shape,
                                 Box *box, bool overwrite)
{
    int64_t pstep[LABELS];
    box_steps(shape->p, &l->now.full, NKI_PARTITIONS, pstep);
    TileView total = {0};
    bool sum = s->fold == OP_SUM, columns = statement_adds_in_loops(l, s, overwrite);
    for (bool a = true; box_next(shape->p, &l->now.full, pstep, box, a) && !l->tried.failed;
         a = false) {
        TileView acc = fold_free(l, s, shape, box, NULL);
        if (columns) {
            TileView by = {0};
            if (l->now.factor != NULL) {
                by = factor_of(l, shape->p, shape->keep, box);
            }
            statement_column_add(l, s->dst, acc, l->now.factor != NULL ? &by : NULL);
            continue;
        }
        if (sum) {
            total = a ? tile_new(l, "psum", DTYPE_F32, SPACE_ACC, 1, acc.nf) : total;
            TileView ones = view_rows(view_part(view_ones(l), 0, 1), acc.np);
            make_matmul(l, total, ones, acc, a);
            continue;
        }
        TileView row = fold_rows(l, s->fold, acc);
        if (a) {
            total = row;
        } else {
            make_join(l, s->fold, total, row);
        }
    }
    Labels none = {0};
    if (!columns) {
        total = with_factor(l, none, shape->keep, box, total);
        total = with_next(l, s, none, shape->keep, box, total);
        statement_fold_store(l, s, dst, none, shape->keep, box, total, overwrite);
    }
}

/* ---- ahead ---- */

#define AHEAD_PART 4 /* of what may be packed: what is turned before it is used */

typedef enum AheadWhat { AHEAD_COUNT, AHEAD_TURN, AHEAD_NARROW } AheadWhat;

/* In all boxes of a fold: the bytes of a partition of the views of a load, and the views; or what does not depend on all labels. */
static int64_t ahead(Lower *l, const Stmt *s, const Shape *shape, const int64_t *kstep,
                     const Place *x, AheadWhat what)
{
    int64_t pstep[LABELS], step[LABELS], bytes = 0;
    Labels all = shape_free(shape);
    box_steps(shape->p, &l->now.full, NKI_PARTITIONS, pstep);
    Box box = l->now.full;
    for (bool b = true; box_next(shape->keep, &l->now.full, kstep, &box, b) && !l->tried.failed;
         b = false) {
        fold_steps(l, s, shape, labels_count(shape->keep, &box), step);
        for (bool a = true;
             box_next(shape->p, &l->now.full, pstep, &box, a) && !l->tried.failed; a = false) {
            for (bool c = true;
                 box_next(shape->fold, &l->now.full, step, &box, c) && !l->tried.failed;
                 c = false) {
                Labels f = {0};
                for (uint32_t i = 0; i < all.n; i++) {
                    if (box.n[all.at[i]] > 1 &&
                        (what == AHEAD_NARROW || place_has(x, all.at[i]))) {
                        add_label(&f, all.at[i]);
                    }
                }
                if (what == AHEAD_NARROW) {
                    Evaluation ev = {l, shape->p, f, &box, LOWER_NONE, {0}, false};
                    memo_begin(l, s->value, NULL);
                    evaluate_narrow(&ev, s->value);
                    l->now.memo.n = 0;
                    continue;
                }
                bytes += labels_count(f, &box) * dtype_bytes(l->from->bufs.at[x->buf].dtype);
                if (what == AHEAD_TURN) {
                    (void)view_of(l, x, shape->p, f, &box);
                }
            }
        }
    }
    return bytes;
}

/* What is turned for a fold in a loop is turned before any of it is folded, and what its engines need of each other is made: they
 * run in order, and are then free for the next iteration while the Vector engine is at this one. */
static void make_ahead(Lower *l, const Stmt *s, const Shape *shape, const int64_t *kstep)
{
    Loads loads = {0};
    if (l->loops.depth == 0) {
        return;
    }
    collect_loads(l, s->value, &loads);
    for (uint32_t i = 0; i < loads.n && !l->tried.failed; i++) {
        const Place *x = &loads.at[i];
        bool has = true;
        for (uint32_t j = 0; j < shape->p.n; j++) {
            has &= place_has(x, shape->p.at[j]);
        }
        if (has && l->home[x->buf].on_chip &&
            view_turns(l, x, shape->p, shape_free(shape), &l->now.full) &&
            ahead(l, s, shape, kstep, x, AHEAD_COUNT) <= l->room.cache_limit / AHEAD_PART) {
            (void)ahead(l, s, shape, kstep, x, AHEAD_TURN);
        }
    }
    (void)ahead(l, s, shape, kstep, NULL, AHEAD_NARROW);
}

static void lower_fold(Lower *l, const Stmt *s, const Place *dst, const Shape *shape,
                       bool overwrite)
{
    int64_t red = labels_count(shape->fold, &l->now.full);
    int64_t most =
        l->room.tile_elements / (red < l->room.tile_elements ? red : l->room.tile_elements);
    most = most > 512 || shape->fold_first ? 512 : most;
    int64_t kstep[LABELS], pstep[LABELS];
    box_steps(shape->keep, &l->now.full, most, kstep);
    box_steps(shape->p, &l->now.full, NKI_PARTITIONS, pstep);
    make_ahead(l, s, shape, kstep);
    Box box = l->now.full;
    for (bool b = true; box_next(shape->keep, &l->now.full, kstep, &box, b) && !l->tried.failed;
         b = false) {
        if (shape->fold_p) {
            fold_over_partitions(l, s, dst, shape, &box, overwrite);
            continue;
        }
        for (bool a = true;
             box_next(shape->p, &l->now.full, pstep, &box, a) && !l->tried.failed; a = false) {
            TileView into;
            bool direct = overwrite && l->now.part < 0 && l->now.factor == NULL &&
                          lower_next_value(l, s) == NULL &&
                          l->from->bufs.at[dst->buf].dtype == DTYPE_F32 &&
                          expr_load_of(s->value, dst->buf) == NULL &&
                          statement_target(l, dst, shape, &box, &into);
            TileView acc = fold_free(l, s, shape, &box, direct ? &into : NULL);
            acc = with_factor(l, shape->p, shape->keep, &box, acc);
            if (direct) {
                l->home[dst->buf].version++;
            } else {
                acc = with_next(l, s, shape->p, shape->keep, &box, acc);
                statement_fold_store(l, s, dst, shape->p, shape->keep, &box, acc, overwrite);
            }
        }
    }
}

/* ---- vectors ---- */

/* The next piece of a vector: rows of one length that follow each other, of which partitions have one each; at last what is less than
 * one element for each. */
static bool flat_next(Lower *l, int64_t end)
{
    int64_t at = l->now.flat == 0 ? l->now.full.s[0]
                                  : l->now.full.s[0] + l->now.full.n[0] * l->now.full.n[1];
    int64_t left = end - at, row = left / NKI_PARTITIONS, most = l->room.tile_elements;
    int64_t rows = row < most ? cut_rows_of(left) : NKI_PARTITIONS;
    row = row == 0 || row >= most ? row : left / rows;
    row = row < most ? row : most;
    l->now.full.s[0] = at;
    l->now.full.s[1] = 0;
    l->now.full.n[1] = row > 0 ? rows : 1;
    l->now.full.n[0] = l->now.flat = row > 0 ? row : left;
    return left > 0;
}

static void flat_fold(Lower *l, const Stmt *s, const Shape *shape, int64_t end, bool overwrite)
{
    TileView acc = {0}, total;
    for (bool first = true; flat_next(l, end) && !l->tried.failed; first = false) {
        Box box = l->now.full;
        TileView part = fold_free(l, s, shape, &box, NULL);
        if (first) {
            acc = part;
        } else {
            make_join(l, s->fold, view_rows(acc, part.np), part);
        }
    }
    if (s->fold == OP_SUM) {
        total = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, 1, 1);
        make_matmul(l, total, view_part(view_rows(view_ones(l), acc.np), 0, 1), acc, true);
    } else {
        total = fold_rows(l, s->fold, acc);
    }
    l->now.flat = 0;
    Place dst = lower_target(l, s);
    Labels none = {0};
    total = with_next(l, s, none, none, &l->now.full, total);
    statement_fold_store(l, s, &dst, none, none, &l->now.full, total, overwrite);
}

/* A statement over vectors, which alone would keep one partition busy. */
static void lower_flat(Lower *l, const Stmt *s, bool overwrite)
{
    Place whole = lower_target(l, s);
    int64_t end = l->now.full.s[0] + l->now.full.n[0];
    Shape shape = {.p = labels_one(1), .keep = labels_one(0)};
    if (!place_has(&whole, 0)) {
        shape = (Shape){.p = labels_one(1), .fold = labels_one(0), .fold_p = true};
        flat_fold(l, s, &shape, end, overwrite);
    }
    while (place_has(&whole, 0) && flat_next(l, end) && !l->tried.failed) {
        Place dst = lower_target(l, s);
        if (s->fold == OP_COPY) {
            statement_assign(l, s, &dst, &shape);
        } else {
            lower_fold(l, s, &dst, &shape, overwrite);
        }
    }
    l->now.flat = 0;
}

/* ---- short rows ---- */

static void lower_shape(Lower *l, const Stmt *s, bool overwrite)
{
    Place dst = lower_target(l, s);
    Shape shape = statement_shape(l, &dst, s->value, statement_labels(l));
    if (s->fold == OP_COPY) {
        statement_assign(l, s, &dst, &shape);
    } else {
        lower_fold(l, s, &dst, &shape, overwrite);
    }
}

/* Does the value move with something that the statement sums over? */
static bool is_summed(Lower *l, const Stmt *s, const Expr *e)
{
    Place dst = lower_target(l, s);
    bool summed = false;
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        summed |= !place_has(&dst, label) && l->now.full.n[label] > 1 &&
                  expr_uses(l->from, e, s->index[label].var);
    }
    return summed;
}

/* sum(x * y) is sum(x) * y where y is the same for all terms: a pass less over these. The statement of the first sum; l->now.factor is
 * y, or null. */
static const Stmt *without_factor(Lower *l, const Stmt *s)
{
    const Expr *e = expr_uncast(s->value);
    l->now.factor = NULL;
    bool product = s->fold == OP_SUM && l->now.part < 0 && l->now.turned < 0 &&
                   e->kind == EXPR_OP && e->op == OP_MUL && e->dtype == DTYPE_F32 &&
                   !place_is_flat(l, s);
    for (uint32_t i = 0; i < 2 && product; i++) {
        const Expr *x = expr_uncast(e->arg[i]);
        bool loads = x->kind == EXPR_LOAD; /* no number: a scale */
        loads &= !statement_adds_in_loops(l, s, s->begins) || l->home[x->buf].spread;
        if (loads && !is_summed(l, s, e->arg[i]) && is_summed(l, s, e->arg[1 - i])) {
            Stmt *as = arena_copy(l->arena, s, sizeof *s);
            as->value = expr_cast(l->arena, e->arg[1 - i], DTYPE_F32);
            l->now.factor = e->arg[i];
            return as;
        }
    }
    return s;
}

bool lower_is_cut(Lower *l, const Stmt *s)
{
    double ns = 0;
    s = without_factor(l, s);
    bool cut = cut_find(l, s, &ns).kind != CUT_NONE;
    l->now.factor = NULL;
    return cut;
}

double lower_map_ns(Lower *l, const Stmt *s)
{
    double ns = 0;
    s = without_factor(l, s);
    (void)cut_find(l, s, &ns);
    l->now.factor = NULL;
    return ns;
}

void lower_map(Lower *l, const Stmt *s, bool overwrite)
{
    if (place_is_flat(l, s)) {
        lower_flat(l, s, overwrite);
        return;
    }
    double ns = 0;
    s = without_factor(l, s);
    LabelCut c = cut_find(l, s, &ns);
    if (c.kind != CUT_NONE) {
        Box full = l->now.full, rest = full;
        cut_label(l, c);
        int64_t done = l->now.flat * l->now.full.n[l->now.n_labels];
        lower_shape(l, s, overwrite);
        rest.s[c.label] += done;
        rest.n[c.label] -= done;
        cut_end(l, &rest);
        if (rest.n[c.label] > 0 && !l->tried.failed) {
            lower_shape(l, s, overwrite);
        }
        l->now.full = full;
        l->now.factor = NULL;
        return;
    }
    lower_shape(l, s, overwrite);
    l->now.factor = NULL;
}
