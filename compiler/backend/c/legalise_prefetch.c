/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `prefetch`. What the next iteration packs is asked for while this one multiplies. A block whose operand comes from memory is packed
 * and then multiplied; one after the other, the memory rests while the tiles run and the multipliers rest while panels are
 * filled. So each call of a register tile also walks over some lines of the operand's next block, one for each step of its
 * sum: they are near when they are packed. A hint: nothing is read.
 *
 * Lines of memory are 64 bytes, V elements. What one call asks for, a group, is of V positions of one label, for each step
 * of the sum:
 *
 *     memory runs along columns:   V columns; their line of each step of the sum
 *     memory runs along the sum:   V columns; for each V steps the line of each of them
 *
 * and groups follow each other as tiles do, over at most AHEAD_LABELS labels. Strides and extents must be numbers.
 *
 * Operands need not begin where a line does: those of NumPy and of malloc begin 16 bytes behind. V elements are then parts of two
 * lines, the first of which the block before has read, so the line of the last of them is asked for. */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "backend/c/product.h"
#include "loop/hints.h"
#include "op/affine.h"

/* ---- what is packed, and where it is used ---- */

/* A statement and the loops around it, outermost first. */
typedef struct Place {
    const Stmt *s;
    uint32_t n;
    const Stmt *loop[LOOP_DEPTH_LIMIT];
} Place;

typedef bool PlaceTest(const Kernel *k, const Stmt *s, BufRef panels);

static bool fills(const Kernel *k, const Stmt *s, BufRef panels)
{
    (void)k;
    return s->dst == panels && s->fold == OP_COPY && s->value->kind == EXPR_LOAD;
}

static bool multiplies(const Kernel *k, const Stmt *s, BufRef panels)
{
    Product p;
    return stmt_is_product(s) && product_of(k, s, &p) == NULL &&
           (p.a->buf == panels || p.b->buf == panels);
}

static bool place_find(const Kernel *k, Stmt *const *body, uint32_t n, BufRef panels,
                       PlaceTest *test, Place *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_TILE && test(k, s, panels)) {
            out->s = s;
            return true;
        }
        if (s->kind == STMT_FOR && s->threads == NULL && out->n < LOOP_DEPTH_LIMIT) {
            out->loop[out->n++] = s;
            if (place_find(k, s->body, s->n_body, panels, test, out)) {
                return true;
            }
            out->n--;
        }
    }
    return false;
}

/* The kernel, and the loops around a place. */
typedef struct Walk {
    const Kernel *k;
    Arena *arena;
    VEC(const Stmt *) loops;
    int64_t sets; /* of the cache that holds blocks */
    bool any;
} Walk;

/* ---- the walk ---- */

typedef struct Label {
    VarRef var;
    int64_t extent, step; /* elements of the operand for the next position */
} Label;

/* 0: an open extent says it. */
static int64_t operand_bytes(const Kernel *k, const Expr *load)
{
    int64_t n = dtype_bytes(load->dtype);
    for (uint32_t d = 0; d < k->bufs.at[load->buf].rank; d++) {
        Dim extent = k->bufs.at[load->buf].extent[d];
        n = extent.sym < 0 ? sat_mul(n, extent.n) : 0;
    }
    return n;
}

static int64_t loop_trips(const Stmt *loop)
{
    int64_t most =
        range_is_exact(loop->range) || loop->range.span > 0 ? range_most(loop->range) : 0;
    return (most + loop->step - 1) / loop->step;
}

/* The columns of what is packed, the one of which lines are taken first; the step of its sum. */
static bool labels_of(const Kernel *k, const Place *pack, Label *sum, Label *own, uint32_t *n)
{
    const Stmt *s = pack->s;
    bool sums = false;
    *n = 0;
    for (uint32_t i = 0; i < s->n_index + pack->n; i++) {
        const Stmt *loop = i < s->n_index ? NULL : pack->loop[pack->n - 1 - (i - s->n_index)];
        Label x = {.var = loop == NULL ? s->index[i].var : loop->var};
        Range r = loop == NULL ? s->index[i].range : loop->range;
        bool is_sum = affine_coef(s->at[0], x.var) != 0;
        bool known = range_is_exact(r) || r.span > 0; /* the last block may be shorter */
        x.extent = known && (loop == NULL || loop->step == 1) ? range_most(r) : 0;
        if (x.extent < 1 || !stride_known(k, s->value->buf, s->value->at, x.var, &x.step) ||
            x.step < 0 || x.step == INT64_MAX || (is_sum && sums) ||
            (!is_sum && *n == PREFETCH_LABELS)) {
            return false;
        }
        sums |= is_sum;
        *(is_sum ? sum : &own[(*n)++]) = x;
    }
    return sums && *n > 0;
}

