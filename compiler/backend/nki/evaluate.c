/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions over a box of labels. A subexpression is computed over the labels it depends on
 * and no others, and is spread over the rest where it meets them: a number, a column (one value
 * per partition) or a tile are what the instructions take. Up to three operands go into one
 * instruction: `pending` holds an operation back until it is known whether the next one can
 * take it along. */
#include "backend/nki/evaluate_parts.h"
#include "backend/nki/make.h"

#include <math.h>
#include <string.h>

Val *val_new(Evaluation *ev, ValKind kind)
{
    Val *v = ARENA_NEW(ev->l->arena, Val);
    v->kind = kind;
    return v;
}

Val *val_number(Evaluation *ev, double number)
{
    Val *v = val_new(ev, VAL_NUMBER);
    v->number = number;
    return v;
}

int64_t eval_partitions(const Evaluation *ev)
{
    return labels_count(ev->p, ev->box);
}

static Labels labels_union(const Evaluation *ev, Labels x, Labels y)
{
    Labels out = {0};
    for (uint32_t i = 0; i < ev->f.n; i++) {
        uint8_t label = ev->f.at[i];
        if (labels_have(x, label) || labels_have(y, label)) {
            out.at[out.n++] = label;
        }
    }
    return out;
}

static TileView result_tile(Evaluation *ev, bool hp, Labels f, DType t, const TileView *into)
{
    if (into != NULL) {
        return *into;
    }
    return tile_new(ev->l, "t", t, SPACE_TILE, hp ? eval_partitions(ev) : 1,
                    labels_count(f, ev->box));
}

/* The whole result can go to `into` only if it is of full shape. */
static bool is_full(const Evaluation *ev, bool hp, Labels f)
{
    return (hp || eval_partitions(ev) == 1) && f.n == ev->f.n;
}

Val *eval_force(Evaluation *ev, const Val *v, DType t, const TileView *into)
{
    if (v->kind != VAL_PENDING) {
        return (Val *)(uintptr_t)v;
    }
    TileView dst = result_tile(ev, v->hp, v->f, t, is_full(ev, v->hp, v->f) ? into : NULL);
    eval_pieces(ev, v, OP_COPY, dst, v->f);
    return val_tile(ev, dst, v->hp, v->f);
}

/* ---- operations ---- */

static const Val *spread_rows(Evaluation *ev, const Val *v, bool hp)
{
    if (v->kind != VAL_TILE || v->hp || !hp || eval_partitions(ev) == 1) {
        return v;
    }
    return val_tile(ev, view_broadcast(ev->l, v->v, eval_partitions(ev)), true, v->f);
}

/* Is one operand of a pending operation a column to each of its instructions? */
static bool takes_column(const Evaluation *ev, const Val *v)
{
    Taken t;
    (void)eval_taken(ev, v, false, v->f, &t);
    return eval_is_column(v->x, t) != eval_is_column(v->y, t);
}

/* May `v` stay pending inside an operation with `other`? Its tile must be the full operand. */
static bool joins(const Evaluation *ev, const Val *v, const Val *other)
{
    if (v->kind != VAL_PENDING || other->kind == VAL_PENDING) {
        return false;
    }
    bool number = v->x->kind == VAL_NUMBER || v->y->kind == VAL_NUMBER;
    bool deep = v->x->kind == VAL_PENDING || v->y->kind == VAL_PENDING;
    bool column = !number && !deep && other->kind == VAL_TILE && other->hp && other->f.n == 0 &&
                  takes_column(ev, v);
    Labels f = labels_union(ev, v->f, other->f);
    return (number || column) && !deep && v->op != OP_POW && f.n == v->f.n &&
           (v->hp || !other->hp);
}

/* No instruction reads two operands from PSUM. */
const Val *eval_out_of_psum(Evaluation *ev, const Val *v)
{
    v = eval_force(ev, v, DTYPE_F32, NULL);
    if (!eval_in_psum(ev, v)) {
        return v;
    }
    TileView copy =
        tile_new(ev->l, "t", DTYPE_F32, SPACE_TILE, v->v.np, labels_count(v->f, ev->box));
    eval_pieces(ev, v, OP_COPY, copy, v->f);
    return val_tile(ev, copy, v->hp, v->f);
}

