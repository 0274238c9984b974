/* SPDX-License-Identifier: Apache-2.0 */
/* What a leaf keeps busy on a machine whose engines run side by side: one for matrices, one for vectors, one for functions, and
 * copies, which either of the last two takes. */
#ifndef NEST_ENGINES_H
#define NEST_ENGINES_H

#include "nest/contraction.h"

/* Seconds. */
typedef struct Engines {
    double tensor, vector, scalar, copies;
    double memory; /* of copies from and to memory */
    double trips;  /* iterations after which the engines are at it together */
    double chain;  /* of statements, one after the other */
} Engines;

/* One execution of the leaf, for the extents of its labels there. `on` [nodes]: the dimension that lies on partitions, or -1; set for
 * what the leaf makes. */
void engines_of_leaf(const NestFacts *f, const Machine *machine, const Nest *nest,
                     uint32_t item, const Schedule *schedule, const double *extent, int32_t *on,
                     Engines *out);
/* Adds `times` executions. */
void engines_add(Engines *sum, const Engines *one, double times);
/* Of what runs in the same loops: as long as the engine that has most to do, and one iteration until all of them are at it. */
double engines_seconds(const Engines *e);

#endif
