/* SPDX-License-Identifier: Apache-2.0 */
/* The manual pages and the completions of the shells, from the tables options.def and env.def. They are written when TDSL is
 * built (compiler/cmake/manual.cmake) and never looked at by a compilation. */
#include "driver/options.h"

#include <stdio.h>
#include <string.h>

/* As troff reads it. */
static void put_roff(Text *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        text_put(out, *c == '-' ? "\\-" : *c == '\\' ? "\\e" : "");
        if (*c != '-' && *c != '\\') {
            text_char(out, *c);
        }
    }
}

/* "--name", "-MF" or "-e". */
static const char *spelling(const OptionRow *row, char *buffer, size_t n)
{
    if (row->long_name == NULL) {
        (void)snprintf(buffer, n, "-%c", row->short_name);
    } else {
        (void)snprintf(buffer, n, "%s%s", row->long_name[0] == 'M' ? "-" : "--",
                       row->long_name);
    }
    return buffer;
}

static const char *page_name(Tool tool)
{
    return tool == TOOL_RUN ? "tdsl-run" : tool == TOOL_FORMAT ? "tdslc-fmt" : "tdslc";
}

static void put_manual(Tool tool, const char *version, Text *out)
{
    static const struct {
        const char *about, *synopsis;
    } pages[] = {
        [TOOL_TDSLC] =
            {"compile tensor contractions",
             "tdslc [options] FILE.tdsl -o OUT.c\n.br\ntdslc [options] -e EQUATION --shape=2x3 "
             "... -o OUT.c"},
        [TOOL_RUN] = {"run a kernel on arrays", "tdsl-run -e EQUATION [options] A.npy B.npy "
                                                "...\n.br\ntdsl-run FILE.tdsl [options] "
                                                "NAME=VALUE ..."},
        [TOOL_FORMAT] = {"lay out programs", "tdslc fmt [options] FILE.tdsl ..."},
    };
    const char *group = "";
    char name[64];
    text_printf(out, ".TH %s 1 \"\" \"TDSL %s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n",
                page_name(tool), version, page_name(tool), pages[tool].about);
    text_printf(out, "%s\n.SH OPTIONS\n", pages[tool].synopsis);
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
        OptionRow row = option_row((OptionId)k);
        if ((row.tools & (int)tool) == 0) {
            continue;
        }
        if (strcmp(group, row.group) != 0) {
            group = row.group;
            text_printf(out, ".SS %s\n", group);
        }
        text_put(out, ".TP\n\\fB");
        put_roff(out, spelling(&row, name, sizeof name));
        text_put(out, "\\fR");
        if (row.argument != NULL) {
            bool joined =
                row.argument[0] == '[' || row.long_name == NULL || row.long_name[0] == 'M';
            text_put(out, row.argument[0] == '[' ? "" : joined ? " " : "=");
            put_roff(out, row.argument);
        }
        text_char(out, '\n');
        put_roff(out, row.help);
        text_char(out, '\n');
    }
    text_put(out, ".SH EXIT STATUS\n0 done, 1 wrong input, 2 wrong command line, 3 a file, 4 a "
                  "stated limit, 5 a program "
                  "that was run failed, 70 a fault of the tool.\n.SH ENVIRONMENT\n");
    VariableRow variable;
    for (uint32_t k = 0; variable_row(k, &variable); k++) {
        if ((variable.tools & (int)tool) != 0) {
            text_printf(out, ".TP\n\\fB%s\\fR\n", variable.name);
            put_roff(out, variable.help);
            text_char(out, '\n');
        }
    }
    text_put(out, ".SH SEE ALSO\ntdslc(1), tdslc\\-fmt(1), tdsl\\-run(1)\n");
}

/* ---- completions ---- */

/* Words that an option's argument lists, "a|b|c", with blanks between; empty: anything. */
static void put_choices(const char *argument, Text *out)
{
    const char *from = argument == NULL ? "" : argument[0] == '[' ? argument + 2 : argument;
    if (strchr(from, '|') == NULL) {
        return;
    }
    for (; *from != '\0'; from++) {
        if (*from != ']') {
            text_char(out, *from == '|' ? ' ' : *from);
        }
    }
}

