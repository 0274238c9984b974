/* SPDX-License-Identifier: Apache-2.0 */
/* Walks with a stack of what is left at each level, see walk.h. */
#include "loop/walk.h"

#include <string.h>

#define LEVELS(w) (sizeof(w)->level / sizeof(w)->level[0])

/* ---- values ---- */

static const Expr *enter_expr(ExprWalk *w, const Expr *e)
{
    CHECK(w->depth < LEVELS(w));
    w->level[w->depth].at = e->arg;
    w->level[w->depth].left = e->n_args;
    w->depth++;
    return e;
}

const Expr *expr_first(ExprWalk *w, const Expr *value)
{
    w->depth = 0;
    return enter_expr(w, value);
}

/* What comes next, not entered; null past the last. */
static const Expr *step_expr(ExprWalk *w)
{
    while (w->depth > 0 && w->level[w->depth - 1].left == 0) {
        w->depth--;
    }
    if (w->depth == 0) {
        return NULL;
    }
    w->level[w->depth - 1].left--;
    return *w->level[w->depth - 1].at++;
}

const Expr *expr_next(ExprWalk *w)
{
    const Expr *e = step_expr(w);
    return e == NULL ? NULL : enter_expr(w, e);
}

void expr_skip(ExprWalk *w)
{
    w->level[w->depth - 1].left = 0;
}

static const Expr *next_load(ExprWalk *w, const Expr *e)
{
    while (e != NULL && e->kind != EXPR_LOAD) {
        e = expr_next(w);
    }
    return e;
}

const Expr *load_first(ExprWalk *w, const Expr *value)
{
    return next_load(w, expr_first(w, value));
}

const Expr *load_next(ExprWalk *w)
{
    return next_load(w, expr_next(w));
}

static const Expr *next_read(ExprWalk *w, const Expr *e)
{
    while (e != NULL && expr_buffer(e) == BUF_NONE) {
        e = expr_next(w);
    }
    return e;
}

const Expr *read_first(ExprWalk *w, const Expr *value)
{
    return next_read(w, expr_first(w, value));
}

const Expr *read_next(ExprWalk *w)
{
    return next_read(w, expr_next(w));
}

bool expr_fits(const Expr *value)
{
    ExprWalk w;
    uint32_t n = 0;
    w.depth = 0;
    for (const Expr *e = value; e != NULL; e = step_expr(&w)) {
        if (w.depth > EXPR_DEPTH_LIMIT || n++ > EXPR_SIZE_LIMIT) {
            return false;
        }
        (void)enter_expr(&w, e);
    }
    return true;
}

uint32_t expr_size(const Expr *value, uint32_t most)
{
    ExprWalk w;
    uint32_t n = 0;
    for (const Expr *e = expr_first(&w, value); e != NULL && n < most; e = expr_next(&w)) {
        n++;
    }
    return n;
}

const Expr *expr_load_of(const Expr *value, BufRef buf)
{
    ExprWalk w;
    const Expr *e = load_first(&w, value);
    while (e != NULL && e->buf != buf) {
        e = load_next(&w);
    }
    return e;
}

uint32_t expr_count_loads(const Expr *value, BufRef buf)
{
    ExprWalk w;
    uint32_t n = 0;
    for (const Expr *e = load_first(&w, value); e != NULL; e = load_next(&w)) {
        n += e->buf == buf;
    }
    return n;
}

bool access_uses(const Kernel *k, BufRef buf, const Affine *at, VarRef v)
{
    for (uint32_t d = 0; d < k->bufs.at[buf].rank; d++) {
        if (affine_uses(at[d], v)) {
            return true;
        }
    }
    return false;
}

uint32_t access_dim(const Kernel *k, BufRef buf, const Affine *at, VarRef v)
{
    uint32_t rank = k->bufs.at[buf].rank, found = rank, uses = 0;
    for (uint32_t d = 0; d < rank; d++) {
        uses += affine_uses(at[d], v);
        bool is = at[d].n == 1 && at[d].base == 0 && affine_coef(at[d], v) == 1;
        found = is ? d : found;
    }
    return uses == 1 ? found : rank;
}

