/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over products that the program writes as operations of elements become contractions:
 *
 *     %3 = mul %0[a,b], %2[b,c] -> [a,c,b]                 %3 = div %0[a,b], %1[a,b] -> [a,b]
 *     %4 = div %3[a,b,c], %1[a,c] -> [a,b,c]        ->     %4 = einsum %3[a,b], %2[b,c] -> [a,c]
 *     %5 = reduce.sum %4[a,b,c] -> [a,b]
 *
 * A product is a tree of products, quotients, negations and selections of 0; its leaves are the factors. Factors without a summed
 * label go behind the sum. Of the others, label sets that lie in no other set are the groups: each becomes one operand, in which
 * the factors whose labels it has are multiplied, and divisors divide, in the order of the text. A condition, `select(c, x, 0)`, goes
 * behind the sum too, or to the group that has its labels, for machines where a term that is left out may be multiplied by 0.
 *
 * A term has as many roundings as before, in another order, so that what over- or underflows may be another part of it. Integers
 * have no quotients here, so that they stay exact. Nothing is done where a group has all labels: then no work is saved. */
#include "opt/opt.h"
#include "opt/where.h"

typedef uint64_t LabelSet;
#define LABELS_MOST 64
#define DEPTH_MOST  256 /* of operations inside each other */

typedef struct Factor {
    NodeRef node; /* of the graph that is rewritten */
    Access at;    /* in labels of the sum */
    LabelSet labels;
    bool divides, negated; /* a condition: holds where the node does not */
    bool alone;            /* a contraction that is an operand of its own */
    NodeRef made;          /* what stands for it in the new graph, once that was asked */
} Factor;

typedef struct Factors {
    VEC(Factor) list;
} Factors;

typedef struct Products {
    Arena scratch; /* reset after each sum */
    const Graph *g;
    Graph *to;
    uint32_t *readers; /* [nodes of g]: results too */
    NodeRef *map;      /* [nodes of g]: in `to` */
    bool masks;
    /* Of the sum at hand: */
    const Node *sum;
    Factors factors, conditions;
    uint32_t
        selections; /* that were taken apart; the condition of the last one, as it was read: */
    NodeRef selected;
    Access holds;
    bool negative;
    uint32_t taken; /* nodes that were taken apart, */
    uint32_t depth; /* inside each other */
} Products;

/* ---- taking a product apart ---- */

static LabelSet labels_of(const Access *a)
{
    LabelSet set = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        set |= a->index[d].label >= 0 ? (LabelSet)1 << a->index[d].label : 0;
    }
    return set;
}

/* How operand k of `n`, which is read by `a`, is read in the labels of the sum. */
static Access read_through(Products *p, const Node *n, uint32_t k, const Access *a)
{
    return access_compose(&p->scratch, n, n->access[k], *a);
}

static void factor_add(Products *p, Factors *to, NodeRef node, Access at, bool divides,
                       bool negated)
{
    Factor f = {node, at, labels_of(&at), divides, negated, false, NODE_NONE};
    vec_push(&p->scratch, &to->list, f);
}

static void take_condition(Products *p, NodeRef at, Access a, bool negated)
{
    const Node *n = graph_node(p->g, at);
    p->depth++;
    if (n->op == OP_NOT && p->depth < DEPTH_MOST) {
        take_condition(p, n->operand[0], read_through(p, n, 0, &a), !negated);
    } else if (n->op == OP_AND && !negated && p->depth < DEPTH_MOST) {
        take_condition(p, n->operand[0], read_through(p, n, 0, &a), false);
        take_condition(p, n->operand[1], read_through(p, n, 1, &a), false);
    } else {
        factor_add(p, &p->conditions, at, a, false, negated);
    }
    p->depth--;
}

static bool is_zero(const Graph *g, NodeRef at)
{
    const Node *n = graph_node(g, at);
    return n->op == OP_CONST && number_is_zero(n->value);
}

/* The branch of a selection whose other branch is 0, or 0. */
static uint32_t selected(const Graph *g, const Node *n)
{
    return is_zero(g, n->operand[2]) ? 1 : is_zero(g, n->operand[1]) ? 2 : 0;
}

