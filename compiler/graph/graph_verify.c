/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a graph between any two passes. In order:
 *   the kernel has a name; dims have different names and typical sizes of at least 1;
 *   parameters have different names, shapes within the limits, scalars no dimension;
 *   nodes have a known operation with its number of operands, each from before the node and read with one index a
 *   dimension; labels are numbered by first appearance and have one extent, that of every dimension they index; positions
 *   are inside their dimension; the result's labels are distinct and its shape is theirs; a MAP leaves no label out, others
 *   have no label that no operand has; element types follow the op table; the accumulator holds the node's type; no
 *   tensor is too large; no two nodes are equal;
 *   in form BINARY a contraction has two operands;
 *   what is said of a value's symmetry is true (verify_symmetry.c);
 *   rules of online sums hold (verify_online.c);
 *   there is a result; results have different names; an update is of an inout parameter, of its type, once.
 * Linear in the graph's text. */
#include "graph/recurrence.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "dump/text.h"
#include "graph/verify_online.h"
#include "graph/verify_symmetry.h"
#include "op/factors.h"

typedef struct Verifier {
    Ctx *ctx;
    const Graph *g;
    const char *stage;
    const Span *place;
    Arena scratch;
    NodeRef at; /* the node at hand, or NODE_NONE */
} Verifier;

static bool broken(Verifier *v, const char *format, ...) PRINTF_LIKE(2, 3);
static bool broken(Verifier *v, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    Span span = v->g->span;
    if (v->at == NODE_NONE) {
        diag_error(&v->ctx->diags, E_DUMP, span, "%s: kernel '%.60s': %s", v->stage,
                   v->g->name != NULL ? v->g->name->text : "?", what);
    } else {
        span = v->place != NULL ? v->place[v->at] : graph_node(v->g, v->at)->span;
        diag_error(&v->ctx->diags, E_DUMP, span, "%s: value %%%u (%s): %s", v->stage, v->at,
                   op_info(graph_node(v->g, v->at)->op)->name, what);
    }
    return false;
}

/* ---- types ---- */

static bool verify_dim(Verifier *v, Dim d)
{
    if (d.sym < -1 || (d.sym >= 0 && ((uint32_t)d.sym >= v->g->dims.list.n || d.n != 0))) {
        return broken(v, "an extent is no dim of the kernel");
    }
    if (d.sym < 0 && (d.n < 0 || d.n > SIZE_LIMIT)) {
        return broken(v, "the extent %lld is out of range", (long long)d.n);
    }
    return true;
}

static bool verify_type(Verifier *v, DType t, uint32_t rank, const Dim *shape)
{
    if (!dtype_known(t)) {
        return broken(v, "there is no element type");
    }
    if (rank > RANK_LIMIT) {
        return broken(v, "a rank of %u; at most %d are possible", rank, RANK_LIMIT);
    }
    int64_t bytes = dtype_bytes(t);
    for (uint32_t d = 0; d < rank; d++) {
        if (!verify_dim(v, shape[d])) {
            return false;
        }
        /* Zero extents count as one, so that no partial product overflows either. */
        int64_t e = shape[d].sym < 0 && shape[d].n > 1 ? shape[d].n : 1;
        if (!size_mul(bytes, e, &bytes)) {
            return broken(v, "its size in bytes does not fit 62 bits");
        }
    }
    return true;
}

/* ---- the head ---- */

static bool name_is_new(Map *seen, Sym name)
{
    uint32_t old;
    if (map_get(seen, name->id, &old)) {
        return false;
    }
    map_put(seen, name->id, 0);
    return true;
}

