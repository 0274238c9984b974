/* SPDX-License-Identifier: Apache-2.0 */
/* Calls kernels with an open extent directly through their headers, with workspace of the size they say. */
#include <stdio.h>
#include <stdlib.h>

#include "norms.h"
#include "vectors.h"

int main(void)
{
    const double x[3] = {1, 2, 3};
    double y[3], s;
    size_t a = scaled_workspace_bytes(3), b = norm2_workspace_bytes(3);
    size_t bytes = a > b ? a : b;
    void *workspace = malloc(bytes);
    if (scaled(3, x, y, workspace, bytes) != TDSL_OK ||
        norm2(3, y, &s, workspace, bytes) != TDSL_OK) {
        return 1;
    }
    free(workspace);
    printf("%g\n", s);
    return 0;
}
