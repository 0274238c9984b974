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
        return dump_refuse(r->ctx, cursor_place(c),
                           "expected an open dim o, or min(o, 16), here");
    }
    out->dim = d.sym;
    c->at++;
    return true;
}

static bool read_term(LoopReader *r, Cursor *c, WorthTerm *out)
{
    VEC(WorthFactor) factors = {0};
    Span span = cursor_place(c);
    Number number = {0};
    if (!read_number(c, &number) || !number_fit(r->ctx, number, DTYPE_F64, span, &number)) {
        return false;
    }
    if (!(number.re >= 0 && number.re < 1e300)) {
        return dump_refuse(r->ctx, span, "the threads of a loop are a number from 0 on");
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

/* `threads 8`, `threads 0.5*o*min(v, 16) + 3*o`, either `dealt`, `cut 6` or `flat`, or nothing. */
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
        *threads = (Threads){terms.n, terms.at, cursor_take(c, TERM_NAME, "dealt"), 0, false};
    }
    if (threads != NULL && cursor_take(c, TERM_NAME, "cut")) {
        const Term *cut = cursor_expect(c, TERM_INT, NULL, "a number of positions");
        if (cut == NULL) {
            return false;
        }
        threads->cut = cut->value;
    }
    if (threads != NULL) {
        threads->flat = cursor_take(c, TERM_NAME, "flat");
    }
    *out = threads;
    return true;
}

/* `by 96`, or with `turn` or `reach` -15. */
static bool read_elements(Cursor *c, const char *word, int64_t *out)
{
    if (cursor_expect(c, TERM_NAME, word, word) == NULL) {
        return false;
    }
    bool less = cursor_take(c, TERM_PUNCT, "-");
    const Term *t = cursor_expect(c, TERM_INT, NULL, "a number of elements");
    *out = t == NULL ? 0 : less ? -t->value : t->value;
    return t != NULL;
}

/* `[6 by 16, 24 by 96]` */
static bool read_groups(LoopReader *r, Cursor *c, Prefetch *p)
{
    const Term *list = cursor_expect(c, TERM_LIST, NULL, "groups in brackets");
    if (list == NULL) {
        return false;
    }
    if (list->n < 1 || list->n > PREFETCH_LABELS) {
        return dump_refuse(r->ctx, list->span, "groups are along one to three labels");
    }
    p->n = list->n;
    for (uint32_t i = 0; i < PREFETCH_LABELS; i++) {
        p->count[i] = 1;
        if (i < list->n) {
            Cursor one = cursor_seq(r->ctx, list->child[i]);
            const Term *count = cursor_expect(&one, TERM_INT, NULL, "a number of groups");
            if (count == NULL || !read_elements(&one, "by", &p->step[i]) ||
                !cursor_expect_end(&one)) {
                return false;
            }
            p->count[i] = count->value;
        }
    }
    return true;
}

static bool read_place(LoopReader *r, Cursor *c, BufRef *buf, const Affine **at)
{
    const Term *t = cursor_expect(c, TERM_INDEX, NULL, "an access such as @A[$i,0]");
    return t != NULL && reader_access(r, t, buf, at);
}

/* `prefetch @A[$i+8,0] past $i @A[0,8] groups [6 by 16] lines by 1 turn -15 reach 15`, or nothing. */
bool reader_prefetch(LoopReader *r, Cursor *c, const Prefetch **out)
{
    if (!cursor_take(c, TERM_NAME, "prefetch")) {
        return true;
    }
    Prefetch *p = ARENA_NEW(r->arena, Prefetch);
    *out = p;
    if (!read_place(r, c, &p->buf, &p->at)) {
        return false;
    }
    if (cursor_take(c, TERM_NAME, "past")) {
        const Term *t = cursor_expect(c, TERM_VAR, NULL, "a loop such as $i");
        BufRef buf = p->buf;
        if (t == NULL || !reader_find_var(r, t, &p->var) || !read_place(r, c, &buf, &p->past)) {
            return false;
        }
        if (buf != p->buf) {
            return dump_refuse(r->ctx, t->span, "what fills panels next is of one buffer");
        }
    }
    return cursor_expect(c, TERM_NAME, "groups", "'groups'") != NULL && read_groups(r, c, p) &&
           cursor_expect(c, TERM_NAME, "lines", "'lines'") != NULL &&
           read_elements(c, "by", &p->each) && read_elements(c, "turn", &p->turn) &&
           read_elements(c, "reach", &p->reach);
}