static void put_bash(Tool tool, Text *out)
{
    const char *name = tool == TOOL_RUN ? "tdsl-run" : "tdslc",
               *id = tool == TOOL_RUN ? "tdsl_run" : "tdslc";
    char word[64];
    text_printf(out,
                "# Completion of %s for bash.\n_%s()\n{\n    local "
                "word=${COMP_WORDS[COMP_CWORD]}\n    case $word in\n",
                name, id);
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
        OptionRow row = option_row((OptionId)k);
        Text choices;
        text_init(&choices, out->arena);
        put_choices(row.argument, &choices);
        if ((row.tools & (int)tool) != 0 && choices.n > 0 && row.long_name != NULL) {
            text_printf(
                out,
                "    --%s=*) COMPREPLY=($(compgen -W \"%s\" -- \"${word#*=}\")); return ;;\n",
                row.long_name, choices.at);
        }
    }
    text_put(out, "    -*) COMPREPLY=($(compgen -W \"");
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
        OptionRow row = option_row((OptionId)k);
        if ((row.tools & (int)tool) != 0) {
            bool open = row.long_name != NULL && row.long_name[0] != 'M' &&
                        row.argument != NULL && row.argument[0] != '[';
            text_printf(out, "%s%s ", spelling(&row, word, sizeof word), open ? "=" : "");
        }
    }
    text_printf(
        out,
        "\" -- \"$word\")); [[ ${COMPREPLY-} == *= ]] && compopt -o nospace; return ;;\n    "
        "esac\n"
        "    COMPREPLY=($(compgen -f -- \"$word\"))\n}\ncomplete -o filenames -F _%s %s\n",
        id, name);
}

static void put_zsh(Tool tool, Text *out)
{
    char word[64];
    text_printf(out, "#compdef %s\n# Completion for zsh.\n_arguments \\\n",
                tool == TOOL_RUN ? "tdsl-run" : "tdslc");
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
        OptionRow row = option_row((OptionId)k);
        if ((row.tools & (int)tool) == 0) {
            continue;
        }
        bool optional = row.argument != NULL && row.argument[0] == '[';
        bool joined = row.long_name != NULL && row.long_name[0] != 'M' && !optional;
        text_printf(out, "    '*%s%s[", spelling(&row, word, sizeof word),
                    row.argument == NULL || optional ? ""
                    : joined                         ? "="
                                                     : "+");
        text_shell_quoted(out, row.help, "[]:\\");
        text_char(out, ']');
        if (row.argument != NULL && !optional) {
            Text choices;
            text_init(&choices, out->arena);
            put_choices(row.argument, &choices);
            text_put(out, choices.n > 0 ? ":value:(" : ":value:_files");
            text_put(out, choices.n > 0 ? choices.at : "");
            text_put(out, choices.n > 0 ? ")" : "");
        }
        text_put(out, "' \\\n");
    }
    text_put(out, "    '*:file:_files'\n");
}

static void put_fish(Tool tool, Text *out)
{
    const char *name = tool == TOOL_RUN ? "tdsl-run" : "tdslc";
    text_printf(out, "# Completion of %s for fish.\n", name);
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
        OptionRow row = option_row((OptionId)k);
        if ((row.tools & (int)tool) == 0) {
            continue;
        }
        text_printf(out, "complete -c %s", name);
        if (row.long_name == NULL) {
            text_printf(out, " -s %c", row.short_name);
        } else {
            text_printf(out, row.long_name[0] == 'M' ? " -o %s" : " -l %s", row.long_name);
        }
        bool optional = row.argument != NULL && row.argument[0] == '[';
        Text choices;
        text_init(&choices, out->arena);
        put_choices(row.argument, &choices);
        text_put(out, row.argument == NULL || optional ? "" : " -r");
        if (choices.n > 0 && !optional) {
            text_printf(out, " -f -a '%s'", choices.at);
        }
        text_put(out, " -d '");
        text_shell_quoted(out, row.help, "\\");
        text_put(out, "'\n");
    }
}

bool manual_print(Tool tool, const char *form, const char *version, Text *out)
{
    if (strcmp(form, "man") == 0) {
        put_manual(tool, version, out);
    } else if (strcmp(form, "bash") == 0) {
        put_bash(tool, out);
    } else if (strcmp(form, "zsh") == 0) {
        put_zsh(tool, out);
    } else if (strcmp(form, "fish") == 0) {
        put_fish(tool, out);
    } else {
        return false;
    }
    return true;
}
