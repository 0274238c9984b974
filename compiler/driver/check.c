/* SPDX-License-Identifier: Apache-2.0 */
/* --check-each: the program is run on small integers after every pass, by the interpreter of
 * the stage, and compared with what it gave at first. Integers that the element types hold are
 * exact in every order, so the comparison is bit for bit where the size of every value is
 * bounded so (by smaller integers, if that takes it); else, and where the program divides or
 * calls a function of libm, by a bound relative to the largest element. Open dims take small
 * sizes that differ, so that swapped indices show. */
#include <math.h>

#include "driver/compile.h"
#include "graph/eval.h"

/* The largest extent an open dim is given, and the elements a program may have to be checked. */
#define CHECK_EXTENT   5
#define CHECK_ELEMENTS ((int64_t)1 << 22)

typedef struct KernelTrial {
    int64_t *dims;
    Tensor **args;
    Tensor **results;
    int64_t most; /* arguments are 1 .. most, or -1 and 1 when it is 1 */
    bool exact;
    bool skipped;  /* too large to interpret, or nothing can be said of its results */
    double *scale; /* [results] no value is larger; 1 where nothing is known */
} KernelTrial;

typedef struct Checker {
    KernelTrial *kernels;
} Checker;

/* Is every value an integer, of a program that is run on integers? */
static bool is_whole(const Graph *g)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        OpRule rule = op_info(node->op)->rule;
        bool real = !dtype_is_int(node->dtype) && node->dtype != DTYPE_BOOL;
        if (rule == RULE_FLOAT || rule == RULE_RFLOAT || (real && node->op == OP_DIV)) {
            return false;
        }
        if (node->op == OP_CONST && real && node->value.re != floor(node->value.re)) {
            return false;
        }
    }
    return true;
}

/* Integers up to here are exact; those of integer types wrap around alike in every order. */
static double exact_limit(DType t)
{
    return t == DTYPE_F64 || t == DTYPE_C128  ? 0x1p53
           : t == DTYPE_F32 || t == DTYPE_C64 ? 0x1p24
           : t == DTYPE_F16                   ? 0x1p11
           : t == DTYPE_BF16                  ? 0x1p8
                                              : INFINITY;
}

/* How many elements of its operands an element of a node is made of. */
static double terms_of(const Node *node, const int64_t *dims)
{
    double count = 1;
    for (uint32_t l = 0; l < node->n_labels; l++) {
        bool kept = false;
        for (uint32_t d = 0; d < node->rank; d++) {
            kept |= node->out[d] == (int32_t)l;
        }
        Dim extent = node->extent[l];
        int64_t n = extent.sym < 0 ? extent.n : dims[extent.sym];
        count *= kept || n == 0 ? 1 : (double)n;
    }
    return count;
}

/* No value of a node is larger, when those of its operands are as `of` says. */
static double node_magnitude(const Node *node, const int64_t *dims, const double *of,
                             int64_t most)
{
    bool whole = dtype_is_int(node->dtype) || node->dtype == DTYPE_BOOL;
    double sum = 0, product = 1, largest = 0, terms = terms_of(node, dims);
    for (uint32_t k = 0; k < node->n_operands; k++) {
        double m = of[node->operand[k]];
        sum += m;
        product *= k > 0 && dtype_is_complex(node->dtype) ? 2 * m : m;
        largest = m > largest ? m : largest;
    }
    switch ((int)node->op) {
    case OP_INPUT:
        return (double)most;
    case OP_CONST:
        return whole ? fabs((double)node->value.i)
                     : fabs(node->value.re) + fabs(node->value.im);
    case OP_EXTENT:
        return (double)dims[node->dim];
    case OP_EINSUM:
        return product * terms;
    case OP_MUL:
    case OP_SCALE:
        return product;
    case OP_ADD:
    case OP_SUB:
        return sum;
    case OP_SUM:
        return sum * terms;
    case OP_PROD:
        return pow(sum > 1 ? sum : 1, terms);
    case OP_COPY:
    case OP_CAST:
    case OP_NEG:
    case OP_ABS:
    case OP_RELU:
    case OP_CONJ:
    case OP_RE:
    case OP_IM:
    case OP_DIV: /* of whole numbers: of others nothing is exact */
    case OP_MIN:
    case OP_MAX:
    case OP_SELECT:
    case OP_RMIN:
    case OP_RMAX:
    case OP_ANY:
    case OP_ALL:
        return node->dtype == DTYPE_BOOL ? 1 : largest;
    default:
        return node->dtype == DTYPE_BOOL ? 1 : INFINITY;
    }
}

