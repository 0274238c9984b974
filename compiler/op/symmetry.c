/* SPDX-License-Identifier: Apache-2.0 */
/* See symmetry.h. */
#include "op/symmetry.h"

uint32_t symmetry_next(uint32_t rank, const int32_t *classes, uint32_t d)
{
    uint32_t next = d + 1;
    while (next < rank && (classes[d] == 0 || classes[next] != classes[d])) {
        next++;
    }
    return next;
}

uint32_t symmetry_before(uint32_t rank, const int32_t *classes, uint32_t d)
{
    for (uint32_t e = d; e-- > 0;) {
        if (classes[d] != 0 && classes[e] == classes[d]) {
            return e;
        }
    }
    return rank;
}

const int32_t *symmetry_copy(Arena *arena, uint32_t rank, const int32_t *classes)
{
    return classes == NULL ? NULL : arena_copy(arena, classes, rank * sizeof *classes);
}

bool symmetry_eq(uint32_t rank, const int32_t *a, const int32_t *b)
{
    for (uint32_t d = 0; d < rank; d++) {
        if ((a == NULL ? 0 : a[d]) != (b == NULL ? 0 : b[d])) {
            return false;
        }
    }
    return true;
}

const char *symmetry_problem(DType dtype, uint32_t rank, const Dim *shape,
                             const int32_t *classes)
{
    uint32_t order = 1;
    for (uint32_t d = 0; classes != NULL && d < rank; d++) {
        uint32_t members = 1, first = d;
        for (uint32_t e = symmetry_before(rank, classes, d); e < rank;
             e = symmetry_before(rank, classes, e)) {
            members++;
            first = e;
        }
        if (classes[d] == 0) {
            continue;
        }
        if (classes[d] != (int32_t)(classes[d] < 0 ? -1 : 1) * (int32_t)(first + 1) ||
            (members == 1 && symmetry_next(rank, classes, d) == rank)) {
            return "dimensions are in no class, or in one of several";
        }
        if (!dim_eq(shape[d], shape[first])) {
            return "dimensions of different extents are exchanged";
        }
        if (classes[d] < 0 && dtype == DTYPE_BOOL) {
            return "a truth value has no negative";
        }
        order *= members; /* in the end the product of the factorials of all classes */
        if (order > SYMMETRY_LIMIT) {
            return "it has too many exchanges";
        }
    }
    return NULL;
}
