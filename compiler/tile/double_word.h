/* SPDX-License-Identifier: Apache-2.0 */
/* f64 results of sums, on engines that compute in f32. Such a number is kept as a double word: the unevaluated sum
 * hi + lo of two f32. Terms are computed in f32, a few hundred of them are added up in f32, and each such partial sum p joins the double
 * word without an error:
 *
 *     s = hi + p;  b = s - hi;  e = (hi - (s - b)) + (p - b);      now s + e = hi + p exactly (TwoSum)
 *     hi = s;      lo = lo + e                                     only this addition rounds
 *
 * TwoSum is of O. Moller, "Quasi double-precision in floating point addition", BIT 5 (1965), and D. E. Knuth, The Art of Computer
 * Programming 2, 4.2.2; the sum is algorithm Sum2 of T. Ogita, S. M. Rump and S. Oishi, "Accurate sum and dot product", SIAM J. Sci.
 * Comput. 26 (2005), whose bound docs/trainium.md uses. The caller adds hi and lo in f64.
 *
 * This is a rewrite from TILED kernel to TILED kernel, so that no way of lowering knows of it: a result E: f64[n] becomes
 * f32[n,2] (Arg.whole is f64), its sum loops of statements that are f32 all through.
 *
 * Pairs as a type of the lowering, as complex numbers are (pairs.c), would touch lowering, splitter, verifier and price, and could do no more:
 * joining is rare by construction. */
#ifndef TILE_DOUBLE_WORD_H
#define TILE_DOUBLE_WORD_H

#include "loop/walk.h"

/* The kernel with its f64 results, and the f64 values that they are made of, as double words; k itself where it has none, or
 * something that is no sum: then *why says what, and *where. *sums: as of a Lower, also of what is returned. */
const Kernel *tile_double_words(Ctx *ctx, Arena *arena, const Kernel *k, const bool **sums,
                                const char **why, Span *where);

/* ---- inside ---- */

/* hi and lo are read and written at the same positions. */
typedef struct DoubleWord {
    BufRef hi, lo;
    const Affine *at;
} DoubleWord;

/* A number that loops add up: what joins it there are double words of their own for each row, column and block, which are added up
 * behind the loops, so that no engine waits for another in each iteration. One of these for each join of the statement. */
typedef struct Lanes {
    DoubleWord x;
    uint32_t n;
    TileIndex *index; /* over its positions, from 0 */
} Lanes;

typedef struct Words {
    Ctx *ctx;
    Arena *arena;
    const Kernel *from;
    Kernel *to;   /* buffers of `from` have the same numbers here */
    bool *wide;   /* [from->bufs]: f64, here double words */
    bool *narrow; /* [from->bufs]: f64 that only terms read, here f32 */
    bool *direct; /* [from->bufs]: a result that one statement makes, and none reads */
    BufRef *hi;   /* [from->bufs]: of others */
    BufRef *lo;   /* likewise */
    Stmts *out;   /* where statements go */
    Stmts *root;  /* of the kernel's body */
    uint32_t depth;
    struct {
        Stmts list;
        Stmts *around;
        Stmt *loop;
    } open[LOOP_DEPTH_LIMIT];
    const Stmt *now;
    const Stmt *late; /* the statement in the loops that has lanes, or null */
    VEC(Lanes) lanes;
    const char *why; /* it cannot be done, or null */
    Span where;
} Words;

/* ---- double_word.c ---- */
void words_refuse(Words *w, const char *why);
/* dst[at] = value, or with a fold that begins here. */
void words_set(Words *w, uint32_t n, const TileIndex *index, BufRef dst, const Affine *at,
               Op fold, const Expr *value);
/* A tile over indices, and the position in it. */
BufRef words_tile_of(Words *w, const char *hint, uint32_t n, const TileIndex *index);
const Affine *words_at(Words *w, uint32_t n, const TileIndex *index);
/* A loop over the index by a step, open until words_close: the index as it is inside. */
TileIndex words_open(Words *w, TileIndex index, int64_t step);
void words_close(Words *w, uint32_t depth);
/* How many values an index has at most. */
int64_t words_count(const TileIndex *index);
/* Double words. */
DoubleWord words_of(Words *w, BufRef buf, const Affine *at);
DoubleWord words_new(Words *w, uint32_t n, const TileIndex *index);
void words_zero(Words *w, uint32_t n, const TileIndex *index, DoubleWord x);
/* x = hi + lo; lo may be null. */
void words_begin(Words *w, uint32_t n, const TileIndex *index, DoubleWord x, const Expr *hi,
                 const Expr *lo);
/* x += hi, without an error, and then lo, if it is given. */
void words_add(Words *w, uint32_t n, const TileIndex *index, DoubleWord x, const Expr *hi,
               const Expr *lo);
const Expr *words_number(Words *w, double x);
const Expr *words_two(Words *w, Op op, const Expr *x, const Expr *y);
const Expr *words_load(Words *w, BufRef buf, const Affine *at);
/* x goes to where the statement at hand puts its value. */
void words_deliver(Words *w, uint32_t n, const TileIndex *index, DoubleWord x);
/* What the engines compute of a term: in f32. */
const Expr *words_term(Words *w, const Expr *e);

/* ---- double_word_linear.c ---- */
/* x += by * e, over the indices of the statement at hand; counts the sums of which e is made. */
void words_add_linear(Words *w, DoubleWord x, const Expr *e, double by, uint32_t *sums);

/* ---- double_word_sum.c ---- */
/* The number that w->lanes are, to the double word. */
void words_fold_lanes(Words *w, DoubleWord x);
void words_sum(Words *w);

#endif
