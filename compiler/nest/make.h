/* SPDX-License-Identifier: Apache-2.0 */
/* From a tree to a nest. */
#ifndef NEST_MAKE_H
#define NEST_MAKE_H

#include "nest/facts.h"
#include "nest/tree.h"

/* The nest that the tree is, with places and kinds of leaves for the machine. `chip`: the same machine, or null: all values that
 * cross top-level items are in memory. */
Nest *nest_placed(Arena *arena, const NestFacts *f, const Machine *machine, const Machine *chip,
                  const Tree *tree);
/* The same with schedules and what threads share, priced. */
Nest *nest_of_tree(Ctx *ctx, Arena *arena, const NestFacts *f, const Machine *machine,
                   const Machine *chip, const Tree *tree);
/* lone_leaves.c: the same with loops around leaves that stand in none, where masks or threads gain by them. */
Nest *nest_with_loops(Ctx *ctx, Arena *arena, const NestFacts *f, const Machine *machine,
                      const Tree *tree);

#endif
