/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of products whose operands are packed. Blocks of them are copied into panels as wide as
 * the register tile, in the order in which they are then read and padded with zeros at the edges,
 * so that there is one register tile, always full, whatever the strides, types and extents of the
 * operands are; edges are cut where its result joins the destination:
 *
 *     for each batch
 *       for k by KC
 *         for j by NC:  pack B[KC x NC]
 *           for i by MC:  pack A[MC x KC]
 *             for i by MR, for j by NR:  dst[MR x NR] += sum over k of a[k,i] * b[k,j]
 *
 * A level outside of a role's packing, or the one that packs, is a box of labels: the first whole
 * as far as they fit, one cut, the others position by position. Inside of a box positions are
 * numbered, the first label the fastest, and panels hold them in that order. Where tiles stay
 * within one label their results join the destination at once. Where one crosses from label to
 * label the levels inside cut numbers instead of labels; the results of the box are gathered in a
 * block, which joins label by label. */
#include "backend/c/matmul.h"

/* The labels of one role inside of the loops that are open. */
typedef struct Box {
    uint32_t n;
    const uint32_t *index; /* of the statement */
    Range *range;
    int64_t *stride; /* in the box's numbers; 0: one position, that of a loop around */
    int64_t count;   /* numbers, at most */
} Box;

/* An operand as it is packed: lines of the sum, columns of its own role. */
typedef struct Side {
    BufRef buf;
    Box own, sum; /* as they were then */
} Side;

typedef struct Packed {
    Matmul *m;
    Box box[3]; /* by role */
    Side side[SIDES];
    bool done[SIDES]; /* packed */
    bool registers;   /* the level at hand cuts register tiles */
    /* Tiles that cross labels: */
    bool gathers;
    bool adds;           /* in several parts of the sum */
    BufRef block;        /* their results, */
    Range number[SIDES]; /* by numbers, from the start of the boxes, inside of the open loops */
    StmtBlock *outside;
} Packed;

/* ---- boxes ---- */

static Box box_copy(Arena *a, const Box *x)
{
    Box out = *x;
    out.range = arena_copy(a, x->range, x->n * sizeof *x->range);
    out.stride = arena_copy(a, x->stride, x->n * sizeof *x->stride);
    return out;
}

static bool is_open(Range r)
{
    return r.clipped && r.limit.sym >= 0;
}

/* A label is cut into tiles of `step`: a loop, unless all of it is one. */
static void label_cut(Packed *p, ScheduleRole r, uint32_t i, int64_t step)
{
    static const char *const block[3] = {"ic", "jc", "pc"}, *const tile[3] = {"ir", "jr", "pc"};
    const char *hint = (p->registers ? tile : block)[r];
    Box *x = &p->box[r];
    Range range = x->range[i];
    int64_t most = range_most(range);
    if (most <= step) {
        x->range[i].span =
            range.span == 0 || range.span > most ? (most < 1 ? 1 : most) : range.span;
        return;
    }
    bool full = range_is_exact(range) && most % step == 0;
    VarRef v = loop_open(p->m->l, hint, range, step, full ? FOR_FULL : FOR_ALL);
    Affine start = affine_var(p->m->l->arena, v);
    x->range[i] = full ? (Range){.start = start, .span = step, .limit = dim_fixed(0)}
                       : range_at(start, step, &range);
}

/* One position of a label at a time; which one. */
static Affine label_loop(Packed *p, const Box *x, uint32_t i)
{
    Range r = x->range[i];
    if (!range_is_exact(r) || range_most(r) != 1) {
        return matmul_loop(p->m, x->index[i], r);
    }
    matmul_subst(p->m, x->index[i], r.start);
    return r.start;
}

/* From here on. */
static void label_fix(Packed *p, Box *x, uint32_t i)
{
    Affine at = label_loop(p, x, i);
    x->range[i] = (Range){.start = at, .span = 1, .limit = dim_fixed(0)};
    x->stride[i] = 0;
}

/* Parts of a block are equal, and of what is packed whole register tiles, or groups, if they can be. */
static int64_t equal_part(const Packed *p, ScheduleRole r, int64_t span, int64_t step)
{
    int64_t width = r == ROLE_K && p->m->group != 0 ? p->m->group
                    : r != ROLE_K && p->done[r]     ? p->m->tile[r]
                                                    : 1;
    return span % width == 0 && step >= width
               ? width * divisor_at_most(span / width, step / width)
               : divisor_at_most(span, step);
}

