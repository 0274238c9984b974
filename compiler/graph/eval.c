/* SPDX-License-Identifier: Apache-2.0 */
/* The reference interpreter: node by node in order, every value a whole tensor. Elementwise
 * nodes and folds go through op_value and op_fold one element at a time. Sums of products
 * (contractions, reduce.sum) are the only loops written with care, since a product over all
 * labels is large: operands are spread to 64-bit numbers first and the innermost sum is a plain
 * loop. A product of many operands is taken two at a time, left to right, when that is less
 * work. Work is counted and limited, so that no dump can make a check run for ever. */
#include "graph/eval.h"

#include "graph/recurrence.h"

#include <string.h>

/* Elementary steps of one evaluation; a few seconds. */
#define EVAL_WORK_LIMIT ((int64_t)1 << 32)
#define MAP_STEP        16 /* steps that count for an element of a MAP or a fold */

typedef struct Evaluator {
    Ctx *ctx;
    Arena *arena;
    const Graph *g;
    const int64_t *dims;
    Tensor *const *args;
    Tensor **value; /* [nodes] */
    int64_t work;
} Evaluator;

static bool out_of_work(Evaluator *e, int64_t steps)
{
    e->work = sat_add(e->work, steps);
    if (e->work > EVAL_WORK_LIMIT) {
        diag_limit(&e->ctx->diags, E_LIMIT_SIZE, e->g->span,
                   "interpreting kernel '%s' takes more than %lld steps", e->g->name->text,
                   (long long)EVAL_WORK_LIMIT);
        return true;
    }
    return false;
}

static int64_t extent_of(const Evaluator *e, Dim d)
{
    return d.sym < 0 ? d.n : e->dims[d.sym];
}

/* ---- counting through index values ---- */

/* A nest of loops, the last innermost, over `n_at` positions that move together. */
typedef struct Odometer {
    uint32_t n; /* loops */
    const int64_t *extent;
    int64_t *digit;
    uint32_t n_at;
    int64_t *at;         /* [n_at] */
    const int64_t *step; /* [n][n_at] */
} Odometer;

/* To the next value of the loops; false after the last, with all positions back at the start. */
static bool odometer_next(Odometer *o)
{
    for (uint32_t l = o->n; l-- > 0;) {
        const int64_t *step = o->step + (size_t)l * o->n_at;
        bool wraps = ++o->digit[l] == o->extent[l];
        for (uint32_t k = 0; k < o->n_at; k++) {
            o->at[k] += wraps ? -(o->extent[l] - 1) * step[k] : step[k];
        }
        if (!wraps) {
            return true;
        }
        o->digit[l] = 0;
    }
    return false;
}

/* Loops over `n` labels (numbers in `label`) of these extents, moving `n_at` positions by step[label][k]. */
static Odometer odometer_new(Arena *a, uint32_t n, const uint32_t *label, const int64_t *extent,
                             uint32_t n_at, int64_t *at, const int64_t *step)
{
    int64_t *own = ARENA_ARRAY(a, n, int64_t);
    int64_t *steps = ARENA_ARRAY(a, (size_t)n * n_at, int64_t);
    for (uint32_t l = 0; l < n; l++) {
        own[l] = extent[label[l]];
        memcpy(steps + (size_t)l * n_at, step + (size_t)label[l] * n_at, n_at * sizeof *step);
    }
    return (Odometer){n, own, ARENA_ARRAY(a, n, int64_t), n_at, at, steps};
}

static int64_t product(const int64_t *extent, uint32_t n)
{
    int64_t p = 1;
    for (uint32_t l = 0; l < n; l++) {
        if (extent[l] == 0) {
            return 0;
        }
        p = sat_mul(p, extent[l]);
    }
    return p;
}

/* Adds operand k's steps to step[label][k] and its constant positions to at[k]. */
static void access_steps(const Access *a, const int64_t *extent, uint32_t k, uint32_t n_at,
                         int64_t *at, int64_t *step)
{
    int64_t stride = 1;
    for (uint32_t d = a->rank; d-- > 0;) {
        if (a->index[d].label >= 0) {
            step[(size_t)a->index[d].label * n_at + k] += stride;
        } else {
            at[k] += a->index[d].offset * stride;
        }
        stride *= extent[d];
    }
}

/* ---- elementwise ---- */

