/* SPDX-License-Identifier: Apache-2.0 */
/* The generator. Boundary extents are favoured (0, 1, a tile, a tile and one), as are shared
 * and transposed uses, since that is where compilers of loops go wrong. */
#include "generate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct Gen {
    Rng rng;
    RandomProgram *p;
    DType dtype; /* of most tensors */
    bool device;
    double points; /* of a statement, at most: the interpreter visits every combination */
} Gen;

static uint32_t below(Gen *g, uint32_t n)
{
    return (uint32_t)rng_below(&g->rng, n);
}

static bool chance(Gen *g, uint32_t percent)
{
    return below(g, 100) < percent;
}

/* The largest integer up to which all are exact. */
static double exact_limit(DType t)
{
    return t == DTYPE_F32 || t == DTYPE_C64    ? 0x1p24
           : t == DTYPE_F64 || t == DTYPE_C128 ? 0x1p53
           : t == DTYPE_F16                    ? 0x1p11
           : t == DTYPE_BF16                   ? 0x1p8
                                               : 1e300;
}

PRINTF_LIKE(3, 4)
static void append(char *to, size_t room, const char *format, ...)
{
    size_t n = strlen(to);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(to + n, n < room ? room - n : 0, format, args);
    va_end(args);
}

static void make_dims(Gen *g)
{
    static const int64_t extents[] = {0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17};
    static const int64_t tiles[] = {1,  2,  3,  4,  5,   7,   16,  17,  31,  32,  33,
                                    63, 64, 65, 96, 127, 128, 129, 160, 257, 512, 513};
    g->p->n_dims = 2 + below(g, MAX_DIMS - 1);
    for (uint32_t d = 0; g->device && d < g->p->n_dims; d++) {
        uint32_t n = sizeof tiles / sizeof tiles[0];
        g->p->dims[d].extent = tiles[below(g, chance(g, 40) ? 8 : n)];
    }
    for (uint32_t d = 0; !g->device && d < g->p->n_dims; d++) {
        g->p->dims[d].extent = extents[below(g, sizeof extents / sizeof extents[0])];
        /* an empty dim makes a program trivial: one in a few programs */
        if (g->p->dims[d].extent == 0 && chance(g, 70)) {
            g->p->dims[d].extent = 6;
        }
        g->p->dims[d].open = chance(g, 50);
    }
}

static RandomTensor *new_tensor(Gen *g, TensorKind kind, char letter, DType t)
{
    RandomTensor *r = &g->p->tensors[g->p->n_tensors];
    *r = (RandomTensor){.kind = kind,
                        .dtype = t,
                        .bound = t == DTYPE_BOOL || t == DTYPE_F16 || t == DTYPE_BF16 ? 1 : 3};
    (void)snprintf(r->name, sizeof r->name, "%c%u", letter, g->p->n_tensors++);
    return r;
}

/* A device's program is emulated: no tensor of gigabytes. */
static void keep_small(Gen *g, RandomTensor *r)
{
    double size = 1;
    for (uint32_t d = 0; g->device && d < r->rank; d++) {
        size *= (double)g->p->dims[r->dim[d]].extent;
        r->rank = size > g->points ? d : r->rank;
    }
}

static void make_params(Gen *g)
{
    uint32_t n = 1 + below(g, 4);
    for (uint32_t k = 0; k < n; k++) {
        RandomTensor *r =
            new_tensor(g, chance(g, 12) ? TENSOR_SCALAR : TENSOR_IN, 'A', g->dtype);
        r->rank = r->kind == TENSOR_SCALAR ? 0 : 1 + below(g, MAX_RANK);
        bool alike = k > 0 && r->rank > 0 && r[-1].rank > 0 && chance(g, 35);
        r->rank =
            alike ? r[-1].rank : r->rank; /* another of the one before: B and C in A B + A C */
        for (uint32_t d = 0; d < r->rank; d++) {
            bool repeat = d > 0 && chance(g, 20);
            r->dim[d] = alike ? r[-1].dim[d] : repeat ? r->dim[d - 1] : below(g, g->p->n_dims);
        }
        keep_small(g, r);
        r->defined = true;
    }
    if (chance(g, 25)) {
        RandomTensor *r = new_tensor(g, TENSOR_INOUT, 'C', g->dtype);
        r->rank = 1 + below(g, 3);
        for (uint32_t d = 0; d < r->rank; d++) {
            r->dim[d] = d > 0 && chance(g, 40) ? r->dim[d - 1] : below(g, g->p->n_dims);
        }
        keep_small(g, r);
        r->defined = true;
    }
}

