/* SPDX-License-Identifier: Apache-2.0 */
/* -Wspill: values that go to memory although nobody asked for it. */
#include "nest/nest.h"

void nest_warn_spills(Ctx *ctx, const Nest *nest)
{
    const Graph *g = nest->graph;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        const NestValue *v = &nest->values[n];
        if (v->residence != RESIDE_WORKSPACE || node->allow_spill || node->rank == 0) {
            continue;
        }
        const char *name = node->name == NULL ? "an intermediate" : node->name->text;
        Diagnostic *d =
            diag_warning(&ctx->diags, W_SPILL, node->span,
                         "%s%s%s goes to memory: %lld bytes for the typical extents",
                         node->name == NULL ? "" : "'", name, node->name == NULL ? "" : "'",
                         (long long)nest_node_bytes(g, n));
        if (d != NULL && v->reason != NULL) {
            diag_help(d, "%s%s", v->reason,
                      node->name == NULL ? "" : "; 'spill NAME' in the kernel allows it");
        }
    }
}
