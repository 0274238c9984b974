/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction as loops over its tiles, to the last one, where its extents are multiples of them: the order of its levels (schedule/schedule.h),
 *
 *     for rows, columns as the levels say { a panel of either operand; banks; for k { for tiles: multiply } for tiles: store }
 *
 * A panel holds a strip of an operand over the whole sum: element (k, i) of the strip at (k / 128) * width + i of partition k % 128. What a
 * level packs is one tile outside of the loops inside of that level, whose strips are made in the first iterations of the loops over
 * the other operand (`if column == 0`); of what is not packed each strip is a tile of its own. DMA queues run ahead by themselves.
 * The last steps of the sum are taken tile by tile, so that one tile leaves PSUM while the next is finished. */
#include "backend/nki/contract.h"

#include <string.h>

#define BATCH_MOST 4 /* of an operand that is made before loops */
#define TAIL       4 /* steps of the sum taken tile by tile: longer than emptying a bank takes */

/* A tile, and the positions at which it begins. */
typedef struct Held {
    TileView view;
    Box box;
    Affine moves[2]; /* of the rows or columns, of the sum */
    Affine batch[BATCH_MOST];
    uint32_t depth; /* loops that were open */
} Held;

typedef struct Panel {
    uint32_t label;              /* rows or columns */
    int64_t tile, strip, packed; /* positions; packed: of the level that packs, or 0 */
    bool turns;
    bool again;   /* are there loops over the other operand that use a strip? */
    bool streams; /* each step is loaded when it is multiplied, into a tile of its own */
    bool
        lifted; /* all of it is made before loops around the statement, with which it does not move: */
    uint32_t depth;    /* in so many loops, */
    int64_t bytes;     /* of a partition */
    Held panel, lines; /* lines: of a strip that is to be turned, the sum along them */
} Panel;

typedef struct Panels {
    Contraction *c;
    Lower *l;
    Panel side[2]; /* ROLE_M: stationary, ROLE_N: moving */
    uint32_t k;
    uint32_t n_levels; /* outside of the sum */
} Panels;

static const Place *place_at(const Panels *p, ScheduleRole side)
{
    return side == ROLE_M ? &p->c->stationary : &p->c->moving;
}

/* ---- where it applies ---- */

/* Does a position move by single steps with the label, and is it no other's? */
static bool is_plain(const Place *x, uint32_t label)
{
    uint32_t dims = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        dims += x->label[d] == (int32_t)label;
    }
    return dims == 1;
}

static bool find_side(Panels *p, ScheduleRole r)
{
    const Schedule *b = p->c->levels;
    Lower *l = p->l;
    Panel *s = &p->side[r];
    *s = (Panel){.label = b->label[r][0], .tile = schedule_innermost(b, r)->tile};
    int64_t open = l->now.full.n[s->label];
    for (uint32_t i = 0; i < p->n_levels; i++) {
        const ScheduleLevel *level = &b->level[i];
        if (level->role != r) {
            s->again = true;
            continue;
        }
        s->strip = level->tile < open ? level->tile : open;
        s->again = false;
        if (open % s->strip != 0) {
            return false;
        }
        open = s->strip;
        s->packed = level->pack ? s->strip : s->packed;
    }
    const Place *x = place_at(p, r);
    s->turns = view_turns(l, x, labels_one(p->k), labels_one(s->label), &l->now.full);
    bool unit = place_stride(l, x, s->turns ? p->k : s->label) == 1;
    return s->strip > 0 && s->strip % s->tile == 0 && !l->home[x->buf].on_chip && unit &&
           x->n_terms == 0 && is_plain(x, s->label) && is_plain(x, p->k) &&
           (!s->turns || s->strip % NKI_PARTITIONS == 0);
}

/* Bytes of a partition that is taken. */
static int64_t bytes_of(const Panels *p)
{
    int64_t bytes = 0, steps = p->l->now.full.n[p->k] / NKI_PARTITIONS;
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        const Panel *s = &p->side[r];
        int64_t size = nki_bytes(p->l->from->bufs.at[place_at(p, r)->buf].dtype);
        int64_t wide = s->packed > 0 ? s->packed : 2 * s->strip; /* two are under way */
        bytes = sat_add(bytes, sat_mul((s->streams ? 2 * TAIL : steps) * size, wide));
        bytes = sat_add(bytes, s->turns ? sat_mul(TAIL * size, s->strip) : 0);
    }
    return bytes;
}

