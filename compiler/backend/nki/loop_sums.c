/* SPDX-License-Identifier: Apache-2.0 */
/* A number that loops which stay add to: a column of sums, one for each partition, until they end, so that the Tensor engine, which folds
 * partitions, need not wait in each iteration. */
#include "backend/nki/make.h"
#include "backend/nki/open_loops.h"
#include "backend/nki/statement.h"
#include "loop/walk.h"

bool statement_adds_in_loops(const Lower *l, const Stmt *s, bool overwrite)
{
    const Home *h = &l->home[s->dst];
    if (s->fold != OP_SUM || overwrite || !h->on_chip || h->depth >= l->loops.depth ||
        l->from->bufs.at[s->dst].rank > 0 || l->from->bufs.at[s->dst].dtype != DTYPE_F32) {
        return false;
    }
    const Stmt *loop = l->loops.open[h->depth].stmt;
    StmtWalk w;
    bool adds = true;
    for (const Stmt *t = tile_first(&w, loop->body, loop->n_body); t != NULL;
         t = tile_next(&w)) {
        bool plain = t->fold == OP_SUM && !t->begins;
        adds &= expr_load_of(t->value, s->dst) == NULL && (t->dst != s->dst || plain);
    }
    return adds;
}

void statement_column_add(Lower *l, BufRef number, TileView acc, const TileView *factor)
{
    Home *h = &l->home[number];
    if (!h->has_column) {
        Hoist hoist = hoist_begin(l, h->depth, 0);
        h->column = tile_new(l, "sums", DTYPE_F32, SPACE_TILE, NKI_PARTITIONS, 1);
        make_memset(l, h->column, 0.0);
        h->has_column = true;
        hoist_end(l, &hoist);
    }
    TileView column = view_rows(h->column, acc.np);
    const Expr *sum[2] = {view_load(l, acc, DTYPE_F32), view_load(l, column, DTYPE_F32)};
    if (factor != NULL) {
        const Expr *product[2] = {sum[0], view_column(l, *factor, DTYPE_F32)};
        sum[0] = expr_op(l->arena, OP_MUL, DTYPE_F32, 2, product);
    }
    make_map(l, column, expr_op(l->arena, OP_ADD, DTYPE_F32, 2, sum));
}

/* Numbers that the loop which ended has added up in columns get them. */
static void fold_columns(Lower *l)
{
    for (uint32_t b = 0; b < l->from->bufs.n; b++) {
        Home *h = &l->home[b];
        if (!h->has_column || h->depth != l->loops.depth) {
            continue;
        }
        h->has_column = false;
        TileView number = {.buf = h->buf, .np = 1, .nf = 1, .step = 1};
        TileView psum = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, 1, 1);
        make_matmul(l, psum, view_part(view_ones(l), 0, 1), h->column, true);
        make_join(l, OP_SUM, number, psum);
        h->version++;
    }
}

void lower_end_loop(Lower *l)
{
    close_loop(l);
    fold_columns(l);
}
