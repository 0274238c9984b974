/* SPDX-License-Identifier: Apache-2.0 */
/* What the grammar saw, and nothing more: no name is looked up, no type computed. Nodes are uniform records with
 * dense ids (0 is "none"), made once and not changed afterwards; all files of a compilation share one Ast. Chains of
 * equal precedence (a + b - c, a * b / c, a && b) are one node with many children, so that depth measures nesting and
 * not length; deeper than NESTING_LIMIT a node is replaced by AST_BROKEN, once reported. */
#ifndef FRONT_AST_H
#define FRONT_AST_H

#include "base/ctx.h"
#include "op/op.h"

typedef uint32_t AstId;

typedef enum AstKind {
    AST_NONE,
    AST_BROKEN, /* what did not parse; already reported */

    /* items: name, and children as said */
    AST_FILE,    /* items */
    AST_INCLUDE, /* name: the text between the quotes; the AST_FILE, where it was first read; flag: in '<' and '>' */
    AST_DIM,     /* link[0]: OP_EXTENT (open), OP_CONST (=), OP_COPY (~); expr or none */
    AST_CONST,   /* type or none, expr */
    AST_KERNEL,  /* AST_LIST of params, AST_LIST of results, AST_LIST of statements */
    AST_GRADIENT, /* the word, the kernel, LIST of parameters; perhaps a word and a LIST of results */
    AST_LIST,
    AST_PARAM,     /* type, attributes...; flag: inout */
    AST_TYPE,      /* name: element type; extents */
    AST_ATTRIBUTE, /* name, arguments */

    /* statements */
    AST_ASSIGN, /* left, right; op: OP_COPY (=), OP_ADD (+=), OP_SUB (-=). Left: a GROUP of several, or of none, of a call */
    AST_SPILL,  /* names */

    /* expressions */
    AST_INT,       /* i */
    AST_FLOAT,     /* f */
    AST_IMAGINARY, /* f, times the imaginary unit */
    AST_BOOL,      /* i */
    AST_STRING,    /* at: the text between the quotes */
    AST_NAME,
    AST_INDEXED, /* base, indices... */
    AST_CALL,    /* name, arguments... */
    AST_REDUCE,  /* name, body (a LIST: several, or none), indices... */
    AST_UNARY,   /* op; child */
    AST_GROUP,   /* (i, a): what goes together */
    AST_COMPARE, /* op; two children */
    AST_CHAIN,   /* children; link[k]: how child k joins those before (OP_ADD OP_SUB | OP_MUL
                    OP_DIV | OP_AND | OP_OR) */
    AST_KIND_COUNT
} AstKind;

typedef struct AstNode {
    AstKind kind;
    Op op;
    uint16_t depth;
    bool flag;  /* PARAM: inout; CHAIN, KERNEL: something in it is broken */
    uint32_t n; /* children */
    uint32_t cap;
    Span span; /* all of it */
    Span at;   /* the name, the operator, the text of a string; of a KERNEL: its head */
    Sym name;
    AstId *child;
    uint8_t *link; /* CHAIN, DIM */
    union {
        int64_t i;
        double f;
    } value;
} AstNode;

/* Nodes of one program, about a mebibyte of dense source, or ten thousand products as kernels of their own: more is a stated limit, so that no text takes long or much
 * memory. */
#define AST_LIMIT 420000u

/* f64 in programs is read as f32, c128 as c64; or in all but the types of results that are f64. */
typedef enum FrontNarrow { NARROW_NONE, NARROW_ALL, NARROW_BUT_RESULTS } FrontNarrow;

typedef struct Ast {
    Arena *arena;
    VEC(AstNode) nodes; /* by id */
    VEC(AstId) files;   /* AST_FILE of each parsed source */
    bool damaged;       /* something did not parse: missing names may be due to that */
    bool too_deep;      /* reported */
    FrontNarrow narrow;
    AstId too_large; /* the broken node that stands for all past AST_LIMIT; 0: not reached */
} Ast;

void ast_init(Ast *a, Arena *arena);
const AstNode *ast_node(const Ast *a, AstId id);

/* Parses `source`; what did not parse is reported. Returns the AST_FILE. */
AstId ast_parse(Ctx *ctx, Ast *a, uint32_t source);

/* ---- making nodes: for the grammar's actions ---- */

AstId ast_new(Ctx *ctx, Ast *a, AstKind kind, Span span, Sym name, Span at, const AstId *child,
              uint32_t n);
void ast_append(Ctx *ctx, Ast *a, AstId list,
                AstId child);                         /* to a LIST, FILE or CHAIN being made */
void ast_set_file(Ast *a, AstId include, AstId file); /* the one thing known only later */

/* ---- tokens.c ---- */
typedef enum TokenKind {
    TOKEN_NAME,
    TOKEN_KEYWORD, /* a truth value too */
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_SIGN,
    TOKEN_COMMENT
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Span span;
} Token;

typedef struct Tokens {
    VEC(Token) list;
} Tokens;

/* Tokens and the comments between them, in the order of the text. What is no token is reported and left out. */
void tokens_scan(Ctx *ctx, uint32_t source, Tokens *out);
void tokens_dump(Ctx *ctx, uint32_t source, Text *out); /* one token a line; reads back */

/* ---- ast_dump.c: each stage's dump is TDSL text again, with a first line that says what it is ---- */
void ast_dump(const Ast *a, Text *out);                    /* canonical layout; reads back */
void ast_dump_head(const Ast *a, AstId kernel, Text *out); /* one line, without the body */

#endif
