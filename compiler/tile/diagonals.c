/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of an operand with one number a row, as contractions: the Tensor engine multiplies by a diagonal matrix of these numbers
 * in less time than the Vector engine by a column, where they are of 16 bits and there are many positions of each.
 *
 *     y[c,i] += k[c,t] * x[c,i+t]    ->    for $g: D[d,c,t] = select(d == c, k[$g+d,t], 0);  y[$g+c,i] += D[d,c,t] * x[$g+d,i+t]
 *
 * Depthwise convolutions are such sums. Rows that share a matrix meet in the sums with a factor of 0, so all must be finite. */
#include "tile/tile.h"

#include "loop/copy.h"
#include "loop/term.h"

#define ROWS_LEAST      16  /* of a matrix */
#define POSITIONS_LEAST 512 /* of each row, for which a matrix is worth to make */
#define TERMS_MOST      64  /* of each sum: matrices that are made */

typedef struct Diagonals {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    bool any;
} Diagonals;

/* A sum that is computed so. */
typedef struct Rows {
    const Stmt *s, *next; /* next: computed from its result, which nobody else reads; or null */
    const Expr *numbers, *other; /* loads */
    uint32_t row, as_row;        /* indices of `s`, of `next` */
    uint32_t dim, as_dim;        /* where they are in the result, and in what `next` sets */
    int64_t n, block;            /* rows, of a matrix */
    uint32_t alloc;              /* place in the block of the result's allocation */
} Rows;

static const Expr *load_of(const Expr *e)
{
    e = expr_uncast(e);
    return e->kind == EXPR_LOAD ? e : NULL;
}

/* The extent of an index with all values from 0 on; 0: it is another one. */
static int64_t extent_of(const TileIndex *x)
{
    return range_is_whole(&x->range) ? x->range.limit.n : 0;
}

static uint32_t rank_of(const Diagonals *x, BufRef buf)
{
    return x->to->bufs.at[buf].rank;
}

/* The most rows of a matrix that divide all of them. */
static int64_t rows_of_block(int64_t n)
{
    int64_t block = n < TILE_ROWS ? n : TILE_ROWS;
    while (n % block != 0) {
        block--;
    }
    return block;
}

/* Of two operands: has one a number for each row and term, the other many positions? */
static bool find_rows(const Diagonals *x, Rows *r)
{
    const Kernel *k = x->to;
    const Stmt *s = r->s;
    int64_t terms = 1, positions = 1;
    r->row = s->n_index;
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        int64_t n = extent_of(&s->index[i]);
        bool in_numbers = access_uses(k, r->numbers->buf, r->numbers->at, v),
             in_other = access_uses(k, r->other->buf, r->other->at, v),
             kept = access_uses(k, s->dst, s->at, v);
        if (n == 0 || !in_other || (!kept && !in_numbers) ||
            (in_numbers && kept && r->row < s->n_index)) {
            return false;
        }
        r->row = in_numbers && kept ? i : r->row;
        terms = sat_mul(terms, kept ? 1 : n);
        positions = sat_mul(positions, kept && !in_numbers ? n : 1);
    }
    if (r->row == s->n_index) {
        return false;
    }
    VarRef v = s->index[r->row].var;
    r->n = extent_of(&s->index[r->row]);
    r->block = rows_of_block(r->n);
    r->dim = access_dim(x->to, s->dst, s->at, v);
    return r->dim < rank_of(x, s->dst) && r->block >= ROWS_LEAST && terms > 1 &&
           terms <= TERMS_MOST && positions >= POSITIONS_LEAST &&
           access_dim(x->to, r->numbers->buf, r->numbers->at, v) <
               rank_of(x, r->numbers->buf) &&
           access_dim(x->to, r->other->buf, r->other->at, v) < rank_of(x, r->other->buf);
}

static bool is_sum_of_rows(const Diagonals *x, const Stmt *s, Rows *r)
{
    const Expr *e = s->kind == STMT_TILE ? expr_uncast(s->value) : NULL;
    bool given = s->schedule != NULL && (s->schedule->given || s->schedule->needed);
    if (e == NULL || s->fold != OP_SUM || !s->begins || s->n_first > 0 || s->scan > 0 ||
        given || tile_kind(s) != TILE_MATMUL || e->kind != EXPR_OP || e->op != OP_MUL ||
        e->n_args != 2) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        *r = (Rows){.s = s, .numbers = load_of(e->arg[i]), .other = load_of(e->arg[1 - i])};
        if (r->numbers == NULL || r->other == NULL) {
            return false;
        }
        DType t = x->to->bufs.at[r->numbers->buf].dtype;
        if (t == x->to->bufs.at[r->other->buf].dtype && dtype_is_float(t) &&
            dtype_bytes(t) < 4 && x->to->bufs.at[s->dst].dtype == DTYPE_F32 &&
            find_rows(x, r)) {
            return true;
        }
    }
    return false;
}

