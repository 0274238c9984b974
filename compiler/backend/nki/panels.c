/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction as loops over its tiles, and what its extents have beside whole tiles: the order of its levels (schedule/schedule.h),
 *
 *     for rows, columns as the levels say { a panel of either operand; banks; for k { for tiles: multiply } for tiles: store }
 *
 * A panel holds a strip of an operand over the whole sum: element (k, i) of the strip at (k / step) * width + i of partition k % step, step <= 128. What a
 * level packs is one tile outside of the loops inside of that level, whose strips are made in the first iterations of the loops over
 * the other operand (`if column == 0`); of what is not packed each strip is a tile of its own. DMA queues run ahead by themselves.
 * The last steps of the sum are taken tile by tile, so that one tile leaves PSUM while the next is finished. */
#include "backend/nki/home.h"
#include "backend/nki/make.h"
#include "backend/nki/panels.h"
#include "backend/nki/view_parts.h"

#define MIRROR_LEAST                                                                           \
    3 /* blocks of a mirrored result: those on the diagonal are computed whole */
#define MIRROR_LOOPS 8  /* of a mirrored result, in each other */
#define INNER_LOOPS  4  /* of a block */
#define VIEW_RUN     64 /* bytes of a row of memory, at least */
#define FEW          16 /* matmuls, that are no worth loops */

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

/* Of labels that share a tile the one that is cut, how many of its positions a tile has, and how many those have that are whole. */
static uint32_t find_cut(const Lower *l, Labels x, int64_t most, int64_t *tile, int64_t *inner)
{
    int64_t step[LABELS];
    uint32_t cut = 0;
    box_steps(x, &l->now.full, most, step);
    for (uint32_t i = 0; i < x.n; i++) {
        cut = step[i] < l->now.full.n[x.at[i]] ? i : cut;
    }
    int64_t n = l->now.full.n[x.at[cut]], tiles = (n + step[cut] - 1) / step[cut];
    *tile = x.n > 1 && n % tiles == 0 ? n / tiles : step[cut]; /* equal ones */
    *inner = 1;
    for (uint32_t i = cut + 1; i < x.n; i++) {
        *inner *= l->now.full.n[x.at[i]];
    }
    return cut;
}

/* The labels before that one, which has several positions each. */
static void take_before(const Lower *l, Labels x, uint32_t cut, Labels *out)
{
    for (uint32_t i = 0; i < cut; i++) {
        if (l->now.full.n[x.at[i]] > 1) {
            out->at[out->n++] = x.at[i];
        }
    }
}

/* Positions of the label that is cut in one iteration of a level. */
static int64_t level_step(const Panels *p, ScheduleRole r, const ScheduleLevel *level)
{
    const Panel *s = &p->side[r];
    return sat_mul(level->tile / schedule_innermost(p->c->levels, r)->tile, s->tile);
}

/* Elements of the box that follow each other in memory, along these labels. */
static int64_t run_of(const Lower *l, const Place *x, Labels along, const Box *box)
{
    int64_t run = 1;
    for (uint32_t i = 0; i < along.n; i++) {
        uint32_t label = along.at[i];
        if (box->n[label] > 1 && place_stride(l, x, label) == run) {
            run *= box->n[label];
            if (box->n[label] < l->now.full.n[label]) {
                break;
            }
            i = UINT32_MAX; /* from the first one again */
        }
    }
    return run;
}

/* May the operand be read as views, step by step, in rows as long as those of all of it, or long enough? */
static bool may_view(const Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    const Panel *s = &p->side[r];
    const Place *x = panels_place(p, r);
    int64_t size = dtype_bytes(l->from->bufs.at[x->buf].dtype);
    if (l->home[x->buf].on_chip) {
        return !psum_has(l, x->buf);
    }
    Box box = l->now.full;
    const Labels one[3] = {p->c->batch, s->outer, p->sums};
    box.n[s->label] = s->strip;
    box.n[p->k] = p->step < box.n[p->k] ? p->step : box.n[p->k];
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < one[i].n; j++) {
            box.n[one[i].at[j]] = 1;
        }
    }
    Slab slab;
    bool windows = panels_place(p, ROLE_N)->n_terms > 0;
    if (windows && s->turns && view_slab(l, x, s->own, p->c->pk, &box, &slab) &&
        slab.run * size >= VIEW_RUN) {
        return true;
    }
    if (windows && r == ROLE_N && view_slab(l, x, p->c->pk, s->own, &box, &slab) &&
        slab_dims(s->own, &box, slab.step) <= WALKED_DIMS) {
        return true;
    }
    Labels along = s->turns ? p->c->k : r == ROLE_M ? p->c->m : p->c->n;
    int64_t run = run_of(l, x, along, &box), all = run_of(l, x, along, &l->now.full);
    return x->n_terms == 0 && !l->pair[x->buf] && !l->turn[x->buf].is &&
           (run * size >= NKI_SHORT_RUN || (run == all && run * size >= VIEW_RUN));
}

