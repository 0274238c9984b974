/* SPDX-License-Identifier: Apache-2.0 */
/* The checked call: right arguments give the kernel's result, every wrong one a status and a message
 * that names kernel and argument, and leaves the results as they were. */
#include "check.h"

typedef struct Fixture {
    tdsl_context *context;
    tdsl_kernel *kernel;
    tdsl_report report;
    float a[64];
    float b[64];
    float r[64];
    int64_t shape[3][2];
    tdsl_tensor args[3];
} Fixture;

static Fixture fixture;

/* A matmul of m = 2, k = 3, n = 2, ready to be called. */
static int set_up(void **state)
{
    Fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    f->report = (tdsl_report)TDSL_REPORT_INIT;
    f->context = make_context(NULL);
    f->kernel = make_kernel(f->context, &matmul_info);
    for (int i = 0; i < 64; i++) {
        f->a[i] = (float)(i + 1);
        f->b[i] = (float)(i - 2);
        f->r[i] = -1;
    }
    int64_t shape[3][2] = {{2, 3}, {3, 2}, {2, 2}};
    memcpy(f->shape, shape, sizeof shape);
    f->args[0] = tdsl_view(TDSL_F32, f->a, 2, f->shape[0]);
    f->args[1] = tdsl_view(TDSL_F32, f->b, 2, f->shape[1]);
    f->args[2] = tdsl_view(TDSL_F32, f->r, 2, f->shape[2]);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    tdsl_context_destroy(((Fixture *)*state)->context);
    return 0;
}

static tdsl_status call(Fixture *f)
{
    return tdsl_call(f->kernel, f->args, 3, NULL, &f->report);
}

static void refused(Fixture *f, tdsl_status want, const char *word1, const char *word2)
{
    expect_failure(call(f), want, &f->report, "matmul", word1, word2);
    for (int i = 0; i < 64; i++) {
        assert_true(f->r[i] == -1);
    }
}

static void right_arguments_give_the_kernels_result(void **state)
{
    Fixture *f = *state;
    expect_ok(call(f), &f->report);
    const float want[] = {4, 10, 4, 19};
    for (int i = 0; i < 4; i++) {
        float sum = 0;
        for (int k = 0; k < 3; k++) {
            sum += f->a[(i / 2) * 3 + k] * f->b[k * 2 + i % 2];
        }
        assert_true(f->r[i] == sum);
    }
    assert_true(f->r[0] == want[0] && f->r[1] == want[1] && f->r[2] == want[2]);
    assert_true(f->r[4] == -1);
    assert_string_equal(f->report.kernel, "matmul");
    assert_string_equal(f->report.message, "");
    expect_ok(tdsl_call(f->kernel, f->args, 3, NULL, NULL), &f->report);
}

static void a_wrong_dtype_is_refused(void **state)
{
    Fixture *f = *state;
    f->args[1].dtype = TDSL_F64;
    refused(f, TDSL_E_DTYPE, "'B'", "f64");
    f->args[1].dtype = 77;
    refused(f, TDSL_E_DTYPE, "'B'", "no dtype");
}

static void a_wrong_rank_is_refused(void **state)
{
    Fixture *f = *state;
    f->args[0].rank = 1;
    refused(f, TDSL_E_SHAPE, "'A'", "rank is 1");
    f->args[0].rank = -1;
    refused(f, TDSL_E_SHAPE, "'A'", "rank is -1");
}

static void extents_that_disagree_are_refused_naming_both_arguments(void **state)
{
    Fixture *f = *state;
    f->shape[1][0] = 4;
    refused(f, TDSL_E_SHAPE, "'B'", "dimension 'k' is 3 in argument 'A'");
    f->shape[1][0] = 3;
    f->shape[2][1] = 5;
    refused(f, TDSL_E_SHAPE, "'R'", "dimension 'n' is 2 in argument 'B'");
}

