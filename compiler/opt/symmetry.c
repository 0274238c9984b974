/* SPDX-License-Identifier: Apache-2.0 */
/* Symmetry of values, from their structure. A value is symmetric under an exchange of its labels when what it reads through the
 * exchange is, in some order that its operation allows, what it read before, or its conjugate: sums and products are compared as bags of
 * terms and factors, each with its sign, through all expressions around them; so the exchange holds up to rounding, and exactly
 * where sums and products are exact. Exchanges that are tried come from operands: two reads of one value that are each
 * other's image (B[i,a,P] * B[j,b,P]), and what operands are symmetric under.
 *
 * Bounded for each node: READS values that are looked at, CANDIDATES exchanges, STEPS comparisons. */
#include <string.h>

#include "opt/opt.h"

/* Operations of an expression that is looked into; a larger one is a value as it is. */
#define EXPRESSION 64
#define READS      24
#define CANDIDATES 64
#define STEPS      20000
/* Summed labels of a product that is looked at, those of products inside too. */
#define SUMMED 8
/* Exchanges of its terms that are kept. */
#define EXCHANGES 8

/* A value and the labels that it is read with; -1 - p: position p. */
typedef struct View {
    NodeRef node;
    int32_t *at; /* [rank] */
    int sign;    /* of a term, of a factor */
    bool under;  /* of a factor: it divides */
    bool conj;   /* it is the conjugate of the value, which is complex */
} View;

typedef struct Views {
    VEC(View) list;
} Views;

typedef struct Finder {
    Graph *g;
    Arena *arena;              /* of one node */
    const uint8_t *small;      /* [nodes]: is it an expression that is looked into? */
    const Symmetry **declared; /* [nodes]: of a result, what is said of it; else null */
    uint32_t steps;
} Finder;

static const Node *node_of(const Finder *f, View v)
{
    return graph_node(f->g, v.node);
}

/* ---- reads through a group ---- */

/* Does the value, read so, equal itself read at `other`, or the conjugate of that: 1, or -1 when it is the negative, else 0. */
static int orbit_sign(Finder *f, View v, const int32_t *other, bool conj)
{
    const Node *n = node_of(f, v);
    size_t bytes = n->rank * sizeof *v.at;
    if (!conj && (n->rank == 0 || memcmp(v.at, other, bytes) == 0)) {
        return 1;
    }
    int64_t sum = 0, squares = 0;
    for (uint32_t d = 0; d < n->rank; d++) {
        sum += v.at[d] - (int64_t)other[d];
        squares += (int64_t)v.at[d] * v.at[d] - (int64_t)other[d] * other[d];
    }
    if (n->n_generators == 0 || sum != 0 || squares != 0) {
        return 0;
    }
    Views seen = {0};
    vec_push(f->arena, &seen.list, v);
    seen.list.at[0].sign = 1;
    seen.list.at[0].conj = false;
    for (uint32_t k = 0; k < seen.list.n && seen.list.n < SYMMETRY_LIMIT; k++) {
        for (uint32_t i = 0; i < n->n_generators; i++) {
            View next = {v.node, ARENA_ARRAY(f->arena, n->rank, int32_t),
                         seen.list.at[k].sign * n->generator[i].sign, false,
                         seen.list.at[k].conj != n->generator[i].conj};
            for (uint32_t d = 0; d < n->rank; d++) {
                next.at[d] = seen.list.at[k].at[n->generator[i].to[d]];
            }
            if (next.conj == conj && memcmp(next.at, other, bytes) == 0) {
                return next.sign;
            }
            bool known = false;
            for (uint32_t s = 0; s < seen.list.n && !known; s++) {
                known = seen.list.at[s].conj == next.conj &&
                        memcmp(seen.list.at[s].at, next.at, bytes) == 0;
            }
            if (!known) {
                vec_push(f->arena, &seen.list, next);
            }
        }
    }
    return 0;
}

/* ---- operands ---- */

