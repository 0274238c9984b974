/* SPDX-License-Identifier: Apache-2.0 */
/* Strip-mining of folds that a mask restricts. A maximum over l in 0..N of what a condition keeps, `select(l <= q, x, -inf)`, becomes a
 * loop over tiles of l with a window: those beyond it change nothing, and windows.c computes those within it without the mask.
 *
 *     t[q] max= select(l <= q, x, -inf) begins
 *  -> t[q] = -inf; for $l in 0..N step T within ..$q+128 { t[q] max= select(l <= q, x, -inf), of l in $l:T }
 */
#include "tile/tile.h"

#define TILE_LEAST 64
#define TILE_MOST  512
#define MANY       4 /* tiles of that are worth loops in strips */

typedef struct Folds {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    int64_t *step; /* [vars] of loops around */
    bool any;
} Folds;

/* The most, or the least, over all indices of the statement; false: a range has no number of positions. */
static bool over_indices(Arena *a, const Stmt *s, bool most, Affine *x)
{
    for (uint32_t i = 0; i < s->n_index; i++) {
        const Range *r = &s->index[i].range;
        int64_t coef = affine_coef(*x, s->index[i].var);
        int64_t n = r->span > 0 ? r->span : r->limit.n - r->start.base;
        if (coef == 0) {
            continue;
        }
        if (r->limit.sym >= 0 || (r->span == 0 && r->start.n > 0)) {
            return false;
        }
        bool last = (coef > 0) == most;
        Affine at = affine_add(a, r->start, 1, affine_const(last ? n - 1 : 0));
        *x = affine_subst(a, *x, s->index[i].var, at);
    }
    return true;
}

/* What the condition says of the index: narrows the window. */
static void narrow(Arena *a, const Stmt *s, VarRef var, const Expr *e, Window *w)
{
    Affine x, y;
    if (e->kind == EXPR_OP && e->op == OP_AND) {
        narrow(a, s, var, e->arg[0], w);
        narrow(a, s, var, e->arg[1], w);
        return;
    }
    bool order = e->kind == EXPR_OP && e->n_args == 2 &&
                 (e->op == OP_LT || e->op == OP_LE || e->op == OP_GT || e->op == OP_GE);
    if (!order || !expr_affine(a, e->arg[0], &x) || !expr_affine(a, e->arg[1], &y)) {
        return;
    }
    bool less = e->op == OP_LT || e->op == OP_LE, strict = e->op == OP_LT || e->op == OP_GT;
    x = affine_add(a, x, -1, y); /* x < 0, or > */
    int64_t coef = affine_coef(x, var);
    bool below = (coef > 0) == less; /* var < -rest / coef, or > */
    Affine rest = affine_subst(a, x, var, affine_const(0));
    rest = affine_add(a, affine_const(0), coef > 0 ? -1 : 1, rest);
    if ((coef != 1 && coef != -1) || (below ? w->has_hi : w->has_lo) ||
        !over_indices(a, s, below, &rest)) {
        return;
    }
    if (below) {
        w->has_hi = true;
        w->hi = affine_add(a, rest, 1, affine_const(strict ? 0 : 1));
    } else {
        w->has_lo = true;
        w->lo = affine_add(a, rest, 1, affine_const(strict ? 1 : 0));
    }
}

bool tile_mask_window(Arena *a, const Stmt *s, VarRef var, const Expr *condition, Window *w)
{
    *w = (Window){0};
    narrow(a, s, var, condition, w);
    return w->has_lo || w->has_hi;
}

static int64_t common(int64_t a, int64_t b)
{
    return b == 0 ? a : common(b, a % b);
}

/* How many positions at a time: a part of what the window moves by from one iteration to the next; 0: none that is worth a loop. */
static int64_t tile_of(const Folds *f, const Window *w, int64_t n)
{
    int64_t by = 0;
    const Affine *end[2] = {w->has_lo ? &w->lo : NULL, w->has_hi ? &w->hi : NULL};
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; end[side] != NULL && i < end[side]->n; i++) {
            VarRef v = end[side]->term[i].var;
            int64_t step = affine_is_dim(v) ? 1 : end[side]->term[i].coef * f->step[v];
            by = common(by, step < 0 ? -step : step);
        }
    }
    by = by == 0 ? TILE_MOST / 2 : by;
    Affine wide = affine_add(f->arena, w->hi, -1, w->lo);
    int64_t within = w->has_lo && w->has_hi && wide.n == 0 && wide.base < n ? wide.base : n;
    by = by < TILE_MOST && TILE_MOST % by == 0 && within >= MANY * TILE_MOST ? TILE_MOST : by;
    int64_t parts = (by + TILE_MOST - 1) / TILE_MOST;
    while (parts < by && by % parts != 0) {
        parts++;
    }
    by /= parts;
    return by >= TILE_LEAST && n >= 2 * by ? by : 0;
}

