/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations of a loop in which a mask leaves nothing to do. */
#ifndef NEST_MASKS_H
#define NEST_MASKS_H

#include "nest/nest.h"

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
/* The part of a contraction's terms that conditions leave (`where`), or that is needed of it, at typical extents; 1 where a loop cuts the
 * labels. */
double nest_mask_present(Arena *scratch, const Nest *nest, NodeRef node, bool needed);
/* Does the condition x >= 0 compare the positions of a label that the node folds over and of one of its result, of one extent? Then the sign
 * of the folded one, 1 or -1; or 0. */
int64_t mask_compares(const Node *n, const Affine *x, int32_t *folded, int32_t *other);
/* Does the node fold over a band of known width beside each position of a label of its result, 0 <= i - j < 100? Then the width, and *folded;
 * or 0. */
int64_t nest_mask_band(Arena *scratch, const Graph *g, NodeRef n, int32_t *folded,
                       int32_t *other);
/* The part of the loop's iterations that is left, at typical extents, on average. */
double nest_mask_fraction(Arena *scratch, const Nest *nest, uint32_t k);

#endif
