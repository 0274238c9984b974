/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of dense steps: of matrices dense steps again (Murray, Differentiation of the Cholesky decomposition, 2016). G is the adjoint
 * of the result.
 *
 *     T X = B           gives B   W, with T^H W = G
 *                             T   - W X^H, where T is not 0
 *     L = cholesky S    gives S   the lower triangle of Z + Z^H, of the diagonal once:
 *                                 Z = L^-H P L^-1, P the lower triangle of L^H G, of the diagonal half
 *
 * A cholesky reads the lower triangle alone, so the elements above it have no derivative. */
#include "graph/gradient_parts.h"

/* The step of the same triangle, transposed. */
static Op transposed(Op op)
{
    return op == OP_SOLVE_LOWER     ? OP_SOLVE_LOWER_T
           : op == OP_SOLVE_LOWER_T ? OP_SOLVE_LOWER
           : op == OP_SOLVE_UPPER   ? OP_SOLVE_UPPER_T
                                    : OP_SOLVE_UPPER;
}

static NodeRef solved(Grad *d, Op op, NodeRef matrix, NodeRef right)
{
    const Node *m = graph_node(d->g, matrix), *r = graph_node(d->g, right);
    uint32_t rank = r->rank;
    const NodeRef x[2] = {matrix, right};
    const Access access[2] = {access_whole(d->arena, m->rank), access_whole(d->arena, rank)};
    return gradient_add(d, op, r->dtype, 2, x, access, rank, labels_in_order(d->arena, rank),
                        arena_copy(d->arena, r->shape, rank * sizeof *r->shape), NULL);
}

/* Batches, then these two labels. */
static int32_t *with_batch(Grad *d, uint32_t batch, int32_t x, int32_t y)
{
    int32_t *label = ARENA_ARRAY(d->arena, batch + 2, int32_t);
    for (uint32_t k = 0; k < batch; k++) {
        label[k] = (int32_t)k;
    }
    label[batch] = x;
    label[batch + 1] = y;
    return label;
}

/* sum over k of x[b.., k, i] * y[b.., k, j] */
static NodeRef product(Grad *d, NodeRef x, NodeRef y)
{
    uint32_t rank = graph_node(d->g, x)->rank, batch = rank - 2;
    int32_t i = (int32_t)batch, j = i + 1, k = i + 2;
    const NodeRef both[2] = {x, y};
    const Access access[2] = {gradient_access_of(d, with_batch(d, batch, k, i), rank),
                              gradient_access_of(d, with_batch(d, batch, k, j), rank)};
    return gradient_add(d, OP_EINSUM, gradient_type_of(d, x), 2, both, access, rank,
                        with_batch(d, batch, i, j), NULL, NULL);
}

static NodeRef turned(Grad *d, NodeRef x)
{
    const Node *n = graph_node(d->g, x);
    int32_t i = (int32_t)n->rank - 2;
    const Access access = gradient_access_of(d, with_batch(d, n->rank - 2, i + 1, i), n->rank);
    return gradient_add(d, OP_COPY, n->dtype, 1, &x, &access, n->rank,
                        with_batch(d, n->rank - 2, i, i + 1), NULL, NULL);
}

/* The positions of dimension `a` of a matrix of that shape, repeated over the others. */
static NodeRef positions(Grad *d, const Node *like, uint32_t a)
{
    int32_t own = (int32_t)a;
    return gradient_spread(d, graph_index(d->g, like->shape[a], DTYPE_I64, d->span),
                           gradient_access_of(d, &own, 1), like->rank,
                           labels_in_order(d->arena, like->rank), like->shape);
}

/* Where row op column `x`, else `y`, which may be a number. */
static NodeRef where(Grad *d, Op op, NodeRef x, NodeRef y)
{
    const Node like = *graph_node(d->g, x);
    NodeRef row = positions(d, &like, like.rank - 2),
            column = positions(d, &like, like.rank - 1);
    return gradient_chosen(d, gradient_compared(d, op, row, column), x, y);
}

static void back_cholesky(Grad *d, NodeRef L, const Node *node, NodeRef G)
{
    DType t = node->dtype;
    NodeRef none = gradient_number(d, t, 0), half = gradient_number(d, t, 0.5);
    NodeRef P = product(d, L, G);
    P = where(d, OP_GE, where(d, OP_EQ, gradient_two(d, OP_MUL, P, half), P), none);
    NodeRef Y = solved(d, OP_SOLVE_LOWER_T, L, P);
    NodeRef Z = solved(d, OP_SOLVE_LOWER_T, L, turned(d, Y));
    NodeRef both = gradient_two(d, OP_ADD, Z, turned(d, Z));
    NodeRef lower =
        where(d, OP_GE, where(d, OP_EQ, gradient_two(d, OP_MUL, both, half), both), none);
    gradient_give(d, node->operand[0], lower);
}

/* - W X^H over the right sides, where the triangle is not 0. */
static NodeRef of_triangle(Grad *d, NodeRef W, NodeRef X, const Node *node)
{
    const OpInfo *info = op_info(node->op);
    const Node matrix = *graph_node(d->g, node->operand[0]);
    uint32_t batch = matrix.rank - 2, rank = graph_node(d->g, W)->rank;
    int32_t row = (int32_t)rank, column = row + 1;
    int32_t *own = ARENA_ARRAY(d->arena, rank, int32_t),
            *other = ARENA_ARRAY(d->arena, rank, int32_t);
    for (uint32_t a = 0; a < rank; a++) {
        own[a] = other[a] = (int32_t)a;
    }
    /* W has the equations, which are the rows of the matrix, or its columns */
    own[batch] = info->transposed ? column : row;
    other[batch] = info->transposed ? row : column;
    const NodeRef both[2] = {W, X};
    const Access access[2] = {gradient_access_of(d, own, rank),
                              gradient_access_of(d, other, rank)};
    NodeRef outer = gradient_add(d, OP_EINSUM, node->dtype, 2, both, access, matrix.rank,
                                 with_batch(d, batch, row, column), NULL, NULL);
    return where(d, info->upper ? OP_LE : OP_GE, gradient_one(d, OP_NEG, outer),
                 gradient_number(d, node->dtype, 0));
}

void gradient_back_dense(Grad *d, NodeRef r, const Node *node, NodeRef G)
{
    G = gradient_cast(d, G, node->dtype);
    if (node->op == OP_CHOLESKY) {
        back_cholesky(d, r, node, G);
        return;
    }
    NodeRef W = solved(d, transposed(node->op), node->operand[0], G);
    if (d->wanted[node->operand[1]]) {
        gradient_give(d, node->operand[1], W);
    }
    if (d->wanted[node->operand[0]]) {
        gradient_give(d, node->operand[0], of_triangle(d, W, r, node));
    }
}
