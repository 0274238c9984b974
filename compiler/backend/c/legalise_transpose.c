/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise statements that write along one index and read along another. A copy stays one: its two innermost indices
 * say to the printer that it is a transpose. In any other statement the operands read so are transposed block by block
 * into tiles, which it then reads along the index that it writes along. Likewise folds that read some operands along a summed
 * index and others across it, which then run as vectors. */
#include "backend/c/legalise.h"

#define WRITTEN_SHORTEST 16   /* positions of the written index, */
#define READ_SHORTEST    8    /* and of the read one, for which a block is worth it; */
#define STAGED_LEAST     4096 /* of both, where the first cache holds no more */
#define STAGED_FOLD      256  /* ... and of a fold, which would go one by one */
#define BLOCK_WRITTEN    64
#define BLOCK_READ       32
#define MOST_STAGED      4 /* operands of a statement */

/* Does the load run along y where the statement runs along x? (What it reads of the buffer that is written lies apart.) */
static bool load_turns(const Kernel *k, const Expr *load, VarRef x, VarRef y)
{
    return k->bufs.at[load->buf].panels == 0 && access_uses(k, load->buf, load->at, x) &&
           !access_is_unit(k, load->buf, load->at, x) &&
           access_is_unit(k, load->buf, load->at, y);
}

static bool is_long(const Kernel *k, const TileIndex *x, const TileIndex *y)
{
    return range_typical(k, x->range) >= WRITTEN_SHORTEST &&
           range_typical(k, y->range) >= READ_SHORTEST;
}

static bool copy_turns(const Kernel *k, const Stmt *s, const TileIndex *x, const TileIndex *y)
{
    const Expr *v = s->value;
    return s->fold == OP_COPY && v->kind == EXPR_LOAD && v->dtype == k->bufs.at[s->dst].dtype &&
           load_turns(k, v, x->var, y->var);
}

bool copy_is_transposed(const Kernel *k, const Stmt *s)
{
    if (s->n_index < 2) {
        return false;
    }
    const TileIndex *y = &s->index[s->n_index - 2], *x = y + 1;
    return x->mode == MODE_LOOP && y->mode == MODE_LOOP && is_long(k, x, y) &&
           k->bufs.at[s->dst].panels == 0 && access_is_unit(k, s->dst, s->at, x->var) &&
           copy_turns(k, s, x, y);
}

/* The first index along which an operand is read across x; NONE. */
static uint32_t index_across(const Kernel *k, const Stmt *s, uint32_t x)
{
    ExprWalk w;
    for (const Expr *v = load_first(&w, s->value); v != NULL; v = load_next(&w)) {
        for (uint32_t y = 0; y < s->n_index; y++) {
            if (y != x && is_long(k, &s->index[x], &s->index[y]) &&
                load_turns(k, v, s->index[x].var, s->index[y].var)) {
                return y;
            }
        }
    }
    return NONE;
}

/* One block of a statement, and the tiles of its operands. */
typedef struct Staged {
    Legaliser *l;
    const Stmt *s;
    VarRef x, y;
    const Expr *load[MOST_STAGED];
    BufRef tile[MOST_STAGED];
    uint32_t n;
    Affine at[2]; /* in a tile */
} Staged;

static uint32_t staged_at(const Staged *g, const Expr *load)
{
    uint32_t i = 0;
    while (i < g->n && !expr_eq(g->l->k, g->load[i], load)) {
        i++;
    }
    return i;
}

static void load_staged(void *user, Expr *load)
{
    const Staged *g = user;
    uint32_t i = load->kind == EXPR_LOAD ? staged_at(g, load) : g->n;
    if (i < g->n) {
        load->buf = g->tile[i];
        load->at = arena_copy(g->l->arena, g->at, sizeof g->at);
    }
}

static void tiles_alloc(Staged *g)
{
    static const int64_t extent[2] = {BLOCK_READ, BLOCK_WRITTEN};
    ExprWalk w;
    for (const Expr *v = load_first(&w, g->s->value); v != NULL; v = load_next(&w)) {
        if (g->n < MOST_STAGED && load_turns(g->l->k, v, g->x, g->y) &&
            staged_at(g, v) == g->n) {
            g->load[g->n] = v;
            g->tile[g->n++] = buffer_alloc(g->l, "turned", v->dtype, SPACE_TILE, 2, extent);
        }
    }
}

static void block_put(Staged *g, const TileIndex *x, const TileIndex *y)
{
    const TileIndex index[2] = {*y, *x};
    for (uint32_t i = 0; i < g->n; i++) {
        tile_add(g->l, 2, index, g->tile[i], g->at, OP_COPY, g->load[i]);
    }
    const Expr *value = expr_with_places(g->l->arena, g->s->value, load_staged, g);
    if (g->s->fold == OP_COPY) {
        written_add(g->l, 2, index, g->s->dst, g->s->at, g->s->fold, value);
        return;
    }
    Stmt *fold = arena_copy(g->l->arena, g->s, sizeof *fold);
    fold->n_index = 2;
    fold->index = index;
    fold->value = value;
    legalise_reduce(g->l, fold, false);
}

