/* SPDX-License-Identifier: Apache-2.0 */
/* An index that runs over short rows of an argument, and along values on chip, as two, so that each partition has neighbouring rows, which a
 * DMA takes as one:
 *
 *     @S[k] = .. @K[k,d] ..           of k in 0..128*m     ->   @S[c,p] = .. @K[m*p+c,d] ..       of c in 0..m, p in 0..128
 *     @M[] max= @S[k]                                           @M[] max= @S[c,p]
 *
 * The values take their positions in another order, and so do sums over them. All statements that walk a dimension of such a value walk all of
 * it, by one index: these, and the dimensions, are one class, which is split or not. short_rows.c has sums of arguments alone. */
#include "base/union_find.h"
#include "tile/tile.h"
#include "loop/copy.h"
#include "loop/walk.h"

#define ROW_BYTES (64 << 10) /* of a partition, of the longer row */

/* What is known of a class of dimensions of values and indices of statements. */
typedef struct Class {
    int64_t extent; /* positions */
    bool bad;       /* not to be split */
    bool value;     /* it has a dimension of a value on chip, */
    bool rows;      /* and an index over short rows */
} Class;

typedef struct LongRows {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    int64_t granule;      /* bytes: a shorter row takes as long as one of these */
    uint32_t *parent;     /* of dimensions of all buffers, then of indices of all statements */
    Class *of;            /* the same, at the root of each class */
    uint32_t *first;      /* [bufs] */
    uint32_t n_dims, now; /* now: the first index of the statement at hand */
    const Stmt *s;
    bool refused;
} LongRows;

static void join(LongRows *x, uint32_t i, uint32_t j)
{
    if (union_join(x->parent, &i, &j)) {
        Class *a = &x->of[i], *b = &x->of[j];
        a->bad |= b->bad || a->extent != b->extent;
        a->value |= b->value;
        a->rows |= b->rows;
    }
}

static Class *class_at(LongRows *x, uint32_t i)
{
    return &x->of[union_find(x->parent, i)];
}

/* Is it split? */
static bool is_split(LongRows *x, uint32_t i)
{
    const Class *c = class_at(x, i);
    return !c->bad && c->value && c->rows && c->extent % TILE_ROWS == 0 &&
           c->extent > TILE_ROWS;
}

/* The one index of the statement that a position moves with, step by step; n_index: there is none. */
static uint32_t index_of(const LongRows *x, Affine at)
{
    uint32_t found = x->s->n_index, uses = 0;
    for (uint32_t i = 0; i < x->s->n_index; i++) {
        int64_t coef = affine_coef(at, x->s->index[i].var);
        uses += coef != 0;
        found = coef == 1 ? i : found;
    }
    return uses == 1 ? found : x->s->n_index;
}

/* Positions of an index, or 0: not the same in each iteration, or not all. */
static int64_t index_extent(const TileIndex *i)
{
    const Range *r = &i->range;
    return i->window != NULL            ? 0
           : range_is_whole(r)          ? (r->limit.sym < 0 ? r->limit.n : 0)
           : r->span > 0 && !r->clipped ? r->span
                                        : 0;
}

/* Does the index walk all of the dimension, from its first position on? */
static bool walks_all(const LongRows *x, Affine at, uint32_t index)
{
    const TileIndex *i = &x->s->index[index];
    Affine first = affine_subst(x->arena, at, i->var, i->range.start);
    return first.n == 0 && first.base == 0;
}

/* An access to a value on chip, or in memory for a while. */
static void note_value(LongRows *x, BufRef buf, const Affine *at)
{
    for (uint32_t d = 0; d < x->to->bufs.at[buf].rank; d++) {
        uint32_t index = index_of(x, at[d]), dim = x->first[buf] + d;
        if (index < x->s->n_index && walks_all(x, at[d], index)) {
            join(x, dim, x->now + index);
            continue;
        }
        class_at(x, dim)->bad = true;
        for (uint32_t i = 0; i < x->s->n_index; i++) {
            if (affine_uses(at[d], x->s->index[i].var)) {
                class_at(x, x->now + i)->bad = true;
            }
        }
    }
}

