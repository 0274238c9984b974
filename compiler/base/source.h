/* SPDX-License-Identifier: Apache-2.0 */
/* Where text came from. A span is two byte offsets and a source number; lines and columns exist only when a
 * message is printed. An einsum literal inside a .tdsl file is scanned in place, so its spans are the file's. */
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include "base/str.h"
#include "base/vec.h"

typedef struct Span {
    uint32_t source; /* 0: no place */
    uint32_t lo, hi; /* bytes [lo, hi) */
} Span;

typedef struct Source {
    const char *name; /* as given by the user */
    Str text;         /* NUL-terminated beyond n; at most 2^31 - 1 bytes */
    Span included_at; /* source 0 for the main file */
    uint32_t *line;   /* offsets of line starts, made on first need */
    uint32_t n_lines;
    bool places_only; /* no text: spans are made by source_place */
} Source;

/* A statement of a program: where it stands and what it says, on one line. */
typedef struct SourceStatement {
    Span span;
    const char *text;
} SourceStatement;

typedef struct SourceStatements { /* those of one kernel: of one source, in its order */
    uint32_t n;
    const SourceStatement *at;
} SourceStatements;

/* Lines that stages carry along without reading them. */
typedef struct TextLines {
    uint32_t n;
    const char *const *at;
} TextLines;

typedef struct Sources {
    Arena *arena;
    VEC(Source *) list; /* list.at[k] has number k + 1 */
} Sources;

void sources_init(Sources *s, Arena *arena);
/* Keeps `text` (no copy). Returns the source's number. */
uint32_t source_add(Sources *s, const char *name, Str text, Span included_at);
const Source *source_get(const Sources *s, uint32_t number);
/* A source known by its places only (the program a dump was made from): an offset is a line and
 * a column. */
#define PLACE_LINES   (1 << 20)
#define PLACE_COLUMNS ((1 << 12) - 1)
uint32_t source_add_places(Sources *s, const char *name);
Span source_place(uint32_t source, uint32_t line,
                  uint32_t column); /* within the limits, 1-based */
/* 1-based; the column counts Unicode scalar values. */
void source_position(Sources *s, Span span, uint32_t *line, uint32_t *column);
Str source_line(Sources *s, uint32_t source, uint32_t line);
Span span_join(Span a, Span b);
/* The statement that this place is part of; null: none. */
const SourceStatement *source_statement(const SourceStatements *s, Span span);

#endif
