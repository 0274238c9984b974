/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products whose terms are absent without a condition on positions, j <= i say, of the row i and the sum's j. Panels are
 * packed as ever. A register tile of rows i .. i + MR - 1 adds up the terms that all of its rows have as products do, the others, of
 * which there are MR - 1 here, position by position, each under the condition:
 *
 *     for j:      j <= i                        all rows
 *     for row:    for j:  i < j <= row          one row
 *
 * or, where columns are bounded, or both sides of the sum, dst += condition ? a * b : 0 for one such position after the other. Nothing
 * that the condition leaves out is multiplied by anything: 0 times infinity is not 0. */
#include <string.h>

#include "backend/c/matmul.h"

/* ---- conditions ---- */

/* *n: how many there are so far. */
static bool bounds_of(Arena *a, const Expr *e, uint32_t depth, Affine *out, uint32_t *n)
{
    if (e->kind != EXPR_OP || depth > EXPR_DEPTH_LIMIT) {
        return false;
    }
    if (e->op == OP_AND) {
        return bounds_of(a, e->arg[0], depth + 1, out, n) &&
               bounds_of(a, e->arg[1], depth + 1, out, n);
    }
    bool below = e->op == OP_LT || e->op == OP_LE, above = e->op == OP_GT || e->op == OP_GE;
    bool strict = e->op == OP_LT || e->op == OP_GT;
    Affine x[2], room;
    if ((!below && !above) || *n == MASK_CONDITIONS || !expr_affine(a, e->arg[0], &x[0]) ||
        !expr_affine(a, e->arg[1], &x[1]) ||
        !affine_try_add(a, x[below ? 1 : 0], -1, x[below ? 0 : 1], &room)) {
        return false;
    }
    room.base -= strict ? 1 : 0;
    out[(*n)++] = room;
    return true;
}

uint32_t condition_bounds(Arena *a, const Expr *condition, Affine *out)
{
    uint32_t n = 0;
    return bounds_of(a, condition, 0, out, &n) ? n : 0;
}

static bool is_local(const Matmul *m, VarRef v, ScheduleRole role)
{
    for (uint32_t i = 0; i < m->b->n_labels[role]; i++) {
        if (m->s->index[m->b->label[role][i]].var == v) {
            return true;
        }
    }
    return false;
}

bool where_of(Matmul *m)
{
    m->n_bounds = condition_bounds(m->l->arena, m->term.condition, m->bound);
    if (m->b->n_labels[ROLE_K] != 1 || dtype_is_complex(m->t) || m->n_bounds == 0) {
        return false;
    }
    VarRef sum = matmul_var(m, m->index[ROLE_K]);
    uint32_t least = 0, most = 0, none = 0;
    for (uint32_t i = 0; i < m->n_bounds; i++) {
        int64_t coef = affine_coef(m->bound[i], sum);
        least += coef == 1 ? 1 : 0;
        most += coef == -1 ? 1 : 0;
        none += coef == 0 ? 1 : 0;
        for (uint32_t k = 0; k < m->bound[i].n; k++) { /* tiles may gather several labels */
            VarRef v = m->bound[i].term[k].var;
            for (ScheduleRole r = 0; r < SIDES; r++) {
                if (is_local(m, v, r) && m->b->n_labels[r] > 1) {
                    return false;
                }
            }
        }
    }
    return least <= 1 && most <= 1 && least + most + none == m->n_bounds &&
           (none == 0 ||
            m->s->begins); /* else there is something in the places of the others */
}

/* ---- loops ---- */

