/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers made of positions (whole.c): their values over a box, and conditions on them. */
#ifndef BACKEND_NKI_WHOLE_H
#define BACKEND_NKI_WHOLE_H

#include "backend/nki/view.h"

#define WHOLE_MOST ((int64_t)1 << 24) /* exact in f32 */
/* base + the sum of coef * label */
typedef struct IndexSum {
    int64_t base, coef[LABELS];
    Affine moves; /* what it is beyond that in other iterations of the loops that stay */
} IndexSum;
bool whole_of(const Lower *l, const Expr *e, IndexSum *out);
void whole_range(const Lower *l, const IndexSum *x, const Box *box, int64_t *lo, int64_t *hi);
/* Does `e` compare two sums of indices? *out: the left one less the right one. */
bool whole_compares(const Lower *l, const Expr *e, IndexSum *out);
/* Does a condition hold in all of the box, or nowhere? Else -1. */
int whole_decides(const Lower *l, const Expr *e, const Box *box);
/* What is left of a select, and, or whose condition is known in the box; else `e`. */
const Expr *whole_branch(const Lower *l, const Expr *e, const Box *box);
/* x of 0 + x, which the graph has for a sum of one term: only the sign of a zero tells them apart. Else the value itself. */
const Expr *whole_term(const Expr *e);
/* Does a value choose by conditions on positions, the same ones in all iterations of the loops that stay? */
bool whole_is_masked(const Lower *l, const Expr *value);
/* Does the box add nothing to the fold? */
bool whole_is_neutral(const Lower *l, const Stmt *s, const Box *box);
/* Does it move by equal steps along the partitions? */
bool whole_on_partitions(const IndexSum *x, Labels p, const Box *box);
TileView whole_tile(Lower *l, const IndexSum *x, Labels p, Labels f, const Box *box);
/* dst = x op 0 ? src : other; `step` of each label of `f` in src. */
void whole_select(Lower *l, TileView dst, TileView src, const int64_t *step, const IndexSum *x,
                  Op op, double other, Labels p, Labels f, const Box *box);

#endif
