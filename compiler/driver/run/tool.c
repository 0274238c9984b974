/* SPDX-License-Identifier: Apache-2.0 */
/* tdsl-run and tdsl-run-mpi: runs one kernel of a file, or an equation, on arrays and words, and shows what came out. */
#include <string.h>

#include "driver/run/positions.h"
#include "driver/run/c_library.h"
#include "driver/compile.h"
#include "driver/decisions.h"
#include "driver/input.h"
#include "driver/run/npy.h"
#include "driver/plans.h"
#include "driver/report/report.h"
#include "driver/run/run.h"
#include "driver/run/emulator.h"
#include "driver/run/ranks.h"
#include "driver/targets.h"
#include "driver/tool.h"

#include <tdsl/dist.h>

typedef struct RunOutput {
    uint32_t result;
    const char *path;
} RunOutput;

typedef struct Run {
    ToolRun *t;
    Input in;
    TensorType *shapes; /* of an equation's operands */
    uint32_t n_shapes;
    RunValues values;
    Head head;
    Compilation c;
    RunArguments args;
    Tensor **results;
    VEC(RunOutput) outputs; /* of -o, in order */
    CTiming timing;
    RunProfile profile;
    bool without_openmp; /* the C compiler has none */
    bool called;         /* its ranks, if there are any */
} Run;

static bool usage(ToolRun *t, const char *what)
{
    return usage_error(&t->usage, "%s", what);
}

static bool given_dtype(ToolRun *t, DType *out)
{
    const char *name = option_last(&t->options, OPT_DTYPE, NULL);
    *out = DTYPE_NONE;
    if (name != NULL && !dtype_from_name(str_from(name), out)) {
        const char *meant = dtype_meant(str_from(name));
        return usage(
            t,
            meant != NULL
                ? str_format(&t->arena, "unknown element type '--dtype=%s': did you mean '%s'?",
                             name, meant)
                : str_format(&t->arena, "unknown element type '--dtype=%s': there are %s", name,
                             dtype_names()));
    }
    return true;
}

/* Shapes of an equation's operands: from --shape where given, else from the arrays. */
static bool equation_shapes(Run *r, DType cast, TensorType **shapes, uint32_t *n)
{
    ToolRun *t = r->t;
    DType dtype = cast;
    for (uint32_t k = 0; k < r->values.list.n; k++) {
        const Tensor *a = r->values.list.at[k].array;
        if (a != NULL && dtype != DTYPE_NONE && a->dtype != dtype) {
            return diag_refuse(
                &t->ctx.diags, E_ARGUMENT_VALUE, (Span){0},
                "operands of %s and %s: all operands of -e have one type; --dtype casts",
                dtype_name(dtype), dtype_name(a->dtype));
        }
        dtype = a != NULL ? a->dtype : dtype;
    }
    dtype = dtype == DTYPE_NONE ? DTYPE_F32 : dtype;
    if (option_given(&t->options, OPT_SHAPE)) {
        return input_shapes(&t->ctx, &t->arena, &t->options, dtype, shapes, n);
    }
    *n = r->values.list.n;
    *shapes = ARENA_ARRAY(&t->arena, *n, TensorType);
    for (uint32_t k = 0; k < *n; k++) {
        const Tensor *a = r->values.list.at[k].array;
        if (a == NULL) {
            return usage(t,
                         "operands that are words need their extents: one --shape per operand");
        }
        Dim *dims = ARENA_ARRAY(&t->arena, a->rank, Dim);
        for (uint32_t d = 0; d < a->rank; d++) {
            dims[d] = dim_fixed(a->extent[d]);
        }
        (*shapes)[k] = (TensorType){dtype, a->rank, dims};
    }
    return true;
}

/* What there is to run: graphs, or the kernels of a dump that holds nothing earlier. */
static const KernelModule *read_kernels(const Run *r)
{
    return r->c.legal != NULL ? r->c.legal : r->c.tiled;
}

