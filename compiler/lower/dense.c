/* SPDX-License-Identifier: Apache-2.0 */
/* Dense steps as loops over blocks of DENSE_BLOCK rows. Of a cholesky the block on the diagonal is factored where it lies in the first cache,
 * transposed, so that rows are side by side; then the panel below it is solved, and what lies right of the panel is updated by a product:
 *
 *     for $k in 0..n step 64 {
 *       map [j, i in $k:64<n] @U[j-$k, i-$k] = @L[i,j]
 *       for $j in $k:64<n step 1 { .. }                                        @T, with @T[j,i] = @L[i,j]
 *       for $r in $k+64..n step 64 { .. }                                      @P[i, j-$k] = @L[i,j]
 *       for $c in $k+64..n step 64 {
 *         matmul [i in $c..n, j in $c:64<n, m in $k:64<n] @L[i,j] += mul(-1.0, mul(@P[i, m-$k], @P[j, m-$k]))
 *       }
 *     }
 *
 * A solution goes the same way, from the last row on where the triangle is an upper one. Matrices known to be no larger than a block
 * have no loop over blocks; of small ones LANES lie side by side in the block's buffers, as their last dimension. */
#include "lower/build.h"

/* Matrices that lie side by side: so many of at most as many rows, half as many of at most twice as many. The first cache has what they are
 * made of, and become. */
#define LANES 32

typedef struct Dense {
    Builder *b;
    NodeRef node;
    const Node *n;
    uint32_t n_batch;
    Affine *batch; /* [n_batch] positions */
    Dim rows;
    bool blocked;
    Affine k;       /* where the block begins */
    VarRef i, j, m; /* local indices */
    BufRef to;      /* the result */
    int64_t lanes;  /* 0: none */
    TileIndex lane; /* of the last batch, and where it is in the block's buffers */
    Affine lane_at;
    BufRef good; /* i64 of each matrix of several: its first pivot that was not above 0 */
} Dense;

/* What the statements of a block have beside its rows: indices, and where they are in the block's buffers. */
typedef struct Columns {
    uint32_t n;
    const TileIndex *index;
    const Affine *at;
} Columns;

/* ---- positions and values ---- */

static Affine plus(Dense *s, Affine x, int64_t coef, Affine y)
{
    return affine_add(s->b->arena, x, coef, y);
}

static Affine var_at(Dense *s, VarRef v)
{
    return affine_var(s->b->arena, v);
}

/* The position in buffers of the block. */
static Affine in_block(Dense *s, Affine x)
{
    return plus(s, x, -1, s->k);
}

static Range block_range(const Dense *s)
{
    Range r = range_whole(s->rows);
    if (s->blocked) {
        r.start = s->k;
        r.span = DENSE_BLOCK;
    }
    return r;
}

static Range range_behind(Dense *s, Affine start, int64_t span)
{
    Range r = range_whole(s->rows);
    r.start = start;
    r.span = span;
    return r;
}

/* Of a buffer of the block. */
static const Affine *places(Dense *s, Affine x, Affine y)
{
    Affine at[3] = {x, y, s->lane_at};
    return arena_copy(s->b->arena, at, sizeof at);
}

/* Row `x` of a buffer of the block, and a column of each. */
static const Affine *row_places(Dense *s, Affine x, const Columns *c)
{
    Affine *at = ARENA_ARRAY(s->b->arena, c->n + 2, Affine);
    at[0] = x;
    for (uint32_t d = 0; d < c->n; d++) {
        at[d + 1] = c->at[d];
    }
    at[c->n + 1] = s->lane_at;
    return at;
}

/* The element of a value of batches at row `x` and at columns. */
static const Affine *whole_places(Dense *s, Affine x, uint32_t n, const Affine *columns)
{
    Affine *at = ARENA_ARRAY(s->b->arena, s->n_batch + 1 + n, Affine);
    for (uint32_t d = 0; d < s->n_batch; d++) {
        at[d] = s->batch[d];
    }
    at[s->n_batch] = x;
    for (uint32_t d = 0; d < n; d++) {
        at[s->n_batch + 1 + d] = columns[d];
    }
    return at;
}

