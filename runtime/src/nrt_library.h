/* SPDX-License-Identifier: Apache-2.0 */
/* libnrt, loaded at run time and initialised once per process. */
#ifndef TDSL_RUNTIME_NRT_LIBRARY_H
#define TDSL_RUNTIME_NRT_LIBRARY_H

#include "fault.h"
#include "nrt_worker.h"

typedef struct NrtLibrary NrtLibrary;

struct NrtLibrary {
    void *handle; /* of dlopen */
    NrtApi api;
    NrtWorker *worker;
    int users; /* contexts */
    int process;
    NrtLibrary *next;
};

/* `path` may be "": libnrt.so.1 of the loader's path, then of its usual folder. */
NrtLibrary *tdsl_nrt_library_acquire(const char *path, int64_t timeout_ms, Fault *fault);
void tdsl_nrt_library_release(NrtLibrary *library, int64_t timeout_ms);

/* One call into the library: retried while its queue is full, its status turned into a fault. On true the
 * call's results may be read. The call must be freed by tdsl_nrt_call_free unless *call has become null,
 * which it does when it hangs. */
bool tdsl_nrt_call_run(NrtLibrary *library, NrtCall **call, int64_t timeout_ms, Fault *fault);
/* Null without memory. */
NrtCall *tdsl_nrt_call_make(const NrtLibrary *library, NrtFunction function);

#endif
