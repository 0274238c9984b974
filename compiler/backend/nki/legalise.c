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
    l->loops.concrete = ARENA_ARRAY(l->arena, k->vars.n + 1, bool);
    l->task.body = k->body;
    l->task.n_body = k->n_body;
}

/* The kernel cut into pieces, as programs; null: a piece is too long, or there are none (*none). */
static Kernel *lower_pieces_of(Lower *first, const Kernel *k, int64_t n, uint32_t halvings,
                               bool *none)
{
    bool *sums = NULL;
    const Kernel *pieces = lower_pieces(first->ctx, first->arena, k, n, halvings, &sums);
    *none = pieces == NULL;
    if (*none) {
        return NULL;
    }
    begin(first, pieces);
    first->sums = sums;
    return lower_split(first, false);
}

/* How many times as long as a program the kernel is, its loops counted and not unrolled; 0: too long to say. */
static int64_t programs_of(const Lower *first, const Kernel *k)
{
    Arena scratch;
    arena_init(&scratch, first->arena->budget);
    Lower start = *first, l;
    start.arena = &scratch;
    begin(&start, k);
    start.loops.stay = first->loops.stay;
    start.task.most = first->task.most * PARTS_MOST;
    bool made = lower_all(&start, &l) != NULL;
    int64_t n = made ? l.tried.count / first->task.most + 1 : 0;
    arena_release(&scratch);
    return n;
}

/* Several programs. Where a piece of a sum is too long for one, all pieces are made smaller. */
static Kernel *lower_parts_of(Lower *first, const Kernel *k)
{
    uint32_t errors = first->ctx->diags.n_errors;
    bool none = false;
    Kernel *made = NULL;
    int64_t programs = programs_of(first, k);
    for (int64_t n = programs; n > 1 && n <= PARTS_MOST && made == NULL && !none;
         n += n / 8 + 1) {
        made = lower_pieces_of(first, k, n, 0, &none);
        none |= first->ctx->diags.n_errors > errors;
    }
    for (uint32_t halvings = 0; halvings < 64 && made == NULL && !none; halvings++) {
        made = lower_pieces_of(first, k, 0, halvings, &none);
        none |= first->ctx->diags.n_errors > errors;
    }
    if (made != NULL || first->ctx->diags.n_errors > errors) {
        return made;
    }
    begin(first, k);
    first->sums = NULL;
    return lower_split(first, true);
}

#define FEW    1500 /* instructions: loops are unrolled, and found again */
#define SLOWER 1.01 /* that loops that stay may be */

static bool has_loops(const Kernel *k)
{
    bool has = false;
    for (uint32_t i = 0; i < k->n_body; i++) {
        has |= k->body[i]->kind == STMT_FOR;
    }
    return has;
}

/* Has it complex numbers? */
static bool has_parts(const Kernel *k)
{
    bool has = false;
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        has |= buffer_has_parts(k, b);
    }
    return has;
}

/* Lowered and rolled; null: failed. *too_many: it is too long. */
static Kernel *lower_whole(const Lower *first, const Kernel *k, bool stay, bool *too_many)
{
    Lower start = *first, l;
    begin(&start, k);
    start.loops.stay = stay;
    Kernel *made = lower_all(&start, &l);
    *too_many = made == NULL && l.tried.too_many;
    if (made == NULL) {
        return NULL;
    }
    spill_warn_all(&l);
    Kernel *rolled = nki_roll(first->ctx, first->arena, made, first->chip, 1);
    return rolled == NULL ? made : rolled;
}

Kernel *nki_legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    const NkiChip *chip = nki_chip(target->name);
    Lower first = {.ctx = ctx, .arena = arena, .target = target, .chip = chip, .from = k};
    if (!lower_check(&first)) {
        return NULL;
    }
    first.task.most = target->machine->max_instructions;
    bool stay = has_loops(k) && !has_parts(k), too_many = false;
    Kernel *flat = lower_whole(&first, k, false, &too_many), *made = NULL;
    NkiCost a, b;
    bool few = flat != NULL && nki_cost(flat, chip, &a) && a.instructions <= FEW;
    if (stay && !few && (flat != NULL || too_many)) {
        made = lower_whole(&first, k, true, &too_many);
    }
    if (made != NULL && flat != NULL) {
        bool better = nki_measure(flat, chip, &a) && nki_measure(made, chip, &b) &&
                      b.predicted_us <= a.predicted_us * SLOWER;
        return better ? made : flat;
    }
    if (made != NULL || flat != NULL || !too_many) {
        return made != NULL ? made : flat;
    }
    first.loops.stay = stay;
    return lower_parts_of(&first, k);
}
