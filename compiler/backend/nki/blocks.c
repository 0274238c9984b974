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
#include "backend/nki/contract.h"

#define TAIL        4     /* K steps taken tile by tile: longer than emptying a bank takes */
#define AHEAD       2     /* K steps */
#define SLAB_MOST   32768 /* bytes of a partition, of one slab for several batches */
#define MATMUL_LONG 512 /* columns for which matmuls take longer than to copy what was turned */
#define SHORT_ROW   512 /* bytes that follow each other: copies of less are slow */
#define MIRROR_CYCLES                                                                          \
    4096 /* of the Tensor engine: saved by less, a mirror image costs more                     \
          */

enum { STATIONARY = ROLE_M, MOVING = ROLE_N };

typedef struct Block {
    uint32_t group, strip[2]; /* of rows, of columns */
    uint32_t tag[2]; /* of what is kept for it alone, or 0: for all of the contraction */
} Block;

typedef struct Side {
    const Place *place;
    Labels own;     /* its rows or columns */
    Labels slab;    /* with the outer labels, as they lie in a slab */
    bool together;  /* a slab holds all positions of a group */
    bool streams;   /* strips are forgotten when they have passed */
    bool turns;     /* is it transposed on the way? */
    uint32_t packs; /* how often it has been packed */
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
    VEC(Box) strips[2], groups, k; /* by role; positions of `outer`; K steps */
    VEC(Block) blocks;
    ScheduleLevel level[STRIP_LEVELS]; /* where the statement has none */
    Schedule own;
    const Schedule *levels;
    int64_t strip[2]; /* tiles of a strip, by role */
    bool symmetric;
    bool turns; /* is an operand transposed on the way? */
    bool stays; /* are all operands loaded once, and kept? */
    bool fits;  /* is there room for what is packed, and all slabs of a block? */
    Bank
        below[NKI_PSUM_BANKS]; /* banks of a symmetric block whose mirror image is to be made */
    uint32_t n_below;
    int64_t made[2]; /* steps (block times K step) whose slabs have been asked for */
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

/* `most`: its positions in one slab. */
static void plan_side(Plan *p, uint32_t side, const Place *x, Labels own, int64_t most)
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
    int64_t wide = labels_count(own, &l->now.full);
    count *= (wide < most ? wide : most) * size;
    *s = (Side){.place = x, .own = own};
    s->together = !on_chip(l, x) && !shortened && count <= SLAB_MOST;
    s->slab = s->together ? labels_as_placed(l, x, here, own) : own;
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
    box_steps(c->pk, &p->l->now.full, c->tile[ROLE_K], step + c->ok.n);
    all = labels_join(all, c->pk);
    Box *at = NULL;
    list_boxes(p->l, all, step, &at, &p->k.n);
    p->k.at = at;
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

/* Banks that may be in use at once: transposes need some, and tiles that do not leave as they
 * are wait longer. */
static int64_t live_banks(const Plan *p)
{
    const Contraction *c = p->c;
    Lower *l = p->l;
    const SystolicTiles *t = &l->target->machine->systolic;
    bool turns = view_turns(l, &c->stationary, c->pk, c->pm, &l->now.full) ||
                 view_turns(l, &c->moving, c->pk, c->n, &l->now.full);
    bool plain = c->overwrite && c->epilogue == NULL && !on_chip(l, &c->final);
    return plain && !turns ? t->live : t->live_busy;
}

/* The levels of a statement that has none, as nest/schedule.c would make them. */
static void make_levels(Plan *p, int64_t live)
{
    Contraction *c = p->c;
    const Box *full = &p->l->now.full;
    Strips x = {.live = live,
                .most_rows = p->l->target->machine->systolic.live_rows,
                .room = (double)p->l->room.cache_limit,
                .mirrored = p->symmetric};
    x.tiles[ROLE_M] = tiles_of(c->pm, full, p->mstep);
    x.tiles[ROLE_N] = tiles_of(c->n, full, p->nstep);
    x.bytes[ROLE_M] = side_bytes(p, STATIONARY, c->pm);
    x.bytes[ROLE_N] = side_bytes(p, MOVING, c->n);
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        x.tile[r] = c->tile[r];
    }
    p->own.n_levels = schedule_strips(&x, p->level);
    p->own.level = p->level;
    p->levels = &p->own;
}

/* Levels before that of the sum: of blocks. */
static uint32_t outer_levels(const Schedule *b)
{
    uint32_t n = 0;
    while (n < b->n_levels && b->level[n].role != ROLE_K) {
        n++;
    }
    return n;
}

