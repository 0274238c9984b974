/* SPDX-License-Identifier: Apache-2.0 */
/* Complex kernels as real ones, inside (lower.h has the pass). A buffer of c64 becomes one of f32
 * with a last dimension of 2, the parts, and c128 becomes f64: the same bytes, so arguments need
 * no conversion. The result is a TILED kernel like any other: the interpreter runs it on the
 * same arguments.
 *
 * A product of two complex operands is one contraction with two labels more,
 *
 *     C[i,j,r] += A[i,l,s] * E[j,l,r,s]      over l and s,
 *
 * where E holds the right operand and, at s = 1, i times it: E[.., r, s] is plus or minus
 * B[.., r] for s = 0 and B[.., 1-r] for s = 1. Signs take in conjugation of either. So both
 * operands are read in the order they lie, all parts of the result accumulate together, and
 * come out in the order they are stored. E is written down (and interpreted) as a buffer; a
 * back end may know it by the four statements that make it, and make only what is not B. */
#ifndef LOWER_COMPLEX_H
#define LOWER_COMPLEX_H

#include "loop/walk.h"
#include "target/target.h"

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
    VarRef part, turned;
    DType type; /* of the parts of the value at hand */
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

/* An operand of a product. `held`: the buffer, or a block that holds it conjugated. */
typedef struct Factor {
    BufRef buf, held;
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

/* ---- complex_stmt.c: statements ---- */

void split_emit(Splitter *s, Stmt *stmt);
void split_alloc(Splitter *s, BufRef buf, Span span);
/* A block of the shape of `like`, an extent of 2 more when `turned`. */
BufRef split_new_block(Splitter *s, const char *hint, const Buffer *like, bool turned);
TileIndex split_both_parts(VarRef v);
/* Does the statement's destination have the index? */
bool split_keeps(const Splitter *s, const Stmt *stmt, VarRef v);
/* A copy of the statement with the part as an index, after those of the destination. */
Stmt *split_with_part(Splitter *s, const Stmt *old);

/* ---- complex_product.c: contractions ---- */

/* Is the statement a contraction, of which operands? They are found through blocks that only
 * rename them. */
bool split_is_product(Splitter *s, const Stmt *old, Factor *a, Factor *b);
void split_contract(Splitter *s, const Stmt *old, Factor a, Factor b);

#endif
