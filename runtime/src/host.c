/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the C form of a kernel: workspace, pointers, call. A workspace the runtime made is kept with its
 * kernel, one at a time behind an atomic pointer: a thread that finds none makes its own. */
#include "internal.h"

#include <string.h>

/* The header of a workspace block takes one alignment unit, its memory the rest. */
static Workspace *workspace_take(tdsl_kernel *kernel, size_t bytes)
{
    Workspace *spare = atomic_exchange(&kernel->spare, NULL);
    size_t total = 0;
    if (spare != NULL && spare->bytes - WORKSPACE_ALIGNMENT >= bytes) {
        return spare;
    }
    if (spare != NULL) {
        tdsl_context_release(kernel->context, spare, spare->bytes);
    }
    if (bytes > SIZE_MAX - WORKSPACE_ALIGNMENT) {
        return NULL;
    }
    total = bytes + WORKSPACE_ALIGNMENT;
    Workspace *made = tdsl_context_allocate(kernel->context, total);
    if (made != NULL) {
        made->memory = (unsigned char *)made + WORKSPACE_ALIGNMENT;
        made->bytes = total;
    }
    return made;
}

static void workspace_give(tdsl_kernel *kernel, Workspace *workspace)
{
    Workspace *other = atomic_exchange(&kernel->spare, workspace);
    if (other != NULL) {
        tdsl_context_release(kernel->context, other, other->bytes);
    }
}

/* Null: the caller's alone. */
static const tdsl_threads *call_threads(const Call *call)
{
    const tdsl_threads *threads = call->options == NULL ? NULL : call->options->threads;
    bool several = threads != NULL && threads->count > 1 && call->info->call_threads != NULL;
    return several ? threads : NULL;
}

static tdsl_status host_run(Call *call, void *workspace, size_t bytes)
{
    void *pointers[TDSL_MAX_ARGS];
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        pointers[i] = call->args[i].data;
    }
    const tdsl_threads *threads = call_threads(call);
    tdsl_status status =
        threads == NULL
            ? call->info->call(call->dims, pointers, workspace, bytes)
            : call->info->call_threads(call->dims, pointers, workspace, bytes, threads);
    if (status == TDSL_E_INDEX) {
        return tdsl_positions_fail(call, pointers);
    }
    if (status == TDSL_E_DEFINITE) {
        const unsigned char *first = (unsigned char *)workspace + (-(uintptr_t)workspace & 63u);
        int64_t code;
        memcpy(&code, first, sizeof code);
        return tdsl_call_fail(call, status,
                              "matrix %lld of a cholesky is not positive definite: pivot %lld",
                              (long long)(code >> 31), (long long)(code & INT32_MAX));
    }
    if (status != TDSL_OK) {
        return tdsl_call_fail(call, status, "its C form returned %s: %s",
                              tdsl_status_name(status), tdsl_status_text(status));
    }
    return TDSL_OK;
}

tdsl_status tdsl_call_host(Call *call)
{
    const tdsl_call_options *options = call->options;
    size_t need = call->info->workspace_bytes(call->dims);
    if (need == SIZE_MAX) {
        return tdsl_call_fail(
            call, TDSL_E_OVERFLOW,
            "the size of its workspace does not fit 64 bits for these extents");
    }
    if (options != NULL && options->workspace != NULL) {
        if (options->workspace_bytes < need) {
            return tdsl_call_fail(call, TDSL_E_WORKSPACE,
                                  "workspace has %zu bytes, these extents need %zu",
                                  options->workspace_bytes, need);
        }
        return host_run(call, options->workspace, options->workspace_bytes);
    }
    const tdsl_threads *threads = call_threads(call);
    if (threads != NULL) {
        size_t more = call->info->workspace_bytes_threads(call->dims, threads->count);
        need = more == SIZE_MAX ? need : more; /* else as many as there is memory for */
    }
    if (need == 0) {
        return host_run(call, NULL, 0);
    }
    Workspace *workspace = workspace_take(call->kernel, need);
    if (workspace == NULL) {
        return tdsl_call_fail(call, TDSL_E_MEMORY, "no memory for a workspace of %zu bytes",
                              need);
    }
    tdsl_status status = host_run(call, workspace->memory, need);
    workspace_give(call->kernel, workspace);
    return status;
}
