/* SPDX-License-Identifier: Apache-2.0 */
/* Long sums, a pass from LEGAL to LEGAL: wherever loops add more than a few hundred numbers to one element one after the other. Where that is one
 * element, or a vector of them, the loops add to a cascade (loop/cascade.h) instead, which joins the element behind them:
 *
 *     for k in 0..n step 4096 {                   alloc sum cascade
 *       ...                                       for k in 0..n step 4096 {
 *       reduce [] E[] += s[]                ->      ...
 *     }                                             reduce [] sum[] += s[]
 *                                                 }
 *                                                 reduce [] E[] += sum[]
 *
 * For more elements a cascade takes too much memory. Their loops are cut into blocks, each of which is added up in a place of its own that then
 * joins the element; the blocks of very long loops are taken together once more:
 *
 *     for k in 0..n step 32 full {                for part in 0..n step 8192 {
 *       reduce [v in k:32] c[v-k] += x[v]    ->     fill [v] b[v] = 0
 *     }                                             for k in part:8192<n step 32 full {
 *                                                     reduce [v in k:32] b[v-k] += x[v]
 *                                                   }
 *                                                   reduce [v] c[v] += b[v]
 *                                                 }
 *
 * So a number passes through few additions, and the error grows with their number (docs/language.md states the bound), not with the length of
 * the sum. What decides is how often a loop runs at most, and for results of many elements, whose blocks take memory, how often it is planned to
 * run. Integers need none of this, nor do accumulators: legalise_parts.c sees to it that they add up few numbers. */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "backend/c/product.h"
#include "loop/cascade.h"

#define STEP_MOST ((int64_t)1 << 32)

/* A variable inside the loop at hand: of an inner loop, or a local index (step 1). */
typedef struct Inner {
    VarRef var;
    Range range;
    int64_t step;
    ForPart part;
} Inner;

/* Where a dimension of a sum is touched by the whole loop: at `offset` alone, or at
 * v + offset for all v of `range`. Neither changes inside the loop. */
typedef struct Place {
    bool single;
    Affine offset;
    Range range;
} Place;

/* An element of `buf` gets so many numbers in one iteration of the loop. */
typedef struct Sum {
    BufRef buf;
    const Stmt *from;
    int64_t most, typical;
    Place *place;     /* [rank] */
    int64_t elements; /* in them, at most */
    uint32_t moving;  /* dimensions of more than one position */
    bool row;         /* all statements add vectors that are the whole of a row */
    bool cascade;     /* chosen */
    BufRef now;       /* the cascade or block that takes the numbers at the moment */
} Sum;

typedef struct Scan {
    Legaliser *l;
    const Stmt *loop;
    VEC(Inner) inner;
    VEC(Sum) sums;
    Map refused; /* buffers allocated inside, or used otherwise than to add to them, each
                    iteration at the same place */
} Scan;

typedef struct Sums {
    Legaliser *l;
    VEC(BufRef) blocks; /* made for loops around this place */
    bool any;           /* sum has been cut */
} Sums;

/* ---- what a loop adds ---- */

static int64_t trips(int64_t length, int64_t step)
{
    return length == INT64_MAX ? length : length / step + (length % step != 0 ? 1 : 0);
}

/* Memory in which sums are rounded. */
static bool is_counted(const Buffer *b)
{
    return (dtype_is_float(b->dtype) || dtype_is_complex(b->dtype)) && b->space != SPACE_ACC &&
           !b->cascade;
}

static const Inner *inner_of(const Scan *c, VarRef v)
{
    for (uint32_t i = 0; i < c->inner.n; i++) {
        if (c->inner.at[i].var == v) {
            return &c->inner.at[i];
        }
    }
    return NULL;
}

static bool is_fixed(const Scan *c, Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (x.term[i].var == c->loop->var || inner_of(c, x.term[i].var) != NULL) {
            return false;
        }
    }
    return true;
}

