/* SPDX-License-Identifier: Apache-2.0 */
/* Contraction order against oracles that share nothing with it: costs by sets of labels, the optimum by trying
 * all orders, the least peak by trying all schedules; and the corners: empty, scalar, repeated, extent 0 and 1,
 * huge, hostile. */
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "path/path.h"
#include "support/test.h"
#include "support/quick.h"

#define MOST 8

static Ctx ctx;

/* ---- the oracle: labels as bits of a word ---- */

typedef struct Oracle {
    uint32_t n, n_labels;
    uint32_t set[2 * MOST];
    uint32_t output;
    int64_t size[32];
} Oracle;

typedef struct Costs {
    int64_t macs, written, largest, peak;
} Costs;

static int64_t product(const Oracle *o, uint32_t set)
{
    int64_t p = 1;
    for (uint32_t l = 0; l < o->n_labels; l++) {
        p *= (set >> l) & 1 ? o->size[l] : 1;
    }
    return p;
}

static void oracle_make(Oracle *o, const PathProblem *p, uint32_t cut)
{
    uint32_t once = 0, twice = 0;
    memset(o, 0, sizeof *o);
    o->n = p->n_operands;
    o->n_labels = p->n_labels;
    for (uint32_t l = 0; l < p->n_labels; l++) {
        o->size[l] = (cut >> l) & 1 ? 1 : p->sizes[l];
    }
    for (uint32_t i = 0; i < p->output.n; i++) {
        o->output |= (uint32_t)1 << p->output.at[i];
    }
    for (uint32_t k = 0; k < o->n; k++) {
        for (uint32_t i = 0; i < p->operands[k].n; i++) {
            o->set[k] |= (uint32_t)1 << p->operands[k].at[i];
        }
        twice |= once & o->set[k];
        once |= o->set[k];
    }
    for (uint32_t k = 0; k < o->n; k++) {
        o->set[k] &= twice | o->output;
    }
}

/* Contracts a and b of the live list; the result is appended. */
static uint32_t oracle_join(uint32_t *live, uint32_t n, uint32_t a, uint32_t b, uint32_t output)
{
    uint32_t both = live[a] | live[b], rest = output, kept = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (k != a && k != b) {
            rest |= live[k];
            live[kept++] = live[k];
        }
    }
    live[kept] = both & rest;
    return both;
}

static Costs oracle_costs(const Oracle *o, const uint32_t *linear)
{
    uint32_t live[MOST];
    Costs c = {0, 0, 0, 0};
    int64_t alive = 0;
    for (uint32_t k = 0; k < o->n; k++) {
        live[k] = o->set[k];
        int64_t size = product(o, live[k]);
        alive += size;
        c.largest = size > c.largest ? size : c.largest;
    }
    c.peak = alive;
    for (uint32_t n = o->n, k = 0; n > 1; n--, k++) {
        int64_t gone = product(o, live[linear[2 * k]]) + product(o, live[linear[2 * k + 1]]);
        uint32_t both = oracle_join(live, n, linear[2 * k], linear[2 * k + 1], o->output);
        int64_t made = product(o, live[n - 2]);
        c.macs += product(o, both);
        c.written += made;
        alive += made;
        c.peak = alive > c.peak ? alive : c.peak;
        c.largest = made > c.largest ? made : c.largest;
        alive -= gone;
    }
    return c;
}

/* The least cost over all orders of contractions. */
static int64_t oracle_best(const Oracle *o, const uint32_t *live, uint32_t n, int64_t so_far,
                           int64_t best)
{
    if (n <= 1 || so_far >= best) {
        return so_far < best ? so_far : best;
    }
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            uint32_t next[MOST];
            memcpy(next, live, n * sizeof *next);
            uint32_t both = oracle_join(next, n, a, b, o->output);
            best = oracle_best(o, next, n - 1, so_far + product(o, both), best);
        }
    }
    return best;
}

/* ---- random problems ---- */

