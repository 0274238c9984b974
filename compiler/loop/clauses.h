/* SPDX-License-Identifier: Apache-2.0 */
/* The clauses of statements, made of the rows of clauses.def: text, walks over operands, verification. */
#ifndef LOOP_CLAUSES_H
#define LOOP_CLAUSES_H

#include "loop/loop_read.h"
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

/* A clause of one statement: its row, and the operand, of which is null what its kind lacks. */
typedef struct Clause {
    StmtKind of;
    bool more;
    const char *word, *expected;
    ClauseProblem *problem;
    bool *flag;
    int64_t *number;
    uint32_t *index;     /* 1 + it */
    uint32_t *buf;       /* 1 + it: BUFFER, ACCESS */
    const Affine **at;   /* ACCESS */
    uint32_t *n_loops;   /* LOOPS: how many, */
    const VarRef **loop; /* and which */
} Clause;

/* The clauses that the statement has. */
#define CLAUSES_LIMIT 32
typedef struct Clauses {
    uint32_t n;
    Clause at[CLAUSES_LIMIT];
} Clauses;
void clauses_of(const Kernel *k, const Stmt *s, Clauses *out);

/* After the words of a tile statement's value, or of an alloc's declaration, whose buffer it is. */
void clauses_dump(const Kernel *k, const Stmt *s, Text *out);
bool clauses_read(LoopReader *r, Cursor *c, Stmt *s, Buffer *declared);

/* What is wrong with those of a tile statement, or null; the functions of the rows. */
ClauseProblem clauses_problem;
#define STMT_CLAUSE(of, word, operand, field, expected, problem) ClauseProblem problem;
#include "loop/clauses.def"

bool buffer_is_writable(const Kernel *k, BufRef buf); /* inout, a result, or allocated */

#endif
