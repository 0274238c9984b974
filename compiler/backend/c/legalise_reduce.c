/* SPDX-License-Identifier: Apache-2.0 */
/* Folds that are not register tiles of a product. One position of the destination (or a vector
 * of them, side by side) is folded completely before it joins what is there, in one of five
 * ways:
 *
 *   KEPT    a vector along an index of the destination; elements left over one by one. Where
 *           the fold jumps from line to line of memory, a few lines are folded at a time,
 *           along the whole of the vectors' index: memory is read in runs, not in columns
 *   FOLDED  a vector of partial results along a summed index, which are folded last; elements
 *           left over join them
 *   BLOCK   what calls functions that run as vectors is computed for a block of positions, which is then folded
 *   TURNS   a few accumulators that take turns along a summed index, where there are no vectors
 *   SCALAR  one accumulator */
#include "backend/c/legalise.h"

#include "loop/term.h"

typedef enum ReduceWay { WAY_SCALAR, WAY_KEPT, WAY_FOLDED, WAY_BLOCK, WAY_TURNS } ReduceWay;

typedef struct ReducePlan {
    ReduceWay way;
    uint32_t vec; /* KEPT, FOLDED, BLOCK: place of the vector index; TURNS: of the summed one */
    int64_t width;
    uint32_t swept; /* KEPT: place of the summed index that jumps, or NONE */
    int64_t lines;  /* ... folded at a time */
} ReducePlan;

#define FOLD_VECTORS   2    /* partial results hide the latency of additions */
#define FOLD_SHORTEST  2    /* widths a folded index must have */
#define BLOCK          512  /* elements, which stay in the first cache */
#define BLOCK_SHORTEST 32   /* what a block costs beside them is little */
#define TURNS          4    /* accumulators, for the same reason */
#define TURNS_NODES    12   /* of a value that is written out so many times */
#define SWEEP_LINES    8    /* streams of memory that any machine prefetches */
#define SWEEP_WIDTHS   8    /* shorter runs of vectors are no runs of memory */
#define SWEEP_RUN      2048 /* positions of the destination that stay in the first cache */

static bool is_kept(const Legaliser *l, const Stmt *s, uint32_t i)
{
    return access_uses(l->k, s->dst, s->at, s->index[i].var);
}

/* ---- deciding ---- */

/* Lanes of partial results that cut the range evenly as far as its tile goes, two vectors of them if it is long; 0: none do. */
static int64_t plan_width(Range r, int64_t length, DType t)
{
    int64_t width = vector_lanes(t) * FOLD_VECTORS;
    width /= length < width * FOLD_SHORTEST ? FOLD_VECTORS : 1;
    while (r.clipped && r.span > 0 && r.span % width != 0) {
        width /= 2;
    }
    return width * FOLD_VECTORS < vector_lanes(t) ? 0 : width;
}

/* The last summed index, which is innermost, when it is long enough. */
static ReducePlan plan_turns(const Legaliser *l, const Stmt *s, DType t)
{
    ReducePlan plan = {.way = WAY_SCALAR, .vec = NONE, .swept = NONE};
    bool rounded = dtype_is_float(t) || dtype_is_complex(t);
    for (uint32_t i = 0; i < s->n_index; i++) {
        plan.vec = is_kept(l, s, i) ? plan.vec : i;
    }
    const Range *r = plan.vec == NONE ? NULL : &s->index[plan.vec].range;
    bool even = r != NULL &&
                (!r->clipped || r->span % TURNS == 0); /* the rest ends where the span does */
    if (s->fold == OP_SUM && rounded && even &&
        range_typical(l->k, s->index[plan.vec].range) >= TURNS * TURNS &&
        expr_size(s->value, TURNS_NODES) < TURNS_NODES) {
        plan.way = WAY_TURNS;
        plan.width = TURNS;
    }
    return plan;
}

/* Does the value read memory along this index in steps longer than a line? */
static bool jumps(const Legaliser *l, const Stmt *s, VarRef v, VarRef vec)
{
    ExprWalk w;
    for (const Expr *x = expr_first(&w, s->value); x != NULL; x = expr_next(&w)) {
        if (x->kind == EXPR_LOAD && access_uses(l->k, x->buf, x->at, v) &&
            access_is_unit(l->k, x->buf, x->at, vec)) {
            return true;
        }
    }
    return false;
}

