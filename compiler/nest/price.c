/* SPDX-License-Identifier: Apache-2.0 */
/* The traffic model. Leaf by leaf, for each level of memory:
 *
 *     F(X, p)   bytes of operand X that one iteration of the outermost p loops touches: along
 *               each dimension the tile of the innermost of these loops, else the extent
 *     cut       the outermost p for which all that the body touches fits the level
 *     bytes(X)  F(X, cut) times the trips of the loops around cut, leaving out the innermost of
 *               these while they do not move X and X fits beside the rest
 *
 * What a body needs at once is what its leaves touch of values from outside, each once, and of
 * its own blocks those that live at the same time. A value whose block fits a level together
 * with what is around it never leaves that level. A statement that does not fit is read as
 * contraction.c says that it is blocked. Time is the sum of what the arithmetic takes and what
 * the slowest level takes, summed over leaves: a leaf waits for the one before. What C's tiles ask for
 * ahead comes while they compute: there the longer one counts. What a leaf reads
 * twice in the same way it touches once; a result that comes in again, to be added to, is read
 * and written each time, after it was filled, as is, unfilled, what begins with what is there; a line that holds
 * positions of labels that run one by one is met again for each of them when the lines of one position do not fit. Memory is
 * read as the innermost pieces touch it: what loops cut into short runs costs as many, though all of it fits the level.
 *
 * The formula is that of Chimera (Zheng et al., HPCA 2023), level by level as in Welder (Shi et
 * al., OSDI 2023); lives in closed form because a nest has no other loops. */
#include "nest/price.h"

#include "nest/leaves.h"
#include "nest/masks.h"
#include "nest/place.h"
#include "nest/policy.h"
#include "nest/schedules.h"

/* ---- arithmetic of expressions ---- */

static double op_seconds(const MachineTimes *t, Op op, bool scalar)
{
    const OpInfo *info = op_info(op);
    switch (info->lanes) {
    case LANES_DIVIDE:
        return t->divide;
    case LANES_FUNCTION:
        return t->exp;
    case LANES_NO:
    case LANES_CHEAP:
        break;
    }
    bool library = info->rule == RULE_FLOAT || info->rule == RULE_RFLOAT;
    return library ? t->function : scalar ? t->scalar_op : t->op;
}

/* Is operand `k` the first one again? */
static bool is_squared(const Node *n, uint32_t k)
{
    return k > 0 && n->operand[k] == n->operand[0] && access_eq(n->access[k], n->access[0]);
}

void pricer_init(Arena *arena, const NestFacts *f, const Machine *machine, Pricer *p)
{
    const Graph *g = f->g;
    double *ops = ARENA_ARRAY(arena, g->nodes.n, double);
    double *scalar = ARENA_ARRAY(arena, g->nodes.n, double);
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        const Node *node = graph_node(g, n);
        if (op_info(node->op)->kind == OPKIND_LEAF || f->residence[n] == RESIDE_NONE) {
            continue;
        }
        double words = (double)dtype_bytes(node->acc) / 4.0;
        bool folds = !node_is_expression(node);
        uint32_t times = op_info(node->op)->kind == OPKIND_CONTRACT ? 2 : 1;
        Op op = folds || times > 1 ? OP_ADD : node->op;
        ops[n] = words * times * op_seconds(&machine->time, op, false);
        scalar[n] = words * times * op_seconds(&machine->time, op, true);
        for (uint32_t k = 0; k < (node->op == OP_EINSUM ? 2 : node->n_operands); k++) {
            if (f->residence[node->operand[k]] == RESIDE_INLINE && !is_squared(node, k)) {
                ops[n] += ops[node->operand[k]];
                scalar[n] += scalar[node->operand[k]];
            }
        }
    }
    int64_t *dims = ARENA_ARRAY(arena, g->dims.list.n, int64_t), inlined = 0;
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        dims[d] = g->dims.list.at[d].typical;
    }
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        if (f->residence[n] == RESIDE_INLINE) {
            inlined = sat_add(inlined, node_multiply_adds(graph_node(g, n), dims));
        }
    }
    bool masked = false;
    for (NodeRef n = 0; n < g->nodes.n; n++) {
        masked |= graph_node(g, n)->op == OP_INDEX;
    }
    *p =
        (Pricer){f, machine, machine_traits(machine), ops, scalar, dims, inlined, masked, NULL};
}

