/* SPDX-License-Identifier: Apache-2.0 */
/* Views whose labels have another order in HBM. A DMA charges every run, down to a single element, as NKI_SHORT_RUN bytes. So a slab is
 * loaded with the labels in the order of HBM, in long runs along the contiguous label, and an engine gathers the view from it, with one copy
 * for each run of equal steps.
 *
 *     x[c, e, b] as [b | c, e]:   slab[b | c, e, ...] by DMA, rows of e;   for c: tile[b | c, :] = slab[b | c, : at its step]
 *
 * Where a row is very short but long with the partition labels in it, the view is loaded that way and transposed. */
#include "backend/nki/view.h"

#define SLAB_MOST     65536 /* bytes of a partition, of a slab */
#define SPREAD_MOST   8192  /* bytes of a row that a DMA spreads */
#define SPREAD_CYCLES 4     /* of an element that a matmul spreads, with the copy from PSUM */
#define SPREAD_WAITS  4000  /* cycles that this takes longer: two engines after the DMA */
#define TURNED_BYTES  64    /* of a row, for which it is turned instead ... */
#define TURNED_TIMES  4     /* ... where rows are so many times as long ... */
#define TURNED_ROWS   16    /* ... and there are as many */
#define BESIDE_MOST   16    /* times as many complex numbers as are used at a time */

/* Of the Vector engine, in the time of a descriptor of NKI_SHORT_RUN. */
static double descriptor_cycles(const Lower *l)
{
    return NKI_SHORT_RUN / l->chip->dma_gbps * l->chip->vector_ghz;
}

uint32_t view_unit(const Lower *l, const Place *x)
{
    uint32_t unit = LABELS;
    for (uint32_t label = 0; label < lower_labels(l) && !l->home[x->buf].on_chip; label++) {
        bool here = place_stride(l, x, label) == 1 && l->now.full.n[label] > 1;
        unit = here ? label : unit;
    }
    return unit;
}

/* Labels of `f` that vary in the box, in the order in which they lie; `unit`, which lies contiguous, is last. */
static Labels as_it_lies(const Lower *l, const Place *x, Labels f, const Box *box,
                         uint32_t unit)
{
    Labels out = {0};
    for (uint32_t i = 0; i < f.n; i++) {
        if (box->n[f.at[i]] == 1 || f.at[i] == unit) {
            continue;
        }
        uint32_t at = out.n++;
        for (; at > 0 && place_stride(l, x, out.at[at - 1]) < place_stride(l, x, f.at[i]);
             at--) {
            out.at[at] = out.at[at - 1];
        }
        out.at[at] = f.at[i];
    }
    out.at[out.n++] = (uint8_t)unit;
    return out;
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
    int64_t size = nki_bytes(l->from->bufs.at[x->buf].dtype), n = labels_count(f, box);
    double run = (double)view_run(l, x, f, box);
    double copies =
        (double)n / run *
        (run * (double)size < NKI_SHORT_RUN ? 1 : run * (double)size / NKI_SHORT_RUN);
    return n * size <= SPREAD_MOST && (double)partitions * copies * descriptor_cycles(l) <
                                          SPREAD_CYCLES * (double)n + SPREAD_WAITS;
}

/* Steps of the labels in a tile that has them in this order. */
static void steps_in(Labels f, const Box *box, int64_t *step)
{
    int64_t s = 1;
    for (uint32_t i = f.n; i-- > 0;) {
        step[f.at[i]] = s;
        s *= box->n[f.at[i]];
    }
}

/* Labels [from, to) of the free axis that are one run of equal steps in the slab: the longest ones. */
static int64_t longest_run(Labels f, const Box *box, const int64_t *step, uint32_t *from,
                           uint32_t *to)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        int64_t count = box->n[f.at[i]];
        uint32_t end = i + 1;
        while (end < f.n && step[f.at[end - 1]] == step[f.at[end]] * box->n[f.at[end]]) {
            count *= box->n[f.at[end++]];
        }
        if (count > most) {
            most = count;
            *from = i;
            *to = end;
        }
    }
    return most;
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

/* Where rows are short though they are whole: what lies between them, of labels that are at one position in this box. */
static void add_between(Lower *l, const Place *x, Labels p, Labels f, uint32_t unit, Slab *s)
{
    int64_t size = nki_bytes(l->from->bufs.at[x->buf].dtype);
    for (uint32_t label = 0; label < lower_labels(l); label++) {
        int64_t run = view_run(l, x, s->order, &s->box), n = l->now.full.n[label];
        if (s->box.n[label] == 0) { /* a label of other statements */
            continue;
        }
        int64_t bytes = labels_count(s->order, &s->box) / s->box.n[label] * n * size;
        bool beside = pair_is_unit(l, x, label) && n <= BESIDE_MOST * s->box.n[label];
        bool next = place_stride(l, x, label) == run || beside;
        if (run * size >= NKI_SHORT_RUN || !next || label == unit || s->box.n[label] == n ||
            labels_have(p, label) || bytes > SLAB_MOST) {
            continue;
        }
        s->box.s[label] = l->now.full.s[label];
        s->box.n[label] = n;
        if (!labels_have(f, label)) {
            f.at[f.n++] = (uint8_t)label;
        }
        s->order = as_it_lies(l, x, f, &s->box, unit);
        label = UINT32_MAX; /* from the first one again */
    }
}

