/* SPDX-License-Identifier: Apache-2.0 */
/* Positions on a ring, `x[mod(i + 1, n)]`, for machines that have no gathers. */
#ifndef OPT_RINGS_H
#define OPT_RINGS_H

#include "graph/graph.h"

/* Is the value the position of an index of that extent, and a number `by` > 0, on a ring of it? */
bool ring_position(const Graph *g, NodeRef n, int64_t extent, int64_t *by);
/* The tensor with element i + by of dimension d in the place of i: two pieces that are put together. */
NodeRef ring_turned(Graph *g, Arena *scratch, NodeRef x, uint32_t d, int64_t by, Span span);

#endif
