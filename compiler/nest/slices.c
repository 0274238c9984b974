/* SPDX-License-Identifier: Apache-2.0 */
/* Sliced contractions. The order of contraction has chosen labels to be loops around the whole
 * tree, so that every step works on one slice; here the tree becomes one group whose axes are
 * those labels, outermost loop first. A step stands inside the loops up to the last of those it
 * has; one that lacks an axis further out (label -1) is computed again for each of its
 * positions. Axes are ordered so that little is. What would be computed again and is, whole, no
 * larger than the largest slice stays outside with all that leads to it, as do steps that lack
 * all axes. */
#include <string.h>

#include "nest/greedy.h"

typedef struct Slicing {
    Greedy *f;
    const Node *root;
    Slices sliced;      /* its labels, */
    uint32_t n;         /* so many */
    VEC(NodeRef) nodes; /* found so far; worked through from the front */
    int32_t **label;    /* [nodes of the graph]: per sliced label, or null */
    bool *can;          /* [nodes of the graph]: it may stand before the loops, whole */
} Slicing;

/* The labels of `use`'s producer that its reader's sliced labels fall on; -1 where it has none. */
static bool carried_labels(Slicing *s, const int32_t *reader, const Use *use, int32_t *out)
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

/* Values with sliced labels that `reader` reads. */
static void add_producers(Slicing *s, NodeRef reader)
{
    const UseList *u = &s->f->facts->uses[reader];
    int32_t *label = ARENA_ARRAY(s->f->arena, s->n, int32_t);
    for (uint32_t i = 0; i < u->list.n; i++) {
        NodeRef p = u->list.at[i].node;
        if (s->f->group_of[p] == NODE_NONE || s->label[p] != NULL ||
            !carried_labels(s, s->label[reader], &u->list.at[i], label)) {
            continue; /* a parameter, known, or a step without sliced labels */
        }
        s->label[p] = arena_copy(s->f->arena, label, s->n * sizeof *label);
        vec_push(s->f->arena, &s->nodes, p);
    }
}

