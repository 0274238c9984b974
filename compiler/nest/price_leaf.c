/* SPDX-License-Identifier: Apache-2.0 */
/* One leaf as the price sees it: its loops and what it touches (price_leaf.h). */
#include "nest/price_leaf.h"

#include <math.h>

#include "nest/masks.h"

double price_pair_extent(const Nest *nest, const NestItem *item, double extent)
{
    double first = item->from == 0 ? extent : (double)nest->items[item->from - 1].tile;
    return first < extent ? (extent + first) / 2.0 : extent;
}

static void find_loops(Arena *scratch, LeafPrice *l)
{
    const Nest *nest = l->nest;
    uint32_t k = l->depth = nest_depth(nest->items, nest->items[l->item].parent);
    for (uint32_t at = nest->items[l->item].parent; at != NEST_NONE;
         at = nest->items[at].parent) {
        l->loop[--k] = at;
    }
    for (k = 0; k < l->depth; k++) {
        const NestItem *item = &nest->items[l->loop[k]];
        double extent = price_typical(nest->graph, nest->axes[item->axis].extent);
        for (uint32_t o = 0; o < k; o++) { /* a tile of a tile */
            const NestItem *outer = &nest->items[l->loop[o]];
            if (outer->axis == item->axis && (double)outer->tile < extent) {
                extent = (double)outer->tile;
            }
        }
        double tile = (double)item->tile, behind = price_pair_extent(nest, item, extent);
        l->trips[k] = extent <= tile ? 1.0 : (double)(int64_t)((extent + tile - 1.0) / tile);
        l->trips[k] = item->from == 0 ? l->trips[k]
                      : item->tile == nest->items[item->from - 1].tile
                          ? (l->trips[k] + 1.0) / 2.0
                      : behind <= tile ? 1.0
                                       : behind / tile;
        l->trips[k] *= l->p->masked ? nest_mask_fraction(scratch, nest, l->loop[k]) : 1.0;
    }
}

double price_positions(const LeafPrice *l, int32_t label, uint32_t p)
{
    const Graph *g = l->nest->graph;
    double extent = price_typical(g, graph_node(g, l->node)->extent[label]);
    while (p > 0) {
        const NestItem *item = &l->nest->items[l->loop[--p]];
        if (nest_loop_label(l->nest, l->loop[p], l->node) == label) {
            double span = (double)nest_loop_span(l->nest, l->loop[p], l->node);
            extent = price_pair_extent(l->nest, item, extent);
            return span < extent ? span : extent;
        }
    }
    return extent;
}

static void set_bytes(Touch *t, uint32_t p, const PriceRuns *r)
{
    t->bytes[p] = r->runs * r->run;
    t->runs[p] = r->run > 0 ? r->runs : 0.0;
}

/* The same of a view: of each dimension of its operand what the labels in its position reach. */
static void find_viewed_bytes(const LeafPrice *l, const Access *a, uint32_t p, Touch *t)
{
    const Graph *g = l->nest->graph;
    const Node *view = graph_node(g, t->node), *of = graph_node(g, view->operand[0]);
    const NestValue *v = &l->nest->values[t->value];
    double of_label[RANK_LIMIT];
    PriceRuns runs = {1.0, (double)dtype_bytes(view->dtype), true};
    for (uint32_t d = 0; d < a->rank; d++) {
        int32_t label = a->index[d].label;
        of_label[d] = is_piece_label(label) ? price_typical(g, view->shape[d])
                      : label < 0           ? 1.0
                                            : price_positions(l, label, p);
    }
    for (uint32_t d = of->rank; d-- > 0;) {
        double part = view_positions(g, view, d, of_label);
        double whole = v->residence == RESIDE_TILE
                           ? (double)nest_block_extent(l->nest, t->value, v->alloc_loop, d)
                           : price_typical(g, of->shape[d]);
        price_runs_add(&runs, part < whole ? part : whole, whole);
    }
    set_bytes(t, p, &runs);
}

/* What one iteration of the outermost p loops touches. A block is dense: its rows are as long as
 * the tiles around its allocation loop. */
static void find_bytes(const LeafPrice *l, const Access *a, uint32_t p, Touch *t)
{
    const NestValue *v = &l->nest->values[t->node];
    const Node *n = graph_node(l->nest->graph, t->node);
    PriceRuns runs = {1.0, (double)dtype_bytes(n->dtype), true};
    if (n->op == OP_VIEW) {
        find_viewed_bytes(l, a, p, t);
        return;
    }
    for (uint32_t d = a->rank; d-- > 0;) {
        int32_t label = a->index[d].label;
        Access after = {a->rank - d - 1, a->index + d + 1};
        bool diagonal = label != -1 && access_has_label(&after, label);
        double part = diagonal || label == -1 ? 1.0
                      : is_piece_label(label) ? price_typical(l->nest->graph, n->shape[d])
                                              : price_positions(l, label, p);
        double whole = v->residence == RESIDE_TILE && label >= 0
                           ? price_positions(l, label, t->alloc_loop)
                           : price_typical(l->nest->graph, n->shape[d]);
        price_runs_add(&runs, part, whole);
    }
    set_bytes(t, p, &runs);
}

