/* SPDX-License-Identifier: Apache-2.0 */
/* tdslc: arguments -> one compilation -> files, all or none -> exit status (0 done, 1 wrong
 * input, 2 wrong command line, 3 files, 4 a stated limit, 5 a program we ran, 70 internal). */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/compile.h"
#include "driver/files.h"
#include "driver/input.h"
#include "driver/path_tool.h"
#include "driver/targets.h"
#include "driver/tool.h"

/* Multiply-adds that the target does while it moves one element of 8 bytes: what traffic costs
 * in the objectives that count it. 0: unknown. */
static double traffic_factor(const Target *target)
{
    const Machine *m = target == NULL ? NULL : target->machine;
    bool known = m != NULL && m->multiply_adds_per_second > 0 && m->bytes_per_second > 0;
    return known ? m->multiply_adds_per_second * 8.0 / m->bytes_per_second : 0.0;
}

static bool parse_path_options(ToolRun *t, PathOptions *p)
{
    int64_t seed = 0, effort = 1, limit = 0;
    bool ok = option_number(&t->options, OPT_SEED, 0, INT64_MAX, &seed, &t->errors) &&
              option_number(&t->options, OPT_EFFORT, 0, 1000000, &effort, &t->errors) &&
              option_number(&t->options, OPT_MEMORY_LIMIT, 1, INT64_MAX, &limit, &t->errors) &&
              option_number(&t->options, OPT_MAX_INSTRUCTIONS, 1, INT64_MAX,
                            &t->ctx.program_limit, &t->errors);
    p->seed = (uint64_t)seed;
    p->effort = (uint32_t)effort;
    p->memory_limit = limit;
    p->search = option_last(&t->options, OPT_SEARCH, NULL);
    p->factor = traffic_factor(target_find(option_last(&t->options, OPT_TARGET, "c")));
    static const char *const objectives[] = {"flops", "size", "write", "combo", "roofline"};
    const char *name = option_last(&t->options, OPT_OBJECTIVE, "flops");
    for (uint32_t k = 0; k < sizeof objectives / sizeof objectives[0]; k++) {
        if (strcmp(name, objectives[k]) == 0) {
            p->objective = (PathObjective)k;
            return ok;
        }
    }
    text_printf(&t->errors,
                "tdslc: error: '--objective=%s': flops, size, write, combo or roofline\n",
                name);
    return false;
}

