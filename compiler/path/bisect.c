/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive bisection: split the operands in two so that the labels across weigh little, then split the halves. The
 * labels already open count in every split's step alike, so the cut is what a split pays. Halves are found by growing
 * from a random operand and Fiduccia-Mattheyses passes (each operand moved at most once, best prefix kept); small sets
 * are left to the exact search. An explicit stack holds the ranges still to be split. */
#include <string.h>

#include "path/search.h"

#define LEAF   8
#define PASSES 8

typedef struct Gain {
    double gain;
    uint32_t v, version;
} Gain;

typedef struct Bisect {
    const Net *net;
    Rng *rng;
    Arena *arena;
    double imbalance;
    const uint32_t *holder_start, *holder; /* by label */
    uint32_t *member;                      /* operands, ranges of which are sets */
    uint32_t *set;                         /* by operand: number of the range it is in */
    uint8_t *side, *moved;
    uint32_t *count[2]; /* by label: operands of the current set on each side */
    uint32_t *version;
    Gain *heap;
    uint32_t n_heap, cap_heap;
    uint32_t *local; /* by label: number in a leaf's net + 1 */
} Bisect;

static bool gain_more(Gain x, Gain y)
{
    if (x.gain > y.gain || y.gain > x.gain) {
        return x.gain > y.gain;
    }
    return x.v < y.v;
}

