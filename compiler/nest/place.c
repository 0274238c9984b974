/* SPDX-License-Identifier: Apache-2.0 */
/* Where values live, given the tree: results are written straight where they may be, blocks
 * inside loops are on chip, what crosses top-level items goes to memory unless all of it is
 * small and of known size, and an expression takes the place of an operand that ends there if
 * the machine allows it. */
#include "nest/parts.h"

const char *residence_name(Residence r)
{
    switch (r) {
    case RESIDE_NONE:
        return "none";
    case RESIDE_ARGUMENT:
        return "argument";
    case RESIDE_RESULT:
        return "result";
    case RESIDE_INLINE:
        return "register";
    case RESIDE_TILE:
        return "tile";
    case RESIDE_WORKSPACE:
        return "workspace";
    case RESIDE_COUNT:
        break;
    }
    UNREACHABLE();
}

static bool place_result(Arena *arena, const NestFacts *f, const uint32_t *top, NodeRef n,
                         NestValue *v)
{
    int32_t k = f->result_of[n];
    int32_t param = k < 0 ? -1 : f->g->results.at[k].param;
    if (k < 0) {
        return false;
    }
    if (param < 0 || nest_may_overwrite(arena, f, top, n, (uint32_t)param)) {
        v->residence = RESIDE_RESULT;
        v->result = k;
    } else {
        v->residence = RESIDE_WORKSPACE;
    }
    return true;
}

static bool is_open(const Node *n)
{
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->shape[d].sym >= 0) {
            return true;
        }
    }
    return false;
}

/* Values between top-level items: on chip, whole, while there is room for them. */
static void place_crossing(const NestFacts *f, const Machine *machine, NestValue *values)
{
    int64_t capacity = machine == NULL ? 0 : machine_tile_capacity(machine), used = 0;
    for (uint32_t k = 0; k < f->n_stored; k++) {
        NodeRef n = f->stored[k];
        NestValue *v = &values[n];
        const Node *node = graph_node(f->g, n);
        if (v->residence != RESIDE_TILE || v->home != NEST_NONE) {
            continue;
        }
        int64_t bytes = nest_node_bytes(f->g, n);
        bool fits = machine != NULL && !is_open(node) && sat_add(used, bytes) <= capacity / 2;
        used = fits ? sat_add(used, bytes) : used;
        v->residence = fits ? RESIDE_TILE : RESIDE_WORKSPACE;
    }
}

/* Results of expressions in the place of an operand, the first that allows it. */
static void take_places(Arena *arena, const NestFacts *f, const Nest *nest, NestValue *values)
{
    bool *taken = ARENA_ARRAY(arena, f->g->nodes.n, bool);
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NodeRef n = nest->items[k].node;
        for (uint32_t i = 0; !nest_is_loop(&nest->items[k]) && i < f->uses[n].list.n; i++) {
            NodeRef p = f->uses[n].list.at[i].node;
            if (!taken[p] && nest_may_take(f, nest, values, n, p)) {
                taken[p] = true;
                values[n].in_place = p;
                break;
            }
        }
    }
}

NestValue *nest_place(Arena *arena, const NestFacts *f, const Machine *machine,
                      const Nest *nest)
{
    const Graph *g = f->g;
    NestValue *values = ARENA_ARRAY(arena, g->nodes.n, NestValue);
    uint32_t *top = nest_top_items(arena, nest);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        values[n] =
            (NestValue){.residence = f->residence[n], .result = -1, .in_place = NODE_NONE};
    }
    for (uint32_t k = 0; k < f->n_stored; k++) {
        NodeRef n = f->stored[k];
        if (!place_result(arena, f, top, n, &values[n])) {
            values[n].residence = RESIDE_TILE;
        }
    }
    nest_derive(f, nest, values);
    place_crossing(f, machine, values);
    if (machine != NULL && machine->overwrites) {
        take_places(arena, f, nest, values);
    }
    nest_set_bytes(nest, values);
    return values;
}