/* Strips that are used once need not be kept; others are loaded again where there is no room for them. */
static bool find_room(Panels *p)
{
    for (int again = 0; again < 2; again++) {
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            Panel *s = &p->side[r];
            s->streams = s->packed == 0 && !s->turns && (!s->again || again == 1);
        }
        if (bytes_of(p) <= p->l->room.cache_limit) {
            return true;
        }
    }
    return false;
}

/* All of an operand that is the same in each iteration of loops around. */
static void find_lifted(Panels *p)
{
    Lower *l = p->l;
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        Panel *s = &p->side[r];
        const Place *x = place_at(p, r);
        int64_t all = l->now.full.n[s->label];
        int64_t bytes = sat_mul(all * (l->now.full.n[p->k] / NKI_PARTITIONS),
                                nki_bytes(l->from->bufs.at[x->buf].dtype));
        for (uint32_t i = 0; i < p->c->batch.n; i++) {
            bytes = sat_mul(bytes, l->now.full.n[p->c->batch.at[i]]);
        }
        s->depth = lift_depth(l, x, bytes);
        s->bytes = bytes;
        if (p->c->batch.n <= BATCH_MOST && s->depth < l->loops.depth) {
            s->lifted = true;
            s->packed = all;
            s->streams = false;
        }
    }
}

static bool is_regular(Panels *p)
{
    Contraction *c = p->c;
    Lower *l = p->l;
    const Schedule *b = c->levels;
    if (!l->loops.cut || b == NULL || c->pm.n != 1 || c->n.n != 1 || c->pk.n != 1 ||
        c->om.n + c->ok.n > 0 || l->now.part >= 0 || l->now.turned >= 0 || l->now.flat > 0 ||
        l->loops.concrete[l->from->vars.n] || c->stationary.buf == c->moving.buf ||
        psum_has(l, c->final.buf)) {
        return false;
    }
    p->k = c->pk.at[0];
    while (p->n_levels < b->n_levels && b->level[p->n_levels].role != ROLE_K) {
        p->n_levels++;
    }
    for (uint32_t i = p->n_levels + 1; i < b->n_levels; i++) {
        if (b->level[i].role == ROLE_K) {
            return false;
        }
    }
    if (!find_side(p, ROLE_M) || !find_side(p, ROLE_N)) {
        return false;
    }
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    int64_t banks = m->strip / m->tile * (n->strip / n->tile), bank = NKI_PSUM_BANK / 4;
    return l->now.full.n[p->k] % NKI_PARTITIONS == 0 && c->tile[ROLE_K] == NKI_PARTITIONS &&
           banks <= NKI_PSUM_BANKS &&
           (banks == 1 || (n->tile == bank && m->tile == NKI_PARTITIONS)) && find_room(p);
}

/* ---- loops ---- */

typedef struct Loop {
    uint32_t label;
    Box full;
    Affine moves;
    int64_t step;
    bool open; /* or there is one iteration */
} Loop;

/* Over the label as it is now, by equal steps. */
static Loop loop_begin(Panels *p, uint32_t label, int64_t step)
{
    Lower *l = p->l;
    CHECK(step >= l->now.full.n[label] || l->now.full.n[label] % step == 0);
    Loop loop = {label, l->now.full, l->now.moves[label], step, false};
    loop.open = stay_open_label(l, label, step, p->c->reader);
    l->now.full.n[label] = step < loop.full.n[label] ? step : loop.full.n[label];
    return loop;
}

static void loop_end(Panels *p, const Loop *loop)
{
    if (loop->open) {
        stay_close_label(p->l, loop->label, loop->step, &loop->full, loop->moves);
    }
    p->l->now.full = loop->full;
}

/* ---- tiles ---- */