/* Is there room for all of the operand, or is it on chip? */
static bool fits_all(const Panels *p, ScheduleRole r)
{
    const Lower *l = p->l;
    BufRef buf = panels_place(p, r)->buf;
    int64_t all = sat_mul(labels_count(r == ROLE_M ? p->c->m : p->c->n, &l->now.full),
                          labels_count(p->c->k, &l->now.full));
    return l->home[buf].on_chip ||
           sat_mul(all, dtype_bytes(l->from->bufs.at[buf].dtype)) / NKI_PARTITIONS <=
               l->room.cache_limit;
}

static bool find_side(Panels *p, ScheduleRole r)
{
    Contraction *c = p->c;
    const Schedule *b = c->levels;
    Lower *l = p->l;
    Panel *s = &p->side[r];
    *s = (Panel){.own = r == ROLE_M ? c->pm : c->n};
    uint32_t cut = find_cut(l, s->own, c->tile[r], &s->tile, &s->inner);
    s->label = s->own.at[cut];
    if (r == ROLE_M) {
        take_before(l, c->om, c->om.n, &s->outer);
    }
    take_before(l, s->own, cut, &s->outer);
    int64_t open = l->now.full.n[s->label];
    bool several = false; /* is more packed than one position of those around has? */
    for (uint32_t i = 0; i < p->n_levels; i++) {
        const ScheduleLevel *level = &b->level[i];
        if (level->role != r) {
            s->again = true;
            continue;
        }
        int64_t step = level_step(p, r, level);
        s->strip = step < open ? step : open;
        s->again = false;
        open = s->strip;
        s->packed = level->pack ? s->strip : s->packed;
        several |= level->pack && level->tile > l->now.full.n[s->label] * s->inner;
    }
    const Place *x = panels_place(p, r);
    s->turns = view_turns(l, x, c->pk, s->own, &l->now.full);
    bool unit = place_stride(l, x, s->turns ? p->k : s->label) == 1;
    s->view = l->home[x->buf].on_chip || !unit || x->n_terms > 0 || !is_plain(x, s->label) ||
              !is_plain(x, p->k) || s->outer.n > 0 || s->inner > 1 || p->sums.n > 0 ||
              c->pk.n > 1;
    s->keeps = s->view && several && s->outer.n > 0;
    return s->strip > 0 && (!s->view || may_view(p, r));
}

/* Bytes of a partition that is taken. */
static int64_t bytes_of(const Panels *p)
{
    int64_t bytes = 0, steps = panels_steps(p);
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        const Panel *s = &p->side[r];
        int64_t size = dtype_bytes(p->l->from->bufs.at[panels_place(p, r)->buf].dtype);
        if (s->view) {
            continue; /* view.c looks for room */
        }
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
            s->streams = !s->view && s->packed == 0 && !s->turns && (!s->again || again == 1);
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
        const Place *x = panels_place(p, r);
        int64_t all = l->now.full.n[s->label];
        if (s->view) {
            continue;
        }
        int64_t bytes =
            sat_mul(all * panels_steps(p), dtype_bytes(l->from->bufs.at[x->buf].dtype));
        for (uint32_t i = 0; i < p->c->batch.n; i++) {
            bytes = sat_mul(bytes, l->now.full.n[p->c->batch.at[i]]);
        }
        s->depth = hoist_depth(l, x, bytes);
        s->bytes = bytes;
        if (p->c->batch.n <= BATCH_MOST && s->depth < l->loops.depth) {
            s->lifted = true;
            s->packed = all;
            s->streams = false;
        }
    }
}

