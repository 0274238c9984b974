/* SPDX-License-Identifier: Apache-2.0 */
/* In an online loop what reads a maximum so far reads a copy of it that is never -inf: exp(x - y)
 * is then 0 for x = -inf, as it will be for the maximum of all. In each iteration the maximum is
 * folded, what takes the sums from the copy to it is computed, and the copy is made anew; each sum
 * that follows it is multiplied by that before it is added to. After the loop they are taken to the
 * maximum itself, which may be -inf: NaN, as the formula says. There the factor is 1 where nothing
 * changes, so that inf - inf makes no NaN. */
#include "lower/build.h"

/* Does the rule hold in the loop, item `k`? */
static bool is_online_in(const Builder *b, const Online *o, uint32_t k)
{
    const NestValue *values = b->nest->values;
    return b->nest->items[k].online && values[o->base].item != NEST_NONE &&
           values[o->node].item != NEST_NONE && values[o->base].fold == k &&
           values[o->node].fold == k;
}

static const Expr *load_at(Builder *b, Place place, NodeRef node, Access access,
                           const Position *pos)
{
    return expr_load(b->arena, b->k, place.buf, build_at(b, place, node, access, pos));
}

/* What a maximum is so far, as exp(x - y) needs it: never -inf. */
static const Expr *bounded(Builder *b, NodeRef y, const Expr *now)
{
    double least = -dtype_most(graph_node(b->g, y)->dtype);
    const Expr *pair[2] = {now, expr_const(b->arena, number_real(now->dtype, least))};
    return expr_op(b->arena, OP_MAX, now->dtype, 2, pair);
}

/* Copies of the maxima for the leaves in the loop, which say that nothing has been seen. */
void build_online_begin(Builder *b, Block *to, uint32_t k)
{
    uint32_t scope = b->nest->items[k].parent;
    for (uint32_t i = 0; i < b->g->online.n; i++) {
        NodeRef y = b->g->online.at[i].base;
        if (is_online_in(b, &b->g->online.at[i], k) && b->running[y].buf == BUF_NONE) {
            Space space = scope == NEST_NONE ? SPACE_WORKSPACE : SPACE_TILE;
            DType t = graph_node(b->g, y)->acc;
            b->running[y] = build_buffer(b, y, scope, space, t, "before");
            build_alloc(b, to, b->running[y].buf);
            build_fill(b, to, y, b->running[y], build_positions(b, y, scope));
        }
    }
}

/* The exponential of what the base has changed by since its copy was made, in type t; at the end 1 where it has not, and where
 * nothing was seen: in the loop `now` is no -inf, and sums of nothing are 0. */
static const Expr *factor_value(Builder *b, const Online *o, DType t, const Expr *before,
                                const Expr *now, const Position *pos, bool ends)
{
    const Expr *pair[2] = {expr_cast(b->arena, before, t), expr_cast(b->arena, now, t)};
    const Expr *change = expr_op(b->arena, OP_SUB, t, 2, pair);
    if (o->scale != NODE_NONE) {
        const Expr *scale = build_expr(b, o->scale, (Access){0, NULL}, pos);
        const Expr *by[2] = {change, expr_cast(b->arena, scale, t)};
        change = expr_op(b->arena, OP_MUL, t, 2, by);
    }
    if (o->power != 1) {
        const Expr *by[2] = {change, expr_const(b->arena, number_int(t, o->power))};
        change = expr_op(b->arena, OP_MUL, t, 2, by);
    }
    const Expr *factor = expr_op(b->arena, OP_EXP, t, 1, &change);
    if (!ends) {
        return factor;
    }
    const Expr *none[2] = {before, expr_const(b->arena, op_neutral(OP_RMAX, before->dtype))};
    const Expr *same[2] = {before, now};
    const Expr *either[2] = {expr_op(b->arena, OP_EQ, DTYPE_BOOL, 2, none),
                             expr_op(b->arena, OP_EQ, DTYPE_BOOL, 2, same)};
    const Expr *choice[3] = {expr_op(b->arena, OP_OR, DTYPE_BOOL, 2, either),
                             expr_const(b->arena, number_int(t, 1)), factor};
    return expr_op(b->arena, OP_SELECT, t, 3, choice);
}

/* A block of factors of the rule, made in the body of loop `scope`; `ends`: the maximum is that
 * of all. */