/* A tile is filled with infinity; NaN, which NKI has no word for, is that times 0. As a column, before all loops. */
static const Val *not_finite(Evaluation *ev, double number)
{
    Lower *l = ev->l;
    int64_t key[3] = {-15, isnan(number) ? 2 : signbit(number), eval_partitions(ev)};
    TileView v;
    if (cache_find(l, key, 3, &v)) {
        return val_tile(ev, v, true, (Labels){0});
    }
    Hoist hoist = hoist_begin(l, 0, (int64_t)sizeof(float));
    v = tile_new(l, "number", DTYPE_F32, SPACE_TILE, eval_partitions(ev), 1);
    make_memset(l, v, isnan(number) ? INFINITY : number);
    const Val *x = val_tile(ev, v, true, (Labels){0});
    if (isnan(number)) {
        Val *product = val_new(ev, VAL_PENDING);
        product->op = OP_MUL;
        product->x = x;
        product->y = val_number(ev, 0.0);
        product->hp = true;
        x = eval_force(ev, product, DTYPE_F32, NULL);
    }
    cache_put(l, key, 3, x->v);
    hoist_end(l, &hoist);
    return x;
}

/* What an instruction can take: a number that is not finite is made. */
static const Val *operand(Evaluation *ev, const Val *v)
{
    return v->kind == VAL_NUMBER && !isfinite(v->number) ? not_finite(ev, v->number) : v;
}

Val *eval_binary(Evaluation *ev, Op op, const Val *x, const Val *y)
{
    x = operand(ev, x);
    y = operand(ev, y);
    if (x->kind == VAL_NUMBER && y->kind == VAL_NUMBER) {
        TileView v = tile_new(ev->l, "number", DTYPE_F32, SPACE_TILE, 1, 1);
        make_memset(ev->l, v, x->number);
        x = val_tile(ev, v, false, (Labels){0});
    }
    bool join_x = joins(ev, x, y), join_y = !join_x && joins(ev, y, x);
    if (op == OP_POW) {
        join_x = join_y = false;
    }
    x = join_x ? x : eval_force(ev, x, DTYPE_F32, NULL);
    y = join_y ? y : eval_force(ev, y, DTYPE_F32, NULL);
    bool hp = x->hp || y->hp;
    if (eval_in_psum(ev, x) && (eval_in_psum(ev, y) || op == OP_POW)) {
        x = eval_out_of_psum(ev, x);
    }
    if (eval_in_psum(ev, y) && op == OP_POW) {
        y = eval_out_of_psum(ev, y);
    }
    Val *v = val_new(ev, VAL_PENDING);
    v->op = op;
    v->x = spread_rows(ev, x, hp);
    v->y = spread_rows(ev, y, hp);
    v->hp = hp;
    v->f = labels_union(ev, x->f, y->f);
    return v;
}

/* The tile of a pending product with a number, which the Scalar engine takes as its scale; else the value. */
static const Val *unscaled(const Val *v)
{
    bool product = v->kind == VAL_PENDING && v->op == OP_MUL;
    bool right = product && v->x->kind == VAL_TILE && v->y->kind == VAL_NUMBER;
    bool left = product && v->y->kind == VAL_TILE && v->x->kind == VAL_NUMBER;
    return right ? v->x : left ? v->y : v;
}