/* The tile that is open at the sum. */
static int64_t strip_tile(const Schedule *b, ScheduleRole role)
{
    int64_t tile = 0;
    for (uint32_t i = 0; i < outer_levels(b); i++) {
        tile = b->level[i].role == role ? b->level[i].tile : tile;
    }
    return tile;
}

static const char *levels_problem(const Plan *p, int64_t live)
{
    const Schedule *b = p->levels;
    const ContractionTiles *t = &p->l->target->machine->tile;
    int64_t most[ROLE_BATCH] = {t->rows, t->line / dtype_bytes(DTYPE_F32), t->sum}, banks = 1;
    uint32_t n = outer_levels(b), packs[2] = {0};
    for (uint32_t i = 0; i < b->n_levels; i++) {
        const ScheduleLevel *l = &b->level[i];
        if (l->pack && i > n) {
            return "packs outside of the sum";
        }
        if (i > n && l->role == ROLE_K) {
            return "cuts the sum once: tiles are added up in PSUM";
        }
        if (l->pack && ++packs[l->role] > 1) {
            return "packs an operand once";
        }
    }
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        const ScheduleLevel *l = schedule_innermost(b, r);
        if (l == NULL || l->tile > most[r]) {
            return str_format(
                p->l->arena, "has tiles of at most %lld rows, %lld columns and %lld of the sum",
                (long long)most[ROLE_M], (long long)most[ROLE_N], (long long)most[ROLE_K]);
        }
        if (r < ROLE_K && strip_tile(b, r) == 0) {
            return "has rows and columns outside of the sum, which banks of PSUM hold";
        }
        banks = r < ROLE_K ? sat_mul(banks, strip_tile(b, r) / l->tile) : banks;
    }
    return banks > live ? str_format(p->l->arena,
                                     "has %lld banks of PSUM here for tiles inside of the sum",
                                     (long long)live)
                        : NULL;
}

/* Is there room for what is packed at a time? */
static bool has_room(const Plan *p)
{
    double bytes = 0;
    for (uint32_t i = 0; i < p->levels->n_levels; i++) {
        const ScheduleLevel *l = &p->levels->level[i];
        const Place *x = l->pack ? p->side[l->role].place : NULL;
        if (x == NULL || on_chip(p->l, x)) {
            continue;
        }
        int64_t all = labels_count(p->side[l->role].own, &p->l->now.full);
        bytes += (double)p->k.n * (double)(l->tile < all ? l->tile : all) *
                 (double)nki_bytes(p->l->from->bufs.at[x->buf].dtype);
    }
    return bytes <= (double)p->l->chip->sbuf_bytes;
}

static void list_strips(Plan *p)
{
    Contraction *c = p->c;
    Lower *l = p->l;
    int64_t step[LABELS];
    Box *at = NULL;
    strip_steps(l, c->pm, p->mstep, p->strip[ROLE_M], step);
    list_boxes(l, c->pm, step, &at, &p->strips[ROLE_M].n);
    p->strips[ROLE_M].at = at;
    strip_steps(l, c->n, p->nstep, p->strip[ROLE_N], step);
    list_boxes(l, c->n, step, &at, &p->strips[ROLE_N].n);
    p->strips[ROLE_N].at = at;
    list_boxes(l, p->outer, p->gstep, &at, &p->groups.n);
    p->groups.at = at;
}

/* False: refused. */
static bool plan_levels(Plan *p)
{
    Contraction *c = p->c;
    int64_t live = live_banks(p);
    p->levels = c->levels;
    p->symmetric = is_symmetric(p);
    if (p->levels == NULL) {
        make_levels(p, live);
    } else {
        const char *problem = levels_problem(p, live);
        problem =
            problem != NULL || has_room(p) ? problem : "has no room in SBUF for what is packed";
        if (problem != NULL) {
            return contract_refuse(c, problem);
        }
    }
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        p->strip[r] = strip_tile(p->levels, r) / schedule_innermost(p->levels, r)->tile;
    }
    /* blocks on the diagonal must be square */
    int64_t square = c->tile[ROLE_N];
    p->symmetric = p->symmetric && p->strip[ROLE_N] == 1 &&
                   p->strip[ROLE_M] * c->tile[ROLE_M] == square &&
                   c->tile[ROLE_M] == NKI_PARTITIONS;
    return true;
}

