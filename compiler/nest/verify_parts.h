/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the folder: what the verifier checks in a file of its own, with nothing of the planners. */
#ifndef NEST_VERIFY_PARTS_H
#define NEST_VERIFY_PARTS_H

#include "nest/uses.h"

/* verify_online.c: what is wrong with a loop that is called online, of value *at, or null. Its form and all else that it says
 * is right. */
const char *nest_online_problem(Arena *arena, const Nest *nest, const UseList *uses,
                                const uint32_t *leaf, uint32_t loop, NodeRef *at);

/* verify_schedule.c: what is wrong with the schedule of a leaf that reads this, or null. */
const char *nest_schedule_problem(Arena *arena, const Nest *nest, const UseList *u,
                                  uint32_t item);

/* verify_halo.c: what is wrong with the positions of the leaf's value that loops around it compute, or null. Where it lives is
 * right. */
const char *nest_halo_problem(Arena *arena, const Nest *nest, const UseList *uses,
                              uint32_t item);

/* verify_recurrence.c; false after a report. */
bool nest_recurrences_hold(Ctx *ctx, const Nest *nest, const char *stage);

/* verify_sizes.c: what is wrong with the sizes that several nests are for, or null. */
const char *nest_sizes_problem(const Nest *nest);
/* Says that loop `k` does not cut the tile of `around`, a loop over the same axis around it. */
void nest_refuse_tile(Ctx *ctx, Arena *arena, const Nest *nest, const char *stage, uint32_t k,
                      uint32_t around);

#endif