/* Can the Scalar engine take this pending operation as scale or bias, or both? */
static bool feeds_activation(const Evaluation *ev, const Val *v, Op fn)
{
    if (v->kind != VAL_PENDING) {
        return false;
    }
    bool adds = v->op == OP_ADD && fn != OP_COPY;
    const Val *x = adds ? unscaled(v->x) : v->x, *y = adds ? unscaled(v->y) : v->y;
    if (x->kind == VAL_PENDING || y->kind == VAL_PENDING) {
        return false;
    }
    Taken t, apart;
    double together = eval_taken(ev, v, true, v->f, &t);
    double alone = eval_taken(ev, v, false, v->f, &apart) + eval_row_cycles(ev, v->f);
    if (together < 0 || together > alone) {
        return false;
    }
    bool x_small = x->kind == VAL_NUMBER || eval_is_column(x, t);
    bool y_small = y->kind == VAL_NUMBER || eval_is_column(y, t);
    if (x_small == y_small || (x_small ? x != v->x : y != v->y)) {
        return false;
    }
    if (v->op == OP_MUL) {
        return true;
    }
    const Val *small = x_small ? x : y;
    bool bias = ev->l->chip->gen >= 3 || (fn != OP_RSQRT && small->kind == VAL_TILE);
    bool recip = fn == OP_COPY;
    bool minus_column = v->op == OP_SUB && y_small && y->kind == VAL_TILE;
    bool wide = small->kind == VAL_NUMBER || view_dtype(ev->l, small->v) == DTYPE_F32;
    return (v->op == OP_ADD || v->op == OP_SUB) && bias && wide && !minus_column &&
           !(recip && ev->l->chip->gen < 3);
}

/* The column negated, on the Scalar engine as well: the Vector engine may be waiting for what it makes. */
static TileView negative(Lower *l, TileView v)
{
    BufRef of = home_of(l, v.buf);
    int64_t version = of == LOWER_NONE ? 0 : (int64_t)l->home[of].version;
    int64_t key[8] = {-14,  (int64_t)v.buf, version, v.f0,
                      v.nf, v.step,         v.np,    (int64_t)(intptr_t)v.moves};
    TileView minus;
    if (cache_find(l, key, 8, &minus)) {
        return minus;
    }
    minus = tile_new(l, "minus", DTYPE_F32, SPACE_TILE, v.np, v.nf);
    const Expr *arg[2] = {view_load(l, v, DTYPE_F32),
                          expr_const(l->arena, number_real(DTYPE_F32, -1.0))};
    const Expr *product = expr_op(l->arena, OP_MUL, DTYPE_F32, 2, arg);
    make_map(l, minus, expr_op(l->arena, OP_COPY, DTYPE_F32, 1, &product));
    cache_put(l, key, 8, minus);
    return minus;
}

/* x - column as x + (-column), which the Scalar engine takes as a bias. */
static const Val *as_bias(Evaluation *ev, const Val *x, Op fn)
{
    if (x->kind != VAL_PENDING || x->op != OP_SUB || x->y->kind != VAL_TILE ||
        unscaled(x->x)->kind != VAL_TILE) {
        return x;
    }
    Val *sum = val_new(ev, VAL_PENDING);
    *sum = *x;
    sum->op = OP_ADD;
    if (!feeds_activation(ev, sum, fn) || labels_count(x->y->f, ev->box) > 1) {
        return x;
    }
    sum->y = val_tile(ev, negative(ev->l, x->y->v), x->y->hp, x->y->f);
    return sum;
}

/* Results of functions. The reciprocal is written 1 / x. */
static Val *function(Evaluation *ev, Op fn, const Val *x, bool recip, const TileView *into)
{
    Lower *l = ev->l;
    x = operand(ev, x);
    if (x->kind == VAL_NUMBER) {
        TileView v = tile_new(l, "number", DTYPE_F32, SPACE_TILE, 1, 1);
        make_memset(l, v, x->number);
        x = val_tile(ev, v, false, (Labels){0});
    }
    x = recip ? x : as_bias(ev, x, fn);
    if (!feeds_activation(ev, x, recip ? OP_COPY : fn)) {
        x = eval_force(ev, x, DTYPE_F32, NULL);
    }
    TileView dst =
        result_tile(ev, x->hp, x->f, DTYPE_F32, is_full(ev, x->hp, x->f) ? into : NULL);
    if (!recip) {
        eval_pieces(ev, x, fn, dst, x->f);
        return val_tile(ev, dst, x->hp, x->f);
    }
    /* 1 / (...): division, with the number one on the left */
    Val *v = val_new(ev, VAL_PENDING);
    v->op = OP_DIV;
    v->x = val_number(ev, 1.0);
    v->y = x;
    v->hp = x->hp;
    v->f = x->f;
    eval_pieces(ev, v, OP_COPY, dst, x->f);
    return val_tile(ev, dst, x->hp, x->f);
}

