/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of several device programs, through the stub libnrt and the emulator: temporaries and
 * consecutive elements of arguments travel from part to part on the device; a form that reads
 * what nobody wrote, or writes twice, is refused when it is registered. And forms for other
 * targets than the device's. */
#include "support_counter.h"
#include "support_stub.h"
#include "support/places.h"

#include <stdlib.h>

/* R = (A B) B for 2 x 2, over a temporary; the kernel it is registered with computes A B, which
 * tells the two apart. */
static const char square_text[] = "program\tbuiltin\tmatmul\ninput\tA\t10\t2\t2\n"
                                  "input\tB\t10\t2\t2\noutput\toutput_0\t10\t2\t2\n";
/* One row of it. */
static const char row_text[] = "program\tbuiltin\tmatmul\ninput\tA\t10\t1\t2\n"
                               "input\tB\t10\t2\t2\noutput\toutput_0\t10\t1\t2\n";
static const int64_t square_dims[3] = {2, 2, 2};
static const int64_t square[2] = {2, 2};
static const int64_t row[2] = {1, 2};

enum { A = 0, B = 1, R = 2, T = 3 }; /* tensors of the form */

typedef struct Bench {
    Stub stub;
    StubNeff neff;
    tdsl_context *context;
    tdsl_kernel *kernel;
    tdsl_report report;
    tdsl_nki_operand operands[2][3];
    tdsl_nki_part parts[2];
    tdsl_nki_temporary temporary;
    tdsl_nki_form form;
    float a[4];
    float b[4];
    float r[4];
    tdsl_tensor args[3];
} Bench;

static void set_operand(tdsl_nki_operand *operand, const char *name, int32_t role,
                        int32_t tensor)
{
    memset(operand, 0, sizeof *operand);
    operand->name = name;
    operand->role = role;
    operand->tensor = tensor;
}

static void set_rows(tdsl_nki_operand *operand, int64_t offset)
{
    operand->offset = offset;
    operand->rank = 2;
    operand->extents = row;
}

/* Parts of `text`: the first from A and B to T, the second from T and B to R. */
static void form_make(Bench *b)
{
    memset(&b->temporary, 0, sizeof b->temporary);
    b->temporary.name = "t";
    b->temporary.dtype = TDSL_F32;
    b->temporary.rank = 2;
    b->temporary.extents = square;
    set_operand(&b->operands[0][0], NULL, TDSL_IN, A);
    set_operand(&b->operands[0][1], NULL, TDSL_IN, B);
    set_operand(&b->operands[0][2], NULL, TDSL_OUT, T);
    set_operand(&b->operands[1][0], "A", TDSL_IN, T);
    set_operand(&b->operands[1][1], NULL, TDSL_IN, B);
    set_operand(&b->operands[1][2], NULL, TDSL_OUT, R);
    for (int p = 0; p < 2; p++) {
        b->parts[p] = b->neff.part;
        b->parts[p].operands = b->operands[p];
        b->parts[p].n_operands = 3;
    }
    b->form = b->neff.form;
    b->form.parts = b->parts;
    b->form.n_parts = 2;
    b->form.temporaries = &b->temporary;
    b->form.n_temporaries = 1;
}

static void bench_open(Bench *b, const char *text, const char *script)
{
    static const float a[4] = {1, 2, 3, 4};
    static const float x[4] = {0, 1, 1, 1};
    memset(b, 0, sizeof *b);
    b->report = (tdsl_report)TDSL_REPORT_INIT;
    stub_open(&b->stub, NULL);
    stub_neff_open(&b->neff, text, square_dims);
    tdsl_config config = stub_config(&b->stub);
    config.backend = TDSL_BACKEND_NKI;
    b->context = make_context(&config);
    b->kernel = make_kernel(b->context, &matmul_info);
    b->stub.script(script);
    form_make(b);
    memcpy(b->a, a, sizeof a);
    memcpy(b->b, x, sizeof x);
    b->args[0] = tdsl_view(TDSL_F32, b->a, 2, square);
    b->args[1] = tdsl_view(TDSL_F32, b->b, 2, square);
    b->args[2] = tdsl_view(TDSL_F32, b->r, 2, square);
}

static void bench_close(Bench *b)
{
    tdsl_context_destroy(b->context);
    stub_neff_close(&b->neff);
    stub_close(&b->stub);
}

static tdsl_status add(Bench *b)
{
    return tdsl_register_nki(b->context, "matmul", &b->form, &b->report);
}

static tdsl_status call(Bench *b)
{
    return tdsl_call(b->kernel, b->args, 3, NULL, &b->report);
}

