/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of an elementwise statement or a reduction on chip: which labels lie on partitions, and the order of the others on the free
 * axis. Each candidate layout is priced by its DMA descriptors and by the cycles of the engines, with the numbers of cost.c: a contiguous
 * run shorter than NKI_SHORT_RUN costs as much as one of that length; an operand whose contiguous label lies on partitions is transposed;
 * one with another order of labels is gathered by an engine (view_gather.c).
 *
 * Weights by hand stood here; they could not know that a copy of 64 x 128 x 64 halves element by element takes 740 us, and 17 in rows. In the
 * nest blocks have no layout yet, and it is not known which operands find room on chip. */
#include "backend/nki/statement.h"
#include "backend/nki/view_parts.h"
#include "backend/nki/whole.h"

#define LONG_BYTES 2048 /* of a row that is loaded to be turned */
#define APART                                                                                  \
    1000 /* times as long takes a box of parts of two groups of partitions, in memory */
#define SHARED_LABELS 6 /* that may share the partitions */

/* One access as a tile of two dimensions. */
typedef struct Access2D {
    Labels partitions; /* of the tile */
    Labels p, f;       /* of the access among these, and on the free axis */
    double elements;
} Access2D;

static void add_label(Labels *x, uint32_t label)
{
    x->at[x->n++] = (uint8_t)label;
}

static double at_least(double x, double least)
{
    return x < least ? least : x;
}

Labels shape_free(const Shape *s)
{
    Labels f = s->fold_first ? s->fold : s->keep, then = s->fold_first ? s->keep : s->fold;
    for (uint32_t i = 0; i < then.n; i++) {
        add_label(&f, then.at[i]);
    }
    return f;
}

/* ---- what an access takes ---- */

/* What lies the other way: `rows` of it are turned at a time. */
static void add_turned(const Lower *l, const Place *x, double elements, double partitions,
                       double rows, EngineLoad *to)
{
    DType t = l->from->bufs.at[x->buf].dtype;
    rows = rows < NKI_PARTITIONS ? rows : NKI_PARTITIONS;
    to->tensor += elements / partitions / rows * price_array(l->chip, t, rows, true);
    to->either += elements / partitions * at_least(NKI_LEAST_CYCLES / rows, 1);
}

static double filled(const Lower *l, Labels p)
{
    double n = (double)labels_count(p, &l->now.full);
    return n < NKI_PARTITIONS ? n : NKI_PARTITIONS;
}

/* The labels `f` of a block on chip on the free axis, and `p`, all of `partitions` with which it moves, on partitions. */
static void add_block(const Lower *l, const Place *x, const Access2D *a, const Box *box,
                      EngineLoad *to)
{
    const Box *full = &l->now.full;
    int32_t lp = x->rank == 0 ? -1 : x->label[l->home[x->buf].pdim];
    if (a->p.n < a->partitions.n) {
        to->tensor +=
            price_banks(l->chip, (double)labels_count(a->f, full)); /* spread over these */
        to->either += (double)labels_count(a->f, full);
    }
    if (lp >= 0 && labels_have(a->f, (uint32_t)lp)) {
        bool groups = box->n[lp] < full->n[lp] && box->n[lp] % NKI_PARTITIONS != 0;
        add_turned(l, x, a->elements * (groups ? APART : 1), filled(l, a->p),
                   (double)full->n[lp], to);
        return;
    }
    int64_t step[LABELS], count;
    for (uint32_t i = 0; i < a->f.n; i++) {
        step[a->f.at[i]] = block_stride(l, x, a->f.at[i]);
    }
    (void)view_inner(a->f, full, step, &count);
    if (slab_dims(a->f, full, step) > 1) {
        to->either +=
            a->elements / filled(l, a->p) * at_least(NKI_LEAST_CYCLES / (double)count, 1);
    }
}

