/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions that are added up where their sum is: what must hold, checked without the code that decides it. */
#include "nest/addends.h"
#include "nest/verify.h"

typedef struct Check {
    Arena *arena;
    const Nest *nest;
    const Graph *g;
    const UseList *uses;
    const uint32_t *leaf, *home;
} Check;

static bool same_element(const Node *sum, const Access *a)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        if (d >= sum->rank || a->index[d].label != sum->out[d] || a->index[d].offset != 0) {
            return false;
        }
    }
    return a->rank == sum->rank;
}

/* How often `c` is a term of the sum at its own element, with numbers and scalars before it; `plain`: with none, and not
 * subtracted. The walk ends at what is no sum. */
typedef struct Walk {
    NodeRef at;
    Access access;
    uint32_t scales;
    bool minus;
} Walk;

static bool is_number(const Node *n, DType t)
{
    bool complex = dtype_is_complex(t);
    return n->rank == 0 && n->dtype == t &&
           (n->op == OP_CONST ? !complex || n->value.im == 0 : n->op == OP_INPUT && !complex);
}

static uint32_t count_terms(const Check *v, NodeRef sum, NodeRef c, bool plain)
{
    const Node *s = graph_node(v->g, sum);
    Index *own = ARENA_ARRAY(v->arena, s->rank, Index);
    for (uint32_t d = 0; d < s->rank; d++) {
        own[d] = (Index){s->out[d], 0};
    }
    VEC(Walk) left = {0};
    Walk root = {.at = sum, .access = {s->rank, own}};
    vec_push(v->arena, &left, root);
    uint32_t count = 0;
    while (left.n > 0) {
        Walk w = left.at[--left.n];
        const Node *n = graph_node(v->g, w.at);
        if (w.at == c) {
            bool bare = w.scales == 0 && !w.minus;
            count += same_element(s, &w.access) && (bare || !plain) ? 1 : 0;
            continue;
        }
        if (w.at != sum && v->nest->values[w.at].residence != RESIDE_INLINE) {
            continue;
        }
        bool product = n->op == OP_MUL,
             sums = n->op == OP_ADD || n->op == OP_SUB || n->op == OP_NEG;
        bool first = product && is_number(graph_node(v->g, n->operand[0]), n->dtype);
        bool second = product && !first && is_number(graph_node(v->g, n->operand[1]), n->dtype);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            if (!sums && !(first && k == 1) && !(second && k == 0)) {
                continue;
            }
            Walk next = {.at = n->operand[k],
                         .access = access_compose(v->arena, n, n->access[k], w.access),
                         .scales = w.scales + (sums ? 0 : 1),
                         .minus = w.minus != (n->op == OP_NEG || (n->op == OP_SUB && k > 0))};
            if (next.scales <= NEST_SCALES) {
                vec_push(v->arena, &left, next);
            }
        }
    }
    return count;
}

/* From the top-level item of `n` on, does anything but `except` read the parameter? */
static bool is_read_from(const Check *v, NodeRef n, NodeRef except, uint32_t param)
{
    uint32_t top = v->leaf[n];
    while (v->nest->items[top].parent != NEST_NONE) {
        top = v->nest->items[top].parent;
    }
    for (uint32_t k = top; k < v->nest->n_items; k++) {
        NodeRef r = v->nest->items[k].node;
        bool leaf = !nest_is_loop(&v->nest->items[k]) && r != except;
        for (uint32_t i = 0; leaf && i < v->uses[r].list.n; i++) {
            const Node *p = graph_node(v->g, v->uses[r].list.at[i].node);
            if (p->op == OP_INPUT && p->param == param) {
                return true;
            }
        }
    }
    return false;
}

static const char *old_problem(const Check *v, NodeRef n, NodeRef sum)
{
    const NestValue *value = &v->nest->values[n], *s = &v->nest->values[sum];
    const Result *result = &v->g->results.at[value->result];
    NodeRef old = NODE_NONE;
    uint32_t reads = 0;
    if (s->residence != RESIDE_RESULT || s->result != value->result || result->param < 0) {
        return "is added into an argument that its sum does not change";
    }
    for (uint32_t i = 0; i < v->uses[sum].list.n; i++) {
        NodeRef p = v->uses[sum].list.at[i].node;
        const Node *node = graph_node(v->g, p);
        if (node->op == OP_INPUT && node->param == (uint32_t)result->param) {
            reads++;
            old = p;
        }
    }
    if (reads != 1 || count_terms(v, sum, old, true) != 1) {
        return "is added into an argument that is no term of its sum";
    }
    return is_read_from(v, n, sum, (uint32_t)result->param)
               ? "is added into an argument that is still read"
               : NULL;
}