/* The last summed index, when it jumps and both it and the vectors' are long. */
static void plan_sweep(const Legaliser *l, const Stmt *s, ReducePlan *p)
{
    uint32_t last = NONE;
    for (uint32_t i = 0; i < s->n_index; i++) {
        last = is_kept(l, s, i) ? last : i;
    }
    const Range *run = &s->index[p->vec].range;
    if (last == NONE || range_typical(l->k, *run) < p->width * SWEEP_WIDTHS ||
        !jumps(l, s, s->index[last].var, s->index[p->vec].var)) {
        return;
    }
    const Range *r = &s->index[last].range;
    int64_t lines = r->span > 0 ? divisor_at_most(r->span, SWEEP_LINES) : SWEEP_LINES;
    if (lines * 2 >= SWEEP_LINES && range_typical(l->k, *r) >= 2 * lines) {
        p->swept = last;
        p->lines = lines;
    }
}

/* Does the value read elements that stand side by side along this index? */
static bool runs_along(const Legaliser *l, const Stmt *s, VarRef v)
{
    ExprWalk w;
    for (const Expr *x = expr_first(&w, s->value); x != NULL; x = expr_next(&w)) {
        if (x->kind == EXPR_LOAD && access_uses(l->k, x->buf, x->at, v)) {
            return true;
        }
    }
    return false;
}

/* What a block holds: the value, as it is before it becomes wider for its sum. */
static const Expr *block_value(const Stmt *s)
{
    const Expr *narrow = expr_uncast(s->value);
    return narrow->dtype == DTYPE_F32 && s->value->dtype == DTYPE_F64 ? narrow : s->value;
}

/* The longest index along which the value's functions run as vectors. */
static void plan_block(const Legaliser *l, const Stmt *s, ReducePlan *p)
{
    const Expr *narrow = block_value(s);
    int64_t best = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        const TileIndex *x = &s->index[i];
        int64_t length = range_typical(l->k, x->range);
        bool kept = is_kept(l, s, i);
        bool unit = !kept || access_is_unit(l->k, s->dst, s->at, x->var);
        int64_t span = x->range.span, most = range_most(x->range);
        int64_t width = most <= BLOCK || span == 0 ? BLOCK : divisor_at_most(span, BLOCK);
        if (length > best && unit && width >= BLOCK_SHORTEST && runs_along(l, s, x->var) &&
            value_has_lanes(l, narrow, narrow->dtype, x)) {
            *p = (ReducePlan){.way = WAY_BLOCK, .vec = i, .width = width, .swept = NONE};
            best = length;
        }
    }
}

static ReducePlan plan_choose(const Legaliser *l, const Stmt *s)
{
    DType t = l->k->bufs.at[s->dst].dtype;
    ReducePlan plan = plan_turns(l, s, t);
    if (!fold_has_vectors(s->fold, t)) {
        return plan;
    }
    int64_t best = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        bool unit = false;
        int64_t length = range_typical(l->k, s->index[i].range);
        int64_t width = plan_width(s->index[i].range, length, t);
        bool kept = is_kept(l, s, i);
        if (width == 0 || !expr_vectorises(l->k, s->value, s->index[i].var, t, &unit) ||
            !unit || length <= best) {
            continue;
        }
        if (kept ? length >= width && access_is_unit(l->k, s->dst, s->at, s->index[i].var)
                 : length >= width * FOLD_SHORTEST) {
            plan = (ReducePlan){kept ? WAY_KEPT : WAY_FOLDED, i, width, NONE, 0};
            best = length;
        }
    }
    if (plan.way == WAY_KEPT) {
        plan_sweep(l, s, &plan);
    } else if (best == 0) {
        plan_block(l, s, &plan);
    }
    return plan;
}

/* ---- doing ---- */

typedef struct Reduce {
    Legaliser *l;
    const Stmt *s;
    DType t;
    Op join; /* how a result comes to its destination: by the fold, or it begins there */
    Subst *subst;
    uint32_t n_subst;
} Reduce;

static void open_range(Reduce *r, VarRef var, Range range)
{
    VarRef v = loop_open(r->l, "x", range, 1, FOR_ALL);
    r->subst[r->n_subst++] = (Subst){var, affine_var(r->l->arena, v)};
}