/* Rows of an argument behind an index that are read whole, and are short. */
static void note_argument(LongRows *x, const Expr *load)
{
    const Buffer *b = &x->to->bufs.at[load->buf];
    int64_t bytes = dtype_bytes(b->dtype);
    for (uint32_t d = b->rank; d-- > 0;) {
        uint32_t index = index_of(x, load->at[d]);
        if (index == x->s->n_index) {
            return;
        }
        int64_t extent = index_extent(&x->s->index[index]);
        if (d + 1 < b->rank && bytes < x->granule && extent > TILE_ROWS &&
            bytes * (extent / TILE_ROWS) <= ROW_BYTES) {
            class_at(x, x->now + index)->rows = true;
        }
        if (extent != b->extent[d].n || b->extent[d].sym >= 0) {
            return; /* rows end here */
        }
        bytes = sat_mul(bytes, extent);
    }
}

static void note_statement(LongRows *x)
{
    const Stmt *s = x->s;
    ExprWalk w;
    x->refused |= s->n_first > 0 || s->places > 0 || s->sums > 0;
    bool given = s->schedule != NULL && s->schedule->given;
    for (uint32_t i = 0; i < s->n_index; i++) {
        class_at(x, x->now + i)->bad |=
            given || index_extent(&s->index[i]) == 0 || s->scan == i + 1;
    }
    if (x->to->bufs.at[s->dst].space != SPACE_ARGUMENT) {
        note_value(x, s->dst, s->at);
    }
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        BufRef buf = expr_buffer(e);
        if (buf == BUF_NONE) {
            continue;
        }
        x->refused |= e->kind != EXPR_LOAD; /* positions of others */
        if (e->kind == EXPR_LOAD && x->to->bufs.at[buf].space != SPACE_ARGUMENT) {
            note_value(x, buf, e->at);
        } else if (e->kind == EXPR_LOAD) {
            note_argument(x, e);
        }
    }
}

/* The classes; false: none is split. */
static bool find_classes(LongRows *x)
{
    const Kernel *k = x->to;
    StmtWalk w;
    uint32_t n = 0, at = 0;
    x->first = ARENA_ARRAY(x->arena, k->bufs.n + 1, uint32_t);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        x->first[b] = n;
        n += k->bufs.at[b].rank;
    }
    x->n_dims = n;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        n += s->n_index;
    }
    x->parent = union_new(x->arena, n + 1);
    x->of = ARENA_ARRAY(x->arena, n + 1, Class);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        const Buffer *buf = &k->bufs.at[b];
        for (uint32_t d = 0; d < buf->rank; d++, at++) {
            bool fixed = buf->extent[d].sym < 0 && !buf->parts && buf->rank < TILE_DIMS / 2;
            x->of[at] = (Class){buf->extent[d].n, !fixed, true, false};
        }
    }
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        for (uint32_t i = 0; i < s->n_index; i++, at++) {
            x->of[at] = (Class){index_extent(&s->index[i]), false, false, false};
        }
    }
    x->now = x->n_dims;
    for (x->s = tile_first(&w, k->body, k->n_body); x->s != NULL && !x->refused;
         x->s = tile_next(&w)) {
        note_statement(x);
        x->now += x->s->n_index;
    }
    bool any = false;
    for (uint32_t i = 0; i < n && !x->refused; i++) {
        any |= is_split(x, i);
    }
    return any;
}

/* ---- the kernel anew ---- */

/* The two variables of an index that is split. */
typedef struct Two {
    VarRef var, c, p;
    Affine as; /* the index */
} Two;

typedef struct Splitting {
    LongRows *x;
    const Two *two; /* [n] */
    uint32_t n;
} Splitting;

/* Positions in a buffer: of a dimension that is split the two indices, elsewhere sums of them. */
static const Affine *split_at(const Splitting *p, BufRef buf, const Affine *at, uint32_t rank)
{
    LongRows *x = p->x;
    Affine *out = ARENA_ARRAY(x->arena, 2 * rank + 1, Affine);
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        const Two *of = NULL;
        bool local = buf != BUF_NONE && x->to->bufs.at[buf].space != SPACE_ARGUMENT;
        out[n] = at[d];
        for (uint32_t i = 0; i < p->n; i++) {
            of = affine_uses(at[d], p->two[i].var) ? &p->two[i] : of;
            out[n] = affine_subst(x->arena, out[n], p->two[i].var, p->two[i].as);
        }
        if (local && of != NULL && is_split(x, x->first[buf] + d)) {
            out[n++] = affine_var(x->arena, of->c);
            out[n] = affine_var(x->arena, of->p);
        }
        n++;
    }
    return out;
}