static void take(Products *p, NodeRef at, Access a, bool divides)
{
    const Node *n = graph_node(p->g, at);
    p->depth++;
    bool inner =
        p->readers[at] == 1 && n->dtype == p->sum->dtype && !n->keep && p->depth < DEPTH_MOST;
    bool numbers = inner && n->dtype != DTYPE_BOOL;
    if (inner && (n->op == OP_MUL || n->op == OP_AND)) {
        take(p, n->operand[0], read_through(p, n, 0, &a), divides);
        take(p, n->operand[1], read_through(p, n, 1, &a), divides);
    } else if (numbers && n->op == OP_DIV && !dtype_is_int(n->dtype)) {
        take(p, n->operand[0], read_through(p, n, 0, &a), divides);
        take(p, n->operand[1], read_through(p, n, 1, &a), !divides);
    } else if (numbers && n->op == OP_NEG) {
        p->negative = !p->negative;
        take(p, n->operand[0], read_through(p, n, 0, &a), divides);
    } else if (numbers && n->op == OP_SELECT && !divides && selected(p->g, n) != 0) {
        uint32_t k = selected(p->g, n);
        p->selections++;
        p->selected = k == 1 ? n->operand[0] : NODE_NONE;
        p->holds = read_through(p, n, 0, &a);
        take_condition(p, n->operand[0], read_through(p, n, 0, &a), k == 2);
        take(p, n->operand[k], read_through(p, n, k, &a), false);
    } else {
        factor_add(p, &p->factors, at, a, divides, false);
        p->taken--;
    }
    p->taken++;
    p->depth--;
}

/* The factors of a contraction's operand that is a product, where all of them are smaller than it is. */
static void take_operand(Products *p, NodeRef at, Access a)
{
    const Node *n = graph_node(p->g, at);
    Op times = p->sum->dtype == DTYPE_BOOL ? OP_AND : OP_MUL;
    bool smaller = n->op == times && p->readers[at] == 1 && n->dtype == p->sum->dtype &&
                   !n->keep && p->depth < DEPTH_MOST;
    for (uint32_t k = 0; smaller && k < n->n_operands; k++) {
        Access x = read_through(p, n, k, &a);
        smaller = labels_of(&x) != labels_of(&a);
    }
    if (!smaller) {
        factor_add(p, &p->factors, at, a, false, false);
        return;
    }
    p->taken++;
    p->depth++;
    take_operand(p, n->operand[0], read_through(p, n, 0, &a));
    take_operand(p, n->operand[1], read_through(p, n, 1, &a));
    p->depth--;
}

/* ---- groups ---- */

static LabelSet summed_labels(const Products *p)
{
    LabelSet set = 0;
    for (uint32_t l = 0; l < p->sum->n_labels; l++) {
        set |= node_reduces(p->sum, (int32_t)l) ? (LabelSet)1 << l : 0;
    }
    return set;
}

static double elements(const Products *p, LabelSet set)
{
    double n = 1;
    for (uint32_t l = 0; l < p->sum->n_labels; l++) {
        n *= set >> l & 1 ? (double)dim_typical(&p->g->dims, p->sum->extent[l]) : 1.0;
    }
    return n;
}

/* Of the groups that have all these labels the one of fewest elements; NODE_NONE: none has. */
static uint32_t group_for(const Products *p, uint32_t n, const LabelSet *group, LabelSet labels)
{
    uint32_t best = NODE_NONE;
    for (uint32_t k = 0; k < n; k++) {
        if ((labels & ~group[k]) == 0 &&
            (best == NODE_NONE || elements(p, group[k]) < elements(p, group[best]))) {
            best = k;
        }
    }
    return best;
}

/* The sets that lie in no other, in the order of the text. */
static uint32_t groups_find(const Products *p, LabelSet summed, LabelSet *group)
{
    uint32_t n = 0;
    const Factors *lists[2] = {&p->factors, &p->conditions};
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < lists[i]->list.n; k++) {
            LabelSet set = lists[i]->list.at[k].labels;
            bool inside = (set & summed) == 0 || lists[i]->list.at[k].alone;
            for (uint32_t j = 0; !inside && j < 2; j++) {
                for (uint32_t o = 0; o < lists[j]->list.n; o++) {
                    LabelSet other = lists[j]->list.at[o].labels;
                    bool earlier = j < i || (j == i && o < k);
                    inside |= !lists[j]->list.at[o].alone && (set & ~other) == 0 &&
                              (set != other || earlier);
                }
            }
            if (!inside) {
                group[n++] = set;
            }
        }
    }
    return n;
}

