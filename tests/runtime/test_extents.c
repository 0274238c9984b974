/* SPDX-License-Identifier: Apache-2.0 */
/* Extents that a table computes from open dimensions: what they say of dimensions, what is refused and in which words, and tables
 * that make no sense. */
#include "check.h"

static int64_t seen[3]; /* what the C form was called with */
static int n_calls;

static tdsl_status note(const int64_t *dims, void *const *args, void *workspace, size_t bytes)
{
    (void)args;
    (void)workspace;
    (void)bytes;
    memcpy(seen, dims, sizeof seen);
    n_calls++;
    return TDSL_OK;
}

static size_t no_bytes(const int64_t *dims)
{
    (void)dims;
    return 0;
}

static uint64_t no_work(const int64_t *dims)
{
    (void)dims;
    return 0;
}

/* Of n, k, h: 3: n + k - 1, 4: h*k, 5: h*k - 2, 6: (n + 2*h - k)/2, 7: n - 3, 8: 2*h - k */
static const tdsl_dim_info dims[] = {{"n", 8}, {"k", 8}, {"h", 8}};
static const tdsl_term both[] = {{0, 1}, {1, 1}}, product[] = {{2, 1}, {1, 1}},
                       less[] = {{4, 1}}, window[] = {{0, 1}, {2, 2}, {1, -1}},
                       shorter[] = {{0, 1}}, difference[] = {{2, 2}, {1, -1}};
static const tdsl_computed computed[] = {{-1, 1, 0, 2, both},    {1, 1, 1, 2, product},
                                         {-2, 1, 0, 1, less},    {0, 2, 0, 3, window},
                                         {-3, 1, 0, 1, shorter}, {0, 1, 0, 2, difference}};

/* A kernel whose arguments are vectors of these extents. */
typedef struct Vectors {
    tdsl_extent extents[4];
    tdsl_arg_info args[4];
    tdsl_kernel_info info;
} Vectors;

static const tdsl_kernel_info *vectors(Vectors *v, int n, const int32_t *dim,
                                       int32_t n_computed)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    for (int i = 0; i < n; i++) {
        v->extents[i] = (tdsl_extent){dim[i], 0, 0};
        v->args[i] = (tdsl_arg_info){
            names[i], i == n - 1 ? TDSL_OUT : TDSL_IN, TDSL_F64, 1, 0, &v->extents[i], NULL, 0};
    }
    const tdsl_kernel_info info = {TDSL_ABI_HEAD,
                                   "vectors",
                                   "test.tdsl",
                                   "kernel vectors",
                                   "00",
                                   3,
                                   n,
                                   dims,
                                   v->args,
                                   no_bytes,
                                   no_work,
                                   note,
                                   NULL,
                                   NULL,
                                   computed,
                                   n_computed,
                                   0,
                                   NULL};
    v->info = info;
    return &v->info;
}

typedef struct Case {
    int n;
    int32_t dim[4];
    int64_t extent[4];
    int32_t n_computed;
    const int64_t *given; /* dims of the options, or null */
    tdsl_status status;
    int64_t want[3];     /* where it is TDSL_OK */
    const char *message; /* else */
} Case;

static void called(const Case *c)
{
    Vectors v;
    double data[4][64] = {{0}};
    int64_t shape[4][1];
    tdsl_tensor args[4];
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_call_options options = TDSL_CALL_OPTIONS_INIT;
    tdsl_context *context = make_context(NULL);
    tdsl_kernel *kernel = make_kernel(context, vectors(&v, c->n, c->dim, c->n_computed));
    for (int i = 0; i < c->n; i++) {
        shape[i][0] = c->extent[i];
        args[i] = tdsl_view(TDSL_F64, data[i], 1, shape[i]);
    }
    options.dims = c->given;
    n_calls = 0;
    tdsl_status status = tdsl_call(kernel, args, (size_t)c->n, &options, &report);
    if (c->status != TDSL_OK) {
        expect_failure(status, c->status, &report, c->message, "vectors", NULL);
        assert_int_equal(n_calls, 0);
    } else {
        expect_ok(status, &report);
        assert_int_equal(n_calls, 1);
        assert_memory_equal(seen, c->want, sizeof seen);
    }
    tdsl_context_destroy(context);
}

