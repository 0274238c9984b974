/* SPDX-License-Identifier: Apache-2.0 */
/* The nest: every decision below the contraction order, as one tree. An overlay on a BINARY
 * graph: the graph is not cut, another nest is free to try.
 *
 *     nest {
 *       axis i [%3[a], %12[a]]
 *       axis j [%3[c], %12[c]]
 *       for i step 2 parallel {
 *         for j step 2 {
 *           %3 tile              ; T: [2,v,2,v]
 *           %12 result 0         ; E folds both loops
 *         }
 *       }
 *     }
 *
 * Items are loops and leaves, in the order in which they run. A leaf computes one node; a loop
 * runs over an axis in tiles. An axis is one label in each of several nodes: all of them are
 * computed tile by tile along it. Of what a view reads at shifted positions there are more: `%5[a+1:3]` are positions 1, 2 and 3
 * from that of the axis on, so a tile of T needs T + 2. What a loop does not cut is whole inside the statement.
 * Expressions that are recomputed where they are used (RESIDE_INLINE) have no leaf.
 *
 * From the tree follows (derive.c) where a value lives: its allocation loop is the innermost loop around
 * its writer and all its readers (the writer of a fold over loops counts as standing outside of
 * the outermost of these); its block has, along each dimension, the tile of the innermost loop
 * of that axis at or around that loop, with its halo, or the whole extent.
 *
 * Where sizes of an open dim differ much, a kernel has a nest for each of some ranges of them:
 *
 *     nest {
 *       when o < 17 ~ 8 {      ; made for o = 8
 *         ...
 *       }
 *       when 16 < o ~ 64 {     ; the one for the typical size
 *
 * One of them is run in a call. Each is a legal nest by itself, right for every size.
 *
 * What must hold (verify.c, which shares no code with the planners):
 *   presence   every leaf under a loop has its axis, or says `again`: it is computed again at
 *              each position, and nothing outside the loop reads it
 *   agreement  a value made and read under a loop is read with the reader's label of the axis,
 *              at offset 0
 *   halos      or at positions that a view says: that label, and numbers or labels of known extents. All positions at which
 *              the readers in the loop read it, with their own halos, are its halo; it lives in the loop, and is not folded over
 *              it. Loops over pairs and online loops have none
 *   complete   nothing under a loop reads a value that is folded over it; but if the loop says
 *              `online`, folds do that follow it by a rule of the graph, and blocks that live in
 *              the loop: they hold what an iteration knows
 *   order      writers come before readers
 *   parallel   what folds over a parallel loop is a sum of its own, and the loop an outermost one that is not online: each
 *              iteration is a leaf with its own part of the sum, and the parts are joined in order (lower/leaves.c)
 *   kinds      a leaf is of the kind that it says, and no loop cuts what that leaves whole (leaves.def)
 *   in place   an inout argument, or the block of another value, is overwritten only when nobody
 *              reads the old value later
 *   delivered  what is computed again is no result
 *   begins     what a contraction begins with is complete before the outermost loop that it folds over;
 *              but a contraction that nothing else reads, and that it reads element by element, is added
 *              up in the place of the one that begins with it (`%3 into %4`), and may be folded over the same loops
 *   tiles      a tile is cut again only into equal, smaller ones
 *   pairs      a loop `from` another around it, by equal tiles or whole numbers of them over an equal
 *              extent, begins at that one's tile, each pair of tiles coming once. What leaves its body
 *              are sums over both, by equal tiles, whose terms stay with the two indices exchanged: off
 *              the diagonal they count twice; and values that say `both`: they are the same with the two
 *              indices exchanged, or their negative, and are stored at the mirrored place too, after the
 *              loop. Those overwrite nothing, and of the indices that are exchanged with them no loop
 *              around cuts any. No other loop has either axis, and none around or inside is
 *              of this kind */
#ifndef NEST_NEST_H
#define NEST_NEST_H

#include "dump/tree.h"
#include "graph/graph.h"
#include "schedule/schedule.h"
#include "target/target.h"

typedef enum Residence {
    RESIDE_NONE,      /* not needed */
    RESIDE_ARGUMENT,  /* a parameter */
    RESIDE_VIEW,      /* positions of another value, read where that is */
    RESIDE_RESULT,    /* written straight into a result or inout argument */
    RESIDE_INLINE,    /* an expression; lives in registers where it is used */
    RESIDE_TILE,      /* a block on chip */
    RESIDE_WORKSPACE, /* memory between top-level items: a spill */
    RESIDE_INTO,      /* a sum in the place of the one that begins with it */
    RESIDE_COUNT
} Residence;

const char *
residence_name(Residence r); /* "argument", "result", "register", "tile", "workspace", "into" */

