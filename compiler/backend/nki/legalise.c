/* SPDX-License-Identifier: Apache-2.0 */
/* TILED -> LEGAL for NKI: one device program where that is short enough, else several; then
 * loops are made of what was unrolled. */
#include "backend/nki/cores.h"
#include "backend/nki/legalise.h"
#include "backend/nki/lower_stmt.h"
#include "backend/nki/part.h"
#include "loop/repeats.h"
#include "lower/lower.h"
#include "tile/double_word.h"

static void begin(Lower *l, const Kernel *k)
{
    k = tile_double_words(l->ctx, l->arena, k, &l->sums, &l->words_why, &l->words_where);
    l->from = k;
    pair_find(l);
    l->tried.away = ARENA_ARRAY(l->arena, k->bufs.n + 1, bool);
    gathers_mark(k, l->tried.away);
    l->tried.copied = ARENA_ARRAY(l->arena, k->bufs.n + 1, bool);
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
    const Kernel *pieces = tile_pieces(first->ctx, first->arena, k, n, halvings, &sums);
    *none = pieces == NULL;
    if (*none) {
        return NULL;
    }
    first->sums = sums;
    begin(first, pieces);
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
    start.task.most = first->task.most * PARTS_MOST;
    bool made = lower_all(&start, &l) != NULL;
    int64_t n = made ? l.tried.count / first->task.most + 1 : 0;
    arena_release(&scratch);
    return n;
}

/* Programs of pieces of its sums. Where a piece is too long for one, all pieces are made smaller. */
static Kernel *lower_in_pieces(Lower *first, const Kernel *k)
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
    return made;
}

/* Several programs, of the first form that can be cut: as it is, each statement in loops of its own, or with rows first. What is wrong with a
 * form that is not the last is not said. */
static Kernel *lower_parts_of(Lower *first, const Kernel *k)
{
    Ctx *ctx = first->ctx;
    uint32_t errors = ctx->diags.n_errors;
    Kernel *made = lower_in_pieces(first, k);
    if (made != NULL || ctx->diags.n_errors > errors) {
        return made;
    }
    const Kernel *forms[3] = {k};
    uint32_t n = 1;
    forms[n] = tile_distribute(ctx, first->arena, k);
    n += forms[n] != NULL;
    forms[n] = tile_rows_first(ctx, first->arena, k);
    n += forms[n] != NULL;
    for (uint32_t i = 0; i < n && made == NULL && ctx->diags.n_errors == errors; i++) {
        Diags before = ctx->diags;
        made = i > 0 ? lower_in_pieces(first, forms[i]) : NULL;
        if (made == NULL) {
            ctx->diags = before;
            first->sums = NULL;
            begin(first, forms[i]);
            made = lower_split(first, i + 1 == n);
        }
        if (made == NULL && i > 0 && i + 1 < n) {
            ctx->diags = before;
        }
    }
    return made;
}

#define MOVED       0.1  /* of the time of copies */
#define WAITS       1.4  /* times as long as the engine that has most to do is busy ... */
#define WAITS_US    100  /* ... and so long */
#define COMPUTES    2    /* times as long as its copies */
#define MOVES_MOST  4    /* times what it must move */
#define STAGES      0.97 /* stages take so much of the time, */
#define STAGES_LONG 0.8  /* or of a text that people would read, and then would not */
#define LATE        0.98 /* or loads that come late */
#define STAGES_WAIT 1.1  /* as WAITS, for these */
#define STAGES_US   15
#define NEAR        1.1  /* times as long: stages may make up for that */
#define DISTRIBUTED 0.84 /* values go through memory where that takes so much of the time */
#define APART       0.9  /* the same where there are several programs anyway */
#define LINE        3e-4 /* of the time is worth a statement less in the text */
#define LONG        150  /* statements of a text ... */
#define SLOWER      1.1  /* ... that must be so much faster */
#define ENDLESS     400
#define WORSE       1.2 /* ... and so much faster again */
#define LINES       130 /* of a text, and some around it, that people read */

static bool has_loops(const Kernel *k)
{
    bool has = false;
    for (uint32_t i = 0; i < k->n_body; i++) {
        has |= k->body[i]->kind == STMT_FOR;
    }
    return has;
}

static Kernel *rolled(const Lower *l, Kernel *made, uint32_t parts)
{
    Kernel *in_loops = nki_roll(l->ctx, l->arena, made, l->chip, parts);
    return in_loops == NULL ? made : in_loops;
}

