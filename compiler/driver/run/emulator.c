/* SPDX-License-Identifier: Apache-2.0 */
/* See emulator.h. The kernel is that of the last manifest of the output set, which names its
 * program, or several; results come in the order of the kernel's arguments: inout
 * parameters, written or not, then plain results. POSIX. */
#include "driver/run/emulator.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/files.h"
#include "driver/scratch.h"
#include "driver/targets.h"

typedef struct Emulation {
    Ctx *ctx;
    Arena *arena;
    const Head *h;
    Scratch scratch;
    VEC(const char *) argv;
} Emulation;

const Target *emulated_target(const char *name)
{
    for (uint32_t i = 0; target_at(i) != NULL; i++) {
        const Target *t = target_at(i);
        bool emulated =
            !t->machine->open_extents; /* bound when compiled, as an emulated kernel is */
        if (emulated && (strcmp(name, "emulator") == 0 || strcmp(name, t->name) == 0)) {
            return t;
        }
    }
    return NULL;
}

static bool fail(Emulation *e, const char *what, const char *detail)
{
    return diag_refuse(&e->ctx->diags, E_RUN, (Span){0}, "%s: %s", what, detail);
}

static void word(Emulation *e, const char *text)
{
    vec_push(e->arena, &e->argv, text);
}

static Str bytes_of(const Tensor *t)
{
    return (Str){t->data, (size_t)(t->count * dtype_bytes(t->dtype))};
}

static bool is_program(const OutputFile *f)
{
    return f->name != NULL && strcmp(f->suffix, ".py") == 0;
}

/* The program of the same name as a manifest, or null: a manifest of several programs has none.
 */
static const OutputFile *program_of(const OutputSet *set, const OutputFile *manifest)
{
    for (uint32_t k = 0; k < set->files.n; k++) {
        const OutputFile *f = &set->files.at[k];
        if (is_program(f) && strcmp(f->name, manifest->name) == 0) {
            return f;
        }
    }
    return NULL;
}

/* The kernel's manifest: the last one is of the whole. */
static const OutputFile *find_manifest(const OutputSet *set)
{
    const OutputFile *found = NULL;
    for (uint32_t k = 0; k < set->files.n; k++) {
        const OutputFile *f = &set->files.at[k];
        found = f->name != NULL && strcmp(f->suffix, ".json") == 0 ? f : found;
    }
    return found;
}

/* The programs, their manifests and the arrays; the command line beside them. */
static bool write_all(Emulation *e, const OutputSet *set, Tensor *const *args)
{
    const OutputFile *manifest = find_manifest(set);
    if (manifest == NULL) {
        return fail(e, "cannot emulate the kernel", "the target printed no program");
    }
    const OutputFile *program = program_of(set, manifest);
    bool ok = true;
    for (uint32_t k = 0; ok && k < set->files.n; k++) {
        const OutputFile *f = &set->files.at[k];
        bool of_kernel =
            program == NULL || (f->name != NULL && strcmp(f->name, manifest->name) == 0);
        if (of_kernel && f->name != NULL &&
            (is_program(f) || strcmp(f->suffix, ".json") == 0)) {
            const char *name = str_format(e->arena, "%s%s", f->name, f->suffix);
            ok = scratch_write(&e->scratch, scratch_path(&e->scratch, name), f->text);
        }
    }
    word(e, "-");
    word(e, "--manifest");
    word(e, scratch_path(&e->scratch, str_format(e->arena, "%s.json", manifest->name)));
    word(e, "--raw");
    for (uint32_t k = 0; ok && k < e->h->n_params; k++) {
        const char *path = scratch_path(&e->scratch, str_format(e->arena, "in%u", k));
        ok = scratch_write(&e->scratch, path, bytes_of(args[k]));
        word(e, "--in");
        word(e, path);
    }
    return ok;
}

static bool read_result(Emulation *e, const char *path, const int64_t *dims, uint32_t r,
                        Tensor **out)
{
    *out = head_new_result(e->ctx, e->arena, &e->h->results[r], dims);
    Str bytes = {0};
    const char *why = NULL;
    if (*out == NULL || !file_read(e->arena, path, FILE_LIMIT, &bytes, &why)) {
        return *out != NULL && fail(e, "the emulator left no result", why);
    }
    if (bytes.n != bytes_of(*out).n) {
        return fail(e, "the emulator's result has another size", path);
    }
    memcpy((*out)->data, bytes.at, bytes.n);
    return true;
}

