/* SPDX-License-Identifier: Apache-2.0 */
/* The table of path/cost.h. */
#include "path/cost.h"

const double *soft_table_new(Arena *arena, int steps)
{
    double *table = ARENA_ARRAY(arena, (size_t)steps + 2, double);
    for (int i = 0; i < steps + 2; i++) {
        table[i] = log2(1.0 + exp2(-(double)i * (SOFT_RANGE / steps)));
    }
    return table;
}
