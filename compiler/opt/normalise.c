/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of sums: what the path search and the loop builder may rely on, and work that no order of
 * contraction can save. Rules apply to contractions (and reduce.sum) as they come; what they make goes through the rules
 * again. */
#include "opt/opt.h"

#include "opt/rewrite.h"

static bool is_exact_type(DType t)
{
    return dtype_is_exact(t);
}

/* ---- indices of extent 1 ---- */

/* Where an index of extent 1 stays an index; elsewhere it is position 0. */
typedef enum Stays { STAYS, STAYS_ONCE, GOES } Stays;

/* The node for the spec, as a value that is read with one label for each dimension. */
static void become_value(Rewriter *r, NodeSpec *s, NodeRef *value, Access *read)
{
    *read = access_of(&r->scratch, s->rank, s->out);
    *value = rewrite_add(r, s);
}

/* The spec becomes `op` of what `s` is. */
static void become_of(NodeSpec *s, Op op, DType t)
{
    *s = (NodeSpec){.op = op,
                    .dtype = t,
                    .rank = s->rank,
                    .out = s->out,
                    .out_shape = s->out_shape,
                    .span = s->span,
                    .name = s->name,
                    .allow_spill = s->allow_spill,
                    .keep = s->keep,
                    .names = s->names};
}

/* A sum of one term is 0 + x, which is not x when x is -0. */
static void add_to_zero(Rewriter *r, NodeSpec *s)
{
    NodeSpec term = *s;
    term.name = NULL;
    Number zero = number_cast(number_int(DTYPE_I64, 0), s->dtype);
    NodeRef operand[2];
    Access access[2] = {{0, NULL}};
    become_value(r, &term, &operand[1], &access[1]);
    operand[0] = graph_const(r->to, zero, s->span);
    become_of(s, OP_ADD, s->dtype);
    (void)spec_set(r, s, OP_ADD, 2, operand, access);
}

/* An index of extent 1 that is summed is position 0. One of the result keeps a single operand: then it is no batch index. */
static Verdict fix_unit_indices(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    Uses u = spec_uses(r, s);
    uint32_t summed = 0;
    for (uint32_t l = 0; l < u.n; l++) {
        summed += u.of[l].operands > 0 && !u.of[l].out ? 1 : 0;
    }
    Stays *stays = ARENA_ARRAY(&r->scratch, u.n, Stays);
    bool any = false, zero = false;
    for (uint32_t l = 0; l < u.n; l++) {
        const LabelCount *use = &u.of[l];
        if (use->operands == 0 || !dim_is(use->extent, 1)) {
            continue;
        }
        if (use->out) {
            stays[l] = use->operands > 1 ? STAYS_ONCE : STAYS;
        } else {
            stays[l] = GOES;
            zero = --summed == 0 && !is_exact_type(s->dtype);
        }
        any = any || stays[l] != STAYS;
    }
    if (!any) {
        return RULE_NO;
    }
    Access *access = ARENA_ARRAY(&r->scratch, s->n_operands, Access);
    for (uint32_t k = 0; k < s->n_operands; k++) {
        uint32_t rank = s->access[k].rank;
        Index *index = arena_copy(&r->scratch, s->access[k].index, rank * sizeof *index);
        for (uint32_t d = 0; d < rank; d++) {
            int32_t l = index[d].label;
            if (l >= 0 && stays[l] == GOES) {
                index[d] = (Index){.label = -1, .offset = 0};
            } else if (l >= 0 && stays[l] == STAYS_ONCE) {
                stays[l] = GOES; /* this was the once */
            }
        }
        access[k] = (Access){rank, index};
    }
    s->access = access;
    if (zero) {
        add_to_zero(r, s);
    }
    return RULE_SPEC;
}

/* ---- contractions of one operand ---- */

