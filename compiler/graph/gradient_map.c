/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of elementwise operations. */
#include "graph/gradient_parts.h"

/* Operand k as the node's shape has it. */
static NodeRef operand(Grad *d, const Node *node, uint32_t k)
{
    return gradient_spread(d, node->operand[k], node->access[k], node->rank, node->out,
                           node->shape);
}

static NodeRef scaled(Grad *d, NodeRef x, double by)
{
    NodeRef c = gradient_number(d, gradient_type_of(d, x), by);
    return gradient_two(d, OP_MUL, x, c);
}

/* A number at each element of the node. */
static NodeRef everywhere(Grad *d, const Node *node, DType t, double x)
{
    NodeRef c = gradient_number(d, t, x);
    return gradient_filled(d, c, node->rank, node->shape);
}

/* The probability that a normal number is below x, and x times its density. */
static NodeRef gelu_slope(Grad *d, NodeRef x)
{
    DType t = gradient_type_of(d, x);
    NodeRef arc = gradient_one(d, OP_ERF, scaled(d, x, 0.70710678118654752440));
    NodeRef unit = gradient_number(d, t, 1);
    NodeRef below = scaled(d, gradient_two(d, OP_ADD, arc, unit), 0.5);
    NodeRef bell = gradient_one(d, OP_EXP, scaled(d, gradient_two(d, OP_MUL, x, x), -0.5));
    NodeRef density = scaled(d, bell, 0.39894228040143267794);
    return gradient_two(d, OP_ADD, below, gradient_two(d, OP_MUL, x, density));
}

/* Of |z|: z / |z|, and 0 at 0. */
static NodeRef direction(Grad *d, const Node *node, NodeRef z, NodeRef r)
{
    DType t = gradient_type_of(d, z);
    NodeRef size = gradient_cast(d, r, t), nothing = everywhere(d, node, t, 0);
    NodeRef is0 = gradient_compared(d, OP_EQ, size, gradient_number(d, t, 0));
    NodeRef unit = gradient_two(d, OP_DIV, z, size);
    return gradient_chosen(d, is0, nothing, unit);
}

/* What G is multiplied with: the derivative of a function by x, where it is f(x) = r; NODE_NONE: 0 everywhere. */
static NodeRef slope(Grad *d, const Node *node, NodeRef x, NodeRef r)
{
    DType t = gradient_type_of(d, x);
    NodeRef unit = gradient_number(d, t, 1), y = NODE_NONE;
    switch (node->op) {
    case OP_ABS:
        return dtype_is_complex(t) ? direction(d, node, x, r) : gradient_one(d, OP_SIGN, x);
    case OP_EXP:
        return r;
    case OP_EXP2:
        return scaled(d, r, 0.69314718055994530942);
    case OP_EXPM1:
        return gradient_two(d, OP_ADD, r, unit);
    case OP_RSQRT:
        y = gradient_two(d, OP_MUL, r, gradient_two(d, OP_MUL, r, r));
        return scaled(d, y, -0.5);
    case OP_SIN:
        return gradient_one(d, OP_COS, x);
    case OP_COS:
        return gradient_one(d, OP_NEG, gradient_one(d, OP_SIN, x));
    case OP_TANH:
        y = everywhere(d, node, t, 1);
        return gradient_two(d, OP_SUB, y, gradient_two(d, OP_MUL, r, r));
    case OP_ERF:
        y = gradient_one(d, OP_NEG, gradient_two(d, OP_MUL, x, x));
        return scaled(d, gradient_one(d, OP_EXP, y), 1.12837916709551257390);
    case OP_SIGMOID:
        y = everywhere(d, node, t, 1);
        return gradient_two(d, OP_MUL, r, gradient_two(d, OP_SUB, y, r));
    case OP_GELU:
        return gelu_slope(d, x);
    default: /* floor, ceil, round, sign: steps */
        return NODE_NONE;
    }
}

/* What G is divided by instead; NODE_NONE: it is multiplied. */
static NodeRef divisor(Grad *d, const Node *node, NodeRef x, NodeRef r)
{
    DType t = gradient_type_of(d, x);
    NodeRef unit = gradient_number(d, t, 1);
    switch (node->op) {
    case OP_LOG:
        return x;
    case OP_LOG2:
        return scaled(d, x, 0.69314718055994530942);
    case OP_LOG1P:
        return gradient_two(d, OP_ADD, x, unit);
    case OP_SQRT:
        return scaled(d, r, 2);
    case OP_ATAN:
        return gradient_two(d, OP_ADD, gradient_two(d, OP_MUL, x, x), unit);
    default:
        return NODE_NONE;
    }
}

