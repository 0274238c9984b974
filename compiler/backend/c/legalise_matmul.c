/* SPDX-License-Identifier: Apache-2.0 */
/* A fold of products, or other terms, of two operands that says how it is cut (schedule/schedule.h): that becomes
 * loops. Where both operands are packed, legalise_packed.c makes them; where none is, both are
 * read where they are, which needs known extents. */
#include "backend/c/matmul.h"

static bool factor_uses(const Kernel *k, const Expr *x, VarRef v)
{
    bool conj = false;
    const Expr *load = expr_factor(x, &conj);
    return access_uses(k, load->buf, load->at, v);
}

static Range index_range(const Matmul *m, ScheduleRole role)
{
    return m->s->index[m->index[role]].range;
}

/* ---- what this target cannot do ---- */

static const char *shape_problem(const Matmul *m)
{
    int64_t bytes = dtype_bytes(m->t), mr = m->tile[ROLE_M], nr = m->tile[ROLE_N];
    bool real = !dtype_is_complex(matmul_load(m, ROLE_M)->dtype) &&
                !dtype_is_complex(matmul_load(m, ROLE_N)->dtype);
    if (!dtype_has_vectors(m->t) || m->s->value->dtype != m->t ||
        (real && dtype_is_complex(m->t))) {
        return "has no register tiles of this type";
    }
    const ContractionTiles *most = &m->l->machine->tile;
    if (nr * bytes > most->line || mr > most->rows || mr * nr * bytes > most->bytes) {
        return "has no registers for so large a tile";
    }
    return NULL;
}

static const char *packed_problem(const Matmul *m)
{
    int64_t elements[SIDES] = {1, 1}, k = 1;
    uint32_t packs[SIDES] = {0};
    for (uint32_t i = 0; i < m->b->n_labels[ROLE_K]; i++) {
        Range r = m->s->index[m->b->label[ROLE_K][i]].range;
        k = i > 0 && range_most(r) == INT64_MAX ? k : sat_mul(k, range_most(r));
    }
    for (uint32_t i = 0; i < m->b->n_levels; i++) {
        const ScheduleLevel *l = &m->b->level[i];
        if (l->role == ROLE_K) {
            k = l->tile < k ? l->tile : k;
        } else if (l->pack) {
            packs[l->role]++;
            elements[l->role] = sat_mul(k, l->tile);
        }
    }
    if (packs[ROLE_M] != 1 || packs[ROLE_N] != 1) {
        return "packs both operands once each, or none";
    }
    return elements[ROLE_M] > PANEL_MOST || elements[ROLE_N] > PANEL_MOST
               ? "has no panels of so many elements: levels of the sum, or of less, come before"
               : NULL;
}

static const char *direct_problem(const Matmul *m)
{
    const Expr *a = matmul_load(m, ROLE_M), *b = matmul_load(m, ROLE_N);
    if (a->dtype != matmul_panel_type(m, ROLE_M) || b->dtype != matmul_panel_type(m, ROLE_N) ||
        !range_is_exact(index_range(m, ROLE_M)) || !range_is_exact(index_range(m, ROLE_N))) {
        return "packs what has another type or no known number of rows and columns";
    }
    if (!m->unit_dst ||
        !access_is_unit(m->l->k, b->buf, b->at, matmul_var(m, m->index[ROLE_N]))) {
        return "packs what has its columns not side by side";
    }
    uint32_t n = m->b->n_levels;
    bool sum = n == 3 && m->b->level[0].role == ROLE_K;
    for (uint32_t i = sum ? 1 : 0; i < n; i++) {
        sum = sum && m->b->level[i].role != ROLE_K;
    }
    return n != 2 && !sum
               ? "has one level of rows, one of columns and, around them, one of the "
                 "sum where nothing is packed"
               : NULL;
}

/* ---- doing ---- */

/* Loops over the indices of a role that are not cut, one position at a time. */
static void further_loops(Matmul *m, ScheduleRole role)
{
    for (uint32_t i = role == ROLE_BATCH ? 0 : 1; i < m->b->n_labels[role]; i++) {
        uint32_t index = m->b->label[role][i];
        (void)matmul_loop(m, index, m->s->index[index].range);
    }
}

/* Where sums are not cut shorter, blocks of so many join the destination one after the other: registers hold one
 * sum each. */

/* Positions of the role in one iteration of a loop over blocks of the sum. */
static int64_t inside_of_sum(const Matmul *m, ScheduleRole r)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < m->b->n_labels[r]; i++) {
        count = sat_mul(count, range_most(m->s->index[m->b->label[r][i]].range));
    }
    for (uint32_t i = 0; i < m->b->n_levels; i++) {
        const ScheduleLevel *level = &m->b->level[i];
        if (level->role == ROLE_K && level->tile <= SUM_MOST) {
            break;
        }
        count = level->role == r && level->tile < count ? level->tile : count;
    }
    return count;
}