/* Blocks do not reach over the end of a span. */
static Blocks blocks_of(Range r, int64_t most)
{
    return range_blocks(r, r.span > most ? divisor_at_most(r.span, most) : most, 1);
}

static void staged_put(Legaliser *l, const Stmt *s, uint32_t x, uint32_t y)
{
    scope_open(l);
    Subst *subst = ARENA_ARRAY(l->arena, (size_t)s->n_index + 1, Subst);
    Stmt inside = *s;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (i != x && i != y) {
            VarRef v = loop_open(l, "i", s->index[i].range, 1, FOR_ALL);
            subst[n++] = (Subst){s->index[i].var, affine_var(l->arena, v)};
        }
    }
    inside.at = access_subst(l->arena, l->k->bufs.at[s->dst].rank, s->at, subst, n);
    inside.value = expr_subst(l->arena, l->k, s->value, subst, n);
    Staged g = {.l = l, .s = &inside, .x = s->index[x].var, .y = s->index[y].var};
    tiles_alloc(&g);
    Blocks read = blocks_of(s->index[y].range, BLOCK_READ);
    Blocks written = blocks_of(s->index[x].range, BLOCK_WRITTEN);
    Affine first[2];
    TileIndex index[2] = {s->index[y], s->index[x]};
    blocks_open(l, "yb", &read, &first[0], &index[0].range);
    blocks_open(l, "xb", &written, &first[1], &index[1].range);
    for (uint32_t i = 0; i < 2; i++) {
        g.at[i] = var_minus(l, index[i].var, first[i]);
    }
    block_put(&g, &index[1], &index[0]);
    for (n += read.looped + written.looped; n > 0; n--) {
        loop_close(l);
    }
    block_close(l);
}

bool legalise_transpose(Legaliser *l, const Stmt *s, uint32_t x)
{
    uint32_t y = index_across(l->k, s, x);
    if (y == NONE) {
        return false;
    }
    if (!copy_turns(l->k, s, &s->index[x], &s->index[y])) {
        bool large = sat_mul(range_typical(l->k, s->index[x].range),
                             range_typical(l->k, s->index[y].range)) >= STAGED_LEAST;
        if (large) {
            staged_put(l, s, x, y);
        }
        return large;
    }
    TileIndex *index = ARENA_ARRAY(l->arena, s->n_index, TileIndex);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (i != x && i != y) {
            index[n++] = s->index[i];
        }
    }
    index[n++] = s->index[y];
    index[n++] = s->index[x];
    tile_add(l, n, index, s->dst, s->at, s->fold, s->value);
    return true;
}

/* Would the load be transposed again and again, in loops over other indices that it does not use? */
static bool is_repeated(const Kernel *k, const Stmt *s, const Expr *load, VarRef x, VarRef y)
{
    bool any = false;
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        any |= v != x && v != y && !access_uses(k, load->buf, load->at, v);
    }
    return any;
}

/* Do vectors along x compute the value, when all that is read across x has been transposed? */
static bool vectors_when_staged(const Legaliser *l, const Stmt *s, VarRef x, VarRef y)
{
    DType t = expr_uncast(s->value)->dtype;
    uint32_t n = 0;
    bool dear =
        expr_uncast(s->value) == s->value; /* else blocks of it are (legalise_reduce.c) */
    ExprWalk w;
    for (const Expr *v = expr_first(&w, expr_uncast(s->value)); v != NULL; v = expr_next(&w)) {
        bool load = v->kind == EXPR_LOAD && access_uses(l->k, v->buf, v->at, x);
        bool turns = load && load_turns(l->k, v, x, y);
        n += turns;
        dear |= v->kind == EXPR_OP && op_info(v->op)->lanes == LANES_DIVIDE;
        if (v->dtype != t || (turns && is_repeated(l->k, s, v, x, y)) ||
            (load && !turns && !access_is_unit(l->k, v->buf, v->at, x)) ||
            v->kind == EXPR_INDEX || (v->kind == EXPR_OP && !op_vectorises(v->op, t))) {
            return false;
        }
    }
    return dear && n > 0 && n <= MOST_STAGED && (t == DTYPE_F32 || t == DTYPE_F64);
}

/* The indices that such a fold is staged along. */
static bool staged_indices(const Legaliser *l, const Stmt *s, uint32_t *along, uint32_t *across)
{
    for (uint32_t x = s->n_index; x-- > 0;) {
        uint32_t y =
            access_uses(l->k, s->dst, s->at, s->index[x].var) ? NONE : index_across(l->k, s, x);
        if (y != NONE && vectors_when_staged(l, s, s->index[x].var, s->index[y].var) &&
            sat_mul(range_typical(l->k, s->index[x].range),
                    range_typical(l->k, s->index[y].range)) >= STAGED_FOLD) {
            *along = x;
            *across = y;
            return true;
        }
    }
    return false;
}

bool legalise_stages_fold(const Legaliser *l, const Stmt *s)
{
    uint32_t x, y;
    return staged_indices(l, s, &x, &y);
}

void legalise_staged_fold(Legaliser *l, const Stmt *s)
{
    uint32_t x = 0, y = 0;
    CHECK(staged_indices(l, s, &x, &y));
    staged_put(l, s, x, y);
}