/* A tile of the full box, of type t. */
TileView eval_full_tile(Evaluation *ev, const Val *v, DType t, const TileView *into)
{
    Lower *l = ev->l;
    v = v->kind == VAL_NUMBER && isnan(v->number) ? operand(ev, v) : v;
    if (v->kind == VAL_PENDING) {
        v = eval_force(ev, v, t, into);
    }
    if (v->kind == VAL_NUMBER) {
        TileView dst = result_tile(ev, true, ev->f, t, into);
        make_memset(l, dst, v->number);
        return dst;
    }
    v = spread_rows(ev, v, true);
    if (v->f.n == ev->f.n && val_is_run(ev, v)) {
        DType is = view_dtype(l, v->v);
        bool narrow = ev->narrow && (is == DTYPE_BF16 || is == DTYPE_F16);
        if (into == NULL && (is == t || narrow)) {
            return v->v;
        }
        if (into != NULL && v->v.buf == into->buf && v->v.f0 == into->f0 &&
            v->v.moves == into->moves) {
            return v->v;
        }
    }
    TileView dst = result_tile(ev, true, ev->f, t, into);
    eval_pieces(ev, v, OP_COPY, dst, ev->f);
    return dst;
}

static const Val *select_value(Evaluation *ev, const Val *c, const Val *x, const Val *y,
                               const TileView *into)
{
    Lower *l = ev->l;
    TileView p = eval_full_tile(ev, c, DTYPE_BOOL, NULL);
    x = eval_out_of_psum(ev, eval_force(ev, x, DTYPE_F32, NULL));
    TileView a = eval_full_tile(ev, x, DTYPE_F32, NULL);
    TileView dst = tile_new(l, "t", DTYPE_F32, SPACE_TILE, eval_partitions(ev),
                            labels_count(ev->f, ev->box));
    (void)into;
    (void)eval_full_tile(ev, y, DTYPE_F32, &dst);
    const Expr *arg[3] = {view_load(l, p, DTYPE_BOOL), view_load(l, a, DTYPE_F32),
                          view_load(l, dst, DTYPE_F32)};
    make_map(l, dst, expr_op(l->arena, OP_SELECT, DTYPE_F32, 3, arg));
    return val_tile(ev, dst, true, ev->f);
}

static const Val *eval_load(Evaluation *ev, const Expr *e)
{
    Lower *l = ev->l;
    if (e->buf == ev->bound) {
        return val_tile(ev, ev->bound_view, true, ev->f);
    }
    Place x = place_of(l, e->buf, e->at);
    Labels f = {0}, none = {0};
    for (uint32_t i = 0; i < ev->f.n; i++) {
        if (place_has(&x, ev->f.at[i])) {
            f.at[f.n++] = ev->f.at[i];
        }
    }
    bool hp = false;
    for (uint32_t i = 0; i < ev->p.n; i++) {
        hp |= place_has(&x, ev->p.at[i]);
    }
    if (!hp && !l->home[e->buf].on_chip && !l->pair[e->buf] && !l->turn[e->buf].is &&
        view_spreads(l, &x, f, ev->box, eval_partitions(ev)) &&
        l->from->bufs.at[e->buf].dtype != DTYPE_BOOL) {
        hp =
            eval_partitions(ev) > 1; /* on all partitions by one copy whose stride there is 0 */
    }
    Val *v = val_tile(ev, (TileView){0}, hp, f);
    if (!(hp || eval_partitions(ev) == 1) ||
        !view_walked(l, &x, ev->p, f, ev->box, WALKED_DIMS, &v->v, v->step)) {
        v = val_tile(ev, view_of(l, &x, hp ? ev->p : none, f, ev->box), hp, f);
    }
    if (l->from->bufs.at[e->buf].dtype != DTYPE_I32) {
        return v;
    }
    TileView real =
        result_tile(ev, hp, f, DTYPE_F32, NULL); /* of two integers GpSimd computes */
    eval_pieces(ev, v, OP_COPY, real, f);
    return val_tile(ev, real, hp, f);
}

