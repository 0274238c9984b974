/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule: the graph it leaves, and that the value is the same, bit for bit, on small integers and on the awkward values
 * of floating point. */
#include "../graph/support.h"

#include "opt/opt.h"

#include <math.h>
#include <string.h>

typedef Graph *(*Pass)(Ctx *, Arena *, const Graph *);

static bool same_number(Number a, Number b)
{
    bool re =
        (isnan(a.re) && isnan(b.re)) || (a.re == b.re && !signbit(a.re) == !signbit(b.re));
    bool im =
        (isnan(a.im) && isnan(b.im)) || (a.im == b.im && !signbit(a.im) == !signbit(b.im));
    return a.i == b.i && re && im;
}

static Number random_number(DType t, bool awkward, Rng *rng)
{
    static const double values[8] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0.5};
    if (awkward && !dtype_is_int(t) && t != DTYPE_BOOL) {
        return (Number){t, 0, values[rng_below(rng, 8)],
                        dtype_is_complex(t) ? values[rng_below(rng, 8)] : 0};
    }
    return number_int(t, t == DTYPE_BOOL ? (int64_t)rng_below(rng, 2)
                                         : (int64_t)rng_below(rng, 7) - 3);
}

/* Both graphs compute the same for the same random arguments. */
static void assert_same_value(Bench *b, const Graph *before, const Graph *after, bool awkward)
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
                if (!same_number(tensor_get(x[k], i), tensor_get(y[k], i))) {
                    print_error("%s\n%s\n%s\n%s\n", bench_dump(b, before), bench_dump(b, after),
                                bench_print(b, x[k]), bench_print(b, y[k]));
                    fail();
                }
            }
        }
    }
}

/* `pass` of the kernel `lines` is the kernel `expected` (lines from the first node on). */
static void assert_becomes(Pass pass, const char *lines, const char *expected, bool awkward)
{
    Bench *b = bench_new();
    const Graph *before = bench_graph(b, lines);
    const Graph *after = pass(&b->ctx, &b->ctx.arena, before);
    assert_true(graph_verify(&b->ctx, after, "the pass"));
    const char *got = bench_dump(b, after);
    const char *nodes = strstr(got, "  %0");
    if (nodes == NULL || strncmp(nodes, expected, strlen(expected)) != 0 ||
        strcmp(nodes + strlen(expected), "}\n") != 0) {
        print_error("for:\n%s\nexpected:\n%s\ngot:\n%s\n", lines, expected, got);
        fail();
    }
    assert_same_value(b, before, after, false);
    if (awkward) {
        assert_same_value(b, before, after, true);
    }
    const Graph *again = pass(&b->ctx, &b->ctx.arena, after);
    assert_string_equal(bench_dump(b, again), got);
    bench_free(b);
}

static void assert_simplifies(const char *lines, const char *expected)
{
    assert_becomes(opt_simplify, lines, expected, true);
}

static void assert_normalises(const char *lines, const char *expected)
{
    assert_becomes(opt_normalise, lines, expected, false);
}

/* One op on a parameter x of type T (a vector of 3) and a constant c, both orders if wanted. */
static void assert_op(const char *t, const char *op, const char *constant, bool constant_first,
                      const char *expected)
{
    Bench *b = bench_new();
    const char *lines =
        str_format(&b->ctx.arena,
                   "param in @x : %s[3]\n%%0 = input @x : %s[3]\n%%1 = const %s : %s[]\n"
                   "%%2 = %s %s, %s -> [a] : %s[3]\nresult @R = %%2",
                   t, t, constant, t, op, constant_first ? "%1[]" : "%0[a]",
                   constant_first ? "%0[a]" : "%1[]", t);
    const char *want = expected;
    if (expected == NULL) { /* stays: as dumped without a pass */
        Graph *g = bench_graph(b, lines);
        want = strstr(bench_dump(b, g), "  %0");
        want = str_dup(&b->ctx.arena, (Str){want, strlen(want) - 2});
    }
    assert_simplifies(lines, want);
    bench_free(b);
}

#define X(t) "  %0 = input @x : " t "[3]\n"

