/* SPDX-License-Identifier: Apache-2.0 */
/* See meaning.h. */
#include "driver/lsp/meaning.h"

#include "driver/lsp/lines.h"
#include "driver/lsp/names.h"
#include "driver/lsp/tokens.h"
#include "front/check.h"
#include "front/format.h"

#define MESSAGES 100

typedef struct Maker {
    Ctx *ctx;
    Arena *arena;
    uint32_t source;
    const char *uri;
    LspLines *lines; /* [sources]; made on first need */
    LspNames names;
} Maker;

static LspLines *lines_of(Maker *m, uint32_t source)
{
    LspLines *l = &m->lines[source - 1];
    if (l->start == NULL) {
        lsp_lines_init(l, source_get(&m->ctx->sources, source)->text);
    }
    return l;
}

static json_t *range_of(Maker *m, Span span)
{
    return span.source == 0 ? json_pack("{s:{s:i,s:i},s:{s:i,s:i}}", "start", "line", 0,
                                        "character", 0, "end", "line", 0, "character", 0)
                            : lsp_range(lines_of(m, span.source), span.lo, span.hi);
}

static const char *uri_of(Maker *m, uint32_t source)
{
    const char *name = source_get(&m->ctx->sources, source)->name;
    return source == m->source ? m->uri : uri_absolute(m->arena, name);
}

/* Libraries are in no file. */
static bool is_file(Maker *m, uint32_t source)
{
    return source != 0 && source_get(&m->ctx->sources, source)->name[0] != '<';
}

/* ---- messages ---- */

/* Where the main text brings the place in. */
static Span place_here(Maker *m, Span span)
{
    while (span.source != 0 && span.source != m->source) {
        span = source_get(&m->ctx->sources, span.source)->included_at;
    }
    return span;
}

static void add_related(Maker *m, json_t *list, Span span, const char *message)
{
    if (is_file(m, span.source)) {
        json_array_append_new(list,
                              json_pack("{s:{s:o, s:o}, s:o}", "location", "uri",
                                        uri_string(uri_of(m, span.source)), "range",
                                        range_of(m, span), "message", uri_string(message)));
    }
}

static json_t *fixes_of(Maker *m, const Diagnostic *d)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < d->fixes.n; k++) {
        const DiagFix *fix = &d->fixes.at[k];
        if (fix->span.source == m->source) {
            json_array_append_new(list, json_pack("{s:o, s:o}", "range", range_of(m, fix->span),
                                                  "newText", uri_string(fix->text)));
        }
    }
    return list;
}

static json_t *diagnostic(Maker *m, const Diagnostic *d)
{
    bool warning = d->severity == SEVERITY_WARNING && !m->ctx->diags.warnings_are_errors;
    json_t *related = json_array();
    Span here = place_here(m, d->span);
    if (here.source != d->span.source) {
        add_related(m, related, d->span, d->message);
    }
    for (uint32_t k = 0; k < d->marks.n; k++) {
        const DiagMark *mark = &d->marks.at[k];
        add_related(m, related, mark->span, mark->text[0] == '\0' ? "this" : mark->text);
    }
    json_t *made =
        json_pack("{s:o, s:i, s:s, s:s, s:o, s:o, s:{s:o}}", "range", range_of(m, here),
                  "severity", warning ? 2 : 1, "code", diag_code_text(d->code), "source",
                  "tdslc", "message", uri_string(diag_text(m->arena, d)), "relatedInformation",
                  related, "data", "fixes", fixes_of(m, d));
    if (d->code == W_UNUSED) {
        json_object_set_new(made, "tags", json_pack("[i]", 1)); /* shown faintly */
    }
    return made;
}

static json_t *diagnostics(Maker *m)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < m->ctx->diags.list.n; k++) {
        json_array_append_new(list, diagnostic(m, m->ctx->diags.list.at[k]));
    }
    return list;
}

/* ---- names ---- */

static void put_number(Text *out, uint32_t n, char after)
{
    text_i64(out, n);
    text_char(out, after);
}

/* A field of a line: no tab and no line break is in it. */
static void put_field(Text *out, const char *text)
{
    for (const char *c = text == NULL ? "" : text; *c != '\0'; c++) {
        text_char(out, *c == '\t' || *c == '\n' || *c == LSP_SECTION ? ' ' : *c);
    }
    text_char(out, '\t');
}

