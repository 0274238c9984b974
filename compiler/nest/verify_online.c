/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that say `online`, derived from the rules of the graph backward: whoever depends on a fold
 * before its loop has completed it must know how to follow. */
#include "nest/verify_parts.h"

typedef struct Checker {
    const Nest *nest;
    const UseList *uses;
    const uint32_t *leaf;
    uint32_t loop;
    bool *folds;    /* [nodes]: stands in the loop and folds over it, */
    int32_t *label; /* [nodes]: this label of it */
} Checker;

static bool is_inside(const Nest *nest, uint32_t loop, uint32_t at)
{
    return loop < at && at < nest->items[loop].end;
}

/* The outermost loop around the leaf that has a label of the node that is folded. */
static uint32_t outermost_fold(const Nest *nest, uint32_t leaf)
{
    uint32_t found = NEST_NONE;
    for (uint32_t p = nest->items[leaf].parent; p != NEST_NONE; p = nest->items[p].parent) {
        const NestAxis *axis = &nest->axes[nest->items[p].axis];
        for (uint32_t k = 0; k < axis->n; k++) {
            if (axis->node[k] == nest->items[leaf].node &&
                node_reduces(graph_node(nest->graph, axis->node[k]), axis->label[k])) {
                found = p;
            }
        }
    }
    return found;
}

/* Do the loops of leaves `a` and `b` part right inside of the checked one? */
static bool part_there(const Checker *c, uint32_t a, uint32_t b)
{
    for (uint32_t p = c->nest->items[a].parent; p != c->loop; p = c->nest->items[p].parent) {
        if (is_inside(c->nest, p, b)) {
            return false;
        }
    }
    return true;
}

/* What is wrong with a leaf of the loop that depends on `p`, which the loop folds; or null. */
static const char *reader_problem(const Checker *c, uint32_t reader, NodeRef p)
{
    const Nest *nest = c->nest;
    NodeRef r = nest->items[reader].node;
    const NestValue *v = &nest->values[r];
    if (nest->items[reader].recompute || nest->items[c->leaf[p]].recompute) {
        return "depends on a fold of its loop, and one of them is computed again";
    }
    if (outermost_fold(nest, c->leaf[p]) != c->loop) {
        return "reads a fold over more loops than the one";
    }
    if (!part_there(c, c->leaf[p], reader)) {
        return "shares an inner loop with a fold that it reads";
    }
    if (c->folds[r]) {
        const Online *rule = graph_online(nest->graph, r, p);
        bool follows =
            rule != NULL && outermost_fold(nest, reader) == c->loop && c->label[r] == rule->t;
        return follows ? NULL : "cannot follow a fold that its loop has not completed";
    }
    bool inside = v->alloc_loop == c->loop ||
                  (v->alloc_loop != NEST_NONE && is_inside(nest, c->loop, v->alloc_loop));
    return v->residence == RESIDE_TILE && inside
               ? NULL
               : "is made of a fold that its loop has not completed, and kept";
}

static void need_operands(const Checker *c, NodeRef n, bool *needed)
{
    for (uint32_t i = 0; i < c->uses[n].list.n; i++) {
        needed[c->uses[n].list.at[i].node] = true;
    }
}

/* Of all folds of the loop on which the leaf depends, back through blocks of the body. */
static const char *leaf_problem(const Checker *c, uint32_t reader, bool *needed, bool *any)
{
    const Nest *nest = c->nest;
    const char *problem = NULL;
    need_operands(c, nest->items[reader].node, needed);
    for (uint32_t k = reader; k-- > c->loop + 1;) {
        NodeRef p = nest->items[k].node;
        if (nest_is_loop(&nest->items[k]) || !needed[p]) {
            continue;
        }
        if (!c->folds[p]) {
            need_operands(c, p, needed);
            continue;
        }
        *any = true;
        problem = problem == NULL ? reader_problem(c, reader, p) : problem;
    }
    return problem;
}

const char *nest_online_problem(Arena *arena, const Nest *nest, const UseList *uses,
                                const uint32_t *leaf, uint32_t loop, NodeRef *at)
{
    uint32_t n_nodes = nest->graph->nodes.n;
    Checker c = {.nest = nest, .uses = uses, .leaf = leaf, .loop = loop};
    const NestAxis *axis = &nest->axes[nest->items[loop].axis];
    bool any = false;
    c.folds = ARENA_ARRAY(arena, n_nodes, bool);
    c.label = ARENA_ARRAY(arena, n_nodes, int32_t);
    for (uint32_t k = 0; k < axis->n; k++) {
        NodeRef n = axis->node[k];
        c.label[n] = axis->label[k];
        c.folds[n] = leaf[n] != NEST_NONE && is_inside(nest, loop, leaf[n]) &&
                     node_reduces(graph_node(nest->graph, n), axis->label[k]);
    }
    *at = axis->node[0];
    if (nest->items[loop].from != 0) {
        return "has a loop over pairs that is called online";
    }
    for (uint32_t k = loop + 1; k < nest->items[loop].end; k++) {
        if (nest_is_loop(&nest->items[k])) {
            if (nest->items[k].from == loop + 1) {
                return "has a loop over pairs that is called online";
            }
            continue;
        }
        ArenaMark mark = arena_mark(arena);
        const char *problem = leaf_problem(&c, k, ARENA_ARRAY(arena, n_nodes, bool), &any);
        arena_reset(arena, mark);
        if (problem != NULL) {
            *at = nest->items[k].node;
            return problem;
        }
    }
    return any ? NULL : "has a loop that is called online and reads no fold of it";
}