static inline bool residence_is_stored(Residence r)
{
    return r == RESIDE_RESULT || r == RESIDE_TILE || r == RESIDE_WORKSPACE || r == RESIDE_INTO;
}

/* Of what no loop makes. */
static inline bool residence_is_read_in_place(Residence r)
{
    return r == RESIDE_ARGUMENT || r == RESIDE_VIEW;
}

#define NEST_NONE UINT32_MAX

/* Loops around one leaf. */
#define NEST_DEPTH 64

/* Nodes of a graph beyond which a price takes so long that two are all there is time for, of no
 * fusion and of greedy fusion. */
#define NEST_LARGE 4096

/* Nests of one kernel. */
#define NEST_SIZES 8

/* Positions of a value beside one position of an axis, [from, from + count): those at which its readers under the loop read it,
 * where they read it at shifted positions. An iteration of tile T computes T + count - 1 positions, the last ones of the
 * iteration before once more. Count 0: the position itself, of an axis as long as the label. */
typedef struct NestHalo {
    int64_t from, count;
} NestHalo;

typedef struct NestAxis {
    Dim extent;
    uint32_t n;           /* nodes that have it, */
    const NodeRef *node;  /* [n] ascending, */
    const int32_t *label; /* [n] and which of their labels it is */
    const NestHalo *halo; /* [n], or null: no node has one */
    bool online; /* of a planner: one of them is folded over it, and another reads that */
} NestAxis;

typedef struct NestItem {
    uint32_t parent; /* the loop it stands in, or NEST_NONE */
    uint32_t end;    /* first item after it and its body */
    uint32_t axis;   /* of a loop; NEST_NONE: a leaf */
    int64_t tile;    /* loop: positions of one iteration, >= 1 */
    bool parallel;   /* loop: iterations may run at the same time */
    uint32_t from;   /* loop: 0, or 1 + the loop around it at whose tile it begins */
    bool online;     /* loop: something in it reads a fold over it, so far */
    NodeRef node;    /* leaf */
    bool recompute;  /* leaf: computed again along axes around it that it lacks */
    bool mirror;     /* leaf: stored at the mirrored place too, of loops over pairs */
    Span span;       /* its line of the dump that it was read from; else no place */
} NestItem;

typedef enum LeafKind {
#define LEAF(id, word, applies, lowers, refused) LEAF_##id,
#include "nest/leaves.def"
    LEAF_COUNT
} LeafKind;

/* Of a node of the graph. `residence`, `result`, `in_place`, `schedule` and `kind` are decisions, the
 * rest is derived. */
typedef struct NestValue {
    Residence residence;
    int32_t result;   /* RESIDE_RESULT: of the graph's results, which; else -1 */
    NodeRef in_place; /* RESIDE_TILE, RESIDE_WORKSPACE: it takes this value's place, element by
                         element; RESIDE_INTO: this one begins with it; or NODE_NONE */
    const Schedule
        *schedule;       /* of a contraction, over the labels that its loops leave more than
                                 one position of; null: plain loops */
    LeafKind kind;       /* how its leaf computes it */
    uint32_t item;       /* its leaf, or NEST_NONE */
    uint32_t alloc_loop; /* loop in whose body the block lives; NEST_NONE: the kernel's */
    uint32_t fold;       /* outermost loop around the leaf that it folds over, or NEST_NONE */
    uint32_t last;       /* last item that reads it (its leaf when none does) */
    int64_t bytes;       /* where it lives, for typical extents; saturating */
} NestValue;

/* For typical extents; price.c says how. */
typedef struct NestCost {
    double seconds;    /* arithmetic and all waits, */
    double path;       /* ... of as many threads as the machine has: their longest way */
    double arithmetic; /* seconds of it that no traffic hides */
    double waits[MACHINE_LEVELS]; /* seconds that leaves wait for each level, their slowest */
    double bytes[MACHINE_LEVELS]; /* that leave each level for the one inside of it, or come
                                     back */
    int64_t multiply_adds;        /* with what loops compute again; saturating */
    int64_t saved;                /* multiply-adds that looking at each pair once saves */
    int64_t spilled; /* bytes of values in the workspace, written once and read once */
} NestCost;

/* One nest of several. */
typedef struct NestSize {
    DimTest when;
    int64_t size; /* that it is made for: the typical one of its graph */
    struct Nest *nest;
} NestSize;

