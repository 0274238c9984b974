/* SPDX-License-Identifier: Apache-2.0 */
/* A light cut of a set of operands in two. Heavily tied operands are merged by pairs, level by level, until few are
 * left; those are halved by growing from random ones, and the halves are refined by Fiduccia-Mattheyses passes (each
 * vertex moved at most once, the best prefix kept) at every level on the way back. Coarse levels move whole regions, which single
 * operands never do; fine ones only look along the cut. */
#include <math.h>
#include <string.h>

#include "path/cut.h"

#define COARSEST  48 /* vertices that are not merged further */
#define STARTS    6  /* halvings of those */
#define PASSES    8  /* over them; a level above takes fewer */
#define LEVELS    40
#define RUNS      3     /* of all that, where it is cheap against what it decides: */
#define RUNS_FROM 500   /* from so many vertices */
#define RUNS_TO   15000 /* to so many: more take too long */
#define PINS_MOST 64    /* of a net that merging looks at */
#define SHRINKS   0.92

typedef struct Gain {
    double gain;
    uint32_t v, version;
} Gain;

static bool gain_more(Gain x, Gain y)
{
    if (x.gain > y.gain || y.gain > x.gain) {
        return x.gain > y.gain;
    }
    return x.v < y.v;
}

#define HEAP_ENTRY Gain
#define HEAP_LESS  gain_more
#include "path/heap.def"

typedef struct Cut {
    const Hyper *h;
    double share; /* least part of the mass on a side */
    Rng *rng;
    Arena *arena;
    uint8_t *side, *moved;
    uint32_t *count[2]; /* by net: pins on each side */
    uint32_t *version, *trail;
    Heap heap;
    uint64_t work;
} Cut;

/* Whether v is on a net that is cut, or would be heard of all the same. */
static void gain_push(Cut *c, uint32_t v, bool inside)
{
    const Hyper *h = c->h;
    double gain = 0.0;
    bool cut = false;
    uint8_t from = c->side[v];
    for (uint32_t i = h->start[v]; i < h->start[v + 1]; i++) {
        uint32_t l = h->net[i];
        bool alone = c->count[from][l] == 1, none_there = c->count[1 - from][l] == 0;
        cut = cut || !none_there;
        gain += alone && !none_there   ? h->weight[l]
                : none_there && !alone ? -h->weight[l]
                                       : 0.0;
    }
    c->work += h->start[v + 1] - h->start[v];
    if (cut || inside) {
        heap_push(&c->heap, c->arena, (Gain){gain, v, ++c->version[v]});
        c->work += 4;
    }
}

static void vertex_move(Cut *c, uint32_t v)
{
    const Hyper *h = c->h;
    uint8_t from = c->side[v];
    c->side[v] = 1 - from;
    for (uint32_t i = h->start[v]; i < h->start[v + 1]; i++) {
        c->count[from][h->net[i]]--;
        c->count[1 - from][h->net[i]]++;
    }
}

/* Gains of vertices next to v change only where a count is about 0 or 1. */
static void neighbours_push(Cut *c, uint32_t v)
{
    const Hyper *h = c->h;
    for (uint32_t i = h->start[v]; i < h->start[v + 1]; i++) {
        uint32_t l = h->net[i];
        if (c->count[0][l] > 2 && c->count[1][l] > 2) {
            continue;
        }
        for (uint32_t k = h->first[l]; k < h->first[l + 1]; k++) {
            uint32_t u = h->pin[k];
            if (u != v && !c->moved[u]) {
                gain_push(c, u, true);
            }
        }
    }
}

/* One pass, which ends after `patience` moves without a gain; returns the gain kept. */
static double fm_pass(Cut *c, bool inside, uint32_t patience)
{
    const Hyper *h = c->h;
    uint64_t on[2] = {0, 0};
    uint32_t n_trail = 0, keep = 0;
    double sum = 0.0, best = 0.0;
    c->heap.n = 0;
    for (uint32_t v = 0; v < h->n; v++) {
        on[c->side[v]] += h->mass[v];
        c->moved[v] = 0;
        gain_push(c, v, inside);
    }
    uint64_t least = (uint64_t)(c->share * (double)(on[0] + on[1]));
    least = least < 1 ? 1 : least;
    while (c->heap.n > 0 && n_trail < keep + patience) {
        Gain g = heap_pop(&c->heap);
        uint32_t from = c->side[g.v];
        if (c->moved[g.v] || g.version != c->version[g.v] || on[from] < least + h->mass[g.v]) {
            continue;
        }
        on[from] -= h->mass[g.v];
        on[1 - from] += h->mass[g.v];
        vertex_move(c, g.v);
        c->moved[g.v] = 1;
        c->trail[n_trail++] = g.v;
        sum += g.gain;
        if (sum > best + 1e-9) {
            best = sum;
            keep = n_trail;
        }
        neighbours_push(c, g.v);
    }
    while (n_trail > keep) {
        vertex_move(c, c->trail[--n_trail]);
    }
    return best;
}

