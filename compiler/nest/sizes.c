/* SPDX-License-Identifier: Apache-2.0 */
/* Nests for other sizes of an open dim than its typical one. */
#include "nest/nest.h"

const Graph *nest_graph_at(Arena *arena, const Graph *g, int32_t dim, int64_t size)
{
    Graph *at = arena_copy(arena, g, sizeof *g);
    at->dims.list.at =
        arena_copy(arena, g->dims.list.at, g->dims.list.n * sizeof *g->dims.list.at);
    at->dims.list.at[dim].typical = size;
    return at;
}