/* What follows, if it alone reads the result, row by row, and that is allocated in the same block. */
static void find_next(const Diagonals *x, Stmt *const *body, uint32_t n, uint32_t at, Rows *r)
{
    const Stmt *next = at + 1 < n ? body[at + 1] : NULL;
    const Expr *load = next == NULL || next->kind != STMT_TILE || next->fold != OP_COPY ||
                               next->sums > 0 || next->scan > 0
                           ? NULL
                           : expr_load_of(next->value, r->s->dst);
    r->alloc = n;
    for (uint32_t i = 0; i < at; i++) {
        bool here = body[i]->kind == STMT_ALLOC && body[i]->buf == r->s->dst;
        r->alloc = here ? i : r->alloc;
    }
    if (load == NULL || r->alloc == n || kernel_readers(x->to, r->s->dst) != 1) {
        return;
    }
    for (uint32_t i = 0; i < next->n_index; i++) {
        VarRef v = next->index[i].var;
        uint32_t d = access_dim(x->to, r->s->dst, load->at, v);
        r->as_dim = access_dim(x->to, next->dst, next->at, v);
        if (d == r->dim && extent_of(&next->index[i]) == r->n &&
            r->as_dim < rank_of(x, next->dst)) {
            r->next = next;
            r->as_row = i;
            return;
        }
    }
}

/* ---- what is made ---- */

static const Affine *with_index(const Diagonals *x, const Affine *at, uint32_t rank, VarRef v,
                                Affine by)
{
    Affine *out = ARENA_ARRAY(x->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = affine_subst(x->arena, at[d], v, by);
    }
    return out;
}

static Range rows_from(Affine start, int64_t n, int64_t all)
{
    Range r = range_whole(dim_fixed(all));
    if (n < all) {
        r.start = start;
        r.span = n;
    }
    return r;
}

static Stmt *alloc_of(const Diagonals *x, const Stmt *s, BufRef buf)
{
    Stmt *alloc = ARENA_NEW(x->arena, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = s->span, .buf = buf};
    return alloc;
}

/* The levels of a product with one block of rows, and its indices by role: those of the sum begin with the rows of the matrix. */
static const Schedule *levels_of(const Diagonals *x, const Target *target, const Rows *r)
{
    const Stmt *s = r->s;
    Schedule *b = ARENA_NEW(x->arena, Schedule);
    ScheduleLevel *level = ARENA_ARRAY(x->arena, STRIP_LEVELS, ScheduleLevel);
    uint32_t *label[ROLE_COUNT];
    for (ScheduleRole role = 0; role < ROLE_COUNT; role++) {
        label[role] = ARENA_ARRAY(x->arena, s->n_index + 2, uint32_t);
        b->label[role] = label[role];
    }
    int64_t extent[TILE_DIMS], each = r->block;
    label[ROLE_M][b->n_labels[ROLE_M]++] = r->row;
    label[ROLE_K][b->n_labels[ROLE_K]++] = s->n_index;
    for (uint32_t i = s->n_index; i-- > 0;) {
        bool kept = access_uses(x->to, s->dst, s->at, s->index[i].var);
        if (kept && i != r->row) {
            extent[b->n_labels[ROLE_N]] = extent_of(&s->index[i]);
            each = sat_mul(each, extent_of(&s->index[i]));
            label[ROLE_N][b->n_labels[ROLE_N]++] = i;
        } else if (!kept) {
            label[ROLE_K][b->n_labels[ROLE_K]++] = i;
        }
    }
    Strips strips = schedule_strips_on(target->machine, target->machine->systolic.live_busy);
    strips.bytes[ROLE_N] = (double)each * 2;
    strips.tiles[ROLE_M] = 1;
    strips.tiles[ROLE_N] = schedule_boxes(b->n_labels[ROLE_N], extent, strips.tile[ROLE_N]);
    b->n_levels = schedule_strips(&strips, level);
    b->level = level;
    return b;
}

