/* SPDX-License-Identifier: Apache-2.0 */
/* Several statements at once: sums of contractions over shared tensors. Each term gets a tree;
 * an intermediate that is equal to another up to renaming of labels is computed once; and by
 * linearity, terms of one sum that end in the same contraction with the same factor are added
 * before it (a B + c B = (a + c) B), to any depth. Additions, scalings and permutations are
 * free, a contraction costs the product of its labels' extents. */
#ifndef PATH_MULTI_H
#define PATH_MULTI_H

#include "path/path.h"

#define MULTI_MOST 12 /* operands of one term */

typedef struct PathTerm {
    uint32_t n_operands;
    const uint32_t
        *tensor; /* by operand: which tensor, any number; equal numbers are equal data */
    const PathLabels *operands; /* labels by axis */
    PathLabels output;          /* labels by axis of the sum it is added to */
    uint32_t sum; /* which sum; terms of one sum are added (whatever follows is linear) */
} PathTerm;

typedef struct PathMulti {
    uint32_t n_terms;
    const PathTerm *terms;
    uint32_t n_labels;
    const int64_t *sizes; /* by label */
    bool factor;          /* use linearity */
} PathMulti;

/* A step of a term's tree. Steps of equal `value` make the same tensor, `legs` matching one by
 * one. A step with an `apply` other than PATH_NONE contracts a sum: the operand `a` of all
 * steps with that number is added up first (their legs match one by one), then contracted once
 * with `b`. */
#define PATH_NONE UINT32_MAX
typedef struct PathTermStep {
    uint32_t a, b; /* as in PathStep */
    uint32_t value, apply;
    PathLabels legs;       /* of the result, in the order of `value` */
    PathLabels apply_legs; /* of operand a, in the order of `apply` */
} PathTermStep;

typedef struct PathMultiResult {
    PathTermStep **steps; /* by term; n_operands - 1 each */
    const char *separate; /* multiply-adds, each term by itself at its best, as digits */
    const char *shared;   /* multiply-adds of this result */
    double log10_separate, log10_shared;
} PathMultiResult;

/* False after a diagnostic (a term of too many operands). */
bool path_multi(const PathMulti *m, Ctx *ctx, PathMultiResult *out);

/* A network of one term, reduced to what renaming cannot change. `member`: the operands of
 * interest, as bits. With `context` the key is of all the others and the output, with the
 * members as one unknown tensor (a linear map); else of the members. legs: the labels that
 * members share with the rest, in the key's order; order: the operands in the key's order (room
 * for MULTI_MOST). Both may be null. */
Sym canon_key(SymTable *table, const PathMulti *m, const PathTerm *t, uint32_t member,
              bool context, Arena *arena, PathLabels *legs, uint32_t *order);

#endif
