/* SPDX-License-Identifier: Apache-2.0 */
/* Networks solved by their structure: chains and rings against the cubic recurrence, these and
 * closed trees against the exhaustive search (which allows outer products), whatever the order
 * of operands and labels; long ones by their time; and networks that only look like them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "path/search.h"
#include "path/support_nets.h"
#include "support/test.h"
#include "support/quick.h"

static Ctx ctx;

static double cube_least(const double *w, uint32_t n, double *table)
{
    for (uint32_t length = 1; length < n; length++) {
        for (uint32_t a = 0; a + length < n; a++) {
            uint32_t c = a + length;
            double least = length == 1 ? 0.0 : INFINITY;
            for (uint32_t b = a + 1; b < c; b++) {
                double cost = table[a * n + b] + table[b * n + c] + w[a] * w[b] * w[c];
                least = cost < least ? cost : least;
            }
            table[a * n + c] = least;
        }
    }
    return table[n - 1];
}

static void test_polygons_are_cut_as_the_recurrence_says(void **state)
{
    Rng rng = {11};
    for (int i = 0; i < 3000; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        uint32_t n = 3 + (uint32_t)rng_below(&rng, i % 50 == 0 ? 80 : 12);
        uint64_t most = (uint64_t)1 << (1 + rng_below(&rng, 20));
        double *w = ARENA_ARRAY(&ctx.arena, n, double), sum = 0.0;
        for (uint32_t k = 0; k < n; k++) {
            uint64_t hill = k < n / 2 ? k : n - k; /* many chords above each other */
            w[k] =
                1.0 + (double)rng_below(&rng, most) + (i % 3 == 0 ? 4.0 * (double)hill : 0.0);
        }
        PolygonTriangle *t = ARENA_ARRAY(&ctx.arena, n, PolygonTriangle);
        polygon_triangulate(w, n, &ctx.arena, t);
        for (uint32_t k = 0; k + 2 < n; k++) {
            sum += w[t[k].at[0]] * w[t[k].at[1]] * w[t[k].at[2]];
        }
        double least = cube_least(w, n, ARENA_ARRAY(&ctx.arena, (size_t)n * n, double));
        assert_true(sum <= least * (1.0 + 1e-12) && sum >= least * (1.0 - 1e-12));
        arena_reset(&ctx.arena, mark);
    }
}

static PathResult search(const PathProblem *p, PathOptions o)
{
    PathResult r;
    assert_true(path_search(p, &o, &ctx, &r));
    assert_true(path_tree_valid(&r.tree, p->n_operands));
    return r;
}

static int64_t some_size(Rng *rng, int kind)
{
    static const int64_t few[] = {2, 3, 100, 1};
    return kind == 0   ? 2
           : kind == 1 ? few[rng_below(rng, 3)]
           : kind == 2 ? few[rng_below(rng, 4)]
                       : 2 + (int64_t)rng_below(rng, kind == 3 ? 8 : 1000000);
}

static void test_structure_is_as_good_as_the_exhaustive_search(void **state)
{
    Rng rng = {12};
    uint32_t solved = 0;
    for (int i = 0; i < 150; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        uint32_t n = 11 + (uint32_t)rng_below(&rng, 3);
        NetsShape shape = (NetsShape)(i % NETS_SHAPES);
        int kind = (int)rng_below(&rng, 5);
        PathProblem p = nets_shape(&ctx.arena, shape, n, rng_next(&rng));
        for (uint32_t l = 0; l < p.n_labels; l++) {
            ((int64_t *)p.sizes)[l] = some_size(&rng, kind);
        }
        PathProblem q = nets_shuffled(&ctx.arena, &p, rng_next(&rng));
        PathResult r = search(&q, (PathOptions){.effort = 1});
        PathResult best = search(&p, (PathOptions){.search = "exact", .effort = 1});
        assert_true(r.proved && best.proved);
        double found = strtod(r.costs.multiply_adds, NULL);
        double least = strtod(best.costs.multiply_adds, NULL);
        assert_true(found <= least * (1.0 + 1e-9) && found >= least * (1.0 - 1e-9));
        solved += strcmp(r.strategy, "structure") == 0;
        arena_reset(&ctx.arena, mark);
    }
    assert_true(solved > 100); /* extents of 1 leave parts for the exhaustive one */
}

static void test_other_objectives_and_limits_take_their_own_way(void **state)
{
    PathProblem p = nets_shape(&ctx.arena, NETS_CHAIN, 12, 3);
    assert_string_equal(search(&p, (PathOptions){.effort = 1}).strategy, "structure");
    PathOptions size = {.effort = 1, .objective = PATH_SIZE};
    PathOptions limit = {.effort = 1, .memory_limit = 4};
    assert_string_not_equal(search(&p, size).strategy, "structure");
    assert_string_not_equal(search(&p, limit).strategy, "structure");
}

/* A second of work, not a minute; the time itself is the machine's. */
static void test_long_ones_take_near_linear_time(void **state)
{
    for (int shape = 0; shape < NETS_SHAPES; shape++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = nets_shape(&ctx.arena, (NetsShape)shape, 50000, 5);
        clock_t start = clock();
        PathResult r = search(&p, (PathOptions){.effort = 1});
        assert_true(r.proved);
        assert_string_equal(r.strategy, "structure");
        assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20.0);
        arena_reset(&ctx.arena, mark);
    }
}

/* Steps of a long ladder, counted: those of a narrow network. */
static void count(void *user, const PathProgress *now)
{
    *(uint64_t *)user = now->steps_done;
}

static void test_narrow_networks_take_few_steps(void **state)
{
    for (uint32_t n = 1000; n <= 10000 / one_of(10); n *= 10) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = nets_ladder(&ctx.arena, n, 4, 16);
        uint64_t steps = 0;
        PathResult r =
            search(&p, (PathOptions){.effort = 1, .progress = count, .user = &steps});
        /* 14 million and 1,000 for each operand, beside starts and whole sweeps: a second or two. */
        assert_true(steps > 1000000 && steps <= 15000000 + 2000 * (uint64_t)n);
        /* Along the rails each rung takes 16 * 16 * 16 * 4 twice, but at the ends. */
        assert_true(r.costs.log10_multiply_adds <= log10(n / 2 * 2.0 * 16384.0));
        arena_reset(&ctx.arena, mark);
    }
}

TESTS_IN_CTX(TEST(test_polygons_are_cut_as_the_recurrence_says),
             TEST(test_structure_is_as_good_as_the_exhaustive_search),
             TEST(test_other_objectives_and_limits_take_their_own_way),
             TEST(test_long_ones_take_near_linear_time),
             TEST(test_narrow_networks_take_few_steps))