/* All values that `v` takes in one iteration of the loop. False: they have no simple form. */
static bool place_range(const Scan *c, const Inner *v, Range *out)
{
    Range r = v->range;
    while (!is_fixed(c, r.start)) {
        const Inner *outer = r.start.n == 1 ? inner_of(c, r.start.term[0].var) : NULL;
        if (outer == NULL || r.start.base != 0 || r.start.term[0].coef != 1 || r.span == 0 ||
            r.span > outer->step) {
            return false;
        }
        const Range *o = &outer->range;
        bool whole = outer->part == FOR_FULL;
        bool even = whole || o->span == 0 || o->span % outer->step == 0;
        bool within = whole || !o->clipped || (r.clipped && dim_eq(r.limit, o->limit));
        if (!even || !within) {
            return false;
        }
        r = *o;
    }
    *out = r;
    return r.span > 0 || (r.clipped && r.start.n == 0);
}

static bool place_of(Scan *c, Affine x, Place *out)
{
    const Inner *v = NULL;
    for (uint32_t i = 0; i < x.n; i++) {
        const Inner *found = inner_of(c, x.term[i].var);
        if (found != NULL && (v != NULL || x.term[i].coef != 1)) {
            return false;
        }
        v = found != NULL ? found : v;
    }
    *out = (Place){.single = v == NULL, .offset = x};
    if (v != NULL) {
        out->offset = affine_minus(c->l, x, affine_var(c->l->arena, v->var));
    }
    return is_fixed(c, out->offset) && (v == NULL || place_range(c, v, &out->range));
}

static bool places_eq(const Place *x, const Place *y, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (x[d].single != y[d].single || !affine_eq(x[d].offset, y[d].offset) ||
            (!x[d].single && !range_eq(&x[d].range, &y[d].range))) {
            return false;
        }
    }
    return true;
}

/* How many numbers one element gets in one iteration; false when it is another element in
 * another iteration. */
static bool sum_count(Scan *c, const Stmt *s, Sum *sum)
{
    const Kernel *k = c->l->k;
    uint32_t rank = k->bufs.at[s->dst].rank;
    Affine *at = ARENA_ARRAY(c->l->arena, (size_t)rank + 1, Affine);
    bool moves = false;
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = s->at[d];
    }
    sum->most = sum->typical = 1;
    for (uint32_t i = c->inner.n; i-- > 0;) {
        const Inner *v = &c->inner.at[i];
        moves = false;
        for (uint32_t d = 0; d < rank; d++) {
            moves |= affine_uses(at[d], v->var);
            at[d] = affine_subst(c->l->arena, at[d], v->var, v->range.start);
        }
        if (!moves && v->part != FOR_REST) {
            sum->most = sat_mul(sum->most, trips(range_most(v->range), v->step));
            sum->typical = sat_mul(sum->typical, trips(range_typical(k, v->range), v->step));
        }
    }
    moves = false;
    for (uint32_t d = 0; d < rank; d++) {
        moves |= affine_uses(at[d], c->loop->var);
    }
    return !moves;
}

static void refuse(Scan *c, BufRef buf)
{
    map_put(&c->refused, buf, 1);
}

static bool is_refused(const Scan *c, BufRef buf)
{
    uint32_t was;
    return map_get(&c->refused, buf, &was);
}

/* Is all that the statement does one vector, along the last dimension? */
static bool adds_row(const Stmt *s, const Place *last)
{
    bool row =
        s->n_index == 1 && (s->index[0].mode == MODE_VECTOR ||
                            (s->index[0].mode == MODE_UNROLL && s->index[0].range.span == 1));
    return row && !last->single && range_eq(&s->index[0].range, &last->range);
}