static void add_tiles(Lower *l, const Place *x, Labels partitions, Labels free, const Box *box,
                      double elements, bool store, EngineLoad *to)
{
    const Box *full = &l->now.full;
    Access2D a = {partitions, labels_varying(x, partitions, full),
                  labels_varying(x, free, full), elements};
    if (l->home[x->buf].on_chip) {
        add_block(l, x, &a, box, to);
        return;
    }
    int64_t size = dtype_bytes(l->from->bufs.at[x->buf].dtype);
    double row = (double)labels_count(a.f, full), rows = (double)labels_count(a.p, box);
    double spread = (double)labels_count(partitions, box) / rows; /* read for each partition */
    if (a.p.n == 0 && partitions.n > 0 &&
        !view_spreads(l, x, a.f, box, labels_count(partitions, box))) {
        to->tensor += price_banks(l->chip, row); /* a row is spread */
        to->either += row;
        spread = 1;
    }
    bool along = false;
    for (uint32_t i = 0; i < a.p.n; i++) {
        along |= place_stride(l, x, a.p.at[i]) == 1 || pair_is_unit(l, x, a.p.at[i]);
    }
    for (uint32_t i = 0; i < a.f.n && x->n_terms > 0; i++) { /* rows of windows */
        along &= place_stride(l, x, a.f.at[i]) != 1;
    }
    if (!store && view_turns(l, x, partitions, a.f, box)) {
        Labels with = a.p;
        for (uint32_t i = 0; i < a.f.n && !along; i++) { /* the contiguous label, too */
            if (place_stride(l, x, a.f.at[i]) == 1) {
                add_label(&with, a.f.at[i]);
            }
        }
        double run = (double)view_run(l, x, with, full), most = (double)(LONG_BYTES / size);
        run = run < 2 ? 2 : run;
        to->descriptors += price_descriptors(elements, run < most ? run : most, size);
        add_turned(l, x, elements, rows, row, to);
        return;
    }
    Slab slab;
    double run = along ? 1 : (double)view_run(l, x, a.f, full);
    if (!store && !along && view_slab(l, x, partitions, a.f, box, &slab)) {
        to->either += elements / rows * at_least(NKI_LEAST_CYCLES / (double)slab.copied, 1);
        to->descriptors += spread * elements / (double)labels_count(a.f, box) * slab.loads;
        return;
    }
    to->descriptors += spread * price_descriptors(elements, run, size);
}

void shape_add_access(Lower *l, const Place *x, Labels partitions, Labels free, const Box *box,
                      double elements, double between, bool store, EngineLoad *to)
{
    Box full = l->now.full;
    uint32_t unit = view_unit(l, x);
    if (unit < LABELS) {
        double row = (double)(full.n[unit] * dtype_bytes(l->from->bufs.at[x->buf].dtype));
        row = row < NKI_SHORT_RUN ? row : NKI_SHORT_RUN;
        bool forgotten = between * row > (double)l->room.cache_limit;
        l->now.full.n[unit] = forgotten ? box->n[unit] : full.n[unit];
    }
    add_tiles(l, x, partitions, free, box, elements, store, to);
    l->now.full = full;
}

/* ---- what the statement takes ---- */

static Box shape_box(const Lower *l, const Shape *s)
{
    Labels f = shape_free(s);
    int64_t step[LABELS];
    Box box = l->now.full;
    box_steps(s->p, &l->now.full, NKI_PARTITIONS, step);
    (void)box_next(s->p, &l->now.full, step, &box, true);
    box_steps(f, &l->now.full, NKI_ROW, step);
    (void)box_next(f, &l->now.full, step, &box, true);
    return box;
}

/* Elements of the access between two boxes along the label that lies contiguous: all labels that go on before it does. */
static double between(const Lower *l, const Place *x, const Shape *s, uint32_t unit)
{
    double count = 1;
    const Labels list[2] = {s->fold, s->keep};
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = list[k].n; i-- > 0;) {
            if (list[k].at[i] == unit) {
                return count;
            }
            count *= place_has(x, list[k].at[i]) ? (double)l->now.full.n[list[k].at[i]] : 1;
        }
    }
    return count;
}