static PathProblem random_problem(Rng *rng, uint32_t n)
{
    uint32_t n_labels = 2 + (uint32_t)rng_below(rng, 2 * n);
    int64_t *sizes = ARENA_ARRAY(&ctx.arena, n_labels, int64_t);
    for (uint32_t l = 0; l < n_labels; l++) {
        sizes[l] = 1 + (int64_t)rng_below(rng, 5);
    }
    PathLabels *operands = ARENA_ARRAY(&ctx.arena, n, PathLabels);
    uint32_t *output = ARENA_ARRAY(&ctx.arena, n_labels, uint32_t), n_output = 0, held = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t degree = (uint32_t)rng_below(rng, 5);
        uint32_t *labels = ARENA_ARRAY(&ctx.arena, degree, uint32_t);
        for (uint32_t i = 0; i < degree; i++) {
            labels[i] = (uint32_t)rng_below(rng, n_labels); /* repeats happen */
            held |= (uint32_t)1 << labels[i];
        }
        operands[k] = (PathLabels){labels, degree};
    }
    for (uint32_t l = 0; l < n_labels; l++) {
        if (((held >> l) & 1) != 0 && rng_below(rng, 4) == 0) {
            output[n_output++] = l;
        }
    }
    return (PathProblem){n, operands, {output, n_output}, n_labels, sizes, NULL, false, NULL,
                         0, NULL};
}

static PathResult search(const PathProblem *p, PathOptions o)
{
    PathResult r;
    if (!path_search(p, &o, &ctx, &r)) {
        fail_msg("%s", ctx.diags.list.at[ctx.diags.list.n - 1]->message);
    }
    assert_true(path_tree_valid(&r.tree, p->n_operands));
    return r;
}

static uint32_t cut_of(const PathResult *r)
{
    uint32_t cut = 0;
    for (uint32_t i = 0; i < r->n_sliced; i++) {
        cut |= (uint32_t)1 << r->sliced[i];
    }
    return cut;
}

/* The reported numbers are those of the path, by the oracle. */
static Costs expect_honest(const PathProblem *p, const PathResult *r)
{
    Oracle o;
    oracle_make(&o, p, cut_of(r));
    Costs c = oracle_costs(&o, path_linear(&r->tree, &ctx.arena));
    int64_t slices = 1;
    for (uint32_t i = 0; i < r->n_sliced; i++) {
        slices *= p->sizes[r->sliced[i]];
    }
    assert_string_equal(r->costs.multiply_adds,
                        str_format(&ctx.arena, "%lld", (long long)(c.macs * slices)));
    assert_string_equal(r->costs.written,
                        str_format(&ctx.arena, "%lld", (long long)(c.written * slices)));
    assert_string_equal(r->costs.largest, str_format(&ctx.arena, "%lld", (long long)c.largest));
    assert_string_equal(r->costs.peak, str_format(&ctx.arena, "%lld", (long long)c.peak));
    c.macs *= slices;
    return c;
}

static void test_the_default_is_optimal_on_small_networks(void **state)
{
    Rng rng = {1};
    for (int i = 0; i < 400; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = random_problem(&rng, 1 + (uint32_t)rng_below(&rng, 6));
        Oracle o;
        oracle_make(&o, &p, 0);
        PathResult r = search(&p, (PathOptions){.effort = 1});
        assert_true(r.proved);
        assert_int_equal(expect_honest(&p, &r).macs, oracle_best(&o, o.set, o.n, 0, INT64_MAX));
        arena_reset(&ctx.arena, mark);
    }
}

static void test_every_search_and_objective_gives_honest_numbers(void **state)
{
    Rng rng = {2};
    for (uint32_t i = 0; i < 60; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = random_problem(&rng, 2 + (uint32_t)rng_below(&rng, 6));
        Oracle o;
        oracle_make(&o, &p, 0);
        int64_t best = oracle_best(&o, o.set, o.n, 0, INT64_MAX);
        for (uint32_t s = 0; s < path_strategy_count; s++) {
            for (PathObjective objective = PATH_FLOPS; objective <= PATH_ROOFLINE;
                 objective++) {
                PathOptions options = {
                    .search = path_strategies[s].name, .objective = objective, .effort = 0};
                PathResult r = search(&p, options);
                assert_true(expect_honest(&p, &r).macs >= best);
            }
        }
        arena_reset(&ctx.arena, mark);
    }
}

static void test_size_and_write_are_minimised_when_asked_for(void **state)
{
    Rng rng = {3};
    for (int i = 0; i < 100; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = random_problem(&rng, 3 + (uint32_t)rng_below(&rng, 4));
        PathResult flops = search(&p, (PathOptions){.effort = 1});
        PathResult size = search(&p, (PathOptions){.effort = 1, .objective = PATH_SIZE});
        PathResult write = search(&p, (PathOptions){.effort = 1, .objective = PATH_WRITE});
        assert_true(expect_honest(&p, &size).largest <= expect_honest(&p, &flops).largest);
        assert_true(expect_honest(&p, &write).written <= expect_honest(&p, &flops).written);
        assert_true(expect_honest(&p, &write).written <= expect_honest(&p, &size).written);
        arena_reset(&ctx.arena, mark);
    }
}

