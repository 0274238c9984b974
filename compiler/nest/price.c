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

#include "nest/contraction.h"
#include "nest/greedy.h"
#include "nest/kinds.h"
#include "nest/masks.h"
#include "nest/leaves.h"

static double typical(const Graph *g, Dim d)
{
    return (double)nest_typical(g, d);
}

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
    *p = (Pricer){f, machine, machine_rules(machine), ops, scalar, dims, inlined, masked, NULL};
}

/* ---- one leaf ---- */

/* Positions that one run of a loop over pairs reaches, on average. */
static double pair_extent(const Nest *nest, const NestItem *item, double extent)
{
    double first = item->from == 0 ? extent : (double)nest->items[item->from - 1].tile;
    return first < extent ? (extent + first) / 2.0 : extent;
}

static void find_loops(Arena *scratch, LeafPrice *l)
{
    const Nest *nest = l->nest;
    uint32_t k = l->depth = nest_depth(nest->items, nest->items[l->item].parent);
    for (uint32_t at = nest->items[l->item].parent; at != NEST_NONE;
         at = nest->items[at].parent) {
        l->loop[--k] = at;
    }
    for (k = 0; k < l->depth; k++) {
        const NestItem *item = &nest->items[l->loop[k]];
        double extent = typical(nest->graph, nest->axes[item->axis].extent);
        for (uint32_t o = 0; o < k; o++) { /* a tile of a tile */
            const NestItem *outer = &nest->items[l->loop[o]];
            if (outer->axis == item->axis && (double)outer->tile < extent) {
                extent = (double)outer->tile;
            }
        }
        double tile = (double)item->tile, behind = pair_extent(nest, item, extent);
        l->trips[k] = extent <= tile ? 1.0 : (double)(int64_t)((extent + tile - 1.0) / tile);
        l->trips[k] = item->from == 0 ? l->trips[k]
                      : item->tile == nest->items[item->from - 1].tile
                          ? (l->trips[k] + 1.0) / 2.0
                      : behind <= tile ? 1.0
                                       : behind / tile;
        l->trips[k] *= l->p->masked ? nest_mask_fraction(scratch, nest, l->loop[k]) : 1.0;
    }
}

/* Positions of label `label` in one iteration of the outermost p loops. */
static double positions(const LeafPrice *l, int32_t label, uint32_t p)
{
    const Graph *g = l->nest->graph;
    double extent = typical(g, graph_node(g, l->node)->extent[label]);
    while (p > 0) {
        const NestItem *item = &l->nest->items[l->loop[--p]];
        if (nest_axis_label(&l->nest->axes[item->axis], l->node) == label) {
            double span = (double)nest_loop_span(l->nest, l->loop[p], l->node);
            extent = pair_extent(l->nest, item, extent);
            return span < extent ? span : extent;
        }
    }
    return extent;
}

/* The same of a view: of each dimension of its operand what the labels in its position reach. */
static void find_viewed_bytes(const LeafPrice *l, const Access *a, uint32_t p, Touch *t)
{
    const Graph *g = l->nest->graph;
    const Node *view = graph_node(g, t->node), *of = graph_node(g, view->operand[0]);
    const NestValue *v = &l->nest->values[t->value];
    double of_label[RANK_LIMIT], runs = 1.0, run = (double)dtype_bytes(view->dtype);
    bool contiguous = true;
    for (uint32_t d = 0; d < a->rank; d++) {
        int32_t label = a->index[d].label;
        of_label[d] = is_piece_label(label) ? typical(g, view->shape[d])
                      : label < 0           ? 1.0
                                            : positions(l, label, p);
    }
    for (uint32_t d = of->rank; d-- > 0;) {
        double part = view_positions(g, view, d, of_label);
        double whole = v->residence == RESIDE_TILE
                           ? (double)nest_block_extent(l->nest, t->value, v->alloc_loop, d)
                           : typical(g, of->shape[d]);
        part = part < whole ? part : whole;
        run *= contiguous ? part : 1.0;
        runs *= contiguous ? 1.0 : part;
        contiguous = contiguous && part >= whole;
    }
    t->bytes[p] = runs * run;
    t->runs[p] = run > 0 ? runs : 0.0;
}

/* What one iteration of the outermost p loops touches. A block is dense: its rows are as long as
 * the tiles around its allocation loop. */
