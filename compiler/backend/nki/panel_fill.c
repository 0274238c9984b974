/* SPDX-License-Identifier: Apache-2.0 */
/* Panels of operands: loops over labels, where a tile is in them, and how strips are loaded, or loaded as they lie and transposed. */
#include "backend/nki/panels.h"

#include <string.h>

/* ---- loops ---- */

/* Over the label as it is now, by equal steps, from iteration `first` on. */
PanelLoop panels_loop_from(Panels *p, uint32_t label, int64_t step, Affine first)
{
    Lower *l = p->l;
    CHECK(step >= l->now.full.n[label] || l->now.full.n[label] % step == 0);
    PanelLoop loop = {label, l->now.full, l->now.moves[label], step, false};
    loop.open = stay_open_label(l, label, step, first, p->c->reader);
    l->now.full.n[label] = step < loop.full.n[label] ? step : loop.full.n[label];
    return loop;
}

PanelLoop panels_loop(Panels *p, uint32_t label, int64_t step)
{
    return panels_loop_from(p, label, step, affine_const(0));
}

void panels_loop_end(Panels *p, const PanelLoop *loop)
{
    if (loop->open) {
        stay_close_label(p->l, loop->label, loop->step, &loop->full, loop->moves);
    }
    p->l->now.full = loop->full;
}

/* ---- tiles ---- */

Held panels_held(Panels *p, const Panel *s, TileView view)
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

static int64_t panel_width(const Panel *s)
{
    return s->packed > 0 ? s->packed : s->strip;
}

/* What is open of a panel, at one step of the sum. */
TileView panel_part(Panels *p, const Panel *s)
{
    Lower *l = p->l;
    Affine at = panels_distance(p, s, &s->panel, true, NKI_PARTITIONS, panel_width(s));
    at = affine_add(l->arena, at, 1, panels_distance(p, s, &s->panel, false, 1, 1));
    int64_t elements = s->panel.box.n[p->k] / NKI_PARTITIONS * panel_width(s);
    at = affine_add(l->arena, at, 1, batch_distance(p, s, elements));
    return panels_view(l, s->panel.view, at, NKI_PARTITIONS, l->now.full.n[s->label]);
}

/* 128 rows of the lines, so many elements of them. */
static TileView lines_part(Panels *p, const Panel *s, int64_t nf)
{
    Lower *l = p->l;
    Affine at = panels_distance(p, s, &s->lines, false, NKI_PARTITIONS, s->lines.box.n[p->k]);
    at = affine_add(l->arena, at, 1, panels_distance(p, s, &s->lines, true, 1, 1));
    return panels_view(l, s->lines.view, at, NKI_PARTITIONS, nf);
}

void panel_make(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    const Buffer *b = &l->from->bufs.at[panels_place(p, r)->buf];
    int64_t n = l->now.full.n[p->k] / NKI_PARTITIONS * panel_width(s);
    for (uint32_t i = 0; i < p->c->batch.n && s->lifted; i++) {
        n *= l->now.full.n[p->c->batch.at[i]];
    }
    s->panel =
        panels_held(p, s, tile_new(l, b->name->text, b->dtype, SPACE_TILE, NKI_PARTITIONS, n));
}

/* ---- strips ---- */

/* Positions of the sum that are loaded and turned at a time. */
int64_t panels_piece(const Panels *p)
{
    int64_t all = p->l->now.full.n[p->k];
    return all % (TAIL * NKI_PARTITIONS) == 0 ? TAIL * NKI_PARTITIONS : all;
}

void panels_once_open(Panels *p, PanelOnce *o)
{
    if (o->n > 0) {
        memcpy(&o->out, &p->l->out, sizeof p->l->out);
        memset(&p->l->out, 0, sizeof p->l->out);
    }
}

PanelOnce panels_once(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    PanelOnce o = {.times = l->loops.times};
    o.guard = ARENA_ARRAY(l->arena, LOOP_DEPTH_LIMIT, Guard);
    for (uint32_t d = p->side[r].panel.depth; d < l->loops.depth; d++) {
        const OpenLoop *loop = &l->loops.open[d];
        if (affine_uses(l->now.moves[p->side[1 - r].label], loop->var)) {
            o.guard[o.n++] = (Guard){loop->var, 0, 1};
            l->loops.times /= loop->trips;
        }
    }
    panels_once_open(p, &o);
    return o;
}

void panels_once_end(Panels *p, const PanelOnce *o)
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
    const Buffer *b = &p->l->from->bufs.at[panels_place(p, r)->buf];
    int64_t n = s->strip / NKI_PARTITIONS * p->l->now.full.n[p->k];
    s->lines = panels_held(
        p, s, tile_new(p->l, b->name->text, b->dtype, SPACE_TILE, NKI_PARTITIONS, n));
}

