/* SPDX-License-Identifier: Apache-2.0 */
/* The generator. Boundary extents are favoured (0, 1, a tile, a tile and one), as are shared and transposed uses, since
 * that is where compilers of loops go wrong. */
#include "draft.h"

#include <stdio.h>
#include <string.h>

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
        if (d == 0 && chance(g, 4)) { /* a long sum */
            g->p->dims[d].extent = 1000 + below(g, 20000);
        }
        /* an empty dim makes a program trivial: one in a few programs */
        if (g->p->dims[d].extent == 0 && chance(g, 70)) {
            g->p->dims[d].extent = 6;
        }
        g->p->dims[d].open = chance(g, 50);
    }
}

/* No tensor of gigabytes. */
static void keep_small(Gen *g, RandomTensor *r)
{
    double size = 1;
    for (uint32_t d = 0; d < r->rank; d++) {
        size *= (double)g->p->dims[r->dim[d]].extent;
        r->rank = size > g->points ? d : r->rank;
    }
}

/* Of two axes, which then are of one dim, or of two with two others. What calls kernels of the device knows nothing of it. */
static void declare_symmetry(Gen *g, RandomTensor *r)
{
    if (g->device || r->rank < 2 || !chance(g, 25)) {
        return;
    }
    r->pair[0] = below(g, r->rank - 1);
    r->pair[1] = r->pair[0] + 1 + below(g, r->rank - 1 - r->pair[0]);
    r->dim[r->pair[1]] = r->dim[r->pair[0]];
    r->sign = r->dtype != DTYPE_BOOL && chance(g, 40) ? -1 : 1;
    r->conj = dtype_is_complex(r->dtype) && chance(g, 50);
    if (r->rank >= 4 && chance(g, 60)) {
        uint32_t n = 0;
        for (uint32_t d = 0; d < r->rank && n < 2; d++) {
            if (d != r->pair[0] && d != r->pair[1]) {
                r->with[n++] = d;
            }
        }
        r->dim[r->with[1]] = r->dim[r->with[0]];
    }
}

/* Are all axes there that are exchanged? */
static bool has_axes(const RandomTensor *r)
{
    return r->rank > r->pair[1] && r->rank > r->with[1];
}

static void make_params(Gen *g)
{
    uint32_t n = 1 + below(g, 4);
    char letter = chance(g, 90) ? 'A' : chance(g, 50) ? 'y' : 'j'; /* y0, j1: of libm */
    for (uint32_t k = 0; k < n; k++) {
        RandomTensor *r = new_tensor(g, chance(g, 12) ? TENSOR_SCALAR : TENSOR_IN, letter,
                                     k > 0 && chance(g, 30) ? g->other : g->dtype);
        r->rank = r->kind == TENSOR_SCALAR ? 0 : 1 + below(g, MAX_RANK);
        bool alike = k > 0 && r->rank > 0 && r[-1].rank > 0 && chance(g, 35);
        r->rank =
            alike ? r[-1].rank : r->rank; /* another of the one before: B and C in A B + A C */
        for (uint32_t d = 0; d < r->rank; d++) {
            bool repeat = d > 0 && chance(g, 20);
            r->dim[d] = alike ? r[-1].dim[d] : repeat ? r->dim[d - 1] : below(g, g->p->n_dims);
        }
        declare_symmetry(g, r);
        keep_small(g, r);
        r->sign = has_axes(r) ? r->sign : 0;
        r->defined = true;
    }
    if (chance(g, 35)) {
        RandomTensor *r = new_tensor(g, TENSOR_INOUT, 'C', g->dtype);
        r->rank = 1 + below(g, 3);
        for (uint32_t d = 0; d < r->rank; d++) {
            r->dim[d] = d > 0 && chance(g, 40) ? r->dim[d - 1] : below(g, g->p->n_dims);
        }
        keep_small(g, r);
        r->defined = true;
    }
}