static Tensor *result_new(Evaluator *e, const Node *n)
{
    int64_t *extent = ARENA_ARRAY(e->arena, n->rank, int64_t);
    for (uint32_t d = 0; d < n->rank; d++) {
        extent[d] = extent_of(e, n->shape[d]);
    }
    return tensor_new(e->ctx, e->arena, n->dtype, n->rank, extent);
}

/* The loops of a node whose positions are its operands': out labels first, then those it reduces. */
typedef struct Nest {
    int64_t *extent; /* [n_labels] */
    uint32_t *label; /* [n_labels]: out labels in order, then the others */
    uint32_t n_out;
    int64_t *at;   /* [n_operands] */
    int64_t *step; /* [n_labels][n_operands] */
} Nest;

static Nest nest_new(Evaluator *e, Arena *a, const Node *n)
{
    Nest t = {.extent = ARENA_ARRAY(a, n->n_labels, int64_t),
              .label = ARENA_ARRAY(a, n->n_labels, uint32_t),
              .n_out = n->rank,
              .at = ARENA_ARRAY(a, n->n_operands, int64_t),
              .step = ARENA_ARRAY(a, (size_t)n->n_labels * n->n_operands, int64_t)};
    uint8_t *in_out = ARENA_ARRAY(a, n->n_labels, uint8_t);
    for (uint32_t d = 0; d < n->rank; d++) {
        t.label[d] = (uint32_t)n->out[d];
        in_out[n->out[d]] = 1;
    }
    uint32_t at = n->rank;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        t.extent[l] = extent_of(e, n->extent[l]);
        if (!in_out[l]) {
            t.label[at++] = l;
        }
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const Tensor *o = e->value[n->operand[k]];
        access_steps(&n->access[k], o->extent, k, n->n_operands, t.at, t.step);
    }
    return t;
}

static bool eval_elementwise(Evaluator *e, Arena *scratch, const Node *n, Tensor *to)
{
    Nest t = nest_new(e, scratch, n);
    Odometer o = odometer_new(scratch, t.n_out, t.label, t.extent, n->n_operands, t.at, t.step);
    CHECK(n->n_operands <= 3);
    if (out_of_work(e, sat_mul(to->count, MAP_STEP))) {
        return false;
    }
    for (int64_t i = 0; i < to->count; i++) {
        Number arg[3];
        for (uint32_t k = 0; k < n->n_operands; k++) {
            arg[k] = tensor_get(e->value[n->operand[k]], t.at[k]);
        }
        tensor_set(to, i, op_value(n->op, n->dtype, arg));
        odometer_next(&o);
    }
    return true;
}

/* ---- folds: prod, min, max, any, all ---- */

static DType wide_type(DType t)
{
    return dtype_is_float(t) ? DTYPE_F64 : dtype_is_complex(t) ? DTYPE_C128 : t;
}

static bool eval_reduce(Evaluator *e, Arena *scratch, const Node *n, Tensor *to)
{
    Nest t = nest_new(e, scratch, n);
    const Tensor *from = e->value[n->operand[0]];
    DType wide = wide_type(n->dtype);
    uint32_t n_in = n->n_labels - t.n_out;
    int64_t *start = ARENA_ARRAY(scratch, 1, int64_t);
    Odometer o = odometer_new(scratch, t.n_out, t.label, t.extent, 1, start, t.step);
    Odometer in = odometer_new(scratch, n_in, t.label + t.n_out, t.extent, 1, t.at, t.step);
    int64_t count = product(in.extent, n_in), base = t.at[0];
    if (out_of_work(e, sat_mul(sat_mul(to->count, sat_add(count, 1)), MAP_STEP))) {
        return false;
    }
    for (int64_t i = 0; i < to->count; i++) {
        Number a = number_cast(op_neutral(n->op, n->dtype), wide);
        t.at[0] = base + start[0];
        for (int64_t k = 0; k < count; k++) {
            Number x = number_cast(tensor_get(from, t.at[0]), n->dtype);
            a = op_fold(n->op, wide, a, number_cast(x, wide));
            odometer_next(&in);
        }
        tensor_set(to, i, number_cast(a, n->dtype));
        odometer_next(&o);
    }
    return true;
}

/* ---- sums of products ---- */

/* A tensor spread to 64-bit numbers: doubles, pairs of doubles, or integers (bool: 0 and 1). Its dimensions are labels of
 * the node; repeated labels and positions have been resolved, so each label occurs once. */
