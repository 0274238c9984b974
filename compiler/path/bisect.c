/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive bisection: split the operands in two so that the labels across weigh little, then split the halves. The
 * labels already open count in every split's step alike, so the cut is what a split pays. Halves are found by growing
 * from a random operand and Fiduccia-Mattheyses passes (each operand moved at most once, best prefix kept); small sets
 * are left to the exact search. An explicit stack holds the ranges still to be split. */
#include <string.h>

#include "path/cut.h"
#include "path/search.h"

#define LEAF 8

typedef struct Bisect {
    const Net *net;
    Rng *rng;
    Arena *arena;
    double imbalance;
    const uint32_t *holder_start, *holder; /* by label */
    uint32_t *member;                      /* operands, ranges of which are sets */
    uint32_t *set;                         /* by operand: number of the range it is in */
    uint32_t *at;                          /* by operand: place in its range */
    uint32_t *seen;                        /* by label: range that it was last met in */
    uint32_t *local;                       /* by label: number in a leaf's net + 1 */
    uint64_t work;
} Bisect;

/* The labels that two members of a range or more have. */
static Hyper range_hyper(Bisect *b, uint32_t lo, uint32_t hi)
{
    uint32_t total = 0, n = hi - lo;
    for (uint32_t i = lo; i < hi; i++) {
        b->at[b->member[i]] = i - lo;
        total += net_degree(b->net, b->member[i]);
    }
    Hyper h = {.n = n};
    h.first = ARENA_ARRAY(b->arena, (size_t)total + 1, uint32_t);
    h.pin = ARENA_ARRAY(b->arena, total, uint32_t);
    h.weight = ARENA_ARRAY(b->arena, total, double);
    h.mass = ARENA_ARRAY(b->arena, n, uint32_t);
    for (uint32_t i = lo; i < hi; i++) {
        uint32_t v = b->member[i];
        h.mass[i - lo] = 1;
        for (uint32_t k = 0; k < net_degree(b->net, v); k++) {
            uint32_t l = net_legs(b->net, v)[k], at = h.first[h.n_nets];
            if (b->seen[l] == b->set[v]) {
                continue;
            }
            b->seen[l] = b->set[v];
            for (uint32_t j = b->holder_start[l]; j < b->holder_start[l + 1]; j++) {
                uint32_t u = b->holder[j];
                if (b->set[u] == b->set[v]) {
                    h.pin[at++] = b->at[u];
                }
            }
            if (at - h.first[h.n_nets] > 1) {
                h.weight[h.n_nets++] = b->net->weight[l];
                h.first[h.n_nets] = at;
            }
        }
    }
    return h;
}

/* Splits the range; returns where the second half begins. */
static uint32_t range_split(Bisect *b, uint32_t lo, uint32_t hi)
{
    ArenaMark mark = arena_mark(b->arena);
    uint32_t n = hi - lo, first = 0, second = 0;
    uint32_t *room = ARENA_ARRAY(b->arena, n, uint32_t);
    uint8_t *side = ARENA_ARRAY(b->arena, n, uint8_t);
    Hyper h = range_hyper(b, lo, hi);
    b->work += cut_run(&h, b->imbalance, b->rng, b->arena, side);
    for (uint32_t i = 0; i < n; i++) {
        if (side[i] == 0) {
            b->member[lo + first++] = b->member[lo + i];
        } else {
            room[second++] = b->member[lo + i];
        }
    }
    memcpy(b->member + lo + first, room, second * sizeof *room);
    arena_reset(b->arena, mark);
    return lo + first;
}

/* A small set as a net of its own: exact. Returns the tensor it makes. */
static uint32_t range_solve(Bisect *b, uint32_t lo, uint32_t hi, PathStep *out,
                            uint32_t *n_steps)
{
    uint32_t n = hi - lo, at = 0, n_labels = 0, total = 0;
    ArenaMark mark = arena_mark(b->arena);
    for (uint32_t i = lo; i < hi; i++) {
        total += net_degree(b->net, b->member[i]);
    }
    uint32_t *start = ARENA_ARRAY(b->arena, (size_t)n + 1, uint32_t),
             *label = ARENA_ARRAY(b->arena, total, uint32_t);
    uint32_t *name = ARENA_ARRAY(b->arena, total, uint32_t),
             *seen = ARENA_ARRAY(b->arena, total, uint32_t);
    double *weight = ARENA_ARRAY(b->arena, total, double);
    uint8_t *open = ARENA_ARRAY(b->arena, total, uint8_t);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = b->member[lo + i];
        start[i] = at;
        for (uint32_t k = 0; k < net_degree(b->net, v); k++) {
            uint32_t l = net_legs(b->net, v)[k];
            if (b->local[l] == 0) {
                weight[n_labels] = b->net->weight[l];
                name[n_labels] = l;
                b->local[l] = ++n_labels;
            }
            seen[b->local[l] - 1]++;
            label[at++] = b->local[l] - 1;
        }
    }
    start[n] = at;
    for (uint32_t i = 0; i < n_labels; i++) {
        uint32_t l = name[i];
        open[i] = b->net->open[l] || seen[i] < b->holder_start[l + 1] - b->holder_start[l];
        b->local[l] = 0;
    }
    Net net = {n, n_labels, start, label, weight, open};
    Model flops = {PATH_FLOPS, 0.0, INFINITY, NULL, NULL};
    PathStep *steps = ARENA_ARRAY(b->arena, n, PathStep);
    greedy_run(&net, (GreedyStyle){1.0, 0.0, 0}, b->rng, b->arena, steps);
    exact_run(&flops, &net, tree_score(&flops, &net, steps, b->arena), b->arena, NULL, steps);
    uint32_t base = b->net->n + *n_steps;
    for (uint32_t k = 0; k + 1 < n; k++) {
        uint32_t x = steps[k].a, y = steps[k].b;
        out[(*n_steps)++] = (PathStep){x < n ? b->member[lo + x] : base + (x - n),
                                       y < n ? b->member[lo + y] : base + (y - n)};
    }
    arena_reset(b->arena, mark);
    return n == 1 ? b->member[lo] : b->net->n + *n_steps - 1;
}

