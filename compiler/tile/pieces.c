/* SPDX-License-Identifier: Apache-2.0 */
/* A number, or an array, that a loop adds up is that of all its iterations, so the loop has no rows for
 * programs to share. Here each iteration, of all loops that stand alone in each other, makes a
 * sum of its own, an element of a row in memory, and a statement adds these up: then programs
 * can have as many iterations each as fit. */
#include "tile/tile.h"
#include "op/affine.h"

#include <string.h>

#define PIECES_MOST 4096
#define ARRAYS_MOST 64 /* pieces of arrays */
#define SUMS_MOST   8  /* that a loop adds up */

/* What a loop adds up. */
typedef struct LoopSum {
    const Stmt *fill, *fold;
    BufRef sums; /* of the pieces */
} LoopSum;

typedef struct Pieces {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    uint32_t n_sums;
    LoopSum sum[SUMS_MOST];
    const Stmt *loop[LOOP_DEPTH_LIMIT];
    uint32_t n_loops;
    int64_t each[LOOP_DEPTH_LIMIT]; /* iterations of a piece */
    int64_t n;                      /* pieces so far */
    int64_t wanted;                 /* pieces; 0: one for each iteration */
    bool nested;                    /* is a fold in another loop of these? */
    bool arrays;                    /* is something added up that is no number? */
    VEC(Stmt *) out;
} Pieces;

static bool is_plain(const Stmt *s)
{
    return s->kind == STMT_FOR && s->range.start.n == 0 && s->range.span == 0 &&
           s->range.limit.sym < 0 && s->part == FOR_ALL;
}

static int64_t loop_trips(const Stmt *s)
{
    return (s->range.limit.n - s->range.start.base + s->step - 1) / s->step;
}

/* The only statement in the loop that names the buffer, where that folds into it. */
static const Stmt *only_fold(const Stmt *loop, BufRef buf)
{
    StmtWalk w;
    const Stmt *found = NULL;
    for (const Stmt *t = tile_first(&w, loop->body, loop->n_body); t != NULL;
         t = tile_next(&w)) {
        bool reads = expr_load_of(t->value, buf) != NULL;
        if (reads || (t->dst == buf && (t->fold == OP_COPY || t->begins || found != NULL))) {
            return NULL;
        }
        found = t->dst == buf ? t : found;
    }
    return found;
}

/* How many iterations of each loop a piece of at most `most` has: all of the inner ones, some of one, one of those around it. */
static void choose_each(Pieces *p, int64_t most)
{
    int64_t inside = 1;
    for (uint32_t d = p->n_loops; d-- > 0;) {
        int64_t trips = loop_trips(p->loop[d]), fit = most / inside;
        int64_t runs = fit < 1 ? trips : (trips + fit - 1) / fit;
        p->each[d] = (trips + runs - 1) / runs;
        inside = p->each[d] < trips ? INT64_MAX : sat_mul(inside, trips);
    }
}

/* Does the statement set what a loop may add to, all of it? */
static bool is_fill(const Kernel *k, const Stmt *s)
{
    const Buffer *b = s->kind == STMT_TILE ? &k->bufs.at[s->dst] : NULL;
    bool fill = b != NULL && s->fold == OP_COPY && s->value->kind == EXPR_CONST &&
                s->n_index == b->rank;
    for (uint32_t d = 0; fill && d < b->rank; d++) {
        const Range *r = &s->index[d].range;
        fill = range_is_whole(r) && dim_eq(r->limit, b->extent[d]) && r->limit.sym < 0 &&
               affine_is(s->at[d], s->index[d].var);
    }
    return fill;
}

/* Is the statement one of the folds? */
static bool is_fold(const Pieces *p, const Stmt *s, uint32_t *which)
{
    bool is = false;
    for (uint32_t i = 0; i < p->n_sums; i++) {
        is |= p->sum[i].fold == s;
        *which = p->sum[i].fold == s ? i : *which;
    }
    return is;
}

