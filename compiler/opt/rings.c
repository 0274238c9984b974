/* SPDX-License-Identifier: Apache-2.0 */
/* Elements at positions on a ring, which are two pieces of the tensor:
 *
 *     gather %x, mod(index + c, n)          join x[i + c] of i < n - c, x[i] of i < c */
#include "opt/rings.h"

/* A node of one operand with its labels, numbered by its dimensions, read as it is or at positions. */
static NodeRef put(Graph *g, Arena *scratch, Op op, NodeRef x, uint32_t rank, const Dim *shape,
                   const Affine *at, Span span)
{
    Access access = at == NULL ? access_in_order(scratch, rank) : access_whole(scratch, rank);
    NodeSpec s = node_spec(op, graph_node(g, x)->dtype, 1, &x, &access, rank,
                           labels_in_order(scratch, rank), shape, span);
    s.at = at;
    return graph_add(g, &s);
}

/* `n` positions of dimension d from one on. */
static NodeRef part(Graph *g, Arena *scratch, NodeRef x, uint32_t d, int64_t from, int64_t n,
                    Span span)
{
    uint32_t rank = graph_node(g, x)->rank;
    Dim *shape = ARENA_ARRAY(scratch, (size_t)rank + 1, Dim);
    Affine *at = ARENA_ARRAY(scratch, (size_t)rank + 1, Affine);
    for (uint32_t k = 0; k < rank; k++) {
        shape[k] = k == d ? dim_fixed(n) : graph_node(g, x)->shape[k];
        at[k] = affine_add(scratch, affine_var(scratch, k), k == d ? from : 0, affine_const(1));
    }
    NodeRef view = put(g, scratch, OP_VIEW, x, rank, shape, at, span);
    return put(g, scratch, OP_COPY, view, rank, shape, NULL, span);
}

NodeRef ring_turned(Graph *g, Arena *scratch, NodeRef x, uint32_t d, int64_t by, Span span)
{
    uint32_t rank = graph_node(g, x)->rank;
    int64_t n = graph_node(g, x)->shape[d].n;
    NodeRef operand[2];
    operand[0] = part(g, scratch, x, d, by, n - by, span);
    operand[1] = part(g, scratch, x, d, 0, by, span);
    Affine *at = ARENA_ARRAY(scratch, 2 * (size_t)rank + 1, Affine);
    for (uint32_t k = 0; k < rank; k++) {
        at[k] = affine_var(scratch, k);
        at[rank + k] = affine_add(scratch, at[k], k == d ? n - by : 0, affine_const(1));
    }
    Access whole = access_whole(scratch, rank), access[2] = {whole, whole};
    NodeSpec s = node_spec(OP_JOIN, graph_node(g, x)->dtype, 2, operand, access, rank,
                           labels_in_order(scratch, rank), graph_node(g, x)->shape, span);
    s.at = at;
    s.allow_spill = true;
    return graph_add(g, &s);
}

static bool is_number(const Graph *g, NodeRef n, int64_t *v)
{
    const Node *node = graph_node(g, n);
    *v = node->value.i;
    return node->op == OP_CONST && dtype_is_int(node->dtype);
}

static bool is_index(const Graph *g, NodeRef n, int64_t extent)
{
    const Node *node = graph_node(g, n);
    return node->op == OP_INDEX && dim_is(node->shape[0], extent);
}

/* index + c, or c + index, of an index of that extent. */
static bool is_shifted(const Graph *g, NodeRef n, int64_t extent, int64_t *c)
{
    const Node *node = graph_node(g, n);
    return node->op == OP_ADD &&
           ((is_index(g, node->operand[0], extent) && is_number(g, node->operand[1], c)) ||
            (is_index(g, node->operand[1], extent) && is_number(g, node->operand[0], c)));
}

bool ring_position(const Graph *g, NodeRef n, int64_t extent, int64_t *by)
{
    const Node *node = graph_node(g, n);
    int64_t around;
    bool is = extent > 0 && node->op == OP_MOD && is_number(g, node->operand[1], &around) &&
              around == extent && is_shifted(g, node->operand[0], extent, by);
    *by = is ? (*by % extent + extent) % extent : 0;
    return *by > 0;
}
