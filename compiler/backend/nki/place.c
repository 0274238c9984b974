/* SPDX-License-Identifier: Apache-2.0 */
/* What a statement is, with the loops around it at their values: the places its accesses are,
 * the positions its indices take, and which statements belong together. Looks, and makes nothing. */
#include "backend/nki/place.h"

int64_t position_value(const Lower *l, Affine x)
{
    int64_t v = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        v += x.term[i].coef * l->value[x.term[i].var];
    }
    return v;
}

Affine position_moves(const Lower *l, Affine x)
{
    Affine out = affine_const(0);
    for (uint32_t i = 0; i < x.n; i++) {
        const Affine *by = &l->loops.moves[x.term[i].var];
        out = by->n == 0 ? out : affine_add(l->arena, out, x.term[i].coef, *by);
    }
    return out;
}

void position_range(const Lower *l, Affine x, int64_t *lo, int64_t *hi)
{
    Affine ends[2] = {x, x};
    for (uint32_t d = l->loops.depth; d-- > 0;) {
        const OpenLoop *o = &l->loops.open[d];
        for (uint32_t up = 0; up < 2; up++) {
            bool last = (affine_coef(ends[up], o->var) > 0) == (up == 1);
            ends[up] = affine_subst(l->arena, ends[up], o->var, last ? o->last : o->first);
        }
    }
    *lo = ends[0].base;
    *hi = ends[1].base;
}

int64_t place_coef(const Place *x, uint32_t dim, uint32_t label)
{
    int64_t coef = x->label[dim] == (int32_t)label;
    for (uint32_t i = 0; i < x->n_terms; i++) {
        coef += x->term[i].dim == dim && x->term[i].label == label ? x->term[i].coef : 0;
    }
    return coef;
}

int64_t place_start(const Place *x, uint32_t dim, const Box *box)
{
    int64_t at = x->base[dim] + (x->label[dim] < 0 ? 0 : box->s[x->label[dim]]);
    for (uint32_t i = 0; i < x->n_terms; i++) {
        at += x->term[i].dim == dim ? x->term[i].coef * box->s[x->term[i].label] : 0;
    }
    return at;
}

int64_t place_stride(const Lower *l, const Place *x, uint32_t label)
{
    int64_t s = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        s += place_coef(x, d, label) * l->home[x->buf].stride[d];
    }
    return s;
}

bool place_has(const Place *x, uint32_t label)
{
    for (uint32_t d = 0; d < x->rank; d++) {
        if (place_coef(x, d, label) != 0) {
            return true;
        }
    }
    return false;
}

Labels labels_varying(const Place *x, Labels list, const Box *box)
{
    Labels out = {0};
    for (uint32_t i = 0; i < list.n; i++) {
        if (box->n[list.at[i]] > 1 && place_has(x, list.at[i])) {
            out.at[out.n++] = list.at[i];
        }
    }
    return out;
}

static void place_add(Lower *l, Place *x, uint32_t dim, uint32_t label, int64_t coef)
{
    if (x->n_terms == PLACE_TERMS) {
        lower_refuse(l, l->now.stmt->span, "positions of so many indices");
        return;
    }
    x->term[x->n_terms++] = (PlaceTerm){dim, label, coef};
}

/* A block on chip moves by steps forward along its free axis, and with one index along its partitions: anything else goes through
 * HBM. */
static bool fits_block(const Lower *l, const Place *x)
{
    bool fits = true;
    for (uint32_t i = 0; i < x->n_terms; i++) {
        bool chunks = x->term[i].coef % NKI_PARTITIONS == 0; /* of rows */
        fits &= (x->term[i].dim != l->home[x->buf].pdim || chunks) && x->term[i].coef > 0;
    }
    return fits;
}

#define UNROLLED_MOST 8 /* iterations, for the sake of a block that lies across them */

/* Iterations of the innermost loop that moves it. */
static int64_t trips_of(const Lower *l, Affine moves)
{
    uint32_t depth = moving_depth(l, moves);
    return depth > 0 ? l->loops.open[depth - 1].trips : 0;
}

uint32_t place_moving_depth(const Lower *l, const Place *x)
{
    uint32_t depth = 0;
    for (uint32_t d = 0; d < x->rank && x->moves != NULL; d++) {
        uint32_t moving = moving_depth(l, x->moves[d]);
        depth = moving > depth ? moving : depth;
    }
    return depth;
}

static void place_away(Lower *l, const Place *x)
{
    const Home *h = &l->home[x->buf];
    Affine across =
        x->moves != NULL && h->on_chip && x->rank > 0 ? x->moves[h->pdim] : affine_const(0);
    for (uint32_t t = 0; t < across.n; t++) { /* no engine moves along partitions */
        if (across.term[t].coef % NKI_PARTITIONS == 0) {
            continue;
        }
        if (trips_of(l, across) > UNROLLED_MOST) {
            retry_away(l, x->buf, AWAY_STEPS);
        } else {
            retry_unrolled(l, across);
        }
        return;
    }
    if (l->home[x->buf].on_chip && !fits_block(l, x)) {
        retry_away(l, x->buf, AWAY_SUM);
    }
}

/* How the positions move with the loops that stay; null: not at all. */
static const Affine *place_moves(const Lower *l, BufRef buf, const Affine *at)
{
    uint32_t rank = l->from->bufs.at[buf].rank;
    bool any = false;
    if (l->loops.depth == 0 || rank == 0) {
        return NULL;
    }
    Affine *out = ARENA_ARRAY(l->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = position_moves(l, at[d]);
        for (uint32_t j = 0; j < l->now.stmt->n_index; j++) {
            int64_t coef = affine_coef(at[d], l->now.stmt->index[j].var);
            out[d] = coef == 0 || l->now.moves[j].n == 0
                         ? out[d]
                         : affine_add(l->arena, out[d], coef, l->now.moves[j]);
        }
        any |= out[d].n > 0;
    }
    return any ? out : NULL;
}

