/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and --help, both from options.def. Wrong use is answered with one line and a suggestion. */
#include "driver/options.h"

#include <stdio.h>
#include <string.h>

#include "driver/arguments.h"
#include "driver/cures.h"

typedef OptionRow OptionInfo;

/* The stages that can be printed, from their table. */
static const char stage_help[] = "print a stage:"
#define HELP_TEXT(name)   " " name
#define HELP_GRAPH(name)  " " name
#define HELP_KERNEL(name) " " name
#define HELP_FILES(name)
#define STAGE(id, name, form, ...) HELP_##form(name)
#include "driver/pipeline.def"
                                 " or what a pass leaves";

/* The passes that may be left out, but the target's. */
static const char without_help[] = "passes are left out:"
#define HELP_NEEDED(name)
#define HELP_SKIPPED(name)                          " " name
#define HELP_TOLD(name)                             " " name
#define HELP_PART(name)                             " " name
#define PASS(id, name, from, to, run, without, ...) HELP_##without(name)
#include "driver/pipeline.def"
                                   " and the target's";

#define C  TOOL_TDSLC
#define R  TOOL_RUN
#define B  (TOOL_TDSLC | TOOL_RUN)
#define F  TOOL_FORMAT
#define CF (TOOL_TDSLC | TOOL_FORMAT)
#define A  (TOOL_TDSLC | TOOL_RUN | TOOL_FORMAT)
static const OptionInfo infos[OPTION_COUNT] = {
#define OPTION(id, tools, s, l, arg, group, help) {tools, s, l, arg, group, help},
#include "driver/options.def"
#undef OPTION
};
static const VariableRow variables[] = {
#define VARIABLE(tools, name, help) {tools, name, help},
#include "driver/env.def"
#undef VARIABLE
};
#undef C
#undef R
#undef B
#undef F
#undef CF
#undef A

OptionRow option_row(OptionId id)
{
    return infos[id];
}

const char *option_spelling(const OptionRow *row, char *buffer, size_t n)
{
    if (row->long_name == NULL) {
        (void)snprintf(buffer, n, "-%c", row->short_name);
    } else {
        (void)snprintf(buffer, n, "%s%s", row->long_name[0] == 'M' ? "-" : "--",
                       row->long_name);
    }
    return buffer;
}

const char *option_among(const Options *o, Arena *arena, size_t n, const OptionId *among)
{
    for (size_t k = 0; k < n; k++) {
        if (option_given(o, among[k])) {
            char *name = arena_alloc(arena, 64);
            return option_spelling(&infos[among[k]], name, 64);
        }
    }
    return NULL;
}

bool variable_row(uint32_t number, VariableRow *out)
{
    bool there = number < sizeof variables / sizeof variables[0];
    *out = variables[there ? number : 0];
    return there;
}

const char *tool_name(Tool tool)
{
    return tool == TOOL_RUN ? "tdsl-run" : "tdslc";
}

static bool is_optional(const OptionInfo *info)
{
    return info->argument != NULL && info->argument[0] == '[' && info->argument[1] == '=';
}

static int find_long(Tool tool, Str name)
{
    for (int k = 0; k < OPTION_COUNT; k++) {
        const OptionInfo *info = &infos[k];
        if ((info->tools & (int)tool) != 0 && info->long_name != NULL &&
            str_eq_cstr(name, info->long_name)) {
            return k;
        }
    }
    return -1;
}

static int find_short(Tool tool, char letter)
{
    for (int k = 0; k < OPTION_COUNT; k++) {
        if ((infos[k].tools & (int)tool) != 0 && infos[k].short_name == letter) {
            return k;
        }
    }
    return -1;
}

