/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes say of their symmetry, as generators; and what is asked of it. */
#include <string.h>

#include "graph/graph.h"

/* The list with one more, `rank` entries long. */
static const Generator *add_generator(Arena *arena, const Generator *list, uint32_t n,
                                      const Generator *one, uint32_t rank)
{
    Generator *longer = ARENA_ARRAY(arena, n + 1, Generator);
    for (uint32_t k = 0; k < n; k++) {
        longer[k] = list[k];
    }
    longer[n] = *one;
    longer[n].to = arena_copy(arena, one->to, rank * sizeof *one->to);
    return longer;
}

void graph_add_generator(Graph *g, NodeRef r, const Generator *generator)
{
    Node *n = &g->nodes.at[r];
    n->generator = add_generator(g->arena, n->generator, n->n_generators, generator, n->rank);
    n->n_generators++;
}

void graph_add_exchange(Graph *g, NodeRef r, const Generator *exchange)
{
    Node *n = &g->nodes.at[r];
    n->exchange = add_generator(g->arena, n->exchange, n->n_exchanges, exchange, n->n_labels);
    n->n_exchanges++;
}

void graph_add_promised(Graph *g, NodeRef r, const Symmetry *declared)
{
    uint32_t to[RANK_LIMIT], rank = graph_node(g, r)->rank;
    Generator exchange;
    for (uint32_t k = 0; symmetry_generator(declared, rank, k, to, &exchange); k++) {
        graph_add_generator(g, r, &exchange);
    }
}

bool graph_has_symmetry(Arena *scratch, const Graph *g, NodeRef r, Generator exchange)
{
    const Node *n = graph_node(g, r);
    bool found = false;
    ArenaMark mark = arena_mark(scratch);
    SymmetryGroup group;
    symmetry_group(scratch, n->rank, n->n_generators, n->generator, &group);
    for (uint32_t k = 0; k < group.n && !found; k++) {
        found = group.at[k].sign == exchange.sign && group.at[k].conj == exchange.conj &&
                memcmp(group.at[k].to, exchange.to, n->rank * sizeof *exchange.to) == 0;
    }
    arena_reset(scratch, mark);
    return found;
}
