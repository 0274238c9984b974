/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a kernel of fixed extents by name through the runtime. */
#include <stdio.h>
#include <tdsl/tdsl.h>

#include "fixed.h"

int main(void)
{
    double x[4] = {1, 2, 3, 4}, s = 0;
    const int64_t extents[1] = {4};
    tdsl_context *context = NULL;
    tdsl_kernel *kernel = NULL;
    if (tdsl_context_create(NULL, &context, NULL) != TDSL_OK ||
        tdsl_register(context, &total_info, NULL) != TDSL_OK ||
        tdsl_find(context, "total", &kernel, NULL) != TDSL_OK) {
        return 1;
    }
    tdsl_tensor arguments[2] = {tdsl_view(TDSL_F64, x, 1, extents),
                                tdsl_view(TDSL_F64, &s, 0, NULL)};
    if (tdsl_call(kernel, arguments, 2, NULL, NULL) != TDSL_OK) {
        return 2;
    }
    tdsl_context_destroy(context);
    printf("%g\n", s);
    return 0;
}
