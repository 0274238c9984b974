/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over a parallel loop. Each iteration is a leaf: it folds into a block of its own, which goes to its place in an array of
 * all leaves; after the loop these are folded in order, so the bits depend on the number of leaves, which the extents say, and not
 * on the number of threads:
 *
 *     for $i in 0..n step 4096 parallel {         for $i in 0..n_4096 step 1 parallel {
 *       reduce [a in $i:4096<n] @R[] += ...         alloc @leaf
 *     }                                       ->    reduce [a in 4096*$i:4096<n] @leaf[] += ... begins
 *                                                   copy @leaves[$i] = @leaf[]
 *                                                 }
 *                                                 reduce [l in 0..n_4096] @R[] += @leaves[l] begins
 *
 * Where the body is one loop over which the same is folded, each iteration of that is a leaf, so that threads may share pairs of iterations:
 * `@leaves[$i,$j]`, of which those of pairs j >= i are added up for one i after the other. */
#include "lower/build.h"

#include "nest/masks.h"

/* Is the item a leaf that is folded over parallel loop `k`? */
static bool is_folded_over(const Builder *b, uint32_t k, uint32_t item)
{
    const NestItem *leaf = &b->nest->items[item];
    return b->nest->items[k].parallel && leaf->axis == NEST_NONE &&
           b->nest->values[leaf->node].fold == k;
}

bool build_has_leaves(const Builder *b, uint32_t k)
{
    bool any = false;
    for (uint32_t i = k + 1; i < b->nest->items[k].end; i++) {
        any |= is_folded_over(b, k, i);
    }
    return any;
}

/* Leaves of pairs of iterations are no more elements than so many. */
#define LEAVES_MOST 65536.0

static bool has_window(Builder *b, uint32_t k)
{
    MaskWindow w = nest_mask_window(b->arena, b->nest, k);
    return w.has_lo || w.has_hi;
}

/* Is all that folds over the one loop folded over the other as well, and nothing else in the inner one the matter? */
static bool folds_alike(const Builder *b, uint32_t outer, uint32_t inner)
{
    const Nest *nest = b->nest;
    double elements = 0.0, iterations = 1.0;
    bool alike = true;
    for (uint32_t i = inner + 1; i < nest->items[inner].end; i++) {
        const NestItem *item = &nest->items[i];
        bool folded = !nest_is_loop(item) && nest_folds_over(nest, inner, item->node);
        alike = alike && !item->mirror &&
                (nest_is_loop(item) || folded == is_folded_over(b, outer, i));
        double own = folded ? 1.0 : 0.0;
        for (uint32_t d = 0; folded && d < graph_node(b->g, item->node)->rank; d++) {
            own *= (double)dim_typical(&b->k->dims, graph_node(b->g, item->node)->shape[d]);
        }
        elements += own;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const NestItem *loop = &nest->items[i == 0 ? outer : inner];
        iterations *= (double)dim_typical(&b->k->dims, nest->axes[loop->axis].extent) /
                      (double)loop->tile;
    }
    return alike && elements * iterations <= LEAVES_MOST;
}

/* The loop whose iterations have leaves: the only one in the body of loop `k`, so that threads may share pairs of iterations, or `k`. */
static uint32_t leaf_loop(Builder *b, uint32_t k)
{
    const Nest *nest = b->nest;
    const NestItem *outer = &nest->items[k], *inner = &nest->items[k + 1];
    bool pairs = k + 1 < outer->end && nest_is_loop(inner) && inner->end == outer->end &&
                 inner->axis != outer->axis && !inner->online &&
                 (inner->from == 0 || (inner->from == k + 1 && inner->tile == outer->tile));
    return pairs && !nest_is_slice(b->g, &nest->axes[inner->axis]) && !has_window(b, k + 1) &&
                   folds_alike(b, k, k + 1)
               ? k + 1
               : k;
}

/* At `lead`, one position or two, then where `pos` says. */
static const Affine *leaf_at(Builder *b, const Node *n, uint32_t n_lead, const Affine *lead,
                             const Position *pos)
{
    Affine *at = ARENA_ARRAY(b->arena, (size_t)n->rank + n_lead, Affine);
    for (uint32_t i = 0; i < n_lead; i++) {
        at[i] = lead[i];
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        at[d + n_lead] = pos[n->out[d]].at;
    }
    return at;
}

static uint32_t n_leading(const Leaves *leaves)
{
    return leaves->outer == leaves->inner ? 1 : 2;
}

