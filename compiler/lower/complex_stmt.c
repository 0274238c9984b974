/* SPDX-License-Identifier: Apache-2.0 */
/* Making the statements of a real kernel: copies with the part as an index more, blocks and
 * their allocations (see complex.h). */
#include "lower/complex.h"

void split_emit(Splitter *s, Stmt *stmt)
{
    vec_push(s->arena, s->body, stmt);
}

TileIndex split_both_parts(VarRef v)
{
    return (TileIndex){.var = v, .range = range_whole(dim_fixed(2)), .mode = MODE_LOOP};
}

/* Does the statement's destination have the index? */
bool split_keeps(const Splitter *s, const Stmt *stmt, VarRef v)
{
    return access_uses(s->from, stmt->dst, stmt->at, v);
}

/* A copy of the statement with the part as an index, after those of the destination. */
Stmt *split_with_part(Splitter *s, const Stmt *old)
{
    Stmt *out = arena_copy(s->arena, old, sizeof *old);
    TileIndex *index = ARENA_ARRAY(s->arena, old->n_index + 2, TileIndex);
    uint32_t n = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < old->n_index; i++) {
            if (split_keeps(s, old, old->index[i].var) == (pass == 0)) {
                index[n++] = old->index[i];
            }
        }
        if (pass == 0) {
            index[n++] = split_both_parts(s->part);
        }
    }
    out->index = index;
    out->n_index = n;
    out->at = split_at(s, old->dst, old->at, affine_var(s->arena, s->part));
    return out;
}

void split_alloc(Splitter *s, BufRef buf, Span span)
{
    Stmt *out = ARENA_NEW(s->arena, Stmt);
    *out = (Stmt){.kind = STMT_ALLOC, .span = span, .buf = buf};
    split_emit(s, out);
}

BufRef split_new_block(Splitter *s, const char *hint, const Buffer *like, bool turned)
{
    Dim *extent = ARENA_ARRAY(s->arena, like->rank + 1, Dim);
    for (uint32_t d = 0; d < like->rank; d++) {
        extent[d] = like->extent[d];
    }
    extent[like->rank] = dim_fixed(2);
    Span span = like->span;
    BufRef buf = kernel_buffer(s->to, &s->ctx->syms, hint, like->dtype, SPACE_TILE,
                               like->rank + (turned ? 1 : 0), extent);
    s->to->bufs.at[buf].span = span;
    s->to->bufs.at[buf].parts = !turned;
    s->to->bufs.at[buf].may_spill = like->may_spill;
    return buf;
}
