/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of a LEGAL kernel, one instruction each, in the forms that decode.c reads back. */
#include "backend/nki/make.h"
#include "backend/nki/open_loops.h"

TileView tile_new(Lower *l, const char *hint, DType t, Space space, int64_t np, int64_t nf)
{
    CHECK(np >= 1 && np <= NKI_PARTITIONS && nf >= 1);
    Dim extent[2] = {dim_fixed(np), dim_fixed(nf)};
    const char *name = str_format(l->arena, "%s_%u", hint, l->names++);
    BufRef buf = kernel_buffer(l->to, &l->ctx->syms, name, t, space, 2, extent);
    Stmt *s = ARENA_NEW(l->arena, Stmt);
    s->kind = STMT_ALLOC;
    s->span = l->now.stmt == NULL ? (Span){0} : l->now.stmt->span;
    s->buf = buf;
    vec_push(l->arena, &l->out, s);
    return (TileView){.buf = buf, .np = np, .nf = nf, .step = 1};
}

TileView view_part(TileView v, int64_t f, int64_t nf)
{
    v.f0 += f * v.step;
    v.nf = nf;
    return v;
}

TileView view_rows(TileView v, int64_t np)
{
    v.np = np;
    return v;
}

/* base + coef * var */
static Affine line(Lower *l, int64_t base, VarRef v, int64_t coef)
{
    return affine_add(l->arena, affine_const(base), coef, affine_var(l->arena, v));
}

/* The first column of a view. */
static Affine start_of(Lower *l, TileView v)
{
    Affine start = affine_const(v.f0);
    return v.moves == NULL ? start : affine_add(l->arena, start, 1, *v.moves);
}

static const Affine *at_of(Lower *l, TileView v, VarRef p, VarRef f)
{
    Affine *at = ARENA_ARRAY(l->arena, 2, Affine);
    at[0] = line(l, v.p0, p, 1);
    at[1] = affine_add(l->arena, start_of(l, v), v.step, affine_var(l->arena, f));
    return at;
}

static const Expr *load_at(Lower *l, TileView v, const Affine *at, DType as)
{
    return expr_cast(l->arena, expr_load(l->arena, l->to, v.buf, at), as);
}

const Expr *view_load(Lower *l, TileView v, DType as)
{
    return load_at(l, v, at_of(l, v, l->p, l->f), as);
}

/* Where a view is walked along labels of such steps; along none, its first column. */
static const Affine *walked_from(Lower *l, TileView v, VarRef p, uint32_t n,
                                 const int64_t *step)
{
    Affine *at = ARENA_ARRAY(l->arena, 2, Affine);
    at[0] = line(l, v.p0, p, 1);
    at[1] = start_of(l, v);
    for (uint32_t i = 0; i < n; i++) {
        at[1] = affine_add(l->arena, at[1], step[i], affine_var(l->arena, l->q[i]));
    }
    return at;
}

static const Affine *walked_at(Lower *l, TileView v, uint32_t n, const int64_t *step)
{
    return walked_from(l, v, l->p, n, step);
}

/* The dimensions of a view's free axis: how many. */
static uint32_t dims_of(TileView v, int64_t *count, int64_t *step)
{
    int64_t inner = v.nf;
    for (uint32_t i = 0; i < v.n_outer; i++) {
        count[i] = v.outer[i].n;
        step[i] = v.outer[i].step;
        inner /= v.outer[i].n;
    }
    count[v.n_outer] = inner;
    step[v.n_outer] = v.step;
    return v.n_outer + 1;
}

/* The steps of a row that is walked along dimensions of another view. */
static void row_steps(TileView row, uint32_t n, const int64_t *count, int64_t *step)
{
    CHECK(row.n_outer == 0);
    int64_t each = row.step;
    for (uint32_t i = n; i-- > 0; each *= count[i]) {
        step[i] = each;
    }
}

static const Affine *column_of(Lower *l, TileView v)
{
    return walked_at(l, v, 0, NULL);
}

const Expr *view_column(Lower *l, TileView v, DType as)
{
    return load_at(l, v, column_of(l, v), as);
}

static TileIndex index_of(VarRef v, int64_t n)
{
    return (TileIndex){.var = v, .range = range_whole(dim_fixed(n)), .mode = MODE_LOOP};
}

