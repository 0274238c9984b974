/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges: what an index that stands in sums alone runs over, and whether positions stay inside of what they read. */
#include "front/check_positions.h"
#include "op/factors.h"

/* The largest (or least) position, of dims; false when it does not fit. */
static bool extreme(Kern *k, Affine x, bool most, Affine *out)
{
    Arena *a = k->c->arena;
    *out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        const AffineTerm t = x.term[i];
        Affine own = {0, 1, &t};
        int64_t coef = 1;
        if (!affine_is_dim(t.var)) {
            own = affine_extent(a, k->s.labels.at[t.var].extent);
            own.base--;
            coef = (t.coef > 0) == most ? t.coef : 0;
        }
        if (!affine_try_add(a, *out, coef, own, out)) {
            return false;
        }
    }
    return true;
}

/* x in dims that a call gives or products of them, what is added up of them in their place; false where something is divided. */
static bool spread(Kern *k, Affine x, Affine *out)
{
    Arena *a = k->c->arena;
    for (uint32_t d = k->k->dims.list.n; d-- > 0;) {
        const DimInfo *info = &k->k->dims.list.at[d];
        VarRef v = affine_dim((int32_t)d);
        if (info->n_terms == 0 || !affine_uses(x, v)) {
            continue;
        }
        Affine sum = affine_const(info->base);
        for (uint32_t i = 0; i < info->n_terms; i++) {
            const AffineTerm t = {affine_dim(info->term[i].dim.sym), info->term[i].coef};
            sum = affine_add(a, sum, 1, (Affine){0, 1, &t});
        }
        const AffineTerm own = {v, affine_coef(x, v)};
        if (info->divisor > 1 || !affine_try_add(a, x, -1, (Affine){0, 1, &own}, &x) ||
            !affine_try_add(a, x, own.coef, sum, &x)) {
            return false;
        }
    }
    *out = x;
    return true;
}

static bool extent_of_room(Kern *k, Affine room, Span at, Dim *out)
{
    if (!spread(k, room, &room)) {
        return false;
    }
    *out = extent_of_sum(k, at, room, 1);
    return out->sym >= 0 || (out->n >= 0 && out->n <= SIZE_LIMIT);
}

static bool slower_reach_end(Kern *k, const LateRead *r)
{
    Arena *a = k->c->arena;
    bool all = true;
    for (uint32_t i = 1; i <= r->slower && all; i++) {
        const LateRead *slower = r - i;
        Affine most, room;
        for (uint32_t t = 0; t < slower->at.n && all; t++) {
            VarRef v = slower->at.term[t].var;
            all = affine_is_dim(v) || extent_is_known(k, v);
        }
        all = all && extreme(k, slower->at, true, &most) &&
              affine_try_add(a, affine_extent(a, slower->extent), -1, most, &room) &&
              spread(k, room, &room) && room.n == 0 && room.base == 1;
    }
    return all;
}

static bool extent_at_most(Kern *k, Dim x, Dim y)
{
    Arena *a = k->c->arena;
    int64_t *least = ARENA_ARRAY(a, (size_t)k->k->dims.list.n + 1, int64_t);
    Affine room;
    return affine_try_add(a, affine_extent(a, y), -1, affine_extent(a, x), &room) &&
           dims_prove(a, &k->k->dims, room, least);
}

/* ---- ranges of indices ---- */

/* The range of an index that stands in sums alone, from one of them: the largest with which that stays inside. */
static bool infer(Kern *k, const LateRead *r, VarRef label, Dim *out)
{
    Arena *a = k->c->arena;
    Affine rest = affine_const(r->at.base), most, room;
    if (!slower_reach_end(k, r)) {
        return false;
    }
    for (uint32_t i = 0; i < r->at.n; i++) {
        const AffineTerm t = r->at.term[i];
        bool known = affine_is_dim(t.var) || extent_is_known(k, t.var);
        if (t.var == label ? t.coef != 1 : !known) {
            return false;
        }
        if (t.var != label) {
            rest = affine_add(a, rest, 1, (Affine){0, 1, &t});
        }
    }
    return extreme(k, rest, true, &most) &&
           affine_try_add(a, affine_extent(a, r->extent), -1, most, &room) &&
           extent_of_room(k, room, r->span, out);
}

/* The terms of a position by their steps, the smallest first; their number, 0 where they are no numbers of which each is a multiple
 * of those before. *before: how many of the largest step are added to it. */
