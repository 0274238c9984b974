/* SPDX-License-Identifier: Apache-2.0 */
#include "opt/where.h"

/* The one summed label of a condition, if it stands there by itself; -1. One of a single position is no loop. */
static int32_t bounded_label(const Node *sum, Affine x)
{
    int32_t label = -1;
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        if (affine_is_dim(t.var) || !node_reduces(sum, (int32_t)t.var)) {
            continue;
        }
        if (label >= 0 || (t.coef != 1 && t.coef != -1) || dim_is(sum->extent[t.var], 1)) {
            return -1;
        }
        label = (int32_t)t.var;
    }
    return label;
}

bool where_bounds(Arena *scratch, const Graph *g, const Node *sum, NodeRef condition, Access at,
                  bool negated, Bounded *to)
{
    Mask m = mask_of_condition(scratch, g, condition);
    bool fine = m.n > 0 && (!negated || m.n == 1);
    for (uint32_t i = 0; fine && i < m.n; i++) {
        Affine x = mask_in_reader(scratch, graph_node(g, condition), at, m.holds[i]);
        int32_t label = bounded_label(sum, x);
        if (label < 0) {
            return false;
        }
        bool least = (affine_coef(x, (VarRef)label) > 0) != negated;
        uint64_t *side = least ? &to->least : &to->most;
        fine = label < 64 && (*side >> label & 1) == 0;
        *side |= fine ? (uint64_t)1 << label : 0;
    }
    return fine;
}

/* ---- exponentials ---- */

/* exp(s - m) by its parts. */
typedef struct Exponential {
    NodeRef difference,
        scaled; /* what exp is taken of: the difference, or, if that is none, its product with a number */
    uint32_t place; /* of the difference there */
    const Node *maximum, *masked;
} Exponential;

static bool is_number(const Graph *g, NodeRef n)
{
    return graph_node(g, n)->rank == 0 && graph_is_positive(g, n);
}

static bool exponential_of(const Graph *g, NodeRef node, Exponential *out)
{
    const Node *n = graph_node(g, node);
    if (n->op != OP_EXP) {
        return false;
    }
    out->difference = n->operand[0];
    out->scaled = NODE_NONE;
    out->place = 0;
    const Node *of = graph_node(g, out->difference);
    for (uint32_t k = 0; of->op == OP_MUL && k < 2; k++) {
        if (is_number(g, of->operand[1 - k])) {
            out->scaled = out->difference;
            out->place = k;
            out->difference = of->operand[k];
            break;
        }
    }
    const Node *d = graph_node(g, out->difference);
    if (d->op != OP_SUB) {
        return false;
    }
    out->maximum = graph_node(g, d->operand[1]);
    out->masked =
        out->maximum->op == OP_RMAX && out->maximum->n_labels == out->maximum->rank + 1
            ? graph_node(g, out->maximum->operand[0])
            : NULL;
    return out->masked != NULL && out->masked->op == OP_SELECT && dtype_is_float(d->dtype) &&
           out->masked->operand[1] == d->operand[0] && d->dtype == out->masked->dtype;
}

/* What reads the dimension of `n` that is the label, where `at` reads n. */
static Index reader_of(const Node *n, int32_t label, Access at)
{
    uint32_t d = 0;
    while (d < n->rank && n->out[d] != label) {
        d++;
    }
    return d < n->rank ? at.index[d] : (Index){.label = -1};
}

/* How the difference reads what the maximum is taken of, if at the very positions: its label of the folded one is *folded. */
static bool masked_access(Arena *a, const Node *difference, const Exponential *e, Access *out,
                          int32_t *folded)
{
    const Node *max = e->maximum;
    Index *index = ARENA_ARRAY(a, (size_t)e->masked->rank + 1, Index);
    *folded = -1;
    for (uint32_t d = 0; d < e->masked->rank; d++) {
        Index x = max->access[0].index[d];
        bool folds = x.label >= 0 && node_reduces(max, x.label);
        index[d] = x.label < 0 || folds ? x : reader_of(max, x.label, difference->access[1]);
        for (uint32_t s = 0; folds && s < difference->access[0].rank; s++) {
            int32_t own = e->masked->access[1].index[s].label;
            if (own >= 0 && own == e->masked->out[d]) {
                index[d] = difference->access[0].index[s];
                *folded = index[d].label;
            }
        }
    }
    *out = (Access){e->masked->rank, index};
    return *folded >= 0 && access_eq(access_compose(a, e->masked, e->masked->access[1], *out),
                                     difference->access[0]);
}