static void dimensions_follow_from_sums_and_products(void **state)
{
    const Case cases[] = {
        {4, {1, 3, 2, 0}, {3, 9, 5, 7}, 1, NULL, TDSL_OK, {7, 3, 5}, NULL},
        {3, {1, 3, 2}, {3, 9, 5}, 1, NULL, TDSL_OK, {7, 3, 5}, NULL},
        {3, {3, 1, 2}, {9, 3, 5}, 1, NULL, TDSL_OK, {7, 3, 5}, NULL},
        {3, {3, 4, 2}, {9, 15, 5}, 2, NULL, TDSL_OK, {7, 3, 5}, NULL}, /* k from h*k, then n */
        {3, {3, 5, 1}, {9, 13, 3}, 3, NULL, TDSL_OK, {7, 3, 5}, NULL}, /* h from h*k - 2 */
        {4, {6, 0, 1, 2}, {7, 7, 3, 5}, 4, NULL, TDSL_OK, {7, 3, 5}, NULL}, /* only checked */
        {3, {0, 1, 2}, {7, 3, 5}, 5, NULL, TDSL_OK, {7, 3, 5}, NULL},
        {3, {7, 1, 2}, {0, 3, 5}, 5, NULL, TDSL_OK, {3, 3, 5}, NULL},
        {3,
         {0, 2, 8},
         {7, 5, 7},
         6,
         NULL,
         TDSL_OK,
         {7, 3, 5},
         NULL}, /* a coefficient below 0 */
        {3, {0, 1, 8}, {7, 3, 7}, 6, NULL, TDSL_OK, {7, 3, 5}, NULL},
        {3, {3, 4, 6}, {9, 15, 7}, 4, (const int64_t[]){7, 3, 5}, TDSL_OK, {7, 3, 5}, NULL},
        {3, {4, 2, 0}, {0, 0, 4}, 2, (const int64_t[]){4, 9, 0}, TDSL_OK, {4, 9, 0}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        called(&cases[i]);
    }
}

static void what_disagrees_is_refused_with_both_numbers(void **state)
{
    const int64_t given[] = {7, 3, 5}, short_ones[] = {2, 3, 5}, most[] = {INT64_MAX, 1, 1};
    const Case cases[] = {
        {4,
         {1, 3, 2, 0},
         {3, 7, 5, 6},
         1,
         NULL,
         TDSL_E_SHAPE,
         {0},
         "'B': extent of axis 0 is 7, the kernel's n + k - 1 is 8"},
        {4,
         {3, 1, 2, 3},
         {8, 3, 5, 7},
         1,
         NULL,
         TDSL_E_SHAPE,
         {0},
         "'D': extent of axis 0 is 7, the kernel's n + k - 1 is 8"},
        {3,
         {0, 3, 2},
         {7, 4, 5},
         1,
         NULL,
         TDSL_E_SHAPE,
         {0},
         "'B': extent of axis 0 is 4, which the kernel's n + k - 1 cannot be"},
        {3,
         {0, 4, 2},
         {7, 4, 5},
         2,
         NULL,
         TDSL_E_SHAPE,
         {0},
         "'B': extent of axis 0 is 4, which the kernel's h*k cannot be"},
        {3,
         {0, 8, 1},
         {7, 4, 3},
         6,
         NULL,
         TDSL_E_SHAPE,
         {0},
         "which the kernel's 2*h - k cannot be"},
        {3, {0, 5, 2}, {7, 4, 5}, 3, NULL, TDSL_E_SHAPE, {0}, "its extent h*k would be 6"},
        {4,
         {0, 1, 2, 6},
         {7, 3, 5, 8},
         4,
         NULL,
         TDSL_E_SHAPE,
         {0},
         "'D': extent of axis 0 is 8, the kernel's (n + 2*h - k)/2 is 7"},
        {3,
         {0, 1, 2},
         {2, 3, 5},
         5,
         NULL,
         TDSL_E_SHAPE,
         {0},
         "its extent n - 3 would be below 0"},
        {3,
         {3, 1, 2},
         {9, 3, 5},
         5,
         short_ones,
         TDSL_E_SHAPE,
         {0},
         "its extent n - 3 would be below 0"},
        {3,
         {3, 1, 2},
         {8, 3, 5},
         5,
         given,
         TDSL_E_SHAPE,
         {0},
         "'A': extent of axis 0 is 8, the kernel's n + k - 1 is 9"},
        {3,
         {3, 1, 2},
         {8, 1, 1},
         1,
         most,
         TDSL_E_OVERFLOW,
         {0},
         "its extent n + k - 1 does not fit"},
        {2, {3, 2}, {9, 5}, 1, NULL, TDSL_E_SHAPE, {0}, "dimension 'n' does not follow"},
        {3, {6, 1, 2}, {7, 3, 5}, 4, NULL, TDSL_E_SHAPE, {0}, "dimension 'n' does not follow"},
        {3, {4, 2, 0}, {0, 0, 4}, 2, NULL, TDSL_E_SHAPE, {0}, "dimension 'k' does not follow"},
        {3, {0, 2, 1}, {7, 5, -1}, 1, NULL, TDSL_E_SHAPE, {0}, "below 0"},
        {3, {0, 1, 3}, {7, 3, -1}, 1, NULL, TDSL_E_SHAPE, {0}, "below 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        called(&cases[i]);
    }
}

/* Longer than this build's, for a table of a program that was built later. */
typedef struct Longer {
    tdsl_computed computed;
    uint64_t more[3];
} Longer;

static void a_table_with_longer_rows_is_copied(void **state)
{
    Vectors v;
    Longer rows[2];
    double data[3][16] = {{0}};
    static const int64_t shape[3][1] = {{9}, {15}, {5}};
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = make_context(NULL);
    (void)vectors(&v, 3, (const int32_t[]){3, 4, 2}, 2);
    memset(rows, 0x55, sizeof rows);
    rows[0].computed = computed[0];
    rows[1].computed = computed[1];
    v.info.computed = &rows[0].computed;
    v.info.computed_size = sizeof rows[0];
    tdsl_kernel *kernel = make_kernel(context, &v.info);
    tdsl_tensor args[3];
    for (int i = 0; i < 3; i++) {
        args[i] = tdsl_view(TDSL_F64, data[i], 1, shape[i]);
    }
    expect_ok(tdsl_call(kernel, args, 3, NULL, &report), &report);
    assert_true(seen[0] == 7 && seen[1] == 3 && seen[2] == 5);
    tdsl_context_destroy(context);
}

static void refused(const tdsl_kernel_info *info, const char *word)
{
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = make_context(NULL);
    expect_failure(tdsl_register(context, info, &report), TDSL_E_ABI, &report, word, NULL,
                   NULL);
    tdsl_context_destroy(context);
}

static void tables_that_make_no_sense_are_refused(void **state)
{
    Vectors v;
    const int32_t dim[] = {3, 1, 2};
    static const tdsl_term itself[] = {{3, 1}}, before[] = {{-1, 1}};
    const tdsl_computed wrong[] = {{0, 1, 0, 1, itself},  {0, 1, 0, 1, before},
                                   {0, 0, 0, 2, both},    {0, -1, 0, 2, both},
                                   {0, 1, 0, 2, NULL},    {0, 1, 0, -1, both},
                                   {1, 2, 1, 2, product}, {0, 1, 0, 500, both}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)vectors(&v, 3, dim, 1);
        v.info.computed = &wrong[i];
        refused(&v.info, "computed extent 0");
    }
    (void)vectors(&v, 3, dim, 0); /* an argument names one that there is not */
    refused(&v.info, "axis 0 names no dimension");
    (void)vectors(&v, 3, dim, -1);
    refused(&v.info, "-1 computed extents");
    (void)vectors(&v, 3, dim, 126);
    refused(&v.info, "126 computed extents");
    (void)vectors(&v, 3, dim, 1);
    v.info.computed = NULL;
    refused(&v.info, "computed extents");
    (void)vectors(&v, 3, dim, 1);
    v.info.computed_size = 24;
    refused(&v.info, "computed extents");
    (void)vectors(&v, 3, dim, 1);
    v.info.abi_version = 3;
    refused(&v.info, "ABI version 3");
}

static void a_device_form_is_of_extents_that_fit(void **state)
{
    Vectors v;
    const int64_t good[] = {9, 15, 5}, bad[] = {9, 16, 5}, negative[] = {1, 15, 5};
    const int64_t *const extents[] = {bad, negative, good};
    tdsl_context *context = make_context(NULL);
    tdsl_report report = TDSL_REPORT_INIT;
    (void)make_kernel(context, vectors(&v, 3, (const int32_t[]){3, 4, 2}, 5));
    for (int i = 0; i < 3; i++) {
        tdsl_nki_part part = TDSL_NKI_PART_INIT;
        tdsl_nki_form form = TDSL_NKI_FORM_INIT;
        form.target = "trn2";
        form.extents = extents[i];
        form.n_extents = 3;
        form.parts = &part;
        form.n_parts = 1;
        tdsl_status status = tdsl_register_nki(context, "vectors", &form, &report);
        assert_int_not_equal(status, TDSL_OK); /* its part says nothing */
        assert_true((strstr(report.message, "other extents than its") != NULL) == (i < 2));
    }
    tdsl_context_destroy(context);
}

TESTS(TEST(dimensions_follow_from_sums_and_products),
      TEST(what_disagrees_is_refused_with_both_numbers),
      TEST(a_table_with_longer_rows_is_copied), TEST(tables_that_make_no_sense_are_refused),
      TEST(a_device_form_is_of_extents_that_fit))