/* ---- one leaf ---- */

/* Bytes of the operand that come from the level outside of one of this capacity, in how many
 * runs, and how many of these bytes are there for the first time. */
static double level_bytes(const LeafPrice *l, const Touch *t, double capacity,
                          const double *body, const int64_t *beside, double *runs,
                          double *first)
{
    *runs = *first = 0.0;
    bool computed = l->nest->values[t->value].item != NEST_NONE;
    bool inner = computed && l->nest->values[t->value].residence != RESIDE_RESULT;
    if (inner && t->block <= PRICE_KEPT * capacity && (double)beside[t->value] <= capacity) {
        return 0.0; /* it never leaves */
    }
    uint32_t cut = 0;
    while (cut < l->depth && body[cut] > capacity) {
        cut++;
    }
    bool fits = body[cut] <= capacity;
    double trips = 1.0, fresh = 1.0;
    bool kept = fits && t->bytes[cut] * t->sums <= PRICE_KEPT * capacity;
    for (uint32_t p = cut; p > 0; p--) {
        kept = kept && !t->moves[p];
        trips *= kept ? 1.0 : l->trips[p - 1];
        fresh *= t->moves[p] ? l->trips[p - 1] : 1.0;
    }
    double times = fits || t->bytes[cut] <= PRICE_KEPT * capacity ? 1.0 : t->times;
    times *= times > 0.0 && !fits && t->part > PRICE_KEPT * capacity ? t->lines : 1.0;
    *runs = t->runs[cut] * trips * times;
    *first = t->bytes[cut] * fresh * times;
    return t->bytes[cut] * trips * times;
}

/* Positions that are not read together meet the same lines of memory again. */
static void set_lines(const LeafPrice *l, const Schedule *b, const double *extent, Touch *t)
{
    DType type = graph_node(l->nest->graph, t->node)->dtype;
    PriceRuns r = {1.0, (double)dtype_bytes(type), true};
    double granule = (double)l->p->machine->level[0].granule, again = 1.0;
    for (uint32_t d = t->access->rank; d-- > 0;) {
        int32_t label = t->access->index[d].label;
        double n = label < 0 ? 1.0 : extent[label],
               held = contraction_together(b, label, extent);
        again *= held < n && again * held * r.run < granule ? n / held : 1.0;
        price_runs_add(&r, held, n);
    }
    double lines = r.run < granule ? granule / r.run : 1.0;
    t->lines = again < lines ? again : lines;
    t->part = r.runs * (r.run < granule ? granule : r.run);
    bool together = t->part <= (double)l->p->machine->systolic.slab; /* all of a line at once */
    t->lines = together ? 1.0 : t->lines;
}

