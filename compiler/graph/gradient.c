/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives, from the results back to the parameters. The adjoint of a value v is what the seeds say of the results, times how those
 * change with v: a tensor of v's shape. Each reader of v adds a part to it, and when all have, the value's own operands get theirs:
 *
 *     C = einsum A[i,k], B[k,j] -> [i,j]     gives A   einsum C'[i,j], B[k,j] -> [i,k]
 *     y = exp x[i] -> [i]                    gives x   y'[i] * y[i]
 *     s = reduce.sum x[i,j] -> [i]           gives x   copy s'[i] -> [i,j]
 *     w = view x[a+b] -> [a,b]               gives x   the sum over b of w' moved by b, with zeros around it
 *     p = join a at [i], b at [i + n]        gives b   view p'[i + n]
 *     g = gather T, tok[n], [e] -> [n,e]     gives T   reduce.sum over n of g'[n,e] where tok[n] is the position: a scatter
 *
 * All are nodes of the same graph as the values, so that whoever plans it decides what is kept and what is computed again. Of complex
 * numbers z = a + bi the adjoint is (d/da) + (d/db) i. Where a function has a kink the derivative is that of the first case that holds: 0 of
 * abs and relu at 0, of a maximum all goes to its first place. */
#include "graph/gradient.h"

#include <math.h>
#include <string.h>

typedef struct Grad {
    Ctx *ctx;
    Graph *g;
    Arena *arena;
    NodeRef *adjoint; /* of each value of the kernel; NODE_NONE: nothing so far */
    bool *wanted;     /* does it change with a parameter that is named? */
    uint32_t n;       /* values of the kernel */
    Span span;
} Grad;

/* 16-bit types are storage: what is added up is f32. */
static DType adjoint_type(DType t)
{
    return dtype_is_half(t) ? DTYPE_F32 : t;
}

static bool has_adjoint(DType t)
{
    return dtype_is_float(t) || dtype_is_complex(t);
}

/* ---- nodes ---- */

static NodeRef add(Grad *d, Op op, DType t, uint32_t n, const NodeRef *x, const Access *access,
                   uint32_t rank, const int32_t *out, const Dim *shape, const Affine *at)
{
    NodeSpec spec = {.op = op,
                     .dtype = t,
                     .n_operands = n,
                     .operand = x,
                     .access = access,
                     .rank = rank,
                     .out = out,
                     .out_shape = shape,
                     .at = at,
                     .span = d->span};
    return graph_add(d->g, &spec);
}

static Access access_of(Grad *d, const int32_t *label, uint32_t rank)
{
    Index *index = ARENA_ARRAY(d->arena, rank, Index);
    for (uint32_t a = 0; a < rank; a++) {
        index[a] = (Index){label == NULL ? (int32_t)a : label[a], 0};
    }
    return (Access){rank, index};
}

static const int32_t *in_order(Grad *d, uint32_t rank)
{
    int32_t *out = ARENA_ARRAY(d->arena, rank, int32_t);
    for (uint32_t a = 0; a < rank; a++) {
        out[a] = (int32_t)a;
    }
    return out;
}

static Access read_whole(Grad *d, uint32_t rank)
{
    Index *index = ARENA_ARRAY(d->arena, rank, Index);
    for (uint32_t a = 0; a < rank; a++) {
        index[a] = (Index){-1, 0};
    }
    return (Access){rank, index};
}

/* Element by element; operands of rank 0 stand beside all. */
static NodeRef map(Grad *d, Op op, DType t, uint32_t n, const NodeRef *x)
{
    Access access[3];
    uint32_t of = 0;
    for (uint32_t a = 0; a < n; a++) {
        const Node *o = graph_node(d->g, x[a]);
        access[a] = access_of(d, NULL, o->rank);
        of = o->rank > graph_node(d->g, x[of])->rank ? a : of;
    }
    const Node *o = graph_node(d->g, x[of]);
    uint32_t rank = o->rank;
    return add(d, op, t, n, x, access, rank, in_order(d, rank), o->shape, NULL);
}

static DType type_of(Grad *d, NodeRef x)
{
    return graph_node(d->g, x)->dtype;
}

static NodeRef one(Grad *d, Op op, NodeRef x)
{
    DType t = type_of(d, x);
    bool part = op == OP_RE || op == OP_IM || op == OP_ABS;
    return map(d, op, part ? dtype_part(t) : t, 1, &x);
}

static NodeRef two(Grad *d, Op op, NodeRef x, NodeRef y)
{
    NodeRef both[2] = {x, y};
    return map(d, op, type_of(d, x), 2, both);
}

static NodeRef compared(Grad *d, Op op, NodeRef x, NodeRef y)
{
    NodeRef both[2] = {x, y};
    return map(d, op, DTYPE_BOOL, 2, both);
}

static NodeRef chosen(Grad *d, NodeRef c, NodeRef x, NodeRef y)
{
    NodeRef all[3] = {c, x, y};
    return map(d, OP_SELECT, type_of(d, x), 3, all);
}

static NodeRef number(Grad *d, DType t, double x)
{
    return graph_const(d->g, dtype_is_int(t) ? number_int(t, (int64_t)x) : number_real(t, x),
                       d->span);
}

