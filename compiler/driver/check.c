/* SPDX-License-Identifier: Apache-2.0 */
/* --check-each: the program is run on small integers after every pass, by the interpreter of
 * the stage, and compared with what it gave at first. Integers that the element types hold are
 * exact in every order, so the comparison is bit for bit where the size of every value is
 * bounded so (by smaller integers, if that takes it); else, and where the program divides or
 * calls a function of libm, by a bound relative to the largest element. Open dims take small
 * sizes that differ, so that swapped indices show. */
#include "driver/compile.h"
#include "driver/trial.h"
#include "graph/eval.h"

/* The largest extent an open dim is given, unless computed ones need more, and the elements a program may have to be checked. */
#define CHECK_EXTENT   5
#define CHECK_ELEMENTS ((int64_t)1 << 22)

typedef struct KernelTrial {
    Trial trial;
    Tensor **args;
    Tensor **results;
    bool skipped; /* too large to interpret, or nothing can be said of its results */
} KernelTrial;

typedef struct Checker {
    VEC(KernelTrial) kernels; /* those of the program, then local ones, as passes make them */
} Checker;

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

/* Sizes with which no computed extent is below 0; false: none were found. */
static bool choose_dims(Arena *arena, const Graph *g, int64_t **dims)
{
    int64_t *given = ARENA_ARRAY(arena, (size_t)g->dims.list.n + 1, int64_t);
    for (int64_t more = 0; more < 4 * CHECK_EXTENT; more += CHECK_EXTENT) {
        bool possible = true;
        for (uint32_t d = 0; d < dims_given(&g->dims); d++) {
            given[d] = CHECK_EXTENT - (int64_t)(d % 3) + more;
        }
        *dims = dims_complete(arena, &g->dims, given);
        for (uint32_t d = 0; d < g->dims.list.n; d++) {
            possible = possible && (*dims)[d] >= 0;
        }
        if (possible) {
            return true;
        }
    }
    return false;
}

static bool start_kernel(Compilation *c, const Graph *g, KernelTrial *k)
{
    int64_t *dims = NULL;
    bool possible = choose_dims(c->arena, g, &dims);
    trial_choose(c->arena, g, dims, c->target->machine->doubles, &k->trial);
    k->skipped = !possible || k->trial.unknown || !is_small(g, dims);
    k->args = ARENA_ARRAY(c->arena, g->params.n, Tensor *);
    k->results = ARENA_ARRAY(c->arena, g->results.n, Tensor *);
    return k->skipped || (trial_arguments(c->ctx, c->arena, g, &k->trial, k->args) &&
                          graph_eval(c->ctx, c->arena, g, dims, k->args, k->results));
}

static bool same(Compilation *c, const KernelTrial *k, const Graph *g, uint32_t result,
                 const Tensor *a, const Tensor *b, const char *pass)
{
    int64_t i = trial_difference(&k->trial, result, a, b);
    if (i >= 0) {
        Number x = tensor_get(a, i), y = tensor_get(b, i);
        bool whole = dtype_is_exact(x.dtype);
        diag_error(&c->ctx->diags, E_PASS_BROKE, (Span){0},
                   "pass '%s' changed the meaning of kernel '%s': element %lld of '%s' was %g "
                   "and is %g",
                   pass, g->name->text, (long long)i, g->results.at[result].name->text,
                   whole ? (double)x.i : unsigned_nan(x.re),
                   whole ? (double)y.i : unsigned_nan(y.re));
    }
    return i < 0;
}

static bool check_kernel(Compilation *c, uint32_t at, Stage stage, const char *pass)
{
    const KernelTrial *k = &c->checker->kernels.at[at];
    const Graph *g = c->module->graphs.at[at];
    Tensor **results = ARENA_ARRAY(c->arena, g->results.n, Tensor *);
    if (k->skipped) {
        return true;
    }
    bool ran = stage_info(stage)->eval(c, at, k->trial.dims, k->args, results);
    for (uint32_t r = 0; ran && r < g->results.n; r++) {
        CHECK(results[r] != NULL);
        if (!same(c, k, g, r, k->results[r], results[r], pass)) {
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
    if (first) { /* a checker of no kernels */
        c->checker = ARENA_NEW(c->arena, Checker);
    }
    for (uint32_t k = 0; k < c->module->graphs.n; k++) {
        KernelTrial trial = {0};
        first = k == c->checker->kernels.n;
        if (first) {
            vec_push(c->arena, &c->checker->kernels, trial);
        }
        bool ok = first ? start_kernel(c, c->module->graphs.at[k], &c->checker->kernels.at[k])
                        : check_nests(c, k, stage, pass);
        if (!ok) {
            return false;
        }
    }
    return true;
}
