/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations of a loop in which a mask leaves nothing to do. */
#ifndef NEST_MASKS_H
#define NEST_MASKS_H

#include "nest/nest.h"

#define MASK_CONDITIONS 8

/* Of a value: `value` where one of the conditions does not hold; none: nothing is known. */
typedef struct Mask {
    uint32_t n;
    Affine holds
        [MASK_CONDITIONS]; /* where that is at least 0, in the node's labels and open dims */
    Number value;
} Mask;

/* Of select(c, x, m), m a number. */
Mask nest_mask_of_select(Arena *a, const Graph *g, const Node *select);
/* An expression of an operand's labels, in labels of the node that reads it. */
Affine nest_mask_in_reader(Arena *a, const Node *operand, Access access, Affine x);

/* Positions of a loop outside of which all that its body adds up is what changes nothing: from `lo` on, below `hi`, as far as
 * either is known. Variables are loops around it (by their place among the items, at the first position of their tile) and
 * open dims. */
typedef struct MaskWindow {
    bool has_lo, has_hi;
    Affine lo, hi;
} MaskWindow;

/* Of loop `k`. What a mask makes 0 counts as 0 in products, whatever the other factor is. */
MaskWindow nest_mask_window(Arena *arena, const Nest *nest, uint32_t k);

/* Two labels of node `n`, of which a condition on what it folds compares the positions; *folded is one that it folds over. */
bool nest_mask_labels(Arena *arena, const Graph *g, NodeRef n, int32_t *folded, int32_t *other);
/* The part of the loop's iterations that is left, at typical extents, on average. */
double nest_mask_fraction(Arena *scratch, const Nest *nest, uint32_t k);

#endif
