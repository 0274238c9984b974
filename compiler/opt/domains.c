/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a machine knows for some operands only, where the program sees to it that no others count. Such a machine
 * computes both branches of a selection, so in a branch the operand of log, sqrt, rsqrt, of a power's base and of a division's
 * right side is 1 wherever the other branch is taken:
 *
 *     select(x > 0, log(x), 0)  ->  select(x > 0, log(select(x > 0, x, 1)), 0)
 *
 * What the condition itself is made of is computed for all operands anyway, and stays one value.
 *
 * And the root of what is never negative, but may be 0, is taken of no less than the least operand:
 *
 *     sqrt(x)  ->  sqrt(max(x, least)) * (x >= least) */
#include "opt/opt.h"

#include "opt/rewrite.h"

#define NESTED 12       /* operations of a branch inside each other */
#define LEAST  0x1p-116 /* the machines' square root: docs/trainium.md */
#define CHAIN  8        /* selections of one operand inside each other */
#define MADE   64 /* values that a condition is made of, at most; more are not looked at */

/* The operand that the function does not take every number for; NODE_NONE: it takes all. */
static uint32_t operand_with_domain(Op op)
{
    switch ((int)op) {
    case OP_LOG:
    case OP_SQRT:
    case OP_RSQRT:
    case OP_POW:
        return 0;
    case OP_DIV:
        return 1;
    default:
        return NODE_NONE;
    }
}

/* ---- guarded by a selection ---- */

/* A selection being made anew. */
typedef struct Guard {
    Rewriter *r;
    const NodeSpec *select;
    bool taken;         /* the branch at hand is the one where the condition holds */
    const NodeRef *own; /* what the condition is made of, and it */
    uint32_t n_own;
} Guard;

/* The values that a condition is made of, by elementwise operations; returns how many. */
static uint32_t find_own(const Graph *g, NodeRef condition, NodeRef own[MADE])
{
    uint32_t n = 0;
    own[n++] = condition;
    for (uint32_t i = 0; i < n; i++) {
        const Node *node = graph_node(g, own[i]);
        bool map = op_info(node->op)->kind == OPKIND_MAP;
        for (uint32_t k = 0; map && k < node->n_operands && n < MADE; k++) {
            uint32_t at = 0;
            while (at < n && own[at] != node->operand[k]) {
                at++;
            }
            own[n] = node->operand[k];
            n += at == n ? 1 : 0;
        }
    }
    return n;
}

static bool is_own(const Guard *g, NodeRef n)
{
    bool is = false;
    for (uint32_t i = 0; i < g->n_own && !is; i++) {
        is = g->own[i] == n;
    }
    return is;
}

/* How operand k of `n`, which is read by `a`, is read in the labels of the selection. */
static Access read_through(Rewriter *r, const Node *n, uint32_t k, const Access *a)
{
    const Access *in = &n->access[k];
    Index *of_label = ARENA_ARRAY(&r->scratch, (size_t)n->n_labels + 1, Index);
    Index *index = ARENA_ARRAY(&r->scratch, (size_t)in->rank + 1, Index);
    for (uint32_t d = 0; d < n->rank; d++) {
        of_label[n->out[d]] = a->index[d];
    }
    for (uint32_t d = 0; d < in->rank; d++) {
        index[d] = in->index[d].label >= 0 ? of_label[in->index[d].label] : in->index[d];
    }
    return (Access){in->rank, index};
}

static bool reads_label(const NodeSpec *s, int32_t label)
{
    for (uint32_t k = 0; k < s->n_operands; k++) {
        for (uint32_t d = 0; d < s->access[k].rank; d++) {
            if (s->access[k].index[d].label == label) {
                return true;
            }
        }
    }
    return false;
}