#define TWO_PI 6.283185307179586
#define MAGIC  12582912.0 /* 3 * 2^22: what is added to it and taken away again is rounded */

static const Val *whole_turns(Evaluation *ev, const Val *x)
{
    const Val *k = eval_binary(ev, OP_MUL, x, val_number(ev, 1.0 / TWO_PI));
    k = eval_force(ev, eval_binary(ev, OP_ADD, k, val_number(ev, MAGIC)), DTYPE_F32, NULL);
    return eval_force(ev, eval_binary(ev, OP_SUB, k, val_number(ev, MAGIC)), DTYPE_F32, NULL);
}

/* x + k * by */
static const Val *turned_by(Evaluation *ev, const Val *x, const Val *k, double by)
{
    const Val *product = eval_binary(ev, OP_MUL, k, val_number(ev, by));
    return eval_force(ev, eval_binary(ev, OP_ADD, product, x), DTYPE_F32, NULL);
}

/* x, or a quarter of a turn more, less whole turns: for a table of one period. Two pi is 201/32,
 * whose products with whole numbers to 2^16 are exact, and a rest. For |x| <= 25000, k < 2^12: the
 * rest is off by 2^-34, so k times it by 2^-22; its product is rounded by 2^-22, the sum by 2^-23;
 * a quarter more adds 2^-22 and 2^-24. As k comes from a rounded quotient, the result is up to
 * 0.003 outside; one more turn brings it back, by 2^-22.4 and 2^-23, and the last 2^-21 are cut
 * off. In all less than 2^-19; nothing where |x| <= 3.14. */
static const Val *one_period(Evaluation *ev, const Val *x, bool quarter)
{
    const double first = 6.28125;
    x = eval_force(ev, x, DTYPE_F32, NULL);
    const Val *k = whole_turns(ev, x);
    const Val *r = turned_by(ev, turned_by(ev, x, k, -first), k, first - TWO_PI);
    if (quarter) {
        r = eval_force(ev, eval_binary(ev, OP_ADD, r, val_number(ev, TWO_PI / 4)), DTYPE_F32,
                       NULL);
    }
    r = turned_by(ev, r, whole_turns(ev, r), -TWO_PI);
    r = eval_binary(ev, OP_MAX, r, val_number(ev, -0x1.921fb4p1)); /* pi, rounded down */
    return eval_force(ev, eval_binary(ev, OP_MIN, r, val_number(ev, 0x1.921fb4p1)), DTYPE_F32,
                      NULL);
}

/* What is made of other operations below, or is none to real numbers. */
static const bool made[OP_COUNT] = {
    [OP_CONJ] = true, [OP_RE] = true,  [OP_IM] = true,    [OP_NEG] = true,    [OP_NOT] = true,
    [OP_COS] = true,  [OP_DIV] = true, [OP_SCALE] = true, [OP_SELECT] = true,
};

bool evaluate_has(Op op)
{
    return made[op] || (op_info(op)->nki[0] != '\0' && op_info(op)->arity <= 2);
}

bool evaluate_is_function(Op op)
{
    bool other = made[op] || op == OP_CAST || op == OP_COPY || op == OP_RELU;
    return !other && op_info(op)->arity == 1 && op_info(op)->nki[0] != '\0';
}