/* The loops of which each stands alone in the one around it, and whether a fold is further in; false: there are too few iterations, or
 * too many. */
static bool find_loops(Pieces *p, const Stmt *loop)
{
    int64_t count = 1;
    p->n_loops = 0;
    for (const Stmt *at = loop; is_plain(at); at = at->body[0]) {
        count = sat_mul(count, loop_trips(at));
        p->loop[p->n_loops++] = at;
        if (at->n_body != 1 || p->n_loops == LOOP_DEPTH_LIMIT) {
            break;
        }
    }
    uint32_t inside = 0, which = 0;
    const Stmt *inner = p->n_loops > 0 ? p->loop[p->n_loops - 1] : loop;
    for (uint32_t i = 0; i < inner->n_body; i++) {
        inside += is_fold(p, inner->body[i], &which);
    }
    int64_t each = p->wanted > 0 ? (count + p->wanted - 1) / p->wanted : 1;
    choose_each(p, each);
    p->nested = inside < p->n_sums;
    return count > 1 && count / each <= (p->arrays ? ARRAYS_MOST : PIECES_MOST);
}

/* Fills of `n` values and a loop that adds to each; false where they are none. */
static bool find(Pieces *p, Stmt *const *fills, uint32_t n, const Stmt *loop)
{
    p->n_sums = 0;
    p->arrays = false;
    for (uint32_t i = 0; i < n && is_plain(loop); i++) {
        const Stmt *fold = only_fold(loop, fills[i]->dst);
        if (fold == NULL) {
            return false;
        }
        p->arrays |= p->to->bufs.at[fold->dst].rank > 0;
        p->sum[p->n_sums++] = (LoopSum){fills[i], fold, 0};
    }
    return p->n_sums > 0 && find_loops(p, loop);
}

/* ---- smaller tiles ---- */

/* A range that is a tile of the loop, as one of its smaller tiles; false: another use of the loop's variable. */
static bool narrow(Range *r, const Stmt *loop, int64_t step)
{
    bool uses = false;
    for (uint32_t i = 0; i < r->start.n; i++) {
        uses |= r->start.term[i].var == loop->var;
    }
    if (!uses || r->span == 1) {
        return true;
    }
    bool tile = affine_is_var(r->start) && r->span == loop->step;
    r->span = step;
    return tile;
}

/* The statements of a loop of smaller steps; null where a tile is more to them than a step. */
static Stmt **narrowed(Arena *a, Stmt *const *body, uint32_t n, const Stmt *loop, int64_t step)
{
    Stmt **out = (Stmt **)arena_array(a, n, sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = out[i] = arena_copy(a, body[i], sizeof *body[i]);
        bool ok = s->kind != STMT_FOR || narrow(&s->range, loop, step);
        if (stmt_has_body(s)) {
            s->body = narrowed(a, s->body, s->n_body, loop, step);
            ok = ok && s->body != NULL;
        }
        TileIndex *index =
            s->n_index == 0 ? NULL : arena_copy(a, s->index, s->n_index * sizeof *s->index);
        for (uint32_t x = 0; s->kind == STMT_TILE && x < s->n_index; x++) {
            ok = ok && narrow(&index[x].range, loop, step);
        }
        s->index = index;
        if (s->kind == STMT_TILE) {
            s->schedule = NULL; /* it was for the larger tile */
        }
        if (!ok) {
            return NULL;
        }
    }
    return out;
}

/* The loop nest with the largest step, of its outer loops, halved; null: none can be. */
static Stmt *halved(Pieces *p, const Stmt *loop)
{
    const Stmt *widest = NULL;
    for (uint32_t d = 0; d < p->n_loops; d++) {
        widest = widest == NULL || p->loop[d]->step > widest->step ? p->loop[d] : widest;
    }
    if (widest == NULL || widest->step < 2) {
        return NULL;
    }
    Stmt *out = arena_copy(p->arena, loop, sizeof *loop), *at = out;
    while (at->var != widest->var) { /* the loops around it stand alone in each other */
        Stmt *inner = arena_copy(p->arena, at->body[0], sizeof *at);
        at->body = arena_copy(p->arena, &inner, sizeof(Stmt *));
        at = inner;
    }
    int64_t step = (widest->step + 1) / 2;
    at->body = narrowed(p->arena, at->body, at->n_body, widest, step);
    at->step = step;
    return at->body == NULL ? NULL : out;
}