static void label_first(Label *own, uint32_t i)
{
    Label x = own[i];
    own[i] = own[0];
    own[0] = x;
}

/* Would most of the lines have left the cache of `sets` that holds blocks before they are packed? Those that are a power of two apart meet
 * in few of its sets. */
#define WAYS  8
#define LINES 65536 /* of a block, at most */

static bool lines_meet(const Walk *w, const Prefetch *x, int64_t size, int64_t steps,
                       int64_t wide)
{
    uint8_t *in_set = ARENA_ARRAY(w->arena, (size_t)w->sets, uint8_t);
    int64_t groups = sat_mul(x->count[0], sat_mul(x->count[1], x->count[2])), kept = 0;
    if (sat_mul(groups, steps) > LINES) {
        return true;
    }
    for (int64_t g = 0; g < groups; g++) {
        int64_t at = g % x->count[0] * x->step[0] + g / x->count[0] % x->count[1] * x->step[1] +
                     g / x->count[0] / x->count[1] * x->step[2];
        for (int64_t k = 1; k <= steps; k++) {
            uint8_t *set = &in_set[(uint64_t)(size * at) / LINE_BYTES % (uint64_t)w->sets];
            kept += *set < WAYS;
            *set = (uint8_t)(*set + (*set < WAYS));
            at += k % wide == 0 ? x->turn : x->each;
        }
    }
    return kept * 4 < groups * steps;
}

static bool walk_of(const Walk *w, const Place *pack, int64_t calls, Prefetch *out)
{
    Label sum = {0}, own[PREFETCH_LABELS];
    uint32_t n = 0;
    int64_t size = dtype_bytes(pack->s->value->dtype), wide = LINE_BYTES / size, groups = 1;
    if (!labels_of(w->k, pack, &sum, own, &n)) {
        return false;
    }
    bool along = false;
    for (uint32_t i = 0; i < n && !along; i++) {
        along = own[i].step == 1;
        label_first(own, along ? i : 0);
    }
    for (uint32_t i = 1; i < n && !along; i++) {
        label_first(own, own[i].extent > own[0].extent ? i : 0);
    }
    if (!along && (sum.step != 1 || own[0].extent < wide)) {
        return false;
    }
    for (uint32_t i = 0; i < PREFETCH_LABELS; i++) {
        int64_t each = i == 0 ? wide : 1;
        out->count[i] = i < n ? (own[i].extent + each - 1) / each : 1;
        out->step[i] = i < n ? each * own[i].step : 0;
        groups = sat_mul(groups, out->count[i]);
    }
    int64_t run = along ? own[0].extent : sum.extent;
    out->reach = (run < wide ? run : wide) - 1;
    out->n = n;
    out->each = along ? sum.step : own[0].step;
    out->turn = along ? out->each : wide - (wide - 1) * out->each;
    return prefetch_fits(out) && calls * 2 >= groups && calls <= AHEAD_MOST_CALLS * groups &&
           !lines_meet(w, out, size, sum.extent, wide);
}

/* ---- where the next block is ---- */

static const Affine *subst_all(const Walk *w, BufRef buf, const Affine *at, VarRef v, Affine by)
{
    uint32_t rank = w->k->bufs.at[buf].rank;
    Affine *out = ARENA_ARRAY(w->arena, (size_t)rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = affine_subst(w->arena, at[d], v, by);
    }
    return out;
}

static const Affine *next_iteration(const Walk *w, BufRef buf, const Affine *at,
                                    const Stmt *loop)
{
    Affine v = affine_var(w->arena, loop->var);
    return subst_all(w, buf, at, loop->var,
                     affine_add(w->arena, affine_const(loop->step), 1, v));
}

/* In the next iteration of the innermost loop that moves it; where that ends, of the one around. */
static bool find_next(const Walk *w, const Place *pack, Prefetch *out)
{
    const Stmt *s = pack->s, *loop[2];
    const Affine *at = s->value->at;
    uint32_t n = 0;
    out->buf = s->value->buf;
    for (uint32_t i = 0; i < s->n_index; i++) {
        at = subst_all(w, out->buf, at, s->index[i].var, s->index[i].range.start);
    }
    for (uint32_t i = pack->n; i-- > 0;) {
        at = subst_all(w, out->buf, at, pack->loop[i]->var, pack->loop[i]->range.start);
    }
    for (uint32_t i = w->loops.n; i-- > 0 && n < 2;) {
        if (access_uses(w->k, out->buf, at, w->loops.at[i]->var)) {
            loop[n++] = w->loops.at[i];
        }
    }
    if (n == 0) {
        return false;
    }
    out->at = next_iteration(w, out->buf, at, loop[0]);
    if (n == 2) {
        at = subst_all(w, out->buf, at, loop[0]->var, loop[0]->range.start);
        out->past = next_iteration(w, out->buf, at, loop[1]);
        out->var = loop[0]->var;
    }
    return true;
}

