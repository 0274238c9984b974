/* SPDX-License-Identifier: Apache-2.0 */
/* A value as instructions take it. An engine walks up to three dimensions of the free axis, each operand by steps of its own, and reads the
 * same elements again where a step is 0; so one instruction takes all labels, unless an operand lies in too many pieces, or there is less to
 * do where a tile is a column to each of several instructions. */
#include "backend/nki/evaluate_parts.h"
#include "backend/nki/make.h"
#include "backend/nki/price.h"

#include <string.h>

/* ---- leaves, and how an instruction sees them ---- */

typedef struct Leaves {
    uint32_t n;
    const Val *at[8];
} Leaves;

static void leaves_of(const Val *v, Leaves *out)
{
    if (v->kind == VAL_PENDING) {
        leaves_of(v->x, out);
        leaves_of(v->y, out);
    } else if (v->kind == VAL_TILE) {
        CHECK(out->n < 8);
        out->at[out->n++] = v;
    }
}

bool eval_in_psum(const Evaluation *ev, const Val *v)
{
    return v->kind == VAL_PENDING ? eval_in_psum(ev, v->x) || eval_in_psum(ev, v->y)
                                  : v->kind == VAL_TILE && view_space(ev->l, v->v) == SPACE_ACC;
}

/* ---- what one instruction takes ---- */

#define TAKEN_LABELS 10 /* of a row, which may be walked by one instruction */

static bool takes(Taken t, uint32_t label)
{
    for (uint32_t i = 0; i < t.f.n; i++) {
        if (t.f.at[i] == label) {
            return (t.bits >> i & 1) != 0;
        }
    }
    return false;
}

int64_t eval_step(const Val *leaf, uint32_t label)
{
    for (uint32_t i = 0; i < leaf->f.n; i++) {
        if (leaf->f.at[i] == label) {
            return leaf->step[i];
        }
    }
    return 0;
}

/* Has each partition one value of the leaf in the instruction? */
bool eval_is_column(const Val *leaf, Taken t)
{
    bool moves = t.bits == 0;
    for (uint32_t i = 0; i < leaf->f.n; i++) {
        moves |= takes(t, leaf->f.at[i]);
    }
    return leaf->kind == VAL_TILE && !moves;
}

/* Dimensions in which the engine walks the leaf. */
static uint32_t walked_dims(const Evaluation *ev, const Val *leaf, Taken t)
{
    uint32_t dims = 0;
    int64_t before = 0;
    for (uint32_t i = 0; i < t.f.n; i++) {
        int64_t step = eval_step(leaf, t.f.at[i]), n = ev->box->n[t.f.at[i]];
        if ((t.bits >> i & 1) != 0) {
            dims += dims == 0 || before != step * n;
            before = step;
        }
    }
    return dims;
}

static uint32_t count_full(const Val *v, Taken t)
{
    return v->kind == VAL_PENDING ? count_full(v->x, t) + count_full(v->y, t)
                                  : v->kind == VAL_TILE && !eval_is_column(v, t);
}

/* Is it one instruction (decode.c)? `function`: of the Scalar engine, which reads one tile beside columns. */
static bool is_instruction(const Val *v, bool function, Taken t)
{
    uint32_t full = count_full(v, t);
    bool one = v->kind != VAL_PENDING || v->x->kind != VAL_PENDING || count_full(v->x, t) == 1;
    one &= v->kind != VAL_PENDING || v->y->kind != VAL_PENDING || count_full(v->y, t) == 1;
    return function ? full == 1 : one && (full > 0 || v->kind == VAL_TILE);
}

/* Cycles of all of it. */
static double taken_cycles(const Evaluation *ev, const Val *v, Taken t)
{
    double count = 1, pieces = 1, passes = 1;
    for (uint32_t i = 0; i < t.f.n; i++) {
        double n = (double)ev->box->n[t.f.at[i]];
        *((t.bits >> i & 1) != 0 ? &count : &pieces) *= n;
    }
    if (count_full(v, t) > 1 &&
        (!eval_in_psum(ev, v) || v->x->kind == VAL_PENDING || v->y->kind == VAL_PENDING)) {
        passes = 2;
    }
    return pieces * price_row(passes * count);
}

/* Of one instruction over whole rows. */
double eval_row_cycles(const Evaluation *ev, Labels f)
{
    return price_row((double)labels_count(f, ev->box));
}

/* How instructions take it in the least time, or -1. *out: what each of them walks. */
double eval_taken(const Evaluation *ev, const Val *v, bool function, Labels f, Taken *out)
{
    Leaves leaves = {0};
    double least = -1;
    leaves_of(v, &leaves);
    uint32_t many = f.n < TAKEN_LABELS ? f.n : TAKEN_LABELS;
    *out = (Taken){f, 0};
    for (uint32_t set = f.n > 0; set < 1u << many; set++) {
        Taken t = {f, set << (f.n - many)};
        bool fits = is_instruction(v, function, t);
        for (uint32_t i = 0; i < leaves.n && fits; i++) {
            fits = walked_dims(ev, leaves.at[i], t) <= WALKED_DIMS;
        }
        double cycles = fits ? taken_cycles(ev, v, t) : 0;
        if (fits && (least < 0 || cycles < least)) {
            least = cycles;
            *out = t;
        }
    }
    return least;
}

/* The leaf at one position of the labels that are not taken. */
static TileView leaf_piece(const Evaluation *ev, const Val *leaf, const Box *part)
{
    TileView v = leaf->v;
    for (uint32_t i = 0; i < leaf->f.n; i++) {
        uint32_t label = leaf->f.at[i];
        v.f0 += leaf->step[i] * (part->s[label] - ev->box->s[label]);
    }
    return v;
}

