/* SPDX-License-Identifier: Apache-2.0 */
/* Why a value is in memory, from the tree as it is. A loop around writer and reader is a loop around all values on the ways from
 * one to the other, and needs one label in each of them. So every dimension of the value is traced along these ways; where it
 * ends, or becomes two labels, is why it is no such loop (axes.c finds the same loops from the other side, without the places). */
#include "driver/report/trace.h"

#include <string.h>

#include "dump/text.h"
#include "nest/facts.h"

/* Values on the ways; more are only counted. */
#define WAYS_LIMIT 512

typedef struct Trace {
    Arena *arena;
    const NestFacts *f;
    NodeRef from;
    bool *in;        /* [nodes]: on the ways */
    bool *is_read;   /* [nodes]: by another one there */
    uint8_t **label; /* [nodes]: [rank of from][labels]: does it run with the dimension? */
    NestBarrier *dim;
} Trace;

static void set_barrier(Trace *t, uint32_t d, BarrierKind kind, NodeRef at, NodeRef via)
{
    if (t->dim[d].kind == BARRIER_NONE) {
        t->dim[d] = (NestBarrier){kind, at, via};
    }
}

/* The labels of `x` that go with the dimensions, by its reading of `use->node`. */
static void follow(Trace *t, NodeRef x, const Use *use)
{
    const Graph *g = t->f->g;
    const Node *node = graph_node(g, x), *p = graph_node(g, use->node);
    uint32_t rank = graph_node(g, t->from)->rank;
    for (uint32_t e = 0; e < p->rank; e++) {
        Index index = use->access.index[e];
        for (uint32_t d = 0; d < rank; d++) {
            if (!t->label[use->node][d * p->n_labels + (uint32_t)p->out[e]]) {
                continue;
            }
            if (index.label < 0 || index.offset != 0) {
                bool dense = op_info(node->op)->kind == OPKIND_DENSE;
                set_barrier(t, d, dense ? BARRIER_MATRIX : BARRIER_POSITION, x, use->node);
                continue;
            }
            t->label[x][d * node->n_labels + (uint32_t)index.label] = 1;
            for (uint32_t e2 = 0; e2 < p->rank; e2++) {
                if (e2 != e && use->access.index[e2].label == index.label) {
                    set_barrier(t, d, BARRIER_DIAGONAL, x, use->node);
                }
            }
        }
    }
}

/* What the labels of `x` say of the dimensions. */
static void look(Trace *t, NodeRef x)
{
    const Node *node = graph_node(t->f->g, x);
    uint32_t rank = graph_node(t->f->g, t->from)->rank, n = node->n_labels;
    const uint8_t *label = t->label[x];
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t count = 0;
        for (uint32_t l = 0; l < n; l++) {
            count += label[d * n + l];
            if (label[d * n + l] && t->is_read[x] && node_reduces(node, (int32_t)l)) {
                set_barrier(t, d, BARRIER_FOLD, x, x);
            }
            for (uint32_t e = 0; e < rank && label[d * n + l]; e++) {
                if (e != d && label[e * n + l]) {
                    set_barrier(t, d, BARRIER_ORDERS, x, x);
                }
            }
        }
        if (count > 1) {
            set_barrier(t, d, BARRIER_ORDERS, x, x);
        }
    }
}

bool nest_ways(Arena *arena, const NestFacts *f, NodeRef from, uint32_t n_to, const NodeRef *to,
               bool *in, uint32_t *count)
{
    uint32_t n = f->g->nodes.n;
    bool *reach = ARENA_ARRAY(arena, n, bool);
    NodeRef last = from;
    *count = 0;
    reach[from] = true;
    memset(in, 0, n * sizeof *in);
    for (uint32_t k = 0; k < n_to; k++) {
        in[to[k]] = true;
        last = to[k] > last ? to[k] : last;
    }
    for (NodeRef x = from + 1; x <= last; x++) {
        for (uint32_t i = 0; i < f->uses[x].list.n && !reach[x]; i++) {
            reach[x] = reach[f->uses[x].list.at[i].node];
        }
    }
    for (NodeRef x = last + 1; x-- > from;) {
        in[x] = in[x] && reach[x];
        *count += in[x];
        for (uint32_t i = 0; i < f->uses[x].list.n && in[x]; i++) {
            in[f->uses[x].list.at[i].node] = true;
        }
    }
    for (NodeRef x = 0; x < from; x++) {
        in[x] = false;
    }
    return *count <= WAYS_LIMIT;
}

bool nest_trace(Arena *arena, const NestFacts *f, NodeRef from, uint32_t n_to,
                const NodeRef *to, NestBarrier *dim)
{
    const Graph *g = f->g;
    uint32_t n = g->nodes.n, rank = graph_node(g, from)->rank, count = 0;
    Trace t = {arena,
               f,
               from,
               ARENA_ARRAY(arena, n, bool),
               ARENA_ARRAY(arena, n, bool),
               ARENA_ARRAY(arena, n, uint8_t *),
               dim};
    memset(dim, 0, rank * sizeof *dim);
    if (!nest_ways(arena, f, from, n_to, to, t.in, &count)) {
        return false;
    }
    for (NodeRef x = from; x < n; x++) {
        for (uint32_t i = 0; i < f->uses[x].list.n && t.in[x]; i++) {
            t.is_read[f->uses[x].list.at[i].node] = true;
        }
    }
    for (NodeRef x = from; x < n; x++) {
        const Node *node = graph_node(g, x);
        if (!t.in[x]) {
            continue;
        }
        t.label[x] = ARENA_ARRAY(arena, (size_t)rank * node->n_labels + 1, uint8_t);
        for (uint32_t d = 0; x == from && d < rank; d++) {
            t.label[x][d * node->n_labels + (uint32_t)node->out[d]] = 1;
        }
        for (uint32_t i = 0; i < f->uses[x].list.n; i++) {
            if (t.in[f->uses[x].list.at[i].node] && x != from) {
                follow(&t, x, &f->uses[x].list.at[i]);
            }
        }
        look(&t, x);
    }
    return true;
}
