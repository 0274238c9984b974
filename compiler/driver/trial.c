/* SPDX-License-Identifier: Apache-2.0 */
/* See trial.h. */
#include "driver/trial.h"

#include <math.h>
#include <string.h>

/* Is every value an integer, of a program that is run on integers? */
static bool is_whole(const Graph *g)
{
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        OpRule rule = op_info(node->op)->rule;
        bool real = !dtype_is_exact(node->dtype);
        if (rule == RULE_FLOAT || rule == RULE_RFLOAT || (real && node->op == OP_DIV)) {
            return false;
        }
        if (node->op == OP_CONST && real && node->value.re != floor(node->value.re)) {
            return false;
        }
    }
    return true;
}

/* Integers up to here are exact; those of integer types wrap around alike in every order. */
static double exact_limit(const Trial *k, DType t)
{
    t = k->doubles ? t : dtype_narrower(t);
    return dtype_is_exact(t) ? INFINITY : 2 / dtype_epsilon(t);
}

/* How many elements of its operands an element of a node is made of. */
static double terms_of(const Node *node, const int64_t *dims)
{
    double count = 1;
    for (uint32_t l = 0; l < node->n_labels; l++) {
        bool kept = false;
        for (uint32_t d = 0; d < node->rank; d++) {
            kept |= node->out[d] == (int32_t)l;
        }
        Dim extent = node->extent[l];
        int64_t n = extent.sym < 0 ? extent.n : dims[extent.sym];
        count *= kept || n == 0 ? 1 : (double)n;
    }
    return count;
}

/* No value of a node is larger, when those of its operands are as `of` says. */
static double node_magnitude(const Node *node, const int64_t *dims, const double *of,
                             int64_t most)
{
    bool whole = dtype_is_exact(node->dtype);
    double sum = 0, product = 1, largest = 0, terms = terms_of(node, dims);
    for (uint32_t k = 0; k < node->n_operands; k++) {
        double m = of[node->operand[k]];
        sum += m;
        product *= k > 0 && dtype_is_complex(node->dtype) ? 2 * m : m;
        largest = m > largest ? m : largest;
    }
    switch ((int)node->op) {
    case OP_INPUT:
        return (double)most;
    case OP_CONST:
        return whole ? fabs((double)node->value.i)
                     : fabs(node->value.re) + fabs(node->value.im);
    case OP_EXTENT:
        return (double)dims[node->dim];
    case OP_EINSUM:
        return product * terms;
    case OP_MUL:
    case OP_SCALE:
        return product;
    case OP_ADD:
    case OP_SUB:
        return sum;
    case OP_SUM:
        return sum * terms;
    case OP_PROD:
        return pow(sum > 1 ? sum : 1, terms);
    case OP_COPY:
    case OP_CAST:
    case OP_NEG:
    case OP_ABS:
    case OP_RELU:
    case OP_CONJ:
    case OP_RE:
    case OP_IM:
    case OP_DIV: /* of whole numbers: of others nothing is exact */
    case OP_MIN:
    case OP_MAX:
    case OP_SELECT:
    case OP_WHERE:
    case OP_RMIN:
    case OP_RMAX:
    case OP_ANY:
    case OP_ALL:
        return node->dtype == DTYPE_BOOL ? 1 : largest;
    default:
        return node->dtype == DTYPE_BOOL ? 1 : INFINITY;
    }
}

/* A truth value or an integer made of floats: it jumps where they differ by a rounding. */
static bool jumps(const Graph *g, const Node *node)
{
    bool real = false;
    for (uint32_t k = 0; k < node->n_operands; k++) {
        DType t = graph_node(g, node->operand[k])->dtype;
        real |= !dtype_is_exact(t);
    }
    return real && (dtype_is_exact(node->dtype));
}

/* Is all exact with arguments up to k->most? */
static bool is_exact(Arena *arena, const Graph *g, Trial *k)
{
    bool exact = true;
    double *of = ARENA_ARRAY(arena, g->nodes.n, double);
    k->terms = 0;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        of[n] = node_magnitude(graph_node(g, n), k->dims, of, k->most);
        k->terms += terms_of(graph_node(g, n), k->dims);
        exact &= of[n] <= exact_limit(k, graph_node(g, n)->dtype);
    }
    for (uint32_t r = 0; r < g->results.n; r++) {
        double m = of[g->results.at[r].node];
        k->scale[r] = isfinite(m) && m > 1 ? m : 1;
    }
    return exact;
}

