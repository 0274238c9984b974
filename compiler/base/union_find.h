/* SPDX-License-Identifier: Apache-2.0 */
/* Union-find: numbers in sets that are joined. The least number of a set is its root, which stands for it: what is known of a
 * set is kept at its root, and whoever joins two sets puts it together there. */
#ifndef BASE_UNION_FIND_H
#define BASE_UNION_FIND_H

#include <stdbool.h>

#include "base/arena.h"

/* The parents of n numbers, each a set of its own; a root is its own parent. */
static inline uint32_t *union_new(Arena *a, uint32_t n)
{
    uint32_t *parent = ARENA_ARRAY(a, n, uint32_t);
    for (uint32_t x = 0; x < n; x++) {
        parent[x] = x;
    }
    return parent;
}

/* The root of the set that has x. */
static inline uint32_t union_find(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x) {
        parent[x] = parent[parent[x]]; /* a shorter way for the next search */
        x = parent[x];
    }
    return x;
}

/* Joins the sets of *x and *y: *x becomes the root of both, *y the other root. False: they are one set already. */
static inline bool union_join(uint32_t *parent, uint32_t *x, uint32_t *y)
{
    uint32_t a = union_find(parent, *x), b = union_find(parent, *y);
    *x = a < b ? a : b;
    *y = a < b ? b : a;
    parent[*y] = *x;
    return a != b;
}

#endif
