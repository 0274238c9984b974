/* SPDX-License-Identifier: Apache-2.0 */
/* The passes from TILED to LEGAL and on, inside. Deciding and doing are apart: a plan is a small struct, chosen by
 * functions that build nothing, and obeyed by functions that choose nothing.
 *
 *   legalise.c         the walk, which is one pass: each statement is replaced where it stands; statements that need
 *                      no accumulator
 *   legalise_build.c   making loops, buffers and statements; substitution
 *   legalise_access.c  what is known of an index: who uses it, at what stride, how far it runs
 *   legalise_matmul.c  products of two operands: packed panels and register tiles
 *   legalise_reduce.c  all other folds: vectors over a kept or a folded index, or a scalar
 *   legalise_parts.c   long sums among them, part by part
 *   legalise_scan.c    scans, which become loops
 *   legalise_transpose.c  elementwise statements that read along one index and write along another
 *   legalise_sums.c    the pass after it: long sums are added in cascades and blocks
 *   legalise_hoist.c   and the next: what is packed the same in each iteration of a loop is packed in front of it
 *   legalise_packs.c   large panels that all threads fill
 *   legalise_stream.c  after buffers share bytes: non-temporal stores
 *   legalise_threads.c loops that threads share
 *   legalise_specialise.c  products with functions of their own
 *   legalise_prefetch.c  what tiles prefetch */
#ifndef BACKEND_C_LEGALISE_H
#define BACKEND_C_LEGALISE_H

#include "loop/walk.h"

#define NONE UINT32_MAX

/* Additions one after the other that c_sums leaves alone: to a block of at most SUM_FEW elements, at most; to one of more, as
 * planned. Longer sums it cuts into parts, so a product that is as long adds to zeros instead of beginning. */
#define SUM_FEW        2048
#define SUM_LEAVE_FEW  128
#define SUM_LEAVE_MANY 512

typedef struct StmtBlock {
    struct StmtBlock *outer;
    Stmt *owner; /* the loop or block whose body this is, or null */
    VEC(Stmt *) list;
} StmtBlock;

typedef struct LoopVar {
    VarRef var;
    const char *hint;
    bool open; /* a loop over it is being built */
} LoopVar;

typedef struct Legaliser {
    Ctx *ctx;
    Arena *arena;
    Kernel *k; /* the new kernel */
    const Machine *machine;
    StmtBlock *block;
    VEC(LoopVar) loop_vars; /* ours: used again in loops beside each other */
    VEC(LoopVar) local_vars;
    uint32_t n_buffers;
    int32_t positive; /* an open dim that is not 0 where we are, or -1 */
    const Stmt *from; /* being legalised: gives place and name */
    bool failed;      /* reported */
} Legaliser;

/* ---- legalise_plain.c ---- */
void legalise_plain(Legaliser *l, const Stmt *s);
/* The statement, or, after the neutral elements of one that begins, the rest of it, which goes on. */
const Stmt *legalise_begin(Legaliser *l, const Stmt *s);

/* ---- legalise.c ---- */
/* The statement's replacement where it stands. */
void tile_legalise(Legaliser *l, const Stmt *s);

/* ---- legalise_where.c ---- */
/* Of a condition on positions: affine expressions that are at least 0 where it holds, at most MASK_CONDITIONS; 0: it is no such. */
uint32_t condition_bounds(Arena *a, const Expr *condition, Affine *out);

/* ---- legalise_band.c ---- */
/* False: the statement is no fold over a band of known width. */
bool legalise_band(Legaliser *l, const Stmt *s);

/* ---- legalise_rows.c ---- */
/* False: the statement is no fold of rows under a condition on values. */
bool legalise_rows(Legaliser *l, const Stmt *s);

/* ---- legalise_scan.c ---- */
void scan_legalise(Legaliser *l, const Stmt *s);

