/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions on the Tensor engine. Labels are batch, rows (M), columns (N) or contracted (K).
 * K goes on partitions in pieces of at most 128 that accumulate into one PSUM tile; the operand
 * that has the result's contiguous label moves, so that results are stored in long rows. What
 * follows as an elementwise statement over the same positions is computed from the PSUM tile.
 * The order of tiles is that of blocks.c. */
#include "backend/nki/contract.h"
#include "backend/nki/evaluate.h"
#include "backend/nki/home.h"
#include "backend/nki/make.h"
#include "backend/nki/price.h"

static void add(Labels *x, uint32_t label)
{
    if (!labels_have(*x, label)) {
        x->at[x->n++] = (uint8_t)label;
    }
}

static Place operand_place(Lower *l, const Expr *e)
{
    while (e->kind == EXPR_OP) {
        e = e->arg[0];
    }
    return place_of(l, e->buf, e->at);
}

/* Labels of dst in the order of its dimensions that `x` has and `y` lacks. */
static Labels rows_of(const Place *dst, const Place *x, const Place *y, uint32_t n)
{
    Labels out = {0};
    for (uint32_t d = 0; d < dst->rank; d++) {
        for (uint32_t label = 0; label < n; label++) {
            if (place_coef(dst, d, label) != 0 && place_has(x, label) && !place_has(y, label)) {
                add(&out, label);
            }
        }
    }
    return out;
}

static bool classify(Contraction *c)
{
    for (uint32_t label = 0; label < c->l->now.n_labels; label++) {
        bool in_a = place_has(&c->stationary, label), in_b = place_has(&c->moving, label);
        bool out = place_has(&c->dst, label);
        if (out && in_a && in_b) {
            add(&c->batch, label);
        } else if (!out && in_a && in_b) {
            add(&c->k, label);
        } else if (!out || (!in_a && !in_b)) {
            return false; /* summed over one operand only: a reduction */
        }
    }
    c->m = rows_of(&c->dst, &c->stationary, &c->moving, c->l->now.n_labels);
    c->n = rows_of(&c->dst, &c->moving, &c->stationary, c->l->now.n_labels);
    return c->k.n > 0;
}

void contract_swap(Contraction *c)
{
    Place p = c->stationary;
    const Expr *of = c->of[0];
    c->stationary = c->moving;
    c->moving = p;
    c->of[0] = c->of[1];
    c->of[1] = of;
    Labels m = c->m;
    c->m = c->n;
    c->n = m;
}

/* The label of a block on chip that lies on partitions, or -1. */
static int32_t partition_label(const Lower *l, const Place *x)
{
    const Home *h = &l->home[x->buf];
    return h->on_chip && x->rank > 0 ? x->label[h->pdim] : -1;
}

/* Of the operands the one that moves has the result's contiguous label; a block on chip has one
 * of the other's on partitions. */
static void choose_roles(Contraction *c)
{
    Lower *l = c->l;
    int32_t want = partition_label(l, &c->final);
    if (l->home[c->final.buf].on_chip) {
        if (want >= 0 && labels_have(c->n, (uint32_t)want)) {
            contract_swap(c);
        }
        return;
    }
    int32_t last = -1;
    for (uint32_t d = 0; d < c->final.rank; d++) {
        for (uint32_t label = 0; label < l->now.n_labels; label++) {
            bool moves = place_coef(&c->final, d, label) != 0 && l->now.full.n[label] > 1;
            last = moves ? (int32_t)label : last;
        }
    }
    if (last >= 0 && labels_have(c->m, (uint32_t)last)) {
        contract_swap(c);
    }
}

/* The row that lies contiguous in the result, where there are others: on partitions, its elements would be stored one by one. */
static uint32_t stored_along(const Contraction *c)
{
    const Lower *l = c->l;
    uint32_t along = LABELS, others = 0;
    for (uint32_t i = 0; i < c->m.n && !l->home[c->final.buf].on_chip; i++) {
        bool unit = place_stride(l, &c->final, c->m.at[i]) == 1;
        along = unit ? c->m.at[i] : along;
        others += !unit && l->now.full.n[c->m.at[i]] > 1;
    }
    return others > 0 ? along : LABELS;
}

/* Which rows share a tile: the last ones as long as they fit, and a piece of one more; where
 * they go to a block on chip, `want` alone. */
