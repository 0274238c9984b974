/* SPDX-License-Identifier: Apache-2.0 */
/* Names, positions, accesses and declarations back from their text (loop_read.h). */
#include <string.h>

#include "loop/loop_read.h"

bool reader_refuse_name(LoopReader *r, Span span, const char *what, Sym name)
{
    return dump_refuse(r->ctx, span, "%s '%s'", what, name->text);
}

bool reader_bind_var(LoopReader *r, const Term *t, VarRef *out)
{
    bool is_loop = t->kind == TERM_VAR;
    if (map_get(&r->var_of, t->text->id, out)) {
        return r->k->vars.at[*out].is_loop == is_loop ||
               reader_refuse_name(r, t->span, "both a loop and a local index are called",
                                  t->text);
    }
    *out = r->k->vars.n;
    Var v = {t->text, is_loop, t->text};
    vec_push(r->arena, &r->k->vars, v);
    map_put(&r->var_of, t->text->id, *out);
    return true;
}

bool reader_find_var(LoopReader *r, const Term *t, VarRef *out)
{
    if (!map_get(&r->var_of, t->text->id, out) ||
        r->k->vars.at[*out].is_loop != (t->kind == TERM_VAR)) {
        return reader_refuse_name(
            r, t->span, t->kind == TERM_VAR ? "there is no loop" : "there is no index",
            t->text);
    }
    return true;
}

static bool read_affine_term(LoopReader *r, Cursor *c, int64_t sign, Affine *sum)
{
    Span span = cursor_place(c);
    Affine one = affine_const(1);
    int64_t factor = sign;
    const Term *t = cursor_peek(c);
    bool number = t != NULL && t->kind == TERM_INT;
    if (number) {
        factor *= t->value; /* in [0, INT64_MAX] */
        c->at++;
    }
    if (!number || cursor_take(c, TERM_PUNCT, "*")) {
        t = cursor_peek(c);
        bool open = t != NULL && t->kind == TERM_CALL && strcmp(t->text->text, "extent") == 0;
        Dim d = dim_fixed(0);
        if (open && t->n == 1 && read_dim(&r->in, t->child[0], &d) && d.sym >= 0) {
            c->at++;
            return affine_try_add(r->arena, *sum, factor, affine_extent(r->arena, d), sum) ||
                   dump_refuse(r->ctx, span, "this index does not fit 64 bits");
        }
        if (t == NULL || (t->kind != TERM_NAME && t->kind != TERM_VAR)) {
            return dump_refuse(r->ctx, cursor_place(c),
                               "expected an index, a loop or a number here");
        }
        VarRef v = 0;
        if (!reader_find_var(r, t, &v)) {
            return false;
        }
        one = affine_var(r->arena, v);
        c->at++;
    }
    return affine_try_add(r->arena, *sum, factor, one, sum) ||
           dump_refuse(r->ctx, span, "this index does not fit 64 bits");
}

bool reader_affine(LoopReader *r, Cursor *c, Affine *out)
{
    *out = affine_const(0);
    int64_t sign = cursor_take(c, TERM_PUNCT, "-") ? -1 : 1;
    for (;;) {
        if (!read_affine_term(r, c, sign, out)) {
            return false;
        }
        if (out->n > AFFINE_TERMS_LIMIT) {
            return diag_refuse_limit(&r->ctx->diags, E_LIMIT_SIZE, cursor_place(c),
                                     "an index of more than %d terms", AFFINE_TERMS_LIMIT);
        }
        if (cursor_take(c, TERM_PUNCT, "+")) {
            sign = 1;
        } else if (cursor_take(c, TERM_PUNCT, "-")) {
            sign = -1;
        } else {
            return true;
        }
    }
}

bool reader_find_buffer(LoopReader *r, const Term *t, BufRef *out)
{
    return (map_get(&r->buf_of, t->text->id, out) && r->declared.at[*out]) ||
           reader_refuse_name(r, t->span, "there is no buffer", t->text);
}

bool reader_access(LoopReader *r, const Term *t, BufRef *buf, const Affine **at)
{
    if (t->kind != TERM_INDEX || t->child[0]->kind != TERM_AT) {
        return dump_refuse(r->ctx, t->span, "expected an access such as @T[i,j] here");
    }
    Sym name = t->child[0]->text;
    if (!reader_find_buffer(r, t->child[0], buf)) {
        return false;
    }
    uint32_t rank = r->k->bufs.at[*buf].rank;
    if (t->n - 1 != rank) {
        return dump_refuse(r->ctx, t->span, "'@%s' has rank %u, not %u", name->text, rank,
                           t->n - 1);
    }
    Affine *list = rank == 0 ? NULL : ARENA_ARRAY(r->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        Cursor c = cursor_seq(r->ctx, t->child[d + 1]);
        if (!reader_affine(r, &c, &list[d]) || !cursor_expect_end(&c)) {
            return false;
        }
    }
    *at = list;
    return true;
}

bool reader_end(LoopReader *r, Cursor *c, Span *span)
{
    *span = (Span){0, 0, 0};
    if (cursor_take(c, TERM_NAME, "at") && !read_span(&r->in, c, span)) {
        return false;
    }
    return cursor_expect_end(c);
}

bool reader_declaration(LoopReader *r, Cursor *c, const Term **name, Buffer *out)
{
    *name = cursor_expect(c, TERM_AT, NULL, "a buffer such as @T");
    *out = (Buffer){.param = -1};
    if (*name == NULL || cursor_expect(c, TERM_PUNCT, ":", "':'") == NULL) {
        return false;
    }
    out->name = (*name)->text;
    return read_type(&r->in, c, &out->dtype, &out->rank, &out->extent);
}

bool reader_space(LoopReader *r, Cursor *c, Space *out)
{
    const Term *t = cursor_expect(c, TERM_NAME, NULL, "a space");
    if (t == NULL) {
        return false;
    }
    return space_from_name((Str){t->text->text, t->text->n}, out) ||
           reader_refuse_name(r, t->span, "there is no space", t->text);
}

static bool same_declaration(const Buffer *a, const Buffer *b)
{
    bool same = a->dtype == b->dtype && a->space == b->space && a->rank == b->rank &&
                a->param == b->param && a->parts == b->parts && a->panels == b->panels &&
                a->group == b->group && a->cascade == b->cascade && a->cut == b->cut;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = dim_eq(a->extent[d], b->extent[d]);
    }
    return same;
}

bool reader_buffer(LoopReader *r, Span span, const Buffer *b, BufRef *out)
{
    if (!map_get(&r->buf_of, b->name->id, out)) {
        *out = r->k->bufs.n;
        vec_push(r->arena, &r->k->bufs, *b);
        vec_push(r->arena, &r->declared, true);
        map_put(&r->buf_of, b->name->id, *out);
        return true;
    }
    if (r->declared.at[*out]) {
        return (b->param < 0 && same_declaration(&r->k->bufs.at[*out], b)) ||
               reader_refuse_name(r, span, "a second, different declaration of", b->name);
    }
    r->k->bufs.at[*out] = *b;
    r->declared.at[*out] = true;
    return true;
}
