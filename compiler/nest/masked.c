/* SPDX-License-Identifier: Apache-2.0 */
/* Loops for restricted sums. `sum[j <= i](A[i,j] * x[j])` stands in no loop of its own accord: there is nothing to fuse. In tiles of
 * both indices half of them are left out. */
#include "nest/kinds.h"
#include "nest/masks.h"

/* Tiles that are tried: of the other index, of the one that is folded. */
static const int64_t tiles[][2] = {{32, 256}, {64, 256}, {128, 512}, {16, 128}};

static bool is_alone(const Nest *nest, uint32_t k)
{
    const NestItem *item = &nest->items[k];
    return !nest_is_loop(item) && item->parent == NEST_NONE && !item->recompute &&
           graph_slices(nest->graph, item->node).n == 0;
}

Nest *nest_with_masks(Arena *arena, const Machine *machine, Nest *nest, Tree *tree,
                      NestOfTree *make, const void *with)
{
    for (uint32_t k = 0; machine_rules(machine)->masked && k < tree->list.n; k++) {
        int32_t folded = -1, other = -1;
        if (!is_alone(nest, k) ||
            !nest_mask_labels(arena, nest->graph, nest->items[k].node, &folded, &other)) {
            continue;
        }
        Tree best = *tree;
        for (uint32_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
            const int32_t label[2] = {other, folded};
            Tree looped = tree_around(arena, nest->graph, tree, k, 2, label, tiles[t]);
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
