/* SPDX-License-Identifier: Apache-2.0 */
/* Device tensors: copies happen once, chained kernels make no host trip, the current value is always the
 * one that is read, and running out of memory anywhere leaves nothing behind. */
#include "support_counter.h"
#include "support_stub.h"

#include <stdlib.h>

static const int64_t square[2] = {2, 2};
static const int64_t square_dims[3] = {2, 2, 2};
static const char square_text[] = "program\tbuiltin\tmatmul\n"
                                  "input\tA\t10\t2\t2\n"
                                  "input\tB\t10\t2\t2\n"
                                  "output\toutput_0\t10\t2\t2\n";

typedef struct Bench {
    Stub stub;
    StubNeff neff;
    tdsl_context *context;
    tdsl_kernel *kernel;
    tdsl_report report;
    float a[4];
    float b[4];
    float c[4];
    float d[4];
    tdsl_tensor ta;
    tdsl_tensor tb;
    tdsl_tensor tc;
    tdsl_tensor td;
} Bench;

static void bench_open(Bench *b, int backend, int64_t min_nki_flops)
{
    static const float a[4] = {1, 2, 3, 4};
    static const float x[4] = {0, 1, 1, 0};
    memset(b, 0, sizeof *b);
    b->report = (tdsl_report)TDSL_REPORT_INIT;
    stub_open(&b->stub, NULL);
    stub_neff_open(&b->neff, square_text, square_dims);
    tdsl_config config = stub_config(&b->stub);
    config.backend = backend;
    config.min_nki_flops = min_nki_flops;
    b->context = make_context(&config);
    b->kernel = make_kernel(b->context, &matmul_info);
    expect_ok(tdsl_register_nki(b->context, "matmul", &b->neff.form, &b->report), &b->report);
    memcpy(b->a, a, sizeof a);
    memcpy(b->b, x, sizeof x);
    b->ta = tdsl_view(TDSL_F32, b->a, 2, square);
    b->tb = tdsl_view(TDSL_F32, b->b, 2, square);
    b->tc = tdsl_view(TDSL_F32, b->c, 2, square);
    b->td = tdsl_view(TDSL_F32, b->d, 2, square);
}

static void bench_close(Bench *b)
{
    tdsl_context_destroy(b->context);
    stub_neff_close(&b->neff);
    stub_close(&b->stub);
}

static void to_device(Bench *b, tdsl_tensor *tensor)
{
    expect_ok(tdsl_to_device(b->context, tensor, &b->report), &b->report);
}

static void from_device(Bench *b, tdsl_tensor *tensor)
{
    expect_ok(tdsl_from_device(b->context, tensor, &b->report), &b->report);
}

/* r = x * y */
static void multiply(Bench *b, tdsl_tensor *r, tdsl_tensor *x, tdsl_tensor *y)
{
    tdsl_tensor args[3] = {*x, *y, *r};
    expect_ok(tdsl_call(b->kernel, args, 3, NULL, &b->report), &b->report);
}

static void holds(const float *values, float v0, float v1, float v2, float v3)
{
    assert_true(values[0] == v0 && values[1] == v1 && values[2] == v2 && values[3] == v3);
}

static void copies_are_made_once(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_AUTO, 1);
    to_device(&b, &b.ta);
    assert_int_equal(b.report.device_writes, 1);
    tdsl_buffer *device = b.ta.device;
    assert_non_null(device);
    to_device(&b, &b.ta);
    assert_int_equal(b.report.device_writes, 0);
    assert_ptr_equal(b.ta.device, device);
    from_device(&b, &b.ta);
    assert_int_equal(b.report.device_reads, 0);
    assert_int_equal(b.stub.calls_of("nrt_tensor_write"), 1);
    assert_int_equal(b.stub.calls_of("nrt_tensor_read"), 0);
    tdsl_device_free(b.context, &b.ta);
    assert_null(b.ta.device);
    assert_int_equal(b.stub.calls_of("nrt_tensor_free"), 1);
    tdsl_device_free(b.context, &b.ta);
    from_device(&b, &b.ta);
    bench_close(&b);
}

