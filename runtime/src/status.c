/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes as words, and the one way a failure is made: a status, and a message in the caller's
 * report. Messages are truncated, never lost, and hold no state of the library. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct StatusRow {
    tdsl_status status;
    const char *name;
    const char *text;
} StatusRow;

static const StatusRow status_rows[] = {
    {TDSL_OK, "TDSL_OK", "success"},
    {TDSL_E_ARGUMENT, "TDSL_E_ARGUMENT", "null pointer or unknown value"},
    {TDSL_E_SHAPE, "TDSL_E_SHAPE", "rank or extent differs from the kernel's"},
    {TDSL_E_DTYPE, "TDSL_E_DTYPE", "element type differs from the kernel's"},
    {TDSL_E_STRIDE, "TDSL_E_STRIDE", "layout is not C order, or a pointer is misaligned"},
    {TDSL_E_OVERLAP, "TDSL_E_OVERLAP", "a result overlaps another argument"},
    {TDSL_E_WORKSPACE, "TDSL_E_WORKSPACE", "workspace is too small or null"},
    {TDSL_E_OVERFLOW, "TDSL_E_OVERFLOW",
     "a size does not fit 64 bits, or a whole number a device"},
    {TDSL_E_SYMMETRY, "TDSL_E_SYMMETRY", "not symmetric as declared"},
    {TDSL_E_INDEX, "TDSL_E_INDEX", "a position lies outside"},
    {TDSL_E_DEFINITE, "TDSL_E_DEFINITE", "a matrix is not positive definite"},
    {TDSL_E_MEMORY, "TDSL_E_MEMORY", "out of memory"},
    {TDSL_E_NOT_FOUND, "TDSL_E_NOT_FOUND", "no kernel of that name"},
    {TDSL_E_ABI, "TDSL_E_ABI", "table of another version of the ABI"},
    {TDSL_E_TARGET, "TDSL_E_TARGET", "no form of the kernel runs here"},
    {TDSL_E_NO_LIBRARY, "TDSL_E_NO_LIBRARY", "device library is absent"},
    {TDSL_E_NO_SYMBOL, "TDSL_E_NO_SYMBOL", "symbol is missing in the device library"},
    {TDSL_E_DEVICE, "TDSL_E_DEVICE", "device reported an error"},
    {TDSL_E_TIMEOUT, "TDSL_E_TIMEOUT", "device or rank did not answer in time"},
    {TDSL_E_DEVICE_LOST, "TDSL_E_DEVICE_LOST", "device is lost"},
    {TDSL_E_NUMERICAL, "TDSL_E_NUMERICAL", "device finished with a numerical error"},
    {TDSL_E_NEFF, "TDSL_E_NEFF", "NEFF is missing, damaged, or of another kernel"},
    {TDSL_E_PEER, "TDSL_E_PEER", "another rank failed"},
    {TDSL_E_INTERNAL, "TDSL_E_INTERNAL", "internal error"},
};

static const StatusRow *status_row(tdsl_status status)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof status_rows[0]; i++) {
        if (status_rows[i].status == status) {
            return &status_rows[i];
        }
    }
    return NULL;
}

const char *tdsl_status_name(tdsl_status status)
{
    const StatusRow *row = status_row(status);
    return row != NULL ? row->name : "TDSL_E_UNKNOWN";
}

const char *tdsl_status_text(tdsl_status status)
{
    const StatusRow *row = status_row(status);
    return row != NULL ? row->text : "unknown status";
}

bool tdsl_report_begin(tdsl_report *report, const char *kernel)
{
    if (report == NULL) {
        return true;
    }
    if (report->struct_size != sizeof *report) {
        return false;
    }
    report->status = TDSL_OK;
    report->backend = TDSL_BACKEND_DEFAULT;
    report->reason = TDSL_REASON_NONE;
    report->cause = TDSL_OK;
    report->native = 0;
    report->multiply_adds = 0;
    report->min_nki_flops = 0;
    report->device_writes = 0;
    report->device_reads = 0;
    report->kernel = kernel;
    report->message[0] = '\0';
    return true;
}

static void TDSL_PRINTF(2, 0)
    message_append(tdsl_report *report, const char *format, va_list values)
{
    size_t used = strlen(report->message);
    (void)vsnprintf(report->message + used, sizeof report->message - used, format, values);
}

static void TDSL_PRINTF(2, 3) message_lead(tdsl_report *report, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    report->message[0] = '\0';
    message_append(report, format, values);
    va_end(values);
}

tdsl_status tdsl_fail(tdsl_report *report, tdsl_status status, const char *format, ...)
{
    if (report != NULL) {
        va_list values;
        va_start(values, format);
        report->status = status;
        report->message[0] = '\0';
        message_append(report, format, values);
        va_end(values);
    }
    return status;
}

tdsl_status tdsl_call_fail(const Call *call, tdsl_status status, const char *format, ...)
{
    if (call->report != NULL) {
        va_list values;
        va_start(values, format);
        call->report->status = status;
        message_lead(call->report, "kernel '%s': ", call->info->name);
        message_append(call->report, format, values);
        va_end(values);
    }
    return status;
}

tdsl_status tdsl_arg_fail(const Call *call, size_t arg, tdsl_status status, const char *format,
                          ...)
{
    if (call->report != NULL) {
        va_list values;
        va_start(values, format);
        call->report->status = status;
        message_lead(call->report, "kernel '%s', argument '%s': ", call->info->name,
                     call->info->args[arg].name);
        message_append(call->report, format, values);
        va_end(values);
    }
    return status;
}