/* The least largest tensor over all orders, and the fewest multiply-adds among those; tensors
 * so far are in `so_far`. */
static void oracle_smallest(const Oracle *o, const uint32_t *live, uint32_t n, Costs so_far,
                            Costs *best)
{
    if (so_far.largest > best->largest ||
        (so_far.largest == best->largest && so_far.macs >= best->macs)) {
        return;
    }
    if (n <= 1) {
        *best = so_far;
        return;
    }
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            uint32_t next[MOST];
            memcpy(next, live, n * sizeof *next);
            Costs now = so_far;
            now.macs += product(o, oracle_join(next, n, a, b, o->output));
            int64_t made = product(o, next[n - 2]);
            now.largest = made > now.largest ? made : now.largest;
            oracle_smallest(o, next, n - 1, now, best);
        }
    }
}

/* Labels between pairs of operands, of extents that make tensors a few per cent apart. */
static PathProblem pairs_problem(Rng *rng, uint32_t n)
{
    uint32_t n_labels = 0, most = 16;
    int64_t *sizes = ARENA_ARRAY(&ctx.arena, most, int64_t);
    PathLabels *operands = ARENA_ARRAY(&ctx.arena, n, PathLabels);
    uint32_t *legs = ARENA_ARRAY(&ctx.arena, (size_t)n * most, uint32_t);
    for (uint32_t k = 0; k < n; k++) {
        operands[k].at = legs + (size_t)k * most;
    }
    for (uint32_t k = 0; k < n * n && n_labels < most; k++) {
        uint32_t a = k / n, b = k % n;
        if (a < b && rng_below(rng, 5) < 3) {
            legs[a * most + operands[a].n++] = n_labels;
            legs[b * most + operands[b].n++] = n_labels;
            sizes[n_labels++] = 2 + (int64_t)rng_below(rng, 8);
        }
    }
    return (PathProblem){n, operands, {NULL, 0}, n_labels, sizes, NULL, false, NULL, 0, NULL};
}

static void test_the_largest_tensor_comes_first_when_size_is_asked_for(void **state)
{
    Rng rng = {11};
    uint32_t apart = 0, near = 0; /* annealing may miss the least now and then */
    const uint32_t n_problems = 150 / one_of(3);
    for (uint32_t i = 0; i < n_problems; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        uint32_t n = 3 + (uint32_t)rng_below(&rng, 5);
        PathProblem p = i % 2 == 0 ? pairs_problem(&rng, n) : random_problem(&rng, n);
        Oracle o;
        oracle_make(&o, &p, 0);
        Costs start = {0, 0, 0, 0}, best = {INT64_MAX, 0, INT64_MAX, 0};
        for (uint32_t k = 0; k < o.n; k++) {
            start.largest =
                product(&o, o.set[k]) > start.largest ? product(&o, o.set[k]) : start.largest;
        }
        oracle_smallest(&o, o.set, o.n, start, &best);
        static const char *const names[] = {"auto", "exact", "anneal"};
        for (int k = 0; k < 3; k++) {
            PathResult r = search(
                &p, (PathOptions){.search = names[k], .effort = 1, .objective = PATH_SIZE});
            Costs found = expect_honest(&p, &r);
            assert_true(found.largest >= best.largest);
            assert_true(k == 2 || found.largest == best.largest);
            assert_true(found.macs >= best.macs || found.largest > best.largest);
            assert_true(k == 2 || found.macs == best.macs);
            near += found.largest == best.largest;
        }
        PathResult flops = search(&p, (PathOptions){.effort = 1});
        apart += expect_honest(&p, &flops).largest > best.largest;
        arena_reset(&ctx.arena, mark);
    }
    assert_true(apart > 5 / one_of(3));
    assert_true(near >= 3 * n_problems - 5);
}