/* Loops over the kept (or the folded) indices but `skip`; returns how many. */
static uint32_t open_indices(Reduce *r, bool kept, uint32_t skip)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->s->n_index; i++) {
        if (i != skip && is_kept(r->l, r->s, i) == kept) {
            open_range(r, r->s->index[i].var, r->s->index[i].range);
            n++;
        }
    }
    return n;
}

static void close_indices(Reduce *r, uint32_t n)
{
    for (; n > 0; n--) {
        loop_close(r->l);
        r->n_subst--;
    }
}

static const Affine *dst_at(Reduce *r)
{
    return access_subst(r->l->arena, r->l->k->bufs.at[r->s->dst].rank, r->s->at, r->subst,
                        r->n_subst);
}

static const Expr *value_at(Reduce *r)
{
    return expr_subst(r->l->arena, r->l->k, r->s->value, r->subst, r->n_subst);
}

static const Expr *neutral(Reduce *r)
{
    return expr_const(r->l->arena, op_neutral(r->s->fold, r->t));
}

/* An accumulator for one position: what is left of the statement's indices is folded into it. */
static void scalar_emit(Reduce *r, uint32_t n, const TileIndex *rest)
{
    Legaliser *l = r->l;
    BufRef acc = buffer_alloc(l, "s", r->t, SPACE_ACC, 0, NULL);
    tile_add(l, 0, NULL, acc, NULL, OP_COPY, neutral(r));
    tile_add(l, n, rest, acc, NULL, r->s->fold, value_at(r));
    tile_add(l, 0, NULL, r->s->dst, dst_at(r), r->join, load_at(l, acc, 0, NULL));
}

/* The folded indices but `skip`, as local indices. */
static uint32_t folded_indices(const Reduce *r, uint32_t skip, TileIndex *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->s->n_index; i++) {
        if (i != skip && !is_kept(r->l, r->s, i)) {
            out[n++] = r->s->index[i];
        }
    }
    return n;
}

static Range vector_range(Affine start, int64_t width)
{
    return (Range){.start = start, .span = width, .clipped = false, .limit = dim_fixed(0)};
}

/* What the `rest` loop at `start` leaves: fewer than `width` positions. */
static Range left_range(const Range *whole, Affine start, int64_t width)
{
    Range left = range_at(start, width, whole);
    if (!whole->clipped) {
        int64_t n = whole->span % width;
        left.span = n == 0 ? 1 : n;
    }
    return left;
}

/* A vector of positions of the destination from `j0` on, or one, folded over what is left; `lines`: a few positions of one index, or null
 * for all of all. */
static void vector_emit(Reduce *r, const ReducePlan *p, Affine j0, int64_t width,
                        IndexMode mode, const TileIndex *lines)
{
    Legaliser *l = r->l;
    const Stmt *whole = r->s;
    VarRef var = whole->index[p->vec].var;
    TileIndex index[1] = {index_of(var, vector_range(j0, width), mode)};
    Affine at[1] = {var_minus(l, var, j0)};
    uint32_t n_parts = 0, n = 1, vec = p->vec;
    BufRef c = buffer_alloc(l, "c", r->t, SPACE_ACC, 1, &width);
    Stmt part = lines != NULL ? *whole : parts_open(l, whole, &vec, 1, &n_parts);
    r->s = &part;
    tile_add(l, 1, index, c, at, OP_COPY, neutral(r));
    if (lines != NULL) {
        open_range(r, lines->var, lines->range);
    } else {
        n = open_indices(r, false, vec);
    }
    tile_add(l, 1, index, c, at, r->s->fold, value_at(r));
    close_indices(r, n);
    tile_add(l, 1, index, r->s->dst, dst_at(r), r->join, load_at(l, c, 1, at));
    parts_close(l, n_parts);
    r->s = whole;
}

/* The positions that vectors leave, one by one. */
static void left_emit(Reduce *r, const ReducePlan *p, const Range *left, const TileIndex *lines)
{
    Legaliser *l = r->l;
    const Stmt *whole = r->s;
    uint32_t n_parts = 0, vec = p->vec;
    open_range(r, whole->index[p->vec].var, *left);
    if (lines != NULL) {
        scalar_emit(r, 1, lines);
    } else {
        TileIndex *rest = ARENA_ARRAY(l->arena, (size_t)whole->n_index + 1, TileIndex);
        Stmt part = parts_open(l, whole, &vec, 1, &n_parts);
        r->s = &part;
        scalar_emit(r, folded_indices(r, NONE, rest), rest);
        parts_close(l, n_parts);
    }
    r->s = whole;
    close_indices(r, 1);
}

