/* SPDX-License-Identifier: Apache-2.0 */
/* IndexSum numbers that are made of positions: sums of indices, what is known of them and of comparisons over a box, and the
 * tiles that hold them. All are exact in f32. */
#include "backend/nki/make.h"
#include "backend/nki/whole.h"

#include <math.h>

/* ---- sums of indices ---- */

static void add_term(const Lower *l, IndexSum *x, VarRef v, int64_t coef)
{
    for (uint32_t j = 0; j < l->now.n_labels; j++) {
        if (j < l->now.stmt->n_index && l->now.stmt->index[j].var == v) {
            x->coef[j] += coef;
            x->moves = affine_add(l->arena, x->moves, coef, l->now.moves[j]);
            x->coef[l->now.n_labels] +=
                l->now.flat > 0 && j == l->now.cut ? coef * l->now.flat : 0;
            return;
        }
    }
    x->base += coef * l->value[v];
    x->moves = affine_add(l->arena, x->moves, coef, l->loops.moves[v]);
}

static bool is_whole(const Expr *e)
{
    return dtype_is_int(e->dtype);
}

static void scale(const Lower *l, IndexSum *x, int64_t by)
{
    x->base *= by;
    x->moves = affine_add(l->arena, affine_const(0), by, x->moves);
    for (uint32_t i = 0; i < LABELS; i++) {
        x->coef[i] *= by;
    }
}

static void add_sum(const Lower *l, IndexSum *x, const IndexSum *y)
{
    x->base += y->base;
    x->moves = affine_add(l->arena, x->moves, 1, y->moves);
    for (uint32_t i = 0; i < LABELS; i++) {
        x->coef[i] += y->coef[i];
    }
}

bool whole_of(const Lower *l, const Expr *e, IndexSum *out)
{
    *out = (IndexSum){0};
    if (e->kind == EXPR_INDEX) {
        out->base = e->at[0].base;
        for (uint32_t i = 0; i < e->at[0].n; i++) {
            add_term(l, out, e->at[0].term[i].var, e->at[0].term[i].coef);
        }
        return true;
    }
    if (!is_whole(e)) {
        return false;
    }
    if (e->kind == EXPR_CONST) {
        out->base = e->value.i;
        return out->base > -WHOLE_MOST && out->base < WHOLE_MOST;
    }
    IndexSum y = {0};
    if (e->kind != EXPR_OP || !whole_of(l, e->arg[0], out)) {
        return false;
    }
    if (e->op == OP_CAST || e->op == OP_COPY) {
        return is_whole(e->arg[0]);
    }
    if (e->op == OP_NEG) {
        scale(l, out, -1);
        return true;
    }
    if (e->n_args != 2 || !whole_of(l, e->arg[1], &y)) {
        return false;
    }
    if (e->op == OP_MUL && (e->arg[0]->kind == EXPR_CONST || e->arg[1]->kind == EXPR_CONST)) {
        int64_t by = e->arg[0]->kind == EXPR_CONST ? out->base : y.base;
        *out = e->arg[0]->kind == EXPR_CONST ? y : *out;
        scale(l, out, by);
        return true;
    }
    if (e->op != OP_ADD && e->op != OP_SUB) {
        return false;
    }
    scale(l, &y, e->op == OP_SUB ? -1 : 1);
    add_sum(l, out, &y);
    return true;
}

void whole_range(const Lower *l, const IndexSum *x, const Box *box, int64_t *lo, int64_t *hi)
{
    position_range(l, x->moves, lo, hi);
    *lo += x->base;
    *hi += x->base;
    for (uint32_t i = 0; i < statement_labels(l); i++) {
        int64_t first = x->coef[i] * box->s[i];
        int64_t last = x->coef[i] * (box->s[i] + box->n[i] - 1);
        *lo += first < last ? first : last;
        *hi += first < last ? last : first;
    }
}

/* ---- comparisons ---- */

bool whole_compares(const Lower *l, const Expr *e, IndexSum *out)
{
    IndexSum y;
    bool order = e->kind == EXPR_OP && e->n_args == 2 &&
                 (e->op == OP_LT || e->op == OP_LE || e->op == OP_GT || e->op == OP_GE ||
                  e->op == OP_EQ || e->op == OP_NE);
    if (!order || !is_whole(e->arg[0]) || !whole_of(l, e->arg[0], out) ||
        !whole_of(l, e->arg[1], &y)) {
        return false;
    }
    scale(l, &y, -1);
    add_sum(l, out, &y);
    return true;
}