static uint32_t count_kernels(const Run *r)
{
    const Compilation *c = &r->c;
    const KernelModule *kernels = read_kernels(r);
    uint32_t n = c->module != NULL ? c->module->graphs.n : kernels->kernels.n;
    while (n > 1 && dist_owner(c->module != NULL ? &c->module->graphs.at[n - 1]->ranks
                                                 : &kernels->kernels.at[n - 1]->ranks)
                            .at != NULL) {
        n--; /* parts of the others, behind them */
    }
    return n;
}

static Head head_at(const Run *r, uint32_t k)
{
    Arena *arena = &r->t->arena;
    return r->c.module != NULL ? head_of_graph(arena, r->c.module->graphs.at[k])
                               : head_of_kernel(arena, read_kernels(r)->kernels.at[k]);
}

static bool describe(Run *r)
{
    ToolRun *t = r->t;
    uint32_t n = count_kernels(r);
    Text text = text_new(&t->arena);
    for (uint32_t k = 0; k < n; k++) {
        Head head = head_at(r, k);
        const char *input =
            option_given(&t->options, OPT_EQUATION)
                ? str_format(&t->arena, "-e '%s'", option_last(&t->options, OPT_EQUATION, ""))
                : r->in.name;
        run_describe(&t->arena, &head, input, n == 1 && !option_given(&t->options, OPT_KERNEL),
                     &text);
    }
    files_add(&t->files, "-", text_str(&text));
    return true;
}

static bool choose_kernel(Run *r)
{
    Arena *arena = &r->t->arena;
    const Compilation *c = &r->c;
    const KernelModule *kernels = read_kernels(r);
    uint32_t n = count_kernels(r);
    if (n == 1) {
        r->head = head_at(r, 0);
        return true;
    }
    Text names = text_new(arena);
    for (uint32_t k = 0; k < n; k++) {
        Sym name =
            c->module != NULL ? c->module->graphs.at[k]->name : kernels->kernels.at[k]->name;
        text_printf(&names, " %s", name->text);
    }
    return usage(r->t,
                 n == 0 ? "the file has no kernel"
                        : str_format(arena, "the file has several kernels: --kernel= one of%s",
                                     names.at));
}

static bool read_input(Run *r)
{
    ToolRun *t = r->t;
    bool equation = option_given(&t->options, OPT_EQUATION);
    DType cast = DTYPE_NONE;
    if (!equation && t->options.positional.n == 0) {
        return usage(t, "no input: a FILE.tdsl, or -e EQUATION");
    }
    r->in = (Input){.ctx = &t->ctx, .arena = &t->arena, .options = &t->options};
    if (!given_dtype(t, &cast) ||
        !run_values_read(&t->ctx, &t->arena, &t->options, !equation, cast,
                         t->comm != NULL && !option_given(&t->options, OPT_CHECK_SYMMETRY),
                         &r->values) ||
        (equation && !equation_shapes(r, cast, &r->shapes, &r->n_shapes)) ||
        !input_read(&r->in, r->shapes, r->n_shapes)) {
        return false;
    }
    t->stages_are_ours = r->in.dump == NULL && !decisions_given(&t->options);
    return true;
}

/* The program once more, with the extents that its arguments imply, as if -D had given them: for targets that need every
 * extent as a number. What there is to warn of has been said. */
static bool bind_extents(Run *r)
{
    ToolRun *t = r->t;
    for (uint32_t d = 0; r->in.program != NULL && d < dims_given(r->head.dims); d++) {
        const char *define =
            str_format(&t->arena, "%s=%lld", r->head.dims->list.at[d].name->text,
                       (long long)r->args.dims[d]);
        vec_push(&t->arena, &t->options.given[OPT_DEFINE].at, define);
    }
    for (uint32_t k = 0; k < r->n_shapes && k < r->args.n_args; k++) { /* of an equation */
        const Tensor *a = r->args.args[k];
        Dim *dims = ARENA_ARRAY(&t->arena, a->rank, Dim);
        for (uint32_t d = 0; d < a->rank; d++) {
            dims[d] = dim_fixed(a->extent[d]);
        }
        r->shapes[k] = (TensorType){a->dtype, a->rank, dims};
    }
    bool quiet = t->ctx.diags.no_warnings;
    t->ctx.diags.no_warnings = true;
    r->in = (Input){.ctx = &t->ctx, .arena = &t->arena, .options = &t->options};
    bool ok = input_read(&r->in, r->shapes, r->n_shapes);
    r->c.module = ok ? input_build(&r->in, r->c.only_kernel) : NULL;
    t->ctx.diags.no_warnings = quiet;
    return r->c.module != NULL && choose_kernel(r) &&
           run_bind(&r->in, &r->head, &r->values, &r->args);
}

