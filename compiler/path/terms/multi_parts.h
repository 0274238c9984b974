/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of multi.h share: the nodes that cost, and what each term holds of them. Two
 * kinds of nodes, counted by reference:
 *     value  (key of a sub-network)             made by one contraction of two values
 *     apply  (map of a sum, map of its inside)  one contraction of a summed inside with a value
 * A term is a spine of applies from its sum down to one value. */
#ifndef PATH_TERMS_MULTI_PARTS_H
#define PATH_TERMS_MULTI_PARTS_H

#include "base/map.h"
#include "path/terms/multi.h"

typedef struct MultiNode { /* a value or an apply */
    uint32_t refs;
    uint32_t places, last; /* groups that could use it; the last of them, plus 1 */
    double cost;
    double weight; /* what its cost is multiplied by while trees are chosen; 0: 1 */
    uint32_t term, set,
        part; /* how it is made: of `set` of a term, the operands `part` and the rest */
    uint32_t child[2]; /* values; PATH_NONE */
} MultiNode;

typedef struct Held { /* what a term holds */
    uint32_t
        spine[MULTI_MOST + 1]; /* subsets, from all operands inwards; the last is a value */
    uint32_t n_spine;
} Held;

/* What a trial has changed, to be put back in reverse. */
typedef struct UndoNode {
    MultiNode *node;
    MultiNode was;
} UndoNode;

typedef struct UndoHeld {
    uint32_t term;
    Held was;
} UndoHeld;

typedef struct UndoTaken {
    uint32_t group, was;
} UndoTaken;

typedef struct Multi {
    const PathMulti *m;
    Ctx *ctx;
    Arena *scratch;
    bool factor;
    SymTable keys;
    VEC(MultiNode) value, apply;
    Map apply_of;         /* (outer map, inner map) to apply */
    uint32_t **value_key; /* by term, by subset */
    uint32_t **applies;   /* by term: all pairs of a set and an inner one, in order */
    uint32_t *pairs;      /* by term: how many */
    uint32_t **map_key;   /* by term, by subset: the map of what is around it */
    uint64_t *
        *met; /* by term, by subset: its labels that are open, in the term's own numbers */
    double **extent; /* by term, by own label */
    Held *held;
    uint32_t n_groups;
    uint32_t *group; /* n_groups + 1 offsets into the choices */
    PathChoice *choices;
    uint32_t *taken; /* by group: the choice held; PATH_NONE */
    double *best;    /* of the term at hand, by subset: as a value */
    double *spine_best;
    uint32_t *split, *spine_split;
    uint32_t *value_at, *value_group; /* by value: offsets, the groups that could use it */
    uint32_t *apply_at, *apply_group;
    bool trial; /* changes are written down */
    VEC(UndoNode) nodes;
    VEC(UndoHeld) helds;
    VEC(UndoTaken) takens;
    double total, share;
    uint64_t work, *choice_work; /* splits weighed so far, and for each choice */
} Multi;

/* Subsets in numbers. */
static inline bool set_single(uint32_t set)
{
    return (set & (set - 1)) == 0;
}

/* Pairs of a set of n operands and a set inside it: 3^n. */
static inline size_t multi_pairs(uint32_t n)
{
    size_t pairs = 1;
    for (uint32_t k = 0; k < n; k++) {
        pairs *= 3;
    }
    return pairs;
}

/* multi.c */
uint32_t multi_apply(Multi *g, uint32_t term, uint32_t set, uint32_t inner);
void multi_term_give(Multi *g, uint32_t term);
void multi_term_take(Multi *g, uint32_t term);
void multi_term_values(Multi *g, uint32_t term);

/* multi_tables.c: false after a diagnostic */
bool multi_begin(Multi *g);

/* multi_emit.c */
void multi_separate(Multi *g, PathMultiResult *out);
void multi_emit(Multi *g, PathMultiResult *out);

#endif
