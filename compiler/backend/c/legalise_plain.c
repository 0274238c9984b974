/* SPDX-License-Identifier: Apache-2.0 */
/* Statements without a fold, element by element: those that lie side by side one after the other. */
#include "backend/c/legalise.h"

#include "loop/copy.h"

/* Elements side by side are written one after the other: the index with unit stride in the destination goes innermost. */
void legalise_plain(Legaliser *l, const Stmt *s)
{
    TileIndex *index = ARENA_ARRAY(l->arena, (size_t)s->n_index + 1, TileIndex);
    uint32_t n = 0, last = NONE;
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (last == NONE && access_is_unit(l->k, s->dst, s->at, s->index[i].var)) {
            last = i;
        } else {
            index[n++] = s->index[i];
        }
    }
    if (last == NONE) {
        tile_add(l, n, index, s->dst, s->at, s->fold, s->value);
    } else if (!legalise_transpose(l, s, last)) {
        index[n++] = s->index[last];
        written_add(l, n, index, s->dst, s->at, s->fold, s->value);
    }
}

const Stmt *legalise_begin(Legaliser *l, const Stmt *s)
{
    if (!s->begins) {
        return s;
    }
    Stmt *rest = arena_copy(l->arena, s, sizeof *s);
    rest->begins = false;
    legalise_plain(l, stmt_neutral(l->arena, l->k, s));
    return rest;
}
