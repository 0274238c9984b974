/* SPDX-License-Identifier: Apache-2.0 */
/* Between grammar/dump.{l,y} and dump/tree.c: the state of one reading and the calls the
 * grammar's actions make. Nobody else includes this. */
#ifndef DUMP_PARSE_H
#define DUMP_PARSE_H

#include "dump/tree.h"

typedef struct DumpTerms {
    VEC(Term *) list;
} DumpTerms;

typedef struct DumpLines {
    VEC(DumpLine *) list;
} DumpLines;

typedef union DumpValue {
    Term *term;
    DumpTerms *terms;
    DumpLine *line;
    DumpLines *lines;
} DumpValue;

typedef struct DumpScan {
    Ctx *ctx;
    Arena *arena;
    uint32_t source;
    uint32_t at;    /* offset of the next byte */
    bool glued;     /* the last token may be indexed by a '[' right here */
    bool line_open; /* a token of the current line has been seen */
    uint32_t depth; /* open brackets, parentheses and braces */
    DumpLines *result;
} DumpScan;

/* for the scanner; functions that return int give a token, or the error token after reporting */
void dump_scan_advance(DumpScan *s, Span *span, size_t n);
void dump_scan_give_back(DumpScan *s, Span *span, size_t keep);
bool dump_scan_term(DumpScan *s, Span span, TermKind kind, const char *text, size_t n,
                    Term **out);
bool dump_scan_newline(DumpScan *s); /* is this the end of a line that holds something? */
int dump_scan_open(DumpScan *s, Span span, int token);
int dump_scan_close(DumpScan *s, bool glued, int token);
int dump_scan_error(DumpScan *s, Span span, DiagCode code, const char *what);

/* for the parser */
DumpTerms *dump_terms(DumpScan *s);
DumpTerms *dump_terms_add(DumpScan *s, DumpTerms *list, Term *term);
Term *dump_seq(DumpScan *s, Span span, DumpTerms *list);
Term *dump_list(DumpScan *s, Span span, DumpTerms *list);
Term *dump_call(DumpScan *s, Span span, Term *name, DumpTerms *list);
Term *dump_index(DumpScan *s, Span span, Term *base, DumpTerms *list);
DumpLine *dump_line(DumpScan *s, Span span, DumpTerms *terms, DumpLines *body);
DumpLines *dump_lines(DumpScan *s);
DumpLines *dump_lines_add(DumpScan *s, DumpLines *lines, DumpLine *line);
void dump_syntax_error(DumpScan *s, Span span, const char *found, const char *const *expected,
                       int n);
void dump_too_deep(DumpScan *s, Span span);

#endif