/* ---- putting it together ---- */

static NodeRef add_map(Products *p, Op op, DType t, uint32_t n, const NodeRef *operand,
                       const Access *access, LabelSet labels, Access *read)
{
    int32_t *out = ARENA_ARRAY(&p->scratch, LABELS_MOST, int32_t);
    Dim *shape = ARENA_ARRAY(&p->scratch, LABELS_MOST, Dim);
    Index *index = ARENA_ARRAY(&p->scratch, LABELS_MOST, Index);
    NodeSpec s = node_spec(op, t, n, operand, access, 0, NULL, NULL, p->sum->span);
    for (uint32_t k = 0; k < p->sum->rank + p->sum->n_labels;
         k++) { /* of the result first, in its order */
        int32_t l = k < p->sum->rank ? p->sum->out[k] : (int32_t)(k - p->sum->rank);
        if (labels >> l & 1) {
            labels &= ~((LabelSet)1 << l);
            out[s.rank] = l;
            shape[s.rank] = p->sum->extent[l];
            index[s.rank++] = (Index){.label = l};
        }
    }
    s.out = out;
    s.out_shape = shape;
    s.names =
        (LabelNames){p->sum->label_name == NULL ? 0 : p->sum->n_labels, p->sum->label_name};
    NodeRef made = graph_add(p->to, &s);
    *read = (Access){s.rank, index}; /* which may be what is read now */
    return made;
}

/* A value of the new graph, as it is read in the labels of the sum. */
typedef struct Value {
    NodeRef node; /* NODE_NONE: 1, which no operation has needed yet */
    Access at;
} Value;

static void value_apply(Products *p, Value *v, Op op, const Value *first, const Value *second)
{
    DType t = p->sum->dtype;
    NodeRef operand[2] = {first->node, second == NULL ? NODE_NONE : second->node};
    Access access[2] = {first->at, second == NULL ? (Access){0} : second->at};
    LabelSet labels = labels_of(&access[0]) | labels_of(&access[1]);
    v->node = add_map(p, op, t, second == NULL ? 1 : 2, operand, access, labels, &v->at);
}

static Value constant(Products *p, int64_t number)
{
    Number n = number_cast(number_int(DTYPE_I64, number), p->sum->dtype);
    return (Value){graph_const(p->to, n, p->sum->span), (Access){0}};
}

/* Are terms without a condition absent, rather than 0? */
static bool leaves_out(const Products *p)
{
    return !p->masks && dtype_is_float(p->sum->dtype);
}

/* The factor in the new graph; under the conditions of the sum. */
static NodeRef factor_node(Products *p, Factor *f)
{
    NodeRef masked = NODE_NONE;
    if (f->made != NODE_NONE) {
        return f->made;
    }
    if (dtype_is_float(p->sum->dtype) && p->selections == 1 && p->selected != NODE_NONE) {
        masked = where_exponential(&p->scratch, p->g, p->to, p->map, f->node, f->at,
                                   p->selected, p->holds);
    }
    f->made = masked == NODE_NONE ? p->map[f->node] : masked;
    return f->made;
}

/* The value times the factor, or divided by it. */
static void value_times(Products *p, Value *v, Factor *f)
{
    Value x = {factor_node(p, f), f->at};
    if (v->node == NODE_NONE && !f->divides) {
        *v = x;
        return;
    }
    Value left = v->node == NODE_NONE ? constant(p, 1) : *v;
    Op op = f->divides ? OP_DIV : p->sum->dtype == DTYPE_BOOL ? OP_AND : OP_MUL;
    value_apply(p, v, op, &left, &x);
}

