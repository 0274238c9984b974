/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions begin with what they are added to. `alpha*A*B + beta*R` is a sum of terms, element by element:
 *
 *     %4 = einsum %0[a,b], %1[b,c] -> [a,c]        %6 = mul %3[], %2[a,b] -> [a,b]
 *     %5 = mul %3[], %4[a,b] -> [a,b]         ->   %7 = einsum %0[a,b], %1[b,c], %3[] onto %6[a,c] -> [a,c]
 *     %6 = mul %3[], %2[a,b] -> [a,b]
 *     %7 = add %5[a,b], %6[a,b] -> [a,b]
 *
 * Of a sum that is stored, as results and operands of contractions are, the terms that are contractions read by nothing else need
 * no arrays: each begins with the one before, the first with all other terms, and takes its factor along as scales. Those
 * whose symmetry saves work stay by themselves, as do numbers, whose loops threads may share.
 *
 * Such a value is needed where the outermost fold begins, so loops cannot compute it and fold (nest/axes.c), and its place is that of the
 * sum. The order of terms is the graph's: it fused as well in all programs that were compared as one that the tree decided. */
#include "opt/opt.h"

#define SCALES 4 /* of one term */

/* What a term is multiplied by. */
typedef struct Factor {
    bool negative;
    uint32_t n_scales;
    NodeRef scale[SCALES];
} Factor;

typedef struct Joiner {
    Arena *arena; /* scratch */
    const Graph *g;
    Graph *to;
    uint32_t *readers; /* [nodes]: results too */
    bool *stored;      /* [nodes]: a result, or an operand of a contraction */
    NodeRef
        *sum_of; /* [nodes]: the sum that it is taken apart for, or a term of; or NODE_NONE */
    Factor *factor; /* [nodes]: what it is multiplied by in that sum */
    NodeRef *next;  /* [nodes]: of a contraction, the sum's next; of a sum, its first */
    NodeRef *from;  /* [nodes]: of a sum, the earliest node that it is taken apart into */
    NodeRef *map;   /* [nodes]: in `to` */
    NodeRef *rest;  /* [nodes]: of a sum, without contractions */
} Joiner;

