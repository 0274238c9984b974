/* SPDX-License-Identifier: Apache-2.0 */
/* See format.h. The text is scanned into pieces: tokens, and the comments between them. Pieces are put into lines: one for
 * each item and statement, one for a comment that stands alone. A comment behind a line stays there; such comments of
 * lines that follow each other stand in one column. One empty line at most is kept between lines. */
#include "front/format.h"

#include <string.h>

#include "front/format_parts.h"
#include "front/parse.h"

#include "grammar/tdsl.tab.h"
#define YYSTYPE union ParseValue
#define YYLTYPE Span
#include "grammar/tdsl.lex.h"

typedef struct Line {
    uint32_t from, to; /* pieces */
    Str behind;        /* a comment after it; n is 0 where there is none */
    bool alone;        /* a comment */
    bool gap;          /* an empty line stands before it in the source */
    bool glued;        /* no line break stands before it in the source */
} Line;

typedef struct Format {
    Ctx *ctx;
    Str text;
    Pieces pieces;
    VEC(Line) lines;
    bool open; /* the last line goes on */
} Format;

/* ---- pieces to lines ---- */

static void add_piece(Format *f, PieceKind kind, Str text, bool own_line)
{
    vec_push(&f->ctx->arena, &f->pieces.at,
             ((Piece){.kind = kind, .text = text, .own_line = own_line}));
    f->lines.at[f->lines.n - 1].to = f->pieces.at.n;
}

static void begin_line(Format *f, uint32_t breaks, bool alone)
{
    uint32_t n = f->pieces.at.n;
    Line line = {.from = n, .to = n, .alone = alone, .gap = breaks > 1, .glued = breaks == 0};
    vec_push(&f->ctx->arena, &f->lines, line);
}

static Str without_blanks_at_end(Str s)
{
    while (s.n > 0 && strchr(" \t\r\f\v", s.at[s.n - 1]) != NULL) {
        s.n--;
    }
    return s;
}

/* A comment after `breaks` line breaks, and with a line break in it or behind it? */
static void add_comment(Format *f, Str text, uint32_t breaks, bool ends_line)
{
    text = without_blanks_at_end(text);
    bool whole = ends_line || memchr(text.at, '\n', text.n) != NULL;
    if (f->open) {
        add_piece(f, whole ? PIECE_LINE : PIECE_COMMENT, text, breaks > 0 && whole);
        return;
    }
    Line *last = f->lines.n > 0 ? &f->lines.at[f->lines.n - 1] : NULL;
    if (breaks == 0 && ends_line && last != NULL && !last->alone && last->behind.n == 0) {
        last->behind = text;
        return;
    }
    if (whole) {
        begin_line(f, breaks, true);
        add_piece(f, PIECE_LINE, text, true);
    } else { /* before a token of its line */
        begin_line(f, breaks, false);
        add_piece(f, PIECE_COMMENT, text, false);
        f->open = true;
    }
}

/* Comments between two tokens. Returns how many line breaks stand behind the last one. */
static uint32_t read_between(Format *f, uint32_t lo, uint32_t hi)
{
    uint32_t breaks = 0, at = lo;
    const char *text = f->text.at;
    while (at < hi) {
        if (text[at] == '\n') {
            breaks++;
        }
        if (text[at] != '/' || at + 1 >= hi) {
            at++;
            continue;
        }
        uint32_t end = at + 2;
        if (text[at + 1] == '/') {
            while (end < hi && text[end] != '\n') {
                end++;
            }
        } else {
            while (end + 1 < hi && (text[end] != '*' || text[end + 1] != '/')) {
                end++;
            }
            end += 2;
        }
        uint32_t next = end;
        while (next < hi && strchr(" \t\r\f\v", text[next]) != NULL) {
            next++;
        }
        bool ends_line = next == f->text.n || text[next] == '\n';
        add_comment(f, (Str){text + at, end - at}, breaks, ends_line);
        breaks = 0;
        at = end;
    }
    return breaks;
}

