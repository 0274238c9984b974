/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites of TILED kernels for machines whose memory on chip is tiles of rows, one row on each partition: from kernel to kernel, without
 * an instruction of any of them. Each gives a kernel with the same results; what it may add up in another order is said.
 *
 *     numbers    double_word*  f64 sums as two f32
 *     masks      masked_folds, masked_strips                index-set splitting
 *     loops      distribute    each statement in loops of its own
 *                pieces        sums of all iterations as rows of sums, which programs share
 *     sums       long_rows, short_rows, pair_sums, linear_steps, diagonals
 *     memory     transposed_operands, rows_first, vectors
 */
#ifndef TILE_TILE_H
#define TILE_TILE_H

#include "loop/loop.h"
#include "loop/walk.h"
#include "target/target.h"

#define TILE_ROWS 128 /* of a tile: partitions */
#define TILE_DIMS 36  /* of a buffer, at most */

/* ---- passes: the kernel itself where there is nothing to do ---- */

/* pair_sums.c: what a tile of pairs adds, times its weight, goes to the sum at once. */
Kernel *tile_pair_sums(const Target *, Ctx *, Arena *, const Kernel *);
/* diagonals.c: numbers of 16 bits, one for each row, as diagonal matrices. */
Kernel *tile_diagonals(const Target *, Ctx *, Arena *, const Kernel *);
/* vectors.c: long vectors of complex numbers as matrices of many rows; adds up in another order. */
Kernel *tile_vectors(const Target *, Ctx *, Arena *, const Kernel *);
/* short_rows.c: sums over short rows of arguments take neighbours on one partition; adds up in another order. */
Kernel *tile_short_rows(const Target *, Ctx *, Arena *, const Kernel *);
/* linear_steps.c: steps of linear recurrences as scans. */
Kernel *tile_linear_steps(const Target *, Ctx *, Arena *, const Kernel *);

/* ---- forms of a kernel, of which the back end takes the quickest ---- */

/* masked_folds.c: folds that a mask restricts as loops with windows; the kernel itself where it has none. */
const Kernel *tile_masked_folds(Ctx *ctx, Arena *arena, const Kernel *k);
/* The positions of the index that a condition leaves, of any row of the statement, as affine sums of the variables of loops around;
 * false: all. */
bool tile_mask_window(Arena *a, const Stmt *s, VarRef var, const Expr *condition, Window *w);
/* masked_strips.c: loops over masked rows as loops over strips of them; null: there are none. */
const Kernel *tile_masked_strips(Ctx *ctx, Arena *arena, const Kernel *k);
/* distribute.c: loop distribution, each statement in loops of its own; null: it has no loops, or they cannot be. */
const Kernel *tile_distribute(Ctx *ctx, Arena *arena, const Kernel *k);
/* pieces.c: the kernel with numbers that loops add up made of so many sums, 0: one for each iteration; null: it has none.
 * `sums`, by buffer: rows of such sums, each of which a statement or block of its own makes. `halvings`: so often the largest step is halved. */
Kernel *tile_pieces(Ctx *ctx, Arena *arena, const Kernel *k, int64_t pieces, uint32_t halvings,
                    bool **sums);
/* long_rows.c: indices over short rows of arguments, along values on chip, as two, of which one lies on partitions; null: there are none.
 * Sums are added up in another order. */
const Kernel *tile_long_rows(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
/* rows_first.c: results along another dimension of which a loop runs, as rows in memory that are copied, so that programs share the loop;
 * null: there are none. */
const Kernel *tile_rows_first(Ctx *ctx, Arena *arena, const Kernel *k);
/* transposed_operands.c: the kernel with transposed copies of operands in memory, where contractions sum over their last dimension; null if
 * it has no such operand. */
const Kernel *tile_transposed_operands(Ctx *ctx, Arena *arena, const Kernel *k);

#endif
