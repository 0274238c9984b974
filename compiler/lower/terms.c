/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of which terms are added up elsewhere: what these are multiplied by, and what is left of the sum. */
#include "lower/build.h"
#include "nest/addends.h"

/* Numbers of one type; of complex ones the real parts, others are no factors. */
static Number times(Number x, Number y, DType t)
{
    return dtype_is_int(t) ? number_int(t, (int64_t)((uint64_t)x.i * (uint64_t)y.i))
                           : number_cast(number_real(DTYPE_F64, x.re * y.re), t);
}

const Expr *build_factor(Builder *b, NodeRef node)
{
    const Node *n = graph_node(b->g, node);
    NodeRef sum = b->nest->values[node].term_of;
    NestTerms terms = {0};
    uint32_t at = 0;
    if (sum == NODE_NONE) {
        return NULL;
    }
    nest_terms(b->arena, b->g, b->residence, sum, &terms);
    while (terms.list.at[at].node != node) {
        at++;
        CHECK(at < terms.list.n);
    }
    const NestFactor *f = &terms.list.at[at].factor;
    Number number = number_cast(number_int(DTYPE_I64, f->negative ? -1 : 1), n->acc);
    const Expr *factor = NULL;
    bool any = f->negative;
    for (uint32_t k = 0; k < f->n_scales; k++) {
        const Node *scale = graph_node(b->g, f->scale[k]);
        if (scale->op == OP_CONST) {
            number = times(number, scale->value, n->acc);
            any = true;
            continue;
        }
        const Expr *pair[2] = {factor, build_expr(b, f->scale[k], (Access){0}, NULL)};
        factor = factor == NULL ? pair[1] : expr_op(b->arena, OP_MUL, n->acc, 2, pair);
    }
    const Expr *pair[2] = {any ? expr_const(b->arena, number) : NULL, factor};
    return pair[0] == NULL  ? factor
           : factor == NULL ? pair[0]
                            : expr_op(b->arena, OP_MUL, n->acc, 2, pair);
}

const Expr *build_rest(Builder *b, NodeRef sum, const Position *pos)
{
    const Node *s = graph_node(b->g, sum);
    const Expr *rest = NULL, *place = NULL;
    NestTerms terms = {0};
    nest_terms(b->arena, b->g, b->residence, sum, &terms);
    for (uint32_t i = 0; i < terms.list.n; i++) {
        const NestTerm *t = &terms.list.at[i];
        const NestValue *v = &b->nest->values[t->node];
        bool gone = v->term_of == sum;
        if (gone && v->residence != RESIDE_INTO) {
            place = build_expr(b, t->node, t->access, pos);
        }
        const Expr *x = gone ? NULL : build_expr(b, t->node, t->access, pos);
        for (uint32_t k = 0; x != NULL && k < t->factor.n_scales; k++) {
            const Expr *pair[2] = {build_expr(b, t->factor.scale[k], (Access){0}, NULL), x};
            x = expr_op(b->arena, OP_MUL, s->dtype, 2, pair);
        }
        if (x == NULL) {
            continue;
        }
        const Expr *pair[2] = {rest, x};
        rest = rest != NULL
                   ? expr_op(b->arena, t->factor.negative ? OP_SUB : OP_ADD, s->dtype, 2, pair)
               : t->factor.negative ? expr_op(b->arena, OP_NEG, s->dtype, 1, &x)
                                    : x;
    }
    const Expr *both[2] = {place, rest};
    return place == NULL  ? rest
           : rest == NULL ? place
                          : expr_op(b->arena, OP_ADD, s->dtype, 2, both);
}
