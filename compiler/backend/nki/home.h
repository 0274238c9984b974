/* SPDX-License-Identifier: Apache-2.0 */
/* Where buffers live, and how they lie there: home.c, psum.c; which of their dimensions are batches: batch.c. */
#ifndef BACKEND_NKI_HOME_H
#define BACKEND_NKI_HOME_H

#include "backend/nki/lower.h"

/* The layout on chip; the bytes of a partition it takes. */
int64_t home_on_chip(Lower *l, BufRef buf);
void home_in_hbm(Lower *l, BufRef buf);
/* Allocates it where it lives. */
void home_make(Lower *l, BufRef buf);
void home_set(Lower *l, BufRef buf, double value);
/* All of these, where an alloc stands; the bytes of a partition. */
int64_t home_enter(Lower *l, BufRef buf);
/* May the block, whose layout is known, stay in PSUM, where its matmuls leave it? */
bool psum_keeps(const Lower *l, BufRef buf);
/* Is it there? */
bool psum_has(const Lower *l, BufRef buf);
/* May one instruction read or write the view of it? */
bool psum_takes(const Lower *l, TileView v);
/* Elements of a row that a statement with this value takes at a time. */
int64_t psum_row(const Lower *l, const Expr *value);
void batch_mark(Lower *l);
/* Are the products of a contraction's batches so small that it is better on the Vector engine? */
bool batch_is_tiny(const Lower *l, const Stmt *s);
/* Does the product keep no index but batches? Each of its matmuls would make one element: it is an elementwise product with sums of rows. */
bool batch_is_all(const Lower *l, const Stmt *s);

#endif
