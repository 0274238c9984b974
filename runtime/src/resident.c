/* SPDX-License-Identifier: Apache-2.0 */
/* Device tensors: where the current value of a tensor is, and the copies that bring it where it is
 * needed. Host memory is written only when the whole of a transfer is here: a read that fails or hangs
 * half way leaves the program's array as it was. */
#include "device.h"

#include <string.h>

/* Reads into memory of our own, then copies: all or nothing. Device lock held. */
static bool memory_fetch(Device *device, const tdsl_buffer *buffer, void *to, Fault *fault)
{
    size_t bytes = buffer->bytes;
    void *staged = tdsl_context_allocate(device->context, bytes);
    if (staged == NULL) {
        return tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to stage %zu bytes", bytes);
    }
    bool good = device->ops->read(device, buffer->memory, staged, bytes, fault);
    if (good && buffer->words) {
        tdsl_words_join(staged, bytes);
    }
    if (good) {
        memcpy(to, staged, bytes);
    }
    tdsl_context_release(device->context, staged, bytes);
    return good;
}

static tdsl_status tensor_check(const tdsl_context *context, const tdsl_tensor *tensor,
                                size_t *bytes, tdsl_report *report)
{
    if (context == NULL || tensor == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "device tensor: %s is null",
                         context == NULL ? "context" : "tensor");
    }
    if (tensor->device != NULL && tensor->device->context != context) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "device tensor: it belongs to another context");
    }
    if (tdsl_dtype_bytes(tensor->dtype) == 0) {
        return tdsl_fail(report, TDSL_E_DTYPE, "device tensor: %d is no dtype",
                         (int)tensor->dtype);
    }
    if (tensor->rank < 0 || tensor->rank > TDSL_MAX_RANK ||
        (tensor->rank > 0 && tensor->extents == NULL)) {
        return tdsl_fail(report, TDSL_E_SHAPE, "device tensor: rank %d, or no extents",
                         (int)tensor->rank);
    }
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        if (tensor->extents[axis] < 0) {
            return tdsl_fail(report, TDSL_E_SHAPE,
                             "device tensor: extent of axis %d is below 0", (int)axis);
        }
    }
    int32_t axis = 0;
    size_t stride = 0;
    LayoutFault fault = tdsl_tensor_layout(tensor, bytes, &axis, &stride);
    if (fault != LAYOUT_GOOD) {
        return tdsl_fail(report, fault == LAYOUT_STRIDE ? TDSL_E_STRIDE : TDSL_E_OVERFLOW,
                         "device tensor: axis %d is not in C order, or its size does not fit",
                         (int)axis);
    }
    if (tensor->device != NULL && tensor->device->bytes != *bytes) {
        return tdsl_fail(report, TDSL_E_SHAPE, "device tensor: %zu bytes, on the device %zu",
                         *bytes, tensor->device->bytes);
    }
    return TDSL_OK;
}

/* Device lock held. */
static tdsl_buffer *buffer_make(Device *device, size_t bytes, Fault *fault)
{
    tdsl_buffer *buffer = tdsl_context_allocate(device->context, sizeof *buffer);
    if (buffer == NULL) {
        (void)tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for a device tensor");
        return NULL;
    }
    if (!tdsl_device_memory(device, bytes, "tensor", &buffer->memory, fault)) {
        tdsl_context_release(device->context, buffer, sizeof *buffer);
        return NULL;
    }
    buffer->context = device->context;
    buffer->bytes = bytes;
    buffer->words = false;
    atomic_init(&buffer->on_device, false);
    atomic_init(&buffer->on_host, true);
    buffer->next = device->buffers;
    buffer->link = &device->buffers;
    if (buffer->next != NULL) {
        buffer->next->link = &buffer->next;
    }
    device->buffers = buffer;
    return buffer;
}

static void buffer_free(Device *device, tdsl_buffer *buffer)
{
    *buffer->link = buffer->next;
    if (buffer->next != NULL) {
        buffer->next->link = buffer->link;
    }
    if (device->open) {
        device->ops->release(device, buffer->memory, buffer->bytes);
    }
    tdsl_context_release(device->context, buffer, sizeof *buffer);
}

static tdsl_status fault_report(tdsl_report *report, const Fault *fault, const char *what)
{
    if (report != NULL) {
        report->native = fault->native;
    }
    return tdsl_fail(report, fault->status, "%s: %s", what, fault->text);
}

static bool tensor_send(Device *device, tdsl_tensor *tensor, size_t bytes, tdsl_report *report,
                        Fault *fault)
{
    bool made = tensor->device == NULL;
    tdsl_buffer *buffer = made ? buffer_make(device, bytes, fault) : tensor->device;
    if (buffer == NULL) {
        return false;
    }
    if (!atomic_load(&buffer->on_device) && tensor->data != NULL && bytes > 0) {
        if (!device->ops->write(device, buffer->memory, tensor->data, bytes, fault)) {
            if (made) {
                buffer_free(device, buffer);
            }
            return false;
        }
        buffer->words = false;
        atomic_store(&buffer->on_device, true);
        if (report != NULL) {
            report->device_writes++;
        }
    }
    tensor->device = buffer;
    return true;
}

