/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that derivatives are made of, and what is added to the adjoint of a value. */
#include "graph/gradient_parts.h"

NodeRef gradient_add(Grad *d, Op op, DType t, uint32_t n, const NodeRef *x,
                     const Access *access, uint32_t rank, const int32_t *out, const Dim *shape,
                     const Affine *at)
{
    NodeSpec spec = node_spec(op, t, n, x, access, rank, out, shape, d->span);
    spec.at = at;
    return graph_add(d->g, &spec);
}

Access gradient_access_of(Grad *d, const int32_t *label, uint32_t rank)
{
    return access_of(d->arena, rank, label);
}

/* Element by element; operands of rank 0 stand beside all. */
NodeRef gradient_map(Grad *d, Op op, DType t, uint32_t n, const NodeRef *x)
{
    Access access[3];
    uint32_t of = 0;
    for (uint32_t a = 0; a < n; a++) {
        const Node *o = graph_node(d->g, x[a]);
        access[a] = access_in_order(d->arena, o->rank);
        of = o->rank > graph_node(d->g, x[of])->rank ? a : of;
    }
    const Node *o = graph_node(d->g, x[of]);
    uint32_t rank = o->rank;
    return gradient_add(d, op, t, n, x, access, rank, labels_in_order(d->arena, rank), o->shape,
                        NULL);
}

DType gradient_type_of(Grad *d, NodeRef x)
{
    return graph_node(d->g, x)->dtype;
}

NodeRef gradient_one(Grad *d, Op op, NodeRef x)
{
    DType t = gradient_type_of(d, x);
    bool part = op == OP_RE || op == OP_IM || op == OP_ABS;
    return gradient_map(d, op, part ? dtype_part(t) : t, 1, &x);
}

NodeRef gradient_two(Grad *d, Op op, NodeRef x, NodeRef y)
{
    NodeRef both[2] = {x, y};
    return gradient_map(d, op, gradient_type_of(d, x), 2, both);
}

NodeRef gradient_compared(Grad *d, Op op, NodeRef x, NodeRef y)
{
    NodeRef both[2] = {x, y};
    return gradient_map(d, op, DTYPE_BOOL, 2, both);
}

NodeRef gradient_chosen(Grad *d, NodeRef c, NodeRef x, NodeRef y)
{
    NodeRef all[3] = {c, x, y};
    return gradient_map(d, OP_SELECT, gradient_type_of(d, x), 3, all);
}

NodeRef gradient_number(Grad *d, DType t, double x)
{
    return graph_const(d->g, dtype_is_int(t) ? number_int(t, (int64_t)x) : number_real(t, x),
                       d->span);
}

NodeRef gradient_cast(Grad *d, NodeRef x, DType t)
{
    return gradient_type_of(d, x) == t ? x : gradient_map(d, OP_CAST, t, 1, &x);
}

/* x as `t`: of complex numbers that become real, the real part. */
static NodeRef as_type(Grad *d, NodeRef x, DType t)
{
    if (dtype_is_complex(gradient_type_of(d, x)) && !dtype_is_complex(t)) {
        x = gradient_one(d, OP_RE, x);
    }
    return gradient_cast(d, x, t);
}

NodeRef gradient_conjugate(Grad *d, NodeRef x)
{
    return dtype_is_complex(gradient_type_of(d, x)) ? gradient_one(d, OP_CONJ, x) : x;
}

/* Read with these labels, as a tensor over others; labels that it lacks repeat it. */
NodeRef gradient_spread(Grad *d, NodeRef x, Access read, uint32_t rank, const int32_t *out,
                        const Dim *shape)
{
    return gradient_add(d, OP_COPY, gradient_type_of(d, x), 1, &x, &read, rank, out, shape,
                        NULL);
}

NodeRef gradient_filled(Grad *d, NodeRef x, uint32_t rank, const Dim *shape)
{
    return gradient_spread(d, x, (Access){0, NULL}, rank, labels_in_order(d->arena, rank),
                           shape);
}

NodeRef gradient_zeros(Grad *d, DType t, uint32_t rank, const Dim *shape)
{
    return gradient_filled(d, gradient_number(d, t, 0), rank, shape);
}

/* Views are of what is no view. */
static NodeRef solid(Grad *d, NodeRef x)
{
    const Node *n = graph_node(d->g, x);
    bool leaf = op_info(n->op)->kind == OPKIND_LEAF && n->op != OP_INPUT;
    if (n->op != OP_VIEW && !leaf) {
        return x;
    }
    uint32_t rank = n->rank;
    const Dim *shape = n->shape;
    return gradient_spread(d, x, access_in_order(d->arena, rank), rank,
                           labels_in_order(d->arena, rank), shape);
}

NodeRef gradient_view(Grad *d, NodeRef x, uint32_t rank, const Dim *shape, const Affine *at)
{
    x = solid(d, x);
    Access whole = access_whole(d->arena, graph_node(d->g, x)->rank);
    return gradient_add(d, OP_VIEW, gradient_type_of(d, x), 1, &x, &whole, rank,
                        labels_in_order(d->arena, rank), shape, at);
}

