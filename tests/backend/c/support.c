/* SPDX-License-Identifier: Apache-2.0 */
/* Suites of kernels for the C target (support.h). Arguments lie right before a page that must not be touched, with a
 * pattern before them; the data are small integers, so that every order of sums gives the same bits. */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS */
#include "support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tdsl/abi.h"
#include "support/command.h"
#include "support/places.h"
#include "support/quick.h"
#include "loop/loop_eval.h"
#include "loop/loop_text.h"
#include "loop/loop_verify.h"

#define WARNINGS                                                                               \
    "-std=c11 -pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wcast-qual "    \
    "-Wcast-align -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wdouble-promotion "        \
    "-Wformat=2 -Wvla -Wfloat-equal -Werror"

/* The form for machines with 64-byte vectors, without what asks for such a machine: no target
 * attribute is left, no vector is held in a register, the question is answered with yes, and the
 * compiler makes the vectors of the registers it has. */
#define ANY_MACHINE                                                                            \
    "'-Dtarget(x)=' -DTDSL_NO_BUILTINS '-DTDSL_HOLD(x)=(void)(x)' "                            \
    "'-D__builtin_cpu_supports(x)=1' -Wno-psabi"

#define PAGE ((size_t)4096)

typedef struct Job {
    uint32_t kernel;
    int64_t dims[MOST_DIMS];
    Tensor **args;     /* [args of the kernel]; null for results */
    Tensor **results;  /* of results and inout arguments, in their order */
    int64_t workspace; /* bytes it must ask for, or -1: as it likes */
} Job;

struct Suite {
    Ctx ctx;
    const char *name;
    KernelModule tiled, legal;
    VEC(Job) jobs;
};

const char *messages(Ctx *ctx)
{
    Text t;
    text_init(&t, &ctx->arena);
    diags_render(&ctx->diags, &t, false);
    return t.at;
}

KernelModule *read_module(Ctx *ctx, const char *text)
{
    uint32_t source = source_add(&ctx->sources, "test.loop", str_from(text), (Span){0, 0, 0});
    KernelModule *m = kernel_module_read(ctx, source);
    if (m == NULL) {
        fail_msg("%s%s", messages(ctx), text);
    }
    return m;
}

Suite *suite_new(const char *name)
{
    Suite *s = calloc(1, sizeof *s);
    assert_non_null(s);
    ctx_init(&s->ctx);
    s->name = name;
    s->tiled.arena = s->legal.arena = &s->ctx.arena;
    return s;
}

static const char *zero_of(DType t)
{
    if (dtype_is_complex(t)) {
        return "complex(0.0, 0.0)";
    }
    return t == DTYPE_BOOL ? "false" : dtype_is_int(t) ? "0" : "0.0";
}

static void put_filled(Text *out, const char *body, DType t, const char *const *words)
{
    for (const char *p = body; *p != '\0'; p++) {
        if (strncmp(p, "{T}", 3) == 0) {
            text_put(out, dtype_name(t));
            p += 2;
        } else if (strncmp(p, "{0}", 3) == 0) {
            text_put(out, zero_of(t));
            p += 2;
        } else if (p[0] == '#' && p[1] >= '1' && p[1] <= '9') {
            text_put(out, words[p[1] - '1']);
            p++;
        } else {
            text_char(out, *p);
        }
    }
}

Kernel *c_legal(Ctx *ctx, Arena *arena, const Kernel *k)
{
    Kernel *legal = NULL;
    for (const TargetPass *pass = target_c.passes; pass->name != NULL; pass++) {
        legal = pass->run(&target_c, ctx, arena, k);
        assert_non_null(legal);
        if (!loop_verify(ctx, legal, pass->name)) {
            Text t;
            text_init(&t, arena);
            diags_render(&ctx->diags, &t, false);
            fail_msg("%s", t.at);
        }
        k = legal;
    }
    return legal;
}

CaseId suite_kernel(Suite *s, const char *body, DType t, const char *const *words)
{
    Text text;
    text_init(&text, &s->ctx.arena);
    text_printf(&text, "tdsl-dump loop 1\nkernel k%u {\n  form tiled\n", s->tiled.kernels.n);
    put_filled(&text, body, t, words);
    text_put(&text, "}\n");
    KernelModule *m = read_module(&s->ctx, text.at);
    Kernel *k = m->kernels.at[0];
    Kernel *legal = c_legal(&s->ctx, &s->ctx.arena, k);
    assert_non_null(legal);
    if (!target_c.verify(&target_c, &s->ctx, legal)) {
        Text dump;
        text_init(&dump, &s->ctx.arena);
        kernel_dump(legal, &dump);
        fail_msg("%s%s%s", text.at, dump.at, messages(&s->ctx));
    }
    vec_push(&s->ctx.arena, &s->tiled.kernels, k);
    vec_push(&s->ctx.arena, &s->legal.kernels, legal);
    return (CaseId){s->tiled.kernels.n - 1};
}

