/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with double words: buffers, arguments and statements. See double_word.h. */
#include <math.h>

#include "tile/double_word.h"

void words_refuse(Words *w, const char *why)
{
    if (w->why == NULL) {
        w->why = why;
        w->where = w->now->span;
    }
}

/* ---- making statements ---- */

static void words_emit(Words *w, Stmt *s)
{
    vec_push(w->arena, w->out, s);
}

static void words_allocate(Words *w, BufRef buf, Span span)
{
    Stmt *s = ARENA_NEW(w->arena, Stmt);
    *s = (Stmt){.kind = STMT_ALLOC, .span = span, .buf = buf};
    words_emit(w, s);
}

/* A tile of f32, allocated here. */
static BufRef words_tile(Words *w, const char *hint, uint32_t rank, const Dim *extent)
{
    BufRef buf = kernel_buffer(w->to, &w->ctx->syms, hint, DTYPE_F32, SPACE_TILE, rank, extent);
    w->to->bufs.at[buf].span = w->now->span;
    words_allocate(w, buf, w->now->span);
    return buf;
}

void words_set(Words *w, uint32_t n, const TileIndex *index, BufRef dst, const Affine *at,
               Op fold, const Expr *value)
{
    Stmt *s = ARENA_NEW(w->arena, Stmt);
    *s = (Stmt){.kind = STMT_TILE,
                .span = w->now->span,
                .name = w->now->name,
                .n_index = n,
                .index = n == 0 ? NULL : arena_copy(w->arena, index, n * sizeof *index),
                .dst = dst,
                .at = at,
                .fold = fold,
                .begins = fold != OP_COPY,
                .value = value};
    words_emit(w, s);
}

int64_t words_count(const TileIndex *index)
{
    const Range *r = &index->range;
    int64_t left = r->clipped || r->span == 0 ? r->limit.n : INT64_MAX;
    left -= r->start.n == 0 && left < INT64_MAX ? r->start.base : 0;
    return r->span > 0 && r->span < left ? r->span : left;
}

BufRef words_tile_of(Words *w, const char *hint, uint32_t n, const TileIndex *index)
{
    Dim *extent = ARENA_ARRAY(w->arena, n + 1, Dim);
    for (uint32_t i = 0; i < n; i++) {
        extent[i] = dim_fixed(words_count(&index[i]));
    }
    return words_tile(w, hint, n, extent);
}

const Affine *words_at(Words *w, uint32_t n, const TileIndex *index)
{
    Affine *at = ARENA_ARRAY(w->arena, n + 1, Affine);
    for (uint32_t i = 0; i < n; i++) {
        at[i] =
            affine_add(w->arena, affine_var(w->arena, index[i].var), -1, index[i].range.start);
    }
    return at;
}

TileIndex words_open(Words *w, TileIndex index, int64_t step)
{
    CHECK(w->depth < LOOP_DEPTH_LIMIT);
    const char *name = w->to->vars.at[index.var].name->text;
    VarRef v = kernel_var(w->to, &w->ctx->syms, name, true);
    Stmt *loop = ARENA_NEW(w->arena, Stmt);
    *loop = (Stmt){.kind = STMT_FOR,
                   .span = w->now->span,
                   .var = v,
                   .range = index.range,
                   .step = step,
                   .part = FOR_ALL};
    w->open[w->depth].loop = loop;
    w->open[w->depth].list = (Stmts){0};
    w->open[w->depth].around = w->out;
    w->out = &w->open[w->depth++].list;
    bool clipped = index.range.span == 0 || index.range.clipped;
    index.range =
        (Range){affine_var(w->arena, v), step, clipped && step > 1, index.range.limit};
    return index;
}

void words_close(Words *w, uint32_t depth)
{
    while (w->depth > depth) {
        w->depth--;
        Stmt *loop = w->open[w->depth].loop;
        loop->body = w->open[w->depth].list.at;
        loop->n_body = w->open[w->depth].list.n;
        w->out = w->open[w->depth].around;
        words_emit(w, loop);
    }
}

/* ---- double words ---- */

DoubleWord words_of(Words *w, BufRef buf, const Affine *at)
{
    return (DoubleWord){w->hi[buf], w->lo[buf], at};
}

DoubleWord words_new(Words *w, uint32_t n, const TileIndex *index)
{
    BufRef hi = words_tile_of(w, "hi", n, index), lo = words_tile_of(w, "lo", n, index);
    return (DoubleWord){hi, lo, words_at(w, n, index)};
}

