/* SPDX-License-Identifier: Apache-2.0 */
/* A graph at the extents that are planned for. */
#include "graph/recurrence.h"

static const Dim *typical_dims(Arena *arena, const Graph *g, uint32_t n, const Dim *dim)
{
    Dim *out = ARENA_ARRAY(arena, n, Dim);
    for (uint32_t d = 0; d < n; d++) {
        out[d] = dim_fixed(dim_typical(&g->dims, dim[d]));
    }
    return out;
}

static const Affine *typical_positions(Arena *arena, const Graph *g, const Node *n)
{
    uint32_t n_positions = node_positions(n);
    if (n_positions == 0) {
        return NULL;
    }
    Affine *at = ARENA_ARRAY(arena, n_positions, Affine);
    for (uint32_t d = 0; d < n_positions; d++) {
        at[d] = n->at[d];
        for (uint32_t i = 0; i < n->at[d].n; i++) {
            VarRef v = n->at[d].term[i].var;
            if (affine_is_dim(v)) {
                int64_t size = dim_typical(&g->dims, dim_open(affine_sym(v)));
                at[d] = affine_subst(arena, at[d], v, affine_const(size));
            }
        }
    }
    return at;
}

Graph *graph_typical(Arena *arena, const Graph *g)
{
    Graph *known = arena_copy(arena, g, sizeof *g);
    known->nodes.at = arena_copy(arena, g->nodes.at, g->nodes.n * sizeof *g->nodes.at);
    known->params.at = arena_copy(arena, g->params.at, g->params.n * sizeof *g->params.at);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        Node *node = &known->nodes.at[n];
        node->extent = typical_dims(arena, g, node->n_labels, node->extent);
        node->shape = typical_dims(arena, g, node->rank, node->shape);
        node->at = typical_positions(arena, g, node);
    }
    for (uint32_t p = 0; p < g->params.n; p++) {
        Param *param = &known->params.at[p];
        param->shape = typical_dims(arena, g, param->rank, param->shape);
        param->collapsed = param->collapsed == NULL
                               ? NULL
                               : typical_dims(arena, g, param->n_collapsed, param->collapsed);
    }
    known->recurrences.at = ARENA_ARRAY(arena, g->recurrences.n, Recurrence *);
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        Recurrence *r = known->recurrences.at[k] = recurrence_copy(arena, g->recurrences.at[k]);
        r->extent = dim_fixed(dim_typical(&g->dims, r->extent));
        r->body = graph_typical(arena, r->body);
        r->nest = NULL; /* that was of open dims */
        r->batch = false;
    }
    known->dims.list.n = 0;
    return known;
}