/* Operand k of a value whose labels are `label`, or its conjugate. */
static View operand_view(Finder *f, const Node *n, const int32_t *label, uint32_t k, bool conj)
{
    const Access *a = &n->access[k];
    View v = {n->operand[k], ARENA_ARRAY(f->arena, a->rank, int32_t), 1, false,
              conj && dtype_is_complex(graph_node(f->g, n->operand[k])->dtype)};
    for (uint32_t d = 0; d < a->rank; d++) {
        v.at[d] = a->index[d].label < 0 ? (int32_t)(-1 - a->index[d].offset)
                                        : label[a->index[d].label];
    }
    return v;
}

/* What the labels of a viewed node are: those of its result as it is read, summed ones from *fresh on. */
static int32_t *view_labels(Finder *f, View v, int32_t *fresh)
{
    const Node *n = node_of(f, v);
    int32_t *label = ARENA_ARRAY(f->arena, n->n_labels, int32_t);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        label[l] = node_reduces(n, (int32_t)l) ? (*fresh)++ : 0;
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        label[n->out[d]] = v.at[d];
    }
    return label;
}

/* The value that conjugates around it are of. */
static View bare(Finder *f, View v)
{
    while (f->small[v.node] && node_of(f, v)->op == OP_CONJ) {
        int32_t none = 0;
        View in = operand_view(f, node_of(f, v), view_labels(f, v, &none), 0, !v.conj);
        in.sign = v.sign;
        in.under = v.under;
        v = in;
    }
    return v;
}

typedef enum Family { FAMILY_SUM, FAMILY_PRODUCT, FAMILY_OTHER } Family;

static Family family_of(const Finder *f, View v)
{
    const Node *n = node_of(f, v);
    if (!f->small[v.node]) {
        return FAMILY_OTHER;
    }
    switch (n->op) {
    case OP_ADD:
    case OP_SUB:
        return FAMILY_SUM;
    case OP_MUL:
        return FAMILY_PRODUCT;
    case OP_DIV:
        return dtype_is_int(n->dtype) ? FAMILY_OTHER : FAMILY_PRODUCT;
    default:
        return FAMILY_OTHER;
    }
}

/* Appends the terms of a sum, or the factors of a product, that `v` is; itself when it is none. */
static void flatten(Finder *f, Family family, View v, Views *out)
{
    v = bare(f, v);
    const Node *n = node_of(f, v);
    bool neg = f->small[v.node] && n->op == OP_NEG;
    if ((!neg && family_of(f, v) != family) || out->list.n > EXPRESSION) {
        vec_push(f->arena, &out->list, v);
        return;
    }
    int32_t none = 0;
    const int32_t *label = view_labels(f, v, &none);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        View o = operand_view(f, n, label, k, v.conj);
        bool second = k == 1;
        o.sign = v.sign * (neg || (n->op == OP_SUB && second) ? -1 : 1);
        o.under = v.under != (n->op == OP_DIV && second);
        if (family == FAMILY_PRODUCT && second) {
            o.sign = 1; /* the first has the product's */
        }
        flatten(f, family, o, out);
    }
}

/* ---- comparison ---- */

static int compare(Finder *f, View a, View b);

/* As bags: 1 or -1 when the terms of `a` are those of `b`, or all of their negatives. */
static int compare_terms(Finder *f, const Views *a, const Views *b)
{
    bool *taken = ARENA_ARRAY(f->arena, b->list.n, bool);
    for (int sign = 1; a->list.n == b->list.n && sign >= -1; sign -= 2) {
        uint32_t k = 0;
        memset(taken, 0, b->list.n * sizeof *taken);
        for (bool found = true; k < a->list.n && found; k += found) {
            found = false;
            for (uint32_t i = 0; i < b->list.n && !found; i++) {
                int same = taken[i] ? 0 : compare(f, a->list.at[k], b->list.at[i]);
                found = same * a->list.at[k].sign * b->list.at[i].sign == sign;
                taken[i] = taken[i] || found;
            }
        }
        if (k == a->list.n) {
            return sign;
        }
    }
    return 0;
}

/* The sign between two products of the same factors, or 0. */
static int compare_factors(Finder *f, const Views *a, const Views *b)
{
    bool *taken = ARENA_ARRAY(f->arena, b->list.n, bool);
    int sign = a->list.n == b->list.n ? 1 : 0;
    for (uint32_t k = 0; k < a->list.n && sign != 0; k++) {
        int same = 0;
        for (uint32_t i = 0; i < b->list.n && same == 0; i++) {
            bool may = !taken[i] && a->list.at[k].under == b->list.at[i].under;
            same = may ? compare(f, a->list.at[k], b->list.at[i]) : 0;
            taken[i] = taken[i] || same != 0;
            sign *= same != 0 ? a->list.at[k].sign * b->list.at[i].sign : 1;
        }
        sign *= same;
    }
    return sign;
}