static void share_rows(Contraction *c, int32_t want)
{
    Lower *l = c->l;
    int64_t count = 1, most = c->tile[ROLE_M];
    uint32_t beside = stored_along(c);
    for (uint32_t i = c->m.n; i-- > 0;) {
        uint32_t label = c->m.at[i];
        bool fits = c->pm.n == 0 || count * l->now.full.n[label] <= most;
        bool alone = l->home[c->final.buf].on_chip;
        bool row = (int32_t)label == want || label + 1 == c->with;
        if (label != beside && (alone ? row : fits)) {
            add(&c->pm, label);
            count *= l->now.full.n[label];
        }
    }
    bool cut = !l->home[c->final.buf].on_chip && l->now.part < 0 && count * 2 <= most;
    Labels pm = {0};
    for (uint32_t i = 0; i < c->m.n; i++) {
        bool share = cut && c->m.at[i] != beside; /* a piece of one more label */
        if (share || labels_have(c->pm, c->m.at[i])) {
            add(&pm, c->m.at[i]);
        } else {
            add(&c->om, c->m.at[i]);
        }
    }
    c->pm = pm;
}

/* The first of the contracted labels: the longest, or the one that a block on chip has on
 * partitions. */
static uint32_t first_k(const Contraction *c)
{
    const Lower *l = c->l;
    int32_t fixed = partition_label(l, &c->stationary);
    if (fixed < 0 || !labels_have(c->k, (uint32_t)fixed)) {
        fixed = partition_label(l, &c->moving);
    }
    if (fixed >= 0 && labels_have(c->k, (uint32_t)fixed)) {
        return (uint32_t)fixed;
    }
    uint32_t best = c->k.at[(int32_t)c->k.at[0] == l->now.turned && c->k.n > 1];
    for (uint32_t i = 0; i < c->k.n; i++) {
        bool whole = (int32_t)c->k.at[i] != l->now.turned; /* parts are never on partitions */
        if (whole && l->now.full.n[c->k.at[i]] > l->now.full.n[best]) {
            best = c->k.at[i];
        }
    }
    return best;
}

/* Does the label move along rows of HBM of which another takes every n-th element? Taken one by one, all its positions find these in one
 * longer row (view.c). */
static bool is_stepped(const Contraction *c, uint32_t label)
{
    const Place *x[2] = {&c->stationary, &c->moving};
    bool stepped = false;
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t last = x[side]->rank - 1;
        for (uint32_t i = 0; i < x[side]->n_terms; i++) {
            const PlaceTerm *t = &x[side]->term[i];
            stepped |= t->dim == last && t->coef > 1 && t->label != label &&
                       place_coef(x[side], last, label) != 0;
        }
    }
    return stepped;
}

/* Does the block on chip, if it is one, lie with a contracted label on partitions? Else it is transposed. */
static bool lies_by_k(const Contraction *c, const Place *x)
{
    int32_t on = partition_label(c->l, x);
    return on >= 0 && labels_have(c->k, (uint32_t)on);
}

/* Of a block on chip that is transposed, the contracted label whose elements lie side by side; otherwise `best`. */
static uint32_t k_of_transposed(const Contraction *c, uint32_t best)
{
    const Place *side[2] = {&c->stationary, &c->moving};
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < 2; i++) {
        const Home *h = &c->l->home[side[i]->buf];
        for (uint32_t d = 0; d < side[i]->rank && h->on_chip; d++) {
            int32_t label = side[i]->label[d];
            bool k = label >= 0 && labels_have(c->k, (uint32_t)label);
            if (k && d != h->pdim && h->stride[d] < least && label != c->l->now.turned) {
                least = h->stride[d];
                best = (uint32_t)label;
            }
        }
    }
    return best;
}

/* Do pieces of the labels on partitions lie side by side in a block that is transposed? */
static bool transposed_lies_so(const Contraction *c, const Place *x)
{
    Lower *l = c->l;
    if (!l->home[x->buf].on_chip) {
        return true;
    }
    Box box = l->now.full;
    int64_t step[LABELS];
    TileView run = {0};
    box_steps(c->pk, &l->now.full, c->tile[ROLE_K], step);
    return box_next(c->pk, &l->now.full, step, &box, true) && x->n_terms == 0 &&
           view_block_run(l, x, c->pk, &box, &run) && run.step == 1;
}

/* Contracted labels that lie on partitions with `best` while they fit, none where a block on `chip` has it there alone. */
static void share_k_among(Contraction *c, uint32_t best, bool chip)
{
    Lower *l = c->l;
    int64_t most = c->tile[ROLE_K];
    int64_t count = l->now.full.n[best];
    Labels with = labels_one(best);
    for (uint32_t i = 0; i < c->k.n && !chip; i++) {
        uint32_t label = c->k.at[i];
        if (label != best && (int32_t)label != l->now.turned && !is_stepped(c, label) &&
            count * l->now.full.n[label] <= most) {
            add(&with, label);
            count *= l->now.full.n[label];
        }
    }
    for (uint32_t i = 0; i < c->k.n && !chip && l->now.part < 0; i++) {
        uint32_t label = c->k.at[i];
        if (!labels_have(with, label) && (int32_t)label != l->now.turned &&
            !is_stepped(c, label) && count * 2 <= most) {
            add(&with, label); /* a piece of one more label, in front of the others */
            add(&c->pk, label);
            count = most;
        }
    }
    for (uint32_t d = 0; d < c->moving.rank; d++) { /* in the order they lie */
        for (uint32_t label = 0; label < l->now.n_labels; label++) {
            if (place_coef(&c->moving, d, label) != 0 && labels_have(c->k, label)) {
                add(labels_have(with, label) ? &c->pk : &c->ok, label);
            }
        }
    }
}

