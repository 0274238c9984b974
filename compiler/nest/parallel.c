/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops threads share. Outermost loops of a kernel that is worth a second thread are parallel, unless something large folds
 * over them: of small sums each iteration has a part of its own (lower/leaves.c). A leaf that stands in no loop gets one, if its
 * schedule has no levels (nest/threads.c gives those their threads): along the index that its largest operand is outermost in,
 * where that is an index of the result or the result is small; else along the result's outermost. */
#include "nest/parts.h"
#include "nest/scan.h"

/* Elements of a sum that each iteration may have a copy of. */
#define LEAF_ELEMENTS 2048.0
/* Positions of a statement in one iteration: long beside what a loop costs, short beside what a thread should be worth. */
#define ITERATION 16384.0
/* Iterations that a loop should have, to be cut evenly. */
#define ENOUGH 8
/* Positions of an index, of which one iteration should have no fewer where there are enough: some lines of memory. */
#define RUN  64
#define LINE 512 /* ... of the one that lies side by side in the result */
/* Leaves for which loops are tried, and loops for each. */
#define MOST_LEAVES 32
#define MOST_LOOPS  4
/* What its loop may cost one thread, of a statement's time if it were of one element read and written each. */
#define SLOWER 1.0
/* ... of a kernel's time, that of a contraction's: it may cost operands their place in a cache. */
#define SLOWER_PRODUCT 0.05
/* Multiply-adds in whose time an element of such a statement comes from memory and goes there. */
#define ELEMENT 16.0

static double typical(const Graph *g, Dim d)
{
    return (double)nest_typical(g, d);
}

bool nest_is_slice(const Graph *g, const NestAxis *axis)
{
    for (uint32_t i = 0; i < axis->n; i++) {
        Slices sliced = graph_slices(g, axis->node[i]);
        for (uint32_t k = 0; k < sliced.n; k++) {
            if (sliced.label[k] == axis->label[i]) {
                return true;
            }
        }
    }
    return false;
}

static double result_elements(const Graph *g, const Node *n)
{
    double elements = 1.0;
    for (uint32_t d = 0; d < n->rank; d++) {
        elements *= typical(g, n->shape[d]);
    }
    return elements;
}

NodeRef nest_fold_without_leaves(const Nest *nest, uint32_t k)
{
    const Graph *g = nest->graph;
    const NestAxis *axis = &nest->axes[nest->items[k].axis];
    for (uint32_t i = k + 1; i < nest->items[k].end; i++) {
        const NestItem *item = &nest->items[i];
        int32_t l = nest_is_loop(item) ? -1 : nest_axis_label(axis, item->node);
        if (l < 0 || !node_reduces(graph_node(g, item->node), l)) {
            continue;
        }
        const NestValue *v = &nest->values[item->node];
        if (v->fold != k || v->residence == RESIDE_INTO || graph_node(g, item->node)->onto ||
            result_elements(g, graph_node(g, item->node)) > LEAF_ELEMENTS) {
            return item->node;
        }
    }
    return NODE_NONE;
}

bool nest_is_worth_threads(const Machine *machine, const Nest *nest)
{
    return nest->cost.seconds >= 2 * machine->time.piece;
}

void nest_mark_parallel(Arena *arena, const Graph *g, const Machine *machine, Nest *nest)
{
    NestItem *items = arena_copy(arena, nest->items, nest->n_items * sizeof *items);
    bool worth = nest_is_worth_threads(machine, nest);
    bool leaves = machine->kind == MACHINE_CACHES;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NestItem *item = &items[k];
        if (nest_is_loop(item) && item->parent == NEST_NONE) {
            const NestAxis *axis = &nest->axes[item->axis];
            item->parallel =
                worth && !nest_is_slice(g, axis) &&
                (!nest_axis_is_folded(g, axis) ||
                 (leaves && !item->online && nest_fold_without_leaves(nest, k) == NODE_NONE));
        }
    }
    nest->items = items;
}

/* ---- loops around leaves ---- */

/* The label that the node's largest operand is outermost in, or -1. */
static int32_t outermost_label(const Graph *g, const Node *n)
{
    double most = 0.0;
    int32_t label = -1;
    for (uint32_t k = 0; k < node_factors(n); k++) {
        double elements = 1.0;
        for (uint32_t d = 0; d < n->access[k].rank; d++) {
            int32_t l = n->access[k].index[d].label;
            elements *= l < 0 ? 1.0 : typical(g, n->extent[l]);
        }
        if (n->access[k].rank > 0 && elements > most) {
            most = elements;
            label = n->access[k].index[0].label;
        }
    }
    return label;
}

/* Positions of the label in one iteration, given those of all labels; 0: there would be few iterations. `is_line`: operands have
 * the label side by side, and are read along another one. */