/* Is every value read along the slices in one way? */
static bool slices_agree(Slicing *s)
{
    int32_t *label = ARENA_ARRAY(s->f->arena, s->n, int32_t);
    for (uint32_t k = 0; k < s->nodes.n; k++) {
        const UseList *u = &s->f->facts->uses[s->nodes.at[k]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            const int32_t *own = s->label[u->list.at[i].node];
            if (own != NULL) {
                carried_labels(s, s->label[s->nodes.at[k]], &u->list.at[i], label);
                if (memcmp(own, label, s->n * sizeof *label) != 0) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool read_by_others(Slicing *s)
{
    for (NodeRef n = 0; n < s->f->g->nodes.n; n++) {
        for (uint32_t i = 0; s->label[n] == NULL && i < s->f->facts->uses[n].list.n; i++) {
            NodeRef p = s->f->facts->uses[n].list.at[i].node;
            if (s->f->group_of[n] != NODE_NONE && s->label[p] != NULL) {
                return true;
            }
        }
    }
    return false;
}

static void remove_from_groups(Slicing *s)
{
    for (uint32_t d = 0; d < s->f->groups.n; d++) {
        Group *group = &s->f->groups.at[d];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < group->nodes.n; k++) {
            if (s->label[group->nodes.at[k]] == NULL) {
                group->nodes.at[kept++] = group->nodes.at[k];
            }
        }
        group->nodes.n = kept;
    }
}

/* ---- what can be kept whole ---- */

/* Elements of a tensor read by or made in the loops: of one slice, or whole. */
static double elements(const Slicing *s, NodeRef reader, const Use *use, bool whole)
{
    const Node *n = graph_node(s->f->g, use->node);
    double count = 1.0;
    for (uint32_t d = 0; d < n->rank; d++) {
        bool sliced = false;
        for (uint32_t k = 0; k < s->n; k++) {
            int32_t l = s->label[reader][k];
            sliced |= l >= 0 && use->access.index[d].label == l;
        }
        count *= sliced && !whole ? 1.0 : (double)nest_typical(s->f->g, n->shape[d]);
    }
    return count;
}

/* May `n` stand before the loops: it and, before it, all that leads to it, no larger than `most`? */
static bool can_stand_outside(const Slicing *s, NodeRef n, const double *whole, double most)
{
    const UseList *u = &s->f->facts->uses[n];
    bool fits = s->label[n] != NULL && graph_node(s->f->g, n) != s->root && whole[n] <= most;
    for (uint32_t i = 0; fits && i < u->list.n; i++) {
        NodeRef p = u->list.at[i].node;
        fits = s->label[p] == NULL || s->can[p];
    }
    return fits;
}

static void find_outside(Slicing *s)
{
    uint32_t n_nodes = s->f->g->nodes.n;
    double *whole = ARENA_ARRAY(s->f->arena, n_nodes, double), most = 0.0;
    s->can = ARENA_ARRAY(s->f->arena, n_nodes, bool);
    for (uint32_t i = 0; i < s->nodes.n; i++) {
        NodeRef n = s->nodes.at[i];
        for (uint32_t k = 0; k < s->f->facts->uses[n].list.n; k++) {
            const Use *use = &s->f->facts->uses[n].list.at[k];
            double slice = elements(s, n, use, false);
            most = slice > most ? slice : most;
            whole[use->node] = elements(s, n, use, true);
        }
    }
    for (NodeRef n = 0; n < n_nodes; n++) {
        s->can[n] = can_stand_outside(s, n, whole, most);
    }
}

/* ---- the order of the loops ---- */

static int64_t typical(const Slicing *s, const Node *n, int32_t l)
{
    return nest_typical(s->f->g, n->extent[l]);
}

/* Sliced labels that the node has, as bits of their numbers. */
static uint64_t axes_of(const Slicing *s, NodeRef n)
{
    uint64_t bits = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        bits |= s->label[n][k] >= 0 ? (uint64_t)1 << k : 0;
    }
    return bits;
}

/* Operations of the node in one slice. */
static double slice_work(const Slicing *s, NodeRef n)
{
    const Node *node = graph_node(s->f->g, n);
    double work = 1.0;
    for (int32_t l = 0; l < (int32_t)node->n_labels; l++) {
        bool sliced = false;
        for (uint32_t k = 0; k < s->n; k++) {
            sliced |= s->label[n][k] == l;
        }
        work *= sliced ? 1.0 : (double)typical(s, node, l);
    }
    return work;
}

static double axis_extent(const Slicing *s, uint32_t k)
{
    return (double)typical(s, s->root, s->sliced.label[k]);
}

/* Operations of all nodes for this order of loops. What can stand outside is never computed again. */
static double order_work(const Slicing *s, const uint32_t *order)
{
    double total = 0.0;
    for (uint32_t i = 0; i < s->nodes.n; i++) {
        uint64_t left = s->label[s->nodes.at[i]] == NULL ? 0 : axes_of(s, s->nodes.at[i]);
        double work = left == 0 ? 0.0 : slice_work(s, s->nodes.at[i]);
        for (uint32_t x = 0; left != 0; x++) {
            bool once = s->can[s->nodes.at[i]] && ((left >> order[x]) & 1) == 0;
            work *= once ? 1.0 : axis_extent(s, order[x]);
            left &= ~((uint64_t)1 << order[x]);
        }
        total += work;
    }
    return total;
}

static void order_move(uint32_t *order, uint32_t from, uint32_t to)
{
    uint32_t axis = order[from];
    for (; from < to; from++) {
        order[from] = order[from + 1];
    }
    for (; from > to; from--) {
        order[from] = order[from - 1];
    }
    order[to] = axis;
}

/* Axes are moved to better places, one at a time, until no move helps. */
static void choose_order(const Slicing *s, uint32_t *order)
{
    double best = order_work(s, order);
    bool better = true;
    for (uint32_t round = 0; better && round < 2 * s->n; round++) {
        better = false;
        for (uint32_t from = 0; from < s->n; from++) {
            for (uint32_t to = 0; to < s->n; to++) {
                order_move(order, from, to);
                double work = order_work(s, order);
                if (work < best * (1.0 - 1e-9)) {
                    best = work;
                    better = true;
                } else {
                    order_move(order, to, from);
                }
            }
        }
    }
}

static bool computed_again(const Slicing *s, NodeRef n, const uint32_t *order)
{
    uint64_t left = axes_of(s, n);
    for (uint32_t x = 0; left != 0; x++) {
        if (((left >> order[x]) & 1) == 0 && axis_extent(s, order[x]) > 1.0) {
            return true;
        }
        left &= ~((uint64_t)1 << order[x]);
    }
    return false;
}

/* What would be computed again and can stand outside does, and what leads to it. */
static void keep_whole(Slicing *s, const uint32_t *order)
{
    uint32_t n_nodes = s->f->g->nodes.n;
    bool *keep = ARENA_ARRAY(s->f->arena, n_nodes, bool);
    for (NodeRef n = n_nodes; n-- > 0;) {
        keep[n] = s->can[n] && (keep[n] || computed_again(s, n, order));
        for (uint32_t i = 0; keep[n] && i < s->f->facts->uses[n].list.n; i++) {
            keep[s->f->facts->uses[n].list.at[i].node] = true;
        }
    }
    for (NodeRef n = 0; n < n_nodes; n++) {
        s->label[n] = keep[n] ? NULL : s->label[n];
    }
}

static const SliceLoops *make_loops(Slicing *s, const Group *group, const uint32_t *order)
{
    SliceLoops *loops = ARENA_NEW(s->f->arena, SliceLoops);
    Dim *extent = ARENA_ARRAY(s->f->arena, s->n, Dim);
    const int32_t **label = ARENA_ARRAY(s->f->arena, s->n, const int32_t *);
    for (uint32_t x = 0; x < s->n; x++) {
        uint32_t k = order[x];
        int32_t *of = ARENA_ARRAY(s->f->arena, group->nodes.n, int32_t);
        for (uint32_t at = 0; at < group->nodes.n; at++) {
            of[at] = s->label[group->nodes.at[at]][k];
        }
        extent[x] = s->root->extent[s->sliced.label[k]];
        label[x] = of;
    }
    *loops = (SliceLoops){s->n, extent, label};
    return loops;
}

bool greedy_slices(Greedy *f, NodeRef root)
{
    Slicing s = {.f = f, .root = graph_node(f->g, root)};
    s.sliced = graph_slices(f->g, root);
    s.n = s.sliced.n;
    if (s.n > NEST_DEPTH) {
        return false;
    }
    s.label = ARENA_ARRAY(f->arena, f->g->nodes.n, int32_t *);
    s.label[root] = arena_copy(f->arena, s.sliced.label, s.n * sizeof(int32_t));
    vec_push(f->arena, &s.nodes, root);
    for (uint32_t k = 0; k < s.nodes.n; k++) {
        add_producers(&s, s.nodes.at[k]);
    }
    if (!slices_agree(&s) || read_by_others(&s)) {
        return false;
    }
    uint32_t *order = ARENA_ARRAY(f->arena, s.n, uint32_t);
    for (uint32_t k = 0; k < s.n; k++) {
        order[k] = k;
    }
    find_outside(&s);
    choose_order(&s, order);
    keep_whole(&s, order);
    remove_from_groups(&s);
    Group group = {.read_by = NODE_NONE, .read_next = NODE_NONE};
    for (NodeRef n = 0; n < f->g->nodes.n; n++) {
        if (s.label[n] != NULL) {
            vec_push(f->arena, &group.nodes, n);
            f->group_of[n] = f->groups.n;
        }
    }
    group.slices = make_loops(&s, &group, order);
    vec_push(f->arena, &f->groups, group);
    return true;
}

/* ---- items ---- */

/* Loops around node number `at`: up to the last that it has. */
static uint32_t depth_of(const SliceLoops *loops, uint32_t at)
{
    uint32_t depth = 0;
    for (uint32_t x = 0; x < loops->n; x++) {
        depth = loops->label[x][at] >= 0 ? x + 1 : depth;
    }
    return depth;
}

static NestAxis axis_of(Greedy *f, const Group *group, uint32_t x)
{
    NodeRef *node = ARENA_ARRAY(f->keep, group->nodes.n, NodeRef);
    int32_t *label = ARENA_ARRAY(f->keep, group->nodes.n, int32_t);
    NestAxis axis = {.extent = group->slices->extent[x], .node = node, .label = label};
    for (uint32_t at = 0; at < group->nodes.n; at++) {
        if (group->slices->label[x][at] >= 0) {
            node[axis.n] = group->nodes.at[at];
            label[axis.n++] = group->slices->label[x][at];
        }
    }
    return axis;
}

/* What stands further out than the innermost loop is computed before the loops inside it begin:
 * a value reads none that stands further in. */
void slices_items(Greedy *f, const Group *group, Tree *tree)
{
    for (uint32_t depth = 0; depth <= group->slices->n; depth++) {
        if (depth > 0) {
            tree_loop(f->keep, tree, depth - 1, axis_of(f, group, depth - 1), 1);
        }
        for (uint32_t at = 0; at < group->nodes.n; at++) {
            bool again = false;
            for (uint32_t x = 0; x < depth; x++) {
                again |= group->slices->label[x][at] < 0;
            }
            if (depth_of(group->slices, at) == depth) {
                tree_leaf(f->keep, tree, depth, group->nodes.at[at], again);
            }
        }
    }
}