/* The condition in the new graph, and both of them. */
static Value condition_and(Products *p, const Value *other, const Factor *condition)
{
    Value c = {p->map[condition->node], condition->at}, both = {NODE_NONE, {0}};
    if (condition->negated) {
        c.node = add_map(p, OP_NOT, DTYPE_BOOL, 1, &c.node, &c.at, condition->labels, &c.at);
    }
    if (other->node == NODE_NONE) {
        return c;
    }
    NodeRef operand[2] = {other->node, c.node};
    Access access[2] = {other->at, c.at};
    both.node = add_map(p, OP_AND, DTYPE_BOOL, 2, operand, access,
                        labels_of(&other->at) | labels_of(&c.at), &both.at);
    return both;
}

/* The value where the condition holds, else 0 (select), or absent (where). */
static void value_under(Products *p, Value *v, const Value *condition, Op op)
{
    Value x = v->node == NODE_NONE ? constant(p, 1) : *v, zero = constant(p, 0);
    NodeRef operand[3] = {condition->node, x.node, zero.node};
    Access access[3] = {condition->at, x.at, zero.at};
    v->node = add_map(p, op, p->sum->dtype, 3, operand, access,
                      labels_of(&condition->at) | labels_of(&x.at), &v->at);
}

static void value_select(Products *p, Value *v, const Factor *condition)
{
    Value none = {NODE_NONE, {0}}, c = condition_and(p, &none, condition);
    value_under(p, v, &c, OP_SELECT);
}

/* The group of n that a factor belongs to; n: it has no summed label, or there is none; n + 1: it stands alone. */
static uint32_t group_of(const Products *p, uint32_t n, const LabelSet *group, const Factor *f)
{
    if (f->alone) {
        return n + 1;
    }
    uint32_t k =
        (f->labels & summed_labels(p)) == 0 ? NODE_NONE : group_for(p, n, group, f->labels);
    return k == NODE_NONE ? n : k;
}

/* Is a factor of group k of n an exponential that is 0 where the condition does not hold? */
static bool has_exponential(Products *p, uint32_t n, const LabelSet *group, uint32_t k)
{
    bool found = false;
    for (uint32_t i = 0; !found && k < n && i < p->factors.list.n; i++) {
        Factor *f = &p->factors.list.at[i];
        found = !f->divides && group_of(p, n, group, f) == k &&
                factor_node(p, f) != p->map[f->node];
    }
    return found;
}

/* What stands before the factors and conditions of group k of n, and these. Divisors that stand first wait for the first factor. */
static Value group_value(Products *p, Value begin, uint32_t n, const LabelSet *group,
                         uint32_t k)
{
    Value v = begin;
    uint32_t first = NODE_NONE;
    for (uint32_t i = 0; v.node == NODE_NONE && i < p->factors.list.n; i++) {
        Factor *f = &p->factors.list.at[i];
        if (!f->divides && group_of(p, n, group, f) == k) {
            value_times(p, &v, f);
            first = i;
        }
    }
    for (uint32_t i = 0; i < p->factors.list.n; i++) {
        if (i != first && group_of(p, n, group, &p->factors.list.at[i]) == k) {
            value_times(p, &v, &p->factors.list.at[i]);
        }
    }
    bool is_zero_elsewhere = p->masks && has_exponential(p, n, group, k);
    Value where = {NODE_NONE, {0}};
    for (uint32_t i = 0; i < p->conditions.list.n; i++) {
        const Factor *c = &p->conditions.list.at[i];
        if (is_zero_elsewhere || group_of(p, n, group, c) != k) {
            continue;
        }
        if (k < n && leaves_out(p)) {
            where = condition_and(p, &where, c);
        } else {
            value_select(p, &v, c);
        }
    }
    if (where.node != NODE_NONE) {
        value_under(p, &v, &where, OP_WHERE);
    }
    return v;
}

