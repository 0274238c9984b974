/* SPDX-License-Identifier: Apache-2.0 */
/* The part of libnrt's binary interface that this runtime uses, in prototypes of our own: written from
 * its published documentation, needing none of its headers, so that one binary runs with and without it.
 * Layouts are for 64-bit Linux and asserted. All functions return an NRT status unless said otherwise. */
#ifndef TDSL_RUNTIME_NRT_ABI_H
#define TDSL_RUNTIME_NRT_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t NrtStatus; /* a C enum there */

enum {
    NRT_SUCCESS = 0,
    NRT_FAILURE = 1,
    NRT_INVALID = 2,
    NRT_INVALID_HANDLE = 3,
    NRT_RESOURCE = 4,
    NRT_TIMEOUT = 5,
    NRT_HW_ERROR = 6,
    NRT_QUEUE_FULL = 7,
    NRT_LOAD_NOT_ENOUGH_NC = 9,
    NRT_UNSUPPORTED_NEFF_VERSION = 10,
    NRT_FAIL_HOST_MEM_ALLOC = 11,
    NRT_UNINITIALIZED = 13,
    NRT_CLOSED = 14,
    NRT_QUEUE_EMPTY = 15,
    NRT_EXEC_UNIT_UNRECOVERABLE = 101,
    NRT_EXEC_BAD_INPUT = 1002,
    NRT_EXEC_COMPLETED_WITH_NUM_ERR = 1003,
    NRT_EXEC_COMPLETED_WITH_ERR = 1004,
    NRT_EXEC_NC_BUSY = 1005,
    NRT_EXEC_OOB = 1006,
    NRT_COLL_PENDING = 1100,
    NRT_EXEC_HW_ERR_COLLECTIVES = 1200,
    NRT_EXEC_HW_ERR_HBM_UE = 1201,
    NRT_EXEC_HW_ERR_NC_UE = 1202,
    NRT_EXEC_HW_ERR_DMA_ABORT = 1203,
    NRT_EXEC_SW_NQ_OVERFLOW = 1204,
    NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE = 1205,
    NRT_NETWORK_PROXY_FAILURE = 1206
};

enum { NRT_FRAMEWORK_TYPE_NO_FW = 1 };
enum { NRT_TENSOR_PLACEMENT_DEVICE = 0 };
enum { NRT_TENSOR_USAGE_INPUT = 0, NRT_TENSOR_USAGE_OUTPUT = 1 };

enum {
    NRT_DTYPE_UNKNOWN = 0x0,
    NRT_DTYPE_INT8 = 0x2,
    NRT_DTYPE_UINT8 = 0x3,
    NRT_DTYPE_INT16 = 0x4,
    NRT_DTYPE_UINT16 = 0x5,
    NRT_DTYPE_BFLOAT16 = 0x6,
    NRT_DTYPE_FLOAT16 = 0x7,
    NRT_DTYPE_INT32 = 0x8,
    NRT_DTYPE_UINT32 = 0x9,
    NRT_DTYPE_FLOAT32 = 0xA,
    NRT_DTYPE_FP32R = 0xB,
    NRT_DTYPE_INT64 = 0xC,
    NRT_DTYPE_FP8_E4 = 0xE,
    NRT_DTYPE_FP8_E5 = 0xF,
    NRT_DTYPE_UINT64 = 0x1
};

/* nrt_instance_info_t.family: what this runtime tells apart. */
enum {
    NRT_FAMILY_TRN1 = 2,
    NRT_FAMILY_TRN1N = 3,
    NRT_FAMILY_INF2 = 4,
    NRT_FAMILY_TRN2 = 5, /* and its kinds, to 13 */
    NRT_FAMILY_INF2E = 7,
    NRT_FAMILY_TRN3 = 14,
    NRT_FAMILY_TRN3PDS98 = 15
};

typedef struct NrtInstanceInfo {
    uint32_t family;
    uint32_t size;
    char arch_name[16];
    char device_revision[8];
} NrtInstanceInfo;

#define NRT_TENSOR_NAME_MAX 256

