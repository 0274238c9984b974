/* SPDX-License-Identifier: Apache-2.0 */
/* What every nest moves: each argument once, as far as it is read, and each result. */
#include "nest/price.h"

/* Of a value of which an access reads what its labels reach: one line of a diagonal. */
static double reached_bytes(const Graph *g, const Node *reader, const Use *use)
{
    const Node *n = graph_node(g, use->node);
    double bytes = (double)dtype_bytes(n->dtype);
    for (uint32_t d = 0; d < use->access.rank; d++) {
        int32_t label = use->access.index[d].label;
        Access after = {use->access.rank - d - 1, use->access.index + d + 1};
        if (label != -1 && !access_has_label(&after, label)) {
            Dim extent = is_piece_label(label) ? n->shape[d] : reader->extent[label];
            bytes *= (double)nest_typical(g, extent);
        }
    }
    return bytes;
}

/* What views read of one tensor, as far as it is seen that they read different parts of it. */
typedef struct Parts {
    VEC(NodeRef) views;
    double bytes;
} Parts;

/* Does each of two views read one run of some dimension, and none of the other's? */
static bool lie_apart(const Graph *g, const Node *x, const Node *y)
{
    for (uint32_t d = 0; d < x->access[0].rank; d++) {
        Affine a = x->at[d], b = y->at[d];
        bool runs = a.n == 1 && b.n == 1 && a.term[0].coef == 1 && b.term[0].coef == 1 &&
                    !affine_is_dim(a.term[0].var) && !affine_is_dim(b.term[0].var);
        int64_t of_a = runs ? nest_typical(g, x->extent[a.term[0].var]) : 0;
        int64_t of_b = runs ? nest_typical(g, y->extent[b.term[0].var]) : 0;
        if (runs && (sat_add(a.base, of_a) <= b.base || sat_add(b.base, of_b) <= a.base)) {
            return true;
        }
    }
    return false;
}

static void add_part(Arena *scratch, const Graph *g, Parts *p, NodeRef view, double bytes)
{
    const Node *x = graph_node(g, view);
    for (uint32_t i = 0; i < p->views.n; i++) {
        if (!lie_apart(g, x, graph_node(g, p->views.at[i]))) {
            return;
        }
    }
    vec_push(scratch, &p->views, view);
    p->bytes += bytes;
}

double nest_compulsory(Arena *scratch, const NestFacts *f, const Machine *machine)
{
    const Graph *g = f->g;
    double *most = ARENA_ARRAY(scratch, g->nodes.n, double), sum = 0.0;
    Parts *parts = arena_array(scratch, g->nodes.n, sizeof *parts);
    for (uint32_t k = 0; k < f->n_stored; k++) {
        const UseList *u = &f->uses[f->stored[k]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            const Use *use = &u->list.at[i];
            const Node *view = graph_node(g, use->node);
            NodeRef read = view->op == OP_VIEW ? view->operand[0] : use->node;
            double b = reached_bytes(g, graph_node(g, f->stored[k]), use);
            double all = (double)nest_node_bytes(g, read);
            b = view->op == OP_VIEW && b > all ? all : b;
            if (f->residence[read] != RESIDE_ARGUMENT) {
                continue;
            }
            if (view->op == OP_VIEW) {
                add_part(scratch, g, &parts[read], use->node, b);
                b = parts[read].bytes > b ? parts[read].bytes : b;
                b = b > all ? all : b;
            }
            most[read] = b > most[read] ? b : most[read];
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
