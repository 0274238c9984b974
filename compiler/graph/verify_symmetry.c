/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value has the symmetry that it is said to have: it is computed at two places, one the image of the other, in
 * the integers modulo a prime and their complex numbers, where sums and products are exact in any order. Labels are at random places, summed
 * ones run over two of them; parameters, and other values that are not looked into, are random functions of their
 * places that have the symmetry said of them. Two places give equal numbers by chance once in 2^60. Nothing here is shared
 * with what finds symmetry. */
#include "graph/verify_symmetry.h"

#include <string.h>

#define PRIME UINT64_C(2147483647) /* 3 of 4: -1 has no square root, so all but 0 divides */
/* Expressions up to this many operations are computed, larger ones are values as they are. */
#define EXPRESSION 64
#define STEPS      (1u << 18)
/* Places of a value that its symmetry makes one. */
#define GROUP SYMMETRY_LIMIT

typedef struct Sampler {
    const Graph *g;
    Arena *arena;
    uint64_t seed;
    NodeRef root;
    const uint32_t *size; /* [nodes] of expressions, else 0 */
    NodeRef inside[2];    /* contractions that are computed, beside the root */
    bool everything;      /* and all products of products, through conjugates */
    uint32_t steps;
    bool failed; /* out of steps */
} Sampler;

typedef struct Value {
    uint64_t re, im;
} Value;

static uint64_t power(uint64_t x, uint64_t e)
{
    uint64_t y = 1;
    for (; e > 0; e >>= 1) {
        y = (e & 1) != 0 ? y * x % PRIME : y;
        x = x * x % PRIME;
    }
    return y;
}

static uint64_t negated(uint64_t x)
{
    return (PRIME - x) % PRIME;
}

static Value plus(Value x, Value y)
{
    return (Value){(x.re + y.re) % PRIME, (x.im + y.im) % PRIME};
}

static Value times(Value x, Value y)
{
    return (Value){(x.re * y.re % PRIME + negated(x.im * y.im % PRIME)) % PRIME,
                   (x.re * y.im % PRIME + x.im * y.re % PRIME) % PRIME};
}

static Value conjugate(Value x)
{
    return (Value){x.re, negated(x.im)};
}

static Value minus(Value x)
{
    return (Value){negated(x.re), negated(x.im)};
}

static uint64_t norm(Value x)
{
    return times(x, conjugate(x)).re;
}

static Value inverse(Value x)
{
    return times(conjugate(x), (Value){power(norm(x), PRIME - 2), 0});
}

static uint64_t hashed(const Sampler *s, uint64_t what, uint64_t x)
{
    return hash_mix(hash_mix(s->seed, what), x) % PRIME;
}

/* ---- values as they are ---- */

static uint64_t place_hash(const Sampler *s, NodeRef r, const uint64_t *at)
{
    uint64_t h = hash_mix(s->seed, r);
    for (uint32_t d = 0; d < graph_node(s->g, r)->rank; d++) {
        h = hash_mix(h, at[d]);
    }
    return h;
}

/* One number for all places that the generators make one, up to its sign and conjugation. */
static Value sample_opaque(Sampler *s, NodeRef r, const uint64_t *at)
{
    const Node *n = graph_node(s->g, r);
    ArenaMark mark = arena_mark(s->arena);
    uint64_t *place[GROUP + 1], least = 0;
    Generator by[GROUP + 1], best = {NULL, 1, false};
    uint32_t count = 1;
    bool no_re = false, no_im = !dtype_is_complex(n->dtype);
    place[0] = arena_copy(s->arena, at, n->rank * sizeof *at);
    by[0] = best;
    for (uint32_t k = 0; k < count; k++) {
        uint64_t h = place_hash(s, r, place[k]);
        best = k == 0 || h < least ? by[k] : best;
        least = k == 0 || h < least ? h : least;
        for (uint32_t i = 0; i < n->n_generators && count <= GROUP; i++) {
            uint32_t known = 0;
            place[count] = ARENA_ARRAY(s->arena, n->rank, uint64_t);
            for (uint32_t d = 0; d < n->rank; d++) {
                place[count][d] = place[k][n->generator[i].to[d]];
            }
            while (memcmp(place[known], place[count], n->rank * sizeof *at) != 0) {
                known++;
            }
            Generator of = {NULL, by[k].sign * n->generator[i].sign,
                            by[k].conj != n->generator[i].conj};
            bool sign = known < count && by[known].sign != of.sign;
            bool conj = known < count && by[known].conj != of.conj;
            no_re = no_re || sign;
            no_im = no_im || sign != conj;
            by[count] = known == count ? of : by[count];
            count += known == count ? 1 : 0;
        }
    }
    arena_reset(s->arena, mark);
    Value v = {no_re ? 0 : least % PRIME, no_im ? 0 : hash_mix(least, 1) % PRIME};
    v = best.conj ? conjugate(v) : v;
    return best.sign < 0 ? minus(v) : v;
}

