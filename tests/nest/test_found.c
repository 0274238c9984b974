/* SPDX-License-Identifier: Apache-2.0 */
/* What the planner of nests computes on random graphs, to the digit: the trees that moves make of a tree, in their order;
 * prices of trees that no search would choose; what is chosen, after how many steps. A few lines for each graph
 * in found.txt, so that a change of the model or of the search shows as what it changes, and a hash for each fifty of
 * many more. Target `bless` writes the file. */
#include "base/map.h"
#include "nest/greedy.h"
#include "nest/moves.h"
#include "nest/price.h"
#include "support/golden.h"
#include "support_graphs.h"

#define FOUND  "tests/nest/found.txt"
#define SHOWN  50   /* graphs whose lines are kept */
#define GRAPHS 1000 /* a multiple of it */

/* Small levels, and every number of a machine differs from every other. */
static const Machine machines[] = {
    {.n_levels = 3,
     .level = {{.name = "memory", .bytes_per_second = 1.1e9, .granule = 8},
               {.name = "outer", .capacity = 20000, .bytes_per_second = 1.3e10, .granule = 7},
               {.name = "inner", .capacity = 900}},
     .tile_level = 1,
     .reads_before_writing = true,
     .tile = {.types = 1u << DTYPE_F32 | 1u << DTYPE_F64,
              .line = 64,
              .bytes = 384,
              .rows = 7,
              .sum = 20,
              .columns = 48,
              .direct = 300},
     .time = {.multiply_add = 1.9e-11,
              .pack = 2.3e-10,
              .pack_line = 2.9e-9,
              .row = 3.1e-9,
              .loop = 3.3e-9,
              .join = 3.7e-10,
              .join_edge = 4.1e-9,
              .op = 4.3e-11,
              .scalar_op = 4.7e-10,
              .divide = 5.3e-10,
              .function = 5.9e-9,
              .exp = 5.9e-9,
              .tile = 6.1e-9,
              .statement = 6.7e-8,
              .product = 7.1e-8},
     .open_extents = true},
    {SMALL_MACHINE, .tile_level = 1, .reads_before_writing = true}};

typedef struct Found {
    Ctx ctx;
    Arena scratch;
    Graph *g;
    const Machine *machine;
    NestFacts facts;
    Pricer pricer;
    Text *out;
    uint32_t n; /* trees offered, */
    uint64_t h; /* and what they are */
} Found;

static void put_tree(void *self, const Tree *t)
{
    Found *f = self;
    f->n++;
    for (uint32_t k = 0; k < t->list.n; k++) {
        const Draft *d = &t->list.at[k];
        f->h = hash_mix(f->h, d->depth * 2 + d->is_loop);
        f->h = hash_mix(f->h, d->is_loop ? (uint64_t)d->tile * 2 + d->parallel : d->node);
        for (uint32_t i = 0; d->is_loop && i < d->axis.n; i++) {
            f->h = hash_mix(f->h, d->axis.node[i] * 64u + (uint64_t)d->axis.label[i]);
        }
    }
}

static void put_cost(Found *f, const char *of, const NestCost *c)
{
    text_printf(f->out, "%s %.9g s, arithmetic %.9g, bytes", of, c->seconds, c->arithmetic);
    for (uint32_t v = 0; v + 1 < f->machine->n_levels; v++) {
        text_printf(f->out, " %.9g", c->bytes[v]);
    }
}

static void put_priced(Found *f, const char *what, const Tree *t)
{
    Nest *nest = tree_nest(&f->ctx.arena, f->g, t);
    nest->values = nest_place(&f->ctx.arena, &f->facts, f->machine, nest);
    NestCost cost = nest_price(&f->scratch, &f->pricer, nest, NULL);
    put_cost(f, what, &cost);
    f->n = 0;
    f->h = 0;
    moves_each(&f->scratch, &f->ctx.arena, &f->facts, t, put_tree, f);
    text_printf(f->out, "; %u moves %08x\n", f->n, (unsigned)f->h);
}

static void put_chosen(Found *f, const char *what, const Nest *nest)
{
    Text dump;
    uint32_t loops = 0;
    text_init(&dump, &f->ctx.arena);
    nest_dump(nest, &dump);
    for (uint32_t k = 0; k < nest->n_items; k++) {
        loops += nest_is_loop(&nest->items[k]);
    }
    put_cost(f, what, &nest->cost);
    text_printf(f->out, "; %u loops, %u steps, %08x\n", loops, (unsigned)nest->steps,
                (unsigned)hash_bytes(0, dump.at, dump.n));
}

/* Extents of hundreds and none, beside those of a few. */
static void stretch(Rng *rng, Graph *g)
{
    static const int64_t times[] = {1, 1, 7, 37, 100};
    for (uint32_t d = 0; d < g->dims.list.n; d++) {
        g->dims.list.at[d].typical *= times[rng_below(rng, 5)];
    }
}

static void put_found(Found *f, Rng *rng)
{
    Arena *arena = &f->ctx.arena;
    Tree none = {0}, greedy = {0};
    unfused_tree(&f->ctx, arena, &f->facts, f->machine, &none);
    greedy_tree(&f->ctx, arena, &f->facts, f->machine, &greedy);
    Tree walked = random_walk(arena, rng, &f->facts, &none, 3);
    Tree longer = random_walk(arena, rng, &f->facts, &greedy, 9);
    Tree extras = random_extras(arena, rng, &f->facts, &longer);
    put_priced(f, "  none    ", &none);
    put_priced(f, "  walk    ", &walked);
    put_priced(f, "  and more", &extras);
    put_chosen(f, "  effort 0", nest_choose(&f->ctx, arena, f->g, f->machine, 0));
    put_chosen(f, "  effort 1", nest_choose(&f->ctx, arena, f->g, f->machine, 1));
    if (rng_below(rng, 12) == 0) {
        put_chosen(f, "  effort 5", nest_choose(&f->ctx, arena, f->g, f->machine, 5));
    }
}

static void put_graph(Text *out, uint64_t seed)
{
    Found f = {.out = out, .machine = &machines[seed % 2]};
    Rng rng = {seed};
    uint32_t most = seed % 10 == 0 ? 30 : 7;
    ctx_init(&f.ctx);
    arena_init(&f.scratch, NULL);
    f.g = random_graph(&f.ctx, &rng, most);
    stretch(&rng, f.g);
    nest_facts(&f.ctx.arena, f.g, &f.facts);
    pricer_init(&f.ctx.arena, &f.facts, f.machine, &f.pricer);
    text_printf(out, "%u: %u values stored\n", (unsigned)seed, f.facts.n_stored);
    if (f.facts.n_stored >= 2) {
        put_found(&f, &rng);
    }
    arena_release(&f.scratch);
    ctx_release(&f.ctx);
}

static void plans_are_what_they_were(void **state)
{
    (void)state;
    Arena arena;
    Text out;
    arena_init(&arena, NULL);
    text_init(&out, &arena);
    for (uint64_t first = 1; first <= GRAPHS; first += SHOWN) {
        size_t before = out.n;
        for (uint64_t seed = first; seed < first + SHOWN; seed++) {
            put_graph(&out, seed);
        }
        if (first > 1) {
            uint64_t h = hash_bytes(0, out.at + before, out.n - before);
            out.n = before;
            text_printf(&out, "%u to %u: %08x\n", (unsigned)first,
                        (unsigned)(first + SHOWN - 1), (unsigned)h);
        }
    }
    assert_golden(&arena, FOUND, out.at);
    arena_release(&arena);
}

TESTS(TEST(plans_are_what_they_were))
