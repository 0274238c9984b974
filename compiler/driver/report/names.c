/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values and loops, sizes in words (report.h). */
#include "driver/report/report.h"

void report_bytes(Text *out, int64_t bytes)
{
    text_bytes(out, bytes, "B");
}

const char *report_value_name(const Graph *g, NodeRef n, Arena *arena)
{
    const Node *node = graph_node(g, n);
    if (node->op == OP_INPUT) {
        return g->params.at[node->param].name->text;
    }
    return node->name != NULL ? node->name->text : str_format(arena, "%%%u", n);
}

const char *report_loop_index(const Nest *nest, GraphNames names, uint32_t loop)
{
    const NestAxis *axis = &nest->axes[nest->items[loop].axis];
    return names[axis->node[0]][axis->label[0]];
}