static const Val *eval_unary(Evaluation *ev, const Expr *e, const TileView *into)
{
    bool narrows = e->op == OP_CAST && into != NULL && view_dtype(ev->l, *into) == e->dtype;
    const Val *x = eval(ev, e->arg[0], narrows ? into : NULL);
    switch ((int)e->op) {
    case OP_CAST:
        if (e->dtype == DTYPE_BOOL && e->arg[0]->dtype != DTYPE_BOOL) {
            return eval_binary(ev, OP_NE, x, val_number(ev, 0.0));
        }
        if (dtype_bytes(e->dtype) >= 4 || e->dtype == DTYPE_BOOL || narrows) {
            return x;
        }
        if (x->kind == VAL_PENDING) { /* its instruction rounds as well */
            return eval_force(ev, x, e->dtype, NULL);
        }
        if (x->kind == VAL_TILE && view_dtype(ev->l, x->v) != e->dtype) {
            TileView dst = result_tile(ev, x->hp, x->f, e->dtype, NULL);
            eval_pieces(ev, x, OP_COPY, dst, x->f);
            return val_tile(ev, dst, x->hp, x->f);
        }
        return x;
    case OP_CONJ:
    case OP_RE:
    case OP_COPY:
        return x;
    case OP_IM: /* of a real number */
        return val_number(ev, 0.0);
    case OP_NEG:
        return eval_binary(ev, OP_MUL, x, val_number(ev, -1.0));
    case OP_RELU:
        return eval_binary(ev, OP_MAX, x, val_number(ev, 0.0));
    case OP_NOT:
        return eval_binary(ev, OP_EQ, x, val_number(ev, 0.0));
    case OP_SIN:
        return function(ev, OP_SIN, one_period(ev, x, false), false, into);
    case OP_COS: /* the sine a quarter further on */
        return function(ev, OP_SIN, one_period(ev, x, true), false, into);
    default:
        return function(ev, e->op, x, false, into);
    }
}

static const Val *eval_power(Evaluation *ev, const Val *x, const Val *y)
{
    if (y->kind == VAL_NUMBER && y->number == 2.0) {
        const Val *v = eval_force(ev, x, DTYPE_F32, NULL);
        return eval_binary(ev, OP_MUL, v, v);
    }
    if (y->kind == VAL_NUMBER && y->number == 0.5) {
        return function(ev, OP_SQRT, x, false, NULL);
    }
    return eval_binary(ev, OP_POW, x, y);
}

static const Val *eval_divide(Evaluation *ev, const Val *x, const Val *y)
{
    if (y->kind == VAL_NUMBER) {
        return eval_binary(ev, OP_MUL, x, val_number(ev, 1.0 / y->number));
    }
    const Val *inverse = function(ev, OP_COPY, y, true, NULL);
    if (x->kind == VAL_NUMBER && x->number == 1.0) {
        return inverse;
    }
    return eval_binary(ev, OP_MUL, x, inverse);
}

/* x * y, and 0 where x is 0, whatever y is there. */
static const Val *scaled_value(Evaluation *ev, const Val *x, const Val *y)
{
    const Val *zero = val_number(ev, 0);
    const Val *is_zero = eval_binary(ev, OP_EQ, x, zero),
              *times = eval_binary(ev, OP_MUL, x, y);
    return select_value(ev, is_zero, zero, times, NULL);
}

/* Of two i32, exactly: GpSimd computes, out of SBUF. */
static const Val *eval_words(Evaluation *ev, const Expr *e)
{
    Lower *l = ev->l;
    const Expr *arg[2];
    for (uint32_t i = 0; i < 2; i++) {
        arg[i] = view_load(l, eval_full_tile(ev, eval(ev, e->arg[i], NULL), DTYPE_I32, NULL),
                           DTYPE_I32);
    }
    TileView dst = tile_new(l, "t", DTYPE_I32, SPACE_TILE, eval_partitions(ev),
                            labels_count(ev->f, ev->box));
    make_map(l, dst, expr_op(l->arena, e->op, DTYPE_I32, 2, arg));
    return val_tile(ev, dst, true, ev->f);
}