/* How an instruction walks its operands: dimensions in which all run on alike. */
typedef struct Walked {
    uint32_t n;
    int64_t count[LABELS];
    uint32_t label[LABELS]; /* the last of each */
} Walked;

static Walked walk_of(const Evaluation *ev, const Leaves *leaves, const Val *into, Taken t)
{
    Walked w = {0};
    for (uint32_t i = 0; i < t.f.n; i++) {
        uint32_t label = t.f.at[i];
        int64_t n = ev->box->n[label];
        if ((t.bits >> i & 1) == 0) {
            continue;
        }
        bool on = w.n > 0 && eval_step(into, w.label[w.n - 1]) == eval_step(into, label) * n;
        for (uint32_t k = 0; k < leaves->n && on; k++) {
            on = eval_step(leaves->at[k], w.label[w.n - 1]) ==
                 eval_step(leaves->at[k], label) * n;
        }
        w.n += !on;
        w.count[w.n - 1] = on ? w.count[w.n - 1] * n : n;
        w.label[w.n - 1] = label;
    }
    return w;
}

static void steps_of(const Val *leaf, const Walked *w, int64_t *step)
{
    for (uint32_t i = 0; i < w->n; i++) {
        step[i] = eval_step(leaf, w->label[i]);
    }
}

static const Expr *piece_expr(Evaluation *ev, const Val *v, Taken t, const Walked *w,
                              const Box *part)
{
    Lower *l = ev->l;
    if (v->kind == VAL_NUMBER) {
        return expr_const(l->arena, number_real(DTYPE_F32, v->number));
    }
    if (v->kind == VAL_TILE) {
        TileView piece = leaf_piece(ev, v, part);
        int64_t step[LABELS];
        steps_of(v, w, step);
        return eval_is_column(v, t) ? view_column(l, piece, DTYPE_F32)
                                    : view_walked_load(l, piece, w->n, step, DTYPE_F32);
    }
    const Expr *arg[2] = {piece_expr(ev, v->x, t, w, part), piece_expr(ev, v->y, t, w, part)};
    DType type = DTYPE_F32, in[2] = {type, type};
    CHECK(op_result_type(v->op, in, 2, &type));
    return expr_cast(l->arena, expr_op(l->arena, v->op, type, 2, arg), DTYPE_F32);
}

static void row_by_row(const Evaluation *ev, Val *v)
{
    int64_t step = v->v.step;
    for (uint32_t i = v->f.n; i-- > 0;) {
        v->step[i] = step;
        step *= ev->box->n[v->f.at[i]];
    }
}

Val *val_tile(Evaluation *ev, TileView v, bool hp, Labels f)
{
    Val *out = val_new(ev, VAL_TILE);
    out->v = v;
    out->hp = hp;
    out->f = f;
    row_by_row(ev, out);
    return out;
}

bool val_is_run(const Evaluation *ev, const Val *v)
{
    Val rows = *v;
    row_by_row(ev, &rows);
    return memcmp(rows.step, v->step, v->f.n * sizeof *v->step) == 0;
}

/* Columns are f32 to every instruction, whatever the tiles are: others are copied first. */
static const Val *widen_columns(Evaluation *ev, const Val *v, Taken t)
{
    if (v->kind == VAL_PENDING) {
        Val *out = val_new(ev, VAL_PENDING);
        *out = *v;
        out->x = widen_columns(ev, v->x, t);
        out->y = widen_columns(ev, v->y, t);
        return out;
    }
    if (!eval_is_column(v, t) || view_dtype(ev->l, v->v) == DTYPE_F32) {
        return v;
    }
    TileView copy =
        tile_new(ev->l, "t", DTYPE_F32, SPACE_TILE, v->v.np, labels_count(v->f, ev->box));
    eval_pieces(ev, v, OP_COPY, copy, v->f);
    return val_tile(ev, copy, v->hp, v->f);
}

/* Is it a function of the Scalar engine, written as one or as 1 / x? */
static bool is_activation(const Val *v, Op fn)
{
    return fn != OP_COPY ||
           (v->kind == VAL_PENDING && v->op == OP_DIV && v->x->kind == VAL_NUMBER &&
            !(v->x->number < 1.0) && !(v->x->number > 1.0));
}

/* For each piece: dst[...] = fn(value). OP_COPY: the value itself. */
void eval_pieces(Evaluation *ev, const Val *v, Op fn, TileView dst, Labels f)
{
    Lower *l = ev->l;
    Taken t;
    Leaves leaves = {0};
    CHECK(eval_taken(ev, v, is_activation(v, fn), f, &t) >= 0);
    if (v->kind == VAL_PENDING) {
        v = widen_columns(ev, v, t);
    }
    leaves_of(v, &leaves);
    Labels outer = {0};
    int64_t one[LABELS];
    for (uint32_t i = 0; i < f.n; i++) {
        if ((t.bits >> i & 1) == 0) {
            one[outer.n] = 1;
            outer.at[outer.n++] = f.at[i];
        }
    }
    Val *into = val_tile(ev, dst, true, f);
    Walked w = walk_of(ev, &leaves, into, t);
    int64_t step[LABELS];
    steps_of(into, &w, step);
    Box part = *ev->box;
    for (uint32_t i = 0; i < leaves.n; i++) {
        if (labels_count(outer, ev->box) > 1 || w.n > 1) {
            retry_copied_pieces(l, leaves.at[i]->v.buf);
        }
    }
    for (bool first = true; box_next(outer, ev->box, one, &part, first) && !l->tried.failed;
         first = false) {
        const Expr *e = piece_expr(ev, v, t, &w, &part);
        if (fn != OP_COPY) {
            e = expr_op(l->arena, fn, DTYPE_F32, 1, &e);
        }
        make_walked(l, leaf_piece(ev, into, &part), w.n, w.count, step, e);
    }
}
