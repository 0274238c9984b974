/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the verifier of kernels: clauses of tile statements. */
#ifndef LOOP_LOOP_VERIFY_CLAUSES_H
#define LOOP_LOOP_VERIFY_CLAUSES_H

#include "loop/parallel.h"

/* Where a tile statement stands: its own indices are in scope, and its accesses verified. */
typedef struct ClauseContext {
    Arena *scratch;
    const Kernel *k;
    const Bounds *bounds;
    const ParallelLoop *const *parallel;
    uint32_t n_parallel;
} ClauseContext;

typedef const char *ClauseProblem(const ClauseContext *x, const Stmt *s);

/* What is wrong with those of a tile statement, or null; the functions of the rows. */
ClauseProblem clauses_problem;
#define STMT_CLAUSE(of, word, operand, field, expected, problem) ClauseProblem problem;
#include "loop/clauses.def"

#endif