static void a_negative_extent_is_refused(void **state)
{
    Fixture *f = *state;
    f->shape[0][1] = -3;
    refused(f, TDSL_E_SHAPE, "'A'", "below 0");
    f->shape[0][1] = INT64_MIN;
    refused(f, TDSL_E_SHAPE, "'A'", "below 0");
}

static void a_fixed_extent_must_be_the_kernels(void **state)
{
    Fixture *f = *state;
    tdsl_kernel *small = make_kernel(f->context, &small_info);
    expect_failure(tdsl_call(small, f->args, 3, NULL, &f->report), TDSL_E_SHAPE, &f->report,
                   "small", "'B'", "is 2, the kernel's is 4");
    f->shape[1][1] = 4;
    f->shape[2][1] = 4;
    expect_ok(tdsl_call(small, f->args, 3, NULL, &f->report), &f->report);
}

static void strides_other_than_c_order_are_refused(void **state)
{
    Fixture *f = *state;
    int64_t strides[2] = {3, 1};
    f->args[0].strides = strides;
    expect_ok(call(f), &f->report);
    f->r[0] = f->r[1] = f->r[2] = f->r[3] = -1;
    strides[0] = 4;
    refused(f, TDSL_E_STRIDE, "'A'", "axis 0 is 4");
    strides[0] = 1;
    strides[1] = 2;
    refused(f, TDSL_E_STRIDE, "'A'", "axis 1 is 2");
    strides[1] = -1;
    refused(f, TDSL_E_STRIDE, "'A'", "axis 1 is -1");
}

static void strides_of_axes_without_steps_do_not_matter(void **state)
{
    Fixture *f = *state;
    int64_t strides[2] = {999, 1};
    f->shape[0][0] = 1;
    f->shape[2][0] = 1;
    f->args[0].strides = strides;
    expect_ok(call(f), &f->report);
    f->shape[0][0] = 0;
    f->shape[2][0] = 0;
    strides[1] = 5;
    expect_ok(call(f), &f->report);
}

static void misaligned_data_are_refused(void **state)
{
    Fixture *f = *state;
    f->args[1].data = (char *)f->b + 2;
    refused(f, TDSL_E_STRIDE, "'B'", "aligned to 4");
}

static void null_data_are_refused_unless_there_are_none(void **state)
{
    Fixture *f = *state;
    f->args[0].data = NULL;
    refused(f, TDSL_E_ARGUMENT, "'A'", "null");
    f->shape[0][0] = 0;
    f->shape[2][0] = 0;
    f->args[2].data = NULL;
    expect_ok(call(f), &f->report);
    f->args[0].extents = NULL;
    refused(f, TDSL_E_ARGUMENT, "'A'", "extents");
}

static void a_result_that_overlaps_another_argument_is_refused(void **state)
{
    Fixture *f = *state;
    f->args[2].data = f->b + 5; /* the last element of B is the first of R */
    refused(f, TDSL_E_OVERLAP, "'R'", "'B'");
    f->args[2].data = f->a;
    refused(f, TDSL_E_OVERLAP, "'R'", "'A'");
}

static void a_result_may_stand_anywhere_among_the_arguments(void **state)
{
    Fixture *f = *state;
    static tdsl_arg_info turned_args[3];
    static tdsl_kernel_info turned;
    turned = matmul_info;
    turned.name = "turned";
    turned.args = turned_args;
    for (int i = 0; i < 3; i++) {
        turned_args[i] = matmul_info.args[2 - i]; /* R, B, A */
    }
    tdsl_kernel *kernel = make_kernel(f->context, &turned);
    tdsl_tensor args[3] = {f->args[2], f->args[1], f->args[0]};
    args[0].data = f->a;
    expect_failure(tdsl_call(kernel, args, 3, NULL, &f->report), TDSL_E_OVERLAP, &f->report,
                   "turned", "'R'", "'A'");
}

