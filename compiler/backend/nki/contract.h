/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction as contract.c has classified it, for blocks.c, which orders its tiles. */
#ifndef BACKEND_NKI_CONTRACT_H
#define BACKEND_NKI_CONTRACT_H

#include "backend/nki/lower_stmt.h"

typedef struct Contraction {
    Lower *l;
    const Stmt *s, *reader;     /* `reader` is computed from its tiles, or null */
    const Stmt *epilogue;       /* the same, where it is more than a copy */
    const Expr *epilogue_value; /* over the labels of `s` */
    Place dst, final, stationary, moving;
    const Expr *of[2]; /* the stationary operand and the moving one */
    Labels batch, m, n, k;
    Labels pm, om; /* rows in one tile, and those taken one by one */
    uint32_t with; /* 1 + a second label that is on partitions of a stage, or 0 */
    Labels pk, ok; /* likewise contracted labels */
    bool overwrite;
    const Schedule *levels;   /* as the statement has them, or null: blocks.c makes some */
    int64_t tile[ROLE_BATCH]; /* the innermost, by role */
} Contraction;

/* Operands, and labels by role; false: summed over one operand alone, or of types that the engine does not have. */
bool contract_begin(Contraction *c);
/* epilogue.c: what `reader` makes of the result, and where that goes. */
void contract_take_epilogue(Contraction *c);
/* Rows, columns and sums that share a tile, as the schedule says. */
void contract_shape(Contraction *c);
/* The operand that is stationary moves, and the other way round. */
void contract_swap(Contraction *c);
/* Batches, and rows that are taken one by one, in the order of the result; and how many positions of each share a bank. */
Labels contract_outer(const Contraction *c, int64_t *each);
/* How many matmuls it is. */
int64_t contract_matmuls(const Contraction *c);
/* Are the operands one, with the labels of rows and columns exchanged, and is a transpose of a tile cheaper than the product? */
bool contract_is_mirrored(const Contraction *c);
/* And are they so few tiles that blocks.c writes them out, not as loops? */
bool contract_is_small_mirror(const Contraction *c);
/* Emits all tiles; or says what the device does not have of the levels. */
void contract_blocks(Contraction *c);

/* The operands' places again, after a loop over their labels was opened or closed. */
void contract_places(Contraction *c);

/* The places of results, too. */
void contract_refresh(Contraction *c);
/* What becomes of a PSUM tile of a box, with these labels on its free axis. */
void contract_finish(Contraction *c, Labels result, const Box *box, TileView psum);

/* panels.c: the contraction as loops; false, and nothing done, where extents are no multiples of its tiles, or the like. */
bool contract_panels(Contraction *c);

/* Says that the target `why`, once; false. */
bool contract_refuse(Contraction *c, const char *why);

#endif
