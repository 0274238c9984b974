/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and results against what the kernel's head says of their symmetry, element by element: only for calls that ask for
 * it, as it reads all of them. Numbers are compared as they are, not as bytes: 0 and -0 are equal, and so is one NaN to
 * another. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* Small rather than fast: a runtime has little text. */
#if defined(__GNUC__)
#define COLD __attribute__((cold))
#else
#define COLD
#endif

/* How a number of each type lies in memory. */
typedef struct Form {
    uint8_t bytes;    /* of a part: complex numbers have two */
    uint8_t exponent; /* bits of a float's, 0: an integer */
} Form;

static const Form forms[DTYPE_ROWS] = {
    [TDSL_F64] = {8, 11},   [TDSL_F32] = {4, 8},     [TDSL_F16] = {2, 5},
    [TDSL_BF16] = {2, 8},   [TDSL_I32] = {4, 0},     [TDSL_I64] = {8, 0},
    [TDSL_BOOL] = {1, 0},   [TDSL_C64] = {4, 8},     [TDSL_C128] = {8, 11},
    [TDSL_I8] = {1, 0},     [TDSL_U8] = {1, 0},      [TDSL_I16] = {2, 0},
    [TDSL_U16] = {2, 0},    [TDSL_U32] = {4, 0},     [TDSL_F8E4M3] = {1, 4},
    [TDSL_F8E5M2] = {1, 5}, [TDSL_F8E4M3FN] = {1, 6} /* one NaN */};

/* At the upper end of 64 bits, so that integers wrap as their type does; little-endian, as all machines that kernels run on. */
static uint64_t bits_at(const tdsl_tensor *tensor, Form form, size_t number)
{
    uint64_t bits = 0;
    memcpy((char *)&bits + sizeof bits - form.bytes,
           (const char *)tensor->data + number * form.bytes, form.bytes);
    return bits;
}

/* Is a part of element a that of b, or its negative? */
static COLD bool is_image(const tdsl_tensor *tensor, size_t a, size_t b, bool negated)
{
    Form form = forms[tensor->dtype];
    uint64_t x = bits_at(tensor, form, a), y = bits_at(tensor, form, b);
    if (form.exponent == 0) {
        return x == (negated ? 0 - y : y);
    }
    uint64_t infinity = ~(UINT64_MAX >> form.exponent); /* and sizes: without the sign's bit */
    uint64_t x_size = x << 1, y_size = y << 1;
    x ^= negated ? UINT64_C(1) << 63 : 0;
    return x == y || (x_size == 0 && y_size == 0) || (x_size > infinity && y_size > infinity);
}

/* The element with the indices of element e exchanged; the steps of all axes are given. */
static COLD size_t image_of(const tdsl_tensor *tensor, const size_t *step, const int32_t *to,
                            size_t e)
{
    size_t image = 0;
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        int32_t from = to[axis];
        image += e / step[from] % (size_t)tensor->extents[from] * step[axis];
    }
    return image;
}

/* "0, 1" and "0, 1 with 2, 3": the axes that are exchanged. */
static COLD void axes_text(int32_t rank, const int32_t *to, char *text, size_t room)
{
    size_t n = 0, pairs = 0;
    for (int32_t axis = 0; axis < rank; axis++) {
        pairs += to[axis] > axis ? 1 : 0;
    }
    text[0] = '\0';
    for (int side = 0; side < 2; side++) {
        size_t k = 0;
        for (int32_t axis = 0; axis < rank && n < room; axis++) {
            if (to[axis] > axis) {
                int written = snprintf(text + n, room - n, "%s%d",
                                       k++ > 0 || (side == 1 && pairs == 1) ? ", "
                                       : side == 1                          ? " with "
                                                                            : "",
                                       (int)(side == 0 ? axis : to[axis]));
                n += written > 0 ? (size_t)written : 0;
            }
        }
    }
}

static COLD tdsl_status exchange_check(const Call *call, size_t index,
                                       const tdsl_exchange *exchange)
{
    const tdsl_tensor *tensor = &call->args[index];
    size_t parts = tdsl_dtype_bytes(tensor->dtype) / forms[tensor->dtype].bytes;
    size_t step[TDSL_MAX_RANK], count = 1;
    for (int32_t axis = tensor->rank; axis-- > 0;) {
        if (tensor->extents[axis] != tensor->extents[exchange->to[axis]]) {
            return TDSL_OK;
        }
        step[axis] = count;
        count *= (size_t)tensor->extents[axis]; /* fits: the layout was checked */
    }
    for (size_t k = 0; k < count * parts; k++) {
        size_t e = k / parts, image = image_of(tensor, step, exchange->to, e);
        bool negated = (exchange->sign < 0) != (exchange->conjugated != 0 && k % parts == 1);
        if (e <= image && !is_image(tensor, k, image * parts + k % parts, negated)) {
            char axes[128];
            axes_text(tensor->rank, exchange->to, axes, sizeof axes);
            return tdsl_arg_fail(call, index, TDSL_E_SYMMETRY,
                                 "element %zu is not its image, axes %s", e, axes);
        }
    }
    return TDSL_OK;
}

COLD tdsl_status tdsl_symmetry_check(const Call *call, bool results)
{
    bool asked = call->options != NULL && (call->options->flags & TDSL_CHECK_SYMMETRY) != 0;
    for (size_t i = 0; asked && i < (size_t)call->info->n_args; i++) {
        const tdsl_arg_info *arg = &call->info->args[i];
        bool looked_at = results ? role_is_result(arg->role) : role_is_read(arg->role);
        bool here = call->args[i].device == NULL;
        for (int64_t k = 0; looked_at && here && k < arg->n_exchanges; k++) {
            tdsl_status status = exchange_check(call, i, &arg->exchanges[k]);
            if (status != TDSL_OK) {
                return status;
            }
        }
    }
    return TDSL_OK;
}