#define NO_RESULT                                                                              \
    UINT32_MAX /* an inout parameter that no statement writes comes back as it was */

static uint32_t result_of(const Head *h, int32_t param)
{
    for (uint32_t r = 0; r < h->n_results; r++) {
        if (h->results[r].param == param) {
            return r;
        }
    }
    return NO_RESULT;
}

/* Results in the kernel's order of arguments. */
static uint32_t result_order(Emulation *e, uint32_t **order)
{
    uint32_t n = 0;
    *order = ARENA_ARRAY(e->arena, e->h->n_results + e->h->n_params, uint32_t);
    for (uint32_t p = 0; p < e->h->n_params; p++) {
        if (e->h->params[p].role == PARAM_INOUT) {
            (*order)[n++] = result_of(e->h, (int32_t)p);
        }
    }
    for (uint32_t r = 0; r < e->h->n_results; r++) {
        if (e->h->results[r].param < 0) {
            (*order)[n++] = r;
        }
    }
    return n;
}

static bool has_numpy(const char *python)
{
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_RDWR);
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)dup2(nowhere, STDERR_FILENO);
        (void)execlp(python, python, "-c", "import numpy", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* $TDSL_PYTHON, else a Python that has NumPy: the first one on the path need not be the system's. */
static const char *choose_python(void)
{
    const char *python = getenv("TDSL_PYTHON");
    if (python != NULL) {
        return python;
    }
    return !has_numpy("python3") && has_numpy("/usr/bin/python3") ? "/usr/bin/python3"
                                                                  : "python3";
}

/* What the variable names; else the installed one, seen from this program. */
static const char *emulator_script(Arena *arena)
{
    const char *named = getenv(TDSL_EMULATOR_VARIABLE);
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self);
    if (named != NULL) {
        return named;
    }
    if (n > 0 && (size_t)n < sizeof self) {
        const char *program = str_dup(arena, (Str){self, (size_t)n});
        const char *slash = strrchr(program, '/');
        int folder = slash == NULL ? 0 : (int)(slash - program);
        return str_format(arena, "%.*s/" TDSL_EMULATOR_FROM_TOOL, folder, program);
    }
    return TDSL_EMULATOR_FROM_TOOL;
}

#define PROFILE_FILE "profile"

static void ask_profile(Emulation *e, const RunProfile *profile)
{
    if (!profile->to_file) {
        word(e, "--report");
        word(e, "text");
    }
    word(e, profile->to_file ? "--timeline" : "--report-file");
    word(e, scratch_path(&e->scratch, PROFILE_FILE));
}

static bool read_profile(Emulation *e, RunProfile *profile)
{
    const char *why = NULL;
    return file_read(e->arena, scratch_path(&e->scratch, PROFILE_FILE), FILE_LIMIT,
                     &profile->text, &why) ||
           fail(e, "the emulator left no profile", why);
}

bool run_emulator(Ctx *ctx, Arena *arena, const OutputSet *set, const Head *h,
                  const int64_t *dims, Tensor *const *args, Tensor **results,
                  RunProfile *profile)
{
    Emulation e = {.ctx = ctx, .arena = arena, .h = h};
    const char *script = emulator_script(arena);
    word(&e, choose_python());
    word(&e, "-B");
    word(&e, script);
    if (access(e.argv.at[2], R_OK) != 0) {
        return fail(
            &e, "where is the emulator? " TDSL_EMULATOR_VARIABLE " names its run.py; not here",
            e.argv.at[2]);
    }
    if (!scratch_open(&e.scratch, ctx, arena)) {
        return false;
    }
    uint32_t *order = NULL, n = result_order(&e, &order);
    const char **out = ARENA_ARRAY(arena, n, const char *);
    bool ok = write_all(&e, set, args);
    for (uint32_t k = 0; k < n; k++) {
        out[k] = scratch_path(&e.scratch, str_format(arena, "out%u", k));
        word(&e, "--out");
        word(&e, out[k]);
    }
    if (profile->asked) {
        ask_profile(&e, profile);
    }
    word(&e, NULL);
    ok = ok && scratch_run(&e.scratch, e.argv.at, "the emulator", NULL) &&
         (!profile->asked || read_profile(&e, profile));
    for (uint32_t k = 0; ok && k < n; k++) {
        ok = order[k] == NO_RESULT ||
             read_result(&e, out[k], dims, order[k], &results[order[k]]);
    }
    scratch_close(&e.scratch);
    return ok;
}