Place place_of(Lower *l, BufRef buf, const Affine *at)
{
    Place out = {.buf = buf, .rank = l->from->bufs.at[buf].rank};
    out.moves = place_moves(l, buf, at);
    pair_refresh(l, buf);
    for (uint32_t d = 0; d < out.rank; d++) {
        out.base[d] = at[d].base;
        out.label[d] = -1;
        for (uint32_t i = 0; i < at[d].n; i++) {
            VarRef v = at[d].term[i].var;
            int64_t coef = at[d].term[i].coef;
            uint32_t label = l->now.n_labels;
            for (uint32_t j = 0; j < l->now.n_labels; j++) {
                label = l->now.stmt->index[j].var == v ? j : label;
            }
            if (label == l->now.n_labels) {
                out.base[d] += coef * l->value[v];
                continue;
            }
            if (out.label[d] >= 0 || coef != 1) {
                place_add(l, &out, d, label, coef);
            } else {
                out.label[d] = (int32_t)label;
            }
            if (l->now.flat > 0 && label == l->now.cut) {
                place_add(l, &out, d, l->now.n_labels, coef * l->now.flat);
            }
        }
    }
    place_away(l, &out);
    return out;
}

/* The values a statement's variable takes. */
void range_values(const Lower *l, const Stmt *s, VarRef v, const Range *r, int64_t *lo,
                  int64_t *hi)
{
    *lo = position_value(l, r->start);
    *hi = r->span == 0 ? r->limit.n : *lo + r->span;
    *hi = r->clipped && r->limit.n < *hi ? r->limit.n : *hi;
    for (uint32_t i = 0; i < l->task.n_limits; i++) {
        const Limit *x = &l->task.limits[i];
        if (x->stmt == s && x->var == v) {
            *lo = x->lo > *lo ? x->lo : *lo;
            *hi = x->hi < *hi ? x->hi : *hi;
        }
    }
}

uint32_t statement_labels(const Lower *l)
{
    return l->now.n_labels + (l->now.flat > 0 ? 1 : 0);
}

double place_elements(const Lower *l, const Place *x)
{
    double count = 1;
    for (uint32_t label = 0; label < statement_labels(l); label++) {
        count *= place_has(x, label) ? (double)l->now.full.n[label] : 1;
    }
    return count;
}

Labels labels_as_placed(const Lower *l, const Place *place, Labels x, Labels y)
{
    Labels both = labels_join(x, y), out = {0};
    const Home *h = &l->home[place->buf];
    uint32_t order[NKI_DIMS];
    for (uint32_t d = 0; d < place->rank; d++) {
        uint32_t at = d;
        for (; at > 0 && h->stride[order[at - 1]] < h->stride[d]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = d;
    }
    for (uint32_t i = 0; i < place->rank; i++) {
        int32_t label = place->label[order[i]];
        if (label >= 0 && labels_have(both, (uint32_t)label) &&
            !labels_have(out, (uint32_t)label)) {
            out.at[out.n++] = (uint8_t)label;
        }
    }
    bool begun = false, ended = false, apart = out.n != both.n;
    uint32_t at = 0;
    for (uint32_t i = 0; i < out.n; i++) {
        if (labels_have(y, out.at[i])) {
            apart |= ended || out.at[i] != y.at[at];
            at++;
            begun = true;
        } else if (l->now.full.n[out.at[i]] > 1) {
            ended |= begun;
        }
    }
    return apart ? both : out;
}

/* ---- vectors ---- */

#define FLAT_LEAST 1024 /* elements worth spreading */

void collect_loads(Lower *l, const Expr *value, Loads *out)
{
    ExprWalk w;
    for (const Expr *x = load_first(&w, value); x != NULL && out->n < 32; x = load_next(&w)) {
        out->at[out->n++] = place_of(l, x->buf, x->at);
    }
}

bool place_moves_eq(const Place *x, const Place *y, uint32_t dim)
{
    Affine none = {0};
    return affine_eq(x->moves == NULL ? none : x->moves[dim],
                     y->moves == NULL ? none : y->moves[dim]);
}

static bool flat_place(const Lower *l, const Place *x)
{
    const Home *h = &l->home[x->buf];
    uint32_t count = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        bool moves = place_coef(x, d, 0) != 0;
        count += moves;
        if (moves && (h->on_chip || h->stride[d] != 1 || place_coef(x, d, 0) < 0)) {
            return false;
        }
    }
    return count <= 1 && !l->pair[x->buf] && !l->turn[x->buf].is;
}

bool place_is_flat(Lower *l, const Stmt *s)
{
    Loads loads = {0};
    if (l->now.n_labels != 1 || l->now.full.n[0] < FLAT_LEAST) {
        return false;
    }
    Place dst = place_of(l, s->dst, s->at);
    collect_loads(l, s->value, &loads);
    bool flat = flat_place(l, &dst) && loads.n < 32;
    for (uint32_t i = 0; i < loads.n; i++) {
        flat &= flat_place(l, &loads.at[i]);
        for (uint32_t d = 0; d < dst.rank && loads.at[i].buf == dst.buf; d++) { /* in place */
            flat &= place_moves_eq(&loads.at[i], &dst, d) &&
                    loads.at[i].base[d] == dst.base[d] &&
                    place_coef(&loads.at[i], d, 0) == place_coef(&dst, d, 0);
        }
    }
    return flat && (s->fold != OP_COPY || place_has(&dst, 0));
}