static Stmt *make(Lower *l, BufRef dst, const Affine *at, uint32_t n, const TileIndex *index)
{
    Stmt *s = ARENA_NEW(l->arena, Stmt);
    s->kind = STMT_TILE;
    s->span = l->now.stmt == NULL ? (Span){0} : l->now.stmt->span;
    s->name = l->now.stmt == NULL ? NULL : l->now.stmt->name;
    s->n_index = n;
    s->index = arena_copy(l->arena, index, n * sizeof *index);
    s->dst = dst;
    s->at = at;
    s->fold = OP_COPY;
    l->tried.count += l->loops.times;
    if (l->tried.count > l->task.most) {
        l->tried.too_many = l->tried.failed = true;
    }
    if (!l->tried.failed) { /* nobody reads the rest */
        vec_push(l->arena, &l->out, s);
    }
    return s;
}

void make_value(Lower *l, BufRef dst, const Affine *at, uint32_t n, const TileIndex *index,
                const Expr *value)
{
    make(l, dst, at, n, index)->value = value;
}

static Stmt *make_2d(Lower *l, TileView dst)
{
    TileIndex index[2] = {index_of(l->p, dst.np), index_of(l->f, dst.nf)};
    return make(l, dst.buf, at_of(l, dst, l->p, l->f), 2, index);
}

const Expr *view_walked_load(Lower *l, TileView v, uint32_t n, const int64_t *step, DType as)
{
    v.step = n == 1 ? step[0] : 1;
    return n <= 1 ? view_load(l, v, as) : load_at(l, v, walked_at(l, v, n, step), as);
}

void make_walked(Lower *l, TileView dst, uint32_t n, const int64_t *count, const int64_t *step,
                 const Expr *value)
{
    if (n <= 1) {
        dst.step = n == 1 ? step[0] : 1;
        dst.nf = n == 1 ? count[0] : 1;
        make_map(l, dst, value);
        return;
    }
    TileIndex index[LABELS + 1] = {index_of(l->p, dst.np)};
    for (uint32_t i = 0; i < n; i++) {
        index[i + 1] = index_of(l->q[i], count[i]);
    }
    make(l, dst.buf, walked_at(l, dst, n, step), n + 1, index)->value =
        expr_cast(l->arena, value, view_dtype(l, dst));
}

void make_map(Lower *l, TileView dst, const Expr *value)
{
    make_2d(l, dst)->value = expr_cast(l->arena, value, view_dtype(l, dst));
}

void make_copy(Lower *l, TileView dst, TileView src)
{
    int64_t count[WALKED_DIMS], step[2][WALKED_DIMS];
    bool gathers = src.n_outer > 0;
    if (!gathers && dst.n_outer == 0) {
        make_map(l, dst, view_load(l, src, view_dtype(l, dst)));
        return;
    }
    uint32_t n = dims_of(gathers ? src : dst, count, step[gathers]);
    row_steps(gathers ? dst : src, n, count, step[!gathers]);
    make_walked(l, dst, n, count, step[0],
                view_walked_load(l, src, n, step[1], view_dtype(l, dst)));
}

void make_memset(Lower *l, TileView dst, double value)
{
    DType t = view_dtype(l, dst);
    make_2d(l, dst)->value = expr_const(l->arena, t == DTYPE_BOOL ? number_int(t, value != 0)
                                                                  : number_real(t, value));
}

Stmt *make_matmul(Lower *l, TileView dst, TileView stationary, TileView moving, bool begins)
{
    CHECK(stationary.np == moving.np && dst.np == stationary.nf && dst.nf == moving.nf);
    TileIndex index[WALKED_DIMS + 2] = {index_of(l->p, dst.np)};
    int64_t count[WALKED_DIMS], from[WALKED_DIMS], to[WALKED_DIMS];
    uint32_t n = dims_of(moving, count, from);
    bool walks = n > 1;
    row_steps(dst, n, count, to);
    for (uint32_t i = 0; i < n; i++) {
        index[i + 1] = index_of(walks ? l->q[i] : l->f, count[i]);
    }
    index[n + 1] = index_of(l->k, stationary.np);
    Stmt *s = make(l, dst.buf, walks ? walked_at(l, dst, n, to) : at_of(l, dst, l->p, l->f),
                   n + 2, index);
    s->fold = OP_SUM;
    s->begins = begins;
    const Expr *pair[2] = {
        load_at(l, stationary, at_of(l, stationary, l->k, l->p), DTYPE_F32),
        load_at(l, moving,
                walks ? walked_from(l, moving, l->k, n, from) : at_of(l, moving, l->k, l->f),
                DTYPE_F32)};
    s->value = expr_op(l->arena, OP_MUL, DTYPE_F32, 2, pair);
    return s;
}