static NodeRef cast(Grad *d, NodeRef x, DType t)
{
    return type_of(d, x) == t ? x : map(d, OP_CAST, t, 1, &x);
}

/* x as `t`: of complex numbers that become real, the real part. */
static NodeRef as_type(Grad *d, NodeRef x, DType t)
{
    if (dtype_is_complex(type_of(d, x)) && !dtype_is_complex(t)) {
        x = one(d, OP_RE, x);
    }
    return cast(d, x, t);
}

static NodeRef conjugate(Grad *d, NodeRef x)
{
    return dtype_is_complex(type_of(d, x)) ? one(d, OP_CONJ, x) : x;
}

/* Read with these labels, as a tensor over others; labels that it lacks repeat it. */
static NodeRef spread(Grad *d, NodeRef x, Access read, uint32_t rank, const int32_t *out,
                      const Dim *shape)
{
    return add(d, OP_COPY, type_of(d, x), 1, &x, &read, rank, out, shape, NULL);
}

static NodeRef filled(Grad *d, NodeRef x, uint32_t rank, const Dim *shape)
{
    return spread(d, x, (Access){0, NULL}, rank, in_order(d, rank), shape);
}

static NodeRef zeros(Grad *d, DType t, uint32_t rank, const Dim *shape)
{
    return filled(d, number(d, t, 0), rank, shape);
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
    return spread(d, x, access_of(d, NULL, rank), rank, in_order(d, rank), shape);
}

static NodeRef view(Grad *d, NodeRef x, uint32_t rank, const Dim *shape, const Affine *at)
{
    x = solid(d, x);
    Access whole = read_whole(d, graph_node(d->g, x)->rank);
    return add(d, OP_VIEW, type_of(d, x), 1, &x, &whole, rank, in_order(d, rank), shape, at);
}

/* Zeros of a shape, with x at positions of its own dimensions. */
static NodeRef placed(Grad *d, NodeRef x, uint32_t rank, const Dim *shape, const Affine *at)
{
    NodeRef both[2] = {zeros(d, type_of(d, x), rank, shape), x};
    uint32_t own = graph_node(d->g, x)->rank;
    Access access[2] = {read_whole(d, rank), read_whole(d, own)};
    Affine *all = ARENA_ARRAY(d->arena, 2 * rank, Affine);
    for (uint32_t a = 0; a < rank; a++) {
        all[a] = affine_var(d->arena, a);
        all[rank + a] = at[a];
    }
    return add(d, OP_UPDATE, type_of(d, x), 2, both, access, rank, in_order(d, rank), shape,
               all);
}

static NodeRef summed(Grad *d, NodeRef x, const int32_t *label, uint32_t rank,
                      const int32_t *out)
{
    Access access = access_of(d, label, graph_node(d->g, x)->rank);
    return add(d, OP_SUM, type_of(d, x), 1, &x, &access, rank, out, NULL, NULL);
}

/* ---- adjoints ---- */

static void give(Grad *d, NodeRef to, NodeRef part)
{
    if (!d->wanted[to]) {
        return;
    }
    part = as_type(d, part, adjoint_type(type_of(d, to)));
    d->adjoint[to] = d->adjoint[to] == NODE_NONE ? part : two(d, OP_ADD, d->adjoint[to], part);
}

