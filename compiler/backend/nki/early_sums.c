/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rows right behind what makes the rows, where nothing between them has to do with the sum: one pass of an engine then makes
 * both (row_sums.c). */
#include "backend/nki/lower.h"

#define FAR_MOST 8 /* statements between */

static bool reads(const Stmt *s, BufRef buf)
{
    return expr_load_of(s->value, buf) != NULL;
}

/* May the statement at `from` stand right behind the one at `to`? */
static bool may_move(Stmt *const *body, uint32_t to, uint32_t from)
{
    const Stmt *t = body[from];
    bool far = false;
    for (uint32_t i = to + 1; i < from; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_ALLOC) {
            continue;
        }
        if (s->kind != STMT_TILE || s->dst == t->dst || reads(s, t->dst) || reads(t, s->dst)) {
            return false;
        }
        far = true;
    }
    return far;
}

/* The sum of what the statement at `at` makes; or `at`. */
static uint32_t find_sum(Stmt *const *body, uint32_t n, uint32_t at)
{
    const Stmt *s = body[at];
    for (uint32_t i = at + 1; i < n && i <= at + FAR_MOST && s->kind == STMT_TILE; i++) {
        const Stmt *t = body[i];
        const Expr *e = t->kind == STMT_TILE ? expr_uncast(t->value) : NULL;
        bool sums = e != NULL && t->fold == OP_SUM && t->scan == 0 && t->schedule == NULL &&
                    e->kind == EXPR_LOAD && e->buf == s->dst && s->fold == OP_COPY;
        if (sums && may_move(body, at, i)) {
            return i;
        }
    }
    return at;
}

/* The statement at `from` to `to`, and where its block begins, if that is between. */
static void move_up(Stmt **body, uint32_t to, uint32_t from)
{
    BufRef dst = body[from]->dst;
    for (uint32_t x = to; x <= from; x++) {
        Stmt *s = body[x];
        if (x < from && (s->kind != STMT_ALLOC || s->buf != dst)) {
            continue;
        }
        for (uint32_t y = x; y > to; y--) {
            body[y] = body[y - 1];
        }
        body[to++] = s;
    }
}

static Stmt **sums_early(Arena *a, Stmt *const *body, uint32_t n, bool *any)
{
    Stmt **out = (Stmt **)arena_array(a, n + 1, sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = body[i];
        if (stmt_has_body(body[i])) {
            bool inside = false;
            Stmt **in = sums_early(a, body[i]->body, body[i]->n_body, &inside);
            if (inside) {
                out[i] = arena_copy(a, body[i], sizeof *out[i]);
                out[i]->body = in;
                *any = true;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = find_sum(out, n, i);
        if (from > i) {
            move_up(out, i + 1, from);
            *any = true;
        }
    }
    return out;
}

const Kernel *lower_early_sums(Arena *arena, const Kernel *k)
{
    bool any = false;
    Stmt **body = sums_early(arena, k->body, k->n_body, &any);
    if (!any) {
        return k;
    }
    Kernel *to = kernel_like(arena, k);
    to->body = body;
    return to;
}
