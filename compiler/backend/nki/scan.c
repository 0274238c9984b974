/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: rows of tiles along the scanned label, whole, one instruction of the Vector engine each. Of the other labels the longest is
 * on partitions, the others are taken position by position. */
#include "backend/nki/evaluate.h"
#include "backend/nki/lower_stmt.h"
#include "backend/nki/make.h"

void lower_scan(Lower *l, const Stmt *s)
{
    Place dst = place_of(l, s->dst, s->at);
    uint32_t along = s->scan - 1, p = l->now.n_labels;
    Labels rows = {0}, others = {0}, free_labels = {0};
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        bool longer = p == l->now.n_labels || l->now.full.n[label] > l->now.full.n[p];
        p = label != along && longer ? label : p;
    }
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        Labels *to = label == p ? &rows : &others;
        if (label != along) {
            to->at[to->n++] = (uint8_t)label;
        }
    }
    free_labels = others;
    free_labels.at[free_labels.n++] = (uint8_t)along;
    int64_t pstep[LABELS], fstep[LABELS];
    box_steps(rows, &l->now.full, NKI_PARTITIONS, pstep);
    box_steps(others, &l->now.full, 1, fstep);
    Box box = l->now.full;
    for (bool a = true; box_next(rows, &l->now.full, pstep, &box, a) && !l->tried.failed;
         a = false) {
        for (bool b = true; box_next(others, &l->now.full, fstep, &box, b) && !l->tried.failed;
             b = false) {
            Evaluation ev = {l, rows, free_labels, &box, LOWER_NONE, {0}, false};
            const Expr *term = s->decays ? s->value->arg[1] : s->value;
            memo_begin(l, s->value, NULL);
            TileView factor, v = evaluate(&ev, term, DTYPE_F32, NULL);
            factor = s->decays ? evaluate(&ev, s->value->arg[0], DTYPE_F32, NULL) : v;
            l->now.memo.n = 0;
            TileView out = tile_new(l, "scan", DTYPE_F32, SPACE_TILE, v.np, v.nf);
            make_scan(l, out, s->fold, s->decays ? &factor : NULL, v);
            view_store(l, &dst, rows, free_labels, &box, out);
        }
    }
}
