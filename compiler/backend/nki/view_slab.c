/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: rows of memory as they lie, from which views are read as access patterns. A DMA charges every run, down to a single element, as
 * NKI_SHORT_RUN bytes, and what windows share would be loaded once for each. So a slab has, for each dimension of the tensor, all positions
 * that the view reads in the iterations of the loops inside of which its reads overlap, and whole dimensions where runs are short else.
 *
 *     for q: for i: .. x[c, i..i+8, q..q+56] as [c | i, j] ..
 *     slab[c | u, z] by DMA, u and z those of all i and q;  slab at 58 * i + q, by steps of 58 and 1
 *
 * An engine walks three dimensions of it; what needs equal steps is gathered into a tile by copies that do. */
#include "backend/nki/make.h"
#include "backend/nki/view_parts.h"

#define TAPS        16 /* positions of a label that windows move by, all of which are loaded at once */
#define SLAB_MOST   65536 /* bytes of a partition, of a slab */
#define SLAB_WINDOW 49152 /* the same of one for several iterations of loops */
#define AT_ONCE     0.75 /* of the descriptors, where several iterations then wait for one load */
#define STEP_MOST   32767 /* elements between two positions (rule G9) */

/* What of a dimension of the tensor is in the slab. */
typedef struct Extent {
    int64_t start, n, span; /* span: with the positions along partitions */
    bool along;             /* do partitions move along it? */
    bool whole;             /* all of the tensor's */
} Extent;

typedef struct Search {
    Lower *l;
    const Place *x;
    Labels p, f;
    const Box *box;
    Extent at[NKI_DIMS];
    uint32_t depth; /* loops inside of that many are in it */
    double uses;    /* views that are read from it */
    int64_t size;   /* bytes of an element */
} Search;

static int64_t elements_of(const Search *s)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < s->x->rank; d++) {
        n = sat_mul(n, s->at[d].n);
    }
    return n;
}

/* The positions of the box. False: it moves backwards. */
static bool add_box(Search *s)
{
    const Place *x = s->x;
    for (uint32_t d = 0; d < x->rank; d++) {
        Extent e = {.start = place_start(x, d, s->box), .n = 1, .span = 1};
        for (uint32_t i = 0; i < s->p.n; i++) {
            uint32_t label = s->p.at[i];
            int64_t coef = s->box->n[label] > 1 ? place_coef(x, d, label) : 0;
            if (coef < 0) {
                return false;
            }
            e.along |= coef > 0;
            e.start -= coef * s->box->s[label];
            e.span += coef * (s->box->n[label] - 1);
        }
        for (uint32_t i = 0; i < s->f.n; i++) {
            uint32_t label = s->f.at[i];
            int64_t by = place_coef(x, d, label) * (s->box->n[label] - 1);
            if (by < 0) {
                return false;
            }
            e.n += by;
            e.span += by;
        }
        s->at[d] = e;
    }
    return true;
}

/* All positions of short labels that windows move by, which are at one position in the box. */
static void add_taps(Search *s)
{
    const Place *x = s->x;
    for (uint32_t label = 0; label < s->l->now.n_labels; label++) {
        int64_t all = s->l->now.full.n[label],
                back = s->box->s[label] - s->l->now.full.s[label];
        bool taps = s->box->n[label] == 1 && all > 1 && all <= TAPS, moves = false;
        Extent before[NKI_DIMS];
        for (uint32_t d = 0; d < x->rank; d++) {
            before[d] = s->at[d];
            int64_t coef = place_coef(x, d, label);
            taps &= coef == 0 || (coef > 0 && s->at[d].n > 1);
            moves |= coef > 0;
        }
        if (!taps || !moves || labels_have(s->p, label)) {
            continue;
        }
        for (uint32_t d = 0; d < x->rank; d++) {
            int64_t coef = place_coef(x, d, label);
            s->at[d].start -= coef * back;
            s->at[d].n += coef * (all - 1);
            s->at[d].span += coef * (all - 1);
        }
        if (sat_mul(elements_of(s), s->size) > SLAB_WINDOW) {
            for (uint32_t d = 0; d < x->rank; d++) {
                s->at[d] = before[d];
            }
            continue;
        }
        s->uses *= (double)all;
    }
}

