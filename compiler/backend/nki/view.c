/* SPDX-License-Identifier: Apache-2.0 */
/* Views: the tile that holds an operand over a box of labels, made where there is none. From
 * HBM a tile is loaded straight where the contiguous label stays on the free axis, else loaded
 * as it lies and transposed on the Tensor engine; loads are widened to longer rows that later
 * boxes will want. From a block on chip a view is a slice, or a copy that gathers, or a
 * transpose. */
#include "backend/nki/home.h"
#include "backend/nki/make.h"
#include "backend/nki/view_parts.h"

#include <string.h>

#define SLAB_BYTES                                                                             \
    2048 /* of a partition, of a widened load: long enough for the DMA engines                 \
          */

/* ---- the partition broadcast ---- */

TileView view_broadcast(Lower *l, TileView row, int64_t np)
{
    if (np == 1) {
        return row;
    }
    if (home_is_spread(l, row.buf)) {
        return view_rows(row, np);
    }
    int64_t key[8] = {-7,     (int64_t)row.buf, row.p0, row.f0,
                      row.nf, row.step,         np,     (int64_t)(intptr_t)row.moves};
    TileView out;
    if (cache_find(l, key, 8, &out)) {
        return out;
    }
    uint32_t depth = cache_depth(l, row.buf);
    uint32_t moves = row.moves == NULL ? 0 : hoist_depth_of(l, *row.moves, 0);
    Hoist hoist = hoist_begin(l, moves > depth ? moves : depth, 0);
    TileView from = row;
    if (view_dtype(l, row) != DTYPE_F32) {
        from = tile_new(l, "row", DTYPE_F32, SPACE_TILE, 1, row.nf);
        make_copy(l, from, row);
    }
    DType t = view_dtype(l, row);
    out = tile_new(l, "spread", t, SPACE_TILE, np, row.nf);
    TileView ones = view_part(view_rows(view_ones(l), 1), 0, np);
    for (int64_t f = 0; f < row.nf; f += 512) {
        int64_t n = row.nf - f < 512 ? row.nf - f : 512;
        TileView acc = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, np, n);
        make_matmul(l, acc, ones, view_part(from, f, n), true);
        make_copy(l, view_part(out, f, n), acc);
    }
    cache_put(l, key, 8, out);
    hoist_end(l, &hoist);
    return out;
}

/* ---- transposes ---- */

static TileView make_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box);

/* Position of a box's first point on the free axis `f` of `whole`, and the stride of its label `along` there. */
int64_t view_linear(Labels f, const Box *whole, const Box *part, uint32_t along,
                    int64_t *stride)
{
    int64_t at = 0, s = 1;
    *stride = 1;
    for (uint32_t i = f.n; i-- > 0;) {
        at += s * (part->s[f.at[i]] - whole->s[f.at[i]]);
        if (f.at[i] == along) {
            *stride = s;
        }
        s *= whole->n[f.at[i]];
    }
    return at;
}

#define HALVES_LEAST 256 /* elements of a row that are worth two copies */

/* Tiles waiting in one PSUM tile to be copied out together. */
typedef struct Batch {
    TileView psum;
    int64_t used, start;
    bool open;
} Batch;

static void batch_close(Lower *l, Batch *b, TileView to)
{
    int64_t left = b->open ? b->used : 0;
    int64_t first = l->room.halves && left % 4 == 0 && left >= HALVES_LEAST ? left / 2 : left;
    for (int64_t at = 0; at < left; at += first) {
        make_copy(l, view_part(to, b->start + at, first), view_part(b->psum, at, first));
    }
    b->open = false;
}