/* ---- legalise_build.c ---- */
/* At a copy of the kernel, which goes on counting the buffers that passes before have made. */
Legaliser legaliser_start(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
void block_open(Legaliser *l, Stmt *owner);
void block_close(Legaliser *l);
/* A block of its own, until block_close. */
void scope_open(Legaliser *l);
/* The same, run for some sizes of an open dim. */
void tested_open(Legaliser *l, DimTest when);
void stmt_add(Legaliser *l, Stmt *s);
/* A loop that is open until loop_close; returns its variable. */
VarRef loop_open(Legaliser *l, const char *hint, Range range, int64_t step, ForPart part);
void loop_close(Legaliser *l);
VarRef local_var(Legaliser *l, const char *hint);
BufRef buffer_alloc(Legaliser *l, const char *hint, DType t, Space s, uint32_t rank,
                    const int64_t *extent);
BufRef buffer_declare(Legaliser *l, const char *hint, DType t, Space s, uint32_t rank,
                      const Dim *extent);
/* Of whole panels. */
BufRef panels_alloc(Legaliser *l, const char *hint, DType t, int64_t lines, int64_t columns,
                    int64_t width);
TileIndex index_of(VarRef v, Range range, IndexMode mode);
/* [0, n) */
Range range_const(int64_t n);
Range range_at(Affine start, int64_t span, const Range *clip);
void tile_add(Legaliser *l, uint32_t n, const TileIndex *index, BufRef dst, const Affine *at,
              Op fold, const Expr *value);
Affine affine_minus(Legaliser *l, Affine x, Affine y);
Affine var_minus(Legaliser *l, VarRef v, Affine base);
Expr *load_at(Legaliser *l, BufRef buf, uint32_t rank, const Affine *at);

/* ---- legalise_access.c ---- */
/* How many elements further it is for the next value of v; false: an open extent says it. */
bool stride_known(const Kernel *k, BufRef buf, const Affine *at, VarRef v, int64_t *out);
/* Does the element's address grow by exactly one when v does? */
bool access_is_unit(const Kernel *k, BufRef buf, const Affine *at, VarRef v);
/* Can the value be computed for a vector of values of v: plain arithmetic on elements that stand side by side or
 * do not depend on v? *unit: at least one stands side by side. */
bool expr_vectorises(const Kernel *k, const Expr *value, VarRef v, DType t, bool *unit);
int64_t range_typical(const Kernel *k, Range r);
/* Always exactly range_most values? */
bool range_is_exact(Range r);
/* Are there vectors of such numbers, and register tiles of their products? Complex ones lie in them as in memory. */
bool dtype_has_vectors(DType t);
bool op_vectorises(Op op, DType t);
/* Of the innermost index of a map of such numbers. */
IndexMode lanes_of(DType t);
/* Can vectors be folded so, lane by lane? */
bool fold_has_vectors(Op fold, DType t);
int64_t vector_lanes(DType t); /* of the widest vector */

/* A range in blocks of `tile` positions: either one block, or a loop of them. */
typedef struct Blocks {
    bool looped;
    Range loop; /* of the loop's variable */
    int64_t step;
    int64_t most; /* positions of one block, rounded up to `unit` */
    Range whole;  /* the block itself when there is no loop */
} Blocks;
Blocks range_blocks(Range r, int64_t tile, int64_t unit);
/* Opens the loop if there is one: *base is where the block starts, *block its positions. */
void blocks_open(Legaliser *l, const char *hint, const Blocks *b, Affine *base, Range *block);

/* ---- legalise_lanes.c ---- */
/* An elementwise statement whose last index runs along the elements it writes: as vectors where that pays. */
void written_add(Legaliser *l, uint32_t n, const TileIndex *index, BufRef dst, const Affine *at,
                 Op fold, const Expr *value);

/* May a map run over `x`, its innermost index, as vectors at all? `to`: the type that it is written in. */
bool value_runs(const Legaliser *l, const Expr *value, DType to, const TileIndex *x);
/* May, and should, a map run over `x`, its innermost index, as vectors? `to`: the type that it is written in. */
bool value_has_lanes(const Legaliser *l, const Expr *value, DType to, const TileIndex *x);

/* ---- legalise_transpose.c ---- */
/* An elementwise statement that writes along its index x and reads across it; false: it does not. */
bool legalise_transpose(Legaliser *l, const Stmt *s, uint32_t x);
/* Does a fold read across the index that it is a vector of? Such a one is staged. */
bool legalise_stages_fold(const Legaliser *l, const Stmt *s);
void legalise_staged_fold(Legaliser *l, const Stmt *s);
/* Is it a copy that reads along the last index but one, and writes along the last? */
bool copy_is_transposed(const Kernel *k, const Stmt *s);

/* ---- legalise_stream.c ---- */
/* Can the printer store what it computes past the caches: is it a product that stores lines, or a transposing copy? */
bool stmt_may_stream(const Kernel *k, const Stmt *s);

/* ---- legalise_prefetch.c ---- */
/* Can a product prefetch meanwhile: is it of real numbers, a whole tile, not specialised, and without a factor? */
bool stmt_may_prefetch(const Kernel *k, const Stmt *s);

/* ---- legalise_matmul.c, legalise_reduce.c: false when the statement is not of their kind ---- */
bool legalise_matmul(Legaliser *l, const Stmt *s);
/* `may_stage`: operands may be transposed first. */
void legalise_reduce(Legaliser *l, const Stmt *s, bool may_stage);

/* ---- legalise_parts.c ---- */
/* Opens loops over parts of a sum that is long, as many as it says; returns the statement of one part, which may have fewer indices. Of the one
 * at place `*vec` (NONE: none), which may move, `width` positions at a time are added up side by side. */
Stmt parts_open(Legaliser *l, const Stmt *s, uint32_t *vec, int64_t width, uint32_t *n_loops);
void parts_close(Legaliser *l, uint32_t n_loops);
/* Would it open none? */
bool parts_are_one(const Legaliser *l, const Stmt *s, uint32_t vec, int64_t width);

#endif
