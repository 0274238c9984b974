/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of a fold along rows, as one instruction reduces them: those of several positions that are kept, each by itself, in any order of
 * labels, where they lie. */
#include "backend/nki/make.h"
#include "backend/nki/statement.h"
#include "backend/nki/view.h"

#define LONG_SUMS                                                                              \
    128 /* terms of sums that the Scalar engine can make as well, each by itself */

static void add_terms(FoldTerms *t, int64_t count, int64_t step, bool kept)
{
    bool on = t->n > (kept ? 0 : t->kept) && t->step[t->n - 1] == step * count;
    t->n += !on;
    t->count[t->n - 1] = on ? t->count[t->n - 1] * count : count;
    t->step[t->n - 1] = step;
    t->kept = kept ? t->n : t->kept;
}

/* Each element of `to` from terms of its own: by one instruction, or by several that two engines share. */
void fold_terms(Lower *l, TileView to, Op fold, FoldTerms t)
{
    int64_t each = 1;
    for (uint32_t i = t.kept; i < t.n; i++) {
        each *= t.count[i];
    }
    int64_t pieces = fold == OP_SUM && each >= LONG_SUMS && t.kept == 1 ? to.nf : 1;
    t.kept = pieces > 1 ? 0 : t.kept;
    for (int64_t k = 0; k < pieces && !l->tried.failed; k++) {
        uint32_t from = pieces > 1;
        make_reduce_each(l, view_part(to, k, to.nf / pieces), fold, t.v, t.n - from, t.kept,
                         t.count + from, t.step + from);
        t.v.f0 += t.step[0];
    }
}

/* The terms of a fold where they are a value that lies on chip, or is loaded in long rows, in any order of labels. */
bool fold_terms_lie(Lower *l, const Shape *shape, const Expr *value, const Box *box,
                    FoldTerms *t)
{
    const Expr *e = expr_uncast(value);
    Labels f = {0};
    int64_t step[LABELS];
    if (e->kind != EXPR_LOAD || !dtype_is_float(e->dtype)) {
        return false;
    }
    Place x = place_of(l, e->buf, e->at);
    const Labels list[2] = {shape->keep, shape->fold};
    bool all = true;
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < list[k].n; i++) {
            if (box->n[list[k].at[i]] > 1) {
                f.at[f.n++] = list[k].at[i];
                all &= place_has(&x, list[k].at[i]);
            }
        }
    }
    for (uint32_t i = 0; i < shape->p.n; i++) {
        all &= place_has(&x, shape->p.at[i]);
    }
    *t = (FoldTerms){0};
    if (!all || !view_walked(l, &x, shape->p, f, box, FOLDED_DIMS, &t->v, step)) {
        return false;
    }
    for (uint32_t i = 0; i < f.n; i++) {
        add_terms(t, box->n[f.at[i]], step[i], labels_have(shape->keep, f.at[i]));
    }
    return t->n <= FOLDED_DIMS;
}

/* Terms that were evaluated, those of the kept labels or of the folded ones first. */
FoldTerms fold_terms_of(TileView v, bool fold_first, int64_t kept, int64_t folded)
{
    FoldTerms t = {.v = v};
    if (kept > 1) {
        add_terms(&t, kept, v.step * (fold_first ? 1 : folded), true);
    }
    add_terms(&t, folded, v.step * (fold_first ? kept : 1), false);
    return t;
}
