/* SPDX-License-Identifier: Apache-2.0 */
/* Half of a kernel, for one of two cores: an index that every result has, and no sum runs over, takes half of its values (of an odd
 * number the first half has one more). From a
 * dimension of a result the index is followed through statements: to indices and loops at which that dimension is read or
 * written, to other values that have it, until nothing is added. Values without it both cores compute for themselves.
 *
 * The half is lowered like any kernel; cores.c then says where in memory each core's half lies. Blocks on chip and in the
 * workspace have half of the extent. A parameter is read at the index or without it (A of A[i,k] * A[j,k] both ways): each way but
 * the first reads a parameter of its own, which is the same tensor. */
#include "backend/nki/halve.h"
#include "loop/walk.h"

#include <string.h>

/* A loop or a statement. */
typedef struct Item {
    const Stmt *stmt;
    bool loop;   /* is it one that is halved? */
    bool *index; /* [n_index] are these? */
    /* what it has in the half */
    Range range;
    const TileIndex *half;
    const Expr *value;
} Item;

/* One way in which a parameter is read: how far the halves of what is read lie from each other, and what of the extent is not read in
 * this one, by dimension. */
typedef struct Way {
    BufRef buf, own; /* own: in the half */
    int64_t apart[NKI_DIMS], unread[NKI_DIMS];
} Way;

typedef struct Halving {
    Ctx *ctx;
    Arena *arena;
    const Kernel *k;
    VEC(Item) items;                    /* loops and statements in the order of the text */
    uint32_t at;                        /* number of the next one, in a walk */
    Item **open;                        /* [vars] the loop around that has the variable */
    uint32_t *depth;                    /* [bufs] halved loops around its allocation */
    Item *around[LOOP_DEPTH_LIMIT + 1]; /* halved ones */
    uint32_t n_around;
    bool **dim; /* [bufs][rank] of all but inputs: halved */
    bool changed;
    bool second; /* this is the second half */
    bool uneven; /* the first one is longer */
    VEC(Way) ways;
    const char *why;
} Halving;

static bool cannot(Halving *h, const char *why)
{
    h->why = h->why == NULL ? why : h->why;
    return false;
}

static bool is_input(const Kernel *k, BufRef buf)
{
    const Buffer *b = &k->bufs.at[buf];
    return b->space == SPACE_ARGUMENT && b->param >= 0 &&
           (k->args.at[b->param].role == ARG_IN || k->args.at[b->param].role == ARG_SCALAR);
}

static bool is_output(const Kernel *k, BufRef buf)
{
    return k->bufs.at[buf].space == SPACE_ARGUMENT && !is_input(k, buf);
}

/* The mark of a variable at a statement or loop; null: it has none there. */
static bool *mark_of(const Halving *h, const Item *n, VarRef v)
{
    for (uint32_t i = 0; n->stmt->kind == STMT_TILE && i < n->stmt->n_index; i++) {
        if (n->stmt->index[i].var == v) {
            return &n->index[i];
        }
    }
    return h->open[v] == NULL ? NULL : &h->open[v]->loop;
}

static bool is_marked(const Halving *h, const Item *n, VarRef v)
{
    const bool *mark = mark_of(h, n, v);
    return mark != NULL && *mark;
}

static void mark(Halving *h, bool *at)
{
    h->changed |= !*at;
    *at = true;
}

/* How far a position moves with the halved index. */
static int64_t moves(const Halving *h, const Item *n, Affine at)
{
    int64_t by = 0;
    for (uint32_t t = 0; t < at.n; t++) {
        by += is_marked(h, n, at.term[t].var) ? at.term[t].coef : 0;
    }
    return by;
}

/* ---- the walk ---- */

typedef bool ItemVisit(Halving *h, Item *n);

