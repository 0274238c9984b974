/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a device, through the stub libnrt: it works, and when it does not, at whatever call and in
 * whatever way, there is a status and a message naming kernel and cause, host memory is as it was, nothing
 * is left behind, and other kernels go on. */
#include "support_stub.h"

#include "../../runtime/src/nrt_status.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A stub, a context that uses it, and a matmul with both forms. */
typedef struct Bench {
    Stub stub;
    StubNeff neff;
    tdsl_context *context;
    tdsl_kernel *matmul;
    tdsl_kernel *small; /* C only */
    tdsl_report report;
} Bench;

static void bench_open(Bench *b, int backend, const char *script)
{
    b->report = (tdsl_report)TDSL_REPORT_INIT;
    stub_open(&b->stub, NULL);
    stub_neff_open(&b->neff, stub_matmul_text, stub_dims);
    tdsl_config config = stub_config(&b->stub);
    config.backend = backend;
    b->context = make_context(&config);
    b->matmul = make_kernel(b->context, &matmul_info);
    b->small = make_kernel(b->context, &small_info);
    expect_ok(tdsl_register_nki(b->context, "matmul", &b->neff.form, &b->report), &b->report);
    b->stub.script(script);
}

static void bench_close(Bench *b)
{
    tdsl_context_destroy(b->context);
    stub_neff_close(&b->neff);
    stub_close(&b->stub);
}

static tdsl_status bench_call(Bench *b, MatmulArgs *m)
{
    matmul_args(m);
    return tdsl_call(b->matmul, m->args, 3, NULL, &b->report);
}

static void other_kernels_work(Bench *b)
{
    float a[6] = {1, 1, 1, 2, 2, 2};
    float x[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    float r[8] = {0};
    const int64_t sa[2] = {2, 3};
    const int64_t sb[2] = {3, 4};
    const int64_t sr[2] = {2, 4};
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, a, 2, sa), tdsl_view(TDSL_F32, x, 2, sb),
                           tdsl_view(TDSL_F32, r, 2, sr)};
    tdsl_call_options none = TDSL_CALL_OPTIONS_INIT;
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = NULL;
    tdsl_config config = TDSL_CONFIG_INIT;
    config.backend = TDSL_BACKEND_C;
    expect_ok(tdsl_context_create(&config, &context, &report), &report);
    tdsl_kernel *kernel = make_kernel(context, &small_info);
    expect_ok(tdsl_call(kernel, args, 3, &none, &report), &report);
    assert_true(r[0] == 3 && r[7] == 6);
    tdsl_context_destroy(context);
    /* and in the same context, unless it was told to use nothing but the device */
    tdsl_status status = tdsl_call(b->small, args, 3, NULL, &report);
    assert_true(status == TDSL_OK ||
                (status == TDSL_E_TARGET && strstr(report.message, "small")));
}

static void a_kernel_runs_on_the_device(void **state)
{
    Bench b;
    MatmulArgs m;
    bench_open(&b, TDSL_BACKEND_NKI, "");
    for (int i = 0; i < 3; i++) {
        expect_ok(bench_call(&b, &m), &b.report);
        assert_true(matmul_done(&m));
        assert_int_equal(b.report.backend, TDSL_BACKEND_NKI);
        assert_int_equal(b.report.reason, TDSL_REASON_FORCED);
        assert_int_equal(b.report.device_writes, 2);
        assert_int_equal(b.report.device_reads, 1);
    }
    assert_int_equal(b.stub.calls_of("nrt_init"), 1);
    assert_int_equal(b.stub.calls_of("nrt_load"), 1);
    assert_int_equal(b.stub.calls_of("nrt_execute"), 3);
    /* memory and sets are made once */
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate"), 3);
    assert_int_equal(b.stub.calls_of("nrt_tensor_free"), 0);
    assert_int_equal(b.stub.calls_of("nrt_allocate_tensor_set"), 2);
    bench_close(&b);
}