/* The labels that an access has, each once. */
static uint32_t labels_of(Access a, int32_t *label)
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
static void give_read(Grad *d, NodeRef to, Access read, NodeRef part)
{
    int32_t label[RANK_LIMIT], own[RANK_LIMIT];
    uint32_t n = labels_of(read, label), m = 0;
    if (n == read.rank) {
        give(d, to, part);
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
    const int32_t *all = in_order(d, m);
    for (uint32_t k = 0; k < m; k++) {
        if (first[k] != k) {
            NodeRef index = graph_index(d->g, shape[k], DTYPE_I64, d->span),
                    both[2] = {is, NODE_NONE};
            int32_t here = (int32_t)k, there = (int32_t)first[k];
            both[1] =
                compared(d, OP_EQ, spread(d, index, access_of(d, &here, 1), m, all, shape),
                         spread(d, index, access_of(d, &there, 1), m, all, shape));
            is = is == NODE_NONE ? both[1] : map(d, OP_AND, DTYPE_BOOL, 2, both);
        }
    }
    if (is != NODE_NONE) {
        part = spread(d, part, access_of(d, own, n), m, all, shape);
        part = chosen(d, is, part, zeros(d, type_of(d, part), m, shape));
    }
    give(d, to, m == rank ? part : placed(d, part, rank, of, at));
}

static const Dim *extents_of(Grad *d, const Node *node, const int32_t *label, uint32_t n)
{
    Dim *shape = ARENA_ARRAY(d->arena, n, Dim);
    for (uint32_t l = 0; l < n; l++) {
        shape[l] = node->extent[label[l]];
    }
    return shape;
}

/* A tensor of the node's shape, summed over what the operand lacks. */
static void give_operand(Grad *d, const Node *node, uint32_t k, NodeRef part)
{
    int32_t label[RANK_LIMIT];
    uint32_t n = labels_of(node->access[k], label);
    if (d->wanted[node->operand[k]]) {
        give_read(d, node->operand[k], node->access[k], summed(d, part, node->out, n, label));
    }
}

/* ---- elementwise ---- */

/* Operand k as the node's shape has it. */
static NodeRef operand(Grad *d, const Node *node, uint32_t k)
{
    return spread(d, node->operand[k], node->access[k], node->rank, node->out, node->shape);
}

/* The derivative of one(x) by x times G; NODE_NONE: 0 everywhere. `r` is the node itself. */
static NodeRef slope(Grad *d, const Node *node, NodeRef x, NodeRef r, NodeRef G)
{
    DType t = type_of(d, x);
    NodeRef zero = number(d, t, 0), unit = number(d, t, 1);
    switch (node->op) {
    case OP_COPY:
    case OP_CAST:
        return G;
    case OP_NEG:
        return one(d, OP_NEG, G);
    case OP_ABS:
        if (dtype_is_complex(t)) { /* G z / |z|, and 0 at 0 */
            NodeRef size = cast(d, r, t), at0 = compared(d, OP_EQ, size, zero);
            return two(d, OP_MUL, cast(d, G, t),
                       chosen(d, at0, filled(d, zero, node->rank, node->shape),
                              two(d, OP_DIV, x, size)));
        }
        return two(d, OP_MUL, G, one(d, OP_SIGN, x));
    case OP_EXP:
        return two(d, OP_MUL, G, conjugate(d, r));
    case OP_EXP2:
        return two(d, OP_MUL, G, two(d, OP_MUL, r, number(d, t, 0.69314718055994530942)));
    case OP_EXPM1:
        return two(d, OP_MUL, G, two(d, OP_ADD, r, unit));
    case OP_LOG:
        return two(d, OP_DIV, G, conjugate(d, x));
    case OP_LOG2:
        return two(d, OP_DIV, G, two(d, OP_MUL, x, number(d, t, 0.69314718055994530942)));
    case OP_LOG1P:
        return two(d, OP_DIV, G, two(d, OP_ADD, x, unit));
    case OP_SQRT:
        return two(d, OP_DIV, G, conjugate(d, two(d, OP_MUL, r, number(d, t, 2))));
    case OP_RSQRT:
        return two(d, OP_MUL, G,
                   conjugate(d, two(d, OP_MUL, two(d, OP_MUL, r, two(d, OP_MUL, r, r)),
                                    number(d, t, -0.5))));
    case OP_SIN:
        return two(d, OP_MUL, G, conjugate(d, one(d, OP_COS, x)));
    case OP_COS:
        return two(d, OP_MUL, G, conjugate(d, one(d, OP_NEG, one(d, OP_SIN, x))));
    case OP_TANH:
        return two(d, OP_MUL, G,
                   conjugate(d, two(d, OP_SUB, filled(d, unit, node->rank, node->shape),
                                    two(d, OP_MUL, r, r))));
    case OP_ERF:
        return two(d, OP_MUL, G,
                   two(d, OP_MUL, one(d, OP_EXP, one(d, OP_NEG, two(d, OP_MUL, x, x))),
                       number(d, t, 1.12837916709551257390)));
    case OP_SIGMOID:
        return two(
            d, OP_MUL, G,
            two(d, OP_MUL, r, two(d, OP_SUB, filled(d, unit, node->rank, node->shape), r)));
    case OP_RELU:
        return chosen(d, compared(d, OP_GT, x, zero), G,
                      filled(d, zero, node->rank, node->shape));
    case OP_GELU: {
        NodeRef below = two(
            d, OP_MUL,
            two(d, OP_ADD,
                one(d, OP_ERF, two(d, OP_MUL, x, number(d, t, 0.70710678118654752440))), unit),
            number(d, t, 0.5));
        NodeRef density = two(
            d, OP_MUL, one(d, OP_EXP, two(d, OP_MUL, two(d, OP_MUL, x, x), number(d, t, -0.5))),
            number(d, t, 0.39894228040143267794));
        return two(d, OP_MUL, G, two(d, OP_ADD, below, two(d, OP_MUL, x, density)));
    }
    case OP_FINITE:
        return chosen(d, compared(d, OP_EQ, r, x), G, filled(d, zero, node->rank, node->shape));
    case OP_ATAN:
        return two(d, OP_DIV, G, two(d, OP_ADD, two(d, OP_MUL, x, x), unit));
    case OP_CONJ:
        return conjugate(d, G);
    case OP_RE:
        return dtype_is_complex(t) ? cast(d, G, t) : G;
    case OP_IM:
        return dtype_is_complex(t)
                   ? two(d, OP_MUL, cast(d, G, t),
                         graph_const(d->g, (Number){.dtype = t, .im = 1}, d->span))
                   : NODE_NONE;
    default: /* floor, ceil, round, sign: steps */
        return NODE_NONE;
    }
}

static void back_two(Grad *d, const Node *node, NodeRef r, NodeRef G)
{
    DType t = node->dtype;
    NodeRef x = cast(d, operand(d, node, 0), t), y = cast(d, operand(d, node, 1), t);
    NodeRef dx = NODE_NONE, dy = NODE_NONE;
    switch (node->op) {
    case OP_ADD:
        dx = dy = G;
        break;
    case OP_SUB:
        dx = G;
        dy = one(d, OP_NEG, G);
        break;
    case OP_MUL:
    case OP_SCALE:
        dx = two(d, OP_MUL, G, conjugate(d, y));
        dy = two(d, OP_MUL, G, conjugate(d, x));
        break;
    case OP_DIV:
        dx = two(d, OP_DIV, G, conjugate(d, y));
        dy = two(d, OP_MUL, one(d, OP_NEG, G), conjugate(d, two(d, OP_DIV, r, y)));
        break;
    case OP_POW: {
        NodeRef less = two(d, OP_SUB, y, number(d, t, 1));
        NodeRef none = filled(d, number(d, t, 0), node->rank, node->shape);
        dx = two(d, OP_MUL, G, conjugate(d, two(d, OP_MUL, y, two(d, OP_POW, x, less))));
        NodeRef log = two(d, OP_MUL, r, one(d, OP_LOG, x));
        dy = two(d, OP_MUL, G,
                 conjugate(d, chosen(d, compared(d, OP_EQ, x, number(d, t, 0)), none, log)));
        break;
    }
    case OP_MIN:
    case OP_MAX: {
        NodeRef first = compared(d, node->op == OP_MAX ? OP_GE : OP_LE, x, y);
        NodeRef none = filled(d, number(d, t, 0), node->rank, node->shape);
        dx = chosen(d, first, G, none);
        dy = chosen(d, first, none, G);
        break;
    }
    case OP_MOD:
        dx = G;
        dy = two(d, OP_MUL, one(d, OP_NEG, G), one(d, OP_FLOOR, two(d, OP_DIV, x, y)));
        break;
    case OP_ATAN2: { /* of x / y */
        NodeRef square = two(d, OP_ADD, two(d, OP_MUL, x, x), two(d, OP_MUL, y, y));
        dx = two(d, OP_DIV, two(d, OP_MUL, G, y), square);
        dy = two(d, OP_DIV, two(d, OP_MUL, one(d, OP_NEG, G), x), square);
        break;
    }
    default:
        return;
    }
    give_operand(d, node, 0, dx);
    give_operand(d, node, 1, dy);
}

static void back_map(Grad *d, NodeRef r, const Node *node, NodeRef G)
{
    if (node->n_operands == 3) { /* select, where */
        NodeRef c = operand(d, node, 0);
        NodeRef none = filled(d, number(d, type_of(d, G), 0), node->rank, node->shape);
        give_operand(d, node, 1, chosen(d, c, G, none));
        give_operand(d, node, 2, chosen(d, c, none, G));
        return;
    }
    if (node->n_operands == 2) {
        back_two(d, node, r, G);
        return;
    }
    NodeRef part = slope(d, node, operand(d, node, 0), r, G);
    if (part != NODE_NONE) {
        give_operand(d, node, 0, part);
    }
}

/* ---- sums and folds ---- */

/* Operand k of a product: the adjoint times all other factors, over the operand's labels. */
static void back_factor(Grad *d, const Node *node, uint32_t k, NodeRef G)
{
    int32_t label[RANK_LIMIT], there[RANK_LIMIT];
    uint32_t n = labels_of(node->access[k], label), m = 0, count = 0;
    NodeRef *x = ARENA_ARRAY(d->arena, node->n_operands, NodeRef);
    Access *access = ARENA_ARRAY(d->arena, node->n_operands, Access);
    bool *has = ARENA_ARRAY(d->arena, node->n_labels, bool);
    x[count] = G;
    access[count++] = access_of(d, node->out, node->rank);
    for (uint32_t o = 0; o < node_factors(node); o++) {
        if (o != k) {
            x[count] = conjugate(d, node->operand[o]);
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
    NodeRef part = count == 1 ? summed(d, x[0], node->out, m, there)
                              : add(d, OP_EINSUM, adjoint_type(node->dtype), count, x, access,
                                    m, there, NULL, NULL);
    if (m < n) { /* what only this factor has is summed of it alone */
        part = spread(d, part, access_of(d, there, m), n, label, extents_of(d, node, label, n));
    }
    give_read(d, node->operand[k], node->access[k], part);
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
    f.n = labels_of(node->access[0], f.label);
    f.shape = extents_of(d, node, f.label, f.n);
    Access own = access_of(d, node->out, node->rank);
    f.x = spread(d, node->operand[0], node->access[0], f.n, f.label, f.shape);
    f.r = spread(d, r, own, f.n, f.label, f.shape);
    f.G = spread(d, G, own, f.n, f.label, f.shape);
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
        NodeRef here =
            spread(d, index, access_of(d, &own, 1), f->n, in_order(d, f->n), f->shape);
        NodeRef extent = f->shape[l].sym >= 0
                             ? graph_extent(d->g, f->shape[l].sym, DTYPE_I64, d->span)
                             : number(d, DTYPE_I64, (double)f->shape[l].n);
        at = at == NODE_NONE ? here : two(d, OP_ADD, two(d, OP_MUL, at, extent), here);
    }
    if (at == NODE_NONE) {
        return f->G;
    }
    NodeRef last = graph_const(d->g, number_int(DTYPE_I64, INT64_MAX), d->span);
    NodeRef is = chosen(d, compared(d, OP_EQ, f->x, f->r), at, filled(d, last, f->n, f->shape));
    Access access = access_of(d, f->label, f->n);
    NodeRef first =
        add(d, OP_RMIN, DTYPE_I64, 1, &is, &access, node->rank, node->out, NULL, NULL);
    NodeRef spread_first =
        spread(d, first, access_of(d, node->out, node->rank), f->n, f->label, f->shape);
    return chosen(d, compared(d, OP_EQ, at, spread_first), f->G,
                  zeros(d, type_of(d, f->G), f->n, f->shape));
}

/* The product of all others: with no zero among them r / x; with one, it is there alone. */
static NodeRef back_product(Grad *d, const Node *node, const Folded *f)
{
    DType t = node->dtype;
    NodeRef nothing = zeros(d, t, f->n, f->shape), zero = number(d, t, 0);
    NodeRef is = compared(d, OP_EQ, f->x, zero);
    NodeRef unit = filled(d, number(d, t, 1), f->n, f->shape);
    NodeRef rest = chosen(d, is, unit, f->x);
    NodeRef counted = chosen(d, is, filled(d, number(d, DTYPE_I64, 1), f->n, f->shape),
                             filled(d, number(d, DTYPE_I64, 0), f->n, f->shape));
    Access access = access_of(d, f->label, f->n), own = access_of(d, node->out, node->rank);
    NodeRef product = add(d, OP_PROD, t, 1, &rest, &access, node->rank, node->out, NULL, NULL);
    NodeRef count =
        add(d, OP_SUM, DTYPE_I64, 1, &counted, &access, node->rank, node->out, NULL, NULL);
    product = spread(d, product, own, f->n, f->label, f->shape);
    count = spread(d, count, own, f->n, f->label, f->shape);
    NodeRef none = compared(d, OP_EQ, count, number(d, DTYPE_I64, 0));
    NodeRef single = compared(d, OP_EQ, count, number(d, DTYPE_I64, 1));
    NodeRef only[2] = {is, single};
    NodeRef alone = chosen(d, map(d, OP_AND, DTYPE_BOOL, 2, only), product, nothing);
    NodeRef others = chosen(d, none, two(d, OP_DIV, product, rest), alone);
    return two(d, OP_MUL, f->G, conjugate(d, others));
}

static void back_fold(Grad *d, NodeRef r, const Node *node, NodeRef G)
{
    if (!d->wanted[node->operand[0]]) {
        return;
    }
    Folded f = folded_of(d, r, node, G);
    NodeRef part = node->op == OP_SUM    ? f.G
                   : node->op == OP_PROD ? back_product(d, node, &f)
                                         : back_most(d, node, &f);
    give_read(d, node->operand[0], node->access[0], part);
}

/* ---- positions ---- */

/* Has each element a place of its own? */
static bool is_one_to_one(const Node *node, uint32_t rank)
{
    Patch piece = {node->rank, node->extent, node->at};
    bool fine = true;
    for (uint32_t l = 0; l < node->rank; l++) {
        bool found = false;
        for (uint32_t a = 0; a < rank; a++) {
            found = found || affine_uses(node->at[a], l);
        }
        fine = fine && found;
    }
    for (uint32_t a = 0; a < rank; a++) {
        uint32_t labels = 0;
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            labels += !affine_is_dim(node->at[a].term[i].var);
        }
        fine = fine && labels <= 1;
    }
    return fine && !piece_overlaps_itself(rank, &piece);
}

/* Of the view x[2*a + b]: the sum over all a, b of w'[a,b] where 2*a + b is the position. Every position is compared with all. */
static NodeRef moved_back(Grad *d, const Node *node, NodeRef G)
{
    const Node *o = graph_node(d->g, node->operand[0]);
    uint32_t rank = o->rank, all = node->rank + rank;
    const Dim *of = o->shape;
    Dim *shape = ARENA_ARRAY(d->arena, all, Dim);
    int32_t *label = ARENA_ARRAY(d->arena, all, int32_t);
    for (uint32_t l = 0; l < all; l++) {
        shape[l] = l < rank ? of[l] : node->extent[l - rank];
        label[l] = (int32_t)l;
    }
    NodeRef is = NODE_NONE;
    for (uint32_t a = 0; a < rank; a++) {
        NodeRef at = graph_const(d->g, number_int(DTYPE_I64, node->at[a].base), d->span);
        at = filled(d, at, all, shape);
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm term = node->at[a].term[i];
            int32_t own = (int32_t)(rank + term.var);
            NodeRef x =
                affine_is_dim(term.var)
                    ? graph_extent(d->g, affine_sym(term.var), DTYPE_I64, d->span)
                    : spread(d, graph_index(d->g, node->extent[term.var], DTYPE_I64, d->span),
                             access_of(d, &own, 1), all, label, shape);
            NodeRef by = graph_const(d->g, number_int(DTYPE_I64, term.coef), d->span);
            at = two(d, OP_ADD, at, two(d, OP_MUL, x, by));
        }
        int32_t own = (int32_t)a;
        NodeRef here = spread(d, graph_index(d->g, of[a], DTYPE_I64, d->span),
                              access_of(d, &own, 1), all, label, shape);
        NodeRef same = compared(d, OP_EQ, at, here), both[2] = {is, same};
        is = is == NODE_NONE ? same : map(d, OP_AND, DTYPE_BOOL, 2, both);
    }
    NodeRef wide = spread(d, G, access_of(d, label + rank, node->rank), all, label, shape);
    NodeRef part = chosen(d, is, wide, zeros(d, type_of(d, G), all, shape));
    return summed(d, part, label, rank, label);
}

