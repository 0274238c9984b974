/* SPDX-License-Identifier: Apache-2.0 */
/* Annealing on trees. At an inner node p = (x, C) with x = (A, B), swap C with A or B: the
 * steps become A with C and B with the result, whose labels are those of A | C and of B | p,
 * and only the legs of x change: legs(x') = (A | C) & (B | p). Sizes are kept, so that what
 * counts is what A and C share, and B and p; where no label has more than two holders the
 * second follows from the first. Weights are multiples of a small power of two: all these sums
 * are exact. Of wide sets only the blocks that hold anything are read.
 *
 * The energy is the log2 cost of the two steps concerned, not of the whole tree: small steps
 * are improved as eagerly as the large ones they may become; only steps `depth` below the whole
 * tree's cost are let drift, and those far below it are visited less often. No tensor may
 * outgrow the limit unless it did before. Populations are counted by the processor's
 * instruction where it has one; the numbers are the same. */
#include "path/search.h"

#define MATTERS                                                                                \
    18.0        /* log2 below the least cost so far to which steps are visited each time       \
                 */
#define OFTEN 4 /* times that those are visited for one visit of all */

static inline uint64_t walk_next(Walk *l)
{
    l->state ^= l->state << 13;
    l->state ^= l->state >> 7;
    l->state ^= l->state << 17;
    return l->state;
}

typedef struct Kind { /* of tree and machine: constants of the compiled sweeps */
    bool native, sparse;
    bool edges; /* no label has more than two holders */
} Kind;

static inline uint32_t bits_of(uint64_t x, bool native)
{
    return native ? (uint32_t)__builtin_popcountll(x) : word_bits(x);
}

#define FORCE static inline __attribute__((always_inline))

FORCE uint32_t later(uint32_t x, uint32_t y)
{
    return x > y ? x : y;
}

FORCE uint32_t earlier(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

FORCE double mixed_sum(const Tree *t, uint32_t w, uint64_t set)
{
    double sum = 0.0;
    for (uint64_t s = set; s != 0; s &= s - 1) {
        sum += t->bit_weight[w * 64 + (uint32_t)__builtin_ctzll(s)];
    }
    return sum;
}

/* log2 of the labels that both tensors have. */
FORCE double shared_weigh(const Tree *t, uint32_t x, uint32_t y, Kind k)
{
    const uint64_t *a = tree_legs(t, x), *b = tree_legs(t, y);
    uint64_t blocks = k.sparse ? t->some[x] & t->some[y] : 0;
    double sum = 0.0;
    for (uint32_t i = 0; i < t->n_runs; i++) {
        uint32_t n = 0, from = t->run[i].from, to = t->run[i].to;
        if (!k.sparse) {
            for (uint32_t w = from; w < to; w++) {
                n += bits_of(a[w] & b[w], k.native);
            }
        }
        for (uint64_t at = blocks & t->run[i].blocks; at != 0; at &= at - 1) {
            uint32_t first = (uint32_t)__builtin_ctzll(at) * t->block;
            for (uint32_t w = later(first, from); w < earlier(first + t->block, to); w++) {
                n += bits_of(a[w] & b[w], k.native);
            }
        }
        sum += t->run[i].weight * n;
    }
    for (uint32_t w = t->mixed; w < t->words; w++) {
        sum += mixed_sum(t, w, a[w] & b[w]);
    }
    return sum;
}

/* The four tensors of a move: ((a, b), c) -> ((a, c), b), within p. */
typedef struct Swap {
    uint32_t a, b, c, p;
} Swap;

FORCE uint64_t swap_word(const Tree *t, Swap s, uint32_t w)
{
    return (tree_legs(t, s.a)[w] | tree_legs(t, s.c)[w]) &
           (tree_legs(t, s.b)[w] | tree_legs(t, s.p)[w]);
}

/* log2 of x' where labels have any number of holders. */
FORCE double swap_weigh(const Tree *t, Swap s, Kind k)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < t->n_runs; i++) {
        uint32_t n = 0;
        for (uint32_t w = t->run[i].from; w < t->run[i].to; w++) {
            n += bits_of(swap_word(t, s, w), k.native);
        }
        sum += t->run[i].weight * n;
    }
    for (uint32_t w = t->mixed; w < t->words; w++) {
        sum += mixed_sum(t, w, swap_word(t, s, w));
    }
    return sum;
}

