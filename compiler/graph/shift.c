/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel gives does not change with the maximum that softmax and its like subtract, and so has no derivative by it. Let m be
 * the maximum plus a number. Then each value is its old self, plus q times that number (m itself, x - m, a logarithm), or
 * times exp(p times it) (exp(x - m), sums and products of such), or it changes in another way. Results whose q or p is 0 do not
 * change: sum(exp(x - m) * v) / sum(exp(x - m)), m + log(sum(exp(x - m))). */
#include "graph/gradient.h"

#include <string.h>

typedef enum ShiftKind { SHIFT_NONE, SHIFT_ADDS, SHIFT_SCALES, SHIFT_OTHER } ShiftKind;

typedef struct Shift {
    ShiftKind kind;
    double by;
    int32_t *
        at; /* [rank of the maximum] where each of its dimensions is: a dimension of a value, or a label of a node */
} Shift;

typedef struct Shifts {
    const Graph *g;
    Arena *arena;
    uint32_t rank; /* of the maximum */
    Shift *of;     /* of each value */
} Shifts;

static const Shift none = {SHIFT_NONE, 0, NULL}, other = {SHIFT_OTHER, 0, NULL};

static Shift shift_by(ShiftKind kind, double by, int32_t *at)
{
    return by < 0 || by > 0 ? (Shift){kind, by, at} : none;
}

/* Operand k, with labels of the node. */
static Shift operand_shift(const Shifts *s, const Node *n, uint32_t k)
{
    Shift x = s->of[n->operand[k]];
    if (x.kind == SHIFT_NONE || x.kind == SHIFT_OTHER) {
        return x;
    }
    int32_t *label = ARENA_ARRAY(s->arena, s->rank + 1, int32_t);
    for (uint32_t a = 0; a < s->rank; a++) {
        label[a] = n->access[k].index[x.at[a]].label;
        if (label[a] < 0) {
            return other;
        }
    }
    x.at = label;
    return x;
}

static bool same_place(const Shifts *s, Shift x, Shift y)
{
    return s->rank == 0 || memcmp(x.at, y.at, s->rank * sizeof *x.at) == 0;
}

static bool is_number(const Graph *g, NodeRef r, double *value)
{
    const Node *n = graph_node(g, r);
    *value = n->op == OP_CONST ? n->value.re : 0;
    return n->op == OP_CONST && dtype_is_float(n->dtype);
}

/* x + y, x - y. */
static Shift sum_of(const Shifts *s, Shift x, Shift y, double sign)
{
    if (x.kind == SHIFT_NONE && y.kind == SHIFT_NONE) {
        return none;
    }
    if (x.kind == SHIFT_NONE && y.kind == SHIFT_ADDS) {
        return shift_by(SHIFT_ADDS, sign * y.by, y.at);
    }
    if (y.kind == SHIFT_NONE && x.kind == SHIFT_ADDS) {
        return x;
    }
    if (x.kind != y.kind || x.kind == SHIFT_NONE || x.kind == SHIFT_OTHER ||
        !same_place(s, x, y)) {
        return other;
    }
    if (x.kind == SHIFT_ADDS) {
        return shift_by(SHIFT_ADDS, x.by + sign * y.by, x.at);
    }
    return x.by == y.by ? x : other; /* NOLINT: numbers of few bits */
}

/* x * y, x / y, of factors that scale. */
static Shift product_of(const Shifts *s, Shift x, Shift y, double sign)
{
    bool fine = (x.kind == SHIFT_NONE || x.kind == SHIFT_SCALES) &&
                (y.kind == SHIFT_NONE || y.kind == SHIFT_SCALES);
    if (!fine) {
        return other;
    }
    if (x.kind == SHIFT_NONE && y.kind == SHIFT_NONE) {
        return none;
    }
    if (x.kind == SHIFT_NONE) {
        return shift_by(SHIFT_SCALES, sign * y.by, y.at);
    }
    if (y.kind == SHIFT_NONE) {
        return x;
    }
    return same_place(s, x, y) ? shift_by(SHIFT_SCALES, x.by + sign * y.by, x.at) : other;
}

static Shift scaled(Shift x, ShiftKind kind, ShiftKind becomes, double by)
{
    return x.kind == SHIFT_NONE ? none
           : x.kind == kind     ? shift_by(becomes, by * x.by, x.at)
                                : other;
}

