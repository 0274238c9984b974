/* SPDX-License-Identifier: Apache-2.0 */
/* What is put together of pieces is so at once: no loop makes a part of it. */
#include "nest/verify.h"

const char *nest_pieces_problem(const Nest *nest, const uint32_t *leaf, NodeRef n)
{
    if (op_info(graph_node(nest->graph, n)->op)->kind != OPKIND_JOIN || leaf[n] == NEST_NONE) {
        return NULL;
    }
    for (uint32_t p = nest->items[leaf[n]].parent; p != NEST_NONE; p = nest->items[p].parent) {
        if (nest_axis_label(&nest->axes[nest->items[p].axis], n) >= 0) {
            return "is put together of pieces, and a loop cuts it";
        }
    }
    return NULL;
}
