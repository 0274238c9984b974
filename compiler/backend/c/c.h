/* SPDX-License-Identifier: Apache-2.0 */
/* The C target: portable C11 with loops, register tiles and a workspace given by the caller. */
#ifndef BACKEND_C_C_H
#define BACKEND_C_C_H

#include "loop/loop.h"

extern const Target target_c;

/* The passes, in their order: the first one takes a TILED kernel, the others LEGAL ones. */
Kernel *c_legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_sums(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_hoist(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_packs(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_share(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_stream(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_share_loops(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_exact(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_specialise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
Kernel *c_prefetch(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k);
bool c_verify(const Target *target, Ctx *ctx, const Kernel *k);
bool c_emit(const Target *target, Ctx *ctx, const KernelModule *m, const EmitOptions *o,
            OutputSet *set);

#endif