static Held held_of(Panels *p, const Panel *s, TileView view)
{
    const Lower *l = p->l;
    Held h = {
        view, l->now.full, {l->now.moves[s->label], l->now.moves[p->k]}, {{0}}, l->loops.depth};
    for (uint32_t i = 0; i < p->c->batch.n && i < BATCH_MOST; i++) {
        h.batch[i] = l->now.moves[p->c->batch.at[i]];
    }
    return h;
}

/* How far a label is from where the tile begins: all that moves is a multiple of `unit`, `by` times that. */
static Affine apart(Panels *p, const Held *h, uint32_t label, Affine from, int64_t unit,
                    int64_t by)
{
    Lower *l = p->l;
    Affine moves = affine_add(l->arena, l->now.moves[label], -1, from);
    Affine out = affine_const((l->now.full.s[label] - h->box.s[label]) / unit * by);
    for (uint32_t i = 0; i < moves.n; i++) {
        out = affine_add(l->arena, out, moves.term[i].coef / unit * by,
                         affine_var(l->arena, moves.term[i].var));
    }
    return out;
}

/* The same of rows or columns, or of the sum. */
static Affine distance(Panels *p, const Panel *s, const Held *h, bool sum, int64_t unit,
                       int64_t by)
{
    return apart(p, h, sum ? p->k : s->label, h->moves[sum], unit, by);
}

/* Batches that all are in a panel which is lifted. */
static Affine batch_distance(Panels *p, const Panel *s, int64_t elements)
{
    Affine out = affine_const(0);
    for (uint32_t i = p->c->batch.n; i-- > 0 && s->lifted;) {
        uint32_t label = p->c->batch.at[i];
        Affine by = apart(p, &s->panel, label, s->panel.batch[i], 1, elements);
        out = affine_add(p->l->arena, out, 1, by);
        elements *= s->panel.box.n[label];
    }
    return out;
}

static TileView view_at(Lower *l, TileView v, Affine at, int64_t np, int64_t nf)
{
    v.f0 += at.base;
    at.base = 0;
    v.np = np;
    v.nf = nf;
    v.moves = at.n == 0 ? NULL : arena_copy(l->arena, &at, sizeof at);
    return v;
}

static int64_t panel_width(const Panel *s)
{
    return s->packed > 0 ? s->packed : s->strip;
}

/* What is open of a panel, at one step of the sum. */
static TileView panel_part(Panels *p, const Panel *s)
{
    Lower *l = p->l;
    Affine at = distance(p, s, &s->panel, true, NKI_PARTITIONS, panel_width(s));
    at = affine_add(l->arena, at, 1, distance(p, s, &s->panel, false, 1, 1));
    int64_t elements = s->panel.box.n[p->k] / NKI_PARTITIONS * panel_width(s);
    at = affine_add(l->arena, at, 1, batch_distance(p, s, elements));
    return view_at(l, s->panel.view, at, NKI_PARTITIONS, l->now.full.n[s->label]);
}

/* 128 rows of the lines, so many elements of them. */
static TileView lines_part(Panels *p, const Panel *s, int64_t nf)
{
    Lower *l = p->l;
    Affine at = distance(p, s, &s->lines, false, NKI_PARTITIONS, s->lines.box.n[p->k]);
    at = affine_add(l->arena, at, 1, distance(p, s, &s->lines, true, 1, 1));
    return view_at(l, s->lines.view, at, NKI_PARTITIONS, nf);
}

static void make_panel(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    const Buffer *b = &l->from->bufs.at[place_at(p, r)->buf];
    int64_t n = l->now.full.n[p->k] / NKI_PARTITIONS * panel_width(s);
    for (uint32_t i = 0; i < p->c->batch.n && s->lifted; i++) {
        n *= l->now.full.n[p->c->batch.at[i]];
    }
    s->panel =
        held_of(p, s, tile_new(l, b->name->text, b->dtype, SPACE_TILE, NKI_PARTITIONS, n));
}

/* ---- strips ---- */

/* Positions of the sum that are loaded and turned at a time. */
static int64_t piece_of(const Panels *p)
{
    int64_t all = p->l->now.full.n[p->k];
    return all % (TAIL * NKI_PARTITIONS) == 0 ? TAIL * NKI_PARTITIONS : all;
}

