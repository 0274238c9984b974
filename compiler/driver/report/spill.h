/* SPDX-License-Identifier: Apache-2.0 */
/* Values that go to memory: why, and what would avoid it, in words. */
#ifndef DRIVER_REPORT_SPILL_H
#define DRIVER_REPORT_SPILL_H

#include "nest/nest.h"

/* Does the block of a stored value, where it lives, grow with this open dim; with any? */
bool nest_grows_with(const Nest *nest, NodeRef n, int32_t dim);
bool nest_grows(const Nest *nest, NodeRef n);
/* The largest size of the open dim at which the block takes no more than `bytes`, the others being typical. */
int64_t nest_stays_to(const Nest *nest, NodeRef n, int32_t dim, int64_t bytes);
/* "stays in L2 up to n = 512 (typical sizes else)", of blocks that grow; else null. */
const char *nest_stays_words(Arena *arena, const Nest *nest, const Machine *machine, NodeRef n);

/* Of a value in the workspace, in words, from the tree as it is. */
typedef struct NestSpill {
    NodeRef reader;    /* that shares no loop with the writer, or NODE_NONE */
    const char *why;   /* no loop holds the value */
    const char *size;  /* all of it is not on chip, or null */
    const char *avoid; /* what would help, or null */
} NestSpill;
/* What the words about all of them need. */
typedef struct NestSpills NestSpills;
const NestSpills *nest_spills(Arena *arena, const Nest *nest, const Machine *machine);
/* In the arena of `spills`. */
NestSpill nest_spill(const NestSpills *spills, NodeRef n);

/* Warns -Wspill for values in the workspace, but not for those that grow and stay in the level of blocks at typical extents; and for
 * blocks that grow and are larger then than any level. */
void nest_warn_spills(Ctx *ctx, const Nest *nest, const Machine *machine);

#endif
