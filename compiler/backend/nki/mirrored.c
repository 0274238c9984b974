/* SPDX-License-Identifier: Apache-2.0 */
/* A product of an operand with itself is its own transpose: blocks on the diagonal, and those below it with their mirror images,
 *
 *     for columns { panel; block of the same rows; for rows after these { panel; block; mirror image } }
 *
 * Both sides have one panel where there is room for all of it, or a strip each. */
#include "backend/nki/blocks.h"
#include "backend/nki/make.h"
#include "backend/nki/panels.h"
#include "backend/nki/view.h"

/* Where the mirror image of what is open goes. */
static Place mirrored(Panels *p)
{
    Place to = p->c->final;
    uint32_t m = 0, n = 0;
    for (uint32_t d = 0; d < to.rank; d++) {
        m = to.label[d] == (int32_t)p->side[ROLE_M].label ? d : m;
        n = to.label[d] == (int32_t)p->side[ROLE_N].label ? d : n;
    }
    int32_t label = to.label[m];
    to.label[m] = to.label[n];
    to.label[n] = label;
    if (to.moves != NULL) {
        Affine *moves = arena_copy(p->l->arena, to.moves, to.rank * sizeof *moves);
        moves[m] = to.moves[n];
        moves[n] = to.moves[m];
        to.moves = moves;
    }
    return to;
}

/* Where the piece of the columns that is open lies in the rows that were stored. */
static Affine mirrored_row(Panels *p, const Banks *b)
{
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    Affine at = panels_distance(p, n, &b->at[ROLE_N], false, 1, 1);
    return affine_add(p->l->arena, at, 1,
                      panels_distance(p, m, &b->at[ROLE_M], false, m->tile, b->row));
}

/* The mirror image of a block, by pieces of its columns. */
static void emit_mirror(Panels *p, const Banks *b)
{
    Lower *l = p->l;
    const Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    DType t = l->from->bufs.at[p->c->final.buf].dtype;
    PanelLoop pieces = panels_loop(p, n->label, NKI_PARTITIONS);
    while (panels_next(p, &pieces)) {
        TileView psum = tile_new(l, "psum", t, SPACE_ACC, NKI_PARTITIONS, m->strip);
        PanelLoop tiles = panels_loop(p, m->label, m->tile);
        while (panels_next(p, &tiles)) {
            Affine at = panels_distance(p, m, &b->at[ROLE_M], false, 1, 1);
            TileView row = b->rows;
            row = panels_view(l, row, mirrored_row(p, b), m->tile, NKI_PARTITIONS);
            make_transpose(l, panels_view(l, psum, at, NKI_PARTITIONS, m->tile), row);
        }
        Place to = mirrored(p);
        view_store(l, &to, labels_one(n->label), labels_one(m->label), &l->now.full, psum);
    }
}

void panels_mirrored(Panels *p)
{
    Lower *l = p->l;
    Panel *m = &p->side[ROLE_M], *n = &p->side[ROLE_N];
    if (p->shared) {
        panel_make(p, ROLE_M);
        panel_fill_strips(p, ROLE_M);
        n->panel = m->panel;
        n->width = m->width;
    }
    PanelLoop columns = panels_loop(p, n->label, n->strip);
    while (panels_next(p, &columns)) {
        Box full = l->now.full;
        Affine moves = l->now.moves[m->label];
        if (!p->shared) {
            panel_make(p, ROLE_N);
            panel_fill_strip(p, ROLE_N);
            m->panel = n->panel;
            m->width = n->width;
        }
        l->now.full.n[m->label] = m->strip;
        l->now.moves[m->label] = l->now.moves[n->label];
        contract_refresh(p->c);
        (void)panels_block(p);
        l->now.full = full;
        l->now.moves[m->label] = moves;
        Affine after =
            affine_add(l->arena, affine_const(1), 1, affine_var(l->arena, columns.var));
        PanelLoop rows = panels_loop_from(p, m->label, m->strip, after);
        while (panels_next(p, &rows)) {
            if (!p->shared) {
                panel_make(p, ROLE_M);
                panel_fill_strip(p, ROLE_M);
            }
            Banks b = panels_block(p);
            emit_mirror(p, &b);
        }
    }
}
