/* SPDX-License-Identifier: Apache-2.0 */
/* See apply.h. Labels that one operand alone has and the output lacks are summed first, by a node of their own, as the
 * cost model counts them; all steps are in the accumulator's type, and the last is converted back when that differs.
 * Sliced labels stay in every step, so that each step is one slice's when the kernel loops over them; the last node names
 * them, for fusion to put that loop around all of it, and sums those that the output lacks. */
#include "path/apply.h"

#include <string.h>

#include "dump/text.h"
#include "path/terms/factor.h"
#include "path/prepare.h"
#include "path/terms/share.h"

typedef struct Applier {
    Ctx *ctx;
    Arena *arena;
    const Graph *from;
    Graph *to;
    const Node *node;  /* the contraction being split, of the old graph */
    uint32_t *holders; /* [n_labels]: tensors still to be contracted that have the label, the
                          output counting as one */
    const uint32_t
        *sliced; /* labels that become loops of the kernel: kept to the end, and summed there */
    uint32_t n_sliced;
    const int32_t *marked; /* the node being added names these as sliced; null: none */
    Sharing *sharing;      /* null: planned by itself */
    uint32_t term;
} Applier;

/* A tensor on its way through the tree: a node of the new graph, and which label each of its dimensions is. */
typedef struct Partial {
    NodeRef node;
    Access access; /* in the labels of the contraction */
} Partial;

PathProblem path_problem_of(Arena *arena, const Graph *g, NodeRef ref)
{
    const Node *n = graph_node(g, ref);
    PathProblem p = {.n_operands = n->n_operands, .n_labels = n->n_labels};
    PathLabels *operands = ARENA_ARRAY(arena, n->n_operands, PathLabels);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        uint32_t *at = ARENA_ARRAY(arena, n->access[k].rank, uint32_t);
        uint32_t count = 0;
        for (uint32_t d = 0; d < n->access[k].rank; d++) {
            if (n->access[k].index[d].label >= 0) {
                at[count++] = (uint32_t)n->access[k].index[d].label;
            }
        }
        operands[k] = (PathLabels){at, count};
    }
    uint32_t *output = ARENA_ARRAY(arena, n->rank, uint32_t);
    for (uint32_t d = 0; d < n->rank; d++) {
        output[d] = (uint32_t)n->out[d];
    }
    int64_t *sizes = ARENA_ARRAY(arena, n->n_labels, int64_t);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        sizes[l] = dim_typical(&g->dims, n->extent[l]);
        p.typical |= n->extent[l].sym >= 0;
    }
    p.operands = operands;
    p.output = (PathLabels){output, n->rank};
    p.sizes = sizes;
    p.names = node_names(arena, n);
    return p;
}

/* The parameter whose elements, perhaps summed or converted, the node holds; NONE: it is made of others. */
static uint32_t param_of(const Graph *g, NodeRef ref)
{
    const Node *n = graph_node(g, ref);
    while (n->op != OP_INPUT && n->n_operands == 1) {
        n = graph_node(g, n->operand[0]);
    }
    return n->op == OP_INPUT ? n->param : UINT32_MAX;
}

/* By operand, which of the equation's it is; null: operands and parameters are not one to one. */
static const uint32_t *places_of(Arena *arena, const Graph *g, const Node *n)
{
    uint32_t *place = ARENA_ARRAY(arena, n->n_operands, uint32_t);
    uint8_t *taken = ARENA_ARRAY(arena, g->params.n, uint8_t);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        place[k] = param_of(g, n->operand[k]);
        if (place[k] >= g->params.n || taken[place[k]]) {
            return NULL;
        }
        taken[place[k]] = 1;
    }
    return place;
}

/* The problem that is searched, and by its labels those of the node. */
static PathProblem prepared_problem(Arena *arena, const Graph *g, NodeRef ref, bool equation,
                                    const uint32_t **origin)
{
    const Node *n = graph_node(g, ref);
    PathProblem raw = path_problem_of(arena, g, ref);
    PathSourceOperand *operands = ARENA_ARRAY(arena, n->n_operands, PathSourceOperand);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        int32_t *label = ARENA_ARRAY(arena, n->access[k].rank, int32_t);
        for (uint32_t d = 0; d < n->access[k].rank; d++) {
            label[d] = n->access[k].index[d].label;
        }
        operands[k] = (PathSourceOperand){n->access[k].rank, label};
    }
    PathSource s = {.n_operands = n->n_operands,
                    .operands = operands,
                    .place = equation ? places_of(arena, g, n) : NULL,
                    .n_given = g->params.n,
                    .rank = raw.output.n,
                    .output = raw.output.at,
                    .n_labels = raw.n_labels,
                    .sizes = raw.sizes,
                    .names = raw.names,
                    .typical = raw.typical};
    return path_prepare(&s, arena, origin);
}

