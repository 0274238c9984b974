/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a dump to its tree: what the scanner and the grammar call. Everything is checked here that holds for all
 * dumps: UTF-8, nesting, numbers that fit, strings without NUL. */
#include "dump/parse.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/dump.tab.h"
#include "grammar/dump.lex.h"

/* ---- the scanner's calls ---- */

void dump_scan_advance(DumpScan *s, Span *span, size_t n)
{
    *span = (Span){s->source, s->at, s->at + (uint32_t)n};
    s->at += (uint32_t)n;
}

void dump_scan_give_back(DumpScan *s, Span *span, size_t keep)
{
    span->hi = span->lo + (uint32_t)keep;
    s->at = span->hi;
}

int dump_scan_error(DumpScan *s, Span span, DiagCode code, const char *what)
{
    diag_error(&s->ctx->diags, code, span, "%s", what);
    return T_DUMP_error;
}

static bool refuse(DumpScan *s, Span span, DiagCode code, const char *what)
{
    dump_scan_error(s, span, code, what);
    return false;
}

bool dump_scan_newline(DumpScan *s)
{
    bool open = s->line_open;
    s->line_open = false;
    s->glued = false;
    return open;
}

void dump_too_deep(DumpScan *s, Span span)
{
    diag_limit(&s->ctx->diags, E_LIMIT_NESTING, span, "nested more than %d deep",
               NESTING_LIMIT);
}

int dump_scan_open(DumpScan *s, Span span, int token)
{
    s->glued = false;
    s->line_open = token != T_LBRACE || s->line_open;
    if (++s->depth > NESTING_LIMIT) {
        dump_too_deep(s, span);
        return T_DUMP_error;
    }
    return token;
}

