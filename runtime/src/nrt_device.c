/* SPDX-License-Identifier: Apache-2.0 */
/* A NeuronCore as a device: opening it, and its memory. Bytes travel through memory of the call
 * (see nrt_worker.h), in pieces. */
#include "nrt_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((size_t)4 << 20)

static NrtLibrary *library_of(const Device *device)
{
    return device->state;
}

static int64_t timeout_of(const Device *device)
{
    return device->context->settings.device_timeout_ms;
}

NrtCall *tdsl_nrt_device_call(const Device *device, NrtFunction function, Fault *fault)
{
    NrtCall *call = tdsl_nrt_call_make(library_of(device), function);
    if (call == NULL) {
        (void)tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to call %s",
                             tdsl_nrt_function_name(function));
    }
    return call;
}

bool tdsl_nrt_device_run(const Device *device, NrtCall **call, Fault *fault)
{
    return tdsl_nrt_call_run(library_of(device), call, timeout_of(device), fault);
}

void tdsl_nrt_call_name(NrtCall *call, const char *name)
{
    (void)snprintf(call->name, sizeof call->name, "%s", name);
}

void tdsl_nrt_device_free(Device *device, NrtFunction function, void *handle,
                          NrtTensorInfoArray *info)
{
    Fault ignored;
    NrtCall *call = tdsl_nrt_device_call(device, function, &ignored);
    if (call != NULL) {
        call->handle = handle;
        call->info = info;
        if (!tdsl_nrt_device_run(device, &call, &ignored) && ignored.lost &&
            device->lost.status == TDSL_OK) {
            device->lost = ignored;
        }
        tdsl_nrt_call_free(call);
    }
}

/* Which target's programs an instance of this family runs; null for one that is newer than this
 * file. */
static const char *family_target(uint32_t family)
{
    switch (family) {
    case NRT_FAMILY_TRN1:
    case NRT_FAMILY_TRN1N:
    case NRT_FAMILY_INF2:
    case NRT_FAMILY_INF2E:
        return "trn1";
    case NRT_FAMILY_TRN3:
    case NRT_FAMILY_TRN3PDS98:
        return "trn3";
    default:
        return family >= NRT_FAMILY_TRN2 && family < NRT_FAMILY_TRN3 ? "trn2" : NULL;
    }
}

/* A library that does not say what it runs on is no failure: then nothing is compared. */
static bool target_ask(Device *device, Fault *fault)
{
    if (library_of(device)->api.get_instance_info == NULL) {
        return true;
    }
    NrtCall *call = tdsl_nrt_device_call(device, NRT_CALL_INSTANCE_INFO, fault);
    if (call == NULL) {
        return false;
    }
    bool good = tdsl_nrt_device_run(device, &call, fault);
    if (good) {
        device->target = family_target(call->instance.family);
    }
    tdsl_nrt_call_free(call);
    return good || !fault->lost;
}

static bool nrt_open(Device *device, Fault *fault)
{
    device->state = tdsl_nrt_library_acquire(device->context->settings.nrt_library,
                                             timeout_of(device), fault);
    if (device->state == NULL) {
        return false;
    }
    if (!target_ask(device, fault)) {
        tdsl_nrt_library_release(library_of(device), timeout_of(device));
        return false;
    }
    return true;
}

static void nrt_close(Device *device)
{
    tdsl_nrt_library_release(library_of(device), timeout_of(device));
}

/* --- memory --- */

static bool nrt_allocate(Device *device, size_t bytes, const char *name, DeviceMemory *memory,
                         Fault *fault)
{
    NrtCall *call = tdsl_nrt_device_call(device, NRT_CALL_TENSOR_ALLOCATE, fault);
    if (call == NULL) {
        return false;
    }
    tdsl_nrt_call_name(call, name);
    call->bytes = bytes > 0 ? bytes : 1; /* libnrt has no tensors of no bytes */
    call->core = device->context->settings.device_core;
    bool good = tdsl_nrt_device_run(device, &call, fault);
    if (good) {
        *memory = call->result;
    }
    tdsl_nrt_call_free(call);
    return good;
}

/* One piece: copied in before a write, out after a read. */
static bool piece_move(Device *device, NrtFunction function, DeviceMemory memory,
                       const unsigned char *from, unsigned char *to, size_t offset,
                       size_t bytes, Fault *fault)
{
    NrtCall *call = tdsl_nrt_device_call(device, function, fault);
    if (call == NULL) {
        return false;
    }
    call->data = malloc(bytes);
    if (call->data == NULL) {
        tdsl_nrt_call_free(call);
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for a transfer of %zu bytes",
                              bytes);
    }
    if (from != NULL) {
        memcpy(call->data, from + offset, bytes);
    }
    call->handle = memory;
    call->offset = offset;
    call->bytes = bytes;
    bool good = tdsl_nrt_device_run(device, &call, fault);
    if (good && to != NULL) {
        memcpy(to + offset, call->data, bytes);
    }
    tdsl_nrt_call_free(call);
    return good;
}

static bool nrt_move(Device *device, NrtFunction function, DeviceMemory memory,
                     const unsigned char *from, unsigned char *to, size_t bytes, Fault *fault)
{
    bool good = true;
    for (size_t offset = 0; good && offset < bytes; offset += PIECE_BYTES) {
        size_t piece = bytes - offset < PIECE_BYTES ? bytes - offset : PIECE_BYTES;
        good = piece_move(device, function, memory, from, to, offset, piece, fault);
    }
    return good;
}

static bool nrt_write(Device *device, DeviceMemory memory, const void *data, size_t bytes,
                      Fault *fault)
{
    return nrt_move(device, NRT_CALL_TENSOR_WRITE, memory, data, NULL, bytes, fault);
}

static bool nrt_read(Device *device, DeviceMemory memory, void *data, size_t bytes,
                     Fault *fault)
{
    return nrt_move(device, NRT_CALL_TENSOR_READ, memory, NULL, data, bytes, fault);
}

static void nrt_release(Device *device, DeviceMemory memory, size_t bytes)
{
    (void)bytes;
    tdsl_nrt_forget(device, memory);
    tdsl_nrt_device_free(device, NRT_CALL_TENSOR_FREE, memory, NULL);
}

const DeviceOps tdsl_nrt_device = {
    TDSL_BACKEND_NKI, true,     nrt_open,         nrt_close,    nrt_allocate,    nrt_release,
    nrt_write,        nrt_read, tdsl_nrt_prepare, tdsl_nrt_run, tdsl_nrt_unload,
};