/* Zeros of a shape, with x at positions of its own dimensions. */
NodeRef gradient_placed(Grad *d, NodeRef x, uint32_t rank, const Dim *shape, const Affine *at)
{
    NodeRef both[2] = {gradient_zeros(d, gradient_type_of(d, x), rank, shape), x};
    uint32_t own = graph_node(d->g, x)->rank;
    Access access[2] = {access_whole(d->arena, rank), access_whole(d->arena, own)};
    Affine *all = ARENA_ARRAY(d->arena, 2 * rank, Affine);
    for (uint32_t a = 0; a < rank; a++) {
        all[a] = affine_var(d->arena, a);
        all[rank + a] = at[a];
    }
    return gradient_add(d, OP_UPDATE, gradient_type_of(d, x), 2, both, access, rank,
                        labels_in_order(d->arena, rank), shape, all);
}

NodeRef gradient_summed(Grad *d, NodeRef x, const int32_t *label, uint32_t rank,
                        const int32_t *out)
{
    Access access = gradient_access_of(d, label, graph_node(d->g, x)->rank);
    return gradient_add(d, OP_SUM, gradient_type_of(d, x), 1, &x, &access, rank, out, NULL,
                        NULL);
}

/* ---- adjoints ---- */

void gradient_give(Grad *d, NodeRef to, NodeRef part)
{
    if (!d->wanted[to]) {
        return;
    }
    part = as_type(d, part, dtype_computes(gradient_type_of(d, to)));
    d->adjoint[to] =
        d->adjoint[to] == NODE_NONE ? part : gradient_two(d, OP_ADD, d->adjoint[to], part);
}

/* The labels that an access has, each once. */
uint32_t gradient_labels_of(Access a, int32_t *label)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < a.rank; k++) {
        bool before = a.index[k].label < 0;
        for (uint32_t j = 0; j < n; j++) {
            before = before || label[j] == a.index[k].label;
        }
        if (!before) {
            label[n++] = a.index[k].label;
        }
    }
    return n;
}

/* A tensor over the labels of an access, as one of the operand that is read so: beside a diagonal, and beside a position that is read
 * alone, there are zeros. */
void gradient_give_read(Grad *d, NodeRef to, Access read, NodeRef part)
{
    int32_t label[RANK_LIMIT], own[RANK_LIMIT];
    uint32_t n = gradient_labels_of(read, label), m = 0;
    if (n == read.rank) {
        gradient_give(d, to, part);
        return;
    }
    const Node *o = graph_node(d->g, to);
    uint32_t rank = o->rank;
    const Dim *of = o->shape;
    Dim *shape = ARENA_ARRAY(d->arena, rank, Dim);
    Affine *at = ARENA_ARRAY(d->arena, rank, Affine);
    uint32_t *first =
        ARENA_ARRAY(d->arena, rank, uint32_t); /* of the dimensions that have a label */
    for (uint32_t a = 0; a < rank; a++) {
        at[a] = affine_const(read.index[a].offset);
        if (read.index[a].label >= 0) {
            first[m] = m;
            for (uint32_t b = 0, k = 0; b < a; b++) {
                if (read.index[b].label >= 0) {
                    first[m] = read.index[b].label == read.index[a].label && first[m] == m
                                   ? k
                                   : first[m];
                    k++;
                }
            }
            shape[m] = of[a];
            at[a] = affine_var(d->arena, m++);
        }
    }
    for (uint32_t l = 0, k = 0; k < m; k++) {
        if (first[k] == k) {
            own[l++] = (int32_t)k;
        }
    }
    NodeRef is = NODE_NONE;
    const int32_t *all = labels_in_order(d->arena, m);
    for (uint32_t k = 0; k < m; k++) {
        if (first[k] != k) {
            NodeRef index = graph_index(d->g, shape[k], DTYPE_I64, d->span),
                    both[2] = {is, NODE_NONE};
            int32_t here = (int32_t)k, there = (int32_t)first[k];
            NodeRef x = gradient_spread(d, index, gradient_access_of(d, &here, 1), m, all,
                                        shape),
                    y = gradient_spread(d, index, gradient_access_of(d, &there, 1), m, all,
                                        shape);
            both[1] = gradient_compared(d, OP_EQ, x, y);
            is = is == NODE_NONE ? both[1] : gradient_map(d, OP_AND, DTYPE_BOOL, 2, both);
        }
    }
    if (is != NODE_NONE) {
        part = gradient_spread(d, part, gradient_access_of(d, own, n), m, all, shape);
        part = gradient_chosen(d, is, part,
                               gradient_zeros(d, gradient_type_of(d, part), m, shape));
    }
    gradient_give(d, to, m == rank ? part : gradient_placed(d, part, rank, of, at));
}

const Dim *gradient_extents_of(Grad *d, const Node *node, const int32_t *label, uint32_t n)
{
    Dim *shape = ARENA_ARRAY(d->arena, n, Dim);
    for (uint32_t l = 0; l < n; l++) {
        shape[l] = node->extent[label[l]];
    }
    return shape;
}

/* A tensor of the node's shape, summed over what the operand lacks. */
void gradient_give_operand(Grad *d, const Node *node, uint32_t k, NodeRef part)
{
    int32_t label[RANK_LIMIT];
    uint32_t n = gradient_labels_of(node->access[k], label);
    if (d->wanted[node->operand[k]]) {
        gradient_give_read(d, node->operand[k], node->access[k],
                           gradient_summed(d, part, node->out, n, label));
    }
}
