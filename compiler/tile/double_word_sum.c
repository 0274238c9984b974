/* SPDX-License-Identifier: Apache-2.0 */
/* A sum into a double word: which terms are added up in f32 before they join it. See double_word.h.
 *
 *     for g over groups of blocks:
 *       for v over the blocks of a group:
 *         part[p, c, v] = sum of a row of terms        ROW of them, ROWS rows below each other, COLUMNS beside each other
 *       sum = sum of part, in two words                BLOCKS of c and v at most
 *       hi, lo += sum                                  without an error
 *
 * Joining takes instructions one after the other, so a group is as long as its parts have room. */
#include "tile/double_word.h"

#define ROW     128
#define LONG    512 /* a row that is no multiple of a shorter one */
#define COLUMNS 16
#define BLOCKS  256
#define WHOLE   64 /* columns, where an index is not cut for them */
#define ROWS    128
/* Products that a contraction adds up: 128 on partitions, then each sum of these to what is in PSUM. */
#define CONTRACTED 2048
/* With so many positions of the result there are rows enough. */
#define KEPT 32
/* Positions of the result that are made together: rows, and columns of a tile. */
#define KEPT_ROWS    128
#define KEPT_COLUMNS 512

typedef struct Indices {
    uint32_t n;
    TileIndex at[LOOP_DEPTH_LIMIT];
} Indices;

/* The terms of a sum: over `kept`, the positions of the result, `folded`, and `rows`, whose values stay apart at first. The value and the
 * ranges of `folded` move with the numbers of blocks; those of `rows` with the first block alone, if `rows_move`. */
typedef struct Terms {
    const Expr *value;
    Indices kept, folded, columns, blocks;
    bool has_rows, rows_move;
    TileIndex rows;
} Terms;

/* The double word that terms join. */
typedef struct Sum {
    DoubleWord x;
    Indices kept;
    bool empty; /* nothing has joined it, and it has no value yet */
} Sum;

static bool is_whole(const TileIndex *x)
{
    return x->range.span == 0 && x->range.start.n == 0;
}

static int64_t count_all(const Indices *x)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < x->n; i++) {
        n = sat_mul(n, words_count(&x->at[i]));
    }
    return n;
}

static void push(Indices *x, TileIndex index)
{
    CHECK(x->n < LOOP_DEPTH_LIMIT);
    x->at[x->n++] = index;
}

static void push_all(Indices *x, const Indices *y)
{
    for (uint32_t i = 0; i < y->n; i++) {
        push(x, y->at[i]);
    }
}

static TileIndex index_of(Words *w, const char *hint, int64_t n)
{
    return (TileIndex){.var = kernel_var(w->to, &w->ctx->syms, hint, false),
                       .range = range_whole(dim_fixed(n))};
}

/* ---- something else for an index ---- */

typedef struct Substitution {
    Arena *arena;
    const Words *w;
    VarRef var;
    Affine by;
} Substitution;

static void substitute(void *user, Expr *place)
{
    const Substitution *s = user;
    const Kernel *k =
        place->buf < s->w->from->bufs.n ? s->w->from : s->w->to; /* as it was read */
    uint32_t n = place->kind == EXPR_LOAD ? k->bufs.at[place->buf].rank : 1;
    Affine *at = ARENA_ARRAY(s->arena, n + 1, Affine);
    for (uint32_t d = 0; d < n; d++) {
        at[d] = affine_subst(s->arena, place->at[d], s->var, s->by);
    }
    place->at = at;
}

static const Expr *value_with(Words *w, const Expr *value, VarRef v, Affine by)
{
    Substitution s = {w->arena, w, v, by};
    return expr_with_places(w->arena, value, substitute, &s);
}

