/* SPDX-License-Identifier: Apache-2.0 */
/* The key under which the value of an expression over a box is remembered. */
#include "backend/nki/evaluate_parts.h"

/* What the value of `e` over the box depends on; false when it is too much to remember. */
bool eval_key(Evaluation *ev, const Expr *e, int64_t *key, uint32_t *n, uint32_t *seen)
{
    ExprWalk w;
    for (const Expr *load = expr_first(&w, e); load != NULL; load = expr_next(&w)) {
        IndexSum at;
        if (load->kind == EXPR_INDEX) {
            if (!whole_of(ev->l, load, &at) || *n + 1 + 2 * at.moves.n > KEY_LIMIT) {
                return false;
            }
            key[(*n)++] = at.base;
            for (uint32_t i = 0; i < at.moves.n; i++) {
                key[(*n)++] = -(int64_t)at.moves.term[i].var - 2;
                key[(*n)++] = at.moves.term[i].coef;
            }
            for (uint32_t i = 0; i < LABELS; i++) {
                *seen |= at.coef[i] == 0 ? 0 : 1u << i;
            }
        }
        if (load->kind != EXPR_LOAD) {
            continue;
        }
        Place x = place_of(ev->l, load->buf, load->at);
        if (load->buf == ev->bound || *n + 2 + x.rank > KEY_LIMIT) {
            return false;
        }
        key[(*n)++] = (int64_t)load->buf;
        key[(*n)++] = (int64_t)ev->l->home[load->buf].version;
        for (uint32_t d = 0; d < x.rank; d++) {
            key[(*n)++] = x.base[d];
            *seen |= x.label[d] < 0 ? 0 : 1u << x.label[d];
        }
        for (uint32_t i = 0; i < x.n_terms; i++) {
            *seen |= 1u << x.term[i].label;
        }
    }
    return true;
}

bool eval_key_finish(Evaluation *ev, const Expr *e, int64_t *key, uint32_t *n, uint32_t seen)
{
    uint32_t missing = 0;
    for (uint32_t side = 0; side < 2; side++) {
        Labels x = side == 0 ? ev->p : ev->f;
        for (uint32_t i = 0; i < x.n; i++) {
            missing += !(seen >> x.at[i] & 1);
            if (*n + 4 > KEY_LIMIT) {
                return false;
            }
            key[(*n)++] = side * 100 + x.at[i];
            key[(*n)++] = seen >> x.at[i] & 1 ? ev->box->s[x.at[i]] : -1;
            key[(*n)++] = seen >> x.at[i] & 1 ? ev->box->n[x.at[i]] : -1;
        }
    }
    /* labels at one position, which are on neither axis */
    for (uint32_t label = 0; label < ev->l->now.n_labels; label++) {
        if (*n + 2 > KEY_LIMIT) {
            return false;
        }
        if (seen >> label & 1 && !labels_have(ev->p, label) && !labels_have(ev->f, label)) {
            key[(*n)++] = 200 + label;
            key[(*n)++] = ev->box->s[label];
        }
    }
    key[0] = -9;
    key[1] = (int64_t)(intptr_t)e;
    return missing > 0;
}