/* The label whose digit is the greatest: the last of several positions. */
static uint32_t box_last(const Box *x)
{
    uint32_t last = NONE;
    for (uint32_t i = 0; i < x->n; i++) {
        bool there = x->stride[i] != 0;
        last = there && (last == NONE || range_most(x->range[i]) > 1) ? i : last;
    }
    return last;
}

/* May numbers be missing in the middle, since a label before the last one ends there? */
static bool has_holes(const Box *x, uint32_t i)
{
    return x->stride[i] != 0 && i < box_last(x) && !range_is_exact(x->range[i]);
}

/* Is the term of two zeros, which stand where numbers are missing, one that adds nothing? */
static bool zeros_add_nothing(const Matmul *m)
{
    ExprWalk w;
    const Expr *e = m->term.value == NULL ? NULL : expr_first(&w, m->term.value);
    while (e != NULL && (e->kind != EXPR_OP || e->op != OP_DIV)) {
        e = expr_next(&w);
    }
    return m->s->fold == OP_SUM && e == NULL;
}

/* Opens the loops of a box with so many positions of each label, as many as there are at most. Labels that are taken
 * position by position run around those that are cut, so that lines of memory of which a box takes a part are there for the
 * next. */
static void box_open(Packed *p, ScheduleRole r, const int64_t *step)
{
    Box *x = &p->box[r];
    int64_t count = 1;
    for (uint32_t i = x->n; i-- > 0;) {
        if (x->stride[i] != 0 && step[i] == 1 && i > 0) { /* one label remains */
            label_fix(p, x, i);
        }
    }
    for (uint32_t i = x->n; i-- > 0;) {
        Range range = x->range[i];
        bool more = range_most(range) > step[i], within = range.span > 0 && more;
        if (x->stride[i] != 0 && (more || !range_is_exact(range))) {
            label_cut(p, r, i, within ? equal_part(p, r, range.span, step[i]) : step[i]);
        }
    }
    for (uint32_t i = x->n; r == ROLE_K && i-- > 0;) {
        if (has_holes(x, i) && !zeros_add_nothing(p->m)) {
            label_fix(p, x, i);
        }
    }
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->stride[i] != 0) {
            int64_t most = range_most(x->range[i]);
            x->stride[i] = count;
            count = sat_mul(count, most < 1 ? 1 : most);
        }
    }
    x->count = count;
}

static const int64_t *level_steps(Packed *p, const ScheduleLevel *level)
{
    const Box *x = &p->box[level->role];
    int64_t *step = ARENA_ARRAY(p->m->l->arena, x->n, int64_t);
    for (uint32_t i = 0; i < x->n; i++) {
        step[i] = schedule_step(level, i);
    }
    return step;
}

/* Tiles of the numbers of a box that cross no label: of the first one, or of several whole ones. */
static const int64_t *tile_steps(Packed *p, ScheduleRole r, int64_t tile)
{
    const Box *x = &p->box[r];
    int64_t *step = ARENA_ARRAY(p->m->l->arena, x->n, int64_t);
    int64_t count = 1;
    for (uint32_t i = 0; i < x->n; i++) {
        int64_t most = x->stride[i] == 0 ? 1 : range_most(x->range[i]), room = tile / count;
        step[i] = most < room ? (most < 1 ? 1 : most) : room < 1 ? 1 : room;
        count = most <= room ? count * step[i] : INT64_MAX;
    }
    return step;
}

/* All of the sum at once: its known labels and one open one; others run position by position. */
static const int64_t *whole_steps(Packed *p, ScheduleRole r)
{
    const Box *x = &p->box[r];
    int64_t *step = ARENA_ARRAY(p->m->l->arena, x->n, int64_t);
    bool open = false;
    for (uint32_t i = 0; i < x->n; i++) {
        step[i] = open ? 1 : INT64_MAX;
        open |= is_open(x->range[i]);
    }
    return step;
}

/* Are these steps a run of the box's numbers: whole labels, and then one that is cut? */
static bool is_run(const Box *x, const int64_t *step)
{
    bool cut = false;
    for (uint32_t i = 0; i < x->n; i++) {
        int64_t most = x->stride[i] == 0 ? 1 : range_most(x->range[i]);
        if (cut && most > 1 && step[i] > 1) {
            return false;
        }
        cut |= step[i] < most;
    }
    return true;
}

