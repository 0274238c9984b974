/* SPDX-License-Identifier: Apache-2.0 */
/* What threads share. */
#ifndef NEST_SHARE_H
#define NEST_SHARE_H

#include "nest/price_leaf.h"

/* Marks what threads best share, in a nest that has schedules; `loops`, if not null: of each item, those that may be put around it for
 * them. */
void nest_share(Ctx *ctx, Arena *arena, const Machine *machine, Nest *nest, LeafLoops *loops);

#endif
