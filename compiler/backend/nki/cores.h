/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for two physical cores (LNC 2). In LEGAL form the whole body, or that of each part, is one loop that is `parallel`, the
 * only such loop of this target: its iterations are cores, each with SBUF, PSUM and private HBM of its own. Halves that are not
 * alike are two blocks that ask which core it is. One iteration: the other core has nothing to do. */
#ifndef BACKEND_NKI_CORES_H
#define BACKEND_NKI_CORES_H

#include "backend/nki/nki.h"

#define NKI_CORES 2

/* The loop over cores that such a body is; or null. */
static inline const Stmt *nki_core_loop(Stmt *const *body, uint32_t n)
{
    return n == 1 && body[0]->kind == STMT_FOR && body[0]->parallel ? body[0] : NULL;
}
/* walk.c: cores that the kernel is for, 1 or 2. */
int nki_lnc(const Kernel *k);
/* Is every part a loop over cores, or none, and no loop inside one? */
bool nki_cores_sound(const Kernel *k);

/* How a kernel is lowered for one core. */
typedef Kernel *LowerOne(const Target *, Ctx *, Arena *, const Kernel *);
/* The same for two. */
Kernel *lower_cores(const Target *, Ctx *, Arena *, const Kernel *k, LowerOne *one);

#endif