/* The same operation of operands that are read alike, in this order. */
static int compare_operands(Finder *f, const Node *n, const View *a, const View *b)
{
    bool real = dtype_is_float(n->dtype);
    int product = 1;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        int same = compare(f, a[k], b[k]);
        if (same == 0 && (n->op == OP_RE || n->op == OP_ABS) &&
            dtype_is_complex(node_of(f, b[k])->dtype)) {
            View other = b[k];
            other.conj = !other.conj;
            same = compare(f, a[k], other);
        }
        bool whole = n->op == OP_SELECT && k > 0; /* both alternatives have the sign */
        OpSign rule = real ? op_info(n->op)->sign : SIGN_NONE;
        if (same == 0) {
            return 0;
        }
        if (whole) {
            product = k == 1 ? same : product == same ? same : 0;
        } else if (rule == SIGN_ODD) {
            product *= same;
        } else if (same < 0 && rule != SIGN_EVEN) {
            return 0;
        }
    }
    return product;
}

static bool commutes(Op op)
{
    return op == OP_MIN || op == OP_MAX || op == OP_EQ || op == OP_NE || op == OP_AND ||
           op == OP_OR;
}

static int compare_functions(Finder *f, View a, View b)
{
    const Node *n = node_of(f, a), *m = node_of(f, b);
    if (n->op != m->op || n->dtype != m->dtype || n->n_operands > 3 ||
        ((a.conj || b.conj) && n->op != OP_SELECT && n->op != OP_CAST && n->op != OP_COPY)) {
        return 0;
    }
    View x[3], y[3];
    int32_t none = 0;
    const int32_t *of_a = view_labels(f, a, &none), *of_b = view_labels(f, b, &none);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        x[k] = operand_view(f, n, of_a, k, a.conj);
        y[k] = operand_view(f, m, of_b, k, b.conj);
    }
    int same = compare_operands(f, n, x, y);
    if (same == 0 && commutes(n->op)) {
        View swapped[2] = {y[1], y[0]};
        same = compare_operands(f, n, x, swapped);
    }
    return same;
}

/* Of expressions, by what they are made of. */
static int compare_inside(Finder *f, View a, View b)
{
    Family of_a = family_of(f, a), of_b = family_of(f, b);
    bool neg = node_of(f, a)->op == OP_NEG || node_of(f, b)->op == OP_NEG;
    Family family = of_a == FAMILY_SUM || of_b == FAMILY_SUM                  ? FAMILY_SUM
                    : of_a == FAMILY_PRODUCT || of_b == FAMILY_PRODUCT || neg ? FAMILY_PRODUCT
                                                                              : FAMILY_OTHER;
    if (node_of(f, a)->dtype != node_of(f, b)->dtype) {
        return 0;
    }
    if (family == FAMILY_OTHER) {
        return compare_functions(f, a, b);
    }
    Views in_a = {0}, in_b = {0};
    a.sign = b.sign = 1;
    a.under = b.under = false;
    flatten(f, family, a, &in_a);
    flatten(f, family, b, &in_b);
    return family == FAMILY_SUM ? compare_terms(f, &in_a, &in_b)
                                : compare_factors(f, &in_a, &in_b);
}

/* Are two values, as they are read, equal: 1; or each other's negative: -1; or not known to be. Their own signs do not count. */
static int compare(Finder *f, View a, View b)
{
    if (f->steps == 0) {
        return 0;
    }
    f->steps--;
    a = bare(f, a);
    b = bare(f, b);
    int same = a.node == b.node ? orbit_sign(f, a, b.at, a.conj != b.conj) : 0;
    return same == 0 && f->small[a.node] && f->small[b.node] ? compare_inside(f, a, b) : same;
}

/* ---- one node ---- */

