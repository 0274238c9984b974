/* SPDX-License-Identifier: Apache-2.0 */
/* See integers.h. An argument that a fold goes into has a block of f32 in its place, and is written at the end. */
#include "lower/integers.h"

#include <math.h>

#include "loop/copy.h"
#include "loop/walk.h"
#include "lower/interval.h"
#include "lower/quotient.h"

typedef struct Integers {
    Ctx *ctx;
    Arena *arena;
    const Target *target;
    const Kernel *from;
    Kernel *to; /* buffers of `from` have the same numbers here */
    Intervals iv;
    BufRef *block; /* [bufs of from] of f32 in place of an argument, or BUF_NONE */
    bool *held;    /* [bufs of from] f32 holds what is stored there, whatever its size */
    bool *wide;    /* [bufs of from] a sum beyond what f32 holds, as f64 */
    VEC(Stmt *) body;
    const Stmt *now; /* the statement at hand; */
    Span at;         /* of that */
    bool failed;
} Integers;

static const Expr *refuse(Integers *s, const char *what)
{
    if (!s->failed) {
        diag_unsupported(&s->ctx->diags, E_TARGET, s->at,
                         "target '%s' does not have %s; it goes to target 'c'", s->target->name,
                         what);
    }
    s->failed = true;
    return expr_const(s->arena, number_real(DTYPE_F32, 0));
}

static void put(Integers *s, Stmt *stmt)
{
    vec_push(s->arena, &s->body, stmt);
}

static bool is_integer(const Integers *s, BufRef buf)
{
    return dtype_is_int(s->from->bufs.at[buf].dtype);
}

/* Stays where it is in memory: an argument, or positions for gathers and what these read. */
static bool is_kept(const Integers *s, BufRef buf)
{
    const Buffer *b = &s->from->bufs.at[buf];
    return b->param >= 0 || (b->space == SPACE_WORKSPACE && b->dtype == DTYPE_I32);
}

static bool is_words(const Integers *s, BufRef buf)
{
    return s->from->bufs.at[buf].dtype == DTYPE_I64 && s->from->bufs.at[buf].param >= 0;
}

/* ---- values ---- */

static const Expr *real(Integers *s, const Expr *e);
static const Expr *value(Integers *s, const Expr *e);

static const Expr *cast(Integers *s, const Expr *e, DType t)
{
    return expr_cast(s->arena, e, t);
}

/* Positions in a buffer whose words are its last dimension. */
static const Affine *at_word(Integers *s, BufRef buf, const Affine *at, int64_t word)
{
    return pair_at(s->arena, s->from->bufs.at[buf].rank, at, affine_const(word));
}

static const Expr *load(Integers *s, BufRef buf, const Affine *at)
{
    if (s->block[buf] != BUF_NONE) {
        return expr_load(s->arena, s->to, s->block[buf], at);
    }
    at = is_words(s, buf) ? at_word(s, buf, at, 0) : at;
    return cast(s, expr_load(s->arena, s->to, buf, at), DTYPE_F32);
}

/* What f32 may hold an integer of a type in: all of 8 bits are bf16. */
static DType held_in(DType t)
{
    return dtype_bytes(t) == 1 ? DTYPE_BF16 : DTYPE_F32;
}

static const Expr *op(Integers *s, const Expr *e, DType t,
                      const Expr *(*each)(Integers *, const Expr *))
{
    const Expr **arg = ARENA_ARRAY(s->arena, e->n_args, const Expr *);
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = each(s, e->arg[i]);
    }
    return expr_op(s->arena, e->op, t, e->n_args, arg);
}

/* A value of f32, or the condition of a choice. */
static const Expr *real_or_bool(Integers *s, const Expr *e)
{
    return e->dtype == DTYPE_BOOL ? value(s, e) : real(s, e);
}

static bool has(Op op)
{
    return op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_NEG || op == OP_ABS ||
           op == OP_MIN || op == OP_MAX || op == OP_COPY || op == OP_SELECT || op == OP_SIGN;
}