static void measure_it(const Lower *l, Kernel *k, Lowered *out)
{
    out->kernel = k;
    if (!nki_measure(k, l->chip, &out->cost)) {
        out->cost = (NkiCost){0}; /* the verifier says why */
    }
    if (out->cost.bound_by == NKI_VECTOR) {
        out->kernel = lower_vector_passes(l, k, &out->cost);
    }
}

/* Do the engines wait for each other much? */
static bool engines_wait(const NkiCost *cost, double times, double us)
{
    return cost->predicted_us > times * cost->busy_us[cost->bound_by] &&
           cost->predicted_us > us;
}

/* Does it take much longer than what it moves? */
static bool moves_little(const NkiCost *cost)
{
    return cost->predicted_us > COMPUTES * cost->busy_us[NKI_DMA] &&
           cost->predicted_us > WAITS_US;
}

/* Is it about as long as what it moves, and moves it not much more than it must? Then it is one program rather than several, which keep
 * more on chip. */
static bool moves_enough(const NkiCost *cost)
{
    return cost->predicted_us <= COMPUTES * cost->busy_us[NKI_DMA] &&
           cost->read_bytes + cost->written_bytes <= MOVES_MOST * cost->compulsory_bytes;
}

/* Lines of the text, but for those around it. */
static uint32_t count_lines(Stmt *const *body, uint32_t n)
{
    uint32_t lines = n;
    for (uint32_t i = 0; i < n; i++) {
        lines += stmt_has_body(body[i]) ? count_lines(body[i]->body, body[i]->n_body) : 0;
    }
    return lines;
}

/* How much of the time may stages take? */
static double stages_most(const Kernel *before, const Kernel *after)
{
    bool was = count_lines(before->body, before->n_body) > LINES;
    return count_lines(after->body, after->n_body) > LINES && !was ? STAGES_LONG : STAGES;
}

/* Predicted time, with a penalty for long texts and for DMA bytes. */
static double lower_price(const Lowered *w)
{
    double us = w->cost.predicted_us;
    us *= 1 + LINE * instr_places(w->kernel);
    us *= instr_places(w->kernel) > LONG ? SLOWER : 1.0;
    us *= instr_places(w->kernel) > ENDLESS ? WORSE : 1.0;
    return us + MOVED * w->cost.busy_us[NKI_DMA];
}

/* Its loops in stages and its loads later, where that takes less time. */
static void schedule_loops(const Lower *l, Kernel *k, Staging how, Lowered *out)
{
    if (!has_loops(k) || !engines_wait(&out->cost, STAGES_WAIT, STAGES_US)) {
        return;
    }
    const NkiCost plain = out->cost;
    Kernel *stages = lower_in_stages(l->ctx, l->arena, l->chip, k, &how);
    Lowered other = *out;
    if (stages != NULL) {
        measure_it(l, stages, &other);
        double most = stages_most(out->kernel, other.kernel) * lower_price(out);
        if (other.cost.predicted_us > 0 && lower_price(&other) < most) {
            *out = other;
            out->stages = how;
        }
    }
    Lowered jammed = *out;
    jammed.cost = plain;
    jammed.kernel = lower_interleaved(l, k, &jammed.cost);
    if (jammed.kernel != NULL && lower_price(&jammed) < lower_price(out)) {
        jammed.stages = (Staging){0};
        *out = jammed;
    }
    other = *out;
    other.kernel = lower_late_loads(l->arena, out->kernel);
    if (other.kernel != NULL && nki_measure(other.kernel, l->chip, &other.cost) &&
        lower_price(&other) < LATE * lower_price(out)) {
        *out = other;
    }
}

static bool fits_chip(const Lower *l, const Lowered *w)
{
    return w->cost.predicted_us > 0 && w->cost.sbuf_peak <= l->chip->sbuf_bytes &&
           w->cost.psum_peak <= NKI_PSUM_BANKS;
}

/* Is it too long for stages to make up for? */
static bool far_behind(const Lowered *w, const Lowered *other)
{
    return lower_price(w) > NEAR * lower_price(other);
}

/* The best form of a kernel so far, of several with the same results, each of which holds tiles longer than those before it. */
typedef struct Forms {
    Kernel *kernel;
    Lowered plain;  /* its cost before its loops are in stages */
    Lowered *out;   /* its cost and text: those of `plain` until `scheduled` */
    bool scheduled; /* its loops are in stages, since another form came near it */
    Staging how;
} Forms;

