/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of contractions, added to random graphs. */
#include "support_graphs.h"

static uint32_t below(Rng *rng, uint32_t n)
{
    return (uint32_t)rng_below(rng, n);
}

static bool chance(Rng *rng, uint32_t percent)
{
    return below(rng, 100) < percent;
}

/* A value of this type with dimension *at of this extent, and another one if it `sums`; or NODE_NONE. */
static NodeRef value_with(Rng *rng, const Graph *g, DType t, Dim extent, bool sums,
                          uint32_t *at)
{
    uint32_t first = below(rng, g->nodes.n);
    for (uint32_t k = 0; k < g->nodes.n; k++) {
        NodeRef v = (first + k) % g->nodes.n;
        const Node *n = graph_node(g, v);
        for (uint32_t d = 0; n->dtype == t && d < n->rank && n->rank >= (sums ? 2 : 1); d++) {
            if (dim_eq(n->shape[d], extent)) {
                *at = d;
                return v;
            }
        }
    }
    return NODE_NONE;
}

/* The dimensions `kept` of the two values, all others of them summed. */
static NodeRef random_term(Rng *rng, Graph *g, const NodeRef *operand, const uint32_t *kept)
{
    Index index[2][8];
    Access access[2];
    int32_t next = 2;
    uint32_t first = below(rng, 2);
    for (uint32_t k = 0; k < 2; k++) {
        access[k ^ first] = (Access){graph_node(g, operand[k])->rank, index[k]};
        for (uint32_t d = 0; d < access[k ^ first].rank; d++) {
            index[k][d] = (Index){d == kept[k] ? (int32_t)k : next++, 0};
        }
    }
    NodeSpec term = {.op = OP_EINSUM,
                     .dtype = graph_node(g, operand[0])->dtype,
                     .n_operands = 2,
                     .operand = (NodeRef[]){operand[first], operand[first ^ 1]},
                     .access = access,
                     .rank = 2,
                     .out = (const int32_t[]){0, 1}};
    return graph_add(g, &term);
}

static NodeRef random_sum(Rng *rng, Graph *g, NodeRef x, NodeRef y)
{
    static const Index both[2] = {{0, 0}, {1, 0}}, turned[2] = {{1, 0}, {0, 0}};
    const Node *n = graph_node(g, x);
    bool turns = dim_eq(n->shape[0], n->shape[1]) && chance(rng, 10);
    Op op = chance(rng, 50) ? OP_ADD : chance(rng, 80) ? OP_SUB : OP_MUL;
    NodeSpec sum = {.op = op,
                    .dtype = n->dtype,
                    .n_operands = 2,
                    .operand = (NodeRef[]){x, y},
                    .access = (Access[]){{2, both}, {2, turns ? turned : both}},
                    .rank = 2,
                    .out = (const int32_t[]){0, 1}};
    return graph_add(g, &sum);
}

/* Twice, say, of a value. */
static NodeRef random_scale(Rng *rng, Graph *g, NodeRef x)
{
    static const Index both[2] = {{0, 0}, {1, 0}};
    DType t = graph_node(g, x)->dtype;
    NodeRef number = graph_const(g, number_int(t, (int64_t)below(rng, 5) - 2), (Span){0});
    NodeSpec scaled = {.op = OP_MUL,
                       .dtype = t,
                       .n_operands = 2,
                       .operand = (NodeRef[]){number, x},
                       .access = (Access[]){{0, both}, {2, both}},
                       .rank = 2,
                       .out = (const int32_t[]){0, 1}};
    return graph_add(g, &scaled);
}

void random_terms(Ctx *ctx, Rng *rng, Graph *g)
{
    NodeRef old = NODE_NONE;
    Result *update = NULL;
    for (uint32_t k = 0; k < g->results.n; k++) { /* an argument that is changed */
        update = g->results.at[k].param >= 0 ? &g->results.at[k] : update;
    }
    for (NodeRef n = 0; n < g->nodes.n && update != NULL; n++) {
        const Node *node = graph_node(g, n);
        bool input = node->op == OP_INPUT && node->param == (uint32_t)update->param;
        old = input && node->rank == 2 ? n : old;
    }
    const Node *like = graph_node(g, old != NODE_NONE ? old : below(rng, g->nodes.n));
    DType t = like->dtype;
    if (like->rank < 1 || (t != DTYPE_I64 && t != DTYPE_I32)) {
        return;
    }
    Dim rows = like->shape[0], columns = like->shape[like->rank - 1];
    NodeRef sum = old;
    for (uint32_t k = 0, n = 1 + below(rng, 3); k < n; k++) {
        uint32_t kept[2] = {0};
        bool sums = chance(rng, 50);
        NodeRef operand[2] = {value_with(rng, g, t, rows, sums, &kept[0]),
                              value_with(rng, g, t, columns, !sums, &kept[1])};
        if (operand[0] == NODE_NONE || operand[1] == NODE_NONE) {
            continue;
        }
        NodeRef term = random_term(rng, g, operand, kept);
        term = chance(rng, 30) ? random_scale(rng, g, term) : term;
        sum = sum == NODE_NONE ? term : random_sum(rng, g, sum, term);
    }
    if (sum == NODE_NONE || sum == old) {
        return;
    }
    if (old != NODE_NONE && graph_node(g, sum)->dtype == t) {
        update->node = sum;
    } else {
        sum = chance(rng, 30) ? random_sum(rng, g, sum, random_scale(rng, g, sum)) : sum;
        Result r = {.name = sym_cstr(&ctx->syms, "terms"), .param = -1, .node = sum};
        vec_push(g->arena, &g->results, r);
    }
}
