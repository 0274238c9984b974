/* SPDX-License-Identifier: Apache-2.0 */
/* What every nest moves: each argument once, as far as it is read, and each result. */
#include "nest/price.h"

/* Of a value of which an access reads what its labels reach: one line of a diagonal. */
static double reached_bytes(const Graph *g, const Node *reader, const Use *use)
{
    double bytes = (double)dtype_bytes(graph_node(g, use->node)->dtype);
    for (uint32_t l = 0; l < reader->n_labels; l++) {
        bytes *= access_has_label(&use->access, (int32_t)l)
                     ? (double)nest_typical(g, reader->extent[l])
                     : 1.0;
    }
    return bytes;
}

double nest_compulsory(Arena *scratch, const NestFacts *f, const Machine *machine)
{
    const Graph *g = f->g;
    double *most = ARENA_ARRAY(scratch, g->nodes.n, double), sum = 0.0;
    for (uint32_t k = 0; k < f->n_stored; k++) {
        const UseList *u = &f->uses[f->stored[k]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            const Use *use = &u->list.at[i];
            const Node *view = graph_node(g, use->node);
            NodeRef read = view->op == OP_VIEW ? view->operand[0] : use->node;
            double b = reached_bytes(g, graph_node(g, f->stored[k]), use);
            double all = (double)nest_node_bytes(g, read);
            b = view->op == OP_VIEW && b > all ? all : b;
            bool more = f->residence[read] == RESIDE_ARGUMENT && b > most[read];
            most[read] = more ? b : most[read];
        }
        if (f->result_of[f->stored[k]] >= 0) {
            most[f->stored[k]] = (double)nest_node_bytes(g, f->stored[k]) *
                                 (machine->reads_before_writing ? 2.0 : 1.0);
        }
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        sum += most[n];
    }
    return sum;
}
