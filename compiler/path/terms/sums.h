/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of contractions in a graph: trees of additions, subtractions, negations and products with
 * constants, taken apart into what they add. What the distributive law may be used on. */
#ifndef PATH_TERMS_SUMS_H
#define PATH_TERMS_SUMS_H

#include "graph/graph.h"

#define SUM_OPERANDS 8 /* of a contraction that is taken into a sum */

/* One thing that is added. A contraction is there for the sum alone and has all its dimensions, in
 * the order `axis`: result dimension d is its dimension axis[d]. Anything else is read by
 * `access`, its labels the result's dimensions. */
typedef struct SumPiece {
    NodeRef node;
    double coef;
    Access access;
    const uint32_t *axis; /* null: not a contraction to be planned */
} SumPiece;

typedef struct GraphSum {
    NodeRef root;
    VEC(SumPiece) pieces; /* from left to right */
    uint32_t n_contractions;
} GraphSum;

typedef struct GraphSums {
    VEC(GraphSum) list;
    uint32_t *of; /* by node: 1 + the sum whose root or part it is; 0: none */
} GraphSums;

/* Only sums with two contractions or more. */
GraphSums sums_find(Arena *arena, const Graph *g);

#endif
