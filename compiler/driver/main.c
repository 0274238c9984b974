/* SPDX-License-Identifier: Apache-2.0 */
/* tdslc: arguments -> one compilation -> files, all or none -> exit status (0 done, 1 wrong
 * input, 2 wrong command line, 3 files, 4 a stated limit, 5 a program we ran, 70 internal). */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/compile.h"
#include "driver/decisions.h"
#include "driver/files.h"
#include "driver/follow.h"
#include "driver/format_tool.h"
#include "driver/input.h"
#include "driver/lsp/lsp.h"
#include "driver/path_tool.h"
#include "driver/plans.h"
#include "driver/request.h"
#include "driver/tool.h"
#include "driver/tune/tune.h"
#include "driver/watch.h"
#include "target/machine.h"

/* Where a file of the back end goes: the one output, its header beside it, or into the output
 * folder. */
static const char *place_file(ToolRun *t, const OutputFile *file, const Request *r)
{
    if (file->name != NULL) {
        return str_format(&t->arena, "%s/%s%s", r->out, file->name, file->suffix);
    }
    return strcmp(file->suffix, ".h") == 0 ? r->header : r->out;
}

/* A name as make reads it. */
static void put_name(Text *text, const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        text_put(text, *c == ' ' || *c == '#' || *c == ':' || *c == '\\' ? "\\"
                       : *c == '$'                                       ? "$"
                                                                         : "");
        text_char(text, *c);
    }
}

static void put_files(Text *text, const Input *in)
{
    text_put(text, ": ");
    for (uint32_t k = 0; k < in->files.n; k++) {
        text_put(text, k == 0 ? "" : " \\\n  ");
        put_name(text, in->files.at[k]);
    }
    text_put(text, "\n");
}

/* What was decided in files is made of them too. */
static void add_decisions(ToolRun *t, Input *in)
{
    const char *file[DECISION_FILES];
    uint32_t n = decisions_files(&t->options, file);
    for (uint32_t k = 0; k < n; k++) {
        vec_push(&t->arena, &in->files, file[k]);
    }
}

/* Rules of make for what was written. With -MP the header has one too, and each included file
 * an empty one: make goes on when the file is gone. */
static void add_depfile(ToolRun *t, const Request *r, const Input *in)
{
    Text text;
    if (r->depfile == NULL) {
        return;
    }
    text_init(&text, &t->arena);
    for (uint32_t k = 0; k < r->made->at.n; k++) {
        text_printf(&text, "%s%s", k == 0 ? "" : " ", r->made->at.at[k]);
    }
    if (r->made->at.n == 0) {
        put_name(&text, r->rule);
    }
    put_files(&text, in);
    if (r->phony && r->header != NULL && r->wrapper == NULL) {
        put_name(&text, r->header);
        put_files(&text, in);
    }
    for (uint32_t k = 1; r->phony && k < in->files.n; k++) {
        put_name(&text, in->files.at[k]);
        text_put(&text, ":\n");
    }
    files_add(&t->files, r->depfile, text_str(&text));
}

static bool write_report(ToolRun *t, const Request *r, const Compilation *c)
{
    Text text = text_new(&t->arena);
    if (c->module == NULL) {
        return diag_refuse(
            &t->ctx.diags, E_DUMP, (Span){0},
            "a kernel dump holds no decisions to report; a dump of an earlier stage "
            "does");
    }
    if (r->form == REPORT_JSON) {
        compilation_report_json(c, &text);
    } else if (r->form == REPORT_HTML) {
        compilation_report_html(c, &text);
    } else {
        compilation_report(c, &text);
    }
    files_add(&t->files, r->report, text_str(&text));
    return true;
}

static void print_times(const Compilation *c)
{
    for (uint32_t k = 0; k < c->times.n; k++) {
        fprintf(stderr, "%10.3f ms  %s\n", c->times.at[k].seconds * 1e3, c->times.at[k].pass);
    }
}