static void units_of_arithmetic_go_where_that_is_exact(void **state)
{
    (void)state;
    const char *f64 = X("f64") "  result @R = %0\n", *i32 = X("i32") "  result @R = %0\n";
    assert_op("f64", "add", "-0.0", false, f64);
    assert_op("f64", "add", "-0.0", true, f64);
    assert_op("f64", "add", "0.0", false, NULL);
    assert_op("i32", "add", "0", false, i32);
    assert_op("i32", "add", "0", true, i32);
    assert_op("c64", "add", "complex(-0.0, -0.0)", false, X("c64") "  result @R = %0\n");
    assert_op("c64", "add", "complex(-0.0, 0.0)", false, NULL);
    assert_op("f64", "sub", "0.0", false, f64);
    assert_op("f64", "sub", "-0.0", false, NULL);
    assert_op("i32", "sub", "0", false, i32);
    assert_op("f64", "sub", "-0.0", true,
              X("f64") "  %1 = neg %0[a] -> [a] : f64[3]\n  result @R = %1\n");
    assert_op("f64", "sub", "0.0", true, NULL);
    assert_op("f32", "mul", "1.0", false, X("f32") "  result @R = %0\n");
    assert_op("f32", "mul", "1.0", true, X("f32") "  result @R = %0\n");
    assert_op("c128", "mul", "complex(1.0, 0.0)", true, NULL);
    assert_op("f64", "mul", "0.0", false, NULL);
    assert_op("f64", "mul", "-1.0", true,
              X("f64") "  %1 = neg %0[a] -> [a] : f64[3]\n  result @R = %1\n");
    assert_op("i64", "mul", "0", false,
              "  %0 = const 0 : i64[]\n  %1 = copy %0[] -> [a] : i64[3]\n  result @R = %1\n");
    assert_op("f64", "div", "1.0", false, f64);
    assert_op("f64", "div", "1.0", true, NULL);
    assert_op("f32", "div", "4.0", false,
              X("f32") "  %1 = const 0.25 : f32[]\n  %2 = mul %0[a], %1[] -> [a] : f32[3]\n"
                       "  result @R = %2\n");
    assert_op("f64", "div", "3.0", false, NULL);
    assert_op("f64", "div", "0.0", false, NULL);
    assert_op("i32", "div", "2", false, NULL);
    assert_op("f64", "scale", "0.0", true,
              "  %0 = const 0.0 : f64[]\n  %1 = copy %0[] -> [a] : f64[3]\n  result @R = %1\n");
    assert_op("f64", "scale", "1.0", true, f64);
    assert_op("f64", "scale", "2.0", true,
              X("f64") "  %1 = const 2.0 : f64[]\n  %2 = mul %1[], %0[a] -> [a] : f64[3]\n"
                       "  result @R = %2\n");
    assert_op("f64", "scale", "1.0", false, NULL);
    assert_op("bool", "and", "true", false, X("bool") "  result @R = %0\n");
    assert_op("bool", "or", "false", true, X("bool") "  result @R = %0\n");
    assert_op(
        "bool", "or", "true", true,
        "  %0 = const true : bool[]\n  %1 = copy %0[] -> [a] : bool[3]\n  result @R = %1\n");
}

#define IN(t)  "param in @x : " t "[3,3]\n%0 = input @x : " t "[3,3]\n"
#define OUT(t) "  %0 = input @x : " t "[3,3]\n"

