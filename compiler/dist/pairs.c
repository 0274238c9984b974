/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over two labels that are as they are when the two are exchanged, as the energies of pairs of orbitals: which classes may be dealt as
 * pairs of leaves. */
#include "dist/parts.h"
#include "opt/opt.h"

/* A sum over pairs keeps a result for each of thousands of pairs. */
#define RESULT_BYTES 1024

/* The label of class `root` among those of node r, -1: none, -2: several. */
static int32_t label_of(const Classes *c, NodeRef r, uint32_t root)
{
    int32_t found = -1;
    for (uint32_t l = 0; l < graph_node(c->g, r)->n_labels; l++) {
        if (class_of(c, r, (int32_t)l) == root) {
            found = found == -1 ? (int32_t)l : -2;
        }
    }
    return found;
}

/* Does some exchange of the labels that node n adds up over put x and y in each other's place, and leave its terms as they are? */
static bool exchanges(const Node *n, int32_t x, int32_t y)
{
    for (uint32_t k = 0; k < n->n_exchanges; k++) {
        const Generator *e = &n->exchange[k];
        if (e->sign == 1 && e->to[x] == (uint32_t)y && e->to[y] == (uint32_t)x) {
            return true;
        }
    }
    return false;
}

static bool is_small(const Classes *c, const Node *n)
{
    return node_bytes(c->g, n) <= RESULT_BYTES;
}

static bool is_sum(const Node *n)
{
    return op_info(n->op)->kind == OPKIND_CONTRACT ? n->dtype != DTYPE_BOOL : n->op == OP_SUM;
}

/* May node r have labels of both classes, or of one? */
static bool allows(const Classes *c, NodeRef r, uint32_t a, uint32_t b, bool *sums)
{
    const Node *n = graph_node(c->g, r);
    int32_t x = label_of(c, r, a), y = label_of(c, r, b);
    if (x == -1 && y == -1) {
        return true;
    }
    bool folds =
        is_fold(n) && ((x >= 0 && node_reduces(n, x)) || (y >= 0 && node_reduces(n, y)));
    if (x == -2 || y == -2 || op_info(n->op)->kind == OPKIND_JOIN) {
        return false;
    }
    if (folds) {
        *sums = true;
        return x >= 0 && y >= 0 && node_reduces(n, x) && node_reduces(n, y) && is_sum(n) &&
               is_small(c, n) && exchanges(n, x, y);
    }
    for (uint32_t k = 0; k < c->g->results.n; k++) {
        if (c->g->results.at[k].node == r) {
            return false;
        }
    }
    return true;
}

static bool is_pair(const Classes *c, uint32_t a, uint32_t b)
{
    bool sums = false;
    for (NodeRef r = 0; r < c->g->nodes.n; r++) {
        if (!allows(c, r, a, b, &sums)) {
            return false;
        }
    }
    return sums;
}

static void add_exchange(const Classes *c, NodeRef r, const Generator *e, PairOfClasses *out,
                         uint32_t *n, uint32_t most)
{
    for (uint32_t l = 0; l < graph_node(c->g, r)->n_labels; l++) {
        PairOfClasses p = {class_of(c, r, (int32_t)l), class_of(c, r, (int32_t)e->to[l])};
        bool known = p.a == p.b || e->to[l] < l || c->whole[p.a] || c->whole[p.b] ||
                     !dim_eq(c->extent[p.a], c->extent[p.b]);
        for (uint32_t k = 0; k < *n; k++) {
            known = known || (out[k].a == p.a && out[k].b == p.b);
        }
        if (!known && *n < most && is_pair(c, p.a, p.b)) {
            out[(*n)++] = p;
        }
    }
}

uint32_t pairs_find(Ctx *ctx, Graph *g, const Classes *c, PairOfClasses *out, uint32_t most)
{
    uint32_t n = 0;
    opt_symmetry(ctx, g, true);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *node = graph_node(g, r);
        for (uint32_t k = 0; k < node->n_exchanges; k++) {
            add_exchange(c, r, &node->exchange[k], out, &n, most);
        }
    }
    opt_symmetry(ctx, g, false); /* later passes look for themselves */
    return n;
}
