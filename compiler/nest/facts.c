/* SPDX-License-Identifier: Apache-2.0 */
/* See facts.h. */
#include "nest/facts.h"

static bool is_leaf(const Node *n)
{
    return op_info(n->op)->kind == OPKIND_LEAF;
}

static int32_t *find_results(Arena *arena, const Graph *g)
{
    int32_t *result_of = ARENA_ARRAY(arena, g->nodes.n, int32_t);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        result_of[n] = -1;
    }
    for (uint32_t k = g->results.n; k-- > 0;) {
        if (!is_leaf(graph_node(g, g->results.at[k].node))) {
            result_of[g->results.at[k].node] = (int32_t)k;
        }
    }
    return result_of;
}

static const uint32_t *count_reads(Arena *arena, const NestFacts *f)
{
    uint32_t *reads = ARENA_ARRAY(arena, f->g->nodes.n, uint32_t);
    for (uint32_t i = 0; i < f->late.list.n; i++) {
        reads[f->late.list.at[i].node]++;
    }
    for (uint32_t k = 0; k < f->n_stored; k++) {
        for (uint32_t i = 0; i < f->uses[f->stored[k]].list.n; i++) {
            reads[f->uses[f->stored[k]].list.at[i].node]++;
        }
    }
    return reads;
}

/* Contractions that begin with a contraction which nothing else reads. */
static const NodeRef *find_into(Arena *arena, const NestFacts *f)
{
    NodeRef *into = ARENA_ARRAY(arena, f->g->nodes.n, NodeRef);
    for (NodeRef n = 0; n < f->g->nodes.n; n++) {
        into[n] = NODE_NONE;
    }
    for (uint32_t k = 0; k < f->n_stored; k++) {
        NodeRef x = node_init(graph_node(f->g, f->stored[k]));
        if (x != NODE_NONE && f->reads[x] == 1 && f->result_of[x] < 0 &&
            nest_goes_into(graph_node(f->g, f->stored[k]), graph_node(f->g, x))) {
            into[x] = f->stored[k];
        }
    }
    return into;
}

void nest_facts_of(Arena *arena, const Graph *g, const Residence *residence, NestFacts *f)
{
    int32_t *result_of = find_results(arena, g);
    UseList *uses = ARENA_ARRAY(arena, g->nodes.n, UseList);
    NodeRef *stored = ARENA_ARRAY(arena, g->nodes.n, NodeRef);
    *f = (NestFacts){
        .g = g, .residence = residence, .uses = uses, .result_of = result_of, .stored = stored};
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (residence_is_stored(residence[n])) {
            node_uses(arena, g, residence, n, &uses[n]);
            stored[f->n_stored++] = n;
        } else {
            result_of[n] = -1;
        }
    }
    for (uint32_t k = 0; k < g->results.n; k++) {
        NodeRef n = g->results.at[k].node;
        if (result_of[n] != (int32_t)k) {
            result_uses(arena, g, residence, n, &f->late);
        }
    }
    f->reads = count_reads(arena, f);
    f->into = find_into(arena, f);
}

void nest_facts_in(Arena *arena, const Nest *nest, NestFacts *f)
{
    Residence *residence = ARENA_ARRAY(arena, nest->graph->nodes.n, Residence);
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        residence[n] = nest->values[n].residence;
    }
    nest_facts_of(arena, nest->graph, residence, f);
}

void nest_facts(Arena *arena, const Graph *g, NestFacts *f)
{
    Residence *residence = ARENA_ARRAY(arena, g->nodes.n, Residence);
    bool *needed = graph_needed(arena, g, false);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        residence[n] = !needed[n]             ? RESIDE_NONE
                       : node->op == OP_INPUT ? RESIDE_ARGUMENT
                       : node->op == OP_VIEW  ? RESIDE_VIEW
                       : is_leaf(node)        ? RESIDE_INLINE
                                              : RESIDE_WORKSPACE;
    }
    nest_choose_inline(arena, g, needed, find_results(arena, g), residence);
    nest_facts_of(arena, g, residence, f);
}
