/* SPDX-License-Identifier: Apache-2.0 */
/* Machines with an engine for matrices, whose operands are placed by hand, and others beside it (policy.h). A contraction's schedule says which
 * operand is stationary and has the rows, and levels of strips of tiles that live at once (schedule/strips.c). What stands in the same
 * loops takes as long as the engine that has most to do, and what was read is on chip.
 *
 * Which label of a product lies on partitions is chosen by what reads it, through functions: what another product sums lies there, so a chain
 * transposes nothing. Three things were needed that only texts showed: arguments that no loop moves stay on chip if those of one loop fit
 * together; what loops add to a result without room is read and written in each iteration; engines wait for each other as long as an
 * iteration takes of leaves that take time. Tried and left: adding up first iterations of leaves (two convolutions 38 % slower, causal
 * attention 15 %), and leaving vectors out everywhere (softmax 121 lines, for 89). */
#include <math.h>

#include "nest/policy.h"

static const Use *product_following(const Product *p, NodeRef *reader)
{
    const Nest *nest = p->nest;
    NodeRef n = nest->items[p->item].node;
    uint32_t next = p->item + 1;
    if (next >= nest->n_items || nest_is_loop(&nest->items[next]) ||
        nest->items[next].parent != nest->items[p->item].parent ||
        nest->values[n].last != next || nest->values[n].residence == RESIDE_RESULT ||
        !node_is_expression(graph_node(p->f->g, nest->items[next].node))) {
        return NULL;
    }
    *reader = nest->items[next].node;
    const UseList *u = &p->f->uses[*reader];
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (u->list.at[i].node == n) {
            return &u->list.at[i];
        }
    }
    return NULL;
}

static bool fits_chip(const Product *p, NodeRef n)
{
    const NestValue *v = &p->nest->values[n];
    bool memory = v->residence == RESIDE_WORKSPACE ||
                  (v->residence == RESIDE_RESULT && v->fold != NEST_NONE);
    return v->residence == RESIDE_TILE ||
           (memory && nest_node_bytes(p->f->g, n) <= machine_tile_capacity(p->machine));
}

/* Does the product of two operands keep a label that one of them lacks? One of batches alone is elementwise, with sums of rows. */
static bool keeps_rows(const NestFacts *f, NodeRef product)
{
    const Node *n = graph_node(f->g, product);
    const Use *use = f->uses[product].list.at;
    bool rows = false;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        rows |=
            !node_reduces(n, (int32_t)l) && !(access_has_label(&use[0].access, (int32_t)l) &&
                                              access_has_label(&use[1].access, (int32_t)l));
    }
    return rows;
}

/* What sums or folds a label of a value. */
typedef struct LabelUses {
    uint32_t products, folds; /* that read it, and */
    bool product, fold;       /* that read what expressions make of it */
} LabelUses;

#define THROUGH 4 /* expressions, one after the other */

static void label_uses(const Product *p, NodeRef n, int32_t label, uint32_t depth,
                       LabelUses *out)
{
    const NestValue *v = &p->nest->values[n];
    for (uint32_t k = v->item + 1; k <= v->last && k < p->nest->n_items; k++) {
        NodeRef r = p->nest->items[k].node;
        if (nest_is_loop(&p->nest->items[k])) {
            continue;
        }
        const UseList *u = &p->f->uses[r];
        for (uint32_t i = 0; i < u->list.n; i++) {
            const Access *a = &u->list.at[i].access;
            for (uint32_t d = 0; u->list.at[i].node == n && d < a->rank; d++) {
                bool here = graph_node(p->f->g, n)->out[d] == label && a->index[d].label >= 0;
                bool expression = node_is_expression(graph_node(p->f->g, r));
                if (here && expression && depth < THROUGH) {
                    label_uses(p, r, a->index[d].label, depth + 1, out);
                } else if (here && node_reduces(graph_node(p->f->g, r), a->index[d].label)) {
                    bool product = uses_count(u) == 2 && keeps_rows(p->f, r);
                    out->products += product && depth == 0;
                    out->folds += !product && depth == 0;
                    out->product |= product && depth > 0;
                    out->fold |= !product && depth > 0;
                }
            }
        }
    }
}

/* How well label `label` of a value lies on partitions: it fills them, is summed by products that read it, or what expressions make of it,
 * and not folded otherwise, along the free axis. */
