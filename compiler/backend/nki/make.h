/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of the LEGAL kernel, one instruction each, where statements are made now (instr_make.c). */
#ifndef BACKEND_NKI_MAKE_H
#define BACKEND_NKI_MAKE_H

#include "backend/nki/place.h"

/* A block that is run where all its tests hold. */
Stmt *stmt_guarded(Arena *a, Span span, const Guard *guard, uint32_t n_guards, Stmt **body,
                   uint32_t n);
TileView tile_new(Lower *l, const char *hint, DType t, Space space, int64_t np, int64_t nf);
TileView view_part(TileView v, int64_t f, int64_t nf);
TileView view_rows(TileView v, int64_t np);
const Expr *view_load(Lower *l, TileView v, DType as);   /* [p, f] */
const Expr *view_column(Lower *l, TileView v, DType as); /* [p, 0] */
void make_map(Lower *l, TileView dst, const Expr *value);
/* Over indices of its own. */
void make_value(Lower *l, BufRef dst, const Affine *at, uint32_t n, const TileIndex *index,
                const Expr *value);
/* The same where the rows of operands and result are walked along several labels, each by steps of its own. */
const Expr *view_walked_load(Lower *l, TileView v, uint32_t n, const int64_t *step, DType as);
void make_walked(Lower *l, TileView dst, uint32_t n, const int64_t *count, const int64_t *step,
                 const Expr *value);
void make_copy(Lower *l, TileView dst, TileView src);
void make_memset(Lower *l, TileView dst, double value);
/* `begins`: overwrites what is in dst. */
Stmt *make_matmul(Lower *l, TileView dst, TileView stationary, TileView moving, bool begins);
void make_transpose(Lower *l, TileView dst, TileView src);
/* The sums of the rows of what the last statement made, added to what is in dst unless `first`; false: nothing was made, since it cannot
 * add them. */
bool make_row_sums(Lower *l, TileView dst, TileView src, bool first);
/* Positions along the labels of the free axis, and how result and operand are walked. */
typedef struct PositionWalk {
    uint32_t n;
    int64_t count[LABELS], along[LABELS], dst[LABELS], src[LABELS];
} PositionWalk;
/* base + down * p + the steps along; and where that, beside 0, is so: src, elsewhere a number. */
void make_iota(Lower *l, TileView dst, Affine base, int64_t down, const PositionWalk *w);
void make_affine_select(Lower *l, TileView dst, TileView src, Affine base, int64_t down,
                        const PositionWalk *w, Op op, double other);
void make_reduce(Lower *l, TileView dst, Op fold, TileView src);
/* Each element of `dst` by itself. The terms are walked along `n` labels, of which the first `kept` are those of `dst`, row by row. */
void make_reduce_each(Lower *l, TileView dst, Op fold, TileView src, uint32_t n, uint32_t kept,
                      const int64_t *count, const int64_t *step);
/* Between HBM buffer `place` and the tile: p labels on partitions, f labels on the free axis of the box. */
void make_dma(Lower *l, const Place *place, Labels p, Labels f, const Box *box, TileView tile,
              bool store);
TileView view_ones(Lower *l);
/* a = a op b */
void make_join(Lower *l, Op fold, TileView a, TileView b);
void make_scan(Lower *l, TileView dst, Op fold, const TileView *factor,
               TileView src); /* factor: of what decays, else null */

#endif
