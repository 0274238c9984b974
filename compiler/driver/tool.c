/* SPDX-License-Identifier: Apache-2.0 */
/* See tool.h. The only place that prints messages and decides exit statuses. */
#include "driver/tool.h"

#include <tdsl/dist.h>

#include "driver/explain.h"
#include "driver/report/report.h"
#include "driver/reproducer.h"
#include "driver/sarif.h"
#include "driver/targets.h"
#include "tdsl/abi.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

/* All memory of one compilation. tdsl-run has what the machine has: its arrays may be as large. */
#define MEMORY_LIMIT ((size_t)4 << 30)
/* An input larger than this is refused: exit 4. */
#define INPUT_LIMIT ((size_t)64 << 20)

static void out_of_memory(void *user, size_t bytes)
{
    const ToolRun *t = user;
    const MemoryBudget *budget = &t->ctx.budget;
    size_t needed = bytes > SIZE_MAX - budget->wanted ? SIZE_MAX : bytes + budget->wanted;
    fprintf(stderr, "%s: error[E0602]: limit: %zu MiB of memory would be needed, %s %zu MiB\n",
            tool_name(t->options.tool), (needed >> 20) + 1,
            t->options.tool == TOOL_RUN ? "this machine has" : "a compilation may have",
            budget->limit >> 20);
    _exit(4);
}

