/* SPDX-License-Identifier: Apache-2.0 */
/* The dump language: lines of terms, and blocks of lines in braces (compiler/dump/tree.h). Actions build the tree
 * and know nothing of what a dump means. The first error ends the reading: dumps are written by programs. */
%code requires {
#include "dump/parse.h"
}
%code {
#include "grammar/dump.lex.h"
}

%define api.prefix {dump_}
%define api.pure full
%define api.location.type {Span}
%define api.token.prefix {T_}
%define api.value.type {union DumpValue}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {void *scanner}
%parse-param {struct DumpScan *scan}
%code {
static void dump_error(Span *span, void *scanner, struct DumpScan *scan, const char *message);
#define YYLLOC_DEFAULT(current, rhs, n)                                                          \
    (current) = (n) > 0 ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n))                          \
                        : (Span){YYRHSLOC(rhs, 0).source, YYRHSLOC(rhs, 0).hi, YYRHSLOC(rhs, 0).hi}
}

%token <term> TERM_NAME "name" TERM_ATOM "term" COMMA "','"
%token INDEX "'[' for an index" LIST "'['" CALL "'('" LBRACE "'{'"
%token RBRACKET "']'" RPAREN "')'" RBRACE "'}'" NL "end of line"
%token YYEOF 0 "end of file"

%type <term> item term atom element
%type <terms> items seq list elements
%type <line> line
%type <lines> lines

%%

dump:     lines                         { scan->result = $1; };

lines:    %empty                        { $$ = dump_lines(scan); }
        | lines line                    { $$ = dump_lines_add(scan, $1, $2); };

line:     items NL                      { $$ = dump_line(scan, @items, $1, NULL); }
        | items LBRACE NL lines RBRACE NL { $$ = dump_line(scan, @items, $1, $4); };

items:    item                          { $$ = dump_terms_add(scan, dump_terms(scan), $1); }
        | items item                    { $$ = dump_terms_add(scan, $1, $2); };
item:     term
        | COMMA;

term:     atom
        | term INDEX list RBRACKET      { $$ = dump_index(scan, @$, $1, $3); };

atom:     TERM_NAME
        | TERM_ATOM
        | TERM_NAME CALL list RPAREN    { $$ = dump_call(scan, @$, $1, $3); }
        | LIST list RBRACKET            { $$ = dump_list(scan, @$, $2); };

list:     %empty                        { $$ = dump_terms(scan); }
        | elements;
elements: element                       { $$ = dump_terms_add(scan, dump_terms(scan), $1); }
        | elements COMMA element        { $$ = dump_terms_add(scan, $1, $3); };
element:  seq                           { $$ = dump_seq(scan, @$, $1); };
seq:      term                          { $$ = dump_terms_add(scan, dump_terms(scan), $1); }
        | seq term                      { $$ = dump_terms_add(scan, $1, $2); };

%%

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, struct DumpScan *scan)
{
    (void)scanner;
    enum { MOST = 4 };
    yysymbol_kind_t expected[MOST];
    int n = yypcontext_expected_tokens(context, expected, MOST);
    const char *names[MOST];
    for (int k = 0; k < n; k++) {
        names[k] = yysymbol_name(expected[k]);
    }
    yysymbol_kind_t found = yypcontext_token(context);
    dump_syntax_error(scan, *yypcontext_location(context),
                      found == YYSYMBOL_YYEMPTY ? "nothing" : yysymbol_name(found), names, n);
    return 0;
}

/* Only "memory exhausted" arrives here. */
static void dump_error(Span *span, void *scanner, struct DumpScan *scan, const char *message)
{
    (void)scanner;
    (void)message;
    dump_too_deep(scan, *span);
}