static void test_a_memory_limit_holds_and_costs_are_over_all_slices(void **state)
{
    Rng rng = {4};
    uint32_t cut = 0;
    for (unsigned i = 0; i < 150; i += one_of(4)) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = random_problem(&rng, 2 + (uint32_t)rng_below(&rng, 6));
        int64_t limit = 1 + (int64_t)rng_below(&rng, 30);
        PathResult r = search(&p, (PathOptions){.effort = 1, .memory_limit = limit});
        PathResult free = search(&p, (PathOptions){.effort = 1});
        assert_true(expect_honest(&p, &r).largest <= limit);
        cut += r.n_sliced > 0;
        if (expect_honest(&p, &free).largest <= limit) {
            assert_string_equal(r.costs.multiply_adds, free.costs.multiply_adds);
            assert_int_equal(r.n_sliced, 0);
        }
        arena_reset(&ctx.arena, mark);
    }
    assert_true(cut > 20 / one_of(4));
}

/* The least cost over all trees without a tensor above the limit; INT64_MAX: none. */
static int64_t oracle_within(const Oracle *o, const uint32_t *live, uint32_t n, int64_t limit,
                             int64_t so_far, int64_t best)
{
    if (product(o, live[n - 1]) > limit || so_far >= best) {
        return best;
    }
    if (n == 1) {
        return so_far;
    }
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            uint32_t next[MOST];
            memcpy(next, live, n * sizeof *next);
            uint32_t both = oracle_join(next, n, a, b, o->output);
            best = oracle_within(o, next, n - 1, limit, so_far + product(o, both), best);
        }
    }
    return best;
}

/* The same over all sets of sliced labels. */
static int64_t oracle_sliced(const PathProblem *p, int64_t limit)
{
    int64_t best = INT64_MAX;
    for (uint32_t cut = 0; cut < (uint32_t)1 << p->n_labels; cut++) {
        Oracle o;
        int64_t slices = 1;
        bool fits = true;
        oracle_make(&o, p, cut);
        for (uint32_t l = 0; l < p->n_labels; l++) {
            slices *= (cut >> l) & 1 ? p->sizes[l] : 1;
        }
        for (uint32_t k = 0; k < o.n; k++) {
            fits = fits && product(&o, o.set[k]) <= limit;
        }
        if (fits && slices < best) {
            int64_t most = best == INT64_MAX ? best : best / slices + 1;
            int64_t cost = oracle_within(&o, o.set, o.n, limit, 0, most);
            best = cost < most && cost * slices < best ? cost * slices : best;
        }
    }
    return best;
}

static void test_slices_of_small_networks_are_the_best(void **state)
{
    Rng rng = {8};
    uint32_t cut = 0, exact = 0;
    for (int i = 0; i < 60; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = random_problem(&rng, 3 + (uint32_t)rng_below(&rng, 2));
        int64_t limit = 2 + (int64_t)rng_below(&rng, 20);
        PathResult r = search(&p, (PathOptions){.effort = 1, .memory_limit = limit});
        int64_t best = oracle_sliced(&p, limit), found = expect_honest(&p, &r).macs;
        assert_true(found >= best);
        if (r.n_sliced > 0) {
            cut++;
            exact += found == best;
        }
        arena_reset(&ctx.arena, mark);
    }
    assert_true(cut > 10);
    assert_int_equal(exact, cut);
}

/* The least peak over all schedules of a tree: jobs done as a bit set. */
static int64_t least_peak(const PathTree *t, const int64_t *size, uint32_t done, int64_t alive,
                          int64_t peak, int64_t best)
{
    if (done == ((uint32_t)1 << t->n_steps) - 1) {
        return peak < best ? peak : best;
    }
    for (uint32_t k = 0; k < t->n_steps; k++) {
        uint32_t a = t->steps[k].a, b = t->steps[k].b, n = t->n_leaves;
        bool ready =
            (a < n || ((done >> (a - n)) & 1) != 0) && (b < n || ((done >> (b - n)) & 1) != 0);
        if (((done >> k) & 1) != 0 || !ready) {
            continue;
        }
        int64_t high = alive + size[n + k];
        int64_t top = high > peak ? high : peak;
        best =
            least_peak(t, size, done | (uint32_t)1 << k, high - size[a] - size[b], top, best);
    }
    return best;
}