static Place emit_factor(Builder *b, Block *to, const Online *o, uint32_t scope, bool ends)
{
    const Node *y = graph_node(b->g, o->base);
    DType t = graph_node(b->g, o->node)->acc;
    Position *pos = build_positions(b, o->base, scope);
    Access own = node_own_access(b->arena, y);
    const Expr *before = load_at(b, b->running[o->base], o->base, own, pos);
    const Expr *now = load_at(b, build_target(b, o->base), o->base, own, pos);
    Place factor = build_buffer(b, o->base, scope, SPACE_TILE, t, "factor");
    build_alloc(b, to, factor.buf);
    Stmt *s = build_tile(b, to, y, pos, false);
    build_dst(b, s, o->base, factor, pos);
    s->value = factor_value(b, o, t, before, ends ? now : bounded(b, o->base, now), pos, ends);
    return factor;
}

/* The sum, in the body of loop `scope`, times its factor. */
static void emit_follow(Builder *b, Block *to, const Online *o, Place factor, uint32_t scope)
{
    const Node *r = graph_node(b->g, o->node);
    Position *pos = build_positions(b, o->node, scope);
    Place sum = build_target(b, o->node);
    Stmt *s = build_tile(b, to, r, pos, false);
    build_dst(b, s, o->node, sum, pos);
    const Expr *product[2] = {load_at(b, sum, o->node, node_own_access(b->arena, r), pos),
                              load_at(b, factor, o->base, o->at, pos)};
    s->value = expr_op(b->arena, OP_MUL, r->acc, 2, product);
}

static bool same_factor(const Graph *g, const Online *a, const Online *b)
{
    return a->base == b->base && a->scale == b->scale && a->power == b->power &&
           graph_node(g, a->node)->acc == graph_node(g, b->node)->acc;
}

/* What takes the sums to the maxima of loop `loop` whose leaves are among items [from, to), in the body of loop `scope`; after the
 * loop, where that is another, the sums follow at once. */
static void emit_factors(Builder *b, Block *out, uint32_t loop, uint32_t from, uint32_t to,
                         uint32_t scope)
{
    const Online *last = NULL;
    Place factor = {BUF_NONE, NEST_NONE};
    for (uint32_t i = 0; i < b->g->online.n; i++) {
        const Online *o = &b->g->online.at[i];
        uint32_t leaf = b->nest->values[o->base].item;
        if (is_online_in(b, o, loop) && leaf >= from && leaf < to) {
            if (last == NULL || !same_factor(b->g, last, o)) {
                factor = emit_factor(b, out, o, scope, scope != loop);
                last = o;
            }
            b->factor[i] = factor;
            if (scope != loop) {
                emit_follow(b, out, o, factor, scope);
            }
        }
    }
}

/* The copies of these maxima are made anew. */
static void emit_copies(Builder *b, Block *out, uint32_t loop, uint32_t from, uint32_t to)
{
    NodeRef last = NODE_NONE;
    for (uint32_t i = 0; i < b->g->online.n; i++) {
        const Online *o = &b->g->online.at[i];
        uint32_t leaf = b->nest->values[o->base].item;
        if (o->base == last || !is_online_in(b, o, loop) || leaf < from || leaf >= to) {
            continue;
        }
        const Node *y = graph_node(b->g, o->base);
        Position *pos = build_positions(b, o->base, loop);
        Stmt *s = build_tile(b, out, y, pos, false);
        build_dst(b, s, o->base, b->running[o->base], pos);
        s->value = bounded(
            b, o->base,
            load_at(b, build_target(b, o->base), o->base, node_own_access(b->arena, y), pos));
        last = o->base;
    }
}

/* Sums follow to the maxima of all, which others read. */
void build_online_end(Builder *b, Block *to, uint32_t k)
{
    const NestItem *item = &b->nest->items[k];
    emit_factors(b, to, k, k, item->end, item->parent);
    for (uint32_t i = 0; i < b->g->online.n; i++) {
        const Online *o = &b->g->online.at[i];
        if (is_online_in(b, o, k)) {
            b->running[o->base].buf = BUF_NONE;
        }
    }
}

void build_online_item(Builder *b, Block *to, uint32_t k)
{
    uint32_t loop = b->nest->items[k].parent;
    emit_factors(b, to, loop, k, b->nest->items[k].end, loop);
    emit_copies(b, to, loop, k, b->nest->items[k].end);
}

void build_online_follow(Builder *b, Block *to, uint32_t k)
{
    uint32_t loop = b->nest->items[k].parent;
    for (uint32_t i = 0; i < b->g->online.n; i++) {
        const Online *o = &b->g->online.at[i];
        uint32_t leaf = b->nest->values[o->node].item;
        if (is_online_in(b, o, loop) && leaf >= k && leaf < b->nest->items[k].end) {
            emit_follow(b, to, o, b->factor[i], loop);
        }
    }
}