/* Does a position have the same bits in a vector and left over only if products of both are fused with sums, since the number of positions
 * is the caller's, or that of ranks? */
static bool is_fused(const Reduce *r, const Range *run)
{
    return run->limit.sym >= 0 && r->s->fold == OP_SUM && dtype_is_float(r->t) &&
           tile_kind(r->s) == TILE_MATMUL;
}

/* Vectors over `run` positions of the destination, and what they leave. */
static void kept_run(Reduce *r, const ReducePlan *p, const Range *run, const TileIndex *lines)
{
    Legaliser *l = r->l;
    Affine j0 = affine_var(l->arena, loop_open(l, "j", *run, p->width, FOR_FULL));
    vector_emit(r, p, j0, p->width, MODE_VECTOR, lines);
    loop_close(l);
    j0 = affine_var(l->arena, loop_open(l, "j", *run, p->width, FOR_REST));
    Range left = left_range(run, j0, p->width);
    if (is_fused(r, run)) {
        Affine x = affine_var(l->arena, loop_open(l, "x", left, 1, FOR_ALL));
        vector_emit(r, p, x, 1, MODE_UNROLL, lines);
        loop_close(l);
    } else {
        left_emit(r, p, &left, lines);
    }
    loop_close(l);
}

static void swept_emit(Reduce *r, const ReducePlan *p)
{
    Legaliser *l = r->l;
    StmtBlock *outside = l->block;
    const TileIndex *vec = &r->s->index[p->vec];
    TileIndex lines = r->s->index[p->swept];
    int64_t span = vec->range.span, vectors = span / p->width, most = SWEEP_RUN / p->width;
    int64_t run = span == 0 ? SWEEP_RUN
                  : span % p->width != 0
                      ? span /* whole vectors in each, as the rest ends where all do */
                      : p->width * divisor_at_most(vectors, most);
    Blocks runs = range_blocks(vec->range, run, p->width);
    Blocks blocks = range_blocks(lines.range, p->lines, 1);
    Affine start;
    Range part;
    blocks_open(l, "jb", &runs, &start, &part);
    uint32_t n = open_indices(r, false, p->swept);
    blocks_open(l, "k", &blocks, &start, &lines.range);
    kept_run(r, p, &part, &lines);
    while (l->block != outside) {
        loop_close(l);
    }
    r->n_subst -= n;
}

/* The partial results of a fold along a vector: `rows` vectors of `lanes` elements. */
typedef struct Lanes {
    BufRef buf;
    int64_t rows, lanes;
    TileIndex index[2];
    Affine at[2];
} Lanes;

static Lanes lanes_alloc(Legaliser *l, DType t, int64_t width)
{
    int64_t rows = width > vector_lanes(t) ? width / vector_lanes(t) : 1;
    int64_t extent[2] = {rows, width / rows};
    Lanes p = {.rows = rows, .lanes = width / rows};
    VarRef u = local_var(l, "u"), v = local_var(l, "v");
    p.buf = buffer_alloc(l, "c", t, SPACE_ACC, 2, extent);
    p.index[0] = index_of(u, range_const(p.rows), MODE_UNROLL);
    p.index[1] = index_of(v, range_const(p.lanes), MODE_VECTOR);
    p.at[0] = affine_var(l->arena, u);
    p.at[1] = affine_var(l->arena, v);
    return p;
}

/* acc = fold(acc, all lanes): the vectors first, then the elements of what is left. */
static void lanes_fold(Reduce *r, Lanes *p, BufRef acc)
{
    Legaliser *l = r->l;
    Affine first[2] = {affine_const(0), p->at[1]};
    if (p->rows > 1) {
        TileIndex others[2] = {p->index[0], p->index[1]};
        others[0].range = (Range){.start = affine_const(1), .span = p->rows - 1};
        others[0].range.limit = dim_fixed(0);
        BufRef whole = buffer_alloc(l, "h", r->t, SPACE_ACC, 1, &p->lanes);
        tile_add(l, 1, others + 1, whole, p->at + 1, OP_COPY, load_at(l, p->buf, 2, first));
        tile_add(l, 2, others, whole, p->at + 1, r->s->fold, load_at(l, p->buf, 2, p->at));
        p->index[1].mode = MODE_UNROLL;
        tile_add(l, 1, p->index + 1, acc, NULL, r->s->fold, load_at(l, whole, 1, p->at + 1));
        return;
    }
    p->index[1].mode = MODE_UNROLL;
    tile_add(l, 1, p->index + 1, acc, NULL, r->s->fold, load_at(l, p->buf, 2, first));
}

