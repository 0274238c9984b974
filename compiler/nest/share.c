/* SPDX-License-Identifier: Apache-2.0 */
/* Marks what threads share in a nest: what its price says is best (threads.c). */
#include "nest/share.h"

#include <string.h>

#include "nest/parallel.h"
#include "nest/plan.h"
#include "nest/schedules.h"

/* Nothing in a shared loop is shared. */
static void set_marks(Arena *arena, const Machine *machine, Nest *nest, const NestMarks *marks)
{
    NestItem *items = arena_copy(arena, nest->items, nest->n_items * sizeof *items);
    NestValue *values = arena_copy(arena, nest->values, nest->graph->nodes.n * sizeof *values);
    uint32_t end = 0; /* of the shared loop */
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const Schedule *b = nest_is_loop(&items[k]) ? NULL : values[items[k].node].schedule;
        bool all = machine->threads == 0 && items[k].parent == NEST_NONE;
        items[k].parallel = nest_is_loop(&items[k]) && k >= end &&
                            (all ? nest_may_share(machine, nest, k) : marks->loop[k]);
        end = items[k].parallel ? items[k].end : end;
        if (b == NULL || k < end || marks->level[k] > b->n_levels) {
            continue;
        }
        Schedule *shared = arena_copy(arena, b, sizeof *b);
        ScheduleLevel *level = arena_copy(arena, b->level, b->n_levels * sizeof *level);
        shared->parallel_batches = marks->level[k] == b->n_levels;
        if (marks->level[k] < b->n_levels) {
            level[marks->level[k]].parallel = true;
        }
        shared->level = level;
        values[items[k].node].schedule = shared;
    }
    nest->items = items;
    nest->values = values;
}

void nest_share(Ctx *ctx, Arena *arena, const Machine *machine, Nest *nest, LeafLoops *loops)
{
    Arena scratch;
    Pricer pricer;
    NestFacts facts;
    arena_init(&scratch, &ctx->budget);
    NestMarks marks = {ARENA_ARRAY(&scratch, nest->n_items, bool),
                       ARENA_ARRAY(&scratch, nest->n_items, uint32_t), loops};
    memset(marks.level, 0xff, nest->n_items * sizeof *marks.level); /* NEST_NONE */
    pricer_of(&scratch, nest, machine, &facts, &pricer);
    (void)nest_price(&scratch, &pricer, nest, &marks);
    set_marks(arena, machine, nest, &marks);
    arena_release(&scratch);
}

static bool is_in_shared(const Nest *nest, uint32_t k)
{
    bool any = false;
    for (; k != NEST_NONE; k = nest->items[k].parent) {
        any |= nest->items[k].parallel;
    }
    return any;
}

void nest_block(Ctx *ctx, Arena *arena, const Machine *machine, Nest *nest)
{
    Arena scratch;
    NestFacts facts;
    uint32_t n = nest->graph->nodes.n;
    arena_init(&scratch, &ctx->budget);
    nest_facts_in(&scratch, nest, &facts);
    bool *given = ARENA_ARRAY(&scratch, n, bool), any = false;
    for (NodeRef k = 0; k < n; k++) {
        given[k] = nest->values[k].schedule != NULL;
    }
    NestValue *values = nest_set_schedules(arena, &facts, machine, nest);
    for (NodeRef k = 0; k < n; k++) {
        any |= !given[k] && values[k].schedule != NULL;
    }
    Nest shared = *nest;
    if (any) {
        nest_share(ctx, arena, machine, &shared, NULL);
    }
    for (NodeRef k = 0; any && k < n; k++) {
        values[k].schedule = given[k] || is_in_shared(nest, values[k].item)
                                 ? values[k].schedule
                                 : shared.values[k].schedule;
    }
    arena_release(&scratch);
}