static void add_access(Lower *l, const Place *x, const Shape *s, bool store, EngineLoad *to)
{
    Box box = shape_box(l, s), full = l->now.full;
    Labels f = shape_free(s), p = s->p;
    double elements = (double)labels_count(labels_varying(x, f, &full), &full) *
                      (double)labels_count(labels_varying(x, p, &full), &full);
    uint32_t unit = view_unit(l, x);
    bool cut = unit < LABELS && !store && box.n[unit] < full.n[unit];
    shape_add_access(l, x, p, f, &box, elements, cut ? between(l, x, s, unit) : 0, store, to);
}

static double boxes_of(const Lower *l, Labels p)
{
    int64_t step[LABELS];
    box_steps(p, &l->now.full, NKI_PARTITIONS, step);
    return (double)box_count(p, &l->now.full, step);
}

static void add_operations(const Lower *l, const Shape *s, const Loads *loads, double elements,
                           EngineLoad *to)
{
    Labels f = shape_free(s);
    for (uint32_t i = 0; i < loads->n; i++) {
        bool whole = i > 0 && labels_varying(&loads->at[i], f, &l->now.full).n > 0;
        double takes = i == 0 ? loads->n == 1 : 2;
        *(whole ? &to->vector : &to->either) += takes * elements;
    }
}

static double price(Lower *l, const Place *dst, const Loads *loads, const Shape *s, bool plain)
{
    const Box *full = &l->now.full;
    EngineLoad all = {0};
    for (uint32_t i = 0; i < loads->n; i++) {
        add_access(l, &loads->at[i], s, false, &all);
    }
    Shape kept = *s;
    kept.fold = (Labels){0};
    if (s->fold_p) {
        kept.p = (Labels){0};
    }
    add_access(l, dst, &kept, true, &all);
    double boxes = boxes_of(l, s->p), keep = (double)labels_count(s->keep, full);
    double terms = (double)labels_count(s->fold, full), free = keep * terms;
    if (!plain) {
        double elements = boxes * price_row(free);
        add_operations(l, s, loads, elements, &all);
        all.either += loads->n == 0 && l->home[dst->buf].on_chip ? elements : 0;
    }
    if (terms > 1) { /* a row's sum comes from the engine that copies the row */
        bool row = l->now.stmt->fold == OP_SUM && keep == 1 && !plain;
        *(row ? &all.either : &all.vector) += boxes * price_row(free);
    }
    if (s->fold_p) {
        all.tensor += boxes * price_banks(l->chip, keep);
    }
    return price_beside(l->chip, &all);
}

/* ---- the ways ---- */

/* The labels in the order in which they lie on the free axis of the block. */
static void by_stride(const Lower *l, const Place *x, Labels *list)
{
    for (uint32_t i = 1; i < list->n; i++) {
        uint8_t label = list->at[i];
        int64_t stride = block_stride(l, x, label);
        uint32_t at = i;
        for (; at > 0 && block_stride(l, x, list->at[at - 1]) < stride; at--) {
            list->at[at] = list->at[at - 1];
        }
        list->at[at] = label;
    }
}

/* The shape with the labels of `p` on partitions; all others on the free axis, those of the result as it has them, or as
 * they lie in its block. */
static Shape shape_with(const Lower *l, const Place *dst, const Loads *loads, Labels p,
                        uint32_t n, bool fold_first, bool as_it_lies)
{
    Shape s = {.p = p, .fold_first = fold_first};
    s.fold_p = !place_has(dst, p.at[0]);
    for (uint32_t d = 0; d < dst->rank; d++) {
        for (uint32_t label = 0; label < n; label++) {
            if (place_coef(dst, d, label) != 0 && !labels_have(p, label) &&
                !labels_have(s.keep, label)) {
                add_label(&s.keep, label);
            }
        }
    }
    if (as_it_lies) {
        by_stride(l, dst, &s.keep);
    }
    const Place *most =
        NULL; /* what is folded is taken as it lies in the largest of the operands */
    double elements = 0;
    for (uint32_t i = 0; i < loads->n; i++) {
        double count = place_elements(l, &loads->at[i]);
        most = count > elements ? &loads->at[i] : most;
        elements = count > elements ? count : elements;
    }
    for (uint32_t label = 0; label < n; label++) {
        if (labels_have(p, label) || labels_have(s.keep, label)) {
            continue;
        }
        int64_t stride = most == NULL ? 0 : place_stride(l, most, label);
        uint32_t at = s.fold.n++;
        for (; at > 0 && place_stride(l, most, s.fold.at[at - 1]) < stride; at--) {
            s.fold.at[at] = s.fold.at[at - 1];
        }
        s.fold.at[at] = (uint8_t)label;
    }
    return s;
}