/* ---- indices of one statement: a letter each, bound to a dim ---- */

typedef struct Labels {
    uint32_t n;
    uint32_t dim[12];
    uint32_t used[12]; /* times, on the right */
} Labels;

static int32_t label_for(Gen *g, Labels *l, uint32_t dim)
{
    uint32_t same[12], n = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        if (l->dim[k] == dim) {
            same[n++] = k;
        }
    }
    if (n > 0 && (chance(g, 70) || l->n == 12)) {
        return (int32_t)same[below(g, n)];
    }
    if (l->n == 12) {
        return -1;
    }
    l->dim[l->n] = dim;
    l->used[l->n] = 0;
    return (int32_t)l->n++;
}

static const char letters[] = "ijklmnpqrstu";

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
        l->used[label]++;
        append(to, room, "%s%c", d == 0 ? "[" : ",", letters[label]);
        append(terms, 64, "%c", letters[label]);
    }
    append(to, room, "]");
    return true;
}

static RandomTensor *pick(Gen *g, DType t)
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

static double label_count(const Gen *g, const Labels *l, const bool *in_output)
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
static uint32_t choose_output(Gen *g, const Labels *l, uint32_t keep_percent, uint32_t *out,
                              bool *in_output)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        in_output[k] = l->used[k] > 0 && n < MAX_RANK && chance(g, keep_percent);
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

typedef struct Draft {
    char right[400];
    Labels labels;
    uint32_t reads;
    double bound;
    DType dtype;
    bool all_in_output; /* elementwise: nothing may be summed */
    bool einsum;
    char terms[3][64];
    uint32_t n_terms;
} Draft;

static void note_read(Gen *g, Draft *d, const RandomTensor *r)
{
    d->reads |= 1u << (uint32_t)(r - g->p->tensors);
}

/* A product of one to three tensors, as an einsum string or in index notation. */
static bool draft_product(Gen *g, Draft *d)
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
        if (label == 12) {
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
static bool draft_sum(Gen *g, Draft *d, uint32_t *out, uint32_t *n_out, bool *in_output)
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
static bool draft_elementwise(Gen *g, Draft *d, uint32_t depth)
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
    default: {
        append(d->right, sizeof d->right, chance(g, 50) ? "relu(" : "abs(");
        bool ok = draft_elementwise(g, d, depth - 1);
        append(d->right, sizeof d->right, ")");
        return ok;
    }
    }
}

/* Wraps the expression so that the indices which are not kept are reduced by name. */
static void reduce_by_name(Gen *g, Draft *d, const bool *in_output, double count)
{
    bool real = !dtype_is_complex(d->dtype);
    const char *op = d->dtype == DTYPE_BOOL  ? (chance(g, 50) ? "any" : "all")
                     : real && chance(g, 40) ? (chance(g, 50) ? "min" : "max")
                                             : "sum";
    char list[64] = "", wrapped[400];
    uint32_t n = 0;
    for (uint32_t k = 0; k < d->labels.n; k++) {
        if (!in_output[k] && d->labels.used[k] > 0) {
            append(list, sizeof list, "%s%c", n++ == 0 ? "" : ",", letters[k]);
        }
    }
    if (n == 0) {
        return;
    }
    (void)snprintf(wrapped, sizeof wrapped, "%s[%s](%.300s)", op, list, d->right);
    (void)snprintf(d->right, sizeof d->right, "%s", wrapped);
    d->bound *= strcmp(op, "sum") == 0 ? count : 1;
}

/* The extents -inf of an empty max would not be integers: such programs are not made. */
static bool empty_extremum(const Gen *g, const Draft *d, const bool *in_output)
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

static void put_left(const Draft *d, const RandomTensor *t, uint32_t n, const uint32_t *out,
                     const char *assign, RandomStatement *s)
{
    append(s->text, sizeof s->text, "%s", t->name);
    if (!d->einsum) {
        for (uint32_t k = 0; k < n; k++) {
            append(s->text, sizeof s->text, "%s%c", k == 0 ? "[" : ",", letters[out[k]]);
        }
        append(s->text, sizeof s->text, "%s", n > 0 ? "]" : "");
        append(s->text, sizeof s->text, " %s %s;", assign, d->right);
        return;
    }
    append(s->text, sizeof s->text, " %s einsum(\"", assign);
    for (uint32_t k = 0; k < d->n_terms; k++) {
        append(s->text, sizeof s->text, "%s%s", k == 0 ? "" : ",", d->terms[k]);
    }
    append(s->text, sizeof s->text, "->");
    for (uint32_t k = 0; k < n; k++) {
        append(s->text, sizeof s->text, "%c", letters[out[k]]);
    }
    append(s->text, sizeof s->text, "\", %s);", d->right);
}

