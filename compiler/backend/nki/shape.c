/* SPDX-License-Identifier: Apache-2.0 */
/* Which labels of a statement that is no matmul lie on partitions, and in which order the others lie on the free axis. Each way is priced
 * as what its DMAs and engines would take (cost.c has the instructions' numbers): runs of less than SHORT_BYTES cost as much as that,
 * what lies the other way is turned, what lies in another order is gathered (view.c). */
#include "backend/nki/statement.h"

#define SHORT_BYTES   512
#define TURNED_LEAST  1024 /* elements: fewer are loaded one by one (view.c) */
#define LONG_BYTES    2048 /* of a row that is loaded to be turned */
#define LEAST_CYCLES  64   /* of an instruction */
#define DESCRIPTOR_NS 1.39 /* of SHORT_BYTES */
#define ENGINE_NS     0.7  /* of a cycle: two engines share what is no matmul */
#define TENSOR_NS     0.71
#define F32_PASSES    4
#define LESS_BUSY     0.25 /* what an engine's time counts that waits for another */
#define ROW           2048 /* elements of an instruction */
#define BOX_CYCLES    64   /* an instruction waits for others, at least */
#define SHARED_LABELS 6    /* that may share the partitions */

typedef struct Load {
    double descriptors, engine, tensor; /* cycles */
} Load;

static void add_label(Labels *x, uint32_t label)
{
    x->at[x->n++] = (uint8_t)label;
}

static double at_least(double x, double least)
{
    return x < least ? least : x;
}

