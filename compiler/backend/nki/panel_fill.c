/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of operands: loops over labels, where a tile is in them, and how strips are loaded, or loaded as they lie and transposed. */
#include "backend/nki/blocks.h"
#include "backend/nki/make.h"
#include "backend/nki/panels.h"
#include "backend/nki/view.h"

#include <string.h>

/* ---- loops ---- */

PanelLoop panels_loop_from(const Panels *p, uint32_t label, int64_t step, Affine first)
{
    const Lower *l = p->l;
    return (PanelLoop){.label = label,
                       .step = step,
                       .first = first,
                       .full = l->now.full,
                       .moves = l->now.moves[label]};
}

const Place *panels_place(const Panels *p, ScheduleRole side)
{
    return side == ROLE_M ? &p->c->stationary : &p->c->moving;
}

PanelLoop panels_loop(const Panels *p, uint32_t label, int64_t step)
{
    return panels_loop_from(p, label, step, affine_const(0));
}

/* The equal steps, as a loop or else the first of them. */
static void begin_loop(Panels *p, PanelLoop *x)
{
    Lower *l = p->l;
    int64_t n = x->full.n[x->label];
    x->begun = true;
    x->around = p->loop;
    p->loop = x;
    x->done = n < x->step ? n : x->step;
    if (n / x->step > 1 && open_label(l, x->label, x->step, x->first, p->c->reader)) {
        const OpenLoop *o = &l->loops.open[l->loops.depth - 1];
        x->open = true;
        x->var = o->var;
        x->trips = o->trips;
        x->done = n / x->step * x->step;
    }
    l->now.full.n[x->label] = n < x->step ? n : x->step;
}

bool panels_next(Panels *p, PanelLoop *x)
{
    Lower *l = p->l;
    int64_t n = x->full.n[x->label];
    bool more = true;
    if (!x->begun) {
        begin_loop(p, x);
    } else {
        if (x->open) {
            close_label(l, x->label, x->step, &x->full, x->moves);
        }
        int64_t left = n - x->done;
        more = left > 0;
        l->now.full = x->full;
        l->now.full.s[x->label] += more ? x->done : 0;
        l->now.full.n[x->label] = !more ? n : left < x->step ? left : x->step;
        x->done += more ? l->now.full.n[x->label] : 0;
        x->open = false;
        x->later = true;
    }
    p->loop = more ? x : x->around;
    contract_refresh(p->c);
    return more;
}

/* ---- tiles ---- */

