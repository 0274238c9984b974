/* SPDX-License-Identifier: Apache-2.0 */
/* libnrt's initialisation belongs to the process, not to a context: initialising twice, or closing while
 * somebody else has a model loaded, is undefined by its documentation. So the libraries that are open are
 * counted here, in the one piece of global state of the runtime. A library that hung stays in the list
 * for ever, dead, so that nobody calls into it again; one that was closed is not unmapped, since its own
 * threads may still run. */
#include "nrt_library.h"

#include "nrt_status.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KNOWN_MAJOR  2 /* symbol version NRT_2.0.0 */
#define RETRIES      6
#define USUAL_FOLDER "/opt/aws/neuron/lib/libnrt.so.1"

static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;
static NrtLibrary *libraries;

/* --- calls --- */

NrtCall *tdsl_nrt_call_make(const NrtLibrary *library, NrtFunction function)
{
    NrtCall *call = calloc(1, sizeof *call);
    if (call != NULL) {
        call->function = function;
        call->api = library->api;
    }
    return call;
}

static bool fault_of_status(const NrtCall *call, Fault *fault)
{
    const NrtStatusRow *row = tdsl_nrt_status_row(call->status);
    tdsl_status status = row->status;
    if (call->function == NRT_CALL_LOAD && call->status == NRT_INVALID) {
        status = TDSL_E_NEFF; /* what it was given is the NEFF */
    }
    (void)tdsl_fault_set(
        fault, status, "%s%s%.64s%s failed with %s (%d): %s",
        tdsl_nrt_function_name(call->function), call->name[0] != '\0' ? " of '" : "",
        call->name, call->name[0] != '\0' ? "'" : "", row->name, (int)call->status, row->text);
    fault->native = call->status;
    fault->lost = row->lost;
    return false;
}

/* Is what the call is made for there? */
static bool call_gave(const NrtCall *call)
{
    switch (call->function) {
    case NRT_CALL_LOAD:
    case NRT_CALL_ALLOCATE_SET:
    case NRT_CALL_TENSOR_ALLOCATE:
    case NRT_CALL_TENSOR_SLICE:
        return call->result != NULL;
    case NRT_CALL_TENSOR_INFO:
        return call->info != NULL;
    case NRT_CALL_INIT:
    case NRT_CALL_CLOSE:
    case NRT_CALL_VERSION:
    case NRT_CALL_INSTANCE_INFO:
    case NRT_CALL_UNLOAD:
    case NRT_CALL_FREE_TENSOR_INFO:
    case NRT_CALL_DESTROY_SET:
    case NRT_CALL_ADD_TENSOR:
    case NRT_CALL_TENSOR_FREE:
    case NRT_CALL_TENSOR_READ:
    case NRT_CALL_TENSOR_WRITE:
    case NRT_CALL_EXECUTE:
        break;
    }
    return true;
}

bool tdsl_nrt_call_run(NrtLibrary *library, NrtCall **call, int64_t timeout_ms, Fault *fault)
{
    const char *name = tdsl_nrt_function_name((*call)->function);
    if ((*call)->function == NRT_CALL_TENSOR_SLICE &&
        library->api.tensor_allocate_slice == NULL) {
        return tdsl_fault_set(fault, TDSL_E_NO_SYMBOL, "libnrt has no symbol %s", name);
    }
    for (int attempt = 0;; attempt++) {
        bool abandoned = false;
        (*call)->finished = false;
        if (!tdsl_nrt_worker_call(library->worker, *call, timeout_ms, &abandoned)) {
            (void)tdsl_fault_set(fault, abandoned ? TDSL_E_TIMEOUT : TDSL_E_DEVICE_LOST,
                                 abandoned
                                     ? "%s did not return within %lld ms"
                                     : "%s not made: an earlier call hangs (limit %lld ms)",
                                 name, (long long)timeout_ms);
            fault->lost = true;
            *call = abandoned ? NULL : *call;
            return false;
        }
        if ((*call)->status == NRT_SUCCESS) {
            return call_gave(*call) ||
                   tdsl_fault_set(fault, TDSL_E_DEVICE, "%s succeeded, and gave nothing", name);
        }
        if (!tdsl_nrt_status_row((*call)->status)->retry || attempt + 1 >= RETRIES) {
            return fault_of_status(*call, fault);
        }
        struct timespec pause = {0, 1000000L << attempt};
        (void)nanosleep(&pause, NULL);
    }
}

/* A call without arguments. */
static bool call_plain(NrtLibrary *library, NrtFunction function, int64_t timeout_ms,
                       Fault *fault, NrtVersion *version)
{
    NrtCall *call = tdsl_nrt_call_make(library, function);
    if (call == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to call %s",
                              tdsl_nrt_function_name(function));
    }
    bool good = tdsl_nrt_call_run(library, &call, timeout_ms, fault);
    if (good && version != NULL) {
        *version = call->version;
    }
    tdsl_nrt_call_free(call);
    return good;
}

/* --- the library --- */