/* Is what lies in [lo, hi] always, never or now and then so beside 0? */
static int decide(Op op, int64_t lo, int64_t hi)
{
    switch ((int)op) {
    case OP_LT:
        return hi < 0 ? 1 : lo >= 0 ? 0 : -1;
    case OP_LE:
        return hi <= 0 ? 1 : lo > 0 ? 0 : -1;
    case OP_GT:
        return lo > 0 ? 1 : hi <= 0 ? 0 : -1;
    case OP_GE:
        return lo >= 0 ? 1 : hi < 0 ? 0 : -1;
    case OP_EQ:
        return lo > 0 || hi < 0 ? 0 : lo == 0 && hi == 0 ? 1 : -1;
    default: /* OP_NE */
        return lo > 0 || hi < 0 ? 1 : lo == 0 && hi == 0 ? 0 : -1;
    }
}

int whole_decides(const Lower *l, const Expr *e, const Box *box)
{
    IndexSum x;
    int64_t lo, hi;
    if (e->kind == EXPR_CONST && e->dtype == DTYPE_BOOL) {
        return e->value.i != 0;
    }
    if (e->kind != EXPR_OP) {
        return -1;
    }
    if (whole_compares(l, e, &x)) {
        whole_range(l, &x, box, &lo, &hi);
        return decide(e->op, lo, hi);
    }
    int a = e->n_args > 0 ? whole_decides(l, e->arg[0], box) : -1;
    if (e->op == OP_NOT) {
        return a < 0 ? -1 : !a;
    }
    if (e->op != OP_AND && e->op != OP_OR) {
        return -1;
    }
    int b = whole_decides(l, e->arg[1], box), strong = e->op == OP_OR;
    return a == strong || b == strong ? strong : a < 0 || b < 0 ? -1 : !strong;
}

const Expr *whole_branch(const Lower *l, const Expr *e, const Box *box)
{
    while (e->kind == EXPR_OP) {
        int is = e->op == OP_SELECT || e->op == OP_AND || e->op == OP_OR
                     ? whole_decides(l, e->arg[0], box)
                     : -1;
        int other = e->op == OP_AND || e->op == OP_OR ? whole_decides(l, e->arg[1], box) : -1;
        int gone = e->op == OP_AND; /* what says nothing */
        if (e->op == OP_SELECT && is >= 0) {
            e = is ? e->arg[1] : e->arg[2];
        } else if (e->op != OP_SELECT && is == gone) {
            e = e->arg[1];
        } else if (e->op != OP_SELECT && other == gone) {
            e = e->arg[0];
        } else {
            break;
        }
    }
    return e;
}

const Expr *whole_term(const Expr *e)
{
    bool adds = e->kind == EXPR_OP && e->op == OP_ADD && e->arg[0]->kind == EXPR_CONST;
    return adds && fabs(e->arg[0]->value.re) <= 0 ? e->arg[1] : e;
}

bool whole_is_masked(const Lower *l, const Expr *value)
{
    ExprWalk w;
    IndexSum x;
    bool masked = false;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        masked |= whole_compares(l, e, &x) && x.moves.n == 0;
    }
    return masked;
}

bool whole_is_neutral(const Lower *l, const Stmt *s, const Box *box)
{
    const Expr *e = expr_uncast(whole_branch(l, expr_uncast(s->value), box));
    if (e->kind != EXPR_CONST || !dtype_is_float(e->dtype) ||
        !dtype_is_float(s->value->dtype)) {
        return false;
    }
    Number is = number_cast(e->value, DTYPE_F32), want = op_neutral(s->fold, DTYPE_F32);
    return !(is.re < want.re) && !(is.re > want.re) && is.re == is.re;
}

/* ---- tiles ---- */

/* The labels of `list` as one axis: its step, where positions move by equal steps along it. */
static bool one_step(const IndexSum *x, Labels list, const Box *box, int64_t *step)
{
    int64_t count = 1;
    bool any = false;
    *step = 0;
    for (uint32_t i = list.n; i-- > 0;) {
        int64_t coef = x->coef[list.at[i]];
        if (box->n[list.at[i]] == 1) {
            continue;
        }
        if (any && coef != *step * count) {
            return false;
        }
        *step = any ? *step : coef;
        any = true;
        count *= box->n[list.at[i]];
    }
    return true;
}

bool whole_on_partitions(const IndexSum *x, Labels p, const Box *box)
{
    int64_t step;
    return one_step(x, p, box, &step);
}

static Affine start_of(const Lower *l, const IndexSum *x, const Box *box)
{
    int64_t at = x->base;
    for (uint32_t i = 0; i < statement_labels(l); i++) {
        at += x->coef[i] * box->s[i];
    }
    return affine_add(l->arena, x->moves, 1, affine_const(at));
}

