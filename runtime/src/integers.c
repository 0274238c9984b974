/* SPDX-License-Identifier: Apache-2.0 */
/* Integers and bools that device programs read. Those compute whole numbers in f32, and are made for arguments between -2^22 and 2^22
 * (so that sums of four are exact), and for bools that are 0 or 1; a call with others is one for the C form. */
#include "fault.h"

#define INTEGERS_GIVEN (INT64_C(1) << 22)

static bool is_bool(const void *data, size_t at)
{
    return ((const uint8_t *)data)[at] <= 1;
}

static bool is_near_32(const void *data, size_t at)
{
    int32_t v = ((const int32_t *)data)[at];
    return v >= -INTEGERS_GIVEN && v <= INTEGERS_GIVEN;
}

static bool is_near_u32(const void *data, size_t at)
{
    return ((const uint32_t *)data)[at] <= INTEGERS_GIVEN;
}

static bool is_near_64(const void *data, size_t at)
{
    int64_t v = ((const int64_t *)data)[at];
    return v >= -INTEGERS_GIVEN && v <= INTEGERS_GIVEN;
}

bool tdsl_integers_fit(const Call *call, Fault *fault)
{
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        const tdsl_tensor *t = &call->args[i];
        bool (*fits)(const void *, size_t) = t->dtype == TDSL_BOOL  ? is_bool
                                             : t->dtype == TDSL_I32 ? is_near_32
                                             : t->dtype == TDSL_U32 ? is_near_u32
                                             : t->dtype == TDSL_I64 ? is_near_64
                                                                    : NULL;
        bool read = role_is_read(call->info->args[i].role) && t->device == NULL;
        size_t count = 1;
        for (int32_t d = 0; d < t->rank; d++) {
            count *= (size_t)t->extents[d]; /* fits: the layout was checked */
        }
        for (size_t at = 0; fits != NULL && read && at < count; at++) {
            if (!fits(t->data, at)) {
                return tdsl_fault_set(fault, TDSL_E_OVERFLOW,
                                      t->dtype == TDSL_BOOL
                                          ? "element %zu of '%s' is neither 0 nor 1"
                                          : "element %zu of '%s' is beyond 2^22, up to which "
                                            "device programs compute with whole numbers",
                                      at, call->info->args[i].name);
            }
        }
    }
    return true;
}
