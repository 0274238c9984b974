/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, status texts and the registry: what they own, what they refuse, and that running out of
 * memory anywhere is a status that leaks nothing. */
#include "support_counter.h"
#include "support_stub.h"

#include <pthread.h>
#include <stdlib.h>

static void every_status_has_a_name_and_a_text(void **state)
{
    const tdsl_status all[] = {
        TDSL_OK,         TDSL_E_ARGUMENT,    TDSL_E_SHAPE,     TDSL_E_DTYPE,
        TDSL_E_STRIDE,   TDSL_E_OVERLAP,     TDSL_E_WORKSPACE, TDSL_E_OVERFLOW,
        TDSL_E_MEMORY,   TDSL_E_SYMMETRY,    TDSL_E_NOT_FOUND, TDSL_E_ABI,
        TDSL_E_TARGET,   TDSL_E_NO_LIBRARY,  TDSL_E_NO_SYMBOL, TDSL_E_DEVICE,
        TDSL_E_TIMEOUT,  TDSL_E_DEVICE_LOST, TDSL_E_NUMERICAL, TDSL_E_NEFF,
        TDSL_E_INTERNAL, TDSL_E_INDEX};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_string_not_equal(tdsl_status_name(all[i]), "TDSL_E_UNKNOWN");
        assert_string_not_equal(tdsl_status_text(all[i]), "unknown status");
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(tdsl_status_name(all[i]), tdsl_status_name(all[j]));
        }
    }
    assert_string_equal(tdsl_status_name(TDSL_E_SHAPE), "TDSL_E_SHAPE");
    assert_string_equal(tdsl_status_name(12345), "TDSL_E_UNKNOWN");
    assert_string_equal(tdsl_status_text(-12345), "unknown status");
}

static void kernels_are_found_by_name_in_order(void **state)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = make_context(NULL);
    tdsl_kernel *small = make_kernel(context, &small_info);
    tdsl_kernel *matmul = make_kernel(context, &matmul_info);
    tdsl_kernel *update = make_kernel(context, &update_info);
    assert_ptr_equal(tdsl_kernel_at(context, 0), matmul);
    assert_ptr_equal(tdsl_kernel_at(context, 1), small);
    assert_ptr_equal(tdsl_kernel_at(context, 2), update);
    assert_null(tdsl_kernel_at(context, 3));
    assert_ptr_equal(tdsl_kernel_table(small), &small_info);
    tdsl_kernel *none = NULL;
    expect_failure(tdsl_find(context, "smal", &none, &report), TDSL_E_NOT_FOUND, &report,
                   "'smal'", NULL, NULL);
    assert_null(none);
    tdsl_context_destroy(context);
}

static void a_list_of_kernels_is_registered_up_to_the_first_failure(void **state)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_kernel_info bad = matmul_info;
    bad.abi_version = 2; /* of another order of open dims */
    const tdsl_kernel_info *const good_list[] = {&matmul_info, &small_info, NULL};
    const tdsl_kernel_info *const bad_list[] = {&small_info, &bad, &update_info, NULL};
    tdsl_context *context = make_context(NULL);
    expect_ok(tdsl_register_all(context, good_list + 2, &report), &report);
    assert_null(tdsl_kernel_at(context, 0));
    expect_ok(tdsl_register_all(context, good_list, &report), &report);
    assert_non_null(tdsl_kernel_at(context, 1));
    expect_failure(tdsl_register_all(context, bad_list, &report), TDSL_E_ABI, &report,
                   "version 2", NULL, NULL);
    assert_null(tdsl_kernel_at(context, 2));
    expect_failure(tdsl_register_all(context, NULL, &report), TDSL_E_ARGUMENT, &report, "null",
                   NULL, NULL);
    tdsl_context_destroy(context);
}

