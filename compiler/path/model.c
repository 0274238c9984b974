/* SPDX-License-Identifier: Apache-2.0 */
/* The table of path/cost.h. */
#include "path/cost.h"

const double *soft_table_new(Arena *arena)
{
    double *table = ARENA_ARRAY(arena, SOFT_STEPS + 2, double);
    for (int i = 0; i < SOFT_STEPS + 2; i++) {
        table[i] = log2(1.0 + exp2(-(double)i * (SOFT_RANGE / SOFT_STEPS)));
    }
    return table;
}
