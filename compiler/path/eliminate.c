/* SPDX-License-Identifier: Apache-2.0 */
/* Elimination order: sum away the label whose bucket (the product of all tensors that hold it) is smallest, merging the
 * bucket smallest first. The method of choice for graphical models and circuits with hyperedges, where greedy on
 * pairs is tens of orders of magnitude off. Labels of the output are never eliminated; what is left at the end is
 * merged smallest first. Keys are kept fresh for the labels of a new tensor while that is cheap, else refreshed when
 * they come up; a work bound keeps hostile networks near linear. */
#include <string.h>

#include "path/search.h"

#define FRESH_LEGS    48
#define FRESH_HOLDERS 24
#define WORK_LIMIT    150000000u

typedef struct Bucket {
    uint32_t *at;
    uint32_t n, cap;
} Bucket;

typedef struct Entry {
    double key;
    uint32_t label, version;
} Entry;

static bool entry_less(Entry x, Entry y)
{
    if (x.key < y.key || y.key < x.key) {
        return x.key < y.key;
    }
    return x.label != y.label ? x.label < y.label : x.version > y.version;
}

#define HEAP_ENTRY               Entry
#define HEAP_LESS                entry_less
#define HEAP_OWNER               const uint32_t * /* by label: the version that counts */
#define HEAP_DEAD(counts, entry) ((entry).version != (counts)[(entry).label])
#include "path/heap.def"

typedef struct Order {
    Live live;
    Bucket *of;
    Heap heap;
    uint32_t *version; /* by label: only its last entry counts */
    uint32_t *stamp;   /* by label */
    uint32_t clock;
    double temperature;
    Rng *rng;
} Order;

static void entry_push(Order *o, uint32_t label, double key)
{
    if (o->heap.n == o->heap.cap) {
        heap_purge(&o->heap, o->live.arena, o->version);
    }
    heap_push(&o->heap, o->live.arena, (Entry){key, label, ++o->version[label]});
}

static void bucket_clean(Order *o, uint32_t label)
{
    Bucket *b = &o->of[label];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        if (!o->live.dead[b->at[i]]) {
            b->at[kept++] = b->at[i];
        }
    }
    o->live.work += b->n;
    b->n = kept;
}

static void bucket_add(Order *o, uint32_t label, uint32_t tensor)
{
    Bucket *b = &o->of[label];
    if (b->n == b->cap) {
        bucket_clean(o, label);
        if (b->n >= b->cap / 2) {
            b->at = vec_grow(o->live.arena, b->at, b->cap, &b->cap, sizeof *b->at);
        }
    }
    b->at[b->n++] = tensor;
}

/* log2 size of the bucket's product, with noise. */
static double bucket_key(Order *o, uint32_t label)
{
    bucket_clean(o, label);
    Bucket *b = &o->of[label];
    double size = 0.0;
    o->clock++;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t t = b->at[i];
        o->live.work += o->live.n_legs[t];
        for (uint32_t k = 0; k < o->live.n_legs[t]; k++) {
            uint32_t l = o->live.legs[t][k];
            if (o->stamp[l] != o->clock) {
                o->stamp[l] = o->clock;
                size += o->live.net->weight[l];
            }
        }
    }
    if (o->temperature > 0.0) {
        double u = rng_unit(o->rng);
        size += o->temperature * log2(-log2(u > 1e-300 ? u : 1e-300) + 1e-12);
    }
    return size;
}

/* Merges the bucket, two smallest first; returns what remains of it. */
static uint32_t bucket_merge(Order *o, uint32_t label, PathStep *out, uint32_t *n_steps)
{
    Bucket *b = &o->of[label];
    Live *v = &o->live;
    uint32_t n = b->n; /* insertion by size keeps the two smallest at the end */
    for (uint32_t i = 1; i < n; i++) {
        uint32_t t = b->at[i], k = i;
        while (k > 0 && v->size[b->at[k - 1]] < v->size[t]) {
            b->at[k] = b->at[k - 1];
            k--;
        }
        b->at[k] = t;
        v->work += i - k;
    }
    while (n > 1) {
        PathStep s = {b->at[n - 1], b->at[n - 2]};
        out[(*n_steps)++] = s;
        uint32_t made = live_merge(v, s.a, s.b), k = n - 2;
        while (k > 0 && v->size[b->at[k - 1]] < v->size[made]) {
            b->at[k] = b->at[k - 1];
            k--;
        }
        b->at[k] = made;
        n--;
    }
    b->n = 0;
    return b->at[0];
}

