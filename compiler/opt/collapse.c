/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbouring dimensions as one. Where every node that reads or writes dimensions d and d + 1 of a value has two labels for them
 * that stand side by side wherever either of them is, these are one label, whose extent is the product, and the value has a
 * dimension less:
 *
 *     mnij,mnab->ijab  with  A: [m,n,i,j], B: [m,n,a,b], R: [i,j,a,b]   ->   xy,xz->yz  with  A: [m_n,i_j], ...
 *
 * So contractions of many labels are products of matrices, with a loop for each role. Arrays are row-major: the elements stay where
 * they are. It begins with the assumption that all neighbours go together, and parts those that some node does not take so, until
 * none is left. */
#include "op/factors.h"
#include "opt/opt.h"

typedef struct Collapse {
    Ctx *ctx;
    Arena *arena; /* of what is known of the graph */
    const Graph *from;
    bool **joined; /* [nodes][rank]: does the dimension go with the next one? */
    Graph *to;
    bool changed;
} Collapse;

/* A node as one of its accesses, or its result: which label stands at each dimension of which value. */
typedef struct Side {
    NodeRef value;
    uint32_t rank;
    const Index *index; /* null: of the result */
    const int32_t *out;
} Side;

static Side side_of(const Graph *g, NodeRef at, uint32_t k)
{
    const Node *n = graph_node(g, at);
    if (k == n->n_operands) {
        return (Side){at, n->rank, NULL, n->out};
    }
    return (Side){n->operand[k], n->access[k].rank, n->access[k].index, NULL};
}

static int32_t label_at(const Side *s, uint32_t d)
{
    return s->index == NULL ? s->out[d] : s->index[d].label;
}

static void part(Collapse *c, NodeRef value, uint32_t d)
{
    c->changed |= c->joined[value][d];
    c->joined[value][d] = false;
}

/* Is `next` behind every `label` and nowhere else, in dimensions that go together? */
static bool go_together(const Collapse *c, NodeRef at, int32_t label, int32_t next)
{
    const Node *n = graph_node(c->from, at);
    Slices sliced = graph_slices(c->from, at);
    for (uint32_t k = 0; k < sliced.n; k++) {
        if (sliced.label[k] == label || sliced.label[k] == next) {
            return false; /* each is a loop of its own */
        }
    }
    for (uint32_t k = 0; k <= n->n_operands; k++) {
        Side s = side_of(c->from, at, k);
        uint32_t first = 0, second = 0;
        for (uint32_t d = 0; d < s.rank; d++) {
            first += label_at(&s, d) == label ? 1 : 0;
            second += label_at(&s, d) == next ? 1 : 0;
            if (label_at(&s, d) == label &&
                (d + 1 == s.rank || label_at(&s, d + 1) != next || !c->joined[s.value][d])) {
                return false;
            }
        }
        if (first > 1 || first != second) {
            return false;
        }
    }
    return true;
}

/* Parts what this node does not take together. */
static void part_at(Collapse *c, NodeRef at)
{
    const Node *n = graph_node(c->from, at);
    for (uint32_t k = 0; n->out != NULL && k <= n->n_operands; k++) {
        Side s = side_of(c->from, at, k);
        for (uint32_t d = 0; d + 1 < s.rank; d++) {
            int32_t label = label_at(&s, d), next = label_at(&s, d + 1);
            if (c->joined[s.value][d] &&
                (label < 0 || next < 0 || label == next || !go_together(c, at, label, next))) {
                part(c, s.value, d);
            }
        }
    }
}

/* What a caller hands over and gets back in one array has one shape. */
static void part_updates(Collapse *c)
{
    for (uint32_t r = 0; r < c->from->results.n; r++) {
        const Result *result = &c->from->results.at[r];
        for (NodeRef i = 0; result->param >= 0 && i < c->from->nodes.n; i++) {
            const Node *in = graph_node(c->from, i);
            if (in->op != OP_INPUT || in->param != (uint32_t)result->param) {
                continue;
            }
            for (uint32_t d = 0; d + 1 < in->rank; d++) {
                if (c->joined[i][d] != c->joined[result->node][d]) {
                    part(c, i, d);
                    part(c, result->node, d);
                }
            }
        }
    }
}

