/* SPDX-License-Identifier: Apache-2.0 */
/* The axes that a set of nodes can be looped over together. Labels of different nodes are the same axis when one node reads
 * the other with it: a union-find over (node, label). A class is an axis when it has exactly one label in
 * every node, is never read at a fixed position, and is reduced only by nodes that no node of the set reads, or whose value
 * so far others may follow. */
#include "nest/axes.h"

#include "base/union_find.h"

typedef struct Classes {
    uint32_t n;       /* of (node, label) pairs */
    uint32_t *first;  /* [n_nodes + 1]: pairs of node k are first[k] .. first[k+1]-1 */
    uint32_t *parent; /* [n] */
    bool *broken;     /* [n], at the root */
    bool *online;     /* [n], at the root: one of its nodes is reduced and read */
    bool *shifted;    /* [n], at the root: a view joins labels of it */
} Classes;

static uint32_t find(const Classes *c, uint32_t x)
{
    return union_find(c->parent, x);
}

static void unite(Classes *c, uint32_t x, uint32_t y)
{
    if (union_join(c->parent, &x, &y)) {
        c->broken[x] |= c->broken[y];
        c->shifted[x] |= c->shifted[y];
    }
}

static uint32_t position_of(uint32_t n_nodes, const NodeRef *nodes, NodeRef n)
{
    uint32_t lo = 0, hi = n_nodes;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (nodes[mid] < n) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n_nodes && nodes[lo] == n ? lo : NODE_NONE;
}

/* The label of node `k` is the class of the pair, or there is none. */
static void join_label(Classes *c, uint32_t pair, uint32_t k, int32_t label, bool shifted)
{
    if (label < 0) {
        c->broken[find(c, pair)] = true;
        return;
    }
    unite(c, pair, c->first[k] + (uint32_t)label);
    c->shifted[find(c, pair)] |= shifted;
}

/* What is added up where its reader is may be reduced with it. */
static void join_uses(Arena *scratch, Classes *c, const NestFacts *f, uint32_t n_nodes,
                      const NodeRef *nodes, bool *is_read, bool halos)
{
    const Graph *g = f->g;
    for (uint32_t k = 0; k < n_nodes; k++) {
        const UseList *u = &f->uses[nodes[k]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            const Use *use = &u->list.at[i];
            uint32_t p = position_of(n_nodes, nodes, use->node);
            if (p == NODE_NONE) {
                continue;
            }
            is_read[p] |= f->into[use->node] == NODE_NONE;
            const Node *producer = graph_node(g, use->node);
            for (uint32_t d = 0; d < producer->rank; d++) {
                uint32_t pair = c->first[p] + (uint32_t)producer->out[d];
                Index index = use->access.index[d];
                int32_t label = index.offset != 0 ? -1 : index.label;
                if (use->whole && halos) {
                    ArenaMark mark = arena_mark(scratch);
                    label = halo_label(g, graph_node(g, nodes[k]),
                                       use_position(scratch, g, u, use, d));
                    arena_reset(scratch, mark);
                }
                join_label(c, pair, k, label, use->whole);
            }
        }
    }
}

/* Is there a rule by which sums follow the node? */
static bool is_followed(const Graph *g, NodeRef n)
{
    for (uint32_t k = 0; k < g->online.n; k++) {
        if (g->online.at[k].base == n) {
            return true;
        }
    }
    return false;
}

/* What sums over the axis of a maximum that it follows, with no value between that both read. */
static void join_rules(Classes *c, const Graph *g, uint32_t n_nodes, const NodeRef *nodes)
{
    for (uint32_t i = 0; i < g->online.n; i++) {
        const Online *o = &g->online.at[i];
        uint32_t r = position_of(n_nodes, nodes, o->node),
                 y = position_of(n_nodes, nodes, o->base);
        const Node *base = graph_node(g, o->base);
        for (uint32_t l = 0; r != NODE_NONE && y != NODE_NONE && l < base->n_labels; l++) {
            if (node_reduces(base, (int32_t)l)) {
                unite(c, c->first[y] + l, c->first[r] + (uint32_t)o->t);
            }
        }
    }
}

