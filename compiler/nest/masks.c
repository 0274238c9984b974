/* SPDX-License-Identifier: Apache-2.0 */
/* Masks: `select(index(k) <= index(q), x, -inf)` is -inf where the condition does not hold, exp of it is 0, and 0 times anything
 * adds nothing to a sum. A loop whose body leaves nothing but such sums and maxima need not run where no position fulfils the
 * condition. Conditions are affine in labels; they are followed from the selection to whoever folds over the loop. */
#include "nest/masks.h"

#define MOST_DEPTH 64

static Mask mask_of(Arena *a, const Graph *g, NodeRef at, uint32_t depth);

static Mask mask_read(Arena *a, const Graph *g, const Node *n, uint32_t k, uint32_t depth)
{
    Mask m = mask_of(a, g, n->operand[k], depth + 1);
    for (uint32_t i = 0; i < m.n; i++) {
        m.holds[i] = mask_in_reader(a, graph_node(g, n->operand[k]), n->access[k], m.holds[i]);
    }
    return m;
}

static bool is_infinite(Number v)
{
    return dtype_is_float(v.dtype) && v.re - v.re != 0 && v.re == v.re;
}

/* Products are 0 where a factor is. */
static Mask mask_product(Arena *a, const Graph *g, const Node *n, uint32_t n_factors,
                         uint32_t depth)
{
    Mask out = {0};
    for (uint32_t k = 0; k < n_factors; k++) {
        Mask m = mask_read(a, g, n, k, depth);
        for (uint32_t i = 0; m.n > 0 && number_is_zero(m.value) && i < m.n; i++) {
            if (out.n < MASK_CONDITIONS) {
                out.holds[out.n++] = m.holds[i];
            }
        }
    }
    out.value = number_real(n->dtype, 0);
    return out;
}

static Mask mask_of(Arena *a, const Graph *g, NodeRef at, uint32_t depth)
{
    const Node *n = graph_node(g, at);
    if (depth > MOST_DEPTH || dtype_is_complex(n->dtype)) {
        return (Mask){0};
    }
    if (n->op == OP_SELECT || n->op == OP_WHERE) {
        return mask_of_select(a, g, n);
    }
    if (n->op == OP_MUL || n->op == OP_DIV ||
        (op_info(n->op)->kind == OPKIND_CONTRACT && node_is_expression(n))) {
        return mask_product(a, g, n, n->op == OP_DIV ? 1 : node_factors(n), depth);
    }
    if (op_info(n->op)->kind != OPKIND_MAP) {
        return (Mask){0};
    }
    if (n->n_operands == 1) {
        Mask m = mask_read(a, g, n, 0, depth);
        Number in = m.value;
        m.value = m.n == 0           ? in
                  : n->op == OP_CAST ? number_cast(in, n->dtype)
                                     : op_value(n->op, n->dtype, &in);
        return m;
    }
    if (n->op == OP_ADD || n->op == OP_SUB) { /* infinity, with whatever is finite */
        Mask m = mask_read(a, g, n, 0, depth);
        return m.n > 0 && is_infinite(m.value) ? m : (Mask){0};
    }
    return (Mask){0};
}

/* Where what node `n` folds changes nothing, in its labels. */
static Mask mask_folded(Arena *a, const Graph *g, const Node *n)
{
    OpKind kind = op_info(n->op)->kind;
    if (kind == OPKIND_CONTRACT && !dtype_is_complex(n->acc) && n->acc != DTYPE_BOOL) {
        return mask_product(a, g, n, node_factors(n), 0);
    }
    if (kind != OPKIND_REDUCE || dtype_is_complex(n->acc)) {
        return (Mask){0};
    }
    Mask m = mask_read(a, g, n, 0, 0);
    return m.n > 0 && op_is_neutral(n->op, number_cast(m.value, n->acc)) ? m : (Mask){0};
}

/* ---- loops ---- */

/* The largest (or least) value of x in one iteration of the loops around loop `k`; `own` is left out. */
static bool extreme(Arena *a, const Nest *nest, uint32_t k, NodeRef n, Affine x, int32_t own,
                    bool most, Affine *out)
{
    const Node *node = graph_node(nest->graph, n);
    *out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        Affine of = {0, 1, &t};
        if (t.var == (VarRef)own) {
            continue;
        }
        if (!affine_is_dim(t.var)) {
            uint32_t loop = nest_loop_of(nest, nest->items[k].parent, n, (int32_t)t.var);
            Affine first = loop == NEST_NONE ? affine_const(0) : affine_var(a, loop);
            Affine last = loop == NEST_NONE ? affine_extent(a, node->extent[t.var]) : first;
            if (loop == NEST_NONE) {
                last.base--;
            } else {
                first.base += nest_halo(nest, loop, n).from;
                last.base = first.base + nest_loop_span(nest, loop, n) - 1;
            }
            of = affine_add(a, affine_const(0), t.coef, (t.coef > 0) == most ? last : first);
        }
        if (!affine_try_add(a, *out, 1, of, out)) {
            return false;
        }
    }
    return true;
}