static void scan_sum(Scan *c, const Stmt *s)
{
    uint32_t rank = c->l->k->bufs.at[s->dst].rank;
    Sum sum = {.buf = s->dst, .from = s, .elements = 1};
    bool fits = s->places == 0 && sum_count(c, s, &sum);
    sum.place = ARENA_ARRAY(c->l->arena, (size_t)rank + 1, Place);
    for (uint32_t d = 0; d < rank && fits; d++) {
        Place *p = &sum.place[d];
        fits = place_of(c, s->at[d], p);
        sum.row = d + 1 == rank && sum.moving == 0 && adds_row(s, p);
        sum.moving += !p->single;
        sum.elements = sat_mul(sum.elements, p->single ? 1 : range_most(p->range));
    }
    for (uint32_t i = 0; i < c->sums.n && fits; i++) {
        Sum *other = &c->sums.at[i];
        if (other->buf == sum.buf) {
            fits = places_eq(sum.place, other->place, rank);
            other->most = sat_add(other->most, sum.most);
            other->typical = sat_add(other->typical, sum.typical);
            other->row &= sum.row;
            if (!fits) {
                refuse(c, s->dst);
            }
            return;
        }
    }
    if (fits) {
        vec_push(c->l->arena, &c->sums, sum);
    } else {
        refuse(c, s->dst);
    }
}

static void scan_block(Scan *c, Stmt *const *body, uint32_t n)
{
    uint32_t mark = c->inner.n;
    ExprWalk w;
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        switch (s->kind) {
        case STMT_FOR:
            vec_push(c->l->arena, &c->inner, ((Inner){s->var, s->range, s->step, s->part}));
            scan_block(c, s->body, s->n_body);
            break;
        case STMT_BLOCK:
            scan_block(c, s->body, s->n_body);
            break;
        case STMT_ALLOC:
            refuse(c, s->buf);
            break;
        case STMT_TILE:
            for (uint32_t x = 0; x < s->n_index; x++) {
                /* registers add up a product's sum: that is one number */
                bool one = stmt_is_product(s) && s->index[x].mode == MODE_LOOP;
                vec_push(
                    c->l->arena, &c->inner,
                    ((Inner){s->index[x].var, s->index[x].range, 1, one ? FOR_REST : FOR_ALL}));
            }
            for (const Expr *e = read_first(&w, s->value); e != NULL; e = read_next(&w)) {
                refuse(c, e->buf);
            }
            if (s->fold == OP_SUM && !s->begins && is_counted(&c->l->k->bufs.at[s->dst])) {
                scan_sum(c, s);
            } else {
                refuse(c, s->dst);
            }
            break;
        }
        c->inner.n = mark;
    }
}

/* ---- deciding ---- */

/* How sums of many elements are cut: chains up to `leave` are left alone, blocks are of `block` additions, in `levels` at most, and an iteration
 * that adds more than `own` numbers by itself has a place of its own. */
typedef struct Rule {
    int64_t leave, block, own;
    uint32_t levels;
} Rule;

/* As many elements as stay in the first cache; more, where it costs memory. */
static const Rule rule_few = {SUM_LEAVE_FEW, 32, 8, 3},
                  rule_many = {SUM_LEAVE_MANY, 256, 16, 1};

#define CASCADE_LEAVE 128
#define MOST_LEVELS   3

/* The loop in blocks of step[0] iterations, those in blocks of step[1] iterations, ... `own`:
 * each iteration adds up by itself. */
typedef struct Cut {
    bool own;
    uint32_t n;
    int64_t step[MOST_LEVELS];
} Cut;

/* One element, or a row of them. */
static bool fits_cascade(const Sum *sum, DType t)
{
    return (sum->moving == 0 || (sum->row && sum->elements <= CASCADE_WIDTH)) &&
           !dtype_is_half(t);
}

static int64_t loop_trips(const Legaliser *l, const Stmt *loop, bool at_most)
{
    return trips(at_most ? range_most(loop->range) : range_typical(l->k, loop->range),
                 loop->step);
}

