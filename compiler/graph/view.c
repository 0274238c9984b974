/* SPDX-License-Identifier: Apache-2.0 */
/* What a view reads of its operand, and a join writes of its result. */
#include "graph/graph.h"

uint32_t node_positions(const Node *n)
{
    OpKind kind = op_info(n->op)->kind;
    return kind == OPKIND_VIEW   ? n->access[0].rank
           : kind == OPKIND_JOIN ? n->n_operands * n->rank
                                 : 0;
}

Patch node_piece(const Graph *g, const Node *n, uint32_t k)
{
    const Node *o = graph_node(g, n->operand[k]);
    return (Patch){o->rank, o->shape, n->at + (size_t)k * n->rank};
}

double view_positions(const Graph *g, const Node *view, uint32_t d, const double *of_label)
{
    double n = 1.0,
           all = (double)dim_typical(&g->dims, graph_node(g, view->operand[0])->shape[d]);
    for (uint32_t i = 0; i < view->at[d].n; i++) {
        AffineTerm t = view->at[d].term[i];
        double coef = (double)(t.coef < 0 ? -t.coef : t.coef);
        if (!affine_is_dim(t.var)) {
            double most = of_label[t.var] - 1.0; /* strides leave out what lies between */
            n = coef <= n ? n + coef * most : n * (most + 1.0);
        }
    }
    return n < all ? n : all < 1.0 ? 1.0 : all;
}
