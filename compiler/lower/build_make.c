/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of a kernel that is built, and buffers of its values: what all files that build statements make them of. */
#include "lower/build.h"

/* The loop that cuts dimension `d` of the node's block at `alloc_loop`, or NEST_NONE. */
static uint32_t cutting_loop(const Builder *b, NodeRef node, uint32_t alloc_loop, uint32_t d)
{
    return nest_loop_of(b->nest, alloc_loop, node, graph_node(b->g, node)->out[d]);
}

const Affine *build_block_at(Builder *b, Place place, NodeRef node, const Affine *whole)
{
    const Buffer *buffer = &b->k->bufs.at[place.buf];
    Affine *at = ARENA_ARRAY(b->arena, buffer->rank, Affine);
    uint32_t out = 0;
    for (uint32_t d = 0; d < graph_node(b->g, node)->rank; d++) {
        uint32_t loop = buffer->space == SPACE_TILE ? cutting_loop(b, node, place.alloc_loop, d)
                                                    : NEST_NONE;
        if (loop != NEST_NONE && nest_loop_span(b->nest, loop, node) == 1) {
            continue;
        }
        at[out++] = loop == NEST_NONE
                        ? whole[d]
                        : affine_add(b->arena, whole[d], -1, build_start(b, node, loop));
    }
    CHECK(out == buffer->rank);
    return at;
}

/* Indices of the buffer at `place`, which holds the value of `node`, read or written at
 * `access`. */
const Affine *build_at(Builder *b, Place place, NodeRef node, Access access,
                       const Position *pos)
{
    Affine *whole = ARENA_ARRAY(b->arena, access.rank, Affine);
    for (uint32_t d = 0; d < access.rank; d++) {
        Index index = access.index[d];
        whole[d] = affine_const(index.offset);
        if (index.label >= 0) {
            whole[d] = affine_add(b->arena, whole[d], 1, pos[index.label].at);
        }
    }
    return build_block_at(b, place, node, whole);
}

Op build_fold(const Node *n)
{
    if (op_info(n->op)->kind == OPKIND_CONTRACT) {
        return n->acc == DTYPE_BOOL ? OP_ANY : OP_SUM;
    }
    return n->op;
}

Stmt *build_stmt(Builder *b, StmtKind kind, Span span, Sym name)
{
    Stmt *s = ARENA_NEW(b->arena, Stmt);
    s->kind = kind;
    s->span = span;
    s->name = name;
    s->fold = OP_COPY;
    return s;
}

void build_alloc(Builder *b, Block *to, BufRef buf)
{
    Stmt *s = build_stmt(b, STMT_ALLOC, b->k->bufs.at[buf].span, NULL);
    s->buf = buf;
    vec_push(b->arena, &to->list, s);
}

/* A tile statement over the labels of `n` (those of its output only, unless `all`). */
Stmt *build_tile(Builder *b, Block *to, const Node *n, const Position *pos, bool all)
{
    Stmt *s = build_stmt(b, STMT_TILE, n->span, n->name);
    TileIndex *index = ARENA_ARRAY(b->arena, n->n_labels, TileIndex);
    for (uint32_t pass = 0; pass < 2; pass++) {
        /* output labels in output order, then the reduced ones */
        uint32_t count = pass == 0 ? n->rank : all ? n->n_labels : 0;
        for (uint32_t i = 0; i < count; i++) {
            int32_t l = pass == 0 ? n->out[i] : (int32_t)i;
            if (pos[l].local && (pass == 0 || node_reduces(n, l))) {
                index[s->n_index++] =
                    (TileIndex){.var = pos[l].var, .range = pos[l].range, .mode = MODE_LOOP};
            }
        }
    }
    s->index = index;
    vec_push(b->arena, &to->list, s);
    return s;
}

void build_dst(Builder *b, Stmt *s, NodeRef node, Place place, const Position *pos)
{
    s->dst = place.buf;
    s->at = build_at(b, place, node, node_own_access(b->arena, graph_node(b->g, node)), pos);
}

void build_fill(Builder *b, Block *to, NodeRef node, Place place, const Position *pos)
{
    const Node *n = graph_node(b->g, node);
    Stmt *s = build_tile(b, to, n, pos, false);
    build_dst(b, s, node, place, pos);
    s->value = expr_const(b->arena, op_neutral(build_fold(n), n->acc));
}

Place build_target(const Builder *b, NodeRef node)
{
    return b->accumulator[node].buf != BUF_NONE ? b->accumulator[node] : b->storage[node];
}

static const char *node_hint(const Node *n)
{
    return n->name == NULL ? "t" : n->name->text;
}

/* The block of `node` that lives in the body of loop `alloc_loop`, or all of it in memory. */
Place build_buffer(Builder *b, NodeRef node, uint32_t alloc_loop, Space space, DType t,
                   const char *hint)
{
    const Node *n = graph_node(b->g, node);
    Dim *extent = ARENA_ARRAY(b->arena, n->rank, Dim);
    uint32_t rank = 0;
    for (uint32_t d = 0; d < n->rank; d++) {
        uint32_t loop = space == SPACE_TILE ? cutting_loop(b, node, alloc_loop, d) : NEST_NONE;
        int64_t tile = loop == NEST_NONE ? 0 : nest_loop_span(b->nest, loop, node);
        if (tile == 1) {
            continue;
        }
        bool whole = loop == NEST_NONE || (n->shape[d].sym < 0 && n->shape[d].n <= tile);
        extent[rank++] = whole ? n->shape[d] : dim_fixed(tile);
    }
    Place place = {kernel_buffer(b->k, &b->ctx->syms, hint, t, space, rank, extent),
                   alloc_loop};
    b->k->bufs.at[place.buf].span = n->span;
    b->k->bufs.at[place.buf].may_spill = n->allow_spill;
    return place;
}

/* Does the node fold over a loop around its leaf, inside of its parallel loop if it has a part in each iteration of that? */
bool build_goes_on(const Builder *b, NodeRef node)
{
    const NestValue *v = &b->nest->values[node];
    bool over = false;
    for (uint32_t p = b->nest->items[v->item].parent; p != NEST_NONE && v->fold != NEST_NONE;
         p = b->nest->items[p].parent) {
        over |= nest_folds_over(b->nest, p, node) &&
                !(p == v->fold && b->nest->items[p].parallel) &&
                !(b->open != NULL && p == b->open->inner);
    }
    return over;
}

void build_storage(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    const Node *n = graph_node(b->g, node);
    const NestValue *v = &b->nest->values[node];
    if (v->residence == RESIDE_RESULT) {
        b->storage[node] = (Place){b->result[v->result], NEST_NONE};
    } else if (v->alloc_loop == scope && v->in_place != NODE_NONE) {
        b->storage[node] = b->storage[v->in_place];
    } else if (v->alloc_loop == scope) {
        bool tile = v->residence == RESIDE_TILE;
        b->storage[node] = build_buffer(b, node, scope, tile ? SPACE_TILE : SPACE_WORKSPACE,
                                        n->dtype, node_hint(n));
        build_alloc(b, to, b->storage[node].buf);
    }
}
