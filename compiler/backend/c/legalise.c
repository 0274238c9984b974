/* SPDX-License-Identifier: Apache-2.0 */
/* TILED to LEGAL for C. */
#include "backend/c/c.h"

Kernel *c_legalise(Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)ctx;
    Kernel *out = kernel_like(arena, k);
    out->form = LOOP_LEGAL;
    out->target = "c";
    return out;
}