/* The most of the innermost loops with which reads overlap, or around which there is one that they do not move with. */
static void add_loops(Search *s)
{
    Lower *l = s->l;
    const Place *x = s->x;
    Extent now[NKI_DIMS], best[NKI_DIMS];
    double uses = s->uses;
    uint32_t rank = x->rank;
    for (uint32_t d = 0; d < rank; d++) {
        now[d] = best[d] = s->at[d];
    }
    for (uint32_t i = l->loops.depth; i-- > 0 && x->moves != NULL;) {
        const OpenLoop *o = &l->loops.open[i];
        bool moves = false, overlaps = false, takes = !o->tiles && o->first.n + o->last.n == 0;
        for (uint32_t d = 0; d < rank; d++) {
            int64_t by = affine_coef(x->moves[d], o->var);
            moves |= by != 0;
            overlaps |= by > 0 && by < now[d].span;
            takes &= by == 0 || (by > 0 && (!now[d].along || by < now[d].span));
            now[d].n += by * (o->trips - 1);
            now[d].span += by * (o->trips - 1);
        }
        int64_t count = s->size;
        for (uint32_t d = 0; d < rank; d++) {
            count = sat_mul(count, now[d].n);
        }
        if (moves && (!takes || count > SLAB_WINDOW)) {
            break;
        }
        uses *= moves ? (double)o->trips : 1;
        if (overlaps || !moves) {
            for (uint32_t d = 0; d < rank; d++) {
                best[d] = now[d];
            }
            s->depth = i;
            s->uses = uses;
        }
    }
    for (uint32_t d = 0; d < rank; d++) {
        s->at[d] = best[d];
    }
}

/* What a dimension moves by beyond the positions in the slab, in iterations of loops. */
static Affine outer_moves(const Search *s, uint32_t dim)
{
    Lower *l = s->l;
    Affine moves = s->x->moves == NULL ? affine_const(0) : s->x->moves[dim];
    for (uint32_t i = s->at[dim].whole ? 0 : s->depth; i < l->loops.depth; i++) {
        moves = affine_subst(l->arena, moves, l->loops.open[i].var, affine_const(0));
    }
    return moves;
}

/* How many positions of a dimension are read one by one: those of labels and of loops that are not in the slab yet. */
static double positions_of(const Search *s, uint32_t dim)
{
    const Lower *l = s->l;
    bool part = l->pair[s->x->buf] && dim + 1 == s->x->rank && s->at[dim].n == 1;
    double n = part ? 2 : 1;
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        bool one = s->box->n[label] < l->now.full.n[label] && !labels_have(s->p, label);
        n *= one && place_coef(s->x, dim, label) > 0
                 ? (double)l->now.full.n[label] / (double)s->box->n[label]
                 : 1;
    }
    for (uint32_t i = 0; i < s->depth && s->x->moves != NULL; i++) {
        n *= affine_uses(s->x->moves[dim], l->loops.open[i].var)
                 ? (double)l->loops.open[i].trips
                 : 1;
    }
    return n;
}

/* May all of the dimension be in a slab that is made before the loops which move it? Not where one inside of these moves along partitions. */
static bool may_be_whole(const Search *s, uint32_t dim)
{
    const Lower *l = s->l;
    const Affine *moves = s->x->moves;
    uint32_t first = l->loops.depth;
    for (uint32_t i = l->loops.depth; i-- > 0 && moves != NULL;) {
        first = affine_uses(moves[dim], l->loops.open[i].var) ? i : first;
    }
    bool may = true;
    for (uint32_t d = 0; d < s->x->rank && moves != NULL; d++) {
        for (uint32_t i = first; i < l->loops.depth && s->at[d].along; i++) {
            may &= !affine_uses(moves[d], l->loops.open[i].var);
        }
    }
    return may;
}

