/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for the overlay, checked without the code that made it. */
#include "fuse/fuse_parts.h"

typedef struct Verifier {
    Ctx *ctx;
    Arena *arena;
    const Partition *p;
    const Graph *g;
    const char *stage;
    UseList *uses;
    uint32_t *position; /* [nodes]: in its group */
} Verifier;

static bool refuse(Verifier *v, NodeRef n, const char *what)
{
    diag_error(&v->ctx->diags, E_DUMP, graph_node(v->g, n)->span, "%s: value %%%u %s", v->stage,
               n, what);
    return false;
}

static bool check_residence(Verifier *v, NodeRef n)
{
    const Node *node = graph_node(v->g, n);
    Residence r = v->p->residence[n];
    bool leaf = op_info(node->op)->kind == OPKIND_LEAF;
    if (r == RESIDE_NONE && v->p->group_of[n] == NODE_NONE) {
        return true; /* whoever reads it is refused below */
    }
    if (node->op == OP_INPUT ? r != RESIDE_ARGUMENT : r == RESIDE_ARGUMENT) {
        return refuse(v, n, "is a parameter and must be an argument, or is none and must not");
    }
    if (r == RESIDE_INLINE && !leaf && !node_is_expression(node)) {
        return refuse(v, n, "is folded over indices and cannot stay in registers");
    }
    if (leaf && r != RESIDE_ARGUMENT && r != RESIDE_INLINE) {
        return refuse(v, n, "is a constant and is never stored");
    }
    bool stored = residence_is_stored(r);
    if (stored != (v->p->group_of[n] != NODE_NONE)) {
        return refuse(v, n, "is stored without a group, or in a group and not stored");
    }
    int32_t k = v->p->result_of[n];
    if ((r == RESIDE_RESULT) != (k >= 0) ||
        (k >= 0 && ((uint32_t)k >= v->g->results.n || v->g->results.at[k].node != n))) {
        return refuse(v, n, "names a result that is not its own");
    }
    return true;
}

static bool check_groups(Verifier *v)
{
    uint32_t *seen = ARENA_ARRAY(v->arena, v->g->nodes.n, uint32_t);
    for (uint32_t k = 0; k < v->p->n_groups; k++) {
        const Group *group = &v->p->groups[k];
        for (uint32_t at = 0; at < group->n_nodes; at++) {
            NodeRef n = group->nodes[at];
            v->position[n] = at;
            if (seen[n]++ > 0 || v->p->group_of[n] != k) {
                return refuse(v, n, "is in two groups");
            }
            if (at > 0 && group->nodes[at - 1] >= n) {
                return refuse(v, n, "is out of order in its group");
            }
            for (uint32_t x = 0; x < group->n_axes; x++) {
                int32_t l = group->axes[x].label[at];
                if (l == -1) {
                    continue; /* computed again for each position of the axis */
                }
                if (l < 0 || (uint32_t)l >= graph_node(v->g, n)->n_labels ||
                    !dim_eq(graph_node(v->g, n)->extent[l], group->axes[x].extent)) {
                    return refuse(v, n,
                                  "lacks an axis of its group, or has it with another extent");
                }
                for (uint32_t y = 0; y < x; y++) {
                    if (group->axes[y].label[at] == l) {
                        return refuse(v, n, "has one index on two axes");
                    }
                }
            }
        }
        if (group->n_nodes == 0) {
            diag_error(&v->ctx->diags, E_DUMP, v->g->span, "%s: group %u is empty", v->stage,
                       k);
            return false;
        }
    }
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        if (residence_is_stored(v->p->residence[n]) && seen[n] == 0) {
            return refuse(v, n, "is stored and in no group");
        }
    }
    return true;
}

/* A use inside a group: axis dimensions are read with the reader's label of the axis, and are
 * not reduced yet. */
static bool check_shared(Verifier *v, NodeRef reader, const Use *use)
{
    const Group *group = &v->p->groups[v->p->group_of[reader]];
    const Node *producer = graph_node(v->g, use->node);
    uint32_t p = v->position[use->node], c = v->position[reader];
    for (uint32_t x = 0; x < group->n_axes; x++) {
        bool found = false;
        for (uint32_t d = 0; d < producer->rank; d++) {
            bool on_axis = producer->out[d] == group->axes[x].label[p];
            Index index = use->access.index[d];
            if (group->axes[x].label[p] < 0 && index.label >= 0 &&
                index.label == group->axes[x].label[c]) {
                return refuse(v, reader, "reads along an axis a value that lacks the axis");
            }
            if (on_axis && (index.label != group->axes[x].label[c] || index.offset != 0)) {
                return refuse(v, reader,
                              "reads its group's value along an axis at other indices");
            }
            found |= on_axis;
        }
        if (!found && group->axes[x].label[p] >= 0) {
            return refuse(v, reader,
                          "reads a value before its group's loops have completed it");
        }
    }
    return true;
}

static bool check_uses(Verifier *v, NodeRef n)
{
    for (uint32_t i = 0; i < v->uses[n].list.n; i++) {
        const Use *use = &v->uses[n].list.at[i];
        Residence r = v->p->residence[use->node];
        if (r == RESIDE_ARGUMENT) {
            continue;
        }
        if (!residence_is_stored(r)) {
            return refuse(v, n, "reads a value that is kept nowhere");
        }
        uint32_t from = v->p->group_of[use->node], to = v->p->group_of[n];
        if (from > to || (r == RESIDE_TILE && from != to)) {
            return refuse(v, n, "reads a value of a later group, or a block of another group");
        }
        if (from == to && !check_shared(v, n, use)) {
            return false;
        }
    }
    return true;
}

static bool check_results(Verifier *v)
{
    for (uint32_t k = 0; k < v->g->results.n; k++) {
        NodeRef n = v->g->results.at[k].node;
        int32_t param = v->g->results.at[k].param;
        Residence r = v->p->residence[n];
        if (r == RESIDE_NONE || r == RESIDE_TILE) {
            return refuse(v, n, "is a result and not kept");
        }
        if (v->p->result_of[n] == (int32_t)k && param >= 0 &&
            !fuse_in_place(v->arena, v->g, v->p->residence, v->p->group_of, v->uses, n,
                           (uint32_t)param)) {
            return refuse(v, n, "overwrites a parameter that is still read");
        }
    }
    return true;
}

static bool verify(Verifier *v)
{
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        if (!check_residence(v, n)) {
            return false;
        }
    }
    if (!check_groups(v)) {
        return false;
    }
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        if (residence_is_stored(v->p->residence[n])) {
            node_uses(v->arena, v->g, v->p->residence, n, &v->uses[n]);
        }
    }
    for (NodeRef n = 0; n < v->g->nodes.n; n++) {
        if (!check_uses(v, n)) {
            return false;
        }
    }
    return check_results(v);
}

bool fuse_verify(Ctx *ctx, const Partition *p, const char *stage)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Verifier v = {.ctx = ctx, .arena = &scratch, .p = p, .g = p->graph, .stage = stage};
    v.uses = ARENA_ARRAY(&scratch, p->graph->nodes.n, UseList);
    v.position = ARENA_ARRAY(&scratch, p->graph->nodes.n, uint32_t);
    bool ok = verify(&v);
    arena_release(&scratch);
    return ok;
}