static void chained_kernels_make_no_host_trip(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_AUTO, 1000000); /* far below the threshold: residence decides */
    to_device(&b, &b.ta);
    to_device(&b, &b.tb);
    to_device(&b, &b.tc);
    to_device(&b, &b.td);
    b.stub.script("");
    multiply(&b, &b.tc, &b.ta, &b.tb);
    assert_int_equal(b.report.backend, TDSL_BACKEND_NKI);
    assert_int_equal(b.report.reason, TDSL_REASON_RESIDENT);
    multiply(&b, &b.td, &b.tc, &b.ta);
    multiply(&b, &b.tc, &b.td, &b.tb);
    assert_int_equal(b.stub.calls_of("nrt_execute"), 3);
    assert_int_equal(b.stub.calls_of("nrt_tensor_write"), 0);
    assert_int_equal(b.stub.calls_of("nrt_tensor_read"), 0);
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate"), 0);
    holds(b.c, 0, 0, 0, 0); /* the host has not seen it yet */
    from_device(&b, &b.tc);
    assert_int_equal(b.report.device_reads, 1);
    holds(b.c, 8, 5, 20, 13); /* ((a * b) * a) * b */
    from_device(&b, &b.tc);
    assert_int_equal(b.report.device_reads, 0);
    from_device(&b, &b.td);
    holds(b.d, 5, 8, 13, 20);
    bench_close(&b); /* the context frees what is left */
}

static void a_tensor_may_live_on_the_device_only(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_AUTO, 1);
    b.td.data = NULL;
    to_device(&b, &b.td);
    multiply(&b, &b.td, &b.ta, &b.tb);
    multiply(&b, &b.tc, &b.td, &b.tb);
    holds(b.c, 1, 2, 3, 4);
    expect_failure(tdsl_from_device(b.context, &b.td, &b.report), TDSL_E_ARGUMENT, &b.report,
                   "no host memory", NULL, NULL);
    bench_close(&b);
}

static void a_tensor_without_a_value_is_refused(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    b.td.data = NULL;
    to_device(&b, &b.td);
    tdsl_tensor args[3] = {b.td, b.tb, b.tc};
    expect_failure(tdsl_call(b.kernel, args, 3, NULL, &b.report), TDSL_E_ARGUMENT, &b.report,
                   "matmul", "'A'", "no value");
    bench_close(&b);
}

static void what_the_host_changed_is_sent_again(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_AUTO, 1);
    to_device(&b, &b.ta);
    b.a[0] = 100;
    multiply(&b, &b.tc, &b.ta, &b.tb);
    holds(b.c, 2, 1, 4, 3); /* nobody told the runtime */
    tdsl_host_changed(&b.ta);
    multiply(&b, &b.tc, &b.ta, &b.tb);
    assert_int_equal(b.report.device_writes, 2);
    holds(b.c, 2, 100, 4, 3);
    multiply(&b, &b.tc, &b.ta, &b.tb);
    assert_int_equal(b.report.device_writes, 1); /* b only */
    bench_close(&b);
}