static void pairs_of_operations_vanish(void **state)
{
    (void)state;
    assert_simplifies(IN("f64") "%1 = neg %0[a,b] -> [b,a] : f64[3,3]\n"
                                "%2 = neg %1[a,b] -> [b,a] : f64[3,3]\nresult @R = %2",
                      OUT("f64") "  result @R = %0\n");
    assert_simplifies(
        IN("bool") "%1 = not %0[a,b] -> [a,b] : bool[3,3]\n"
                   "%2 = not %1[a,b] -> [b,a] : bool[3,3]\nresult @R = %2",
        OUT("bool") "  %1 = copy %0[a,b] -> [b,a] : bool[3,3]\n  result @R = %1\n");
    assert_simplifies(IN("c64") "%1 = conj %0[a,b] -> [a,b] : c64[3,3]\n"
                                "%2 = conj %1[a,a] -> [a] : c64[3]\nresult @R = %2",
                      OUT("c64") "  %1 = copy %0[a,a] -> [a] : c64[3]\n  result @R = %1\n");
    assert_simplifies(IN("f64") "%1 = abs %0[a,b] -> [a,b] : f64[3,3]\n"
                                "%2 = abs %1[a,b] -> [a,b] : f64[3,3]\nresult @R = %2",
                      OUT("f64") "  %1 = abs %0[a,b] -> [a,b] : f64[3,3]\n  result @R = %1\n");
    assert_simplifies(IN("c128") "%1 = neg %0[a,b] -> [a,b] : c128[3,3]\n"
                                 "%2 = abs %1[a,b] -> [a,b] : f64[3,3]\nresult @R = %2",
                      OUT("c128") "  %1 = abs %0[a,b] -> [a,b] : f64[3,3]\n  result @R = %1\n");
    assert_simplifies(IN("f64") "%1 = neg %0[a,b] -> [b,a] : f64[3,3]\n"
                                "%2 = cos %1[a,b] -> [a,b] : f64[3,3]\n"
                                "%3 = mul %1[a,b], %1[b,a] -> [a,b] : f64[3,3]\n"
                                "result @R = %2\nresult @S = %3",
                      OUT("f64") "  %1 = cos %0[a,b] -> [b,a] : f64[3,3]\n"
                                 "  %2 = mul %0[a,b], %0[b,a] -> [b,a] : f64[3,3]\n"
                                 "  result @R = %1\n  result @S = %2\n");
    assert_simplifies(IN("f32") "%1 = relu %0[a,b] -> [a,b] : f32[3,3]\n"
                                "%2 = relu %1[a,b] -> [a,b] : f32[3,3]\nresult @R = %2",
                      OUT("f32") "  %1 = relu %0[a,b] -> [a,b] : f32[3,3]\n  result @R = %1\n");
    assert_simplifies(IN("f64") "%1 = neg %0[a,b] -> [b,a] : f64[3,3]\n"
                                "%2 = add %0[a,b], %1[a,b] -> [a,b] : f64[3,3]\n"
                                "%3 = add %1[a,b], %0[a,b] -> [a,b] : f64[3,3]\n"
                                "%4 = sub %0[a,b], %1[a,b] -> [a,b] : f64[3,3]\n"
                                "result @R = %2\nresult @S = %3\nresult @T = %4",
                      OUT("f64") "  %1 = sub %0[a,b], %0[b,a] -> [a,b] : f64[3,3]\n"
                                 "  %2 = add %0[a,b], %0[b,a] -> [a,b] : f64[3,3]\n"
                                 "  result @R = %1\n  result @S = %1\n  result @T = %2\n");
    assert_simplifies(IN("i32") "%1 = sub %0[a,b], %0[a,b] -> [a,b] : i32[3,3]\nresult @R = %1",
                      "  %0 = const 0 : i32[]\n  %1 = copy %0[] -> [a,b] : i32[3,3]\n"
                      "  result @R = %1\n");
    assert_simplifies(IN("f64") "%1 = sub %0[a,b], %0[a,b] -> [a,b] : f64[3,3]\nresult @R = %1",
                      OUT("f64") "  %1 = sub %0[a,b], %0[a,b] -> [a,b] : f64[3,3]\n"
                                 "  result @R = %1\n");
    assert_simplifies(IN("f64") "%1 = max %0[a,b], %0[a,b] -> [a,b] : f64[3,3]\n"
                                "%2 = min %1[a,b], %0[a,b] -> [a,b] : f64[3,3]\nresult @R = %2",
                      OUT("f64") "  result @R = %0\n");
    assert_simplifies(
        IN("bool") "%1 = and %0[a,b], %0[a,b] -> [a,b] : bool[3,3]\n"
                   "%2 = or %1[a,b], %0[a,b] -> [a,b] : bool[3,3]\nresult @R = %2",
        OUT("bool") "  result @R = %0\n");
}

