/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule: the graph it leaves (cases.txt), and that the value is the same, bit for bit, on small integers and on the
 * awkward values of floating point. */
#include "../graph/support.h"

#include "opt/opt.h"
#include "support_random.h"
#include "support/golden.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef Graph *(*Pass)(Ctx *, Arena *, const Graph *);

static Graph *domains(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_domains(ctx, arena, (Graph *)g);
}

static Graph *collapse(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_collapse(ctx, arena, (Graph *)g);
}

static Graph *products(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_products(ctx, arena, g, false);
}

static Graph *products_masked(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_products(ctx, arena, g, true);
}

static Graph *narrow(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_narrow(ctx, arena, (Graph *)g);
}

static Graph *onto(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_onto(ctx, arena, (Graph *)g);
}

/* Equal to the bit, or off by so many units of the type at numbers of size 1 and more. */
static bool same_part(double a, double b, double units)
{
    double most = fabs(a) > 1 ? fabs(a) : 1;
    return (isnan(a) && isnan(b)) || (a == b && !signbit(a) == !signbit(b)) ||
           fabs(a - b) <= units * most;
}

static bool same_number(Number a, Number b, double units)
{
    units *= a.dtype == DTYPE_F64 || a.dtype == DTYPE_C128 ? DBL_EPSILON : (double)FLT_EPSILON;
    return a.i == b.i && same_part(a.re, b.re, units) && same_part(a.im, b.im, units);
}

static Number random_number(DType t, bool awkward, Rng *rng)
{
    static const double values[8] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0.5};
    if (awkward && !dtype_is_exact(t)) {
        return (Number){t, 0, values[rng_below(rng, 8)],
                        dtype_is_complex(t) ? values[rng_below(rng, 8)] : 0};
    }
    return number_int(t, t == DTYPE_BOOL ? (int64_t)rng_below(rng, 2)
                                         : (int64_t)rng_below(rng, 7) - 3);
}

/* Both graphs compute the same for the same random arguments, up to so many units of rounding. */
static void assert_same_within(Bench *b, const Graph *before, const Graph *after, bool awkward,
                               double units)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        Rng rng = {seed};
        int64_t dims[8] = {3, 2, 4, 1, 2, 3, 2, 2};
        Tensor **args = ARENA_ARRAY(&b->ctx.arena, before->params.n, Tensor *);
        for (uint32_t p = 0; p < before->params.n; p++) {
            const Param *param = &before->params.at[p];
            int64_t extent[RANK_LIMIT];
            for (uint32_t d = 0; d < param->rank; d++) {
                Dim e = param->shape[d];
                extent[d] = e.sym < 0 ? e.n : dims[e.sym];
            }
            args[p] = tensor_new(&b->ctx, &b->ctx.arena, param->dtype, param->rank, extent);
            for (int64_t i = 0; i < args[p]->count; i++) {
                tensor_set(args[p], i, random_number(param->dtype, awkward, &rng));
            }
        }
        Tensor **x = ARENA_ARRAY(&b->ctx.arena, before->results.n, Tensor *);
        Tensor **y = ARENA_ARRAY(&b->ctx.arena, before->results.n, Tensor *);
        assert_true(graph_eval(&b->ctx, &b->ctx.arena, before, dims, args, x));
        assert_true(graph_eval(&b->ctx, &b->ctx.arena, after, dims, args, y));
        for (uint32_t k = 0; k < before->results.n; k++) {
            assert_int_equal(x[k]->count, y[k]->count);
            assert_int_equal(x[k]->dtype, y[k]->dtype);
            for (int64_t i = 0; i < x[k]->count; i++) {
                if (!same_number(tensor_get(x[k], i), tensor_get(y[k], i), units)) {
                    print_error("%s\n%s\n%s\n%s\n", bench_dump(b, before), bench_dump(b, after),
                                bench_print(b, x[k]), bench_print(b, y[k]));
                    fail();
                }
            }
        }
    }
}

