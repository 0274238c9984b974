/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a contraction's tiles. A block is a strip of row tiles times a strip of column
 * tiles, each pair with a PSUM bank of its own. Inside a block K is the outer loop: a step needs
 * one slab of either operand and makes all of the block's matmuls, so that the first matmul
 * starts when the first slabs are in and the copies keep ahead of the Tensor engine. The last
 * steps are taken tile by tile, so that one tile is emptied while the next is finished and the
 * next block finds its banks free. What a step needs is made AHEAD steps early: transposes fall
 * between the matmuls of an earlier step, also over the border of blocks.
 *
 * Batches, and rows that are taken one by one, share a PSUM tile side by side while they fit
 * (`outer`): one instruction empties it.
 *
 * X X^T, the same operand on both sides, is computed in blocks on and below the diagonal; the
 * others are their transposes, made during the block that follows.
 *
 * Of the operands the one that fits SBUF is kept, the other streams past it strip by strip and
 * is forgotten strip by strip; where neither fits, strips are taken in bands that do. */
#include "backend/nki/contract.h"

#define STRIP_ROWS 4
#define TAIL       4     /* K steps taken tile by tile: longer than emptying a bank takes */
#define AHEAD      2     /* K steps */
#define SLAB_MOST  32768 /* bytes of a partition, of one slab for several batches */
#define SHORT_ROW  512   /* bytes that follow each other: copies of less are slow */
#define MIRROR_CYCLES                                                                          \
    4096 /* of the Tensor engine: saved by less, a mirror image costs more                     \
          */

enum { STATIONARY, MOVING };

typedef struct Block {
    uint32_t group, row, col; /* strips */
} Block;

typedef struct Side {
    const Place *place;
    Labels own;    /* its rows or columns */
    Labels slab;   /* with the outer labels, as they lie in a slab */
    bool together; /* a slab holds all positions of a group */
    bool streams;  /* strips are forgotten when they have passed */
} Side;

/* One bank's worth of a block. */
typedef struct Bank {
    Box box; /* its rows and columns */
    TileView psum;
    TileView row; /* of a symmetric result: what was stored */
} Bank;

typedef struct Plan {
    Contraction *c;
    Lower *l;
    Side side[2];
    Labels outer, result; /* `result`: outer labels and columns, as they lie in a PSUM tile */
    int64_t mstep[LABELS], nstep[LABELS], gstep[LABELS]; /* of one tile */
    VEC(Box) rows, cols, groups, k;                      /* strips, and K steps */
    VEC(Block) blocks;
    bool symmetric;
    Bank below[STRIP_ROWS]; /* banks of a symmetric block whose mirror image is to be made */
    uint32_t n_below;
    int64_t made; /* steps (block times K step) whose slabs have been asked for */
} Plan;

/* ---- boxes ---- */

static void box_take(Box *to, const Box *from, Labels x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        to->s[x.at[i]] = from->s[x.at[i]];
        to->n[x.at[i]] = from->n[x.at[i]];
    }
}

/* Where the box `part` lies on the free axis of a view of `whole` with labels `f`, if it lies
 * at equal steps. */
static bool part_run(Labels f, const Box *whole, const Box *part, TileView of, TileView *out)
{
    int64_t start = 0, stride = 1, expect = 0, count = 1, step = 1;
    for (uint32_t i = f.n; i-- > 0;) {
        uint32_t label = f.at[i];
        start += stride * (part->s[label] - whole->s[label]);
        if (part->n[label] > 1) {
            if (expect != 0 && stride != expect) {
                return false;
            }
            step = expect == 0 ? stride : step;
            expect = stride * part->n[label];
            count *= part->n[label];
        }
        stride *= whole->n[label];
    }
    *out = view_part(of, start, count);
    out->step = of.step * step;
    return true;
}

static Labels join_labels(Labels x, Labels y)
{
    for (uint32_t i = 0; i < y.n; i++) {
        if (!labels_have(x, y.at[i])) {
            x.at[x.n++] = y.at[i];
        }
    }
    return x;
}

/* `x` then `y`, or as they lie in a place where the labels of `y` lie at equal steps in that
 * order. */
