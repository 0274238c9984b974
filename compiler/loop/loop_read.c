/* SPDX-License-Identifier: Apache-2.0 */
/* The text of kernels back to kernels: what loop_dump.c prints, and what a person writes in the
 * same grammar. Only what is needed to make the structure is checked here (names, ranks,
 * operand types); whether it means anything is loop_verify's business, which has the last word.
 */
#include "loop/loop_read.h"

#include <string.h>

#include "loop/loop_text.h"
#include "loop/loop_verify.h"
#include "loop/term.h"

typedef struct StmtList {
    VEC(Stmt *) list;
} StmtList;

/* ---- statements ---- */

static bool read_limit(LoopReader *r, Cursor *c, Dim *out)
{
    const Term *t = cursor_peek(c);
    if (t == NULL) {
        return dump_refuse(r->ctx, c->end, "expected an extent before the end of the line");
    }
    c->at++;
    return read_dim(&r->in, t, out);
}

/* start..limit, start:span or start:span<limit */
static bool read_range(LoopReader *r, Cursor *c, Range *out)
{
    *out = (Range){.clipped = true};
    if (!reader_affine(r, c, &out->start)) {
        return false;
    }
    if (cursor_take(c, TERM_PUNCT, "..")) {
        return read_limit(r, c, &out->limit);
    }
    const Term *span = NULL;
    if (cursor_expect(c, TERM_PUNCT, ":", "'..' or ':'") == NULL ||
        (span = cursor_expect(c, TERM_INT, NULL, "a span")) == NULL) {
        return false;
    }
    if (span->value < 1) {
        return dump_refuse(r->ctx, span->span, "a span is at least 1");
    }
    out->span = span->value;
    out->clipped = cursor_take(c, TERM_PUNCT, "<");
    out->limit = dim_fixed(0);
    return !out->clipped || read_limit(r, c, &out->limit);
}

/* `within LO..HI`, either of which may lack, or nothing. */
static bool read_window(LoopReader *r, Cursor *c, const Window **out)
{
    if (!cursor_take(c, TERM_NAME, "within")) {
        return true;
    }
    Window *w = ARENA_NEW(r->arena, Window);
    w->has_lo = !cursor_is(c, TERM_PUNCT, "..");
    if ((w->has_lo && !reader_affine(r, c, &w->lo)) ||
        cursor_expect(c, TERM_PUNCT, "..", "'..'") == NULL) {
        return false;
    }
    const Term *next = cursor_peek(c);
    w->has_hi =
        next != NULL && !(next->kind == TERM_NAME && strcmp(next->text->text, "at") == 0);
    *out = w;
    return !w->has_hi || reader_affine(r, c, &w->hi);
}

static bool read_index(LoopReader *r, Term *seq, TileIndex *out)
{
    Cursor c = cursor_seq(r->ctx, seq);
    const Term *t = cursor_expect(&c, TERM_NAME, NULL, "the name of an index");
    *out = (TileIndex){.mode = MODE_LOOP};
    if (t == NULL || cursor_expect(&c, TERM_NAME, "in", "'in'") == NULL ||
        !read_range(r, &c, &out->range) || !reader_bind_var(r, t, &out->var)) {
        return false;
    }
    if (cursor_take(&c, TERM_NAME, "unroll")) {
        out->mode = MODE_UNROLL;
    } else if (cursor_take(&c, TERM_NAME, "vector")) {
        out->mode = MODE_VECTOR;
    } else if (cursor_take(&c, TERM_NAME, "lanes")) {
        out->mode = MODE_LANES;
    }
    return read_window(r, &c, &out->window) && cursor_expect_end(&c);
}

static bool read_fold(LoopReader *r, Cursor *c, Op *fold)
{
    *fold = OP_COPY;
    if (cursor_take(c, TERM_PUNCT, "+=")) {
        *fold = OP_SUM;
        return true;
    }
    const Term *t = cursor_peek(c);
    if (t != NULL && t->kind == TERM_NAME) {
        if (!op_from_name((Str){t->text->text, t->text->n}, fold) ||
            op_info(*fold)->kind != OPKIND_REDUCE || *fold == OP_SUM) {
            return reader_refuse_name(r, t->span, "there is no fold", t->text);
        }
        c->at++;
    }
    return cursor_expect(c, TERM_PUNCT, "=", "'=' or '+='") != NULL;
}