/* A result that is its own transpose, in square blocks, more than one: both sides have one panel, or a strip each. */
static bool find_mirror(Panels *p)
{
    const Lower *l = p->l;
    Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    int64_t all = l->now.full.n[m->label], steps = panels_steps(p);
    int64_t block = n->tile;
    int64_t row =
        sat_mul(steps, dtype_bytes(l->from->bufs.at[panels_place(p, ROLE_M)->buf].dtype));
    p->shared = sat_mul(all, row) <= l->room.cache_limit;
    p->mirrored = !m->view && !n->view && contract_is_mirrored(p->c) &&
                  n->tile == NKI_PSUM_BANK / 4 && m->tile == NKI_PARTITIONS &&
                  all >= MIRROR_LEAST * block && all % block == 0 &&
                  l->loops.depth + p->c->batch.n + MIRROR_LOOPS <= LOOP_DEPTH_LIMIT &&
                  (p->shared || sat_mul(2 * block, row) <= l->room.cache_limit);
    if (p->mirrored) {
        m->strip = n->strip = block;
        m->streams = n->streams = false;
        m->lifted = n->lifted = true; /* no block fills them */
        m->packed = n->packed = p->shared ? all : block;
    }
    return p->mirrored;
}

static int64_t tiles_of(int64_t n, int64_t tile)
{
    return (n + tile - 1) / tile;
}

static bool is_one_tile(const Panels *p)
{
    const Box *full = &p->l->now.full;
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    return m->outer.n + n->outer.n + p->sums.n == 0 && full->n[m->label] <= m->tile &&
           full->n[n->label] <= n->tile && full->n[p->k] <= p->step;
}

/* Would tiles of several batches fill a bank together, of which each has few matmuls? */
static bool shares_banks(const Contraction *c)
{
    int64_t each[LABELS];
    Labels outer = contract_outer(c, each);
    bool shares = false;
    for (uint32_t i = 0; i < outer.n; i++) {
        shares |= each[i] > 1;
    }
    return shares && contract_matmuls(c) / labels_count(outer, &c->l->now.full) <= FEW;
}

static bool is_regular(Panels *p)
{
    Contraction *c = p->c;
    Lower *l = p->l;
    const Schedule *b = c->levels;
    if (b == NULL || c->pm.n == 0 || c->n.n == 0 || c->pk.n == 0 || l->now.part >= 0 ||
        l->now.turned >= 0 || l->now.flat > 0 || l->loops.concrete[l->from->vars.n] ||
        psum_has(l, c->final.buf)) {
        return false;
    }
    int64_t inner = 1;
    uint32_t cut = find_cut(l, c->pk, c->tile[ROLE_K], &p->step, &inner);
    p->k = c->pk.at[cut];
    take_before(l, c->ok, c->ok.n, &p->sums);
    take_before(l, c->pk, cut, &p->sums);
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
    bool views = p->side[ROLE_M].view || p->side[ROLE_N].view;
    if (views && contract_matmuls(c) <= FEW) {
        return false;
    }
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        const Panel *s = &p->side[r], *other = &p->side[1 - r];
        bool again = other->outer.n > 0 || other->strip < l->now.full.n[other->label];
        if (s->keeps && again && !fits_all(p, r)) {
            return false; /* it would be loaded again more often than the levels say */
        }
    }
    uint32_t loops = c->batch.n + p->side[ROLE_M].outer.n + p->side[ROLE_N].outer.n +
                     p->n_levels + p->sums.n + INNER_LOOPS;
    if (l->loops.depth + loops > LOOP_DEPTH_LIMIT) {
        return false;
    }
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    int64_t banks = tiles_of(m->strip, m->tile) * tiles_of(n->strip, n->tile);
    if (shares_banks(c) || is_one_tile(p)) {
        return false; /* blocks.c takes several at a time, or what is there of them already */
    }
    return !contract_is_small_mirror(c) &&
           (find_mirror(p) || (banks <= NKI_PSUM_BANKS && find_room(p)));
}

/* ---- a block: a strip of rows times a strip of columns ---- */

/* The tile of rows and columns that is open, in `all` of the block. */
static TileView panels_tile(Panels *p, const Banks *b, TileView all)
{
    Lower *l = p->l;
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    Affine at = panels_distance(p, n, &b->at[ROLE_N], false, n->tile, b->tile);
    at = affine_add(l->arena, at, 1,
                    panels_distance(p, m, &b->at[ROLE_M], false, m->tile, b->row));
    return panels_view(l, all, at, labels_count(m->own, &l->now.full),
                       labels_count(n->own, &l->now.full));
}

/* Its bank. */
static TileView bank_of(Panels *p, const Banks *b)
{
    return panels_tile(p, b, b->acc);
}

typedef void TileBody(Panels *p, const Banks *b);

