/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that counts, and fails once, at a given allocation. */
#ifndef SUPPORT_COUNTER_H
#define SUPPORT_COUNTER_H

#include "tdsl/tdsl.h"

typedef struct Counter {
    long fail_at; /* -1: never */
    long made, live, bytes;
} Counter;

void *counter_allocate(void *user, size_t bytes, size_t alignment);
/* The context's memory comes from there. */
void counter_give(Counter *counter, tdsl_config *config);

#endif
