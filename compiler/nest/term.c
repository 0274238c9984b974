/* SPDX-License-Identifier: Apache-2.0 */
/* Which folds are contractions of two operands: sums of products, and folds of other terms over tensors that are read at two
 * accesses. Lowering makes statements of them that fold_term (loop/term.h) knows.
 *
 * Nothing pads the sum, so that accumulators alone need neutral elements. A term of three groups of tensors, w[e] * abs(x - y), is not taken
 * apart: a person writes abs(w*x - w*y), or stores one of them. */
#include "nest/facts.h"

/* Is the operand a tensor, or all but one? */
static bool is_tensor(const Graph *g, const Residence *residence, NodeRef n)
{
    return residence[n] != RESIDE_INLINE || nest_is_factor(g, residence, n);
}

static bool is_product(const Graph *g, const Residence *residence, const Node *n,
                       const UseList *u)
{
    if (op_info(n->op)->kind != OPKIND_CONTRACT || n->n_operands < 2 || uses_count(u) != 2 ||
        node_is_expression(n)) {
        return false;
    }
    bool real = !dtype_is_complex(graph_node(g, u->list.at[0].node)->dtype) &&
                !dtype_is_complex(graph_node(g, u->list.at[1].node)->dtype);
    return is_tensor(g, residence, n->operand[0]) && is_tensor(g, residence, n->operand[1]) &&
           !(real && dtype_is_complex(n->acc));
}

/* Counts the operations of an expression that may stand in a term; false: one of them may not. */
static bool count_ops(const Graph *g, const Residence *residence, NodeRef ref, DType t,
                      uint32_t *ops)
{
    const Node *n = graph_node(g, ref);
    bool leaf = residence[ref] != RESIDE_INLINE;
    bool cast = !leaf && n->op == OP_CAST && residence[n->operand[0]] != RESIDE_INLINE;
    if (leaf || cast) {
        const Node *of = leaf ? n : graph_node(g, n->operand[0]);
        return n->dtype == t && of->op != OP_CONST && of->op != OP_EXTENT && of->op != OP_INDEX;
    }
    if (n->dtype != t ||
        (n->op != OP_COPY && (!op_is_in_terms(n->op, t) || ++*ops > TERM_OPS))) {
        return false;
    }
    for (uint32_t k = 0; k < n->n_operands; k++) { /* as deep as expressions are large */
        if (!count_ops(g, residence, n->operand[k], t, ops)) {
            return false;
        }
    }
    return true;
}

/* Is the node part of what runs in one pass with a maximum? */
static bool is_online(const Graph *g, NodeRef n)
{
    uint32_t k = 0;
    while (k < g->online.n && g->online.at[k].node != n && g->online.at[k].base != n) {
        k++;
    }
    return k < g->online.n;
}

uint32_t nest_term_ops(const Graph *g, const Residence *residence, NodeRef node)
{
    const Node *n = graph_node(g, node);
    uint32_t ops = 0;
    bool term = op_info(n->op)->kind == OPKIND_REDUCE && n->n_operands == 1 &&
                op_folds_terms(n->op, n->acc) &&
                count_ops(g, residence, n->operand[0], n->acc, &ops);
    return term && !is_online(g, node) ? ops : 0;
}

bool nest_contracts(const Graph *g, const Residence *residence, NodeRef node, const UseList *u)
{
    return is_product(g, residence, graph_node(g, node), u) ||
           (uses_count(u) == 2 && nest_term_ops(g, residence, node) > 0);
}
