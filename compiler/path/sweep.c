/* SPDX-License-Identifier: Apache-2.0 */
/* One sweep along a network: from an operand at one end, always take in the neighbour that
 * leaves the smallest front, of those at most so far ahead of the nearest one left. The best first tree of long narrow networks (matrix product
 * states, strips), where greedy pairs leave fronts on both sides of what they made. */
#include <string.h>

#include "path/search.h"

typedef struct Sweep {
    const Net *net;
    const uint32_t *start, *holder; /* by label */
    uint32_t *seen;                 /* by operand: last look at it */
    uint32_t *level;                /* by operand: steps from the end */
    uint32_t looks;
} Sweep;

/* The operand reached last, breadth first. */
static uint32_t farthest(Sweep *w, uint32_t from, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    w->looks++;
    queue[tail++] = from;
    w->seen[from] = w->looks;
    w->level[from] = 0;
    while (head < tail) {
        uint32_t k = queue[head++];
        for (uint32_t i = 0; i < net_degree(w->net, k); i++) {
            uint32_t l = net_legs(w->net, k)[i];
            for (uint32_t j = w->start[l]; j < w->start[l + 1]; j++) {
                uint32_t other = w->holder[j];
                if (w->seen[other] != w->looks) {
                    w->seen[other] = w->looks;
                    w->level[other] = w->level[k] + 1;
                    queue[tail++] = other;
                }
            }
        }
    }
    return queue[tail - 1];
}

typedef struct Choice {
    uint32_t operand;
    double result, both;
} Choice;

/* The neighbour of at most `level` that leaves least; operand UINT32_MAX: none. */
static Choice sweep_choose(Sweep *w, Live *v, uint32_t front, uint32_t level)
{
    Choice best = {UINT32_MAX, INFINITY, INFINITY};
    w->looks++;
    for (uint32_t i = 0; i < v->n_legs[front]; i++) {
        uint32_t l = v->legs[front][i];
        v->work += w->start[l + 1] - w->start[l];
        for (uint32_t j = w->start[l]; j < w->start[l + 1]; j++) {
            uint32_t k = w->holder[j];
            if (k == front || v->dead[k] || w->seen[k] == w->looks || w->level[k] > level) {
                continue;
            }
            double result, both = live_sizes(v, front, k, &result);
            w->seen[k] = w->looks;
            if (result < best.result || (result <= best.result && both < best.both)) {
                best = (Choice){k, result, both};
            }
        }
    }
    return best;
}

bool sweep_run(const Net *net, uint32_t ahead, uint64_t most, Arena *scratch, PathStep *out)
{
    ArenaMark mark = arena_mark(scratch);
    const uint32_t *start, *holder;
    net_holders(net, scratch, &start, &holder);
    Sweep w = {.net = net, .start = start, .holder = holder};
    w.seen = ARENA_ARRAY(scratch, net->n, uint32_t);
    w.level = ARENA_ARRAY(scratch, net->n, uint32_t);
    uint32_t *queue = ARENA_ARRAY(scratch, net->n, uint32_t), made = 0;
    uint32_t front = farthest(&w, 0, queue);
    farthest(&w, front, queue); /* for the levels */
    uint32_t *left = ARENA_ARRAY(scratch, (size_t)net->n + 1, uint32_t), level = 0;
    for (uint32_t k = 0; k < net->n; k++) {
        left[w.level[k]]++; /* operands of a level still to come */
    }
    left[0]--;
    Live v;
    live_init(&v, net, scratch);
    while (made + 1 < net->n && v.work < most) {
        while (left[level] == 0) {
            level++;
        }
        Choice next = sweep_choose(&w, &v, front, level + ahead);
        if (next.operand == UINT32_MAX) {
            break;
        }
        left[w.level[next.operand]]--;
        out[made++] = (PathStep){front, next.operand};
        front = live_merge(&v, front, next.operand);
    }
    bool whole = made + 1 == net->n;
    arena_reset(scratch, mark);
    return whole;
}