static Labels as_placed(const Lower *l, const Place *place, Labels x, Labels y)
{
    Labels both = join_labels(x, y), out = {0};
    const Home *h = &l->home[place->buf];
    uint32_t order[NKI_DIMS];
    for (uint32_t d = 0; d < place->rank; d++) {
        uint32_t at = d;
        for (; at > 0 && h->stride[order[at - 1]] < h->stride[d]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = d;
    }
    for (uint32_t i = 0; i < place->rank; i++) {
        int32_t label = place->label[order[i]];
        if (label >= 0 && labels_have(both, (uint32_t)label) &&
            !labels_have(out, (uint32_t)label)) {
            out.at[out.n++] = (uint8_t)label;
        }
    }
    bool begun = false, ended = false, apart = out.n != both.n;
    uint32_t at = 0;
    for (uint32_t i = 0; i < out.n; i++) {
        if (labels_have(y, out.at[i])) {
            apart |= ended || out.at[i] != y.at[at];
            at++;
            begun = true;
        } else if (l->now.full.n[out.at[i]] > 1) {
            ended |= begun;
        }
    }
    return apart ? both : out;
}

/* ---- the plan ---- */

static bool on_chip(const Lower *l, const Place *x)
{
    return l->home[x->buf].on_chip;
}

/* Bytes of a partition that one operand takes with all strips of one group. */
static double side_bytes(const Plan *p, uint32_t side, Labels own)
{
    const Place *x = p->side[side].place;
    if (on_chip(p->l, x) && !view_turns(p->l, x, p->c->pk, own, &p->l->now.full)) {
        return 0;
    }
    double positions = 1;
    for (uint32_t i = 0; i < p->outer.n && p->side[side].together; i++) {
        positions *= place_has(x, p->outer.at[i]) ? (double)p->gstep[i] : 1;
    }
    return (double)p->k.n * (double)labels_count(own, &p->l->now.full) * positions *
           (double)nki_bytes(p->l->from->bufs.at[x->buf].dtype);
}

static void plan_side(Plan *p, uint32_t side, const Place *x, Labels own)
{
    Lower *l = p->l;
    Side *s = &p->side[side];
    Labels here = {0};
    int64_t count = 1, size = nki_bytes(l->from->bufs.at[x->buf].dtype);
    bool shortened = false; /* a piece of the contiguous label would make short rows */
    for (uint32_t i = 0; i < p->outer.n; i++) {
        uint32_t label = p->outer.at[i];
        if (place_has(x, label)) {
            here.at[here.n++] = (uint8_t)label;
            count *= p->gstep[i];
            shortened |= p->gstep[i] < l->now.full.n[label] && p->gstep[i] * size < SHORT_ROW &&
                         x->label[x->rank - 1] == (int32_t)label;
        }
    }
    int64_t most = side == STATIONARY ? STRIP_ROWS * NKI_STATIONARY : NKI_PSUM_BANK / 4;
    int64_t wide = labels_count(own, &l->now.full);
    count *= (wide < most ? wide : most) * size;
    *s = (Side){.place = x, .own = own};
    s->together = !on_chip(l, x) && !shortened && count <= SLAB_MOST;
    s->slab = s->together ? as_placed(l, x, here, own) : own;
}

static void list_boxes(Lower *l, Labels x, const int64_t *step, Box **at, uint32_t *n)
{
    VEC(Box) list = {0};
    Box box = l->now.full;
    for (bool a = true; box_next(x, &l->now.full, step, &box, a); a = false) {
        vec_push(l->arena, &list, box);
    }
    *at = list.at;
    *n = list.n;
}

/* Steps of a strip: `times` the steps of a tile in the label that is cut. */
static void strip_steps(const Lower *l, Labels x, const int64_t *tile, int64_t times,
                        int64_t *out)
{
    bool cut = false;
    for (uint32_t i = x.n; i-- > 0;) {
        int64_t n = l->now.full.n[x.at[i]];
        out[i] = tile[i];
        if (!cut && tile[i] < n) {
            out[i] = sat_mul(tile[i], times) < n ? tile[i] * times : n;
            cut = true;
        }
    }
}

static int64_t tiles_of(Labels x, const Box *full, const int64_t *step)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < x.n; i++) {
        count = sat_mul(count, (full->n[x.at[i]] + step[i] - 1) / step[i]);
    }
    return count;
}

