/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs about affine expressions by substitution of bounds (bounds.h). Where a variable has
 * two upper bounds, the end of its tile and the limit, both are tried; a budget of steps keeps
 * that finite in fact as well as in theory. */
#include "loop/bounds.h"

#include "op/affine.h"
#include "loop/walk.h"

/* Substitutions one proof may make. Kernels of real programs need fewer than 20. */
#define PROOF_STEPS 500

/* To a depth beyond which the verifier refuses. */
static uint64_t count_statements(const Kernel *k)
{
    StmtWalk w;
    uint64_t count = 0;
    for (const Stmt *s = stmt_first(&w, k->body, k->n_body); s != NULL; s = stmt_next(&w)) {
        count++;
        if (w.depth > LOOP_DEPTH_LIMIT) {
            stmt_skip(&w);
        }
    }
    return count;
}

void bounds_init(Bounds *b, Arena *arena, const Kernel *k)
{
    *b = (Bounds){.arena = arena, .k = k};
    b->most = BOUNDS_STEPS + BOUNDS_STEPS_STATEMENT * count_statements(k);
    b->position = ARENA_ARRAY(arena, k->vars.n, uint32_t);
    b->dim_least = ARENA_ARRAY(arena, k->dims.list.n, int64_t);
}

bool bounds_exhausted(const Bounds *b)
{
    return b->steps > b->most;
}

bool bounds_in_scope(const Bounds *b, VarRef v)
{
    return b->position[v] != 0;
}

static Affine dim_affine(const Bounds *b, Dim d)
{
    if (d.sym < 0) {
        return affine_const(d.n);
    }
    return affine_var(b->arena, affine_dim(d.sym));
}

/* ---- what a range says ---- */

static int64_t floor_mod(int64_t a, int64_t m)
{
    int64_t r = a % m;
    return r < 0 ? r + m : r;
}

/* x = *residue modulo *modulus, as far as the variables tell; numbers that overflow tell
 * nothing. */
static void affine_residue(const Bounds *b, Affine x, int64_t *modulus, int64_t *residue)
{
    *modulus = 0;
    *residue = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        if (affine_is_dim(x.term[i].var)) {
            *modulus = gcd(*modulus, x.term[i].coef);
            continue;
        }
        const BoundVar *v = &b->vars.at[b->position[x.term[i].var] - 1];
        int64_t m = 0;
        int64_t r = 0;
        if (!i64_try_mul(x.term[i].coef, v->modulus, &m) || m == INT64_MIN ||
            !i64_try_mul(x.term[i].coef, v->residue, &r) ||
            !i64_try_add(*residue, r, residue)) {
            *modulus = 1;
            *residue = 0;
            return;
        }
        *modulus = gcd(*modulus, m);
    }
    if (*modulus != 0) {
        *residue = floor_mod(*residue, *modulus);
    }
}

/* The least value of x as a number, when its coefficients are positive. */
static bool affine_least(const Bounds *b, Affine x, int64_t *least)
{
    *least = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        if (affine_is_dim(x.term[i].var)) {
            return false;
        }
        const BoundVar *v = &b->vars.at[b->position[x.term[i].var] - 1];
        int64_t part = 0;
        if (x.term[i].coef < 0 || !v->has_least ||
            !i64_try_mul(x.term[i].coef, v->least, &part) ||
            !i64_try_add(*least, part, least)) {
            return false;
        }
    }
    return true;
}

void bounds_push(Bounds *b, VarRef var, const Range *range, int64_t step, ForPart part)
{
    BoundVar v = {.var = var, .range = *range, .step = step, .part = part};
    affine_residue(b, range->start, &v.modulus, &v.residue);
    v.modulus = gcd(v.modulus, step);
    v.residue = floor_mod(v.residue, v.modulus);
    v.has_least = affine_least(b, range->start, &v.least);
    if (range->clipped && range->limit.sym >= 0) {
        /* reached only when least + 1 (or a whole tile) fits below the limit */
        int64_t *known = &b->dim_least[range->limit.sym];
        int64_t here = 0;
        v.dim_least = *known;
        if (v.has_least && i64_try_add(v.least, part == FOR_FULL ? step : 1, &here) &&
            here > *known) {
            *known = here;
        }
    }
    vec_push(b->arena, &b->vars, v);
    b->position[var] = b->vars.n;
}