/* ---- the pieces ---- */

/* The fold with other sums in place of each. */
typedef struct OtherSums {
    BufRef buf[SUMS_MOST];
    const Affine *at[SUMS_MOST]; /* null: as it is */
    bool begins;
} OtherSums;

static Stmt *with_sums(const Pieces *p, const Stmt *fold, uint32_t which, const OtherSums *to)
{
    Stmt *out = arena_copy(p->arena, fold, sizeof *fold);
    out->dst = to->buf[which];
    out->at = to->at[which] != NULL ? to->at[which] : fold->at;
    out->begins = to->begins;
    return out;
}

/* The position of the piece, before those of the array. */
static const Affine *at_piece(const Pieces *p, Affine piece, const Stmt *fill)
{
    uint32_t rank = p->to->bufs.at[fill->dst].rank;
    Affine *at = ARENA_ARRAY(p->arena, rank + 1, Affine);
    at[0] = piece;
    for (uint32_t d = 0; d < rank; d++) {
        at[1 + d] = fill->at[d];
    }
    return at;
}

/* The innermost body, with other sums. */
static void put_body(Pieces *p, const Stmt *inner, const OtherSums *sums, Stmt *to)
{
    VEC(Stmt *) body = {0};
    for (uint32_t i = 0; i < inner->n_body; i++) {
        uint32_t which = 0;
        Stmt *s = inner->body[i];
        if (is_fold(p, s, &which)) {
            s = with_sums(p, s, which, sums);
        } else if (p->nested && stmt_has_body(s)) {
            const Stmt *old = s;
            s = arena_copy(p->arena, s, sizeof *s);
            put_body(p, old, sums, s);
        }
        vec_push(p->arena, &body, s);
    }
    to->body = body.at;
    to->n_body = body.n;
}

/* The loops from their values on, each with its iterations of a piece. */
static Stmt *piece_loops(Pieces *p, const int64_t *value, const OtherSums *sums)
{
    Stmt *outer = NULL, *first = NULL;
    for (uint32_t d = 0; d < p->n_loops; d++) {
        const Stmt *old = p->loop[d];
        int64_t end = sat_add(value[d], sat_mul(p->each[d], old->step));
        end = end < old->range.limit.n ? end : old->range.limit.n;
        Stmt *s = arena_copy(p->arena, old, sizeof *old);
        s->range = (Range){affine_const(value[d]), 0, true, dim_fixed(end)};
        if (d + 1 == p->n_loops) {
            put_body(p, old, sums, s);
        }
        if (outer == NULL) {
            first = s;
        } else {
            outer->body = arena_copy(p->arena, &s, sizeof(Stmt *));
        }
        outer = s;
    }
    return first;
}

/* Several iterations add up on chip, to what then goes to its place. */
static Stmt *piece_block(Pieces *p, const int64_t *value)
{
    Arena *a = p->arena;
    VEC(Stmt *) body = {0};
    OtherSums sums = {.begins = false};
    for (uint32_t i = 0; i < p->n_sums; i++) {
        const Stmt *fill = p->sum[i].fill;
        const Buffer old = p->to->bufs.at[fill->dst];
        BufRef sum = kernel_buffer(p->to, &p->ctx->syms, "sum", old.dtype, SPACE_TILE, old.rank,
                                   old.extent);
        Stmt *alloc = ARENA_NEW(a, Stmt), *zero = arena_copy(a, fill, sizeof *fill);
        *alloc = (Stmt){.kind = STMT_ALLOC, .span = fill->span, .buf = sum};
        zero->dst = sum;
        vec_push(a, &body, alloc);
        vec_push(a, &body, zero);
        sums.buf[i] = sum;
    }
    vec_push(a, &body, piece_loops(p, value, &sums));
    for (uint32_t i = 0; i < p->n_sums; i++) {
        const Stmt *fill = p->sum[i].fill;
        Stmt *copy = arena_copy(a, fill, sizeof *fill);
        copy->dst = p->sum[i].sums;
        copy->at = at_piece(p, affine_const(p->n), fill);
        copy->value = expr_load(a, p->to, sums.buf[i], fill->at);
        vec_push(a, &body, copy);
    }
    Stmt *block = ARENA_NEW(a, Stmt);
    *block = (Stmt){.kind = STMT_BLOCK, .span = p->sum[0].fill->span, .body = body.at};
    block->n_body = body.n;
    return block;
}