const Expr *expr_uncast(const Expr *value)
{
    return value->kind == EXPR_OP && value->op == OP_CAST ? value->arg[0] : value;
}

const Expr *expr_factor(const Expr *value, bool *conj)
{
    bool cast = false;
    *conj = false;
    while (value->kind == EXPR_OP &&
           (value->op == OP_CONJ || (value->op == OP_CAST && !cast))) {
        *conj = *conj != (value->op == OP_CONJ);
        cast |= value->op == OP_CAST;
        value = value->arg[0];
    }
    return value;
}

const Expr *expr_product(const Expr *value, const Expr **factor)
{
    const Expr *inner = value->kind == EXPR_OP && value->op == OP_MUL ? value->arg[1] : value;
    ExprWalk w;
    *factor = NULL;
    if (inner == value || inner->kind != EXPR_OP || inner->op != OP_MUL) {
        return value;
    }
    for (const Expr *e = expr_first(&w, value->arg[0]); e != NULL; e = expr_next(&w)) {
        if (e->kind != EXPR_CONST && e->kind != EXPR_LOAD && e->op != OP_MUL) {
            return value;
        }
    }
    *factor = value->arg[0];
    return inner;
}

const Expr *expr_under(Op fold, const Expr *value, const Expr **condition)
{
    bool under = value->kind == EXPR_OP && value->op == OP_SELECT &&
                 value->arg[2]->kind == EXPR_CONST && fold != OP_COPY &&
                 op_is_neutral(fold, value->arg[2]->value);
    *condition = under ? value->arg[0] : NULL;
    return under ? value->arg[1] : value;
}

static bool affine_of(Arena *a, const Expr *e, uint32_t depth, Affine *out)
{
    Affine x[2] = {{0}};
    if (depth > EXPR_DEPTH_LIMIT) {
        return false;
    }
    switch (e->kind) {
    case EXPR_INDEX:
        *out = e->at[0];
        return true;
    case EXPR_CONST:
        *out = affine_const(e->value.i);
        return dtype_is_int(e->dtype) && e->value.i < SIZE_LIMIT && e->value.i > -SIZE_LIMIT;
    case EXPR_EXTENT:
        *out = affine_var(a, affine_dim(e->dim));
        return dtype_is_int(e->dtype);
    case EXPR_LOAD:
        return false;
    case EXPR_OP:
        break;
    }
    for (uint32_t k = 0; k < e->n_args && k < 2; k++) {
        if (!dtype_is_int(e->arg[k]->dtype) || !affine_of(a, e->arg[k], depth + 1, &x[k])) {
            return false;
        }
    }
    if (e->op == OP_MUL) {
        Affine number = x[0].n == 0 ? x[0] : x[1], other = x[0].n == 0 ? x[1] : x[0];
        return number.n == 0 && affine_try_add(a, affine_const(0), number.base, other, out);
    }
    if (e->op == OP_ADD || e->op == OP_SUB) {
        return affine_try_add(a, x[0], e->op == OP_SUB ? -1 : 1, x[1], out);
    }
    return (e->op == OP_NEG || e->op == OP_CAST) &&
           affine_try_add(a, affine_const(0), e->op == OP_NEG ? -1 : 1, x[0], out);
}

bool expr_affine(Arena *a, const Expr *value, Affine *out)
{
    return affine_of(a, value, 0, out);
}

bool expr_is_scalar(const Kernel *k, const Expr *value)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        if (e->kind == EXPR_INDEX || (e->kind == EXPR_LOAD && k->bufs.at[e->buf].rank > 0)) {
            return false;
        }
    }
    return true;
}

