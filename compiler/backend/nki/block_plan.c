/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a contraction's blocks: its levels as the statement has them, or made here; strips of row and of column tiles; the
 * order of blocks; what of either operand stays in SBUF, and what passes by. */
#include "backend/nki/blocks.h"
#include "backend/nki/view.h"

#define SLAB_MOST   32768 /* bytes of a partition, of one slab for several batches */
#define MATMUL_LONG 512 /* columns for which matmuls take longer than to copy what was turned */

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
           (double)dtype_bytes(p->l->from->bufs.at[x->buf].dtype);
}

/* `most`: its positions in one slab. */
static void plan_side(Plan *p, uint32_t side, const Place *x, Labels own, int64_t most)
{
    Lower *l = p->l;
    Side *s = &p->side[side];
    Labels here = {0};
    int64_t count = 1, size = dtype_bytes(l->from->bufs.at[x->buf].dtype);
    bool shortened = false; /* a piece of the contiguous label would make short rows */
    for (uint32_t i = 0; i < p->outer.n; i++) {
        uint32_t label = p->outer.at[i];
        if (place_has(x, label)) {
            here.at[here.n++] = (uint8_t)label;
            count *= p->gstep[i];
            shortened |= p->gstep[i] < l->now.full.n[label] &&
                         p->gstep[i] * size < NKI_SHORT_RUN &&
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

/* K steps: labels taken one by one, then pieces of the partitions. */
void plan_k(Plan *p)
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

/* The levels of a statement that has none, as nest/schedules.c would make them. */
static void make_levels(Plan *p, int64_t live)
{
    Contraction *c = p->c;
    const Box *full = &p->l->now.full;
    Strips x = schedule_strips_on(p->l->target->machine, live);
    x.room = (double)p->l->room.cache_limit;
    x.mirrored = p->symmetric;
    x.tiles[ROLE_M] = box_count(c->pm, full, p->mstep);
    x.tiles[ROLE_N] = box_count(c->n, full, p->nstep);
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

int64_t strip_tile(const Schedule *b, ScheduleRole role)
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

/* Is there room for what is packed at a time? `block`: for what was to be on chip, and is not. */
static bool has_room(const Plan *p, bool block, int64_t room)
{
    double bytes = 0;
    for (uint32_t i = 0; i < p->levels->n_levels; i++) {
        const ScheduleLevel *l = &p->levels->level[i];
        const Place *x = l->pack ? p->side[l->role].place : NULL;
        const Buffer *b = x == NULL ? NULL : &p->l->from->bufs.at[x->buf];
        if (b == NULL || on_chip(p->l, x) || (b->space == SPACE_TILE) != block) {
            continue;
        }
        int64_t all = labels_count(p->side[l->role].own, &p->l->now.full);
        bytes += (double)p->k.n * (double)(l->tile < all ? l->tile : all) *
                 (double)dtype_bytes(b->dtype);
    }
    return bytes <= (double)room;
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
    p->symmetric = p->outer.n == 0 && contract_is_mirrored(c);
    bool given = p->levels != NULL && p->levels->given;
    bool away = p->levels != NULL && !has_room(p, true, p->l->chip->sbuf_bytes);
    int64_t room = given ? p->l->chip->sbuf_bytes : p->l->room.cache_limit;
    const char *problem = p->levels == NULL ? NULL : levels_problem(p, live);
    if (problem == NULL && p->levels != NULL && !has_room(p, false, room)) {
        problem = "has no room in SBUF for what is packed";
    }
    if (p->levels == NULL || away || (problem != NULL && !given)) {
        make_levels(p, live); /* the nest made its levels for another layout */
    } else if (problem != NULL) {
        return contract_refuse(c, problem);
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
        s->passes = !packed[r] && packed[1 - r];
        for (uint32_t i = 0; i < p->blocks.n; i++) { /* sides may be of one buffer */
            uint32_t tag = packed[r] ? p->blocks.at[i].tag[r] : i + 1;
            bool once = packed[r] && s->packs <= p->groups.n;
            p->blocks.at[i].tag[r] = once ? 0 : 2 * tag + r;
        }
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

bool plan_blocks(Plan *p, Contraction *c)
{
    Lower *l = c->l;
    *p = (Plan){.c = c, .l = l, .sum_loop = UINT32_MAX};
    box_steps(c->pm, &l->now.full, c->tile[ROLE_M], p->mstep);
    box_steps(c->n, &l->now.full, c->tile[ROLE_N], p->nstep);
    p->outer = contract_outer(c, p->gstep);
    int64_t count = sat_mul(box_count(c->pm, &l->now.full, p->mstep),
                            box_count(c->n, &l->now.full, p->nstep));
    count = sat_mul(count, labels_count(p->outer, &l->now.full));
    count = sat_mul(count, labels_count(c->ok, &l->now.full));
    count = sat_mul(count, labels_count(c->pk, &l->now.full) / c->tile[ROLE_K]);
    if (count > l->task.most) {
        l->tried.too_many = l->tried.failed = true;
        return false;
    }
    p->result = labels_as_placed(l, &c->final, p->outer, c->n);
    int64_t rows = l->target->machine->systolic.live_rows * c->tile[ROLE_M];
    plan_side(p, STATIONARY, &c->stationary, c->pm, rows);
    plan_side(p, MOVING, &c->moving, c->n, c->tile[ROLE_N]);
    plan_k(p);
    if (!plan_levels(p)) {
        return false;
    }
    list_strips(p);
    plan_order(p);
    p->side[STATIONARY].turns = view_turns(l, &c->stationary, c->pk, c->pm, &l->now.full);
    p->side[MOVING].turns = view_turns(l, &c->moving, c->pk, c->n, &l->now.full);
    p->turns = p->side[STATIONARY].turns || p->side[MOVING].turns;
    if (l->loops.depth > 0 && p->blocks.n == 1 && p->side[MOVING].turns && block_fits(p)) {
        for (ScheduleRole r = 0; r < ROLE_K; r++) { /* a loop's body, alike each time */
            p->blocks.at[0].tag[r] = 0;
            p->side[r].passes = p->side[r].streams = false;
        }
    }
    bool turns_rows = p->side[STATIONARY].turns && !p->side[MOVING].turns &&
                      labels_count(c->n, &l->now.full) >= MATMUL_LONG;
    p->fits = block_fits(p) && !p->symmetric && (!p->turns || turns_rows);
    p->stays = !p->symmetric;
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        p->passes |= p->side[r].passes && !p->side[r].turns;
    }
    for (uint32_t i = 0; i < p->blocks.n; i++) {
        p->stays &= p->blocks.at[i].tag[STATIONARY] == 0 && p->blocks.at[i].tag[MOVING] == 0;
    }
    return true;
}