static double cut_weight(Cut *c)
{
    const Hyper *h = c->h;
    double cut = 0.0;
    for (uint32_t l = 0; l < h->n_nets; l++) {
        c->count[0][l] = c->count[1][l] = 0;
        for (uint32_t k = h->first[l]; k < h->first[l + 1]; k++) {
            c->count[c->side[h->pin[k]]][l]++;
        }
        cut += c->count[0][l] > 0 && c->count[1][l] > 0 ? h->weight[l] : 0.0;
    }
    c->work += h->first[h->n_nets];
    return cut;
}

static void cut_open(Cut *c, const Hyper *h)
{
    c->h = h;
    c->side = ARENA_ARRAY(c->arena, h->n, uint8_t);
    c->moved = ARENA_ARRAY(c->arena, h->n, uint8_t);
    c->version = ARENA_ARRAY(c->arena, h->n, uint32_t);
    c->trail = ARENA_ARRAY(c->arena, h->n, uint32_t);
    c->count[0] = ARENA_ARRAY(c->arena, h->n_nets, uint32_t);
    c->count[1] = ARENA_ARRAY(c->arena, h->n_nets, uint32_t);
    c->heap.at = NULL;
    c->heap.cap = 0;
}

/* Grows side 1 breadth first from a random vertex to half of the mass. */
static void grow_half(Cut *c)
{
    const Hyper *h = c->h;
    uint32_t *queue = c->trail, head = 0, tail = 0, next = (uint32_t)rng_below(c->rng, h->n);
    uint64_t all = 0, taken = 0;
    for (uint32_t v = 0; v < h->n; v++) {
        c->side[v] = c->moved[v] = 0;
        all += h->mass[v];
    }
    while (taken < all / 2 && (head < tail || tail < h->n)) {
        if (head == tail) {
            while (c->moved[next]) {
                next = (next + 1) % h->n;
            }
            c->moved[next] = 1;
            queue[tail++] = next;
        }
        uint32_t v = queue[head++];
        if (taken > 0 && taken + h->mass[v] > all - all / 4) {
            continue; /* a vertex of most of the mass; something lighter is left or it ends */
        }
        c->side[v] = 1;
        taken += h->mass[v];
        for (uint32_t i = h->start[v]; i < h->start[v + 1]; i++) {
            for (uint32_t k = h->first[h->net[i]]; k < h->first[h->net[i] + 1]; k++) {
                uint32_t u = h->pin[k];
                if (!c->moved[u]) {
                    c->moved[u] = 1;
                    queue[tail++] = u;
                }
            }
        }
    }
}

/* The best of a few halvings; leaves it in `side`, which is as long as h->n. */
static double cut_coarsest(Cut *c, const Hyper *h, uint8_t *side)
{
    ArenaMark mark = arena_mark(c->arena);
    double least = INFINITY;
    cut_open(c, h);
    for (uint32_t trial = 0; trial < STARTS; trial++) {
        grow_half(c);
        double cut = cut_weight(c), gain = 1.0;
        for (int pass = 0; pass < PASSES && gain > 0.0; pass++) {
            gain = fm_pass(c, true, 50 + h->n / 4);
            cut -= gain;
        }
        if (cut < least - 1e-9) {
            least = cut;
            memcpy(side, c->side, h->n);
        }
    }
    arena_reset(c->arena, mark);
    return least;
}