static void a_thousand_kernels_are_found(void **state)
{
    enum { count = 1000 };
    static tdsl_kernel_info infos[count];
    static char names[count][16];
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = make_context(NULL);
    for (int i = 0; i < count; i++) {
        infos[i] = small_info;
        (void)snprintf(names[i], sizeof names[i], "k%d", (i * 7919) % count);
        infos[i].name = names[i];
        expect_ok(tdsl_register(context, &infos[i], &report), &report);
    }
    for (int i = 0; i < count; i++) {
        tdsl_kernel *kernel = NULL;
        expect_ok(tdsl_find(context, names[i], &kernel, &report), &report);
        assert_ptr_equal(tdsl_kernel_table(kernel), &infos[i]);
    }
    tdsl_context_destroy(context);
}

static void the_same_table_twice_is_fine_and_another_of_its_name_is_not(void **state)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = make_context(NULL);
    tdsl_kernel *kernel = make_kernel(context, &small_info);
    assert_ptr_equal(make_kernel(context, &small_info), kernel);
    tdsl_kernel_info other = matmul_info;
    other.name = "small";
    expect_failure(tdsl_register(context, &other, &report), TDSL_E_ARGUMENT, &report, "'small'",
                   "another table", NULL);
    tdsl_context_destroy(context);
}

static void refused_table(const tdsl_kernel_info *info, const char *word1, const char *word2)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = make_context(NULL);
    expect_failure(tdsl_register(context, info, &report), TDSL_E_ABI, &report, word1, word2,
                   NULL);
    tdsl_context_destroy(context);
}

static void tables_that_make_no_sense_are_refused(void **state)
{
    tdsl_kernel_info info = matmul_info;
    info.struct_size = 16;
    refused_table(&info, "16 bytes", NULL);
    info = matmul_info;
    info.abi_version = 0;
    refused_table(&info, "version 0", NULL);
    info = matmul_info;
    info.name = NULL;
    refused_table(&info, "name", NULL);
    info = matmul_info;
    info.n_args = -1;
    refused_table(&info, "matmul", "-1");
    info = matmul_info;
    info.n_args = 4000;
    refused_table(&info, "matmul", "4000");
    info = matmul_info;
    info.args = NULL;
    refused_table(&info, "matmul", NULL);
    info = matmul_info;
    info.workspace_bytes = NULL;
    refused_table(&info, "matmul", "function");
    info = matmul_info;
    info.n_dims = 2; /* extents name dimension 2 */
    refused_table(&info, "'B'", "axis 1");
    tdsl_arg_info args[3] = {matmul_info.args[0], matmul_info.args[1], matmul_info.args[2]};
    info = matmul_info;
    info.args = args;
    args[1].dtype = 100;
    refused_table(&info, "'B'", "dtype 100");
    args[1].dtype = TDSL_F32;
    args[1].role = TDSL_SCALAR;
    refused_table(&info, "'B'", "rank 2");
    args[1].role = TDSL_IN;
    args[1].name = NULL;
    refused_table(&info, "argument 1", NULL);
}

/* matmul_info as a later version of the headers may lay it out: every structure longer. */
static struct {
    tdsl_kernel_info info;
    uint64_t more[4];
} newer;
static struct {
    tdsl_dim_info dim;
    uint64_t more;
} newer_dims[3];
static struct {
    tdsl_arg_info arg;
    uint64_t more[3];
} newer_args[3];
static struct {
    tdsl_extent extent;
    uint64_t more[2];
} newer_extents[3][2];

static void newer_make(void)
{
    memset(newer_extents, 0x55, sizeof newer_extents);
    newer.info = matmul_info;
    newer.info.struct_size = sizeof newer;
    newer.info.abi_version = TDSL_ABI_VERSION + 1;
    newer.info.dim_size = sizeof newer_dims[0];
    newer.info.arg_size = sizeof newer_args[0];
    newer.info.extent_size = sizeof newer_extents[0][0];
    newer.info.dims = &newer_dims[0].dim;
    newer.info.args = &newer_args[0].arg;
    for (int i = 0; i < 3; i++) {
        newer_dims[i].dim = matmul_info.dims[i];
        newer_args[i].arg = matmul_info.args[i];
        newer_args[i].arg.extents = &newer_extents[i][0].extent;
        for (int axis = 0; axis < 2; axis++) {
            newer_extents[i][axis].extent = matmul_info.args[i].extents[axis];
        }
    }
}