typedef struct NrtTensorInfo {
    char name[NRT_TENSOR_NAME_MAX];
    int32_t usage;
    size_t size;
    int32_t dtype;
    uint32_t *shape;
    uint32_t ndim;
} NrtTensorInfo;

typedef struct NrtTensorInfoArray {
    uint64_t tensor_count;
    NrtTensorInfo tensor_array[];
} NrtTensorInfoArray;

typedef struct NrtVersion {
    uint64_t rt_major;
    uint64_t rt_minor;
    uint64_t rt_patch;
    uint64_t rt_maintenance;
    char rt_detail[128];
    char git_hash[64];
} NrtVersion;

#if defined(__LP64__)
_Static_assert(offsetof(NrtTensorInfo, usage) == 256, "nrt_tensor_info_t.usage");
_Static_assert(offsetof(NrtTensorInfo, size) == 264, "nrt_tensor_info_t.size");
_Static_assert(offsetof(NrtTensorInfo, dtype) == 272, "nrt_tensor_info_t.dtype");
_Static_assert(offsetof(NrtTensorInfo, shape) == 280, "nrt_tensor_info_t.shape");
_Static_assert(offsetof(NrtTensorInfo, ndim) == 288, "nrt_tensor_info_t.ndim");
_Static_assert(sizeof(NrtTensorInfo) == 296, "nrt_tensor_info_t");
_Static_assert(sizeof(NrtVersion) == 224, "nrt_version_t");
#endif

/* Handles (nrt_model_t, nrt_tensor_t, nrt_tensor_set_t) are opaque: void pointers here. */
typedef struct NrtApi {
    NrtStatus (*init)(int32_t framework, const char *fw_version, const char *fal_version);
    void (*close)(void);
    NrtStatus (*get_version)(NrtVersion *version, size_t size);
    NrtStatus (*load)(const void *neff, size_t size, int32_t vnc, int32_t vnc_count,
                      void **model);
    NrtStatus (*unload)(void *model);
    NrtStatus (*get_model_tensor_info)(void *model, NrtTensorInfoArray **info);
    NrtStatus (*free_model_tensor_info)(NrtTensorInfoArray *info);
    NrtStatus (*allocate_tensor_set)(void **set);
    void (*destroy_tensor_set)(void **set);
    NrtStatus (*add_tensor_to_tensor_set)(void *set, const char *name, void *tensor);
    NrtStatus (*tensor_allocate)(int32_t placement, int vnc, size_t size, const char *name,
                                 void **tensor);
    void (*tensor_free)(void **tensor);
    NrtStatus (*tensor_read)(const void *tensor, void *data, size_t offset, size_t size);
    NrtStatus (*tensor_write)(void *tensor, const void *data, size_t offset, size_t size);
    NrtStatus (*execute)(void *model, const void *inputs, void *outputs);
    /* null where the library has them not: nobody asks, no operand may be a slice */
    NrtStatus (*get_instance_info)(NrtInstanceInfo *info, size_t size);
    NrtStatus (*tensor_allocate_slice)(const void *source, size_t offset, size_t size,
                                       const char *name, void **slice);
} NrtApi;

/* Each member of NrtApi that must be there, and its symbol. */
#define NRT_SYMBOLS(X)                                                                         \
    X(init, "nrt_init")                                                                        \
    X(close, "nrt_close")                                                                      \
    X(get_version, "nrt_get_version")                                                          \
    X(load, "nrt_load")                                                                        \
    X(unload, "nrt_unload")                                                                    \
    X(get_model_tensor_info, "nrt_get_model_tensor_info")                                      \
    X(free_model_tensor_info, "nrt_free_model_tensor_info")                                    \
    X(allocate_tensor_set, "nrt_allocate_tensor_set")                                          \
    X(destroy_tensor_set, "nrt_destroy_tensor_set")                                            \
    X(add_tensor_to_tensor_set, "nrt_add_tensor_to_tensor_set")                                \
    X(tensor_allocate, "nrt_tensor_allocate")                                                  \
    X(tensor_free, "nrt_tensor_free")                                                          \
    X(tensor_read, "nrt_tensor_read")                                                          \
    X(tensor_write, "nrt_tensor_write")                                                        \
    X(execute, "nrt_execute")

#endif
