/* SPDX-License-Identifier: Apache-2.0 */
/* What a nest says: of its tree, its axes, its blocks. */
#include "nest/nest.h"

const char *residence_name(Residence r)
{
    static const char *const names[] = {
        [RESIDE_NONE] = "none",           [RESIDE_ARGUMENT] = "argument",
        [RESIDE_VIEW] = "view",           [RESIDE_RESULT] = "result",
        [RESIDE_INLINE] = "register",     [RESIDE_TILE] = "tile",
        [RESIDE_WORKSPACE] = "workspace", [RESIDE_INTO] = "into"};
    return names[r];
}

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

int32_t nest_loop_label(const Nest *nest, uint32_t loop, NodeRef n)
{
    return nest_axis_label(&nest->axes[nest->items[loop].axis], n);
}

bool nest_folds_over(const Nest *nest, uint32_t loop, NodeRef n)
{
    int32_t l = nest_loop_label(nest, loop, n);
    return l >= 0 && node_reduces(graph_node(nest->graph, n), l);
}

int64_t nest_loop_extent(const Nest *nest, uint32_t loop)
{
    return nest_typical(nest->graph, nest->axes[nest->items[loop].axis].extent);
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
        if (nest_is_loop(&nest->items[at]) && nest_loop_label(nest, at, n) == l) {
            return at;
        }
        at = nest->items[at].parent;
    }
    return NEST_NONE;
}

bool nest_loop_is_full(const Nest *nest, uint32_t loop)
{
    Dim extent = nest->axes[nest->items[loop].axis].extent;
    return extent.sym < 0 && nest->items[loop].from == 0 &&
           extent.n % nest->items[loop].tile == 0;
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

/* The item of the body of loop `alloc_loop` that is item `at` or has it inside. */
uint32_t nest_item_in(const Nest *nest, uint32_t alloc_loop, uint32_t at)
{
    while (nest->items[at].parent != alloc_loop) {
        at = nest->items[at].parent;
    }
    return at;
}

bool nest_axis_is_folded(const Graph *g, const NestAxis *axis)
{
    for (uint32_t k = 0; k < axis->n; k++) {
        if (node_reduces(graph_node(g, axis->node[k]), axis->label[k])) {
            return true;
        }
    }
    return false;
}

bool nest_is_slice(const Graph *g, const NestAxis *axis)
{
    for (uint32_t i = 0; i < axis->n; i++) {
        Slices sliced = graph_slices(g, axis->node[i]);
        for (uint32_t k = 0; k < sliced.n; k++) {
            if (sliced.label[k] == axis->label[i]) {
                return true;
            }
        }
    }
    return false;
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

bool node_is_expression(const Node *n)
{
    OpKind kind = op_info(n->op)->kind;
    if (kind == OPKIND_MAP || kind == OPKIND_GATHER) {
        return true;
    }
    return kind == OPKIND_CONTRACT && n->n_labels == n->rank && n->acc == n->dtype;
}

/* Those that are computed from others, for their typical sizes. */
static void complete_dims(Arena *arena, DimTable *t)
{
    uint32_t n = dims_given(t);
    int64_t *given = ARENA_ARRAY(arena, n, int64_t);
    for (uint32_t d = 0; d < n; d++) {
        given[d] = t->list.at[d].typical;
    }
    const int64_t *all = dims_complete(arena, t, given);
    for (uint32_t d = n; d < t->list.n; d++) {
        t->list.at[d].typical = all[d] < 1 ? 1 : all[d] > SIZE_LIMIT ? SIZE_LIMIT : all[d];
    }
}

const Graph *nest_graph_at(Arena *arena, const Graph *g, int32_t dim, int64_t size)
{
    Graph *at = arena_copy(arena, g, sizeof *g);
    at->dims.list.at =
        arena_copy(arena, g->dims.list.at, g->dims.list.n * sizeof *g->dims.list.at);
    at->dims.list.at[dim].typical = size;
    if (dim_is_given(&at->dims.list.at[dim])) {
        complete_dims(arena, &at->dims);
    }
    return at;
}