/* What a node reads, as views in its own labels, and how many labels these have. */
typedef struct Reading {
    Views of; /* CONTRACT: its factors; REDUCE: its operand; MAP: values in its expression */
    int32_t n_labels;
    uint32_t products; /* inside that are looked into: labels are not the node's alone */
} Reading;

/* Is the value a product of this type that may be looked into? */
static bool is_inner_product(const Node *o, DType dtype)
{
    return o->op == OP_EINSUM && o->dtype == dtype && o->n_operands <= 4 && !o->onto;
}

/* A factor of a node of this type, and all that products in it multiply. */
static void read_factor(Finder *f, DType dtype, bool einsum, View v, Reading *out)
{
    v = bare(f, v);
    const Node *o = node_of(f, v);
    if (einsum && is_inner_product(o, dtype) && out->products < READS) {
        const int32_t *label = view_labels(f, v, &out->n_labels);
        out->products++;
        for (uint32_t k = 0; k < o->n_operands; k++) {
            read_factor(f, dtype, einsum, operand_view(f, o, label, k, v.conj), out);
        }
    } else if (einsum && o->dtype == dtype) {
        flatten(f, FAMILY_PRODUCT, v, &out->of);
    } else {
        vec_push(f->arena, &out->of.list, v);
    }
}

/* `inside`: the first two operands that are looked into, as bits; EVERYTHING: all products that are reached. */
#define EVERYTHING 4

static void read_factors(Finder *f, const Node *n, uint32_t inside, Reading *out)
{
    int32_t *label = ARENA_ARRAY(f->arena, n->n_labels, int32_t);
    for (uint32_t l = 0; l < n->n_labels; l++) {
        label[l] = (int32_t)l;
    }
    out->n_labels = (int32_t)n->n_labels;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        View v = operand_view(f, n, label, k, false);
        const Node *o = node_of(f, v);
        if (inside == EVERYTHING) {
            read_factor(f, n->dtype, n->op == OP_EINSUM, v, out);
        } else if (k < 2 && (inside >> k & 1) != 0) {
            out->products++;
            const int32_t *inner = view_labels(f, v, &out->n_labels);
            for (uint32_t i = 0; i < o->n_operands; i++) {
                vec_push(f->arena, &out->of.list, bare(f, operand_view(f, o, inner, i, false)));
            }
        } else if (o->dtype == n->dtype && n->op == OP_EINSUM) {
            flatten(f, FAMILY_PRODUCT, v, &out->of);
        } else {
            vec_push(f->arena, &out->of.list, bare(f, v));
        }
    }
}

/* Values that an expression reads, and the expressions in it. */
static void read_expression(Finder *f, View v, bool root, Views *out)
{
    if (out->list.n >= READS) {
        return;
    }
    if (!root) {
        vec_push(f->arena, &out->list, v);
    }
    const Node *n = node_of(f, v);
    if (f->small[v.node] || root) {
        int32_t none = 0;
        const int32_t *label = view_labels(f, v, &none);
        for (uint32_t k = 0; k < n->n_operands; k++) {
            read_expression(f, bare(f, operand_view(f, n, label, k, false)), false, out);
        }
    }
}

static View whole_view(Finder *f, NodeRef r)
{
    const Node *n = graph_node(f->g, r);
    View v = {r, ARENA_ARRAY(f->arena, n->rank, int32_t), 1, false, false};
    for (uint32_t d = 0; d < n->rank; d++) {
        v.at[d] = n->out == NULL ? (int32_t)d : n->out[d];
    }
    return v;
}

/* The view with labels exchanged, of the conjugate where that is asked for. */
static View exchanged(Finder *f, View v, const int32_t *to, bool conj)
{
    View other = v;
    uint32_t rank = node_of(f, v)->rank;
    other.at = ARENA_ARRAY(f->arena, rank, int32_t);
    for (uint32_t d = 0; d < rank; d++) {
        other.at[d] = v.at[d] < 0 ? v.at[d] : to[v.at[d]];
    }
    other.conj = v.conj != (conj && dtype_is_complex(node_of(f, v)->dtype));
    return other;
}

