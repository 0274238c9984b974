/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the language server: answers of requests by their params; null after a fault. */
#ifndef DRIVER_LSP_ANSWERS_H
#define DRIVER_LSP_ANSWERS_H

#include "driver/lsp/server.h"

json_t *lsp_definition(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_references(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_highlights(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_outline(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_prepare_rename(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_rename(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_format(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_actions(LspServer *s, const json_t *params, LspFault *fault);
json_t *lsp_complete(LspServer *s, const json_t *params, LspFault *fault);
/* hover.c. *wants: null, or the kernel whose price would belong there. */
json_t *lsp_hover(LspServer *s, const json_t *params, LspFault *fault, const char **wants);

#endif
