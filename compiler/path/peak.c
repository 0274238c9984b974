/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a tree's steps with the least peak memory, over all orders. A step is a job that first adds its result
 * and then takes its operands away; jobs under a node must come before it. Runs of jobs that belong together are
 * strings with a hill (highest level inside, from its start) and a drop (net change); strings that end lower than they
 * begin come first, small hills first, the others last, large hill - drop first. Two strings of a chain in the wrong
 * order become one. Merging children and appending the node's job this way is optimal for trees (Monma and Sidney's
 * series-parallel sequencing for the maximum cumulative cost). Each subtree's strings are a leftist heap, last string
 * on top: O(n log n). */
#include <string.h>

#include "path/search.h"

typedef struct String {
    double hill, drop;
    uint32_t first, last; /* jobs, linked */
    uint32_t left, right; /* heap; NONE */
    uint32_t rank;
} String;

#define NONE UINT32_MAX

/* Does x come after y? Ties by first job, so that the order is total. */
static bool string_after(const String *x, const String *y)
{
    bool grows_x = x->drop > 0.0, grows_y = y->drop > 0.0;
    if (grows_x != grows_y) {
        return grows_x;
    }
    double kx = grows_x ? x->drop - x->hill : x->hill,
           ky = grows_y ? y->drop - y->hill : y->hill;
    if (kx > ky || ky > kx) {
        return kx > ky;
    }
    return x->first > y->first;
}

/* Strictly before by the keys alone. */
static bool string_before(const String *x, const String *y)
{
    bool grows_x = x->drop > 0.0, grows_y = y->drop > 0.0;
    if (grows_x != grows_y) {
        return grows_y;
    }
    double kx = grows_x ? x->drop - x->hill : x->hill,
           ky = grows_y ? y->drop - y->hill : y->hill;
    return kx < ky;
}

/* Merges two heaps; the right spines are O(log n) long, so is the path kept here. */
static uint32_t heap_merge(String *s, uint32_t a, uint32_t b)
{
    uint32_t spine[128], depth = 0;
    while (a != NONE && b != NONE) {
        if (!string_after(&s[a], &s[b])) {
            uint32_t other = a;
            a = b;
            b = other;
        }
        CHECK(depth < 128);
        spine[depth++] = a;
        a = s[a].right;
    }
    uint32_t below = a != NONE ? a : b;
    while (depth > 0) {
        uint32_t x = spine[--depth];
        s[x].right = below;
        uint32_t l = s[x].left, left_rank = l == NONE ? 0 : s[l].rank;
        uint32_t right_rank = below == NONE ? 0 : s[below].rank;
        if (left_rank < right_rank) {
            s[x].right = l;
            s[x].left = below;
        }
        s[x].rank = 1 + (left_rank < right_rank ? left_rank : right_rank);
        below = x;
    }
    return below;
}

/* The jobs' order from the root's heap: popped last to first, each string's jobs in order. */
static void heap_unwind(String *s, const uint32_t *next, uint32_t root, uint32_t n,
                        uint32_t *order, uint32_t *room)
{
    uint32_t at = n;
    while (root != NONE) {
        uint32_t count = 0;
        for (uint32_t job = s[root].first; job != NONE; job = next[job]) {
            room[count++] = job;
        }
        at -= count;
        memcpy(order + at, room, count * sizeof *room);
        root = heap_merge(s, s[root].left, s[root].right);
    }
}

static uint32_t *jobs_order(const PathTree *t, const double *hill, const double *drop,
                            Arena *arena)
{
    uint32_t n = t->n_leaves, n_jobs = t->n_steps;
    String *s = ARENA_ARRAY(arena, n_jobs, String);
    uint32_t *next = ARENA_ARRAY(arena, n_jobs, uint32_t),
             *heap = ARENA_ARRAY(arena, n_jobs, uint32_t);
    for (uint32_t k = 0; k < n_jobs; k++) {
        uint32_t a = t->steps[k].a, b = t->steps[k].b;
        uint32_t under = heap_merge(s, a < n ? NONE : heap[a - n], b < n ? NONE : heap[b - n]);
        s[k] = (String){hill[k], drop[k], k, k, NONE, NONE, 1};
        next[k] = NONE;
        while (under != NONE && !string_before(&s[under], &s[k])) {
            String *top = &s[under];
            double level = top->drop + s[k].hill;
            next[top->last] = s[k].first;
            s[k].first = top->first;
            s[k].hill = top->hill > level ? top->hill : level;
            s[k].drop += top->drop;
            under = heap_merge(s, top->left, top->right);
        }
        heap[k] = heap_merge(s, under, k);
    }
    uint32_t *order = ARENA_ARRAY(arena, n_jobs, uint32_t);
    if (n_jobs > 0) {
        heap_unwind(s, next, heap[n_jobs - 1], n_jobs, order,
                    ARENA_ARRAY(arena, n_jobs, uint32_t));
    }
    return order;
}

void path_order_for_peak(const PathProblem *p, PathTree *t, PathLabels sliced, Arena *arena)
{
    if (t->n_steps < 2) {
        return;
    }
    uint8_t *skip = ARENA_ARRAY(arena, p->n_labels, uint8_t);
    for (uint32_t i = 0; i < sliced.n; i++) {
        skip[sliced.at[i]] = 1;
    }
    Prepared within;
    net_prepare(p, skip, arena, &within);
    Live v;
    live_init(&v, &within.net, arena);
    for (uint32_t k = 0; k < t->n_steps; k++) {
        live_merge(&v, t->steps[k].a, t->steps[k].b);
    }
    double scale = 0.0; /* sizes relative to the largest stay in range */
    for (uint32_t k = 0; k < v.n; k++) {
        scale = v.size[k] > scale ? v.size[k] : scale;
    }
    double *hill = ARENA_ARRAY(arena, t->n_steps, double),
           *drop = ARENA_ARRAY(arena, t->n_steps, double);
    for (uint32_t k = 0; k < t->n_steps; k++) {
        hill[k] = exp2(v.size[t->n_leaves + k] - scale);
        drop[k] =
            hill[k] - exp2(v.size[t->steps[k].a] - scale) - exp2(v.size[t->steps[k].b] - scale);
    }
    uint32_t *order = jobs_order(t, hill, drop, arena);
    uint32_t *number = ARENA_ARRAY(arena, (size_t)t->n_leaves * 2, uint32_t);
    PathStep *steps = ARENA_ARRAY(arena, t->n_steps, PathStep);
    for (uint32_t k = 0; k < t->n_leaves; k++) {
        number[k] = k;
    }
    for (uint32_t k = 0; k < t->n_steps; k++) {
        PathStep s = t->steps[order[k]];
        steps[k] = (PathStep){number[s.a], number[s.b]};
        number[t->n_leaves + order[k]] = t->n_leaves + k;
    }
    memcpy(t->steps, steps, t->n_steps * sizeof *steps);
}
