/* SPDX-License-Identifier: Apache-2.0 */
/* Where a name is defined and used, and a new one for it; the outline of a text. */
#include <stdlib.h>
#include <string.h>

#include "driver/lsp/answers.h"

static json_t *use_range(LspDocument *d, const LspUsed *u)
{
    return lsp_range(&d->lines, u->lo, u->hi);
}

/* The number of the symbol at the place of the request; UINT32_MAX: there is none in this text. */
static uint32_t symbol_at(LspServer *s, const json_t *params, LspFault *fault, LspDocument **d)
{
    uint32_t byte = 0;
    bool old = false;
    *d = lsp_where(s, params, &byte, fault);
    const LspFound *f = *d == NULL ? NULL : lsp_find(*d, byte, &old);
    return f == NULL || old ? UINT32_MAX : (uint32_t)(f - (*d)->meaning.symbols.at);
}

json_t *lsp_definition(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = NULL;
    uint32_t symbol = symbol_at(s, params, fault, &d);
    json_t *place =
        symbol == UINT32_MAX ? NULL : lsp_found_location(d, &d->meaning.symbols.at[symbol]);
    return place == NULL ? json_null() : place;
}

json_t *lsp_references(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = NULL;
    uint32_t symbol = symbol_at(s, params, fault, &d);
    json_t *list = json_array();
    if (symbol == UINT32_MAX) {
        return list;
    }
    const LspFound *f = &d->meaning.symbols.at[symbol];
    bool with =
        json_is_true(json_object_get(json_object_get(params, "context"), "includeDeclaration"));
    for (uint32_t k = 0; k < d->meaning.uses.n; k++) {
        const LspUsed *u = &d->meaning.uses.at[k];
        if (u->symbol == symbol && (with || u->lo != f->lo || f->hi == 0)) {
            json_array_append_new(
                list, json_pack("{s:s, s:o}", "uri", d->uri, "range", use_range(d, u)));
        }
    }
    if (with && f->uri != NULL) {
        json_array_append_new(list, lsp_found_location(d, f));
    }
    return list;
}

json_t *lsp_highlights(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = NULL;
    uint32_t symbol = symbol_at(s, params, fault, &d);
    json_t *list = json_array();
    for (uint32_t k = 0; symbol != UINT32_MAX && k < d->meaning.uses.n; k++) {
        const LspUsed *u = &d->meaning.uses.at[k];
        if (u->symbol == symbol) { /* 2: read, 3: written */
            json_array_append_new(list, json_pack("{s:o, s:i}", "range", use_range(d, u),
                                                  "kind", u->writes ? 3 : 2));
        }
    }
    return list;
}

/* ---- names ---- */

static bool is_renamed(const LspFound *f, LspFault *fault)
{
    bool word = f->kind == LSP_FUNCTION || f->kind == LSP_TYPE || f->kind == LSP_ATTRIBUTE ||
                f->kind == LSP_WORD ||
                (f->kind == LSP_CONSTANT && f->hi == 0 && f->uri == NULL);
    const char *why = word                  ? "this is a word of the language"
                      : f->kind == LSP_FILE ? "files are renamed elsewhere"
                      : f->uri != NULL      ? "this is defined in another file"
                      : f->hi == 0          ? "this is of a library"
                                            : NULL;
    *fault = why == NULL ? (LspFault){0} : (LspFault){LSP_FAILED, why};
    return why == NULL;
}

/* The use at the place of the request, or null. */
static const LspUsed *use_at(LspServer *s, const json_t *params, LspFault *fault,
                             LspDocument **d, const LspFound **f)
{
    uint32_t byte = 0;
    *d = lsp_where(s, params, &byte, fault);
    uint32_t use = *d == NULL ? UINT32_MAX : lsp_use_at(&(*d)->meaning, byte);
    const LspUsed *u = use == UINT32_MAX ? NULL : &(*d)->meaning.uses.at[use];
    *f = u == NULL ? NULL : &(*d)->meaning.symbols.at[u->symbol];
    return u;
}

json_t *lsp_prepare_rename(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = NULL;
    const LspFound *f = NULL;
    const LspUsed *u = use_at(s, params, fault, &d, &f);
    if (u == NULL || !is_renamed(f, fault)) {
        return json_null();
    }
    return json_pack("{s:o, s:s}", "range", use_range(d, u), "placeholder", f->name);
}

static bool is_name(const char *text)
{
    static const char *const taken[] = {"include", "dim",   "const", "kernel",
                                        "inout",   "spill", "true",  "false"};
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    bool ok = n > 0 && text[n] == '\0' && (text[0] < '0' || text[0] > '9');
    for (size_t k = 0; k < sizeof taken / sizeof taken[0]; k++) {
        ok = ok && strcmp(text, taken[k]) != 0;
    }
    return ok;
}

