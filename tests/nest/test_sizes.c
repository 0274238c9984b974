/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels of random graphs get a nest for other sizes of an open dim, and what must hold of
 * them by the model. */
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nest/estimate.h"
#include "nest/greedy.h"
#include "nest/plan.h"
#include "nest/text.h"
#include "nest/verify.h"
#include "support_graphs.h"

#define SEEDS 1000

static const Machine machine = {
    .n_levels = 2,
    .level = {{.name = "memory", .bytes_per_second = 1e8, .granule = 8},
              {.name = "cache", .capacity = 4096}},
    .tile = {.types = 1u << DTYPE_I32 | 1u << DTYPE_I64,
             .line = 64,
             .bytes = 512,
             .rows = 8,
             .sum = 64,
             .columns = 64,
             .direct = 64},
    .time = {.multiply_add = 2e-10,
             .row = 1e-8,
             .loop = 2e-8,
             .op = 5e-10,
             .scalar_op = 1e-9,
             .statement = 1e-9},
    .open_extents = true,
};

typedef struct Case {
    Ctx ctx;
    Graph *g;
    Nest *plain, *nest; /* without and with nests for other sizes */
    uint64_t seed;
} Case;

static Case *case_new(uint64_t seed, const Machine *m, uint32_t effort)
{
    Case *c = calloc(1, sizeof *c);
    Rng rng = {seed};
    ctx_init(&c->ctx);
    c->seed = seed;
    c->g = random_graph(&c->ctx, &rng, 6);
    for (uint32_t d = 0; d < c->g->dims.list.n; d++) {
        c->g->dims.list.at[d].typical = 24 + 16 * (int64_t)rng_below(&rng, 4);
    }
    c->plain = nest_choose(&c->ctx, &c->ctx.arena, c->g, m, effort);
    c->nest = nest_choose(&c->ctx, &c->ctx.arena, c->g, m, effort);
    nest_choose_sizes(&c->ctx, &c->ctx.arena, m, effort, c->nest);
    assert_true(nest_verify(&c->ctx, c->nest, "test"));
    return c;
}

static void case_free(Case *c)
{
    ctx_release(&c->ctx);
    free(c);
}

static double seconds(Case *c, const Nest *nest, int64_t size)
{
    int32_t dim = c->nest->sizes[0].when.dim;
    return nest_cost_at(&c->ctx.arena, &machine, nest, dim, size).seconds;
}

/* One beside the nest for the typical size. */
static void check_other(Case *c, const NestSize *s)
{
    bool below = s->when.least == 0;
    int64_t border = below ? s->when.most : s->when.least;
    int64_t far = below ? s->size / 8 : s->size * 8;
    double own = seconds(c, c->nest, s->size), other = seconds(c, s->nest, s->size);
    if (own < 1.3 * other || own - other < 1e-6) {
        fail_msg("seed %" PRIu64 ": %g s and %g s: not worth a nest", c->seed, own, other);
    }
    if (1.15 * seconds(c, s->nest, border) > seconds(c, c->nest, border)) {
        fail_msg("seed %" PRIu64 ": the border %lld is too near", c->seed, (long long)border);
    }
    if (far > 0 && seconds(c, s->nest, far) > seconds(c, c->nest, far)) {
        fail_msg("seed %" PRIu64 ": it is worse for %lld", c->seed, (long long)far);
    }
}

static void another_size_has_a_nest_of_its_own_where_that_saves_much(void **state)
{
    uint32_t two = 0, three = 0, one = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        Case *c = case_new(seed, &machine, 1);
        double before = c->plain->cost.seconds, now = c->nest->cost.seconds;
        one += c->nest->n_sizes == 0;
        two += c->nest->n_sizes == 2;
        three += c->nest->n_sizes == 3;
        assert_true(c->nest->n_sizes <= 3 && c->nest->n_sizes != 1);
        assert_true(now <= before && c->nest->cost.spilled <= c->plain->cost.spilled);
        assert_true(now >= before || now < 0.95 * before);
        assert_true(c->nest->steps <= 3 * c->plain->steps + 16 * c->g->dims.list.n);
        for (uint32_t k = 0; k < c->nest->n_sizes; k++) {
            if (c->nest->sizes[k].nest != c->nest) {
                check_other(c, &c->nest->sizes[k]);
            }
        }
        case_free(c);
    }
    assert_true(one > 500 && two + three > 35); /* half of what is usual */
}

static void the_same_nests_are_chosen_again(void **state)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Case *a = case_new(seed, &machine, 1), *b = case_new(seed, &machine, 1);
        Text x, y;
        text_init(&x, &a->ctx.arena);
        text_init(&y, &b->ctx.arena);
        nest_dump(a->nest, &x);
        nest_dump(b->nest, &y);
        assert_string_equal(x.at, y.at);
        case_free(a);
        case_free(b);
    }
}

static void one_nest_is_enough_where_nothing_is_open_or_nothing_is_searched(void **state)
{
    Machine bound = machine;
    bound.open_extents = false;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Case *a = case_new(seed, &bound, 1), *b = case_new(seed, &machine, 0);
        assert_int_equal(a->nest->n_sizes, 0);
        assert_int_equal(b->nest->n_sizes, 0);
        assert_true(a->nest->steps == a->plain->steps && b->nest->steps == b->plain->steps);
        case_free(a);
        case_free(b);
    }
}

TESTS(TEST(another_size_has_a_nest_of_its_own_where_that_saves_much),
      TEST(the_same_nests_are_chosen_again),
      TEST(one_nest_is_enough_where_nothing_is_open_or_nothing_is_searched))