/* ---- data ---- */

static Tensor *argument_tensor(Suite *s, const Kernel *k, uint32_t arg, const int64_t *dims,
                               uint64_t seed)
{
    const Buffer *b = &k->bufs.at[k->args.at[arg].buf];
    int64_t extent[RANK_LIMIT];
    for (uint32_t d = 0; d < b->rank; d++) {
        extent[d] = b->extent[d].sym < 0 ? b->extent[d].n : dims[b->extent[d].sym];
    }
    Tensor *t =
        tensor_new(&s->ctx, &s->ctx.arena, b->dtype, b->rank, b->rank == 0 ? NULL : extent);
    assert_non_null(t);
    Rng rng = {seed * 31 + arg};
    for (int64_t i = 0; i < t->count; i++) {
        Number v = {.dtype = DTYPE_C128, .re = (double)rng_below(&rng, 7) - 3.0};
        v.im = dtype_is_complex(b->dtype) ? (double)rng_below(&rng, 5) - 2.0 : 0.0;
        if (b->dtype == DTYPE_BOOL) {
            v = number_int(DTYPE_BOOL, (int64_t)rng_below(&rng, 2));
        }
        tensor_set(t, i, number_cast(v, b->dtype));
    }
    return t;
}

static size_t tensor_bytes(const Tensor *t)
{
    return (size_t)t->count * (size_t)dtype_bytes(t->dtype);
}

static uint32_t n_outputs(const Kernel *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->args.n; i++) {
        n += k->args.at[i].role == ARG_RESULT || k->args.at[i].role == ARG_INOUT ? 1 : 0;
    }
    return n;
}

static void dump_both(Suite *s, uint32_t kernel, Text *out)
{
    text_init(out, &s->ctx.arena);
    kernel_dump(s->tiled.kernels.at[kernel], out);
    kernel_dump(s->legal.kernels.at[kernel], out);
}

void suite_run(Suite *s, CaseId id, const int64_t *dims)
{
    const Kernel *k = s->tiled.kernels.at[id.kernel], *legal = s->legal.kernels.at[id.kernel];
    Arena *a = &s->ctx.arena;
    Job job = {.kernel = id.kernel, .workspace = -1};
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        job.dims[d] = dims[d];
    }
    uint32_t n = n_outputs(k);
    job.args = ARENA_ARRAY(a, k->args.n + 1, Tensor *);
    job.results = ARENA_ARRAY(a, n + 1, Tensor *);
    Tensor **again = ARENA_ARRAY(a, n + 1, Tensor *);
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (k->args.at[i].role != ARG_RESULT) {
            job.args[i] = argument_tensor(s, k, i, job.dims, s->jobs.n + 1);
        }
    }
    Text dump;
    if (!loop_eval(&s->ctx, a, k, job.dims, job.args, job.results) ||
        !loop_eval(&s->ctx, a, legal, job.dims, job.args, again)) {
        dump_both(s, id.kernel, &dump);
        fail_msg("%s%s", dump.at, messages(&s->ctx));
    }
    for (uint32_t r = 0; r < n; r++) {
        size_t bytes = tensor_bytes(job.results[r]);
        if (bytes > 0 && memcmp(job.results[r]->data, again[r]->data, bytes) != 0) {
            dump_both(s, id.kernel, &dump);
            fail_msg("%sthe two differ in result %u for dims %lld %lld %lld %lld", dump.at, r,
                     (long long)job.dims[0], (long long)job.dims[1], (long long)job.dims[2],
                     (long long)job.dims[3]);
        }
    }
    vec_push(a, &s->jobs, job);
}

void suite_run_in(Suite *s, CaseId id, const int64_t *dims, int64_t workspace)
{
    suite_run(s, id, dims);
    s->jobs.at[s->jobs.n - 1].workspace = workspace;
}

/* ---- compiling ---- */

void emit_module(Ctx *ctx, const KernelModule *m, bool with_header, Str *c, Str *h)
{
    OutputSet set = {.arena = &ctx->arena};
    EmitOptions options = {.source_name = "test.tdsl", .tool_version = "0"};
    options.header_name = with_header ? "kernels.h" : NULL;
    assert_true(target_c.emit(&target_c, ctx, m, &options, &set));
    assert_int_equal(set.files.n, with_header ? 2 : 1);
    *c = set.files.at[0].text;
    if (with_header) {
        *h = set.files.at[1].text;
    }
}