static const Expr *load(Dense *s, BufRef buf, const Affine *at)
{
    return expr_load(s->b->arena, s->b->k, buf, at);
}

static const Expr *two(Dense *s, Op op, DType t, const Expr *x, const Expr *y)
{
    const Expr *arg[2] = {x, y};
    return expr_op(s->b->arena, op, t, 2, arg);
}

static const Expr *number(Dense *s, double x)
{
    return expr_const(s->b->arena, number_real(s->n->dtype, x));
}

static const Expr *index_of(Dense *s, Affine x)
{
    return expr_index(s->b->arena, DTYPE_I64, x);
}

/* `value` where x <= y, else 0. */
static const Expr *where_not_above(Dense *s, Affine x, Affine y, const Expr *value)
{
    const Expr *arg[3] = {two(s, OP_LE, DTYPE_BOOL, index_of(s, x), index_of(s, y)), value,
                          number(s, 0)};
    return expr_op(s->b->arena, OP_SELECT, s->n->dtype, 3, arg);
}

/* The element of an operand at batches, a row and columns. */
static const Expr *operand_at(Dense *s, uint32_t k, const Affine *at)
{
    NodeRef o = s->n->operand[k];
    uint32_t rank = graph_node(s->b->g, o)->rank;
    Position *pos = ARENA_ARRAY(s->b->arena, rank, Position);
    for (uint32_t d = 0; d < rank; d++) {
        pos[d] = (Position){.at = at[d]};
    }
    return build_expr(s->b, o, access_in_order(s->b->arena, rank), pos);
}

/* What the block begins with: of the result, which has been copied, or, where the block is all there is, of the operand. */
static const Expr *first_at(Dense *s, const Affine *at)
{
    return s->blocked ? load(s, s->to, at) : operand_at(s, s->n->n_operands - 1, at);
}

/* ---- statements ---- */

static Stmt *tile(Dense *s, Block *to, uint32_t n, const TileIndex *index, BufRef dst,
                  const Affine *at, const Expr *value)
{
    Stmt *stmt = build_stmt(s->b, STMT_TILE, s->n->span, s->n->name);
    TileIndex *all = ARENA_ARRAY(s->b->arena, n + 1, TileIndex);
    for (uint32_t d = 0; d < n; d++) {
        all[d] = index[d];
    }
    all[n] = s->lane;
    stmt->n_index = n + (s->lanes > 0 ? 1 : 0);
    stmt->index = all;
    stmt->dst = dst;
    stmt->at = at;
    stmt->value = value;
    vec_push(s->b->arena, &to->list, stmt);
    return stmt;
}

/* A statement over rows and columns. */
static Stmt *rows_tile(Dense *s, Block *to, TileIndex row, const Columns *c, BufRef dst,
                       const Affine *at, const Expr *value)
{
    TileIndex *index = ARENA_ARRAY(s->b->arena, c->n + 1, TileIndex);
    index[0] = row;
    for (uint32_t d = 0; d < c->n; d++) {
        index[d + 1] = c->index[d];
    }
    return tile(s, to, c->n + 1, index, dst, at, value);
}

static Stmt *loop(Dense *s, Block *to, VarRef var, Range range, int64_t step, const Block *body)
{
    Stmt *stmt = build_stmt(s->b, STMT_FOR, s->n->span, NULL);
    stmt->var = var;
    stmt->range = range;
    stmt->step = step;
    stmt->part = FOR_ALL;
    stmt->body = body->list.at;
    stmt->n_body = body->list.n;
    vec_push(s->b->arena, &to->list, stmt);
    return stmt;
}

