/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the tree: allocation loop, fold, lifetime and block of every value. Contractions that begin with each other are one place,
 * with one allocation loop. */
#include "nest/leaves.h"
#include "nest/parts.h"

int32_t nest_axis_label(const NestAxis *axis, NodeRef n)
{
    uint32_t lo = 0, hi = axis->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (axis->node[mid] < n) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < axis->n && axis->node[lo] == n ? axis->label[lo] : -1;
}

NestHalo nest_halo(const Nest *nest, uint32_t loop, NodeRef n)
{
    const NestAxis *axis = &nest->axes[nest->items[loop].axis];
    for (uint32_t k = 0; axis->halo != NULL && k < axis->n; k++) {
        if (axis->node[k] == n) {
            return axis->halo[k];
        }
    }
    return (NestHalo){0, 0};
}

int64_t nest_loop_span(const Nest *nest, uint32_t loop, NodeRef n)
{
    int64_t count = nest_halo(nest, loop, n).count;
    return sat_add(nest->items[loop].tile, count > 1 ? count - 1 : 0);
}

uint32_t nest_loop_of(const Nest *nest, uint32_t at, NodeRef n, int32_t l)
{
    while (at != NEST_NONE) {
        const NestItem *item = &nest->items[at];
        if (nest_is_loop(item) && nest_axis_label(&nest->axes[item->axis], n) == l) {
            return at;
        }
        at = item->parent;
    }
    return NEST_NONE;
}

bool nest_loop_is_full(const Nest *nest, uint32_t loop)
{
    Dim extent = nest->axes[nest->items[loop].axis].extent;
    return extent.sym < 0 && nest->items[loop].from == 0 &&
           extent.n % nest->items[loop].tile == 0;
}

bool nest_goes_into(const Node *n, const Node *init)
{
    return (node_is_expression(init) || init->op == OP_EINSUM) && init->acc == n->acc &&
           access_is_own(n, n->access[n->n_operands - 1]);
}

NodeRef nest_place_of(const Nest *nest, NodeRef n)
{
    while (nest->values[n].residence == RESIDE_INTO) {
        n = nest->values[n].in_place;
    }
    return n;
}

bool nest_begins_there(const Nest *nest, NodeRef n)
{
    const Node *node = graph_node(nest->graph, n);
    NodeRef x = node_init(node);
    if (x == NODE_NONE || nest->values[x].residence == RESIDE_INTO) {
        return x != NODE_NONE;
    }
    const Node *init = graph_node(nest->graph, x);
    const NestValue *v = &nest->values[nest_place_of(nest, n)];
    return init->op == OP_INPUT && v->residence == RESIDE_RESULT &&
           nest->graph->results.at[v->result].param == (int32_t)init->param &&
           access_is_own(node, node->access[node->n_operands - 1]);
}

uint32_t nest_depth(const NestItem *items, uint32_t at)
{
    uint32_t depth = 0;
    for (; at != NEST_NONE; at = items[at].parent) {
        depth++;
    }
    return depth;
}

uint32_t nest_loops_ending(const Nest *nest, uint32_t k)
{
    uint32_t n = 0;
    for (uint32_t at = nest_is_loop(&nest->items[k]) ? k : nest->items[k].parent;
         at != NEST_NONE && nest->items[at].end == k + 1; at = nest->items[at].parent) {
        n++;
    }
    return n;
}

/* The innermost loop that is at or around both. */
static uint32_t common_loop(const NestItem *items, uint32_t x, uint32_t y)
{
    uint32_t dx = nest_depth(items, x), dy = nest_depth(items, y);
    for (; dx > dy; dx--) {
        x = items[x].parent;
    }
    for (; dy > dx; dy--) {
        y = items[y].parent;
    }
    while (x != y) {
        x = items[x].parent;
        y = items[y].parent;
    }
    return x;
}

