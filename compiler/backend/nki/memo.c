/* SPDX-License-Identifier: Apache-2.0 */
/* Subexpressions that a statement's values share: computed once for each box. */
#include "backend/nki/evaluate.h"

static void note_shared(Lower *l, const Expr *value)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        if (e->kind != EXPR_OP) {
            continue;
        }
        uint32_t at = l->now.memo.n;
        uint64_t hash = expr_hash(l->from, e);
        if (map_get(&l->now.memo_hash, hash, &at) &&
            expr_eq(l->from, e, l->now.memo.at[at].e)) {
            l->now.memo.at[at].shared = true;
            expr_skip(&w);
        } else {
            at = l->now.memo.n;
            vec_push(l->arena, &l->now.memo, ((Memo){e, false, NULL}));
            map_put(&l->now.memo_hash, hash, at);
        }
        map_put(&l->now.memo_at, (uint64_t)(uintptr_t)e, at);
    }
}

void memo_begin(Lower *l, const Expr *re, const Expr *im)
{
    l->now.memo.n = 0;
    map_init(&l->now.memo_hash, l->arena);
    map_init(&l->now.memo_at, l->arena);
    note_shared(l, re);
    if (im != NULL) {
        note_shared(l, im);
    }
}

void memo_clear(Lower *l)
{
    for (uint32_t i = 0; i < l->now.memo.n; i++) {
        l->now.memo.at[i].value = NULL;
    }
}

Memo *memo_of(Lower *l, const Expr *e)
{
    uint32_t at = 0;
    bool known = l->now.memo.n > 0 && map_get(&l->now.memo_at, (uint64_t)(uintptr_t)e, &at);
    return known && l->now.memo.at[at].shared ? &l->now.memo.at[at] : NULL;
}
