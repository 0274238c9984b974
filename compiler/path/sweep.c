/* SPDX-License-Identifier: Apache-2.0 */
/* One sweep along a network: from an operand at one end, always take in the neighbour that leaves the smallest front,
 * of those at most so far ahead of the nearest one left. How far an operand is, its level, is its distance from one end, or from a
 * light cut through the middle, which in a lattice lies straight across. The best first tree of long or flat
 * networks (matrix product states, strips, lattices), where greedy pairs leave fronts on both sides of what they
 * made. What each neighbour would add is kept, not looked for: time near linear. */
#include <string.h>

#include "path/cut.h"
#include "path/search.h"

typedef struct Next {   /* an operand next to the front */
    double grows, adds; /* log2: by what the front grows; labels it has not yet */
    uint32_t operand, met, version;
} Next;

static bool next_less(Next x, Next y)
{
    if (x.grows < y.grows || y.grows < x.grows) {
        return x.grows < y.grows;
    }
    if (x.adds < y.adds || y.adds < x.adds) {
        return x.adds < y.adds;
    }
    return x.met < y.met;
}

#define HEAP_ENTRY Next
#define HEAP_LESS  next_less
#include "path/heap.def"

typedef struct Sweep {
    const Net *net;
    Arena *arena;
    const uint32_t *start, *holder; /* by label */
    const uint32_t *level;          /* by operand */
    uint32_t *taken;                /* by label: holders in the front */
    double *grows, *adds;           /* by operand */
    uint32_t *met;     /* by operand: when it was first next to the front; 0: never */
    uint32_t *version; /* by operand: only its last entry counts */
    uint32_t *waits,
        *waiting; /* by level: operands met beyond reach; by operand: the next such */
    uint32_t reach, n_met;
    Heap heap;
} Sweep;

static void next_push(Sweep *w, uint32_t k)
{
    heap_push(&w->heap, w->arena,
              (Next){w->grows[k], w->adds[k], k, w->met[k], ++w->version[k]});
}

/* Its numbers changed. */
static void operand_note(Sweep *w, uint32_t k)
{
    bool is_new = w->met[k] == 0;
    w->met[k] = is_new ? ++w->n_met : w->met[k];
    if (w->level[k] <= w->reach) {
        next_push(w, k);
    } else if (is_new) {
        w->waiting[k] = w->waits[w->level[k]];
        w->waits[w->level[k]] = k + 1;
    }
}

static void operand_take(Sweep *w, uint32_t k)
{
    w->version[k] = UINT32_MAX;
    for (uint32_t i = 0; i < net_degree(w->net, k); i++) {
        uint32_t l = net_legs(w->net, k)[i], from = w->start[l], to = w->start[l + 1];
        uint32_t left = to - from - ++w->taken[l];
        bool opens = w->taken[l] == 1, closes = left == 1 && !w->net->open[l];
        for (uint32_t j = from; j < to && (opens || closes); j++) {
            uint32_t other = w->holder[j];
            if (w->version[other] == UINT32_MAX) {
                continue;
            }
            double weight = w->net->weight[l];
            w->grows[other] -= (opens ? weight : 0.0) + (closes ? weight : 0.0);
            w->adds[other] -= opens ? weight : 0.0;
            operand_note(w, other);
        }
    }
}

/* The operand reached last, breadth first from those in `queue`; their levels are set, the others' UINT32_MAX. */
static uint32_t levels_spread(const Net *net, const uint32_t *start, const uint32_t *holder,
                              uint32_t *level, uint32_t *queue, uint32_t tail)
{
    uint32_t head = 0, k = 0;
    while (head < tail) {
        k = queue[head++];
        for (uint32_t i = 0; i < net_degree(net, k); i++) {
            uint32_t l = net_legs(net, k)[i];
            for (uint32_t j = start[l]; j < start[l + 1]; j++) {
                uint32_t other = holder[j];
                if (level[other] == UINT32_MAX) {
                    level[other] = level[k] + 1;
                    queue[tail++] = other;
                }
            }
        }
    }
    return k;
}

/* Distances from an operand that is as far from all others as any. */
static void levels_from_end(const Net *net, const uint32_t *start, const uint32_t *holder,
                            uint32_t *level, uint32_t *queue)
{
    uint32_t end = 0;
    for (int i = 0; i < 2; i++) {
        memset(level, 0xff, net->n * sizeof *level);
        level[end] = 0;
        queue[0] = end;
        end = levels_spread(net, start, holder, level, queue, 1);
    }
}