static Dim dim_plus(Grad *d, Dim x, Affine more)
{
    Affine sum = affine_add(d->arena, affine_extent(d->arena, x), 1, more);
    DimTerm *term = ARENA_ARRAY(d->arena, sum.n, DimTerm);
    for (uint32_t i = 0; i < sum.n; i++) {
        term[i] = (DimTerm){dim_open(affine_sym(sum.term[i].var)), sum.term[i].coef};
    }
    return dims_sum(d->arena, d->arena, &d->ctx->syms, &d->g->dims, d->span, sum.base, sum.n,
                    term, 1);
}

/* A view in windows, x[.., a + b, ..]: of w' with zeros around it, at p - b, summed over b. Position a of each dimension is the label
 * `moves[a]` with coefficient 1 and others before it. False where some dimension is not so. */
static bool window_labels(const Node *node, uint32_t rank, int32_t *moves)
{
    bool taken[RANK_LIMIT] = {false};
    for (uint32_t a = 0; a < rank; a++) {
        moves[a] = -1;
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm t = node->at[a].term[i];
            bool dim = affine_is_dim(t.var);
            if (t.coef < 0 && !dim) {
                return false;
            }
            if (!dim && taken[t.var]) {
                return false;
            }
            if (!dim) {
                taken[t.var] = true;
                moves[a] = t.coef == 1 && moves[a] < 0 ? (int32_t)t.var : moves[a];
            }
        }
        bool stays = true; /* one position for all labels */
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            stays = stays && affine_is_dim(node->at[a].term[i].var);
        }
        if (moves[a] < 0 && !stays) {
            return false;
        }
    }
    for (uint32_t l = 0; l < node->rank; l++) {
        if (!taken[l]) {
            return false;
        }
    }
    return true;
}