Stmt *stmt_guarded(Arena *a, Span span, const Guard *guard, uint32_t n_guards, Stmt **body,
                   uint32_t n)
{
    Stmt *s = ARENA_NEW(a, Stmt);
    *s = (Stmt){.kind = STMT_BLOCK, .span = span, .body = body, .n_body = n};
    s->guard = arena_copy(a, guard, n_guards * sizeof *guard);
    s->n_guards = n_guards;
    return s;
}

void make_transpose(Lower *l, TileView dst, TileView src)
{
    CHECK(dst.np == src.nf && dst.nf == src.np);
    Stmt *s = make_2d(l, dst);
    s->value = load_at(l, src, at_of(l, src, l->f, l->p), view_dtype(l, dst));
}

static const Expr *position(Lower *l, Affine base, int64_t down, uint32_t n,
                            const int64_t *along)
{
    Affine at = affine_add(l->arena, base, down, affine_var(l->arena, l->p));
    for (uint32_t i = 0; i < n; i++) {
        VarRef v = n == 1 ? l->f : l->q[i];
        at = affine_add(l->arena, at, along[i], affine_var(l->arena, v));
    }
    return expr_index(l->arena, DTYPE_I64, at);
}

void make_iota(Lower *l, TileView dst, Affine base, int64_t down, const PositionWalk *w)
{
    make_walked(l, dst, w->n, w->count, w->dst, position(l, base, down, w->n, w->along));
}

void make_affine_select(Lower *l, TileView dst, TileView src, Affine base, int64_t down,
                        const PositionWalk *w, Op op, double other)
{
    const Expr *pair[2] = {position(l, base, down, w->n, w->along),
                           expr_const(l->arena, number_int(DTYPE_I64, 0))};
    const Expr *arg[3] = {expr_op(l->arena, op, DTYPE_BOOL, 2, pair),
                          view_walked_load(l, src, w->n, w->src, DTYPE_F32),
                          expr_const(l->arena, number_real(DTYPE_F32, other))};
    make_walked(l, dst, w->n, w->count, w->dst,
                expr_op(l->arena, OP_SELECT, DTYPE_F32, 3, arg));
}

/* Has the last statement made `src`, and may it add the rows up, as they were before they were rounded to the type of `src`? Then it does, to what
 * is in `dst` unless `first`. */
static bool adds_up(Lower *l, TileView dst, TileView src, bool first)
{
    Stmt *last = l->out.n == 0 ? NULL : l->out.at[l->out.n - 1];
    const char *why = NULL;
    Instr i;
    if (last == NULL || last->kind != STMT_TILE || last->dst != src.buf || last->sums > 0 ||
        last->n_index != 2 || !affine_eq(last->at[1], at_of(l, src, l->p, l->f)[1]) ||
        last->index[0].range.limit.n != src.np || last->index[1].range.limit.n != src.nf) {
        return false;
    }
    ArenaMark before = arena_mark(l->arena);
    const int64_t *env = ARENA_ARRAY(l->arena, l->to->vars.n + 1, int64_t);
    bool may = instr_decode(l->to, last, env, &i, &why) && instr_may_sum(&i);
    arena_reset(l->arena, before);
    if (may) {
        last->sums = dst.buf + 1;
        last->sums_at = column_of(l, dst);
        last->begins = first;
    }
    return may;
}

void make_reduce(Lower *l, TileView dst, Op fold, TileView src)
{
    CHECK(dst.np == src.np && dst.nf == 1);
    if (fold == OP_SUM && view_dtype(l, src) == DTYPE_F32 && adds_up(l, dst, src, true)) {
        return;
    }
    TileIndex index[2] = {index_of(l->p, src.np), index_of(l->f, src.nf)};
    Stmt *s = make(l, dst.buf, column_of(l, dst), 2, index);
    s->fold = fold;
    s->begins = true;
    s->value = view_load(l, src, view_dtype(l, dst));
}

bool make_row_sums(Lower *l, TileView dst, TileView src, bool first)
{
    if (first && view_dtype(l, src) == DTYPE_F32) {
        make_reduce(l, dst, OP_SUM, src);
        return true;
    }
    return adds_up(l, dst, src, first);
}

void make_reduce_each(Lower *l, TileView dst, Op fold, TileView src, uint32_t n, uint32_t kept,
                      const int64_t *count, const int64_t *step)
{
    if (kept == 0 && n == 1) {
        src.nf = count[0];
        src.step = step[0];
        make_reduce(l, dst, fold, src);
        return;
    }
    TileIndex index[LABELS + 1] = {index_of(l->p, src.np)};
    int64_t row[LABELS], each = dst.step;
    for (uint32_t i = 0; i < n; i++) {
        index[i + 1] = index_of(l->q[i], count[i]);
    }
    for (uint32_t i = kept; i-- > 0; each *= count[i]) {
        row[i] = each;
    }
    Stmt *s = make(l, dst.buf, walked_at(l, dst, kept, row), n + 1, index);
    s->fold = fold;
    s->begins = true;
    s->value = load_at(l, src, walked_at(l, src, n, step), view_dtype(l, dst));
}

