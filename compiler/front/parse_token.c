/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens on their way from the scanner to the parser. What is known to be meant is put right here, after a message, so that the
 * parser goes on as if it had been written: a ';' that is missing at the end of a line, `kernal`. What is not of the language at
 * all, a loop or a `return`, is left out as one mistake. */
#include "front/parse.h"

#include <string.h>

#include "grammar/tdsl.tab.h"
#define YYSTYPE union ParseValue
#define YYLTYPE Span
#include "grammar/tdsl.lex.h"

Diagnostic *parse_say(Parse *p, DiagCode code, Span span, const char *what)
{
    bool said = p->said;
    p->ast->damaged = p->said = true;
    return said ? NULL : diag_error(&p->ctx->diags, code, span, "%s", what);
}

void parse_fix(Diagnostic *d, Span span, const char *text)
{
    if (d != NULL) {
        diag_fix(d, span, "%s", text);
    }
}

void parse_help(Diagnostic *d, const char *help)
{
    if (d != NULL && help != NULL) {
        diag_help(d, "%s", help);
    }
}

const char *parse_source(const Parse *p, Span span, size_t *n)
{
    *n = span.hi - span.lo;
    return source_get(&p->ctx->sources, p->source)->text.at + span.lo;
}

static bool text_is(const Parse *p, Span span, const char *word)
{
    size_t n;
    const char *text = parse_source(p, span, &n);
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

bool parse_ends_operand(int token)
{
    return token == T_NAME || token == T_INT || token == T_FLOAT || token == T_IMAGINARY ||
           token == T_BOOL || token == T_STRING || token == ']' || token == ')';
}

/* ---- words of other languages ---- */

enum { DO_SKIP, DO_DROP, DO_KERNEL, DO_CONST, DO_INCLUDE };
#define NO_LOOP                                                                                \
    "there are no loops: a statement is meant for all values of its indices, R[i] = 2 * x[i];"

static const struct {
    const char *word;
    int then;
    const char *cure;
} words[] = {
    {"for", DO_SKIP, NO_LOOP},
    {"while", DO_SKIP, NO_LOOP},
    {"do", DO_SKIP, NO_LOOP},
    {"forall", DO_SKIP, NO_LOOP},
    {"if", DO_SKIP, "there are no branches: select(c, x, y) is x where c, else y"},
    {"else", DO_SKIP, "there are no branches: select(c, x, y) is x where c, else y"},
    {"return", DO_SKIP,
     "a kernel has named results, which are assigned: -> (R: f64[n]) { R[i] = ...; }"},
    {"let", DO_DROP, "a value is defined by its assignment, without a word before it"},
    {"var", DO_DROP, "a value is defined by its assignment, without a word before it"},
    {"auto", DO_DROP, "a value is defined by its assignment, without a word before it"},
    {"float", DO_DROP,
     "a value is defined by its assignment; with an element type, T: f32[i] = ...;"},
    {"double", DO_DROP,
     "a value is defined by its assignment; with an element type, T: f64[i] = ...;"},
    {"int", DO_DROP,
     "a value is defined by its assignment; with an element type, T: i64[i] = ...;"},
    {"tensor", DO_DROP,
     "a value is defined by its assignment; with an element type, T: f64[i] = ...;"},
    {"f64", DO_DROP,
     "a value is defined by its assignment; with an element type, T: f64[i] = ...;"},
    {"f32", DO_DROP,
     "a value is defined by its assignment; with an element type, T: f32[i] = ...;"},
    {"def", DO_KERNEL, NULL},
    {"func", DO_KERNEL, NULL},
    {"function", DO_KERNEL, NULL},
    {"fn", DO_KERNEL, NULL},
    {"fun", DO_KERNEL, NULL},
    {"void", DO_KERNEL, NULL},
    {"import", DO_INCLUDE, NULL},
    {"use", DO_INCLUDE, NULL},
    {"param", DO_CONST, NULL},
};

static int word_of(const Parse *p, Span span)
{
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        if (text_is(p, span, words[k].word)) {
            return (int)k;
        }
    }
    return -1;
}

