/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of one call, before anything runs: each argument against the kernel's table, the open
 * dimensions deduced from the extents (the first argument that has one binds it, later ones must agree),
 * and no result overlapping another argument. The path without a failure allocates and formats nothing;
 * it is what every call pays. */
#include "internal.h"

static tdsl_status extents_check(Call *call, size_t index, const tdsl_tensor *tensor)
{
    const tdsl_arg_info *arg = &call->info->args[index];
    for (int32_t axis = 0; axis < arg->rank; axis++) {
        int64_t extent = tensor->extents[axis];
        if (extent < 0) {
            return tdsl_arg_fail(call, index, TDSL_E_SHAPE,
                                 "extent of axis %d is %lld, below 0", (int)axis,
                                 (long long)extent);
        }
        const tdsl_extent *want = &arg->extents[axis];
        int64_t bound = want->dim < 0 ? want->fixed : call->dims[want->dim];
        if (bound == DIM_UNBOUND) {
            call->dims[want->dim] = extent;
        } else if (bound != extent) {
            return tdsl_extent_fail(call, index, axis, extent);
        }
    }
    return TDSL_OK;
}

static bool tensor_is_empty(const tdsl_tensor *tensor)
{
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        if (tensor->extents[axis] == 0) {
            return true;
        }
    }
    return false;
}

LayoutFault tdsl_tensor_layout(const tdsl_tensor *tensor, size_t *bytes, int32_t *axis,
                               size_t *stride)
{
    size_t elements = 1;
    bool fits = true;
    for (int32_t a = tensor->rank; a-- > 0;) {
        int64_t extent = tensor->extents[a];
        if (tensor->strides != NULL && extent > 1 && fits &&
            (tensor->strides[a] < 0 || (uint64_t)tensor->strides[a] != elements) &&
            !tensor_is_empty(tensor)) {
            *axis = a;
            *stride = elements;
            return LAYOUT_STRIDE;
        }
        fits = size_multiply(elements, (size_t)extent, &elements) && fits;
    }
    *bytes = 0;
    if (elements != 0 || !tensor_is_empty(tensor)) {
        fits = size_multiply(elements, tdsl_dtype_bytes(tensor->dtype), bytes) && fits;
        if (!fits || *bytes > (size_t)PTRDIFF_MAX) {
            return LAYOUT_OVERFLOW;
        }
    }
    return LAYOUT_GOOD;
}

static tdsl_status fail_layout(const Call *call, size_t index, LayoutFault fault, int32_t axis,
                               size_t stride)
{
    if (fault == LAYOUT_STRIDE) {
        return tdsl_arg_fail(call, index, TDSL_E_STRIDE,
                             "stride of axis %d is %lld elements, C order has %zu", (int)axis,
                             (long long)call->args[index].strides[axis], stride);
    }
    return tdsl_arg_fail(call, index, TDSL_E_OVERFLOW,
                         "its size in bytes does not fit an address");
}

static tdsl_status pointer_check(Call *call, size_t index, const tdsl_tensor *tensor)
{
    call->any_device = call->any_device || tensor->device != NULL;
    if (tensor->data == NULL && tensor->device == NULL && call->bytes[index] != 0) {
        return tdsl_arg_fail(call, index, TDSL_E_ARGUMENT, "data is a null pointer");
    }
    size_t alignment = tdsl_dtype_alignment(tensor->dtype);
    if (((uintptr_t)tensor->data & (alignment - 1)) != 0) {
        return tdsl_arg_fail(call, index, TDSL_E_STRIDE,
                             "address is not aligned to %zu bytes, as %s needs", alignment,
                             tdsl_dtype_name(tensor->dtype));
    }
    return TDSL_OK;
}

/* What went wrong with an argument, found again step by step; also decides the cases the quick pass
 * leaves open (strides of axes without steps, zero beside huge extents). */
static tdsl_status arg_check_slowly(Call *call, size_t index, const tdsl_tensor *tensor)
{
    tdsl_status status = extents_check(call, index, tensor);
    if (status != TDSL_OK) {
        return status;
    }
    int32_t axis = 0;
    size_t stride = 0;
    LayoutFault fault = tdsl_tensor_layout(tensor, &call->bytes[index], &axis, &stride);
    if (fault != LAYOUT_GOOD) {
        return fail_layout(call, index, fault, axis, stride);
    }
    return pointer_check(call, index, tensor);
}

