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
    return (PathProblem){n, operands, {NULL, 0}, ends / 2, sizes, NULL, false};
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
    return (PathProblem){2 * n, operands, {open, 2 * n_open}, 2 * n_labels, sizes, NULL, false};
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
                         false};
}