/* Is the node itself, or its negative, or the conjugate of these, with its labels exchanged? */
static int node_sign(Finder *f, NodeRef r, const Reading *reading, const int32_t *to, bool conj)
{
    const Node *n = graph_node(f->g, r);
    switch (op_info(n->op)->kind) {
    case OPKIND_MAP:
        return (n->op == OP_CONJ ? compare : compare_inside)(
            f, whole_view(f, r), exchanged(f, whole_view(f, r), to, conj));
    case OPKIND_REDUCE: {
        View v = reading->of.list.at[0];
        int same = compare(f, v, exchanged(f, v, to, conj));
        return same > 0 || n->op == OP_SUM ? same : 0;
    }
    case OPKIND_CONTRACT: {
        Views other = {0};
        for (uint32_t k = 0; k < reading->of.list.n; k++) {
            vec_push(f->arena, &other.list, exchanged(f, reading->of.list.at[k], to, conj));
        }
        return compare_factors(f, &reading->of, &other);
    }
    case OPKIND_VIEW:
    case OPKIND_JOIN:
    case OPKIND_STEPS:
    case OPKIND_DENSE:
    case OPKIND_GATHER:
    case OPKIND_LEAF:
        break;
    }
    return 0;
}

/* ---- exchanges to try ---- */

typedef struct Candidates {
    uint32_t n;
    int32_t *to[CANDIDATES]; /* [n_labels] */
} Candidates;

/* The exchange of labels that turns one list into the other and back, if there is one. */
static void add_candidate(Finder *f, const Reading *reading, uint32_t rank, const int32_t *a,
                          const int32_t *b, Candidates *c)
{
    size_t n = (size_t)reading->n_labels;
    int32_t *to = ARENA_ARRAY(f->arena, n, int32_t);
    memset(to, 0xff, n * sizeof *to);
    bool ok = c->n < CANDIDATES, moves = false;
    for (uint32_t d = 0; d < rank && ok; d++) {
        ok = (a[d] < 0) == (b[d] < 0) && (a[d] >= 0 || a[d] == b[d]);
        if (ok && a[d] >= 0) {
            ok = (to[a[d]] < 0 || to[a[d]] == b[d]) && (to[b[d]] < 0 || to[b[d]] == a[d]);
            to[a[d]] = b[d];
            to[b[d]] = a[d];
            moves = moves || a[d] != b[d];
        }
    }
    for (size_t l = 0; l < n; l++) {
        to[l] = to[l] < 0 ? (int32_t)l : to[l];
    }
    for (uint32_t k = 0; k < c->n && ok; k++) {
        ok = memcmp(c->to[k], to, n * sizeof *to) != 0;
    }
    if (ok && moves) {
        c->to[c->n++] = to;
    }
}

/* Its own generators, and those after which it is the other read. */
static void add_generators(Finder *f, const Reading *reading, View v, const int32_t *other,
                           Candidates *c)
{
    const Node *n = node_of(f, v);
    for (uint32_t i = 0; i < n->n_generators; i++) {
        int32_t *moved = ARENA_ARRAY(f->arena, n->rank, int32_t);
        for (uint32_t d = 0; d < n->rank; d++) {
            moved[d] = other[n->generator[i].to[d]];
        }
        add_candidate(f, reading, n->rank, v.at, moved, c);
    }
}

/* What is declared of the result that the node is. */
static void add_declared(Finder *f, NodeRef r, const Reading *reading, Candidates *c)
{
    const Node *n = graph_node(f->g, r);
    int32_t *moved = ARENA_ARRAY(f->arena, n->rank, int32_t);
    uint32_t to[RANK_LIMIT];
    Generator exchange;
    for (uint32_t k = 0; symmetry_generator(f->declared[r], n->rank, k, to, &exchange); k++) {
        for (uint32_t d = 0; d < n->rank; d++) {
            moved[d] = n->out[to[d]];
        }
        add_candidate(f, reading, n->rank, n->out, moved, c);
    }
}

static void find_candidates(Finder *f, const Reading *reading, Candidates *c)
{
    const Views *v = &reading->of;
    uint32_t most = v->list.n < READS ? v->list.n : READS;
    for (uint32_t k = 0; k < most; k++) {
        for (uint32_t i = k + 1; i < most; i++) {
            if (v->list.at[i].node == v->list.at[k].node) {
                add_candidate(f, reading, node_of(f, v->list.at[k])->rank, v->list.at[k].at,
                              v->list.at[i].at, c);
            }
        }
    }
    for (uint32_t k = 0; k < most; k++) {
        add_generators(f, reading, v->list.at[k], v->list.at[k].at, c);
        for (uint32_t i = k + 1; i < most; i++) {
            if (v->list.at[i].node == v->list.at[k].node) {
                add_generators(f, reading, v->list.at[k], v->list.at[i].at, c);
            }
        }
    }
}

