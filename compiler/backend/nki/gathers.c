/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an argument at positions that another one has, which a DMA reads by itself (rule D8). Pass `gathers` puts them into memory before
 * all else, so that the rest of the kernel reads them as any other value:
 *
 *     alloc @at : i32[n] workspace           map [n] @at[n] = max(min(cast.i32(@tok[n]), 49999), 0)
 *     alloc @rows : f32[n,e] workspace       map [n, e] @rows[n,e] = gather @W(cast.i64(@at[n]), index(e))
 *
 * Positions outside of the argument, which a condition leaves out, are those of some row: the device has no word for them. */
#include "backend/nki/lower_stmt.h"
#include "backend/nki/make.h"

#include <string.h>

#include "loop/copy.h"
#include "loop/walk.h"

#define ROW_ELEMENTS 4096 /* of a partition, at a time */

typedef struct Gathers {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    VEC(Stmt *) made;
    const Stmt *s, *loop[LOOP_DEPTH_LIMIT];
    uint32_t n_loops;
} Gathers;

/* ---- the pass ---- */

/* Extent of all that a variable runs over. */
static int64_t extent_of(const Gathers *x, VarRef v)
{
    const Range *r = NULL;
    for (uint32_t i = 0; i < x->s->n_index; i++) {
        r = x->s->index[i].var == v ? &x->s->index[i].range : r;
    }
    for (uint32_t i = 0; i < x->n_loops; i++) {
        r = x->loop[i]->var == v ? &x->loop[i]->range : r;
    }
    if (r == NULL) {
        return 0;
    }
    int64_t end = r->start.base + r->span;
    for (uint32_t t = 0; t < r->start.n; t++) {
        end += r->start.term[t].coef * (extent_of(x, r->start.term[t].var) - 1);
    }
    return r->clipped && (r->span == 0 || r->limit.n < end) ? r->limit.n : end;
}

static Stmt *put(Gathers *x, uint32_t n, const VarRef *var, const int64_t *extent,
                 const char *name, DType t)
{
    TileIndex *index = ARENA_ARRAY(x->arena, (size_t)n + 1, TileIndex);
    Affine *at = ARENA_ARRAY(x->arena, (size_t)n + 1, Affine);
    Dim *shape = ARENA_ARRAY(x->arena, (size_t)n + 1, Dim);
    for (uint32_t i = 0; i < n; i++) {
        shape[i] = dim_fixed(extent[i]);
        index[i] = (TileIndex){.var = var[i], .range = range_whole(shape[i])};
        at[i] = affine_var(x->arena, var[i]);
    }
    BufRef buf = kernel_buffer(x->to, &x->ctx->syms, name, t, SPACE_WORKSPACE, n, shape);
    x->to->bufs.at[buf].span = x->s->span;
    Stmt *alloc = ARENA_NEW(x->arena, Stmt), *s = ARENA_NEW(x->arena, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = x->s->span, .buf = buf};
    *s = (Stmt){.kind = STMT_TILE,
                .span = x->s->span,
                .n_index = n,
                .index = index,
                .dst = buf,
                .at = at,
                .fold = OP_COPY};
    vec_push(x->arena, &x->made, alloc);
    vec_push(x->arena, &x->made, s);
    return s;
}

static const Expr *number(Gathers *x, int64_t v)
{
    return expr_const(x->arena, number_int(DTYPE_I32, v));
}

static const Expr *of_two(Gathers *x, Op op, const Expr *a, const Expr *b)
{
    const Expr *both[2] = {a, b};
    return expr_op(x->arena, op, DTYPE_I32, 2, both);
}

/* The variables that positions of an argument move with, and their extents: how many; 0: it is none, or moves otherwise. */
static uint32_t positions_of(const Gathers *x, const Expr *load, VarRef *used, int64_t *extent)
{
    uint32_t n = 0;
    bool argument = load->kind == EXPR_LOAD && x->to->bufs.at[load->buf].param >= 0;
    for (uint32_t d = 0; argument && d < x->to->bufs.at[load->buf].rank; d++) {
        for (uint32_t t = 0; t < load->at[d].n; t++) {
            VarRef v = load->at[d].term[t].var;
            bool again = false;
            for (uint32_t i = 0; i < n; i++) {
                again |= used[i] == v;
            }
            if (!again && n == NKI_DIMS) {
                return 0;
            }
            if (!again) {
                used[n] = v;
                extent[n++] = extent_of(x, v);
            }
        }
    }
    return n;
}