Held panels_held(Panels *p, const Panel *s, TileView view)
{
    const Lower *l = p->l;
    Held h = {view,  l->now.full, {l->now.moves[s->label], l->now.moves[p->k]},
              {{0}}, p->loop,     l->loops.depth};
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
Affine panels_distance(Panels *p, const Panel *s, const Held *h, bool sum, int64_t unit,
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

TileView panels_view(Lower *l, TileView v, Affine at, int64_t np, int64_t nf)
{
    v.f0 += at.base;
    at.base = 0;
    v.np = np;
    v.nf = nf;
    v.moves = at.n == 0 ? NULL : arena_copy(l->arena, &at, sizeof at);
    return v;
}

static int64_t count_steps(const Panels *p, int64_t n)
{
    return (n + p->step - 1) / p->step;
}

int64_t panels_steps(const Panels *p)
{
    return count_steps(p, p->l->now.full.n[p->k]);
}

/* So many elements of a panel for each of so many positions of the sum, from what is open on. */
static TileView panel_view(Panels *p, const Panel *s, int64_t np, int64_t nf)
{
    Lower *l = p->l;
    Affine at = panels_distance(p, s, &s->panel, true, p->step, s->width);
    at = affine_add(l->arena, at, 1, panels_distance(p, s, &s->panel, false, 1, 1));
    int64_t elements = count_steps(p, s->panel.box.n[p->k]) * s->width;
    at = affine_add(l->arena, at, 1, batch_distance(p, s, elements));
    return panels_view(l, s->panel.view, at, np, nf);
}

/* The strip of the block at a step of the sum, as a view, and what is open of it. */
static TileView view_part_of(Panels *p, const Panel *s)
{
    Lower *l = p->l;
    Contraction *c = p->c;
    ScheduleRole r = s == &p->side[ROLE_M] ? ROLE_M : ROLE_N;
    Box now = l->now.full;
    TileView walked;
    if (r == ROLE_N && view_pattern(l, panels_place(p, r), c->pk, s->own, &now, &walked)) {
        return walked;
    }
    Affine moves = l->now.moves[s->label];
    Affine at = panels_distance(p, s, &s->panel, false, 1, s->inner);
    int64_t nf = labels_count(s->own, &now);
    l->now.full.s[s->label] = s->panel.box.s[s->label];
    l->now.full.n[s->label] = s->panel.box.n[s->label];
    l->now.moves[s->label] = s->panel.moves[0];
    contract_places(c);
    TileView v =
        view_in_loops(l, panels_place(p, r), c->pk, s->own, &l->now.full, s->panel.depth);
    l->now.full = now;
    l->now.moves[s->label] = moves;
    contract_places(c);
    Affine by = affine_add(l->arena, v.moves == NULL ? affine_const(0) : *v.moves, v.step, at);
    TileView out = panels_view(l, v, by, v.np, nf);
    return out;
}

/* What is open of a panel, at one step of the sum. */
TileView panel_part(Panels *p, const Panel *s)
{
    if (s->view) {
        return view_part_of(p, s);
    }
    return panel_view(p, s, p->l->now.full.n[p->k], p->l->now.full.n[s->label]);
}

/* Rows of what is to be turned that are loaded, and transposed, together: equal ones where that needs no more of them, and what is
 * transposed begins at multiples of 4 bytes of a bank. */
static int64_t lines_rows(const Panels *p, const Panel *s)
{
    const Place *x = panels_place(p, s == &p->side[ROLE_M] ? ROLE_M : ROLE_N);
    int64_t size = dtype_bytes(p->l->from->bufs.at[x->buf].dtype);
    int64_t parts = (s->strip + NKI_PARTITIONS - 1) / NKI_PARTITIONS, rows = s->strip / parts;
    return rows * parts == s->strip && rows * size % 4 == 0 ? rows : NKI_PARTITIONS;
}

/* The rows that are open of the lines, so many elements of them. */
static TileView lines_part(Panels *p, const Panel *s, int64_t nf)
{
    Lower *l = p->l;
    Affine at = panels_distance(p, s, &s->lines, false, lines_rows(p, s), s->lines.box.n[p->k]);
    at = affine_add(l->arena, at, 1, panels_distance(p, s, &s->lines, true, 1, 1));
    return panels_view(l, s->lines.view, at, l->now.full.n[s->label], nf);
}

static TileView tile_for(Panels *p, ScheduleRole r, int64_t np, int64_t nf)
{
    const Buffer *b = &p->l->from->bufs.at[panels_place(p, r)->buf];
    return tile_new(p->l, b->name->text, b->dtype, SPACE_TILE, np, nf);
}

void panel_make(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    int64_t sums = l->now.full.n[p->k];
    s->width = l->now.full.n[s->label];
    int64_t n = panels_steps(p) * s->width;
    for (uint32_t i = 0; i < p->c->batch.n && s->lifted; i++) {
        n *= l->now.full.n[p->c->batch.at[i]];
    }
    s->panel = panels_held(p, s, tile_for(p, r, sums < p->step ? sums : p->step, n));
}

/* ---- strips ---- */

int64_t panels_piece(const Panels *p)
{
    int64_t all = p->l->now.full.n[p->k], piece = TAIL * p->step;
    return piece < all ? piece : all;
}

void panels_once_open(Panels *p, PanelOnce *o)
{
    if (o->n > 0) {
        memcpy(&o->out, &p->l->out, sizeof p->l->out);
        memset(&p->l->out, 0, sizeof p->l->out);
    }
}

static bool is_others(const Panels *p, ScheduleRole r, uint32_t label)
{
    const Panel *other = &p->side[1 - r];
    return labels_have(other->own, label) || labels_have(other->outer, label);
}

/* Is no loop over the other operand, begun after the panel, past its first iterations? */
static bool panels_is_first(const Panels *p, ScheduleRole r)
{
    bool first = true;
    for (const PanelLoop *x = p->loop; x != p->side[r].panel.loop; x = x->around) {
        first &= !is_others(p, r, x->label) || !x->later;
    }
    return first;
}

bool panels_once(Panels *p, ScheduleRole r, PanelOnce *o)
{
    if (!panels_is_first(p, r)) {
        return false;
    }
    Lower *l = p->l;
    *o = (PanelOnce){.times = l->loops.times};
    o->guard = ARENA_ARRAY(l->arena, LOOP_DEPTH_LIMIT, Guard);
    for (const PanelLoop *x = p->loop; x != p->side[r].panel.loop; x = x->around) {
        if (x->open && is_others(p, r, x->label)) {
            o->guard[o->n++] = (Guard){.var = x->var, .hi = 1};
            l->loops.times /= x->trips;
        }
    }
    for (uint32_t i = 0; i < o->n / 2; i++) { /* from the outermost */
        Guard g = o->guard[i];
        o->guard[i] = o->guard[o->n - 1 - i];
        o->guard[o->n - 1 - i] = g;
    }
    panels_once_open(p, o);
    return true;
}

void panels_once_end(Panels *p, const PanelOnce *o)
{
    Lower *l = p->l;
    if (o->n == 0) {
        return;
    }
    Stmt *block =
        stmt_guarded(l->arena, l->now.stmt->span, o->guard, o->n, l->out.at, l->out.n);
    memcpy(&l->out, &o->out, sizeof l->out);
    vec_push(l->arena, &l->out, block);
    l->loops.times = o->times;
}

static void make_lines(Panels *p, ScheduleRole r)
{
    Panel *s = &p->side[r];
    int64_t rows = lines_rows(p, s), all = p->l->now.full.n[s->label];
    int64_t parts = (all + rows - 1) / rows;
    TileView tile = tile_for(p, r, all < rows ? all : rows, parts * p->l->now.full.n[p->k]);
    s->lines = panels_held(p, s, tile);
}

/* Rows of what is to be turned, as they lie. */
static void load_rows(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    PanelLoop rows = panels_loop(p, s->label, lines_rows(p, s));
    while (panels_next(p, &rows)) {
        make_dma(l, panels_place(p, r), labels_one(s->label), labels_one(p->k), &l->now.full,
                 lines_part(p, s, l->now.full.n[p->k]), false);
    }
}

/* One step of the sum: transposes side by side in a bank, which leave it together. */
static void turn_step(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    DType t = l->from->bufs.at[panels_place(p, r)->buf].dtype;
    int64_t bank = NKI_PSUM_BANK / dtype_bytes(t), all = l->now.full.n[s->label];
    int64_t rows = lines_rows(p, s), chunks = (all + rows - 1) / rows;
    int64_t parts = (chunks + bank / rows - 1) / (bank / rows);
    PanelLoop banks = panels_loop(p, s->label, (chunks + parts - 1) / parts * rows);
    while (panels_next(p, &banks)) {
        int64_t wide = l->now.full.n[s->label], sums = l->now.full.n[p->k];
        Held psum = panels_held(p, s, tile_new(l, "psum", t, SPACE_ACC, sums, wide));
        PanelLoop chunk = panels_loop(p, s->label, rows);
        while (panels_next(p, &chunk)) {
            Affine at = panels_distance(p, s, &psum, false, 1, 1);
            make_transpose(l, panels_view(l, psum.view, at, sums, l->now.full.n[s->label]),
                           lines_part(p, s, sums));
        }
        make_copy(l, panel_part(p, s), psum.view);
    }
}

/* The same of several steps of a strip that is all of the panel, which lie side by side there, too. */
static void turn_steps(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    DType t = l->from->bufs.at[panels_place(p, r)->buf].dtype;
    int64_t wide = panels_steps(p) * s->width;
    Held psum = panels_held(p, s, tile_new(l, "psum", t, SPACE_ACC, p->step, wide));
    PanelLoop steps = panels_loop(p, p->k, p->step);
    while (panels_next(p, &steps)) {
        PanelLoop chunk = panels_loop(p, s->label, lines_rows(p, s));
        while (panels_next(p, &chunk)) {
            Affine at = panels_distance(p, s, &psum, true, p->step, s->width);
            at = affine_add(l->arena, at, 1, panels_distance(p, s, &psum, false, 1, 1));
            make_transpose(l, panels_view(l, psum.view, at, p->step, l->now.full.n[s->label]),
                           lines_part(p, s, p->step));
        }
    }
    make_copy(l, panel_view(p, s, p->step, wide), psum.view);
}

/* The steps of the sum that are open: as many at a time as a bank holds. */
void panel_turn(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    int64_t size = dtype_bytes(l->from->bufs.at[panels_place(p, r)->buf].dtype);
    bool words = s->width * size % 4 == 0; /* does each step begin with one? */
    int64_t most =
        words && s->width == l->now.full.n[s->label] ? NKI_PSUM_BANK / size / s->width : 1;
    make_lines(p, r);
    load_rows(p, r);
    PanelLoop groups = panels_loop(p, p->k, p->step * (most > 1 ? most : 1));
    while (panels_next(p, &groups)) {
        if (most > 1 && l->now.full.n[p->k] % p->step == 0) {
            turn_steps(p, r);
            continue;
        }
        PanelLoop steps = panels_loop(p, p->k, p->step);
        while (panels_next(p, &steps)) {
            turn_step(p, r);
        }
    }
}

static void load_step(Panels *p, ScheduleRole r)
{
    Panel *s = &p->side[r];
    make_dma(p->l, panels_place(p, r), labels_one(p->k), labels_one(s->label), &p->l->now.full,
             panel_part(p, s), false);
}

PanelFill panel_fill_of(const Panel *s)
{
    return s->view      ? FILL_NOT
           : s->lifted  ? FILL_BEFORE
           : s->streams ? FILL_STREAMING
           : s->turns   ? FILL_TURNED
                        : FILL_KEPT;
}

/* All steps that are open, of the operands that are filled so. */
void panels_fill(Panels *p, PanelFill fill)
{
    PanelOnce once[2];
    bool fills[2], any = false;
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        fills[r] = panel_fill_of(&p->side[r]) == fill;
        any |= fills[r] && panels_is_first(p, r);
    }
    PanelLoop steps = panels_loop(p, p->k, p->step);
    while (any && panels_next(p, &steps)) {
        for (ScheduleRole r = 0; r < ROLE_K; r++) {
            if (fills[r] && panels_once(p, r, &once[r])) {
                load_step(p, r);
                panels_once_end(p, &once[r]);
            }
        }
    }
}

/* Panels of the steps that are open, for operands that stream. */
void panels_stream(Panels *p)
{
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        if (p->side[r].streams) {
            panel_make(p, r);
        }
    }
    panels_fill(p, FILL_STREAMING);
}

/* The strip that is open. */
void panel_fill_strip(Panels *p, ScheduleRole r)
{
    bool turns = p->side[r].turns;
    PanelLoop steps = panels_loop(p, p->k, turns ? panels_piece(p) : p->step);
    while (panels_next(p, &steps)) {
        (turns ? panel_turn : load_step)(p, r);
    }
}

void panel_fill_strips(Panels *p, ScheduleRole r)
{
    PanelLoop strips = panels_loop(p, p->side[r].label, p->side[r].strip);
    while (panels_next(p, &strips)) {
        panel_fill_strip(p, r);
    }
}

static void fill_batches(Panels *p, ScheduleRole r, uint32_t at)
{
    if (at == p->c->batch.n) {
        panel_fill_strips(p, r);
        return;
    }
    PanelLoop batch = panels_loop(p, p->c->batch.at[at], 1);
    while (panels_next(p, &batch)) {
        fill_batches(p, r, at + 1);
    }
}

/* An operand before the loops around, strip by strip. */
void panel_fill_before(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    Hoist hoist = hoist_begin(l, s->depth, s->bytes);
    panel_make(p, r);
    fill_batches(p, r, 0);
    hoist_end(l, &hoist);
    contract_places(p->c);
}
