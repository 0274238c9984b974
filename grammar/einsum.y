/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum strings: terms of labels. What a label means is decided in front/einsum.c. */
%code requires {
#include "front/einsum_parse.h"
}
%code {
#include "grammar/einsum.lex.h"
}

%define api.prefix {einsum_}
%define api.pure full
%define api.location.type {Span}
%define api.token.prefix {T_}
%define api.value.type {union EinsumValue}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {void *scanner}
%parse-param {struct EinsumScan *scan}
%code {
static void einsum_error(Span *span, void *scanner, struct EinsumScan *scan, const char *message);
#define YYLLOC_DEFAULT(current, rhs, n)                                                          \
    (current) = (n) > 0 ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n))                          \
                        : (Span){YYRHSLOC(rhs, 0).source, YYRHSLOC(rhs, 0).hi, YYRHSLOC(rhs, 0).hi}
}

%token <code> LABEL "a label"
%token DOTS "'...'" ARROW "'->'"
%token YYEOF 0 "the end of the string"

%%

equation:   inputs
        |   inputs arrow term
        ;
arrow:      ARROW                       { einsum_output(scan, @1); }
        ;
inputs:     input
        |   inputs ',' input
        ;
input:      term                        { einsum_term_end(scan); }
        ;
term:       %empty
        |   term LABEL                  { einsum_label(scan, $2, @2); }
        |   term DOTS                   { einsum_dots(scan, @2); }
        ;

%%

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, struct EinsumScan *scan)
{
    (void)scanner;
    (void)yypcontext_expected_tokens; /* a term may go on with anything: a list helps nobody */
    einsum_unexpected(scan, *yypcontext_location(context), yysymbol_name(yypcontext_token(context)));
    return 0;
}

/* Only "memory exhausted" arrives here, which this grammar cannot cause by nesting. */
static void einsum_error(Span *span, void *scanner, struct EinsumScan *scan, const char *message)
{
    (void)scanner;
    einsum_unexpected(scan, *span, message);
}
