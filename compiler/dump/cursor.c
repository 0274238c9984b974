/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a sequence of terms, and the terms all dumps share: names that may need quotes, places. */
#include "dump/tree.h"

#include <string.h>

Cursor cursor_line(Ctx *ctx, const DumpLine *line)
{
    Span end = {line->span.source, line->span.hi, line->span.hi};
    return (Cursor){.ctx = ctx, .term = line->term, .n = line->n, .end = end};
}

Cursor cursor_seq(Ctx *ctx, Term *seq)
{
    Span end = {seq->span.source, seq->span.hi, seq->span.hi};
    if (seq->kind == TERM_SEQ) {
        return (Cursor){.ctx = ctx, .term = seq->child, .n = seq->n, .end = end};
    }
    Term **one = ARENA_NEW(&ctx->arena, Term *);
    *one = seq;
    return (Cursor){.ctx = ctx, .term = one, .n = 1, .end = end};
}

bool cursor_done(const Cursor *c)
{
    return c->at >= c->n;
}

const Term *cursor_peek(const Cursor *c)
{
    return c->at < c->n ? c->term[c->at] : NULL;
}

Span cursor_place(const Cursor *c)
{
    const Term *t = cursor_peek(c);
    return t == NULL ? c->end : t->span;
}

static bool term_is(const Term *t, TermKind kind, const char *text)
{
    return t->kind == kind &&
           (text == NULL || (t->text != NULL && strcmp(t->text->text, text) == 0));
}

bool cursor_is(const Cursor *c, TermKind kind, const char *text)
{
    const Term *t = cursor_peek(c);
    return t != NULL && term_is(t, kind, text);
}

bool cursor_take(Cursor *c, TermKind kind, const char *text)
{
    bool is = cursor_is(c, kind, text);
    c->at += is ? 1 : 0;
    return is;
}

const Term *cursor_expect(Cursor *c, TermKind kind, const char *text, const char *what)
{
    const Term *t = cursor_peek(c);
    if (t == NULL) {
        diag_error(&c->ctx->diags, E_DUMP, c->end, "expected %s before the end of the line",
                   what);
        return NULL;
    }
    if (!term_is(t, kind, text)) {
        diag_error(&c->ctx->diags, E_DUMP, t->span, "expected %s here", what);
        return NULL;
    }
    c->at++;
    return t;
}

bool cursor_expect_end(Cursor *c)
{
    const Term *t = cursor_peek(c);
    if (t != NULL) {
        return dump_refuse(c->ctx, t->span, "the line should end here");
    }
    return true;
}

/* ---- names ---- */

bool name_is_plain(Sym name)
{
    for (uint32_t i = 0; i < name->n; i++) {
        char c = name->text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return name->n > 0;
}

void dump_name(Text *out, Sym name)
{
    if (name_is_plain(name)) {
        text_put_n(out, name->text, name->n);
    } else {
        text_quoted(out, (Str){name->text, name->n});
    }
}

Sym cursor_name(Cursor *c, const char *what)
{
    const Term *t = cursor_peek(c);
    if (t != NULL && t->kind == TERM_STRING) {
        c->at++;
        return t->text;
    }
    t = cursor_expect(c, TERM_NAME, NULL, what);
    return t != NULL ? t->text : NULL;
}

/* ---- places ---- */

void dump_span(Text *out, Sources *sources, Span span, uint32_t home)
{
    if (sources == NULL || span.source == 0) {
        return;
    }
    uint32_t line, column;
    source_position(sources, span, &line, &column);
    text_put(out, " at ");
    if (span.source != home) {
        text_quoted(out, str_from(source_get(sources, span.source)->name));
        text_char(out, ' ');
    }
    line = line <= PLACE_LINES ? line : PLACE_LINES;
    text_printf(out, "%u:%u", line, column <= PLACE_COLUMNS ? column : PLACE_COLUMNS);
}

void places_init(Places *p, Ctx *ctx, Arena *arena)
{
    *p = (Places){.ctx = ctx};
    map_init(&p->number, arena);
}

static uint32_t place_source(Places *p, Sym name)
{
    uint32_t number = 0;
    if (!map_get(&p->number, name->id, &number)) {
        number = source_add_places(&p->ctx->sources, name->text);
        map_put(&p->number, name->id, number);
    }
    return number;
}

static bool place_number(Cursor *c, int64_t limit, const char *what, uint32_t *out)
{
    const Term *t = cursor_expect(c, TERM_INT, NULL, what);
    if (t == NULL) {
        return false;
    }
    if (t->value < 1 || t->value > limit) {
        return dump_refuse(c->ctx, t->span, "%s must be from 1 to %lld", what,
                           (long long)limit);
    }
    *out = (uint32_t)t->value;
    return true;
}

bool cursor_span(Cursor *c, Places *p, uint32_t home, Span *out)
{
    const Term *t = cursor_peek(c);
    uint32_t source = home;
    if (t != NULL && t->kind == TERM_STRING) {
        source = place_source(p, t->text);
        c->at++;
    } else if (home == 0) {
        return cursor_expect(c, TERM_STRING, NULL, "a file name") != NULL;
    }
    uint32_t line, column;
    if (!place_number(c, PLACE_LINES, "a line number", &line) ||
        cursor_expect(c, TERM_PUNCT, ":", "':'") == NULL ||
        !place_number(c, PLACE_COLUMNS, "a column number", &column)) {
        return false;
    }
    *out = source_place(source, line, column);
    return true;
}
