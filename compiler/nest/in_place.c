/* SPDX-License-Identifier: Apache-2.0 */
/* Results in the place of an operand: an inout parameter is updated where it lies (`C =
 * alpha*A*B + beta*C` may, `C = C + transpose of C` may not), and a value takes the place of one
 * that nothing reads later. */
#include "nest/place.h"

static bool is_param(const Graph *g, NodeRef leaf, uint32_t param)
{
    const Node *n = graph_node(g, leaf);
    return n->op == OP_INPUT && n->param == param;
}

static bool reads_param(const Graph *g, const UseList *u, uint32_t param)
{
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (is_param(g, u->list.at[i].node, param)) {
            return true;
        }
    }
    return false;
}

uint32_t *nest_top_items(Arena *arena, const Nest *nest)
{
    uint32_t *top = ARENA_ARRAY(arena, nest->graph->nodes.n, uint32_t);
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        top[n] = NEST_NONE;
    }
    for (uint32_t k = 0; k < nest->n_items; k = nest->items[k].end) {
        for (uint32_t i = k; i < nest->items[k].end; i++) {
            if (!nest_is_loop(&nest->items[i])) {
                top[nest->items[i].node] = k;
            }
        }
    }
    return top;
}

/* Results that are only copied at the end read what is there then. */
static bool read_at_the_end(Arena *arena, const NestFacts *f, uint32_t param)
{
    for (uint32_t k = 0; k < f->g->results.n; k++) {
        NodeRef n = f->g->results.at[k].node;
        UseList u = {0};
        if (!residence_is_stored(f->residence[n]) &&
            f->g->results.at[k].param != (int32_t)param) {
            result_uses(arena, f->g, f->residence, n, &u);
        }
        if (reads_param(f->g, &u, param)) {
            return true;
        }
    }
    return false;
}

NodeRef nest_first_of(const NestFacts *f, const uint32_t *top, NodeRef n)
{
    for (NodeRef x = n; x != NODE_NONE && top[x] != NEST_NONE;) {
        n = x;
        x = node_init(graph_node(f->g, n));
        x = x != NODE_NONE && f->into[x] == n ? x : NODE_NONE;
    }
    return n;
}

/* Is all that `n` reads of the parameter the element that it writes, before it writes any other? */
static bool reads_own_param(const NestFacts *f, NodeRef n, bool first, uint32_t param)
{
    const Node *node = graph_node(f->g, n);
    for (uint32_t i = 0; i < f->uses[n].list.n; i++) {
        const Use *use = &f->uses[n].list.at[i];
        bool before = node_is_expression(node) || (first && use->apart);
        if (is_param(f->g, use->node, param) &&
            (!before || !access_is_own(node, use->access))) {
            return false;
        }
    }
    return true;
}

bool nest_may_overwrite(Arena *arena, const NestFacts *f, const uint32_t *top, NodeRef r,
                        uint32_t param)
{
    NodeRef first = nest_first_of(f, top, r);
    for (uint32_t k = 0; k < f->n_stored; k++) {
        NodeRef n = f->stored[k], last = n;
        if (top[n] < top[first] || !reads_param(f->g, &f->uses[n], param)) {
            continue;
        }
        while (f->into[last] != NODE_NONE) {
            last = f->into[last];
        }
        if (last != r || !reads_own_param(f, n, n == first, param)) {
            return false;
        }
    }
    return !read_at_the_end(arena, f, param);
}

/* ---- the place of another value ---- */

/* Are the blocks that the two have in the body of loop `alloc_loop` cut alike? */
static bool is_same_block(const Nest *nest, NodeRef n, NodeRef p, uint32_t alloc_loop)
{
    const Node *a = graph_node(nest->graph, n), *b = graph_node(nest->graph, p);
    bool same = a->rank == b->rank && a->dtype == b->dtype;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        uint32_t loop = nest_loop_of(nest, alloc_loop, n, a->out[d]);
        same = dim_eq(a->shape[d], b->shape[d]) &&
               loop == nest_loop_of(nest, alloc_loop, p, b->out[d]);
        if (same && loop != NEST_NONE) {
            NestHalo x = nest_halo(nest, loop, n), y = nest_halo(nest, loop, p);
            same = x.from == y.from && x.count == y.count;
        }
    }
    return same;
}

bool nest_reads_own_element(const NestFacts *f, NodeRef n, NodeRef p)
{
    bool same = true;
    for (uint32_t i = 0; same && i < f->uses[n].list.n; i++) {
        const Use *use = &f->uses[n].list.at[i];
        same = use->node != p || access_is_own(graph_node(f->g, n), use->access);
    }
    return same;
}

/* Does anything but `n` read `p` from item `from` on? */
static bool is_read_from(const NestFacts *f, const Nest *nest, NodeRef p, NodeRef n,
                         uint32_t from)
{
    for (uint32_t k = from; k < nest->n_items; k++) {
        NodeRef r = nest->items[k].node;
        for (uint32_t i = 0; !nest_is_loop(&nest->items[k]) && r != n && i < f->uses[r].list.n;
             i++) {
            if (f->uses[r].list.at[i].node == p) {
                return true;
            }
        }
    }
    return false;
}

bool nest_may_take(const NestFacts *f, const Nest *nest, const NestValue *values, NodeRef n,
                   NodeRef p)
{
    const NestValue *v = &values[n], *old = &values[p];
    bool kept = v->residence == RESIDE_TILE || v->residence == RESIDE_WORKSPACE;
    if (!kept || old->residence != v->residence || old->item == NEST_NONE ||
        old->alloc_loop != v->alloc_loop || old->last != v->item ||
        !node_is_expression(graph_node(f->g, n)) || !is_same_block(nest, n, p, v->alloc_loop) ||
        !nest_reads_own_element(f, n, p)) {
        return false;
    }
    /* Inside a loop the place is taken bit by bit: all else has happened before the loop. */
    uint32_t from = nest_item_in(nest, v->alloc_loop, v->item);
    return from == v->item || (old->item < from && !is_read_from(f, nest, p, n, from));
}