static void order_eliminate(Order *o, uint32_t label, PathStep *out, uint32_t *n_steps)
{
    Live *v = &o->live;
    if (o->of[label].n < 2) {
        return;
    }
    uint32_t made = bucket_merge(o, label, out, n_steps);
    bool fresh = v->n_legs[made] <= FRESH_LEGS && v->work < WORK_LIMIT / 2;
    for (uint32_t i = 0; i < v->n_legs[made]; i++) {
        uint32_t l = v->legs[made][i];
        bucket_add(o, l, made);
        if (fresh && !v->net->open[l] && o->of[l].n <= FRESH_HOLDERS) {
            entry_push(o, l, bucket_key(o, l));
        }
    }
}

uint64_t eliminate_run(const Net *net, double temperature, Rng *rng, Arena *scratch,
                       PathStep *out)
{
    ArenaMark mark = arena_mark(scratch);
    Order o = {.temperature = temperature, .rng = rng};
    live_init(&o.live, net, scratch);
    o.of = ARENA_ARRAY(scratch, net->n_labels, Bucket);
    o.version = ARENA_ARRAY(scratch, net->n_labels, uint32_t);
    o.stamp = ARENA_ARRAY(scratch, net->n_labels, uint32_t);
    for (uint32_t k = 0; k < net->n; k++) {
        for (uint32_t i = 0; i < net_degree(net, k); i++) {
            bucket_add(&o, net_legs(net, k)[i], k);
        }
    }
    for (uint32_t l = 0; l < net->n_labels; l++) {
        if (!net->open[l]) {
            entry_push(&o, l, bucket_key(&o, l));
        }
    }
    uint32_t n_steps = 0;
    while (o.heap.n > 0) {
        Entry e = heap_pop(&o.heap);
        if (e.version != o.version[e.label] || o.of[e.label].n == 0) {
            continue;
        }
        bucket_clean(&o, e.label);
        if (temperature <= 0.0 && o.live.work < WORK_LIMIT) {
            double key = bucket_key(&o, e.label);
            if (key > e.key + 1e-9 && o.heap.n > 0 && key > o.heap.at[0].key) {
                entry_push(&o, e.label, key);
                continue;
            }
        }
        order_eliminate(&o, e.label, out, &n_steps);
    }
    uint64_t work = o.live.work < WORK_LIMIT ? o.live.work : RUN_WORK_MOST;
    live_finish(&o.live, out, &n_steps);
    arena_reset(scratch, mark);
    return work;
}

bool eliminate_search(Search *s, const Net *net, PathStep *out)
{
    ArenaMark mark = arena_mark(s->arena);
    PathStep *trial = ARENA_ARRAY(s->arena, net->n, PathStep);
    bool cheap = eliminate_run(net, 0.0, &s->rng, s->arena, out) < RUN_WORK_MOST;
    Score best = tree_score(&s->model, net, out, s->arena);
    uint64_t runs = (uint64_t)16 * s->effort;
    search_plan(s, (runs + 1) * net->n);
    search_progress(s, "eliminate", best);
    for (uint64_t i = 0; cheap && i < runs && !search_stopped(s); i++) {
        cheap = eliminate_run(net, exp2(-4.0 * rng_unit(&s->rng)), &s->rng, s->arena, trial) <
                RUN_WORK_MOST;
        Score now = tree_score(&s->model, net, trial, s->arena);
        if (score_less(now, best)) {
            best = now;
            memcpy(out, trial, (net->n - 1) * sizeof *out);
        }
        search_count(s, net->n);
        search_progress(s, "eliminate", best);
    }
    arena_reset(s->arena, mark);
    return true;
}