/* Does another name that can be seen where `f` is, in the space that it is of, read `name`? */
static bool is_taken(const LspMeaning *m, const LspFound *f, const char *name)
{
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        const LspFound *other = &m->symbols.at[k];
        if (other == f || strcmp(other->name, name) != 0) {
            continue;
        }
        bool apart = other->kernel != f->kernel && other->kernel >= 0 && f->kernel >= 0 &&
                     f->kind != LSP_KERNEL;
        bool index = (f->kind == LSP_INDEX || other->kind == LSP_INDEX) &&
                     (f->kind != other->kind || f->from != other->from);
        bool kernel = (f->kind == LSP_KERNEL) != (other->kind == LSP_KERNEL);
        bool word = other->kind == LSP_FUNCTION || other->kind == LSP_TYPE ||
                    other->kind == LSP_ATTRIBUTE || other->kind == LSP_FILE;
        if (!apart && !index && !kernel && (!word || f->kind == LSP_KERNEL)) {
            return true;
        }
    }
    return false;
}

json_t *lsp_rename(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = NULL;
    const LspFound *f = NULL;
    const char *name = lsp_text(params, "newName");
    const LspUsed *use = use_at(s, params, fault, &d, &f);
    if (d == NULL) {
        return NULL;
    }
    bool named = name != NULL && is_name(name);
    const char *why = !named               ? "a name is letters, digits and '_', and no keyword"
                      : use == NULL        ? "there is no name here"
                      : d->meaning.damaged ? "the text does not follow the grammar: names may "
                                             "be missed"
                                           : NULL;
    if (why != NULL) {
        *fault = (LspFault){named ? LSP_FAILED : LSP_INVALID_PARAMS, why};
        return NULL;
    }
    if (!is_renamed(f, fault)) {
        return NULL;
    }
    if (is_taken(&d->meaning, f, name)) {
        *fault = (LspFault){LSP_FAILED, "something else has this name already"};
        return NULL;
    }
    json_t *edits = json_array();
    for (uint32_t k = 0; k < d->meaning.uses.n; k++) {
        const LspUsed *u = &d->meaning.uses.at[k];
        if (u->symbol == use->symbol) {
            json_array_append_new(
                edits, json_pack("{s:o, s:s}", "range", use_range(d, u), "newText", name));
        }
    }
    json_t *changes = json_object();
    json_object_set_new(changes, d->uri, edits);
    return json_pack("{s:o}", "changes", changes);
}

/* ---- the outline ---- */

/* Numbers of the protocol's SymbolKind; 0: not in the outline. */
static int outline_kind(const LspFound *f)
{
    bool value = f->kind == LSP_PARAMETER || f->kind == LSP_RESULT || f->kind == LSP_VALUE;
    return f->hi == 0                            ? 0
           : f->kind == LSP_KERNEL               ? 12
           : value                               ? 13
           : f->kind == LSP_CONSTANT             ? 14
           : f->kind == LSP_DIM && f->kernel < 0 ? 26
                                                 : 0;
}

static json_t *nested(LspDocument *d)
{
    const LspMeaning *m = &d->meaning;
    json_t *list = json_array(), **children = calloc(m->kernels.n + 1, sizeof *children);
    CHECK(children != NULL);
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        const LspFound *f = &m->symbols.at[k];
        int kind = outline_kind(f);
        const LspKernelText *of = f->kernel >= 0 && f->kernel < (int64_t)m->kernels.n
                                      ? &m->kernels.at[f->kernel]
                                      : NULL;
        if (kind == 0) {
            continue;
        }
        bool kernel = f->kind == LSP_KERNEL && of != NULL && of->hi > 0;
        json_t *item =
            json_pack("{s:s, s:s, s:i, s:o, s:o}", "name", f->name, "detail",
                      f->detail == NULL ? "" : f->detail, "kind", kind, "range",
                      lsp_range(&d->lines, kernel ? of->lo : f->lo, kernel ? of->hi : f->hi),
                      "selectionRange", lsp_range(&d->lines, f->lo, f->hi));
        json_t *into = kernel || of == NULL ? list : children[f->kernel];
        if (kernel) {
            children[f->kernel] = json_array();
            json_object_set_new(item, "children", children[f->kernel]);
        }
        if (into == NULL) {
            json_decref(item);
        } else {
            json_array_append_new(into, item);
        }
    }
    free(children);
    return list;
}

static json_t *flat(LspDocument *d)
{
    const LspMeaning *m = &d->meaning;
    json_t *list = json_array();
    for (uint32_t k = 0; k < m->symbols.n; k++) {
        const LspFound *f = &m->symbols.at[k];
        const char *of = f->kind == LSP_KERNEL ? NULL : lsp_kernel_name(m, f->kernel);
        if (outline_kind(f) == 0) {
            continue;
        }
        json_t *item = json_pack("{s:s, s:i, s:o}", "name", f->name, "kind", outline_kind(f),
                                 "location", lsp_found_location(d, f));
        if (of != NULL) {
            json_object_set_new(item, "containerName", json_string(of));
        }
        json_array_append_new(list, item);
    }
    return list;
}

json_t *lsp_outline(LspServer *s, const json_t *params, LspFault *fault)
{
    LspDocument *d = lsp_which(s, params, fault);
    return d == NULL ? NULL : s->flat ? flat(d) : nested(d);
}
