/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that factor matrices. A cholesky notes which matrix was not positive definite (dense.c), callers are told (docs/using.md,
 * TDSL_E_DEFINITE), and what they gave is as it was: an argument that is changed has a copy, which the statements change.
 *
 *     alloc @indefinite : i64[1] workspace indefinite
 *     map [] @indefinite[0] = none
 *     alloc @A1 : f64[n,n] workspace
 *     map [i, j] @A1[i,j] = @A[i,j]
 *     ...                                                 all of the kernel, with @A1 for the new values of @A
 *     map [i, j] @A[i,j] = select(@indefinite[0] == none, @A1[i,j], @A[i,j])
 *
 * Results are not kept back: copies would take up to all of the time again, for bytes that nobody needs. They hold NaN, as LAPACK's do. */
#include "graph/recurrence.h"
#include "lower/build.h"

static bool factors(const Graph *g)
{
    bool any = false;
    for (NodeRef n = 0; n < g->nodes.n && !any; n++) {
        any = graph_node(g, n)->op == OP_CHOLESKY;
    }
    for (uint32_t k = 0; k < g->recurrences.n && !any; k++) {
        any = factors(g->recurrences.at[k]->body);
    }
    return any;
}

BufRef build_indefinite_buffer(Builder *b)
{
    const Dim one = dim_fixed(1);
    if (!factors(b->g)) {
        return BUF_NONE;
    }
    BufRef made =
        kernel_buffer(b->k, &b->ctx->syms, "indefinite", DTYPE_I64, SPACE_WORKSPACE, 1, &one);
    b->k->bufs.at[made].indefinite = true;
    b->k->bufs.at[made].span = b->g->span;
    return made;
}

const Affine *build_indefinite_at(Builder *b)
{
    const Affine first = affine_const(0);
    return arena_copy(b->arena, &first, sizeof first);
}

const Expr *build_indefinite_none(Builder *b)
{
    return expr_const(b->arena, number_int(DTYPE_I64, INDEFINITE_NONE));
}

static void none_so_far(Builder *b, Block *to)
{
    Stmt *s = build_stmt(b, STMT_TILE, b->g->span, NULL);
    build_alloc(b, to, b->indefinite);
    s->dst = b->indefinite;
    s->at = build_indefinite_at(b);
    s->value = build_indefinite_none(b);
    vec_push(b->arena, &to->list, s);
}

/* @to[..] = value(from[..]) over all elements of an argument and its copy. */
static Stmt *copy(Builder *b, Block *body, const Result *result, BufRef from, BufRef to)
{
    const Buffer like = b->k->bufs.at[to];
    Stmt *s = build_stmt(b, STMT_TILE, result->span, result->name);
    TileIndex *index = ARENA_ARRAY(b->arena, like.rank, TileIndex);
    Affine *at = ARENA_ARRAY(b->arena, like.rank, Affine);
    for (uint32_t d = 0; d < like.rank; d++) {
        Position p = build_dimension_position(b, result->node, d);
        index[d] = (TileIndex){.var = p.var, .range = p.range};
        at[d] = p.at;
    }
    s->n_index = like.rank;
    s->index = index;
    s->dst = to;
    s->at = at;
    s->value = expr_load(b->arena, b->k, from, at);
    vec_push(b->arena, &body->list, s);
    return s;
}

/* The argument that the result is the new value of; BUF_NONE: it is none. */
static BufRef argument_of(const Builder *b, uint32_t result)
{
    int32_t param = b->g->results.at[result].param;
    return param < 0 ? BUF_NONE : b->param[param];
}

void build_definite_begin(Builder *b, Block *to)
{
    none_so_far(b, to);
    for (uint32_t r = 0; r < b->g->results.n; r++) {
        BufRef argument = argument_of(b, r);
        if (argument != BUF_NONE) {
            build_alloc(b, to, b->result[r]);
            (void)copy(b, to, &b->g->results.at[r], argument, b->result[r]);
        }
    }
}

void build_definite_end(Builder *b, Block *to)
{
    for (uint32_t r = 0; r < b->g->results.n; r++) {
        BufRef argument = argument_of(b, r);
        if (argument == BUF_NONE) {
            continue;
        }
        Stmt *s = copy(b, to, &b->g->results.at[r], b->result[r], argument);
        const Expr *both[2] = {expr_load(b->arena, b->k, b->indefinite, build_indefinite_at(b)),
                               build_indefinite_none(b)};
        const Expr *all[3] = {expr_op(b->arena, OP_EQ, DTYPE_BOOL, 2, both), s->value,
                              expr_load(b->arena, b->k, argument, s->at)};
        s->value = expr_op(b->arena, OP_SELECT, s->value->dtype, 3, all);
    }
}
