/* SPDX-License-Identifier: Apache-2.0 */
/* One call from end to end: check, choose, run, report. The choice is made in one function from the
 * settings, the kernel's forms, the arguments' residence and the work, in that order, and is data: what
 * tdsl_dispatch_explain prints is what tdsl_call does. A call that was meant for the device and runs in C
 * says so in its report and to the context's log; where the device is required it fails instead. */
#include "device.h"

#include <stdio.h>

typedef struct Choice {
    int32_t backend; /* C, or the kind of device */
    int32_t reason;
    bool strict; /* the device, or a failure */
    NkiForm *form;
} Choice;

static tdsl_status call_begin(Call *call, tdsl_kernel *kernel, tdsl_tensor *args, size_t n_args,
                              const tdsl_call_options *options, tdsl_report *report)
{
    if (kernel == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "tdsl_call: kernel is null");
    }
    call->kernel = kernel;
    call->info = kernel->info;
    call->args = args;
    call->options = options;
    call->report = report;
    if (n_args != (size_t)call->info->n_args || (args == NULL && n_args != 0)) {
        return tdsl_call_fail(call, TDSL_E_ARGUMENT, "%zu arguments given%s, it takes %d",
                              n_args, args == NULL ? " as a null pointer" : "",
                              (int)call->info->n_args);
    }
    if (options != NULL && (options->struct_size != sizeof *options ||
                            (options->flags & ~TDSL_CHECK_SYMMETRY) != 0)) {
        return tdsl_call_fail(
            call, TDSL_E_ABI,
            "call options of another version: start from TDSL_CALL_OPTIONS_INIT");
    }
    tdsl_status status = tdsl_call_check(call);
    return status == TDSL_OK && call->any_device ? tdsl_device_check(call) : status;
}

/* --- choice --- */

