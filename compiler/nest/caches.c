/* SPDX-License-Identifier: Apache-2.0 */
/* Machines with caches (policy.h): vectors behind levels that keep what was read last, one statement after the other. */
#include <string.h>

#include "nest/masks.h"
#include "nest/policy.h"

/* ---- schedules ---- */

/* Batches that lie side by side everywhere, in lines at least so long, of operands that near caches hold in so many times their
 * room, are the lanes of plain loops: packed position by position each would fetch a line for one element. */
#define BATCH_LINE  256
#define BATCH_ROOMS 8

static int64_t operand_bytes(const Product *p, const Use *u)
{
    int64_t bytes = dtype_bytes(graph_node(p->f->g, u->node)->dtype);
    for (uint32_t l = 0; l < p->node->n_labels; l++) {
        bool has = access_has_label(&u->access, (int32_t)l);
        bytes = has ? sat_mul(bytes, label_planned(&p->extent[l])) : bytes;
    }
    return bytes;
}

static bool batches_are_lanes(const Product *p)
{
    int64_t room = sat_mul(machine_tile_capacity(p->machine), BATCH_ROOMS);
    bool lanes = false;
    for (uint32_t l = 0; l < p->node->n_labels; l++) {
        int64_t line = sat_mul(label_planned(&p->extent[l]), dtype_bytes(p->node->acc));
        lanes |= !p->extent[l].position && product_role(p, l) == ROLE_BATCH &&
                 line >= BATCH_LINE && operand_is_unit(p, p->a, l) &&
                 operand_is_unit(p, p->b, l) && result_is_unit(p, l);
    }
    return lanes && !dtype_is_complex(p->node->acc) &&
           sat_add(operand_bytes(p, p->a), operand_bytes(p, p->b)) <= room;
}

static bool has_schedule(Product *p)
{
    return !batches_are_lanes(p);
}

/* Does a selection alone read the result, and leave out some of it? Loops over pairs have their own halves. */
static bool is_needed_in_part(const Product *p)
{
    const NestItem *item = &p->nest->items[p->item];
    NodeRef c = NODE_NONE;
    Access at;
    bool plain = p->f->reads[item->node] == 1 && !item->mirror && !p->node->onto;
    for (uint32_t k = item->parent; plain && k != NEST_NONE; k = p->nest->items[k].parent) {
        plain = p->nest->items[k].from == 0;
    }
    return plain && mask_needed(p->arena, p->f->g, item->node, &c, &at);
}

static void set_levels(const Product *p, Schedule *b)
{
    goto_levels(p, b);
    b->needed = b->n_levels > 0 && is_needed_in_part(p);
}

/* ---- the price ---- */

/* Is the operand in memory, and no loop cuts what lies along its lines? Pieces of lines that are far from each other meet in
 * few sets of a cache: what is asked for ahead does not stay. */
static bool reads_whole_lines(const LeafPrice *l, NodeRef operand)
{
    const Graph *g = l->nest->graph;
    const Node *n = graph_node(g, l->node);
    bool whole = l->nest->values[operand].residence != RESIDE_TILE;
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const Access *a = &n->access[k];
        int32_t last = a->rank > 0 ? a->index[a->rank - 1].label : -1;
        whole = whole && (n->operand[k] != operand || last < 0 ||
                          l->extent[last] >= (double)nest_typical(g, n->extent[last]));
    }
    return whole;
}

static double product_seconds(Arena *scratch, LeafPrice *l)
{
    const Pricer *p = l->p;
    ContractionPrice c;
    double runs[2];
    uint32_t loops[2];
    for (uint32_t i = 0; i < 2; i++) {
        runs[i] = contraction_runs(p->facts, l->nest, l->item,
                                   &p->facts->uses[l->node].list.at[i], &loops[i]);
    }
    contraction_price(p->facts, p->machine, l->node, l->schedule, l->extent, runs, &c);
    memcpy(l->pack, c.pack, sizeof l->pack);
    for (uint32_t i = 0; i < 2; i++) {
        ScheduleRole r = price_role(l, i);
        l->before[r] = c.whole[r] ? loops[i] : 0;
    }
    l->touch[0].times = c.a_times;
    l->touch[1].times = c.b_times;
    l->touch[2].times = c.c_times;
    l->ahead = c.ahead != NEST_NONE && reads_whole_lines(l, c.ahead);
    return c.seconds * (p->masked
                            ? nest_mask_present(scratch, l->nest, l->node, l->schedule->needed)
                            : 1.0);
}

static double leaf_seconds(Arena *scratch, LeafPrice *l, double count)
{
    const Pricer *p = l->p;
    const Node *n = graph_node(l->nest->graph, l->node);
    const double *extent = l->extent;
    if (l->schedule != NULL) {
        return product_seconds(scratch, l);
    }
    bool vector = node_is_expression(n) || contraction_has_rows(p->facts, l->node);
    double element = (vector ? p->ops : p->scalar)[l->node];
    if (!vector || node_is_expression(n)) {
        element += contraction_columns(p->facts, l->nest, l->node, extent) *
                   p->machine->time.pack_line * (double)dtype_bytes(n->dtype) / 4.0;
    }
    uint32_t inner = contraction_innermost(n, extent);
    if (inner < n->n_labels && extent[inner] > 0) { /* short loops cost their start */
        bool vectors = vector && node_reduces(n, (int32_t)inner) &&
                       extent[inner] * (double)dtype_bytes(n->acc) >= LINE_BYTES &&
                       contraction_columns(p->facts, l->nest, l->node, extent) == 0;
        double start = p->machine->time.loop + (vectors ? p->machine->time.fold : 0.0);
        element += start / extent[inner];
    }
    return p->machine->time.statement + count * element;
}

static double short_runs(const LeafPrice *leaves, const LeafPrice *l, const Touch *t,
                         double granule, Copied *c)
{
    (void)leaves, (void)l, (void)t;
    return c->once ? 0.0 : c->runs * granule;
}

/* A leaf waits for the one before. */
static void add_leaves(const Nest *nest, LeafPrice *leaves, uint32_t n, NestCost *cost)
{
    (void)nest;
    for (LeafPrice *l = leaves; l < leaves + n; l++) {
        double waits = !l->ahead               ? l->waits
                       : l->waits > l->seconds ? l->waits - l->seconds
                                               : 0.0;
        double moved = 0.0;
        cost->arithmetic += l->seconds;
        cost->waits[l->slowest] += waits;
        cost->seconds += l->seconds + waits;
        l->seconds += waits;
        for (uint32_t i = 0; i < l->n; i++) {
            moved += l->touch[i].moved[l->slowest];
        }
        for (uint32_t i = 0; l->schedule != NULL && i < 2;
             i++) { /* copies wait for an operand */
            double *pack = &l->pack[price_role(l, i)];
            *pack = l->executions * *pack +
                    (moved > 0.0 ? waits * l->touch[i].moved[l->slowest] / moved : 0.0);
        }
    }
}

const MachineRules caches_rules = {
    .product = has_schedule,
    .levels = set_levels,
    .arithmetic = leaf_seconds,
    .short_runs = short_runs,
    .add = add_leaves,
};
