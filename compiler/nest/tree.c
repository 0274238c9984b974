/* SPDX-License-Identifier: Apache-2.0 */
/* Trees in the making: a list of items with depths, from which links and shared axes follow. */
#include "nest/tree.h"

#include <string.h>

void tree_loop(Arena *arena, Tree *t, uint32_t depth, NestAxis axis, int64_t tile)
{
    Draft d = {.depth = depth,
               .axis = axis,
               .is_loop = true,
               .tile = tile,
               .online = axis.online,
               .node = NODE_NONE};
    vec_push(arena, &t->list, d);
}

void tree_leaf(Arena *arena, Tree *t, uint32_t depth, NodeRef node, bool again)
{
    Draft d = {.depth = depth, .node = node, .recompute = again};
    vec_push(arena, &t->list, d);
}

Tree tree_around(Arena *arena, const Graph *g, const Tree *from, uint32_t k, uint32_t n,
                 const int32_t *label, const int64_t *tile)
{
    Tree to = {0};
    for (uint32_t i = 0; i < from->list.n; i++) {
        Draft d = from->list.at[i];
        for (uint32_t depth = 0; i == k && depth < n; depth++) {
            NestAxis axis = {.extent = graph_node(g, d.node)->extent[label[depth]], .n = 1};
            axis.node = arena_copy(arena, &d.node, sizeof d.node);
            axis.label = arena_copy(arena, &label[depth], sizeof *label);
            tree_loop(arena, &to, depth, axis, tile[depth]);
        }
        d.depth = i == k ? n : d.depth;
        vec_push(arena, &to.list, d);
    }
    return to;
}

static bool axis_eq(const NestAxis *a, const NestAxis *b)
{
    return a->n == b->n && dim_eq(a->extent, b->extent) &&
           memcmp(a->node, b->node, a->n * sizeof *a->node) == 0 &&
           memcmp(a->label, b->label, a->n * sizeof *a->label) == 0 &&
           (a->halo == NULL) == (b->halo == NULL) &&
           (a->halo == NULL || memcmp(a->halo, b->halo, a->n * sizeof *a->halo) == 0);
}

/* The number of an equal axis made for a loop of the same top-level item, or a new one. */
static uint32_t share_axis(NestAxis *axes, uint32_t first, uint32_t *n, const NestAxis *axis)
{
    for (uint32_t x = first; x < *n; x++) {
        if (axis_eq(&axes[x], axis)) {
            return x;
        }
    }
    axes[*n] = *axis;
    return (*n)++;
}

Nest *tree_nest(Arena *arena, const Graph *g, const Tree *t)
{
    uint32_t n = t->list.n, first = 0;
    Nest *nest = ARENA_NEW(arena, Nest);
    NestItem *items = ARENA_ARRAY(arena, n, NestItem);
    NestAxis *axes = ARENA_ARRAY(arena, n, NestAxis);
    uint32_t open[NEST_DEPTH + 1] = {NEST_NONE}; /* innermost loop of each depth */
    *nest = (Nest){.graph = g, .n_items = n, .items = items, .axes = axes};
    for (uint32_t k = 0; k < n; k++) {
        const Draft *d = &t->list.at[k];
        CHECK(d->depth <= NEST_DEPTH);
        first = d->depth == 0 ? nest->n_axes : first;
        items[k] = (NestItem){.span = d->span,
                              .parent = d->depth == 0 ? NEST_NONE : open[d->depth],
                              .end = k + 1,
                              .axis = NEST_NONE,
                              .node = d->node,
                              .recompute = d->recompute,
                              .mirror = d->mirror};
        if (d->is_loop) {
            CHECK(d->depth < NEST_DEPTH);
            items[k].axis = share_axis(axes, first, &nest->n_axes, &d->axis);
            items[k].tile = d->tile;
            items[k].parallel = d->parallel;
            items[k].from = d->from == 0 ? 0 : 1 + open[d->from];
            items[k].online = d->online;
            open[d->depth + 1] = k;
        }
        for (uint32_t p = items[k].parent; p != NEST_NONE; p = items[p].parent) {
            items[p].end = k + 1;
        }
    }
    return nest;
}
