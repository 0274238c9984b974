/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one compilation, passed explicitly; there is no other. */
#ifndef BASE_CTX_H
#define BASE_CTX_H

#include "base/diag.h"

/* Who follows a compilation: what it is at, told as it comes to it. Names stay as long as the compilation. */
typedef struct Follower {
    void (*begins)(void *user, const char *pass);
    void (*kernel)(void *user, const char *kernel, uint32_t number, uint32_t of); /* from 0 */
    void (*step)(void *user, uint64_t done, uint64_t most); /* of a search, at most so many */
    void (*ends)(void *user);                               /* the pass */
    void *user;
} Follower;

typedef struct Ctx {
    MemoryBudget budget;
    Arena arena; /* lives as long as the compilation */
    SymTable syms;
    Sources sources;
    Diags diags;
    /* Of what an interpreter has run: the least matrix * 2^31 + pivot that was not positive definite; INT64_MAX: all were. */
    int64_t indefinite;
    const Follower *follower; /* null: nobody */
} Ctx;

void ctx_init(Ctx *c);
void ctx_release(Ctx *c);

/* For the follower, if there is one. */
void ctx_at_kernel(const Ctx *c, const char *kernel, uint32_t number, uint32_t of);
void ctx_at_step(const Ctx *c, uint64_t done, uint64_t most);

#endif
