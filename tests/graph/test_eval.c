/* SPDX-License-Identifier: Apache-2.0 */
/* The reference interpreter against values computed by hand. */
#include "graph/support.h"

#include <math.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){__VA_ARGS__})

/* Each value of each operation stands in op/values.txt; here, that operands come in their order and results in their type. */
static void an_operation_is_applied_to_the_elements_of_its_operands(void **state)
{
    static const struct {
        const char *op, *in, *out, *x, *y, *expected;
    } rows[] = {
        {"sub", "i32", "i32", "-2147483648", "1", "2147483647"},
        {"div", "i64", "i64", "-7", "2", "-3"},
        {"pow", "f64", "f64", "2", "10", "1024"},
        {"scale", "c128", "c128", "0 0", "nan inf", "0 0"},
        {"div", "c128", "c128", "-5 10", "3 4", "1 2"},
        {"sqrt", "f32", "f32", "2", NULL, "1.41421354"},
        {"abs", "c64", "f32", "3 4", NULL, "5"},
        {"lt", "i64", "bool", "-9223372036854775808", "9223372036854775807", "1"},
        {"ne", "f64", "bool", "nan", "nan", "1"},
        {"cast", "f64", "i32", "-2.9", NULL, "-2"},
        {"not", "bool", "bool", "1", NULL, "0"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        Bench *b = bench_new();
        const char *in = rows[k].in, *x = rows[k].x, *y = rows[k].y;
        const char *lines =
            str_format(&b->ctx.arena,
                       "param scalar @x : %s[]\nparam scalar @y : %s[]\n%%0 = input @x : %s[]\n"
                       "%%1 = input @y : %s[]\n%%2 = %s %%0[]%s -> [] : %s[]\nresult @R = %%2",
                       in, in, in, in, rows[k].op, y == NULL ? "" : ", %1[]", rows[k].out);
        const char *args[2] = {str_format(&b->ctx.arena, "[] %s", x),
                               str_format(&b->ctx.arena, "[] %s", y == NULL ? x : y)};
        assert_evaluates(lines, args, str_format(&b->ctx.arena, "[] %s", rows[k].expected));
        bench_free(b);
    }
}

#define A23    "param in @A : f64[2,3]\n%0 = input @A : f64[2,3]\n"
#define RESULT "\nresult @R = %1"

static void indices_transpose_trace_broadcast_and_pick(void **state)
{
    const char *const *a = ARGS("[2,3] 1 2 3 4 5 6");
    assert_evaluates(A23 "%1 = copy %0[a,b] -> [b,a] : f64[3,2]" RESULT, a,
                     "[3,2] 1 4 2 5 3 6");
    assert_evaluates(A23 "%1 = copy %0[1,b] -> [b] : f64[3]" RESULT, a, "[3] 4 5 6");
    assert_evaluates(A23 "%1 = copy %0[a,2] -> [a,c] : f64[2,2]" RESULT, a, "[2,2] 3 3 6 6");
    assert_evaluates("param in @A : i32[2,2]\n%0 = input @A : i32[2,2]\n"
                     "%1 = copy %0[a,a] -> [a] : i32[2]" RESULT,
                     ARGS("[2,2] 1 2 3 4"), "[2] 1 4");
    assert_evaluates("param in @A : i32[2,2]\n%0 = input @A : i32[2,2]\n"
                     "%1 = einsum %0[a,a] -> [] : i32[]" RESULT,
                     ARGS("[2,2] 1 2 3 4"), "[] 5");
    assert_evaluates(
        "param in @A : f32[2]\nparam in @B : bool[2]\n%0 = input @A : f32[2]\n"
        "%2 = input @B : bool[2]\n%1 = select %2[a], %0[a], %0[b] -> [b,a] : f32[2,2]" RESULT,
        ARGS("[2] 1 2", "[2] 0 1"), "[2,2] 1 2 2 2");
}

static void einsum_sums_products_of_many_operands(void **state)
{
    const char *const *two = ARGS("[2,3] 1 2 3 4 5 6", "[3,2] 1 0 0 1 1 1");
    const char *both = "param in @A : f64[2,3]\nparam in @B : f64[3,2]\n"
                       "%0 = input @A : f64[2,3]\n%2 = input @B : f64[3,2]\n";
    Bench *b = bench_new();
    assert_evaluates(str_format(&b->ctx.arena, "%s%s", both,
                                "%1 = einsum %0[a,b], %2[b,c] -> [c,a] : f64[2,2]" RESULT),
                     two, "[2,2] 4 10 5 11");
    assert_evaluates(
        str_format(&b->ctx.arena, "%s%s", both,
                   "%1 = einsum %0[a,b], %2[b,c], %2[b,d], %0[d,b] -> [a] : f64[2]" RESULT),
        two, "[2] 65 137");
    assert_evaluates(str_format(&b->ctx.arena, "%s%s", both,
                                "%1 = einsum %0[a,b], %2[c,d] -> [] : f64[]" RESULT),
                     two, "[] 84");
    assert_evaluates("param in @A : bool[2,2]\n%0 = input @A : bool[2,2]\n"
                     "%1 = einsum %0[a,b], %0[b,c] -> [a,c] : bool[2,2]" RESULT,
                     ARGS("[2,2] 0 1 0 1"), "[2,2] 0 1 0 1");
    assert_evaluates("param in @A : c64[2]\n%0 = input @A : c64[2]\n"
                     "%1 = einsum %0[a], %0[a] -> [] : c128[]" RESULT,
                     ARGS("[2] 1 1 0 2"), "[] -4 2");
    assert_evaluates("param in @A : i32[2]\n%0 = input @A : i32[2]\n"
                     "%1 = einsum %0[a], %0[b] -> [] : i32[]" RESULT,
                     ARGS("[2] 65536 65536"), "[] 0");
    assert_evaluates("param in @A : i32[2]\n%0 = input @A : i32[2]\n"
                     "%1 = einsum %0[a], %0[b] -> [] : i64[]" RESULT,
                     ARGS("[2] 65536 65536"), "[] 17179869184");
    assert_evaluates("param in @A : f64[0,2]\n%0 = input @A : f64[0,2]\n"
                     "%1 = einsum %0[a,b], %0[a,c] -> [b,c] : f64[2,2]" RESULT,
                     ARGS("[0,2]"), "[2,2] 0 0 0 0");
    bench_free(b);
}

static void a_sum_begins_with_its_initial_value(void **state)
{
    assert_evaluates(
        "form binary\nparam in @A : f64[2,3]\nparam in @B : f64[3,2]\n"
        "param in @C : f64[2,2]\nparam in @s : f64[]\n%0 = input @A : f64[2,3]\n"
        "%2 = input @B : f64[3,2]\n%3 = input @C : f64[2,2]\n"
        "%4 = const -1.0 : f64[]\n%5 = input @s : f64[]\n"
        "%1 = einsum %0[a,b], %2[b,c], %5[], %4[] onto %3[c,a] -> [c,a] : f64[2,2]" RESULT,
        ARGS("[2,3] 1 2 3 4 5 6", "[3,2] 1 0 0 1 1 1", "[2,2] 1 2 3 4", "[] 2"),
        "[2,2] -7 -18 -7 -18");
    assert_evaluates("form binary\nparam in @A : i32[0,2]\nparam in @C : i32[2]\n"
                     "%0 = input @A : i32[0,2]\n%2 = input @C : i32[2]\n"
                     "%1 = einsum %0[a,b], %0[a,c] onto %2[c] -> [b,c] : i32[2,2]" RESULT,
                     ARGS("[0,2]", "[2] 7 9"), "[2,2] 7 9 7 9");
}

static void sums_of_floats_are_accumulated_wide(void **state)
{
    const char *const *a = ARGS("[3] 16777216 1 1");
    assert_evaluates("param in @A : f32[3]\n%0 = input @A : f32[3]\n"
                     "%1 = reduce.sum %0[a] -> [] : f32[]" RESULT,
                     a, "[] 16777218");
    assert_evaluates("param in @A : f16[3]\n%0 = input @A : f16[3]\n"
                     "%1 = reduce.sum %0[a] -> [] : f16[]" RESULT,
                     ARGS("[3] 2048 1 1"), "[] 2050");
}

static void reductions_fold_and_know_their_neutral_element(void **state)
{
    static const struct {
        const char *op, *type, *full, *empty;
    } rows[] = {
        {"sum", "f64", "[2] 3 12", "[2] 0 0"},
        {"prod", "f64", "[2] 0 60", "[2] 1 1"},
        {"min", "f64", "[2] 0 3", "[2] inf inf"},
        {"max", "f64", "[2] 2 5", "[2] -inf -inf"},
        {"min", "i32", "[2] 0 3", "[2] 2147483647 2147483647"},
        {"max", "i64", "[2] 2 5", "[2] -9223372036854775808 -9223372036854775808"},
        {"prod", "i32", "[2] 0 60", "[2] 1 1"},
        {"sum", "i64", "[2] 3 12", "[2] 0 0"},
        {"prod", "c64", "[2] 0 0 60 0", "[2] 1 0 1 0"},
        {"sum", "c128", "[2] 3 0 12 0", "[2] 0 0 0 0"},
        {"any", "bool", "[2] 1 1", "[2] 0 0"},
        {"all", "bool", "[2] 0 1", "[2] 1 1"},
        {"max", "f16", "[2] 2 5", "[2] -inf -inf"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        Bench *b = bench_new();
        for (int n = 0; n < 2; n++) {
            const char *t = rows[k].type, *shape = n == 0 ? "[2,0]" : "[2,3]";
            const char *lines = str_format(&b->ctx.arena,
                                           "param in @A : %s%s\n%%0 = input @A : %s%s\n%%1 = "
                                           "reduce.%s %%0[a,b] -> [a] : %s[2]\n"
                                           "result @R = %%1",
                                           t, shape, t, shape, rows[k].op, t);
            const char *data = n == 0        ? "[2,0]"
                               : t[0] == 'c' ? "[2,3] 0 0 1 0 2 0 3 0 4 0 5 0"
                                             : "[2,3] 0 1 2 3 4 5";
            assert_evaluates(lines, ARGS(data), n == 0 ? rows[k].empty : rows[k].full);
        }
        bench_free(b);
    }
    assert_evaluates("param in @A : f64[3]\n%0 = input @A : f64[3]\n"
                     "%1 = reduce.max %0[a] -> [] : f64[]" RESULT,
                     ARGS("[3] 1 nan 2"), "[] nan");
    assert_evaluates("param in @A : f64[3]\n%0 = input @A : f64[3]\n"
                     "%1 = reduce.min %0[a] -> [] : f64[]" RESULT,
                     ARGS("[3] nan 1 2"), "[] nan");
}

/* Left to right in pairs gives what one loop over all labels gives. */
static void a_long_product_in_pairs_is_the_same_product(void **state)
{
    Bench *b = bench_new();
    const Graph *g = bench_graph(
        b, "param in @A : i64[6,5]\nparam in @B : i64[5,6]\nparam in @C : i64[6,6]\n"
           "%0 = input @A : i64[6,5]\n%1 = input @B : i64[5,6]\n%2 = input @C : i64[6,6]\n"
           "%3 = einsum %0[a,b], %1[b,c], %2[c,d], %2[d,e], %0[e,f], %1[f,g], %2[h,h], %0[i,j] "
           "-> [g,a] : i64[6,6]\n"
           "%4 = einsum %0[a,b], %1[b,c] -> [a,c] : i64[6,6]\n"
           "%5 = einsum %4[a,c], %2[c,d] -> [a,d] : i64[6,6]\n"
           "%6 = einsum %5[a,d], %2[d,e] -> [a,e] : i64[6,6]\n"
           "%7 = einsum %6[a,e], %4[e,g] -> [g,a] : i64[6,6]\n"
           "%8 = einsum %2[h,h] -> [] : i64[]\n"
           "%9 = reduce.sum %0[i,j] -> [] : i64[]\n"
           "%10 = mul %8[], %9[] -> [] : i64[]\n"
           "%11 = mul %10[], %7[g,a] -> [g,a] : i64[6,6]\n"
           "result @R = %3\nresult @S = %11");
    Tensor *args[3];
    Rng rng = {7};
    for (int k = 0; k < 3; k++) {
        const int64_t extents[3][2] = {{6, 5}, {5, 6}, {6, 6}};
        args[k] = tensor_new(&b->ctx, &b->ctx.arena, DTYPE_I64, 2, extents[k]);
        for (int64_t i = 0; i < args[k]->count; i++) {
            tensor_set(args[k], i, number_int(DTYPE_I64, (int64_t)rng_below(&rng, 7) - 3));
        }
    }
    Tensor *results[2];
    assert_true(graph_eval(&b->ctx, &b->ctx.arena, g, NULL, args, results));
    assert_string_equal(bench_print(b, results[0]), bench_print(b, results[1]));
    assert_memory_not_equal(bench_print(b, results[0]), "[6,6] 0 0 0 0 0 0 0", 19);
    bench_free(b);
}

static void open_dims_are_bound_and_arguments_checked(void **state)
{
    Bench *b = bench_new();
    const Graph *g =
        bench_graph(b, "dim n ~ 5\nparam inout @A : f64[n]\n%0 = input @A : f64[n]\n"
                       "%1 = extent n : f64[]\n"
                       "%2 = mul %1[], %0[a] -> [a] : f64[n]\nupdate @A = %2\n"
                       "result @B = %0");
    const int64_t three = 3, two = 2, negative = -1;
    Tensor *arg = bench_tensor(b, DTYPE_F64, "[3] 1 2 3");
    Tensor *results[2];
    assert_true(graph_eval(&b->ctx, &b->ctx.arena, g, &three, &arg, results));
    assert_string_equal(bench_print(b, results[0]), "[3] 3 6 9");
    assert_string_equal(bench_print(b, results[1]), "[3] 1 2 3");
    assert_string_equal(bench_print(b, arg), "[3] 1 2 3");
    assert_ptr_not_equal(results[1]->data, arg->data);
    assert_false(graph_eval(&b->ctx, &b->ctx.arena, g, &two, &arg, results));
    assert_non_null(strstr(bench_messages(b), "argument for 'A'"));
    assert_false(graph_eval(&b->ctx, &b->ctx.arena, g, &negative, &arg, results));
    assert_non_null(strstr(bench_messages(b), "dim 'n' is -1"));
    bench_free(b);
}

static void too_much_work_and_too_large_tensors_are_limits(void **state)
{
    Bench *b = bench_new();
    Tensor *arg = bench_tensor(b, DTYPE_F64, "[2] 1 2"), *result = NULL;
    const Graph *g =
        bench_graph(b, "dim n ~ 5\nparam in @A : f64[n,n]\n%0 = input @A : f64[n,n]\n"
                       "%1 = einsum %0[a,b], %0[c,d] -> [] : f64[]\n"
                       "result @B = %1");
    int64_t n = 300, square[2] = {300, 300};
    arg = tensor_new(&b->ctx, &b->ctx.arena, DTYPE_F64, 2, square);
    assert_false(graph_eval(&b->ctx, &b->ctx.arena, g, &n, &arg, &result));
    assert_non_null(strstr(bench_messages(b), "steps"));
    assert_int_equal(diags_exit_code(&b->ctx.diags), 4);
    g = bench_graph(
        b, "%0 = const 1.0 : f64[]\n%1 = copy %0[] -> [a,b] : f64[1099511627776,1024]" RESULT);
    assert_false(graph_eval(&b->ctx, &b->ctx.arena, g, NULL, &arg, &result));
    assert_non_null(strstr(bench_messages(b), "a tensor of more than"));
    bench_free(b);
}

TESTS(TEST(an_operation_is_applied_to_the_elements_of_its_operands),
      TEST(indices_transpose_trace_broadcast_and_pick),
      TEST(einsum_sums_products_of_many_operands), TEST(a_sum_begins_with_its_initial_value),
      TEST(sums_of_floats_are_accumulated_wide),
      TEST(reductions_fold_and_know_their_neutral_element),
      TEST(a_long_product_in_pairs_is_the_same_product),
      TEST(open_dims_are_bound_and_arguments_checked),
      TEST(too_much_work_and_too_large_tensors_are_limits))
