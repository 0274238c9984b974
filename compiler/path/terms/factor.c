/* SPDX-License-Identifier: Apache-2.0 */
/* See factor.h. A term of the plan is a tensor that grows: first a value, made of its operands
 * alone, then one contraction after the other with another value. Terms whose next contraction is
 * the same ("apply") are added up before it. Labels here are those of the whole plan; the axes of
 * a sum are numbers from 0. */
#include "path/terms/factor.h"

#include <math.h>
#include <string.h>

#include "path/search.h"

typedef struct Factor {
    Ctx *ctx;
    Arena *arena;
    Sharing *s;
    const Graph *from;
    Graph *to;
    const NodeRef *map;
    const Node *root; /* of the sum being built */
} Factor;

/* A tensor of the new graph and how it is read, in labels or in axes. */
typedef struct Read {
    NodeRef node;
    Access access;
    double coef;
} Read;

typedef VEC(Read) Reads;

/* ---- nodes ---- */

static int32_t renumber(int32_t *label, uint32_t *n, int32_t l)
{
    for (uint32_t k = 0; k < *n; k++) {
        if (label[k] == l) {
            return (int32_t)k;
        }
    }
    label[*n] = l;
    return (int32_t)(*n)++;
}

/* A node whose dimensions are the labels `out`. */
static NodeRef node_make(Factor *f, Op op, const Read *read, uint32_t n, const uint32_t *out,
                         uint32_t rank, const Dim *shape)
{
    int32_t label[3 * RANK_LIMIT], result[RANK_LIMIT];
    uint32_t n_labels = 0;
    NodeRef operand[2];
    Access access[2];
    for (uint32_t k = 0; k < n; k++) {
        Index *index =
            arena_copy(f->arena, read[k].access.index, read[k].access.rank * sizeof *index);
        for (uint32_t d = 0; d < read[k].access.rank; d++) {
            if (index[d].label >= 0) {
                index[d].label = renumber(label, &n_labels, index[d].label);
            }
        }
        operand[k] = read[k].node;
        access[k] = (Access){read[k].access.rank, index};
    }
    for (uint32_t d = 0; d < rank; d++) {
        result[d] = renumber(label, &n_labels, (int32_t)out[d]);
    }
    NodeSpec spec =
        node_spec(op, f->root->dtype, n, operand, access, rank, result, shape, f->root->span);
    spec.acc = f->root->dtype;
    spec.allow_spill = f->root->allow_spill;
    return graph_add(f->to, &spec);
}

static Read read_whole(Factor *f, NodeRef node, const uint32_t *labels, uint32_t rank)
{
    Index *index = ARENA_ARRAY(f->arena, rank, Index);
    for (uint32_t d = 0; d < rank; d++) {
        index[d] = (Index){(int32_t)labels[d], 0};
    }
    return (Read){node, {rank, index}, 1.0};
}

static const uint32_t *axes_from_0(Factor *f, uint32_t rank)
{
    uint32_t *axis = ARENA_ARRAY(f->arena, rank, uint32_t);
    for (uint32_t d = 0; d < rank; d++) {
        axis[d] = d;
    }
    return axis;
}

static Read read_scaled(Factor *f, Read r, uint32_t rank, const Dim *shape)
{
    const uint32_t *axis = axes_from_0(f, rank);
    if (r.coef != 1.0 && r.coef != -1.0) {
        Number v = number_cast(number_real(DTYPE_F64, r.coef), f->root->dtype);
        NodeRef c = graph_const(f->to, v, f->root->span);
        Read product[2] = {{c, {0, NULL}, 1.0}, r};
        return read_whole(f, node_make(f, OP_MUL, product, 2, axis, rank, shape), axis, rank);
    }
    if (r.coef == -1.0) {
        return read_whole(f, node_make(f, OP_NEG, &r, 1, axis, rank, shape), axis, rank);
    }
    return r;
}

