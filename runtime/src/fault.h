/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong on the way to or on a device, before it is decided whether the call fails with it or
 * runs in C instead and reports it. */
#ifndef TDSL_RUNTIME_FAULT_H
#define TDSL_RUNTIME_FAULT_H

#include "internal.h"

typedef struct Fault {
    tdsl_status status;
    int32_t native;   /* libnrt's number, 0 if it had none to do with it */
    bool lost;        /* nothing more can be done with this device */
    bool unavailable; /* it was so before the call: nothing was tried */
    char text[384];   /* without the kernel's name */
} Fault;

/* Always false, so that a failing function can end with `return tdsl_fault_set(...)`. */
bool tdsl_fault_set(Fault *fault, tdsl_status status, const char *format, ...)
    TDSL_PRINTF(3, 4);

/* integers.c: do device programs compute exactly with the integers in host memory that a call gives? */
bool tdsl_integers_fit(const Call *call, Fault *fault);

#endif