/* Slices are of single labels, and so is what is declared of symmetry; a view's labels stand in sums; and requirements tell places. */
static bool may_join(const Graph *g, NodeRef at)
{
    const Node *n = graph_node(g, at);
    bool fine = graph_slices(g, at).n == 0 && node_positions(n) == 0 &&
                !op_takes_whole(n->op) &&
                (n->op != OP_INPUT || g->params.at[n->param].symmetry == NULL);
    for (uint32_t r = 0; r < g->results.n; r++) {
        fine &= g->results.at[r].node != at || g->results.at[r].symmetry == NULL;
    }
    for (uint32_t r = 0; r < g->required.n; r++) {
        fine &= g->required.at[r].node != at;
    }
    return fine;
}

/* Of all values, which dimensions go with the next one; false: none. */
static bool find_joined(Collapse *c)
{
    const Graph *g = c->from;
    c->joined = ARENA_ARRAY(c->arena, (size_t)g->nodes.n + 1, bool *);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        bool may = may_join(g, n);
        c->joined[n] = ARENA_ARRAY(c->arena, (size_t)node->rank + 1, bool);
        for (uint32_t d = 0; d + 1 < node->rank; d++) {
            Dim x = node->shape[d], y = node->shape[d + 1];
            c->joined[n][d] = may && (x.sym >= 0 || x.n > 1) && (y.sym >= 0 || y.n > 1);
        }
    }
    do {
        c->changed = false;
        for (NodeRef n = 0; n < g->nodes.n; n++) {
            part_at(c, n);
        }
        part_updates(c);
    } while (c->changed);
    bool any = false;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        for (uint32_t d = 0; d < graph_node(g, n)->rank; d++) {
            any |= c->joined[n][d];
        }
    }
    return any;
}

/* ---- the graph anew ---- */

/* The value's dimensions, those that go together as one; *out has room for as many as before. */
static uint32_t collapsed_shape(Collapse *c, NodeRef value, Dim *out)
{
    const Node *n = graph_node(c->from, value);
    uint32_t rank = 0;
    for (uint32_t d = 0, last; d < n->rank; d = last + 1) {
        last = d;
        while (c->joined[value][last]) {
            last++;
        }
        out[rank++] = last == d
                          ? n->shape[d]
                          : dims_product(c->arena, c->to->arena, &c->ctx->syms, &c->to->dims,
                                         c->from->span, last - d + 1, n->shape + d);
    }
    return rank;
}

static bool is_first(const Collapse *c, NodeRef value, uint32_t d)
{
    return d == 0 || !c->joined[value][d - 1];
}

/* "ij" for labels i and j, of which the first stands at dimension d of this side. */
static Sym joined_name(Collapse *c, const Node *n, const Side *s, uint32_t d)
{
    Text t = text_new(c->arena);
    for (uint32_t e = d;; e++) {
        int32_t label = label_at(s, e);
        Sym name = n->label_name == NULL || label < 0 ? NULL : n->label_name[label];
        if (name == NULL) {
            return NULL;
        }
        text_put(&t, name->text);
        if (!c->joined[s->value][e]) {
            return sym_cstr(&c->ctx->syms, t.at);
        }
    }
}

static NodeRef rebuild(Collapse *c, NodeRef at, const NodeRef *map)
{
    const Node *n = graph_node(c->from, at);
    if (n->out == NULL || n->at != NULL) { /* nothing of it is taken together */
        return graph_clone_node(c->to, c->from, at, map);
    }
    NodeSpec s = {.op = n->op,
                  .dtype = n->dtype,
                  .acc = n->acc,
                  .n_operands = n->n_operands,
                  .span = n->span,
                  .name = n->name,
                  .allow_spill = n->allow_spill,
                  .keep = n->keep,
                  .sliced = graph_slices(c->from, at)};
    NodeRef *operand = ARENA_ARRAY(c->arena, (size_t)n->n_operands + 1, NodeRef);
    Access *access = ARENA_ARRAY(c->arena, (size_t)n->n_operands + 1, Access);
    int32_t *out = ARENA_ARRAY(c->arena, (size_t)n->rank + 1, int32_t);
    Dim *shape = ARENA_ARRAY(c->arena, (size_t)n->rank + 1, Dim);
    Sym *name = ARENA_ARRAY(c->arena, (size_t)n->n_labels + 1, Sym);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        name[l] = n->label_name == NULL ? NULL : n->label_name[l];
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const Access *a = &n->access[k];
        Index *index = ARENA_ARRAY(c->arena, (size_t)a->rank + 1, Index);
        operand[k] = map[n->operand[k]];
        access[k] = (Access){0, index};
        Side side = side_of(c->from, at, k);
        for (uint32_t d = 0; d < a->rank; d++) {
            if (is_first(c, n->operand[k], d)) {
                index[access[k].rank++] = a->index[d];
                if (a->index[d].label >= 0) {
                    name[a->index[d].label] = joined_name(c, n, &side, d);
                }
            }
        }
    }
    s.out_shape = shape;
    (void)collapsed_shape(c, at, shape);
    for (uint32_t d = 0; d < n->rank; d++) {
        if (is_first(c, at, d)) {
            Side side = side_of(c->from, at, n->n_operands);
            out[s.rank++] = n->out[d];
            name[n->out[d]] = joined_name(c, n, &side, d);
        }
    }
    s.operand = operand;
    s.access = access;
    s.out = out;
    s.names = n->label_name == NULL ? (LabelNames){0, NULL} : (LabelNames){n->n_labels, name};
    return graph_add(c->to, &s);
}

