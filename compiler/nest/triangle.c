/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over pairs once. A loop begins at the tile of one around it, when all that leaves its body are sums over both whose
 * terms stay when the two indices are exchanged (nest.h, rule `pairs`): half of the pairs of tiles need not be looked at.
 * That is never worse, so no search decides it. */
#include "nest/parts.h"

/* Is there a loop over one of the two axes, or over pairs, beside the two themselves? */
static bool is_crowded(const Nest *nest, uint32_t outer, uint32_t inner)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        bool around =
            k < inner && inner<item->end, inside = k> inner && k < nest->items[inner].end;
        if (!nest_is_loop(item) || k == outer || (!around && !inside)) {
            continue;
        }
        if (item->from != 0 || item->axis == nest->items[outer].axis ||
            item->axis == nest->items[inner].axis) {
            return true;
        }
    }
    return nest->items[outer].from != 0;
}

/* Is every index of a result in all operands? Such a product is no matrix product. */
static bool is_pointwise(const Node *n)
{
    for (uint32_t d = 0; d < n->rank; d++) {
        for (uint32_t k = 0; k < n->n_operands; k++) {
            if (!access_has_label(&n->access[k], n->out[d])) {
                return false;
            }
        }
    }
    return true;
}

/* Does the value sum over both loops terms that stay with their indices exchanged? */
static bool sums_pairs(const Nest *nest, NodeRef n, uint32_t outer, uint32_t inner)
{
    const Node *node = graph_node(nest->graph, n);
    int32_t a = nest_axis_label(&nest->axes[nest->items[outer].axis], n);
    int32_t b = nest_axis_label(&nest->axes[nest->items[inner].axis], n);
    for (uint32_t k = 0; k < node->n_exchanges && a >= 0 && b >= 0; k++) {
        if (node->exchange[k].to[a] == (uint32_t)b) {
            return node->op == OP_SUM || is_pointwise(node);
        }
    }
    return false;
}

/* May the inner loop begin at the tile of the outer one? */
static bool may_pair(const Nest *nest, uint32_t outer, uint32_t inner)
{
    const NestItem *o = &nest->items[outer], *i = &nest->items[inner];
    bool any = false;
    if (o->tile != i->tile || i->parallel || o->axis == i->axis ||
        !dim_eq(nest->axes[o->axis].extent, nest->axes[i->axis].extent)) {
        return false;
    }
    for (uint32_t k = inner + 1; k < i->end; k++) {
        NodeRef n = nest->items[k].node;
        if (nest_is_loop(&nest->items[k])) {
            continue;
        }
        uint32_t home = nest->values[n].home;
        bool inside = home != NEST_NONE && inner <= home && home < i->end;
        if (!inside && !sums_pairs(nest, n, outer, inner)) {
            return false;
        }
        any = any || !inside;
    }
    return any && !is_crowded(nest, outer, inner);
}

bool nest_has_pairs(const NestFacts *f)
{
    for (uint32_t k = 0; k < f->n_stored; k++) {
        if (graph_node(f->g, f->stored[k])->n_exchanges > 0) {
            return true;
        }
    }
    return false;
}

void nest_set_pairs(Arena *arena, const NestFacts *f, const Machine *machine, Nest *nest)
{
    if (!machine->pairs || !nest_has_pairs(f)) {
        return;
    }
    NestItem *items = arena_copy(arena, nest->items, nest->n_items * sizeof *items);
    nest->items = items;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        for (uint32_t p = items[k].parent; nest_is_loop(&items[k]) && p != NEST_NONE;
             p = items[p].parent) {
            if (items[k].from == 0 && may_pair(nest, p, k)) {
                items[k].from = 1 + p;
            }
        }
    }
}
