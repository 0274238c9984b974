/* SPDX-License-Identifier: Apache-2.0 */
/* Simplification: the rules, by family, and their table. A rule may rely on nothing that IEEE arithmetic does not give:
 * x + 0 is not x (for x = -0), x * 0 is not 0, x - x is not 0. Functions of libm are not folded, since their last
 * bit is the machine's. */
#include "opt/opt.h"

#include <math.h>

#include "graph/eval.h"
#include "opt/rewrite.h"

static const uint32_t first[1] = {0}, second[1] = {1}, third[1] = {2};

static Verdict become_copy_of(Rewriter *r, NodeSpec *s, uint32_t k)
{
    return spec_become(r, s, OP_COPY, 1, &k);
}

static bool is_real(DType t)
{
    return dtype_is_float(t);
}

static bool number_is(Number v, double value)
{
    return dtype_is_int(v.dtype) ? (double)v.i == value : v.re == value && v.im == 0;
}

/* Zero of the given sign, in both parts if complex; integers have one zero. */
static bool is_zero(Number v, bool negative)
{
    if (!number_is_zero(v) || dtype_is_int(v.dtype)) {
        return number_is_zero(v);
    }
    return !signbit(v.re) == !negative &&
           (!dtype_is_complex(v.dtype) || !signbit(v.im) == !negative);
}

/* ---- constants ---- */

static Verdict fold_constants(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number arg[3];
    if (op_info(s->op)->kind != OPKIND_MAP || s->op == OP_COPY || s->n_operands > 3) {
        return RULE_NO;
    }
    for (uint32_t k = 0; k < s->n_operands; k++) {
        if (!spec_const(r, s, k, &arg[k])) {
            return RULE_NO;
        }
    }
    OpFolds folds = op_info(s->op)->folds;
    if (folds == FOLDS_NEVER || (folds == FOLDS_REAL && dtype_is_complex(arg[0].dtype))) {
        return RULE_NO;
    }
    return spec_become_const(r, s, op_value(s->op, s->dtype, arg));
}

/* ---- casts and parts ---- */

static Verdict drop_idle_cast(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    return spec_operand(r, s, 0)->dtype == s->dtype ? become_copy_of(r, s, 0) : RULE_NO;
}

/* A cast of a cast that lost nothing is one cast. */
static Verdict join_casts(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    const Node *o = spec_operand(r, s, 0);
    if (o->op != OP_CAST || !dtype_widens(graph_node(r->to, o->operand[0])->dtype, o->dtype)) {
        return RULE_NO;
    }
    spec_see_through(r, s, 0);
    return RULE_SPEC;
}

static Verdict drop_part_of_real(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    if (dtype_is_complex(spec_operand(r, s, 0)->dtype)) {
        return RULE_NO;
    }
    return s->op == OP_IM ? spec_become_const(r, s, number_int(s->dtype, 0))
                          : become_copy_of(r, s, 0);
}

/* ---- one operand ---- */

/* neg neg, not not, conj conj: both vanish. */
static Verdict drop_involution(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    if (spec_operand(r, s, 0)->op != s->op) {
        return RULE_NO;
    }
    spec_see_through(r, s, 0);
    return become_copy_of(r, s, 0);
}

/* ---- sums and differences ---- */

/* x + -0, x + 0 for integers; either side. */
static Verdict add_zero(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number v;
    if (spec_const(r, s, 1, &v) && is_zero(v, true)) {
        return become_copy_of(r, s, 0);
    }
    return spec_const(r, s, 0, &v) && is_zero(v, true) ? become_copy_of(r, s, 1) : RULE_NO;
}

/* x - 0; 0 - x for integers, -0 - x for floats. */
static Verdict sub_zero(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number v;
    if (spec_const(r, s, 1, &v) && is_zero(v, false)) {
        return become_copy_of(r, s, 0);
    }
    return spec_const(r, s, 0, &v) && is_zero(v, true) ? spec_become(r, s, OP_NEG, 1, second)
                                                       : RULE_NO;
}

/* x + -y = x - y, -x + y = y - x, x - -y = x + y */
static Verdict add_of_neg(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    static const uint32_t swapped[2] = {1, 0};
    if (spec_operand(r, s, 1)->op == OP_NEG) {
        spec_see_through(r, s, 1);
        s->op = s->op == OP_ADD ? OP_SUB : OP_ADD;
        return RULE_SPEC;
    }
    if (s->op == OP_ADD && spec_operand(r, s, 0)->op == OP_NEG) {
        spec_see_through(r, s, 0);
        return spec_become(r, s, OP_SUB, 2, swapped);
    }
    return RULE_NO;
}

