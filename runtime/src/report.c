/* SPDX-License-Identifier: Apache-2.0 */
/* A report as one line for people: what ran, or would run, and why. Numbers of operations are whole, so
 * that the locale has no say in them. */
#include "internal.h"

#include <stdio.h>

static const char *const device_names[] = {"nothing", "nothing", "C", "the device (NKI)",
                                           "the NKI emulator"};

static const char *backend_words(int32_t backend)
{
    bool known = backend >= 0 && (size_t)backend < sizeof device_names / sizeof device_names[0];
    return device_names[known ? backend : 0];
}

static int reason_text(const tdsl_report *r, char *text, size_t bytes)
{
    double flops = 2.0 * (double)r->multiply_adds;
    switch ((tdsl_reason)r->reason) {
    case TDSL_REASON_NONE:
        return snprintf(text, bytes, "no reason recorded");
    case TDSL_REASON_FORCED:
        return snprintf(text, bytes, "the backend setting says so");
    case TDSL_REASON_NO_NKI_FORM:
        return snprintf(text, bytes, "it has no NKI form for this backend");
    case TDSL_REASON_OTHER_EXTENTS:
        return snprintf(text, bytes, "its NKI forms were built for other extents");
    case TDSL_REASON_NO_C_FORM:
        return snprintf(text, bytes, "it has no C form");
    case TDSL_REASON_REQUIRED:
        return snprintf(text, bytes, "TDSL_REQUIRE_NKI is set");
    case TDSL_REASON_RESIDENT:
        return snprintf(text, bytes, "an argument is on the device already");
    case TDSL_REASON_ABOVE_THRESHOLD:
        return snprintf(text, bytes,
                        "its %.0f flops (2 per multiply-add) reach the threshold of %.0f",
                        flops, r->min_nki_flops);
    case TDSL_REASON_BELOW_THRESHOLD:
        return snprintf(text, bytes,
                        "its %.0f flops (2 per multiply-add) are below the threshold of %.0f",
                        flops, r->min_nki_flops);
    case TDSL_REASON_UNAVAILABLE:
        return snprintf(text, bytes, "the device cannot be used (%s): %s",
                        tdsl_status_name(r->cause), r->message);
    case TDSL_REASON_DEVICE_FAILED:
        return snprintf(text, bytes, "the device failed (%s): %s", tdsl_status_name(r->cause),
                        r->message);
    }
    return snprintf(text, bytes, "reason %d", (int)r->reason);
}

size_t tdsl_report_text(const tdsl_report *report, char *text, size_t bytes)
{
    char why[TDSL_MESSAGE_BYTES + 128];
    int length = 0;
    if (report == NULL) {
        length = snprintf(text, bytes, "no report");
    } else if (report->status != TDSL_OK) {
        length =
            snprintf(text, bytes, "%s: %s", tdsl_status_name(report->status), report->message);
    } else {
        char moved[64] = "";
        if (report->device_writes + report->device_reads > 0) {
            (void)snprintf(moved, sizeof moved, " (%u tensors to the device, %u back)",
                           (unsigned)report->device_writes, (unsigned)report->device_reads);
        }
        (void)reason_text(report, why, sizeof why);
        length = snprintf(text, bytes, "kernel '%s': %s, because %s%s",
                          report->kernel != NULL ? report->kernel : "",
                          backend_words(report->backend), why, moved);
    }
    return length > 0 ? (size_t)length : 0;
}
