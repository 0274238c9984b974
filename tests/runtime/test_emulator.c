/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator as a backend: its command line, its answers good and bad, and nothing left in the folder
 * for temporary files. Most tests put a shell script in the emulator's place; the last ones run the real
 * one, and are skipped with the reason where there is no NumPy. */
#include "support_stub.h"
#include "support/places.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMULATOR source_file("runtime/nki_emulator/run.py")
#define PROGRAM  source_file("tests/runtime/kernels/matmul_2x2.py")

static const int64_t square[2] = {2, 2};
static const int64_t square_dims[3] = {2, 2, 2};

typedef struct Bench {
    char folder[128];
    char script[256];
    tdsl_context *context;
    tdsl_kernel *kernel;
    tdsl_report report;
    float a[4]; /* symmetric: the program takes A transposed */
    float b[4];
    float r[4];
    tdsl_tensor args[3];
} Bench;

/* Registers a program as a form of `matmul`. */
static void add_form(tdsl_context *context, const char *program, tdsl_report *report)
{
    tdsl_nki_form form = TDSL_NKI_FORM_INIT;
    tdsl_nki_part part = TDSL_NKI_PART_INIT;
    form.parts = &part;
    form.n_parts = 1;
    form.target = "trn2";
    form.dims = square_dims;
    part.program = program;
    expect_ok(tdsl_register_nki(context, "matmul", &form, report), report);
}