static NodeRef windows_back(Grad *d, const Node *node, NodeRef G)
{
    const Node *o = graph_node(d->g, node->operand[0]);
    uint32_t rank = o->rank, n = 0, m = 0;
    const Dim *of = o->shape;
    int32_t moves[RANK_LIMIT], slot[RANK_LIMIT];
    if (!window_labels(node, rank, moves)) {
        return NODE_NONE;
    }
    /* labels of the sum: the operand's dimensions that have one, then those that stay in windows */
    int32_t *place = ARENA_ARRAY(d->arena, node->rank, int32_t);
    Dim *shape = ARENA_ARRAY(d->arena, rank + node->rank, Dim);
    Affine *padded = ARENA_ARRAY(d->arena, node->rank, Affine);
    Affine *at = ARENA_ARRAY(d->arena, node->rank, Affine);
    Dim *room = ARENA_ARRAY(d->arena, node->rank, Dim);
    for (uint32_t a = 0; a < rank; a++) {
        if (moves[a] >= 0) {
            slot[a] = (int32_t)m;
            shape[m++] = of[a];
        }
    }
    for (uint32_t l = 0; l < node->rank; l++) {
        place[l] = -1;
        for (uint32_t a = 0; a < rank; a++) {
            place[l] = moves[a] == (int32_t)l ? slot[a] : place[l];
        }
        if (place[l] < 0) {
            place[l] = (int32_t)(m + n);
            shape[m + n++] = node->extent[l];
        }
        padded[l] = affine_var(d->arena, l);
        at[l] = affine_var(d->arena, (VarRef)place[l]);
        room[l] = node->extent[l];
    }
    for (uint32_t a = 0; a < rank; a++) {
        if (moves[a] < 0) {
            continue;
        }
        uint32_t l = (uint32_t)moves[a];
        Affine before =
            affine_const(0); /* zeros before w' along l: the most that is added to it */
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm t = node->at[a].term[i];
            if (affine_is_dim(t.var) || t.var != l) {
                Affine most = affine_is_dim(t.var)
                                  ? affine_var(d->arena, t.var)
                                  : affine_extent(d->arena, node->extent[t.var]);
                most.base -= affine_is_dim(t.var) ? 0 : 1;
                before = affine_add(d->arena, before, t.coef, most);
            }
        }
        before.base += node->at[a].base;
        padded[l] = affine_add(d->arena, padded[l], 1, before);
        /* p - (what is added to l) + before, where p runs over the operand's dimension */
        Affine x = affine_add(d->arena, at[l], 1, before);
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm t = node->at[a].term[i];
            if (affine_is_dim(t.var)) {
                x = affine_add(d->arena, x, -t.coef, affine_var(d->arena, t.var));
            } else if (t.var != l) {
                x = affine_add(d->arena, x, -t.coef,
                               affine_var(d->arena, (VarRef)place[t.var]));
            }
        }
        x.base -= node->at[a].base;
        at[l] = x;
        Affine end = before; /* the last position of the operand, with nothing added */
        end = affine_add(d->arena, end, 1, affine_const(-node->at[a].base));
        for (uint32_t i = 0; i < node->at[a].n; i++) {
            AffineTerm t = node->at[a].term[i];
            if (affine_is_dim(t.var)) {
                end = affine_add(d->arena, end, -t.coef, affine_var(d->arena, t.var));
            }
        }
        room[l] = dim_plus(d, of[a], end);
    }
    for (uint32_t l = 0; l < node->rank; l++) { /* what cannot be proven is not built */
        if (room[l].sym < 0 && room[l].n < 0) {
            return NODE_NONE;
        }
        if (position_problem(d->arena, &d->g->dims, node->extent, node->rank, padded[l],
                             room[l]) != 0 ||
            position_problem(d->arena, &d->g->dims, shape, m + n, at[l], room[l]) != 0) {
            return NODE_NONE;
        }
    }
    NodeRef wide = placed(d, G, node->rank, room, padded);
    NodeRef part = view(d, wide, m + n, shape, at);
    part = summed(d, part, in_order(d, m + n), m, in_order(d, m));
    if (m == rank) {
        return part;
    }
    Affine *alone = ARENA_ARRAY(d->arena, rank, Affine);
    for (uint32_t a = 0; a < rank; a++) {
        alone[a] = moves[a] < 0 ? node->at[a] : affine_var(d->arena, (VarRef)slot[a]);
    }
    return placed(d, part, rank, of, alone);
}