/* A sum goes on with 1 times what there is so far, or with the factor times that, a maximum or minimum with the larger or smaller one. */
void make_scan(Lower *l, TileView dst, Op fold, const TileView *factor, TileView src)
{
    CHECK(dst.np == src.np && dst.nf == src.nf);
    const Expr *value = view_load(l, src, DTYPE_F32);
    if (fold == OP_SUM) {
        TileView ones = factor != NULL
                            ? *factor
                            : tile_new(l, "ones", DTYPE_F32, SPACE_TILE, src.np, src.nf);
        if (factor == NULL) {
            make_memset(l, ones, 1.0);
        }
        const Expr *pair[2] = {view_load(l, ones, DTYPE_F32), value};
        value = expr_op(l->arena, OP_MUL, DTYPE_F32, 2, pair);
    }
    Stmt *s = make_2d(l, dst);
    s->fold = fold;
    s->begins = true;
    s->scan = 2;
    s->decays = factor != NULL;
    s->value = value;
}

TileView view_ones(Lower *l)
{
    if (!l->has_ones) {
        Hoist hoist = hoist_begin(l, 0, 0);
        l->ones = tile_new(l, "ones", DTYPE_F32, SPACE_TILE, NKI_PARTITIONS, NKI_PARTITIONS);
        make_memset(l, l->ones, 1.0);
        l->has_ones = true;
        hoist_end(l, &hoist);
    }
    return l->ones;
}

/* ---- copies between HBM and chip ---- */

#define SLICE_COPIES 32 /* at most so many slices for what one access pattern could do */

typedef struct Transfer {
    Lower *l;
    const Place *place;
    const Box *box;
    uint32_t n, n_p; /* labels in the tile's order; the first n_p on partitions */
    uint32_t label[LABELS];
    int64_t coef[LABELS]; /* on the tile */
    TileView tile;
    bool store;
} Transfer;

/* The first dimension that moves with a label, or -1. */
static int32_t dim_with(const Place *x, uint32_t label)
{
    for (uint32_t d = 0; d < x->rank; d++) {
        if (place_coef(x, d, label) != 0) {
            return (int32_t)d;
        }
    }
    return -1;
}

/* One statement, the labels in `loose` at the values in `at`. */
static void transfer_one(const Transfer *t, uint32_t loose, const int64_t *value)
{
    Lower *l = t->l;
    TileIndex index[LABELS];
    uint32_t n = 0;
    const Home *h = &l->home[t->place->buf];
    Affine *chip = ARENA_ARRAY(l->arena, 2, Affine);
    Affine *hbm = ARENA_ARRAY(l->arena, t->place->rank, Affine);
    chip[0] = affine_const(t->tile.p0);
    chip[1] = start_of(l, t->tile);
    for (uint32_t d = 0; d < t->place->rank; d++) {
        hbm[d] = affine_const(place_start(t->place, d, t->box));
        if (t->place->moves != NULL) {
            hbm[d] = affine_add(l->arena, hbm[d], 1, t->place->moves[d]);
        }
    }
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t label = t->label[i];
        Affine step = affine_const(value[i]);
        if (!(loose >> i & 1)) {
            step = affine_var(l->arena, l->q[n]);
            index[n] = index_of(l->q[n], t->box->n[label]);
            n++;
        }
        uint32_t side = i < t->n_p ? 0 : 1;
        chip[side] = affine_add(l->arena, chip[side], t->coef[i], step);
        for (uint32_t d = 0; d < t->place->rank; d++) {
            hbm[d] = affine_add(l->arena, hbm[d], place_coef(t->place, d, label), step);
        }
    }
    BufRef to = t->store ? h->buf : t->tile.buf;
    Stmt *s = make(l, to, t->store ? hbm : chip, n, index);
    BufRef from = t->store ? t->tile.buf : h->buf;
    s->value = expr_load(l->arena, l->to, from, t->store ? chip : hbm);
}

