/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops threads share: one walk over a priced nest, from inside out. An item takes `one` seconds by one thread, in all of its
 * executions, and `path` at the least by the threads of the machine:
 *
 *     leaf   one, or what sharing a loop of its schedule or one around it leaves
 *     loop   the sum of the paths in its body; or, where its iterations may run at the same time, what begins and ends the
 *            shared region once for each execution, and the most iterations that one thread has, of all that it takes
 *
 * What attains the path of the whole nest is shared, and nothing inside of it. Iterations count: of one nothing is shared, of
 * seventeen by sixteen threads two are waited for. Work below a `piece` is no thread's.
 *
 * The price that chooses trees is the rule that marks loops, so a tree is found for its threads without a second search for each number of
 * them, which found the same trees in twice the time. */
#include <math.h>
#include <string.h>

#include "nest/contraction.h"
#include "nest/leaves.h"
#include "nest/parallel.h"
#include "nest/price_leaf.h"

/* A loop of so many iterations is cut well; else the longest of the level is: which one passes of targets share. */
#define ENOUGH 8.0
/* Panels of a packed block are so many pieces, at least. */
#define MANY 1e6

/* ---- the levels of a contraction ---- */

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
    x->all *= ceil(iterations);
}

/* Of the role's labels in steps of the level; null: of the batches. */
static Loops loops_of(const LeafPrice *l, const ScheduleLevel *level)
{
    ScheduleRole r = level == NULL ? ROLE_BATCH : level->role;
    Loops x = {1.0, 1.0, 1.0};
    for (uint32_t i = 0; i < l->schedule->n_labels[r]; i++) {
        uint32_t at = level == NULL ? i : l->schedule->n_labels[r] - 1 - i;
        double n = l->extent[l->schedule->label[r][at]];
        double step = level == NULL ? 1.0 : (double)schedule_step(level, at);
        if (step < n) {
            loop_inside(&x, n / step);
        }
    }
    return x;
}

/* Iterations that threads may have each: a loop over one label they cut between register tiles. */
static double cuts_of(const LeafPrice *l, const ScheduleLevel *level, double iterations)
{
    const Schedule *b = l->schedule;
    uint32_t several = 0;
    double all = 1.0;
    for (uint32_t i = 0; level != NULL && i < b->n_labels[level->role]; i++) {
        all *= l->extent[b->label[level->role][i]];
        several += l->extent[b->label[level->role][i]] > 1.0 ? 1 : 0;
    }
    return several != 1 || iterations <= 1.0
               ? iterations
               : all / (double)schedule_innermost(b, level->role)->tile;
}

/* What is left of the level's loop, of so many seconds in all. `inside`: of these, copies of the other operand, which each thread makes for itself. */
static double share_level(const LeafPrice *l, const ScheduleLevel *level, const Loops *x,
                          double met, double seconds, double inside)
{
    const Machine *m = l->p->machine;
    double n = cuts_of(l, level, x->iterations), most = fmin((double)m->threads, n);
    double more = x->iterations < most ? inside * (1.0 / x->iterations - 1.0 / most) : 0.0;
    return price_shared(m, seconds, met * x->around, n) + more;
}

/* The level that is best shared, n_levels for the batches, NEST_NONE for none, and the path. `marked`: the one that is. */
static uint32_t share_levels(const LeafPrice *l, bool marked, double *path)
{
    const Schedule *b = l->schedule;
    const Machine *m = l->p->machine;
    uint32_t best = NEST_NONE;
    double met = l->executions, packs = 0.0, alone = 0.0;
    bool seen[ROLE_COUNT] = {false};
    for (uint32_t i = 0; b != NULL && b->n_levels > 0 && i <= b->n_levels; i++) {
        const ScheduleLevel *level = i == 0 ? NULL : &b->level[i - 1];
        Loops x = loops_of(l, level);
        ScheduleRole r = level == NULL ? ROLE_BATCH : level->role;
        bool is = level == NULL ? b->parallel_batches : level->parallel;
        ScheduleRole other = r == ROLE_M ? ROLE_N : ROLE_M;
        double inside = r < ROLE_K && !seen[other] ? l->pack[other] : 0.0;
        double least = alone + share_level(l, level, &x, met, l->seconds - packs, inside);
        if (r != ROLE_K && !seen[r] && (!marked || is) && least < *path) {
            *path = least;
            best = i == 0 ? b->n_levels : i - 1;
        }
        met *= seen[r] ? 1.0 : x.all;
        seen[r] = true;
        if (level != NULL && level->pack) { /* all threads fill large panels */
            packs += l->pack[r];
            alone += fmin(l->pack[r], price_shared(m, l->pack[r], met, MANY));
        }
    }
    return best;
}

/* ---- the walk ---- */