/* Longer runs: whole dimensions, or a piece of one. Returns the length of these. */
static int64_t lengthen(Search *s)
{
    const Dim *extent = s->l->from->bufs.at[s->x->buf].extent;
    int64_t run = 1;
    for (uint32_t d = s->x->rank; d-- > 0;) {
        Extent *e = &s->at[d];
        int64_t all = extent[d].n, elements = elements_of(s) / e->n;
        int64_t most = SLAB_MOST / s->size / elements, want = NKI_SHORT_RUN / s->size / run;
        if (e->along) {
            return run * e->n;
        }
        if (e->n < all && run * e->n * s->size < NKI_SHORT_RUN) {
            bool moves = s->x->moves != NULL && s->x->moves[d].n > 0;
            int64_t piece = (want < most ? want : most) / e->n * e->n;
            int64_t from = piece == 0 ? 0 : e->start / piece * piece;
            if (all <= most && (all <= 2 * want || moves) && may_be_whole(s, d)) {
                s->uses *= positions_of(s, d);
                *e = (Extent){.n = all, .span = all, .whole = true};
            } else if (!moves && piece > 0 && from + piece <= all &&
                       e->start + e->n <= from + piece) {
                double read = positions_of(s, d), pieces = (double)all / (double)piece;
                s->uses *= read > pieces ? read / pieces : 1;
                e->start = from;
                e->n = e->span = piece;
            }
        }
        run *= e->n;
        if (e->n < all) {
            break;
        }
    }
    return run;
}

/* The outermost loop that moves the view in the slab, or all that are open. */
static uint32_t first_loop(const Search *s)
{
    const Lower *l = s->l;
    uint32_t first = s->depth;
    for (uint32_t d = 0; d < s->x->rank && s->x->moves != NULL; d++) {
        for (uint32_t i = 0; i < first && s->at[d].whole; i++) {
            first = affine_uses(s->x->moves[d], l->loops.open[i].var) ? i : first;
        }
    }
    return first;
}

/* A slab is made before the loops that move views in it: dimensions that move with these, too, are in it as a whole. False: there is no
 * room. */
static bool settle(Search *s)
{
    const Dim *extent = s->l->from->bufs.at[s->x->buf].extent;
    for (uint32_t d = 0; d < s->x->rank; d++) {
        Extent *e = &s->at[d];
        Affine moves = outer_moves(s, d);
        bool within = false;
        for (uint32_t i = first_loop(s); i < s->l->loops.depth; i++) {
            within |= affine_uses(moves, s->l->loops.open[i].var);
        }
        if (!within) {
            continue;
        }
        s->uses *= positions_of(s, d);
        *e = (Extent){.n = extent[d].n, .span = extent[d].n, .along = e->along, .whole = true};
        if (e->along || sat_mul(elements_of(s), s->size) > SLAB_MOST) {
            return false;
        }
        d = UINT32_MAX; /* from the first one again */
    }
    return true;
}

/* The place of the slab, its labels and their steps in it. */
static bool make_slab(Search *s, Slab *out)
{
    Lower *l = s->l;
    const Place *x = s->x;
    out->place = *x;
    out->p = s->p;
    out->box = *s->box;
    out->rows = (Labels){0};
    out->first = 0;
    out->moves = affine_const(0);
    out->depth = l->loops.depth;
    Place *y = &out->place;
    int64_t row[NKI_DIMS], each = 1;
    Affine *moves = ARENA_ARRAY(l->arena, x->rank + 1, Affine);
    bool any = false;
    y->n_terms = 0;
    for (uint32_t i = 0; i < x->n_terms; i++) { /* those along partitions */
        const PlaceTerm *t = &x->term[i];
        if (labels_have(s->p, t->label) && s->box->n[t->label] > 1) {
            y->term[y->n_terms++] = *t;
        }
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        const Extent *e = &s->at[d];
        uint32_t own = PART_LABEL - 1 - out->rows.n;
        bool on = x->label[d] >= 0 && labels_have(s->p, (uint32_t)x->label[d]) &&
                  s->box->n[x->label[d]] > 1;
        y->base[d] = e->n > 1 ? 0 : e->start;
        y->label[d] = on ? x->label[d] : -1;
        if (e->n > 1) {
            if (own <= l->now.n_labels + 1 || (on && y->n_terms == PLACE_TERMS)) {
                return false;
            }
            if (on) {
                y->term[y->n_terms++] = (PlaceTerm){d, (uint32_t)x->label[d], 1};
            }
            y->label[d] = (int32_t)own;
            out->rows.at[out->rows.n++] = (uint8_t)own;
            out->box.s[own] = e->start;
            out->box.n[own] = e->n;
        }
        moves[d] = outer_moves(s, d);
        any |= moves[d].n > 0;
    }
    y->moves = any ? moves : NULL;
    for (uint32_t d = x->rank; d-- > 0;) {
        row[d] = s->at[d].n > 1 ? each : 0;
        each *= s->at[d].n;
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t start = place_start(x, d, s->box);
        for (uint32_t i = 0; i < s->p.n; i++) {
            uint32_t label = s->p.at[i];
            start -= s->box->n[label] > 1 ? place_coef(x, d, label) * s->box->s[label] : 0;
        }
        out->first += (start - s->at[d].start) * row[d];
        if (x->moves != NULL) {
            Affine inner = affine_add(l->arena, x->moves[d], -1, moves[d]);
            out->moves = affine_add(l->arena, out->moves, row[d], inner);
            for (uint32_t i = 0; i < out->depth; i++) {
                out->depth = affine_uses(inner, l->loops.open[i].var) ? i : out->depth;
            }
        }
    }
    for (uint32_t i = 0; i < s->f.n; i++) {
        uint32_t label = s->f.at[i];
        out->step[label] = 0;
        for (uint32_t d = 0; d < x->rank; d++) {
            out->step[label] += place_coef(x, d, label) * row[d];
        }
        if (s->box->n[label] > 1 && (out->step[label] <= 0 || out->step[label] > STEP_MOST)) {
            return false;
        }
    }
    out->elements = each;
    return true;
}