/* The node over those labels of the selection that it reads; *how: these. */
static NodeRef add_over_labels(const Guard *g, NodeSpec *s, Access *how)
{
    int32_t *out = ARENA_ARRAY(&g->r->scratch, (size_t)g->select->rank + 1, int32_t);
    Index *index = ARENA_ARRAY(&g->r->scratch, (size_t)g->select->rank + 1, Index);
    s->rank = 0;
    for (uint32_t d = 0; d < g->select->rank; d++) {
        if (reads_label(s, g->select->out[d])) {
            index[s->rank] = (Index){.label = g->select->out[d]};
            out[s->rank++] = g->select->out[d];
        }
    }
    s->out = out;
    s->span = g->select->span;
    *how = (Access){s->rank, index};
    return graph_add(g->r->to, s);
}

/* Is the value chosen by this condition already? */
static bool is_chosen(const Graph *g, NodeRef value, NodeRef condition)
{
    for (uint32_t k = 0; k < CHAIN; k++) {
        const Node *n = graph_node(g, value);
        if (n->op != OP_SELECT) {
            return false;
        }
        if (n->operand[0] == condition) {
            return true;
        }
        bool one = graph_node(g, n->operand[1])->op == OP_CONST;
        value = n->operand[one ? 2 : 1];
    }
    return false;
}

/* The value where the branch is taken, else 1. */
static NodeRef safe_operand(const Guard *g, NodeRef value, Access *how)
{
    Rewriter *r = g->r;
    DType t = graph_node(r->to, value)->dtype;
    NodeRef one = graph_const(r->to, number_real(t, 1.0), g->select->span);
    NodeRef operand[3] = {g->select->operand[0], g->taken ? value : one,
                          g->taken ? one : value};
    Access access[3] = {g->select->access[0]};
    access[g->taken ? 1 : 2] = *how;
    NodeSpec s = {
        .op = OP_SELECT, .dtype = t, .n_operands = 3, .operand = operand, .access = access};
    return add_over_labels(g, &s, how);
}

/* `n`, read by *how, with safe operands; itself if nothing in it needs any. */
static NodeRef guarded(const Guard *g, NodeRef n, Access *how, uint32_t depth)
{
    Rewriter *r = g->r;
    const Node node = *graph_node(r->to, n);
    if (op_info(node.op)->kind != OPKIND_MAP || depth == NESTED || is_own(g, n) ||
        (!dtype_is_float(node.dtype) && node.dtype != DTYPE_BOOL)) {
        return n;
    }
    uint32_t bounded = operand_with_domain(node.op);
    NodeRef operand[3];
    Access access[3];
    bool changed = false;
    for (uint32_t k = 0; k < node.n_operands; k++) {
        access[k] = read_through(r, &node, k, how);
        operand[k] = guarded(g, node.operand[k], &access[k], depth + 1);
        bool constant = graph_node(r->to, operand[k])->op == OP_CONST;
        if (k == bounded && !constant && !is_chosen(r->to, operand[k], g->select->operand[0])) {
            operand[k] = safe_operand(g, operand[k], &access[k]);
        }
        changed |= operand[k] != node.operand[k];
    }
    if (!changed) {
        return n;
    }
    NodeSpec s = {.op = node.op,
                  .dtype = node.dtype,
                  .name = node.name,
                  .n_operands = node.n_operands,
                  .operand = operand,
                  .access = access};
    return add_over_labels(g, &s, how);
}

static Verdict guard_branches(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    NodeRef *operand = arena_copy(&r->scratch, s->operand, s->n_operands * sizeof *operand);
    Access *access = arena_copy(&r->scratch, s->access, s->n_operands * sizeof *access);
    const NodeSpec before = *s;
    bool changed = false;
    NodeRef own[MADE];
    uint32_t n_own = find_own(r->to, s->operand[0], own);
    for (uint32_t k = 1; k < 3; k++) {
        Guard g = {r, &before, k == 1, own, n_own};
        operand[k] = guarded(&g, s->operand[k], &access[k], 0);
        changed |= operand[k] != s->operand[k];
    }
    if (!changed) {
        return RULE_NO;
    }
    s->operand = operand;
    s->access = access;
    return RULE_SPEC;
}

/* ---- by a sign that is known ---- */

/* A number that is at least so much. */
static bool is_const_from(const Graph *g, NodeRef n, double least)
{
    const Node *node = graph_node(g, n);
    return node->op == OP_CONST && dtype_is_float(node->dtype) && node->value.re >= least;
}

