/* SPDX-License-Identifier: Apache-2.0 */
/* Places in a text as the language server protocol counts them: lines from 0 that end in \n, \r\n or \r, and UTF-16
 * code units in a line. */
#ifndef DRIVER_LSP_LINES_H
#define DRIVER_LSP_LINES_H

#include <jansson.h>

#include "base/str.h"

typedef struct LspPlace {
    uint32_t line, unit;
} LspPlace;

typedef struct LspLines {
    Str text;
    uint32_t *start; /* offsets of lines */
    uint32_t n;
    uint32_t at;    /* the byte that was asked for last, and */
    LspPlace place; /* where that is: in order, a text is read once */
} LspLines;

/* The text, of less than 2^31 bytes, is kept. */
void lsp_lines_init(LspLines *l, Str text);
void lsp_lines_free(LspLines *l);
LspPlace lsp_place(LspLines *l, uint32_t byte);
/* Of a place beyond the end of its line, that end; beyond the last line, the end of the text. */
uint32_t lsp_byte(LspLines *l, LspPlace place);
/* {"start": .., "end": ..} */
json_t *lsp_range(LspLines *l, uint32_t lo, uint32_t hi);
/* {"line": .., "character": ..}; false: it is none. */
bool lsp_read_place(const json_t *position, LspPlace *out);

/* Of a name. */
static inline bool lsp_is_letter(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

#endif
