/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and places in them. Line starts are found once per source, on first need: a compilation without
 * messages never looks for lines. */
#include "base/source.h"

#include <string.h>

#include "base/check.h"

void sources_init(Sources *s, Arena *arena)
{
    *s = (Sources){.arena = arena};
}

uint32_t source_add(Sources *s, const char *name, Str text, Span included_at)
{
    CHECK(text.n <= INT32_MAX);
    Source *src = ARENA_NEW(s->arena, Source);
    src->name = name;
    src->text = text;
    src->included_at = included_at;
    vec_push(s->arena, &s->list, src);
    return s->list.n;
}

uint32_t source_add_places(Sources *s, const char *name)
{
    uint32_t number = source_add(s, name, str_from(""), (Span){0, 0, 0});
    s->list.at[number - 1]->places_only = true;
    return number;
}

Span source_place(uint32_t source, uint32_t line, uint32_t column)
{
    CHECK(line >= 1 && line <= PLACE_LINES && column >= 1 && column <= PLACE_COLUMNS);
    uint32_t at = (line - 1) * (PLACE_COLUMNS + 1) + column;
    return (Span){source, at, at};
}

const Source *source_get(const Sources *s, uint32_t number)
{
    CHECK(number >= 1 && number <= s->list.n);
    return s->list.at[number - 1];
}

static Source *source_lines(Sources *s, uint32_t number)
{
    CHECK(number >= 1 && number <= s->list.n);
    Source *src = s->list.at[number - 1];
    if (src->line == NULL) {
        const char *text = src->text.at, *end = text + src->text.n;
        uint32_t n = 1;
        for (const char *p = text; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL;
             p++) {
            n++;
        }
        src->line = ARENA_ARRAY(s->arena, n, uint32_t);
        n = 1;
        for (const char *p = text; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL;
             p++) {
            src->line[n++] = (uint32_t)(p + 1 - text);
        }
        src->n_lines = n;
    }
    return src;
}

void source_position(Sources *s, Span span, uint32_t *line, uint32_t *column)
{
    const Source *src = source_lines(s, span.source);
    if (src->places_only) {
        *line = span.lo / (PLACE_COLUMNS + 1) + 1;
        *column = span.lo % (PLACE_COLUMNS + 1);
        return;
    }
    uint32_t at = span.lo <= src->text.n ? span.lo : (uint32_t)src->text.n;
    uint32_t lo = 0, hi = src->n_lines; /* line[lo] <= at, and at < line[hi] if there is one */
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (src->line[mid] <= at) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    uint32_t n = 1;
    const char *text = src->text.at;
    for (uint32_t i = src->line[lo]; i < at;
         i++) { /* a code point is a byte that continues none */
        n += (text[i] & 0xc0) != 0x80;
    }
    *line = lo + 1;
    *column = n;
}

Str source_line(Sources *s, uint32_t source, uint32_t line)
{
    const Source *src = source_lines(s, source);
    CHECK(line >= 1 && line <= src->n_lines);
    uint32_t lo = src->line[line - 1];
    uint32_t hi = line == src->n_lines ? (uint32_t)src->text.n : src->line[line] - 1;
    if (hi > lo && src->text.at[hi - 1] == '\r') {
        hi--;
    }
    return (Str){src->text.at + lo, hi - lo};
}

Span span_join(Span a, Span b)
{
    if (a.source == 0) {
        return b;
    }
    if (b.source != a.source) {
        return a;
    }
    return (Span){a.source, a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

const SourceStatement *source_statement(const SourceStatements *s, Span span)
{
    uint32_t lo = 0, hi = s->n; /* at[lo - 1] begins no later than the span, and at[hi] later */
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->at[mid].span.lo <= span.lo) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    bool here = lo > 0 && span.source != 0 && s->at[lo - 1].span.source == span.source;
    return here ? &s->at[lo - 1] : NULL;
}