static bool verify_dims(Verifier *v)
{
    Map seen;
    map_init(&seen, &v->scratch);
    for (uint32_t k = 0; k < v->g->dims.list.n; k++) {
        const DimInfo *d = &v->g->dims.list.at[k];
        if (d->name == NULL || d->name->n == 0 || !name_is_new(&seen, d->name)) {
            return broken(v, "dim %u has no name of its own", k);
        }
        if (d->typical < 1 || d->typical > SIZE_LIMIT) {
            return broken(v, "the typical size of dim '%.60s' is out of range", d->name->text);
        }
        const char *problem = dim_problem(&v->g->dims, k);
        if (problem != NULL) {
            return broken(v, "dim '%.60s': %s", d->name->text, problem);
        }
    }
    return true;
}

static bool verify_params(Verifier *v, Map *seen)
{
    for (uint32_t k = 0; k < v->g->params.n; k++) {
        const Param *p = &v->g->params.at[k];
        if (p->name == NULL || p->name->n == 0 || !name_is_new(seen, p->name)) {
            return broken(v, "parameter %u has no name of its own", k);
        }
        if (!verify_type(v, p->dtype, p->rank, p->shape)) {
            return false;
        }
        if (p->collapsed != NULL &&
            (!verify_type(v, p->dtype, p->n_collapsed, p->collapsed) || p->symmetry != NULL ||
             !dims_same_elements(&v->scratch, &v->g->dims, p->rank, p->shape, p->n_collapsed,
                                 p->collapsed))) {
            return broken(v, "'%.60s' is not read as its dimensions, together or apart",
                          p->name->text);
        }
        if (p->role == PARAM_SCALAR && p->rank != 0) {
            return broken(v, "the scalar '%.60s' has dimensions", p->name->text);
        }
    }
    return true;
}

static bool same_type(const Param *p, const Node *n)
{
    bool same = p->dtype == n->dtype && param_rank(p) == n->rank;
    for (uint32_t d = 0; same && d < n->rank; d++) {
        same = dim_eq(param_shape(p)[d], n->shape[d]);
    }
    return same;
}

static bool verify_results(Verifier *v, Map *seen)
{
    const Graph *g = v->g;
    uint8_t *updated = ARENA_ARRAY(&v->scratch, g->params.n, uint8_t);
    if (g->results.n == 0) {
        return broken(v, "it has no result");
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result *r = &g->results.at[k];
        if (r->name == NULL || r->name->n == 0 || r->node >= g->nodes.n) {
            return broken(v, "result %u has no name or no value", k);
        }
        const Node *node = graph_node(g, r->node);
        if (r->shape != NULL &&
            (!verify_type(v, node->dtype, r->rank, r->shape) || r->symmetry != NULL ||
             !dims_same_elements(&v->scratch, &g->dims, r->rank, r->shape, node->rank,
                                 node->shape))) {
            return broken(v, "'%.60s' does not hold its dimensions, together or apart",
                          r->name->text);
        }
        if (r->param < 0) {
            if (!name_is_new(seen, r->name)) {
                return broken(v, "the name '%.60s' is taken twice", r->name->text);
            }
            continue;
        }
        const Param *p = (uint32_t)r->param < g->params.n ? &g->params.at[r->param] : NULL;
        if (p == NULL || p->role != PARAM_INOUT || p->name != r->name) {
            return broken(v, "'%.60s' is updated and no inout parameter", r->name->text);
        }
        if (!same_type(p, graph_node(g, r->node))) {
            return broken(v, "the new value of '%.60s' is of another type", r->name->text);
        }
        if (updated[r->param]++) {
            return broken(v, "'%.60s' is updated twice", r->name->text);
        }
    }
    return true;
}

/* ---- nodes ---- */