/* ---- values by what they compute ---- */

/* `factor`: of a product that is computed. */
static Value sample(Sampler *s, NodeRef r, const uint64_t *at, bool factor);

static Value sample_operand(Sampler *s, const Node *n, uint32_t k, const uint64_t *label,
                            bool factor)
{
    uint64_t at[RANK_LIMIT];
    const Access *a = &n->access[k];
    for (uint32_t d = 0; d < a->rank; d++) {
        at[d] = a->index[d].label < 0 ? hash_mix(1, (uint64_t)a->index[d].offset)
                                      : label[a->index[d].label];
    }
    return sample(s, n->operand[k], at, factor);
}

/* A function whose parity is that of the operation, and which is real where it has to be. */
static Value sample_function(const Sampler *s, const Node *n, const Value *x)
{
    uint64_t h = hash_mix((uint64_t)n->op, (uint64_t)n->dtype);
    Value odd = {1, 0};
    OpSign parity = dtype_is_float(n->dtype) ? op_info(n->op)->sign : SIGN_NONE;
    bool commutes = n->op == OP_MIN || n->op == OP_MAX || n->op == OP_EQ || n->op == OP_NE ||
                    n->op == OP_AND || n->op == OP_OR;
    if (n->op == OP_SELECT) {
        Value first = {hashed(s, h, x[0].re), 0}, second = {hashed(s, h + 1, x[0].re), 0};
        return plus(times(first, x[1]), times(second, x[2]));
    }
    if (n->op == OP_CONJ) {
        return conjugate(x[0]);
    }
    if (n->op == OP_RE) {
        return (Value){x[0].re, 0};
    }
    if (dtype_is_complex(n->dtype) && (n->op == OP_CAST || n->op == OP_COPY)) {
        return times((Value){hashed(s, h, 0), 0}, x[0]);
    }
    if (commutes) {
        return (Value){(hashed(s, hashed(s, h, x[0].re), x[0].im) +
                        hashed(s, hashed(s, h, x[1].re), x[1].im)) %
                           PRIME,
                       0};
    }
    for (uint32_t k = 0; k < n->n_operands; k++) {
        if (parity == SIGN_NONE) {
            h = hash_mix(hash_mix(h, x[k].re), x[k].im);
        } else {
            h = hash_mix(h, norm(x[k]));
        }
        odd = parity == SIGN_ODD ? times(odd, x[k]) : odd;
    }
    return times((Value){hashed(s, h, 0), dtype_is_complex(n->dtype) ? hashed(s, h, 1) : 0},
                 odd);
}

static Value sample_map(Sampler *s, const Node *n, const uint64_t *label, bool factor)
{
    Value x[3] = {{0}};
    for (uint32_t k = 0; k < n->n_operands && k < 3; k++) {
        x[k] = sample_operand(s, n, k, label, factor && n->op == OP_CONJ);
    }
    switch (n->op) {
    case OP_ADD:
        return plus(x[0], x[1]);
    case OP_SUB:
        return plus(x[0], minus(x[1]));
    case OP_NEG:
        return minus(x[0]);
    case OP_MUL:
        return times(x[0], x[1]);
    case OP_DIV:
        return dtype_is_int(n->dtype) ? sample_function(s, n, x) : times(x[0], inverse(x[1]));
    default:
        return sample_function(s, n, x);
    }
}