/* What is made in the first iterations of the loops over the other operand that began after the panel goes in a block of its own. */
typedef struct Once {
    uint32_t n;
    Guard *guard;
    int64_t times;
    VEC(Stmt *) out;
} Once;

static void once_open(Panels *p, Once *o)
{
    if (o->n > 0) {
        memcpy(&o->out, &p->l->out, sizeof p->l->out);
        memset(&p->l->out, 0, sizeof p->l->out);
    }
}

static Once once_begin(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Once o = {.times = l->loops.times};
    o.guard = ARENA_ARRAY(l->arena, LOOP_DEPTH_LIMIT, Guard);
    for (uint32_t d = p->side[r].panel.depth; d < l->loops.depth; d++) {
        const OpenLoop *loop = &l->loops.open[d];
        if (affine_uses(l->now.moves[p->side[1 - r].label], loop->var)) {
            o.guard[o.n++] = (Guard){loop->var, 0, 1};
            l->loops.times /= loop->trips;
        }
    }
    once_open(p, &o);
    return o;
}

static void once_end(Panels *p, const Once *o)
{
    Lower *l = p->l;
    if (o->n == 0) {
        return;
    }
    Stmt *block = ARENA_NEW(l->arena, Stmt);
    *block = (Stmt){.kind = STMT_BLOCK, .span = l->now.stmt->span};
    block->n_guards = o->n;
    block->guard = o->guard;
    block->body = l->out.at;
    block->n_body = l->out.n;
    memcpy(&l->out, &o->out, sizeof l->out);
    vec_push(l->arena, &l->out, block);
    l->loops.times = o->times;
}

static void make_lines(Panels *p, ScheduleRole r)
{
    Panel *s = &p->side[r];
    const Buffer *b = &p->l->from->bufs.at[place_at(p, r)->buf];
    int64_t n = s->strip / NKI_PARTITIONS * p->l->now.full.n[p->k];
    s->lines =
        held_of(p, s, tile_new(p->l, b->name->text, b->dtype, SPACE_TILE, NKI_PARTITIONS, n));
}

/* Rows of what is to be turned, as they lie. */
static void load_rows(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    Loop rows = loop_begin(p, s->label, NKI_PARTITIONS);
    contract_places(p->c);
    make_dma(l, place_at(p, r), labels_one(s->label), labels_one(p->k), &l->now.full,
             lines_part(p, s, l->now.full.n[p->k]), false);
    loop_end(p, &rows);
}

/* One step of the sum: transposes side by side in a bank, which leave it together. */
static void turn_step(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    DType t = l->from->bufs.at[place_at(p, r)->buf].dtype;
    int64_t bank = NKI_PSUM_BANK / nki_bytes(t), parts = (s->strip + bank - 1) / bank;
    while (s->strip % (parts * NKI_PARTITIONS) != 0) {
        parts++; /* equal ones */
    }
    Loop banks = loop_begin(p, s->label, s->strip / parts);
    int64_t wide = l->now.full.n[s->label];
    Held psum = held_of(p, s, tile_new(l, "psum", t, SPACE_ACC, NKI_PARTITIONS, wide));
    Loop rows = loop_begin(p, s->label, NKI_PARTITIONS);
    Affine at = distance(p, s, &psum, false, 1, 1);
    make_transpose(l, view_at(l, psum.view, at, NKI_PARTITIONS, NKI_PARTITIONS),
                   lines_part(p, s, NKI_PARTITIONS));
    loop_end(p, &rows);
    make_copy(l, panel_part(p, s), psum.view);
    loop_end(p, &banks);
}

/* The steps of the sum that are open. */
static void turn_steps(Panels *p, ScheduleRole r)
{
    make_lines(p, r);
    load_rows(p, r);
    Loop steps = loop_begin(p, p->k, NKI_PARTITIONS);
    turn_step(p, r);
    loop_end(p, &steps);
    contract_places(p->c);
}

static void load_step(Panels *p, ScheduleRole r)
{
    Panel *s = &p->side[r];
    make_dma(p->l, place_at(p, r), labels_one(p->k), labels_one(s->label), &p->l->now.full,
             panel_part(p, s), false);
}