/* K steps: labels taken one by one, then pieces of the partitions. */
static void plan_k(Plan *p)
{
    Contraction *c = p->c;
    int64_t step[LABELS];
    Labels all = c->ok;
    for (uint32_t i = 0; i < c->ok.n; i++) {
        step[i] = 1;
    }
    box_steps(c->pk, &p->l->now.full, NKI_PARTITIONS, step + c->ok.n);
    all = join_labels(all, c->pk);
    Box *at = NULL;
    list_boxes(p->l, all, step, &at, &p->k.n);
    p->k.at = at;
}

static void plan_strips(Plan *p)
{
    Contraction *c = p->c;
    Lower *l = p->l;
    int64_t step[LABELS];
    bool turns = view_turns(l, &c->stationary, c->pk, c->pm, &l->now.full) ||
                 view_turns(l, &c->moving, c->pk, c->n, &l->now.full);
    bool plain = c->overwrite && c->epilogue == NULL && !on_chip(l, &c->final);
    int64_t banks = plain && !turns ? NKI_PSUM_BANKS : NKI_PSUM_BANKS / 2;
    int64_t rows = tiles_of(c->pm, &l->now.full, p->mstep);
    rows = rows < STRIP_ROWS ? rows : STRIP_ROWS;
    Box *at = NULL;
    strip_steps(l, c->pm, p->mstep, rows, step);
    list_boxes(l, c->pm, step, &at, &p->rows.n);
    p->rows.at = at;
    strip_steps(l, c->n, p->nstep, p->symmetric ? 1 : banks / rows, step);
    list_boxes(l, c->n, step, &at, &p->cols.n);
    p->cols.at = at;
    list_boxes(l, p->outer, p->gstep, &at, &p->groups.n);
    p->groups.at = at;
}

/* Are the operands one, with the labels of rows and columns exchanged, and is a transpose cheaper
 * than the product? */
static bool is_symmetric(const Plan *p)
{
    const Contraction *c = p->c;
    const Place *a = &c->stationary, *b = &c->moving;
    const Lower *l = p->l;
    if (c->pm.n != 1 || c->n.n != 1 || p->outer.n > 0 || !c->overwrite || c->epilogue != NULL ||
        on_chip(l, &c->final) || a->buf != b->buf || c->final.buf == a->buf ||
        l->now.part >= 0 || l->now.turned >= 0) {
        return false;
    }
    int32_t i = c->pm.at[0], j = c->n.at[0];
    for (uint32_t d = 0; d < a->rank; d++) {
        int32_t want = a->label[d] == i ? j : a->label[d];
        if (a->base[d] != b->base[d] || b->label[d] != want) {
            return false;
        }
    }
    double n = (double)l->now.full.n[i];
    double passes = (l->from->bufs.at[a->buf].dtype == DTYPE_F32 ? 4.0 : 1.0) * p->k.n;
    double saved = (passes - 1) * n * n / (2 * NKI_STATIONARY); /* cycles */
    return l->now.full.s[i] == l->now.full.s[j] && l->now.full.n[i] == l->now.full.n[j] &&
           l->now.full.n[i] > NKI_STATIONARY && saved >= MIRROR_CYCLES;
}

/* How many strips of the operand that stays fit at once. */
static uint32_t band_of(double bytes, uint32_t strips, double other, uint32_t other_strips,
                        double room)
{
    room -= other / other_strips;
    double fit = bytes > 0 ? room / (bytes / strips) : strips;
    return fit >= strips ? strips : fit < 1 ? 1 : (uint32_t)fit;
}

static uint32_t bands(uint32_t strips, uint32_t band)
{
    return (strips + band - 1) / band;
}

/* The order of blocks: which operand stays in SBUF and which streams past it. */
static void plan_order(Plan *p)
{
    double room = (double)p->l->room.cache_limit;
    double a = side_bytes(p, STATIONARY, p->side[STATIONARY].own);
    double b = side_bytes(p, MOVING, p->side[MOVING].own);
    uint32_t rows = p->rows.n, cols = p->cols.n;
    uint32_t keep_cols = band_of(b, cols, a, rows, room);
    uint32_t keep_rows = band_of(a, rows, b, cols, room);
    b = p->symmetric ? 0 : b; /* the same tiles */
    bool rows_stream = b + a * bands(cols, keep_cols) < a + b * bands(rows, keep_rows);
    p->side[STATIONARY].streams = rows_stream && a + b > room;
    p->side[MOVING].streams = !rows_stream && a + b > room;
    uint32_t band = rows_stream ? keep_cols : keep_rows;
    uint32_t kept = rows_stream ? cols : rows, other = rows_stream ? rows : cols;
    for (uint32_t g = 0; g < p->groups.n; g++) {
        for (uint32_t from = 0; from < kept; from += band) {
            for (uint32_t x = 0; x < other; x++) {
                for (uint32_t y = from; y < from + band && y < kept; y++) {
                    Block block = {g, rows_stream ? x : y, rows_stream ? y : x};
                    if (!p->symmetric || block.row >= block.col) {
                        vec_push(p->l->arena, &p->blocks, block);
                    }
                }
            }
        }
    }
}

