/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy fusion in program order, and no fusion. Groups are numbered in the order they run, and
 * every node reads only groups of its own or a lower number; that makes any result of this file
 * convex without a check. A node joins the last group it reads from if the group keeps a common
 * axis (or is small enough to be one block) and the blocks of what becomes internal fit on
 * chip; then groups it also reads from move down into that group under the same conditions. A
 * group becomes loops over all its common axes, tiles.c says by how much. It prices nothing:
 * the search begins here. */
#include "nest/greedy.h"

#include "nest/axes.h"
#include "nest/leaves.h"
#include "nest/place.h"

static bool is_sliced(const Greedy *f, uint32_t group)
{
    return f->groups.at[group].slices != NULL;
}

/* Bytes of the node's block when each axis is cut to a tile of 1. */
static int64_t least_bytes(const Graph *g, NodeRef n, uint32_t n_axes, const NestAxis *axes)
{
    const Node *node = graph_node(g, n);
    int64_t bytes = dtype_bytes(node->acc);
    for (uint32_t d = 0; d < node->rank; d++) {
        bool cut = false;
        for (uint32_t x = 0; x < n_axes; x++) {
            cut |= nest_axis_label(&axes[x], n) == node->out[d];
        }
        if (!cut) {
            bytes = sat_mul(bytes, nest_typical(g, node->shape[d]));
        }
    }
    return bytes;
}

/* Would `nodes` (ascending) be a legal group, with its internal values on chip? */
static bool fits(Greedy *f, uint32_t n_nodes, const NodeRef *nodes)
{
    if (n_nodes > GROUP_LIMIT) {
        return false;
    }
    for (uint32_t k = 0; k < n_nodes; k++) {
        uint32_t group = f->group_of[nodes[k]];
        if (group != NODE_NONE && is_sliced(f, group)) {
            return false; /* nothing else runs in the loops of slices */
        }
    }
    ArenaMark mark = arena_mark(f->arena);
    const NestAxis *axes = NULL;
    uint32_t n_axes = nest_common_axes(f->arena, f->facts, n_nodes, nodes, false, &axes);
    int64_t *bytes = ARENA_ARRAY(f->arena, n_nodes, int64_t);
    int64_t *more = ARENA_ARRAY(f->arena, n_nodes, int64_t);
    bool internal_open = false;
    for (uint32_t k = 0; k + 1 < n_nodes; k++) {
        bytes[k] = least_bytes(f->g, nodes[k], n_axes, axes);
        internal_open |= n_axes == 0 && node_is_open(graph_node(f->g, nodes[k]));
    }
    int64_t capacity = machine_tile_capacity(f->machine);
    bool small = capacity == 0 || greedy_peak(f, n_nodes, nodes, bytes, more) <= capacity;
    arena_reset(f->arena, mark);
    return !internal_open && small;
}

static NodeRef *merged(Greedy *f, const Group *a, const Group *b, NodeRef extra, uint32_t *n)
{
    uint32_t n_a = a->nodes.n, n_b = b == NULL ? 0 : b->nodes.n;
    NodeRef *nodes = ARENA_ARRAY(f->arena, (size_t)n_a + n_b + 1, NodeRef);
    uint32_t i = 0, j = 0;
    *n = 0;
    while (i < n_a || j < n_b) {
        bool from_a = j >= n_b || (i < n_a && a->nodes.at[i] < b->nodes.at[j]);
        nodes[(*n)++] = from_a ? a->nodes.at[i++] : b->nodes.at[j++];
    }
    if (extra != NODE_NONE) {
        nodes[(*n)++] = extra; /* larger than all */
    }
    return nodes;
}

static void group_set(Greedy *f, uint32_t group, uint32_t n, const NodeRef *nodes)
{
    Group *d = &f->groups.at[group];
    d->nodes.n = 0;
    for (uint32_t k = 0; k < n; k++) {
        vec_push(f->arena, &d->nodes, nodes[k]);
        f->group_of[nodes[k]] = group;
    }
}

static void add_reader(Group *group, uint32_t reader)
{
    if (reader < group->read_by) {
        group->read_next = group->read_by;
        group->read_by = reader;
    } else if (reader != group->read_by && reader < group->read_next) {
        group->read_next = reader;
    }
}

/* Readers of `from`, which joins `group`, read that now. */
static void add_readers(Greedy *f, uint32_t group, const Group *from)
{
    bool own = from->read_by == group;
    add_reader(&f->groups.at[group], own ? from->read_next : from->read_by);
    add_reader(&f->groups.at[group], from->read_next);
}

