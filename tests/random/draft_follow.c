/* SPDX-License-Identifier: Apache-2.0 */
/* Right sides that go on from a value made before, as the kernels do that people write: chains
 * of contractions with elementwise work between, row maxima that come back to the rows, sums
 * over several axes, one value read in several orders. The labels are those of the value and a
 * few more; whatever else is read has to fit them, or is a new parameter that does. */
#include "draft.h"

#include <stdio.h>
#include <string.h>

#define ROOM sizeof(((Draft *)NULL)->right)

/* A label for dimension d of a tensor, or -1; others than those in *taken where there are some. */
static int32_t fit(Gen *g, const Labels *l, uint32_t dim, uint32_t *taken)
{
    uint32_t list[MAX_LABELS], n = 0, fresh[MAX_LABELS], n_fresh = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        if (l->dim[k] == dim && !l->inner[k]) {
            list[n++] = k;
        }
        if (l->dim[k] == dim && !l->inner[k] && (*taken >> k & 1) == 0) {
            fresh[n_fresh++] = k;
        }
    }
    if (n == 0) {
        return -1;
    }
    uint32_t k = n_fresh > 0 && !chance(g, 4) ? fresh[below(g, n_fresh)] : list[below(g, n)];
    *taken |= 1u << k;
    return (int32_t)k;
}