static bool setup(ToolRun *t, const Request *r, Compilation *c)
{
    const Target *target = decisions_target(t, r->target);
    if (target == NULL) {
        return false;
    }
    compilation_init(c, &t->ctx, &t->arena, target);
    c->check_each = option_given(&t->options, OPT_CHECK_EACH);
    c->clock = option_given(&t->options, OPT_TIME) ? tool_clock : NULL;
    c->emit.tool_version = TDSL_VERSION;
    if (!mesh_wish(&t->options, RANKS_MOST, &t->usage, &c->mesh)) {
        return false;
    }
    if (c->mesh.memory > 0 && !mesh_is_asked(&c->mesh)) {
        return usage_error(&t->usage, "--rank-memory goes with --ranks or --mesh");
    }
    return decisions_read(t, c);
}

/* -D binds dims of a program while it is checked. */
static void warn_defines(ToolRun *t, const Input *in)
{
    const OptionValues *v = &t->options.given[OPT_DEFINE];
    for (uint32_t k = 0; in->program == NULL && k < v->at.n; k++) {
        diag_warning(&t->ctx.diags, W_DEFINE, (Span){0}, "-D %s: %s", v->at.at[k],
                     in->dump != NULL ? "the dims of a dump stay as they are"
                                      : "the extents of -e are those of --shape");
    }
}

/* A target that makes a folder of files: -o names that folder, or is '-' for the text of one
 * kernel. */
static bool check_folder(ToolRun *t, const Compilation *c, const char *out)
{
    const OutputFile *first = c->outputs.files.n > 0 ? &c->outputs.files.at[0] : NULL;
    if (first == NULL || first->name == NULL) {
        return true;
    }
    size_t n = strlen(out), end = strlen(first->suffix);
    if (strcmp(out, "-") == 0 && c->legal != NULL && c->legal->kernels.n > 1) {
        return usage_error(&t->usage,
                           "there are %u kernels: --kernel=NAME chooses the one to print, "
                           "-o FOLDER takes all",
                           c->legal->kernels.n);
    }
    if (n > end && strcmp(out + n - end, first->suffix) == 0) {
        return usage_error(&t->usage,
                           "with --target=%s, -o names a folder for several files; '%s' "
                           "looks like a file",
                           c->target->name, out);
    }
    return true;
}

static bool emit_files(ToolRun *t, const Request *r, Compilation *c)
{
    bool header = false;
    if (!check_folder(t, c, r->out)) {
        return false;
    }
    for (uint32_t k = 0; k < c->outputs.files.n; k++) {
        const OutputFile *file = &c->outputs.files.at[k];
        if (file->name != NULL &&
            strcmp(r->out, "-") == 0) { /* no folder: the first kernel alone */
            if (k == 0) {
                files_add(&t->files, r->out, file->text);
            }
            continue;
        }
        header |= strcmp(file->suffix, ".h") == 0;
        if (file->name != NULL && k == 0) {
            files_folder(&t->files, r->out);
        }
        files_add(&t->files, place_file(t, file, r), file->text);
    }
    if (r->header_asked && !header && r->wrapper == NULL) {
        (void)usage_error(&t->usage, "target '%s' has no --header", c->target->name);
    }
    return header || !r->header_asked || r->wrapper != NULL;
}

static bool write_plan(ToolRun *t, const Request *r, const Compilation *c)
{
    Text text = text_new(&t->arena);
    if (c->decisions.list.n == 0 && option_given(&t->options, OPT_EQUATION)) {
        PathProblem p;
        PathResult decided;
        if (!path_tool_decide(t, &c->path.options, &p, &decided)) {
            return false;
        }
        path_plan_write(&text, &p, &decided, &t->arena);
        files_add(&t->files, r->plan, text_str(&text));
        return true;
    }
    if (c->decisions.list.n != 1) {
        return diag_refuse(
            &t->ctx.diags, E_PLAN, (Span){0},
            "a plan file holds one contraction of three operands or more, the program has %u",
            c->decisions.list.n);
    }
    path_plan_write(&text, &c->decisions.list.at[0].problem, &c->decisions.list.at[0].result,
                    &t->arena);
    files_add(&t->files, r->plan, text_str(&text));
    return true;
}

/* An order for an equation that has none to decide: it may still be a wrong one. */
static bool check_order(ToolRun *t, const Request *r, const Compilation *c)
{
    PathProblem p;
    PathResult decided;
    bool given = option_given(&t->options, OPT_PATH) || option_given(&t->options, OPT_PLAN_IN);
    return !given || !option_given(&t->options, OPT_EQUATION) || c->decisions.list.n > 0 ||
           r->last < STAGE_PATH || path_tool_decide(t, &c->path.options, &p, &decided);
}