const Expr *words_number(Words *w, double x)
{
    return expr_const(w->arena, number_cast(number_real(DTYPE_F64, x), DTYPE_F32));
}

void words_zero(Words *w, uint32_t n, const TileIndex *index, DoubleWord x)
{
    words_set(w, n, index, x.hi, x.at, OP_COPY, words_number(w, 0));
    words_set(w, n, index, x.lo, x.at, OP_COPY, words_number(w, 0));
}

void words_begin(Words *w, uint32_t n, const TileIndex *index, DoubleWord x, const Expr *hi,
                 const Expr *lo)
{
    words_set(w, n, index, x.hi, x.at, OP_COPY, hi);
    words_set(w, n, index, x.lo, x.at, OP_COPY, lo == NULL ? words_number(w, 0) : lo);
}

const Expr *words_load(Words *w, BufRef buf, const Affine *at)
{
    return expr_load(w->arena, w->to, buf, at);
}

const Expr *words_two(Words *w, Op op, const Expr *x, const Expr *y)
{
    const Expr *const arg[2] = {x, y};
    return expr_op(w->arena, op, DTYPE_F32, 2, arg);
}

void words_add(Words *w, uint32_t n, const TileIndex *index, DoubleWord x, const Expr *hi,
               const Expr *lo)
{
    const Affine *at = words_at(w, n, index);
    BufRef sum = words_tile_of(w, "s", n, index);
    const Expr *old = words_load(w, x.hi, x.at), *s = words_load(w, sum, at);
    words_set(w, n, index, sum, at, OP_COPY, words_two(w, OP_ADD, old, hi));
    const Expr *b = words_two(w, OP_SUB, s, old);
    const Expr *error =
        words_two(w, OP_ADD, words_two(w, OP_SUB, old, words_two(w, OP_SUB, s, b)),
                  words_two(w, OP_SUB, hi, b));
    error = lo == NULL ? error : words_two(w, OP_ADD, error, lo);
    BufRef e = words_tile_of(w, "e", n, index);
    words_set(w, n, index, e, at, OP_COPY, error);
    words_set(w, n, index, x.lo, x.at, OP_COPY,
              words_two(w, OP_ADD, words_load(w, x.lo, x.at), words_load(w, e, at)));
    words_set(w, n, index, x.hi, x.at, OP_COPY,
              words_two(w, OP_ADD, old, hi)); /* s, in place */
}

/* The two words of an element of a result. */
static void deliver_result(Words *w, BufRef buf, uint32_t n, const TileIndex *index,
                           const Affine *at, DoubleWord x)
{
    uint32_t rank = w->from->bufs.at[buf].rank;
    for (int64_t word = 0; word < 2; word++) {
        const Affine *to = pair_at(w->arena, rank, at, affine_const(word));
        words_set(w, n, index, buf, to, OP_COPY, words_load(w, word == 0 ? x.hi : x.lo, x.at));
    }
}

void words_deliver(Words *w, uint32_t n, const TileIndex *index, DoubleWord x)
{
    const Stmt *s = w->now;
    if (w->direct[s->dst]) {
        deliver_result(w, s->dst, n, index, s->at, x);
        return;
    }
    DoubleWord to = words_of(w, s->dst, s->at);
    words_set(w, n, index, to.hi, to.at, OP_COPY, words_load(w, x.hi, x.at));
    words_set(w, n, index, to.lo, to.at, OP_COPY, words_load(w, x.lo, x.at));
}

/* ---- values ---- */

/* Of a value that is no term of a sum: f32, perhaps with numbers in it that are double words. */
static const Expr *narrow_value(Words *w, const Expr *e)
{
    if (e->kind != EXPR_OP) {
        if (e->dtype == DTYPE_F64) {
            words_refuse(w, "it is no sum, and is computed in f64");
        }
        return e;
    }
    const Expr *x = e->arg[0];
    if (e->op == OP_CAST && x->dtype == DTYPE_F64) {
        if (x->kind != EXPR_LOAD || !w->wide[x->buf] || w->direct[x->buf]) {
            words_refuse(w, "it is computed in f64, of more than one sum");
            return e;
        }
        return expr_cast(w->arena, words_term(w, x), e->dtype);
    }
    const Expr **arg = ARENA_ARRAY(w->arena, e->n_args, const Expr *);
    bool same = true;
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = narrow_value(w, e->arg[i]);
        same &= arg[i] == e->arg[i];
    }
    if (e->dtype == DTYPE_F64) {
        words_refuse(w, "it is no sum, and is computed in f64");
    }
    return same ? e : expr_op(w->arena, e->op, e->dtype, e->n_args, arg);
}

