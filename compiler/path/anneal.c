/* SPDX-License-Identifier: Apache-2.0 */
/* Annealing on trees. At an inner node p = (x, C) with x = (A, B), swap C with A or B: only the
 * legs of x change, and legs(x') = (A | C) & (B | p) so a proposal reads four label sets and
 * counts the bits of three. The energy is the log2 cost of the two steps concerned, not of the
 * whole tree: small steps are improved as eagerly as the large ones they may become; only steps
 * `depth` below the whole tree's cost are let drift. No tensor may outgrow the limit unless it
 * did before. Populations are counted by the processor's instruction where it has one; the
 * numbers are the same. */
#include <string.h>

#include "path/search.h"

static inline uint64_t luck_next(Luck *l)
{
    l->state ^= l->state << 13;
    l->state ^= l->state >> 7;
    l->state ^= l->state << 17;
    return l->state;
}

static inline uint32_t bits_of(uint64_t x, bool native)
{
    return native ? (uint32_t)__builtin_popcountll(x) : word_bits(x);
}

typedef struct Move {
    double mid, low, top; /* log2 of x', of all labels of its step, of all labels of p's step */
} Move;

static inline __attribute__((always_inline)) Move move_weigh(const Tree *t, const uint64_t *a,
                                                             const uint64_t *c,
                                                             const uint64_t *b,
                                                             const uint64_t *p, bool native)
{
    Move m = {0.0, 0.0, 0.0};
    for (uint32_t i = 0; i < t->n_runs; i++) {
        uint32_t mid = 0, low = 0, top = 0;
        for (uint32_t w = t->run[i].from; w < t->run[i].to; w++) {
            uint64_t u = a[w] | c[w], x = u & (b[w] | p[w]);
            low += bits_of(u, native);
            mid += bits_of(x, native);
            top += bits_of(x | b[w], native);
        }
        m.low += t->run[i].weight * low;
        m.mid += t->run[i].weight * mid;
        m.top += t->run[i].weight * top;
    }
    for (uint32_t w = t->mixed; w < t->words; w++) {
        const double *weight = t->bit_weight + w * 64;
        uint64_t u = a[w] | c[w], x = u & (b[w] | p[w]);
        for (uint64_t s = u; s != 0; s &= s - 1) {
            double d = weight[__builtin_ctzll(s)];
            m.low += d;
            m.mid += (x & s & -s) != 0 ? d : 0.0;
        }
        for (uint64_t s = x | b[w]; s != 0; s &= s - 1) {
            m.top += weight[__builtin_ctzll(s)];
        }
    }
    return m;
}

static inline __attribute__((always_inline)) void
sweep_body(Tree *t, const Model *m, double heat, double floor, Luck *luck, bool native)
{
    uint32_t n = t->n, end = 2 * n - 1;
    for (uint32_t p = n; p < end; p++) {
        uint64_t r = luck_next(luck);
        uint32_t x = t->left[p], c = t->right[p];
        if (x < n || (c >= n && (r & 1) != 0)) {
            uint32_t other = x;
            x = c;
            c = other;
        }
        if (x < n) {
            continue;
        }
        uint32_t a = t->left[x], b = t->right[x];
        if ((r & 2) != 0) {
            uint32_t other = a;
            a = b;
            b = other;
        }
        Move v = move_weigh(t, tree_legs(t, a), tree_legs(t, c), tree_legs(t, b),
                            tree_legs(t, p), native);
        if (v.mid > m->limit + 1e-9 && v.mid >= t->size[x]) {
            continue;
        }
        double low = model_step(m, v.low, t->size[a], t->size[c], v.mid);
        double top = model_step(m, v.top, v.mid, t->size[b], t->size[p]);
        double now = soft_max(m->soft, soft_max(m->soft, low, top), floor);
        double was = soft_max(m->soft, soft_max(m->soft, t->cost[x], t->cost[p]), floor);
        if (now - was > heat * luck->table[(r >> 40) & (LUCK_STEPS - 1)]) {
            continue;
        }
        uint64_t *legs = tree_legs(t, x);
        const uint64_t *la = tree_legs(t, a), *lb = tree_legs(t, b), *lc = tree_legs(t, c),
                       *lp = tree_legs(t, p);
        for (uint32_t w = 0; w < t->words; w++) {
            legs[w] = (la[w] | lc[w]) & (lb[w] | lp[w]);
        }
        t->left[x] = a;
        t->right[x] = c;
        t->left[p] = x;
        t->right[p] = b;
        t->size[x] = v.mid;
        t->cost[x] = low;
        t->cost[p] = top;
    }
}

static void sweep_plain(Tree *t, const Model *m, double heat, double floor, Luck *luck)
{
    sweep_body(t, m, heat, floor, luck, false);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) static void sweep_native(Tree *t, const Model *m, double heat,
                                                           double floor, Luck *luck)
{
    sweep_body(t, m, heat, floor, luck, true);
}

static bool sweep_has_native(void)
{
    return __builtin_cpu_supports("popcnt") != 0;
}
#else
static void sweep_native(Tree *t, const Model *m, double heat, double floor, Luck *luck)
{
    sweep_body(t, m, heat, floor, luck, false);
}

static bool sweep_has_native(void)
{
    return false;
}
#endif

Luck luck_new(Search *s)
{
    double *table = ARENA_ARRAY(s->arena, LUCK_STEPS, double);
    for (uint32_t i = 0; i < LUCK_STEPS; i++) {
        table[i] = -log(((double)i + 0.5) / LUCK_STEPS);
    }
    return (Luck){rng_next(&s->rng) | 1, table};
}

void anneal_sweeps(Search *s, Tree *t, Luck *luck, double heat, double depth, uint32_t sweeps)
{
    double floor = tree_total(t, &s->model).cost - depth;
    bool native = sweep_has_native();
    for (uint32_t i = 0; i < sweeps; i++) {
        if (native) {
            sweep_native(t, &s->model, heat, floor, luck);
        } else {
            sweep_plain(t, &s->model, heat, floor, luck);
        }
    }
    s->done += (uint64_t)sweeps * t->n;
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
    Luck luck = luck_new(s);
    Tree best = tree_clone(t, s->arena);
    Score best_score = tree_total(t, &s->model);
    for (uint32_t level = 0; level < plan.levels && !search_stopped(s); level++) {
        anneal_sweeps(s, t, &luck, schedule_heat(&plan, level), plan.depth, plan.sweeps);
        Score now = tree_total(t, &s->model);
        if (score_less(now, best_score)) {
            best_score = now;
            tree_copy(&best, t);
        }
    }
    tree_copy(t, &best);
    arena_reset(s->arena, mark);
}