/* The free axis, of which one instruction walks the last labels, and the others are taken one by one. */
typedef struct Positions {
    Labels outer;
    const Box *box;
    Box part;
    int64_t dst, src; /* where the part begins in the tiles */
    Labels f;
    int64_t own[LABELS], step[LABELS]; /* of the labels in these */
    PositionWalk walk;
} Positions;

/* `step`: of each label in the source, or null. */
static Positions positions_of(const IndexSum *x, Labels f, const int64_t *step, const Box *box)
{
    Positions r = {.box = box, .part = *box, .f = f};
    int64_t own = 1;
    for (uint32_t i = f.n; i-- > 0;) {
        r.own[i] = own;
        r.step[i] = step == NULL ? own : step[i];
        own *= box->n[f.at[i]];
    }
    PositionWalk *w = &r.walk;
    for (uint32_t i = f.n; i-- > 0;) { /* the fastest first */
        uint32_t label = f.at[i];
        int64_t n = box->n[label], coef = x->coef[label];
        uint32_t d = w->n;
        bool on = d > 0 && coef == w->along[d - 1] * w->count[d - 1] &&
                  r.step[i] == w->src[d - 1] * w->count[d - 1];
        if (n == 1) {
            continue;
        }
        if (r.outer.n > 0 || (!on && d == NKI_FREE_DIMS)) {
            r.outer.at[r.outer.n++] = (uint8_t)label;
            r.part.n[label] = 1;
        } else if (on) {
            w->count[d - 1] *= n;
        } else {
            w->count[d] = n;
            w->along[d] = coef;
            w->dst[d] = r.own[i];
            w->src[d] = r.step[i];
            w->n++;
        }
    }
    for (uint32_t a = 0, b = w->n; a + 1 < b; a++) { /* and then the slowest */
        int64_t *list[4] = {w->count, w->along, w->dst, w->src};
        b--;
        for (uint32_t k = 0; k < 4; k++) {
            int64_t other = list[k][a];
            list[k][a] = list[k][b];
            list[k][b] = other;
        }
    }
    return r;
}

static bool positions_next(Positions *r)
{
    int64_t step[LABELS];
    for (uint32_t i = 0; i < r->outer.n; i++) {
        step[i] = 1;
    }
    bool more = box_next(r->outer, r->box, step, &r->part, false);
    r->dst = r->src = 0;
    for (uint32_t i = 0; i < r->f.n; i++) {
        int64_t at = r->part.s[r->f.at[i]] - r->box->s[r->f.at[i]];
        r->dst += at * r->own[i];
        r->src += at * r->step[i];
    }
    return more;
}

TileView whole_tile(Lower *l, const IndexSum *x, Labels p, Labels f, const Box *box)
{
    int64_t key[6 * LABELS + 8] = {-13, start_of(l, x, box).base}, down = 0;
    uint32_t n = 2;
    for (uint32_t i = 0; i < p.n + f.n; i++) {
        uint32_t label = i < p.n ? p.at[i] : f.at[i - p.n];
        key[n++] = i < p.n;
        key[n++] = x->coef[label];
        key[n++] = box->n[label];
    }
    for (uint32_t i = 0; i < x->moves.n && i < LABELS; i++) {
        key[n++] = -(int64_t)x->moves.term[i].var - 2;
        key[n++] = x->moves.term[i].coef;
    }
    TileView out;
    if (cache_find(l, key, n, &out)) {
        return out;
    }
    CHECK(one_step(x, p, box, &down));
    int64_t bytes = labels_count(f, box) * dtype_bytes(DTYPE_F32);
    Hoist hoist = hoist_begin(l, hoist_depth_of(l, x->moves, bytes), bytes);
    out = tile_new(l, "at", DTYPE_F32, SPACE_TILE, labels_count(p, box), labels_count(f, box));
    Positions r = positions_of(x, f, NULL, box);
    for (bool more = true; more && !l->tried.failed; more = positions_next(&r)) {
        TileView part = view_part(out, r.dst, 1);
        make_iota(l, part, start_of(l, x, &r.part), down, &r.walk);
    }
    cache_put(l, key, n, out);
    hoist_end(l, &hoist);
    return out;
}

void whole_select(Lower *l, TileView dst, TileView src, const int64_t *step, const IndexSum *x,
                  Op op, double other, Labels p, Labels f, const Box *box)
{
    int64_t down = 0;
    CHECK(one_step(x, p, box, &down) && dst.step == 1);
    Positions r = positions_of(x, f, step, box);
    for (bool more = true; more && !l->tried.failed; more = positions_next(&r)) {
        TileView to = view_part(dst, r.dst, 1), from = src;
        from.f0 += r.src;
        make_affine_select(l, to, from, start_of(l, x, &r.part), down, &r.walk, op, other);
    }
}