/* A loop over the numbers of blocks, of which the terms are those of one then. */
static Affine open_blocks(Words *w, Terms *t, TileIndex block)
{
    Affine at = words_open(w, block, 1).range.start;
    t->value = value_with(w, t->value, block.var, at);
    for (uint32_t i = 0; i < t->folded.n; i++) {
        Range *r = &t->folded.at[i].range;
        r->start = affine_subst(w->arena, r->start, block.var, at);
    }
    for (uint32_t i = 0; i < t->columns.n; i++) {
        Range *r = &t->columns.at[i].range;
        r->start = affine_subst(w->arena, r->start, block.var, at);
    }
    if (t->has_rows) {
        t->rows.range.start = affine_subst(w->arena, t->rows.range.start, block.var, at);
    }
    return at;
}

/* ---- joining ---- */

static bool is_product(const Expr *e, const Expr **x, const Expr **y)
{
    bool conj = false;
    if (e->kind != EXPR_OP || e->op != OP_MUL) {
        return false;
    }
    *x = expr_factor(e->arg[0], &conj);
    *y = expr_factor(e->arg[1], &conj);
    return (*x)->kind == EXPR_LOAD && (*y)->kind == EXPR_LOAD;
}

/* Is the sum a contraction, with rows or columns that one of the two tensors has alone? */
static bool is_contraction(Words *w, const Terms *t)
{
    const Expr *x = NULL, *y = NULL;
    bool product = !t->has_rows && is_product(t->value, &x, &y), alone = false;
    for (uint32_t i = 0; product && i < t->kept.n; i++) {
        VarRef v = t->kept.at[i].var;
        alone |= access_uses(w->to, x->buf, x->at, v) != access_uses(w->to, y->buf, y->at, v);
    }
    return product && alone;
}

/* The f32 sum of a block's terms, at `at` of part. */
static void add_terms(Words *w, const Terms *t, BufRef part, const Affine *at)
{
    Indices all = t->kept;
    const Expr *value = t->value, *x = NULL, *y = NULL;
    if (t->has_rows) {
        push(&all, t->rows);
    }
    push_all(&all, &t->columns);
    push_all(&all, &t->folded);
    if (is_product(value, &x, &y) && !is_contraction(w, t)) { /* of rows, element by element */
        BufRef term = words_tile_of(w, "term", all.n, all.at);
        const Affine *place = words_at(w, all.n, all.at);
        words_set(w, all.n, all.at, term, place, OP_COPY, value);
        value = words_load(w, term, place);
    }
    words_set(w, all.n, all.at, part, at, OP_SUM, value);
}

/* Loops over groups of blocks that follow each other; what is left of `blocks` are those of a group. */
static void open_groups(Words *w, Terms *t, Sum *sum)
{
    Indices left = {0};
    int64_t room = BLOCKS / count_all(&t->columns), group[LOOP_DEPTH_LIMIT];
    for (uint32_t i = t->blocks.n; i-- > 0;) {
        int64_t n = words_count(&t->blocks.at[i]);
        bool alone = (i == 0 && t->rows_move) || room < 2;
        group[i] = alone ? 1 : n <= room ? n : is_whole(&t->blocks.at[i]) ? room : 1;
        room /= group[i];
    }
    for (uint32_t i = 0; i < t->blocks.n; i++) {
        TileIndex b = t->blocks.at[i];
        bool several = group[i] < words_count(&b);
        if (several && sum->empty) {
            words_zero(w, sum->kept.n, sum->kept.at, sum->x);
            sum->empty = false;
        }
        if (group[i] == 1) {
            (void)open_blocks(w, t, b);
        } else {
            push(&left, several ? words_open(w, b, group[i]) : b);
        }
    }
    t->blocks = left;
}

/* The sum of parts, whose first `kept` indices stay, as two words. With sigma = 4 n max|part|, n of them rounded up to a power
 * of two, q = (part + sigma) - sigma is the part cut to a multiple of one number that all share; sums of these are exact, as they
 * have 24 bits, and so is r = part - q. */
