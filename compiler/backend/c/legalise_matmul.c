/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of products of two operands. Of the indices that stay, one becomes the row of a register tile and one its vector; the
 * operand with the vector index (B) is copied block by block into panels
 * of NR columns, the other (A) into panels of MR rows, both in the order in which they are then read and padded with zeros at the
 * edges. So there is one register tile, always full, whatever the strides, types and
 * extents of the operands are; edges are cut where its result joins the destination.
 *
 *     for each index in both operands, each further summed index
 *       for k by KC
 *         for each further index of B
 *           for j by NC:  pack B[KC x NC]
 *             for each further index of A
 *               for i by MR:  pack A[MR x KC]
 *                 for j by NR:  c[MR x NR] = sum over k of a[k,i] * b[k,j];  dst += c
 *
 * Small extents that are all known skip the panels and read both operands where they are. */
#include "backend/c/legalise.h"

typedef enum Role { ROLE_OUTER, ROLE_ROW, ROLE_COLUMN, ROLE_SUM } Role;

/* The decisions. Everything below `plan_choose` obeys them. */
typedef struct MatmulPlan {
    const Expr *a, *b; /* a has the row index, b the vector index */
    uint32_t row, vec,
        k; /* places in the statement's list of indices; k NONE: nothing is summed */
    int64_t mr, nr, kc, nc;
    bool direct;   /* no panels */
    bool unit_dst; /* the vector index has unit stride in the destination */
} MatmulPlan;

#define TILE_BYTES                                                                             \
    1024 /* 16 vectors of 64 bytes: half the registers of the widest machines                  \
          */
#define TILE_ROWS       8
#define TILE_MOST_ROWS  16
#define TILE_VECTORS    2
#define BLOCK_K         256
#define BLOCK_N         256
#define DIRECT_ELEMENTS 4096 /* of B: stays in the first cache */

static const Expr *factor_load(const Expr *x)
{
    return x->kind == EXPR_OP && x->op == OP_CAST ? x->arg[0] : x;
}

static bool factor_uses(const Kernel *k, const Expr *x, VarRef v)
{
    const Expr *load = factor_load(x);
    return access_uses(k, load->buf, load->at, v);
}

static bool is_factor(const Expr *x)
{
    return factor_load(x)->kind == EXPR_LOAD;
}

/* ---- deciding ---- */

/* The longest summed index. */
static uint32_t longest_sum(const Kernel *k, const Stmt *s)
{
    uint32_t found = NONE;
    int64_t best = -1;
    for (uint32_t i = 0; i < s->n_index; i++) {
        int64_t length = range_typical(k, s->index[i].range);
        if (!access_uses(k, s->dst, s->at, s->index[i].var) && length > best) {
            best = length;
            found = i;
        }
    }
    return found;
}

/* How well an index serves as the vector: its length, as far as a tile uses it; unit stride in the destination counts most,
 * since the operand is packed anyway. */
static int64_t vector_score(const Kernel *k, const Stmt *s, uint32_t i, const Expr *operand)
{
    VarRef v = s->index[i].var;
    const Expr *load = factor_load(operand);
    int64_t length = range_typical(k, s->index[i].range);
    int64_t score = length < 32 ? length : 32;
    score *= access_is_unit(k, s->dst, s->at, v) ? 8 : 1;
    return score * (access_is_unit(k, load->buf, load->at, v) ? 2 : 1);
}

/* And as the row: packing must not fetch a line of memory for each element, so it or the summed index runs along lines. */
static int64_t row_score(const Kernel *k, const Stmt *s, uint32_t i, const Expr *operand,
                         uint32_t sum)
{
    const Expr *load = factor_load(operand);
    int64_t length = range_typical(k, s->index[i].range);
    bool lines = access_is_unit(k, load->buf, load->at, s->index[i].var) ||
                 (sum != NONE && access_is_unit(k, load->buf, load->at, s->index[sum].var));
    return (length < 64 ? length : 64) * (lines ? 16 : 1);
}