/* All that was asked for, as files to be written. `store`: where a tuned plan is kept too, or null. */
static bool deliver(ToolRun *t, const Request *r, const Input *in, Compilation *c,
                    const char *store)
{
    Text text = text_new(&t->arena);
    if (r->wanted == WANT_CODE && !emit_files(t, r, c)) {
        return false;
    }
    if (r->wanted == WANT_DUMP || r->wanted == WANT_TUNED) {
        compilation_dump(c, r->last, &text);
        if (store != NULL) {
            files_folder(&t->files, plans_folder());
            files_add(&t->files, store, text_str(&text));
            diags_tell(&t->ctx.diags, "the plan is kept as '%s'", store);
        }
        if (store == NULL || option_given(&t->options, OPT_OUTPUT)) {
            files_add(&t->files, r->out, text_str(&text));
        }
    } else if (r->wanted == WANT_DOT) {
        compilation_dot(c, &text);
        files_add(&t->files, r->out, text_str(&text));
    } else if (r->wanted == WANT_JSON) {
        module_dump_json(c->module, &text);
        files_add(&t->files, r->out, text_str(&text));
    }
    add_depfile(t, r, in);
    return (r->report == NULL || write_report(t, r, c)) &&
           (r->plan == NULL || write_plan(t, r, c));
}

/* --dump-dir: the passes one by one, and a dump of what each leaves. */
static bool run_dumping(ToolRun *t, Compilation *c, uint32_t end)
{
    const char *folder = option_last(&t->options, OPT_DUMP_DIR, NULL);
    if (folder == NULL) {
        return true;
    }
    files_folder(&t->files, folder);
    for (uint32_t k = c->next; k < end; k++) {
        Pass pass = pass_at(c->target, k);
        if (!decisions_make(t, c, k + 1)) {
            return false;
        }
        if (stage_form(pass.to) == FORM_FILES || pass.without == WITHOUT_PART) {
            continue;
        }
        Text text = text_new(&t->arena);
        compilation_dump(c, pass.to, &text);
        files_add(&t->files, str_format(&t->arena, "%s/%02u-%s.dump", folder, k, pass.name),
                  text_str(&text));
    }
    return true;
}

/* Programs whose kernels are printed as one (--emit=shared): what was read and compiled of them. */
typedef struct Together {
    Text names;
    VEC(const char *) files;
    VEC(Kernel *) kernels;
} Together;

/* Takes one program more, and hands all of them over, to be printed if it is the last one. */
static void take_together(Together *all, Input *in, Compilation *c)
{
    text_printf(&all->names, all->names.n == 0 ? "%s" : ", %s", in->name);
    for (uint32_t k = 0; k < in->files.n; k++) {
        vec_push(in->arena, &all->files, in->files.at[k]);
    }
    for (uint32_t k = 0; k < c->legal->kernels.n; k++) {
        vec_push(in->arena, &all->kernels, c->legal->kernels.at[k]);
    }
    c->emit.source_name = all->names.at;
    in->files.n = 0;
    for (uint32_t k = 0; k < all->files.n; k++) {
        vec_push(in->arena, &in->files, all->files.at[k]);
    }
    c->legal->kernels.n = 0;
    for (uint32_t k = 0; k < all->kernels.n; k++) {
        vec_push(in->arena, &c->legal->kernels, all->kernels.at[k]);
    }
}

