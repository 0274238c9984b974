/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels written by hand in the form the compiler generates, for the runtime's tests. */
#ifndef SUPPORT_KERNELS_H
#define SUPPORT_KERNELS_H

#include "tdsl/tdsl.h"

/* R[m,n] = sum(k) A[m,k] * B[k,n]; f32; m, n, k open; keeps a column of B in its workspace. */
extern const tdsl_kernel_info matmul_info;

/* The same for m = 2, k = 3, n = 4, no workspace. */
extern const tdsl_kernel_info small_info;

/* C[i] = beta * C[i] + X[i]; f64, beta a scalar, C inout; i open. */
extern const tdsl_kernel_info update_info;

/* As matmul, with no C form. */
extern const tdsl_kernel_info device_only_info;

tdsl_status small_direct(const float *a, const float *b, float *r);

#endif
