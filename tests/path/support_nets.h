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

typedef enum NetsShape {
    NETS_CHAIN, /* matrices, both ends open */
    NETS_SPAN,  /* a chain with one end open or none */
    NETS_RING,
    NETS_TREE, /* closed, labels of an operand to six */
    NETS_SHAPES
} NetsShape;
/* Extents 2 to 9, in no order. */
PathProblem nets_shape(Arena *arena, NetsShape shape, uint32_t n, uint64_t seed);
/* Two rails of n / 2 operands each. */
PathProblem nets_ladder(Arena *arena, uint32_t n, int64_t rung, int64_t rail);
PathProblem nets_lattice(Arena *arena, uint32_t rows, uint32_t columns, int64_t size);

#endif