/* Two candidates at once, where they agree: (pq|rs) with an orbital for each index stays with both pairs exchanged. */
static void add_unions(Finder *f, const Reading *reading, Candidates *c)
{
    size_t labels = (size_t)reading->n_labels;
    int32_t *to = ARENA_ARRAY(f->arena, labels, int32_t);
    for (uint32_t a = 0, n = c->n; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            bool agree = true;
            for (size_t l = 0; l < labels && agree; l++) {
                int32_t x = c->to[a][l], y = c->to[b][l], own = (int32_t)l;
                to[l] = x == own ? y : x;
                agree = x == own || y == own || x == y;
            }
            if (agree) {
                int32_t *all = ARENA_ARRAY(f->arena, labels, int32_t);
                for (size_t l = 0; l < labels; l++) {
                    all[l] = (int32_t)l;
                }
                add_candidate(f, reading, (uint32_t)labels, all, to, c);
            }
        }
    }
}

/* The dimensions that an exchange of labels exchanges: false when that is none, or not all of a result's. */
static bool candidate_dims(const Node *n, const int32_t *to, uint32_t *dims)
{
    bool moves = false;
    for (uint32_t d = 0; d < n->rank; d++) {
        uint32_t e = 0;
        while (e < n->rank && n->out[e] != to[n->out[d]]) {
            e++;
        }
        if (e == n->rank || !dim_eq(n->shape[d], n->shape[e])) {
            return false;
        }
        dims[d] = e;
        moves = moves || e != d;
    }
    return moves;
}

/* Notes that the terms of a sum stay with the labels exchanged, when its result does not see it. */
static void try_terms(Finder *f, NodeRef r, const Reading *reading, const int32_t *to)
{
    const Node *n = graph_node(f->g, r);
    uint32_t *labels = ARENA_ARRAY(f->arena, n->n_labels, uint32_t);
    bool ok = node_sums_reals(n) && reading->products == 0 && n->n_exchanges < EXCHANGES;
    for (uint32_t l = 0; l < n->n_labels && ok; l++) {
        labels[l] = (uint32_t)to[l];
        ok = dim_eq(n->extent[l], n->extent[to[l]]);
    }
    for (uint32_t d = 0; d < n->rank && ok; d++) {
        ok = to[n->out[d]] == n->out[d];
    }
    if (ok && node_sign(f, r, reading, to, false) > 0) {
        graph_add_exchange(f->g, r, &(Generator){labels, 1, false});
    }
}

/* Adds what it is symmetric under, but no more than may be known of one value. False when that is so. */
static bool add_known(Finder *f, NodeRef r, Generator generator)
{
    Node *n = &f->g->nodes.at[r];
    SymmetryGroup group;
    graph_add_generator(f->g, r, &generator);
    symmetry_group(f->arena, n->rank, n->n_generators, n->generator, &group);
    n->n_generators -= group.n > SYMMETRY_LIMIT ? 1 : 0;
    return group.n <= SYMMETRY_LIMIT;
}

/* Tries what the reading suggests. */
static void try_reading(Finder *f, NodeRef r, const Reading *reading)
{
    Candidates c = {0};
    const Node *n = graph_node(f->g, r);
    uint32_t *dims = ARENA_ARRAY(f->arena, n->rank, uint32_t);
    int32_t *image = ARENA_ARRAY(f->arena, n->rank, int32_t);
    add_declared(f, r, reading, &c);
    find_candidates(f, reading, &c);
    if (reading->products > 0) {
        add_unions(f, reading, &c);
    }
    for (uint32_t k = 0; k < c.n; k++) {
        if (!candidate_dims(n, c.to[k], dims)) {
            try_terms(f, r, reading, c.to[k]);
            continue;
        }
        View whole = whole_view(f, r);
        for (uint32_t d = 0; d < n->rank; d++) {
            image[d] = whole.at[dims[d]];
        }
        for (int conj = 0; conj <= (dtype_is_complex(n->dtype) ? 1 : 0); conj++) {
            bool known = orbit_sign(f, whole, image, conj != 0) != 0;
            int sign = known ? 0 : node_sign(f, r, reading, c.to[k], conj != 0);
            if (sign != 0 && !add_known(f, r, (Generator){dims, sign, conj != 0})) {
                return;
            }
        }
    }
}