/* The best vector (or row) index of `operand` that `other` lacks, or NONE. */
static uint32_t best_index(const Kernel *k, const Stmt *s, const Expr *operand,
                           const Expr *other, bool as_vector, uint32_t sum, int64_t *best)
{
    uint32_t found = NONE;
    *best = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        if (!access_uses(k, s->dst, s->at, v) || !factor_uses(k, operand, v) ||
            factor_uses(k, other, v) || range_most(s->index[i].range) == 1) {
            continue;
        }
        int64_t score =
            as_vector ? vector_score(k, s, i, operand) : row_score(k, s, i, operand, sum);
        if (score > *best || found == NONE) {
            *best = score;
            found = i;
        }
    }
    return found;
}

/* Columns of a register tile: few are padding, and few vectors are short. */
static int64_t choose_columns(const Kernel *k, Range r, int64_t lanes)
{
    int64_t widest = lanes * TILE_VECTORS;
    int64_t n = range_typical(k, r);
    int64_t best = 0, best_cost = INT64_MAX;
    for (int64_t nr = widest, price = 4; nr >= lanes / 4 && nr >= 2;
         nr /= 2, price += price / 2) {
        int64_t cost = sat_mul((n + nr - 1) / nr, nr * price);
        if (cost < best_cost && (r.span == 0 || r.span % nr == 0)) {
            best = nr;
            best_cost = cost;
        }
    }
    if (best == 0) {
        best = divisor_at_most(r.span, widest);
    }
    return best;
}

static bool is_direct(const Kernel *k, const Stmt *s, const MatmulPlan *p)
{
    const Expr *b = factor_load(p->b);
    Range rv = s->index[p->vec].range, rk = s->index[p->k].range, rr = s->index[p->row].range;
    if (p->a->kind != EXPR_LOAD || p->b->kind != EXPR_LOAD || !range_is_exact(rv) ||
        !range_is_exact(rr)) {
        return false;
    }
    bool unit = p->unit_dst && access_is_unit(k, b->buf, b->at, s->index[p->vec].var);
    int64_t most_k = range_most(rk);
    return unit &&
           (range_most(rr) <= TILE_ROWS || sat_mul(most_k, range_most(rv)) <= DIRECT_ELEMENTS);
}

/* A product that no index leaves on one side alone, or of a type without vectors, is not for register tiles. */
static bool plan_choose(const Kernel *k, const Stmt *s, MatmulPlan *p)
{
    DType t = k->bufs.at[s->dst].dtype;
    const Expr *v = s->value;
    if (s->fold != OP_SUM || v->kind != EXPR_OP || v->op != OP_MUL || v->dtype != t ||
        !dtype_has_vectors(t) || !is_factor(v->arg[0]) || !is_factor(v->arg[1])) {
        return false;
    }
    int64_t left = 0, right = 0, other = 0;
    uint32_t sum = longest_sum(k, s);
    uint32_t in_left = best_index(k, s, v->arg[0], v->arg[1], true, sum, &left);
    uint32_t in_right = best_index(k, s, v->arg[1], v->arg[0], true, sum, &right);
    if (in_left == NONE || in_right == NONE || sum == NONE) {
        return false;
    }
    bool swap = left > right;
    *p = (MatmulPlan){
        .a = v->arg[swap ? 1 : 0], .b = v->arg[swap ? 0 : 1], .vec = swap ? in_left : in_right};
    p->k = sum;
    p->row = best_index(k, s, p->a, p->b, false, sum, &other);
    Range rows = s->index[p->row].range;
    p->unit_dst = access_is_unit(k, s->dst, s->at, s->index[p->vec].var);
    p->nr = choose_columns(k, s->index[p->vec].range, vector_lanes(t));
    int64_t most_rows = TILE_BYTES / dtype_bytes(t) / p->nr;
    most_rows = most_rows > TILE_MOST_ROWS ? TILE_MOST_ROWS : most_rows;
    p->mr = rows.span > 0 ? divisor_at_most(rows.span, most_rows) : most_rows;
    p->mr = range_most(rows) < p->mr ? range_most(rows) : p->mr;
    p->mr = p->mr < 1 ? 1 : p->mr;
    p->kc = BLOCK_K;
    p->nc = BLOCK_N;
    p->direct = is_direct(k, s, p);
    return true;
}

/* ---- doing ---- */

typedef struct Matmul {
    Legaliser *l;
    const Stmt *s;
    const MatmulPlan *p;
    DType t;
    Subst *subst; /* of the indices that have become loops */
    uint32_t n_subst;
} Matmul;