static void holds(const float *at, float w, float x, float y, float z)
{
    assert_true(at[0] == w && at[1] == x && at[2] == y && at[3] == z);
}

static void parts_run_in_order_over_a_temporary(void **state)
{
    Bench b;
    bench_open(&b, square_text, "");
    expect_ok(add(&b), &b.report);
    for (int i = 0; i < 2; i++) {
        memset(b.r, 0, sizeof b.r);
        expect_ok(call(&b), &b.report);
        holds(b.r, 3, 5, 7, 11); /* [[1,2],[3,4]] [[0,1],[1,1]]^2 */
        assert_int_equal(b.report.device_writes, 2);
        assert_int_equal(b.report.device_reads, 1);
    }
    assert_int_equal(b.stub.calls_of("nrt_load"), 2);
    assert_int_equal(b.stub.calls_of("nrt_execute"), 4);
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate"), 4);
    bench_close(&b);
}

static void parts_may_write_a_result_row_by_row(void **state)
{
    Bench b;
    bench_open(&b, row_text, "");
    b.form.n_temporaries = 0;
    for (int p = 0; p < 2; p++) {
        set_operand(&b.operands[p][0], NULL, TDSL_IN, A);
        set_rows(&b.operands[p][0], 2 * p);
        set_operand(&b.operands[p][2], NULL, TDSL_OUT, R);
        set_rows(&b.operands[p][2], 2 * p);
    }
    expect_ok(add(&b), &b.report);
    for (int i = 0; i < 2; i++) {
        memset(b.r, 0, sizeof b.r);
        expect_ok(call(&b), &b.report);
        holds(b.r, 2, 3, 4, 7);
    }
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate"), 3);
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate_slice"), 4);
    expect_ok(tdsl_to_device(b.context, &b.args[2], &b.report), &b.report);
    memset(b.r, 0, sizeof b.r);
    expect_ok(call(&b), &b.report); /* the result's memory is another now: other slices */
    assert_int_equal(b.report.device_reads, 0);
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate_slice"), 8);
    expect_ok(tdsl_from_device(b.context, &b.args[2], &b.report), &b.report);
    holds(b.r, 2, 3, 4, 7);
    tdsl_device_free(b.context, &b.args[2]);
    bench_close(&b);
}

static void a_failing_part_is_named_and_leaves_host_memory_alone(void **state)
{
    static const char *const scripts[] = {"nrt_execute:2=1004", "nrt_tensor_allocate:4=4",
                                          "nrt_load:2=1", "nrt_allocate_tensor_set:4=4"};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        Bench b;
        bench_open(&b, square_text, "");
        expect_ok(add(&b), &b.report);
        b.stub.script(scripts[i]);
        b.r[0] = -7;
        assert_int_not_equal(call(&b), TDSL_OK);
        assert_non_null(strstr(b.report.message, "'matmul'"));
        assert_true(i == 1 || strstr(b.report.message, "part 2 of 2"));
        assert_true(b.r[0] == -7);
        b.stub.script("");
        expect_ok(call(&b), &b.report);
        holds(b.r, 3, 5, 7, 11);
        bench_close(&b);
    }
}

/* Parts with slices, and one result on the device. */
static tdsl_status sliced_call(Bench *b)
{
    tdsl_status status = tdsl_to_device(b->context, &b->args[1], &b->report);
    return status == TDSL_OK ? call(b) : status;
}

static void sliced_form(Bench *b)
{
    b->form.n_temporaries = 0;
    for (int p = 0; p < 2; p++) {
        set_operand(&b->operands[p][0], NULL, TDSL_IN, A);
        set_rows(&b->operands[p][0], 2 * p);
        set_operand(&b->operands[p][2], NULL, TDSL_OUT, R);
        set_rows(&b->operands[p][2], 2 * p);
    }
    expect_ok(add(b), &b->report);
}

