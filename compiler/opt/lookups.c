/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers for machines that have none: a product with rows that are 1 at one position and 0 elsewhere, which matrix units are fast at.
 *
 *     %4 = gather %W, %tok[a], %index[b] -> [a,b]
 *
 *     %5 = eq %tok[a], %index[c] -> [a,c] : bool                1 where c is the position, nowhere if that is outside
 *     %6 = cast %5[a,c] -> [a,c] : f32
 *     %4 = einsum %W[c,b], %6[a,c] -> [a,b]
 *
 * A dimension that is read at an index of its own extent is read as it is, one on a ring (rings.h) as two pieces. What stands at other positions is multiplied by 0, as what a
 * condition leaves out of a sum of products is on such machines (Machine.masks). So infinite elements of what the kernel computes, as the
 * maximum of nothing is, become numbers of which twice is infinite, and the product is doubled and halved. */
#include "opt/opt.h"

#include <math.h>

#include "opt/rings.h"

#define HUGE 0x1p127 /* twice that is no f32 */

typedef struct Lookups {
    Graph *to;
    bool rows; /* may rows of an argument be read at positions that an argument has? */
    const bool *infinite; /* [nodes of the graph before] */
    Arena scratch;        /* for specs; reset after each node */
} Lookups;

static const Node *operand_of(const Lookups *r, const NodeSpec *s, uint32_t k)
{
    return graph_node(r->to, s->operand[k]);
}

/* The label along which a dimension is read as it lies; -1: at values. */
static int32_t plain_label(const Lookups *r, const NodeSpec *s, uint32_t d)
{
    const Node *position = operand_of(r, s, d + 1);
    bool index = position->op == OP_INDEX && s->access[d + 1].index[0].label >= 0;
    return index && dim_eq(position->shape[0], operand_of(r, s, 0)->shape[d])
               ? s->access[d + 1].index[0].label
               : -1;
}

/* Is the position of dimension d here? Over the labels of the position and one of its own, `along`. */
static NodeRef is_here(Lookups *r, const NodeSpec *s, uint32_t d, int32_t along, Access *read)
{
    const Access *at = &s->access[d + 1];
    Dim extent = operand_of(r, s, 0)->shape[d];
    NodeRef operand[2] = {s->operand[d + 1], graph_index(r->to, extent, DTYPE_I64, s->span)};
    Index own = {.label = along};
    Access access[2] = {*at, {1, &own}};
    int32_t *out = ARENA_ARRAY(&r->scratch, (size_t)at->rank + 1, int32_t);
    Index *index = ARENA_ARRAY(&r->scratch, (size_t)at->rank + 1, Index);
    Dim *shape = ARENA_ARRAY(&r->scratch, (size_t)at->rank + 1, Dim);
    uint32_t rank = 0;
    for (uint32_t i = 0; i <= at->rank; i++) {
        int32_t label = i == at->rank ? along : at->index[i].label;
        bool again = label < 0;
        for (uint32_t k = 0; k < rank; k++) {
            again |= out[k] == label;
        }
        if (!again) {
            out[rank] = label;
            index[rank] = (Index){.label = label};
            shape[rank++] = label == along ? extent : operand_of(r, s, d + 1)->shape[i];
        }
    }
    *read = (Access){rank, index};
    NodeSpec eq = node_spec(OP_EQ, DTYPE_BOOL, 2, operand, access, rank, out, shape, s->span);
    NodeRef is = graph_add(r->to, &eq);
    DType t = dtype_part(s->dtype);
    NodeSpec cast = node_spec(OP_CAST, t, 1, &is, read, rank, out, shape, s->span);
    return t == DTYPE_BOOL ? is : graph_add(r->to, &cast);
}

/* ---- tables with infinite rows ---- */

