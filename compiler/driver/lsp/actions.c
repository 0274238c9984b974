/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a text: its layout, and cures of mistakes. */
#include <stdlib.h>
#include <string.h>

#include "driver/lsp/answers.h"

#define FORMAT_SECONDS 5.0

static json_t *format(void *user, Ctx *ctx, Arena *arena, Text *more)
{
    return lsp_formatted(ctx, arena, user, more);
}

static bool begins_line(const char *text, size_t at)
{
    return at == 0 || text[at - 1] == '\n';
}

/* One edit of the lines between those that stay. */
static json_t *edit(LspDocument *d, const char *with, size_t m)
{
    const char *text = d->text;
    size_t n = d->lines.text.n, same = 0, end = 0;
    while (same < n && same < m && text[same] == with[same]) {
        same++;
    }
    while (!begins_line(text, same)) {
        same--;
    }
    while (end < n - same && end < m - same && text[n - 1 - end] == with[m - 1 - end]) {
        end++;
    }
    while (end > 0 && (!begins_line(text, n - end) || !begins_line(with, m - end))) {
        end--;
    }
    return json_pack("[{s:o, s:o}]", "range",
                     lsp_range(&d->lines, (uint32_t)same, (uint32_t)(n - end)), "newText",
                     json_stringn(with + same, m - end - same));
}

json_t *lsp_format(LspServer *s, const json_t *params, LspFault *fault)
{
    const char *why = NULL;
    LspDocument *d = lsp_which(s, params, fault);
    if (d == NULL) {
        return NULL;
    }
    LspText text = lsp_document_text(s, d);
    char *with = NULL;
    json_t *made = lsp_task_run(format, &text, &s->scratch, FORMAT_SECONDS, &with, &why);
    json_t *answer = json_null(); /* a text with mistakes has no layout: its messages say so */
    if (why != NULL) {
        *fault = (LspFault){LSP_FAILED, why};
    } else if (json_is_true(made)) {
        bool same = strcmp(with, d->text) == 0;
        answer = same ? json_array() : edit(d, with, strlen(with));
    }
    json_decref(made);
    free(with);
    return answer;
}

/* ---- fixes ---- */

static bool is_before(LspPlace a, LspPlace b)
{
    return a.line < b.line || (a.line == b.line && a.unit < b.unit);
}

static bool meet(const json_t *x, const json_t *y)
{
    LspPlace from[2], to[2];
    const json_t *const of[] = {x, y};
    for (int k = 0; k < 2; k++) {
        if (!lsp_read_place(json_object_get(of[k], "start"), &from[k]) ||
            !lsp_read_place(json_object_get(of[k], "end"), &to[k])) {
            return false;
        }
    }
    return !is_before(to[0], from[1]) && !is_before(to[1], from[0]);
}

static const char *title(LspServer *s, LspDocument *d, const json_t *fix)
{
    const json_t *range = json_object_get(fix, "range");
    const char *text = lsp_text(fix, "newText");
    LspPlace from = {0, 0}, to = {0, 0};
    (void)lsp_read_place(json_object_get(range, "start"), &from);
    (void)lsp_read_place(json_object_get(range, "end"), &to);
    uint32_t lo = lsp_byte(&d->lines, from), hi = lsp_byte(&d->lines, to);
    int shown = hi - lo < 40 ? (int)(hi - lo) : 40;
    return shown == 0
               ? str_format(&s->scratch, "Insert '%s'", text)
               : str_format(&s->scratch, "Replace '%.*s' by '%s'", shown, d->text + lo, text);
}

static void add_action(LspServer *s, LspDocument *d, json_t *said, const json_t *fix,
                       bool first, json_t *list)
{
    json_t *changes = json_object();
    json_object_set_new(changes, d->uri, json_pack("[O]", fix));
    json_array_append_new(list, json_pack("{s:o, s:s, s:[O], s:b, s:{s:o}}", "title",
                                          uri_string(title(s, d, fix)), "kind", "quickfix",
                                          "diagnostics", said, "isPreferred", first, "edit",
                                          "changes", changes));
}

static bool wants_fixes(const json_t *params)
{
    const json_t *only = json_object_get(json_object_get(params, "context"), "only");
    bool wanted = !json_is_array(only);
    for (size_t k = 0; k < json_array_size(only); k++) {
        const char *kind = json_string_value(json_array_get(only, k));
        wanted = wanted || (kind != NULL && (kind[0] == '\0' || strcmp(kind, "quickfix") == 0));
    }
    return wanted;
}

json_t *lsp_actions(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = lsp_which(s, params, fault);
    json_t *list = json_array();
    const json_t *said = d == NULL ? NULL : json_object_get(d->meaning.root, "diagnostics");
    for (size_t k = 0; wants_fixes(params) && k < json_array_size(said); k++) {
        json_t *one = json_array_get(said, k);
        const json_t *fixes = json_object_get(json_object_get(one, "data"), "fixes");
        if (!meet(json_object_get(one, "range"), json_object_get(params, "range"))) {
            continue;
        }
        for (size_t f = 0; f < json_array_size(fixes); f++) {
            add_action(s, d, one, json_array_get(fixes, f), f == 0, list);
        }
    }
    return list;
}
