/* SPDX-License-Identifier: Apache-2.0 */
/* Right sides of statements: products, sums of contractions, elementwise expressions, whose
 * labels are chosen as they come. See draft.h. */
#include "draft.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char letters[] = "ijklmnpqrstu";

uint32_t below(Gen *g, uint32_t n)
{
    return (uint32_t)rng_below(&g->rng, n);
}

bool chance(Gen *g, uint32_t percent)
{
    return below(g, 100) < percent;
}

/* The largest integer up to which all are exact. */
double exact_limit(DType t)
{
    return dtype_is_exact(t) ? 1e300 : 2 / dtype_epsilon(t);
}

void append(char *to, size_t room, const char *format, ...)
{
    size_t n = strlen(to);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(to + n, n < room ? room - n : 0, format, args);
    va_end(args);
}
RandomTensor *new_tensor(Gen *g, TensorKind kind, char letter, DType t)
{
    RandomTensor *r = &g->p->tensors[g->p->n_tensors];
    *r = (RandomTensor){
        .kind = kind, .dtype = t, .bound = t == DTYPE_BOOL || dtype_is_half(t) ? 1 : 3};
    (void)snprintf(r->name, sizeof r->name, "%c%u", letter, g->p->n_tensors++);
    return r;
}
/* ---- indices of one statement: a letter each, bound to a dim ---- */

static int32_t label_for(Gen *g, Labels *l, uint32_t dim)
{
    uint32_t same[MAX_LABELS], n = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        if (l->dim[k] == dim) {
            same[n++] = k;
        }
    }
    if (n > 0 && (chance(g, 70) || l->n == MAX_LABELS)) {
        return (int32_t)same[below(g, n)];
    }
    if (l->n == MAX_LABELS) {
        return -1;
    }
    l->dim[l->n] = dim;
    l->used[l->n] = 0;
    return (int32_t)l->n++;
}

static void put_dim(const Gen *g, uint32_t dim, char *to, size_t room)
{
    const RandomDim *d = &g->p->dims[dim];
    if (d->open) {
        append(to, room, "%s_d%u", g->p->name, dim);
    } else {
        append(to, room, "%lld", (long long)d->extent);
    }
}

/* "A0[i,j]" into `to`; labels are added as needed. False when they run out. */
static bool put_access(Gen *g, Labels *l, const RandomTensor *r, char *to, size_t room,
                       char *terms)
{
    append(to, room, "%s", r->name);
    if (r->rank == 0) {
        return true;
    }
    for (uint32_t d = 0; d < r->rank; d++) {
        int32_t label = label_for(g, l, r->dim[d]);
        if (label < 0) {
            return false;
        }
        append(to, room, d == 0 ? "[" : ",");
        if (!g->device && l->used[label] > 0 && chance(g, 6)) { /* backwards */
            put_dim(g, r->dim[d], to, room);
            append(to, room, " - 1 - %c", letters[label]);
        } else {
            append(to, room, "%c", letters[label]);
        }
        l->used[label]++;
        append(terms, 64, "%c", letters[label]);
    }
    append(to, room, "]");
    return true;
}

RandomTensor *pick(Gen *g, DType t)
{
    uint32_t n = 0, list[MAX_TENSORS];
    for (uint32_t k = 0; k < g->p->n_tensors; k++) {
        const RandomTensor *r = &g->p->tensors[k];
        if (r->defined && r->dtype == t) {
            list[n++] = k;
        }
    }
    return n == 0 ? NULL : &g->p->tensors[list[below(g, n)]];
}

double label_count(const Gen *g, const Labels *l, const bool *in_output)
{
    double count = 1;
    for (uint32_t k = 0; k < l->n; k++) {
        if (!in_output[k] && l->used[k] > 0) {
            count *=
                (double)(g->p->dims[l->dim[k]].extent > 0 ? g->p->dims[l->dim[k]].extent : 1);
        }
    }
    return count;
}

/* Which labels the target has, in what order. */
uint32_t choose_output(Gen *g, const Labels *l, uint32_t keep_percent, uint32_t *out,
                       bool *in_output)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        in_output[k] =
            l->used[k] > 0 && !l->inner[k] && n < MAX_RANK && chance(g, keep_percent);
        if (in_output[k]) {
            out[n++] = k;
        }
    }
    for (uint32_t k = n; k > 1; k--) {
        uint32_t other = below(g, k), swap = out[k - 1];
        out[k - 1] = out[other];
        out[other] = swap;
    }
    return n;
}

void note_read(Gen *g, Draft *d, const RandomTensor *r)
{
    d->reads |= 1u << (uint32_t)(r - g->p->tensors);
}

