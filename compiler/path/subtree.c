/* SPDX-License-Identifier: Apache-2.0 */
/* Subtree re-optimisation: a node and the part of the tree below it with at most k leaves form a small network of
 * their own; if the exact search finds a cheaper tree for it, that one takes its place. Monotone. A part that did not
 * change since it was last tried is not tried again, and parts too cheap to matter are left alone. */
#include "base/bits.h"
#include "path/search.h"

#define NEGLIGIBLE 26.0 /* log2 below the whole tree's cost */

typedef struct Region {
    uint32_t root;
    uint32_t n_inner, n_leaves;
    uint32_t inner[EXACT_MOST]; /* the root first */
    uint32_t leaf[EXACT_MOST];
    double cost;    /* log2 of the sum, as in a score */
    double largest; /* log2, of inner nodes but the root */
} Region;

typedef struct Improve {
    Search *s;
    Tree *t;
    uint32_t most;
    uint32_t *touched; /* by node: when it was last rewritten */
    uint32_t *tried;   /* by node: when its region was last tried in vain */
    uint32_t clock;
    uint32_t *local;   /* by bit: label of the region + 1 */
    uint64_t *outside; /* room for one set */
    /* Under the size objective: */
    double room;  /* log2 of the largest tensor of the tree */
    double fixed; /* of its operands and result */
    bool lower;   /* less room is looked for, else fewer multiply-adds within it */
} Improve;

/* Opens the costliest leaf that is an inner node until there are `most` leaves. */
static void region_grow(const Improve *im, uint32_t root, Region *r)
{
    const Tree *t = im->t;
    r->root = root;
    r->n_inner = 1;
    r->inner[0] = root;
    r->leaf[0] = t->left[root];
    r->leaf[1] = t->right[root];
    r->n_leaves = 2;
    while (r->n_leaves < im->most) {
        uint32_t pick = UINT32_MAX;
        for (uint32_t i = 0; i < r->n_leaves; i++) {
            uint32_t x = r->leaf[i];
            if (x >= t->n && (pick == UINT32_MAX || t->cost[x] > t->cost[r->leaf[pick]])) {
                pick = i;
            }
        }
        if (pick == UINT32_MAX) {
            break;
        }
        uint32_t x = r->leaf[pick];
        r->inner[r->n_inner++] = x;
        r->leaf[pick] = t->left[x];
        r->leaf[r->n_leaves++] = t->right[x];
    }
    LogSum sum = LOGSUM_ZERO;
    r->largest = 0.0;
    for (uint32_t i = 0; i < r->n_inner; i++) {
        uint32_t x = r->inner[i];
        logsum_add(&sum, model_part(&im->s->model, t->cost[x], t->both[x]));
        if (i > 0 && t->size[r->inner[i]] > r->largest) {
            r->largest = t->size[r->inner[i]];
        }
    }
    r->cost = logsum_value(sum);
}

static bool region_known(const Improve *im, const Region *r)
{
    uint32_t when = im->tried[r->root];
    for (uint32_t i = 0; i < r->n_inner; i++) {
        if (im->touched[r->inner[i]] >= when) {
            return false;
        }
    }
    for (uint32_t i = 0; i < r->n_leaves; i++) {
        if (im->touched[r->leaf[i]] >= when) {
            return false;
        }
    }
    return when > 0;
}

static void region_net(Improve *im, const Region *r, Net *net, Arena *arena)
{
    const Tree *t = im->t;
    uint32_t total = 0;
    for (uint32_t i = 0; i < r->n_leaves; i++) {
        total += bits_count(tree_legs(t, r->leaf[i]), t->words);
    }
    uint32_t *start = ARENA_ARRAY(arena, (size_t)r->n_leaves + 1, uint32_t);
    uint32_t *label = ARENA_ARRAY(arena, total, uint32_t),
             *bit = ARENA_ARRAY(arena, total, uint32_t);
    double *weight = ARENA_ARRAY(arena, total, double);
    uint8_t *open = ARENA_ARRAY(arena, total, uint8_t);
    uint32_t at = 0, n_labels = 0;
    for (uint32_t i = 0; i < r->n_leaves; i++) {
        start[i] = at;
        for (uint32_t w = 0; w < t->words; w++) {
            for (uint64_t x = tree_legs(t, r->leaf[i])[w]; x != 0; x &= x - 1) {
                uint32_t b = w * 64 + (uint32_t)__builtin_ctzll(x);
                if (im->local[b] == 0) {
                    weight[n_labels] = t->bit_weight[b];
                    open[n_labels] = bits_has(tree_legs(t, r->root), b);
                    bit[n_labels] = b;
                    im->local[b] = ++n_labels;
                }
                label[at++] = im->local[b] - 1;
            }
        }
    }
    start[r->n_leaves] = at;
    for (uint32_t i = 0; i < n_labels; i++) {
        im->local[bit[i]] = 0;
    }
    *net = (Net){r->n_leaves, n_labels, start, label, weight, open};
}