typedef enum Fill { FILL_BEFORE, FILL_KEPT, FILL_TURNED, FILL_STREAMING } Fill;

static Fill fill_of(const Panel *s)
{
    return s->lifted    ? FILL_BEFORE
           : s->streams ? FILL_STREAMING
           : s->turns   ? FILL_TURNED
                        : FILL_KEPT;
}

/* All steps that are open, of the operands that are filled so. */
static void fill_steps(Panels *p, Fill fill)
{
    if (fill_of(&p->side[ROLE_M]) != fill && fill_of(&p->side[ROLE_N]) != fill) {
        return;
    }
    Loop steps = loop_begin(p, p->k, NKI_PARTITIONS);
    contract_places(p->c);
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        if (fill_of(&p->side[r]) == fill) {
            Once once = once_begin(p, r);
            load_step(p, r);
            once_end(p, &once);
        }
    }
    loop_end(p, &steps);
    contract_places(p->c);
}

/* Panels of the steps that are open, for operands that stream. */
static void make_streams(Panels *p)
{
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        if (p->side[r].streams) {
            make_panel(p, r);
        }
    }
    fill_steps(p, FILL_STREAMING);
}

/* An operand before the loops around, strip by strip. */
static void fill_before(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    uint32_t before = l->loops.depth, n_batch = p->c->batch.n;
    Lift lift = lift_begin(l, s->depth, s->bytes);
    uint32_t depth = l->loops.depth, n = before - depth;
    OpenLoop *around = arena_copy(l->arena, &l->loops.open[depth], n * sizeof *around);
    make_panel(p, r);
    Loop batch[BATCH_MOST];
    for (uint32_t i = 0; i < n_batch; i++) {
        batch[i] = loop_begin(p, p->c->batch.at[i], 1);
    }
    Loop strips = loop_begin(p, s->label, s->strip);
    Loop steps = loop_begin(p, p->k, s->turns ? piece_of(p) : NKI_PARTITIONS);
    contract_places(p->c);
    (s->turns ? turn_steps : load_step)(p, r);
    loop_end(p, &steps);
    loop_end(p, &strips);
    for (uint32_t i = n_batch; i-- > 0;) {
        loop_end(p, &batch[i]);
    }
    memcpy(&l->loops.open[depth], around, n * sizeof *around);
    lift_end(l, &lift);
    contract_places(p->c);
}

/* ---- a block: a strip of rows times a strip of columns ---- */

typedef struct Banks {
    TileView acc;
    Held at[2]; /* where the block begins */
} Banks;

/* The bank of the tile of rows and columns that is open. */
static TileView bank_of(Panels *p, const Banks *b)
{
    Lower *l = p->l;
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    Affine at = distance(p, n, &b->at[ROLE_N], false, 1, 1);
    at = affine_add(l->arena, at, 1, distance(p, m, &b->at[ROLE_M], false, m->tile, n->strip));
    return view_at(l, b->acc, at, l->now.full.n[m->label], l->now.full.n[n->label]);
}

/* The matmul of the tiles that are open, at a step of the sum. */
static void multiply(Panels *p, const Banks *b)
{
    make_matmul(p->l, bank_of(p, b), panel_part(p, &p->side[ROLE_M]),
                panel_part(p, &p->side[ROLE_N]), false);
}

typedef struct Tiles {
    Loop loop[2];
} Tiles;

static Tiles tiles_begin(Panels *p)
{
    Tiles t;
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        t.loop[r] = loop_begin(p, p->side[r].label, p->side[r].tile);
    }
    return t;
}

static void tiles_end(Panels *p, const Tiles *t)
{
    loop_end(p, &t->loop[ROLE_N]);
    loop_end(p, &t->loop[ROLE_M]);
}

/* The steps of the sum that are open, all tiles at each. */
static void multiply_steps(Panels *p, const Banks *b)
{
    if (p->l->now.full.n[p->k] < 1) {
        return;
    }
    Loop steps = loop_begin(p, p->k, NKI_PARTITIONS);
    make_streams(p);
    Tiles tiles = tiles_begin(p);
    multiply(p, b);
    tiles_end(p, &tiles);
    loop_end(p, &steps);
}