/* Operands of a product, as bits, that are products of its type and may be looked into. */
static uint32_t inner_products(const Graph *g, const Node *n)
{
    uint32_t bits = 0;
    for (uint32_t k = 0; k < n->n_operands && k < 2; k++) {
        const Node *o = graph_node(g, n->operand[k]);
        bits |= is_inner_product(o, n->dtype) ? 1u << k : 0;
    }
    return bits;
}

static void find_generators(Finder *f, NodeRef r)
{
    const Node *n = graph_node(f->g, r);
    OpKind kind = op_info(n->op)->kind;
    f->steps = STEPS;
    if (kind == OPKIND_LEAF || n->onto || n->n_labels < 2 || n->n_operands > READS ||
        (kind == OPKIND_MAP && !f->small[r]) ||
        (kind != OPKIND_MAP && n->n_labels - n->rank > SUMMED)) {
        return;
    }
    if (kind == OPKIND_MAP) {
        Reading reading = {.n_labels = (int32_t)n->n_labels};
        read_expression(f, whole_view(f, r), true, &reading.of);
        try_reading(f, r, &reading);
        return;
    }
    uint32_t products = kind == OPKIND_CONTRACT ? inner_products(f->g, n) : 0;
    for (uint32_t inside = 0; inside <= EVERYTHING; inside++) {
        Reading reading = {0};
        if ((inside & ~products) != 0 && inside != EVERYTHING) {
            continue;
        }
        read_factors(f, n, inside, &reading);
        bool more = inside != EVERYTHING || reading.products > 0;
        if (more && reading.n_labels - (int32_t)n->rank <= SUMMED &&
            reading.of.list.n <= READS) {
            try_reading(f, r, &reading);
        }
    }
}

/* Expressions that are looked into: of EXPRESSION operations at most, each counted as often as it is reached. */
static uint8_t *find_small(Arena *arena, const Graph *g)
{
    uint8_t *size = ARENA_ARRAY(arena, g->nodes.n, uint8_t);
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        const Node *n = graph_node(g, r);
        uint32_t sum = op_info(n->op)->kind == OPKIND_MAP ? 1 : 0;
        bool fits = sum > 0;
        for (uint32_t k = 0; fits && k < n->n_operands; k++) {
            bool leaf = op_info(graph_node(g, n->operand[k])->op)->kind != OPKIND_MAP;
            fits = leaf || size[n->operand[k]] > 0;
            sum += size[n->operand[k]];
        }
        size[r] = fits && sum <= EXPRESSION ? (uint8_t)sum : 0;
    }
    return size;
}

void opt_symmetry(Ctx *ctx, Graph *g, bool look)
{
    Arena keep, scratch;
    arena_init(&keep, &ctx->budget);
    arena_init(&scratch, &ctx->budget);
    Finder f = {.g = g,
                .arena = &scratch,
                .small = find_small(&keep, g),
                .declared = ARENA_ARRAY(&keep, g->nodes.n, const Symmetry *)};
    for (uint32_t k = g->results.n; k-- > 0;) {
        const Symmetry *declared = g->results.at[k].symmetry;
        f.declared[g->results.at[k].node] =
            declared == NULL ? f.declared[g->results.at[k].node] : declared;
    }
    for (NodeRef r = 0; r < g->nodes.n; r++) {
        ArenaMark mark = arena_mark(&scratch);
        if (graph_node(g, r)->op != OP_INPUT) { /* those are promised */
            g->nodes.at[r].n_generators = g->nodes.at[r].n_exchanges = 0;
        }
        if (look) {
            find_generators(&f, r);
        }
        arena_reset(&scratch, mark);
    }
    arena_release(&scratch);
    arena_release(&keep);
}
