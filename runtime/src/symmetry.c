/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and results against what the kernel's head says of their symmetry, element by element: only for calls that ask for
 * it, as it reads all of them. Numbers are compared as they are, not as bytes: 0 and -0 are equal, and so is one NaN to
 * another. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* Real numbers of an element; f16 and bf16 are made of their patterns. */
static double half_value(uint16_t bits, bool brain)
{
    uint32_t exponent_bits = brain ? 8 : 5, fraction_bits = 15 - exponent_bits;
    int32_t exponent = (int32_t)(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    int32_t most = (1 << exponent_bits) - 1, bias = most >> 1;
    double fraction =
        (double)(bits & ((1u << fraction_bits) - 1)) / (double)(1u << fraction_bits);
    double value = exponent == 0 ? fraction : 1 + fraction;
    int32_t power = (exponent == 0 ? 1 : exponent) - bias;
    for (; power > 0 && exponent != most; power--) {
        value *= 2;
    }
    for (; power < 0; power++) {
        value /= 2;
    }
    if (exponent == most) {
        double zero = 0;
        value = fraction == 0 ? 1 / zero : zero / zero;
    }
    return (bits >> 15) != 0 ? -value : value;
}

/* Part 1 is the imaginary one. */
static double real_at(const tdsl_tensor *tensor, size_t element, int part)
{
    const char *from = (const char *)tensor->data + element * tdsl_dtype_bytes(tensor->dtype);
    double f64 = 0;
    float f32 = 0;
    uint16_t bits = 0;
    switch (tensor->dtype) {
    case TDSL_F64:
    case TDSL_C128:
        memcpy(&f64, from + (size_t)part * sizeof f64, sizeof f64);
        return f64;
    case TDSL_F32:
    case TDSL_C64:
        memcpy(&f32, from + (size_t)part * sizeof f32, sizeof f32);
        return (double)f32;
    default:
        memcpy(&bits, from, sizeof bits);
        return half_value(bits, tensor->dtype == TDSL_BF16);
    }
}

static bool is_whole(int32_t dtype)
{
    return dtype == TDSL_I32 || dtype == TDSL_I64 || dtype == TDSL_BOOL;
}

/* Wrapped as its type wraps, by the bits above it being cut off. */
static uint64_t whole_at(const tdsl_tensor *tensor, size_t element, bool negated)
{
    const char *from = (const char *)tensor->data + element * tdsl_dtype_bytes(tensor->dtype);
    uint64_t wide = 0;
    uint32_t word = 0;
    uint8_t byte = 0;
    if (tensor->dtype == TDSL_I64) {
        memcpy(&wide, from, sizeof wide);
        return negated ? 0 - wide : wide;
    }
    if (tensor->dtype == TDSL_I32) {
        memcpy(&word, from, sizeof word);
        return negated ? 0u - word : word;
    }
    memcpy(&byte, from, sizeof byte);
    return byte;
}

static bool same_real(double a, double b)
{
    return a == b || (a != a && b != b);
}

static bool is_image(const tdsl_tensor *tensor, size_t a, size_t b, bool negated)
{
    if (is_whole(tensor->dtype)) {
        return whole_at(tensor, a, false) == whole_at(tensor, b, negated);
    }
    double sign = negated ? -1 : 1;
    bool complex = tensor->dtype == TDSL_C64 || tensor->dtype == TDSL_C128;
    return same_real(real_at(tensor, a, 0), sign * real_at(tensor, b, 0)) &&
           (!complex || same_real(real_at(tensor, a, 1), sign * real_at(tensor, b, 1)));
}

/* "[1,2] is 3.5" */
static void put_element(const tdsl_tensor *tensor, size_t element, char *text, size_t bytes)
{
    int64_t at[TDSL_MAX_RANK];
    size_t n = 0, rest = element;
    for (int32_t axis = tensor->rank; axis-- > 0;) {
        at[axis] = (int64_t)(rest % (size_t)tensor->extents[axis]);
        rest /= (size_t)tensor->extents[axis];
    }
    for (int32_t axis = 0; axis < tensor->rank && n < bytes; axis++) {
        int wrote =
            snprintf(text + n, bytes - n, "%s%lld", axis == 0 ? "[" : ",", (long long)at[axis]);
        n += wrote > 0 ? (size_t)wrote : 0;
    }
    if (n >= bytes) {
        return;
    }
    if (is_whole(tensor->dtype)) {
        uint64_t v = whole_at(tensor, element, false);
        long long shown =
            tensor->dtype == TDSL_I32 ? (long long)(int32_t)(uint32_t)v : (long long)(int64_t)v;
        (void)snprintf(text + n, bytes - n, "] is %lld", shown);
    } else if (tensor->dtype == TDSL_C64 || tensor->dtype == TDSL_C128) {
        (void)snprintf(text + n, bytes - n, "] is %.10g%+.10gi", real_at(tensor, element, 0),
                       real_at(tensor, element, 1));
    } else {
        (void)snprintf(text + n, bytes - n, "] is %.10g", real_at(tensor, element, 0));
    }
}

static tdsl_status fail_places(const Call *call, size_t index, size_t a, size_t b)
{
    char first[128], second[128];
    put_element(&call->args[index], a, first, sizeof first);
    put_element(&call->args[index], b, second, sizeof second);
    return tdsl_arg_fail(call, index, TDSL_E_SYMMETRY,
                         "not as symmetric as declared: %s and %s", first, second);
}

/* Two axes of one class: each element and that with their indices exchanged. */
static tdsl_status axes_check(const Call *call, size_t index, int32_t a, int32_t b)
{
    const tdsl_tensor *tensor = &call->args[index];
    bool negated = call->info->args[index].extents[a].symmetry < 0;
    size_t stride[TDSL_MAX_RANK], count = 1;
    for (int32_t axis = tensor->rank; axis-- > 0;) {
        stride[axis] = count;
        count *= (size_t)tensor->extents[axis]; /* fits: the layout was checked */
    }
    for (size_t k = 0; k < count; k++) {
        size_t i = k / stride[a] % (size_t)tensor->extents[a];
        size_t j = k / stride[b] % (size_t)tensor->extents[b];
        size_t image = k - i * stride[a] - j * stride[b] + j * stride[a] + i * stride[b];
        if (k <= image && !is_image(tensor, k, image, negated)) {
            return fail_places(call, index, k, image);
        }
    }
    return TDSL_OK;
}

tdsl_status tdsl_symmetry_check(const Call *call, bool results)
{
    bool asked = call->options != NULL && (call->options->flags & TDSL_CHECK_SYMMETRY) != 0;
    for (size_t i = 0; asked && i < (size_t)call->info->n_args; i++) {
        const tdsl_arg_info *arg = &call->info->args[i];
        bool looked_at = results ? role_is_result(arg->role) : role_is_read(arg->role);
        bool here = call->args[i].device == NULL;
        for (int32_t a = 0; looked_at && here && a < arg->rank; a++) {
            int32_t b = a + 1;
            while (b < arg->rank && (arg->extents[a].symmetry == 0 ||
                                     arg->extents[b].symmetry != arg->extents[a].symmetry)) {
                b++;
            }
            tdsl_status status = b < arg->rank ? axes_check(call, i, a, b) : TDSL_OK;
            if (status != TDSL_OK) {
                return status;
            }
        }
    }
    return TDSL_OK;
}
