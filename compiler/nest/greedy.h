/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: groups of values that share all their loops, from which greedy fusion
 * and sliced contractions make items. */
#ifndef NEST_GREEDY_H
#define NEST_GREEDY_H

#include "nest/facts.h"
#include "nest/tree.h"

/* Nodes of one group: fusion is quadratic in it. */
#define GROUP_LIMIT 64

/* Of a sliced contraction: its loops, outermost first, with the node's label on each or -1. */
typedef struct SliceLoops {
    uint32_t n;
    const Dim *extent;
    const int32_t *const *label; /* [n][nodes of the group] */
} SliceLoops;

typedef struct Group {
    VEC(NodeRef) nodes; /* ascending */
    uint32_t
        read_by; /* no later group that reads this one is lower; NODE_NONE: none reads it, */
    uint32_t read_next; /* ... and none but `read_by` is lower than that */
    const SliceLoops *slices;
} Group;

typedef struct Greedy {
    Arena *arena; /* scratch */
    Arena *keep;  /* of the nest */
    const NestFacts *facts;
    const Graph *g;
    const Machine *machine;
    uint32_t *group_of; /* [nodes] */
    VEC(Group) groups;
} Greedy;

/* slices.c: makes one group of a sliced contraction, all of whose nodes with a sliced label lead to `root`, with the sliced
 * labels as its axes. False, and nothing changed, when something else reads one of them. */
bool greedy_slices(Greedy *f, NodeRef root);
/* Its loops and leaves: each stands inside the loops up to the last of those it has. */
void slices_items(Greedy *f, const Group *group, Tree *tree);

/* tiles.c: how the group's axes are cut; INT64_MAX: not at all. */
void greedy_tiles(Greedy *f, const Group *group, uint32_t n_axes, const NestAxis *axes,
                  int64_t *tile);

/* The most bytes that live at once when nodes are computed in this order: `bytes` of
 * each node's block, until its last reader among them, and `more` while it is computed. An
 * expression takes the place of a block of the same size where it may. */
int64_t greedy_peak(Greedy *f, uint32_t n_nodes, const NodeRef *nodes, const int64_t *bytes,
                    const int64_t *more);
/* greedy.c: items of the whole graph, appended to `tree`; not `fuse`: every value in an item of its own. */
void greedy_tree(Ctx *ctx, Arena *arena, const NestFacts *facts, const Machine *machine,
                 bool fuse, Tree *tree);

#endif
