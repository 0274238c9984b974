/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives, from the results back to the parameters. The adjoint of a value v is what the seeds say of the results, times how those
 * change with v: a tensor of v's shape. Each reader of v adds a part to it, and when all have, the value's own operands get theirs:
 *
 *     C = einsum A[i,k], B[k,j] -> [i,j]     gives A   einsum C'[i,j], B[k,j] -> [i,k]
 *     y = exp x[i] -> [i]                    gives x   y'[i] * y[i]
 *     s = reduce.sum x[i,j] -> [i]           gives x   copy s'[i] -> [i,j]
 *     w = view x[a+b] -> [a,b]               gives x   the sum over b of w' moved by b, with zeros around it
 *     p = join a at [i], b at [i + n]        gives b   view p'[i + n]
 *     g = gather T, tok[n], [e] -> [n,e]     gives T   reduce.sum over n of g'[n,e] where tok[n] is the position: a scatter
 *
 * All are nodes of the same graph as the values, so that whoever plans it decides what is kept and what is computed again. Of complex
 * numbers z = a + bi the adjoint is (d/da) + (d/db) i. Where a function has a kink the derivative is that of the first case that holds: 0 of
 * abs and relu at 0, of a maximum all goes to its first place.
 *
 * Einsum strings, indices and calls are nodes of few kinds here, each with one rule; made of the kernel IR a derivative would lose contractions,
 * symmetry and fusion. shift.c leaves out maxima that results do not depend on, which a rule for each node cannot see. */
#include "graph/gradient_parts.h"
#include "graph/recurrence.h"

#include <string.h>

static void back(Grad *d, NodeRef r)
{
    const Node node = *graph_node(d->g, r);
    NodeRef G = d->adjoint[r];
    d->span = node.span;
    switch (op_info(node.op)->kind) {
    case OPKIND_MAP:
        gradient_back_map(d, r, &node, gradient_cast(d, G, dtype_computes(node.dtype)));
        return;
    case OPKIND_CONTRACT:
        for (uint32_t k = 0; k < node_factors(&node); k++) {
            if (d->wanted[node.operand[k]]) {
                gradient_back_factor(d, &node, k, G);
            }
        }
        return;
    case OPKIND_REDUCE:
        gradient_back_fold(d, r, &node, G);
        return;
    case OPKIND_VIEW:
        gradient_back_view(d, &node, G);
        return;
    case OPKIND_JOIN:
        gradient_back_join(d, &node, G);
        return;
    case OPKIND_GATHER:
        gradient_back_gather(d, &node, G);
        return;
    case OPKIND_DENSE:
        gradient_back_dense(d, r, &node, G);
        return;
    case OPKIND_STEPS: /* not one by one */
    case OPKIND_LEAF:
        return;
    }
}

/* Of a recurrence all values are looked at together, at the first of them: is that the node, and does one of them count? */
static bool ends_recurrence(const Grad *d, NodeRef r)
{
    bool counts = false;
    for (NodeRef k = 0; k < d->n; k++) {
        const Node *n = graph_node(d->g, k);
        if (n->op == OP_STEPS && n->steps.recurrence == graph_node(d->g, r)->steps.recurrence) {
            if (k < r) {
                return false;
            }
            counts = counts || (d->adjoint[k] != NODE_NONE && d->wanted[k]);
        }
    }
    return counts;
}

void gradient_sweep(Grad *d)
{
    for (NodeRef r = d->n; r-- > 0;) {
        if (graph_node(d->g, r)->op == OP_STEPS) {
            if (ends_recurrence(d, r)) {
                gradient_back_steps(d, r);
            }
        } else if (d->adjoint[r] != NODE_NONE && d->wanted[r]) {
            back(d, r);
        }
    }
}

static void find_wanted(Grad *d, const CheckedGradient *spec)
{
    for (NodeRef r = 0; r < d->n; r++) {
        const Node *n = graph_node(d->g, r);
        for (uint32_t p = 0; n->op == OP_INPUT && p < spec->n_params; p++) {
            d->wanted[r] = d->wanted[r] || spec->param[p] == n->param;
        }
    }
    gradient_spread_wanted(d);
}