/* What is added, over axes 0 to rank - 1: one that has the factor 1 or any but -1 goes first. A
 * single one is given back as it is; `shape` may be null when each has all axes. */
static Read reads_add(Factor *f, Reads *list, uint32_t rank, const Dim *shape)
{
    uint32_t first = 0;
    while (first + 1 < list->n && list->at[first].coef < 0.0) {
        first++;
    }
    Read head = list->at[first];
    if (list->n == 1) {
        return head;
    }
    memmove(list->at + 1, list->at, first * sizeof *list->at);
    const uint32_t *axis = axes_from_0(f, rank);
    Read sum[2] = {read_scaled(f, head, rank, shape)};
    for (uint32_t k = 1; k < list->n; k++) {
        Read part = list->at[k];
        bool minus = part.coef < 0.0;
        part.coef = fabs(part.coef);
        sum[1] = read_scaled(f, part, rank, shape);
        NodeRef node = node_make(f, minus ? OP_SUB : OP_ADD, sum, 2, axis, rank, shape);
        sum[0] = read_whole(f, node, axis, rank);
    }
    return sum[0];
}

/* ---- values ---- */

static bool has_label(PathLabels at, int32_t l)
{
    bool has = false;
    for (uint32_t k = 0; k < at.n; k++) {
        has |= (int32_t)at.at[k] == l;
    }
    return has;
}

static Read value_operand(Factor *f, uint32_t term, uint32_t k)
{
    const Node *n = graph_node(f->from, f->s->node[term]);
    Index *index = arena_copy(f->arena, n->access[k].index, n->access[k].rank * sizeof *index);
    for (uint32_t d = 0; d < n->access[k].rank; d++) {
        index[d].label += index[d].label >= 0 ? (int32_t)f->s->base[term] : 0;
    }
    return (Read){f->map[n->operand[k]], {n->access[k].rank, index}, 1.0};
}

/* Tensor `at` of the term, which is a value, made unless it has been. */
static Read value_read(Factor *f, uint32_t term, uint32_t at)
{
    uint32_t n = graph_node(f->from, f->s->node[term])->n_operands, rank = 0;
    int32_t labels[RANK_LIMIT];
    uint32_t out[RANK_LIMIT];
    if (at < n) {
        return value_operand(f, term, at);
    }
    const PathTermStep *step = &f->s->plan.steps[term][at - n];
    NodeRef node = share_find(f->s, f->from, term, at - n, labels, &rank);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = (uint32_t)labels[d] + f->s->base[term];
    }
    if (node != NODE_NONE) {
        return read_whole(f, node, out, rank);
    }
    Read part[2];
    part[0] = value_read(f, term, step->a); /* as deep as a term has operands */
    part[1] = value_read(f, term, step->b);
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t d = 0; d < part[k].access.rank; d++) {
            int32_t l = part[k].access.index[d].label;
            bool again = l < 0 || !has_label(step->legs, l);
            for (uint32_t e = 0; !again && e < rank; e++) {
                again = out[e] == (uint32_t)l;
            }
            if (!again) {
                labels[rank] = l - (int32_t)f->s->base[term];
                out[rank++] = (uint32_t)l;
            }
        }
    }
    node = node_make(f, OP_EINSUM, part, 2, out, rank, NULL);
    share_add(f->s, term, at - n, node, labels, rank);
    Node *made = &f->to->nodes.at[node];
    if (at == 2 * n - 2 && made->name == NULL) { /* all of the contraction */
        made->name = graph_node(f->from, f->s->node[term])->name;
    }
    return read_whole(f, node, out, rank);
}

/* ---- sums of terms ---- */

typedef struct Member { /* a term, as far as tensor `at` */
    uint32_t term, at;  /* PATH_NONE: done */
    PathLabels axes;    /* its labels, by axis of the sum it is in */
} Member;

typedef VEC(Member) Members;

