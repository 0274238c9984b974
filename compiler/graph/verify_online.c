/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of online sums, derived a second time: backward from the sum, with every index followed
 * into the labels of the sum, where the finder goes forward from the maximum. */
#include "graph/verify_online.h"

/* Nodes between a sum and its maximum, visited. */
#define VISITS_MOST 4096
/* Nodes after the maxima of all rules: more than any finder looks at. */
#define WORK_MOST (64 << 20)

typedef struct Tracer {
    const Graph *g;
    Arena *scratch;
    const Online *rule;
    bool *depends;    /* [nodes]: on the base */
    int32_t t;        /* the label of the sum that the maximum is taken over; -1: not met yet */
    int32_t n_labels; /* of the sum, and of sums met on the way */
    uint32_t visits;
} Tracer;

/* The label of the sum (or a new one) that each dimension of an operand is read with. */
static int32_t *labels_read(Tracer *t, const Node *n, uint32_t k, const int32_t *own)
{
    const Access *a = &n->access[k];
    int32_t *out = ARENA_ARRAY(t->scratch, a->rank, int32_t);
    for (uint32_t d = 0; d < a->rank; d++) {
        out[d] = a->index[d].label < 0 ? -1 : own[a->index[d].label];
    }
    return out;
}

/* By label of node `n`, whose dimensions are these labels. */
static int32_t *labels_of(Tracer *t, const Node *n, const int32_t *dims)
{
    int32_t *own = ARENA_ARRAY(t->scratch, n->n_labels, int32_t);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        own[l] = -2;
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        own[n->out[d]] = dims[d];
    }
    for (uint32_t l = 0; l < n->n_labels; l++) {
        own[l] = own[l] == -2 ? t->n_labels++ : own[l];
    }
    return own;
}

/* Is `n` the elements of the base's operand less the base, at the rule's labels? */
static bool is_difference(Tracer *t, const Node *n, const int32_t *dims)
{
    const Node *y = graph_node(t->g, t->rule->base);
    if (n->op != OP_SUB || n->operand[1] != t->rule->base || n->operand[0] != y->operand[0]) {
        return false;
    }
    const int32_t *own = labels_of(t, n, dims);
    const int32_t *s = labels_read(t, n, 0, own), *at = labels_read(t, n, 1, own);
    int32_t *of_label = ARENA_ARRAY(t->scratch, y->n_labels, int32_t);
    for (uint32_t l = 0; l < y->n_labels; l++) {
        of_label[l] = -1;
    }
    for (uint32_t d = 0; d < y->rank; d++) {
        of_label[y->out[d]] = at[d];
        if (at[d] != t->rule->at.index[d].label) {
            return false;
        }
    }
    for (uint32_t d = 0; d < y->access[0].rank; d++) {
        Index in_y = y->access[0].index[d], here = n->access[0].index[d];
        if (in_y.label < 0) {
            if (here.label >= 0 || here.offset != in_y.offset) {
                return false;
            }
            continue;
        }
        int32_t *of = &of_label[in_y.label];
        *of = *of < 0 ? s[d] : *of;
        if (*of < 0 || *of != s[d]) {
            return false;
        }
        if (node_reduces(y, in_y.label)) {
            t->t = t->t < 0 ? s[d] : t->t;
            if (t->t != s[d]) {
                return false;
            }
        }
    }
    return true;
}

/* Is `n` what exp is taken of: the difference, times the rule's scale if it has one? */
static bool is_argument(Tracer *t, NodeRef n, const int32_t *dims)
{
    const Node *node = graph_node(t->g, n);
    if (t->rule->scale == NODE_NONE) {
        return is_difference(t, node, dims);
    }
    for (uint32_t k = 0; node->op == OP_MUL && k < 2; k++) {
        if (node->operand[1 - k] == t->rule->scale) {
            const int32_t *own = labels_of(t, node, dims);
            NodeRef of = node->operand[k];
            return is_difference(t, graph_node(t->g, of), labels_read(t, node, k, own));
        }
    }
    return false;
}

static int32_t power_of(Tracer *t, NodeRef n, const int32_t *dims);

/* Powers of the operands that depend on the base: added, or all the same (`alike`). */
static int32_t power_of_operands(Tracer *t, const Node *n, const int32_t *own, bool alike)
{
    int32_t power = 0;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        bool apart = (n->op == OP_DIV && k == 1) || (n->op == OP_WHERE && k != 1);
        if ((apart || !alike) && !t->depends[n->operand[k]]) {
            continue;
        }
        int32_t p = apart ? -1 : power_of(t, n->operand[k], labels_read(t, n, k, own));
        if (p < 1 || p > ONLINE_POWER || (alike && power > 0 && power != p)) {
            return -1;
        }
        power = alike ? p : power + p;
    }
    return power > ONLINE_POWER ? -1 : power;
}

/* Does it fold an index, other than `t`, over perhaps no position at all? */
static bool folds_nothing(const Node *n, int32_t t)
{
    for (uint32_t l = 0; l < n->n_labels; l++) {
        Dim e = n->extent[l];
        if ((int32_t)l != t && node_reduces(n, (int32_t)l) && (e.sym >= 0 || e.n == 0)) {
            return true;
        }
    }
    return false;
}