/* `together`: with others, or null. */
static bool compile(ToolRun *t, const Request *r, Compilation *c, Together *together)
{
    Input in = {.ctx = &t->ctx, .arena = &t->arena, .options = &t->options};
    double start = tool_clock();
    trace_begin(t, start);
    if (!setup(t, r, c) || !input_read(&in, NULL, 0)) {
        return false;
    }
    trace_add(t->trace, "read", "pass", start);
    for (uint32_t k = 0; k < in.files.n; k++) {
        files_input(&t->files, in.files.at[k]);
    }
    c->emit.source_name = in.name;
    c->emit.prefix = r->prefix;
    c->emit.wrapper = r->wrapper;
    c->emit.shared = r->shared;
    c->emit.warn_names = true;
    c->emit.header_name = r->header == NULL ? NULL : path_last_part(r->header);
    warn_defines(t, &in);
    if (r->last >= STAGE_NEST) {
        plans_use(t, c, &in);
    }
    if (!decisions_start(t, c, &in)) {
        return false;
    }
    const char *store = r->wanted == WANT_TUNED ? plans_file(t, c, &in) : NULL;
    bool as_text = stage_form(r->last) == FORM_TEXT;
    if (as_text && r->wanted == WANT_DUMP && in.program == NULL) {
        return diag_refuse(&t->ctx.diags, E_DUMP, (Span){0},
                           "stage '%s' is only there for a program as written",
                           stage_name(r->last));
    }
    if (r->end < c->next && !as_text) {
        bool whole = r->end == passes_until(c->target, r->last);
        return diag_refuse(&t->ctx.diags, E_DUMP, (Span){0},
                           "the input is past %s '%s' already", whole ? "stage" : "pass",
                           whole ? stage_name(r->last) : pass_at(c->target, r->end - 1).name);
    }
    t->stages_are_ours = in.dump == NULL && !decisions_given(&t->options);
    bool tuned = r->wanted == WANT_TUNED;
    if (tuned && compilation_without(c, PASS_FUSE)) {
        return usage_error(&t->usage, "--tune looks for fusion: not with --no-fuse, which is "
                                      "--without=fuse");
    }
    add_decisions(t, &in);
    if (together != NULL) {
        if (!decisions_make(t, c, passes_until(c->target, STAGE_LEGAL))) {
            return false;
        }
        take_together(together, &in, c);
    }
    if ((tuned && !tune_start(c)) || !run_dumping(t, c, r->end) ||
        !decisions_make(t, c, r->end) || !check_order(t, r, c) || !report_ranks_fit(c) ||
        (tuned && !tune(t, c, (double)r->seconds, (int32_t)r->threads)) ||
        !deliver(t, r, &in, c, store)) {
        return false;
    }
    trace_write(t);
    if (c->clock != NULL) {
        print_times(c);
    }
    return t->ctx.diags.n_errors == 0;
}

static bool list_passes(ToolRun *t)
{
    const Target *target =
        target_named(&t->arena, option_last(&t->options, OPT_TARGET, "c"), &t->usage);
    Text text = text_new(&t->arena);
    if (target == NULL) {
        return false;
    }
    passes_list(target, &text);
    files_add(&t->files, "-", text_str(&text));
    return true;
}

static bool list_targets(ToolRun *t)
{
    Text text = text_new(&t->arena);
    for (uint32_t k = 0; target_at(k) != NULL; k++) {
        const Target *target = target_at(k);
        text_printf(&text, "%-8s %s\n", target->name,
                    target->suffix == NULL ? "a folder of files" : "a file and its header");
    }
    files_add(&t->files, "-", text_str(&text));
    return true;
}

/* The bytes of a cache of this machine, where the system has a file that says it; 0: it has none. */
static int64_t cache_size(int level)
{
    char path[80];
    long long kib = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
    FILE *file = fopen(path, "r");
    bool ok = file != NULL && fscanf(file, "%9lldK", &kib) == 1;
    if (file != NULL) {
        (void)fclose(file);
    }
    return ok ? (int64_t)kib * 1024 : 0;
}

static bool print_machine(ToolRun *t)
{
    const char *name = option_last(&t->options, OPT_TARGET, "c");
    const char *which = option_last(&t->options, OPT_PRINT_MACHINE, "");
    const Target *target = target_find(name);
    Text text = text_new(&t->arena);
    if (target == NULL || target->machine->kind != MACHINE_CACHES) {
        return usage_error(&t->usage,
                           "--print-machine: there is one for target 'c', not for '%s'", name);
    }
    if (which[0] != '\0' && strcmp(which, "native") != 0) {
        return usage_error(&t->usage, "'--print-machine=%s': native, or nothing", which);
    }
    target = decisions_target(t, target);
    if (target == NULL) {
        return false;
    }
    Machine machine = *target->machine;
    if (which[0] != '\0') {
        machine_set_caches(&machine, cache_size(2), cache_size(3));
    }
    machine_print(&machine, &text);
    files_add(&t->files, option_last(&t->options, OPT_OUTPUT, "-"), text_str(&text));
    return true;
}

