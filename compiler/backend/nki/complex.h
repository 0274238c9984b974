/* SPDX-License-Identifier: Apache-2.0 */
/* Complex kernels as real ones, before legalisation. A buffer of c64 becomes one of f32 with a
 * last dimension of 2, the parts: the same bytes, so arguments need no conversion. The result is
 * a TILED kernel like any other: the interpreter runs it on the same arguments.
 *
 * A product of two complex operands is one contraction with two labels more,
 *
 *     C[i,j,r] += A[i,l,s] * E[j,l,r,s]      over l and s,
 *
 * where E holds the right operand and, at s = 1, i times it: E[.., r, s] is plus or minus
 * B[.., r] for s = 0 and B[.., 1-r] for s = 1. Signs take in conjugation of either. So both
 * operands are read in the order they lie, all parts of the result accumulate together, and come
 * out in the order they are stored. E is written down (and interpreted) as a buffer; the
 * legaliser knows it as a `Turn` and makes only the tiles of it that are not B itself. */
#ifndef BACKEND_NKI_COMPLEX_H
#define BACKEND_NKI_COMPLEX_H

#include "loop/walk.h"
#include "target/target.h"

typedef struct Turn {
    bool is;          /* is the buffer one? */
    BufRef of;        /* E[.., r, s] is that of B[.., s == 0 ? r : 1 - r], */
    bool minus[2][2]; /* [s][r]: negated */
} Turn;

typedef struct RealKernel {
    const Kernel *kernel;
    bool *pair;          /* [bufs]: the last dimension holds the parts of complex numbers */
    Turn *turn;          /* [bufs] */
    VarRef part, turned; /* the labels r and s; UINT32_MAX when the kernel was real */
} RealKernel;

/* False, and reported, when the kernel does something with complex numbers that `target` lacks. */
bool complex_split(Ctx *ctx, Arena *arena, const Kernel *k, const Target *target,
                   RealKernel *out);

/* ---- complex_value.c: one value ---- */

typedef struct StmtList {
    Stmt **at;
    uint32_t n, cap;
} StmtList;

typedef struct Splitter {
    Ctx *ctx;
    Arena *arena;
    const Target *target;
    const Kernel *from;
    Kernel *to; /* buffers of `from` have the same numbers here */
    RealKernel *out;
    VarRef part, turned;
    bool failed;
    const struct Forward *forward; /* [bufs]: blocks that are only another operand, renamed */
    StmtList *body;                /* where statements go */
} Splitter;

/* t[at] = from[source], conjugated or made complex; over the indices of `def`. */
typedef struct Forward {
    const Stmt *def; /* null: no such block */
    BufRef source;
    const Affine *at;
    bool conj;
} Forward;

typedef struct Factor {
    BufRef buf;
    const Affine *at;
    bool conj, complex;
} Factor;

/* Parts; null: zero. */
typedef struct Parts {
    const Expr *re, *im;
} Parts;

bool split_refuse(Splitter *s, Span span, const char *what);
bool split_is_complex(const Splitter *s, BufRef buf);
/* The position of a part: index `r` added to those of a complex buffer. */
const Affine *split_at(Splitter *s, BufRef buf, const Affine *at, Affine r);
/* A complex value as parts; a real value that may have complex ones in it. */
Parts split_parts(Splitter *s, Span span, const Expr *e);
const Expr *split_real(Splitter *s, Span span, const Expr *e);
/* Is each part of the value the same function of that part of its operands, over operands that
 * all have index `last`? Then it is one value with the part as a label. */
bool split_is_uniform(const Splitter *s, const Expr *e, VarRef last);
const Expr *split_uniform(Splitter *s, const Expr *e);

/* ---- complex.c: statements ---- */

void split_emit(Splitter *s, Stmt *stmt);
void split_alloc(Splitter *s, BufRef buf, Span span);
/* A block of the shape of `like`, an extent of 2 more when `turned`. */
BufRef split_new_block(Splitter *s, const char *hint, const Buffer *like, bool turned);
TileIndex split_both_parts(VarRef v);
/* Does the statement's destination have the index? */
bool split_keeps(const Splitter *s, const Stmt *stmt, VarRef v);
/* A copy of the statement with the part as an index, after those of the destination. */
Stmt *split_with_part(Splitter *s, const Stmt *old);

/* The statement before, when it sets to zero what the fold then meets; else null. */
Stmt *split_fill_behind(const Splitter *s, const Stmt *fold);

/* ---- complex_product.c: contractions ---- */

/* Is the statement a contraction, of which operands? They are found through blocks that only
 * rename them. */
bool split_is_product(Splitter *s, const Stmt *old, Factor *a, Factor *b);
void split_contract(Splitter *s, const Stmt *old, Factor a, Factor b);

#endif