static VarRef index_var(const Matmul *m, uint32_t i)
{
    return m->s->index[i].var;
}

/* Loops over all indices for which `wanted` holds, one position at a time. */
static void outer_loops(Matmul *m, bool (*wanted)(const Matmul *, uint32_t))
{
    for (uint32_t i = 0; i < m->s->n_index; i++) {
        if (i == m->p->row || i == m->p->vec || i == m->p->k || !wanted(m, i)) {
            continue;
        }
        VarRef v = loop_open(m->l, "x", m->s->index[i].range, 1, FOR_ALL);
        m->subst[m->n_subst++] = (Subst){index_var(m, i), affine_var(m->l->arena, v)};
    }
}

static bool is_own(const Matmul *m, uint32_t i, const Expr *mine, const Expr *other)
{
    const Kernel *k = m->l->k;
    VarRef v = index_var(m, i);
    return access_uses(k, m->s->dst, m->s->at, v) && factor_uses(k, mine, v) &&
           !factor_uses(k, other, v);
}

static bool is_own_of_a(const Matmul *m, uint32_t i)
{
    return is_own(m, i, m->p->a, m->p->b);
}

static bool is_own_of_b(const Matmul *m, uint32_t i)
{
    return is_own(m, i, m->p->b, m->p->a);
}

static bool is_shared(const Matmul *m, uint32_t i)
{
    return !is_own_of_a(m, i) && !is_own_of_b(m, i);
}

static void add_subst(Matmul *m, uint32_t i, Affine by)
{
    m->subst[m->n_subst++] = (Subst){index_var(m, i), by};
}

/* The factor with the loops' variables in place, converted to the type of the sum. */
static const Expr *factor_at(Matmul *m, const Expr *x)
{
    return expr_cast(m->l->arena, expr_subst(m->l, x, m->subst, m->n_subst), m->t);
}

/* One side of the product as it is packed: which index, its panel's width and the buffer. */
typedef struct Side {
    const Expr *x;
    uint32_t index;
    int64_t width;
    BufRef buf;
    Affine row; /* first row of the panel, without k */
} Side;

/* panel[row + (k - base), c - start] = x, zero where the range ends before the panel does. */
static void pack_panel(Matmul *m, const Side *side, Affine start, const Range *limits,
                       Affine kbase, Range krange)
{
    Legaliser *l = m->l;
    VarRef kv = index_var(m, m->p->k), cv = index_var(m, side->index);
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
    const Expr *load = factor_load(side->x);
    bool k_inner = access_is_unit(l->k, load->buf, load->at, kv);
    TileIndex over_k = index_of(kv, krange, MODE_LOOP),
              over_c = index_of(cv, columns, MODE_LOOP);
    TileIndex index[2] = {k_inner ? over_c : over_k, k_inner ? over_k : over_c};
    Affine at[2] = {row, var_minus(l, cv, start)};
    tile_add(l, 2, index, side->buf, at, OP_COPY, factor_at(m, side->x));
}

/* dst[row i, column j] += e[i - i0, j - j0] within the limits. */
static void join_tile(Matmul *m, BufRef e, Affine i0, Affine j0, const Range *rows,
                      const Range *columns)
{
    Legaliser *l = m->l;
    const MatmulPlan *p = m->p;
    uint32_t rank = l->k->bufs.at[m->s->dst].rank, mark = m->n_subst;
    VarRef iv = index_var(m, p->row), jv = index_var(m, p->vec);
    Range ri = range_at(i0, p->mr, rows), rj = range_at(j0, p->nr, columns);
    Affine at[2] = {var_minus(l, iv, i0), var_minus(l, jv, j0)};
    TileIndex index[2] = {index_of(iv, ri, MODE_LOOP), index_of(jv, rj, MODE_LOOP)};
    const Affine *dst = access_subst(l, rank, m->s->at, m->subst, m->n_subst);
    if (!p->unit_dst) {
        tile_add(l, 2, index, m->s->dst, dst, OP_SUM, load_at(l, e, 2, at));
        return;
    }
    Affine i = affine_var(l->arena, loop_open(l, "row", ri, 1, FOR_ALL));
    add_subst(m, p->row, i);
    at[0] = affine_minus(l, i, i0);
    for (int part = 0; part < (columns->clipped ? 2 : 1); part++) {
        Affine j = affine_var(l->arena,
                              loop_open(l, "col", rj, p->nr, part == 0 ? FOR_FULL : FOR_REST));
        at[1] = var_minus(l, jv, j0);
        Range inner = part == 0 ? (Range){.start = j, .span = p->nr, .limit = dim_fixed(0)}
                                : range_at(j, p->nr, columns);
        index[1] = index_of(jv, inner, part == 0 ? MODE_VECTOR : MODE_LOOP);
        dst = access_subst(l, rank, m->s->at, m->subst, m->n_subst);
        tile_add(l, 1, index + 1, m->s->dst, dst, OP_SUM, load_at(l, e, 2, at));
        loop_close(l);
    }
    m->n_subst = mark;
    loop_close(l);
}

