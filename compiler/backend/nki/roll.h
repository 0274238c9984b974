/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the roller. A kernel as a flat list of nodes, each a statement or a loop that was made
 * of equal runs. A node is a shape (its key) and numbers: the constants of all its accesses in
 * order (`base`), and the buffers they are of (`ref`). Nodes of one key differ in numbers and
 * buffers only; a loop has the numbers of its first iteration and what each grows by. The
 * numbers of a node inside a loop are those of the loop: only nodes of the list count.
 * A matmul has one number more, how many there are before it in its group, below 0: what is 0 begins the group, so a loop begins it in
 * its first iteration if the number has a step.
 * Allocations are no nodes: a tile begins before its first access, in the innermost loop that
 * has all of them. */
#ifndef BACKEND_NKI_ROLL_H
#define BACKEND_NKI_ROLL_H

#include "backend/nki/nki.h"

typedef struct RollRef {
    BufRef buf;
    uint32_t slot; /* the number of its first dimension */
    bool all;      /* of the tile */
} RollRef;

typedef struct RollNode {
    uint64_t key;
    StmtKind kind;
    const Stmt *stmt;
    uint32_t n_base, n_ref, leaves;
    int64_t *base;
    RollRef *ref;
    uint32_t n_body; /* a loop */
    struct RollNode **body;
    int64_t trips;
    int64_t *step; /* [n_base] */
    bool *own;     /* [n_ref] the tile is one of an iteration: it begins in the body */
    const Stmt *
        given; /* a loop that the kernel had before, whose variable is in the accesses; or null */
} RollNode;

typedef struct RollBuf {
    BufRef to;      /* it became a part of this tile, or is itself */
    int64_t offset; /* elements from that one's start */
    uint32_t uses;  /* accesses in the list */
    uint32_t depth; /* given loops around its allocation */
    const Stmt *alloc;
    bool sums;   /* a matmul begins sums there, before all else */
    bool partly; /* some access is to a part of it */
    /* of the match at hand */
    uint64_t mark;
    uint32_t count, position, iteration, family;
    uint64_t joins; /* mark of the tiles that are to become one */
    /* of the statements that are put together: this tile is that one, or that one is this */
    uint64_t paired;
    BufRef pair;
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
    int64_t work;  /* left */
    int64_t merge; /* bytes of a partition that tiles which become one may have; 0: none does */
    RollNodes *users; /* [k->bufs] while the list is flat and no tile is new; else null */
    bool outer;       /* also those that began before the runs that use them? */
    uint32_t depth;   /* given loops around the list */
    uint64_t n_given; /* loops and blocks that the kernel has, so far */
    Map groups;       /* of sums: their matmuls so far */
    int64_t stream;   /* see roll_streams; 0: none is joined */
    bool operands;
} Roll;

/* roll_join.c */
bool roll_may_join(Roll *r, const BufRef *part, uint32_t n);
/* Joins tiles of one shape, the i-th at i times their length. */
BufRef roll_join(Roll *r, const BufRef *part, uint32_t n);
void roll_refresh(Roll *r, RollNode *n);
/* roll.c */
/* Makes loops in r->list, of statements that are `depth` given loops in. */
void roll_list(Roll *r);
/* Makes loops inside a loop that the kernel has, of which nothing but its statements is known. */
void roll_given(Roll *r, RollNode *loop);
/* Is the tile allocated beside the statements of the list? */
bool roll_is_here(const Roll *r, BufRef buf);
uint64_t roll_loop_key(const RollNode *loop);
/* roll_stream.c: tiles that are loaded one after the other from places in equal steps become
 * parts of one, where that has at most so many bytes of a partition. */
void roll_streams(Roll *r, int64_t most, bool operands); /* also those that were turned? */
/* PSUM tiles of a bank each that are opened one after the other become a list. */
void roll_banks(Roll *r);
/* roll_node.c */
void roll_nodes(Roll *r);
Kernel *roll_kernel(Roll *r);
/* roll_name.c */
void roll_names(Roll *r);
/* roll_check.c: do both run the same instructions on the same data? */
bool roll_same(Arena *arena, const Kernel *unrolled, const Kernel *rolled);

#endif