static bool verify_leaf(Verifier *v, const Node *n)
{
    if (n->n_operands != 0 || n->n_labels != 0 || n->acc != n->dtype) {
        return broken(v, "a leaf has no operands, labels or accumulator");
    }
    if (n->op == OP_INPUT) {
        if (n->param >= v->g->params.n || !same_type(&v->g->params.at[n->param], n)) {
            return broken(v, "it is not of its parameter's type");
        }
        return true;
    }
    if (n->op == OP_INDEX) {
        return (n->rank == 1 && n->dtype != DTYPE_BOOL && !dtype_is_complex(n->dtype)) ||
               broken(v, "it is not real numbers along one dimension");
    }
    if (n->rank != 0) {
        return broken(v, "it has dimensions");
    }
    if (n->op == OP_EXTENT) {
        if (n->dim < 0 || (uint32_t)n->dim >= v->g->dims.list.n || n->dtype == DTYPE_BOOL) {
            return broken(v, "it is the extent of no dim, or no number");
        }
        return true;
    }
    Number fit = number_cast(n->value, n->dtype);
    bool same = fit.i == n->value.i && (fit.re == n->value.re || isnan(n->value.re)) &&
                (fit.im == n->value.im || isnan(n->value.im));
    return (n->value.dtype == n->dtype && same) || broken(v, "its value is not of its type");
}

/* A label seen at a dimension of extent `d`: numbered in order, with this extent. */
static bool verify_label(Verifier *v, const Node *n, int32_t label, uint32_t *seen, Dim d)
{
    if (label < 0 || (uint32_t)label >= n->n_labels || (uint32_t)label > *seen) {
        return broken(v, "labels are not numbered by first appearance");
    }
    *seen += (uint32_t)label == *seen ? 1 : 0;
    if (!dim_eq(n->extent[label], d)) {
        return broken(v, "index %d does not have the extent of a dimension it reads", label);
    }
    return true;
}

static bool verify_access(Verifier *v, const Node *n, uint32_t k, uint32_t *seen)
{
    const Access *a = &n->access[k];
    if (n->operand[k] >= v->at) {
        return broken(v, "operand %u does not come before it", k);
    }
    const Node *o = graph_node(v->g, n->operand[k]);
    if (a->rank != o->rank) {
        return broken(v, "operand %u is read with %u indices and has rank %u", k, a->rank,
                      o->rank);
    }
    for (uint32_t d = 0; d < a->rank; d++) {
        const Index *ix = &a->index[d];
        if (ix->label >= 0) {
            if (ix->offset != 0) {
                return broken(v, "operand %u has an offset on a label", k);
            }
            if (!verify_label(v, n, ix->label, seen, o->shape[d])) {
                return false;
            }
        } else if (ix->label != -1 || o->shape[d].sym >= 0 || ix->offset < 0 ||
                   ix->offset >= o->shape[d].n) {
            return broken(v, "operand %u is read at a position outside dimension %u", k, d);
        }
    }
    return true;
}

static bool verify_labels(Verifier *v, const Node *n)
{
    uint32_t seen = 0;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        uint32_t before = seen;
        if (!verify_access(v, n, k, &seen)) {
            return false;
        }
        if (k == node_factors(n) && seen != before) {
            return broken(v, "its initial value has an index that no factor has");
        }
    }
    uint32_t of_operands = seen, n_out = 0;
    uint8_t *in_out = ARENA_ARRAY(&v->scratch, n->n_labels, uint8_t);
    for (uint32_t d = 0; d < n->rank; d++) {
        if (!verify_label(v, n, n->out[d], &seen, n->shape[d])) {
            return false;
        }
        if (in_out[n->out[d]]++) {
            return broken(v, "index %d is repeated in the result", n->out[d]);
        }
        n_out++;
    }
    if (seen != n->n_labels) {
        return broken(v, "it has labels that nothing uses");
    }
    if (op_info(n->op)->kind == OPKIND_MAP) {
        return n_out == n->n_labels || broken(v, "an elementwise operation drops an index");
    }
    return of_operands == n->n_labels || broken(v, "an index of the result is in no operand");
}

