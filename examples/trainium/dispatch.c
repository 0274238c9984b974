/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel in two forms, C and NKI, called twice through libtdsl: as it decides by itself,
 * and with a threshold below the work. Prints what ran and why. The tables of both forms are
 * what tdslc wrote; libnrt is the one that TDSL_NRT_LIBRARY names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdsl/tdsl.h>

#include "matmul.h"

extern const tdsl_nki_form *const kernels_trn2_forms[];

enum { N = 256 };

static float A[N * N], B[N * N], C[2][N * N];

static int call_once(int64_t least_flops, float *result)
{
    tdsl_config config = TDSL_CONFIG_INIT;
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    const int64_t shape[2] = {N, N};
    char text[1024];
    config.min_nki_flops = least_flops;
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, A, 2, shape), tdsl_view(TDSL_F32, B, 2, shape),
                           tdsl_view(TDSL_F32, result, 2, shape)};
    tdsl_status status = tdsl_context_create(&config, &context, &report);
    if (status == TDSL_OK) {
        status = tdsl_register_all(context, matmul_kernels, &report);
    }
    if (status == TDSL_OK) {
        status = tdsl_register_nki_all(context, kernels_trn2_forms, NULL, &report);
    }
    if (status == TDSL_OK) {
        status = tdsl_find(context, "matmul", &kernel, &report);
    }
    if (status == TDSL_OK) {
        status = tdsl_call(kernel, args, 3, NULL, &report);
    }
    (void)tdsl_report_text(&report, text, sizeof text);
    printf("  %s\n", text);
    tdsl_context_destroy(context);
    return status == TDSL_OK ? 0 : 5;
}

int main(void)
{
    double worst = 0;
    for (int i = 0; i < N * N; i++) {
        A[i] = (float)(i % 7 - 3);
        B[i] = (float)(i % 5 - 2);
    }
    printf("by itself (the threshold is 2e9 flops):\n");
    if (call_once(0, C[0]) != 0) {
        return 5;
    }
    printf("with the threshold at one flop:\n");
    if (call_once(1, C[1]) != 0) {
        return 5;
    }
    for (int i = 0; i < N * N; i++) {
        worst = fmax(worst, fabs((double)C[0][i] - (double)C[1][i]));
    }
    printf("the two results differ by %g\n", worst);
    return worst > 1e-3 ? 5 : 0;
}