/* dst[p, f] of a box from views with labels of `f` on partitions: only those in `together` vary in one transpose. */
static void transpose_into(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                           TileView dst, Labels together)
{
    DType t = view_dtype(l, dst);
    int64_t step[LABELS], wide[LABELS];
    int64_t bank = NKI_PSUM_BANK / dtype_bytes(t);
    box_steps(together, box, NKI_PARTITIONS, wide);
    for (uint32_t i = 0; i < f.n; i++) {
        step[i] = 1;
        for (uint32_t j = 0; j < together.n; j++) {
            step[i] = together.at[j] == f.at[i] ? wide[j] : step[i];
        }
    }
    Box part = *box;
    Batch batch = {.open = false};
    for (bool first = true; l->room.loads_first && box_next(f, box, step, &part, first);
         first = false) {
        (void)view_of(l, x, together, p,
                      &part); /* copies first, so that loops have one kind of turn */
    }
    part = *box;
    for (bool first = true; box_next(f, box, step, &part, first) && !l->tried.failed;
         first = false) {
        TileView src = view_of(l, x, together, p, &part);
        cache_mark_raw(l, src);
        int64_t stride = 1, n = src.np;
        int64_t at =
            view_linear(f, box, &part, together.n == 1 ? together.at[0] : LABELS, &stride);
        bool packed = stride == 1 || n == 1;
        if (batch.open &&
            (!packed || batch.start + batch.used != at || batch.used + n > bank)) {
            batch_close(l, &batch, dst);
        }
        if (!batch.open) {
            int64_t left = packed ? labels_count(f, box) - at : n;
            batch =
                (Batch){tile_new(l, "psum", t, SPACE_ACC, dst.np, left < bank ? left : bank), 0,
                        at, true};
        }
        make_transpose(l, view_part(batch.psum, batch.used, n), src);
        batch.used += n;
        if (!packed) {
            TileView to = view_part(dst, at, n);
            to.step *= stride;
            make_copy(l, to, view_part(batch.psum, 0, n));
            batch.open = false;
        }
        if (t != DTYPE_F32 && n % 2 != 0) {
            batch_close(l, &batch, dst); /* the next would start within a word */
        }
    }
    batch_close(l, &batch, dst);
}

/* ---- from HBM ---- */

static bool has_unit(Lower *l, const Place *x, Labels list, const Box *box)
{
    for (uint32_t i = 0; i < list.n; i++) {
        if (box->n[list.at[i]] > 1 && place_stride(l, x, list.at[i]) == 1) {
            return true;
        }
    }
    return false;
}

static bool all_there(const Place *x, Labels list, const Box *box)
{
    for (uint32_t i = 0; i < list.n; i++) {
        if (box->n[list.at[i]] > 1 && !place_has(x, list.at[i])) {
            return false;
        }
    }
    return true;
}

/* Does the contiguous label lie on partitions, so that the tile is loaded as it lies and transposed? Or would rows be short, and long
 * ones with what lies on partitions in them? */
bool view_is_turned(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    if (l->room.as_it_lies) {
        return false;
    }
    if (view_turns_rows(l, x, p, f, box)) {
        return true;
    }
    int64_t np = labels_count(p, box), nf = labels_count(f, box);
    bool unit = has_unit(l, x, p, box) && !has_unit(l, x, f, box);
    for (uint32_t i = 0; i < p.n; i++) { /* parts lie between one element and the next */
        unit |= box->n[p.at[i]] > 1 && pair_is_unit(l, x, p.at[i]);
    }
    int64_t all = labels_count(p, &l->now.full); /* a remainder goes the way of the rest */
    int32_t part = x->rank == 0 ? -1 : x->label[x->rank - 1];
    bool one = l->pair[x->buf] && (part < 0 || !labels_have(f, (uint32_t)part));
    nf *= one ? 2 : 1; /* both parts are loaded */
    return (all > np ? all : np) * nf > 1024 && np > 1 && all_there(x, p, box) &&
           all_there(x, f, box) && unit && labels_count(labels_varying(x, f, box), box) > 1 &&
           dtype_is_float(l->from->bufs.at[x->buf].dtype);
}

/* The labels of the free axis that vary in one transpose: all, but of complex numbers one label
 * and one part. */