static void a_newer_and_longer_table_is_accepted(void **state)
{
    static const int64_t shape[3][2] = {{2, 3}, {3, 1}, {2, 1}};
    float a[6] = {1, 2, 3, 4, 5, 6};
    float b[3] = {1, 1, 2};
    float r[2] = {0};
    tdsl_report report = TDSL_REPORT_INIT;
    newer_make();
    tdsl_context *context = make_context(NULL);
    tdsl_kernel *kernel = make_kernel(context, &newer.info);
    expect_ok(tdsl_register(context, &newer.info, &report), &report);
    assert_ptr_equal(tdsl_kernel_table(kernel), &newer.info);
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, a, 2, shape[0]),
                           tdsl_view(TDSL_F32, b, 2, shape[1]),
                           tdsl_view(TDSL_F32, r, 2, shape[2])};
    expect_ok(tdsl_call(kernel, args, 3, NULL, &report), &report);
    assert_true(r[0] == 9 && r[1] == 21);
    args[2].extents = shape[0];
    expect_failure(tdsl_call(kernel, args, 3, NULL, &report), TDSL_E_SHAPE, &report, "matmul",
                   "'R'", NULL);
    tdsl_context_destroy(context);
    newer_make();
    newer_args[1].arg.rank = 400;
    refused_table(&newer.info, "matmul", "rank");
    newer_make();
    newer_args[1].arg.dtype = 77;
    refused_table(&newer.info, "'B'", "dtype 77");
    newer_make();
    newer.info.arg_size = 8;
    refused_table(&newer.info, "sizes", NULL);
}

static void null_pointers_are_statuses(void **state)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_kernel *kernel = NULL;
    tdsl_context *context = make_context(NULL);
    expect_failure(tdsl_context_create(NULL, NULL, &report), TDSL_E_ARGUMENT, &report, "null",
                   NULL, NULL);
    expect_failure(tdsl_register(NULL, &small_info, &report), TDSL_E_ARGUMENT, &report,
                   "context", NULL, NULL);
    expect_failure(tdsl_register(context, NULL, &report), TDSL_E_ARGUMENT, &report, "table",
                   NULL, NULL);
    expect_failure(tdsl_find(context, NULL, &kernel, &report), TDSL_E_ARGUMENT, &report, "null",
                   NULL, NULL);
    assert_null(tdsl_kernel_at(NULL, 0));
    assert_null(tdsl_kernel_table(NULL));
    tdsl_context_destroy(NULL);
    tdsl_context_destroy(context);
}

static void a_report_or_configuration_of_another_version_is_refused(void **state)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = NULL;
    tdsl_config config = TDSL_CONFIG_INIT;
    config.struct_size = 8;
    expect_failure(tdsl_context_create(&config, &context, &report), TDSL_E_ABI, &report,
                   "TDSL_CONFIG_INIT", NULL, NULL);
    report.struct_size = 4;
    assert_int_equal(tdsl_context_create(NULL, &context, &report), TDSL_E_ABI);
    assert_null(context);
}

/* Create, register, find, call: the status of the first failure. */
static tdsl_status whole_session(Counter *counter, tdsl_report *report)
{
    tdsl_config config = TDSL_CONFIG_INIT;
    counter_give(counter, &config);
    config.emulator = "none.py"; /* or one is looked for */
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    tdsl_status status = tdsl_context_create(&config, &context, report);
    if (status == TDSL_OK) {
        status = tdsl_register(context, &matmul_info, report);
    }
    if (status == TDSL_OK) {
        status = tdsl_find(context, "matmul", &kernel, report);
    }
    float a[4] = {1, 2, 3, 4};
    float r[4] = {0};
    const int64_t shape[2] = {2, 2};
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, a, 2, shape), tdsl_view(TDSL_F32, a, 2, shape),
                           tdsl_view(TDSL_F32, r, 2, shape)};
    for (int i = 0; status == TDSL_OK && i < 3; i++) {
        status = tdsl_call(kernel, args, 3, NULL, report);
        assert_true(status != TDSL_OK || r[3] == 22);
    }
    tdsl_context_destroy(context);
    return status;
}

