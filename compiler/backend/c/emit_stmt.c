/* SPDX-License-Identifier: Apache-2.0 */
/* Loops, buffers and scalar tile statements. Buffers of the workspace are laid out as a stack
 * that follows the blocks: each starts where the one before it in the same scope ends, so what
 * scopes beside each other use is shared. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/c/emit.h"

#define COLUMNS 100

/* ---- lines ---- */

/* Where to break a line of more than `room` characters: after a ';' or ',', before "&&" or
 * "||", else at the last blank before, else at the first one after. */
static size_t break_at(const char *s, size_t n, size_t room)
{
    for (size_t k = room; k > room / 2; k--) {
        bool logic = strncmp(s + k + 1, "&& ", 3) == 0 || strncmp(s + k + 1, "|| ", 3) == 0;
        if (s[k] == ' ' && (s[k - 1] == ';' || s[k - 1] == ',' || logic)) {
            return k;
        }
    }
    for (size_t k = room; k > 0; k--) {
        if (s[k] == ' ') {
            return k;
        }
    }
    for (size_t k = room; k < n; k++) {
        if (s[k] == ' ') {
            return k;
        }
    }
    return n;
}

void line_put(Text *out, const char *line)
{
    size_t n = strlen(line);
    size_t used = (size_t)out->indent * (size_t)out->indent_width;
    size_t room = used + 40 < COLUMNS ? COLUMNS - used : 40;
    bool first = true;
    while (n > room && line[0] != '#' && line[0] != '/') {
        size_t at = break_at(line, n, room - (first ? 0 : 4));
        if (at >= n) {
            break;
        }
        text_put(out, first ? "" : "    ");
        text_put_n(out, line, at);
        text_put(out, "\n");
        line += at + 1;
        n -= at + 1;
        first = false;
    }
    text_put(out, first ? "" : "    ");
    text_put_n(out, line, n);
    text_put(out, "\n");
}

void directive_put(Text *out, const char *line)
{
    int indent = out->indent;
    out->indent = 0;
    text_put(out, line);
    text_put(out, "\n");
    out->indent = indent;
}

void line_printf(Emitter *e, const char *format, ...)
{
    char small[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    CHECK(n >= 0);
    char *line = small;
    if ((size_t)n >= sizeof small) {
        line = arena_alloc(e->arena, (size_t)n + 1);
        (void)vsnprintf(line, (size_t)n + 1, format, again);
    }
    va_end(again);
    line_put(e->out, line);
}

static void open_block(Emitter *e)
{
    e->out->indent++;
}

static void close_block(Emitter *e)
{
    e->out->indent--;
    line_put(e->out, "}");
}

/* ---- buffers ---- */

static bool in_workspace(const Buffer *b)
{
    return b->space == SPACE_WORKSPACE || b->space == SPACE_TILE;
}

bool needs_workspace(const Kernel *k, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, body, n); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC && in_workspace(&k->bufs.at[s->buf])) {
            return true;
        }
    }
    return false;
}

bool bytes_fixed(const Buffer *b, int64_t *bytes)
{
    int64_t size = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym >= 0) {
            return false;
        }
        size = sat_mul(size, b->extent[d].n);
    }
    CHECK(size <= SIZE_LIMIT);
    *bytes = (size + 63) / 64 * 64;
    return true;
}

const char *bytes_text(Emitter *e, const Buffer *b)
{
    int64_t size = dtype_bytes(b->dtype);
    Text t;
    text_init(&t, e->arena);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (b->extent[d].sym < 0) {
            size = sat_mul(size, b->extent[d].n);
        } else {
            text_printf(&t, " * %s", e->dim[b->extent[d].sym]);
        }
    }
    return str_format(e->arena, "%s(%lld%s)", help_fixed(e->help, "tdsl_pad"), (long long)size,
                      t.at);
}

/* The address where the buffer starts. */
static const char *place_text(Emitter *e, Place ws)
{
    return ws.offset == 0 ? ws.base
                          : str_format(e->arena, "%s + %lld", ws.base, (long long)ws.offset);
}

/* Declares the buffer; returns where the next one goes. `more`: there is a next one. */
static Place alloc_emit(Emitter *e, BufRef buf, Place ws, bool more)
{
    const Buffer *b = &e->k->bufs.at[buf];
    const char *name = e->buf[buf];
    if (b->space == SPACE_ACC) {
        if (b->rank > 0) {
            acc_declare(e, buf);
        } else {
            line_printf(e, "%s %s;", c_compute(b->dtype), name);
        }
        return ws;
    }
    if (e->in_tile) {
        int64_t size = 0;
        CHECK(bytes_fixed(b, &size));
        line_printf(e, "%s %s[%lld];", c_type(b->dtype), name,
                    (long long)(size / dtype_bytes(b->dtype)));
        return ws;
    }
    line_printf(e, "%s *TDSL_RESTRICT const %s = (%s *)(void *)(%s);", c_type(b->dtype), name,
                c_type(b->dtype), place_text(e, ws));
    int64_t bytes = 0;
    if (bytes_fixed(b, &bytes)) {
        ws.offset += bytes;
    } else if (more) {
        const char *base = names_take(&e->names, "ws");
        line_printf(e, "unsigned char *const %s = %s + %s;", base, place_text(e, ws),
                    bytes_text(e, b));
        ws = (Place){base, 0};
    }
    return ws;
}

