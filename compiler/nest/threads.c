/* SPDX-License-Identifier: Apache-2.0 */
/* Which loop of a contraction that stands in no other, or alone in loops over parts of its sum, is parallel: one over
 * batches, rows or columns, whose iterations write disjoint places; never the sum. What is packed inside of it each thread packs for itself, what is packed around it one thread
 * packs for all, while the others wait; and each time the loop is met threads are started. The price for a
 * few threads decides. */
#include "nest/contraction.h"

/* Threads that the price is for. */
#define THREADS 8.0
/* A loop of so many iterations is cut well; else the longest of the level is. */
#define ENOUGH 8.0
/* What a loop must save, for these threads. */
#define SAVES 0.7

typedef struct Shared {
    const Machine *machine;
    const Schedule *b;
    double *extent;     /* [labels] typical, of one execution */
    double times;       /* executions */
    double work, words; /* of all of them */
} Shared;

static double pieces(double extent, double tile)
{
    double n = extent / tile, whole = (double)(int64_t)n;
    return whole < n ? whole + 1.0 : whole < 1.0 ? 1.0 : whole;
}

/* Of loops one in the other: how often the one is met that is best cut, and its iterations. */
typedef struct Loops {
    double around, iterations, all;
} Loops;

static void loop_inside(Loops *x, double iterations)
{
    if (x->iterations < ENOUGH && iterations > x->iterations) {
        x->around = x->all;
        x->iterations = iterations;
    }
    x->all *= iterations;
}

static Loops batch_loops(const Shared *s)
{
    Loops x = {1.0, 1.0, 1.0};
    for (uint32_t i = 0; i < s->b->n_labels[ROLE_BATCH]; i++) {
        loop_inside(&x, s->extent[s->b->label[ROLE_BATCH][i]]);
    }
    return x;
}

static Loops level_loops(const Shared *s, const ScheduleLevel *level)
{
    Loops x = {1.0, 1.0, 1.0};
    for (uint32_t i = s->b->n_labels[level->role]; i-- > 0;) {
        double n = s->extent[s->b->label[level->role][i]],
               step = (double)schedule_step(level, i);
        if (step < n) {
            loop_inside(&x, pieces(n, step));
        }
    }
    return x;
}

/* Elements of the operand with these rows or columns. */
static double elements(const Shared *s, ScheduleRole role)
{
    double count = 1.0;
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        for (uint32_t i = 0; i < s->b->n_labels[r] && (r == role || r > ROLE_N); i++) {
            count *= s->extent[s->b->label[r][i]];
        }
    }
    return count;
}

static double price(const Shared *s, const Loops *x, double met, double alone)
{
    return s->times * (met * x->around * s->machine->time.piece + alone) +
           s->work * pieces(x->iterations, THREADS) / x->iterations;
}

/* The cheapest: a level's number, n_levels for batches; or no less than `most`. */
static uint32_t choose(const Shared *s, double most)
{
    const Schedule *b = s->b;
    Loops batches = batch_loops(s);
    uint32_t best = UINT32_MAX;
    double met = batches.all, alone = 0.0;
    bool seen[ROLE_BATCH] = {false};
    if (b->n_labels[ROLE_BATCH] > 0 && price(s, &batches, 1.0, 0.0) < most) {
        most = price(s, &batches, 1.0, 0.0);
        best = b->n_levels;
    }
    for (uint32_t i = 0; i < b->n_levels; i++) {
        const ScheduleLevel *level = &b->level[i];
        Loops x = level_loops(s, level);
        if (level->role != ROLE_K && !seen[level->role] && price(s, &x, met, alone) < most) {
            most = price(s, &x, met, alone);
            best = i;
        }
        met *= seen[level->role] ? 1.0 : x.all;
        seen[level->role] = true;
        alone +=
            level->pack ? elements(s, level->role) * s->machine->time.pack * s->words : 0.0;
    }
    return best;
}

/* Are all loops around the leaf over parts of its sum, with nothing else inside? */
static bool is_alone(const Nest *nest, uint32_t item)
{
    const NestItem *leaf = &nest->items[item];
    const Node *n = graph_node(nest->graph, leaf->node);
    uint32_t depth = 0;
    for (uint32_t k = leaf->parent; k != NEST_NONE; k = nest->items[k].parent) {
        int32_t label = nest_axis_label(&nest->axes[nest->items[k].axis], leaf->node);
        depth++;
        if (label < 0 || !node_reduces(n, label) || nest->items[k].end != item + 1 ||
            item - k != depth) {
            return false;
        }
    }
    return true;
}

const Schedule *contraction_threads(Arena *arena, const Machine *machine, const Nest *nest,
                                    uint32_t item, const Schedule *b)
{
    const Graph *g = nest->graph;
    const Node *n = graph_node(g, nest->items[item].node);
    Shared s = {
        .machine = machine, .b = b, .times = 1.0, .words = (double)dtype_bytes(n->acc) / 4.0};
    if (machine->time.piece == 0 || b->n_levels == 0 || !is_alone(nest, item)) {
        return b;
    }
    s.extent = ARENA_ARRAY(arena, n->n_labels + 1, double);
    s.work = machine->time.multiply_add * s.words;
    for (uint32_t l = 0; l < n->n_labels; l++) {
        s.extent[l] = (double)nest_typical(g, n->extent[l]);
        s.work *= s.extent[l];
    }
    for (uint32_t k = nest->items[item].parent; k != NEST_NONE; k = nest->items[k].parent) {
        const NestItem *loop = &nest->items[k];
        int32_t l = nest_axis_label(&nest->axes[loop->axis], nest->items[item].node);
        s.times *= pieces(s.extent[l], (double)loop->tile);
        s.extent[l] = (double)loop->tile;
    }
    uint32_t best = s.work < 2 * machine->time.piece ? UINT32_MAX : choose(&s, SAVES * s.work);
    if (best == UINT32_MAX) {
        return b;
    }
    Schedule *shared = arena_copy(arena, b, sizeof *b);
    ScheduleLevel *level = arena_copy(arena, b->level, b->n_levels * sizeof *level);
    shared->parallel_batches = best == b->n_levels;
    if (best < b->n_levels) {
        level[best].parallel = true;
    }
    shared->level = level;
    return shared;
}