static void casts_and_parts_join(void **state)
{
    (void)state;
    assert_simplifies(IN("f32") "%1 = cast %0[a,b] -> [b,a] : f64[3,3]\n"
                                "%2 = cast %1[a,b] -> [b,a] : f32[3,3]\nresult @R = %2",
                      OUT("f32") "  result @R = %0\n");
    assert_simplifies(IN("f32") "%1 = cast %0[a,b] -> [a,b] : f64[3,3]\n"
                                "%2 = cast %1[a,b] -> [a,b] : i32[3,3]\nresult @R = %2",
                      OUT("f32") "  %1 = cast %0[a,b] -> [a,b] : i32[3,3]\n  result @R = %1\n");
    assert_simplifies(IN("f64") "%1 = cast %0[a,b] -> [a,b] : f32[3,3]\n"
                                "%2 = cast %1[a,b] -> [a,b] : f64[3,3]\nresult @R = %2",
                      OUT("f64") "  %1 = cast %0[a,b] -> [a,b] : f32[3,3]\n"
                                 "  %2 = cast %1[a,b] -> [a,b] : f64[3,3]\n  result @R = %2\n");
    assert_simplifies(IN("f64") "%1 = re %0[a,b] -> [a,b] : f64[3,3]\n"
                                "%2 = conj %1[a,b] -> [a,b] : f64[3,3]\nresult @R = %2",
                      OUT("f64") "  result @R = %0\n");
    assert_simplifies(IN("f64") "%1 = im %0[a,b] -> [a,b] : f64[3,3]\nresult @R = %1",
                      "  %0 = const 0.0 : f64[]\n  %1 = copy %0[] -> [a,b] : f64[3,3]\n"
                      "  result @R = %1\n");
}

static void choices_that_are_known_are_made(void **state)
{
    (void)state;
    assert_simplifies(
        IN("f64") "%1 = const true : bool[]\n%2 = neg %0[a,b] -> [a,b] : f64[3,3]\n"
                  "%3 = select %1[], %0[b,a], %2[a,b] -> [a,b] : f64[3,3]\n"
                  "result @R = %3",
        OUT("f64") "  %1 = copy %0[a,b] -> [b,a] : f64[3,3]\n  result @R = %1\n");
    assert_simplifies(IN("f64") "param in @c : bool[3]\n%1 = input @c : bool[3]\n"
                                "%2 = select %1[a], %0[b,a], %0[b,a] -> [a,b] : f64[3,3]\n"
                                "result @R = %2",
                      OUT("f64") "  %1 = copy %0[a,b] -> [b,a] : f64[3,3]\n  result @R = %1\n");
    assert_simplifies(IN("f64") "param in @c : bool[3]\n%1 = input @c : bool[3]\n"
                                "%2 = not %1[a] -> [a] : bool[3]\n"
                                "%3 = select %2[a], %0[a,b], %0[b,a] -> [a,b] : f64[3,3]\n"
                                "result @R = %3",
                      OUT("f64") "  %1 = input @c : bool[3]\n"
                                 "  %2 = select %1[a], %0[b,a], %0[a,b] -> [a,b] : f64[3,3]\n"
                                 "  result @R = %2\n");
}

static void constants_fold_where_every_machine_agrees(void **state)
{
    (void)state;
    assert_simplifies("%0 = const 6.0 : f64[]\n%1 = const 4.0 : f64[]\n"
                      "%2 = div %0[], %1[] -> [] : f64[]\n%3 = sqrt %1[] -> [] : f64[]\n"
                      "%4 = mul %2[], %3[] -> [a] : f64[2]\nresult @R = %4",
                      "  %0 = const 3.0 : f64[]\n  %1 = copy %0[] -> [a] : f64[2]\n"
                      "  result @R = %1\n");
    assert_simplifies(
        "%0 = const 2.0 : f64[]\n%1 = exp %0[] -> [] : f64[]\nresult @R = %1",
        "  %0 = const 2.0 : f64[]\n  %1 = exp %0[] -> [] : f64[]\n  result @R = %1\n");
    assert_simplifies("%0 = const 7 : i32[]\n%1 = const 0 : i32[]\n"
                      "%2 = div %0[], %1[] -> [] : i32[]\n%3 = lt %2[], %0[] -> [] : bool[]\n"
                      "%4 = not %3[] -> [] : bool[]\nresult @R = %4",
                      "  %0 = const false : bool[]\n  result @R = %0\n");
    assert_simplifies("%0 = const 0.1 : f64[]\n%1 = cast %0[] -> [] : f32[]\nresult @R = %1",
                      "  %0 = const 0.10000000149011612 : f32[]\n  result @R = %0\n");
}

