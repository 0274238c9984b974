/* SPDX-License-Identifier: Apache-2.0 */
/* A map of a function and the sum of its rows as one statement, where nothing between them has to do with the sum; and as two.
 *
 *     map @W[i,j] = exp(..)         |
 *     reduce @L[i] += @W[i,j]       |   map @V[i,j] = cast.bf16(exp(..)) sums @L[i]
 *     map @V[i,j] = cast.bf16(@W)   |
 *
 * What is kept of the values may be a narrower type alone. */
#include "lower/lower.h"

#include <string.h>

#include "loop/term.h"
#include "loop/walk.h"

#define FAR_MOST 8 /* statements between */

typedef struct RowSums {
    Ctx *ctx;
    Arena *arena;
    const Kernel *from;
    Kernel *to;
    bool any;
} RowSums;

/* ---- one of two ---- */

/* The index of `s` that stands where an index of `reader` does, which reads what `s` sets; UINT32_MAX: there is none. */
static VarRef index_for(const RowSums *x, const Stmt *s, const Expr *load, VarRef v)
{
    VarRef found = UINT32_MAX;
    for (uint32_t d = 0; d < x->from->bufs.at[s->dst].rank; d++) {
        const Affine *from = &load->at[d], *to = &s->at[d];
        for (uint32_t i = 0; affine_uses(*from, v) && i < to->n; i++) {
            bool own =
                !affine_is_dim(to->term[i].var) && !x->from->vars.at[to->term[i].var].is_loop;
            found = own ? to->term[i].var : found;
        }
    }
    return found;
}

/* Positions in indices of `reader`, as positions in those of `s`. */
static const Affine *in_indices_of(const RowSums *x, const Stmt *s, const Stmt *reader,
                                   BufRef buf, const Affine *at)
{
    const Expr *load = expr_uncast(reader->value);
    uint32_t rank = x->from->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(x->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = at[d];
        for (uint32_t i = 0; i < reader->n_index; i++) {
            VarRef v = reader->index[i].var;
            VarRef as = affine_uses(out[d], v) ? index_for(x, s, load, v) : UINT32_MAX;
            out[d] = as == UINT32_MAX
                         ? out[d]
                         : affine_subst(x->arena, out[d], v, affine_var(x->arena, as));
        }
    }
    return out;
}

static bool has_range(const Stmt *s, VarRef v, const Range *range)
{
    bool has = false;
    for (uint32_t i = 0; i < s->n_index; i++) {
        has |= s->index[i].var == v && range_eq(&s->index[i].range, range);
    }
    return has;
}

/* Is the value of `reader` what `s` makes for the same values of its indices, converted perhaps? */
static bool reads_as_made(const RowSums *x, const Stmt *s, const Stmt *reader)
{
    const Expr *load = expr_uncast(reader->value);
    if (load->kind != EXPR_LOAD || load->buf != s->dst || s->n_index != reader->n_index) {
        return false;
    }
    const Affine *at = in_indices_of(x, s, reader, s->dst, load->at);
    bool same = true;
    for (uint32_t d = 0; d < x->from->bufs.at[s->dst].rank; d++) {
        same &= affine_eq(s->at[d], at[d]);
    }
    for (uint32_t i = 0; i < reader->n_index; i++) {
        same &=
            has_range(s, index_for(x, s, load, reader->index[i].var), &reader->index[i].range);
    }
    return same;
}

static bool is_function(const Stmt *s)
{
    const Expr *e = s->kind == STMT_TILE ? expr_uncast(s->value) : NULL;
    return e != NULL && s->fold == OP_COPY && s->sums == 0 && e->kind == EXPR_OP &&
           e->n_args == 1;
}

static bool is_sum(const RowSums *x, const Stmt *s, const Stmt *t)
{
    DType type = x->from->bufs.at[s->dst].dtype;
    return t->fold == OP_SUM && t->scan == 0 && t->schedule == NULL &&
           x->from->bufs.at[t->dst].dtype == type && t->value->kind == EXPR_LOAD &&
           !expr_reads(s->value, t->dst) && reads_as_made(x, s, t);
}

static bool is_narrower(const RowSums *x, const Stmt *s, const Stmt *t)
{
    DType type = x->from->bufs.at[t->dst].dtype;
    return t->fold == OP_COPY && t->sums == 0 && dtype_is_float(type) &&
           dtype_bytes(type) < dtype_bytes(x->from->bufs.at[s->dst].dtype) &&
           !expr_reads(s->value, t->dst) && reads_as_made(x, s, t);
}

static uint32_t count_readers(const Kernel *k, BufRef buf)
{
    StmtWalk w;
    uint32_t n = 0;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        n += expr_reads(s->value, buf);
    }
    return n;
}

