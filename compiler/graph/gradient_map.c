/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of elementwise operations. */
#include "graph/gradient_parts.h"

/* Operand k as the node's shape has it. */
static NodeRef operand(Grad *d, const Node *node, uint32_t k)
{
    return gradient_spread(d, node->operand[k], node->access[k], node->rank, node->out,
                           node->shape);
}

/* The derivative of gradient_one(x) by x times G; NODE_NONE: 0 everywhere. `r` is the node itself. */
static NodeRef slope(Grad *d, const Node *node, NodeRef x, NodeRef r, NodeRef G)
{
    DType t = gradient_type_of(d, x);
    NodeRef zero = gradient_number(d, t, 0), unit = gradient_number(d, t, 1);
    switch (node->op) {
    case OP_COPY:
    case OP_CAST:
        return G;
    case OP_NEG:
        return gradient_one(d, OP_NEG, G);
    case OP_ABS:
        if (dtype_is_complex(t)) { /* G z / |z|, and 0 at 0 */
            NodeRef size = gradient_cast(d, r, t),
                    at0 = gradient_compared(d, OP_EQ, size, zero);
            return gradient_two(
                d, OP_MUL, gradient_cast(d, G, t),
                gradient_chosen(d, at0, gradient_filled(d, zero, node->rank, node->shape),
                                gradient_two(d, OP_DIV, x, size)));
        }
        return gradient_two(d, OP_MUL, G, gradient_one(d, OP_SIGN, x));
    case OP_EXP:
        return gradient_two(d, OP_MUL, G, gradient_conjugate(d, r));
    case OP_EXP2:
        return gradient_two(
            d, OP_MUL, G,
            gradient_two(d, OP_MUL, r, gradient_number(d, t, 0.69314718055994530942)));
    case OP_EXPM1:
        return gradient_two(d, OP_MUL, G, gradient_two(d, OP_ADD, r, unit));
    case OP_LOG:
        return gradient_two(d, OP_DIV, G, gradient_conjugate(d, x));
    case OP_LOG2:
        return gradient_two(
            d, OP_DIV, G,
            gradient_two(d, OP_MUL, x, gradient_number(d, t, 0.69314718055994530942)));
    case OP_LOG1P:
        return gradient_two(d, OP_DIV, G, gradient_two(d, OP_ADD, x, unit));
    case OP_SQRT:
        return gradient_two(
            d, OP_DIV, G,
            gradient_conjugate(d, gradient_two(d, OP_MUL, r, gradient_number(d, t, 2))));
    case OP_RSQRT:
        return gradient_two(
            d, OP_MUL, G,
            gradient_conjugate(
                d, gradient_two(d, OP_MUL,
                                gradient_two(d, OP_MUL, r, gradient_two(d, OP_MUL, r, r)),
                                gradient_number(d, t, -0.5))));
    case OP_SIN:
        return gradient_two(d, OP_MUL, G, gradient_conjugate(d, gradient_one(d, OP_COS, x)));
    case OP_COS:
        return gradient_two(
            d, OP_MUL, G,
            gradient_conjugate(d, gradient_one(d, OP_NEG, gradient_one(d, OP_SIN, x))));
    case OP_TANH:
        return gradient_two(
            d, OP_MUL, G,
            gradient_conjugate(
                d, gradient_two(d, OP_SUB, gradient_filled(d, unit, node->rank, node->shape),
                                gradient_two(d, OP_MUL, r, r))));
    case OP_ERF:
        return gradient_two(
            d, OP_MUL, G,
            gradient_two(
                d, OP_MUL,
                gradient_one(d, OP_EXP, gradient_one(d, OP_NEG, gradient_two(d, OP_MUL, x, x))),
                gradient_number(d, t, 1.12837916709551257390)));
    case OP_SIGMOID:
        return gradient_two(
            d, OP_MUL, G,
            gradient_two(
                d, OP_MUL, r,
                gradient_two(d, OP_SUB, gradient_filled(d, unit, node->rank, node->shape), r)));
    case OP_RELU:
        return gradient_chosen(d, gradient_compared(d, OP_GT, x, zero), G,
                               gradient_filled(d, zero, node->rank, node->shape));
    case OP_GELU: {
        NodeRef below = gradient_two(
            d, OP_MUL,
            gradient_two(
                d, OP_ADD,
                gradient_one(
                    d, OP_ERF,
                    gradient_two(d, OP_MUL, x, gradient_number(d, t, 0.70710678118654752440))),
                unit),
            gradient_number(d, t, 0.5));
        NodeRef density =
            gradient_two(d, OP_MUL,
                         gradient_one(d, OP_EXP,
                                      gradient_two(d, OP_MUL, gradient_two(d, OP_MUL, x, x),
                                                   gradient_number(d, t, -0.5))),
                         gradient_number(d, t, 0.39894228040143267794));
        return gradient_two(
            d, OP_MUL, G, gradient_two(d, OP_ADD, below, gradient_two(d, OP_MUL, x, density)));
    }
    case OP_FINITE:
        return gradient_chosen(d, gradient_compared(d, OP_EQ, r, x), G,
                               gradient_filled(d, zero, node->rank, node->shape));
    case OP_ATAN:
        return gradient_two(d, OP_DIV, G,
                            gradient_two(d, OP_ADD, gradient_two(d, OP_MUL, x, x), unit));
    case OP_CONJ:
        return gradient_conjugate(d, G);
    case OP_RE:
        return dtype_is_complex(t) ? gradient_cast(d, G, t) : G;
    case OP_IM:
        return dtype_is_complex(t)
                   ? gradient_two(d, OP_MUL, gradient_cast(d, G, t),
                                  graph_const(d->g, (Number){.dtype = t, .im = 1}, d->span))
                   : NODE_NONE;
    default: /* floor, ceil, round, sign: steps */
        return NODE_NONE;
    }
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
        dy = gradient_two(d, OP_MUL, gradient_one(d, OP_NEG, G),
                          gradient_conjugate(d, gradient_two(d, OP_DIV, r, y)));
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
        dy = gradient_two(d, OP_MUL, gradient_one(d, OP_NEG, G),
                          gradient_one(d, OP_FLOOR, gradient_two(d, OP_DIV, x, y)));
        break;
    case OP_ATAN2: { /* of x / y */
        NodeRef square = gradient_two(d, OP_ADD, gradient_two(d, OP_MUL, x, x),
                                      gradient_two(d, OP_MUL, y, y));
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
    NodeRef part = slope(d, node, operand(d, node, 0), r, G);
    if (part != NODE_NONE) {
        gradient_give_operand(d, node, 0, part);
    }
}