/* A sum of one operand is reduce.sum (bool: reduce.any), or a copy or cast when it sums nothing. */
static Verdict lone_operand(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    if (s->n_operands != 1) {
        return RULE_NO;
    }
    Uses u = spec_uses(r, s);
    for (uint32_t l = 0; l < u.n; l++) {
        if (u.of[l].operands > 0 && !u.of[l].out) {
            s->op = s->dtype == DTYPE_BOOL ? OP_ANY : OP_SUM;
            return RULE_SPEC;
        }
    }
    s->op = spec_operand(r, s, 0)->dtype == s->dtype ? OP_COPY : OP_CAST;
    s->acc = DTYPE_NONE;
    return RULE_SPEC;
}

/* ---- factors that are 1 ---- */

/* A constant factor 1 (or true) goes; not in complex products, where 1 + 0i makes NaN of infinities. */
static Verdict drop_ones(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    NodeRef *operand = ARENA_ARRAY(&r->scratch, s->n_operands, NodeRef);
    Access *access = ARENA_ARRAY(&r->scratch, s->n_operands, Access);
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n_operands; k++) {
        Number v;
        bool one = spec_const(r, s, k, &v) && !dtype_is_complex(s->dtype) &&
                   (is_exact_type(v.dtype) ? v.i == 1 : v.re == 1);
        bool last = n == 0 && k + 1 == s->n_operands; /* one operand stays */
        if (!one || last) {
            operand[n] = s->operand[k];
            access[n++] = s->access[k];
        }
    }
    if (n == s->n_operands) {
        return RULE_NO;
    }
    return spec_set(r, s, s->op, n, operand, access);
}

/* ---- sums that concern one operand alone ---- */

/* The state of one look at a spec; `seen[l] == k + 1` when operand k has been found to have label l. */
typedef struct OwnSums {
    Uses u;
    uint32_t *seen;
    double all; /* product of all extents: a cost, infinite if need be */
} OwnSums;

static double typical(const Rewriter *r, Dim d)
{
    int64_t n = dim_typical(&r->to->dims, d);
    return n > 0 ? (double)n : 1;
}

static OwnSums own_sums_new(Rewriter *r, const NodeSpec *s)
{
    OwnSums o = {.u = spec_uses(r, s), .all = 1};
    o.seen = ARENA_ARRAY(&r->scratch, o.u.n, uint32_t);
    for (uint32_t l = 0; l < o.u.n; l++) {
        o.all *= o.u.of[l].operands > 0 ? typical(r, o.u.of[l].extent) : 1;
    }
    return o;
}

/* Is operand k's own sum less work taken first? Then `kept` (of k's labels) is filled with those that stay. */
static bool own_sum_pays(Rewriter *r, const NodeSpec *s, OwnSums *o, uint32_t k, int32_t *kept,
                         uint32_t *n_kept)
{
    double size = 1, own = 1;
    *n_kept = 0;
    for (uint32_t d = 0; d < s->access[k].rank; d++) {
        int32_t l = s->access[k].index[d].label;
        if (l < 0 || o->seen[l] == k + 1) {
            continue;
        }
        o->seen[l] = k + 1;
        size *= typical(r, o->u.of[l].extent);
        if (o->u.of[l].operands == 1 && !o->u.of[l].out) {
            own *= typical(r, o->u.of[l].extent);
        } else {
            kept[(*n_kept)++] = l;
        }
    }
    return own > 1 && size < o->all / own * (own - 1);
}

/* The number of `label` among the first n of `list`, at most RANK_LIMIT of them; appended if it is new. */
static int32_t label_in(int32_t *list, uint32_t *n, int32_t label)
{
    for (uint32_t k = 0; k < *n; k++) {
        if (list[k] == label) {
            return (int32_t)k;
        }
    }
    list[*n] = label;
    return (int32_t)(*n)++;
}

/* The node for operand k summed over its own labels, in the accumulator's type: nothing is rounded that was not. Its labels
 * are numbered anew, since those of a long product are large. */
