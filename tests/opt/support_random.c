/* SPDX-License-Identifier: Apache-2.0 */
#include "support_random.h"

/* An operand with random indices, of `*n_labels` labels so far; at most four. */
static Access random_access(Bench *b, uint32_t rank, Rng *rng, uint32_t *n_labels)
{
    Index *index = ARENA_ARRAY(&b->ctx.arena, rank, Index);
    for (uint32_t d = 0; d < rank; d++) {
        bool fresh = *n_labels < 4 && (*n_labels == 0 || rng_below(rng, 3) == 0);
        int32_t label = fresh ? (int32_t)*n_labels : (int32_t)rng_below(rng, *n_labels);
        index[d] = (Index){.label = label};
        *n_labels += fresh;
        if (rng_below(rng, 12) == 0 && !fresh) {
            index[d] = (Index){-1, (int64_t)rng_below(rng, 2)};
        }
    }
    return (Access){rank, index};
}

/* All labels, or some of them, in a random order; the rank. */
static uint32_t random_out(Rng *rng, uint32_t n_labels, bool all, int32_t *out)
{
    uint32_t rank = 0;
    for (uint32_t l = 0; l < n_labels; l++) {
        if (all || (rng_below(rng, 2) == 0 && rank < 3)) {
            uint32_t other = (uint32_t)rng_below(rng, rank + 1);
            out[rank] = (int32_t)l;
            int32_t swap = out[other];
            out[other] = out[rank];
            out[rank++] = swap;
        }
    }
    return rank;
}

typedef enum RandomKind { KIND_UNARY, KIND_BINARY, KIND_EINSUM, KIND_REDUCE } RandomKind;

static Op random_op(Rng *rng, RandomKind kind)
{
    static const Op unary[] = {OP_COPY, OP_NEG, OP_ABS,  OP_RELU,
                               OP_CONJ, OP_RE,  OP_COPY, OP_COPY};
    static const Op binary[] = {OP_ADD, OP_SUB, OP_MUL, OP_MIN, OP_MAX, OP_SCALE};
    static const Op reduce[] = {OP_SUM, OP_RMAX, OP_RMIN};
    return kind == KIND_UNARY    ? unary[rng_below(rng, 8)]
           : kind == KIND_BINARY ? binary[rng_below(rng, 6)]
           : kind == KIND_EINSUM ? OP_EINSUM
                                 : reduce[rng_below(rng, 3)];
}

/* One more node over the first n; none when its rank would be above 3. All extents are 2. */
static void random_node(Bench *b, Graph *g, Rng *rng, uint32_t n)
{
    RandomKind kind = (RandomKind)rng_below(rng, 4);
    NodeRef operand[3];
    Access access[3];
    int32_t out[5];
    uint32_t n_operands = kind == KIND_BINARY   ? 2
                          : kind == KIND_EINSUM ? 1 + (uint32_t)rng_below(rng, 3)
                                                : 1;
    uint32_t n_labels = 0;
    for (uint32_t k = 0; k < n_operands; k++) {
        operand[k] = (NodeRef)rng_below(rng, n);
        access[k] = random_access(b, graph_node(g, operand[k])->rank, rng, &n_labels);
    }
    uint32_t rank = random_out(rng, n_labels, kind < KIND_EINSUM, out);
    if (rank > 3) {
        return;
    }
    Dim shape[4] = {dim_fixed(2), dim_fixed(2), dim_fixed(2), dim_fixed(2)};
    if (kind == KIND_UNARY && rank < 3 && rng_below(rng, 3) == 0) {
        out[rank++] = 7; /* a broadcast */
    }
    NodeSpec s = {.op = random_op(rng, kind),
                  .dtype = g->params.at[0].dtype,
                  .n_operands = n_operands,
                  .operand = operand,
                  .access = access,
                  .rank = rank,
                  .out = out,
                  .out_shape = shape};
    graph_add(g, &s);
}

Graph *random_graph(Bench *b, Rng *rng, DType t)
{
    Graph *g = graph_new(&b->ctx.arena, sym_cstr(&b->ctx.syms, "k"));
    for (uint32_t p = 0; p < 3; p++) {
        Dim *shape = ARENA_ARRAY(&b->ctx.arena, 3, Dim);
        for (uint32_t d = 0; d < p; d++) {
            shape[d] = dim_fixed(2);
        }
        Param param = {.name = sym_cstr(&b->ctx.syms, p == 0   ? "A"
                                                      : p == 1 ? "B"
                                                               : "C"),
                       .role = PARAM_IN,
                       .dtype = t,
                       .rank = p,
                       .shape = shape};
        vec_push(g->arena, &g->params, param);
        graph_input(g, p, (Span){0, 0, 0});
    }
    graph_const(g, number_int(t, 1), (Span){0, 0, 0});
    graph_const(g, number_int(t, 0), (Span){0, 0, 0});
    for (int k = 0; k < 8; k++) {
        random_node(b, g, rng, g->nodes.n);
    }
    return g;
}