static VarRef new_var(Dense *s, const char *name, bool is_loop)
{
    return kernel_var(s->b->k, &s->b->ctx->syms, name, is_loop);
}

/* The loop over the rows of the block behind row `j`. */
static void rows_behind(Dense *s, Block *to, VarRef var, Affine j, const Block *body)
{
    Affine first = plus(s, j, 1, affine_const(1));
    if (!s->blocked) {
        loop(s, to, var, range_behind(s, first, 0), 1, body);
        return;
    }
    Window *w = ARENA_NEW(s->b->arena, Window);
    *w = (Window){.has_lo = true, .lo = first};
    loop(s, to, var, block_range(s), 1, body)->window = w;
}

static BufRef buffer(Dense *s, Block *to, const char *name, uint32_t rank, const Dim *extent)
{
    int64_t elements = 1;
    Dim *all = ARENA_ARRAY(s->b->arena, rank + 1, Dim);
    for (uint32_t d = 0; d < rank; d++) {
        all[d] = extent[d];
    }
    all[rank] = dim_fixed(s->lanes);
    rank += s->lanes > 0 ? 1 : 0;
    for (uint32_t d = 0; d < rank; d++) {
        elements = sat_mul(elements, all[d].sym < 0 ? all[d].n : INT64_MAX);
    }
    BufRef buf = kernel_buffer(
        s->b->k, &s->b->ctx->syms, name, s->n->dtype,
        elements <= DENSE_BLOCK * DENSE_BLOCK ? SPACE_TILE : SPACE_WORKSPACE, rank, all);
    s->b->k->bufs.at[buf].span = s->n->span;
    build_alloc(s->b, to, buf);
    return buf;
}

static Dim block_rows(const Dense *s)
{
    return s->blocked ? dim_fixed(DENSE_BLOCK) : s->rows;
}

static BufRef block_buffer(Dense *s, Block *to, const char *name, Dim columns)
{
    const Dim extent[2] = {block_rows(s), columns};
    return buffer(s, to, name, 2, arena_copy(s->b->arena, extent, sizeof extent));
}

/* ---- within a block ---- */

/* @Y of the rows of @W: @D[j,m], j <= m, is the triangle, with the equations of each unknown side by side. @W is lost. */
static void solve_block(Dense *s, Block *to, BufRef D, BufRef W, BufRef Y, const Columns *c)
{
    Block step = {0}, each = {0};
    VarRef pivot = new_var(s, "pivot", true), row = new_var(s, "row", true);
    Affine j = in_block(s, var_at(s, pivot));
    const Affine *own = row_places(s, j, c);
    const Expr *diagonal = load(s, D, places(s, j, j));
    tile(s, &step, c->n, c->index, Y, own,
         two(s, OP_DIV, s->n->dtype, load(s, W, own), diagonal));
    bool rows = c->n == 0; /* the statement is over rows then */
    Affine m = in_block(s, var_at(s, rows ? s->m : row));
    const Affine *at = row_places(s, m, c);
    const Expr *product =
        two(s, OP_MUL, s->n->dtype, load(s, D, places(s, j, m)), load(s, Y, own));
    const Expr *left = two(s, OP_SUB, s->n->dtype, load(s, W, at), product);
    if (rows) { /* those before are not read again */
        TileIndex all = {.var = s->m, .range = block_range(s)};
        if (!s->blocked) {
            all.range.start = plus(s, var_at(s, pivot), 1, affine_const(1));
        }
        tile(s, &step, 1, &all, W, at, left);
    } else {
        tile(s, &each, c->n, c->index, W, at, left);
        rows_behind(s, &step, row, var_at(s, pivot), &each);
    }
    loop(s, to, pivot, block_range(s), 1, &step);
}

