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

/* Moves the position one by one with a label of so many positions that `by` more are few? */
static bool is_near(const Graph *g, const Node *view, Affine x, int64_t by)
{
    bool near = by == 0;
    for (uint32_t i = 0; i < x.n && !affine_is_dim(x.term[i].var); i++) {
        int64_t coef = x.term[i].coef,
                most = dim_typical(&g->dims, view->extent[x.term[i].var]);
        near = near || ((coef == 1 || coef == -1) && by <= most / 8);
    }
    return near;
}

bool views_overlap(const Graph *g, const Node *x, const Node *y)
{
    bool same = x->op == OP_VIEW && y->op == OP_VIEW && x->operand[0] == y->operand[0];
    for (uint32_t d = 0; same && d < x->access[0].rank; d++) {
        Affine a = x->at[d], b = y->at[d];
        int64_t by = 0;
        same = i64_try_add(a.base, -b.base, &by) && by != INT64_MIN;
        a.base = b.base;
        same = same && affine_eq(a, b) && is_near(g, x, a, by < 0 ? -by : by);
    }
    return same;
}