/* Must they stay in their order? */
static bool in_order(const Stmt *s, const Stmt *t)
{
    bool order =
        expr_reads(s->value, t->dst) || expr_reads(t->value, s->dst) || tile_sets(s, t->dst);
    order |= s->sums > 0 && (expr_reads(t->value, s->sums - 1) || tile_sets(t, s->sums - 1));
    return order || (t->sums > 0 && expr_reads(s->value, t->sums - 1));
}

/* Statements beside a function, places in its block (0: there is none), and which of those between must stand before it. */
typedef struct Beside {
    uint32_t sum, narrower;
    bool *before; /* [statements of the block] */
} Beside;

/* May the statement at `i`, between the function and its sum, stand before the function? */
static bool may_precede(Stmt *const *body, uint32_t at, uint32_t i, const Beside *b)
{
    bool may = !in_order(body[i], body[at]);
    for (uint32_t k = at + 1; k < i; k++) {
        may &= body[k]->kind != STMT_TILE || b->before[k] || !in_order(body[k], body[i]);
    }
    return may;
}

/* May the statement at `to`, which reads what the one at `at` makes, be one with that? Those between stand behind both, or before. */
static bool may_join(Stmt *const *body, uint32_t at, uint32_t to, Beside *b)
{
    const Stmt *s = body[at], *t = body[to];
    for (uint32_t i = at + 1; i < to; i++) {
        const Stmt *u = body[i];
        if (u->kind == STMT_ALLOC || i == b->sum || i == b->narrower || b->before[i]) {
            continue;
        }
        if (tile_sets(u, s->dst)) {
            return false;
        }
        b->before[i] = tile_sets(u, t->dst) || expr_reads(u->value, t->dst);
        if (b->before[i] && !may_precede(body, at, i, b)) {
            return false;
        }
    }
    return true;
}

static Beside find_beside(const RowSums *x, Stmt *const *body, uint32_t n, uint32_t at)
{
    const Stmt *s = body[at];
    Beside b = {.before = ARENA_ARRAY(x->arena, n + 1, bool)};
    uint32_t far = 0;
    for (uint32_t i = at + 1; i < n && far <= FAR_MOST && !stmt_has_body(body[i]); i++) {
        const Stmt *t = body[i];
        far += t->kind == STMT_TILE;
        if (t->kind == STMT_TILE && b.sum == 0 && is_sum(x, s, t)) {
            if (!may_join(body, at, i, &b)) {
                return (Beside){0};
            }
            b.sum = i;
        } else if (t->kind == STMT_TILE && b.narrower == 0 && is_narrower(x, s, t)) {
            b.narrower = i;
        }
    }
    bool own = false; /* does nothing else read it? */
    for (uint32_t i = 0; i < at; i++) {
        own |= body[i]->kind == STMT_ALLOC && body[i]->buf == s->dst;
    }
    own = own && b.sum > 0 && b.narrower > 0 && count_readers(x->from, s->dst) == 2;
    for (uint32_t i = at + 1; own && i < b.narrower; i++) {
        own = body[i]->kind != STMT_TILE || i == b.sum || !in_order(body[i], body[b.narrower]);
    }
    b.narrower = own ? b.narrower : 0;
    return b;
}

static Stmt *joined(const RowSums *x, Stmt *const *body, uint32_t at, Beside b)
{
    const Stmt *s = body[at], *sum = body[b.sum];
    Stmt *out = arena_copy(x->arena, s, sizeof *s);
    if (b.narrower > 0) {
        const Stmt *t = body[b.narrower];
        out->dst = t->dst;
        out->at = in_indices_of(x, s, t, t->dst, t->at);
        out->value = expr_cast(x->arena, s->value, x->from->bufs.at[t->dst].dtype);
    }
    out->sums = sum->dst + 1;
    out->sums_at = in_indices_of(x, s, sum, sum->dst, sum->at);
    out->begins = sum->begins;
    out->n_first = sum->n_first;
    out->first = sum->first;
    return out;
}

/* Is the buffer set by the map, or used by what stands before it? */
static bool is_used(Stmt *const *body, uint32_t n, const Beside *b, const Stmt *map, BufRef buf)
{
    bool used = tile_sets(map, buf);
    for (uint32_t i = 0; i < n; i++) {
        used |= b->before[i] && (tile_sets(body[i], buf) || expr_reads(body[i]->value, buf));
    }
    return used;
}

