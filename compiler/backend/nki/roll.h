/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the roller. A kernel as a flat list of nodes, each a statement or a loop that was made
 * of equal runs. A node is a shape (its key) and numbers: the constants of all its accesses in
 * order (`base`), and the buffers they are of (`ref`). Nodes of one key differ in numbers and
 * buffers only; a loop has the numbers of its first iteration and what each grows by. The
 * numbers of a node inside a loop are those of the loop: only nodes of the list count. */
#ifndef BACKEND_NKI_ROLL_H
#define BACKEND_NKI_ROLL_H

#include "backend/nki/nki.h"

typedef struct RollRef {
    BufRef buf;
    bool alloc;    /* here it begins; else an access */
    uint32_t slot; /* of an access: the number of its first dimension */
} RollRef;

typedef struct RollNode {
    uint64_t key;
    StmtKind kind;
    const Stmt *stmt;
    const Stmt *fill; /* of a tile: what opens its group; of a reduction: what opens it */
    uint32_t n_base, n_ref, leaves;
    int64_t *base;
    RollRef *ref;
    uint32_t n_body; /* a loop */
    struct RollNode **body;
    int64_t trips;
    int64_t *step; /* [n_base] */
} RollNode;

typedef struct RollBuf {
    BufRef to;      /* it became a part of this tile, or is itself */
    int64_t offset; /* elements from that one's start */
    uint32_t uses;  /* accesses in the list */
    bool top;       /* begins in the list, not in a loop */
    /* of the match at hand */
    uint64_t mark;
    uint32_t position, iteration, family;
    uint64_t joins; /* mark of the tiles that are to become one */
} RollBuf;

typedef VEC(RollNode *) RollNodes;

typedef struct Roll {
    Ctx *ctx;
    Arena *arena;
    const NkiChip *chip;
    const Kernel *from;
    Kernel *k; /* as `from`, and tiles made of many */
    RollNodes list;
    VEC(RollBuf) buf;
    VEC(const char *) hint; /* [k->bufs] names by role */
    uint64_t mark;
    int64_t work; /* left */
    bool merge;   /* may tiles become one? */
    bool outer;   /* also those that began before the runs that use them? */
} Roll;

/* roll_node.c */
void roll_nodes(Roll *r);
Kernel *roll_kernel(Roll *r);
/* roll_name.c */
void roll_names(Roll *r);
/* roll_check.c: do both run the same instructions on the same data? */
bool roll_same(Arena *arena, const Kernel *unrolled, const Kernel *rolled);

#endif