/* The positions of a gather in memory, from 0 to the last row of its argument. */
static BufRef put_positions(Gathers *x, const Expr *e, uint32_t n, const VarRef *used,
                            const int64_t *extent)
{
    const Expr *load = expr_uncast(e->arg[0]);
    uint32_t rank = x->to->bufs.at[load->buf].rank;
    Affine *from = ARENA_ARRAY(x->arena, rank + 1, Affine);
    if (rank > 0) {
        memcpy(from, load->at, rank * sizeof *from);
    }
    VarRef var[NKI_DIMS];
    for (uint32_t i = 0; i < n; i++) {
        var[i] = kernel_var(x->to, &x->ctx->syms, "n", false);
        for (uint32_t d = 0; d < rank; d++) {
            from[d] = affine_subst(x->arena, from[d], used[i], affine_var(x->arena, var[i]));
        }
    }
    Stmt *at = put(x, n, var, extent, "at", DTYPE_I32);
    const Expr *p = expr_cast(x->arena, expr_load(x->arena, x->to, load->buf, from), DTYPE_I32);
    const Expr *last = number(x, x->to->bufs.at[e->buf].extent[0].n - 1);
    at->value = of_two(x, OP_MAX, of_two(x, OP_MIN, p, last), number(x, 0));
    return at->dst;
}

/* The gather at these positions, along variables of its own. */
static const Expr *gather_at(Gathers *x, const Expr *e, BufRef at, uint32_t n,
                             const VarRef *var, const Affine *row)
{
    uint32_t rank = x->to->bufs.at[e->buf].rank;
    const Expr **arg = ARENA_ARRAY(x->arena, rank, const Expr *);
    Affine *own = ARENA_ARRAY(x->arena, (size_t)n + 1, Affine);
    for (uint32_t i = 0; i < n; i++) {
        own[i] = affine_var(x->arena, var[i]);
    }
    arg[0] = expr_cast(x->arena, expr_load(x->arena, x->to, at, own), DTYPE_I64);
    for (uint32_t d = 1; d < rank; d++) {
        arg[d] = expr_index(x->arena, DTYPE_I64, row[d - 1]);
    }
    return expr_gather(x->arena, x->to, e->buf, arg);
}

/* The rows, as a load of what holds them. Null: the positions are none of an argument. */
static const Expr *rows_of(Gathers *x, const Expr *e)
{
    const Buffer *table = &x->to->bufs.at[e->buf];
    VarRef used[NKI_DIMS], var[NKI_DIMS];
    int64_t extent[NKI_DIMS];
    uint32_t n = positions_of(x, expr_uncast(e->arg[0]), used, extent), all = n;
    if (n == 0 || n + table->rank - 1 > NKI_DIMS) {
        return NULL;
    }
    BufRef at = put_positions(x, e, n, used, extent);
    Affine *read = ARENA_ARRAY(x->arena, (size_t)n + table->rank, Affine);
    Affine *row = ARENA_ARRAY(x->arena, table->rank, Affine);
    for (uint32_t i = 0; i < n; i++) {
        read[i] = affine_var(x->arena, used[i]);
        var[i] = kernel_var(x->to, &x->ctx->syms, "n", false);
    }
    for (uint32_t d = 1; d < table->rank; d++) {
        extent[all] = table->extent[d].n;
        var[all] = kernel_var(x->to, &x->ctx->syms, "e", false);
        read[all] = e->arg[d]->at[0];
        row[d - 1] = affine_var(x->arena, var[all++]);
    }
    const Expr *value = gather_at(x, e, at, n, var, row);
    Stmt *rows = put(x, all, var, extent, "rows", table->dtype);
    rows->value = value;
    return expr_load(x->arena, x->to, rows->dst, read);
}