/* Distances from the cut, those of one side turned about. */
static void levels_from_cut(const Net *net, const uint32_t *start, const uint32_t *holder,
                            const uint8_t *side, uint32_t *level, uint32_t *queue)
{
    uint32_t tail = 0, most = 0;
    memset(level, 0xff, net->n * sizeof *level);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        bool on[2] = {false, false};
        for (uint32_t j = start[l]; j < start[l + 1]; j++) {
            on[side[holder[j]]] = true;
        }
        for (uint32_t j = start[l]; j < start[l + 1] && on[0] && on[1]; j++) {
            if (level[holder[j]] == UINT32_MAX) {
                level[holder[j]] = 0;
                queue[tail++] = holder[j];
            }
        }
    }
    levels_spread(net, start, holder, level, queue, tail);
    for (uint32_t k = 0; k < net->n; k++) {
        level[k] = level[k] == UINT32_MAX ? 0 : level[k];
        most = side[k] == 0 && level[k] > most ? level[k] : most;
    }
    for (uint32_t k = 0; k < net->n; k++) {
        level[k] = side[k] == 0 ? most - level[k] : most + 1 + level[k];
    }
}

void sweep_levels(const Net *net, const uint8_t *side, Arena *scratch, uint32_t *level)
{
    ArenaMark mark = arena_mark(scratch);
    const uint32_t *start, *holder;
    net_holders(net, scratch, &start, &holder);
    uint32_t *queue = ARENA_ARRAY(scratch, net->n, uint32_t);
    if (side != NULL) {
        levels_from_cut(net, start, holder, side, level, queue);
    } else {
        levels_from_end(net, start, holder, level, queue);
    }
    arena_reset(scratch, mark);
}

static double sweep_size(const Net *net, uint32_t k)
{
    double size = 0.0;
    for (uint32_t i = 0; i < net_degree(net, k); i++) {
        size += net->weight[net_legs(net, k)[i]];
    }
    return size;
}

static Sweep sweep_new(const Net *net, const uint32_t *level, Arena *arena)
{
    Sweep w = {.net = net, .arena = arena, .level = level};
    net_holders(net, arena, &w.start, &w.holder);
    w.taken = ARENA_ARRAY(arena, net->n_labels, uint32_t);
    w.grows = ARENA_ARRAY(arena, net->n, double);
    w.adds = ARENA_ARRAY(arena, net->n, double);
    w.met = ARENA_ARRAY(arena, net->n, uint32_t);
    w.version = ARENA_ARRAY(arena, net->n, uint32_t);
    w.waits = ARENA_ARRAY(arena, (size_t)net->n * 2, uint32_t);
    w.waiting = ARENA_ARRAY(arena, net->n, uint32_t);
    for (uint32_t k = 0; k < net->n; k++) {
        w.adds[k] = w.grows[k] = sweep_size(net, k);
    }
    return w;
}

bool sweep_run(const Model *m, const Net *net, const uint32_t *level, uint32_t ahead,
               Arena *scratch, PathStep *out, Score *score)
{
    ArenaMark mark = arena_mark(scratch);
    Sweep w = sweep_new(net, level, scratch);
    uint32_t *left = ARENA_ARRAY(scratch, (size_t)net->n * 2, uint32_t), now = 0, made = 0;
    uint32_t first = 0;
    for (uint32_t k = 0; k < net->n; k++) {
        left[level[k]]++; /* operands of a level still to come */
        if (level[k] < level[first] ||
            (level[k] == level[first] && net_degree(net, k) < net_degree(net, first))) {
            first = k;
        }
    }
    left[level[first]]--;
    LogSum sum = LOGSUM_ZERO;
    double front = w.adds[first], largest = front;
    w.reach = level[first] + ahead;
    operand_take(&w, first);
    while (made + 1 < net->n) {
        while (left[now] == 0) {
            now++;
        }
        for (; w.reach < now + ahead && w.reach + 1 < 2 * net->n;) {
            w.reach++;
            for (uint32_t k = w.waits[w.reach]; k != 0; k = w.waiting[k - 1]) {
                next_push(&w, k - 1);
            }
        }
        while (w.heap.n > 0 && w.heap.at[0].version != w.version[w.heap.at[0].operand]) {
            heap_pop(&w.heap);
        }
        if (w.heap.n == 0) {
            if (w.reach + 1 >= 2 * net->n) {
                break; /* in parts */
            }
            ahead++; /* what is left nearby is reached from further on only */
            continue;
        }
        uint32_t k = heap_pop(&w.heap).operand;
        left[level[k]]--;
        out[made] = (PathStep){made == 0 ? first : net->n + made - 1, k};
        made++;
        double both = front + w.adds[k], size = sweep_size(net, k), grown = front + w.grows[k];
        logsum_add(&sum, model_part(m, model_step(m, both, front, size, grown), both));
        front = grown;
        largest = front > largest ? front : largest;
        largest = size > largest ? size : largest;
        operand_take(&w, k);
    }
    *score = model_score(m, sum, largest);
    arena_reset(scratch, mark);
    return made + 1 == net->n;
}
