/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: what planners, reader and verifier share. */
#ifndef NEST_PARTS_H
#define NEST_PARTS_H

#include "nest/nest.h"
#include "nest/uses.h"

/* What holds for a graph whatever its nest is, once its expressions are chosen. */
typedef struct NestFacts {
    const Graph *g;
    const Residence *residence; /* [nodes]: NONE, ARGUMENT, INLINE, or WORKSPACE: stored */
    const UseList *uses;        /* [nodes], of stored nodes */
    UseList late;             /* what is read after everything else, to deliver results that no
                                 leaf writes straight */
    const int32_t *result_of; /* [nodes]: the first result that delivers the stored node */
    const NodeRef *
        into; /* [nodes]: the contraction that alone reads it, and begins with it: in one place; or NODE_NONE */
    const uint32_t *reads; /* [nodes]: uses of it by stored nodes, and at the end */
    bool halos;            /* of a planner: may loops compute positions more than once? */
    uint32_t n_stored;
    const NodeRef *stored; /* [n_stored] ascending */
} NestFacts;

/* derive.c: `residence` says which nodes are stored. */
void nest_facts_of(Arena *arena, const Graph *g, const Residence *residence, NestFacts *f);
/* With expressions chosen by inline.c. */
void nest_facts(Arena *arena, const Graph *g, NestFacts *f);

/* Fills what is derived of the nest's `values`. */
void nest_derive(const NestFacts *f, const Nest *nest, NestValue *values);
/* Their bytes, when residences are known. */
void nest_set_bytes(const Nest *nest, NestValue *values);

/* place.c: values for the tree, as a planner wants them: derived, results written straight
 * where they may be, and small values that cross top-level items on chip. `machine` null: all
 * that cross are in memory. */
NestValue *nest_place(Arena *arena, const NestFacts *f, const Machine *machine,
                      const Nest *nest);

/* schedule.c: cuts the contractions among `values`, which are the nest's. */
void nest_set_schedules(Arena *arena, const NestFacts *f, const Machine *machine,
                        const Nest *nest, NestValue *values);

/* inline.c: RESIDE_INLINE for the expressions that are not stored, WORKSPACE for all else that
 * is needed. */
void nest_choose_inline(Arena *scratch, const Graph *g, const bool *needed,
                        const int32_t *result_of, Residence *residence);

/* Is the node a tensor but for being conjugated, or converted from the type of the parts: what a product of complex
 * numbers reads as it reads that tensor? */
bool nest_is_factor(const Graph *g, const Residence *residence, NodeRef n);

/* in_place.c: the first of the contractions in the tree that are added up where `n` is, `n` the last of them. */
NodeRef nest_first_of(const NestFacts *f, const uint32_t *top, NodeRef n);
/* May node `r` write inout parameter `param` in place? Not while anything still has
 * to read the old value elsewhere than at the element being written. `top[n]` orders leaves by
 * the top-level item they stand in. */
bool nest_may_overwrite(Arena *arena, const NestFacts *f, const uint32_t *top, NodeRef r,
                        uint32_t param);
/* May `n` take the place of `p`, element by element? Residences, allocation loops and last readers are
 * known, and nobody else has taken it. */
bool nest_may_take(const NestFacts *f, const Nest *nest, const NestValue *values, NodeRef n,
                   NodeRef p);
/* Is all that `n` reads of `p` the element it writes? */
bool nest_reads_own_element(const NestFacts *f, NodeRef n, NodeRef p);
/* Top-level item of every stored node's leaf; NEST_NONE for others. */
uint32_t *nest_top_items(Arena *arena, const Nest *nest);

/* live.c: places of blocks, each in the body of a loop (NEST_NONE: the kernel's), and the items
 * from..to-1 during which something lives in it. Of a nest whose values are placed. */
typedef struct NestPlaceLife {
    uint32_t alloc_loop, from, to;
    int64_t bytes; /* of the largest block in it, for typical extents */
} NestPlaceLife;
typedef struct NestPlaces {
    VEC(NestPlaceLife) list;
    const uint32_t *of; /* [nodes]: 1 + the place of its block, or 0 */
    const uint32_t *
        allocs_before; /* [items + 1]: places whose allocation loop is a loop before the item */
} NestPlaces;
void nest_places(Arena *arena, const Nest *nest, NestPlaces *out);
/* The most bytes of blocks of loop `loop` and of loops inside that live at once. */
double nest_peak(Arena *scratch, const Nest *nest, const NestPlaces *places, uint32_t loop);
/* [nodes]: the most bytes that live at any time while its block does, of blocks of up to `most`
 * bytes. */