/* ---- building steps ---- */

static void count_holders(Applier *a, const Partial *t, int step)
{
    for (uint32_t d = 0; d < t->access.rank; d++) {
        int32_t l = t->access.index[d].label;
        bool again = false;
        for (uint32_t e = 0; e < d; e++) {
            again |= t->access.index[e].label == l;
        }
        if (l >= 0 && !again) {
            a->holders[l] = (uint32_t)((int)a->holders[l] + step);
        }
    }
}

/* The labels of up to two tensors that somebody still holds, in order of first appearance. */
static uint32_t kept_labels(Applier *a, const Partial *t, uint32_t n, int32_t *out)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t d = 0; d < t[k].access.rank; d++) {
            int32_t l = t[k].access.index[d].label;
            bool again = l < 0 || a->holders[l] == 0;
            for (uint32_t e = 0; !again && e < count; e++) {
                again = out[e] == l;
            }
            if (!again) {
                out[count++] = l;
            }
        }
    }
    return count;
}

/* Labels as graph_add wants them: numbered below the count of labels in the node. */
static Partial add_step(Applier *a, Op op, const Partial *t, uint32_t n, uint32_t rank,
                        const int32_t *out)
{
    int32_t *renumber = ARENA_ARRAY(a->arena, a->node->n_labels, int32_t);
    int32_t next = 0;
    NodeRef *operand = ARENA_ARRAY(a->arena, n, NodeRef);
    Access *access = ARENA_ARRAY(a->arena, n, Access);
    for (uint32_t k = 0; k < n; k++) {
        Index *index =
            arena_copy(a->arena, t[k].access.index, t[k].access.rank * sizeof(Index));
        for (uint32_t d = 0; d < t[k].access.rank; d++) {
            int32_t l = index[d].label;
            if (l >= 0 && renumber[l] == 0) {
                renumber[l] = ++next;
            }
            index[d].label = l < 0 ? -1 : renumber[l] - 1;
        }
        operand[k] = t[k].node;
        access[k] = (Access){t[k].access.rank, index};
    }
    int32_t *labels = ARENA_ARRAY(a->arena, rank, int32_t);
    for (uint32_t d = 0; d < rank; d++) {
        labels[d] = renumber[out[d]] - 1;
    }
    Sym *name = ARENA_ARRAY(a->arena, a->node->n_labels, Sym);
    for (uint32_t l = 0; l < a->node->n_labels && a->node->label_name != NULL; l++) {
        if (renumber[l] != 0) {
            name[renumber[l] - 1] = a->node->label_name[l];
        }
    }
    int32_t sliced[RANK_LIMIT];
    for (uint32_t k = 0; a->marked != NULL && k < a->n_sliced; k++) {
        sliced[k] = renumber[a->marked[k]] - 1;
    }
    NodeSpec spec =
        node_spec(op, a->node->acc, n, operand, access, rank, labels, NULL, a->node->span);
    spec.acc = a->node->acc;
    spec.allow_spill = a->node->allow_spill;
    spec.names = (LabelNames){a->node->label_name == NULL ? 0 : (uint32_t)next, name};
    spec.sliced = (Slices){a->marked != NULL ? a->n_sliced : 0, sliced};
    return (Partial){graph_add(a->to, &spec), access_of(a->arena, rank, out)};
}

/* Sums the labels that nobody but `t` holds. The caller has taken `t` out of the holders. */
static Partial sum_private(Applier *a, Partial t)
{
    int32_t *kept = ARENA_ARRAY(a->arena, t.access.rank, int32_t);
    uint32_t n = kept_labels(a, &t, 1, kept);
    bool sums = false;
    for (uint32_t d = 0; d < t.access.rank; d++) {
        int32_t l = t.access.index[d].label;
        sums |= l >= 0 && a->holders[l] == 0;
    }
    Op op = a->node->acc == DTYPE_BOOL ? OP_ANY : OP_SUM;
    return sums ? add_step(a, op, &t, 1, n, kept) : t;
}

/* The result of all steps with its sliced labels: summed, or as they are when the output has them. */
static Partial finish_slices(Applier *a, const Partial *t, uint32_t n)
{
    const Node *node = a->node;
    int32_t out[2 * RANK_LIMIT], sliced[RANK_LIMIT];
    uint32_t rank = node->rank;
    CHECK(a->n_sliced <= RANK_LIMIT);
    memcpy(out, node->out, rank * sizeof *out);
    for (uint32_t k = 0; k < a->n_sliced; k++) {
        sliced[k] = (int32_t)a->sliced[k];
        if (node_reduces(node, sliced[k])) {
            out[rank++] = sliced[k];
        }
    }
    Partial whole = add_step(a, n == 1 ? OP_COPY : OP_EINSUM, t, n, rank, out);
    Op op = rank == node->rank ? OP_COPY : node->acc == DTYPE_BOOL ? OP_ANY : OP_SUM;
    a->marked = sliced;
    Partial result = add_step(a, op, &whole, 1, node->rank, node->out);
    a->marked = NULL;
    return result;
}