static void find_bytes(const LeafPrice *l, const Access *a, uint32_t p, Touch *t)
{
    const NestValue *v = &l->nest->values[t->node];
    const Node *n = graph_node(l->nest->graph, t->node);
    double runs = 1.0, run = (double)dtype_bytes(n->dtype);
    bool contiguous = true;
    if (n->op == OP_VIEW) {
        find_viewed_bytes(l, a, p, t);
        return;
    }
    for (uint32_t d = a->rank; d-- > 0;) {
        int32_t label = a->index[d].label;
        Access after = {a->rank - d - 1, a->index + d + 1};
        bool diagonal = label != -1 && access_has_label(&after, label);
        double part = diagonal || label == -1 ? 1.0
                      : is_piece_label(label) ? typical(l->nest->graph, n->shape[d])
                                              : positions(l, label, p);
        double whole = v->residence == RESIDE_TILE && label >= 0
                           ? positions(l, label, t->alloc_loop)
                           : typical(l->nest->graph, n->shape[d]);
        run *= contiguous ? part : 1.0;
        runs *= contiguous ? 1.0 : part;
        contiguous = contiguous && part >= whole;
    }
    t->bytes[p] = runs * run;
    t->runs[p] = run > 0 ? runs : 0.0;
}

static void add_touch(LeafPrice *l, NodeRef of, const Access *a, bool written)
{
    NodeRef node = nest_place_of(l->nest, of), value = node;
    if (graph_node(l->nest->graph, node)->op == OP_VIEW) {
        NodeRef viewed = graph_node(l->nest->graph, node)->operand[0];
        value = l->nest->values[viewed].residence == RESIDE_TILE ? viewed : node;
    }
    const NestValue *v = &l->nest->values[value];
    Touch *t = &l->touch[l->n++];
    *t = (Touch){.node = node,
                 .value = value,
                 .access = a,
                 .written = written,
                 .times = 1.0,
                 .sums = 1.0,
                 .lines = 1.0};
    t->adds = written && graph_node(l->nest->graph, of)->onto;
    const Node *made = graph_node(l->nest->graph, value);
    if (l->p->rules->wide_sums && v->item != NEST_NONE && v->fold != NEST_NONE) {
        t->sums = (double)dtype_bytes(made->acc) / (double)dtype_bytes(made->dtype);
    }
    bool block = v->residence == RESIDE_TILE;
    t->alloc_loop = block ? nest_depth(l->nest->items, v->alloc_loop) : 0;
    t->block = block ? (double)v->bytes : (double)nest_node_bytes(l->nest->graph, node);
    for (uint32_t p = 0; p <= l->depth; p++) {
        find_bytes(l, a, p, t);
        if (p > 0) {
            const NestItem *item = &l->nest->items[l->loop[p - 1]];
            int32_t label = nest_axis_label(&l->nest->axes[item->axis], l->node);
            t->moves[p] = label < 0 || access_has_label(a, label);
        }
    }
    for (uint32_t p = l->depth; p-- > 0;) { /* runs of several do not join the next piece's */
        double pieces = t->moves[p + 1] ? l->trips[p] * t->runs[p + 1] : t->runs[p + 1];
        t->runs[p] = t->runs[p + 1] > 1.0 && pieces > t->runs[p] ? pieces : t->runs[p];
    }
}

/* Is it read so already, or its neighbours by another view? */
static bool is_touched(const LeafPrice *l, NodeRef node, const Access *a)
{
    const Graph *g = l->nest->graph;
    for (uint32_t i = 0; i < l->n; i++) {
        const Touch *t = &l->touch[i];
        bool same =
            t->node == node || views_overlap(g, graph_node(g, t->node), graph_node(g, node));
        if (same && access_eq(*t->access, *a)) {
            return true;
        }
    }
    return false;
}

static void find_touches(Arena *scratch, LeafPrice *l)
{
    const Node *n = graph_node(l->nest->graph, l->node);
    const UseList *u = &l->p->facts->uses[l->node];
    l->touch = ARENA_ARRAY(scratch, u->list.n + 1, Touch);
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (!u->list.at[i].apart && !is_touched(l, u->list.at[i].node, &u->list.at[i].access)) {
            add_touch(l, u->list.at[i].node, &u->list.at[i].access, false);
        }
    }
    Index *index = ARENA_ARRAY(scratch, n->rank, Index);
    for (uint32_t d = 0; d < n->rank; d++) {
        index[d] = (Index){n->out[d], 0};
    }
    Access *out = ARENA_NEW(scratch, Access);
    *out = (Access){n->rank, index};
    add_touch(l, l->node, out, true);
    bool there = nest_begins_there(l->nest, l->node);
    for (uint32_t i = 0; i < u->list.n; i++) {
        if (u->list.at[i].apart && !there &&
            !is_touched(l, u->list.at[i].node, &u->list.at[i].access)) {
            add_touch(l, u->list.at[i].node, &u->list.at[i].access, false);
        }
    }
}

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
    double run = (double)dtype_bytes(graph_node(l->nest->graph, t->node)->dtype);
    double granule = (double)l->p->machine->level[0].granule, runs = 1.0, again = 1.0;
    bool inside = true;
    for (uint32_t d = t->access->rank; d-- > 0;) {
        int32_t label = t->access->index[d].label;
        double n = label < 0 ? 1.0 : extent[label],
               held = contraction_together(b, label, extent);
        again *= held < n && again * held * run < granule ? n / held : 1.0;
        runs *= inside ? 1.0 : held;
        run *= inside ? held : 1.0;
        inside = inside && held >= n;
    }
    double lines = run < granule ? granule / run : 1.0;
    t->lines = again < lines ? again : lines;
    t->part = runs * (run < granule ? granule : run);
    bool together = t->part <= (double)l->p->machine->systolic.slab; /* all of a line at once */
    t->lines = together ? 1.0 : t->lines;
}

