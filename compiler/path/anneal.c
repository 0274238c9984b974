/* SPDX-License-Identifier: Apache-2.0 */
/* Annealing on trees. At an inner node p = (x, C) with x = (A, B), swap C with A or B: only the
 * legs of x change, and legs(x') = (A | C) & (B | p) so a proposal reads four label sets and
 * counts the bits of three; one whose first set alone costs too much stops there. Of wide sets
 * only the blocks that hold anything are read. The energy is the log2 cost of the two steps
 * concerned, not of the whole tree: small steps are improved as eagerly as the large ones they
 * may become; only steps `depth` below the whole tree's cost are let drift. No tensor may
 * outgrow the limit unless it did before. Populations are counted by the processor's
 * instruction where it has one; the numbers are the same. */
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

/* The words [from, to) of the four sets at the move, and what they hold. */
typedef struct Sets {
    const uint64_t *a, *c, *b, *p;
    uint64_t low_blocks, all_blocks; /* a and c; a, c and b: where there are any members */
} Sets;

typedef struct Move {
    double mid, low, top; /* log2 of x', of all labels of its step, of all labels of p's step */
} Move;

typedef struct Count {
    uint32_t mid, top;
} Count;

static inline uint32_t later(uint32_t x, uint32_t y)
{
    return x > y ? x : y;
}

