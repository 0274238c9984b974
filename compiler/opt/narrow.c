/* SPDX-License-Identifier: Apache-2.0 */
/* Casts that lose nothing in front of products of matrices. A contraction reads tensors, so what is cast for it alone would
 * be a tensor of its own, as wide as the sum; but it converts what it reads to its type anyway (graph.h), where it copies
 * operands into panels. So it reads what the cast reads. Products with few rows or columns have no panels, and keep their
 * casts; so do complex numbers: who reads a real operand of a complex product has to know that a half of it is zero.
 *
 * And the other way round: products of bools, which have no register tiles, are sums in f32. */
#include "opt/opt.h"

#include "opt/rewrite.h"

/* Rows and columns from which on operands are worth panels. */
#define FEW 8

/* Has the product a sum, and each of its two operands FEW positions that the other one has not? */
static bool is_product(Rewriter *r, const NodeSpec *s)
{
    Uses u = spec_uses(r, s);
    int64_t own[2] = {1, 1};
    bool sums = false;
    for (uint32_t l = 0; l < u.n; l++) {
        const LabelCount *use = &u.of[l];
        sums = sums || (use->operands > 0 && !use->out);
        if (use->operands == 1 && use->out && use->last < 2) {
            own[use->last] = sat_mul(own[use->last], dim_typical(&r->to->dims, use->extent));
        }
    }
    return sums && s->n_operands == 2 && own[0] >= FEW && own[1] >= FEW;
}

/* A cast that loses nothing and has all that it reads at indices of its own: no label goes with it. */
static bool is_widening(const Graph *g, const Node *o)
{
    bool widens = o->op == OP_CAST && o->access[0].rank == o->rank &&
                  dtype_widens(graph_node(g, o->operand[0])->dtype, o->dtype);
    for (uint32_t d = 0; widens && d < o->rank; d++) {
        uint32_t i = 0;
        while (i < o->rank && o->access[0].index[i].label != o->out[d]) {
            i++;
        }
        widens = i < o->rank;
    }
    return widens;
}

static Verdict read_through_casts(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    NodeRef *operand = NULL;
    Access *access = NULL;
    for (uint32_t k = 0; k < s->n_operands && !dtype_is_complex(s->dtype); k++) {
        const Node *o = spec_operand(r, s, k);
        if (!is_widening(r->to, o)) {
            continue;
        }
        if (operand == NULL) {
            if (!is_product(r, s)) {
                return RULE_NO;
            }
            operand = arena_copy(&r->scratch, s->operand, s->n_operands * sizeof *operand);
            access = arena_copy(&r->scratch, s->access, s->n_operands * sizeof *access);
        }
        operand[k] = o->operand[0];
        access[k] = access_see_through(r, o, &s->access[k]);
    }
    if (operand == NULL) {
        return RULE_NO;
    }
    s->operand = operand;
    s->access = access;
    return RULE_SPEC;
}

/* Operand k as f32, and how the spec reads it: as it did the operand, but for positions that are numbers. */
static NodeRef operand_as_f32(Rewriter *r, const NodeSpec *s, uint32_t k)
{
    const Node *o = spec_operand(r, s, k);
    Access access = access_in_order(&r->scratch, o->rank);
    NodeSpec cast = node_spec(OP_CAST, DTYPE_F32, 1, &s->operand[k], &access, o->rank,
                              labels_in_order(&r->scratch, o->rank), o->shape, s->span);
    cast.allow_spill = true;
    return rewrite_add(r, &cast);
}

/* A product of bools says where a sum of ones and zeros is not 0. In f32 that is exact for any number of terms, since none is below 0
 * and a sum that no longer grows is not 0 either. */