void where_loop(Matmul *m, ScheduleRole role, const Range *range)
{
    Arena *a = m->l->arena;
    Stmt *loop = m->l->block->owner;
    VarRef own = matmul_var(m, m->index[role]);
    if (loop == NULL || loop->kind != STMT_FOR || loop->part == FOR_REST ||
        !affine_eq(range[role].start, affine_var(a, loop->var)) || m->b->n_labels[role] != 1) {
        return;
    }
    Window w = {false, false, affine_const(0), affine_const(0)};
    for (uint32_t i = 0; i < m->n_bounds; i++) {
        int64_t coef = affine_coef(m->bound[i], own);
        Affine x = affine_add(a, m->bound[i], -coef, affine_var(a, own));
        bool known = coef == 1 || coef == -1;
        for (ScheduleRole r = ROLE_M; known && r <= ROLE_K; r++) {
            VarRef v = matmul_var(m, m->index[r]);
            int64_t of = affine_coef(x, v);
            Affine last = range[r].start;
            last.base += of > 0 ? range[r].span - 1 : 0;
            known = of == 0 || range[r].span > 0 || of < 0;
            x = of == 0 ? x : affine_subst(a, x, v, last);
        }
        x = *access_subst(m->l->arena, 1, &x, m->subst, m->n_subst);
        if (known && coef > 0) {
            w.has_lo = true;
            w.lo = affine_add(a, affine_const(0), -1, x);
        } else if (known) {
            w.has_hi = true;
            w.hi = affine_add(a, x, 1, affine_const(1));
        }
    }
    loop->window = w.has_lo || w.has_hi ? arena_copy(a, &w, sizeof w) : NULL;
}

/* ---- products ---- */

/* The greatest or the least value of x in the register tile. */
static Affine in_tile(Matmul *m, Affine x, bool most)
{
    Arena *a = m->l->arena;
    for (ScheduleRole r = 0; r < SIDES; r++) {
        VarRef v = matmul_var(m, m->index[r]);
        int64_t coef = affine_coef(x, v);
        Affine at = m->first[r];
        at.base += (coef > 0) == most ? m->tile[r] - 1 : 0;
        x = coef == 0 ? x : affine_subst(a, x, v, at);
    }
    return x;
}

/* Positions of the sum by which it is bounded: `all` rows and columns of the tile have those within, `any` some. */
typedef struct Windows {
    Window all, any;
} Windows;

static Windows windows_of(Matmul *m)
{
    Arena *a = m->l->arena;
    VarRef sum = matmul_var(m, m->index[ROLE_K]);
    Windows w = {{false, false, affine_const(0), affine_const(0)},
                 {false, false, affine_const(0), affine_const(0)}};
    for (uint32_t i = 0; i < m->n_bounds; i++) {
        Affine x = m->bound[i], own = affine_var(a, sum);
        int64_t coef = affine_coef(x, sum);
        if (coef == 0) {
            continue;
        }
        x = affine_add(a, x, -coef, own);
        x = *access_subst(m->l->arena, 1, &x, m->subst, m->n_subst);
        Affine least = in_tile(m, x, false), most = in_tile(m, x, true);
        if (coef < 0) { /* position <= x */
            w.all.has_hi = w.any.has_hi = true;
            w.all.hi = affine_add(a, least, 1, affine_const(1));
            w.any.hi = affine_add(a, most, 1, affine_const(1));
        } else { /* position >= -x */
            w.all.has_lo = w.any.has_lo = true;
            w.all.lo = affine_add(a, affine_const(0), -1, least);
            w.any.lo = affine_add(a, affine_const(0), -1, most);
        }
    }
    return w;
}

/* Does the condition bound one side of the sum, by the row, where rows of the tile are positions of their label? */
static bool bounds_rows(Matmul *m, const Range range[3])
{
    return m->n_bounds == 1 && affine_coef(m->bound[0], matmul_var(m, m->index[ROLE_K])) != 0 &&
           affine_coef(m->bound[0], matmul_var(m, m->index[ROLE_N])) == 0 &&
           affine_eq(range[ROLE_M].start, m->first[ROLE_M]);
}