static double partition_score(const Product *p, NodeRef n, int32_t label, double extent)
{
    LabelUses uses = {0};
    double most = (double)(p->machine->tile.bytes / p->machine->tile.line);
    double score = extent < most ? extent : most;
    label_uses(p, n, label, 0, &uses);
    for (uint32_t i = 0; i < uses.products + uses.folds; i++) {
        score *= i < uses.products ? 3.0 : 0.7;
    }
    return score * (uses.fold ? 0.7 : uses.product ? 3.0 : 1.0);
}

/* The labels of the product in the order of what its tiles are emptied into, and the one that
 * goes on partitions there, or NONE in memory. */
static uint32_t final_labels(const Product *p, uint32_t *label, uint32_t *count)
{
    const Node *n = p->node;
    NodeRef node = p->nest->items[p->item].node, into = node;
    const Use *u = product_following(p, &into);
    const Node *final = graph_node(p->f->g, into);
    uint32_t best = NONE;
    double most = 0;
    bool chip = fits_chip(p, into);
    *count = 0;
    for (uint32_t d = 0; d < final->rank; d++) {
        uint32_t l = u == NULL ? (uint32_t) final->out[d] : NONE;
        for (uint32_t e = 0; u != NULL && e < u->access.rank; e++) {
            l = u->access.index[e].label == final->out[d] ? (uint32_t)n->out[e] : l;
        }
        if (l == NONE) {
            continue;
        }
        label[(*count)++] = l;
        bool side = access_has_label(&p->a->access, (int32_t)l) !=
                    access_has_label(&p->b->access, (int32_t)l);
        if (chip && side && !p->extent[l].position) {
            double score =
                partition_score(p, into, final->out[d], (double)p->extent[l].typical);
            best = best == NONE || score > most ? l : best;
            most = best == l ? score : most;
        }
    }
    return best;
}

/* Which operand has the rows; false: the engine does not do such a product. */
static bool find_sides(Product *p)
{
    const Node *n = p->node;
    if (op_info(n->op)->kind != OPKIND_CONTRACT) {
        return false;
    }
    for (uint32_t l = 0; l < n->n_labels; l++) {
        bool both = access_has_label(&p->a->access, (int32_t)l) &&
                    access_has_label(&p->b->access, (int32_t)l);
        if (!!node_reduces(n, (int32_t)l) && !p->extent[l].position && !both) {
            return false;
        }
    }
    if (graph_node(p->f->g, p->a->node)->dtype != graph_node(p->f->g, p->b->node)->dtype) {
        return false;
    }
    const Use *left = &p->f->uses[p->nest->items[p->item].node].list.at[0];
    uint32_t *label = ARENA_ARRAY(p->arena, n->rank + 1, uint32_t), count = 0, last = NONE;
    uint32_t partition = final_labels(p, label, &count);
    for (uint32_t i = 0; i < count; i++) {
        last =
            p->extent[label[i]].typical > 1 && !p->extent[label[i]].position ? label[i] : last;
    }
    const Use *rows = left;
    if (partition != NONE) {
        rows = access_has_label(&p->a->access, (int32_t)partition) ? p->a : p->b;
    } else if (last != NONE && access_has_label(&p->a->access, (int32_t)last) !=
                                   access_has_label(&p->b->access, (int32_t)last)) {
        rows = access_has_label(&p->a->access, (int32_t)last) ? p->b : p->a;
    }
    if (rows != p->a) {
        p->b = p->a;
        p->a = rows;
    }
    uint32_t *order = ARENA_ARRAY(p->arena, n->rank + 1, uint32_t), at = 0;
    for (uint32_t i = count; i-- > 0;) {
        order[at++] = label[i];
    }
    for (uint32_t d = n->rank; d-- > 0;) { /* what is not there */
        bool there = false;
        for (uint32_t i = 0; i < count; i++) {
            there |= label[i] == (uint32_t)n->out[d];
        }
        if (!there) {
            order[at++] = (uint32_t)n->out[d];
        }
    }
    p->order = order;
    p->chip = partition != NONE;
    p->row = partition;
    p->col = NONE;
    for (uint32_t i = 0; i < at; i++) {
        ScheduleRole r = p->extent[order[i]].position ? ROLE_COUNT : product_role(p, order[i]);
        p->row = r == ROLE_M && p->row == NONE ? order[i] : p->row;
        p->col = r == ROLE_N && p->col == NONE ? order[i] : p->col;
    }
    return p->row != NONE && p->col != NONE;
}

