/* SPDX-License-Identifier: Apache-2.0 */
/* Views: the tile that holds an operand over a box of labels, found or made. */
#ifndef BACKEND_NKI_VIEW_H
#define BACKEND_NKI_VIEW_H

#include "backend/nki/open_loops.h"

TileView view_of(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* What an engine walks as it lies in at most so many dimensions, without a copy: *out is its first element of each partition, `step` of each
 * label of `f` the elements from one position to the next. False, and nothing done: there is no such tile. */
bool view_walked(Lower *l, const Place *x, Labels p, Labels f, const Box *box, uint32_t most,
                 TileView *out, int64_t *step);
/* The same as an access pattern. */
bool view_pattern(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out);
/* The view of what is used in each iteration of a loop that it does not move with: what all iterations of loops inside of that see is then made
 * before it, side by side in a tile, where there is room; likewise what is turned in loops that are open beyond the `block`'s. */
TileView view_in_loops(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                       uint32_t block);
/* How the elements of a block on chip move along its free axis with the loops that stay; or null. */
const Affine *block_moves(const Lower *l, const Place *x);
/* How far the element moves on the free axis of a block with a label; of rows, with whole chunks of them. */
int64_t block_stride(const Lower *l, const Place *x, uint32_t label);
/* The label along which the place lies contiguous in HBM, or LABELS. */
uint32_t view_unit(const Lower *l, const Place *x);
/* Rows of memory as they lie, from which a view is read as an access pattern. */
typedef struct Slab {
    Place place; /* its own labels for the dimensions that have several positions */
    Labels p, rows;
    Box box;
    int64_t elements;     /* of a partition */
    int64_t run;          /* elements that follow each other in HBM */
    int64_t first;        /* of the view, in the slab */
    int64_t step[LABELS]; /* of the view's labels there */
    Affine moves;         /* how the view moves there with loops, */
    uint32_t depth;       /* inside of so many */
    Labels free;          /* of the view, those that vary */
    int64_t copied;       /* elements that one copy walks */
    double loads, direct; /* descriptors of a view by way of it, and without */
} Slab;
/* Does such a slab need fewer descriptors than the view by itself? */
bool view_slab(Lower *l, const Place *x, Labels p, Labels f, const Box *box, Slab *out);
/* Is a row quicker spread over partitions by a DMA that reads it for each of them than by a matmul with ones? */
bool view_spreads(const Lower *l, const Place *x, Labels f, const Box *box, int64_t partitions);
/* Elements at the end of the free axis that follow each other in HBM. */
int64_t view_run(const Lower *l, const Place *x, Labels f, const Box *box);
/* The run of the free axis of a block on chip that the labels `f` of the box are, if they are one. */
bool view_block_run(const Lower *l, const Place *x, Labels f, const Box *box, TileView *out);
/* Does the view take transposes on the Tensor engine? */
bool view_turns(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* Writes a tile of the box to where `x` lives. */
void view_store(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView src);
TileView view_broadcast(Lower *l, TileView row, int64_t np);

#endif
