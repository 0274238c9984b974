/* SPDX-License-Identifier: Apache-2.0 */
/* TDSL. A raw tree and nothing else: no rule looks at a name, a type or an option (front/ast.h). After an error the
 * parser goes on behind the next ';' or '}'. */
%code requires {
#include "front/parse.h"
}
%code {
#include "grammar/tdsl.lex.h"
}

%define api.prefix {tdsl_}
%define api.pure full
%define api.location.type {Span}
%define api.token.prefix {T_}
%define api.value.type {union ParseValue}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {void *scanner}
%parse-param {struct Parse *p}
%code {
#undef yylex
#define yylex parse_token
static void tdsl_error(Span *span, void *scanner, struct Parse *p, const char *message);
#define YYLLOC_DEFAULT(current, rhs, n)                                                          \
    (current) = (n) > 0 ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n))                          \
                        : (Span){YYRHSLOC(rhs, 0).source, YYRHSLOC(rhs, 0).hi, YYRHSLOC(rhs, 0).hi}
}

%token <name> NAME "name"
%token <i> INT "number" BOOL "truth value"
%token <f> FLOAT "decimal number" IMAGINARY "imaginary number"
%token <text> STRING "string" LIBRARY "library"
%token INCLUDE "'include'" DIM "'dim'" CONST "'const'" KERNEL "'kernel'" INOUT "'inout'" SPILL "'spill'"
%token ARROW "'->'" PLUS_SET "'+='" MINUS_SET "'-='" EQ "'=='" NE "'!='" LE "'<='" GE "'>='" AND "'&&'" OR "'||'"
%token YYEOF 0 "end of file"

%type <node> item dims dim kernel gradient head params param_list param attributes attribute type results body statement
%type <node> names left lefts expr disjunction conjunction comparison sum product unary primary list items
%type <i> inout

%%

file:       %empty
        |   file item                   { parse_add(p, p->file, $2, @2); }
        |   file dims ';'               { parse_add(p, p->file, $2, @2); }
        ;
item:       INCLUDE STRING ';'          { $$ = parse_include(p, @$, $2, false); }
        |   INCLUDE LIBRARY ';'         { $$ = parse_include(p, @$, $2, true); }
        |   CONST NAME '=' expr ';'     { $$ = parse_const(p, @$, $2, @2, 0, $4); }
        |   CONST NAME ':' type '=' expr ';' { $$ = parse_const(p, @$, $2, @2, $4, $6); }
        |   kernel
        |   gradient
        |   error ';'                   { $$ = parse_leaf(p, AST_BROKEN, @1, NULL); yyerrok; }
        |   error '}'                   { $$ = parse_leaf(p, AST_BROKEN, @1, NULL); yyerrok; }
        ;
dims:       DIM dim                     { $$ = parse_add(p, parse_list(p, AST_LIST, @1), $2, @2); }
        |   dims ',' dim                { $$ = parse_add(p, $1, $3, @3); }
        ;
dim:        NAME                        { $$ = parse_dim(p, @$, $1, @1, OP_EXTENT, 0); }
        |   NAME '=' sum                { $$ = parse_dim(p, @$, $1, @1, OP_CONST, $3); }
        |   NAME '~' sum                { $$ = parse_dim(p, @$, $1, @1, OP_COPY, $3); }
        ;

kernel:     head results '{' body '}'   { $$ = parse_kernel(p, @$, span_join(@1, @2), $1, $2, $4); }
        |   head results '{' body error '}' { $$ = parse_kernel(p, @$, span_join(@1, @2), $1, $2, parse_broken(p, $4, @5)); yyerrok; }
        |   head error block            { $$ = parse_list(p, AST_LIST, @2); }
        |   KERNEL error block          { $$ = parse_list(p, AST_LIST, @2); }
        ;
gradient:   KERNEL NAME '=' NAME NAME '(' names ')' ';' { $$ = parse_gradient(p, @$, $2, @2, parse_leaf(p, AST_NAME, @4, $4), parse_leaf(p, AST_NAME, @5, $5), $7, 0, 0); }
        |   KERNEL NAME '=' NAME NAME '(' names ')' NAME names ';' { $$ = parse_gradient(p, @$, $2, @2, parse_leaf(p, AST_NAME, @4, $4), parse_leaf(p, AST_NAME, @5, $5), $7, parse_leaf(p, AST_NAME, @9, $9), $10); }
        ;
