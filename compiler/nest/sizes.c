/* SPDX-License-Identifier: Apache-2.0 */
/* Nests for other sizes of an open dim than its typical one. On either side of that, some doublings
 * away, a nest is searched and priced beside the one for typical extents. One that saves much is
 * kept, for sizes as far in as it is the cheaper one; one that is cheaper for typical extents too
 * is chosen for these. All searches together take twice the steps that the one for typical
 * extents took. */
#include "nest/estimate.h"
#include "nest/objective.h"
#include "nest/place.h"
#include "nest/plan.h"

/* Doublings from the typical size to the one that a nest is made for. */
#define AWAY 3
/* Open dims that are looked at, the first ones. */
#define DIMS 8
/* How many times longer the nest for typical extents must take to have another beside it, and how
 * many seconds: a kernel becomes as much longer. */
#define GAIN  1.3
#define SAVED 1e-6
/* What the nest for typical extents is replaced for. */
#define BETTER 0.95
/* How many times longer it takes at the border: prices are no better known. The border is found
 * to one part in so many of it. */
#define EDGE 1.15
#define NEAR 8
/* Steps that every search may take. */
#define STEPS 8

/* Sizes on one side of the typical one. */
typedef struct Side {
    int32_t dim;
    bool above;
    uint32_t away; /* doublings to where the nest is made for */
    Nest *nest;    /* null: none is worth it */
    double gain;
    int64_t border; /* it is for sizes from there on */
} Side;

typedef struct Sizes {
    Ctx *ctx;
    Arena *arena;
    const Machine *machine;
    Nest *chosen;
    uint32_t effort;
    uint64_t steps; /* of one search, at most */
} Sizes;

static int64_t size_at(const Sizes *s, const Side *side, uint32_t away)
{
    int64_t typical = s->chosen->graph->dims.list.at[side->dim].typical;
    return side->above ? typical << away : typical >> away;
}

static NestCost cost_at(const Sizes *s, const Nest *nest, const Side *side, int64_t size)
{
    return nest_cost_at(s->arena, s->machine, nest, side->dim, size);
}

/* How many times longer the chosen nest takes there than the side's. */
static double gain_at(const Sizes *s, const Side *side, int64_t size)
{
    return cost_at(s, s->chosen, side, size).seconds /
           cost_at(s, side->nest, side, size).seconds;
}

/* No nest takes less: all contractions in full register tiles. */
static double least_seconds(const Sizes *s, const Graph *g)
{
    double adds, seconds;
    nest_full_tiles(s->chosen, g, s->machine, s->arena, &adds, &seconds);
    return seconds;
}

/* Sets how far away a nest is made for; 0: there are no such sizes. */
static void set_away(const Sizes *s, Side *side)
{
    int64_t most = SIZE_LIMIT >> 2 * AWAY;
    side->away = AWAY;
    while (side->away > 0 && (size_at(s, side, side->away) < 1 || size_at(s, side, 0) > most)) {
        side->away--;
    }
}

/* Unless there is nothing to gain. */
static void search_side(const Sizes *s, Side *side)
{
    set_away(s, side);
    if (side->away == 0) {
        return;
    }
    int64_t size = size_at(s, side, side->away);
    const Graph *g = nest_graph_at(s->arena, s->chosen->graph, side->dim, size);
    double own = cost_at(s, s->chosen, side, size).seconds, least = least_seconds(s, g);
    if (own >= GAIN * least && own - least >= SAVED) {
        side->nest = nest_choose_within(s->ctx, s->arena, g, s->machine, s->effort, s->steps);
        s->chosen->steps += side->nest->steps;
    }
}

/* A search is no proof: what is found for another size may be the cheapest for the typical one
 * too, and is then chosen. */
