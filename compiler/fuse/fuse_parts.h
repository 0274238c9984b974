/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: the steps of fusion and what they share. */
#ifndef FUSE_FUSE_PARTS_H
#define FUSE_FUSE_PARTS_H

#include "fuse/fuse.h"
#include "fuse/uses.h"

/* inline.c: sets residence[n] to RESIDE_INLINE for the expressions that are not stored. */
void fuse_choose_inline(Arena *scratch, const Graph *g, const bool *needed,
                        Residence *residence, const int32_t *result_of);

/* axes.c: the axes a set of nodes (ascending) has in common, or could be looped over together;
 * labels per node. Returns the number of axes, written to *axes (from `arena`). */
uint32_t fuse_common_axes(Arena *arena, const Graph *g, const UseList *uses, uint32_t n_nodes,
                          const NodeRef *nodes, const GroupAxis **axes);

/* Bytes of the node's block when each axis is cut to a tile of 1, for typical extents;
 * saturating. */
int64_t fuse_block_bytes(const Graph *g, NodeRef n, uint32_t at, uint32_t n_axes,
                         const GroupAxis *axes);
/* in_place.c: may node `r` write inout parameter `param` in place? Not while anything still has
 * to read the old value elsewhere than at the element being written. `uses` of all stored
 * nodes. */
bool fuse_in_place(Arena *arena, const Graph *g, const Residence *residence,
                   const uint32_t *group_of, const UseList *uses, NodeRef r, uint32_t param);

/* Nodes of one group: fusion is quadratic in it. */
#define GROUP_LIMIT 64

typedef struct Draft {
    VEC(NodeRef) nodes; /* ascending */
    uint32_t read_by;   /* lowest later group that reads this one, or NODE_NONE */
    uint32_t n_axes;    /* of a sliced contraction: its axes are given */
    const GroupAxis *axes;
} Draft;

typedef struct Fuser {
    Arena *arena; /* scratch */
    Arena *keep;  /* of the partition */
    const Graph *g;
    const Machine *machine;
    bool *needed;
    Residence *residence;
    int32_t *result_of;
    const char **reason;
    UseList *uses; /* [nodes], of stored nodes */
    uint32_t *group_of;
    VEC(Draft) drafts;
} Fuser;

/* slices.c: makes one group of a sliced contraction, all of whose nodes with a sliced label
 * lead to `root`, with the sliced labels as its axes. False, and nothing changed, when
 * something else reads one of them. */
bool fuse_slices(Fuser *f, NodeRef root);

#endif
