/* SPDX-License-Identifier: Apache-2.0 */
/* A statement that is computed from the tiles of the contraction before it: which one may be, and what it makes of the result, in the
 * indices of the contraction. */
#include "backend/nki/contract.h"

/* The positions an affine of one statement takes in a dimension: [lo, hi), by one index or none. */
static bool positions(const Lower *l, const Stmt *s, Affine x, int64_t *lo, int64_t *hi,
                      int32_t *by, Affine *moves)
{
    *by = -1;
    *lo = x.base;
    *moves = position_moves(l, x);
    for (uint32_t i = 0; i < x.n; i++) {
        int32_t index = -1;
        for (uint32_t j = 0; j < s->n_index; j++) {
            index = s->index[j].var == x.term[i].var ? (int32_t)j : index;
        }
        if (index < 0) {
            *lo += x.term[i].coef * l->value[x.term[i].var];
        } else if (*by >= 0 || x.term[i].coef != 1) {
            return false;
        } else {
            *by = index;
        }
    }
    *hi = *lo + 1;
    if (*by >= 0) {
        int64_t first = 0, end = 0;
        range_values(l, s, s->index[*by].var, &s->index[*by].range, &first, &end);
        *moves = affine_add(l->arena, *moves, 1, position_moves(l, s->index[*by].range.start));
        *hi = *lo + end;
        *lo += first;
    }
    return true;
}

/* Does the load in `s` read exactly what the matmul makes, with an index of `s` in each
 * dimension in which one moves? */
static bool reads_result(const Lower *l, const Stmt *matmul, const Stmt *s, const Expr *load)
{
    uint32_t indices = 0;
    for (uint32_t d = 0; d < l->from->bufs.at[load->buf].rank; d++) {
        int64_t lo, hi, lo2, hi2;
        int32_t by, by2;
        Affine moves, moves2;
        if (!positions(l, s, load->at[d], &lo, &hi, &by, &moves) ||
            !positions(l, matmul, matmul->at[d], &lo2, &hi2, &by2, &moves2) || lo != lo2 ||
            hi != hi2 || (by >= 0) != (by2 >= 0) || !affine_eq(moves, moves2)) {
            return false;
        }
        for (uint32_t c = 0; c < d; c++) { /* no index twice */
            int32_t earlier;
            if (positions(l, s, load->at[c], &lo, &hi, &earlier, &moves) && earlier == by &&
                by >= 0) {
                return false;
            }
        }
        indices += by >= 0;
    }
    return indices == s->n_index;
}

/* All loads of the result in `s`: of all of it, and in one order of the indices. */
static bool same_loads(const Lower *l, const Stmt *matmul, const Stmt *s)
{
    ExprWalk w;
    const Expr *first = expr_load_of(s->value, matmul->dst);
    for (const Expr *x = load_first(&w, s->value); x != NULL; x = load_next(&w)) {
        if (x->buf != matmul->dst) {
            continue;
        }
        for (uint32_t d = 0; d < l->from->bufs.at[x->buf].rank; d++) {
            if (!affine_eq(x->at[d], first->at[d])) {
                return false;
            }
        }
        if (!reads_result(l, matmul, s, x)) {
            return false;
        }
    }
    return true;
}

/* May `s` be computed from the PSUM tiles of `matmul`, whose result is then nowhere else? Tile by tile, so it must not
 * overwrite what the tiles after it read. */
bool lower_is_epilogue(Lower *l, const Stmt *matmul, const Stmt *s)
{
    ExprWalk w;
    for (const Expr *x = load_first(&w, matmul->value); x != NULL; x = load_next(&w)) {
        if (l->turn[x->buf].is && l->turn[x->buf].of == s->dst) {
            return false; /* it is made of the operand at each use */
        }
    }
    return s->kind == STMT_TILE && s->fold == OP_COPY && s->dst != matmul->dst &&
           l->from->bufs.at[matmul->dst].space != SPACE_ARGUMENT &&
           expr_load_of(s->value, matmul->dst) != NULL &&
           expr_load_of(matmul->value, s->dst) == NULL &&
           kernel_readers(l->from, matmul->dst) == 1 && same_loads(l, matmul, s);
}

/* Label of the epilogue -> affine in labels of the matmul: both statements' positions in the accumulator are the same. */
static const Affine *rename_affines(Arena *a, const Affine *at, uint32_t rank,
                                    const Stmt *epilogue, const VarRef *var, const Affine *by)
{
    Affine *out = ARENA_ARRAY(a, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        Affine x = affine_const(at[d].base);
        for (uint32_t i = 0; i < at[d].n; i++) {
            Affine y = affine_var(a, at[d].term[i].var);
            for (uint32_t j = 0; j < epilogue->n_index; j++) {
                y = at[d].term[i].var == var[j] ? by[j] : y;
            }
            x = affine_add(a, x, at[d].term[i].coef, y);
        }
        out[d] = x;
    }
    return out;
}

/* The indices of an epilogue in terms of the contraction's. */
typedef struct Renaming {
    Lower *l;
    const Stmt *epilogue;
    const VarRef *var;
    const Affine *by;
} Renaming;

static void rename_load(void *user, Expr *load)
{
    const Renaming *r = user;
    uint32_t rank = load->kind == EXPR_INDEX ? 1 : r->l->from->bufs.at[load->buf].rank;
    load->at = rename_affines(r->l->arena, load->at, rank, r->epilogue, r->var, r->by);
}

void contract_take_epilogue(Contraction *c)
{
    Lower *l = c->l;
    const Stmt *e = c->reader;
    const Expr *load = expr_load_of(e->value, c->s->dst);
    VarRef *var = ARENA_ARRAY(l->arena, e->n_index, VarRef);
    Affine *by = ARENA_ARRAY(l->arena, e->n_index, Affine);
    for (uint32_t j = 0; j < e->n_index; j++) {
        var[j] = e->index[j].var;
        by[j] = affine_var(l->arena, var[j]);
        for (uint32_t d = 0; d < l->from->bufs.at[c->s->dst].rank; d++) {
            for (uint32_t i = 0; i < load->at[d].n; i++) {
                if (load->at[d].term[i].var ==
                    var[j]) { /* at = var + r, s.at = x: var = x - r */
                    Affine rest = affine_subst(l->arena, load->at[d], var[j], affine_const(0));
                    by[j] = affine_add(l->arena, c->s->at[d], -1, rest);
                }
            }
        }
    }
    Renaming renaming = {l, e, var, by};
    c->epilogue_value = expr_with_places(l->arena, e->value, rename_load, &renaming);
    c->final = place_of(
        l, e->dst, rename_affines(l->arena, e->at, l->from->bufs.at[e->dst].rank, e, var, by));
}

Place lower_target(Lower *l, const Stmt *s)
{
    Contraction c = {.l = l, .s = s, .reader = l->now.next};
    if (l->now.next == NULL) {
        return place_of(l, s->dst, s->at);
    }
    contract_take_epilogue(&c);
    return c.final;
}

const Expr *lower_next_value(Lower *l, const Stmt *s)
{
    Contraction c = {.l = l, .s = s, .reader = l->now.next};
    if (l->now.next == NULL || expr_uncast(l->now.next->value)->kind == EXPR_LOAD) {
        return NULL;
    }
    contract_take_epilogue(&c);
    return c.epilogue_value;
}