static void each_call_of_parts_with_slices_may_fail(void **state)
{
    static const char *const verdicts[] = {"4", "1004", "1202", "nothing"};
    Bench b;
    bench_open(&b, row_text, "");
    sliced_form(&b);
    expect_ok(sliced_call(&b), &b.report);
    long calls = b.stub.calls();
    assert_int_equal(b.stub.calls_of("nrt_tensor_allocate_slice"), 4);
    bench_close(&b);
    for (long i = 1; i <= calls; i++) {
        for (size_t v = 0; v < 4; v++) {
            char script[48];
            (void)snprintf(script, sizeof script, "#%ld=%s", i, verdicts[v]);
            bench_open(&b, row_text, script);
            sliced_form(&b);
            b.r[0] = -7;
            tdsl_status status = sliced_call(&b);
            const char *function = b.stub.call_name(i);
            bool skipped = v == 3 && strstr(function, "allocate") == NULL &&
                           strstr(function, "load") == NULL && strstr(function, "info") == NULL;
            if (!skipped) {
                assert_true(status != TDSL_OK || strstr(function, "free") != NULL ||
                            strcmp(function, "nrt_get_instance_info") == 0);
                assert_true(status == TDSL_OK ? b.r[0] == 2 : b.r[0] == -7);
            }
            tdsl_context_destroy(b.context);
            bool kept = strstr(function, "free") != NULL; /* what the library would not free */
            if (!kept && !skipped && b.stub.misused() + b.stub.live() != 0) {
                print_error("%s=%s: %ld left, %s\n", function, verdicts[v], b.stub.live(),
                            b.stub.misuse());
                fail();
            }
            stub_neff_close(&b.neff);
            assert_int_equal(remove(b.stub.path), 0);
        }
    }
}

static void parts_run_in_the_emulator(void **state)
{
    const char *python = numpy_python();
    Bench b;
    tdsl_report report = TDSL_REPORT_INIT;
    if (python == NULL) {
        print_message("skipped: no Python with NumPy (python3-numpy)\n");
        skip();
        return;
    }
    bench_open(&b, square_text, "");
    tdsl_config config = TDSL_CONFIG_INIT;
    config.ignore_environment = 1;
    config.backend = TDSL_BACKEND_EMULATOR;
    config.emulator = source_file("runtime/nki_emulator/run.py");
    config.python = python;
    tdsl_context *context = make_context(&config);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    for (int p = 0; p < 2; p++) {
        b.parts[p].neff = NULL;
        b.parts[p].program = source_file("tests/runtime/kernels/matmul_2x2.py");
        b.parts[p].function = "matmul";
    }
    expect_ok(tdsl_register_nki(context, "matmul", &b.form, &report), &report);
    expect_ok(tdsl_call(kernel, b.args, 3, NULL, &report), &report);
    assert_int_equal(report.backend, TDSL_BACKEND_EMULATOR);
    holds(b.r, 4, 7, 6, 10); /* that program transposes its first operand */
    tdsl_context_destroy(context);
    bench_close(&b);
}

/* --- what is refused --- */

static void refused(Bench *b, const char *word)
{
    expect_failure(add(b), TDSL_E_ARGUMENT, &b->report, "matmul", word, NULL);
    form_make(b);
    expect_ok(add(b), &b->report); /* the form itself is good */
}

static void operands_out_of_order_or_out_of_range_are_refused(void **state)
{
    static const int64_t below[2] = {2, -1};
    Bench b;
    bench_open(&b, square_text, "");
    b.operands[0][0].tensor = T;
    refused(&b, "written before");
    b.operands[0][0].tensor = R;
    refused(&b, "written before");
    b.operands[1][2].tensor = T;
    refused(&b, "writes what was written");
    b.operands[0][2].tensor = B;
    refused(&b, "only read");
    b.operands[1][0].tensor = 4;
    refused(&b, "names no tensor");
    b.operands[1][0].tensor = -1;
    refused(&b, "names no tensor");
    b.operands[1][0].role = TDSL_INOUT;
    refused(&b, "no role");
    set_rows(&b.operands[1][2], 0);
    refused(&b, "not write all of result 'R'");
    set_rows(&b.operands[1][0], 3);
    refused(&b, "outside");
    set_rows(&b.operands[1][0], -1);
    refused(&b, "outside");
    set_rows(&b.operands[1][0], INT64_MAX);
    refused(&b, "outside");
    set_rows(&b.operands[1][0], 0);
    b.operands[1][0].extents = below;
    refused(&b, "outside");
    set_rows(&b.operands[0][2], 0);
    refused(&b, "not wholly");
    b.operands[1][2].words = 2; /* of f32 */
    refused(&b, "no f64 result");
    b.operands[1][2].words = 1;
    refused(&b, "no f64 result");
    bench_close(&b);
}

