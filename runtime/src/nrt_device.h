/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the NeuronCore device share: nrt_device.c opens it and moves bytes,
 * nrt_model.c loads and runs device programs. */
#ifndef TDSL_RUNTIME_NRT_DEVICE_H
#define TDSL_RUNTIME_NRT_DEVICE_H

#include "device.h"
#include "nrt_library.h"

/* A call to make; null, and a fault, without memory. */
NrtCall *tdsl_nrt_device_call(const Device *device, NrtFunction function, Fault *fault);
/* As tdsl_nrt_call_run, with the device's library and deadline. */
bool tdsl_nrt_device_run(const Device *device, NrtCall **call, Fault *fault);
/* A call that frees something. There is nobody to tell that it failed, and nothing is freed twice. */
void tdsl_nrt_device_free(Device *device, NrtFunction function, void *handle,
                          NrtTensorInfoArray *info);
void tdsl_nrt_call_name(NrtCall *call, const char *name);

/* DeviceOps of nrt_model.c. */
bool tdsl_nrt_prepare(Device *device, NkiPart *part, Fault *fault);
bool tdsl_nrt_run(Device *device, const DeviceRun *run, NkiPart *part, Fault *fault);
void tdsl_nrt_unload(Device *device, NkiPart *part);
/* No tensor set holds this memory any more. */
void tdsl_nrt_forget(Device *device, DeviceMemory memory);

#endif