/* ---- operands ---- */

/* How long the rows of a load are: a power of two from 512 bytes on that grows with the
 * position along the contiguous label, so that what the first block needs is loaded first and
 * nothing twice; 0: as long as rows are best. */
static int64_t slab_bytes(const Plan *p, uint32_t side, const Box *box)
{
    Contraction *c = p->c;
    const Side *s = &p->side[side];
    int64_t size = nki_bytes(p->l->from->bufs.at[s->place->buf].dtype), bytes = 512;
    bool turns = view_turns(p->l, s->place, c->pk, s->own, &p->l->now.full);
    Labels along = turns ? c->pk : s->own;
    if (along.n != 1 || (turns && c->ok.n > 0)) {
        return 0;
    }
    if (s->streams && !turns) {
        return bytes; /* a strip by itself: what is beside it is forgotten with it */
    }
    int64_t at = (box->s[along.at[0]] - p->l->now.full.s[along.at[0]]) * size;
    while (bytes < 2048 && bytes * 2 <= at) {
        bytes *= 2;
    }
    return bytes;
}

/* The slab of an operand: all of a strip's rows, or one tile's columns. */
static TileView slab(Plan *p, uint32_t side, const Box *box, uint32_t strip)
{
    Lower *l = p->l;
    const Side *s = &p->side[side];
    l->room.tag = s->streams ? strip + 1 : 0;
    l->room.slab_bytes = slab_bytes(p, side, box);
    TileView v = view_of(l, s->place, p->c->pk, s->slab, box);
    l->room.slab_bytes = 0;
    l->room.tag = 0;
    return v;
}

static bool strip_next(Plan *p, Labels x, const Box *strip, const int64_t *step, Box *box,
                       bool first)
{
    return box_next(x, strip, step, box, first) && !p->l->tried.failed;
}

static bool position_next(Plan *p, const Box *group, Box *at, bool first)
{
    int64_t one[LABELS];
    for (uint32_t i = 0; i < p->outer.n; i++) {
        one[i] = 1;
    }
    return box_next(p->outer, group, one, at, first) && !p->l->tried.failed;
}

/* Asks for the slabs of the steps before `end`. */
static void make_until(Plan *p, int64_t end)
{
    int64_t all = (int64_t)p->blocks.n * p->k.n;
    Contraction *c = p->c;
    for (; p->made < end && p->made < all && !p->l->tried.failed; p->made++) {
        const Block *b = &p->blocks.at[p->made / p->k.n];
        const Box *k = &p->k.at[p->made % p->k.n], *group = &p->groups.at[b->group];
        Box box = *k;
        box_take(&box, group, p->outer);
        for (uint32_t side = 0; side < 2; side++) {
            Box at = box;
            bool more = true;
            for (bool a = true; more && position_next(p, group, &at, a); a = false) {
                if (p->side[side].together) {
                    box_take(&at, group, p->outer);
                    more = false;
                }
                if (side == STATIONARY) {
                    box_take(&at, &p->rows.at[b->row], c->pm);
                    (void)slab(p, side, &at, b->row);
                    continue;
                }
                const Box *strip = &p->cols.at[b->col];
                for (bool t = true; strip_next(p, c->n, strip, p->nstep, &at, t); t = false) {
                    (void)slab(p, side, &at, b->col);
                }
            }
        }
    }
}

/* ---- one block ---- */

