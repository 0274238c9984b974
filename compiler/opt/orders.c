/* SPDX-License-Identifier: Apache-2.0 */
/* One value for each order in which a value is read. `R[i,j] = X[i,j] + X[j,i]` reads one X in two orders, so no loop over
 * i or j has a block of X that serves both. Instead
 *
 *     X[i,j] = A[i,p] * B[p,j]            X1[i,j] = A[i,p] * B[p,j]
 *     R[i,j] = X[i,j] + X[j,i]     ->     X2[i,j] = A[j,p] * B[p,i]
 *                                         R[i,j]  = X1[i,j] + X2[i,j]
 *
 * computes it twice, and both in the loops of R. Backward, every reader says in which orders it wants the dimensions of
 * what it reads: those of its own result, through elementwise operations down to the value. Forward, each of them gets a
 * node for each order. */
#include "opt/opt.h"

#include <string.h>

/* Orders of one node, and what a graph may grow to. */
#define ORDERS 8
#define GROWTH 4

/* New dimension d is old dimension dim[d]. */
typedef struct Order {
    const uint32_t *dim;
    NodeRef made;
} Order;

typedef struct Orders {
    uint32_t n;
    Order at[ORDERS];
} Orders;

typedef struct Splitter {
    Arena *arena; /* scratch */
    const Graph *g;
    Graph *to;
    bool *moves;    /* [nodes]: the value, or an expression of it */
    Orders *orders; /* [nodes] */
    uint32_t total;
    bool ok;
} Splitter;

static void want(Splitter *s, NodeRef n, const uint32_t *dim)
{
    uint32_t rank = graph_node(s->g, n)->rank;
    for (uint32_t i = 0; i < s->orders[n].n; i++) {
        if (memcmp(s->orders[n].at[i].dim, dim, rank * sizeof *dim) == 0) {
            return;
        }
    }
    s->ok = s->ok && s->orders[n].n < ORDERS && s->total < s->g->nodes.n * GROWTH;
    if (s->ok) {
        s->orders[n].at[s->orders[n].n++] = (Order){dim, NODE_NONE};
        s->total++;
    }
}

static const uint32_t *as_it_is(Splitter *s, NodeRef n)
{
    uint32_t *dim = ARENA_ARRAY(s->arena, graph_node(s->g, n)->rank, uint32_t);
    for (uint32_t d = 0; d < graph_node(s->g, n)->rank; d++) {
        dim[d] = d;
    }
    return dim;
}

/* The order in which operand `k` of `n`, itself in order `own`, has its dimensions as the result has them. */
static const uint32_t *order_read(Splitter *s, NodeRef n, const uint32_t *own, uint32_t k)
{
    const Node *node = graph_node(s->g, n);
    const Access *a = &node->access[k];
    uint32_t *dim = ARENA_ARRAY(s->arena, a->rank, uint32_t), at = 0;
    bool apart = op_info(node->op)->kind == OPKIND_MAP && s->moves[node->operand[k]];
    for (uint32_t d = 0; apart && d < node->rank; d++) {
        for (uint32_t i = 0; i < a->rank; i++) {
            if (a->index[i].label == node->out[own[d]]) {
                apart = apart && at < a->rank && a->index[i].offset == 0;
                dim[apart ? at++ : 0] = i;
            }
        }
    }
    return apart && at == a->rank ? dim : as_it_is(s, node->operand[k]);
}

static void find_orders(Splitter *s)
{
    for (uint32_t r = 0; r < s->g->results.n; r++) {
        want(s, s->g->results.at[r].node, as_it_is(s, s->g->results.at[r].node));
    }
    for (uint32_t r = 0; r < s->g->required.n; r++) {
        want(s, s->g->required.at[r].node, as_it_is(s, s->g->required.at[r].node));
    }
    for (NodeRef n = s->g->nodes.n; n-- > 0 && s->ok;) {
        for (uint32_t i = 0; i < s->orders[n].n; i++) {
            for (uint32_t k = 0; k < graph_node(s->g, n)->n_operands; k++) {
                want(s, graph_node(s->g, n)->operand[k],
                     order_read(s, n, s->orders[n].at[i].dim, k));
            }
        }
    }
}