/* x - x = 0 for integers only */
static Verdict sub_self(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    bool same = dtype_is_int(s->dtype) && spec_same(s, 0, 1);
    return same ? spec_become_const(r, s, number_int(s->dtype, 0)) : RULE_NO;
}

/* ---- products and quotients ---- */

/* x * 1 (not complex: the product with 1 + 0i makes NaN of infinities), x * -1, x * 0 for integers; either side. */
static Verdict mul_unit(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number v;
    for (uint32_t k = 0; k < 2; k++) {
        if (!spec_const(r, s, k, &v) || dtype_is_complex(v.dtype)) {
            continue;
        }
        if (number_is(v, 1)) {
            return become_copy_of(r, s, 1 - k);
        }
        if (number_is(v, -1)) {
            return spec_become(r, s, OP_NEG, 1, k == 0 ? second : first);
        }
        if (dtype_is_int(v.dtype) && v.i == 0) {
            return spec_become_const(r, s, v);
        }
    }
    return RULE_NO;
}

/* x / 1; x / 2^k = x * 2^-k for floats */
static Verdict div_unit(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number v;
    int exponent = 0;
    if (!spec_const(r, s, 1, &v) || dtype_is_complex(v.dtype)) {
        return RULE_NO;
    }
    if (number_is(v, 1)) {
        return become_copy_of(r, s, 0);
    }
    if (!is_real(v.dtype) || !isfinite(v.re) || fabs(frexp(v.re, &exponent)) != 0.5 ||
        exponent < -10 || exponent > 10) { /* so that the reciprocal is normal in every type */
        return RULE_NO;
    }
    const NodeRef operand[2] = {s->operand[0],
                                graph_const(r->to, number_real(v.dtype, 1 / v.re), s->span)};
    return spec_set(r, s, OP_MUL, 2, operand, s->access);
}

/* scale(0, x) = 0; scale(c, x) = c * x for any other constant */
static Verdict scale_constant(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number v;
    if (!spec_const(r, s, 0, &v)) {
        return RULE_NO;
    }
    if (number_is_zero(v)) {
        return spec_become_const(r, s, number_int(s->dtype, 0));
    }
    s->op = OP_MUL;
    return RULE_SPEC;
}

/* ---- positions that wrap around ---- */

/* A map of two operands of at most one dimension, which is the same. */
static NodeRef map_of_places(Rewriter *r, const NodeSpec *like, Op op, DType t, NodeRef x,
                             NodeRef y)
{
    static const Index own[1] = {{0, 0}};
    static const int32_t out[1] = {0};
    const NodeRef operand[2] = {x, y};
    Access access[2];
    uint32_t rank = 0;
    const Dim *shape = NULL;
    for (uint32_t k = 0; k < 2; k++) {
        const Node *n = graph_node(r->to, operand[k]);
        access[k] = (Access){n->rank, own};
        rank = n->rank > rank ? n->rank : rank;
        shape = n->rank > 0 ? n->shape : shape;
    }
    NodeSpec s = node_spec(op, t, 2, arena_copy(&r->scratch, operand, sizeof operand),
                           arena_copy(&r->scratch, access, sizeof access), rank, out,
                           rank > 0 ? shape : NULL, like->span);
    return rewrite_add(r, &s);
}

/* mod(index(i) + c, n), i below n: p = index(i) + mod(c, n) is below 2 n, so it is select(p >= n, p - n, p), without a division for
 * each i, and on targets that have no mod of integers. */