/* Finds what infinite numbers go into, as into the maximum of nothing: sums, choices, maxima and minima. */
static bool *find_infinite(Arena *a, const Graph *g)
{
    bool *infinite = ARENA_ARRAY(a, (size_t)g->nodes.n + 1, bool);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        Op op = node->op;
        bool keeps = op == OP_ADD || op == OP_SUB || op == OP_MIN || op == OP_MAX ||
                     op == OP_SELECT || op == OP_RMIN || op == OP_RMAX || op == OP_COPY ||
                     op == OP_NEG || op == OP_CAST || op == OP_VIEW || op == OP_GATHER;
        infinite[n] = op == OP_CONST && isinf(node->value.re);
        for (uint32_t k = 0; keeps && k < node->n_operands; k++) {
            infinite[n] |= infinite[node->operand[k]];
        }
        infinite[n] &= dtype_is_float(node->dtype);
    }
    return infinite;
}

/* A map of a value and a number over the labels of the value. */
static NodeRef with_number(Lookups *r, Op op, NodeRef x, double by, Span span)
{
    const Node *node = graph_node(r->to, x);
    uint32_t rank = node->rank;
    NodeRef operand[2] = {x, graph_const(r->to, number_real(node->dtype, by), span)};
    Access access[2] = {access_in_order(&r->scratch, rank), {0, NULL}};
    NodeSpec s =
        node_spec(op, node->dtype, 2, operand, access, rank, labels_in_order(&r->scratch, rank),
                  graph_node(r->to, x)->shape, span);
    return graph_add(r->to, &s);
}

/* Infinite elements as numbers of which twice is infinite. */
static NodeRef bounded(Lookups *r, NodeRef x, Span span)
{
    return with_number(r, OP_MAX, with_number(r, OP_MIN, x, HUGE, span), -HUGE, span);
}

/* The spec of a gather becomes that of a product. */
static void take_product(Lookups *r, NodeSpec *s)
{
    uint32_t rank = s->n_operands - 1, n = 1;
    int32_t next = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        next = s->out[d] >= next ? s->out[d] + 1 : next;
    }
    NodeRef *operand = ARENA_ARRAY(&r->scratch, (size_t)rank + 1, NodeRef);
    Access *access = ARENA_ARRAY(&r->scratch, (size_t)rank + 1, Access);
    Index *index = ARENA_ARRAY(&r->scratch, (size_t)rank + 1, Index);
    for (uint32_t d = 0; d < rank; d++) {
        int32_t label = plain_label(r, s, d);
        index[d] = (Index){.label = label >= 0 ? label : next};
        if (label < 0) {
            operand[n] = is_here(r, s, d, next++, &access[n]);
            n++;
        }
    }
    operand[0] = s->operand[0];
    access[0] = (Access){rank, index};
    s->op = n == 1 ? OP_COPY : OP_EINSUM;
    s->n_operands = n;
    s->operand = operand;
    s->access = access;
}

/* ---- rows that the machine reads itself ---- */

/* Seconds of a multiply-add of f32, of an element of a row of zeros and ones, of a byte that is moved, and before the first. */
#define PRODUCT_ELEMENT 1e-13
#define ONE_ELEMENT     1.6e-11
#define MOVED_BYTE      8e-12 /* in, out and in again */
#define ROW_LEAST       512.0 /* bytes for which a row counts */
#define ROWS_START      8e-6

static bool is_argument(const Graph *g, NodeRef n)
{
    const Node *node = graph_node(g, n);
    return node->op == OP_INPUT && g->params.at[node->param].role == PARAM_IN;
}

/* Is reading the rows quicker than the product? Of an argument, at positions of another one. */
static bool is_quicker_by_rows(const Lookups *r, const Graph *from, NodeRef n)
{
    const Node *node = graph_node(from, n), *table = graph_node(from, node->operand[0]);
    NodeRef at = node->operand[1];
    DType t = table->dtype;
    bool types = t == DTYPE_F32 || t == DTYPE_F16 || t == DTYPE_BF16 || t == DTYPE_I32;
    at = graph_node(from, at)->op == OP_CAST ? graph_node(from, at)->operand[0] : at;
    if (!r->rows || !types || !is_argument(from, node->operand[0]) || !is_argument(from, at) ||
        !dtype_is_int(graph_node(from, at)->dtype) || graph_node(from, at)->rank == 0) {
        return false;
    }
    double positions = 1, row = 1;
    for (uint32_t d = 0; d < graph_node(from, at)->rank; d++) {
        positions *= (double)graph_node(from, at)->shape[d].n;
    }
    for (uint32_t d = 1; d < table->rank; d++) {
        const Node *index = graph_node(from, node->operand[d + 1]);
        if (index->op != OP_INDEX || !dim_eq(index->shape[0], table->shape[d])) {
            return false;
        }
        row *= (double)table->shape[d].n;
    }
    double bytes = row * (double)dtype_bytes(t), all = positions * (double)table->shape[0].n;
    bytes = bytes < ROW_LEAST ? ROW_LEAST : bytes;
    return positions * bytes * MOVED_BYTE + ROWS_START <
           all * (row * PRODUCT_ELEMENT + ONE_ELEMENT);
}

