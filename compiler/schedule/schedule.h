/* SPDX-License-Identifier: Apache-2.0 */
/* How a sum of products of two operands is cut inside of its shared loops, as data: chosen with
 * the nest, printed and read back in nests and kernels, obeyed by back ends. In a line:
 *
 *     rows [a, d] columns [c] sum [b] levels [sum 256, columns 256 pack, rows 96 [24, 4] pack, rows 8, columns 32]
 *
 * Labels have roles. M, printed `rows`: in the result and one operand; N, `columns`: in the result and the other one;
 * K, `sum`: in both operands alone; `batch`: all else, position by position around everything.
 *
 * A level is a loop nest over the labels of its role, outermost level first. How many positions of each label one
 * iteration has is written in the level itself, its steps, and nowhere else: `rows 96 [24, 4]` are boxes of 24 positions
 * of the first label times 4 of the second one, at most 96 in all. Without steps a level cuts the first label and takes
 * the others position by position. A label whose step is no less than its extent is whole, one with step 1 runs position
 * by position; where several are cut, the first one runs innermost.
 *
 * `pack`: in each iteration of the level, what the operand with this role holds within all boxes open then is copied
 * into panels (C: a buffer in the order it is read, filled in front of all loops that leave it as it is; Trainium: SBUF).
 * Positions of a packed box are numbered, the first label the fastest, and further levels of its role are tiles of these
 * numbers, without steps. The innermost levels of M and N are the register tile (Trainium: a matmul into a bank of PSUM,
 * and outer levels of as many whole tiles as the numbers say); tiles inside of a level of K live at once there. A role
 * without a level is whole; no levels at all: plain loops.
 *
 * `parallel`, of one level of M or N, or of the batches (`batch [h] parallel`): threads may share one of its loops, the
 * outermost that has enough iterations; what is packed inside each packs for itself. */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include "dump/tree.h"
#include "target/target.h"

typedef enum ScheduleRole { ROLE_M, ROLE_N, ROLE_K, ROLE_BATCH, ROLE_COUNT } ScheduleRole;

typedef struct ScheduleLevel {
    ScheduleRole role; /* no batch */
    int64_t tile;      /* positions of one iteration, >= 1 */
    const int64_t *
        step; /* [n_labels[role]] of each label, >= 1, together no more than `tile`; null: `tile` of the
                            first label or, inside of what is packed, of its numbers */
    bool pack;     /* M or N */
    bool parallel; /* M or N */
} ScheduleLevel;

typedef struct Schedule {
    uint32_t n_labels[ROLE_COUNT];
    const uint32_t *label[ROLE_COUNT]; /* of a node: its labels; of a statement: its indices */
    uint32_t n_levels;
    const ScheduleLevel *level;
    bool parallel_batches;
    bool
        needed; /* what the one selection that reads the result leaves out is not computed, and 0 */
    bool given; /* read from a dump: obeyed as it stands */
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

/* ---- cut.c: levels times extents ---- */

/* One label as a schedule is made for it. */
typedef struct LabelExtent {
    int64_t typical;
    int64_t most;  /* INT64_MAX: open */
    int64_t tile;  /* of the loop of the nest that cuts it, or 0 */
    bool exact;    /* always `most` positions */
    bool position; /* cut to one: no label of the statement */
} LabelExtent;

/* Positions that are planned for, >= 1. */
int64_t label_planned(const LabelExtent *x);
/* Positions of the role's i-th label in one iteration of a level that is no tile of numbers. */
int64_t schedule_step(const ScheduleLevel *level, uint32_t i);
/* The steps of a box of at most `tile` positions: the first labels whole, the first of all cut to no more than `first`, one
 * cut to what is left, the others position by position. Of an open label `whole` is what is planned for. */
void schedule_cut(uint32_t n, const LabelExtent *const *x, int64_t tile, int64_t first,
                  int64_t *step);
/* Iterations of a level over its role's labels; extent: of the labels of the schedule's owner. */
double schedule_trips(const Schedule *b, const ScheduleLevel *level, const double *extent);

/* ---- text.c ---- */

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
    int64_t tiles[2];   /* of all rows, of all columns */
    double bytes[2];    /* of the operand with the rows, with the columns, when all of it is
                             packed; 0: it is in place */
    double room;        /* for both */
    int64_t live;       /* tiles that may live at once */
    int64_t most_rows;  /* tiles of rows among these */
    int64_t panel_rows; /* or so many, of one column, where neither operand stays; 0: never */
    int64_t tile[ROLE_BATCH]; /* positions, by role */
    bool mirrored; /* the operands are one, and the result is its own transpose: square
                             blocks, of which half are computed */
} Strips;

/* A strip of row tiles times one of column tiles lives at once, the sum inside. Both operands
 * are packed where they fit; else one is, as much as fits, and the other passes by strip by
 * strip, the one of which less is read again; where no two strips fit, none is. Where neither
 * operand stays, a panel of more rows halves what is read again: it is packed, and the columns
 * pass by it, a step of the sum at a time. Writes the
 * levels, at most STRIP_LEVELS; returns how many. */
/* Strips of full tiles of f32 sums, of which so many live at once; `tiles` and `bytes` are the caller's. */
Strips schedule_strips_on(const Machine *m, int64_t live);
uint32_t schedule_strips(const Strips *x, ScheduleLevel *level);
/* How many boxes of at most `most` points the labels are cut into, the first the fastest. */
int64_t schedule_boxes(uint32_t n, const int64_t *extent, int64_t most);

/* The role of a label by who has it. */
ScheduleRole schedule_role(bool in_result, bool in_left, bool in_right, bool rows_in_left);

#endif
