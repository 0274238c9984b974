/* SPDX-License-Identifier: Apache-2.0 */
/* Common subexpressions of tiles, by comparison of statements:
 *
 *     map [p, f] @t[p,f] = select(.., @acc[p,f], -inf)          map [p, f] @t[p,f] = select(.., @acc[p,f], -inf)
 *     reduce [p, f] @m[p,0] reduce.max= @t[p,f]            ->   reduce [p, f] @m[p,0] reduce.max= @t[p,f]
 *     map [p, f] @t2[p,f] = select(.., @acc[p,f], -inf)         map [p, f] @e[p,f] = exp(sub(@t[p,f], @m[p,0]))
 *     map [p, f] @e[p,f] = exp(sub(@t2[p,f], @m[p,0]))
 *
 * Both tiles are allocated in the block and each is written by its statement alone; what that reads is not written in between. */
#include "loop/repeats.h"

#include "loop/copy.h"
#include "loop/walk.h"

/* Statements of one block that are looked at again, for one of it. */
#define BACK_MOST 64

typedef struct Repeats {
    Arena *arena;
    const Kernel *k;
    uint32_t *writers; /* [bufs] statements that write it */
    BufRef *buf;       /* [bufs] that has the same content */
    VarRef *var;       /* [vars] itself, but in a comparison */
    bool *here;        /* [bufs] allocated in the block at hand */
    bool found;
} Repeats;

static void count_writers(const Kernel *k, uint32_t *writers)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        writers[s->dst]++;
        if (s->sums > 0) {
            writers[s->sums - 1]++;
        }
    }
}

static bool writes_any(const Stmt *s, const bool *marked)
{
    StmtWalk w;
    Stmt *one = (Stmt *)(uintptr_t)s; /* only read */
    for (const Stmt *t = tile_first(&w, &one, 1); t != NULL; t = tile_next(&w)) {
        if (marked[t->dst] || (t->sums > 0 && marked[t->sums - 1])) {
            return true;
        }
    }
    return false;
}

static bool has_gather(const Expr *value)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        if (e->kind == EXPR_OP && e->op == OP_GATHER) {
            return true;
        }
    }
    return false;
}

/* Is it a map or a copy, and all that is ever in its tile? */
static bool is_definition(const Repeats *r, const Stmt *s)
{
    return s->kind == STMT_TILE && s->fold == OP_COPY && s->sums == 0 && s->scan == 0 &&
           s->places == 0 && s->value->kind != EXPR_CONST && r->here[s->dst] &&
           r->writers[s->dst] == 1 && r->k->bufs.at[s->dst].space == SPACE_TILE &&
           !has_gather(s->value);
}

static bool same_tiles(const Kernel *k, BufRef x, BufRef y)
{
    const Buffer *a = &k->bufs.at[x], *b = &k->bufs.at[y];
    bool same = a->dtype == b->dtype && a->rank == b->rank && a->parts == b->parts;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = dim_eq(a->extent[d], b->extent[d]);
    }
    return same;
}

static bool same_affines(uint32_t n, const Affine *x, const Affine *y)
{
    bool same = true;
    for (uint32_t d = 0; same && d < n; d++) {
        same = affine_eq(x[d], y[d]);
    }
    return same;
}

/* Does the second give the values of the first, each at the same element? */
static bool same_values(Repeats *r, const Stmt *x, const Stmt *y)
{
    bool same = x->n_index == y->n_index && same_tiles(r->k, x->dst, y->dst);
    for (uint32_t i = 0; same && i < x->n_index; i++) {
        same = range_eq(&x->index[i].range, &y->index[i].range);
    }
    if (!same) {
        return false;
    }
    for (uint32_t i = 0; i < y->n_index; i++) {
        r->var[y->index[i].var] = x->index[i].var;
    }
    StmtCopy copy = {.arena = r->arena, .from = r->k, .buf = r->buf, .var = r->var};
    Stmt *one = (Stmt *)(uintptr_t)y; /* only read */
    const Stmt *as = stmts_copy(&copy, &one, 1)[0];
    same = same_affines(r->k->bufs.at[x->dst].rank, x->at, as->at) &&
           expr_eq(r->k, x->value, as->value);
    for (uint32_t i = 0; i < y->n_index; i++) {
        r->var[y->index[i].var] = y->index[i].var;
    }
    return same;
}

/* The statement of the block before number `at` that has the values of that one still; null. */
static const Stmt *find_same(Repeats *r, Stmt *const *body, uint32_t at)
{
    ArenaMark before = arena_mark(r->arena);
    bool *loads = ARENA_ARRAY(r->arena, r->k->bufs.n + 1, bool);
    bool *read = ARENA_ARRAY(r->arena, r->k->bufs.n + 1, bool);
    expr_mark_loads(body[at]->value, loads);
    for (uint32_t b = 0; b < r->k->bufs.n; b++) {
        read[r->buf[b]] |= loads[b];
    }
    const Stmt *found = NULL;
    for (uint32_t back = 1; found == NULL && back <= at && back <= BACK_MOST; back++) {
        const Stmt *x = body[at - back];
        if (is_definition(r, x) && x->dst == r->buf[x->dst] && same_values(r, x, body[at])) {
            found = x;
        } else if (writes_any(x, read)) {
            break;
        }
    }
    arena_reset(r->arena, before);
    return found;
}

/* What is left of a block of n statements, of which *left are. */
static Stmt **block_without(Repeats *r, Stmt *const *body, uint32_t n, uint32_t *left)
{
    Stmt **out = ARENA_ARRAY(r->arena, n + 1, Stmt *);
    *left = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (body[i]->kind == STMT_ALLOC) {
            r->here[body[i]->buf] = true;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *same = is_definition(r, body[i]) ? find_same(r, body, i) : NULL;
        if (same != NULL) {
            r->buf[body[i]->dst] = same->dst;
            r->found = true;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        bool gone = (s->kind == STMT_ALLOC && r->buf[s->buf] != s->buf) ||
                    (s->kind == STMT_TILE && r->buf[s->dst] != s->dst);
        if (stmt_has_body(s)) {
            for (uint32_t b = 0; b < r->k->bufs.n; b++) {
                r->here[b] = false;
            }
            s = arena_copy(r->arena, s, sizeof *s);
            s->body = block_without(r, s->body, s->n_body, &s->n_body);
        }
        if (!gone) {
            out[(*left)++] = s;
        }
    }
    return out;
}

Kernel *kernel_without_repeats(Arena *arena, const Kernel *k)
{
    Repeats r = {.arena = arena, .k = k};
    r.writers = ARENA_ARRAY(arena, k->bufs.n + 1, uint32_t);
    r.buf = ARENA_ARRAY(arena, k->bufs.n + 1, BufRef);
    r.var = ARENA_ARRAY(arena, k->vars.n + 1, VarRef);
    r.here = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        r.buf[b] = b;
    }
    for (uint32_t v = 0; v < k->vars.n; v++) {
        r.var[v] = v;
    }
    count_writers(k, r.writers);
    uint32_t n = 0;
    Stmt **body = block_without(&r, k->body, k->n_body, &n);
    if (!r.found) {
        return NULL;
    }
    Kernel *out = kernel_like(arena, k);
    StmtCopy copy = {.arena = arena, .from = k, .buf = r.buf, .var = r.var};
    out->body = stmts_copy(&copy, body, n);
    out->n_body = n;
    return kernel_numbered(arena, out);
}
