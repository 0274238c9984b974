/* SPDX-License-Identifier: Apache-2.0 */
/* Half of a TILED kernel, as a kernel of its own (halve.c). */
#ifndef BACKEND_NKI_HALVE_H
#define BACKEND_NKI_HALVE_H

#include "backend/nki/nki.h"

typedef struct Halved {
    Kernel *kernel; /* arguments of the whole, then parameters that stand for some of them */
    /* [kernel->bufs] which buffer of the whole it is half of, and in each dimension how far the other half lies from this one */
    const BufRef *whole;
    const int64_t *const *apart;
} Halved;

/* How many ways there are to try: dimensions of the first result. */
uint32_t lower_halvings(const Kernel *k);
/* The half that has half of the positions of that dimension; false: *why says what there is about its index. */
bool lower_halve(Ctx *ctx, Arena *arena, const Kernel *k, uint32_t dim, Halved *out,
                 const char **why);

#endif
