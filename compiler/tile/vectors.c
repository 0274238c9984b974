/* SPDX-License-Identifier: Apache-2.0 */
/* Long vectors of complex numbers, as matrices of P rows, so that each partition has a row and not one of them all:
 *
 *     map [i in 0..P*m] @w[i,0] = .. @x[i,0] ..   ->   map [p in 0..P, f in 0..m] @w[m*p+f,0] = .. @x[m*p+f,0] ..
 *
 * P is the largest divisor of the length up to 128; of a length without one of at least LEAST_ROWS, statements that touch arguments alone take
 * 128 rows, and what is left by itself. A vector of the kernel's own becomes a matrix [P, m]. (Those of real numbers are spread by the back
 * end, which can cut them anywhere.) Sums are added up in another order. */
#include "tile/tile.h"

#include "loop/copy.h"

#define LONG       1024 /* elements, at least */
#define LEAST_ROWS 32

typedef struct Vectors {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    int64_t *length; /* [bufs] of those that may be matrices, of the kernel's own; 0: not */
    /* of the statement at hand, and of those beside it with the same index: both parts of a number */
    VarRef i, p, f;
    Affine position; /* m * p + f */
} Vectors;

/* The index that runs over a long vector, beside one over the parts; null: it is another statement. */
static const TileIndex *vector_index(const Stmt *s)
{
    const TileIndex *found = NULL;
    bool plain = s->kind == STMT_TILE && s->schedule == NULL && s->scan == 0 && s->sums == 0 &&
                 s->n_first == 0 && s->n_index <= 2;
    for (uint32_t i = 0; i < s->n_index && plain; i++) {
        const Range *r = &s->index[i].range;
        plain = range_is_whole(r) && (r->limit.n >= LONG ? found == NULL : r->limit.n == 2);
        found = r->limit.n >= LONG ? &s->index[i] : found;
    }
    return plain ? found : NULL;
}

static bool is_complex(const Kernel *k, BufRef buf)
{
    const Buffer *b = &k->bufs.at[buf];
    return b->param < 0 ? b->parts : dtype_is_complex(k->args.at[b->param].whole);
}

static int64_t rows_of(int64_t length)
{
    int64_t rows = divisor_at_most(length, TILE_ROWS);
    return rows >= LEAST_ROWS ? rows : 0;
}

/* What a statement touches along its index. */
typedef struct Touched {
    bool
        other; /* elements of a matrix at other positions, or what is neither vector nor matrix */
    bool own;     /* values of the kernel's own */
    bool complex; /* complex numbers */
} Touched;

static void touch(const Vectors *v, BufRef buf, const Affine *at, const TileIndex *i,
                  Touched *t)
{
    const Buffer *b = &v->to->bufs.at[buf];
    bool own = b->param<0, matrix = v->length[buf]> 0;
    if (!access_uses(v->to, buf, at, i->var)) {
        t->other |= matrix;
        return;
    }
    bool numbers = is_complex(v->to, buf);
    bool vector = b->rank == (numbers ? 2 : 1) && affine_is(at[0], i->var) &&
                  dim_is(b->extent[0], i->range.limit.n) &&
                  (!numbers || !affine_uses(at[1], i->var));
    t->other |= !vector || (own && !matrix);
    t->own |= own;
    t->complex |= numbers;
}

/* Is the statement one over matrices, with those that are known now? */
static bool is_taken(const Vectors *v, const Stmt *s)
{
    const TileIndex *i = vector_index(s);
    if (i == NULL || (s->fold == OP_COPY && !access_uses(v->to, s->dst, s->at, i->var))) {
        return false;
    }
    Touched t = {false};
    ExprWalk w;
    touch(v, s->dst, s->at, i, &t);
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        if (e->kind == EXPR_LOAD) {
            touch(v, e->buf, e->at, i, &t);
        }
        t.other |= e->kind == EXPR_INDEX || (e->kind == EXPR_OP && e->op == OP_GATHER);
    }
    return !t.other && t.complex && (rows_of(i->range.limit.n) > 0 || !t.own);
}

/* What the statements touch is no matrix. *any: something was one. */
static void drop(Vectors *v, Stmt *const *body, uint32_t n, bool *any)
{
    StmtWalk w;
    ExprWalk x;
    for (const Stmt *s = tile_first(&w, body, n); s != NULL; s = tile_next(&w)) {
        *any |= v->length[s->dst] > 0;
        v->length[s->dst] = 0;
        for (const Expr *e = read_first(&x, s->value); e != NULL; e = read_next(&x)) {
            *any |= v->length[expr_buffer(e)] > 0;
            v->length[expr_buffer(e)] = 0;
        }
    }
}

/* Which values of the kernel's own all statements can take as matrices; none that loops use. */
static void find_matrices(Vectors *v)
{
    const Kernel *k = v->to;
    bool again = false;
    for (uint32_t i = 0; i < k->n_body; i++) {
        const Stmt *s = k->body[i];
        const Buffer *b = s->kind == STMT_ALLOC ? &k->bufs.at[s->buf] : NULL;
        if (b != NULL && b->rank > 0 && b->extent[0].n >= LONG && rows_of(b->extent[0].n) > 0) {
            v->length[s->buf] = b->extent[0].n;
            again = true;
        }
    }
    while (again) {
        again = false;
        for (uint32_t i = 0; i < k->n_body; i++) {
            if (k->body[i]->kind != STMT_ALLOC && !is_taken(v, k->body[i])) {
                drop(v, &k->body[i], 1, &again);
            }
        }
    }
}

