/* SPDX-License-Identifier: Apache-2.0 */
/* A network under contraction as sorted label lists with holder counts: what greedy and elimination orders walk on,
 * at any number of labels. Lists of dead tensors go back to a pool of size classes. */
#include <string.h>

#include "path/search.h"

static uint32_t class_of(uint32_t n)
{
    uint32_t c = 2;
    while (((uint32_t)1 << c) < n) {
        c++;
    }
    return c;
}

static uint32_t *pool_take(Live *v, uint32_t n)
{
    uint32_t c = class_of(n);
    uint32_t *list = v->pool[c];
    if (list == NULL) {
        return ARENA_ARRAY(v->arena, (size_t)1 << c, uint32_t);
    }
    /* The first bytes of a free list link to the next. */
    memcpy((void *)&v->pool[c], (const void *)list, sizeof(uint32_t *));
    return list;
}

static void pool_give(Live *v, uint32_t *list, uint32_t n)
{
    uint32_t c = class_of(n);
    memcpy((void *)list, (const void *)&v->pool[c], sizeof(uint32_t *));
    v->pool[c] = list;
}

void live_init(Live *v, const Net *net, Arena *arena)
{
    memset(v, 0, sizeof *v);
    size_t all = (size_t)net->n * 2;
    v->net = net;
    v->arena = arena;
    v->n = net->n;
    v->legs = ARENA_ARRAY(arena, all, uint32_t *);
    v->n_legs = ARENA_ARRAY(arena, all, uint32_t);
    v->size = ARENA_ARRAY(arena, all, double);
    v->dead = ARENA_ARRAY(arena, all, uint8_t);
    v->holders = ARENA_ARRAY(arena, net->n_labels, uint32_t);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        v->holders[l] = net->open[l];
    }
    for (uint32_t k = 0; k < net->n; k++) {
        v->n_legs[k] = net_degree(net, k);
        v->legs[k] = pool_take(v, v->n_legs[k]);
        for (uint32_t i = 0; i < v->n_legs[k]; i++) {
            uint32_t l = net_legs(net, k)[i];
            v->legs[k][i] = l;
            v->size[k] += net->weight[l];
            v->holders[l]++;
        }
    }
}

double live_sizes(Live *v, uint32_t a, uint32_t b, double *result)
{
    const uint32_t *x = v->legs[a], *y = v->legs[b];
    const uint32_t *x_end = x + v->n_legs[a], *y_end = y + v->n_legs[b];
    const double *weight = v->net->weight;
    double shared = 0.0, summed = 0.0;
    v->work += v->n_legs[a] + v->n_legs[b];
    while (x < x_end && y < y_end) {
        if (*x == *y) {
            shared += weight[*x];
            summed += v->holders[*x] == 2 ? weight[*x] : 0.0;
            x++;
            y++;
        } else if (*x < *y) {
            x++;
        } else {
            y++;
        }
    }
    double both = v->size[a] + v->size[b] - shared;
    *result = both - summed;
    return both;
}

uint32_t live_merge(Live *v, uint32_t a, uint32_t b)
{
    const uint32_t *x = v->legs[a], *y = v->legs[b];
    const uint32_t *x_end = x + v->n_legs[a], *y_end = y + v->n_legs[b];
    uint32_t *to = pool_take(v, v->n_legs[a] + v->n_legs[b]);
    uint32_t n = 0;
    double size = 0.0;
    v->work += v->n_legs[a] + v->n_legs[b];
    while (x < x_end || y < y_end) {
        uint32_t l;
        if (x < x_end && y < y_end && *x == *y) {
            l = *x;
            x++;
            y++;
            v->holders[l]--;
            if (v->holders[l] == 1) {
                v->holders[l] = 0;
                continue;
            }
        } else if (y == y_end || (x < x_end && *x < *y)) {
            l = *x++;
        } else {
            l = *y++;
        }
        to[n++] = l;
        size += v->net->weight[l];
    }
    uint32_t made = v->n++;
    uint32_t room = v->n_legs[a] + v->n_legs[b];
    if (class_of(n) != class_of(room)) {
        uint32_t *fit = pool_take(v, n);
        memcpy(fit, to, n * sizeof *to);
        pool_give(v, to, room);
        to = fit;
    }
    v->legs[made] = to;
    v->n_legs[made] = n;
    v->size[made] = size;
    v->dead[a] = v->dead[b] = 1;
    pool_give(v, v->legs[a], v->n_legs[a]);
    pool_give(v, v->legs[b], v->n_legs[b]);
    v->legs[a] = v->legs[b] = NULL;
    return made;
}

/* A heap of tensors by (size, number), least first. */
static bool heap_less(const Live *v, uint32_t a, uint32_t b)
{
    return v->size[a] < v->size[b] || (v->size[a] <= v->size[b] && a < b);
}

static void heap_down(const Live *v, uint32_t *heap, uint32_t n, uint32_t at)
{
    uint32_t moving = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n) {
            break;
        }
        if (child + 1 < n && heap_less(v, heap[child + 1], heap[child])) {
            child++;
        }
        if (!heap_less(v, heap[child], moving)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

void live_finish(Live *v, PathStep *out, uint32_t *n_steps)
{
    uint32_t *heap = ARENA_ARRAY(v->arena, v->n, uint32_t);
    uint32_t n = 0;
    for (uint32_t k = 0; k < v->n; k++) {
        if (!v->dead[k]) {
            heap[n++] = k;
        }
    }
    for (uint32_t i = n / 2; i-- > 0;) {
        heap_down(v, heap, n, i);
    }
    while (n > 1) {
        uint32_t a = heap[0];
        heap[0] = heap[--n];
        heap_down(v, heap, n, 0);
        uint32_t b = heap[0];
        out[(*n_steps)++] = (PathStep){a, b};
        heap[0] = live_merge(v, a, b);
        heap_down(v, heap, n, 0);
    }
}

Score tree_score(const Model *m, const Net *net, const PathStep *steps, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    Live v;
    live_init(&v, net, scratch);
    LogSum sum = LOGSUM_ZERO;
    double largest = 0.0;
    for (uint32_t k = 0; k < net->n; k++) {
        largest = v.size[k] > largest ? v.size[k] : largest;
    }
    for (uint32_t k = 0; k + 1 < net->n; k++) {
        double result, size_a = v.size[steps[k].a], size_b = v.size[steps[k].b];
        double both = live_sizes(&v, steps[k].a, steps[k].b, &result);
        double step = model_step(m, both, size_a, size_b, result);
        logsum_add(&sum, model_part(m, step, both));
        live_merge(&v, steps[k].a, steps[k].b);
        largest = result > largest ? result : largest;
    }
    arena_reset(scratch, mark);
    return model_score(m, sum, largest);
}