static void put_piece(Pieces *p, const int64_t *value)
{
    bool several = p->nested || p->arrays;
    for (uint32_t d = 0; d < p->n_loops; d++) {
        several |= p->each[d] > 1;
    }
    OtherSums sums = {.begins = true};
    for (uint32_t i = 0; i < p->n_sums; i++) {
        sums.buf[i] = p->sum[i].sums;
        sums.at[i] = at_piece(p, affine_const(p->n), p->sum[i].fill);
    }
    vec_push(p->arena, &p->out, several ? piece_block(p, value) : piece_loops(p, value, &sums));
    p->n++;
}

/* The loop in the body that begins with the one around it, or null. */
static const Stmt *loop_from(const Stmt *loop)
{
    const Stmt *found = NULL;
    for (uint32_t i = 0; i < loop->n_body; i++) {
        const Stmt *s = loop->body[i];
        bool from = s->kind == STMT_FOR && s->range.span == 0 && s->range.limit.sym < 0 &&
                    affine_coef(s->range.start, loop->var) == 1;
        found = from ? s : found;
    }
    return found;
}

/* Pieces of a loop whose iterations get shorter, with about as much to do in each. */
static void put_shorter(Pieces *p, const Stmt *inner)
{
    const Stmt *loop = p->loop[0];
    int64_t value = loop->range.start.base, step = loop->step, end = loop->range.limit.n;
    int64_t most = 0;
    for (int64_t v = value; v < end && p->wanted > 0; v += step) {
        most += inner->range.limit.n - v;
    }
    most = p->wanted > 0 ? most / p->wanted : 0; /* else one iteration each */
    while (value < end) {
        int64_t all = 0;
        p->each[0] = 0;
        for (int64_t v = value; v < end; v += step) {
            all += inner->range.limit.n - v;
            if (p->each[0] > 0 && all > most) {
                break;
            }
            p->each[0]++;
        }
        put_piece(p, &value);
        value += p->each[0] * step;
    }
}

static void put_pieces(Pieces *p)
{
    int64_t value[LOOP_DEPTH_LIMIT];
    const Stmt *inner = p->n_loops == 1 ? loop_from(p->loop[0]) : NULL;
    if (inner != NULL) {
        put_shorter(p, inner);
        return;
    }
    for (uint32_t d = 0; d < p->n_loops; d++) {
        value[d] = p->loop[d]->range.start.base;
    }
    for (bool more = true; more;) {
        put_piece(p, value);
        uint32_t d = p->n_loops;
        for (more = false; d > 0 && !more; d--) {
            const Stmt *l = p->loop[d - 1];
            value[d - 1] += p->each[d - 1] * l->step;
            more = value[d - 1] < l->range.limit.n;
            value[d - 1] = more ? value[d - 1] : l->range.start.base;
        }
    }
}

/* `n` values like the buffer. */
static Dim *extent_of(const Pieces *p, const Buffer *b, int64_t n)
{
    Dim *extent = ARENA_ARRAY(p->arena, b->rank + 1, Dim);
    extent[0] = dim_fixed(n);
    for (uint32_t d = 0; d < b->rank; d++) {
        extent[1 + d] = b->extent[d];
    }
    return extent;
}

