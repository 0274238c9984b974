/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of views (view.c, view_store.c). */
#ifndef BACKEND_NKI_VIEW_PARTS_H
#define BACKEND_NKI_VIEW_PARTS_H

#include "backend/nki/view.h"

/* Position of a box's first point on the free axis `f` of `whole`, and the stride of its label `along` there. */
int64_t view_linear(Labels f, const Box *whole, const Box *part, uint32_t along,
                    int64_t *stride);
/* First element of the box in a block: partition and free position. */
void view_block_start(const Lower *l, const Place *x, const Box *box, int64_t *p, int64_t *f);
/* view_turn.c: of an operand that is made of another (Turn). */
TileView turn_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* view_gather.c: are rows of the view short in HBM, and long where labels of its free axis lie on partitions? */
bool view_turns_rows(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* The longest of these labels. */
Labels view_rows_turned(Lower *l, const Place *x, Labels f, const Box *box);
/* view_gather.c: a view of a slab of HBM whose labels lie in another order; false, and nothing done: none is gained. */
bool view_gathered(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out);

/* view_slab.c: the dimensions that labels with these steps are walked in. */
uint32_t slab_dims(Labels f, const Box *box, const int64_t *step);
/* The tile of the slab, from the first element of the view on; false, and nothing done: it cannot be made where it must be. */
bool slab_view(Lower *l, const Slab *s, TileView *out);
/* The labels at the end, from which one on, that an instruction walks by these steps; and how many elements these are. */
uint32_t view_inner(Labels f, const Box *box, const int64_t *step, int64_t *count);
/* Copies what is walked by steps of each label to a row; or, with a home, the row there. */
void view_copy(Lower *l, const Home *into, TileView walked, TileView row, Labels f,
               const Box *box, const int64_t *step);
/* Rows of a tile into a block, from partition run.p0 on and past the last one into the next chunk. */
void view_put_rows(Lower *l, const Home *h, TileView run, TileView from);
/* Labels of the view in it, as an access pattern. */
TileView slab_part(const Slab *s, TileView from, Labels f, const Box *box);
/* The view as the access pattern of these labels, each by its step. */
void view_walk(TileView *v, Labels f, const Box *box, const int64_t *step);
/* view_loops.c: are all positions those of the tensor, in all iterations of the loops around? Some may never be run. */
bool view_is_inside(const Lower *l, const Place *x, const Box *box);

/* view.c: do rows of a block on chip lie on the partitions of the view, in any order of its other labels? *out: where the first one begins. */
bool view_block_lies(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                     TileView *out);
/* Is what is loaded transposed then? */
bool view_is_turned(Lower *l, const Place *x, Labels p, Labels f, const Box *box);
/* A view of memory, in that tile. */
void view_fill(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView dst);
/* view_loops.c: of an operand in HBM that is turned, or used again, and goes on by its own length in each iteration of the innermost loop that it
 * moves with: the part of a tile that has all iterations. False, and nothing done: it is none. */
bool view_of_all(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out);

#endif
