/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses other roles for a contraction's labels where those of the nest make for short runs in HBM: which operand has the rows, and the
 * order of the sums. Or no matmul at all, but products on the Vector engine, which suit small batches. The nest chooses by traffic and by
 * what it packs, and does not know what a short run costs. Another choice is taken if its DMAs and engines (price.h) need much less time. */
#include "backend/nki/blocks.h"
#include "backend/nki/roles.h"
#include "backend/nki/statement.h"
#include "backend/nki/view.h"

#define MUCH     0.6   /* of the time */
#define MATVEC   0.75  /* the same of a matrix times a vector, whose rows fill partitions */
#define VECTOR   0.75  /* the same of the Vector engine, which takes fewer instructions */
#define TURNED   0.3   /* of the time, where blocks on chip are turned for it */
#define TOGETHER 65536 /* bytes of a partition */

static Labels reversed(Labels x)
{
    Labels out = {0};
    for (uint32_t i = x.n; i-- > 0;) {
        out.at[out.n++] = x.at[i];
    }
    return out;
}

static const uint32_t *as_list(Lower *l, Labels x)
{
    uint32_t *list = ARENA_ARRAY(l->arena, x.n + 1, uint32_t);
    for (uint32_t i = 0; i < x.n; i++) {
        list[i] = x.at[i];
    }
    return list;
}

static void take_steps(Box *box, Labels x, const Box *full, int64_t most, int64_t *tiles)
{
    int64_t step[LABELS];
    box_steps(x, full, most, step);
    for (uint32_t i = 0; i < x.n; i++) {
        box->n[x.at[i]] = step[i] < full->n[x.at[i]] ? step[i] : full->n[x.at[i]];
    }
    *tiles = box_count(x, full, step);
}

/* The labels of a view: with the outer ones, where all of these are loaded at once (block_plan.c). */
static Labels together(const Contraction *c, const Place *x, Labels outer, Labels own)
{
    const Lower *l = c->l;
    Labels here = {0};
    int64_t size = dtype_bytes(l->from->bufs.at[x->buf].dtype);
    for (uint32_t i = 0; i < outer.n; i++) {
        if (place_has(x, outer.at[i])) {
            here.at[here.n++] = outer.at[i];
        }
    }
    Labels all = labels_join(here, own);
    bool fits =
        !l->home[x->buf].on_chip && sat_mul(labels_count(all, &l->now.full), size) <= TOGETHER;
    return fits ? labels_as_placed(l, x, here, own) : own;
}

/* An operand in views of its own labels, of which one is the box. What lies between two positions of the contiguous label is taken again
 * from the same rows, where these are still in SBUF. */
static void add_operand(const Contraction *c, const Place *x, Labels outer, Labels own,
                        Labels slab, const Box *box, EngineLoad *to)
{
    Lower *l = c->l;
    Box full = l->now.full;
    uint32_t unit = view_unit(l, x);
    double between = 1;
    bool around = unit < LABELS && labels_have(outer, unit);
    bool here = false;
    for (uint32_t i = own.n; i-- > 0 && !here;) { /* those that go on before it does */
        here = own.at[i] == unit;
        between *= here ? 1 : (double)full.n[own.at[i]];
    }
    for (uint32_t i = outer.n; i-- > 0 && around && outer.at[i] != unit;) {
        between *= place_has(x, outer.at[i]) ? (double)full.n[outer.at[i]] : 1;
    }
    if (around) {
        between *= (double)labels_count(c->ok, &full) * (double)labels_count(c->pk, &full) /
                   (double)labels_count(c->pk, box);
    }
    shape_add_access(l, x, c->pk, slab, box, place_elements(l, x), here || around ? between : 0,
                     false, to);
}