static bool is_scale(const Graph *g, NodeRef r, DType t)
{
    const Node *n = graph_node(g, r);
    bool param = n->op == OP_INPUT && g->params.at[n->param].role != PARAM_INOUT;
    return n->rank == 0 && n->dtype == t &&
           (dtype_is_complex(t) ? n->op == OP_CONST && n->value.im == 0.0
                                : n->op == OP_CONST || param);
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

static bool is_sum(const Graph *g, NodeRef r, const Factor *t)
{
    const Node *n = graph_node(g, r);
    return n->op == OP_ADD || n->op == OP_SUB || n->op == OP_NEG || n->op == OP_COPY ||
           (scale_of(g, n) >= 0 && t->n_scales < SCALES);
}

/* A sum of select(key == index(i), x, 0), i of the result: what is added changes few of its elements, perhaps. */
static bool is_scatter(Arena *arena, const Graph *g, const Node *n)
{
    const Node *select = n->op == OP_SUM ? graph_node(g, n->operand[0]) : n;
    const Node *zero = select->op == OP_SELECT ? graph_node(g, select->operand[2]) : NULL;
    if (zero == NULL || zero->op != OP_CONST ||
        !op_is_neutral(OP_SUM, number_cast(zero->value, n->acc))) {
        return false;
    }
    PlaceKeys keys = {0};
    Access access = select == n
                        ? select->access[0]
                        : access_compose(arena, select, select->access[0], n->access[0]);
    graph_place_keys(arena, g, n, select->operand[0], access, NULL, NULL, &keys);
    return keys.n > 0;
}

/* Contractions, and scatters. */
static bool is_summed(Arena *arena, const Graph *g, const Node *n)
{
    return n->op == OP_EINSUM || is_scatter(arena, g, n);
}

static bool is_addend(Arena *arena, const Graph *g, NodeRef r)
{
    const Node *n = graph_node(g, r);
    bool plain = is_summed(arena, g, n) && n->n_labels > n->rank && n->rank > 0 && !n->onto &&
                 n->acc == n->dtype && n->dtype != DTYPE_BOOL && n->n_generators == 0 &&
                 n->n_exchanges == 0;
    for (uint32_t k = 0; plain && k < g->online.n; k++) {
        plain = g->online.at[k].node != r;
    }
    return plain;
}

/* Finds which values are stored. */
static void find_stored(Joiner *j)
{
    for (NodeRef r = 0; r < j->g->nodes.n; r++) {
        const Node *n = graph_node(j->g, r);
        OpKind kind = op_info(n->op)->kind;
        for (uint32_t k = 0; k < n->n_operands; k++) {
            j->stored[n->operand[k]] |= kind == OPKIND_CONTRACT && n->n_labels > n->rank;
        }
        j->sum_of[r] = j->next[r] = j->from[r] = NODE_NONE;
    }
    for (uint32_t k = 0; k < j->g->results.n; k++) {
        j->stored[j->g->results.at[k].node] = true;
    }
}

/* Would a contraction of the sum still read, or anything after it, the argument that the sum changes? */
static bool reads_old(const Joiner *j, NodeRef sum, uint32_t param)
{
    bool reads = false;
    for (NodeRef r = j->next[sum]; r < j->g->nodes.n && !reads; r++) {
        const Node *n = graph_node(j->g, r);
        bool ours = j->sum_of[r] == sum && is_summed(j->arena, j->g, n);
        for (uint32_t k = 0; (ours || j->sum_of[r] != sum) && k < n->n_operands; k++) {
            const Node *o = graph_node(j->g, n->operand[k]);
            reads |= o->op == OP_INPUT && o->param == param;
            for (uint32_t i = 0; ours && i < o->n_operands; i++) {
                const Node *p = graph_node(j->g, o->operand[i]);
                reads |= p->op == OP_INPUT && p->param == param;
            }
        }
    }
    return reads;
}

/* May the first of its contractions begin with the other terms? */
static bool begins_with_rest(const Joiner *j, NodeRef sum)
{
    bool may = true;
    for (uint32_t k = 0; may && k < j->g->results.n; k++) {
        const Result *r = &j->g->results.at[k];
        may = r->node != sum || r->param < 0 || !reads_old(j, sum, (uint32_t)r->param);
    }
    return may;
}

/* Finds the contractions among the terms of `sum`; false: it stays as it is. */
static bool take_apart(Joiner *j, NodeRef sum)
{
    VEC(NodeRef) stack = {0}, taken = {0};
    NodeRef *slot = &j->next[sum];
    bool any = false;
    vec_push(j->arena, &stack, sum);
    j->sum_of[sum] = sum;
    while (stack.n > 0) {
        NodeRef r = stack.at[--stack.n];
        const Node *n = graph_node(j->g, r);
        int scale = scale_of(j->g, n);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            NodeRef o = n->operand[k];
            Factor t = j->factor[r];
            t.negative ^= n->op == OP_NEG || (n->op == OP_SUB && k == 1);
            if (scale >= 0) {
                t.scale[t.n_scales++] = n->operand[scale];
            }
            bool alone =
                (int)k != scale && j->readers[o] == 1 && access_is_own(n, n->access[k]);
            bool plain = !t.negative && t.n_scales == 0;
            bool term = alone && is_addend(j->arena, j->g, o) &&
                        (plain || graph_node(j->g, o)->op == OP_EINSUM);
            if (term || (alone && is_sum(j->g, o, &t))) {
                j->sum_of[o] = sum;
                j->factor[o] = t;
                j->from[sum] = o < j->from[sum] ? o : j->from[sum];
                vec_push(j->arena, &taken, o);
            }
            if (term) { /* in the order of the graph */
                any = true;
                for (slot = &j->next[sum]; *slot < o; slot = &j->next[*slot]) {
                }
                j->next[o] = *slot;
                *slot = o;
            } else if (j->sum_of[o] == sum) {
                vec_push(j->arena, &stack, o);
            }
        }
    }
    bool joins = any && begins_with_rest(j, sum);
    vec_push(j->arena, &taken, sum);
    for (uint32_t i = 0; !joins && i < taken.n; i++) {
        j->sum_of[taken.at[i]] = j->next[taken.at[i]] = NODE_NONE;
        j->factor[taken.at[i]] = (Factor){0};
    }
    return joins;
}

/* ---- making ---- */

/* A node like `r`, or of part of its operands. */
static NodeRef make_like(Joiner *j, NodeRef r, Op op, uint32_t n, const NodeRef *operand,
                         const Access *access)
{
    NodeSpec spec = graph_spec(j->g, r);
    spec.op = op;
    spec.n_operands = n;
    spec.operand = operand;
    spec.access = access;
    spec.name = j->sum_of[r] == r ? NULL : spec.name;
    return graph_add(j->to, &spec);
}

/* A sum, or one inside of it, without the contractions; NODE_NONE: that is nothing. */
static NodeRef rest_of(Joiner *j, NodeRef sum, NodeRef r)
{
    const Node *n = graph_node(j->g, r);
    NodeRef operand[2];
    Access access[2];
    uint32_t left = 0, last = 0;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        NodeRef o = n->operand[k];
        bool taken = j->sum_of[o] == sum, term = is_summed(j->arena, j->g, graph_node(j->g, o));
        operand[left] = !taken ? j->map[o] : term ? NODE_NONE : j->rest[o];
        access[left] = n->access[k];
        last = operand[left] != NODE_NONE ? k : last;
        left += operand[left] != NODE_NONE ? 1 : 0;
    }
    if (left == n->n_operands) {
        return make_like(j, r, n->op, left, operand, access);
    }
    if (left == 0 || scale_of(j->g, n) >= 0) {
        return NODE_NONE;
    }
    bool negative = n->op == OP_SUB && last == 1;
    return !negative && access_is_own(n, access[0])
               ? operand[0]
               : make_like(j, r, negative ? OP_NEG : OP_COPY, 1, operand, access);
}