static bool same_operands(const Node *n, uint32_t k, uint32_t l)
{
    return n->operand[k] == n->operand[l] && access_eq(n->access[k], n->access[l]);
}

static bool is_never_negative(const Graph *g, NodeRef at, uint32_t depth)
{
    const Node *n = graph_node(g, at);
    if (depth == NESTED || !dtype_is_float(n->dtype)) {
        return false;
    }
    bool all = true, any = false;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        bool sign = is_never_negative(g, n->operand[k], depth + 1);
        all &= sign;
        any |= sign;
    }
    switch ((int)n->op) {
    case OP_CONST:
        return n->value.re >= 0;
    case OP_ABS:
    case OP_EXP:
    case OP_SQRT:
    case OP_RSQRT:
    case OP_RELU:
        return true;
    case OP_MUL:
    case OP_EINSUM:
        return all || (n->n_operands == 2 && same_operands(n, 0, 1));
    case OP_MAX:
        return any;
    case OP_ADD:
    case OP_DIV:
    case OP_MIN:
    case OP_COPY:
    case OP_CAST:
    case OP_POW:
    case OP_SUM:
    case OP_RMAX:
    case OP_RMIN:
    case OP_PROD:
        return all;
    case OP_SELECT:
        return is_never_negative(g, n->operand[1], depth + 1) &&
               is_never_negative(g, n->operand[2], depth + 1);
    default:
        return false;
    }
}

/* Never below the least operand of a root. */
static bool is_large_enough(const Graph *g, NodeRef at)
{
    const Node *n = graph_node(g, at);
    return n->op == OP_EXP || is_const_from(g, at, LEAST) ||
           ((n->op == OP_MAX || n->op == OP_ADD) && n->n_operands == 2 &&
            (is_const_from(g, n->operand[0], LEAST) || is_const_from(g, n->operand[1], LEAST)));
}

/* op(x, the least operand) over x's own dimensions. */
static NodeRef with_least(Rewriter *r, const NodeSpec *root, Op op, DType t)
{
    NodeRef operand[2] = {root->operand[0],
                          graph_const(r->to, number_real(root->dtype, LEAST), root->span)};
    Access access[2] = {root->access[0]};
    NodeSpec s = node_spec(op, t, 2, operand, access, root->rank, root->out, NULL, root->span);
    return graph_add(r->to, &s);
}

/* A function of one value that has the dimensions of `like`. */
static NodeRef apply_one(Rewriter *r, const NodeSpec *like, Op op, NodeRef x, Access how)
{
    NodeSpec s = *like;
    s.op = op;
    s.name = NULL;
    s.n_operands = 1;
    s.operand = &x;
    s.access = &how;
    return graph_add(r->to, &s);
}

static Verdict root_of_no_less(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    if (s->dtype != DTYPE_F32 || is_large_enough(r->to, s->operand[0]) ||
        !is_never_negative(r->to, s->operand[0], 0)) {
        return RULE_NO;
    }
    Access own = access_of(&r->scratch, s->rank, s->out);
    NodeRef operand[2];
    operand[0] = apply_one(r, s, OP_SQRT, with_least(r, s, OP_MAX, s->dtype), own);
    operand[1] = apply_one(r, s, OP_CAST, with_least(r, s, OP_GE, DTYPE_BOOL), own);
    const Access access[2] = {own, own};
    return spec_set(r, s, OP_MUL, 2, operand, access);
}

static const Rule rules[] = {
    {"guard-branches", OP_SELECT, guard_branches},
    {"root-of-no-less", OP_SQRT, root_of_no_less},
};

/* A large graph is not copied for nothing. */
static bool any_of(const Graph *g)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (graph_node(g, n)->op == OP_SELECT || graph_node(g, n)->op == OP_SQRT) {
            return true;
        }
    }
    return false;
}

Graph *opt_domains(Ctx *ctx, Arena *arena, Graph *g)
{
    return any_of(g) ? rewrite_graph(ctx, arena, g, rules, sizeof rules / sizeof rules[0]) : g;
}