static void the_c_form_fetches_first_and_leaves_its_result_on_the_host(void **state)
{
    static tdsl_kernel_info c_only;
    Bench b;
    bench_open(&b, TDSL_BACKEND_AUTO, 1);
    c_only = matmul_info;
    c_only.name = "c_only";
    tdsl_kernel *host = make_kernel(b.context, &c_only);
    to_device(&b, &b.tc);
    to_device(&b, &b.td);
    multiply(&b, &b.tc, &b.ta, &b.tb);
    holds(b.c, 0, 0, 0, 0);
    tdsl_tensor args[3] = {b.tc, b.tb, b.td};
    expect_ok(tdsl_call(host, args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.report.backend, TDSL_BACKEND_C);
    assert_int_equal(b.report.device_reads, 1);
    holds(b.c, 2, 1, 4, 3);
    holds(b.d, 1, 2, 3, 4);
    multiply(&b, &b.tc, &b.td, &b.ta); /* d is new on the host: sent */
    assert_int_equal(b.report.device_writes, 2);
    from_device(&b, &b.tc);
    holds(b.c, 7, 10, 15, 22);
    bench_close(&b);
}

static void results_on_one_device_memory_are_overlap(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    to_device(&b, &b.ta);
    tdsl_tensor other = b.ta; /* the same device memory under another host array */
    other.data = b.d;
    tdsl_tensor args[3] = {b.ta, b.tb, other};
    expect_failure(tdsl_call(b.kernel, args, 3, NULL, &b.report), TDSL_E_OVERLAP, &b.report,
                   "matmul", "'R'", "'A'");
    bench_close(&b);
}

static void device_memory_of_others_is_refused(void **state)
{
    static const int64_t longer[2] = {2, 3};
    Bench b;
    Bench other;
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    bench_open(&other, TDSL_BACKEND_NKI, 1);
    to_device(&other, &other.ta);
    tdsl_tensor args[3] = {other.ta, b.tb, b.tc};
    expect_failure(tdsl_call(b.kernel, args, 3, NULL, &b.report), TDSL_E_ARGUMENT, &b.report,
                   "matmul", "'A'", "another context");
    expect_failure(tdsl_to_device(b.context, &other.ta, &b.report), TDSL_E_ARGUMENT, &b.report,
                   "another context", NULL, NULL);
    to_device(&b, &b.ta);
    b.ta.extents = longer;
    expect_failure(tdsl_from_device(b.context, &b.ta, &b.report), TDSL_E_SHAPE, &b.report, "24",
                   "16", NULL);
    bench_close(&other);
    bench_close(&b);
}

static void tensors_that_make_no_sense_are_refused(void **state)
{
    static const int64_t below[2] = {2, -1};
    static const int64_t strides[2] = {1, 2};
    static const int64_t huge[2] = {INT64_MAX, INT64_MAX};
    Bench b;
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    tdsl_tensor t = b.ta;
    t.dtype = 55;
    assert_int_equal(tdsl_to_device(b.context, &t, &b.report), TDSL_E_DTYPE);
    t = b.ta;
    t.rank = -1;
    assert_int_equal(tdsl_to_device(b.context, &t, &b.report), TDSL_E_SHAPE);
    t = b.ta;
    t.extents = below;
    assert_int_equal(tdsl_to_device(b.context, &t, &b.report), TDSL_E_SHAPE);
    t.extents = huge;
    assert_int_equal(tdsl_to_device(b.context, &t, &b.report), TDSL_E_OVERFLOW);
    t = b.ta;
    t.strides = strides;
    assert_int_equal(tdsl_to_device(b.context, &t, &b.report), TDSL_E_STRIDE);
    assert_int_equal(tdsl_to_device(b.context, NULL, &b.report), TDSL_E_ARGUMENT);
    assert_int_equal(tdsl_to_device(NULL, &t, &b.report), TDSL_E_ARGUMENT);
    assert_int_equal(tdsl_from_device(NULL, &t, &b.report), TDSL_E_ARGUMENT);
    assert_null(t.device);
    assert_int_equal(b.stub.calls(), 0);
    bench_close(&b);
}

static void with_the_backend_c_nothing_moves(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_C, 1);
    to_device(&b, &b.ta);
    assert_null(b.ta.device);
    assert_int_equal(b.report.backend, TDSL_BACKEND_C);
    multiply(&b, &b.tc, &b.ta, &b.tb);
    from_device(&b, &b.tc);
    holds(b.c, 2, 1, 4, 3);
    b.td.data = NULL;
    expect_failure(tdsl_to_device(b.context, &b.td, &b.report), TDSL_E_TARGET, &b.report,
                   "backend is c", NULL, NULL);
    assert_int_equal(b.stub.calls(), 0);
    bench_close(&b);
}

static void failing_transfers_are_statuses_and_leave_the_host_alone(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    b.stub.script("nrt_tensor_allocate:1=4,nrt_tensor_write:1=1203");
    expect_failure(tdsl_to_device(b.context, &b.ta, &b.report), TDSL_E_MEMORY, &b.report,
                   "nrt_tensor_allocate", NULL, NULL);
    assert_null(b.ta.device);
    expect_failure(tdsl_to_device(b.context, &b.ta, &b.report), TDSL_E_DEVICE_LOST, &b.report,
                   "nrt_tensor_write", "1203", NULL);
    assert_int_equal(b.report.native, 1203);
    assert_null(b.ta.device);
    bench_close(&b);
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    to_device(&b, &b.tc);
    multiply(&b, &b.tc, &b.ta, &b.tb);
    b.stub.script("nrt_tensor_read=1");
    expect_failure(tdsl_from_device(b.context, &b.tc, &b.report), TDSL_E_DEVICE, &b.report,
                   "nrt_tensor_read", NULL, NULL);
    holds(b.c, 0, 0, 0, 0);
    b.stub.script("");
    from_device(&b, &b.tc);
    holds(b.c, 2, 1, 4, 3);
    bench_close(&b);
}

