/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to lower a statement. */
#ifndef BACKEND_NKI_LOWER_STMT_H
#define BACKEND_NKI_LOWER_STMT_H

#include "backend/nki/place.h"

/* ---- product.c ---- */

/* False, and nothing done, when the Tensor engine cannot do it as it is. */
bool lower_matmul(Lower *l, const Stmt *s, bool overwrite, const Stmt *epilogue);
/* The same as loops over all its tiles (panels.c); false, and nothing done, where it is too irregular. */
bool lower_panels(Lower *l, const Stmt *s, const Stmt *epilogue);
/* Can it? Of a statement without levels. */
bool lower_is_product(Lower *l, const Stmt *s);
/* block_loops.c: the same as loops over blocks; false, and nothing done, where it is not to be cut. */
bool lower_cut(Lower *l, const Stmt *s, const Stmt *epilogue);
/* roles.c: the statement with the roles of its labels as they suit what lies in HBM; or, *staged < LABELS, itself, to be staged with that
 * label on partitions. */
const Stmt *lower_roles(Lower *l, const Stmt *s, const Stmt *epilogue, uint32_t *staged);
/* staged.c: the contraction by way of blocks that lie as its result does. */
void lower_staged(Lower *l, const Stmt *s, uint32_t row);

/* ---- epilogue.c ---- */

/* May `s` be computed from the PSUM tiles of `matmul`, whose result is then nowhere else? */
bool lower_is_epilogue(Lower *l, const Stmt *matmul, const Stmt *s);
/* Where a fold's result goes. */
Place lower_target(Lower *l, const Stmt *s);
/* What now.next makes of the result, in indices of `s`; null: a copy, or nothing. */
const Expr *lower_next_value(Lower *l, const Stmt *s);

/* ---- statement.c, row_sums.c, scan.c, loop_sums.c ---- */

void lower_map(Lower *l, const Stmt *s, bool overwrite);
void lower_parts(Lower *l, const Stmt *re, const Stmt *im);
/* Is a label of a statement without matmuls cut into a row for each partition? */
bool lower_is_cut(Lower *l, const Stmt *s);
/* A function and the sums of its rows, in one pass, once it is known that that can be (not `go`: only asks). `narrow`: the copy of its
 * values in a narrower type, which is made and not they; or null. */
bool lower_row_sums(Lower *l, const Stmt *s, const Stmt *narrow, const Stmt *fold, bool go);
/* Is `copy` such a copy of what `s` makes? */
bool lower_narrows(Lower *l, const Stmt *s, const Stmt *copy);
void lower_scan(Lower *l, const Stmt *s);
/* Ends the innermost loop; numbers that it has added up in columns get them. */
void lower_end_loop(Lower *l);

/* ---- gathers.c ---- */

/* Is it one that pass `gathers` made: rows of an argument, at positions in memory, into memory? */
bool gathers_rows(const Stmt *s);
/* Marks what these statements read positions from, and what they set. */
void gathers_mark(const Kernel *k, bool *in_memory);
void gathers_lower(Lower *l, const Stmt *s);

/* ---- windows.c, lower.c ---- */

/* A loop with a window, in loops that stay; false, and nothing done, where its iterations are taken one by one. */
bool lower_window(Lower *l, const Stmt *s);
void lower_enter(Lower *l, const Stmt *s); /* l->now is the statement's */
void lower_block(Lower *l, Stmt *const *body, uint32_t n);

/* ---- part_rows.c: parts of a kernel that differ in their rows alone ---- */

/* How far the rows of the second part lie before those of the first, of each buffer of the TILED kernel; null: they are of other statements,
 * or of another number of rows. */
const struct StmtShift *part_shift(Arena *a, const Kernel *k, const Task *from, const Task *to);
/* The lowered part so far away; `shared`: what parts hand to each other is called so, by buffer of the TILED kernel `from`. */
Kernel *part_moved(Arena *a, const Kernel *from, const Sym *shared,
                   const struct StmtShift *shift, const Kernel *part);
bool part_same_text(Arena *a, const Kernel *x, const Kernel *y);

#endif