static const struct {
    const char *word;
    int token;
} keywords[] = {{"kernel", T_KERNEL},
                {"include", T_INCLUDE},
                {"const", T_CONST},
                {"dim", T_DIM},
                {"spill", T_SPILL}};

/* The keyword that is nearly this name, as a row; -1: none. */
static int near_keyword(const Parse *p, Span span, size_t from, size_t to)
{
    size_t n;
    const char *text = parse_source(p, span, &n);
    for (size_t k = from; k < to; k++) {
        size_t most = strlen(keywords[k].word) > 3 ? 2 : 1;
        if (str_distance((Str){text, n}, str_from(keywords[k].word), (int)most) <= (int)most) {
            return (int)k;
        }
    }
    return -1;
}

/* ---- tokens ---- */

static ParseToken scan(Parse *p, void *scanner)
{
    ParseToken t = p->next;
    if (p->has_next) {
        p->has_next = false;
        return t;
    }
    t = (ParseToken){0};
    t.token = tdsl_lex(&t.value, &t.span, scanner);
    return t;
}

static void give_back(Parse *p, ParseToken t)
{
    CHECK(!p->has_next);
    p->next = t;
    p->has_next = true;
}

static ParseToken peek(Parse *p, void *scanner)
{
    ParseToken t = scan(p, scanner);
    give_back(p, t);
    return t;
}

/* Leaves out all to the end of a statement, and of a block in it. The ';' that ends it comes next. */
static void skip_statement(Parse *p, void *scanner)
{
    uint32_t depth = 0;
    ParseToken t = {0};
    for (;;) {
        t = scan(p, scanner);
        if (t.token <= 0 || (t.token == '}' && depth == 0)) {
            give_back(p, t);
            return;
        }
        depth += t.token == '{' ? 1 : 0;
        depth -= t.token == '}' ? 1 : 0;
        bool ends = depth == 0 && (t.token == ';' || t.token == '}');
        if (ends && !text_is(p, peek(p, scanner).span, "else")) {
            break;
        }
    }
    p->insert = true;
    p->inserted = (ParseToken){.token = ';', .span = t.span};
}

static bool is_new_line(const Parse *p, Span at)
{
    size_t n;
    const char *text = parse_source(p, (Span){p->source, p->last.span.hi, at.lo}, &n);
    return memchr(text, '\n', n) != NULL;
}

/* Does a statement or an item end before this token, without a ';'? */
static bool lacks_semicolon(const Parse *p, const ParseToken *t)
{
    if (p->open.n > 0 || !parse_ends_operand(p->last.token)) {
        return false;
    }
    if (p->in_body) {
        return t->token == '}' ||
               ((t->token == T_NAME || t->token == T_SPILL) && is_new_line(p, t->span));
    }
    return !p->in_head && (t->token == T_KERNEL || t->token == T_DIM || t->token == T_CONST ||
                           t->token == T_INCLUDE);
}

static ParseToken semicolon(Parse *p)
{
    Span at = {p->source, p->last.span.hi, p->last.span.hi};
    parse_fix(parse_say(p, E_SYNTAX, at, "a ';' is missing at the end of this"), at, ";");
    return (ParseToken){.token = ';', .span = at};
}