int dump_scan_close(DumpScan *s, bool glued, int token)
{
    s->glued = glued;
    s->line_open = true;
    s->depth -= s->depth > 0 ? 1 : 0;
    return token;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The bytes of a string literal (quotes included in text). */
static bool string_text(DumpScan *s, Span span, const char *text, size_t n, Sym *out)
{
    char *bytes = arena_alloc(s->arena, n);
    size_t to = 0;
    for (size_t i = 1; i + 1 < n; i++) {
        char c = text[i];
        if (c == '\\') {
            c = text[++i];
            if (c == 'x' && i + 3 < n && hex_digit(text[i + 1]) >= 0 &&
                hex_digit(text[i + 2]) >= 0) {
                c = (char)(unsigned char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
                i += 2;
            } else if (c == 'n' || c == 't') {
                c = c == 'n' ? '\n' : '\t';
            } else if (c != '"' && c != '\\') {
                return refuse(s, span, E_STRING, "an unknown escape in a string");
            }
        }
        if (c == '\0') {
            return refuse(s, span, E_STRING, "a zero byte in a string");
        }
        bytes[to++] = c;
    }
    size_t bad = 0;
    if (!utf8_valid((Str){bytes, to}, &bad)) {
        return refuse(s, span, E_STRING, "a string that is not valid UTF-8");
    }
    *out = sym_intern(&s->ctx->syms, bytes, to);
    return true;
}

static bool int_value(DumpScan *s, Span span, const char *digits, size_t n, int64_t *out)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = digits[i] - '0';
        if (v > (INT64_MAX - digit) / 10) {
            return refuse(s, span, E_NUMBER, "a number that does not fit 64 bits");
        }
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

bool dump_scan_term(DumpScan *s, Span span, TermKind kind, const char *text, size_t n,
                    Term **out)
{
    Term *t = ARENA_NEW(s->arena, Term);
    t->kind = kind;
    t->span = span;
    s->line_open = true;
    s->glued = false;
    *out = t;
    switch (kind) {
    case TERM_NAME:
    case TERM_PUNCT:
        s->glued = kind == TERM_NAME;
        t->text = sym_intern(&s->ctx->syms, text, n);
        return true;
    case TERM_INT:
        return int_value(s, span, text, n, &t->value);
    case TERM_VALUE:
        s->glued = true;
        return int_value(s, span, text + 1, n - 1, &t->value);
    case TERM_FLOAT:
        t->real = strtod(text, NULL);
        return true;
    case TERM_STRING:
        return string_text(s, span, text, n, &t->text);
    case TERM_AT:
    case TERM_VAR:
        s->glued = true;
        if (text[1] == '"') {
            return string_text(s, span, text + 1, n - 1, &t->text);
        }
        t->text = sym_intern(&s->ctx->syms, text + 1, n - 1);
        return true;
    case TERM_CALL:
    case TERM_INDEX:
    case TERM_LIST:
    case TERM_SEQ:
        break;
    }
    UNREACHABLE();
}

/* ---- the parser's calls ---- */

DumpTerms *dump_terms(DumpScan *s)
{
    return ARENA_NEW(s->arena, DumpTerms);
}

DumpTerms *dump_terms_add(DumpScan *s, DumpTerms *list, Term *term)
{
    vec_push(s->arena, &list->list, term);
    return list;
}

static Term *term_of(DumpScan *s, TermKind kind, Span span, DumpTerms *list)
{
    Term *t = ARENA_NEW(s->arena, Term);
    t->kind = kind;
    t->span = span;
    t->n = list->list.n;
    t->child = list->list.at;
    return t;
}

Term *dump_seq(DumpScan *s, Span span, DumpTerms *list)
{
    return list->list.n == 1 ? list->list.at[0] : term_of(s, TERM_SEQ, span, list);
}

Term *dump_list(DumpScan *s, Span span, DumpTerms *list)
{
    return term_of(s, TERM_LIST, span, list);
}

Term *dump_call(DumpScan *s, Span span, Term *name, DumpTerms *list)
{
    Term *t = term_of(s, TERM_CALL, span, list);
    t->text = name->text;
    return t;
}

Term *dump_index(DumpScan *s, Span span, Term *base, DumpTerms *list)
{
    Term *t = ARENA_NEW(s->arena, Term);
    Term **child = ARENA_ARRAY(s->arena, (size_t)list->list.n + 1, Term *);
    child[0] = base;
    for (uint32_t k = 0; k < list->list.n; k++) {
        child[k + 1] = list->list.at[k];
    }
    t->kind = TERM_INDEX;
    t->span = span;
    t->n = list->list.n + 1;
    t->child = child;
    return t;
}

DumpLine *dump_line(DumpScan *s, Span span, DumpTerms *terms, DumpLines *body)
{
    DumpLine *line = ARENA_NEW(s->arena, DumpLine);
    line->span = span;
    line->n = terms->list.n;
    line->term = terms->list.at;
    if (body != NULL) {
        line->has_block = true;
        line->n_body = body->list.n;
        line->body = body->list.at;
    }
    return line;
}

DumpLines *dump_lines(DumpScan *s)
{
    return ARENA_NEW(s->arena, DumpLines);
}

DumpLines *dump_lines_add(DumpScan *s, DumpLines *lines, DumpLine *line)
{
    vec_push(s->arena, &lines->list, line);
    return lines;
}

void dump_syntax_error(DumpScan *s, Span span, const char *found, const char *const *expected,
                       int n)
{
    Text what = text_new(s->arena);
    text_printf(&what, "unexpected %s", found);
    for (int k = 0; k < n; k++) {
        text_printf(&what, "%s%s", k == 0 ? ", expected " : " or ", expected[k]);
    }
    diag_error(&s->ctx->diags, E_SYNTAX, span, "%s", what.at);
}

/* ---- reading ---- */

DumpTree *dump_tree_read(Ctx *ctx, Arena *arena, uint32_t source)
{
    Str text = source_get(&ctx->sources, source)->text;
    size_t bad = 0;
    if (!utf8_valid(text, &bad)) {
        Span span = {source, (uint32_t)bad, (uint32_t)bad + 1};
        diag_error(&ctx->diags, E_UTF8, span, "a byte that is not valid UTF-8");
        return NULL;
    }
    DumpScan scan = {.ctx = ctx, .arena = arena, .source = source};
    void *scanner = NULL;
    CHECK(dump_lex_init_extra(&scan, &scanner) == 0);
    CHECK(dump__scan_bytes(text.at, (int)text.n, scanner) != NULL);
    int status = dump_parse(scanner, &scan);
    dump_lex_destroy(scanner);
    if (status != 0) {
        return NULL;
    }
    DumpTree *tree = ARENA_NEW(arena, DumpTree);
    tree->n = scan.result->list.n;
    tree->line = scan.result->list.at;
    return tree;
}

const char *dump_stage(Str text, Arena *arena)
{
    static const char head[] = "tdsl-dump ";
    size_t at = sizeof head - 1;
    if (text.n < at || memcmp(text.at, head, at) != 0) {
        return NULL;
    }
    size_t from = at;
    while (at < text.n && ((text.at[at] >= 'a' && text.at[at] <= 'z') || text.at[at] == '-')) {
        at++;
    }
    if (at == from || at == text.n || text.at[at] != ' ') {
        return NULL;
    }
    return str_dup(arena, (Str){text.at + from, at - from});
}
