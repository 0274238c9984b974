/* SPDX-License-Identifier: Apache-2.0 */
/* Index-set splitting of loops over the rows of a mask. Where `k <= q` decides, a strip of the rows q needs no k behind its last row, and
 * no mask before its first one:
 *
 *     for $q in 0..N { S[q, k] = ..; m[q] max= select(k <= q, S, -inf); W[q, k] = exp(select(..) - m); O[q] += W[q, k] * V[k] }
 *  -> for $q in 0..N/4 { .., of k in 0..N/4 }  for $q in N/4..N/2 { .., of k in 0..N/2, without the mask where k < N/4 }  ..
 *
 * What the mask leaves out must change nothing: it is neutral to maxima, or 0 in what is added up. Four strips take 5/8 of the time. */
#include "tile/tile.h"

#include "loop/copy.h"
#include "loop/term.h"

#include <math.h>

#define STRIPS      4
#define STRIP_LEAST 512 /* rows, and a multiple of it */
#define NO_INDEX    UINT32_MAX

typedef struct MaskedRows {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    const Stmt *loop; /* over the rows */
    bool *local;      /* [bufs] allocated in it */
    uint32_t *dim;    /* [bufs] 1 + the dimension along which the mask runs, or 0 */
    bool *zero;       /* [bufs] 0 where the mask leaves it out */
    uint32_t *index;  /* [n_body] the index that runs along it, or NO_INDEX */
    bool known;
    Affine hi;      /* positions from there on are left out, of some row of an iteration */
    int64_t extent; /* of the index */
} MaskedRows;

/* ---- what the mask says ---- */

static bool is_const(const Expr *e, double value)
{
    double x = e->kind == EXPR_CONST ? number_cast(e->value, DTYPE_F64).re : 0.0;
    return e->kind == EXPR_CONST && !(x < value) && !(x > value);
}

/* Is the value `other` where the mask leaves something out, along that index of the statement? */
static bool selects(MaskedRows *p, const Stmt *s, uint32_t index, const Expr *e, double other)
{
    Window w;
    e = expr_uncast(e);
    return e->kind == EXPR_OP && e->op == OP_SELECT && is_const(e->arg[2], other) &&
           tile_mask_window(p->arena, s, s->index[index].var, e->arg[0], &w) && !w.has_lo &&
           w.has_hi && p->known && affine_eq(w.hi, p->hi);
}

static bool is_infinite(MaskedRows *p, const Stmt *s, uint32_t index, const Expr *e)
{
    e = expr_uncast(e);
    while (e->kind == EXPR_OP && (e->op == OP_SUB || e->op == OP_ADD)) {
        e = expr_uncast(e->arg[0]); /* and what is finite */
    }
    return selects(p, s, index, e, -INFINITY);
}

static bool is_zero(MaskedRows *p, const Stmt *s, uint32_t index, const Expr *e)
{
    e = expr_uncast(e);
    if (e->kind == EXPR_LOAD) {
        return p->zero[e->buf] && affine_uses(e->at[p->dim[e->buf] - 1], s->index[index].var);
    }
    if (e->kind == EXPR_OP && e->op == OP_MUL) {
        return is_zero(p, s, index, e->arg[0]) || is_zero(p, s, index, e->arg[1]);
    }
    bool exp = e->kind == EXPR_OP && e->op == OP_EXP;
    return exp ? is_infinite(p, s, index, e->arg[0]) : selects(p, s, index, e, 0.0);
}

/* ---- along which dimensions it runs ---- */

static bool is_whole(const MaskedRows *p, const TileIndex *x)
{
    return x->range.span == 0 && x->range.start.n == 0 && x->range.start.base == 0 &&
           x->range.limit.sym < 0 && (p->extent == 0 || x->range.limit.n == p->extent);
}

