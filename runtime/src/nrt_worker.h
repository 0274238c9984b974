/* SPDX-License-Identifier: Apache-2.0 */
/* Calls into libnrt with a deadline. libnrt's calls may never return, so they are made by a thread of
 * ours, one at a time, and the caller waits no longer than it was told. A call whose caller has given up
 * owns everything it may still touch (NrtCall and `data`), never memory of the program; the thread that
 * makes it frees that if it ever returns, and ends. From then on the worker is dead. */
#ifndef TDSL_RUNTIME_NRT_WORKER_H
#define TDSL_RUNTIME_NRT_WORKER_H

#include "nrt_abi.h"

#include <stdbool.h>

typedef enum NrtFunction {
    NRT_CALL_INIT,
    NRT_CALL_CLOSE,
    NRT_CALL_VERSION,
    NRT_CALL_INSTANCE_INFO,
    NRT_CALL_LOAD,
    NRT_CALL_UNLOAD,
    NRT_CALL_TENSOR_INFO,
    NRT_CALL_FREE_TENSOR_INFO,
    NRT_CALL_ALLOCATE_SET,
    NRT_CALL_DESTROY_SET,
    NRT_CALL_ADD_TENSOR,
    NRT_CALL_TENSOR_ALLOCATE,
    NRT_CALL_TENSOR_SLICE,
    NRT_CALL_TENSOR_FREE,
    NRT_CALL_TENSOR_READ,
    NRT_CALL_TENSOR_WRITE,
    NRT_CALL_EXECUTE
} NrtFunction;

typedef struct NrtCall {
    NrtFunction function;
    NrtApi api;    /* by value: the caller may be gone */
    void *handle;  /* model, set or tensor; of EXECUTE the model; of ADD_TENSOR the set */
    void *inputs;  /* of EXECUTE */
    void *outputs; /* of EXECUTE */
    void *tensor;  /* of ADD_TENSOR */
    void *result;  /* handle returned */
    NrtTensorInfoArray *info;
    NrtVersion version;
    NrtInstanceInfo instance;
    const void *neff; /* of LOAD: the program's, or in `data` */
    void *data;       /* of malloc, owned: NEFF, bytes to write, room for bytes read */
    size_t offset;
    size_t bytes;
    int32_t core;
    NrtStatus status;
    bool finished;
    bool abandoned;
    char name[NRT_TENSOR_NAME_MAX];
} NrtCall;

typedef struct NrtWorker NrtWorker;

const char *tdsl_nrt_function_name(NrtFunction function);
NrtWorker *tdsl_nrt_worker_start(void); /* null when there is no thread to be had */
/* Ends the thread and frees the worker; of a dead one only what the thread does not use. */
void tdsl_nrt_worker_stop(NrtWorker *worker);
bool tdsl_nrt_worker_is_dead(NrtWorker *worker);
/* False when the deadline passed (the call is then no longer the caller's) or the worker is dead (it
 * still is). */
bool tdsl_nrt_worker_call(NrtWorker *worker, NrtCall *call, int64_t timeout_ms,
                          bool *abandoned);
void tdsl_nrt_call_free(NrtCall *call);

#endif