/* Bytes of this machine, or of the control group that this process is in where that is less. */
static size_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    unsigned long long all = pages > 0 && page > 0
                                 ? (unsigned long long)pages * (unsigned long long)page
                                 : (unsigned long long)MEMORY_LIMIT;
    static const char *const groups[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t k = 0; k < sizeof groups / sizeof groups[0]; k++) {
        FILE *file = fopen(groups[k], "r");
        unsigned long long most = 0;
        if (file != NULL && fscanf(file, "%llu", &most) == 1 && most > 0 && most < all) {
            all = most;
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    return all > SIZE_MAX ? SIZE_MAX : (size_t)all;
}

double tool_clock(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double tool_thread_clock(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool tool_read(ToolRun *t, const char *path, Str *out)
{
    const char *why = NULL;
    if (file_read(&t->arena, path, INPUT_LIMIT, out, &why)) {
        return true;
    }
    return diag_refuse(&t->ctx.diags, E_FILE, (Span){0}, "%s", why);
}

static void flush(FILE *to, const Text *text)
{
    (void)fwrite(text->at, 1, text->n, to);
}

static bool set_warnings(ToolRun *t)
{
    Diags *d = &t->ctx.diags;
    d->no_warnings = option_given(&t->options, OPT_QUIET);
    const OptionValues *v = &t->options.given[OPT_WARNING];
    for (uint32_t k = 0; k < v->at.n; k++) {
        const char *name = v->at.at[k];
        bool off = strncmp(name, "no-", 3) == 0;
        bool known = strcmp(name + (off ? 3 : 0), "error") == 0;
        d->warnings_are_errors = known ? !off : d->warnings_are_errors;
        for (DiagCode code = 0; !known && code < DIAG_COUNT; code++) {
            const char *text = diag_code_text(code);
            if (strncmp(text, "-W", 2) == 0 && strcmp(text + 2, name + (off ? 3 : 0)) == 0) {
                d->disabled[code] = off;
                known = true;
            }
        }
        if (!known) {
            return usage_error(&t->usage, "unknown warning '-W%s'", name);
        }
    }
    return true;
}

/* The first message that a legal program must never meet; null: none. */
static Diagnostic *own_fault(const ToolRun *t)
{
    for (uint32_t k = 0; t->stages_are_ours && k < t->ctx.diags.list.n; k++) {
        if (t->ctx.diags.list.at[k]->code == E_DUMP) {
            return t->ctx.diags.list.at[k];
        }
    }
    return NULL;
}

static int exit_status(ToolRun *t, bool ok)
{
    if (usage_is_wrong(&t->usage)) {
        return 2;
    }
    if (own_fault(t) != NULL) {
        return 70;
    }
    for (uint32_t k = 0; k < t->ctx.diags.list.n; k++) {
        const Diagnostic *d = t->ctx.diags.list.at[k];
        if (d->severity != SEVERITY_WARNING && (d->code == E_FILE || d->code == E_RUN)) {
            return d->code == E_FILE ? 3 : 5;
        }
    }
    int status = diags_exit_code(&t->ctx.diags);
    return status == 0 && !ok ? 1 : status;
}

static void write_files(ToolRun *t)
{
    const char *why = NULL;
    FilesStatus status = files_commit(&t->files, &why);
    if (status == FILES_REFUSED) {
        (void)usage_error(&t->usage, "%s", why);
    } else if (status == FILES_FAILED) {
        diag_error(&t->ctx.diags, E_FILE, (Span){0}, "%s", why);
    }
}

/* --color, then NO_COLOR (no-color.org), CLICOLOR_FORCE (bixense.com/clicolors), then a terminal. */
static bool wants_color(const ToolRun *t)
{
    const char *color = option_last(&t->options, OPT_COLOR, "auto");
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    if (strcmp(color, "auto") != 0) {
        return strcmp(color, "always") == 0;
    }
    if (no != NULL && no[0] != '\0') {
        return false;
    }
    return (force != NULL && force[0] != '\0' && strcmp(force, "0") != 0) ||
           isatty(STDERR_FILENO);
}

static bool check_color(ToolRun *t)
{
    const char *form = option_last(&t->options, OPT_DIAGNOSTICS, "text");
    if (strcmp(form, "text") != 0 && strcmp(form, "json") != 0 && strcmp(form, "sarif") != 0) {
        return usage_error(&t->usage, "'--diagnostics=%s': text, json or sarif", form);
    }
    const char *color = option_last(&t->options, OPT_COLOR, "auto");
    bool ok = strcmp(color, "auto") == 0 || strcmp(color, "always") == 0 ||
              strcmp(color, "never") == 0;
    if (!ok) {
        return usage_error(&t->usage, "'--color=%s': auto, always or never", color);
    }
    return true;
}

/* Of several ranks the first one answers. */
static bool is_first(const ToolRun *t)
{
    return t->comm == NULL || t->comm->rank == 0;
}

static void print_messages(ToolRun *t, int status)
{
    if (!is_first(t) && !t->speaks) {
        return;
    }
    Text messages = text_new(&t->arena);
    const char *form = option_last(&t->options, OPT_DIAGNOSTICS, "text");
    if (strcmp(form, "sarif") == 0) {
        sarif_render(&t->ctx.diags, &t->usage, TDSL_VERSION, status, &messages);
    } else if (strcmp(form, "json") == 0) {
        diags_render_json(&t->ctx.diags, &messages);
        usage_render_json(&t->usage, &messages);
    } else {
        diags_render(&t->ctx.diags, &messages, wants_color(t));
        usage_render(&t->usage, &messages);
    }
    flush(stderr, &messages);
}

static int answer(ToolRun *t, bool (*run)(ToolRun *))
{
    bool ok = check_color(t) && set_warnings(t) && run(t);
    const char *reproducer = option_last(&t->options, OPT_REPRODUCER, NULL);
    ok = (reproducer == NULL || usage_is_wrong(&t->usage) || reproducer_write(t, reproducer)) &&
         ok;
    if (exit_status(t, ok) == 0 &&
        is_first(t)) { /* nothing is written by a command that fails */
        write_files(t);
    }
    Diagnostic *fault = own_fault(t);
    if (fault != NULL) {
        diag_because(fault,
                     "this is a defect of the compiler, not of your program; please report it");
        if (t->options.tool == TOOL_RUN) {
            diag_help(fault, "tdslc --reproducer=FILE, with the same file and options, writes "
                             "what repeats it");
        }
    }
    print_messages(t, exit_status(t, ok));
    if (fault != NULL && t->options.tool == TOOL_TDSLC && reproducer == NULL) {
        reproducer_on_failure(t);
    }
    return exit_status(t, ok);
}

static void print_version(ToolRun *t, Text *out)
{
    const char *form = option_last(&t->options, OPT_VERSION, "");
    const char *name = tool_name(t->options.tool);
    if (strcmp(form, "json") == 0) {
        text_printf(out,
                    "{\"tool\": \"%s\", \"version\": \"%s\", \"interface\": %d, \"dump\": 1, "
                    "\"report\": %d, \"diagnostics\": %d, \"targets\": [",
                    name, TDSL_VERSION, TDSL_ABI_VERSION, REPORT_JSON_VERSION,
                    DIAGNOSTICS_JSON_VERSION);
        for (uint32_t k = 0; target_at(k) != NULL; k++) {
            text_printf(out, "%s\"%s\"", k == 0 ? "" : ", ", target_at(k)->name);
        }
        text_put(out, "]}\n");
    } else if (form[0] == '\0') {
        text_printf(out, "%s %s\n", name, TDSL_VERSION);
    } else {
        (void)usage_error(&t->usage, "'--version=%s': json, or nothing", form);
    }
}

static void print_help(ToolRun *t, Text *out)
{
    const char *what = option_last(&t->options, OPT_HELP, "");
    if (strcmp(what, "env") == 0) {
        options_help_environment(t->options.tool, out);
    } else if (what[0] == '\0') {
        options_help(t->options.tool, out);
    } else if (!manual_print(t->options.tool, what, TDSL_VERSION, out)) {
        (void)usage_error(&t->usage, "'--help=%s': env, man, bash, zsh, fish, or nothing",
                          what);
    }
}

/* What is answered without an input. True: it was asked for. */
static bool answer_alone(ToolRun *t, Text *out)
{
    if (option_given(&t->options, OPT_HELP)) {
        print_help(t, out);
    } else if (option_given(&t->options, OPT_VERSION)) {
        print_version(t, out);
    } else if (option_given(&t->options, OPT_EXPLAIN)) {
        const char *code = option_last(&t->options, OPT_EXPLAIN, "");
        if (!explain_code(code, out)) {
            (void)usage_error(&t->usage, "no message has the code '%s'", code);
        }
    } else {
        return false;
    }
    return true;
}

/* Arenas come and go: what they free stays with the process, which would have to clear each page again. */
static void keep_pages(void)
{
#if defined(__GLIBC__)
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 26);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 22);
#endif
}

int tool_main(Tool tool, int argc, char **argv, const struct tdsl_comm *comm,
              bool (*run)(ToolRun *))
{
    ToolRun t = {.comm = comm};
    if (tool != TOOL_RUN) {
        keep_pages();
    }
    ctx_init(&t.ctx);
    t.ctx.budget.limit = tool == TOOL_RUN ? machine_memory() : MEMORY_LIMIT;
    t.ctx.budget.trap = out_of_memory;
    t.ctx.budget.user = &t;
    t.options.tool = tool;
    t.ctx.diags.tool = tool_name(tool);
    check_on_failure(tool_name(tool), NULL, NULL);
    arena_init(&t.arena, &t.ctx.budget);
    usage_init(&t.usage, &t.arena, tool_name(tool));
    t.files.arena = &t.arena;
    Text out = text_new(&t.arena);
    int status = 2;
    if (!options_parse(&t.options, &t.arena, tool, argc, argv, &t.usage)) {
        print_messages(&t, 2);
    } else if (answer_alone(&t, &out)) {
        status = usage_is_wrong(&t.usage) ? 2 : 0;
        if (is_first(&t)) {
            flush(stdout, &out);
        }
        print_messages(&t, status);
    } else {
        check_on_failure(tool_name(tool), tool == TOOL_TDSLC ? reproducer_on_failure : NULL,
                         &t);
        status = answer(&t, run);
    }
    if (fflush(stdout) != 0 && status == 0) {
        status = 3;
    }
    check_on_failure(tool_name(tool), NULL, NULL);
    arena_release(&t.arena);
    ctx_release(&t.ctx);
    return status;
}
