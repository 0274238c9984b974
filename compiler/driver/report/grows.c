/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that grow with open dims (spill.h). */
#include "driver/report/spill.h"

static uint32_t where(const Nest *nest, NodeRef n)
{
    const NestValue *v = &nest->values[n];
    return v->residence == RESIDE_TILE ? v->alloc_loop : NEST_NONE;
}

/* The extent of a dimension of the block when open dim `dim` has `size` positions (-1: typical). */
static int64_t block_extent(const Nest *nest, NodeRef n, uint32_t d, int32_t dim, int64_t size)
{
    const Node *node = graph_node(nest->graph, n);
    int64_t extent = node->shape[d].sym >= 0 && node->shape[d].sym == dim
                         ? size
                         : dim_typical(&nest->graph->dims, node->shape[d]);
    uint32_t loop = nest_loop_of(nest, where(nest, n), n, node->out[d]);
    int64_t span = loop == NEST_NONE ? extent : nest_loop_span(nest, loop, n);
    return span < extent ? span : extent;
}

bool nest_grows_with(const Nest *nest, NodeRef n, int32_t dim)
{
    const Node *node = graph_node(nest->graph, n);
    for (uint32_t d = 0; d < node->rank; d++) {
        if (node->shape[d].sym == dim &&
            nest_loop_of(nest, where(nest, n), n, node->out[d]) == NEST_NONE) {
            return true;
        }
    }
    return false;
}

bool nest_grows(const Nest *nest, NodeRef n)
{
    bool grows = false;
    for (uint32_t k = 0; k < nest->graph->dims.list.n; k++) {
        grows |= nest_grows_with(nest, n, (int32_t)k);
    }
    return grows;
}

static int64_t block_bytes(const Nest *nest, NodeRef n, int32_t dim, int64_t size)
{
    const Node *node = graph_node(nest->graph, n);
    int64_t bytes = dtype_bytes(node->dtype);
    for (uint32_t d = 0; d < node->rank; d++) {
        bytes = sat_mul(bytes, block_extent(nest, n, d, dim, size));
    }
    return bytes;
}

int64_t nest_stays_to(const Nest *nest, NodeRef n, int32_t dim, int64_t bytes)
{
    int64_t lo = 0, hi = (int64_t)1 << 40; /* fits; does not */
    while (lo + 1 < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (block_bytes(nest, n, dim, mid) <= bytes) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}
