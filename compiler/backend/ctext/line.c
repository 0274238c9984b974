/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text that looks like C: broken where they are too long, indented by scope. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/ctext/ctext.h"

#define COLUMNS 100

void lines_init(Text *t, Arena *a, int indent)
{
    text_init(t, a);
    t->indent_width = 4;
    t->indent = indent;
}

/* Where to break a line of more than `room` characters: after a ';' or ',', before "&&", "||" or '+', in as few parentheses as
 * can be, else at the last blank before, else at the first one after. */
static size_t break_at(const char *s, size_t n, size_t room)
{
    size_t best = 0;
    int depth = 0, least = 0;
    for (size_t k = 1; k <= room; k++) {
        bool logic = strncmp(s + k + 1, "&& ", 3) == 0 || strncmp(s + k + 1, "|| ", 3) == 0;
        bool sum = strncmp(s + k + 1, "+ ", 2) == 0;
        depth += strchr("({[", s[k - 1]) != NULL ? 1 : strchr(")}]", s[k - 1]) != NULL ? -1 : 0;
        bool ends = s[k] == ' ' && (s[k - 1] == ';' || s[k - 1] == ',' || logic || sum);
        if (ends && k > room / 2 && (best == 0 || depth <= least)) {
            best = k;
            least = depth;
        }
    }
    if (best > 0) {
        return best;
    }
    for (size_t k = room; k > 0; k--) {
        if (s[k] == ' ') {
            return k;
        }
    }
    for (size_t k = room; k < n; k++) {
        if (s[k] == ' ') {
            return k;
        }
    }
    return n;
}

void line_put(Text *out, const char *line)
{
    size_t n = strlen(line);
    size_t used = (size_t)out->indent * (size_t)out->indent_width;
    size_t room = used + 40 < COLUMNS ? COLUMNS - used : 40;
    bool first = true;
    while (n > room && line[0] != '#' && line[0] != '/') {
        size_t at = break_at(line, n, room - (first ? 0 : 4));
        if (at >= n) {
            break;
        }
        text_put(out, first ? "" : "    ");
        text_put_n(out, line, at);
        text_put(out, "\n");
        line += at + 1;
        n -= at + 1;
        first = false;
    }
    text_put(out, first ? "" : "    ");
    text_put_n(out, line, n);
    text_put(out, "\n");
}

void comment_put(Text *out, const char *text)
{
    size_t used = (size_t)out->indent * (size_t)out->indent_width;
    size_t room = used + 46 < COLUMNS ? COLUMNS - used - 6 : 40, n = strlen(text);
    text_put(out, "/* ");
    while (n > room) {
        size_t at = break_at(text, n, room);
        if (at >= n) {
            break;
        }
        text_put_n(out, text, at);
        text_put(out, "\n *   ");
        text += at + 1;
        n -= at + 1;
    }
    text_put_n(out, text, n);
    text_put(out, " */\n");
}

void directive_put(Text *out, const char *line)
{
    int indent = out->indent;
    out->indent = 0;
    text_put(out, line);
    text_put(out, "\n");
    out->indent = indent;
}

static void line_vprintf(CWriter *e, const char *format, va_list args) PRINTF_LIKE(2, 0);

static void line_vprintf(CWriter *e, const char *format, va_list args)
{
    char small[256];
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    CHECK(n >= 0);
    char *line = small;
    if ((size_t)n >= sizeof small) {
        line = arena_alloc(e->arena, (size_t)n + 1);
        (void)vsnprintf(line, (size_t)n + 1, format, again);
    }
    va_end(again);
    line_put(e->out, line);
}

void line_printf(CWriter *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_vprintf(e, format, args);
    va_end(args);
}

void scope_printf(CWriter *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_vprintf(e, format, args);
    va_end(args);
    scope_begin(e);
}

void scope_else(CWriter *e)
{
    e->out->indent--;
    scope_printf(e, "} else {");
}

void scopes_end(CWriter *e, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        scope_end(e);
    }
}

void scope_begin(CWriter *e)
{
    e->out->indent++;
}

void scope_end(CWriter *e)
{
    e->out->indent--;
    line_put(e->out, "}");
}
