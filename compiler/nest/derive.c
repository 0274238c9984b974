/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the tree: allocation loop, fold, lifetime and block of every value. Contractions that begin with each other are one place,
 * with one allocation loop. */
#include "nest/leaves.h"
#include "nest/place.h"

/* The innermost loop that is at or around both. */
static uint32_t common_loop(const NestItem *items, uint32_t x, uint32_t y)
{
    uint32_t dx = nest_depth(items, x), dy = nest_depth(items, y);
    for (; dx > dy; dx--) {
        x = items[x].parent;
    }
    for (; dy > dx; dy--) {
        y = items[y].parent;
    }
    while (x != y) {
        x = items[x].parent;
        y = items[y].parent;
    }
    return x;
}

static uint32_t outermost_fold(const Nest *nest, uint32_t leaf)
{
    NodeRef n = nest->items[leaf].node;
    uint32_t found = NEST_NONE;
    for (uint32_t at = nest->items[leaf].parent; at != NEST_NONE; at = nest->items[at].parent) {
        found = nest_folds_over(nest, at, n) ? at : found;
    }
    return found;
}

static void read_at(const Nest *nest, NestValue *values, NodeRef p, uint32_t scope,
                    uint32_t item)
{
    if (values[p].item == NEST_NONE) {
        return; /* a parameter */
    }
    values[p].alloc_loop = common_loop(nest->items, values[p].alloc_loop, scope);
    if (values[p].last < item) {
        values[p].last = item;
    }
}

/* The outermost allocation loop is that of all. */
static void join_homes(const Nest *nest, NestValue *values)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NestValue *v = nest_is_loop(&nest->items[k]) ? NULL : &values[nest->items[k].node];
        if (v != NULL && v->residence == RESIDE_INTO) {
            NestValue *into = &values[v->in_place];
            into->alloc_loop = common_loop(nest->items, v->alloc_loop, into->alloc_loop);
        }
    }
    for (uint32_t k = nest->n_items; k-- > 0;) {
        NestValue *v = nest_is_loop(&nest->items[k]) ? NULL : &values[nest->items[k].node];
        if (v != NULL && v->residence == RESIDE_INTO) {
            v->alloc_loop = values[v->in_place].alloc_loop;
        }
    }
}

void nest_derive(const NestFacts *f, const Nest *nest, NestValue *values)
{
    const Graph *g = nest->graph;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        values[n].item = values[n].alloc_loop = values[n].fold = NEST_NONE;
    }
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        if (!nest_is_loop(item)) {
            NestValue *v = &values[item->node];
            v->item = v->last = k;
            v->fold = outermost_fold(nest, k);
            v->alloc_loop = v->fold == NEST_NONE ? item->parent : nest->items[v->fold].parent;
        }
    }
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        for (uint32_t i = 0; !nest_is_loop(item) && i < f->uses[item->node].list.n; i++) {
            read_at(nest, values, f->uses[item->node].list.at[i].node, item->parent, k);
        }
    }
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        read_at(nest, values, f->late.list.at[i].node, NEST_NONE, nest->n_items);
    }
    for (uint32_t k = 0; k < g->results.n; k++) { /* copied to where it belongs at the end */
        NodeRef n = g->results.at[k].node;
        if (values[n].residence == RESIDE_WORKSPACE) {
            read_at(nest, values, n, NEST_NONE, nest->n_items);
        }
    }
    join_homes(nest, values);
    nest_set_leaves(NULL, NULL, nest, values);
}

void nest_set_bytes(const Nest *nest, NestValue *values)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        if (!nest_is_loop(&nest->items[k])) {
            NodeRef n = nest->items[k].node;
            uint32_t alloc_loop =
                values[n].residence == RESIDE_TILE ? values[n].alloc_loop : NEST_NONE;
            bool own = values[n].residence != RESIDE_INTO;
            values[n].bytes = own ? sat_mul(nest_block_elements(nest, n, alloc_loop),
                                            dtype_bytes(graph_node(nest->graph, n)->dtype))
                                  : 0;
        }
    }
}
