/* SPDX-License-Identifier: Apache-2.0 */
/* Names and foreign text in generated C: identifiers that are unique and mean nothing else to a C or C++ compiler,
 * and the only filters through which text of the user reaches comments and strings. */
#ifndef BACKEND_CTEXT_NAMES_H
#define BACKEND_CTEXT_NAMES_H

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

/* The names of one scope. All are different from each other and from every reserved name. */
typedef struct Names {
    Arena *arena;
    Map at; /* hash of the text -> its number in `list` */
    VEC(const char *) list;
    VEC(uint32_t) next; /* by number: what follows the name when it is wished for again */
} Names;

void names_init(Names *n, Arena *arena);
/* `wish` itself where it is free, else with '_' or a number after it. */
const char *names_take(Names *n, const char *wish);
/* Takes `word` as it is; false when it is taken. */
bool names_claim(Names *n, const char *word);
/* Is the word of n bytes a name of this scope? *number: its place in `list`. */
bool names_find(const Names *names, const char *word, size_t n, uint32_t *number);

/* Keywords of C and C++, names and macros of the standard headers, names that generated text uses itself. */
bool c_name_reserved(const char *word);
/* What the function of kernel `name` is called in C: the name itself unless a library or a language has it. */
const char *c_symbol(Arena *a, const char *name);
/* "'exp' is a function of the C library": why c_symbol changes the name; null: it does not. */
const char *c_symbol_why(Arena *a, const char *name);

/* Printable ASCII as it is; all else, and what could end a comment or splice a line, as <hex>. */
void text_comment(Text *out, Str s);
/* A C string literal without trigraphs and escapes that a following digit could extend. */
void text_literal(Text *out, const char *s);

#endif