/* The numbers that the box has: those of its last label times what stands before it. */
static Range box_numbers(Packed *p, const Box *x)
{
    uint32_t last = box_last(x);
    Range r = x->range[last];
    int64_t stride = x->stride[last];
    Affine start = affine_add(p->m->l->arena, affine_const(0), stride, r.start);
    if (range_is_exact(r)) {
        return (Range){.start = start, .span = x->count, .limit = dim_fixed(0)};
    }
    Legaliser *l = p->m->l;
    const Dim factor[2] = {dim_fixed(stride), r.limit};
    Dim limit = r.limit.sym < 0 ? dim_fixed(sat_mul(stride, r.limit.n))
                : stride == 1   ? r.limit
                              : dims_product(l->arena, l->k->arena, &l->ctx->syms, &l->k->dims,
                                             p->m->s->span, 2, factor);
    return (Range){
        .start = start, .span = sat_mul(stride, r.span), .clipped = true, .limit = limit};
}

/* Where the box `x` begins within `around`, of the same role. */
static Affine box_offset(Packed *p, const Box *around, const Box *x)
{
    Arena *a = p->m->l->arena;
    Affine at = affine_const(0);
    for (uint32_t i = 0; i < x->n; i++) {
        Affine step = affine_minus(p->m->l, x->range[i].start, around->range[i].start);
        at = around->stride[i] == 0 ? at : affine_add(a, at, around->stride[i], step);
    }
    return at;
}

/* The number within the box of the position that the statement's indices say. */
static Affine box_number(Packed *p, const Box *x)
{
    Affine at = affine_const(0);
    for (uint32_t i = 0; i < x->n; i++) {
        Affine step = var_minus(p->m->l, matmul_var(p->m, x->index[i]), x->range[i].start);
        at = x->stride[i] == 0 ? at : affine_add(p->m->l->arena, at, x->stride[i], step);
    }
    return at;
}

/* The label that a tile runs along: the first of several positions. */
static uint32_t box_main(const Box *x)
{
    uint32_t first = NONE;
    for (uint32_t i = x->n; i-- > 0;) {
        first = x->stride[i] != 0 && (first == NONE || range_most(x->range[i]) > 1 ||
                                      range_most(x->range[first]) <= 1)
                    ? i
                    : first;
    }
    return first;
}

/* Are there tiles of `width` numbers that are no tiles of one label, or reach past a box that ends within one? */
static bool box_crosses(const Box *x, int64_t width)
{
    uint32_t several = 0, first = box_main(x);
    for (uint32_t i = 0; i < x->n; i++) {
        several += x->stride[i] != 0 && range_most(x->range[i]) > 1 ? 1 : 0;
    }
    int64_t most = range_most(x->range[first]), span = x->range[first].span;
    return several > 1 ? most % width != 0 : span % width != 0;
}

/* ---- packing ---- */

/* The label of the box along which the operand's elements stand side by side, or NONE. */
static uint32_t unit_label(const Packed *p, const Box *x, const Expr *load)
{
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->stride[i] != 0 && range_most(x->range[i]) > 1 &&
            access_is_unit(p->m->l->k, load->buf, load->at, matmul_var(p->m, x->index[i]))) {
            return i;
        }
    }
    return NONE;
}

/* Loops over all labels of the box but those to be copied along. */
static void pack_loops(Packed *p, const Box *x, uint32_t but, uint32_t but_too)
{
    for (uint32_t i = x->n; i-- > 0;) {
        if (x->stride[i] != 0 && i != but && i != but_too) {
            (void)label_loop(p, x, i);
        }
    }
}