/* The matrices: D[d, c, terms] = d == c ? numbers[row d, terms] : 0. */
static Stmt *matrices(const Diagonals *x, const Rows *r, Affine first, BufRef buf, VarRef d)
{
    const Stmt *s = r->s;
    Stmt *map = ARENA_NEW(x->arena, Stmt);
    TileIndex *index = ARENA_ARRAY(x->arena, s->n_index + 2, TileIndex);
    Affine *at = ARENA_ARRAY(x->arena, s->n_index + 2, Affine);
    VarRef row = s->index[r->row].var;
    uint32_t n = 2;
    index[0] = (TileIndex){.var = d, .range = rows_from(first, r->block, r->n)};
    index[1] = (TileIndex){.var = row, .range = range_whole(dim_fixed(r->block))};
    at[0] = affine_add(x->arena, affine_var(x->arena, d), -1, first);
    at[1] = affine_var(x->arena, row);
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (!access_uses(x->to, s->dst, s->at, s->index[i].var)) {
            index[n] = s->index[i];
            at[n++] = affine_var(x->arena, s->index[i].var);
        }
    }
    const Buffer *b = &x->to->bufs.at[r->numbers->buf];
    const Affine *from = with_index(x, r->numbers->at, b->rank, row, affine_var(x->arena, d));
    const Expr *pair[2] = {
        expr_index(x->arena, DTYPE_I64, affine_var(x->arena, d)),
        expr_index(x->arena, DTYPE_I64,
                   affine_add(x->arena, first, 1, affine_var(x->arena, row)))};
    const Expr *arg[3] = {expr_op(x->arena, OP_EQ, DTYPE_BOOL, 2, pair),
                          expr_load(x->arena, x->to, r->numbers->buf, from),
                          expr_const(x->arena, number_real(b->dtype, 0.0))};
    *map = (Stmt){.kind = STMT_TILE,
                  .span = s->span,
                  .n_index = n,
                  .index = index,
                  .dst = buf,
                  .at = at,
                  .fold = OP_COPY,
                  .value = expr_op(x->arena, OP_SELECT, b->dtype, 3, arg)};
    return map;
}

/* The sum by way of them; `to`: what it sets, from `from` of its rows on. */
static Stmt *product(const Diagonals *x, const Target *target, const Rows *r, const Stmt *map,
                     VarRef d, BufRef to, Affine from)
{
    Stmt *s = arena_copy(x->arena, r->s, sizeof *r->s);
    VarRef row = s->index[r->row].var;
    TileIndex *index = ARENA_ARRAY(x->arena, s->n_index + 1, TileIndex);
    for (uint32_t i = 0; i < s->n_index; i++) {
        index[i] = s->index[i];
    }
    index[r->row].range = range_whole(dim_fixed(r->block));
    index[s->n_index] = map->index[0];
    const Expr *other = expr_load(
        x->arena, x->to, r->other->buf,
        with_index(x, r->other->at, rank_of(x, r->other->buf), row, affine_var(x->arena, d)));
    const Expr *arg[2] = {
        expr_cast(x->arena, expr_load(x->arena, x->to, map->dst, map->at), DTYPE_F32),
        expr_cast(x->arena, other, DTYPE_F32)};
    s->schedule = levels_of(x, target, r);
    s->at = with_index(x, s->at, rank_of(x, s->dst), row,
                       affine_add(x->arena, from, 1, affine_var(x->arena, row)));
    s->dst = to;
    s->index = index;
    s->n_index++;
    s->value = expr_op(x->arena, OP_MUL, DTYPE_F32, 2, arg);
    return s;
}

typedef struct Moved {
    const Diagonals *x;
    BufRef from, to;
    uint32_t dim;
    Affine by;
} Moved;

static void move_load(void *user, Expr *load)
{
    const Moved *m = user;
    if (load->kind == EXPR_LOAD && load->buf == m->from) {
        uint32_t rank = rank_of(m->x, m->from);
        Affine *at = arena_copy(m->x->arena, load->at, rank * sizeof *at);
        at[m->dim] = affine_add(m->x->arena, at[m->dim], -1, m->by);
        load->buf = m->to;
        load->at = at;
    }
}