/* "m=2, k=3", of a form or a call. */
static const char *dims_text(const tdsl_kernel_info *info, const int64_t *dims, char *text,
                             size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (int32_t d = 0; d < info->n_dims && at < bytes; d++) {
        int wrote = snprintf(text + at, bytes - at, "%s%s=%lld", d > 0 ? ", " : "",
                             info->dims[d].name, (long long)dims[d]);
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    return text;
}

static tdsl_status fail_no_form(const Call *call, const NkiForm *other, int32_t backend)
{
    const char *what = backend == TDSL_BACKEND_EMULATOR ? "program for the emulator" : "NEFF";
    const char *instead = call->info->call == NULL ? ", and no C form" : "";
    char here[96];
    char there[96];
    if (other != NULL) {
        return tdsl_call_fail(call, TDSL_E_TARGET,
                              "called with %s, but its %s was built for %s%s",
                              dims_text(call->info, call->dims, here, sizeof here), what,
                              dims_text(call->info, other->dims, there, sizeof there), instead);
    }
    return tdsl_call_fail(call, TDSL_E_TARGET, "it has no %s%s", what, instead);
}

static bool any_resident(const Call *call)
{
    for (size_t i = 0; call->any_device && i < (size_t)call->info->n_args; i++) {
        if (call->args[i].device != NULL) {
            return true;
        }
    }
    return false;
}

/* The reason to use the device; BELOW_THRESHOLD when there is none. */
static int32_t device_reason(const Call *call)
{
    const Settings *settings = &call->kernel->context->settings;
    if (settings->backend != TDSL_BACKEND_AUTO) {
        return TDSL_REASON_FORCED;
    }
    if (settings->require_nki) {
        return TDSL_REASON_REQUIRED;
    }
    if (call->info->call == NULL) {
        return TDSL_REASON_NO_C_FORM;
    }
    if (any_resident(call)) {
        return TDSL_REASON_RESIDENT;
    }
    return 2.0 * (double)call->multiply_adds >= settings->min_nki_flops
               ? TDSL_REASON_ABOVE_THRESHOLD
               : TDSL_REASON_BELOW_THRESHOLD;
}

static tdsl_status choose(Call *call, Choice *choice)
{
    const Settings *settings = &call->kernel->context->settings;
    NkiForm *other = NULL;
    choice->backend = TDSL_BACKEND_C;
    choice->form = NULL;
    choice->strict = false;
    if (settings->backend == TDSL_BACKEND_C) {
        choice->reason = TDSL_REASON_FORCED;
        return call->info->call != NULL
                   ? TDSL_OK
                   : tdsl_call_fail(call, TDSL_E_TARGET,
                                    "the backend is c, and it has no C form");
    }
    int32_t device = tdsl_device_backend(call->kernel->context);
    choice->strict = settings->backend != TDSL_BACKEND_AUTO || settings->require_nki ||
                     call->info->call == NULL;
    choice->form = tdsl_forms_find(call->kernel, device, call->dims, NULL, &other);
    if (choice->form == NULL) {
        choice->reason = other != NULL ? TDSL_REASON_OTHER_EXTENTS : TDSL_REASON_NO_NKI_FORM;
        return choice->strict ? fail_no_form(call, other, device) : TDSL_OK;
    }
    call->multiply_adds = call->info->multiply_adds(call->dims);
    choice->reason = device_reason(call);
    if (choice->reason != TDSL_REASON_BELOW_THRESHOLD) {
        choice->backend = device;
    }
    return TDSL_OK;
}

static void choice_report(const Call *call, const Choice *choice)
{
    if (call->report != NULL) {
        call->report->backend = choice->backend;
        call->report->reason = choice->reason;
        call->report->multiply_adds = call->info->multiply_adds(call->dims);
        call->report->min_nki_flops = call->kernel->context->settings.min_nki_flops;
    }
}

/* --- running --- */

static tdsl_status run_in_c(Call *call)
{
    if (!call->any_device) {
        return tdsl_call_host(call);
    }
    tdsl_status status = tdsl_device_fetch(call);
    if (status == TDSL_OK) {
        status = tdsl_call_host(call);
        tdsl_device_outdate(call);
    }
    return status;
}

static tdsl_status fail_on_device(const Call *call, const Fault *fault, int32_t backend)
{
    if (call->report != NULL) {
        call->report->native = fault->native;
    }
    return tdsl_call_fail(call, fault->status, "%s: %s",
                          backend == TDSL_BACKEND_EMULATOR ? "emulator" : "device",
                          fault->text);
}

/* The report learns why the C form runs, or would, and the log where it does. */
static void fall_back(Call *call, const Fault *fault, Choice *choice, bool runs)
{
    int32_t device = choice->backend;
    tdsl_context *context = call->kernel->context;
    tdsl_report own = TDSL_REPORT_INIT;
    Call quoted = *call;
    if (call->report == NULL) {
        quoted.report = &own;
    }
    (void)fail_on_device(&quoted, fault, device);
    quoted.report->status = TDSL_OK;
    quoted.report->cause = fault->status;
    choice->backend = TDSL_BACKEND_C;
    choice->reason = fault->unavailable ? TDSL_REASON_UNAVAILABLE : TDSL_REASON_DEVICE_FAILED;
    choice_report(call, choice);
    uint64_t bit = UINT64_C(1) << ((uint32_t)-fault->status & 63);
    if (runs && (atomic_fetch_or(&call->kernel->logged, bit) & bit) == 0) {
        char line[TDSL_MESSAGE_BYTES + 64];
        (void)snprintf(line, sizeof line, "%s; the C form runs instead",
                       quoted.report->message);
        context->log(context->user, line);
    }
}

static tdsl_status run_on_device(Call *call, Choice *choice)
{
    Fault fault;
    choice_report(call, choice);
    if (tdsl_integers_fit(call, &fault) && tdsl_device_call(call, choice->form, &fault)) {
        return fault.status == TDSL_OK ? TDSL_OK
                                       : fail_on_device(call, &fault, choice->backend);
    }
    if (choice->strict) {
        int32_t device = choice->backend;
        if (call->report != NULL) {
            call->report->backend = TDSL_BACKEND_DEFAULT;
        }
        return fail_on_device(call, &fault, device);
    }
    fall_back(call, &fault, choice, true);
    return run_in_c(call);
}

tdsl_status tdsl_call(tdsl_kernel *kernel, tdsl_tensor *args, size_t n_args,
                      const tdsl_call_options *options, tdsl_report *report)
{
    Call call;
    Choice choice;
    if (!tdsl_report_begin(report, kernel != NULL ? kernel->info->name : NULL)) {
        return TDSL_E_ABI;
    }
    tdsl_status status = call_begin(&call, kernel, args, n_args, options, report);
    if (status == TDSL_OK) {
        status = choose(&call, &choice);
    }
    if (status == TDSL_OK) {
        status = tdsl_symmetry_check(&call, false);
    }
    if (status == TDSL_OK && choice.backend != TDSL_BACKEND_C) {
        status = tdsl_positions_check(&call);
    }
    if (status == TDSL_OK && choice.backend != TDSL_BACKEND_C) {
        status = run_on_device(&call, &choice);
    } else if (status == TDSL_OK) {
        choice_report(&call, &choice);
        status = run_in_c(&call);
    }
    return status == TDSL_OK ? tdsl_symmetry_check(&call, true) : status;
}

/* Would the device take it? Opens the device, and remembers what is known of the form. */
static tdsl_status device_explain(Call *call, Choice *choice)
{
    Fault fault;
    Device *device = NULL;
    bool good = tdsl_device_acquire(call->kernel->context, &device, &fault);
    if (good) {
        good = tdsl_device_form(device, call, &choice->form, &fault);
        if (good && choice->form->refused.status != TDSL_OK) {
            fault = choice->form->refused;
            good = false;
        }
        tdsl_device_release(device, NULL);
    }
    if (good) {
        return TDSL_OK;
    }
    if (choice->strict) {
        return fail_on_device(call, &fault, choice->backend);
    }
    fall_back(call, &fault, choice, false);
    return TDSL_OK;
}

tdsl_status tdsl_dispatch_explain(tdsl_kernel *kernel, tdsl_tensor *args, size_t n_args,
                                  const tdsl_call_options *options, tdsl_report *report)
{
    Call call;
    Choice choice;
    if (!tdsl_report_begin(report, kernel != NULL ? kernel->info->name : NULL)) {
        return TDSL_E_ABI;
    }
    tdsl_status status = call_begin(&call, kernel, args, n_args, options, report);
    if (status == TDSL_OK) {
        status = choose(&call, &choice);
    }
    if (status != TDSL_OK) {
        return status;
    }
    choice_report(&call, &choice);
    return choice.backend != TDSL_BACKEND_C ? device_explain(&call, &choice) : TDSL_OK;
}