/* Is the statement a copy of rows into memory, at one index a dimension, of all positions? Then it is what reads them. */
static bool is_copy(Gathers *x, Stmt *s)
{
    const Expr *e = s->value;
    VarRef used[NKI_DIMS];
    int64_t extent[NKI_DIMS];
    bool copies = x->n_loops == 0 && e->kind == EXPR_OP && e->op == OP_GATHER &&
                  s->fold == OP_COPY && x->to->bufs.at[s->dst].param >= 0 &&
                  x->to->bufs.at[s->dst].dtype == e->dtype;
    for (uint32_t d = 0; copies && d < x->to->bufs.at[s->dst].rank; d++) {
        copies = affine_is_var(s->at[d]) &&
                 extent_of(x, s->at[d].term[0].var) == x->to->bufs.at[s->dst].extent[d].n;
    }
    uint32_t n = copies ? positions_of(x, expr_uncast(e->arg[0]), used, extent) : 0;
    if (n == 0) {
        return false;
    }
    Affine *row = ARENA_ARRAY(x->arena, e->n_args, Affine);
    for (uint32_t d = 1; d < e->n_args; d++) {
        row[d - 1] = e->arg[d]->at[0];
    }
    BufRef at = put_positions(x, e, n, used, extent);
    s->value = gather_at(x, e, at, n, used, row);
    return true;
}

static const Expr *without_gathers(Gathers *x, const Expr *e, bool *failed)
{
    if (e->kind == EXPR_OP && e->op == OP_GATHER) {
        const Expr *rows = rows_of(x, e);
        *failed |= rows == NULL;
        return rows == NULL ? e : rows;
    }
    if (e->kind != EXPR_OP) {
        return e;
    }
    const Expr **arg = ARENA_ARRAY(x->arena, e->n_args, const Expr *);
    bool same = true;
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = without_gathers(x, e->arg[i], failed);
        same &= arg[i] == e->arg[i];
    }
    return same ? e : expr_op(x->arena, e->op, e->dtype, e->n_args, arg);
}

static void change_all(Gathers *x, Stmt *const *body, uint32_t n, bool *failed)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_TILE) {
            x->s = s;
            s->value = is_copy(x, s) ? s->value : without_gathers(x, s->value, failed);
        } else if (stmt_has_body(s)) {
            x->loop[x->n_loops] = s;
            x->n_loops += s->kind == STMT_FOR;
            change_all(x, s->body, s->n_body, failed);
            x->n_loops -= s->kind == STMT_FOR;
        }
    }
}

static bool is_gather(const Expr *e)
{
    return e->kind == EXPR_OP && e->op == OP_GATHER;
}

Kernel *nki_gathers(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    StmtWalk w;
    ExprWalk v;
    bool any = false, failed = false;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        for (const Expr *e = expr_first(&v, s->value); e != NULL; e = expr_next(&v)) {
            any |= is_gather(e);
        }
    }
    if (!any || k->dims.list.n > 0) {
        return (Kernel *)(uintptr_t)k;
    }
    Gathers x = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    change_all(&x, x.to->body, x.to->n_body, &failed);
    if (failed) {
        diag_unsupported(&ctx->diags, E_TARGET, k->span,
                         "target '%s' does not have gather here; it goes to target 'c'",
                         target->name);
        return NULL;
    }
    for (uint32_t i = 0; i < x.to->n_body; i++) {
        vec_push(arena, &x.made, x.to->body[i]);
    }
    x.to->body = x.made.at;
    x.to->n_body = x.made.n;
    return kernel_numbered(arena, x.to);
}

/* ---- as copies ---- */

bool gathers_rows(const Stmt *s)
{
    return s->fold == OP_COPY && is_gather(s->value);
}

void gathers_mark(const Kernel *k, bool *in_memory)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        if (gathers_rows(s)) {
            in_memory[s->dst] = true;
            in_memory[expr_uncast(s->value->arg[0])->buf] = true;
        }
    }
}

