/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that counts: see the header. */
#include "support_counter.h"

#include <stdlib.h>

void *counter_allocate(void *user, size_t bytes, size_t alignment)
{
    Counter *counter = user;
    if (counter->made++ == counter->fail_at) {
        return NULL;
    }
    counter->live++;
    counter->bytes += (long)bytes;
    return aligned_alloc(alignment, bytes);
}

static void counter_release(void *user, void *memory, size_t bytes)
{
    Counter *counter = user;
    counter->live--;
    counter->bytes -= (long)bytes;
    free(memory);
}

void counter_give(Counter *counter, tdsl_config *config)
{
    config->user = counter;
    config->allocate = counter_allocate;
    config->release = counter_release;
}