void gradient_spread_wanted(Grad *d)
{
    for (NodeRef r = 0; r < d->n; r++) {
        const Node *n = graph_node(d->g, r);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            d->wanted[r] = d->wanted[r] || d->wanted[n->operand[k]];
        }
        d->wanted[r] = d->wanted[r] && !dtype_is_exact(n->dtype) &&
                       !((n->op == OP_RMAX || n->op == OP_RMIN) &&
                         graph_shifts_out(d->arena, d->g, r, d->n));
    }
}

/* What each result counts: a parameter, or 1 for the only one. */
static void seed(Grad *d, const CheckedKernel *kernel)
{
    const CheckedGradient *spec = kernel->gradient;
    uint32_t next = spec->of->n_params;
    Graph *g = d->g;
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result r = g->results.at[k];
        const Node n = *graph_node(g, r.node);
        if (dtype_is_exact(n.dtype)) {
            continue;
        }
        d->span = r.span;
        NodeRef part;
        if (spec->seeds) {
            Param p = {.name = kernel->values.at[next++].name,
                       .role = n.rank == 0 ? PARAM_SCALAR : PARAM_IN,
                       .dtype = n.dtype,
                       .rank = r.rank > 0 ? r.rank : n.rank,
                       .shape = r.rank > 0 ? r.shape : n.shape,
                       .span = r.span,
                       .n_collapsed = r.rank > 0 ? n.rank : 0,
                       .collapsed = r.rank > 0 ? n.shape : NULL};
            vec_push(g->arena, &g->params, p);
            part = graph_input(g, g->params.n - 1, r.span);
        } else {
            part = gradient_number(d, dtype_computes(n.dtype), 1);
        }
        if (d->wanted[r.node]) {
            gradient_give(d, r.node, part);
        }
    }
}

static NodeRef named_copy(Grad *d, NodeRef x, Sym name)
{
    const Node *n = graph_node(d->g, x);
    uint32_t rank = n->rank;
    Access whole = access_in_order(d->arena, rank);
    NodeSpec spec = node_spec(OP_COPY, n->dtype, 1, &x, &whole, rank,
                              labels_in_order(d->arena, rank), n->shape, d->span);
    spec.name = name;
    return graph_add(d->g, &spec);
}

/* dP, for each parameter that is named, and the kernel's own results that are. */
static void deliver(Grad *d, const CheckedKernel *kernel)
{
    const CheckedGradient *spec = kernel->gradient;
    Graph *g = d->g;
    VEC(Result) results = {0};
    for (uint32_t k = 0; k < spec->n_params; k++) {
        const Param p = g->params.at[spec->param[k]];
        NodeRef of = NODE_NONE;
        for (NodeRef r = 0; r < d->n; r++) {
            const Node *n = graph_node(g, r);
            of = n->op == OP_INPUT && n->param == spec->param[k] ? r : of;
        }
        d->span = p.span;
        NodeRef x = of == NODE_NONE ? NODE_NONE : d->adjoint[of];
        if (x == NODE_NONE) {
            x = gradient_zeros(d, p.dtype, param_rank(&p), param_shape(&p));
        }
        Sym name = kernel->values.at[kernel->n_params + k].name;
        Result r = {.name = name,
                    .node = named_copy(d, gradient_cast(d, x, p.dtype), name),
                    .param = -1,
                    .span = p.span};
        if (p.n_collapsed > 0) {
            r.rank = p.rank;
            r.shape = p.shape;
        }
        vec_push(g->arena, &results, r);
    }
    for (uint32_t k = 0; k < spec->n_with; k++) {
        vec_push(g->arena, &results, g->results.at[spec->with[k]]);
    }
    g->results.at = results.at;
    g->results.n = results.n;
    g->results.cap = results.cap;
}

Graph *graph_gradient(Ctx *ctx, Arena *arena, Graph *g, const CheckedKernel *kernel)
{
    const CheckedGradient *spec = kernel->gradient;
    Grad d = {.ctx = ctx, .g = g, .arena = arena, .n = g->nodes.n, .span = kernel->span};
    d.adjoint = ARENA_ARRAY(arena, d.n, NodeRef);
    d.wanted = ARENA_ARRAY(arena, d.n, bool);
    memset(d.adjoint, 0xff, d.n * sizeof *d.adjoint);
    find_wanted(&d, spec);
    seed(&d, kernel);
    gradient_sweep(&d);
    deliver(&d, kernel);
    g->name = kernel->name;
    g->span = kernel->span;
    g->signature = kernel->signature;
    g->ranks = (TextLines){0};
    return graph_prune(arena, g);
}