/* ---- what panels and products say ---- */

/* Null: tiles do not ask for what fills the buffer of body[0] next. */
static const Prefetch *prefetch_of(const Walk *w, Stmt *const *body, uint32_t n)
{
    const Kernel *k = w->k;
    BufRef panels = body[0]->buf;
    const Buffer *b = &k->bufs.at[panels];
    Place pack = {0}, use = {0};
    if (b->panels == 0 || dtype_is_complex(b->dtype) ||
        !place_find(k, body + 1, n - 1, panels, fills, &pack) ||
        !place_find(k, body + 1, n - 1, panels, multiplies, &use)) {
        return NULL;
    }
    const Expr *load = pack.s->value;
    Space from = k->bufs.at[load->buf].space;
    int64_t calls = 1;
    for (uint32_t i = 0; i < use.n; i++) {
        calls = sat_mul(calls, loop_trips(use.loop[i]));
    }
    Prefetch *x = ARENA_NEW(w->arena, Prefetch);
    bool memory = from == SPACE_ARGUMENT || from == SPACE_WORKSPACE;
    return memory && load->dtype == b->dtype && operand_bytes(k, load) >= AHEAD_BYTES &&
                   walk_of(w, &pack, calls, x) && find_next(w, &pack, x)
               ? x
               : NULL;
}

static void mark_products(const Kernel *k, Stmt **body, uint32_t n, BufRef panels)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (stmt_has_body(s) && s->threads == NULL) {
            mark_products(k, s->body, s->n_body, panels);
        } else if (s->kind == STMT_TILE && multiplies(k, s, panels) &&
                   stmt_may_prefetch(k, s)) {
            s->prefetches = 1 + panels;
        }
    }
}

static bool prefetches(Stmt *const *body, uint32_t n, BufRef panels)
{
    StmtWalk w;
    const Stmt *s = tile_first(&w, body, n);
    while (s != NULL && s->prefetches != 1 + panels) {
        s = tile_next(&w);
    }
    return s != NULL;
}

/* Products that multiply two such panels prefetch for those that are filled more often. */
static void prefetch_block(Walk *w, Stmt **body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_ALLOC) {
            s->prefetch = prefetch_of(w, body + i, n - i);
        }
        if (s->prefetch != NULL) {
            mark_products(w->k, body + i + 1, n - i - 1, s->buf);
        }
        if (s->kind == STMT_FOR) {
            vec_push(w->arena, &w->loops, s);
        }
        if (stmt_has_body(s)) {
            prefetch_block(w, s->body, s->n_body);
        }
        w->loops.n -= s->kind == STMT_FOR;
    }
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->prefetch != NULL && !prefetches(body + i + 1, n - i - 1, s->buf)) {
            s->prefetch = NULL;
        }
        w->any |= s->prefetch != NULL;
    }
}

static bool has_prefetches(const Kernel *k)
{
    StmtWalk w;
    const Stmt *s = stmt_first(&w, k->body, k->n_body);
    while (s != NULL && s->prefetch == NULL && s->prefetches == 0) {
        s = stmt_next(&w);
    }
    return s != NULL;
}

bool stmt_may_prefetch(const Kernel *k, const Stmt *s)
{
    Product p;
    return stmt_is_product(s) && !s->specialised && product_of(k, s, &p) == NULL &&
           p.by == NULL && p.group == 0 && product_is_whole(k, &p) && !dtype_is_complex(p.t);
}

Kernel *c_prefetch(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)ctx;
    if (has_prefetches(k)) { /* a person has chosen */
        return (Kernel *)(uintptr_t)k;
    }
    Kernel *out = kernel_changeable(arena, k);
    Walk w = {.k = out,
              .arena = arena,
              .sets = machine_tile_capacity(target->machine) / (LINE_BYTES * WAYS)};
    prefetch_block(&w, out->body, out->n_body);
    return w.any ? out : (Kernel *)(uintptr_t)k;
}
