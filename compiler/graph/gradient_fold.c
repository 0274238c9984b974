/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of products and folds. */
#include "graph/gradient_parts.h"

/* Operand k of a product: the adjoint times all other factors, over the operand's labels. */
void gradient_back_factor(Grad *d, const Node *node, uint32_t k, NodeRef G)
{
    int32_t label[RANK_LIMIT], there[RANK_LIMIT];
    uint32_t n = gradient_labels_of(node->access[k], label), m = 0, count = 0;
    NodeRef *x = ARENA_ARRAY(d->arena, node->n_operands, NodeRef);
    Access *access = ARENA_ARRAY(d->arena, node->n_operands, Access);
    bool *has = ARENA_ARRAY(d->arena, node->n_labels, bool);
    x[count] = G;
    access[count++] = gradient_access_of(d, node->out, node->rank);
    for (uint32_t o = 0; o < node_factors(node); o++) {
        if (o != k) {
            x[count] = gradient_conjugate(d, node->operand[o]);
            access[count++] = node->access[o];
        }
    }
    for (uint32_t o = 0; o < count; o++) {
        for (uint32_t a = 0; a < access[o].rank; a++) {
            if (access[o].index[a].label >= 0) {
                has[access[o].index[a].label] = true;
            }
        }
    }
    for (uint32_t l = 0; l < n; l++) {
        if (has[label[l]]) {
            there[m++] = label[l];
        }
    }
    NodeRef part = count == 1 ? gradient_summed(d, x[0], node->out, m, there)
                              : gradient_add(d, OP_EINSUM, dtype_computes(node->dtype), count,
                                             x, access, m, there, NULL, NULL);
    if (m < n) { /* what only this factor has is summed of it alone */
        part = gradient_spread(d, part, gradient_access_of(d, there, m), n, label,
                               gradient_extents_of(d, node, label, n));
    }
    gradient_give_read(d, node->operand[k], node->access[k], part);
}

/* The operand of a fold, and the node itself, over the operand's labels. */
typedef struct Folded {
    uint32_t n;
    int32_t label[RANK_LIMIT];
    const Dim *shape;
    NodeRef x, r, G;
} Folded;

static Folded folded_of(Grad *d, NodeRef r, const Node *node, NodeRef G)
{
    Folded f = {0};
    f.n = gradient_labels_of(node->access[0], f.label);
    f.shape = gradient_extents_of(d, node, f.label, f.n);
    Access own = gradient_access_of(d, node->out, node->rank);
    f.x = gradient_spread(d, node->operand[0], node->access[0], f.n, f.label, f.shape);
    f.r = gradient_spread(d, r, own, f.n, f.label, f.shape);
    f.G = gradient_spread(d, G, own, f.n, f.label, f.shape);
    return f;
}

/* All goes to the first place, in the order of the operand's elements, that holds the maximum. */
static NodeRef back_most(Grad *d, const Node *node, const Folded *f)
{
    NodeRef at = NODE_NONE;
    for (uint32_t l = 0; l < f->n; l++) {
        if (!node_reduces(node, f->label[l])) {
            continue;
        }
        int32_t own = (int32_t)l;
        NodeRef index = graph_index(d->g, f->shape[l], DTYPE_I64, d->span);
        NodeRef here = gradient_spread(d, index, gradient_access_of(d, &own, 1), f->n,
                                       labels_in_order(d->arena, f->n), f->shape);
        NodeRef extent = f->shape[l].sym >= 0
                             ? graph_extent(d->g, f->shape[l].sym, DTYPE_I64, d->span)
                             : gradient_number(d, DTYPE_I64, (double)f->shape[l].n);
        at = at == NODE_NONE
                 ? here
                 : gradient_two(d, OP_ADD, gradient_two(d, OP_MUL, at, extent), here);
    }
    if (at == NODE_NONE) {
        return f->G;
    }
    NodeRef last = graph_const(d->g, number_int(DTYPE_I64, INT64_MAX), d->span);
    NodeRef holds = gradient_compared(d, OP_EQ, f->x, f->r);
    NodeRef is = gradient_chosen(d, holds, at, gradient_filled(d, last, f->n, f->shape));
    Access access = gradient_access_of(d, f->label, f->n);
    NodeRef first =
        gradient_add(d, OP_RMIN, DTYPE_I64, 1, &is, &access, node->rank, node->out, NULL, NULL);
    NodeRef spread_first = gradient_spread(
        d, first, gradient_access_of(d, node->out, node->rank), f->n, f->label, f->shape);
    NodeRef nothing = gradient_zeros(d, gradient_type_of(d, f->G), f->n, f->shape);
    holds = gradient_compared(d, OP_EQ, at, spread_first);
    return gradient_chosen(d, holds, f->G, nothing);
}

/* The product of all others: with no zero among them r / x; with one, it is there alone. */
static NodeRef back_product(Grad *d, const Node *node, const Folded *f)
{
    DType t = node->dtype;
    NodeRef nothing = gradient_zeros(d, t, f->n, f->shape), zero = gradient_number(d, t, 0);
    NodeRef is = gradient_compared(d, OP_EQ, f->x, zero);
    NodeRef unit = gradient_filled(d, gradient_number(d, t, 1), f->n, f->shape);
    NodeRef rest = gradient_chosen(d, is, unit, f->x);
    NodeRef yes = gradient_filled(d, gradient_number(d, DTYPE_I64, 1), f->n, f->shape);
    NodeRef no = gradient_filled(d, gradient_number(d, DTYPE_I64, 0), f->n, f->shape);
    NodeRef counted = gradient_chosen(d, is, yes, no);
    Access access = gradient_access_of(d, f->label, f->n),
           own = gradient_access_of(d, node->out, node->rank);
    NodeRef product =
        gradient_add(d, OP_PROD, t, 1, &rest, &access, node->rank, node->out, NULL, NULL);
    NodeRef count = gradient_add(d, OP_SUM, DTYPE_I64, 1, &counted, &access, node->rank,
                                 node->out, NULL, NULL);
    product = gradient_spread(d, product, own, f->n, f->label, f->shape);
    count = gradient_spread(d, count, own, f->n, f->label, f->shape);
    NodeRef none = gradient_compared(d, OP_EQ, count, gradient_number(d, DTYPE_I64, 0));
    NodeRef single = gradient_compared(d, OP_EQ, count, gradient_number(d, DTYPE_I64, 1));
    NodeRef only[2] = {is, single};
    NodeRef alone =
        gradient_chosen(d, gradient_map(d, OP_AND, DTYPE_BOOL, 2, only), product, nothing);
    NodeRef others = gradient_chosen(d, none, gradient_two(d, OP_DIV, product, rest), alone);
    return gradient_two(d, OP_MUL, f->G, gradient_conjugate(d, others));
}

void gradient_back_fold(Grad *d, NodeRef r, const Node *node, NodeRef G)
{
    if (!d->wanted[node->operand[0]]) {
        return;
    }
    Folded f = folded_of(d, r, node, G);
    NodeRef part = node->op == OP_SUM    ? f.G
                   : node->op == OP_PROD ? back_product(d, node, &f)
                                         : back_most(d, node, &f);
    gradient_give_read(d, node->operand[0], node->access[0], part);
}
