/* SPDX-License-Identifier: Apache-2.0 */
/* Trees without open labels. Some optimum runs inward: it has a centre, and every other operand
 * takes in what is beyond its labels but the one towards the centre (vectors, by then) and
 * becomes a vector itself, the centre all of them. So an operand costs by itself, once for each
 * direction: the optimum of a star of one tensor and few vectors, outer products of vectors
 * among them, which the exact search finds. The centre follows from the sums in one walk. */
#include "path/search.h"

#define STAR_MOST   12    /* labels of an operand */
#define SPLITS_MOST 2e7   /* of all exact searches */
#define WEIGHT_MOST 900.0 /* log2 of an operand's elements: sums stay in a double */
#define NONE        UINT32_MAX

typedef struct Inward {
    const Net *net;
    Model model;
    Arena *arena;
    uint32_t *holder; /* by label, two */
    uint32_t *order;  /* operands, parents first, from operand 0 */
    uint32_t *up;     /* by operand: label towards operand 0; NONE for that itself */
} Inward;

static uint32_t beyond(const Inward *t, uint32_t label, uint32_t operand)
{
    const uint32_t *h = t->holder + (size_t)2 * label;
    return h[0] == operand ? h[1] : h[0];
}

static bool inward_is_tree(Inward *t)
{
    const Net *net = t->net;
    uint8_t *held = ARENA_ARRAY(t->arena, net->n_labels, uint8_t);
    t->holder = ARENA_ARRAY(t->arena, (size_t)net->n_labels * 2, uint32_t);
    double splits = 0.0;
    if (net->n_labels + 1 != net->n) {
        return false;
    }
    for (uint32_t k = 0; k < net->n; k++) {
        double size = 0.0;
        for (uint32_t i = 0; i < net_degree(net, k); i++) {
            uint32_t l = net_legs(net, k)[i];
            if (net->open[l] || held[l] == 2 || net->weight[l] < 1.0) {
                return false;
            }
            t->holder[2 * l + held[l]++] = k;
            size += net->weight[l];
        }
        splits += (net_degree(net, k) + 1) * pow(3.0, net_degree(net, k));
        if (net_degree(net, k) > STAR_MOST || size > WEIGHT_MOST) {
            return false;
        }
    }
    return splits < SPLITS_MOST; /* connected, so without cycles */
}

static void inward_walk(Inward *t)
{
    uint32_t n = t->net->n, made = 0;
    t->order = ARENA_ARRAY(t->arena, n, uint32_t);
    t->up = ARENA_ARRAY(t->arena, n, uint32_t);
    t->up[0] = NONE;
    t->order[made++] = 0;
    for (uint32_t i = 0; i < made; i++) {
        uint32_t k = t->order[i];
        for (uint32_t j = 0; j < net_degree(t->net, k); j++) {
            uint32_t l = net_legs(t->net, k)[j];
            if (l != t->up[k]) {
                t->order[made++] = beyond(t, l, k);
                t->up[beyond(t, l, k)] = l;
            }
        }
    }
}

/* Steps of operand k (number 0) with the vectors on its labels but `out` (NONE: all), in the
 * order of the labels; returns the log2 of their cost. */
static double star_solve(const Inward *t, uint32_t k, uint32_t out, PathStep *steps)
{
    uint32_t degree = net_degree(t->net, k), start[STAR_MOST + 2] = {0, degree};
    uint32_t label[2 * STAR_MOST], n = 1;
    double weight[STAR_MOST];
    uint8_t open[STAR_MOST];
    for (uint32_t i = 0; i < degree; i++) {
        uint32_t l = net_legs(t->net, k)[i];
        label[i] = i;
        weight[i] = t->net->weight[l];
        open[i] = l == out;
        if (l != out) {
            label[start[n]] = i;
            start[n + 1] = start[n] + 1;
            n++;
        }
    }
    Net net = {n, degree, start, label, weight, open};
    for (uint32_t i = 0; i + 1 < n; i++) { /* a first plan: one after the other */
        steps[i] = (PathStep){i == 0 ? 0 : n + i - 1, i + 1};
    }
    Score best = tree_score(&t->model, &net, steps, t->arena);
    if (n > 2) {
        exact_run(&t->model, &net, best, t->arena, NULL, steps);
        best = tree_score(&t->model, &net, steps, t->arena);
    }
    return n > 1 ? best.cost : -INFINITY;
}

/* Moving the centre from one end of a label to the other changes the directions of these two
 * only. */
static uint32_t inward_centre(const Inward *t)
{
    PathStep steps[STAR_MOST];
    uint32_t n = t->net->n, best = 0;
    double *whole = ARENA_ARRAY(t->arena, n, double);
    double *sum = ARENA_ARRAY(t->arena, n, double); /* against that of operand 0 */
    for (uint32_t k = 0; k < n; k++) {
        whole[k] = exp2(star_solve(t, k, NONE, steps));
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t k = t->order[i], l = t->up[k], p = beyond(t, l, k);
        sum[k] = sum[p] - whole[p] + exp2(star_solve(t, p, l, steps)) -
                 exp2(star_solve(t, k, l, steps)) + whole[k];
        best = sum[k] < sum[best] ? k : best;
    }
    return best;
}

/* Operands parents first from the centre, `up` towards it. */
static void inward_turn(Inward *t, uint32_t centre)
{
    uint32_t *stack = ARENA_ARRAY(t->arena, t->net->n, uint32_t), depth = 0, walked = 0;
    for (uint32_t k = centre, towards = NONE; k != NONE;) {
        uint32_t up = t->up[k];
        t->up[k] = towards;
        towards = up;
        k = up != NONE ? beyond(t, up, k) : NONE;
    }
    stack[depth++] = centre;
    while (depth > 0) {
        uint32_t k = stack[--depth];
        t->order[walked++] = k;
        for (uint32_t i = 0; i < net_degree(t->net, k); i++) {
            uint32_t l = net_legs(t->net, k)[i];
            if (l != t->up[k]) {
                stack[depth++] = beyond(t, l, k);
            }
        }
    }
}

static void inward_steps(const Inward *t, PathStep *out)
{
    const Net *net = t->net;
    uint32_t n = net->n, made = 0, *number = ARENA_ARRAY(t->arena, n, uint32_t);
    for (uint32_t i = n; i-- > 0;) {
        PathStep steps[STAR_MOST];
        uint32_t k = t->order[i], local[2 * STAR_MOST + 2], parts = 1;
        star_solve(t, k, t->up[k], steps);
        local[0] = k;
        for (uint32_t j = 0; j < net_degree(net, k); j++) {
            uint32_t l = net_legs(net, k)[j];
            if (l != t->up[k]) {
                local[parts++] = number[beyond(t, l, k)];
            }
        }
        for (uint32_t j = 0; j + 1 < parts; j++) {
            out[made] = (PathStep){local[steps[j].a], local[steps[j].b]};
            local[parts + j] = n + made++;
        }
        number[k] = parts > 1 ? local[2 * parts - 2] : k;
    }
}

bool inward_run(const Model *m, const Net *net, Arena *scratch, PathStep *out)
{
    ArenaMark mark = arena_mark(scratch);
    Inward t = {.net = net, .model = *m, .arena = scratch};
    bool found = net->n >= 3 && inward_is_tree(&t);
    if (found) {
        inward_walk(&t);
        inward_turn(&t, inward_centre(&t));
        inward_steps(&t, out);
    }
    arena_reset(scratch, mark);
    return found;
}
