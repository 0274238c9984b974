/* SPDX-License-Identifier: Apache-2.0 */
/* Statements whose left side has a position that is a value: `G[tok[n], e] += dY[n,e]`, `K[b, at[b], h, e] = k[b,h,e]`. They are written
 * with a condition: each such dimension gets an index of its own, and an element takes part where the position is that index,
 *
 *     G[v,e] += sum[n, tok[n] == v](dY[n,e])            K[b,p,h,e] = select(at[b] == index(p), k[b,h,e], K[b,p,h,e])
 *
 * and the position lies inside, as on the right. Indices that stand in such positions alone are summed; `=` has none, so that no place has two
 * elements. */
#include "front/check_statement.h"

/* The index has all positions of the dimension. */
static void give_extent(Kern *k, const ScatterLeft *s, uint32_t axis)
{
    Label *l = &k->s.labels.at[s->label[axis]];
    l->extent = k->k->values.at[s->target].type.dims[axis];
    l->given = true;
}

bool scatter_left(Kern *k, const AstNode *left, uint32_t target, ScatterLeft *s)
{
    *s = (ScatterLeft){.target = target, .rank = left->n - 1};
    bool ok = index_count_fits(k, left, target);
    for (uint32_t a = 0; ok && a < s->rank; a++) {
        AstId id = left->child[a + 1];
        const AstNode i = *kern_node(k, id);
        if (i.kind == AST_COMPARE) {
            diag_error(&k->c->ctx->diags, E_SYNTAX, i.span,
                       "beside a position that is a value, an index on the left is a name");
            ok = false;
        } else if (i.kind == AST_NAME && !position_is_value(k, id)) {
            ok = left_index(k, &i, &s->label[a]);
        } else { /* an index of its own */
            s->label[a] = label_new(k, NULL, i.span, true);
            k->s.labels.at[s->label[a]].valued = true;
        }
        if (ok) {
            give_extent(k, s, a);
        }
    }
    uint32_t first = k->s.labels.n; /* labels from here on stand in positions */
    for (uint32_t a = 0; ok && a < s->rank; a++) {
        if (k->s.labels.at[s->label[a]].name == NULL) {
            s->place[a] = position_check(k, target, a, left->child[a + 1]);
            ok = s->place[a]->dtype != DTYPE_NONE;
        }
    }
    s->summed = ARENA_ARRAY(k->c->arena, (size_t)k->s.labels.n - first + 1, int32_t);
    for (uint32_t l = first; l < k->s.labels.n; l++) {
        if (!k->s.labels.at[l].bound) {
            k->s.labels.at[l].bound = true;
            s->summed[s->n_summed++] = (int32_t)l;
        }
    }
    return ok;
}

bool scatter_is_one(Kern *k, const AstNode *left, const ScatterLeft *s)
{
    if (s->n_summed > 0) {
        const Label *l = &k->s.labels.at[s->summed[0]];
        Diagnostic *d =
            diag_error(&k->c->ctx->diags, E_PIECES, left->span,
                       "two elements may have one place: '%s' is in a position that is a value",
                       l->name->text);
        diag_help(d, "'+=' adds them; another fold has the position as its condition: "
                     "max[n, at[n] == p](x[n])");
    }
    return s->n_summed == 0;
}

CheckedExpr *scatter_where(Kern *k, AstId ast, Span at, const ScatterLeft *s)
{
    CheckedExpr *when = NULL;
    for (uint32_t a = 0; a < s->rank; a++) {
        if (s->place[a] != NULL) {
            const AffineTerm here = {(VarRef)s->label[a], 1};
            CheckedExpr *own =
                position_number(k, ast, s->place[a]->span, (Affine){0, 1, &here});
            CheckedExpr *two[2] = {s->place[a], compute_in(k, own, DTYPE_I64)};
            CheckedExpr *is = expr_map(k, OP_EQ, ast, at, at, two, 2);
            is->placed = true;
            is->read = s->target;
            is->dim = (int32_t)a;
            when = both_hold(k, ast, at, when, is);
        }
    }
    return when;
}

CheckedExpr *scatter_sum(Kern *k, const ScatterLeft *s, CheckedExpr *value, CheckedExpr *when)
{
    CheckedExpr *term =
        fold_where(k, value->dtype == DTYPE_BOOL ? OP_ANY : OP_SUM, value, when);
    return s->n_summed == 0 ? term : sum_over(k, term, s->summed, s->n_summed);
}