static void back_view(Grad *d, const Node *node, NodeRef G)
{
    const Node *o = graph_node(d->g, node->operand[0]);
    uint32_t rank = o->rank;
    const Dim *shape = o->shape;
    NodeRef part = NODE_NONE;
    if (!d->wanted[node->operand[0]]) {
        return;
    }
    if (is_one_to_one(node, rank)) {
        part = placed(d, G, rank, shape, node->at);
    } else {
        part = windows_back(d, node, G);
    }
    give(d, node->operand[0], part != NODE_NONE ? part : moved_back(d, node, G));
}

/* Pieces read where they lie; what an update begins with is read all. */
static void back_join(Grad *d, const Node *node, NodeRef G)
{
    for (uint32_t k = 0; k < node->n_operands; k++) {
        if (!d->wanted[node->operand[k]]) {
            continue;
        }
        const Node *o = graph_node(d->g, node->operand[k]);
        uint32_t rank = o->rank;
        const Dim *shape = o->shape;
        NodeRef part = node->op == OP_UPDATE && k == 0
                           ? G
                           : view(d, G, rank, shape, node->at + (size_t)k * node->rank);
        give(d, node->operand[k], part);
    }
}

/* The table's dimension of a position that is an index is that label; of other positions it is one of its own, which is compared. */
static void back_gather(Grad *d, const Node *node, NodeRef G)
{
    const NodeRef table = node->operand[0];
    if (!d->wanted[table]) {
        return;
    }
    uint32_t rank = graph_node(d->g, table)->rank, all = node->rank, n = 0;
    const Dim *of = graph_node(d->g, table)->shape;
    int32_t *out = ARENA_ARRAY(d->arena, rank, int32_t);
    int32_t *label = ARENA_ARRAY(d->arena, node->rank + rank, int32_t);
    Dim *shape = ARENA_ARRAY(d->arena, node->rank + rank, Dim);
    bool taken[RANK_LIMIT] = {false};
    for (uint32_t a = 0; a < node->rank; a++) {
        label[n] = node->out[a];
        shape[n++] = node->shape[a];
    }
    NodeRef is = NODE_NONE;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t a = 0; a < rank; a++) {
            const Node *at = graph_node(d->g, node->operand[a + 1]);
            int32_t l = at->op == OP_INDEX ? node->access[a + 1].index[0].label : -1;
            if (pass == 0) {
                bool direct = l >= 0 && !taken[l] && dim_eq(node->extent[l], of[a]);
                out[a] = direct ? l : (int32_t)(node->n_labels + a);
                if (direct) {
                    taken[l] = true;
                } else {
                    label[n] = out[a];
                    shape[n++] = of[a];
                    all++;
                }
            } else if (out[a] >= (int32_t)node->n_labels) {
                NodeRef here = spread(d, graph_index(d->g, of[a], DTYPE_I64, d->span),
                                      access_of(d, &out[a], 1), all, label, shape);
                NodeRef there =
                    spread(d, node->operand[a + 1], node->access[a + 1], all, label, shape);
                NodeRef same = compared(d, OP_EQ, there, here), both[2] = {is, same};
                is = is == NODE_NONE ? same : map(d, OP_AND, DTYPE_BOOL, 2, both);
            }
        }
    }
    NodeRef part = spread(d, G, access_of(d, node->out, node->rank), all, label, shape);
    if (is != NODE_NONE) {
        part = chosen(d, is, part, zeros(d, type_of(d, G), all, shape));
    }
    give(d, table, summed(d, part, label, rank, out));
}

