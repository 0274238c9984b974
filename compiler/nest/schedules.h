/* SPDX-License-Identifier: Apache-2.0 */
/* The schedules of contractions. */
#ifndef NEST_SCHEDULES_H
#define NEST_SCHEDULES_H

#include "nest/facts.h"

/* How the leaf at `item` is cut inside of its loops; null when it is no sum of products, of a type that has register tiles, of two
 * operands with an index of its own each. */
const Schedule *contraction_schedule(Arena *arena, const NestFacts *f, const Machine *machine,
                                     const Nest *nest, uint32_t item);
/* Cuts the contractions of the nest that have no schedule yet, in a copy of its values, which is returned. */
NestValue *nest_set_schedules(Arena *arena, const NestFacts *f, const Machine *machine,
                              Nest *nest);

#endif