/* The contraction of n values over the labels of the sum that these have. */
static Value contract(Products *p, NodeRef at, uint32_t n, const Value *value, bool whole)
{
    NodeSpec s = graph_spec(p->g, at);
    LabelSet labels = 0;
    NodeRef *operand = ARENA_ARRAY(&p->scratch, n, NodeRef);
    Access *access = ARENA_ARRAY(&p->scratch, n, Access);
    for (uint32_t k = 0; k < n; k++) {
        operand[k] = value[k].node;
        access[k] = value[k].at;
        labels |= labels_of(&value[k].at);
    }
    int32_t *out = ARENA_ARRAY(&p->scratch, (size_t)s.rank + 1, int32_t);
    Dim *shape = ARENA_ARRAY(&p->scratch, (size_t)s.rank + 1, Dim);
    Index *index = ARENA_ARRAY(&p->scratch, (size_t)s.rank + 1, Index);
    uint32_t rank = 0;
    for (uint32_t d = 0; d < s.rank; d++) {
        if (labels >> s.out[d] & 1) {
            out[rank] = s.out[d];
            shape[rank] = s.out_shape[d];
            index[rank++] = (Index){.label = s.out[d]};
        }
    }
    s.op = OP_EINSUM;
    s.n_operands = n;
    s.operand = operand;
    s.access = access;
    s.rank = rank;
    s.out = out;
    s.out_shape = shape;
    s.name = whole ? s.name : NULL;
    return (Value){graph_add(p->to, &s), {rank, index}};
}

/* The value in the order and with the labels of the sum's result. */
static NodeRef result_of(Products *p, NodeRef at, Value v)
{
    NodeSpec s = graph_spec(p->g, at);
    bool same = v.at.rank == s.rank;
    for (uint32_t d = 0; same && d < s.rank; d++) {
        same = v.at.index[d].label == s.out[d];
    }
    if (same) {
        Node *n = &p->to->nodes.at[v.node];
        n->name = n->name == NULL ? s.name : n->name;
        return v.node;
    }
    s.op = OP_COPY;
    s.acc = DTYPE_NONE;
    s.n_operands = 1;
    s.operand = &v.node;
    s.access = &v.at;
    return graph_add(p->to, &s);
}

/* ---- the pass ---- */

/* Is the set of labels that of a factor, and not of a condition alone? */
static bool has_factor(const Products *p, LabelSet labels)
{
    bool any = false;
    for (uint32_t k = 0; k < p->factors.list.n; k++) {
        any |= p->factors.list.at[k].labels == labels;
    }
    return any;
}

/* May every condition be where it goes? Where terms are absent, and not 0, the two operands are what a loop over each summed label
 * has both of. */
static bool conditions_fit(Products *p, uint32_t n, uint32_t operands, const LabelSet *group)
{
    bool exact = dtype_is_exact(p->sum->dtype), fit = true;
    LabelSet summed = summed_labels(p);
    Bounded bounded = {0, 0};
    for (uint32_t k = 0; fit && k < p->conditions.list.n; k++) {
        const Factor *c = &p->conditions.list.at[k];
        if (p->masks || exact || (c->labels & summed) == 0) {
            continue;
        }
        fit = leaves_out(p) && n == 2 && operands == 2 && (summed & ~group[0]) == 0 &&
              (summed & ~group[1]) == 0 && has_factor(p, group[0]) && has_factor(p, group[1]) &&
              where_bounds(&p->scratch, p->g, p->sum, c->node, c->at, c->negated, &bounded);
    }
    return fit;
}

/* Do the groups, with the contractions that stand alone, save work, and may every condition be where it goes? */
static bool is_worth_it(Products *p, uint32_t n, const LabelSet *group)
{
    LabelSet all = 0;
    uint32_t operands = n;
    for (uint32_t k = 0; k < n; k++) {
        all |= group[k];
    }
    for (uint32_t k = 0; k < p->factors.list.n; k++) {
        const Factor *f = &p->factors.list.at[k];
        all |= f->alone ? f->labels : 0;
        operands += f->alone ? 1 : 0;
    }
    bool worth = operands > 1 && (summed_labels(p) & ~all) == 0;
    for (uint32_t k = 0; k < n; k++) {
        worth = worth && group[k] != all;
    }
    return worth && conditions_fit(p, n, operands, group);
}