static void test_the_order_of_steps_has_the_least_peak(void **state)
{
    Rng rng = {5};
    for (int i = 0; i < 300; i++) {
        ArenaMark mark = arena_mark(&ctx.arena);
        PathProblem p = random_problem(&rng, 3 + (uint32_t)rng_below(&rng, 6));
        PathResult r = search(
            &p, (PathOptions){.search = "random-greedy", .effort = 0, .seed = (uint64_t)i});
        Oracle o;
        oracle_make(&o, &p, 0);
        uint32_t live[MOST], *linear = path_linear(&r.tree, &ctx.arena);
        int64_t size[2 * MOST], alive = 0;
        for (uint32_t k = 0; k < o.n; k++) {
            live[k] = o.set[k];
            size[k] = product(&o, live[k]);
            alive += size[k];
        }
        for (uint32_t n = o.n, k = 0; n > 1; n--, k++) {
            oracle_join(live, n, linear[2 * k], linear[2 * k + 1], o.output);
            size[o.n + k] = product(&o, live[n - 2]);
        }
        int64_t best = least_peak(&r.tree, size, 0, alive, alive, INT64_MAX);
        assert_string_equal(r.costs.peak, str_format(&ctx.arena, "%lld", (long long)best));
        arena_reset(&ctx.arena, mark);
    }
}

/* ---- text ---- */

static void test_linear_paths_are_read_back(void **state)
{
    Rng rng = {6};
    for (int i = 0; i < 50; i++) {
        PathProblem p = random_problem(&rng, 2 + (uint32_t)rng_below(&rng, 7));
        PathResult r = search(&p, (PathOptions){.effort = 0}), again;
        Text plan;
        PathTree tree;
        PathLabels sliced;
        text_init(&plan, &ctx.arena);
        path_plan_write(&plan, &p, &r, &ctx.arena);
        assert_true(path_plan_read(text_str(&plan), &p, &ctx, &tree, &sliced));
        assert_true(path_accept(&p, &(PathOptions){0}, tree, sliced, &ctx, &again));
        assert_string_equal(again.costs.multiply_adds, r.costs.multiply_adds);
        assert_string_equal(again.costs.peak, r.costs.peak);
        int64_t *other = ARENA_ARRAY(&ctx.arena, p.n_labels, int64_t);
        memcpy(other, p.sizes, p.n_labels * sizeof *other);
        other[0]++;
        p.sizes = other;
        assert_false(path_plan_read(text_str(&plan), &p, &ctx, &tree, &sliced));
    }
}

static void test_paths_that_do_not_fit_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "(0,1)",
                                      "(0,1)(0,1)(0,1)",
                                      "(0,0)(0,1)",
                                      "(0,3)(0,1)",
                                      "(0,1)(0,2)",
                                      "(0,1",
                                      "(a,b)",
                                      "(0,1)x",
                                      "(0)(0,1)",
                                      "(-1,0)",
                                      "(0,1)(0)",
                                      "['einsum_path']",
                                      "['einsum', (0, 1), (0, 1)]",
                                      "(0,99999999999999999999)(0,1)"};
    PathTree t;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t before = ctx.diags.n_errors;
        assert_false(path_parse_linear(bad[i], 3, &ctx, &t));
        assert_true(ctx.diags.n_errors > before);
    }
    assert_true(path_parse_linear("[(0, 1), (0, 1)]", 3, &ctx, &t));
    assert_int_equal(t.steps[0].a, 0);
    assert_int_equal(t.steps[1].a, 2);
    assert_true(path_parse_linear("['einsum_path', (0, 1), (0, 1)]", 3, &ctx, &t));
    assert_true(path_parse_linear("[\"einsum_path\", (1, 2),\n (0, 1)]\n", 3, &ctx, &t));
    assert_int_equal(t.steps[0].a, 1);
    assert_true(path_parse_linear("(0,1,2)", 3, &ctx, &t));
    assert_int_equal(t.n_steps, 2);
    assert_true(path_parse_linear("(0)", 1, &ctx, &t));
    assert_int_equal(t.n_steps, 0);
}

static bool network(const char *json, PathProblem *p)
{
    return path_problem_from_json(str_from(json), (Span){0, 0, 0}, &ctx, p);
}

