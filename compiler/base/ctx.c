/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a compilation's state. The budget starts without a limit; the driver sets one and a trap. */
#include "base/ctx.h"

void ctx_init(Ctx *c)
{
    *c = (Ctx){.budget = {.limit = 0}, .indefinite = INT64_MAX};
    arena_init(&c->arena, &c->budget);
    symtable_init(&c->syms, &c->arena);
    sources_init(&c->sources, &c->arena);
    diags_init(&c->diags, &c->arena, &c->sources);
}

void ctx_release(Ctx *c)
{
    arena_release(&c->arena);
}

void ctx_at_kernel(const Ctx *c, const char *kernel, uint32_t number, uint32_t of)
{
    if (c->follower != NULL) {
        c->follower->kernel(c->follower->user, kernel, number, of);
    }
}

void ctx_at_step(const Ctx *c, uint64_t done, uint64_t most)
{
    if (c->follower != NULL) {
        c->follower->step(c->follower->user, done, most);
    }
}