/* One row after the other adds up what it has and not all rows do. */
static void rows_product(Matmul *m, const VarRef var[3], const Range range[3], BufRef dst,
                         const Affine *at, const Expr *product, Windows w)
{
    Legaliser *l = m->l;
    Affine first = m->first[ROLE_M];
    int64_t rows = m->tile[ROLE_M];
    m->first[ROLE_M] = affine_var(l->arena, loop_open(l, "r", range[ROLE_M], 1, FOR_ALL));
    m->tile[ROLE_M] = 1;
    Window *own = ARENA_NEW(l->arena, Window);
    *own = windows_of(m).any;
    own->lo = own->has_hi ? w.all.hi : own->lo;
    own->hi = own->has_hi ? own->hi : w.all.lo;
    own->has_lo = own->has_hi = true;
    Range row = {.start = m->first[ROLE_M], .span = 1, .limit = dim_fixed(0)};
    TileIndex index[3] = {index_of(var[ROLE_M], row, MODE_UNROLL),
                          index_of(var[ROLE_N], range[ROLE_N], MODE_VECTOR),
                          index_of(var[ROLE_K], range[ROLE_K], MODE_LOOP)};
    index[ROLE_K].window = own;
    tile_add(l, 3, index, dst, at, OP_SUM, product);
    loop_close(l);
    m->tile[ROLE_M] = rows;
    m->first[ROLE_M] = first;
}

static const Expr *compare(Matmul *m, Op op, Affine x, Affine y)
{
    const Expr *pair[2] = {expr_index(m->l->arena, DTYPE_I64, x),
                           expr_index(m->l->arena, DTYPE_I64, y)};
    return expr_op(m->l->arena, op, DTYPE_BOOL, 2, pair);
}

/* Positions of the sum that only some rows or columns have, one at a time: from `lo`, below `hi`; those from `from` on. */
static void some_product(Matmul *m, const VarRef var[3], const Range range[3], BufRef dst,
                         const Affine *at, const Expr *product, Affine lo, Affine hi,
                         const Affine *from)
{
    Legaliser *l = m->l;
    Arena *a = l->arena;
    VarRef v = loop_open(l, "x", range[ROLE_K], 1, FOR_ALL);
    Window *w = ARENA_NEW(a, Window);
    *w = (Window){true, true, lo, hi};
    l->block->owner->window = w;
    uint32_t n = m->n_subst;
    Subst *by = ARENA_ARRAY(a, (size_t)n + 3, Subst);
    memcpy(by, m->subst, n * sizeof *by);
    Affine here = affine_var(a, v),
           row = affine_minus(l, m->first[ROLE_M], range[ROLE_M].start),
           column = affine_minus(l, m->first[ROLE_N], range[ROLE_N].start);
    by[n++] = (Subst){matmul_var(m, m->index[ROLE_K]), here};
    by[n++] = (Subst){matmul_var(m, m->index[ROLE_M]),
                      affine_add(a, row, 1, affine_var(a, var[ROLE_M]))};
    by[n++] = (Subst){matmul_var(m, m->index[ROLE_N]),
                      affine_add(a, column, 1, affine_var(a, var[ROLE_N]))};
    const Expr *condition = expr_subst(l->arena, l->k, m->term.condition, by, n);
    if (from != NULL) {
        const Expr *both[2] = {condition, compare(m, OP_GE, here, *from)};
        condition = expr_op(a, OP_AND, DTYPE_BOOL, 2, both);
    }
    Subst one = {var[ROLE_K], here};
    const Expr *select[3] = {condition, expr_subst(l->arena, l->k, product, &one, 1),
                             expr_const(a, number_real(m->t, 0))};
    const Expr *sum[2] = {expr_load(a, l->k, dst, at), expr_op(a, OP_SELECT, m->t, 3, select)};
    TileIndex index[SIDES];
    for (ScheduleRole r = 0; r < SIDES; r++) {
        index[r] = index_of(var[r], range[r], r == ROLE_N ? lanes_of(m->t) : MODE_LOOP);
    }
    tile_add(l, SIDES, index, dst, at, OP_COPY, expr_op(a, OP_ADD, m->t, 2, sum));
    loop_close(l);
}

