/* SPDX-License-Identifier: Apache-2.0 */
/* See estimate.h. */
#include "nest/estimate.h"

#include "nest/greedy.h"
#include "nest/leaves.h"
#include "nest/place.h"
#include "nest/price_leaf.h"

void nest_leaf_seconds(Ctx *ctx, const Machine *machine, const Nest *nest, double *seconds)
{
    Arena scratch;
    Pricer pricer;
    NestFacts facts;
    arena_init(&scratch, &ctx->budget);
    pricer_of(&scratch, nest, machine, &facts, &pricer);
    pricer.leaf = seconds;
    (void)nest_price(&scratch, &pricer, nest, NULL);
    arena_release(&scratch);
}

NestCost nest_cost_at(Arena *scratch, const Machine *machine, const Nest *nest, int32_t dim,
                      int64_t size)
{
    ArenaMark mark = arena_mark(scratch);
    Pricer pricer;
    NestFacts facts;
    Nest at = *nest;
    NestValue *values =
        arena_copy(scratch, nest->values, nest->graph->nodes.n * sizeof *values);
    at.graph = nest_graph_at(scratch, nest->graph, dim, size);
    at.values = values;
    nest_set_bytes(&at, values);
    pricer_of(scratch, &at, machine, &facts, &pricer);
    NestCost cost = nest_price(scratch, &pricer, &at, NULL);
    arena_reset(scratch, mark);
    return cost;
}

void nest_estimate(Ctx *ctx, const Machine *machine, Nest *nest)
{
    Arena scratch;
    Pricer pricer;
    NestFacts facts;
    Tree none = {0};
    arena_init(&scratch, &ctx->budget);
    pricer_of(&scratch, nest, machine, &facts, &pricer);
    nest->cost = nest_price(&scratch, &pricer, nest, NULL);
    nest->compulsory = nest_compulsory(&scratch, &facts, machine);
    greedy_tree(ctx, &scratch, &facts, machine, false, &none);
    Nest *plain = tree_nest(&scratch, nest->graph, &none);
    NestValue *values = nest_place(&scratch, &facts, NULL, plain);
    plain->values = values;
    nest_set_leaves(&scratch, machine, plain, values);
    NestMarks marks = {ARENA_ARRAY(&scratch, plain->n_items, bool),
                       ARENA_ARRAY(&scratch, plain->n_items, uint32_t), NULL};
    nest->unfused = nest_price(&scratch, &pricer, plain, &marks);
    price_add_steps(machine, nest, &nest->cost);
    price_add_steps(machine, nest, &nest->unfused);
    arena_release(&scratch);
}

/* Seconds of one in a full register tile. */
static double multiply_add(const Machine *m, const Graph *g, const Node *n)
{
    int64_t group = n->n_operands != 2 || m->time.dot <= 0
                        ? 1
                        : dtype_dot_group(graph_node(g, n->operand[0])->dtype,
                                          graph_node(g, n->operand[1])->dtype, n->acc);
    return group > 1 ? m->time.dot * 4.0 / (double)group
                     : m->time.multiply_add * (double)dtype_bytes(n->acc) / 4.0;
}

void nest_full_tiles(const Nest *nest, const Graph *g, const Machine *m, Arena *arena,
                     double *adds, double *seconds)
{
    int64_t *dims = ARENA_ARRAY(arena, g->dims.list.n, int64_t);
    *adds = *seconds = 0;
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        dims[d] = g->dims.list.at[d].typical;
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (nest->values[n].residence != RESIDE_NONE && !node_is_expression(node)) {
            double count = (double)node_multiply_adds(node, dims);
            *adds += count;
            *seconds += count * multiply_add(m, g, node);
        }
    }
}