static void copies_are_read_through(void **state)
{
    (void)state;
    assert_simplifies(IN("f64") "%1 = copy %0[a,b] -> [b,a] : f64[3,3]\n"
                                "%2 = copy %1[a,b] -> [b,a] : f64[3,3] as T\n"
                                "%3 = copy %2[a,a] -> [a] : f64[3]\n"
                                "%4 = einsum %1[a,b], %3[b] -> [a] : f64[3]\nresult @R = %4\n"
                                "result @S = %2",
                      OUT("f64") "  %1 = einsum %0[a,b], %0[a,a] -> [b] : f64[3]\n"
                                 "  result @R = %1\n  result @S = %0\n");
    assert_simplifies("param in @x : f64[1,3]\n%0 = input @x : f64[1,3]\n"
                      "%1 = copy %0[0,b] -> [a,b] : f64[4,3]\n"
                      "%2 = neg %1[a,b] -> [b,a] : f64[3,4]\n"
                      "%3 = copy %2[1,a] -> [a] : f64[4]\nresult @R = %2\nresult @S = %3",
                      "  %0 = input @x : f64[1,3]\n"
                      "  %1 = neg %0[0,a] -> [a,b] : f64[3,4]\n"
                      "  %2 = copy %1[1,a] -> [a] : f64[4]\n"
                      "  result @R = %1\n  result @S = %2\n");
    /* A sum over an index that only the copy has keeps it. */
    assert_simplifies("param in @x : i32[3]\n%0 = input @x : i32[3]\n"
                      "%1 = copy %0[b] -> [a,b] : i32[4,3]\n"
                      "%2 = reduce.sum %1[a,b] -> [] : i32[]\n"
                      "%3 = einsum %1[a,b], %1[a,c] -> [b,c] : i32[3,3]\n"
                      "result @R = %2\nresult @S = %3",
                      "  %0 = input @x : i32[3]\n"
                      "  %1 = copy %0[a] -> [b,a] : i32[4,3]\n"
                      "  %2 = reduce.sum %1[a,b] -> [] : i32[]\n"
                      "  %3 = einsum %0[a], %1[b,c] -> [a,c] : i32[3,3]\n"
                      "  result @R = %2\n  result @S = %3\n");
    assert_simplifies(IN("f64") "%1 = reduce.sum %0[a,b] -> [b,a] : f64[3,3]\n"
                                "%2 = reduce.max %1[a,b] -> [a,b] : f64[3,3]\nresult @R = %2",
                      OUT("f64") "  %1 = copy %0[a,b] -> [b,a] : f64[3,3]\n  result @R = %1\n");
}

static void dead_and_equal_values_exist_once(void **state)
{
    (void)state;
    assert_simplifies("param in @unused : f64[3]\n" IN(
                          "f64") "%1 = input @unused : f64[3]\n%2 = exp %1[a] -> [a] : f64[3]\n"
                                 "%3 = neg %0[x,y] -> [y,x] : f64[3,3]\n%4 = neg %0[p,q] -> "
                                 "[q,p] : f64[3,3]\n"
                                 "%5 = add %3[a,b], %4[b,a] -> [a,b] : f64[3,3]\nresult @R = "
                                 "%3\nresult @S = %4",
                      OUT("f64") "  %1 = neg %0[a,b] -> [b,a] : f64[3,3]\n"
                                 "  result @R = %1\n  result @S = %1\n");
}

