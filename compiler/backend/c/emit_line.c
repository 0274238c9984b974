/* SPDX-License-Identifier: Apache-2.0 */
/* --emit=c-lines: debuggers and profilers show the program's lines instead of the C's. While kernels are printed, a line that begins with
 * LINE_MARK says that what follows is of that line of a source, or of none; when all is printed, `#line` stands in front of each line of C. */
#include <stdlib.h>
#include <string.h>

#include "backend/c/emit.h"

/* Not its line: a token, AST or checked dump is laid out in another way than its program, and the C of all dumps is the same. */
const char *origin_of(const Kernel *k, const Stmt *s)
{
    const SourceStatement *statement = source_statement(&k->statements, s->span);
    return statement != NULL ? statement->text : s->name != NULL ? s->name->text : NULL;
}

void line_mark(Emitter *e, Text *out, Stmt *const *body, uint32_t n)
{
    Sources *sources = e->w.k->sources;
    uint32_t line = 0, column = 0, i = 0;
    while (i < n && body[i]->kind != STMT_TILE) {
        i++;
    }
    bool placed = sources != NULL && i < n && body[i]->span.source != 0;
    if (e->in_tile || i == n || !(e->counters != NULL || (e->lines && placed))) {
        return;
    }
    if (placed) {
        source_position(sources, body[i]->span, &line, &column);
    }
    if (e->counters != NULL) {
        const char *origin = origin_of(e->w.k, body[i]);
        line_put(out, str_format(e->w.arena, "%c%u", LINE_MARK,
                                 counter_of(e->counters, origin == NULL ? "" : origin, line)));
        return;
    }
    line_put(out, str_format(e->w.arena, "%c%u %u", LINE_MARK, line, body[i]->span.source));
}

void line_unmark(Emitter *e, Text *out)
{
    if ((e->lines || e->counters != NULL) && !e->in_tile) {
        line_put(out, str_format(e->w.arena, "%c", LINE_MARK));
    }
}

/* "12 1" is line 12 of source 1. No name stands in a mark: functions look for names in their text. */
static void directive(Text *out, const Sources *sources, const char *mark)
{
    char *end = NULL;
    unsigned long line = strtoul(mark, &end, 10), source = strtoul(end, NULL, 10);
    text_printf(out, "#line %lu ", line);
    text_literal(out, source_get(sources, (uint32_t)source)->name);
    text_put(out, "\n");
}

/* Parentheses that the line leaves open, beside those that were. */
static int32_t depth_behind(const char *at, size_t n, int32_t depth)
{
    for (size_t i = 0; i < n; i++) {
        if (at[i] == '"') { /* in which there is no quote */
            for (i++; i < n && at[i] != '"'; i++) {
            }
        } else if (at[i] == '/' && i + 1 < n && at[i + 1] == '*') {
            return depth;
        }
        depth += i < n && at[i] == '(' ? 1 : i < n && at[i] == ')' ? -1 : 0;
    }
    return depth;
}

/* What goes on within parentheses, perhaps of a macro, where no directive may stand, is put on one line. */
void lines_emit(Arena *arena, Text *out, const Sources *sources, const char *name)
{
    Text all;
    const char *mark = NULL;            /* what stands behind #line; null: nothing */
    bool back = false, goes_on = false; /* to the C's own lines; a macro's text */
    uint32_t line = 1;                  /* of the C */
    int32_t depth = 0;
    text_init(&all, arena);
    text_reserve(&all, out->n + out->n / 2);
    for (const char *at = out->at; *at != '\0';) {
        size_t n = strcspn(at, "\n"), blanks = strspn(at, " ");
        if (at[blanks] == LINE_MARK) {
            back = back || mark != NULL;
            mark = n == blanks + 1 ? NULL : at + blanks + 1;
        } else {
            bool begins = n > blanks && !goes_on, code = begins && at[blanks] != '#';
            goes_on = n > 0 && at[n - 1] == '\\';
            bool inside = mark != NULL && code && depth > 0;
            depth = mark != NULL && code ? depth_behind(at, n, depth) : 0;
            if (inside) {
                all.at[all.n - 1] = ' ';
                text_put_n(&all, at + blanks, n - blanks);
                text_put(&all, "\n");
                at += n + (at[n] == '\n');
                continue;
            }
            if (mark != NULL && code) {
                directive(&all, sources, mark);
                line++;
            } else if (mark == NULL && back && begins) { /* before an #if: it may be skipped */
                text_printf(&all, "#line %u ", line + 1);
                text_literal(&all, name);
                text_put(&all, "\n");
                line++;
                back = false;
            }
            text_put_n(&all, at, n);
            text_put(&all, "\n");
            line++;
        }
        at += n + (at[n] == '\n');
    }
    *out = all;
}