/* Of a contraction: two factors, scales that are numbers as they are, and an initial value, element by element. */
static bool verify_factors(Verifier *v, const Node *n)
{
    bool sums = n->n_labels > n->rank;
    if (n->n_operands < 2 || node_factors(n) < 2 || (n->n_operands > 2 && !sums)) {
        return broken(v, "a contraction of %u operands in form binary", n->n_operands);
    }
    for (uint32_t k = 2; k < node_factors(n); k++) {
        const Node *o = n->operand[k] < v->at ? graph_node(v->g, n->operand[k]) : NULL;
        if (o == NULL || o->rank != 0 || o->dtype != n->dtype ||
            (o->op != OP_CONST &&
             (o->op != OP_INPUT || v->g->params.at[o->param].role == PARAM_INOUT))) {
            return broken(v, "operand %u is no scale", k);
        }
    }
    return true;
}

/* What a sum begins with is a value before it, of the labels that it keeps. */
static bool verify_init(Verifier *v, const Node *n)
{
    const Node *x = n->onto && node_init(n) < v->at ? graph_node(v->g, node_init(n)) : NULL;
    const Access *a = &n->access[n->n_operands - 1];
    for (uint32_t d = 0; x != NULL && d < a->rank; d++) {
        if (a->index[d].label >= 0 && node_reduces(n, a->index[d].label)) {
            return broken(v, "its initial value has an index that is summed");
        }
    }
    return !n->onto ||
           (x != NULL && x->dtype == n->dtype && n->acc == n->dtype &&
            n->dtype != DTYPE_BOOL) ||
           broken(v, "its initial value is not of the type that it sums in");
}

/* Types of CONTRACT and REDUCE: each operand widens to the node's type, which the op takes. */
static bool verify_sum_types(Verifier *v, const Node *n)
{
    DType own = DTYPE_NONE;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        if (!dtype_widens(graph_node(v->g, n->operand[k])->dtype, n->dtype)) {
            return broken(v, "operand %u does not widen to its type", k);
        }
    }
    uint32_t n_types =
        op_info(n->op)->arity == ARITY_ANY ? 1u : (uint32_t)op_info(n->op)->arity;
    if (!op_result_type(n->op, &n->dtype, n_types, &own) || own != n->dtype) {
        return broken(v, "the operation does not have the element type %s",
                      dtype_name(n->dtype));
    }
    if (!dtype_known(n->acc) || !dtype_widens(n->dtype, n->acc) ||
        dtype_is_complex(n->acc) != dtype_is_complex(n->dtype)) {
        return broken(v, "its accumulator does not hold its element type");
    }
    return true;
}

static bool verify_map_types(Verifier *v, const Node *n)
{
    DType in[3], own = DTYPE_NONE;
    CHECK(n->n_operands <= 3);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        in[k] = graph_node(v->g, n->operand[k])->dtype;
    }
    if (n->acc != n->dtype) {
        return broken(v, "an elementwise operation has no accumulator");
    }
    if (n->op == OP_CAST) {
        return true;
    }
    if (!op_result_type(n->op, in, n->n_operands, &own)) {
        return broken(v, "the operation does not take operands of these element types");
    }
    return own == n->dtype ||
           broken(v, "the operation gives %s, not %s", dtype_name(own), dtype_name(n->dtype));
}

