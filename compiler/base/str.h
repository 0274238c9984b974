/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, and interned strings as a type of their own: two Syms of one table are the same text if and only
 * if they are the same pointer. Sym text ends in NUL and holds none before. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/arena.h"

typedef struct Str {
    const char *at;
    size_t n;
} Str;

typedef struct SymText {
    uint32_t n;  /* bytes without the NUL */
    uint32_t id; /* dense, in order of interning */
    char text[];
} SymText;
typedef const SymText *Sym;

typedef struct SymTable {
    Arena *arena;
    Sym *slot; /* open addressing */
    uint32_t n, cap;
} SymTable;

void symtable_init(SymTable *t, Arena *arena);
Sym sym_intern(SymTable *t, const char *text, size_t n);
Sym sym_cstr(SymTable *t, const char *text);

Str str_from(const char *text); /* NUL-terminated */
bool str_eq(Str a, Str b);
bool str_eq_cstr(Str a, const char *b);
char *str_dup(Arena *a, Str s); /* NUL-terminated copy */
char *str_format(Arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *str_vformat(Arena *a, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Damerau-Levenshtein distance, at most `limit` + 1: for "did you mean". */
int str_distance(Str a, Str b, int limit);

/* Valid UTF-8 (no surrogates, no overlong forms, no NUL)? If not, *bad is the offset of the first bad byte. */
bool utf8_valid(Str s, size_t *bad);
/* Decodes the code point at `at` and its length in bytes; UTF8_BAD and length 1 where the bytes are not valid. */
#define UTF8_BAD UINT32_MAX
uint32_t utf8_decode(const char *at, const char *end, int *length);
int utf8_from_code(uint32_t code, char out[4]);

#endif
