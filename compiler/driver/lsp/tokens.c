/* SPDX-License-Identifier: Apache-2.0 */
/* See tokens.h. */
#include "driver/lsp/tokens.h"

#include <string.h>

#include "driver/lsp/lines.h"

static const char *const types[] = {"keyword",  "type",     "function",  "parameter",
                                    "variable", "property", "decorator", "typeParameter",
                                    "number",   "string",   "comment"};
static const char *const modifiers[] = {"declaration", "readonly", "defaultLibrary",
                                        "modification"};
enum { DECLARATION = 1, READONLY = 2, DEFAULT_LIBRARY = 4, MODIFICATION = 8 };

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static uint32_t type_number(const char *name)
{
    uint32_t k = 0;
    while (strcmp(types[k], name) != 0) {
        k++;
    }
    return k;
}

json_t *lsp_token_legend(void)
{
    json_t *made = json_array(), *more = json_array();
    for (size_t k = 0; k < COUNT(types); k++) {
        json_array_append_new(made, json_string(types[k]));
    }
    for (size_t k = 0; k < COUNT(modifiers); k++) {
        json_array_append_new(more, json_string(modifiers[k]));
    }
    return json_pack("{s:o, s:o}", "tokenTypes", made, "tokenModifiers", more);
}

static const char *kind_type(LspKind kind)
{
    static const char *const of[] = {
#define LSP_KIND(id, word, token) token,
#include "driver/lsp/kinds.def"
    };
    return of[kind];
}

typedef struct Writer {
    LspLines lines;
    LspPlace last;
    Text *out;
} Writer;

static void put_number(Text *out, uint32_t n)
{
    text_i64(out, n);
    text_char(out, ',');
}

/* A token of several lines is one for each. */
static void put(Writer *w, Span span, uint32_t type, uint32_t with)
{
    uint32_t at = span.lo;
    while (at < span.hi) {
        LspPlace from = lsp_place(&w->lines, at);
        uint32_t next = from.line + 1 < w->lines.n ? w->lines.start[from.line + 1] : span.hi;
        uint32_t end = next < span.hi ? next : span.hi, shown = end;
        while (shown > at && strchr("\r\n", w->lines.text.at[shown - 1]) != NULL &&
               w->lines.text.at[shown - 1] != '\0') {
            shown--;
        }
        LspPlace to = lsp_place(&w->lines, shown);
        if (to.line == from.line && to.unit > from.unit) {
            bool same = from.line == w->last.line;
            put_number(w->out, from.line - w->last.line);
            put_number(w->out, same ? from.unit - w->last.unit : from.unit);
            put_number(w->out, to.unit - from.unit);
            put_number(w->out, type);
            put_number(w->out, with);
            w->last = from;
        }
        at = end;
    }
}

static uint32_t modifiers_of(const LspSymbol *s, bool writes)
{
    bool own = s->kind == LSP_FUNCTION || s->kind == LSP_TYPE;
    return (s->kind == LSP_CONSTANT ? READONLY : 0) | (own ? DEFAULT_LIBRARY : 0) |
           (writes && s->kind == LSP_KERNEL ? DECLARATION : 0) |
           (writes && s->kind != LSP_KERNEL ? MODIFICATION : 0);
}

static void add_names(Map *kinds, const LspNames *names)
{
    for (uint32_t k = names->symbols.n; k-- > 0;) {
        map_put(kinds, names->symbols.at[k].name->id, names->symbols.at[k].kind);
    }
}

static void put_name(Ctx *ctx, Writer *w, Span span, const Map *kinds)
{
    Sym name = sym_intern(&ctx->syms, w->lines.text.at + span.lo, span.hi - span.lo);
    uint32_t kind = 0;
    if (map_get(kinds, name->id, &kind)) {
        LspSymbol s = {.kind = (LspKind)kind};
        put(w, span, type_number(kind_type(s.kind)), modifiers_of(&s, false));
    }
}

void lsp_tokens(Ctx *ctx, uint32_t source, const LspNames *names, const LspNames *known,
                Text *out)
{
    static const char *const plain[] = {[TOKEN_KEYWORD] = "keyword",
                                        [TOKEN_NUMBER] = "number",
                                        [TOKEN_STRING] = "string",
                                        [TOKEN_COMMENT] = "comment"};
    Tokens tokens = {0};
    Writer w = {.out = out};
    Map kinds;
    map_init(&kinds, &ctx->arena);
    add_names(&kinds, known);
    add_names(&kinds, names);
    tokens_scan(ctx, source, &tokens);
    lsp_lines_init(&w.lines, source_get(&ctx->sources, source)->text);
    uint32_t use = 0;
    for (uint32_t k = 0; k < tokens.list.n; k++) {
        const Token *t = &tokens.list.at[k];
        while (use < names->uses.n && names->uses.at[use].at.lo < t->span.lo) {
            use++;
        }
        if (use < names->uses.n && names->uses.at[use].at.lo == t->span.lo &&
            t->kind == TOKEN_NAME) {
            const LspUse *u = &names->uses.at[use];
            const LspSymbol *s = &names->symbols.at[u->symbol];
            put(&w, t->span, type_number(kind_type(s->kind)), modifiers_of(s, u->writes));
        } else if (t->kind == TOKEN_NAME) {
            put_name(ctx, &w, t->span, &kinds);
        } else if (t->kind != TOKEN_SIGN) {
            put(&w, t->span, type_number(plain[t->kind]), 0);
        }
    }
    lsp_lines_free(&w.lines);
}
