/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher: which backend runs and why, for each setting; that explaining and calling agree; and
 * that nothing meant for the device runs in C without saying so. */
#include "support_stub.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Bench {
    Stub stub;
    StubNeff neff;
    tdsl_context *context;
    tdsl_kernel *kernel;
    MatmulArgs m;
    tdsl_report report;
    int logged;
    char log[600];
} Bench;

static void note(void *user, const char *message)
{
    Bench *b = user;
    b->logged++;
    (void)snprintf(b->log, sizeof b->log, "%s", message);
}

/* `configure` may be null. */
static void bench_open(Bench *b, const tdsl_kernel_info *info, bool form,
                       void (*configure)(tdsl_config *))
{
    memset(b, 0, sizeof *b);
    b->report = (tdsl_report)TDSL_REPORT_INIT;
    stub_open(&b->stub, NULL);
    stub_neff_open(&b->neff, stub_matmul_text, stub_dims);
    tdsl_config config = stub_config(&b->stub);
    config.user = b;
    config.log = note;
    if (configure != NULL) {
        configure(&config);
    }
    b->context = make_context(&config);
    b->kernel = make_kernel(b->context, info);
    if (form) {
        expect_ok(tdsl_register_nki(b->context, info->name, &b->neff.form, &b->report),
                  &b->report);
    }
    matmul_args(&b->m);
}

static void bench_close(Bench *b)
{
    tdsl_context_destroy(b->context);
    stub_neff_close(&b->neff);
    stub_close(&b->stub);
}

/* What is explained is what happens, and the call succeeds. */
static void runs(Bench *b, int backend, int reason)
{
    tdsl_report explained = TDSL_REPORT_INIT;
    expect_ok(tdsl_dispatch_explain(b->kernel, b->m.args, 3, NULL, &explained), &explained);
    assert_true(matmul_untouched(&b->m));
    expect_ok(tdsl_call(b->kernel, b->m.args, 3, NULL, &b->report), &b->report);
    assert_true(matmul_done(&b->m));
    assert_int_equal(b->report.backend, backend);
    assert_int_equal(b->report.reason, reason);
    assert_int_equal(explained.backend, backend);
    assert_int_equal(explained.reason, reason);
    assert_int_equal(b->report.multiply_adds, 12);
}

static void refuses(Bench *b, tdsl_status status, const char *word)
{
    tdsl_report explained = TDSL_REPORT_INIT;
    expect_failure(tdsl_dispatch_explain(b->kernel, b->m.args, 3, NULL, &explained), status,
                   &explained, b->kernel != NULL ? tdsl_kernel_table(b->kernel)->name : "",
                   word, NULL);
    expect_failure(tdsl_call(b->kernel, b->m.args, 3, NULL, &b->report), status, &b->report,
                   tdsl_kernel_table(b->kernel)->name, word, NULL);
    assert_int_equal(b->report.backend, TDSL_BACKEND_DEFAULT);
    assert_true(matmul_untouched(&b->m));
}

static void says(const Bench *b, const char *word)
{
    char text[1200];
    size_t length = tdsl_report_text(&b->report, text, sizeof text);
    assert_int_equal(length, strlen(text));
    if (strstr(text, word) == NULL) {
        print_error("'%s' is not in: %s\n", word, text);
        fail();
    }
    assert_int_equal(tdsl_report_text(&b->report, text, 8), length);
    assert_int_equal(strlen(text), 7);
}

static void set_c(tdsl_config *config)
{
    config->backend = TDSL_BACKEND_C;
}

static void set_nki(tdsl_config *config)
{
    config->backend = TDSL_BACKEND_NKI;
}

static void set_required(tdsl_config *config)
{
    config->require_nki = 1;
    config->min_nki_flops = 1000000;
}

static void set_threshold_24(tdsl_config *config)
{
    config->min_nki_flops = 24;
}

static void set_threshold_25(tdsl_config *config)
{
    config->min_nki_flops = 25;
}

static void set_no_library(tdsl_config *config)
{
    config->nrt_library = "/nonexistent/libnrt.so.1";
}