/* By which power of the factor the node is a multiple, at these labels; -1: it is none. */
static int32_t power_of(Tracer *t, NodeRef n, const int32_t *dims)
{
    const Node *node = graph_node(t->g, n);
    if (!t->depends[n] || n == t->rule->base || ++t->visits > VISITS_MOST ||
        !dtype_is_float(node->dtype)) {
        return -1;
    }
    const int32_t *own = labels_of(t, node, dims);
    if (folds_nothing(node, -1)) {
        return -1;
    }
    switch (node->op) {
    case OP_EXP:
        return is_argument(t, node->operand[0], labels_read(t, node, 0, own)) ? 1 : -1;
    case OP_MUL:
    case OP_EINSUM:
        return node->onto ? -1 : power_of_operands(t, node, own, false);
    case OP_CAST:
        return dtype_keeps_range(graph_node(t->g, node->operand[0])->dtype, node->dtype)
                   ? power_of_operands(t, node, own, true)
                   : -1;
    case OP_SUM:
    case OP_ADD:
    case OP_SUB:
    case OP_NEG:
    case OP_COPY:
    case OP_DIV:
    case OP_WHERE:
        return power_of_operands(t, node, own, true);
    default:
        return -1;
    }
}

static const char *form_problem(const Graph *g, const Online *o, const Online *before)
{
    if (o->node >= g->nodes.n || o->base >= o->node) {
        return "names no value after the one that it follows";
    }
    if (before != NULL &&
        (before->base > o->base || (before->base == o->base && before->node >= o->node))) {
        return "is not in order";
    }
    const Node *n = graph_node(g, o->node), *y = graph_node(g, o->base);
    if (y->op != OP_RMAX || !dtype_is_float(y->dtype) || y->n_labels != y->rank + 1) {
        return "follows no maximum over one index";
    }
    if ((n->op != OP_SUM && n->op != OP_EINSUM) || n->onto || o->power < 1 ||
        o->power > ONLINE_POWER || o->at.rank != y->rank) {
        return "is of no sum, or reads what it follows at too few indices";
    }
    for (uint32_t d = 0; d < o->at.rank; d++) {
        int32_t l = o->at.index[d].label;
        if (l < 0 || (uint32_t)l >= n->n_labels || node_reduces(n, l) ||
            !dim_eq(n->extent[l], y->shape[d])) {
            return "reads what it follows at an index that the sum does not keep";
        }
    }
    if (o->t < 0 || (uint32_t)o->t >= n->n_labels || !node_reduces(n, o->t)) {
        return "does not sum over the index of the maximum";
    }
    if (o->scale != NODE_NONE && (o->scale >= o->node || graph_node(g, o->scale)->rank != 0 ||
                                  !graph_is_positive(g, o->scale))) {
        return "has a scale that is no positive number";
    }
    return NULL;
}

static const char *rule_problem(const Graph *g, Arena *scratch, bool *depends, const Online *o)
{
    const Node *n = graph_node(g, o->node);
    Tracer t = {.g = g, .scratch = scratch, .rule = o, .depends = depends, .t = -1};
    int32_t *own = ARENA_ARRAY(scratch, n->n_labels, int32_t);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        own[l] = t.n_labels++;
    }
    if (o->scale != NODE_NONE && depends[o->scale]) {
        return "has a scale that depends on what it follows";
    }
    if (folds_nothing(n, o->t)) {
        return "is of a sum over another index, which may have no position";
    }
    if (power_of_operands(&t, n, own, n->op == OP_SUM) != o->power) {
        return "does not have that power of the factor";
    }
    return t.t == o->t ? NULL : "does not sum over the index of the maximum";
}

const char *graph_online_problem(const Graph *g, Arena *scratch, uint32_t *at)
{
    bool *depends = ARENA_ARRAY(scratch, g->nodes.n, bool);
    const Online *before = NULL;
    uint64_t work = 0;
    for (*at = 0; *at < g->online.n; ++*at) {
        const Online *o = &g->online.at[*at];
        const char *problem = form_problem(g, o, before);
        bool fresh = problem == NULL && (before == NULL || before->base != o->base);
        work += fresh ? g->nodes.n - o->base : 0;
        problem = work > WORK_MOST ? "is one of too many" : problem;
        for (NodeRef n = before == NULL ? 0 : before->base;
             problem == NULL && fresh && n < g->nodes.n; n++) {
            const Node *node = graph_node(g, n);
            depends[n] = n == o->base;
            for (uint32_t k = 0; k < node->n_operands; k++) {
                depends[n] = depends[n] || depends[node->operand[k]];
            }
        }
        ArenaMark mark = arena_mark(scratch);
        problem = problem == NULL ? rule_problem(g, scratch, depends, o) : problem;
        arena_reset(scratch, mark);
        if (problem != NULL) {
            return problem;
        }
        before = o;
    }
    return NULL;
}