/* Is it made of positions and numbers by additions alone? */
static bool is_position(Integers *s, const Expr *e)
{
    Affine x;
    return expr_affine(s->arena, e, &x);
}

static bool fits(Interval v)
{
    return v.lo >= -INTEGERS_EXACT && v.hi <= INTEGERS_EXACT;
}

static bool is_truncated(const Expr *e)
{
    return e->kind == EXPR_OP && e->op == OP_CAST && dtype_is_float(e->arg[0]->dtype);
}

/* Does a cast of an integer to a narrower one change what it is of, as it takes the low bits? */
static bool is_wrapped(const Integers *s, const Expr *e)
{
    if (e->kind != EXPR_OP || e->op != OP_CAST || !dtype_is_int(e->arg[0]->dtype)) {
        return false;
    }
    Interval of = interval_of(&s->iv, e->arg[0]);
    return !(of.lo >= (double)dtype_lowest(e->dtype) &&
             of.hi <= (double)dtype_highest(e->dtype));
}

/* Does f32 hold the value, as it is small, or a float without its fraction? */
static bool is_held(const Integers *s, const Expr *e)
{
    if (is_wrapped(s, e)) {
        return fits(interval_of(&s->iv, e->arg[0])) && fits(interval_of(&s->iv, e));
    }
    if (is_truncated(e) || fits(interval_of(&s->iv, e))) {
        return true;
    }
    if (e->kind == EXPR_LOAD) {
        return s->held[e->buf];
    }
    bool keeps =
        e->kind == EXPR_OP && (e->op == OP_CAST || e->op == OP_COPY || e->op == OP_MIN ||
                               e->op == OP_MAX || e->op == OP_SELECT);
    for (uint32_t i = e->op == OP_SELECT ? 1 : 0; keeps && i < e->n_args; i++) {
        keeps = is_held(s, e->arg[i]);
    }
    return keeps;
}

/* Finds what f32 holds although it may be large; a value is stored before it is read. */
static void find_held(Integers *s)
{
    StmtWalk w;
    for (BufRef b = 0; b < s->from->bufs.n; b++) {
        int32_t param = s->from->bufs.at[b].param;
        s->held[b] = param < 0 || s->from->args.at[param].role == ARG_RESULT;
    }
    bool changes = true;
    while (changes) {
        changes = false;
        for (const Stmt *t = tile_first(&w, s->from->body, s->from->n_body); t != NULL;
             t = tile_next(&w)) {
            bool keeps = is_integer(s, t->dst) && is_held(s, t->value) &&
                         (t->fold == OP_COPY || t->fold == OP_MIN || t->fold == OP_MAX);
            changes |= s->held[t->dst] && !keeps;
            s->held[t->dst] &= keeps;
        }
    }
}

/* ---- sums that are too large for f32 ---- */

/* Up to it double words are exact, as their parts are at most 2^24, and so are the sums of what is cut off these; and an i32 holds their halves. */
#define WIDE (0x1p31 - 0x1p16)

static bool is_result(const Integers *s, BufRef b)
{
    const Buffer *x = &s->from->bufs.at[b];
    bool word = x->dtype == DTYPE_I32 || x->dtype == DTYPE_I64;
    return x->param >= 0 && word && s->from->args.at[x->param].role == ARG_RESULT;
}

/* How many terms of a sum f32 adds up exactly; 0: none. */
static int64_t exact_terms(const Integers *s, const Stmt *t)
{
    Interval v = interval_of(&s->iv, t->value);
    double size = fmax(fabs(v.lo), fabs(v.hi));
    return size > INTEGERS_EXACT ? 0 : (int64_t)(INTEGERS_EXACT / fmax(size, 1));
}

/* Finds sums, each made by one statement at once, that only casts to f32 read: those round to nearest, as a double word does. Or nothing does:
 * they are results. */
