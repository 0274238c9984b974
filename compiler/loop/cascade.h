/* SPDX-License-Identifier: Apache-2.0 */
/* Cascades: buffers that hold long sums. From its alloc on a cascade is the sum of nothing; statements add to it, as often as they like, with the
 * loops that they are in; then one statement of the block of its alloc reads it, and nothing names it any more:
 *
 *     alloc @sum : f64[] tile cascade
 *     for $k in 0..n step 4096 {
 *       ...
 *       reduce [] @sum[] += @s[]
 *     }
 *     reduce [] @E[] += @sum[]
 *
 * Numbers are added pairwise, like the digits of a binary counter: part[i] holds the sum of 2^i of them where bit i of their count is set.
 * So a number passes through about log2(n) additions, however many there are, and a dozen words are all the memory. The order is fixed: the
 * interpreter and the C code agree on the bits. */
#ifndef LOOP_CASCADE_H
#define LOOP_CASCADE_H

#include "loop/loop.h"

#define CASCADE_PARTS 48 /* more additions than 2^48 nobody waits for */
#define CASCADE_WIDTH 32 /* elements at most, each of them a sum */

/* Are all cascades what they can be, and used like that? Reports E_DUMP. All else that loop_verify asks for holds. */
bool cascades_verify(Ctx *ctx, const Kernel *k, const char *stage);

/* One sum, as the interpreter has it. */
typedef struct Cascade {
    uint64_t n;
    Number part[CASCADE_PARTS];
} Cascade;
void cascade_add(Cascade *c, Number x);
Number cascade_total(const Cascade *c, DType t);

#endif