static void set_no_library_but_required(tdsl_config *config)
{
    set_no_library(config);
    config->require_nki = 1;
}

static void without_an_nki_form_the_c_form_runs(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, false, NULL);
    runs(&b, TDSL_BACKEND_C, TDSL_REASON_NO_NKI_FORM);
    says(&b, "'matmul': C, because it has no NKI form");
    assert_int_equal(b.stub.calls(), 0);
    assert_int_equal(b.logged, 0);
    bench_close(&b);
}

static void the_backend_setting_decides_first(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, set_c);
    runs(&b, TDSL_BACKEND_C, TDSL_REASON_FORCED);
    assert_int_equal(b.stub.calls(), 0);
    bench_close(&b);
    bench_open(&b, &matmul_info, true, set_nki);
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_FORCED);
    says(&b, "the device (NKI), because the backend setting says so (2 tensors to the device, "
             "1 back)");
    bench_close(&b);
}

static void work_of_two_flops_per_multiply_add_is_held_to_the_threshold(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, set_threshold_24);
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_ABOVE_THRESHOLD);
    says(&b, "its 24 flops (2 per multiply-add) reach the threshold of 24");
    bench_close(&b);
    bench_open(&b, &matmul_info, true, set_threshold_25);
    runs(&b, TDSL_BACKEND_C, TDSL_REASON_BELOW_THRESHOLD);
    says(&b, "its 24 flops (2 per multiply-add) are below the threshold of 25");
    assert_int_equal(b.stub.calls(), 0); /* the device was not even looked for */
    bench_close(&b);
}

static void the_default_threshold_is_two_billion(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, set_threshold_24);
    tdsl_config config = TDSL_CONFIG_INIT;
    config.ignore_environment = 1;
    tdsl_context *context = make_context(&config);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    expect_ok(tdsl_register_nki(context, "matmul", &b.neff.form, &b.report), &b.report);
    expect_ok(tdsl_call(kernel, b.m.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.report.reason, TDSL_REASON_BELOW_THRESHOLD);
    assert_true(b.report.min_nki_flops == 2e9);
    tdsl_context_destroy(context);
    bench_close(&b);
}

static void requiring_nki_overrides_the_threshold(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, set_required);
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_REQUIRED);
    bench_close(&b);
}

static void requiring_nki_fails_where_the_c_form_would_run(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, false, set_required);
    refuses(&b, TDSL_E_TARGET, "NEFF");
    bench_close(&b);
    bench_open(&b, &matmul_info, true, set_no_library_but_required);
    refuses(&b, TDSL_E_NO_LIBRARY, "/nonexistent");
    assert_int_equal(b.logged, 0);
    bench_close(&b);
    bench_open(&b, &matmul_info, true, set_required);
    b.stub.script("nrt_execute=1004");
    expect_failure(tdsl_call(b.kernel, b.m.args, 3, NULL, &b.report), TDSL_E_DEVICE, &b.report,
                   "matmul", "nrt_execute", "1004");
    assert_true(matmul_untouched(&b.m));
    bench_close(&b);
}

static void an_absent_device_means_c_and_is_said(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, set_no_library);
    runs(&b, TDSL_BACKEND_C, TDSL_REASON_UNAVAILABLE);
    assert_int_equal(b.report.cause, TDSL_E_NO_LIBRARY);
    says(&b, "the device cannot be used (TDSL_E_NO_LIBRARY): kernel 'matmul'");
    says(&b, "/nonexistent/libnrt.so.1");
    assert_int_equal(b.logged, 1); /* for the explanation and the call together */
    assert_non_null(strstr(b.log, "the C form runs instead"));
    expect_ok(tdsl_call(b.kernel, b.m.args, 3, NULL, NULL), &b.report);
    assert_int_equal(b.logged, 1);
    bench_close(&b);
}

static void set_default_log(tdsl_config *config)
{
    set_no_library(config);
    config->log = NULL;
}

