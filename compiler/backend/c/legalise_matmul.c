/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of products of two operands that says how it is cut (target/blocking.h): that becomes
 * loops. What is packed is copied block by block into panels as wide as the register tile, in the
 * order in which they are then read and padded with zeros at the edges, so that there is one
 * register tile, always full, whatever the strides, types and extents of the operands are; what
 * is padding joins nothing:
 *
 *     for each batch, each further summed index
 *       for k by KC
 *         for each further column
 *           for j by NC:  pack B[KC x NC]
 *             for each further row
 *               for i by MR:  pack A[MR x KC]
 *                 for j by NR:  dst[MR x NR] += sum over k of a[k,i] * b[k,j]  (product.h)
 *
 * Where nothing is packed both operands are read where they are; that needs known extents. */
#include "backend/c/legalise.h"

#define PANEL_MOST ((int64_t)1 << 28) /* elements */

/* Rows are the operand's that is packed row by row, columns the vectors'. */
#define SIDES 2

typedef struct Matmul {
    Legaliser *l;
    const Stmt *s;
    const Blocking *b;
    DType t;
    const Expr *x[SIDES];  /* by role: BLOCK_ROWS, BLOCK_COLUMNS */
    uint32_t index[3];     /* that is cut, by role */
    int64_t tile[SIDES];   /* of the register tile */
    bool packed, unit_dst; /* the columns have unit stride in the destination */
    Subst *subst;          /* of the indices that have become loops */
    uint32_t n_subst;
} Matmul;

static bool factor_uses(const Kernel *k, const Expr *x, VarRef v)
{
    const Expr *load = expr_uncast(x);
    return access_uses(k, load->buf, load->at, v);
}

static VarRef index_var(const Matmul *m, uint32_t i)
{
    return m->s->index[i].var;
}

static Range index_range(const Matmul *m, BlockRole role)
{
    return m->s->index[m->index[role]].range;
}

/* ---- what this target cannot do ---- */

static const char *shape_problem(const Matmul *m)
{
    int64_t bytes = dtype_bytes(m->t), mr = m->tile[BLOCK_ROWS], nr = m->tile[BLOCK_COLUMNS];
    if (!dtype_has_vectors(m->t) || m->s->value->dtype != m->t) {
        return "has no register tiles of this type";
    }
    const ContractionTiles *most = &m->l->machine->tile;
    if (nr * bytes > most->line || mr > most->rows || mr * nr * bytes > most->bytes) {
        return "has no registers for so large a tile";
    }
    for (uint32_t i = 0; i < m->b->n_levels; i++) {
        Range r = index_range(m, m->b->level[i].role);
        if (r.span > 0 && m->b->level[i].tile < r.span && r.span % m->b->level[i].tile != 0) {
            return "cuts a tile of a loop into equal parts only";
        }
    }
    return NULL;
}

static const char *packed_problem(const Matmul *m)
{
    int64_t elements[SIDES] = {1, 1}, k = range_most(index_range(m, BLOCK_SUM));
    uint32_t packs[SIDES] = {0};
    for (uint32_t i = 0; i < m->b->n_levels; i++) {
        const BlockLevel *l = &m->b->level[i];
        if (l->role == BLOCK_SUM) {
            k = l->tile < k ? l->tile : k;
        } else if (l->pack) {
            packs[l->role]++;
            elements[l->role] = sat_mul(k, l->tile);
        }
    }
    if (packs[BLOCK_ROWS] != 1 || packs[BLOCK_COLUMNS] != 1) {
        return "packs both operands once each, or none";
    }
    return elements[BLOCK_ROWS] > PANEL_MOST || elements[BLOCK_COLUMNS] > PANEL_MOST
               ? "has no panels of so many elements: levels of the sum, or of less, come before"
               : NULL;
}