static void find_wide(Integers *s)
{
    const Kernel *k = s->from;
    for (BufRef b = 0; b < k->bufs.n; b++) {
        Interval v = s->iv.buf[b];
        bool wide = is_integer(s, b) && (!is_kept(s, b) || is_result(s, b)) && !fits(v) &&
                    v.lo >= -WIDE && v.hi <= WIDE;
        StmtWalk w;
        uint32_t writers = 0, reads = 0, casts = 0;
        for (const Stmt *t = tile_first(&w, k->body, k->n_body); wide && t != NULL;
             t = tile_next(&w)) {
            ExprWalk x;
            for (const Expr *e = expr_first(&x, t->value); e != NULL; e = expr_next(&x)) {
                reads += expr_buffer(e) == b;
                casts += e->kind == EXPR_OP && e->op == OP_CAST && e->dtype == DTYPE_F32 &&
                         e->arg[0]->kind == EXPR_LOAD && e->arg[0]->buf == b;
            }
            writers += t->dst == b;
            wide = t->dst != b || (t->fold == OP_SUM && t->scan == 0 && t->begins &&
                                   t->n_first == 0 && exact_terms(s, t) > 0);
        }
        s->wide[b] = wide && writers == 1 && reads == (is_kept(s, b) ? 0 : casts);
        if (s->wide[b] && !is_kept(s, b)) {
            s->to->bufs.at[b].dtype = DTYPE_F64;
        }
    }
}

static bool is_wide_load(const Integers *s, const Expr *e)
{
    return e->kind == EXPR_LOAD && s->wide[e->buf];
}

static const Expr *refuse_range(Integers *s, Interval v)
{
    double most = fmax(fabs(v.lo), fabs(v.hi));
    return refuse(s, most < 1e18
                         ? str_format(s->arena,
                                      "whole numbers beyond 2^24, which f32 does not hold "
                                      "(one here may be %.0f)",
                                      most)
                         : "whole numbers beyond 2^24, which f32 does not hold (nothing "
                           "bounds one here)");
}

/* An f32 that is read several times: made by a statement before this one, over the indices that it has. */
static const Expr *made_before(Integers *s, const Expr *e)
{
    const Stmt *now = s->now;
    if (e->kind != EXPR_OP || (e->op == OP_CAST && e->arg[0]->kind != EXPR_OP)) {
        return e;
    }
    TileIndex *index = ARENA_ARRAY(s->arena, (size_t)now->n_index + 1, TileIndex);
    Affine *at = ARENA_ARRAY(s->arena, (size_t)now->n_index + 1, Affine);
    Dim *extent = ARENA_ARRAY(s->arena, (size_t)now->n_index + 1, Dim);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < now->n_index; i++) {
        VarRef v = now->index[i].var;
        const Range *r = &now->index[i].range;
        if (!expr_uses(s->to, e, v)) {
            continue;
        }
        for (uint32_t k = 0; k < now->n_index; k++) {
            if (affine_uses(r->start, now->index[k].var)) {
                return e;
            }
        }
        int64_t most =
            r->clipped ? r->limit.n : r->span; /* a clipped one without a start begins at 0 */
        extent[rank] = dim_fixed(r->span > 0 && r->span < most ? r->span : most);
        index[rank] = now->index[i];
        at[rank++] = affine_add(s->arena, affine_var(s->arena, v), -1, r->start);
    }
    BufRef block =
        kernel_buffer(s->to, &s->ctx->syms, "t", DTYPE_F32, SPACE_TILE, rank, extent);
    s->to->bufs.at[block].span = s->at;
    Stmt *alloc = ARENA_NEW(s->arena, Stmt), *tile = ARENA_NEW(s->arena, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = s->at, .buf = block};
    *tile = (Stmt){.kind = STMT_TILE,
                   .span = s->at,
                   .n_index = rank,
                   .index = index,
                   .dst = block,
                   .at = at,
                   .fold = OP_COPY,
                   .value = e};
    put(s, alloc);
    put(s, tile);
    return expr_load(s->arena, s->to, block, at);
}

static const Expr *quotient(Integers *s, const Expr *e)
{
    const Expr *x = made_before(s, real(s, e->arg[0]));
    const Expr *y = made_before(s, real(s, e->arg[1]));
    const Expr *q = quotient_of(s->arena, e->op, x, y, interval_of(&s->iv, e->arg[0]),
                                interval_of(&s->iv, e->arg[1]));
    return q != NULL ? q
                     : refuse(s, str_format(s->arena, "'%s' of whole numbers beyond 2^22",
                                            op_info(e->op)->name));
}