static const Affine *matrix_at(const Vectors *v, BufRef buf, const Affine *at)
{
    uint32_t rank = v->to->bufs.at[buf].rank;
    bool moves = access_uses(v->to, buf, at, v->i), own = moves && v->length[buf] > 0;
    if (!moves) {
        return at;
    }
    Affine *out = ARENA_ARRAY(v->arena, rank + 1, Affine);
    out[0] = own ? affine_var(v->arena, v->p) : v->position;
    for (uint32_t d = 1; d < rank; d++) {
        out[d + (own ? 1 : 0)] = at[d];
    }
    if (own) {
        out[1] = affine_var(v->arena, v->f);
    }
    return out;
}

static void take_load(void *user, Expr *place)
{
    if (place->kind == EXPR_LOAD) {
        place->at = matrix_at(user, place->buf, place->at);
    }
}

static VarRef new_index(const Vectors *v, const char *name)
{
    return kernel_var(v->to, &v->ctx->syms, name, false);
}

/* The statement over a matrix of so many rows. */
static Stmt *over_rows(Vectors *v, const Stmt *s, int64_t rows, int64_t columns)
{
    Arena *a = v->arena;
    Stmt *out = arena_copy(a, s, sizeof *s);
    TileIndex *index = ARENA_ARRAY(a, s->n_index + 1, TileIndex);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        index[n] = s->index[i];
        if (s->index[i].var == v->i) {
            index[n].var = v->p;
            index[n++].range = range_whole(dim_fixed(rows));
            index[n] = s->index[i];
            index[n].var = v->f;
            index[n].range = range_whole(dim_fixed(columns));
        }
        n++;
    }
    v->position = affine_add(a, affine_var(a, v->f), columns, affine_var(a, v->p));
    out->index = index;
    out->n_index = n;
    out->at = matrix_at(v, s->dst, s->at);
    out->value = expr_with_places(a, s->value, take_load, v);
    return out;
}

/* And over what is left from an element on. */
static Stmt *over_rest(Vectors *v, const Stmt *s, int64_t from, int64_t length)
{
    Stmt *out = arena_copy(v->arena, s, sizeof *s);
    TileIndex *index = arena_copy(v->arena, s->index, s->n_index * sizeof *index);
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (index[i].var == v->i) {
            index[i].var = v->f;
            index[i].range = range_whole(dim_fixed(length - from));
        }
    }
    v->position = affine_var(v->arena, v->f);
    v->position.base = from;
    out->index = index;
    out->begins &= access_uses(v->to, s->dst, s->at, v->i);
    out->at = matrix_at(v, s->dst, s->at);
    out->value = expr_with_places(v->arena, s->value, take_load, v);
    return out;
}

static void make_matrix(const Vectors *v, Buffer *b)
{
    Dim *extent = ARENA_ARRAY(v->arena, b->rank + 1, Dim);
    int64_t rows = rows_of(b->extent[0].n);
    extent[0] = dim_fixed(rows);
    extent[1] = dim_fixed(b->extent[0].n / rows);
    for (uint32_t d = 1; d < b->rank; d++) {
        extent[d + 1] = b->extent[d];
    }
    b->extent = extent;
    b->rank++;
}

Kernel *tile_vectors(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    Vectors v = {.ctx = ctx, .arena = arena, .to = kernel_like(arena, k)};
    v.to->bufs.at = arena_copy(arena, k->bufs.at, k->bufs.n * sizeof *k->bufs.at);
    v.length = ARENA_ARRAY(arena, k->bufs.n + 1, int64_t);
    find_matrices(&v);
    Stmts out = {0}, rest = {0};
    bool any = false;
    for (uint32_t n = 0; n < k->n_body; n++) {
        Stmt *s = k->body[n];
        if (!is_taken(&v, s)) {
            vec_push(arena, &out, s);
            continue;
        }
        const TileIndex *i = vector_index(s);
        int64_t length = i->range.limit.n, rows = rows_of(length);
        int64_t columns = rows > 0 ? length / rows : length / TILE_ROWS;
        rows = rows > 0 ? rows : TILE_ROWS;
        if (!any || v.i != i->var) {
            v.i = i->var;
            v.p = new_index(&v, "p");
            v.f = new_index(&v, "f");
        }
        any = true;
        vec_push(arena, &out, over_rows(&v, s, rows, columns));
        if (rows * columns < length) {
            vec_push(arena, &rest, over_rest(&v, s, rows * columns, length));
        }
        const Stmt *next = n + 1 < k->n_body ? k->body[n + 1] : NULL;
        bool both = next != NULL && s->fold == OP_COPY && is_taken(&v, next) &&
                    next->fold == OP_COPY && vector_index(next)->var == v.i;
        for (uint32_t r = 0; r < rest.n && !both; r++) { /* parts of a number are together */
            vec_push(arena, &out, rest.at[r]);
        }
        rest.n = both ? rest.n : 0;
    }
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        if (v.length[b] > 0) {
            make_matrix(&v, &v.to->bufs.at[b]);
        }
    }
    v.to->body = out.at;
    v.to->n_body = out.n;
    return any ? kernel_numbered(arena, v.to) : (Kernel *)(uintptr_t)k;
}
