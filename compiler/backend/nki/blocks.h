/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks a contraction is computed in (block_plan.c), for blocks.c, which emits them. */
#ifndef BACKEND_NKI_BLOCKS_H
#define BACKEND_NKI_BLOCKS_H

#include "backend/nki/contract.h"

enum { STATIONARY = ROLE_M, MOVING = ROLE_N };

typedef struct Block {
    uint32_t group, strip[2]; /* of rows, of columns */
    uint32_t tag[2]; /* of what is kept for it alone, or 0: for all of the contraction */
} Block;

typedef struct Side {
    const Place *place;
    Labels own;     /* its rows or columns */
    Labels slab;    /* with the outer labels, as they lie in a slab */
    bool together;  /* a slab holds all positions of a group */
    bool streams;   /* strips are forgotten when they have passed */
    bool passes;    /* is it forgotten after its step? */
    bool turns;     /* is it transposed on the way? */
    uint32_t packs; /* how often it has been packed */
} Side;

/* One bank's worth of a block. */
typedef struct Bank {
    Box box; /* its rows and columns */
    TileView psum;
    TileView row; /* of a symmetric result: what was stored */
} Bank;

typedef struct Plan {
    Contraction *c;
    Lower *l;
    Side side[2];
    Labels outer, result; /* `result`: outer labels and columns, as they lie in a PSUM tile */
    int64_t mstep[LABELS], nstep[LABELS], gstep[LABELS]; /* of one tile */
    VEC(Box) strips[2], groups, k; /* by role; positions of `outer`; K steps */
    VEC(Block) blocks;
    ScheduleLevel level[STRIP_LEVELS]; /* where the statement has none */
    Schedule own;
    const Schedule *levels;
    int64_t strip[2]; /* tiles of a strip, by role */
    bool symmetric;
    bool turns;  /* is an operand transposed on the way? */
    bool stays;  /* are all operands loaded once, and kept? */
    bool passes; /* does an operand that is not turned pass by one that stays? */
    bool fits;   /* is there room for what is packed, and all slabs of a block? */
    Bank
        below[NKI_PSUM_BANKS]; /* banks of a symmetric block whose mirror image is to be made */
    uint32_t n_below;
    VarRef sum_loop; /* over K steps, or UINT32_MAX, */
    bool later;      /* and are these all behind it? */
    int64_t made[2]; /* steps (block times K step) whose slabs have been asked for */
} Plan;

/* Plans all of it; false: refused, or too long. */
bool plan_blocks(Plan *p, Contraction *c);
/* The K steps of the labels as they are now. */
void plan_k(Plan *p);
/* The tile that is open at the sum. */
int64_t strip_tile(const Schedule *b, ScheduleRole role);

#endif