static Verdict sum_of_bools(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    if (s->dtype != DTYPE_BOOL || s->onto || !is_product(r, s)) {
        return RULE_NO;
    }
    NodeSpec sum = *s, truth = *s;
    NodeRef operand[2] = {operand_as_f32(r, s, 0), operand_as_f32(r, s, 1)};
    sum.dtype = sum.acc = DTYPE_F32;
    sum.name = NULL;
    sum.allow_spill = true; /* nobody wrote it, nor its operands */
    sum.operand = arena_copy(&r->scratch, operand, sizeof operand);
    Access read = access_of(&r->scratch, s->rank, s->out);
    NodeRef value = rewrite_add(r, &sum);
    truth.op = OP_CAST;
    truth.acc = DTYPE_NONE;
    truth.n_operands = 1;
    truth.operand = arena_copy(&r->scratch, &value, sizeof value);
    truth.access = arena_copy(&r->scratch, &read, sizeof read);
    truth.sliced = (Slices){0};
    *s = truth;
    return RULE_SPEC;
}

/* A product of floats of two types reads both as f32: each that has another type is a tensor of its own then. */
static Verdict widen_mixed(Rewriter *r, NodeSpec *s)
{
    DType t[2] = {DTYPE_NONE, DTYPE_NONE};
    for (uint32_t k = 0; s->n_operands == 2 && k < 2; k++) {
        t[k] = spec_operand(r, s, k)->dtype;
    }
    bool mixed = t[0] != t[1] && (dtype_is_half(t[0]) || t[0] == DTYPE_F32) &&
                 (dtype_is_half(t[1]) || t[1] == DTYPE_F32);
    if (!mixed || !is_product(r, s)) {
        return RULE_NO;
    }
    NodeRef *operand = arena_copy(&r->scratch, s->operand, 2 * sizeof *operand);
    for (uint32_t k = 0; k < 2; k++) {
        operand[k] = t[k] == DTYPE_F32 ? operand[k] : operand_as_f32(r, s, k);
    }
    s->operand = operand;
    return RULE_SPEC;
}

/* The same where all operands come to one type of 16 bits. */
static Verdict read_alike_through_casts(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    NodeSpec read = *s;
    if (read_through_casts(r, &read, done) != RULE_SPEC) {
        return widen_mixed(r, s);
    }
    DType t = spec_operand(r, &read, 0)->dtype;
    for (uint32_t k = 0; k < read.n_operands; k++) {
        if (!dtype_is_half(t) || spec_operand(r, &read, k)->dtype != t) {
            return widen_mixed(r, s);
        }
    }
    *s = read;
    return RULE_SPEC;
}

static const Rule rules[] = {
    {"read-through-casts", OP_EINSUM, read_through_casts},
    {"sum-of-bools", OP_EINSUM, sum_of_bools},
};
static const Rule rules_alike[] = {
    {"read-alike", OP_EINSUM, read_alike_through_casts},
};

/* Does a contraction read what is only widened, bools, or, `mixed`, two types? A large graph is not copied for nothing. */
static bool any_widened(const Graph *g, bool mixed)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (node->op == OP_EINSUM && node->dtype == DTYPE_BOOL) {
            return true;
        }
        if (mixed && node->op == OP_EINSUM && node->n_operands == 2 &&
            graph_node(g, node->operand[0])->dtype != graph_node(g, node->operand[1])->dtype) {
            return true;
        }
        for (uint32_t k = 0; node->op == OP_EINSUM && k < node->n_operands; k++) {
            if (is_widening(g, graph_node(g, node->operand[k]))) {
                return true;
            }
        }
    }
    return false;
}

Graph *opt_narrow(Ctx *ctx, Arena *arena, Graph *g)
{
    return any_widened(g, false)
               ? rewrite_graph(ctx, arena, g, rules, sizeof rules / sizeof rules[0])
               : g;
}

Graph *opt_narrow_alike(Ctx *ctx, Arena *arena, Graph *g)
{
    return any_widened(g, true) ? rewrite_graph(ctx, arena, g, rules_alike,
                                                sizeof rules_alike / sizeof rules_alike[0])
                                : g;
}
