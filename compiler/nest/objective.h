/* SPDX-License-Identifier: Apache-2.0 */
/* What a nest is chosen by: its price, with what needless bytes, large blocks, values in memory and idle threads add to it (kinds.def). */
#ifndef NEST_OBJECTIVE_H
#define NEST_OBJECTIVE_H

#include "nest/facts.h"

static inline bool nest_is_open(const Graph *g)
{
    return g->dims.list.n > 0;
}

/* Seconds of one thread, and more the less others gain. */
double nest_counted(const Machine *machine, const NestCost *cost);
/* What a nest is chosen by, less is better. */
double nest_worth(const Machine *machine, const Nest *nest);
/* The same of this price; `compulsory`: bytes of memory that every nest moves. */
double nest_weighed(const Machine *machine, const Nest *nest, const NestCost *cost,
                    double compulsory);

/* Seconds by which nests are compared: those of the price, and more for bytes beyond the `compulsory`; */
double nest_preference(const Machine *machine, const NestCost *cost, double compulsory);
/* ... times what threads do not gain, */
double nest_threads_factor(const Machine *machine, const NestCost *cost);
/* ... times what values and blocks that outgrow the level of blocks cost beside their traffic. */
double nest_footprint(const Machine *machine, const Nest *nest, const NestCost *cost);

/* Is a value in memory? And bytes of the values in memory that are no results, together. */
bool nest_has_spills(const NestFacts *f, const Machine *machine, const Nest *nest);
int64_t nest_spilled_bytes(const NestFacts *f, const Nest *nest);

#endif