/* Zeros in the last panel after the last column, as deep as the sum is there. */
static void pack_edge(Packed *p, const Side *side, int64_t width)
{
    Legaliser *l = p->m->l;
    Range columns = box_numbers(p, &side->own);
    VarRef kv = local_var(l, "y"), zv = local_var(l, "z");
    bool exact = range_is_exact(columns);
    int64_t rest = columns.span % width;
    if (exact && rest == 0) {
        return;
    }
    StmtBlock *outside = l->block;
    Affine first = affine_const(columns.span - rest);
    int64_t n = width;
    if (exact) {
        first = affine_const(columns.span);
        n = width - rest;
    } else {
        VarRef v = loop_open(l, "edge", columns, width, FOR_REST);
        first = var_minus(l, v, columns.start);
    }
    Range depth = box_numbers(p, &side->sum);
    bool whole = range_is_exact(depth);
    TileIndex index[2] = {index_of(kv, whole ? range_const(side->sum.count) : depth, MODE_LOOP),
                          index_of(zv, range_const(n), MODE_LOOP)};
    Affine at[2] = {whole ? affine_var(l->arena, kv) : var_minus(l, kv, depth.start),
                    affine_add(l->arena, first, 1, affine_var(l->arena, zv))};
    tile_add(l, 2, index, side->buf, at, OP_COPY,
             expr_const(l->arena, number_int(l->k->bufs.at[side->buf].dtype, 0)));
    while (l->block != outside) {
        loop_close(l);
    }
}

/* Zeros in all that is read of the panels where a label ends within its step; after the last column pack_edge puts them. */
static void pack_holes(Packed *p, const Side *side, const Box *x)
{
    Legaliser *l = p->m->l;
    const Box *box[2] = {&side->sum, &side->own};
    for (uint32_t i = 0; i < x->n; i++) {
        if (!has_holes(x, i)) {
            continue;
        }
        StmtBlock *outside = l->block;
        (void)loop_open(l, "edge", x->range[i], range_most(x->range[i]), FOR_REST);
        TileIndex index[2];
        Affine at[2];
        for (uint32_t d = 0; d < 2; d++) {
            VarRef v = local_var(l, d == 0 ? "y" : "z");
            Range numbers = box_numbers(p, box[d]);
            bool whole = range_is_exact(numbers);
            index[d] = index_of(v, whole ? range_const(box[d]->count) : numbers, MODE_LOOP);
            at[d] = whole ? affine_var(l->arena, v) : var_minus(l, v, numbers.start);
        }
        tile_add(l, 2, index, side->buf, at, OP_COPY,
                 expr_const(l->arena, number_int(l->k->bufs.at[side->buf].dtype, 0)));
        while (l->block != outside) {
            loop_close(l);
        }
    }
}

/* Zeros in the group of lines in which the sum ends, unless it fills that. */
static void pack_tail(Packed *p, const Side *side)
{
    Legaliser *l = p->m->l;
    int64_t group = p->m->group, count = side->sum.count;
    Range lines = box_numbers(p, &side->sum);
    bool exact = range_is_exact(lines);
    if (group == 0 || (exact && count % group == 0)) {
        return;
    }
    StmtBlock *outside = l->block;
    VarRef kv = local_var(l, "y"), zv = local_var(l, "z");
    Affine first = affine_const(count);
    int64_t n = round_up(count, group) - count;
    if (!exact) {
        VarRef v = loop_open(l, "edge", lines, group, FOR_REST);
        first = var_minus(l, v, lines.start);
        n = group;
    }
    Range columns = box_numbers(p, &side->own);
    bool whole = range_is_exact(columns);
    TileIndex index[2] = {
        index_of(kv, range_const(n), MODE_LOOP),
        index_of(zv, whole ? range_const(side->own.count) : columns, MODE_LOOP)};
    Affine at[2] = {affine_add(l->arena, first, 1, affine_var(l->arena, kv)),
                    whole ? affine_var(l->arena, zv) : var_minus(l, zv, columns.start)};
    tile_add(l, 2, index, side->buf, at, OP_COPY,
             expr_const(l->arena, number_int(l->k->bufs.at[side->buf].dtype, 0)));
    while (l->block != outside) {
        loop_close(l);
    }
}

/* Copies what the operand holds within the open boxes, along two labels: that in which it lies in lines, and the first
 * other one in the order of panels. Where both are columns the sum is a third, as lines of one column follow each other. */
