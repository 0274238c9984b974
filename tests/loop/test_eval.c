/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of kernels gives the numbers of plain loops for every shape: tails, whole
 * tiles, ones and zeros. */
#include "support.h"
#include "loop/loop_eval.h"
#include "loop/loop_verify.h"

#include <math.h>

static const Kernel *read_one(Ctx *ctx, const char *name)
{
    KernelModule *m = read_text(ctx, kernel_text(&ctx->arena, name));
    if (m == NULL) {
        fail_msg("%s", messages(ctx));
    }
    return m->kernels.at[0];
}

static void assert_reference(const char *name, Reference reference, const int64_t *dims)
{
    Ctx ctx;
    ctx_init(&ctx);
    Run run;
    if (!run_kernel(&ctx, read_one(&ctx, name), dims, 7, &run)) {
        fail_msg("%s: %s", name, messages(&ctx));
    }
    if (!agrees(run.results[0], reference(&ctx.arena, dims, run.args))) {
        fail_msg("%s: wrong numbers for %lld, %lld, ...", name, (long long)dims[0],
                 (long long)dims[1]);
    }
    ctx_release(&ctx);
}

static void a_tiled_product_with_tails_is_the_product(void **state)
{
    static const int64_t dims[][3] = {{9, 17, 19}, {8, 16, 24}, {4, 16, 8}, {1, 1, 1},
                                      {3, 2, 7},   {0, 5, 6},   {5, 0, 6},  {5, 6, 0}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        assert_reference("matmul", reference_matmul, dims[i]);
        assert_reference("matmul_legal", reference_matmul, dims[i]);
        assert_reference("begins", reference_matmul, dims[i]);
        assert_reference("guards", reference_matmul, dims[i]);
    }
}

/* The kernel computes with the parts, the caller has complex numbers. */
static void arguments_may_be_the_parts_of_complex_numbers(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    const Kernel *k = read_one(&ctx, "parts");
    const int64_t m = 5, extent[2] = {5, 3};
    Tensor *args[2] = {random_tensor(&ctx, 3, DTYPE_C64, 0, NULL),
                       random_tensor(&ctx, 4, DTYPE_C64, 2, extent)};
    for (int64_t i = 0; i < 16; i++) {
        Number v = {.dtype = DTYPE_C64, .re = (double)(i % 5) - 2, .im = (double)(i % 7) - 3};
        tensor_set(args[i > 0], i > 0 ? i - 1 : 0, v);
    }
    Tensor *results[2];
    if (!loop_eval(&ctx, &ctx.arena, k, &m, args, results)) {
        fail_msg("%s", messages(&ctx));
    }
    assert_int_equal(results[0]->dtype, DTYPE_C64);
    assert_int_equal(results[0]->rank, 2);
    assert_int_equal(results[1]->rank, 0);
    assert_int_equal(results[1]->count, 1);
    Number s = tensor_get(args[0], 0), sum = {.re = 0, .im = 0};
    for (int64_t i = 0; i < 15; i++) {
        Number x = tensor_get(args[1], i), y = tensor_get(results[0], i);
        assert_true(fabs(y.re - (s.re * x.re - s.im * x.im)) <= 0);
        assert_true(fabs(y.im - (s.re * x.im + s.im * x.re)) <= 0);
        sum.re += x.re;
        sum.im += x.im;
    }
    assert_true(fabs(tensor_get(results[1], 0).re - sum.re) <= 0);
    assert_true(fabs(tensor_get(results[1], 0).im - sum.im) <= 0);
    args[1] =
        random_tensor(&ctx, 4, DTYPE_F32, 2, extent); /* not what the caller should have */
    assert_false(loop_eval(&ctx, &ctx.arena, k, &m, args, results));
    ctx_release(&ctx);
}

static void an_epilogue_joins_the_tile_of_its_product(void **state)
{
    for (int64_t o = 0; o < 18; o++) {
        const int64_t dims[] = {o, 0};
        assert_reference("mlp", reference_mlp, dims);
    }
}

static void mp2_sums_blocks_that_never_exist_whole(void **state)
{
    static const int64_t dims[][3] = {{3, 5, 7}, {1, 1, 1}, {2, 4, 1}, {0, 3, 3}, {3, 0, 3}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        assert_reference("mp2", reference_mp2, dims[i]);
    }
}

static void attention_keeps_its_scores_in_a_tile(void **state)
{
    static const int64_t dims[][4] = {{2, 9, 6, 5}, {1, 4, 4, 4}, {1, 1, 1, 1}, {2, 3, 1, 8}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        assert_reference("attention", reference_attention, dims[i]);
    }
}