/* Is there a position of label `t` that fulfils all conditions, whatever the others are? The first one is, or the one that another
 * label of as many positions has. */
static bool has_position(Arena *a, const Node *n, const Mask *m, int32_t t)
{
    for (int32_t c = -1; c < (int32_t)n->n_labels; c++) {
        if (c >= 0 && (c == t || !dim_eq(n->extent[c], n->extent[t]))) {
            continue;
        }
        Affine at = c < 0 ? affine_const(0) : affine_var(a, (VarRef)c);
        bool all = true;
        for (uint32_t i = 0; all && i < m->n; i++) {
            Affine x = affine_subst(a, m->holds[i], (VarRef)t, at);
            all = x.base >= 0;
            for (uint32_t k = 0; k < x.n; k++) {
                all = all && x.term[k].coef > 0;
            }
        }
        if (all) {
            return true;
        }
    }
    return false;
}

static bool is_least(const Graph *g, NodeRef n)
{
    const Node *node = graph_node(g, n);
    return node->op == OP_CONST && node->value.re < 0 && node->value.re - node->value.re != 0;
}

NodeRef where_exponential(Arena *scratch, const Graph *g, Graph *to, const NodeRef *map,
                          NodeRef node, Access at, NodeRef condition, Access holds)
{
    const Node *cast = graph_node(g, node);
    if (cast->op == OP_CAST && dtype_is_float(cast->dtype)) {
        NodeRef made = where_exponential(scratch, g, to, map, cast->operand[0],
                                         access_compose(scratch, cast, cast->access[0], at),
                                         condition, holds);
        NodeSpec s = graph_spec(g, node);
        s.operand = &made;
        return made == NODE_NONE ? NODE_NONE : graph_add(to, &s);
    }
    Exponential e;
    if (!exponential_of(g, node, &e) || e.masked->operand[0] != condition ||
        !is_least(g, e.masked->operand[2])) {
        return NODE_NONE;
    }
    const Node *exponent = graph_node(g, node), *difference = graph_node(g, e.difference);
    Access inner = access_compose(scratch, exponent, exponent->access[0], at), masked;
    if (e.scaled != NODE_NONE) {
        const Node *scaled = graph_node(g, e.scaled);
        inner = access_compose(scratch, scaled, scaled->access[e.place], inner);
    }
    int32_t folded = -1;
    if (!masked_access(scratch, difference, &e, &masked, &folded)) {
        return NODE_NONE;
    }
    Mask m = mask_of_select(scratch, g, e.masked);
    for (uint32_t i = 0; i < m.n; i++) {
        m.holds[i] = mask_in_reader(scratch, e.masked, masked, m.holds[i]);
    }
    /* Of both the condition is read alike, in labels of the sum. */
    Access condition_in = access_compose(scratch, e.masked, e.masked->access[0], masked);
    condition_in = access_compose(scratch, difference, condition_in, inner);
    if (m.n == 0 || !access_eq(condition_in, holds) ||
        !has_position(scratch, difference, &m, folded)) {
        return NODE_NONE;
    }
    NodeSpec s = graph_spec(g, e.difference);
    NodeRef operand[2] = {map[e.maximum->operand[0]], map[difference->operand[1]]};
    Access access[2] = {masked, difference->access[1]};
    s.operand = operand;
    s.access = access;
    NodeRef made = graph_add(to, &s);
    if (e.scaled != NODE_NONE) {
        NodeRef pair[2];
        s = graph_spec(g, e.scaled);
        pair[e.place] = made;
        pair[1 - e.place] = map[s.operand[1 - e.place]];
        s.operand = pair;
        made = graph_add(to, &s);
    }
    s = graph_spec(g, node);
    s.operand = &made;
    return graph_add(to, &s);
}