static void fold_parts(Words *w, const Indices *parts, uint32_t kept, const Expr **hi,
                       const Expr **lo)
{
    const Affine *at = words_at(w, parts->n, parts->at), *to = words_at(w, kept, parts->at);
    const Expr *part = *hi;
    Indices folded = {0};
    for (uint32_t i = kept; i < parts->n; i++) {
        push(&folded, parts->at[i]);
    }
    double scale = 4;
    while (scale < 4.0 * (double)count_all(&folded)) {
        scale *= 2;
    }
    BufRef most = words_tile_of(w, "most", kept, parts->at);
    BufRef sigma = words_tile_of(w, "sigma", kept, parts->at);
    BufRef q = words_tile_of(w, "q", parts->n, parts->at);
    BufRef r = words_tile_of(w, "r", parts->n, parts->at);
    words_set(w, parts->n, parts->at, most, to, OP_RMAX,
              expr_op(w->arena, OP_ABS, DTYPE_F32, 1, &part));
    words_set(w, kept, parts->at, sigma, to, OP_COPY,
              words_two(w, OP_MUL, words_load(w, most, to), words_number(w, scale)));
    const Expr *s = words_load(w, sigma, to);
    words_set(w, parts->n, parts->at, q, at, OP_COPY,
              words_two(w, OP_SUB, words_two(w, OP_ADD, part, s), s));
    words_set(w, parts->n, parts->at, r, at, OP_COPY,
              words_two(w, OP_SUB, part, words_load(w, q, at)));
    BufRef sum[2];
    for (int word = 0; word < 2; word++) {
        sum[word] = words_tile_of(w, word == 0 ? "sum_hi" : "sum_lo", kept, parts->at);
        words_set(w, parts->n, parts->at, sum[word], to, OP_SUM,
                  words_load(w, word == 0 ? q : r, at));
        *(word == 0 ? hi : lo) = words_load(w, sum[word], to);
    }
}

/* Lanes for such parts. */
static DoubleWord add_lanes(Words *w, const Indices *parts)
{
    Lanes l = {.n = parts->n, .index = ARENA_ARRAY(w->arena, parts->n + 1, TileIndex)};
    Dim *extent = ARENA_ARRAY(w->arena, parts->n + 1, Dim);
    for (uint32_t i = 0; i < parts->n; i++) {
        int64_t n = words_count(&parts->at[i]);
        extent[i] = dim_fixed(n);
        l.index[i] = index_of(w, w->to->vars.at[parts->at[i].var].name->text, n);
    }
    l.x.hi =
        kernel_buffer(w->to, &w->ctx->syms, "sums_hi", DTYPE_F32, SPACE_TILE, parts->n, extent);
    l.x.lo =
        kernel_buffer(w->to, &w->ctx->syms, "sums_lo", DTYPE_F32, SPACE_TILE, parts->n, extent);
    l.x.at = words_at(w, l.n, l.index);
    vec_push(w->arena, &w->lanes, l);
    return (DoubleWord){l.x.hi, l.x.lo, words_at(w, parts->n, parts->at)};
}

void words_fold_lanes(Words *w, DoubleWord x)
{
    for (uint32_t i = 0; i < w->lanes.n; i++) {
        const Lanes *l = &w->lanes.at[i];
        Indices lanes = {0};
        for (uint32_t d = 0; d < l->n; d++) {
            push(&lanes, l->index[d]);
        }
        const Expr *hi = words_load(w, l->x.hi, l->x.at), *lo = words_load(w, l->x.lo, l->x.at);
        if (l->n > 0) {
            const Expr *rest = NULL;
            BufRef sum = words_tile_of(w, "rest", 0, NULL);
            const Affine *none = words_at(w, 0, NULL);
            words_set(w, l->n, l->index, sum, none, OP_SUM, lo);
            fold_parts(w, &lanes, 0, &hi, &rest);
            lo = words_two(w, OP_ADD, rest, words_load(w, sum, none));
        }
        if (i == 0) {
            words_begin(w, 0, NULL, x, hi, lo);
        } else {
            words_add(w, 0, NULL, x, hi, lo);
        }
    }
}

