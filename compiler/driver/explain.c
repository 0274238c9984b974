/* SPDX-License-Identifier: Apache-2.0 */
/* See explain.h. explain.txt holds, after a line "@CODE", why, a program that fails, and one that is repaired: tests/driver/explain.py runs
 * them all. */
#include "driver/explain.h"

#include <string.h>

extern const char explain_txt[]; /* made from explain.txt */

/* What stands after "@CODE", up to the next such line. */
static Str text_of(const char *code)
{
    size_t n = strlen(code);
    for (const char *at = explain_txt; at != NULL; at = strstr(at, "\n@")) {
        at += *at == '\n' ? 1 : 0;
        if (strncmp(at + 1, code, n) == 0 && at[n + 1] == '\n') {
            const char *from = at + n + 2, *to = strstr(from, "\n@");
            return (Str){from, to == NULL ? strlen(from) : (size_t)(to + 1 - from)};
        }
    }
    return (Str){NULL, 0};
}

/* "E0203", "-Wspill" -> "e0203", "-wspill": what headings are called in addresses. */
static void put_anchor(const char *code, Text *out)
{
    for (const char *c = code; *c != '\0'; c++) {
        text_char(out, (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c));
    }
}

static void put_list(Text *out)
{
    for (DiagCode k = 0; k < DIAG_COUNT; k++) {
        text_printf(out, "%-14s %s\n", diag_code_text(k), diag_code_about(k));
    }
}

static void put_page(Text *out)
{
    text_put(out,
             "# Messages\n\nEvery code of a message: what it means, why, a program that fails "
             "and the repaired "
             "one. `tdslc explain CODE` prints one of them,\n`tdslc explain all` this page. "
             "Of warnings, `-Wno-NAME` turns one off, `-Werror` makes all errors.\n\n"
             "| code | |\n|---|---|\n");
    for (DiagCode k = 0; k < DIAG_COUNT; k++) {
        text_printf(out, "| [`%s`](#", diag_code_text(k));
        put_anchor(diag_code_text(k), out);
        text_printf(out, ") | %s |\n", diag_code_about(k));
    }
    for (DiagCode k = 0; k < DIAG_COUNT; k++) {
        Str more = text_of(diag_code_text(k));
        text_printf(out, "\n## %s\n\n%s.\n", diag_code_text(k), diag_code_about(k));
        text_put(out, more.n > 0 ? "\n" : "");
        text_put_n(out, more.n > 0 ? more.at : "", more.n);
    }
}

bool explain_code(const char *code, Text *out)
{
    if (strcmp(code, "all") == 0 || strcmp(code, "list") == 0) {
        (code[0] == 'a' ? put_page : put_list)(out);
        return true;
    }
    for (DiagCode k = 0; k < DIAG_COUNT; k++) {
        const char *text = diag_code_text(k);
        bool match = strcmp(text, code) == 0;
        if (strncmp(text, "-W", 2) == 0) {
            match |= strcmp(text + 1, code) == 0 || strcmp(text + 2, code) == 0;
        }
        if (!match) {
            continue;
        }
        text_printf(out, "%s: %s\n", text, diag_code_about(k));
        Str more = text_of(text);
        if (more.n > 0) {
            text_char(out, '\n');
            text_put_n(out, more.at, more.n);
        }
        return true;
    }
    return false;
}