/* The block of the diagonal: @T[j,i] becomes L[i,j]; @U[j,i], j <= i, is what it is of, and is lost. */
static void factor_block(Dense *s, Block *to, BufRef U, BufRef T, BufRef root)
{
    Block step = {0}, each = {0};
    VarRef pivot = new_var(s, "pivot", true), row = new_var(s, "row", true);
    DType t = s->n->dtype;
    Affine j = in_block(s, var_at(s, pivot)), r = in_block(s, var_at(s, row)),
           i = in_block(s, var_at(s, s->i));
    TileIndex all = {.var = s->i, .range = block_range(s)};
    const Expr *diagonal = load(s, U, places(s, j, j));
    const Affine *lane = arena_copy(s->b->arena, &s->lane_at, sizeof s->lane_at);
    tile(s, &step, 0, NULL, root, lane, expr_op(s->b->arena, OP_SQRT, t, 1, &diagonal));
    all.range = s->blocked ? all.range : range_behind(s, var_at(s, pivot), 0);
    tile(s, &step, 1, &all, T, places(s, j, i),
         two(s, OP_DIV, t, load(s, U, places(s, j, i)), load(s, root, lane)));
    all.range = s->blocked ? all.range : range_behind(s, var_at(s, row), 0);
    const Expr *product =
        two(s, OP_MUL, t, load(s, T, places(s, j, r)), load(s, T, places(s, j, i)));
    tile(s, &each, 1, &all, U, places(s, r, i),
         two(s, OP_SUB, t, load(s, U, places(s, r, i)), product));
    rows_behind(s, &step, row, var_at(s, pivot), &each);
    loop(s, to, pivot, block_range(s), 1, &step);
}

/* ---- what was not positive definite ---- */

static Stmt *note(Dense *s, Block *to, uint32_t n, const TileIndex *index, BufRef dst,
                  const Affine *at, const Expr *where_good, const Expr *code)
{
    const Expr *three[3] = {where_good, build_indefinite_none(s->b), code};
    Stmt *stmt =
        tile(s, to, n, index, dst, at, expr_op(s->b->arena, OP_SELECT, DTYPE_I64, 3, three));
    stmt->fold = OP_RMIN;
    return stmt;
}

/* Pivots of the block whose root is not above 0, NaN among them. */
static void note_pivots(Dense *s, Block *to, BufRef T)
{
    Affine j = var_at(s, s->j), at = in_block(s, j);
    TileIndex all = {.var = s->j, .range = block_range(s)};
    const Expr *good = two(s, OP_GT, DTYPE_BOOL, load(s, T, places(s, at, at)), number(s, 0));
    bool alone = s->n_batch == 0;
    (void)note(s, to, 1, &all, alone ? s->b->indefinite : s->good,
               alone ? build_indefinite_at(s->b)
                     : arena_copy(s->b->arena, s->batch, s->n_batch * sizeof *s->batch),
               good, index_of(s, j));
}

/* The first of many matrices: its number times 2^31, plus its pivot. */
static void note_matrices(Dense *s, Block *to)
{
    Arena *a = s->b->arena;
    TileIndex *index = ARENA_ARRAY(a, s->n_batch, TileIndex);
    Affine *at = ARENA_ARRAY(a, s->n_batch, Affine);
    const Expr *number = expr_const(a, number_int(DTYPE_I64, 0));
    for (uint32_t d = 0; d < s->n_batch; d++) {
        Position p = build_dimension_position(s->b, s->node, d);
        index[d] = (TileIndex){.var = p.var, .range = p.range};
        at[d] = p.at;
        number =
            two(s, OP_MUL, DTYPE_I64, number, index_of(s, affine_extent(a, s->n->shape[d])));
        number = two(s, OP_ADD, DTYPE_I64, number, index_of(s, p.at));
    }
    const Expr *pivot = expr_load(a, s->b->k, s->good, at);
    const Expr *good = two(s, OP_EQ, DTYPE_BOOL, pivot, build_indefinite_none(s->b));
    const Expr *scale = expr_const(a, number_int(DTYPE_I64, INT64_C(1) << 31));
    const Expr *code =
        two(s, OP_ADD, DTYPE_I64, two(s, OP_MUL, DTYPE_I64, number, scale), pivot);
    (void)note(s, to, s->n_batch, index, s->b->indefinite, build_indefinite_at(s->b), good,
               code);
}