/* What one execution of the leaf computes: seconds, without traffic. */
ScheduleRole price_role(const LeafPrice *l, uint32_t operand)
{
    int32_t row = (int32_t)l->schedule->label[ROLE_M][0];
    return access_has_label(l->touch[operand].access, row) ? ROLE_M : ROLE_N;
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
        extent[k] = positions(l, (int32_t)k, l->depth);
        count *= extent[k];
    }
    LeafShape shape = nest_leaf_shape(scratch, l->nest, l->node);
    for (uint32_t k = 0; k < shape.n_once; k++) {
        int32_t once = shape.alone[k];
        count /= extent[once] < 1.0 ? 1.0 : extent[once];
        extent[once] = 1.0;
    }
    int32_t folded = -1, other = -1;
    int64_t width = p->masked && p->rules->masked
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
    return p->rules->arithmetic(scratch, l, count);
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
            count *= positions(l, n->out[d], p + 1);
            changes *=
                access_has_label(&o->at, n->out[d]) ? positions(l, n->out[d], p + 1) : 1.0;
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
        double extent = typical(nest->graph, nest->axes[item->axis].extent), count = 1.0;
        const MachineTimes *t = &l->p->machine->time;
        for (uint32_t d = 0; d < n->rank; d++) {
            count *= typical(nest->graph, n->shape[d]);
        }
        if (item->from != 0 && extent > 0.0) {
            count *= 1.0 - pair_extent(nest, item, extent) / extent;
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
           v->alloc_loop != NEST_NONE && loop <= v->alloc_loop &&
           v->alloc_loop < nest->items[loop].end;
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
    const MachineRules *rules = l->p->rules;
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
    const MachineRules *rules = l->p->rules;
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
            find_loops(scratch, l);
            find_touches(scratch, l);
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
    p->rules->add(nest, leaves, n, &cost);
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
    Residence *residence = ARENA_ARRAY(scratch, nest->graph->nodes.n, Residence);
    for (NodeRef n = 0; n < nest->graph->nodes.n; n++) {
        residence[n] = nest->values[n].residence;
    }
    nest_facts_of(scratch, nest->graph, residence, facts);
    pricer_init(scratch, facts, machine, pricer);
}

void nest_leaf_seconds(Ctx *ctx, const Machine *machine, const Nest *nest, double *seconds)
{
    Arena scratch;
    Pricer pricer;
    NestFacts facts;
    arena_init(&scratch, &ctx->budget);
    pricer_of(&scratch, nest, machine, &facts, &pricer);
    pricer.leaf = seconds;
    (void)nest_price(&scratch, &pricer, nest, NULL);
    arena_release(&scratch);
}

NestCost nest_cost_at(Arena *scratch, const Machine *machine, const Nest *nest, int32_t dim,
                      int64_t size)
{
    ArenaMark mark = arena_mark(scratch);
    Pricer pricer;
    NestFacts facts;
    Nest at = *nest;
    NestValue *values =
        arena_copy(scratch, nest->values, nest->graph->nodes.n * sizeof *values);
    at.graph = nest_graph_at(scratch, nest->graph, dim, size);
    at.values = values;
    nest_set_bytes(&at, values);
    pricer_of(scratch, &at, machine, &facts, &pricer);
    NestCost cost = nest_price(scratch, &pricer, &at, NULL);
    arena_reset(scratch, mark);
    return cost;
}

void nest_estimate(Ctx *ctx, const Machine *machine, Nest *nest)
{
    Arena scratch;
    Pricer pricer;
    NestFacts facts;
    Tree none = {0};
    arena_init(&scratch, &ctx->budget);
    pricer_of(&scratch, nest, machine, &facts, &pricer);
    nest->cost = nest_price(&scratch, &pricer, nest, NULL);
    nest->compulsory = nest_compulsory(&scratch, &facts, machine);
    unfused_tree(ctx, &scratch, &facts, machine, &none);
    Nest *plain = tree_nest(&scratch, nest->graph, &none);
    NestValue *values = nest_place(&scratch, &facts, NULL, plain);
    plain->values = values;
    nest_set_leaves(&scratch, machine, plain, values);
    NestMarks marks = {ARENA_ARRAY(&scratch, plain->n_items, bool),
                       ARENA_ARRAY(&scratch, plain->n_items, uint32_t), NULL};
    nest->unfused = nest_price(&scratch, &pricer, plain, &marks);
    price_add_steps(machine, nest, &nest->cost);
    price_add_steps(machine, nest, &nest->unfused);
    arena_release(&scratch);
}