static void a_value_lost_with_the_device_is_not_made_up(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_AUTO, 1);
    to_device(&b, &b.tc);
    multiply(&b, &b.tc, &b.ta, &b.tb);
    b.stub.script("nrt_execute=1202");
    tdsl_tensor args[3] = {b.tc, b.tb, b.td};
    expect_failure(tdsl_call(b.kernel, args, 3, NULL, &b.report), TDSL_E_DEVICE_LOST, &b.report,
                   "matmul", "'A'", "lost");
    holds(b.c, 0, 0, 0, 0);
    holds(b.d, 0, 0, 0, 0);
    expect_failure(tdsl_from_device(b.context, &b.tc, &b.report), TDSL_E_DEVICE_LOST, &b.report,
                   "lost", NULL, NULL);
    tdsl_device_free(b.context, &b.tc);
    bench_close(&b);
}

static void a_result_of_a_failed_run_has_no_value(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    b.tc.data = NULL;
    to_device(&b, &b.tc);
    multiply(&b, &b.tc, &b.ta, &b.tb);
    b.stub.script("nrt_execute=1004");
    tdsl_tensor args[3] = {b.ta, b.tb, b.tc};
    expect_failure(tdsl_call(b.kernel, args, 3, NULL, &b.report), TDSL_E_DEVICE, &b.report,
                   "matmul", NULL, NULL);
    b.stub.script("");
    b.tc.data = b.c;
    expect_failure(tdsl_from_device(b.context, &b.tc, &b.report), TDSL_E_DEVICE, &b.report,
                   "failed", NULL, NULL);
    holds(b.c, 0, 0, 0, 0);
    bench_close(&b);
}

/* --- inout --- */

static const tdsl_dim_info axpy_dims[] = {{"i", 3}};
static const tdsl_extent axpy_axis[] = {{0, 0, 0}};
static const tdsl_arg_info axpy_args[] = {
    {"beta", TDSL_SCALAR, TDSL_F32, 0, 0, NULL, NULL, 0},
    {"X", TDSL_IN, TDSL_F32, 1, 0, axpy_axis, NULL, 0},
    {"C", TDSL_INOUT, TDSL_F32, 1, 0, axpy_axis, NULL, 0},
};

static uint64_t axpy_madds(const int64_t *dims)
{
    return (uint64_t)dims[0];
}

static const tdsl_kernel_info axpy_info = {
    TDSL_ABI_HEAD, "axpy",     "test.tdsl", "kernel axpy", "00", 1,    3, axpy_dims, axpy_args,
    NULL,          axpy_madds, NULL,        NULL,          NULL, NULL, 0, 0,         NULL,
};

static void updated_twice(const char *input_name)
{
    static const int64_t three[1] = {3};
    char text[256];
    Bench b;
    StubNeff neff;
    float beta = 2;
    float x[3] = {1, 2, 3};
    float c[3] = {10, 20, 30};
    (void)snprintf(text, sizeof text,
                   "program\tbuiltin\tupdate\ninput\tbeta\t10\t1\t1\ninput\tX\t10\t3\n"
                   "input\t%s\t10\t3\noutput\toutput_0\t10\t3\n",
                   input_name);
    bench_open(&b, TDSL_BACKEND_NKI, 1);
    tdsl_kernel *kernel = make_kernel(b.context, &axpy_info);
    stub_neff_open(&neff, text, three);
    expect_ok(tdsl_register_nki(b.context, "axpy", &neff.form, &b.report), &b.report);
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, &beta, 0, NULL),
                           tdsl_view(TDSL_F32, x, 1, three), tdsl_view(TDSL_F32, c, 1, three)};
    expect_ok(tdsl_call(kernel, args, 3, NULL, &b.report), &b.report);
    assert_true(c[0] == 21 && c[1] == 42 && c[2] == 63);
    to_device(&b, &args[2]);
    for (int i = 0; i < 2; i++) {
        expect_ok(tdsl_call(kernel, args, 3, NULL, &b.report), &b.report);
        assert_int_equal(b.report.device_writes, 2);
        assert_int_equal(b.report.device_reads, 0);
    }
    assert_true(c[0] == 21);
    b.stub.script("nrt_execute=1004"); /* the old value stays, or is known to be gone */
    assert_int_equal(tdsl_call(kernel, args, 3, NULL, &b.report), TDSL_E_DEVICE);
    b.stub.script("");
    tdsl_status status = tdsl_from_device(b.context, &args[2], &b.report);
    if (strcmp(input_name, "C") == 0) {
        expect_ok(status, &b.report);
        assert_true(c[0] == 2 * (2 * 21 + 1) + 1 && c[2] == 2 * (2 * 63 + 3) + 3);
    } else {
        expect_failure(status, TDSL_E_DEVICE, &b.report, "failed", NULL, NULL);
        assert_true(c[0] == 21);
    }
    bench_close(&b);
    stub_neff_close(&neff);
}