static void forms_without_their_tables_are_refused(void **state)
{
    static const int64_t huge[2] = {INT64_MAX, 3};
    Bench b;
    bench_open(&b, square_text, "");
    b.form.n_parts = 0;
    refused(&b, "0 parts");
    b.form.parts = NULL;
    refused(&b, "parts");
    b.form.n_temporaries = -1;
    refused(&b, "temporaries");
    b.form.temporaries = NULL;
    refused(&b, "temporaries");
    b.temporary.name = NULL;
    refused(&b, "temporary");
    b.temporary.dtype = 99;
    refused(&b, "temporary 't'");
    b.temporary.extents = huge;
    refused(&b, "temporary 't'");
    b.parts[1].n_operands = 0;
    refused(&b, "0 operands");
    b.parts[1].neff = NULL;
    refused(&b, "NEFF or a program");
    b.form.version = 77;
    expect_failure(add(&b), TDSL_E_ABI, &b.report, "matmul", "TDSL_NKI_FORM_INIT", NULL);
    bench_close(&b);
}

static void dimensions_may_be_given_by_extents(void **state)
{
    static const int64_t extents[] = {2, 2, 2, 2, 2, 2};
    static const int64_t other[] = {2, 2, 3, 2, 2, 2};
    static const int64_t below[] = {2, -2, 2, 2, 2, 2};
    Bench b;
    bench_open(&b, square_text, "");
    b.form.dims = NULL;
    refused(&b, "'m'");
    b.form.dims = NULL;
    b.form.extents = other;
    b.form.n_extents = 6;
    refused(&b, "'B'");
    b.form.dims = NULL;
    b.form.extents = extents;
    b.form.n_extents = 5;
    refused(&b, "'R'");
    b.form.dims = NULL;
    b.form.extents = below;
    b.form.n_extents = 6;
    refused(&b, "'A'");
    b.form.dims = NULL;
    b.form.extents = extents;
    b.form.n_extents = 7;
    refused(&b, "rank");
    b.form.dims = NULL;
    b.form.extents = extents;
    b.form.n_extents = 6;
    expect_ok(add(&b), &b.report);
    expect_ok(call(&b), &b.report);
    holds(b.r, 3, 5, 7, 11);
    bench_close(&b);
}

static void a_list_of_forms_is_registered_with_its_folder(void **state)
{
    Bench b;
    char path[256];
    char folder[256];
    bench_open(&b, square_text, "");
    file_make(path, b.neff.bytes, b.neff.size);
    memcpy(folder, path, sizeof folder);
    char *slash = strrchr(folder, '/');
    *slash = '\0';
    const tdsl_nki_form *list[3] = {&b.form, &b.form, NULL};
    expect_failure(tdsl_register_nki_all(b.context, NULL, NULL, &b.report), TDSL_E_ARGUMENT,
                   &b.report, "null", NULL, NULL);
    expect_failure(tdsl_register_nki_all(b.context, list, folder, &b.report), TDSL_E_ABI,
                   &b.report, "form 0", "no kernel", NULL);
    b.form.kernel = "nobody";
    expect_failure(tdsl_register_nki_all(b.context, list, folder, &b.report), TDSL_E_NOT_FOUND,
                   &b.report, "nobody", NULL, NULL);
    b.form.kernel = "matmul";
    for (int p = 0; p < 2; p++) {
        b.parts[p].neff = NULL;
        b.parts[p].neff_path = p == 0 ? slash + 1 : path; /* relative, absolute */
    }
    expect_ok(tdsl_register_nki_all(b.context, list, folder, &b.report), &b.report);
    expect_ok(call(&b), &b.report);
    holds(b.r, 3, 5, 7, 11);
    expect_ok(tdsl_register_nki_all(b.context, list, "/nonexistent", &b.report), &b.report);
    expect_failure(call(&b), TDSL_E_NEFF, &b.report, "matmul", "/nonexistent/", "missing");
    assert_int_equal(remove(path), 0);
    bench_close(&b);
}

/* --- memory --- */

static tdsl_status counted_session(Bench *b, Counter *counter)
{
    tdsl_config config = stub_config(&b->stub);
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    config.backend = TDSL_BACKEND_NKI;
    counter_give(counter, &config);
    b->r[0] = -7;
    tdsl_status status = tdsl_context_create(&config, &context, NULL);
    status = status != TDSL_OK ? status : tdsl_register(context, &matmul_info, NULL);
    status = status != TDSL_OK ? status : tdsl_register_nki(context, "matmul", &b->form, NULL);
    status = status != TDSL_OK ? status : tdsl_find(context, "matmul", &kernel, NULL);
    for (int i = 0; status == TDSL_OK && i < 2; i++) {
        status = tdsl_call(kernel, b->args, 3, NULL, NULL);
        assert_true(status == TDSL_OK ? b->r[0] == 3 : i > 0 || b->r[0] == -7);
    }
    tdsl_context_destroy(context);
    return status;
}

