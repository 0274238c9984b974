/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy: contract the pair whose result is smallest against what it replaces. Candidates are pairs that share a label
 * (at most NEIGHBOURS for each label, so that a label held by everybody stays harmless), in a heap; entries of dead
 * tensors are dropped when they come up. The random form bends the score and adds noise; runs differ by seed
 * only. */
#include <string.h>

#include "path/search.h"

#define NEIGHBOURS 16
#define PAIR_WORK  16 /* what a candidate costs beside its lists */

typedef struct Pair {
    double key;
    uint32_t a, b;
} Pair;

static bool pair_less(Pair x, Pair y)
{
    if (x.key < y.key || y.key < x.key) {
        return x.key < y.key;
    }
    return x.a != y.a ? x.a < y.a : x.b < y.b;
}

#define HEAP_ENTRY            Pair
#define HEAP_LESS             pair_less
#define HEAP_OWNER            const uint8_t * /* by tensor: is it dead? */
#define HEAP_DEAD(dead, pair) ((dead)[(pair).a] || (dead)[(pair).b])
#include "path/heap.def"

typedef struct Holders { /* live tensors of one label, dead ones dropped on the way */
    uint32_t *at;
    uint32_t n, cap;
} Holders;

typedef struct Greedy {
    Live live;
    GreedyStyle style;
    double shift; /* log2 of cost_mod */
    Rng *rng;
    Heap heap;
    Holders *of;     /* by label */
    uint32_t *stamp; /* by tensor: last one it was paired with */
} Greedy;

/* sign(s) log2(1 + |s|) of s = result / mod - (a + b) * mod, from log2 sizes, and the noise. */
static double pair_key(Greedy *g, uint32_t a, uint32_t b)
{
    double result, key;
    live_sizes(&g->live, a, b, &result);
    g->live.work += PAIR_WORK;
    double gain = result - g->shift;
    double x = g->live.size[a], y = g->live.size[b];
    double hi = x > y ? x : y, lo = x > y ? y : x;
    double lost = hi + g->shift + (hi - lo < 60.0 ? log2(1.0 + exp2(lo - hi)) : 0.0);
    double top = gain > lost ? gain : lost, gap = gain > lost ? gain - lost : lost - gain;
    if (gap <= 0.0) {
        key = 0.0;
    } else {
        double size = top + (gap < 60.0 ? log2(1.0 - exp2(-gap)) : 0.0);
        key = size < 60.0 ? log2(1.0 + exp2(size)) : size;
        key = gain > lost ? key : -key;
    }
    if (g->style.temperature > 0.0) {
        double u = rng_unit(g->rng);
        key += g->style.temperature * log2(-log2(u > 1e-300 ? u : 1e-300) + 1e-12);
    }
    return key;
}

/* Pairs `t` with its neighbours; those above `from` only when `once`, so that each first pair comes once. */
static void pair_up(Greedy *g, uint32_t t, bool once)
{
    for (uint32_t i = 0; i < g->live.n_legs[t]; i++) {
        Holders *h = &g->of[g->live.legs[t][i]];
        uint32_t kept = 0, paired = 0, k = 0;
        for (; k < h->n && paired < NEIGHBOURS; k++) {
            uint32_t other = h->at[k];
            if (g->live.dead[other]) {
                continue;
            }
            h->at[kept++] = other;
            if (other == t || (once && other > t)) {
                continue;
            }
            paired++;
            if (g->stamp[other] != t + 1) {
                g->stamp[other] = t + 1;
                Pair p = {pair_key(g, other, t), other, t};
                if (g->heap.n == g->heap.cap) {
                    heap_purge(&g->heap, g->live.arena, g->live.dead);
                }
                heap_push(&g->heap, g->live.arena, p);
            }
        }
        if (kept < k) {
            memmove(h->at + kept, h->at + k, (h->n - k) * sizeof *h->at);
            g->live.work += (h->n - k) / 16;
            h->n -= k - kept;
        }
    }
}

static void holders_purge(Greedy *g, Holders *h)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        if (!g->live.dead[h->at[i]]) {
            h->at[kept++] = h->at[i];
        }
    }
    h->n = kept;
}

static void hold(Greedy *g, uint32_t t)
{
    for (uint32_t i = 0; i < g->live.n_legs[t]; i++) {
        Holders *h = &g->of[g->live.legs[t][i]];
        if (h->n == h->cap) {
            holders_purge(g, h);
            if (h->n >= h->cap / 2) {
                h->at = vec_grow(g->live.arena, h->at, h->cap, &h->cap, sizeof *h->at);
            }
        }
        h->at[h->n++] = t;
    }
}

uint64_t greedy_run(const Net *net, GreedyStyle style, Rng *rng, Arena *scratch, PathStep *out)
{
    ArenaMark mark = arena_mark(scratch);
    Greedy g = {.style = style, .shift = log2(style.cost_mod), .rng = rng};
    live_init(&g.live, net, scratch);
    g.of = ARENA_ARRAY(scratch, net->n_labels, Holders);
    g.stamp = ARENA_ARRAY(scratch, (size_t)net->n * 2, uint32_t);
    for (uint32_t k = 0; k < net->n; k++) {
        hold(&g, k);
    }
    for (uint32_t k = 0; k < net->n; k++) {
        pair_up(&g, k, true);
    }
    uint32_t n_steps = 0;
    uint64_t most = style.most > 0 ? style.most : RUN_WORK_MOST;
    while (g.heap.n > 0 && g.live.work < most) {
        Pair p = heap_pop(&g.heap);
        if (g.live.dead[p.a] || g.live.dead[p.b]) {
            continue;
        }
        out[n_steps++] = (PathStep){p.a, p.b};
        uint32_t made = live_merge(&g.live, p.a, p.b);
        hold(&g, made);
        pair_up(&g, made, false);
    }
    uint64_t work = g.live.work < most ? g.live.work : RUN_WORK_MOST;
    live_finish(&g.live, out, &n_steps);
    arena_reset(scratch, mark);
    return work;
}

bool greedy_search(Search *s, const Net *net, PathStep *out)
{
    greedy_run(net, (GreedyStyle){1.0, 0.0, 0}, &s->rng, s->arena, out);
    return true;
}

bool random_greedy_search(Search *s, const Net *net, PathStep *out)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    greedy_search(s, net, out);
    Score best = tree_score(&s->model, net, out, s->arena);
    uint64_t runs = (uint64_t)128 * s->effort;
    search_plan(s, (runs + 1) * net->n);
    search_progress(s, "greedy", best);
    for (uint64_t i = 0; i < runs && !search_stopped(s); i++) {
        double u = rng_unit(&s->rng), w = rng_unit(&s->rng);
        GreedyStyle style = {0.1 + 3.9 * u, exp2(-10.0 * w), 0};
        if (greedy_run(net, style, &s->rng, s->arena, trial) == RUN_WORK_MOST) {
            break;
        }
        Score now = tree_score(&s->model, net, trial, s->arena);
        if (score_less(now, best)) {
            best = now;
            memcpy(out, trial, (net->n - 1) * sizeof *out);
        }
        search_count(s, net->n);
        search_progress(s, "random-greedy", best);
    }
    arena_reset(s->arena, mark);
    return true;
}
