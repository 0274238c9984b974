/* SPDX-License-Identifier: Apache-2.0 */
/* Semantic tokens: every token and comment of a text, broken or not, with what its name is. */
#ifndef DRIVER_LSP_TOKENS_H
#define DRIVER_LSP_TOKENS_H

#include <jansson.h>

#include "driver/lsp/names.h"

/* The names of kinds and of modifiers, in the order of their numbers. */
json_t *lsp_token_legend(void);
/* "0,0,6,0,0,": five numbers each, as the protocol has them. A name that has no use there, since its statement did not parse, is what
 * another of that name is, at last one that was `known` before. */
void lsp_tokens(Ctx *ctx, uint32_t source, const LspNames *names, const LspNames *known,
                Text *out);

#endif