/* `n=3` or `n~3` is -D n=3, where no file is called so. */
static bool takes_define(ToolRun *t, const char *text)
{
    size_t name =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    int64_t value = 0;
    if (name == 0 || (text[0] >= '0' && text[0] <= '9') ||
        (text[name] != '=' && text[name] != '~') || !parse_i64(text + name + 1, &value) ||
        access(text, F_OK) == 0) {
        return false;
    }
    vec_push(&t->arena, &t->options.given[OPT_DEFINE].at, text);
    diags_tell(&t->ctx.diags, "'%s' is taken for -D %s", text, text);
    return true;
}

static void take_defines(ToolRun *t)
{
    Options *o = &t->options;
    uint32_t n = 0;
    for (uint32_t k = 0; k < o->positional.n; k++) {
        if (!takes_define(t, o->positional.at[k])) {
            o->positional.at[n++] = o->positional.at[k];
        }
    }
    o->positional.n = n;
}

static bool check_usage(ToolRun *t)
{
    take_defines(t);
    const Options *o = &t->options;
    uint32_t inputs = o->positional.n + (option_given(o, OPT_EQUATION) ? 1 : 0) +
                      (option_given(o, OPT_NETWORK) ? 1 : 0);
    for (uint32_t k = 0; k < o->positional.n; k++) {
        const char *at = o->positional.at[k];
        size_t n = strlen(at);
        if (n > 4 && strcmp(at + n - 4, ".npy") == 0) {
            usage_help(&t->usage, "--shape=3x4 tells tdslc the extents of an operand of -e");
            return usage_error(&t->usage, "'%s' is an array, which tdsl-run takes", at);
        }
    }
    bool together =
        inputs == o->positional.n && strcmp(option_last(o, OPT_EMIT, ""), "shared") == 0;
    if (inputs == 0) {
        return usage_error(&t->usage,
                           "no input: a FILE.tdsl, -e EQUATION or --network=FILE.json");
    }
    return inputs == 1 || together || usage_error(&t->usage, "more than one input");
}

static bool lsp_check_usage(ToolRun *t)
{
    if (t->options.positional.n > 0) {
        return usage_error(&t->usage, "--lsp takes no file: the editor sends texts");
    }
    return target_named(&t->arena, option_last(&t->options, OPT_TARGET, "c"), &t->usage) !=
           NULL;
}

/* --emit=shared of several programs: all are compiled before the last one's files are printed. */
static bool compile_together(ToolRun *t, const Request *r)
{
    static const OptionId single[] = {OPT_REPORT,  OPT_DUMP_DIR, OPT_NEST,   OPT_PATH,
                                      OPT_PLAN_IN, OPT_PLAN_OUT, OPT_KERNEL, OPT_WATCH};
    for (size_t k = 0; k < sizeof single / sizeof single[0]; k++) {
        if (option_given(&t->options, single[k])) {
            char name[64];
            OptionRow row = option_row(single[k]);
            return usage_error(&t->usage, "%s goes with one program",
                               option_spelling(&row, name, sizeof name));
        }
    }
    uint32_t n = t->options.positional.n;
    const char **file = arena_copy(&t->arena, t->options.positional.at, n * sizeof *file);
    Compilation *c = ARENA_ARRAY(&t->arena, n, Compilation);
    Together all = {0};
    bool ok = true;
    text_init(&all.names, &t->arena);
    for (uint32_t k = 0; ok && k < n; k++) {
        Request part = *r;
        if (k + 1 < n) {
            part.wanted = WANT_NOTHING;
            part.last = STAGE_LEGAL;
            part.end = passes_until(r->target, STAGE_LEGAL);
            part.depfile = NULL;
        }
        t->options.positional.at[0] = file[k]; /* what is read */
        ok = compile(t, &part, &c[k], &all);
    }
    t->options.positional.at[0] = file[0];
    for (uint32_t k = 0; k < n; k++) {
        compilation_release(&c[k]);
    }
    return ok;
}

