/* SPDX-License-Identifier: Apache-2.0 */
/* One call on the device, whatever kind it is: device memory for what has none, writes, run,
 * reads. The results of host tensors are staged and copied to the program only when the last of
 * them is here, so a failure anywhere leaves host memory as it was and the C form can still
 * run. */
#include "device.h"

#include <string.h>

typedef struct Staged {
    unsigned char *data;
    size_t bytes;
} Staged;

static bool is_resident(const Call *call, size_t i)
{
    return call->args[i].device != NULL;
}

/* Memory for argument i where the run reads it: the tensor's own, written if the host's value
 * is newer. */
static bool input_provide(Device *device, DeviceRun *run, size_t i, Fault *fault)
{
    const Call *call = run->call;
    const char *name = call->info->args[i].name;
    tdsl_buffer *buffer = call->args[i].device;
    if (buffer != NULL) {
        run->in[i] = buffer->memory;
    } else if (!device->ops->allocate(device, call->bytes[i], name, &run->in[i], fault)) {
        return false;
    }
    if (buffer != NULL && atomic_load(&buffer->on_device)) {
        return true;
    }
    if (buffer != NULL && (!atomic_load(&buffer->on_host) || call->args[i].data == NULL)) {
        return tdsl_fault_set(
            fault, TDSL_E_ARGUMENT,
            "argument '%.64s' has no value, neither on the device nor on the host", name);
    }
    if (!device->ops->write(device, run->in[i], call->args[i].data, call->bytes[i], fault)) {
        return false;
    }
    if (buffer != NULL) {
        atomic_store(&buffer->on_device, true);
    }
    if (call->report != NULL) {
        call->report->device_writes++;
    }
    return true;
}

/* Memory for result i: of a resident pure result its own, else fresh. An inout result is fresh
 * even when resident, since the program reads the old value while it writes the new. */
static bool output_provide(Device *device, DeviceRun *run, size_t i, Fault *fault)
{
    const Call *call = run->call;
    if (is_resident(call, i) && call->info->args[i].role == TDSL_OUT) {
        tdsl_buffer *buffer = call->args[i].device;
        run->out[i] = buffer->memory;
        return true;
    }
    return device->ops->allocate(device, call->bytes[i], call->info->args[i].name, &run->out[i],
                                 fault);
}

static bool memory_provide(Device *device, DeviceRun *run, Fault *fault)
{
    for (size_t i = 0; i < (size_t)run->call->info->n_args; i++) {
        int32_t role = run->call->info->args[i].role;
        if (role_is_read(role) && !input_provide(device, run, i, fault)) {
            return false;
        }
        if (role_is_result(role) && !output_provide(device, run, i, fault)) {
            return false;
        }
    }
    return true;
}

/* Everything this run allocated, in reverse order; resident tensors keep theirs. */
static void memory_withdraw(Device *device, DeviceRun *run)
{
    for (size_t i = (size_t)run->call->info->n_args; i-- > 0;) {
        tdsl_buffer *buffer = run->call->args[i].device;
        DeviceMemory kept = buffer != NULL ? buffer->memory : NULL;
        if (run->out[i] != NULL && run->out[i] != kept) {
            device->ops->release(device, run->out[i], run->call->bytes[i]);
        }
        if (run->in[i] != NULL && run->in[i] != kept) {
            device->ops->release(device, run->in[i], run->call->bytes[i]);
        }
    }
}

static bool result_is_host(const Call *call, size_t i)
{
    return role_is_result(call->info->args[i].role) && !is_resident(call, i);
}

static bool results_stage(Device *device, DeviceRun *run, Staged *staged, Fault *fault)
{
    const Call *call = run->call;
    size_t at = 0;
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        if (result_is_host(call, i)) {
            if (!device->ops->read(device, run->out[i], staged->data + at, call->bytes[i],
                                   fault)) {
                return false;
            }
            at += call->bytes[i];
        }
    }
    return true;
}

/* Nothing can fail from here on. */
static void results_commit(DeviceRun *run, const Staged *staged)
{
    const Call *call = run->call;
    size_t at = 0;
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        tdsl_buffer *buffer = call->args[i].device;
        if (!role_is_result(call->info->args[i].role)) {
            continue;
        }
        if (buffer == NULL) {
            memcpy(call->args[i].data, staged->data + at, call->bytes[i]);
            at += call->bytes[i];
            if (call->report != NULL) {
                call->report->device_reads++;
            }
            continue;
        }
        if (run->out[i] !=
            buffer->memory) { /* inout: the new value takes the old one's place */
            run->in[i] = buffer->memory;
            buffer->memory = run->out[i];
        }
        atomic_store(&buffer->on_device, true);
        atomic_store(&buffer->on_host, false);
    }
}

/* After a failure the device's value of a result that was written in place is no value. */
static void results_give_up(DeviceRun *run)
{
    for (size_t i = 0; i < (size_t)run->call->info->n_args; i++) {
        tdsl_buffer *buffer = run->call->args[i].device;
        if (buffer != NULL && role_is_result(run->call->info->args[i].role) &&
            run->out[i] == buffer->memory) {
            atomic_store(&buffer->on_device, false);
        }
    }
}

static bool staged_make(Device *device, const Call *call, Staged *staged, Fault *fault)
{
    staged->bytes = 0;
    staged->data = NULL;
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        staged->bytes += result_is_host(call, i) ? call->bytes[i] : 0;
    }
    if (staged->bytes == 0) {
        return true;
    }
    staged->data = tdsl_context_allocate(device->context, staged->bytes);
    return staged->data != NULL ||
           tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to stage %zu bytes of results",
                          staged->bytes);
}

static bool run_whole(Device *device, DeviceRun *run, Fault *fault)
{
    Staged staged;
    Fault flagged = {TDSL_OK, 0, false, false, ""};
    if (!staged_make(device, run->call, &staged, fault)) {
        return false;
    }
    bool good = memory_provide(device, run, fault) && device->ops->run(device, run, &flagged);
    if (!good && flagged.status != TDSL_OK) {
        *fault = flagged;
    }
    good = good && results_stage(device, run, &staged, fault);
    if (good) {
        results_commit(run, &staged);
        *fault = flagged; /* TDSL_OK, or TDSL_E_NUMERICAL with the results delivered */
    } else {
        results_give_up(run);
    }
    memory_withdraw(device, run);
    tdsl_context_release(device->context, staged.data, staged.bytes);
    return good;
}

static bool form_prepare(Device *device, const Call *call, NkiForm *form, Fault *fault)
{
    if (form->loaded != NULL) {
        return true;
    }
    if (form->refused.status != TDSL_OK) {
        *fault = form->refused;
        return false;
    }
    if (!device->ops->prepare(device, call, form, fault)) {
        if (fault->status == TDSL_E_NEFF) {
            form->refused = *fault;
        }
        return false;
    }
    form->loaded_next = device->loaded;
    device->loaded = form;
    return true;
}

bool tdsl_device_call(Call *call, NkiForm *form, Fault *fault)
{
    Device *device = NULL;
    DeviceRun run;
    if (!tdsl_device_acquire(call->kernel->context, &device, fault)) {
        return false;
    }
    run.call = call;
    run.form = form;
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        run.in[i] = NULL;
        run.out[i] = NULL;
    }
    bool good = form_prepare(device, call, form, fault) && run_whole(device, &run, fault);
    tdsl_device_release(device, fault);
    return good;
}
