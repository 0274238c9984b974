/* SPDX-License-Identifier: Apache-2.0 */
/* What a stored node reads once its INLINE operands are expanded: leaves of its expression, each with its
 * indices in the node's own labels. What a gather reads at values is read whole; an argument that nothing changes lies where it lies, and is none of them. Fusion, its verifier and the loop builder all reason on this list. */
#ifndef NEST_USES_H
#define NEST_USES_H

#include "nest/nest.h"

typedef struct Use {
    NodeRef node;  /* a stored node, or an INPUT */
    Access access; /* in the labels of the reading node */
    bool whole; /* of a view among the uses: what it reads, at positions that are affine in */
    uint32_t view; /* ... the labels of its reader (use_position); that use of the view */
    bool
        apart; /* of a contraction: a scale, or read where the sum begins; no factor that is cut */
} Use;

typedef struct UseList {
    VEC(Use) list;
} UseList;

/* Is operand `k` of the node such a one? */
bool node_reads_apart(const Graph *g, const Node *n, uint32_t k);
/* What stands for dimension `d` of the k-th piece of a join, or of what is gathered from (k 0), among the labels of an access: all of it, where loops make no part of a join.
 * Like a number, it is no label. */
#define PIECE_LABEL(k, d) (-2 - (int32_t)((k) * (RANK_LIMIT + 1) + (d)))

static inline bool is_piece_label(int32_t label)
{
    return label < -1;
}

/* Is use `i` one of those before it? */
bool use_is_again(const UseList *u, uint32_t i);
/* How many leaves it reads, without those that are `whole` or `apart`, which come last. */
uint32_t uses_count(const UseList *u);

/* ---- term.c ---- */
/* Is the node, which reads this, a contraction of two operands: a sum of products, or a fold of another term? */
bool nest_contracts(const Graph *g, const Residence *residence, NodeRef node, const UseList *u);
/* Operations of the term that the node folds, if it is no product; else 0. */
uint32_t nest_term_ops(const Graph *g, const Residence *residence, NodeRef node);

/* Appends the leaves `n` reads, then what the views among them read; a fold reads the
 * same element once, however often its term has it. residence[x] == RESIDE_INLINE says which operands are expanded. */
void node_uses(Arena *arena, const Graph *g, const Residence *residence, NodeRef n,
               UseList *out);

/* The same for an INLINE or leaf node that a result delivers as it is: in the node's own output labels 0..rank-1. */
void result_uses(Arena *arena, const Graph *g, const Residence *residence, NodeRef n,
                 UseList *out);

/* The position of dimension `d` that the use reads, in the labels of the reading node. */
Affine use_position(Arena *arena, const Graph *g, const UseList *u, const Use *use, uint32_t d);

#endif