static void adopt(const Sizes *s, const Side *sides, uint32_t n)
{
    Nest *chosen = s->chosen, *was = arena_copy(s->arena, chosen, sizeof *chosen);
    const Side *best = NULL;
    double least = BETTER * nest_counted(s->machine, &chosen->cost);
    for (uint32_t k = 0; k < n; k++) {
        NestCost cost = {0};
        if (sides[k].nest != NULL) {
            cost = cost_at(s, sides[k].nest, &sides[k], size_at(s, &sides[k], 0));
        }
        if (sides[k].nest != NULL && nest_counted(s->machine, &cost) < least &&
            cost.spilled <= chosen->cost.spilled) {
            best = &sides[k];
            least = nest_counted(s->machine, &cost);
        }
    }
    if (best == NULL) {
        return;
    }
    uint32_t n_nodes = chosen->graph->nodes.n;
    NestValue *values = arena_copy(s->arena, best->nest->values, n_nodes * sizeof *values);
    *chosen = *best->nest;
    chosen->graph = was->graph;
    chosen->values = values;
    nest_set_bytes(chosen, values);
    nest_estimate(s->ctx, s->machine, chosen);
    chosen->steps = was->steps;
    chosen->second = was;
    chosen->turned_down = "takes longer";
}

/* A size for which the side's nest is clearly the cheaper one, next to one for which it is not. */
static int64_t find_border(const Sizes *s, const Side *side)
{
    int64_t in = size_at(s, side, side->away), out = size_at(s, side, 0);
    for (int64_t room = in; room > 1 && room > in / NEAR;) {
        int64_t middle = in + (out - in) / 2;
        bool cheaper = gain_at(s, side, middle) >= EDGE;
        in = cheaper ? middle : in;
        out = cheaper ? out : middle;
        room = in < out ? out - in : in - out;
    }
    return in;
}

/* Keeps the side's nest if it is worth it. */
static void weigh_side(const Sizes *s, Side *side)
{
    if (side->nest == NULL) {
        return;
    }
    double saved = side->nest->cost.seconds;
    int64_t beyond = size_at(s, side, 2 * side->away);
    side->gain = gain_at(s, side, size_at(s, side, side->away));
    saved *= side->gain - 1.0;
    if (side->gain < GAIN || saved < SAVED || (beyond > 0 && gain_at(s, side, beyond) < 1.0)) {
        side->nest = NULL;
        return;
    }
    side->border = find_border(s, side);
}

static void add_size(const Sizes *s, NestSize *sizes, const Side *side, int64_t least,
                     int64_t most)
{
    NestSize *to = &sizes[s->chosen->n_sizes++];
    bool own = side->nest == NULL;
    to->when = (DimTest){side->dim, least, most};
    to->size = size_at(s, side, own ? 0 : side->away);
    to->nest = own ? s->chosen : side->nest;
}

static void set_sizes(const Sizes *s, const Side *below, const Side *above)
{
    NestSize *sizes = ARENA_ARRAY(s->arena, 3, NestSize);
    Side own = {.dim = below->dim};
    int64_t least = below->nest == NULL ? 0 : below->border + 1;
    int64_t most = above->nest == NULL ? DIM_ANY_SIZE : above->border - 1;
    s->chosen->sizes = sizes;
    if (below->nest != NULL) {
        add_size(s, sizes, below, 0, below->border);
    }
    add_size(s, sizes, &own, least, most);
    if (above->nest != NULL) {
        add_size(s, sizes, above, above->border, DIM_ANY_SIZE);
    }
}

void nest_choose_sizes(Ctx *ctx, Arena *arena, const Machine *machine, uint32_t effort,
                       Nest *chosen)
{
    uint32_t given = dims_given(&chosen->graph->dims), n_dims = given < DIMS ? given : DIMS;
    if (!machine->open_extents || n_dims == 0 || effort == 0 ||
        chosen->graph->nodes.n > NEST_LARGE) {
        return;
    }
    Sizes s = {.ctx = ctx,
               .arena = arena,
               .machine = machine,
               .chosen = chosen,
               .effort = effort,
               .steps = chosen->steps / n_dims};
    s.steps = s.steps < STEPS ? STEPS : s.steps;
    Side sides[2 * DIMS] = {{0}};
    const Side *best = NULL;
    for (uint32_t k = 0; k < 2 * n_dims; k++) {
        sides[k] = (Side){.dim = (int32_t)(k / 2), .above = k % 2 == 1};
        search_side(&s, &sides[k]);
    }
    adopt(&s, sides, 2 * n_dims);
    for (uint32_t k = 0; k < 2 * n_dims; k++) {
        weigh_side(&s, &sides[k]);
        bool more = sides[k].nest != NULL && (best == NULL || sides[k].gain > best->gain);
        best = more ? &sides[k] : best;
    }
    if (best != NULL) {
        set_sizes(&s, &sides[2 * best->dim], &sides[2 * best->dim + 1]);
    }
}