const Expr *words_term(Words *w, const Expr *e)
{
    if (e->dtype != DTYPE_F64) {
        return narrow_value(w, e);
    }
    if (e->kind == EXPR_CONST) {
        return expr_const(w->arena, number_cast(e->value, DTYPE_F32));
    }
    if (e->kind == EXPR_LOAD && w->wide[e->buf]) {
        DoubleWord of = words_of(w, e->buf, e->at);
        return words_two(w, OP_ADD, words_load(w, of.hi, of.at), words_load(w, of.lo, of.at));
    }
    if (e->kind == EXPR_LOAD) {
        return words_load(w, e->buf, e->at);
    }
    bool cast = e->kind == EXPR_OP && e->op == OP_CAST;
    if (!cast && (e->kind != EXPR_OP || (e->op != OP_MUL && e->op != OP_NEG))) {
        words_refuse(w, "terms of a sum are computed in f32, and this one asks for f64: only "
                        "products of f32 may be converted");
        return e;
    }
    const Expr *arg[2] = {NULL, NULL};
    for (uint32_t i = 0; i < e->n_args; i++) {
        arg[i] = words_term(w, e->arg[i]);
    }
    return cast ? expr_cast(w->arena, arg[0], DTYPE_F32)
                : expr_op(w->arena, e->op, DTYPE_F32, e->n_args, arg);
}

/* ---- statements ---- */

static void fill_words(Words *w)
{
    const Stmt *s = w->now;
    DoubleWord to = words_of(w, s->dst, s->at);
    double x = s->value->value.re;
    double hi = number_cast(s->value->value, DTYPE_F32).re;
    words_set(w, s->n_index, s->index, to.hi, to.at, OP_COPY, words_number(w, x));
    words_set(w, s->n_index, s->index, to.lo, to.at, OP_COPY, words_number(w, x - hi));
}

static void map_words(Words *w)
{
    const Stmt *s = w->now;
    uint32_t sums = 0;
    if (s->value->kind == EXPR_LOAD && w->wide[s->value->buf]) {
        words_deliver(w, s->n_index, s->index, words_of(w, s->value->buf, s->value->at));
        return;
    }
    DoubleWord x = words_new(w, s->n_index, s->index);
    words_zero(w, s->n_index, s->index, x);
    words_add_linear(w, x, s->value, 1.0, &sums);
    if (sums == 0) {
        words_refuse(w, "it is no sum");
    }
    words_deliver(w, s->n_index, s->index, x);
}

static void tile_words(Words *w, const Stmt *s)
{
    w->now = s;
    if (!w->wide[s->dst]) {
        Stmt *copy = arena_copy(w->arena, s, sizeof *s);
        copy->value = w->narrow[s->dst] ? words_term(w, s->value) : narrow_value(w, s->value);
        words_emit(w, copy);
    } else if (s->fold == OP_COPY && s->value->kind == EXPR_CONST) {
        fill_words(w);
    } else if (s->fold == OP_COPY) {
        map_words(w);
    } else if (s->fold != OP_SUM || s->scan != 0) {
        words_refuse(w, s->scan != 0 ? "running sums are in f32" : "it is no sum");
    } else {
        words_sum(w);
    }
}

static void allocate_words(Words *w, BufRef buf, Span span)
{
    const Buffer b = w->from->bufs.at[buf];
    Space space = b.space == SPACE_WORKSPACE ? SPACE_WORKSPACE : SPACE_TILE;
    for (int word = 0; word < 2; word++) {
        const char *hint = str_format(w->arena, "%s_%s", b.name->text, word ? "lo" : "hi");
        BufRef made =
            kernel_buffer(w->to, &w->ctx->syms, hint, DTYPE_F32, space, b.rank, b.extent);
        w->to->bufs.at[made].span = b.span;
        w->to->bufs.at[made].may_spill = b.may_spill;
        (word ? w->lo : w->hi)[buf] = made;
        words_allocate(w, made, span);
    }
}

static void body_words(Words *w, Stmt *const *body, uint32_t n);

