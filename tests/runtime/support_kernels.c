/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels written by hand in the form the compiler generates, for the runtime's tests. */
#include "support_kernels.h"

static const tdsl_dim_info matmul_dims[] = {{"m", 64}, {"k", 64}, {"n", 64}};
static const tdsl_extent matmul_a[] = {{0, 0, 0}, {1, 0, 0}};
static const tdsl_extent matmul_b[] = {{1, 0, 0}, {2, 0, 0}};
static const tdsl_extent matmul_r[] = {{0, 0, 0}, {2, 0, 0}};
static const tdsl_arg_info matmul_args[] = {
    {"A", TDSL_IN, TDSL_F32, 2, 0, matmul_a, NULL, 0},
    {"B", TDSL_IN, TDSL_F32, 2, 0, matmul_b, NULL, 0},
    {"R", TDSL_OUT, TDSL_F32, 2, 0, matmul_r, NULL, 0},
};

static size_t matmul_workspace(const int64_t *dims)
{
    return (uint64_t)dims[1] > SIZE_MAX / sizeof(float) ? SIZE_MAX
                                                        : (size_t)dims[1] * sizeof(float);
}

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t matmul_madds(const int64_t *dims)
{
    uint64_t mk = saturating_product((uint64_t)dims[0], (uint64_t)dims[1]);
    return saturating_product(mk, (uint64_t)dims[2]);
}

static tdsl_status matmul_call(const int64_t *dims, void *const *args, void *workspace,
                               size_t workspace_bytes)
{
    const float *a = args[0];
    const float *b = args[1];
    float *r = args[2];
    float *column = workspace;
    if (workspace_bytes < matmul_workspace(dims) || (workspace == NULL && dims[1] > 0)) {
        return TDSL_E_WORKSPACE;
    }
    for (int64_t n = 0; n < dims[2]; n++) {
        for (int64_t k = 0; k < dims[1]; k++) {
            column[k] = b[k * dims[2] + n];
        }
        for (int64_t m = 0; m < dims[0]; m++) {
            float sum = 0;
            for (int64_t k = 0; k < dims[1]; k++) {
                sum += a[m * dims[1] + k] * column[k];
            }
            r[m * dims[2] + n] = sum;
        }
    }
    return TDSL_OK;
}

const tdsl_kernel_info matmul_info = {
    TDSL_ABI_HEAD,
    "matmul",
    "test.tdsl",
    "kernel matmul(A[m,k], B[k,n]) -> R[m,n]",
    "00",
    3,
    3,
    matmul_dims,
    matmul_args,
    matmul_workspace,
    matmul_madds,
    matmul_call,
    NULL,
    NULL,
    NULL,
    0,
    0,
    NULL,
};

const tdsl_kernel_info device_only_info = {
    TDSL_ABI_HEAD,
    "device_only",
    "test.tdsl",
    "kernel device_only(A[m,k], B[k,n]) -> R[m,n]",
    "00",
    3,
    3,
    matmul_dims,
    matmul_args,
    NULL,
    matmul_madds,
    NULL,
    NULL,
    NULL,
    NULL,
    0,
    0,
    NULL,
};

static const tdsl_extent small_a[] = {{-1, 0, 2}, {-1, 0, 3}};
static const tdsl_extent small_b[] = {{-1, 0, 3}, {-1, 0, 4}};
static const tdsl_extent small_r[] = {{-1, 0, 2}, {-1, 0, 4}};
static const tdsl_arg_info small_args[] = {
    {"A", TDSL_IN, TDSL_F32, 2, 0, small_a, NULL, 0},
    {"B", TDSL_IN, TDSL_F32, 2, 0, small_b, NULL, 0},
    {"R", TDSL_OUT, TDSL_F32, 2, 0, small_r, NULL, 0},
};

tdsl_status small_direct(const float *a, const float *b, float *r)
{
    for (int m = 0; m < 2; m++) {
        for (int n = 0; n < 4; n++) {
            float sum = 0;
            for (int k = 0; k < 3; k++) {
                sum += a[m * 3 + k] * b[k * 4 + n];
            }
            r[m * 4 + n] = sum;
        }
    }
    return TDSL_OK;
}

static size_t no_workspace(const int64_t *dims)
{
    (void)dims;
    return 0;
}

static uint64_t small_madds(const int64_t *dims)
{
    (void)dims;
    return 24;
}

static tdsl_status small_call(const int64_t *dims, void *const *args, void *workspace,
                              size_t workspace_bytes)
{
    (void)dims;
    (void)workspace;
    (void)workspace_bytes;
    return small_direct(args[0], args[1], args[2]);
}

const tdsl_kernel_info small_info = {
    TDSL_ABI_HEAD,
    "small",
    "test.tdsl",
    "kernel small(A[2,3], B[3,4]) -> R[2,4]",
    "00",
    0,
    3,
    NULL,
    small_args,
    no_workspace,
    small_madds,
    small_call,
    NULL,
    NULL,
    NULL,
    0,
    0,
    NULL,
};

static const tdsl_dim_info update_dims[] = {{"i", 10}};
static const tdsl_extent update_axis[] = {{0, 0, 0}};
static const tdsl_arg_info update_args[] = {
    {"beta", TDSL_SCALAR, TDSL_F64, 0, 0, NULL, NULL, 0},
    {"X", TDSL_IN, TDSL_F64, 1, 0, update_axis, NULL, 0},
    {"C", TDSL_INOUT, TDSL_F64, 1, 0, update_axis, NULL, 0},
};

static uint64_t update_madds(const int64_t *dims)
{
    return (uint64_t)dims[0];
}

static tdsl_status update_call(const int64_t *dims, void *const *args, void *workspace,
                               size_t workspace_bytes)
{
    double beta = *(const double *)args[0];
    const double *x = args[1];
    double *c = args[2];
    (void)workspace;
    (void)workspace_bytes;
    for (int64_t i = 0; i < dims[0]; i++) {
        c[i] = beta * c[i] + x[i];
    }
    return TDSL_OK;
}

const tdsl_kernel_info update_info = {
    TDSL_ABI_HEAD,
    "update",
    "test.tdsl",
    "kernel update(beta, X[i], inout C[i])",
    "00",
    1,
    3,
    update_dims,
    update_args,
    no_workspace,
    update_madds,
    update_call,
    NULL,
    NULL,
    NULL,
    0,
    0,
    NULL,
};