void bounds_pop(Bounds *b)
{
    const BoundVar *v = &b->vars.at[--b->vars.n];
    b->position[v->var] = 0;
    if (v->range.clipped && v->range.limit.sym >= 0) {
        b->dim_least[v->range.limit.sym] = v->dim_least;
    }
}

bool bounds_narrow(Bounds *b, const Guard *g, BoundVar *was)
{
    bool in_scope = bounds_in_scope(b, g->var);
    for (uint32_t t = 0; t < g->from.n; t++) {
        in_scope &= bounds_in_scope(b, g->from.term[t].var) && g->from.term[t].coef > 0;
    }
    if (!in_scope) {
        return false;
    }
    BoundVar *at = &b->vars.at[b->position[g->var] - 1];
    *was = *at;
    Range *r = &at->range;
    if (r->span != 0 || !r->clipped || r->limit.sym >= 0 || at->step != 1 ||
        at->part != FOR_ALL) {
        return false;
    }
    Affine from = r->start, lo = g->from;
    from.base = lo.base = g->lo;
    if (r->start.n == 0) { /* what is added to the number is 0 at least */
        at->least = r->start.base > lo.base ? r->start.base : lo.base;
        r->start = affine_const(at->least);
    } else if (affine_eq(from, lo) && lo.base > r->start.base) {
        at->least += lo.base - r->start.base;
        r->start = lo;
    }
    r->limit.n = r->limit.n < g->hi ? r->limit.n : g->hi;
    return true;
}

void bounds_widen(Bounds *b, const BoundVar *was)
{
    b->vars.at[b->position[was->var] - 1] = *was;
}

/* start + the greatest multiple of the step that stays within the span */
static bool upper_of_span(const Bounds *b, const BoundVar *v, Affine *out)
{
    int64_t room = v->range.span - (v->part == FOR_FULL ? v->step : 1);
    if (v->range.span == 0) {
        return false;
    }
    if (room > 0) {
        room -= room % v->step;
    }
    return affine_try_add(b->arena, v->range.start, 1, affine_const(room), out);
}

static bool upper_of_limit(const Bounds *b, const BoundVar *v, Affine *out)
{
    if (!v->range.clipped) {
        return false;
    }
    int64_t room = v->part == FOR_FULL ? v->step : 1;
    if (v->range.limit.sym >= 0) {
        return affine_try_add(b->arena, dim_affine(b, v->range.limit), 1, affine_const(-room),
                              out);
    }
    int64_t last = 0;
    if (!i64_try_add(v->range.limit.n, -room, &last)) {
        return false;
    }
    if (v->modulus > 1 && last > 0) { /* the last position of its kind */
        int64_t excess = floor_mod(last % v->modulus - v->residue, v->modulus);
        last -= excess;
    }
    *out = affine_const(last);
    return true;
}

/* ---- proofs ---- */

/* x with `v` replaced by `by`. */
static bool replace(const Bounds *b, Affine x, VarRef v, int64_t coef, Affine by, Affine *out)
{
    const AffineTerm term = {v, coef};
    const Affine own = {0, 1, &term};
    return affine_try_add(b->arena, x, -1, own, out) &&
           affine_try_add(b->arena, *out, coef, by, out);
}

/* The innermost variable of x among those beyond the first n_outer in scope, or null. */
static const BoundVar *innermost(const Bounds *b, Affine x, uint32_t n_outer, int64_t *coef)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < x.n && !affine_is_dim(x.term[i].var); i++) {
        uint32_t position = b->position[x.term[i].var];
        if (position > n_outer && position > at) {
            at = position;
            *coef = x.term[i].coef;
        }
    }
    return at == 0 ? NULL : &b->vars.at[at - 1];
}

static bool prove(Bounds *b, Affine x, uint32_t *steps)
{
    for (;;) {
        int64_t coef = 0;
        const BoundVar *v = innermost(b, x, 0, &coef);
        if (v == NULL) {
            return dims_prove(b->arena, &b->k->dims, x, b->dim_least);
        }
        if ((*steps)++ == PROOF_STEPS || bounds_exhausted(b)) {
            return false;
        }
        b->steps++;
        Affine by = {0};
        Affine with = {0};
        if (coef > 0) {
            if (!replace(b, x, v->var, coef, v->range.start, &x)) {
                return false;
            }
            continue;
        }
        if (upper_of_span(b, v, &by) && replace(b, x, v->var, coef, by, &with)) {
            if (!v->range.clipped) {
                x = with;
                continue;
            }
            if (prove(b, with, steps)) { /* at most as deep as variables are in scope */
                return true;
            }
        }
        if (!upper_of_limit(b, v, &by) || !replace(b, x, v->var, coef, by, &x)) {
            return false;
        }
    }
}