static void assert_same_value(Bench *b, const Graph *before, const Graph *after, bool awkward)
{
    assert_same_within(b, before, after, awkward, 0);
}

/* ---- the cases ---- */

/* Additions of the longest sum of the cases, and two roundings of each term. */
#define UNITS 100

#define CASES "tests/opt/cases.txt"

static Graph *lookups(Ctx *ctx, Arena *arena, const Graph *g)
{
    return opt_lookups(ctx, arena, g, false);
}

static Pass pass_of(const char *name)
{
    static const struct {
        const char *name;
        Pass pass;
    } of[] = {{"simplify", opt_simplify},
              {"lookups", lookups},
              {"functions", opt_functions},
              {"powers", opt_powers},
              {"products", products},
              {"products-masked", products_masked},
              {"normalise", opt_normalise},
              {"narrow", narrow},
              {"collapse", collapse},
              {"domains", domains},
              {"onto", onto}};
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        if (strcmp(name, of[k].name) == 0) {
            return of[k].pass;
        }
    }
    fail_msg("%s is no pass", name);
    return NULL;
}

/* What the pass makes of the graph of the lines from the first node on. */
static void put_case(const char *name, const char *lines, Text *out)
{
    Pass pass = pass_of(name);
    Bench *b = bench_new();
    const Graph *before = bench_graph(b, lines);
    const Graph *after = pass(&b->ctx, &b->ctx.arena, before);
    assert_true(graph_verify(&b->ctx, after, "the pass"));
    const char *got = bench_dump(b, after), *nodes = strstr(got, "  %0");
    assert_non_null(nodes);
    text_printf(out, "%s\n%sgives\n%.*s", name, lines, (int)strlen(nodes) - 2, nodes);
    bool rounds = pass == products || pass == products_masked || pass == opt_powers ||
                  pass == opt_functions;
    assert_same_within(b, before, after, false, rounds ? UNITS : 0);
    if (pass == opt_simplify) {
        assert_same_value(b, before, after, true);
    }
    const Graph *again = pass(&b->ctx, &b->ctx.arena, after);
    assert_string_equal(bench_dump(b, again), got);
    bench_free(b);
}

/* Of a case up to `gives`; other lines are themselves. */
static void a_pass_makes_of_each_graph_what_its_case_says(void **state)
{
    Arena arena;
    Text out, lines;
    size_t n = 0;
    arena_init(&arena, NULL);
    text_init(&out, &arena);
    const char *at = file_text(&arena, CASES, &n), *end = at + n, *name = NULL;
    uint32_t cases = 0;
    bool given = false;
    while (at < end) {
        int length = (int)strcspn(at, "\n");
        const char *line = str_format(&arena, "%.*s\n", length, at);
        at += length + 1;
        if (name != NULL && strcmp(line, "gives\n") == 0) {
            put_case(name, lines.at, &out);
            name = NULL;
            given = true;
            cases++;
        } else if (name != NULL) {
            text_put(&lines, line);
        } else if (strchr("sndcoplf", line[0]) != NULL) {
            name = str_format(&arena, "%.*s", length, line);
            text_init(&lines, &arena);
        } else if (!given || line[0] != ' ') {
            text_put(&out, line);
            given = false;
        }
    }
    assert_true(name == NULL && cases >= 90);
    assert_golden(&arena, CASES, out.at);
    arena_release(&arena);
}

/* ---- random graphs, through both passes ---- */