bool view_slab(Lower *l, const Place *x, Labels p, Labels f, const Box *box, Slab *out)
{
    uint32_t unit = view_unit(l, x);
    int64_t size = nki_bytes(l->from->bufs.at[x->buf].dtype), run = view_run(l, x, f, box);
    f = varying(f, box);
    if (unit == LABELS || labels_have(p, unit) || run * size >= NKI_SHORT_RUN ||
        !moves_with_all(l, x, f)) {
        return false;
    }
    *out = (Slab){.order = as_it_lies(l, x, f, box, unit), .box = *box, .free = f};
    int64_t full = l->now.full.n[unit], want = NKI_SHORT_RUN / size;
    int64_t rest = labels_count(f, box) / (labels_have(f, unit) ? box->n[unit] : 1);
    int64_t most = SLAB_MOST / size / rest;
    want = want < most ? want : most;
    int64_t at = box->s[unit] - l->now.full.s[unit];
    if (box->n[unit] < full && box->n[unit] < want) {
        int64_t chunk = full < want ? full : want / box->n[unit] * box->n[unit];
        int64_t left = full - at / chunk * chunk;
        if (at % chunk + box->n[unit] <= chunk) {
            out->box.s[unit] = l->now.full.s[unit] + at / chunk * chunk;
            out->box.n[unit] = left < chunk ? left : chunk;
        }
    }
    add_between(l, x, p, f, unit, out);
    steps_in(out->order, &out->box, out->step);
    out->run = view_run(l, x, out->order, &out->box);
    out->copied = longest_run(f, box, out->step, &out->from, &out->to);
    double n = (double)labels_count(f, box), rows = n * (double)labels_count(p, box);
    int64_t each = out->copied < NKI_LEAST_CYCLES ? NKI_LEAST_CYCLES : out->copied;
    each += l->chip->machine.systolic.cycles.instruction;
    double copies = n / (double)out->copied * (double)each;
    double descriptor = descriptor_cycles(l);
    return rows / (double)out->run * descriptor + copies < rows / (double)run * descriptor;
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

bool view_turns_rows(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    Slab s;
    uint32_t unit = view_unit(l, x);
    Labels rows = view_rows_turned(l, x, f, box), along = varying(p, box);
    DType t = l->from->bufs.at[x->buf].dtype;
    if (l->room.turning || unit == LABELS || labels_have(p, unit) || along.n == 0 ||
        !dtype_is_float(t) || l->pair[x->buf] || l->now.flat > 0 ||
        !moves_with_all(l, x, along) || !moves_with_all(l, x, rows) ||
        labels_count(rows, box) < TURNED_ROWS) {
        return false;
    }
    Box wide = *box;
    wide.s[unit] = l->now.full.s[unit];
    wide.n[unit] = l->now.full.n[unit];
    int64_t run = view_slab(l, x, p, f, box, &s) ? s.run : view_run(l, x, f, box);
    int64_t turned = view_run(l, x, as_it_lies(l, x, along, &wide, unit), &wide);
    return run * nki_bytes(t) < TURNED_BYTES && turned >= TURNED_TIMES * run;
}

bool view_gathered(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView *out)
{
    Slab s;
    if (!view_slab(l, x, p, f, box, &s)) {
        return false;
    }
    f = s.free;
    DType t = l->from->bufs.at[x->buf].dtype;
    TileView slab = view_of(l, x, p, s.order, &s.box);
    int64_t own[LABELS], one[LABELS], unused = 0;
    steps_in(f, box, own);
    TileView tile = tile_new(l, l->from->bufs.at[x->buf].name->text, t, SPACE_TILE,
                             labels_count(p, box), labels_count(f, box));
    Labels outer = {0};
    for (uint32_t i = 0; i < f.n; i++) {
        if (i < s.from || i >= s.to) {
            one[outer.n] = 1;
            outer.at[outer.n++] = f.at[i];
        }
    }
    Box part = *box;
    for (bool first = true; box_next(outer, box, one, &part, first) && !l->tried.failed;
         first = false) {
        TileView src =
            view_part(slab, view_linear(s.order, &s.box, &part, LABELS, &unused), s.copied);
        TileView dst = view_part(tile, view_linear(f, box, &part, LABELS, &unused), s.copied);
        src.step = slab.step * s.step[f.at[s.to - 1]];
        dst.step = own[f.at[s.to - 1]];
        make_copy(l, dst, src);
    }
    *out = tile;
    return true;
}
