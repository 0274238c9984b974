/* SPDX-License-Identifier: Apache-2.0 */
/* Values of statements: what a node computes of what it reads, where that lies. */
#include "lower/build.h"
#include "nest/uses.h"

/* Of none: null. */
static const Expr *build_product(Builder *b, DType t, uint32_t n, const Expr *const *arg)
{
    const Expr *value = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const Expr *pair[2] = {value, expr_cast(b->arena, arg[i], t)};
        value = value == NULL
                    ? pair[1]
                    : expr_op(b->arena, t == DTYPE_BOOL ? OP_AND : OP_MUL, t, 2, pair);
    }
    return value;
}

/* The positions are its arguments. */
static const Expr *build_gather(Builder *b, const Node *n, Access access, const Position *pos)
{
    const Expr **at = ARENA_ARRAY(b->arena, n->n_operands, const Expr *);
    Place place = b->storage[n->operand[0]];
    CHECK(place.buf != BUF_NONE);
    for (uint32_t i = 1; i < n->n_operands; i++) {
        at[i - 1] = build_expr(b, n->operand[i],
                               access_compose(b->arena, n, n->access[i], access), pos);
    }
    return expr_gather(b->arena, b->k, place.buf, at);
}

static const Expr *build_operation(Builder *b, const Node *n, Access access,
                                   const Position *pos)
{
    if (n->op == OP_GATHER) {
        return build_gather(b, n, access, pos);
    }
    const Expr **arg = ARENA_ARRAY(b->arena, n->n_operands, const Expr *);
    for (uint32_t i = 0; i < n->n_operands; i++) {
        arg[i] = build_expr(b, n->operand[i], access_compose(b->arena, n, n->access[i], access),
                            pos);
    }
    if (op_info(n->op)->kind == OPKIND_MAP) {
        Op op = n->op == OP_WHERE ? OP_SELECT : n->op;
        return n->op == OP_COPY ? arg[0] : expr_op(b->arena, op, n->dtype, n->n_operands, arg);
    }
    return build_product(b, n->dtype, n->n_operands, arg);
}

static Affine index_position(Builder *b, Index index, const Position *pos)
{
    Affine x = affine_const(index.offset);
    return index.label < 0 ? x : affine_add(b->arena, x, 1, pos[index.label].at);
}

static const Expr *build_index(Builder *b, const Node *n, Access access, const Position *pos)
{
    return expr_index(b->arena, n->dtype, index_position(b, access.index[0], pos));
}

const Affine *build_affine(Builder *b, uint32_t n, const Affine *x, Access access,
                           const Position *pos)
{
    Affine *at = ARENA_ARRAY(b->arena, n, Affine);
    for (uint32_t d = 0; d < n; d++) {
        at[d] = affine_const(x[d].base);
        for (uint32_t i = 0; i < x[d].n; i++) {
            AffineTerm t = x[d].term[i];
            Affine of = affine_is_dim(t.var) ? affine_var(b->arena, t.var)
                                             : index_position(b, access.index[t.var], pos);
            at[d] = affine_add(b->arena, at[d], t.coef, of);
        }
    }
    return at;
}

static const Expr *build_viewed(Builder *b, const Node *n, Access access, const Position *pos)
{
    Place place = b->storage[n->operand[0]];
    CHECK(place.buf != BUF_NONE);
    const Affine *whole = build_affine(b, n->access[0].rank, n->at, access, pos);
    const Affine *at = build_block_at(b, place, n->operand[0], whole);
    return expr_cast(b->arena, expr_load(b->arena, b->k, place.buf, at), n->dtype);
}

const Expr *build_expr(Builder *b, NodeRef node, Access access, const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    if (n->op == OP_CONST) {
        return expr_const(b->arena, n->value);
    }
    if (n->op == OP_EXTENT) {
        Expr *e = ARENA_NEW(b->arena, Expr);
        *e = (Expr){.kind = EXPR_EXTENT, .dtype = n->dtype, .dim = n->dim};
        return e;
    }
    if (n->op == OP_INDEX) {
        return build_index(b, n, access, pos);
    }
    if (n->op == OP_VIEW) {
        return build_viewed(b, n, access, pos);
    }
    if (b->nest->values[node].residence == RESIDE_INLINE) {
        return build_operation(b, n, access, pos);
    }
    bool running = b->running[node].buf != BUF_NONE;
    Place place = running ? b->running[node] : b->storage[node];
    CHECK(place.buf != BUF_NONE);
    const Affine *at = build_at(b, place, node, access, pos);
    return expr_cast(b->arena, expr_load(b->arena, b->k, place.buf, at), n->dtype);
}

/* A factor of a sum of products; of `where(c, x, 0)` x, and the condition joins those of the term. */
static const Expr *build_factor(Builder *b, const Node *n, uint32_t k, const Position *pos,
                                const Expr **condition)
{
    const Node *where = graph_node(b->g, n->operand[k]);
    if (where->op != OP_WHERE || b->nest->values[n->operand[k]].residence != RESIDE_INLINE) {
        return build_expr(b, n->operand[k], n->access[k], pos);
    }
    const Expr *arg[2];
    for (uint32_t i = 0; i < 2; i++) {
        Access at = access_compose(b->arena, where, where->access[i], n->access[k]);
        arg[i] = build_expr(b, where->operand[i], at, pos);
    }
    const Expr *both[2] = {*condition, arg[0]};
    *condition = *condition == NULL ? arg[0] : expr_op(b->arena, OP_AND, DTYPE_BOOL, 2, both);
    return arg[1];
}

/* Where a contraction is needed, if its schedule leaves out the rest. */
static const Expr *needed(Builder *b, const Node *n, const Position *pos)
{
    NodeRef node = (NodeRef)(n - b->g->nodes.at), c = NODE_NONE;
    const Schedule *schedule = b->nest->values[node].schedule;
    Access at;
    return schedule != NULL && schedule->needed && mask_needed(b->arena, b->g, node, &c, &at)
               ? build_expr(b, c, at, pos)
               : NULL;
}

const Expr *build_value(Builder *b, const Node *n, const Position *pos)
{
    if (op_info(n->op)->kind == OPKIND_MAP || n->op == OP_GATHER) {
        return build_operation(b, n, node_own_access(b->arena, n), pos);
    }
    bool fold = !node_is_expression(n);
    DType t = fold ? n->acc : n->dtype;
    const Expr **arg = ARENA_ARRAY(b->arena, n->n_operands, const Expr *),
               *condition = needed(b, n, pos);
    for (uint32_t i = 0; i < node_factors(n); i++) {
        arg[i] = build_factor(b, n, i, pos, &condition);
    }
    const Expr *scale =
        build_product(b, t, node_factors(n) < 2 ? 0 : node_factors(n) - 2, arg + 2);
    const Expr *pair[2] = {scale, build_product(b, t, node_factors(n) < 2 ? 1 : 2, arg)};
    const Expr *value = scale == NULL ? pair[1] : build_product(b, t, 2, pair);
    const Expr *select[3] = {condition, value, expr_const(b->arena, number_real(t, 0))};
    return condition == NULL ? value : expr_op(b->arena, OP_SELECT, t, 3, select);
}