static void pack(Packed *p, ScheduleRole r)
{
    Matmul *m = p->m;
    Legaliser *l = m->l;
    Side *side = &p->side[r];
    side->own = box_copy(l->arena, &p->box[r]);
    side->sum = box_copy(l->arena, &p->box[ROLE_K]);
    const Box *own = &side->own, *sum = &side->sum;
    side->buf = panels_alloc(l, r == ROLE_M ? "A_pack" : "B_pack", matmul_panel_type(m, r),
                             round_up(sum->count, m->group == 0 ? 1 : m->group), own->count,
                             m->tile[r]);
    l->k->bufs.at[side->buf].group = m->group;
    p->done[r] = true;
    pack_tail(p, side);
    pack_edge(p, side, m->tile[r]);
    pack_holes(p, side, &side->own);
    pack_holes(p, side, &side->sum);
    StmtBlock *outside = l->block;
    uint32_t mark = m->n_subst, unit = unit_label(p, own, matmul_load(m, r));
    uint32_t c = box_main(own), k = unit_label(p, sum, matmul_load(m, r));
    bool along_k = k != NONE, across = unit != NONE && unit != c;
    k = along_k ? k : box_main(sum);
    pack_loops(p, sum, k, NONE);
    pack_loops(p, own, c, across ? unit : NONE);
    TileIndex over_c = index_of(matmul_var(m, own->index[c]), own->range[c], MODE_LOOP);
    TileIndex over_k = index_of(matmul_var(m, sum->index[k]), sum->range[k], MODE_LOOP);
    TileIndex index[3] = {over_c, over_k};
    if (across) {
        index[2] = index_of(matmul_var(m, own->index[unit]), own->range[unit], MODE_LOOP);
    } else if (!along_k) {
        index[0] = over_k;
        index[1] = over_c;
    }
    const Affine number[2] = {box_number(p, sum), box_number(p, own)};
    const Affine *at = access_subst(l->arena, 2, number, m->subst, m->n_subst);
    tile_add(l, across ? 3 : 2, index, side->buf, at, OP_COPY, matmul_packed(m, r));
    m->n_subst = mark;
    while (l->block != outside) {
        loop_close(l);
    }
}

/* ---- the register tile ---- */

/* The operand's element in line `k` of the open sum, column `c` of the open tile. */
static const Expr *panel_load(Packed *p, ScheduleRole r, Affine k, Affine c)
{
    Legaliser *l = p->m->l;
    const Side *side = &p->side[r];
    Affine line = affine_add(l->arena, box_offset(p, &side->sum, &p->box[ROLE_K]), 1, k);
    Affine column = box_offset(p, &side->own, &p->box[r]);
    if (p->gathers) {
        Affine begun = box_numbers(p, &p->box[r]).start;
        column = affine_add(l->arena, column, 1, affine_minus(l, p->number[r].start, begun));
    }
    Affine at[2] = {line, affine_add(l->arena, column, 1, c)};
    return matmul_factor(p->m, r, load_at(l, side->buf, 2, at));
}

/* The one label of the open tile that has several positions. */
static uint32_t tile_label(Packed *p, ScheduleRole r)
{
    const Box *x = &p->box[r];
    uint32_t first = box_main(x);
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->stride[i] != 0 && i != first) {
            (void)label_loop(p, x, i);
        }
    }
    return first;
}

/* Its positions: a whole tile, cut by what there are. */
static Range tile_range(Packed *p, ScheduleRole r, uint32_t label)
{
    Range x = p->box[r].range[label];
    int64_t width = p->m->tile[r];
    if (!x.clipped) {
        x.span = x.span < width ? x.span : width;
        return x;
    }
    bool full = range_is_exact(x) && range_most(x) == width;
    return full ? (Range){.start = x.start, .span = width, .limit = dim_fixed(0)}
                : range_at(x.start, width, &x);
}

/* Sums over the open box of the sum, from panels, into the destination. */
static void tile_product(Packed *p)
{
    Matmul *m = p->m;
    Legaliser *l = m->l;
    VarRef var[3];
    Range range[3];
    Affine at[SIDES];
    for (ScheduleRole r = 0; r < SIDES; r++) {
        if (p->gathers) {
            var[r] = local_var(l, r == ROLE_M ? "u" : "v");
            range[r] = range_const(m->tile[r]);
            Affine begun = box_numbers(p, &p->box[r]).start;
            at[r] = affine_add(l->arena, affine_minus(l, p->number[r].start, begun), 1,
                               affine_var(l->arena, var[r]));
        } else {
            uint32_t label = tile_label(p, r);
            var[r] = matmul_var(m, p->box[r].index[label]);
            range[r] = tile_range(p, r, label);
        }
    }
    for (ScheduleRole r = 0; r < SIDES; r++) {
        m->first[r] = p->gathers ? p->number[r].start : range[r].start;
    }
    Range lines = box_numbers(p, &p->box[ROLE_K]);
    var[ROLE_K] = local_var(l, "kk");
    range[ROLE_K] = matmul_sum_block(m, lines);
    const Expr *x[SIDES];
    for (ScheduleRole r = 0; r < SIDES; r++) {
        x[r] = panel_load(p, r, var_minus(l, var[ROLE_K], lines.start),
                          p->gathers ? affine_var(l->arena, var[r])
                                     : var_minus(l, var[r], range[r].start));
    }
    uint32_t rank = l->k->bufs.at[m->s->dst].rank;
    matmul_product(m, var, range, p->gathers ? p->block : m->s->dst,
                   p->gathers ? at
                              : access_subst(l->arena, rank, m->s->at, m->subst, m->n_subst),
                   x[ROLE_M], x[ROLE_N],
                   p->gathers     ? p->adds ? BEGINS_NOT : BEGINS_ALWAYS
                   : m->s->begins ? BEGINS_FIRST
                                  : BEGINS_NOT);
}