static void put_symbol(Maker *m, Text *out, const LspSymbol *s)
{
    bool here = s->at.source == m->source;
    put_number(out, s->kind, '\t');
    put_number(out, s->kernel == LSP_NO_KERNEL ? 0 : s->kernel + 1, '\t');
    put_number(out, here ? s->at.lo : 0, '\t');
    put_number(out, here ? s->at.hi : 0, '\t');
    put_number(out, s->statement.lo, '\t');
    put_number(out, s->statement.hi, '\t');
    put_field(out, s->name->text);
    put_field(out, s->detail);
    put_field(out, s->about);
    if (!here && is_file(m, s->at.source)) {
        LspPlace from = lsp_place(lines_of(m, s->at.source), s->at.lo);
        LspPlace to = lsp_place(lines_of(m, s->at.source), s->at.hi);
        put_field(out, uri_of(m, s->at.source));
        text_printf(out, "%u %u %u %u", from.line, from.unit, to.line, to.unit);
    }
    text_char(out, '\n');
}

static void put_names(Maker *m, Text *out)
{
    for (uint32_t k = 0; k < m->names.symbols.n; k++) {
        put_symbol(m, out, &m->names.symbols.at[k]);
    }
    text_char(out, LSP_SECTION);
    for (uint32_t k = 0; k < m->names.uses.n; k++) {
        const LspUse *u = &m->names.uses.at[k];
        put_number(out, u->at.lo, ' ');
        put_number(out, u->at.hi, ' ');
        put_number(out, u->symbol, ' ');
        put_number(out, u->writes, ' ');
    }
    text_char(out, LSP_SECTION);
    for (uint32_t k = 0; k < m->names.kernels.n; k++) {
        const LspKernel *x = &m->names.kernels.at[k];
        bool here = x->span.source == m->source;
        put_field(out, x->name->text);
        put_number(out, here ? x->span.lo : 0, '\t');
        put_number(out, here ? x->span.hi : 0, '\n');
    }
    text_char(out, LSP_SECTION);
}

/* ---- all of it ---- */

bool lsp_read(Ctx *ctx, Arena *arena, const LspText *t, Input *in)
{
    *in = (Input){.ctx = ctx,
                  .arena = arena,
                  .options = t->options,
                  .edited = t->edited,
                  .editor = t->editor};
    return input_text(in, t->path, t->text);
}

json_t *lsp_meaning(Ctx *ctx, Arena *arena, const LspText *t, Text *more)
{
    Input in;
    ctx->diags.limit = MESSAGES;
    (void)lsp_read(ctx, arena, t, &in);
    Maker m = {.ctx = ctx, .arena = arena, .source = in.source, .uri = t->uri};
    m.lines = ARENA_ARRAY(arena, ctx->sources.list.n + 1, LspLines);
    if (in.program != NULL) {
        lsp_names(ctx, in.program, &m.names);
    }
    json_t *said = diagnostics(&m); /* before the text is scanned again */
    put_names(&m, more);
    if (in.program != NULL) {
        LspNames known = {0};
        LspKind kind = LSP_WORD;
        const char *name = NULL;
        for (uint32_t k = 0; (name = t->name(t->whole, k, &kind)) != NULL; k++) {
            LspSymbol s = {.kind = kind, .name = sym_cstr(&ctx->syms, name)};
            vec_push(arena, &known.symbols, s);
        }
        lsp_tokens(ctx, in.source, &m.names, &known, more);
    }
    for (uint32_t k = 0; k < ctx->sources.list.n; k++) {
        lsp_lines_free(&m.lines[k]);
    }
    return json_pack("{s:o, s:b, s:b}", "diagnostics", said, "damaged",
                     in.program != NULL && in.program->ast.damaged, "includes",
                     m.names.includes);
}

json_t *lsp_formatted(Ctx *ctx, Arena *arena, const LspText *t, Text *more)
{
    (void)arena;
    uint32_t source = source_add(&ctx->sources, t->path, t->text, (Span){0});
    return json_boolean(source_format(ctx, source, more));
}