/* The loop that the body of loop `k` ends in and whose iterations may run at the same time, too, or NEST_NONE: threads share those of both as one
 * sequence then. A sum is over both, and has a part for each pair, or over none. */
static uint32_t flat_inner(const Nest *nest, uint32_t k)
{
    uint32_t end = nest->items[k].end, c = k + 1;
    while (nest->items[c].end != end) {
        c = nest->items[c].end;
    }
    const NestAxis *axis =
        nest_is_loop(&nest->items[c]) ? &nest->axes[nest->items[c].axis] : NULL;
    bool may = axis != NULL && !nest->items[c].online && !nest_is_slice(nest->graph, axis) &&
               nest_axis_is_folded(nest->graph, axis) ==
                   nest_axis_is_folded(nest->graph, &nest->axes[nest->items[k].axis]);
    return may ? c : NEST_NONE;
}

/* Does a loop inside begin where this one is? The first iterations have most to do then, and threads some of both ends. */
static bool is_triangle(const Nest *nest, uint32_t k)
{
    bool any = false;
    for (uint32_t i = k + 1; i < nest->items[k].end; i++) {
        any |= nest->items[i].from == 1 + k;
    }
    return any;
}

/* Iterations of loop `k` as threads may share them; trips: of each loop. */
static double iterations(const Machine *m, const Nest *nest, uint32_t k, const double *trips)
{
    const NestItem *item = &nest->items[k];
    uint32_t inner = flat_inner(nest, k);
    double all = (double)nest_loop_extent(nest, k) / (double)item->tile;
    if (inner != NEST_NONE) {
        return floor(trips[k] * trips[inner]);
    }
    if (is_triangle(nest, k) && trips[k] < 2.0 * (double)m->threads) {
        return floor((trips[k] + 1.0) / 2.0);
    }
    return ceil(all) == trips[k] ? all : trips[k]; /* the last one may be a part */
}

double price_path(const Pricer *p, const Nest *nest, const LeafPrice *leaves, uint32_t n,
                  Arena *scratch, NestMarks *marks, double *more)
{
    uint32_t items = nest->n_items;
    double *one = ARENA_ARRAY(scratch, items + 1, double),
           *path = ARENA_ARRAY(scratch, items + 1, double);
    double *again = ARENA_ARRAY(scratch, items + 1, double),
           *packs = ARENA_ARRAY(scratch, items + 1, double);
    double *trips = ARENA_ARRAY(scratch, items, double),
           *met = ARENA_ARRAY(scratch, items, double);
    for (uint32_t k = 0; k < n; k++) {
        double times = 1.0;
        for (uint32_t d = 0; d < leaves[k].depth; d++) {
            trips[leaves[k].loop[d]] = leaves[k].trips[d];
            met[leaves[k].loop[d]] = times;
            times *= leaves[k].trips[d];
        }
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            for (uint32_t i = 0; i < leaves[k].before[r]; i++) {
                uint32_t d = leaves[k].depth - 1 - i;
                packs[leaves[k].loop[d]] += leaves[k].pack[r] * (leaves[k].trips[d] - 1.0);
            }
        }
    }
    for (uint32_t k = items; k-- > 0;) {
        const NestItem *item = &nest->items[k];
        uint32_t up = item->parent == NEST_NONE ? items : item->parent;
        if (!nest_is_loop(item)) {
            const LeafPrice *l = &leaves[--n];
            one[k] = path[k] = l->seconds;
            uint32_t level = share_levels(l, marks == NULL, &path[k]);
            if (l->depth == 0 && nest_leaf_shape(scratch, nest, l->node).ranges) {
                path[k] = fmin(path[k], price_shared(p->machine, l->seconds, 1.0, MANY));
            }
            const Node *node = graph_node(nest->graph, l->node);
            if (op_info(node->op)->kind == OPKIND_DENSE) {
                path[k] = fmin(path[k], dense_path(p->machine, nest->graph, node, l->seconds));
            }
            if (marks != NULL) {
                marks->level[k] = level;
                LeafLoops *loops =
                    marks->loops == NULL ? ARENA_NEW(scratch, LeafLoops) : &marks->loops[k];
                price_leaf_loops(scratch, l, loops);
                path[k] = loops->n > 0 ? fmin(path[k], loops->at[0].path) : path[k];
            }
        } else if (marks != NULL ? nest_may_share(p->machine, nest, k) : item->parallel) {
            double least = price_shared(p->machine, one[k] + packs[k], met[k],
                                        iterations(p->machine, nest, k, trips));
            bool better = least < path[k];
            path[k] = better ? least : path[k];
            again[k] = better ? packs[k] : again[k];
            if (marks != NULL) {
                marks->loop[k] = better;
            }
        }
        one[up] += one[k];
        path[up] += path[k];
        again[up] += again[k];
    }
    *more = again[items];
    return path[items];
}
