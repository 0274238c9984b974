/* SPDX-License-Identifier: Apache-2.0 */
/* One call from end to end: check, choose, run, report. */
#include "internal.h"

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
        return tdsl_call_fail(call, TDSL_E_ARGUMENT, "%zu arguments given%s, it takes %d", n_args,
                              args == NULL ? " as a null pointer" : "", (int)call->info->n_args);
    }
    if (options != NULL && options->struct_size != sizeof *options) {
        return tdsl_call_fail(call, TDSL_E_ABI,
                              "call options of another version: start from TDSL_CALL_OPTIONS_INIT");
    }
    return tdsl_call_check(call);
}

tdsl_status tdsl_call(tdsl_kernel *kernel, tdsl_tensor *args, size_t n_args,
                      const tdsl_call_options *options, tdsl_report *report)
{
    Call call;
    if (!tdsl_report_begin(report, kernel != NULL ? kernel->info->name : NULL)) {
        return TDSL_E_ABI;
    }
    tdsl_status status = call_begin(&call, kernel, args, n_args, options, report);
    if (status != TDSL_OK) {
        return status;
    }
    return tdsl_call_host(&call);
}