typedef struct Wide {
    DType type; /* F64, C128, I64 or BOOL */
    uint32_t rank;
    uint32_t *label;
    int64_t count;
    double *re, *im;        /* im: C128 only */
    uint64_t *i;            /* modulo 2^64 */
    const uint8_t *present; /* terms with the others are absent; null: all are present */
} Wide;

/* A sum of products over labels of the node: everything in terms of label numbers below n_labels. */
typedef struct Sum {
    Evaluator *e;
    Arena *arena;
    DType type;
    uint32_t n_labels;
    const int64_t *extent;
} Sum;

static Wide wide_new(Sum *s, uint32_t rank, const uint32_t *label)
{
    Wide w = {.type = s->type, .rank = rank, .count = 1};
    w.label = arena_copy(s->arena, label, rank * sizeof *label);
    for (uint32_t d = 0; d < rank; d++) {
        w.count = s->extent[label[d]] == 0 ? 0 : sat_mul(w.count, s->extent[label[d]]);
    }
    bool exact = s->type == DTYPE_I64 || s->type == DTYPE_BOOL;
    w.re = exact ? NULL : ARENA_ARRAY(s->arena, (size_t)w.count, double);
    w.im = s->type == DTYPE_C128 ? ARENA_ARRAY(s->arena, (size_t)w.count, double) : NULL;
    w.i = exact ? ARENA_ARRAY(s->arena, (size_t)w.count, uint64_t) : NULL;
    return w;
}

static void wide_set(Wide *w, int64_t at, Number v)
{
    if (w->i != NULL) {
        w->i[at] = (uint64_t)v.i;
        return;
    }
    w->re[at] = v.re;
    if (w->im != NULL) {
        w->im[at] = v.im;
    }
}

static Number wide_get(const Wide *w, int64_t at, DType t)
{
    Number v = {.dtype = w->type};
    if (w->i != NULL) {
        memcpy(&v.i, &w->i[at], sizeof v.i);
    } else {
        v.re = w->re[at];
        v.im = w->im != NULL ? w->im[at] : 0;
    }
    return number_cast(v, t);
}

/* Operand k of the node as numbers of type `own`, over the labels it is read with. */
static bool wide_operand(Sum *s, const Node *n, uint32_t k, DType own, Wide *out)
{
    const Tensor *from = s->e->value[n->operand[k]];
    const Access *a = &n->access[k];
    int64_t *step = ARENA_ARRAY(s->arena, s->n_labels, int64_t), at = 0;
    uint32_t *label = ARENA_ARRAY(s->arena, a->rank, uint32_t), rank = 0;
    for (uint32_t d = 0; d < a->rank; d++) { /* each label once: step marks those seen */
        int32_t l = a->index[d].label;
        if (l >= 0 && step[l] == 0) {
            step[l] = 1;
            label[rank++] = (uint32_t)l;
        }
    }
    memset(step, 0, s->n_labels * sizeof *step);
    access_steps(a, from->extent, 0, 1, &at, step);
    *out = wide_new(s, rank, label);
    if (out_of_work(s->e, sat_mul(out->count, MAP_STEP))) {
        return false;
    }
    Odometer o = odometer_new(s->arena, rank, label, s->extent, 1, &at, step);
    for (int64_t i = 0; i < out->count; i++) {
        Number v = number_cast(tensor_get(from, at), own);
        wide_set(out, i, number_cast(v, s->type));
        odometer_next(&o);
    }
    return true;
}

/* Where an operand that is `where(c, x, 0)` is present. */
static bool operand_present(Sum *s, const Node *n, uint32_t k, Wide *w)
{
    const Node *where = graph_node(s->e->g, n->operand[k]);
    if (where->op != OP_WHERE) {
        return true;
    }
    Access condition = access_compose(s->arena, where, where->access[0], n->access[k]);
    const Tensor *holds = s->e->value[where->operand[0]];
    int64_t *step = ARENA_ARRAY(s->arena, s->n_labels, int64_t), at = 0;
    access_steps(&condition, holds->extent, 0, 1, &at, step);
    uint8_t *present = ARENA_ARRAY(s->arena, (size_t)w->count, uint8_t);
    if (out_of_work(s->e, sat_mul(w->count, MAP_STEP))) {
        return false;
    }
    Odometer o = odometer_new(s->arena, w->rank, w->label, s->extent, 1, &at, step);
    for (int64_t i = 0; i < w->count; i++) {
        present[i] = tensor_get(holds, at).i != 0;
        odometer_next(&o);
    }
    w->present = present;
    return true;
}

