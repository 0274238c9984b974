/* SPDX-License-Identifier: Apache-2.0 */
/* Clauses back from their text (clauses.h). */
#include "loop/clauses.h"
#include "loop/loop_read.h"

static bool read_index(LoopReader *r, const Term *t, const Stmt *s, uint32_t *out)
{
    VarRef v = 0;
    if (!reader_find_var(r, t, &v)) {
        return false;
    }
    for (*out = 1; *out <= s->n_index && s->index[*out - 1].var != v; ++*out) {
    }
    return *out <= s->n_index ||
           dump_refuse(r->ctx, t->span, "this is an index of the statement");
}

static bool read_loops(LoopReader *r, Cursor *c, Clause *x)
{
    VEC(VarRef) loops = {0};
    do {
        const Term *t = cursor_expect(c, TERM_VAR, NULL, x->expected);
        VarRef v = 0;
        if (t == NULL || !reader_find_var(r, t, &v)) {
            return false;
        }
        vec_push(r->arena, &loops, v);
    } while (cursor_take(c, TERM_PUNCT, ","));
    *x->n_loops = loops.n;
    *x->loop = loops.at;
    return true;
}

static bool read_operand(LoopReader *r, Cursor *c, const Stmt *s, Clause *x)
{
    if (x->flag != NULL) {
        *x->flag = true;
        return true;
    }
    if (x->loop != NULL) {
        return read_loops(r, c, x);
    }
    TermKind kind = x->number != NULL  ? TERM_INT
                    : x->index != NULL ? TERM_NAME
                    : x->at != NULL    ? TERM_INDEX
                                       : TERM_AT;
    const Term *t = cursor_expect(c, kind, NULL, x->expected);
    if (t == NULL || x->index != NULL) {
        return t != NULL && read_index(r, t, s, x->index);
    }
    if (x->number != NULL) {
        *x->number = t->value;
        return t->value >= 1 || dump_refuse(r->ctx, t->span, "%s is 1 or more", x->expected);
    }
    bool ok =
        x->at != NULL ? reader_access(r, t, x->buf, x->at) : reader_find_buffer(r, t, x->buf);
    ++*x->buf;
    return ok;
}

bool clauses_read(LoopReader *r, Cursor *c, Stmt *s, Buffer *declared)
{
    Clauses all;
    bool there = false;
    clauses_all(s, declared, &all);
    for (Clause *x = all.at; x < all.at + all.n; x++) {
        there = (there || !x->more) && cursor_take(c, TERM_NAME, x->word);
        if (there && !read_operand(r, c, s, x)) {
            return false;
        }
    }
    return true;
}