static PieceKind kind_of(int token)
{
    switch (token) {
    case T_INT:
    case T_FLOAT:
    case T_IMAGINARY:
    case T_BOOL:
        return PIECE_NUMBER;
    case T_STRING:
        return PIECE_STRING;
    case T_NAME:
    case T_INCLUDE:
    case T_DIM:
    case T_CONST:
    case T_KERNEL:
    case T_INOUT:
    case T_SPILL:
        return PIECE_NAME;
    default:
        return PIECE_SIGN;
    }
}

static void read_pieces(Format *f, Parse *p)
{
    void *scanner = NULL;
    parse_skip_mark(p);
    CHECK(tdsl_lex_init_extra(p, &scanner) == 0);
    CHECK(tdsl__scan_bytes(f->text.at + p->at, (int)(f->text.n - p->at), scanner) != NULL);
    ParseValue value = {0};
    Span span = {0};
    uint32_t end = p->at;
    for (int token; (token = tdsl_lex(&value, &span, scanner)) > 0; end = span.hi) {
        uint32_t breaks = read_between(f, end, span.lo);
        if (!f->open) {
            begin_line(f, breaks, false);
        }
        add_piece(f, kind_of(token), (Str){f->text.at + span.lo, span.hi - span.lo}, false);
        f->open = token != ';' && token != '{' && token != '}';
    }
    (void)read_between(f, end, (uint32_t)f->text.n);
    tdsl_lex_destroy(scanner);
}

/* ---- lines to text ---- */

/* The first token of a line, or null: it is a comment. */
static const Piece *first_token(const Format *f, const Line *line)
{
    for (uint32_t k = line->from; k < line->to && !line->alone; k++) {
        const Piece *x = &f->pieces.at.at[k];
        if (x->kind != PIECE_COMMENT && x->kind != PIECE_LINE) {
            return x;
        }
    }
    return NULL;
}

static bool begins(const Format *f, const Line *line, const char *text)
{
    const Piece *first = first_token(f, line);
    return first != NULL && piece_is(first, text);
}

static bool ends_in(const Format *f, const Line *line, const char *text)
{
    return !line->alone && line->to > line->from &&
           piece_is(&f->pieces.at.at[line->to - 1], text);
}

/* A kernel of one statement at most that is written on one line and has room there: how many lines that are, else 0. */
static uint32_t one_line_kernel(const Format *f, uint32_t at)
{
    const Line *head = &f->lines.at[at];
    if (!begins(f, head, "kernel") || !ends_in(f, head, "{") || head->behind.n > 0) {
        return 0;
    }
    uint32_t n = at + 1 < f->lines.n && begins(f, head + 1, "}") ? 2 : 3;
    if (at + n > f->lines.n || !begins(f, head + n - 1, "}")) {
        return 0;
    }
    uint64_t width = n == 2 ? 0 : 1;
    for (uint32_t k = 0; k < n; k++) {
        const Line *line = head + k;
        if (line->alone || (k > 0 && !line->glued) || (k + 1 < n && line->behind.n > 0)) {
            return 0;
        }
        width += format_width(&f->pieces, line->from, line->to) + (k > 1 ? 1u : 0);
    }
    return width <= FORMAT_WIDTH ? n : 0;
}

typedef struct Behind {
    size_t at; /* where it goes in the text */
    uint32_t column;
    Str comment;
} Behind;

static uint32_t last_column(const Text *out)
{
    uint32_t column = 0;
    for (size_t k = out->n; k > 0 && out->at[k - 1] != '\n'; k--) {
        column += ((unsigned char)out->at[k - 1] & 0xc0) != 0x80;
    }
    return column;
}

static void put_comment(Text *out, Str comment)
{
    for (size_t k = 0; k < comment.n;) {
        const char *newline = memchr(comment.at + k, '\n', comment.n - k);
        size_t end = newline == NULL ? comment.n : (size_t)(newline - comment.at);
        Str line = without_blanks_at_end((Str){comment.at + k, end - k});
        text_put_n(out, line.at, line.n);
        if (newline != NULL) {
            text_char(out, '\n');
        }
        k = end + 1;
    }
}