static bool make_statement(Gen *g)
{
    Draft d = {.dtype = g->dtype};
    uint32_t out[12], n = 0;
    bool in_output[12] = {false};
    uint32_t kind = below(g, 100);
    bool product = kind < 50, sum = kind >= 50 && kind < 60;
    if (product ? !draft_product(g, &d)
        : sum   ? !draft_sum(g, &d, out, &n, in_output)
                : !draft_elementwise(g, &d, 1 + below(g, 3))) {
        return false;
    }
    if (!sum) {
        n = choose_output(g, &d.labels, product ? 60 : 80, out, in_output);
    }
    double count = label_count(g, &d.labels, in_output);
    if (label_count(g, &d.labels, (bool[12]){false}) > g->points) {
        return false;
    }
    if (product) {
        d.bound *= count;
    } else if (!sum) {
        reduce_by_name(g, &d, in_output, count);
    }
    if (d.bound > exact_limit(d.dtype) / 4 || d.bound > 1e15 ||
        empty_extremum(g, &d, in_output)) {
        return false;
    }
    RandomStatement *s = &g->p->statements[g->p->n_statements];
    *s = (RandomStatement){.reads = d.reads};
    /* An update of a tensor that has just these dims? */
    for (uint32_t k = 0; k < g->p->n_tensors; k++) {
        RandomTensor *t = &g->p->tensors[k];
        bool fits = t->kind == TENSOR_INOUT && t->rank == n && t->dtype == d.dtype && !d.einsum;
        for (uint32_t e = 0; fits && e < n; e++) {
            fits = t->dim[e] == d.labels.dim[out[e]];
        }
        if (fits && t->bound + d.bound < exact_limit(d.dtype) / 4 && d.dtype != DTYPE_BOOL) {
            bool first = true; /* '=' gives a value once */
            for (uint32_t e = 0; e < g->p->n_statements; e++) {
                first = first && g->p->statements[e].target != k;
            }
            s->target = k;
            put_left(&d, t, n, out, !first || chance(g, 70) ? "+=" : "=", s);
            t->bound += d.bound;
            g->p->n_statements++;
            return true;
        }
    }
    RandomTensor *t = new_tensor(g, chance(g, 35) ? TENSOR_RESULT : TENSOR_LOCAL, 'T', d.dtype);
    t->rank = n;
    t->bound = d.bound;
    t->defined = true;
    for (uint32_t k = 0; k < n; k++) {
        t->dim[k] = d.labels.dim[out[k]];
    }
    s->target = g->p->n_tensors - 1;
    put_left(&d, t, n, out, "=", s);
    g->p->n_statements++;
    return true;
}

/* Locals that nothing reads become results, so that no statement is dead. */
static void deliver(RandomProgram *p)
{
    uint32_t read = 0;
    for (uint32_t k = 0; k < p->n_statements; k++) {
        read |= p->statements[k].dropped ? 0 : p->statements[k].reads;
    }
    for (uint32_t k = 0; k < p->n_tensors; k++) {
        RandomTensor *t = &p->tensors[k];
        if (t->kind == TENSOR_LOCAL && (read >> k & 1) == 0) {
            t->kind = TENSOR_RESULT;
        }
    }
}

static void make_program(Gen *g)
{
    RandomProgram *p = g->p;
    (void)snprintf(p->name, sizeof p->name, "p%llu", (unsigned long long)p->seed);
    make_dims(g);
    make_params(g);
    uint32_t want = 1 + below(g, 5);
    for (uint32_t attempt = 0; attempt < 40 && p->n_statements < want; attempt++) {
        if (p->n_tensors + 2 < MAX_TENSORS) {
            (void)make_statement(g);
        }
    }
    if (p->n_statements == 0) {
        /* at least a copy of the first parameter */
        RandomTensor *t = new_tensor(g, TENSOR_RESULT, 'T', g->dtype);
        const RandomTensor *a = &p->tensors[0];
        t->rank = a->rank;
        memcpy(t->dim, a->dim, sizeof t->dim);
        RandomStatement *s = &p->statements[p->n_statements++];
        *s = (RandomStatement){.target = p->n_tensors - 1, .reads = 1};
        append(s->text, sizeof s->text, "%s = %s;", t->name, a->name);
    }
    deliver(p);
}