static void inputs_may_overlap_and_neighbours_may_touch(void **state)
{
    Fixture *f = *state;
    f->args[0].data = f->b;
    expect_ok(call(f), &f->report);
    f->args[2].data = f->b + 6; /* just behind B */
    expect_ok(call(f), &f->report);
}

static void an_empty_argument_overlaps_nothing(void **state)
{
    Fixture *f = *state;
    f->shape[0][1] = 0;
    f->shape[1][0] = 0;
    f->args[2].data = f->a;
    expect_ok(call(f), &f->report);
    assert_true(f->a[0] == 0 && f->a[3] == 0 && f->a[4] == 5);
}

static void a_size_beyond_64_bits_is_refused(void **state)
{
    Fixture *f = *state;
    f->shape[0][0] = INT64_C(1) << 40;
    f->shape[0][1] = INT64_C(1) << 40;
    refused(f, TDSL_E_OVERFLOW, "'A'", "size");
    f->shape[0][0] = INT64_C(1) << 61;
    f->shape[0][1] = 1;
    refused(f, TDSL_E_OVERFLOW, "'A'", "size");
}

static void a_zero_extent_beside_a_huge_one_is_no_overflow(void **state)
{
    Fixture *f = *state;
    f->shape[0][0] = INT64_MAX;
    f->shape[2][0] = INT64_MAX;
    f->shape[0][1] = 0;
    f->shape[1][0] = 0;
    f->shape[1][1] = 0;
    f->shape[2][1] = 0;
    expect_ok(call(f), &f->report);
}

static void the_number_of_arguments_is_checked(void **state)
{
    Fixture *f = *state;
    expect_failure(tdsl_call(f->kernel, f->args, 2, NULL, &f->report), TDSL_E_ARGUMENT,
                   &f->report, "matmul", "2 arguments", "3");
    expect_failure(tdsl_call(f->kernel, NULL, 3, NULL, &f->report), TDSL_E_ARGUMENT, &f->report,
                   "matmul", "null", NULL);
    expect_failure(tdsl_call(NULL, f->args, 3, NULL, &f->report), TDSL_E_ARGUMENT, &f->report,
                   "kernel is null", NULL, NULL);
}

static void a_workspace_of_the_callers_is_checked_and_used(void **state)
{
    Fixture *f = *state;
    _Alignas(64) unsigned char memory[128] = {0};
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    options.workspace = memory;
    options.workspace_bytes = 11;
    expect_failure(tdsl_call(f->kernel, f->args, 3, &options, &f->report), TDSL_E_WORKSPACE,
                   &f->report, "matmul", "11 bytes", "12");
    options.workspace = memory + 8;
    options.workspace_bytes = 100;
    expect_ok(tdsl_call(f->kernel, f->args, 3, &options, &f->report), &f->report);
    options.workspace = memory;
    options.workspace_bytes = 12;
    expect_ok(tdsl_call(f->kernel, f->args, 3, &options, &f->report), &f->report);
    float last = 0;
    memcpy(&last, memory + 8, sizeof last);
    assert_true(last == f->b[5]); /* the kernel left the last column of B there */
}

static void a_workspace_that_overlaps_an_argument_is_refused(void **state)
{
    Fixture *f = *state;
    _Alignas(64) static float memory[64];
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    options.workspace = memory;
    options.workspace_bytes = sizeof memory;
    f->args[0].data = memory + 20;
    expect_failure(tdsl_call(f->kernel, f->args, 3, &options, &f->report), TDSL_E_OVERLAP,
                   &f->report, "matmul", "'A'", "workspace");
}

