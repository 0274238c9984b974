/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a kernel return rows of its results, so the iterations of a loop can be dealt to programs where each writes rows of its own.
 * Where a loop runs along another dimension, its result is put together in memory with that dimension first, and copied:
 *
 *     for $h in 0..H step 2 { .. @O[b,h2,d] = .. }   of h2 in $h:2
 *  -> for $h in 0..H step 2 { .. @t[h2,b,d] = .. }   @O[b,h,d] = @t[h,b,d]
 *
 * A value of the kernel's own has that dimension first everywhere. The parts of complex numbers stay the last dimension.
 */
#include "tile/tile.h"

#include "loop/copy.h"
#include "loop/walk.h"

typedef struct RowsFirst {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    BufRef from, made; /* the result, and what has its rows */
    uint32_t dim;      /* of the result, which the loop runs along */
} RowsFirst;

/* Do all accesses of the statement to the result lie in the tile of the iteration along the dimension? */
static bool lies_along(const Stmt *s, BufRef buf, uint32_t dim, const Stmt *loop)
{
    ExprWalk w;
    bool along = s->dst != buf || position_is_tiled(s, s->at[dim], loop);
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        along &= expr_buffer(e) != buf ||
                 (e->kind == EXPR_LOAD && position_is_tiled(s, e->at[dim], loop));
    }
    return along;
}

/* Statements that write the buffer; `reads`: or read it. */
static uint32_t count_uses(Stmt *const *body, uint32_t n, BufRef buf, bool reads)
{
    StmtWalk w;
    uint32_t uses = 0;
    for (const Stmt *s = tile_first(&w, body, n); s != NULL; s = tile_next(&w)) {
        uses += s->dst == buf || (reads && expr_load_of(s->value, buf) != NULL);
    }
    return uses;
}

/* The dimension along which the loop runs of a value that it makes alone, and of a result that nothing else reads; 0: its rows, or none. */
static uint32_t dim_of(const Kernel *k, const Stmt *loop, BufRef buf, bool result)
{
    uint32_t rank = k->bufs.at[buf].rank, found = 0;
    uint32_t uses = count_uses(loop->body, loop->n_body, buf, result);
    if (uses == 0 || uses != count_uses(k->body, k->n_body, buf, result)) {
        return 0;
    }
    rank -= buffer_has_parts(k, buf) ? 1 : 0;
    for (uint32_t d = 1; d < rank && found == 0; d++) {
        StmtWalk w;
        bool along = true;
        for (const Stmt *s = tile_first(&w, loop->body, loop->n_body); s != NULL;
             s = tile_next(&w)) {
            along &= lies_along(s, buf, d, loop);
        }
        found = along ? d : 0;
    }
    return found;
}

static const Affine *moved_at(const RowsFirst *x, const Affine *at)
{
    uint32_t rank = x->to->bufs.at[x->from].rank, n = 1;
    Affine *out = ARENA_ARRAY(x->arena, rank, Affine);
    out[0] = at[x->dim];
    for (uint32_t d = 0; d < rank; d++) {
        if (d != x->dim) {
            out[n++] = at[d];
        }
    }
    return out;
}

static void move_load(void *user, Expr *place)
{
    const RowsFirst *x = user;
    if (place->kind == EXPR_LOAD && place->buf == x->from) {
        place->at = moved_at(x, place->at);
        place->buf = x->made;
    }
}

/* The extents of the result, with that of the dimension first. */
static Dim *moved_extent(const RowsFirst *x)
{
    const Buffer *b = &x->to->bufs.at[x->from];
    uint32_t n = 1;
    Dim *extent = ARENA_ARRAY(x->arena, b->rank, Dim);
    extent[0] = b->extent[x->dim];
    for (uint32_t d = 0; d < b->rank; d++) {
        if (d != x->dim) {
            extent[n++] = b->extent[d];
        }
    }
    return extent;
}