static Shift map_shift(const Shifts *s, const Node *n)
{
    Shift x[3] = {none, none, none};
    double c = 0;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        x[k] = operand_shift(s, n, k);
    }
    switch (n->op) {
    case OP_COPY:
    case OP_FINITE:
        return x[0];
    case OP_CAST:
        return dtype_is_float(n->dtype) || x[0].kind == SHIFT_NONE ? x[0] : other;
    case OP_NEG:
        return x[0].kind == SHIFT_ADDS ? shift_by(SHIFT_ADDS, -x[0].by, x[0].at) : x[0];
    case OP_ABS:
        return scaled(x[0], SHIFT_SCALES, SHIFT_SCALES, 1);
    case OP_SQRT:
        return scaled(x[0], SHIFT_SCALES, SHIFT_SCALES, 0.5);
    case OP_RSQRT:
        return scaled(x[0], SHIFT_SCALES, SHIFT_SCALES, -0.5);
    case OP_EXP:
        return scaled(x[0], SHIFT_ADDS, SHIFT_SCALES, 1);
    case OP_LOG:
        return scaled(x[0], SHIFT_SCALES, SHIFT_ADDS, 1);
    case OP_ADD:
        return sum_of(s, x[0], x[1], 1);
    case OP_SUB:
        return sum_of(s, x[0], x[1], -1);
    case OP_MUL:
        if (x[0].kind == SHIFT_ADDS && is_number(s->g, n->operand[1], &c)) {
            return shift_by(SHIFT_ADDS, c * x[0].by, x[0].at);
        }
        if (x[1].kind == SHIFT_ADDS && is_number(s->g, n->operand[0], &c)) {
            return shift_by(SHIFT_ADDS, c * x[1].by, x[1].at);
        }
        return product_of(s, x[0], x[1], 1);
    case OP_DIV:
        if (x[0].kind == SHIFT_ADDS && is_number(s->g, n->operand[1], &c)) {
            return shift_by(SHIFT_ADDS, x[0].by / c, x[0].at);
        }
        return product_of(s, x[0], x[1], -1);
    case OP_SELECT:
    case OP_WHERE:
        if (x[0].kind != SHIFT_NONE) {
            return other;
        }
        if (x[1].kind == SHIFT_SCALES && is_number(s->g, n->operand[2], &c) &&
            !(c < 0 || c > 0)) {
            return x[1]; /* 0 is 0 */
        }
        return x[1].kind == SHIFT_NONE && x[2].kind == SHIFT_NONE ? none
               : x[1].kind == x[2].kind && x[1].kind != SHIFT_OTHER && x[1].by == x[2].by &&
                       same_place(s, x[1], x[2])
                   ? x[1]
                   : other;
    default:
        return x[0].kind == SHIFT_NONE && x[1].kind == SHIFT_NONE && x[2].kind == SHIFT_NONE
                   ? none
                   : other;
    }
}

static Shift node_shift(const Shifts *s, const Node *n)
{
    OpKind kind = op_info(n->op)->kind;
    Shift x = none;
    if (kind == OPKIND_MAP) {
        x = map_shift(s, n);
    } else {
        for (uint32_t k = 0; k < n->n_operands; k++) {
            Shift y = operand_shift(s, n, k);
            bool folds = kind == OPKIND_REDUCE &&
                         (n->op == OP_SUM || n->op == OP_RMAX || n->op == OP_RMIN);
            x = y.kind == SHIFT_NONE                                   ? x
                : kind == OPKIND_CONTRACT                              ? product_of(s, x, y, 1)
                : folds && (n->op != OP_SUM || y.kind == SHIFT_SCALES) ? y
                                                                       : other;
        }
    }
    if (x.kind == SHIFT_NONE || x.kind == SHIFT_OTHER) {
        return x;
    }
    int32_t *at = ARENA_ARRAY(s->arena, s->rank + 1, int32_t);
    for (uint32_t a = 0; a < s->rank; a++) {
        at[a] = -1;
        for (uint32_t d = 0; d < n->rank; d++) {
            at[a] = n->out[d] == x.at[a] ? (int32_t)d : at[a];
        }
        if (at[a] < 0) {
            return other; /* folded over */
        }
    }
    x.at = at;
    return x;
}

bool graph_shifts_out(Arena *arena, const Graph *g, NodeRef most, uint32_t n)
{
    ArenaMark mark = arena_mark(arena);
    const Node *m = graph_node(g, most);
    Shifts s = {g, arena, m->rank, ARENA_ARRAY(arena, n, Shift)};
    int32_t *at = ARENA_ARRAY(arena, m->rank + 1, int32_t);
    for (uint32_t d = 0; d < m->rank; d++) {
        at[d] = (int32_t)d;
    }
    s.of[most] = (Shift){SHIFT_ADDS, 1, at};
    for (NodeRef r = most + 1; r < n; r++) {
        const Node *node = graph_node(g, r);
        bool leaf = op_info(node->op)->kind == OPKIND_LEAF;
        s.of[r] = leaf ? none : node_shift(&s, node);
    }
    bool out = true;
    for (uint32_t k = 0; k < g->results.n; k++) {
        out = out && s.of[g->results.at[k].node].kind == SHIFT_NONE;
    }
    arena_reset(arena, mark);
    return out;
}
