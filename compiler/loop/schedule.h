/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule: decisions only, as plain data, for each group of a partition: in which order
 * its axes are looped over, by what tile, and which loop may run in parallel. It can be
 * printed, read and set from outside; loop/build.c obeys it. */
#ifndef LOOP_SCHEDULE_H
#define LOOP_SCHEDULE_H

#include "fuse/fuse.h"
#include "loop/loop.h"

typedef struct AxisSchedule {
    uint32_t axis; /* of the group */
    int64_t tile;  /* >= 1 */
    bool parallel;
} AxisSchedule;

typedef struct GroupSchedule {
    uint32_t n_axes;
    const AxisSchedule
        *axes; /* outermost first; axes left out are not looped over: their blocks are whole */
} GroupSchedule;

typedef struct Schedule {
    const Partition *partition;
    const GroupSchedule *groups; /* [n_groups] */
} Schedule;

/* schedule.c: chooses for the machine, with typical extents. */
Schedule *schedule_choose(Ctx *ctx, Arena *arena, const Partition *p, const Machine *machine);
/* Loops around node number `at` of the group: to the innermost whose axis it has. What stands
 * further out than the innermost loop is computed before the loops inside it begin. */
uint32_t schedule_depth(const Schedule *s, uint32_t group, uint32_t at);
bool schedule_verify(Ctx *ctx, const Schedule *s, const char *stage);
void schedule_dump(const Schedule *s, Text *out);
Schedule *schedule_read(Ctx *ctx, Arena *arena, const Partition *p, const DumpLine *line);

/* build.c: a kernel in form LOOP_TILED; mechanism only. */
Kernel *loop_build(Ctx *ctx, Arena *arena, const Schedule *s);

#endif