static void *library_find(const char *path, Fault *fault)
{
    const char *usual = path[0] != '\0' ? NULL : USUAL_FOLDER;
    const char *first = path[0] != '\0' ? path : "libnrt.so.1";
    void *handle = dlopen(first, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) {
        return handle;
    }
    const char *why = dlerror();
    (void)tdsl_fault_set(fault, TDSL_E_NO_LIBRARY, "libnrt is not here: %.280s",
                         why != NULL ? why : first);
    if (usual != NULL) {
        handle = dlopen(usual, RTLD_NOW | RTLD_LOCAL);
        if (handle == NULL) {
            (void)dlerror();
            (void)tdsl_fault_set(fault, TDSL_E_NO_LIBRARY,
                                 "libnrt is not here: looked for libnrt.so.1 and %s", usual);
        }
    }
    return handle;
}

static bool symbols_resolve(void *handle, NrtApi *api, Fault *fault)
{
    _Static_assert(sizeof api->init == sizeof(void *),
                   "function pointers are as wide as pointers");
#define RESOLVE(member, symbol)                                                                \
    do {                                                                                       \
        void *address = dlsym(handle, symbol);                                                 \
        if (address == NULL) {                                                                 \
            return tdsl_fault_set(fault, TDSL_E_NO_SYMBOL, "libnrt has no symbol %s", symbol); \
        }                                                                                      \
        memcpy(&api->member, &address, sizeof address);                                        \
    } while (0);
    NRT_SYMBOLS(RESOLVE)
#undef RESOLVE
    void *optional = dlsym(handle, "nrt_get_instance_info");
    memcpy(&api->get_instance_info, &optional, sizeof optional);
    optional = dlsym(handle, "nrt_tensor_allocate_slice");
    memcpy(&api->tensor_allocate_slice, &optional, sizeof optional);
    return true;
}

static bool library_start(NrtLibrary *library, int64_t timeout_ms, Fault *fault)
{
    NrtVersion version;
    memset(&version, 0, sizeof version);
    library->worker = tdsl_nrt_worker_start();
    if (library->worker == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no thread to call libnrt from");
    }
    if (!call_plain(library, NRT_CALL_VERSION, timeout_ms, fault, &version)) {
        return false;
    }
    if (version.rt_major != KNOWN_MAJOR) {
        return tdsl_fault_set(fault, TDSL_E_NO_SYMBOL,
                              "libnrt is of version %llu.%llu, and only %d is known",
                              (unsigned long long)version.rt_major,
                              (unsigned long long)version.rt_minor, KNOWN_MAJOR);
    }
    return call_plain(library, NRT_CALL_INIT, timeout_ms, fault, NULL);
}

/* Lock held. The handle is the library's from here on, or closed. */
static NrtLibrary *library_open(void *handle, int64_t timeout_ms, Fault *fault)
{
    NrtLibrary *library = calloc(1, sizeof *library);
    if (library == NULL || !symbols_resolve(handle, &library->api, fault)) {
        if (library == NULL) {
            (void)tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to open libnrt");
        }
        free(library);
        (void)dlclose(handle);
        return NULL;
    }
    library->handle = handle;
    library->process = (int)getpid();
    bool good = library_start(library, timeout_ms, fault);
    bool dead = library->worker != NULL && tdsl_nrt_worker_is_dead(library->worker);
    if (good || dead) {
        library->next = libraries;
        libraries = library;
    }
    if (!good && !dead) {
        if (library->worker != NULL) {
            tdsl_nrt_worker_stop(library->worker);
        }
        free(library);
    }
    return good ? library : NULL;
}

static NrtLibrary *library_known(void *handle)
{
    for (NrtLibrary *library = libraries; library != NULL; library = library->next) {
        if (library->handle == handle) {
            return library;
        }
    }
    return NULL;
}

/* Lock held. */
static NrtLibrary *library_share(NrtLibrary *library, Fault *fault)
{
    (void)dlclose(library->handle); /* the count of dlopen, not the library */
    if (library->process != (int)getpid()) {
        (void)tdsl_fault_set(fault, TDSL_E_DEVICE,
                             "libnrt was initialised by the parent process (fork)");
        return NULL;
    }
    if (tdsl_nrt_worker_is_dead(library->worker)) {
        (void)tdsl_fault_set(fault, TDSL_E_DEVICE_LOST, "an earlier call into libnrt hangs");
        return NULL;
    }
    return library;
}

NrtLibrary *tdsl_nrt_library_acquire(const char *path, int64_t timeout_ms, Fault *fault)
{
    void *handle = library_find(path, fault);
    if (handle == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&libraries_lock);
    NrtLibrary *known = library_known(handle);
    NrtLibrary *library =
        known != NULL ? library_share(known, fault) : library_open(handle, timeout_ms, fault);
    if (library != NULL) {
        library->users++;
    }
    (void)pthread_mutex_unlock(&libraries_lock);
    return library;
}

void tdsl_nrt_library_release(NrtLibrary *library, int64_t timeout_ms)
{
    Fault ignored;
    (void)pthread_mutex_lock(&libraries_lock);
    library->users--;
    bool last = library->users == 0 && !tdsl_nrt_worker_is_dead(library->worker) &&
                call_plain(library, NRT_CALL_CLOSE, timeout_ms, &ignored, NULL);
    if (last) {
        NrtLibrary **link = &libraries;
        while (*link != library) {
            link = &(*link)->next;
        }
        *link = library->next;
        tdsl_nrt_worker_stop(library->worker);
        free(library);
    }
    (void)pthread_mutex_unlock(&libraries_lock);
}
