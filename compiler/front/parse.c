/* SPDX-License-Identifier: Apache-2.0 */
/* Text to AST: the checks a text must pass before it is scanned, the values of tokens, and one small function per
 * grammar action. */
#include "front/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/tdsl.tab.h"
#define YYSTYPE union ParseValue
#define YYLTYPE Span
#include "grammar/tdsl.lex.h"

/* ---- tokens ---- */

void parse_advance(Parse *p, Span *span, size_t n)
{
    *span = (Span){p->source, p->at, p->at + (uint32_t)n};
    p->at += (uint32_t)n;
}

int parse_name(Parse *p, ParseValue *value, const char *text, size_t n, Span span)
{
    (void)span;
    value->name = sym_intern(&p->ctx->syms, text, n);
    return T_NAME;
}

int parse_int(Parse *p, ParseValue *value, const char *text, size_t n, Span span)
{
    int64_t v = 0;
    for (size_t k = 0; k < n; k++) {
        int digit = text[k] - '0';
        if (v > (INT64_MAX - digit) / 10) {
            diag_error(&p->ctx->diags, E_NUMBER, span, "the number does not fit 64 bits");
            value->f = NAN;
            return T_FLOAT;
        }
        v = v * 10 + digit;
    }
    value->i = v;
    return T_INT;
}

int parse_float(Parse *p, ParseValue *value, const char *text, Span span)
{
    value->f = strtod(text, NULL);
    if (!isfinite(value->f)) {
        diag_error(&p->ctx->diags, E_NUMBER, span, "the number is too large for f64");
        value->f = NAN;
    }
    return T_FLOAT;
}

int parse_imaginary(Parse *p, ParseValue *value, const char *text, Span span)
{
    return parse_float(p, value, text, span) == T_FLOAT && isnan(value->f) ? T_FLOAT
                                                                           : T_IMAGINARY;
}

int parse_string(ParseValue *value, Span span)
{
    value->text = (Span){span.source, span.lo + 1, span.hi - 1};
    return T_STRING;
}

int parse_library(ParseValue *value, Span span)
{
    (void)parse_string(value, span);
    return T_LIBRARY;
}

int parse_bad_number(Parse *p, ParseValue *value, Span span)
{
    diag_error(&p->ctx->diags, E_NUMBER, span, "this is not a number");
    value->f = NAN;
    return T_FLOAT;
}

/* An identifier with letters outside ASCII: reported, and kept as a name so that the statement still parses. */
int parse_foreign_name(Parse *p, ParseValue *value, const char *text, size_t n, Span span)
{
    size_t first = 0;
    while ((unsigned char)text[first] < 0x80) {
        first++;
    }
    int length = 0;
    (void)utf8_decode(text + first, text + n, &length);
    Span at = {span.source, span.lo + (uint32_t)first,
               span.lo + (uint32_t)first + (uint32_t)length};
    Diagnostic *d = diag_error(&p->ctx->diags, E_CHARACTER, at,
                               "'%.*s' cannot be part of a name", length, text + first);
    diag_help(d, "names are ASCII letters, digits and '_'; einsum strings take any letter");
    p->ast->damaged = true;
    value->name = sym_intern(&p->ctx->syms, text, n);
    return T_NAME;
}

int parse_open_string(Parse *p, Span span)
{
    (void)parse_say(p, E_STRING, span, "the string is not closed on its line");
    return T_TDSL_error;
}

void parse_open_comment(Parse *p)
{
    Span at = {p->source, p->comment, p->comment + 2};
    diag_error(&p->ctx->diags, E_SYNTAX, at, "the comment is not closed");
    p->ast->damaged = true;
}

/* ---- errors ---- */

void parse_too_deep(Parse *p, Span span)
{
    if (!p->ast->too_deep) {
        diag_limit(&p->ctx->diags, E_LIMIT_NESTING, span, "nested more than %d deep",
                   NESTING_LIMIT);
    }
    p->ast->too_deep = p->ast->damaged = true;
}

/* ---- nodes ---- */

static AstNode *node_at(Parse *p, AstId id)
{
    return &p->ast->nodes.at[id];
}

AstId parse_leaf(Parse *p, AstKind kind, Span span, Sym name)
{
    p->ast->damaged = p->ast->damaged || kind == AST_BROKEN;
    return ast_new(p->ctx, p->ast, kind, span, name, span, NULL, 0);
}