static NodeRef made(const Splitter *s, NodeRef n, const uint32_t *dim)
{
    uint32_t i = 0, rank = graph_node(s->g, n)->rank;
    while (memcmp(s->orders[n].at[i].dim, dim, rank * sizeof *dim) != 0) {
        i++;
    }
    return s->orders[n].at[i].made;
}

static NodeRef make(Splitter *s, NodeRef n, const uint32_t *own)
{
    NodeSpec spec = graph_spec(s->g, n);
    NodeRef *operand = ARENA_ARRAY(s->arena, spec.n_operands, NodeRef);
    Access *access = ARENA_ARRAY(s->arena, spec.n_operands, Access);
    int32_t *out = ARENA_ARRAY(s->arena, spec.rank, int32_t);
    Dim *shape = ARENA_ARRAY(s->arena, spec.rank, Dim);
    for (uint32_t k = 0; k < spec.n_operands; k++) {
        const Access *a = &spec.access[k];
        const uint32_t *dim = order_read(s, n, own, k);
        Index *index = ARENA_ARRAY(s->arena, a->rank, Index);
        for (uint32_t d = 0; d < a->rank; d++) {
            index[d] = a->index[dim[d]];
        }
        operand[k] = made(s, spec.operand[k], dim);
        access[k] = (Access){a->rank, index};
    }
    for (uint32_t d = 0; d < spec.rank; d++) {
        out[d] = spec.out[own[d]];
        shape[d] = spec.out_shape[own[d]];
    }
    spec.operand = operand;
    spec.access = access;
    spec.out = out;
    spec.out_shape = shape;
    return graph_add(s->to, &spec);
}

static void make_all(Splitter *s)
{
    NodeRef *map = ARENA_ARRAY(s->arena, s->g->nodes.n, NodeRef);
    for (NodeRef n = 0; n < s->g->nodes.n; n++) {
        bool leaf = op_info(graph_node(s->g, n)->op)->kind == OPKIND_LEAF;
        for (uint32_t i = 0; i < s->orders[n].n; i++) {
            Order *o = &s->orders[n].at[i];
            o->made = leaf ? graph_clone_node(s->to, s->g, n, map) : make(s, n, o->dim);
        }
    }
    for (uint32_t r = 0; r < s->g->results.n; r++) {
        NodeRef n = s->g->results.at[r].node;
        map[n] = made(s, n, as_it_is(s, n));
    }
    for (uint32_t r = 0; r < s->g->required.n; r++) {
        NodeRef n = s->g->required.at[r].node;
        map[n] = made(s, n, as_it_is(s, n));
    }
    graph_copy_results(s->to, s->g, map);
}

Graph *opt_split_orders(Ctx *ctx, Arena *arena, const Graph *g, NodeRef value, uint32_t *n)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Splitter s = {.arena = &scratch,
                  .g = g,
                  .moves = ARENA_ARRAY(&scratch, g->nodes.n, bool),
                  .orders = ARENA_ARRAY(&scratch, g->nodes.n, Orders),
                  .ok = true};
    for (NodeRef k = value; k < g->nodes.n; k++) {
        const Node *node = graph_node(g, k);
        s.moves[k] = k == value;
        for (uint32_t i = 0; op_info(node->op)->kind == OPKIND_MAP && i < node->n_operands;
             i++) {
            s.moves[k] |= s.moves[node->operand[i]];
        }
    }
    find_orders(&s);
    bool leaf = op_info(graph_node(g, value)->op)->kind == OPKIND_LEAF;
    *n = s.ok && !leaf ? s.orders[value].n : 0;
    if (*n > 1 && g->slices.n == 0) { /* slices are by node */
        s.to = graph_like(arena, g);
        make_all(&s);
    }
    arena_release(&scratch);
    return s.to;
}