static void write_file(const char *path, Str text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text.at, 1, text.n, f), text.n);
    assert_int_equal(fclose(f), 0);
}

int compile_text(const char *compiler, const char *flags, Str c, Str h, const char *name,
                 char *library, size_t size)
{
    char folder[512], command[4096];
    (void)snprintf(folder, sizeof folder, "%s/c-%s", build_file("tests"), name);
    (void)mkdir(folder, 0777);
    (void)snprintf(command, sizeof command, "%s/kernels.c", folder);
    write_file(command, c);
    if (h.at != NULL) {
        (void)snprintf(command, sizeof command, "%s/kernels.h", folder);
        write_file(command, h);
    }
    (void)snprintf(library, size, "%s/%s.so", folder, compiler);
    (void)snprintf(command, sizeof command,
                   "cd '%s' && %s %s %s -shared -fPIC -o '%s' kernels.c -lm", folder, compiler,
                   WARNINGS, flags, library);
    return command_succeeds("compile", command) ? 0 : 1;
}

/* ---- running ---- */

/* Memory of exactly `bytes` bytes that ends where a forbidden page begins. */
typedef struct Guarded {
    unsigned char *base, *data;
    size_t pages, bytes;
} Guarded;

static Guarded guarded_new(size_t bytes)
{
    Guarded g = {.bytes = bytes};
    g.pages = (bytes + PAGE - 1) / PAGE + 2;
    g.base =
        mmap(NULL, g.pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.base != MAP_FAILED);
    assert_int_equal(mprotect(g.base + (g.pages - 1) * PAGE, PAGE, PROT_NONE), 0);
    g.data = g.base + (g.pages - 1) * PAGE - bytes;
    memset(g.base, 0xa5, (g.pages - 1) * PAGE);
    return g;
}

static void guarded_check_and_free(Guarded *g)
{
    for (const unsigned char *p = g->base; p < g->data; p++) {
        assert_int_equal(*p, 0xa5);
    }
    assert_int_equal(munmap(g->base, g->pages * PAGE), 0);
}

static void job_run(Suite *s, const Job *job, const tdsl_kernel_info *info,
                    const char *compiler)
{
    const Kernel *k = s->tiled.kernels.at[job->kernel];
    Guarded memory[32];
    void *args[32];
    assert_true(k->args.n <= 32);
    assert_int_equal(info->n_args, k->args.n);
    uint32_t r = 0; /* as loop_eval gives them: results and inout arguments in their order */
    uint32_t *output = ARENA_ARRAY(&s->ctx.arena, k->args.n + 1, uint32_t);
    for (uint32_t i = 0; i < k->args.n; i++) {
        bool out = k->args.at[i].role == ARG_RESULT || k->args.at[i].role == ARG_INOUT;
        output[i] = out ? r++ : UINT32_MAX;
        const Tensor *t = job->args[i] != NULL ? job->args[i] : job->results[output[i]];
        memory[i] = guarded_new(tensor_bytes(t));
        if (job->args[i] != NULL) {
            memcpy(memory[i].data, t->data, tensor_bytes(t));
        }
        args[i] = t->count == 0 ? NULL : memory[i].data;
    }
    size_t bytes = info->workspace_bytes(job->dims);
    assert_true(bytes != SIZE_MAX);
    assert_int_equal(bytes % 64, 0);
    if (job->workspace >= 0 && job->workspace != (int64_t)bytes) {
        Text dump;
        dump_both(s, job->kernel, &dump);
        fail_msg("%s%zu bytes, not %lld", dump.at, bytes, (long long)job->workspace);
    }
    /* Of exactly these bytes, at every address: what follows the last one must stay as it is.
     */
    size_t after = (size_t)(job - s->jobs.at) * 7 % 64;
    Guarded workspace = guarded_new(bytes + after);
    int status = info->call(job->dims, args, bytes > 0 ? workspace.data : NULL, bytes);
    assert_int_equal(status, TDSL_OK);
    if (bytes > 0) { /* too little is refused */
        assert_int_equal(info->call(job->dims, args, workspace.data, bytes - 1),
                         TDSL_E_WORKSPACE);
        assert_int_equal(info->call(job->dims, args, NULL, bytes), TDSL_E_WORKSPACE);
    }
    for (size_t at = bytes; at < bytes + after; at++) {
        assert_int_equal(workspace.data[at], 0xa5);
    }
    guarded_check_and_free(&workspace);
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Tensor *t = output[i] != UINT32_MAX ? job->results[output[i]] : job->args[i];
        if (memory[i].bytes > 0 && memcmp(memory[i].data, t->data, memory[i].bytes) != 0) {
            Text dump;
            dump_both(s, job->kernel, &dump);
            fail_msg("%s%s: argument %u differs for dims %lld %lld %lld %lld", dump.at,
                     compiler, i, (long long)job->dims[0], (long long)job->dims[1],
                     (long long)job->dims[2], (long long)job->dims[3]);
        }
        guarded_check_and_free(&memory[i]);
    }
}

