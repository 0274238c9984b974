/* SPDX-License-Identifier: Apache-2.0 */
/* Walks with a stack of what is left at each level, see walk.h. */
#include "loop/walk.h"

#include <string.h>

#include "loop/clauses.h"

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

/* ---- copies ---- */

static Affine copy_affine(const StmtCopy *c, Affine x, int64_t less)
{
    Affine out = affine_const(x.base - less);
    for (uint32_t i = 0; i < x.n; i++) {
        VarRef v = x.term[i].var;
        VarRef to = !affine_is_dim(v)
                        ? c->var[v]
                        : affine_dim(dim_mapped(c->dim, dim_open(affine_sym(v))).sym);
        const AffineTerm term = {to, x.term[i].coef};
        out = affine_add(c->arena, out, 1, (Affine){0, 1, &term});
    }
    return out;
}

static Range copy_range(const StmtCopy *c, Range r)
{
    r.start = copy_affine(c, r.start, 0);
    r.limit = dim_mapped(c->dim, r.limit);
    return r;
}

/* A position in the larger buffer. */
static Affine place_at(const StmtCopy *c, const StmtPlace *p, uint32_t d, const Affine *at)
{
    Affine out = affine_add(c->arena, p->plus[d], 1, affine_const(p->at[d].base));
    for (uint32_t i = 0; i < p->at[d].n; i++) {
        AffineTerm t = p->at[d].term[i];
        Affine of =
            affine_is_dim(t.var) ? affine_var(c->arena, t.var) : copy_affine(c, at[t.var], 0);
        out = affine_add(c->arena, out, t.coef, of);
    }
    return out;
}

static const Affine *copy_at(const StmtCopy *c, BufRef buf, const Affine *at)
{
    if (c->place != NULL && c->place[buf].at != NULL) {
        const StmtPlace *p = &c->place[buf];
        Affine *placed = ARENA_ARRAY(c->arena, p->rank, Affine);
        for (uint32_t d = 0; d < p->rank; d++) {
            placed[d] = place_at(c, p, d, at);
        }
        return placed;
    }
    uint32_t rank = c->from->bufs.at[buf].rank;
    Affine *out = rank == 0 ? NULL : ARENA_ARRAY(c->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        bool moved = c->shift != NULL && c->shift[buf].dim == d;
        out[d] = copy_affine(c, at[d], moved ? c->shift[buf].by : 0);
    }
    return out;
}

static void copy_place(void *user, Expr *e)
{
    const StmtCopy *c = user;
    if (e->kind == EXPR_INDEX) {
        Affine x = copy_affine(c, e->at[0], 0);
        e->at = arena_copy(c->arena, &x, sizeof x);
        return;
    }
    e->at = copy_at(c, e->buf, e->at);
    e->buf = c->buf[e->buf];
}

/* Of a larger buffer: positions of its dimensions, each one of the buffer's or a number of the other kernel. */
static void copy_gather(const StmtCopy *c, Expr *e)
{
    const StmtPlace *p = c->place == NULL ? NULL : &c->place[e->buf];
    if (p != NULL && p->at != NULL) {
        const Expr **arg = ARENA_ARRAY(c->arena, p->rank, const Expr *);
        for (uint32_t d = 0; d < p->rank; d++) {
            if (p->at[d].n == 1 && !affine_is_dim(p->at[d].term[0].var)) {
                arg[d] = e->arg[p->at[d].term[0].var];
                continue;
            }
            Affine at = place_at(c, p, d, NULL);
            arg[d] = expr_index(c->arena, DTYPE_I64, at);
        }
        e->arg = arg;
        e->n_args = p->rank;
    }
    e->buf = c->buf[e->buf];
}

static const Expr *copy_value(StmtCopy *c, const Expr *value)
{
    ExprWalk w;
    const Expr *out = expr_with_places(c->arena, value, copy_place, c);
    for (const Expr *x = expr_first(&w, out); x != NULL; x = expr_next(&w)) {
        Expr *own = (Expr *)(uintptr_t)x; /* a copy of ours */
        if (x->kind == EXPR_OP && x->op == OP_GATHER) {
            copy_gather(c, own);
        } else if (x->kind == EXPR_EXTENT) {
            own->dim = dim_mapped(c->dim, dim_open(x->dim)).sym;
        }
    }
    return out;
}

