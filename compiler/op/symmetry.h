/* SPDX-License-Identifier: Apache-2.0 */
/* What is declared of a tensor's symmetry: a class for each of its dimensions, [rank] numbers, or null for none. Dimensions with
 * the number 0 are in no class. Any two of one class may be exchanged: the value is the same then, or, where the number is
 * below 0, its negative. A class has the number 1 + its first dimension, with the sign. */
#ifndef OP_SYMMETRY_H
#define OP_SYMMETRY_H

#include "base/arena.h"
#include "op/types.h"

/* Permutations that all that is known or declared of one value makes, at most. */
#define SYMMETRY_LIMIT 128

/* The next dimension of the class of `d`, or `rank`; the last one before it, or `rank`. */
uint32_t symmetry_next(uint32_t rank, const int32_t *classes, uint32_t d);
uint32_t symmetry_before(uint32_t rank, const int32_t *classes, uint32_t d);
const int32_t *symmetry_copy(Arena *arena, uint32_t rank, const int32_t *classes);
bool symmetry_eq(uint32_t rank, const int32_t *a, const int32_t *b);
/* What is wrong with classes of a tensor of this type, or null. */
const char *symmetry_problem(DType dtype, uint32_t rank, const Dim *shape,
                             const int32_t *classes);

#endif