/* Where the loops over the blocks are closed, a column is one of those of a block. */
static Indices outside(Words *w, const Terms *t)
{
    Indices parts = t->kept;
    if (t->has_rows) {
        push(&parts, t->rows);
    }
    push_all(&parts, &t->blocks);
    for (uint32_t i = 0; i < t->columns.n; i++) {
        const TileIndex *c = &t->columns.at[i];
        bool closed = false; /* where loops over blocks have ended, all of them are read */
        for (uint32_t b = 0; b < t->blocks.n; b++) {
            closed |= affine_uses(c->range.start, t->blocks.at[b].var);
        }
        push(&parts, closed ? index_of(w, "c", words_count(c)) : *c);
    }
    return parts;
}

static void join(Words *w, Terms t, Sum *sum)
{
    uint32_t depth = w->depth;
    open_groups(w, &t, sum);
    Indices inside = t.kept, parts = outside(w, &t), blocks = t.blocks;
    if (t.has_rows) {
        push(&inside, t.rows);
    }
    push_all(&inside, &blocks);
    push_all(&inside, &t.columns);
    BufRef part = words_tile_of(w, "part", parts.n, parts.at);
    const Affine *read = words_at(w, parts.n, parts.at);
    Affine *at =
        arena_copy(w->arena, words_at(w, inside.n, inside.at), (inside.n + 1) * sizeof *at);
    uint32_t around = w->depth;
    for (uint32_t i = 0; i < blocks.n; i++) {
        Affine number = open_blocks(w, &t, blocks.at[i]);
        for (uint32_t d = 0; d < inside.n; d++) {
            at[d] = affine_subst(w->arena, at[d], blocks.at[i].var, number);
        }
    }
    add_terms(w, &t, part, at);
    words_close(w, around);
    const Expr *hi = words_load(w, part, read), *lo = NULL;
    if (w->late == w->now) {
        words_add(w, parts.n, parts.at, add_lanes(w, &parts), hi, NULL);
        words_close(w, depth);
        return;
    }
    if (parts.n > t.kept.n) {
        fold_parts(w, &parts, t.kept.n, &hi, &lo);
    }
    if (sum->empty) {
        words_begin(w, t.kept.n, t.kept.at, sum->x, hi, lo);
        sum->empty = false;
    } else {
        words_add(w, t.kept.n, t.kept.at, sum->x, hi, lo);
    }
    words_close(w, depth);
}

/* ---- blocks ---- */

/* The index whose values are rows: the longest that is whole, the first of these. The last one lies along lines of memory, often. */
static uint32_t choose_rows(const Indices *x)
{
    uint32_t best = x->n;
    int64_t most = 1;
    for (uint32_t i = 0; i < x->n; i++) {
        int64_t n = words_count(&x->at[i]);
        n = n < ROWS ? n : ROWS;
        if (is_whole(&x->at[i]) && n > most) {
            most = n;
            best = i;
        }
    }
    return best;
}

/* The index in blocks of so many positions, each of which is a range of its own. */
static TileIndex cut(Words *w, Terms *t, TileIndex index, int64_t step)
{
    Range *r = &index.range;
    if (step >= words_count(&index)) {
        return index;
    }
    TileIndex block = index_of(w, w->to->vars.at[index.var].name->text, 0);
    if (is_whole(&index)) {
        int64_t n = (words_count(&index) + step - 1) / step;
        block.range = range_whole(dim_fixed(n));
        r->start = affine_add(w->arena, r->start, step, affine_var(w->arena, block.var));
        r->clipped = step > 1;
    } else { /* one position */
        CHECK(step == 1);
        block.range = *r;
        r->start = affine_var(w->arena, block.var);
        r->clipped = false;
    }
    r->span = step;
    push(&t->blocks, block);
    return index;
}

/* The largest divisor of n up to `most`. */
static int64_t divisor(int64_t n, int64_t most)
{
    int64_t d = n < most ? n : most;
    while (n % d != 0) {
        d--;
    }
    return d;
}

