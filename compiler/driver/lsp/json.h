/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the language server share about JSON, files' names and Markdown. */
#ifndef DRIVER_LSP_JSON_H
#define DRIVER_LSP_JSON_H

#include <jansson.h>

#include "base/text.h"

/* The text as a string; where it is no UTF-8, other characters than those of ASCII are '?'. Null becomes null. */
json_t *lsp_string(const char *text);
/* A member's text, or null. */
const char *lsp_text(const json_t *object, const char *member);
/* A whole number in [0, INT32_MAX]; false: it is none. */
bool lsp_number(const json_t *value, uint32_t *out);

/* "file:///a%20b.tdsl" of a path, and the other way; of another scheme, the address itself. */
char *lsp_uri(Arena *arena, const char *path);
char *lsp_path(Arena *arena, const char *uri);

#endif
