/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of one kernel as statements of another: buffers and variables by number, and
 * positions in a buffer moved along one dimension. */
#ifndef BACKEND_NKI_COPY_H
#define BACKEND_NKI_COPY_H

#include "loop/loop.h"

typedef struct StmtCopy {
    Arena *arena;
    const Kernel *from;
    const BufRef *buf; /* [from->bufs] */
    const VarRef *var; /* [from->vars] */
    /* [from->bufs], or null: positions in dimension `dim` become smaller by `by` */
    const struct StmtShift {
        uint32_t dim;
        int64_t by;
    } * shift;
} StmtCopy;

Stmt **stmts_copy(const StmtCopy *c, Stmt *const *body, uint32_t n);

#endif