static void running_out_of_memory_anywhere_is_a_status_and_leaks_nothing(void **state)
{
    long failures = 0;
    for (long i = 0;; i++) {
        Counter counter = {.fail_at = i};
        tdsl_report report = TDSL_REPORT_INIT;
        tdsl_status status = whole_session(&counter, &report);
        assert_int_equal(counter.live, 0);
        assert_int_equal(counter.bytes, 0);
        if (status == TDSL_OK) {
            break;
        }
        expect_failure(status, TDSL_E_MEMORY, &report, "memory", NULL, NULL);
        failures++;
    }
    assert_true(failures >= 8); /* context, four texts, registry, kernel, workspace */
}

static void a_workspace_is_kept_between_calls(void **state)
{
    Counter counter = {.fail_at = -1};
    tdsl_report report = TDSL_REPORT_INIT;
    expect_ok(whole_session(&counter, &report), &report);
    assert_int_equal(counter.made, 8); /* one workspace for three calls */
}

static void allocate_without_release_is_refused(void **state)
{
    tdsl_config config = TDSL_CONFIG_INIT;
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = NULL;
    config.allocate = counter_allocate;
    expect_failure(tdsl_context_create(&config, &context, &report), TDSL_E_ARGUMENT, &report,
                   "release", NULL, NULL);
}

static void refused_variable(const char *name, const char *value, const char *word)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = NULL;
    assert_int_equal(setenv(name, value, 1), 0);
    expect_failure(tdsl_context_create(NULL, &context, &report), TDSL_E_ARGUMENT, &report, name,
                   word, NULL);
    assert_null(context);
    tdsl_config config = TDSL_CONFIG_INIT;
    config.ignore_environment = 1;
    expect_ok(tdsl_context_create(&config, &context, &report), &report);
    tdsl_context_destroy(context);
    assert_int_equal(unsetenv(name), 0);
}

static void variables_that_make_no_sense_are_refused_by_name(void **state)
{
    refused_variable("TDSL_BACKEND", "gpu", "'gpu'");
    refused_variable("TDSL_BACKEND", "default", "'default'");
    refused_variable("TDSL_BACKEND", "C", "'C'");
    refused_variable("TDSL_REQUIRE_NKI", "maybe", "'maybe'");
    refused_variable("TDSL_USE_SIMULATOR", "2", "'2'");
    const char *const bad[] = {"-1",  "nan", "inf", "1e",    "1e9x",
                               "two", " 1",  ".5",  "1e400", "0x10"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused_variable("TDSL_MIN_NKI_FLOPS", bad[i], bad[i]);
    }
}

static void variables_that_make_sense_are_accepted(void **state)
{
    const char *const good[][2] = {{"TDSL_BACKEND", "auto"},
                                   {"TDSL_BACKEND", "c"},
                                   {"TDSL_BACKEND", "nki"},
                                   {"TDSL_BACKEND", "emulator"},
                                   {"TDSL_BACKEND", ""},
                                   {"TDSL_REQUIRE_NKI", "0"},
                                   {"TDSL_REQUIRE_NKI", "1"},
                                   {"TDSL_USE_SIMULATOR", "1"},
                                   {"TDSL_MIN_NKI_FLOPS", "0"},
                                   {"TDSL_MIN_NKI_FLOPS", "2e9"},
                                   {"TDSL_MIN_NKI_FLOPS", "1.5e+6"}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(setenv(good[i][0], good[i][1], 1), 0);
        tdsl_context_destroy(make_context(NULL));
        assert_int_equal(unsetenv(good[i][0]), 0);
    }
}

static void a_deadline_may_be_as_far_as_can_be(void **state)
{
    Stub stub;
    StubNeff neff;
    MatmulArgs m;
    tdsl_report report = TDSL_REPORT_INIT;
    stub_open(&stub, NULL);
    stub_neff_open(&neff, stub_matmul_text, stub_dims);
    tdsl_config config = stub_config(&stub);
    config.backend = TDSL_BACKEND_NKI;
    config.device_timeout_ms = INT64_MAX;
    tdsl_context *context = make_context(&config);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    expect_ok(tdsl_register_nki(context, "matmul", &neff.form, &report), &report);
    matmul_args(&m);
    expect_ok(tdsl_call(kernel, m.args, 3, NULL, &report), &report);
    assert_true(matmul_done(&m));
    tdsl_context_destroy(context);
    stub_neff_close(&neff);
    stub_close(&stub);
}

