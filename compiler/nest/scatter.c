/* SPDX-License-Identifier: Apache-2.0 */
/* Which reductions have a key: those of select(key == index(i), x, neutral), where the key does not depend on i. And which maps: a select
 * that leaves all but one element as it was.
 *
 * Places are hit in the order of the folded indices, so bits do not depend on threads. These share what the result has besides, rows of a
 * batch, or ranges of places where what goes to one is long: each thread looks at all keys and takes its own. Sharing the columns of rows
 * was slower. */
#include "nest/scatter.h"

#include "nest/kinds.h"

static bool is_inline(const void *user, NodeRef node)
{
    const NestValue *values = user;
    return values[node].residence == RESIDE_INLINE;
}

static bool is_neutral_const(const Graph *g, const Node *reduce, NodeRef n)
{
    const Node *neutral = graph_node(g, n);
    return neutral->op == OP_CONST &&
           op_is_neutral(reduce->op, number_cast(neutral->value, reduce->acc));
}

/* Is operand 2 of the select the element that lies where the result goes? */
static bool keeps_own(const Nest *nest, const NestValue *values, NodeRef n)
{
    const Graph *g = nest->graph;
    const Node *select = graph_node(g, n);
    const NodeRef old = select->operand[2];
    const Node *input = graph_node(g, old);
    const NestValue *v = &values[n];
    bool updated = v->residence == RESIDE_RESULT && input->op == OP_INPUT &&
                   g->results.at[v->result].param == (int32_t)input->param;
    return access_is_own(select, select->access[2]) && (updated || v->in_place == old);
}

bool nest_scatter(Arena *arena, const Nest *nest, const NestValue *values, NodeRef n,
                  PlaceKeys *out)
{
    const Graph *g = nest->graph;
    const Node *node = graph_node(g, n);
    *out = (PlaceKeys){0};
    if (values[n].item == NEST_NONE) {
        return false;
    }
    if (node->op == OP_SELECT) {
        if (keeps_own(nest, values, n)) {
            graph_place_keys(arena, g, node, node->operand[0], node->access[0], is_inline,
                             values, out);
        }
        return out->n > 0;
    }
    if (op_info(node->op)->kind != OPKIND_REDUCE || node->acc != node->dtype ||
        node_factors(node) != 1) {
        return false;
    }
    const Node *select = graph_node(g, node->operand[0]);
    if (select->op != OP_SELECT || values[node->operand[0]].residence != RESIDE_INLINE) {
        return false;
    }
    if (!is_neutral_const(g, node, select->operand[2])) {
        return false;
    }
    Access access = access_compose(arena, select, select->access[0], node->access[0]);
    graph_place_keys(arena, g, node, select->operand[0], access, is_inline, values, out);
    return out->n > 0;
}

/* Rows of so many bytes take longer than to see that they belong to another thread. */
#define ROW_SHARED 256

/* What goes to one place. */
static double row_bytes(const Graph *g, const Node *n, const PlaceKeys *keys)
{
    double bytes = (double)dtype_bytes(n->dtype);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        bool row = !node_reduces(n, (int32_t)l);
        for (uint32_t k = 0; k < keys->n; k++) {
            row = row && keys->at[k].along != (int32_t)l &&
                  !access_has_label(&keys->at[k].key, (int32_t)l);
        }
        bytes *= row ? (double)nest_typical(g, n->extent[l]) : 1.0;
    }
    return bytes;
}

bool leaf_is_scatter(Arena *arena, const Machine *machine, const Nest *nest,
                     const NestValue *values, NodeRef n, LeafShape *out)
{
    const Node *node = graph_node(nest->graph, n);
    PlaceKeys keys;
    bool is = (machine == NULL || machine_traits(machine)->scatters) &&
              nest_scatter(arena, nest, values, n, &keys);
    for (uint32_t k = 0; is && k < keys.n; k++) {
        out->alone[k] = keys.at[k].along;
        out->n_once = k + 1;
    }
    out->ranges = is && node->op != OP_SELECT && !node_reduces(node, keys.at[0].along) &&
                  row_bytes(nest->graph, node, &keys) >= ROW_SHARED;
    return is;
}