/* Contractions that nothing else reads become operands of their own, so that their order is one with that of the sum. */
static bool stand_alone(Products *p)
{
    bool any = false;
    for (uint32_t k = 0; k < p->factors.list.n; k++) {
        Factor *f = &p->factors.list.at[k];
        const Node *n = graph_node(p->g, f->node);
        f->alone = n->op == OP_EINSUM && n->n_labels > n->rank && p->readers[f->node] == 1 &&
                   !n->keep && n->dtype == p->sum->dtype && !f->divides &&
                   (f->labels & summed_labels(p)) != 0;
        any |= f->alone;
    }
    return any;
}

/* Is something left for behind the sum? */
static bool has_rest(const Products *p, uint32_t n, const LabelSet *group)
{
    bool rest = false;
    for (uint32_t k = 0; k < p->factors.list.n; k++) {
        rest |= group_of(p, n, group, &p->factors.list.at[k]) == n;
    }
    for (uint32_t k = 0; k < p->conditions.list.n; k++) {
        rest |= group_of(p, n, group, &p->conditions.list.at[k]) == n;
    }
    return rest;
}

/* The value summed over one label, where the conditions with that label hold. */
static void sum_over(Products *p, Value *v, int32_t label, bool *used)
{
    for (uint32_t k = 0; k < p->conditions.list.n; k++) {
        const Factor *c = &p->conditions.list.at[k];
        if (!used[k] && c->labels >> label & 1) {
            value_select(p, v, c);
            used[k] = true;
        }
    }
    LabelSet labels = labels_of(&v->at) & ~((LabelSet)1 << label);
    v->node = add_map(p, OP_SUM, p->sum->dtype, 1, &v->node, &v->at, labels, &v->at);
}

/* What a sum over `label` has to look at. */
static LabelSet labels_with(const Products *p, const Value *v, uint32_t label, const bool *used)
{
    LabelSet set = labels_of(&v->at);
    for (uint32_t k = 0; k < p->conditions.list.n; k++) {
        const Factor *c = &p->conditions.list.at[k];
        set |= !used[k] && c->labels >> label & 1 ? c->labels : 0;
    }
    return set;
}

/* sum[p <= i, q <= j](x[p,q]) is sum[q <= j](sum[p <= i](x[p,q])), of which each looks at three labels and not at four: labels are
 * summed one by one, those first that have least to look at. Of one factor that has them all. */
static NodeRef sum_in_turn(Products *p, NodeRef at)
{
    const Factor *f = &p->factors.list.at[0];
    LabelSet summed = summed_labels(p), all = f->labels;
    for (uint32_t k = 0; k < p->conditions.list.n; k++) {
        all |= p->conditions.list.at[k].labels;
    }
    if (p->factors.list.n != 1 || f->divides || p->negative || p->sum->op != OP_SUM ||
        (summed & ~f->labels) != 0) {
        return NODE_NONE;
    }
    Value v = {p->map[f->node], f->at};
    bool *used = ARENA_ARRAY(&p->scratch, p->conditions.list.n, bool);
    for (bool first = true; summed != 0; first = false) {
        uint32_t best = NODE_NONE;
        for (uint32_t l = 0; l < p->sum->n_labels; l++) {
            if (summed >> l & 1 &&
                (best == NODE_NONE || elements(p, labels_with(p, &v, l, used)) <
                                          elements(p, labels_with(p, &v, best, used)))) {
                best = l;
            }
        }
        if (first && labels_with(p, &v, best, used) == all) {
            return NODE_NONE;
        }
        sum_over(p, &v, (int32_t)best, used);
        summed &= ~((LabelSet)1 << best);
    }
    for (uint32_t k = 0; k < p->conditions.list.n; k++) {
        if (!used[k]) {
            value_select(p, &v, &p->conditions.list.at[k]);
        }
    }
    return result_of(p, at, v);
}

/* The sum of exp(s - m) under the condition of the maximum m is taken in one pass with it. */
static NodeRef sum_of_exponential(Products *p, NodeRef at)
{
    Factor *f = &p->factors.list.at[0];
    if (p->factors.list.n != 1 || f->divides || p->negative || p->selections != 1 ||
        p->sum->op != OP_SUM) {
        return NODE_NONE;
    }
    Value v = {factor_node(p, f), f->at};
    if (v.node == p->map[f->node]) {
        return NODE_NONE;
    }
    Value where = {NODE_NONE, {0}};
    for (uint32_t k = 0; !p->masks && k < p->conditions.list.n; k++) {
        where = condition_and(p, &where, &p->conditions.list.at[k]);
    }
    if (where.node != NODE_NONE) {
        value_under(p, &v, &where, OP_WHERE);
    }
    NodeSpec s = graph_spec(p->g, at);
    s.operand = &v.node;
    s.access = &v.at;
    return graph_add(p->to, &s);
}

