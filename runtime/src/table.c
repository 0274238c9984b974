/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel tables as programs give them. A table is validated once, here, so that calls may trust
 * it; and one whose structures are longer than this build's is copied in this build's sizes, so
 * that calls may index it. */
#include "internal.h"

#include <string.h>

/* The head: all that may be read before the sizes are known to be good. */
static tdsl_status head_validate(const tdsl_kernel_info *info, tdsl_report *report)
{
    if (info->struct_size < sizeof *info || info->abi_version < TDSL_ABI_VERSION ||
        info->dim_size < sizeof *info->dims || info->arg_size < sizeof *info->args ||
        info->extent_size < sizeof *info->args->extents ||
        (info->dim_size | info->arg_size | info->extent_size) % sizeof(int64_t) != 0) {
        return tdsl_fail(
            report, TDSL_E_ABI,
            "kernel table of %u bytes, ABI version %u: this runtime reads %zu bytes or "
            "more, version %d or later, and its arrays in sizes as of then",
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
    if (info->n_computed < 0 || info->n_computed > TDSL_MAX_DIMS - info->n_dims ||
        (info->n_computed > 0 &&
         (info->computed == NULL || info->computed_size < sizeof *info->computed ||
          info->computed_size % sizeof(int64_t) != 0))) {
        return tdsl_fail(report, TDSL_E_ABI,
                         "kernel '%s': %d computed extents: at most %d with %d open "
                         "dimensions, with their table",
                         info->name, (int)info->n_computed, TDSL_MAX_DIMS, (int)info->n_dims);
    }
    if (info->multiply_adds == NULL || (info->call != NULL && info->workspace_bytes == NULL) ||
        (info->call_threads != NULL && info->workspace_bytes_threads == NULL)) {
        return tdsl_fail(report, TDSL_E_ABI, "kernel '%s': a function of its table is null",
                         info->name);
    }
    return TDSL_OK;
}

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
        bool open = extent->dim >= 0 && extent->dim < info->n_dims + info->n_computed;
        bool fixed = extent->dim == -1 && extent->fixed >= 0;
        if (!open && !fixed) {
            return tdsl_fail(report, TDSL_E_ABI,
                             "kernel '%s', argument '%s': axis %d names no dimension",
                             info->name, arg->name, (int)axis);
        }
    }
    bool good = arg->n_exchanges == 0 || arg->exchanges != NULL;
    for (int64_t k = 0; good && k < arg->n_exchanges; k++) {
        const int32_t *to = arg->exchanges[k].to;
        for (int32_t axis = 0; good && axis < arg->rank; axis++) {
            good = to != NULL && to[axis] >= 0 && to[axis] < arg->rank;
        }
    }
    if (!good) {
        return tdsl_fail(report, TDSL_E_ABI,
                         "kernel '%s', argument '%s': an exchange is of no axes of it",
                         info->name, arg->name);
    }
    return TDSL_OK;
}

/* Is it made of what comes before it? */
static bool computed_is_good(const tdsl_kernel_info *info, int32_t index)
{
    const tdsl_computed *x = &info->computed[index];
    bool good = x->divisor >= 1 && (x->product == 0 || (x->divisor == 1 && x->base >= 0)) &&
                x->n_terms >= 0 && x->n_terms <= TDSL_MAX_DIMS &&
                (x->n_terms == 0 || x->terms != NULL);
    for (int32_t t = 0; good && t < x->n_terms; t++) {
        good = x->terms[t].dim >= 0 && x->terms[t].dim < info->n_dims + index;
    }
    return good;
}

static tdsl_status arrays_validate(const tdsl_kernel_info *info, tdsl_report *report)
{
    tdsl_status status = TDSL_OK;
    for (int32_t d = 0; status == TDSL_OK && d < info->n_dims; d++) {
        if (info->dims[d].name == NULL) {
            status = tdsl_fail(report, TDSL_E_ABI, "kernel '%s': open dimension %d has no name",
                               info->name, (int)d);
        }
    }
    for (int32_t c = 0; status == TDSL_OK && c < info->n_computed; c++) {
        if (!computed_is_good(info, c)) {
            status = tdsl_fail(report, TDSL_E_ABI,
                               "kernel '%s': computed extent %d is made of no dimension before "
                               "it, or divided by no number",
                               info->name, (int)c);
        }
    }
    for (int32_t i = 0; status == TDSL_OK && i < info->n_args; i++) {
        status = arg_validate(info, i, report);
    }
    return status;
}

