/* SPDX-License-Identifier: Apache-2.0 */
/* Exact search: for every subset of the operands the cheapest tree, by all splits in two, outer products
 * included. 3^n / 2 splits, cut down by a bound: a subset whose result alone costs more than a known
 * tree is never split. For size the least largest tensor comes first, then the fewest multiply-adds within it. Labels with the same occurrences are one, so that the sets stay a word or two. Costs are kept
 * relative to the bound, which keeps them in range however large they are. */
#include <string.h>

#include "base/bits.h"
#include "path/search.h"

typedef struct Exact {
    uint32_t n, words;
    uint32_t n_groups;
    bool edges;      /* no label has more than two holders, the output being one */
    double *weight;  /* by group */
    uint64_t *leaf;  /* by operand: its groups */
    uint64_t *open;  /* groups of the output */
    uint64_t *legs;  /* by subset */
    double *size;    /* by subset, log2 */
    double *cost;    /* by subset, over the bound; 2: out of the question */
    uint32_t *split; /* by subset: one half of the best split */
    Model m;
    double base;
    double fixed; /* log2 of the largest of the operands and the result */
} Exact;

#define NO_COST 2.0
#define UNBOUND 200.0 /* log2 above a cost that does not bound the search */

/* Labels into groups of equal occurrence. */
static void exact_group(Exact *e, const Net *net, Arena *arena)
{
    uint32_t *held = ARENA_ARRAY(arena, net->n_labels, uint32_t);
    uint32_t *group = ARENA_ARRAY(arena, net->n_labels, uint32_t);
    for (uint32_t k = 0; k < net->n; k++) {
        for (uint32_t i = 0; i < net_degree(net, k); i++) {
            held[net_legs(net, k)[i]] |= (uint32_t)1 << k;
        }
    }
    e->weight = ARENA_ARRAY(arena, net->n_labels, double);
    uint32_t *sign = ARENA_ARRAY(arena, net->n_labels, uint32_t);
    uint32_t slots = 1;
    while (slots < 2 * net->n_labels + 2) {
        slots *= 2;
    }
    uint32_t *slot = ARENA_ARRAY(arena, slots, uint32_t);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        uint32_t key = held[l] * 2 + net->open[l];
        uint32_t at = (key * 2654435769u) & (slots - 1);
        while (slot[at] != 0 && sign[slot[at] - 1] != key) {
            at = (at + 1) & (slots - 1);
        }
        if (slot[at] == 0) {
            sign[e->n_groups] = key;
            slot[at] = ++e->n_groups;
        }
        group[l] = slot[at] - 1;
        e->weight[group[l]] += net->weight[l];
    }
    e->words = bits_words(e->n_groups);
    e->leaf = ARENA_ARRAY(arena, (size_t)net->n * e->words, uint64_t);
    e->open = ARENA_ARRAY(arena, e->words, uint64_t);
    e->edges = true;
    for (uint32_t g = 0; g < e->n_groups; g++) {
        e->edges = e->edges && word_bits(sign[g]) <= 2;
        for (uint32_t k = 0; k < net->n; k++) {
            if ((sign[g] >> (k + 1)) & 1) {
                bits_set(e->leaf + (size_t)k * e->words, g);
            }
        }
        if (sign[g] & 1) {
            bits_set(e->open, g);
        }
    }
}

static double exact_weigh(const Exact *e, const uint64_t *set)
{
    double sum = 0.0;
    for (uint32_t w = 0; w < e->words; w++) {
        for (uint64_t x = set[w]; x != 0; x &= x - 1) {
            sum += e->weight[w * 64 + (uint32_t)__builtin_ctzll(x)];
        }
    }
    return sum;
}

/* Legs and sizes of all subsets: inside(S) by dropping the lowest operand, outside likewise from the complement. */
static void exact_tables(Exact *e, Arena *arena)
{
    size_t all = (size_t)1 << e->n;
    uint32_t words = e->words;
    e->legs = ARENA_ARRAY(arena, all * words, uint64_t);
    for (size_t s = 1; s < all; s++) {
        const uint64_t *less = e->legs + (s & (s - 1)) * words;
        const uint64_t *leaf = e->leaf + (size_t)__builtin_ctzll(s) * words;
        for (uint32_t w = 0; w < words; w++) {
            e->legs[s * words + w] = less[w] | leaf[w];
        }
    }
    /* legs = inside & outside; pairs of complements are finished together. */
    for (size_t s = 0; s < all / 2; s++) {
        uint64_t *x = e->legs + s * words, *y = e->legs + (all - 1 - s) * words;
        for (uint32_t w = 0; w < words; w++) {
            uint64_t in = x[w], out = y[w];
            x[w] = in & (out | e->open[w]);
            y[w] = out & (in | e->open[w]);
        }
    }
    e->size = ARENA_ARRAY(arena, all, double);
    for (size_t s = 1; s < all; s++) {
        e->size[s] = exact_weigh(e, e->legs + s * words);
    }
}