static uint32_t sort_steps(Kern *k, Affine x, AffineTerm *term, Affine *before)
{
    uint32_t n = affine_steps(x, term);
    int64_t step = n == 0 ? 1 : term[n - 1].coef;
    bool fine = n > 0 && x.base >= 0 && x.base % step < term[0].coef;
    *before = affine_const(x.base / step);
    for (uint32_t i = 0; i < x.n && fine; i++) {
        const AffineTerm dims = {x.term[i].var, x.term[i].coef / step};
        fine = i < n
                   ? i == 0 || term[i].coef % term[i - 1].coef == 0
                   : x.term[i].coef % step == 0 &&
                         affine_try_add(k->c->arena, *before, 1, (Affine){0, 1, &dims}, before);
    }
    return fine ? n : 0;
}

/* The range of an index in one position, in rows of numbers: of the slowest index what is left of the dimension, of a faster one a row,
 * where the slower ones reach the end of it. Faster ones that are known stay in their rows. */
static bool range_in_rows(Kern *k, const LateRead *r, VarRef label, Dim *out)
{
    Arena *a = k->c->arena;
    AffineTerm *term = ARENA_ARRAY(a, (size_t)r->at.n + 1, AffineTerm);
    Affine before, room;
    uint32_t n = sort_steps(k, r->at, term, &before);
    if (n == 0 || !slower_reach_end(k, r) ||
        !dims_divide(a, a, &k->c->ctx->syms, &k->k->dims, r->span, r->extent,
                     dim_fixed(term[n - 1].coef), out) ||
        !affine_try_add(a, affine_extent(a, *out), -1, before, &room) ||
        !extent_of_room(k, room, r->span, out)) {
        return false;
    }
    uint32_t i = n - 1;
    for (; term[i].var != label; i--) { /* there is one */
        if (!extent_is_known(k, term[i].var) ||
            !dim_eq(k->s.labels.at[term[i].var].extent, *out)) {
            return false;
        }
        *out = dim_fixed(term[i].coef / term[i - 1].coef);
    }
    for (uint32_t j = 0; j < i; j++) {
        Dim row = dim_fixed(term[j + 1].coef / term[j].coef);
        if (extent_is_known(k, term[j].var) &&
            !extent_at_most(k, k->s.labels.at[term[j].var].extent, row)) {
            return false;
        }
    }
    return true;
}

typedef bool RangeRule(Kern *k, const LateRead *r, VarRef label, Dim *out);

/* The range with which the index stays inside wherever the rule says one; false where it says none, or they cannot be compared. */
static bool infer_label(Kern *k, VarRef v, RangeRule *rule, Dim *out)
{
    bool any = false, fine = true;
    for (uint32_t i = 0; i < k->s.late.n && fine; i++) {
        Dim d;
        if (!affine_uses(k->s.late.at[i].at, v) || !rule(k, &k->s.late.at[i], v, &d)) {
            continue;
        }
        fine = !any || extent_at_most(k, *out, d) || extent_at_most(k, d, *out);
        *out = !any || !extent_at_most(k, *out, d) ? d : *out;
        any = true;
    }
    return any && fine;
}

/* True when some index, `one` at most, became known. */
static bool infer_labels(Kern *k, RangeRule *rule, bool one)
{
    bool any = false;
    for (VarRef v = 0; v < k->s.labels.n && !(one && any); v++) {
        Dim d;
        if (!extent_is_known(k, v) && infer_label(k, v, rule, &d)) {
            k->s.labels.at[v].extent = d;
            k->s.labels.at[v].given = any = true;
        }
    }
    return any;
}

void positions_infer(Kern *k)
{
    while (infer_labels(k, infer, false) || infer_labels(k, range_in_rows, true)) {
    }
}

/* ---- what leaves its dimension ---- */

static void put_affine(Kern *k, Text *t, Affine x)
{
    bool first = true;
    for (uint32_t i = 0; i < x.n; i++) {
        int64_t coef = x.term[i].coef, size = coef < 0 ? -coef : coef;
        text_put(t, first ? (coef < 0 ? "-" : "") : coef < 0 ? " - " : " + ");
        if (size != 1) {
            text_printf(t, "%lld*", (long long)size);
        }
        dim_print(t, &k->k->dims, dim_open(affine_sym(x.term[i].var)));
        first = false;
    }
    if (x.base != 0 || first) {
        text_printf(t,
                    first        ? "%lld"
                    : x.base < 0 ? " - %lld"
                                 : " + %lld",
                    (long long)(first || x.base > 0 ? x.base : -x.base));
    }
}