/* The index of the statement that a mask restricts, with what it says. */
static void find_mask(MaskedRows *p, const Stmt *s, uint32_t at)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        for (uint32_t i = 0; e->kind == EXPR_OP && e->op == OP_SELECT && i < s->n_index; i++) {
            Window window;
            bool here = is_whole(p, &s->index[i]) && s->index[i].var != p->loop->var &&
                        tile_mask_window(p->arena, s, s->index[i].var, e->arg[0], &window) &&
                        window.has_hi && !window.has_lo && window.hi.n == 1 &&
                        affine_coef(window.hi, p->loop->var) == 1;
            if (here && (!p->known || affine_eq(window.hi, p->hi))) {
                p->known = true;
                p->hi = window.hi;
                p->extent = s->index[i].range.limit.n;
                p->index[at] = i;
            }
        }
    }
}

/* Notes where the statement's index runs; true: something new. */
static bool spread_access(MaskedRows *p, BufRef buf, const Affine *at, VarRef v)
{
    bool any = false;
    for (uint32_t d = 0; d < p->to->bufs.at[buf].rank && p->local[buf]; d++) {
        bool here = affine_is(at[d], v) && p->dim[buf] == 0;
        p->dim[buf] = here ? d + 1 : p->dim[buf];
        any |= here;
    }
    return any;
}

static bool spread_stmt(MaskedRows *p, const Stmt *s, uint32_t at)
{
    ExprWalk w;
    bool any = false;
    for (uint32_t i = 0; i < s->n_index && p->index[at] == NO_INDEX; i++) {
        VarRef v = s->index[i].var;
        uint32_t d = p->dim[s->dst];
        bool here = d > 0 && affine_is(s->at[d - 1], v);
        for (const Expr *e = load_first(&w, s->value); e != NULL; e = load_next(&w)) {
            d = p->dim[e->buf];
            here |= d > 0 && affine_is(e->at[d - 1], v);
        }
        if (here && is_whole(p, &s->index[i])) {
            p->index[at] = i;
            any = true;
        }
    }
    if (p->index[at] == NO_INDEX) {
        return false;
    }
    VarRef v = s->index[p->index[at]].var;
    any |= spread_access(p, s->dst, s->at, v);
    for (const Expr *e = load_first(&w, s->value); e != NULL; e = load_next(&w)) {
        any |= spread_access(p, e->buf, e->at, v);
    }
    return any;
}

/* ---- may it be done? ---- */

/* Does the access run along the mask by that index alone, or not at all? */
static bool access_fits(const MaskedRows *p, BufRef buf, const Affine *at, VarRef v,
                        bool argument)
{
    uint32_t rank = p->to->bufs.at[buf].rank, dim = p->dim[buf];
    bool fits = dim == 0 || (v != NO_INDEX && affine_is(at[dim - 1], v));
    for (uint32_t d = 0; d < rank && v != NO_INDEX; d++) {
        fits &= d + 1 == dim || (argument && dim == 0) || !affine_uses(at[d], v);
    }
    return fits;
}

static bool stmt_fits(MaskedRows *p, const Stmt *s, uint32_t at)
{
    ExprWalk w;
    VarRef v = p->index[at] == NO_INDEX ? NO_INDEX : s->index[p->index[at]].var;
    bool fits = s->scan == 0 && s->n_first == 0 && access_fits(p, s->dst, s->at, v, false);
    for (const Expr *e = load_first(&w, s->value); e != NULL; e = load_next(&w)) {
        fits &= access_fits(p, e->buf, e->at, v, !p->local[e->buf]);
    }
    bool kept = v != NO_INDEX && access_uses(p->to, s->dst, s->at, v);
    if (v == NO_INDEX || !fits) {
        return fits;
    }
    if (kept) {
        bool set = s->fold == OP_COPY || s->begins;
        p->zero[s->dst] = s->fold == OP_COPY && is_zero(p, s, p->index[at], s->value);
        return set;
    }
    return s->fold == OP_RMAX ? selects(p, s, p->index[at], s->value, -INFINITY)
                              : s->fold == OP_SUM && is_zero(p, s, p->index[at], s->value);
}