static const Guard *copy_guards(const StmtCopy *c, const Stmt *s)
{
    Guard *out = s->n_guards == 0 ? NULL : ARENA_ARRAY(c->arena, s->n_guards, Guard);
    for (uint32_t i = 0; i < s->n_guards; i++) {
        out[i] = s->guard[i];
        out[i].var = c->var[s->guard[i].var];
        out[i].from = copy_affine(c, s->guard[i].from, 0);
    }
    return out;
}

static const Prefetch *copy_prefetch(const StmtCopy *c, const Prefetch *p)
{
    Prefetch *out = arena_copy(c->arena, p, sizeof *p);
    out->at = copy_at(c, p->buf, p->at);
    out->past = p->past == NULL ? NULL : copy_at(c, p->buf, p->past);
    out->var = p->past == NULL ? 0 : c->var[p->var];
    out->buf = c->buf[p->buf];
    return out;
}

static const Window *copy_window(const StmtCopy *c, const Window *w)
{
    Window *out = w == NULL ? NULL : arena_copy(c->arena, w, sizeof *w);
    if (out != NULL) {
        out->lo = copy_affine(c, w->lo, 0);
        out->hi = copy_affine(c, w->hi, 0);
    }
    return out;
}

static void copy_clauses(const StmtCopy *c, const Stmt *out)
{
    Clauses has;
    clauses_of(c->from, out, &has);
    for (const Clause *x = has.at; x < has.at + has.n; x++) {
        if (x->at != NULL) {
            *x->at = copy_at(c, *x->buf - 1, *x->at);
        }
        if (x->buf != NULL) {
            *x->buf = 1 + c->buf[*x->buf - 1];
        }
        if (x->loop != NULL) {
            VarRef *loop = ARENA_ARRAY(c->arena, *x->n_loops, VarRef);
            for (uint32_t i = 0; i < *x->n_loops; i++) {
                loop[i] = c->var[(*x->loop)[i]];
            }
            *x->loop = loop;
        }
    }
}

static Stmt *copy_stmt(const StmtCopy *c, const Stmt *s)
{
    Stmt *out = arena_copy(c->arena, s, sizeof *s);
    copy_clauses(c, out);
    switch (s->kind) {
    case STMT_FOR:
        out->var = c->var[s->var];
        out->range = copy_range(c, s->range);
        out->window = copy_window(c, s->window);
        out->body = stmts_copy(c, s->body, s->n_body);
        return out;
    case STMT_BLOCK:
        out->body = stmts_copy(c, s->body, s->n_body);
        out->guard = copy_guards(c, s);
        return out;
    case STMT_ALLOC:
        out->buf = c->buf[s->buf];
        out->prefetch = s->prefetch == NULL ? NULL : copy_prefetch(c, s->prefetch);
        return out;
    case STMT_TILE:
        break;
    }
    StmtCopy of_value = *c;
    TileIndex *index = ARENA_ARRAY(c->arena, s->n_index, TileIndex);
    for (uint32_t i = 0; i < s->n_index; i++) {
        index[i] = s->index[i];
        index[i].range = copy_range(c, s->index[i].range);
        index[i].var = c->var[s->index[i].var];
        index[i].window = copy_window(c, s->index[i].window);
    }
    out->index = index;
    out->dst = c->buf[s->dst];
    out->at = copy_at(c, s->dst, s->at);
    out->value = copy_value(&of_value, s->value);
    return out;
}

Stmt **stmts_copy(const StmtCopy *c, Stmt *const *body, uint32_t n)
{
    Stmt **out = ARENA_ARRAY(c->arena, n, Stmt *);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = copy_stmt(c, body[i]);
    }
    return out;
}

Stmt *stmt_neutral(Arena *a, const Kernel *k, const Stmt *fold)
{
    Stmt *s = arena_copy(a, fold, sizeof *fold);
    TileIndex *index = ARENA_ARRAY(a, fold->n_index, TileIndex);
    s->n_index = 0;
    for (uint32_t i = 0; i < fold->n_index; i++) {
        if (access_uses(k, fold->dst, fold->at, fold->index[i].var)) {
            index[s->n_index++] = fold->index[i];
        }
    }
    s->index = index;
    s->fold = OP_COPY;
    s->begins = false;
    s->places = 0;
    s->schedule = NULL;
    s->value = expr_const(a, op_neutral(fold->fold, k->bufs.at[fold->dst].dtype));
    return s;
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
