/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions that are added up where their sum is. Of a stored value that is a sum of terms, element by element, the terms that
 * are contractions read by nothing else need no arrays: the first of them in the order of the tree is the place into which the
 * others are added, where that is the result itself if it is free until then; or all are added to an inout argument that the
 * sum changes. What is left of the sum is added to that place at the end, if anything is. */
#include "nest/addends.h"

/* One term of a sum that is being taken apart. */
typedef struct Pending {
    NodeRef node;
    Access access;
    NestFactor factor;
} Pending;

/* May the factor stand before a contraction in the type: a number, or a parameter that is one? */
static bool is_scale(const Graph *g, NodeRef n, DType t)
{
    const Node *node = graph_node(g, n);
    bool real = !dtype_is_complex(t) || node->value.im == 0.0;
    return node->rank == 0 && node->dtype == t &&
           ((node->op == OP_CONST && real) || (node->op == OP_INPUT && !dtype_is_complex(t)));
}

/* Which operand of a product is a scale of the other, or -1. */
static int scale_of(const Graph *g, const Node *n)
{
    for (int k = 0; n->op == OP_MUL && k < 2; k++) {
        if (is_scale(g, n->operand[k], n->dtype)) {
            return k;
        }
    }
    return -1;
}

static bool takes_apart(const Graph *g, const Node *n, const NestFactor *f)
{
    return n->op == OP_ADD || n->op == OP_SUB || n->op == OP_NEG ||
           (scale_of(g, n) >= 0 && f->n_scales < NEST_SCALES);
}

void nest_terms(Arena *arena, const Graph *g, const Residence *residence, NodeRef sum,
                NestTerms *out)
{
    const Node *root = graph_node(g, sum);
    VEC(Pending) stack = {0};
    Index *index = ARENA_ARRAY(arena, root->rank, Index);
    for (uint32_t d = 0; d < root->rank; d++) {
        index[d] = (Index){root->out[d], 0};
    }
    Pending first = {.node = sum, .access = {root->rank, index}};
    vec_push(arena, &stack, first);
    while (stack.n > 0) {
        Pending p = stack.at[--stack.n];
        const Node *n = graph_node(g, p.node);
        bool inside = p.node == sum || residence[p.node] == RESIDE_INLINE;
        if (!inside || !takes_apart(g, n, &p.factor)) {
            NestTerm term = {p.node, p.access, p.factor};
            vec_push(arena, &out->list, term);
            continue;
        }
        int scale = scale_of(g, n);
        for (uint32_t k = n->n_operands; k-- > 0;) {
            Pending next = {n->operand[k], access_compose(arena, n, n->access[k], p.access),
                            p.factor};
            next.factor.negative ^= n->op == OP_NEG || (n->op == OP_SUB && k == 1);
            if (scale >= 0) {
                next.factor.scale[next.factor.n_scales++] = n->operand[scale];
            }
            if ((int)k != scale) {
                vec_push(arena, &stack, next);
            }
        }
    }
}

static bool is_own_element(const Node *sum, const Access *a)
{
    bool same = a->rank == sum->rank;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = a->index[d].label == sum->out[d] && a->index[d].offset == 0;
    }
    return same;
}

bool nest_term_is_old(const Graph *g, NodeRef sum, const NestTerm *t, uint32_t param)
{
    const Node *n = graph_node(g, t->node);
    return n->op == OP_INPUT && n->param == param && !t->factor.negative &&
           t->factor.n_scales == 0 && is_own_element(graph_node(g, sum), &t->access);
}

/* May the term be added up elsewhere? */
static bool is_addend(const NestFacts *f, NodeRef sum, const NestTerm *t)
{
    const Node *n = graph_node(f->g, t->node), *s = graph_node(f->g, sum);
    return residence_is_stored(f->residence[t->node]) &&
           op_info(n->op)->kind == OPKIND_CONTRACT && !node_is_expression(n) &&
           n->acc == n->dtype && n->dtype == s->dtype && n->dtype != DTYPE_BOOL &&
           n->n_generators == 0 && n->n_exchanges == 0 && is_own_element(s, &t->access);
}

void nest_find_addends(Arena *arena, NestFacts *f)
{
    const Graph *g = f->g;
    NodeRef *sum_of = ARENA_ARRAY(arena, g->nodes.n, NodeRef);
    uint32_t *readers = ARENA_ARRAY(arena, g->nodes.n, uint32_t);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        sum_of[n] = NODE_NONE;
    }
    for (uint32_t k = 0; k < f->n_stored; k++) {
        const UseList *u = &f->uses[f->stored[k]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            readers[u->list.at[i].node]++;
        }
    }
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        readers[f->late.list.at[i].node]++;
    }
    for (uint32_t k = 0; k < f->n_stored; k++) {
        NodeRef s = f->stored[k];
        ArenaMark mark = arena_mark(arena);
        NestTerms terms = {0};
        NestFactor none = {0};
        if (takes_apart(g, graph_node(g, s), &none)) {
            nest_terms(arena, g, f->residence, s, &terms);
        }
        for (uint32_t i = 0; i < terms.list.n; i++) {
            NodeRef c = terms.list.at[i].node;
            if (readers[c] == 1 && f->result_of[c] < 0 && is_addend(f, s, &terms.list.at[i])) {
                sum_of[c] = s;
                f->has_addends = true;
            }
        }
        arena_reset(arena, mark);
    }
    f->sum_of = sum_of;
}