static bool find(MaskedRows *p)
{
    Stmt *const *body = p->loop->body;
    uint32_t n = p->loop->n_body;
    for (uint32_t i = 0; i < n; i++) {
        p->index[i] = NO_INDEX;
        if (body[i]->kind == STMT_ALLOC) {
            p->local[body[i]->buf] = true;
        } else if (body[i]->kind != STMT_TILE) {
            return false;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (body[i]->kind == STMT_TILE) {
            find_mask(p, body[i], i);
        }
    }
    for (bool any = p->known; any;) {
        any = false;
        for (uint32_t i = 0; i < n; i++) {
            any |= body[i]->kind == STMT_TILE && spread_stmt(p, body[i], i);
        }
    }
    bool may = p->known;
    for (uint32_t i = 0; i < n && may; i++) {
        may = body[i]->kind != STMT_TILE || stmt_fits(p, body[i], i);
    }
    return may;
}

/* ---- strips ---- */

/* The value where the mask leaves nothing out. */
static const Expr *unmasked(MaskedRows *p, const Stmt *s, uint32_t index, const Expr *e)
{
    if (e->kind != EXPR_OP) {
        return e;
    }
    Window w;
    if (e->op == OP_SELECT && e->arg[2]->kind == EXPR_CONST &&
        tile_mask_window(p->arena, s, s->index[index].var, e->arg[0], &w) && w.has_hi &&
        affine_eq(w.hi, p->hi)) {
        return unmasked(p, s, index, e->arg[1]);
    }
    const Expr **arg = (const Expr **)arena_array(p->arena, e->n_args + 1, sizeof *arg);
    bool same = true;
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = unmasked(p, s, index, e->arg[i]);
        same &= arg[i] == e->arg[i];
    }
    return same ? e : expr_op(p->arena, e->op, e->dtype, e->n_args, arg);
}

typedef struct Strip {
    int64_t start, end;      /* rows */
    int64_t within, most;    /* positions without the mask, and in all */
    BufRef *buf;             /* [bufs] its own blocks */
    VarRef *var;             /* [vars] as they are */
    struct StmtShift *shift; /* [bufs] blocks begin with the positions of a part */
    VEC(Stmt *) body;
} Strip;

/* Does the result have the position along the mask, or fold over it? */
static bool is_kept(const MaskedRows *p, const Stmt *s, uint32_t at)
{
    return access_uses(p->to, s->dst, s->at, s->index[p->index[at]].var);
}

/* The statement, of those positions. */
static void put_part(MaskedRows *p, Strip *strip, uint32_t at, int64_t from, int64_t to)
{
    Stmt part = *p->loop->body[at], *one = &part;
    uint32_t x = p->index[at];
    if (x != NO_INDEX) {
        TileIndex *index = arena_copy(p->arena, part.index, part.n_index * sizeof *index);
        index[x].range = range_whole(dim_fixed(to));
        index[x].range.start = affine_const(from);
        part.begins = part.begins && (from == 0 || is_kept(p, &part, at));
        part.value = to <= strip->within ? unmasked(p, &part, x, part.value) : part.value;
        part.index = index;
    }
    StmtCopy copy = {.arena = p->arena,
                     .from = p->to,
                     .buf = strip->buf,
                     .var = strip->var,
                     .shift = strip->shift};
    vec_push(p->arena, &strip->body, stmts_copy(&copy, &one, 1)[0]);
}

