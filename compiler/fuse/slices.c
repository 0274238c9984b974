/* SPDX-License-Identifier: Apache-2.0 */
/* Sliced contractions. The order of contraction has chosen labels to be loops around the whole tree, so that every step
 * works on one slice; here the tree becomes one group whose axes are those labels. A step that lacks one of them is computed again for
 * each of its positions (label -1), as the cost of a sliced order counts it; steps that lack all of them stay outside. */
#include <string.h>

#include "fuse/fuse_parts.h"

typedef struct Slices {
    Fuser *f;
    const Node *root;
    uint32_t n;                    /* sliced labels */
    VEC(NodeRef) nodes;            /* found so far; worked through from the front */
    int32_t **label;               /* [nodes of the graph]: per sliced label, or null */
} Slices;

/* The labels of `use`'s producer that its reader's sliced labels fall on; -1 where it has none. */
static bool carried_labels(Slices *s, const int32_t *reader, const Use *use, int32_t *out)
{
    const Node *producer = graph_node(s->f->g, use->node);
    bool any = false;
    for (uint32_t k = 0; k < s->n; k++) {
        out[k] = -1;
        for (uint32_t d = 0; d < producer->rank; d++) {
            if (reader[k] >= 0 && use->access.index[d].label == reader[k]) {
                out[k] = producer->out[d];
                any = true;
            }
        }
    }
    return any;
}

static bool add_producers(Slices *s, NodeRef reader)
{
    const UseList *u = &s->f->uses[reader];
    int32_t *label = ARENA_ARRAY(s->f->arena, s->n, int32_t);
    for (uint32_t i = 0; i < u->list.n; i++) {
        NodeRef p = u->list.at[i].node;
        if (s->f->group_of[p] == NODE_NONE ||
            !carried_labels(s, s->label[reader], &u->list.at[i], label)) {
            continue; /* a parameter, or a step without sliced labels */
        }
        if (s->label[p] == NULL) {
            s->label[p] = arena_copy(s->f->arena, label, s->n * sizeof *label);
            vec_push(s->f->arena, &s->nodes, p);
        } else if (memcmp(s->label[p], label, s->n * sizeof *label) != 0) {
            return false; /* read along the slices in two ways */
        }
    }
    return true;
}

static bool read_by_others(Slices *s)
{
    for (NodeRef n = 0; n < s->f->g->nodes.n; n++) {
        for (uint32_t i = 0; s->label[n] == NULL && i < s->f->uses[n].list.n; i++) {
            NodeRef p = s->f->uses[n].list.at[i].node;
            if (s->f->group_of[n] != NODE_NONE && s->label[p] != NULL) {
                return true;
            }
        }
    }
    return false;
}

static void remove_from_drafts(Slices *s)
{
    for (uint32_t d = 0; d < s->f->drafts.n; d++) {
        Draft *draft = &s->f->drafts.at[d];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < draft->nodes.n; k++) {
            if (s->label[draft->nodes.at[k]] == NULL) {
                draft->nodes.at[kept++] = draft->nodes.at[k];
            }
        }
        draft->nodes.n = kept;
    }
}

static const GroupAxis *make_axes(Slices *s, const Draft *draft)
{
    GroupAxis *axes = ARENA_ARRAY(s->f->keep, s->n, GroupAxis);
    for (uint32_t k = 0; k < s->n; k++) {
        int32_t *label = ARENA_ARRAY(s->f->keep, draft->nodes.n, int32_t);
        for (uint32_t at = 0; at < draft->nodes.n; at++) {
            NodeRef n = draft->nodes.at[at];
            label[at] = s->label[n][k];
            axes[k].reduced |= label[at] >= 0 && node_reduces(graph_node(s->f->g, n), label[at]);
        }
        axes[k].extent = s->root->extent[s->root->sliced[k]];
        axes[k].label = label;
    }
    return axes;
}

bool fuse_slices(Fuser *f, NodeRef root)
{
    Slices s = {.f = f, .root = graph_node(f->g, root)};
    s.n = s.root->n_sliced;
    s.label = ARENA_ARRAY(f->arena, f->g->nodes.n, int32_t *);
    s.label[root] = arena_copy(f->arena, s.root->sliced, s.n * sizeof(int32_t));
    vec_push(f->arena, &s.nodes, root);
    for (uint32_t k = 0; k < s.nodes.n; k++) {
        if (!add_producers(&s, s.nodes.at[k])) {
            return false;
        }
    }
    if (read_by_others(&s)) {
        return false;
    }
    remove_from_drafts(&s);
    Draft draft = {.read_by = NODE_NONE, .n_axes = s.n};
    for (NodeRef n = 0; n < f->g->nodes.n; n++) {
        if (s.label[n] != NULL) {
            vec_push(f->arena, &draft.nodes, n);
            f->group_of[n] = f->drafts.n;
        }
    }
    draft.axes = make_axes(&s, &draft);
    vec_push(f->arena, &f->drafts, draft);
    return true;
}