static bool walk(Halving *h, Stmt *const *body, uint32_t n, ItemVisit *visit)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_ALLOC) {
            h->depth[s->buf] = h->n_around;
        } else if (s->kind == STMT_BLOCK) {
            if (!walk(h, s->body, s->n_body, visit)) {
                return false;
            }
        } else {
            Item *item = &h->items.at[h->at++];
            if (!visit(h, item)) {
                return false;
            }
            if (s->kind == STMT_FOR) {
                Item *before = h->open[s->var];
                h->open[s->var] = item;
                h->around[h->n_around] = item;
                bool halved = item->loop; /* the body may mark it */
                h->n_around += halved;
                bool ok = walk(h, s->body, s->n_body, visit);
                h->n_around -= halved;
                h->open[s->var] = before;
                if (!ok) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool walk_all(Halving *h, ItemVisit *visit)
{
    h->at = 0;
    h->n_around = 0;
    return walk(h, h->k->body, h->k->n_body, visit);
}

/* ---- following the index ---- */

/* A tile is of its loop's index. */
static void spread_range(Halving *h, const Item *n, const Range *r, bool *own)
{
    for (uint32_t t = 0; t < r->start.n; t++) {
        bool *other = mark_of(h, n, r->start.term[t].var);
        if (other != NULL && (*other || *own)) {
            mark(h, other);
            mark(h, own);
        }
    }
}

typedef void SpreadAccess(Halving *h, const Item *n, BufRef buf, const Affine *at);

/* Indices of a dimension that has it. */
static void spread_to_vars(Halving *h, const Item *n, BufRef buf, const Affine *at)
{
    for (uint32_t d = 0; d < h->k->bufs.at[buf].rank && !is_input(h->k, buf); d++) {
        bool plain = at[d].n == 1 && at[d].term[0].coef == 1;
        bool *var = plain && h->dim[buf][d] ? mark_of(h, n, at[d].term[0].var) : NULL;
        if (var != NULL) {
            mark(h, var);
        }
    }
}

/* Dimensions that move with it. */
static void spread_to_dims(Halving *h, const Item *n, BufRef buf, const Affine *at)
{
    for (uint32_t d = 0; d < h->k->bufs.at[buf].rank && !is_input(h->k, buf); d++) {
        if (moves(h, n, at[d]) != 0) {
            mark(h, &h->dim[buf][d]);
        }
    }
}

static void spread_accesses(Halving *h, const Item *n, SpreadAccess *to)
{
    ExprWalk w;
    to(h, n, n->stmt->dst, n->stmt->at);
    for (const Expr *e = load_first(&w, n->stmt->value); e != NULL; e = load_next(&w)) {
        to(h, n, e->buf, e->at);
    }
}

static bool spread_vars(Halving *h, Item *n)
{
    const Stmt *s = n->stmt;
    if (s->kind == STMT_FOR) {
        spread_range(h, n, &s->range, &n->loop);
        return true;
    }
    spread_accesses(h, n, spread_to_vars);
    for (uint32_t i = 0; i < s->n_index; i++) {
        spread_range(h, n, &s->index[i].range, &n->index[i]);
    }
    return true;
}

static bool spread_dims(Halving *h, Item *n)
{
    if (n->stmt->kind == STMT_TILE) {
        spread_accesses(h, n, spread_to_dims);
    }
    return true;
}

/* ---- may it be halved? ---- */

static const Range *range_of(const Item *n, VarRef v)
{
    if (n->stmt->kind == STMT_FOR) {
        return n->stmt->var == v ? &n->stmt->range : NULL;
    }
    for (uint32_t i = 0; i < n->stmt->n_index; i++) {
        if (n->stmt->index[i].var == v) {
            return &n->stmt->index[i].range;
        }
    }
    return NULL;
}

/* The range with all values of a halved index; null: it has none. */
static const Range *origin_of(Halving *h, const Item *n, VarRef v)
{
    const Range *r = range_of(n, v);
    r = r == NULL ? &h->open[v]->stmt->range : r;
    for (uint32_t steps = 0; r->start.n > 0 && steps < LOOP_DEPTH_LIMIT; steps++) {
        const Range *tile = r;
        const Item *loop = affine_is_var(tile->start) ? h->open[tile->start.term[0].var] : NULL;
        if (loop == NULL || tile->span != loop->stmt->step) {
            (void)cannot(h, "it has ranges that are no tiles of it");
            return NULL;
        }
        r = &loop->stmt->range;
    }
    bool all = r->start.n == 0 && r->start.base == 0 && r->span == 0 && r->limit.sym < 0;
    bool two = all && r->limit.n > 1;
    if (!two) {
        (void)cannot(h, all ? "its extent is 1" : "it has ranges that are no tiles of it");
    }
    h->uneven |= two && r->limit.n % 2 != 0;
    return two ? r : NULL;
}

/* Positions of a value in its halved dimensions are those of the index. */
static bool check_access(Halving *h, const Item *n, BufRef buf, const Affine *at)
{
    const Buffer *b = &h->k->bufs.at[buf];
    for (uint32_t d = 0; d < b->rank; d++) {
        int64_t by = moves(h, n, at[d]);
        if (is_input(h->k, buf)) {
            if (by < 0) {
                return cannot(h, "a parameter is read backwards along it");
            }
            continue;
        }
        if (!h->dim[buf][d]) {
            continue;
        }
        bool plain = affine_is_var(at[d]) && by == 1;
        const Range *all = plain ? origin_of(h, n, at[d].term[0].var) : NULL;
        if (all == NULL || b->extent[d].n != all->limit.n) {
            return cannot(h, "a value that has it is read or written at other positions too");
        }
    }
    return true;
}

static uint32_t halved_dims(const Halving *h, BufRef buf)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < h->k->bufs.at[buf].rank; d++) {
        n += h->dim[buf][d];
    }
    return n;
}

