/* SPDX-License-Identifier: Apache-2.0 */
/* See lines.h. */
#include "driver/lsp/lines.h"

#include <stdlib.h>

#include "base/check.h"
#include "driver/lsp/json.h"

static bool ends_line(Str text, uint32_t at)
{
    return text.at[at] == '\n' ||
           (text.at[at] == '\r' && (at + 1 == text.n || text.at[at + 1] != '\n'));
}

void lsp_lines_init(LspLines *l, Str text)
{
    CHECK(text.n <= INT32_MAX);
    uint32_t n = 1;
    for (uint32_t k = 0; k < text.n; k++) {
        n += ends_line(text, k) ? 1 : 0;
    }
    *l = (LspLines){.text = text, .start = malloc(n * sizeof *l->start)};
    CHECK(l->start != NULL);
    l->start[l->n++] = 0;
    for (uint32_t k = 0; k < text.n; k++) {
        if (ends_line(text, k)) {
            l->start[l->n++] = k + 1;
        }
    }
}

void lsp_lines_free(LspLines *l)
{
    free(l->start);
    *l = (LspLines){0};
}

/* Bytes of the character at `at`, and its code units. */
static uint32_t step(Str text, uint32_t at, uint32_t *units)
{
    int length = 1;
    uint32_t code = (unsigned char)text.at[at];
    if (code >= 0x80) {
        code = utf8_decode(text.at + at, text.at + text.n, &length);
    }
    *units = code != UTF8_BAD && code > 0xffff ? 2 : 1;
    return (uint32_t)length;
}

/* The last line that begins at `byte` or before it. */
static uint32_t line_of(const LspLines *l, uint32_t byte)
{
    uint32_t lo = 0, hi = l->n;
    while (hi - lo > 1) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (l->start[middle] <= byte) {
            lo = middle;
        } else {
            hi = middle;
        }
    }
    return lo;
}

LspPlace lsp_place(LspLines *l, uint32_t byte)
{
    byte = byte < l->text.n ? byte : (uint32_t)l->text.n;
    uint32_t line = line_of(l, byte), at = l->start[line], unit = 0;
    if (line == l->place.line && l->at <= byte) {
        at = l->at;
        unit = l->place.unit;
    }
    while (at < byte) {
        uint32_t units = 1, length = step(l->text, at, &units);
        if (at + length > byte) {
            break; /* inside of a character: before it */
        }
        at += length;
        unit += units;
    }
    l->at = at;
    l->place = (LspPlace){line, unit};
    return l->place;
}

uint32_t lsp_byte(LspLines *l, LspPlace place)
{
    if (place.line >= l->n) {
        return (uint32_t)l->text.n;
    }
    uint32_t at = l->start[place.line];
    uint32_t end = place.line + 1 < l->n ? l->start[place.line + 1] - 1 : (uint32_t)l->text.n;
    end -= end > at && place.line + 1 < l->n && l->text.at[end] == '\n' &&
                   l->text.at[end - 1] == '\r'
               ? 1
               : 0;
    for (uint32_t unit = 0; at < end && unit < place.unit;) {
        uint32_t units = 1, length = step(l->text, at, &units);
        if (unit + units > place.unit) {
            break;
        }
        unit += units;
        at += length;
    }
    return at < end ? at : end;
}

static json_t *place_json(LspPlace p)
{
    return json_pack("{s:i, s:i}", "line", (int)p.line, "character", (int)p.unit);
}

json_t *lsp_range(LspLines *l, uint32_t lo, uint32_t hi)
{
    json_t *start = place_json(lsp_place(l, lo)), *end = place_json(lsp_place(l, hi));
    return json_pack("{s:o, s:o}", "start", start, "end", end);
}

bool lsp_read_place(const json_t *position, LspPlace *out)
{
    return lsp_number(json_object_get(position, "line"), &out->line) &&
           lsp_number(json_object_get(position, "character"), &out->unit);
}