/* The window that one node's fold leaves: of several conditions any. */
static MaskWindow window_of(Arena *a, const Nest *nest, uint32_t k, NodeRef n, int32_t label)
{
    Mask m = mask_folded(a, nest->graph, graph_node(nest->graph, n));
    MaskWindow w = {0};
    for (uint32_t i = 0; i < m.n; i++) {
        int64_t coef = affine_coef(m.holds[i], (VarRef)label);
        Affine rest;
        if ((coef != 1 && coef != -1) ||
            !extreme(a, nest, k, n, m.holds[i], label, true, &rest)) {
            continue;
        }
        if (coef < 0 && !w.has_hi) { /* position <= rest */
            w.has_hi = true;
            w.hi = affine_add(a, rest, 1, affine_const(1));
        } else if (coef > 0 && !w.has_lo) { /* position >= -rest */
            w.has_lo = true;
            w.lo = affine_add(a, affine_const(0), -1, rest);
        }
    }
    return w;
}

MaskWindow nest_mask_window(Arena *a, const Nest *nest, uint32_t k)
{
    const NestItem *loop = &nest->items[k];
    const NestAxis *axis = &nest->axes[loop->axis];
    MaskWindow all = {0};
    bool any = false;
    if (loop->parallel || loop->from != 0 || axis->halo != NULL) {
        return all;
    }
    for (uint32_t i = k + 1; i < loop->end; i++) {
        const NestItem *item = &nest->items[i];
        int32_t l = nest_is_loop(item) ? 0 : nest_axis_label(axis, item->node);
        if (nest_is_loop(item)) {
            if (item->axis == loop->axis) {
                return (MaskWindow){0};
            }
            continue;
        }
        const NestValue *v = &nest->values[item->node];
        bool inside = v->alloc_loop != NEST_NONE && k <= v->alloc_loop &&
                      v->alloc_loop < loop->end && v->residence == RESIDE_TILE;
        bool folds = l >= 0 && node_reduces(graph_node(nest->graph, item->node), l);
        if (l < 0 || item->mirror || (!folds && !inside)) {
            return (MaskWindow){0};
        }
        if (!folds) {
            continue;
        }
        MaskWindow w = window_of(a, nest, k, item->node, l);
        all = any ? (MaskWindow){all.has_lo && w.has_lo && affine_eq(all.lo, w.lo),
                                 all.has_hi && w.has_hi && affine_eq(all.hi, w.hi), w.lo, w.hi}
                  : w;
        any = true;
    }
    return all;
}

/* The sum, with loops around at that part of their axis. */
static double at_share(const Nest *nest, Affine x, double share)
{
    double sum = (double)x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        Dim d =
            affine_is_dim(v) ? dim_open(affine_sym(v)) : nest->axes[nest->items[v].axis].extent;
        double size = (double)nest_typical(nest->graph, d);
        sum += (double)x.term[i].coef * (affine_is_dim(v) ? size : size * share);
    }
    return sum;
}

#define SAMPLES 8 /* positions of loops around */

/* Positions of a loop that its window has, with loops around at that part of theirs. */
static double reached(const Nest *nest, uint32_t k, const MaskWindow *w, double share)
{
    double extent = (double)nest_loop_extent(nest, k);
    double tile = (double)nest->items[k].tile;
    double lo = w->has_lo ? at_share(nest, w->lo, share) : 0.0,
           hi = w->has_hi ? at_share(nest, w->hi, share) : extent;
    lo = lo < 0.0 ? 0.0 : lo;
    hi = hi > extent ? extent : hi;
    double all =
        hi - lo + (w->has_lo || w->has_hi ? tile : 0.0); /* tiles at the ends are whole */
    return all < tile ? tile : all < extent ? all : extent;
}

double nest_mask_fraction(Arena *scratch, const Nest *nest, uint32_t k)
{
    ArenaMark mark = arena_mark(scratch);
    MaskWindow w = nest_mask_window(scratch, nest, k);
    double extent = (double)nest_loop_extent(nest, k);
    double all = reached(nest, k, &w, 0.5);
    if (all <= (double)nest->items[k].tile) { /* none in the middle: others have some */
        double sum = 0.0;
        for (uint32_t i = 0; i < SAMPLES; i++) {
            sum += reached(nest, k, &w, (2.0 * i + 1.0) / (2.0 * SAMPLES));
        }
        all = sum / SAMPLES;
    }
    arena_reset(scratch, mark);
    return all / extent;
}

/* Of a condition the least (or the first position past the greatest) position of label `own`, with the other labels at that part of
 * theirs. */
static double bound_at(const Nest *nest, const Node *n, const Affine *x, int32_t own,
                       double share)
{
    double rest = (double)x->base;
    for (uint32_t i = 0; i < x->n; i++) {
        VarRef v = x->term[i].var;
        Dim d = affine_is_dim(v) ? dim_open(affine_sym(v)) : n->extent[v];
        double size = (double)nest_typical(nest->graph, d);
        rest += v == (VarRef)own
                    ? 0.0
                    : (double)x->term[i].coef * (affine_is_dim(v) ? size : size * share);
    }
    return affine_coef(*x, (VarRef)own) > 0 ? -rest : rest + 1.0;
}