/* Does c_sums cut the sum into parts? */
static bool is_long(const Matmul *m)
{
    int64_t elements = sat_mul(inside_of_sum(m, ROLE_M), inside_of_sum(m, ROLE_N)), most = 1,
            typical = 1;
    for (uint32_t i = 0; i < m->b->n_labels[ROLE_K]; i++) {
        Range r = m->s->index[m->b->label[ROLE_K][i]].range;
        most = sat_mul(most, range_most(r));
        typical = sat_mul(typical, range_typical(m->l->k, r));
    }
    if (m->s->fold != OP_SUM || dtype_is_int(m->t)) {
        return false;
    }
    return elements <= SUM_FEW ? most > SUM_LEAVE_FEW * SUM_BLOCK
                               : typical > SUM_LEAVE_MANY * SUM_BLOCK;
}

/* Is the sum, or a part of it that a loop runs over, possibly of nothing? */
static bool may_be_empty(const Matmul *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->b->n_labels[ROLE_K]; i++) {
        Range r = m->s->index[m->b->label[ROLE_K][i]].range;
        any |= range_most(r) == 0 ||
               (r.clipped && r.limit.sym >= 0 && r.limit.sym != m->l->positive);
    }
    return any;
}

/* Loops over full tiles of an exact range, then what is left: at most two rounds. */
typedef struct Cut {
    Range range;
    int64_t step;
} Cut;

static uint32_t cut_range(Legaliser *l, Range r, int64_t step, Cut cut[2])
{
    int64_t most = range_most(r), full = most / step * step;
    uint32_t n = 0;
    if (full > 0) {
        cut[n++] = (Cut){{.start = r.start, .span = full, .limit = dim_fixed(0)}, step};
    }
    if (most > full) {
        Affine start = affine_add(l->arena, r.start, 1, affine_const(full));
        cut[n++] =
            (Cut){{.start = start, .span = most - full, .limit = dim_fixed(0)}, most - full};
    }
    return n;
}

/* The sum inside of its level, if it has one. */
static Range direct_sum(Matmul *m)
{
    Range all = index_range(m, ROLE_K);
    int64_t step = m->b->level[0].tile;
    if (m->b->level[0].role != ROLE_K || range_most(all) <= step) {
        return all;
    }
    if (all.span > 0 &&
        all.span % step != 0) { /* blocks end where the loop around has its next tile */
        step = divisor_at_most(all.span, step);
    }
    bool full = range_is_exact(all) && range_most(all) % step == 0;
    VarRef v = loop_open(m->l, "pc", all, step, full ? FOR_FULL : FOR_ALL);
    Affine start = affine_var(m->l->arena, v);
    return full ? (Range){.start = start, .span = step, .limit = dim_fixed(0)}
                : range_at(start, step, &all);
}

static void direct_emit(Matmul *m)
{
    Legaliser *l = m->l;
    const ScheduleLevel *level = m->b->level + m->b->n_levels - SIDES;
    ScheduleRole outer = level[0].role, inner = level[1].role;
    Cut cut[SIDES][2];
    uint32_t n[SIDES];
    Affine at[SIDES];
    int64_t size[SIDES];
    Range uncut = {.clipped = false};
    uint32_t rank = l->k->bufs.at[m->s->dst].rank;
    VarRef var[3];
    for (ScheduleRole r = ROLE_M; r <= ROLE_K; r++) {
        var[r] = matmul_var(m, m->index[r]);
    }
    further_loops(m, ROLE_K);
    further_loops(m, ROLE_M);
    further_loops(m, ROLE_N);
    MatmulBegins begins = m->s->begins ? BEGINS_FIRST : BEGINS_NOT;
    Range sum = direct_sum(m);
    for (ScheduleRole r = 0; r < SIDES; r++) {
        n[r] = cut_range(l, index_range(m, r), m->tile[r], cut[r]);
    }
    for (uint32_t i = 0; i < n[outer]; i++) {
        const Cut *x = &cut[outer][i];
        size[outer] = x->step;
        StmtBlock *outside = l->block;
        at[outer] = affine_var(
            l->arena, loop_open(l, outer == ROLE_M ? "i" : "j", x->range, x->step, FOR_FULL));
        if (level[0].parallel) {
            matmul_share(m, outside);
        }
        for (uint32_t j = 0; j < n[inner]; j++) {
            const Cut *y = &cut[inner][j];
            size[inner] = y->step;
            outside = l->block;
            at[inner] = affine_var(l->arena, loop_open(l, inner == ROLE_M ? "i" : "j", y->range,
                                                       y->step, FOR_FULL));
            if (level[1].parallel) {
                matmul_share(m, outside);
            }
            outside = l->block;
            const Range range[3] = {range_at(at[ROLE_M], size[ROLE_M], &uncut),
                                    range_at(at[ROLE_N], size[ROLE_N], &uncut),
                                    matmul_sum_block(m, sum)};
            m->first[ROLE_M] = at[ROLE_M];
            m->first[ROLE_N] = at[ROLE_N];
            matmul_product(m, var, range, m->s->dst,
                           access_subst(l->arena, rank, m->s->at, m->subst, m->n_subst),
                           matmul_factor(m, ROLE_M, matmul_packed(m, ROLE_M)),
                           matmul_factor(m, ROLE_N, matmul_packed(m, ROLE_N)), begins);
            while (l->block != outside) {
                loop_close(l);
            }
            loop_close(l);
        }
        loop_close(l);
    }
}