/* A long index as columns of rows, where it is a multiple of a row's length. */
static void split_long(Words *w, Terms *t)
{
    Indices all = t->folded;
    t->folded.n = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        const TileIndex *x = &all.at[i];
        int64_t n = words_count(x), row = divisor(n, ROW);
        if (!is_whole(x) || n <= ROW || row < ROW / 4) {
            push(&t->folded, *x);
            continue;
        }
        TileIndex c = index_of(w, "c", n / row), f = index_of(w, "f", row);
        Affine at = affine_add(w->arena, x->range.start, row, affine_var(w->arena, c.var));
        at = affine_add(w->arena, at, 1, affine_var(w->arena, f.var));
        t->value = value_with(w, t->value, x->var, at);
        push(&t->folded, c);
        push(&t->folded, f);
    }
}

/* As many as a sum in f32 may have terms. */
static int64_t in_one(const Words *w, int64_t terms)
{
    return w->now->exact > 0 && w->now->exact < terms ? w->now->exact : terms;
}

/* How many values of each index one statement takes; which of them are columns of parts. */
static void choose_steps(const Words *w, const Terms *t, bool product, int64_t *step,
                         bool *column)
{
    int64_t row = in_one(w, ROW), room = product ? in_one(w, CONTRACTED) : row, columns = 1;
    for (uint32_t i = t->folded.n; i-- > 0;) {
        const TileIndex *x = &t->folded.at[i];
        int64_t n = words_count(x);
        column[i] = !product && n > room && room < row;
        int64_t at_once = n * columns <= WHOLE ? WHOLE : COLUMNS;
        int64_t most = column[i]               ? at_once / columns
                       : room < row || product ? room
                                               : in_one(w, LONG);
        most = most < 1 ? 1 : most;
        step[i] = n <= most ? n : !is_whole(x) ? 1 : column[i] ? divisor(n, most) : most;
        columns *= column[i] ? step[i] : 1;
        room = column[i] ? 0 : room / step[i]; /* before a column there are columns */
    }
}

static void sum_blocks(Words *w, Terms t, Sum *sum)
{
    bool product = is_contraction(w, &t);
    uint32_t rows = count_all(&t.folded) > LONG && count_all(&t.kept) < KEPT
                        ? choose_rows(&t.folded)
                        : t.folded.n;
    if (rows < t.folded.n) {
        t.has_rows = true;
        t.rows = cut(w, &t, t.folded.at[rows], ROWS);
        t.rows_move = t.blocks.n > 0;
        t.folded.n--;
        for (uint32_t i = rows; i < t.folded.n; i++) {
            t.folded.at[i] = t.folded.at[i + 1];
        }
    }
    if (!product && in_one(w, LONG) == LONG) {
        split_long(w, &t);
    }
    int64_t step[LOOP_DEPTH_LIMIT];
    bool column[LOOP_DEPTH_LIMIT];
    choose_steps(w, &t, product, step, column);
    Indices all = t.folded;
    t.folded.n = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        push(column[i] ? &t.columns : &t.folded, cut(w, &t, all.at[i], step[i]));
    }
    join(w, t, sum);
}

/* ---- one long index ---- */

/* Terms from position `start` on: blocks of rows of terms; rows 0: one row. */
static void sum_stretch(Words *w, const Terms *all, Sum *sum, int64_t start, int64_t blocks,
                        int64_t rows, int64_t row)
{
    Arena *a = w->arena;
    Terms t = *all;
    int64_t part = row <= ROW ? row : divisor(row, ROW);
    t.folded.n = 1;
    t.folded.at[0] = index_of(w, "f", part);
    Affine at = affine_add(a, affine_const(start), 1, affine_var(a, t.folded.at[0].var));
    if (part < row) {
        push(&t.columns, index_of(w, "c", row / part));
        at = affine_add(a, at, part, affine_var(a, t.columns.at[0].var));
    }
    if (rows > 0) {
        t.has_rows = true;
        t.rows = index_of(w, "p", rows);
        at = affine_add(a, at, row, affine_var(a, t.rows.var));
    }
    if (blocks > 1) {
        push(&t.blocks, index_of(w, "block", blocks));
        at = affine_add(a, at, rows * row, affine_var(a, t.blocks.at[0].var));
    }
    t.value = value_with(w, all->value, all->folded.at[0].var, at);
    join(w, t, sum);
}