void build_leaves_open(Builder *b, Block *to, uint32_t k, Leaves *out)
{
    *out = (Leaves){.outer = k, .inner = leaf_loop(b, k)};
    uint32_t n_lead = n_leading(out);
    for (uint32_t i = k; i <= out->inner; i++) {
        b->leaves[i] =
            dims_quotient(b->arena, b->k->arena, &b->ctx->syms, &b->k->dims, (Span){0},
                          b->nest->axes[b->nest->items[i].axis].extent, b->nest->items[i].tile);
    }
    for (uint32_t i = k + 1; i < b->nest->items[k].end; i++) {
        if (!is_folded_over(b, k, i)) {
            continue;
        }
        NodeRef node = b->nest->items[i].node;
        const Node *n = graph_node(b->g, node);
        Dim *extent = ARENA_ARRAY(b->arena, (size_t)n->rank + n_lead, Dim);
        for (uint32_t x = 0; x < n_lead; x++) {
            extent[x] = b->leaves[k + x];
        }
        for (uint32_t d = 0; d < n->rank; d++) {
            extent[d + n_lead] = n->shape[d];
        }
        Leaf leaf = {.node = node, .sum = build_target(b, node), .was = b->accumulator[node]};
        leaf.all = kernel_buffer(b->k, &b->ctx->syms, "leaves", n->acc, SPACE_WORKSPACE,
                                 n->rank + n_lead, extent);
        b->k->bufs.at[leaf.all].span = n->span;
        build_alloc(b, to, leaf.all);
        vec_push(b->arena, &out->list, leaf);
    }
    b->open = out;
}

void build_leaves_begin(Builder *b, Block *body, Leaves *leaves)
{
    for (uint32_t i = 0; i < leaves->list.n; i++) {
        NodeRef node = leaves->list.at[i].node;
        b->accumulator[node] = build_buffer(b, node, leaves->inner, SPACE_TILE,
                                            graph_node(b->g, node)->acc, "leaf");
        build_alloc(b, body, b->accumulator[node].buf);
        if (build_goes_on(b, node)) {
            build_fill(b, body, node, b->accumulator[node],
                       build_positions(b, node, leaves->inner));
        }
    }
}

void build_leaves_end(Builder *b, Block *body, const Leaves *leaves)
{
    for (uint32_t i = 0; i < leaves->list.n; i++) {
        const Leaf *leaf = &leaves->list.at[i];
        const Node *n = graph_node(b->g, leaf->node);
        const Position *pos = build_positions(b, leaf->node, leaves->inner);
        Stmt *s = build_tile(b, body, n, pos, false);
        const Affine *from = build_at(b, b->accumulator[leaf->node], leaf->node,
                                      node_own_access(b->arena, n), pos);
        const Affine lead[2] = {affine_var(b->arena, b->loop[leaves->outer]),
                                affine_var(b->arena, b->loop[leaves->inner])};
        s->dst = leaf->all;
        s->at = leaf_at(b, n, n_leading(leaves), lead, pos);
        s->value = expr_load(b->arena, b->k, b->accumulator[leaf->node].buf, from);
    }
}

/* Of pairs i <= j, those of one i after the other. */
static Block *join_pairs(Builder *b, Block *to, Block *inside, const Leaves *leaves,
                         VarRef *row)
{
    if (leaves->outer == leaves->inner || b->nest->items[leaves->inner].from == 0) {
        return to;
    }
    Stmt *loop = ARENA_NEW(b->arena, Stmt);
    *row = kernel_var(b->k, &b->ctx->syms, "l", true);
    *loop = (Stmt){.kind = STMT_FOR,
                   .fold = OP_COPY,
                   .var = *row,
                   .range = range_whole(b->leaves[leaves->outer]),
                   .step = 1};
    vec_push(b->arena, &to->list, loop);
    return inside;
}

void build_leaves_join(Builder *b, Block *to, const Leaves *leaves)
{
    uint32_t n_lead = n_leading(leaves);
    for (uint32_t i = 0; i < leaves->list.n; i++) {
        const Leaf *leaf = &leaves->list.at[i];
        const Node *n = graph_node(b->g, leaf->node);
        const Position *pos =
            build_positions(b, leaf->node, b->nest->items[leaves->outer].parent);
        VarRef row = 0;
        Block inside = {0};
        b->accumulator[leaf->node] = leaf->was;
        bool pairs = n_lead == 2 && b->nest->items[leaves->inner].from != 0;
        if (pairs) { /* there may be none */
            build_fill(b, to, leaf->node, leaf->sum, pos);
        }
        Block *at = join_pairs(b, to, &inside, leaves, &row);
        Stmt *s = build_tile(b, at, n, pos, false);
        TileIndex *index = ARENA_ARRAY(b->arena, (size_t)s->n_index + n_lead, TileIndex);
        for (uint32_t x = 0; x < s->n_index; x++) {
            index[x] = s->index[x];
        }
        Affine lead[2] = {affine_var(b->arena, row), affine_const(0)};
        for (uint32_t x = pairs ? 1 : 0; x < n_lead; x++) {
            VarRef l = kernel_var(b->k, &b->ctx->syms, "l", false);
            Range range = range_whole(b->leaves[leaves->outer + x]);
            range.start = pairs ? lead[0] : range.start;
            index[s->n_index++] = (TileIndex){.var = l, .range = range, .mode = MODE_LOOP};
            lead[x] = affine_var(b->arena, l);
        }
        s->index = index;
        build_dst(b, s, leaf->node, leaf->sum, pos);
        s->value = expr_load(b->arena, b->k, leaf->all, leaf_at(b, n, n_lead, lead, pos));
        s->fold = build_fold(n);
        s->begins = !pairs;
        if (pairs) {
            Stmt *loop = to->list.at[to->list.n - 1];
            loop->span = s->span;
            loop->body = inside.list.at;
            loop->n_body = inside.list.n;
        }
    }
    b->open = NULL;
}
