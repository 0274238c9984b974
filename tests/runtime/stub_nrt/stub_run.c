/* SPDX-License-Identifier: Apache-2.0 */
/* What a NEFF-shaped test file runs: a program of this file, or the printed NKI program in the emulator,
 * so that the runtime's way to a device is tested with the program the device would get. */
#define _GNU_SOURCE /* mkdtemp */
#include "stub.h"

#include "../../../runtime/src/npy.h"
#include "../../../runtime/src/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* R[m,n] = sum(k) A[m,k] * B[k,n] in f32. */
static NrtStatus run_matmul(const StubModel *model, StubTensor *const *tensors)
{
    const float *a = (const float *)(const void *)tensors[0]->data;
    const float *b = (const float *)(const void *)tensors[1]->data;
    float *r = (float *)(void *)tensors[2]->data;
    uint32_t m = model->args[0].shape[0];
    uint32_t k = model->args[0].shape[1];
    uint32_t n = model->args[1].shape[1];
    for (uint32_t i = 0; i < m; i++) {
        for (uint32_t j = 0; j < n; j++) {
            float sum = 0;
            for (uint32_t l = 0; l < k; l++) {
                sum += a[i * k + l] * b[l * n + j];
            }
            r[i * n + j] = sum;
        }
    }
    return NRT_SUCCESS;
}

/* C[i] = beta * C[i] + X[i] in f32: beta, X, C as inputs, one result, which may be C itself. */
static NrtStatus run_update(const StubModel *model, StubTensor *const *tensors)
{
    const float *beta = (const float *)(const void *)tensors[0]->data;
    const float *x = (const float *)(const void *)tensors[1]->data;
    const float *c = (const float *)(const void *)tensors[2]->data;
    float *r = (float *)(void *)tensors[3]->data;
    for (uint32_t i = 0; i < model->args[1].shape[0]; i++) {
        r[i] = *beta * c[i] + x[i];
    }
    return NRT_SUCCESS;
}

static int32_t tdsl_dtype_of(int32_t dtype)
{
    switch (dtype) {
    case NRT_DTYPE_BFLOAT16:
        return TDSL_BF16;
    case NRT_DTYPE_FLOAT16:
        return TDSL_F16;
    case NRT_DTYPE_INT32:
        return TDSL_I32;
    case NRT_DTYPE_INT64:
        return TDSL_I64;
    case NRT_DTYPE_UINT8:
        return TDSL_BOOL;
    default:
        return TDSL_F32;
    }
}

static bool inputs_write(const StubModel *model, StubTensor *const *tensors, char (*files)[96],
                         char **argv, int *argc)
{
    char type[300];
    Fault fault;
    bool good = true;
    for (int i = 0; good && i < model->n_args; i++) {
        const StubArg *arg = &model->args[i];
        int64_t shape[8];
        for (uint32_t d = 0; d < arg->ndim; d++) {
            shape[d] = arg->shape[d];
        }
        bool input = arg->usage == NRT_TENSOR_USAGE_INPUT;
        argv[(*argc)++] = strdup(input ? "--in" : "--out");
        argv[(*argc)++] = strdup(files[i]);
        if (input && arg->dtype == NRT_DTYPE_BFLOAT16) {
            (void)snprintf(type, sizeof type, "%.250s=bfloat16", arg->name);
            argv[(*argc)++] = strdup("--in-dtype");
            argv[(*argc)++] = strdup(type);
        }
        good = !input || tdsl_npy_write(files[i], tdsl_dtype_of(arg->dtype), (int32_t)arg->ndim,
                                        shape, tensors[i]->data, arg->bytes, &fault);
    }
    return good;
}

static NrtStatus run_emulator(const StubModel *model, StubTensor *const *tensors)
{
    char folder[] = "/tmp/stub-nrt-XXXXXX";
    static char files[STUB_ARGS + 1][96];
    static char *argv[5 * STUB_ARGS + 16];
    Fault fault;
    int argc = 0;
    int code = 1;
    if (model->n_words < 6 || mkdtemp(folder) == NULL) {
        return NRT_FAILURE;
    }
    for (int i = 0; i <= model->n_args; i++) {
        (void)snprintf(files[i], sizeof files[i], "%s/%d", folder, i);
    }
    const char *const head[] = {model->program[1], model->program[2], model->program[3],
                                "--function",      model->program[4], "--target",
                                model->program[5]};
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) {
        argv[argc++] = strdup(head[i]);
    }
    bool good = inputs_write(model, tensors, files, argv, &argc);
    argv[argc] = NULL;
    good =
        good && tdsl_process_run(argv, files[model->n_args], 60000, &code, &fault) && code == 0;
    for (int i = 0; good && i < model->n_args; i++) {
        if (model->args[i].usage == NRT_TENSOR_USAGE_OUTPUT) {
            good = tdsl_npy_read(files[i], tdsl_dtype_of(model->args[i].dtype),
                                 tensors[i]->data, model->args[i].bytes, &fault);
        }
    }
    for (int i = 0; i <= model->n_args; i++) {
        (void)unlink(files[i]);
    }
    (void)rmdir(folder);
    while (argc > 0) {
        free(argv[--argc]);
    }
    return good ? NRT_SUCCESS : NRT_EXEC_COMPLETED_WITH_ERR;
}

NrtStatus stub_model_run(const StubModel *model, StubTensor *const *tensors)
{
    if (strcmp(model->program[0], "emulator") == 0) {
        return run_emulator(model, tensors);
    }
    if (strcmp(model->program[1], "matmul") == 0 && model->n_args == 3) {
        return run_matmul(model, tensors);
    }
    if (strcmp(model->program[1], "update") == 0 && model->n_args == 4) {
        return run_update(model, tensors);
    }
    return NRT_FAILURE;
}