static void for_tiles(Panels *p, const Banks *b, TileBody *body)
{
    PanelLoop rows = panels_loop(p, p->side[ROLE_M].label, p->side[ROLE_M].tile);
    while (panels_next(p, &rows)) {
        PanelLoop columns = panels_loop(p, p->side[ROLE_N].label, p->side[ROLE_N].tile);
        while (panels_next(p, &columns)) {
            body(p, b);
        }
    }
}

/* The matmul of the tiles that are open, at a step of the sum: the first one of each tile begins the sums there. */
static void multiply(Panels *p, const Banks *b)
{
    Lower *l = p->l;
    VarRef first[LOOP_DEPTH_LIMIT];
    uint32_t n = 0;
    bool begins = !b->later;
    for (const PanelLoop *x = p->loop; x != b->loop; x = x->around) {
        bool sum = x->label == p->k || labels_have(p->sums, x->label);
        begins &= !sum || !x->later || x == b->pieces;
        if (sum && x->open) {
            first[n++] = x->var;
        }
    }
    /* each may be loaded here: what moves first */
    TileView moving = panel_part(p, &p->side[ROLE_N]);
    TileView stationary = panel_part(p, &p->side[ROLE_M]);
    Stmt *s = make_matmul(l, bank_of(p, b), stationary, moving, begins);
    s->n_first = begins ? n : 0;
    s->first = arena_copy(l->arena, first, n * sizeof *first);
}

/* The steps of the sum that are open, of its labels from the i-th on, all tiles at each. What moves windows is innermost, as they share what
 * is loaded. */
static void multiply_from(Panels *p, const Banks *b, uint32_t i)
{
    bool windows = panels_place(p, ROLE_N)->n_terms > 0 && p->side[ROLE_N].view;
    bool cut = i == (windows ? 0 : p->sums.n);
    PanelLoop steps =
        panels_loop(p, cut ? p->k : p->sums.at[windows ? i - 1 : i], cut ? p->step : 1);
    while (panels_next(p, &steps)) {
        if (i == p->sums.n) {
            panels_stream(p);
            for_tiles(p, b, multiply);
        } else {
            multiply_from(p, b, i + 1);
        }
    }
}

static void multiply_steps(Panels *p, const Banks *b)
{
    multiply_from(p, b, 0);
}

/* All steps but the last ones, where operands are turned: these are, a piece before it is multiplied. */
static void turn_and_multiply(Panels *p, Banks *b)
{
    Lower *l = p->l;
    int64_t piece = panels_piece(p);
    PanelLoop pieces = panels_loop(p, p->k, piece);
    b->pieces = &pieces;
    while (panels_next(p, &pieces)) {
        panels_fill(p, FILL_KEPT);
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            PanelOnce once;
            if (panel_fill_of(&p->side[r]) == FILL_TURNED && panels_once(p, r, &once)) {
                panel_turn(p, r);
                panels_once_end(p, &once);
            }
        }
        if (!pieces.open && !pieces.later) {
            continue;
        }
        Guard guard = {.var = pieces.var, .lo = 1, .hi = pieces.trips};
        PanelOnce late = {
            pieces.open, arena_copy(l->arena, &guard, sizeof guard), l->loops.times, {0}};
        Box now = l->now.full;
        panels_once_open(p, &late);
        l->now.full.s[p->k] -= piece;
        l->now.full.n[p->k] = piece;
        multiply_steps(p, b);
        b->later = true;
        l->now.full = now;
        panels_once_end(p, &late);
    }
    b->pieces = NULL;
}

/* The last steps of the sum, and what becomes of the tile. */
static void finish_tile(Panels *p, const Banks *b)
{
    Lower *l = p->l;
    Contraction *c = p->c;
    Labels columns = p->side[ROLE_N].own;
    if (l->now.full.n[p->k] > 0) {
        PanelLoop steps = panels_loop(p, p->k, p->step);
        while (panels_next(p, &steps)) {
            multiply(p, b);
        }
    }
    Box box = l->now.full;
    if (!p->mirrored) {
        contract_finish(c, columns, &box, bank_of(p, b));
        return;
    }
    TileView row = panels_tile(p, b, b->rows);
    make_copy(l, row, bank_of(p, b));
    view_store(l, &c->final, c->pm, columns, &box, row);
}

