/* SPDX-License-Identifier: Apache-2.0 */
/* What lives at once. A place holds a block, and after it the blocks that take its place: from
 * the item of its allocation loop's body in which the first is begun to the one in which the last is read
 * last. A fold in a type of its own has a second block while it runs. Places count once, and
 * only while they are needed. */
#include "nest/place.h"

static void add(Arena *arena, NestPlaces *out, const Nest *nest, uint32_t alloc_loop,
                uint32_t first, uint32_t last, int64_t bytes)
{
    NestPlaceLife life = {.alloc_loop = alloc_loop,
                          .from = nest_item_in(nest, alloc_loop, first),
                          .to = last >= nest->n_items
                                    ? nest->n_items
                                    : nest->items[nest_item_in(nest, alloc_loop, last)].end,
                          .bytes = bytes};
    vec_push(arena, &out->list, life);
}

void nest_places(Arena *arena, const Nest *nest, NestPlaces *out)
{
    const Graph *g = nest->graph;
    uint32_t *until = ARENA_ARRAY(arena, g->nodes.n, uint32_t);
    int64_t *most = ARENA_ARRAY(arena, g->nodes.n, int64_t);
    for (uint32_t k = nest->n_items; k-- > 0;) { /* who takes a place comes later */
        NodeRef n = nest->items[k].node;
        if (nest_is_loop(&nest->items[k])) {
            continue;
        }
        const NestValue *v = &nest->values[n];
        until[n] = v->last > until[n] ? v->last : until[n];
        most[n] = v->bytes > most[n] ? v->bytes : most[n];
        if (v->in_place != NODE_NONE && v->residence != RESIDE_INTO) {
            until[v->in_place] = until[n];
            most[v->in_place] = most[n];
        }
    }
    uint32_t *place = ARENA_ARRAY(arena, g->nodes.n, uint32_t); /* and 1 */
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NodeRef n = nest->items[k].node;
        if (nest_is_loop(&nest->items[k])) {
            continue;
        }
        NodeRef at = nest_place_of(nest, n); /* of which this may be the first contraction */
        const NestValue *v = &nest->values[n], *whole = &nest->values[at];
        const Node *node = graph_node(g, n);
        uint32_t begin = v->fold == NEST_NONE ? k : v->fold;
        uint32_t scope = nest->items[begin].parent;
        if (whole->residence == RESIDE_TILE && whole->in_place != NODE_NONE) {
            place[n] = place[whole->in_place];
        } else if (whole->residence == RESIDE_TILE && place[at] == 0) {
            add(arena, out, nest, whole->alloc_loop, begin, until[at], most[at]);
            place[at] = out->list.n;
        }
        place[n] = place[at] != 0 ? place[at] : place[n];
        if (node->acc != node->dtype && !node_is_expression(node) &&
            (scope != NEST_NONE || v->fold == NEST_NONE)) {
            int64_t bytes =
                sat_mul(nest_block_elements(nest, n, scope), dtype_bytes(node->acc));
            add(arena, out, nest, scope, begin, begin, bytes);
        }
    }
    out->of = place;
    uint32_t *before = ARENA_ARRAY(arena, nest->n_items + 1, uint32_t);
    for (uint32_t i = 0; i < out->list.n; i++) {
        uint32_t alloc_loop = out->list.at[i].alloc_loop;
        before[alloc_loop == NEST_NONE ? 0 : alloc_loop + 1] += alloc_loop != NEST_NONE;
    }
    for (uint32_t k = 0; k < nest->n_items; k++) {
        before[k + 1] += before[k];
    }
    out->allocs_before = before;
}

/* Is `loop` (NEST_NONE: the kernel) at or around the loop `at`? */
static bool is_inside(const Nest *nest, uint32_t loop, uint32_t at)
{
    return loop == NEST_NONE || nest_is_in(nest, at, loop);
}

double nest_peak(Arena *scratch, const Nest *nest, const NestPlaces *places, uint32_t loop)
{
    uint32_t first = loop == NEST_NONE ? 0 : loop + 1;
    uint32_t end = loop == NEST_NONE ? nest->n_items : nest->items[loop].end;
    double peak = 0, bytes = 0;
    if (loop != NEST_NONE && places->allocs_before[loop] == places->allocs_before[end]) {
        return 0; /* none: asked for each loop of a long kernel */
    }
    double *change = ARENA_ARRAY(scratch, (size_t)(end - first) + 1, double);
    for (uint32_t i = 0; i < places->list.n; i++) {
        const NestPlaceLife *p = &places->list.at[i];
        if (is_inside(nest, loop, p->alloc_loop)) {
            change[p->from - first] += (double)p->bytes;
            change[p->to - first] -= (double)p->bytes;
        }
    }
    for (uint32_t k = first; k < end; k++) {
        bytes += change[k - first];
        peak = !nest_is_loop(&nest->items[k]) && bytes > peak ? bytes : peak;
    }
    return peak;
}

int64_t *nest_beside(Arena *arena, const Nest *nest, const NestPlaces *places, double most)
{
    int64_t *live = ARENA_ARRAY(arena, nest->n_items + 1, int64_t);
    int64_t *beside = ARENA_ARRAY(arena, nest->graph->nodes.n, int64_t);
    for (uint32_t i = 0; i < places->list.n; i++) {
        const NestPlaceLife *p = &places->list.at[i];
        for (uint32_t k = p->from; (double)p->bytes <= most && k < p->to; k++) {
            live[k] = sat_add(live[k], p->bytes);
        }
    }
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        const NestPlaceLife *p =
            places->of[n] == 0 ? NULL : &places->list.at[places->of[n] - 1];
        for (uint32_t k = p == NULL ? 0 : p->from; p != NULL && k < p->to; k++) {
            beside[n] = live[k] > beside[n] ? live[k] : beside[n];
        }
    }
    return beside;
}
