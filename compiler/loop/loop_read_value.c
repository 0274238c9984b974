/* SPDX-License-Identifier: Apache-2.0 */
/* Values of statements: `add(@X[i], f32(2.0))`. */
#include <string.h>

#include "loop/loop_read.h"
#include "loop/loop_text.h"

static const Expr *read_child(LoopReader *r, const Term *call, uint32_t i, DType wanted)
{
    Cursor c = cursor_seq(r->ctx, call->child[i]);
    const Expr *e = reader_value(r, &c, wanted);
    return e != NULL && cursor_expect_end(&c) ? e : NULL;
}

/* A number, which must be one of `wanted`. */
static const Expr *read_const(LoopReader *r, Cursor *c, DType wanted)
{
    Span span = cursor_place(c);
    Number v;
    if (!read_number(c, &v)) {
        return NULL;
    }
    if (wanted == DTYPE_NONE) {
        dump_refuse(r->ctx, span,
                    "the type of this number is not known here: write f64(1.0), say");
        return NULL;
    }
    return number_fit(r->ctx, v, wanted, span, &v) ? expr_const(r->arena, v) : NULL;
}

static const Expr *read_extent(LoopReader *r, const Term *call, DType t)
{
    Dim d;
    if (call->n != 1 || !read_dim(&r->in, call->child[0], &d)) {
        dump_refuse(r->ctx, call->span, "extent(o) is of one dim");
        return NULL;
    }
    if (d.sym < 0 || t == DTYPE_NONE || t == DTYPE_BOOL) {
        dump_refuse(r->ctx, call->span,
                    d.sym < 0 ? "the extent of an open dim is expected here"
                              : "extent.i64(o), say: its type is not known here");
        return NULL;
    }
    Expr *e = ARENA_NEW(r->arena, Expr);
    *e = (Expr){.kind = EXPR_EXTENT, .dtype = t, .dim = d.sym};
    return e;
}

static const Expr *read_index_value(LoopReader *r, const Term *call, DType t)
{
    Affine at = {0};
    if (call->n != 1 || t == DTYPE_NONE || t == DTYPE_BOOL) {
        dump_refuse(r->ctx, call->span, "index.i64(i), say, is of one index");
        return NULL;
    }
    Cursor c = cursor_seq(r->ctx, call->child[0]);
    if (!reader_affine(r, &c, &at) || !cursor_expect_end(&c)) {
        return NULL;
    }
    return expr_index(r->arena, t, at);
}

static const Expr *read_operation(LoopReader *r, const Term *call, Op op, DType made,
                                  DType wanted)
{
    const OpInfo *info = op_info(op);
    if (info->arity != (int)call->n) {
        diag_error(&r->ctx->diags, E_DUMP, call->span, "'%s' takes %d operands, not %u",
                   info->name, info->arity, call->n);
        return NULL;
    }
    const Expr *arg[3] = {NULL};
    DType in[3] = {DTYPE_NONE};
    for (uint32_t i = 0; i < call->n; i++) {
        arg[i] = read_child(r, call, i, expr_wanted(op, wanted, i));
        if (arg[i] == NULL) {
            return NULL;
        }
        in[i] = arg[i]->dtype;
    }
    if (op != OP_CAST && !op_result_type(op, in, call->n, &made)) {
        diag_error(&r->ctx->diags, E_DUMP, call->span,
                   "'%s' does not take operands of these types", info->name);
        return NULL;
    }
    return expr_op(r->arena, op, made, call->n, arg);
}

/* gather(@W[], i, j) */
static const Expr *read_gather(LoopReader *r, const Term *call)
{
    const Expr *at[RANK_LIMIT];
    BufRef buf = 0;
    const Term *table = NULL;
    if (call->n > 0) {
        Cursor c = cursor_seq(r->ctx, call->child[0]);
        const Term *first = cursor_peek(&c);
        bool whole = first != NULL && first->kind == TERM_INDEX && first->n == 1;
        table = whole && first->child[0]->kind == TERM_AT ? first->child[0] : NULL;
    }
    if (table == NULL) {
        dump_refuse(r->ctx, call->span, "gather(@W[], i), say, begins with a buffer");
        return NULL;
    }
    if (!reader_find_buffer(r, table, &buf)) {
        return NULL;
    }
    if (call->n - 1 != r->k->bufs.at[buf].rank) {
        dump_refuse(r->ctx, call->span, "a position for each dimension is expected here");
        return NULL;
    }
    for (uint32_t i = 1; i < call->n; i++) {
        at[i - 1] = read_child(r, call, i, DTYPE_I64);
        if (at[i - 1] == NULL) {
            return NULL;
        }
    }
    return expr_gather(r->arena, r->k, buf, at);
}

/* The type named by what follows `prefix` and a dot in `text`: cast.f64, extent.i32. */
static bool suffix_type(Sym text, const char *prefix, DType *out)
{
    size_t n = strlen(prefix);
    return text->n > n + 1 && memcmp(text->text, prefix, n) == 0 && text->text[n] == '.' &&
           dtype_from_name((Str){text->text + n + 1, text->n - n - 1}, out);
}

static const Expr *read_call(LoopReader *r, const Term *call, DType wanted)
{
    Str name = {call->text->text, call->text->n};
    DType t = wanted;
    Op op = OP_COPY;
    if (str_eq_cstr(name, "extent") || suffix_type(call->text, "extent", &t)) {
        return read_extent(r, call, t);
    }
    if (str_eq_cstr(name, "index") || suffix_type(call->text, "index", &t)) {
        return read_index_value(r, call, t);
    }
    if (suffix_type(call->text, "cast", &t)) {
        return read_operation(r, call, OP_CAST, t, wanted);
    }
    if (str_eq_cstr(name, "gather")) {
        return read_gather(r, call);
    }
    if (dtype_from_name(name, &t)) {
        if (call->n != 1) {
            dump_refuse(r->ctx, call->span, "one number is expected here");
            return NULL;
        }
        Cursor c = cursor_seq(r->ctx, call->child[0]);
        const Expr *e = read_const(r, &c, t);
        return e != NULL && cursor_expect_end(&c) ? e : NULL;
    }
    if (!op_from_name(name, &op) || op_info(op)->kind != OPKIND_MAP || op == OP_CAST) {
        reader_refuse_name(r, call->span, "there is no elementwise operation", call->text);
        return NULL;
    }
    return read_operation(r, call, op, DTYPE_NONE, wanted);
}

const Expr *reader_value(LoopReader *r, Cursor *c, DType wanted)
{
    const Term *t = cursor_peek(c);
    if (t != NULL && t->kind == TERM_INDEX) {
        BufRef buf = 0;
        const Affine *at = NULL;
        if (!reader_access(r, t, &buf, &at)) {
            return NULL;
        }
        c->at++;
        return expr_load(r->arena, r->k, buf, at);
    }
    if (t != NULL && t->kind == TERM_CALL && strcmp(t->text->text, "complex") != 0) {
        c->at++;
        return read_call(r, t, wanted);
    }
    return read_const(r, c, wanted);
}