static const Val *eval_op(Evaluation *ev, const Expr *e, const TileView *into)
{
    const Val *made_of = eval_of_positions(ev, e);
    if (made_of != NULL) {
        return made_of;
    }
    if (e->n_args == 1) {
        return eval_unary(ev, e, into);
    }
    if (e->dtype == DTYPE_I32) {
        return eval_words(ev, e);
    }
    const Val *x = eval(ev, e->arg[0], NULL);
    const Val *y = eval(ev, e->arg[1], NULL);
    switch ((int)e->op) {
    case OP_SELECT:
        return select_value(ev, x, y, eval(ev, e->arg[2], NULL), into);
    case OP_SCALE:
        if (x->kind == VAL_NUMBER) {
            return x->number == 0 ? x : eval_binary(ev, OP_MUL, x, y);
        }
        return scaled_value(ev, eval_force(ev, x, DTYPE_F32, NULL), y);
    case OP_DIV:
        return eval_divide(ev, x, y);
    case OP_POW:
        return eval_power(ev, x, y);
    case OP_AND:
        return eval_binary(ev, OP_MUL, x, y);
    case OP_OR:
        return eval_binary(ev, OP_MAX, x, y);
    default:
        return eval_binary(ev, e->op, x, y);
    }
}
const Val *eval(Evaluation *ev, const Expr *e, const TileView *into)
{
    if (e->kind == EXPR_CONST) {
        return val_number(ev, eval_number_of(&e->value));
    }
    if (e->kind == EXPR_EXTENT) {
        return val_number(ev, (double)dim_typical(&ev->l->from->dims, dim_open(e->dim)));
    }
    if (e->kind == EXPR_LOAD) {
        return eval_load(ev, e);
    }
    if (e->kind == EXPR_INDEX) {
        IndexSum x;
        (void)whole_of(ev->l, e, &x);
        return eval_position(ev, x);
    }
    const Expr *left = whole_term(whole_branch(ev->l, e, ev->box));
    if (left != e) {
        return eval(ev, left, into);
    }
    Memo *memo = memo_of(ev->l, e);
    e = memo == NULL ? e : memo->e; /* one of several that are equal */
    int64_t key[KEY_LIMIT];
    uint32_t n = 2, seen = 0;
    bool keep = into == NULL && eval_key(ev, e, key, &n, &seen) &&
                eval_key_finish(ev, e, key, &n, seen);
    Labels f = {0};
    bool hp = false;
    for (uint32_t i = 0; keep && i < ev->f.n; i++) {
        if (seen >> ev->f.at[i] & 1) {
            f.at[f.n++] = ev->f.at[i];
        }
    }
    for (uint32_t i = 0; i < ev->p.n; i++) {
        hp |= (seen >> ev->p.at[i] & 1) != 0;
    }
    TileView found;
    if (keep && cache_find(ev->l, key, n, &found)) {
        return val_tile(ev, found, hp, f);
    }
    if (memo != NULL && memo->value != NULL) {
        return memo->value;
    }
    const Val *v = eval_op(ev, e, memo == NULL ? into : NULL);
    if (memo != NULL) {
        memo->value = v = eval_force(ev, v, DTYPE_F32, NULL);
    }
    if (keep && v->kind == VAL_TILE && v->hp == hp && v->f.n == f.n && val_is_run(ev, v)) {
        cache_put(ev->l, key, n, v->v);
    } else if (keep && v->kind == VAL_PENDING && v->x->kind != VAL_NUMBER &&
               v->y->kind != VAL_NUMBER && v->hp == hp && v->f.n == f.n) {
        v = eval_force(ev, v, DTYPE_F32, NULL);
        cache_put(ev->l, key, n, v->v);
    }
    return v;
}

void evaluate_narrow(Evaluation *ev, const Expr *e)
{
    int64_t key[KEY_LIMIT];
    uint32_t n = 2, seen = 0;
    if (e->kind != EXPR_OP || whole_branch(ev->l, e, ev->box) != e) {
        return;
    }
    if (eval_key(ev, e, key, &n, &seen) && eval_key_finish(ev, e, key, &n, seen)) {
        (void)eval(ev, e, NULL);
        return;
    }
    for (uint32_t i = 0; i < e->n_args; i++) {
        evaluate_narrow(ev, e->arg[i]);
    }
}

TileView evaluate(Evaluation *ev, const Expr *e, DType t, const TileView *into)
{
    Labels f = {0};
    for (uint32_t i = 0; i < ev->f.n; i++) {
        if (ev->box->n[ev->f.at[i]] > 1) {
            f.at[f.n++] = ev->f.at[i];
        }
    }
    ev->f = f;
    bool narrow = ev->narrow;
    ev->narrow = false; /* what is inside is as its instructions want it */
    const Val *v = eval(ev, e, into);
    ev->narrow = narrow;
    return eval_full_tile(ev, v, t, into);
}