/* Loops in loops over full tiles and rests, an inout argument, a fold in integers. */
static void nested_tiles_cover_each_element_once(void **state)
{
    for (int64_t n = 0; n < 150; n += n < 12 ? 1 : 23) {
        Ctx ctx;
        ctx_init(&ctx);
        Run run;
        assert_true(run_kernel(&ctx, read_one(&ctx, "nested"), &n, 3, &run));
        double lo = tensor_get(run.args[1], 0).re;
        int64_t total = 0;
        for (int64_t i = 0; i < n; i++) {
            double x = tensor_get(run.args[0], i).re;
            double y = tensor_get(run.args[2], i).re;
            total += x > 0.5;
            assert_true(tensor_get(run.results[0], i).re == (x < lo ? 0 : y + x));
        }
        assert_int_equal(tensor_get(run.results[1], 0).i, total);
        ctx_release(&ctx);
    }
}

/* Blocks in loops and in each other; one buffer is allocated in two of them. */
static void a_block_runs_once_where_it_stands(void **state)
{
    for (int64_t n = 0; n < 30; n += 7) {
        Ctx ctx;
        ctx_init(&ctx);
        Run run;
        assert_true(run_kernel(&ctx, read_one(&ctx, "scopes"), &n, 3, &run));
        for (int64_t i = 0; i < n; i++) {
            double x = tensor_get(run.args[0], i).re;
            assert_true(tensor_get(run.results[0], i).re == 2 * x + x + 1);
        }
        ctx_release(&ctx);
    }
}

/* The kernel writes another number for each range of sizes. */
static void of_blocks_with_tests_the_one_for_the_size_runs(void **state)
{
    for (int64_t n = 0; n < 13; n++) {
        for (int64_t m = 0; m < 4; m++) {
            Ctx ctx;
            ctx_init(&ctx);
            Run run;
            const int64_t dims[] = {n, m};
            assert_true(run_kernel(&ctx, read_one(&ctx, "sizes"), dims, 3, &run));
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int64_t j = 0; j < m; j++) {
                    sum += tensor_get(run.args[0], j * n + i).re;
                }
                double small = n < 4 ? 1 : n < 9 ? 2 : m == 0 ? 0 : sum + 3;
                double expected = m < 2 ? small : sum;
                assert_true(tensor_get(run.results[0], i).re == expected);
            }
            ctx_release(&ctx);
        }
    }
}

/* For whoever checks each of them at small sizes. */
static void each_block_with_a_test_can_run_alone(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    const int64_t dims[] = {2, 3};
    const Kernel *k = read_one(&ctx, "sizes");
    for (uint32_t block = 0; block < 2; block++) {
        Run run;
        Kernel *alone = kernel_alone(&ctx.arena, k, block);
        assert_true(loop_verify(&ctx, alone, "test"));
        assert_true(run_kernel(&ctx, alone, dims, 3, &run));
        double sum = 0;
        for (int64_t j = 0; j < 3; j++) {
            sum += tensor_get(run.args[0], j * 2).re;
        }
        assert_true(tensor_get(run.results[0], 0).re == (block == 0 ? 1 : sum));
    }
    assert_null(kernel_alone(&ctx.arena, k, 2));
    ctx_release(&ctx);
}

static void constants_of_every_kind_arrive(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    Run run;
    const int64_t dims[] = {3, 7};
    assert_true(run_kernel(&ctx, read_one(&ctx, "constants"), dims, 1, &run));
    assert_true(tensor_get(run.results[1], 3).i == INT64_MIN);
    assert_true(tensor_get(run.results[2], 0).i == 0);
    assert_true(signbit(tensor_get(run.results[3], 2).re) != 0);
    assert_true(isnan(tensor_get(run.results[3], 7).re));
    assert_true(tensor_get(run.results[3], 1).re == 65504.0);
    ctx_release(&ctx);
}

/* A kernel that loop_verify accepts and that is still wrong: found when it runs. */
static void assert_run_fails(const char *body, const char *message)
{
    Ctx ctx;
    ctx_init(&ctx);
    const char *text = str_format(&ctx.arena,
                                  "tdsl-dump loop 1\nkernel k {\n dim n ~ 4\n"
                                  " arg @x : f64[n] in\n arg @y : f64[n] result\n%s}\n",
                                  body);
    KernelModule *m = read_text(&ctx, text);
    if (m == NULL) {
        fail_msg("%s", messages(&ctx));
    }
    Run run;
    const int64_t dims[] = {5};
    assert_false(run_kernel(&ctx, m->kernels.at[0], dims, 1, &run));
    if (strstr(messages(&ctx), message) == NULL) {
        fail_msg("expected `%s`, got:\n%s", message, messages(&ctx));
    }
    ctx_release(&ctx);
}