static void heap_push(Bisect *b, Gain g)
{
    if (b->n_heap == b->cap_heap) {
        b->heap = vec_grow(b->arena, b->heap, b->n_heap, &b->cap_heap, sizeof *b->heap);
    }
    uint32_t at = b->n_heap++;
    while (at > 0 && gain_more(g, b->heap[(at - 1) / 2])) {
        b->heap[at] = b->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    b->heap[at] = g;
}

static Gain heap_pop(Bisect *b)
{
    Gain top = b->heap[0], last = b->heap[--b->n_heap];
    uint32_t at = 0, child;
    while ((child = 2 * at + 1) < b->n_heap) {
        if (child + 1 < b->n_heap && gain_more(b->heap[child + 1], b->heap[child])) {
            child++;
        }
        if (!gain_more(b->heap[child], last)) {
            break;
        }
        b->heap[at] = b->heap[child];
        at = child;
    }
    b->heap[at] = last;
    return top;
}

static void gain_push(Bisect *b, uint32_t v)
{
    double gain = 0.0;
    uint8_t from = b->side[v];
    for (uint32_t i = 0; i < net_degree(b->net, v); i++) {
        uint32_t l = net_legs(b->net, v)[i];
        double w = b->net->weight[l];
        bool alone = b->count[from][l] == 1, none_there = b->count[1 - from][l] == 0;
        gain += alone && !none_there ? w : none_there && !alone ? -w : 0.0;
    }
    heap_push(b, (Gain){gain, v, ++b->version[v]});
}

static void vertex_move(Bisect *b, uint32_t v)
{
    uint8_t from = b->side[v];
    b->side[v] = 1 - from;
    for (uint32_t i = 0; i < net_degree(b->net, v); i++) {
        uint32_t l = net_legs(b->net, v)[i];
        b->count[from][l]--;
        b->count[1 - from][l]++;
    }
}

/* Gains of operands next to v change only where a count is about 0 or 1. */
static void neighbours_push(Bisect *b, uint32_t v)
{
    for (uint32_t i = 0; i < net_degree(b->net, v); i++) {
        uint32_t l = net_legs(b->net, v)[i];
        if (b->count[0][l] > 2 && b->count[1][l] > 2) {
            continue;
        }
        for (uint32_t k = b->holder_start[l]; k < b->holder_start[l + 1]; k++) {
            uint32_t u = b->holder[k];
            if (u != v && b->set[u] == b->set[v] && !b->moved[u]) {
                gain_push(b, u);
            }
        }
    }
}

/* One pass; returns the gain kept. */
static double fm_pass(Bisect *b, uint32_t lo, uint32_t hi, uint32_t *trail)
{
    uint32_t n = hi - lo, on[2] = {0, 0}, n_trail = 0, keep = 0;
    double sum = 0.0, best = 0.0;
    double share = 0.5 - b->imbalance;
    uint32_t least = (uint32_t)(share * (double)n);
    least = least < 1 ? 1 : least;
    b->n_heap = 0;
    for (uint32_t i = lo; i < hi; i++) {
        uint32_t v = b->member[i];
        on[b->side[v]]++;
        b->moved[v] = 0;
        gain_push(b, v);
    }
    while (b->n_heap > 0 && n_trail < n && n_trail < keep + 50 + n / 4) {
        Gain g = heap_pop(b);
        if (b->moved[g.v] || g.version != b->version[g.v] || on[b->side[g.v]] <= least) {
            continue;
        }
        on[b->side[g.v]]--;
        vertex_move(b, g.v);
        on[b->side[g.v]]++;
        b->moved[g.v] = 1;
        trail[n_trail++] = g.v;
        sum += g.gain;
        if (sum > best + 1e-9) {
            best = sum;
            keep = n_trail;
        }
        neighbours_push(b, g.v);
    }
    while (n_trail > keep) {
        vertex_move(b, trail[--n_trail]);
    }
    return best;
}

/* Grows side 1 breadth first from a random operand to half of the set. */
static void grow_half(Bisect *b, uint32_t lo, uint32_t hi, uint32_t *queue)
{
    uint32_t n = hi - lo, head = 0, tail = 0, taken = 0;
    uint32_t half = n / 2;
    for (uint32_t i = lo; i < hi; i++) {
        b->side[b->member[i]] = 0;
        b->moved[b->member[i]] = 0;
    }
    uint32_t next = (uint32_t)rng_below(b->rng, n);
    while (taken < half) {
        if (head == tail) {
            while (b->moved[b->member[lo + next]]) {
                next = (next + 1) % n;
            }
            queue[tail++] = b->member[lo + next];
            b->moved[b->member[lo + next]] = 1;
        }
        uint32_t v = queue[head++];
        b->side[v] = 1;
        taken++;
        for (uint32_t i = 0; i < net_degree(b->net, v); i++) {
            uint32_t l = net_legs(b->net, v)[i];
            for (uint32_t k = b->holder_start[l]; k < b->holder_start[l + 1] && tail < n; k++) {
                uint32_t u = b->holder[k];
                if (b->set[u] == b->set[v] && !b->moved[u]) {
                    b->moved[u] = 1;
                    queue[tail++] = u;
                }
            }
        }
    }
}

static double cut_weight(Bisect *b, uint32_t lo, uint32_t hi)
{
    double cut = 0.0;
    for (uint32_t i = lo; i < hi; i++) {
        for (uint32_t k = 0; k < net_degree(b->net, b->member[i]); k++) {
            uint32_t l = net_legs(b->net, b->member[i])[k];
            b->count[0][l] = b->count[1][l] = 0;
        }
    }
    for (uint32_t i = lo; i < hi; i++) {
        uint32_t v = b->member[i];
        for (uint32_t k = 0; k < net_degree(b->net, v); k++) {
            b->count[b->side[v]][net_legs(b->net, v)[k]]++;
        }
    }
    for (uint32_t i = lo; i < hi; i++) {
        uint32_t v = b->member[i];
        for (uint32_t k = 0; k < net_degree(b->net, v); k++) {
            uint32_t l = net_legs(b->net, v)[k];
            bool cuts = b->count[0][l] > 0 && b->count[1][l] > 0;
            cut += cuts ? b->net->weight[l] / (b->count[0][l] + b->count[1][l]) : 0.0;
        }
    }
    return cut;
}

/* Splits the range; returns where the second half begins. */
static uint32_t range_split(Bisect *b, uint32_t lo, uint32_t hi)
{
    ArenaMark mark = arena_mark(b->arena);
    uint32_t n = hi - lo;
    uint32_t *room = ARENA_ARRAY(b->arena, n, uint32_t);
    uint8_t *best = ARENA_ARRAY(b->arena, n, uint8_t);
    double least = INFINITY;
    b->heap = NULL;
    b->cap_heap = 0;
    for (int trial = 0; trial < 3; trial++) {
        grow_half(b, lo, hi, room);
        double cut = cut_weight(b, lo, hi);
        for (int pass = 0; pass < PASSES; pass++) {
            double gain = fm_pass(b, lo, hi, room);
            cut -= gain;
            if (gain <= 0.0) {
                break;
            }
        }
        if (cut < least - 1e-9) {
            least = cut;
            for (uint32_t i = 0; i < n; i++) {
                best[i] = b->side[b->member[lo + i]];
            }
        }
    }
    uint32_t first = 0, second = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (best[i] == 0) {
            b->member[lo + first++] = b->member[lo + i];
        } else {
            room[second++] = b->member[lo + i];
        }
    }
    memcpy(b->member + lo + first, room, second * sizeof *room);
    b->heap = NULL;
    b->cap_heap = 0;
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
    greedy_run(&net, (GreedyStyle){1.0, 0.0}, b->rng, b->arena, steps);
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

typedef struct Range {
    uint32_t lo, hi;
    bool split;
} Range;

void bisect_run(const Net *net, double imbalance, Rng *rng, Arena *scratch, PathStep *out)
{
    ArenaMark mark = arena_mark(scratch);
    Bisect b = {.net = net, .rng = rng, .arena = scratch, .imbalance = imbalance};
    net_holders(net, scratch, &b.holder_start, &b.holder);
    b.member = ARENA_ARRAY(scratch, net->n, uint32_t);
    b.set = ARENA_ARRAY(scratch, net->n, uint32_t);
    b.side = ARENA_ARRAY(scratch, net->n, uint8_t);
    b.moved = ARENA_ARRAY(scratch, net->n, uint8_t);
    b.version = ARENA_ARRAY(scratch, net->n, uint32_t);
    b.count[0] = ARENA_ARRAY(scratch, net->n_labels, uint32_t);
    b.count[1] = ARENA_ARRAY(scratch, net->n_labels, uint32_t);
    b.local = ARENA_ARRAY(scratch, net->n_labels, uint32_t);
    Range *stack = ARENA_ARRAY(scratch, (size_t)net->n * 2 + 2, Range);
    uint32_t *value = ARENA_ARRAY(scratch, (size_t)net->n + 1, uint32_t);
    uint32_t depth = 0, n_values = 0, n_steps = 0, n_sets = 0;
    for (uint32_t k = 0; k < net->n; k++) {
        b.member[k] = k;
    }
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
