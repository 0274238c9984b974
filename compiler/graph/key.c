/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that hold at one position of a label alone: key == index(i), where the key does not depend on i. */
#include "graph/graph.h"

bool graph_place_key(Arena *arena, const Graph *g, const Node *n, NodeRef condition,
                     Access access, bool (*may)(const void *user, NodeRef node),
                     const void *user, PlaceKey *out)
{
    const Node *eq = graph_node(g, condition);
    if ((eq->op != OP_EQ && eq->op != OP_AND) || (may != NULL && !may(user, condition))) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        Access at = access_compose(arena, eq, eq->access[k], access);
        const Node *index = graph_node(g, eq->operand[k]);
        if (eq->op == OP_AND) {
            if (graph_place_key(arena, g, n, eq->operand[k], at, may, user, out)) {
                return true;
            }
            continue;
        }
        out->along = index->op == OP_INDEX ? at.index[0].label : -1;
        out->key = access_compose(arena, eq, eq->access[1 - k], access);
        if (out->along >= 0 && dtype_is_int(index->dtype) &&
            dim_eq(index->shape[0], n->extent[out->along]) &&
            !access_has_label(&out->key, out->along)) {
            return true;
        }
    }
    return false;
}