static uint64_t count_work(const Run *r)
{
    const Compilation *c = &r->c;
    int64_t count = 0;
    if (c->module == NULL) {
        const Kernel *k = (c->legal != NULL ? c->legal : c->tiled)->kernels.at[0];
        return (uint64_t)kernel_multiply_adds(
            k, dims_complete(&r->t->arena, &k->dims, r->args.dims));
    }
    const Graph *g = c->module->graphs.at[0];
    const int64_t *dims = dims_complete(&r->t->arena, &g->dims, r->args.dims);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        count = sat_add(count, node_multiply_adds(graph_node(g, n), dims));
    }
    return (uint64_t)count;
}

/* The program as it is written, or as what was decided has made it, by the interpreter of that stage. */
static bool interpret(Run *r)
{
    Stage decided = decisions_stage(r->t, &r->c);
    Stage stage = decided == STAGE_NONE || decided < r->c.stage ? r->c.stage : decided;
    stage = stage < STAGE_GRAPH ? STAGE_GRAPH : stage == STAGE_NEST ? STAGE_LOOP : stage;
    if (stage > STAGE_GRAPH && !decisions_make(r->t, &r->c, passes_until(r->c.target, stage))) {
        return false;
    }
    double start = tool_clock();
    const KernelModule *m = stage == STAGE_LEGAL ? r->c.legal : r->c.tiled;
    bool ok = stage_form(stage) == FORM_KERNEL
                  ? kernel_positions_hold(&r->t->ctx, &r->t->arena, m->kernels.at[0],
                                          r->args.dims, r->args.args)
                  : graph_positions_hold(&r->t->ctx, &r->t->arena, r->c.module->graphs.at[0],
                                         r->args.dims, r->args.args);
    r->t->ctx.indefinite = INT64_MAX;
    ok = ok && stage_info(stage)->eval(&r->c, 0, r->args.dims, r->args.args, r->results);
    ok = ok && (r->t->ctx.indefinite == INT64_MAX ||
                definite_report(&r->t->ctx, r->t->ctx.indefinite));
    r->timing.median = r->timing.least = tool_clock() - start;
    r->timing.multiply_adds = count_work(r);
    return ok;
}

/* Is the tensor what is declared of it? */
static bool check_declared(Run *r, const char *what, Sym name, Span span, const Tensor *a,
                           const Symmetry *declared)
{
    int64_t at[RANK_LIMIT], image[RANK_LIMIT];
    if (tensor_is_symmetric(a, declared, at, image)) {
        return true;
    }
    Text text = text_new(&r->t->arena);
    run_print_element(name->text, a, at, &text);
    text_put(&text, " and ");
    run_print_element(name->text, a, image, &text);
    return diag_refuse(&r->t->ctx.diags, E_SYMMETRY, span,
                       "%s '%s' is not as symmetric as it is declared: %s", what, name->text,
                       text.at);
}

static bool check_arguments(Run *r)
{
    bool ok = true;
    for (uint32_t k = 0; k < r->head.n_params; k++) {
        const Param *p = &r->head.params[k];
        ok &= check_declared(r, "argument", p->name, p->span, r->args.args[k], p->symmetry);
    }
    return ok;
}

static bool check_results(Run *r)
{
    bool ok = true;
    for (uint32_t k = 0; k < r->head.n_results; k++) {
        const HeadResult *result = &r->head.results[k];
        ok &= check_declared(r, "result", result->name, (Span){0}, r->results[k],
                             result->symmetry);
    }
    return ok;
}

