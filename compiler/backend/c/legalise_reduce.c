/* SPDX-License-Identifier: Apache-2.0 */
/* Folds that are not register tiles of a product. One position of the destination (or a vector
 * of them, side by side) is folded completely before it joins what is there, in one of three
 * ways:
 *
 *   KEPT    a vector along an index of the destination; elements left over one by one
 *   FOLDED  a vector of partial results along a summed index, which are folded last; elements
 * left over join them SCALAR  one accumulator */
#include "backend/c/legalise.h"

typedef enum ReduceWay { WAY_SCALAR, WAY_KEPT, WAY_FOLDED } ReduceWay;

typedef struct ReducePlan {
    ReduceWay way;
    uint32_t vec; /* KEPT, FOLDED: place of the vector index */
    int64_t width;
} ReducePlan;

#define FOLD_VECTORS  2 /* partial results hide the latency of additions */
#define FOLD_SHORTEST 2 /* widths a folded index must have */

static bool is_kept(const Legaliser *l, const Stmt *s, uint32_t i)
{
    return access_uses(l->k, s->dst, s->at, s->index[i].var);
}

/* ---- deciding ---- */

/* Lanes of partial results that cut the range evenly as far as its tile goes; 0: none do. */
static int64_t plan_width(Range r, DType t)
{
    int64_t width = vector_lanes(t) * FOLD_VECTORS;
    while (r.clipped && r.span > 0 && r.span % width != 0) {
        width /= 2;
    }
    return width * FOLD_VECTORS < vector_lanes(t) ? 0 : width;
}

static ReducePlan plan_choose(const Legaliser *l, const Stmt *s)
{
    DType t = l->k->bufs.at[s->dst].dtype;
    ReducePlan plan = {.way = WAY_SCALAR, .vec = NONE};
    if ((s->fold != OP_SUM && s->fold != OP_PROD) || !dtype_has_vectors(t)) {
        return plan;
    }
    int64_t best = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        bool unit = false;
        int64_t length = range_typical(l->k, s->index[i].range);
        int64_t width = plan_width(s->index[i].range, t);
        bool kept = is_kept(l, s, i);
        if (width == 0 || !expr_vectorises(l->k, s->value, s->index[i].var, t, &unit) ||
            !unit || length <= best) {
            continue;
        }
        if (kept ? length >= width && access_is_unit(l->k, s->dst, s->at, s->index[i].var)
                 : length >= width * FOLD_SHORTEST) {
            plan = (ReducePlan){kept ? WAY_KEPT : WAY_FOLDED, i, width};
            best = length;
        }
    }
    return plan;
}

/* ---- doing ---- */

typedef struct Reduce {
    Legaliser *l;
    const Stmt *s;
    DType t;
    Subst *subst;
    uint32_t n_subst;
} Reduce;

static void open_index(Reduce *r, uint32_t i)
{
    VarRef v = loop_open(r->l, "x", r->s->index[i].range, 1, FOR_ALL);
    r->subst[r->n_subst++] = (Subst){r->s->index[i].var, affine_var(r->l->arena, v)};
}

/* Loops over the kept (or the folded) indices but `skip`; returns how many. */
static uint32_t open_indices(Reduce *r, bool kept, uint32_t skip)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->s->n_index; i++) {
        if (i != skip && is_kept(r->l, r->s, i) == kept) {
            open_index(r, i);
            n++;
        }
    }
    return n;
}

static void close_indices(Reduce *r, uint32_t n)
{
    for (; n > 0; n--) {
        loop_close(r->l);
        r->n_subst--;
    }
}

static const Affine *dst_at(Reduce *r)
{
    return access_subst(r->l, r->l->k->bufs.at[r->s->dst].rank, r->s->at, r->subst, r->n_subst);
}

static const Expr *value_at(Reduce *r)
{
    return expr_subst(r->l, r->s->value, r->subst, r->n_subst);
}

static const Expr *neutral(Reduce *r)
{
    return expr_const(r->l->arena, op_neutral(r->s->fold, r->t));
}

/* An accumulator for one position: what is left of the statement's indices is folded into it.
 */
static void scalar_emit(Reduce *r, uint32_t n, const TileIndex *rest)
{
    Legaliser *l = r->l;
    BufRef acc = buffer_alloc(l, "s", r->t, SPACE_ACC, 0, NULL);
    tile_add(l, 0, NULL, acc, NULL, OP_COPY, neutral(r));
    tile_add(l, n, rest, acc, NULL, r->s->fold, value_at(r));
    tile_add(l, 0, NULL, r->s->dst, dst_at(r), r->s->fold, load_at(l, acc, 0, NULL));
}

/* The folded indices but `skip`, as local indices. */
static uint32_t folded_indices(const Reduce *r, uint32_t skip, TileIndex *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->s->n_index; i++) {
        if (i != skip && !is_kept(r->l, r->s, i)) {
            out[n++] = r->s->index[i];
        }
    }
    return n;
}