/* The index that is folded, whose positions a mask restricts, with the window; false: there is none. */
static bool find_index(Folds *f, const Stmt *s, uint32_t *at, Window *w)
{
    const Expr *e = s->value;
    bool folds = s->kind == STMT_TILE && s->fold != OP_COPY && s->begins && s->n_first == 0 &&
                 s->scan == 0 && s->schedule == NULL;
    while (folds && e->kind == EXPR_OP && e->op == OP_CAST) {
        e = e->arg[0];
    }
    if (!folds || e->kind != EXPR_OP || e->op != OP_SELECT || e->arg[2]->kind != EXPR_CONST ||
        !dtype_is_float(e->dtype)) {
        return false;
    }
    double rest = number_cast(e->arg[2]->value, DTYPE_F64).re;
    double none = number_cast(op_neutral(s->fold, DTYPE_F64), DTYPE_F64).re;
    if (rest < none || rest > none || rest != rest) {
        return false;
    }
    for (*at = 0; *at < s->n_index; ++*at) {
        const TileIndex *x = &s->index[*at];
        *w = (Window){0};
        if (access_uses(f->to, s->dst, s->at, x->var) || x->range.span > 0 ||
            x->range.start.n > 0 || x->range.start.base != 0 || x->range.limit.sym >= 0) {
            continue;
        }
        narrow(f->arena, s, x->var, e->arg[0], w);
        if (w->has_lo || w->has_hi) {
            return true;
        }
    }
    return false;
}

static void put_fold(Folds *f, const Stmt *s, Stmts *out)
{
    uint32_t at = 0;
    Window w;
    Arena *a = f->arena;
    int64_t n = 0, tile = find_index(f, s, &at, &w) ? 1 : 0;
    if (tile > 0) {
        n = s->index[at].range.limit.n;
        tile = tile_of(f, &w, n);
    }
    if (tile == 0) {
        vec_push(a, out, (Stmt *)(uintptr_t)s);
        return;
    }
    f->any = true;
    Stmt *fill = arena_copy(a, s, sizeof *s), *part = arena_copy(a, s, sizeof *s);
    TileIndex *kept = ARENA_ARRAY(a, s->n_index, TileIndex);
    fill->n_index = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (access_uses(f->to, s->dst, s->at, s->index[i].var)) {
            kept[fill->n_index++] = s->index[i];
        }
    }
    fill->index = kept;
    fill->fold = OP_COPY;
    fill->begins = false;
    fill->value = expr_const(a, op_neutral(s->fold, f->to->bufs.at[s->dst].dtype));
    const char *name = f->to->vars.at[s->index[at].var].wish->text;
    VarRef var = kernel_var(f->to, &f->ctx->syms, name, true);
    TileIndex *index = arena_copy(a, s->index, s->n_index * sizeof *s->index);
    index[at].range = (Range){affine_var(a, var), tile, n % tile != 0, dim_fixed(n)};
    part->index = index;
    part->begins = false;
    Stmt *loop = ARENA_NEW(a, Stmt), **body = (Stmt **)arena_array(a, 1, sizeof *body);
    body[0] = part;
    *loop = (Stmt){.kind = STMT_FOR, .span = s->span, .var = var, .step = tile, .n_body = 1};
    loop->body = body;
    loop->range = range_whole(dim_fixed(n));
    loop->window = arena_copy(a, &w, sizeof w);
    vec_push(a, out, fill);
    vec_push(a, out, loop);
}

/* ---- loops around windows of longer tiles ---- */