static Value sample_terms(Sampler *s, const Node *n, const uint64_t *label)
{
    Value product = {1, 0};
    for (uint32_t k = 0; k < node_factors(n); k++) {
        product = times(product, sample_operand(s, n, k, label, true));
    }
    bool folds = op_info(n->op)->kind == OPKIND_REDUCE && n->op != OP_SUM;
    return folds ? (Value){hashed(s, hashed(s, (uint64_t)n->op, product.re), product.im), 0}
                 : product;
}

/* The sum over two places of each label that the result lacks. */
static Value sample_sum(Sampler *s, const Node *n, uint64_t *label)
{
    uint32_t summed[32], n_summed = 0;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        if (node_reduces(n, (int32_t)l)) {
            if (n_summed == 16) {
                s->failed = true;
                return (Value){0, 0};
            }
            summed[n_summed++] = l;
        }
    }
    Value sum = {0, 0};
    for (uint32_t bits = 0; bits < 1u << n_summed && !s->failed; bits++) {
        for (uint32_t k = 0; k < n_summed; k++) {
            label[summed[k]] = hash_mix(2, bits >> k & 1);
        }
        sum = plus(sum, sample_terms(s, n, label));
    }
    return n->onto ? plus(sum, sample_operand(s, n, node_factors(n), label, false)) : sum;
}

static Value sample(Sampler *s, NodeRef r, const uint64_t *at, bool factor)
{
    const Node *n = graph_node(s->g, r);
    OpKind kind = op_info(n->op)->kind;
    if (s->failed || s->steps == 0) {
        s->failed = true;
        return (Value){0, 0};
    }
    s->steps--;
    bool map = kind == OPKIND_MAP && (s->size[r] > 0 || r == s->root);
    bool product = s->everything && factor && n->op == OP_EINSUM && !n->onto &&
                   n->dtype == graph_node(s->g, s->root)->dtype;
    bool sum = r == s->root || product ||
               (kind == OPKIND_CONTRACT && (r == s->inside[0] || r == s->inside[1]));
    if (!map && (!sum || kind == OPKIND_MAP)) {
        return sample_opaque(s, r, at);
    }
    ArenaMark mark = arena_mark(s->arena);
    uint64_t *label = ARENA_ARRAY(s->arena, n->n_labels, uint64_t);
    for (uint32_t d = 0; d < n->rank; d++) {
        label[n->out[d]] = at[d];
    }
    Value v = map ? sample_map(s, n, label, factor) : sample_sum(s, n, label);
    arena_reset(s->arena, mark);
    return v;
}

/* ---- claims ---- */

/* The value at a random place and at its image are equal up to the sign and conjugation. */
static bool holds(Sampler *s, const Generator *generator)
{
    const Node *n = graph_node(s->g, s->root);
    uint64_t at[RANK_LIMIT], image[RANK_LIMIT];
    s->steps = STEPS;
    s->failed = false;
    for (uint32_t d = 0; d < n->rank; d++) {
        at[d] = hash_mix(3, d);
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        image[d] = at[generator->to[d]];
    }
    Value x = sample(s, s->root, at, false), y = sample(s, s->root, image, false);
    y = generator->conj ? conjugate(y) : y;
    y = generator->sign < 0 ? minus(y) : y;
    return !s->failed && x.re == y.re && x.im == y.im;
}

/* The same for one term of a sum, at random places of all labels. */
static bool terms_hold(Sampler *s, const Generator *exchange)
{
    const Node *n = graph_node(s->g, s->root);
    uint64_t *at = ARENA_ARRAY(s->arena, n->n_labels, uint64_t);
    uint64_t *image = ARENA_ARRAY(s->arena, n->n_labels, uint64_t);
    s->steps = STEPS;
    s->failed = false;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        at[l] = hash_mix(3, l);
    }
    for (uint32_t l = 0; l < n->n_labels; l++) {
        image[l] = at[exchange->to[l]];
    }
    Value x = sample_terms(s, n, at), y = sample_terms(s, n, image);
    return !s->failed && x.re == y.re && x.im == y.im;
}

