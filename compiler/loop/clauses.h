/* SPDX-License-Identifier: Apache-2.0 */
/* The clauses of a statement as data, made of the rows of clauses.def: what text, copies and verification walk over. */
#ifndef LOOP_CLAUSES_H
#define LOOP_CLAUSES_H

#include "loop/loop.h"

/* A clause of one statement: its row, and the operand, of which is null what its kind lacks. */
typedef struct Clause {
    StmtKind of;
    bool more;
    uint32_t row; /* of clauses.def */
    const char *word, *expected;
    bool *flag;
    int64_t *number;
    uint32_t *index;     /* 1 + it */
    uint32_t *buf;       /* 1 + it: BUFFER, ACCESS */
    const Affine **at;   /* ACCESS */
    uint32_t *n_loops;   /* LOOPS: how many, */
    const VarRef **loop; /* and which */
} Clause;

#define CLAUSES_LIMIT 32
typedef struct Clauses {
    uint32_t n;
    Clause at[CLAUSES_LIMIT];
} Clauses;
/* All clauses of the statement's kind, there or not; `declared`: the buffer of an alloc. */
void clauses_all(Stmt *s, Buffer *declared, Clauses *out);
/* The clauses that the statement has. */
void clauses_of(const Kernel *k, const Stmt *s, Clauses *out);

#endif
