/* SPDX-License-Identifier: Apache-2.0 */
/* From decisions to kernels, and from kernels to kernels for any target that needs it. Mechanism only:
 * nothing is chosen here. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "loop/loop.h"
#include "nest/nest.h"

/* build.c: the kernel, in form LOOP_TILED, that a verified nest describes. */
Kernel *nest_lower(Ctx *ctx, Arena *arena, const Nest *nest);

/* complex.c: the same computation in real numbers, for targets that have no complex ones: each
 * buffer of c64 or c128 holds the parts of its elements. Null, and reported for `target`, when
 * the kernel does something with complex numbers that has no such form. */
Kernel *lower_complex(Ctx *ctx, Arena *arena, const Kernel *k, const Target *target);

/* row_sums.c: maps of functions add up their rows, `map @W[i,j] = exp(..) sums @L[i]`, where a sum of them follows. */
const Kernel *kernel_row_sums(Arena *arena, const Kernel *k);
/* And each such map as a map and a sum, one after the other. */
const Kernel *kernel_sums_apart(Ctx *ctx, Arena *arena, const Kernel *k);

/* share.c: buffers that do not live together share bytes: fills `over` of the kernel's allocs,
 * whatever it was. */
void kernel_share(Ctx *ctx, Kernel *k);

#endif