static bool unknown(Tool tool, Usage *usage, const char *given, Str name)
{
    (void)usage_error(usage, "unknown option '%s'", given);
    int best = -1, least = 3;
    for (int k = 0; k < OPTION_COUNT; k++) {
        if ((infos[k].tools & (int)tool) == 0 || infos[k].long_name == NULL) {
            continue;
        }
        if (name.n < 2 || given[1] != '-') { /* of one letter, anything is near */
            continue;
        }
        int d = str_distance(name, str_from(infos[k].long_name), 2);
        if (d < least) {
            least = d;
            best = k;
        }
    }
    const char *cure = cure_option(tool, given);
    if (cure != NULL) {
        usage_help(usage, "%s", cure);
    } else if (best >= 0) {
        usage_help(usage, "did you mean '%s%s'?", infos[best].long_name[0] == 'M' ? "-" : "--",
                   infos[best].long_name);
    }
    return false;
}

/* `-D n 512` instead of `-D n=512`. */
static bool check_define(const char *value, const char *next, Usage *usage)
{
    int64_t n = 0;
    if (strpbrk(value, "=~") != NULL) {
        return true;
    }
    (void)usage_error(usage, "'-D %s': DIM=N is expected", value);
    if (next != NULL && parse_i64(next, &n)) {
        usage_help(usage, "-D %s=%s", value, next);
    }
    return false;
}

/* One argument that starts with '-'. `next` are those behind it, up to a null; *used says whether the first was taken. */
static bool parse_one(Options *o, Arena *arena, const char *given, char **next, bool *used,
                      Usage *usage)
{
    bool is_long = given[1] == '-';
    const char *name = given + (is_long ? 2 : 1);
    const char *equals = strpbrk(name, "=~");
    Str key = {name, equals == NULL ? strlen(name) : (size_t)(equals - name)};
    /* -MD and -MF keep the compiler's spelling: long names behind one dash. */
    int id = find_long(o->tool, key);
    if (id >= 0 && !is_long && infos[id].long_name[0] != 'M') {
        id = -1;
    }
    bool tilde = id >= 0 && infos[id].argument != NULL && infos[id].argument[0] == '~';
    if (tilde != (equals != NULL && *equals == '~')) {
        id = -1;
    }
    const char *value = id >= 0 && equals != NULL ? equals + 1 : NULL;
    if (id < 0 && !is_long) {
        id = find_short(o->tool, name[0]);
        value = name[1] != '\0' ? name + 1 : NULL;
        if (id >= 0 && infos[id].argument == NULL && value != NULL) {
            id = -1;
        }
    }
    if (id < 0) {
        return unknown(o->tool, usage, given, key);
    }
    const OptionInfo *info = &infos[id];
    if (info->argument == NULL && value != NULL) {
        return usage_error(usage, "no argument is allowed for '%s'", given);
    }
    if (info->argument != NULL && value == NULL && !is_optional(info)) {
        if (*next == NULL) {
            return usage_error(usage, "an argument is missing after '%s'", given);
        }
        value = *next++;
        *used = true;
    }
    if (id == OPT_DEFINE && !check_define(value, *next, usage)) {
        return false;
    }
    vec_push(arena, &o->given[id].at, value == NULL ? "" : value);
    return true;
}

bool options_parse(Options *o, Arena *arena, Tool tool, int argc, char **argv, Usage *usage)
{
    *o = (Options){.tool = tool};
    Usage later; /* of what follows a mistake: read for --diagnostics, and not told on */
    usage_init(&later, arena, usage->tool);
    bool rest = false, ok = true;
    if (!arguments_expand(arena, &argc, &argv, usage)) {
        return false;
    }
    for (int k = 1; k < argc; k++) {
        const char *given = argv[k];
        if (rest || given[0] != '-' || given[1] == '\0') {
            vec_push(arena, &o->positional, given);
            continue;
        }
        if (strcmp(given, "--") == 0) {
            rest = true;
            continue;
        }
        bool used = false;
        ok = parse_one(o, arena, given, argv + k + 1, &used, ok ? usage : &later) && ok;
        k += used ? 1 : 0;
    }
    return ok;
}