/* A product of one to three tensors, as an einsum string or in index notation. */
bool draft_product(Gen *g, Draft *d)
{
    d->einsum = chance(g, 50);
    d->n_terms = 1 + below(g, 3);
    d->bound = 1;
    char operands[200] = "";
    for (uint32_t k = 0; k < d->n_terms; k++) {
        RandomTensor *r = pick(g, d->dtype);
        if (r == NULL) {
            return false;
        }
        note_read(g, d, r);
        d->bound *= r->bound;
        append(operands, sizeof operands, "%s%s", k == 0 ? "" : ", ", r->name);
        append(d->right, sizeof d->right, "%s", k == 0 ? "" : " * ");
        if (!put_access(g, &d->labels, r, d->right, sizeof d->right, d->terms[k])) {
            return false;
        }
    }
    if (d->einsum) {
        d->right[0] = '\0';
        append(d->right, sizeof d->right, "%s", operands);
    }
    return true;
}

/* A tensor that has the dims and the type of `r`: another one where there is one. */
static RandomTensor *pick_like(Gen *g, const RandomTensor *r)
{
    uint32_t n = 0, list[MAX_TENSORS];
    for (uint32_t k = 0; k < g->p->n_tensors; k++) {
        const RandomTensor *x = &g->p->tensors[k];
        if (x->defined && x->dtype == r->dtype && x->rank == r->rank &&
            memcmp(x->dim, r->dim, r->rank * sizeof r->dim[0]) == 0) {
            list[n++] = k;
        }
    }
    return &g->p->tensors[list[below(g, n)]];
}

/* "A0[i,j]" with a label of its own for each axis; some are those of `common`'s labels. */
static bool put_matrix(Gen *g, Labels *l, const RandomTensor *r, uint32_t n_common, char *to,
                       size_t room)
{
    uint32_t taken = 0;
    append(to, room, "%s[", r->name);
    for (uint32_t d = 0; d < r->rank; d++) {
        uint32_t label = l->n;
        for (uint32_t k = 0; k < n_common && label == l->n; k++) {
            if (l->dim[k] == r->dim[d] && (taken >> k & 1) == 0 && chance(g, 80)) {
                label = k;
                taken |= 1u << k;
            }
        }
        if (label == MAX_LABELS) {
            return false;
        }
        if (label == l->n) {
            l->dim[l->n] = r->dim[d];
            l->used[l->n++] = 0;
        }
        l->used[label]++;
        append(to, room, "%s%c", d == 0 ? "" : ",", letters[label]);
    }
    append(to, room, "]");
    return true;
}

/* A sum of contractions with a factor in common, which the compiler may take out:
 * sum[k](2 * A[i,k] * B[k,j]) - sum[k](A[i,k] * C[k,j]). The labels of the output are chosen
 * here, as the reductions name the others: most of those that both factors have. */
bool draft_sum(Gen *g, Draft *d, uint32_t *out, uint32_t *n_out, bool *in_output)
{
    Labels *l = &d->labels;
    RandomTensor *a = pick(g, d->dtype), *b = pick(g, d->dtype);
    char common[100] = "", other[100] = "", list[64] = "";
    if (d->dtype == DTYPE_BOOL || a == NULL || b == NULL || a->rank == 0 || b->rank == 0 ||
        !put_matrix(g, l, a, 0, common, sizeof common) ||
        !put_matrix(g, l, b, l->n, other, sizeof other)) {
        return false;
    }
    *n_out = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        in_output[k] = *n_out < MAX_RANK && chance(g, l->used[k] == 2 ? 30 : 95);
        if (in_output[k]) {
            out[(*n_out)++] = k;
        }
    }
    for (uint32_t k = 0; k < d->labels.n; k++) {
        if (!in_output[k] && d->labels.used[k] > 0) {
            append(list, sizeof list, "%s%c", list[0] == '\0' ? "" : ",", letters[k]);
        }
    }
    note_read(g, d, a);
    for (uint32_t terms = 2 + below(g, 2), k = 0; k < terms; k++) {
        RandomTensor *c = k == 0 ? b : pick_like(g, b);
        uint32_t scale = 1 + below(g, 3);
        bool first = chance(g, 50); /* the common factor is on either side */
        char there[100];
        (void)snprintf(there, sizeof there, "%s%s", c->name, strchr(other, '['));
        append(d->right, sizeof d->right, "%s", k == 0 ? "" : chance(g, 50) ? " + " : " - ");
        if (list[0] != '\0') {
            append(d->right, sizeof d->right, "sum[%s](", list);
        }
        if (scale > 1) {
            append(d->right, sizeof d->right, "%u * ", scale);
        }
        append(d->right, sizeof d->right, "%s * %s%s", first ? common : there,
               first ? there : common, list[0] != '\0' ? ")" : "");
        note_read(g, d, c);
        d->bound += scale * a->bound * c->bound;
    }
    d->bound *= label_count(g, &d->labels, in_output);
    return true;
}