static void put_left(const Draft *d, const RandomTensor *t, uint32_t n, const uint32_t *out,
                     const char *assign, RandomStatement *s)
{
    bool typed = t->typed && strcmp(assign, "=") == 0;
    append(s->text, sizeof s->text, "%s%s%s", t->name, typed ? ": " : "",
           typed ? dtype_name(t->dtype) : "");
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

/* Text, labels and bound of a right side, and which labels its left side has. */
static bool make_draft(Gen *g, Draft *d, uint32_t *out, uint32_t *n_out, bool *in_output)
{
    uint32_t kind = below(g, 100);
    bool follow = g->chain ? kind < 90 : kind < 45;
    bool product = kind < 70, sum = !follow && kind >= 70 && kind < 77;
    bool square = chance(g, 8), pairs = !square && chance(g, 12);
    follow = follow && !square && !pairs;
    product = !pairs && (square || product);
    sum = sum && !square && !pairs;
    d->dtype = follow && chance(g, 20) ? g->other : g->dtype;
    if (square    ? !draft_square(g, d, out, n_out, in_output)
        : pairs   ? !draft_pairs(g, d)
        : follow  ? !draft_follow(g, d, &product)
        : sum     ? !draft_sum(g, d, out, n_out, in_output)
        : product ? !draft_product(g, d)
                  : !draft_elementwise(g, d, 1 + below(g, 3))) {
        return false;
    }
    if (!sum && !square) {
        uint32_t kept = pairs && chance(g, 50) ? 0 : product ? 60 : 80;
        *n_out = choose_output(g, &d->labels, kept, out, in_output);
    }
    double count = label_count(g, &d->labels, in_output);
    if (label_count(g, &d->labels, (bool[MAX_LABELS]){false}) > g->points) {
        return false;
    }
    if (product) {
        d->bound *= count;
    } else if (!sum) {
        reduce_by_name(g, d, in_output, count);
    }
    return d->bound <= exact_limit(d->dtype) / 4 && d->bound <= 1e15 &&
           !empty_extremum(g, d, in_output);
}

/* An update, with '+=', '-=' or the one '=', of a tensor that has just these dims; is there
 * one? */
static bool make_update(Gen *g, const Draft *d, uint32_t n, const uint32_t *out,
                        RandomStatement *s)
{
    for (uint32_t k = 0; k < g->p->n_tensors; k++) {
        RandomTensor *t = &g->p->tensors[k];
        bool own = t->kind == TENSOR_LOCAL || t->kind == TENSOR_RESULT;
        bool fits = (t->kind == TENSOR_INOUT || (own && chance(g, 30))) && t->defined &&
                    t->rank == n && t->dtype == d->dtype && !d->einsum;
        for (uint32_t e = 0; fits && e < n; e++) {
            fits = t->dim[e] == d->labels.dim[out[e]];
        }
        if (fits && t->bound + d->bound < exact_limit(d->dtype) / 4 && d->dtype != DTYPE_BOOL) {
            bool assigned = own; /* '=' gives a value once */
            for (uint32_t e = 0; e < g->p->n_statements; e++) {
                assigned |= g->p->statements[e].target == k && g->p->statements[e].assigns;
            }
            s->assigns = !assigned && chance(g, 30);
            s->target = k;
            s->reads |= s->assigns ? 0 : 1u << k;
            put_left(d, t, n, out, s->assigns ? "=" : chance(g, 65) ? "+=" : "-=", s);
            t->bound += d->bound;
            return true;
        }
    }
    return false;
}

static DType wider(Gen *g, DType t)
{
    DType list[DTYPE_COUNT];
    uint32_t n = 0;
    for (DType to = DTYPE_F64; to < DTYPE_COUNT; to++) {
        if (dtype_widens(t, to)) {
            list[n++] = to;
        }
    }
    return list[below(g, n)];
}

/* A number behind the right side that the operands' type does not hold, and the type does in which the statement
 * computes: one that a wider result takes, or one that is divided out again before a 16-bit value is rounded. */
static void number_last(Gen *g, Draft *d, DType to)
{
    double number = d->dtype == DTYPE_BF16  ? 257
                    : d->dtype == DTYPE_F16 ? 4097
                    : d->dtype == DTYPE_I32 ? 3000000001.0
                                            : 16777217;
    bool half = dtype_is_half(d->dtype), wide = to != d->dtype;
    bool exact = d->bound * number < exact_limit(half && !wide ? DTYPE_F32 : to) / 4;
    if (d->einsum || dtype_is_complex(to) || d->dtype == DTYPE_I64 || !exact ||
        !(half || wide) || d->dtype == DTYPE_BOOL || !chance(g, 40)) {
        return;
    }
    if (wide) {
        append(d->right, sizeof d->right, " * %.0f", number);
        d->bound *= number;
    } else { /* by a power of two, whose reciprocal a device has exactly */
        append(d->right, sizeof d->right, " * 4096 / 4096");
    }
}

/* A bound that is none: infinite constants, of which a value comes through as it is. */
static void infinity_around(Gen *g, Draft *d)
{
    char inner[sizeof d->right];
    if (d->einsum || !dtype_is_float(d->dtype) || !chance(g, 25) ||
        strncmp(d->right, "max(min(", 8) != 0 || strlen(d->right) + 20 > sizeof inner) {
        return;
    }
    memcpy(inner, d->right, strlen(d->right) + 1);
    bool above = chance(g, 50);
    d->right[0] = '\0';
    append(d->right, sizeof d->right, above ? "min(%s, 1.0/0.0)" : "max(-1.0/0.0, %s)", inner);
}

static bool make_statement(Gen *g)
{
    Draft d = {.dtype = g->dtype};
    uint32_t out[MAX_LABELS], n = 0;
    bool in_output[MAX_LABELS] = {false};
    if (!make_draft(g, &d, out, &n, in_output)) {
        return false;
    }
    RandomStatement *s = &g->p->statements[g->p->n_statements];
    *s = (RandomStatement){.reads = d.reads};
    if (make_update(g, &d, n, out, s)) {
        g->p->n_statements++;
        return true;
    }
    TensorKind kind = chance(g, g->chain ? 15 : 35) ? TENSOR_RESULT : TENSOR_LOCAL;
    bool typed = kind == TENSOR_LOCAL && d.dtype != DTYPE_BOOL && chance(g, 15);
    bool wide = (typed || kind == TENSOR_RESULT) && !g->device && chance(g, typed ? 60 : 20);
    DType type = wide ? wider(g, d.dtype) : d.dtype;
    number_last(g, &d, type);
    infinity_around(g, &d);
    RandomTensor *t = new_tensor(g, kind, 'T', type);
    t->typed = typed;
    t->rank = n;
    t->bound = d.bound;
    t->defined = true;
    for (uint32_t k = 0; k < n; k++) {
        t->dim[k] = d.labels.dim[out[k]];
    }
    s->target = g->p->n_tensors - 1;
    s->assigns = true;
    put_left(&d, t, n, out, "=", s);
    g->p->n_statements++;
    return true;
}

/* Takes the type out of the text that declares a local: a result has its type from the head. */
static void untype(RandomProgram *p, uint32_t tensor)
{
    for (uint32_t k = 0; k < p->n_statements && p->tensors[tensor].typed; k++) {
        RandomStatement *s = &p->statements[k];
        char *colon = s->target == tensor ? strchr(s->text, ':') : NULL;
        if (colon != NULL) {
            const char *rest =
                colon + strlen(": ") + strlen(dtype_name(p->tensors[tensor].dtype));
            memmove(colon, rest, strlen(rest) + 1);
        }
    }
    p->tensors[tensor].typed = false;
}

/* Locals whose last value nothing reads become results, so that no statement is dead. */
static void deliver(RandomProgram *p)
{
    uint32_t due = 0;
    for (uint32_t k = 0; k < p->n_statements; k++) {
        const RandomStatement *s = &p->statements[k];
        due = s->dropped ? due : (due & ~s->reads) | 1u << s->target;
    }
    for (uint32_t k = 0; k < p->n_tensors; k++) {
        RandomTensor *t = &p->tensors[k];
        if (t->kind == TENSOR_LOCAL && (due >> k & 1) != 0) {
            t->kind = TENSOR_RESULT;
            untype(p, k);
        }
    }
}

/* Every eighth kernel is called like something of libc; names differ within a batch. */
static void name_kernel(RandomProgram *p)
{
    static const char *const names[] = {
        "error",  "step",  "times", "environ", "index", "read",   "write",  "signal", "tdsl",
        "printf", "floor", "round", "select",  "time",  "double", "stdout", "malloc", "pause"};
    uint64_t n = sizeof names / sizeof names[0];
    if (p->seed % 8 == 0) {
        (void)snprintf(p->name, sizeof p->name, "%s", names[p->seed / 8 % n]);
    } else {
        (void)snprintf(p->name, sizeof p->name, "p%llu", (unsigned long long)p->seed);
    }
}

static void make_program(Gen *g)
{
    RandomProgram *p = g->p;
    name_kernel(p);
    make_dims(g);
    make_params(g);
    uint32_t want = g->chain ? 4 + below(g, MAX_STATEMENTS - 3) : 1 + below(g, 6);
    for (uint32_t attempt = 0; attempt < 60 && p->n_statements < want; attempt++) {
        uint32_t known = p->n_tensors;
        if (known + 2 < MAX_TENSORS && !make_statement(g)) {
            p->n_tensors = known; /* the parameters it wanted */
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

/* Casts of casts between all types, of numbers that lie between those of a type. */
static void make_casts(Gen *g)
{
    RandomProgram *p = g->p;
    (void)snprintf(p->name, sizeof p->name, "p%llu", (unsigned long long)p->seed);
    p->between = true;
    p->n_dims = 1;
    p->dims[0] = (RandomDim){.extent = 97 + (int64_t)below(g, 64), .open = chance(g, 50)};
    uint32_t n_params = 2 + below(g, 3);
    for (uint32_t k = 0; k < n_params; k++) {
        RandomTensor *r =
            new_tensor(g, TENSOR_IN, 'A', (DType)(DTYPE_F64 + below(g, DTYPE_COUNT - 1)));
        r->rank = 1;
        r->defined = true;
    }
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t from = below(g, n_params), casts = 1 + below(g, 3);
        DType t = p->tensors[from].dtype;
        char text[200];
        (void)snprintf(text, sizeof text, "%s[i]", p->tensors[from].name);
        for (uint32_t c = 0; c < casts; c++) {
            char inner[200];
            bool complex = dtype_is_complex(t); /* which no real type takes */
            t = complex ? (DType)(DTYPE_C64 + below(g, 2))
                        : (DType)(DTYPE_F64 + below(g, DTYPE_COUNT - 1));
            memcpy(inner, text, sizeof inner);
            (void)snprintf(text, sizeof text, "%s(%.150s)", dtype_name(t), inner);
        }
        RandomTensor *r = new_tensor(g, TENSOR_RESULT, 'T', t);
        r->rank = 1;
        RandomStatement *s = &p->statements[p->n_statements++];
        *s =
            (RandomStatement){.target = p->n_tensors - 1, .reads = 1u << from, .assigns = true};
        append(s->text, sizeof s->text, "%s[i] = %s;", r->name, text);
    }
}

void random_program(RandomProgram *p, uint64_t seed)
{
    static const DType types[] = {DTYPE_F64,  DTYPE_F64, DTYPE_F32,  DTYPE_F32,
                                  DTYPE_I32,  DTYPE_I64, DTYPE_BOOL, DTYPE_C64,
                                  DTYPE_C128, DTYPE_F16, DTYPE_BF16};
    *p = (RandomProgram){.seed = seed};
    Gen g = {.rng = {hash_mix(seed, 0x7d51)}, .p = p, .points = 1e5};
    g.dtype = types[below(&g, sizeof types / sizeof types[0])];
    g.other = chance(&g, 50) ? types[below(&g, sizeof types / sizeof types[0])] : g.dtype;
    g.chain = chance(&g, 45);
    if (chance(&g, 3)) {
        make_casts(&g);
    } else {
        make_program(&g);
    }
}

void random_program_device(RandomProgram *p, uint64_t seed)
{
    static const DType types[] = {DTYPE_F32, DTYPE_F32, DTYPE_F32,
                                  DTYPE_C64, DTYPE_F16, DTYPE_BF16};
    *p = (RandomProgram){.seed = seed};
    Gen g = {.rng = {hash_mix(seed, 0x6e6b)}, .p = p, .device = true, .points = 1e6};
    g.dtype = g.other = types[below(&g, sizeof types / sizeof types[0])];
    g.chain = chance(&g, 45);
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
        if (t->kind <= TENSOR_SCALAR && !t->dropped) {
            text_printf(out, "%s%s: %s", first ? "" : ", ", t->name,
                        t->kind == TENSOR_INOUT ? "inout " : "");
            print_type(p, t, out);
            if (t->sign != 0) {
                bool groups = t->with[0] != t->with[1];
                text_printf(out, " %s%s(", t->sign < 0 ? "anti" : "",
                            t->conj ? "hermitian" : "symmetric");
                if (groups) {
                    text_printf(out, "(%u, %u), (%u, %u))", t->pair[0], t->with[0], t->pair[1],
                                t->with[1]);
                } else {
                    text_printf(out, "%u, %u)", t->pair[0], t->pair[1]);
                }
            }
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
    deliver(p);
    return left > 0;
}

bool random_program_drop_param(RandomProgram *p, uint32_t k)
{
    bool read = p->tensors[k].kind > TENSOR_SCALAR || p->tensors[k].dropped;
    for (uint32_t s = 0; s < p->n_statements && !read; s++) {
        const RandomStatement *x = &p->statements[s];
        read = !x->dropped && ((x->reads >> k & 1) != 0 || x->target == k);
    }
    p->tensors[k].dropped |= !read;
    return !read;
}