/* Of a bound x >= 0 on rows and columns: what stands on its sides. */
static const Expr *bound_holds(Matmul *m, Affine x)
{
    Arena *a = m->l->arena;
    Affine more = affine_const(x.base > 0 ? x.base : 0),
           less = affine_const(x.base < 0 ? -x.base : 0);
    for (uint32_t i = 0; i < x.n; i++) {
        AffineTerm t = x.term[i];
        Affine *side = t.coef > 0 ? &more : &less;
        *side = affine_add(a, *side, t.coef > 0 ? t.coef : -t.coef, affine_var(a, t.var));
    }
    return compare(m, OP_GE, more, less);
}

/* Of a tile that is computed whole and not needed whole the rest is 0 again. */
static void rest_is_zero(Matmul *m, const VarRef var[3], const Range range[3], BufRef dst,
                         const Affine *at, Affine x)
{
    Legaliser *l = m->l;
    Arena *a = l->arena;
    VarRef row = matmul_var(m, m->index[ROLE_M]), column = matmul_var(m, m->index[ROLE_N]);
    int64_t coef = affine_coef(x, row);
    x = *access_subst(l->arena, 1, &x, m->subst, m->n_subst);
    VarRef v = loop_open(l, "r", range[ROLE_M], 1, FOR_ALL);
    Affine shift = affine_minus(l, m->first[ROLE_M], range[ROLE_M].start);
    Affine least = in_tile(m, affine_add(a, x, -coef, affine_var(a, row)), false);
    if (coef == 1 || coef == -1) { /* rows of which the least column does not hold */
        Window *w = ARENA_NEW(a, Window);
        Affine edge = affine_add(a, affine_const(0), -1, shift);
        edge = affine_add(a, edge, coef > 0 ? -1 : 1, least);
        edge.base += coef > 0 ? 0 : 1;
        bool from = coef < 0;
        *w = (Window){from, !from, edge, edge};
        l->block->owner->window = w;
    }
    Subst by[2] = {
        {row, affine_add(a, shift, 1, affine_var(a, v))},
        {column, affine_add(a, affine_minus(l, m->first[ROLE_N], range[ROLE_N].start), 1,
                            affine_var(a, var[ROLE_N]))}};
    x = *access_subst(l->arena, 1, &x, by, 2);
    Subst one = {var[ROLE_M], affine_var(a, v)};
    const Affine *place = access_subst(l->arena, l->k->bufs.at[dst].rank, at, &one, 1);
    const Expr *select[3] = {bound_holds(m, x), expr_load(a, l->k, dst, place),
                             expr_const(a, number_real(m->t, 0))};
    TileIndex index = index_of(var[ROLE_N], range[ROLE_N], lanes_of(m->t));
    tile_add(l, 1, &index, dst, place, OP_COPY, expr_op(a, OP_SELECT, m->t, 3, select));
    loop_close(l);
}

void where_product(Matmul *m, const VarRef var[3], const Range range[3], BufRef dst,
                   const Affine *at, const Expr *product)
{
    static const IndexMode mode[3] = {MODE_UNROLL, MODE_VECTOR, MODE_LOOP};
    TileIndex index[3];
    Windows w = windows_of(m);
    for (ScheduleRole r = ROLE_M; r <= ROLE_K; r++) {
        index[r] = index_of(var[r], range[r], mode[r]);
    }
    if (w.all.has_lo || w.all.has_hi) {
        index[ROLE_K].window = arena_copy(m->l->arena, &w.all, sizeof w.all);
    }
    tile_add(m->l, 3, index, dst, at, OP_SUM, product);
    for (uint32_t i = 0; i < m->n_bounds; i++) {
        if (affine_coef(m->bound[i], matmul_var(m, m->index[ROLE_K])) == 0) {
            rest_is_zero(m, var, range, dst, at, m->bound[i]);
        }
    }
    if (bounds_rows(m, range)) {
        rows_product(m, var, range, dst, at, product, w);
        return;
    }
    if (w.all.has_lo) {
        some_product(m, var, range, dst, at, product, w.any.lo, w.all.lo, NULL);
    }
    if (w.all.has_hi) {
        some_product(m, var, range, dst, at, product, w.all.hi, w.any.hi,
                     w.all.has_lo ? &w.all.lo : NULL);
    }
}