static const Expr *truncated(Integers *s, const Expr *e)
{
    const Expr *x = made_before(s, cast(s, value(s, e->arg[0]), DTYPE_F32));
    bool is_signed = dtype_lowest(e->dtype) < 0;
    double most = ldexp(1, dtype_info(e->dtype)->fraction),
           last = most < 0x1p24 ? most - 1 : most;
    return quotient_truncated(s->arena, x, interval_of(&s->iv, e->arg[0]),
                              (Interval){is_signed ? -most : 0, last});
}

static const Expr *wrapped(Integers *s, const Expr *e)
{
    const Expr *x = made_before(s, real(s, e->arg[0]));
    return quotient_wrapped(s->arena, x, interval_of(&s->iv, e->arg[0]),
                            dtype_info(e->dtype)->fraction, dtype_lowest(e->dtype) < 0);
}

/* An integer as f32. */
static const Expr *real(Integers *s, const Expr *e)
{
    bool cast_of = e->kind == EXPR_OP && e->op == OP_CAST;
    bool divides = e->kind == EXPR_OP && (e->op == OP_DIV || e->op == OP_MOD);
    if (e->kind == EXPR_OP && !cast_of && !divides && !has(e->op)) {
        return refuse(
            s, str_format(s->arena, "'%s' of %s", op_info(e->op)->name, dtype_name(e->dtype)));
    }
    if (!is_held(s, e)) {
        Interval of = interval_of(&s->iv, is_wrapped(s, e) ? e->arg[0] : e);
        return refuse_range(s, fits(of) ? interval_of(&s->iv, e) : of);
    }
    if (is_wrapped(s, e)) {
        return wrapped(s, e);
    }
    if (is_truncated(e) || divides) {
        return divides ? quotient(s, e) : truncated(s, e);
    }
    if (e->kind == EXPR_CONST) {
        return expr_const(s->arena, number_cast(e->value, DTYPE_F32));
    }
    if (e->kind == EXPR_LOAD) {
        return load(s, e->buf, e->at);
    }
    if (is_position(s, e)) {
        return cast(s, e, DTYPE_F32);
    }
    if (cast_of) {
        return cast(s, real_or_bool(s, e->arg[0]), DTYPE_F32);
    }
    return op(s, e, DTYPE_F32, real_or_bool);
}

/* Any other value, with the integers in it. */
static const Expr *value(Integers *s, const Expr *e)
{
    if (e->kind == EXPR_OP && e->op == OP_GATHER) {
        return refuse(s, "gather here");
    }
    if (dtype_is_int(e->dtype)) {
        return real(s, e);
    }
    if (e->kind != EXPR_OP) {
        return e;
    }
    bool compares = e->n_args == 2 && dtype_is_int(e->arg[0]->dtype);
    if (compares && is_position(s, e->arg[0]) && is_position(s, e->arg[1])) {
        return e;
    }
    const Expr *x = e->arg[0];
    if (e->op == OP_CAST && is_wide_load(s, x)) {
        return cast(s, expr_load(s->arena, s->to, x->buf, x->at), e->dtype);
    }
    if (e->op == OP_CAST && dtype_is_int(x->dtype)) {
        return is_position(s, x) ? e : cast(s, real(s, x), e->dtype);
    }
    return op(s, e, e->dtype, value);
}

/* ---- statements ---- */

static Stmt *stmt_of(Integers *s, const Stmt *old, BufRef dst, const Affine *at, const Expr *v)
{
    Stmt *out = arena_copy(s->arena, old, sizeof *old);
    out->dst = dst;
    out->at = at;
    out->value = v;
    return out;
}