double contract_price(const Contraction *c, int64_t collected)
{
    Lower *l = c->l;
    const Box *full = &l->now.full;
    EngineLoad all = {0};
    Labels outer = labels_as_placed(l, &c->final, labels_join(c->batch, c->om), (Labels){0});
    Box box = *full, group = *full;
    int64_t rows, columns, sums, groups;
    for (uint32_t label = 0; label < l->now.n_labels; label++) {
        box.n[label] = 1;
    }
    take_steps(&box, c->pm, full, c->tile[ROLE_M], &rows);
    take_steps(&box, c->n, full, c->tile[ROLE_N], &columns);
    take_steps(&box, c->pk, full, c->tile[ROLE_K], &sums);
    double wide = (double)labels_count(c->n, full) / (double)columns;
    double matmuls = (double)rows * (double)columns * (double)sums *
                     (double)labels_count(c->ok, full) * (double)labels_count(outer, full);
    DType of = l->from->bufs.at[c->moving.buf].dtype;
    all.tensor += matmuls * price_array(l->chip, of, wide, false);
    const Place *x[2] = {&c->stationary, &c->moving};
    for (uint32_t side = 0; side < 2; side++) {
        Box at = box;
        const Labels own[2] = {c->pm, c->n};
        for (uint32_t i = 0; i < own[1 - side].n; i++) {
            at.n[own[1 - side].at[i]] = 1;
        }
        Labels slab = together(c, x[side], outer, own[side]);
        for (uint32_t i = 0; i < slab.n; i++) {
            bool of_all = labels_have(outer, slab.at[i]);
            at.n[slab.at[i]] = of_all ? full->n[slab.at[i]] : at.n[slab.at[i]];
        }
        add_operand(c, x[side], outer, own[side], slab, &at, &all);
    }
    int64_t each = labels_count(c->n, &box),
            most = each < c->tile[ROLE_N] ? c->tile[ROLE_N] / each : 1;
    take_steps(&group, outer, full, columns > 1 || collected > 0 ? 1 : most, &groups);
    for (uint32_t i = 0; i < c->n.n; i++) {
        group.n[c->n.at[i]] = box.n[c->n.at[i]];
    }
    Labels result = labels_as_placed(l, &c->final, outer, c->n);
    double kept = place_elements(l, &c->final);
    double banks = (double)rows * (double)columns * (double)groups;
    all.either += banks * ((double)labels_count(result, &group) + NKI_LEAST_CYCLES);
    const Home *h = &l->home[c->final.buf];
    int32_t on = h->on_chip && c->final.rank > 0 ? c->final.label[h->pdim] : -1;
    if (on >= 0 && !labels_have(c->pm, (uint32_t)on)) { /* tiles are turned into their block */
        double turned = (double)(full->n[on] < NKI_PARTITIONS ? full->n[on] : NKI_PARTITIONS);
        double pieces = kept / (double)labels_count(c->pm, full) / turned;
        all.tensor += pieces * price_array(l->chip, DTYPE_F32, NKI_LEAST_CYCLES, true);
        all.either += pieces * NKI_LEAST_CYCLES;
    }
    int64_t run = view_run(l, &c->final, result, &group),
            size = dtype_bytes(l->from->bufs.at[c->final.buf].dtype);
    double bytes = (double)(run * size);
    for (uint32_t i = 0; i < c->pm.n; i++) {
        if (full->n[c->pm.at[i]] > 1 && place_stride(l, &c->final, c->pm.at[i]) == 1) {
            bytes = (double)size;
        }
    }
    bytes = collected > 0 ? (double)(collected * size) : bytes;
    all.descriptors += price_descriptors(kept, bytes / (double)size, size);
    return price_beside(l->chip, &all);
}

/* The schedule of a way, as nest/systolic.c makes levels: banks as where all waits. */
static const Schedule *schedule_of(const Contraction *c, const Labels *label)
{
    Lower *l = c->l;
    Schedule *b = ARENA_NEW(l->arena, Schedule);
    ScheduleLevel *level = ARENA_ARRAY(l->arena, STRIP_LEVELS, ScheduleLevel);
    *b = (Schedule){.level = level};
    int64_t count[ROLE_COUNT];
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        b->n_labels[r] = label[r].n;
        b->label[r] = as_list(l, label[r]);
        count[r] = labels_count(label[r], &l->now.full);
    }
    Strips x = schedule_strips_on(l->target->machine, l->target->machine->systolic.live_busy);
    const Place *place[2] = {&c->stationary, &c->moving};
    int64_t boxes[ROLE_BATCH];
    for (ScheduleRole r = 0; r < ROLE_BATCH; r++) {
        int64_t extent[LABELS];
        for (uint32_t i = 0; i < label[r].n; i++) {
            extent[i] = l->now.full.n[label[r].at[i]];
        }
        boxes[r] = schedule_boxes(label[r].n, extent, x.tile[r]);
    }
    for (ScheduleRole r = 0; r < ROLE_K; r++) {
        const Buffer *of = &l->from->bufs.at[place[r]->buf];
        x.tiles[r] = boxes[r];
        x.bytes[r] = l->home[place[r]->buf].on_chip
                         ? 0
                         : (double)sat_mul(boxes[ROLE_K], x.tile[ROLE_K]) * (double)count[r] *
                               (double)dtype_bytes(of->dtype);
    }
    b->n_levels = schedule_strips(&x, level);
    return b;
}

