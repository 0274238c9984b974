/* SPDX-License-Identifier: Apache-2.0 */
/* See explain.h. The page docs/messages.md is part of the compiler; tests/driver/explain.py runs the programs in it. */
#include "driver/explain.h"

#include <string.h>

extern const char messages_md[]; /* docs/messages.md */

static void put_list(Text *out)
{
    for (DiagCode k = 0; k < DIAG_COUNT; k++) {
        text_printf(out, "%-14s %s\n", diag_code_text(k), diag_code_about(k));
    }
}

/* What the page says below the heading of this code. */
static void put_section(const char *code, Text *out)
{
    const char *from = strstr(messages_md, str_format(out->arena, "\n## %s\n\n", code));
    CHECK(from != NULL);
    from += strlen(code) + 6;
    const char *to = strstr(from, "\n## ");
    text_printf(out, "%s: ", code);
    text_put_n(out, from, to == NULL ? strlen(from) : (size_t)(to - from));
}

bool explain_code(const char *code, Text *out)
{
    if (strcmp(code, "all") == 0) {
        text_put(out, messages_md);
        return true;
    }
    if (strcmp(code, "list") == 0) {
        put_list(out);
        return true;
    }
    for (DiagCode k = 0; k < DIAG_COUNT; k++) {
        const char *text = diag_code_text(k);
        bool warning = strncmp(text, "-W", 2) == 0;
        if (strcmp(text, code) == 0 ||
            (warning && (strcmp(text + 1, code) == 0 || strcmp(text + 2, code) == 0))) {
            put_section(text, out);
            return true;
        }
    }
    return false;
}