/* Statements' indices by name. */
typedef struct Indices {
    LoopReader *r;
    const Stmt *s;
} Indices;

static int64_t index_named(void *user, const Term *name)
{
    const Indices *x = user;
    VarRef v = 0;
    for (uint32_t i = 0; map_get(&x->r->var_of, name->text->id, &v) && i < x->s->n_index; i++) {
        if (x->s->index[i].var == v) {
            return i;
        }
    }
    return -1;
}

/* After the keyword: [indices] @dst[at] = value CLAUSES SCHEDULE as NAME at PLACE */
static bool read_tile(LoopReader *r, Cursor *c, const Term *keyword, Stmt *s)
{
    const Term *list = cursor_expect(c, TERM_LIST, NULL, "the indices in brackets");
    if (list == NULL) {
        return false;
    }
    TileIndex *index = ARENA_ARRAY(r->arena, list->n, TileIndex);
    for (uint32_t i = 0; i < list->n; i++) {
        if (!read_index(r, list->child[i], &index[i])) {
            return false;
        }
    }
    s->kind = STMT_TILE;
    s->n_index = list->n;
    s->index = index;
    const Term *dst = cursor_expect(c, TERM_INDEX, NULL, "an access such as @T[i,j]");
    if (dst == NULL || !reader_access(r, dst, &s->dst, &s->at) || !read_fold(r, c, &s->fold)) {
        return false;
    }
    s->value = reader_value(r, c, r->k->bufs.at[s->dst].dtype);
    Indices indices = {r, s};
    if (s->value == NULL || !clauses_read(r, c, s, NULL) ||
        !schedule_read(c, r->arena, index_named, &indices, &s->schedule)) {
        return false;
    }
    if (cursor_take(c, TERM_NAME, "as") && (s->name = cursor_name(c, "a name")) == NULL) {
        return false;
    }
    const char *kind = tile_kind_name(tile_kind(s));
    if (strcmp(kind, keyword->text->text) != 0) {
        return dump_refuse(r->ctx, keyword->span, "this statement is a '%s'", kind);
    }
    return reader_end(r, c, &s->span);
}

static bool read_alloc(LoopReader *r, Cursor *c, Stmt *s)
{
    const Term *name = NULL;
    Buffer b;
    s->kind = STMT_ALLOC;
    if (!reader_declaration(r, c, &name, &b) || !reader_space(r, c, &b.space) ||
        !clauses_read(r, c, s, &b) || !reader_prefetch(r, c, &s->prefetch)) {
        return false;
    }
    if (!reader_end(r, c, &s->span)) {
        return false;
    }
    b.span = s->span;
    return reader_buffer(r, name->span, &b, &s->buf);
}

static bool read_block(LoopReader *r, DumpLine *const *line, uint32_t n, StmtList *out);

/* After the head: AT { ... } */
static bool read_body(LoopReader *r, Cursor *c, const DumpLine *line, Stmt *s)
{
    StmtList body = {0};
    if (!reader_end(r, c, &s->span)) {
        return false;
    }
    if (!line->has_block) {
        return dump_refuse(r->ctx, line->span, "loops and blocks have a body in braces");
    }
    if (!read_block(r, line->body, line->n_body, &body)) {
        return false;
    }
    s->body = body.list.at;
    s->n_body = body.list.n;
    return true;
}