tdsl_status tdsl_to_device(tdsl_context *context, tdsl_tensor *tensor, tdsl_report *report)
{
    size_t bytes = 0;
    if (!tdsl_report_begin(report, NULL)) {
        return TDSL_E_ABI;
    }
    tdsl_status status = tensor_check(context, tensor, &bytes, report);
    if (status != TDSL_OK) {
        return status;
    }
    if (report != NULL) {
        report->backend = context->settings.backend == TDSL_BACKEND_C
                              ? TDSL_BACKEND_C
                              : tdsl_device_backend(context);
        report->reason = TDSL_REASON_FORCED;
    }
    if (context->settings.backend == TDSL_BACKEND_C) {
        return tensor->data != NULL || bytes == 0
                   ? TDSL_OK
                   : tdsl_fail(
                         report, TDSL_E_TARGET,
                         "tdsl_to_device: the backend is c, and the tensor has no host memory");
    }
    Device *device = NULL;
    Fault fault;
    if (!tdsl_device_acquire(context, &device, &fault)) {
        return fault_report(report, &fault, "tdsl_to_device");
    }
    bool good = tensor_send(device, tensor, bytes, report, &fault);
    tdsl_device_release(device, &fault);
    return good ? TDSL_OK : fault_report(report, &fault, "tdsl_to_device");
}

/* Brings the current value to the host if it is not there. */
static bool tensor_receive(tdsl_context *context, tdsl_tensor *tensor, tdsl_report *report,
                           Fault *fault)
{
    tdsl_buffer *buffer = tensor->device;
    Device *device = NULL;
    if (buffer == NULL || atomic_load(&buffer->on_host) || buffer->bytes == 0) {
        return true;
    }
    if (tensor->data == NULL) {
        return tdsl_fault_set(
            fault, TDSL_E_ARGUMENT,
            "its value is on the device only, and it has no host memory to go to");
    }
    if (!tdsl_device_acquire(context, &device, fault)) {
        return false;
    }
    bool good = atomic_load(&buffer->on_device)
                    ? memory_fetch(device, buffer, tensor->data, fault)
                    : tdsl_fault_set(fault, TDSL_E_DEVICE,
                                     "its value was lost when a kernel writing it failed");
    if (good) {
        atomic_store(&buffer->on_host, true);
        if (report != NULL) {
            report->device_reads++;
        }
    }
    tdsl_device_release(device, fault);
    return good;
}

tdsl_status tdsl_from_device(tdsl_context *context, tdsl_tensor *tensor, tdsl_report *report)
{
    size_t bytes = 0;
    Fault fault;
    if (!tdsl_report_begin(report, NULL)) {
        return TDSL_E_ABI;
    }
    tdsl_status status = tensor_check(context, tensor, &bytes, report);
    if (status != TDSL_OK) {
        return status;
    }
    return tensor_receive(context, tensor, report, &fault)
               ? TDSL_OK
               : fault_report(report, &fault, "tdsl_from_device");
}

void tdsl_host_changed(tdsl_tensor *tensor)
{
    if (tensor != NULL && tensor->device != NULL) {
        atomic_store(&tensor->device->on_host, true);
        atomic_store(&tensor->device->on_device, false);
    }
}

void tdsl_device_free(tdsl_context *context, tdsl_tensor *tensor)
{
    if (context == NULL || tensor == NULL || tensor->device == NULL ||
        tensor->device->context != context) {
        return;
    }
    Fault fault;
    Device *device = NULL;
    if (tdsl_device_acquire(context, &device, &fault)) {
        buffer_free(device, tensor->device);
        tdsl_device_release(device, NULL);
    } /* else the device is lost, or the parent's: the context still owns the buffer */
    tensor->device = NULL;
}

/* --- device tensors in calls --- */

tdsl_status tdsl_device_check(const Call *call)
{
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        const tdsl_buffer *buffer = call->args[i].device;
        if (buffer == NULL) {
            continue;
        }
        if (buffer->context != call->kernel->context) {
            return tdsl_arg_fail(call, i, TDSL_E_ARGUMENT,
                                 "its device memory belongs to another context");
        }
        if (buffer->bytes != call->bytes[i]) {
            return tdsl_arg_fail(call, i, TDSL_E_SHAPE,
                                 "it has %zu bytes, its device memory %zu", call->bytes[i],
                                 buffer->bytes);
        }
    }
    return TDSL_OK;
}

tdsl_status tdsl_device_fetch(Call *call)
{
    Fault fault;
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        tdsl_tensor *tensor = &call->args[i];
        if (tensor->data == NULL && call->bytes[i] != 0) {
            return tdsl_arg_fail(call, i, TDSL_E_ARGUMENT,
                                 "the C form runs, and this tensor has no host memory");
        }
        if (role_is_read(call->info->args[i].role) &&
            !tensor_receive(call->kernel->context, tensor, call->report, &fault)) {
            if (call->report != NULL) {
                call->report->native = fault.native;
            }
            return tdsl_arg_fail(call, i, fault.status, "%s", fault.text);
        }
    }
    return TDSL_OK;
}

void tdsl_device_outdate(Call *call)
{
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        if (role_is_result(call->info->args[i].role)) {
            tdsl_host_changed(&call->args[i]);
        }
    }
}
