/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of kernels.tdsl and parts.tdsl through tdsl_call, in C, in the emulator and on
 * the device, on whole numbers: all results are exact, so they must be equal. Then two kernels
 * chained over a tensor on the device, with the device library's own count of transfers.
 *
 *     program LIBNRT RUN.PY PYTHON       LIBNRT is the stub's */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdsl/tdsl.h>

#include "kernels.h"
#include "parts.h"

extern const tdsl_nki_form *const kernels_trn2_forms[];
extern const tdsl_nki_form *const parts_trn2_forms[];

enum { MOST = 8 };

typedef struct Args {
    size_t n;
    size_t bytes[MOST];
    int64_t extents[MOST][4];
    unsigned char *data[MOST];
    tdsl_tensor tensors[MOST];
} Args;

static tdsl_report report = TDSL_REPORT_INIT;

static void check(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "failed: %s: %s\n", what, report.message);
        exit(1);
    }
}

static int64_t dim_value(const char *name)
{
    static const struct {
        char name;
        int64_t value;
    } dims[] = {{'m', 40}, {'k', 30}, {'n', 50}, {'p', 300}, {'q', 260}};
    size_t i = 0;
    while (dims[i].name != name[0]) {
        i++;
    }
    return dims[i].value;
}

/* Whole numbers from -5 to 5, exact in every type. */
static void fill(void *at, int32_t dtype, size_t i, size_t arg)
{
    int value = (int)((7 * i + 13 * arg + 3) % 11) - 5;
    unsigned magnitude = (unsigned)(value < 0 ? -value : value);
    float f = (float)value;
    uint32_t bits;
    uint16_t half = 0;
    memcpy(&bits, &f, sizeof bits);
    switch (dtype) {
    case TDSL_BF16:
        half = (uint16_t)(bits >> 16);
        memcpy((uint16_t *)at + i, &half, sizeof half);
        break;
    case TDSL_F16:
        if (magnitude != 0) { /* the exponent's bias is 15, not 127 */
            half = (uint16_t)((bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10 |
                              (bits >> 13 & 0x3ff));
        }
        memcpy((uint16_t *)at + i, &half, sizeof half);
        break;
    default:
        memcpy((float *)at + i, &f, sizeof f);
    }
}

static void args_make(const tdsl_kernel_info *info, Args *args)
{
    args->n = (size_t)info->n_args;
    for (size_t i = 0; i < args->n; i++) {
        const tdsl_arg_info *arg = &info->args[i];
        size_t width = arg->dtype == TDSL_F16 || arg->dtype == TDSL_BF16 ? 2 : 4;
        width = arg->dtype == TDSL_F64 ? 8 : width;
        size_t count = arg->dtype == TDSL_C64 ? 2 : 1;
        for (int axis = 0; axis < arg->rank; axis++) {
            const tdsl_extent *e = &arg->extents[axis];
            args->extents[i][axis] = e->dim < 0 ? e->fixed : dim_value(info->dims[e->dim].name);
            count *= (size_t)args->extents[i][axis];
        }
        args->bytes[i] = count * width;
        args->data[i] = malloc(args->bytes[i]);
        check(args->data[i] != NULL, "memory");
        memset(args->data[i], 0x5a, args->bytes[i]);
        for (size_t at = 0; arg->role != TDSL_OUT && at < count; at++) {
            fill(args->data[i], arg->dtype, at, i);
        }
        args->tensors[i] = tdsl_view(arg->dtype, args->data[i], arg->rank, args->extents[i]);
    }
}

static void args_free(Args *args)
{
    for (size_t i = 0; i < args->n; i++) {
        free(args->data[i]);
    }
}

static tdsl_context *context_make(int32_t backend, char **argv)
{
    tdsl_config config = TDSL_CONFIG_INIT;
    tdsl_context *context = NULL;
    config.backend = backend;
    config.nrt_library = argv[1];
    config.emulator = argv[2];
    config.python = argv[3];
    check(tdsl_context_create(&config, &context, &report) == TDSL_OK, "context");
    check(tdsl_register_all(context, kernels_kernels, &report) == TDSL_OK, "C forms");
    check(tdsl_register_all(context, parts_kernels, &report) == TDSL_OK, "C forms");
    check(tdsl_register_nki_all(context, kernels_trn2_forms, NULL, &report) == TDSL_OK,
          "NKI forms");
    check(tdsl_register_nki_all(context, parts_trn2_forms, NULL, &report) == TDSL_OK,
          "NKI forms of several parts");
    return context;
}

/* How many device programs the kernel's form is. */
static int count_parts(const char *name)
{
    const tdsl_nki_form *const *lists[2] = {kernels_trn2_forms, parts_trn2_forms};
    for (int l = 0; l < 2; l++) {
        for (size_t i = 0; lists[l][i] != NULL; i++) {
            if (strcmp(lists[l][i]->kernel, name) == 0) {
                return lists[l][i]->n_parts;
            }
        }
    }
    return 0;
}

static void compare_all(const tdsl_kernel_info *const *kernels, char **argv)
{
    static const int32_t backends[3] = {TDSL_BACKEND_C, TDSL_BACKEND_EMULATOR,
                                        TDSL_BACKEND_NKI};
    tdsl_context *contexts[3];
    for (int b = 0; b < 3; b++) {
        contexts[b] = context_make(backends[b], argv);
    }
    for (size_t k = 0; kernels[k] != NULL; k++) {
        const tdsl_kernel_info *info = kernels[k];
        Args args[3];
        for (int b = 0; b < 3; b++) {
            tdsl_kernel *kernel = NULL;
            args_make(info, &args[b]);
            check(tdsl_find(contexts[b], info->name, &kernel, &report) == TDSL_OK, info->name);
            check(tdsl_call(kernel, args[b].tensors, args[b].n, NULL, &report) == TDSL_OK,
                  info->name);
            check(report.backend == backends[b], "another backend ran");
        }
        for (size_t i = 0; i < args[0].n; i++) {
            for (int b = 1; b < 3; b++) {
                check(memcmp(args[0].data[i], args[b].data[i], args[0].bytes[i]) == 0,
                      b == 1 ? "C and the emulator differ" : "C and the device differ");
            }
        }
        printf("%s: equal in C, in the emulator and on the device (programs: %d)\n", info->name,
               count_parts(info->name));
        for (int b = 0; b < 3; b++) {
            args_free(&args[b]);
        }
    }
    for (int b = 0; b < 3; b++) {
        tdsl_context_destroy(contexts[b]);
    }
}

/* softened(product(A, B), D, s), with C on the device only. */
static void chain(char **argv)
{
    void *stub = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    long (*calls_of)(const char *function) = NULL;
    check(stub != NULL, "the stub");
    void *address = dlsym(stub, "stub_nrt_calls_of");
    memcpy(&calls_of, &address, sizeof address);
    tdsl_context *host = context_make(TDSL_BACKEND_C, argv);
    tdsl_context *device = context_make(TDSL_BACKEND_NKI, argv);
    long before[2] = {0, 0};
    Args first[2], second[2];
    for (int d = 0; d < 2; d++) {
        tdsl_context *context = d == 0 ? host : device;
        tdsl_kernel *product = NULL, *softened = NULL;
        args_make(&product_info, &first[d]);
        args_make(&softened_info, &second[d]);
        check(tdsl_find(context, "product", &product, &report) == TDSL_OK, "product");
        check(tdsl_find(context, "softened", &softened, &report) == TDSL_OK, "softened");
        tdsl_tensor *c = &first[d].tensors[2];
        if (d == 1) {
            before[0] = calls_of("nrt_tensor_write");
            before[1] = calls_of("nrt_tensor_read");
            c->data = NULL;
            check(tdsl_to_device(device, c, &report) == TDSL_OK, "to the device");
            check(report.device_writes == 0, "nothing to write");
        }
        check(tdsl_call(product, first[d].tensors, 3, NULL, &report) == TDSL_OK, "product");
        check(report.device_writes == (d == 0 ? 0 : 2) && report.device_reads == 0,
              "A and B are written");
        second[d].tensors[0] = *c;
        check(tdsl_call(softened, second[d].tensors, second[d].n, NULL, &report) == TDSL_OK,
              "softened");
        check(report.device_writes == (d == 0 ? 0 : 2) &&
                  report.device_reads == (d == 0 ? 0 : 2),
              "D, s; R, S");
        if (d == 1) {
            check(calls_of("nrt_tensor_write") - before[0] == 4, "four tensors travel there");
            check(calls_of("nrt_tensor_read") - before[1] == 2, "two come back");
            tdsl_device_free(device, c);
        }
    }
    for (size_t i = 3; i < second[0].n; i++) {
        check(memcmp(second[0].data[i], second[1].data[i], second[0].bytes[i]) == 0,
              "the chain differs");
    }
    printf("chained on the device: 4 tensors there, 2 back\n");
    for (int d = 0; d < 2; d++) {
        args_free(&first[d]);
        args_free(&second[d]);
    }
    tdsl_context_destroy(host);
    tdsl_context_destroy(device);
    (void)dlclose(stub);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: program LIBNRT RUN.PY PYTHON\n");
        return 2;
    }
    compare_all(kernels_kernels, argv);
    compare_all(parts_kernels, argv);
    check(count_parts("twice_wide") > 1, "a kernel of several parts");
    chain(argv);
    return 0;
}
