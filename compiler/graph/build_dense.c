/* SPDX-License-Identifier: Apache-2.0 */
/* Dense steps as nodes, which read their operands whole: matrices are the last two dimensions, behind those of batches. Operands that lie
 * otherwise are copied. */
#include "graph/build_parts.h"

static bool view_has(const View *v, int32_t label)
{
    bool has = false;
    for (uint32_t a = 0; a < v->rank; a++) {
        has |= v->index[a].label == label;
    }
    return has;
}

/* The value with these labels as its dimensions; a copy, which nobody wrote, may go to memory. */
static NodeRef whole_as(Build *b, View v, const OutLabels *order, DType t, Span span)
{
    bool same = v.rank == order->n && v.dtype == t;
    for (uint32_t a = 0; a < v.rank && same; a++) {
        same = v.index[a].label == order->label[a];
    }
    const Root copy = {.allow_spill = true};
    return same ? v.node : node_add(b, OP_COPY, t, &v, 1, order, span, &copy).node;
}

static void push_label(Build *b, OutLabels *out, int32_t label)
{
    if (out->n < RANK_LIMIT) {
        out->label[out->n++] = label;
    } else {
        b->too_many = true;
    }
}

/* The labels of `v` in its order, but for those of `without` and the two. */
static void push_others(Build *b, OutLabels *out, const View *v, const OutLabels *without,
                        int32_t x, int32_t y)
{
    for (uint32_t a = 0; a < v->rank; a++) {
        int32_t l = v->index[a].label;
        bool there = l < 0 || l == x || l == y;
        for (uint32_t i = 0; i < without->n && !there; i++) {
            there = without->label[i] == l;
        }
        if (!there) {
            push_label(b, out, l);
        }
    }
}

static View dense_add(Build *b, Op op, DType t, const NodeRef *operand, uint32_t n,
                      const OutLabels *out, Span span, const Root *root)
{
    Access access[2];
    Dim *shape = ARENA_ARRAY(b->arena, out->n, Dim);
    Sym *name = ARENA_ARRAY(b->arena, out->n, Sym);
    for (uint32_t k = 0; k < n; k++) {
        access[k] = access_whole(b->arena, graph_node(b->g, operand[k])->rank);
    }
    for (uint32_t d = 0; d < out->n; d++) {
        shape[d] = b->s->label[out->label[d]].extent;
        name[d] = b->names.n > 0 ? b->names.name[out->label[d]] : NULL;
    }
    NodeSpec spec = node_spec(op, t, n, operand, access, out->n,
                              labels_in_order(b->arena, out->n), shape, span);
    spec.names = b->names.n > 0 ? (LabelNames){out->n, name} : b->names;
    return build_view(b, root_add(b, &spec, root), out->label, out->n);
}

static View cholesky_build(Build *b, const CheckedExpr *e, const Root *root)
{
    View v = expr_build(b, e->arg[0], e->dtype, NULL);
    OutLabels none = {.n = 0}, order = {.n = 0};
    push_others(b, &order, &v, &none, e->label[0], e->label[1]);
    push_label(b, &order, e->label[0]);
    push_label(b, &order, e->label[1]);
    NodeRef of = whole_as(b, v, &order, e->dtype, e->span);
    return dense_add(b, OP_CHOLESKY, e->dtype, &of, 1, &order, e->span, root);
}

static View solve_build(Build *b, const CheckedExpr *e, const Root *root)
{
    int32_t p = e->label[0], q = e->label[1];
    View T = expr_build(b, e->arg[0], e->dtype, NULL);
    View B = expr_build(b, e->arg[1], e->dtype, NULL);
    OutLabels none = {.n = 0}, batch = {.n = 0};
    push_others(b, &batch, &T, &none, p, q);
    bool upper = e->op == OP_SOLVE_UPPER;
    /* Does the matrix lie with its equations as columns? */
    bool transposed = view_has(&T, q);
    for (uint32_t a = 0; a < T.rank && transposed; a++) {
        if (T.index[a].label == p || T.index[a].label == q) {
            transposed = T.index[a].label == q;
            break;
        }
    }
    OutLabels triangle = batch, right = batch, out = batch;
    push_label(b, &triangle, transposed ? q : p);
    push_label(b, &triangle, transposed ? p : q);
    push_label(b, &right, p);
    push_others(b, &right, &B, &batch, p, q);
    push_label(b, &out, q);
    for (uint32_t d = batch.n + 1; d < right.n; d++) {
        push_label(b, &out, right.label[d]);
    }
    if (b->too_many) {
        if (!b->limited) {
            diag_limit(&b->ctx->diags, E_LIMIT_SIZE, e->span,
                       "an intermediate of this statement has more than %d dimensions",
                       RANK_LIMIT);
        }
        b->limited = true;
        return B;
    }
    NodeRef operand[2] = {whole_as(b, T, &triangle, e->dtype, e->span),
                          whole_as(b, B, &right, e->dtype, e->span)};
    Op op = transposed ? (upper ? OP_SOLVE_LOWER_T : OP_SOLVE_UPPER_T) : e->op;
    return dense_add(b, op, e->dtype, operand, 2, &out, e->span, root);
}

/* An index may have become longer than the matrix that it is a dimension of. */
static bool is_square(Build *b, const CheckedExpr *e)
{
    const Label *x = &b->s->label[e->label[0]], *y = &b->s->label[e->label[1]];
    if (dim_eq(x->extent, y->extent)) {
        return true;
    }
    if (!b->limited) {
        diag_error(&b->ctx->diags, E_EXTENT_MISMATCH, e->span,
                   "a matrix has as many rows as columns: here %s and %s",
                   dim_text(b->arena, &b->k->dims, x->extent),
                   dim_text(b->arena, &b->k->dims, y->extent));
    }
    b->limited = true;
    return false;
}

View dense_build(Build *b, const CheckedExpr *e, const Root *root)
{
    if (!is_square(b, e)) {
        return expr_build(b, e->arg[0], e->dtype, NULL);
    }
    return e->op == OP_CHOLESKY ? cholesky_build(b, e, root) : solve_build(b, e, root);
}