int64_t *nest_beside(Arena *arena, const Nest *nest, const NestPlaces *places, double most);
/* The item of the body of loop `alloc_loop` that is item `at` or has it inside. */
uint32_t nest_item_in(const Nest *nest, uint32_t alloc_loop, uint32_t at);

/* axes.c: the axes that all of `nodes` (ascending) have in common and could be looped over
 * together. Returns their number, written to *axes (from `arena`). `online`: those too that one of
 * them is folded over although another reads it, if the graph has a rule that may allow it; and those along which
 * views shift, if the facts say that there are halos. */
uint32_t nest_common_axes(Arena *arena, const NestFacts *f, uint32_t n_nodes,
                          const NodeRef *nodes, bool online, const NestAxis **axes);
/* halo.c: the label of the reader with which the position moves one by one, other labels moving it only as far as a number; or -1. */
int32_t halo_label(const Graph *g, const Node *reader, Affine x);
/* Finds the extent and the halos of an axis whose nodes read each other at such positions. False: there is no such loop. */
bool halo_set(Arena *arena, const NestFacts *f, NestAxis *axis);
/* Does one of its nodes fold over the axis? */
bool nest_axis_is_folded(const Graph *g, const NestAxis *axis);

/* online.c: do all loops that say `online` hold only what may follow? The nest's values are placed. */
bool nest_online_is_legal(Arena *scratch, const NestFacts *f, const Nest *nest);

/* tree.c: a tree being made or changed, as items with depths instead of links. */
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
/* ---- recurrence.c ---- Adds what the steps of recurrences take. */
void price_add_steps(const Machine *machine, const Nest *nest, NestCost *cost);

/* The nest that the tree is, placed and priced. */
Nest *nest_of_tree(Ctx *ctx, Arena *arena, const NestFacts *facts, const Machine *machine,
                   const Tree *tree);
Tree tree_around(Arena *arena, const Graph *g, const Tree *from, uint32_t k, uint32_t n,
                 const int32_t *label, const int64_t *tile);
/* Items with links, axes that are equal shared; values are not set. */
Nest *tree_nest(Arena *arena, const Graph *g, const Tree *t);

/* parallel.c */

/* threads.c: marks what threads best share, in a nest that has schedules; `loops`, if not null: of each item, those that may be put around
 * it for them. */
struct LeafLoops;
void nest_share(Ctx *ctx, Arena *arena, const Machine *machine, Nest *nest,
                struct LeafLoops *loops);
/* May iterations of the loop run at the same time? */
bool nest_may_share(const Machine *machine, const Nest *nest, uint32_t k);
/* The same nest or, where threads gain by loops around leaves that stand in none, one with these; so *tree. `make` gives the placed and
 * priced nest of a tree. */
typedef Nest *NestOfTree(const void *with, const Tree *tree);
/* masked.c: the same with two loops around leaves that fold what a mask leaves of two indices, where it is cheaper for them. */
Nest *nest_with_masks(Arena *arena, const Machine *machine, Nest *nest, Tree *tree,
                      NestOfTree *make, const void *with);
Nest *nest_with_loops(Ctx *ctx, Arena *arena, const Machine *machine, Nest *nest, Tree *tree,
                      NestOfTree *make, const void *with);

/* triangle.c: is there a sum over pairs, or a stored value that is its own mirror image, of which each pair need be looked at only
 * once? */
bool nest_has_pairs(const NestFacts *f);
/* Loops over such pairs begin at each other's tiles, where the machine has such loops; the nest's values are placed. */
void nest_set_pairs(Arena *arena, const NestFacts *f, const Machine *machine, Nest *nest);

/* search.c: nest_choose, in `most` steps at most. */
Nest *nest_choose_within(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                         uint32_t effort, uint64_t most);

/* slices.c: items for a sliced contraction; see there. */

#endif
