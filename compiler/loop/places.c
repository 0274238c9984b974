/* SPDX-License-Identifier: Apache-2.0 */
/* See places.h. */
#include "loop/places.h"

static bool is_index(const Expr *e, VarRef v)
{
    return e->kind == EXPR_INDEX && dtype_is_int(e->dtype) && affine_is(e->at[0], v);
}

static const Expr *both(Arena *arena, const Expr *x, const Expr *y)
{
    const Expr *two[2] = {x, y};
    return x == NULL ? y : y == NULL ? x : expr_op(arena, OP_AND, DTYPE_BOOL, 2, two);
}

/* Takes key == index(v) out of the condition; as deep as that is. */
static bool take_key(Arena *arena, const Expr *e, VarRef v, const Expr **key, const Expr **rest)
{
    *rest = e;
    if (e->kind != EXPR_OP || (e->op != OP_AND && e->op != OP_EQ)) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const Expr *inner = NULL;
        if (e->op == OP_EQ && is_index(e->arg[k], v)) {
            *key = e->arg[1 - k];
            *rest = NULL;
            return true;
        }
        if (e->op == OP_AND && take_key(arena, e->arg[k], v, key, &inner)) {
            *rest = k == 0 ? both(arena, inner, e->arg[1]) : both(arena, e->arg[0], inner);
            return true;
        }
    }
    return false;
}

/* select(c, x, what lies there): x, and c in *condition; else null. */
static const Expr *change_under(const Kernel *k, const Stmt *s, const Expr **condition)
{
    const Expr *e = s->value;
    const Expr *old = e->kind == EXPR_OP && e->op == OP_SELECT ? e->arg[2] : NULL;
    if (old == NULL || old->kind != EXPR_LOAD || old->buf != s->dst) {
        return NULL;
    }
    for (uint32_t d = 0; d < k->bufs.at[s->dst].rank; d++) {
        if (!affine_eq(old->at[d], s->at[d])) {
            return NULL;
        }
    }
    *condition = e->arg[0];
    return e->arg[1];
}

/* Of index i, if the condition has one that is made of indices before the first of the places alone; it is taken out. */
static const Expr *key_of(Arena *arena, const Kernel *k, const Stmt *s, uint32_t i,
                          const Expr **condition)
{
    const TileIndex *x = &s->index[i];
    const Expr *key = NULL, *rest = NULL;
    bool is = *condition != NULL && x->mode == MODE_LOOP && x->window == NULL &&
              take_key(arena, *condition, x->var, &key, &rest);
    for (uint32_t d = s->places - 1; is && d < s->n_index; d++) {
        is = !expr_uses(k, key, s->index[d].var);
    }
    *condition = is ? rest : *condition;
    return is ? key : NULL;
}

bool stmt_places(Arena *arena, const Kernel *k, const Stmt *s, Scattered *out)
{
    const Expr *condition = NULL;
    *out = (Scattered){NULL, NULL, NULL};
    if (s->places == 0 || s->places > s->n_index || s->scan > 0 || s->sums > 0 ||
        s->schedule != NULL || (s->begins && s->n_first > 0)) {
        return false;
    }
    out->value = s->fold == OP_COPY ? change_under(k, s, &condition)
                                    : expr_under(s->fold, s->value, &condition);
    if (condition == NULL) {
        return false;
    }
    const Expr **key = ARENA_ARRAY(arena, s->n_index, const Expr *);
    bool row = false;
    for (uint32_t i = s->places - 1; i < s->n_index; i++) {
        key[i] = key_of(arena, k, s, i, &condition);
    }
    for (uint32_t i = s->places; i < s->n_index; i++) {
        row |= key[i] == NULL && condition != NULL && expr_uses(k, condition, s->index[i].var);
    }
    if (row) { /* it is looked at for each of the others */
        const Expr *three[3] = {condition, out->value, s->value->arg[2]};
        out->value = expr_op(arena, OP_SELECT, s->value->dtype, 3, three);
        condition = NULL;
    }
    out->key = key;
    out->condition = condition;
    return key[s->places - 1] != NULL;
}