/* Stores an f32 into an argument of integers; of i64 also the word that has the sign. */
static void store(Integers *s, const Stmt *old, BufRef buf, const Affine *at, const Expr *v)
{
    if (!is_words(s, buf)) {
        put(s, stmt_of(s, old, buf, at, cast(s, v, s->to->bufs.at[buf].dtype)));
        return;
    }
    const Expr *zero = expr_const(s->arena, number_real(DTYPE_F32, 0)), *high = zero;
    if (s->iv.buf[buf].lo < 0) {
        const Expr *two[2] = {v, zero};
        const Expr *below = expr_op(s->arena, OP_LT, DTYPE_BOOL, 2, two);
        const Expr *three[3] = {below, expr_const(s->arena, number_real(DTYPE_F32, -1)), zero};
        high = expr_op(s->arena, OP_SELECT, DTYPE_F32, 3, three);
    }
    put(s, stmt_of(s, old, buf, at_word(s, buf, at, 1), cast(s, high, DTYPE_I32)));
    put(s, stmt_of(s, old, buf, at_word(s, buf, at, 0), cast(s, v, DTYPE_I32)));
}

/* In `@y[i] = add(@y[i], v)` the sum lies where all of them do, which is known; the load may be of any. */
static const Expr *stored_value(Integers *s, const Stmt *old)
{
    const Expr *added = interval_added(s->from, old);
    if (old->fold != OP_COPY || added == NULL || !is_integer(s, old->dst)) {
        return value(s, old->value);
    }
    const Expr *two[2] = {load(s, old->dst, old->at), real(s, added)};
    return expr_op(s->arena, OP_ADD, DTYPE_F32, 2, two);
}

static void put_tile(Integers *s, const Stmt *old)
{
    s->now = old;
    s->at = old->span;
    if (old->value->kind == EXPR_OP && old->value->op == OP_GATHER) {
        put(s, arena_copy(s->arena, old, sizeof *old));
        return;
    }
    const Expr *v = stored_value(s, old);
    bool held = (s->held[old->dst] && !is_words(s, old->dst)) || s->wide[old->dst];
    if (is_integer(s, old->dst) && !held && !fits(s->iv.buf[old->dst])) {
        (void)refuse_range(s, s->iv.buf[old->dst]);
    }
    if (!is_integer(s, old->dst)) {
        put(s, stmt_of(s, old, old->dst, old->at, v));
    } else if (s->block[old->dst] != BUF_NONE) {
        DType t = s->to->bufs.at[s->block[old->dst]].dtype;
        Stmt *made = stmt_of(s, old, s->block[old->dst], old->at, cast(s, v, t));
        made->exact = s->wide[old->dst] ? exact_terms(s, old) : 0;
        put(s, made);
    } else if (is_kept(s, old->dst)) {
        store(s, old, old->dst, old->at, v);
    } else {
        Stmt *made =
            stmt_of(s, old, old->dst, old->at, cast(s, v, s->to->bufs.at[old->dst].dtype));
        made->exact = s->wide[old->dst] ? exact_terms(s, old) : 0;
        put(s, made);
    }
}

static void put_all(Integers *s, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n && !s->failed; i++) {
        const Stmt *old = body[i];
        if (old->kind == STMT_TILE) {
            put_tile(s, old);
        } else if (old->kind == STMT_ALLOC) {
            put(s, arena_copy(s->arena, old, sizeof *old));
        } else {
            Stmt *out = arena_copy(s->arena, old, sizeof *old);
            uint32_t outer = s->body.n;
            put_all(s, old->body, old->n_body);
            out->n_body = s->body.n - outer;
            out->body =
                arena_copy(s->arena, s->body.at + outer, out->n_body * sizeof *out->body);
            s->body.n = outer;
            put(s, out);
        }
    }
}

/* ---- arguments that are folded into ---- */

/* All elements of a buffer, as a statement that has its indices alone. */
static Stmt over_all(Integers *s, const Buffer *b)
{
    TileIndex *index = ARENA_ARRAY(s->arena, (size_t)b->rank + 1, TileIndex);
    Affine *at = ARENA_ARRAY(s->arena, (size_t)b->rank + 1, Affine);
    for (uint32_t d = 0; d < b->rank; d++) {
        VarRef v = kernel_var(s->to, &s->ctx->syms, "i", false);
        index[d] = (TileIndex){.var = v, .range = range_whole(b->extent[d])};
        at[d] = affine_var(s->arena, v);
    }
    return (Stmt){.kind = STMT_TILE,
                  .span = b->span,
                  .n_index = b->rank,
                  .index = index,
                  .at = at,
                  .fold = OP_COPY};
}