/* x becomes (A, C): its labels follow. */
FORCE void swap_legs(Tree *t, uint32_t x, Swap s, Kind k)
{
    uint64_t *legs = tree_legs(t, x);
    if (!k.sparse) {
        for (uint32_t w = 0; w < t->words; w++) {
            legs[w] = swap_word(t, s, w);
        }
        return;
    }
    uint64_t some = 0;
    for (uint64_t at = t->some[s.a] | t->some[s.b] | t->some[s.c]; at != 0; at &= at - 1) {
        uint32_t from = (uint32_t)__builtin_ctzll(at) * t->block;
        uint64_t any = 0;
        for (uint32_t w = from; w < earlier(from + t->block, t->words); w++) {
            legs[w] = swap_word(t, s, w);
            any |= legs[w];
        }
        some |= any != 0 ? at & -at : 0;
    }
    t->some[x] = some;
}

/* Without a branch: nothing predicts it. */
FORCE void swap_if(uint32_t yes, uint32_t *x, uint32_t *y)
{
    uint32_t change = (0 - yes) & (*x ^ *y);
    *x ^= change;
    *y ^= change;
}

FORCE double lesser(double x, double y)
{
    return x < y ? x : y;
}

FORCE double greater(double x, double y)
{
    return x > y ? x : y;
}

FORCE void sweep_body(Tree *t, const Model *m, double heat, double floor, Walk *walk, Kind k)
{
    uint32_t n = t->n;
    bool needs_mid = m->limit < INFINITY || m->objective != PATH_FLOPS;
    const double *size = t->size;
    for (uint32_t i = 0; i < walk->n_nodes; i++) {
        uint64_t r = walk_next(walk);
        uint32_t p = walk->node[i];
        uint32_t x = t->left[p], c = t->right[p];
        swap_if((x < n) | ((c >= n) & (uint32_t)(r & 1)), &x, &c);
        if (x < n) {
            continue;
        }
        uint32_t a = t->left[x], b = t->right[x];
        swap_if((uint32_t)(r >> 1) & 1, &a, &b);
        double was = rough_max(m, rough_max(m, t->cost[x], t->cost[p]), floor);
        double most = was + heat * walk->table[(r >> 40) & (WALK_STEPS - 1)];
        /* What a and c share, x and c share. */
        double shared = size[x] + size[c] - t->both[p], pair = size[a] + size[c];
        double low = pair - lesser(shared, lesser(size[a], size[c]));
        double rest = t->both[x] + size[c] - shared;
        double top = k.edges ? rest - shared : size[p];
        if (model_least(m, greater(low, top)) > most) {
            continue; /* whatever the sets are */
        }
        double met = shared_weigh(t, a, c, k);
        low = pair - met;
        if (k.edges) {
            top = rest - met;
        } else {
            if (model_least(m, low) > most) {
                continue;
            }
            top = size[b] + size[p] - shared_weigh(t, b, p, k);
        }
        Swap swap = {a, b, c, p};
        double mid = k.edges ? low - met : needs_mid ? swap_weigh(t, swap, k) : 0.0;
        if (mid > m->limit + 1e-9 && mid >= size[x]) {
            continue;
        }
        double low_cost = model_step(m, low, size[a], size[c], mid);
        double top_cost = model_step(m, top, mid, size[b], size[p]);
        double now = rough_max(m, rough_max(m, low_cost, top_cost), floor);
        if (now > most) {
            continue;
        }
        if (!k.edges && !needs_mid) {
            mid = swap_weigh(t, swap, k);
        }
        swap_legs(t, x, swap, k);
        t->left[x] = a;
        t->right[x] = c;
        t->left[p] = x;
        t->right[p] = b;
        t->size[x] = mid;
        t->both[x] = low;
        t->both[p] = top;
        t->cost[x] = low_cost;
        t->cost[p] = top_cost;
    }
}