/* One index, cut into blocks of rows of LONG terms. */
static void sum_long(Words *w, const Terms *t, Sum *sum)
{
    int64_t start = t->folded.at[0].range.start.base, n = words_count(&t->folded.at[0]);
    int64_t blocks = n / (ROWS * LONG);
    if (blocks > 0) {
        sum_stretch(w, t, sum, start, blocks, ROWS, LONG);
        start += blocks * ROWS * LONG;
        n -= blocks * ROWS * LONG;
    }
    int64_t row = (n + ROWS - 1) / ROWS;
    row = row > ROW ? (row + 3) / 4 * 4 : row; /* four columns */
    int64_t rows = n > LONG ? n / row : 0;
    if (rows > 0) {
        sum_stretch(w, t, sum, start, 1, rows, row);
        start += rows * row;
        n -= rows * row;
    }
    if (n > 0) {
        sum_stretch(w, t, sum, start, 1, 0, n);
    }
}

/* ---- sums of double words ---- */

static void sum_words(Words *w, const Terms *t, const Expr *load, Sum *sum)
{
    uint32_t depth = w->depth;
    if (sum->empty) {
        words_zero(w, sum->kept.n, sum->kept.at, sum->x);
    }
    for (uint32_t i = 0; i < t->folded.n; i++) {
        TileIndex one = words_open(w, t->folded.at[i], 1);
        load = value_with(w, load, t->folded.at[i].var, one.range.start);
    }
    DoubleWord of = words_of(w, load->buf, load->at);
    words_add(w, t->kept.n, t->kept.at, sum->x, words_load(w, of.hi, of.at),
              words_load(w, of.lo, of.at));
    words_close(w, depth);
}

/* ---- the statement ---- */

/* Loops over positions of the result, so that its double words stay on chip. */
static void open_kept(Words *w, Indices *kept)
{
    for (uint32_t i = 0; i < kept->n; i++) {
        bool last = i + 1 == kept->n, before = i + 2 == kept->n;
        int64_t most = last && i > 0 ? KEPT_COLUMNS : last || before ? KEPT_ROWS : 1;
        if (is_whole(&kept->at[i]) && words_count(&kept->at[i]) > most) {
            kept->at[i] = words_open(w, kept->at[i], most);
        }
    }
}

static void sum_terms(Words *w, Terms *t, Sum *sum)
{
    if (count_all(&t->folded) < 1) { /* no terms */
        if (sum->empty) {
            words_zero(w, sum->kept.n, sum->kept.at, sum->x);
        }
        return;
    }
    const Expr *value = t->value;
    bool load = value->kind == EXPR_LOAD && w->wide[value->buf] && !w->direct[value->buf];
    if (load) {
        sum_words(w, t, value, sum);
        return;
    }
    t->value = words_term(w, value);
    bool one = t->folded.n == 1 && is_whole(&t->folded.at[0]) &&
               words_count(&t->folded.at[0]) > LONG && count_all(&t->kept) < KEPT &&
               in_one(w, LONG) == LONG;
    if (one) {
        sum_long(w, t, sum);
    } else {
        sum_blocks(w, *t, sum);
    }
}

void words_sum(Words *w)
{
    const Stmt *s = w->now;
    uint32_t depth = w->depth;
    Terms t = {.value = s->value};
    if (s->n_index + 4 > LOOP_DEPTH_LIMIT || (s->begins && s->n_first > 0)) {
        words_refuse(w, "it begins in one of several loops");
        return;
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        bool kept = access_uses(w->from, s->dst, s->at, s->index[i].var);
        push(kept ? &t.kept : &t.folded, s->index[i]);
    }
    if (count_all(&t.kept) < 1) { /* no position of the result */
        return;
    }
    if (s->begins) {
        open_kept(w, &t.kept);
    }
    Sum sum = {.kept = t.kept, .empty = s->begins};
    sum.x = s->begins ? words_new(w, t.kept.n, t.kept.at) : words_of(w, s->dst, s->at);
    sum_terms(w, &t, &sum);
    if (s->begins) {
        words_deliver(w, t.kept.n, t.kept.at, sum.x);
    }
    words_close(w, depth);
}
