/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducers: the script makes a folder so deep that "../" in a name stays inside of what it removes, puts the files there
 * under their names (absolute ones below that folder), and runs the command line with the options in the table's order. */
#include "driver/reproducer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FAILURE_FILE "tdslc-failure.sh"

/* One word of the shell. */
static void put_word(Text *out, const char *word)
{
    text_char(out, '\'');
    text_shell_quoted(out, word, "");
    text_char(out, '\'');
}

static bool is_standard_input(const char *name)
{
    return strcmp(name, "-") == 0 || strcmp(name, "<stdin>") == 0;
}

/* The path in the script's folder. */
static const char *local(ToolRun *t, const char *path)
{
    if (is_standard_input(path)) {
        return "standard-input";
    }
    return path[0] == '/' ? str_format(&t->arena, ".%s", path) : path;
}

/* How often the path goes up, at most. */
static uint32_t count_parents(const char *path)
{
    uint32_t n = 0;
    for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2) {
        n++;
    }
    return n;
}

static bool is_path(OptionId id)
{
    static const OptionId paths[] = {OPT_NETWORK,  OPT_INCLUDE, OPT_OUTPUT,    OPT_HEADER,
                                     OPT_MF,       OPT_PLAN_IN, OPT_PLAN_OUT,  OPT_NEST,
                                     OPT_DUMP_DIR, OPT_MACHINE, OPT_TIME_TRACE};
    for (size_t k = 0; k < sizeof paths / sizeof paths[0]; k++) {
        if (paths[k] == id) {
            return true;
        }
    }
    return false;
}

static void put_folder(ToolRun *t, Text *out, const char *path, bool whole)
{
    const char *slash = strrchr(path, '/');
    size_t n = whole ? strlen(path) : slash == NULL ? 0 : (size_t)(slash - path);
    if (n > 0) {
        text_put(out, "mkdir -p ");
        put_word(out, str_format(&t->arena, "%.*s", (int)n, path));
        text_char(out, '\n');
    }
}

static void put_file(ToolRun *t, Text *out, const char *name, Str text)
{
    const char *end = "END_OF_FILE";
    while (text.n > 0 && strstr(text.at, end) != NULL) {
        end = str_format(&t->arena, "%s_", end);
    }
    const char *path = local(t, name);
    put_folder(t, out, path, false);
    text_put(out, "cat > ");
    put_word(out, path);
    text_printf(out, " <<'%s'\n", end);
    text_put_n(out, text.at, text.n);
    text_printf(out, "%s%s\n", text.n > 0 && text.at[text.n - 1] != '\n' ? "\n" : "", end);
}

static void put_option(ToolRun *t, Text *out, OptionId id, const char *value)
{
    OptionRow row = option_row(id);
    if (is_path(id) && !file_is_stream(value)) {
        value = local(t, value);
    }
    bool dash_m = row.long_name != NULL && row.long_name[0] == 'M';
    bool has_value = row.argument != NULL && (row.argument[0] != '[' || value[0] != '\0');
    text_char(out, ' ');
    if (row.long_name == NULL) {
        text_printf(out, "-%c", row.short_name);
    } else {
        text_printf(out, "%s%s", dash_m ? "-" : "--", row.long_name);
    }
    if (has_value) {
        text_put(out, row.long_name == NULL || dash_m ? " " : "=");
        put_word(out, value);
    }
}

static void put_command(ToolRun *t, Text *out)
{
    bool from_input = false;
    text_put(out, "\"${1:-tdslc}\"");
    for (OptionId id = 0; id < OPTION_COUNT; id++) {
        bool leave = id == OPT_REPRODUCER || id == OPT_WATCH;
        for (uint32_t k = 0; !leave && k < t->options.given[id].at.n; k++) {
            put_option(t, out, id, t->options.given[id].at.at[k]);
        }
    }
    text_put(out, t->options.positional.n > 0 ? " --" : "");
    for (uint32_t k = 0; k < t->options.positional.n; k++) {
        const char *path = t->options.positional.at[k];
        bool piped = is_standard_input(path);
        from_input |= piped;
        text_char(out, ' ');
        put_word(out, piped ? "-" : local(t, path));
    }
    text_put(out, from_input ? " < standard-input\n" : "\n");
}

