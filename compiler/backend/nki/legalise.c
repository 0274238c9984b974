/* SPDX-License-Identifier: Apache-2.0 */
/* TILED -> LEGAL for NKI: one device program where that is short enough, else several; then
 * loops are made of what was unrolled. */
#include "backend/nki/lower.h"

Kernel *nki_legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    const NkiChip *chip = nki_chip(target->name);
    Lower first = {.ctx = ctx, .arena = arena, .target = target, .chip = chip, .from = k};
    if (!lower_check(&first)) {
        return NULL;
    }
    pair_find(&first);
    first.tried.away = ARENA_ARRAY(arena, k->bufs.n + 1, bool);
    first.tried.why = ARENA_ARRAY(arena, k->bufs.n + 1, Away);
    first.task.body = k->body;
    first.task.n_body = k->n_body;
    first.task.most = target->machine->max_instructions;
    Lower l = first;
    Kernel *made = lower_all(&first, &l);
    if (l.tried.too_many) {
        return lower_split(&first);
    }
    spill_warn_all(&l);
    Kernel *rolled = made == NULL ? NULL : nki_roll(ctx, arena, made, chip, 1);
    return rolled == NULL ? made : rolled;
}
