/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a context's device: made at its first use, lost at most once, closed with the context. A
 * device that could not be opened is not tried again by the same context: a machine without one would
 * otherwise pay for the search at every call. A child process made by fork inherits a context whose
 * device belongs to its parent; it is told so, and takes no lock another thread may have held. */
#include "device.h"

#include <string.h>
#include <unistd.h>

int32_t tdsl_device_backend(const tdsl_context *context)
{
    const Settings *settings = &context->settings;
    bool emulated = settings->use_simulator || settings->backend == TDSL_BACKEND_EMULATOR;
    return emulated ? TDSL_BACKEND_EMULATOR : TDSL_BACKEND_NKI;
}

/* Lock held. Null without memory. */
static Device *device_make(tdsl_context *context)
{
    if (context->device != NULL) {
        return context->device;
    }
    Device *device = tdsl_context_allocate(context, sizeof *device);
    if (device != NULL) {
        memset(device, 0, sizeof *device);
        device->context = context;
        device->ops = tdsl_device_backend(context) == TDSL_BACKEND_EMULATOR
                          ? &tdsl_emulator_device
                          : &tdsl_nrt_device;
        context->device = device;
        atomic_store(&context->device_owner, (int)getpid());
    }
    return device;
}

/* Lock held. */
static bool device_open(Device *device, Fault *fault)
{
    if (device->lost.status != TDSL_OK) {
        *fault = device->lost;
        return false;
    }
    if (!device->open && !device->ops->open(device, fault)) {
        device->lost = *fault;
        return false;
    }
    device->open = true;
    return true;
}

static bool is_of_another_process(tdsl_context *context)
{
    int owner = atomic_load(&context->device_owner);
    return owner != 0 && owner != (int)getpid();
}

bool tdsl_device_acquire(tdsl_context *context, Device **device, Fault *fault)
{
    memset(fault, 0, sizeof *fault);
    if (is_of_another_process(context)) {
        (void)tdsl_fault_set(
            fault, TDSL_E_DEVICE,
            "the device was opened by the parent process (fork); make a context of "
            "your own");
        fault->unavailable = true;
        return false;
    }
    (void)pthread_mutex_lock(&context->device_lock);
    *device = device_make(context);
    bool good = *device != NULL
                    ? device_open(*device, fault)
                    : tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory for the device");
    if (!good) {
        fault->unavailable = true;
        (void)pthread_mutex_unlock(&context->device_lock);
    }
    return good;
}

void tdsl_device_release(Device *device, const Fault *fault)
{
    if (fault != NULL && fault->lost && device->lost.status == TDSL_OK) {
        device->lost = *fault;
        /* the call that met it has its own status; whoever comes later finds the device lost */
        (void)tdsl_fault_set(&device->lost, TDSL_E_DEVICE_LOST,
                             "the device is lost since: %.300s", fault->text);
        device->lost.native = fault->native;
    }
    (void)pthread_mutex_unlock(&device->context->device_lock);
}

void tdsl_device_close(tdsl_context *context)
{
    Device *device = context->device;
    if (device == NULL) {
        return;
    }
    bool ours = device->open && !is_of_another_process(context);
    for (tdsl_buffer *buffer = device->buffers; buffer != NULL;) {
        tdsl_buffer *next = buffer->next;
        if (ours) {
            device->ops->release(device, buffer->memory, buffer->bytes);
        }
        tdsl_context_release(context, buffer, sizeof *buffer);
        buffer = next;
    }
    for (NkiForm *form = device->loaded; ours && form != NULL; form = form->loaded_next) {
        tdsl_device_unload(device, form);
    }
    if (ours) {
        device->ops->close(device);
    }
    tdsl_context_release(context, device, sizeof *device);
    context->device = NULL;
}