static int64_t tile_of(const Graph *g, const Node *n, int32_t label, double positions,
                       bool is_line)
{
    int64_t extent = nest_typical(g, n->extent[label]), tile = 1, least = RUN;
    double rest = positions / (double)extent;
    while ((double)tile * rest < ITERATION) {
        tile *= 2;
    }
    least = is_line ? LINE : least;
    while (tile < least && (is_line || extent / (2 * tile) >= 2 * ENOUGH)) {
        tile *= 2;
    }
    return extent / tile >= ENOUGH ? tile : 0;
}

/* In the time of multiply-adds. */
static double work_of(const Nest *nest, NodeRef node)
{
    const Node *n = graph_node(nest->graph, node);
    bool scan = nest->values[node].scan;
    double positions = ELEMENT;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        bool once = scan && node_reduces(n, (int32_t)l);
        positions *= once ? 1.0 : typical(nest->graph, n->extent[l]);
    }
    return positions;
}

/* Loops that may be put around a leaf, which stands in none: their axes and tiles, the best first. */
static uint32_t loops_of(Arena *arena, const Nest *nest, NodeRef node, int32_t *label,
                         int64_t *tile)
{
    const Graph *g = nest->graph;
    const Node *n = graph_node(g, node);
    int32_t first = outermost_label(g, n);
    bool small = result_elements(g, n) <= LEAF_ELEMENTS;
    double positions = work_of(nest, node) / ELEMENT;
    uint32_t count = 0;
    Scan scan = {.along = -1};
    bool scans = nest->values[node].scan && nest_scan(arena, nest, nest->values, node, &scan);
    if (first >= 0 && !scans && (small || !node_reduces(n, first))) {
        label[count] = first;
        tile[count++] = tile_of(g, n, first, positions, false);
    }
    for (uint32_t d = 0; d < n->rank && count < MOST_LOOPS; d++) {
        bool is_line = n->rank < n->n_labels && d + 1 == n->rank;
        if (n->out[d] == scan.along) {
            continue;
        }
        label[count] = n->out[d];
        tile[count++] = tile_of(g, n, n->out[d], positions, is_line);
    }
    return count;
}

bool nest_leaf_is_worth_threads(const Machine *machine, const Nest *nest, NodeRef n)
{
    return work_of(nest, n) * machine->time.multiply_add >= 2 * machine->time.piece;
}

/* Is item `k` a leaf that threads should share and cannot? */
static bool wants_loop(const Machine *machine, const Nest *nest, uint32_t k)
{
    const NestItem *item = &nest->items[k];
    if (nest_is_loop(item) || item->parent != NEST_NONE || item->again) {
        return false;
    }
    const Node *n = graph_node(nest->graph, item->node);
    const NestValue *v = &nest->values[item->node];
    return n->out != NULL && op_info(n->op)->kind != OPKIND_JOIN &&
           nest_leaf_is_worth_threads(machine, nest, item->node) &&
           (v->schedule == NULL || v->schedule->n_levels == 0) &&
           graph_slices(nest->graph, item->node).n == 0;
}

static Tree with_loop(Arena *arena, const Tree *from, uint32_t k, const Node *n, int32_t label,
                      int64_t tile)
{
    Tree to = {0};
    for (uint32_t i = 0; i < from->list.n; i++) {
        Draft d = from->list.at[i];
        if (i == k) {
            NestAxis axis = {.extent = n->extent[label], .n = 1};
            axis.node = arena_copy(arena, &d.node, sizeof d.node);
            axis.label = arena_copy(arena, &label, sizeof label);
            tree_loop(arena, &to, 0, axis, tile, true);
            d.depth = 1;
        }
        vec_push(arena, &to.list, d);
    }
    return to;
}

Nest *nest_with_loops(Arena *arena, const Machine *machine, Nest *nest, Tree *tree,
                      NestOfTree *make, const void *with)
{
    const Graph *g = nest->graph;
    uint32_t tried = 0;
    for (uint32_t k = 0; machine->kind == MACHINE_CACHES && k < tree->list.n; k++) {
        int32_t label[MOST_LOOPS];
        int64_t tile[MOST_LOOPS];
        if (tried >= MOST_LEAVES || !wants_loop(machine, nest, k)) {
            continue;
        }
        NodeRef node = nest->items[k].node;
        const Node *n = graph_node(g, node);
        uint32_t count = loops_of(arena, nest, node, label, tile);
        double most = nest->cost.seconds +
                      (op_info(n->op)->kind == OPKIND_CONTRACT
                           ? SLOWER_PRODUCT * nest->cost.seconds
                           : SLOWER * work_of(nest, node) * machine->time.multiply_add);
        tried++;
        bool taken = false;
        for (uint32_t i = 0; i < count && !taken; i++) {
            int64_t extent = nest_typical(g, n->extent[label[i]]);
            for (; tile[i] > 0 && extent / tile[i] >= ENOUGH && !taken; tile[i] *= 2) {
                Tree looped = with_loop(arena, tree, k, n, label[i], tile[i]);
                Nest *other = make(with, &looped);
                taken = other->cost.seconds <= most;
                nest = taken ? other : nest;
                *tree = taken ? looped : *tree;
            }
        }
        k += taken ? 1 : 0; /* the leaf itself */
    }
    return nest;
}