/* A block of the strip's own, of those positions. */
static void put_alloc(MaskedRows *p, Strip *strip, BufRef buf, int64_t from, int64_t to)
{
    Buffer b = p->to->bufs.at[buf];
    Dim *extent = ARENA_ARRAY(p->arena, b.rank + 1, Dim);
    for (uint32_t d = 0; d < b.rank; d++) {
        extent[d] = b.extent[d];
    }
    if (p->dim[buf] > 0) {
        extent[p->dim[buf] - 1] = dim_fixed(to - from);
        strip->shift[buf] = (struct StmtShift){p->dim[buf] - 1, from};
    }
    Stmt *alloc = ARENA_NEW(p->arena, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = b.span};
    alloc->buf = strip->buf[buf] =
        kernel_buffer(p->to, &p->ctx->syms, b.name->text, b.dtype, b.space, b.rank, extent);
    p->to->bufs.at[alloc->buf].span = b.span;
    vec_push(p->arena, &strip->body, alloc);
}

/* Statements [from, to) that are taken with the mask and without, one part of all after the other. */
typedef struct Group {
    uint32_t from, to;
} Group;

static bool is_parted(const MaskedRows *p, uint32_t at)
{
    return p->index[at] != NO_INDEX && tile_kind(p->loop->body[at]) != TILE_MATMUL;
}

/* Does the statement go on in the group: reads it no fold of that, which is complete after the last part only? */
static bool goes_on(const MaskedRows *p, Group g, uint32_t at)
{
    const Stmt *s = p->loop->body[at];
    if (s->kind == STMT_ALLOC) {
        return true;
    }
    bool on = is_parted(p, at);
    for (uint32_t i = g.from; i < at && on; i++) {
        const Stmt *before = p->loop->body[i];
        on = before->kind == STMT_ALLOC || is_kept(p, before, i) ||
             (expr_load_of(s->value, before->dst) == NULL && s->dst != before->dst);
    }
    return on;
}

/* Is the block made in the group, and read nowhere else? Then each part has one. */
static bool is_of(const MaskedRows *p, Group g, BufRef buf)
{
    bool made = false, elsewhere = false;
    for (uint32_t i = 0; i < p->loop->n_body; i++) {
        const Stmt *s = p->loop->body[i];
        bool in = g.from <= i && i < g.to;
        if (s->kind == STMT_TILE) {
            made |= in && s->dst == buf;
            elsewhere |= !in && (s->dst == buf || expr_load_of(s->value, buf) != NULL);
        }
    }
    return p->dim[buf] > 0 && made && !elsewhere;
}

static void put_group(MaskedRows *p, Strip *strip, Group g)
{
    for (int part = strip->within == 0; part < 2; part++) {
        int64_t from = part == 0 ? 0 : strip->within,
                to = part == 0 ? strip->within : strip->most;
        for (uint32_t i = g.from; i < g.to; i++) {
            const Stmt *s = p->loop->body[i];
            if (s->kind != STMT_TILE || from >= to) {
                continue;
            }
            if (is_of(p, g, s->dst)) {
                put_alloc(p, strip, s->dst, from, to);
            }
            put_part(p, strip, i, from, to);
        }
    }
}

static void put_body(MaskedRows *p, Strip *strip)
{
    Stmt *const *body = p->loop->body;
    uint32_t n = p->loop->n_body;
    VEC(Group) groups = {0};
    for (uint32_t i = 0; i < n;) {
        Group g = {i, i};
        while (g.to < n && goes_on(p, g, g.to)) {
            g.to++;
        }
        vec_push(p->arena, &groups, g);
        i = g.to < n && is_parted(p, g.to) ? g.to : g.to + 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool own = false;
        for (uint32_t g = 0; g < groups.n && body[i]->kind == STMT_ALLOC; g++) {
            own |= is_of(p, groups.at[g], body[i]->buf);
        }
        if (body[i]->kind == STMT_ALLOC && !own) {
            put_alloc(p, strip, body[i]->buf, 0, strip->most);
        }
    }
    uint32_t done = 0;
    for (uint32_t g = 0; g < groups.n; g++) {
        for (; done < groups.at[g].from; done++) {
            put_part(p, strip, done, 0, strip->most);
        }
        put_group(p, strip, groups.at[g]);
        done = groups.at[g].to;
    }
    for (; done < n; done++) {
        put_part(p, strip, done, 0, strip->most);
    }
}