/* ---- all of it ---- */

static void back(Grad *d, NodeRef r)
{
    const Node node = *graph_node(d->g, r);
    NodeRef G = d->adjoint[r];
    d->span = node.span;
    switch (op_info(node.op)->kind) {
    case OPKIND_MAP:
        back_map(d, r, &node, cast(d, G, adjoint_type(node.dtype)));
        return;
    case OPKIND_CONTRACT:
        for (uint32_t k = 0; k < node_factors(&node); k++) {
            if (d->wanted[node.operand[k]]) {
                back_factor(d, &node, k, G);
            }
        }
        return;
    case OPKIND_REDUCE:
        back_fold(d, r, &node, G);
        return;
    case OPKIND_VIEW:
        back_view(d, &node, G);
        return;
    case OPKIND_JOIN:
        back_join(d, &node, G);
        return;
    case OPKIND_GATHER:
        back_gather(d, &node, G);
        return;
    case OPKIND_LEAF:
        return;
    }
}

static void find_wanted(Grad *d, const CheckedGradient *spec)
{
    for (NodeRef r = 0; r < d->n; r++) {
        const Node *n = graph_node(d->g, r);
        for (uint32_t p = 0; n->op == OP_INPUT && p < spec->n_params; p++) {
            d->wanted[r] = d->wanted[r] || spec->param[p] == n->param;
        }
        for (uint32_t k = 0; k < n->n_operands; k++) {
            d->wanted[r] = d->wanted[r] || d->wanted[n->operand[k]];
        }
        d->wanted[r] = d->wanted[r] && has_adjoint(n->dtype) &&
                       !((n->op == OP_RMAX || n->op == OP_RMIN) &&
                         graph_shifts_out(d->arena, d->g, r, d->n));
    }
}

