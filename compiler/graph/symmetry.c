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
    longer[n] = (Generator){arena_copy(arena, one->to, rank * sizeof *one->to), one->sign};
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

void graph_add_promised(Graph *g, NodeRef r, const int32_t *classes)
{
    uint32_t to[RANK_LIMIT], rank = graph_node(g, r)->rank;
    for (uint32_t d = 0; classes != NULL && d < rank; d++) {
        uint32_t next = symmetry_next(rank, classes, d);
        for (uint32_t e = 0; e < rank; e++) {
            to[e] = e;
        }
        if (next < rank) { /* neighbours exchanged make all exchanges of a class */
            to[d] = next;
            to[next] = d;
            graph_add_generator(g, r, &(Generator){to, classes[d] > 0 ? 1 : -1});
        }
    }
}

int graph_symmetry_sign(Arena *scratch, const Graph *g, NodeRef r, const uint32_t *to)
{
    const Node *n = graph_node(g, r);
    uint32_t *seen[SYMMETRY_LIMIT + 1], count = 1;
    int sign[SYMMETRY_LIMIT + 1] = {1}, found = 0;
    size_t bytes = n->rank * sizeof *to;
    ArenaMark mark = arena_mark(scratch);
    seen[0] = ARENA_ARRAY(scratch, n->rank, uint32_t);
    for (uint32_t d = 0; d < n->rank; d++) {
        seen[0][d] = d;
    }
    for (uint32_t k = 0; k < count && found == 0; k++) {
        found = memcmp(seen[k], to, bytes) == 0 ? sign[k] : 0;
        for (uint32_t i = 0; i < n->n_generators && count <= SYMMETRY_LIMIT; i++) {
            uint32_t *next = ARENA_ARRAY(scratch, n->rank, uint32_t), known = 0;
            for (uint32_t d = 0; d < n->rank; d++) {
                next[d] = seen[k][n->generator[i].to[d]];
            }
            while (known < count && memcmp(seen[known], next, bytes) != 0) {
                known++;
            }
            if (known == count) {
                sign[count] = sign[k] * n->generator[i].sign;
                seen[count++] = next;
            }
        }
    }
    arena_reset(scratch, mark);
    return found;
}
