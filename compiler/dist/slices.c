/* SPDX-License-Identifier: Apache-2.0 */
/* Slices on ranks: labels that the order of a contraction made loops of the kernel. All steps keep them, the last one sums them, so slices
 * are independent. A leaf is some positions of each label, one of each where there are few enough; leaves are dealt as one range, so that
 * many labels of extent 2 make as many leaves as one long one. */
#include "dist/parts.h"

/* Elements of a result from which on there are fewer leaves, as a rank keeps some terms at once. */
#define LARGE        65536
#define SLICES_LARGE 64u

double slices_all(const Choice *x, uint32_t i)
{
    double all = 1;
    for (uint32_t k = 0; k < x->n; k++) {
        all *= x->group[k] > 0 && x->group[k] == x->group[i] ? x->leaves[k] : 1;
    }
    return all;
}

double slices_told_apart(const Classes *c, const Choice *x, uint32_t i, NodeRef n)
{
    double all = 1;
    for (uint32_t l = 0; l < graph_node(c->g, n)->n_labels; l++) {
        int32_t cut = choice_cut(x, class_of(c, n, (int32_t)l));
        all *= cut >= 0 && x->group[cut] == x->group[i] ? x->leaves[cut] : 1;
    }
    return all;
}

static double positions(const Graph *g, Dim d)
{
    return (double)dim_typical(&g->dims, d);
}

/* Multiply-adds of all nodes with labels of the class. */
static double work_with(const Graph *g, const Classes *c, uint32_t root)
{
    double work = 0;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        bool has = false;
        for (uint32_t l = 0; l < n->n_labels; l++) {
            has |= class_of(c, r, (int32_t)l) == root;
        }
        work += has ? typical_positions(g, n->n_labels, n->extent) : 0;
    }
    return work;
}

static bool has_root(const SliceGroup *s, uint32_t root)
{
    for (uint32_t k = 0; k < s->n; k++) {
        if (s->root[k] == root) {
            return true;
        }
    }
    return false;
}

/* Is all that is summed over some of the labels summed over all of them, and no result cut along one? */
static bool is_independent(const Graph *g, const Classes *c, const SliceGroup *s)
{
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        uint32_t summed = 0;
        for (uint32_t l = 0; l < n->n_labels; l++) {
            bool in = has_root(s, class_of(c, r, (int32_t)l));
            summed += in && node_reduces(n, (int32_t)l) ? 1 : 0;
        }
        if (summed != 0 && summed != s->n) {
            return false;
        }
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        NodeRef r = g->results.at[k].node;
        const Node *n = graph_node(g, r);
        for (uint32_t d = 0; n->out != NULL && d < n->rank; d++) {
            if (has_root(s, class_of(c, r, n->out[d]))) {
                return false;
            }
        }
    }
    return true;
}

/* The class with the most work among sliced labels that are summed and not taken yet, of more than one position; UINT32_MAX: none. */
static uint32_t next_root(const Graph *g, const Classes *c, NodeRef r, const SliceGroup *s)
{
    Slices sliced = graph_slices(g, r);
    uint32_t best = UINT32_MAX;
    double most = -1;
    for (uint32_t k = 0; k < sliced.n; k++) {
        uint32_t root = class_of(c, r, sliced.label[k]);
        if (!node_reduces(graph_node(g, r), sliced.label[k]) || c->whole[root] ||
            has_root(s, root) || positions(g, c->extent[root]) < 2) {
            continue;
        }
        double work = work_with(g, c, root);
        if (work > most) {
            most = work;
            best = root;
        }
    }
    return best;
}

static uint32_t most_leaves(const Graph *g, NodeRef r)
{
    const Node *n = graph_node(g, r);
    double elements = typical_positions(g, n->rank, n->shape);
    return elements > LARGE ? SLICES_LARGE : DIST_SLICES;
}

/* The sliced label of most positions that the result has, and nothing sums: a leaf of it owns its part of the result. UINT32_MAX: none. */
static uint32_t owned_root(const Graph *g, const Classes *c, NodeRef r)
{
    Slices sliced = graph_slices(g, r);
    uint32_t best = UINT32_MAX;
    double most = 1;
    for (uint32_t k = 0; k < sliced.n; k++) {
        uint32_t root = class_of(c, r, sliced.label[k]);
        bool summed = c->whole[root];
        for (NodeRef x = 0; x < g->nodes.n; x++) {
            const Node *n = graph_node(g, x);
            for (uint32_t l = 0; is_fold(n) && l < n->n_labels; l++) {
                summed |= node_reduces(n, (int32_t)l) && class_of(c, x, (int32_t)l) == root;
            }
        }
        if (!summed && positions(g, c->extent[root]) > most) {
            most = positions(g, c->extent[root]);
            best = root;
        }
    }
    return best;
}

/* Of one contraction: its first labels, then more of them, where that makes a few times as many leaves. */
static uint32_t add_groups(const Graph *g, const Classes *c, NodeRef r, SliceGroup *out,
                           uint32_t most)
{
    SliceGroup s = {.step = r};
    uint32_t n = 0, leaves = 1, all = most_leaves(g, r), told = 1;
    while (n < most && s.n < DIST_CUTS) {
        uint32_t root = next_root(g, c, r, &s);
        double extent = root == UINT32_MAX ? 0 : positions(g, c->extent[root]);
        uint32_t room = all / leaves;
        if (root == UINT32_MAX || room < 2) {
            break;
        }
        s.leaves[s.n] = extent < room ? (uint32_t)extent : room;
        leaves *= s.leaves[s.n];
        s.root[s.n++] = root;
        bool last = next_root(g, c, r, &s) == UINT32_MAX || all / leaves < 2;
        if ((last || leaves >= 4 * told) && is_independent(g, c, &s)) {
            out[n++] = s;
            told = leaves;
        }
    }
    return n;
}

uint32_t slices_find(const Graph *g, const Classes *c, SliceGroup *out, uint32_t most)
{
    uint32_t n = 0;
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        uint32_t owned =
            graph_slices(g, r).n > 0 && n < most ? owned_root(g, c, r) : UINT32_MAX;
        if (owned != UINT32_MAX) {
            double all = positions(g, c->extent[owned]);
            uint32_t leaves = all < DIST_SLICES ? (uint32_t)all : DIST_SLICES;
            out[n++] = (SliceGroup){.step = r, .n = 1, .root = {owned}, .leaves = {leaves}};
        }
        n += graph_slices(g, r).n > 0 ? add_groups(g, c, r, out + n, most - n) : 0;
    }
    return n;
}
