/* SPDX-License-Identifier: Apache-2.0 */
/* Slicing inside the search. The state is a tree and a set of sliced labels such that no tensor is above the limit.
 * Two kinds of moves alternate under one falling temperature: sweeps of tree moves, which may not make a tensor too
 * large, and slice moves, which give up one or two sliced labels at random and slice others, cheapest first,
 * until everything fits again; the cost of a state is over all slices. A tree that is good unsliced is a bad
 * start (its large tensors share no labels), so it is melted; but where a state ends depends on where it began, so
 * that a herd falls together, half of it from bisections, and at some temperatures its better half takes the place
 * of the worse. The best of all is then refined from lower temperatures. */
#include <string.h>

#include "base/bits.h"
#include "path/search.h"

#define LEVELS    100
#define GROUP     6   /* sweeps between slice moves */
#define FILL_HEAT 0.1 /* noise in the choice of what to slice */
#define HERD      24  /* states that fall together */
#define REFINES   4   /* rounds from the best */
#define LATE      6 /* last levels of a fall: the least cost there is what a state is judged by */
#define BISECTED  20 /* operands above which half of the herd begins with bisections */
#define SHARE     5  /* of the work, against that of a search without slices */
#define FEW_SHARE 2  /* the same below MANY operands */
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
    uint64_t *whole; /* labels kept where none is sliced */
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

/* What is sliced follows from what the tree keeps. */
static void slicer_note(Slicer *z)
{
    z->n_bits = 0;
    for (uint32_t b = 0; b < z->t->words * 64; b++) {
        if (z->t->label[b] != UINT32_MAX && !bits_has(z->t->keep, b)) {
            z->bit[z->n_bits++] = b;
        }
    }
}

static void slicer_load(Slicer *z, const Tree *from)
{
    tree_copy(z->t, from);
    slicer_note(z);
}

static void slicer_keep(Slicer *z, Tree *best, double *best_cost)
{
    double now = slicer_cost(z);
    if (now < *best_cost - 1e-9) {
        *best_cost = now;
        tree_copy(best, z->t);
    }
}

/* One fall of the temperature from the current state; returns the least cost near its end. */
static double slicer_fall(Slicer *z, Schedule plan, Tree *best, double *best_cost)
{
    double least = INFINITY;
    uint32_t group = plan.sweeps < GROUP ? plan.sweeps : GROUP;
    for (uint32_t level = 0; level < plan.levels && !search_stopped(z->s); level++) {
        double heat = schedule_heat(&plan, level);
        for (uint32_t k = 0; k < plan.sweeps; k += group) {
            anneal_sweeps(z->s, z->t, &z->walk, heat, plan.depth, group);
            slicer_move(z, heat);
        }
        slicer_trim(z);
        slicer_keep(z, best, best_cost);
        double now = slicer_cost(z);
        least = level + LATE >= plan.levels && now < least ? now : least;
    }
    return least;
}

/* A fall to the end. */
static void slicer_round(Slicer *z, Schedule plan, Tree *best, double *best_cost)
{
    slicer_fall(z, plan, best, best_cost);
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
    z.whole = arena_copy(s->arena, t->keep, t->words * sizeof *z.whole);
    return z;
}

static void slicer_polish(Slicer *z, Tree *best, double *best_cost)
{
    slicer_load(z, best);
    subtree_improve(z->s, z->t, 10, 20);
    slicer_trim(z);
    slicer_keep(z, best, best_cost);
}

#define FALLS 4 /* of the herd, a choice between each two */
static const double falls[FALLS + 1] = {2.0, 0.7, 0.5, 0.35, 0.15};

typedef struct Member { /* of the herd */
    PathStep *steps;
    uint64_t *keep; /* labels not sliced */
    double cost;
} Member;

static void member_take(Slicer *z, Member *m)
{
    tree_get(z->t, m->steps, z->s->arena);
    memcpy(m->keep, z->t->keep, z->t->words * sizeof *m->keep);
}

static void member_load(Slicer *z, const Member *m)
{
    memcpy(z->t->keep, m->keep, z->t->words * sizeof *m->keep);
    slicer_note(z);
    tree_set(z->t, &z->s->model, m->steps, z->s->arena);
}

