/* SPDX-License-Identifier: Apache-2.0 */
/* Networks for the tests of contraction order. All live in the arena. */
#ifndef PATH_SUPPORT_NETS_H
#define PATH_SUPPORT_NETS_H

#include "path/path.h"

/* A random regular graph of n operands of `degree` legs each (n * degree even), all extents
 * `size`; loops and double edges may occur. */
PathProblem nets_regular(Arena *arena, uint32_t n, uint32_t degree, int64_t size,
                         uint64_t seed);
/* The network beside a copy of itself that shares nothing with it. */
PathProblem nets_twice(Arena *arena, const PathProblem *p);
/* The same network with operands and labels renumbered at random. */
PathProblem nets_shuffled(Arena *arena, const PathProblem *p, uint64_t seed);

#endif