/* The longest tile of a loop inside whose window moves with the variable, by shorter steps that divide it; or `most`. */
static int64_t longer_tile(const Stmt *loop, Stmt *const *body, uint32_t n, int64_t most)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (!stmt_has_body(s)) {
            continue;
        }
        const Window *w = s->window;
        bool moves = w != NULL && ((w->has_hi && affine_coef(w->hi, loop->var) == 1) ||
                                   (w->has_lo && affine_coef(w->lo, loop->var) == 1));
        most = moves && s->step % loop->step == 0 && s->step > most ? s->step : most;
        most = longer_tile(loop, s->body, s->n_body, most);
    }
    return most;
}

/* Copies whose windows are as wide as any of the iterations in a tile of the loop around wants them: of what moves with `var`, from the first
 * to the last of these. */
static Stmt **with_wide_windows(Folds *f, Stmt *const *body, uint32_t n, VarRef var,
                                VarRef around, int64_t last)
{
    Arena *a = f->arena;
    Stmt **out = (Stmt **)arena_array(a, n + 1, sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = body[i];
        if (!stmt_has_body(body[i])) {
            continue;
        }
        out[i] = arena_copy(a, body[i], sizeof *out[i]);
        out[i]->body = with_wide_windows(f, body[i]->body, body[i]->n_body, var, around, last);
        const Window *w = body[i]->window;
        if (w != NULL && (affine_uses(w->hi, var) || affine_uses(w->lo, var)) &&
            affine_coef(w->hi, var) >= 0 && affine_coef(w->lo, var) >= 0) {
            Window *wide = arena_copy(a, w, sizeof *w);
            Affine end = affine_add(a, affine_const(last), 1, affine_var(a, around));
            wide->hi = affine_subst(a, w->hi, var, end);
            wide->lo = affine_subst(a, w->lo, var, affine_var(a, around));
            out[i]->window = wide;
        }
    }
    return out;
}

/* A loop by steps of 128 around one by tiles of 512 that ends with it: the same number of tiles four times. As two loops, with that number
 * in the outer one. */
static Stmt *in_strips(Folds *f, Stmt *s)
{
    Arena *a = f->arena;
    bool plain = s->kind == STMT_FOR && s->part == FOR_ALL && s->window == NULL &&
                 s->range.start.n == 0 && s->range.start.base == 0 && s->range.span == 0 &&
                 s->range.limit.sym < 0;
    int64_t tile = plain ? longer_tile(s, s->body, s->n_body, s->step) : s->step;
    if (tile == s->step || s->range.limit.n < 2 * tile) {
        return s;
    }
    f->any = true;
    Stmt *outer = arena_copy(a, s, sizeof *s), *inner = arena_copy(a, s, sizeof *s);
    Stmt **one = (Stmt **)arena_array(a, 1, sizeof *one);
    outer->var = kernel_var(f->to, &f->ctx->syms, f->to->vars.at[s->var].wish->text, true);
    outer->step = tile;
    one[0] = inner;
    outer->body = one;
    outer->n_body = 1;
    inner->range =
        (Range){affine_var(a, outer->var), tile, s->range.limit.n % tile != 0, s->range.limit};
    inner->parallel = false;
    inner->body = with_wide_windows(f, s->body, s->n_body, s->var, outer->var, tile - s->step);
    return outer;
}

static void put_body(Folds *f, Stmt *const *body, uint32_t n, Stmts *out)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!stmt_has_body(body[i])) {
            put_fold(f, body[i], out);
            continue;
        }
        Stmts inside = {0};
        if (body[i]->kind == STMT_FOR) {
            f->step[body[i]->var] = body[i]->step;
        }
        put_body(f, body[i]->body, body[i]->n_body, &inside);
        Stmt *s = arena_copy(f->arena, body[i], sizeof *s);
        s->body = inside.at;
        s->n_body = inside.n;
        vec_push(f->arena, out, in_strips(f, s));
    }
}

const Kernel *tile_masked_folds(Ctx *ctx, Arena *arena, const Kernel *k)
{
    Folds f = {.ctx = ctx, .arena = arena, .to = kernel_like(arena, k)};
    f.step = ARENA_ARRAY(arena, k->vars.n + 1, int64_t);
    Stmts out = {0};
    put_body(&f, k->body, k->n_body, &out);
    f.to->body = out.at;
    f.to->n_body = out.n;
    return f.any ? f.to : k;
}
