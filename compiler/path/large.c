/* SPDX-License-Identifier: Apache-2.0 */
/* Networks too large for bitsets over all labels: the tree is improved piece by piece. A piece is a node with the part
 * of the tree below it, opened at the costliest leaf until it has so many leaves; it is a network of its own with
 * fewer labels, annealed and re-optimised like any other, and put back. Pieces go from the root down to where nothing costs
 * enough to show in the whole; the next pass with other sizes moves the seams. Time and memory stay near linear. */
#include "path/search.h"

#define LEGS_MOST   60000000u
#define LEVELS      50
#define PASSES_MOST 16
#define NEGLIGIBLE  20.0 /* log2 below the whole tree's cost */

typedef struct Large {
    Search *s;
    const Net *net;
    uint32_t *left, *right; /* by node, as in Tree */
    uint32_t **legs;        /* by node */
    uint32_t *n_legs;
    double *cost;      /* by node */
    double *below;     /* by node: the costliest at or below it */
    double total;      /* log2 of the sum of all */
    uint32_t n_matter; /* nodes with costs at or below them that matter */
    uint32_t *local;   /* by label: number in the piece + 1 */
    uint64_t budget;   /* proposals of a pass */
    uint64_t end;      /* steps done after which no piece is begun */
    double hot;
    uint32_t piece; /* leaves of one */
} Large;

/* Whether better trees below a node could show in the whole. */
static bool matters(const Large *g, uint32_t x)
{
    return g->below[x] > g->total - NEGLIGIBLE;
}

/* Legs and costs of all nodes; false when that is too much to hold. */
static bool large_lists(Large *g, Arena *arena)
{
    uint32_t n = g->net->n, *order = ARENA_ARRAY(arena, n, uint32_t);
    Tree shape = {.n = n, .left = g->left, .right = g->right};
    tree_postorder(&shape, order, ARENA_ARRAY(arena, (size_t)n + 1, uint32_t));
    Live v;
    live_init(&v, g->net, arena);
    uint32_t *number = ARENA_ARRAY(arena, (size_t)n * 2, uint32_t); /* node to live tensor */
    uint64_t held = 0;
    for (uint32_t k = 0; k < n; k++) {
        number[k] = k;
        g->n_legs[k] = net_degree(g->net, k);
        g->below[k] = -INFINITY;
        g->legs[k] =
            arena_copy(arena, net_legs(g->net, k), (size_t)g->n_legs[k] * sizeof(uint32_t));
    }
    for (uint32_t k = 0; k + 1 < n; k++) {
        uint32_t x = order[k], a = number[g->left[x]], b = number[g->right[x]];
        double result, size_a = v.size[a], size_b = v.size[b];
        double both = live_sizes(&v, a, b, &result);
        uint32_t made = live_merge(&v, a, b);
        number[x] = made;
        g->cost[x] = model_step(&g->s->model, both, size_a, size_b, result);
        g->n_legs[x] = v.n_legs[made];
        held += v.n_legs[made];
        if (held > LEGS_MOST) {
            return false;
        }
        g->legs[x] = arena_copy(arena, v.legs[made], (size_t)v.n_legs[made] * sizeof(uint32_t));
    }
    LogSum sum = LOGSUM_ZERO;
    for (uint32_t k = 0; k + 1 < n; k++) {
        uint32_t x = order[k];
        double a = g->below[g->left[x]], b = g->below[g->right[x]], most = a > b ? a : b;
        g->below[x] = most > g->cost[x] ? most : g->cost[x];
        logsum_add(&sum, g->cost[x]);
    }
    g->total = logsum_value(sum);
    g->n_matter = 0;
    for (uint32_t k = 0; k + 1 < n; k++) {
        g->n_matter += matters(g, order[k]);
    }
    return true;
}

/* Opens the costliest leaf until there are `most`; returns the number of leaves. inner[0] is the root. */
static uint32_t piece_grow(const Large *g, uint32_t root, uint32_t most, uint32_t *leaf,
                           uint32_t *inner)
{
    uint32_t n = 2, n_inner = 1;
    inner[0] = root;
    leaf[0] = g->left[root];
    leaf[1] = g->right[root];
    while (n < most) {
        uint32_t pick = UINT32_MAX;
        for (uint32_t i = 0; i < n; i++) {
            if (leaf[i] >= g->net->n &&
                (pick == UINT32_MAX || g->cost[leaf[i]] > g->cost[leaf[pick]])) {
                pick = i;
            }
        }
        if (pick == UINT32_MAX) {
            break;
        }
        uint32_t x = leaf[pick];
        inner[n_inner++] = x;
        leaf[pick] = g->left[x];
        leaf[n++] = g->right[x];
    }
    return n;
}

static Net piece_net(Large *g, uint32_t root, const uint32_t *leaf, uint32_t n, Arena *arena)
{
    uint32_t total = 0, at = 0, n_labels = 0;
    for (uint32_t i = 0; i < n; i++) {
        total += g->n_legs[leaf[i]];
    }
    uint32_t *start = ARENA_ARRAY(arena, (size_t)n + 1, uint32_t),
             *label = ARENA_ARRAY(arena, total, uint32_t);
    uint32_t *name = ARENA_ARRAY(arena, total, uint32_t);
    double *weight = ARENA_ARRAY(arena, total, double);
    uint8_t *open = ARENA_ARRAY(arena, total, uint8_t);
    for (uint32_t i = 0; i < n; i++) {
        start[i] = at;
        for (uint32_t k = 0; k < g->n_legs[leaf[i]]; k++) {
            uint32_t l = g->legs[leaf[i]][k];
            if (g->local[l] == 0) {
                weight[n_labels] = g->net->weight[l];
                name[n_labels] = l;
                g->local[l] = ++n_labels;
            }
            label[at++] = g->local[l] - 1;
        }
    }
    start[n] = at;
    for (uint32_t k = 0; k < g->n_legs[root]; k++) {
        open[g->local[g->legs[root][k]] - 1] = 1;
    }
    for (uint32_t i = 0; i < n_labels; i++) {
        g->local[name[i]] = 0;
    }
    return (Net){n, n_labels, start, label, weight, open};
}

