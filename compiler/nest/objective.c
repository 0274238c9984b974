/* SPDX-License-Identifier: Apache-2.0 */
/* See objective.h. */
#include "nest/objective.h"

#include <math.h>

#include "nest/kinds.h"

int64_t nest_spilled_bytes(const NestFacts *f, const Nest *nest)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < f->n_stored; k++) {
        const NestValue *v = &nest->values[f->stored[k]];
        bytes = v->residence == RESIDE_WORKSPACE ? sat_add(bytes, v->bytes) : bytes;
    }
    return bytes;
}

/* Is the value read at shifted positions in its loop? Then its tiles may be short at little cost, and the block near. */
static bool has_halo(const Nest *nest, NodeRef n)
{
    uint32_t loop = nest->values[n].alloc_loop;
    while (loop != NEST_NONE && nest_halo(nest, loop, n).count == 0) {
        loop = nest->items[loop].parent;
    }
    return loop != NEST_NONE;
}

/* What the value costs beside its traffic, if it is in memory: in proportion to that, where threads share the rest. */
static double spill_factor(const Machine *m, const Nest *nest, const NestValue *v,
                           const NestCost *cost)
{
    const MachineTraits *w = machine_traits(m);
    double most = nest_is_open(nest->graph) ? w->spill_open : w->spill;
    uint32_t at = 0; /* the level where it lives */
    while (at + 2 < m->n_levels && v->bytes <= m->level[at + 1].capacity) {
        at++;
    }
    double traffic = 2.0 * (double)v->bytes / m->level[at].bytes_per_second;
    double factor = 1.0 + w->spill_traffic * traffic / cost->seconds;
    return factor < most ? factor : most;
}

double nest_threads_factor(const Machine *m, const NestCost *cost)
{
    return m->threads < 2 || cost->seconds <= 0.0
               ? 1.0
               : pow((double)m->threads * cost->path / cost->seconds, machine_traits(m)->idle);
}

double nest_footprint(const Machine *machine, const Nest *nest, const NestCost *cost)
{
    const MachineTraits *kind = machine_traits(machine);
    int64_t capacity = machine_tile_capacity(machine);
    double worst = 1.0, largest = 1.0; /* of values in memory, of blocks */
    for (uint32_t k = 0; capacity > 0 && k < nest->n_items; k++) {
        if (nest_is_loop(&nest->items[k])) {
            continue;
        }
        const NestValue *v = &nest->values[nest->items[k].node];
        bool block = v->residence == RESIDE_TILE && (kind->blocks_grow || v->bytes <= capacity);
        double memory = spill_factor(machine, nest, v, cost);
        double factor = block || v->bytes <= capacity ? 1.0 : memory, grown = 1.0;
        bool far = block && !has_halo(nest, nest->items[k].node);
        for (double size = (double)capacity * (far ? kind->block : 1.0);
             size < (double)v->bytes; size *= 2.0) {
            grown += kind->doubled;
        }
        factor = grown > factor ? grown : factor;
        largest = block && factor > largest ? factor : largest;
        worst = !block && v->residence != RESIDE_RESULT && factor > worst ? factor : worst;
    }
    return worst * largest;
}

double nest_counted(const Machine *machine, const NestCost *cost)
{
    return cost->seconds * nest_threads_factor(machine, cost);
}

double nest_preference(const Machine *machine, const NestCost *cost, double compulsory)
{
    double moved = cost->bytes[0], needless = machine_traits(machine)->needless;
    return cost->seconds *
           (moved > compulsory ? 1.0 + needless * (1.0 - compulsory / moved) : 1.0);
}

double nest_weighed(const Machine *machine, const Nest *nest, const NestCost *cost,
                    double compulsory)
{
    return nest_preference(machine, cost, compulsory) * nest_footprint(machine, nest, cost) *
           nest_threads_factor(machine, cost);
}

double nest_worth(const Machine *machine, const Nest *nest)
{
    return nest_weighed(machine, nest, &nest->cost, nest->compulsory);
}

/* A result that loops add up in memory, as blocks have no room for it. */
static bool is_added_in_memory(const Machine *m, const Nest *nest, NodeRef n)
{
    const NestValue *v = &nest->values[n];
    const Node *node = graph_node(nest->graph, n);
    double sums = (double)nest_node_bytes(nest->graph, n) / (double)dtype_bytes(node->dtype) *
                  (double)dtype_bytes(node->acc);
    return v->residence == RESIDE_RESULT && v->fold != NEST_NONE &&
           2.0 * sums > (double)machine_tile_capacity(m);
}

bool nest_has_spills(const NestFacts *f, const Machine *machine, const Nest *nest)
{
    bool any = false, sums = machine_traits(machine)->sums_spill;
    for (uint32_t k = 0; k < f->n_stored; k++) {
        any |= nest->values[f->stored[k]].residence == RESIDE_WORKSPACE ||
               (sums && is_added_in_memory(machine, nest, f->stored[k]));
    }
    return any;
}
