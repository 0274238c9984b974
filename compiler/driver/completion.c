/* SPDX-License-Identifier: Apache-2.0 */
/* The completions of the shells, from the tables that the options are read by: options, stages, targets, strategies, messages. They
 * are written when TDSL is built (compiler/cmake/install.cmake) and never looked at by a compilation. */
#include "driver/completion.h"

#include <string.h>

#include "base/diag.h"
#include "driver/passes.h"
#include "driver/request.h"
#include "driver/targets.h"
#include "path/path.h"

static void add(Text *out, const char *word)
{
    text_printf(out, "%s%s", out->n == 0 ? "" : " ", word);
}

/* The names of messages: of warnings without "-W", of codes as they are. */
static void add_messages(bool warnings, bool codes, Text *out)
{
    for (DiagCode code = 0; code < DIAG_COUNT; code++) {
        const char *text = diag_code_text(code);
        bool warning = strncmp(text, "-W", 2) == 0;
        if (warning ? warnings : codes) {
            add(out, text + (warning ? 2 : 0));
        }
    }
}

static bool has_word(const Text *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words->at; (at = strstr(at, word)) != NULL; at += n) {
        if ((at == words->at || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* The passes of all targets, each once. */
static void add_passes(bool optional, Text *out)
{
    for (uint32_t t = 0; target_at(t) != NULL; t++) {
        const Target *target = target_at(t);
        for (uint32_t k = 0; k < pass_count(target); k++) {
            Pass pass = pass_at(target, k);
            if (!has_word(out, pass.name) && (!optional || pass.without != WITHOUT_NEEDED)) {
                add(out, pass.name);
            }
        }
    }
}

static void add_stages(Text *out)
{
    for (Stage s = (Stage)0; s < STAGE_OUTPUT; s++) {
        add(out, stage_name(s));
    }
}

/* The words that an option's argument may be, with blanks between; empty: anything. */
static void put_choices(Tool tool, OptionId id, Text *out)
{
    const char *argument = option_row(id).argument;
    switch (id) {
    case OPT_TARGET:
        for (uint32_t k = 0; tool == TOOL_TDSLC && target_at(k) != NULL; k++) {
            add(out, target_at(k)->name);
        }
        text_put(out, tool == TOOL_TDSLC ? "" : "c interp emulator");
        return;
    case OPT_EMIT:
        request_kinds(out);
        return;
    case OPT_DTYPE:
        for (DType t = DTYPE_NONE + 1; t < DTYPE_COUNT; t++) {
            add(out, dtype_name(t));
        }
        return;
    case OPT_F64:
        text_put(out, "f32 sums");
        return;
    case OPT_DUMP:
    case OPT_STOP:
        add_stages(out);
        add_passes(false, out);
        return;
    case OPT_WITHOUT:
        add_passes(true, out);
        return;
    case OPT_SEARCH:
        for (uint32_t k = 0; k < path_strategy_count; k++) {
            add(out, path_strategies[k].name);
        }
        return;
    case OPT_WARNING:
        text_put(out, "error");
        add_messages(true, false, out);
        return;
    case OPT_EXPLAIN:
        add_messages(true, true, out);
        return;
    default:
        argument = argument != NULL && argument[0] == '[' ? argument + 2 : argument;
        for (const char *c = argument; c != NULL && strchr(argument, '|') != NULL && *c != '\0';
             c++) {
            if (*c != ']') {
                text_char(out, *c == '|' ? ' ' : *c);
            }
        }
    }
}

static Text choices_of(Tool tool, OptionId id, Arena *arena)
{
    Text choices = text_new(arena);
    put_choices(tool, id, &choices);
    return choices;
}

/* What is completed is the line up to the cursor, from its last blank on: bash cuts words at '=' where COMP_WORDBREAKS has it (as it
 * does by default), and then puts what is answered behind the '='. */
static void put_bash(Tool tool, Text *out)
{
    const char *name = tool == TOOL_RUN ? "tdsl-run" : "tdslc",
               *id = tool == TOOL_RUN ? "tdsl_run" : "tdslc";
    char word[64];
    text_printf(out,
                "# Completion of %s for bash.\n"
                "_%s()\n"
                "{\n"
                "    local line=${COMP_LINE:0:COMP_POINT} before=\n"
                "    local word=${line##*[[:space:]]}\n"
                "    [[ $COMP_WORDBREAKS == *=* ]] || before=${word%%%%=*}=\n"
                "    case $word in\n",
                name, id);
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
        OptionRow row = option_row((OptionId)k);
        Text choices = choices_of(tool, (OptionId)k, out->arena);
        if ((row.tools & (int)tool) != 0 && choices.n > 0 && row.long_name != NULL) {
            text_printf(out,
                        "    --%s=*) COMPREPLY=($(compgen -P \"$before\" -W \"%s\" -- "
                        "\"${word#*=}\")); return ;;\n",
                        row.long_name, choices.at);
        }
    }
    text_put(out,
             "    *=*) COMPREPLY=($(compgen -P \"$before\" -f -- \"${word#*=}\")); return ;;\n"
             "    -*) COMPREPLY=($(compgen -W \"");
    for (uint32_t k = 0; k < OPTION_COUNT; k++) {
        OptionRow row = option_row((OptionId)k);
        if ((row.tools & (int)tool) != 0) {
            bool open = row.long_name != NULL && row.long_name[0] != 'M' &&
                        row.argument != NULL && row.argument[0] != '[';
            text_printf(out, "%s%s ", option_spelling(&row, word, sizeof word),
                        !open                    ? ""
                        : row.argument[0] == '~' ? "~"
                                                 : "=");
        }
    }
    text_printf(
        out,
        "\" -- \"$word\")); [[ ${COMPREPLY-} == *[=~] ]] && compopt -o nospace; return ;;\n    "
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
        bool joined = row.long_name != NULL && row.long_name[0] != 'M';
        text_printf(out, "    '*%s%s[", option_spelling(&row, word, sizeof word),
                    row.argument == NULL     ? ""
                    : optional               ? "=-"
                    : row.argument[0] == '~' ? "~-"
                    : joined                 ? "="
                                             : "+");
        text_shell_quoted(out, row.help, "[]:\\");
        text_char(out, ']');
        if (row.argument != NULL) {
            Text choices = choices_of(tool, (OptionId)k, out->arena);
            text_put(out, optional ? ":" : ""); /* the value may be left out */
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
        Text choices = choices_of(tool, (OptionId)k, out->arena);
        text_put(out, row.argument == NULL || optional ? "" : " -r");
        if (choices.n > 0) {
            text_printf(out, " -f -a '%s'", choices.at);
        }
        text_put(out, " -d '");
        text_shell_quoted(out, row.help, "\\");
        text_put(out, "'\n");
    }
}

bool completion_print(Tool tool, const char *form, Text *out)
{
    static const struct {
        const char *form;
        void (*put)(Tool tool, Text *out);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    for (size_t k = 0; k < sizeof shells / sizeof shells[0]; k++) {
        if (strcmp(form, shells[k].form) == 0) {
            shells[k].put(tool, out);
            return true;
        }
    }
    return false;
}
