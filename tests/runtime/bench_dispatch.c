/* SPDX-License-Identifier: Apache-2.0 */
/* What a call through libtdsl costs above the direct call, on a kernel of 24 multiply-adds,
 * with and without a report. Prints nanoseconds: the best of many rounds, which other work on
 * the machine does not disturb, and the median. Not a test: nothing here fails, except with
 * --limit=N, which ends with 1 when the best overhead with a report is above N ns. */
#include "support_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 101
#define CALLS  20000

static double now(void)
{
    struct timespec t;
    (void)timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static float a[6] = {1, 2, 3, 4, 5, 6};
static float b[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static float r[8];

static tdsl_status (*volatile direct)(const float *, const float *, float *) = small_direct;

static double round_direct(void)
{
    double start = now();
    for (int i = 0; i < CALLS; i++) {
        if (direct(a, b, r) != TDSL_OK) {
            exit(1);
        }
    }
    return (now() - start) / CALLS;
}

static double round_checked(tdsl_kernel *kernel, tdsl_report *report)
{
    static const int64_t shape_a[] = {2, 3};
    static const int64_t shape_b[] = {3, 4};
    static const int64_t shape_r[] = {2, 4};
    double start = now();
    for (int i = 0; i < CALLS; i++) {
        tdsl_tensor args[3] = {tdsl_view(TDSL_F32, a, 2, shape_a),
                               tdsl_view(TDSL_F32, b, 2, shape_b),
                               tdsl_view(TDSL_F32, r, 2, shape_r)};
        if (tdsl_call(kernel, args, 3, NULL, report) != TDSL_OK) {
            exit(1);
        }
    }
    return (now() - start) / CALLS;
}

int main(int argc, char **argv)
{
    static double times[3][ROUNDS];
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    tdsl_report report = TDSL_REPORT_INIT;
    if (tdsl_context_create(NULL, &context, &report) != TDSL_OK ||
        tdsl_register(context, &small_info, &report) != TDSL_OK ||
        tdsl_find(context, "small", &kernel, &report) != TDSL_OK) {
        (void)fprintf(stderr, "%s\n", report.message);
        return 1;
    }
    for (int i = 0; i < ROUNDS; i++) {
        times[0][i] = round_direct();
        times[1][i] = round_checked(kernel, NULL);
        times[2][i] = round_checked(kernel, &report);
    }
    for (int i = 0; i < 3; i++) {
        qsort(times[i], ROUNDS, sizeof(double), compare);
    }
    double with_report = times[2][0] - times[0][0];
    for (int i = 0; i < 2; i++) {
        int at = i == 0 ? 0 : ROUNDS / 2;
        (void)printf(
            "%s of %d rounds: direct call %.1f ns; through libtdsl %.1f ns more, with a "
            "report %.1f ns more\n",
            i == 0 ? "best" : "median", ROUNDS, times[0][at], times[1][at] - times[0][at],
            times[2][at] - times[0][at]);
    }
    tdsl_context_destroy(context);
    if (argc > 1 && strncmp(argv[1], "--limit=", 8) == 0) {
        return with_report > atof(argv[1] + 8);
    }
    return 0;
}
