/* SPDX-License-Identifier: Apache-2.0 */
/* Stores: a tile of the box to where the operand lives, by DMA, or into a block on chip, turned where that has other indices on
 * partitions. */
#include "backend/nki/make.h"
#include "backend/nki/view_parts.h"

#define TURNED 512 /* elements of a row that leave PSUM together */

/* Rows of 128 columns each, turned, that lie side by side in the block: several leave PSUM by one copy. How many columns of the box were
 * stored. */
static int64_t store_turned(Lower *l, const Place *x, Labels p, uint32_t along, const Box *box,
                            TileView src)
{
    const Home *h = &l->home[x->buf];
    DType t = view_dtype(l, src);
    TileView run = {.buf = h->buf, .moves = block_moves(l, x)};
    int64_t most = TURNED / src.np, done = 0;
    if (!view_block_run(l, x, p, box, &run) || run.step != 1 || run.nf != h->chunk_stride ||
        run.nf != src.np || most < 2 || src.np * dtype_bytes(t) % 4 != 0) {
        return 0;
    }
    while (box->n[along] - done >= 2 * NKI_PARTITIONS && !l->tried.failed) {
        int64_t left = (box->n[along] - done) / NKI_PARTITIONS, n = left < most ? left : most;
        Box part = *box;
        part.s[along] += done;
        view_block_start(l, x, &part, &run.p0, &run.f0);
        if (run.p0 != 0) {
            break;
        }
        TileView psum = tile_new(l, "psum", t, SPACE_ACC, NKI_PARTITIONS, n * src.np);
        for (int64_t i = 0; i < n; i++) {
            make_transpose(l, view_part(psum, i * src.np, src.np),
                           view_part(src, done + i * NKI_PARTITIONS, NKI_PARTITIONS));
        }
        run.np = NKI_PARTITIONS;
        make_copy(l, view_part(run, 0, n * src.np), psum);
        done += n * NKI_PARTITIONS;
    }
    return done;
}

static void block_store(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                        TileView src)
{
    const Home *h = &l->home[x->buf];
    int32_t lp = x->rank == 0 ? -1 : x->label[h->pdim];
    int64_t rows = lp < 0 ? 1 : box->n[lp] * (h->rows_each > 1 ? h->rows_each : 1);
    if (src.np == rows && (rows == 1 || labels_have(p, (uint32_t)lp))) {
        TileView run = {.buf = h->buf, .moves = block_moves(l, x)};
        int64_t step[LABELS];
        for (uint32_t i = 0; i < f.n; i++) {
            step[f.at[i]] = block_stride(l, x, f.at[i]);
        }
        view_block_start(l, x, box, &run.p0, &run.f0);
        view_copy(l, h, run, src, f, box, step);
        return;
    }
    /* turned: one piece of at most 128 columns at a time */
    Labels along =
        lp >= 0 && labels_have(f, (uint32_t)lp) ? labels_one((uint32_t)lp) : (Labels){0};
    if (view_space(l, src) == SPACE_ACC) {
        TileView copy = tile_new(l, "turn", view_dtype(l, src), SPACE_TILE, src.np, src.nf);
        make_copy(l, copy, src);
        src = copy;
    }
    int64_t step[LABELS], wide[LABELS], done = 0;
    Box left = *box;
    if (along.n == 1 && labels_count(f, box) == box->n[along.at[0]]) {
        done = store_turned(l, x, p, along.at[0], box, src);
        left.s[along.at[0]] += done;
        left.n[along.at[0]] -= done;
        if (left.n[along.at[0]] == 0) {
            return;
        }
        src = view_part(src, done, left.n[along.at[0]]);
        box = &left;
    }
    box_steps(along, box, NKI_PARTITIONS, wide);
    for (uint32_t i = 0; i < f.n; i++) {
        step[i] = along.n == 1 && f.at[i] == along.at[0] ? wide[0] : 1;
    }
    Box part = *box;
    for (bool go = true; box_next(f, box, step, &part, go) && !l->tried.failed; go = false) {
        int64_t stride = 1;
        int64_t at = view_linear(f, box, &part, along.n == 1 ? along.at[0] : LABELS, &stride);
        TileView piece = view_part(src, at, labels_count(f, &part));
        piece.step *= stride;
        TileView turned =
            tile_new(l, "psum", view_dtype(l, src), SPACE_ACC, piece.nf, piece.np);
        make_transpose(l, turned, piece);
        block_store(l, x, along, p, &part, turned);
    }
}

void view_store(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView src)
{
    Home *h = &l->home[x->buf];
    h->version++;
    if (h->on_chip) {
        block_store(l, x, p, f, box, src);
        return;
    }
    DType t = l->from->bufs.at[x->buf].dtype;
    bool stepped = src.step != 1 && src.nf > 1; /* no element goes by itself */
    if (view_space(l, src) == SPACE_ACC || view_dtype(l, src) != t || stepped) {
        TileView row =
            tile_new(l, l->from->bufs.at[x->buf].name->text, t, SPACE_TILE, src.np, src.nf);
        make_copy(l, row, src);
        src = row;
    }
    make_dma(l, x, p, f, box, src, true);
}
