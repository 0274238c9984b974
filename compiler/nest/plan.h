/* SPDX-License-Identifier: Apache-2.0 */
/* The planners. All decide for the machine and typical extents, and count steps. */
#ifndef NEST_PLAN_H
#define NEST_PLAN_H

#include "nest/nest.h"

/* Every value in an item of its own: what --no-fuse gives. */
Nest *nest_unfused(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine);
/* In program order, each value joins the loops of what it reads while the blocks fit. */
Nest *nest_greedy(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine);
/* The cheapest that a search of so much effort finds, but what saves little by cutting
 * contractions; with 0, none of it. It takes no longer than no fusion, by the price and 2 %; but a quarter
 * where that has values of 64 MiB in memory, and a quarter at the typical sizes of open dims. */
Nest *nest_choose(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                  uint32_t effort);
/* The same in `most` steps at most. */
Nest *nest_choose_within(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                         uint32_t effort, uint64_t most);
/* Looks, for each open dim, at an eighth and at eight times its typical size; where a nest made for that is predicted to
 * save much, the one dim where it saves most gets it: the chosen nest becomes one of two or three. */
void nest_choose_sizes(Ctx *ctx, Arena *arena, const Machine *machine, uint32_t effort,
                       Nest *chosen);
/* Plans the bodies of the graph's recurrences; with effort 0 without fusion. */
void nest_recurrences(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                      uint32_t effort);
/* Is the nest of a body one loop, of which each position has its states to itself? */
bool nest_is_batch(const struct Recurrence *r);
/* Cuts the contractions of a nest that have no schedule yet. */
void nest_block(Ctx *ctx, Arena *arena, const Machine *machine, Nest *nest);

#endif