static void what_is_not_written_is_not_read(void **state)
{
    assert_run_fails(" reduce [i in 0..n] @y[i] += @x[i]\n", "read before it is written");
    assert_run_fails(" alloc @t : f64[n] tile\n"
                     " for $i in 0..n step 2 full {\n  copy [j in $i:2] @t[j] = @x[j]\n }\n"
                     " copy [k in 0..n] @y[k] = @t[k]\n",
                     "(k = 4)");
    assert_run_fails(" for $i in 0..n step 1 {\n"
                     "  alloc @t : f64[] tile\n"
                     "  for $j in $i:1<n step 7 rest {\n"
                     "   copy [] @t[] = @x[$j]\n  }\n"
                     "  reduce [] @t[] += @x[$i]\n"
                     "  copy [] @y[$i] = @t[]\n }\n"
                     " for $k in 0..n step 1 {\n"
                     "  alloc @u : f64[] tile\n"
                     "  copy [] @y[$k] = @u[]\n }\n",
                     "`@u[]` is read");
}

static void a_result_is_written_everywhere(void **state)
{
    assert_run_fails(" for $i in 0..n step 2 full {\n  copy [j in $i:2] @y[j] = @x[j]\n }\n",
                     "element 4 of result 'y'");
    assert_run_fails("", "element 0 of result 'y'");
}

static void an_alloc_forgets_what_it_held(void **state)
{
    assert_run_fails(" for $i in 0..n step 1 {\n"
                     "  alloc @t : f64[] tile\n"
                     "  for $j in 0:1<n step 1 {\n"
                     "   for $k in $i-3:1<n step 1 {\n   }\n  }\n"
                     "  for $l in $i:1<n step 2 full {\n  }\n"
                     "  for $m in 0-$i:1<n step 1 {\n  }\n"
                     "  for $p in $i+$i:1 step 9 full {\n   copy [] @t[] = @x[0]\n  }\n"
                     "  copy [] @y[$i] = @t[]\n }\n",
                     "read before it is written");
}

/* What lies over another takes its bytes, whoever says that nobody needs them: a kernel that
 * loop_verify would refuse. */
static void what_another_lies_over_is_gone(void **state)
{
    static const char *const last[] = {"copy [i in 0..n] @y[i] = @a[i]",
                                       "copy [i in 0..n] @a[i] = @x[i]"};
    for (size_t k = 0; k < sizeof last / sizeof last[0]; k++) {
        Ctx ctx;
        ctx_init(&ctx);
        const char *text =
            str_format(&ctx.arena,
                       "tdsl-dump loop 1\nkernel k {\n dim n ~ 4\n arg @x : f64[n] in\n"
                       " arg @y : f64[n] result\n fill [i in 0..n] @y[i] = 0.0\n"
                       " for $r in 0:2 step 1 {\n  alloc @a : f64[n] tile\n"
                       "  copy [i in 0..n] @a[i] = @x[i]\n  alloc @b : f64[n] tile\n"
                       "  %s\n }\n}\n",
                       last[k]);
        KernelModule *m = read_text(&ctx, text);
        if (m == NULL) {
            fail_msg("%s", messages(&ctx));
        }
        Kernel *kernel = m->kernels.at[0];
        const int64_t n = 3;
        Run run;
        assert_true(run_kernel(&ctx, kernel, &n, 1, &run)); /* a is fresh at each alloc */
        kernel->body[1]->body[2]->over = 1 + kernel->body[1]->body[0]->buf;
        assert_false(run_kernel(&ctx, kernel, &n, 1, &run));
        assert_non_null(strstr(messages(&ctx), "is used when another buffer has its place"));
        ctx_release(&ctx);
    }
}

static void an_argument_of_another_shape_is_refused(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    const Kernel *k = read_one(&ctx, "mlp");
    const int64_t dims[] = {5}, wrong[] = {6, 24};
    Run run;
    assert_true(run_kernel(&ctx, k, dims, 1, &run));
    run.args[0] = random_tensor(&ctx, 1, DTYPE_F32, 2, wrong);
    assert_false(loop_eval(&ctx, &ctx.arena, k, dims, run.args, run.results));
    assert_non_null(strstr(messages(&ctx), "argument 'X'"));
    ctx_release(&ctx);
}