/* Are the operands one, with the labels of rows and columns exchanged? */
static bool is_mirrored(const Product *p, const Schedule *b)
{
    const Access *x = &p->a->access, *y = &p->b->access;
    bool same = p->a->node == p->b->node && b->n_labels[ROLE_M] == 1 &&
                b->n_labels[ROLE_N] == 1 && b->n_labels[ROLE_BATCH] == 0;
    for (uint32_t d = 0; same && d < x->rank; d++) {
        int32_t want =
            x->index[d].label == (int32_t)p->row ? (int32_t)p->col : x->index[d].label;
        same = y->index[d].label == want && y->index[d].offset == x->index[d].offset;
    }
    return same;
}

/* Does its contiguous label lie on partitions, or might it on chip? */
static bool may_turn(const Product *p, const Schedule *b, const Use *u)
{
    const NestValue *v = &p->nest->values[u->node];
    bool turns = v->residence != RESIDE_ARGUMENT && fits_chip(p, u->node);
    for (uint32_t i = 0; i < b->n_labels[ROLE_K]; i++) {
        turns |= operand_is_unit(p, u, b->label[ROLE_K][i]);
    }
    return turns || v->residence == RESIDE_RESULT;
}

static int64_t boxes_of(const Product *p, const Schedule *b, ScheduleRole r, uint32_t n,
                        int64_t most, int64_t *count)
{
    int64_t *extent = ARENA_ARRAY(p->arena, n + 1, int64_t);
    *count = 1;
    for (uint32_t i = 0; i < n; i++) {
        extent[i] = p->extent[b->label[r][i]].typical;
        extent[i] = extent[i] < 1 ? 1 : extent[i];
        *count = sat_mul(*count, extent[i]);
    }
    return schedule_boxes(n, extent, most);
}

/* How many labels of rows share a tile: on chip one has the partitions. */
static uint32_t shared_rows(const Product *p, const Schedule *b)
{
    uint32_t n = 1;
    int64_t count = p->extent[p->row].typical, most = p->machine->tile.rows;
    while (!p->chip && n < b->n_labels[ROLE_M] &&
           sat_mul(count, p->extent[b->label[ROLE_M][n]].typical) <= most) {
        count *= p->extent[b->label[ROLE_M][n++]].typical;
    }
    return p->chip || count * 2 > most ? n : b->n_labels[ROLE_M];
}

/* The price of an operand's bytes in SBUF: each step of the sum takes all partitions. */
static double packed_bytes(const Product *p, const Use *u, int64_t steps, int64_t positions)
{
    bool there = p->nest->values[u->node].residence == RESIDE_TILE;
    int64_t size = dtype_bytes(graph_node(p->f->g, u->node)->dtype);
    return there ? 0
                 : (double)sat_mul(steps, p->machine->tile.sum) * (double)positions *
                       (double)size;
}

/* Equal tiles of the only label of a role, where there are as many of them as of full ones, and all is in memory: 4 times 125 rows rather
 * than 3 times 128 and 116. */
static int64_t even_tile(const Product *p, const Schedule *b, ScheduleRole r, int64_t most,
                         const Strips *x)
{
    bool memory = p->nest->values[p->a->node].residence == RESIDE_ARGUMENT &&
                  p->nest->values[p->b->node].residence == RESIDE_ARGUMENT && !p->chip;
    const LabelExtent *own = b->n_labels[r] == 1 ? &p->extent[b->label[r][0]] : NULL;
    if (own == NULL || !own->exact || !memory || x->mirrored) {
        return most;
    }
    int64_t tiles = (own->most + most - 1) / most;
    return tiles > 1 && own->most % tiles == 0 ? own->most / tiles : most;
}