static void find_folded(Integers *s)
{
    StmtWalk w;
    for (const Stmt *t = tile_first(&w, s->from->body, s->from->n_body); t != NULL;
         t = tile_next(&w)) {
        const Buffer *b = &s->from->bufs.at[t->dst];
        if (b->param >= 0 && is_integer(s, t->dst) && t->fold != OP_COPY &&
            s->block[t->dst] == BUF_NONE) {
            BufRef block = kernel_buffer(s->to, &s->ctx->syms, b->name->text,
                                         s->wide[t->dst] ? DTYPE_F64 : DTYPE_F32, SPACE_TILE,
                                         b->rank, b->extent);
            s->to->bufs.at[block].span = b->span;
            s->to->bufs.at[block].may_spill = true;
            s->block[t->dst] = block;
        }
    }
}

static void begin_folded(Integers *s)
{
    for (BufRef b = 0; b < s->from->bufs.n; b++) {
        if (s->block[b] == BUF_NONE) {
            continue;
        }
        const Buffer *buf = &s->from->bufs.at[b];
        Stmt *alloc = ARENA_NEW(s->arena, Stmt);
        *alloc = (Stmt){.kind = STMT_ALLOC, .span = buf->span, .buf = s->block[b]};
        put(s, alloc);
        if (s->from->args.at[buf->param].role == ARG_INOUT) {
            Stmt all = over_all(s, buf);
            const Affine *at = is_words(s, b) ? at_word(s, b, all.at, 0) : all.at;
            put(s, stmt_of(s, &all, s->block[b], all.at,
                           cast(s, expr_load(s->arena, s->to, b, at), DTYPE_F32)));
        }
    }
}

/* All elements of a block that is allocated here. */
static const Expr *put_block(Integers *s, const Stmt *all, DType t, const Expr *v)
{
    const Buffer *like = &s->from->bufs.at[all->dst];
    BufRef block =
        kernel_buffer(s->to, &s->ctx->syms, "word", t, SPACE_TILE, like->rank, like->extent);
    s->to->bufs.at[block].span = like->span;
    Stmt *alloc = ARENA_NEW(s->arena, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = like->span, .buf = block};
    put(s, alloc);
    put(s, stmt_of(s, all, block, all->at, v));
    return expr_load(s->arena, s->to, block, all->at);
}

static const Expr *of_two(Integers *s, Op op, DType t, const Expr *x, const Expr *y)
{
    const Expr *both[2] = {x, y};
    return expr_op(s->arena, op, t, 2, both);
}

/* A double word as an integer: what is nearest to it in f32 and the rest give its halves of 16 bits, and machines add up two i32. */
static void store_wide(Integers *s, Stmt all, BufRef buf)
{
    const Expr *half = expr_const(s->arena, number_real(DTYPE_F32, 0x1p16));
    const Expr *zero = expr_const(s->arena, number_real(DTYPE_F32, 0));
    const Expr *sum = expr_load(s->arena, s->to, s->block[buf], all.at);
    all.dst = buf;
    const Expr *near = put_block(s, &all, DTYPE_F32, cast(s, sum, DTYPE_F32));
    const Expr *rest = put_block(s, &all, DTYPE_F64,
                                 of_two(s, OP_SUB, DTYPE_F64, sum, cast(s, near, DTYPE_F64)));
    const Expr *high = put_block(s, &all, DTYPE_F32, quotient_nearest(s->arena, near, 0x1p16));
    const Expr *low =
        of_two(s, OP_SUB, DTYPE_F32, near, of_two(s, OP_MUL, DTYPE_F32, high, half));
    low = put_block(s, &all, DTYPE_F32,
                    of_two(s, OP_ADD, DTYPE_F32, low, cast(s, rest, DTYPE_F32)));
    const Expr *word =
        of_two(s, OP_ADD, DTYPE_I32,
               of_two(s, OP_MUL, DTYPE_I32, cast(s, high, DTYPE_I32), cast(s, half, DTYPE_I32)),
               cast(s, low, DTYPE_I32));
    if (is_words(s, buf)) {
        const Expr *below = of_two(s, OP_LT, DTYPE_BOOL, near, zero);
        const Expr *three[3] = {below, expr_const(s->arena, number_real(DTYPE_F32, -1)), zero};
        const Expr *sign = expr_op(s->arena, OP_SELECT, DTYPE_F32, 3, three);
        put(s, stmt_of(s, &all, buf, at_word(s, buf, all.at, 1), cast(s, sign, DTYPE_I32)));
        put(s, stmt_of(s, &all, buf, at_word(s, buf, all.at, 0), word));
    } else {
        put(s, stmt_of(s, &all, buf, all.at, word));
    }
}