typedef struct Nest {
    const Graph *graph;
    uint32_t n_axes, n_items;
    const NestAxis *axes;
    const NestItem *items;     /* preorder */
    const NestValue *values;   /* [nodes] */
    NestCost cost;             /* of this nest */
    NestCost unfused;          /* and of none at all */
    double compulsory;         /* bytes of the outermost level that every nest moves */
    uint64_t steps;            /* of the search: trees priced */
    bool goes_on;              /* other searches follow, which may take as many; printed then */
    const struct Nest *second; /* of the search: the cheapest that it turned down, or null, */
    const char *turned_down;   /* and why, as a phrase */
    /* Of the nest for typical extents, where other sizes of a dim have others: all of them in
     * ascending order, itself too. The graphs of the others differ in the typical size. */
    uint32_t n_sizes;
    const NestSize *sizes;
} Nest;

/* The nests of a kernel, of which `nest` is the one for typical extents. */
static inline uint32_t nest_count(const Nest *nest)
{
    return nest->n_sizes == 0 ? 1 : nest->n_sizes;
}

static inline const Nest *nest_at(const Nest *nest, uint32_t k)
{
    return nest->n_sizes == 0 ? nest : nest->sizes[k].nest;
}

static inline bool nest_is_loop(const NestItem *item)
{
    return item->axis != NEST_NONE;
}

/* Is item `at` the loop or in it? */
static inline bool nest_is_in(const Nest *nest, uint32_t at, uint32_t loop)
{
    return at != NEST_NONE && loop <= at && at < nest->items[loop].end;
}

/* ---- nest.c ---- */

/* The node's label on the axis, or -1. */
int32_t nest_axis_label(const NestAxis *axis, NodeRef n);
/* The same of a loop; and does the node fold over it? */
int32_t nest_loop_label(const Nest *nest, uint32_t loop, NodeRef n);
bool nest_folds_over(const Nest *nest, uint32_t loop, NodeRef n);
/* Positions of the loop's axis, for typical extents: at least 1. */
int64_t nest_loop_extent(const Nest *nest, uint32_t loop);
/* Does one of its nodes fold over the axis? */
bool nest_axis_is_folded(const Graph *g, const NestAxis *axis);
/* Is the axis one of a sliced contraction, whose loops all its trees have, to have little in memory at once? */
bool nest_is_slice(const Graph *g, const NestAxis *axis);
/* Loops at and around item `at` (NEST_NONE: 0). */
uint32_t nest_depth(const NestItem *items, uint32_t at);
/* Loops whose bodies end with item `k`: what a walk over the items closes behind it. */
uint32_t nest_loops_ending(const Nest *nest, uint32_t k);
/* The innermost loop at or around item `at` (NEST_NONE: none) that cuts label `l` of `n`, or
 * NEST_NONE. */
uint32_t nest_loop_of(const Nest *nest, uint32_t at, NodeRef n, int32_t l);
/* The item of the body of loop `alloc_loop` (NEST_NONE: the kernel) that is item `at` or has it inside. */
uint32_t nest_item_in(const Nest *nest, uint32_t alloc_loop, uint32_t at);
/* The node's halo along the loop; and the positions of it that one iteration computes. */
NestHalo nest_halo(const Nest *nest, uint32_t loop, NodeRef n);
int64_t nest_loop_span(const Nest *nest, uint32_t loop, NodeRef n);
/* Is every tile of the loop whole, whatever the open extents are? */
bool nest_loop_is_full(const Nest *nest, uint32_t loop);
/* The value in whose place the node is: the last of those that begin with each other, or itself. */
NodeRef nest_place_of(const Nest *nest, NodeRef n);
/* Is what the contraction begins with where it is added up, without a statement that puts it there? */
bool nest_begins_there(const Nest *nest, NodeRef n);
/* May what is read at the beginning of `n` be made where `n` is? */
bool nest_goes_into(const Node *n, const Node *init);
/* Positions of dimension `d` in the node's block when it lives at `alloc_loop`, for typical extents. */
int64_t nest_block_extent(const Nest *nest, NodeRef n, uint32_t alloc_loop, uint32_t d);
/* Elements of the node's block when it lives at `alloc_loop`, for typical extents; saturating. */
int64_t nest_block_elements(const Nest *nest, NodeRef n, uint32_t alloc_loop);
/* Bytes of the whole value, for typical extents; saturating. */
int64_t nest_node_bytes(const Graph *g, NodeRef n);
/* The extent that decisions are made for: the typical one, but 1 where that is 0. Nothing takes time there, and tiles,
 * trips and prices are divided by extents. */
int64_t nest_typical(const Graph *g, Dim d);
/* Is the value only an expression of its operands (MAP, or a product that sums nothing)? */
bool node_is_expression(const Node *n);
/* The same graph with another typical size of an open dim. */
const Graph *nest_graph_at(Arena *arena, const Graph *g, int32_t dim, int64_t size);

/* Dense steps go through matrices in blocks of so many rows (lower/dense.c). */
#define DENSE_BLOCK 64

#endif