static void none_noted(Dense *s, Block *to)
{
    TileIndex *index = ARENA_ARRAY(s->b->arena, s->n_batch, TileIndex);
    Affine *at = ARENA_ARRAY(s->b->arena, s->n_batch, Affine);
    s->good = kernel_buffer(s->b->k, &s->b->ctx->syms, "good", DTYPE_I64, SPACE_WORKSPACE,
                            s->n_batch, s->n->shape);
    s->b->k->bufs.at[s->good].span = s->n->span;
    build_alloc(s->b, to, s->good);
    for (uint32_t d = 0; d < s->n_batch; d++) {
        Position p = build_dimension_position(s->b, s->node, d);
        index[d] = (TileIndex){.var = p.var, .range = p.range};
        at[d] = p.at;
    }
    tile(s, to, s->n_batch, index, s->good, at, build_indefinite_none(s->b));
}

/* ---- cholesky ---- */

static const Affine *factor_at(Dense *s, Affine row, Affine column)
{
    return whole_places(s, row, 1, &column);
}

/* The rows behind the block: in its columns they are solved for, to @P too; in all columns behind it they are updated. */
static void factor_behind(Dense *s, Block *to, BufRef T, BufRef P)
{
    Block panel = {0}, update = {0};
    DType t = s->n->dtype;
    VarRef rows = new_var(s, "rows", true), columns = new_var(s, "columns", true);
    Affine first = plus(s, s->k, 1, affine_const(DENSE_BLOCK)), i = var_at(s, s->i),
           j = var_at(s, s->j), m = var_at(s, s->m);
    BufRef W = block_buffer(s, &panel, "W", dim_fixed(DENSE_BLOCK)),
           Y = block_buffer(s, &panel, "Y", dim_fixed(DENSE_BLOCK));
    const TileIndex of_i = {.var = s->i,
                            .range = range_behind(s, var_at(s, rows), DENSE_BLOCK)},
                    of_j = {.var = s->j, .range = block_range(s)},
                    of_m = {.var = s->m, .range = block_range(s)};
    Affine at = plus(s, i, -1, var_at(s, rows));
    const Columns c = {1, &of_i, &at};
    rows_tile(s, &panel, of_j, &c, W, row_places(s, in_block(s, j), &c),
              load(s, s->to, factor_at(s, i, j)));
    solve_block(s, &panel, T, W, Y, &c);
    const TileIndex both[2] = {of_i, of_j};
    const Expr *solved = load(s, Y, row_places(s, in_block(s, j), &c));
    tile(s, &panel, 2, both, P, places(s, i, in_block(s, j)), solved);
    tile(s, &panel, 2, both, s->to, factor_at(s, i, j), solved);
    loop(s, to, rows, range_behind(s, first, 0), DENSE_BLOCK, &panel)->parallel =
        s->n_batch == 0;
    Affine from = var_at(s, columns);
    const TileIndex product[3] = {{.var = s->i, .range = range_behind(s, from, 0)},
                                  {.var = s->j, .range = range_behind(s, from, DENSE_BLOCK)},
                                  of_m};
    const Expr *value = two(s, OP_MUL, t, load(s, P, places(s, i, in_block(s, m))),
                            load(s, P, places(s, j, in_block(s, m))));
    Stmt *sum = tile(s, &update, 3, product, s->to, factor_at(s, i, j),
                     two(s, OP_MUL, t, number(s, -1), value));
    sum->fold = OP_SUM;
    loop(s, to, columns, range_behind(s, first, 0), DENSE_BLOCK, &update)->parallel =
        s->n_batch == 0;
}

