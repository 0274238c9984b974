/* SPDX-License-Identifier: Apache-2.0 */
/* What a function needs from outside that runs statements of a kernel: the kernel's names in its text that it does not declare itself. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "backend/c/emit.h"

#include "loop/walk.h"

static Known *known(const Emitter *e, const char *name)
{
    uint32_t number = 0;
    return names_find(&e->w.names, name, strlen(name), &number) ? &e->known[number] : NULL;
}

static void known_set(const Emitter *e, const char *name, Known value)
{
    Known *x = name != NULL ? known(e, name) : NULL;
    if (x != NULL) {
        *x = value;
    }
}

/* Once per kernel: by number of the name. Names that are taken later are of statements. */
static void known_init(Emitter *e)
{
    const Kernel *k = e->w.k;
    bool *shares = ARENA_ARRAY(e->w.arena, (size_t)k->bufs.n + 1, bool);
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        if (s->kind == STMT_ALLOC && s->over != 0) {
            shares[s->buf] = shares[s->over - 1] = true;
        }
    }
    e->n_known = e->w.names.list.n;
    e->known = ARENA_ARRAY(e->w.arena, (size_t)e->n_known + 1, Known);
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        known_set(e, e->w.dim[d], (Known){KNOWN_DIM, d, false, 0});
    }
    for (uint32_t v = 0; v < k->vars.n; v++) {
        known_set(e, e->w.var[v], (Known){KNOWN_VAR, v, false, 0});
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        known_set(e, e->w.buf[b], (Known){KNOWN_BUF, b, shares[b], 0});
    }
    known_set(e, e->own.folds, (Known){KNOWN_FOLDS, 0, false, 0});
    known_set(e, e->own.isa, (Known){KNOWN_ISA, 0, false, 0}); /* both, where they are one */
}

/* Marks what the statements declare themselves as found. */
static void mark_own(Emitter *e, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *x = stmt_first(&w, body, n); x != NULL; x = stmt_next(&w)) {
        if (x->kind == STMT_ALLOC) {
            known(e, e->w.buf[x->buf])->function = e->n_functions;
        }
        if (x->kind == STMT_FOR) {
            known(e, e->w.var[x->var])->function = e->n_functions;
        }
        for (uint32_t i = 0; x->kind == STMT_TILE && i < x->n_index; i++) {
            known(e, e->w.var[x->index[i].var])->function = e->n_functions;
        }
    }
}

/* The next word of C text from `at` on that is neither in a comment nor a member of a structure: its length, 0 at the end. */
static size_t next_word(const char **at)
{
    const char *from = *at, *end = NULL;
    for (; *from != '\0'; from++) {
        if (from[0] == '/' && from[1] == '*' && (end = strstr(from + 2, "*/")) != NULL) {
            from = end + 1;
        } else if (isalnum((unsigned char)*from) || *from == '_') {
            size_t length = 1;
            while (isalnum((unsigned char)from[length]) || from[length] == '_') {
                length++;
            }
            if (from - *at < 2 || from[-1] != '>' || from[-2] != '-') {
                *at = from;
                return length;
            }
            from += length - 1;
        }
    }
    return 0;
}

const char *captured_type(Emitter *e, const Known *x)
{
    if (x->kind == KNOWN_ISA || x->kind == KNOWN_FOLDS) {
        return x->kind == KNOWN_ISA ? "const tdsl_isa *" : "const tdsl_folds *";
    }
    if (x->kind != KNOWN_BUF) {
        return "int64_t ";
    }
    const Kernel *k = e->w.k;
    const Buffer *buf = &k->bufs.at[x->number];
    bool reads = buf->space == SPACE_ARGUMENT && k->args.at[buf->param].role == ARG_IN;
    return str_format(e->w.arena, "%s%s %s", reads ? "const " : "",
                      buf->space == SPACE_ACC ? c_compute(buf->dtype) : c_type(buf->dtype),
                      e->w.scalar[x->number] ? "" : "*");
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

Captured captured_find(Emitter *e, Stmt *const *body, uint32_t n, const char *text)
{
    Captured used = {0};
    size_t length = 0;
    if (e->known == NULL) {
        known_init(e);
    }
    e->n_functions++;
    mark_own(e, body, n);
    for (const char *at = text; (length = next_word(&at)) > 0; at += length) {
        uint32_t number = 0;
        if (names_find(&e->w.names, at, length, &number) && number < e->n_known &&
            e->known[number].kind != KNOWN_NOT && e->known[number].function != e->n_functions) {
            e->known[number].function = e->n_functions;
            vec_push(e->w.arena, &used, number);
        }
    }
    if (used.n > 1) {
        qsort(used.at, used.n, sizeof *used.at, by_number);
    }
    return used;
}
