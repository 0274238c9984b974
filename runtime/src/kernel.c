/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: kernels of a context, sorted by name, each a pointer that stays where it is. A
 * table is validated once, here, so that calls may trust it. */
#include "internal.h"

#include "forms.h"

#include <string.h>

static tdsl_status arg_validate(const tdsl_kernel_info *info, int32_t index,
                                tdsl_report *report)
{
    const tdsl_arg_info *arg = &info->args[index];
    if (arg->name == NULL || arg->name[0] == '\0') {
        return tdsl_fail(report, TDSL_E_ABI, "kernel '%s': argument %d has no name", info->name,
                         (int)index);
    }
    bool scalar = arg->role == TDSL_SCALAR;
    if ((!scalar && arg->role != TDSL_IN && !role_is_result(arg->role)) ||
        tdsl_dtype_bytes(arg->dtype) == 0 || (scalar && arg->rank != 0)) {
        return tdsl_fail(
            report, TDSL_E_ABI,
            "kernel '%s', argument '%s': role %d, dtype %d, rank %d is no argument", info->name,
            arg->name, (int)arg->role, (int)arg->dtype, (int)arg->rank);
    }
    if (arg->rank < 0 || arg->rank > TDSL_MAX_RANK || (arg->rank > 0 && arg->extents == NULL)) {
        return tdsl_fail(
            report, TDSL_E_ABI,
            "kernel '%s', argument '%s': rank %d is outside 0 to %d, or has no extents",
            info->name, arg->name, (int)arg->rank, TDSL_MAX_RANK);
    }
    for (int32_t axis = 0; axis < arg->rank; axis++) {
        const tdsl_extent *extent = &arg->extents[axis];
        bool open = extent->dim >= 0 && extent->dim < info->n_dims;
        bool fixed = extent->dim == -1 && extent->fixed >= 0;
        if (!open && !fixed) {
            return tdsl_fail(report, TDSL_E_ABI,
                             "kernel '%s', argument '%s': axis %d names no dimension",
                             info->name, arg->name, (int)axis);
        }
    }
    return TDSL_OK;
}

tdsl_status tdsl_kernel_validate(const tdsl_kernel_info *info, tdsl_report *report)
{
    if (info->struct_size < sizeof *info || info->abi_version < TDSL_ABI_VERSION) {
        return tdsl_fail(
            report, TDSL_E_ABI,
            "kernel table of %u bytes, ABI version %u: this runtime reads %zu bytes or "
            "more, version %d or later",
            (unsigned)info->struct_size, (unsigned)info->abi_version, sizeof *info,
            TDSL_ABI_VERSION);
    }
    if (info->name == NULL || info->name[0] == '\0') {
        return tdsl_fail(report, TDSL_E_ABI, "kernel table without a name");
    }
    if (info->n_args < 0 || info->n_args > TDSL_MAX_ARGS || info->n_dims < 0 ||
        info->n_dims > TDSL_MAX_DIMS || (info->n_args > 0 && info->args == NULL) ||
        (info->n_dims > 0 && info->dims == NULL)) {
        return tdsl_fail(
            report, TDSL_E_ABI,
            "kernel '%s': %d arguments, %d open dimensions: at most %d and %d, with "
            "their tables",
            info->name, (int)info->n_args, (int)info->n_dims, TDSL_MAX_ARGS, TDSL_MAX_DIMS);
    }
    if (info->multiply_adds == NULL || (info->call != NULL && info->workspace_bytes == NULL)) {
        return tdsl_fail(report, TDSL_E_ABI, "kernel '%s': a function of its table is null",
                         info->name);
    }
    tdsl_status status = TDSL_OK;
    for (int32_t d = 0; status == TDSL_OK && d < info->n_dims; d++) {
        if (info->dims[d].name == NULL) {
            status = tdsl_fail(report, TDSL_E_ABI, "kernel '%s': open dimension %d has no name",
                               info->name, (int)d);
        }
    }
    for (int32_t i = 0; status == TDSL_OK && i < info->n_args; i++) {
        status = arg_validate(info, i, report);
    }
    return status;
}