static void dimensions_may_be_given_and_must_then_agree(void **state)
{
    Fixture *f = *state;
    const int64_t dims[3] = {2, 3, 2};
    const int64_t other[3] = {2, 4, 2};
    const int64_t below[3] = {2, -3, 2};
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    options.dims = dims;
    expect_ok(tdsl_call(f->kernel, f->args, 3, &options, &f->report), &f->report);
    options.dims = other;
    expect_failure(tdsl_call(f->kernel, f->args, 3, &options, &f->report), TDSL_E_SHAPE,
                   &f->report, "'A'", "dimension 'k' was given as 4", NULL);
    options.dims = below;
    expect_failure(tdsl_call(f->kernel, f->args, 3, &options, &f->report), TDSL_E_SHAPE,
                   &f->report, "'k'", "-3", NULL);
    options.struct_size = 3;
    expect_failure(tdsl_call(f->kernel, f->args, 3, &options, &f->report), TDSL_E_ABI,
                   &f->report, "matmul", NULL, NULL);
}

static size_t huge_workspace(const int64_t *dims)
{
    (void)dims;
    return SIZE_MAX;
}

static size_t large_workspace(const int64_t *dims)
{
    (void)dims;
    return SIZE_MAX - 200;
}

static void a_workspace_that_cannot_be_is_a_status(void **state)
{
    Fixture *f = *state;
    tdsl_kernel_info info = matmul_info;
    info.name = "huge";
    info.workspace_bytes = huge_workspace;
    tdsl_kernel *kernel = make_kernel(f->context, &info);
    expect_failure(tdsl_call(kernel, f->args, 3, NULL, &f->report), TDSL_E_OVERFLOW, &f->report,
                   "huge", "workspace", NULL);
    tdsl_kernel_info large = matmul_info;
    large.name = "large";
    large.workspace_bytes = large_workspace;
    kernel = make_kernel(f->context, &large);
    expect_failure(tdsl_call(kernel, f->args, 3, NULL, &f->report), TDSL_E_MEMORY, &f->report,
                   "large", "workspace", NULL);
    /* the context outlives neither table */
    tdsl_context_destroy(f->context);
    f->context = NULL;
}

static tdsl_status failing_call(const int64_t *dims, void *const *args, void *workspace,
                                size_t workspace_bytes)
{
    (void)dims;
    (void)args;
    (void)workspace;
    (void)workspace_bytes;
    return TDSL_E_OVERFLOW;
}

static void a_failing_c_form_is_reported(void **state)
{
    Fixture *f = *state;
    static tdsl_kernel_info info;
    info = matmul_info;
    info.name = "failing";
    info.call = failing_call;
    tdsl_kernel *kernel = make_kernel(f->context, &info);
    expect_failure(tdsl_call(kernel, f->args, 3, NULL, &f->report), TDSL_E_OVERFLOW, &f->report,
                   "failing", "TDSL_E_OVERFLOW", NULL);
}

static int32_t threads_seen;
static size_t bytes_seen;

static size_t workspace_of_threads(const int64_t *dims, int32_t threads)
{
    return threads > 100 ? SIZE_MAX : matmul_info.workspace_bytes(dims) + 64 * (size_t)threads;
}

static tdsl_status call_of_threads(const int64_t *dims, void *const *args, void *workspace,
                                   size_t workspace_bytes, const tdsl_threads *threads)
{
    threads_seen = threads->count;
    bytes_seen = workspace_bytes;
    return matmul_info.call(dims, args, workspace, workspace_bytes);
}

