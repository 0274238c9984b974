/* SPDX-License-Identifier: Apache-2.0 */
/* What a leaf keeps busy on a machine whose engines run side by side: one for matrices, one for vectors, one for functions, and
 * copies, which either of the last two takes. The back end says it of each leaf (SystolicTiles.leaf), by the table that it prints by. */
#ifndef NEST_ENGINES_H
#define NEST_ENGINES_H

#include "nest/facts.h"

/* Seconds. */
typedef struct Engines {
    double tensor, vector, scalar, copies;
    double memory; /* of copies from and to memory */
    double trips;  /* iterations after which the engines are at it together */
} Engines;

/* One execution of a leaf. */
typedef struct NestLeaf {
    const NestFacts *f;
    const Nest *nest;
    uint32_t item;
    const Schedule *schedule; /* of a contraction that has levels; or null */
    const double *extent;     /* of its labels */
    int32_t
        *on; /* [nodes]: the dimension that lies on partitions, or -1; the leaf sets its own */
} NestLeaf;

#endif