/* A truth value or an integer made of floats: it jumps where they differ by a rounding. */
static bool jumps(const Graph *g, const Node *node)
{
    bool real = false;
    for (uint32_t k = 0; k < node->n_operands; k++) {
        DType t = graph_node(g, node->operand[k])->dtype;
        real |= !dtype_is_int(t) && t != DTYPE_BOOL;
    }
    return real && (dtype_is_int(node->dtype) || node->dtype == DTYPE_BOOL);
}

/* Is all exact with arguments up to k->most? */
static bool is_exact(Arena *arena, const Graph *g, KernelTrial *k)
{
    bool exact = true;
    double *of = ARENA_ARRAY(arena, g->nodes.n, double);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        of[n] = node_magnitude(graph_node(g, n), k->dims, of, k->most);
        exact &= of[n] <= exact_limit(graph_node(g, n)->dtype);
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        double m = of[g->results.at[r].node];
        k->scale[r] = isfinite(m) && m > 1 ? m : 1;
    }
    return exact;
}

/* Chooses the size of arguments so that all is exact, where that can be. */
static void choose_data(Arena *arena, const Graph *g, KernelTrial *k)
{
    bool whole = is_whole(g), jump = false;
    k->scale = ARENA_ARRAY(arena, g->results.n, double);
    for (k->most = 4; whole && k->most > 0; k->most /= 2) {
        k->exact = is_exact(arena, g, k);
        if (k->exact) {
            return;
        }
    }
    k->most = 4;
    (void)is_exact(arena, g, k);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        jump |= jumps(g, graph_node(g, n));
    }
    k->skipped |= whole && jump;
}

static Tensor *make_argument(Compilation *c, const Param *p, const int64_t *dims, uint32_t at,
                             int64_t most)
{
    int64_t *extent = ARENA_ARRAY(c->arena, p->rank, int64_t);
    for (uint32_t d = 0; d < p->rank; d++) {
        extent[d] = p->shape[d].sym < 0 ? p->shape[d].n : dims[p->shape[d].sym];
    }
    Tensor *t = tensor_new(c->ctx, c->arena, p->dtype, p->rank, extent);
    Rng rng = {hash_mix(1, at)};
    for (int64_t k = 0; t != NULL && k < t->count; k++) {
        /* no zeros, which hide faults */
        int64_t v = most > 1 ? (int64_t)rng_below(&rng, (uint64_t)most) + 1
                             : 2 * (int64_t)rng_below(&rng, 2) - 1;
        bool whole = p->dtype == DTYPE_BOOL || dtype_is_int(p->dtype);
        tensor_set(t, k,
                   whole ? number_int(p->dtype,
                                      p->dtype == DTYPE_BOOL ? (most > 1 ? v & 1 : v > 0) : v)
                         : number_real(p->dtype, (double)v));
    }
    return t;
}

static bool is_small(const Graph *g, const int64_t *dims)
{
    int64_t total = 0;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        int64_t count = 1;
        for (uint32_t l = 0; l < node->n_labels; l++) {
            count = sat_mul(count, node->extent[l].sym < 0 ? node->extent[l].n
                                                           : dims[node->extent[l].sym]);
        }
        total = sat_add(total, count);
    }
    for (uint32_t k = 0; k < g->params.n; k++) {
        int64_t count = 1;
        for (uint32_t d = 0; d < g->params.at[k].rank; d++) {
            Dim dim = g->params.at[k].shape[d];
            count = sat_mul(count, dim.sym < 0 ? dim.n : dims[dim.sym]);
        }
        total = sat_add(total, count);
    }
    return total <= CHECK_ELEMENTS;
}

static bool start_kernel(Compilation *c, const Graph *g, KernelTrial *k)
{
    k->dims = ARENA_ARRAY(c->arena, g->dims.list.n, int64_t);
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        k->dims[d] = CHECK_EXTENT - (int64_t)(d % 3);
    }
    k->skipped = !is_small(g, k->dims);
    choose_data(c->arena, g, k);
    k->args = ARENA_ARRAY(c->arena, g->params.n, Tensor *);
    for (uint32_t p = 0; !k->skipped && p < g->params.n; p++) {
        k->args[p] = make_argument(c, &g->params.at[p], k->dims, p, k->most);
        if (k->args[p] == NULL) {
            return false;
        }
    }
    k->results = ARENA_ARRAY(c->arena, g->results.n, Tensor *);
    return k->skipped || graph_eval(c->ctx, c->arena, g, k->dims, k->args, k->results);
}