static double leaf_arithmetic(Arena *scratch, LeafPrice *l)
{
    const Pricer *p = l->p;
    const Node *n = graph_node(l->nest->graph, l->node);
    if (op_info(n->op)->kind == OPKIND_DENSE) {
        return dense_seconds(p->machine, l->nest->graph, n);
    }
    double *extent = ARENA_ARRAY(scratch, n->n_labels, double), count = 1.0;
    for (uint32_t k = 0; k < n->n_labels; k++) {
        extent[k] = price_positions(l, (int32_t)k, l->depth);
        count *= extent[k];
    }
    LeafShape shape = nest_leaf_shape(scratch, l->nest, l->node);
    for (uint32_t k = 0; k < shape.n_once; k++) {
        int32_t once = shape.alone[k];
        count /= extent[once] < 1.0 ? 1.0 : extent[once];
        extent[once] = 1.0;
    }
    int32_t folded = -1, other = -1;
    int64_t width = p->masked && p->kind->masked
                        ? nest_mask_band(scratch, l->nest->graph, l->node, &folded, &other)
                        : 0;
    uint32_t scope = l->nest->items[l->item].parent;
    if (width > 0 && (double)width < extent[folded] &&
        nest_loop_of(l->nest, scope, l->node, folded) == NEST_NONE &&
        nest_loop_of(l->nest, scope, l->node, other) == NEST_NONE) {
        count *= (double)width / extent[folded];
        extent[folded] = (double)width;
    }
    const Schedule *schedule = l->nest->values[l->node].schedule;
    if (schedule == NULL) {
        schedule = contraction_schedule(scratch, p->facts, p->machine, l->nest, l->item);
    }
    l->extent = extent;
    l->schedule = schedule != NULL && schedule->n_levels > 0 ? schedule : NULL;
    for (uint32_t i = 0; l->schedule != NULL && i < 3; i++) {
        set_lines(l, schedule, extent, &l->touch[i]);
    }
    return machine_rules(p->machine)->arithmetic(scratch, l, count);
}

/* What one execution of a sum that follows a maximum costs more: it is multiplied by the change,
 * once in each iteration of its loop. */
static double follow_seconds(const LeafPrice *l)
{
    const Graph *g = l->nest->graph;
    uint32_t fold = l->nest->values[l->node].fold, p = 0;
    double seconds = 0.0;
    while (p < l->depth && l->loop[p] != fold) {
        p++;
    }
    for (uint32_t k = 0; fold != NEST_NONE && l->nest->items[fold].online && k < g->online.n;
         k++) {
        const Online *o = &g->online.at[k];
        if (o->node != l->node || l->nest->values[o->base].fold != fold) {
            continue;
        }
        double count = 1.0, changes = 1.0, times = 1.0;
        const Node *n = graph_node(g, l->node);
        for (uint32_t d = 0; d < n->rank; d++) {
            count *= price_positions(l, n->out[d], p + 1);
            changes *= access_has_label(&o->at, n->out[d])
                           ? price_positions(l, n->out[d], p + 1)
                           : 1.0;
        }
        for (uint32_t i = p + 1; i < l->depth; i++) {
            times *= l->trips[i];
        }
        const MachineTimes *t = &l->p->machine->time;
        double words = (double)dtype_bytes(n->acc) / 4.0;
        seconds += (words * (count * 2.0 * t->op + changes * (t->exp + 4.0 * t->op)) +
                    3.0 * t->statement) /
                   times;
    }
    return seconds;
}

/* What all executions of a leaf cost more that stores its value at the mirrored place too: half of what lies beside the diagonal
 * is copied. */
static double mirror_seconds(const LeafPrice *l)
{
    const Nest *nest = l->nest;
    const Node *n = graph_node(nest->graph, l->node);
    double seconds = 0.0;
    for (uint32_t p = 0; nest->items[l->item].mirror && p < l->depth; p++) {
        const NestItem *item = &nest->items[l->loop[p]];
        double extent = price_typical(nest->graph, nest->axes[item->axis].extent), count = 1.0;
        const MachineTimes *t = &l->p->machine->time;
        for (uint32_t d = 0; d < n->rank; d++) {
            count *= price_typical(nest->graph, n->shape[d]);
        }
        if (item->from != 0 && extent > 0.0) {
            count *= 1.0 - price_pair_extent(nest, item, extent) / extent;
            seconds += count * (t->op + t->pack_line) * (double)dtype_bytes(n->dtype) / 4.0 +
                       l->trips[0] * t->statement;
        }
    }
    return seconds;
}

/* ---- all of them ---- */

