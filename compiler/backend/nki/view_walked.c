/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that an engine walks as they lie, by steps of their own for each label: blocks on chip, rows of memory that are loaded in the order
 * in which they lie, and windows of these. */
#include "backend/nki/view.h"

/* Dimensions of labels with these steps. */
static uint32_t walked_dims(Labels f, const Box *box, const int64_t *step)
{
    uint32_t dims = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        dims += i == 0 || step[i - 1] != step[i] * box->n[f.at[i]];
    }
    return dims;
}

/* The same of what is loaded in long rows, whose labels lie in another order than the view's. */
static bool slab_walked(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                        uint32_t most, TileView *out, int64_t *step)
{
    Slab s;
    int64_t key[4 * LABELS + 8], unused = 0;
    if (l->home[x->buf].on_chip || l->pair[x->buf] || l->turn[x->buf].is ||
        cache_find(l, key, view_key(l, x, p, f, box, key), out) ||
        view_is_turned(l, x, p, f, box) || !view_slab(l, x, p, f, box, &s)) {
        return false;
    }
    for (uint32_t i = 0; i < f.n; i++) {
        step[i] = s.step[f.at[i]];
    }
    if (walked_dims(f, box, step) > most) {
        return false;
    }
    TileView slab = view_of(l, x, p, s.order, &s.box);
    *out = view_part(slab, view_linear(s.order, &s.box, box, LABELS, &unused),
                     labels_count(f, box));
    for (uint32_t i = 0; i < f.n; i++) {
        step[i] *= slab.step;
    }
    return true;
}

#define TAPS   16 /* positions of a label that windows move by, all of which are loaded at once */
#define SPARSE 4 /* times as many elements are loaded as are read at a time, at most */

/* The positions of a dimension that has windows, x[i + p]; false: it has others than along rows, forward. */
static bool window_of(const Lower *l, const Place *x, uint32_t dim, Labels p, Labels f,
                      const Box *box, int64_t *start, int64_t *n)
{
    *start = place_start(x, dim, box);
    *n = 1;
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        int64_t coef = place_coef(x, dim, label), all = l->now.full.n[label];
        if (coef == 0) {
            continue;
        }
        if (coef < 0 || (labels_have(p, label) && box->n[label] > 1)) {
            return false;
        }
        bool taps = !labels_have(f, label) && box->n[label] == 1 && all > 1 && all <= TAPS;
        *start -= taps ? coef * (box->s[label] - l->now.full.s[label]) : 0;
        *n += coef * ((taps ? all : box->n[label]) - 1);
    }
    return true;
}

/* The same of memory that is read through windows: what several of them read is loaded once, in rows as they lie. */
static bool window_walked(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                          uint32_t most, TileView *out, int64_t *step)
{
    Place y = *x;
    Box wide = *box, full = l->now.full;
    Labels rows = {0};
    int64_t at[NKI_DIMS], row[NKI_DIMS], loaded = 1;
    int64_t size = nki_bytes(l->from->bufs.at[x->buf].dtype);
    bool takes = !l->home[x->buf].on_chip && !l->pair[x->buf] && !l->turn[x->buf].is &&
                 l->now.flat == 0 && x->n_terms > 0 && f.n > 0 &&
                 view_run(l, x, f, box) * size < NKI_SHORT_RUN;
    y.n_terms = 0;
    for (uint32_t d = 0; d < x->rank && takes; d++) {
        int64_t start, n;
        bool alone = x->label[d] >= 0 && labels_have(p, (uint32_t)x->label[d]);
        for (uint32_t i = 0; i < x->n_terms && alone; i++) {
            alone = x->term[i].dim != d;
        }
        at[d] = row[d] = 0;
        if (alone) {
            continue;
        }
        takes = window_of(l, x, d, p, f, box, &start, &n);
        at[d] = place_start(x, d, box) - start;
        y.base[d] = n > 1 ? 0 : start;
        y.label[d] = -1;
        if (n > 1 && takes) {
            uint32_t own = PART_LABEL - 1 - rows.n;
            takes = own > l->now.n_labels + 1;
            y.label[d] = (int32_t)own;
            rows.at[rows.n++] = (uint8_t)own;
            wide.s[own] = start;
            wide.n[own] = n;
            loaded = sat_mul(loaded, n);
        }
    }
    int64_t each = 1;
    for (uint32_t d = x->rank; d-- > 0 && takes;) {
        row[d] = y.label[d] >= 0 && !labels_have(p, (uint32_t)y.label[d]) ? each : 0;
        each *= row[d] > 0 ? wide.n[y.label[d]] : 1;
    }
    for (uint32_t i = 0; i < f.n && takes; i++) {
        step[i] = 0;
        for (uint32_t d = 0; d < x->rank; d++) {
            step[i] += place_coef(x, d, f.at[i]) * row[d];
        }
        takes = step[i] > 0;
    }
    if (!takes || walked_dims(f, box, step) > most || sat_mul(loaded, size) > NKI_SLAB ||
        loaded > SPARSE * labels_count(f, box)) {
        return false;
    }
    for (uint32_t i = 0; i < rows.n; i++) {
        l->now.full.s[rows.at[i]] = wide.s[rows.at[i]];
        l->now.full.n[rows.at[i]] = wide.n[rows.at[i]];
    }
    TileView slab = view_of(l, &y, p, rows, &wide);
    l->now.full = full;
    *out = slab;
    out->nf = labels_count(f, box);
    for (uint32_t d = 0; d < x->rank; d++) {
        out->f0 += at[d] * row[d] * slab.step;
    }
    for (uint32_t i = 0; i < f.n; i++) {
        step[i] *= slab.step;
    }
    return true;
}

bool view_walked(Lower *l, const Place *x, Labels p, Labels f, const Box *box, uint32_t most,
                 TileView *out, int64_t *step)
{
    bool here = l->home[x->buf].on_chip && !l->turn[x->buf].is &&
                view_block_lies(l, x, p, f, box, out) && nki_bank(l->to, out->buf) == 0;
    for (uint32_t i = 0; i < f.n && here; i++) {
        step[i] = block_stride(l, x, f.at[i]);
        here = step[i] > 0;
    }
    here = (here && walked_dims(f, box, step) <= most) ||
           window_walked(l, x, p, f, box, most, out, step) ||
           slab_walked(l, x, p, f, box, most, out, step);
    out->step = here && f.n > 0 ? step[f.n - 1] : 1;
    return here;
}