/* A name where an item begins. */
static ParseToken item_word(Parse *p, void *scanner, ParseToken t)
{
    int word = word_of(p, t.span), row = near_keyword(p, t.span, 0, 4);
    int then = word < 0 ? -1 : words[word].then;
    row = then == DO_KERNEL ? 0 : then == DO_INCLUDE ? 1 : then == DO_CONST ? 2 : row;
    size_t n;
    const char *text = parse_source(p, t.span, &n);
    const char *what =
        str_format(&p->ctx->arena, "'%.*s' begins no item", (int)(n < 100 ? n : 100), text);
    Diagnostic *d = parse_say(p, E_SYNTAX, t.span, what);
    if (row >= 0) {
        parse_help(d, str_format(&p->ctx->arena,
                                 word >= 0 ? "here it is '%s'" : "did you mean '%s'?",
                                 keywords[row].word));
        parse_fix(d, t.span, keywords[row].word);
        t.token = keywords[row].token;
        return t;
    }
    parse_help(d, "a file holds 'include', 'dim', 'const' and 'kernel'; statements stand "
                  "between the '{' and '}' of a kernel");
    skip_statement(p, scanner);
    t.token = T_TDSL_error;
    return t;
}

/* A name where a statement begins. */
static ParseToken statement_word(Parse *p, void *scanner, ParseToken t)
{
    ParseToken next = peek(p, scanner);
    bool ours = next.token == '=' || next.token == '[' || next.token == ':' ||
                next.token == T_PLUS_SET || next.token == T_MINUS_SET;
    int word = word_of(p, t.span);
    if (ours || next.token <= 0) {
        return t;
    }
    if (word >= 0 && words[word].cure != NULL &&
        (next.token == T_NAME || words[word].then == DO_SKIP)) {
        size_t n;
        const char *text = parse_source(p, t.span, &n);
        Diagnostic *d =
            parse_say(p, E_SYNTAX, t.span,
                      str_format(&p->ctx->arena, "'%.*s' begins no statement", (int)n, text));
        parse_help(d, words[word].cure);
        if (words[word].then == DO_DROP) {
            return scan(p, scanner);
        }
        skip_statement(p, scanner);
        t.token = T_TDSL_error;
        return t;
    }
    if (next.token == T_NAME && near_keyword(p, t.span, 4, 5) >= 0) {
        Diagnostic *d = parse_say(p, E_SYNTAX, t.span, "this begins no statement");
        parse_help(d, "did you mean 'spill'?");
        parse_fix(d, t.span, "spill");
        t.token = T_SPILL;
    }
    return t;
}

static void note_place(Parse *p, const ParseToken *t)
{
    switch (t->token) {
    case '(':
    case '[':
        p->outermost = p->open.n == 0 ? t->span : p->outermost;
        vec_push(&p->ctx->arena, &p->open, t->span);
        return;
    case ')':
    case ']':
        p->open.n -= p->open.n > 0 ? 1 : 0;
        return;
    case T_KERNEL:
        p->in_head = true;
        return;
    case '{':
        p->in_body = true;
        p->in_head = false;
        break;
    case '}':
        p->in_body = p->in_head = false;
        break;
    case ';':
        p->in_head = p->in_head && p->in_body;
        break;
    case 0:
        break;
    default:
        return;
    }
    p->unclosed = p->open.n > 0 ? p->open.at[p->open.n - 1] : (Span){0};
    p->open.n = 0;
    p->said = false;
}

int parse_token(ParseValue *value, Span *span, void *scanner)
{
    Parse *p = tdsl_get_extra(scanner);
    bool insert = p->insert;
    ParseToken t = insert ? p->inserted : scan(p, scanner);
    p->insert = false;
    int last = p->last.token;
    if (insert) {
        /* the end of what was left out */
    } else if (t.token > 0 && lacks_semicolon(p, &t)) {
        give_back(p, t);
        t = semicolon(p);
    } else if (t.token == T_NAME && p->open.n == 0 && !p->in_head) {
        bool begins = last == 0 || last == ';' || last == '}' || last == '{';
        t = !begins ? t : p->in_body ? statement_word(p, scanner, t) : item_word(p, scanner, t);
    } else if (t.token == '}' && !p->in_body && !p->in_head) {
        (void)parse_say(p, E_SYNTAX, t.span, "this '}' closes nothing");
        p->said = false;
        t = scan(p, scanner);
    }
    note_place(p, &t);
    p->before = p->last;
    p->last = t;
    *value = t.value;
    *span = t.span;
    return t.token;
}