static Labels turned_together(const Lower *l, const Place *x, Labels f, const Box *box)
{
    Labels all = labels_varying(x, f, box), one = {0};
    int32_t part = x->label[x->rank - 1];
    if (!l->pair[x->buf] || part < 0 || !labels_have(all, (uint32_t)part)) {
        return all;
    }
    for (uint32_t i = 0; i < all.n; i++) {
        bool longer = one.n == 0 || box->n[all.at[i]] > box->n[one.at[0]];
        one = (int32_t)all.at[i] != part && longer ? labels_one(all.at[i]) : one;
    }
    return one;
}

static TileView load_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    DType t = l->from->bufs.at[x->buf].dtype;
    const char *hint = l->from->bufs.at[x->buf].name->text;
    int64_t np = labels_count(p, box), nf = labels_count(f, box);
    TileView tile = tile_new(l, hint, t, SPACE_TILE, np, nf);
    if (view_is_turned(l, x, p, f, box)) {
        bool rows = view_turns_rows(l, x, p, f, box);
        l->room.turning = rows; /* what it is turned from is not turned */
        transpose_into(l, x, p, f, box, tile,
                       rows ? view_rows_turned(l, x, f, box) : turned_together(l, x, f, box));
        l->room.turning = false;
    } else {
        make_dma(l, x, p, f, box, tile, false);
    }
    return tile;
}

/* The box of a longer load that has `box` as a run of its free axis; false when there is none. */
static bool widen(const Lower *l, const Place *x, Labels f, const Box *box, Box *out)
{
    int64_t bytes = dtype_bytes(l->from->bufs.at[x->buf].dtype), inner = 1;
    *out = *box;
    bool wider = false, last = false;
    for (uint32_t i = f.n; i-- > 0 && !last;) {
        uint32_t label = f.at[i];
        int64_t full = l->now.full.n[label], at = box->s[label] - l->now.full.s[label];
        int64_t most = l->room.slab_bytes > 0 ? l->room.slab_bytes : SLAB_BYTES;
        int64_t room = most / (bytes * inner);
        if (full <= room) {
            wider |= box->n[label] < full;
            out->s[label] = l->now.full.s[label];
            out->n[label] = full;
        } else if (box->n[label] < full) {
            int64_t chunk = room / NKI_PARTITIONS * NKI_PARTITIONS;
            if (chunk == 0 || at / chunk != (at + box->n[label] - 1) / chunk) {
                break;
            }
            out->s[label] = l->now.full.s[label] + at / chunk * chunk;
            int64_t left = l->now.full.s[label] + full - out->s[label];
            out->n[label] = left < chunk ? left : chunk;
            wider |= out->n[label] > box->n[label];
            last = true;
        } else {
            break;
        }
        inner *= out->n[label];
        if (box->n[label] <
            out->n[label]) { /* outer labels would leave a gap unless they are single */
            for (uint32_t j = 0; j < i; j++) {
                if (box->n[f.at[j]] > 1) {
                    *out = *box;
                    return false;
                }
            }
        }
    }
    return wider;
}

static TileView hbm_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    Box wide;
    TileView out;
    if (view_is_turned(l, x, p, f, box)) {
        return load_view(l, x, p, f, box);
    }
    if (!l->room.as_it_lies && view_gathered(l, x, p, f, box, &out)) {
        return out;
    }
    if (!all_there(x, f, &l->now.full) || !widen(l, x, f, box, &wide)) {
        return load_view(l, x, p, f, box);
    }
    TileView slab = view_of(l, x, p, f, &wide);
    int64_t unused = 0;
    return view_part(slab, view_linear(f, &wide, box, LABELS, &unused), labels_count(f, box));
}

/* ---- from blocks on chip ---- */

