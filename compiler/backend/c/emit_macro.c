/* SPDX-License-Identifier: Apache-2.0 */
/* Macros of printed C: their text, which equal ones share, and lines of one that is being written. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/c/micro.h"

void macro_put(Text *out, const char *head, const char *lines)
{
    size_t n = strlen(lines);
    text_printf(out, "#define %s", head);
    for (size_t i = 0; i < n;) {
        size_t length = strcspn(lines + i, "\n");
        text_put(out, " \\\n");
        text_put_n(out, lines + i, length);
        i += length + 1;
    }
    text_put(out, "\n");
}

/* The text with a name in the place of '@'. */
static const char *named_text(Arena *a, const char *text, const char *name)
{
    Text t;
    text_init(&t, a);
    for (;;) {
        size_t n = strcspn(text, "@");
        text_put_n(&t, text, n);
        if (text[n] == '\0') {
            return t.at;
        }
        text_put(&t, name);
        text += n + 1;
    }
}

/* "TDSL_BLOCK_2", "TDSL_BLOCK_2b", ... */
static const char *new_name(Macros *m, const char *wish)
{
    const char *name = wish;
    for (uint32_t i = 1; !names_claim(&m->names, name); i++) {
        name = i < 25 ? str_format(m->arena, "%s%c", wish, (char)('a' + i))
                      : str_format(m->arena, "%sz%u", wish, i);
    }
    return name;
}

const char *macro_use(Macros *m, const char *wish, const char *text)
{
    for (uint32_t i = 0; i < m->list.n; i++) {
        if (strcmp(m->list.at[i].text, text) == 0) {
            return m->list.at[i].name;
        }
    }
    const char *name = new_name(m, wish);
    vec_push(m->arena, &m->list, ((Macro){name, text}));
    text_put(&m->text, named_text(m->arena, text, name));
    return name;
}

void run_put(Printer *p, uint32_t g, const char *format, ...)
{
    char line[400];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    CHECK(n >= 0 && (size_t)n < sizeof line);
    line_printf(&p->w, "TDSL_EACH(v, %s, 1) %s", run_name(p, "N", g), line);
}

const char *run_name(Printer *p, const char *name, uint32_t g)
{
    return g == 0 ? name : str_format(p->w.arena, "%s%u", name, g);
}

void arguments_init(Arguments *x, Arena *a)
{
    text_init(&x->names, a);
    text_init(&x->values, a);
}

void argument_put(Arguments *x, const char *name, const char *value)
{
    bool more = x->names.n > 0;
    text_printf(&x->names, more ? ", %s" : "%s", name);
    text_printf(&x->values, more ? ", %s" : "%s", value);
}

void argument_number(Arguments *x, const char *name, int64_t value)
{
    argument_put(x, name, str_format(x->names.arena, "%lld", (long long)value));
}
