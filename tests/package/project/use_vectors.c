/* SPDX-License-Identifier: Apache-2.0 */
/* Calls kernels with an open extent directly through their headers. */
#include <stdio.h>

#include "norms.h"
#include "vectors.h"

int main(void)
{
    const double x[3] = {1, 2, 3};
    double y[3], s;
    if (scaled(3, x, y, NULL, 0) != TDSL_OK || norm2(3, y, &s, NULL, 0) != TDSL_OK) {
        return 1;
    }
    printf("%g\n", s);
    return 0;
}