/* All halved loops around a statement, and its indices, are of one range. */
static bool check_origins(Halving *h, const Item *n, bool *any)
{
    const Range *first = NULL;
    for (uint32_t i = 0; i < n->stmt->n_index + h->n_around; i++) {
        bool index = i < n->stmt->n_index;
        if (index && !n->index[i]) {
            continue;
        }
        VarRef v = index ? n->stmt->index[i].var : h->around[i - n->stmt->n_index]->stmt->var;
        const Range *all = origin_of(h, n, v);
        if (all == NULL || (first != NULL && all != first)) {
            return cannot(h, "a statement has it twice");
        }
        first = all;
    }
    *any = first != NULL;
    return true;
}

static bool check_tile(Halving *h, const Item *n)
{
    const Stmt *s = n->stmt;
    bool any = false;
    if (!check_origins(h, n, &any) || !check_access(h, n, s->dst, s->at)) {
        return false;
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        bool in_dst = access_uses(h->k, s->dst, s->at, s->index[i].var);
        if (n->index[i] && (!in_dst || s->scan == i + 1)) {
            return cannot(h, "a sum, maximum or scan runs over it");
        }
    }
    if (halved_dims(h, s->dst) == 0 && h->depth[s->dst] != h->n_around) {
        return cannot(h, "a sum, maximum or scan runs over it");
    }
    if (is_output(h->k, s->dst) && halved_dims(h, s->dst) != 1) {
        return cannot(h, any ? "a statement has it twice" : "a result does not have it");
    }
    ExprWalk w;
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        if (e->kind == EXPR_INDEX && moves(h, n, e->at[0]) != 0) {
            return cannot(h, "its positions are values");
        }
        if (e->kind == EXPR_LOAD && !check_access(h, n, e->buf, e->at)) {
            return false;
        }
    }
    return true;
}

static bool check(Halving *h, Item *n)
{
    const Stmt *s = n->stmt;
    if (s->kind == STMT_TILE) {
        return check_tile(h, n);
    }
    bool plain = s->part == FOR_ALL && s->window == NULL;
    bool windows = s->window != NULL &&
                   (moves(h, n, s->window->lo) != 0 || moves(h, n, s->window->hi) != 0);
    if (n->loop && origin_of(h, n, s->var) == NULL) {
        return false;
    }
    return (!windows && (plain || !n->loop)) || cannot(h, "loops over it leave iterations out");
}

/* ---- the half ---- */

/* Where the second half of so many begins; values of this one. */
static int64_t second_begins(int64_t n)
{
    return (n + 1) / 2;
}

static int64_t half_of(const Halving *h, int64_t n)
{
    return h->second ? n / 2 : (n + 1) / 2;
}

static int64_t values_of(Halving *h, const Item *n, VarRef v)
{
    const Range *all = origin_of(h, n, v);
    CHECK(all != NULL);
    return all->limit.n;
}

static Range half_range(Halving *h, const Item *n, VarRef v, Range r)
{
    int64_t half = half_of(h, values_of(h, n, v));
    if (r.start.n == 0 || r.clipped || half % r.span != 0) {
        r.clipped = true;
        r.limit = dim_fixed(half);
    }
    return r;
}

