/* SPDX-License-Identifier: Apache-2.0 */
/* Two loops whose iterations threads share as one sequence: a loop whose body ends in another. Each part of the sequence runs what stands
 * before the inner loop when it comes to another iteration of the outer one, so that must be the part's own. The inner loop's range may
 * begin at the outer one's variable, as that over pairs i <= j does. */
#ifndef LOOP_FLAT_H
#define LOOP_FLAT_H

#include "loop/loop.h"

/* The loop that the body ends in, if both may be one sequence, but that iterations of the inner one may have to follow each other; or null. */
Stmt *loop_flat_inner(Arena *scratch, const Kernel *k, const Stmt *loop);
/* May the iterations of a loop run at the same time, though it does not say so? `around`: the loops around it, outermost first. */
bool loop_is_apart(Arena *scratch, const Kernel *k, const Stmt *const *around, uint32_t n,
                   const Stmt *loop);

#endif