static void random_programs_keep_their_value(void **state)
{
    static const DType types[] = {DTYPE_F64, DTYPE_I32, DTYPE_F32, DTYPE_I64};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        Bench *b = bench_new();
        Rng rng = {seed};
        DType t = types[seed % 4];
        Graph *g = random_graph(b, &rng, t);
        for (uint32_t k = 0; k < 2; k++) {
            Result r = {.name = sym_cstr(&b->ctx.syms, k == 0 ? "R" : "S"),
                        .node = g->nodes.n - 1 - k,
                        .param = -1};
            vec_push(g->arena, &g->results, r);
        }
        assert_true(graph_verify(&b->ctx, g, "the generator"));
        Graph *simple = opt_simplify(&b->ctx, &b->ctx.arena, g);
        assert_true(graph_verify(&b->ctx, simple, "simplify"));
        Graph *normal = opt_normalise(&b->ctx, &b->ctx.arena, simple);
        assert_true(graph_verify(&b->ctx, normal, "normalise"));
        assert_same_value(b, g, simple, false);
        assert_same_value(b, g, normal, false);
        assert_same_value(b, g, simple, true);
        Graph *narrowed = opt_narrow(&b->ctx, &b->ctx.arena, normal);
        assert_true(graph_verify(&b->ctx, narrowed, "narrow"));
        assert_same_value(b, normal, narrowed, true);
        bench_free(b);
    }
}

/* ---- values for each order ---- */

static const char several[] = "  param in @A : f64[3,5]\n"
                              "  param in @B : f64[5,3]\n"
                              "  %0 = input @A : f64[3,5]\n"
                              "  %1 = input @B : f64[5,3]\n"
                              "  %2 = einsum %0[a,b], %1[b,c] -> [a,c] : f64[3,3] as X\n"
                              "  %3 = neg %2[a,b] -> [b,a] : f64[3,3]\n"
                              "  %4 = sub %3[a,b], %2[a,b] -> [a,b] : f64[3,3]\n"
                              "  %5 = mul %4[a,b], %4[b,a] -> [a,b] : f64[3,3]\n"
                              "  %6 = reduce.sum %5[a,b] -> [] : f64[]\n"
                              "  %7 = einsum %2[a,b], %4[b,c] -> [a,c] : f64[3,3]\n"
                              "  result @R = %6\n"
                              "  result @S = %7\n";

/* Expressions of the value follow; a contraction reads it as it is. */
static void a_value_is_computed_once_for_each_order_in_which_it_is_read(void **state)
{
    Bench *b = bench_new();
    uint32_t n = 0;
    const Graph *g = bench_graph(b, several);
    const Graph *split = opt_split_orders(&b->ctx, &b->ctx.arena, g, 2, &n);
    assert_non_null(split);
    assert_int_equal(n, 2);
    assert_true(graph_verify(&b->ctx, split, "the split"));
    assert_string_equal(strstr(bench_dump(b, split), "  %2"),
                        "  %2 = einsum %0[a,b], %1[b,c] -> [a,c] : f64[3,3] as X\n"
                        "  %3 = einsum %0[a,b], %1[b,c] -> [c,a] : f64[3,3] as X\n"
                        "  %4 = neg %3[a,b] -> [a,b] : f64[3,3]\n"
                        "  %5 = neg %2[a,b] -> [a,b] : f64[3,3]\n"
                        "  %6 = sub %4[a,b], %2[a,b] -> [a,b] : f64[3,3]\n"
                        "  %7 = sub %5[a,b], %3[a,b] -> [a,b] : f64[3,3]\n"
                        "  %8 = mul %6[a,b], %7[a,b] -> [a,b] : f64[3,3]\n"
                        "  %9 = reduce.sum %8[a,b] -> [] : f64[]\n"
                        "  %10 = einsum %2[a,b], %6[b,c] -> [a,c] : f64[3,3]\n"
                        "  result @R = %9\n"
                        "  result @S = %10\n"
                        "}\n");
    assert_same_value(b, g, split, true);
    assert_null(opt_split_orders(&b->ctx, &b->ctx.arena, g, 6, &n)); /* nobody reads it twice */
    bench_free(b);
}

