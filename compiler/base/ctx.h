/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one compilation, passed explicitly; there is no other. */
#ifndef BASE_CTX_H
#define BASE_CTX_H

#include "base/diag.h"

typedef struct Ctx {
    MemoryBudget budget;
    Arena arena; /* lives as long as the compilation */
    SymTable syms;
    Sources sources;
    Diags diags;
    /* Of what an interpreter has run: the least matrix * 2^31 + pivot that was not positive definite; INT64_MAX: all were. */
    int64_t indefinite;
} Ctx;

void ctx_init(Ctx *c);
void ctx_release(Ctx *c);

#endif