static void parts_run_out_of_memory_anywhere_and_leak_nothing(void **state)
{
    Bench b;
    tdsl_status status = TDSL_E_MEMORY;
    long i = 0;
    bench_open(&b, square_text, "");
    for (; status != TDSL_OK; i++) {
        Counter counter = {.fail_at = i};
        status = counted_session(&b, &counter);
        assert_true(status == TDSL_OK || status == TDSL_E_MEMORY);
        assert_int_equal(counter.live, 0);
        assert_int_equal(b.stub.live(), 0);
    }
    assert_in_range(i, 25, 80);
    bench_close(&b);
}

/* --- targets --- */

static void a_form_for_another_target_than_the_devices_is_not_loaded(void **state)
{
    Bench b;
    bench_open(&b, square_text, "family=3");
    expect_ok(add(&b), &b.report);
    b.r[0] = -7;
    expect_failure(call(&b), TDSL_E_TARGET, &b.report, "matmul", "made for trn2",
                   "device is a trn1");
    assert_true(b.r[0] == -7);
    assert_int_equal(b.stub.calls_of("nrt_load"), 0);
    b.form.target = "trn1";
    expect_ok(add(&b), &b.report);
    b.form.target = "trn3";
    expect_ok(add(&b), &b.report); /* the later of three: not this device's */
    expect_ok(call(&b), &b.report);
    holds(b.r, 3, 5, 7, 11);
    expect_ok(tdsl_dispatch_explain(b.kernel, b.args, 3, NULL, &b.report), &b.report);
    bench_close(&b);
}

static void each_family_takes_its_targets_forms(void **state)
{
    static const struct {
        int family;
        const char *target; /* null: nobody knows, so any is tried */
    } rows[] = {{2, "trn1"},  {4, "trn1"},  {5, "trn2"},  {6, "trn2"}, {7, "trn1"}, {8, "trn2"},
                {13, "trn2"}, {14, "trn3"}, {15, "trn3"}, {0, NULL},   {1, NULL},   {99, NULL}};
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t t = 0; t < 3; t++) {
            Bench b;
            char script[32];
            (void)snprintf(script, sizeof script, "family=%d", rows[i].family);
            bench_open(&b, square_text, script);
            b.form.target = targets[t];
            expect_ok(add(&b), &b.report);
            bool fits = rows[i].target == NULL || strcmp(rows[i].target, targets[t]) == 0;
            assert_int_equal(call(&b), fits ? TDSL_OK : TDSL_E_TARGET);
            bench_close(&b);
        }
    }
}

/* A bench whose libnrt lacks a symbol. */
static void bench_open_without(Bench *b, const char *symbol, const char *text)
{
    memset(b, 0, sizeof *b);
    bench_open(b, text, "");
    tdsl_context_destroy(b->context);
    stub_close(&b->stub);
    stub_open(&b->stub, symbol);
    tdsl_config config = stub_config(&b->stub);
    config.backend = TDSL_BACKEND_NKI;
    b->context = make_context(&config);
    b->kernel = make_kernel(b->context, &matmul_info);
}

static void a_library_that_cannot_say_what_it_runs_on_is_used(void **state)
{
    Bench b;
    bench_open_without(&b, "nrt_get_instance_info", square_text);
    b.form.target = "trn3";
    expect_ok(add(&b), &b.report);
    expect_ok(call(&b), &b.report);
    holds(b.r, 3, 5, 7, 11);
    bench_close(&b);
}

static void a_library_without_slices_runs_all_but_them(void **state)
{
    Bench b;
    bench_open_without(&b, "nrt_tensor_allocate_slice", row_text);
    sliced_form(&b);
    expect_failure(call(&b), TDSL_E_NO_SYMBOL, &b.report, "matmul", "part 1 of 2",
                   "nrt_tensor_allocate_slice");
    bench_close(&b);
}

TESTS(TEST(parts_run_in_order_over_a_temporary), TEST(parts_may_write_a_result_row_by_row),
      TEST(a_failing_part_is_named_and_leaves_host_memory_alone),
      TEST(each_call_of_parts_with_slices_may_fail), TEST(parts_run_in_the_emulator),
      TEST(operands_out_of_order_or_out_of_range_are_refused),
      TEST(forms_without_their_tables_are_refused), TEST(dimensions_may_be_given_by_extents),
      TEST(a_list_of_forms_is_registered_with_its_folder),
      TEST(parts_run_out_of_memory_anywhere_and_leak_nothing),
      TEST(a_form_for_another_target_than_the_devices_is_not_loaded),
      TEST(each_family_takes_its_targets_forms),
      TEST(a_library_without_slices_runs_all_but_them),
      TEST(a_library_that_cannot_say_what_it_runs_on_is_used))