/* Which contracted labels lie on partitions together with `best`. A block on chip has one there, unless it is transposed. */
static void share_k(Contraction *c, uint32_t best)
{
    Lower *l = c->l;
    bool chip = l->home[c->stationary.buf].on_chip || l->home[c->moving.buf].on_chip;
    bool lies = lies_by_k(c, &c->stationary) || lies_by_k(c, &c->moving);
    if (chip && !lies && l->now.part < 0) {
        share_k_among(c, k_of_transposed(c, best), false);
        if (transposed_lies_so(c, &c->stationary) && transposed_lies_so(c, &c->moving)) {
            return;
        }
        c->pk = c->ok = (Labels){0};
    }
    share_k_among(c, best, chip);
}

/* ---- levels ---- */

static Labels labels_reversed(uint32_t n, const uint32_t *label)
{
    Labels out = {0};
    while (n-- > 0) {
        add(&out, label[n]);
    }
    return out;
}

/* Labels by role as the statement says, in the order in which it has them. */
static void obey_roles(Contraction *c)
{
    const Schedule *b = c->levels;
    if (!labels_have(c->m, b->label[ROLE_M][0])) {
        contract_swap(c);
    }
    c->m = labels_reversed(b->n_labels[ROLE_M], b->label[ROLE_M]);
    c->n = labels_reversed(b->n_labels[ROLE_N], b->label[ROLE_N]);
    c->k = (Labels){0};
    for (uint32_t i = 0; i < b->n_labels[ROLE_K]; i++) {
        add(&c->k, b->label[ROLE_K][i]);
    }
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        const ScheduleLevel *level = schedule_innermost(b, r);
        c->tile[r] = level != NULL && level->tile < c->tile[r] ? level->tile : c->tile[r];
    }
    share_rows(c, (int32_t)b->label[ROLE_M][0]);
    bool lies = lies_by_k(c, &c->stationary) || lies_by_k(c, &c->moving);
    share_k(c, lies && !b->given ? first_k(c) : c->k.at[0]);
}

bool contract_refuse(Contraction *c, const char *why)
{
    Lower *l = c->l;
    if (!l->tried.failed) {
        diag_unsupported(&l->ctx->diags, E_TARGET, c->s->span,
                         "levels of a contraction: target '%s' %s", l->target->name, why);
    }
    l->tried.failed = true;
    return false;
}

void contract_places(Contraction *c)
{
    c->stationary = operand_place(c->l, c->of[0]);
    c->moving = operand_place(c->l, c->of[1]);
}

bool contract_begin(Contraction *c)
{
    Lower *l = c->l;
    const Expr *product = nki_bare(c->s->value);
    c->dst = c->final = place_of(l, c->s->dst, c->s->at);
    c->of[0] = product->arg[0];
    c->of[1] = product->arg[1];
    contract_places(c);
    DType type = l->from->bufs.at[c->stationary.buf].dtype;
    bool typed = type == l->from->bufs.at[c->moving.buf].dtype && dtype_is_float(type);
    return c->s->fold == OP_SUM && typed && classify(c);
}

void contract_refresh(Contraction *c)
{
    contract_places(c);
    if (c->reader != NULL) {
        contract_take_epilogue(c); /* `dst` is nowhere */
    } else {
        c->dst = c->final = place_of(c->l, c->s->dst, c->s->at);
    }
}

void contract_finish(Contraction *c, Labels result, const Box *box, TileView psum)
{
    Lower *l = c->l;
    if (psum_has(l, c->final.buf)) {
        retry_copied(l, c->final.buf); /* it was made elsewhere */
        return;
    }
    if (c->epilogue != NULL) {
        Evaluation ev = {l, c->pm, result, box, c->dst.buf, psum, false};
        DType t = l->from->bufs.at[c->final.buf].dtype;
        TileView v = evaluate(&ev, c->epilogue_value, t, NULL);
        view_store(l, &c->final, c->pm, result, box, v);
        return;
    }
    if (!c->overwrite) {
        TileView old = view_of(l, &c->dst, c->pm, result, box);
        bool there = old.buf == l->home[c->dst.buf].buf && c->final.buf == c->dst.buf;
        TileView sum =
            there ? old : tile_new(l, "sum", view_dtype(l, old), SPACE_TILE, psum.np, psum.nf);
        const Expr *pair[2] = {view_load(l, psum, DTYPE_F32), view_load(l, old, DTYPE_F32)};
        make_map(l, sum, expr_op(l->arena, OP_ADD, DTYPE_F32, 2, pair));
        if (there) {
            l->home[c->dst.buf].version++;
            return;
        }
        psum = sum;
    }
    view_store(l, &c->final, c->pm, result, box, psum);
}

