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
 *                                                 reduce [l in 0..n_4096] @R[] += @leaves[l] begins */
#include "lower/build.h"

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

/* At `lead`, then where `pos` says. */
static const Affine *leaf_at(Builder *b, const Node *n, Affine lead, const Position *pos)
{
    Affine *at = ARENA_ARRAY(b->arena, (size_t)n->rank + 1, Affine);
    at[0] = lead;
    for (uint32_t d = 0; d < n->rank; d++) {
        at[d + 1] = pos[n->out[d]].at;
    }
    return at;
}

void build_leaves_begin(Builder *b, Block *to, Block *body, uint32_t k, Leaves *out)
{
    for (uint32_t i = k + 1; i < b->nest->items[k].end; i++) {
        if (!is_folded_over(b, k, i)) {
            continue;
        }
        NodeRef node = b->nest->items[i].node;
        const Node *n = graph_node(b->g, node);
        Dim *extent = ARENA_ARRAY(b->arena, (size_t)n->rank + 1, Dim);
        extent[0] = b->leaves[k];
        for (uint32_t d = 0; d < n->rank; d++) {
            extent[d + 1] = n->shape[d];
        }
        Leaf leaf = {.node = node, .sum = build_target(b, node), .was = b->accumulator[node]};
        leaf.all = kernel_buffer(b->k, &b->ctx->syms, "leaves", n->acc, SPACE_WORKSPACE,
                                 n->rank + 1, extent);
        b->k->bufs.at[leaf.all].span = n->span;
        build_alloc(b, to, leaf.all);
        b->accumulator[node] = build_buffer(b, node, k, SPACE_TILE, n->acc, "leaf");
        build_alloc(b, body, b->accumulator[node].buf);
        if (build_goes_on(b, node)) {
            build_fill(b, body, node, b->accumulator[node], build_positions(b, node, k));
        }
        vec_push(b->arena, &out->list, leaf);
    }
}

/* At the end of an iteration. */
void build_leaves_end(Builder *b, Block *body, uint32_t k, const Leaves *leaves)
{
    for (uint32_t i = 0; i < leaves->list.n; i++) {
        const Leaf *leaf = &leaves->list.at[i];
        const Node *n = graph_node(b->g, leaf->node);
        const Position *pos = build_positions(b, leaf->node, k);
        Stmt *s = build_tile(b, body, n, pos, false);
        const Affine *from =
            build_at(b, b->accumulator[leaf->node], leaf->node, build_out(b, n), pos);
        s->dst = leaf->all;
        s->at = leaf_at(b, n, affine_var(b->arena, b->loop[k]), pos);
        s->value = expr_load(b->arena, b->k, b->accumulator[leaf->node].buf, from);
    }
}

void build_leaves_join(Builder *b, Block *to, uint32_t k, const Leaves *leaves)
{
    for (uint32_t i = 0; i < leaves->list.n; i++) {
        const Leaf *leaf = &leaves->list.at[i];
        const Node *n = graph_node(b->g, leaf->node);
        const Position *pos = build_positions(b, leaf->node, b->nest->items[k].parent);
        b->accumulator[leaf->node] = leaf->was;
        Stmt *s = build_tile(b, to, n, pos, false);
        TileIndex *index = ARENA_ARRAY(b->arena, (size_t)s->n_index + 1, TileIndex);
        for (uint32_t x = 0; x < s->n_index; x++) {
            index[x] = s->index[x];
        }
        VarRef l = kernel_var(b->k, &b->ctx->syms, "l", false);
        index[s->n_index++] =
            (TileIndex){.var = l, .range = range_whole(b->leaves[k]), .mode = MODE_LOOP};
        s->index = index;
        build_dst(b, s, leaf->node, leaf->sum, pos);
        s->value =
            expr_load(b->arena, b->k, leaf->all, leaf_at(b, n, affine_var(b->arena, l), pos));
        s->fold = build_fold(n);
        s->begins = true;
    }
}