/* ---- results of a box, gathered ---- */

/* Both operands are packed, the second by this level: from here on tiles run over numbers. */
static bool gather_begin(Packed *p, uint32_t level)
{
    Matmul *m = p->m;
    Legaliser *l = m->l;
    int64_t extent[2];
    for (ScheduleRole r = 0; r < SIDES; r++) {
        Range numbers = box_numbers(p, &p->box[r]);
        extent[r] = round_up(p->box[r].count, m->tile[r]);
        numbers.span = extent[r];
        p->number[r] = numbers;
    }
    if (sat_mul(extent[0], extent[1]) > PANEL_MOST) {
        matmul_refuse(m, "gathers no blocks of so many elements");
        return false;
    }
    p->gathers = true;
    p->block = buffer_alloc(l, "s", m->t, SPACE_TILE, 2, extent);
    p->outside = l->block;
    p->adds =
        m->term.condition != NULL || !matmul_sum_is_one(m, box_numbers(p, &p->box[ROLE_K]));
    for (uint32_t i = level + 1; i < m->b->n_levels; i++) {
        p->adds |= m->b->level[i].role == ROLE_K;
    }
    if (p->adds) {
        VarRef v[2] = {local_var(l, "y"), local_var(l, "z")};
        TileIndex index[2];
        Affine at[2];
        for (uint32_t d = 0; d < 2; d++) {
            index[d] = index_of(v[d], range_const(extent[d]), MODE_LOOP);
            at[d] = affine_var(l->arena, v[d]);
        }
        tile_add(l, 2, index, p->block, at, OP_COPY,
                 expr_const(l->arena, op_neutral(m->s->fold, m->t)));
    }
    return true;
}

/* In equal parts of whole tiles. */
static void numbers_open(Packed *p, ScheduleRole r, int64_t tile)
{
    Range *x = &p->number[r];
    int64_t width = p->m->tile[r];
    tile = x->span <= tile ? x->span : width * divisor_at_most(x->span / width, tile / width);
    VarRef v = loop_open(p->m->l, r == ROLE_M ? "ir" : "jr", *x, tile,
                         x->clipped ? FOR_ALL : FOR_FULL);
    *x = range_at(affine_var(p->m->l->arena, v), tile, x);
}

/* The box's labels of which the destination's dimension d is the last that has them. */
static uint32_t labels_of(Packed *p, const Box *x, uint32_t d, TileIndex *out)
{
    const Stmt *s = p->m->s;
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        VarRef v = matmul_var(p->m, x->index[i]);
        bool here = x->stride[i] != 0 && affine_uses(s->at[d], v);
        for (uint32_t e = d + 1; e < p->m->l->k->bufs.at[s->dst].rank; e++) {
            here = here && !affine_uses(s->at[e], v);
        }
        if (here) {
            out[n++] = index_of(v, x->range[i], MODE_LOOP);
        }
    }
    return n;
}

