/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of functions that are defined below the kernels, for those that a kernel calls. */
#include <ctype.h>
#include <string.h>

#include "backend/c/emit.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_';
}

bool mentions(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        char before = at == text ? ' ' : at[-1];
        if (!is_word(before) && !is_word(at[n]) && before != '.' && before != '>') {
            return true;
        }
    }
    return false;
}

/* The words of C text that begin with "tdsl_". */
static void find_words(Arena *a, const char *text, Names *words)
{
    for (const char *at = text; (at = strstr(at, "tdsl_")) != NULL;) {
        size_t n = 0;
        uint32_t number = 0;
        while (isalnum((unsigned char)at[n]) || at[n] == '_') {
            n++;
        }
        if (!names_find(words, at, n, &number)) {
            (void)names_claim(words, str_format(a, "%.*s", (int)n, at));
        }
        at += n;
    }
}

/* The function that is defined at the line `at`: where its name is, else null. */
static const char *name_at(const char *at, size_t *n)
{
    const char *open = strchr(at, '('), *end = strchr(at, '\n');
    if ((strncmp(at, "TDSL_HELPER ", 12) != 0 && strncmp(at, "static ", 7) != 0) ||
        open == NULL || end == NULL || open > end) {
        return NULL;
    }
    *n = 0;
    while (isalnum((unsigned char)open[-1]) || open[-1] == '_') {
        open--;
        (*n)++;
    }
    return open;
}

void declare_used(Arena *a, Text *out, const char *kernels, const char *definitions)
{
    static const char *const before[] = {"TDSL_LANES ", "TDSL_ALIGNED "};
    Names words, declared;
    names_init(&words, a);
    names_init(&declared, a);
    find_words(a, kernels, &words);
    for (const char *at = definitions; at != NULL;) {
        for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
            at += strncmp(at, before[i], strlen(before[i])) == 0 ? strlen(before[i]) : 0;
        }
        size_t n = 0;
        uint32_t number = 0;
        const char *name = name_at(at, &n), *body = strstr(at, "\n{");
        if (name != NULL && body != NULL && names_find(&words, name, n, &number) &&
            names_claim(&declared, words.list.at[number])) {
            text_printf(out, "%.*s;\n", (int)(body - at), at);
        }
        at = strchr(at, '\n');
        at = at == NULL ? NULL : at + 1;
    }
}