static double cut_refine(Cut *c, const Hyper *h, uint8_t *side)
{
    ArenaMark mark = arena_mark(c->arena);
    cut_open(c, h);
    memcpy(c->side, side, h->n);
    double cut = cut_weight(c), gain = 1.0;
    for (int pass = 0; pass < PASSES && gain > 0.0; pass++) {
        gain = fm_pass(c, false, 60 + h->n / 50);
        cut -= gain;
    }
    memcpy(side, c->side, h->n);
    arena_reset(c->arena, mark);
    return cut;
}

/* Partners: each vertex in random order takes the free neighbour with which it shares most. Returns the vertices left; `to`: by vertex,
 * the one it becomes. */
static uint32_t pairs_find(Cut *c, const Hyper *h, uint64_t heaviest, uint32_t *to)
{
    ArenaMark mark = arena_mark(c->arena);
    uint32_t *order = ARENA_ARRAY(c->arena, h->n, uint32_t),
             *met = ARENA_ARRAY(c->arena, h->n, uint32_t), n = 0;
    double *shared = ARENA_ARRAY(c->arena, h->n, double);
    for (uint32_t v = 0; v < h->n; v++) {
        order[v] = v;
        to[v] = UINT32_MAX;
    }
    for (uint32_t v = h->n; v > 1; v--) {
        uint32_t k = (uint32_t)rng_below(c->rng, v), x = order[k];
        order[k] = order[v - 1];
        order[v - 1] = x;
    }
    for (uint32_t i = 0; i < h->n; i++) {
        uint32_t v = order[i], n_met = 0, pick = UINT32_MAX;
        if (to[v] != UINT32_MAX) {
            continue;
        }
        for (uint32_t k = h->start[v]; k < h->start[v + 1]; k++) {
            uint32_t l = h->net[k], pins = h->first[l + 1] - h->first[l];
            for (uint32_t j = h->first[l]; j < h->first[l + 1] && pins <= PINS_MOST; j++) {
                uint32_t u = h->pin[j];
                if (u != v && to[u] == UINT32_MAX && h->mass[u] + h->mass[v] <= heaviest) {
                    if (shared[u] <= 0.0) {
                        met[n_met++] = u;
                    }
                    shared[u] += h->weight[l] / (pins - 1);
                }
            }
            c->work += pins;
        }
        for (uint32_t k = 0; k < n_met; k++) {
            uint32_t u = met[k];
            if (pick == UINT32_MAX || shared[u] / h->mass[u] > shared[pick] / h->mass[pick]) {
                pick = u;
            }
        }
        for (uint32_t k = 0; k < n_met; k++) {
            shared[met[k]] = 0.0;
        }
        to[v] = n;
        if (pick != UINT32_MAX) {
            to[pick] = n;
        }
        n++;
    }
    arena_reset(c->arena, mark);
    return n;
}

typedef struct Merger {
    uint32_t *slot; /* by hash: net + 1 */
    uint32_t mask;
    uint32_t *stamp; /* by vertex of the result */
} Merger;

/* The net made last, if no earlier one has the same pins: else its weight goes there. */
static void net_close(Hyper *out, Merger *m, double weight, uint32_t hash)
{
    uint32_t l = out->n_nets, n = out->first[l + 1] - out->first[l];
    uint32_t at = (hash * 2654435769u) >> 7 & m->mask;
    for (; m->slot[at] != 0; at = (at + 1) & m->mask) {
        uint32_t other = m->slot[at] - 1;
        bool same = out->first[other + 1] - out->first[other] == n;
        for (uint32_t k = out->first[other]; same && k < out->first[other + 1]; k++) {
            same = m->stamp[out->pin[k]] == l + 1;
        }
        if (same) {
            out->weight[other] += weight;
            return;
        }
    }
    m->slot[at] = l + 1;
    out->weight[l] = weight;
    out->n_nets++;
}

/* By vertex, its nets: from the pins. */
static void hyper_index(Hyper *h, Arena *arena)
{
    h->start = ARENA_ARRAY(arena, (size_t)h->n + 2, uint32_t);
    h->net = ARENA_ARRAY(arena, h->first[h->n_nets], uint32_t);
    for (uint32_t k = 0; k < h->first[h->n_nets]; k++) {
        h->start[h->pin[k] + 2]++;
    }
    for (uint32_t v = 2; v < h->n + 2; v++) {
        h->start[v] += h->start[v - 1];
    }
    for (uint32_t l = 0; l < h->n_nets; l++) {
        for (uint32_t k = h->first[l]; k < h->first[l + 1]; k++) {
            h->net[h->start[h->pin[k] + 1]++] = l;
        }
    }
}