/* Positions are of the result's labels, which are numbered in order, and inside of the operand. */
static bool verify_view(Verifier *v, const Node *n)
{
    const Node *o = n->operand[0] < v->at ? graph_node(v->g, n->operand[0]) : NULL;
    if (o == NULL || n->access[0].rank != o->rank || o->dtype != n->dtype ||
        n->acc != n->dtype || n->n_labels != n->rank || op_info(o->op)->kind == OPKIND_VIEW) {
        return broken(v, "it is no view of a value before it");
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->out[d] != (int32_t)d || !dim_eq(n->extent[d], n->shape[d])) {
            return broken(v, "its labels are not those of its result");
        }
    }
    for (uint32_t d = 0; d < o->rank; d++) {
        bool fine = n->access[0].index[d].label == -1 && n->access[0].index[d].offset == 0;
        for (uint32_t i = 0; fine && i < n->at[d].n; i++) {
            VarRef x = n->at[d].term[i].var;
            fine =
                affine_is_dim(x) ? affine_sym(x) < (int32_t)v->g->dims.list.n : x < n->n_labels;
        }
        if (!fine) {
            return broken(v, "a position in dimension %u is not of its labels", d);
        }
        int problem = position_problem(&v->scratch, &v->g->dims, n->extent, n->n_labels,
                                       n->at[d], o->shape[d]);
        if (problem != 0) {
            return broken(v, "its position in dimension %u may be %s", d,
                          problem < 0 ? "below 0" : "past the end");
        }
    }
    return true;
}

static bool verify_piece(Verifier *v, const Node *n, uint32_t k, Patch *piece)
{
    const Node *o = n->operand[k] < v->at ? graph_node(v->g, n->operand[k]) : NULL;
    if (o == NULL || n->access[k].rank != o->rank || o->dtype != n->dtype) {
        return broken(v, "operand %u is no piece of it", k);
    }
    *piece = node_piece(v->g, n, k);
    for (uint32_t d = 0; d < o->rank; d++) {
        if (n->access[k].index[d].label != -1 || n->access[k].index[d].offset != 0) {
            return broken(v, "operand %u is not read whole", k);
        }
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        if (!affine_is_canonical(piece->at[d], o->rank, v->g->dims.list.n) ||
            position_problem(&v->scratch, &v->g->dims, o->shape, o->rank, piece->at[d],
                             n->shape[d]) != 0) {
            return broken(v, "operand %u may lie outside of it", k);
        }
    }
    return !piece_overlaps_itself(n->rank, piece) ||
           broken(v, "two elements of operand %u may lie at one place", k);
}

/* Pieces lie inside of the result, each element at a place of its own; those of a join cover it. */
static bool verify_join(Verifier *v, const Node *n)
{
    Patch *piece = ARENA_ARRAY(&v->scratch, n->n_operands, Patch);
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->out[d] != (int32_t)d || !dim_eq(n->extent[d], n->shape[d])) {
            return broken(v, "its labels are not those of its result");
        }
    }
    if (n->n_labels != n->rank || n->acc != n->dtype) {
        return broken(v, "it has other labels than its result");
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        if (!verify_piece(v, n, k, &piece[k])) {
            return false;
        }
    }
    uint32_t x = 0, y = 0;
    if (n->op == OP_JOIN &&
        pieces_meet(&v->scratch, &v->g->dims, n->rank, n->n_operands, piece, &x, &y)) {
        return broken(v, "operands %u and %u may lie at one place", x, y);
    }
    return pieces_are_all(&v->scratch, &v->g->dims, n->rank, n->shape,
                          n->op == OP_JOIN ? n->n_operands : 1, piece) ||
           broken(v, "its operands leave a part of it out");
}

/* Is the position that an index has in dimension d below the extent, whatever open dims are? */
static bool index_is_inside(Verifier *v, const Node *n, uint32_t d, Dim extent)
{
    const Access *a = &n->access[d + 1];
    if (a->rank != 1 || a->index[0].label < 0 || (uint32_t)a->index[0].label >= n->n_labels) {
        return false;
    }
    const AffineTerm here = {(VarRef)a->index[0].label, 1};
    return position_problem(&v->scratch, &v->g->dims, n->extent, n->n_labels,
                            (Affine){0, 1, &here}, extent) == 0;
}

