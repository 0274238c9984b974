/* SPDX-License-Identifier: Apache-2.0 */
/* From the letters of an einsum string to its terms: the actions of grammar/einsum.{l,y}. */
#include "front/einsum_parse.h"

#include "grammar/einsum.tab.h"
#define YYSTYPE union EinsumValue
#define YYLTYPE Span
#include "grammar/einsum.lex.h"

void einsum_scan_advance(EinsumScan *s, Span *span, size_t n)
{
    *span = (Span){s->source, s->at, s->at + (uint32_t)n};
    s->at += (uint32_t)n;
}

/* Blanks, controls and marks of direction are no labels, whatever their code. */
static bool is_label(uint32_t c)
{
    return !(c <= 0xa0 || c == 0xad || c == 0x61c || c == 0x1680 ||
             (c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) ||
             (c >= 0x205f && c <= 0x206f) || c == 0x3000 || c == 0xfeff);
}

/* What typesetting makes of the signs of an equation. */
static const struct {
    uint32_t code;
    const char *meant;
} typeset[] = {
    {0x2192, "->"},  {0x27f6, "->"}, {0x21d2, "->"}, {0x2026, "..."},
    {0x22ef, "..."}, {0xff0c, ","},  {0x3001, ","},  {0x201a, ","},
};

static bool is_typeset(EinsumScan *s, uint32_t code, const char *text, size_t n, Span span)
{
    for (size_t k = 0; k < sizeof typeset / sizeof typeset[0]; k++) {
        if (typeset[k].code == code) {
            Diagnostic *d = diag_error(&s->ctx->diags, E_EINSUM_CHARACTER, span,
                                       "'%.*s' (U+%04X) is no index of an einsum string",
                                       (int)n, text, code);
            diag_help(d, "write '%s'", typeset[k].meant);
            diag_fix(d, span, "%s", typeset[k].meant);
            return true;
        }
    }
    return false;
}

bool einsum_scan_label(EinsumScan *s, EinsumValue *value, const char *text, size_t n, Span span)
{
    int length = 0;
    value->code = utf8_decode(text, text + n, &length);
    if (is_typeset(s, value->code, text, n, span)) {
        s->failed = true;
        return false;
    }
    if (is_label(value->code)) {
        return true;
    }
    diag_error(&s->ctx->diags, E_EINSUM_CHARACTER, span,
               "U+%04X is no index of an einsum string", value->code);
    s->failed = true;
    return false;
}

void einsum_scan_dot(EinsumScan *s, Span span)
{
    diag_error(&s->ctx->diags, E_EINSUM_ELLIPSIS, span,
               "an ellipsis is three dots '...' without blanks");
    s->failed = true;
}

void einsum_scan_bad(EinsumScan *s, char c, Span span)
{
    if (c == '-' || c == '>') {
        diag_error(&s->ctx->diags, E_EINSUM_CHARACTER, span, "'%c' is not part of a '->'", c);
    } else if ((unsigned char)c < 0x20 || c == 0x7f) {
        diag_error(&s->ctx->diags, E_EINSUM_CHARACTER, span,
                   "control character 0x%02x is no index of an einsum string", (unsigned)c);
    } else {
        diag_error(&s->ctx->diags, E_EINSUM_CHARACTER, span,
                   "'%c' is no index of an einsum string", c);
    }
    s->failed = true;
}

void einsum_label(EinsumScan *s, uint32_t code, Span span)
{
    vec_push(s->arena, &s->text->items, ((EinsumItem){code, span}));
}

void einsum_dots(EinsumScan *s, Span span)
{
    if (s->dots) {
        diag_error(&s->ctx->diags, E_EINSUM_ELLIPSIS, span, "a second '...' in one term");
        s->failed = true;
        return;
    }
    s->dots = true;
    vec_push(s->arena, &s->text->items, ((EinsumItem){EINSUM_DOTS, span}));
}

static EinsumTerm term_take(EinsumScan *s)
{
    EinsumTerm term = {s->first, s->text->items.n - s->first, {s->source, s->at, s->at}};
    if (term.n > 0) {
        term.span = span_join(s->text->items.at[term.first].span,
                              s->text->items.at[term.first + term.n - 1].span);
    }
    s->first = s->text->items.n;
    s->dots = false;
    return term;
}

void einsum_term_end(EinsumScan *s)
{
    vec_push(s->arena, &s->text->terms, term_take(s));
}

void einsum_output(EinsumScan *s, Span span)
{
    s->text->has_output = true;
    s->text->output.span = span;
}

void einsum_unexpected(EinsumScan *s, Span span, const char *found)
{
    if (!s->failed) {
        diag_error(&s->ctx->diags, E_SYNTAX, span,
                   "unexpected %s in the output of an einsum string", found);
    }
}

EinsumText *einsum_read(Ctx *ctx, Arena *arena, Span text)
{
    EinsumScan s = {.ctx = ctx, .arena = arena, .source = text.source, .at = text.lo};
    s.text = ARENA_NEW(arena, EinsumText);
    s.text->span = text;
    const char *at = source_get(&ctx->sources, text.source)->text.at + text.lo;
    size_t n = text.hi - text.lo, bad = 0;
    if (!utf8_valid((Str){at, n}, &bad)) {
        Span place = {text.source, text.lo + (uint32_t)bad, text.lo + (uint32_t)bad + 1};
        diag_error(&ctx->diags, E_UTF8, place, "byte 0x%02x is not valid UTF-8 here",
                   (unsigned)(unsigned char)at[bad]);
        return NULL;
    }
    void *scanner = NULL;
    CHECK(einsum_lex_init_extra(&s, &scanner) == 0);
    CHECK(einsum__scan_bytes(at, (int)n, scanner) != NULL);
    if (einsum_parse(scanner, &s) != 0) {
        s.failed = true;
    }
    einsum_lex_destroy(scanner);
    if (s.failed) {
        return NULL;
    }
    if (s.text->has_output) {
        s.text->output = term_take(&s);
    }
    return s.text;
}
