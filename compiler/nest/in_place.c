/* SPDX-License-Identifier: Apache-2.0 */
/* Updating an inout parameter where it lies: `C = alpha*A*B + beta*C` may, `C = C + transpose of C` may not. */
#include "nest/parts.h"

static bool is_identity(const Node *n, Access a)
{
    bool same = a.rank == n->rank;
    for (uint32_t d = 0; same && d < a.rank; d++) {
        same = a.index[d].label == n->out[d] && a.index[d].offset == 0;
    }
    return same;
}

static bool is_param(const Graph *g, NodeRef leaf, uint32_t param)
{
    const Node *n = graph_node(g, leaf);
    return n->op == OP_INPUT && n->param == param;
}

static bool reads_param(const Graph *g, const UseList *u, uint32_t param)
{
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (is_param(g, u->list.at[i].node, param)) {
            return true;
        }
    }
    return false;
}

uint32_t *nest_top_items(Arena *arena, const Nest *nest)
{
    uint32_t *top = ARENA_ARRAY(arena, nest->graph->nodes.n, uint32_t);
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        top[n] = NEST_NONE;
    }
    for (uint32_t k = 0; k < nest->n_items; k = nest->items[k].end) {
        for (uint32_t i = k; i < nest->items[k].end; i++) {
            if (!nest_is_loop(&nest->items[i])) {
                top[nest->items[i].node] = k;
            }
        }
    }
    return top;
}

/* Results that are only copied at the end read what is there then. */
static bool read_at_the_end(Arena *arena, const NestFacts *f, uint32_t param)
{
    for (uint32_t k = 0; k < f->g->results.n; k++) {
        NodeRef n = f->g->results.at[k].node;
        UseList u = {0};
        if (!residence_is_stored(f->residence[n]) &&
            f->g->results.at[k].param != (int32_t)param) {
            result_uses(arena, f->g, f->residence, n, &u);
        }
        if (reads_param(f->g, &u, param)) {
            return true;
        }
    }
    return false;
}

bool nest_may_overwrite(Arena *arena, const NestFacts *f, const uint32_t *top, NodeRef r,
                        uint32_t param)
{
    for (uint32_t k = 0; k < f->n_stored; k++) {
        NodeRef n = f->stored[k];
        if (n != r && top[n] >= top[r] && reads_param(f->g, &f->uses[n], param)) {
            return false;
        }
    }
    if (read_at_the_end(arena, f, param)) {
        return false;
    }
    const Node *node = graph_node(f->g, r);
    for (uint32_t i = 0; i < f->uses[r].list.n; i++) {
        const Use *use = &f->uses[r].list.at[i];
        if (is_param(f->g, use->node, param) &&
            (!node_is_expression(node) || !is_identity(node, use->access))) {
            return false;
        }
    }
    return true;
}