/* e = the sum over one block of k, from panels. */
static BufRef register_tile(Matmul *m, const Side *a, const Side *b, Affine kbase, Range krange)
{
    Legaliser *l = m->l;
    int64_t extent[2] = {m->p->mr, m->p->nr};
    VarRef iv = local_var(l, "u"), jv = local_var(l, "v");
    TileIndex index[2] = {index_of(iv, range_const(m->p->mr), MODE_UNROLL),
                          index_of(jv, range_const(m->p->nr), MODE_VECTOR)};
    Affine at[2] = {affine_var(l->arena, iv), affine_var(l->arena, jv)};
    BufRef c = buffer_alloc(l, "c", m->t, SPACE_ACC, 2, extent);
    BufRef e = buffer_alloc(l, "e", m->t, SPACE_TILE, 2, extent);
    tile_add(l, 2, index, c, at, OP_COPY, expr_const(l->arena, number_int(m->t, 0)));
    VarRef kv = loop_open(l, "kk", krange, 1, FOR_ALL);
    Affine k = var_minus(l, kv, kbase);
    Affine at_a[2] = {affine_add(l->arena, a->row, 1, k), at[0]};
    Affine at_b[2] = {affine_add(l->arena, b->row, 1, k), at[1]};
    const Expr *pair[2] = {load_at(l, a->buf, 2, at_a), load_at(l, b->buf, 2, at_b)};
    tile_add(l, 2, index, c, at, OP_SUM, expr_op(l->arena, OP_MUL, m->t, 2, pair));
    loop_close(l);
    tile_add(l, 2, index, e, at, OP_COPY, load_at(l, c, 2, at));
    return e;
}

/* Inside the loops over blocks of k and j: the panels of B are packed; A's follow row by row. */
static void rows_and_tiles(Matmul *m, Side *b, Affine jbase, Range jrange, Affine kbase,
                           Range krange, int64_t most_k)
{
    Legaliser *l = m->l;
    const MatmulPlan *p = m->p;
    const Range *rows = &m->s->index[p->row].range;
    outer_loops(m, is_own_of_a);
    Affine i0 = affine_var(l->arena,
                           loop_open(l, "i", *rows, p->mr, rows->clipped ? FOR_ALL : FOR_FULL));
    int64_t extent[2] = {most_k, p->mr};
    Side a = {.x = p->a, .index = p->row, .width = p->mr, .row = affine_const(0)};
    a.buf = buffer_alloc(l, "pa", m->t, SPACE_TILE, 2, extent);
    pack_panel(m, &a, i0, rows, kbase, krange);
    Affine j0 = affine_var(
        l->arena, loop_open(l, "j", jrange, p->nr, jrange.clipped ? FOR_ALL : FOR_FULL));
    b->row = affine_add(l->arena, affine_const(0), most_k / p->nr, affine_minus(l, j0, jbase));
    BufRef e = register_tile(m, &a, b, kbase, krange);
    join_tile(m, e, i0, j0, rows, &jrange);
}