/* G times the derivative of a function of one operand; NODE_NONE: 0. */
static NodeRef through(Grad *d, const Node *node, NodeRef x, NodeRef r, NodeRef G)
{
    DType t = gradient_type_of(d, x);
    NodeRef holds = NODE_NONE, imaginary = NODE_NONE;
    switch (node->op) {
    case OP_COPY:
    case OP_CAST:
        return G;
    case OP_NEG:
        return gradient_one(d, OP_NEG, G);
    case OP_CONJ:
        return gradient_conjugate(d, G);
    case OP_RE:
        return gradient_cast(d, G, t);
    case OP_IM:
        if (!dtype_is_complex(t)) {
            return NODE_NONE;
        }
        imaginary = graph_const(d->g, (Number){.dtype = t, .im = 1}, d->span);
        return gradient_two(d, OP_MUL, gradient_cast(d, G, t), imaginary);
    case OP_RELU:
        holds = gradient_compared(d, OP_GT, x, gradient_number(d, t, 0));
        return gradient_chosen(d, holds, G, everywhere(d, node, t, 0));
    case OP_FINITE:
        holds = gradient_compared(d, OP_EQ, r, x);
        return gradient_chosen(d, holds, G, everywhere(d, node, t, 0));
    default:
        break;
    }
    NodeRef by = divisor(d, node, x, r);
    if (by != NODE_NONE) {
        return gradient_two(d, OP_DIV, G, gradient_conjugate(d, by));
    }
    by = slope(d, node, x, r);
    if (by == NODE_NONE) {
        return by;
    }
    bool turns = node->op != OP_ABS; /* |z| is real: its direction is not conjugated */
    by = turns ? gradient_conjugate(d, by) : by;
    return gradient_two(d, OP_MUL, gradient_cast(d, G, t), by);
}

static void back_two(Grad *d, const Node *node, NodeRef r, NodeRef G)
{
    DType t = node->dtype;
    NodeRef x = gradient_cast(d, operand(d, node, 0), t),
            y = gradient_cast(d, operand(d, node, 1), t);
    NodeRef dx = NODE_NONE, dy = NODE_NONE;
    switch (node->op) {
    case OP_ADD:
        dx = dy = G;
        break;
    case OP_SUB:
        dx = G;
        dy = gradient_one(d, OP_NEG, G);
        break;
    case OP_MUL:
    case OP_SCALE:
        dx = gradient_two(d, OP_MUL, G, gradient_conjugate(d, y));
        dy = gradient_two(d, OP_MUL, G, gradient_conjugate(d, x));
        break;
    case OP_DIV:
        dx = gradient_two(d, OP_DIV, G, gradient_conjugate(d, y));
        dy = gradient_conjugate(d, gradient_two(d, OP_DIV, r, y));
        dy = gradient_two(d, OP_MUL, gradient_one(d, OP_NEG, G), dy);
        break;
    case OP_POW: {
        NodeRef less = gradient_two(d, OP_SUB, y, gradient_number(d, t, 1));
        NodeRef none = gradient_filled(d, gradient_number(d, t, 0), node->rank, node->shape);
        dx = gradient_two(d, OP_MUL, G,
                          gradient_conjugate(
                              d, gradient_two(d, OP_MUL, y, gradient_two(d, OP_POW, x, less))));
        NodeRef log = gradient_two(d, OP_MUL, r, gradient_one(d, OP_LOG, x));
        dy = gradient_two(
            d, OP_MUL, G,
            gradient_conjugate(
                d, gradient_chosen(d, gradient_compared(d, OP_EQ, x, gradient_number(d, t, 0)),
                                   none, log)));
        break;
    }
    case OP_MIN:
    case OP_MAX: {
        NodeRef first = gradient_compared(d, node->op == OP_MAX ? OP_GE : OP_LE, x, y);
        NodeRef none = gradient_filled(d, gradient_number(d, t, 0), node->rank, node->shape);
        dx = gradient_chosen(d, first, G, none);
        dy = gradient_chosen(d, first, none, G);
        break;
    }
    case OP_MOD:
        dx = G;
        dy = gradient_one(d, OP_FLOOR, gradient_two(d, OP_DIV, x, y));
        dy = gradient_two(d, OP_MUL, gradient_one(d, OP_NEG, G), dy);
        break;
    case OP_ATAN2: { /* of x / y */
        NodeRef square = gradient_two(d, OP_MUL, x, x);
        square = gradient_two(d, OP_ADD, square, gradient_two(d, OP_MUL, y, y));
        dx = gradient_two(d, OP_DIV, gradient_two(d, OP_MUL, G, y), square);
        dy = gradient_two(d, OP_DIV, gradient_two(d, OP_MUL, gradient_one(d, OP_NEG, G), x),
                          square);
        break;
    }
    default:
        return;
    }
    gradient_give_operand(d, node, 0, dx);
    gradient_give_operand(d, node, 1, dy);
}

void gradient_back_map(Grad *d, NodeRef r, const Node *node, NodeRef G)
{
    if (node->n_operands == 3) { /* select, where */
        NodeRef c = operand(d, node, 0);
        NodeRef none = gradient_filled(d, gradient_number(d, gradient_type_of(d, G), 0),
                                       node->rank, node->shape);
        gradient_give_operand(d, node, 1, gradient_chosen(d, c, G, none));
        gradient_give_operand(d, node, 2, gradient_chosen(d, c, none, G));
        return;
    }
    if (node->n_operands == 2) {
        back_two(d, node, r, G);
        return;
    }
    NodeRef part = through(d, node, operand(d, node, 0), r, G);
    if (part != NODE_NONE) {
        gradient_give_operand(d, node, 0, part);
    }
}
