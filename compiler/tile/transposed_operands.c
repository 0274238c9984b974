/* SPDX-License-Identifier: Apache-2.0 */
/* Copies operands of contractions to memory, transposed: the indices that are summed come first. The Tensor engine needs them on
 * partitions, and each program of a long kernel would transpose the operand again; with the copy a program only loads. This is the last
 * resort: it is tried where a kernel needs several programs and none of its pieces is short enough, or the text gets very long. */
#include "tile/tile.h"

#include "loop/term.h"

#include <string.h>

/* A buffer and its transposed copy. */
typedef struct Copy {
    BufRef from, to;
    const uint32_t *order; /* dimensions of `from` in the order of the copy */
} Copy;

typedef struct Copies {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    VEC(Stmt *) made; /* allocations and copies */
    VEC(Copy) list;
    const Stmt *s; /* the contraction whose loads are changed */
} Copies;

/* The index of the statement that a dimension of a load is at, or UINT32_MAX. */
static uint32_t index_of(const Stmt *s, Affine at)
{
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (at.n == 1 && at.term[0].coef == 1 && at.term[0].var == s->index[i].var) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* Finds the order of dimensions for the copy: summed ones first, then kept ones. False if the last dimension is not summed, or a position is
 * more than an index. */
static bool find_order(const Copies *c, const Expr *load, uint32_t *order)
{
    const Buffer *b = &c->to->bufs.at[load->buf];
    uint32_t n = 0;
    bool summed = false;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t d = 0; d < b->rank; d++) {
            uint32_t i = index_of(c->s, load->at[d]);
            if (i == UINT32_MAX) {
                return false;
            }
            bool kept = access_uses(c->to, c->s->dst, c->s->at, c->s->index[i].var);
            summed = kept ? summed : d + 1 == b->rank;
            if (kept == (pass == 1)) {
                order[n++] = d;
            }
        }
    }
    return summed && order[b->rank - 1] != b->rank - 1;
}

/* The transposed copy of a buffer, made before all other statements. */
static BufRef make_copy_of(Copies *c, BufRef from, const uint32_t *order)
{
    uint32_t rank = c->to->bufs.at[from].rank;
    for (uint32_t i = 0; i < c->list.n; i++) {
        const Copy *x = &c->list.at[i];
        if (x->from == from && memcmp(x->order, order, rank * sizeof *order) == 0) {
            return x->to;
        }
    }
    Dim *extent = ARENA_ARRAY(c->arena, rank, Dim);
    Affine *read = ARENA_ARRAY(c->arena, rank, Affine),
           *write = ARENA_ARRAY(c->arena, rank, Affine);
    TileIndex *index = ARENA_ARRAY(c->arena, rank, TileIndex);
    for (uint32_t d = 0; d < rank; d++) {
        Dim n = c->to->bufs.at[from].extent[order[d]];
        extent[d] = n;
        index[d].var = kernel_var(c->to, &c->ctx->syms, "q", false);
        index[d].range = range_whole(n);
        read[order[d]] = write[d] = affine_var(c->arena, index[d].var);
    }
    const char *name = str_format(c->arena, "%s_transposed", c->to->bufs.at[from].name->text);
    BufRef to = kernel_buffer(c->to, &c->ctx->syms, name, c->to->bufs.at[from].dtype,
                              SPACE_WORKSPACE, rank, extent);
    Stmt *alloc = ARENA_NEW(c->arena, Stmt), *copy = ARENA_NEW(c->arena, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = c->s->span, .buf = to};
    *copy = (Stmt){.kind = STMT_TILE,
                   .span = c->s->span,
                   .n_index = rank,
                   .index = index,
                   .dst = to,
                   .at = write,
                   .fold = OP_COPY,
                   .value = expr_load(c->arena, c->to, from, read)};
    vec_push(c->arena, &c->made, alloc);
    vec_push(c->arena, &c->made, copy);
    Copy made = {from, to, arena_copy(c->arena, order, rank * sizeof *order)};
    vec_push(c->arena, &c->list, made);
    return to;
}

static void change_load(void *user, Expr *load)
{
    Copies *c = user;
    uint32_t order[TILE_DIMS];
    if (load->kind != EXPR_LOAD || c->to->bufs.at[load->buf].space != SPACE_ARGUMENT ||
        !find_order(c, load, order)) {
        return;
    }
    uint32_t rank = c->to->bufs.at[load->buf].rank;
    Affine *at = ARENA_ARRAY(c->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = load->at[order[d]];
    }
    load->buf = make_copy_of(c, load->buf, order);
    load->at = at;
}

/* Is the argument only read? */
static bool is_input(const Kernel *k, BufRef buf)
{
    StmtWalk w;
    bool read = true;
    for (const Stmt *s = tile_first(&w, k->body, k->n_body); s != NULL; s = tile_next(&w)) {
        read &= s->dst != buf;
    }
    return read;
}

static bool reads_inputs(const Kernel *k, const Stmt *s)
{
    ExprWalk w;
    bool inputs = true;
    for (const Expr *e = load_first(&w, s->value); e != NULL; e = load_next(&w)) {
        inputs &= is_input(k, e->buf) && k->bufs.at[e->buf].rank <= TILE_DIMS &&
                  !buffer_has_parts(k, e->buf);
    }
    return inputs;
}

static void change_all(Copies *c, Stmt *const *body, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (stmt_has_body(s)) {
            change_all(c, s->body, s->n_body);
        } else if (s->kind == STMT_TILE && s->fold == OP_SUM && tile_kind(s) == TILE_MATMUL &&
                   s->scan == 0 && reads_inputs(c->to, s)) {
            c->s = s;
            s->value = expr_with_places(c->arena, s->value, change_load, c);
        }
    }
}

const Kernel *tile_transposed_operands(Ctx *ctx, Arena *arena, const Kernel *k)
{
    Copies c = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    change_all(&c, c.to->body, c.to->n_body);
    if (c.made.n == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < c.to->n_body; i++) {
        vec_push(arena, &c.made, c.to->body[i]);
    }
    c.to->body = c.made.at;
    c.to->n_body = c.made.n;
    return c.to;
}
