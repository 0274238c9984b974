/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a token that cannot stand where it does, and of a character that starts none: what is missing, or how it is
 * written in TDSL. */
#include "front/parse.h"

#include <ctype.h>
#include <string.h>

#include "grammar/tdsl.tab.h"

/* ---- characters ---- */

static const struct {
    char c;
    const char *cure;
} characters[] = {
    {'@', "a product of matrices is written with its indices: C[i,j] = A[i,k] * B[k,j]"},
    {'#', "a comment begins with '//'"},
    {'?', "a choice is written select(c, x, y)"},
    {'\'', "a string stands in double quotes, \"ij,jk->ik\""},
    {'%', "there is no remainder; an extent may be a quotient, n/2"},
    {'&', "\"and\" is written &&"},
    {'|', "\"or\" is written ||"},
    {'\\', "a statement goes on to its ';', over any number of lines"},
    {'$', "names are ASCII letters, digits and '_'"},
};

static bool is_name_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* `np.exp(x)`, `A.T`: what stands after the point. */
static const char *cure_point(Parse *p, Span span)
{
    Str text = source_get(&p->ctx->sources, p->source)->text;
    size_t from = span.hi, to = from, before = span.lo;
    while (to < text.n && is_name_letter(text.at[to])) {
        to++;
    }
    while (before > 0 && is_name_letter(text.at[before - 1])) {
        before--;
    }
    Str after = {text.at + from, to - from};
    int n = (int)(span.lo - before < 40 ? span.lo - before : 40);
    if (p->last.token != T_NAME || after.n == 0) {
        return "positions and calls have no points";
    }
    if (str_eq_cstr(after, "T") || str_eq_cstr(after, "H") || str_eq_cstr(after, "mT")) {
        return str_format(&p->ctx->arena,
                          "a transpose is written with its indices: %.*s[j,i]%s", n,
                          text.at + before, str_eq_cstr(after, "H") ? ", and conj of it" : "");
    }
    if (str_eq_cstr(after, "shape") || str_eq_cstr(after, "size")) {
        return "the extent of a dim is written extent(n)";
    }
    if (to < text.n && text.at[to] == '(') {
        return str_format(&p->ctx->arena, "functions have no prefix: %.*s(...)",
                          (int)(after.n < 40 ? after.n : 40), after.at);
    }
    return "values have no members";
}

int parse_bad_character(Parse *p, char c, Span span)
{
    if ((unsigned char)c < 0x20 || c == 0x7f) {
        (void)parse_say(p, E_CHARACTER, span,
                        str_format(&p->ctx->arena, "control character 0x%02x", (unsigned)c));
        return T_TDSL_error;
    }
    const char *cure = c == '.' ? cure_point(p, span) : NULL;
    for (size_t k = 0; k < sizeof characters / sizeof characters[0]; k++) {
        cure = characters[k].c == c ? characters[k].cure : cure;
    }
    parse_help(parse_say(p, E_CHARACTER, span,
                         str_format(&p->ctx->arena, "'%c' is not used in TDSL", c)),
               cure);
    return T_TDSL_error;
}

int parse_power(Parse *p, const char *text, Span span)
{
    parse_help(
        parse_say(p, E_SYNTAX, span, str_format(&p->ctx->arena, "'%s' is no operator", text)),
        "a power is written pow(x, y)");
    return T_TDSL_error;
}

/* ---- tokens ---- */

static bool expects(const char *const *expected, int n, const char *name)
{
    for (int k = 0; k < n; k++) {
        if (strcmp(expected[k], name) == 0) {
            return true;
        }
    }
    return false;
}

static Span end_of(Span span)
{
    return (Span){span.source, span.hi, span.hi};
}

static bool begins_operand(int token)
{
    return token == T_NAME || token == T_INT || token == T_FLOAT || token == T_IMAGINARY ||
           token == T_BOOL || token == T_STRING;
}

/* Two operands side by side. */
static bool say_missing_sign(Parse *p, Span span, int token)
{
    int last = p->before.token;
    if (!parse_ends_operand(last) || (!begins_operand(token) && token != '(')) {
        return false;
    }
    size_t n;
    const char *text = parse_source(p, span, &n);
    const char *what = str_format(&p->ctx->arena,
                                  !p->in_body || p->open.n > (token == '(' ? 1u : 0u)
                                      ? "a ',' or an operator is missing before '%.*s'"
                                      : "an operator is missing before '%.*s'",
                                  (int)(n < 60 ? n : 60), text);
    Diagnostic *d = parse_say(p, E_SYNTAX, end_of(p->before.span), what);
    if (n == 2 && memcmp(text, "in", 2) == 0) {
        parse_help(
            d, "an index has its range as i < n, or that of the tensors in which it stands");
    } else if (last == T_INT || last == T_FLOAT || last == T_IMAGINARY) {
        parse_help(d, "a product is written with '*'");
        parse_fix(d, end_of(p->before.span), "*");
    }
    return true;
}

