/* SPDX-License-Identifier: Apache-2.0 */
/* Which expressions are recomputed where they are used (INLINE) and which values are stored. Storing costs memory
 * traffic or a block on chip; recomputing costs arithmetic, and blows up when an expression is used often. So an expression is
 * stored only when it must be (a contraction reads tensors, results are tensors) or when recomputing it is dear. A tensor
 * that is conjugated, or real where a product is complex, is a tensor still: there that is a sign, or nothing at all. Of one whose
 * terms are absent under a condition that is a bound of the loop over the sum. */
#include "nest/facts.h"

/* Nodes an expanded expression may have: bounds the recursion over expressions and the size of statements. */
#define EXPRESSION_LIMIT 48

bool nest_is_factor(const Graph *g, const Residence *residence, NodeRef n)
{
    bool inner = false;
    while (residence[n] == RESIDE_INLINE || !inner) {
        const Node *node = graph_node(g, n);
        bool conj = node->op == OP_CONJ && dtype_is_complex(node->dtype);
        bool cast = node->op == OP_CAST && dtype_is_complex(node->dtype) &&
                    graph_node(g, node->operand[0])->dtype == dtype_part(node->dtype);
        bool where = node->op == OP_WHERE;
        if (!conj && !cast && !where) {
            return false;
        }
        n = node->operand[where ? 1 : 0];
        inner = true;
    }
    return true;
}

/* Cost of one evaluation in units of an addition. */
static uint32_t op_cost(Op op)
{
    switch (op_info(op)->rule) {
    case RULE_FLOAT:
    case RULE_RFLOAT:
        return 16; /* exp, log, sqrt, ... */
    case RULE_ANY:
    case RULE_REAL:
    case RULE_NUMBER:
    case RULE_ORDER:
    case RULE_EQUAL:
    case RULE_LOGIC:
    case RULE_SELECT:
    case RULE_PART:
    case RULE_CAST:
        return op == OP_GATHER ? 8 : op == OP_DIV ? 4 : 1;
    }
    UNREACHABLE();
}

/* How often, and by whom, each node is read. */
typedef struct Readers {
    uint32_t *count;
    bool *by_sum; /* an operand of a contraction that sums: must be a tensor */
    bool *viewed; /* by a view, a gather, a recurrence or a dense step: must be stored */
    bool *
        begins; /* at the beginning of a contraction: made in its place if that alone reads it */
    bool *widened; /* read at more positions than it has: an operand broadcast over the reader's
                      labels */
} Readers;

static void count_readers(const Graph *g, const bool *needed, Readers *r)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (!needed[n]) {
            continue;
        }
        bool sums = op_info(node->op)->kind == OPKIND_CONTRACT && !node_is_expression(node);
        for (uint32_t k = 0; k < node->n_operands; k++) {
            NodeRef operand = node->operand[k];
            r->count[operand]++;
            r->by_sum[operand] |= sums && !node_reads_apart(g, node, k);
            r->viewed[operand] |= node->op == OP_VIEW || op_takes_whole(node->op) ||
                                  (node->op == OP_GATHER && k == 0);
            r->begins[operand] |= node->onto && k == node_factors(node);
            r->widened[operand] |= graph_node(g, operand)->rank < node->n_labels;
        }
    }
    for (NodeRef n = g->nodes.n; n-- > 0;) {
        if (r->by_sum[n] && graph_node(g, n)->op == OP_WHERE) {
            r->by_sum[graph_node(g, n)->operand[1]] = true;
        }
    }
}

void nest_choose_inline(Arena *scratch, const Graph *g, const bool *needed,
                        const int32_t *result_of, Residence *residence)
{
    uint32_t n_nodes = g->nodes.n;
    Readers r = {ARENA_ARRAY(scratch, n_nodes, uint32_t), ARENA_ARRAY(scratch, n_nodes, bool),
                 ARENA_ARRAY(scratch, n_nodes, bool), ARENA_ARRAY(scratch, n_nodes, bool),
                 ARENA_ARRAY(scratch, n_nodes, bool)};
    count_readers(g, needed, &r);
    uint32_t *size = ARENA_ARRAY(scratch, n_nodes, uint32_t);
    uint32_t *cost = ARENA_ARRAY(scratch, n_nodes, uint32_t);
    for (NodeRef n = 0; n < n_nodes; n++) {
        const Node *node = graph_node(g, n);
        size[n] = 1;
        if (!needed[n] || !node_is_expression(node)) {
            continue;
        }
        cost[n] = op_cost(node->op);
        for (uint32_t k = 0; k < node->n_operands; k++) {
            NodeRef operand = node->operand[k];
            bool expands = residence[operand] == RESIDE_INLINE;
            size[n] += expands ? size[operand] : 1;
            cost[n] += expands ? cost[operand] : 0;
        }
        uint32_t times = r.widened[n] && node->rank > 0 ? 4 : r.count[n];
        bool dear = cost[n] > 8 && times > 1 && node->rank > 0;
        bool tensor = r.by_sum[n] && !nest_is_factor(g, residence, n);
        bool begins = r.begins[n] && r.count[n] == 1;
        bool stored = begins || result_of[n] >= 0 || tensor || dear || r.viewed[n] ||
                      size[n] > EXPRESSION_LIMIT;
        if (!stored) {
            residence[n] = RESIDE_INLINE;
        } else {
            size[n] = 1;
            cost[n] = 0;
        }
    }
}