static Bisect bisect_new(const Net *net, double imbalance, Rng *rng, Arena *scratch)
{
    Bisect b = {.net = net, .rng = rng, .arena = scratch, .imbalance = imbalance};
    net_holders(net, scratch, &b.holder_start, &b.holder);
    b.member = ARENA_ARRAY(scratch, net->n, uint32_t);
    b.set = ARENA_ARRAY(scratch, net->n, uint32_t);
    b.at = ARENA_ARRAY(scratch, net->n, uint32_t);
    b.seen = ARENA_ARRAY(scratch, net->n_labels, uint32_t);
    b.local = ARENA_ARRAY(scratch, net->n_labels, uint32_t);
    for (uint32_t k = 0; k < net->n; k++) {
        b.member[k] = k;
        b.set[k] = 1;
    }
    return b;
}

uint64_t bisect_halves(const Net *net, double imbalance, Rng *rng, Arena *scratch,
                       uint8_t *side)
{
    ArenaMark mark = arena_mark(scratch);
    Bisect b = bisect_new(net, imbalance, rng, scratch);
    uint32_t mid = range_split(&b, 0, net->n);
    for (uint32_t i = 0; i < net->n; i++) {
        side[b.member[i]] = i >= mid;
    }
    arena_reset(scratch, mark);
    return b.work;
}

typedef struct Range {
    uint32_t lo, hi;
    bool split;
} Range;

uint64_t bisect_run(const Net *net, double imbalance, Rng *rng, Arena *scratch, PathStep *out)
{
    ArenaMark mark = arena_mark(scratch);
    Bisect b = bisect_new(net, imbalance, rng, scratch);
    Range *stack = ARENA_ARRAY(scratch, (size_t)net->n * 2 + 2, Range);
    uint32_t *value = ARENA_ARRAY(scratch, (size_t)net->n + 1, uint32_t);
    uint32_t depth = 0, n_values = 0, n_steps = 0, n_sets = 1;
    stack[depth++] = (Range){0, net->n, false};
    while (depth > 0) {
        Range r = stack[--depth];
        if (r.split) { /* both halves are done */
            n_values--;
            out[n_steps] = (PathStep){value[n_values - 1], value[n_values]};
            value[n_values - 1] = net->n + n_steps++;
        } else if (r.hi - r.lo <= LEAF) {
            value[n_values++] = range_solve(&b, r.lo, r.hi, out, &n_steps);
        } else {
            n_sets++;
            for (uint32_t i = r.lo; i < r.hi; i++) {
                b.set[b.member[i]] = n_sets;
            }
            uint32_t mid = range_split(&b, r.lo, r.hi);
            stack[depth++] = (Range){r.lo, r.hi, true};
            stack[depth++] = (Range){mid, r.hi, false};
            stack[depth++] = (Range){r.lo, mid, false};
        }
    }
    arena_reset(scratch, mark);
    return b.work;
}

bool bisect_search(Search *s, const Net *net, PathStep *out)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    Score best = {0};
    uint64_t runs = 1 + (uint64_t)16 * s->effort;
    search_plan(s, runs * net->n);
    for (uint64_t i = 0; i < runs && (i == 0 || !search_stopped(s)); i++) {
        bisect_run(net, 0.02 + 0.38 * rng_unit(&s->rng), &s->rng, s->arena, trial);
        Score now = tree_score(&s->model, net, trial, s->arena);
        if (i == 0 || score_less(now, best)) {
            best = now;
            memcpy(out, trial, (net->n - 1) * sizeof *out);
        }
        search_count(s, net->n);
        search_progress(s, "bisect", best);
    }
    arena_reset(s->arena, mark);
    return true;
}