/* The matmuls of one K step into one bank. */
static void step_bank(Plan *p, const Block *b, const Box *k, bool first, const Bank *bank)
{
    Contraction *c = p->c;
    const Box *group = &p->groups.at[b->group];
    Box at = bank->box;
    box_take(&at, k, c->ok);
    box_take(&at, k, c->pk);
    Box result = at;
    box_take(&result, group, p->outer);
    for (bool a = true; position_next(p, group, &at, a); a = false) {
        TileView v[2], dst = {0};
        bool good = part_run(p->result, &result, &at, bank->psum, &dst);
        for (uint32_t side = 0; side < 2; side++) {
            const Side *s = &p->side[side];
            Box whole = at;
            if (s->together) {
                box_take(&whole, group, p->outer);
            }
            if (side == STATIONARY || p->symmetric) {
                const Box *strip =
                    side == STATIONARY ? &p->rows.at[b->row] : &p->cols.at[b->col];
                box_take(&whole, strip, s->own);
            }
            TileView all = slab(p, side, &whole, side == STATIONARY ? b->row : b->col);
            good = part_run(s->slab, &whole, &at, all, &v[side]) && good;
        }
        CHECK(good || p->l->tried.failed);
        if (!p->l->tried.failed) {
            make_matmul(p->l, dst, v[STATIONARY], v[MOVING], first);
        }
    }
}

/* What becomes of a PSUM tile. */
static void finish(Plan *p, const Block *b, Bank *bank)
{
    Contraction *c = p->c;
    Lower *l = p->l;
    Box box = bank->box;
    TileView psum = bank->psum;
    box_take(&box, &p->groups.at[b->group], p->outer);
    if (p->symmetric) {
        DType t = l->from->bufs.at[c->final.buf].dtype;
        bank->row = tile_new(l, "row", t, SPACE_TILE, psum.np, psum.nf);
        make_copy(l, bank->row, psum);
        view_store(l, &c->final, c->pm, c->n, &box, bank->row);
        p->below[p->n_below++] = *bank;
        return;
    }
    if (c->epilogue != NULL) {
        Evaluation ev = {l, c->pm, p->result, &box, c->dst.buf, psum};
        DType t = l->from->bufs.at[c->final.buf].dtype;
        TileView v = evaluate(&ev, c->epilogue_value, t, NULL);
        view_store(l, &c->final, c->pm, p->result, &box, v);
        return;
    }
    if (!c->overwrite) {
        TileView old = view_of(l, &c->dst, c->pm, p->result, &box);
        TileView sum = tile_new(l, "sum", view_dtype(l, old), SPACE_TILE, psum.np, psum.nf);
        const Expr *pair[2] = {view_load(l, psum, DTYPE_F32), view_load(l, old, DTYPE_F32)};
        make_map(l, sum, expr_op(l->arena, OP_ADD, DTYPE_F32, 2, pair));
        psum = sum;
    }
    view_store(l, &c->final, c->pm, p->result, &box, psum);
}

/* Stores the mirror image of the banks below the diagonal. */
static void mirror(Plan *p)
{
    Contraction *c = p->c;
    Lower *l = p->l;
    uint32_t i = c->pm.at[0], j = c->n.at[0];
    Place to = c->final;
    for (uint32_t d = 0; d < to.rank; d++) {
        int32_t label = to.label[d];
        to.label[d] = label == (int32_t)i   ? (int32_t)j
                      : label == (int32_t)j ? (int32_t)i
                                            : label;
    }
    const Box *last = p->n_below == 0 ? NULL : &p->below[p->n_below - 1].box;
    for (int64_t at = 0; last != NULL && at < last->n[j] && !l->tried.failed;
         at += NKI_PARTITIONS) {
        Box box = *last;
        box.s[j] += at;
        box.n[j] = last->n[j] - at < NKI_PARTITIONS ? last->n[j] - at : NKI_PARTITIONS;
        box.n[i] = 0;
        TileView psum = {0};
        for (uint32_t r = 0; r < p->n_below; r++) {
            const Bank *bank = &p->below[r];
            if (bank->box.s[i] <= box.s[j]) {
                continue; /* on the diagonal */
            }
            if (box.n[i] == 0) {
                box.s[i] = bank->box.s[i];
                psum = tile_new(l, "psum", view_dtype(l, bank->row), SPACE_ACC, box.n[j],
                                last->s[i] + last->n[i] - box.s[i]);
            }
            make_transpose(l, view_part(psum, box.n[i], bank->box.n[i]),
                           view_part(bank->row, at, box.n[j]));
            box.n[i] += bank->box.n[i];
        }
        if (box.n[i] > 0) {
            view_store(l, &to, c->n, c->pm, &box, psum);
        }
    }
    p->n_below = 0;
}

