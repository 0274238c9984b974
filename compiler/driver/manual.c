/* SPDX-License-Identifier: Apache-2.0 */
/* The manual pages, from the tables options.def and env.def. They are written when TDSL is built (compiler/cmake/install.cmake)
 * and never looked at by a compilation. */
#include "driver/completion.h"

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
        put_roff(out, option_spelling(&row, name, sizeof name));
        text_put(out, "\\fR");
        if (row.argument != NULL) {
            bool own = row.argument[0] == '[' || row.argument[0] == '~',
                 joined = own || row.long_name == NULL || row.long_name[0] == 'M';
            text_put(out, own ? "" : joined ? " " : "=");
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

bool manual_print(Tool tool, const char *form, const char *version, Text *out)
{
    if (strcmp(form, "man") != 0) {
        return completion_print(tool, form, out);
    }
    put_manual(tool, version, out);
    return true;
}
