/* SPDX-License-Identifier: Apache-2.0 */
/* Positions that are values. The C form looks for those outside itself, and here is what one means in words; before a device computes, it is
 * looked for here, in arguments that have host memory. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/* " at b = 3, l = 17" */
static void put_place(const tdsl_outside *o, char *out, size_t size)
{
    const char *name = o->indices;
    size_t used = 0;
    out[0] = '\0';
    for (int32_t i = 0; i < o->n_indices && used < size; i++) {
        size_t n = strcspn(name, ",");
        int more = snprintf(out + used, size - used, "%s%.*s = %lld", i == 0 ? " at " : ", ",
                            (int)n, name, (long long)o->index[i]);
        used += more > 0 ? (size_t)more : 0;
        name += n + (name[n] == ',' ? 1 : 0);
    }
}

tdsl_status tdsl_positions_fail(const Call *call, void *const *pointers)
{
    tdsl_outside o;
    char place[TDSL_MESSAGE_BYTES];
    memset(&o, 0, sizeof o);
    if (call->info->outside == NULL || call->info->outside(call->dims, pointers, &o) == 0) {
        return tdsl_call_fail(call, TDSL_E_INDEX, "a position lies outside");
    }
    put_place(&o, place, sizeof place);
    return tdsl_call_fail(
        call, TDSL_E_INDEX, "dimension %d of '%s' has %lld positions, and %s is %lld%s",
        (int)o.dimension, o.array, (long long)o.extent, o.text, (long long)o.position, place);
}

tdsl_status tdsl_positions_check(const Call *call)
{
    void *pointers[TDSL_MAX_ARGS];
    if (call->info->outside == NULL || call->any_device) {
        return TDSL_OK;
    }
    for (size_t i = 0; i < (size_t)call->info->n_args; i++) {
        pointers[i] = call->args[i].data;
    }
    return call->info->outside(call->dims, pointers, NULL) == 0
               ? TDSL_OK
               : tdsl_positions_fail(call, pointers);
}
