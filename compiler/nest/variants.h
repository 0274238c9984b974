/* SPDX-License-Identifier: Apache-2.0 */
/* Other nests for a kernel, for who measures instead of trusting the price. All decide the same: each is legal by itself,
 * priced, and computes what the one given computes. Back ends may refuse levels. */
#ifndef NEST_VARIANTS_H
#define NEST_VARIANTS_H

#include "nest/nest.h"

typedef struct NestVariant {
    const Nest *nest;
    const char *what; /* "no fusion", "T: sum 128" */
} NestVariant;

typedef struct NestVariants {
    VEC(NestVariant) list;
} NestVariants;

/* Other trees of loops: without fusion, and the one that the search turned down. Nests for other sizes
 * of open dims are those of `chosen`. */
void nest_other_trees(Ctx *ctx, Arena *arena, const Machine *machine, const Nest *chosen,
                      NestVariants *out);

/* The same tree with one change in the levels of one contraction, of the largest few: other blocks, other register
 * tiles, another order, packed or not. */
void nest_other_levels(Ctx *ctx, Arena *arena, const Machine *machine, const Nest *nest,
                       NestVariants *out);

#endif
