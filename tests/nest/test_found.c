/* SPDX-License-Identifier: Apache-2.0 */
/* What the planner of nests computes on random graphs: how many trees moves make of a tree; prices of trees that no search would
 * choose; what is chosen, after how many steps. figures.txt has sums over fifty graphs a row, of times and bytes the sums
 * of logarithms, in which a change of one graph shows whatever its size; rows of single graphs with TDSL_EACH=1. Target `bless` writes the file. */
#include <math.h>

#include "nest/facts.h"
#include "nest/greedy.h"
#include "nest/moves.h"
#include "nest/place.h"
#include "nest/plan.h"
#include "nest/price.h"
#include "nest/tree.h"
#include "support/golden.h"
#include "support_graphs.h"

#define FIGURES "tests/nest/figures.txt"
#define GROUP   50   /* graphs of a row */
#define GRAPHS  1000 /* a multiple of it */

static const Machine machines[] = {
    {UNCOMMON_MACHINE(20000, 900, 384, 20, 48, 300)},
    {SMALL_MACHINE, .tile_level = 1, .reads_before_writing = true}};

typedef enum Kind { NONE, WALK, MORE, EFFORT_0, EFFORT_1, EFFORT_5, N_KINDS } Kind;
static const char *const kind_names[] = {"no loops", "walk",     "and more",
                                         "effort 0", "effort 1", "effort 5"};

/* Sums over nests. */
typedef struct Figures {
    uint32_t nests, moves, loops, tiles, parallel;
    uint64_t steps;
    double seconds, arithmetic, bytes;
} Figures;

typedef struct Found {
    Ctx ctx;
    Arena scratch;
    Graph *g;
    const Machine *machine;
    NestFacts facts;
    Pricer pricer;
    Figures *figures; /* [N_KINDS] */
} Found;

static void count_move(void *self, const Tree *t)
{
    (void)t;
    ++*(uint32_t *)self;
}

/* A sum of logarithms grows by it. */
static double size_of(double x)
{
    return x > 0 ? log2(x) : 0;
}

static void add_nest(Found *f, Kind kind, const Nest *nest, const NestCost *cost)
{
    Figures *sum = &f->figures[kind];
    sum->nests++;
    for (uint32_t k = 0; k < nest->n_items; k++) {
        const NestItem *item = &nest->items[k];
        sum->loops += nest_is_loop(item);
        sum->tiles += nest_is_loop(item) && item->tile > 1;
        sum->parallel += nest_is_loop(item) && item->parallel;
    }
    sum->steps += nest->steps;
    sum->seconds += size_of(cost->seconds);
    sum->arithmetic += size_of(cost->arithmetic);
    for (uint32_t v = 0; v + 1 < f->machine->n_levels; v++) {
        sum->bytes += size_of(cost->bytes[v]);
    }
}

static void add_priced(Found *f, Kind kind, const Tree *t)
{
    Nest *nest = tree_nest(&f->ctx.arena, f->g, t);
    nest->values = nest_place(&f->ctx.arena, &f->facts, f->machine, nest);
    NestCost cost = nest_price(&f->scratch, &f->pricer, nest, NULL);
    add_nest(f, kind, nest, &cost);
    moves_each(&f->scratch, &f->ctx.arena, &f->facts, t, count_move, &f->figures[kind].moves);
}

static void add_chosen(Found *f, Kind kind, uint32_t effort)
{
    const Nest *nest = nest_choose(&f->ctx, &f->ctx.arena, f->g, f->machine, effort);
    add_nest(f, kind, nest, &nest->cost);
}

/* Extents of hundreds and none, beside those of a few. */
static void stretch(Rng *rng, Graph *g)
{
    static const int64_t times[] = {1, 1, 7, 37, 100};
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        g->dims.list.at[d].typical *= times[rng_below(rng, 5)];
    }
}

static void add_found(Found *f, Rng *rng)
{
    Arena *arena = &f->ctx.arena;
    Tree none = {0}, greedy = {0};
    greedy_tree(&f->ctx, arena, &f->facts, f->machine, false, &none);
    greedy_tree(&f->ctx, arena, &f->facts, f->machine, true, &greedy);
    Tree walked = random_walk(arena, rng, &f->facts, &none, 3);
    Tree longer = random_walk(arena, rng, &f->facts, &greedy, 9);
    Tree extras = random_extras(arena, rng, &f->facts, &longer);
    add_priced(f, NONE, &none);
    add_priced(f, WALK, &walked);
    add_priced(f, MORE, &extras);
    add_chosen(f, EFFORT_0, 0);
    add_chosen(f, EFFORT_1, 1);
    if (rng_below(rng, 12) == 0) {
        add_chosen(f, EFFORT_5, 5);
    }
}

static void add_graph(Figures *figures, uint64_t seed)
{
    Found f = {.figures = figures, .machine = &machines[seed % 2]};
    Rng rng = {seed};
    uint32_t most = seed % 10 == 0 ? 30 : 7;
    ctx_init(&f.ctx);
    arena_init(&f.scratch, NULL);
    f.g = random_graph(&f.ctx, &rng, most);
    stretch(&rng, f.g);
    nest_facts(&f.ctx.arena, f.g, &f.facts);
    pricer_init(&f.ctx.arena, &f.facts, f.machine, &f.pricer);
    if (f.facts.n_stored >= 2) {
        add_found(&f, &rng);
    }
    arena_release(&f.scratch);
    ctx_release(&f.ctx);
}

static void put_row(Text *out, uint64_t first, uint64_t last, Kind kind, const Figures *f)
{
    text_printf(out, "%u to %u %s: nests %u moves %u steps %u loops %u tiles %u parallel %u",
                (unsigned)first, (unsigned)last, kind_names[kind], f->nests, f->moves,
                (unsigned)f->steps, f->loops, f->tiles, f->parallel);
    text_printf(out, " log2_seconds %.7f log2_arithmetic %.7f log2_bytes %.7f\n", f->seconds,
                f->arithmetic, f->bytes);
}

static void plans_cost_what_they_did(void **state)
{
    Arena arena;
    Text out;
    uint64_t group = getenv("TDSL_EACH") != NULL ? 1 : GROUP;
    arena_init(&arena, NULL);
    text_init(&out, &arena);
    for (uint64_t first = 1; first <= GRAPHS; first += group) {
        Figures figures[N_KINDS] = {0};
        for (uint64_t seed = first; seed < first + group; seed++) {
            add_graph(figures, seed);
        }
        for (Kind kind = 0; kind < N_KINDS; kind++) {
            put_row(&out, first, first + group - 1, kind, &figures[kind]);
        }
    }
    assert_figures(&arena, FIGURES, out.at);
    arena_release(&arena);
}

TESTS(TEST(plans_cost_what_they_did))
