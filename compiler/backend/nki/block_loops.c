/* SPDX-License-Identifier: Apache-2.0 */
/* A contraction of many blocks as loops over them (open_loops.c): those of its outer levels, as few as leave a body that is worth a loop.
 * What a level packs is then loaded before the loops inside of it. */
#include "backend/nki/contract.h"
#include "backend/nki/open_loops.h"

#define BODY_MOST 16 /* matmuls of a body that is not cut again */

typedef struct Cut {
    Lower *l;
    const Stmt *s, *epilogue;
} Cut;

/* Matmuls of what is open: an estimate. */
static int64_t matmuls(const Cut *c)
{
    const ContractionTiles *t = &c->l->target->machine->tile;
    const Schedule *b = c->s->schedule;
    const int64_t tile[ROLE_COUNT] = {t->rows, t->line / dtype_bytes(DTYPE_F32), t->sum, 1};
    int64_t n = 1;
    for (ScheduleRole r = 0; r < ROLE_COUNT; r++) {
        int64_t count = 1;
        for (uint32_t i = 0; i < b->n_labels[r]; i++) {
            count = sat_mul(count, c->l->now.full.n[b->label[r][i]]);
        }
        n = sat_mul(n, (count + tile[r] - 1) / tile[r]);
    }
    return n;
}

/* The step, longer where what lies contiguous in HBM would be cut to short rows. */
static int64_t whole_rows(const Cut *c, uint32_t label, int64_t step)
{
    Lower *l = c->l;
    ExprWalk w;
    for (const Expr *e = load_first(&w, c->s->value); e != NULL; e = load_next(&w)) {
        Place x = place_of(l, e->buf, e->at);
        int64_t run = NKI_SHORT_RUN / dtype_bytes(l->from->bufs.at[e->buf].dtype);
        run /= l->pair[e->buf] ? 2 : 1;
        bool along = !l->home[e->buf].on_chip &&
                     (place_stride(l, &x, label) == 1 || pair_is_unit(l, &x, label));
        step = along && step < run ? (run + step - 1) / step * step : step;
    }
    return step;
}

/* The outermost label that is cut where a level takes so many positions of a role at a time, and its step; false: none. */
static bool find_label(const Cut *c, ScheduleRole role, int64_t tile, uint32_t *label,
                       int64_t *step)
{
    const Schedule *b = c->s->schedule;
    int64_t count = 1;
    bool cut = false, found = false;
    for (uint32_t i = 0; i < b->n_labels[role]; i++) {
        uint32_t at = b->label[role][i];
        int64_t n = c->l->now.full.n[at];
        int64_t each = cut ? 1 : count * n <= tile ? n : tile / count > 1 ? tile / count : 1;
        int64_t whole = schedule_innermost(b, role)->tile / count; /* of a tile */
        each = each < n && whole > 1 ? each / whole * whole : each;
        cut |= each < n;
        count *= each;
        each = whole_rows(c, at, each);
        if (each < n) {
            *label = at;
            *step = each;
            found = true;
        }
    }
    return found;
}

static void lower_level(const Cut *c, uint32_t at);

/* The label by steps: as a loop, and what is left. */
static void lower_label(const Cut *c, uint32_t at, uint32_t label, int64_t step)
{
    Lower *l = c->l;
    Box full = l->now.full;
    Affine moves = l->now.moves[label];
    if (open_label(l, label, step, affine_const(0), c->epilogue)) {
        lower_level(c, at);
        close_label(l, label, step, &full, moves);
    }
    while (l->now.full.n[label] > 0 && !l->tried.failed) {
        int64_t left = l->now.full.n[label];
        l->now.full.n[label] = left < step ? left : step;
        lower_level(c, at);
        l->now.full.s[label] += step;
        l->now.full.n[label] = left - step;
    }
    l->now.full.s[label] = full.s[label];
    l->now.full.n[label] = full.n[label];
}

