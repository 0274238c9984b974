/* SPDX-License-Identifier: Apache-2.0 */
/* Slicing inside the search. The state is a tree and a set of sliced labels such that no tensor is above the limit.
 * Two kinds of moves alternate under one falling temperature: sweeps of tree moves, which may not make a tensor too
 * large, and slice moves, which give up one or two sliced labels at random and slice others, cheapest first,
 * until everything fits again; the cost of a state is over all slices. A tree that is good unsliced is a bad
 * start (its large tensors share no labels), so the first rounds melt it; the best of several is then refined from lower
 * temperatures. */
#include <string.h>

#include "base/bits.h"
#include "path/search.h"

#define LEVELS    100
#define GROUP     6   /* sweeps between slice moves */
#define FILL_HEAT 0.1 /* noise in the choice of what to slice */
#define MELTS     9   /* rounds from high temperature, and as many from lower ones */
#define SHARE     5   /* of the work, against that of a search without slices */
#define FEW_SHARE 2   /* the same below MANY operands */
#define MANY      200

typedef struct Slicer {
    Search *s;
    Tree *t;
    Walk walk;
    uint32_t *bit; /* the sliced labels' bits */
    uint32_t n_bits;
    double *hit; /* by bit: cost of the steps that have it, over the total */
    uint64_t *old_keep;
    uint32_t *old_bit;
} Slicer;

static double slicer_cost(const Slicer *z)
{
    double sum = tree_total(z->t, &z->s->model).cost;
    for (uint32_t i = 0; i < z->n_bits; i++) {
        sum += z->t->bit_weight[z->bit[i]];
    }
    return sum;
}

/* By label of the candidates: the share of the cost in steps that have it. */
static void slicer_hits(Slicer *z, const uint64_t *candidates)
{
    Tree *t = z->t;
    double total = tree_total(t, &z->s->model).cost;
    memset(z->hit, 0, (size_t)t->words * 64 * sizeof *z->hit);
    for (uint32_t x = t->n; x < 2 * t->n - 1; x++) {
        if (t->cost[x] < total - 24.0) {
            continue;
        }
        double part = exp2(t->cost[x] - total);
        const uint64_t *a = tree_legs(t, t->left[x]), *b = tree_legs(t, t->right[x]);
        for (uint32_t w = 0; w < t->words; w++) {
            for (uint64_t u = (a[w] | b[w]) & candidates[w]; u != 0; u &= u - 1) {
                z->hit[w * 64 + (uint32_t)__builtin_ctzll(u)] += part;
            }
        }
    }
}

static uint32_t largest_node(const Tree *t)
{
    uint32_t top = 0;
    for (uint32_t x = 0; x < 2 * t->n - 1; x++) {
        top = t->size[x] > t->size[top] ? x : top;
    }
    return top;
}

static void slicer_add(Slicer *z, uint32_t bit)
{
    z->bit[z->n_bits++] = bit;
    tree_slice(z->t, &z->s->model, bit);
}

/* Slices labels of the largest tensor, the cheapest first, until everything fits. */
static void slicer_fill(Slicer *z, double heat)
{
    Tree *t = z->t;
    for (;;) {
        uint32_t top = largest_node(t);
        if (t->size[top] <= z->s->model.limit + 1e-9) {
            return;
        }
        uint64_t *legs = tree_legs(t, top);
        slicer_hits(z, legs);
        uint32_t best = UINT32_MAX;
        double least = INFINITY;
        for (uint32_t b = bits_next(legs, t->words, 0); b != UINT32_MAX;
             b = bits_next(legs, t->words, b + 1)) {
            double w = t->bit_weight[b];
            if (w <= 0.0) {
                continue;
            }
            double share = z->hit[b] > 1.0 ? 1.0 : z->hit[b];
            double more = log2(share + (1.0 - share) * exp2(w)) / w;
            more += heat * z->walk.table[rng_next(&z->s->rng) & (WALK_STEPS - 1)];
            if (more < least) {
                least = more;
                best = b;
            }
        }
        CHECK(best != UINT32_MAX);
        slicer_add(z, best);
    }
}

static void slicer_drop(Slicer *z, uint32_t i)
{
    tree_unslice(z->t, &z->s->model, z->bit[i], z->s->arena);
    z->bit[i] = z->bit[--z->n_bits];
}

/* Drops sliced labels that nothing needs. */
static void slicer_trim(Slicer *z)
{
    for (uint32_t i = 0; i < z->n_bits;) {
        uint32_t bit = z->bit[i], last = z->bit[z->n_bits - 1];
        slicer_drop(z, i);
        if (z->t->size[largest_node(z->t)] <= z->s->model.limit + 1e-9) {
            continue;
        }
        z->bit[z->n_bits++] = last;
        z->bit[i] = bit;
        tree_slice(z->t, &z->s->model, bit);
        i++;
    }
}

/* Gives up one or two sliced labels and fills up; undone unless accepted. */
static void slicer_move(Slicer *z, double heat)
{
    if (z->n_bits == 0) {
        return;
    }
    uint32_t n_old = z->n_bits;
    double was = slicer_cost(z);
    memcpy(z->old_keep, z->t->keep, z->t->words * sizeof *z->old_keep);
    memcpy(z->old_bit, z->bit, n_old * sizeof *z->old_bit);
    uint32_t drops = rng_below(&z->s->rng, 4) == 0 ? 2 : 1;
    for (uint32_t k = 0; k < drops && z->n_bits > 0; k++) {
        slicer_drop(z, (uint32_t)rng_below(&z->s->rng, z->n_bits));
    }
    slicer_fill(z, FILL_HEAT);
    double now = slicer_cost(z);
    if (now - was <= heat * z->walk.table[rng_next(&z->s->rng) & (WALK_STEPS - 1)]) {
        return;
    }
    memcpy(z->t->keep, z->old_keep, z->t->words * sizeof *z->old_keep);
    memcpy(z->bit, z->old_bit, n_old * sizeof *z->old_bit);
    z->n_bits = n_old;
    tree_refresh(z->t, &z->s->model, z->s->arena);
}