/* A value that lies in memory, and a whole number for each of its dimensions; those of indices are inside. */
static bool verify_gather(Verifier *v, const Node *n)
{
    const Node *o = n->operand[0] < v->at ? graph_node(v->g, n->operand[0]) : NULL;
    if (o == NULL || o->op == OP_VIEW ||
        (op_info(o->op)->kind == OPKIND_LEAF && o->op != OP_INPUT) || o->dtype != n->dtype ||
        n->acc != n->dtype || n->n_operands != o->rank + 1 || n->access[0].rank != o->rank ||
        n->n_labels != n->rank) {
        return broken(v, "it does not gather from a value that is stored");
    }
    for (uint32_t d = 0; d < o->rank; d++) {
        const Node *at = n->operand[d + 1] < v->at ? graph_node(v->g, n->operand[d + 1]) : NULL;
        if (n->access[0].index[d].label != -1 || n->access[0].index[d].offset != 0 ||
            at == NULL || at->dtype != DTYPE_I64) {
            return broken(v, "its position in dimension %u is no whole number", d);
        }
        if (at->op == OP_INDEX && !index_is_inside(v, n, d, o->shape[d])) {
            return broken(v, "its position in dimension %u may be past the end", d);
        }
    }
    Node positions = *n;
    positions.op = OP_MAX; /* as elementwise work on them */
    positions.n_operands--;
    positions.operand++;
    positions.access++;
    return verify_labels(v, &positions);
}

static bool verify_steps(Verifier *v, const Node *n)
{
    for (uint32_t k = 0; k < n->n_operands; k++) {
        if (n->operand[k] >= v->at) {
            return broken(v, "operand %u does not come before it", k);
        }
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->out[d] != (int32_t)d || !dim_eq(n->extent[d], n->shape[d])) {
            return broken(v, "its labels are not those of its result");
        }
    }
    const char *problem = recurrence_problem(v->g, n);
    return problem == NULL || broken(v, "%s", problem);
}

/* Batches, then a matrix; of a solution batches, the equation and others. */
static bool verify_dense(Verifier *v, const Node *n)
{
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const Node *o = graph_node(v->g, n->operand[k]);
        if (n->operand[k] >= v->at || o->dtype != n->dtype) {
            return broken(v, "operand %u does not come before it, or has another type", k);
        }
    }
    const Node *matrix = graph_node(v->g, n->operand[0]);
    const Node *like = graph_node(v->g, n->operand[n->n_operands - 1]);
    uint32_t batch = matrix->rank - 2;
    if (!dtype_is_float(n->dtype) || matrix->rank < 2 || like->rank != n->rank ||
        n->rank <= batch || n->n_labels != n->rank ||
        !dim_eq(matrix->shape[batch], matrix->shape[batch + 1])) {
        return broken(v, "it is of square matrices of real floats");
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->out[d] != (int32_t)d || !dim_eq(n->extent[d], n->shape[d]) ||
            !dim_eq(n->shape[d], like->shape[d]) ||
            (d <= batch && !dim_eq(n->shape[d], matrix->shape[d]))) {
            return broken(v, "its labels are not those of its result, or it is no such matrix");
        }
    }
    return true;
}

static bool verify_computed(Verifier *v, const Node *n)
{
    const OpInfo *info = op_info(n->op);
    if (info->arity == ARITY_ANY ? n->n_operands == 0
                                 : node_factors(n) != (uint32_t)info->arity) {
        return broken(v, "it has %u operands", n->n_operands);
    }
    if (info->kind == OPKIND_VIEW || info->kind == OPKIND_JOIN) {
        return info->kind == OPKIND_VIEW ? verify_view(v, n) : verify_join(v, n);
    }
    if (info->kind == OPKIND_GATHER) {
        return verify_gather(v, n);
    }
    if (info->kind == OPKIND_STEPS) {
        return verify_steps(v, n);
    }
    if (info->kind == OPKIND_DENSE) {
        return verify_dense(v, n);
    }
    bool contracts = info->kind == OPKIND_CONTRACT, binary = v->g->form == GRAPH_BINARY;
    if (n->onto && !((contracts || n->op == OP_SUM) && binary)) {
        return broken(v, "it has an initial value and is no sum in form binary");
    }
    if ((contracts && binary && !verify_factors(v, n)) || !verify_init(v, n) ||
        !verify_labels(v, n)) {
        return false;
    }
    return info->kind == OPKIND_MAP ? verify_map_types(v, n) : verify_sum_types(v, n);
}