static uint32_t outermost_fold(const Nest *nest, uint32_t leaf)
{
    NodeRef n = nest->items[leaf].node;
    uint32_t found = NEST_NONE;
    for (uint32_t at = nest->items[leaf].parent; at != NEST_NONE; at = nest->items[at].parent) {
        int32_t l = nest_axis_label(&nest->axes[nest->items[at].axis], n);
        if (l >= 0 && node_reduces(graph_node(nest->graph, n), l)) {
            found = at;
        }
    }
    return found;
}

static void read_at(const Nest *nest, NestValue *values, NodeRef p, uint32_t scope,
                    uint32_t item)
{
    if (values[p].item == NEST_NONE) {
        return; /* a parameter */
    }
    values[p].alloc_loop = common_loop(nest->items, values[p].alloc_loop, scope);
    if (values[p].last < item) {
        values[p].last = item;
    }
}

int64_t nest_node_bytes(const Graph *g, NodeRef n)
{
    const Node *node = graph_node(g, n);
    node = node->op == OP_VIEW ? graph_node(g, node->operand[0]) : node;
    int64_t bytes = dtype_bytes(node->dtype);
    for (uint32_t d = 0; d < node->rank; d++) {
        bytes = sat_mul(bytes, dim_typical(&g->dims, node->shape[d]));
    }
    return bytes;
}

int64_t nest_typical(const Graph *g, Dim d)
{
    int64_t n = dim_typical(&g->dims, d);
    return n < 1 ? 1 : n;
}

int64_t nest_block_extent(const Nest *nest, NodeRef n, uint32_t alloc_loop, uint32_t d)
{
    const Node *node = graph_node(nest->graph, n);
    int64_t extent = dim_typical(&nest->graph->dims, node->shape[d]);
    uint32_t loop = nest_loop_of(nest, alloc_loop, n, node->out[d]);
    int64_t span = loop == NEST_NONE ? extent : nest_loop_span(nest, loop, n);
    return span < extent ? span : extent;
}

int64_t nest_block_elements(const Nest *nest, NodeRef n, uint32_t alloc_loop)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < graph_node(nest->graph, n)->rank; d++) {
        count = sat_mul(count, nest_block_extent(nest, n, alloc_loop, d));
    }
    return count;
}

/* The outermost allocation loop is that of all. */
static void join_homes(const Nest *nest, NestValue *values)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NestValue *v = nest_is_loop(&nest->items[k]) ? NULL : &values[nest->items[k].node];
        if (v != NULL && v->residence == RESIDE_INTO) {
            NestValue *into = &values[v->in_place];
            into->alloc_loop = common_loop(nest->items, v->alloc_loop, into->alloc_loop);
        }
    }
    for (uint32_t k = nest->n_items; k-- > 0;) {
        NestValue *v = nest_is_loop(&nest->items[k]) ? NULL : &values[nest->items[k].node];
        if (v != NULL && v->residence == RESIDE_INTO) {
            v->alloc_loop = values[v->in_place].alloc_loop;
        }
    }
}

void nest_derive(const NestFacts *f, const Nest *nest, NestValue *values)
{
    const Graph *g = nest->graph;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        values[n].item = values[n].alloc_loop = values[n].fold = NEST_NONE;
    }
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        if (!nest_is_loop(item)) {
            NestValue *v = &values[item->node];
            v->item = v->last = k;
            v->fold = outermost_fold(nest, k);
            v->alloc_loop = v->fold == NEST_NONE ? item->parent : nest->items[v->fold].parent;
        }
    }
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        for (uint32_t i = 0; !nest_is_loop(item) && i < f->uses[item->node].list.n; i++) {
            read_at(nest, values, f->uses[item->node].list.at[i].node, item->parent, k);
        }
    }
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        read_at(nest, values, f->late.list.at[i].node, NEST_NONE, nest->n_items);
    }
    for (uint32_t k = 0; k < g->results.n; k++) { /* copied to where it belongs at the end */
        NodeRef n = g->results.at[k].node;
        if (values[n].residence == RESIDE_WORKSPACE) {
            read_at(nest, values, n, NEST_NONE, nest->n_items);
        }
    }
    join_homes(nest, values);
    nest_set_leaves(NULL, NULL, nest, values);
}

