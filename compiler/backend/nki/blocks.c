/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a contraction's tiles, as its levels say (schedule/schedule.h). A block is what is
 * open at the level of the sum: a strip of row tiles times a strip of column tiles, each pair
 * with a PSUM bank of its own. Inside a block K is the outer loop: a step needs
 * one slab of either operand and makes all of the block's matmuls, so that the first matmul
 * starts when the first slabs are in and the copies keep ahead of the Tensor engine. The last
 * steps are taken tile by tile, so that one tile is emptied while the next is finished and the
 * next block finds its banks free. What a step needs is made AHEAD steps early: transposes fall
 * between the matmuls of an earlier step, also over the border of blocks. Where all that is loaded stays in SBUF, the steps of a
 * whole block are made at a time, so that blocks are equal, and roll into loops: what is turned during the block before.
 *
 * Batches, and rows that are taken one by one, share a PSUM tile side by side while they fit
 * (`outer`): one instruction empties it.
 *
 * X X^T, the same operand on both sides, is computed in blocks on and below the diagonal; the
 * others are their transposes, made during the block that follows.
 *
 * What is packed is kept in SBUF until the level that packs it goes on, what is not until the
 * block ends; it is loaded when a step first needs it. */
#include "backend/nki/blocks.h"
#include "backend/nki/home.h"
#include "backend/nki/make.h"
#include "backend/nki/panels.h"
#include "backend/nki/view.h"

#define TAIL  4 /* K steps taken tile by tile: longer than emptying a bank takes */
#define AHEAD 2 /* K steps */

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

/* ---- operands ---- */

/* How long the rows of a load are: a power of two from 512 bytes on that grows with the
 * position along the contiguous label, so that what the first block needs is loaded first and
 * nothing twice; 0: as long as rows are best. */