/* Does the kernel have a plan for ranks? */
static bool has_layouts(const Run *r)
{
    const Compilation *c = &r->c;
    return dist_planned(c->module != NULL  ? &c->module->graphs.at[0]->ranks
                        : c->legal != NULL ? &c->legal->kernels.at[0]->ranks
                                           : &c->tiled->kernels.at[0]->ranks);
}

/* -o [NAME=]FILE.npy: the result it names, or the only one. */
static bool add_output(Run *r, const char *option)
{
    ToolRun *t = r->t;
    const char *equals = strchr(option, '=');
    Str name = {option, equals == NULL ? 0 : (size_t)(equals - option)};
    for (uint32_t k = 0; k < r->head.n_results; k++) {
        bool match = equals == NULL ? r->head.n_results == 1
                                    : str_eq_cstr(name, r->head.results[k].name->text);
        if (match) {
            vec_push(&t->arena, &r->outputs,
                     ((RunOutput){k, equals == NULL ? option : equals + 1}));
            return true;
        }
    }
    return usage(t, equals == NULL
                        ? "-o NAME=FILE.npy is needed: the kernel has several results"
                        : str_format(&t->arena, "-o: the kernel has no result '%.*s'",
                                     (int)name.n, name.at));
}

static bool find_outputs(Run *r)
{
    const OptionValues *given = &r->t->options.given[OPT_RESULT];
    for (uint32_t k = 0; k < given->at.n; k++) {
        if (!add_output(r, given->at.at[k])) {
            return false;
        }
    }
    return true;
}

/* Of processes that are ranks each writes its blocks into these files, [results], unless rank 0 needs the results, to print them or for other files: null. */
static const char *const *files_of_ranks(const Run *r)
{
    const Options *o = &r->t->options;
    bool write = r->t->comm != NULL && r->outputs.n > 0 && !option_given(o, OPT_CHECKSUM) &&
                 !option_given(o, OPT_CHECK_SYMMETRY);
    const char **path = ARENA_ARRAY(&r->t->arena, (size_t)r->head.n_results + 1, const char *);
    for (uint32_t k = 0; k < r->outputs.n; k++) {
        const RunOutput *out = &r->outputs.at[k];
        write = write && path[out->result] == NULL && !file_is_stream(out->path);
        for (uint32_t i = 0; i < k; i++) {
            write = write && strcmp(r->outputs.at[i].path, out->path) != 0;
        }
        path[out->result] = out->path;
    }
    return write ? path : NULL;
}

static bool run_kernel(Run *r, const char *target)
{
    ToolRun *t = r->t;
    r->results = ARENA_ARRAY(&t->arena, r->head.n_results, Tensor *);
    if (strcmp(target, "interp") == 0) {
        return interpret(r);
    }
    r->c.emit.source_name = r->in.name;
    r->c.emit.tool_version = TDSL_VERSION;
    r->c.emit.profile = r->profile.asked && strcmp(target, "c") == 0;
    if (!decisions_make(t, &r->c, pass_count(r->c.target))) {
        return false;
    }
    if (emulated_target(target) != NULL) {
        return run_emulator(&t->ctx, &t->arena, &r->c.outputs, &r->head, r->args.dims,
                            r->args.args, r->results, &r->profile);
    }
    const char *symbol = target_symbol(&t->arena, r->c.target, r->head.name->text);
    CLibrary library;
    CCompiler with = c_compiler(&t->arena, &t->options);
    bool must = option_given(&t->options, OPT_THREADS);
    bool ok =
        c_library_open_threads(&library, &t->ctx, &t->arena, c_library_text(&r->c.outputs),
                               &with, r->timing.threads, must);
    r->timing.threads = library.threads > 1 ? library.threads : 1;
    r->without_openmp = library.without_openmp;
    MeshWish mesh = r->c.mesh;
    if (!mesh_is_asked(
            &mesh)) { /* as its plan has it, so that one rank and many have the same bits */
        mesh.ranks = has_layouts(r) ? 1 : 0;
    }
    RankFiles files = {t->comm != NULL ? r->args.files : NULL, files_of_ranks(r),
                       option_last(&t->options, OPT_CHECKPOINT, NULL)};
    r->called = ok && (mesh.ranks > 0 || mesh.text != NULL);
    ok = ok && (mesh.ranks > 0 || mesh.text != NULL
                    ? run_ranks(&library, t->comm, &r->head, symbol, &mesh, r->args.dims,
                                r->args.args, &files, r->results, &r->timing, &t->speaks)
                    : c_library_call(&library, &r->head, symbol, r->args.dims, r->args.args,
                                     r->results, &r->timing));
    if (ok && r->c.emit.profile) {
        profile_show(&library, r->head.name->text, &r->timing, &r->profile);
    }
    c_library_close(&library);
    return ok;
}

