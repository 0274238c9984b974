/* SPDX-License-Identifier: Apache-2.0 */
/* Where values live, given the tree: results are written straight where they may be, blocks
 * inside loops are on chip, what crosses top-level items goes to memory unless all of it is
 * small and of known size, and an expression takes the place of an operand that ends there if
 * the machine allows it. */
#include "nest/place.h"

static bool place_result(Arena *arena, const NestFacts *f, const uint32_t *top, NodeRef n,
                         NestValue *v)
{
    int32_t k = f->result_of[n];
    int32_t param = k < 0 ? -1 : f->g->results.at[k].param;
    if (k < 0) {
        return false;
    }
    bool whole = op_takes_whole(graph_node(f->g, n)->op); /* operands are read until it ends */
    if (param < 0 || (!whole && nest_may_overwrite(arena, f, top, n, (uint32_t)param))) {
        v->residence = RESIDE_RESULT;
        v->result = k;
    } else {
        v->residence = RESIDE_WORKSPACE;
    }
    return true;
}

typedef struct Placer {
    const NestFacts *f;
    const Machine *machine; /* or null */
    const Nest *nest;
    NestValue *values;
    bool *taken;   /* [nodes]: another value has its place */
    int64_t *live; /* [items]: bytes on chip between top-level items while it runs */
    const uint32_t *top;
} Placer;

/* The operand whose place the value takes, the first that allows it, or NODE_NONE. */
static NodeRef find_place(const Placer *p, NodeRef n)
{
    const UseList *u = &p->f->uses[n];
    for (uint32_t i = 0; p->machine != NULL && p->machine->overwrites && i < u->list.n; i++) {
        NodeRef old = u->list.at[i].node;
        if (!p->taken[old] && nest_may_take(p->f, p->nest, p->values, n, old)) {
            return old;
        }
    }
    return NODE_NONE;
}

/* Is there room for so many bytes from item `from` to item `last`, to the end of the top-level
 * item it is in? Takes it then. */
static bool take_room(Placer *p, uint32_t from, uint32_t last, int64_t bytes)
{
    const NestItem *items = p->nest->items;
    uint32_t end = last < p->nest->n_items ? items[nest_item_in(p->nest, NEST_NONE, last)].end
                                           : p->nest->n_items;
    int64_t capacity = machine_tile_capacity(p->machine) / 2;
    for (uint32_t k = from; k < end; k++) {
        if (sat_add(p->live[k], bytes) > capacity) {
            return false;
        }
    }
    for (uint32_t k = from; k < end; k++) {
        p->live[k] = sat_add(p->live[k], bytes);
    }
    return true;
}

/* A value between top-level items: on chip, whole, while there is room for what lives at once. */
static bool fits_on_chip(Placer *p, NodeRef n, NodeRef old)
{
    const NestValue *v = &p->values[n];
    if (p->machine == NULL || node_is_open(graph_node(p->f->g, n))) {
        return false;
    }
    uint32_t from = p->top[nest_first_of(p->f, p->top, n)];
    if (old != NODE_NONE) { /* until its own top-level item has ended there is room already */
        from = p->nest->items[from].end;
    }
    return take_room(p, from, v->last, nest_node_bytes(p->f->g, n));
}

/* In the order in which values are computed: which of those that cross top-level items stay on
 * chip, and which take the place of an operand. */
static void place_blocks(Placer *p)
{
    for (uint32_t k = 0; k < p->nest->n_items; k++) {
        NodeRef n = p->nest->items[k].node;
        NestValue *v = &p->values[n];
        if (nest_is_loop(&p->nest->items[k]) || v->residence == RESIDE_RESULT ||
            v->residence == RESIDE_INTO) {
            continue;
        }
        NodeRef old = find_place(p, n);
        if (v->residence == RESIDE_TILE && v->alloc_loop == NEST_NONE &&
            !fits_on_chip(p, n, old)) {
            v->residence = RESIDE_WORKSPACE;
            old = find_place(p, n);
        }
        if (old != NODE_NONE) {
            p->taken[old] = true;
            v->in_place = old;
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
        NodeRef n = f->stored[k], into = f->into[n];
        if (into != NODE_NONE && top[n] != NEST_NONE && top[into] != NEST_NONE) {
            values[n].residence = RESIDE_INTO;
            values[n].in_place = into;
        } else if (!place_result(arena, f, top, n, &values[n])) {
            values[n].residence = RESIDE_TILE;
        }
    }
    nest_derive(f, nest, values);
    Placer p = {.f = f, .machine = machine, .nest = nest, .values = values, .top = top};
    p.taken = ARENA_ARRAY(arena, g->nodes.n, bool);
    p.live = ARENA_ARRAY(arena, nest->n_items + 1, int64_t);
    place_blocks(&p);
    nest_set_bytes(nest, values);
    return values;
}