/* Lower groups that `n` reads join its group if nothing in between needs them. */
static void pull_producers(Greedy *f, NodeRef n)
{
    uint32_t group = f->group_of[n];
    const UseList *u = &f->facts->uses[n];
    for (uint32_t i = 0; i < u->list.n; i++) {
        uint32_t from = f->group_of[u->list.at[i].node];
        if (from == NODE_NONE || from == group || f->groups.at[from].read_by < group) {
            continue;
        }
        uint32_t n_nodes = 0;
        NodeRef *nodes =
            f->groups.at[from].nodes.n + f->groups.at[group].nodes.n > GROUP_LIMIT
                ? NULL
                : merged(f, &f->groups.at[group], &f->groups.at[from], NODE_NONE, &n_nodes);
        if (nodes != NULL && fits(f, n_nodes, nodes)) {
            f->groups.at[from].nodes.n = 0;
            add_readers(f, group, &f->groups.at[from]);
            group_set(f, group, n_nodes, nodes);
        }
    }
}

static void note_reads(Greedy *f, NodeRef n)
{
    const UseList *u = &f->facts->uses[n];
    for (uint32_t i = 0; i < u->list.n; i++) {
        uint32_t from = f->group_of[u->list.at[i].node];
        if (from != NODE_NONE && from != f->group_of[n]) {
            add_reader(&f->groups.at[from], f->group_of[n]);
        }
    }
}

static void place(Greedy *f, NodeRef n, bool fuse)
{
    if (graph_slices(f->g, n).n > 0 && greedy_slices(f, n)) {
        const Group *slices = &f->groups.at[f->groups.n - 1];
        for (uint32_t k = 0; k < slices->nodes.n; k++) {
            note_reads(f, slices->nodes.at[k]);
        }
        return;
    }
    const UseList *u = &f->facts->uses[n];
    uint32_t last = NODE_NONE;
    for (uint32_t i = 0; i < u->list.n; i++) {
        uint32_t from = f->group_of[u->list.at[i].node];
        last = from != NODE_NONE && (last == NODE_NONE || from > last) ? from : last;
    }
    bool joined = false;
    if (fuse && last != NODE_NONE && f->groups.at[last].nodes.n < GROUP_LIMIT) {
        uint32_t n_nodes = 0;
        NodeRef *nodes = merged(f, &f->groups.at[last], NULL, n, &n_nodes);
        joined = fits(f, n_nodes, nodes);
        if (joined) {
            group_set(f, last, n_nodes, nodes);
        }
    }
    if (!joined) {
        Group fresh = {.read_by = NODE_NONE, .read_next = NODE_NONE};
        vec_push(f->arena, &fresh.nodes, n);
        f->group_of[n] = f->groups.n;
        vec_push(f->arena, &f->groups, fresh);
    }
    if (fuse) {
        pull_producers(f, n);
    }
    note_reads(f, n);
}

/* ---- from groups to items ---- */

/* The group's loops, then its nodes in them. */
static void group_items(Greedy *f, const Group *group, Tree *tree)
{
    const NestAxis *axes = NULL;
    uint32_t n_axes = 0, n_loops = 0;
    if (group->nodes.n > 1) {
        n_axes =
            nest_common_axes(f->keep, f->facts, group->nodes.n, group->nodes.at, false, &axes);
    }
    int64_t *tile = ARENA_ARRAY(f->arena, n_axes, int64_t);
    greedy_tiles(f, group, n_axes, axes, tile);
    /* Folded axes innermost, so that outer loops write disjoint places. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t x = 0; x < n_axes; x++) {
            Dim extent = axes[x].extent;
            bool whole = tile[x] == INT64_MAX || (extent.sym < 0 && tile[x] >= extent.n);
            if (nest_axis_is_folded(f->g, &axes[x]) == (pass == 1) && !whole &&
                n_loops < NEST_DEPTH) {
                tree_loop(f->keep, tree, n_loops, axes[x], tile[x]);
                n_loops++;
            }
        }
    }
    for (uint32_t k = 0; k < group->nodes.n; k++) {
        tree_leaf(f->keep, tree, n_loops, group->nodes.at[k], false);
    }
}

void greedy_tree(Ctx *ctx, Arena *arena, const NestFacts *facts, const Machine *machine,
                 bool fuse, Tree *tree)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    uint32_t n = facts->g->nodes.n;
    Greedy f = {
        .arena = &scratch, .keep = arena, .facts = facts, .g = facts->g, .machine = machine};
    f.group_of = ARENA_ARRAY(&scratch, n, uint32_t);
    for (NodeRef k = 0; k < n; k++) {
        f.group_of[k] = NODE_NONE;
    }
    for (uint32_t k = 0; k < facts->n_stored; k++) {
        place(&f, facts->stored[k], fuse);
    }
    for (uint32_t k = 0; k < f.groups.n; k++) {
        const Group *group = &f.groups.at[k];
        if (group->slices != NULL) {
            slices_items(&f, group, tree);
        } else if (group->nodes.n > 0) {
            group_items(&f, group, tree);
        }
    }
    arena_release(&scratch);
}
