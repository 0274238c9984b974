/* SPDX-License-Identifier: Apache-2.0 */
/* One call on the device, whatever kind it is: device memory for what has none, writes, the
 * parts of the form one after the other, reads. The results of host tensors are staged and
 * copied to the program only when the last of them is here, so a failure anywhere leaves host
 * memory as it was and the C form can still run.
 *
 * Memory that a call made for its host tensors and temporaries is kept with the form for its
 * next call, until the device runs short of memory. A failed call keeps none. */
#include "device.h"

#include <stdio.h>
#include <string.h>

typedef struct Staged {
    unsigned char *data;
    size_t bytes;
} Staged;

/* Null for a temporary, and for an argument that lives on the host only. */
static tdsl_buffer *buffer_of(const DeviceRun *run, size_t t)
{
    return t < (size_t)run->call->info->n_args ? run->call->args[t].device : NULL;
}

/* --- memory --- */

static bool kept_release(Device *device, NkiForm *form)
{
    bool any = false;
    for (size_t t = 0; t < form->n_tensors; t++) {
        NkiTensor *tensor = &form->tensors[t];
        for (int side = 0; side < 2; side++) {
            if (tensor->kept[side] != NULL) {
                device->ops->release(device, tensor->kept[side], tensor->bytes);
                tensor->kept[side] = NULL;
                any = true;
            }
        }
    }
    return any;
}

/* After a fault: is it that the device runs short, and was something kept, which is free now?
 */
static bool kept_spare(Device *device, const Fault *fault)
{
    bool any = false;
    NkiForm *form = fault->status == TDSL_E_MEMORY ? device->loaded : NULL;
    for (; form != NULL; form = form->loaded_next) {
        any = kept_release(device, form) || any;
    }
    return any;
}

bool tdsl_device_memory(Device *device, size_t bytes, const char *name, DeviceMemory *memory,
                        Fault *fault)
{
    return device->ops->allocate(device, bytes, name, memory, fault) ||
           (kept_spare(device, fault) &&
            device->ops->allocate(device, bytes, name, memory, fault));
}

/* Kept memory of the tensor, or fresh. */
static bool memory_take(Device *device, NkiTensor *tensor, int side, DeviceMemory *memory,
                        Fault *fault)
{
    side = tensor->kept[side] != NULL ? side : 1 - side;
    *memory = tensor->kept[side];
    tensor->kept[side] = NULL;
    return *memory != NULL ||
           tdsl_device_memory(device, tensor->bytes, tensor->name, memory, fault);
}

static void memory_give(Device *device, NkiTensor *tensor, DeviceMemory memory, bool keep)
{
    for (int side = 0; keep && side < 2; side++) {
        if (tensor->kept[side] == NULL) {
            tensor->kept[side] = memory;
            return;
        }
    }
    device->ops->release(device, memory, tensor->bytes);
}

/* Memory for argument i where the run reads it: the tensor's own, written if the host's value is newer. */
static bool input_provide(Device *device, DeviceRun *run, size_t i, Fault *fault)
{
    const Call *call = run->call;
    NkiTensor *tensor = &run->form->tensors[i];
    tdsl_buffer *buffer = call->args[i].device;
    if (buffer != NULL) {
        run->in[i] = buffer->memory;
    } else if (!memory_take(device, tensor, 0, &run->in[i], fault)) {
        return false;
    }
    if (buffer != NULL && atomic_load(&buffer->on_device)) {
        return !buffer->words ||
               tdsl_fault_set(fault, TDSL_E_DTYPE,
                              "argument '%.64s' is on the device as two f32 for each f64: "
                              "tdsl_from_device and tdsl_host_changed bring it back as f64",
                              tensor->name);
    }
    if (buffer != NULL && (!atomic_load(&buffer->on_host) || call->args[i].data == NULL)) {
        return tdsl_fault_set(
            fault, TDSL_E_ARGUMENT,
            "argument '%.64s' has no value, neither on the device nor on the host",
            tensor->name);
    }
    if (!device->ops->write(device, run->in[i], call->args[i].data, call->bytes[i], fault)) {
        return false;
    }
    if (buffer != NULL) {
        buffer->words = false;
        atomic_store(&buffer->on_device, true);
    }
    if (call->report != NULL) {
        call->report->device_writes++;
    }
    return true;
}

