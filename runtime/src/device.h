/* SPDX-License-Identifier: Apache-2.0 */
/* A device as the dispatcher sees it: memory that can be allocated, written and read, and forms that can
 * be prepared and run. Two kinds: nrt_device.c (a NeuronCore through libnrt) and emulator.c (the printed
 * program, run by the NKI emulator, with memory of this machine). Everything here happens under the
 * context's device_lock, so a device need not be safe for threads itself.
 *
 * A device that is lost (`lost.status` is not TDSL_OK) takes no more work; a device that hangs is lost,
 * and then what it holds is never touched again. */
#ifndef TDSL_RUNTIME_DEVICE_H
#define TDSL_RUNTIME_DEVICE_H

#include "fault.h"
#include "forms.h"

/* One run: a call, its form, and device memory for each tensor of the form. */
typedef struct DeviceRun {
    const Call *call;
    NkiForm *form;
    DeviceMemory *in;  /* null for what is only written */
    DeviceMemory *out; /* null for what is only read; may be `in`'s; of temporaries too */
} DeviceRun;

static inline DeviceMemory run_memory(const DeviceRun *run, const NkiOperand *operand)
{
    bool result = operand->role == TDSL_OUT || operand->written;
    return result ? run->out[operand->tensor] : run->in[operand->tensor];
}

typedef struct DeviceOps {
    int32_t backend;   /* what a report calls it */
    bool keeps_memory; /* memory of a call's own is worth keeping for the next */
    bool (*open)(Device *device, Fault *fault);
    void (*close)(Device *device);
    bool (*allocate)(Device *device, size_t bytes, const char *name, DeviceMemory *memory,
                     Fault *fault);
    void (*release)(Device *device, DeviceMemory memory, size_t bytes);
    bool (*write)(Device *device, DeviceMemory memory, const void *data, size_t bytes,
                  Fault *fault);
    bool (*read)(Device *device, DeviceMemory memory, void *data, size_t bytes, Fault *fault);
    bool (*prepare)(Device *device, NkiPart *part, Fault *fault);
    /* True with a fault of TDSL_E_NUMERICAL when results are there but hold a NaN of the device's own. */
    bool (*run)(Device *device, const DeviceRun *run, NkiPart *part, Fault *fault);
    void (*unload)(Device *device, NkiPart *part);
} DeviceOps;

struct Device {
    const DeviceOps *ops;
    tdsl_context *context;
    bool open;
    const char *target;   /* "trn2"; null when any will do, or nobody knows */
    Fault lost;           /* why it cannot be used, or TDSL_OK */
    tdsl_buffer *buffers; /* every buffer that is alive */
    NkiForm *loaded;
    void *state; /* the kind's own */
};

/* Device memory of a tensor. The flags are atomic because a call reads them before it takes the lock. */
struct tdsl_buffer {
    tdsl_context *context;
    DeviceMemory memory;
    size_t bytes;
    bool words; /* the device's value is two f32 for each f64; under the device lock */
    atomic_bool on_device; /* the device has the current value */
    atomic_bool on_host;   /* the host has it */
    tdsl_buffer *next;
    tdsl_buffer **link; /* what points to this one */
};

extern const DeviceOps tdsl_nrt_device;
extern const DeviceOps tdsl_emulator_device;

/* The kind of device this context's settings ask for. */
int32_t tdsl_device_backend(const tdsl_context *context);

/* Takes the device lock and opens the device if it is not open. With a fault the lock is not held. */
bool tdsl_device_acquire(tdsl_context *context, Device **device, Fault *fault);
/* Gives the lock back; a fault that says so makes the device lost. `fault` may be null. */
void tdsl_device_release(Device *device, const Fault *fault);
void tdsl_device_close(tdsl_context *context);

/* The call's form, or another one for the same dimensions, that was made for this device. */
bool tdsl_device_form(const Device *device, const Call *call, NkiForm **form, Fault *fault);
/* Runs the call's form on the device. False with a fault: host memory is as it was. */
bool tdsl_device_call(Call *call, NkiForm *form, Fault *fault);
/* Memory of the device; that of earlier calls goes first where it runs short. */
bool tdsl_device_memory(Device *device, size_t bytes, const char *name, DeviceMemory *memory,
                        Fault *fault);
/* f64 numbers in the place of two f32 each, whose sums they are. */
void tdsl_words_join(void *data, size_t bytes);
/* Unloads a form and gives back the memory it kept. */
void tdsl_device_unload(Device *device, NkiForm *form);
/* Before and after the C form runs on tensors that have device memory. */
tdsl_status tdsl_device_fetch(Call *call);
void tdsl_device_outdate(Call *call);
/* Is every device tensor of the call one of this context, of the right size? */
tdsl_status tdsl_device_check(const Call *call);

#endif
