/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a kernel in its text: form, arguments, work, the order of what is declared. */
#include "loop/loop_read.h"

static bool read_form(LoopReader *r, Cursor *c)
{
    if (cursor_take(c, TERM_NAME, "legal")) {
        r->k->form = LOOP_LEGAL;
        const Term *t = cursor_peek(c);
        if (t != NULL && t->kind == TERM_STRING) {
            r->k->target = t->text->text;
            c->at++;
        }
    } else if (cursor_expect(c, TERM_NAME, "tiled", "'tiled' or 'legal'") == NULL) {
        return false;
    }
    return cursor_expect_end(c);
}

/* ` of c64[i,j]`: what the caller has, whose parts the buffer `b` holds; ` shaped [m]`: its shape there. */
static bool read_caller(LoopReader *r, Cursor *c, const Buffer *b, Arg *arg)
{
    const Dim *extent = NULL;
    Span span = cursor_place(c);
    if (cursor_take(c, TERM_NAME, "of") &&
        !read_type(&r->in, c, &arg->whole, &arg->whole_rank, &extent)) {
        return false;
    }
    if (!read_shape_after(&r->in, c, "shaped", &arg->rank, &arg->shape)) {
        return false;
    }
    const Dim *given = arg->shape != NULL ? arg->shape : b->extent;
    bool same = arg->whole_rank <= (arg->shape != NULL ? arg->rank : b->rank);
    for (uint32_t d = 0; same && d < arg->whole_rank; d++) {
        same = dim_eq(extent[d], given[d]);
    }
    return same ||
           dump_refuse(r->ctx, span, "the buffer does not hold the parts of such a tensor");
}

/* ` stored i8`: the type of the elements in memory. */
static bool read_stored(LoopReader *r, Cursor *c, Buffer *b)
{
    if (!cursor_take(c, TERM_NAME, "stored")) {
        return true;
    }
    const Term *t = cursor_expect(c, TERM_NAME, NULL, "an element type");
    return t != NULL && (dtype_from_name((Str){t->text->text, t->text->n}, &b->stored) ||
                         reader_refuse_name(r, t->span, "there is no element type", t->text));
}

static bool read_arg(LoopReader *r, Cursor *c)
{
    static const char *const role[] = {[ARG_IN] = "in",
                                       [ARG_INOUT] = "inout",
                                       [ARG_SCALAR] = "scalar",
                                       [ARG_RESULT] = "result"};
    const Term *name = NULL;
    Buffer b;
    if (!reader_declaration(r, c, &name, &b)) {
        return false;
    }
    Arg arg = {.role = ARG_IN};
    while (arg.role <= ARG_RESULT && !cursor_take(c, TERM_NAME, role[arg.role])) {
        arg.role++;
    }
    if (arg.role > ARG_RESULT) {
        return dump_refuse(r->ctx, cursor_place(c),
                           "expected in, inout, scalar or result here");
    }
    b.space = SPACE_ARGUMENT;
    b.param = (int32_t)r->k->args.n;
    if (!read_stored(r, c, &b) || !read_caller(r, c, &b, &arg)) {
        return false;
    }
    bool parts = arg.whole != DTYPE_NONE;
    if (!read_symmetry(&r->in, c, parts ? arg.whole : b.dtype, parts ? arg.whole_rank : b.rank,
                       b.extent, &arg.symmetry) ||
        !reader_end(r, c, &b.span) || !reader_buffer(r, name->span, &b, &arg.buf)) {
        return false;
    }
    vec_push(r->arena, &r->k->args, arg);
    return true;
}

static bool read_unused(LoopReader *r, Cursor *c)
{
    const Term *name = NULL;
    Buffer b;
    BufRef buf = 0;
    return reader_declaration(r, c, &name, &b) && reader_space(r, c, &b.space) &&
           cursor_expect_end(c) && reader_buffer(r, name->span, &b, &buf);
}

static bool read_work(LoopReader *r, Cursor *c)
{
    VEC(struct WorkTerm) work = {0};
    while (!cursor_done(c)) {
        const Term *t = cursor_expect(c, TERM_LIST, NULL, "extents in brackets");
        if (t == NULL) {
            return false;
        }
        Dim *factor = ARENA_ARRAY(r->arena, t->n, Dim);
        for (uint32_t i = 0; i < t->n; i++) {
            if (!read_dim(&r->in, t->child[i], &factor[i])) {
                return false;
            }
        }
        struct WorkTerm term = {t->n, factor};
        vec_push(r->arena, &work, term);
    }
    r->k->n_work = work.n;
    r->k->work = work.at;
    return true;
}

/* Buffers in the order of the list; those not declared so far are to come. */
static bool order_buffers(LoopReader *r, const Term *list)
{
    Kernel *k = r->k;
    VEC(Buffer) bufs = {0};
    VEC(bool) declared = {0};
    BufRef *moved = ARENA_ARRAY(r->arena, (size_t)k->bufs.n + 1, BufRef);
    Map seen;
    map_init(&seen, r->arena);
    uint32_t known = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        const Term *t = list->child[i];
        uint32_t old = 0;
        if (t->kind != TERM_AT || map_get(&seen, t->text->id, &old)) {
            return dump_refuse(r->ctx, t->span, "each buffer once is expected here");
        }
        map_put(&seen, t->text->id, i);
        Buffer b = {.name = t->text, .param = -1};
        bool is_known = map_get(&r->buf_of, t->text->id, &old);
        if (is_known) {
            b = k->bufs.at[old];
            moved[old] = i;
            known++;
        }
        vec_push(r->arena, &bufs, b);
        vec_push(r->arena, &declared, is_known);
    }
    if (known != k->bufs.n) {
        return dump_refuse(r->ctx, list->span, "the order lacks a buffer");
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        k->args.at[i].buf = moved[k->args.at[i].buf];
    }
    k->bufs.at = bufs.at;
    k->bufs.n = bufs.n;
    k->bufs.cap = bufs.cap;
    r->declared.at = declared.at;
    r->declared.n = declared.n;
    r->declared.cap = declared.cap;
    r->buf_of = seen;
    return true;
}

static bool read_order(LoopReader *r, Cursor *c)
{
    const Term *vars = cursor_expect(c, TERM_LIST, NULL, "the variables in brackets");
    if (vars == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < vars->n; i++) {
        const Term *t = vars->child[i];
        VarRef v = 0;
        if ((t->kind != TERM_NAME && t->kind != TERM_VAR) || !reader_bind_var(r, t, &v) ||
            v != i) {
            return dump_refuse(r->ctx, t->span, "each variable once is expected here");
        }
    }
    const Term *bufs = cursor_expect(c, TERM_LIST, NULL, "the buffers in brackets");
    return bufs != NULL && cursor_expect_end(c) && order_buffers(r, bufs);
}

bool reader_head_line(LoopReader *r, const DumpLine *line, bool *is_head)
{
    static const struct {
        const char *word;
        bool (*read)(LoopReader *, Cursor *);
    } rows[] = {{"form", read_form},
                {"arg", read_arg},
                {"work", read_work},
                {"unused", read_unused},
                {"order", read_order}};
    Cursor c = cursor_line(r->ctx, line);
    *is_head = true;
    if (line->has_block) {
        *is_head = false;
        return true;
    }
    if (cursor_take(&c, TERM_NAME, "dim")) {
        return read_dim_line(&r->in, &c) && cursor_expect_end(&c);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (cursor_take(&c, TERM_NAME, rows[i].word)) {
            return rows[i].read(r, &c);
        }
    }
    *is_head = false;
    return true;
}