static void library_run(Suite *s, const char *library, const char *compiler)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fail_msg("%s", dlerror());
    }
    for (uint32_t j = 0; j < s->jobs.n; j++) {
        const Job *job = &s->jobs.at[j];
        char name[32];
        (void)snprintf(name, sizeof name, "k%u_info", job->kernel);
        const tdsl_kernel_info *info = dlsym(handle, name);
        assert_non_null(info);
        job_run(s, job, info, compiler);
    }
    assert_int_equal(dlclose(handle), 0);
}

/* Has this machine what C for `isa` needs? Else the vectors are there all the same, as the compiler makes them. */
static const char *isa_flags(const char *isa, char *text, size_t size)
{
    bool there = true;
#if defined(__x86_64__)
    there = strcmp(isa, "avx512") == 0
                ? __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")
                : strcmp(isa, "avx2") != 0 ||
                      (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#endif
    (void)snprintf(text, size, "-O0 -DTDSL_ISA=%s %s", isa, there ? "" : ANY_MACHINE);
    return text;
}

/* The kernels' C is in the folder: compiled with these flags it gives the right numbers. */
static void compiler_run(Suite *s, uint32_t number, const char *compiler, const char *flags,
                         const char *what, Str c, Str h)
{
    char library[600], name[64];
    (void)snprintf(name, sizeof name, "%s%u", s->name, number);
    if (compile_text(compiler, flags, c, h, name, library, sizeof library) != 0) {
        fail_msg("%s does not like %s/c-%s/kernels.c", what, build_file("tests"), name);
    }
    library_run(s, library, what);
}

static void suite_compile(Suite *s, bool all)
{
    Str c, h;
    emit_module(&s->ctx, &s->legal, true, &c, &h);
    /* A library under AddressSanitizer can only be loaded into a program that is, too; the rest is then left to builds
     * that are not. */
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
    bool sanitized = true;
#else
    bool sanitized = false;
#endif
    static const struct {
        bool sanitized, plain;
        const char *compiler, *flags, *what;
    } rows[] = {
        {false, true, "gcc", "-O2 -Wstack-usage=20480", "gcc"},
        {false, true, "clang", "-O1", "clang"},
        {true, true, "gcc", "-O0 -DTDSL_ISA=plain", "gcc without vectors"},
        {false, true, "gcc", "-O0 -DTDSL_ISA=vectors", "gcc with narrow vectors"},
        {false, true, "gcc", ANY_MACHINE " -O0", "gcc with 64-byte vectors on any machine"},
        {false, true, "clang", ANY_MACHINE " -O0", "clang with 64-byte vectors on any machine"},
        {true, false, "gcc", "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
         "gcc with sanitizers"},
    };
    /* The quick set takes three instruction sets, where all are asked for; else what has none, what has all. */
    bool quick = one_of(2) > 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (quick && !sanitized && (all || (i != 2 && i != 4))) {
            continue;
        }
        if (sanitized ? !rows[i].sanitized : !rows[i].plain) {
            continue;
        }
        compiler_run(s, (uint32_t)i, rows[i].compiler, rows[i].flags, rows[i].what, c, h);
    }
    static const char *const isas[] = {"plain", "vectors", "neon", "avx2", "avx512"};
    for (uint32_t i = 0; i < 10 && all && !sanitized; i += one_of(4)) {
        char flags[200], what[64];
        const char *compiler = i % 2 == 0 ? "gcc" : "clang";
        (void)snprintf(what, sizeof what, "%s for %s", compiler, isas[i / 2]);
        compiler_run(s, 20 + i, compiler, isa_flags(isas[i / 2], flags, sizeof flags), what, c,
                     h);
    }
    ctx_release(&s->ctx);
    free(s);
}

void suite_finish(Suite *s)
{
    suite_compile(s, false);
}

void suite_finish_all(Suite *s)
{
    suite_compile(s, true);
}