block:      '{' body '}'                { yyerrok; }
        |   '{' body error '}'          { yyerrok; }
        ;
head:       KERNEL NAME '(' params ')'  { $$ = parse_named(p, AST_LIST, @$, $2, @2, $4); }
        ;
results:    %empty                      { $$ = parse_list(p, AST_LIST, @$); }
        |   ARROW '(' params ')'        { $$ = $3; }
        ;
params:     %empty                      { $$ = parse_list(p, AST_LIST, @$); }
        |   param_list
        |   param_list ','
        ;
param_list: param                       { $$ = parse_add(p, parse_list(p, AST_LIST, @1), $1, @1); }
        |   param_list ',' param        { $$ = parse_add(p, $1, $3, @3); }
        ;
param:      NAME ':' inout type attributes { $$ = parse_param(p, @$, $1, @1, $3 != 0, $4, $5); }
        ;
inout:      %empty                      { $$ = 0; }
        |   INOUT                       { $$ = 1; }
        ;
type:       NAME                        { $$ = parse_named(p, AST_TYPE, @$, $1, @1, 0); }
        |   NAME '[' list ']'           { $$ = parse_named(p, AST_TYPE, @$, $1, @1, $3); }
        ;
attributes: %empty                      { $$ = parse_list(p, AST_LIST, @$); }
        |   attributes attribute        { $$ = parse_add(p, $1, $2, @2); }
        ;
attribute:  NAME                        { $$ = parse_named(p, AST_ATTRIBUTE, @$, $1, @1, 0); }
        |   NAME '(' list ')'           { $$ = parse_named(p, AST_ATTRIBUTE, @$, $1, @1, $3); }
        ;

body:       %empty                      { $$ = parse_list(p, AST_LIST, @$); }
        |   body statement              { $$ = parse_add(p, $1, $2, @2); }
        |   body error ';'              { $$ = parse_broken(p, $1, @2); yyerrok; }
        ;
statement:  left '=' expr ';'           { $$ = parse_assign(p, @$, OP_COPY, @2, $1, $3); }
        |   left PLUS_SET expr ';'      { $$ = parse_assign(p, @$, OP_ADD, @2, $1, $3); }
        |   left MINUS_SET expr ';'     { $$ = parse_assign(p, @$, OP_SUB, @2, $1, $3); }
        |   NAME ':' type '=' expr ';'  { $$ = parse_declare(p, @$, $1, @1, $3, @4, $5); }
        |   '(' lefts ')' '=' expr ';'  { $$ = parse_assign(p, @$, OP_COPY, @4, $2, $5); }
        |   NAME '(' list ')' ';'       { $$ = parse_call_statement(p, @$, parse_named(p, AST_CALL, span_join(@1, @4), $1, @1, $3)); }
        |   NAME '[' list ']' '(' list ')' ';' { $$ = parse_call_statement(p, @$, parse_reduce(p, span_join(@1, @7), $1, @1, $3, $6)); }
        |   SPILL names ';'             { $$ = parse_named(p, AST_SPILL, @$, NULL, @1, $2); }
        ;
names:      NAME                        { AstId list = parse_list(p, AST_LIST, @1); $$ = parse_add(p, list, parse_leaf(p, AST_NAME, @1, $1), @1); }
        |   names ',' NAME              { $$ = parse_add(p, $1, parse_leaf(p, AST_NAME, @3, $3), @3); }
        ;
lefts:      left ',' left               { $$ = parse_add(p, parse_add(p, parse_list(p, AST_GROUP, @$), $1, @1), $3, @$); }
        |   lefts ',' left              { $$ = parse_add(p, $1, $3, @$); }
        ;
left:       NAME                        { $$ = parse_leaf(p, AST_NAME, @1, $1); }
        |   NAME '[' list ']'           { $$ = parse_indexed(p, @$, parse_leaf(p, AST_NAME, @1, $1), $3); }
        ;

expr:       disjunction
        ;