static void end_folded(Integers *s)
{
    for (BufRef b = 0; b < s->from->bufs.n; b++) {
        if (s->block[b] != BUF_NONE && s->wide[b]) {
            store_wide(s, over_all(s, &s->from->bufs.at[b]), b);
        } else if (s->block[b] != BUF_NONE) {
            Stmt all = over_all(s, &s->from->bufs.at[b]);
            store(s, &all, b, all.at, expr_load(s->arena, s->to, s->block[b], all.at));
        }
    }
}

/* ---- the kernel ---- */

static bool has_integers(const Kernel *k)
{
    StmtWalk w;
    ExprWalk v;
    bool any = false;
    for (BufRef b = 0; b < k->bufs.n; b++) {
        any |= dtype_is_int(k->bufs.at[b].dtype);
    }
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        for (const Expr *e = expr_first(&v, s->value); e != NULL; e = expr_next(&v)) {
            any |= e->kind == EXPR_OP && dtype_is_int(e->dtype);
        }
    }
    return any;
}

static void change_buffers(Integers *s)
{
    Kernel *to = s->to;
    to->bufs.at = arena_copy(s->arena, to->bufs.at, to->bufs.n * sizeof *to->bufs.at);
    to->args.at = arena_copy(s->arena, to->args.at, to->args.n * sizeof *to->args.at);
    for (BufRef i = 0; i < to->bufs.n; i++) {
        Buffer *b = &to->bufs.at[i];
        if (!dtype_is_int(b->dtype)) {
            continue;
        }
        if (!is_kept(s, i)) {
            b->dtype = held_in(b->dtype);
        } else if (dtype_is_storage(b->dtype)) {
            b->stored = b->dtype;
            b->dtype = held_in(b->dtype);
        } else if (b->dtype == DTYPE_I64) {
            arg_set_whole(s->arena, &to->args.at[b->param], DTYPE_I64, b->rank);
            b->dtype = DTYPE_I32;
            buffer_set_pairs(s->arena, b);
        }
    }
}

Kernel *lower_integers(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    Integers s = {.ctx = ctx, .arena = arena, .target = target, .from = k};
    if (k->dims.list.n > 0 || !has_integers(k)) {
        return (Kernel *)(uintptr_t)k;
    }
    s.to = kernel_like(arena, k);
    change_buffers(&s);
    s.block = ARENA_ARRAY(arena, k->bufs.n, BufRef);
    for (BufRef b = 0; b < k->bufs.n; b++) {
        s.block[b] = BUF_NONE;
    }
    intervals_find(&s.iv, arena, k, INTEGERS_GIVEN);
    s.held = ARENA_ARRAY(arena, k->bufs.n, bool);
    find_held(&s);
    s.wide = ARENA_ARRAY(arena, k->bufs.n, bool);
    find_wide(&s);
    find_folded(&s);
    begin_folded(&s);
    put_all(&s, k->body, k->n_body);
    end_folded(&s);
    s.to->body = s.body.at;
    s.to->n_body = s.body.n;
    return s.failed ? NULL : kernel_numbered(arena, s.to);
}
