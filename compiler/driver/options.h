/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as plain data, from the one option table (options.def). */
#ifndef DRIVER_OPTIONS_H
#define DRIVER_OPTIONS_H

#include "base/ctx.h"
#include "driver/usage.h"

#define THREADS_MOST 1024

typedef enum OptionId {
#define OPTION(id, tools, s, l, arg, group, help) id,
#include "driver/options.def"
#undef OPTION
    OPTION_COUNT
} OptionId;

typedef enum Tool { TOOL_TDSLC = 1, TOOL_RUN = 2, TOOL_FORMAT = 4 } Tool;
const char *tool_name(Tool tool);

/* What was given: for each option its occurrences in order. */
typedef struct OptionValues {
    VEC(const char *) at; /* argument texts; "" for options without one */
} OptionValues;

typedef struct Options {
    Tool tool;
    OptionValues given[OPTION_COUNT];
    VEC(const char *) positional;
} Options;

/* False after a message on `usage` (exit 2); what stands behind the mistake is read, too. */
bool options_parse(Options *o, Arena *arena, Tool tool, int argc, char **argv, Usage *usage);
void options_help(Tool tool, Text *out);
void options_help_environment(Tool tool, Text *out);

/* The tables, for manual pages and completions. */
typedef struct OptionRow {
    int tools;
    char short_name;
    const char *long_name, *argument, *group, *help;
} OptionRow;
typedef struct VariableRow {
    int tools;
    const char *name, *help;
} VariableRow;
OptionRow option_row(OptionId id);
/* "--name", "-MF" or "-e". */
/* Of these options the first that is given, as it is spelled; null: none is. */
const char *option_among(const Options *o, Arena *arena, size_t n, const OptionId *among);
const char *option_spelling(const OptionRow *row, char *buffer, size_t n);
bool variable_row(uint32_t number, VariableRow *out);
/* manual.c: `form` is man, bash, zsh or fish; else false. */
bool manual_print(Tool tool, const char *form, const char *version, Text *out);

bool option_given(const Options *o, OptionId id);
/* The last value, or `fallback`. */
const char *option_last(const Options *o, OptionId id, const char *fallback);
/* A whole decimal number in [least, most]; false after a message. */
bool option_number(const Options *o, OptionId id, int64_t least, int64_t most, int64_t *value,
                   Usage *usage);
bool parse_i64(const char *text, int64_t *value);

#endif
