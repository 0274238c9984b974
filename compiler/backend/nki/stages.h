/* SPDX-License-Identifier: Apache-2.0 */
/* Loops in stages (software pipelining). The body of a loop is cut into pieces, which are run in an order of their own; a piece that is
 * `late` works for an iteration before the one at hand:
 *
 *     for i: A(i), B(i), C(i)   ->   for i in range(n + 1) { if i < n: A(i); if i >= 1: C(i - 1); if i < n: B(i) }
 *
 * pipeline.c says which orders are right and makes the loop, stages.c looks for one. */
#ifndef BACKEND_NKI_STAGES_H
#define BACKEND_NKI_STAGES_H

#include "backend/nki/nki.h"

#define PIECES      24 /* of a loop's body, at most */
#define STAGES_MOST 3

/* Statements [from, to) of the body. */
typedef struct Piece {
    uint32_t from, to;
    uint32_t late; /* iterations */
} Piece;

/* Of one loop. */
typedef struct Stages {
    uint32_t n;    /* pieces */
    uint32_t loop; /* number of the loop in the text */
    bool
        wide; /* what passes from one stage to another has a tile for each iteration; else two, for pairs of these */
    Piece piece[PIECES]; /* as they are run */
} Stages;

#define STAGED_MOST 4

/* Of several loops, one after the other: each of the kernel with those before it in stages. */
typedef struct Staging {
    uint32_t n;
    Stages of[STAGED_MOST];
} Staging;

/* Who uses what in the body of a loop that may be run in stages: bits of pieces, by buffer. */
typedef struct PieceUses {
    const Kernel *k;
    const Stmt *loop;
    uint32_t n, from[PIECES + 1]; /* piece `i` is statements [from[i], from[i + 1]) */
    uint32_t *read, *write;       /* [bufs] */
    bool *own;                    /* [bufs] allocated in the body */
    /* [i][j], i before j: what one of them writes the other uses; */
    bool passes[PIECES][PIECES];  /* in a tile of the iteration, */
    bool in_psum[PIECES][PIECES]; /* which is in PSUM, */
    bool carried[PIECES][PIECES]; /* or in one that iterations share */
} PieceUses;

/* pipeline.c: the uses of these pieces. False: no stages, as iterations differ. */
bool stages_uses(Arena *a, const Kernel *k, const Stmt *loop, PieceUses *uses);
/* Does each iteration find there what it does without stages? */
bool stages_are_right(const PieceUses *uses, const Stages *s);
/* Bytes of a partition that pass from one stage to another, of an iteration. */
int64_t stages_pass(const PieceUses *uses, const Stages *s);
/* The LEGAL kernel with the loop in stages that are right; `trips`: so many iterations of it, 0: all. Null: too few of them. */
Kernel *lower_pipelined(Ctx *ctx, Arena *arena, const PieceUses *uses, const Stages *s,
                        int64_t trips);

/* stages.c: the LEGAL kernel with its longest loops in stages: as *staging says, or, where that says nothing, those that gain most,
 * which are then there. Null: none gain enough. */
Kernel *lower_in_stages(Ctx *ctx, Arena *arena, const NkiChip *chip, const Kernel *k,
                        Staging *staging);

/* The loop, of those whose variables are not in `tried`, that has most statements in all its iterations; or null. */
const Stmt *stages_longest_loop(Arena *arena, const Kernel *k, const bool *tried);

#endif
