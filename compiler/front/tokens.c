/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a text one by one, for dumps and editors, with the comments that the parser never sees. */
#include "front/parse.h"

#include "grammar/tdsl.tab.h"
#define YYSTYPE union ParseValue
#define YYLTYPE Span
#include "grammar/tdsl.lex.h"

static void add(Ctx *ctx, Tokens *out, TokenKind kind, Span span)
{
    vec_push(&ctx->arena, &out->list, ((Token){kind, span}));
}

/* Comments in [lo, hi), where there is nothing else but blanks and what is no token. */
static void add_comments(Ctx *ctx, Tokens *out, Str text, uint32_t source, uint32_t lo,
                         uint32_t hi)
{
    for (uint32_t at = lo; at + 1 < hi; at++) {
        if (text.at[at] != '/' || (text.at[at + 1] != '/' && text.at[at + 1] != '*')) {
            continue;
        }
        uint32_t end = at + 2;
        if (text.at[at + 1] == '/') {
            while (end < hi && text.at[end] != '\n') {
                end++;
            }
        } else {
            while (end + 1 < hi && (text.at[end] != '*' || text.at[end + 1] != '/')) {
                end++;
            }
            end = end + 2 < hi ? end + 2 : hi;
        }
        add(ctx, out, TOKEN_COMMENT, (Span){source, at, end});
        at = end - 1;
    }
}

static TokenKind kind_of(int token)
{
    switch (token) {
    case T_NAME:
        return TOKEN_NAME;
    case T_INT:
    case T_FLOAT:
    case T_IMAGINARY:
        return TOKEN_NUMBER;
    case T_STRING:
    case T_LIBRARY:
        return TOKEN_STRING;
    default:
        return token < 128 || token >= T_ARROW ? TOKEN_SIGN : TOKEN_KEYWORD;
    }
}

void tokens_scan(Ctx *ctx, uint32_t source, Tokens *out)
{
    if (!parse_readable(ctx, source)) {
        return;
    }
    const Str text = source_get(&ctx->sources, source)->text;
    Ast ast;
    ast_init(&ast, &ctx->arena);
    Parse p = {.ctx = ctx, .ast = &ast, .source = source};
    void *scanner = NULL;
    parse_skip_mark(&p);
    CHECK(tdsl_lex_init_extra(&p, &scanner) == 0);
    CHECK(tdsl__scan_bytes(text.at + p.at, (int)(text.n - p.at), scanner) != NULL);
    ParseValue value = {0};
    Span span = {0};
    uint32_t end = p.at;
    for (int token; (token = tdsl_lex(&value, &span, scanner)) > 0; end = span.hi) {
        add_comments(ctx, out, text, source, end, span.lo);
        if (token != T_TDSL_error) {
            add(ctx, out, kind_of(token), span);
        }
    }
    add_comments(ctx, out, text, source, end, (uint32_t)text.n);
    tdsl_lex_destroy(scanner);
}

void tokens_dump(Ctx *ctx, uint32_t source, Text *out)
{
    static const char *const words[] = {[TOKEN_NAME] = "name",
                                        [TOKEN_KEYWORD] = "keyword",
                                        [TOKEN_NUMBER] = "number",
                                        [TOKEN_STRING] = "string",
                                        [TOKEN_SIGN] = "symbol"};
    const char *text = source_get(&ctx->sources, source)->text.at;
    Tokens tokens = {0};
    tokens_scan(ctx, source, &tokens);
    text_put(out, "// tdsl-dump tokens 1\n");
    for (uint32_t k = 0; k < tokens.list.n; k++) {
        const Token *t = &tokens.list.at[k];
        if (t->kind != TOKEN_COMMENT) {
            text_put_n(out, text + t->span.lo, t->span.hi - t->span.lo);
            text_printf(out, " // %s\n", words[t->kind]);
        }
    }
}