static void build_factor(Dense *s, Block *to)
{
    Block block = {0};
    Affine i = var_at(s, s->i), j = var_at(s, s->j);
    VarRef k = 0;
    BufRef root = buffer(s, to, "root", 0, NULL);
    BufRef U = block_buffer(s, to, "U", block_rows(s)),
           T = block_buffer(s, to, "T", block_rows(s)), P = BUF_NONE;
    if (s->blocked) {
        const Dim extent[2] = {s->rows, dim_fixed(DENSE_BLOCK)};
        P = buffer(s, to, "P", 2, arena_copy(s->b->arena, extent, sizeof extent));
        k = new_var(s, "k", true);
        s->k = var_at(s, k);
    }
    const TileIndex down[2] = {{.var = s->j, .range = block_range(s)},
                               {.var = s->i, .range = block_range(s)}},
                    across[2] = {down[1], down[0]};
    Affine ji[2] = {in_block(s, j), in_block(s, i)};
    if (s->blocked) {
        tile(s, &block, 2, down, U, places(s, ji[0], ji[1]),
             where_not_above(s, j, i, first_at(s, factor_at(s, i, j))));
    } else {
        Block row = {0};
        VarRef column = new_var(s, "column", true);
        Affine at = var_at(s, column);
        TileIndex behind = {.var = s->i, .range = range_behind(s, at, 0)};
        tile(s, &row, 1, &behind, U, places(s, at, i), first_at(s, factor_at(s, i, at)));
        loop(s, &block, column, range_whole(s->rows), 1, &row);
        tile(s, &block, 2, down, T, places(s, j, i), number(s, 0));
    }
    factor_block(s, &block, U, T, root);
    note_pivots(s, &block, T);
    const Expr *made = load(s, T, places(s, ji[0], ji[1]));
    tile(s, &block, 2, across, s->to, factor_at(s, i, j),
         s->blocked ? where_not_above(s, j, i, made) : made);
    if (s->blocked) {
        factor_behind(s, &block, T, P);
        loop(s, to, k, range_whole(s->rows), DENSE_BLOCK, &block);
        return;
    }
    for (uint32_t l = 0; l < block.list.n; l++) {
        vec_push(s->b->arena, &to->list, block.list.at[l]);
    }
}

/* ---- solutions ---- */

/* The row that comes so late. */
static Affine row_at(Dense *s, Affine x)
{
    const OpInfo *op = op_info(s->n->op);
    if (op->upper == op->transposed) {
        return x;
    }
    Affine last = plus(s, affine_extent(s->b->arena, s->rows), 1, affine_const(-1));
    return plus(s, last, -1, x);
}

/* The coefficient of unknown `q` in equation `p`, counted as they come. */
static const Expr *coefficient(Dense *s, Affine p, Affine q)
{
    bool transposed = op_info(s->n->op)->transposed;
    Affine row = row_at(s, transposed ? q : p), column = row_at(s, transposed ? p : q);
    return operand_at(s, 0, whole_places(s, row, 1, &column));
}