/* The nest that a call takes. */
static const Nest *called_nest(const Nest *nest, const int64_t *dims)
{
    for (uint32_t k = 0; k < nest->n_sizes; k++) {
        const DimTest *when = &nest->sizes[k].when;
        if (dim_test_holds(when, dims[when->dim])) {
            return nest->sizes[k].nest;
        }
    }
    return nest;
}

/* threads=2 share the loop over i; threads=1; several share the loop over i */
static void show_threads(Run *r, Text *text)
{
    const Target *target = r->c.target;
    text_printf(text, "threads=%d", (int)r->timing.threads);
    if (r->without_openmp) {
        text_put(text, ": the C compiler has no -fopenmp");
    } else if (r->c.nests != NULL && target->machine->time.piece > 0) {
        const Nest *nest = called_nest(r->c.nests[0], r->args.dims);
        text_printf(text, "%s %s", r->timing.threads > 1 ? "" : "; several",
                    report_threads(nest, target->machine, &r->t->arena));
    }
    text_char(text, '\n');
}

static bool show(Run *r)
{
    ToolRun *t = r->t;
    const OptionValues *outputs = &t->options.given[OPT_RESULT];
    Text text = text_new(&t->arena);
    for (uint32_t k = 0; k < r->outputs.n; k++) {
        const RunOutput *out = &r->outputs.at[k];
        if (r->results[out->result] != NULL) { /* else ranks have written it */
            files_add(&t->files, out->path, npy_format(&t->arena, r->results[out->result]));
        }
    }
    bool checksum = option_given(&t->options, OPT_CHECKSUM);
    for (uint32_t k = 0; k < r->head.n_results; k++) {
        const char *name = r->head.results[k].name->text;
        if (checksum) {
            run_print_checksum(name, r->results[k], &text);
        } else if (outputs->at.n == 0) {
            run_print_summary(name, r->results[k], &text);
        }
    }
    if (option_given(&t->options, OPT_TIME)) {
        text_printf(&text, "time median=%.9g min=%.9g multiply_adds=%llu\n", r->timing.median,
                    r->timing.least, (unsigned long long)r->timing.multiply_adds);
        if (r->timing.computing > 0) {
            text_printf(&text, "ranks moving=%.9g computing=%.9g\n", r->timing.moving,
                        r->timing.computing);
        }
        show_threads(r, &text);
    }
    if (r->profile.to_file) {
        files_add(&t->files, option_last(&t->options, OPT_PROFILE, NULL), r->profile.text);
    } else {
        text_put_n(&text, r->profile.text.at, r->profile.text.n);
    }
    if (text.n > 0) {
        files_add(&t->files, "-", text_str(&text));
    }
    return true;
}

/* The ranks of tdsl-run-mpi are those that mpirun has started. */
static bool mesh_of_comm(ToolRun *t, MeshWish *mesh)
{
    if (t->comm != NULL && mesh->ranks > 0 && mesh->ranks != t->comm->size) {
        return usage(t, "--ranks is not the number of ranks that mpirun has started");
    }
    mesh->ranks = t->comm != NULL ? t->comm->size : mesh->ranks;
    return true;
}