static const char *direct_problem(const Matmul *m)
{
    const Expr *b = m->x[BLOCK_COLUMNS];
    if (m->x[BLOCK_ROWS]->kind != EXPR_LOAD || b->kind != EXPR_LOAD ||
        !range_is_exact(index_range(m, BLOCK_ROWS)) ||
        !range_is_exact(index_range(m, BLOCK_COLUMNS))) {
        return "packs what has another type or no known number of rows and columns";
    }
    if (!m->unit_dst ||
        !access_is_unit(m->l->k, b->buf, b->at, index_var(m, m->index[BLOCK_COLUMNS]))) {
        return "packs what has its columns not side by side";
    }
    return m->b->n_levels != 2 ? "has two levels where nothing is packed" : NULL;
}

/* ---- doing ---- */

/* Loops over the indices of a role that are not cut, one position at a time. */
static void further_loops(Matmul *m, BlockRole role)
{
    for (uint32_t i = role == BLOCK_BATCH ? 0 : 1; i < m->b->n_labels[role]; i++) {
        uint32_t index = m->b->label[role][i];
        VarRef v = loop_open(m->l, "x", m->s->index[index].range, 1, FOR_ALL);
        m->subst[m->n_subst++] = (Subst){index_var(m, index), affine_var(m->l->arena, v)};
    }
}

/* The factor with the loops' variables in place, converted to the type of the sum. */
static const Expr *factor_at(Matmul *m, const Expr *x)
{
    return expr_cast(m->l->arena, expr_subst(m->l, x, m->subst, m->n_subst), m->t);
}

/* One operand as it is packed. */
typedef struct Side {
    const Expr *x;
    uint32_t index; /* its rows or columns */
    int64_t width;  /* of its panels */
    BufRef buf;
    Affine base, kbase; /* where what is packed starts */
    int64_t most_k;     /* rows of a panel */
    Affine row;         /* first row of the panel, without k */
} Side;

/* panel[row + (k - base), c - start] = x, zero where the range ends before the panel does. */
static void pack_panel(Matmul *m, const Side *side, Affine start, const Range *limits,
                       Affine kbase, Range krange)
{
    Legaliser *l = m->l;
    VarRef kv = index_var(m, m->index[BLOCK_SUM]), cv = index_var(m, side->index);
    Affine row = affine_add(l->arena, side->row, 1, var_minus(l, kv, kbase));
    Range columns = range_at(start, side->width, limits);
    if (limits->clipped &&
        !(range_is_exact(*limits) && range_most(*limits) % side->width == 0)) {
        VarRef zv = local_var(l, "z");
        (void)loop_open(l, "edge", columns, side->width, FOR_REST);
        TileIndex index[2] = {index_of(kv, krange, MODE_LOOP),
                              index_of(zv, range_const(side->width), MODE_LOOP)};
        Affine at[2] = {row, affine_var(l->arena, zv)};
        tile_add(l, 2, index, side->buf, at, OP_COPY,
                 expr_const(l->arena, number_int(m->t, 0)));
        loop_close(l);
    }
    const Expr *load = expr_uncast(side->x);
    bool k_inner = access_is_unit(l->k, load->buf, load->at, kv);
    TileIndex over_k = index_of(kv, krange, MODE_LOOP),
              over_c = index_of(cv, columns, MODE_LOOP);
    TileIndex index[2] = {k_inner ? over_c : over_k, k_inner ? over_k : over_c};
    Affine at[2] = {row, var_minus(l, cv, start)};
    tile_add(l, 2, index, side->buf, at, OP_COPY, factor_at(m, side->x));
}

/* Where sums are not cut shorter, blocks of so many join the destination one after the other: registers hold one
 * sum each. */
#define SUM_MOST  512
#define SUM_BLOCK 256

/* Opens a loop over blocks of a long sum; else there is one block. */
static Range sum_block(Matmul *m, Range sum)
{
    if (range_most(sum) <= SUM_MOST) {
        return sum;
    }
    int64_t step =
        sum.clipped || sum.span == 0 ? SUM_BLOCK : divisor_at_most(sum.span, SUM_BLOCK);
    VarRef v = loop_open(m->l, "kb", sum, step, FOR_ALL);
    return range_at(affine_var(m->l->arena, v), step, &sum);
}