/* The statements with maps that add up their rows; what they set is allocated before them. */
static Stmts join_block(RowSums *x, Stmt *const *body, uint32_t n)
{
    Stmts out = {0};
    bool *gone = ARENA_ARRAY(x->arena, n + 1, bool);
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (gone[i]) {
            continue;
        }
        if (stmt_has_body(s)) {
            Stmts in = join_block(x, s->body, s->n_body);
            s = arena_copy(x->arena, s, sizeof *s);
            s->body = in.at;
            s->n_body = in.n;
        }
        Beside b = is_function(s) ? find_beside(x, body, n, i) : (Beside){0};
        if (b.sum == 0) {
            vec_push(x->arena, &out, s);
            continue;
        }
        x->any = gone[b.sum] = true;
        for (uint32_t j = 0; b.narrower > 0 && j < out.n;
             j++) { /* its own place is not needed */
            if (out.at[j]->kind == STMT_ALLOC && out.at[j]->buf == s->dst) {
                memmove(out.at + j, out.at + j + 1, (--out.n - j) * sizeof(Stmt *));
            }
        }
        gone[b.narrower] |= b.narrower > 0;
        Stmt *map = joined(x, body, i, b);
        for (uint32_t j = i + 1; j < b.sum || j < b.narrower; j++) {
            bool here = body[j]->kind == STMT_ALLOC ? is_used(body, n, &b, map, body[j]->buf)
                                                    : b.before[j];
            if (here && !gone[j]) {
                gone[j] = true;
                vec_push(x->arena, &out, body[j]);
            }
        }
        vec_push(x->arena, &out, map);
    }
    return out;
}

const Kernel *kernel_row_sums(Arena *arena, const Kernel *k)
{
    RowSums x = {.arena = arena, .from = k};
    Stmts body = join_block(&x, k->body, k->n_body);
    if (!x.any) {
        return k;
    }
    Kernel *to = kernel_like(arena, k);
    to->body = body.at;
    to->n_body = body.n;
    return to;
}

/* ---- two of one ---- */

/* The map, and the sum of what it has made, or of values that are converted then. */
static void put_apart(RowSums *x, const Stmt *s, Stmts *out)
{
    const Expr *e = tile_summed(x->from, s);
    const Buffer *b = &x->from->bufs.at[s->dst];
    Stmt *map = arena_copy(x->arena, s, sizeof *s), *copy = NULL;
    map->sums = 0;
    map->begins = false;
    map->n_first = 0;
    if (e != s->value) {
        Stmt *alloc = ARENA_NEW(x->arena, Stmt);
        *alloc = (Stmt){.kind = STMT_ALLOC, .span = s->span};
        alloc->buf = kernel_buffer(x->to, &x->ctx->syms, b->name->text, e->dtype, SPACE_TILE,
                                   b->rank, b->extent);
        copy = arena_copy(x->arena, map, sizeof *map);
        copy->value =
            expr_cast(x->arena, expr_load(x->arena, x->to, alloc->buf, s->at), s->value->dtype);
        map->dst = alloc->buf;
        map->value = e;
        vec_push(x->arena, out, alloc);
    }
    vec_push(x->arena, out, map);
    Stmt *sum = arena_copy(x->arena, s, sizeof *s);
    sum->dst = s->sums - 1;
    sum->at = s->sums_at;
    sum->sums = 0;
    sum->span = (Span){0}; /* another statement's of the program */
    sum->name = NULL;
    sum->fold = OP_SUM;
    sum->value = expr_load(x->arena, x->to, map->dst, s->at);
    vec_push(x->arena, out, sum);
    if (copy != NULL) {
        vec_push(x->arena, out, copy);
    }
}

static Stmts part_block(RowSums *x, Stmt *const *body, uint32_t n)
{
    Stmts out = {0};
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (stmt_has_body(s)) {
            Stmts in = part_block(x, s->body, s->n_body);
            s = arena_copy(x->arena, s, sizeof *s);
            s->body = in.at;
            s->n_body = in.n;
        }
        if (s->kind == STMT_TILE && s->sums > 0) {
            put_apart(x, s, &out);
        } else {
            vec_push(x->arena, &out, s);
        }
    }
    return out;
}

static bool kernel_has_row_sums(const Kernel *k)
{
    StmtWalk w;
    bool has = false;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        has |= s->sums > 0;
    }
    return has;
}

const Kernel *kernel_sums_apart(Ctx *ctx, Arena *arena, const Kernel *k)
{
    if (!kernel_has_row_sums(k)) {
        return k;
    }
    RowSums x = {.ctx = ctx, .arena = arena, .from = k, .to = kernel_like(arena, k)};
    Stmts body = part_block(&x, k->body, k->n_body);
    x.to->body = body.at;
    x.to->n_body = body.n;
    return x.to;
}