/* What follows, of the rows of a block. */
static Stmt *next_of(const Diagonals *x, const Rows *r, Affine first, BufRef from)
{
    Stmt *s = arena_copy(x->arena, r->next, sizeof *r->next);
    TileIndex *index = arena_copy(x->arena, s->index, s->n_index * sizeof *index);
    Moved m = {x, r->s->dst, from, r->dim, first};
    index[r->as_row].range = rows_from(first, r->block, r->n);
    s->index = index;
    s->value = expr_with_places(x->arena, s->value, move_load, &m);
    return s;
}

/* All of it, to the end of `out`. */
static void put_rows(Diagonals *x, const Target *target, const Rows *r, Stmts *out)
{
    const Stmt *s = r->s;
    Arena *a = x->arena;
    bool loops = r->block < r->n, joins = loops && r->next != NULL;
    Stmts in = {0};
    Affine first = affine_const(0);
    Stmt *loop = ARENA_NEW(a, Stmt);
    if (loops) {
        *loop = (Stmt){.kind = STMT_FOR,
                       .span = s->span,
                       .var = kernel_var(x->to, &x->ctx->syms, "g", true),
                       .range = range_whole(dim_fixed(r->n)),
                       .step = r->block,
                       .parallel = true};
        first = affine_var(a, loop->var);
    }
    VarRef d = kernel_var(x->to, &x->ctx->syms, "d", false);
    Dim *extent = ARENA_ARRAY(a, s->n_index + 2, Dim);
    uint32_t rank = 2;
    extent[0] = extent[1] = dim_fixed(r->block);
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (!access_uses(x->to, s->dst, s->at, s->index[i].var)) {
            extent[rank++] = dim_fixed(extent_of(&s->index[i]));
        }
    }
    const Buffer *numbers = &x->to->bufs.at[r->numbers->buf];
    BufRef matrix =
        kernel_buffer(x->to, &x->ctx->syms, str_format(a, "%s_diagonal", numbers->name->text),
                      numbers->dtype, SPACE_TILE, rank, extent);
    Stmt *map = matrices(x, r, first, matrix, d);
    vec_push(a, &in, alloc_of(x, s, matrix));
    vec_push(a, &in, map);
    BufRef to = s->dst;
    if (joins) {
        const Buffer *b = &x->to->bufs.at[s->dst];
        Dim *rows = arena_copy(a, b->extent, b->rank * sizeof *rows);
        rows[r->dim] = dim_fixed(r->block);
        to = kernel_buffer(x->to, &x->ctx->syms, b->name->text, b->dtype, b->space, b->rank,
                           rows);
        vec_push(a, &in, alloc_of(x, s, to));
    }
    vec_push(a, &in, product(x, target, r, map, d, to, joins ? affine_const(0) : first));
    if (joins) {
        vec_push(a, &in, next_of(x, r, first, to));
    }
    if (loops) {
        loop->body = in.at;
        loop->n_body = in.n;
        vec_push(a, out, loop);
        return;
    }
    for (uint32_t i = 0; i < in.n; i++) {
        vec_push(a, out, in.at[i]);
    }
}

static void change_all(Diagonals *x, const Target *target, Stmt ***body, uint32_t *n)
{
    Stmts out = {0};
    bool any = false;
    for (uint32_t i = 0; i < *n; i++) {
        Stmt *s = (*body)[i];
        Rows r;
        if (stmt_has_body(s)) {
            change_all(x, target, &s->body, &s->n_body);
        }
        if (stmt_has_body(s) || !is_sum_of_rows(x, s, &r)) {
            vec_push(x->arena, &out, s);
            continue;
        }
        any = true;
        find_next(x, *body, *n, i, &r);
        if (r.block < r.n && r.next != NULL) { /* it has rows of a block then */
            uint32_t kept = 0;
            for (uint32_t j = 0; j < out.n; j++) {
                bool gone = out.at[j]->kind == STMT_ALLOC && out.at[j]->buf == s->dst;
                out.at[kept] = out.at[j];
                kept += !gone;
            }
            out.n = kept;
            i++;
        }
        put_rows(x, target, &r, &out);
    }
    x->any |= any;
    if (any) {
        *body = out.at;
        *n = out.n;
    }
}

Kernel *tile_diagonals(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    Diagonals x = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    change_all(&x, target, &x.to->body, &x.to->n_body);
    return x.any ? kernel_numbered(arena, x.to) : (Kernel *)(uintptr_t)k;
}