static bool is_present(const Wide *const *w, uint32_t n, const int64_t *at, const int64_t *step,
                       int64_t i)
{
    for (uint32_t k = 0; k < n; k++) {
        if (w[k]->present != NULL && !w[k]->present[at[k] + i * step[k]]) {
            return false;
        }
    }
    return true;
}

/* The innermost sum: `count` products of n operands, operand k from at[k] by step[k]. */
static void sum_row(const Wide *const *w, uint32_t n, const int64_t *at, const int64_t *step,
                    int64_t count, Wide *to, int64_t to_at)
{
    if (to->i != NULL) {
        bool is_bool = to->type == DTYPE_BOOL;
        uint64_t sum = to->i[to_at];
        for (int64_t i = 0; i < count; i++) {
            uint64_t p = 1;
            if (!is_present(w, n, at, step, i)) {
                continue;
            }
            for (uint32_t k = 0; k < n; k++) {
                p *= w[k]->i[at[k] + i * step[k]];
            }
            sum = is_bool ? sum | p : sum + p;
        }
        to->i[to_at] = sum;
    } else if (to->im != NULL) {
        double re = to->re[to_at], im = to->im[to_at];
        for (int64_t i = 0; i < count; i++) {
            if (!is_present(w, n, at, step, i)) {
                continue;
            }
            double x = w[0]->re[at[0] + i * step[0]], y = w[0]->im[at[0] + i * step[0]];
            for (uint32_t k = 1; k < n; k++) {
                double u = w[k]->re[at[k] + i * step[k]], v = w[k]->im[at[k] + i * step[k]];
                double product_re = x * u - y * v;
                y = x * v + y * u;
                x = product_re;
            }
            re += x;
            im += y;
        }
        to->re[to_at] = re;
        to->im[to_at] = im;
    } else {
        double sum = to->re[to_at];
        for (int64_t i = 0; i < count; i++) {
            if (!is_present(w, n, at, step, i)) {
                continue;
            }
            double p = w[0]->re[at[0] + i * step[0]];
            for (uint32_t k = 1; k < n; k++) {
                p *= w[k]->re[at[k] + i * step[k]];
            }
            sum += p;
        }
        to->re[to_at] = sum;
    }
}

/* out[labels of out] = sum over the other labels of the operands' product. */
static bool sum_products(Sum *s, const Wide *const *w, uint32_t n, Wide *out)
{
    int64_t *at = ARENA_ARRAY(s->arena, n + 1, int64_t);
    int64_t *step = ARENA_ARRAY(s->arena, (size_t)s->n_labels * (n + 1), int64_t);
    uint8_t *used = ARENA_ARRAY(s->arena, s->n_labels, uint8_t);
    uint32_t *label = ARENA_ARRAY(s->arena, s->n_labels, uint32_t), n_loops = 0, inner;
    for (uint32_t k = 0; k <= n; k++) { /* position n is the output's */
        const Wide *o = k < n ? w[k] : out;
        int64_t stride = 1;
        for (uint32_t d = o->rank; d-- > 0;) {
            step[(size_t)o->label[d] * (n + 1) + k] = stride;
            stride *= s->extent[o->label[d]];
            used[o->label[d]] |= k < n ? 1 : 2;
        }
    }
    int64_t total = 1, row = 1;
    inner = s->n_labels; /* the longest sum is innermost */
    for (uint32_t l = 0; l < s->n_labels; l++) {
        total = used[l] == 0 ? total : s->extent[l] == 0 ? 0 : sat_mul(total, s->extent[l]);
        if (used[l] == 1 && (inner == s->n_labels || s->extent[l] > row)) {
            inner = l;
            row = s->extent[l];
        }
    }
    for (int pass = 2; pass > 0; pass--) { /* loops of the output outside, sums inside */
        for (uint32_t l = 0; l < s->n_labels; l++) {
            if (l != inner && (pass == 2 ? used[l] >= 2 : used[l] == 1)) {
                label[n_loops++] = l;
            }
        }
    }
    if (out_of_work(s->e, sat_mul(total, n + 1))) {
        return false;
    }
    for (int64_t i = 0; inner == s->n_labels && out->i == NULL && i < out->count; i++) {
        out->re[i] = -0.0; /* a sum over no index is its term, sign of zero included */
        if (out->im != NULL) {
            out->im[i] = -0.0;
        }
    }
    const int64_t *row_step = inner == s->n_labels ? at : step + (size_t)inner * (n + 1);
    Odometer o = odometer_new(s->arena, n_loops, label, s->extent, n + 1, at, step);
    for (bool more = total > 0; more; more = odometer_next(&o)) {
        sum_row(w, n, at, row_step, row, out, at[n]);
    }
    return true;
}