/* dst[row, column] += sum of a * b, for a register tile. */
static void product(Matmul *m, const Range range[3], const Expr *a, const Expr *b)
{
    Legaliser *l = m->l;
    uint32_t rank = l->k->bufs.at[m->s->dst].rank;
    static const IndexMode mode[3] = {MODE_UNROLL, MODE_VECTOR, MODE_LOOP};
    TileIndex index[3];
    for (BlockRole r = BLOCK_ROWS; r <= BLOCK_SUM; r++) {
        index[r] = index_of(index_var(m, m->index[r]), range[r], mode[r]);
    }
    const Expr *pair[2] = {a, b};
    tile_add(l, 3, index, m->s->dst, access_subst(l, rank, m->s->at, m->subst, m->n_subst),
             OP_SUM, expr_op(l->arena, OP_MUL, m->t, 2, pair));
}

/* panel[row + (k - base), c - start] */
static const Expr *panel_load(Matmul *m, BlockRole r, const Side *side, Affine start)
{
    Legaliser *l = m->l;
    VarRef kv = index_var(m, m->index[BLOCK_SUM]);
    Affine at[2] = {affine_add(l->arena, side->row, 1, var_minus(l, kv, side->kbase)),
                    var_minus(l, index_var(m, m->index[r]), start)};
    return load_at(l, side->buf, 2, at);
}

/* Where the loops over levels stand: the block of each role that is open. */
typedef struct Open {
    Affine base[3];
    Range range[3];
    int64_t most[3]; /* positions of the block, rounded up to whole panels */
    Side side[SIDES];
} Open;

/* Panels of several rows each lie behind each other, k by k: so k is padded to whole panels. */
static int64_t sum_unit(const Matmul *m)
{
    int64_t unit = m->tile[BLOCK_COLUMNS];
    for (uint32_t i = 0; i < m->b->n_levels; i++) {
        const BlockLevel *l = &m->b->level[i];
        if (l->pack && l->role == BLOCK_ROWS && l->tile > m->tile[BLOCK_ROWS]) {
            unit *= unit % m->tile[BLOCK_ROWS] == 0 ? 1 : m->tile[BLOCK_ROWS];
        }
    }
    return unit;
}

static void open_block(Matmul *m, Open *o, const BlockLevel *level)
{
    BlockRole r = level->role;
    int64_t unit = r == BLOCK_SUM ? sum_unit(m) : m->tile[r];
    const char *hint = r == BLOCK_SUM ? "kb" : r == BLOCK_COLUMNS ? "jb" : "ib";
    Blocks b = range_blocks(o->range[r], level->tile, unit);
    blocks_open(m->l, hint, &b, &o->base[r], &o->range[r]);
    o->most[r] = b.most;
}

static Affine open_tile(Matmul *m, BlockRole r, Range range)
{
    VarRef v = loop_open(m->l, r == BLOCK_ROWS ? "i" : "j", range, m->tile[r],
                         range.clipped ? FOR_ALL : FOR_FULL);
    return affine_var(m->l->arena, v);
}

/* Copies what the operand holds within the open blocks; `single`: that is one panel, at `start`. */
static void pack(Matmul *m, Open *o, BlockRole r, const Affine *single)
{
    Legaliser *l = m->l;
    Side *side = &o->side[r];
    int64_t most_k = o->most[BLOCK_SUM], width = m->tile[r];
    int64_t extent[2] = {single != NULL ? most_k : most_k / width * o->most[r], width};
    *side = (Side){.x = m->x[r],
                   .index = m->index[r],
                   .width = width,
                   .most_k = most_k,
                   .base = single != NULL ? *single : o->base[r],
                   .kbase = o->base[BLOCK_SUM]};
    side->buf = buffer_alloc(l, r == BLOCK_ROWS ? "pa" : "pb", m->t, SPACE_TILE, 2, extent);
    Affine start = single != NULL ? *single : open_tile(m, r, o->range[r]);
    side->row = affine_add(l->arena, affine_const(0), most_k / width,
                           affine_minus(l, start, side->base));
    pack_panel(m, side, start, &o->range[r], side->kbase, o->range[BLOCK_SUM]);
    if (single == NULL) {
        loop_close(l);
    }
}