/* What full vectors leave joins `acc`; of each row by itself where there are several, so that few additions follow each other. */
static void rest_emit(Reduce *r, const TileIndex *left, BufRef acc, bool rows)
{
    Legaliser *l = r->l;
    BufRef row = rows ? buffer_alloc(l, "s", r->t, SPACE_ACC, 0, NULL) : acc;
    if (rows) {
        tile_add(l, 0, NULL, row, NULL, OP_COPY, neutral(r));
    }
    tile_add(l, 1, left, row, NULL, r->s->fold, value_at(r));
    if (rows) {
        tile_add(l, 0, NULL, acc, NULL, r->s->fold, load_at(l, row, 0, NULL));
    }
}

static void folded_emit(Reduce *r, const ReducePlan *p)
{
    Legaliser *l = r->l;
    const Stmt *whole = r->s;
    uint32_t n_parts = 0, place = p->vec;
    scope_open(l); /* for the accumulators */
    Lanes c = lanes_alloc(l, r->t, p->width);
    BufRef acc = buffer_alloc(l, "s", r->t, SPACE_ACC, 0, NULL);
    Stmt part = parts_open(l, whole, &place, p->width, &n_parts);
    const TileIndex *vec = &part.index[place];
    r->s = &part;
    tile_add(l, 2, c.index, c.buf, c.at, OP_COPY, neutral(r));
    tile_add(l, 0, NULL, acc, NULL, OP_COPY, neutral(r));
    uint32_t n = open_indices(r, false, place);
    Affine k0 = affine_var(l->arena, loop_open(l, "k", vec->range, p->width, FOR_FULL));
    Affine lane = affine_add(l->arena, affine_add(l->arena, k0, c.lanes, c.at[0]), 1, c.at[1]);
    r->subst[r->n_subst++] = (Subst){vec->var, lane};
    tile_add(l, 2, c.index, c.buf, c.at, r->s->fold, value_at(r));
    r->n_subst--;
    loop_close(l);
    k0 = affine_var(l->arena, loop_open(l, "k", vec->range, p->width, FOR_REST));
    TileIndex left = *vec;
    left.range = left_range(&vec->range, k0, p->width);
    rest_emit(r, &left, acc, n > 0 && r->s->fold == OP_SUM);
    loop_close(l);
    close_indices(r, n);
    lanes_fold(r, &c, acc);
    tile_add(l, 0, NULL, r->s->dst, dst_at(r), r->join, load_at(l, acc, 0, NULL));
    parts_close(l, n_parts);
    r->s = whole;
    block_close(l);
}

/* For each block of the vectors' index and each position of the other folded ones: the values, then their fold. */
static void block_emit(Reduce *r, const ReducePlan *p)
{
    Legaliser *l = r->l;
    StmtBlock *outside = l->block;
    TileIndex vec = r->s->index[p->vec];
    Blocks blocks = range_blocks(vec.range, p->width, 1);
    Affine start;
    bool kept = is_kept(l, r->s, p->vec);
    uint32_t n = kept ? 0 : open_indices(r, false, p->vec);
    blocks_open(l, "jb", &blocks, &start, &vec.range);
    n += kept ? open_indices(r, false, NONE) : 0;
    Affine at[1] = {var_minus(l, vec.var, start)};
    scope_open(l);
    const Expr *value = expr_subst(l->arena, l->k, block_value(r->s), r->subst, r->n_subst);
    BufRef block = buffer_alloc(l, "e", value->dtype, SPACE_TILE, 1, &blocks.most);
    written_add(l, 1, &vec, block, at, OP_COPY, value);
    Stmt fold = *r->s;
    fold.n_index = 1;
    fold.index = &vec;
    fold.at = dst_at(r);
    fold.value = expr_cast(l->arena, load_at(l, block, 1, at), r->s->value->dtype);
    legalise_reduce(l, &fold, false);
    block_close(l);
    while (l->block != outside) {
        loop_close(l);
    }
    r->n_subst -= n;
}

