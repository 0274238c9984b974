/* SPDX-License-Identifier: Apache-2.0 */
/* See c_library.h. A kernel's C form is written to a private folder, compiled to a shared
 * object by the C compiler (an argument vector, no shell), loaded and called through its
 * metadata table, as any program would. POSIX. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <tdsl/abi.h>

#include "driver/run/c_library.h"
#include "driver/run/positions.h"
#include "driver/run/profile.h"
#include "driver/scratch.h"
#include "driver/targets.h"
#include "driver/tool.h"

static bool fail(CLibrary *b, const char *what, const char *detail)
{
    return diag_refuse(&b->ctx->diags, E_RUN, (Span){0}, "%s: %s", what, detail);
}

static bool compile(CLibrary *b, const Scratch *s, Str text, const char *cc, const char *cflags,
                    const char *object, const char *log)
{
    const char *source = scratch_path(s, "kernel.c");
    VEC(const char *) argv = {0};
    vec_push(b->arena, &argv, cc);
    char *flags = str_dup(b->arena, str_from(cflags));
    for (char *flag = strtok(flags, " "); flag != NULL; flag = strtok(NULL, " ")) {
        vec_push(b->arena, &argv, flag);
    }
    const char *rest[] = {"-shared", "-fPIC", "-o", object, source, "-lm", NULL};
    for (size_t k = 0; k < sizeof rest / sizeof rest[0]; k++) {
        vec_push(b->arena, &argv, rest[k]);
    }
    return scratch_write(s, source, text) && scratch_run(s, argv.at, "the C compiler", log);
}

/* $CC may hold flags, as it does for make. */
CCompiler c_compiler(Arena *arena, const Options *o)
{
    const char *given = option_last(o, OPT_CC, NULL), *cc = getenv("CC");
    CCompiler c = {given, option_last(o, OPT_CFLAGS, "-O2")};
    if (given == NULL) {
        cc = cc == NULL || cc[strspn(cc, " ")] == '\0' ? "cc" : cc + strspn(cc, " ");
        c.cc = str_dup(arena, (Str){cc, strcspn(cc, " ")});
        c.cflags = str_format(arena, "%s %s", cc + strcspn(cc, " "), c.cflags);
    }
    return c;
}

Str c_library_text(const OutputSet *outputs)
{
    for (uint32_t k = 0; k < outputs->files.n; k++) {
        if (strcmp(outputs->files.at[k].suffix, ".c") == 0) {
            return outputs->files.at[k].text;
        }
    }
    return (Str){0};
}

