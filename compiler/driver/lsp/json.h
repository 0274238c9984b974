/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the language server share about JSON. */
#ifndef DRIVER_LSP_JSON_H
#define DRIVER_LSP_JSON_H

#include "driver/uri.h"

/* A member's text, or null. */
const char *lsp_text(const json_t *object, const char *member);
/* A whole number in [0, INT32_MAX]; false: it is none. */
bool lsp_number(const json_t *value, uint32_t *out);

#endif