/* --- other sizes --- */

static const void *element(const void *array, uint32_t size, size_t at)
{
    return (const unsigned char *)array + at * size;
}

/* Bytes of the copy, 0 when a rank makes no sense. */
static size_t copy_bytes(const tdsl_kernel_info *given)
{
    size_t bytes = sizeof *given + (size_t)given->n_dims * sizeof(tdsl_dim_info) +
                   (size_t)given->n_args * sizeof(tdsl_arg_info) +
                   (size_t)given->n_computed * sizeof(tdsl_computed);
    for (size_t i = 0; i < (size_t)given->n_args; i++) {
        const tdsl_arg_info *arg = element(given->args, given->arg_size, i);
        if (arg->rank < 0 || arg->rank > TDSL_MAX_RANK) {
            return 0;
        }
        bytes += (size_t)arg->rank * sizeof(tdsl_extent);
    }
    return bytes;
}

static void table_copy(const tdsl_kernel_info *given, tdsl_kernel_info *info)
{
    tdsl_dim_info *dims = (tdsl_dim_info *)(void *)(info + 1);
    tdsl_arg_info *args = (tdsl_arg_info *)(void *)(dims + given->n_dims);
    tdsl_computed *computed = (tdsl_computed *)(void *)(args + given->n_args);
    tdsl_extent *extents = (tdsl_extent *)(void *)(computed + given->n_computed);
    *info = *given;
    info->dims = dims;
    info->args = args;
    info->computed = computed;
    for (size_t c = 0; c < (size_t)given->n_computed; c++) {
        memcpy(&computed[c], element(given->computed, given->computed_size, c),
               sizeof *computed);
    }
    for (size_t d = 0; d < (size_t)given->n_dims; d++) {
        memcpy(&dims[d], element(given->dims, given->dim_size, d), sizeof *dims);
    }
    for (size_t i = 0; i < (size_t)given->n_args; i++) {
        memcpy(&args[i], element(given->args, given->arg_size, i), sizeof *args);
        const tdsl_extent *from = args[i].extents;
        args[i].extents = from != NULL ? extents : NULL;
        for (size_t axis = 0; from != NULL && axis < (size_t)args[i].rank; axis++) {
            memcpy(extents++, element(from, given->extent_size, axis), sizeof *extents);
        }
    }
}

static bool is_of_this_build(const tdsl_kernel_info *info)
{
    return info->dim_size == sizeof *info->dims && info->arg_size == sizeof *info->args &&
           info->extent_size == sizeof *info->args->extents &&
           (info->n_computed == 0 || info->computed_size == sizeof *info->computed);
}

tdsl_status tdsl_table_make(tdsl_context *context, const tdsl_kernel_info *given, Table *table,
                            tdsl_report *report)
{
    *table = (Table){given, given, NULL, 0};
    tdsl_status status = head_validate(given, report);
    if (status != TDSL_OK) {
        return status;
    }
    if (!is_of_this_build(given)) {
        table->copy_bytes = copy_bytes(given);
        if (table->copy_bytes == 0) {
            return tdsl_fail(report, TDSL_E_ABI,
                             "kernel '%s': the rank of an argument is outside 0 to %d",
                             given->name, TDSL_MAX_RANK);
        }
        table->copy = tdsl_context_allocate(context, table->copy_bytes);
        if (table->copy == NULL) {
            return tdsl_fail(report, TDSL_E_MEMORY, "kernel '%s': no memory for its table",
                             given->name);
        }
        table_copy(given, table->copy);
        table->info = table->copy;
    }
    status = arrays_validate(table->info, report);
    if (status != TDSL_OK) {
        tdsl_table_free(context, table);
    }
    return status;
}

void tdsl_table_free(tdsl_context *context, Table *table)
{
    tdsl_context_release(context, table->copy, table->copy_bytes);
    table->copy = NULL;
}