/* Strips that are open, by role. */
typedef struct Open {
    uint32_t from[2], to[2], tag[2];
} Open;

/* Blocks in the order of the levels from `at` on. */
static void order_blocks(Plan *p, uint32_t group, uint32_t at, const Open *o)
{
    const ScheduleLevel *l = &p->levels->level[at];
    if (at == outer_levels(p->levels)) {
        Block b = {group, {o->from[0], o->from[1]}, {o->tag[0], o->tag[1]}};
        if (!p->symmetric || b.strip[ROLE_M] >= b.strip[ROLE_N]) {
            vec_push(p->l->arena, &p->blocks, b);
        }
        return;
    }
    ScheduleRole r = l->role;
    int64_t strips = l->tile / strip_tile(p->levels, r);
    for (int64_t x = o->from[r]; x < o->to[r]; x += strips) {
        Open in = *o;
        in.from[r] = (uint32_t)x;
        in.to[r] = x + strips < o->to[r] ? (uint32_t)(x + strips) : o->to[r];
        in.tag[r] = l->pack ? ++p->side[r].packs : in.tag[r];
        order_blocks(p, group, at + 1, &in);
    }
}

static void plan_order(Plan *p)
{
    bool packed[2] = {false};
    for (uint32_t g = 0; g < p->groups.n; g++) {
        Open all = {.to = {p->strips[ROLE_M].n, p->strips[ROLE_N].n}};
        order_blocks(p, g, 0, &all);
    }
    for (uint32_t i = 0; i < outer_levels(p->levels); i++) {
        const ScheduleLevel *l = &p->levels->level[i];
        bool strip = l->tile == strip_tile(p->levels, l->role);
        packed[l->role] |= l->pack;
        p->side[l->role].streams |= l->pack && strip;
    }
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        Side *s = &p->side[r];
        s->streams = (s->streams && s->packs > p->groups.n) || !packed[r];
        for (uint32_t i = 0; i < p->blocks.n; i++) { /* sides may be of one buffer */
            uint32_t tag = packed[r] ? p->blocks.at[i].tag[r] : i + 1;
            bool once = packed[r] && s->packs <= p->groups.n;
            p->blocks.at[i].tag[r] = once ? 0 : 2 * tag + r;
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
    if (p->stays || (p->turns && p->fits)) {
        return turns ? 2 * SHORT_ROW : strip_tile(p->levels, side) * size;
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
    l->room.slab_bytes = slab_bytes(p, side, box);
    l->room.halves = l->room.loads_first = p->turns && (p->stays || p->fits);
    TileView v = view_of(l, s->place, p->c->pk, s->slab, box);
    l->room.slab_bytes = 0;
    l->room.halves = l->room.loads_first = false;
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

/* Asks for the slabs of an operand at one step. */
static void make_step(Plan *p, uint32_t side, int64_t step)
{
    Contraction *c = p->c;
    const Block *b = &p->blocks.at[step / p->k.n];
    const Box *group = &p->groups.at[b->group];
    Box box = p->k.at[step % p->k.n];
    box_take(&box, group, p->outer);
    Box at = box;
    bool more = true;
    for (bool a = true; more && position_next(p, group, &at, a); a = false) {
        if (p->side[side].together) {
            box_take(&at, group, p->outer);
            more = false;
        }
        if (side == STATIONARY) {
            box_take(&at, &p->strips[ROLE_M].at[b->strip[ROLE_M]], c->pm);
            (void)slab(p, side, &at, b->tag[side]);
            continue;
        }
        const Box *strip = &p->strips[ROLE_N].at[b->strip[ROLE_N]];
        for (bool t = true; strip_next(p, c->n, strip, p->nstep, &at, t); t = false) {
            (void)slab(p, side, &at, b->tag[side]);
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
                const Box *strip = side == STATIONARY ? &p->strips[ROLE_M].at[b->strip[ROLE_M]]
                                                      : &p->strips[ROLE_N].at[b->strip[ROLE_N]];
                box_take(&whole, strip, s->own);
            }
            TileView all = slab(p, side, &whole, b->tag[side]);
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
    for (uint32_t side = 0; side < 2 && number > 0; side++) {
        if (b->tag[side] != p->blocks.at[number - 1].tag[side]) {
            cache_drop(p->l, p->side[side].place->buf, b->tag[side]);
        }
    }
    bool ahead = !p->stays && !p->fits;             /* a few steps at a time */
    bool early = p->turns && (p->stays || p->fits); /* a block at a time */
    if (early) {
        make_turned(p, true, base + n_k);
        make_turned(p, false, base + n_k);
    }
    for (int64_t k = 0; k < split && !p->l->tried.failed; k++) {
        make_until(p, base + (ahead ? k + AHEAD + 1 : n_k));
        for (uint32_t i = 0; i < n && !p->l->tried.failed; i++) {
            step_bank(p, b, &p->k.at[k], k == 0, &bank[i]);
        }
        if (k == 1) {
            mirror(p);
        }
    }
    make_until(p, base + n_k);
    if (early && p->stays) {
        make_turned(p, true, base + 2 * n_k);
    }
    for (uint32_t i = 0; i < n && !p->l->tried.failed; i++) {
        for (int64_t k = split; k < n_k && !p->l->tried.failed; k++) {
            step_bank(p, b, &p->k.at[k], k == 0, &bank[i]);
        }
        if (i == 0) {
            mirror(p);
        }
        make_until(p, base + n_k + (!ahead ? 0 : i < AHEAD ? i + 1 : AHEAD));
        finish(p, b, &bank[i]);
    }
}

static bool block_fits(const Plan *p)
{
    double bytes = 0;
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        int64_t all = labels_count(p->side[r].own, &p->l->now.full);
        int64_t open = strip_tile(p->levels, r);
        for (uint32_t i = 0; i < p->levels->n_levels; i++) {
            const ScheduleLevel *l = &p->levels->level[i];
            open = l->role == r && l->pack ? l->tile : open;
        }
        bytes +=
            side_bytes(p, r, p->side[r].own) * (double)(open < all ? open : all) / (double)all;
    }
    return bytes <= (double)p->l->room.cache_limit;
}

void contract_blocks(Contraction *c)
{
    Lower *l = c->l;
    Plan p = {.c = c, .l = l};
    box_steps(c->pm, &l->now.full, c->tile[ROLE_M], p.mstep);
    box_steps(c->n, &l->now.full, c->tile[ROLE_N], p.nstep);
    p.outer = labels_as_placed(l, &c->final, labels_join(c->batch, c->om), (Labels){0});
    int64_t columns = labels_count(c->n, &l->now.full);
    int64_t most = columns < c->tile[ROLE_N] ? c->tile[ROLE_N] / columns : 1;
    box_steps(p.outer, &l->now.full, most, p.gstep);
    int64_t count =
        sat_mul(tiles_of(c->pm, &l->now.full, p.mstep), tiles_of(c->n, &l->now.full, p.nstep));
    count = sat_mul(count, labels_count(p.outer, &l->now.full));
    count = sat_mul(count, labels_count(c->ok, &l->now.full));
    count = sat_mul(count, labels_count(c->pk, &l->now.full) / c->tile[ROLE_K]);
    if (count > l->task.most) {
        l->tried.too_many = l->tried.failed = true;
        return;
    }
    p.result = labels_as_placed(l, &c->final, p.outer, c->n);
    int64_t rows = l->target->machine->systolic.live_rows * c->tile[ROLE_M];
    plan_side(&p, STATIONARY, &c->stationary, c->pm, rows);
    plan_side(&p, MOVING, &c->moving, c->n, c->tile[ROLE_N]);
    plan_k(&p);
    if (!plan_levels(&p)) {
        return;
    }
    list_strips(&p);
    plan_order(&p);
    p.side[STATIONARY].turns = view_turns(l, &c->stationary, c->pk, c->pm, &l->now.full);
    p.side[MOVING].turns = view_turns(l, &c->moving, c->pk, c->n, &l->now.full);
    p.turns = p.side[STATIONARY].turns || p.side[MOVING].turns;
    bool turns_rows = p.side[STATIONARY].turns && !p.side[MOVING].turns &&
                      labels_count(c->n, &l->now.full) >= MATMUL_LONG;
    p.fits = block_fits(&p) && !p.symmetric && (!p.turns || turns_rows);
    p.stays = !p.symmetric;
    for (uint32_t i = 0; i < p.blocks.n; i++) {
        p.stays &= p.blocks.at[i].tag[STATIONARY] == 0 && p.blocks.at[i].tag[MOVING] == 0;
    }
    if (p.stays && !p.turns) {
        make_until(&p, (int64_t)p.blocks.n * p.k.n);
    }
    for (uint32_t i = 0; i < p.blocks.n && !l->tried.failed; i++) {
        emit_block(&p, i);
    }
    mirror(&p);
}