static Range vector_range(Affine start, int64_t width)
{
    return (Range){.start = start, .span = width, .clipped = false, .limit = dim_fixed(0)};
}

/* What the `rest` loop at `start` leaves: fewer than `width` positions. */
static Range left_range(const Range *whole, Affine start, int64_t width)
{
    Range left = range_at(start, width, whole);
    if (!whole->clipped) {
        int64_t n = whole->span % width;
        left.span = n == 0 ? 1 : n;
    }
    return left;
}

static void kept_emit(Reduce *r, const ReducePlan *p)
{
    Legaliser *l = r->l;
    const TileIndex *vec = &r->s->index[p->vec];
    Affine j0 = affine_var(l->arena, loop_open(l, "j", vec->range, p->width, FOR_FULL));
    TileIndex index[1] = {index_of(vec->var, vector_range(j0, p->width), MODE_VECTOR)};
    Affine at[1] = {var_minus(l, vec->var, j0)};
    BufRef c = buffer_alloc(l, "c", r->t, SPACE_ACC, 1, &p->width);
    tile_add(l, 1, index, c, at, OP_COPY, neutral(r));
    uint32_t n = open_indices(r, false, p->vec);
    tile_add(l, 1, index, c, at, r->s->fold, value_at(r));
    close_indices(r, n);
    tile_add(l, 1, index, r->s->dst, dst_at(r), r->s->fold, load_at(l, c, 1, at));
    loop_close(l);
    j0 = affine_var(l->arena, loop_open(l, "j", vec->range, p->width, FOR_REST));
    TileIndex left = *vec;
    left.range = left_range(&vec->range, j0, p->width);
    VarRef v = loop_open(l, "x", left.range, 1, FOR_ALL);
    r->subst[r->n_subst++] = (Subst){vec->var, affine_var(l->arena, v)};
    TileIndex *rest = ARENA_ARRAY(l->arena, (size_t)r->s->n_index + 1, TileIndex);
    scalar_emit(r, folded_indices(r, p->vec, rest), rest);
    loop_close(l);
    r->n_subst--;
    loop_close(l);
}

static void folded_emit(Reduce *r, const ReducePlan *p)
{
    Legaliser *l = r->l;
    const TileIndex *vec = &r->s->index[p->vec];
    scope_open(l); /* for the accumulators */
    BufRef c = buffer_alloc(l, "c", r->t, SPACE_ACC, 1, &p->width);
    BufRef acc = buffer_alloc(l, "s", r->t, SPACE_ACC, 0, NULL);
    VarRef zv = local_var(l, "v");
    TileIndex lanes[1] = {index_of(zv, range_const(p->width), MODE_VECTOR)};
    Affine lane[1] = {affine_var(l->arena, zv)};
    tile_add(l, 1, lanes, c, lane, OP_COPY, neutral(r));
    tile_add(l, 0, NULL, acc, NULL, OP_COPY, neutral(r));
    uint32_t n = open_indices(r, false, p->vec);
    Affine k0 = affine_var(l->arena, loop_open(l, "k", vec->range, p->width, FOR_FULL));
    TileIndex index[1] = {index_of(vec->var, vector_range(k0, p->width), MODE_VECTOR)};
    Affine at[1] = {var_minus(l, vec->var, k0)};
    tile_add(l, 1, index, c, at, r->s->fold, value_at(r));
    loop_close(l);
    k0 = affine_var(l->arena, loop_open(l, "k", vec->range, p->width, FOR_REST));
    TileIndex left = *vec;
    left.range = left_range(&vec->range, k0, p->width);
    tile_add(l, 1, &left, acc, NULL, r->s->fold, value_at(r));
    loop_close(l);
    close_indices(r, n);
    lanes[0].mode = MODE_UNROLL;
    tile_add(l, 1, lanes, acc, NULL, r->s->fold, load_at(l, c, 1, lane));
    tile_add(l, 0, NULL, r->s->dst, dst_at(r), r->s->fold, load_at(l, acc, 0, NULL));
    block_close(l);
}

void legalise_reduce(Legaliser *l, const Stmt *s)
{
    ReducePlan plan = plan_choose(l, s);
    Reduce r = {.l = l, .s = s, .t = l->k->bufs.at[s->dst].dtype};
    r.subst = ARENA_ARRAY(l->arena, (size_t)s->n_index + 2, Subst);
    uint32_t n = open_indices(&r, true, plan.way == WAY_KEPT ? plan.vec : NONE);
    switch (plan.way) {
    case WAY_KEPT:
        kept_emit(&r, &plan);
        break;
    case WAY_FOLDED:
        folded_emit(&r, &plan);
        break;
    case WAY_SCALAR: {
        TileIndex *rest = ARENA_ARRAY(l->arena, (size_t)s->n_index + 1, TileIndex);
        scalar_emit(&r, folded_indices(&r, NONE, rest), rest);
        break;
    }
    }
    close_indices(&r, n);
}