void trial_choose(Arena *arena, const Graph *g, const int64_t *dims, bool doubles, Trial *k)
{
    *k = (Trial){.dims = dims, .doubles = doubles};
    bool whole = is_whole(g), jump = false;
    k->scale = ARENA_ARRAY(arena, g->results.n, double);
    for (k->most = 4; whole && k->most > 0; k->most /= 2) {
        k->exact = is_exact(arena, g, k);
        if (k->exact) {
            return;
        }
    }
    k->most = 4;
    (void)is_exact(arena, g, k);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        jump |= jumps(g, graph_node(g, n));
    }
    k->unknown = whole && jump;
}

static Tensor *make_argument(Ctx *ctx, Arena *arena, const Param *p, const int64_t *dims,
                             uint32_t at, int64_t most)
{
    int64_t *extent = ARENA_ARRAY(arena, p->rank, int64_t);
    for (uint32_t d = 0; d < p->rank; d++) {
        extent[d] = p->shape[d].sym < 0 ? p->shape[d].n : dims[p->shape[d].sym];
    }
    Tensor *t = tensor_new(ctx, arena, p->dtype, p->rank, extent);
    Rng rng = {hash_mix(1, at)};
    for (int64_t k = 0; t != NULL && k < t->count; k++) {
        /* no zeros, which hide faults */
        int64_t v = most > 1 ? (int64_t)rng_below(&rng, (uint64_t)most) + 1
                             : 2 * (int64_t)rng_below(&rng, 2) - 1;
        bool whole = dtype_is_exact(p->dtype);
        tensor_set(t, k,
                   whole ? number_int(p->dtype,
                                      p->dtype == DTYPE_BOOL ? (most > 1 ? v & 1 : v > 0) : v)
                         : number_real(p->dtype, (double)v));
    }
    if (t != NULL) {
        tensor_make_symmetric(arena, t, p->symmetry);
    }
    return t;
}

bool trial_arguments(Ctx *ctx, Arena *arena, const Graph *g, const Trial *k, Tensor **args)
{
    for (uint32_t p = 0; p < g->params.n; p++) {
        args[p] = make_argument(ctx, arena, &g->params.at[p], k->dims, p, k->most);
        if (args[p] == NULL) {
            return false;
        }
    }
    return true;
}

static bool is_close(const Trial *k, DType t, Number a, Number b, double scale)
{
    if (dtype_is_exact(t)) {
        return a.i == b.i;
    }
    if (k->exact) {
        return (a.re == b.re || (isnan(a.re) && isnan(b.re))) &&
               (a.im == b.im || (isnan(a.im) && isnan(b.im)));
    }
    t = k->doubles ? t : dtype_narrower(t);
    /* One rounding for each term of a sum at most, and a few for everything else. */
    double bound = (4096 + k->terms) * dtype_epsilon(t) * scale;
    bool same_kind = isfinite(a.re) == isfinite(b.re) && isfinite(a.im) == isfinite(b.im);
    return same_kind && (!isfinite(a.re) || (fabs(a.re - b.re) <= bound)) &&
           (!isfinite(a.im) || fabs(a.im - b.im) <= bound);
}

int64_t trial_difference(const Trial *k, uint32_t result, const Tensor *a, const Tensor *b)
{
    double scale = k->scale[result];
    if (memcmp(a->data, b->data, (size_t)(a->count * dtype_bytes(a->dtype))) == 0) {
        return -1;
    }
    for (int64_t i = 0; i < a->count; i++) {
        Number v = tensor_get(a, i);
        double size = isfinite(v.re) ? fabs(v.re) : 0;
        scale = size > scale ? size : scale;
    }
    for (int64_t i = 0; i < a->count; i++) {
        if (!is_close(k, a->dtype, tensor_get(a, i), tensor_get(b, i), scale)) {
            return i;
        }
    }
    return -1;
}