/* No two nodes are equal: by a table of its own, hash -> last node of that hash, chained. */
static bool verify_unique(Verifier *v, Map *table, uint32_t *chain)
{
    const Node *n = graph_node(v->g, v->at);
    uint64_t hash = node_hash(n);
    uint32_t last = NODE_NONE;
    if (!map_get(table, hash, &last)) {
        last = NODE_NONE;
    }
    for (uint32_t r = last; r != NODE_NONE; r = chain[r]) {
        if (node_equal(graph_node(v->g, r), n)) {
            return broken(v, "it is the same as %%%u", r);
        }
    }
    chain[v->at] = last;
    map_put(table, hash, v->at);
    return true;
}

static bool verify_nodes(Verifier *v)
{
    Map table;
    map_init(&table, &v->scratch);
    uint32_t *chain = ARENA_ARRAY(&v->scratch, v->g->nodes.n, uint32_t);
    bool ok = true;
    for (v->at = 0; ok && v->at < v->g->nodes.n;) {
        const Node *n = graph_node(v->g, v->at);
        if ((unsigned)n->op >= OP_COUNT) {
            CHECK(false); /* no text can say this */
        }
        ok = verify_type(v, n->dtype, n->rank, n->shape);
        for (uint32_t l = 0; ok && l < n->n_labels; l++) {
            ok = verify_dim(v, n->extent[l]);
        }
        ok = ok &&
             (op_info(n->op)->kind == OPKIND_LEAF ? verify_leaf(v, n) : verify_computed(v, n));
        ok = ok && verify_unique(v, &table, chain);
        v->at++;
    }
    v->at = NODE_NONE;
    return ok;
}

static bool verify_symmetry(Verifier *v)
{
    const char *problem = graph_symmetry_problem(&v->scratch, v->g, &v->at);
    if (problem != NULL) {
        return broken(v, "%s", problem);
    }
    v->at = NODE_NONE;
    return true;
}

static bool verify_online(Verifier *v)
{
    uint32_t at = 0;
    const char *problem = graph_online_problem(v->g, &v->scratch, &at);
    return problem == NULL || broken(v, "online rule %u %s", at, problem);
}

static bool verify_required(Verifier *v)
{
    v->at = NODE_NONE;
    for (uint32_t k = 0; k < v->g->required.n; k++) {
        const char *problem = graph_required_problem(&v->scratch, v->g, &v->g->required.at[k]);
        if (problem != NULL) {
            return broken(v, "requirement %u %s", k, problem);
        }
    }
    return true;
}

bool graph_verify_at(Ctx *ctx, const Graph *g, const char *stage, const Span *place)
{
    Verifier v = {.ctx = ctx, .g = g, .stage = stage, .place = place, .at = NODE_NONE};
    Map seen;
    arena_init(&v.scratch, &ctx->budget);
    map_init(&seen, &v.scratch);
    bool ok = g->name != NULL && g->name->n > 0;
    ok = ok ? verify_dims(&v) && verify_params(&v, &seen) && verify_nodes(&v) &&
                  verify_online(&v) && verify_results(&v, &seen) && verify_symmetry(&v) &&
                  verify_required(&v)
            : broken(&v, "the kernel has no name");
    arena_release(&v.scratch);
    for (uint32_t k = 0; ok && k < g->recurrences.n; k++) {
        ok = graph_verify(ctx, g->recurrences.at[k]->body, stage);
    }
    return ok;
}

bool graph_verify(Ctx *ctx, const Graph *g, const char *stage)
{
    return graph_verify_at(ctx, g, stage, NULL);
}
