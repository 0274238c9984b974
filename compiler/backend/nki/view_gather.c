/* SPDX-License-Identifier: Apache-2.0 */
/* Views whose labels have another order in HBM. A DMA charges every run, down to a single element, as NKI_SHORT_RUN bytes. So a slab is
 * loaded with the labels in the order of HBM, in long runs along the contiguous label, and an engine gathers the view from it, with one copy
 * for each run of equal steps.
 *
 *     x[c, e, b] as [b | c, e]:   slab[b | c, e, ...] by DMA, rows of e;   for c: tile[b | c, :] = slab[b | c, : at its step]
 *
 * Where a row is very short but long with the partition labels in it, the view is loaded that way and transposed. */
#include "backend/nki/make.h"
#include "backend/nki/price.h"
#include "backend/nki/view_parts.h"

#define SPREAD_MOST   8192 /* bytes of a row that a DMA spreads */
#define SPREAD_CYCLES 4    /* of an element that a matmul spreads, with the copy from PSUM */
#define SPREAD_WAITS  4000 /* cycles that this takes longer: two engines after the DMA */
#define COPIES        0.5 /* of the time of descriptors that are saved, for copies that gather */
#define TURNED_BYTES  64  /* of a row, for which it is turned instead ... */
#define TURNED_TIMES  4   /* ... where rows are so many times as long ... */
#define TURNED_ROWS   16  /* ... and there are as many */

/* Of the Vector engine, in the time of a descriptor of NKI_SHORT_RUN. */
static double descriptor_cycles(const Lower *l)
{
    return NKI_SHORT_RUN / l->chip->dma_gbps * l->chip->vector_ghz;
}

uint32_t view_unit(const Lower *l, const Place *x)
{
    uint32_t unit = LABELS;
    for (uint32_t label = 0; label < statement_labels(l) && !l->home[x->buf].on_chip; label++) {
        bool here = place_stride(l, x, label) == 1 && l->now.full.n[label] > 1;
        unit = here ? label : unit;
    }
    return unit;
}

int64_t view_run(const Lower *l, const Place *x, Labels f, const Box *box)
{
    int32_t part = x->rank == 0 ? -1 : x->label[x->rank - 1];
    bool beside = l->pair[x->buf] && (part < 0 || !labels_have(f, (uint32_t)part));
    int64_t run = beside ? 2 : 1; /* both parts are loaded */
    for (uint32_t i = f.n; i-- > 0;) {
        uint32_t label = f.at[i];
        if (box->n[label] > 1 && place_stride(l, x, label) != run) {
            break;
        }
        run *= box->n[label];
    }
    return run;
}

bool view_spreads(const Lower *l, const Place *x, Labels f, const Box *box, int64_t partitions)
{
    int64_t size = dtype_bytes(l->from->bufs.at[x->buf].dtype), n = labels_count(f, box);
    double run = (double)view_run(l, x, f, box);
    double copies =
        (double)n / run *
        (run * (double)size < NKI_SHORT_RUN ? 1 : run * (double)size / NKI_SHORT_RUN);
    return n * size <= SPREAD_MOST && (double)partitions * copies * descriptor_cycles(l) <
                                          SPREAD_CYCLES * (double)n + SPREAD_WAITS;
}

/* The labels that vary in the box. */
static Labels varying(Labels f, const Box *box)
{
    Labels out = {0};
    for (uint32_t i = 0; i < f.n; i++) {
        if (box->n[f.at[i]] > 1) {
            out.at[out.n++] = f.at[i];
        }
    }
    return out;
}

static bool moves_with_all(const Lower *l, const Place *x, Labels list)
{
    bool all = true;
    for (uint32_t i = 0; i < list.n; i++) {
        all &= place_stride(l, x, list.at[i]) > 0;
    }
    return all;
}

Labels view_rows_turned(Lower *l, const Place *x, Labels f, const Box *box)
{
    Labels out = {0};
    uint32_t unit = view_unit(l, x);
    for (uint32_t i = 0; i < f.n; i++) {
        bool longer = out.n == 0 || box->n[f.at[i]] > box->n[out.at[0]];
        if (f.at[i] != unit && longer) {
            out = (Labels){1, {f.at[i]}};
        }
    }
    return out;
}

/* Does a label that varies on partitions move along the rows of memory? */
static bool along_rows(const Place *x, Labels p, const Box *box, const Dim *extent)
{
    uint32_t d = x->rank;
    bool along = false;
    while (d > 1 && extent[d - 1].n == 1) {
        d--;
    }
    for (uint32_t i = 0; i < p.n && d > 0; i++) {
        along |= box->n[p.at[i]] > 1 && place_coef(x, d - 1, p.at[i]) != 0;
    }
    return along;
}

/* Elements that follow each other in memory where a view is loaded in the best way. */
static int64_t best_run(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    Slab s;
    return view_slab(l, x, p, f, box, &s) ? s.run : view_run(l, x, f, box);
}

bool view_turns_rows(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    Labels rows = view_rows_turned(l, x, f, box), along = varying(p, box);
    const Buffer *b = &l->from->bufs.at[x->buf];
    if (l->room.turning || along.n == 0 || along_rows(x, p, box, b->extent) ||
        !dtype_is_float(b->dtype) || l->pair[x->buf] || l->now.flat > 0 ||
        !moves_with_all(l, x, along) || !moves_with_all(l, x, rows) ||
        labels_count(rows, box) < TURNED_ROWS) {
        return false;
    }
    int64_t run = best_run(l, x, p, f, box);
    return run * dtype_bytes(b->dtype) < TURNED_BYTES &&
           best_run(l, x, rows, along, box) >= TURNED_TIMES * run;
}

bool view_gathered(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out)
{
    Slab s;
    TileView from;
    if (!view_slab(l, x, p, f, box, &s)) {
        return false;
    }
    bool copies = slab_dims(s.free, box, s.step) > 1;
    double cycles =
        (double)labels_count(s.free, box) / (double)s.copied * price_row((double)s.copied);
    double saved = (s.direct - s.loads) * (double)labels_count(p, box) * descriptor_cycles(l);
    if ((copies && cycles >= COPIES * saved) || !slab_view(l, &s, &from)) {
        return false;
    }
    if (!copies) {
        *out = slab_part(&s, from, s.free, box);
        return true;
    }
    const Buffer *b = &l->from->bufs.at[x->buf];
    *out = tile_new(l, b->name->text, b->dtype, SPACE_TILE, labels_count(p, box),
                    labels_count(s.free, box));
    int64_t step[LABELS];
    for (uint32_t i = 0; i < s.free.n; i++) {
        step[s.free.at[i]] = s.step[s.free.at[i]] * from.step;
    }
    view_copy(l, NULL, from, *out, s.free, box, step);
    return true;
}
