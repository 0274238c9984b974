/* SPDX-License-Identifier: Apache-2.0 */
/* See arguments.h. Words are separated by blanks and line ends; '...' and "..." hold blanks, a backslash outside of '...' takes
 * the next character as it is, as in the files that gcc reads. */
#include "driver/arguments.h"

#include <limits.h>
#include <string.h>

#include "driver/files.h"

#define WORDS_LIMIT ((size_t)1 << 20)
#define DEEPEST     16

typedef struct Words {
    Arena *arena;
    Usage *usage;
    VEC(char *) at;
    bool rest; /* "--" has come */
} Words;

static bool add_word(Words *w, char *word, int depth);

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* The word at *at, which is no blank, without its quotes; *at is moved behind it. */
static char *read_word(Words *w, const char **at, const char *end)
{
    Text word = text_new(w->arena);
    char quote = 0;
    const char *c = *at;
    for (; c < end && (quote != 0 || !is_blank(*c)); c++) {
        if (*c == '\\' && quote != '\'' && c + 1 < end) {
            text_char(&word, *++c);
        } else if (quote == 0 && (*c == '"' || *c == '\'')) {
            quote = *c;
        } else if (quote != 0 && *c == quote) {
            quote = 0;
        } else {
            text_char(&word, *c);
        }
    }
    *at = c;
    return str_dup(w->arena, text_str(&word));
}

static bool add_file(Words *w, const char *path, int depth)
{
    Str text = {0};
    const char *why = NULL;
    if (depth > DEEPEST) {
        return usage_error(w->usage, "'@%s': files inside of each other, more than %d deep",
                           path, DEEPEST);
    }
    if (!file_read(w->arena, path, WORDS_LIMIT, &text, &why)) {
        return usage_error(w->usage, "'@%s': %s", path, why);
    }
    const char *at = text.at, *end = text.at + text.n;
    for (;;) {
        while (at < end && is_blank(*at)) {
            at++;
        }
        if (at == end) {
            return true;
        }
        if (!add_word(w, read_word(w, &at, end), depth)) {
            return false;
        }
    }
}

static bool add_word(Words *w, char *word, int depth)
{
    if (!w->rest && word[0] == '@' && word[1] != '\0') {
        return add_file(w, word + 1, depth + 1);
    }
    w->rest = w->rest || strcmp(word, "--") == 0;
    vec_push(w->arena, &w->at, word);
    return true;
}

bool arguments_expand(Arena *arena, int *argc, char ***argv, Usage *usage)
{
    Words w = {.arena = arena, .usage = usage};
    for (int k = 0; k < *argc; k++) {
        if (k == 0) {
            vec_push(arena, &w.at, (*argv)[0]);
        } else if (!add_word(&w, (*argv)[k], 0)) {
            return false;
        }
    }
    vec_push(arena, &w.at, NULL);
    *argc = (int)w.at.n - 1;
    *argv = w.at.at;
    return w.at.n < INT_MAX;
}