static bool compile_one(ToolRun *t)
{
    Request r;
    if (!request_read(&r, &t->options, &t->arena, &t->usage) ||
        (option_given(&t->options, OPT_WATCH) && !watch(t))) {
        return false;
    }
    if (r.wanted == WANT_PATH) {
        PathOptions p = {0};
        return decisions_path(t, r.target, &p) && path_tool(t, &r, &p);
    }
    if (t->options.positional.n > 1) {
        return compile_together(t, &r);
    }
    Compilation c = {0};
    bool ok = compile(t, &r, &c, NULL);
    watch_tell(t);
    compilation_release(&c);
    return ok;
}

/* The name that a file of C gets in a folder: that of the program, or of the equation's kernel. */
static const char *program_name(ToolRun *t)
{
    const Options *o = &t->options;
    const char *path = o->positional.n > 0 ? path_last_part(o->positional.at[0]) : "";
    size_t n = strlen(path), end = strlen(".tdsl");
    n -= n > end && strcmp(path + n - end, ".tdsl") == 0 ? end : 0;
    bool file = n > 0 && strcmp(path, "-") != 0;
    return file ? str_dup(&t->arena, (Str){path, n}) : option_last(o, OPT_NAME, "einsum");
}

/* --target=c,trn2: each one's files in a folder of its name. */
static bool compile_several(ToolRun *t, const char *names)
{
    static const OptionId single[] = {OPT_HEADER, OPT_REPORT, OPT_PLAN_OUT, OPT_MD,
                                      OPT_MMD,    OPT_MF,     OPT_DUMP,     OPT_DUMP_DIR,
                                      OPT_EMIT,   OPT_TUNE,   OPT_WATCH,    OPT_TIME_TRACE};
    Options *o = &t->options;
    const char *out = option_last(o, OPT_OUTPUT, NULL);
    const char *other = option_among(o, &t->arena, sizeof single / sizeof single[0], single);
    if (other != NULL) {
        return usage_error(&t->usage, "%s goes with one target", other);
    }
    if (out == NULL || file_is_stream(out)) {
        return usage_error(
            &t->usage, "--target=%s: -o names a folder, in which each target has one", names);
    }
    files_folder(&t->files, out);
    bool ok = true;
    for (const char *at = names; ok; at++) {
        size_t n = strcspn(at, ",");
        const char *name = str_dup(&t->arena, (Str){at, n});
        const Target *target = target_named(&t->arena, name, &t->usage);
        const char *folder = str_format(&t->arena, "%s/%s", out, name);
        if (target == NULL) {
            return false;
        }
        files_folder(&t->files, folder);
        vec_push(&t->arena, &o->given[OPT_TARGET].at, name);
        vec_push(&t->arena, &o->given[OPT_OUTPUT].at,
                 target->suffix == NULL ? folder
                                        : str_format(&t->arena, "%s/%s%s", folder,
                                                     program_name(t), target->suffix));
        ok = compile_one(t);
        at += n;
        if (*at == '\0') {
            break;
        }
    }
    return ok;
}

static bool run(ToolRun *t)
{
    if (option_given(&t->options, OPT_LSP)) {
        return lsp_check_usage(t) && lsp_serve(t);
    }
    if (option_given(&t->options, OPT_PASSES)) {
        return list_passes(t);
    }
    if (option_given(&t->options, OPT_TARGETS)) {
        return list_targets(t);
    }
    if (option_given(&t->options, OPT_PRINT_MACHINE)) {
        return print_machine(t);
    }
    if (!check_usage(t)) {
        return false;
    }
    t->files.touch = option_given(&t->options, OPT_TOUCH);
    const char *names = option_last(&t->options, OPT_TARGET, "c");
    return strchr(names, ',') != NULL ? compile_several(t, names) : compile_one(t);
}

/* `tdslc explain CODE` is --explain=CODE; without a code, a list of all. */
static int explain(int argc, char **argv)
{
    char option[] = "--explain", list[] = "list";
    char *all[4] = {argv[0], option, argc > 2 ? argv[2] : list, argc > 3 ? argv[3] : NULL};
    return tool_main(TOOL_TDSLC, argc > 3 ? 4 : 3, all, NULL, run);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "explain") == 0) {
        return explain(argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "fmt") == 0) {
        return tool_main(TOOL_FORMAT, argc - 1, argv + 1, NULL, format_tool);
    }
    return tool_main(TOOL_TDSLC, argc, argv, NULL, run);
}
