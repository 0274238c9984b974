/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: kernels of a context, sorted by name, each a pointer that stays where it is. */
#include "internal.h"

#include "forms.h"

#include <string.h>

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
static tdsl_status registry_insert(tdsl_context *context, const Table *table,
                                   tdsl_report *report)
{
    const tdsl_kernel_info *info = table->info;
    bool found = false;
    size_t at = registry_position(context, info->name, &found);
    if (found) {
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
    kernel->table = *table;
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

/* The same table? Registry lock held. */
static bool registry_has(const tdsl_context *context, const tdsl_kernel_info *given)
{
    bool found = false;
    size_t at = registry_position(context, given->name, &found);
    return found && context->kernels[at]->table.given == given;
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
    Table table;
    tdsl_status status = tdsl_table_make(context, info, &table, report);
    if (status != TDSL_OK) {
        return status;
    }
    if (report != NULL) {
        report->kernel = info->name;
    }
    (void)pthread_mutex_lock(&context->registry_lock);
    bool known = registry_has(context, info);
    status = known ? TDSL_OK : registry_insert(context, &table, report);
    (void)pthread_mutex_unlock(&context->registry_lock);
    if (known || status != TDSL_OK) {
        tdsl_table_free(context, &table);
    }
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
    return kernel != NULL ? kernel->table.given : NULL;
}

void tdsl_kernel_free(tdsl_kernel *kernel)
{
    tdsl_context *context = kernel->context;
    Workspace *spare = atomic_load(&kernel->spare);
    if (spare != NULL) {
        tdsl_context_release(context, spare, spare->bytes);
    }
    tdsl_forms_free(kernel);
    tdsl_table_free(context, &kernel->table);
    tdsl_context_release(context, kernel, sizeof *kernel);
}