/* The lines of one run with comments behind them, these in one column. */
static void put_run(Text *out, const Text *run, const Behind *behind, uint32_t n)
{
    uint32_t column = 0;
    size_t from = 0;
    for (uint32_t k = 0; k < n; k++) {
        column = behind[k].column > column ? behind[k].column : column;
    }
    for (uint32_t k = 0; k < n; k++) {
        text_put_n(out, run->at + from, behind[k].at - from);
        from = behind[k].at;
        for (uint32_t c = behind[k].column; c < column + 1; c++) {
            text_char(out, ' ');
        }
        put_comment(out, behind[k].comment);
    }
    text_put_n(out, run->at + from, run->n - from);
}

typedef struct Printer {
    Format *f;
    Text *out;
    Text run; /* lines that are not in `out` yet, all with comments behind them */
    VEC(Behind) behind;
} Printer;

static void flush_run(Printer *r)
{
    put_run(r->out, &r->run, r->behind.at, r->behind.n);
    text_clear(&r->run);
    r->behind.n = 0;
}

static void end_line(Printer *r, Str comment)
{
    if (comment.n > 0) {
        vec_push(&r->f->ctx->arena, &r->behind,
                 ((Behind){r->run.n, last_column(&r->run), comment}));
        text_char(&r->run, '\n');
        return;
    }
    text_char(&r->run, '\n');
    flush_run(r);
}

/* Is there an empty line before line k, where the last kernel was written on one line, and this one is? */
static bool empty_line_before(const Format *f, uint32_t k, bool last_short, bool is_short)
{
    const Line *line = &f->lines.at[k];
    if (k == 0 || begins(f, line, "}") || ends_in(f, line - 1, "{")) {
        return false;
    }
    bool after = begins(f, line - 1, "}"), comment = (line - 1)->alone;
    return line->gap || (after && !last_short) ||
           (begins(f, line, "kernel") && !comment && !(after && is_short));
}

static void put_lines(Printer *r)
{
    Format *f = r->f;
    uint32_t indent = 0;
    bool last_short = false;
    for (uint32_t k = 0; k < f->lines.n; k++) {
        const Line *line = &f->lines.at[k];
        uint32_t n = one_line_kernel(f, k);
        if (empty_line_before(f, k, last_short, n > 0)) {
            flush_run(r);
            text_char(r->out, '\n');
        }
        if (begins(f, line, "kernel")) {
            last_short = n > 0;
        }
        if (begins(f, line, "}")) {
            indent = 0;
        }
        if (line->alone) {
            flush_run(r);
        }
        for (uint32_t c = 0; c < indent; c++) {
            text_char(&r->run, ' ');
        }
        if (line->alone) {
            put_comment(&r->run, f->pieces.at.at[line->from].text);
        } else {
            format_line(&f->pieces, line->from, line->to, indent, &r->run);
        }
        for (uint32_t i = 1; i < n; i++) {
            line = &f->lines.at[++k];
            text_put(&r->run, n == 2 ? "" : " ");
            format_line(&f->pieces, line->from, line->to, 0, &r->run);
        }
        if (n == 0 && ends_in(f, line, "{")) {
            indent = 4;
        }
        end_line(r, line->behind);
    }
    flush_run(r);
}

bool source_format(Ctx *ctx, uint32_t source, Text *out)
{
    Ast ast;
    uint32_t errors = ctx->diags.n_errors;
    ast_init(&ast, &ctx->arena);
    (void)ast_parse(ctx, &ast, source);
    if (ctx->diags.n_errors > errors || ast.damaged) {
        return false;
    }
    Format f = {.ctx = ctx, .text = source_get(&ctx->sources, source)->text};
    Parse p = {.ctx = ctx, .ast = &ast, .source = source};
    read_pieces(&f, &p);
    format_places(&f.pieces, &ctx->arena);
    Printer r = {.f = &f, .out = out};
    text_init(&r.run, &ctx->arena);
    put_lines(&r);
    return true;
}