/* The read with axes in place of labels. */
static Read to_axes(Factor *f, Read r, PathLabels axes)
{
    Index *index = arena_copy(f->arena, r.access.index, r.access.rank * sizeof *index);
    for (uint32_t d = 0; d < r.access.rank; d++) {
        uint32_t x = 0;
        while (index[d].label >= 0 && x < axes.n && (int32_t)axes.at[x] != index[d].label) {
            x++;
        }
        CHECK(index[d].label < 0 || x < axes.n);
        index[d].label = index[d].label >= 0 ? (int32_t)x : -1;
    }
    r.access.index = index;
    return r;
}

static const PathTermStep *member_step(const Factor *f, const Member *m)
{
    uint32_t n = graph_node(f->from, f->s->node[m->term])->n_operands;
    bool made = m->at != PATH_NONE && m->at >= n;
    return made ? &f->s->plan.steps[m->term][m->at - n] : NULL;
}

static uint32_t member_apply(const Factor *f, const Member *m)
{
    const PathTermStep *step = member_step(f, m);
    return step == NULL ? PATH_NONE : step->apply;
}

static void tell_factored(Factor *f, const Members *inner, const Member *outer)
{
    Text text = text_new(f->arena);
    for (uint32_t k = 0; k < inner->n; k++) {
        double coef = f->s->merged.coef[inner->at[k].term];
        text_put(&text, coef < 0.0 ? (k == 0 ? "-" : " - ") : (k == 0 ? "" : " + "));
        if (fabs(coef) != 1.0) {
            text_printf(&text, "%.9g * ", fabs(coef));
        }
        text_put(&text, share_describe(f->s, f->from, inner->at[k].term, inner->at[k].at));
    }
    const PathTermStep *step = member_step(f, outer);
    const char *with = share_describe(f->s, f->from, outer->term, step->b);
    vec_push(f->arena, &f->s->report.factored,
             str_format(f->arena, "(%s) * %s", text.at, with));
}

static Read members_add(Factor *f, Members *members, uint32_t rank);

/* The members from `first` on that have its next contraction, added and contracted. They are done
 * then. */
static Read members_apply(Factor *f, Members *members, uint32_t first)
{
    Member *head = &members->at[first];
    const PathTermStep *step = member_step(f, head);
    Members inner = {0};
    for (uint32_t k = first; k < members->n; k++) {
        const PathTermStep *at = member_step(f, &members->at[k]);
        if (at != NULL && at->apply == step->apply) {
            Member m = {members->at[k].term, at->a, at->apply_legs};
            vec_push(f->arena, &inner, m);
            members->at[k].at = k == first ? members->at[k].at : PATH_NONE;
        }
    }
    if (inner.n > 1) {
        tell_factored(f, &inner, head);
    }
    Read sum = members_add(f, &inner, step->apply_legs.n); /* as deep as a term has operands */
    Index *index = arena_copy(f->arena, sum.access.index, sum.access.rank * sizeof *index);
    for (uint32_t d = 0; d < sum.access.rank; d++) {
        if (index[d].label >= 0) {
            index[d].label = (int32_t)step->apply_legs.at[index[d].label];
        }
    }
    Read pair[2] = {{sum.node, {sum.access.rank, index}, 1.0},
                    value_read(f, head->term, step->b)};
    NodeRef node = node_make(f, OP_EINSUM, pair, 2, head->axes.at, head->axes.n, NULL);
    Read result = read_whole(f, node, axes_from_0(f, head->axes.n), head->axes.n);
    result.coef = sum.coef;
    head->at = PATH_NONE;
    return result;
}

static Read members_add(Factor *f, Members *members, uint32_t rank)
{
    Reads list = {0};
    for (uint32_t k = 0; k < members->n; k++) {
        Member *m = &members->at[k];
        if (m->at == PATH_NONE) {
            continue;
        }
        Read part;
        if (member_apply(f, m) != PATH_NONE) {
            part = members_apply(f, members, k);
        } else {
            part = to_axes(f, value_read(f, m->term, m->at), m->axes);
            part.coef = f->s->merged.coef[m->term];
        }
        vec_push(f->arena, &list, part);
    }
    return reads_add(f, &list, rank, NULL);
}

