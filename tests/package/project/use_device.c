/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in two forms, registered with one call, and run wherever TDSL_BACKEND says. */
#include <stdio.h>

#include "device_register.h"

static const int64_t shape_a[2] = {6, 5}, shape_b[2] = {5, 4}, shape_c[2] = {6, 4};

int main(void)
{
    static float a[30], b[20], c[24], r[6];
    float s = 3, sum = 0;
    tdsl_context *context = NULL;
    tdsl_kernel *product = NULL, *rows = NULL;
    tdsl_report report = TDSL_REPORT_INIT;
    for (int i = 0; i < 30; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i % 20] = (float)(i % 5);
    }
    tdsl_tensor first[3] = {tdsl_view(TDSL_F32, a, 2, shape_a),
                            tdsl_view(TDSL_F32, b, 2, shape_b),
                            tdsl_view(TDSL_F32, c, 2, shape_c)};
    tdsl_tensor second[3] = {tdsl_view(TDSL_F32, &s, 0, NULL),
                             tdsl_view(TDSL_F32, a, 2, shape_a),
                             tdsl_view(TDSL_F32, r, 1, shape_a)};
    if (tdsl_context_create(NULL, &context, &report) != TDSL_OK ||
        device_register(context, &report) != TDSL_OK ||
        tdsl_find(context, "product", &product, &report) != TDSL_OK ||
        tdsl_find(context, "scaled_rows", &rows, &report) != TDSL_OK ||
        tdsl_call(rows, second, 3, NULL, &report) != TDSL_OK ||
        tdsl_call(product, first, 3, NULL, &report) != TDSL_OK) {
        printf("%s\n", report.message);
        return 1;
    }
    for (int i = 0; i < 24; i++) {
        sum += (float)(i + 1) * c[i];
    }
    for (int i = 0; i < 6; i++) {
        sum += (float)(i + 1) * r[i];
    }
    printf("%g on %s\n", (double)sum, tdsl_backend_name(report.backend));
    tdsl_context_destroy(context);
    return 0;
}
