/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over pairs once. A loop begins at the tile of one around it, when all that leaves its body are sums over both whose
 * terms stay when the two indices are exchanged, or values that do, which are then stored at the mirrored place too
 * (nest.h, rule `pairs`): half of the pairs of tiles need not be looked at. Where there are such loops that is never worse, so no
 * search decides it; whether there are is the search's (moves.c).
 *
 * A rewrite of the graph into a restricted sum, sum[i, j <= i] with weights as values, would need neither this nor lowering's part. It
 * decides too early: whether pairs of positions, of tiles or none are worth it depends on loops that other values share, and a weight for
 * each element costs an operation for each, where one for each tile costs none. */
#include "nest/place.h"

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
    int32_t a = nest_loop_label(nest, outer, n);
    int32_t b = nest_loop_label(nest, inner, n);
    for (uint32_t k = 0; k < node->n_exchanges && a >= 0 && b >= 0; k++) {
        if (node->exchange[k].to[a] == (uint32_t)b) {
            return node->op == OP_SUM || is_pointwise(node);
        }
    }
    return false;
}

/* The first generator of the node that exchanges its labels a and b of the result (-1: none), or null: the one that lowering
 * takes. */
static const Generator *nest_mirror(const Node *n, int32_t a, int32_t b)
{
    for (uint32_t k = 0; k < n->n_generators && a >= 0 && b >= 0; k++) {
        for (uint32_t d = 0; d < n->rank; d++) {
            if (n->out[d] == a && n->out[n->generator[k].to[d]] == b) {
                return &n->generator[k];
            }
        }
    }
    return NULL;
}

/* Does the value come out of the loop's body? */
static bool leaves(const Nest *nest, NodeRef n, uint32_t loop)
{
    const NestValue *v = &nest->values[n];
    return !nest_is_in(nest, v->alloc_loop, loop) || v->residence != RESIDE_TILE;
}

/* Is the value read in the outer loop, but not in the inner one? */
static bool is_read_between(const NestFacts *f, const Nest *nest, NodeRef n, uint32_t outer,
                            uint32_t inner)
{
    for (uint32_t k = outer; k < nest->items[outer].end; k++) {
        const NestItem *item = &nest->items[k];
        bool between = !nest_is_loop(item) && !nest_is_in(nest, k, inner);
        for (uint32_t i = 0; between && i < f->uses[item->node].list.n; i++) {
            if (f->uses[item->node].list.at[i].node == n) {
                return true;
            }
        }
    }
    return false;
}

/* Does a loop around `inner`, but `outer`, cut an index that the mirror image has elsewhere? Then it is made of other iterations. */
static bool is_cut_across(const Nest *nest, NodeRef n, const Generator *mirror, uint32_t outer,
                          uint32_t inner)
{
    const Node *node = graph_node(nest->graph, n);
    for (uint32_t p = nest->items[inner].parent; p != NEST_NONE; p = nest->items[p].parent) {
        int32_t l = nest_loop_label(nest, p, n);
        for (uint32_t d = 0; p != outer && d < node->rank; d++) {
            if (node->out[d] == l && mirror->to[d] != d) {
                return true;
            }
        }
    }
    return false;
}

/* May the value be stored at the mirrored place too? Where all of it is there after the inner loop, nobody's old value is
 * overwritten, and nobody reads it before the outer loop has ended but at its own place. */
static bool may_mirror(const NestFacts *f, const Nest *nest, NodeRef n, uint32_t outer,
                       uint32_t inner)
{
    const NestValue *v = &nest->values[n];
    int32_t a = nest_loop_label(nest, outer, n);
    int32_t b = nest_loop_label(nest, inner, n);
    bool update = v->result >= 0 && nest->graph->results.at[v->result].param >= 0;
    bool taken = v->in_place != NODE_NONE ||
                 (v->fold != NEST_NONE && !nest_is_in(nest, v->fold, inner)) ||
                 is_read_between(f, nest, n, outer, inner);
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NodeRef other = nest->items[k].node;
        taken = taken || (!nest_is_loop(&nest->items[k]) && nest->values[other].in_place == n);
    }
    const Generator *mirror = nest_mirror(graph_node(nest->graph, n), a, b);
    return mirror != NULL && !update && !taken && !nest->items[v->item].recompute &&
           !is_cut_across(nest, n, mirror, outer, inner);
}

/* May the inner loop begin at the tile of the outer one? */
static bool may_pair(const NestFacts *f, const Machine *machine, const Nest *nest,
                     uint32_t outer, uint32_t inner)
{
    const NestItem *o = &nest->items[outer], *i = &nest->items[inner];
    bool any = false;
    if (i->tile % o->tile != 0 || i->parallel || o->axis == i->axis ||
        nest->axes[o->axis].halo != NULL || nest->axes[i->axis].halo != NULL ||
        !dim_eq(nest->axes[o->axis].extent, nest->axes[i->axis].extent)) {
        return false;
    }
    for (uint32_t k = inner + 1; k < i->end; k++) {
        NodeRef n = nest->items[k].node;
        if (nest_is_loop(&nest->items[k]) || !leaves(nest, n, inner)) {
            continue;
        }
        if ((o->tile != i->tile || !sums_pairs(nest, n, outer, inner)) &&
            (!machine->mirrors || !may_mirror(f, nest, n, outer, inner))) {
            return false;
        }
        any = true;
    }
    return any && !is_crowded(nest, outer, inner);
}

/* A value that is its own mirror image, and large enough for loops over its tiles. */
static bool is_mirrored(const Graph *g, NodeRef r)
{
    const Node *n = graph_node(g, r);
    return n->n_generators > 0 && op_info(n->op)->kind != OPKIND_LEAF;
}

bool nest_has_pairs(const NestFacts *f)
{
    for (uint32_t k = 0; k < f->n_stored; k++) {
        if (graph_node(f->g, f->stored[k])->n_exchanges > 0 ||
            is_mirrored(f->g, f->stored[k])) {
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
            if (items[k].from != 0 || !may_pair(f, machine, nest, p, k)) {
                continue;
            }
            items[k].from = 1 + p;
            for (uint32_t i = k + 1; i < items[k].end; i++) {
                NodeRef n = items[i].node;
                items[i].mirror =
                    !nest_is_loop(&items[i]) && leaves(nest, n, k) &&
                    !(items[p].tile == items[k].tile && sums_pairs(nest, n, p, k));
            }
        }
    }
}