static Banks make_banks(Panels *p)
{
    Lower *l = p->l;
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    int64_t rows = l->now.full.n[m->label], columns = l->now.full.n[n->label];
    int64_t beside = tiles_of(columns, n->tile), banks = tiles_of(rows, m->tile) * beside;
    Banks b = {.tile = NKI_PSUM_BANK / 4, .row = beside * (NKI_PSUM_BANK / 4)};
    rows = (rows < m->tile ? rows : m->tile) * m->inner;
    columns = banks > 1 ? banks * b.tile : columns * n->inner;
    b.acc = tile_new(l, "psum", DTYPE_F32, SPACE_ACC, rows, columns);
    b.loop = p->loop;
    if (p->mirrored) {
        const Buffer *to = &l->from->bufs.at[p->c->final.buf];
        b.rows = tile_new(l, to->name->text, to->dtype, SPACE_TILE, rows, columns);
    }
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        Panel *s = &p->side[r];
        b.at[r] = panels_held(p, s, b.acc);
        s->panel = s->view ? b.at[r] : s->panel;
    }
    return b;
}

Banks panels_block(Panels *p)
{
    Lower *l = p->l;
    Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    int64_t n_k = l->now.full.n[p->k], steps = panels_steps(p), piece = panels_piece(p);
    bool turns = panel_fill_of(m) == FILL_TURNED || panel_fill_of(n) == FILL_TURNED;
    bool one = l->now.full.n[m->label] <= m->tile && l->now.full.n[n->label] <= n->tile;
    int64_t head = turns          ? (n_k - 1) / piece * piece
                   : steps > TAIL ? (steps - TAIL) * p->step
                                  : 0;
    bool views = m->view || n->view;
    head = !turns && (one || views) ? n_k : head;
    Banks b = make_banks(p);
    Box full = l->now.full;
    if (turns) {
        turn_and_multiply(p, &b);
    } else {
        panels_fill(p, FILL_KEPT);
        l->now.full.n[p->k] = head;
        if (head > 0) {
            multiply_steps(p, &b);
        }
    }
    b.later = head > 0;
    l->now.full = full;
    l->now.full.s[p->k] += head;
    l->now.full.n[p->k] = n_k - head;
    if (head < n_k) {
        panels_stream(p);
    }
    for_tiles(p, &b, finish_tile);
    l->now.full = full;
    contract_refresh(p->c);
    return b;
}

/* ---- levels ---- */

static void emit_level(Panels *p, uint32_t at);

/* Labels of the level's operand that are taken one by one, from the i-th on, around its loops. */
static void emit_outer(Panels *p, uint32_t at, uint32_t i)
{
    Panel *s = &p->side[p->c->levels->level[at].role];
    if (i == s->outer.n) {
        s->begun = true;
        emit_level(p, at);
        s->begun = false;
        return;
    }
    PanelLoop loop = panels_loop(p, s->outer.at[i], 1);
    while (panels_next(p, &loop)) {
        emit_outer(p, at, i + 1);
    }
}

static void emit_level(Panels *p, uint32_t at)
{
    const Schedule *b = p->c->levels;
    if (p->l->tried.failed) { /* then panels need not have been made */
        return;
    }
    if (at == p->n_levels) {
        (void)panels_block(p);
        return;
    }
    const ScheduleLevel *level = &b->level[at];
    Panel *s = &p->side[level->role];
    if (s->outer.n > 0 && !s->begun) {
        emit_outer(p, at, 0);
        return;
    }
    bool strip = true;
    for (uint32_t i = at + 1; i < p->n_levels; i++) {
        strip &= b->level[i].role != level->role;
    }
    PanelLoop loop = panels_loop(p, s->label, level_step(p, level->role, level));
    while (panels_next(p, &loop)) {
        if (!s->lifted && !s->view &&
            (level->pack || (strip && s->packed == 0 && !s->streams))) {
            panel_make(p, level->role);
        }
        emit_level(p, at + 1);
    }
}

/* Batches one after the other. */
static void emit_batch(Panels *p, uint32_t at)
{
    if (at == p->c->batch.n) {
        if (p->mirrored) {
            panels_mirrored(p);
        } else {
            emit_level(p, 0);
        }
        return;
    }
    PanelLoop loop = panels_loop(p, p->c->batch.at[at], 1);
    while (panels_next(p, &loop)) {
        emit_batch(p, at + 1);
    }
}

bool contract_panels(Contraction *c)
{
    Panels p = {.c = c, .l = c->l};
    if (!is_regular(&p)) {
        return false;
    }
    if (!p.mirrored) {
        find_lifted(&p);
    }
    for (ScheduleRole r = 0; r < ROLE_K && !p.mirrored; r++) {
        if (p.side[r].lifted) {
            panel_fill_before(&p, r);
        }
    }
    emit_batch(&p, 0);
    return true;
}