static void a_call_hands_its_threads_to_the_c_form(void **state)
{
    Fixture *f = *state;
    static tdsl_kernel_info info;
    info = matmul_info;
    info.name = "threads";
    info.workspace_bytes_threads = workspace_of_threads;
    info.call_threads = call_of_threads;
    tdsl_kernel *kernel = make_kernel(f->context, &info);
    tdsl_threads threads = {.count = 3};
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    const int64_t dims[3] = {2, 3, 2};
    size_t one = matmul_info.workspace_bytes(dims);
    options.threads = &threads;
    expect_ok(tdsl_call(kernel, f->args, 3, &options, &f->report), &f->report);
    assert_int_equal(threads_seen, 3);
    assert_true(bytes_seen >= 64 * 3);
    /* one has no need of it; nobody has as much memory as very many want */
    threads.count = 1;
    threads_seen = 0;
    expect_ok(tdsl_call(kernel, f->args, 3, &options, &f->report), &f->report);
    assert_int_equal(threads_seen, 0);
    threads.count = 101;
    expect_ok(tdsl_call(kernel, f->args, 3, &options, &f->report), &f->report);
    assert_int_equal(threads_seen, 101);
    /* a workspace of the caller's need only be enough for one */
    unsigned char memory[4096];
    options.workspace = memory;
    options.workspace_bytes = sizeof memory;
    threads.count = 64;
    assert_true(one < sizeof memory);
    expect_ok(tdsl_call(kernel, f->args, 3, &options, &f->report), &f->report);
    assert_int_equal(threads_seen, 64);
    assert_int_equal(bytes_seen, sizeof memory);
    /* a kernel without such an entry, and a table with half of one */
    options.workspace = NULL;
    expect_ok(tdsl_call(f->kernel, f->args, 3, &options, &f->report), &f->report);
    static tdsl_kernel_info half;
    half = info;
    half.name = "half";
    half.workspace_bytes_threads = NULL;
    expect_failure(tdsl_register(f->context, &half, &f->report), TDSL_E_ABI, &f->report, "half",
                   "null", NULL);
}

static tdsl_status call_of_nothing(const int64_t *dims, void *const *args, void *workspace,
                                   size_t bytes)
{
    (void)dims;
    (void)args;
    (void)workspace;
    (void)bytes;
    return TDSL_OK;
}

/* R[i,j] = A[i,j] + A[j,i], but for R[0,1], which is one more where A[0,0] is 99. */
static tdsl_status both_call(const int64_t *dims, void *const *args, void *workspace,
                             size_t bytes)
{
    const float *a = args[0];
    float *r = args[1];
    int64_t n = dims[0];
    (void)workspace;
    (void)bytes;
    for (int64_t i = 0; i < n * n; i++) {
        r[i] = a[i] + a[i % n * n + i / n];
    }
    r[1] += a[0] == 99 ? 1 : 0;
    return TDSL_OK;
}

static void declared_symmetry_is_checked_for_calls_that_ask(void **state)
{
    Fixture *f = *state;
    static const tdsl_dim_info dims[] = {{"n", 64}};
    static const tdsl_extent extents[] = {{0, 0, 0}, {0, 0, 0}};
    static const int32_t turned[] = {1, 0};
    static const tdsl_exchange both[] = {{turned, 1, 0}};
    static tdsl_arg_info args[] = {{"A", TDSL_IN, TDSL_F32, 2, 0, extents, both, 1},
                                   {"R", TDSL_OUT, TDSL_F32, 2, 0, extents, both, 1}};
    static tdsl_kernel_info info;
    info = small_info;
    info.name = "both";
    info.n_dims = 1;
    info.dims = dims;
    info.n_args = 2;
    info.args = args;
    info.call = both_call;
    tdsl_kernel *kernel = make_kernel(f->context, &info);
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    float a[9] = {1, 2, 3, 2, 5, 6, 3, 6, 9}, r[9] = {0};
    const int64_t shape[2] = {3, 3};
    tdsl_tensor given[2] = {tdsl_view(TDSL_F32, a, 2, shape), tdsl_view(TDSL_F32, r, 2, shape)};
    options.flags = TDSL_CHECK_SYMMETRY;
    expect_ok(tdsl_call(kernel, given, 2, &options, &f->report), &f->report);
    a[7] = 7; /* [2,1] */
    expect_ok(tdsl_call(kernel, given, 2, NULL, &f->report), &f->report);
    r[0] = -1;
    expect_failure(tdsl_call(kernel, given, 2, &options, &f->report), TDSL_E_SYMMETRY,
                   &f->report, "'A'", "element 5 is not its image, axes 0, 1", "both");
    assert_true(r[0] == -1);
    a[7] = 6;
    a[0] = 99;
    expect_failure(tdsl_call(kernel, given, 2, &options, &f->report), TDSL_E_SYMMETRY,
                   &f->report, "'R'", "element 1 is not its image, axes 0, 1", "both");
    options.flags = 2;
    expect_failure(tdsl_call(kernel, given, 2, &options, &f->report), TDSL_E_ABI, &f->report,
                   "both", "version", NULL);
}