static bool say_bracket(Parse *p, Span span, int token)
{
    if (token == '[' && p->before.token == ']') {
        parse_help(parse_say(p, E_SYNTAX, span, "a second pair of brackets"),
                   "all indices of a tensor stand in one pair: A[i,j]");
        return true;
    }
    bool assigns = token == '=' || token == T_PLUS_SET || token == T_MINUS_SET;
    if (assigns && p->before.token == ')' && p->in_body && p->open.n == 0) {
        Str text = source_get(&p->ctx->sources, p->source)->text;
        size_t to = p->outermost.lo, from = to;
        while (from > 0 && is_name_letter(text.at[from - 1])) {
            from--;
        }
        parse_help(parse_say(p, E_SYNTAX, p->outermost,
                             "the indices of a tensor stand in '[' and ']'"),
                   str_format(&p->ctx->arena, "%.*s[i] = ...",
                              (int)(to - from < 60 ? to - from : 60), text.at + from));
        return true;
    }
    if ((token == ';' || token == '{' || token == '}' || token == 0) && p->unclosed.hi > 0) {
        size_t n;
        const char *open = parse_source(p, p->unclosed, &n);
        Diagnostic *d =
            parse_say(p, E_SYNTAX, end_of(p->before.span),
                      *open == '(' ? "a ')' is missing here" : "a ']' is missing here");
        if (d != NULL) {
            diag_mark(d, p->unclosed, "opened here");
        }
        parse_fix(d, end_of(p->before.span), *open == '(' ? ")" : "]");
        return true;
    }
    return false;
}

static bool say_sign(Parse *p, Span span, int token)
{
    const char *cure = NULL;
    size_t n;
    const char *text = parse_source(p, span, &n);
    if (token == ':' && text[n] == '=') { /* the source ends in a NUL */
        cure = "an assignment is written '='";
    } else if (token == ':' && p->open.n > 0 && p->in_body) {
        cure = "there are no slices: x[i + 2] with the range of i, [i < n]; a choice is "
               "written select(c, x, y)";
    } else if (token == ':' && p->in_body) {
        cure = "a value with an element type is written T: f32[i,j] = ...;";
    } else if (token == '=' && p->open.n > 0) {
        cure = "equality is written '=='";
    } else if (token == T_DIM || token == T_CONST || token == T_INCLUDE) {
        cure = p->in_body ? "dims, constants and includes stand outside of kernels" : NULL;
    } else if (token == T_NAME && p->before.token == T_ARROW) {
        cure = "results stand in parentheses, with their types: -> (R: f64[n])";
    } else if (token == T_ARROW && p->in_body) {
        cure = "'->' stands in the head of a kernel, and in strings: einsum(\"ij->ji\", A)";
    }
    if (cure != NULL) {
        parse_help(parse_say(p, E_SYNTAX, span,
                             str_format(&p->ctx->arena, "'%.*s' cannot stand here",
                                        (int)(n < 60 ? n : 60), text)),
                   cure);
    }
    return cure != NULL;
}

/* Of what a statement may begin with, and of what may follow a name there, calls are not what is missing. */
static int without_calls(const char *const *expected, int n, const char **kept)
{
    bool drop = expects(expected, n, "'spill'") || expects(expected, n, "'='");
    int m = 0;
    for (int k = 0; k < n; k++) {
        if (!drop || strcmp(expected[k], "'('") != 0) {
            kept[m++] = expected[k];
        }
    }
    return m;
}

void parse_unexpected(Parse *p, Span span, int token, const char *const *all, int n)
{
    const char **expected = ARENA_ARRAY(&p->ctx->arena, (size_t)n, const char *);
    n = without_calls(all, n, expected);
    /* `A: f64[n] B: f64[n]`: B was taken for an attribute. */
    if (token == ':' && p->in_head && p->before.token == T_NAME) {
        size_t length;
        const char *name = parse_source(p, p->before.span, &length);
        Span at = {p->source, p->before.span.lo, p->before.span.lo};
        parse_fix(parse_say(p, E_SYNTAX, at,
                            str_format(&p->ctx->arena, "a ',' is missing before '%.*s'",
                                       (int)(length < 60 ? length : 60), name)),
                  at, ", ");
        return;
    }
    if (say_bracket(p, span, token) || say_missing_sign(p, span, token) ||
        say_sign(p, span, token)) {
        return;
    }
    if (expects(expected, n, "';'") && token == 0) {
        parse_fix(parse_say(p, E_SYNTAX, end_of(p->before.span),
                            "a ';' is missing at the end of this"),
                  end_of(p->before.span), ";");
        return;
    }
    Text t = text_new(&p->ctx->arena);
    size_t length;
    const char *text = parse_source(p, span, &length);
    if (token == 0) {
        text_put(&t,
                 p->in_body ? "the file ends inside of a kernel" : "the file ends too early");
    } else {
        text_printf(&t, "'%.*s' cannot stand here", (int)(length < 60 ? length : 60), text);
    }
    bool operand = expects(expected, n, "number") && expects(expected, n, "name");
    for (int k = 0; !operand && k < n && n <= 5; k++) {
        text_put(&t, k == 0 ? ": " : k + 1 == n ? " or " : ", ");
        text_put(&t, strcmp(expected[k], "name") == 0     ? "a name"
                     : strcmp(expected[k], "string") == 0 ? "a string"
                                                          : expected[k]);
    }
    text_put(&t, operand ? ": a value is expected" : n > 0 && n <= 5 ? " is expected" : "");
    (void)parse_say(p, E_SYNTAX, span, t.at);
}