/* Without a limit where levels of the role cut it evenly. */
static Range whole_range(const Matmul *m, BlockRole r)
{
    Range x = index_range(m, r);
    int64_t most = range_most(x);
    bool even = range_is_exact(x) && most > 0;
    for (uint32_t i = 0; i < m->b->n_levels; i++) {
        const BlockLevel *level = &m->b->level[i];
        even &= level->role != r || most % level->tile == 0;
    }
    return even ? (Range){.start = x.start, .span = most, .limit = dim_fixed(0)} : x;
}

/* Is something packed before the sum is cut? */
static bool packs_whole_sums(const Blocking *b)
{
    for (uint32_t i = 0; i < b->n_levels && b->level[i].role != BLOCK_SUM; i++) {
        if (b->level[i].pack) {
            return true;
        }
    }
    return false;
}

/* Opens loops that legalise_matmul closes. */
static void packed_emit(Matmul *m)
{
    Legaliser *l = m->l;
    const Blocking *b = m->b;
    Open o;
    Affine tile[SIDES];
    further_loops(m, BLOCK_BATCH);
    further_loops(m, BLOCK_SUM);
    for (BlockRole r = BLOCK_ROWS; r <= BLOCK_SUM; r++) {
        o.range[r] = r == BLOCK_SUM ? index_range(m, r) : whole_range(m, r);
        o.base[r] = o.range[r].start;
    }
    if (packs_whole_sums(b)) {
        BlockLevel whole = {BLOCK_SUM, range_most(o.range[BLOCK_SUM]), false};
        open_block(m, &o, &whole);
    }
    for (uint32_t i = 0; i < b->n_levels; i++) {
        const BlockLevel *level = &b->level[i];
        BlockRole r = level->role;
        if (r != BLOCK_SUM && level == blocking_outermost(b, r)) {
            further_loops(m, r);
        }
        if (level != blocking_innermost(b, r) || r == BLOCK_SUM) {
            open_block(m, &o, level);
        } else {
            tile[r] = open_tile(m, r, o.range[r]);
        }
        if (level->pack) {
            pack(m, &o, r, level == blocking_innermost(b, r) ? &tile[r] : NULL);
        }
    }
    for (BlockRole r = 0; r < SIDES; r++) {
        Side *side = &o.side[r];
        side->row = affine_add(l->arena, affine_const(0), side->most_k / side->width,
                               affine_minus(l, tile[r], side->base));
    }
    const Range range[3] = {
        range_at(tile[BLOCK_ROWS], m->tile[BLOCK_ROWS], &o.range[BLOCK_ROWS]),
        range_at(tile[BLOCK_COLUMNS], m->tile[BLOCK_COLUMNS], &o.range[BLOCK_COLUMNS]),
        sum_block(m, o.range[BLOCK_SUM])};
    product(m, range, panel_load(m, BLOCK_ROWS, &o.side[BLOCK_ROWS], tile[BLOCK_ROWS]),
            panel_load(m, BLOCK_COLUMNS, &o.side[BLOCK_COLUMNS], tile[BLOCK_COLUMNS]));
}

/* Loops over full tiles of an exact range, then what is left: at most two rounds. */
typedef struct Cut {
    Range range;
    int64_t step;
} Cut;

static uint32_t cut_range(Legaliser *l, Range r, int64_t step, Cut cut[2])
{
    int64_t most = range_most(r), full = most / step * step;
    uint32_t n = 0;
    if (full > 0) {
        cut[n++] = (Cut){{.start = r.start, .span = full, .limit = dim_fixed(0)}, step};
    }
    if (most > full) {
        Affine start = affine_add(l->arena, r.start, 1, affine_const(full));
        cut[n++] =
            (Cut){{.start = start, .span = most - full, .limit = dim_fixed(0)}, most - full};
    }
    return n;
}