/* The folder is gone before the kernel runs: what is loaded needs no file. */
static bool open_library(CLibrary *b, Str text, const char *cc, const char *cflags, bool quiet)
{
    Scratch s;
    if (!scratch_open(&s, b->ctx, b->arena)) {
        return false;
    }
    const char *object = scratch_path(&s, "kernel.so"),
               *log = quiet ? scratch_path(&s, "messages") : NULL;
    bool ok = compile(b, &s, text, cc, cflags, object, log);
    b->handle = ok ? dlopen(object, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (ok && b->handle == NULL && !quiet) {
        (void)fail(b, "cannot load the compiled kernel", dlerror());
    }
    scratch_close(&s);
    return b->handle != NULL;
}

bool c_library_open(CLibrary *b, Ctx *ctx, Arena *arena, Str text, const char *cc,
                    const char *cflags)
{
    *b = (CLibrary){.ctx = ctx, .arena = arena};
    return open_library(b, text, cc, cflags, false);
}

/* Text without a loop that threads share is compiled without OpenMP. */
bool c_library_open_threads(CLibrary *b, Ctx *ctx, Arena *arena, Str text,
                            const CCompiler *with, int32_t threads, bool must)
{
    *b = (CLibrary){.ctx = ctx, .arena = arena};
    const char *openmp = str_format(arena, "%s -fopenmp", with->cflags);
    bool shares = strstr(text.at, "#pragma omp") != NULL;
    if (threads > 1 && shares && open_library(b, text, with->cc, openmp, !must)) {
        b->threads = threads;
        return true;
    }
    b->without_openmp = threads > 1 && shares;
    return !(must && b->without_openmp) && open_library(b, text, with->cc, with->cflags, false);
}

void c_library_close(CLibrary *b)
{
    if (b->handle != NULL && b->threads <= 1) {
        (void)dlclose(b->handle);
    }
}

static const tdsl_kernel_info *find_kernel(CLibrary *b, const char *symbol)
{
    const tdsl_kernel_info *info = dlsym(b->handle, str_format(b->arena, "%s_info", symbol));
    if (info == NULL || info->abi_version != TDSL_ABI_VERSION) {
        (void)fail(b, "the compiled object has no kernel of that name", symbol);
        return NULL;
    }
    return info;
}

/* Results in the kernel's order; an inout parameter's result starts as a copy of the argument. */
static bool place_arguments(CLibrary *b, CCall *call)
{
    const Head *h = call->head;
    uint32_t n = 0;
    call->pointers = ARENA_ARRAY(b->arena, (size_t)h->n_params + h->n_results, void *);
    for (uint32_t k = 0; k < h->n_params; k++) {
        call->pointers[n++] = call->args[k]->data;
    }
    for (uint32_t k = 0; k < h->n_results; k++) {
        const HeadResult *r = &h->results[k];
        const int64_t *dims = dims_complete(b->arena, h->dims, call->dims);
        call->results[k] = head_new_result(b->ctx, b->arena, r, dims);
        if (call->results[k] == NULL) {
            return false;
        }
        if (r->param >= 0) {
            call->pointers[r->param] = call->results[k]->data;
        } else {
            call->pointers[n++] = call->results[k]->data;
        }
    }
    return true;
}

bool c_call_open(CCall *call, CLibrary *b, const char *symbol)
{
    call->library = b;
    call->info = find_kernel(b, symbol);
    if (call->info == NULL) {
        return false;
    }
    call->bytes = call->info->workspace_bytes_threads(call->dims, call->threads);
    if (call->bytes == SIZE_MAX) {
        return fail(b, "cannot run the kernel", "the size of its workspace overflows");
    }
    if (!place_arguments(b, call)) {
        return false;
    }
    if (call->bytes > 0 && posix_memalign(&call->workspace, 64, call->bytes) != 0) {
        call->workspace = NULL;
        return fail(b, "cannot run the kernel",
                    str_format(b->arena, "no memory for %zu bytes of workspace", call->bytes));
    }
    return true;
}

void c_call_close(CCall *call)
{
    free(call->workspace);
    call->workspace = NULL;
}

static void reset_inout(const CCall *call)
{
    const Head *h = call->head;
    for (uint32_t k = 0; k < h->n_results; k++) {
        int32_t param = h->results[k].param;
        const Tensor *to = call->results[k];
        if (param >= 0 && to->count > 0) {
            memcpy(to->data, call->args[param]->data,
                   (size_t)(to->count * dtype_bytes(to->dtype)));
        }
    }
}

/* The position at fault, in words. */
static bool fail_outside(const CCall *call)
{
    CLibrary *b = call->library;
    tdsl_outside o = {0};
    if (call->info->outside(call->dims, call->pointers, &o) == 0) {
        return fail(b, "the kernel returned a failure", "positions changed while it ran");
    }
    const Outside outside = {
        o.array,    o.text,   o.indices, (uint32_t)o.dimension, (uint32_t)o.n_indices,
        o.position, o.extent, o.index};
    return positions_report(b->ctx, (Span){0}, &outside);
}

/* As the workspace says it. */
static bool fail_definite(const CCall *call)
{
    const unsigned char *first =
        (const unsigned char *)call->workspace + (-(uintptr_t)call->workspace & 63u);
    int64_t code;
    memcpy(&code, first, sizeof code);
    return definite_report(call->library->ctx, code);
}

bool c_call_run(CCall *call, int64_t times, double *seconds)
{
    const tdsl_threads threads = {.count = call->threads};
    double (*now)(void) = call->clock != NULL ? call->clock : tool_clock;
    reset_inout(call);
    double start = now();
    tdsl_status status = TDSL_OK;
    for (int64_t k = 0; k < times && status == TDSL_OK; k++) {
        status = call->info->call_threads(call->dims, call->pointers, call->workspace,
                                          call->bytes, &threads);
    }
    *seconds = now() - start;
    if (status == TDSL_E_INDEX) {
        return fail_outside(call);
    }
    if (status == TDSL_E_DEFINITE) {
        return fail_definite(call);
    }
    return status == TDSL_OK ||
           fail(call->library, "the kernel returned a failure",
                str_format(call->library->arena, "status %d", (int)status));
}

int compare_times(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

bool c_library_call(CLibrary *b, const Head *h, const char *symbol, const int64_t *dims,
                    Tensor *const *args, Tensor **results, CTiming *timing)
{
    CCall call = {
        .head = h, .dims = dims, .args = args, .results = results, .threads = timing->threads};
    double *seconds = ARENA_ARRAY(b->arena, (size_t)timing->repeat + 1, double);
    bool ok = c_call_open(&call, b, symbol);
    for (int64_t k = 0; k <= timing->repeat && ok; k++) {
        if (k <= 1) {
            profile_begin(b); /* the first is the warm call */
        }
        ok = c_call_run(&call, 1, &seconds[k]);
    }
    profile_end(b);
    c_call_close(&call);
    if (!ok) {
        return false;
    }
    timing->multiply_adds = call.info->multiply_adds(dims);
    if (timing->repeat > 0) {
        size_t n = (size_t)timing->repeat;
        qsort(seconds + 1, n, sizeof *seconds, compare_times);
        timing->least = seconds[1];
        for (size_t k = 1; k <= n; k++) {
            timing->mean += seconds[k] / (double)n;
        }
        timing->median = (seconds[1 + (n - 1) / 2] + seconds[1 + n / 2]) / 2;
    }
    return true;
}
