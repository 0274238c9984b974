/* SPDX-License-Identifier: Apache-2.0 */
/* May the iterations of a loop run at the same time? They may when, for each buffer that lives
 * outside the loop and is written inside, there is one dimension whose positions tell the
 * iterations apart: every access (reads too) stays between c*v + r and c*v + r + w with w < |c|
 * * step, v the loop's variable. Reads of what no iteration writes, as of the step before, may be anywhere. Conservative. */
#ifndef LOOP_PARALLEL_H
#define LOOP_PARALLEL_H

#include "loop/bounds.h"

typedef struct ParallelAccess {
    BufRef buf;
    bool writes;
    uint32_t number; /* in order of the text */
    const Stmt *stmt;
    const Affine *lo, *hi; /* [rank], in terms of the loop's variable and outer ones */
    const bool *known;     /* [rank] */
} ParallelAccess;

/* One parallel loop being verified. */
typedef struct ParallelLoop {
    Arena *arena;
    const Kernel *k;
    const Stmt *loop;
    uint32_t n_outer; /* variables in scope, the loop's own being the last of them */
    VEC(ParallelAccess) accesses;
} ParallelLoop;

/* `given`: which positions are known; null: all. */
void parallel_access(ParallelLoop *p, Bounds *b, const Stmt *stmt, BufRef buf, const Affine *at,
                     const bool *given, bool writes);
/* After the body. The statement whose access was not proved to stay in its iteration's places,
 * or null; *buf is the buffer. */
const Stmt *parallel_conflict(ParallelLoop *p, BufRef *buf);

#endif