/* The piece's own tree as steps over its leaves: inner nodes children first. */
static void piece_steps(const Large *g, const uint32_t *leaf, uint32_t n, const uint32_t *inner,
                        uint32_t *number, PathStep *out)
{
    for (uint32_t i = 0; i < n; i++) {
        number[leaf[i]] = i;
    }
    for (uint32_t k = n - 1; k-- > 0;) { /* opened later means lower */
        uint32_t x = inner[k], at = n - 2 - k;
        out[at] = (PathStep){number[g->left[x]], number[g->right[x]]};
        number[x] = n + at;
    }
}

static void piece_improve(Large *g, uint32_t root, uint32_t *leaf, uint32_t n,
                          const uint32_t *inner, uint32_t *number)
{
    Search *s = g->s;
    ArenaMark mark = arena_mark(s->arena);
    Net net = piece_net(g, root, leaf, n, s->arena);
    PathStep *steps = ARENA_ARRAY(s->arena, n, PathStep);
    piece_steps(g, leaf, n, inner, number, steps);
    Tree t;
    tree_init(&t, &net, s->arena);
    tree_set(&t, &s->model, steps, s->arena);
    uint32_t matter = g->n_matter > g->piece ? g->n_matter : g->piece;
    uint64_t each = g->budget / matter / LEVELS;
    uint32_t sweeps = (uint32_t)(each * ANNEAL_WIDE / (ANNEAL_WIDE + t.words)) + 1;
    anneal_run(s, &t, (Schedule){g->hot, 0.02, 1000.0, LEVELS, sweeps});
    subtree_improve(s, &t, 8, 4);
    tree_get(&t, steps, s->arena);
    for (uint32_t k = 0; k + 1 < n; k++) {
        uint32_t x = inner[n - 2 - k], a = steps[k].a, b = steps[k].b;
        g->left[x] = a < n ? leaf[a] : inner[n - 2 - (a - n)];
        g->right[x] = b < n ? leaf[b] : inner[n - 2 - (b - n)];
    }
    arena_reset(s->arena, mark);
}

static void large_pass(Large *g, uint32_t most)
{
    Arena *arena = g->s->arena;
    ArenaMark mark = arena_mark(arena);
    uint32_t n = g->net->n, depth = 0;
    g->piece = most;
    uint32_t *stack = ARENA_ARRAY(arena, n, uint32_t),
             *number = ARENA_ARRAY(arena, (size_t)n * 2, uint32_t);
    uint32_t *leaf = ARENA_ARRAY(arena, (size_t)most + 1, uint32_t),
             *inner = ARENA_ARRAY(arena, (size_t)most + 1, uint32_t);
    bool fits = large_lists(g, arena);
    stack[depth++] = 2 * n - 2;
    while (fits && depth > 0 && g->s->done < g->end && !search_stopped(g->s)) {
        uint32_t root = stack[--depth];
        uint32_t m = piece_grow(g, root, most, leaf, inner);
        if (m > 2) {
            piece_improve(g, root, leaf, m, inner, number);
        }
        for (uint32_t i = 0; i < m; i++) {
            if (leaf[i] >= n && matters(g, leaf[i])) {
                stack[depth++] = leaf[i];
            }
        }
    }
    arena_reset(arena, mark);
}

void large_improve(Search *s, const Net *net, PathStep *steps, uint64_t budget, uint32_t piece)
{
    ArenaMark mark = arena_mark(s->arena);
    size_t nodes = (size_t)net->n * 2;
    Large g = {.s = s, .net = net};
    g.left = ARENA_ARRAY(s->arena, nodes, uint32_t);
    g.right = ARENA_ARRAY(s->arena, nodes, uint32_t);
    g.legs = ARENA_ARRAY(s->arena, nodes, uint32_t *);
    g.n_legs = ARENA_ARRAY(s->arena, nodes, uint32_t);
    g.cost = ARENA_ARRAY(s->arena, nodes, double);
    g.local = ARENA_ARRAY(s->arena, net->n_labels, uint32_t);
    g.below = ARENA_ARRAY(s->arena, nodes, double);
    g.end = s->done + budget;
    for (uint32_t k = 0; k + 1 < net->n; k++) {
        g.left[net->n + k] = steps[k].a;
        g.right[net->n + k] = steps[k].b;
    }
    for (uint32_t pass = 0; pass < PASSES_MOST && s->done < g.end && !search_stopped(s);
         pass++) {
        uint64_t left = (g.end - s->done) * 2 / 3;
        g.budget = left > budget / 8 ? left : budget / 8;
        g.hot = pass == 0 ? 4.0 : pass % 2 == 0 ? 1.0 : 0.3;
        large_pass(&g, pass % 2 == 0 ? piece : piece / 3 * 2);
    }
    Tree shape = {.n = net->n, .left = g.left, .right = g.right};
    tree_get(&shape, steps, s->arena);
    arena_reset(s->arena, mark);
}