/* The first tree and bisections by turns, each sliced until it fits. */
static Member *herd_new(Slicer *z, const Net *net, const Tree *first, uint32_t n)
{
    Search *s = z->s;
    Member *herd = ARENA_ARRAY(s->arena, n, Member);
    for (uint32_t i = 0; i < n; i++) {
        Member *m = &herd[i];
        *m = (Member){ARENA_ARRAY(s->arena, net->n, PathStep),
                      ARENA_ARRAY(s->arena, first->words, uint64_t), INFINITY};
        slicer_load(z, first);
        if (i % 2 == 1 && net->n > BISECTED && !search_stopped(s)) {
            double imbalance = 0.02 + 0.38 * rng_unit(&s->rng);
            bisect_run(net, imbalance, &s->rng, s->arena, m->steps);
            memcpy(m->keep, z->whole, first->words * sizeof *m->keep);
            member_load(z, m);
            slicer_fill(z, 0.0);
        }
        member_take(z, m);
    }
    return herd;
}

/* By cost; then the worse half is gone and the better one is there twice. */
static void herd_choose(Member *herd, uint32_t n, uint32_t n_steps, uint32_t words)
{
    for (uint32_t i = 1; i < n; i++) {
        Member x = herd[i];
        uint32_t k = i;
        for (; k > 0 && herd[k - 1].cost > x.cost; k--) {
            herd[k] = herd[k - 1];
        }
        herd[k] = x;
    }
    uint32_t half = n - n / 2;
    for (uint32_t i = half; i < n; i++) {
        memcpy(herd[i].steps, herd[i - half].steps, n_steps * sizeof *herd->steps);
        memcpy(herd[i].keep, herd[i - half].keep, words * sizeof *herd->keep);
    }
}

static void herd_run(Slicer *z, Member *herd, uint32_t n, uint32_t sweeps, Tree *best,
                     double *best_cost)
{
    Search *s = z->s;
    double octaves = log2(falls[0] / falls[FALLS]);
    for (uint32_t g = 0; g < FALLS && !search_stopped(s); g++) {
        double part = log2(falls[g] / falls[g + 1]) / octaves;
        Schedule plan = {falls[g], falls[g + 1], 1000.0, (uint32_t)(LEVELS * part), sweeps};
        for (uint32_t i = 0; i < n && !search_stopped(s); i++) {
            member_load(z, &herd[i]);
            if (g + 1 == FALLS) {
                slicer_round(z, plan, best, best_cost);
            } else {
                herd[i].cost = slicer_fall(z, plan, best, best_cost);
                member_take(z, &herd[i]);
            }
        }
        herd_choose(herd, n, z->t->n - 1, z->t->words);
        search_progress(s, "slice", (Score){0.0, *best_cost, s->model.limit, 0.0});
    }
}

/* One fall of the first tree by itself, for a plan early on; the herd; rounds from the best.
 * More effort: as much larger a herd as longer falls. */
static void slicer_stage(Slicer *z, const Net *net, const Tree *first, Tree *last,
                         uint32_t units, uint64_t budget, Tree *best, double *best_cost)
{
    Search *s = z->s;
    ArenaMark mark = arena_mark(s->arena);
    uint32_t times = 1;
    while (times < 100 && (uint64_t)times * times < units) {
        times++;
    }
    uint64_t each = budget / z->t->n / LEVELS / (1 + times * (HERD + REFINES));
    uint32_t sweeps = (uint32_t)(each > GROUP ? each / GROUP * GROUP : each + 1);
    slicer_load(z, first);
    slicer_round(z, (Schedule){falls[0], falls[FALLS], 1000.0, LEVELS, sweeps}, best,
                 best_cost);
    herd_run(z, herd_new(z, net, first, times * HERD), times * HERD, sweeps, best, best_cost);
    for (uint32_t r = 0; r < times * REFINES && !search_stopped(s); r++) {
        tree_copy(last, best);
        slicer_load(z, last);
        slicer_round(z, (Schedule){r % 2 == 0 ? 0.5 : 0.25, 0.05, 1000.0, LEVELS, sweeps}, best,
                     best_cost);
    }
    slicer_polish(z, best, best_cost);
    arena_reset(s->arena, mark);
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
        slicer_stage(&z, net, &first, &last, units, units * unit, &best, &best_cost);
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