AstId parse_number(Parse *p, AstKind kind, Span span, ParseValue value)
{
    if (kind == AST_FLOAT && isnan(value.f)) {
        return parse_leaf(p, AST_BROKEN, span, NULL); /* reported by the scanner */
    }
    AstId id = parse_leaf(p, kind, span, NULL);
    if (kind == AST_FLOAT || kind == AST_IMAGINARY) {
        node_at(p, id)->value.f = value.f;
    } else {
        node_at(p, id)->value.i = value.i;
    }
    return id;
}

static Sym text_sym(Parse *p, Span text)
{
    const Source *s = source_get(&p->ctx->sources, text.source);
    return sym_intern(&p->ctx->syms, s->text.at + text.lo, text.hi - text.lo);
}

AstId parse_text(Parse *p, Span span, Span text)
{
    return ast_new(p->ctx, p->ast, AST_STRING, span, text_sym(p, text), text, NULL, 0);
}

AstId parse_include(Parse *p, Span span, Span text, bool library)
{
    AstId id = ast_new(p->ctx, p->ast, AST_INCLUDE, span, text_sym(p, text), text, NULL, 0);
    node_at(p, id)->flag = library;
    return id;
}

static AstId op_node(Parse *p, AstKind kind, Span span, Sym name, Span at, Op op,
                     const AstId *child, uint32_t n)
{
    AstId id = ast_new(p->ctx, p->ast, kind, span, name, at, child, n);
    node_at(p, id)->op = op;
    return id;
}

static void append_all(Parse *p, AstId to, AstId list)
{
    for (uint32_t k = 0; k < node_at(p, list)->n; k++) {
        ast_append(p->ctx, p->ast, to, node_at(p, list)->child[k]);
    }
}

AstId parse_dim(Parse *p, Span span, Sym name, Span at, Op how, AstId expr)
{
    return op_node(p, AST_DIM, span, name, at, how, &expr, 1);
}

AstId parse_const(Parse *p, Span span, Sym name, Span at, AstId type, AstId expr)
{
    return ast_new(p->ctx, p->ast, AST_CONST, span, name, at, (AstId[]){type, expr}, 2);
}

AstId parse_kernel(Parse *p, Span span, Span head, AstId params, AstId results, AstId body)
{
    Sym name = node_at(p, params)->name;
    AstId id = ast_new(p->ctx, p->ast, AST_KERNEL, span, name, node_at(p, params)->at,
                       (AstId[]){params, results, body}, 3);
    AstId text = ast_new(p->ctx, p->ast, AST_LIST, head, NULL, head, NULL, 0);
    ast_append(p->ctx, p->ast, id, text);
    return id;
}

AstId parse_param(Parse *p, Span span, Sym name, Span at, bool is_inout, AstId type,
                  AstId attrs)
{
    AstId id = ast_new(p->ctx, p->ast, AST_PARAM, span, name, at, &type, 1);
    node_at(p, id)->flag = is_inout;
    append_all(p, id, attrs);
    return id;
}

AstId parse_list(Parse *p, AstKind kind, Span span)
{
    return ast_new(p->ctx, p->ast, kind, span, NULL, span, NULL, 0);
}

AstId parse_add(Parse *p, AstId list, AstId item, Span span)
{
    if (node_at(p, item)->kind == AST_LIST) { /* `dim a, b;` is two items */
        append_all(p, list, item);
    } else {
        ast_append(p->ctx, p->ast, list, item);
    }
    node_at(p, list)->span = span_join(node_at(p, list)->span, span);
    return list;
}

AstId parse_gradient(Parse *p, Span span, Sym name, Span at, AstId word, AstId of, AstId params,
                     AstId with, AstId results)
{
    return ast_new(p->ctx, p->ast, AST_GRADIENT, span, name, at,
                   (AstId[]){word, of, params, with, results}, with == 0 ? 3 : 5);
}

AstId parse_broken(Parse *p, AstId list, Span span)
{
    return parse_add(p, list, parse_leaf(p, AST_BROKEN, span, NULL), span);
}