bool bounds_at_least_zero(Bounds *b, Affine x)
{
    uint32_t steps = 0;
    ArenaMark mark = arena_mark(b->arena);
    bool proved = prove(b, x, &steps);
    arena_reset(b->arena, mark);
    return proved;
}

bool bounds_below(Bounds *b, Affine x, Dim extent)
{
    uint32_t steps = 0;
    Affine room = {0};
    ArenaMark mark = arena_mark(b->arena);
    bool proved = affine_try_add(b->arena, dim_affine(b, extent), -1, x, &room) &&
                  affine_try_add(b->arena, room, 1, affine_const(-1), &room) &&
                  prove(b, room, &steps);
    arena_reset(b->arena, mark);
    return proved;
}

/* Least (or greatest) values for all variables beyond n_outer. The end of the tile is preferred
 * to the limit: it moves with the outer loop. */
static bool one_side(Bounds *b, Affine x, uint32_t n_outer, bool least, Affine *out)
{
    for (;;) {
        int64_t coef = 0;
        const BoundVar *v = innermost(b, x, n_outer, &coef);
        if (v == NULL) {
            *out = x;
            return true;
        }
        b->steps++;
        Affine by = v->range.start;
        bool upper = (coef > 0) != least;
        if (upper && !upper_of_span(b, v, &by) && !upper_of_limit(b, v, &by)) {
            return false;
        }
        if (!replace(b, x, v->var, coef, by, &x)) {
            return false;
        }
    }
}

bool bounds_interval(Bounds *b, Affine x, uint32_t n_outer, Affine *lo, Affine *hi)
{
    return one_side(b, x, n_outer, true, lo) && one_side(b, x, n_outer, false, hi);
}

/* ---- places ---- */

/* Do the two have an index of the statement in common? */
static bool share_index(const Kernel *k, Affine x, Affine y)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (!affine_is_dim(x.term[i].var) && !k->vars.at[x.term[i].var].is_loop &&
            affine_uses(y, x.term[i].var)) {
            return true;
        }
    }
    return false;
}

/* x > y */
static bool is_above(Bounds *b, Affine x, Affine y)
{
    Affine above = {0};
    return affine_try_add(b->arena, x, -1, y, &above) &&
           affine_try_add(b->arena, above, 1, affine_const(-1), &above) &&
           bounds_at_least_zero(b, above);
}

bool bounds_apart(Bounds *b, uint32_t rank, const Affine *x, const Affine *y, const bool *given)
{
    for (uint32_t d = 0; d < rank; d++) {
        if ((given == NULL || given[d]) && !share_index(b->k, x[d], y[d]) &&
            (is_above(b, x[d], y[d]) || is_above(b, y[d], x[d]))) {
            return true;
        }
    }
    return false;
}

/* The number of values that a local index has at most, 0 where no number is known. */
static int64_t most_values(const Stmt *s, VarRef var)
{
    for (uint32_t i = 0; i < s->n_index; i++) {
        const Range *r = &s->index[i].range;
        if (s->index[i].var == var && (r->span > 0 || range_is_constant(r))) {
            return r->span > 0 ? r->span : r->limit.n - r->start.base;
        }
    }
    return 0;
}

bool bounds_are_digits(const Kernel *k, const Stmt *s, Affine x, uint32_t n_moving)
{
    int64_t reach = 0; /* of the digits so far: all less than the next coefficient */
    uint64_t done = 0;
    if (x.n > 64) {
        return false;
    }
    for (uint32_t round = 0; round < x.n; round++) {
        uint32_t least = x.n;
        for (uint32_t i = 0; i < x.n; i++) {
            if (!(done >> i & 1) && !affine_is_dim(x.term[i].var) &&
                !k->vars.at[x.term[i].var].is_loop &&
                (least == x.n || x.term[i].coef < x.term[least].coef)) {
                least = i;
            }
        }
        if (least == x.n) {
            return true;
        }
        done |= (uint64_t)1 << least;
        int64_t coef = x.term[least].coef, values = most_values(s, x.term[least].var), width;
        if (round + 1 == n_moving) {
            return coef > reach;
        }
        if (values < 1 || coef <= reach || !i64_try_mul(coef, values - 1, &width) ||
            !i64_try_add(reach, width, &reach)) {
            return false;
        }
    }
    return true;
}