void contract_shape(Contraction *c)
{
    Lower *l = c->l;
    if (c->reader != NULL) {
        contract_take_epilogue(c);
        bool copies = expr_uncast(c->epilogue_value)->kind == EXPR_LOAD;
        c->epilogue = copies ? NULL : c->reader; /* emptying a tile casts */
    }
    const ContractionTiles *t = &l->target->machine->tile;
    c->tile[ROLE_M] = t->rows;
    c->tile[ROLE_N] = t->line / dtype_bytes(DTYPE_F32);
    c->tile[ROLE_K] = t->sum;
    c->levels = c->s->schedule;
    if (c->levels != NULL) {
        obey_roles(c);
    } else {
        choose_roles(c);
        share_rows(c, partition_label(l, &c->final));
        share_k(c, first_k(c));
    }
}

Labels contract_outer(const Contraction *c, int64_t *each)
{
    const Box *full = &c->l->now.full;
    Labels outer = labels_as_placed(c->l, &c->final, labels_join(c->batch, c->om), (Labels){0});
    int64_t columns = labels_count(c->n, full);
    box_steps(outer, full, columns < c->tile[ROLE_N] ? c->tile[ROLE_N] / columns : 1, each);
    return outer;
}

#define MIRROR_CYCLES 4096 /* of the Tensor engine: saved by less, a mirror image costs more */

bool contract_is_mirrored(const Contraction *c)
{
    const Place *a = &c->stationary, *b = &c->moving;
    const Lower *l = c->l;
    if (c->pm.n != 1 || c->n.n != 1 || c->om.n > 0 || !c->overwrite || c->epilogue != NULL ||
        l->home[c->final.buf].on_chip || a->buf != b->buf || c->final.buf == a->buf ||
        a->n_terms + b->n_terms + c->final.n_terms > 0 || l->now.part >= 0 ||
        l->now.turned >= 0) {
        return false;
    }
    int32_t i = c->pm.at[0], j = c->n.at[0];
    for (uint32_t d = 0; d < a->rank; d++) {
        int32_t want = a->label[d] == i ? j : a->label[d];
        bool moves = c->final.moves != NULL || !place_moves_eq(a, b, d) ||
                     (a->label[d] == i && a->moves != NULL && a->moves[d].n > 0);
        if (moves || a->base[d] != b->base[d] || b->label[d] != want) {
            return false;
        }
    }
    const Box *full = &l->now.full;
    double n = (double)full->n[i];
    int64_t steps = (labels_count(c->pk, full) + c->tile[ROLE_K] - 1) / c->tile[ROLE_K] *
                    labels_count(c->ok, full);
    DType t = l->from->bufs.at[a->buf].dtype;
    int64_t bank = NKI_PSUM_BANK / dtype_bytes(DTYPE_F32);
    double product = (double)steps * price_array(l->chip, t, (double)bank, false) *
                     NKI_STATIONARY / (double)bank;
    double transpose = price_array(l->chip, DTYPE_F32, NKI_STATIONARY, true);
    double tiles = n * n / (2 * NKI_STATIONARY * NKI_STATIONARY);
    double saved = (product - transpose) * tiles; /* cycles */
    return full->s[i] == full->s[j] && full->n[i] == full->n[j] &&
           full->n[i] > NKI_STATIONARY && saved >= MIRROR_CYCLES;
}

int64_t contract_matmuls(const Contraction *c)
{
    const Labels by_role[ROLE_K + 1] = {[ROLE_M] = c->m, [ROLE_N] = c->n, [ROLE_K] = c->k};
    int64_t n = labels_count(c->batch, &c->l->now.full);
    for (ScheduleRole r = 0; r <= ROLE_K; r++) {
        int64_t count = labels_count(by_role[r], &c->l->now.full);
        n = sat_mul(n, (count + c->tile[r] - 1) / c->tile[r]);
    }
    return n;
}

#define MIRRORED_MOST 256 /* matmuls of a mirrored result whose blocks are no loops */

bool contract_is_small_mirror(const Contraction *c)
{
    return contract_is_mirrored(c) && contract_matmuls(c) <= MIRRORED_MOST;
}
