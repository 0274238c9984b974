/* SPDX-License-Identifier: Apache-2.0 */
/* How a sum of products of two operands is cut inside of its shared loops, as data: chosen with
 * the nest, printed and read back in nests and kernels, obeyed by back ends. In a line:
 *
 *     rows [a, d] columns [c] sum [b] levels [sum 256, columns 256 pack, rows 8 pack, columns 32]
 *
 * Labels have roles: rows are in the result and one operand, columns in the result and the other,
 * the sum in both operands alone; batches are all else. Of a role's labels the first is cut; the
 * others run position by position: further rows and columns around the first level of their role,
 * further sums and batches around all. Where labels share tiles a tile is of at most so many
 * positions of all labels of its role, the first the fastest. C: of packed operands the levels
 * down to the one that packs are boxes: the first labels whole as far as they fit, one cut, the
 * others position by position; a label of open extent is the last in its box; tiles inside cut
 * the positions of the box as one; of operands read in place one level of rows and one of columns, and one of
 * the sum around them or none. Trainium: outer levels are of as many whole tiles as the
 * numbers say; rows and sums that do not fit beside the first run position by position.
 *
 * A level is a loop over the label of its role in tiles, outermost first. `pack`: in each of its
 * iterations, what the operand that has this role holds within all tiles open then is copied
 * into panels (C: a buffer in the order it is read, filled in front of all loops that leave it as it is; Trainium: SBUF). The
 * innermost tiles of rows
 * and columns are the register tile (Trainium: a matmul into a bank of PSUM); tiles inside of a
 * level of the sum live at once there. A role without a level is whole; no levels at all: plain
 * loops. `parallel`, of one level of rows or columns, or of the batches (`batch [h] parallel`): threads may share one
 * of its loops, the outermost that has enough iterations; what is packed inside each packs for itself. */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include "dump/tree.h"

typedef enum ScheduleRole { ROLE_M, ROLE_N, ROLE_K, ROLE_BATCH, ROLE_COUNT } ScheduleRole;

typedef struct ScheduleLevel {
    ScheduleRole role; /* no batch */
    int64_t tile;      /* positions of one iteration, >= 1 */
    bool pack;         /* rows or columns */
    bool parallel;     /* rows or columns */
} ScheduleLevel;

typedef struct Schedule {
    uint32_t n_labels[ROLE_COUNT];
    const uint32_t *label[ROLE_COUNT]; /* of a node: its labels; of a statement: its indices */
    uint32_t n_levels;
    const ScheduleLevel *level;
    bool parallel_batches;
} Schedule;

const char *schedule_role_name(ScheduleRole role); /* "rows", "columns", "sum", "batch" */

/* C: an operand of at least so many bytes in memory, packed in blocks that few tiles of the other role multiply, is asked for
 * ahead while they run, so that what is slower counts alone. A tile asks for the lines of a step of the sum of as many
 * positions as a line of memory has: with fewer tiles than half as many as there are such groups the memory is waited for, with
 * more than these there is nothing to wait for. */
#define AHEAD_BYTES      (1 << 21)
#define AHEAD_MOST_CALLS 4
#define LINE_BYTES       64 /* of memory */

/* The innermost level of the role, or null. */
const ScheduleLevel *schedule_innermost(const Schedule *b, ScheduleRole role);
/* The outermost. */
const ScheduleLevel *schedule_outermost(const Schedule *b, ScheduleRole role);

/* How the owner of the labels writes and reads them. */
typedef void ScheduleLabel(void *user, uint32_t label, Text *out);
void schedule_dump(const Schedule *b, ScheduleLabel *put, void *user, Text *out);

/* The number that a name has, or -1. */
typedef int64_t ScheduleNumber(void *user, const Term *name);
/* At the cursor, if a role's name stands there; *out is null else. False: reported. */
bool schedule_read(Cursor *c, Arena *arena, ScheduleNumber *number, void *user,
                   const Schedule **out);

/* What is wrong with it, given the role that each of `n` labels must have (ROLE_COUNT: it is not
 * there): each is there once with that role, tiles of a role shrink inwards by whole numbers, levels have a register tile.
 * Null: nothing. */
const char *schedule_problem(const Schedule *b, uint32_t n, const ScheduleRole *role);
/* ---- strips.c: levels for an engine for matrices ---- */

#define STRIP_LEVELS 7 /* at most */

typedef struct Strips {
    int64_t tiles[2];  /* of all rows, of all columns */
    double bytes[2];   /* of the operand with the rows, with the columns, when all of it is
                             packed; 0: it is in place */
    double room;       /* for both */
    int64_t live;      /* tiles that may live at once */
    int64_t most_rows; /* tiles of rows among these */
    int64_t tile[ROLE_BATCH]; /* positions, by role */
    bool mirrored; /* the operands are one, and the result is its own transpose: square
                             blocks, of which half are computed */
} Strips;

/* A strip of row tiles times one of column tiles lives at once, the sum inside. Both operands
 * are packed where they fit; else one is, as much as fits, and the other passes by strip by
 * strip, the one of which less is read again; where no two strips fit, none is. Writes the
 * levels, at most STRIP_LEVELS; returns how many. */
uint32_t schedule_strips(const Strips *x, ScheduleLevel *level);
/* How many boxes of at most `most` points the labels are cut into, the first the fastest. */
int64_t schedule_boxes(uint32_t n, const int64_t *extent, int64_t most);

/* The role of a label by who has it. */
ScheduleRole schedule_role(bool in_result, bool in_left, bool in_right, bool rows_in_left);

#endif
