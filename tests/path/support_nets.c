/* SPDX-License-Identifier: Apache-2.0 */
/* See support_nets.h. */
#include "path/support_nets.h"

#include <string.h>

#include "base/map.h"

static void shuffle(uint32_t *at, uint32_t n, Rng *rng)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = (uint32_t)rng_below(rng, i), x = at[i - 1];
        at[i - 1] = at[k];
        at[k] = x;
    }
}

PathProblem nets_regular(Arena *arena, uint32_t n, uint32_t degree, int64_t size, uint64_t seed)
{
    Rng rng = {seed};
    uint32_t ends = n * degree, *label = ARENA_ARRAY(arena, ends, uint32_t);
    int64_t *sizes = ARENA_ARRAY(arena, ends / 2, int64_t);
    PathLabels *operands = ARENA_ARRAY(arena, n, PathLabels);
    for (uint32_t i = 0; i < ends; i++) {
        label[i] = i / 2;
        sizes[i / 2] = size;
    }
    shuffle(label, ends, &rng);
    for (uint32_t k = 0; k < n; k++) {
        operands[k] = (PathLabels){label + (size_t)k * degree, degree};
    }
    return (PathProblem){n, operands, {NULL, 0}, ends / 2, sizes, NULL, false, NULL, 0, NULL};
}

static PathLabels renamed(Arena *arena, PathLabels l, const uint32_t *name, uint32_t shift)
{
    uint32_t *to = ARENA_ARRAY(arena, l.n, uint32_t);
    for (uint32_t i = 0; i < l.n; i++) {
        to[i] = name != NULL ? name[l.at[i]] : l.at[i] + shift;
    }
    return (PathLabels){to, l.n};
}

PathProblem nets_twice(Arena *arena, const PathProblem *p)
{
    uint32_t n = p->n_operands, n_labels = p->n_labels, n_open = p->output.n;
    PathLabels *operands = ARENA_ARRAY(arena, (size_t)n * 2, PathLabels);
    int64_t *sizes = ARENA_ARRAY(arena, (size_t)n_labels * 2, int64_t);
    uint32_t *open = ARENA_ARRAY(arena, (size_t)n_open * 2, uint32_t);
    for (uint32_t k = 0; k < 2 * n; k++) {
        operands[k] = renamed(arena, p->operands[k % n], NULL, k < n ? 0 : n_labels);
    }
    for (uint32_t l = 0; l < 2 * n_labels; l++) {
        sizes[l] = p->sizes[l % n_labels];
    }
    for (uint32_t i = 0; i < 2 * n_open; i++) {
        open[i] = p->output.at[i % n_open] + (i < n_open ? 0 : n_labels);
    }
    return (PathProblem){
        2 * n, operands, {open, 2 * n_open}, 2 * n_labels, sizes, NULL, false, NULL, 0, NULL};
}

PathProblem nets_shuffled(Arena *arena, const PathProblem *p, uint64_t seed)
{
    Rng rng = {seed};
    uint32_t *name = ARENA_ARRAY(arena, p->n_labels, uint32_t),
             *place = ARENA_ARRAY(arena, p->n_operands, uint32_t);
    PathLabels *operands = ARENA_ARRAY(arena, p->n_operands, PathLabels);
    int64_t *sizes = ARENA_ARRAY(arena, p->n_labels, int64_t);
    for (uint32_t l = 0; l < p->n_labels; l++) {
        name[l] = l;
    }
    for (uint32_t k = 0; k < p->n_operands; k++) {
        place[k] = k;
    }
    shuffle(name, p->n_labels, &rng);
    shuffle(place, p->n_operands, &rng);
    for (uint32_t l = 0; l < p->n_labels; l++) {
        sizes[name[l]] = p->sizes[l];
    }
    for (uint32_t k = 0; k < p->n_operands; k++) {
        operands[place[k]] = renamed(arena, p->operands[k], name, 0);
        shuffle((uint32_t *)operands[place[k]].at, operands[place[k]].n, &rng);
    }
    return (PathProblem){p->n_operands, operands, renamed(arena, p->output, name, 0),
                         p->n_labels,   sizes,    NULL,
                         false,         NULL,     0,
                         NULL};
}