static bool read_for(LoopReader *r, Cursor *c, const DumpLine *line, Stmt *s)
{
    const Term *var = cursor_expect(c, TERM_VAR, NULL, "a loop variable such as $i");
    const Term *step = NULL;
    s->kind = STMT_FOR;
    if (var == NULL || cursor_expect(c, TERM_NAME, "in", "'in'") == NULL ||
        !read_range(r, c, &s->range) || cursor_expect(c, TERM_NAME, "step", "'step'") == NULL ||
        (step = cursor_expect(c, TERM_INT, NULL, "a step")) == NULL ||
        !reader_bind_var(r, var, &s->var)) {
        return false;
    }
    s->step = step->value;
    if (cursor_take(c, TERM_NAME, "full")) {
        s->part = FOR_FULL;
    } else if (cursor_take(c, TERM_NAME, "rest")) {
        s->part = FOR_REST;
    }
    s->parallel = cursor_take(c, TERM_NAME, "parallel");
    if (!reader_threads(r, c, &s->threads)) {
        return false;
    }
    return read_window(r, c, &s->window) && read_body(r, c, line, s);
}

/* Of a block: `when` TEST, or nothing. */
static bool read_when(LoopReader *r, Cursor *c, Stmt *s)
{
    if (!cursor_take(c, TERM_NAME, "when")) {
        return true;
    }
    DimTest *when = ARENA_NEW(r->arena, DimTest);
    s->when = when;
    return read_dim_test(c, &r->k->dims, when);
}

/* Of a block: `if $i in LO..HI, ...`, or nothing. */
static bool read_guards(LoopReader *r, Cursor *c, Stmt *s)
{
    VEC(Guard) list = {0};
    bool more = cursor_take(c, TERM_NAME, "if");
    while (more) {
        Guard g = {0};
        Range range;
        const Term *t = cursor_expect(c, TERM_VAR, NULL, "a loop variable such as $i");
        Span span = cursor_place(c);
        if (t == NULL || !reader_find_var(r, t, &g.var) ||
            cursor_expect(c, TERM_NAME, "in", "'in'") == NULL || !read_range(r, c, &range)) {
            return false;
        }
        if (range.span != 0 || range.limit.sym >= 0) {
            return dump_refuse(r->ctx, span, "a block is tested for a range of numbers");
        }
        g.from = range.start;
        g.from.base = 0;
        g.lo = range.start.base;
        g.hi = range.limit.n;
        vec_push(r->arena, &list, g);
        more = cursor_take(c, TERM_PUNCT, ",");
    }
    s->guard = list.at;
    s->n_guards = list.n;
    return true;
}

static bool read_stmt(LoopReader *r, const DumpLine *line, Stmt *s)
{
    Cursor c = cursor_line(r->ctx, line);
    s->fold = OP_COPY;
    if (cursor_take(&c, TERM_NAME, "for")) {
        return read_for(r, &c, line, s);
    }
    if (cursor_take(&c, TERM_NAME, "block")) {
        s->kind = STMT_BLOCK;
        return read_when(r, &c, s) && read_guards(r, &c, s) && read_body(r, &c, line, s);
    }
    if (line->has_block) {
        return dump_refuse(r->ctx, line->span, "only loops and blocks have a body");
    }
    if (cursor_take(&c, TERM_NAME, "alloc")) {
        return read_alloc(r, &c, s);
    }
    for (TileKind kind = TILE_FILL; kind <= TILE_MATMUL; kind++) {
        const Term *keyword = cursor_peek(&c);
        if (cursor_take(&c, TERM_NAME, tile_kind_name(kind))) {
            return read_tile(r, &c, keyword, s);
        }
    }
    return dump_refuse(r->ctx, cursor_place(&c),
                       "expected a loop, a block, an alloc or a tile statement here");
}

static bool read_block(LoopReader *r, DumpLine *const *line, uint32_t n, StmtList *out)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = ARENA_NEW(r->arena, Stmt);
        if (!read_stmt(r, line[i], s)) {
            return false;
        }
        vec_push(r->arena, &out->list, s);
    }
    return true;
}

/* ---- kernels ---- */

static bool begins_with(const DumpLine *line, const char *word)
{
    const Term *t = line->term[0];
    return t->kind == TERM_NAME && strcmp(t->text->text, word) == 0;
}

static Kernel *read_kernel(LoopReader *r, const DumpLine *line);