static Way way_at(Halving *h, const Item *n, BufRef buf, const Affine *at)
{
    Way way = {.buf = buf, .own = buf};
    for (uint32_t d = 0; d < h->k->bufs.at[buf].rank; d++) {
        for (uint32_t t = 0; t < at[d].n; t++) {
            VarRef v = at[d].term[t].var;
            int64_t all = is_marked(h, n, v) ? values_of(h, n, v) : 0;
            way.apart[d] += at[d].term[t].coef * second_begins(all);
            way.unread[d] += at[d].term[t].coef * (all - half_of(h, all));
        }
    }
    return way;
}

static Way *find_way(Halving *h, const Way *like)
{
    for (uint32_t i = 0; i < h->ways.n; i++) {
        Way *way = &h->ways.at[i];
        if (way->buf == like->buf && memcmp(way->apart, like->apart, sizeof way->apart) == 0) {
            return way;
        }
    }
    return NULL;
}

static bool note_ways(Halving *h, Item *n)
{
    ExprWalk w;
    const Stmt *s = n->stmt;
    const Expr *first = s->kind == STMT_TILE ? load_first(&w, s->value) : NULL;
    for (const Expr *e = first; e != NULL; e = load_next(&w)) {
        if (is_input(h->k, e->buf)) {
            Way way = way_at(h, n, e->buf, e->at);
            if (find_way(h, &way) == NULL) {
                vec_push(h->arena, &h->ways, way);
            }
        }
    }
    return true;
}

static const Dim *less(Halving *h, const Buffer *b, const int64_t *by)
{
    Dim *extent = ARENA_ARRAY(h->arena, b->rank + 1, Dim);
    for (uint32_t d = 0; d < b->rank; d++) {
        extent[d] = dim_fixed(b->extent[d].n - by[d]);
    }
    return extent;
}

/* Parameters get the extents of what is read of them; beside the first, each way to read one gets a parameter. */
static void make_ways(Halving *h, Kernel *to)
{
    bool *seen = ARENA_ARRAY(h->arena, h->k->bufs.n + 1, bool);
    for (uint32_t i = 0; i < h->ways.n; i++) {
        Way *way = &h->ways.at[i];
        const Buffer b = h->k->bufs.at[way->buf];
        const Dim *extent = less(h, &b, way->unread);
        if (!seen[way->buf]) {
            to->bufs.at[way->buf].extent = extent;
            seen[way->buf] = true;
            continue;
        }
        const char *name = str_format(h->arena, "%s_half", b.name->text);
        way->own = kernel_buffer_like(to, &h->ctx->syms, name, &b);
        to->bufs.at[way->own].extent = extent;
        to->bufs.at[way->own].param = (int32_t)to->args.n;
        Arg arg = h->k->args.at[b.param];
        arg.buf = way->own;
        vec_push(h->arena, &to->args, arg);
    }
}

typedef struct Here {
    Halving *h;
    const Item *n;
} Here;

static void change_load(void *user, Expr *load)
{
    Here *here = user;
    if (load->kind == EXPR_LOAD && is_input(here->h->k, load->buf)) {
        Way way = way_at(here->h, here->n, load->buf, load->at);
        load->buf = find_way(here->h, &way)->own;
    }
}

static bool halve(Halving *h, Item *n)
{
    const Stmt *s = n->stmt;
    if (s->kind == STMT_FOR) {
        n->range = n->loop ? half_range(h, n, s->var, s->range) : s->range;
        return true;
    }
    TileIndex *index =
        s->n_index == 0 ? NULL : arena_copy(h->arena, s->index, s->n_index * sizeof *s->index);
    for (uint32_t i = 0; i < s->n_index; i++) {
        index[i].range =
            n->index[i] ? half_range(h, n, index[i].var, index[i].range) : index[i].range;
    }
    n->half = index;
    Here here = {h, n};
    n->value = expr_with_places(h->arena, s->value, change_load, &here);
    return true;
}

static void put_half(Halving *h, Stmt **body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_FOR) {
            s->range = h->items.at[h->at++].range;
        } else if (s->kind == STMT_TILE) {
            const Item *half = &h->items.at[h->at++];
            s->index = half->half;
            s->value = half->value;
        }
        if (stmt_has_body(s)) {
            put_half(h, s->body, s->n_body);
        }
    }
}