static uint32_t block_banks(Plan *p, const Block *b, Bank *bank)
{
    Contraction *c = p->c;
    const Box *rows = &p->rows.at[b->row], *cols = &p->cols.at[b->col];
    const Box *group = &p->groups.at[b->group];
    uint32_t n = 0;
    Box at = p->l->now.full;
    for (bool r = true; strip_next(p, c->pm, rows, p->mstep, &at, r); r = false) {
        for (bool t = true; strip_next(p, c->n, cols, p->nstep, &at, t); t = false) {
            CHECK(n < NKI_PSUM_BANKS);
            if (p->symmetric && b->row == b->col) {
                uint32_t j = c->n.at[0], i = c->pm.at[0];
                at.n[j] = at.s[i] + at.n[i] - at.s[j];
            }
            int64_t columns = labels_count(c->n, &at) * labels_count(p->outer, group);
            bank[n].box = at;
            bank[n++].psum =
                tile_new(p->l, "psum", DTYPE_F32, SPACE_ACC, labels_count(c->pm, &at), columns);
        }
    }
    return n;
}

static void emit_block(Plan *p, uint32_t number)
{
    const Block *b = &p->blocks.at[number];
    int64_t n_k = p->k.n, base = number * n_k;
    Bank bank[NKI_PSUM_BANKS];
    uint32_t n = block_banks(p, b, bank);
    int64_t split = n < 2 ? n_k : n_k > TAIL ? n_k - TAIL : 0;
    if (p->side[STATIONARY].streams) {
        cache_drop(p->l, p->side[STATIONARY].place->buf, b->row + 1);
    }
    if (p->side[MOVING].streams) {
        cache_drop(p->l, p->side[MOVING].place->buf, b->col + 1);
    }
    for (int64_t k = 0; k < split && !p->l->tried.failed; k++) {
        make_until(p, base + k + AHEAD + 1);
        for (uint32_t i = 0; i < n && !p->l->tried.failed; i++) {
            step_bank(p, b, &p->k.at[k], k == 0, &bank[i]);
        }
        if (k == 1) {
            mirror(p);
        }
    }
    make_until(p, base + n_k);
    for (uint32_t i = 0; i < n && !p->l->tried.failed; i++) {
        for (int64_t k = split; k < n_k && !p->l->tried.failed; k++) {
            step_bank(p, b, &p->k.at[k], k == 0, &bank[i]);
        }
        if (i == 0) {
            mirror(p);
        }
        make_until(p, base + n_k + (i < AHEAD ? i + 1 : AHEAD));
        finish(p, b, &bank[i]);
    }
}

void contract_blocks(Contraction *c)
{
    Lower *l = c->l;
    Plan p = {.c = c, .l = l};
    box_steps(c->pm, &l->now.full, NKI_STATIONARY, p.mstep);
    box_steps(c->n, &l->now.full, NKI_PSUM_BANK / 4, p.nstep);
    p.outer = as_placed(l, &c->final, join_labels(c->batch, c->om), (Labels){0});
    int64_t columns = labels_count(c->n, &l->now.full);
    int64_t most = columns < NKI_PSUM_BANK / 4 ? NKI_PSUM_BANK / 4 / columns : 1;
    box_steps(p.outer, &l->now.full, most, p.gstep);
    int64_t count =
        sat_mul(tiles_of(c->pm, &l->now.full, p.mstep), tiles_of(c->n, &l->now.full, p.nstep));
    count = sat_mul(count, labels_count(p.outer, &l->now.full));
    count = sat_mul(count, labels_count(c->ok, &l->now.full));
    count = sat_mul(count, labels_count(c->pk, &l->now.full) / NKI_PARTITIONS);
    if (count > l->task.most) {
        l->tried.too_many = l->tried.failed = true;
        return;
    }
    p.result = as_placed(l, &c->final, p.outer, c->n);
    plan_side(&p, STATIONARY, &c->stationary, c->pm);
    plan_side(&p, MOVING, &c->moving, c->n);
    plan_k(&p);
    p.symmetric = is_symmetric(&p);
    plan_strips(&p);
    plan_order(&p);
    for (uint32_t i = 0; i < p.blocks.n && !l->tried.failed; i++) {
        emit_block(&p, i);
    }
    mirror(&p);
}