/* Takes the other form, if there is one, where that takes no longer. */
static void take_form(const Lower *l, Forms *forms, Kernel *other)
{
    if (other == NULL) {
        return;
    }
    Lowered plain = forms->plain;
    measure_it(l, other, &plain);
    if (!fits_chip(l, &plain) || far_behind(&plain, &forms->plain)) {
        return;
    }
    Lowered staged = plain;
    bool better = far_behind(&forms->plain, &plain);
    if (!better) {
        if (!forms->scheduled) {
            schedule_loops(l, forms->kernel, forms->how, forms->out);
        }
        schedule_loops(l, other, forms->how, &staged);
        forms->scheduled = true;
        better = fits_chip(l, &staged) && lower_price(&staged) <= lower_price(forms->out);
    } else {
        forms->scheduled = false; /* the new best form as it was made */
    }
    if (better) {
        forms->kernel = other;
        forms->plain = plain;
        *forms->out = staged;
    }
}

void lower_finish(const Lower *l, Kernel *made, uint32_t parts, bool measure, Lowered *out)
{
    Staging how = out->stages;
    Kernel *k = rolled(l, made, parts);
    out->kernel = k;
    out->stages = (Staging){0};
    if (!measure) {
        return;
    }
    measure_it(l, k, out);
    Forms forms = {k, *out, out, false, how};
    take_form(l, &forms, kernel_without_repeats(l->arena, k));
    take_form(l, &forms, lower_bank_copies(l, forms.kernel));
    take_form(l, &forms, lower_joined_loads(l, forms.kernel));
    if (!forms.scheduled) {
        schedule_loops(l, forms.kernel, how, out);
    }
}

/* Null where it would be too long, or not fit. */
static void lower_whole(const Lower *first, const Kernel *k, Lowered *out)
{
    Lower start = *first;
    k = kernel_sums_apart(first->ctx, first->arena, kernel_row_sums(first->arena, k));
    const Kernel *strips =
        first->task.strips ? k : tile_masked_folds(first->ctx, first->arena, k);
    begin(&start, strips);
    out->kernel = NULL;
    out->stages = (Staging){0};
    Kernel *made = lower_all(&start, &out->l);
    if (made != NULL) {
        lower_finish(&out->l, made, 1, true, out);
        bool fits = out->cost.sbuf_peak <= first->chip->sbuf_bytes;
        out->kernel = fits ? out->kernel : NULL;
        out->l.tried.too_many |= !fits;
    }
}

/* Another form of the kernel: what is wrong with it is not said. */
static void lower_form(const Lower *first, const Kernel *k, Lowered *out)
{
    Diags before = first->ctx->diags;
    out->kernel = NULL;
    if (k != NULL) {
        lower_whole(first, k, out);
        first->ctx->diags = out->kernel == NULL ? before : first->ctx->diags;
    }
}

/* Each statement in loops of its own; null where that cannot be. */
static void lower_each(const Lower *first, const Kernel *k, Lowered *out)
{
    lower_form(first, tile_distribute(first->ctx, first->arena, k), out);
}

/* Several programs: those whose iterations share what is on chip, or each statement in loops of its own, where that takes less time since
 * fewer operands are read again. */
static Kernel *lower_quicker_parts(Lower *first, const Kernel *k)
{
    Ctx *ctx = first->ctx;
    Diags before = ctx->diags;
    Kernel *parts = lower_parts_of(first, k);
    const Kernel *each = parts == NULL ? NULL : tile_distribute(first->ctx, first->arena, k);
    if (each == NULL) {
        return parts;
    }
    Diags after = ctx->diags;
    ctx->diags = before;
    Kernel *other = lower_parts_of(first, each);
    double us = other == NULL ? 0 : nki_programs_us(ctx, first->arena, other, first->chip);
    bool better = us > 0 && us < APART * nki_programs_us(ctx, first->arena, parts, first->chip);
    ctx->diags = better ? ctx->diags : after;
    return better ? other : parts;
}

