/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles: functions of named vectors. */
#include "backend/c/emit.h"

bool is_register_alloc(const Kernel *k, const Stmt *s)
{
    return s->kind == STMT_ALLOC && k->bufs.at[s->buf].space == SPACE_ACC && k->bufs.at[s->buf].rank > 0;
}
void register_tile_emit(Emitter *e, Stmt *const *body, uint32_t n)
{
    (void)e; (void)body; (void)n;
    UNREACHABLE();
}
void vector_types_emit(const Helpers *h, Text *out)
{
    (void)h; (void)out;
}