/* What a statement of the kernel's own body becomes stays in one device program, but for a loop over rows of a result. */
static void together(Words *w, const Stmt *s)
{
    Stmts list = {0}, *around = w->out;
    if (around != w->root || !w->wide[s->dst]) {
        tile_words(w, s);
        return;
    }
    w->out = &list;
    tile_words(w, s);
    w->out = around;
    if (list.n == 1) {
        words_emit(w, list.at[0]);
    } else if (list.n > 1) {
        Stmt *block = ARENA_NEW(w->arena, Stmt);
        *block = (Stmt){.kind = STMT_BLOCK, .span = s->span, .body = list.at, .n_body = list.n};
        words_emit(w, block);
    }
}

static void inside_words(Words *w, const Stmt *s)
{
    Stmts list = {0}, *around = w->out;
    Stmt *copy = arena_copy(w->arena, s, sizeof *s);
    w->out = &list;
    body_words(w, s->body, s->n_body);
    w->out = around;
    copy->body = list.at;
    copy->n_body = list.n;
    words_emit(w, copy);
}

/* The one statement of the loop that adds to a number, which is 0 before; null: there are others, or none. */
static const Stmt *find_late(const Words *w, const Stmt *fill, const Stmt *loop)
{
    if (fill->kind != STMT_TILE || loop->kind != STMT_FOR || !w->wide[fill->dst] ||
        w->from->bufs.at[fill->dst].rank > 0 || fill->fold != OP_COPY ||
        fill->value->kind != EXPR_CONST || fabs(fill->value->value.re) > 0) {
        return NULL;
    }
    const Stmt *found = NULL;
    uint32_t uses = 0;
    StmtWalk walk;
    for (const Stmt *s = tile_first(&walk, loop->body, loop->n_body); s != NULL;
         s = tile_next(&walk)) {
        found = s->dst == fill->dst ? s : found;
        uses += (s->dst == fill->dst) + expr_count_loads(s->value, fill->dst);
    }
    bool adds = uses == 1 && found != NULL && found->fold == OP_SUM && !found->begins;
    return adds && found->value->kind != EXPR_LOAD ? found : NULL;
}

/* The number is made behind the loop. */
static void late_words(Words *w, const Stmt *fill, const Stmt *loop, const Stmt *late)
{
    Stmts list = {0}, *around = w->out;
    w->out = &list;
    w->lanes.n = 0;
    w->late = late;
    inside_words(w, loop);
    w->late = NULL;
    w->out = around;
    w->now = fill;
    for (uint32_t i = 0; i < w->lanes.n; i++) {
        const Lanes *l = &w->lanes.at[i];
        words_allocate(w, l->x.hi, fill->span);
        words_allocate(w, l->x.lo, fill->span);
        words_zero(w, l->n, l->index, l->x);
    }
    words_emit(w, list.at[0]);
    w->now = late;
    words_fold_lanes(w, words_of(w, fill->dst, fill->at));
}

static void body_words(Words *w, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n && w->why == NULL; i++) {
        const Stmt *s = body[i];
        const Stmt *late = i + 1 < n ? find_late(w, s, body[i + 1]) : NULL;
        if (late != NULL) {
            late_words(w, s, body[++i], late);
        } else if (s->kind == STMT_TILE) {
            together(w, s);
        } else if (s->kind == STMT_ALLOC && w->wide[s->buf]) {
            allocate_words(w, s->buf, s->span);
        } else if (s->kind == STMT_ALLOC) {
            words_emit(w, arena_copy(w->arena, s, sizeof *s));
        } else {
            inside_words(w, s);
        }
    }
}

/* ---- arguments ---- */

static uint32_t count_uses(const Kernel *k, BufRef buf, const Stmt **writer)
{
    uint32_t n = 0;
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        n += s->dst == buf;
        n += expr_count_loads(s->value, buf);
        *writer = s->dst == buf ? s : *writer;
    }
    return n;
}

/* Is an f64 value read by terms of sums alone, which are computed in f32? */
static bool is_of_terms(const Kernel *k, BufRef buf)
{
    bool terms = k->bufs.at[buf].dtype == DTYPE_F64 && k->bufs.at[buf].param < 0, any = false;
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        bool reads = expr_load_of(s->value, buf) != NULL;
        bool sum = k->bufs.at[s->dst].dtype == DTYPE_F64 && s->fold == OP_SUM;
        terms &= !reads || (sum && s->value->kind != EXPR_LOAD);
        any |= reads;
    }
    return terms && any;
}

