/* SPDX-License-Identifier: Apache-2.0 */
/* TILED -> LEGAL for NKI: one device program where that is short enough, else several; then
 * loops are made of what was unrolled. */
#include "backend/nki/lower.h"

static void begin(Lower *l, const Kernel *k)
{
    l->from = k;
    pair_find(l);
    l->tried.away = ARENA_ARRAY(l->arena, k->bufs.n + 1, bool);
    l->tried.why = ARENA_ARRAY(l->arena, k->bufs.n + 1, Away);
    l->task.body = k->body;
    l->task.n_body = k->n_body;
}

/* Several programs. Where a piece of a sum is too long for one, all pieces are made smaller. */
static Kernel *lower_parts_of(Lower *first, const Kernel *k)
{
    for (uint32_t halvings = 0; halvings < 64; halvings++) {
        bool *sums = NULL;
        const Kernel *pieces = lower_pieces(first->ctx, first->arena, k, halvings, &sums);
        if (pieces == NULL) {
            break;
        }
        begin(first, pieces);
        first->sums = sums;
        uint32_t errors = first->ctx->diags.n_errors;
        Kernel *made = lower_split(first, false);
        if (made != NULL || first->ctx->diags.n_errors > errors) {
            return made;
        }
    }
    begin(first, k);
    first->sums = NULL;
    return lower_split(first, true);
}

Kernel *nki_legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    const NkiChip *chip = nki_chip(target->name);
    Lower first = {.ctx = ctx, .arena = arena, .target = target, .chip = chip, .from = k};
    if (!lower_check(&first)) {
        return NULL;
    }
    begin(&first, k);
    first.task.most = target->machine->max_instructions;
    Lower l = first;
    Kernel *made = lower_all(&first, &l);
    if (l.tried.too_many) {
        return lower_parts_of(&first, k);
    }
    spill_warn_all(&l);
    Kernel *rolled = made == NULL ? NULL : nki_roll(ctx, arena, made, chip, 1);
    return rolled == NULL ? made : rolled;
}
