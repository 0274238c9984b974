/* SPDX-License-Identifier: Apache-2.0 */
/* A number that a loop adds up is the number of all its iterations, so the loop has no rows for
 * programs to share. Here each iteration, of all loops that stand alone in each other, makes a
 * sum of its own, an element of a row in memory, and a statement adds these up: then programs
 * can have as many iterations each as fit. */
#include "tile/tile.h"
#include "op/affine.h"

#include <string.h>

#define PIECES_MOST 4096

typedef struct Pieces {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    const Stmt *fold; /* into the number */
    const Stmt *loop[LOOP_DEPTH_LIMIT];
    uint32_t n_loops;
    int64_t each[LOOP_DEPTH_LIMIT]; /* iterations of a piece */
    BufRef sums;
    int64_t n;      /* pieces so far */
    int64_t wanted; /* pieces; 0: one for each iteration */
    bool nested;    /* is the fold in another loop of these? */
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

/* A fill of a number and a loop that adds to it: false where they are none. */
static bool find(Pieces *p, const Stmt *fill, const Stmt *loop)
{
    if (fill->kind != STMT_TILE || fill->fold != OP_COPY || fill->value->kind != EXPR_CONST ||
        p->to->bufs.at[fill->dst].rank != 0 || !is_plain(loop)) {
        return false;
    }
    p->fold = only_fold(loop, fill->dst);
    p->n_loops = 0;
    int64_t count = 1;
    for (const Stmt *at = loop; p->fold != NULL && is_plain(at); at = at->body[0]) {
        count = sat_mul(count, loop_trips(at));
        p->loop[p->n_loops++] = at;
        if (at->n_body != 1 || p->n_loops == LOOP_DEPTH_LIMIT) {
            break;
        }
    }
    bool inside = false;
    const Stmt *inner = p->n_loops > 0 ? p->loop[p->n_loops - 1] : loop;
    for (uint32_t i = 0; i < inner->n_body; i++) {
        inside |= inner->body[i] == p->fold;
    }
    int64_t each = p->wanted > 0 ? (count + p->wanted - 1) / p->wanted : 1;
    choose_each(p, each);
    p->nested = !inside;
    return p->fold != NULL && count > 1 && count / each <= PIECES_MOST;
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
    bool tile = r->start.n == 1 && r->start.base == 0 && r->start.term[0].coef == 1 &&
                r->span == loop->step;
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

static Stmt *with_dst(Pieces *p, BufRef to, const Affine *at, bool begins)
{
    Stmt *out = arena_copy(p->arena, p->fold, sizeof *p->fold);
    out->dst = to;
    out->at = at;
    out->begins = begins;
    return out;
}

static const Affine *at_piece(Pieces *p)
{
    Affine *at = ARENA_NEW(p->arena, Affine);
    *at = affine_const(p->n);
    return at;
}

/* The innermost body, with another sum. */
static void put_body(Pieces *p, const Stmt *inner, Stmt *sum, Stmt *to)
{
    VEC(Stmt *) body = {0};
    for (uint32_t i = 0; i < inner->n_body; i++) {
        Stmt *s = inner->body[i] == p->fold ? sum : inner->body[i];
        if (p->nested && stmt_has_body(s)) {
            const Stmt *old = s;
            s = arena_copy(p->arena, s, sizeof *s);
            put_body(p, old, sum, s);
        }
        vec_push(p->arena, &body, s);
    }
    to->body = body.at;
    to->n_body = body.n;
}

/* The loops from their values on, each with its iterations of a piece. */
static Stmt *piece_loops(Pieces *p, const int64_t *value, Stmt *sum)
{
    Stmt *outer = NULL, *first = NULL;
    for (uint32_t d = 0; d < p->n_loops; d++) {
        const Stmt *old = p->loop[d];
        int64_t end = sat_add(value[d], sat_mul(p->each[d], old->step));
        end = end < old->range.limit.n ? end : old->range.limit.n;
        Stmt *s = arena_copy(p->arena, old, sizeof *old);
        s->range = (Range){affine_const(value[d]), 0, true, dim_fixed(end)};
        if (d + 1 == p->n_loops) {
            put_body(p, old, sum, s);
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

/* Several iterations add up to a number on chip, which then goes to its place. */
static Stmt *piece_block(Pieces *p, const Stmt *fill, const int64_t *value)
{
    Arena *a = p->arena;
    const Buffer *old = &p->to->bufs.at[fill->dst];
    BufRef sum = kernel_buffer(p->to, &p->ctx->syms, "sum", old->dtype, SPACE_TILE, 0, NULL);
    VEC(Stmt *) body = {0};
    Stmt *alloc = ARENA_NEW(a, Stmt), *zero = arena_copy(a, fill, sizeof *fill);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = fill->span, .buf = sum};
    zero->dst = sum;
    vec_push(a, &body, alloc);
    vec_push(a, &body, zero);
    vec_push(a, &body, piece_loops(p, value, with_dst(p, sum, fill->at, false)));
    Stmt *copy = arena_copy(a, zero, sizeof *zero);
    copy->dst = p->sums;
    copy->at = at_piece(p);
    copy->value = expr_load(a, p->to, sum, fill->at);
    vec_push(a, &body, copy);
    Stmt *block = ARENA_NEW(a, Stmt);
    *block = (Stmt){.kind = STMT_BLOCK, .span = fill->span, .body = body.at, .n_body = body.n};
    return block;
}

static void put_piece(Pieces *p, const Stmt *fill, const int64_t *value)
{
    bool several = p->nested;
    for (uint32_t d = 0; d < p->n_loops; d++) {
        several |= p->each[d] > 1;
    }
    Stmt *s = several ? piece_block(p, fill, value)
                      : piece_loops(p, value, with_dst(p, p->sums, at_piece(p), true));
    vec_push(p->arena, &p->out, s);
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
static void put_shorter(Pieces *p, const Stmt *fill, const Stmt *inner)
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
        put_piece(p, fill, &value);
        value += p->each[0] * step;
    }
}

static void put_pieces(Pieces *p, const Stmt *fill)
{
    int64_t value[LOOP_DEPTH_LIMIT];
    const Stmt *inner = p->n_loops == 1 ? loop_from(p->loop[0]) : NULL;
    if (inner != NULL) {
        put_shorter(p, fill, inner);
        return;
    }
    for (uint32_t d = 0; d < p->n_loops; d++) {
        value[d] = p->loop[d]->range.start.base;
    }
    for (bool more = true; more;) {
        put_piece(p, fill, value);
        uint32_t d = p->n_loops;
        for (more = false; d > 0 && !more; d--) {
            const Stmt *l = p->loop[d - 1];
            value[d - 1] += p->each[d - 1] * l->step;
            more = value[d - 1] < l->range.limit.n;
            value[d - 1] = more ? value[d - 1] : l->range.start.base;
        }
    }
}

/* The number, of all pieces. */
static void put_total(Pieces *p, uint32_t at)
{
    Ctx *ctx = p->ctx;
    Arena *a = p->arena;
    TileIndex *index = ARENA_NEW(a, TileIndex);
    index->var = kernel_var(p->to, &ctx->syms, "piece", false);
    index->range = (Range){affine_const(0), 0, true, dim_fixed(p->n)};
    Dim *extent = ARENA_NEW(a, Dim);
    *extent = dim_fixed(p->n);
    p->to->bufs.at[p->sums].extent = extent;
    Stmt *alloc = ARENA_NEW(a, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = p->fold->span, .buf = p->sums};
    vec_push(a, &p->out, NULL);
    memmove(p->out.at + at + 1, p->out.at + at, (p->out.n - 1 - at) * sizeof(Stmt *));
    p->out.at[at] = alloc;
    Affine *load_at = ARENA_NEW(a, Affine);
    *load_at = affine_var(a, index->var);
    Stmt *total = arena_copy(a, p->fold, sizeof *p->fold);
    total->n_index = 1;
    total->index = index;
    total->schedule = NULL;
    total->begins = true;
    total->value = expr_load(a, p->to, p->sums, load_at);
    vec_push(a, &p->out, total);
}

Kernel *tile_pieces(Ctx *ctx, Arena *arena, const Kernel *k, int64_t pieces, uint32_t halvings,
                    bool **sums)
{
    Pieces p = {.ctx = ctx, .arena = arena, .to = kernel_like(arena, k), .wanted = pieces};
    bool any = false;
    VEC(BufRef) made = {0};
    for (uint32_t i = 0; i < k->n_body; i++) {
        const Stmt *next = i + 1 < k->n_body ? k->body[i + 1] : NULL;
        if (next == NULL || !find(&p, k->body[i], next)) {
            vec_push(arena, &p.out, k->body[i]);
            continue;
        }
        const Stmt *fill = k->body[i++];
        for (uint32_t h = 0; h < halvings; h++) {
            const Stmt *less = halved(&p, next);
            if (less == NULL || !find(&p, fill, less)) {
                return NULL;
            }
            next = less;
        }
        Dim none = dim_fixed(1);
        p.sums = kernel_buffer(p.to, &ctx->syms, "sums", p.to->bufs.at[fill->dst].dtype,
                               SPACE_WORKSPACE, 1, &none);
        p.n = 0;
        uint32_t at = p.out.n;
        put_pieces(&p, fill);
        put_total(&p, at);
        vec_push(arena, &made, p.sums);
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
