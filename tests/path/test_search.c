/* SPDX-License-Identifier: Apache-2.0 */
/* How a search runs: what it says of its steps, what an interruption leaves, and that every
 * effort begins with what the least does. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "path/search.h"
#include "path/support_nets.h"
#include "support/test.h"

static Ctx ctx;

#define TOLD_MOST 4096
typedef struct Told {
    uint32_t n;
    PathProgress at[TOLD_MOST];
    uint32_t stop_after; /* calls; 0: never */
    volatile sig_atomic_t stop;
} Told;

static void note(void *user, const PathProgress *now)
{
    Told *told = user;
    assert_true(told->n < TOLD_MOST);
    told->at[told->n++] = *now;
    told->stop = told->stop_after > 0 && told->n >= told->stop_after;
}

static PathResult run(const PathProblem *p, PathOptions o, Told *told)
{
    PathResult r;
    told->n = 0;
    told->stop = 0;
    o.progress = note;
    o.user = told;
    o.interrupt = &told->stop;
    assert_true(path_search(p, &o, &ctx, &r));
    return r;
}

/* Steps done never fall nor exceed those planned, all are done at the end, and the share done
 * grows with the work: it is told of in between. */
static void check_progress(const Told *told)
{
    uint64_t before = 0;
    double share = 0.0;
    bool between = false;
    for (uint32_t i = 0; i < told->n; i++) {
        const PathProgress *now = &told->at[i];
        assert_true(now->steps_done >= before);
        assert_true(now->steps_planned > 0 && now->steps_done <= now->steps_planned);
        before = now->steps_done;
        share = (double)now->steps_done / (double)now->steps_planned;
        between = between || (share > 0.2 && share < 0.8);
    }
    assert_true(between);
    assert_true(share >= 1.0);
}

static void test_steps_done_and_planned_are_true(void **state)
{
    static Told told;
    static const char *const names[] = {"auto", "anneal", "random-greedy", "eliminate",
                                        "bisect"};
    PathProblem p = nets_regular(&ctx.arena, 30, 3, 2, 5);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        run(&p, (PathOptions){.search = names[i], .effort = 2}, &told);
        check_progress(&told);
    }
    PathProblem small = nets_regular(&ctx.arena, 16, 3, 2, 5);
    run(&small, (PathOptions){.search = "exact"}, &told);
    assert_true(told.n > 0 && told.at[told.n - 1].steps_planned >= (uint64_t)1 << 16);
    run(&p, (PathOptions){.effort = 2, .memory_limit = 32}, &told);
    check_progress(&told);
    PathProblem two = nets_twice(&ctx.arena, &p);
    run(&two, (PathOptions){.effort = 1}, &told);
    check_progress(&told);
}

static void test_every_effort_begins_with_what_the_least_does(void **state)
{
    static Told one, more;
    PathProblem p = nets_regular(&ctx.arena, 30, 3, 2, 6);
    static const int64_t limits[] = {0, 32};
    for (int i = 0; i < 2; i++) {
        PathResult r = run(&p, (PathOptions){.effort = 1, .memory_limit = limits[i]}, &one);
        PathResult s = run(&p,
                           (PathOptions){
                               .effort = 3,
                               .memory_limit = limits[i],
                           },
                           &more);
        assert_true(one.n > 5 && more.n > one.n);
        for (uint32_t k = 0; k + 1 < one.n; k++) {
            assert_true(one.at[k].steps_done == more.at[k].steps_done);
            assert_true(one.at[k].log10_cost <= more.at[k].log10_cost &&
                        one.at[k].log10_cost >= more.at[k].log10_cost);
        }
        assert_true(s.costs.log10_multiply_adds <= r.costs.log10_multiply_adds);
        /* Stopped right there, it is as good as the least effort. */
        more.stop_after = one.n + 1;
        s = run(&p, (PathOptions){.effort = 1000, .memory_limit = limits[i]}, &more);
        more.stop_after = 0;
        assert_true(s.interrupted);
        assert_true(s.costs.log10_multiply_adds <= r.costs.log10_multiply_adds);
    }
}

static void test_stages_add_up_to_the_effort(void **state)
{
    static const uint32_t efforts[] = {0, 1, 2, 16, 17, 100, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        uint64_t sum = 0;
        uint32_t k = 0;
        for (; search_stage(efforts[i], k) > 0; k++) {
            assert_true(k > 0 || search_stage(efforts[i], k) == 1);
            assert_true(search_stage(efforts[i], k) <= 15 * sum + 1);
            sum += search_stage(efforts[i], k);
        }
        assert_true(sum == efforts[i]);
        assert_true(k < 10);
    }
}

static void test_an_interrupted_search_keeps_its_best(void **state)
{
    static Told told;
    PathProblem p = nets_regular(&ctx.arena, 36, 3, 2, 7);
    PathResult greedy = run(&p, (PathOptions){.search = "greedy"}, &told);
    for (uint32_t calls = 1; calls < 12; calls += 2) {
        told.stop_after = calls;
        PathResult r = run(&p, (PathOptions){.effort = 100}, &told);
        assert_true(r.interrupted);
        assert_true(r.costs.log10_multiply_adds <= greedy.costs.log10_multiply_adds);
        assert_true(r.costs.log10_multiply_adds < told.at[calls - 1].log10_cost + 1e-4);
    }
    PathOptions sliced = {.effort = 100, .memory_limit = 16};
    for (uint32_t calls = 8; calls < 40; calls += 10) { /* some of them among the slices */
        told.stop_after = calls;
        PathResult r = run(&p, sliced, &told);
        assert_true(r.interrupted && strtod(r.costs.largest, NULL) <= 16.0);
        const PathProgress *last = &told.at[calls - 1];
        assert_true(strcmp(last->strategy, "slice") != 0 ||
                    r.costs.log10_multiply_adds < last->log10_cost + 1e-4);
    }
    assert_string_equal(told.at[told.n - 1].strategy, "slice");
    PathProblem hard = nets_regular(&ctx.arena, 24, 3, 2, 7); /* the exact one stops too */
    told.stop_after = 3;
    PathResult r = run(&hard, (PathOptions){.search = "exact", .effort = 1}, &told);
    assert_true(r.interrupted || told.n < 3);
}

TESTS_IN_CTX(TEST(test_steps_done_and_planned_are_true),
             TEST(test_every_effort_begins_with_what_the_least_does),
             TEST(test_stages_add_up_to_the_effort),
             TEST(test_an_interrupted_search_keeps_its_best))