void nest_set_bytes(const Nest *nest, NestValue *values)
{
    for (uint32_t k = 0; k < nest->n_items; k++) {
        if (!nest_is_loop(&nest->items[k])) {
            NodeRef n = nest->items[k].node;
            uint32_t alloc_loop =
                values[n].residence == RESIDE_TILE ? values[n].alloc_loop : NEST_NONE;
            bool own = values[n].residence != RESIDE_INTO;
            values[n].bytes = own ? sat_mul(nest_block_elements(nest, n, alloc_loop),
                                            dtype_bytes(graph_node(nest->graph, n)->dtype))
                                  : 0;
        }
    }
}

/* ---- facts ---- */

static bool is_leaf(const Node *n)
{
    return op_info(n->op)->kind == OPKIND_LEAF;
}

static int32_t *find_results(Arena *arena, const Graph *g)
{
    int32_t *result_of = ARENA_ARRAY(arena, g->nodes.n, int32_t);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        result_of[n] = -1;
    }
    for (uint32_t k = g->results.n; k-- > 0;) {
        if (!is_leaf(graph_node(g, g->results.at[k].node))) {
            result_of[g->results.at[k].node] = (int32_t)k;
        }
    }
    return result_of;
}

static const uint32_t *count_reads(Arena *arena, const NestFacts *f)
{
    uint32_t *reads = ARENA_ARRAY(arena, f->g->nodes.n, uint32_t);
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        reads[f->late.list.at[i].node]++;
    }
    for (uint32_t k = 0; k < f->n_stored; k++) {
        for (uint32_t i = 0; i < f->uses[f->stored[k]].list.n; i++) {
            reads[f->uses[f->stored[k]].list.at[i].node]++;
        }
    }
    return reads;
}

/* Contractions that begin with a contraction which nothing else reads. */
static const NodeRef *find_into(Arena *arena, const NestFacts *f)
{
    NodeRef *into = ARENA_ARRAY(arena, f->g->nodes.n, NodeRef);
    for (NodeRef n = 0; n < f->g->nodes.n; n++) {
        into[n] = NODE_NONE;
    }
    for (uint32_t k = 0; k < f->n_stored; k++) {
        NodeRef x = node_init(graph_node(f->g, f->stored[k]));
        if (x != NODE_NONE && f->reads[x] == 1 && f->result_of[x] < 0 &&
            nest_goes_into(graph_node(f->g, f->stored[k]), graph_node(f->g, x))) {
            into[x] = f->stored[k];
        }
    }
    return into;
}

void nest_facts_of(Arena *arena, const Graph *g, const Residence *residence, NestFacts *f)
{
    int32_t *result_of = find_results(arena, g);
    UseList *uses = ARENA_ARRAY(arena, g->nodes.n, UseList);
    NodeRef *stored = ARENA_ARRAY(arena, g->nodes.n, NodeRef);
    *f = (NestFacts){
        .g = g, .residence = residence, .uses = uses, .result_of = result_of, .stored = stored};
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (residence_is_stored(residence[n])) {
            node_uses(arena, g, residence, n, &uses[n]);
            stored[f->n_stored++] = n;
        } else {
            result_of[n] = -1;
        }
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        NodeRef n = g->results.at[k].node;
        if (result_of[n] != (int32_t)k) {
            result_uses(arena, g, residence, n, &f->late);
        }
    }
    f->reads = count_reads(arena, f);
    f->into = find_into(arena, f);
}

void nest_facts(Arena *arena, const Graph *g, NestFacts *f)
{
    Residence *residence = ARENA_ARRAY(arena, g->nodes.n, Residence);
    bool *needed = graph_needed(arena, g, false);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        residence[n] = !needed[n]             ? RESIDE_NONE
                       : node->op == OP_INPUT ? RESIDE_ARGUMENT
                       : node->op == OP_VIEW  ? RESIDE_VIEW
                       : is_leaf(node)        ? RESIDE_INLINE
                                              : RESIDE_WORKSPACE;
    }
    nest_choose_inline(arena, g, needed, find_results(arena, g), residence);
    nest_facts_of(arena, g, residence, f);
}
