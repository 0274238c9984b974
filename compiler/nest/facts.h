/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for a graph whatever its tree of loops is, once its expressions are chosen. */
#ifndef NEST_FACTS_H
#define NEST_FACTS_H

#include "nest/uses.h"

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
/* `residence` says which nodes are stored. */
void nest_facts_of(Arena *arena, const Graph *g, const Residence *residence, NestFacts *f);
/* With the expressions that the nest has. */
void nest_facts_in(Arena *arena, const Nest *nest, NestFacts *f);
/* With expressions chosen by inline.c. */
void nest_facts(Arena *arena, const Graph *g, NestFacts *f);

/* inline.c: RESIDE_INLINE for the expressions that are not stored, WORKSPACE for all else that
 * is needed. */
void nest_choose_inline(Arena *scratch, const Graph *g, const bool *needed,
                        const int32_t *result_of, Residence *residence);
/* Is the node a tensor but for being conjugated, or converted from the type of the parts: what a product of complex
 * numbers reads as it reads that tensor? */
bool nest_is_factor(const Graph *g, const Residence *residence, NodeRef n);

#endif