/* Are the labels outside `loose` in the order of the HBM dimensions, each in one dimension? */
static bool in_order(const Transfer *t, uint32_t loose)
{
    int32_t before = -1;
    int64_t step = 0; /* of the label before, in that dimension */
    for (uint32_t i = 0; i < t->n; i++) {
        if (loose >> i & 1) {
            continue;
        }
        int32_t d = dim_with(t->place, t->label[i]);
        uint32_t count = 0;
        for (uint32_t e = 0; e < t->place->rank; e++) {
            count += place_coef(t->place, e, t->label[i]) != 0;
        }
        int64_t coef = d < 0 ? 0 : place_coef(t->place, (uint32_t)d, t->label[i]);
        bool row = d == before && step == coef * t->box->n[t->label[i]];
        step = coef;
        if ((d <= before && !row) || count != 1) {
            return false;
        }
        before = d;
    }
    return true;
}

/* The labels of one copy must make a rectangle of the tile: the innermost ones of the partitions, neighbours on the free axis. */
static bool is_rectangle(const Transfer *t, uint32_t loose)
{
    bool ended = false, begun = false;
    for (uint32_t i = t->n_p; i-- > 0;) {
        bool taken = !(loose >> i & 1);
        if (taken && ended) {
            return false;
        }
        ended |= !taken;
    }
    ended = false;
    for (uint32_t i = t->n_p; i < t->n; i++) {
        bool taken = !(loose >> i & 1);
        if (taken && ended) {
            return false;
        }
        begun |= taken;
        ended |= begun && !taken;
    }
    return true;
}

/* Labels with which HBM is read backwards, for which there is no access pattern. */
static uint32_t backwards(const Transfer *t)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        bool back = place_stride(t->l, t->place, t->label[i]) < 0;
        for (uint32_t d = 0; d < t->place->rank; d++) {
            back |= place_coef(t->place, d, t->label[i]) < 0;
        }
        set |= back ? 1u << i : 0;
    }
    return set;
}

/* The set of labels to take one by one, at most `most` copies, so that the rest are slices, or a rectangle of the tile; all bits set:
 * there is none. */
static uint32_t choose_loose(const Transfer *t, int64_t most, bool slices)
{
    uint32_t best = UINT32_MAX, must = backwards(t);
    for (uint32_t set = 0; t->n <= 8 && set < 1u << t->n; set++) {
        int64_t copies = 1;
        for (uint32_t i = 0; i < t->n; i++) {
            copies = sat_mul(copies, set >> i & 1 ? t->box->n[t->label[i]] : 1);
        }
        if ((set & must) == must && copies <= most && is_rectangle(t, set) &&
            (!slices || in_order(t, set))) {
            most = copies - 1;
            best = set;
        }
    }
    return best;
}

void make_dma(Lower *l, const Place *place, Labels p, Labels f, const Box *box, TileView tile,
              bool store)
{
    Transfer t = {.l = l, .place = place, .box = box, .tile = tile, .store = store};
    for (uint32_t side = 0; side < 2; side++) {
        Labels x = side == 0 ? p : f;
        int64_t coef = side == 0 ? 1 : tile.step;
        uint32_t first = t.n;
        for (uint32_t i = 0; i < x.n; i++) {
            if (box->n[x.at[i]] > 1) {
                t.label[t.n++] = x.at[i];
            }
        }
        for (uint32_t i = t.n; i-- > first;) {
            t.coef[i] = coef;
            coef *= box->n[t.label[i]];
        }
        t.n_p = side == 0 ? t.n : t.n_p;
    }
    bool windows = l->now.flat == 0 && place->n_terms > 0; /* those are patterns */
    uint32_t loose = choose_loose(&t, windows ? 1 : SLICE_COPIES, true);
    if (loose == UINT32_MAX && backwards(&t) != 0) {
        loose = choose_loose(&t, INT64_MAX, false);
    }
    if (loose == UINT32_MAX) {
        loose = 0; /* an access pattern: what HBM lacks has stride 0 */
    }
    int64_t value[LABELS] = {0};
    for (bool more = true; more && !l->tried.failed;) {
        transfer_one(&t, loose, value);
        more = false;
        for (uint32_t i = t.n; i-- > 0 && !more;) {
            if (loose >> i & 1) {
                more = ++value[i] < box->n[t.label[i]];
                value[i] = more ? value[i] : 0;
            }
        }
    }
}

/* a = a op b */
void make_join(Lower *l, Op fold, TileView a, TileView b)
{
    const Expr *arg[2] = {view_load(l, a, DTYPE_F32), view_load(l, b, DTYPE_F32)};
    make_map(l, a, expr_op(l->arena, op_joined_by(fold, DTYPE_F32), DTYPE_F32, 2, arg));
}
