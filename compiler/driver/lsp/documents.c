/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that the editor has open: their changes, and what is known of them. */
#include <stdlib.h>
#include <string.h>

#include "driver/lsp/server.h"

/* Seconds that a text may take, which is thousands of times what one of a thousand lines does. */
#define LOOK_SECONDS 5.0
/* Bytes of a text: as of a file. */
#define TEXT_LIMIT ((size_t)64 << 20)

LspDocument *lsp_document(const LspServer *s, const char *uri)
{
    for (uint32_t k = 0; uri != NULL && k < s->documents.n; k++) {
        if (strcmp(s->documents.at[k]->uri, uri) == 0) {
            return s->documents.at[k];
        }
    }
    return NULL;
}

static char *keep(const char *text, size_t n)
{
    char *made = malloc(n + 1);
    CHECK(made != NULL);
    memcpy(made, text, n);
    made[n] = '\0';
    return made;
}

static void forget_prices(LspServer *s, LspDocument *d)
{
    json_object_clear(d->prices);
    if (s->priced == d) {
        lsp_task_stop(&s->price);
        s->priced = NULL;
    }
}

/* `text` is the document's from now on. */
static void set_text(LspServer *s, LspDocument *d, char *text, size_t n)
{
    free(d->text);
    lsp_lines_free(&d->lines);
    d->text = text;
    lsp_lines_init(&d->lines, (Str){text, n});
    d->dirty = true;
    forget_prices(s, d);
    for (uint32_t k = 0; k < s->documents.n; k++) { /* which may include this one */
        LspDocument *other = s->documents.at[k];
        if (other != d && other->meaning.includes) {
            other->dirty = true;
            forget_prices(s, other);
        }
    }
}

static void set_version(LspDocument *d, const json_t *document)
{
    json_decref(d->version);
    d->version = json_incref(json_object_get(document, "version"));
}

void lsp_open(LspServer *s, const json_t *params)
{
    const json_t *document = json_object_get(params, "textDocument");
    const char *uri = lsp_text(document, "uri"), *text = lsp_text(document, "text");
    size_t n = json_string_length(json_object_get(document, "text"));
    if (uri == NULL || text == NULL || n > TEXT_LIMIT) {
        return;
    }
    LspDocument *d = lsp_document(s, uri);
    if (d == NULL) {
        d = calloc(1, sizeof *d);
        CHECK(d != NULL);
        const char *path = uri_path(&s->scratch, uri);
        d->uri = keep(uri, strlen(uri));
        d->path = keep(path, strlen(path));
        d->prices = json_object();
        vec_push(&s->tool->arena, &s->documents, d);
    }
    set_version(d, document);
    set_text(s, d, keep(text, n), n);
}

/* The text with what one change of `contentChanges` says; null: that is no change. */
static char *changed(LspDocument *d, const json_t *change, size_t *n)
{
    const json_t *range = json_object_get(change, "range");
    const char *with = lsp_text(change, "text");
    size_t more = json_string_length(json_object_get(change, "text"));
    LspPlace from, to;
    if (with == NULL || more > TEXT_LIMIT) {
        return NULL;
    }
    if (range == NULL || json_is_null(range)) {
        *n = more;
        return keep(with, more);
    }
    if (!lsp_read_place(json_object_get(range, "start"), &from) ||
        !lsp_read_place(json_object_get(range, "end"), &to)) {
        return NULL;
    }
    size_t lo = lsp_byte(&d->lines, from), hi = lsp_byte(&d->lines, to);
    if (hi < lo) {
        size_t other = lo;
        lo = hi;
        hi = other;
    }
    *n = lo + more + d->lines.text.n - hi;
    if (*n > TEXT_LIMIT) {
        return NULL;
    }
    char *made = malloc(*n + 1);
    CHECK(made != NULL);
    memcpy(made, d->text, lo);
    memcpy(made + lo, with, more);
    memcpy(made + lo + more, d->text + hi, d->lines.text.n - hi);
    made[*n] = '\0';
    return made;
}

void lsp_change(LspServer *s, const json_t *params)
{
    const json_t *document = json_object_get(params, "textDocument");
    const json_t *changes = json_object_get(params, "contentChanges");
    LspDocument *d = lsp_document(s, lsp_text(document, "uri"));
    for (size_t k = 0; d != NULL && k < json_array_size(changes); k++) {
        size_t n = 0;
        char *text = changed(d, json_array_get(changes, k), &n);
        if (text != NULL) {
            set_text(s, d, text, n);
        }
    }
    if (d != NULL) {
        set_version(d, document);
    }
}