/* Memory for result or temporary t: of a resident pure result its own, of what the device
 * program updates in place the input's, else of its own. An inout result gets its own even when
 * resident, since the program reads the old value while it writes the new. */
static bool output_provide(Device *device, DeviceRun *run, size_t t, Fault *fault)
{
    NkiTensor *tensor = &run->form->tensors[t];
    tdsl_buffer *buffer = buffer_of(run, t);
    if (buffer != NULL && run->call->info->args[t].role == TDSL_OUT) {
        run->out[t] = buffer->memory;
        return true;
    }
    if (tensor->in_place) {
        run->out[t] = run->in[t];
        return true;
    }
    return memory_take(device, tensor, 1, &run->out[t], fault);
}

static bool memory_provide(Device *device, DeviceRun *run, Fault *fault)
{
    size_t n_args = (size_t)run->call->info->n_args;
    for (size_t t = 0; t < run->form->n_tensors; t++) {
        int32_t role = t < n_args ? run->call->info->args[t].role : TDSL_OUT;
        if (run->form->tensors[t].read && !input_provide(device, run, t, fault)) {
            return false;
        }
        if (role_is_result(role) && !output_provide(device, run, t, fault)) {
            return false;
        }
    }
    return true;
}

/* Everything of this run, in reverse order; resident tensors keep theirs. */
static void memory_withdraw(Device *device, DeviceRun *run, bool keep)
{
    for (size_t t = run->form->n_tensors; t-- > 0;) {
        NkiTensor *tensor = &run->form->tensors[t];
        tdsl_buffer *buffer = buffer_of(run, t);
        DeviceMemory resident = buffer != NULL ? buffer->memory : NULL;
        DeviceMemory in = run->in[t];
        DeviceMemory out = run->out[t] != in ? run->out[t] : NULL;
        if (in != NULL && in != resident) {
            memory_give(device, tensor, in, keep);
        }
        if (out != NULL && out != resident) {
            memory_give(device, tensor, out, keep);
        }
    }
}

/* --- results --- */

void tdsl_words_join(void *data, size_t bytes)
{
    unsigned char *at = data;
    for (size_t i = 0; i + sizeof(double) <= bytes; i += sizeof(double)) {
        float word[2];
        memcpy(word, at + i, sizeof word);
        double sum = (double)word[0] + (double)word[1];
        memcpy(at + i, &sum, sizeof sum);
    }
}

