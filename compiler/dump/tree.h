/* SPDX-License-Identifier: Apache-2.0 */
/* The dump language as a tree. Every dump (graph, path, fuse, schedule, loop) is lines of
 * terms, and blocks of lines in braces; grammar/dump.l and dump.y know that much and no more.
 * The readers of each dump walk this tree. A comment runs from ';' to the end of the line and
 * is dropped: dumps print in comments only what follows from the rest.
 *
 *     line   = seq [ "{" NEWLINE { line } "}" ] NEWLINE
 *     seq    = { term }
 *     term   = NAME | INT | FLOAT | STRING | "%" INT | "@" NAME | "$" NAME | PUNCT
 *            | NAME "(" list ")" | term "[" list "]" | "[" list "]"
 *     list   = [ seq { "," seq } ]
 *
 * An @ or $ is followed by a NAME without dots or by a STRING. PUNCT is one of  ->  =  +=  : ..
 * <  +  -  *  /  ~  ,  (the comma only between operands at the top of a line). A '[' that
 * follows a name, %n, @x or $x without a blank indexes it; after a blank it starts a list of
 * its own. */
#ifndef DUMP_TREE_H
#define DUMP_TREE_H

#include "base/ctx.h"
#include "base/map.h"
#include "op/types.h"

typedef enum TermKind {
    TERM_NAME,
    TERM_INT,
    TERM_FLOAT,
    TERM_STRING,
    TERM_VALUE, /* %4: value 4 */
    TERM_AT,    /* @x: text "x" */
    TERM_VAR,   /* $x: text "x" */
    TERM_PUNCT, /* text "->" */
    TERM_CALL,  /* text(child...) */
    TERM_INDEX, /* child[0] is the base, child[1..] the list */
    TERM_LIST,  /* [child...] */
    TERM_SEQ    /* an element of a list that is not exactly one term */
} TermKind;

typedef struct Term {
    TermKind kind;
    Span span;
    Sym text;      /* NAME, AT, VAR, PUNCT, CALL; STRING with its escapes resolved */
    int64_t value; /* INT, VALUE */
    double real;   /* FLOAT ("inf", "-inf" and "nan" are NAMEs) */
    uint32_t n;
    struct Term *const *child;
} Term;

typedef struct DumpLine {
    Span span;
    uint32_t n;
    Term *const *term;
    bool has_block;
    uint32_t n_body;
    struct DumpLine *const *body;
} DumpLine;

typedef struct DumpTree {
    uint32_t n;
    DumpLine *const *line;
} DumpTree;

/* Null on a syntax error (reported). Nesting is limited to NESTING_LIMIT. */
DumpTree *dump_tree_read(Ctx *ctx, Arena *arena, uint32_t source);

/* Reports E_DUMP, and is false. */
#define dump_refuse(ctx, ...) diag_refuse(&(ctx)->diags, E_DUMP, __VA_ARGS__)

/* A cursor over a sequence of terms, for readers: each of these reports E_DUMP at the place when it fails. */
typedef struct Cursor {
    Ctx *ctx;
    Term *const *term;
    uint32_t n, at;
    Span end; /* where the sequence ends: the place of "unexpected end of line" */
} Cursor;
Cursor cursor_line(Ctx *ctx, const DumpLine *line);
Cursor cursor_seq(Ctx *ctx, Term *seq); /* a TERM_SEQ's children, or the one term itself */
bool cursor_done(const Cursor *c);
const Term *cursor_peek(const Cursor *c); /* null at the end */
Span cursor_place(const Cursor *c);       /* of the next term, or of the end */
bool cursor_is(const Cursor *c, TermKind kind, const char *text); /* text null: any */
bool cursor_take(Cursor *c, TermKind kind, const char *text);     /* advances if it is */
const Term *cursor_expect(Cursor *c, TermKind kind, const char *text, const char *what);
bool cursor_expect_end(Cursor *c);

/* A user's name where the grammar has NAME: quoted unless it is a plain identifier; and its reading (null after
 * reporting). After '@' and '$' the tree has resolved the quotes already. */
bool name_is_plain(Sym name);
void dump_name(Text *out, Sym name);
Sym cursor_name(Cursor *c, const char *what);

/* A place in the user's program, ` at 4:12` in the source `home` and ` at "other.tdsl" 4:12` elsewhere; nothing for a span
 * without a source. Reading it gives a span that source_position maps to the same line and column, so that what is made from a
 * dump names the same places as what is made from the program. `at` itself has been taken; home 0 expects a file name. */
typedef struct Places {
    Ctx *ctx;
    Map number; /* file name -> source that has places and no text */
} Places;
void dump_span(Text *out, Sources *sources, Span span, uint32_t home);
void places_init(Places *p, Ctx *ctx, Arena *arena);
bool cursor_span(Cursor *c, Places *p, uint32_t home, Span *out);

/* The first line of every dump: `tdsl-dump graph 1`. Returns the stage's name, or null when the text is no dump
 * (without reporting): how the driver tells a dump from a .tdsl file. */
const char *dump_stage(Str text, Arena *arena);

#endif