/* Rows of the argument into a tile, at the positions that a column of another one has. */
static void read_rows(Lower *l, const Stmt *s, Labels e, const Box *box, TileView tile,
                      TileView at)
{
    TileIndex *index = ARENA_ARRAY(l->arena, (size_t)e.n + 1, TileIndex);
    Affine *dst = ARENA_ARRAY(l->arena, 2, Affine), *column = ARENA_ARRAY(l->arena, 2, Affine);
    uint32_t n = 0, rank = s->value->n_args;
    int64_t flat = 1;
    index[n++] = (TileIndex){.var = l->q[0], .range = range_whole(dim_fixed(tile.np))};
    dst[0] = column[0] = affine_var(l->arena, l->q[0]);
    dst[1] = affine_const(tile.f0);
    column[1] = affine_const(at.f0);
    const Expr **arg = ARENA_ARRAY(l->arena, rank, const Expr *);
    arg[0] = expr_cast(l->arena, expr_load(l->arena, l->to, at.buf, column), DTYPE_I64);
    for (uint32_t i = e.n; i-- > 0;) {
        Affine here = affine_const(box->s[e.at[i]]);
        if (box->n[e.at[i]] > 1) {
            Affine q = affine_var(l->arena, l->q[1 + i]);
            here = affine_add(l->arena, here, 1, q);
            dst[1] = affine_add(l->arena, dst[1], flat, q);
        }
        flat *= box->n[e.at[i]];
        arg[1 + i] = expr_index(l->arena, DTYPE_I64, here);
    }
    for (uint32_t i = 0; i < e.n; i++) {
        if (box->n[e.at[i]] > 1) {
            index[n++] = (TileIndex){.var = l->q[1 + i],
                                     .range = range_whole(dim_fixed(box->n[e.at[i]]))};
        }
    }
    make_value(l, tile.buf, dst, n, index,
               expr_gather(l->arena, l->to, l->home[s->value->buf].buf, arg));
}

void gathers_lower(Lower *l, const Stmt *s)
{
    const Expr *load = expr_uncast(s->value->arg[0]);
    Place at = place_of(l, load->buf, load->at), dst = place_of(l, s->dst, s->at);
    DType t = l->from->bufs.at[s->dst].dtype;
    Labels p = {0}, o = {0}, e = {0};
    uint32_t longest = LABELS;
    for (uint32_t i = 0; i < l->now.n_labels; i++) {
        bool longer = place_has(&at, i) &&
                      (longest == LABELS || l->now.full.n[i] > l->now.full.n[longest]);
        longest = longer ? i : longest;
    }
    for (uint32_t i = 0; i < l->now.n_labels; i++) {
        Labels *to = i == longest ? &p : place_has(&at, i) ? &o : &e;
        to->at[to->n++] = (uint8_t)i;
    }
    int64_t pstep[LABELS], ostep[LABELS], estep[LABELS];
    box_steps(p, &l->now.full, NKI_PARTITIONS, pstep);
    box_steps(e, &l->now.full, ROW_ELEMENTS, estep);
    Box box = l->now.full;
    for (bool a = true; box_next(p, &l->now.full, pstep, &box, a) && !l->tried.failed;
         a = false) {
        int64_t np = labels_count(p, &box);
        Box all = l->now.full;
        for (uint32_t i = 0; i < p.n; i++) {
            all.s[p.at[i]] = box.s[p.at[i]];
            all.n[p.at[i]] = box.n[p.at[i]];
        }
        TileView where = tile_new(l, "at", DTYPE_I32, SPACE_TILE, np, labels_count(o, &all));
        make_dma(l, &at, p, o, &all, where, false);
        for (bool c = true; box_next(e, &l->now.full, estep, &box, c) && !l->tried.failed;
             c = false) {
            int64_t row = labels_count(e, &box);
            box_steps(o, &l->now.full, ROW_ELEMENTS / row, ostep);
            for (bool b = true; box_next(o, &l->now.full, ostep, &box, b) && !l->tried.failed;
                 b = false) {
                int64_t count = labels_count(o, &box), first = 0;
                TileView tile = tile_new(l, "rows", t, SPACE_TILE, np, count * row);
                for (uint32_t i = 0; i < o.n; i++) {
                    first = first * l->now.full.n[o.at[i]] + box.s[o.at[i]] -
                            l->now.full.s[o.at[i]];
                }
                for (int64_t i = 0; i < count; i++) {
                    read_rows(l, s, e, &box, view_part(tile, i * row, row),
                              view_part(where, first + i, 1));
                }
                Labels f = o;
                for (uint32_t i = 0; i < e.n; i++) {
                    f.at[f.n++] = e.at[i];
                }
                make_dma(l, &dst, p, f, &box, tile, true);
            }
        }
    }
}
