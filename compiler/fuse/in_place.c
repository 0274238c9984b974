/* SPDX-License-Identifier: Apache-2.0 */
/* Updating an inout parameter where it lies: `C = alpha*A*B + beta*C` may, `C = C + transpose
 * of C` may not. */
#include "fuse/fuse_parts.h"

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

bool fuse_in_place(Arena *arena, const Graph *g, const Residence *residence,
                   const uint32_t *group_of, const UseList *uses, NodeRef r, uint32_t param)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (n != r && residence_is_stored(residence[n]) && group_of[n] >= group_of[r] &&
            reads_param(g, &uses[n], param)) {
            return false;
        }
    }
    /* Results that are only copied at the end read what is there then. */
    for (uint32_t k = 0; k < g->results.n; k++) {
        NodeRef n = g->results.at[k].node;
        UseList u = {0};
        if (!residence_is_stored(residence[n]) && g->results.at[k].param != (int32_t)param) {
            result_uses(arena, g, residence, n, &u);
        }
        if (reads_param(g, &u, param)) {
            return false;
        }
    }
    const Node *node = graph_node(g, r);
    for (uint32_t i = 0; i < uses[r].list.n; i++) {
        const Use *use = &uses[r].list.at[i];
        if (is_param(g, use->node, param) &&
            (!node_is_expression(node) || !is_identity(node, use->access))) {
            return false;
        }
    }
    return true;
}