static void by_default_it_is_said_once_on_standard_error(void **state)
{
    Bench b;
    char path[256];
    char text[1024] = {0};
    bench_open(&b, &matmul_info, true, set_default_log);
    file_make(path, "", 0);
    int saved = dup(STDERR_FILENO);
    int file = open(path, O_RDWR);
    assert_true(saved >= 0 && file >= 0);
    assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
    tdsl_status first = tdsl_call(b.kernel, b.m.args, 3, NULL, NULL);
    tdsl_status second = tdsl_call(b.kernel, b.m.args, 3, NULL, NULL);
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    (void)close(saved);
    (void)close(file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(first, TDSL_OK);
    assert_int_equal(second, TDSL_OK);
    assert_non_null(strstr(text, "libtdsl: kernel 'matmul': device: libnrt is not here"));
    assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n')); /* one line */
    bench_close(&b);
}

static void a_failing_device_means_c_and_is_said(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, NULL);
    b.stub.script("nrt_execute:1=1005,nrt_tensor_read:2=1201");
    expect_ok(tdsl_call(b.kernel, b.m.args, 3, NULL, &b.report), &b.report);
    assert_true(matmul_done(&b.m));
    assert_int_equal(b.report.backend, TDSL_BACKEND_C);
    assert_int_equal(b.report.reason, TDSL_REASON_DEVICE_FAILED);
    assert_int_equal(b.report.cause, TDSL_E_DEVICE);
    assert_int_equal(b.report.native, 1005);
    says(&b, "NRT_EXEC_NC_BUSY (1005)");
    assert_int_equal(b.logged, 1);
    for (int i = 0; i < 2; i++) { /* once on the device, once lost while reading */
        matmul_args(&b.m);
        expect_ok(tdsl_call(b.kernel, b.m.args, 3, NULL, &b.report), &b.report);
        assert_true(matmul_done(&b.m));
        assert_int_equal(b.report.backend, i == 0 ? TDSL_BACKEND_NKI : TDSL_BACKEND_C);
    }
    assert_int_equal(b.report.cause, TDSL_E_DEVICE_LOST);
    assert_int_equal(b.logged, 2);
    matmul_args(&b.m);
    expect_ok(tdsl_call(b.kernel, b.m.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.report.reason, TDSL_REASON_UNAVAILABLE);
    says(&b, "lost since");
    bench_close(&b);
}

/* A NEFF that is no good, by its number; `word` is in every message about it. */
static const char *spoil(Bench *b, int kind, char *path)
{
    static const char other[] = "program\tbuiltin\tmatmul\ninput\tX\t10\t2\t3\n"
                                "input\tB\t10\t3\t2\noutput\toutput_0\t10\t2\t2\n";
    file_make(path, b->neff.bytes, kind == 1 ? b->neff.size - 600 : b->neff.size);
    b->neff.part.neff = NULL;
    b->neff.part.neff_path = path;
    switch (kind) {
    case 0:
        b->neff.part.neff_path = "/nonexistent/x.neff";
        return "missing";
    case 1:
        return "truncated";
    case 2:
        b->neff.sha256[5] = b->neff.sha256[5] == '0' ? '1' : '0';
        return "SHA-256";
    case 3:
        b->neff.part.neff_path = NULL;
        stub_neff_close(&b->neff);
        stub_neff_open(&b->neff, other, stub_dims);
        return "another kernel";
    default:
        b->stub.script("family=2");
        return "trn1";
    }
}

static void a_neff_that_is_no_good_means_c_unless_nki_is_required(void **state)
{
    for (int kind = 0; kind < 5; kind++) {
        for (int required = 0; required < 2; required++) {
            Bench b;
            char path[256];
            bench_open(&b, &matmul_info, false, required ? set_required : NULL);
            const char *word = spoil(&b, kind, path);
            expect_ok(tdsl_register_nki(b.context, "matmul", &b.neff.form, &b.report),
                      &b.report);
            tdsl_status want = kind == 4 ? TDSL_E_TARGET : TDSL_E_NEFF;
            for (int i = 0; i < 2; i++) {
                matmul_args(&b.m);
                tdsl_status status = tdsl_call(b.kernel, b.m.args, 3, NULL, &b.report);
                assert_non_null(strstr(b.report.message, word));
                assert_non_null(strstr(b.report.message, "'matmul'"));
                if (required) {
                    assert_int_equal(status, want);
                    assert_int_equal(b.report.backend, TDSL_BACKEND_DEFAULT);
                    assert_true(matmul_untouched(&b.m));
                } else {
                    assert_int_equal(status, TDSL_OK);
                    assert_int_equal(b.report.cause, want);
                    assert_int_equal(b.report.backend, TDSL_BACKEND_C);
                    assert_true(matmul_done(&b.m));
                    says(&b, word);
                }
            }
            assert_int_equal(b.logged, required ? 0 : 1);
            assert_int_equal(unlink(path), 0);
            bench_close(&b);
        }
    }
}

static void explaining_does_not_use_up_the_log(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, set_no_library);
    expect_ok(tdsl_dispatch_explain(b.kernel, b.m.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.report.reason, TDSL_REASON_UNAVAILABLE);
    assert_int_equal(b.logged, 0);
    expect_ok(tdsl_call(b.kernel, b.m.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.logged, 1);
    bench_close(&b);
}

static void a_numerical_error_delivers_results_and_says_so(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, NULL);
    b.stub.script("nrt_execute=1003");
    expect_failure(tdsl_call(b.kernel, b.m.args, 3, NULL, &b.report), TDSL_E_NUMERICAL,
                   &b.report, "matmul", "1003", NULL);
    assert_true(matmul_done(&b.m));
    assert_int_equal(b.report.backend, TDSL_BACKEND_NKI);
    bench_close(&b);
}

static void a_kernel_without_a_c_form_needs_the_device(void **state)
{
    Bench b;
    bench_open(&b, &device_only_info, true, set_threshold_25);
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_NO_C_FORM);
    bench_close(&b);
    bench_open(&b, &device_only_info, true, set_no_library);
    refuses(&b, TDSL_E_NO_LIBRARY, "libnrt");
    bench_close(&b);
    bench_open(&b, &device_only_info, false, NULL);
    refuses(&b, TDSL_E_TARGET, "no C form");
    bench_close(&b);
    bench_open(&b, &device_only_info, true, set_c);
    refuses(&b, TDSL_E_TARGET, "no C form");
    bench_close(&b);
}

