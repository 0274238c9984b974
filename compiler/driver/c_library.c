/* SPDX-License-Identifier: Apache-2.0 */
/* See c_library.h. A kernel's C form is written to a private folder, compiled to a shared
 * object by the C compiler (an argument vector, no shell), loaded and called through its
 * metadata table, as any program would. POSIX. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <tdsl/abi.h>

#include "driver/c_library.h"
#include "driver/scratch.h"
#include "driver/tool.h"

static bool fail(CLibrary *b, const char *what, const char *detail)
{
    diag_error(&b->ctx->diags, E_RUN, (Span){0}, "%s: %s", what, detail);
    return false;
}

static bool compile(CLibrary *b, const Scratch *s, Str text, const char *cc, const char *cflags,
                    const char *object)
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
    return scratch_write(s, source, text) && scratch_run(s, argv.at, "the C compiler");
}

/* The folder is gone before the kernel runs: what is loaded needs no file. */
bool c_library_open(CLibrary *b, Ctx *ctx, Arena *arena, Str text, const char *cc,
                    const char *cflags)
{
    Scratch s;
    *b = (CLibrary){.ctx = ctx, .arena = arena};
    if (!scratch_open(&s, ctx, arena)) {
        return false;
    }
    const char *object = scratch_path(&s, "kernel.so");
    bool ok = compile(b, &s, text, cc, cflags, object);
    b->handle = ok ? dlopen(object, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (ok && b->handle == NULL) {
        (void)fail(b, "cannot load the compiled kernel", dlerror());
    }
    scratch_close(&s);
    return b->handle != NULL;
}

void c_library_close(CLibrary *b)
{
    if (b->handle != NULL && !b->has_threads) {
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
static bool make_call(CLibrary *b, const Head *h, const int64_t *dims, Tensor *const *args,
                      Tensor **results, void **pointers)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < h->n_params; k++) {
        pointers[n++] = args[k]->data;
    }
    for (uint32_t k = 0; k < h->n_results; k++) {
        const HeadResult *r = &h->results[k];
        results[k] = head_new_result(b->ctx, b->arena, r, dims);
        if (results[k] == NULL) {
            return false;
        }
        if (r->param >= 0) {
            pointers[r->param] = results[k]->data;
        } else {
            pointers[n++] = results[k]->data;
        }
    }
    return true;
}

static void reset_inout(const Head *h, Tensor *const *args, Tensor **results)
{
    for (uint32_t k = 0; k < h->n_results; k++) {
        int32_t param = h->results[k].param;
        if (param >= 0 && results[k]->count > 0) {
            memcpy(results[k]->data, args[param]->data,
                   (size_t)(results[k]->count * dtype_bytes(results[k]->dtype)));
        }
    }
}

static int compare_times(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

bool c_library_call(CLibrary *b, const Head *h, const char *symbol, const int64_t *dims,
                    Tensor *const *args, Tensor **results, CTiming *timing)
{
    const tdsl_kernel_info *info = find_kernel(b, symbol);
    if (info == NULL) {
        return false;
    }
    void **pointers = ARENA_ARRAY(b->arena, (size_t)h->n_params + h->n_results, void *);
    b->has_threads |= timing->threads > 1;
    const tdsl_threads threads = {.count = timing->threads};
    size_t bytes = info->workspace_bytes_threads(dims, threads.count);
    if (bytes == SIZE_MAX) {
        return fail(b, "cannot run the kernel", "the size of its workspace overflows");
    }
    if (!make_call(b, h, dims, args, results, pointers)) {
        return false;
    }
    void *workspace = NULL;
    if (bytes > 0 && posix_memalign(&workspace, 64, bytes) != 0) {
        return fail(b, "cannot run the kernel",
                    str_format(b->arena, "no memory for %zu bytes of workspace", bytes));
    }
    double *seconds = ARENA_ARRAY(b->arena, (size_t)timing->repeat + 1, double);
    tdsl_status status = TDSL_OK;
    for (int64_t k = 0; k <= timing->repeat && status == TDSL_OK; k++) {
        reset_inout(h, args, results);
        double start = tool_clock();
        status = info->call_threads(dims, pointers, workspace, bytes, &threads);
        seconds[k] = tool_clock() - start; /* the first is the warm call */
    }
    free(workspace);
    if (status != TDSL_OK) {
        return fail(b, "the kernel returned a failure",
                    str_format(b->arena, "status %d", (int)status));
    }
    timing->multiply_adds = info->multiply_adds(dims);
    if (timing->repeat > 0) {
        size_t n = (size_t)timing->repeat;
        qsort(seconds + 1, n, sizeof *seconds, compare_times);
        timing->least = seconds[1];
        timing->median = (seconds[1 + (n - 1) / 2] + seconds[1 + n / 2]) / 2;
    }
    return true;
}
