/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of views (view.c, view_store.c). */
#ifndef BACKEND_NKI_VIEW_H
#define BACKEND_NKI_VIEW_H

#include "backend/nki/lower.h"

/* Position of a box's first point on the free axis `f` of `whole`, and the stride of its label `along` there. */
int64_t view_linear(Labels f, const Box *whole, const Box *part, uint32_t along,
                    int64_t *stride);
/* The run of the free axis of a block that the labels `f` of the box are, if they are one. */
bool view_block_run(const Lower *l, const Place *x, Labels f, const Box *box, TileView *out);
/* First element of the box in a block: partition and free position. */
void view_block_start(const Lower *l, const Place *x, const Box *box, int64_t *p, int64_t *f);

#endif