static void an_inout_argument_of_the_caller_is_not_changed(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    Run run;
    const int64_t n = 5;
    assert_true(run_kernel(&ctx, read_one(&ctx, "nested"), &n, 3, &run));
    Tensor *again = random_tensor(&ctx, 3 * 97 + 2, DTYPE_F64, 1, &n);
    assert_memory_equal(run.args[2]->data, again->data, 40);
    ctx_release(&ctx);
}

static void work_without_end_is_a_stated_limit(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    KernelModule *m = read_text(&ctx, "tdsl-dump loop 1\nkernel k {\n arg @y : i64[] result\n"
                                      " fill [] @y[] = 0\n"
                                      " for $i in 0..4611686018427387904 step 1 {\n }\n}\n");
    assert_non_null(m);
    Run run;
    assert_false(run_kernel(&ctx, m->kernels.at[0], NULL, 1, &run));
    assert_int_equal(diags_exit_code(&ctx.diags), 4);
    ctx_release(&ctx);
}

static void a_result_too_large_is_refused_before_anything_runs(void **state)
{
    Ctx ctx;
    ctx_init(&ctx);
    KernelModule *m =
        read_text(&ctx, "tdsl-dump loop 1\nkernel k {\n dim n ~ 4\n arg @y : i64[n,n] result\n"
                        " fill [i in 0..n, j in 0..n] @y[i,j] = 0\n}\n");
    assert_non_null(m);
    Run run;
    const int64_t small = 3, large = (int64_t)1 << 31;
    assert_true(run_kernel(&ctx, m->kernels.at[0], &small, 1, &run));
    assert_false(run_kernel(&ctx, m->kernels.at[0], &large, 1, &run));
    assert_string_equal(messages(&ctx),
                        "tdsl: error[E0602]: limit: a tensor of more than 68719476736 bytes\n");
    ctx_release(&ctx);
}

/* Pairs, pairs of pairs, ...: written as a recursion, in f32. What is left of the last ones joins the larger ones. */
static float pairs(const float *x, int64_t n)
{
    int64_t most = 1;
    while (most * 2 <= n) {
        most *= 2;
    }
    if (n == 1) {
        return x[0];
    }
    return most == n ? pairs(x, n / 2) + pairs(x + n / 2, n / 2)
                     : pairs(x, most) + pairs(x + most, n - most);
}

static void a_cascade_adds_pairs(void **state)
{
    for (int64_t n = 1; n < 70; n++) {
        Ctx ctx;
        ctx_init(&ctx);
        int64_t dims[2] = {2, 2 * n};
        Run run;
        float x[70];
        assert_true(run_kernel(&ctx, read_one(&ctx, "cascade"), dims, (uint64_t)n, &run));
        for (int64_t r = 0; r < 2; r++) {
            for (int64_t i = 0; i < n; i++) {
                x[i] = (float)tensor_get(run.args[0], 2 * (r * n + i)).re +
                       (float)tensor_get(run.args[0], 2 * (r * n + i) + 1).re;
            }
            float got = (float)tensor_get(run.results[0], r).re, want = pairs(x, n);
            assert_memory_equal(&got, &want, sizeof got);
        }
        ctx_release(&ctx);
    }
}

TESTS(TEST(a_tiled_product_with_tails_is_the_product),
      TEST(arguments_may_be_the_parts_of_complex_numbers),
      TEST(an_epilogue_joins_the_tile_of_its_product),
      TEST(mp2_sums_blocks_that_never_exist_whole), TEST(attention_keeps_its_scores_in_a_tile),
      TEST(nested_tiles_cover_each_element_once), TEST(a_block_runs_once_where_it_stands),
      TEST(of_blocks_with_tests_the_one_for_the_size_runs),
      TEST(each_block_with_a_test_can_run_alone), TEST(constants_of_every_kind_arrive),
      TEST(what_is_not_written_is_not_read), TEST(a_result_is_written_everywhere),
      TEST(an_alloc_forgets_what_it_held), TEST(what_another_lies_over_is_gone),
      TEST(an_argument_of_another_shape_is_refused),
      TEST(an_inout_argument_of_the_caller_is_not_changed), TEST(a_cascade_adds_pairs),
      TEST(work_without_end_is_a_stated_limit),
      TEST(a_result_too_large_is_refused_before_anything_runs))