static void build_solution(Dense *s, Block *whole_to)
{
    Block block = {0}, strip = {0};
    DType t = s->n->dtype;
    Affine j = var_at(s, s->j), m = var_at(s, s->m), i = var_at(s, s->i);
    VarRef k = 0;
    uint32_t n = s->n->rank - s->n_batch - 1;
    TileIndex *index = ARENA_ARRAY(s->b->arena, n, TileIndex);
    Affine *at = ARENA_ARRAY(s->b->arena, n, Affine), *in = ARENA_ARRAY(s->b->arena, n, Affine);
    Dim *extent = ARENA_ARRAY(s->b->arena, n + 1, Dim);
    /* Of many columns DENSE_BLOCK at once go through all blocks: they stay in a cache, and threads share them. */
    bool strips = s->blocked && n > 0;
    VarRef from = strips ? new_var(s, "strip", true) : 0;
    Block *to = strips ? &strip : whole_to;
    for (uint32_t d = 0; d < n; d++) {
        Position p = build_dimension_position(s->b, s->node, s->n_batch + 1 + d);
        index[d] = (TileIndex){.var = p.var, .range = p.range};
        at[d] = in[d] = p.at;
        extent[d + 1] = s->n->shape[s->n_batch + 1 + d];
        if (strips && d + 1 == n) {
            index[d].range.start = var_at(s, from);
            index[d].range.span = DENSE_BLOCK;
            in[d] = plus(s, p.at, -1, var_at(s, from));
            extent[d + 1] = dim_fixed(DENSE_BLOCK);
        }
    }
    const Columns c = {n, index, in};
    extent[0] = block_rows(s);
    BufRef D = block_buffer(s, to, "D", block_rows(s)), W = buffer(s, to, "W", n + 1, extent),
           Y = buffer(s, to, "Y", n + 1, extent);
    if (s->blocked) {
        k = new_var(s, "k", true);
        s->k = var_at(s, k);
    }
    const TileIndex of_j = {.var = s->j, .range = block_range(s)},
                    of_m = {.var = s->m, .range = block_range(s)}, both[2] = {of_j, of_m};
    tile(s, &block, 2, both, D, places(s, in_block(s, j), in_block(s, m)),
         where_not_above(s, j, m, coefficient(s, m, j)));
    const Affine *own = row_places(s, in_block(s, j), &c);
    const Affine *whole = whole_places(s, row_at(s, j), n, at);
    rows_tile(s, &block, of_j, &c, W, own, first_at(s, whole));
    solve_block(s, &block, D, W, Y, &c);
    rows_tile(s, &block, of_j, &c, s->to, whole, load(s, Y, own));
    if (!s->blocked) {
        for (uint32_t l = 0; l < block.list.n; l++) {
            vec_push(s->b->arena, &to->list, block.list.at[l]);
        }
        return;
    }
    TileIndex *product = ARENA_ARRAY(s->b->arena, n + 2, TileIndex);
    Affine first = plus(s, s->k, 1, affine_const(DENSE_BLOCK));
    product[0] = (TileIndex){.var = s->i, .range = range_behind(s, first, 0)};
    for (uint32_t d = 0; d < n; d++) {
        product[d + 1] = index[d];
    }
    product[n + 1] = of_m;
    const Expr *value =
        two(s, OP_MUL, t, coefficient(s, i, m), load(s, Y, row_places(s, in_block(s, m), &c)));
    Stmt *sum = tile(s, &block, n + 2, product, s->to, whole_places(s, row_at(s, i), n, at),
                     two(s, OP_MUL, t, number(s, -1), value));
    sum->fold = OP_SUM;
    loop(s, to, k, range_whole(s->rows), DENSE_BLOCK, &block);
    if (strips) {
        loop(s, whole_to, from, range_whole(s->n->shape[s->n->rank - 1]), DENSE_BLOCK, &strip)
            ->parallel = s->n_batch == 0;
    }
}

/* ---- all of them ---- */

/* What a step begins with: the lower triangle of what is factored, or the right side. */
static void build_first(Dense *s, Block *to)
{
    Builder *b = s->b;
    TileIndex *index = ARENA_ARRAY(b->arena, s->n->rank, TileIndex);
    Affine *at = ARENA_ARRAY(b->arena, s->n->rank, Affine);
    for (uint32_t d = 0; d < s->n->rank; d++) {
        bool column = s->n->op == OP_CHOLESKY && d + 1 == s->n->rank;
        Position p = build_dimension_position(b, s->node, d);
        index[d] = (TileIndex){.var = column ? s->j : p.var, .range = p.range};
        at[d] = column ? var_at(s, s->j) : p.at;
    }
    const Expr *value = operand_at(s, s->n->n_operands - 1, at);
    if (s->n->op == OP_CHOLESKY) {
        value = where_not_above(s, at[s->n->rank - 1], at[s->n->rank - 2], value);
    }
    tile(s, to, s->n->rank, index, s->to, at, value);
}

