/* SPDX-License-Identifier: Apache-2.0 */
/* Floats of 8 bits for machines whose copies between memory and chip convert: all of them are bf16, in which a kernel has them.
 *
 *     @x : f8e5m2[n]                         @x : bf16[n] stored f8e5m2      (Buffer.stored)
 *     @x[i] = cast.f8e5m2(v)         ->      @x[i] = cast.bf16(cast.f8e5m2(select(|v| < 61440, v, v * 2^120)))
 *
 * What such a machine makes of a number beyond the largest is not asked: v * 2^120 is infinite already, and what saturates lies within
 * before it is cast. */
#ifndef LOWER_STORAGE_H
#define LOWER_STORAGE_H

#include "loop/loop.h"

/* The kernel (form TILED) with f8e4m3 and f8e5m2 as bf16; itself, if it has none. */
Kernel *lower_storage(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);

#endif