static bool fits(const Labels *l, const RandomTensor *r)
{
    for (uint32_t d = 0; d < r->rank; d++) {
        bool found = false;
        for (uint32_t k = 0; k < l->n; k++) {
            found |= l->dim[k] == r->dim[d] && !l->inner[k];
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* A defined tensor of the type that fits, the last ones more often; or null. */
static RandomTensor *pick_fit(Gen *g, const Labels *l, DType t)
{
    uint32_t n = 0, list[MAX_TENSORS];
    for (uint32_t k = 0; k < g->p->n_tensors; k++) {
        const RandomTensor *r = &g->p->tensors[k];
        if (r->defined && r->dtype == t && fits(l, r)) {
            list[n++] = k;
        }
    }
    if (n == 0) {
        return NULL;
    }
    uint32_t a = below(g, n), b = below(g, n);
    return &g->p->tensors[list[a > b ? a : b]];
}

/* A parameter over some of the labels: those first that nothing reads yet. */
static RandomTensor *new_param(Gen *g, const Labels *l, DType t)
{
    double size = 1;
    if (g->p->n_tensors + 4 >= MAX_TENSORS) {
        return NULL;
    }
    RandomTensor *r = new_tensor(g, TENSOR_IN, 'B', t);
    uint32_t at = below(g, l->n);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < l->n; k++) {
            uint32_t label = (k + at) % l->n;
            double extent = (double)g->p->dims[l->dim[label]].extent;
            bool wanted = pass == 0 ? l->used[label] == 0 : chance(g, 35);
            if (wanted && !l->inner[label] && r->rank < MAX_RANK &&
                size * extent <= g->points) {
                r->dim[r->rank++] = l->dim[label];
                size *= extent > 0 ? extent : 1;
            }
        }
    }
    for (uint32_t k = r->rank; k > 1; k--) {
        uint32_t other = below(g, k), swap = r->dim[k - 1];
        r->dim[k - 1] = r->dim[other];
        r->dim[other] = swap;
    }
    r->kind = r->rank == 0 ? TENSOR_SCALAR : TENSOR_IN;
    r->defined = true;
    return r;
}

/* "A0[i,j]" of labels that are there; the bound of its values. */
static double put_fit(Gen *g, Draft *d, const RandomTensor *r)
{
    uint32_t taken = 0;
    note_read(g, d, r);
    append(d->right, ROOM, "%s", r->name);
    for (uint32_t k = 0; k < r->rank; k++) {
        int32_t label = fit(g, &d->labels, r->dim[k], &taken);
        CHECK(label >= 0);
        d->labels.used[label]++;
        append(d->right, ROOM, "%s%c%s", k == 0 ? "[" : ",", letters[label],
               k + 1 == r->rank ? "]" : "");
    }
    return r->bound;
}

static RandomTensor *operand(Gen *g, Draft *d, uint32_t new_percent)
{
    RandomTensor *r = chance(g, new_percent) ? NULL : pick_fit(g, &d->labels, d->dtype);
    return r != NULL ? r : new_param(g, &d->labels, d->dtype);
}

/* A value of another type, cast: every value is an integer that both hold. Bound, or -1. */
static double put_cast(Gen *g, Draft *d)
{
    DType t = d->dtype == g->other ? g->dtype : g->other;
    RandomTensor *r = pick_fit(g, &d->labels, t);
    if (r == NULL || t == d->dtype || (dtype_is_complex(t) && !dtype_is_complex(d->dtype)) ||
        (d->dtype != DTYPE_BOOL && r->bound > exact_limit(d->dtype) / 4)) {
        return -1;
    }
    append(d->right, ROOM, "%s(", dtype_name(d->dtype));
    double bound = put_fit(g, d, r);
    append(d->right, ROOM, ")");
    return d->dtype == DTYPE_BOOL ? 1 : bound;
}

/* sum[q](A[i,q] * B[q,j]): a label of its own for a dimension, beside those that are there.
 * Bound; -1 where there is none, -2 when it is too late for another leaf. */
static double put_inner(Gen *g, Draft *d)
{
    Labels *l = &d->labels, outer = *l;
    RandomTensor *a = pick(g, d->dtype);
    if (a == NULL || a->rank == 0 || l->n == MAX_LABELS || d->dtype == DTYPE_BOOL) {
        return -1;
    }
    uint32_t inner = l->n++, dim = a->dim[below(g, a->rank)];
    double extent = (double)g->p->dims[dim].extent, bound = extent;
    l->dim[inner] = dim;
    l->used[inner] = 0;
    if (!fits(l, a)) {
        *l = outer;
        return -1;
    }
    append(d->right, ROOM, "sum[%c](", letters[inner]);
    for (uint32_t k = 0, n = 1 + below(g, 2); k < n || l->used[inner] == 0; k++) {
        append(d->right, ROOM, "%s", k == 0 ? "" : " * ");
        RandomTensor *r = k == 0 ? a : operand(g, d, 50);
        if (r == NULL || k == 4) {
            return -2;
        }
        bound *= put_fit(g, d, r);
    }
    append(d->right, ROOM, ")");
    l->inner[inner] = true;
    return bound;
}

static double put_expression(Gen *g, Draft *d, uint32_t depth);

static double put_leaf(Gen *g, Draft *d)
{
    double bound = chance(g, 12) ? put_cast(g, d) : chance(g, 10) ? put_inner(g, d) : -1;
    if (bound != -1) {
        return bound;
    }
    RandomTensor *r = operand(g, d, 12);
    return r == NULL ? -1 : put_fit(g, d, r);
}

/* `before` left `between` right `after`; the bounds of both. */
static bool put_two(Gen *g, Draft *d, uint32_t depth, const char *const text[3],
                    double bound[2])
{
    append(d->right, ROOM, "%s", text[0]);
    bound[0] = put_expression(g, d, depth);
    append(d->right, ROOM, "%s", text[1]);
    bound[1] = bound[0] < 0 ? -1 : put_expression(g, d, depth);
    append(d->right, ROOM, "%s", text[2]);
    return bound[1] >= 0;
}

static double put_bool(Gen *g, Draft *d, uint32_t depth)
{
    static const char *const forms[][3] = {
        {"(", " && ", ")"}, {"(", " || ", ")"}, {"(", " == ", ")"}, {"!(", " && ", ")"}};
    double bound[2];
    return put_two(g, d, depth, forms[below(g, 4)], bound) ? 1 : -1;
}

static double put_select(Gen *g, Draft *d, uint32_t depth)
{
    static const char *const tests[][3] = {{"select(", " < ", ", "}, {"select(", " >= ", ", "}};
    static const char *const values[3] = {"", ", ", ")"};
    double bound[2];
    if (!put_two(g, d, 0, tests[below(g, 2)], bound) || !put_two(g, d, depth, values, bound)) {
        return -1;
    }
    return bound[0] > bound[1] ? bound[0] : bound[1];
}

static double put_operation(Gen *g, Draft *d, uint32_t depth)
{
    static const char *const two[][3] = {{"(", " + ", ")"},
                                         {"(", " - ", ")"},
                                         {"(", " * ", ")"},
                                         {"min(", ", ", ")"},
                                         {"max(", ", ", ")"}};
    static const char *const one[] = {"(-", "abs(", "relu("};
    bool real = !dtype_is_complex(d->dtype);
    double bound[2];
    if (depth == 0 || strlen(d->right) > 250 || chance(g, 15)) {
        return strlen(d->right) > 320 ? -1 : put_leaf(g, d);
    }
    if (d->dtype == DTYPE_BOOL) {
        return put_bool(g, d, depth - 1);
    }
    uint32_t kind = below(g, real ? 11 : 5);
    if (kind == (real ? 5 : 4)) {
        append(d->right, ROOM, "(");
        bound[0] = put_expression(g, d, depth - 1);
        append(d->right, ROOM, chance(g, 50) ? " - 2)" : " * 2)");
        return bound[0] < 0 ? -1 : 2 * bound[0] + 2;
    }
    if (kind == 9) {
        return put_select(g, d, depth - 1);
    }
    if (kind == 10) { /* a value that stays small, however long the chain */
        append(d->right, ROOM, "max(min(");
        bound[0] = put_expression(g, d, depth - 1);
        append(d->right, ROOM, ", 2), -1)");
        return bound[0] < 0 ? -1 : 2;
    }
    if (kind >= 6 || (!real && kind == 3)) {
        append(d->right, ROOM, "%s", one[real ? kind - 6 : 0]);
        bound[0] = put_expression(g, d, depth - 1);
        append(d->right, ROOM, ")");
        return bound[0];
    }
    if (!put_two(g, d, depth - 1, two[kind], bound)) {
        return -1;
    }
    return kind == 2             ? bound[0] * bound[1]
           : kind < 2            ? bound[0] + bound[1]
           : bound[0] > bound[1] ? bound[0]
                                 : bound[1];
}

/* Bound of what was appended, or less than 0 when there is none, or not all values are exact. */
static double put_expression(Gen *g, Draft *d, uint32_t depth)
{
    double bound = put_operation(g, d, depth);
    return bound > exact_limit(d->dtype) / 4 ? -1 : bound;
}

/* The labels of a value, each dimension its own, and up to two more. */
static void label_value(Gen *g, Labels *l, const RandomTensor *r, uint32_t more)
{
    for (uint32_t d = 0; d < r->rank; d++) {
        l->dim[l->n++] = r->dim[d];
    }
    for (uint32_t k = 0; k < more && l->n < MAX_LABELS; k++) {
        bool alike = r->rank > 0 && chance(g, 40);
        l->dim[l->n++] = alike ? r->dim[below(g, r->rank)] : below(g, g->p->n_dims);
    }
}

bool draft_follow(Gen *g, Draft *d, bool *product)
{
    RandomTensor *base = NULL;
    for (uint32_t k = g->p->n_tensors; k-- > 0 && base == NULL;) {
        RandomTensor *r = &g->p->tensors[k];
        bool last = r->kind != TENSOR_IN && r->kind != TENSOR_SCALAR;
        base = r->dtype == d->dtype && r->defined && last && chance(g, g->chain ? 95 : 50)
                   ? r
                   : NULL;
    }
    base = base != NULL ? base : pick(g, d->dtype);
    if (base == NULL) {
        return false;
    }
    *product = chance(g, g->chain ? 55 : 40);
    label_value(g, &d->labels, base, *product ? 1 + below(g, 2) : below(g, 4) / 3);
    if (d->labels.n == 0) {
        d->labels.dim[d->labels.n++] = below(g, g->p->n_dims);
    }
    if (!*product) {
        d->bound = put_expression(g, d, 1 + below(g, 3));
        return d->bound >= 0;
    }
    uint32_t factors = 2 + below(g, 4) / 3, first = below(g, 2);
    d->bound = 1;
    for (uint32_t k = 0; k < factors; k++) {
        RandomTensor *r = k == first ? base : operand(g, d, 60);
        if (r == NULL) {
            return false;
        }
        append(d->right, ROOM, "%s", k == 0 ? "" : " * ");
        d->bound *= put_fit(g, d, r);
    }
    return true;
}