/* The label of the loop in `n`, as a dimension of its value; -1: none. */
static int32_t dimension(const Check *v, uint32_t loop, NodeRef n)
{
    const NestAxis *axis = &v->nest->axes[v->nest->items[loop].axis];
    const Node *node = graph_node(v->g, n);
    for (uint32_t k = 0; k < axis->n; k++) {
        for (uint32_t d = 0; axis->node[k] == n && d < node->rank; d++) {
            if (node->out[d] == axis->label[k]) {
                return (int32_t)d;
            }
        }
    }
    return -1;
}

static const char *place_problem(const Check *v, NodeRef n, NodeRef sum)
{
    const Nest *nest = v->nest;
    NodeRef base = nest->values[n].in_place;
    if (base >= v->g->nodes.n || nest->values[base].term_of != sum ||
        nest->values[base].residence == RESIDE_INTO || v->leaf[base] >= v->leaf[n]) {
        return "is added into what is no term of its sum before it";
    }
    bool inside = false; /* of the home */
    for (uint32_t p = nest->items[v->leaf[n]].parent; !inside; p = nest->items[p].parent) {
        inside = p == v->home[base];
        if (!inside && p == NEST_NONE) {
            return "is added into a block that is not there";
        }
        bool around = p != NEST_NONE && p < v->leaf[base] && v->leaf[base] < nest->items[p].end;
        int32_t d = around ? dimension(v, p, n) : -1, e = around ? dimension(v, p, base) : -1;
        if (!inside && around && (d < 0 || d != e)) {
            return "is added into a block that its loop has not begun";
        }
        if (inside) {
            break;
        }
    }
    for (uint32_t p = v->home[base]; p != NEST_NONE; p = nest->items[p].parent) {
        if (dimension(v, p, n) != dimension(v, p, base)) {
            return "is added into a block that is cut otherwise";
        }
    }
    return NULL;
}

/* The first of the terms, made in the result. */
static const char *first_problem(const Check *v, NodeRef n, NodeRef sum)
{
    const NestValue *value = &v->nest->values[n], *s = &v->nest->values[sum];
    if (value->residence != RESIDE_RESULT) {
        return NULL;
    }
    if (s->residence != RESIDE_RESULT || s->result != value->result) {
        return "names a result that is not its own";
    }
    int32_t param = v->g->results.at[value->result].param;
    return param >= 0 && is_read_from(v, n, NODE_NONE, (uint32_t)param)
               ? "overwrites a parameter that is still read"
               : NULL;
}

const char *nest_term_problem(Arena *arena, const Nest *nest, const UseList *uses,
                              const uint32_t *leaf, const uint32_t *home, const uint32_t *reads,
                              const bool *kept, NodeRef n)
{
    Check v = {arena, nest, nest->graph, uses, leaf, home};
    const NestValue *value = &nest->values[n];
    const Node *node = graph_node(v.g, n);
    NodeRef sum = value->term_of;
    if (sum == NODE_NONE) {
        return value->residence == RESIDE_INTO ? "is added into no sum" : NULL;
    }
    if (sum >= v.g->nodes.n || leaf[sum] == NEST_NONE || leaf[n] >= leaf[sum] || kept[n] ||
        reads[n] != 1 || count_terms(&v, sum, n, false) != 1) {
        return "is no term of the sum, or is read otherwise";
    }
    if (op_info(node->op)->kind != OPKIND_CONTRACT || node_is_expression(node) ||
        node->acc != node->dtype || node->dtype == DTYPE_BOOL ||
        node->dtype != graph_node(v.g, sum)->dtype) {
        return "is no sum of products in the type of the sum that it is a term of";
    }
    if (nest->items[leaf[n]].again || nest->items[leaf[n]].both ||
        nest->items[leaf[sum]].again) {
        return "is computed again, or stored twice, and added up";
    }
    for (uint32_t p = nest->items[leaf[n]].parent; p != NEST_NONE; p = nest->items[p].parent) {
        if (nest->items[p].online || nest->items[p].from != 0) {
            return "is added up in a loop over pairs, or in which a maximum grows";
        }
    }
    return value->residence != RESIDE_INTO ? first_problem(&v, n, sum)
           : value->result >= 0            ? old_problem(&v, n, sum)
                                           : place_problem(&v, n, sum);
}