static void test_network_files_are_checked(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"inputs\": [[0]], \"output\": []}",
        "{\"inputs\": [[0]], \"output\": [], \"sizes\": [-1]}",
        "{\"inputs\": [[1]], \"output\": [], \"sizes\": [2]}",
        "{\"inputs\": [[0]], \"output\": [1], \"sizes\": [2, 2]}",
        "{\"inputs\": [0], \"output\": [], \"sizes\": [2]}",
        "{\"inputs\": [[0.5]], \"output\": [], \"sizes\": [2]}",
        "{\"inputs\": [[0]], \"output\": [], \"sizes\": [2]} x",
        "{\"inputs\": [[0]], \"output\": [], \"sizes\": {\"x\": 2}}",
        "{\"inputs\": [[0]], \"output\": [0, 0], \"sizes\": [2]}",
        "{\"inputs\": [[1]], \"output\": [], \"sizes\": {\"1\": 2, \"01\": 3}}",
        "{\"inputs\": [[\"a\"]], \"output\": [], \"sizes\": [2]}",
        "{\"inputs\": [[\"a\", 0]], \"output\": [], \"sizes\": {\"a\": 2, \"0\": 2}}",
        "{\"inputs\": [[\"a\"]], \"output\": [\"b\"], \"sizes\": {\"a\": 2, \"b\": 2}}",
        "{\"inputs\": [[\"a\"]], \"output\": [], \"sizes\": {\"b\": 2}}",
        "{\"inputs\": [[0]], \"sizes\": [2]}",
        "{\"inputs\": [[0]], \"output\": [], \"sizes\": {\"0\": 2, \"99999999999\": 3}}"};
    PathProblem p;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(network(bad[i], &p));
    }
    assert_true(network("{\"inputs\": [[0,1],[1,2]], \"output\": [0,2], \"sizes\": "
                        "{\"0\":2,\"1\":3,\"2\":4}, \"x\": 1}",
                        &p));
    assert_string_equal(search(&p, (PathOptions){.effort = 1}).costs.multiply_adds, "24");
    assert_true(
        network("{\"inputs\": [[\"i\",\"j\"],[\"j\",\"k\"]], \"output\": null, \"sizes\": "
                "{\"k\":4,\"i\":2,\"j\":3}}",
                &p));
    assert_int_equal(p.output.n, 2);
    assert_string_equal(p.names[p.output.at[1]], "k");
    assert_string_equal(search(&p, (PathOptions){.effort = 1}).costs.multiply_adds, "24");
}

/* ---- corners ---- */

