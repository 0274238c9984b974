/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, element by element, as terms; and contractions among these that are added up in one place. */
#ifndef NEST_ADDENDS_H
#define NEST_ADDENDS_H

#include "nest/parts.h"

#define NEST_SCALES 4 /* of one term */

/* What a term is multiplied by: -1 if negative, and numbers, nodes without dimensions. */
typedef struct NestFactor {
    bool negative;
    uint32_t n_scales;
    NodeRef scale[NEST_SCALES];
} NestFactor;

typedef struct NestTerm {
    NodeRef node;
    Access access; /* in the labels of the sum */
    NestFactor factor;
} NestTerm;

typedef struct NestTerms {
    VEC(NestTerm) list;
} NestTerms;

/* Appends the terms of stored node `sum`, in the order in which they are written. One that is no sum is a term itself. */
void nest_terms(Arena *arena, const Graph *g, const Residence *residence, NodeRef sum,
                NestTerms *out);
/* Is the term what parameter `param` was before, at the element of the sum? */
bool nest_term_is_old(const Graph *g, NodeRef sum, const NestTerm *t, uint32_t param);

/* Sets `sum_of`. */
void nest_find_addends(Arena *arena, NestFacts *f);
/* Decides which of them are added up where, of a nest whose values are derived and not in memory yet. `top` as nest_top_items. */
void nest_place_addends(Arena *arena, const NestFacts *f, const uint32_t *top, const Nest *nest,
                        NestValue *values);
/* Is the value of sum `s`, as its terms are placed, there without a statement of its own? */
bool nest_sum_is_made(Arena *arena, const Nest *nest, const Residence *residence, NodeRef s);
/* Is the sum in the place of its first addend? */
bool nest_has_place_of(const Nest *nest, NodeRef s, NodeRef base);

#endif