/* A shell script in the emulator's place; null: the real one. */
static void bench_open(Bench *b, const char *script, const char *python, int64_t timeout_ms)
{
    static const float a[4] = {1, 2, 2, 5};
    static const float x[4] = {1, 10, 100, 1000};
    memset(b, 0, sizeof *b);
    b->report = (tdsl_report)TDSL_REPORT_INIT;
    (void)snprintf(b->folder, sizeof b->folder, "/tmp/tdsl-test-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    file_make(b->script, script != NULL ? script : "", script != NULL ? strlen(script) : 0);
    assert_int_equal(setenv("TMPDIR", b->folder, 1), 0);
    tdsl_config config = TDSL_CONFIG_INIT;
    config.backend = TDSL_BACKEND_EMULATOR;
    config.emulator = script != NULL ? b->script : EMULATOR;
    config.python = python;
    config.device_timeout_ms = timeout_ms;
    b->context = make_context(&config);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    b->kernel = make_kernel(b->context, &matmul_info);
    add_form(b->context, PROGRAM, &b->report);
    memcpy(b->a, a, sizeof a);
    memcpy(b->b, x, sizeof x);
    b->args[0] = tdsl_view(TDSL_F32, b->a, 2, square);
    b->args[1] = tdsl_view(TDSL_F32, b->b, 2, square);
    b->args[2] = tdsl_view(TDSL_F32, b->r, 2, square);
}

/* The folder for temporary files must be empty. */
static void bench_close(Bench *b)
{
    tdsl_context_destroy(b->context);
    assert_int_equal(unlink(b->script), 0);
    assert_int_equal(rmdir(b->folder), 0);
}

static tdsl_status bench_call(Bench *b)
{
    memset(b->r, 0, sizeof b->r);
    return tdsl_call(b->kernel, b->args, 3, NULL, &b->report);
}

static void fails(const char *script, const char *python, int64_t timeout_ms,
                  tdsl_status status, const char *word)
{
    Bench b;
    bench_open(&b, script, python, timeout_ms);
    expect_failure(bench_call(&b), status, &b.report, "matmul", "emulator", word);
    assert_true(b.r[0] == 0 && b.r[3] == 0);
    bench_close(&b);
}

/* Answers with the first input: the arguments are PROGRAM --function F --target T --in A --in B --out R */
static const char copy_script[] =
    "test \"$2 $3 $4 $5\" = '--function matmul --target trn2' || exit 9\n"
    "test \"$6 $8 ${10}\" = '--in --in --out' || exit 9\n"
    "test $# = 11 && test -f \"$1\" && cp \"$7\" \"${11}\"\n";

static void the_command_line_and_the_arrays_are_right(void **state)
{
    Bench b;
    bench_open(&b, copy_script, "/bin/sh", 0);
    expect_ok(bench_call(&b), &b.report);
    assert_int_equal(b.report.backend, TDSL_BACKEND_EMULATOR);
    assert_int_equal(b.report.reason, TDSL_REASON_FORCED);
    assert_true(b.r[0] == 1 && b.r[1] == 2 && b.r[2] == 2 && b.r[3] == 5);
    bench_close(&b);
}

static const tdsl_extent pair_axis[] = {{-1, 0, 2}};
static const tdsl_arg_info pair_args[] = {
    {"s", TDSL_SCALAR, TDSL_C64, 0, 0, NULL, NULL, 0},
    {"X", TDSL_IN, TDSL_C64, 1, 0, pair_axis, NULL, 0},
    {"R", TDSL_OUT, TDSL_C64, 1, 0, pair_axis, NULL, 0},
};

static uint64_t pair_madds(const int64_t *dims)
{
    (void)dims;
    return 2;
}

static const tdsl_kernel_info pair_info = {
    TDSL_ABI_HEAD, "pair",     "test.tdsl", "kernel pair", "00", 0,    3, NULL, pair_args,
    NULL,          pair_madds, NULL,        NULL,          NULL, NULL, 0, 0,    NULL,
};

static void complex_numbers_travel_as_pairs_and_scalars_as_one_by_one(void **state)
{
    static const char script[] = "head -c 128 \"$7\" | grep -q \"'<f4'.*(1,2,)\" || exit 7\n"
                                 "head -c 128 \"$9\" | grep -q \"'<f4'.*(2,2,)\" || exit 8\n"
                                 "cp \"$9\" \"${11}\"\n";
    static const int64_t two[1] = {2};
    float s[2] = {1, 2};
    float x[4] = {3, 4, 5, 6};
    float r[4] = {0};
    Bench b;
    bench_open(&b, script, "/bin/sh", 0);
    tdsl_kernel *kernel = make_kernel(b.context, &pair_info);
    tdsl_nki_form form = TDSL_NKI_FORM_INIT;
    tdsl_nki_part part = TDSL_NKI_PART_INIT;
    form.parts = &part;
    form.n_parts = 1;
    form.target = "trn2";
    part.program = PROGRAM;
    expect_ok(tdsl_register_nki(b.context, "pair", &form, &b.report), &b.report);
    tdsl_tensor args[3] = {tdsl_view(TDSL_C64, s, 0, NULL), tdsl_view(TDSL_C64, x, 1, two),
                           tdsl_view(TDSL_C64, r, 1, two)};
    expect_ok(tdsl_call(kernel, args, 3, NULL, &b.report), &b.report);
    assert_memory_equal(r, x, sizeof r);
    bench_close(&b);
}

static void its_complaint_is_in_the_message(void **state)
{
    fails("echo 'line 7: rule M9: accumulate onto memset' >&2; exit 1", "/bin/sh", 0,
          TDSL_E_DEVICE, "exit status 1: line 7: rule M9");
    fails("echo 'array does not fit' >&2; exit 2", "/bin/sh", 0, TDSL_E_SHAPE, "does not fit");
    fails("exit 3", "/bin/sh", 0, TDSL_E_DEVICE, "exit status 3");
    fails("i=0; while [ $i -lt 2000 ]; do echo a line of many >&2; i=$((i+1)); done\n"
          "echo the end >&2; exit 1",
          "/bin/sh", 0, TDSL_E_DEVICE, "the end");
}

static void results_that_are_none_are_refused(void **state)
{
    fails("exit 0", "/bin/sh", 0, TDSL_E_DEVICE, "left no result");
    fails("echo nothing > ${11}", "/bin/sh", 0, TDSL_E_DEVICE, "another element type");
    fails("head -c 100 $7 > ${11}", "/bin/sh", 0, TDSL_E_DEVICE, "");
    fails("head -c 140 $7 > ${11}", "/bin/sh", 0, TDSL_E_DEVICE, "16 bytes");
    fails("cat $7 $7 > ${11}", "/bin/sh", 0, TDSL_E_DEVICE, "16 bytes");
    fails("sed s/f4/f8/ $7 > ${11}", "/bin/sh", 0, TDSL_E_DEVICE, "another element type");
}

static void an_emulator_that_hangs_or_dies_is_a_status(void **state)
{
    fails("sleep 600 & wait", "/bin/sh", 100, TDSL_E_TIMEOUT, "100 ms");
    fails("kill -9 $$", "/bin/sh", 0, TDSL_E_DEVICE, "signal 9");
}

static void an_emulator_that_is_not_there_is_a_status(void **state)
{
    Bench b;
    fails("exit 0", "/nonexistent/python3", 0, TDSL_E_NO_LIBRARY, "/nonexistent/python3");
    bench_open(&b, "exit 0", "/bin/sh", 0);
    tdsl_config config = TDSL_CONFIG_INIT;
    config.backend = TDSL_BACKEND_EMULATOR;
    config.emulator = "/nonexistent/run.py";
    tdsl_context *context = make_context(&config);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    add_form(context, PROGRAM, &b.report);
    expect_failure(tdsl_call(kernel, b.args, 3, NULL, &b.report), TDSL_E_NO_LIBRARY, &b.report,
                   "matmul", "/nonexistent/run.py", "TDSL_NKI_EMULATOR");
    tdsl_context_destroy(context);
    add_form(b.context, "/nonexistent/kernel.py", &b.report); /* the later form is used */
    expect_failure(bench_call(&b), TDSL_E_NEFF, &b.report, "matmul", "/nonexistent/kernel.py",
                   NULL);
    bench_close(&b);
}

static void a_folder_for_arrays_that_is_not_there_is_a_status(void **state)
{
    Bench b;
    bench_open(&b, copy_script, "/bin/sh", 0);
    assert_int_equal(rmdir(b.folder), 0);
    expect_failure(bench_call(&b), TDSL_E_DEVICE, &b.report, "matmul", "TMPDIR", b.folder);
    assert_int_equal(mkdir(b.folder, 0700), 0);
    expect_ok(bench_call(&b), &b.report);
    bench_close(&b);
}

static void the_simulator_takes_the_devices_place(void **state)
{
    Bench b;
    bench_open(&b, copy_script, "/bin/sh", 0);
    tdsl_config config = TDSL_CONFIG_INIT;
    config.emulator = b.script;
    config.python = "/bin/sh";
    config.min_nki_flops = 16;
    assert_int_equal(setenv("TDSL_USE_SIMULATOR", "1", 1), 0);
    tdsl_context *context = make_context(&config);
    assert_int_equal(unsetenv("TDSL_USE_SIMULATOR"), 0);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    add_form(context, PROGRAM, &b.report);
    expect_ok(tdsl_call(kernel, b.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.report.backend, TDSL_BACKEND_EMULATOR);
    assert_int_equal(b.report.reason, TDSL_REASON_ABOVE_THRESHOLD);
    tdsl_context_destroy(context);
    bench_close(&b);
}

static void device_tensors_are_the_emulators_too(void **state)
{
    Bench b;
    bench_open(&b, copy_script, "/bin/sh", 0);
    expect_ok(tdsl_to_device(b.context, &b.args[0], &b.report), &b.report);
    expect_ok(tdsl_to_device(b.context, &b.args[2], &b.report), &b.report);
    expect_ok(bench_call(&b), &b.report);
    assert_int_equal(b.report.device_writes, 1);
    assert_int_equal(b.report.device_reads, 0);
    assert_true(b.r[3] == 0);
    expect_ok(tdsl_from_device(b.context, &b.args[2], &b.report), &b.report);
    assert_true(b.r[3] == 5);
    bench_close(&b);
}

/* --- the real one --- */

static bool real_emulator(const char **python)
{
    *python = numpy_python();
    if (*python == NULL || access(EMULATOR, R_OK) != 0) {
        print_message("skipped: %s\n", *python == NULL ? "no Python with NumPy (python3-numpy)"
                                                       : "the emulator is not there");
        return false;
    }
    return true;
}

static void the_emulator_runs_a_printed_program(void **state)
{
    const char *python = NULL;
    Bench b;
    if (!real_emulator(&python)) {
        skip();
        return;
    }
    bench_open(&b, NULL, python, 0);
    expect_ok(bench_call(&b), &b.report);
    assert_true(b.r[0] == 201 && b.r[1] == 2010 && b.r[2] == 502 && b.r[3] == 5020);
    bench_close(&b);
}

static void the_stub_runs_a_printed_program_through_the_emulator(void **state)
{
    const char *python = NULL;
    char text[4096];
    Bench b;
    Stub stub;
    StubNeff neff;
    if (!real_emulator(&python)) {
        skip();
        return;
    }
    bench_open(&b, NULL, python, 0);
    stub_open(&stub, NULL);
    (void)snprintf(text, sizeof text,
                   "program\temulator\t%s\t%s\t%s\tmatmul\ttrn2\ninput\tA\t10\t2\t2\n"
                   "input\tB\t10\t2\t2\noutput\toutput_0\t10\t2\t2\n",
                   python, EMULATOR, PROGRAM);
    stub_neff_open(&neff, text, square_dims);
    tdsl_config config = stub_config(&stub);
    config.backend = TDSL_BACKEND_NKI;
    tdsl_context *context = make_context(&config);
    tdsl_kernel *kernel = make_kernel(context, &matmul_info);
    expect_ok(tdsl_register_nki(context, "matmul", &neff.form, &b.report), &b.report);
    expect_ok(tdsl_call(kernel, b.args, 3, NULL, &b.report), &b.report);
    assert_int_equal(b.report.backend, TDSL_BACKEND_NKI);
    assert_true(b.r[0] == 201 && b.r[1] == 2010 && b.r[2] == 502 && b.r[3] == 5020);
    tdsl_context_destroy(context);
    stub_neff_close(&neff);
    stub_close(&stub);
    bench_close(&b);
}

TESTS(TEST(the_command_line_and_the_arrays_are_right),
      TEST(complex_numbers_travel_as_pairs_and_scalars_as_one_by_one),
      TEST(its_complaint_is_in_the_message), TEST(results_that_are_none_are_refused),
      TEST(an_emulator_that_hangs_or_dies_is_a_status),
      TEST(an_emulator_that_is_not_there_is_a_status),
      TEST(a_folder_for_arrays_that_is_not_there_is_a_status),
      TEST(the_simulator_takes_the_devices_place), TEST(device_tensors_are_the_emulators_too),
      TEST(the_emulator_runs_a_printed_program),
      TEST(the_stub_runs_a_printed_program_through_the_emulator))