static NodeRef rewrite_sum(Products *p, NodeRef at)
{
    take(p, p->sum->operand[0], p->sum->access[0], false);
    NodeRef exponential = sum_of_exponential(p, at);
    if (exponential != NODE_NONE) {
        return exponential;
    }
    NodeRef in_turn = p->conditions.list.n > 1 ? sum_in_turn(p, at) : NODE_NONE;
    if (in_turn != NODE_NONE) {
        return in_turn;
    }
    uint32_t most = p->factors.list.n + p->conditions.list.n;
    LabelSet *group = ARENA_ARRAY(&p->scratch, most, LabelSet);
    uint32_t n = p->taken == 0 ? 0 : groups_find(p, summed_labels(p), group);
    if (!is_worth_it(p, n, group)) {
        if (p->taken == 0 || !stand_alone(p)) {
            return NODE_NONE;
        }
        n = groups_find(p, summed_labels(p), group);
        if (!is_worth_it(p, n, group)) {
            return NODE_NONE;
        }
    }
    Value *value = ARENA_ARRAY(&p->scratch, most, Value), none = {NODE_NONE, {0}};
    uint32_t least = 0, n_values = n;
    for (uint32_t k = 0; k < n; k++) {
        value[k] = group_value(p, none, n, group, k);
        least = elements(p, group[k]) < elements(p, group[least]) ? k : least;
    }
    for (uint32_t k = 0; k < p->factors.list.n; k++) {
        const Factor *f = &p->factors.list.at[k];
        if (f->alone) {
            value[n_values++] = (Value){p->map[f->node], f->at};
        }
    }
    if (p->negative) {
        Value x = value[least];
        value_apply(p, &value[least], OP_NEG, &x, NULL);
    }
    Value sum = contract(p, at, n_values, value, !has_rest(p, n, group));
    return result_of(p, at, group_value(p, sum, n, group, n));
}

/* Of a product of two operands one that is `select(c, x, 0)`, which nothing else reads: x where c holds, and terms without it are
 * absent. What the other factor is there did not come through before either. */
static NodeRef absent_terms(Products *p, NodeRef at)
{
    const Node *n = p->sum;
    for (uint32_t k = 0; n->n_operands == 2 && leaves_out(p) && k < 2; k++) {
        const Node *select = graph_node(p->g, n->operand[k]);
        Access other = n->access[1 - k], own = n->access[k];
        Bounded bounded = {0, 0};
        LabelSet summed = summed_labels(p);
        if (select->op != OP_SELECT || selected(p->g, select) != 1 || select->keep ||
            p->readers[n->operand[k]] != 1 || select->dtype != n->dtype ||
            (summed & ~labels_of(&own)) != 0 || (summed & ~labels_of(&other)) != 0 ||
            !where_bounds(&p->scratch, p->g, n, select->operand[0],
                          read_through(p, select, 0, &own), false, &bounded)) {
            continue;
        }
        NodeSpec s = graph_spec(p->g, n->operand[k]);
        NodeRef operand[3], pair[2];
        for (uint32_t i = 0; i < 3; i++) {
            operand[i] = p->map[s.operand[i]];
        }
        s.op = OP_WHERE;
        s.operand = operand;
        pair[k] = graph_add(p->to, &s);
        pair[1 - k] = p->map[n->operand[1 - k]];
        s = graph_spec(p->g, at);
        s.operand = pair;
        return graph_add(p->to, &s);
    }
    return NODE_NONE;
}