static void a_form_for_other_extents_is_not_used(void **state)
{
    static const int64_t other[3] = {2, 3, 4};
    Bench b;
    bench_open(&b, &matmul_info, false, NULL);
    b.neff.form.dims = other;
    expect_ok(tdsl_register_nki(b.context, "matmul", &b.neff.form, &b.report), &b.report);
    runs(&b, TDSL_BACKEND_C, TDSL_REASON_OTHER_EXTENTS);
    b.neff.form.dims = stub_dims; /* one more, for these */
    expect_ok(tdsl_register_nki(b.context, "matmul", &b.neff.form, &b.report), &b.report);
    matmul_args(&b.m);
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_ABOVE_THRESHOLD);
    bench_close(&b);
    bench_open(&b, &matmul_info, false, set_nki);
    b.neff.form.dims = other;
    expect_ok(tdsl_register_nki(b.context, "matmul", &b.neff.form, &b.report), &b.report);
    refuses(&b, TDSL_E_TARGET,
            "called with m=2, k=3, n=2, but its NEFF was built for m=2, k=3, n=4");
    bench_close(&b);
}

static void a_neff_is_no_program_for_the_emulator(void **state)
{
    Bench b;
    bench_open(&b, &matmul_info, true, NULL);
    tdsl_config config = stub_config(&b.stub);
    config.use_simulator = 1;
    tdsl_context *context = make_context(&config);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    expect_ok(tdsl_register_nki(context, "matmul", &b.neff.form, &b.report), &b.report);
    expect_ok(tdsl_call(kernel, b.m.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.report.reason, TDSL_REASON_NO_NKI_FORM);
    tdsl_context_destroy(context);
    bench_close(&b);
}

static void set_environment(tdsl_config *config)
{
    config->ignore_environment = 0;
    config->min_nki_flops = 0;
    config->nrt_library = NULL;
}

static void the_environment_sets_what_the_program_leaves_open(void **state)
{
    Bench b;
    Stub stub;
    stub_open(&stub, NULL);
    assert_int_equal(setenv("TDSL_NRT_LIBRARY", stub.path, 1), 0);
    assert_int_equal(setenv("TDSL_MIN_NKI_FLOPS", "2.4e1", 1), 0);
    bench_open(&b, &matmul_info, true, set_environment);
    assert_int_equal(setenv("TDSL_MIN_NKI_FLOPS", "2.5e1", 1),
                     0); /* too late for this context */
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_ABOVE_THRESHOLD);
    assert_true(stub.calls() > 0);
    bench_close(&b);
    bench_open(&b, &matmul_info, true, set_environment);
    runs(&b, TDSL_BACKEND_C, TDSL_REASON_BELOW_THRESHOLD);
    bench_close(&b);
    assert_int_equal(setenv("TDSL_REQUIRE_NKI", "1", 1), 0);
    bench_open(&b, &matmul_info, true, set_environment);
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_REQUIRED);
    bench_close(&b);
    assert_int_equal(unsetenv("TDSL_REQUIRE_NKI"), 0);
    assert_int_equal(setenv("TDSL_BACKEND", "nki", 1), 0);
    bench_open(&b, &matmul_info, true, set_environment);
    runs(&b, TDSL_BACKEND_NKI, TDSL_REASON_FORCED);
    bench_close(&b);
    bench_open(&b, &matmul_info, true, set_c); /* the program has the last word */
    runs(&b, TDSL_BACKEND_C, TDSL_REASON_FORCED);
    bench_close(&b);
    assert_int_equal(unsetenv("TDSL_BACKEND"), 0);
    assert_int_equal(unsetenv("TDSL_MIN_NKI_FLOPS"), 0);
    assert_int_equal(unsetenv("TDSL_NRT_LIBRARY"), 0);
    stub_close(&stub);
}

