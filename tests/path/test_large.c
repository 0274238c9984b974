/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of more than some hundred operands: light cuts, sweeps away from them, and how many
 * steps the default takes. */
#include <string.h>

#include "path/cut.h"
#include "path/search.h"
#include "path/support_nets.h"
#include "support/test.h"
#include "support/quick.h"

static Ctx ctx;

static Net net_of(const PathProblem *p)
{
    static Prepared prepared;
    net_prepare(p, NULL, &ctx.arena, &prepared);
    return prepared.net;
}

/* Labels with holders on both sides. */
static uint32_t crossing(const Net *net, const uint8_t *side)
{
    const uint32_t *start, *holder;
    uint32_t n = 0;
    net_holders(net, &ctx.arena, &start, &holder);
    for (uint32_t l = 0; l < net->n_labels; l++) {
        uint32_t on[2] = {0, 0};
        for (uint32_t k = start[l]; k < start[l + 1]; k++) {
            on[side[holder[k]]]++;
        }
        n += on[0] > 0 && on[1] > 0;
    }
    return n;
}

static void test_a_lattice_is_cut_straight_across(void **state)
{
    PathProblem p = nets_lattice(&ctx.arena, 12, 60, 2);
    PathProblem q = nets_shuffled(&ctx.arena, &p, 5);
    Net net = net_of(&q);
    uint8_t *side = ARENA_ARRAY(&ctx.arena, net.n, uint8_t);
    for (uint64_t seed = 0; seed < 5; seed++) {
        Rng rng = {seed};
        uint32_t on = 0;
        assert_true(bisect_halves(&net, 0.1, &rng, &ctx.arena, side) > 0);
        assert_int_equal(crossing(&net, side), 12);
        for (uint32_t k = 0; k < net.n; k++) {
            on += side[k];
        }
        assert_true(on >= net.n * 4 / 10 && on <= net.n * 6 / 10);
    }
}

/* Vertices of unlike mass and nets of unlike weight, all pins of some the same. */
static void test_a_cut_goes_through_the_lightest_nets(void **state)
{
    uint32_t first[] = {0, 2, 5, 7, 9, 11, 13}, pin[] = {0, 1, 0, 1, 2, 1, 2, 2, 3, 3, 4, 4, 5};
    double weight[] = {4.0, 4.0, 4.0, 1.0, 3.0, 3.0};
    uint32_t mass[] = {1, 1, 1, 1, 1, 1};
    Hyper h = {6, 6, first, pin, weight, mass, NULL, NULL};
    uint8_t side[6];
    Rng rng = {3};
    cut_run(&h, 0.1, &rng, &ctx.arena, side);
    assert_true(side[0] == side[1] && side[1] == side[2]);
    assert_true(side[3] == side[4] && side[4] == side[5] && side[2] != side[3]);
    mass[0] = 5; /* now the heavy operand balances all others: the cut beside it weighs more */
    cut_run(&h, 0.1, &rng, &ctx.arena, side);
    assert_true(side[0] != side[1] && side[1] == side[2] && side[2] == side[5]);
}

/* A lattice in any order of its operands: rows * columns steps of at most 2^(rows + 3), and no
 * front wider than rows + 2. */
static void test_a_sweep_crosses_a_lattice_with_a_straight_front(void **state)
{
    PathProblem p = nets_lattice(&ctx.arena, 14, 50, 2);
    PathProblem q = nets_shuffled(&ctx.arena, &p, 8);
    PathOptions o = {.effort = 0};
    PathResult r;
    assert_true(path_search(&q, &o, &ctx, &r));
    assert_string_equal(r.strategy, "sweep");
    assert_true(r.costs.log10_multiply_adds <= log10(700.0 * 131072.0));
    assert_true(r.costs.log2_largest <= 16.0);
}

/* What a sweep says of its cost is what its tree costs. */
static void test_a_sweep_knows_its_cost(void **state)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        PathProblem p = nets_regular(&ctx.arena, 60, 4, 3, seed);
        Net net = net_of(&p);
        PathStep *steps = ARENA_ARRAY(&ctx.arena, net.n, PathStep);
        uint32_t *level = ARENA_ARRAY(&ctx.arena, net.n, uint32_t);
        uint8_t *side = ARENA_ARRAY(&ctx.arena, net.n, uint8_t);
        Model m = {PATH_FLOPS, 0.0, INFINITY, NULL, NULL};
        Rng rng = {seed};
        bisect_halves(&net, 0.1, &rng, &ctx.arena, side);
        for (uint32_t ahead = 0; ahead < 5; ahead++) {
            Score score;
            sweep_levels(&net, ahead % 2 == 0 ? side : NULL, &ctx.arena, level);
            assert_true(sweep_run(&m, &net, level, ahead, &ctx.arena, steps, &score));
            Score whole = tree_score(&m, &net, steps, &ctx.arena);
            assert_true(score.cost <= whole.cost + 1e-9 && score.cost >= whole.cost - 1e-9);
            assert_true(score.largest <= whole.largest && score.largest >= whole.largest);
        }
    }
}

/* The stages of docs/paths.md. */
static void test_the_unit_of_work_grows_in_steps(void **state)
{
    static const struct {
        uint32_t n;
        uint64_t steps;
    } stages[] = {{20, 1800000},       {346, 26000000},    {500, 37500000},
                  {600, 45000000},     {601, 90000000},    {10000, 90000000},
                  {20000, 100000000},  {50000, 130000000}, {250000, 330000000},
                  {1000000, 330000000}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        Search s = {.n_all = stages[i].n};
        Net net = {.n = stages[i].n};
        uint64_t steps = search_budget(&s, &net), least = stages[i].steps - stages[i].n;
        assert_true(steps > least && steps <= stages[i].steps);
        s.n_all *= 2; /* a part has its share */
        net.n = s.n_all / 4;
        assert_true(search_budget(&s, &net) <=
                    search_budget(&s, &(Net){.n = s.n_all}) / 4 + net.n);
    }
}

static void count(void *user, const PathProgress *now)
{
    *(uint64_t *)user = now->steps_done;
}

static void test_wide_networks_take_the_steps_they_plan(void **state)
{
    PathProblem p[] = {nets_regular(&ctx.arena, 1400, 3, 2, 1),
                       nets_lattice(&ctx.arena, 50, 60, 2)};
    for (size_t i = one_of(2) - 1; i < sizeof p / sizeof *p; i++) {
        uint64_t steps = 0;
        PathOptions o = {.effort = 1, .progress = count, .user = &steps};
        PathResult r;
        assert_true(path_search(&p[i], &o, &ctx, &r));
        assert_true(steps > 80000000 && steps < 100000000);
    }
}

TESTS_IN_CTX(TEST(test_a_lattice_is_cut_straight_across),
             TEST(test_a_cut_goes_through_the_lightest_nets),
             TEST(test_a_sweep_crosses_a_lattice_with_a_straight_front),
             TEST(test_a_sweep_knows_its_cost), TEST(test_the_unit_of_work_grows_in_steps),
             TEST(test_wide_networks_take_the_steps_they_plan))