/* `require ...` lines, and the kernel whose results they are about: the last lines of a kernel. */
static bool read_required(LoopReader *r, const DumpLine *line, uint32_t at)
{
    Kernel *k = r->k;
    VEC(Requirement) required = {0};
    for (; at < line->n_body && begins_with(line->body[at], "require"); at++) {
        Cursor c = cursor_line(r->ctx, line->body[at]);
        Requirement one;
        c.at++;
        if (!read_requirement(&r->in, &c, &one)) {
            return false;
        }
        vec_push(r->arena, &required, one);
    }
    if (at + 1 != line->n_body || !begins_with(line->body[at], "kernel")) {
        return dump_refuse(r->ctx, line->body[at < line->n_body ? at : at - 1]->span,
                           "after requirements the kernel of their positions is expected");
    }
    LoopReader inner = {.ctx = r->ctx, .arena = r->arena, .in = r->in};
    k->required = required.at;
    k->n_required = required.n;
    k->positions = read_kernel(&inner, line->body[at]);
    r->in = inner.in;
    if (k->positions == NULL) {
        return false;
    }
    if (k->positions->n_required > 0) {
        return dump_refuse(r->ctx, line->body[at]->span, "positions have no requirements");
    }
    return true;
}

static Kernel *read_kernel(LoopReader *r, const DumpLine *line)
{
    uint32_t at = 0;
    KernelHead head;
    if (!read_kernel_head(&r->in, line, &head, &at)) {
        return NULL;
    }
    r->k = kernel_new(r->arena, head.name);
    r->k->span = head.span;
    r->k->sources = &r->ctx->sources;
    r->k->signature = head.signature;
    r->k->statements = head.statements;
    r->k->ranks = head.ranks;
    dump_reader_kernel(&r->in, &r->k->dims);
    map_init(&r->var_of, r->arena);
    map_init(&r->buf_of, r->arena);
    r->declared.n = 0;
    for (bool is_head = true; at < line->n_body; at += is_head ? 1 : 0) {
        if (!reader_head_line(r, line->body[at], &is_head)) {
            return NULL;
        }
        if (!is_head) {
            break;
        }
    }
    StmtList body = {0};
    uint32_t end = at;
    while (end < line->n_body && !begins_with(line->body[end], "require")) {
        end++;
    }
    if (!read_block(r, line->body + at, end - at, &body)) {
        return NULL;
    }
    for (uint32_t i = 0; i < r->k->bufs.n; i++) {
        if (!r->declared.at[i]) {
            reader_refuse_name(r, line->span, "nothing declares", r->k->bufs.at[i].name);
            return NULL;
        }
    }
    r->k->body = body.list.at;
    r->k->n_body = body.list.n;
    return end == line->n_body || read_required(r, line, end) ? r->k : NULL;
}

Kernel *kernel_read(DumpReader *in, const DumpLine *line)
{
    LoopReader r = {.ctx = in->ctx, .arena = in->arena, .in = *in};
    Kernel *k = read_kernel(&r, line);
    *in = r.in;
    if (k == NULL) {
        return NULL;
    }
    Kernel shown = *k; /* a fault without a place of its own is shown in the dump */
    shown.span = line->span;
    return loop_verify(in->ctx, &shown, "read") ? k : NULL;
}

KernelModule *kernel_module_read(Ctx *ctx, uint32_t source)
{
    DumpReader in;
    dump_reader_init(&in, ctx, &ctx->arena);
    DumpTree *tree = dump_tree_read(ctx, in.arena, source);
    KernelModule *m = ARENA_NEW(in.arena, KernelModule);
    m->arena = in.arena;
    uint32_t at = 0;
    if (tree == NULL || !read_module_head(&in, tree, "loop", &m->source_name, &at)) {
        return NULL;
    }
    for (; at < tree->n; at++) {
        Kernel *k = kernel_read(&in, tree->line[at]);
        if (k == NULL) {
            return NULL;
        }
        vec_push(in.arena, &m->kernels, k);
    }
    return m;
}