/* ---- loops ---- */

static const char *step_text(const Emitter *e, const char *var, int64_t step)
{
    return step == 1 ? str_format(e->arena, "++%s", var)
                     : str_format(e->arena, "%s += %lld", var, (long long)step);
}

static void loop_open(Emitter *e, VarRef var, Range r, int64_t step, ForPart part)
{
    const char *v = e->var[var];
    const char *lo = range_lo(e, r);
    const char *hi = range_hi(e, r);
    switch (part) {
    case FOR_ALL:
        line_printf(e, "for (int64_t %s = %s; %s < %s; %s) {", v, lo, v, hi,
                    step_text(e, v, step));
        break;
    case FOR_FULL:
        line_printf(e, "for (int64_t %s = %s; %s + %lld <= %s; %s) {", v, lo, v,
                    (long long)step, hi, step_text(e, v, step));
        break;
    case FOR_REST: { /* at most once: where no full tile fits any more */
        bool zero = strcmp(lo, "0") == 0;
        const char *first =
            zero ? str_format(e->arena, "%s / %lld", hi, (long long)step)
                 : str_format(e->arena, "%s + (%s - %s) / %lld", lo, hi,
                              affine_text(e, r.start, BIND_ATOM), (long long)step);
        line_printf(e, "for (int64_t %s = %s * %lld; %s < %s; %s) {", v, first, (long long)step,
                    v, hi, step_text(e, v, step));
        break;
    }
    }
    open_block(e);
}

/* Which value the next statements compute; said once. Not its line: a token, AST or checked
 * dump is laid out in another way than its program, and the C of all dumps is the same. */
static void name_comment(Emitter *e, const Stmt *s)
{
    if (s->name == NULL || s->name == e->last_name) {
        return;
    }
    Text t;
    text_init(&t, e->arena);
    text_comment(&t, (Str){s->name->text, s->name->n});
    line_printf(e, "/* %s */", t.at);
    e->last_name = s->name;
}

void tile_emit(Emitter *e, const Stmt *s)
{
    name_comment(e, s);
    if (e->vector_bytes > 0 && is_unrolled(s)) {
        unrolled_emit(e, s);
        return;
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        loop_open(e, s->index[i].var, s->index[i].range, 1, FOR_ALL);
    }
    const Buffer *b = &e->k->bufs.at[s->dst];
    const char *dst = element_text(e, s->dst, s->at);
    CText value = expr_text(e, s->value);
    bool plain = b->dtype == DTYPE_F32 || b->dtype == DTYPE_F64;
    if (s->fold == OP_COPY) {
        line_printf(e, "%s = %s;", dst,
                    b->space == SPACE_ACC ? value.at : stored_text(e, b->dtype, value));
    } else if (plain && (s->fold == OP_SUM || s->fold == OP_PROD)) {
        line_printf(e, "%s %s= %s;", dst, s->fold == OP_SUM ? "+" : "*", value.at);
    } else {
        const Expr load = {.kind = EXPR_LOAD, .dtype = b->dtype, .buf = s->dst, .at = s->at};
        CText a = expr_text(e, &load);
        CText folded = fold_text(e, s->fold, b->dtype, a, value);
        line_printf(e, "%s = %s;", dst,
                    b->space == SPACE_ACC ? folded.at : stored_text(e, b->dtype, folded));
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        close_block(e);
    }
}

void block_emit(Emitter *e, Stmt *const *body, uint32_t n, Place ws)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        switch (s->kind) {
        case STMT_ALLOC:
            if (!e->in_tile && is_register_alloc(e->k, s)) {
                register_tile_emit(e, body + i, n - i);
                return;
            }
            ws = alloc_emit(e, s->buf, ws, needs_workspace(e->k, body + i + 1, n - i - 1));
            break;
        case STMT_FOR:
            loop_open(e, s->var, s->range, s->step, s->part);
            block_emit(e, s->body, s->n_body, ws);
            close_block(e);
            break;
        case STMT_BLOCK:
            line_put(e->out, "{");
            open_block(e);
            block_emit(e, s->body, s->n_body, ws);
            close_block(e);
            break;
        case STMT_TILE:
            tile_emit(e, s);
            break;
        }
    }
}