/* Labels of `list` with which the access moves. */
static Labels labels_of(const Place *x, Labels list, const Box *box)
{
    Labels out = {0};
    for (uint32_t i = 0; i < list.n; i++) {
        if (place_has(x, list.at[i]) && box->n[list.at[i]] > 1) {
            add_label(&out, list.at[i]);
        }
    }
    return out;
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

/* Descriptors of so many elements in rows of `run`. */
static double descriptors(double elements, double run, int64_t size)
{
    return elements / run * at_least(run * (double)size / SHORT_BYTES, 1);
}

/* What lies the other way: `rows` of it are turned at a time. */
static void add_turned(Load *to, double elements, double partitions, double rows)
{
    rows = rows < NKI_PARTITIONS ? rows : NKI_PARTITIONS;
    to->tensor += elements / partitions * at_least(LEAST_CYCLES / rows, 1);
    to->engine += elements / partitions * at_least(LEAST_CYCLES / rows, 1);
}

static double filled(const Lower *l, Labels p)
{
    double n = (double)labels_count(p, &l->now.full);
    return n < NKI_PARTITIONS ? n : NKI_PARTITIONS;
}

static void add_block(const Lower *l, const Place *x, const Shape *s, Labels f, Load *to)
{
    const Box *full = &l->now.full;
    Labels p = labels_of(x, s->p, full);
    double elements = (double)labels_count(p, full) * (double)labels_count(f, full);
    int32_t lp = x->rank == 0 ? -1 : x->label[l->home[x->buf].pdim];
    if (p.n < s->p.n) {
        to->tensor += (double)labels_count(f, full) * F32_PASSES; /* spread over partitions */
        to->engine += (double)labels_count(f, full);
    }
    if (lp >= 0 && labels_have(f, (uint32_t)lp)) {
        add_turned(to, elements, filled(l, p), (double)full->n[lp]);
        return;
    }
    TileView run;
    Labels inner = f;
    while (inner.n > 0 && !view_block_run(l, x, inner, full, &run)) {
        inner.n--;
        for (uint32_t i = 0; i < inner.n; i++) {
            inner.at[i] = inner.at[i + 1];
        }
    }
    if (inner.n < f.n) {
        double count = (double)labels_count(inner, full);
        to->engine += elements / filled(l, p) * at_least(LEAST_CYCLES / count, 1);
    }
}

/* What instructions take at a time. */
static Box first_box(const Lower *l, const Shape *s)
{
    Labels f = shape_free(s);
    int64_t step[LABELS];
    Box box = l->now.full;
    box_steps(s->p, &l->now.full, NKI_PARTITIONS, step);
    (void)box_next(s->p, &l->now.full, step, &box, true);
    box_steps(f, &l->now.full, ROW, step);
    (void)box_next(f, &l->now.full, step, &box, true);
    return box;
}

static void add_access(Lower *l, const Place *x, const Shape *s, bool store, Load *to)
{
    const Box *full = &l->now.full;
    Labels f = labels_of(x, shape_free(s), full), p = labels_of(x, s->p, full);
    if (l->home[x->buf].on_chip) {
        add_block(l, x, s, f, to);
        return;
    }
    int64_t size = nki_bytes(l->from->bufs.at[x->buf].dtype);
    double free = (double)labels_count(f, full), rows = filled(l, p);
    double elements = (double)labels_count(p, full) * free;
    double spread = filled(l, s->p) / rows; /* read once for each partition */
    bool turns = false, along = false;
    for (uint32_t i = 0; i < p.n; i++) {
        bool unit = place_stride(l, x, p.at[i]) == 1 || pair_is_unit(l, x, p.at[i]);
        along |= unit;
        turns |= unit && !store && rows * free > TURNED_LEAST && free > 1 && p.n == s->p.n &&
                 l->from->bufs.at[x->buf].dtype != DTYPE_BOOL;
    }
    if (turns) {
        double run = (double)view_run(l, x, p, full), most = (double)(LONG_BYTES / size);
        run = run < 2 ? 2 : run;
        to->descriptors += descriptors(elements, run < most ? run : most, size);
        add_turned(to, elements, rows, free);
        return;
    }
    Slab slab;
    Box box = first_box(l, s);
    double run = along ? 1 : (double)view_run(l, x, f, full);
    if (!store && !along && view_slab(l, x, s->p, f, &box, &slab)) {
        run = (double)slab.run;
        to->engine += elements / rows * at_least(LEAST_CYCLES / (double)slab.copied, 1);
    }
    to->descriptors += spread * descriptors(elements, run, size);
}

/* ---- what the statement takes ---- */

static double boxes_of(const Lower *l, Labels p)
{
    int64_t step[LABELS], n = 1;
    box_steps(p, &l->now.full, NKI_PARTITIONS, step);
    for (uint32_t i = 0; i < p.n; i++) {
        n = sat_mul(n, (l->now.full.n[p.at[i]] + step[i] - 1) / step[i]);
    }
    return (double)n;
}

/* Operations on each element, by the run of them that an access has alike. */
static double operations(const Lower *l, const Shape *s, const Loads *loads, bool plain)
{
    Labels f = shape_free(s);
    double sum = plain ? 0 : 1;
    for (uint32_t i = 0; i < loads->n && !plain; i++) {
        double run = 1;
        bool has = f.n > 0 && place_has(&loads->at[i], f.at[f.n - 1]), mixed = false;
        for (uint32_t j = f.n; j-- > 0 && !mixed;) {
            int64_t n = l->now.full.n[f.at[j]];
            mixed = n > 1 && place_has(&loads->at[i], f.at[j]) != has;
            run *= mixed ? 1 : (double)n;
        }
        sum += (i > 0 ? 1 : 0) + (mixed ? at_least(LEAST_CYCLES / run, 1) - 1 : 0);
    }
    return sum;
}

static double reduced(double kept, double terms)
{
    return kept * at_least(terms, LEAST_CYCLES);
}

static double joined(double kept, double terms)
{
    return terms * at_least(2 * kept, LEAST_CYCLES);
}

bool shape_joins(int64_t kept, int64_t terms)
{
    return joined((double)kept, (double)terms) < reduced((double)kept, (double)terms);
}

static double price(Lower *l, const Place *dst, const Loads *loads, const Shape *s, bool plain)
{
    const Box *full = &l->now.full;
    Load all = {0};
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
    all.engine +=
        boxes * (at_least(free, LEAST_CYCLES) + BOX_CYCLES) * operations(l, s, loads, plain);
    if (terms > 1) {
        double join = joined(keep, terms), reduce = reduced(keep, terms);
        all.engine += boxes * (s->fold_first && join < reduce ? join : reduce);
    }
    if (s->fold_p) {
        all.tensor += boxes * at_least(keep * F32_PASSES, LEAST_CYCLES);
    }
    double t[3] = {all.descriptors * DESCRIPTOR_NS, all.engine * ENGINE_NS,
                   all.tensor * TENSOR_NS};
    double most = t[0] > t[1] ? t[0] : t[1], sum = t[0] + t[1] + t[2];
    return (most > t[2] ? most : t[2]) + LESS_BUSY * sum;
}

/* ---- the ways ---- */

/* The shape with the labels of `p` on partitions; all others on the free axis, those of the result as it has them. */
static Shape shape_with(const Place *dst, Labels p, uint32_t n, bool fold_first)
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
    for (uint32_t label = 0; label < n; label++) {
        if (!labels_have(p, label) && !labels_have(s.keep, label)) {
            add_label(&s.fold, label);
        }
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
    bool plain;
    Shape best;
    double least;
} Ways;

static void try_shape(Ways *w, Labels p)
{
    for (uint32_t first = 0; first < 2; first++) {
        Shape s = shape_with(w->dst, p, w->n, first == 1);
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

/* Sets of labels that share the partitions: with more of them from `label` on, all kept or none. */
static void try_sets(Ways *w, Labels p, uint32_t label)
{
    Lower *l = w->l;
    if (p.n > 0) {
        try_shape(w, p);
    }
    for (; label < w->n; label++) {
        bool fits = p.n == 0 || labels_count(p, &l->now.full) < NKI_PARTITIONS;
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
    Loads loads = {0};
    collect_loads(l, value, &loads);
    if (n == 0 || (n == 1 && l->now.part == 0)) {
        return (Shape){.keep = {.n = n}}; /* label 0, if any */
    }
    Ways w = {.l = l, .dst = dst, .loads = &loads, .n = n, .least = -1};
    w.plain = expr_uncast(value)->kind == EXPR_LOAD;
    try_sets(&w, (Labels){0}, 0);
    return w.best;
}