static void contractions_of_one_operand_are_sums_or_copies(void **state)
{
    (void)state;
    assert_normalises(
        IN("f64") "%1 = einsum %0[a,b] -> [b] : f64[3]\nresult @R = %1",
        OUT("f64") "  %1 = reduce.sum %0[a,b] -> [b] : f64[3]\n  result @R = %1\n");
    assert_normalises(IN("f64") "%1 = einsum %0[a,a] -> [a] : f64[3]\nresult @R = %1",
                      OUT("f64") "  %1 = copy %0[a,a] -> [a] : f64[3]\n  result @R = %1\n");
    assert_normalises(IN("f32") "%1 = einsum %0[a,b] -> [b,a] : f64[3,3]\nresult @R = %1",
                      OUT("f32") "  %1 = cast %0[a,b] -> [b,a] : f64[3,3]\n  result @R = %1\n");
    assert_normalises(IN("f64") "%1 = einsum %0[a,b] -> [a,b] : f64[3,3]\nresult @R = %1",
                      OUT("f64") "  result @R = %0\n");
    assert_normalises(
        IN("bool") "%1 = einsum %0[a,b] -> [a] : bool[3]\nresult @R = %1",
        OUT("bool") "  %1 = reduce.any %0[a,b] -> [a] : bool[3]\n  result @R = %1\n");
    assert_normalises(
        IN("f16") "%1 = einsum %0[a,b] -> [] : f16[]\nresult @R = %1",
        OUT("f16") "  %1 = reduce.sum %0[a,b] -> [] : f16[] acc f32\n  result @R = %1\n");
    assert_normalises(
        IN("f64") "%1 = const 1.0 : f64[]\n"
                  "%2 = einsum %1[], %0[a,b], %1[] -> [a,b] : f64[3,3]\nresult @R = %2",
        OUT("f64") "  result @R = %0\n");
    assert_normalises(
        "%1 = const 1.0 : f64[]\n%2 = einsum %1[], %1[] -> [] : f64[]\nresult @R = %2",
        "  %0 = const 1.0 : f64[]\n  result @R = %0\n");
}

static void sums_of_one_operand_are_taken_first_when_that_is_less_work(void **state)
{
    (void)state;
    assert_normalises(
        IN("i32") "%1 = einsum %0[a,b], %0[b,c] -> [a] : i32[3]\nresult @R = %1",
        OUT("i32") "  %1 = reduce.sum %0[a,b] -> [a] : i32[3]\n"
                   "  %2 = einsum %0[a,b], %1[b] -> [a] : i32[3]\n  result @R = %2\n");
    assert_normalises(IN("f64") "%1 = einsum %0[a,b], %0[c,d] -> [] : f64[]\nresult @R = %1",
                      OUT("f64") "  %1 = reduce.sum %0[a,b] -> [] : f64[]\n"
                                 "  %2 = einsum %1[], %1[] -> [] : f64[]\n  result @R = %2\n");
    assert_normalises(
        IN("bool") "%1 = einsum %0[a,b], %0[c,c] -> [a] : bool[3]\nresult @R = %1",
        OUT("bool") "  %1 = reduce.any %0[a,b] -> [a] : bool[3]\n"
                    "  %2 = reduce.any %0[a,a] -> [] : bool[]\n"
                    "  %3 = einsum %1[a], %2[] -> [a] : bool[3]\n  result @R = %3\n");
    /* The product is over a and b: summing over b first costs as much again. */
    assert_normalises("param in @x : f64[3,3]\nparam in @s : f64[]\n%0 = input @x : f64[3,3]\n"
                      "%1 = input @s : f64[]\n"
                      "%2 = einsum %0[a,b], %1[] -> [a] : f64[3]\nresult @R = %2",
                      "  %0 = input @x : f64[3,3]\n  %1 = input @s : f64[]\n"
                      "  %2 = einsum %0[a,b], %1[] -> [a] : f64[3]\n  result @R = %2\n");
    /* What was accumulated in f32 still is. */
    assert_normalises(
        IN("f16") "%1 = einsum %0[a,b], %0[b,c] -> [a] : f16[3] as T\nresult @R = %1",
        OUT("f16") "  %1 = reduce.sum %0[a,b] -> [a] : f32[3]\n"
                   "  %2 = einsum %0[a,b], %1[b] -> [a] : f32[3]\n"
                   "  %3 = cast %2[a] -> [a] : f16[3] as T\n  result @R = %3\n");
}