/* The other terms as a value of their own, which lives where the sum is; but the argument that the sum changes is there. */
static NodeRef first_of(Joiner *j, NodeRef sum)
{
    NodeRef rest = j->rest[sum];
    const Node *n = rest == NODE_NONE ? NULL : graph_node(j->to, rest);
    bool there = n == NULL || op_info(n->op)->kind == OPKIND_MAP;
    for (uint32_t k = 0; !there && k < j->g->results.n; k++) {
        const Result *r = &j->g->results.at[k];
        there = r->node == sum && n->op == OP_INPUT && r->param == (int32_t)n->param;
    }
    Access own = node_own_access(j->arena, graph_node(j->g, sum));
    return there ? rest : make_like(j, sum, OP_COPY, 1, &rest, &own);
}

static Number times(Number x, Number y, DType t)
{
    return dtype_is_int(t) ? number_int(t, (int64_t)((uint64_t)x.i * (uint64_t)y.i))
                           : number_cast(number_real(DTYPE_F64, x.re * y.re), t);
}

/* The contraction with the factor that it has in the sum, onto what the sum has so far. */
static NodeRef make_term(Joiner *j, NodeRef r, NodeRef init)
{
    const Node *n = graph_node(j->g, r);
    const Factor *t = &j->factor[r];
    NodeSpec spec = graph_spec(j->g, r);
    NodeRef *operand = ARENA_ARRAY(j->arena, n->n_operands + SCALES + 2, NodeRef);
    Access *access = ARENA_ARRAY(j->arena, n->n_operands + SCALES + 2, Access);
    Number number = number_cast(number_int(DTYPE_I64, t->negative ? -1 : 1), n->dtype);
    bool any = t->negative;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        operand[k] = j->map[n->operand[k]];
        access[k] = n->access[k];
    }
    for (uint32_t k = 0; k < t->n_scales; k++) {
        const Node *scale = graph_node(j->g, t->scale[k]);
        number = scale->op == OP_CONST ? times(number, scale->value, n->dtype) : number;
        any |= scale->op == OP_CONST;
    }
    if (any) {
        operand[spec.n_operands++] = graph_const(j->to, number, n->span);
    }
    for (uint32_t k = 0; k < t->n_scales; k++) {
        if (graph_node(j->g, t->scale[k])->op != OP_CONST) {
            operand[spec.n_operands++] = j->map[t->scale[k]];
        }
    }
    if (init != NODE_NONE) {
        access[spec.n_operands] = node_own_access(j->arena, n);
        operand[spec.n_operands++] = init;
        spec.onto = true;
    }
    spec.operand = operand;
    spec.access = access;
    return graph_add(j->to, &spec);
}

static void make_sum(Joiner *j, NodeRef sum)
{
    const Node *s = graph_node(j->g, sum);
    for (NodeRef r = j->from[sum]; r <= sum; r++) { /* of those inside first */
        if (j->sum_of[r] == sum && !is_summed(j->arena, j->g, graph_node(j->g, r))) {
            j->rest[r] = rest_of(j, sum, r);
        }
    }
    NodeRef made = first_of(j, sum);
    for (NodeRef r = j->next[sum]; r != NODE_NONE; r = j->next[r]) {
        made = make_term(j, r, made);
    }
    Node *m = &j->to->nodes.at[made];
    m->name = s->name != NULL ? s->name : m->name;
    m->allow_spill |= s->allow_spill;
    m->keep |= s->keep;
    j->map[sum] = made;
}

static Graph *join(Joiner *j, Graph *g)
{
    bool any = false;
    Factor none = {0};
    find_stored(j);
    for (NodeRef r = g->nodes.n; r-- > 0;) {
        if (j->sum_of[r] == NODE_NONE && j->stored[r] && is_sum(g, r, &none)) {
            any |= take_apart(j, r);
        }
    }
    for (NodeRef r = 0; any && r < g->nodes.n; r++) {
        if (j->sum_of[r] == NODE_NONE) {
            j->map[r] = graph_clone_node(j->to, g, r, j->map);
        } else if (j->sum_of[r] == r) {
            make_sum(j, r);
        }
    }
    if (any) {
        graph_copy_results(j->to, g, j->map);
    }
    return any ? j->to : g;
}

Graph *opt_onto(Ctx *ctx, Arena *arena, Graph *g)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    uint32_t n = g->nodes.n;
    Joiner j = {.arena = &scratch,
                .g = g,
                .to = graph_like(arena, g),
                .readers = graph_readers(&scratch, g),
                .stored = ARENA_ARRAY(&scratch, n, bool),
                .sum_of = ARENA_ARRAY(&scratch, n, NodeRef),
                .factor = ARENA_ARRAY(&scratch, n, Factor),
                .next = ARENA_ARRAY(&scratch, n, NodeRef),
                .from = ARENA_ARRAY(&scratch, n, NodeRef),
                .map = ARENA_ARRAY(&scratch, n, NodeRef),
                .rest = ARENA_ARRAY(&scratch, n, NodeRef)};
    Graph *to = g->slices.n == 0 ? join(&j, g) : g; /* slices are of loops around all */
    arena_release(&scratch);
    return to;
}