/* What the halves share leaves both and the whole; weights are multiples of a small power of two, so that this is exact. */
static double exact_union(const Exact *e, uint32_t a, uint32_t b, uint32_t s)
{
    if (e->edges) {
        return 0.5 * (e->size[a] + e->size[b] + e->size[s]);
    }
    const uint64_t *x = e->legs + (size_t)a * e->words, *y = e->legs + (size_t)b * e->words;
    double size = 0.0;
    for (uint32_t w = 0; w < e->words; w++) {
        for (uint64_t set = x[w] | y[w]; set != 0; set &= set - 1) {
            size += e->weight[w * 64 + (uint32_t)__builtin_ctzll(set)];
        }
    }
    return size;
}

static double exact_step(const Exact *e, uint32_t a, uint32_t b, uint32_t s)
{
    double size = exact_union(e, a, b, s);
    return exp2(model_step(&e->m, size, e->size[a], e->size[b], e->size[s]) - e->base);
}

static void exact_subset(Exact *e, uint32_t s, bool whole)
{
    double least = exp2(model_step(&e->m, e->size[s], -1e9, -1e9, e->size[s]) - e->base);
    double best = 1.0 + 1e-9;
    e->cost[s] = NO_COST;
    if (!whole) { /* it will be used, and where all labels count, that costs its size again */
        bool all = e->m.objective != PATH_WRITE;
        best -= all ? exp2(e->size[s] - e->base) : 0.0;
    }
    if (least > best || (!whole && e->size[s] > e->m.limit + 1e-9)) {
        return;
    }
    double open = best - least;
    uint32_t rest = s & (s - 1);
    const double *cost = e->cost;
    for (uint32_t b = rest; b != 0; b = (b - 1) & rest) {
        double parts = cost[b] + cost[s ^ b];
        if (parts >= open) {
            continue;
        }
        double sum = parts + exact_step(e, s ^ b, b, s);
        if (sum < best) {
            best = sum;
            open = best - least;
            e->cost[s] = sum;
            e->split[s] = b;
        }
    }
}

/* cost[s] for the moment: log2 of the largest tensor at or below s in the tree where that is least. */
static void exact_narrow(Exact *e, uint32_t s, bool whole)
{
    double own = whole || e->size[s] < e->fixed ? e->fixed : e->size[s], best = INFINITY;
    if (own > e->m.limit + 1e-9 && !whole) {
        e->cost[s] = INFINITY;
        return;
    }
    uint32_t rest = s & (s - 1);
    const double *cost = e->cost;
    for (uint32_t b = rest; b != 0 && best > own; b = (b - 1) & rest) {
        double most = cost[b] > cost[s ^ b] ? cost[b] : cost[s ^ b];
        best = most < best ? most : best;
    }
    e->cost[s] = best > own ? best : own;
}

/* The tree below the full set, children first. */
static void exact_tree(const Exact *e, Arena *arena, PathStep *out)
{
    uint32_t n = e->n, depth = 0, at = n - 1;
    uint32_t *stack = ARENA_ARRAY(arena, (size_t)n + 1, uint32_t);
    uint32_t *order = ARENA_ARRAY(arena, n, uint32_t);
    uint32_t *number = ARENA_ARRAY(arena, (size_t)2 * n, uint32_t);
    stack[depth++] = (uint32_t)(((uint64_t)1 << n) - 1);
    while (depth > 0) {
        uint32_t s = stack[--depth];
        order[--at] = s;
        uint32_t half[2] = {s ^ e->split[s], e->split[s]};
        for (int i = 0; i < 2; i++) {
            if ((half[i] & (half[i] - 1)) != 0) {
                stack[depth++] = half[i];
            }
        }
    }
    for (uint32_t k = 0; k + 1 < n; k++) { /* a subset's number: by looking back, n is small */
        uint32_t half[2] = {order[k] ^ e->split[order[k]], e->split[order[k]]};
        for (int i = 0; i < 2; i++) {
            number[i] = (uint32_t)__builtin_ctz(half[i]);
            for (uint32_t j = 0; j < k && (half[i] & (half[i] - 1)) != 0; j++) {
                number[i] = order[j] == half[i] ? n + j : number[i];
            }
        }
        out[k] = (PathStep){number[0], number[1]};
    }
}