static void turns_emit(Reduce *r, const ReducePlan *p)
{
    Legaliser *l = r->l;
    const TileIndex *sum = &r->s->index[p->vec];
    BufRef acc[TURNS];
    for (uint32_t u = 0; u < TURNS; u++) {
        acc[u] = buffer_alloc(l, "s", r->t, SPACE_ACC, 0, NULL);
        tile_add(l, 0, NULL, acc[u], NULL, OP_COPY, neutral(r));
    }
    uint32_t n = open_indices(r, false, p->vec);
    Affine k0 = affine_var(l->arena, loop_open(l, "k", sum->range, p->width, FOR_FULL));
    for (uint32_t u = 0; u < TURNS; u++) {
        Affine at = affine_add(l->arena, k0, 1, affine_const(u));
        r->subst[r->n_subst++] = (Subst){sum->var, at};
        tile_add(l, 0, NULL, acc[u], NULL, r->s->fold, value_at(r));
        r->n_subst--;
    }
    loop_close(l);
    k0 = affine_var(l->arena, loop_open(l, "k", sum->range, p->width, FOR_REST));
    TileIndex left = *sum;
    left.range = left_range(&sum->range, k0, p->width);
    tile_add(l, 1, &left, acc[0], NULL, r->s->fold, value_at(r));
    loop_close(l);
    close_indices(r, n);
    for (uint32_t half = TURNS / 2; half > 0; half /= 2) {
        for (uint32_t u = 0; u < half; u++) {
            tile_add(l, 0, NULL, acc[u], NULL, r->s->fold, load_at(l, acc[u + half], 0, NULL));
        }
    }
    tile_add(l, 0, NULL, r->s->dst, dst_at(r), r->join, load_at(l, acc[0], 0, NULL));
}

/* Does each position come to its destination once? */
static bool joins_once(const Legaliser *l, const Stmt *s, const ReducePlan *p)
{
    bool wide = p->way == WAY_FOLDED || p->way == WAY_TURNS;
    return p->way != WAY_BLOCK && p->swept == NONE &&
           parts_are_one(l, s, p->vec, wide ? p->width : 1);
}

void legalise_reduce(Legaliser *l, const Stmt *s, bool may_stage)
{
    ReducePlan plan = plan_choose(l, s);
    bool stages = may_stage && (plan.way == WAY_SCALAR || plan.way == WAY_TURNS) &&
                  legalise_stages_fold(l, s);
    bool begins = s->begins && !stages && joins_once(l, s, &plan);
    s = begins ? s : legalise_begin(l, s);
    if (stages) {
        legalise_staged_fold(l, s);
        return;
    }
    Reduce r = {.l = l, .s = s, .t = l->k->bufs.at[s->dst].dtype};
    r.join = begins ? OP_COPY : s->fold;
    r.subst = ARENA_ARRAY(l->arena, (size_t)s->n_index + 2, Subst);
    bool along = plan.way == WAY_KEPT || (plan.way == WAY_BLOCK && is_kept(l, s, plan.vec));
    uint32_t n = open_indices(&r, true, along ? plan.vec : NONE), n_parts = 0;
    Stmt part = *s;
    if (plan.way == WAY_TURNS || plan.way == WAY_SCALAR) {
        part = parts_open(l, s, &plan.vec, plan.way == WAY_SCALAR ? 1 : plan.width, &n_parts);
    }
    r.s = &part;
    switch (plan.way) {
    case WAY_KEPT:
        if (plan.swept != NONE) {
            swept_emit(&r, &plan);
        } else {
            kept_run(&r, &plan, &part.index[plan.vec].range, NULL);
        }
        break;
    case WAY_FOLDED:
        folded_emit(&r, &plan);
        break;
    case WAY_BLOCK:
        block_emit(&r, &plan);
        break;
    case WAY_TURNS:
        turns_emit(&r, &plan);
        break;
    case WAY_SCALAR: {
        TileIndex *rest = ARENA_ARRAY(l->arena, (size_t)s->n_index + 1, TileIndex);
        scalar_emit(&r, folded_indices(&r, NONE, rest), rest);
        break;
    }
    }
    parts_close(l, n_parts);
    close_indices(&r, n);
}