static void graphs_with_a_value_for_each_order_compute_the_same(void **state)
{
    uint32_t made = 0;
    static const char *const order[] = {"a,b,c", "a,c,b", "b,a,c", "b,c,a", "c,a,b", "c,b,a"};
    static const char *const ops[] = {"add", "sub", "mul"};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        Bench *b = bench_new();
        Rng rng = {seed};
        Text t;
        text_init(&t, &b->ctx.arena);
        text_put(
            &t, "param in @A : f64[2,2,3]\nparam in @B : f64[3,2]\n%0 = input @A : f64[2,2,3]\n"
                "%1 = input @B : f64[3,2]\n%2 = einsum %0[a,b,d], %1[d,c] -> [a,b,c] : "
                "f64[2,2,2]\n");
        uint64_t last = 3 + rng_below(&rng, 5);
        for (uint64_t k = 3; k <= last; k++) {
            uint64_t x = 2 + rng_below(&rng, k - 2), y = 2 + rng_below(&rng, k - 2);
            text_printf(&t, "%%%d = %s %%%d[%s], %%%d[%s] -> [%s] : f64[2,2,2]\n", (int)k,
                        ops[rng_below(&rng, 3)], (int)x, order[rng_below(&rng, 6)], (int)y,
                        order[rng_below(&rng, 6)], order[rng_below(&rng, 6)]);
        }
        text_printf(&t, "result @R = %%%d\n%s", (int)last,
                    seed % 3 == 0 ? "result @S = %2\n" : "");
        const Graph *g = opt_simplify(&b->ctx, &b->ctx.arena, bench_graph(b, t.at));
        for (NodeRef k = 2; k < g->nodes.n; k++) {
            uint32_t n = 0;
            const Graph *split = opt_split_orders(&b->ctx, &b->ctx.arena, g, k, &n);
            if (split != NULL) {
                made++;
                assert_true(n > 1);
                assert_true(graph_verify(&b->ctx, split, "the split"));
                assert_same_value(b, g, split, false);
            }
        }
        bench_free(b);
    }
    print_message("%u graphs with a value twice\n", made);
    assert_true(made > 300);
}

/* Quadratic work would not end within the test's time. */
static void long_products_of_own_sums_and_copies_stay_quick(void **state)
{
    enum { MANY = 50000 };
    Bench *b = bench_new();
    Text t;
    text_init(&t, &b->ctx.arena);
    text_put(&t, "param in @A : f64[2]\n%0 = input @A : f64[2]\n%1 = const 2.0 : f64[]\n"
                 "%2 = copy %1[] -> [a] : f64[3]\n%3 = einsum ");
    for (int k = 0; k < MANY; k++) {
        text_printf(&t, "%s%%0[x%d], %%2[y%d]", k == 0 ? "" : ", ", k, k);
    }
    text_put(&t, " -> [x0] : f64[2]\nresult @R = %3");
    const Graph *g = bench_graph(b, t.at);
    const Graph *simple = opt_simplify(&b->ctx, &b->ctx.arena, g);
    const Graph *normal = opt_normalise(&b->ctx, &b->ctx.arena, simple);
    assert_true(graph_verify(&b->ctx, normal, "normalise"));
    const char *head =
        "  %0 = input @A : f64[2]\n  %1 = const 2.0 : f64[]\n"
        "  %2 = copy %1[] -> [a] : f64[3]\n  %3 = reduce.sum %2[a] -> [] : f64[]\n"
        "  %4 = reduce.sum %0[a] -> [] : f64[]\n"
        "  %5 = einsum %0[a], %3[], %4[], %3[], %4[],";
    assert_non_null(strstr(bench_dump(b, normal), head));
    bench_free(b);
}

TESTS(TEST(long_products_of_own_sums_and_copies_stay_quick),
      TEST(a_pass_makes_of_each_graph_what_its_case_says),
      TEST(random_programs_keep_their_value),
      TEST(a_value_is_computed_once_for_each_order_in_which_it_is_read),
      TEST(graphs_with_a_value_for_each_order_compute_the_same))
