/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: which nodes of a BINARY graph share one loop nest, and where each value lives. An
 * overlay: the graph is not cut, another partition is free to try.
 *
 * A kernel is a sequence of groups, run in order. A group is a set of nodes and a list of axes
 * its loops run over. An axis is one label in every node of the group (`label`, parallel to
 * `nodes`; only slices may lack it): all nodes of the group are computed block by block along
 * it, producers first, so what they exchange is a block: [tile of the axes] x [the other
 * labels, whole]. Hence
 *   - every use inside the group reads a producer's axis dimension with the consumer's label of
 * the same axis;
 *   - an axis may be reduced only by nodes whose value no node of the group reads (it is
 * complete after the loops). Nodes that are only an expression (MAP, products without a sum)
 * and cheap are INLINE: recomputed where they are used, never stored, in no group. */
#ifndef FUSE_FUSE_H
#define FUSE_FUSE_H

#include "graph/graph.h"
#include "dump/tree.h"
#include "target/target.h"

typedef enum Residence {
    RESIDE_NONE,      /* not needed */
    RESIDE_ARGUMENT,  /* a parameter */
    RESIDE_RESULT,    /* written straight into a result or inout argument */
    RESIDE_INLINE,    /* an expression; lives in registers where it is used */
    RESIDE_TILE,      /* a block on chip inside its group's loops */
    RESIDE_WORKSPACE, /* memory between groups: a spill */
    RESIDE_COUNT
} Residence;

const char *
residence_name(Residence r); /* "argument", "result", "register", "tile", "workspace" */

static inline bool residence_is_stored(Residence r)
{
    return r == RESIDE_RESULT || r == RESIDE_TILE || r == RESIDE_WORKSPACE;
}

typedef struct GroupAxis {
    Dim extent;
    const int32_t *label; /* [n_nodes]: the node's label along this axis; -1: computed again at
                             each position */
    bool reduced;         /* some node reduces it */
} GroupAxis;

typedef struct Group {
    uint32_t n_nodes;
    const NodeRef *nodes; /* topological order */
    uint32_t n_axes;
    const GroupAxis *axes;
} Group;

typedef struct Partition {
    const Graph *graph;
    uint32_t n_groups;
    const Group *groups;
    const uint32_t *group_of;   /* [nodes]; NODE_NONE: in no group */
    const Residence *residence; /* [nodes] */
    const char *const *reason;  /* [nodes]: why it is in the workspace; null otherwise */
    const int32_t
        *result_of; /* [nodes]: the result it is written to when RESIDE_RESULT, else -1 */
} Partition;

/* fuse_node_bytes: of the whole value, for typical extents; saturating. */
int64_t fuse_node_bytes(const Graph *g, NodeRef n);

/* fuse.c: greedy, in program order; legality first, then capacity of `machine` for typical
 * extents. */
Partition *fuse_greedy(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine);
/* One group per node that is not an expression: what --no-fuse gives. */
Partition *fuse_none(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine);
/* Is the value only an expression of its operands (MAP, or a product that sums nothing)? */
bool node_is_expression(const Node *n);

/* fuse_verify.c: covering, in order (no group reads a later one), axes consistent, reductions
 * complete before use, residences possible. Reports as E_DUMP. */
bool fuse_verify(Ctx *ctx, const Partition *p, const char *stage);

/* fuse_dump.c, fuse_read.c: the graph, then its groups. Byte for byte both ways. */
void fuse_dump(const Partition *p, Text *out);
Partition *fuse_read(Ctx *ctx, Arena *arena, const Graph *g, const DumpLine *line);

/* Warns -Wspill for every value in the workspace (bytes for typical extents, reason). */
void fuse_warn_spills(Ctx *ctx, const Partition *p);

#endif