static void test_corners_have_the_right_numbers(void **state)
{
    static const struct {
        const char *json, *macs, *largest, *peak;
    } row[] = {
        {"{\"inputs\": [], \"output\": [], \"sizes\": []}", "0", "0", "0"},
        {"{\"inputs\": [[]], \"output\": [], \"sizes\": []}", "0", "1", "1"},
        {"{\"inputs\": [[],[],[]], \"output\": [], \"sizes\": []}", "2", "1", "4"},
        {"{\"inputs\": [[0,0]], \"output\": [], \"sizes\": [5]}", "0", "1", "1"},
        {"{\"inputs\": [[0,0]], \"output\": [0], \"sizes\": [5]}", "0", "5", "5"},
        {"{\"inputs\": [[0,1],[2,3]], \"output\": [], \"sizes\": [5,6,7,8]}", "1", "1", "3"},
        {"{\"inputs\": [[0,1],[1,2]], \"output\": [0,2], \"sizes\": [1,1,1]}", "1", "1", "3"},
        {"{\"inputs\": [[0,1],[1,2],[2,3]], \"output\": [0,3], \"sizes\": [2,0,3,4]}", "0",
         "12", "12"},
        {"{\"inputs\": [[0,1],[0,1]], \"output\": [], \"sizes\": [3,4]}", "12", "12", "25"},
        {"{\"inputs\": [[0],[1]], \"output\": [0,1], \"sizes\": "
         "[4611686018427387904,4611686018427387904]}",
         "21267647932558653966460912964485513216", "21267647932558653966460912964485513216",
         "21267647932558653975684285001340289024"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        PathProblem p;
        assert_true(network(row[i].json, &p));
        PathResult r = search(&p, (PathOptions){.effort = 1});
        assert_string_equal(r.costs.multiply_adds, row[i].macs);
        assert_string_equal(r.costs.largest, row[i].largest);
        assert_string_equal(r.costs.peak, row[i].peak);
    }
}

static PathProblem chain(uint32_t n, int64_t size)
{
    int64_t *sizes = ARENA_ARRAY(&ctx.arena, (size_t)n + 1, int64_t);
    PathLabels *operands = ARENA_ARRAY(&ctx.arena, n, PathLabels);
    uint32_t *labels = ARENA_ARRAY(&ctx.arena, (size_t)n * 2, uint32_t),
             *ends = ARENA_ARRAY(&ctx.arena, 2, uint32_t);
    for (uint32_t k = 0; k <= n; k++) {
        sizes[k] = size;
    }
    for (uint32_t k = 0; k < n; k++) {
        labels[2 * k] = k;
        labels[2 * k + 1] = k + 1;
        operands[k] = (PathLabels){labels + 2 * k, 2};
    }
    ends[1] = n;
    return (PathProblem){n, operands, {ends, 2}, n + 1, sizes, NULL, false, NULL, 0, NULL};
}

static void test_a_long_chain_takes_linear_time(void **state)
{
    ArenaMark mark = arena_mark(&ctx.arena);
    PathProblem p = chain(100000, 2);
    PathResult r = search(&p, (PathOptions){.effort = 0});
    assert_string_equal(r.costs.multiply_adds, "799992"); /* 8 for each step */
    arena_reset(&ctx.arena, mark);
}

static void test_costs_beyond_a_double_are_exact(void **state)
{
    /* 2000 vectors of 4: an outer product of 4^2000 elements. */
    uint32_t n = 2000, *labels = ARENA_ARRAY(&ctx.arena, n, uint32_t);
    PathLabels *operands = ARENA_ARRAY(&ctx.arena, n, PathLabels);
    int64_t *sizes = ARENA_ARRAY(&ctx.arena, n, int64_t);
    for (uint32_t k = 0; k < n; k++) {
        labels[k] = k;
        sizes[k] = 4;
        operands[k] = (PathLabels){labels + k, 1};
    }
    PathProblem p = {n, operands, {labels, n}, n, sizes, NULL, false, NULL, 0, NULL};
    PathResult r = search(&p, (PathOptions){.effort = 0});
    assert_int_equal(strlen(r.costs.largest), 1205); /* 4^2000 */
    assert_true(r.costs.log2_largest > 3999.999 && r.costs.log2_largest < 4000.001);
    assert_true(r.costs.log10_multiply_adds > 1204.1 && r.costs.log10_multiply_adds < 1204.5);
}

/* Where logarithms cannot tell the largest tensor from the limit. */
static void test_a_limit_of_many_digits_is_kept(void **state)
{
    (void)state;
    const uint32_t labels[] = {0, 1, 2};
    const int64_t sizes[] = {1048576, 1048576, 4};
    const PathLabels operands[] = {{labels, 2}, {labels + 1, 2}};
    const uint32_t out[] = {0, 2};
    PathProblem p = {2, operands, {out, 2}, 3, sizes, NULL, false, NULL, 0, NULL};
    PathResult r = search(&p, (PathOptions){.memory_limit = 1099511627775, .effort = 1});
    assert_true(r.n_sliced > 0);
    r = search(&p, (PathOptions){.memory_limit = 1099511627776, .effort = 1});
    assert_int_equal(r.n_sliced, 0);
}

static void test_bad_options_are_refused_with_a_reason(void **state)
{
    Ctx saved = ctx; /* diagnostics of its own: only so many are kept */
    ctx_init(&ctx);
    PathProblem p = chain(5, 4);
    PathResult r;
    Text said;
    text_init(&said, &ctx.arena);
    assert_false(path_search(&p, &(PathOptions){.search = "anneel"}, &ctx, &r));
    assert_false(path_search(&p, &(PathOptions){.memory_limit = -1}, &ctx, &r));
    diags_render(&ctx.diags, &said, false);
    assert_non_null(strstr(said.at, "did you mean 'anneal'"));
    for (uint32_t i = 0; i < path_strategy_count; i++) {
        assert_non_null(strstr(said.at, path_strategies[i].name));
    }
    assert_true(path_search(&p, &(PathOptions){.memory_limit = 15, .effort = 1}, &ctx, &r));
    assert_true(r.n_sliced > 0);
    assert_null(strstr(said.at, "at most 24 operands"));
    PathProblem many = chain(30, 2); /* the reason is their number, limit or not */
    uint32_t before = ctx.diags.n_errors;
    assert_false(path_search(
        &many, &(PathOptions){.search = "exact", .memory_limit = 64, .effort = 1}, &ctx, &r));
    assert_int_equal(ctx.diags.n_errors, before + 1);
    text_init(&said, &ctx.arena);
    diags_render(&ctx.diags, &said, false);
    assert_non_null(strstr(said.at, "'exact' takes at most 24 operands"));
    ctx_release(&ctx);
    ctx = saved;
}

/* A ring of rings with mixed extents, 48 operands: no optimum known to the test, the answer is fixed all the same. */
static PathProblem rings(void)
{
    uint32_t n = 48, at = 0, *labels = ARENA_ARRAY(&ctx.arena, (size_t)n * 4, uint32_t);
    PathLabels *operands = ARENA_ARRAY(&ctx.arena, n, PathLabels);
    int64_t *sizes = ARENA_ARRAY(&ctx.arena, (size_t)n * 2, int64_t);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t *mine = labels + at;
        mine[0] = k;
        mine[1] = (k + 1) % n;
        mine[2] = n + k;
        mine[3] = n + (k + 7) % n;
        operands[k] = (PathLabels){mine, 4};
        at += 4;
        sizes[k] = 2 + k % 3;
        sizes[n + k] = 2 + k % 2;
    }
    return (PathProblem){n, operands, {NULL, 0}, 2 * n, sizes, NULL, false, NULL, 0, NULL};
}

