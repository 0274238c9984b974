/* SPDX-License-Identifier: Apache-2.0 */
/* Records to text: the only code that knows lines, columns, tabs and width. A line is a row of glyphs, each
 * some bytes of the source shown in so many columns: tabs become blanks, control and invisible characters
 * and bytes that are no UTF-8 become escapes, so that no input can disturb a terminal. A line wider than the page
 * is shown as a window around the culprit. */
#include "base/diag.h"

#include <stdio.h>
#include <string.h>

#define PAGE_WIDTH      120
#define TAB_WIDTH       4
#define GUTTER          8     /* "1234 | " and a blank before it */
#define MESSAGE_LONGEST 600   /* bytes of one message: names can be as long as a file */
#define LINE_LONGEST    4096u /* bytes of a line that are looked at */

typedef struct Glyph {
    char text[12];  /* NUL-terminated */
    uint32_t bytes; /* of the source */
    uint32_t width; /* in columns */
} Glyph;

static bool code_is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

static uint32_t code_width(uint32_t c)
{
    if ((c >= 0x300 && c <= 0x36f) || (c >= 0x20d0 && c <= 0x20ff) ||
        (c >= 0xfe00 && c <= 0xfe0f)) {
        return 0; /* combining */
    }
    bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
                (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
                (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
                (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
    return wide ? 2 : 1;
}

/* The glyph at `at`, which begins in the given column. */
static Glyph glyph_at(const char *at, const char *end, uint32_t column)
{
    Glyph g = {.text = ""};
    int length;
    uint32_t c = utf8_decode(at, end, &length);
    g.bytes = (uint32_t)length;
    if (*at == '\t') {
        g.width = TAB_WIDTH - column % TAB_WIDTH;
        memset(g.text, ' ', g.width);
    } else if (c == UTF8_BAD) {
        g.width =
            (uint32_t)snprintf(g.text, sizeof g.text, "\\x%02x", (unsigned)(unsigned char)*at);
    } else if (code_is_hidden(c)) {
        g.width = (uint32_t)snprintf(g.text, sizeof g.text, c < 0x80 ? "\\x%02x" : "<U+%04X>",
                                     (unsigned)c);
    } else {
        g.width = code_width(c);
        memcpy(g.text, at, (size_t)length);
    }
    return g;
}

/* No line ends in blanks. */
static void end_line(Text *out)
{
    while (out->n > 0 && out->at[out->n - 1] == ' ') {
        out->at[--out->n] = '\0';
    }
    text_char(out, '\n');
}

/* A message, name or label, escaped, and cut in the middle when it is very long. */
static void put_escaped(Text *out, const char *s)
{
    size_t n = strlen(s);
    const char *end = s + n;
    const char *cut_from = end, *cut_to = end;
    if (n > MESSAGE_LONGEST) {
        cut_from = s + MESSAGE_LONGEST / 2;
        cut_to = end - MESSAGE_LONGEST / 2;
        while (cut_to < end && (*cut_to & 0xc0) == 0x80) {
            cut_to++;
        }
    }
    while (s < end) {
        if (s >= cut_from && s < cut_to) {
            text_put(out, "...");
            s = cut_to;
            continue;
        }
        Glyph g = glyph_at(s, end, 0);
        text_put(out, *s == '\t' ? " " : g.text);
        s += g.bytes;
    }
}

/* The column in which byte `offset` of the line begins. */
static uint32_t column_of(Str line, uint32_t offset)
{
    const char *at = line.at, *end = line.at + line.n;
    uint32_t column = 0;
    while (at < end && (uint32_t)(at - line.at) < offset) {
        Glyph g = glyph_at(at, end, column);
        at += g.bytes;
        column += g.width;
    }
    return column;
}

typedef struct Colors {
    const char *error, *warning, *note, *mark, *bold, *off;
} Colors;

static const Colors no_colors = {"", "", "", "", "", ""};
static const Colors ansi_colors = {"\033[1;31m", "\033[1;35m", "\033[1;36m",
                                   "\033[1;32m", "\033[1m",    "\033[0m"};

typedef struct Renderer {
    Diags *diags;
    Text *out;
    const Colors *color;
} Renderer;

static void put_place(Renderer *r, Span span)
{
    if (span.source == 0) {
        text_printf(r->out, "%s%s:%s ", r->color->bold, r->diags->tool, r->color->off);
        return;
    }
    uint32_t line, column;
    source_position(r->diags->sources, span, &line, &column);
    text_put(r->out, r->color->bold);
    put_escaped(r->out, source_get(r->diags->sources, span.source)->name);
    text_printf(r->out, ":%u:%u:%s ", line, column, r->color->off);
}

/* What is drawn under one source line: columns, relative to the window. */
typedef struct Under {
    uint32_t lo, hi;
    char sign;
    const char *label;
} Under;

typedef struct Window {
    uint32_t from, to; /* columns shown, [from, to) */
    bool cut_left, cut_right;
} Window;

static Window window_around(Str line, uint32_t lo)
{
    uint32_t page = PAGE_WIDTH - GUTTER;
    uint32_t width = column_of(line, (uint32_t)line.n);
    if (width <= page) {
        return (Window){0, width, false, false};
    }
    uint32_t from = lo < page * 2 / 3 ? 0 : lo - page / 2;
    uint32_t to = from + page;
    if (to >= width) {
        return (Window){width - page, width, true, false};
    }
    return (Window){from, to, from > 0, true};
}

static void put_window(Renderer *r, Str line, uint32_t number, Window w)
{
    text_printf(r->out, "%5u | ", number);
    const char *at = line.at, *end = line.at + line.n;
    uint32_t column = 0;
    Text *out = r->out;
    uint32_t from = w.from + (w.cut_left ? 3 : 0), to = w.to - (w.cut_right ? 3 : 0);
    if (w.cut_left) {
        text_put(out, "...");
    }
    uint32_t shown = from;
    while (at < end && column < to) {
        Glyph g = glyph_at(at, end, column);
        if (column >= from && column + g.width <= to) {
            for (; shown < column; shown++) { /* after a glyph the edge cut in two */
                text_char(out, ' ');
            }
            text_put(out, g.text);
            shown += g.width;
        }
        at += g.bytes;
        column += g.width;
    }
    if (w.cut_right) {
        for (; shown < to; shown++) {
            text_char(out, ' ');
        }
        text_put(out, "...");
    }
    end_line(out);
}

/* The rows below a line: signs and the rightmost label first, then a row for each other label. */
static void put_unders(Renderer *r, const Under *under, uint32_t n)
{
    char row[PAGE_WIDTH + 1];
    memset(row, ' ', sizeof row);
    uint32_t end = 0, last = 0;
    for (uint32_t pass = 0; pass < 2;
         pass++) { /* the culprit, under[0], is drawn last: it wins */
        for (uint32_t i = pass == 0 ? 1 : 0; i < (pass == 0 ? n : 1); i++) {
            memset(row + under[i].lo, under[i].sign, under[i].hi - under[i].lo);
            end = under[i].hi > end ? under[i].hi : end;
        }
    }
    for (uint32_t i = 1; i < n; i++) {
        if (under[i].label[0] != '\0' && (last == 0 || under[i].lo >= under[last].lo)) {
            last = i;
        }
    }
    text_printf(r->out, "      | %s%.*s%s", r->color->mark, (int)end, row, r->color->off);
    if (last != 0) {
        text_char(r->out, ' ');
        put_escaped(r->out, under[last].label);
    }
    end_line(r->out);
    for (uint32_t i = 1; i < n; i++) {
        if (i != last && under[i].label[0] != '\0') {
            text_printf(r->out, "      | %*s", (int)under[i].lo, "");
            put_escaped(r->out, under[i].label);
            end_line(r->out);
        }
    }
}

/* The underline of a span in a line that begins at byte `start` of the source; false if it is not in the window.
 * An empty span is one sign wide, a span over several lines ends with the line. */
static bool under_of(Str line, uint32_t start, Span span, Window w, Under *u)
{
    if (span.lo < start || span.lo - start > line.n) {
        return false;
    }
    uint32_t lo = column_of(line, span.lo - start);
    uint32_t last = span.hi <= span.lo ? span.lo - start : span.hi - start;
    uint32_t hi = column_of(line, last < line.n ? last : (uint32_t)line.n);
    hi = hi <= lo ? lo + 1 : hi;
    uint32_t from = w.from + (w.cut_left ? 3 : 0), to = w.to - (w.cut_right ? 3 : 0);
    if (lo < from || lo > to || (lo == to && w.cut_right)) {
        return false;
    }
    u->lo = lo - w.from;
    u->hi = (hi > to + 1 ? to + 1 : hi) - w.from;
    return true;
}

/* A line of a megabyte is cut by bytes first, so that the work for a message is bounded. Returns how much
 * was taken off in front. */
static uint32_t line_crop(Str *line, uint32_t *offset)
{
    uint32_t from = *offset > LINE_LONGEST / 2 ? *offset - LINE_LONGEST / 2 : 0;
    while (from > 0 && from < *offset && (line->at[from] & 0xc0) == 0x80) {
        from++;
    }
    line->at += from;
    line->n -= from;
    line->n = line->n > LINE_LONGEST ? LINE_LONGEST : line->n;
    *offset -= from;
    return from;
}

#define UNDERS 17 /* the culprit and all marks */

/* Source line and underlines for `span`, with those marks of `d` (may be null) that are on the same line; these are
 * noted in `drawn`. */
static void put_source(Renderer *r, Span span, char sign, const Diagnostic *d, bool *drawn)
{
    if (span.source == 0 || source_get(r->diags->sources, span.source)->places_only) {
        return;
    }
    uint32_t number, column;
    source_position(r->diags->sources, span, &number, &column);
    Str line = source_line(r->diags->sources, span.source, number);
    uint32_t start = (uint32_t)(line.at - source_get(r->diags->sources, span.source)->text.at);
    uint32_t offset = span.lo - start < line.n ? span.lo - start : (uint32_t)line.n;
    span.lo = start + offset; /* a span at the end of a line that ends in \r\n */
    start += line_crop(&line, &offset);
    Window w = window_around(line, column_of(line, offset));
    Under under[UNDERS];
    uint32_t n = 0;
    under[0] = (Under){0, 1, sign, ""};
    if (under_of(line, start, span, w, &under[0])) {
        n = 1;
    }
    for (uint32_t i = 0; d != NULL && i < d->marks.n && n > 0 && n < UNDERS; i++) {
        const DiagMark *m = &d->marks.at[i];
        under[n] = (Under){0, 0, '~', m->text};
        if (!m->is_note && m->span.source == span.source &&
            under_of(line, start, m->span, w, &under[n])) {
            drawn[i] = true;
            n++;
        }
    }
    put_window(r, line, number, w);
    if (n > 0) {
        put_unders(r, under, n);
    }
}

/* What begins the message. */
static const char *kind_of(const Diagnostic *d)
{
    return d->severity == SEVERITY_UNSUPPORTED ? "unsupported: "
           : d->severity == SEVERITY_LIMIT     ? "limit: "
                                               : "";
}

const char *diag_text(Arena *arena, const Diagnostic *d)
{
    Text t = text_new(arena);
    text_printf(&t, "%s%s", kind_of(d), d->message);
    for (uint32_t k = 0; k < d->rows.n; k++) {
        text_printf(&t, "\n%s", d->rows.at[k]);
    }
    if (d->because != NULL) {
        text_printf(&t, "\nnote: %s", d->because);
    }
    if (d->help != NULL) {
        text_printf(&t, "\nhelp: %s", d->help);
    }
    return t.at;
}

static void put_head(Renderer *r, const Diagnostic *d)
{
    const Colors *c = r->color;
    bool promoted = d->severity == SEVERITY_WARNING && r->diags->warnings_are_errors;
    put_place(r, d->span);
    if (d->severity == SEVERITY_WARNING) {
        text_printf(r->out, "%s%s:%s ", promoted ? c->error : c->warning,
                    promoted ? "error" : "warning", c->off);
    } else {
        text_printf(r->out, "%serror[%s]:%s %s", c->error, diag_code_text(d->code), c->off,
                    kind_of(d));
    }
    put_escaped(r->out, d->message);
    if (d->severity == SEVERITY_WARNING) {
        text_printf(r->out, " [%s%s]", promoted ? "-Werror, " : "", diag_code_text(d->code));
    }
    end_line(r->out);
}

static void put_includers(Renderer *r, uint32_t source)
{
    for (int depth = 0; source != 0 && depth < 100; depth++) {
        Span at = source_get(r->diags->sources, source)->included_at;
        if (at.source == 0) {
            return;
        }
        uint32_t line, column;
        source_position(r->diags->sources, at, &line, &column);
        text_put(r->out, depth == 0 ? "in file included from " : "                 from ");
        put_escaped(r->out, source_get(r->diags->sources, at.source)->name);
        text_printf(r->out, ":%u:%u:\n", line, column);
        source = at.source;
    }
}

static void put_diagnostic(Renderer *r, const Diagnostic *d)
{
    bool drawn[UNDERS] = {false};
    put_head(r, d);
    put_source(r, d->span, '^', d, drawn);
    for (uint32_t i = 0; i < d->marks.n; i++) {
        const DiagMark *m = &d->marks.at[i];
        if (drawn[i]) {
            continue;
        }
        put_place(r, m->span);
        text_printf(r->out, "%snote:%s ", r->color->note, r->color->off);
        put_escaped(r->out, m->text[0] == '\0' ? "the other place is here" : m->text);
        end_line(r->out);
        put_source(r, m->span, m->is_note ? '^' : '~', NULL, NULL);
    }
    for (uint32_t k = 0; k < d->rows.n; k++) {
        text_put(r->out, "      | ");
        put_escaped(r->out, d->rows.at[k]);
        end_line(r->out);
    }
    const char *const more[] = {d->because, d->help}, *const word[] = {"note", "help"};
    for (uint32_t k = 0; k < 2; k++) {
        if (more[k] != NULL) {
            text_printf(r->out, "      %s= %s:%s ", r->color->note, word[k], r->color->off);
            put_escaped(r->out, more[k]);
            end_line(r->out);
        }
    }
}

/* By place; a stable insertion, since the list is short and usually in order already. */
static void sort_by_place(Diagnostic **list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        Diagnostic *d = list[i];
        uint32_t k = i;
        while (k > 0 && (list[k - 1]->span.source > d->span.source ||
                         (list[k - 1]->span.source == d->span.source &&
                          list[k - 1]->span.lo > d->span.lo))) {
            list[k] = list[k - 1];
            k--;
        }
        list[k] = d;
    }
}

static void put_more(const Diags *d, Text *out, uint32_t n, const char *what)
{
    if (n > 0) {
        text_printf(out, "%s: and %u more %s%s\n", d->tool, n, what, n == 1 ? "" : "s");
    }
}

void diags_render(Diags *d, Text *out, bool color)
{
    Renderer r = {d, out, color ? &ansi_colors : &no_colors};
    uint32_t n = d->list.n, source = 0;
    Diagnostic **sorted = arena_copy(d->arena, d->list.at, n * sizeof *sorted);
    sort_by_place(sorted, n);
    for (uint32_t i = 0; i < n; i++) {
        if (sorted[i]->span.source != source) {
            source = sorted[i]->span.source;
            put_includers(&r, source);
        }
        put_diagnostic(&r, sorted[i]);
    }
    put_more(d, out, d->more_errors, "error");
    put_more(d, out, d->more_warnings, "warning");
    for (uint32_t k = 0; k < d->told.n; k++) {
        text_printf(out, "%s: note: %s\n", d->tool, d->told.at[k]);
    }
}