void lsp_document_free(LspDocument *d)
{
    lsp_meaning_free(&d->meaning);
    lsp_meaning_free(&d->whole);
    lsp_lines_free(&d->lines);
    json_decref(d->version);
    json_decref(d->prices);
    free(d->uri);
    free(d->path);
    free(d->text);
    free(d);
}

static void publish(LspServer *s, const char *uri, json_t *version, json_t *list)
{
    json_t *params = json_pack("{s:s, s:o}", "uri", uri, "diagnostics", list);
    if (json_is_integer(version)) {
        json_object_set(params, "version", version);
    }
    lsp_send(s, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method",
                          "textDocument/publishDiagnostics", "params", params));
}

void lsp_close(LspServer *s, const json_t *params)
{
    const char *uri = lsp_text(json_object_get(params, "textDocument"), "uri");
    LspDocument *d = lsp_document(s, uri);
    for (uint32_t k = 0; d != NULL && k < s->documents.n; k++) {
        if (s->documents.at[k] == d) {
            forget_prices(s, d);
            publish(s, d->uri, NULL, json_array());
            s->documents.at[k] = s->documents.at[--s->documents.n];
            lsp_document_free(d);
            return;
        }
    }
}

/* ---- what is known ---- */

static IncludeStatus read_edited(void *editor, const char *path, Str *text, const char **why)
{
    const LspServer *s = editor;
    (void)why;
    for (uint32_t k = 0; k < s->documents.n; k++) {
        if (strcmp(s->documents.at[k]->path, path) == 0) {
            *text = s->documents.at[k]->lines.text;
            return INCLUDE_READ;
        }
    }
    return INCLUDE_ABSENT;
}

static const char *name_of(const void *whole, uint32_t k, LspKind *kind)
{
    const LspMeaning *m = whole;
    if (k >= m->symbols.n) {
        return NULL;
    }
    *kind = m->symbols.at[k].kind;
    return m->symbols.at[k].name;
}

LspText lsp_document_text(LspServer *s, const LspDocument *d)
{
    bool parsed = d->meaning.root != NULL && !d->meaning.damaged;
    return (LspText){.name = name_of,
                     .whole = parsed ? &d->meaning : &d->whole,
                     .path = d->path,
                     .uri = d->uri,
                     .text = d->lines.text,
                     .options = &s->tool->options,
                     .edited = read_edited,
                     .editor = s};
}

static json_t *look(void *user, Ctx *ctx, Arena *arena, Text *more)
{
    return lsp_meaning(ctx, arena, user, more);
}

void lsp_look(LspServer *s, LspDocument *d)
{
    const char *why = NULL;
    LspText text = lsp_document_text(s, d);
    char *more = NULL;
    json_t *root = lsp_task_run(look, &text, &s->scratch, LOOK_SECONDS, &more, &why);
    if (d->meaning.root != NULL && !d->meaning.damaged) {
        lsp_meaning_free(&d->whole);
        d->whole = d->meaning;
    } else {
        lsp_meaning_free(&d->meaning);
    }
    d->meaning = (LspMeaning){0};
    d->dirty = false;
    json_t *list = NULL;
    if (root != NULL) {
        lsp_meaning_read(&d->meaning, root, more);
        list = json_incref(json_object_get(root, "diagnostics"));
    } else {
        free(more);
        list = json_pack("[{s:{s:{s:i,s:i},s:{s:i,s:i}}, s:i, s:s, s:s}]", "range", "start",
                         "line", 0, "character", 0, "end", "line", 0, "character", 0,
                         "severity", 1, "source", "tdslc", "message", why);
    }
    publish(s, d->uri, d->version, list);
}

LspDocument *lsp_which(LspServer *s, const json_t *params, LspFault *fault)
{
    const char *uri = lsp_text(json_object_get(params, "textDocument"), "uri");
    LspDocument *d = lsp_document(s, uri);
    if (d == NULL) {
        *fault = (LspFault){LSP_INVALID_PARAMS, uri == NULL ? "textDocument.uri is missing"
                                                            : "this document is not open"};
    } else if (d->dirty) {
        lsp_look(s, d);
    }
    return d;
}

LspDocument *lsp_where(LspServer *s, const json_t *params, uint32_t *byte, LspFault *fault)
{
    LspPlace place;
    LspDocument *d = lsp_which(s, params, fault);
    if (d != NULL && !lsp_read_place(json_object_get(params, "position"), &place)) {
        *fault = (LspFault){LSP_INVALID_PARAMS, "position is missing"};
        return NULL;
    }
    *byte = d == NULL ? 0 : lsp_byte(&d->lines, place);
    return d;
}