static void indices_of_extent_one_are_positions(void **state)
{
    (void)state;
    assert_normalises(
        "param in @x : f64[1,3]\nparam in @y : f64[1,3]\n%0 = input @x : f64[1,3]\n"
        "%1 = input @y : f64[1,3]\n"
        "%2 = einsum %0[a,b], %1[a,b] -> [] : f64[]\n"
        "%3 = einsum %0[a,b], %1[a,c] -> [b,c] : f64[3,3]\n"
        "%4 = einsum %0[a,b], %1[a,c] -> [a,b,c] : f64[1,3,3]\n"
        "%5 = einsum %0[a,b], %1[d,b] -> [] : f64[]\n"
        "result @R = %2\nresult @S = %3\nresult @T = %4\nresult @U = %5",
        "  %0 = input @x : f64[1,3]\n  %1 = input @y : f64[1,3]\n"
        "  %2 = einsum %0[0,a], %1[0,a] -> [] : f64[]\n"
        "  %3 = einsum %0[a,b], %1[a,c] -> [b,c] : f64[3,3]\n"
        "  %4 = einsum %0[a,b], %1[0,c] -> [a,b,c] : f64[1,3,3]\n"
        "  result @R = %2\n  result @S = %3\n  result @T = %4\n  result @U = %2\n");
    assert_normalises("param in @x : i64[1,3]\n%0 = input @x : i64[1,3]\n"
                      "%1 = einsum %0[a,b], %0[a,c] -> [b,c] : i64[3,3]\n"
                      "%2 = einsum %0[a,b] -> [b] : i64[3]\n"
                      "result @R = %1\nresult @S = %2",
                      "  %0 = input @x : i64[1,3]\n"
                      "  %1 = einsum %0[0,a], %0[0,b] -> [a,b] : i64[3,3]\n"
                      "  %2 = copy %0[0,a] -> [a] : i64[3]\n"
                      "  result @R = %1\n  result @S = %2\n");
}

/* Random graphs, through both passes. */
/* An operand with random indices, of `*n_labels` labels so far; at most four. */
static Access random_access(Bench *b, uint32_t rank, Rng *rng, uint32_t *n_labels)
{
    Index *index = ARENA_ARRAY(&b->ctx.arena, rank, Index);
    for (uint32_t d = 0; d < rank; d++) {
        bool fresh = *n_labels < 4 && (*n_labels == 0 || rng_below(rng, 3) == 0);
        int32_t label = fresh ? (int32_t)*n_labels : (int32_t)rng_below(rng, *n_labels);
        index[d] = (Index){.label = label};
        *n_labels += fresh;
        if (rng_below(rng, 12) == 0 && !fresh) {
            index[d] = (Index){-1, (int64_t)rng_below(rng, 2)};
        }
    }
    return (Access){rank, index};
}

/* All labels, or some of them, in a random order; the rank. */
static uint32_t random_out(Rng *rng, uint32_t n_labels, bool all, int32_t *out)
{
    uint32_t rank = 0;
    for (uint32_t l = 0; l < n_labels; l++) {
        if (all || (rng_below(rng, 2) == 0 && rank < 3)) {
            uint32_t other = (uint32_t)rng_below(rng, rank + 1);
            out[rank] = (int32_t)l;
            int32_t swap = out[other];
            out[other] = out[rank];
            out[rank++] = swap;
        }
    }
    return rank;
}

typedef enum RandomKind { KIND_UNARY, KIND_BINARY, KIND_EINSUM, KIND_REDUCE } RandomKind;