/* Rows of what is to be turned, as they lie. */
static void load_rows(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    PanelLoop rows = panels_loop(p, s->label, NKI_PARTITIONS);
    contract_places(p->c);
    make_dma(l, panels_place(p, r), labels_one(s->label), labels_one(p->k), &l->now.full,
             lines_part(p, s, l->now.full.n[p->k]), false);
    panels_loop_end(p, &rows);
}

/* One step of the sum: transposes side by side in a bank, which leave it together. */
static void turn_step(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    DType t = l->from->bufs.at[panels_place(p, r)->buf].dtype;
    int64_t bank = NKI_PSUM_BANK / nki_bytes(t), parts = (s->strip + bank - 1) / bank;
    while (s->strip % (parts * NKI_PARTITIONS) != 0) {
        parts++; /* equal ones */
    }
    PanelLoop banks = panels_loop(p, s->label, s->strip / parts);
    int64_t wide = l->now.full.n[s->label];
    Held psum = panels_held(p, s, tile_new(l, "psum", t, SPACE_ACC, NKI_PARTITIONS, wide));
    PanelLoop rows = panels_loop(p, s->label, NKI_PARTITIONS);
    Affine at = panels_distance(p, s, &psum, false, 1, 1);
    make_transpose(l, panels_view(l, psum.view, at, NKI_PARTITIONS, NKI_PARTITIONS),
                   lines_part(p, s, NKI_PARTITIONS));
    panels_loop_end(p, &rows);
    make_copy(l, panel_part(p, s), psum.view);
    panels_loop_end(p, &banks);
}

/* The steps of the sum that are open. */
void panel_turn(Panels *p, ScheduleRole r)
{
    make_lines(p, r);
    load_rows(p, r);
    PanelLoop steps = panels_loop(p, p->k, NKI_PARTITIONS);
    turn_step(p, r);
    panels_loop_end(p, &steps);
    contract_places(p->c);
}

static void load_step(Panels *p, ScheduleRole r)
{
    Panel *s = &p->side[r];
    make_dma(p->l, panels_place(p, r), labels_one(p->k), labels_one(s->label), &p->l->now.full,
             panel_part(p, s), false);
}

PanelFill panel_fill_of(const Panel *s)
{
    return s->lifted    ? FILL_BEFORE
           : s->streams ? FILL_STREAMING
           : s->turns   ? FILL_TURNED
                        : FILL_KEPT;
}

/* All steps that are open, of the operands that are filled so. */
void panels_fill(Panels *p, PanelFill fill)
{
    if (panel_fill_of(&p->side[ROLE_M]) != fill && panel_fill_of(&p->side[ROLE_N]) != fill) {
        return;
    }
    PanelLoop steps = panels_loop(p, p->k, NKI_PARTITIONS);
    contract_places(p->c);
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        if (panel_fill_of(&p->side[r]) == fill) {
            PanelOnce once = panels_once(p, r);
            load_step(p, r);
            panels_once_end(p, &once);
        }
    }
    panels_loop_end(p, &steps);
    contract_places(p->c);
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
    PanelLoop steps = panels_loop(p, p->k, turns ? panels_piece(p) : NKI_PARTITIONS);
    contract_places(p->c);
    (turns ? panel_turn : load_step)(p, r);
    panels_loop_end(p, &steps);
    contract_places(p->c);
}

void panel_fill_strips(Panels *p, ScheduleRole r)
{
    PanelLoop strips = panels_loop(p, p->side[r].label, p->side[r].strip);
    panel_fill_strip(p, r);
    panels_loop_end(p, &strips);
}

/* An operand before the loops around, strip by strip. */
void panel_fill_before(Panels *p, ScheduleRole r)
{
    Lower *l = p->l;
    Panel *s = &p->side[r];
    uint32_t before = l->loops.depth, n_batch = p->c->batch.n;
    Lift lift = lift_begin(l, s->depth, s->bytes);
    uint32_t depth = l->loops.depth, n = before - depth;
    OpenLoop *around = arena_copy(l->arena, &l->loops.open[depth], n * sizeof *around);
    panel_make(p, r);
    PanelLoop batch[BATCH_MOST];
    for (uint32_t i = 0; i < n_batch; i++) {
        batch[i] = panels_loop(p, p->c->batch.at[i], 1);
    }
    panel_fill_strips(p, r);
    for (uint32_t i = n_batch; i-- > 0;) {
        panels_loop_end(p, &batch[i]);
    }
    memcpy(&l->loops.open[depth], around, n * sizeof *around);
    lift_end(l, &lift);
    contract_places(p->c);
}