void options_help(Tool tool, Text *out)
{
    if (tool == TOOL_TDSLC) {
        text_put(
            out,
            "usage: tdslc [options] FILE.tdsl -o OUT.c\n"
            "       tdslc [options] -e EQUATION --shape=2x3 --shape=3x4 ... -o OUT.c\n"
            "       tdslc --emit=path [options] -e EQUATION --shape=... | --network=FILE.json\n"
            "Compiles tensor contractions to C or to programs for an accelerator. A dump is "
            "accepted "
            "in place of FILE.tdsl;\n'-' is standard input or output.\n");
    } else if (tool == TOOL_FORMAT) {
        text_put(out,
                 "usage: tdslc fmt [--check] FILE.tdsl ...\n"
                 "       tdslc fmt FILE.tdsl -o OUT.tdsl\n"
                 "Gives programs their one layout, in place. '-' is standard input, printed on "
                 "standard output.\n");
    } else {
        text_put(out,
                 "usage: tdsl-run -e EQUATION [options] A.npy B.npy ...\n"
                 "       tdsl-run FILE.tdsl [--kernel=K] [-D DIM=N] NAME=VALUE ... [-o "
                 "RESULT=OUT.npy]\n"
                 "       tdsl-run FILE.tdsl VALUE ...\n"
                 "Runs a kernel without a program being written. A VALUE is a .npy file, "
                 "random:SEED, zeros,\n"
                 "ones, fill, or a number for a scalar; without names, in the order of the "
                 "kernel's parameters.\n");
    }
    const char *group = "";
    for (int k = 0; k < OPTION_COUNT; k++) {
        const OptionInfo *info = &infos[k];
        if ((info->tools & (int)tool) == 0) {
            continue;
        }
        if (strcmp(group, info->group) != 0) {
            group = info->group;
            text_printf(out, "\n%s\n", group);
        }
        char left[80] = "";
        bool dash_m = info->long_name != NULL && info->long_name[0] == 'M';
        const char *dashes = dash_m ? "-" : "--";
        const char *arg = info->argument == NULL ? "" : info->argument;
        if (info->long_name == NULL) {
            (void)snprintf(left, sizeof left, "-%c %s", info->short_name, arg);
        } else {
            const char *join = info->argument == NULL || is_optional(info) || arg[0] == '~' ? ""
                               : dash_m ? " "
                                        : "=";
            (void)snprintf(left, sizeof left, "%s%s%s%s", dashes, info->long_name, join, arg);
        }
        text_printf(out, "  %-28s %s\n", left, info->help);
    }
}

void options_help_environment(Tool tool, Text *out)
{
    text_printf(out, "Environment variables that %s reads\n\n", tool_name(tool));
    for (size_t k = 0; k < sizeof variables / sizeof variables[0]; k++) {
        if ((variables[k].tools & (int)tool) != 0) {
            text_printf(out, "  %-28s %s\n", variables[k].name, variables[k].help);
        }
    }
}

bool option_given(const Options *o, OptionId id)
{
    return o->given[id].at.n > 0;
}

const char *option_last(const Options *o, OptionId id, const char *fallback)
{
    const OptionValues *v = &o->given[id];
    return v->at.n == 0 ? fallback : v->at.at[v->at.n - 1];
}

bool parse_i64(const char *text, int64_t *value)
{
    bool negative = text[0] == '-';
    const char *digit = text + (negative ? 1 : 0);
    int64_t v = 0; /* below 0, where there is room for one more */
    if (digit[0] == '\0') {
        return false;
    }
    for (; *digit != '\0'; digit++) {
        int64_t n = *digit - '0';
        if (*digit < '0' || *digit > '9' || v < (INT64_MIN + n) / 10) {
            return false;
        }
        v = v * 10 - n;
    }
    if (!negative && v == INT64_MIN) {
        return false;
    }
    *value = negative ? v : -v;
    return true;
}

bool option_number(const Options *o, OptionId id, int64_t least, int64_t most, int64_t *value,
                   Usage *usage)
{
    const char *text = option_last(o, id, NULL);
    if (text == NULL) {
        return true;
    }
    if (!parse_i64(text, value) || *value < least || *value > most) {
        return usage_error(usage, "'--%s%c%s': a whole number from %lld to %lld is expected",
                           infos[id].long_name, infos[id].argument[0] == '~' ? '~' : '=', text,
                           (long long)least, (long long)most);
    }
    return true;
}
