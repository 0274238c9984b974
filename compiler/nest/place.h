/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a tree: where values live, and how long. */
#ifndef NEST_PLACE_H
#define NEST_PLACE_H

#include "nest/facts.h"

/* Fills what is derived of the nest's `values`. */
void nest_derive(const NestFacts *f, const Nest *nest, NestValue *values);
/* Their bytes, when residences are known. */
void nest_set_bytes(const Nest *nest, NestValue *values);

/* place.c: values for the tree, as a planner wants them: derived, results written straight
 * where they may be, and small values that cross top-level items on chip. `machine` null: all
 * that cross are in memory. */
NestValue *nest_place(Arena *arena, const NestFacts *f, const Machine *machine,
                      const Nest *nest);

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

/* online.c: do all loops that say `online` hold only what may follow? The nest's values are placed. */
bool nest_online_is_legal(Arena *scratch, const NestFacts *f, const Nest *nest);

/* triangle.c: is there a sum over pairs, or a stored value that is its own mirror image, of which each pair need be looked at only
 * once? */
bool nest_has_pairs(const NestFacts *f);
/* Loops over such pairs begin at each other's tiles, where the machine has such loops; the nest's values are placed. */
void nest_set_pairs(Arena *arena, const NestFacts *f, const Machine *machine, Nest *nest);

#endif