bool expr_uses(const Kernel *k, const Expr *value, VarRef v)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        if (e->kind == EXPR_INDEX ? affine_uses(e->at[0], v)
                                  : e->kind == EXPR_LOAD && access_uses(k, e->buf, e->at, v)) {
            return true;
        }
    }
    return false;
}

static bool same_part(const Kernel *k, const Expr *x, const Expr *y)
{
    if (x->kind != y->kind || x->dtype != y->dtype || x->n_args != y->n_args) {
        return false;
    }
    switch (x->kind) {
    case EXPR_CONST:
        return memcmp(&x->value.re, &y->value.re, sizeof x->value.re) == 0 &&
               memcmp(&x->value.im, &y->value.im, sizeof x->value.im) == 0 &&
               x->value.i == y->value.i;
    case EXPR_EXTENT:
        return x->dim == y->dim;
    case EXPR_INDEX:
        return affine_eq(x->at[0], y->at[0]);
    case EXPR_LOAD:
        for (uint32_t d = 0; x->buf == y->buf && d < k->bufs.at[x->buf].rank; d++) {
            if (!affine_eq(x->at[d], y->at[d])) {
                return false;
            }
        }
        return x->buf == y->buf;
    case EXPR_OP:
        return x->op == y->op && (x->op != OP_GATHER || x->buf == y->buf);
    }
    UNREACHABLE();
}

bool expr_eq(const Kernel *k, const Expr *x, const Expr *y)
{
    ExprWalk v, w;
    x = expr_first(&v, x);
    y = expr_first(&w, y);
    while (x != NULL && same_part(k, x, y)) {
        x = expr_next(&v);
        y = expr_next(&w);
    }
    return x == NULL;
}

static uint64_t affine_hash(uint64_t h, Affine x)
{
    h = hash_mix(h, (uint64_t)x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        h = hash_mix(hash_mix(h, x.term[i].var), (uint64_t)x.term[i].coef);
    }
    return h;
}

uint64_t expr_hash(const Kernel *k, const Expr *value)
{
    ExprWalk w;
    uint64_t h = 0;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        h = hash_mix(h, (uint64_t)e->kind << 32 | (uint64_t)e->dtype << 16 | e->n_args);
        if (e->kind == EXPR_OP) {
            h = hash_mix(h, (uint64_t)e->op);
            h = e->op == OP_GATHER ? hash_mix(h, e->buf) : h;
        } else if (e->kind == EXPR_CONST) {
            h = hash_bytes(h, &e->value.re, sizeof e->value.re);
            h = hash_mix(hash_bytes(h, &e->value.im, sizeof e->value.im), (uint64_t)e->value.i);
        } else if (e->kind == EXPR_EXTENT) {
            h = hash_mix(h, (uint64_t)e->dim);
        } else if (e->kind == EXPR_INDEX) {
            h = affine_hash(h, e->at[0]);
        }
        for (uint32_t d = 0; e->kind == EXPR_LOAD && d < k->bufs.at[e->buf].rank; d++) {
            h = affine_hash(hash_mix(h, e->buf), e->at[d]);
        }
    }
    return h;
}

BufRef expr_buffer(const Expr *part)
{
    bool gathers = part->kind == EXPR_OP && part->op == OP_GATHER;
    return part->kind == EXPR_LOAD || gathers ? part->buf : BUF_NONE;
}

bool expr_reads(const Expr *value, BufRef buf)
{
    ExprWalk w;
    const Expr *e = expr_first(&w, value);
    while (e != NULL && expr_buffer(e) != buf) {
        e = expr_next(&w);
    }
    return e != NULL;
}

void expr_mark_loads(const Expr *value, bool *marked)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        if (expr_buffer(e) != BUF_NONE) {
            marked[e->buf] = true;
        }
    }
}

void tile_mark_uses(const Stmt *s, uint32_t n_bufs, bool *marked)
{
    memset(marked, 0, n_bufs * sizeof *marked);
    expr_mark_loads(s->value, marked);
    marked[s->dst] = true;
    if (s->sums > 0) {
        marked[s->sums - 1] = true;
    }
}

