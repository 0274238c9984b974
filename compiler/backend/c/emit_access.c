/* SPDX-License-Identifier: Apache-2.0 */
/* Where a statement begins in a buffer, and how many positions a range has, as texts. */
#include "backend/c/emit.h"
#include "backend/c/legalise.h"

const char *count_text(Emitter *e, Range r)
{
    if (range_is_exact(r) || (r.start.n == 0 && r.limit.sym < 0)) {
        return str_format(e->w.arena, "%lld", (long long)range_most(r));
    }
    if (r.span == 0 && r.start.n == 0 && r.start.base == 0) {
        return range_hi(&e->w, r);
    }
    const char *name = r.clipped ? count_named(&e->w, r) : NULL;
    if (name != NULL) {
        return name;
    }
    return str_format(e->w.arena, "%s - %s", range_hi(&e->w, r),
                      affine_text(&e->w, r.start, BIND_PRODUCT));
}

const Affine *access_first(Emitter *e, const Stmt *s, BufRef buf, const Affine *at)
{
    uint32_t rank = e->w.k->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(e->w.arena, (size_t)rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = at[d];
        for (uint32_t i = 0; i < s->n_index; i++) {
            if (s->index[i].window == NULL) {
                out[d] =
                    affine_subst(e->w.arena, out[d], s->index[i].var, s->index[i].range.start);
            }
        }
    }
    return out;
}
