/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops threads may share, and loops that are put around leaves for them: a leaf that stands in no loop gets one over an index of
 * the result, or over one that it sums if each iteration may have a part of the sum of its own (lower/leaves.c). Which of them are
 * shared, and what is best, the price says (nest/threads.c). */
#include "nest/parallel.h"

#include <math.h>

#include "nest/leaves.h"
#include "nest/price_leaf.h"

/* Elements of a sum that each iteration may have a part of; of larger ones all parts together. */
#define LEAF_ELEMENTS   2048.0
#define LEAVES_ELEMENTS 262144.0
/* Iterations of a loop over what is summed, at most. */
#define LEAVES 64
/* Positions of an index that lies side by side in an operand, of which one iteration should have no fewer. */
#define RUN 64

static double result_elements(const Graph *g, const Node *n)
{
    double elements = 1.0;
    for (uint32_t d = 0; d < n->rank; d++) {
        elements *= (double)nest_typical(g, n->shape[d]);
    }
    return elements;
}

static bool has_parts(const Graph *g, const Node *n, double iterations)
{
    double elements = result_elements(g, n);
    return !n->onto && (elements <= LEAF_ELEMENTS || elements * iterations <= LEAVES_ELEMENTS);
}

NodeRef nest_fold_without_leaves(const Nest *nest, uint32_t k)
{
    const Graph *g = nest->graph;
    double iterations = ceil((double)nest_loop_extent(nest, k) / (double)nest->items[k].tile);
    for (uint32_t i = k + 1; i < nest->items[k].end; i++) {
        const NestItem *item = &nest->items[i];
        if (nest_is_loop(item) || !nest_folds_over(nest, k, item->node)) {
            continue;
        }
        const NestValue *v = &nest->values[item->node];
        if (v->fold != k || v->residence == RESIDE_INTO ||
            !has_parts(g, graph_node(g, item->node), iterations)) {
            return item->node;
        }
    }
    return NODE_NONE;
}

bool nest_may_share(const Machine *machine, const Nest *nest, uint32_t k)
{
    const NestItem *item = &nest->items[k];
    const NestAxis *axis = &nest->axes[item->axis];
    bool outer = item->parent == NEST_NONE;
    if (item->from != 0 || item->online || nest_is_slice(nest->graph, axis)) {
        return false;
    }
    return nest_axis_is_folded(nest->graph, axis)
               ? outer && machine->threads > 0 && nest_fold_without_leaves(nest, k) == NODE_NONE
               : outer || machine->threads > 0;
}

/* ---- loops around leaves ---- */

/* Does the label lie side by side in an operand or the result? */
static bool is_line(const Node *n, int32_t label)
{
    bool line = n->rank > 0 && n->out[n->rank - 1] == label;
    for (uint32_t k = 0; k < node_factors(n); k++) {
        const Access *a = &n->access[k];
        line |= a->rank > 0 && a->index[a->rank - 1].label == label;
    }
    return line;
}

/* Positions of one of about so many iterations, in whole runs where there are such, of a product in whole blocks. */
static int64_t tile_of(const LeafPrice *l, const Node *n, int32_t label, int64_t extent,
                       int64_t iterations)
{
    const ContractionTiles *t = &l->p->machine->tile;
    bool product = l->schedule != NULL && l->schedule->n_levels > 0;
    int64_t run = is_line(n, label) ? RUN : 1;
    int64_t unit = !product                 ? run
                   : node_reduces(n, label) ? t->sum
                   : run > 1                ? t->columns
                                            : run;
    int64_t tile = (extent + iterations - 1) / iterations;
    while (run > 1 && !product && unit < tile / 8) { /* passes cut longer ones in halves */
        unit *= 2;
    }
    return extent < 2 * unit ? tile : (tile + unit - 1) / unit * unit;
}

static void add_loop(LeafLoops *out, LeafLoop loop)
{
    uint32_t at = out->n < LEAF_LOOPS ? out->n++ : LEAF_LOOPS;
    for (; at > 0 && loop.path < out->at[at - 1].path; at--) {
        if (at < LEAF_LOOPS) {
            out->at[at] = out->at[at - 1];
        }
    }
    if (at < LEAF_LOOPS) {
        out->at[at] = loop;
    }
}

/* The loop over the label in tiles: what it adds to one thread's time, and what sharing it leaves. */
static void try_loop(const LeafPrice *l, int32_t label, int64_t tile, LeafLoops *out)
{
    const Graph *g = l->nest->graph;
    const Machine *m = l->p->machine;
    const Node *n = graph_node(g, l->node);
    double iterations = (double)nest_typical(g, n->extent[label]) / (double)tile;
    double seconds = l->seconds, alone = 0.0;
    if (iterations <= 1.0) {
        return;
    }
    if (node_reduces(n, label)) { /* parts are begun, stored and added up */
        double words = (double)dtype_bytes(n->acc) / 4.0;
        if (!has_parts(g, n, iterations)) {
            return;
        }
        alone = iterations * result_elements(g, n) * words * m->time.op;
        seconds += 3.0 * alone;
    }
    for (uint32_t i = 0; l->schedule != NULL && i < 2;
         i++) { /* what lacks the label is packed in each */
        bool again = !access_has_label(l->touch[i].access, label);
        seconds += again ? l->pack[price_role(l, i)] * (iterations - 1.0) : 0.0;
    }
    double path = alone + price_shared(m, seconds, 1.0, iterations);
    if (path < l->seconds) {
        add_loop(out, (LeafLoop){label, tile, path});
    }
}

void price_leaf_loops(Arena *scratch, const LeafPrice *l, LeafLoops *out)
{
    const Nest *nest = l->nest;
    const Graph *g = nest->graph;
    const Node *n = graph_node(g, l->node);
    LeafShape shape = nest_leaf_shape(scratch, nest, l->node);
    out->n = 0;
    if (l->depth > 0 || n->out == NULL || shape.ordered ||
        l->seconds < 2.0 * l->p->machine->time.piece || graph_slices(g, l->node).n > 0) {
        return;
    }
    for (uint32_t x = 0; x < n->n_labels; x++) {
        bool folded = node_reduces(n, (int32_t)x);
        int64_t extent = nest_typical(g, n->extent[x]), last = 0;
        if (leaf_is_alone(&shape, (int32_t)x)) {
            continue;
        }
        for (int64_t by = l->p->machine->threads; by <= 2 * l->p->machine->threads; by *= 2) {
            int64_t most = folded ? LEAVES : extent, iterations = by < most ? by : most;
            int64_t tile = tile_of(l, n, (int32_t)x, extent, iterations);
            if (extent > 1 && tile != last) {
                try_loop(l, (int32_t)x, tile, out);
            }
            last = tile;
        }
    }
}