/* The run of the free axis of a block that the labels `f` of the box are, if they are one. */
bool view_block_run(const Lower *l, const Place *x, Labels f, const Box *box, TileView *out)
{
    int64_t expect = 0, count = 1;
    for (uint32_t i = f.n; i-- > 0;) {
        uint32_t label = f.at[i];
        int64_t n = box->n[label], s = block_stride(l, x, label);
        if (n == 1) {
            continue;
        }
        if (s == 0 || (expect != 0 && s != expect)) {
            return false;
        }
        out->step = expect == 0 ? s : out->step;
        expect = s * n;
        count *= n;
    }
    out->step = count == 1 ? 1 : out->step;
    out->nf = count;
    return true;
}

const Affine *block_moves(const Lower *l, const Place *x)
{
    const Home *h = &l->home[x->buf];
    Affine *moves = x->moves == NULL ? NULL : ARENA_NEW(l->arena, Affine);
    for (uint32_t d = 0; d < x->rank && moves != NULL; d++) {
        Affine at = x->moves[d];
        if (d != h->pdim) {
            *moves = affine_add(l->arena, *moves, h->stride[d], at);
            continue;
        }
        for (uint32_t t = 0; t < at.n; t++) { /* by whole groups of partitions, see place.c */
            int64_t by = at.term[t].coef / NKI_PARTITIONS * h->chunk_stride;
            *moves = affine_add(l->arena, *moves, by, affine_var(l->arena, at.term[t].var));
        }
    }
    return moves == NULL || moves->n == 0 ? NULL : moves;
}

int64_t block_stride(const Lower *l, const Place *x, uint32_t label)
{
    const Home *h = &l->home[x->buf];
    int64_t stride = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t coef = place_coef(x, d, label);
        stride += d != h->pdim                 ? coef * h->stride[d]
                  : coef % NKI_PARTITIONS == 0 ? coef / NKI_PARTITIONS * h->chunk_stride
                                               : 0;
    }
    return stride;
}

/* First element of the box in a block: partition and free position. */
void view_block_start(const Lower *l, const Place *x, const Box *box, int64_t *p, int64_t *f)
{
    const Home *h = &l->home[x->buf];
    *p = *f = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t at = place_start(x, d, box);
        if (d == h->pdim) {
            *p = at % NKI_PARTITIONS;
            *f += at / NKI_PARTITIONS * h->chunk_stride;
        } else {
            *f += at * h->stride[d];
        }
    }
}

/* Is the label on partitions also in another dimension of the access? */
static bool is_diagonal(const Place *x, uint32_t pdim)
{
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d != pdim && x->label[pdim] >= 0 &&
            place_coef(x, d, (uint32_t)x->label[pdim]) != 0) {
            return true;
        }
    }
    return false;
}

bool view_block_lies(Lower *l, const Place *x, Labels p, Labels f, const Box *box,
                     TileView *out)
{
    const Home *h = &l->home[x->buf];
    int32_t lp = x->rank == 0 ? -1 : x->label[h->pdim];
    int64_t rows = lp < 0 ? 1 : box->n[lp];
    *out = (TileView){.buf = h->buf,
                      .np = labels_count(p, box),
                      .nf = labels_count(f, box),
                      .step = 1,
                      .moves = block_moves(l, x)};
    view_block_start(l, x, box, &out->p0, &out->f0);
    return out->np == rows && (rows == 1 || labels_have(p, (uint32_t)lp)) &&
           all_there(x, p, box) && all_there(x, f, box) &&
           !(rows > 1 && is_diagonal(x, h->pdim)) && out->p0 == 0 && rows <= NKI_PARTITIONS;
}