/* Opens loops that legalise_matmul closes. */
static void packed_emit(Matmul *m)
{
    Legaliser *l = m->l;
    const MatmulPlan *p = m->p;
    Affine kbase, jbase;
    Range krange, jrange;
    outer_loops(m, is_shared);
    Blocks kb = range_blocks(m->s->index[p->k].range, p->kc, p->nr);
    blocks_open(l, "kb", &kb, &kbase, &krange);
    outer_loops(m, is_own_of_b);
    Blocks jb = range_blocks(m->s->index[p->vec].range, p->nc, p->nr);
    blocks_open(l, "jb", &jb, &jbase, &jrange);
    int64_t extent[2] = {kb.most / p->nr * jb.most, p->nr};
    Side b = {.x = p->b, .index = p->vec, .width = p->nr};
    b.buf = buffer_alloc(l, "pb", m->t, SPACE_TILE, 2, extent);
    Affine j0 = affine_var(
        l->arena, loop_open(l, "j", jrange, p->nr, jrange.clipped ? FOR_ALL : FOR_FULL));
    b.row = affine_add(l->arena, affine_const(0), kb.most / p->nr, affine_minus(l, j0, jbase));
    pack_panel(m, &b, j0, &jrange, kbase, krange);
    loop_close(l);
    rows_and_tiles(m, &b, jbase, jrange, kbase, krange, kb.most);
}

/* One register tile of a direct product: `rows` by `columns` from known positions. */
static void direct_tile(Matmul *m, Affine i0, int64_t rows, Affine j0, int64_t columns)
{
    Legaliser *l = m->l;
    const MatmulPlan *p = m->p;
    int64_t extent[2] = {rows, columns};
    VarRef iv = index_var(m, p->row), jv = index_var(m, p->vec);
    Range clip = {.clipped = false};
    TileIndex index[2] = {index_of(iv, range_at(i0, rows, &clip), MODE_UNROLL),
                          index_of(jv, range_at(j0, columns, &clip), MODE_VECTOR)};
    Affine at[2] = {var_minus(l, iv, i0), var_minus(l, jv, j0)};
    BufRef c = buffer_alloc(l, "c", m->t, SPACE_ACC, 2, extent);
    tile_add(l, 2, index, c, at, OP_COPY, expr_const(l->arena, number_int(m->t, 0)));
    VarRef kv = loop_open(l, "kk", m->s->index[p->k].range, 1, FOR_ALL);
    add_subst(m, p->k, affine_var(l->arena, kv));
    const Expr *pair[2] = {factor_at(m, p->a), factor_at(m, p->b)};
    tile_add(l, 2, index, c, at, OP_SUM, expr_op(l->arena, OP_MUL, m->t, 2, pair));
    m->n_subst--;
    loop_close(l);
    uint32_t rank = l->k->bufs.at[m->s->dst].rank;
    tile_add(l, 2, index, m->s->dst, access_subst(l, rank, m->s->at, m->subst, m->n_subst),
             OP_SUM, load_at(l, c, 2, at));
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

static bool is_any(const Matmul *m, uint32_t i)
{
    (void)m;
    (void)i;
    return true;
}

static void direct_emit(Matmul *m)
{
    Legaliser *l = m->l;
    const MatmulPlan *p = m->p;
    Cut rows[2], columns[2];
    outer_loops(m, is_any);
    int64_t width = vector_lanes(m->t) * TILE_VECTORS;
    uint32_t n_rows = cut_range(l, m->s->index[p->row].range, TILE_ROWS, rows);
    uint32_t n_columns = cut_range(l, m->s->index[p->vec].range, width, columns);
    for (uint32_t i = 0; i < n_rows; i++) {
        Affine i0 =
            affine_var(l->arena, loop_open(l, "i", rows[i].range, rows[i].step, FOR_FULL));
        for (uint32_t j = 0; j < n_columns; j++) {
            Affine j0 = affine_var(
                l->arena, loop_open(l, "j", columns[j].range, columns[j].step, FOR_FULL));
            direct_tile(m, i0, rows[i].step, j0, columns[j].step);
            loop_close(l);
        }
        loop_close(l);
    }
}

bool legalise_matmul(Legaliser *l, const Stmt *s)
{
    MatmulPlan plan;
    if (!plan_choose(l->k, s, &plan)) {
        return false;
    }
    Matmul m = {.l = l, .s = s, .p = &plan, .t = l->k->bufs.at[s->dst].dtype};
    m.subst = ARENA_ARRAY(l->arena, (size_t)s->n_index + 4, Subst);
    StmtBlock *outside = l->block;
    if (plan.direct) {
        direct_emit(&m);
    } else {
        packed_emit(&m);
    }
    while (l->block != outside) {
        loop_close(l);
    }
    return true;
}