/* ---- of one tree ---- */

typedef struct Adder {
    Arena *arena;
    const NestFacts *f;
    const Nest *nest;
    NestValue *values;
    const uint32_t *top;
    const struct LastReads *last; /* [params]; top counts from 1 */
} Adder;

/* A leaf in no loop over pairs, nor in one in which a maximum grows, nor computed again. */
static bool is_plain(const Adder *a, NodeRef n)
{
    const NestItem *items = a->nest->items;
    bool plain = a->values[n].item != NEST_NONE && !items[a->values[n].item].again;
    for (uint32_t p = plain ? items[a->values[n].item].parent : NEST_NONE; p != NEST_NONE;
         p = items[p].parent) {
        plain = plain && !items[p].online && items[p].from == 0;
    }
    return plain;
}

/* The last two leaves that read a parameter, by the order of top-level items. */
typedef struct LastReads {
    NodeRef reader[2];
    uint32_t top[2];
} LastReads;

static void find_last_reads(Adder *a)
{
    LastReads *last = ARENA_ARRAY(a->arena, a->f->g->params.n, LastReads);
    for (uint32_t k = 0; k < a->f->n_stored; k++) {
        NodeRef r = a->f->stored[k];
        const UseList *u = &a->f->uses[r];
        for (uint32_t i = 0; a->top[r] != NEST_NONE && i < u->list.n; i++) {
            const Node *p = graph_node(a->f->g, u->list.at[i].node);
            LastReads *l = p->op == OP_INPUT ? &last[p->param] : NULL;
            if (l == NULL || (l->top[0] > 0 && l->reader[0] == r)) {
                continue;
            }
            uint32_t at = a->top[r] + 1 >= l->top[0] ? 0 : 1;
            if (at == 0) {
                l->reader[1] = l->reader[0];
                l->top[1] = l->top[0];
            }
            if (at == 0 || a->top[r] + 1 > l->top[1]) {
                l->reader[at] = r;
                l->top[at] = a->top[r] + 1;
            }
        }
    }
    a->last = last;
}

/* Does anything but the sum read the parameter from the leaf's top-level item on? */
static bool is_read_after(const Adder *a, NodeRef n, NodeRef sum, uint32_t param)
{
    const LastReads *l = &a->last[param];
    uint32_t last = l->top[0] > 0 && l->reader[0] == sum ? l->top[1] : l->top[0];
    return last >= a->top[n] + 1;
}

/* The dimension of the value that the loop cuts, or -1. */
static int32_t cut_dimension(const Nest *nest, uint32_t loop, NodeRef n)
{
    const Node *node = graph_node(nest->graph, n);
    int32_t l = nest_axis_label(&nest->axes[nest->items[loop].axis], n);
    for (uint32_t d = 0; d < node->rank && l >= 0; d++) {
        if (node->out[d] == l) {
            return (int32_t)d;
        }
    }
    return -1;
}

/* May `n` be added into the block of `base`, which is there, or in the same iteration of loops that cut both alike? */
static bool may_join(const Adder *a, NodeRef n, NodeRef base)
{
    const Nest *nest = a->nest;
    const NestItem *items = nest->items;
    uint32_t home = a->values[base].home, at = a->values[n].home;
    while (at != NEST_NONE && at != home) {
        at = items[at].parent;
    }
    const Node *x = graph_node(nest->graph, n), *y = graph_node(nest->graph, base);
    bool fits = at == home;
    for (uint32_t d = 0; fits && d < x->rank; d++) {
        fits =
            nest_loop_of(nest, home, n, x->out[d]) == nest_loop_of(nest, home, base, y->out[d]);
    }
    for (uint32_t p = fits ? items[a->values[n].item].parent : home; p != home;
         p = items[p].parent) {
        bool around = p < a->values[base].item && a->values[base].item < items[p].end;
        int32_t d = cut_dimension(nest, p, n);
        fits = fits && (!around || (d >= 0 && d == cut_dimension(nest, p, base)));
    }
    return fits;
}

static void add_into(NestValue *v, NodeRef sum, NodeRef base, int32_t result)
{
    v->residence = RESIDE_INTO;
    v->term_of = sum;
    v->in_place = base;
    v->result = result;
}