static void an_inout_argument_is_updated_in_a_new_tensor_or_in_place(void **state)
{
    updated_twice("C");
    updated_twice("C.must_alias_input");
}

/* --- memory --- */

static tdsl_status whole_session(const Stub *stub, const StubNeff *neff, Counter *counter)
{
    tdsl_config config = stub_config(stub);
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    float a[4] = {1, 2, 3, 4};
    float c[4] = {0};
    float d[4] = {0};
    config.backend = TDSL_BACKEND_NKI;
    counter_give(counter, &config);
    tdsl_status status = tdsl_context_create(&config, &context, NULL);
    status = status != TDSL_OK ? status : tdsl_register(context, &matmul_info, NULL);
    status =
        status != TDSL_OK ? status : tdsl_register_nki(context, "matmul", &neff->form, NULL);
    status = status != TDSL_OK ? status : tdsl_find(context, "matmul", &kernel, NULL);
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, a, 2, square), tdsl_view(TDSL_F32, a, 2, square),
                           tdsl_view(TDSL_F32, c, 2, square)};
    status = status != TDSL_OK ? status : tdsl_to_device(context, &args[0], NULL);
    status = status != TDSL_OK ? status : tdsl_call(kernel, args, 3, NULL, NULL);
    args[2].data = d;
    status = status != TDSL_OK ? status : tdsl_to_device(context, &args[2], NULL);
    status = status != TDSL_OK ? status : tdsl_call(kernel, args, 3, NULL, NULL);
    status = status != TDSL_OK ? status : tdsl_from_device(context, &args[2], NULL);
    assert_true(status != TDSL_OK || (c[3] == 22 && d[3] == 22));
    tdsl_context_destroy(context);
    return status;
}

static void running_out_of_memory_anywhere_is_a_status_and_leaks_nothing(void **state)
{
    Stub stub;
    StubNeff neff;
    tdsl_status status = TDSL_E_MEMORY;
    stub_open(&stub, NULL);
    stub_neff_open(&neff, square_text, square_dims);
    long i = 0;
    for (; status != TDSL_OK; i++) {
        Counter counter = {.fail_at = i};
        status = whole_session(&stub, &neff, &counter);
        assert_true(status == TDSL_OK || status == TDSL_E_MEMORY);
        assert_int_equal(counter.live, 0);
        assert_int_equal(stub.live(), 0);
    }
    assert_in_range(i, 15, 60);
    stub_neff_close(&neff);
    stub_close(&stub);
}

TESTS(TEST(copies_are_made_once), TEST(chained_kernels_make_no_host_trip),
      TEST(a_tensor_may_live_on_the_device_only), TEST(a_tensor_without_a_value_is_refused),
      TEST(what_the_host_changed_is_sent_again),
      TEST(the_c_form_fetches_first_and_leaves_its_result_on_the_host),
      TEST(results_on_one_device_memory_are_overlap), TEST(device_memory_of_others_is_refused),
      TEST(tensors_that_make_no_sense_are_refused), TEST(with_the_backend_c_nothing_moves),
      TEST(failing_transfers_are_statuses_and_leave_the_host_alone),
      TEST(a_value_lost_with_the_device_is_not_made_up),
      TEST(a_result_of_a_failed_run_has_no_value),
      TEST(an_inout_argument_is_updated_in_a_new_tensor_or_in_place),
      TEST(running_out_of_memory_anywhere_is_a_status_and_leaks_nothing))