static NodeRef rewrite_contraction(Products *p, NodeRef at)
{
    NodeRef absent = absent_terms(p, at);
    if (absent != NODE_NONE) {
        return absent;
    }
    for (uint32_t k = 0; k < p->sum->n_operands; k++) {
        take_operand(p, p->sum->operand[k], p->sum->access[k]);
    }
    if (p->taken == 0) {
        return NODE_NONE;
    }
    Value *value = ARENA_ARRAY(&p->scratch, p->factors.list.n, Value);
    for (uint32_t k = 0; k < p->factors.list.n; k++) {
        value[k] = (Value){p->map[p->factors.list.at[k].node], p->factors.list.at[k].at};
    }
    return contract(p, at, p->factors.list.n, value, true).node;
}

/* select(c, exp(s - m), 0), m the maximum of s where c holds, is an exponential that is 0 elsewhere, for machines that multiply by
 * that. Of results the elements that the condition leaves out are 0 even where the row has a NaN. */
static NodeRef rewrite_selection(Products *p, NodeRef at)
{
    const Node *n = graph_node(p->g, at);
    bool result = n->keep;
    for (uint32_t r = 0; r < p->g->results.n; r++) {
        result = result || p->g->results.at[r].node == at;
    }
    NodeRef masked = NODE_NONE;
    if (p->masks && !result && dtype_is_float(n->dtype) && selected(p->g, n) == 1) {
        masked = where_exponential(&p->scratch, p->g, p->to, p->map, n->operand[1],
                                   n->access[1], n->operand[0], n->access[0]);
    }
    if (masked == NODE_NONE) {
        return NODE_NONE;
    }
    NodeSpec s = graph_spec(p->g, at);
    s.op = OP_COPY;
    s.n_operands = 1;
    s.operand = &masked;
    s.access = &n->access[1];
    return graph_add(p->to, &s);
}

static NodeRef rewrite(Products *p, NodeRef at)
{
    const Node *n = graph_node(p->g, at);
    if (n->op == OP_SELECT) {
        return rewrite_selection(p, at);
    }
    bool sums = n->op == OP_SUM || (n->op == OP_ANY && n->dtype == DTYPE_BOOL);
    bool products = n->op == OP_EINSUM && n->n_labels > n->rank && !n->onto;
    if ((!sums && !products) || n->n_labels > LABELS_MOST || graph_slices(p->g, at).n > 0) {
        return NODE_NONE;
    }
    p->sum = n;
    p->factors = p->conditions = (Factors){{0}};
    p->negative = false;
    p->selections = 0;
    p->taken = 0;
    return sums ? rewrite_sum(p, at) : rewrite_contraction(p, at);
}

/* Once over all nodes; *any: something was rewritten. */
static Graph *rewrite_all(Ctx *ctx, Arena *arena, const Graph *g, bool masks, bool *any)
{
    Arena work;
    arena_init(&work, &ctx->budget);
    Products p = {.g = g, .to = graph_like(&work, g), .masks = masks};
    arena_init(&p.scratch, &ctx->budget);
    p.readers = graph_readers(&work, g);
    p.map = ARENA_ARRAY(&work, g->nodes.n, NodeRef);
    *any = false;
    for (NodeRef k = 0; k < g->nodes.n; k++) {
        ArenaMark mark = arena_mark(&p.scratch);
        p.map[k] = rewrite(&p, k);
        *any |= p.map[k] != NODE_NONE;
        if (p.map[k] == NODE_NONE) {
            p.map[k] = graph_clone_node(p.to, g, k, p.map);
        }
        arena_reset(&p.scratch, mark);
    }
    graph_copy_results(p.to, g, p.map);
    Graph *pruned = graph_prune(arena, p.to);
    arena_release(&p.scratch);
    arena_release(&work);
    return pruned;
}

#define ROUNDS 8

Graph *opt_products(Ctx *ctx, Arena *arena, const Graph *g, bool masks)
{
    bool any = true; /* what is left of a sum may be a product again */
    Arena round[ROUNDS];
    uint32_t n = 0;
    while (n < ROUNDS && any) {
        arena_init(&round[n], &ctx->budget);
        g = rewrite_all(ctx, &round[n++], g, masks, &any);
    }
    Graph *out = graph_prune(arena, g);
    while (n-- > 0) {
        arena_release(&round[n]);
    }
    return out;
}