/* `A` is no position below its own length. */
static int32_t beyond(const int64_t *dims, void *const *args, tdsl_outside *first)
{
    const float *a = args[0];
    for (int64_t i = 0; i < dims[0]; i++) {
        if (a[i] < 0 || a[i] >= (float)dims[0]) {
            if (first != NULL) {
                *first = (tdsl_outside){"R", "A[i]", "i", 1, 1, (int64_t)a[i], dims[0], {i}};
            }
            return 1;
        }
    }
    return 0;
}

static tdsl_status picks_call(const int64_t *dims, void *const *args, void *workspace,
                              size_t bytes)
{
    (void)workspace;
    (void)bytes;
    return beyond(dims, args, NULL) != 0 ? TDSL_E_INDEX : TDSL_OK;
}

static void a_position_outside_is_told_with_its_place(void **state)
{
    Fixture *f = *state;
    static const tdsl_dim_info dims[] = {{"n", 64}};
    static const tdsl_extent extents[] = {{0, 0, 0}};
    static const tdsl_arg_info args[] = {{"A", TDSL_IN, TDSL_F32, 1, 0, extents, NULL, 0}};
    static tdsl_kernel_info info;
    info = small_info;
    info.name = "picks";
    info.n_dims = 1;
    info.dims = dims;
    info.n_args = 1;
    info.args = args;
    info.call = picks_call;
    info.outside = beyond;
    tdsl_kernel *kernel = make_kernel(f->context, &info);
    float a[3] = {0, 2, 1};
    const int64_t shape[1] = {3};
    tdsl_tensor given[1] = {tdsl_view(TDSL_F32, a, 1, shape)};
    expect_ok(tdsl_call(kernel, given, 1, NULL, &f->report), &f->report);
    a[1] = 3;
    expect_failure(tdsl_call(kernel, given, 1, NULL, &f->report), TDSL_E_INDEX, &f->report,
                   "picks", "dimension 1 of 'R' has 3 positions, and A[i] is 3 at i = 1", NULL);
    a[0] = -4;
    expect_failure(tdsl_call(kernel, given, 1, NULL, &f->report), TDSL_E_INDEX, &f->report,
                   "picks", "A[i] is -4 at i = 0", NULL);
}

