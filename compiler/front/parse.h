/* SPDX-License-Identifier: Apache-2.0 */
/* Between grammar/tdsl.{l,y} and front/parse.c: the state of one parse, and the calls the grammar's actions make.
 * Nobody else includes this. */
#ifndef FRONT_PARSE_H
#define FRONT_PARSE_H

#include "front/ast.h"

typedef union ParseValue {
    Sym name;
    AstId node;
    int64_t i;
    double f;
    Span text;
} ParseValue;

typedef struct ParseToken {
    int token; /* 0 at the beginning */
    Span span;
    ParseValue value;
} ParseToken;

typedef struct Parse {
    Ctx *ctx;
    Ast *ast;
    uint32_t source;
    uint32_t at;      /* offset of the next byte */
    uint32_t comment; /* where the open comment began */
    AstId file;

    /* parse_token.c */
    ParseToken last, before,
        next; /* the last one that the parser got, the one before it, the one that it gets */
    bool has_next;
    ParseToken inserted; /* before it, if `insert` */
    bool insert;
    VEC(Span) open; /* '(' and '[' */
    Span outermost; /* the last one of them that stood in no other */
    Span
        unclosed; /* the last one of them, where a statement or a head has ended before it is closed */
    bool in_head, in_body; /* of a kernel */
    bool said;             /* something of this statement: one mistake has one message */
} Parse;

typedef void *ParseScanner;

/* ---- for the scanner: functions that return int give a token; T_TDSL_error after a report ---- */
void parse_advance(Parse *p, Span *span, size_t n);
int parse_name(Parse *p, ParseValue *value, const char *text, size_t n, Span span);
int parse_int(Parse *p, ParseValue *value, const char *text, size_t n, Span span);
int parse_float(Parse *p, ParseValue *value, const char *text, Span span);
int parse_imaginary(Parse *p, ParseValue *value, const char *text, Span span); /* 2i */
int parse_string(ParseValue *value, Span span);
int parse_library(ParseValue *value, Span span); /* <nn.tdsl> */
int parse_bad_number(Parse *p, ParseValue *value, Span span);
int parse_foreign_name(Parse *p, ParseValue *value, const char *text, size_t n, Span span);
int parse_power(Parse *p, const char *text, Span span); /* as other languages write one */
int parse_bad_character(Parse *p, char c, Span span);
int parse_open_string(Parse *p, Span span);
void parse_open_comment(Parse *p);

/* ---- before both ---- */
/* Valid UTF-8 without characters that change the order in which text is shown? Else false, after a report. */
bool parse_readable(Ctx *ctx, uint32_t source);
void parse_skip_mark(Parse *p);

/* ---- between them ---- */
int parse_token(ParseValue *value, Span *span, void *scanner);
/* Null when the statement has a message already. */
Diagnostic *parse_say(Parse *p, DiagCode code, Span span, const char *what);
void parse_help(Diagnostic *d, const char *help);
void parse_fix(Diagnostic *d, Span span, const char *text);
const char *parse_source(const Parse *p, Span span, size_t *n);
bool parse_ends_operand(int token);

/* ---- for the parser ---- */
/* `expected`: tokens as the grammar calls them, in quotes or by a word. */
void parse_unexpected(Parse *p, Span span, int token, const char *const *expected, int n);
void parse_too_deep(Parse *p, Span span);

AstId parse_leaf(Parse *p, AstKind kind, Span span, Sym name);
AstId parse_number(Parse *p, AstKind kind, Span span, ParseValue value);
AstId parse_text(Parse *p, Span span, Span text);
AstId parse_include(Parse *p, Span span, Span text, bool library);
AstId parse_dim(Parse *p, Span span, Sym name, Span at, Op how, AstId expr);
AstId parse_const(Parse *p, Span span, Sym name, Span at, AstId type, AstId expr);
AstId parse_kernel(Parse *p, Span span, Span head, AstId params, AstId results, AstId body);
AstId parse_gradient(Parse *p, Span span, Sym name, Span at, AstId word, AstId of, AstId params,
                     AstId with, AstId results);
AstId parse_broken(Parse *p, AstId list, Span span);
AstId parse_param(Parse *p, Span span, Sym name, Span at, bool is_inout, AstId type,
                  AstId attrs);
AstId parse_list(Parse *p, AstKind kind, Span span);
AstId parse_add(Parse *p, AstId list, AstId item, Span span);
AstId parse_named(Parse *p, AstKind kind, Span span, Sym name, Span at, AstId list);
AstId parse_assign(Parse *p, Span span, Op op, Span at, AstId left, AstId right);
AstId parse_declare(Parse *p, Span span, Sym name, Span name_at, AstId type, Span at,
                    AstId right);
AstId parse_indexed(Parse *p, Span span, AstId base, AstId indices);
AstId parse_reduce(Parse *p, Span span, Sym name, Span at, AstId indices, AstId arguments);
AstId parse_call_statement(Parse *p, Span span, AstId call);
AstId parse_unary(Parse *p, Span span, Op op, Span at, AstId x);
AstId parse_compare(Parse *p, Span span, Op op, Span at, AstId x, AstId y);
AstId parse_chain(Parse *p, Span span, Op op, AstId x, AstId y);

#endif