static void set_levels(const Product *p, Schedule *b)
{
    NodeRef node = p->nest->items[p->item].node, into = node;
    const NestValue *v = &p->nest->values[node];
    Strips x = schedule_strips_on(p->machine, p->machine->systolic.live);
    bool plain = v->fold == NEST_NONE && product_following(p, &into) == NULL && !p->chip;
    x.mirrored = plain && is_mirrored(p, b);
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        x.tile[r] = even_tile(p, b, r, x.tile[r], &x);
    }
    int64_t rows = 0, columns = 0, sums = 0;
    x.tiles[ROLE_M] = boxes_of(p, b, ROLE_M, shared_rows(p, b), x.tile[ROLE_M], &rows);
    x.tiles[ROLE_N] = boxes_of(p, b, ROLE_N, b->n_labels[ROLE_N], x.tile[ROLE_N], &columns);
    int64_t steps = boxes_of(p, b, ROLE_K, b->n_labels[ROLE_K], x.tile[ROLE_K], &sums);
    x.bytes[ROLE_M] = packed_bytes(p, p->a, steps, rows);
    x.bytes[ROLE_N] = packed_bytes(p, p->b, steps, columns);
    if (!plain || may_turn(p, b, p->a) || may_turn(p, b, p->b)) {
        x.live = x.panel_rows = p->machine->systolic.live_busy;
    }
    ScheduleLevel *level = ARENA_ARRAY(p->arena, STRIP_LEVELS, ScheduleLevel);
    b->n_levels = schedule_strips(&x, level);
    b->level = level;
}

/* ---- the price ---- */

/* Has a leaf before it in the same body, the first of all is `first`, read the same? Then it is on chip. */
static bool was_read(const LeafPrice *first, const LeafPrice *l, const Touch *t)
{
    bool was = false;
    for (const LeafPrice *m = first; m < l; m++) {
        bool beside = l->nest->items[m->item].parent == l->nest->items[l->item].parent;
        for (uint32_t i = 0; i < m->n && beside && l->depth > 0; i++) {
            const Touch *o = &m->touch[i];
            was |= o->node == t->node && !o->written && !t->written &&
                   !(o->bytes[m->depth] < t->bytes[l->depth]);
        }
    }
    return was;
}

/* What a systolic machine may pack, a part for one argument that is there for all iterations of loops that do not move it, and one for all
 * of those together. */
#define PACKED     0.4
#define ALL_PACKED 0.8

/* Is it an argument of which all iterations of the leaf's loops read the same? */
static bool is_still(const LeafPrice *l, const Touch *t)
{
    bool still = l->nest->values[t->value].item == NEST_NONE;
    for (uint32_t d = 1; d <= l->depth; d++) {
        still = still && !t->moves[d];
    }
    return still;
}

/* Bytes of such arguments that stand in the same outermost loop, each once. */
static double still_beside(const LeafPrice *leaves, uint32_t n, const LeafPrice *l)
{
    double bytes = 0.0;
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < leaves[k].n && leaves[k].depth > 0; i++) {
            const Touch *t = &leaves[k].touch[i];
            bool here = leaves[k].loop[0] == l->loop[0] && is_still(&leaves[k], t), was = false;
            for (uint32_t j = 0; j < k && here; j++) {
                for (uint32_t o = 0; o < leaves[j].n; o++) {
                    was |= leaves[j].touch[o].node == t->node &&
                           is_still(&leaves[j], &leaves[j].touch[o]);
                }
            }
            bytes += here && !was ? t->block : 0.0;
        }
    }
    return bytes;
}

static bool stays(const LeafPrice *leaves, uint32_t n, const LeafPrice *l, const Touch *t)
{
    double packed = (double)l->p->machine->systolic.packed;
    return t->block <= PACKED * packed &&
           (l->depth == 0 || still_beside(leaves, n, l) <= ALL_PACKED * packed);
}

/* Iterations of the loops that are around all of the leaves. */
static double shared_trips(const LeafPrice *leaves, uint32_t n)
{
    uint32_t shared = leaves[0].depth;
    double trips = 1.0;
    for (uint32_t k = 1; k < n; k++) {
        uint32_t same = 0;
        while (same < shared && same < leaves[k].depth &&
               leaves[k].loop[same] == leaves[0].loop[same]) {
            same++;
        }
        shared = same;
    }
    for (uint32_t p = 0; p < shared; p++) {
        trips *= leaves[0].trips[p];
    }
    return trips;
}

/* The back end says how long each engine is busy. An engine adds up in tiles. */
static double leaf_engines(Arena *scratch, LeafPrice *l, double count)
{
    (void)scratch, (void)count;
    const SystolicTiles *m = &l->p->machine->systolic;
    NestLeaf leaf = {l->p->facts, l->nest, l->item, l->schedule, l->extent, l->on};
    if (l->schedule != NULL) {
        double times[ROLE_K];
        contraction_reads(l->schedule, l->extent, times);
        l->touch[0].times = times[price_role(l, 0)];
        l->touch[1].times = times[price_role(l, 1)];
    }
    m->leaf(m->chip, &leaf, &l->engines);
    return 0.0;
}