AstId parse_named(Parse *p, AstKind kind, Span span, Sym name, Span at, AstId list)
{
    const AstNode l = *node_at(p, list);
    AstId id = ast_new(p->ctx, p->ast, kind, span, name, at, l.child, l.n);
    if (kind == AST_TYPE) {
        node_at(p, id)->flag = list != 0;
    }
    return id;
}

AstId parse_assign(Parse *p, Span span, Op op, Span at, AstId left, AstId right)
{
    return op_node(p, AST_ASSIGN, span, NULL, at, op, (AstId[]){left, right}, 2);
}

/* `first`, then all of `list`. */
static AstId with_first(Parse *p, AstKind kind, Span span, Sym name, Span at, AstId first,
                        AstId list)
{
    AstId id = ast_new(p->ctx, p->ast, kind, span, name, at, &first, 1);
    if (node_at(p, id)->kind != AST_BROKEN) {
        append_all(p, id, list);
    }
    return id;
}

/* `S: f32[q,k] = ...`: an assignment with the type as its third child, whose indices are those on the left. */
AstId parse_declare(Parse *p, Span span, Sym name, Span name_at, AstId type, Span at,
                    AstId right)
{
    AstId left = parse_leaf(p, AST_NAME, name_at, name);
    if (node_at(p, type)->kind == AST_TYPE && node_at(p, type)->n > 0) {
        left = with_first(p, AST_INDEXED, span_join(name_at, node_at(p, type)->span), name,
                          name_at, left, type);
    }
    return op_node(p, AST_ASSIGN, span, NULL, at, OP_COPY, (AstId[]){left, right, type}, 3);
}

AstId parse_indexed(Parse *p, Span span, AstId base, AstId indices)
{
    return with_first(p, AST_INDEXED, span, node_at(p, base)->name, node_at(p, base)->at, base,
                      indices);
}

AstId parse_reduce(Parse *p, Span span, Sym name, Span at, AstId indices, AstId arguments)
{
    const AstNode list = *node_at(p, arguments);
    AstId body = list.kind == AST_LIST && list.n == 1 ? list.child[0] : arguments;
    return with_first(p, AST_REDUCE, span, name, at, body, indices);
}

/* `update[k](C, x[k]);`: an assignment to nothing. */
AstId parse_call_statement(Parse *p, Span span, AstId call)
{
    AstId none = parse_list(p, AST_GROUP, (Span){span.source, span.lo, span.lo});
    return parse_assign(p, span, OP_COPY, span, none, call);
}

AstId parse_unary(Parse *p, Span span, Op op, Span at, AstId x)
{
    return op_node(p, AST_UNARY, span, NULL, at, op, &x, 1);
}

AstId parse_compare(Parse *p, Span span, Op op, Span at, AstId x, AstId y)
{
    return op_node(p, AST_COMPARE, span, NULL, at, op, (AstId[]){x, y}, 2);
}

/* + and -, * and /, &&, ||: chains of one kind grow, others nest. */
static int chain_class(Op op)
{
    return op == OP_ADD || op == OP_SUB ? 1 : op == OP_MUL || op == OP_DIV ? 2 : (int)op + 3;
}

AstId parse_chain(Parse *p, Span span, Op op, AstId x, AstId y)
{
    AstId id = x;
    const AstNode *first = node_at(p, x);
    if (first->kind != AST_CHAIN || chain_class(first->op) != chain_class(op)) {
        id = ast_new(p->ctx, p->ast, AST_CHAIN, span, NULL, span, &x, 1);
        if (node_at(p, id)->kind != AST_CHAIN) {
            return id;
        }
        node_at(p, id)->op = op;
        node_at(p, id)->cap = 4;
        node_at(p, id)->child = ARENA_ARRAY(p->ast->arena, 4, AstId);
        node_at(p, id)->child[0] = x;
        node_at(p, id)->link = ARENA_ARRAY(p->ast->arena, 4, uint8_t);
    }
    uint32_t n = node_at(p, id)->n, cap = node_at(p, id)->cap;
    ast_append(p->ctx, p->ast, id, y);
    AstNode *chain = node_at(p, id);
    if (chain->cap != cap) {
        uint8_t *link = ARENA_ARRAY(p->ast->arena, chain->cap, uint8_t);
        memcpy(link, chain->link, n);
        chain->link = link;
    }
    if (chain->n > n) {
        chain->link[n] = (uint8_t)op;
    }
    chain->span = span;
    return id;
}