/* The buffer with the dimension first; where it is allocated, and the copy. */
static void make_buffer(RowsFirst *x, Span span, Stmt **alloc, Stmt **copy)
{
    Arena *a = x->arena;
    const Buffer *b = &x->to->bufs.at[x->from];
    uint32_t rank = b->rank;
    TileIndex *index = ARENA_ARRAY(a, rank, TileIndex);
    Affine *at = ARENA_ARRAY(a, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        index[d] = (TileIndex){.var = kernel_var(x->to, &x->ctx->syms, "q", false),
                               .range = range_whole(b->extent[d]),
                               .mode = MODE_LOOP};
        at[d] = affine_var(a, index[d].var);
    }
    const char *name = str_format(a, "%s_rows", b->name->text);
    x->made = kernel_buffer(x->to, &x->ctx->syms, name, b->dtype, SPACE_WORKSPACE, rank,
                            moved_extent(x));
    x->to->bufs.at[x->made].parts = buffer_has_parts(x->to, x->from);
    *alloc = ARENA_NEW(a, Stmt);
    **alloc = (Stmt){.kind = STMT_ALLOC, .span = span, .buf = x->made};
    *copy = ARENA_NEW(a, Stmt);
    **copy = (Stmt){.kind = STMT_TILE,
                    .span = span,
                    .n_index = rank,
                    .index = index,
                    .dst = x->from,
                    .at = at,
                    .fold = OP_COPY,
                    .value = expr_load(a, x->to, x->made, moved_at(x, at))};
}

/* The loop's statements with the other buffer. */
static void move_all(const RowsFirst *x, Stmt *const *body, uint32_t n)
{
    StmtWalk w;
    for (const Stmt *t = tile_first(&w, body, n); t != NULL; t = tile_next(&w)) {
        Stmt *s = (Stmt *)(uintptr_t)t; /* of a kernel that may be changed */
        s->value = expr_with_places(x->arena, s->value, move_load, (void *)(uintptr_t)x);
        if (s->dst == x->from) {
            s->at = moved_at(x, s->at);
            s->dst = x->made;
        }
    }
}

/* Values of the kernel's own that the loop makes: they lie in another order. */
static bool turn_values(RowsFirst *x, const Kernel *k, const Stmt *loop)
{
    bool any = false;
    for (uint32_t i = 0; i < k->n_body; i++) {
        if (k->body[i]->kind != STMT_ALLOC) {
            continue;
        }
        x->from = x->made = k->body[i]->buf;
        x->dim = dim_of(x->to, loop, x->from, false);
        if (x->dim > 0) {
            move_all(x, x->to->body, x->to->n_body);
            x->to->bufs.at[x->made].extent = moved_extent(x);
            any = true;
        }
    }
    return any;
}

const Kernel *tile_rows_first(Ctx *ctx, Arena *arena, const Kernel *k)
{
    RowsFirst x = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    Stmts out = {0};
    bool any = false;
    for (uint32_t i = 0; i < x.to->n_body; i++) {
        Stmt *loop = x.to->body[i];
        Stmts copies = {0};
        for (uint32_t r = 0; r < k->args.n && loop->kind == STMT_FOR; r++) {
            x.from = k->args.at[r].buf;
            DType whole = k->args.at[r].whole;
            bool may = k->args.at[r].role == ARG_RESULT &&
                       (whole == DTYPE_NONE || dtype_is_complex(whole));
            x.dim = may ? dim_of(x.to, loop, x.from, true) : 0;
            Stmt *alloc = NULL, *copy = NULL;
            if (x.dim > 0) {
                make_buffer(&x, loop->span, &alloc, &copy);
                move_all(&x, loop->body, loop->n_body);
                vec_push(arena, &out, alloc);
                vec_push(arena, &copies, copy);
                any = true;
            }
        }
        any |= loop->kind == STMT_FOR && turn_values(&x, k, loop);
        vec_push(arena, &out, loop);
        for (uint32_t c = 0; c < copies.n; c++) {
            vec_push(arena, &out, copies.at[c]);
        }
    }
    x.to->body = out.at;
    x.to->n_body = out.n;
    return any ? kernel_numbered(arena, x.to) : NULL;
}