static void report(Kern *k, const LateRead *r, int problem)
{
    const Value *v = &k->k->values.at[r->value];
    const char *name = v->name != NULL ? v->name->text : "the einsum";
    Affine reached;
    Text t = text_new(k->c->arena);
    bool fits = extreme(k, r->at, problem > 0, &reached);
    if (fits) {
        put_affine(k, &t, reached);
    }
    const char *where = r->part ? "a part of " : "";
    Diagnostic *e = diag_error(
        &k->c->ctx->diags, E_EXTENT_MISMATCH, r->span,
        problem > 0 ? "this reaches position %s, and %sdimension %u of '%s' has %s positions"
                    : "this may reach position %s of %sdimension %u of '%s', before the first "
                      "(it has %s)",
        fits ? t.at : "beyond 64 bits", where, r->axis, name,
        shape_text(k->c->arena, &k->k->dims, &(TensorType){v->type.dtype, 1, &r->extent}));
    note_shape(k, e, r->value);
    if (problem > 0 && fits) {
        Text need = text_new(k->c->arena);
        reached.base++;
        put_affine(k, &need, reached);
        diag_help(e, "it needs an extent of %s there", need.at);
    } else if (problem < 0 && fits && reached.n == 0 && r->at.n == 0 && v->name != NULL) {
        diag_help(e,
                  "%s[%lld] is what the steps of a recurrence begin with, where one reads "
                  "%s[t - %lld]",
                  name, (long long)reached.base, name, -(long long)reached.base);
    }
    k->s.poisoned = true;
}

/* A sum that may be below 0 for some sizes and is not for others: the call sees to it, as that a computed extent is none below 0. */
static bool checked_at_call(Kern *k, const LateRead *r, int problem)
{
    Arena *a = k->c->arena;
    Affine most, room;
    if (!extreme(k, r->at, problem > 0, &most) ||
        (problem > 0 && (!affine_try_add(a, affine_extent(a, r->extent), -1, most, &most) ||
                         !affine_try_add(a, most, 1, affine_const(-1), &most))) ||
        !spread(k, most, &room)) {
        return false;
    }
    bool ever = room.base >= 0;
    for (uint32_t i = 0; i < room.n; i++) {
        ever = ever || room.term[i].coef > 0;
    }
    if (room.n == 0 || !ever) {
        return false;
    }
    (void)extent_of_sum(k, r->span, room, 1);
    return true;
}

/* Of a step, whose index has not the positions that are given; 0: it lies inside. */
static int problem_in_step(Kern *k, const Dim *extent, const LateRead *r, Affine low,
                           Affine high)
{
    Arena *a = k->c->arena;
    Affine room = affine_add(a, affine_extent(a, r->extent), 1, affine_const(-1));
    Dim most = dim_fixed(SIZE_LIMIT);
    if (position_problem(a, &k->k->dims, extent, k->s.labels.n, low, most) < 0) {
        return -1;
    }
    room = affine_add(a, room, -1, high);
    return position_problem(a, &k->k->dims, extent, k->s.labels.n, room, most) < 0 ? 1 : 0;
}

/* Other indices of the statement may have no position where the tensor is read all the same. */
void positions_check(Kern *k)
{
    Arena *a = k->c->arena;
    Dim *extent = ARENA_ARRAY(a, k->s.labels.n, Dim); /* of the labels of one read */
    for (uint32_t l = 0; l < k->s.labels.n; l++) {
        extent[l] = dim_fixed(1);
    }
    for (uint32_t i = 0; i < k->s.late.n && !k->s.poisoned; i++) {
        const LateRead *r = &k->s.late.at[i];
        bool known = true;
        for (uint32_t t = 0; t < r->at.n && known; t++) {
            VarRef v = r->at.term[t].var;
            if (!affine_is_dim(v) && !extent_is_known(k, v)) {
                const Label *l = &k->s.labels.at[v];
                Diagnostic *d =
                    diag_error(&k->c->ctx->diags, E_UNBOUND_INDEX, r->span,
                               "the range of index '%s' is not known", l->name->text);
                diag_help(d, "give it where the index is listed: [%s < 3]", l->name->text);
                known = false;
                k->s.poisoned = true;
            }
        }
        int problem = 0;
        for (uint32_t l = 0; l < r->n_labels; l++) {
            extent[r->label[l]] = k->s.labels.at[r->label[l]].extent;
        }
        Affine low, high;
        bool step = known && steps_shift(k, r->at, &low, &high);
        if (step) {
            problem = problem_in_step(k, extent, r, low, high);
        }
        for (uint32_t round = 0; known && !step && round < 3;
             round++) { /* below 0, and past the end */
            problem = position_problem(a, &k->k->dims, extent, k->s.labels.n, r->at, r->extent);
            if (problem == 0 || !checked_at_call(k, r, problem)) {
                break;
            }
        }
        for (uint32_t l = 0; l < r->n_labels; l++) {
            extent[r->label[l]] = dim_fixed(1);
        }
        if (problem != 0) {
            report(k, r, problem);
        }
    }
}

bool position_has(const Kern *k, VarRef label)
{
    bool any = false;
    for (uint32_t i = 0; i < k->s.late.n && !any; i++) {
        any = affine_uses(k->s.late.at[i].at, label);
    }
    return any;
}