/* f64 results; false: it has none, or f64 arguments. */
static bool find_wide(Words *w)
{
    const Kernel *k = w->from;
    bool any = false;
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        w->narrow[b] = is_of_terms(k, b);
        w->wide[b] = k->bufs.at[b].dtype == DTYPE_F64 && !w->narrow[b];
        any |= w->wide[b] && k->bufs.at[b].param < 0;
    }
    for (uint32_t i = 0; i < k->args.n; i++) {
        const Arg *a = &k->args.at[i];
        if (w->wide[a->buf] && (a->role != ARG_RESULT || a->whole != DTYPE_NONE)) {
            return false;
        }
        const Stmt *writer = NULL;
        bool one = w->wide[a->buf] && count_uses(k, a->buf, &writer) == 1;
        w->direct[a->buf] = one && writer->n_first == 0 &&
                            (writer->begins || writer->fold == OP_COPY) &&
                            writer->value->kind != EXPR_CONST;
        any |= w->wide[a->buf];
    }
    return any;
}

/* f64[n] as f32[n,2]; a single number as f32[1,2]. */
static void widen_results(Words *w)
{
    Kernel *to = w->to;
    for (uint32_t b = 0; b < to->bufs.n; b++) { /* of others nothing is left but the number */
        to->bufs.at[b].dtype = w->wide[b] || w->narrow[b] ? DTYPE_F32 : to->bufs.at[b].dtype;
    }
    for (uint32_t i = 0; i < to->args.n; i++) {
        Arg *a = &to->args.at[i];
        Buffer *b = &to->bufs.at[a->buf];
        if (!w->wide[a->buf]) {
            continue;
        }
        arg_set_whole(w->arena, a, DTYPE_F64, b->rank);
        buffer_set_pairs(w->arena, b);
    }
}

/* Results that are not stored by the statement that makes them. */
static void flush_results(Words *w)
{
    for (uint32_t i = 0; i < w->from->args.n; i++) {
        BufRef buf = w->from->args.at[i].buf;
        const Buffer *b = &w->from->bufs.at[buf];
        if (!w->wide[buf] || w->direct[buf]) {
            continue;
        }
        const Stmt *writer = NULL;
        (void)count_uses(w->from, buf, &writer);
        w->now = writer;
        TileIndex *index = ARENA_ARRAY(w->arena, b->rank + 1, TileIndex);
        for (uint32_t d = 0; d < b->rank; d++) {
            const char *hint = str_format(w->arena, "w%u", d);
            index[d] = (TileIndex){.var = kernel_var(w->to, &w->ctx->syms, hint, false),
                                   .range = range_whole(b->extent[d])};
        }
        const Affine *at = words_at(w, b->rank, index);
        deliver_result(w, buf, b->rank, index, at, words_of(w, buf, at));
    }
}

/* Words of sums are sums. */
static const bool *sums_with_words(Words *w, const bool *sums)
{
    bool *out = ARENA_ARRAY(w->arena, w->to->bufs.n + 1, bool);
    for (uint32_t b = 0; sums != NULL && b < w->from->bufs.n; b++) {
        out[b] |= sums[b];
        if (w->wide[b] && sums[b]) {
            out[w->hi[b]] = out[w->lo[b]] = true;
        }
    }
    return sums == NULL ? NULL : out;
}

const Kernel *tile_double_words(Ctx *ctx, Arena *arena, const Kernel *k, const bool **sums,
                                const char **why, Span *where)
{
    Stmts list = {0};
    Words w = {.ctx = ctx,
               .arena = arena,
               .from = k,
               .to = kernel_like(arena, k),
               .wide = ARENA_ARRAY(arena, k->bufs.n + 1, bool),
               .narrow = ARENA_ARRAY(arena, k->bufs.n + 1, bool),
               .direct = ARENA_ARRAY(arena, k->bufs.n + 1, bool),
               .hi = ARENA_ARRAY(arena, k->bufs.n + 1, BufRef),
               .lo = ARENA_ARRAY(arena, k->bufs.n + 1, BufRef),
               .root = &list,
               .out = &list};
    *why = NULL;
    if (!find_wide(&w)) {
        return k;
    }
    widen_results(&w);
    for (uint32_t i = 0; i < k->args.n; i++) {
        BufRef buf = k->args.at[i].buf;
        if (w.wide[buf] && !w.direct[buf]) {
            allocate_words(&w, buf, k->bufs.at[buf].span);
        }
    }
    body_words(&w, k->body, k->n_body);
    if (w.why == NULL) {
        flush_results(&w);
    }
    if (w.why != NULL) {
        *why = w.why;
        *where = w.where;
        return k;
    }
    w.to->body = list.at;
    w.to->n_body = list.n;
    *sums = sums_with_words(&w, *sums);
    return w.to;
}
