/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads may cut the range of a loop that they share: between iterations, or inside of one as well, when an iteration that begins
 * later, or ends sooner, does for its positions what the whole one does for them. So the step says how much is done at once, and the number
 * of threads nothing but how the range is dealt. */
#ifndef LOOP_CUTS_H
#define LOOP_CUTS_H

#include "loop/loop.h"

/* The loop may be cut at each multiple of so many positions from its start on, and its step is one of them; 0: between iterations
 * alone. What is inside may be products of matrices, copies, and elementwise sums. */
int64_t loop_cuts(Arena *scratch, const Kernel *k, const Stmt *loop);

/* Are panels that are allocated in the loop named by positions of its iteration alone, counted from where that begins? Then a shorter
 * iteration needs fewer of them, the first ones. */
bool loop_cuts_panels(Arena *scratch, const Kernel *k, const Stmt *loop, BufRef panels);

#endif