/* All steps but the last ones, where operands are turned: these are, a piece before it is multiplied. */
static void turn_and_multiply(Panels *p, const Banks *b)
{
    Lower *l = p->l;
    int64_t piece = piece_of(p);
    Loop pieces = loop_begin(p, p->k, piece);
    fill_steps(p, FILL_KEPT);
    contract_places(p->c);
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        if (fill_of(&p->side[r]) == FILL_TURNED) {
            Once once = once_begin(p, r);
            turn_steps(p, r);
            once_end(p, &once);
        }
    }
    if (pieces.open) {
        const OpenLoop *loop = &l->loops.open[l->loops.depth - 1];
        Guard guard = {loop->var, 1, loop->trips};
        Once late = {1, arena_copy(l->arena, &guard, sizeof guard), l->loops.times, {0}};
        once_open(p, &late);
        l->now.full.s[p->k] -= piece;
        multiply_steps(p, b);
        once_end(p, &late);
    }
    loop_end(p, &pieces);
}

static void emit_block(Panels *p)
{
    Lower *l = p->l;
    Contraction *c = p->c;
    Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    int64_t banks = m->strip / m->tile * (n->strip / n->tile), n_k = l->now.full.n[p->k];
    bool turns = fill_of(m) == FILL_TURNED || fill_of(n) == FILL_TURNED;
    Banks b = {.acc = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, m->tile, banks * n->tile)};
    make_open(l, b.acc);
    b.at[ROLE_M] = held_of(p, m, b.acc);
    b.at[ROLE_N] = held_of(p, n, b.acc);
    Box full = l->now.full;
    int64_t tail = turns                         ? piece_of(p)
                   : TAIL * NKI_PARTITIONS < n_k ? TAIL * NKI_PARTITIONS
                                                 : n_k;
    tail = !turns && banks == 1 ? 0 : tail;
    if (turns) {
        turn_and_multiply(p, &b);
    } else {
        fill_steps(p, FILL_KEPT);
        l->now.full.n[p->k] = n_k - tail;
        multiply_steps(p, &b);
    }
    l->now.full = full;
    l->now.full.s[p->k] += n_k - tail;
    l->now.full.n[p->k] = tail;
    if (tail > 0) {
        make_streams(p);
    }
    Tiles tiles = tiles_begin(p);
    if (tail > 0) {
        Loop steps = loop_begin(p, p->k, NKI_PARTITIONS);
        multiply(p, &b);
        loop_end(p, &steps);
    }
    contract_refresh(c);
    Box box = l->now.full;
    contract_finish(c, labels_one(n->label), &box, bank_of(p, &b));
    tiles_end(p, &tiles);
    l->now.full = full;
    contract_refresh(c);
}

/* ---- levels ---- */

static void emit_level(Panels *p, uint32_t at)
{
    const Schedule *b = p->c->levels;
    if (at == p->n_levels || p->l->tried.failed) {
        emit_block(p);
        return;
    }
    const ScheduleLevel *level = &b->level[at];
    Panel *s = &p->side[level->role];
    Loop loop = loop_begin(p, s->label, level->tile);
    bool strip = true;
    for (uint32_t i = at + 1; i < p->n_levels; i++) {
        strip &= b->level[i].role != level->role;
    }
    if (!s->lifted && (level->pack || (strip && s->packed == 0 && !s->streams))) {
        make_panel(p, level->role);
    }
    emit_level(p, at + 1);
    loop_end(p, &loop);
    contract_refresh(p->c);
}

/* Batches one after the other. */
static void emit_batch(Panels *p, uint32_t at)
{
    if (at == p->c->batch.n) {
        emit_level(p, 0);
        return;
    }
    Loop loop = loop_begin(p, p->c->batch.at[at], 1);
    contract_refresh(p->c);
    emit_batch(p, at + 1);
    loop_end(p, &loop);
    contract_refresh(p->c);
}

bool contract_panels(Contraction *c)
{
    Panels p = {.c = c, .l = c->l};
    if (!is_regular(&p)) {
        return false;
    }
    find_lifted(&p);
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        if (p.side[r].lifted) {
            fill_before(&p, r);
        }
    }
    emit_batch(&p, 0);
    return true;
}