#define SWEEP(native)                                                                          \
    if (t->sparse) {                                                                           \
        if (t->edges) {                                                                        \
            sweep_body(t, m, heat, floor, walk, (Kind){native, true, true});                   \
        } else {                                                                               \
            sweep_body(t, m, heat, floor, walk, (Kind){native, true, false});                  \
        }                                                                                      \
    } else if (t->edges) {                                                                     \
        sweep_body(t, m, heat, floor, walk, (Kind){native, false, true});                      \
    } else {                                                                                   \
        sweep_body(t, m, heat, floor, walk, (Kind){native, false, false});                     \
    }

static void sweep_plain(Tree *t, const Model *m, double heat, double floor, Walk *walk)
{
    SWEEP(false)
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) static void sweep_native(Tree *t, const Model *m, double heat,
                                                           double floor, Walk *walk)
{
    SWEEP(true)
}

static bool sweep_has_native(void)
{
    return __builtin_cpu_supports("popcnt") != 0;
}
#else
static void sweep_native(Tree *t, const Model *m, double heat, double floor, Walk *walk)
{
    SWEEP(false)
}

static bool sweep_has_native(void)
{
    return false;
}
#endif

Walk walk_new(Search *s, uint32_t n)
{
    double *table = ARENA_ARRAY(s->arena, WALK_STEPS, double);
    for (uint32_t i = 0; i < WALK_STEPS; i++) {
        table[i] = -log(((double)i + 0.5) / WALK_STEPS);
    }
    return (Walk){rng_next(&s->rng) | 1, table, ARENA_ARRAY(s->arena, n, uint32_t), 0,
                  INFINITY};
}

/* One visit of each listed node. */
static void visit(Search *s, Tree *t, Walk *walk, double heat, double floor, bool native)
{
    if (native) {
        sweep_native(t, &s->model, heat, floor, walk);
    } else {
        sweep_plain(t, &s->model, heat, floor, walk);
    }
}

void anneal_sweeps(Search *s, Tree *t, Walk *walk, double heat, double depth, uint32_t sweeps)
{
    double total = tree_energy(t);
    bool native = sweep_has_native() && !s->options->portable;
    uint64_t left = (uint64_t)sweeps * t->n;
    walk->least = total < walk->least ? total : walk->least;
    search_count(s, left + left * t->words / ANNEAL_WIDE);
    while (left > 0) {
        walk->n_nodes = t->n - 1;
        for (uint32_t i = 0; i < walk->n_nodes; i++) {
            walk->node[i] = t->n + i;
        }
        visit(s, t, walk, heat, total - depth, native);
        left -= left < t->n ? left : t->n;
        walk->n_nodes = 0;
        for (uint32_t x = t->n; x < 2 * t->n - 1; x++) {
            walk->node[walk->n_nodes] = x;
            walk->n_nodes += t->cost[x] > walk->least - MATTERS || depth < MATTERS * 2.0;
        }
        for (uint32_t k = 1; k < OFTEN && left > 0 && walk->n_nodes > 0; k++) {
            visit(s, t, walk, heat, total - depth, native);
            left -= left < walk->n_nodes ? left : walk->n_nodes;
        }
    }
}

double schedule_heat(const Schedule *plan, uint32_t level)
{
    double part = plan->levels > 1 ? (double)level / (plan->levels - 1) : 1.0;
    return plan->hot * exp2(part * log2(plan->cold / plan->hot));
}

void anneal_run(Search *s, Tree *t, Schedule plan)
{
    if (t->n < 3) {
        return;
    }
    ArenaMark mark = arena_mark(s->arena);
    Walk walk = walk_new(s, t->n);
    Tree best = tree_clone(t, s->arena);
    Score best_score = tree_total(t, &s->model);
    for (uint32_t level = 0; level < plan.levels && !search_stopped(s); level++) {
        anneal_sweeps(s, t, &walk, schedule_heat(&plan, level), plan.depth, plan.sweeps);
        Score now = tree_total(t, &s->model);
        if (score_less(now, best_score)) {
            best_score = now;
            tree_copy(&best, t);
        }
    }
    tree_copy(t, &best);
    arena_reset(s->arena, mark);
}