static bool is_exchange(const Generator *generator, uint32_t n, const Dim *extent)
{
    bool moves = false, ok = generator->sign == 1 || generator->sign == -1;
    for (uint32_t d = 0; d < n && ok; d++) {
        uint32_t to = generator->to[d];
        ok = to < n && generator->to[to] == d && dim_eq(extent[d], extent[to]);
        moves = moves || to != d;
    }
    return ok && moves;
}

/* Operations of the expression that a node is, 0 when it is none or a larger one. */
static uint32_t expression_size(const Graph *g, const Node *n, const uint32_t *size)
{
    uint32_t sum = 1;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        bool map = op_info(graph_node(g, n->operand[k])->op)->kind == OPKIND_MAP;
        if (map && size[n->operand[k]] == 0) {
            return 0;
        }
        sum += map ? size[n->operand[k]] : 0;
    }
    return op_info(n->op)->kind == OPKIND_MAP && sum <= EXPRESSION ? sum : 0;
}

/* Is the claim true when these operands are looked into, or all products of products? Twice, with other random numbers. */
#define EVERYTHING 4

static bool holds_with(Sampler *s, const Generator *generator, uint32_t operands)
{
    const Node *n = graph_node(s->g, s->root);
    for (uint32_t k = 0; k < 2; k++) {
        bool is = (operands >> k & 1) != 0 && k < n->n_operands;
        s->inside[k] = is ? n->operand[k] : NODE_NONE;
    }
    s->everything = operands == EVERYTHING;
    s->seed = 1;
    bool ok = holds(s, generator);
    s->seed = 2;
    return ok && holds(s, generator);
}

static const char *node_problem(Sampler *s, const Node *n)
{
    uint32_t most = op_info(n->op)->kind == OPKIND_CONTRACT ? EVERYTHING + 1 : 1;
    for (uint32_t k = 0; k < n->n_generators; k++) {
        if (n->rank > RANK_LIMIT || !is_exchange(&n->generator[k], n->rank, n->shape) ||
            (n->generator[k].conj && !dtype_is_complex(n->dtype))) {
            return "its symmetry exchanges no dimensions of equal extents";
        }
        bool true_of_it = false;
        for (uint32_t operands = 0; operands < most && !true_of_it; operands++) {
            true_of_it = holds_with(s, &n->generator[k], operands);
        }
        if (!true_of_it) {
            return "it does not have the symmetry that is said of it";
        }
    }
    return NULL;
}

static const char *terms_problem(Sampler *s, const Node *n)
{
    for (uint32_t k = 0; k < n->n_exchanges; k++) {
        const Generator *exchange = &n->exchange[k];
        bool ok = node_sums_reals(n) && exchange->sign == 1 && !exchange->conj &&
                  is_exchange(exchange, n->n_labels, n->extent);
        for (uint32_t d = 0; ok && d < n->rank; d++) {
            ok = exchange->to[n->out[d]] == (uint32_t)n->out[d];
        }
        if (!ok) {
            return "its terms have no exchange of summed indices of equal extents";
        }
        for (s->seed = 1; s->seed <= 2; s->seed++) {
            if (!terms_hold(s, exchange)) {
                return "its terms do not have the symmetry that is said of them";
            }
        }
    }
    return NULL;
}

const char *graph_symmetry_problem(Arena *scratch, const Graph *g, NodeRef *at)
{
    uint32_t *size = ARENA_ARRAY(scratch, g->nodes.n, uint32_t);
    const char *problem = NULL;
    for (NodeRef r = 0; r < g->nodes.n && problem == NULL; r++) {
        const Node *n = graph_node(g, r);
        Sampler s = {.g = g,
                     .arena = scratch,
                     .root = r,
                     .size = size,
                     .inside = {NODE_NONE, NODE_NONE}};
        size[r] = expression_size(g, n, size);
        *at = r;
        ArenaMark mark = arena_mark(scratch);
        problem = n->op == OP_INPUT ? NULL : node_problem(&s, n);
        problem = problem == NULL ? terms_problem(&s, n) : problem;
        arena_reset(scratch, mark);
    }
    return problem;
}