/* A kernel that is too long for a program: its statements in loops of their own, where that moves little more, or several programs. */
static Kernel *lower_several(Lower *first, const Kernel *k)
{
    Ctx *ctx = first->ctx;
    Diags before = ctx->diags;
    Lowered each;
    lower_each(first, k, &each);
    if (each.kernel != NULL && moves_enough(&each.cost)) {
        spill_warn_all(&each.l);
        return each.kernel;
    }
    ctx->diags = before;
    Kernel *parts = lower_quicker_parts(first, k);
    bool tries = parts == NULL || instr_places(parts) > ENDLESS;
    const Kernel *turned = tries ? tile_transposed_operands(ctx, first->arena, k) : NULL;
    if (turned != NULL) { /* its programs transpose nothing */
        Diags after = ctx->diags;
        ctx->diags = before;
        Lowered whole;
        lower_whole(first, turned, &whole);
        Kernel *other = whole.kernel != NULL ? whole.kernel : lower_parts_of(first, turned);
        bool better = parts == NULL ||
                      (other != NULL && instr_places(other) * 4 < instr_places(parts) * 3 &&
                       nki_most_descriptors(other, first->chip).descriptors <= NKI_DESCRIPTORS);
        ctx->diags = better ? ctx->diags : after;
        parts = better ? other : parts;
    }
    if (parts == NULL) { /* tiles that loops make again are made once then */
        Diags after = ctx->diags;
        Lowered flat;
        first->task.unrolled = true;
        ctx->diags = before;
        lower_whole(first, k, &flat);
        ctx->diags = flat.kernel == NULL ? after : ctx->diags;
        parts = flat.kernel;
    }
    return parts;
}

/* The other one where there is one, whose price is below `share` of the best one's. */
static const Lowered *cheaper(const Lowered *best, const Lowered *other, double share)
{
    bool is = other->kernel != NULL && lower_price(other) < lower_price(best) * share;
    return is ? other : best;
}

/* `descriptors`: are programs short for their sake? */
static Kernel *legalise_once(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k,
                             bool descriptors)
{
    const NkiChip *chip = nki_chip(target->name);
    k = kernel_sums_apart(ctx, arena, k);
    Lower first = {.ctx = ctx, .arena = arena, .target = target, .chip = chip, .from = k};
    begin(&first, k);
    if (!lower_check(&first)) {
        return NULL;
    }
    first.task.most = target->machine->max_instructions;
    first.task.descriptors = descriptors;
    Lowered whole, other = {.kernel = NULL};
    lower_whole(&first, k, &whole);
    if (whole.kernel == NULL) {
        return whole.l.tried.too_many ? lower_several(&first, k) : NULL;
    }
    const Lowered *best = &whole;
    if (engines_wait(&best->cost, WAITS, WAITS_US) || moves_little(&best->cost)) {
        lower_each(&first, k, &other);
        best = cheaper(best, &other, DISTRIBUTED);
    }
    const Kernel *strips = tile_masked_strips(ctx, arena, k);
    Lowered masked, longer, turned;
    first.task.strips = true;
    lower_form(&first, strips, &masked);
    first.task.strips = false;
    best = cheaper(best, &masked, 1);
    lower_form(&first, tile_long_rows(target, ctx, arena, k), &longer);
    best = cheaper(best, &longer, 1);
    const Kernel *copies =
        instr_places(best->kernel) > ENDLESS ? tile_transposed_operands(ctx, arena, k) : NULL;
    lower_form(&first, copies, &turned);
    best = cheaper(best, &turned, 1);
    spill_warn_all(&best->l);
    return best->kernel;
}

#define DESCRIPTOR_TRIES 4

/* Programs whose copies take more descriptors than a queue holds are made shorter. */
static Kernel *legalise_one(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    Machine machine = *target->machine;
    Target shorter = *target;
    shorter.machine = &machine;
    Diags before = ctx->diags;
    Kernel *made = legalise_once(target, ctx, arena, k, false);
    for (uint32_t i = 0; made != NULL && i < DESCRIPTOR_TRIES; i++) {
        NkiCost most = nki_most_descriptors(made, nki_chip(target->name));
        if (most.descriptors <= NKI_DESCRIPTORS) {
            break;
        }
        double share = (double)NKI_DESCRIPTORS / (double)most.descriptors;
        machine.max_instructions = (int64_t)((double)most.instructions * share);
        ctx->diags = before;
        made = legalise_once(&shorter, ctx, arena, k, true);
    }
    return made;
}

Kernel *nki_legalise(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    if (!lower_check_extents(ctx, target, k)) {
        return NULL;
    }
    return target->machine->cores > 1 ? lower_cores(target, ctx, arena, k, legalise_one)
                                      : legalise_one(target, ctx, arena, k);
}