static void symmetry_of_every_element_type_is_checked(void **state)
{
    Fixture *f = *state;
    static const tdsl_dim_info dims[] = {{"n", 64}};
    static const tdsl_extent extents[] = {{0, 0, 0}, {0, 0, 0}};
    static const int32_t turned[] = {1, 0};
    static const tdsl_exchange skew[] = {{turned, -1, 0}};
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    /* other types, and a change of sign */
    static const int32_t types[] = {TDSL_F64, TDSL_F16, TDSL_BF16,
                                    TDSL_I32, TDSL_I64, TDSL_C64};
    options.flags = TDSL_CHECK_SYMMETRY;
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        static tdsl_arg_info other[6][1];
        static tdsl_kernel_info infos[6];
        static const char *const names[] = {"f64", "f16", "bf16", "i32", "i64", "c64"};
        union {
            double f64[4];
            uint16_t half[4];
            int32_t i32[4];
            int64_t i64[4];
            float c64[8];
        } data = {{0}};
        other[k][0] = (tdsl_arg_info){"A", TDSL_IN, types[k], 2, 0, extents, skew, 1};
        infos[k] = small_info;
        infos[k].name = names[k];
        infos[k].n_dims = 1;
        infos[k].dims = dims;
        infos[k].n_args = 1;
        infos[k].args = other[k];
        infos[k].call = call_of_nothing;
        tdsl_kernel *one = make_kernel(f->context, &infos[k]);
        const int64_t two[2] = {2, 2};
        tdsl_tensor t = tdsl_view(types[k], &data, 2, two);
        expect_ok(tdsl_call(one, &t, 1, &options, &f->report), &f->report);
        switch (types[k]) {
        case TDSL_F64:
            data.f64[1] = 0.5;
            data.f64[2] = -0.5;
            break;
        case TDSL_I32:
            data.i32[1] = data.i32[2] = INT32_MIN; /* its own negative */
            break;
        case TDSL_I64:
            data.i64[1] = 3;
            data.i64[2] = -3;
            break;
        case TDSL_C64:
            data.c64[2] = data.c64[5] = 1; /* 1 at [0,1], i at [1,0] */
            data.c64[5] = 0;
            data.c64[4] = -1;
            break;
        default:
            data.half[1] = 0x3c01;
            data.half[2] = 0xbc01;
            break;
        }
        expect_ok(tdsl_call(one, &t, 1, &options, &f->report), &f->report);
        switch (types[k]) {
        case TDSL_F64:
            data.f64[3] = 1e-300;
            break;
        case TDSL_I32:
            data.i32[1] = 0;
            break;
        case TDSL_I64:
            data.i64[2] = 3;
            break;
        case TDSL_C64:
            data.c64[5] = 1;
            break;
        default:
            data.half[2] = 0xbc00;
            break;
        }
        expect_failure(tdsl_call(one, &t, 1, &options, &f->report), TDSL_E_SYMMETRY, &f->report,
                       "'A'", types[k] == TDSL_F64 ? "element 3" : "element 1", NULL);
    }
}

static void exchanges_of_groups_and_conjugates_are_checked(void **state)
{
    Fixture *f = *state;
    static const tdsl_extent extents[] = {{-1, 0, 2}, {-1, 0, 2}, {-1, 0, 2}, {-1, 0, 2}};
    static const int32_t turned[] = {1, 0}, groups[] = {2, 3, 0, 1}, bad[] = {1, 2};
    static const tdsl_exchange hermitian[] = {{turned, 1, 1}}, pairs[] = {{groups, 1, 0}},
                               outside[] = {{bad, 1, 0}};
    static const tdsl_arg_info args[] = {{"H", TDSL_IN, TDSL_C128, 2, 0, extents, hermitian, 1},
                                         {"g", TDSL_IN, TDSL_F32, 4, 0, extents, pairs, 1}};
    static const tdsl_arg_info wrong[] = {{"H", TDSL_IN, TDSL_F32, 2, 0, extents, outside, 1}};
    static tdsl_kernel_info info, other;
    info = small_info;
    info.name = "exchanges";
    info.n_dims = 0;
    info.n_args = 2;
    info.args = args;
    info.call = call_of_nothing;
    tdsl_kernel *kernel = make_kernel(f->context, &info);
    double h[8] = {1, 0, 2, 3, 2, -3, 4, 0};
    float g[16];
    for (int k = 0; k < 16; k++) {
        g[k] = (float)(k / 4 + k % 4);
    }
    const int64_t shape[4] = {2, 2, 2, 2};
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    options.flags = TDSL_CHECK_SYMMETRY;
    tdsl_tensor given[2] = {tdsl_view(TDSL_C128, h, 2, shape),
                            tdsl_view(TDSL_F32, g, 4, shape)};
    expect_ok(tdsl_call(kernel, given, 2, &options, &f->report), &f->report);
    h[7] = 1; /* not real */
    expect_failure(tdsl_call(kernel, given, 2, &options, &f->report), TDSL_E_SYMMETRY,
                   &f->report, "'H'", "element 3 is not its image, axes 0, 1", NULL);
    h[7] = 0;
    h[5] = 3; /* symmetric */
    expect_failure(tdsl_call(kernel, given, 2, &options, &f->report), TDSL_E_SYMMETRY,
                   &f->report, "'H'", "element 1 is not its image, axes 0, 1", NULL);
    h[5] = -3;
    g[9] = 0; /* [1,0,0,1], whose image is [0,1,1,0] */
    expect_failure(tdsl_call(kernel, given, 2, &options, &f->report), TDSL_E_SYMMETRY,
                   &f->report, "'g'", "element 6 is not its image, axes 0, 1 with 2, 3", NULL);
    other = info;
    other.args = wrong;
    other.n_args = 1;
    expect_failure(tdsl_register(f->context, &other, &f->report), TDSL_E_ABI, &f->report, "'H'",
                   "no axes", NULL);
}