/* The schedule of other roles that takes least, less than *ns, or null: either operand stationary, and sums in either order. */
static const Schedule *other_roles(const Contraction *c, const Stmt *epilogue, double *ns)
{
    const Schedule *best = NULL;
    for (uint32_t way = 0; way < 4; way++) {
        Stmt as = *c->s;
        Contraction o = {.l = c->l, .s = &as, .reader = epilogue, .overwrite = as.begins};
        const Labels label[ROLE_COUNT] = {[ROLE_M] = reversed(way < 2 ? c->m : c->n),
                                          [ROLE_N] = reversed(way < 2 ? c->n : c->m),
                                          [ROLE_K] = way % 2 == 0 ? c->k : reversed(c->k),
                                          [ROLE_BATCH] = reversed(c->batch)};
        if (label[ROLE_M].n == 0 || !contract_begin(&o)) {
            continue;
        }
        if (!labels_have(o.m, label[ROLE_M].at[0])) {
            contract_swap(&o);
        }
        as.schedule = schedule_of(&o, label);
        contract_shape(&o);
        double takes = contract_price(&o, 0);
        best = takes < *ns ? as.schedule : best;
        *ns = takes < *ns ? takes : *ns;
    }
    return best;
}

/* Is it in HBM, or a block on chip with the same label on partitions, or one that is turned? */
static bool lies_so(const Lower *l, const Place *x, const Shape *s, bool *turns)
{
    const Home *h = &l->home[x->buf];
    if (!h->on_chip) {
        return true;
    }
    int32_t label = x->rank > 0 ? x->label[h->pdim] : -1;
    if (label < 0 || (s->p.n == 1 && label == (int32_t)s->p.at[0])) {
        return label >= 0;
    }
    *turns = true;
    return labels_have(shape_free(s), (uint32_t)label);
}

/* The statement with levels for the roles that its labels have. */
static const Stmt *with_levels(Contraction *c)
{
    const Labels label[ROLE_COUNT] = {[ROLE_M] = labels_join(reversed(c->pm), reversed(c->om)),
                                      [ROLE_N] = reversed(c->n),
                                      [ROLE_K] = labels_join(c->pk, c->ok),
                                      [ROLE_BATCH] = reversed(c->batch)};
    Stmt *as = arena_copy(c->l->arena, c->s, sizeof *c->s);
    as->schedule = schedule_of(c, label);
    return as;
}

/* Are operands and result all outside of the chip? */
static bool in_memory(const Contraction *c)
{
    const Home *home = c->l->home;
    return !home[c->stationary.buf].on_chip && !home[c->moving.buf].on_chip &&
           !home[c->final.buf].on_chip;
}

const Stmt *lower_roles(Lower *l, const Stmt *s, const Stmt *epilogue, uint32_t *staged)
{
    *staged = LABELS;
    Contraction c = {.l = l, .s = s, .reader = epilogue, .overwrite = s->begins};
    bool none = s->schedule != NULL && (s->schedule->n_levels == 0 || s->schedule->given);
    bool complex = l->now.part >= 0 && s->schedule == NULL && !place_is_flat(l, s);
    if (complex && contract_begin(&c) && !l->tried.failed && c.m.n > 0 && c.n.n > 0) {
        contract_shape(&c);
        double least = MUCH * contract_price(&c, 0);
        *staged = in_memory(&c) && epilogue == NULL ? stage_row(l, s, &least) : LABELS;
        return *staged < LABELS ? s : with_levels(&c);
    }
    if (none || place_is_flat(l, s) || l->now.part >= 0 || l->now.turned >= 0 ||
        !contract_begin(&c) || l->tried.failed) {
        return s;
    }
    contract_shape(&c);
    bool memory = in_memory(&c);
    double now = contract_price(&c, 0), vector = 0;
    bool matvec = c.m.n == 0 || c.n.n == 0;
    double roles = (matvec ? MATVEC : MUCH) * now;
    /* how a block lies was chosen for the roles that it has */
    const Schedule *other = memory ? other_roles(&c, epilogue, &roles) : NULL;
    Place dst = lower_target(l, s);
    Shape shape = statement_shape(l, &dst, s->value, l->now.n_labels);
    vector = lower_map_ns(l, s);
    bool turns = false;
    bool straight = lies_so(l, &dst, &shape, &turns) &&
                    lies_so(l, &c.stationary, &shape, &turns) &&
                    lies_so(l, &c.moving, &shape, &turns);
    straight &= !turns || vector < TURNED * now;
    Stmt *as = arena_copy(l->arena, s, sizeof *s);
    double most = other == NULL ? VECTOR * now : roles;
    straight &= vector < most;
    double least = straight ? vector : roles;
    *staged = memory && epilogue == NULL ? stage_row(l, s, &least) : LABELS;
    if (*staged < LABELS) {
        return s;
    }
    if (straight) {
        as->schedule = ARENA_NEW(l->arena, Schedule);
        return as;
    }
    if (other == NULL && s->schedule == NULL && memory && !matvec) {
        return with_levels(&c); /* loops have levels */
    }
    as->schedule = other;
    return other == NULL ? s : as;
}