/* ---- a sum of the graph ---- */

static void decide_term(Factor *f, uint32_t term, PathDecisions *out)
{
    const Node *n = graph_node(f->from, f->s->node[term]);
    PathDecision d = {.kernel = f->from->name, .span = n->span};
    PathLabels none = {0};
    PathOptions options = {.effort = 1};
    d.problem = path_problem_of(f->arena, f->from, f->s->node[term]);
    if (n->n_operands > 2 &&
        path_accept(&d.problem, &options, share_tree(f->s, term, n->n_operands), none, f->ctx,
                    &d.result)) {
        vec_push(f->arena, &out->list, d);
    }
}

/* The terms of one list of orders, added, and put in each of them. */
static void orders_add(Factor *f, uint32_t sum, uint32_t rank, Reads *to, PathDecisions *out)
{
    const PathMerged *m = &f->s->merged;
    Members members = {0};
    for (uint32_t t = 0; t < m->n_terms; t++) {
        if (m->terms[t].sum == sum && f->s->plan.steps[t] != NULL) {
            Member member = {t, 2 * m->terms[t].n_operands - 2, m->terms[t].output};
            vec_push(f->arena, &members, member);
            decide_term(f, t, out);
        }
    }
    if (members.n == 0) {
        return;
    }
    Read whole = members_add(f, &members, rank);
    for (uint32_t k = 0; k < m->sums[sum].n_orders; k++) {
        const PathOrder *o = &m->sums[sum].orders[k];
        uint32_t place[RANK_LIMIT]; /* by axis of the sum */
        for (uint32_t d = 0; d < rank; d++) {
            place[o->axis[d]] = d;
        }
        Index *index =
            arena_copy(f->arena, whole.access.index, whole.access.rank * sizeof *index);
        for (uint32_t d = 0; d < whole.access.rank; d++) {
            index[d].label = (int32_t)place[index[d].label];
        }
        Read r = {whole.node, {whole.access.rank, index}, whole.coef * o->coef};
        vec_push(f->arena, to, r);
    }
}

NodeRef factor_sum(Ctx *ctx, Sharing *s, const Graph *from, Graph *to, const NodeRef *map,
                   uint32_t sum, PathDecisions *out)
{
    const GraphSum *at = &s->sums.list.at[sum];
    const Node *root = graph_node(from, at->root);
    Factor f = {ctx, s->arena, s, from, to, map, root};
    Reads list = {0};
    for (uint32_t k = 0; k < at->pieces.n; k++) {
        const SumPiece *p = &at->pieces.at[k];
        if (p->axis == NULL) {
            Read r = {map[p->node], p->access, p->coef};
            vec_push(f.arena, &list, r);
        }
    }
    for (uint32_t k = 0; k < s->merged.n_sums; k++) {
        if (s->merged.sums[k].result == sum) {
            orders_add(&f, k, root->rank, &list, out);
        }
    }
    if (list.n == 0) { /* all of it cancels */
        Number v = number_cast(number_real(DTYPE_F64, 0.0), root->dtype);
        NodeRef zero = graph_const(to, v, root->span);
        Read r = {zero, {0, NULL}, 1.0};
        vec_push(f.arena, &list, r);
    }
    Read whole =
        read_scaled(&f, reads_add(&f, &list, root->rank, root->shape), root->rank, root->shape);
    const uint32_t *axis = axes_from_0(&f, root->rank);
    NodeRef node = whole.node;
    if (list.n == 1) {
        node = node_make(&f, OP_COPY, &whole, 1, axis, root->rank, root->shape);
    }
    Node *made = &to->nodes.at[node];
    made->name = made->name == NULL ? root->name : made->name;
    return node;
}
