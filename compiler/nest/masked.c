/* SPDX-License-Identifier: Apache-2.0 */
/* Loops for restricted sums. `sum[j <= i](A[i,j] * x[j])` stands in no loop of its own accord: there is nothing to fuse. In tiles of
 * both indices half of them are left out. */
#include "nest/masks.h"
#include "nest/parts.h"

/* Tiles that are tried: of the other index, of the one that is folded. */
static const int64_t tiles[][2] = {{32, 256}, {64, 256}, {128, 512}, {16, 128}};

static NestAxis axis_of(Arena *arena, const Node *n, NodeRef node, int32_t label)
{
    NestAxis axis = {.extent = n->extent[label], .n = 1};
    axis.node = arena_copy(arena, &node, sizeof node);
    axis.label = arena_copy(arena, &label, sizeof label);
    return axis;
}

static Tree with_loops(Arena *arena, const Graph *g, const Tree *from, uint32_t k,
                       int32_t folded, int32_t other, const int64_t *tile)
{
    Tree to = {0};
    for (uint32_t i = 0; i < from->list.n; i++) {
        Draft d = from->list.at[i];
        if (i == k) {
            const Node *n = graph_node(g, d.node);
            tree_loop(arena, &to, 0, axis_of(arena, n, d.node, other), tile[0]);
            tree_loop(arena, &to, 1, axis_of(arena, n, d.node, folded), tile[1]);
            d.depth = 2;
        }
        vec_push(arena, &to.list, d);
    }
    return to;
}

static bool is_alone(const Nest *nest, uint32_t k)
{
    const NestItem *item = &nest->items[k];
    return !nest_is_loop(item) && item->parent == NEST_NONE && !item->again &&
           graph_slices(nest->graph, item->node).n == 0;
}

Nest *nest_with_masks(Arena *arena, const Machine *machine, Nest *nest, Tree *tree,
                      NestOfTree *make, const void *with)
{
    for (uint32_t k = 0; machine->kind == MACHINE_CACHES && k < tree->list.n; k++) {
        int32_t folded = -1, other = -1;
        if (!is_alone(nest, k) ||
            !nest_mask_labels(arena, nest->graph, nest->items[k].node, &folded, &other)) {
            continue;
        }
        Tree best = *tree;
        for (uint32_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
            Tree looped = with_loops(arena, nest->graph, tree, k, folded, other, tiles[t]);
            Nest *tried = make(with, &looped);
            if (tried->cost.seconds < nest->cost.seconds) {
                nest = tried;
                best = looped;
            }
        }
        k += best.list.n - tree->list.n;
        *tree = best;
    }
    return nest;
}
