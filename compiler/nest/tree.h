/* SPDX-License-Identifier: Apache-2.0 */
/* A tree being made or changed, as items with depths instead of links. */
#ifndef NEST_TREE_H
#define NEST_TREE_H

#include "nest/nest.h"

typedef struct Draft {
    uint32_t depth; /* loops around it */
    NestAxis axis;  /* of a loop */
    bool is_loop;
    int64_t tile;
    bool parallel, online;
    uint32_t from; /* loop: 0, or 1 + the depth of the loop at whose tile it begins */
    NodeRef node;  /* leaf */
    bool recompute, mirror;
    Span span; /* of the line that was read */
} Draft;

typedef struct Tree {
    VEC(Draft) list;
} Tree;

void tree_loop(Arena *arena, Tree *t, uint32_t depth, NestAxis axis, int64_t tile);
void tree_leaf(Arena *arena, Tree *t, uint32_t depth, NodeRef node, bool again);
/* A copy with `n` loops around leaf `k`, which stands in none: over labels of its node, in tiles, outermost first. */
Tree tree_around(Arena *arena, const Graph *g, const Tree *from, uint32_t k, uint32_t n,
                 const int32_t *label, const int64_t *tile);

/* Items with links, axes that are equal shared; values are not set. */
Nest *tree_nest(Arena *arena, const Graph *g, const Tree *t);

#endif
