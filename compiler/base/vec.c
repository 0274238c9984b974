/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of vectors: doubling, so n pushes copy fewer than 2n elements. */
#include "base/vec.h"

#include <string.h>

void *vec_grow(Arena *a, void *at, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return at;
    }
    uint32_t grown = n < 4 ? 8 : n * 2;
    /* Beyond 2^31 elements the count no longer fits: ask for more than any budget, which ends in the trap. */
    void *to = arena_array(a, n > UINT32_MAX / 2 ? SIZE_MAX : grown, size);
    if (n != 0) {
        memcpy(to, at, (size_t)n * size);
        arena_drop(a, at, (size_t)*cap * size);
    }
    *cap = grown;
    return to;
}