static inline uint32_t earlier(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

static inline __attribute__((always_inline)) uint32_t low_count(const Sets *s, uint32_t from,
                                                                uint32_t to, bool native)
{
    uint32_t low = 0;
    for (uint32_t w = from; w < to; w++) {
        low += bits_of(s->a[w] | s->c[w], native);
    }
    return low;
}

static inline __attribute__((always_inline)) void rest_count(const Sets *s, uint32_t from,
                                                             uint32_t to, bool native, Count *n)
{
    for (uint32_t w = from; w < to; w++) {
        uint64_t x = (s->a[w] | s->c[w]) & (s->b[w] | s->p[w]);
        n->mid += bits_of(x, native);
        n->top += bits_of(x | s->b[w], native);
    }
}

static inline __attribute__((always_inline)) double mixed_sum(const Tree *t, uint32_t w,
                                                              uint64_t set)
{
    double sum = 0.0;
    for (uint64_t s = set; s != 0; s &= s - 1) {
        sum += t->bit_weight[w * 64 + (uint32_t)__builtin_ctzll(s)];
    }
    return sum;
}

/* All three in one pass: best where the sets are narrow. */
static inline __attribute__((always_inline)) Move move_weigh(const Tree *t, const Sets *s,
                                                             bool native)
{
    Move m = {0.0, 0.0, 0.0};
    for (uint32_t i = 0; i < t->n_runs; i++) {
        uint32_t mid = 0, low = 0, top = 0;
        for (uint32_t w = t->run[i].from; w < t->run[i].to; w++) {
            uint64_t u = s->a[w] | s->c[w], x = u & (s->b[w] | s->p[w]);
            low += bits_of(u, native);
            mid += bits_of(x, native);
            top += bits_of(x | s->b[w], native);
        }
        m.low += t->run[i].weight * low;
        m.mid += t->run[i].weight * mid;
        m.top += t->run[i].weight * top;
    }
    for (uint32_t w = t->mixed; w < t->words; w++) {
        const double *weight = t->bit_weight + w * 64;
        uint64_t u = s->a[w] | s->c[w], x = u & (s->b[w] | s->p[w]);
        for (uint64_t r = u; r != 0; r &= r - 1) {
            double d = weight[__builtin_ctzll(r)];
            m.low += d;
            m.mid += (x & r & -r) != 0 ? d : 0.0;
        }
        for (uint64_t r = x | s->b[w]; r != 0; r &= r - 1) {
            m.top += weight[__builtin_ctzll(r)];
        }
    }
    return m;
}

/* log2 of all labels of a and c: the step of x'. */
static inline __attribute__((always_inline)) double low_weigh(const Tree *t, const Sets *s,
                                                              bool native)
{
    double low = 0.0;
    for (uint32_t i = 0; i < t->n_runs; i++) {
        uint32_t n = 0, from = t->run[i].from, to = t->run[i].to;
        for (uint64_t at = s->low_blocks & t->run[i].blocks; at != 0; at &= at - 1) {
            uint32_t w = (uint32_t)__builtin_ctzll(at) * t->block;
            n += low_count(s, later(w, from), earlier(w + t->block, to), native);
        }
        low += t->run[i].weight * n;
    }
    for (uint32_t w = t->mixed; w < t->words; w++) {
        low += mixed_sum(t, w, s->a[w] | s->c[w]);
    }
    return low;
}

/* log2 of x', and of all labels of p's step. */
static inline __attribute__((always_inline)) void
rest_weigh(const Tree *t, const Sets *s, double *mid, double *top, bool native)
{
    *mid = *top = 0.0;
    for (uint32_t i = 0; i < t->n_runs; i++) {
        uint32_t from = t->run[i].from, to = t->run[i].to;
        Count n = {0, 0};
        for (uint64_t at = s->all_blocks & t->run[i].blocks; at != 0; at &= at - 1) {
            uint32_t w = (uint32_t)__builtin_ctzll(at) * t->block;
            rest_count(s, later(w, from), earlier(w + t->block, to), native, &n);
        }
        *mid += t->run[i].weight * n.mid;
        *top += t->run[i].weight * n.top;
    }
    for (uint32_t w = t->mixed; w < t->words; w++) {
        uint64_t x = (s->a[w] | s->c[w]) & (s->b[w] | s->p[w]);
        *mid += mixed_sum(t, w, x);
        *top += mixed_sum(t, w, x | s->b[w]);
    }
}

/* x becomes (A, C): its labels follow. */
static inline __attribute__((always_inline)) void move_legs(Tree *t, uint32_t x, const Sets *s,
                                                            bool sparse)
{
    uint64_t *legs = tree_legs(t, x);
    if (!sparse) {
        for (uint32_t w = 0; w < t->words; w++) {
            legs[w] = (s->a[w] | s->c[w]) & (s->b[w] | s->p[w]);
        }
        return;
    }
    uint64_t some = 0;
    for (uint64_t at = s->all_blocks; at != 0; at &= at - 1) {
        uint32_t from = (uint32_t)__builtin_ctzll(at) * t->block;
        uint64_t any = 0;
        for (uint32_t w = from; w < earlier(from + t->block, t->words); w++) {
            legs[w] = (s->a[w] | s->c[w]) & (s->b[w] | s->p[w]);
            any |= legs[w];
        }
        some |= any != 0 ? at & -at : 0;
    }
    t->some[x] = some;
}

static inline __attribute__((always_inline)) void sweep_body(Tree *t, const Model *m,
                                                             double heat, double floor,
                                                             Luck *luck, bool native,
                                                             bool sparse)
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
        Sets set = {tree_legs(t, a), tree_legs(t, c), tree_legs(t, b), tree_legs(t, p), 0, 0};
        if (sparse) {
            set.low_blocks = t->some[a] | t->some[c];
            set.all_blocks = set.low_blocks | t->some[b];
        }
        double was = soft_max(m->soft, soft_max(m->soft, t->cost[x], t->cost[p]), floor);
        double most = heat * luck->table[(r >> 40) & (LUCK_STEPS - 1)];
        Move v;
        if (sparse) {
            v.low = low_weigh(t, &set, native);
            if (model_least(m, v.low) - was > most) {
                continue; /* whatever the other step costs */
            }
            rest_weigh(t, &set, &v.mid, &v.top, native);
        } else {
            v = move_weigh(t, &set, native);
        }
        if (v.mid > m->limit + 1e-9 && v.mid >= t->size[x]) {
            continue;
        }
        double low = model_step(m, v.low, t->size[a], t->size[c], v.mid);
        double top = model_step(m, v.top, v.mid, t->size[b], t->size[p]);
        double now = soft_max(m->soft, soft_max(m->soft, low, top), floor);
        if (now - was > most) {
            continue;
        }
        move_legs(t, x, &set, sparse);
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
    if (t->sparse) {
        sweep_body(t, m, heat, floor, luck, false, true);
    } else {
        sweep_body(t, m, heat, floor, luck, false, false);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) static void sweep_native(Tree *t, const Model *m, double heat,
                                                           double floor, Luck *luck)
{
    if (t->sparse) {
        sweep_body(t, m, heat, floor, luck, true, true);
    } else {
        sweep_body(t, m, heat, floor, luck, true, false);
    }
}

static bool sweep_has_native(void)
{
    return __builtin_cpu_supports("popcnt") != 0;
}
#else
static void sweep_native(Tree *t, const Model *m, double heat, double floor, Luck *luck)
{
    if (t->sparse) {
        sweep_body(t, m, heat, floor, luck, false, true);
    } else {
        sweep_body(t, m, heat, floor, luck, false, false);
    }
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