static void add_touch(LeafPrice *l, NodeRef of, const Access *a, bool written)
{
    NodeRef node = nest_place_of(l->nest, of), value = node;
    if (graph_node(l->nest->graph, node)->op == OP_VIEW) {
        NodeRef viewed = graph_node(l->nest->graph, node)->operand[0];
        value = l->nest->values[viewed].residence == RESIDE_TILE ? viewed : node;
    }
    const NestValue *v = &l->nest->values[value];
    Touch *t = &l->touch[l->n++];
    *t = (Touch){.node = node,
                 .value = value,
                 .access = a,
                 .written = written,
                 .times = 1.0,
                 .sums = 1.0,
                 .lines = 1.0};
    t->adds = written && graph_node(l->nest->graph, of)->onto;
    const Node *made = graph_node(l->nest->graph, value);
    if (l->p->kind->wide_sums && v->item != NEST_NONE && v->fold != NEST_NONE) {
        t->sums = (double)dtype_bytes(made->acc) / (double)dtype_bytes(made->dtype);
    }
    bool block = v->residence == RESIDE_TILE;
    t->alloc_loop = block ? nest_depth(l->nest->items, v->alloc_loop) : 0;
    t->block = block ? (double)v->bytes : (double)nest_node_bytes(l->nest->graph, node);
    for (uint32_t p = 0; p <= l->depth; p++) {
        find_bytes(l, a, p, t);
        if (p > 0) {
            int32_t label = nest_loop_label(l->nest, l->loop[p - 1], l->node);
            t->moves[p] = label < 0 || access_has_label(a, label);
        }
    }
    for (uint32_t p = l->depth; p-- > 0;) { /* runs of several do not join the next piece's */
        double pieces = t->moves[p + 1] ? l->trips[p] * t->runs[p + 1] : t->runs[p + 1];
        t->runs[p] = t->runs[p + 1] > 1.0 && pieces > t->runs[p] ? pieces : t->runs[p];
    }
}

/* Is it read so already, or its neighbours by another view? */
static bool is_touched(const LeafPrice *l, NodeRef node, const Access *a)
{
    const Graph *g = l->nest->graph;
    for (uint32_t i = 0; i < l->n; i++) {
        const Touch *t = &l->touch[i];
        bool same =
            t->node == node || views_overlap(g, graph_node(g, t->node), graph_node(g, node));
        if (same && access_eq(*t->access, *a)) {
            return true;
        }
    }
    return false;
}

static void find_touches(Arena *scratch, LeafPrice *l)
{
    const Node *n = graph_node(l->nest->graph, l->node);
    const UseList *u = &l->p->facts->uses[l->node];
    l->touch = ARENA_ARRAY(scratch, u->list.n + 1, Touch);
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (!u->list.at[i].apart && !is_touched(l, u->list.at[i].node, &u->list.at[i].access)) {
            add_touch(l, u->list.at[i].node, &u->list.at[i].access, false);
        }
    }
    Index *index = ARENA_ARRAY(scratch, n->rank, Index);
    for (uint32_t d = 0; d < n->rank; d++) {
        index[d] = (Index){n->out[d], 0};
    }
    Access *out = ARENA_NEW(scratch, Access);
    *out = (Access){n->rank, index};
    add_touch(l, l->node, out, true);
    bool there = nest_begins_there(l->nest, l->node);
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (u->list.at[i].apart && !there &&
            !is_touched(l, u->list.at[i].node, &u->list.at[i].access)) {
            add_touch(l, u->list.at[i].node, &u->list.at[i].access, false);
        }
    }
}

void price_leaf_begin(Arena *scratch, LeafPrice *l)
{
    find_loops(scratch, l);
    find_touches(scratch, l);
}

ScheduleRole price_role(const LeafPrice *l, uint32_t operand)
{
    int32_t row = (int32_t)l->schedule->label[ROLE_M][0];
    return access_has_label(l->touch[operand].access, row) ? ROLE_M : ROLE_N;
}

double price_shared(const Machine *m, double seconds, double met, double n)
{
    double whole = ceil(n), threads = fmin((double)m->threads, whole);
    threads = floor(fmin(threads, seconds / met / m->time.piece));
    return threads < 2.0
               ? INFINITY
               : met * m->time.region + seconds * fmin(ceil(whole / threads) / n, 1.0);
}