/* Is the touched value a block that comes and goes with the iterations of `loop`? */
static bool is_block_inside(const Nest *nest, NodeRef n, uint32_t loop)
{
    const NestValue *v = &nest->values[n];
    return loop != NEST_NONE && v->item != NEST_NONE && v->residence == RESIDE_TILE &&
           nest_is_in(nest, v->alloc_loop, loop);
}

/* Adds what the leaf touches in one iteration of its outermost `p` loops, each value once, no
 * more of a block than there is, and no blocks inside of `loop`: `most[node]` is how much of it was added before. */
static double add_touched(const LeafPrice *l, uint32_t p, uint32_t loop, double *most)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < l->n; i++) {
        const Touch *t = &l->touch[i];
        bool tile = l->nest->values[t->value].residence == RESIDE_TILE;
        double bytes = tile && t->block < t->bytes[p] ? t->block : t->bytes[p];
        double more = bytes - most[t->value];
        if (more > 0.0 && !is_block_inside(l->nest, t->value, loop)) {
            sum += more;
            most[t->value] += more;
        }
    }
    return sum;
}

static void forget_touched(const LeafPrice *l, double *most)
{
    for (uint32_t i = 0; i < l->n; i++) {
        most[l->touch[i].value] = 0.0;
    }
}

/* What the body of each loop needs at once: every value from outside that leaves in it read or
 * write, in one iteration, and the most that its blocks take together. */
static double *body_bytes(Arena *scratch, const Nest *nest, const LeafPrice *leaves, uint32_t n,
                          const NestPlaces *places)
{
    double *body = ARENA_ARRAY(scratch, nest->n_items, double);
    double *most = ARENA_ARRAY(scratch, nest->graph->nodes.n, double);
    for (uint32_t k = 0, first = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        while (first < n && leaves[first].item < k) {
            first++;
        }
        uint32_t depth = nest_depth(nest->items, item->parent) + 1, end = first;
        body[k] = nest_is_loop(item) ? nest_peak(scratch, nest, places, k) : 0.0;
        for (; nest_is_loop(item) && end < n && leaves[end].item < item->end; end++) {
            body[k] += add_touched(&leaves[end], depth, k, most);
        }
        for (uint32_t i = first; i < end; i++) {
            forget_touched(&leaves[i], most);
        }
    }
    return body;
}

/* What fits a level comes in once, whoever reads it: arguments, and results that are written. */
static bool comes_once(const LeafPrice *leaves, uint32_t n, const LeafPrice *l, const Touch *t,
                       double capacity)
{
    const NestValue *v = &l->nest->values[t->value];
    bool outer = v->item == NEST_NONE || v->residence == RESIDE_RESULT;
    const MachineRules *rules = machine_rules(l->p->machine);
    return outer && (rules->is_still != NULL && rules->is_still(l, t)
                         ? rules->stays(leaves, n, l, t)
                         : t->block * t->sums <= PRICE_KEPT * capacity);
}

static void price_leaf(const LeafPrice *leaves, uint32_t n, LeafPrice *l, const double *body,
                       int64_t *const *beside, double *most, double arithmetic, double *seen,
                       NestCost *cost)
{
    const Machine *m = l->p->machine;
    double inside[NEST_DEPTH + 1], trips = 1.0;
    uint32_t nodes = l->nest->graph->nodes.n;
    inside[0] = add_touched(l, 0, NEST_NONE, most);
    forget_touched(l, most);
    for (uint32_t p = 0; p < l->depth; p++) {
        inside[p + 1] = body[l->loop[p]];
        trips *= l->trips[p];
    }
    const MachineRules *rules = machine_rules(l->p->machine);
    l->seconds = trips * arithmetic + mirror_seconds(l);
    l->executions = trips;
    for (uint32_t v = 0; v + 1 < m->n_levels; v++) {
        double capacity = (double)m->level[v + 1].capacity, bytes = 0.0, slow = 0.0;
        for (uint32_t i = 0; i < l->n; i++) {
            Touch *t = &l->touch[i];
            Copied c = {.once = comes_once(leaves, n, l, t, capacity)};
            c.bytes = level_bytes(l, t, capacity, inside, beside[v], &c.runs, &c.first);
            if (c.once) {
                double *was = &seen[v * nodes + t->node];
                c.bytes = c.first = t->bytes[0] > *was ? t->bytes[0] - *was : 0.0;
                *was += c.bytes;
            }
            double gap = rules->short_runs(leaves, l, t, (double)m->level[v].granule, &c);
            bool folds = t->written && c.bytes > c.first; /* it is filled, and then added to */
            double twice = t->adds || (t->written && m->reads_before_writing) ? 2.0 : 1.0;
            t->moved[v] = t->adds ? 2.0 * c.bytes
                          : folds ? 2.0 * c.bytes + twice * c.first
                                  : twice * c.bytes;
            bytes += t->moved[v];
            slow += (folds ? 2.0 : twice) * gap;
        }
        cost->bytes[v] += bytes;
        double wait = (bytes + slow) / m->level[v].bytes_per_second;
        l->slowest = wait > l->waits ? v : l->slowest;
        l->waits = wait > l->waits ? wait : l->waits;
    }
}