static bool same_shape(uint32_t rank, const Dim *shape, uint32_t other_rank, const Dim *other)
{
    bool same = rank == other_rank;
    for (uint32_t d = 0; same && d < rank; d++) {
        same = dim_eq(shape[d], other[d]);
    }
    return same;
}

static void collapse_param(Collapse *c, uint32_t param, NodeRef as)
{
    Param *p = &c->to->params.at[param];
    Dim *shape = ARENA_ARRAY(c->to->arena, (size_t)p->rank + 1, Dim);
    uint32_t rank = collapsed_shape(c, as, shape);
    bool same = same_shape(rank, shape, p->rank, p->shape);
    p->n_collapsed = same ? 0 : rank;
    p->collapsed = same ? NULL : shape;
}

/* Parameters as their nodes read them, or as the new value is that they get. */
static void collapse_params(Collapse *c)
{
    for (uint32_t r = 0; r < c->from->results.n; r++) {
        const Result *result = &c->from->results.at[r];
        if (result->param >= 0) {
            collapse_param(c, (uint32_t)result->param, result->node);
        }
    }
    for (NodeRef n = 0; n < c->from->nodes.n; n++) {
        if (graph_node(c->from, n)->op == OP_INPUT) {
            collapse_param(c, graph_node(c->from, n)->param, n);
        }
    }
}

static void collapse_results(Collapse *c, const NodeRef *map)
{
    for (uint32_t r = 0; r < c->from->results.n; r++) {
        Result result = c->from->results.at[r];
        const Node *was = graph_node(c->from, result.node);
        const Node *is = graph_node(c->to, map[result.node]);
        uint32_t rank = result.shape != NULL ? result.rank : was->rank;
        const Dim *shape = result.shape != NULL ? result.shape : was->shape;
        result.node = map[result.node];
        bool same = result.param >= 0 || same_shape(is->rank, is->shape, rank, shape);
        result.rank = same ? 0 : rank;
        result.shape = same ? NULL : arena_copy(c->to->arena, shape, rank * sizeof *shape);
        vec_push(c->to->arena, &c->to->results, result);
    }
    graph_copy_required(c->to, c->from, map);
}

static bool is_collapsed(Arena *scratch, const Graph *g)
{
    bool any = false;
    for (uint32_t p = 0; p < g->params.n && !any; p++) {
        const Param *param = &g->params.at[p];
        any = param->collapsed != NULL &&
              !dims_only_split(scratch, &g->dims, param->rank, param->shape, param->n_collapsed,
                               param->collapsed);
    }
    for (uint32_t r = 0; r < g->results.n && !any; r++) {
        const Result *result = &g->results.at[r];
        const Node *n = graph_node(g, result->node);
        any = result->shape != NULL && !dims_only_split(scratch, &g->dims, result->rank,
                                                        result->shape, n->rank, n->shape);
    }
    return any;
}

Graph *opt_collapse(Ctx *ctx, Arena *arena, Graph *g)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Collapse c = {.ctx = ctx, .arena = &scratch, .from = g};
    bool known = is_collapsed(&scratch, g); /* it is done already */
    if (!known && find_joined(&c)) {
        NodeRef *map = ARENA_ARRAY(&scratch, (size_t)g->nodes.n + 1, NodeRef);
        c.to = graph_like(arena, g);
        collapse_params(&c);
        for (NodeRef n = 0; n < g->nodes.n; n++) {
            map[n] = rebuild(&c, n, map);
        }
        collapse_results(&c, map);
        g = c.to;
    }
    arena_release(&scratch);
    return g;
}