static bool is_close(const KernelTrial *k, DType t, Number a, Number b, double scale)
{
    if (t == DTYPE_BOOL || dtype_is_int(t)) {
        return a.i == b.i;
    }
    if (k->exact) {
        return (a.re == b.re || (isnan(a.re) && isnan(b.re))) &&
               (a.im == b.im || (isnan(a.im) && isnan(b.im)));
    }
    /* A few roundings on each of the few hundred terms that a checked sum has. */
    double ulp = t == DTYPE_F64 || t == DTYPE_C128  ? 0x1p-52
                 : t == DTYPE_F32 || t == DTYPE_C64 ? 0x1p-23
                 : t == DTYPE_F16                   ? 0x1p-10
                                                    : 0x1p-7;
    double bound = 4096 * ulp * scale;
    bool same_kind = isfinite(a.re) == isfinite(b.re) && isfinite(a.im) == isfinite(b.im);
    return same_kind && (!isfinite(a.re) || (fabs(a.re - b.re) <= bound)) &&
           (!isfinite(a.im) || fabs(a.im - b.im) <= bound);
}

static bool same(Compilation *c, const KernelTrial *k, const char *kernel, const char *result,
                 double scale, const Tensor *a, const Tensor *b, const char *pass)
{
    for (int64_t i = 0; i < a->count; i++) {
        Number v = tensor_get(a, i);
        double size = isfinite(v.re) ? fabs(v.re) : 0;
        scale = size > scale ? size : scale;
    }
    for (int64_t i = 0; i < a->count; i++) {
        if (!is_close(k, a->dtype, tensor_get(a, i), tensor_get(b, i), scale)) {
            Number x = tensor_get(a, i), y = tensor_get(b, i);
            diag_error(
                &c->ctx->diags, E_PASS_BROKE, (Span){0},
                "pass '%s' changed the meaning of kernel '%s': element %lld of '%s' was %g "
                "and is %g",
                pass, kernel, (long long)i, result,
                x.dtype == DTYPE_BOOL || dtype_is_int(x.dtype) ? (double)x.i : x.re,
                y.dtype == DTYPE_BOOL || dtype_is_int(y.dtype) ? (double)y.i : y.re);
            return false;
        }
    }
    return true;
}

static bool check_kernel(Compilation *c, uint32_t at, Stage stage, const char *pass)
{
    const KernelTrial *k = &c->checker->kernels[at];
    const Graph *g = c->module->graphs.at[at];
    Tensor **results = ARENA_ARRAY(c->arena, g->results.n, Tensor *);
    if (k->skipped) {
        return true;
    }
    bool ran = stage_info(stage)->eval(c, at, k->dims, k->args, results);
    for (uint32_t r = 0; ran && r < g->results.n; r++) {
        CHECK(results[r] != NULL);
        if (!same(c, k, g->name->text, g->results.at[r].name->text, k->scale[r], k->results[r],
                  results[r], pass)) {
            return false;
        }
    }
    if (!ran) {
        diag_error(&c->ctx->diags, E_PASS_BROKE, (Span){0},
                   "after pass '%s' kernel '%s' cannot be run", pass, g->name->text);
    }
    return ran;
}

/* The kernel as it is, and with each of several nests alone: the small sizes that are checked
 * here are those of one of them. */
static bool check_nests(Compilation *c, uint32_t at, Stage stage, const char *pass)
{
    KernelModule *m = stage_form(stage) != FORM_KERNEL ? NULL
                      : stage == STAGE_LEGAL           ? c->legal
                                                       : c->tiled;
    bool ok = check_kernel(c, at, stage, pass);
    if (m == NULL) {
        return ok;
    }
    Kernel *whole = m->kernels.at[at];
    for (uint32_t n = 0; ok && (m->kernels.at[at] = kernel_alone(c->arena, whole, n)) != NULL;
         n++) {
        ok = check_kernel(c, at, stage, pass);
    }
    m->kernels.at[at] = whole;
    return ok;
}

bool compilation_check(Compilation *c, Stage stage, const char *pass)
{
    if (c->module == NULL || stage_info(stage)->eval == NULL) {
        return true; /* read from a kernel dump, there is no graph to compare with; or nothing new to run */
    }
    bool first = c->checker == NULL;
    if (first) {
        c->checker = ARENA_NEW(c->arena, Checker);
        c->checker->kernels = ARENA_ARRAY(c->arena, c->module->graphs.n, KernelTrial);
    }
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        bool ok = first ? start_kernel(c, c->module->graphs.at[k], &c->checker->kernels[k])
                        : check_nests(c, k, stage, pass);
        if (!ok) {
            return false;
        }
    }
    return true;
}