/* Breaks classes that have two labels in one node, or that a node reduces although it is read. */
static void break_classes(Classes *c, const Graph *g, uint32_t n_nodes, const NodeRef *nodes,
                          const bool *is_read, bool online, uint32_t *members)
{
    uint32_t *last =
        members; /* [n]: 1 + last node seen in the class; reused below as a count */
    for (uint32_t k = 0; k < n_nodes; k++) {
        const Node *node = graph_node(g, nodes[k]);
        bool whole = node_is_whole(node); /* no loop makes a part of it */
        for (uint32_t l = 0; l < node->n_labels; l++) {
            uint32_t root = find(c, c->first[k] + l);
            if (last[root] == k + 1 || whole) {
                c->broken[root] = true;
            }
            last[root] = k + 1;
            if (is_read[k] && node_reduces(node, (int32_t)l)) {
                bool followed = online && is_followed(g, nodes[k]);
                c->online[root] = true;
                c->broken[root] |= !followed;
            }
        }
    }
    for (uint32_t x = 0; x < c->n; x++) {
        members[x] = 0;
    }
    for (uint32_t x = 0; x < c->n; x++) {
        members[find(c, x)]++;
    }
}

static NestAxis axis_of_class(Arena *arena, Classes *c, const Graph *g, uint32_t n_nodes,
                              const NodeRef *nodes, uint32_t root)
{
    NestAxis axis = {.n = n_nodes, .online = c->online[root]};
    int32_t *label = ARENA_ARRAY(arena, n_nodes, int32_t);
    for (uint32_t k = 0; k < n_nodes; k++) {
        const Node *node = graph_node(g, nodes[k]);
        for (uint32_t l = 0; l < node->n_labels; l++) {
            if (find(c, c->first[k] + l) == root) {
                label[k] = (int32_t)l;
                axis.extent = node->extent[l];
            }
        }
    }
    axis.node = arena_copy(arena, nodes, n_nodes * sizeof *nodes);
    axis.label = label;
    return axis;
}

uint32_t nest_common_axes(Arena *arena, const NestFacts *f, uint32_t n_nodes,
                          const NodeRef *nodes, bool online, const NestAxis **axes)
{
    const Graph *g = f->g;
    Classes c = {0};
    c.first = ARENA_ARRAY(arena, n_nodes + 1, uint32_t);
    for (uint32_t k = 0; k < n_nodes; k++) {
        c.first[k + 1] = c.first[k] + graph_node(g, nodes[k])->n_labels;
    }
    c.n = c.first[n_nodes];
    c.parent = union_new(arena, c.n);
    c.broken = ARENA_ARRAY(arena, c.n, bool);
    c.online = ARENA_ARRAY(arena, c.n, bool);
    c.shifted = ARENA_ARRAY(arena, c.n, bool);
    bool *is_read = ARENA_ARRAY(arena, n_nodes, bool);
    uint32_t *members = ARENA_ARRAY(arena, c.n, uint32_t);
    join_uses(arena, &c, f, n_nodes, nodes, is_read, online && f->halos);
    if (online) {
        join_rules(&c, g, n_nodes, nodes);
    }
    break_classes(&c, g, n_nodes, nodes, is_read, online, members);
    NestAxis *list = ARENA_ARRAY(arena, c.n, NestAxis);
    uint32_t n_axes = 0;
    /* In the order of the first node's labels, so that dumps read like the source. */
    for (uint32_t x = 0; x < c.first[n_nodes > 0 ? 1 : 0]; x++) {
        if (find(&c, x) == x && !c.broken[x] && members[x] == n_nodes) {
            list[n_axes] = axis_of_class(arena, &c, g, n_nodes, nodes, x);
            n_axes += c.shifted[x] && !halo_set(arena, f, &list[n_axes]) ? 0 : 1;
        }
    }
    *axes = list;
    return n_axes;
}
