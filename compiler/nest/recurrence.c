/* SPDX-License-Identifier: Apache-2.0 */
/* Nests of the bodies of recurrences. The steps stand in a loop around the body's nest (lower/recurrence.c). Where all that a step does
 * is done for each position of an index by itself, as rows of a batch are, that index is looped over outside, so that the states of a
 * few positions stay in the first cache over all steps, and threads share them. */
#include "graph/recurrence.h"
#include "nest/axes.h"
#include "nest/kinds.h"
#include "nest/make.h"
#include "nest/plan.h"

/* Elements of a state that an iteration of such a loop has: side by side in memory at least, up to four times as many where threads leave
 * that many, and not side by side; and bytes of what is the same in each step and read again for each iteration, at most. */
#define LANE_ELEMENTS 512
#define ROW_ELEMENTS  8
#define WHOLE_BYTES   (int64_t)(128 << 10)

/* The result that the parameter was a step before, or will be: a state, or what is read back; the number of results: none. */
static uint32_t result_of(const Recurrence *r, uint32_t param)
{
    return r->param[param].role == STEPS_STATE   ? recurrence_state_result(r, param)
           : r->param[param].role == STEPS_PRIOR ? r->param[param].result
                                                 : r->body->results.n;
}

/* Is the axis one dimension of the parameter, where nodes of the axis alone read it, and of the result? */
static bool has_to_itself(const NestFacts *f, const NestAxis *axis, NodeRef result,
                          uint32_t param)
{
    const Graph *g = f->g;
    const Node *n = graph_node(g, result);
    int32_t dim = -1, l = nest_axis_label(axis, result);
    for (uint32_t d = 0; l >= 0 && d < n->rank; d++) {
        dim = n->out[d] == l ? (int32_t)d : dim;
    }
    for (uint32_t k = 0; k < f->n_stored && dim >= 0; k++) {
        const UseList *u = &f->uses[f->stored[k]];
        for (uint32_t i = 0; i < u->list.n; i++) {
            const Use *use = &u->list.at[i];
            const Node *o = graph_node(g, use->node);
            if (o->op == OP_INPUT && o->param == param &&
                (use->whole || use->access.index[dim].offset != 0 ||
                 use->access.index[dim].label != nest_axis_label(axis, f->stored[k]))) {
                return false;
            }
        }
    }
    return dim >= 0;
}

/* Does each position of the axis have its states to itself? */
static bool is_batch(const NestFacts *f, const Recurrence *r, const NestAxis *axis)
{
    bool fine = !nest_axis_is_folded(f->g, axis) && !axis->online && axis->halo == NULL &&
                !dim_is(axis->extent, 0);
    for (uint32_t p = 0; p < f->g->params.n && fine; p++) {
        uint32_t k = result_of(r, p);
        fine = k == r->body->results.n || has_to_itself(f, axis, f->g->results.at[k].node, p);
    }
    return fine;
}

bool nest_is_batch(const Recurrence *r)
{
    const Nest *nest = r->nest;
    Arena scratch;
    arena_init(&scratch, NULL);
    NestFacts facts;
    nest_facts_in(&scratch, nest, &facts);
    bool batch = nest->n_sizes == 0 && nest->n_items > 0 && nest_is_loop(&nest->items[0]) &&
                 nest->items[0].end == nest->n_items && nest->items[0].from == 0 &&
                 is_batch(&facts, r, &nest->axes[nest->items[0].axis]);
    arena_release(&scratch);
    return batch;
}

static int64_t whole_bytes(const Graph *g, const Recurrence *r)
{
    int64_t bytes = 0;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (node->op == OP_INPUT && r->param[node->param].role == STEPS_WHOLE) {
            bytes = sat_add(bytes, nest_node_bytes(g, n));
        }
    }
    return bytes;
}

/* Positions of the axis that an iteration has. */
static int64_t tile_of(const NestFacts *f, const Machine *machine, const NestAxis *axis)
{
    const Graph *g = f->g;
    int64_t extent = nest_typical(g, axis->extent), inner = 1;
    for (uint32_t k = 0; k < f->n_stored; k++) {
        const Node *n = graph_node(g, f->stored[k]);
        int64_t behind = 1;
        bool seen = false;
        for (uint32_t d = 0; d < n->rank; d++) {
            seen = seen || n->out[d] == nest_axis_label(axis, f->stored[k]);
            behind = seen && n->out[d] != nest_axis_label(axis, f->stored[k])
                         ? sat_mul(behind, nest_typical(g, n->shape[d]))
                         : behind;
        }
        inner = behind > inner ? behind : inner;
    }
    int64_t least = LANE_ELEMENTS / inner,
            threads = machine->threads > 0 ? machine->threads : 1;
    int64_t each = (extent + threads - 1) / threads, most = 4 * least;
    int64_t tile = each < least ? least : each > most ? most : each;
    tile = tile < ROW_ELEMENTS ? ROW_ELEMENTS : tile;
    return tile < extent ? tile : extent;
}

/* Is a slice of what has all steps dense? The step is not the last dimension then. */
static bool slices_are_dense(const Recurrence *r, const Graph *outer)
{
    for (NodeRef n = 0; n < outer->nodes.n; n++) {
        const Node *node = graph_node(outer, n);
        if (node->op != OP_STEPS || node_recurrence(outer, node) != r) {
            continue;
        }
        if (node->steps.along >= 0 && (uint32_t)node->steps.along + 1 == node->rank &&
            node->rank > 1) {
            return false;
        }
    }
    return true;
}

/* The nest with a loop around all of it; null where no index may be looped over so. */
static Nest *batch_nest(Ctx *ctx, Arena *arena, const Graph *outer, const Recurrence *r,
                        const Machine *machine)
{
    const Graph *g = r->body;
    NestFacts *facts = ARENA_NEW(arena, NestFacts);
    nest_facts(arena, g, facts);
    const NestAxis *axes = NULL;
    if (facts->n_stored == 0 || !machine_traits(machine)->batches ||
        whole_bytes(g, r) > WHOLE_BYTES) {
        return NULL;
    }
    uint32_t n = nest_common_axes(arena, facts, facts->n_stored, facts->stored, false, &axes);
    for (uint32_t x = 0; x < n; x++) {
        if (!is_batch(facts, r, &axes[x])) {
            continue;
        }
        Tree tree = {0};
        int64_t tile =
            slices_are_dense(r, outer) ? tile_of(facts, machine, &axes[x]) : ROW_ELEMENTS;
        tree_loop(arena, &tree, 0, axes[x], tile);
        for (uint32_t k = 0; k < facts->n_stored; k++) {
            tree_leaf(arena, &tree, 1, facts->stored[k], false);
        }
        return nest_of_tree(ctx, arena, facts, machine, machine, &tree);
    }
    return NULL;
}

void nest_recurrences(Ctx *ctx, Arena *arena, const Graph *g, const Machine *machine,
                      uint32_t effort)
{
    for (uint32_t k = 0; k < g->recurrences.n; k++) {
        Recurrence *r = g->recurrences.at[k];
        nest_recurrences(ctx, arena, r->body, machine, effort);
        Nest *batch = effort == 0 ? NULL : batch_nest(ctx, arena, g, r, machine);
        r->batch = batch != NULL;
        r->nest = batch != NULL ? batch
                  : effort == 0 ? nest_unfused(ctx, arena, r->body, machine)
                                : nest_choose(ctx, arena, r->body, machine, effort);
    }
}
