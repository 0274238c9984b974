/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy fusion in program order. Groups are numbered in the order they run, and every node
 * reads only groups of its own or a lower number; that makes any result of this file convex
 * without a check. A node joins the last group it reads from if the group keeps a common axis
 * (or is small enough to be one block) and the blocks of what becomes internal fit on chip;
 * then groups it also reads from move down into that group under the same conditions. */
#include "fuse/fuse_parts.h"

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

static bool is_leaf(const Node *n)
{
    return op_info(n->op)->kind == OPKIND_LEAF;
}

static void mark_needed(Fuser *f)
{
    const Graph *g = f->g;
    for (uint32_t k = 0; k < g->results.n; k++) {
        NodeRef n = g->results.at[k].node;
        f->needed[n] = true;
        if (!is_leaf(graph_node(g, n)) && f->result_of[n] < 0) {
            f->result_of[n] = (int32_t)k;
        }
    }
    for (NodeRef n = g->nodes.n; n-- > 0;) {
        const Node *node = graph_node(g, n);
        for (uint32_t k = 0; f->needed[n] && k < node->n_operands; k++) {
            f->needed[node->operand[k]] = true;
        }
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        Op op = graph_node(g, n)->op;
        if (f->needed[n] && is_leaf(graph_node(g, n))) {
            f->residence[n] = op == OP_INPUT ? RESIDE_ARGUMENT : RESIDE_INLINE;
        }
    }
}

static bool is_stored(const Fuser *f, NodeRef n)
{
    return residence_is_stored(f->residence[n]);
}

static void collect_uses(Fuser *f)
{
    for (NodeRef n = 0; n < f->g->nodes.n; n++) {
        if (!is_stored(f, n)) {
            continue;
        }
        node_uses(f->arena, f->g, f->residence, n, &f->uses[n]);
    }
}

/* Would `nodes` (ascending) be a legal group, with its internal values on chip? */
static bool fits(Fuser *f, uint32_t n_nodes, const NodeRef *nodes)
{
    if (n_nodes > GROUP_LIMIT) {
        return false;
    }
    for (uint32_t k = 0; k < n_nodes; k++) {
        uint32_t group = f->group_of[nodes[k]];
        if (group != NODE_NONE && f->drafts.at[group].axes != NULL) {
            return false; /* slices: nothing else runs in their loops */
        }
    }
    ArenaMark mark = arena_mark(f->arena);
    const GroupAxis *axes = NULL;
    uint32_t n_axes = fuse_common_axes(f->arena, f->g, f->uses, n_nodes, nodes, &axes);
    int64_t bytes = 0;
    bool internal_open = false;
    for (uint32_t k = 0; k + 1 < n_nodes; k++) {
        bytes = sat_add(bytes, fuse_block_bytes(f->g, nodes[k], k, n_axes, axes));
        const Node *node = graph_node(f->g, nodes[k]);
        for (uint32_t d = 0; n_axes == 0 && d < node->rank; d++) {
            internal_open |= node->shape[d].sym >= 0;
        }
    }
    int64_t capacity = f->machine->space[SPACE_TILE].capacity;
    arena_reset(f->arena, mark);
    return !internal_open && (capacity == 0 || bytes <= capacity);
}

static NodeRef *merged(Fuser *f, const Draft *a, const Draft *b, NodeRef extra, uint32_t *n)
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

static void draft_set(Fuser *f, uint32_t group, uint32_t n, const NodeRef *nodes)
{
    Draft *d = &f->drafts.at[group];
    d->nodes.n = 0;
    for (uint32_t k = 0; k < n; k++) {
        vec_push(f->arena, &d->nodes, nodes[k]);
        f->group_of[nodes[k]] = group;
    }
}

/* Lower groups that `n` reads join its group if nothing in between needs them. */
static void pull_producers(Fuser *f, NodeRef n)
{
    uint32_t group = f->group_of[n];
    const UseList *u = &f->uses[n];
    for (uint32_t i = 0; i < u->list.n; i++) {
        uint32_t from = f->group_of[u->list.at[i].node];
        if (from == NODE_NONE || from == group || f->drafts.at[from].read_by < group) {
            continue;
        }
        uint32_t n_nodes = 0;
        NodeRef *nodes =
            f->drafts.at[from].nodes.n + f->drafts.at[group].nodes.n > GROUP_LIMIT
                ? NULL
                : merged(f, &f->drafts.at[group], &f->drafts.at[from], NODE_NONE, &n_nodes);
        if (nodes != NULL && fits(f, n_nodes, nodes)) {
            f->drafts.at[from].nodes.n = 0;
            draft_set(f, group, n_nodes, nodes);
        }
    }
}

static void note_reads(Fuser *f, NodeRef n)
{
    for (uint32_t i = 0; i < f->uses[n].list.n; i++) {
        uint32_t from = f->group_of[f->uses[n].list.at[i].node];
        if (from != NODE_NONE && from != f->group_of[n] &&
            f->drafts.at[from].read_by > f->group_of[n]) {
            f->drafts.at[from].read_by = f->group_of[n];
        }
    }
}

