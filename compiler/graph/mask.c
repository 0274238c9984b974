/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on positions: `select(index(k) <= index(q), x, m)` as affine expressions of labels that are at least 0 where x is. */
#include "graph/graph.h"

#define MOST_DEPTH 64

Affine mask_in_reader(Arena *a, const Node *operand, Access access, Affine x)
{
    Affine out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        Affine of = {0, 1, &t};
        for (uint32_t d = 0; d < access.rank && !affine_is_dim(t.var); d++) {
            int32_t own = operand->out == NULL ? (int32_t)d : operand->out[d];
            if (own == (int32_t)t.var) {
                Index index = access.index[d];
                Affine position = affine_const(index.offset);
                if (index.label >= 0) {
                    position = affine_add(a, position, 1, affine_var(a, (VarRef)index.label));
                }
                of = affine_add(a, affine_const(0), t.coef, position);
                break;
            }
        }
        out = affine_add(a, out, 1, of);
    }
    return out;
}

/* A whole number as an expression of the node's labels; false when it is none. */
static bool affine_value(Arena *a, const Graph *g, NodeRef at, uint32_t depth, Affine *out)
{
    const Node *n = graph_node(g, at);
    Affine x[2];
    if (!dtype_is_int(n->dtype) || depth > MOST_DEPTH) {
        return false;
    }
    switch (n->op) {
    case OP_INDEX:
        *out = affine_var(a, 0);
        return true;
    case OP_CONST:
        *out = affine_const(n->value.i);
        return n->value.i < SIZE_LIMIT && n->value.i > -SIZE_LIMIT;
    case OP_EXTENT:
        *out = affine_var(a, affine_dim(n->dim));
        return true;
    case OP_COPY:
    case OP_CAST:
    case OP_NEG:
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
        break;
    default:
        return false;
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        if (!affine_value(a, g, n->operand[k], depth + 1, &x[k])) {
            return false;
        }
        x[k] = mask_in_reader(a, graph_node(g, n->operand[k]), n->access[k], x[k]);
    }
    if (n->op == OP_MUL) {
        Affine number = x[0].n == 0 ? x[0] : x[1], other = x[0].n == 0 ? x[1] : x[0];
        return number.n == 0 && affine_try_add(a, affine_const(0), number.base, other, out);
    }
    return n->n_operands == 1
               ? affine_try_add(a, affine_const(0), n->op == OP_NEG ? -1 : 1, x[0], out)
               : affine_try_add(a, x[0], n->op == OP_SUB ? -1 : 1, x[1], out);
}

/* What must be at least 0 for the condition, in the node's labels. */
static bool conditions(Arena *a, const Graph *g, NodeRef at, uint32_t depth, Mask *out)
{
    const Node *n = graph_node(g, at);
    if (depth > MOST_DEPTH || out->n == MASK_CONDITIONS) {
        return false;
    }
    if (n->op == OP_AND || n->op == OP_COPY) {
        for (uint32_t k = 0; k < n->n_operands; k++) {
            uint32_t first = out->n;
            if (!conditions(a, g, n->operand[k], depth + 1, out)) {
                return false;
            }
            for (uint32_t i = first; i < out->n; i++) {
                out->holds[i] = mask_in_reader(a, graph_node(g, n->operand[k]), n->access[k],
                                               out->holds[i]);
            }
        }
        return true;
    }
    bool below = n->op == OP_LT || n->op == OP_LE, above = n->op == OP_GT || n->op == OP_GE;
    Affine x[2], room;
    for (uint32_t k = 0; k < 2 && (below || above); k++) {
        if (!affine_value(a, g, n->operand[k], depth + 1, &x[k])) {
            return false;
        }
        x[k] = mask_in_reader(a, graph_node(g, n->operand[k]), n->access[k], x[k]);
    }
    if ((!below && !above) ||
        !affine_try_add(a, x[below ? 1 : 0], -1, x[below ? 0 : 1], &room)) {
        return false;
    }
    room.base -= n->op == OP_LT || n->op == OP_GT ? 1 : 0;
    out->holds[out->n++] = room;
    return true;
}

Mask mask_of_condition(Arena *a, const Graph *g, NodeRef condition)
{
    Mask out = {0};
    return conditions(a, g, condition, 0, &out) ? out : (Mask){0};
}

static const Node *constant(const Graph *g, NodeRef at)
{
    const Node *n = graph_node(g, at);
    while ((n->op == OP_CAST || n->op == OP_COPY) && n->rank == 0) {
        n = graph_node(g, n->operand[0]);
    }
    return n->op == OP_CONST ? n : NULL;
}

Mask mask_of_select(Arena *a, const Graph *g, const Node *n)
{
    const Node *other = constant(g, n->operand[2]);
    Mask out = other == NULL ? (Mask){0} : mask_of_condition(a, g, n->operand[0]);
    if (out.n == 0) {
        return out;
    }
    for (uint32_t i = 0; i < out.n; i++) {
        out.holds[i] =
            mask_in_reader(a, graph_node(g, n->operand[0]), n->access[0], out.holds[i]);
    }
    out.value = number_cast(other->value, n->dtype);
    return out;
}

/* The one node that reads `n`, if that is a selection and `n` no result; or NODE_NONE. */
static NodeRef sole_reader(const Graph *g, NodeRef n)
{
    NodeRef found = NODE_NONE;
    for (uint32_t k = 0; k < g->results.n; k++) {
        if (g->results.at[k].node == n) {
            return NODE_NONE;
        }
    }
    for (NodeRef r = n + 1; r < g->nodes.n; r++) {
        const Node *node = graph_node(g, r);
        for (uint32_t k = 0; k < node->n_operands; k++) {
            if (node->operand[k] == n) {
                if (found != NODE_NONE || node->op != OP_SELECT) {
                    return NODE_NONE;
                }
                found = r;
            }
        }
    }
    return found;
}

bool mask_needed(Arena *a, const Graph *g, NodeRef n, NodeRef *c, Access *at)
{
    NodeRef reader = sole_reader(g, n);
    const Node *node = graph_node(g, n),
               *select = reader == NODE_NONE ? NULL : graph_node(g, reader);
    if (select == NULL || select->op != OP_SELECT || select->operand[1] != n ||
        constant(g, select->operand[2]) == NULL) {
        return false;
    }
    Index *index = ARENA_ARRAY(a, (size_t)select->access[0].rank + 1, Index);
    for (uint32_t d = 0; d < select->access[0].rank; d++) {
        index[d] = select->access[0].index[d];
        uint32_t own = 0;
        while (index[d].label >= 0 && own < node->rank &&
               select->access[1].index[own].label != index[d].label) {
            own++;
        }
        if (own == node->rank) {
            return false;
        }
        index[d].label = index[d].label < 0 ? -1 : node->out[own];
    }
    *c = select->operand[0];
    *at = (Access){select->access[0].rank, index};
    return mask_of_condition(a, g, *c).n > 0;
}