static bool result_is_host(const Call *call, size_t i)
{
    return role_is_result(call->info->args[i].role) && call->args[i].device == NULL;
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
            if (run->form->tensors[i].words) {
                tdsl_words_join(staged->data + at, call->bytes[i]);
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
            if (call->bytes[i] > 0) {
                memcpy(call->args[i].data, staged->data + at, call->bytes[i]);
            }
            at += call->bytes[i];
            if (call->report != NULL) {
                call->report->device_reads++;
            }
            continue;
        }
        if (run->out[i] != buffer->memory) {
            /* inout: the new value takes the old one's place */
            run->in[i] = buffer->memory;
            buffer->memory = run->out[i];
        }
        buffer->words = run->form->tensors[i].words;
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

/* --- running --- */

/* Which part of several. Always false. */
static bool part_fail(const NkiForm *form, size_t part, Fault *fault)
{
    if (form->n_parts > 1) {
        char text[sizeof fault->text];
        (void)snprintf(text, sizeof text, "part %zu of %zu: %.340s", part + 1, form->n_parts,
                       fault->text);
        memcpy(fault->text, text, sizeof text);
    }
    return false;
}

/* True with a fault of TDSL_E_NUMERICAL as DeviceOps.run. */
static bool parts_run(Device *device, DeviceRun *run, Fault *fault)
{
    NkiForm *form = run->form;
    for (size_t p = 0; p < form->n_parts; p++) {
        Fault one = {TDSL_OK, 0, false, false, ""};
        bool good = device->ops->run(device, run, &form->parts[p], &one);
        if (one.status != TDSL_OK) {
            *fault = one;
            (void)part_fail(form, p, fault);
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool run_whole(Device *device, DeviceRun *run, Fault *fault)
{
    Staged staged;
    Fault flagged = {TDSL_OK, 0, false, false, ""};
    if (!staged_make(device, run->call, &staged, fault)) {
        return false;
    }
    bool good = memory_provide(device, run, fault) && parts_run(device, run, &flagged);
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
    memory_withdraw(device, run, good && device->ops->keeps_memory);
    tdsl_context_release(device->context, staged.data, staged.bytes);
    return good;
}

/* --- forms --- */

bool tdsl_device_form(const Device *device, const Call *call, NkiForm **form, Fault *fault)
{
    NkiForm *other = NULL;
    if (device->target == NULL || strcmp((*form)->target, device->target) == 0) {
        return true;
    }
    NkiForm *fits =
        tdsl_forms_find(call->kernel, device->ops->backend, call->dims, device->target, &other);
    if (fits == NULL) {
        (void)tdsl_fault_set(fault, TDSL_E_TARGET,
                             "its NKI form was made for %s, and this device is a %s",
                             (*form)->target, device->target);
        fault->unavailable = true;
        return false;
    }
    *form = fits;
    return true;
}

static void parts_unload(Device *device, NkiForm *form)
{
    for (size_t p = form->n_parts; p-- > 0;) {
        if (form->parts[p].loaded != NULL) {
            device->ops->unload(device, &form->parts[p]);
        }
    }
}

static bool form_prepare(Device *device, NkiForm *form, Fault *fault)
{
    if (form->loaded) {
        return true;
    }
    if (form->refused.status != TDSL_OK) {
        *fault = form->refused;
        return false;
    }
    for (size_t p = 0; p < form->n_parts; p++) {
        NkiPart *part = &form->parts[p];
        if (!device->ops->prepare(device, part, fault) &&
            !(kept_spare(device, fault) && device->ops->prepare(device, part, fault))) {
            (void)part_fail(form, p, fault);
            parts_unload(device, form);
            if (fault->status == TDSL_E_NEFF) {
                form->refused = *fault;
            }
            return false;
        }
    }
    form->loaded = true;
    form->loaded_next = device->loaded;
    device->loaded = form;
    return true;
}

void tdsl_device_unload(Device *device, NkiForm *form)
{
    (void)kept_release(device, form);
    parts_unload(device, form);
    form->loaded = false;
}

bool tdsl_device_call(Call *call, NkiForm *form, Fault *fault)
{
    Device *device = NULL;
    tdsl_context *context = call->kernel->context;
    if (!tdsl_device_acquire(context, &device, fault)) {
        return false;
    }
    bool good =
        tdsl_device_form(device, call, &form, fault) && form_prepare(device, form, fault);
    if (good) {
        size_t bytes = 2 * form->n_tensors * sizeof(DeviceMemory);
        DeviceMemory *memory = tdsl_context_allocate(context, bytes);
        if (memory == NULL) {
            good = tdsl_fault_set(fault, TDSL_E_MEMORY, "no memory to run a device program");
        } else {
            memset(memory, 0, bytes);
            DeviceRun run = {call, form, memory, memory + form->n_tensors};
            good = run_whole(device, &run, fault);
            tdsl_context_release(context, memory, bytes);
        }
    }
    tdsl_device_release(device, fault);
    return good;
}