static void split_place(void *user, Expr *place)
{
    const Splitting *p = user;
    bool load = place->kind == EXPR_LOAD;
    BufRef buf = load ? place->buf : BUF_NONE;
    place->at = split_at(p, buf, place->at, load ? p->x->to->bufs.at[buf].rank : 1);
}

/* The labels of a role, with both parts of those that are split: what lies on partitions first. */
static void split_role(LongRows *x, const uint32_t *place, const bool *split, Schedule *roles,
                       uint32_t role)
{
    uint32_t n = roles->n_labels[role], m = 0;
    uint32_t *label = ARENA_ARRAY(x->arena, 2 * n + 1, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t old = roles->label[role][i];
        label[m++] = place[old] + (split[old] ? 1 : 0);
        if (split[old]) {
            label[m++] = place[old];
        }
    }
    roles->label[role] = label;
    roles->n_labels[role] = m;
}

/* The statement, whose first index is number `now`. */
static void split_statement(LongRows *x, Stmt *s, uint32_t now)
{
    Arena *a = x->arena;
    uint32_t n = s->n_index, m = 0;
    Two *two = ARENA_ARRAY(a, n + 1, Two);
    TileIndex *index = ARENA_ARRAY(a, 2 * n + 1, TileIndex);
    uint32_t *place = ARENA_ARRAY(a, n + 1, uint32_t), n_two = 0;
    bool *split = ARENA_ARRAY(a, n + 1, bool);
    for (uint32_t i = 0; i < n; i++) {
        place[i] = m;
        split[i] = is_split(x, now + i);
        index[m++] = s->index[i];
        if (!split[i]) {
            continue;
        }
        const char *name = x->to->vars.at[s->index[i].var].name->text;
        Two *t = &two[n_two++];
        int64_t each = class_at(x, now + i)->extent / TILE_ROWS;
        t->var = s->index[i].var;
        t->c = kernel_var(x->to, &x->ctx->syms, name, false);
        t->p = kernel_var(x->to, &x->ctx->syms, "p", false);
        t->as = affine_add(a, affine_var(a, t->c), each, affine_var(a, t->p));
        t->as = affine_add(a, t->as, 1, s->index[i].range.start);
        index[m] = index[m - 1];
        index[m - 1].var = t->c;
        index[m - 1].range = range_whole(dim_fixed(each));
        index[m].var = t->p;
        index[m++].range = range_whole(dim_fixed(TILE_ROWS));
    }
    if (n_two == 0) {
        return;
    }
    Splitting p = {x, two, n_two};
    s->value = expr_with_places(a, s->value, split_place, &p);
    s->at = split_at(&p, s->dst, s->at, x->to->bufs.at[s->dst].rank);
    s->index = index;
    s->n_index = m;
    s->scan = s->scan > 0 ? place[s->scan - 1] + 1 : 0; /* it is not split */
    if (s->schedule != NULL) {
        Schedule *roles = arena_copy(a, s->schedule, sizeof *roles);
        for (uint32_t role = 0; role < ROLE_COUNT; role++) {
            split_role(x, place, split, roles, role);
        }
        s->schedule = roles;
    }
}

static void split_buffer(LongRows *x, BufRef buf)
{
    Buffer *b = &x->to->bufs.at[buf];
    Dim *extent = ARENA_ARRAY(x->arena, 2 * b->rank + 1, Dim);
    uint32_t n = 0;
    for (uint32_t d = 0; d < b->rank && b->space != SPACE_ARGUMENT; d++) {
        extent[n++] = b->extent[d];
        if (is_split(x, x->first[buf] + d)) {
            extent[n - 1] = dim_fixed(b->extent[d].n / TILE_ROWS);
            extent[n++] = dim_fixed(TILE_ROWS);
        }
    }
    if (n > b->rank) {
        b->extent = extent;
        b->rank = n;
    }
}

const Kernel *tile_long_rows(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    LongRows x = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    x.granule = target->machine->level[0].granule;
    if (!find_classes(&x)) {
        return NULL;
    }
    uint32_t now = x.n_dims, n_bufs = x.to->bufs.n;
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, x.to->body, x.to->n_body); s != NULL;
         s = tile_next(&w)) {
        uint32_t n = s->n_index;
        split_statement(&x, (Stmt *)(uintptr_t)s, now);
        now += n;
    }
    for (BufRef b = 0; b < n_bufs; b++) {
        split_buffer(&x, b);
    }
    return kernel_numbered(arena, x.to);
}
