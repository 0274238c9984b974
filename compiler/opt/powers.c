/* SPDX-License-Identifier: Apache-2.0 */
/* Powers and magnitudes as products, which are hundreds of times as fast as the functions of the libraries and take part in
 * contractions:
 *
 *     pow(x, 2)  ->  x * x           pow(x, 3)  ->  x * x * x          pow(x, 4)  ->  (x * x) * (x * x)
 *     pow(x, 1)  ->  x               pow(x, -1) ->  1 / x
 *     abs(z) * abs(z), z complex     ->  re(z) * re(z) + im(z) * im(z)
 *
 * Squares and reciprocals are rounded once, so they are as exact as a power can be; the others have two roundings, the magnitude one
 * more than its own square. A square of a magnitude of which one part is infinite and the other a NaN is a NaN. Not pow(x, 0), which
 * reads no x, nor pow(x, 0.5), of which -0 and -infinity are special. */
#include "opt/opt.h"

#include "opt/rewrite.h"

/* A node of the new graph for `op` of n operands, over the labels of the spec. */
static NodeRef add_of(Rewriter *r, const NodeSpec *s, Op op, const NodeRef *operand,
                      const Access *access, uint32_t n)
{
    NodeSpec x =
        node_spec(op, s->dtype, n, operand, access, s->rank, s->out, s->out_shape, s->span);
    x.names = s->names;
    return rewrite_add(r, &x);
}

/* The spec becomes `op` of two values, each read with one label for each dimension of the result. */
static Verdict become_of(Rewriter *r, NodeSpec *s, Op op, NodeRef x, NodeRef y)
{
    const Access own = access_of(&r->scratch, s->rank, s->out);
    const NodeRef operand[2] = {x, y};
    const Access access[2] = {own, own};
    return spec_set(r, s, op, 2, operand, access);
}

static Verdict power_of_number(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    Number n;
    (void)done;
    if (!spec_const(r, s, 1, &n) || !dtype_is_float(s->dtype)) {
        return RULE_NO;
    }
    static const uint32_t base[1] = {0}, square[2] = {0, 0};
    const NodeRef x[2] = {s->operand[0], s->operand[0]};
    const Access at[2] = {s->access[0], s->access[0]};
    if (n.re == 1) {
        return spec_become(r, s, OP_COPY, 1, base);
    }
    if (n.re == 2) {
        return spec_become(r, s, OP_MUL, 2, square);
    }
    if (n.re == 3 || n.re == 4) {
        NodeRef two = add_of(r, s, OP_MUL, x, at, 2);
        NodeRef other = n.re == 4 ? two : add_of(r, s, OP_COPY, x, at, 1);
        return become_of(r, s, OP_MUL, two, other);
    }
    if (n.re == -1) {
        const NodeRef operand[2] = {graph_const(r->to, number_real(s->dtype, 1), s->span),
                                    s->operand[0]};
        const Access access[2] = {{0, NULL}, s->access[0]};
        return spec_set(r, s, OP_DIV, 2, operand, access);
    }
    return RULE_NO;
}

static Verdict square_of_magnitude(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    const Node *abs = spec_operand(r, s, 0);
    if (!spec_same(s, 0, 1) || abs->op != OP_ABS ||
        !dtype_is_complex(graph_node(r->to, abs->operand[0])->dtype)) {
        return RULE_NO;
    }
    const NodeRef z[1] = {abs->operand[0]};
    const Access at[1] = {access_see_through(r, abs, &s->access[0])};
    NodeRef square[2];
    for (uint32_t k = 0; k < 2; k++) {
        NodeRef part = add_of(r, s, k == 0 ? OP_RE : OP_IM, z, at, 1);
        NodeSpec product = *s;
        product.name = NULL;
        (void)become_of(r, &product, OP_MUL, part, part);
        square[k] = rewrite_add(r, &product);
    }
    return become_of(r, s, OP_ADD, square[0], square[1]);
}

static const Rule rules[] = {
    {"read-through-copies", OP_COUNT, rule_read_through_copies},
    {"drop-idle-copy", OP_COPY, rule_drop_idle_copy},
    {"power-of-number", OP_POW, power_of_number},
    {"square-of-magnitude", OP_MUL, square_of_magnitude},
};

Graph *opt_powers(Ctx *ctx, Arena *arena, const Graph *g)
{
    return rewrite_graph(ctx, arena, g, rules, sizeof rules / sizeof rules[0]);
}
