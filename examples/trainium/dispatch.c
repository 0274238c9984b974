/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel in two forms, C and NKI, called twice through libtdsl: as it decides by itself, and with a threshold below the work. Prints
 * what ran and why.
 *
 *     dispatch NEFF SHA256      libnrt is the one that TDSL_NRT_LIBRARY names */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdsl/tdsl.h>

#include "matmul.h"

enum { N = 256 };

static float A[N * N], B[N * N], C[2][N * N];

static int call_once(const char *neff, const char *digest, int64_t least_flops, float *result)
{
    tdsl_config config = TDSL_CONFIG_INIT;
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_nki_form form = TDSL_NKI_FORM_INIT;
    tdsl_nki_part part = TDSL_NKI_PART_INIT;
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    const int64_t shape[2] = {N, N}, dims[3] = {N, N, N};
    char text[1024];
    config.min_nki_flops = least_flops;
    form.target = "trn2";
    form.dims = dims;
    form.parts = &part;
    form.n_parts = 1;
    part.neff_path = neff;
    part.neff_sha256 = digest;
    tdsl_tensor args[3] = {tdsl_view(TDSL_F32, A, 2, shape), tdsl_view(TDSL_F32, B, 2, shape),
                           tdsl_view(TDSL_F32, result, 2, shape)};
    tdsl_status status = tdsl_context_create(&config, &context, &report);
    if (status == TDSL_OK) {
        status = tdsl_register(context, &matmul_info, &report);
    }
    if (status == TDSL_OK) {
        status = tdsl_register_nki(context, "matmul", &form, &report);
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

int main(int argc, char **argv)
{
    double worst = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: dispatch NEFF SHA256\n");
        return 2;
    }
    for (int i = 0; i < N * N; i++) {
        A[i] = (float)(i % 7 - 3);
        B[i] = (float)(i % 5 - 2);
    }
    printf("by itself (the threshold is 2e9 flops):\n");
    if (call_once(argv[1], argv[2], 0, C[0]) != 0) {
        return 5;
    }
    printf("with the threshold at one flop:\n");
    if (call_once(argv[1], argv[2], 1, C[1]) != 0) {
        return 5;
    }
    for (int i = 0; i < N * N; i++) {
        worst = fmax(worst, fabs((double)C[0][i] - (double)C[1][i]));
    }
    printf("the two results differ by %g\n", worst);
    return worst > 1e-3 ? 5 : 0;
}