static void test_the_answer_depends_on_the_seed_only(void **state)
{
    PathProblem p = rings();
    for (uint64_t seed = one_of(3) - 1; seed < 2; seed++) {
        PathResult x = search(&p, (PathOptions){.effort = 1, .seed = seed});
        PathResult y = search(&p, (PathOptions){.effort = 1, .seed = seed});
        Text a, b;
        text_init(&a, &ctx.arena);
        text_init(&b, &ctx.arena);
        path_report_json(&a, &p, &x, 0.0, &ctx.arena);
        path_report_json(&b, &p, &y, 0.0, &ctx.arena);
        assert_string_equal(a.at, b.at);
    }
    PathResult r = search(&p, (PathOptions){.effort = 1, .memory_limit = 1 << 12});
    /* Fixed numbers, for every compiler; a change of the search changes them knowingly. */
    assert_string_equal(search(&p, (PathOptions){.effort = 1}).costs.multiply_adds,
                        "204320196");
    assert_string_equal(r.costs.multiply_adds, "217152576");
}

static void test_an_interrupted_search_keeps_its_best(void **state)
{
    volatile sig_atomic_t stop = 1;
    PathProblem p = rings();
    PathResult r = search(&p, (PathOptions){.effort = 1000, .interrupt = &stop});
    assert_true(r.interrupted);
}

static void test_the_text_report_names_what_people_look_for(void **state)
{
    PathProblem p = chain(3, 4);
    static const char *const names[] = {"i", "j", "k", "l"};
    p.names = names;
    PathResult r = search(&p, (PathOptions){.effort = 1});
    Text t;
    text_init(&t, &ctx.arena);
    path_report_text(&t, &p, &r, 0.0, &ctx.arena);
    assert_non_null(strstr(t.at, "ij,jk,kl->il"));
    assert_non_null(strstr(t.at, "Naive scaling:  4"));
    assert_non_null(strstr(t.at, "Optimized scaling:  3"));
    assert_non_null(strstr(t.at, "gemm"));
}

TESTS_IN_CTX(TEST(test_the_default_is_optimal_on_small_networks),
             TEST(test_every_search_and_objective_gives_honest_numbers),
             TEST(test_size_and_write_are_minimised_when_asked_for),
             TEST(test_the_largest_tensor_comes_first_when_size_is_asked_for),
             TEST(test_a_memory_limit_holds_and_costs_are_over_all_slices),
             TEST(test_slices_of_small_networks_are_the_best),
             TEST(test_the_order_of_steps_has_the_least_peak),
             TEST(test_linear_paths_are_read_back),
             TEST(test_paths_that_do_not_fit_are_refused), TEST(test_network_files_are_checked),
             TEST(test_corners_have_the_right_numbers),
             TEST(test_a_long_chain_takes_linear_time),
             TEST(test_costs_beyond_a_double_are_exact),
             TEST(test_a_limit_of_many_digits_is_kept),
             TEST(test_bad_options_are_refused_with_a_reason),
             TEST(test_the_answer_depends_on_the_seed_only),
             TEST(test_an_interrupted_search_keeps_its_best),
             TEST(test_the_text_report_names_what_people_look_for))