/* Blocks of blocks until they are few enough; blocks do not reach over the end of a span. */
static void cut_levels(Cut *cut, const Stmt *loop, int64_t count, int64_t first, int64_t block,
                       uint32_t levels)
{
    bool spans = loop->range.span > 0;
    int64_t step = 1, factor = first;
    while (cut->n < levels && count / step > factor) {
        if (spans) {
            int64_t most =
                loop->range.span % loop->step == 0 ? loop->range.span / loop->step : 1;
            factor = divisor_at_most(most / step, factor);
        }
        if (factor == 1) {
            return;
        }
        step *= factor;
        cut->step[cut->n++] = step;
        factor = block;
    }
}

/* Keeps the sums that are long, those first that are to be cascades, *n_cascades; how to cut for the others. */
static Cut choose_cut(const Sums *z, const Stmt *loop, Scan *c, uint32_t *n_cascades)
{
    Cut cut = {0};
    int64_t longest = 0, first = INT64_MAX, block = 0;
    uint32_t levels = MOST_LEVELS;
    bool outermost = false;
    VEC(Sum) cascades = {0}, others = {0};
    for (uint32_t i = 0; i < c->sums.n; i++) {
        Sum *sum = &c->sums.at[i];
        sum->cascade = fits_cascade(sum, z->l->k->bufs.at[sum->buf].dtype);
        const Rule *rule = sum->elements <= SUM_FEW ? &rule_few : &rule_many;
        bool at_most = rule != &rule_many;
        int64_t each = at_most ? sum->most : sum->typical;
        int64_t count = loop_trips(z->l, loop, at_most);
        if (is_refused(c, sum->buf) ||
            sat_mul(each, count) <= (sum->cascade ? CASCADE_LEAVE : rule->leave)) {
            continue;
        }
        if (sum->cascade) {
            vec_push(z->l->arena, &cascades, *sum);
            continue;
        }
        bool is_block = false;
        for (uint32_t b = 0; b < z->blocks.n; b++) {
            is_block |= z->blocks.at[b] == sum->buf;
        }
        outermost |= !is_block;
        cut.own |= each > rule->own;
        int64_t fits = each > rule->own ? rule->block : rule->block / each;
        first = fits < first ? fits : first;
        block = rule->block > block ? rule->block : block;
        levels = rule->levels < levels ? rule->levels : levels;
        longest = count > longest ? count : longest;
        vec_push(z->l->arena, &others, *sum);
    }
    bool planned = loop_trips(z->l, loop, false) > rule_many.block;
    if (others.n > 0 && !outermost && !planned) { /* the loop around has its levels */
        levels = 1;
        first = first * rule_many.block / block;
    }
    if (others.n > 0) {
        cut_levels(&cut, loop, longest, first, block, levels);
    }
    c->sums.n = 0;
    *n_cascades = cascades.n;
    for (uint32_t i = 0; i < cascades.n; i++) {
        vec_push(z->l->arena, &c->sums, cascades.at[i]);
    }
    for (uint32_t i = 0; i < others.n && (cut.own || cut.n > 0); i++) {
        vec_push(z->l->arena, &c->sums, others.at[i]);
    }
    return cut;
}

/* ---- doing ---- */

static VarRef place_var(Legaliser *l, uint32_t d)
{
    return local_var(l, str_format(l->arena, "e%u", d));
}

/* The indices of a statement over all that the sum touches; `at` in the sum, `block_at` in a
 * block of it. Returns how many. */
static uint32_t sum_indices(Legaliser *l, const Sum *sum, TileIndex *index, Affine *at,
                            Affine *block_at)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < l->k->bufs.at[sum->buf].rank; d++) {
        const Place *p = &sum->place[d];
        if (p->single) {
            at[d] = p->offset;
            continue;
        }
        VarRef v = place_var(l, d);
        Affine x = affine_var(l->arena, v);
        index[n] = index_of(v, p->range, MODE_LOOP);
        at[d] = affine_add(l->arena, p->offset, 1, x);
        block_at[n++] = affine_minus(l, x, p->range.start);
    }
    return n;
}

