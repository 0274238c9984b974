/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text with indentation, on an arena: every dump, report and output file is written into one, then
 * handed to the driver. Numbers are printed without locale. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>

#include "base/check.h"
#include "base/str.h"

typedef struct Text {
    Arena *arena;
    char *at; /* NUL-terminated */
    size_t n, cap;
    int indent; /* levels of `indent_width` blanks put at the start of each non-empty line */
    int indent_width; /* 2 unless set */
    bool line_start;
} Text;

Text text_new(Arena *arena); /* "" */
void text_init(Text *t, Arena *arena);
void text_clear(Text *t);              /* empty, at level 0; keeps its memory */
void text_reserve(Text *t, size_t n);  /* room for n more bytes */
void text_put(Text *t, const char *s); /* may hold newlines; indentation is added after each */
void text_put_n(Text *t, const char *s, size_t n);
void text_char(Text *t, char c);
void text_printf(Text *t, const char *format, ...) PRINTF_LIKE(2, 3);
void text_i64(Text *t, int64_t v);
double unsigned_nan(double v); /* printf may print a NaN's sign, which means nothing */
/* 17 bytes, 1.5 KiB, ...; `one` is the word for less than 1 KiB. */
void text_bytes(Text *t, int64_t bytes, const char *one);
/* The shortest decimal that reads back as the same double; "inf", "-inf", "nan" for those. Always has a '.' or
 * an exponent, so that it reads as a float. */
void text_f64(Text *t, double v);
/* A double-quoted string with \" \\ \n \t \xNN escapes for all outside printable ASCII. */
void text_quoted(Text *t, Str s);
/* The same as JSON writes it: UTF-8 stays as it is. */
void text_json(Text *t, const char *s);
/* What comes before, and the string as JSON, or null. */
void text_member(Text *t, const char *before, const char *s);
/* Within '...' of a shell: the text without these quotes; a backslash before characters of `escaped`. */
void text_shell_quoted(Text *t, const char *s, const char *escaped);
Str text_str(const Text *t);

#endif