/* The steps of a batch, or of lanes of them. */
static void build_matrix(Dense *s, Block *to)
{
    if (s->n->op == OP_CHOLESKY) {
        build_factor(s, to);
    } else {
        build_solution(s, to);
    }
}

/* The loop over the last batch. */
static void build_lanes(Dense *s, Block *to, VarRef var, Dim extent, ForPart part,
                        bool outermost)
{
    Block body = {0};
    Affine own = s->batch[s->n_batch - 1];
    VarRef lane = new_var(s, "lane", false);
    Range range = {.start = own,
                   .span = s->lanes,
                   .clipped = part == FOR_REST,
                   .limit = part == FOR_REST ? extent : dim_fixed(0)};
    s->lane = (TileIndex){.var = lane, .range = range};
    s->batch[s->n_batch - 1] = var_at(s, lane);
    s->lane_at = plus(s, var_at(s, lane), -1, own);
    build_matrix(s, &body);
    s->batch[s->n_batch - 1] = own;
    Stmt *all = loop(s, to, var, range_whole(extent), s->lanes, &body);
    all->part = part;
    all->parallel = outermost && part == FOR_FULL;
}

void build_dense(Builder *b, Block *to, NodeRef node, uint32_t scope)
{
    (void)scope; /* nothing stands around it */
    const Node *n = graph_node(b->g, node);
    Dense s = {.b = b, .node = node, .n = n};
    s.n_batch = graph_node(b->g, n->operand[0])->rank - 2;
    s.rows = n->shape[s.n_batch];
    s.blocked = s.rows.sym >= 0 || s.rows.n > DENSE_BLOCK;
    s.k = affine_const(0);
    if (b->storage[node].buf == BUF_NONE) {
        build_storage(b, to, node, NEST_NONE);
    }
    s.to = b->storage[node].buf;
    s.i = new_var(&s, "i", false);
    s.j = new_var(&s, "j", false);
    s.m = new_var(&s, "m", false);
    s.batch = ARENA_ARRAY(b->arena, s.n_batch, Affine);
    VarRef *var = ARENA_ARRAY(b->arena, s.n_batch, VarRef);
    for (uint32_t d = 0; d < s.n_batch; d++) {
        var[d] = new_var(&s, build_name(b, node, d, "b"), true);
        s.batch[d] = var_at(&s, var[d]);
    }
    if (s.blocked) {
        build_first(&s, to);
    }
    bool several = n->op == OP_CHOLESKY && s.n_batch > 0;
    if (several) {
        none_noted(&s, to);
    }
    Block body = {0};
    uint32_t around = s.n_batch;
    bool small = !s.blocked && s.n_batch > 0 && s.rows.n <= LANES;
    if (small) {
        around--;
        s.lanes = s.rows.n <= LANES / 2 ? LANES : LANES / 2;
        build_lanes(&s, &body, var[around], n->shape[around], FOR_FULL, around == 0);
        VarRef rest = new_var(&s, build_name(b, node, around, "b"), true);
        s.batch[around] = var_at(&s, rest);
        build_lanes(&s, &body, rest, n->shape[around], FOR_REST, false);
        s.lanes = 0;
    } else {
        build_matrix(&s, &body);
    }
    for (uint32_t d = around; d-- > 0;) {
        Block outer = {0};
        loop(&s, &outer, var[d], range_whole(n->shape[d]), 1, &body)->parallel = d == 0;
        body = outer;
    }
    for (uint32_t k = 0; k < body.list.n; k++) {
        vec_push(b->arena, &to->list, body.list.at[k]);
    }
    if (several) {
        note_matrices(&s, to);
    }
}
