/* SPDX-License-Identifier: Apache-2.0 */
/* Two libraries with a kernel of one name in one program: the prefix keeps them apart. The runtime knows kernels by the names in
 * their programs. */
#include <stdio.h>

#include "fixed.h"
#include "prefixed_register.h"

int main(void)
{
    float x[4] = {1, 2, 3, 4}, direct = 0, called = 0;
    const double y[4] = {1, 2, 3, 4};
    double other = 0;
    const int64_t extents[1] = {4};
    char workspace[TOTAL_WORKSPACE_BYTES + 1], wide[1 << 16];
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    tdsl_report report = TDSL_REPORT_INIT;
    tdsl_tensor arguments[2] = {tdsl_view(TDSL_F32, x, 1, extents),
                                tdsl_view(TDSL_F32, &called, 0, NULL)};
    if (total(y, &other, workspace, sizeof workspace) != TDSL_OK ||
        my_total_workspace_bytes(4) > sizeof wide ||
        my_total(4, x, &direct, wide, sizeof wide) != TDSL_OK ||
        tdsl_context_create(NULL, &context, &report) != TDSL_OK ||
        prefixed_register(context, &report) != TDSL_OK ||
        tdsl_find(context, "total", &kernel, &report) != TDSL_OK ||
        tdsl_call(kernel, arguments, 2, NULL, &report) != TDSL_OK) {
        printf("%s\n", report.message);
        return 1;
    }
    printf("%g %g %g on %s\n", other, (double)direct, (double)called,
           tdsl_backend_name(report.backend));
    tdsl_context_destroy(context);
    return 0;
}