/* ---- the whole text ---- */

static bool is_bidi_control(uint32_t c)
{
    return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

bool parse_readable(Ctx *ctx, uint32_t source)
{
    Str text = source_get(&ctx->sources, source)->text;
    size_t bad = 0;
    if (!utf8_valid(text, &bad)) {
        Span at = {source, (uint32_t)bad, (uint32_t)bad + 1};
        return diag_refuse(&ctx->diags, E_UTF8, at, "byte 0x%02x is not valid UTF-8 here",
                           (unsigned)(unsigned char)text.at[bad]);
    }
    for (size_t k = 0; k < text.n; k++) {
        if ((unsigned char)text.at[k] < 0x80) {
            continue;
        }
        int length = 1;
        uint32_t c = utf8_decode(text.at + k, text.at + text.n, &length);
        if (is_bidi_control(c)) {
            Span at = {source, (uint32_t)k, (uint32_t)k + (uint32_t)length};
            return diag_refuse(
                &ctx->diags, E_CHARACTER, at,
                "U+%04X changes the order in which text is shown and is not allowed", c);
        }
        k += (size_t)length - 1;
    }
    return true;
}

/* A byte order mark before the text, as some editors write it, is no part of it. */
void parse_skip_mark(Parse *p)
{
    Str text = source_get(&p->ctx->sources, p->source)->text;
    if (text.n >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0) {
        p->at = 3;
    }
}

/* The nodes from `first` on that are types of f64 results. */
static bool *result_types(Ast *a, uint32_t first)
{
    bool *is = ARENA_ARRAY(a->arena, a->nodes.n, bool);
    for (uint32_t k = first; k < a->nodes.n; k++) {
        const AstNode *kernel = &a->nodes.at[k];
        const AstNode *list =
            kernel->kind == AST_KERNEL && kernel->n > 1 ? ast_node(a, kernel->child[1]) : NULL;
        for (uint32_t r = 0; list != NULL && r < list->n; r++) {
            const AstNode *param = ast_node(a, list->child[r]);
            AstId type = param->kind == AST_PARAM && param->n > 0 ? param->child[0] : 0;
            const AstNode *n = ast_node(a, type);
            is[type] =
                n->kind == AST_TYPE && n->name != NULL && strcmp(n->name->text, "f64") == 0;
        }
    }
    return is;
}

/* Types and conversions of nodes from `first` on, if the narrower ones are asked for. */
static void narrow_types(Ctx *ctx, Ast *a, uint32_t first)
{
    const bool *stays = a->narrow == NARROW_BUT_RESULTS ? result_types(a, first) : NULL;
    for (uint32_t k = first; k < a->nodes.n && a->narrow != NARROW_NONE; k++) {
        AstNode *n = &a->nodes.at[k];
        DType t = DTYPE_NONE;
        bool type = n->kind == AST_TYPE || n->kind == AST_CALL;
        type = type && (stays == NULL || !stays[k]);
        if (type && n->name != NULL && dtype_from_name((Str){n->name->text, n->name->n}, &t)) {
            n->name = sym_cstr(&ctx->syms, dtype_name(dtype_narrower(t)));
        }
    }
}

AstId ast_parse(Ctx *ctx, Ast *a, uint32_t source)
{
    const Source *s = source_get(&ctx->sources, source);
    Span all = {source, 0, (uint32_t)s->text.n};
    Parse p = {.ctx = ctx, .ast = a, .source = source};
    uint32_t first = a->nodes.n;
    p.file = ast_new(ctx, a, AST_FILE, all, sym_cstr(&ctx->syms, s->name), all, NULL, 0);
    vec_push(a->arena, &a->files, p.file);
    if (!parse_readable(ctx, source)) {
        a->damaged = true;
        return p.file;
    }
    void *scanner = NULL;
    parse_skip_mark(&p);
    CHECK(tdsl_lex_init_extra(&p, &scanner) == 0);
    CHECK(tdsl__scan_bytes(s->text.at + p.at, (int)(s->text.n - p.at), scanner) != NULL);
    if (tdsl_parse(scanner, &p) != 0) {
        a->damaged = true;
    }
    tdsl_lex_destroy(scanner);
    narrow_types(ctx, a, first);
    return p.file;
}
