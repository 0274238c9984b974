/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of statements as statements of another kernel, and the fill that a fold begins with. */
#ifndef LOOP_COPY_H
#define LOOP_COPY_H

#include "loop/loop.h"

/* What a buffer is a part of in the other kernel: there it has `rank` dimensions, and the position in each is `at`, of the positions in
 * the buffer (variable d: in its dimension d) and open dims, and `plus`, of the other kernel's variables. */
typedef struct StmtPlace {
    uint32_t rank;
    const Affine *at, *plus; /* [rank]; at null: the buffer is as it was */
} StmtPlace;

/* Copies of statements, as statements of another kernel: buffers, variables and open dims by number, and
 * positions in a buffer moved along one dimension, or in a larger one. */
typedef struct StmtCopy {
    Arena *arena;
    const Kernel *from;
    const BufRef *buf;      /* [from->bufs] */
    const VarRef *var;      /* [from->vars] */
    const Dim *dim;         /* [from->dims], or null: they are the same */
    const StmtPlace *place; /* [from->bufs], or null */
    /* [from->bufs], or null: positions in dimension `dim` become smaller by `by` */
    const struct StmtShift {
        uint32_t dim;
        int64_t by;
    } * shift;
} StmtCopy;
Stmt **stmts_copy(const StmtCopy *c, Stmt *const *body, uint32_t n);

/* What a fold that begins finds, written: its neutral element for all values of the indices that its destination has. */
Stmt *stmt_neutral(Arena *a, const Kernel *k, const Stmt *fold);

/* A copy with variables and buffers numbered as its text names them, unused ones left out: the last step of a builder. */
Kernel *kernel_numbered(Arena *arena, const Kernel *k);

#endif