disjunction: conjunction
        |   disjunction OR conjunction  { $$ = parse_chain(p, @$, OP_OR, $1, $3); }
        ;
conjunction: comparison
        |   conjunction AND comparison  { $$ = parse_chain(p, @$, OP_AND, $1, $3); }
        ;
comparison: sum
        |   sum EQ sum                  { $$ = parse_compare(p, @$, OP_EQ, @2, $1, $3); }
        |   sum NE sum                  { $$ = parse_compare(p, @$, OP_NE, @2, $1, $3); }
        |   sum '<' sum                 { $$ = parse_compare(p, @$, OP_LT, @2, $1, $3); }
        |   sum LE sum                  { $$ = parse_compare(p, @$, OP_LE, @2, $1, $3); }
        |   sum '>' sum                 { $$ = parse_compare(p, @$, OP_GT, @2, $1, $3); }
        |   sum GE sum                  { $$ = parse_compare(p, @$, OP_GE, @2, $1, $3); }
        ;
sum:        product
        |   sum '+' product             { $$ = parse_chain(p, @$, OP_ADD, $1, $3); }
        |   sum '-' product             { $$ = parse_chain(p, @$, OP_SUB, $1, $3); }
        ;
product:    unary
        |   product '*' unary           { $$ = parse_chain(p, @$, OP_MUL, $1, $3); }
        |   product '/' unary           { $$ = parse_chain(p, @$, OP_DIV, $1, $3); }
        ;
unary:      primary
        |   '-' unary                   { $$ = parse_unary(p, @$, OP_NEG, @1, $2); }
        |   '!' unary                   { $$ = parse_unary(p, @$, OP_NOT, @1, $2); }
        ;
primary:    INT                         { $$ = parse_number(p, AST_INT, @1, (ParseValue){.i = $1}); }
        |   IMAGINARY                   { $$ = parse_number(p, AST_IMAGINARY, @1, (ParseValue){.f = $1}); }
        |   FLOAT                       { $$ = parse_number(p, AST_FLOAT, @1, (ParseValue){.f = $1}); }
        |   BOOL                        { $$ = parse_number(p, AST_BOOL, @1, (ParseValue){.i = $1}); }
        |   STRING                      { $$ = parse_text(p, @1, $1); }
        |   NAME                        { $$ = parse_leaf(p, AST_NAME, @1, $1); }
        |   NAME '[' list ']'           { $$ = parse_indexed(p, @$, parse_leaf(p, AST_NAME, @1, $1), $3); }
        |   NAME '(' list ')'           { $$ = parse_named(p, AST_CALL, @$, $1, @1, $3); }
        |   NAME '(' list ')' '[' list ']' { $$ = parse_indexed(p, @$, parse_named(p, AST_CALL, span_join(@1, @4), $1, @1, $3), $6); }
        |   NAME '[' list ']' '(' list ')' { $$ = parse_reduce(p, @$, $1, @1, $3, $6); }
        |   '(' expr ')'                { $$ = $2; }
        |   '(' expr ',' items ')'      { $$ = parse_add(p, parse_add(p, parse_list(p, AST_GROUP, @$), $2, @2), $4, @$); }
        ;
list:       %empty                      { $$ = parse_list(p, AST_LIST, @$); }
        |   items
        ;
items:      expr                        { $$ = parse_add(p, parse_list(p, AST_LIST, @1), $1, @1); }
        |   items ',' expr              { $$ = parse_add(p, $1, $3, @3); }
        ;

%%

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, struct Parse *p)
{
    (void)scanner;
    enum { MOST = 40 };
    yysymbol_kind_t expected[MOST];
    int n = yypcontext_expected_tokens(context, expected, MOST);
    const char *names[MOST];
    for (int k = 0; k < n; k++) {
        names[k] = yysymbol_name(expected[k]);
    }
    parse_unexpected(p, *yypcontext_location(context), p->last.token, names, n);
    return 0;
}

/* Only "memory exhausted" arrives here: the parser's stack has its limit. */
static void tdsl_error(Span *span, void *scanner, struct Parse *p, const char *message)
{
    (void)scanner;
    (void)message;
    parse_too_deep(p, *span);
}