/* dst[labels] += block[numbers], along lines of dst; or is that, when it is the only one. */
static void gather_join(Packed *p)
{
    Matmul *m = p->m;
    Legaliser *l = m->l;
    uint32_t rank = l->k->bufs.at[m->s->dst].rank, n = 0;
    while (l->block != p->outside) {
        loop_close(l);
    }
    TileIndex *index = ARENA_ARRAY(l->arena, m->s->n_index, TileIndex);
    for (uint32_t d = 0; d < rank; d++) {
        for (ScheduleRole r = 0; r < SIDES; r++) {
            n += labels_of(p, &p->box[r], d, index + n);
        }
    }
    Affine at[2] = {box_number(p, &p->box[ROLE_M]), box_number(p, &p->box[ROLE_N])};
    const Expr *times[2] = {m->term.by, load_at(l, p->block, 2, at)};
    tile_add(l, n, index, m->s->dst,
             access_subst(l->arena, rank, m->s->at, m->subst, m->n_subst), m->s->fold,
             m->term.by == NULL ? times[1] : expr_op(l->arena, OP_MUL, m->t, 2, times));
    if (m->s->begins) {
        matmul_begins(m);
        Stmt *join = l->block->list.at[l->block->list.n - 1];
        if (join->n_first == 0) { /* each element is met once */
            join->begins = false;
            join->fold = OP_COPY;
        }
    }
}

/* ---- levels ---- */

/* Is something packed before the sum is cut? */
static bool packs_whole_sums(const Schedule *b)
{
    uint32_t i = 0;
    while (i < b->n_levels && b->level[i].role != ROLE_K && !b->level[i].pack) {
        i++;
    }
    return i == b->n_levels || b->level[i].role != ROLE_K;
}

/* False: reported. */
static bool level_open(Packed *p, uint32_t at)
{
    Matmul *m = p->m;
    const ScheduleLevel *level = &m->b->level[at];
    ScheduleRole r = level->role;
    StmtBlock *outside = m->l->block;
    if (r != ROLE_K && p->gathers) {
        numbers_open(p, r, level->tile);
        if (level->parallel) {
            matmul_share(m, outside);
        }
        return true;
    }
    if (r != ROLE_K && p->done[r] && box_crosses(&p->box[r], m->tile[r])) {
        matmul_refuse(m, "packs both operands before it cuts tiles that cross labels");
        return false;
    }
    bool numbered = r == ROLE_K ? p->done[ROLE_M] || p->done[ROLE_N] : p->done[r];
    if (numbered && level->step != NULL && (r != ROLE_K || !is_run(&p->box[r], level->step))) {
        matmul_refuse(m, "cuts what is packed by its numbers, not by steps across them");
        return false;
    }
    bool steps = level->step != NULL || !numbered;
    p->registers = at + SIDES >= m->b->n_levels;
    box_open(p, r, steps ? level_steps(p, level) : tile_steps(p, r, level->tile));
    if (m->term.condition != NULL && r != ROLE_K) {
        const Range range[3] = {p->box[0].range[0], p->box[1].range[0], p->box[2].range[0]};
        where_loop(m, r, range);
    }
    if (level->parallel) {
        matmul_share(m, outside);
    }
    if (!level->pack) {
        return true;
    }
    pack(p, r);
    bool crosses = p->done[0] && p->done[1];
    return !crosses ||
           (!box_crosses(&p->box[0], m->tile[0]) && !box_crosses(&p->box[1], m->tile[1])) ||
           gather_begin(p, at);
}

/* Is nothing added to anything? */
static bool is_empty(const Matmul *m)
{
    for (uint32_t i = 0; i < m->s->n_index; i++) {
        if (range_most(m->s->index[i].range) == 0) {
            return true;
        }
    }
    return false;
}

void packed_emit(Matmul *m)
{
    Packed p = {.m = m};
    const Schedule *b = m->b;
    for (ScheduleRole r = ROLE_M; r <= ROLE_K; r++) {
        Box *x = &p.box[r];
        *x = (Box){.n = b->n_labels[r], .index = b->label[r]};
        x->range = ARENA_ARRAY(m->l->arena, x->n, Range);
        x->stride = ARENA_ARRAY(m->l->arena, x->n, int64_t);
        for (uint32_t i = 0; i < x->n; i++) {
            x->range[i] = m->s->index[x->index[i]].range;
            x->stride[i] = 1;
        }
    }
    if (is_empty(m)) {
        return;
    }
    if (packs_whole_sums(b)) {
        box_open(&p, ROLE_K, whole_steps(&p, ROLE_K));
    }
    for (uint32_t i = 0; i < b->n_levels; i++) {
        if (!level_open(&p, i)) {
            return;
        }
    }
    tile_product(&p);
    if (p.gathers) {
        gather_join(&p);
    }
}
