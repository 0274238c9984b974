/* SPDX-License-Identifier: Apache-2.0 */
/* A machine with caches as a file: a line for each number, `L2.capacity 524288`. What follows '#' is a comment. A file may leave
 * lines out, whose numbers are then those of the target. */
#ifndef TARGET_MACHINE_H
#define TARGET_MACHINE_H

#include "base/text.h"
#include "target/target.h"

/* All its numbers. */
void machine_print(const Machine *m, Text *out);
/* The numbers of the text in the place of those that `m` has. False after a diagnostic at a place in `source`. */
bool machine_read(Ctx *ctx, Arena *arena, uint32_t source, Str text, Machine *m);
/* The blocks for caches of these sizes in bytes; 0: not known, nothing changes. */
void machine_set_caches(Machine *m, int64_t l2, int64_t l3);

#endif