/* Counters are for one thread, which is what a call has then. */
static bool can_profile(Run *r, const char *target, const MeshWish *mesh)
{
    ToolRun *t = r->t;
    if (strcmp(target, "interp") == 0 || mesh_is_asked(mesh) ||
        (option_given(&t->options, OPT_THREADS) && r->timing.threads > 1)) {
        return usage(t, "--profile is for one thread of target c, or for the emulator");
    }
    r->timing.threads = 1;
    return true;
}

static bool run_input(ToolRun *t, Run *r)
{
    const char *target = option_last(&t->options, OPT_TARGET, "c");
    const Target *emulated = emulated_target(target);
    if (strcmp(target, "c") != 0 && strcmp(target, "interp") != 0 && emulated == NULL) {
        return usage(t, str_format(&t->arena,
                                   "unknown target '%s'; there are c, interp and emulator",
                                   target));
    }
    r->profile.asked = option_given(&t->options, OPT_PROFILE);
    r->profile.to_file = option_last(&t->options, OPT_PROFILE, "")[0] != '\0';
    int64_t repeat = 1;
    int64_t threads = c_threads(THREADS_MOST);
    int64_t seconds = RUN_TIMEOUT;
    MeshWish mesh = {0};
    if (!option_number(&t->options, OPT_REPEAT, 1, 1000000, &repeat, &t->usage) ||
        !option_number(&t->options, OPT_THREADS, 1, THREADS_MOST, &threads, &t->usage) ||
        !option_number(&t->options, OPT_TIMEOUT, 1, RUN_TIMEOUT_MOST, &seconds, &t->usage) ||
        !mesh_wish(&t->options, THREADS_MOST, &t->usage, &mesh) || !mesh_of_comm(t, &mesh) ||
        !read_input(r)) {
        return false;
    }
    bool kept = option_given(&t->options, OPT_CHECKPOINT);
    if (kept && option_given(&t->options, OPT_TIME)) {
        return usage(t, "--checkpoint is for one call, without --time");
    }
    mesh.ranks = kept && !mesh_is_asked(&mesh) ? 1 : mesh.ranks;
    r->timing.repeat = option_given(&t->options, OPT_TIME) || r->profile.asked ? repeat : 0;
    r->timing.threads = (int32_t)threads;
    if (r->profile.asked && !can_profile(r, target, &mesh)) {
        return false;
    }
    const Target *run = emulated != NULL ? emulated : target_find("c");
    const Target *limited = decisions_target(t, run);
    if (limited == NULL) {
        return false;
    }
    compilation_init(&r->c, &t->ctx, &t->arena, limited);
    r->c.mesh = mesh;
    if (mesh_is_asked(&mesh) && strcmp(target, "c") != 0) {
        return usage(t, "--ranks, --mesh and --checkpoint are for target c");
    }
    if (!decisions_read(t, &r->c)) {
        return false;
    }
    if (strcmp(target, "c") == 0) {
        plans_use(t, &r->c, &r->in);
    }
    if (!decisions_start(t, &r->c, &r->in)) {
        return false;
    }
    bool program = r->in.dump == NULL && r->c.stage == STAGE_CHECKED;
    if (program) {
        r->c.module = input_build(&r->in, r->c.only_kernel);
    }
    if (t->ctx.diags.n_errors == 0 && option_given(&t->options, OPT_DESCRIBE)) {
        return describe(r);
    }
    if (t->ctx.diags.n_errors > 0 || !choose_kernel(r) ||
        !run_bind(&r->in, &r->head, &r->values, &r->args)) {
        return false;
    }
    bool open = emulated != NULL && r->head.dims->list.n > 0 && program;
    bool check = option_given(&t->options, OPT_CHECK_SYMMETRY);
    return (!open || bind_extents(r)) && find_outputs(r) && (!check || check_arguments(r)) &&
           run_kernel(r, target) && (!check || check_results(r)) && show(r);
}

bool run_tool(ToolRun *t)
{
    Run r = {.t = t};
    bool ok = run_input(t, &r);
    if (t->comm != NULL && !r.called) { /* the other ranks wait */
        tdsl_dist_refuse(t->comm, TDSL_E_ARGUMENT);
    }
    compilation_release(&r.c);
    return ok;
}