static const char *header_path(ToolRun *t, const char *out)
{
    const char *header = option_last(&t->options, OPT_HEADER, NULL);
    size_t n = strlen(out);
    if (header != NULL || strcmp(out, "-") == 0) {
        return header;
    }
    bool is_c = n > 2 && strcmp(out + n - 2, ".c") == 0;
    return str_format(&t->arena, "%.*s.h", (int)(is_c ? n - 2 : n), out);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Where a file of the back end goes: the one output, its header beside it, or into the output
 * folder. */
static const char *place_file(ToolRun *t, const OutputFile *file, const char *out,
                              const char *header)
{
    if (file->name != NULL) {
        return str_format(&t->arena, "%s/%s%s", out, file->name, file->suffix);
    }
    return strcmp(file->suffix, ".h") == 0 ? header : out;
}

static void add_depfile(ToolRun *t, const Input *in, const char *out)
{
    if (!option_given(&t->options, OPT_MD) && !option_given(&t->options, OPT_MF)) {
        return;
    }
    const char *path = option_last(&t->options, OPT_MF, NULL);
    Text text;
    text_init(&text, &t->arena);
    for (uint32_t k = 0; k <= in->files.n; k++) {
        text_put(&text, k < 2 ? "" : " \\\n  ");
        for (const char *c = k == 0 ? out : in->files.at[k - 1]; *c != '\0'; c++) {
            text_put(&text, *c == ' ' || *c == '#' || *c == ':' || *c == '\\' ? "\\"
                            : *c == '$'                                       ? "$"
                                                                              : "");
            text_char(&text, *c);
        }
        text_put(&text, k == 0 ? ": " : "");
    }
    text_put(&text, "\n");
    files_add(&t->files, path != NULL ? path : str_format(&t->arena, "%s.d", out),
              text_str(&text));
}

/* Text for -o or standard output. */
static void deliver(ToolRun *t, const Text *text)
{
    files_add(&t->files, option_last(&t->options, OPT_OUTPUT, "-"), text_str(text));
}

static void write_report(ToolRun *t, const Compilation *c)
{
    const char *kind = option_last(&t->options, OPT_REPORT, "");
    Text text;
    text_init(&text, &t->arena);
    if (strcmp(kind, "json") == 0) {
        compilation_report_json(c, &text);
    } else if (strcmp(kind, "html") == 0) {
        compilation_report_html(c, &text);
    } else {
        compilation_report(c, &text);
    }
    files_add(&t->files, "-", text_str(&text));
}

static void print_times(const Compilation *c)
{
    for (uint32_t k = 0; k < c->times.n; k++) {
        fprintf(stderr, "%10.3f ms  %s\n", c->times.at[k].seconds * 1e3, c->times.at[k].pass);
    }
}

static bool setup(ToolRun *t, Compilation *c)
{
    const Target *target = target_find(option_last(&t->options, OPT_TARGET, "c"));
    compilation_init(c, &t->ctx, &t->arena, target);
    c->path.linear = option_last(&t->options, OPT_PATH, NULL);
    c->no_fuse = option_given(&t->options, OPT_NO_FUSE);
    c->path.no_factor = option_given(&t->options, OPT_NO_FACTOR);
    c->check_each = option_given(&t->options, OPT_CHECK_EACH);
    c->clock = option_given(&t->options, OPT_TIME) ? tool_clock : NULL;
    c->emit.tool_version = TDSL_VERSION;
    if (!parse_path_options(t, &c->path.options)) {
        return false;
    }
    const char *plan = option_last(&t->options, OPT_PLAN_IN, NULL);
    return plan == NULL || tool_read(t, plan, &c->path.plan);
}

static bool start(ToolRun *t, Compilation *c, Input *in)
{
    const char *schedule = option_last(&t->options, OPT_SCHEDULE, NULL);
    if (schedule != NULL) {
        /* A schedule dump holds the program it belongs to; compiling it is using its decisions.
         */
        Str text = {0};
        if (!tool_read(t, schedule, &text)) {
            return false;
        }
        uint32_t source = source_add(&t->ctx.sources, schedule, text, (Span){0});
        const char *stage = dump_stage(text, &t->arena);
        if (stage == NULL || strcmp(stage, stage_name(STAGE_SCHEDULE)) != 0) {
            diag_error(&t->ctx.diags, E_PLAN, (Span){source, 0, 0}, "this is no schedule dump");
            return false;
        }
        return compilation_read_dump(c, source, stage);
    }
    return compilation_start(c, in, option_last(&t->options, OPT_KERNEL, NULL));
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
    const char *name = c->target->name;
    if (strcmp(out, "-") == 0 && c->legal != NULL && c->legal->kernels.n > 1) {
        text_printf(
            &t->errors,
            "tdslc: error: there are %u kernels: --kernel=NAME chooses the one to print, "
            "-o FOLDER takes all\n",
            c->legal->kernels.n);
        return false;
    }
    if (n > end && strcmp(out + n - end, first->suffix) == 0) {
        text_printf(&t->errors,
                    "tdslc: error: with --target=%s, -o names a folder for several files; '%s' "
                    "looks like a file\n",
                    name, out);
        return false;
    }
    if (option_given(&t->options, OPT_HEADER)) {
        text_printf(&t->errors, "tdslc: error: target '%s' has no --header\n", name);
        return false;
    }
    return true;
}

static bool emit_files(ToolRun *t, Compilation *c, const Input *in, const char *out)
{
    const char *header = header_path(t, out);
    c->emit.header_name = header == NULL ? NULL : base_name(header);
    if (!compilation_run(c, STAGE_OUTPUT) || !check_folder(t, c, out)) {
        return false;
    }
    for (uint32_t k = 0; k < c->outputs.files.n; k++) {
        const OutputFile *file = &c->outputs.files.at[k];
        if (file->name != NULL &&
            strcmp(out, "-") == 0) { /* no folder: the first kernel alone */
            if (k == 0) {
                files_add(&t->files, out, file->text);
            }
            continue;
        }
        if (file->name != NULL && !tool_make_folder(t, out)) {
            return false;
        }
        files_add(&t->files, place_file(t, file, out, header), file->text);
    }
    add_depfile(t, in, out);
    return true;
}

static void write_plan(ToolRun *t, const Compilation *c)
{
    const char *path = option_last(&t->options, OPT_PLAN_OUT, NULL);
    Text text;
    text_init(&text, &t->arena);
    if (path == NULL) {
        return;
    }
    if (c->decisions.list.n != 1) {
        diag_error(
            &t->ctx.diags, E_PLAN, (Span){0},
            "a plan file holds one contraction of three operands or more, the program has %u",
            c->decisions.list.n);
        return;
    }
    path_plan_write(&text, &c->decisions.list.at[0].problem, &c->decisions.list.at[0].result,
                    &t->arena);
    files_add(&t->files, path, text_str(&text));
}

static bool wanted_stage(ToolRun *t, OptionId id, Stage *out)
{
    const char *name = option_last(&t->options, id, NULL);
    if (name == NULL || stage_from_name(name, out)) {
        return true;
    }
    text_printf(&t->errors, "tdslc: error: unknown stage '%s'\n", name);
    return false;
}

static bool compile(ToolRun *t, Compilation *c)
{
    Stage dump = STAGE_COUNT, stop = STAGE_OUTPUT;
    const char *emit = option_last(&t->options, OPT_EMIT, "c");
    if (!wanted_stage(t, OPT_DUMP, &dump) || !wanted_stage(t, OPT_STOP, &stop)) {
        return false;
    }
    Input in = {.ctx = &t->ctx, .arena = &t->arena, .options = &t->options};
    if (!setup(t, c) || !input_read(&in, NULL, 0)) {
        return false;
    }
    c->emit.source_name = in.name;
    if (!start(t, c, &in)) {
        return false;
    }
    bool as_graph = strcmp(emit, "dot") == 0 || strcmp(emit, "json") == 0;
    Stage last = dump != STAGE_COUNT ? dump : as_graph ? STAGE_GRAPH : stop;
    const char *out = option_last(&t->options, OPT_OUTPUT, NULL);
    bool report = option_given(&t->options, OPT_REPORT);
    if (last == STAGE_OUTPUT && out == NULL) {
        last = report || option_given(&t->options, OPT_PLAN_OUT) ? STAGE_LEGAL : STAGE_OUTPUT;
        out = "-";
    }
    if (dump < STAGE_COUNT && stage_form(dump) == FORM_TEXT && in.program == NULL) {
        diag_error(&t->ctx.diags, E_DUMP, (Span){0},
                   "stage '%s' is only there for a program as written", stage_name(dump));
        return false;
    }
    if (last < c->stage && stage_form(last) != FORM_TEXT) {
        diag_error(&t->ctx.diags, E_DUMP, (Span){0}, "the input is past stage '%s' already",
                   stage_name(last));
        return false;
    }
    bool ok = last == STAGE_OUTPUT ? emit_files(t, c, &in, out) : compilation_run(c, last);
    if (!ok) {
        return false;
    }
    Text text;
    text_init(&text, &t->arena);
    if (dump != STAGE_COUNT) {
        compilation_dump(c, dump, &text);
        deliver(t, &text);
    } else if (as_graph) {
        compilation_print_graph(c, strcmp(emit, "dot") == 0, &text);
        deliver(t, &text);
    }
    if (report && c->module != NULL && c->stage >= STAGE_SCHEDULE) {
        write_report(t, c);
    }
    write_plan(t, c);
    if (c->clock != NULL) {
        print_times(c);
    }
    return t->ctx.diags.n_errors == 0;
}

static bool check_usage(ToolRun *t)
{
    const Options *o = &t->options;
    uint32_t inputs = o->positional.n + (option_given(o, OPT_EQUATION) ? 1 : 0) +
                      (option_given(o, OPT_NETWORK) ? 1 : 0);
    const char *emit = option_last(o, OPT_EMIT, "c");
    if (inputs != 1) {
        text_printf(&t->errors, "tdslc: error: %s\n",
                    inputs == 0 ? "no input: a FILE.tdsl, -e EQUATION or --network=FILE.json"
                                : "more than one input");
        return false;
    }
    static const char *const kinds[] = {"c", "path", "dot", "json"};
    bool known = false;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        known |= strcmp(emit, kinds[k]) == 0;
    }
    const char *target = option_last(o, OPT_TARGET, "c");
    const char *report = option_last(o, OPT_REPORT, "");
    if (!known) {
        text_printf(&t->errors, "tdslc: error: unknown kind of output '--emit=%s'\n", emit);
    } else if (target_find(target) == NULL) {
        text_printf(&t->errors, "tdslc: error: unknown target '%s'; there are%s\n", target,
                    target_names(&t->arena));
    } else if (report[0] != '\0' && strcmp(report, "json") != 0 &&
               strcmp(report, "html") != 0) {
        text_printf(&t->errors,
                    "tdslc: error: '--report=%s': json, html, or nothing for text\n", report);
    } else if (option_given(o, OPT_NETWORK) && strcmp(emit, "path") != 0) {
        text_printf(&t->errors, "tdslc: error: --network needs --emit=path\n");
    } else {
        return true;
    }
    return false;
}

static bool run(ToolRun *t)
{
    if (!check_usage(t)) {
        return false;
    }
    if (strcmp(option_last(&t->options, OPT_EMIT, "c"), "path") == 0) {
        PathOptions p = {0};
        return parse_path_options(t, &p) && path_tool(t, &p);
    }
    Compilation c = {0};
    bool ok = compile(t, &c);
    compilation_release(&c);
    return ok;
}

int main(int argc, char **argv)
{
    return tool_main(TOOL_TDSLC, argc, argv, run);
}