static Sym derivative_name(Grad *d, Sym of)
{
    return sym_cstr(&d->ctx->syms, str_format(d->arena, "d%s", of->text));
}

/* What each result counts: a parameter, or 1 for the only one. */
static void seed(Grad *d, const CheckedGradient *spec)
{
    Graph *g = d->g;
    for (uint32_t k = 0; k < g->results.n; k++) {
        const Result r = g->results.at[k];
        const Node n = *graph_node(g, r.node);
        if (!has_adjoint(n.dtype)) {
            continue;
        }
        d->span = r.span;
        NodeRef part;
        if (spec->seeds) {
            Param p = {.name = derivative_name(d, r.name),
                       .role = n.rank == 0 ? PARAM_SCALAR : PARAM_IN,
                       .dtype = n.dtype,
                       .rank = r.rank > 0 ? r.rank : n.rank,
                       .shape = r.rank > 0 ? r.shape : n.shape,
                       .span = r.span,
                       .n_collapsed = r.rank > 0 ? n.rank : 0,
                       .collapsed = r.rank > 0 ? n.shape : NULL};
            vec_push(g->arena, &g->params, p);
            part = graph_input(g, g->params.n - 1, r.span);
        } else {
            part = number(d, adjoint_type(n.dtype), 1);
        }
        if (d->wanted[r.node]) {
            give(d, r.node, part);
        }
    }
}

static NodeRef named_copy(Grad *d, NodeRef x, Sym name)
{
    const Node *n = graph_node(d->g, x);
    uint32_t rank = n->rank;
    Access whole = access_of(d, NULL, rank);
    NodeSpec spec = {.op = OP_COPY,
                     .dtype = n->dtype,
                     .n_operands = 1,
                     .operand = &x,
                     .access = &whole,
                     .rank = rank,
                     .out = in_order(d, rank),
                     .out_shape = n->shape,
                     .span = d->span,
                     .name = name};
    return graph_add(d->g, &spec);
}

/* dP, for each parameter that is named, and the kernel's own results that are. */
static void deliver(Grad *d, const CheckedGradient *spec)
{
    Graph *g = d->g;
    VEC(Result) results = {0};
    for (uint32_t k = 0; k < spec->n_params; k++) {
        const Param p = g->params.at[spec->param[k]];
        NodeRef of = NODE_NONE;
        for (NodeRef r = 0; r < d->n; r++) {
            const Node *n = graph_node(g, r);
            of = n->op == OP_INPUT && n->param == spec->param[k] ? r : of;
        }
        d->span = p.span;
        NodeRef x = of == NODE_NONE ? NODE_NONE : d->adjoint[of];
        if (x == NODE_NONE) {
            x = zeros(d, p.dtype, param_rank(&p), param_shape(&p));
        }
        Sym name = derivative_name(d, p.name);
        Result r = {.name = name,
                    .node = named_copy(d, cast(d, x, p.dtype), name),
                    .param = -1,
                    .span = p.span};
        if (p.n_collapsed > 0) {
            r.rank = p.rank;
            r.shape = p.shape;
        }
        vec_push(g->arena, &results, r);
    }
    for (uint32_t k = 0; k < spec->n_with; k++) {
        vec_push(g->arena, &results, g->results.at[spec->with[k]]);
    }
    g->results.at = results.at;
    g->results.n = results.n;
    g->results.cap = results.cap;
}

Graph *graph_gradient(Ctx *ctx, Arena *arena, Graph *g, const CheckedKernel *kernel)
{
    const CheckedGradient *spec = kernel->gradient;
    Grad d = {.ctx = ctx, .g = g, .arena = arena, .n = g->nodes.n, .span = kernel->span};
    d.adjoint = ARENA_ARRAY(arena, d.n, NodeRef);
    d.wanted = ARENA_ARRAY(arena, d.n, bool);
    memset(d.adjoint, 0xff, d.n * sizeof *d.adjoint);
    find_wanted(&d, spec);
    seed(&d, spec);
    for (NodeRef r = d.n; r-- > 0;) {
        if (d.adjoint[r] != NODE_NONE && d.wanted[r]) {
            back(&d, r);
        }
    }
    deliver(&d, spec);
    g->name = kernel->name;
    g->span = kernel->span;
    g->signature = kernel->signature;
    g->ranks = (TextLines){0};
    return graph_prune(arena, g);
}