/* Node n of `from`, operands given by `map`, with a product in the place of a gather. */
static NodeRef remade(Lookups *r, const Graph *from, NodeRef n, const NodeRef *map)
{
    if (graph_node(from, n)->op != OP_GATHER || is_quicker_by_rows(r, from, n)) {
        return graph_clone_node(r->to, from, n, map);
    }
    NodeSpec s = graph_spec(from, n);
    NodeRef *operand = ARENA_ARRAY(&r->scratch, s.n_operands, NodeRef);
    for (uint32_t k = 0; k < s.n_operands; k++) {
        operand[k] = map[s.operand[k]];
    }
    s.operand = operand;
    for (uint32_t d = 0; d + 1 < s.n_operands; d++) {
        const Dim extent = graph_node(r->to, operand[0])->shape[d];
        int64_t by = 0;
        if (plain_label(r, &s, d) < 0 && extent.sym < 0 && s.access[d + 1].rank == 1 &&
            s.access[d + 1].index[0].label >= 0 &&
            ring_position(r->to, operand[d + 1], extent.n, &by)) {
            operand[0] = ring_turned(r->to, &r->scratch, operand[0], d, by, s.span);
            operand[d + 1] = graph_index(r->to, extent, DTYPE_I64, s.span);
        }
    }
    bool may = r->infinite[graph_node(from, n)->operand[0]];
    operand[0] = may ? bounded(r, operand[0], s.span) : operand[0];
    take_product(r, &s);
    NodeRef made = graph_add(r->to, &s);
    return may ? with_number(r, OP_MUL, with_number(r, OP_MUL, made, 2, s.span), 0.5, s.span)
               : made;
}

/* What requirements are of is looked at before a call, by kernels of their own, and stays as it is. */
Graph *opt_lookups(Ctx *ctx, Arena *arena, const Graph *g, bool rows)
{
    Arena work;
    arena_init(&work, &ctx->budget);
    Lookups r = {.to = graph_like(&work, g), .rows = rows, .infinite = find_infinite(&work, g)};
    arena_init(&r.scratch, &ctx->budget);
    bool *looked_at = ARENA_ARRAY(&work, (size_t)g->nodes.n + 1, bool);
    NodeRef *made = ARENA_ARRAY(&work, (size_t)g->nodes.n + 1, NodeRef);
    NodeRef *kept = ARENA_ARRAY(&work, (size_t)g->nodes.n + 1, NodeRef);
    for (uint32_t k = 0; k < g->required.n; k++) {
        looked_at[g->required.at[k].node] = true;
    }
    for (NodeRef n = g->nodes.n; n-- > 0;) {
        const Node *node = graph_node(g, n);
        for (uint32_t k = 0; looked_at[n] && k < node->n_operands; k++) {
            looked_at[node->operand[k]] = true;
        }
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        ArenaMark mark = arena_mark(&r.scratch);
        made[n] = remade(&r, g, n, made);
        kept[n] = looked_at[n] ? graph_clone_node(r.to, g, n, kept) : NODE_NONE;
        arena_reset(&r.scratch, mark);
    }
    graph_copy_results(r.to, g, made);
    for (uint32_t k = 0; k < g->required.n; k++) {
        r.to->required.at[k].node = kept[g->required.at[k].node];
    }
    Graph *pruned = graph_prune(arena, r.to);
    arena_release(&r.scratch);
    arena_release(&work);
    return pruned;
}