static void node_rewrite(Improve *im, const Region *r, uint32_t x, uint32_t members)
{
    Tree *t = im->t;
    uint64_t *legs = tree_legs(t, x);
    const uint64_t *root = tree_legs(t, r->root);
    for (uint32_t w = 0; w < t->words; w++) {
        uint64_t in = 0, out = root[w];
        for (uint32_t i = 0; i < r->n_leaves; i++) {
            uint64_t leaf = tree_legs(t, r->leaf[i])[w];
            in |= (members >> i) & 1 ? leaf : 0;
            out |= (members >> i) & 1 ? 0 : leaf;
        }
        legs[w] = in & out;
    }
    tree_mark(t, x);
    t->size[x] = tree_weigh(t, legs);
}

static void region_apply(Improve *im, const Region *r, const PathStep *steps)
{
    Tree *t = im->t;
    uint32_t node[2 * EXACT_MOST], members[2 * EXACT_MOST];
    uint32_t n = r->n_leaves;
    for (uint32_t i = 0; i < n; i++) {
        node[i] = r->leaf[i];
        members[i] = (uint32_t)1 << i;
    }
    for (uint32_t k = 0; k + 1 < n; k++) {
        uint32_t x = k + 2 == n ? r->root : r->inner[k + 1];
        uint32_t a = node[steps[k].a], b = node[steps[k].b];
        node[n + k] = x;
        members[n + k] = members[steps[k].a] | members[steps[k].b];
        if (x != r->root) {
            node_rewrite(im, r, x, members[n + k]);
        }
        t->left[x] = a;
        t->right[x] = b;
        for (uint32_t w = 0; w < t->words; w++) {
            im->outside[w] = tree_legs(t, a)[w] | tree_legs(t, b)[w];
        }
        t->both[x] = tree_weigh(t, im->outside);
        t->cost[x] = model_step(&im->s->model, t->both[x], t->size[a], t->size[b], t->size[x]);
        im->touched[x] = im->clock;
    }
}

/* Proposals of the annealer that take as long as an exact search. */
static uint64_t exact_steps(uint32_t n)
{
    uint64_t splits = 1;
    for (uint32_t k = 0; k < n; k++) {
        splits *= 3;
    }
    return splits / 6;
}

static bool region_improve(Improve *im, uint32_t root, double total)
{
    Region r;
    region_grow(im, root, &r);
    im->clock++;
    if (r.n_leaves < 3 || r.cost < total - NEGLIGIBLE || region_known(im, &r)) {
        return false;
    }
    search_count(im->s, exact_steps(r.n_leaves));
    ArenaMark mark = arena_mark(im->s->arena);
    PathStep *steps = ARENA_ARRAY(im->s->arena, r.n_leaves, PathStep);
    Net net;
    region_net(im, &r, &net, im->s->arena);
    Model m = im->s->model;
    Score known = {0.0, r.cost - 1e-7, r.largest, 0.0};
    bool found;
    if (m.objective == PATH_SIZE &&
        !(im->lower && r.largest > im->fixed && r.largest > im->room - 1e-9)) {
        m.objective = PATH_FLOPS;
        m.limit = im->room < m.limit ? im->room : m.limit;
    }
    if (r.largest > m.limit + 1e-9) { /* too large: a smaller one at any cost */
        known.over = r.largest - m.limit;
        found = exact_run(&m, &net, known, im->s->arena, NULL, steps);
        m.limit = r.largest - 1e-6;
        found = found || exact_run(&m, &net, known, im->s->arena, NULL, steps);
    } else {
        found = exact_run(&m, &net, known, im->s->arena, NULL, steps);
    }
    if (found) {
        region_apply(im, &r, steps);
    } else {
        im->tried[root] = im->clock;
    }
    arena_reset(im->s->arena, mark);
    return found;
}

/* log2 of the largest tensor that no tree is without. */
static double tree_fixed(const Tree *t)
{
    double most = t->size[2 * t->n - 2];
    for (uint32_t k = 0; k < t->n; k++) {
        most = t->size[k] > most ? t->size[k] : most;
    }
    return most;
}

bool subtree_improve(Search *s, Tree *t, uint32_t leaves, uint32_t rounds)
{
    if (t->n < 3) {
        return false;
    }
    ArenaMark mark = arena_mark(s->arena);
    Improve im = {.s = s, .t = t, .most = leaves < EXACT_MOST ? leaves : EXACT_MOST};
    im.touched = ARENA_ARRAY(s->arena, (size_t)t->n * 2, uint32_t);
    im.tried = ARENA_ARRAY(s->arena, (size_t)t->n * 2, uint32_t);
    im.local = ARENA_ARRAY(s->arena, (size_t)t->words * 64, uint32_t);
    im.outside = ARENA_ARRAY(s->arena, t->words, uint64_t);
    uint32_t *order = ARENA_ARRAY(s->arena, t->n, uint32_t);
    uint32_t *stack = ARENA_ARRAY(s->arena, (size_t)t->n + 1, uint32_t);
    bool any = false, again = true;
    im.room = INFINITY;
    im.fixed = tree_fixed(t);
    for (uint32_t round = 0; round < rounds && again && !search_stopped(s); round++) {
        Score now = tree_total(t, &s->model);
        double total = now.cost;
        im.lower = now.largest < im.room - 1e-9; /* as long as it helps */
        im.room = now.largest;
        again = false;
        tree_postorder(t, order, stack);
        for (uint32_t k = t->n - 1; k-- > 0 && !search_stopped(s);) {
            again = region_improve(&im, order[k], total) || again;
        }
        any = any || again;
    }
    arena_reset(s->arena, mark);
    return any;
}