static int64_t slab_bytes(const Plan *p, uint32_t side, const Box *box)
{
    Contraction *c = p->c;
    const Side *s = &p->side[side];
    int64_t size = dtype_bytes(p->l->from->bufs.at[s->place->buf].dtype), bytes = 512;
    bool turns = view_turns(p->l, s->place, c->pk, s->own, &p->l->now.full);
    Labels along = turns ? c->pk : s->own;
    if (p->stays || p->passes || (p->turns && p->fits) || p->l->loops.depth > 0) {
        return turns ? 2 * NKI_SHORT_RUN : strip_tile(p->levels, side) * size;
    }
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
static TileView slab(Plan *p, uint32_t side, const Box *box, uint32_t tag)
{
    Lower *l = p->l;
    const Side *s = &p->side[side];
    l->room.tag = tag;
    l->room.passes = s->passes;
    l->room.slab_bytes = slab_bytes(p, side, box);
    l->room.halves = l->room.loads_first = p->turns && (p->stays || p->fits || p->passes);
    TileView v = view_of(l, s->place, p->c->pk, s->slab, box);
    l->room.slab_bytes = 0;
    l->room.halves = l->room.loads_first = false;
    l->room.tag = 0;
    l->room.passes = false;
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

/* Asks for the slabs of an operand at one step, for one position of a group. */
static void make_position(Plan *p, uint32_t side, int64_t step, const Box *position)
{
    Contraction *c = p->c;
    const Block *b = &p->blocks.at[step / p->k.n];
    Box at = p->k.at[step % p->k.n];
    box_take(&at, p->side[side].together ? &p->groups.at[b->group] : position, p->outer);
    if (side == STATIONARY) {
        box_take(&at, &p->strips[ROLE_M].at[b->strip[ROLE_M]], c->pm);
        (void)slab(p, side, &at, b->tag[side]);
        return;
    }
    const Box *strip = &p->strips[ROLE_N].at[b->strip[ROLE_N]];
    for (bool t = true; strip_next(p, c->n, strip, p->nstep, &at, t); t = false) {
        (void)slab(p, side, &at, b->tag[side]);
    }
}

/* The same for all of them. */
static void make_step(Plan *p, uint32_t side, int64_t step)
{
    const Box *group = &p->groups.at[p->blocks.at[step / p->k.n].group];
    Box at = *group;
    bool more = true;
    for (bool a = true; more && position_next(p, group, &at, a); a = false) {
        make_position(p, side, step, &at);
        more = !p->side[side].together;
    }
}

/* All steps of a block, one position of its group after the other, as they are multiplied. */
static void make_positions(Plan *p, uint32_t number)
{
    const Box *group = &p->groups.at[p->blocks.at[number].group];
    int64_t base = number * p->k.n;
    Box at = *group;
    for (bool a = true; position_next(p, group, &at, a); a = false) {
        for (int64_t k = 0; k < p->k.n && !p->l->tried.failed; k++) {
            make_position(p, STATIONARY, base + k, &at);
            make_position(p, MOVING, base + k, &at);
        }
    }
}

/* Asks for the slabs of an operand at the steps before `end`. */
static void make_side(Plan *p, uint32_t side, int64_t end)
{
    int64_t all = (int64_t)p->blocks.n * p->k.n;
    for (; p->made[side] < end && p->made[side] < all && !p->l->tried.failed; p->made[side]++) {
        make_step(p, side, p->made[side]);
    }
}

static void make_until(Plan *p, int64_t end)
{
    int64_t all = (int64_t)p->blocks.n * p->k.n;
    for (int64_t at = p->made[MOVING]; at < end && at < all; at++) {
        make_side(p, STATIONARY, at + 1);
        make_side(p, MOVING, at + 1);
    }
}

/* Operands that stay, of the next block: what is turned during this one, copies as they come. */
static void make_turned(Plan *p, bool turned, int64_t end)
{
    for (uint32_t side = 0; side < 2; side++) {
        if (p->side[side].turns == turned) {
            make_side(p, side, end);
        }
    }
}

/* ---- one block ---- */

/* The matmul of one K step for one position of a group, in one bank. */
static void step_position(Plan *p, const Block *b, int64_t k, const Bank *bank,
                          const Box *where)
{
    Contraction *c = p->c;
    const Box *group = &p->groups.at[b->group];
    Box at = *where;
    box_take(&at, &p->k.at[k], c->ok);
    box_take(&at, &p->k.at[k], c->pk);
    Box result = at;
    box_take(&result, group, p->outer);
    TileView v[2], dst = {0};
    bool good = part_run(p->result, &result, &at, bank->psum, &dst);
    for (uint32_t side = 0; side < 2; side++) {
        const Side *s = &p->side[side];
        Box whole = at;
        if (s->together) {
            box_take(&whole, group, p->outer);
        }
        if (side == STATIONARY || p->symmetric) {
            const Box *strip = side == STATIONARY ? &p->strips[ROLE_M].at[b->strip[ROLE_M]]
                                                  : &p->strips[ROLE_N].at[b->strip[ROLE_N]];
            box_take(&whole, strip, s->own);
        }
        TileView all = slab(p, side, &whole, b->tag[side]);
        good = part_run(s->slab, &whole, &at, all, &v[side]) && good;
    }
    CHECK(good || p->l->tried.failed);
    if (!p->l->tried.failed) {
        bool loop = p->sum_loop != UINT32_MAX;
        Stmt *s = make_matmul(p->l, dst, v[STATIONARY], v[MOVING], k == 0 && !p->later);
        s->n_first = s->begins && loop;
        s->first = loop ? arena_copy(p->l->arena, &p->sum_loop, sizeof p->sum_loop) : NULL;
    }
}

/* The matmuls of K steps [from, to) into one bank: one position after the other, since only one
 * group of sums may be open in a bank. */
static void step_bank(Plan *p, const Block *b, int64_t from, int64_t to, const Bank *bank)
{
    const Box *group = &p->groups.at[b->group];
    Box at = bank->box;
    box_take(&at, group, p->outer);
    for (bool a = true; position_next(p, group, &at, a); a = false) {
        for (int64_t k = from; k < to && !p->l->tried.failed; k++) {
            step_position(p, b, k, bank, &at);
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
    if (psum_has(l, c->final.buf)) {
        l->home[c->final.buf].version++;
        return;
    }
    if (p->symmetric) {
        DType t = l->from->bufs.at[c->final.buf].dtype;
        bank->row = tile_new(l, "row", t, SPACE_TILE, psum.np, psum.nf);
        make_copy(l, bank->row, psum);
        view_store(l, &c->final, c->pm, c->n, &box, bank->row);
        p->below[p->n_below++] = *bank;
        return;
    }
    contract_finish(c, p->result, &box, psum);
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

/* A bank for a tile of the result: the block's own, where it stays in PSUM. */
static TileView bank_tile(Plan *p, const Box *group, const Box *at, int64_t columns)
{
    Contraction *c = p->c;
    if (!psum_has(p->l, c->final.buf)) {
        return tile_new(p->l, "psum", DTYPE_F32, SPACE_ACC, labels_count(c->pm, at), columns);
    }
    Box box = *at;
    box_take(&box, group, p->outer);
    TileView v = view_of(p->l, &c->final, c->pm, p->result, &box);
    bool one = nki_bank(p->l->to, v.buf) == 0;
    bool beside =
        one ? v.nf < p->l->to->bufs.at[v.buf].extent[1].n : labels_count(p->outer, group) > 1;
    if (!p->l->tried.failed && beside) {
        retry_copied(p->l, c->final.buf); /* sums side by side in a bank */
    }
    return v;
}

static uint32_t block_banks(Plan *p, const Block *b, Bank *bank)
{
    Contraction *c = p->c;
    const Box *rows = &p->strips[ROLE_M].at[b->strip[ROLE_M]],
              *cols = &p->strips[ROLE_N].at[b->strip[ROLE_N]];
    const Box *group = &p->groups.at[b->group];
    uint32_t n = 0;
    Box at = p->l->now.full;
    for (bool r = true; strip_next(p, c->pm, rows, p->mstep, &at, r); r = false) {
        for (bool t = true; strip_next(p, c->n, cols, p->nstep, &at, t); t = false) {
            CHECK(n < NKI_PSUM_BANKS);
            if (p->symmetric && b->strip[0] == b->strip[1]) {
                uint32_t j = c->n.at[0], i = c->pm.at[0];
                at.n[j] = at.s[i] + at.n[i] - at.s[j];
            }
            int64_t columns = labels_count(c->n, &at) * labels_count(p->outer, group);
            bank[n].box = at;
            bank[n++].psum = bank_tile(p, group, &at, columns);
        }
    }
    return n;
}

static bool ends_group(const Plan *p, uint32_t number)
{
    return number + 1 == p->blocks.n ||
           p->blocks.at[number + 1].group != p->blocks.at[number].group;
}

/* The blocks from `number` on up to the end of its group. */
static uint32_t group_end(const Plan *p, uint32_t number)
{
    while (!ends_group(p, number)) {
        number++;
    }
    return number + 1;
}

static void emit_block(Plan *p, uint32_t number)
{
    const Block *b = &p->blocks.at[number];
    int64_t n_k = p->k.n, base = number * n_k;
    Bank bank[NKI_PSUM_BANKS];
    uint32_t n = block_banks(p, b, bank);
    int64_t split = n < 2 || p->passes ? n_k : n_k > TAIL ? n_k - TAIL : 0;
    split = labels_count(p->outer, &p->groups.at[b->group]) > 1 ? 0 : split;
    for (uint32_t side = 0; side < 2 && number > 0; side++) {
        if (b->tag[side] != p->blocks.at[number - 1].tag[side]) {
            cache_drop(p->l, p->side[side].place->buf, b->tag[side]);
        }
    }
    bool steps = p->passes || (!p->stays && !p->fits); /* a few steps at a time */
    bool early = p->turns && !steps;                   /* a block at a time */
    int64_t ahead = p->passes || !steps ? 0 : AHEAD;   /* copies run ahead by themselves */
    if (p->passes) {
        make_turned(p, true, base + n_k);
    }
    if (p->turns && labels_count(p->outer, &p->groups.at[b->group]) > 1) {
        make_positions(p, number);
    }
    if (early) {
        make_turned(p, true, base + n_k);
        make_turned(p, false, base + n_k);
    }
    for (int64_t k = 0; k < split && !p->l->tried.failed; k++) {
        make_until(p, base + (steps ? k + ahead + 1 : n_k));
        for (uint32_t i = 0; i < n && !p->l->tried.failed; i++) {
            step_bank(p, b, k, k + 1, &bank[i]);
        }
        if (k == 1) {
            mirror(p);
        }
    }
    make_until(p, base + n_k);
    if (early && p->stays && !ends_group(p, number)) { /* batches are equal */
        make_turned(p, true, base + 2 * n_k);
    }
    for (uint32_t i = 0; i < n && !p->l->tried.failed; i++) {
        step_bank(p, b, split, n_k, &bank[i]);
        if (i == 0) {
            mirror(p);
        }
        make_until(p, base + n_k + (i < ahead ? i + 1 : ahead));
        finish(p, b, &bank[i]);
    }
}

/* ---- one block of a long sum ---- */

#define SUM_STEPS 8  /* K steps of an iteration */
#define SUM_LEAST 64 /* of a sum that is worth a loop */

static void sum_steps(Plan *p, Bank *bank, uint32_t n)
{
    contract_places(p->c);
    plan_k(p);
    p->made[STATIONARY] = p->made[MOVING] = 0;
    for (int64_t k = 0; k < p->k.n && !p->l->tried.failed; k++) {
        make_until(p, k + AHEAD + 1);
        for (uint32_t i = 0; i < n && !p->l->tried.failed; i++) {
            step_bank(p, &p->blocks.at[0], k, k + 1, &bank[i]);
        }
    }
}

/* Is the block one of many, for which operands may be kept? */
static bool is_in_blocks(const Lower *l)
{
    bool in = false;
    for (uint32_t d = 0; d < l->loops.depth; d++) {
        in |= l->loops.open[d].stmt == l->now.stmt;
    }
    return in;
}

/* The K steps as a loop, where nothing is kept for another block; false, and nothing done, where that is not so. */
static bool emit_sum(Plan *p)
{
    Contraction *c = p->c;
    Lower *l = p->l;
    uint32_t sum = c->pk.n == 1 ? c->pk.at[0] : LABELS;
    if (l->loops.concrete[l->from->vars.n] || p->blocks.n != 1 || p->symmetric ||
        is_in_blocks(l) || c->ok.n > 0 || sum >= l->now.stmt->n_index || p->k.n < SUM_LEAST ||
        labels_count(p->outer, &p->groups.at[0]) > 1) {
        return false;
    }
    Box full = l->now.full;
    Affine moves = l->now.moves[sum];
    Bank bank[NKI_PSUM_BANKS];
    uint32_t n = block_banks(p, &p->blocks.at[0], bank);
    int64_t step = SUM_STEPS * c->tile[ROLE_K];
    if (open_label(l, sum, step, affine_const(0), c->epilogue)) {
        p->sum_loop = l->loops.open[l->loops.depth - 1].var;
        sum_steps(p, bank, n);
        close_label(l, sum, step, &full, moves);
        p->sum_loop = UINT32_MAX;
        p->later = true;
    }
    if (l->now.full.n[sum] > 0) {
        sum_steps(p, bank, n);
    }
    l->now.full = full;
    contract_places(c);
    for (uint32_t i = 0; i < n && !l->tried.failed; i++) {
        finish(p, &p->blocks.at[0], &bank[i]);
    }
    return true;
}

void contract_blocks(Contraction *c)
{
    Lower *l = c->l;
    Plan p;
    if (!plan_blocks(&p, c)) {
        return;
    }
    if (emit_sum(&p)) {
        return;
    }
    for (uint32_t i = 0; i < p.blocks.n && !l->tried.failed; i++) {
        if (p.stays && !p.turns) {
            make_until(&p, (int64_t)group_end(&p, i) * p.k.n);
        }
        emit_block(&p, i);
    }
    mirror(&p);
}
