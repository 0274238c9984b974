/* SPDX-License-Identifier: Apache-2.0 */
/* Multiply-adds of a nest: what loops compute again, and what loops over pairs save. */
#include "nest/price_leaf.h"

/* How often loops that lack its labels compute the node again. */
static int64_t repetitions(const LeafPrice *l)
{
    int64_t count = 1;
    for (uint32_t p = 0; p < l->depth; p++) {
        bool has = nest_loop_label(l->nest, l->loop[p], l->node) >= 0;
        count = has ? count : sat_mul(count, (int64_t)l->trips[p]);
    }
    return count;
}

/* Positions of pairs that a loop over each pair of tiles once looks at, of all extent * extent. */
static int64_t pair_positions(int64_t extent, int64_t tile)
{
    int64_t full = extent / tile, rest = extent % tile, sum = sat_mul(rest, rest);
    /* of each full tile, what is left of the extent from it on */
    int64_t left = full % 2 == 0 ? sat_mul(full / 2, 2 * extent - (full - 1) * tile)
                                 : sat_mul(full, extent - (full - 1) / 2 * tile);
    return sat_add(sum, sat_mul(tile, left));
}

/* Multiply-adds of the leaf, of all its iterations; *saved: by looking at each pair once. */
static int64_t leaf_multiply_adds(const LeafPrice *l, int64_t *saved)
{
    const Graph *g = l->nest->graph;
    int64_t count = node_multiply_adds(graph_node(g, l->node), l->p->dims), all_pairs = count;
    for (uint32_t k = 0; k < l->depth && count > 0; k++) {
        const NestItem *item = &l->nest->items[l->loop[k]];
        const NestAxis *axis = &l->nest->axes[item->axis];
        int64_t span = nest_loop_span(l->nest, l->loop[k], l->node);
        if (span > item->tile) { /* the margins of each iteration once more */
            int64_t more = sat_mul(span - item->tile, (int64_t)l->trips[k]);
            int64_t extent = nest_typical(g, axis->extent);
            count = sat_add(count, sat_mul(count / extent, more));
            all_pairs = sat_add(all_pairs, sat_mul(all_pairs / extent, more));
        }
        const NestAxis *from =
            &l->nest->axes[item->from == 0 ? item->axis : l->nest->items[item->from - 1].axis];
        if (item->from != 0 && nest_axis_label(axis, l->node) >= 0 &&
            nest_axis_label(from, l->node) >= 0) {
            int64_t extent = nest_typical(g, axis->extent);
            int64_t all = sat_mul(extent, extent);
            int64_t tile = l->nest->items[item->from - 1].tile;
            count = sat_mul(count / all, pair_positions(extent, tile));
        }
    }
    *saved = sat_mul(all_pairs - count, repetitions(l));
    return sat_mul(count, repetitions(l));
}

void price_count(const Pricer *p, const Nest *nest, const LeafPrice *leaves, uint32_t n,
                 NestCost *cost)
{
    const Graph *g = nest->graph;
    cost->multiply_adds = p->inlined;
    for (uint32_t k = 0; k < n; k++) {
        NodeRef node = leaves[k].node;
        int64_t saved = 0, done = leaf_multiply_adds(&leaves[k], &saved);
        cost->multiply_adds = sat_add(cost->multiply_adds, done);
        cost->saved = sat_add(cost->saved, saved);
        if (nest->values[node].residence == RESIDE_WORKSPACE) {
            cost->spilled = sat_add(cost->spilled, sat_mul(2, nest_node_bytes(g, node)));
        }
    }
}