/* Position of `name`, or where it belongs. The registry lock is held. */
static size_t registry_position(const tdsl_context *context, const char *name, bool *found)
{
    size_t low = 0;
    size_t high = context->n_kernels;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(context->kernels[middle]->info->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool registry_grow(tdsl_context *context)
{
    if (context->n_kernels < context->kernel_capacity) {
        return true;
    }
    size_t capacity = context->kernel_capacity == 0 ? 16 : 2 * context->kernel_capacity;
    tdsl_kernel **grown = tdsl_context_allocate(context, capacity * sizeof(tdsl_kernel *));
    if (grown == NULL) {
        return false;
    }
    if (context->n_kernels > 0) {
        memcpy(grown, context->kernels, context->n_kernels * sizeof(tdsl_kernel *));
    }
    tdsl_context_release(context, context->kernels,
                         context->kernel_capacity * sizeof(tdsl_kernel *));
    context->kernels = grown;
    context->kernel_capacity = capacity;
    return true;
}

/* Registry lock held. */
static tdsl_status registry_insert(tdsl_context *context, const tdsl_kernel_info *info,
                                   tdsl_report *report)
{
    bool found = false;
    size_t at = registry_position(context, info->name, &found);
    if (found) {
        if (context->kernels[at]->info == info) {
            return TDSL_OK;
        }
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "kernel '%s': another table of this name is registered", info->name);
    }
    tdsl_kernel *kernel = NULL;
    if (registry_grow(context)) {
        kernel = tdsl_context_allocate(context, sizeof *kernel);
    }
    if (kernel == NULL) {
        return tdsl_fail(report, TDSL_E_MEMORY, "kernel '%s': no memory to register it",
                         info->name);
    }
    kernel->context = context;
    kernel->info = info;
    atomic_init(&kernel->spare, NULL);
    atomic_init(&kernel->forms, NULL);
    atomic_init(&kernel->logged, 0);
    memmove(context->kernels + at + 1, context->kernels + at,
            (context->n_kernels - at) * sizeof(tdsl_kernel *));
    context->kernels[at] = kernel;
    context->n_kernels++;
    return TDSL_OK;
}

tdsl_status tdsl_register(tdsl_context *context, const tdsl_kernel_info *info,
                          tdsl_report *report)
{
    if (!tdsl_report_begin(report, NULL)) {
        return TDSL_E_ABI;
    }
    if (context == NULL || info == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "tdsl_register: %s is null",
                         context == NULL ? "context" : "the kernel's table");
    }
    tdsl_status status = tdsl_kernel_validate(info, report);
    if (status != TDSL_OK) {
        return status;
    }
    if (report != NULL) {
        report->kernel = info->name;
    }
    (void)pthread_mutex_lock(&context->registry_lock);
    status = registry_insert(context, info, report);
    (void)pthread_mutex_unlock(&context->registry_lock);
    return status;
}

tdsl_status tdsl_register_all(tdsl_context *context, const tdsl_kernel_info *const *infos,
                              tdsl_report *report)
{
    if (!tdsl_report_begin(report, NULL)) {
        return TDSL_E_ABI;
    }
    if (infos == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT,
                         "tdsl_register_all: the list of kernels is null");
    }
    tdsl_status status = TDSL_OK;
    for (size_t i = 0; status == TDSL_OK && infos[i] != NULL; i++) {
        status = tdsl_register(context, infos[i], report);
    }
    return status;
}

tdsl_status tdsl_find(tdsl_context *context, const char *name, tdsl_kernel **kernel,
                      tdsl_report *report)
{
    if (!tdsl_report_begin(report, NULL)) {
        return TDSL_E_ABI;
    }
    if (context == NULL || name == NULL || kernel == NULL) {
        return tdsl_fail(report, TDSL_E_ARGUMENT, "tdsl_find: a null pointer");
    }
    (void)pthread_mutex_lock(&context->registry_lock);
    bool found = false;
    size_t at = registry_position(context, name, &found);
    if (found) {
        *kernel = context->kernels[at];
    }
    size_t count = context->n_kernels;
    (void)pthread_mutex_unlock(&context->registry_lock);
    if (!found) {
        return tdsl_fail(report, TDSL_E_NOT_FOUND,
                         "kernel '%s': not registered in this context, which has %zu", name,
                         count);
    }
    if (report != NULL) {
        report->kernel = (*kernel)->info->name;
    }
    return TDSL_OK;
}

tdsl_kernel *tdsl_kernel_at(tdsl_context *context, size_t index)
{
    if (context == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&context->registry_lock);
    tdsl_kernel *kernel = index < context->n_kernels ? context->kernels[index] : NULL;
    (void)pthread_mutex_unlock(&context->registry_lock);
    return kernel;
}

const tdsl_kernel_info *tdsl_kernel_table(const tdsl_kernel *kernel)
{
    return kernel != NULL ? kernel->info : NULL;
}

void tdsl_kernel_free(tdsl_kernel *kernel)
{
    tdsl_context *context = kernel->context;
    Workspace *spare = atomic_load(&kernel->spare);
    if (spare != NULL) {
        tdsl_context_release(context, spare, spare->bytes);
    }
    tdsl_forms_free(kernel);
    tdsl_context_release(context, kernel, sizeof *kernel);
}