static void slicer_load(Slicer *z, const Tree *from)
{
    tree_copy(z->t, from);
    z->n_bits = 0;
    for (uint32_t b = 0; b < z->t->words * 64; b++) {
        if (z->t->label[b] != UINT32_MAX && !bits_has(z->t->keep, b)) {
            z->bit[z->n_bits++] = b;
        }
    }
}

static void slicer_keep(Slicer *z, Tree *best, double *best_cost)
{
    double now = slicer_cost(z);
    if (now < *best_cost - 1e-9) {
        *best_cost = now;
        tree_copy(best, z->t);
    }
}

/* One fall of the temperature from the current state. */
static void slicer_round(Slicer *z, Schedule plan, Tree *best, double *best_cost)
{
    for (uint32_t level = 0; level < plan.levels && !search_stopped(z->s); level++) {
        double heat = schedule_heat(&plan, level);
        for (uint32_t k = 0; k < plan.sweeps; k += GROUP) {
            anneal_sweeps(z->s, z->t, &z->walk, heat, plan.depth, GROUP);
            slicer_move(z, heat);
        }
        slicer_trim(z);
        slicer_keep(z, best, best_cost);
    }
    subtree_improve(z->s, z->t, 8, 20);
    slicer_trim(z);
    slicer_keep(z, best, best_cost);
    search_progress(z->s, "slice", (Score){0.0, *best_cost, z->s->model.limit, 0.0});
}

static Slicer slicer_new(Search *s, Tree *t, const Net *net)
{
    Slicer z = {.s = s, .t = t, .walk = walk_new(s, t->n)};
    z.bit = ARENA_ARRAY(s->arena, net->n_labels, uint32_t);
    z.old_bit = ARENA_ARRAY(s->arena, net->n_labels, uint32_t);
    z.hit = ARENA_ARRAY(s->arena, (size_t)t->words * 64, double);
    z.old_keep = ARENA_ARRAY(s->arena, t->words, uint64_t);
    return z;
}

static void slicer_polish(Slicer *z, Tree *best, double *best_cost)
{
    slicer_load(z, best);
    subtree_improve(z->s, z->t, 10, 20);
    slicer_trim(z);
    slicer_keep(z, best, best_cost);
}

/* Rounds from hot, each from the first tree, then as many from lower temperatures, each from
 * the best. More effort: as much more rounds as longer ones. */
static void slicer_stage(Slicer *z, const Tree *first, Tree *last, uint32_t units,
                         uint64_t budget, Tree *best, double *best_cost)
{
    Search *s = z->s;
    uint32_t rounds = MELTS;
    while (rounds < 1000 && (uint64_t)(rounds / MELTS) * (rounds / MELTS) < units) {
        rounds += MELTS;
    }
    uint32_t sweeps = (uint32_t)(budget / z->t->n / LEVELS / (2 * rounds)) + 1;
    for (uint32_t r = 0; r < rounds && !search_stopped(s); r++) {
        slicer_load(z, first);
        slicer_round(z, (Schedule){2.0, 0.05, 1000.0, LEVELS, sweeps}, best, best_cost);
    }
    for (uint32_t r = 0; r < rounds && !search_stopped(s); r++) {
        tree_copy(last, best);
        slicer_load(z, last);
        slicer_round(z, (Schedule){r % 2 == 0 ? 1.0 : 0.6, 0.02, 1000.0, LEVELS, sweeps}, best,
                     best_cost);
    }
    slicer_polish(z, best, best_cost);
}

static uint64_t slice_unit(const Search *s, const Net *net)
{
    return (net->n < MANY ? FEW_SHARE : SHARE) * search_budget(s, net);
}

uint64_t slice_budget(const Search *s, const Net *net)
{
    return s->options->effort * slice_unit(s, net);
}

double slice_search(Search *s, const Net *net, PathStep *out)
{
    ArenaMark mark = arena_mark(s->arena);
    uint64_t unit = slice_unit(s, net);
    search_plan(s, slice_budget(s, net));
    Tree t;
    tree_init(&t, net, s->arena);
    tree_set(&t, &s->model, out, s->arena);
    Slicer z = slicer_new(s, &t, net);
    slicer_fill(&z, 0.0);
    slicer_trim(&z);
    Tree first = tree_clone(&t, s->arena), best = tree_clone(&t, s->arena),
         last = tree_clone(&t, s->arena);
    double best_cost = slicer_cost(&z);
    subtree_improve(s, &t, 8, 4);
    slicer_keep(&z, &best, &best_cost);
    if (s->effort == 0) {
        slicer_polish(&z, &best, &best_cost);
    }
    uint64_t done = 0;
    for (uint32_t k = 0; search_stage(s->effort, k) > 0 && !search_stopped(s); k++) {
        uint32_t units = search_stage(s->effort, k);
        slicer_stage(&z, &first, &last, units, units * unit, &best, &best_cost);
        done += units * unit;
        search_reach(s, done);
    }
    tree_get(&best, out, s->arena);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        s->sliced[l] = !bits_has(best.keep, best.bit[l]);
    }
    arena_reset(s->arena, mark);
    return best_cost;
}