/* A run is a descriptor of a DMA, and one that is shorter than a granule takes as long. */
static double short_runs(const LeafPrice *leaves, const LeafPrice *l, const Touch *t,
                         double granule, Copied *c)
{
    c->runs = !c->once ? c->runs : c->bytes > 0.0 ? t->runs[0] : 0.0;
    if (was_read(leaves, l, t)) {
        c->bytes = c->runs = c->first = 0.0;
    }
    return fmax(c->runs * granule - c->bytes, 0.0);
}

#define LITTLE 0.02    /* of the time: engines are at the rest meanwhile */
#define LATER  0.05    /* of the others' time: engines wait for each other now and then */
#define CHAIN  0.25e-6 /* seconds from one statement to the next, which waits for it */
#define ALONE  1.0e-6  /* the same where nothing else goes on */

static double all_engines(const Engines *e)
{
    return e->tensor + e->vector + e->scalar + e->copies + e->memory;
}

static void add_engines(Engines *sum, const Engines *one, double times)
{
    sum->tensor += times * one->tensor;
    sum->vector += times * one->vector;
    sum->scalar += times * one->scalar;
    sum->copies += times * one->copies;
    sum->memory += one->memory;
}

/* Of what runs in the same loops, in so many statements one after the other: as long as the engine that has most to do, and one iteration
 * until all of them are at it. */
static double seconds_of(const Engines *e, double statements)
{
    double both = 0.5 * (e->vector + e->scalar + e->copies);
    double longest = fmax(fmax(e->vector, e->scalar), fmax(both, e->tensor));
    longest = fmax(longest, fmax(e->memory, CHAIN * statements));
    double all = all_engines(e) + ALONE * statements;
    double others = fmax(e->tensor + e->memory + 2.0 * both - longest, 0.0);
    return longest * (1.0 + 0.5 * LATER) + LATER * others +
           fmax(all - longest, 0.0) / fmax(e->trips, 1.0);
}

/* What stands in the same outermost loop runs together, other statements one after the other. */
static void add_leaves(const Nest *nest, LeafPrice *leaves, uint32_t n, NestCost *cost)
{
    for (LeafPrice *l = leaves; l < leaves + n; l++) {
        l->engines.vector += l->executions > 0.0 ? l->seconds / l->executions : 0.0;
        l->engines.memory = l->engines.memory * l->executions + l->waits;
    }
    for (uint32_t k = 0, first = 0; k < n; first = k) {
        Engines sum = {0}, alone = {0};
        double statements = 0.0;
        uint32_t top = leaves[k].depth > 0 ? leaves[k].loop[0] : leaves[k].item;
        uint32_t end = leaves[k].depth > 0 ? nest->items[top].end : top + 1;
        for (; k < n && leaves[k].item < end; k++) {
            add_engines(&sum, &leaves[k].engines, leaves[k].executions);
            statements += leaves[k].executions;
        }
        double shared = shared_trips(&leaves[first], k - first);
        double all = all_engines(&sum);
        uint32_t deepest = 0;
        for (uint32_t i = first; i < k; i++) {
            deepest = leaves[i].depth > deepest ? leaves[i].depth : deepest;
        }
        sum.trips = INFINITY;
        for (uint32_t i = first; i < k;
             i++) { /* loops around some of them are steps of an iteration */
            double steps = leaves[i].engines.trips * leaves[i].executions / shared;
            double trips = shared * (steps > 1.0 ? steps : 1.0);
            bool little = leaves[i].depth < deepest &&
                          all_engines(&leaves[i].engines) * leaves[i].executions < LITTLE * all;
            sum.trips = trips < sum.trips && !little ? trips : sum.trips;
        }
        sum.trips = sum.trips < INFINITY ? sum.trips : shared;
        alone = sum;
        alone.memory = 0.0;
        double seconds = seconds_of(&sum, statements), busy = seconds_of(&alone, statements);
        cost->arithmetic += busy;
        cost->waits[0] += seconds - busy;
        cost->seconds += seconds;
    }
}

const MachineRules systolic_rules = {
    .product = find_sides,
    .levels = set_levels,
    .arithmetic = leaf_engines,
    .is_still = is_still,
    .stays = stays,
    .short_runs = short_runs,
    .add = add_leaves,
};