static void kept_memory_is_given_back_when_the_device_runs_short(void **state)
{
    static const char wider[] = "program\tbuiltin\tmatmul\ninput\tA\t10\t1\t3\n"
                                "input\tB\t10\t3\t1\noutput\toutput_0\t10\t1\t1\n";
    static const int64_t dims[3] = {1, 3, 1};
    static const int64_t shape[3][2] = {{1, 3}, {3, 1}, {1, 1}};
    Bench b;
    StubNeff other;
    MatmulArgs m;
    float r[1] = {0};
    bench_open(&b, TDSL_BACKEND_NKI, "");
    stub_neff_open(&other, wider, dims);
    expect_ok(tdsl_register_nki(b.context, "matmul", &other.form, &b.report), &b.report);
    expect_ok(bench_call(&b, &m), &b.report);
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, m.a, 2, shape[0]),
                           tdsl_view(TDSL_F32, m.b, 2, shape[1]),
                           tdsl_view(TDSL_F32, r, 2, shape[2])};
    b.stub.script("nrt_tensor_allocate:1=4");
    expect_ok(tdsl_call(b.matmul, args, 3, NULL, &b.report), &b.report);
    assert_true(r[0] == 1 * -2 + 2 * -1 + 3 * 0);
    assert_int_equal(b.stub.calls_of("nrt_tensor_free"), 3);
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate"), 4);
    expect_ok(bench_call(&b, &m), &b.report); /* both keep some now */
    tdsl_tensor resident = m.args[0];
    b.stub.script("nrt_tensor_allocate:1=4");
    expect_ok(tdsl_to_device(b.context, &resident, &b.report), &b.report);
    assert_in_range(b.stub.calls_of("nrt_tensor_free"), 3, 6);
    expect_ok(bench_call(&b, &m), &b.report);
    expect_ok(tdsl_register_nki(b.context, "matmul", &other.form, &b.report), &b.report);
    b.stub.script("nrt_load:1=4"); /* a program that has no room */
    expect_ok(tdsl_call(b.matmul, args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.stub.calls_of("nrt_load"), 2);
    b.stub.script("nrt_tensor_allocate=4"); /* short for good */
    expect_failure(bench_call(&b, &m), TDSL_E_MEMORY, &b.report, "matmul",
                   "nrt_tensor_allocate", NULL);
    assert_true(matmul_untouched(&m));
    b.stub.script("");
    expect_ok(bench_call(&b, &m), &b.report);
    assert_true(matmul_done(&m));
    bench_close(&b);
    stub_neff_close(&other);
}

static void a_large_tensor_travels_in_pieces(void **state)
{
    enum { n = 1500 }; /* 1500 x 1500 f32 are 9 MB: three pieces */
    static const char text[] = "program\tbuiltin\tmatmul\ninput\tA\t10\t1500\t1\n"
                               "input\tB\t10\t1\t1500\noutput\toutput_0\t10\t1500\t1500\n";
    static const int64_t dims[3] = {n, 1, n};
    static float a[n];
    static float x[n];
    static float r[n * n];
    Bench b;
    StubNeff big;
    const int64_t shape[3][2] = {{n, 1}, {1, n}, {n, n}};
    bench_open(&b, TDSL_BACKEND_NKI, "");
    stub_neff_open(&big, text, dims);
    expect_ok(tdsl_register_nki(b.context, "matmul", &big.form, &b.report), &b.report);
    for (int i = 0; i < n; i++) {
        a[i] = (float)i;
        x[i] = (float)(i % 7);
    }
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, a, 2, shape[0]),
                           tdsl_view(TDSL_F32, x, 2, shape[1]),
                           tdsl_view(TDSL_F32, r, 2, shape[2])};
    expect_ok(tdsl_call(b.matmul, args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.stub.calls_of("nrt_tensor_read"), 3);
    r[0] = 5;
    b.stub.script("nrt_tensor_read:2=4"); /* what follows a failed piece does not heal it */
    expect_failure(tdsl_call(b.matmul, args, 3, NULL, &b.report), TDSL_E_MEMORY, &b.report,
                   "nrt_tensor_read", NULL, NULL);
    assert_int_equal(b.stub.calls_of("nrt_tensor_read"), 2);
    assert_true(r[0] == 5);
    r[0] = 0;
    for (int i = 0; i < n * n; i++) {
        assert_true(r[i] == (float)(i / n) * (float)(i % n % 7));
    }
    bench_close(&b);
    stub_neff_close(&big);
}

