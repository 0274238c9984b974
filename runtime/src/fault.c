/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the device, as statuses with a text. */
#include "fault.h"

#include <stdarg.h>
#include <stdio.h>

bool tdsl_fault_set(Fault *fault, tdsl_status status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fault->status = status;
    fault->native = 0;
    fault->lost = false;
    fault->unavailable = false;
    (void)vsnprintf(fault->text, sizeof fault->text, format, values);
    va_end(values);
    return false;
}
