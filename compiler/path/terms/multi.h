/* SPDX-License-Identifier: Apache-2.0 */
/* Several statements at once: sums of contractions over shared tensors. Each term gets a tree; an intermediate that is
 * equal to another up to renaming of labels is computed once; and by linearity, terms of one sum that end in the same
 * contraction with the same factor are added before it (a B + c B = (a + c) B), to any depth. Additions, scalings
 * and permutations are free, a contraction costs the product of its labels' extents. */
#ifndef PATH_TERMS_MULTI_H
#define PATH_TERMS_MULTI_H

#include "path/path.h"

#define MULTI_MOST  12                  /* operands of one term */
#define MULTI_PAIRS ((uint64_t)1 << 22) /* splits of all terms, for factoring */

typedef struct PathTerm {
    uint32_t n_operands;
    const uint32_t
        *tensor; /* by operand: which tensor, any number; equal numbers are equal data */
    const PathLabels *operands; /* labels by axis */
    PathLabels output;          /* labels by axis of the sum it is added to */
    uint32_t sum; /* which sum; terms of one sum are added (whatever follows is linear) */
} PathTerm;

/* A way to compute something: all the terms [first, first + n). Choices of equal `group` are
 * alternatives, and stand side by side. */
typedef struct PathChoice {
    uint32_t group, first, n;
} PathChoice;

typedef struct PathMulti {
    uint32_t n_terms;
    const PathTerm *terms;
    uint32_t n_labels;
    const int64_t *sizes; /* by label */
    bool factor;          /* use linearity, where the terms have MULTI_PAIRS splits at most */
    uint64_t budget;      /* splits that may be weighed beyond a first descent; 0: none */
    uint32_t n_choices;   /* 0: every term is computed */
    const PathChoice *choices;
} PathMulti;

/* A step of a term's tree. Steps of equal `value` make the same tensor, `legs` matching one by one. A step with an
 * `apply` other than PATH_NONE contracts a sum: the operand `a` of all steps with that number is added up first (their
 * legs match one by one), then contracted once with `b`. */
#define PATH_NONE UINT32_MAX
typedef struct PathTermStep {
    uint32_t a, b; /* as in PathStep */
    uint32_t value, apply;
    PathLabels legs;       /* of the result, in the order of `value` */
    PathLabels apply_legs; /* of operand a, in the order of `apply` */
} PathTermStep;

typedef struct PathMultiResult {
    PathTermStep **steps; /* by term; n_operands - 1 each; null: of a choice not taken */
    const char *separate; /* multiply-adds, each term (of first choices) by itself at its best,
                             as digits */
    const char *shared;   /* multiply-adds of this result */
    double log10_shared;
} PathMultiResult;

/* False after a diagnostic (a term of too many operands). */
bool path_multi(const PathMulti *m, Ctx *ctx, PathMultiResult *out);

/* A contraction that is added to a result in several orders of its axes: result axis d is axis
 * `axis[d]` of term.output. term.sum: which result. */
typedef struct PathOrder {
    double coef; /* not 0 */
    const uint32_t *axis;
} PathOrder;

typedef struct PathSummand {
    PathTerm term;
    uint32_t n_orders;
    const PathOrder *orders;
} PathSummand;

/* Equal networks are one term, and terms that are added in the same orders are one sum. */
typedef struct PathSumOrders {
    uint32_t result, n_axes, n_orders;
    const PathOrder *orders; /* axes of the sum */
} PathSumOrders;

typedef struct PathMerged {
    uint32_t n_terms, n_sums, n_choices;
    PathTerm *terms;   /* sum: index into `sums` */
    double *coef;      /* by term: its share of the sum */
    uint32_t *summand; /* by term: where its network comes from */
    PathChoice *choices;
    PathSumOrders *sums;
} PathMerged;

/* m: labels and sizes. Terms have 1 to MULTI_MOST operands. */
void path_merge(const PathMulti *m, const PathSummand *summands, uint32_t n, Ctx *ctx,
                PathMerged *out);

/* A network of one term, reduced to what renaming cannot change. `member`: the operands of interest, as bits. With
 * `context` the key is of all the others and the output, with the members as one unknown tensor (a linear
 * map); else of the members. legs: the labels that members share with the rest, in the key's order; order: the
 * operands in the key's order (room for MULTI_MOST). Both may be null. */
Sym canon_key(SymTable *table, const PathMulti *m, const PathTerm *t, uint32_t member,
              bool context, Arena *arena, PathLabels *legs, uint32_t *order);

#endif