/* --- the library --- */

static void refused_library(const char *path, const char *word)
{
    tdsl_config config = TDSL_CONFIG_INIT;
    tdsl_report report = TDSL_REPORT_INIT;
    StubNeff neff;
    MatmulArgs m;
    config.backend = TDSL_BACKEND_NKI;
    config.nrt_library = path;
    tdsl_context *context = make_context(&config);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    stub_neff_open(&neff, stub_matmul_text, stub_dims);
    expect_ok(tdsl_register_nki(context, "matmul", &neff.form, &report), &report);
    matmul_args(&m);
    expect_failure(tdsl_call(kernel, m.args, 3, NULL, &report), TDSL_E_NO_LIBRARY, &report,
                   "matmul", "libnrt", word);
    assert_true(matmul_untouched(&m));
    tdsl_context_destroy(context);
    stub_neff_close(&neff);
}

static void a_library_that_is_none_is_a_status(void **state)
{
    char path[256];
    refused_library("/nonexistent/libnrt.so.1", "/nonexistent");
    refused_library("/tmp", NULL);
    file_make(path, "this is no ELF file, whatever its name", 38);
    refused_library(path, path);
    assert_int_equal(unlink(path), 0);
    unsigned char arm[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    arm[16] = 3;
    arm[18] = 0xb7; /* another machine */
    file_make(path, arm, sizeof arm);
    refused_library(path, path);
    assert_int_equal(unlink(path), 0);
}

static void each_missing_symbol_is_named(void **state)
{
    static const char *const symbols[] = {
#define NAME(member, symbol) symbol,
        NRT_SYMBOLS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        Stub stub;
        StubNeff neff;
        MatmulArgs m;
        tdsl_report report = TDSL_REPORT_INIT;
        stub_open(&stub, symbols[i]);
        tdsl_config config = stub_config(&stub);
        config.backend = TDSL_BACKEND_NKI;
        tdsl_context *context = make_context(&config);
        tdsl_kernel *kernel = make_kernel(context, &matmul_info);
        stub_neff_open(&neff, stub_matmul_text, stub_dims);
        expect_ok(tdsl_register_nki(context, "matmul", &neff.form, &report), &report);
        matmul_args(&m);
        expect_failure(tdsl_call(kernel, m.args, 3, NULL, &report), TDSL_E_NO_SYMBOL, &report,
                       "matmul", symbols[i], NULL);
        assert_int_equal(stub.calls(), 0);
        tdsl_context_destroy(context);
        stub_neff_close(&neff);
        stub_close(&stub);
    }
}

static void an_unknown_version_is_refused(void **state)
{
    Bench b;
    MatmulArgs m;
    bench_open(&b, TDSL_BACKEND_NKI, "version=9");
    expect_failure(bench_call(&b, &m), TDSL_E_NO_SYMBOL, &b.report, "matmul", "version 9",
                   NULL);
    assert_int_equal(b.stub.calls_of("nrt_init"), 0);
    bench_close(&b);
}

/* --- every call fails, with every status --- */

static const NrtStatus known[] = {1,    2,    3,    4,    5,    6,    7,    9,
                                  10,   11,   13,   14,   15,   101,  1002, 1003,
                                  1004, 1005, 1006, 1100, 1200, 1201, 1202, 1203,
                                  1204, 1205, 1206, 8,    999,  -5}; /* the last three nobody
                                                                        has told us of */

static tdsl_status expected_status(const char *function, NrtStatus native)
{
    if (strcmp(function, "nrt_load") == 0 && native == 2) {
        return TDSL_E_NEFF;
    }
    return tdsl_nrt_status_row(native)->status;
}

static bool is_release(const char *function)
{
    return strstr(function, "free") != NULL || strstr(function, "destroy") != NULL ||
           strcmp(function, "nrt_unload") == 0 || strcmp(function, "nrt_close") == 0;
}

/* Calls of a kernel's first call, then those of the context's end. */
typedef struct Calls {
    long during;
    long all;
    char names[64][48]; /* from 1 */
} Calls;

static void calls_count(Calls *calls)
{
    Bench b;
    MatmulArgs m;
    bench_open(&b, TDSL_BACKEND_NKI, "");
    expect_ok(bench_call(&b, &m), &b.report);
    calls->during = b.stub.calls();
    tdsl_context_destroy(b.context);
    calls->all = b.stub.calls();
    for (long i = 1; i <= calls->all && i < 64; i++) {
        (void)snprintf(calls->names[i], 48, "%s", b.stub.call_name(i));
    }
    stub_neff_close(&b.neff);
    stub_close(&b.stub);
    assert_in_range(calls->during, 15, 40);
    assert_in_range(calls->all, calls->during + 6, 60);
}

static void one_failing_call(Bench *b, const char *function, NrtStatus native)
{
    MatmulArgs m;
    char number[16];
    tdsl_status status = bench_call(b, &m);
    (void)snprintf(number, sizeof number, "(%d)", (int)native);
    if (is_release(function)) { /* nothing the caller could do about it: the result is there */
        expect_ok(status, &b->report);
        assert_true(matmul_done(&m));
        return;
    }
    bool asking = strcmp(function, "nrt_get_instance_info") == 0; /* nobody needs the answer */
    if (native == NRT_QUEUE_FULL ||
        (asking && !tdsl_nrt_status_row(native)->lost)) { /* fails once, then goes well */
        expect_ok(status, &b->report);
        assert_true(matmul_done(&m));
        return;
    }
    expect_failure(status, expected_status(function, native), &b->report, "matmul", function,
                   number);
    assert_int_equal(b->report.native, native);
    bool delivered =
        native == NRT_EXEC_COMPLETED_WITH_NUM_ERR && strcmp(function, "nrt_execute") == 0;
    assert_true(delivered ? matmul_done(&m) : matmul_untouched(&m));
    /* a lost device stays lost, and says since when; any other failure of a run passes */
    status = bench_call(b, &m);
    bool opening =
        asking || strcmp(function, "nrt_init") == 0 || strcmp(function, "nrt_get_version") == 0;
    if (opening) {
        assert_int_equal(status, expected_status(function, native));
    } else if (tdsl_nrt_status_row(native)->lost) {
        expect_failure(status, TDSL_E_DEVICE_LOST, &b->report, "matmul", "lost", function);
    } else if (b->stub.calls_of("nrt_execute") == 0 &&
               b->stub.calls_of("nrt_tensor_allocate") == 0 &&
               expected_status(function, native) == TDSL_E_NEFF) {
        assert_int_equal(status, TDSL_E_NEFF); /* not tried again */
    } else {
        expect_ok(status, &b->report);
        assert_true(matmul_done(&m));
    }
}

static void each_call_may_fail_with_each_status(void **state)
{
    static Calls calls;
    calls_count(&calls);
    for (long i = 1; i <= calls.all; i++) {
        const char *function = calls.names[i];
        for (size_t s = 0; s < sizeof known / sizeof known[0]; s++) {
            Bench b;
            char script[32];
            (void)snprintf(script, sizeof script, "#%ld=%d", i, (int)known[s]);
            bench_open(&b, TDSL_BACKEND_NKI, script);
            one_failing_call(&b, function, known[s]);
            other_kernels_work(&b);
            tdsl_context_destroy(b.context);
            stub_neff_close(&b.neff);
            if (!is_release(function)) { /* what it refuses to free is the library's to keep */
                if (b.stub.live() != 0 || b.stub.misused() != 0) {
                    print_error("after %s = %d: %ld left behind; %s\n", function, (int)known[s],
                                b.stub.live(), b.stub.misuse());
                }
                assert_int_equal(b.stub.misused(), 0);
                assert_int_equal(b.stub.live(), 0);
            }
            assert_int_equal(unlink(b.stub.path), 0);
        }
    }
}

static void a_call_that_succeeds_and_gives_nothing_is_a_status(void **state)
{
    static const char *const functions[] = {"nrt_load", "nrt_get_model_tensor_info",
                                            "nrt_allocate_tensor_set", "nrt_tensor_allocate"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        Bench b;
        MatmulArgs m;
        char script[64];
        (void)snprintf(script, sizeof script, "%s:1=nothing", functions[i]);
        bench_open(&b, TDSL_BACKEND_NKI, script);
        expect_failure(bench_call(&b, &m), TDSL_E_DEVICE, &b.report, "matmul", functions[i],
                       "nothing");
        assert_true(matmul_untouched(&m));
        expect_ok(bench_call(&b, &m), &b.report);
        assert_true(matmul_done(&m));
        bench_close(&b);
    }
}

static void a_queue_that_stays_full_is_a_status_after_some_tries(void **state)
{
    Bench b;
    MatmulArgs m;
    bench_open(&b, TDSL_BACKEND_NKI, "nrt_execute=7");
    expect_failure(bench_call(&b, &m), TDSL_E_DEVICE, &b.report, "matmul", "nrt_execute",
                   "NRT_QUEUE_FULL");
    assert_in_range(b.stub.calls_of("nrt_execute"), 2, 20);
    bench_close(&b);
}

static void every_status_is_mapped_as_the_table_says(void **state)
{
    static const struct {
        NrtStatus native;
        tdsl_status status;
    } rows[] = {
        {2, TDSL_E_ARGUMENT},     {1002, TDSL_E_ARGUMENT},    {4, TDSL_E_MEMORY},
        {11, TDSL_E_MEMORY},      {5, TDSL_E_TIMEOUT},        {6, TDSL_E_DEVICE_LOST},
        {7, TDSL_E_DEVICE},       {9, TDSL_E_DEVICE},         {10, TDSL_E_NEFF},
        {13, TDSL_E_DEVICE_LOST}, {14, TDSL_E_DEVICE_LOST},   {101, TDSL_E_DEVICE_LOST},
        {1003, TDSL_E_NUMERICAL}, {1004, TDSL_E_DEVICE},      {1005, TDSL_E_DEVICE},
        {1006, TDSL_E_DEVICE},    {1200, TDSL_E_DEVICE_LOST}, {1206, TDSL_E_DEVICE_LOST},
        {4711, TDSL_E_DEVICE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(tdsl_nrt_status_row(rows[i].native)->status, rows[i].status);
    }
}

/* --- hangs --- */

/* `ending`: when the context is destroyed. */
static void one_hang(long number, const char *function, bool ending)
{
    Bench b;
    MatmulArgs m;
    char script[32];
    (void)snprintf(script, sizeof script, "#%ld=hang", number);
    stub_open(&b.stub, NULL);
    b.report = (tdsl_report)TDSL_REPORT_INIT;
    stub_neff_open(&b.neff, stub_matmul_text, stub_dims);
    tdsl_config config = stub_config(&b.stub);
    config.backend = TDSL_BACKEND_NKI;
    config.device_timeout_ms = 40;
    b.context = make_context(&config);
    b.matmul = make_kernel(b.context, &matmul_info);
    b.small = make_kernel(b.context, &small_info);
    expect_ok(tdsl_register_nki(b.context, "matmul", &b.neff.form, &b.report), &b.report);
    b.stub.script(script);
    tdsl_status status = bench_call(&b, &m);
    if (ending) {
        expect_ok(status, &b.report);
        assert_true(matmul_done(&m));
    } else if (is_release(function)) { /* the next call finds out */
        expect_failure(status, TDSL_E_DEVICE_LOST, &b.report, "matmul", "hangs", NULL);
        assert_true(matmul_untouched(&m));
    } else {
        expect_failure(status, TDSL_E_TIMEOUT, &b.report, "matmul", function, "40 ms");
        assert_true(matmul_untouched(&m));
    }
    if (!ending) {
        status = bench_call(&b, &m);
        assert_true(status == TDSL_E_DEVICE_LOST || status == TDSL_E_TIMEOUT);
        assert_true(matmul_untouched(&m));
    }
    other_kernels_work(&b);
    tdsl_context_destroy(b.context);              /* does not wait for what hangs */
    tdsl_context *second = make_context(&config); /* nor does anybody call into it again */
    tdsl_kernel *kernel = make_kernel(second, &matmul_info);
    expect_ok(tdsl_register_nki(second, "matmul", &b.neff.form, &b.report), &b.report);
    matmul_args(&m);
    expect_failure(tdsl_call(kernel, m.args, 3, NULL, &b.report), TDSL_E_DEVICE_LOST, &b.report,
                   "matmul", "hangs", NULL);
    tdsl_context_destroy(second);
    b.stub.let_go(); /* what returns late touches nothing of ours */
    stub_neff_close(&b.neff);
    assert_int_equal(b.stub.misused(), 0);
    assert_int_equal(unlink(b.stub.path), 0);
}

static void each_call_may_hang(void **state)
{
    static Calls calls;
    calls_count(&calls);
    for (long i = 1; i <= calls.all; i++) {
        one_hang(i, calls.names[i], i > calls.during);
    }
}

/* --- NEFFs --- */

static void refused_form(const tdsl_nki_form *form, const char *word1, const char *word2)
{
    Bench b;
    MatmulArgs m;
    bench_open(&b, TDSL_BACKEND_NKI, "");
    expect_ok(tdsl_register_nki(b.context, "matmul", form, &b.report), &b.report);
    for (int i = 0; i < 2; i++) { /* the second time it is remembered */
        expect_failure(bench_call(&b, &m), TDSL_E_NEFF, &b.report, "matmul", word1, word2);
        assert_true(matmul_untouched(&m));
    }
    assert_true(b.stub.calls_of("nrt_load") <= 1);
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate"), 0);
    bench_close(&b);
}

static void a_neff_that_is_missing_or_damaged_is_refused(void **state)
{
    StubNeff neff;
    char path[256];
    stub_neff_open(&neff, stub_matmul_text, stub_dims);
    tdsl_nki_form form = neff.form;
    tdsl_nki_part part = neff.part;
    form.parts = &part;
    part.neff = NULL;
    part.neff_path = "/nonexistent/kernel.neff";
    refused_form(&form, "/nonexistent/kernel.neff", "missing");
    part.neff_path = "/tmp";
    refused_form(&form, "/tmp", "regular");
    file_make(path, neff.bytes, 100);
    part.neff_path = path;
    refused_form(&form, path, "truncated");
    assert_int_equal(unlink(path), 0);
    file_make(path, neff.bytes, neff.size - 700);
    refused_form(&form, path, "truncated");
    assert_int_equal(unlink(path), 0);
    neff.bytes[1600] ^= 1;
    file_make(path, neff.bytes, neff.size);
    refused_form(&form, path, "another or a damaged");
    assert_int_equal(unlink(path), 0);
    refused_form(&neff.form, "embedded", "damaged");
    part = neff.part;
    part.neff_bytes = 10;
    refused_form(&form, "embedded", "truncated");
    stub_neff_close(&neff);
}

static void a_neff_by_path_with_its_digest_runs(void **state)
{
    Bench b;
    MatmulArgs m;
    char path[256];
    bench_open(&b, TDSL_BACKEND_NKI, "");
    file_make(path, b.neff.bytes, b.neff.size);
    tdsl_nki_form form = b.neff.form;
    tdsl_nki_part part = b.neff.part;
    form.parts = &part;
    char upper[65];
    for (size_t i = 0; i < sizeof upper; i++) {
        char c = b.neff.sha256[i];
        upper[i] = c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
    }
    part.neff = NULL;
    part.neff_path = path;
    part.neff_sha256 = upper;
    expect_ok(tdsl_register_nki(b.context, "matmul", &form, &b.report), &b.report);
    expect_ok(bench_call(&b, &m), &b.report);
    assert_true(matmul_done(&m));
    assert_int_equal(unlink(path), 0);
    bench_close(&b);
}

static void refused_text(const char *text, const char *word)
{
    StubNeff neff;
    stub_neff_open(&neff, text, stub_dims);
    refused_form(&neff.form, word, NULL);
    stub_neff_close(&neff);
}

static void a_neff_of_another_kernel_is_refused(void **state)
{
    refused_text("no stub at all\n", "nrt_load");
    refused_text("program\tbuiltin\tmatmul\ninput\tA\t10\t2\t3\ninput\tC\t10\t3\t2\n"
                 "output\toutput_0\t10\t2\t2\n",
                 "'C'");
    refused_text("program\tbuiltin\tmatmul\ninput\tA\t10\t2\t4\ninput\tB\t10\t3\t2\n"
                 "output\toutput_0\t10\t2\t2\n",
                 "32 bytes");
    refused_text("program\tbuiltin\tmatmul\ninput\tA\t8\t2\t3\ninput\tB\t10\t3\t2\n"
                 "output\toutput_0\t10\t2\t2\n",
                 "dtype 8");
    refused_text("program\tbuiltin\tmatmul\ninput\tA\t10\t2\t3\n"
                 "output\toutput_0\t10\t2\t2\n",
                 "no input for argument 'B'");
    refused_text("program\tbuiltin\tmatmul\ninput\tA\t10\t2\t3\ninput\tB\t10\t3\t2\n",
                 "no result for argument 'R'");
    refused_text("program\tbuiltin\tmatmul\ninput\tA\t10\t2\t3\ninput\tB\t10\t3\t2\n"
                 "output\toutput_0\t10\t2\t2\noutput\toutput_1\t10\t2\t2\n",
                 "output_1");
    refused_text("program\tbuiltin\tmatmul\ninput\tA\t10\t2\t3\ninput\tA\t10\t2\t3\n"
                 "output\toutput_0\t10\t2\t2\n",
                 "'A'");
}

static void a_form_that_makes_no_sense_is_refused_at_once(void **state)
{
    Bench b;
    bench_open(&b, TDSL_BACKEND_AUTO, "");
    tdsl_nki_form form = TDSL_NKI_FORM_INIT;
    tdsl_nki_part part = TDSL_NKI_PART_INIT;
    form.parts = &part;
    form.n_parts = 1;
    form.target = "trn2";
    form.dims = stub_dims;
#define REFUSED(status, word)                                                                  \
    expect_failure(tdsl_register_nki(b.context, "matmul", &form, &b.report), status,           \
                   &b.report, "matmul", word, NULL)
    REFUSED(TDSL_E_ARGUMENT, "NEFF or a program");
    part.neff = b.neff.bytes;
    part.neff_bytes = b.neff.size;
    REFUSED(TDSL_E_NEFF, "64");
    part.neff_sha256 = "abc";
    REFUSED(TDSL_E_NEFF, "64");
    part.neff_sha256 = b.neff.sha256;
    part.neff_path = "x.neff";
    REFUSED(TDSL_E_ARGUMENT, "which");
    part.neff_path = NULL;
    form.target = "gpu";
    REFUSED(TDSL_E_ARGUMENT, "gpu");
    form.target = "trn2";
    form.dims = NULL;
    REFUSED(TDSL_E_ARGUMENT, "'m'");
    form.struct_size = 1;
    REFUSED(TDSL_E_ABI, "TDSL_NKI_FORM_INIT");
#undef REFUSED
    expect_failure(tdsl_register_nki(b.context, "nobody", &b.neff.form, &b.report),
                   TDSL_E_NOT_FOUND, &b.report, "nobody", NULL, NULL);
    expect_failure(tdsl_register_nki(b.context, "matmul", NULL, &b.report), TDSL_E_ARGUMENT,
                   &b.report, "null", NULL, NULL);
    bench_close(&b);
}

/* --- processes, contexts, threads --- */

static void two_contexts_share_one_initialisation(void **state)
{
    Bench b;
    MatmulArgs m;
    bench_open(&b, TDSL_BACKEND_NKI, "");
    tdsl_config config = stub_config(&b.stub);
    config.backend = TDSL_BACKEND_NKI;
    tdsl_context *second = make_context(&config);
    tdsl_kernel *kernel = make_kernel(second, &matmul_info);
    expect_ok(tdsl_register_nki(second, "matmul", &b.neff.form, &b.report), &b.report);
    expect_ok(bench_call(&b, &m), &b.report);
    matmul_args(&m);
    expect_ok(tdsl_call(kernel, m.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.stub.calls_of("nrt_init"), 1);
    tdsl_context_destroy(second);
    assert_int_equal(b.stub.calls_of("nrt_close"), 0);
    expect_ok(bench_call(&b, &m), &b.report);
    assert_true(matmul_done(&m));
    tdsl_context_destroy(b.context);
    assert_int_equal(b.stub.calls_of("nrt_close"), 1);
    stub_neff_close(&b.neff);
    stub_close(&b.stub);
}

static void a_child_process_is_told_that_the_device_is_its_parents(void **state)
{
    Bench b;
    MatmulArgs m;
    bench_open(&b, TDSL_BACKEND_NKI, "");
    expect_ok(bench_call(&b, &m), &b.report);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(10); /* destroying must not wait for the parent's thread, either */
        bool told =
            bench_call(&b, &m) == TDSL_E_DEVICE && strstr(b.report.message, "fork") != NULL;
        tdsl_config config = stub_config(&b.stub);
        tdsl_context *own = NULL;
        tdsl_kernel *kernel = NULL;
        config.backend = TDSL_BACKEND_NKI;
        matmul_args(&m);
        told = told && tdsl_context_create(&config, &own, &b.report) == TDSL_OK &&
               tdsl_register(own, &matmul_info, &b.report) == TDSL_OK &&
               tdsl_register_nki(own, "matmul", &b.neff.form, &b.report) == TDSL_OK &&
               tdsl_find(own, "matmul", &kernel, &b.report) == TDSL_OK &&
               tdsl_call(kernel, m.args, 3, NULL, &b.report) == TDSL_E_DEVICE;
        tdsl_context_destroy(own);
        tdsl_context_destroy(b.context);
        _exit(told ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_ok(bench_call(&b, &m), &b.report);
    bench_close(&b);
}

static void *call_often(void *argument)
{
    Bench *b = argument;
    intptr_t wrong = 0;
    for (int i = 0; i < 25; i++) {
        MatmulArgs m;
        tdsl_report report = TDSL_REPORT_INIT;
        matmul_args(&m);
        wrong += tdsl_call(b->matmul, m.args, 3, NULL, &report) != TDSL_OK || !matmul_done(&m);
        m.args[0].rank = 3;
        wrong += tdsl_call(b->matmul, m.args, 3, NULL, &report) != TDSL_E_SHAPE;
    }
    return (void *)wrong;
}

static void threads_may_use_one_kernel_on_the_device(void **state)
{
    enum { count = 4 };
    Bench b;
    pthread_t threads[count];
    bench_open(&b, TDSL_BACKEND_NKI, "");
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &b), 0);
    }
    for (int i = 0; i < count; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_int_equal(b.stub.calls_of("nrt_init"), 1);
    assert_int_equal(b.stub.calls_of("nrt_load"), 1);
    bench_close(&b);
}

TESTS(TEST(a_kernel_runs_on_the_device),
      TEST(kept_memory_is_given_back_when_the_device_runs_short),
      TEST(a_large_tensor_travels_in_pieces), TEST(a_library_that_is_none_is_a_status),
      TEST(each_missing_symbol_is_named), TEST(an_unknown_version_is_refused),
      TEST(each_call_may_fail_with_each_status),
      TEST(a_call_that_succeeds_and_gives_nothing_is_a_status),
      TEST(a_queue_that_stays_full_is_a_status_after_some_tries),
      TEST(every_status_is_mapped_as_the_table_says), TEST(each_call_may_hang),
      TEST(a_neff_that_is_missing_or_damaged_is_refused),
      TEST(a_neff_by_path_with_its_digest_runs), TEST(a_neff_of_another_kernel_is_refused),
      TEST(a_form_that_makes_no_sense_is_refused_at_once),
      TEST(two_contexts_share_one_initialisation),
      TEST(a_child_process_is_told_that_the_device_is_its_parents),
      TEST(threads_may_use_one_kernel_on_the_device))