static Verdict wrap_index(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    const Node *sum = spec_operand(r, s, 0), *of = spec_operand(r, s, 1);
    if (s->dtype != DTYPE_I64 || sum->op != OP_ADD || sum->rank != 1) {
        return RULE_NO;
    }
    const NodeRef extent = s->operand[1];
    uint32_t k = graph_node(r->to, sum->operand[0])->op == OP_INDEX ? 0 : 1;
    const NodeRef index = sum->operand[k], shift = sum->operand[1 - k];
    const Node *at = graph_node(r->to, index);
    if (at->op != OP_INDEX || graph_node(r->to, shift)->op != OP_CONST) {
        return RULE_NO;
    }
    const Dim n = at->shape[0];
    if (n.sym >= 0 ? of->op != OP_EXTENT || of->dim != n.sym
                   : of->op != OP_CONST || of->value.i != n.n) {
        return RULE_NO;
    }
    NodeRef first_place = map_of_places(r, s, OP_MOD, DTYPE_I64, shift, extent);
    NodeRef place = map_of_places(r, s, OP_ADD, DTYPE_I64, index, first_place);
    NodeRef beyond = map_of_places(r, s, OP_GE, DTYPE_BOOL, place, extent);
    NodeRef behind = map_of_places(r, s, OP_SUB, DTYPE_I64, place, extent);
    const NodeRef operand[3] = {beyond, behind, place};
    const Access access[3] = {s->access[0], s->access[0], s->access[0]};
    return spec_set(r, s, OP_SELECT, 3, operand, access);
}

/* ---- choices ---- */

/* min(x, x), max(x, x), and(x, x), or(x, x) */
static Verdict drop_idempotent(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    return spec_same(s, 0, 1) ? become_copy_of(r, s, 0) : RULE_NO;
}

/* and, or with a constant on either side */
static Verdict logic_constant(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number v;
    for (uint32_t k = 0; k < 2; k++) {
        if (spec_const(r, s, k, &v)) {
            bool idle = (v.i != 0) == (s->op == OP_AND);
            return idle ? become_copy_of(r, s, 1 - k) : spec_become_const(r, s, v);
        }
    }
    return RULE_NO;
}

static Verdict select_known(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Number v;
    if (spec_same(s, 1, 2)) {
        return become_copy_of(r, s, 1);
    }
    if (spec_const(r, s, 0, &v)) {
        return spec_become(r, s, OP_COPY, 1, v.i != 0 ? second : third);
    }
    return RULE_NO;
}

/* select(not c, x, y) = select(c, y, x) */
static Verdict select_not(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    static const uint32_t swapped[3] = {0, 2, 1};
    if (spec_operand(r, s, 0)->op != OP_NOT) {
        return RULE_NO;
    }
    spec_see_through(r, s, 0);
    return spec_become(r, s, OP_SELECT, 3, swapped);
}

/* ---- the table; the first rule that applies is taken ---- */

static const Rule rules[] = {
    {"read-through-copies", OP_COUNT, rule_read_through_copies},
    {"drop-idle-copy", OP_COPY, rule_drop_idle_copy},
    {"drop-idle-reduction", OP_COUNT, rule_drop_idle_reduction},
    {"fold-constants", OP_COUNT, fold_constants},
    {"drop-idle-cast", OP_CAST, drop_idle_cast},
    {"join-casts", OP_CAST, join_casts},
    {"re-of-real", OP_RE, drop_part_of_real},
    {"im-of-real", OP_IM, drop_part_of_real},
    {"conj-of-real", OP_CONJ, drop_part_of_real},
    {"neg-neg", OP_NEG, drop_involution},
    {"not-not", OP_NOT, drop_involution},
    {"conj-conj", OP_CONJ, drop_involution},
    {"add-zero", OP_ADD, add_zero},
    {"sub-zero", OP_SUB, sub_zero},
    {"add-neg", OP_ADD, add_of_neg},
    {"sub-neg", OP_SUB, add_of_neg},
    {"sub-self", OP_SUB, sub_self},
    {"mul-unit", OP_MUL, mul_unit},
    {"div-unit", OP_DIV, div_unit},
    {"wrap-index", OP_MOD, wrap_index},
    {"scale-constant", OP_SCALE, scale_constant},
    {"min-self", OP_MIN, drop_idempotent},
    {"max-self", OP_MAX, drop_idempotent},
    {"and-self", OP_AND, drop_idempotent},
    {"or-self", OP_OR, drop_idempotent},
    {"and-constant", OP_AND, logic_constant},
    {"or-constant", OP_OR, logic_constant},
    {"select-known", OP_SELECT, select_known},
    {"select-not", OP_SELECT, select_not},
};

Graph *opt_simplify(Ctx *ctx, Arena *arena, const Graph *g)
{
    return rewrite_graph(ctx, arena, g, rules, sizeof rules / sizeof rules[0]);
}
