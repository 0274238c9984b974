/* SPDX-License-Identifier: Apache-2.0 */
/* Which sums may follow a maximum over the same axis while both run (graph.h, Online). By structure:
 * from each maximum y = max over t of s(t) forward, what depends on it is
 *
 *     a shift      s(t) - y, perhaps times a positive number without indices;
 *     a factor     exp of a shift, products of factors with what does not depend on y, and what is
 *                  linear in factors alike: sums, folds over another index that keep t;
 *                  and where a condition leaves terms out of the sum: it is of those that y is the maximum of;
 *     bound        anything else: y itself, relu of a shift, a cast to a type of a smaller range, a comparison, a
 *                  selection, which would drop the NaN that a row of -inf must give. A cast from f32 to bf16 rounds as much
 *                  whatever the factor is.
 *
 * A sum over t of a factor gets a rule. Other indices that are folded have a known extent: a sum
 * over none is 0, not NaN. What exp is taken of is the very s that y is the maximum of,
 * so it is never above 0, whichever of the elements y knows already.
 *
 * The algebra is that of cascaded reductions (RedFuser, ASPLOS 2026), with products alone. */
#include "opt/opt.h"

/* Nodes and operands looked at, in one graph; maxima beyond that have no rules. */
#define WORK_MOST (4 << 20)
/* Nodes between a maximum and a sum: bounds the walk back of who checks. */
#define FACTOR_MOST 64

typedef enum MarkKind { MARK_NONE, MARK_SHIFT, MARK_FACTOR, MARK_BOUND } MarkKind;

/* How a node depends on the maximum at hand. */
typedef struct Mark {
    MarkKind kind;
    int32_t power;
    NodeRef scale;
    uint32_t size;  /* nodes of it, expanded */
    uint32_t t;     /* the dimension of the node that is t, */
    uint32_t *dims; /* and [rank of y] those that are y's */
} Mark;

typedef struct Finder {
    Graph *g;
    Arena *scratch; /* of one maximum */
    NodeRef y;
    Mark *mark; /* [nodes] */
    uint64_t work;
} Finder;

/* A mark with its dimensions as labels of a reader. */
typedef struct Carried {
    Mark mark;
    int32_t t, *labels;
} Carried;

static const Mark bound = {.kind = MARK_BOUND};

static bool carry(const Finder *f, const Node *n, uint32_t k, Carried *out)
{
    const Mark *m = &f->mark[n->operand[k]];
    uint32_t rank = graph_node(f->g, f->y)->rank;
    const Index *index = n->access[k].index;
    out->mark = *m;
    out->labels = ARENA_ARRAY(f->scratch, rank, int32_t);
    out->t = index[m->t].label;
    bool ok = out->t >= 0;
    for (uint32_t d = 0; d < rank; d++) {
        out->labels[d] = index[m->dims[d]].label;
        ok = ok && out->labels[d] >= 0 && out->labels[d] != out->t;
    }
    return ok;
}

static bool same_labels(const Finder *f, const Carried *a, const Carried *b)
{
    bool same = a->t == b->t && a->mark.scale == b->mark.scale;
    for (uint32_t d = 0; d < graph_node(f->g, f->y)->rank; d++) {
        same = same && a->labels[d] == b->labels[d];
    }
    return same;
}

/* The dimension of the result that is the label, or its rank. */
static uint32_t dim_of(const Node *n, int32_t label)
{
    uint32_t d = 0;
    while (d < n->rank && n->out[d] != label) {
        d++;
    }
    return d;
}

/* The mark of a node whose operand this is; bound when a dimension of y is gone. */
static Mark placed(const Finder *f, const Node *n, const Carried *c)
{
    Mark m = c->mark;
    uint32_t rank = graph_node(f->g, f->y)->rank;
    m.t = dim_of(n, c->t);
    m.dims = ARENA_ARRAY(f->scratch, rank, uint32_t);
    for (uint32_t d = 0; d < rank; d++) {
        m.dims[d] = dim_of(n, c->labels[d]);
        if (m.dims[d] == n->rank) {
            return bound;
        }
    }
    m.size++;
    return m.size > FACTOR_MOST ? bound : m;
}