static TileView block_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    const Home *h = &l->home[x->buf];
    int32_t lp = x->rank == 0 ? -1 : x->label[h->pdim];
    int64_t np = labels_count(p, box), nf = labels_count(f, box);
    int64_t rows = lp < 0 ? 1 : box->n[lp];
    DType t = l->from->bufs.at[x->buf].dtype;
    TileView v;
    bool as_it_lies = view_block_lies(l, x, p, f, box, &v) && view_block_run(l, x, f, box, &v);
    bool on_p = rows == 1 || labels_have(p, (uint32_t)lp), straight = np == rows && on_p;
    bool misses = !all_there(x, p, box) || !all_there(x, f, box);
    bool across =
        rows > 1 && (is_diagonal(x, h->pdim) || (on_p && v.p0 + rows > NKI_PARTITIONS));
    if (psum_has(l, x->buf) && !(as_it_lies && psum_takes(l, v))) {
        retry_copied(l, x->buf);
    }
    if (as_it_lies) {
        return v;
    }
    TileView tile = tile_new(l, l->from->bufs.at[x->buf].name->text, t, SPACE_TILE, np, nf);
    if (misses || across || (!straight && (t == DTYPE_BOOL || (rows > 1 && on_p)))) {
        AwayKind kind = rows > 1 && is_diagonal(x, h->pdim) ? AWAY_DIAGONAL
                        : across && !misses                 ? AWAY_ACROSS
                        : t == DTYPE_BOOL && !misses        ? AWAY_BOOL
                                                            : AWAY_OTHER;
        retry_away(l, x->buf, kind); /* any DMA does it */
    } else if (straight) {
        int64_t step[LABELS];
        for (uint32_t i = 0; i < f.n; i++) {
            step[f.at[i]] = block_stride(l, x, f.at[i]);
        }
        view_copy(l, NULL, v, tile, f, box, step);
    } else if (lp >= 0 && labels_have(f, (uint32_t)lp)) {
        transpose_into(l, x, p, f, box, tile, labels_one((uint32_t)lp));
    } else { /* one row of the block, spread over partitions */
        Labels none = {0};
        transpose_into(l, x, p, f, box, tile, none);
    }
    return tile;
}

static TileView make_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    return l->home[x->buf].on_chip ? block_view(l, x, p, f, box) : hbm_view(l, x, p, f, box);
}

bool view_turns(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    const Home *h = &l->home[x->buf];
    if (!h->on_chip) {
        return view_is_turned(l, x, p, f, box);
    }
    int32_t lp = x->rank == 0 ? -1 : x->label[h->pdim];
    return lp < 0 || !labels_have(p, (uint32_t)lp);
}

/* A view of memory, in that tile. */
void view_fill(Lower *l, const Place *x, Labels p, Labels f, const Box *box, TileView dst)
{
    TileView out;
    if (view_is_turned(l, x, p, f, box)) {
        bool rows = view_turns_rows(l, x, p, f, box);
        l->room.turning = rows;
        transpose_into(l, x, p, f, box, dst,
                       rows ? view_rows_turned(l, x, f, box) : turned_together(l, x, f, box));
        l->room.turning = false;
    } else if (view_gathered(l, x, p, f, box, &out)) {
        make_copy(l, dst, out);
    } else {
        make_dma(l, x, p, f, box, dst, false);
    }
}

TileView view_of(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    int64_t key[4 * LABELS + 8];
    Place y;
    Box at;
    TileView v;
    if (l->turn[x->buf].is) {
        return turn_view(l, x, p, f, box);
    }
    if (pair_one_part(l, x, box, &y, &at)) {
        x = &y;
        box = &at;
    }
    uint32_t n = view_key(l, x, p, f, box, key);
    if (cache_find(l, key, n, &v) || view_of_all(l, x, p, f, box, &v)) {
        return v;
    }
    int64_t bytes = labels_count(f, box) * dtype_bytes(l->from->bufs.at[x->buf].dtype);
    Hoist hoist = hoist_begin(l, hoist_depth(l, x, bytes), bytes);
    v = make_view(l, x, p, f, box);
    bool whole = v.nf == l->to->bufs.at[v.buf].extent[1].n;
    if (whole && v.buf != l->home[x->buf].buf) { /* parts of a tile are found through it */
        cache_put(l, key, n, v);
    }
    hoist_end(l, &hoist);
    return v;
}