/* The intermediate of step `s`, if another contraction has made it. */
static bool find_shared(Applier *a, uint32_t s, Partial *out)
{
    int32_t labels[RANK_LIMIT];
    uint32_t rank = 0;
    NodeRef node = a->sharing == NULL
                       ? NODE_NONE
                       : share_find(a->sharing, a->from, a->term, s, labels, &rank);
    if (node == NODE_NONE) {
        return false;
    }
    *out = (Partial){node, access_of(a->arena, rank, labels)};
    return true;
}

/* The last step gives the dimensions in the order of the contraction's output, and its name. */
static NodeRef finish(Applier *a, const Partial *t, uint32_t n)
{
    const Node *node = a->node;
    Partial result = a->n_sliced > 0 ? finish_slices(a, t, n)
                                     : add_step(a, n == 1 ? OP_COPY : OP_EINSUM, t, n,
                                                node->rank, node->out);
    if (node->acc != node->dtype) {
        Access access = access_in_order(a->arena, node->rank);
        NodeSpec cast = node_spec(OP_CAST, node->dtype, 1, &result.node, &access, node->rank,
                                  labels_in_order(a->arena, node->rank), NULL, node->span);
        result.node = graph_add(a->to, &cast);
    }
    Node *made = &a->to->nodes.at[result.node];
    made->name = made->name == NULL ? node->name : made->name;
    made->allow_spill |= node->allow_spill;
    made->keep |= node->keep;
    return result.node;
}

static NodeRef build_tree(Applier *a, const NodeRef *map, const PathTree *tree)
{
    const Node *node = a->node;
    uint32_t n = node->n_operands;
    Partial *t = ARENA_ARRAY(a->arena, (size_t)n + tree->n_steps, Partial);
    a->holders = ARENA_ARRAY(a->arena, node->n_labels, uint32_t);
    for (uint32_t d = 0; d < node->rank; d++) {
        a->holders[node->out[d]]++;
    }
    for (uint32_t k = 0; k < a->n_sliced; k++) {
        a->holders[a->sliced[k]]++;
    }
    for (uint32_t k = 0; k < n; k++) {
        t[k] = (Partial){map[node->operand[k]], node->access[k]};
        count_holders(a, &t[k], 1);
    }
    for (uint32_t k = 0; k < n; k++) {
        count_holders(a, &t[k], -1);
        t[k] = sum_private(a, t[k]);
        count_holders(a, &t[k], 1);
    }
    for (uint32_t s = 0; s < tree->n_steps; s++) {
        Partial pair[2] = {t[tree->steps[s].a], t[tree->steps[s].b]};
        bool known = find_shared(a, s, &t[n + s]);
        if (s + 1 == tree->n_steps) {
            NodeRef result = known ? finish(a, &t[n + s], 1) : finish(a, pair, 2);
            if (a->sharing != NULL && !known && node->acc == node->dtype) {
                share_add(a->sharing, a->term, s, result, node->out, node->rank);
            }
            return result;
        }
        count_holders(a, &pair[0], -1);
        count_holders(a, &pair[1], -1);
        if (pair[0].node > pair[1].node) {
            /* One order for equal pairs, so that equal intermediates are one node across the kernel. */
            Partial swap = pair[0];
            pair[0] = pair[1];
            pair[1] = swap;
        }
        int32_t *out =
            ARENA_ARRAY(a->arena, (size_t)pair[0].access.rank + pair[1].access.rank, int32_t);
        uint32_t rank = kept_labels(a, pair, 2, out);
        if (!known) {
            t[n + s] = add_step(a, OP_EINSUM, pair, 2, rank, out);
            if (a->sharing != NULL) {
                share_add(a->sharing, a->term, s, t[n + s].node, out, rank);
            }
        }
        count_holders(a, &t[n + s], 1);
    }
    return finish(a, t, 1);
}

/* ---- the pass ---- */