void random_program(RandomProgram *p, uint64_t seed)
{
    static const DType types[] = {DTYPE_F64, DTYPE_F64,  DTYPE_F32, DTYPE_F32, DTYPE_I32,
                                  DTYPE_I64, DTYPE_BOOL, DTYPE_C64, DTYPE_C128};
    *p = (RandomProgram){.seed = seed};
    Gen g = {.rng = {hash_mix(seed, 0x7d51)}, .p = p, .points = 1e5};
    g.dtype = types[below(&g, sizeof types / sizeof types[0])];
    make_program(&g);
}

void random_program_device(RandomProgram *p, uint64_t seed)
{
    static const DType types[] = {DTYPE_F32, DTYPE_F32, DTYPE_F32,
                                  DTYPE_C64, DTYPE_F16, DTYPE_BF16};
    *p = (RandomProgram){.seed = seed};
    Gen g = {.rng = {hash_mix(seed, 0x6e6b)}, .p = p, .device = true, .points = 1e6};
    g.dtype = types[below(&g, sizeof types / sizeof types[0])];
    make_program(&g);
}

static void print_type(const RandomProgram *p, const RandomTensor *t, Text *out)
{
    text_put(out, dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++) {
        const RandomDim *dim = &p->dims[t->dim[d]];
        text_put(out, d == 0 ? "[" : ", ");
        if (dim->open) {
            text_printf(out, "%s_d%u", p->name, t->dim[d]);
        } else {
            text_i64(out, dim->extent);
        }
    }
    text_put(out, t->rank > 0 ? "]" : "");
}

void random_program_print(const RandomProgram *p, Text *out)
{
    text_printf(out, "kernel %s(", p->name);
    bool first = true;
    for (uint32_t k = 0; k < p->n_tensors; k++) {
        const RandomTensor *t = &p->tensors[k];
        if (t->kind <= TENSOR_SCALAR) {
            text_printf(out, "%s%s: %s", first ? "" : ", ", t->name,
                        t->kind == TENSOR_INOUT ? "inout " : "");
            print_type(p, t, out);
            first = false;
        }
    }
    text_put(out, ")");
    first = true;
    for (uint32_t k = 0; k < p->n_tensors; k++) {
        const RandomTensor *t = &p->tensors[k];
        if (t->kind == TENSOR_RESULT) {
            text_printf(out, "%s%s: ", first ? " -> (" : ", ", t->name);
            print_type(p, t, out);
            first = false;
        }
    }
    text_put(out, first ? " {\n" : ") {\n");
    for (uint32_t k = 0; k < p->n_statements; k++) {
        if (!p->statements[k].dropped) {
            text_printf(out, "    %s\n", p->statements[k].text);
        }
    }
    text_put(out, "}\n");
}

bool random_program_drop(RandomProgram *p, uint32_t k)
{
    uint32_t left = 0;
    if (p->statements[k].dropped) {
        return false;
    }
    p->statements[k].dropped = true;
    /* what is no longer defined takes its readers along */
    for (uint32_t s = 0; s < p->n_statements; s++) {
        uint32_t defined = 0;
        for (uint32_t t = 0; t < p->n_tensors; t++) {
            defined |= p->tensors[t].kind <= TENSOR_SCALAR ? 1u << t : 0;
        }
        for (uint32_t e = 0; e < s; e++) {
            defined |= p->statements[e].dropped ? 0 : 1u << p->statements[e].target;
        }
        p->statements[s].dropped |= (p->statements[s].reads & ~defined) != 0;
        left += p->statements[s].dropped ? 0 : 1;
    }
    for (uint32_t t = 0; t < p->n_tensors; t++) {
        bool made = p->tensors[t].kind <= TENSOR_SCALAR;
        for (uint32_t s = 0; s < p->n_statements; s++) {
            made |= !p->statements[s].dropped && p->statements[s].target == t;
        }
        if (!made) {
            p->tensors[t].kind = TENSOR_LOCAL;
            p->tensors[t].defined = false;
        }
    }
    return left > 0;
}