static Op random_op(Rng *rng, RandomKind kind)
{
    static const Op unary[] = {OP_COPY, OP_NEG, OP_ABS,  OP_RELU,
                               OP_CONJ, OP_RE,  OP_COPY, OP_COPY};
    static const Op binary[] = {OP_ADD, OP_SUB, OP_MUL, OP_MIN, OP_MAX, OP_SCALE};
    static const Op reduce[] = {OP_SUM, OP_RMAX, OP_RMIN};
    return kind == KIND_UNARY    ? unary[rng_below(rng, 8)]
           : kind == KIND_BINARY ? binary[rng_below(rng, 6)]
           : kind == KIND_EINSUM ? OP_EINSUM
                                 : reduce[rng_below(rng, 3)];
}

/* One more node over the first n; none when its rank would be above 3. All extents are 2. */
static void random_node(Bench *b, Graph *g, Rng *rng, uint32_t n)
{
    RandomKind kind = (RandomKind)rng_below(rng, 4);
    NodeRef operand[3];
    Access access[3];
    int32_t out[5];
    uint32_t n_operands = kind == KIND_BINARY   ? 2
                          : kind == KIND_EINSUM ? 1 + (uint32_t)rng_below(rng, 3)
                                                : 1;
    uint32_t n_labels = 0;
    for (uint32_t k = 0; k < n_operands; k++) {
        operand[k] = (NodeRef)rng_below(rng, n);
        access[k] = random_access(b, graph_node(g, operand[k])->rank, rng, &n_labels);
    }
    uint32_t rank = random_out(rng, n_labels, kind < KIND_EINSUM, out);
    if (rank > 3) {
        return;
    }
    Dim shape[4] = {dim_fixed(2), dim_fixed(2), dim_fixed(2), dim_fixed(2)};
    if (kind == KIND_UNARY && rank < 3 && rng_below(rng, 3) == 0) {
        out[rank++] = 7; /* a broadcast */
    }
    NodeSpec s = {.op = random_op(rng, kind),
                  .dtype = g->params.at[0].dtype,
                  .n_operands = n_operands,
                  .operand = operand,
                  .access = access,
                  .rank = rank,
                  .out = out,
                  .out_shape = shape};
    graph_add(g, &s);
}

static void random_programs_keep_their_value(void **state)
{
    (void)state;
    static const DType types[] = {DTYPE_F64, DTYPE_I32, DTYPE_F32, DTYPE_I64};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        Bench *b = bench_new();
        Rng rng = {seed};
        DType t = types[seed % 4];
        Graph *g = graph_new(&b->ctx.arena, sym_cstr(&b->ctx.syms, "k"));
        for (uint32_t p = 0; p < 3; p++) {
            Dim *shape = ARENA_ARRAY(&b->ctx.arena, 3, Dim);
            for (uint32_t d = 0; d < p; d++) {
                shape[d] = dim_fixed(2);
            }
            Param param = {.name = sym_cstr(&b->ctx.syms, p == 0   ? "A"
                                                          : p == 1 ? "B"
                                                                   : "C"),
                           .role = PARAM_IN,
                           .dtype = t,
                           .rank = p,
                           .shape = shape};
            vec_push(g->arena, &g->params, param);
            graph_input(g, p, (Span){0, 0, 0});
        }
        graph_const(g, number_int(t, 1), (Span){0, 0, 0});
        graph_const(g, number_int(t, 0), (Span){0, 0, 0});
        for (int k = 0; k < 8; k++) {
            random_node(b, g, &rng, g->nodes.n);
        }
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
        bench_free(b);
    }
}

/* Quadratic work would not end within the test's time. */
static void long_products_of_own_sums_and_copies_stay_quick(void **state)
{
    (void)state;
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
      TEST(units_of_arithmetic_go_where_that_is_exact), TEST(pairs_of_operations_vanish),
      TEST(casts_and_parts_join), TEST(choices_that_are_known_are_made),
      TEST(constants_fold_where_every_machine_agrees), TEST(copies_are_read_through),
      TEST(dead_and_equal_values_exist_once),
      TEST(contractions_of_one_operand_are_sums_or_copies),
      TEST(sums_of_one_operand_are_taken_first_when_that_is_less_work),
      TEST(indices_of_extent_one_are_positions), TEST(random_programs_keep_their_value))