static bool decide(Ctx *ctx, const PathControl *control, Sharing *sharing, uint32_t term,
                   PathDecision *d)
{
    PathTree tree = {0};
    PathLabels sliced = {0};
    if (sharing->active && term != PATH_NONE) {
        tree = share_tree(sharing, term, d->problem.n_operands);
        return path_accept(&d->problem, &control->options, tree, sliced, ctx, &d->result);
    }
    if (control->plan.at != NULL) {
        return path_plan_read(control->plan, &d->problem, ctx, &tree, &sliced) &&
               path_accept(&d->problem, &control->options, tree, sliced, ctx, &d->result);
    }
    if (control->linear != NULL) {
        return path_parse_given(control->linear, "path", &d->problem, ctx, &tree) &&
               path_accept(&d->problem, &control->options, tree, sliced, ctx, &d->result);
    }
    return path_search(&d->problem, &control->options, ctx, &d->result);
}

/* An order from outside is for the contractions that have one to decide; where there is none, for those of two operands, so that
 * a wrong one is told. */
static uint32_t least_decided(const Graph *g, const PathControl *control)
{
    if (control->options.memory_limit != 0) {
        return 0;
    }
    bool given = control->linear != NULL || control->plan.at != NULL;
    for (NodeRef k = 0; given && k < g->nodes.n; k++) {
        const Node *n = graph_node(g, k);
        given = op_info(n->op)->kind != OPKIND_CONTRACT || n->n_operands < 3;
    }
    return given ? 2 : 3;
}

/* An inout parameter that gets another parameter's or a constant's value needs a node to hold it. */
static NodeRef result_node(Graph *to, NodeRef node, int32_t param)
{
    const Node *n = graph_node(to, node);
    bool leaf = op_info(n->op)->kind == OPKIND_LEAF;
    if (param < 0 || !leaf || (n->op == OP_INPUT && n->param == (uint32_t)param)) {
        return node;
    }
    Index index[RANK_LIMIT];
    int32_t out[RANK_LIMIT];
    for (uint32_t d = 0; d < n->rank; d++) {
        index[d] = (Index){(int32_t)d, 0};
        out[d] = (int32_t)d;
    }
    Access access = {n->rank, index};
    NodeSpec copy =
        node_spec(OP_COPY, n->dtype, 1, &node, &access, n->rank, out, NULL, n->span);
    return graph_add(to, &copy);
}

Graph *path_apply(Ctx *ctx, Arena *arena, const Graph *g, const PathControl *control,
                  PathDecisions *out)
{
    Graph *to = graph_like(arena, g);
    to->form = GRAPH_BINARY;
    NodeRef *map = ARENA_ARRAY(arena, g->nodes.n, NodeRef);
    uint32_t least = least_decided(g, control);
    Sharing sharing;
    if (!share_plan(ctx, arena, g, control, &sharing)) {
        return NULL;
    }
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        const Node *n = graph_node(g, k);
        if (sharing.factored && sharing.sums.of[k] != 0) {
            if (sharing.sums.list.at[sharing.sums.of[k] - 1].root == k) {
                map[k] = factor_sum(ctx, &sharing, g, to, map, sharing.sums.of[k] - 1, out);
            }
            continue; /* a part of the sum: nobody else reads it */
        }
        bool split = op_info(n->op)->kind == OPKIND_CONTRACT &&
                     (n->n_operands == 1 || n->n_operands >= least ||
                      (sharing.active && sharing.term[k] != PATH_NONE));
        if (!split) {
            map[k] = graph_clone_node(to, g, k, map);
            continue;
        }
        PathDecision d = {.kernel = g->name, .span = n->span};
        const uint32_t *origin = NULL;
        d.problem = prepared_problem(arena, g, k, control->equation, &origin);
        if (!decide(ctx, control, &sharing, sharing.term[k], &d)) {
            return NULL;
        }
        uint32_t *sliced = ARENA_ARRAY(arena, d.result.n_sliced, uint32_t);
        for (uint32_t i = 0; i < d.result.n_sliced; i++) {
            sliced[i] = origin[d.result.sliced[i]];
        }
        Applier a = {.ctx = ctx,
                     .arena = arena,
                     .from = g,
                     .to = to,
                     .node = n,
                     .sliced = sliced,
                     .n_sliced = d.result.n_sliced,
                     .sharing =
                         sharing.active && sharing.term[k] != PATH_NONE ? &sharing : NULL,
                     .term = sharing.term[k]};
        if (n->rank + d.result.n_sliced > RANK_LIMIT) {
            diag_limit(&ctx->diags, E_LIMIT_SIZE, n->span,
                       "a kernel slices at most %u labels here, the order has %u",
                       RANK_LIMIT - n->rank, d.result.n_sliced);
            return NULL;
        }
        map[k] = build_tree(&a, map, &d.result.tree);
        vec_push(arena, &out->list, d);
    }
    if (sharing.active) {
        vec_push(arena, &out->together, sharing.report);
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        Result result = g->results.at[r];
        result.node = result_node(to, map[result.node], result.param);
        vec_push(arena, &to->results, result);
    }
    graph_copy_required(to, g, map);
    return graph_prune(arena, to);
}