/* Elements at the end of the free axis that follow each other in memory, one part of complex numbers by itself. */
static int64_t run_of(const Lower *l, const Place *x, Labels f, const Box *box)
{
    int64_t run = 1;
    for (uint32_t i = f.n; i-- > 0;) {
        if (box->n[f.at[i]] > 1 && place_stride(l, x, f.at[i]) != run) {
            break;
        }
        run *= box->n[f.at[i]];
    }
    return run;
}

/* Descriptors of rows, in units of NKI_SHORT_RUN bytes. */
static double descriptors(double elements, int64_t run, int64_t size)
{
    double bytes = (double)(run * size) / NKI_SHORT_RUN;
    return elements / (double)run * (bytes < 1 ? 1 : bytes);
}

uint32_t view_inner(Labels f, const Box *box, const int64_t *step, int64_t *count)
{
    uint32_t dims = 0, from = f.n, last = LABELS;
    *count = 1;
    for (; from > 0; from--) {
        uint32_t label = f.at[from - 1];
        if (box->n[label] == 1) {
            continue;
        }
        bool on = last < LABELS && step[label] == step[last] * box->n[last];
        if (!on && (step[label] > STEP_MOST || ++dims > WALKED_DIMS)) {
            break;
        }
        last = label;
        *count *= box->n[label];
    }
    return from;
}

void view_put_rows(Lower *l, const Home *h, TileView run, TileView from)
{
    int64_t rows = from.np;
    if (run.p0 != 0 && view_space(l, from) == SPACE_ACC) {
        TileView copy = tile_new(l, "row", view_dtype(l, run), SPACE_TILE, rows, run.nf);
        make_copy(l, copy, from);
        from = copy;
    }
    for (int64_t done = 0; done < rows; done += run.np) {
        int64_t room = NKI_PARTITIONS - run.p0;
        run.np = rows - done < room ? rows - done : room;
        TileView part = view_rows(from, run.np);
        part.p0 += done;
        make_copy(l, run, part);
        run.p0 = 0;
        run.f0 += h->chunk_stride;
    }
}

void view_copy(Lower *l, const Home *into, TileView walked, TileView row, Labels f,
               const Box *box, const int64_t *step)
{
    int64_t one[LABELS], by[LABELS], count, at = 0;
    Labels outer = {.n = view_inner(f, box, step, &count)}, inner = {0};
    for (uint32_t i = 0; i < f.n; i++) {
        bool in = i >= outer.n;
        one[i] = 1;
        by[inner.n] = step[f.at[i]];
        inner.at[inner.n] = outer.at[i] = f.at[i];
        inner.n += in;
    }
    Box part = *box;
    for (bool first = true; box_next(outer, box, one, &part, first) && !l->tried.failed;
         first = false, at += count) {
        TileView v = walked;
        for (uint32_t i = 0; i < outer.n; i++) {
            v.f0 += (part.s[outer.at[i]] - box->s[outer.at[i]]) * step[outer.at[i]];
        }
        view_walk(&v, inner, box, by);
        if (into != NULL) {
            view_put_rows(l, into, v, view_part(row, at, count));
        } else {
            make_copy(l, view_part(row, at, count), v);
        }
    }
}