/* The part of the positions of all labels that fulfil the conditions: of the last label of each, with the others at parts of theirs;
 * 1 where a loop cuts one. */
static double share_of(const Nest *nest, NodeRef node, const Mask *m)
{
    const Node *n = graph_node(nest->graph, node);
    uint32_t scope = nest->items[nest->values[node].item].parent;
    int32_t own = -1;
    double sum = 0.0;
    for (uint32_t i = 0; i < m->n; i++) {
        for (uint32_t t = 0; t < m->holds[i].n; t++) {
            int32_t l = (int32_t)m->holds[i].term[t].var;
            if (affine_is_dim(m->holds[i].term[t].var)) {
                continue;
            }
            own = own < 0 || node_reduces(n, l) ? l : own;
            if (nest_loop_of(nest, scope, node, l) != NEST_NONE) {
                return 1.0; /* its window says it */
            }
        }
    }
    for (uint32_t s = 0; own >= 0 && s < SAMPLES; s++) {
        double all = (double)nest_typical(nest->graph, n->extent[own]), lo = 0.0, hi = all;
        for (uint32_t i = 0; i < m->n; i++) {
            int64_t coef = affine_coef(m->holds[i], (VarRef)own);
            double x = bound_at(nest, n, &m->holds[i], own, (2.0 * s + 1.0) / (2.0 * SAMPLES));
            lo = coef > 0 && x > lo ? x : lo;
            hi = coef < 0 && x < hi ? x : hi;
        }
        sum += hi > lo ? (hi - lo) / all : 0.0;
    }
    return own >= 0 ? sum / SAMPLES : 1.0;
}

double nest_mask_present(Arena *scratch, const Nest *nest, NodeRef node, bool needed)
{
    const Graph *g = nest->graph;
    const Node *n = graph_node(g, node);
    ArenaMark mark = arena_mark(scratch);
    NodeRef c = NODE_NONE;
    Access at;
    double share = 1.0;
    for (uint32_t k = 0; op_info(n->op)->kind == OPKIND_CONTRACT && k < n->n_operands; k++) {
        if (graph_node(g, n->operand[k])->op == OP_WHERE) {
            Mask m = mask_read(scratch, g, n, k, 0);
            share *= share_of(nest, node, &m);
        }
    }
    if (needed && mask_needed(scratch, g, node, &c, &at)) {
        Mask m = mask_of_condition(scratch, g, c);
        for (uint32_t i = 0; i < m.n; i++) {
            m.holds[i] = mask_in_reader(scratch, graph_node(g, c), at, m.holds[i]);
        }
        share *= share_of(nest, node, &m);
    }
    arena_reset(scratch, mark);
    return share;
}

int64_t mask_compares(const Node *n, const Affine *x, int32_t *folded, int32_t *other)
{
    if (x->n != 2 || affine_is_dim(x->term[0].var) || affine_is_dim(x->term[1].var) ||
        x->term[0].coef * x->term[1].coef != -1) {
        return 0;
    }
    uint32_t j = node_reduces(n, (int32_t)x->term[0].var) ? 0 : 1;
    *folded = (int32_t)x->term[j].var;
    *other = (int32_t)x->term[1 - j].var;
    bool pair = node_reduces(n, *folded) && !node_reduces(n, *other) &&
                dim_eq(n->extent[*folded], n->extent[*other]);
    return pair ? x->term[j].coef : 0;
}

int64_t nest_mask_band(Arena *scratch, const Graph *g, NodeRef n, int32_t *folded,
                       int32_t *other)
{
    const Node *node = graph_node(g, n);
    ArenaMark mark = arena_mark(scratch);
    Mask m =
        op_info(node->op)->kind == OPKIND_REDUCE ? mask_folded(scratch, g, node) : (Mask){0};
    int64_t width = 1;
    bool side[2] = {false, false};
    for (uint32_t i = 0; m.n == 2 && i < 2; i++) {
        int32_t before = *folded;
        int64_t coef = mask_compares(node, &m.holds[i], folded, other);
        if (coef == 0 || (i > 0 && *folded != before) ||
            !i64_try_add(width, m.holds[i].base, &width)) {
            break;
        }
        side[coef > 0 ? 1 : 0] = true;
    }
    arena_reset(scratch, mark);
    return side[0] && side[1] && width > 0 ? width : 0;
}

bool nest_mask_labels(Arena *a, const Graph *g, NodeRef n, int32_t *folded, int32_t *other)
{
    const Node *node = graph_node(g, n);
    Mask m = mask_folded(a, g, node);
    for (uint32_t i = 0; i < m.n; i++) {
        const Affine *x = &m.holds[i];
        if (x->n != 2 || affine_is_dim(x->term[1].var)) {
            continue;
        }
        for (uint32_t t = 0; t < 2; t++) {
            int64_t coef = x->term[t].coef;
            *folded = (int32_t)x->term[t].var;
            *other = (int32_t)x->term[1 - t].var;
            if ((coef == 1 || coef == -1) && node_reduces(node, *folded)) {
                return true;
            }
        }
    }
    return false;
}
