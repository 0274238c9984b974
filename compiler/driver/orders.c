/* SPDX-License-Identifier: Apache-2.0 */
/* See orders.h. Equal contractions are one value wherever they stand in a kernel, however its dimensions are ordered there;
 * whether that is one array in memory or several blocks on chip (opt/orders.c) is a matter of price, so both graphs get a nest. One
 * value after the other is tried, while computing it so often takes less than the whole kernel does. */
#include "driver/orders.h"

#include "opt/opt.h"
#include "nest/objective.h"
#include "nest/plan.h"

/* Graphs that get a nest, and values that are looked at for it. */
#define TRIES 4
#define LOOKS 256
/* What one of them must save: it repeats work for certain, and what it saves is a guess. */
#define WORTH 0.75
/* The same of a value on a chip whose engines run side by side: what it saves, transposes and copies, the price knows. */
#define WORTH_ON_CHIP 0.98

/* Seconds of its arithmetic alone, at the least. */
static double least_seconds(const Machine *machine, const Graph *g, NodeRef n)
{
    const Node *node = graph_node(g, n);
    double count = (double)dtype_bytes(node->acc) / 4.0;
    for (uint32_t l = 0; l < node->n_labels; l++) {
        count *= (double)dim_typical(&g->dims, node->extent[l]);
    }
    return count * machine->time.multiply_add;
}

static bool is_turned_on_chip(const Machine *machine, const Nest *nest, NodeRef n)
{
    return machine->kind == MACHINE_SYSTOLIC && nest->values[n].residence == RESIDE_TILE;
}

/* In memory, where nobody asked for it, or turned on chip; and not too dear to be computed twice. */
static bool is_candidate(const Machine *machine, const Nest *nest, NodeRef n)
{
    const Node *node = graph_node(nest->graph, n);
    bool candidate =
        nest->values[n].residence == RESIDE_WORKSPACE || is_turned_on_chip(machine, nest, n);
    return candidate && op_info(node->op)->kind == OPKIND_CONTRACT &&
           !node_is_expression(node) && !node->allow_spill &&
           2 * least_seconds(machine, nest->graph, n) < nest->cost.seconds;
}

Nest *orders_choose(Compilation *c, Nest *chosen)
{
    const Machine *machine = c->target->machine;
    uint32_t tries = 0, looks = chosen->graph->nodes.n > NEST_LARGE ? LOOKS : 0;
    for (NodeRef k = 0; k < chosen->graph->nodes.n && tries < TRIES && looks < LOOKS; k++) {
        uint32_t orders = 0;
        if (!is_candidate(machine, chosen, k)) {
            continue;
        }
        looks++;
        Graph *split = opt_split_orders(c->ctx, c->arena, chosen->graph, k, &orders);
        if (split == NULL ||
            orders * least_seconds(machine, chosen->graph, k) >= chosen->cost.seconds) {
            continue;
        }
        tries++;
        opt_symmetry(c->ctx, split, !compilation_without(c, PASS_SYMMETRY));
        opt_online(c->ctx, split, !compilation_without(c, PASS_ONLINE) && machine->online);
        split = compilation_onto(c, c->arena, split);
        Nest *nest = nest_choose(c->ctx, c->arena, split, machine, c->path.options.effort);
        double worth = is_turned_on_chip(machine, chosen, k) ? WORTH_ON_CHIP : WORTH;
        if (nest_worth(machine, nest) < worth * nest_worth(machine, chosen)) {
            nest->steps += chosen->steps;
            nest->unfused = chosen->unfused; /* which computes it once */
            chosen = nest;
            k = 0;
        }
    }
    return chosen;
}