/* The value, of all pieces. */
static void put_total(Pieces *p, const LoopSum *sum, uint32_t at)
{
    Arena *a = p->arena;
    const Stmt *fill = sum->fill;
    const Buffer *b = &p->to->bufs.at[fill->dst];
    TileIndex *index = ARENA_ARRAY(a, b->rank + 1, TileIndex);
    for (uint32_t d = 0; d < b->rank; d++) {
        index[d] = fill->index[d];
    }
    index[b->rank] = (TileIndex){.var = kernel_var(p->to, &p->ctx->syms, "piece", false),
                                 .range = {affine_const(0), 0, true, dim_fixed(p->n)}};
    p->to->bufs.at[sum->sums].extent = extent_of(p, b, p->n);
    Stmt *alloc = ARENA_NEW(a, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = sum->fold->span, .buf = sum->sums};
    vec_push(a, &p->out, NULL);
    memmove(p->out.at + at + 1, p->out.at + at, (p->out.n - 1 - at) * sizeof(Stmt *));
    p->out.at[at] = alloc;
    Stmt *total = arena_copy(a, sum->fold, sizeof *sum->fold);
    total->n_index = b->rank + 1;
    total->index = index;
    total->at = fill->at;
    total->schedule = NULL;
    total->begins = true;
    total->value =
        expr_load(a, p->to, sum->sums, at_piece(p, affine_var(a, index[b->rank].var), fill));
    vec_push(a, &p->out, total);
}

/* The loop nest in pieces, with what they add up to behind them; false: its steps cannot be halved so often. */
static bool put_loop(Pieces *p, Stmt *const *fills, uint32_t n, const Stmt *loop,
                     uint32_t halvings)
{
    for (uint32_t h = 0; h < halvings; h++) {
        loop = halved(p, loop);
        if (loop == NULL || !find(p, fills, n, loop)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < p->n_sums; i++) {
        const Buffer old = p->to->bufs.at[fills[i]->dst];
        p->sum[i].sums = kernel_buffer(p->to, &p->ctx->syms, "sums", old.dtype, SPACE_WORKSPACE,
                                       old.rank + 1, extent_of(p, &old, 1));
    }
    p->n = 0;
    uint32_t at = p->out.n;
    put_pieces(p);
    for (uint32_t i = 0; i < p->n_sums; i++) {
        put_total(p, &p->sum[i], at);
    }
    return true;
}

Kernel *tile_pieces(Ctx *ctx, Arena *arena, const Kernel *k, int64_t pieces, uint32_t halvings,
                    bool **sums)
{
    Pieces p = {.ctx = ctx, .arena = arena, .to = kernel_like(arena, k), .wanted = pieces};
    bool any = false;
    VEC(BufRef) made = {0};
    for (uint32_t i = 0; i < k->n_body; i++) {
        uint32_t n = 0;
        while (n < SUMS_MOST && i + n < k->n_body && is_fill(k, k->body[i + n])) {
            n++;
        }
        bool found = false;
        for (; n > 0 && i + n < k->n_body && !found; n -= !found) {
            found =
                k->body[i + n]->kind == STMT_FOR && find(&p, k->body + i, n, k->body[i + n]);
        }
        if (!found) {
            vec_push(arena, &p.out, k->body[i]);
            continue;
        }
        if (!put_loop(&p, k->body + i, n, k->body[i + n], halvings)) {
            return NULL;
        }
        for (uint32_t m = 0; m < p.n_sums; m++) {
            vec_push(arena, &made, p.sum[m].sums);
        }
        i += n;
        any = true;
    }
    if (!any) {
        return NULL;
    }
    *sums = ARENA_ARRAY(arena, p.to->bufs.n + 1, bool);
    for (uint32_t i = 0; i < made.n; i++) {
        (*sums)[made.at[i]] = true;
    }
    p.to->body = p.out.at;
    p.to->n_body = p.out.n;
    return p.to;
}