/* An elementwise expression of tensors, all of whose indices are kept or reduced by name. */
bool draft_elementwise(Gen *g, Draft *d, uint32_t depth)
{
    RandomTensor *r = pick(g, d->dtype);
    char ignored[64] = "";
    if (r == NULL || strlen(d->right) > 250) {
        return false;
    }
    bool real = !dtype_is_complex(d->dtype) && d->dtype != DTYPE_BOOL;
    if (depth == 0 || chance(g, 30)) {
        note_read(g, d, r);
        d->bound += r->bound;
        return put_access(g, &d->labels, r, d->right, sizeof d->right, ignored);
    }
    if (d->dtype == DTYPE_BOOL) {
        append(d->right, sizeof d->right, chance(g, 30) ? "!(" : "(");
        bool ok = draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, chance(g, 50) ? " && " : " || ");
        ok = ok && draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ")");
        return ok;
    }
    switch (below(g, real ? 9 : 4)) {
    case 0:
    case 1:
    case 2: {
        uint32_t op = below(g, 3);
        double before = d->bound;
        append(d->right, sizeof d->right, "(");
        bool ok = draft_elementwise(g, d, depth - 1);
        double left = d->bound - before;
        append(d->right, sizeof d->right, op == 0 ? " + " : op == 1 ? " - " : " * ");
        ok = ok && draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ")");
        double right = d->bound - before - left;
        d->bound = before + (op == 2 ? left * right + left + right : left + right);
        return ok;
    }
    case 3: {
        append(d->right, sizeof d->right, "(-");
        bool ok = draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ")");
        return ok;
    }
    case 4:
    case 5: {
        append(d->right, sizeof d->right, chance(g, 50) ? "min(" : "max(");
        bool ok = draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ", ");
        ok = ok && draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ")");
        return ok;
    }
    case 6: {
        append(d->right, sizeof d->right, "select(");
        bool ok = draft_elementwise(g, d, 0);
        append(d->right, sizeof d->right, chance(g, 50) ? " < " : " == ");
        ok = ok && draft_elementwise(g, d, 0);
        append(d->right, sizeof d->right, ", ");
        ok = ok && draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ", ");
        ok = ok && draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ")");
        return ok;
    }
    case 7:
        if (!g->device && d->labels.n > 1 && d->labels.used[0] > 0 && d->labels.used[1] > 0 &&
            !d->labels.inner[0] && !d->labels.inner[1]) { /* what a mask leaves */
            append(d->right, sizeof d->right, "select(index(%c) %s index(%c), ", letters[0],
                   chance(g, 50) ? "<=" : "!=", letters[1]);
            bool ok = draft_elementwise(g, d, depth - 1);
            append(d->right, sizeof d->right, ", 0)");
            return ok;
        }
        append(d->right, sizeof d->right, "relu(");
        if (!draft_elementwise(g, d, depth - 1)) {
            return false;
        }
        append(d->right, sizeof d->right, ")");
        return true;
    default: {
        append(d->right, sizeof d->right, chance(g, 50) ? "relu(" : "abs(");
        bool ok = draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ")");
        return ok;
    }
    }
}

/* Wraps the expression so that the indices which are not kept are reduced by name. */
void reduce_by_name(Gen *g, Draft *d, const bool *in_output, double count)
{
    bool real = !dtype_is_complex(d->dtype);
    const char *op = d->dtype == DTYPE_BOOL  ? (chance(g, 50) ? "any" : "all")
                     : real && chance(g, 40) ? (chance(g, 50) ? "min" : "max")
                                             : "sum";
    char list[64] = "", wrapped[400];
    uint32_t n = 0;
    for (uint32_t k = 0; k < d->labels.n; k++) {
        if (!in_output[k] && d->labels.used[k] > 0 && !d->labels.inner[k]) {
            append(list, sizeof list, "%s%c", n++ == 0 ? "" : ",", letters[k]);
        }
    }
    if (n == 0) {
        return;
    }
    for (uint32_t k = 0; k < d->labels.n && !g->device && strcmp(op, "sum") == 0; k++) {
        if (in_output[k] && d->labels.used[k] > 0 && chance(g, 12)) { /* restricted */
            append(list, sizeof list, ",%c %s %c", list[0], chance(g, 50) ? "<=" : ">",
                   letters[k]);
            break;
        }
    }
    (void)snprintf(wrapped, sizeof wrapped, "%s[%s](%.300s)", op, list, d->right);
    (void)snprintf(d->right, sizeof d->right, "%s", wrapped);
    d->bound *= strcmp(op, "sum") == 0 ? count : 1;
}

/* The extents -inf of an empty max would not be integers: such programs are not made. */
bool empty_extremum(const Gen *g, const Draft *d, const bool *in_output)
{
    bool extremum = strncmp(d->right, "min[", 4) == 0 || strncmp(d->right, "max[", 4) == 0;
    for (uint32_t k = 0; extremum && k < d->labels.n; k++) {
        if (!in_output[k] && d->labels.used[k] > 0 &&
            g->p->dims[d->labels.dim[k]].extent == 0) {
            return true;
        }
    }
    return false;
}