static void scalars_and_inout_arguments_are_passed(void **state)
{
    Fixture *f = *state;
    tdsl_kernel *kernel = make_kernel(f->context, &update_info);
    double beta = 0.5;
    double x[3] = {1, 2, 3};
    double c[3] = {10, 20, 30};
    const int64_t shape[1] = {3};
    tdsl_tensor args[3] = {tdsl_view(TDSL_F64, &beta, 0, NULL),
                           tdsl_view(TDSL_F64, x, 1, shape), tdsl_view(TDSL_F64, c, 1, shape)};
    expect_ok(tdsl_call(kernel, args, 3, NULL, &f->report), &f->report);
    assert_true(c[0] == 6 && c[1] == 12 && c[2] == 18);
    args[1].data = c;
    expect_failure(tdsl_call(kernel, args, 3, NULL, &f->report), TDSL_E_OVERLAP, &f->report,
                   "'C'", "'X'", "update");
    args[1].data = x;
    args[0].data = NULL;
    expect_failure(tdsl_call(kernel, args, 3, NULL, &f->report), TDSL_E_ARGUMENT, &f->report,
                   "'beta'", "null", NULL);
}

int main(void)
{
#define CALL(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CALL(right_arguments_give_the_kernels_result),
        CALL(a_wrong_dtype_is_refused),
        CALL(a_wrong_rank_is_refused),
        CALL(extents_that_disagree_are_refused_naming_both_arguments),
        CALL(a_negative_extent_is_refused),
        CALL(a_fixed_extent_must_be_the_kernels),
        CALL(strides_other_than_c_order_are_refused),
        CALL(strides_of_axes_without_steps_do_not_matter),
        CALL(misaligned_data_are_refused),
        CALL(null_data_are_refused_unless_there_are_none),
        CALL(a_result_that_overlaps_another_argument_is_refused),
        CALL(a_result_may_stand_anywhere_among_the_arguments),
        CALL(inputs_may_overlap_and_neighbours_may_touch),
        CALL(an_empty_argument_overlaps_nothing),
        CALL(a_size_beyond_64_bits_is_refused),
        CALL(a_zero_extent_beside_a_huge_one_is_no_overflow),
        CALL(the_number_of_arguments_is_checked),
        CALL(a_workspace_of_the_callers_is_checked_and_used),
        CALL(a_workspace_that_overlaps_an_argument_is_refused),
        CALL(dimensions_may_be_given_and_must_then_agree),
        CALL(a_workspace_that_cannot_be_is_a_status),
        CALL(a_failing_c_form_is_reported),
        CALL(a_call_hands_its_threads_to_the_c_form),
        CALL(declared_symmetry_is_checked_for_calls_that_ask),
        CALL(a_position_outside_is_told_with_its_place),
        CALL(symmetry_of_every_element_type_is_checked),
        CALL(exchanges_of_groups_and_conjugates_are_checked),
        CALL(scalars_and_inout_arguments_are_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
