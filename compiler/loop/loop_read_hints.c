/* SPDX-License-Identifier: Apache-2.0 */
/* The hints of statements back from their text (hints.h). */
#include <string.h>

#include "loop/loop_read.h"

/* `o`, or `min(o, 16)`. */
static bool read_factor(LoopReader *r, Cursor *c, WorthFactor *out)
{
    const Term *t = cursor_peek(c), *dim = t;
    Dim d = dim_fixed(0);
    bool least = t != NULL && t->kind == TERM_CALL && strcmp(t->text->text, "min") == 0;
    if (least) {
        dim = t->n == 2 && t->child[1]->kind == TERM_INT ? t->child[0] : NULL;
        out->most = dim != NULL ? t->child[1]->value : 0;
    }
    if (dim == NULL || (least && out->most < 1) || !read_dim(&r->in, dim, &d) || d.sym < 0) {
        return reader_refuse(r, reader_place(c), "expected an open dim o, or min(o, 16), here");
    }
    out->dim = d.sym;
    c->at++;
    return true;
}

static bool read_term(LoopReader *r, Cursor *c, WorthTerm *out)
{
    VEC(WorthFactor) factors = {0};
    Span span = reader_place(c);
    Number number = {0};
    if (!read_number(c, &number) || !number_fit(r->ctx, number, DTYPE_F64, span, &number)) {
        return false;
    }
    if (!(number.re >= 0 && number.re < 1e300)) {
        return reader_refuse(r, span, "the threads of a loop are a number from 0 on");
    }
    while (cursor_take(c, TERM_PUNCT, "*")) {
        WorthFactor f = {0};
        if (!read_factor(r, c, &f)) {
            return false;
        }
        vec_push(r->arena, &factors, f);
    }
    *out = (WorthTerm){number.re, factors.n, factors.at};
    return true;
}

/* `threads 8`, `threads 0.5*o*min(v, 16) + 3*o`, either `dealt`, or nothing. */
bool reader_threads(LoopReader *r, Cursor *c, const Threads **out)
{
    VEC(WorthTerm) terms = {0};
    Threads *threads = NULL;
    bool more = cursor_take(c, TERM_NAME, "threads");
    if (more) {
        threads = ARENA_NEW(r->arena, Threads);
    }
    while (more) {
        WorthTerm term = {0};
        if (!read_term(r, c, &term)) {
            return false;
        }
        vec_push(r->arena, &terms, term);
        more = cursor_take(c, TERM_PUNCT, "+");
    }
    if (threads != NULL) {
        *threads = (Threads){terms.n, terms.at, cursor_take(c, TERM_NAME, "dealt")};
    }
    *out = threads;
    return true;
}

/* `nontemporal above BYTES specialised`, of each what there is. */
bool reader_tile_hints(Cursor *c, Stmt *s)
{
    s->nontemporal = cursor_take(c, TERM_NAME, "nontemporal");
    if (s->nontemporal && cursor_take(c, TERM_NAME, "above")) {
        const Term *bytes = cursor_expect(c, TERM_INT, NULL, "a number of bytes");
        s->larger = bytes == NULL ? 0 : bytes->value;
        if (bytes == NULL) {
            return false;
        }
    }
    s->specialised = cursor_take(c, TERM_NAME, "specialised");
    return true;
}