/* One pass over the axes, for arguments that are as they should be: extents, layout and size at once. */
static bool arg_is_plain(Call *call, size_t index, const tdsl_tensor *tensor)
{
    const tdsl_extent *wants = call->info->args[index].extents;
    size_t bytes = tdsl_dtype_bytes(tensor->dtype);
    size_t elements = 1;
    bool good = true;
    for (int32_t axis = tensor->rank; axis-- > 0;) {
        int64_t extent = tensor->extents[axis];
        const tdsl_extent *want = &wants[axis];
        int64_t *bound = want->dim < 0 ? NULL : &call->dims[want->dim];
        int64_t value = bound == NULL ? want->fixed : *bound;
        if (value == DIM_UNBOUND) {
            *bound = extent;
            value = extent;
        }
        bool in_order = tensor->strides == NULL || tensor->strides[axis] == (int64_t)elements;
        good = good && value == extent && extent >= 0 && in_order;
        good = size_multiply(elements, (size_t)extent, &elements) && good;
    }
    good = size_multiply(elements, bytes, &bytes) && good;
    call->bytes[index] = bytes;
    return good && bytes <= (size_t)PTRDIFF_MAX;
}

static tdsl_status arg_check(Call *call, size_t index)
{
    const tdsl_arg_info *arg = &call->info->args[index];
    const tdsl_tensor *tensor = &call->args[index];
    if (tensor->dtype != arg->dtype) {
        return tdsl_arg_fail(call, index, TDSL_E_DTYPE, "dtype is %s, the kernel's is %s",
                             tdsl_dtype_name(tensor->dtype), tdsl_dtype_name(arg->dtype));
    }
    if (tensor->rank != arg->rank) {
        return tdsl_arg_fail(call, index, TDSL_E_SHAPE, "rank is %d, the kernel's is %d",
                             (int)tensor->rank, (int)arg->rank);
    }
    if (tensor->rank > 0 && tensor->extents == NULL) {
        return tdsl_arg_fail(call, index, TDSL_E_ARGUMENT, "extents is a null pointer");
    }
    return arg_is_plain(call, index, tensor) ? pointer_check(call, index, tensor)
                                             : arg_check_slowly(call, index, tensor);
}

static bool ranges_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t x = (uintptr_t)a;
    uintptr_t y = (uintptr_t)b;
    return a_bytes != 0 && b_bytes != 0 && x < y + b_bytes && y < x + a_bytes;
}

static bool args_overlap(const Call *call, size_t i, size_t j)
{
    const tdsl_tensor *a = &call->args[i];
    const tdsl_tensor *b = &call->args[j];
    if (a->device != NULL && a->device == b->device) {
        return true;
    }
    return a->data != NULL && b->data != NULL &&
           ranges_overlap(a->data, call->bytes[i], b->data, call->bytes[j]);
}

static tdsl_status overlap_check(const Call *call)
{
    size_t n_args = (size_t)call->info->n_args;
    for (size_t i = 0; i < n_args; i++) {
        if (!role_is_result(call->info->args[i].role)) {
            continue;
        }
        for (size_t j = 0; j < n_args; j++) {
            if (i != j && args_overlap(call, i, j)) {
                return tdsl_arg_fail(call, i, TDSL_E_OVERLAP,
                                     "this result overlaps argument '%s'",
                                     call->info->args[j].name);
            }
        }
    }
    return TDSL_OK;
}

static tdsl_status dims_begin(Call *call)
{
    const int64_t *given = call->options != NULL ? call->options->dims : NULL;
    for (int32_t d = 0; d < call->info->n_dims; d++) {
        call->dims[d] = given != NULL ? given[d] : DIM_UNBOUND;
        if (given != NULL && given[d] < 0) {
            return tdsl_call_fail(call, TDSL_E_SHAPE,
                                  "dimension '%s' was given as %lld, below 0",
                                  call->info->dims[d].name, (long long)given[d]);
        }
    }
    for (int32_t c = 0; c < call->info->n_computed; c++) {
        call->dims[call->info->n_dims + c] = DIM_UNBOUND;
    }
    return given != NULL && call->info->n_computed > 0 ? tdsl_extents_check(call) : TDSL_OK;
}

/* A workspace of the caller's must not overlap an argument either; its size is checked when it is used. */
static tdsl_status workspace_check(const Call *call)
{
    const tdsl_call_options *options = call->options;
    if (options == NULL || options->workspace == NULL) {
        return TDSL_OK;
    }
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        const tdsl_tensor *tensor = &call->args[i];
        if (tensor->data != NULL &&
            ranges_overlap(tensor->data, call->bytes[i], options->workspace,
                           options->workspace_bytes)) {
            return tdsl_arg_fail(call, i, TDSL_E_OVERLAP,
                                 "the workspace overlaps this argument");
        }
    }
    return TDSL_OK;
}

tdsl_status tdsl_call_check(Call *call)
{
    call->any_device = false;
    tdsl_status status = dims_begin(call);
    for (size_t i = 0; status == TDSL_OK && i < (size_t)call->info->n_args; i++) {
        status = arg_check(call, i);
    }
    if (status == TDSL_OK) {
        status = tdsl_extents_check(call);
    }
    if (status == TDSL_OK) {
        status = overlap_check(call);
    }
    if (status == TDSL_OK) {
        status = workspace_check(call);
    }
    return status;
}