static Hyper hyper_merge(Cut *c, const Hyper *h, const uint32_t *to, uint32_t n)
{
    Hyper out = {.n = n};
    uint32_t slots = 1;
    while (slots < 2 * h->n_nets + 2) {
        slots *= 2;
    }
    out.mass = ARENA_ARRAY(c->arena, n, uint32_t);
    out.first = ARENA_ARRAY(c->arena, (size_t)h->n_nets + 2, uint32_t);
    out.pin = ARENA_ARRAY(c->arena, h->first[h->n_nets], uint32_t);
    out.weight = ARENA_ARRAY(c->arena, h->n_nets, double);
    for (uint32_t v = 0; v < h->n; v++) {
        out.mass[to[v]] += h->mass[v];
    }
    uint32_t *slot = ARENA_ARRAY(c->arena, slots, uint32_t),
             *stamp = ARENA_ARRAY(c->arena, n, uint32_t);
    Merger m = {slot, slots - 1, stamp};
    for (uint32_t l = 0; l < h->n_nets; l++) {
        uint32_t at = out.first[out.n_nets], hash = 0;
        for (uint32_t k = h->first[l]; k < h->first[l + 1]; k++) {
            uint32_t v = to[h->pin[k]];
            if (m.stamp[v] != out.n_nets + 1) {
                m.stamp[v] = out.n_nets + 1;
                out.pin[at++] = v;
                hash += (v + 1) * 2246822519u ^ (v << 13);
            }
        }
        out.first[out.n_nets + 1] = at;
        if (at - out.first[out.n_nets] > 1) {
            net_close(&out, &m, h->weight[l], hash);
        }
        for (uint32_t k = out.first[out.n_nets]; k < at;
             k++) { /* not taken: its stamps are void */
            m.stamp[out.pin[k]] = 0;
        }
    }
    c->work += 2 * (uint64_t)h->first[h->n_nets];
    hyper_index(&out, c->arena);
    return out;
}

/* One descent and ascent; returns what the cut weighs. */
static double cut_levels(Cut *c, const Hyper *h, uint64_t all, uint8_t *side)
{
    ArenaMark mark = arena_mark(c->arena);
    Hyper level[LEVELS];
    uint32_t *to[LEVELS], n = 1;
    level[0] = *h;
    while (n < LEVELS && level[n - 1].n > COARSEST) {
        const Hyper *fine = &level[n - 1];
        to[n] = ARENA_ARRAY(c->arena, fine->n, uint32_t);
        uint32_t left = pairs_find(c, fine, all / (COARSEST / 3) + 1, to[n]);
        if (left > SHRINKS * fine->n) {
            break;
        }
        level[n] = hyper_merge(c, fine, to[n], left);
        n++;
    }
    uint8_t *halves = ARENA_ARRAY(c->arena, h->n, uint8_t);
    double cut = cut_coarsest(c, &level[n - 1], halves);
    while (--n > 0) {
        for (uint32_t v = 0; v < level[n - 1].n; v++) {
            side[v] = halves[to[n][v]];
        }
        cut = cut_refine(c, &level[n - 1], side);
        memcpy(halves, side, level[n - 1].n);
    }
    memcpy(side, halves, h->n);
    arena_reset(c->arena, mark);
    return cut;
}

uint64_t cut_run(Hyper *h, double imbalance, Rng *rng, Arena *scratch, uint8_t *side)
{
    ArenaMark mark = arena_mark(scratch);
    Cut c = {.share = 0.5 - imbalance, .rng = rng, .arena = scratch};
    uint8_t *trial = ARENA_ARRAY(scratch, h->n, uint8_t);
    double least = INFINITY;
    uint64_t all = 0;
    hyper_index(h, scratch);
    for (uint32_t v = 0; v < h->n; v++) {
        all += h->mass[v];
    }
    uint32_t runs = h->n < RUNS_FROM || h->n > RUNS_TO ? 1 : RUNS;
    for (uint32_t i = 0; i < runs; i++) {
        double cut = cut_levels(&c, h, all, trial);
        if (cut < least - 1e-9) {
            least = cut;
            memcpy(side, trial, h->n);
        }
    }
    arena_reset(scratch, mark);
    return c.work;
}