/* Labels of `a` and `b` that some later operand or the output has. */
static uint32_t kept_labels(Sum *s, const Wide *a, const Wide *b, const uint32_t *last_use,
                            uint32_t now, uint32_t *out)
{
    uint8_t *seen = ARENA_ARRAY(s->arena, s->n_labels, uint8_t);
    uint32_t n = 0;
    for (int k = 0; k < 2; k++) {
        const Wide *w = k == 0 ? a : b;
        for (uint32_t d = 0; d < w->rank; d++) {
            if (last_use[w->label[d]] > now && !seen[w->label[d]]) {
                seen[w->label[d]] = 1;
                out[n++] = w->label[d];
            }
        }
    }
    return n;
}

/* What taking the operands two at a time, left to right, costs; last_use[label] is the last operand that has it, n for those
 * of the output. */
static int64_t pairwise_cost(Sum *s, const Wide *w, uint32_t n, const uint32_t *last_use)
{
    uint8_t *live = ARENA_ARRAY(s->arena, s->n_labels, uint8_t);
    int64_t cost = 0;
    for (uint32_t k = 0; k < n; k++) {
        int64_t size = 1;
        for (uint32_t d = 0; d < w[k].rank; d++) {
            live[w[k].label[d]] = 1;
        }
        for (uint32_t l = 0; l < s->n_labels; l++) {
            size = live[l] ? sat_mul(size, s->extent[l]) : size;
            live[l] = k == 0 || last_use[l] > k ? live[l] : 0;
        }
        cost = k == 0 ? cost : sat_add(cost, sat_mul(size, 3));
    }
    return cost;
}

static bool sum_pairwise(Sum *s, Wide *w, uint32_t n, const uint32_t *last_use, Wide *out)
{
    Wide left = w[0];
    uint32_t *label = ARENA_ARRAY(s->arena, s->n_labels, uint32_t);
    for (uint32_t k = 1; k < n; k++) {
        uint32_t rank = kept_labels(s, &left, &w[k], last_use, k, label);
        Wide next = k + 1 < n ? wide_new(s, rank, label) : *out;
        const Wide *two[2] = {&left, &w[k]};
        if (!sum_products(s, two, 2, &next)) {
            return false;
        }
        left = next;
    }
    return true;
}

static bool eval_sum(Evaluator *e, Arena *scratch, const Node *n, Tensor *to)
{
    Nest t = nest_new(e, scratch, n);
    Sum s = {e, scratch, dtype_is_int(n->dtype) ? DTYPE_I64 : wide_type(n->dtype), n->n_labels,
             t.extent};
    uint32_t last = node_factors(n);
    Wide *w = ARENA_ARRAY(scratch, last, Wide);
    const Wide **all = ARENA_ARRAY(scratch, last, const Wide *);
    uint32_t *last_use = ARENA_ARRAY(scratch, n->n_labels, uint32_t);
    for (uint32_t k = 0; k < last; k++) {
        if (!wide_operand(&s, n, k, n->dtype, &w[k]) || !operand_present(&s, n, k, &w[k])) {
            return false;
        }
        all[k] = &w[k];
        for (uint32_t d = 0; d < w[k].rank; d++) {
            last_use[w[k].label[d]] = k;
        }
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        last_use[n->out[d]] = last;
    }
    Wide out = wide_new(&s, n->rank, t.label);
    int64_t direct = sat_mul(product(t.extent, n->n_labels), last);
    bool pairs = last > 2 && direct > 10000 && pairwise_cost(&s, w, last, last_use) < direct;
    if (!(pairs ? sum_pairwise(&s, w, last, last_use, &out)
                : sum_products(&s, all, last, &out))) {
        return false;
    }
    Odometer o = odometer_new(scratch, n->rank, t.label, t.extent, n->n_operands, t.at, t.step);
    for (int64_t i = 0; i < to->count; i++) {
        Number two[2] = {wide_get(&out, i, n->dtype)};
        if (n->onto) {
            two[1] = tensor_get(e->value[node_init(n)], t.at[last]);
            two[0] = op_value(OP_ADD, n->dtype, two);
        }
        tensor_set(to, i, two[0]);
        odometer_next(&o);
    }
    return true;
}