bool view_slab(Lower *l, const Place *x, Labels p, Labels f, const Box *box, Slab *out)
{
    Search s = {.l = l, .x = x, .p = p, .f = f, .box = box, .depth = l->loops.depth, .uses = 1};
    uint32_t unit = view_unit(l, x);
    if (l->home[x->buf].on_chip || l->turn[x->buf].is || x->rank == 0 ||
        (unit < LABELS && labels_have(p, unit) && box->n[unit] > 1)) {
        return false;
    }
    s.size = dtype_bytes(l->from->bufs.at[x->buf].dtype);
    if (!add_box(&s)) {
        return false;
    }
    if (x->n_terms > 0 && l->now.flat == 0) {
        add_taps(&s);
        add_loops(&s);
    }
    out->run = lengthen(&s);
    out->free = (Labels){0};
    for (uint32_t i = 0; i < f.n; i++) {
        if (box->n[f.at[i]] > 1) {
            out->free.at[out->free.n++] = f.at[i];
        }
    }
    if (!settle(&s) || !make_slab(&s, out) || sat_mul(out->elements, s.size) > SLAB_MOST ||
        !view_is_inside(l, &out->place, &out->box)) {
        return false;
    }
    double n = (double)labels_count(out->free, box);
    out->loads = descriptors((double)out->elements, out->run, s.size) / s.uses;
    out->direct = descriptors(n, run_of(l, x, f, box), s.size);
    (void)view_inner(out->free, box, out->step, &out->copied);
    double most = out->moves.n > 0 ? AT_ONCE * out->direct : out->direct;
    return out->loads < most;
}

uint32_t slab_dims(Labels f, const Box *box, const int64_t *step)
{
    uint32_t dims = 0, last = LABELS;
    for (uint32_t i = 0; i < f.n; i++) {
        uint32_t label = f.at[i];
        if (box->n[label] > 1) {
            dims += last == LABELS || step[last] != step[label] * box->n[label];
            last = label;
        }
    }
    return dims;
}

bool slab_view(Lower *l, const Slab *s, TileView *out)
{
    int64_t bytes = s->elements * dtype_bytes(l->from->bufs.at[s->place.buf].dtype);
    if (s->depth < l->loops.depth && hoist_depth(l, &s->place, bytes) > s->depth) {
        return false; /* written there, or no room */
    }
    Box full = l->now.full;
    for (uint32_t i = 0; i < s->rows.n; i++) {
        l->now.full.s[s->rows.at[i]] = s->box.s[s->rows.at[i]];
        l->now.full.n[s->rows.at[i]] = s->box.n[s->rows.at[i]];
    }
    l->room.as_it_lies = true;
    *out = view_of(l, &s->place, s->p, s->rows, &s->box);
    l->room.as_it_lies = false;
    l->now.full = full;
    out->f0 += s->first * out->step;
    if (s->moves.n > 0) {
        Affine *by = ARENA_NEW(l->arena, Affine);
        Affine was = out->moves == NULL ? affine_const(0) : *out->moves;
        *by = affine_add(l->arena, was, out->step, s->moves);
        out->moves = by;
    }
    return true;
}

void view_walk(TileView *v, Labels f, const Box *box, const int64_t *step)
{
    FreeDim dim[WALKED_DIMS + 1] = {{0}};
    uint32_t n = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        int64_t count = box->n[f.at[i]];
        if (count > 1 && n > 0 && dim[n - 1].step == step[i] * count) {
            dim[n - 1] = (FreeDim){step[i], dim[n - 1].n * count};
        } else if (count > 1) {
            CHECK(n < WALKED_DIMS);
            dim[n++] = (FreeDim){step[i], count};
        }
    }
    v->nf = labels_count(f, box);
    v->step = n == 0 ? 1 : dim[n - 1].step;
    v->n_outer = n == 0 ? 0 : n - 1;
    for (uint32_t i = 0; i < v->n_outer; i++) {
        v->outer[i] = dim[i];
    }
}

TileView slab_part(const Slab *s, TileView from, Labels f, const Box *box)
{
    int64_t step[LABELS];
    for (uint32_t i = 0; i < f.n; i++) {
        step[i] = s->step[f.at[i]] * from.step;
    }
    view_walk(&from, f, box, step);
    return from;
}