static BufRef block_alloc(Legaliser *l, const Sum *sum, bool cascade)
{
    const Buffer b = l->k->bufs.at[sum->buf];
    Dim *extent = ARENA_ARRAY(l->arena, (size_t)b.rank + 1, Dim);
    uint32_t rank = 0;
    for (uint32_t d = 0; d < b.rank; d++) {
        const Range *r = &sum->place[d].range;
        if (!sum->place[d].single) {
            extent[rank++] = r->span > 0 ? dim_fixed(r->span) : r->limit;
        }
    }
    BufRef out = buffer_declare(l, cascade ? "sum" : "b", b.dtype, SPACE_TILE, rank, extent);
    l->k->bufs.at[out].cascade = cascade;
    return out;
}

/* A cascade, or a block, for each sum from here on, empty. */
static void blocks_begin(Sums *z, Sum *sum, uint32_t n, BufRef *outer)
{
    Legaliser *l = z->l;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = l->k->bufs.at[sum[i].buf].rank;
        TileIndex *index = ARENA_ARRAY(l->arena, (size_t)rank + 1, TileIndex);
        Affine *at = ARENA_ARRAY(l->arena, (size_t)rank * 2 + 2, Affine);
        l->from = sum[i].from;
        BufRef b = block_alloc(l, &sum[i], sum[i].cascade);
        uint32_t m = sum_indices(l, &sum[i], index, at, at + rank + 1);
        if (!sum[i].cascade) {
            tile_add(l, m, index, b, at + rank + 1, OP_COPY,
                     expr_const(l->arena, number_int(l->k->bufs.at[b].dtype, 0)));
        }
        outer[i] = sum[i].now;
        sum[i].now = b;
        l->from = NULL;
    }
}

/* They join what they are made for. */
static void blocks_end(Sums *z, Sum *sum, uint32_t n, const BufRef *outer)
{
    Legaliser *l = z->l;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = l->k->bufs.at[sum[i].buf].rank;
        TileIndex *index = ARENA_ARRAY(l->arena, (size_t)rank + 1, TileIndex);
        Affine *at = ARENA_ARRAY(l->arena, (size_t)rank * 2 + 2, Affine);
        Affine *block_at = at + rank + 1;
        l->from = sum[i].from;
        uint32_t m = sum_indices(l, &sum[i], index, at, block_at);
        uint32_t block_rank = l->k->bufs.at[sum[i].now].rank;
        tile_add(l, m, index, outer[i], outer[i] == sum[i].buf ? at : block_at, OP_SUM,
                 load_at(l, sum[i].now, block_rank, block_at));
        sum[i].now = outer[i];
        l->from = NULL;
    }
}

/* The statements with each sum replaced by what takes its numbers. */
static Stmt **redirect(Legaliser *l, Stmt *const *body, uint32_t n, const Sum *sum,
                       uint32_t n_sums)
{
    Stmt **out = ARENA_ARRAY(l->arena, (size_t)n + 1, Stmt *);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = arena_copy(l->arena, body[i], sizeof *out[i]);
        if (stmt_has_body(body[i])) {
            out[i]->body = redirect(l, body[i]->body, body[i]->n_body, sum, n_sums);
        }
        for (uint32_t k = 0; body[i]->kind == STMT_TILE && k < n_sums; k++) {
            if (body[i]->dst != sum[k].buf) {
                continue;
            }
            uint32_t rank = l->k->bufs.at[sum[k].buf].rank, m = 0;
            Affine *at = ARENA_ARRAY(l->arena, (size_t)rank + 1, Affine);
            for (uint32_t d = 0; d < rank; d++) {
                const Place *p = &sum[k].place[d];
                if (!p->single) {
                    at[m++] = affine_minus(l, affine_minus(l, body[i]->at[d], p->offset),
                                           p->range.start);
                }
            }
            out[i]->dst = sum[k].now;
            out[i]->at = at;
        }
    }
    return out;
}

static void body_in_blocks(Sums *z, Stmt *const *body, uint32_t n);

/* The same loop or block again, with a body that is still to come. */
static Stmt *copy_open(Legaliser *l, const Stmt *s)
{
    Stmt *copy = arena_copy(l->arena, s, sizeof *copy);
    stmt_add(l, copy);
    block_open(l, copy);
    return copy;
}

