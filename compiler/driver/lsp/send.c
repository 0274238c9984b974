/* SPDX-License-Identifier: Apache-2.0 */
/* Messages out. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/lsp/server.h"

void lsp_send(LspServer *s, json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    CHECK(text != NULL);
    s->gone = s->gone || !lsp_frames_write(STDOUT_FILENO, text, strlen(text));
    free(text);
    json_decref(message);
}

void lsp_answer(LspServer *s, json_t *id, json_t *result)
{
    lsp_send(s, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result));
}

void lsp_refuse(LspServer *s, json_t *id, int code, const char *why)
{
    lsp_send(s, json_pack("{s:s, s:o, s:{s:i, s:o}}", "jsonrpc", "2.0", "id",
                          id == NULL ? json_null() : json_incref(id), "error", "code", code,
                          "message", uri_string(why)));
}