/* As deep as the value is. */
const Expr *expr_with_places(Arena *a, const Expr *value, PlaceChange *change, void *user)
{
    Expr *out = arena_copy(a, value, sizeof *value);
    if (value->kind == EXPR_LOAD || value->kind == EXPR_INDEX) {
        change(user, out);
    } else if (value->kind == EXPR_OP) {
        const Expr **arg = ARENA_ARRAY(a, value->n_args, const Expr *);
        for (uint32_t i = 0; i < value->n_args; i++) {
            arg[i] = expr_with_places(a, value->arg[i], change, user);
        }
        out->arg = arg;
    }
    return out;
}

const Affine *access_subst(Arena *a, uint32_t rank, const Affine *at, const Subst *s,
                           uint32_t n)
{
    Affine *out = ARENA_ARRAY(a, (size_t)rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = at[d];
        for (uint32_t i = 0; i < n; i++) {
            out[d] = affine_subst(a, out[d], s[i].var, s[i].by);
        }
    }
    return out;
}

/* The substitutions in one value. */
typedef struct SubstAll {
    Arena *arena;
    const Kernel *k;
    const Subst *s;
    uint32_t n;
} SubstAll;

static void place_subst(void *user, Expr *e)
{
    const SubstAll *all = user;
    uint32_t rank = e->kind == EXPR_INDEX ? 1 : all->k->bufs.at[e->buf].rank;
    e->at = access_subst(all->arena, rank, e->at, all->s, all->n);
}

const Expr *expr_subst(Arena *a, const Kernel *k, const Expr *value, const Subst *s, uint32_t n)
{
    SubstAll all = {a, k, s, n};
    return expr_with_places(a, value, place_subst, &all);
}

/* ---- statements ---- */

static void enter_block(StmtWalk *w, Stmt *const *body, uint32_t n)
{
    CHECK(w->depth < LEVELS(w));
    w->level[w->depth].at = body;
    w->level[w->depth].left = n;
    w->depth++;
}

const Stmt *stmt_first(StmtWalk *w, Stmt *const *body, uint32_t n)
{
    w->depth = 0;
    enter_block(w, body, n);
    return stmt_next(w);
}

const Stmt *stmt_next(StmtWalk *w)
{
    while (w->depth > 0 && w->level[w->depth - 1].left == 0) {
        w->depth--;
    }
    if (w->depth == 0) {
        return NULL;
    }
    w->level[w->depth - 1].left--;
    const Stmt *s = *w->level[w->depth - 1].at++;
    w->entered = stmt_has_body(s);
    if (w->entered) {
        enter_block(w, s->body, s->n_body);
    }
    return s;
}

void stmt_skip(StmtWalk *w)
{
    w->depth -= w->entered ? 1 : 0;
    w->entered = false;
}

static const Stmt *next_tile(StmtWalk *w, const Stmt *s)
{
    while (s != NULL && s->kind != STMT_TILE) {
        s = stmt_next(w);
    }
    return s;
}

const Stmt *tile_first(StmtWalk *w, Stmt *const *body, uint32_t n)
{
    return next_tile(w, stmt_first(w, body, n));
}

const Stmt *tile_next(StmtWalk *w)
{
    return next_tile(w, stmt_next(w));
}

bool position_is_tiled(const Stmt *s, Affine at, const Stmt *loop)
{
    bool tiled = affine_is(at, loop->var) && loop->step == 1;
    for (uint32_t i = 0; i < s->n_index; i++) {
        const Range *r = &s->index[i].range;
        tiled |= affine_is(at, s->index[i].var) && affine_is(r->start, loop->var) &&
                 r->span > 0 && r->span <= loop->step;
    }
    return tiled;
}

uint32_t kernel_readers(const Kernel *k, BufRef buf)
{
    StmtWalk w;
    uint32_t count = 0;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        count += expr_load_of(s->value, buf) != NULL;
    }
    return count;
}