#define ROW 4096 /* subsets between looks at the watch */

/* False when stopped. */
static bool exact_fill(Exact *e, void (*subset)(Exact *e, uint32_t s, bool whole),
                       Search *watch, bool count)
{
    uint32_t all = (uint32_t)1 << e->n;
    for (uint32_t s = 1; s < all; s++) {
        if (watch != NULL && s % ROW == 0) {
            search_count(watch, count ? ROW : 0);
            if (search_stopped(watch)) {
                return false;
            }
        }
        if ((s & (s - 1)) != 0) {
            subset(e, s, s == all - 1);
        }
    }
    if (watch != NULL && count) {
        search_count(watch, all < ROW ? all : ROW);
    }
    return true;
}

/* Makes of the size objective multiply-adds within the least limit. */
static bool exact_least(Exact *e, Score known, Search *watch)
{
    size_t all = (size_t)1 << e->n;
    bool is_known = known.over <= 0.0;
    double limit = is_known && known.largest < e->m.limit ? known.largest : e->m.limit;
    e->fixed = e->size[all - 1];
    for (uint32_t k = 0; k < e->n; k++) {
        double size = e->size[(size_t)1 << k];
        e->fixed = size > e->fixed ? size : e->fixed;
    }
    e->m.limit = limit > e->fixed ? limit : e->fixed;
    for (uint32_t k = 0; k < e->n; k++) {
        e->cost[(size_t)1 << k] = e->fixed;
    }
    if (!exact_fill(e, exact_narrow, watch, false)) {
        return false;
    }
    double least = e->cost[all - 1];
    for (uint32_t k = 0; k < e->n; k++) {
        e->cost[(size_t)1 << k] = 0.0;
    }
    e->base += is_known && least < known.largest - 1e-9 ? UNBOUND : 0.0;
    e->m.objective = PATH_FLOPS;
    e->m.limit = least < e->m.limit ? least : e->m.limit;
    return least < INFINITY;
}

bool exact_run(const Model *m, const Net *net, Score known, Arena *scratch, Search *watch,
               PathStep *out)
{
    CHECK(net->n >= 1 && net->n <= EXACT_MOST);
    if (net->n == 1) {
        return true;
    }
    ArenaMark mark = arena_mark(scratch);
    Exact e = {.n = net->n, .m = *m};
    e.base = known.cost + (known.over > 0.0 ? UNBOUND : 0.0);
    exact_group(&e, net, scratch);
    exact_tables(&e, scratch);
    size_t all = (size_t)1 << e.n;
    e.cost = ARENA_ARRAY(scratch, all, double);
    e.split = ARENA_ARRAY(scratch, all, uint32_t);
    bool found = m->objective != PATH_SIZE || exact_least(&e, known, watch);
    found = found && exact_fill(&e, exact_subset, watch, true) && e.cost[all - 1] < NO_COST;
    if (found) {
        exact_tree(&e, scratch, out);
    }
    arena_reset(scratch, mark);
    return found;
}

bool exact_search(Search *s, const Net *net, PathStep *out)
{
    if (net->n > EXACT_MOST) {
        return false;
    }
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    greedy_run(net, (GreedyStyle){1.0, 0.0, 0}, &s->rng, s->arena, out);
    Score best = tree_score(&s->model, net, out, s->arena);
    for (int i = 0; i < 24; i++) {
        double cost_mod = 0.1 + 3.9 * rng_unit(&s->rng);
        double temperature = exp2(-10.0 * rng_unit(&s->rng));
        GreedyStyle style = {cost_mod, temperature, 0};
        greedy_run(net, style, &s->rng, s->arena, trial);
        Score now = tree_score(&s->model, net, trial, s->arena);
        if (score_less(now, best)) {
            best = now;
            memcpy(out, trial, (net->n - 1) * sizeof *out);
        }
    }
    search_plan(s, (uint64_t)1 << net->n);
    search_progress(s, "exact", best);
    bool found = exact_run(&s->model, net, best, s->arena, s, out);
    s->proved = found;
    arena_reset(s->arena, mark);
    return true; /* where the search was stopped, the best of the others */
}