static int64_t rounded(int64_t x, int64_t to)
{
    return x < 0 ? 0 : x / to * to;
}

/* The rows in strips, into `out`. */
static void put_strips(MaskedRows *p, Stmt **out, uint32_t *n_out)
{
    int64_t all = p->loop->range.limit.n, step = p->loop->step;
    int64_t wide =
        (all / STRIPS + STRIP_LEAST - 1) / STRIP_LEAST * STRIP_LEAST; /* at most STRIPS */
    for (int64_t start = 0; start < all; start += wide) {
        Strip strip = {.start = start, .end = start + wide < all ? start + wide : all};
        int64_t last = start + (strip.end - start - 1) / step * step;
        int64_t most = rounded(p->hi.base + last + TILE_ROWS - 1, TILE_ROWS);
        most = most < TILE_ROWS ? TILE_ROWS : most; /* folds begin with something */
        strip.most = most < p->extent ? most : p->extent;
        strip.within = rounded(p->hi.base + start - step, TILE_ROWS);
        strip.within = strip.within < strip.most ? strip.within : strip.most;
        strip.buf = ARENA_ARRAY(p->arena, p->to->bufs.n + p->loop->n_body + 1, BufRef);
        strip.var = ARENA_ARRAY(p->arena, p->to->vars.n + 1, VarRef);
        strip.shift =
            ARENA_ARRAY(p->arena, p->to->bufs.n + p->loop->n_body + 1, struct StmtShift);
        for (uint32_t b = 0; b < p->to->bufs.n; b++) {
            strip.buf[b] = b;
        }
        for (uint32_t v = 0; v < p->to->vars.n; v++) {
            strip.var[v] = v;
        }
        put_body(p, &strip);
        Stmt *loop = arena_copy(p->arena, p->loop, sizeof *loop);
        loop->range.start = affine_const(strip.start);
        loop->range.limit = dim_fixed(strip.end);
        loop->body = strip.body.at;
        loop->n_body = strip.body.n;
        out[(*n_out)++] = loop;
    }
}

/* Copies of the statements, loops over masked rows in strips. */
static Stmt **with_strips(Ctx *ctx, Arena *arena, Kernel *to, Stmt *const *body, uint32_t n,
                          uint32_t *n_out, bool *any)
{
    Stmt **out = (Stmt **)arena_array(arena, n + STRIPS + 1, sizeof *out);
    *n_out = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        MaskedRows p = {.ctx = ctx, .arena = arena, .to = to, .loop = s};
        bool plain = s->kind == STMT_FOR && s->part == FOR_ALL && s->window == NULL &&
                     s->range.start.n == 0 && s->range.start.base == 0 && s->range.span == 0 &&
                     s->range.limit.sym < 0 && STRIP_LEAST % s->step == 0 &&
                     s->range.limit.n >= 2 * STRIP_LEAST && !*any;
        if (plain) {
            p.local = ARENA_ARRAY(arena, to->bufs.n + 1, bool);
            p.dim = ARENA_ARRAY(arena, to->bufs.n + 1, uint32_t);
            p.zero = ARENA_ARRAY(arena, to->bufs.n + 1, bool);
            p.index = ARENA_ARRAY(arena, s->n_body + 1, uint32_t);
        }
        if (plain && find(&p)) {
            put_strips(&p, out, n_out);
            *any = true;
            continue;
        }
        Stmt *copy = arena_copy(arena, s, sizeof *s);
        if (stmt_has_body(s)) {
            copy->body = with_strips(ctx, arena, to, s->body, s->n_body, &copy->n_body, any);
        }
        out[(*n_out)++] = copy;
    }
    return out;
}

const Kernel *tile_masked_strips(Ctx *ctx, Arena *arena, const Kernel *k)
{
    bool any = false;
    Kernel *to = kernel_like(arena, k);
    to->body = with_strips(ctx, arena, to, k->body, k->n_body, &to->n_body, &any);
    return any ? to : NULL;
}
