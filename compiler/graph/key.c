/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that hold at one position of a label alone: key == index(i), where the key does not depend on i. */
#include "graph/graph.h"

static void add_key(PlaceKeys *out, const PlaceKey *key)
{
    bool fits = out->n < PLACE_KEYS && !access_has_label(&key->key, key->along);
    for (uint32_t i = 0; i < out->n; i++) {
        fits = fits && out->at[i].along != key->along &&
               !access_has_label(&out->at[i].key, key->along) &&
               !access_has_label(&key->key, out->at[i].along);
    }
    if (fits) {
        out->at[out->n++] = *key;
    }
}

void graph_place_keys(Arena *arena, const Graph *g, const Node *n, NodeRef condition,
                      Access access, bool (*may)(const void *user, NodeRef node),
                      const void *user, PlaceKeys *out)
{
    const Node *eq = graph_node(g, condition);
    if ((eq->op != OP_EQ && eq->op != OP_AND) || (may != NULL && !may(user, condition))) {
        return;
    }
    uint32_t before = out->n;
    for (uint32_t k = 0; k < 2 && (eq->op == OP_AND || out->n == before); k++) {
        Access at = access_compose(arena, eq, eq->access[k], access);
        const Node *index = graph_node(g, eq->operand[k]);
        if (eq->op == OP_AND) {
            graph_place_keys(arena, g, n, eq->operand[k], at, may, user, out);
            continue;
        }
        PlaceKey key = {index->op == OP_INDEX ? at.index[0].label : -1,
                        access_compose(arena, eq, eq->access[1 - k], access)};
        if (key.along >= 0 && dtype_is_int(index->dtype) &&
            dim_eq(index->shape[0], n->extent[key.along])) {
            add_key(out, &key);
        }
    }
}