static bool all_in_hbm(const Lower *l, const Place *dst, const Loads *loads)
{
    bool all = !l->home[dst->buf].on_chip;
    for (uint32_t i = 0; i < loads->n; i++) {
        all &= !l->home[loads->at[i].buf].on_chip;
    }
    return all;
}

typedef struct Ways {
    Lower *l;
    const Place *dst;
    const Loads *loads;
    uint32_t n;
    bool plain, whole; /* `whole`: labels that share the partitions are not cut */
    Shape best;
    double least;
} Ways;

static void try_order(Ways *w, Labels p, bool as_it_lies)
{
    for (uint32_t first = 0; first < 2; first++) {
        Shape s = shape_with(w->l, w->dst, w->loads, p, w->n, first == 1, as_it_lies);
        if (first == 1 && (labels_count(s.keep, &w->l->now.full) == 1 ||
                           labels_count(s.fold, &w->l->now.full) == 1 || w->l->now.part >= 0)) {
            break;
        }
        double t = price(w->l, w->dst, w->loads, &s, w->plain);
        if (w->least < 0 || t < w->least) {
            w->best = s;
            w->least = t;
        }
    }
}

static void try_shape(Ways *w, Labels p)
{
    const Home *h = &w->l->home[w->dst->buf];
    int32_t rows = h->on_chip && w->dst->rank > 0 ? w->dst->label[h->pdim] : -1;
    try_order(w, p, false);
    if (rows >= 0 && labels_have(p, (uint32_t)rows)) {
        try_order(w, p, true);
    }
}

/* Sets of labels that share the partitions: with more of them from `label` on, all kept or none. */
static void try_sets(Ways *w, Labels p, uint32_t label)
{
    Lower *l = w->l;
    if (p.n > 0) {
        try_shape(w, p);
    }
    for (; label < w->n; label++) {
        int64_t count = sat_mul(labels_count(p, &l->now.full), l->now.full.n[label]);
        bool fits = p.n == 0 || (w->whole ? count <= NKI_PARTITIONS
                                          : labels_count(p, &l->now.full) < NKI_PARTITIONS);
        bool alike = p.n == 0 || place_has(w->dst, label) == place_has(w->dst, p.at[0]);
        if ((int32_t)label == l->now.part || !fits || !alike || p.n == SHARED_LABELS) {
            continue; /* parts are never on partitions */
        }
        Labels with = p;
        add_label(&with, label);
        if (p.n == 0 || (l->now.full.n[label] > 1 && all_in_hbm(l, w->dst, w->loads))) {
            try_sets(w, with, label + 1);
        }
    }
}

Shape statement_shape(Lower *l, const Place *dst, const Expr *value, uint32_t n)
{
    double ns;
    return statement_shape_ns(l, dst, value, n, &ns);
}

Shape statement_shape_ns(Lower *l, const Place *dst, const Expr *value, uint32_t n, double *ns)
{
    Loads loads = {0};
    collect_loads(l, value, &loads);
    *ns = 0;
    if (n == 0 || (n == 1 && l->now.part == 0)) {
        return (Shape){.keep = {.n = n}}; /* label 0, if any */
    }
    Ways w = {.l = l, .dst = dst, .loads = &loads, .n = n, .least = -1};
    w.plain = expr_uncast(value)->kind == EXPR_LOAD &&
              !(l->home[dst->buf].on_chip && loads.n == 1 && l->home[loads.at[0].buf].on_chip);
    w.whole = whole_is_masked(l, value); /* boxes of one kind */
    try_sets(&w, (Labels){0}, 0);
    *ns = w.least;
    return w.best;
}
