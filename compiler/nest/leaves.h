/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leaves.def, and what is asked of a leaf whatever its kind is. */
#ifndef NEST_LEAVES_H
#define NEST_LEAVES_H

#include "nest/nest.h"

/* Labels of the node, or -1. */
typedef struct LeafShape {
    int32_t alone[PLACE_KEYS]; /* no loop is along it */
    uint32_t
        n_once; /* of so many of these the leaf looks at one position for each of the other labels */
    bool whole;   /* no loop is along any */
    bool ordered; /* threads share no loop: what the leaf stores depends on the order */
    bool
        ranges; /* threads share positions of alone[0], where no loop is around: each takes what goes to its own */
} LeafShape;

/* May no loop be along the label? */
bool leaf_is_alone(const LeafShape *shape, int32_t label);
/* Does the leaf look at one position of it for each of the others? */
bool leaf_is_once(const LeafShape *shape, int32_t label);

/* Is a leaf that computes node `n` of this kind, on this machine (null: on any)? The nest's values are placed. */
typedef bool LeafApplies(Arena *arena, const Machine *machine, const Nest *nest,
                         const NestValue *values, NodeRef n, LeafShape *out);
#define LEAF(id, word, applies, lowers, refused) LeafApplies applies;
#include "nest/leaves.def"

const char *leaf_word(LeafKind kind);
/* Sets the kinds of plain leaves: where the machine is null, those alone that the node says. */
void nest_set_leaves(Arena *arena, const Machine *machine, const Nest *nest, NestValue *values);
LeafShape nest_leaf_shape(Arena *scratch, const Nest *nest, NodeRef n);
/* What is wrong with the kind of the leaf that is this item, or null. */
const char *nest_leaf_problem(Arena *scratch, const Nest *nest, uint32_t item);

#endif