/* `sum`: first those that are cascades, `n` others. */
static void loop_cut(Sums *z, const Stmt *loop, Sum *sum, uint32_t n_cascades, uint32_t n,
                     const Cut *cut)
{
    Legaliser *l = z->l;
    Sum *blocks = sum + n_cascades;
    uint32_t mark = z->blocks.n, n_parts = 0;
    BufRef *outer =
        ARENA_ARRAY(l->arena, n_cascades + (size_t)n * (MOST_LEVELS + 1) + 1, BufRef);
    BufRef *at = outer + n_cascades;
    z->any = true;
    Range range = loop->range;
    for (uint32_t i = 0; i < n_cascades + n; i++) {
        sum[i].now = sum[i].buf;
    }
    blocks_begin(z, sum, n_cascades, outer);
    for (; n > 0 && n_parts < cut->n; n_parts++) {
        int64_t step = loop->step * cut->step[cut->n - 1 - n_parts];
        Affine start = affine_var(l->arena, loop_open(l, "part", range, step, FOR_ALL));
        range = range_at(start, step, &loop->range);
        blocks_begin(z, blocks, n, at + (size_t)n_parts * n);
    }
    copy_open(l, loop)->range = range;
    if (cut->own) {
        blocks_begin(z, blocks, n, at + (size_t)n_parts * n);
    }
    Stmt **body = redirect(l, loop->body, loop->n_body, sum, n_cascades + n);
    for (uint32_t i = 0; i < n; i++) {
        vec_push(l->arena, &z->blocks, blocks[i].now);
    }
    body_in_blocks(z, body, loop->n_body);
    z->blocks.n = mark;
    if (cut->own) {
        blocks_end(z, blocks, n, at + (size_t)n_parts * n);
    }
    block_close(l);
    while (n_parts-- > 0) {
        blocks_end(z, blocks, n, at + (size_t)n_parts * n);
        loop_close(l);
    }
    blocks_end(z, sum, n_cascades, outer);
}

static void loop_in_blocks(Sums *z, const Stmt *loop)
{
    Legaliser *l = z->l;
    ArenaMark mark = arena_mark(l->arena);
    Scan c = {.l = l, .loop = loop};
    map_init(&c.refused, l->arena);
    bool once = loop->part == FOR_REST || loop->parallel || loop->step > STEP_MOST ||
                trips(range_most(loop->range), loop->step) <= 1;
    if (!once) {
        scan_block(&c, loop->body, loop->n_body);
    }
    uint32_t n_cascades = 0;
    Cut cut = choose_cut(z, loop, &c, &n_cascades);
    if (c.sums.n > 0) {
        loop_cut(z, loop, c.sums.at, n_cascades, c.sums.n - n_cascades, &cut);
        return;
    }
    arena_reset(l->arena, mark);
    (void)copy_open(l, loop);
    body_in_blocks(z, loop->body, loop->n_body);
    block_close(l);
}

static void body_in_blocks(Sums *z, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        switch (body[i]->kind) {
        case STMT_FOR:
            loop_in_blocks(z, body[i]);
            break;
        case STMT_BLOCK:
            (void)copy_open(z->l, body[i]);
            body_in_blocks(z, body[i]->body, body[i]->n_body);
            block_close(z->l);
            break;
        case STMT_ALLOC:
        case STMT_TILE:
            stmt_add(z->l, body[i]);
            break;
        }
    }
}

Kernel *c_sums(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    Legaliser l = legaliser_start(target, ctx, arena, k);
    Sums z = {.l = &l};
    block_open(&l, NULL);
    body_in_blocks(&z, k->body, k->n_body);
    l.k->body = l.block->list.at;
    l.k->n_body = l.block->list.n;
    kernel_name_vars(l.k, &ctx->syms);
    return z.any ? l.k : (Kernel *)(uintptr_t)k;
}
