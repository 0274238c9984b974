/* SPDX-License-Identifier: Apache-2.0 */
/* From decisions to kernels. Mechanism only: nothing is chosen here. */
#ifndef LOWER_LOWER_H
#define LOWER_LOWER_H

#include "loop/loop.h"
#include "nest/nest.h"

/* build.c: the kernel, in form LOOP_TILED, that a verified nest describes. */
Kernel *nest_lower(Ctx *ctx, Arena *arena, const Nest *nest);

#endif
