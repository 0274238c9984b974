/* SPDX-License-Identifier: Apache-2.0 */
/* Which targets there are: the table that the build makes of compiler/backend/. */
#ifndef DRIVER_TARGETS_H
#define DRIVER_TARGETS_H

#include "driver/usage.h"
#include "target/target.h"

const Target *target_find(const char *name); /* null when there is none of this name */
/* The same after an error of usage. */
const Target *target_named(Arena *a, const char *name, Usage *usage);
/* The targets in the table's order; null past the last. */
const Target *target_at(uint32_t number);
/* The target with device programs of at most `max_instructions` (0, or above its own limit: that), each for so many cores, and nests for
 * so many threads (0: its own number). */
const Target *target_limited(Arena *a, const Target *target, int64_t max_instructions,
                             int64_t cores, int64_t threads);
/* What kernel `name` is called in the emitted text. */
const char *target_symbol(Arena *a, const Target *target, const char *name);

#endif