static void direct_emit(Matmul *m)
{
    Legaliser *l = m->l;
    BlockRole outer = m->b->level[0].role, inner = m->b->level[1].role;
    Cut cut[SIDES][2];
    uint32_t n[SIDES];
    Affine at[SIDES];
    int64_t size[SIDES];
    Range uncut = {.clipped = false};
    further_loops(m, BLOCK_BATCH);
    further_loops(m, BLOCK_SUM);
    further_loops(m, BLOCK_ROWS);
    further_loops(m, BLOCK_COLUMNS);
    Range sum = sum_block(m, index_range(m, BLOCK_SUM));
    for (BlockRole r = 0; r < SIDES; r++) {
        n[r] = cut_range(l, index_range(m, r), m->tile[r], cut[r]);
    }
    for (uint32_t i = 0; i < n[outer]; i++) {
        const Cut *x = &cut[outer][i];
        size[outer] = x->step;
        at[outer] = affine_var(l->arena, loop_open(l, outer == BLOCK_ROWS ? "i" : "j", x->range,
                                                   x->step, FOR_FULL));
        for (uint32_t j = 0; j < n[inner]; j++) {
            const Cut *y = &cut[inner][j];
            size[inner] = y->step;
            at[inner] = affine_var(l->arena, loop_open(l, inner == BLOCK_ROWS ? "i" : "j",
                                                       y->range, y->step, FOR_FULL));
            const Range range[3] = {range_at(at[BLOCK_ROWS], size[BLOCK_ROWS], &uncut),
                                    range_at(at[BLOCK_COLUMNS], size[BLOCK_COLUMNS], &uncut),
                                    sum};
            product(m, range, factor_at(m, m->x[BLOCK_ROWS]),
                    factor_at(m, m->x[BLOCK_COLUMNS]));
            loop_close(l);
        }
        loop_close(l);
    }
}

static void matmul_of(Legaliser *l, const Stmt *s, Matmul *m)
{
    const Blocking *b = s->blocking;
    *m = (Matmul){.l = l, .s = s, .b = b, .t = l->k->bufs.at[s->dst].dtype};
    for (BlockRole r = BLOCK_ROWS; r <= BLOCK_SUM; r++) {
        m->index[r] = b->label[r][0];
    }
    VarRef row = index_var(m, m->index[BLOCK_ROWS]);
    bool left = factor_uses(l->k, s->value->arg[0], row);
    m->x[BLOCK_ROWS] = s->value->arg[left ? 0 : 1];
    m->x[BLOCK_COLUMNS] = s->value->arg[left ? 1 : 0];
    m->unit_dst = access_is_unit(l->k, s->dst, s->at, index_var(m, m->index[BLOCK_COLUMNS]));
    for (uint32_t i = 0; i < b->n_levels; i++) {
        m->packed |= b->level[i].pack;
        if (b->level[i].role < SIDES) {
            m->tile[b->level[i].role] = b->level[i].tile;
        }
    }
    m->subst = ARENA_ARRAY(l->arena, (size_t)s->n_index + 4, Subst);
}

bool legalise_matmul(Legaliser *l, const Stmt *s)
{
    if (s->blocking == NULL || s->blocking->n_levels == 0) {
        return false;
    }
    Matmul m;
    matmul_of(l, s, &m);
    const char *problem = shape_problem(&m);
    problem = problem != NULL ? problem : m.packed ? packed_problem(&m) : direct_problem(&m);
    if (problem != NULL) {
        diag_unsupported(&l->ctx->diags, E_TARGET, s->span,
                         "levels of a contraction: target '%s' %s", l->k->target, problem);
        l->failed = true;
        return true;
    }
    StmtBlock *outside = l->block;
    if (m.packed) {
        packed_emit(&m);
    } else {
        direct_emit(&m);
    }
    while (l->block != outside) {
        loop_close(l);
    }
    return true;
}