/* sub s[..], y[..], with s read as y reads it, but for t */
static bool is_shift(const Finder *f, const Node *n, Carried *out)
{
    const Node *y = graph_node(f->g, f->y);
    if (n->op != OP_SUB || n->operand[1] != f->y || n->operand[0] != y->operand[0]) {
        return false;
    }
    const Access *s = &n->access[0], *of_y = &n->access[1], *in_y = &y->access[0];
    *out = (Carried){.mark = {.kind = MARK_SHIFT, .power = 1, .scale = NODE_NONE}, .t = -1};
    out->labels = ARENA_ARRAY(f->scratch, y->rank, int32_t);
    for (uint32_t d = 0; d < y->rank; d++) {
        out->labels[d] = of_y->index[d].label;
        if (out->labels[d] < 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < s->rank; i++) {
        int32_t label = in_y->index[i].label, read = s->index[i].label;
        uint32_t d = label < 0 ? y->rank : dim_of(y, label);
        bool is_t = label >= 0 && d == y->rank;
        bool same = label < 0 ? read < 0 && s->index[i].offset == in_y->index[i].offset
                    : is_t    ? read >= 0 && (out->t < 0 || out->t == read)
                              : read == out->labels[d];
        if (!same) {
            return false;
        }
        out->t = is_t ? read : out->t;
    }
    for (uint32_t d = 0; d < y->rank; d++) {
        if (out->labels[d] == out->t) {
            return false;
        }
    }
    return out->t >= 0;
}

static bool is_free(const Finder *f, NodeRef n)
{
    return n != f->y && f->mark[n].kind == MARK_NONE;
}

/* A shift of the operand times a number, its exp; or bound. */
static Mark mark_of_shift(const Finder *f, const Node *n, uint32_t k)
{
    Carried c;
    NodeRef by = n->n_operands == 2 ? n->operand[1 - k] : NODE_NONE;
    if (!carry(f, n, k, &c)) {
        return bound;
    }
    if (n->op == OP_EXP) {
        c.mark.kind = MARK_FACTOR;
        return placed(f, n, &c);
    }
    if (n->op != OP_MUL || c.mark.scale != NODE_NONE || !is_free(f, by) ||
        graph_node(f->g, by)->rank != 0 || !graph_is_positive(f->g, by)) {
        return bound;
    }
    c.mark.scale = by;
    return placed(f, n, &c);
}

/* Do the operands' factors multiply, must they be alike, or is the operation neither? */
typedef enum Joins { JOIN_NOT, JOIN_PRODUCT, JOIN_ALIKE } Joins;

static Joins joins(const Graph *g, const Node *n)
{
    switch (n->op) {
    case OP_EINSUM:
    case OP_MUL:
        return JOIN_PRODUCT;
    case OP_CAST:
        return dtype_keeps_range(graph_node(g, n->operand[0])->dtype, n->dtype) ? JOIN_ALIKE
                                                                                : JOIN_NOT;
    case OP_SUM:
    case OP_ADD:
    case OP_SUB:
    case OP_NEG:
    case OP_COPY:
    case OP_DIV:
    case OP_WHERE:
        return JOIN_ALIKE;
    default:
        return JOIN_NOT;
    }
}

/* Must operand `k` not depend on y: a divisor, a condition, what stands where that does not hold? */
static bool must_be_free(const Node *n, uint32_t k)
{
    return (n->op == OP_DIV && k == 1) || (n->op == OP_WHERE && k != 1);
}

/* May operand `k` be what does not depend on y, where some other does? */
static bool may_be_free(const Node *n, uint32_t k, Joins how)
{
    return how == JOIN_PRODUCT || must_be_free(n, k);
}

/* Of a node of which an operand is a factor: the factor that it has, in its labels. */
static bool join_factors(const Finder *f, const Node *n, Carried *out)
{
    Joins how = n->onto ? JOIN_NOT : joins(f->g, n);
    bool any = false;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        Carried c;
        if (is_free(f, n->operand[k])) {
            if (!may_be_free(n, k, how)) {
                return false;
            }
            continue;
        }
        if (must_be_free(n, k) || n->operand[k] == f->y ||
            f->mark[n->operand[k]].kind != MARK_FACTOR || !carry(f, n, k, &c) ||
            (any && !same_labels(f, out, &c))) {
            return false;
        }
        if (any && how == JOIN_ALIKE && c.mark.power != out->mark.power) {
            return false;
        }
        int32_t power = any && how == JOIN_PRODUCT ? out->mark.power : 0;
        uint32_t size = any ? out->mark.size : 0;
        *out = c;
        out->mark.power += power;
        out->mark.size += size;
        any = true;
    }
    for (uint32_t l = 0; any && l < n->n_labels; l++) {
        any = (int32_t)l == out->t || !node_reduces(n, (int32_t)l) ||
              (n->extent[l].sym < 0 && n->extent[l].n > 0);
    }
    return any && how != JOIN_NOT && out->mark.power <= ONLINE_POWER &&
           dtype_is_float(n->dtype);
}

static void add_rule(Finder *f, NodeRef r, const Carried *c)
{
    uint32_t rank = graph_node(f->g, f->y)->rank;
    Access read = access_of(f->g->arena, rank, c->labels);
    Online rule = {r, f->y, read, c->t, c->mark.scale, c->mark.power};
    vec_push(f->g->arena, &f->g->online, rule);
}

static Mark mark_of(Finder *f, NodeRef r)
{
    const Node *n = graph_node(f->g, r);
    bool any = false;
    Carried c;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        any |= !is_free(f, n->operand[k]);
    }
    f->work += 1 + n->n_operands;
    if (!any) {
        return (Mark){.kind = MARK_NONE};
    }
    if (is_shift(f, n, &c)) {
        return placed(f, n, &c);
    }
    for (uint32_t k = 0; k < n->n_operands && k < 2; k++) {
        if (f->mark[n->operand[k]].kind == MARK_SHIFT) {
            return mark_of_shift(f, n, k);
        }
    }
    if (!join_factors(f, n, &c)) {
        return bound;
    }
    Mark m = placed(f, n, &c);
    if (m.kind == MARK_FACTOR && m.t == n->rank) { /* it has summed t */
        add_rule(f, r, &c);
        return bound;
    }
    return m;
}

/* A maximum of real floats over one index, and no more. */
static bool is_base(const Node *n)
{
    return n->op == OP_RMAX && dtype_is_float(n->dtype) && n->n_labels == n->rank + 1;
}

void opt_online(Ctx *ctx, Graph *g, bool look)
{
    Arena scratch;
    arena_init(&scratch, &ctx->budget);
    Finder f = {.g = g, .scratch = &scratch};
    g->online.n = 0;
    for (f.y = 0; look && f.y < g->nodes.n && f.work < WORK_MOST; f.y++) {
        if (!is_base(graph_node(g, f.y))) {
            continue;
        }
        ArenaMark before = arena_mark(&scratch);
        f.mark = ARENA_ARRAY(&scratch, g->nodes.n, Mark);
        for (NodeRef n = f.y + 1; n < g->nodes.n && f.work < WORK_MOST; n++) {
            f.mark[n] = mark_of(&f, n);
        }
        arena_reset(&scratch, before);
    }
    arena_release(&scratch);
}