/* ---- the graph ---- */

static bool eval_input(Evaluator *e, const Node *n, Tensor **out)
{
    Tensor *t = e->args[n->param];
    const Param *p = &e->g->params.at[n->param];
    const char *name = p->name->text;
    bool fits = t != NULL && t->dtype == n->dtype && t->rank == p->rank;
    for (uint32_t d = 0; fits && d < p->rank; d++) {
        fits = t->extent[d] == extent_of(e, p->shape[d]);
    }
    if (!fits) {
        return diag_refuse(&e->ctx->diags, E_ARGUMENT_VALUE, e->g->params.at[n->param].span,
                           "the argument for '%s' is missing or of another type or shape",
                           name);
    }
    *out = p->collapsed == NULL ? t : tensor_as(e->arena, t, n->rank, n->shape, e->dims);
    return true;
}

static int64_t position(const Evaluator *e, Affine x, const int64_t *index)
{
    int64_t at = x.base;
    for (uint32_t t = 0; t < x.n; t++) {
        VarRef v = x.term[t].var;
        at += x.term[t].coef * (affine_is_dim(v) ? e->dims[affine_sym(v)] : index[v]);
    }
    return at;
}

/* Verified to lie inside of the result. */
static void eval_piece(Evaluator *e, const Node *n, uint32_t k, Tensor *to)
{
    const Tensor *from = e->value[n->operand[k]];
    const Affine *at = n->at + (size_t)k * n->rank;
    int64_t index[RANK_LIMIT] = {0};
    for (int64_t i = 0; i < from->count; i++) {
        int64_t offset = 0;
        tensor_position(from, i, index);
        for (uint32_t d = 0; d < n->rank; d++) {
            int64_t x = position(e, at[d], index);
            CHECK(x >= 0 && x < to->extent[d]);
            offset = offset * to->extent[d] + x;
        }
        Number value = tensor_get(from, i);
        if (n->op == OP_UPDATE && k > 0) {
            Number two[2] = {tensor_get(to, offset), value};
            value = op_value(n->dtype == DTYPE_BOOL ? OP_OR : OP_ADD, n->dtype, two);
        }
        tensor_set(to, offset, value);
    }
}

/* Verified to lie inside of the operand. */
static void eval_view(Evaluator *e, const Node *n, Tensor *to)
{
    const Tensor *from = e->value[n->operand[0]];
    int64_t label[RANK_LIMIT] = {0};
    for (int64_t i = 0; i < to->count; i++) {
        int64_t offset = 0;
        tensor_position(to, i, label);
        for (uint32_t d = 0; d < from->rank; d++) {
            int64_t at = position(e, n->at[d], label);
            CHECK(at >= 0 && at < from->extent[d]);
            offset = offset * from->extent[d] + at;
        }
        tensor_set(to, i, tensor_get(from, offset));
    }
}

/* The element of a tensor that an access of the node reads at these labels. */
static int64_t element_at(const Tensor *of, const Access *a, const int64_t *label)
{
    int64_t offset = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        int64_t at = a->index[d].label < 0 ? a->index[d].offset : label[a->index[d].label];
        offset = offset * of->extent[d] + at;
    }
    return offset;
}

static void eval_gather(Evaluator *e, const Node *n, Tensor *to)
{
    const Tensor *from = e->value[n->operand[0]];
    int64_t label[RANK_LIMIT] = {0};
    for (int64_t i = 0; i < to->count; i++) {
        int64_t rest = i, offset = 0;
        bool inside = true;
        for (uint32_t d = n->rank; d-- > 0;) {
            label[n->out[d]] = rest % to->extent[d];
            rest /= to->extent[d];
        }
        for (uint32_t d = 0; d < from->rank; d++) {
            const Tensor *positions = e->value[n->operand[d + 1]];
            int64_t at =
                tensor_get(positions, element_at(positions, &n->access[d + 1], label)).i;
            inside = inside && at >= 0 && at < from->extent[d];
            offset = inside ? offset * from->extent[d] + at : 0;
        }
        tensor_set(to, i, inside ? tensor_get(from, offset) : number_int(n->dtype, 0));
    }
}

