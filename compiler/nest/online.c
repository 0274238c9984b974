/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over which something is folded and read: what is read is the fold so far, and sums follow
 * it by the rules of the graph (graph.h, Online). Of what the moves propose, which is legal. */
#include "nest/place.h"

/* What reads the fold so far, or what was made of it, in the body of the loop: it follows by a
 * rule, or it is a block of the body, made anew in each iteration. */
static bool may_follow(const NestFacts *f, const Nest *nest, uint32_t loop, NodeRef y,
                       uint32_t leaf, bool *provisional)
{
    const NestItem *item = &nest->items[leaf];
    const NestValue *v = &nest->values[item->node];
    bool apart =
        nest_item_in(nest, loop, leaf) != nest_item_in(nest, loop, nest->values[y].item);
    if (item->recompute || !apart) {
        return false;
    }
    if (nest_folds_over(nest, loop, item->node)) {
        const Online *rule = graph_online(f->g, item->node, y);
        return v->fold == loop && rule != NULL &&
               nest_loop_label(nest, loop, item->node) == rule->t;
    }
    provisional[item->node] = true;
    return f->result_of[item->node] < 0 && v->residence == RESIDE_TILE &&
           nest_is_in(nest, v->alloc_loop, loop);
}

/* May all that depends on value `y`, which is folded over the loop, stand in it? */
static bool may_run(Arena *scratch, const NestFacts *f, const Nest *nest, uint32_t loop,
                    NodeRef y)
{
    const NestValue *v = &nest->values[y];
    bool *provisional = NULL;
    for (uint32_t k = v->item + 1; k < nest->items[loop].end; k++) {
        NodeRef n = nest->items[k].node;
        bool reads = false;
        for (uint32_t i = 0; !nest_is_loop(&nest->items[k]) && i < f->uses[n].list.n; i++) {
            NodeRef p = f->uses[n].list.at[i].node;
            reads |= p == y || (provisional != NULL && provisional[p]);
        }
        if (reads && provisional == NULL) {
            if (v->fold != loop || nest->items[v->item].recompute) {
                return false;
            }
            provisional = ARENA_ARRAY(scratch, f->g->nodes.n, bool);
        }
        if (reads && !may_follow(f, nest, loop, y, k, provisional)) {
            return false;
        }
    }
    return true;
}

bool nest_online_is_legal(Arena *scratch, const NestFacts *f, const Nest *nest)
{
    bool legal = true;
    for (uint32_t k = 0; legal && k < nest->n_items; k++) {
        for (uint32_t i = k + 1; nest->items[k].online && legal && i < nest->items[k].end;
             i++) {
            ArenaMark mark = arena_mark(scratch);
            legal = nest_is_loop(&nest->items[i]) ||
                    !nest_folds_over(nest, k, nest->items[i].node) ||
                    may_run(scratch, f, nest, k, nest->items[i].node);
            arena_reset(scratch, mark);
        }
    }
    return legal;
}
