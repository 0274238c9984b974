/* SPDX-License-Identifier: Apache-2.0 */
/* How a sum of products of two operands is cut inside of its shared loops, as data: chosen with
 * the nest, printed and read back in nests and kernels, obeyed by back ends. In a line:
 *
 *     rows [a, d] columns [c] sum [b] levels [sum 256, columns 256 pack, rows 8 pack, columns 32]
 *
 * Labels have roles: rows are in the result and one operand, columns in the result and the other,
 * the sum in both operands alone; batches are all else. Of a role's labels the first is cut; the
 * others run position by position: further rows and columns around the first level of their role,
 * further sums and batches around all.
 *
 * A level is a loop over the label of its role in tiles, outermost first. `pack`: in each of its
 * iterations, what the operand that has this role holds within all tiles open then is copied
 * into panels (C: a buffer in the order it is read; Trainium: SBUF). The innermost tiles of rows
 * and columns are the register tile (Trainium: a matmul into PSUM). A role without a level is
 * whole; no levels at all: plain loops. */
#ifndef TARGET_BLOCKING_H
#define TARGET_BLOCKING_H

#include "dump/tree.h"

typedef enum BlockRole {
    BLOCK_ROWS,
    BLOCK_COLUMNS,
    BLOCK_SUM,
    BLOCK_BATCH,
    BLOCK_ROLES
} BlockRole;

typedef struct BlockLevel {
    BlockRole role; /* no batch */
    int64_t tile;   /* positions of one iteration, >= 1 */
    bool pack;      /* rows or columns */
} BlockLevel;

typedef struct Blocking {
    uint32_t n_labels[BLOCK_ROLES];
    const uint32_t *label[BLOCK_ROLES]; /* of a node: its labels; of a statement: its indices */
    uint32_t n_levels;
    const BlockLevel *level;
} Blocking;

const char *block_role_name(BlockRole role); /* "rows", "columns", "sum", "batch" */

/* The innermost level of the role, or null. */
const BlockLevel *blocking_innermost(const Blocking *b, BlockRole role);
/* The outermost. */
const BlockLevel *blocking_outermost(const Blocking *b, BlockRole role);
bool blocking_eq(const Blocking *x, const Blocking *y);

/* How the owner of the labels writes and reads them. */
typedef void BlockingLabel(void *user, uint32_t label, Text *out);
void blocking_dump(const Blocking *b, BlockingLabel *put, void *user, Text *out);

/* The number that a name has, or -1. */
typedef int64_t BlockingNumber(void *user, const Term *name);
/* At the cursor, if a role's name stands there; *out is null else. False: reported. */
bool blocking_read(Cursor *c, Arena *arena, BlockingNumber *number, void *user,
                   const Blocking **out);

/* What is wrong with it, given the role that each of `n` labels must have (BLOCK_ROLES: it is not
 * there): each is there once with that role, tiles of a role shrink inwards by whole numbers, levels have a register tile.
 * Null: nothing. */
const char *blocking_problem(const Blocking *b, uint32_t n, const BlockRole *role);
/* The role of a label by who has it. */
BlockRole blocking_role(bool in_result, bool in_left, bool in_right, bool rows_in_left);

#endif
