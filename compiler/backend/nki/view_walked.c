/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that an engine walks as they lie, by steps of their own for each label: blocks on chip, rows of memory that are loaded in the order
 * in which they lie, and windows of these. */
#include "backend/nki/view_parts.h"

/* A slab of memory, where no view of it is there already. */
static bool slab_walked(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                        uint32_t most, TileView *out, int64_t *step)
{
    Slab s;
    int64_t key[4 * LABELS + 8];
    if (l->home[x->buf].on_chip || l->pair[x->buf] || f.n == 0 ||
        cache_find(l, key, view_key(l, x, p, f, box, key), out) ||
        view_is_turned(l, x, p, f, box) || !view_slab(l, x, p, f, box, &s) ||
        slab_dims(f, box, s.step) > most || !slab_view(l, &s, out)) {
        return false;
    }
    for (uint32_t i = 0; i < f.n; i++) {
        step[i] = s.step[f.at[i]] * out->step;
    }
    out->nf = labels_count(f, box);
    return true;
}

bool view_walked(Lower *l, const Place *x, Labels p, Labels f, const Box *box, uint32_t most,
                 TileView *out, int64_t *step)
{
    bool here = l->home[x->buf].on_chip && !l->turn[x->buf].is &&
                view_block_lies(l, x, p, f, box, out) && nki_bank(l->to, out->buf) == 0;
    int64_t by[LABELS];
    for (uint32_t i = 0; i < f.n && here; i++) {
        step[i] = by[f.at[i]] = block_stride(l, x, f.at[i]);
        here = step[i] > 0;
    }
    here = (here && slab_dims(f, box, by) <= most) ||
           slab_walked(l, x, p, f, box, most, out, step);
    out->step = here && f.n > 0 ? step[f.n - 1] : 1;
    return here;
}

bool view_pattern(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out)
{
    int64_t step[LABELS];
    if (!view_walked(l, x, p, f, box, WALKED_DIMS, out, step)) {
        return false;
    }
    view_walk(out, f, box, step);
    return true;
}