static void huge_work_saturates_and_goes_to_the_device(void **state)
{
    tdsl_report report = TDSL_REPORT_INIT;
    char text[256];
    report.multiply_adds = UINT64_MAX;
    report.min_nki_flops = 2e9;
    report.backend = TDSL_BACKEND_NKI;
    report.reason = TDSL_REASON_ABOVE_THRESHOLD;
    report.kernel = "k";
    (void)tdsl_report_text(&report, text, sizeof text);
    assert_non_null(strstr(text, "36893488147419103232 flops"));
    (void)tdsl_report_text(NULL, text, sizeof text);
    assert_string_equal(text, "no report");
    assert_string_equal(tdsl_backend_name(TDSL_BACKEND_EMULATOR), "emulator");
    assert_string_equal(tdsl_backend_name(0), "nothing");
}

TESTS(TEST(without_an_nki_form_the_c_form_runs), TEST(the_backend_setting_decides_first),
      TEST(work_of_two_flops_per_multiply_add_is_held_to_the_threshold),
      TEST(the_default_threshold_is_two_billion), TEST(requiring_nki_overrides_the_threshold),
      TEST(requiring_nki_fails_where_the_c_form_would_run),
      TEST(an_absent_device_means_c_and_is_said),
      TEST(by_default_it_is_said_once_on_standard_error),
      TEST(a_failing_device_means_c_and_is_said),
      TEST(a_neff_that_is_no_good_means_c_unless_nki_is_required),
      TEST(explaining_does_not_use_up_the_log),
      TEST(a_numerical_error_delivers_results_and_says_so),
      TEST(a_kernel_without_a_c_form_needs_the_device),
      TEST(a_form_for_other_extents_is_not_used), TEST(a_neff_is_no_program_for_the_emulator),
      TEST(the_environment_sets_what_the_program_leaves_open),
      TEST(huge_work_saturates_and_goes_to_the_device))