/* Lines of a group of the panels, where both operands are packed and instructions for dot products of integers take their types; else 0. A
 * level of the sum inside of one that packs begins at groups if there are whole ones in it, and there is one label to cut. */
static int64_t dot_group(const Matmul *m)
{
    int64_t group =
        dtype_dot_group(matmul_load(m, ROLE_M)->dtype, matmul_load(m, ROLE_N)->dtype, m->t);
    bool fits = m->packed && group > 1 && m->l->machine->time.dot > 0 && m->s->fold == OP_SUM &&
                m->term.value == NULL && m->term.condition == NULL,
         packs = false;
    for (uint32_t i = 0; i < m->b->n_levels; i++) {
        const ScheduleLevel *level = &m->b->level[i];
        int64_t span = index_range(m, ROLE_K).span;
        fits = fits &&
               (!packs || level->role != ROLE_K ||
                (m->b->n_labels[ROLE_K] == 1 && level->tile % group == 0 && span % group == 0));
        packs |= level->pack;
    }
    return fits ? group : 0;
}

/* False: its condition is none that loops over register tiles keep. */
static bool matmul_of(Legaliser *l, const Stmt *s, Matmul *m)
{
    const Schedule *b = s->schedule;
    *m = (Matmul){.l = l, .s = s, .b = b, .t = l->k->bufs.at[s->dst].dtype, .around = l->block};
    CHECK(fold_term(l->k, s->fold, s->value, &m->term)); /* verified: a schedule is of one */
    for (ScheduleRole r = ROLE_M; r <= ROLE_K; r++) {
        m->index[r] = b->label[r][0];
    }
    VarRef row = matmul_var(m, m->index[ROLE_M]);
    if (!factor_uses(l->k, m->term.operand[0], row)) {
        const Expr *other = m->term.operand[0];
        m->term.operand[0] = m->term.operand[1];
        m->term.operand[1] = other;
    }
    m->unit_dst = access_is_unit(l->k, s->dst, s->at, matmul_var(m, m->index[ROLE_N]));
    for (uint32_t i = 0; i < b->n_levels; i++) {
        m->packed |= b->level[i].pack;
        if (b->level[i].role < SIDES) {
            m->tile[b->level[i].role] = b->level[i].tile;
        }
    }
    m->group = dot_group(m);
    m->subst = ARENA_ARRAY(l->arena, (size_t)s->n_index + 4, Subst);
    return m->term.condition == NULL || where_of(m);
}

bool legalise_matmul(Legaliser *l, const Stmt *s)
{
    if (s->schedule == NULL || s->schedule->n_levels == 0) {
        return false;
    }
    Matmul m;
    if (!matmul_of(l, s, &m)) {
        return false;
    }
    const char *problem = shape_problem(&m);
    problem = problem != NULL ? problem : m.packed ? packed_problem(&m) : direct_problem(&m);
    if (problem != NULL) {
        matmul_refuse(&m, problem);
        return true;
    }
    if (s->begins && (is_long(&m) || may_be_empty(&m) || m.term.condition != NULL)) {
        m.s = legalise_begin(l, s);
    }
    StmtBlock *outside = l->block;
    further_loops(&m, ROLE_BATCH);
    if (s->schedule->parallel_batches) {
        matmul_share(&m, outside);
    }
    if (m.packed) {
        packed_emit(&m);
    } else {
        direct_emit(&m);
    }
    while (l->block != outside) {
        loop_close(l);
    }
    return true;
}