NestCost nest_price(Arena *scratch, const Pricer *p, const Nest *nest, NestMarks *marks)
{
    NestCost cost = {0};
    ArenaMark mark = arena_mark(scratch);
    LeafPrice *leaves = ARENA_ARRAY(scratch, nest->n_items, LeafPrice);
    int32_t *on = ARENA_ARRAY(scratch, nest->graph->nodes.n, int32_t);
    uint32_t n = 0;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        if (!nest_is_loop(&nest->items[k])) {
            LeafPrice *l = &leaves[n++];
            l->p = p;
            l->nest = nest;
            l->on = on;
            l->item = k;
            l->node = nest->items[k].node;
            price_leaf_begin(scratch, l);
        }
    }
    NestPlaces places = {0};
    nest_places(scratch, nest, &places);
    const double *body = body_bytes(scratch, nest, leaves, n, &places);
    int64_t *beside[MACHINE_LEVELS];
    for (uint32_t v = 0; v + 1 < p->machine->n_levels; v++) {
        double largest = PRICE_KEPT * (double)p->machine->level[v + 1].capacity;
        beside[v] = nest_beside(scratch, nest, &places, largest);
    }
    double *most = ARENA_ARRAY(scratch, nest->graph->nodes.n, double);
    double *seen = ARENA_ARRAY(scratch, (size_t)nest->graph->nodes.n * MACHINE_LEVELS, double);
    for (uint32_t k = 0; k < n; k++) {
        if (graph_node(nest->graph, leaves[k].node)->op == OP_STEPS) {
            continue; /* its steps are added apart (recurrence.c) */
        }
        double arithmetic = leaf_arithmetic(scratch, &leaves[k]) + follow_seconds(&leaves[k]);
        price_leaf(leaves, n, &leaves[k], body, beside, most, arithmetic, seen, &cost);
    }
    machine_rules(p->machine)->add(nest, leaves, n, &cost);
    for (uint32_t k = 0; p->leaf != NULL && k < n; k++) {
        p->leaf[leaves[k].item] = leaves[k].seconds;
    }
    price_count(p, nest, leaves, n, &cost);
    cost.path = cost.seconds;
    if (p->machine->threads > 1) {
        double more = 0.0;
        cost.path = price_path(p, nest, leaves, n, scratch, marks, &more);
        cost.seconds += more;
        cost.arithmetic += more;
        cost.path += p->machine->time.start;
    }
    cost.arithmetic += p->machine->time.start;
    cost.seconds += p->machine->time.start;
    arena_reset(scratch, mark);
    return cost;
}

void pricer_of(Arena *scratch, const Nest *nest, const Machine *machine, NestFacts *facts,
               Pricer *pricer)
{
    nest_facts_in(scratch, nest, facts);
    pricer_init(scratch, facts, machine, pricer);
}
