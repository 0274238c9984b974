/* SPDX-License-Identifier: Apache-2.0 */
/* The partition as text, after its graph: groups with their axes (a label per node), and where
 * each value lives.
 *
 *     partition {
 *       group 0 [%4, %9] {
 *         axis [a,a]          ; o
 *       }
 *       value %4 tile
 *       value %5 workspace "what reads it shares no loop with it"
 *       value %9 result 0
 *     } */
#include "fuse/fuse.h"
#include "dump/text.h"

static void dump_group(const Partition *p, uint32_t k, Text *out)
{
    const Group *group = &p->groups[k];
    text_printf(out, "group %u [", k);
    for (uint32_t at = 0; at < group->n_nodes; at++) {
        text_printf(out, "%s%%%u", at == 0 ? "" : ", ", group->nodes[at]);
    }
    text_put(out, "] {\n");
    out->indent++;
    for (uint32_t x = 0; x < group->n_axes; x++) {
        text_put(out, "axis [");
        for (uint32_t at = 0; at < group->n_nodes; at++) {
            text_put(out, at == 0 ? "" : ",");
            if (group->axes[x].label[at] < 0) {
                text_char(out, '_');
            } else {
                dump_label(out, group->axes[x].label[at]);
            }
        }
        text_put(out, "] ; ");
        dump_dim(out, &p->graph->dims, group->axes[x].extent);
        text_put(out, group->axes[x].reduced ? ", reduced\n" : "\n");
    }
    out->indent--;
    text_put(out, "}\n");
}

void fuse_dump(const Partition *p, Text *out)
{
    text_put(out, "partition {\n");
    out->indent++;
    for (uint32_t k = 0; k < p->n_groups; k++) {
        dump_group(p, k, out);
    }
    for (NodeRef n = 0; n < p->graph->nodes.n; n++) {
        if (p->residence[n] == RESIDE_NONE) {
            continue;
        }
        text_printf(out, "value %%%u %s", n, residence_name(p->residence[n]));
        if (p->residence[n] == RESIDE_RESULT) {
            text_printf(out, " %d", (int)p->result_of[n]);
        }
        if (p->reason[n] != NULL) {
            text_char(out, ' ');
            text_quoted(out, str_from(p->reason[n]));
        }
        text_char(out, '\n');
    }
    out->indent--;
    text_put(out, "}\n");
}