static void contradictions_are_refused(void **state)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = NULL;
    tdsl_config config = TDSL_CONFIG_INIT;
    config.backend = TDSL_BACKEND_C;
    config.require_nki = 1;
    expect_failure(tdsl_context_create(&config, &context, &report), TDSL_E_ARGUMENT, &report,
                   "TDSL_REQUIRE_NKI", "TDSL_BACKEND=c", NULL);
    config = (tdsl_config)TDSL_CONFIG_INIT;
    config.backend = 9;
    expect_failure(tdsl_context_create(&config, &context, &report), TDSL_E_ARGUMENT, &report,
                   "9", NULL, NULL);
    config = (tdsl_config)TDSL_CONFIG_INIT;
    config.min_nki_flops = -5;
    expect_failure(tdsl_context_create(&config, &context, &report), TDSL_E_ARGUMENT, &report,
                   "-5", NULL, NULL);
    config = (tdsl_config)TDSL_CONFIG_INIT;
    config.device_timeout_ms = -5;
    expect_failure(tdsl_context_create(&config, &context, &report), TDSL_E_ARGUMENT, &report,
                   "device_timeout_ms", NULL, NULL);
}

typedef struct Worker {
    tdsl_context *context;
    int number;
} Worker;

/* Registers, finds and calls the same kernels as every other thread. */
static void *work(void *argument)
{
    Worker *worker = argument;
    intptr_t wrong = 0;
    for (int i = 0; i < 200; i++) {
        tdsl_report report = TDSL_REPORT_INIT;
        tdsl_kernel *kernel = NULL;
        float a[4] = {1, 2, 3, (float)worker->number};
        float r[4] = {0};
        const int64_t shape[2] = {2, 2};
        tdsl_tensor args[3] = {tdsl_view(TDSL_F32, a, 2, shape),
                               tdsl_view(TDSL_F32, a, 2, shape),
                               tdsl_view(TDSL_F32, r, 2, shape)};
        wrong += tdsl_register(worker->context, i % 2 == 0 ? &matmul_info : &small_info,
                               &report) < 0;
        wrong += tdsl_find(worker->context, "matmul", &kernel, &report) < 0;
        wrong += tdsl_call(kernel, args, 3, NULL, &report) < 0;
        wrong += r[3] != (float)(6 + worker->number * worker->number);
        args[1].rank = 7;
        wrong += tdsl_call(kernel, args, 3, NULL, &report) != TDSL_E_SHAPE;
        wrong += strstr(report.message, "'B'") == NULL;
    }
    return (void *)wrong;
}

static void threads_may_register_and_call_at_once(void **state)
{
    enum { count = 8 };
    pthread_t threads[count];
    Worker workers[count];
    tdsl_context *context = make_context(NULL);
    for (int i = 0; i < count; i++) {
        workers[i] = (Worker){context, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    tdsl_context_destroy(context);
}

TESTS(TEST(every_status_has_a_name_and_a_text), TEST(kernels_are_found_by_name_in_order),
      TEST(a_list_of_kernels_is_registered_up_to_the_first_failure),
      TEST(a_thousand_kernels_are_found),
      TEST(the_same_table_twice_is_fine_and_another_of_its_name_is_not),
      TEST(tables_that_make_no_sense_are_refused), TEST(a_newer_and_longer_table_is_accepted),
      TEST(null_pointers_are_statuses),
      TEST(a_report_or_configuration_of_another_version_is_refused),
      TEST(running_out_of_memory_anywhere_is_a_status_and_leaks_nothing),
      TEST(a_workspace_is_kept_between_calls), TEST(allocate_without_release_is_refused),
      TEST(variables_that_make_no_sense_are_refused_by_name),
      TEST(variables_that_make_sense_are_accepted), TEST(contradictions_are_refused),
      TEST(a_deadline_may_be_as_far_as_can_be), TEST(threads_may_register_and_call_at_once))