/* How deep the folder lies. */
static uint32_t depth(const ToolRun *t)
{
    uint32_t most = 0;
    for (uint32_t k = 0; k < t->ctx.sources.list.n; k++) {
        uint32_t n = count_parents(t->ctx.sources.list.at[k]->name);
        most = n > most ? n : most;
    }
    for (OptionId id = 0; id < OPTION_COUNT; id++) {
        for (uint32_t k = 0; is_path(id) && k < t->options.given[id].at.n; k++) {
            uint32_t n = count_parents(t->options.given[id].at.at[k]);
            most = n > most ? n : most;
        }
    }
    return most;
}

static void put_inputs(ToolRun *t, Text *out)
{
    const Sources *sources = &t->ctx.sources;
    for (uint32_t k = 0; k < sources->list.n; k++) {
        const Source *s = sources->list.at[k];
        if (!s->places_only && strcmp(s->name, "-e") != 0) {
            put_file(t, out, s->name, s->text);
        }
    }
    const char *plan = option_last(&t->options, OPT_PLAN_IN, NULL), *why = NULL;
    Str text = {0};
    if (plan != NULL && !file_is_stream(plan) &&
        file_read(&t->arena, plan, FILE_LIMIT, &text, &why)) {
        put_file(t, out, plan, text);
    }
    for (OptionId id = 0; id < OPTION_COUNT; id++) {
        for (uint32_t k = 0; is_path(id) && k < t->options.given[id].at.n; k++) {
            const char *path = t->options.given[id].at.at[k];
            if (!file_is_stream(path)) {
                put_folder(t, out, local(t, path), id == OPT_INCLUDE);
            }
        }
    }
}

static void print_script(ToolRun *t, Text *out)
{
    text_printf(out,
                "#!/bin/sh\n"
                "# Repeats a run of tdslc %s: sh THIS_FILE [PATH/TO/tdslc]\n"
                "set -e\n"
                "work=$(mktemp -d)\n"
                "trap 'rm -rf \"$work\"' EXIT\n",
                TDSL_VERSION);
    text_put(out, "folder=$work");
    for (uint32_t n = depth(t); n > 0; n--) {
        text_put(out, "/in");
    }
    text_put(out, "\nmkdir -p \"$folder\"\ncd \"$folder\"\n");
    put_inputs(t, out);
    put_command(t, out);
}

bool reproducer_write(ToolRun *t, const char *path)
{
    Files files = {.arena = &t->arena, .inputs = {0}};
    const char *why = NULL;
    Text text = text_new(&t->arena);
    print_script(t, &text);
    for (uint32_t k = 0; k < t->files.inputs.n; k++) {
        files_input(&files, t->files.inputs.at[k]);
    }
    files_add(&files, path, text_str(&text));
    if (files_commit(&files, &why) != FILES_WRITTEN) {
        return diag_refuse(&t->ctx.diags, E_FILE, (Span){0}, "%s", why);
    }
    return true;
}

void reproducer_on_failure(void *user)
{
    ToolRun *t = user;
    const char *path = option_last(&t->options, OPT_REPRODUCER, FAILURE_FILE);
    bool asked = option_given(&t->options, OPT_REPRODUCER);
    if (!asked && access(path, F_OK) == 0) {
        fprintf(stderr,
                "%s: '%s' is there already: --reproducer=FILE writes what repeats this\n",
                tool_name(t->options.tool), path);
    } else if (reproducer_write(t, path)) {
        fprintf(stderr, "%s: %s repeats this, with all that was read\n",
                tool_name(t->options.tool), path);
    }
}