#define LEGS_MOST 6

typedef struct Maker {
    uint32_t *legs, *n_legs; /* by operand */
    int64_t *sizes;
    uint32_t n_labels;
} Maker;

static Maker maker_new(Arena *arena, uint32_t n)
{
    return (Maker){ARENA_ARRAY(arena, (size_t)n * LEGS_MOST, uint32_t),
                   ARENA_ARRAY(arena, n, uint32_t), ARENA_ARRAY(arena, (size_t)n * 2, int64_t),
                   0};
}

static void hold(Maker *m, uint32_t k, uint32_t label)
{
    m->legs[(size_t)k * LEGS_MOST + m->n_legs[k]++] = label;
}

static void join(Maker *m, uint32_t a, uint32_t b, int64_t size)
{
    hold(m, a, m->n_labels);
    hold(m, b, m->n_labels);
    m->sizes[m->n_labels++] = size;
}

static PathProblem maker_problem(const Maker *m, uint32_t n, PathLabels output, Arena *arena)
{
    PathLabels *operands = ARENA_ARRAY(arena, n, PathLabels);
    for (uint32_t k = 0; k < n; k++) {
        operands[k] = (PathLabels){m->legs + (size_t)k * LEGS_MOST, m->n_legs[k]};
    }
    return (PathProblem){n,    operands, output, m->n_labels, m->sizes,
                         NULL, false,    NULL,   0,           NULL};
}

PathProblem nets_shape(Arena *arena, NetsShape shape, uint32_t n, uint64_t seed)
{
    Rng rng = {seed};
    Maker m = maker_new(arena, n);
    uint32_t *open = ARENA_ARRAY(arena, 2, uint32_t), n_open = 0;
    for (uint32_t k = 1; k < n; k++) {
        uint32_t to = k - 1, back = 0;
        while (shape == NETS_TREE && (back == 0 || m.n_legs[to] >= LEGS_MOST)) {
            back = 1 + (uint32_t)rng_below(&rng, 30);
            to = k - 1 - (back < k ? back - 1 : k - 1);
        }
        join(&m, k, to, 2 + (int64_t)rng_below(&rng, 8));
    }
    if (shape == NETS_RING) {
        join(&m, n - 1, 0, 2 + (int64_t)rng_below(&rng, 8));
    }
    uint32_t ends = shape == NETS_CHAIN ? 2 : shape == NETS_SPAN ? (uint32_t)(seed & 1) : 0;
    for (uint32_t i = 0; i < ends; i++) {
        open[n_open++] = m.n_labels;
        hold(&m, i == 0 ? 0 : n - 1, m.n_labels);
        m.sizes[m.n_labels++] = 2 + (int64_t)rng_below(&rng, 8);
    }
    return maker_problem(&m, n, (PathLabels){open, n_open}, arena);
}

PathProblem nets_ladder(Arena *arena, uint32_t n, int64_t rung, int64_t rail)
{
    Maker m = maker_new(arena, n);
    for (uint32_t k = 0; k + 1 < n; k += 2) {
        join(&m, k, k + 1, rung);
        for (uint32_t side = 0; side < 2 && k + 2 < n; side++) {
            join(&m, k + side, k + 2 + side, rail);
        }
    }
    return maker_problem(&m, n, (PathLabels){NULL, 0}, arena);
}

PathProblem nets_lattice(Arena *arena, uint32_t rows, uint32_t columns, int64_t size)
{
    Maker m = maker_new(arena, rows * columns);
    for (uint32_t k = 0; k < rows * columns; k++) {
        if (k % columns + 1 < columns) {
            join(&m, k, k + 1, size);
        }
        if (k + columns < rows * columns) {
            join(&m, k, k + columns, size);
        }
    }
    return maker_problem(&m, rows * columns, (PathLabels){NULL, 0}, arena);
}