static void make_half(Halving *h, Halved *out)
{
    const Kernel *k = h->k;
    Kernel *to = kernel_changeable(h->arena, k);
    (void)walk_all(h, note_ways);
    make_ways(h, to);
    (void)walk_all(h, halve);
    h->at = 0;
    put_half(h, to->body, to->n_body);
    BufRef *whole = ARENA_ARRAY(h->arena, to->bufs.n + 1, BufRef);
    int64_t **apart = (int64_t **)arena_array(h->arena, to->bufs.n + 1, sizeof *apart);
    int64_t unread[NKI_DIMS];
    for (uint32_t b = 0; b < to->bufs.n; b++) {
        whole[b] = b;
        apart[b] = ARENA_ARRAY(h->arena, to->bufs.at[b].rank + 1, int64_t);
        for (uint32_t d = 0; b < k->bufs.n && d < k->bufs.at[b].rank; d++) {
            int64_t all = h->dim[b][d] ? k->bufs.at[b].extent[d].n : 0;
            apart[b][d] = second_begins(all);
            unread[d] = all - half_of(h, all);
        }
        if (b < k->bufs.n && !is_input(k, b)) {
            to->bufs.at[b].extent = less(h, &k->bufs.at[b], unread);
        }
    }
    for (uint32_t i = 0; i < h->ways.n; i++) {
        const Way *way = &h->ways.at[i];
        whole[way->own] = way->buf;
        memcpy(apart[way->own], way->apart, k->bufs.at[way->buf].rank * sizeof(int64_t));
    }
    *out = (Halved){to, whole, (const int64_t *const *)apart, h->uneven};
}

/* ---- which index ---- */

static void list_items(Halving *h, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        if (s->kind == STMT_FOR || s->kind == STMT_TILE) {
            Item item = {.stmt = s};
            item.index = ARENA_ARRAY(h->arena, s->n_index + 1, bool);
            vec_push(h->arena, &h->items, item);
        }
        if (stmt_has_body(s)) {
            list_items(h, s->body, s->n_body);
        }
    }
}

/* The index of a dimension of a result, and whatever has to go with it. */
static void follow(Halving *h, BufRef buf, uint32_t dim)
{
    h->dim[buf][dim] = true;
    do {
        do {
            h->changed = false;
            (void)walk_all(h, spread_vars);
        } while (h->changed);
        (void)walk_all(h, spread_dims);
    } while (h->changed);
}

/* Results that do not have the index of the first one: a dimension of each is added, one as long or the first that can be halved. */
static void follow_others(Halving *h, int64_t extent)
{
    const Kernel *k = h->k;
    for (uint32_t i = 0; i < k->args.n; i++) {
        BufRef buf = k->args.at[i].buf;
        const Buffer *b = &k->bufs.at[buf];
        if (!is_output(k, buf) || halved_dims(h, buf) > 0) {
            continue;
        }
        uint32_t dim = b->rank;
        for (uint32_t d = b->rank; d-- > 0;) {
            bool as_long = dim < b->rank && b->extent[dim].n == extent;
            dim = b->extent[d].n > 1 && (!as_long || b->extent[d].n == extent) ? d : dim;
        }
        if (dim < b->rank) {
            follow(h, buf, dim);
        }
    }
}

static BufRef first_result(const Kernel *k)
{
    for (uint32_t i = 0; i < k->args.n; i++) {
        if (is_output(k, k->args.at[i].buf)) {
            return k->args.at[i].buf;
        }
    }
    UNREACHABLE();
}

uint32_t lower_halvings(const Kernel *k)
{
    return k->bufs.at[first_result(k)].rank;
}

bool lower_halve(Ctx *ctx, Arena *arena, const Kernel *k, uint32_t dim, bool second,
                 Halved *out, const char **why)
{
    Halving h = {.ctx = ctx, .arena = arena, .k = k, .second = second};
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        if (k->bufs.at[b].rank > NKI_DIMS) {
            *why = "a value has too many dimensions";
            return false;
        }
    }
    BufRef result = first_result(k);
    h.open = (Item **)arena_array(arena, k->vars.n + 1, sizeof *h.open);
    h.depth = ARENA_ARRAY(arena, k->bufs.n + 1, uint32_t);
    h.dim = (bool **)arena_array(arena, k->bufs.n + 1, sizeof *h.dim);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        h.dim[b] = ARENA_ARRAY(arena, k->bufs.at[b].rank + 1, bool);
    }
    list_items(&h, k->body, k->n_body);
    follow(&h, result, dim);
    follow_others(&h, k->bufs.at[result].extent[dim].n);
    *why = NULL;
    if (!walk_all(&h, check)) {
        *why = h.why;
        return false;
    }
    make_half(&h, out);
    return true;
}