static NodeRef own_sum(Rewriter *r, const NodeSpec *s, const Uses *u, uint32_t k,
                       const int32_t *kept, uint32_t n_kept)
{
    uint32_t rank = s->access[k].rank, n = 0;
    Dim *shape = ARENA_ARRAY(&r->scratch, n_kept, Dim);
    int32_t *out = ARENA_ARRAY(&r->scratch, n_kept, int32_t);
    int32_t *list = ARENA_ARRAY(&r->scratch, rank, int32_t);
    Index *index = arena_copy(&r->scratch, s->access[k].index, rank * sizeof *index);
    Access access = {rank, index};
    for (uint32_t d = 0; d < rank; d++) {
        index[d].label = index[d].label < 0 ? -1 : label_in(list, &n, index[d].label);
    }
    for (uint32_t d = 0; d < n_kept; d++) {
        shape[d] = u->of[kept[d]].extent;
        out[d] = label_in(list, &n, kept[d]);
    }
    NodeSpec sum = node_spec(s->dtype == DTYPE_BOOL ? OP_ANY : OP_SUM, s->acc, 1,
                             &s->operand[k], &access, n_kept, out, shape, s->span);
    sum.acc = s->acc;
    return rewrite_add(r, &sum);
}

/* The spec becomes a cast of itself taken in the accumulator's type. */
static void take_in_accumulator(Rewriter *r, NodeSpec *s)
{
    NodeSpec wide = *s;
    wide.dtype = s->acc;
    wide.name = NULL;
    NodeRef one;
    Access read;
    become_value(r, &wide, &one, &read);
    become_of(s, OP_CAST, s->dtype);
    (void)spec_set(r, s, OP_CAST, 1, &one, &read);
}

/* sum_k A[i,k] * (sum_l B[k,l]) for sum_kl A[i,k] * B[k,l]. When the accumulator is wider than the result, the product is
 * taken in its type and converted at the end. */
static Verdict own_sums_first(Rewriter *r, NodeSpec *s, NodeRef *done)
{
    (void)done;
    if (s->n_operands < 2) {
        return RULE_NO;
    }
    if (s->acc == DTYPE_NONE) {
        s->acc = dtype_accumulator(s->dtype);
    }
    OwnSums o = own_sums_new(r, s);
    NodeRef *operand = arena_copy(&r->scratch, s->operand, s->n_operands * sizeof *operand);
    Access *access = arena_copy(&r->scratch, s->access, s->n_operands * sizeof *access);
    bool any = false;
    for (uint32_t k = 0; k < s->n_operands; k++) {
        int32_t *kept = ARENA_ARRAY(&r->scratch, s->access[k].rank, int32_t);
        uint32_t n_kept = 0;
        if (!own_sum_pays(r, s, &o, k, kept, &n_kept)) {
            continue;
        }
        any = true;
        operand[k] = own_sum(r, s, &o.u, k, kept, n_kept);
        access[k] = access_of(&r->scratch, n_kept, kept);
    }
    if (!any) {
        return RULE_NO;
    }
    s->operand = operand;
    s->access = access;
    if (s->acc != s->dtype) {
        take_in_accumulator(r, s);
    }
    return RULE_SPEC;
}

static const Rule rules[] = {
    {"read-through-copies", OP_COUNT, rule_read_through_copies},
    {"drop-idle-copy", OP_COPY, rule_drop_idle_copy},
    {"drop-idle-reduction", OP_COUNT, rule_drop_idle_reduction},
    {"fix-unit-indices", OP_EINSUM, fix_unit_indices},
    {"fix-unit-indices-of-sum", OP_SUM, fix_unit_indices},
    {"drop-ones", OP_EINSUM, drop_ones},
    {"lone-operand", OP_EINSUM, lone_operand},
    {"own-sums-first", OP_EINSUM, own_sums_first},
};

Graph *opt_normalise(Ctx *ctx, Arena *arena, const Graph *g)
{
    return rewrite_graph(ctx, arena, g, rules, sizeof rules / sizeof rules[0]);
}