static void place(Fuser *f, NodeRef n, bool fuse)
{
    if (graph_node(f->g, n)->n_sliced > 0 && fuse_slices(f, n)) {
        note_reads(f, n);
        return;
    }
    uint32_t last = NODE_NONE;
    for (uint32_t i = 0; i < f->uses[n].list.n; i++) {
        uint32_t from = f->group_of[f->uses[n].list.at[i].node];
        last = from != NODE_NONE && (last == NODE_NONE || from > last) ? from : last;
    }
    bool joined = false;
    if (fuse && last != NODE_NONE && f->drafts.at[last].nodes.n < GROUP_LIMIT) {
        uint32_t n_nodes = 0;
        NodeRef *nodes = merged(f, &f->drafts.at[last], NULL, n, &n_nodes);
        joined = fits(f, n_nodes, nodes);
        if (joined) {
            draft_set(f, last, n_nodes, nodes);
        }
    }
    if (!joined) {
        Draft fresh = {.read_by = NODE_NONE};
        vec_push(f->arena, &fresh.nodes, n);
        f->group_of[n] = f->drafts.n;
        vec_push(f->arena, &f->drafts, fresh);
    }
    if (fuse) {
        pull_producers(f, n);
    }
    note_reads(f, n);
}

/* ---- where values live ---- */

static void choose_residence(Fuser *f)
{
    const Graph *g = f->g;
    bool *crosses = ARENA_ARRAY(f->arena, g->nodes.n, bool);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        for (uint32_t i = 0; i < f->uses[n].list.n; i++) {
            NodeRef p = f->uses[n].list.at[i].node;
            crosses[p] |= f->group_of[p] != f->group_of[n];
        }
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (!is_stored(f, n)) {
            continue;
        }
        int32_t k = f->result_of[n];
        int32_t param = k < 0 ? -1 : g->results.at[k].param;
        if (k >= 0 && (param < 0 || fuse_in_place(f->arena, g, f->residence, f->group_of,
                                                  f->uses, n, (uint32_t)param))) {
            f->residence[n] = RESIDE_RESULT;
        } else if (k >= 0) {
            f->result_of[n] = -1;
            f->residence[n] = RESIDE_WORKSPACE;
            f->reason[n] = "the parameter it updates is still read elsewhere";
        } else if (crosses[n]) {
            f->residence[n] = RESIDE_WORKSPACE;
            f->reason[n] = "what reads it shares no loop with it, or their blocks do not fit";
        } else {
            f->residence[n] = RESIDE_TILE;
        }
    }
}

static Partition *finish(Fuser *f, Arena *arena)
{
    const Graph *g = f->g;
    Partition *p = ARENA_NEW(arena, Partition);
    Group *groups = ARENA_ARRAY(arena, f->drafts.n, Group);
    for (uint32_t d = 0; d < f->drafts.n; d++) {
        Draft *draft = &f->drafts.at[d];
        if (draft->nodes.n == 0) {
            continue;
        }
        Group *group = &groups[p->n_groups];
        group->n_nodes = draft->nodes.n;
        group->nodes = arena_copy(arena, draft->nodes.at, draft->nodes.n * sizeof(NodeRef));
        if (draft->axes != NULL) {
            group->n_axes = draft->n_axes;
            group->axes = draft->axes;
        } else {
            group->n_axes =
                fuse_common_axes(arena, g, f->uses, group->n_nodes, group->nodes, &group->axes);
        }
        for (uint32_t k = 0; k < group->n_nodes; k++) {
            f->group_of[group->nodes[k]] = p->n_groups;
        }
        p->n_groups++;
    }
    p->graph = g;
    p->groups = groups;
    p->group_of = f->group_of;
    p->residence = f->residence;
    p->reason = f->reason;
    p->result_of = f->result_of;
    return p;
}

static Partition *fuse_run(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                           bool fuse)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    uint32_t n = g->nodes.n;
    Fuser f = {.arena = &scratch, .keep = arena, .g = g, .machine = machine};
    f.needed = ARENA_ARRAY(&scratch, n, bool);
    f.residence = ARENA_ARRAY(arena, n, Residence);
    f.result_of = ARENA_ARRAY(arena, n, int32_t);
    f.reason = ARENA_ARRAY(arena, n, const char *);
    f.group_of = ARENA_ARRAY(arena, n, uint32_t);
    f.uses = ARENA_ARRAY(&scratch, n, UseList);
    for (NodeRef k = 0; k < n; k++) {
        f.result_of[k] = -1;
        f.group_of[k] = NODE_NONE;
    }
    mark_needed(&f);
    for (NodeRef k = 0; k < n; k++) {
        /* Until its residence is known, a value that is neither leaf nor expression counts as
         * stored. */
        if (f.needed[k] && f.residence[k] == RESIDE_NONE) {
            f.residence[k] = RESIDE_TILE;
        }
    }
    fuse_choose_inline(&scratch, g, f.needed, f.residence, f.result_of);
    collect_uses(&f);
    for (NodeRef k = 0; k < n; k++) {
        if (is_stored(&f, k)) {
            place(&f, k, fuse);
        }
    }
    choose_residence(&f);
    Partition *p = finish(&f, arena);
    arena_release(&scratch);
    return p;
}

Partition *fuse_greedy(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine)
{
    return fuse_run(ctx, arena, g, machine, true);
}

Partition *fuse_none(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine)
{
    return fuse_run(ctx, arena, g, machine, false);
}

void fuse_warn_spills(Ctx *ctx, const Partition *p)
{
    const Graph *g = p->graph;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (p->residence[n] != RESIDE_WORKSPACE || node->allow_spill || node->rank == 0) {
            continue;
        }
        const char *name = node->name == NULL ? "an intermediate" : node->name->text;
        Diagnostic *d =
            diag_warning(&ctx->diags, W_SPILL, node->span,
                         "%s%s%s goes to memory: %lld bytes for the typical extents",
                         node->name == NULL ? "" : "'", name, node->name == NULL ? "" : "'",
                         (long long)fuse_node_bytes(g, n));
        if (d != NULL && p->reason[n] != NULL) {
            diag_help(d, "%s%s", p->reason[n],
                      node->name == NULL ? "" : "; 'spill NAME' in the kernel allows it");
        }
    }
}