static bool eval_steps(Evaluator *e, const Node *n, Tensor *to)
{
    const Recurrence *r = node_recurrence(e->g, n);
    Tensor **operand = ARENA_ARRAY(e->arena, n->n_operands, Tensor *);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        operand[k] = e->value[n->operand[k]];
    }
    return !out_of_work(e, sat_mul(extent_of(e, r->extent), MAP_STEP * r->body->nodes.n)) &&
           recurrence_eval(e->ctx, e->arena, e->g, n, e->dims, operand, to);
}

static bool eval_dense(Evaluator *e, Arena *scratch, const Node *n, Tensor *to)
{
    const Tensor *matrix = e->value[n->operand[0]];
    const Tensor *right = n->n_operands > 1 ? e->value[n->operand[1]] : NULL;
    int64_t rows = matrix->extent[matrix->rank - 1];
    if (out_of_work(e, sat_mul(rows, sat_add(to->count, matrix->count)))) {
        return false;
    }
    dense_eval(e->ctx, scratch, n->op, matrix, right, to);
    return true;
}

static bool eval_node(Evaluator *e, NodeRef r)
{
    const Node *n = graph_node(e->g, r);
    if (n->op == OP_INPUT) {
        return eval_input(e, n, &e->value[r]);
    }
    Tensor *to = e->value[r] = result_new(e, n);
    if (to == NULL) {
        return false;
    }
    Arena scratch;
    arena_init(&scratch, &e->ctx->budget);
    bool ok = true;
    switch (op_info(n->op)->kind) {
    case OPKIND_VIEW:
        eval_view(e, n, to);
        break;
    case OPKIND_JOIN:
        for (uint32_t k = 0; k < n->n_operands; k++) {
            eval_piece(e, n, k, to);
        }
        break;
    case OPKIND_GATHER:
        eval_gather(e, n, to);
        break;
    case OPKIND_STEPS:
        ok = eval_steps(e, n, to);
        break;
    case OPKIND_DENSE:
        ok = eval_dense(e, &scratch, n, to);
        break;
    case OPKIND_LEAF:
        for (int64_t i = 0; n->op == OP_INDEX && i < to->count; i++) {
            tensor_set(to, i, number_int(n->dtype, i));
        }
        if (n->op == OP_INDEX) {
            break;
        }
        tensor_set(to, 0, n->op == OP_CONST ? n->value : number_int(n->dtype, e->dims[n->dim]));
        break;
    case OPKIND_MAP:
        ok = eval_elementwise(e, &scratch, n, to);
        break;
    case OPKIND_CONTRACT:
        ok = eval_sum(e, &scratch, n, to);
        break;
    case OPKIND_REDUCE:
        ok = n->op == OP_SUM ? eval_sum(e, &scratch, n, to) : eval_reduce(e, &scratch, n, to);
        break;
    }
    arena_release(&scratch);
    return ok;
}

bool graph_eval(Ctx *ctx, Arena *arena, const Graph *g, const int64_t *dims,
                Tensor *const *args, Tensor **results)
{
    dims = dims_complete(arena, &g->dims, dims);
    Evaluator e = {.ctx = ctx, .arena = arena, .g = g, .dims = dims, .args = args};
    e.value = ARENA_ARRAY(arena, g->nodes.n, Tensor *);
    for (uint32_t k = 0; k < g->dims.list.n; k++) {
        if (dims[k] < 0 || dims[k] > SIZE_LIMIT) {
            return diag_refuse(
                &ctx->diags, E_EXTENT_RANGE, g->dims.list.at[k].span, "dim '%s' is %lld",
                dim_written(arena, &g->dims, dim_open((int32_t)k)), (long long)dims[k]);
        }
    }
    const bool *needed = graph_needed(arena, g, true);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        if (needed[r] && !eval_node(&e, r)) {
            return false;
        }
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Tensor *from = e.value[g->results.at[k].node];
        Tensor *to = tensor_new(ctx, arena, from->dtype, from->rank, from->extent);
        if (to == NULL) {
            return false;
        }
        memcpy(to->data, from->data, (size_t)(from->count * dtype_bytes(from->dtype)));
        const Result *r = &g->results.at[k];
        const Param *p = r->param < 0 ? NULL : &g->params.at[r->param];
        results[k] = r->shape != NULL ? tensor_as(arena, to, r->rank, r->shape, dims)
                     : p != NULL && p->collapsed != NULL
                         ? tensor_as(arena, to, p->rank, p->shape, dims)
                         : to;
    }
    return true;
}
