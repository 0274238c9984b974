/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions of several statements are ordered together:
 *
 *     %3 = einsum %0[a,b], %1[b,c] -> [a,c] as T           %3 = einsum %0[a,b], %1[b,c], %2[c] -> [a]
 *     %4 = einsum %3[a,b], %2[b] -> [a]              ->
 *
 * of which A (B x) takes two products of a matrix and a vector in the place of one of two matrices. Both orders round, each within the
 * bounds of its own contractions. A value that is a result, is read twice, or has a declared type is computed as written. */
#include "path/apply.h"

#include <math.h>

#define OPERANDS_MOST 9   /* of what is ordered together: the search is exact up to there */
#define GAIN          0.9 /* of the multiply-adds, at most */

typedef struct Absorber {
    Ctx *ctx;
    Arena scratch; /* reset after each node */
    const Graph *g;
    Graph *to;
    uint32_t *readers; /* [nodes of g]: results too */
    double *
        cost; /* [nodes of g]: multiply-adds of a contraction and of those that it has absorbed */
    NodeRef *map; /* [nodes of g]: in `to` */
} Absorber;

static bool may_be_absorbed(const Absorber *a, const Node *by, NodeRef at)
{
    const Node *n = graph_node(a->g, at);
    return op_info(n->op)->kind == OPKIND_CONTRACT && a->readers[at] == 1 && !n->keep &&
           !n->onto && n->dtype == by->dtype && n->acc == by->acc && n->acc == n->dtype &&
           graph_slices(a->g, at).n == 0;
}

/* Multiply-adds at typical sizes, in the best order that is found. */
static double cost_of(Absorber *a, NodeRef at)
{
    const Node *n = graph_node(a->to, at);
    PathOptions options = {.effort = 1};
    PathResult result;
    if (n->n_operands < 3) {
        double product = 1;
        for (uint32_t l = 0; l < n->n_labels; l++) {
            product *= (double)dim_typical(&a->to->dims, n->extent[l]);
        }
        return product;
    }
    PathProblem p = path_problem_of(&a->scratch, a->to, at);
    ArenaMark mark =
        arena_mark(&a->ctx->arena); /* where the search leaves the order, which is not needed */
    if (!path_search(&p, &options, a->ctx, &result)) {
        return INFINITY;
    }
    double cost = pow(10, result.costs.log10_multiply_adds);
    arena_reset(&a->ctx->arena, mark);
    return cost;
}

/* Adds the operands of `inner`, which is read by `access`; its own labels are numbered behind those that have names. */
static void add_operands(Absorber *a, const Node *inner, const Access *access, NodeSpec *spec,
                         NodeRef *operand, Access *at, LabelNames *names, Sym *name)
{
    Index *of_label = ARENA_ARRAY(&a->scratch, (size_t)inner->n_labels + 1, Index);
    for (uint32_t l = 0; l < inner->n_labels; l++) {
        of_label[l] = (Index){.label = -1};
        if (node_reduces(inner, (int32_t)l)) {
            of_label[l].label = (int32_t)names->n;
            name[names->n++] = inner->label_name == NULL ? NULL : inner->label_name[l];
        }
    }
    for (uint32_t d = 0; d < inner->rank; d++) {
        of_label[inner->out[d]] = access->index[d];
    }
    for (uint32_t k = 0; k < inner->n_operands; k++) {
        Index *index = ARENA_ARRAY(&a->scratch, (size_t)inner->access[k].rank + 1, Index);
        for (uint32_t d = 0; d < inner->access[k].rank; d++) {
            Index x = inner->access[k].index[d];
            index[d] = x.label >= 0 ? of_label[x.label] : x;
        }
        operand[spec->n_operands] = inner->operand[k];
        at[spec->n_operands++] = (Access){inner->access[k].rank, index};
    }
}

/* The node of `to` that contracts all at once; NODE_NONE: there is nothing to absorb, or too much. */
static NodeRef absorb(Absorber *a, NodeRef k, double *apart)
{
    const Node *n = graph_node(a->g, k);
    uint32_t total = 0, absorbed = 0, labels = n->n_labels;
    for (uint32_t i = 0; i < n->n_operands; i++) {
        bool may = may_be_absorbed(a, n, n->operand[i]);
        total += may ? graph_node(a->to, a->map[n->operand[i]])->n_operands : 1;
        absorbed += may ? 1 : 0;
        labels += may ? graph_node(a->to, a->map[n->operand[i]])->n_labels : 0;
    }
    if (absorbed == 0 || total > OPERANDS_MOST || n->onto || graph_slices(a->g, k).n > 0) {
        return NODE_NONE;
    }
    NodeSpec spec = graph_spec(a->g, k);
    NodeRef *operand = ARENA_ARRAY(&a->scratch, total, NodeRef);
    Access *at = ARENA_ARRAY(&a->scratch, total, Access);
    Sym *name = ARENA_ARRAY(&a->scratch, labels, Sym);
    LabelNames names = {n->n_labels, name};
    for (uint32_t l = 0; n->label_name != NULL && l < n->n_labels; l++) {
        name[l] = n->label_name[l];
    }
    spec.n_operands = 0;
    for (uint32_t i = 0; i < n->n_operands; i++) {
        NodeRef inner = a->map[n->operand[i]];
        if (may_be_absorbed(a, n, n->operand[i])) {
            *apart += a->cost[n->operand[i]];
            add_operands(a, graph_node(a->to, inner), &n->access[i], &spec, operand, at, &names,
                         name);
        } else {
            operand[spec.n_operands] = inner;
            at[spec.n_operands++] = n->access[i];
        }
    }
    spec.operand = operand;
    spec.access = at;
    spec.names = names;
    return graph_add(a->to, &spec);
}

static NodeRef rewrite(Absorber *a, NodeRef k)
{
    NodeRef made = graph_clone_node(a->to, a->g, k, a->map);
    const Node *n = graph_node(a->g, k);
    if (op_info(n->op)->kind != OPKIND_CONTRACT) {
        return made;
    }
    double apart = 0;
    NodeRef together = absorb(a, k, &apart);
    bool read_on = a->readers[k] == 1 && !n->keep &&
                   n->n_operands < OPERANDS_MOST; /* it may be absorbed itself */
    a->cost[k] = together != NODE_NONE || read_on ? cost_of(a, made) : 0;
    if (together != NODE_NONE) {
        double cost = cost_of(a, together);
        apart += a->cost[k];
        if (cost < GAIN * apart) {
            made = together;
            a->cost[k] = cost;
        }
    }
    return made;
}

Graph *path_absorb(Ctx *ctx, Arena *arena, const Graph *g)
{
    Arena work;
    arena_init(&work, &ctx->budget);
    Absorber a = {.ctx = ctx, .g = g, .to = graph_like(&work, g)};
    arena_init(&a.scratch, &ctx->budget);
    a.readers = graph_readers(&work, g);
    a.cost = ARENA_ARRAY(&work, g->nodes.n, double);
    a.map = ARENA_ARRAY(&work, g->nodes.n, NodeRef);
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        ArenaMark mark = arena_mark(&a.scratch);
        a.map[k] = rewrite(&a, k);
        arena_reset(&a.scratch, mark);
    }
    graph_copy_results(a.to, g, a.map);
    Graph *pruned = graph_prune(arena, a.to);
    arena_release(&a.scratch);
    arena_release(&work);
    return pruned;
}
