/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of recurrences take (price.h). */
#include "graph/recurrence.h"
#include "nest/price.h"

/* How many threads share the loop over a batch. */
static double batch_iterations(const Machine *machine, const Recurrence *r)
{
    const NestItem *loop = &r->nest->items[0];
    int64_t extent = nest_loop_extent(r->nest, 0);
    int64_t n = (extent + loop->tile - 1) / loop->tile;
    return (double)(n < machine->threads ? n : machine->threads > 0 ? machine->threads : 1);
}

/* Bytes of a step that the step before has left: states, what is read back, and what is the same in each step. */
static double kept_bytes(const Recurrence *r)
{
    double bytes = 0;
    for (NodeRef n = 0; n < r->body->nodes.n; n++) {
        const Node *node = graph_node(r->body, n);
        StepsRole role = node->op == OP_INPUT ? r->param[node->param].role : STEPS_EACH;
        double of = (double)nest_node_bytes(r->body, n);
        bytes += role == STEPS_STATE                          ? 2.0 * of
                 : role == STEPS_PRIOR || role == STEPS_WHOLE ? of
                                                              : 0.0;
    }
    return bytes;
}

/* Elements of an elementwise statement up to which it is a few operations in the loop over steps, and no function that is called. */
#define INLINE_ELEMENTS 16

/* What statements of so few elements would take as functions. */
static double inline_seconds(const Machine *machine, const Nest *nest)
{
    double seconds = 0;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        const Node *n = nest_is_loop(item) ? NULL : graph_node(nest->graph, item->node);
        double elements = 1, iterations = 1;
        for (uint32_t l = 0; n != NULL && l < n->n_labels; l++) {
            double extent = (double)nest_typical(nest->graph, n->extent[l]);
            uint32_t loop = nest_loop_of(nest, item->parent, item->node, (int32_t)l);
            double tile = loop == NEST_NONE ? extent : (double)nest->items[loop].tile;
            elements *= tile < extent ? tile : extent;
            iterations *= tile < extent ? extent / tile : 1.0;
        }
        bool inlined = n != NULL && node_is_expression(n) && elements < INLINE_ELEMENTS;
        seconds += inlined ? iterations * machine->time.statement : 0.0;
    }
    return seconds;
}

/* Steps take what the body takes, as often as there are steps; but what a level keeps from one step to the next comes from there. */
static void add_steps(const Machine *machine, const Nest *nest, const Recurrence *r,
                      NestCost *cost)
{
    const NestCost *each = &r->nest->cost;
    double steps = (double)nest_typical(nest->graph, r->extent), saved = 0;
    double iterations = r->batch ? batch_iterations(machine, r) : 1.0, kept = kept_bytes(r);
    for (uint32_t l = 0; l < MACHINE_LEVELS; l++) {
        int64_t inner = l + 1 < machine->n_levels ? machine->level[l + 1].capacity : 0;
        bool stays = kept / iterations <= 0.5 * (double)inner && each->bytes[l] > 0;
        double part = !stays ? 1.0 : kept < each->bytes[l] ? 1.0 - kept / each->bytes[l] : 0.0;
        cost->waits[l] += steps * part * each->waits[l];
        cost->bytes[l] += steps * part * each->bytes[l];
        saved += (1.0 - part) * each->waits[l];
    }
    double start = machine->time.start; /* of a call, which a step is not */
    start += inline_seconds(machine, r->nest);
    double arithmetic = each->arithmetic > start ? each->arithmetic - start : 0.0;
    double seconds = each->seconds - start - saved;
    seconds = seconds > arithmetic ? seconds : arithmetic;
    cost->seconds += steps * seconds;
    cost->path += steps * (r->batch            ? seconds / iterations
                           : each->seconds > 0 ? each->path * seconds / each->seconds
                                               : 0.0);
    cost->arithmetic += steps * arithmetic;
    cost->multiply_adds =
        sat_add(cost->multiply_adds, sat_mul((int64_t)steps, each->multiply_adds));
}

void price_add_steps(const Machine *machine, const Nest *nest, NestCost *cost)
{
    for (uint32_t k = 0; k < nest->graph->recurrences.n; k++) {
        if (nest->graph->recurrences.at[k]->nest != NULL) {
            add_steps(machine, nest, nest->graph->recurrences.at[k], cost);
        }
    }
}