/* Into the argument that the sum changes. */
static void add_into_old(const Adder *a, NodeRef s, uint32_t n, const NodeRef *addend)
{
    int32_t k = a->values[s].result;
    uint32_t param = (uint32_t)a->f->g->results.at[k].param;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_read_after(a, addend[i], s, param)) {
            add_into(&a->values[addend[i]], s, NODE_NONE, k);
        }
    }
}

/* Into the first of them. All of a sum that is nothing else is made in the result; so is what would go to memory. */
static void add_into_first(const Adder *a, NodeRef s, bool only, uint32_t n,
                           const NodeRef *addend)
{
    NestValue *base = &a->values[addend[0]];
    int32_t k = a->values[s].residence == RESIDE_RESULT ? a->values[s].result : -1;
    int32_t param = k < 0 ? -1 : a->f->g->results.at[k].param;
    bool direct =
        k >= 0 && (base->home == NEST_NONE || (only && n > 1)) &&
        (param < 0 || nest_may_overwrite(a->arena, a->f, a->top, addend[0], (uint32_t)param));
    uint32_t joined = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (may_join(a, addend[i], addend[0])) {
            add_into(&a->values[addend[i]], s, addend[0], -1);
            joined++;
        }
    }
    if (joined > 0 || direct) {
        base->term_of = s;
    }
    if (direct) {
        base->residence = RESIDE_RESULT;
        base->result = k;
    }
}

static void place_sum(const Adder *a, NodeRef s, uint32_t n, const NodeRef *addend)
{
    const NestValue *v = &a->values[s];
    int32_t param = v->residence != RESIDE_RESULT ? -1 : a->f->g->results.at[v->result].param;
    NestTerms terms = {0};
    bool old = false;
    uint32_t reads = 0;
    for (uint32_t i = 0; param >= 0 && i < a->f->uses[s].list.n; i++) {
        const Node *p = graph_node(a->f->g, a->f->uses[s].list.at[i].node);
        reads += p->op == OP_INPUT && p->param == (uint32_t)param;
    }
    nest_terms(a->arena, a->f->g, a->f->residence, s, &terms);
    for (uint32_t i = 0; i < terms.list.n && reads == 1; i++) {
        old = old || nest_term_is_old(a->f->g, s, &terms.list.at[i], (uint32_t)param);
    }
    if (old) {
        add_into_old(a, s, n, addend);
    } else {
        add_into_first(a, s, terms.list.n == n, n, addend);
    }
}

void nest_place_addends(Arena *arena, const NestFacts *f, const uint32_t *top, const Nest *nest,
                        NestValue *values)
{
    Adder a = {arena, f, nest, values, top, NULL};
    NodeRef *addend = ARENA_ARRAY(arena, nest->n_items, NodeRef);
    if (!f->has_addends) {
        return;
    }
    find_last_reads(&a);
    for (uint32_t k = 0; k < nest->n_items; k++) {
        NodeRef s = nest->items[k].node;
        const UseList *u = nest_is_loop(&nest->items[k]) ? NULL : &f->uses[s];
        uint32_t n = 0;
        for (uint32_t i = 0; u != NULL && !nest->items[k].again && i < u->list.n; i++) {
            NodeRef c = u->list.at[i].node;
            if (f->sum_of[c] != s || !is_plain(&a, c)) {
                continue;
            }
            uint32_t at = n++; /* in the order of the tree */
            for (; at > 0 && values[addend[at - 1]].item > values[c].item; at--) {
                addend[at] = addend[at - 1];
            }
            addend[at] = c;
        }
        if (n > 0) {
            place_sum(&a, s, n, addend);
        }
    }
}

bool nest_sum_is_made(Arena *arena, const Nest *nest, const Residence *residence, NodeRef s)
{
    const NestValue *v = &nest->values[s];
    NestTerms terms = {0};
    bool made = true, any = false;
    nest_terms(arena, nest->graph, residence, s, &terms);
    for (uint32_t i = 0; made && i < terms.list.n; i++) {
        const NestTerm *t = &terms.list.at[i];
        const NestValue *c = &nest->values[t->node];
        int32_t param = v->result < 0 ? -1 : nest->graph->results.at[v->result].param;
        bool old = param >= 0 && nest_term_is_old(nest->graph, s, t, (uint32_t)param);
        bool base = c->term_of == s && c->residence != RESIDE_INTO;
        any |= c->term_of == s;
        made = old || (c->term_of == s && (!base || nest_has_place_of(nest, s, t->node)));
    }
    return any && made;
}

bool nest_has_place_of(const Nest *nest, NodeRef s, NodeRef base)
{
    const NestValue *v = &nest->values[s], *b = &nest->values[base];
    return v->in_place == base || (v->residence == RESIDE_RESULT &&
                                   b->residence == RESIDE_RESULT && v->result == b->result);
}