/* The outermost batch of which not all share a bank, and how many do; false: none. */
static bool find_batch(const Cut *c, uint32_t *label, int64_t *step)
{
    Lower *l = c->l;
    Contraction x = {.l = l, .s = c->s, .reader = c->epilogue, .overwrite = c->s->begins};
    int64_t each[LABELS];
    if (!contract_begin(&x)) {
        return false;
    }
    contract_shape(&x);
    Labels outer = contract_outer(&x, each);
    for (uint32_t i = 0; i < outer.n; i++) {
        int64_t whole = whole_rows(c, outer.at[i], each[i]);
        if (labels_have(x.batch, outer.at[i]) && whole < l->now.full.n[outer.at[i]]) {
            *label = outer.at[i];
            *step = whole;
            return true;
        }
    }
    return false;
}

/* The levels from `at` on. */
static void lower_level(const Cut *c, uint32_t at)
{
    const Schedule *b = c->s->schedule;
    uint32_t label = 0;
    int64_t step = 0;
    if (matmuls(c) > BODY_MOST && find_batch(c, &label, &step)) {
        lower_label(c, at, label, step);
        return;
    }
    for (; at < b->n_levels && b->level[at].role != ROLE_K && matmuls(c) > BODY_MOST; at++) {
        if (find_label(c, b->level[at].role, b->level[at].tile, &label, &step)) {
            lower_label(c, at, label, step);
            return;
        }
    }
    (void)lower_matmul(c->l, c->s, c->s->begins, c->epilogue);
}

/* ---- a matrix times a vector, which has no levels ---- */

/* Its rows: the only index that the result has, with all others summed; false: it is something else. */
static bool find_rows(const Cut *c, uint32_t *rows)
{
    const Stmt *s = c->s;
    uint32_t kept = 0;
    int64_t terms = 1;
    for (uint32_t i = 0; i < s->n_index; i++) {
        bool keeps = access_uses(c->l->from, s->dst, s->at, s->index[i].var);
        *rows = keeps ? i : *rows;
        kept += keeps;
        terms = keeps ? terms : sat_mul(terms, c->l->now.full.n[i]);
    }
    int64_t tiles = c->l->now.full.n[*rows] / NKI_PARTITIONS * (terms / NKI_PARTITIONS);
    return kept == 1 && tiles > BODY_MOST;
}

static void lower_rows(const Cut *c)
{
    Lower *l = c->l;
    uint32_t rows = 0;
    int64_t step = l->target->machine->systolic.live_rows * NKI_PARTITIONS;
    if (find_rows(c, &rows)) {
        Box full = l->now.full;
        Affine moves = l->now.moves[rows];
        if (open_label(l, rows, step, affine_const(0), c->epilogue)) {
            (void)lower_matmul(l, c->s, c->s->begins, c->epilogue);
            close_label(l, rows, step, &full, moves);
        }
        if (l->now.full.n[rows] > 0 && !l->tried.failed) {
            (void)lower_matmul(l, c->s, c->s->begins, c->epilogue);
        }
        l->now.full = full;
    }
}

static bool has_positions(const Expr *value)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        if (e->kind == EXPR_INDEX) {
            return true;
        }
    }
    return false;
}

/* Is half of a small result the mirror image of the other? Its blocks are not loops (blocks.c). */
static bool is_mirrored(const Cut *c)
{
    Contraction x = {.l = c->l, .s = c->s, .reader = c->epilogue, .overwrite = c->s->begins};
    if (!contract_begin(&x)) {
        return false;
    }
    contract_shape(&x);
    return x.batch.n == 0 && contract_is_small_mirror(&x);
}

bool lower_cut(Lower *l, const Stmt *s, const Stmt *epilogue)
{
    Cut c = {l, s, epilogue};
    uint32_t rows = 0;
    if (l->loops.concrete[l->from->vars.n] || has_positions(s->value) ||
        (epilogue != NULL && has_positions(epilogue->value))) {
        return false;
    }
    if (s->schedule == NULL && find_rows(&c, &rows) && lower_is_product(l, s)) {
        lower_rows(&c);
        return true;
    }
    if (s->schedule == NULL || s->schedule->n_levels == 0 || matmuls(&c) <= BODY_MOST ||
        is_mirrored(&c)) {
        return false;
    }
    lower_level(&c, 0);
    return true;
}
