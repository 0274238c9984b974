/* SPDX-License-Identifier: Apache-2.0 */
/* See make.h. */
#include "nest/make.h"

#include "nest/estimate.h"
#include "nest/greedy.h"
#include "nest/leaves.h"
#include "nest/place.h"
#include "nest/plan.h"
#include "nest/schedules.h"
#include "nest/share.h"

Nest *nest_placed(Arena *arena, const NestFacts *f, const Machine *machine, const Machine *chip,
                  const Tree *tree)
{
    Nest *nest = tree_nest(arena, f->g, tree);
    NestValue *values = nest_place(arena, f, chip, nest);
    nest->values = values;
    nest_set_pairs(arena, f, machine, nest);
    nest_set_leaves(arena, machine, nest, values);
    return nest;
}

Nest *nest_of_tree(Ctx *ctx, Arena *arena, const NestFacts *f, const Machine *machine,
                   const Machine *chip, const Tree *tree)
{
    Nest *nest = nest_placed(arena, f, machine, chip, tree);
    (void)nest_set_schedules(arena, f, machine, nest);
    nest_share(ctx, arena, machine, nest, NULL);
    nest_estimate(ctx, machine, nest);
    return nest;
}

static Nest *plan(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine, bool fuse)
{
    NestFacts *facts = ARENA_NEW(arena, NestFacts);
    Tree tree = {0};
    nest_facts(arena, g, facts);
    greedy_tree(ctx, arena, facts, machine, fuse, &tree);
    return nest_of_tree(ctx, arena, facts, machine, fuse ? machine : NULL, &tree);
}

Nest *nest_greedy(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine)
{
    return plan(ctx, arena, g, machine, true);
}

Nest *nest_unfused(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine)
{
    return plan(ctx, arena, g, machine, false);
}
