/* SPDX-License-Identifier: Apache-2.0 */
/* See leaves.h. */
#include "nest/leaves.h"

static const struct LeafRow {
    const char *word;
    LeafApplies *applies;
    const char *refused;
} rows[LEAF_COUNT] = {
#define LEAF(id, word, applies, lowers, refused) {word, applies, refused},
#include "nest/leaves.def"
};

#define ANY_SHAPE ((LeafShape){.alone = {-1, -1, -1, -1}})

static bool is_among(const LeafShape *shape, uint32_t n, int32_t label)
{
    bool among = false;
    for (uint32_t i = 0; i < n; i++) {
        among |= label == shape->alone[i];
    }
    return among;
}

bool leaf_is_alone(const LeafShape *shape, int32_t label)
{
    return is_among(shape, PLACE_KEYS, label);
}

bool leaf_is_once(const LeafShape *shape, int32_t label)
{
    return is_among(shape, shape->n_once, label);
}

bool leaf_is_plain(Arena *arena, const Machine *machine, const Nest *nest,
                   const NestValue *values, NodeRef n, LeafShape *out)
{
    (void)arena, (void)machine, (void)nest, (void)values, (void)n, (void)out;
    return true;
}

bool leaf_is_join(Arena *arena, const Machine *machine, const Nest *nest,
                  const NestValue *values, NodeRef n, LeafShape *out)
{
    (void)arena, (void)machine, (void)values;
    out->whole = out->ordered = true;
    return op_info(graph_node(nest->graph, n)->op)->kind == OPKIND_JOIN;
}

bool leaf_is_steps(Arena *arena, const Machine *machine, const Nest *nest,
                   const NestValue *values, NodeRef n, LeafShape *out)
{
    (void)arena, (void)machine, (void)values;
    out->whole = out->ordered = true;
    return graph_node(nest->graph, n)->op == OP_STEPS;
}

bool leaf_is_dense(Arena *arena, const Machine *machine, const Nest *nest,
                   const NestValue *values, NodeRef n, LeafShape *out)
{
    (void)arena, (void)machine, (void)values;
    out->whole = out->ordered = true;
    return op_info(graph_node(nest->graph, n)->op)->kind == OPKIND_DENSE;
}

/* Do the loops around the leaf leave whole what its kind needs so? Of other kinds than plain ones nothing is folded over a loop, or
 * stored elsewhere too. */
static bool is_free(const Nest *nest, const NestValue *v, uint32_t item, const LeafShape *shape)
{
    const NestItem *leaf = &nest->items[item];
    bool free = v->residence != RESIDE_INTO && v->fold == NEST_NONE && !leaf->mirror;
    for (uint32_t p = leaf->parent; p != NEST_NONE; p = nest->items[p].parent) {
        int32_t l = nest_loop_label(nest, p, leaf->node);
        free &= l < 0 || (!shape->whole && !leaf_is_alone(shape, l));
    }
    return free;
}

const char *leaf_word(LeafKind kind)
{
    return rows[kind].word;
}

void nest_set_leaves(Arena *arena, const Machine *machine, const Nest *nest, NestValue *values)
{
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        bool leaf = values[n].item != NEST_NONE;
        for (LeafKind kind = 0; leaf && kind < LEAF_COUNT; kind++) {
            LeafShape shape = ANY_SHAPE;
            bool says = *rows[kind].word != '\0';
            if ((says ? machine != NULL : *rows[values[n].kind].word == '\0') &&
                rows[kind].applies(arena, machine, nest, values, n, &shape) &&
                (!says || is_free(nest, &values[n], values[n].item, &shape))) {
                values[n].kind = kind;
            }
        }
    }
}

LeafShape nest_leaf_shape(Arena *scratch, const Nest *nest, NodeRef n)
{
    LeafShape shape = ANY_SHAPE;
    LeafApplies *applies = rows[nest->values[n].kind].applies;
    return applies(scratch, NULL, nest, nest->values, n, &shape) ? shape : ANY_SHAPE;
}

const char *nest_leaf_problem(Arena *scratch, const Nest *nest, uint32_t item)
{
    NodeRef n = nest->items[item].node;
    const NestValue *v = &nest->values[n];
    LeafShape shape = ANY_SHAPE;
    bool fits = rows[v->kind].applies(scratch, NULL, nest, nest->values, n, &shape) &&
                (v->kind == LEAF_PLAIN || is_free(nest, v, item, &shape));
    return fits ? NULL : rows[v->kind].refused;
}
