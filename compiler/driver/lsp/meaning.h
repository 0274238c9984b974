/* SPDX-License-Identifier: Apache-2.0 */
/* What the front end knows of a text, which a process hands to the server. As JSON:
 *
 *   diagnostics  as the protocol has them, with `data.fixes`
 *   damaged      something did not parse
 *   includes     other files are read
 *
 * and as text, four sections:
 *
 *   symbols      lines of fields, a tab behind each: the kind, 0 or the kernel's number from 1; the bytes of the definition in this text,
 *                or 0 0; those of the statement that an index belongs to, or 0 0; name, detail, about, and of another file's the
 *                address and the four numbers of the range
 *   uses         lo hi symbol writes ... in the order of the text
 *   kernels      lines of name, lo, hi of those in this text; lo and hi 0 of others
 *   tokens       the numbers of semantic tokens, with commas between */
#ifndef DRIVER_LSP_MEANING_H
#define DRIVER_LSP_MEANING_H

#include "driver/input.h"
#include "driver/lsp/json.h"
#include "driver/lsp/names.h"

struct ToolRun;
#define LSP_SECTION '\x1e' /* behind each */

typedef struct LspText {
    const char *path, *uri;
    Str text;
    const Options *options;
    IncludeReader edited; /* of files that are open in the editor */
    void *editor;
    /* The k-th name of the last text that parsed; null past the last. */
    const char *(*name)(const void *whole, uint32_t k, LspKind *kind);
    const void *whole;
} LspText;

/* `arena` is one of the context's budget. */
json_t *lsp_meaning(Ctx *ctx, Arena *arena, const LspText *t, Text *more);
/* True, and the whole text laid out; of one that does not follow the grammar false. */
json_t *lsp_formatted(Ctx *ctx, Arena *arena, const LspText *t, Text *more);
/* price.c: of a kernel, as phrases: {"about": of all of it, "lines": {"7": ..}, "values": {"T": where it lives}}; null where it does not
 * compile. */
json_t *lsp_prices(struct ToolRun *tool, Ctx *ctx, Arena *arena, const LspText *t,
                   const char *kernel);
/* Reads the text and what it includes; false where it has mistakes. */
bool lsp_read(Ctx *ctx, Arena *arena, const LspText *t, Input *in);

#endif
