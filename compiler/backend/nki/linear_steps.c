/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrences that are linear, as scans of the Vector engine (tensor_tensor_scan), which takes a step in a cycle where statements in a loop
 * over steps take a microsecond. A value that has all steps:
 *
 *     for $t in 0:1<T   map [n] @h[$t,n] = @a[$t,n] * @z[n] + @b[$t,n]           z: zeros
 *     for $t in 1..T    map [n] @h[$t,n] = @a[$t,n] * @h[$t-1,n] + @b[$t,n]
 *                  ->   reduce [n, t in 0..T] @h[t,n] += @a[t,n] * @b[t,n] begins scan t decays
 *
 * Where the first step begins with other numbers z, the scan has 0 for the first factor, and the first value for the first term. And
 * a state, of which each step is read by one sum alone, over some of its indices:
 *
 *     for $t in 0..T {  map [c, s] @h[c,s] = a(c,s,$t) * @h[c,s] + b(c,s,$t)
 *                       reduce [c, s] @y[c,$t] += @h[c,s] * @C[s,$t] begins }
 *                  ->   fill [c, t] @Y[c,t] = 0
 *                       for $s {  reduce [c, t] @H[c,t] += a(c,$s,t) * b(c,$s,t) begins scan t decays
 *                                 reduce [c, t] @Y[c,t] += @H[c,t] * @C[$s,t] }
 *                       copy [c, t] @y[c,t] = @Y[c,t]
 *
 * The same operations in the same order, so the same numbers. */
#include "backend/nki/lower.h"

#include "loop/walk.h"

#define STEPS_MOST  8192             /* positions of a row: tiles of 32 KiB a partition */
#define TURNED_MOST INT64_C(1) << 21 /* elements that stay on chip until they are turned */

typedef struct Linear {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
    bool any;
} Linear;

typedef VEC(Stmt *) StmtList;

/* x = factor * before + term */
typedef struct Step {
    const Stmt *s;
    const Expr *factor, *before, *term;
} Step;

/* ---- what is there ---- */

static bool is_loop_over_steps(const Stmt *s, int64_t first)
{
    return s->kind == STMT_FOR && s->step == 1 && !s->parallel && s->window == NULL &&
           s->range.start.n == 0 && s->range.start.base == first && s->range.limit.sym < 0 &&
           s->n_body > 0;
}

static bool is_map(const Linear *x, const Stmt *s)
{
    return s->kind == STMT_TILE && s->fold == OP_COPY && s->sums == 0 && s->scan == 0 &&
           x->to->bufs.at[s->dst].dtype == DTYPE_F32 && s->value->dtype == DTYPE_F32;
}

/* The dimension at which the variable stands alone; the rank: there is none, or it is elsewhere too. */
static uint32_t dim_of(const Affine *at, uint32_t rank, VarRef v)
{
    uint32_t found = rank, uses = 0;
    for (uint32_t d = 0; d < rank; d++) {
        uses += affine_uses(at[d], v);
        bool is = at[d].n == 1 && at[d].base == 0 && affine_coef(at[d], v) == 1;
        found = is ? d : found;
    }
    return uses == 1 ? found : rank;
}

/* Is it the element that the statement sets, `lag` steps before along dimension d? */
static bool is_before(const Linear *x, const Stmt *s, const Expr *e, uint32_t d, int64_t lag)
{
    const Buffer *b = &x->to->bufs.at[s->dst];
    bool same = e->kind == EXPR_LOAD && e->buf == s->dst;
    for (uint32_t i = 0; i < b->rank && same; i++) {
        Affine at = e->at[i];
        at.base += i == d ? lag : 0;
        same = affine_eq(at, s->at[i]);
    }
    return same;
}

static bool reads(const Expr *e, BufRef buf)
{
    return expr_load_of(e, buf) != NULL;
}

static bool is_op(const Expr *e, Op op)
{
    return e->kind == EXPR_OP && e->op == op && e->dtype == DTYPE_F32;
}

/* factor * before + term, where `is` says what before may be. */
static bool find_step(const Linear *x, const Stmt *s, uint32_t d, int64_t lag, Step *out)
{
    if (!is_map(x, s) || !is_op(s->value, OP_ADD)) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const Expr *product = s->value->arg[i], *term = s->value->arg[1 - i];
        for (uint32_t j = 0; j < 2 && is_op(product, OP_MUL); j++) {
            *out = (Step){s, product->arg[1 - j], product->arg[j], term};
            if (is_before(x, s, out->before, d, lag) && !reads(out->factor, s->dst) &&
                !reads(term, s->dst)) {
                return true;
            }
        }
    }
    return false;
}

/* The only statement of the kernel that sets it, if it fills all of it with 0. */
static bool is_zeros(const Linear *x, BufRef buf)
{
    uint32_t n = 0;
    bool zeros = false;
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, x->to->body, x->to->n_body); s != NULL;
         s = stmt_next(&w)) {
        if (s->kind == STMT_TILE && s->dst == buf) {
            n++;
            zeros =
                s->fold == OP_COPY && s->value->kind == EXPR_CONST && s->value->value.re == 0.0;
        }
    }
    return n == 1 && zeros && x->to->bufs.at[buf].param < 0;
}

/* ---- what is made ---- */

static const Expr *two(const Linear *x, Op op, DType t, const Expr *a, const Expr *b)
{
    const Expr *both[2] = {a, b};
    return expr_op(x->arena, op, t, 2, both);
}

typedef struct Renamed {
    Arena *arena;
    const Kernel *k;
    VarRef from;
    Affine to;
} Renamed;

static Affine renamed(const Renamed *r, Affine a)
{
    return affine_subst(r->arena, a, r->from, r->to);
}

static void rename_load(void *user, Expr *e)
{
    const Renamed *r = user;
    uint32_t rank = e->kind == EXPR_INDEX ? 1 : r->k->bufs.at[e->buf].rank;
    Affine *at = ARENA_ARRAY(r->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = renamed(r, e->at[d]);
    }
    e->at = at;
}

static const Expr *with(const Linear *x, const Expr *e, VarRef from, Affine to)
{
    Renamed r = {x->arena, x->to, from, to};
    return expr_with_places(x->arena, e, rename_load, &r);
}

static const Affine *places_with(const Linear *x, const Affine *at, uint32_t rank, VarRef from,
                                 Affine to)
{
    Affine *out = ARENA_ARRAY(x->arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = affine_subst(x->arena, at[d], from, to);
    }
    return out;
}

/* The statement's indices without `without`, and `v` over all steps behind them. */
static Stmt *over_steps(const Linear *x, const Stmt *s, VarRef without, VarRef v, int64_t steps)
{
    Stmt *out = arena_copy(x->arena, s, sizeof *s);
    TileIndex *index = ARENA_ARRAY(x->arena, s->n_index + 1, TileIndex);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (s->index[i].var != without) {
            index[n++] = s->index[i];
        }
    }
    index[n++] = (TileIndex){.var = v, .range = range_whole(dim_fixed(steps))};
    out->index = index;
    out->n_index = n;
    return out;
}

static void make_scan_of(const Linear *x, Stmt *s, const Expr *factor, const Expr *term)
{
    s->fold = OP_SUM;
    s->begins = true;
    s->scan = s->n_index;
    s->decays = true;
    s->value = two(x, OP_MUL, DTYPE_F32, factor, term);
}

static Stmt *alloc(const Linear *x, const Stmt *s, const char *name, uint32_t rank,
                   const Dim *extent, BufRef *made)
{
    *made = kernel_buffer(x->to, &x->ctx->syms, name, DTYPE_F32, SPACE_TILE, rank, extent);
    x->to->bufs.at[*made].span = s->span;
    Stmt *out = ARENA_NEW(x->arena, Stmt);
    *out = (Stmt){.kind = STMT_ALLOC, .span = s->span, .buf = *made};
    return out;
}

/* Where an index is in a buffer of what its statement sets. */
static Affine place_of_index(const Linear *x, const TileIndex *i)
{
    return affine_add(x->arena, affine_var(x->arena, i->var), -1, i->range.start);
}

/* The extents and positions of such a buffer. */
static uint32_t shape_of(const Linear *x, const Stmt *s, Dim **extent, Affine **at)
{
    *extent = ARENA_ARRAY(x->arena, s->n_index, Dim);
    *at = ARENA_ARRAY(x->arena, s->n_index, Affine);
    for (uint32_t i = 0; i < s->n_index; i++) {
        const Range *r = &s->index[i].range;
        (*extent)[i] = r->span == 0 ? r->limit : dim_fixed(r->span);
        (*at)[i] = place_of_index(x, &s->index[i]);
    }
    return s->n_index;
}

/* ---- a value that has all steps ---- */

/* The first step in a loop of its own: what its product is with. */
static bool find_first(const Linear *x, const Stmt *loop, const Step *step, uint32_t d,
                       Step *out)
{
    const Stmt *s = loop->n_body == 1 ? loop->body[0] : NULL;
    bool one = s != NULL && is_loop_over_steps(loop, 0) && loop->range.span == 1 &&
               is_map(x, s) && s->dst == step->s->dst && is_op(s->value, OP_ADD) &&
               !reads(s->value, s->dst) &&
               dim_of(s->at, x->to->bufs.at[s->dst].rank, loop->var) == d;
    *out = (Step){.s = s};
    for (uint32_t i = 0; i < 4 && one && out->before == NULL; i++) {
        const Expr *product = s->value->arg[i / 2];
        const Expr *z = is_op(product, OP_MUL) ? product->arg[i % 2] : NULL;
        out->before = z != NULL && z->kind == EXPR_LOAD && is_zeros(x, z->buf) ? z : NULL;
    }
    return one;
}

/* In both of the loops the statements have the same indices in the same dimensions. */
static const Expr *first_value(const Linear *x, const Stmt *first, VarRef at, const Stmt *s,
                               VarRef v)
{
    const Expr *e = with(x, first->value, at, affine_var(x->arena, v));
    for (uint32_t i = 0; i < first->n_index; i++) {
        if (i >= s->n_index || !range_eq(&first->index[i].range, &s->index[i].range)) {
            return NULL;
        }
        e = with(x, e, first->index[i].var, affine_var(x->arena, s->index[i].var));
    }
    return first->n_index == s->n_index ? e : NULL;
}

static int64_t elements_of(const Stmt *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->n_index; i++) {
        n = sat_mul(n, s->index[i].range.limit.n);
    }
    return n;
}

/* Is the first value that of the others, with zeros for what is before it? */
static bool is_like(const Linear *x, const Expr *value, const Expr *before, const Expr *factor,
                    const Expr *term)
{
    for (uint32_t i = 0; i < 4 && value != NULL && before != NULL; i++) {
        const Expr *product = value->arg[i / 2];
        if (is_op(product, OP_MUL) && product->arg[i % 2]->buf == before->buf &&
            product->arg[i % 2]->kind == EXPR_LOAD &&
            expr_eq(x->to, product->arg[1 - i % 2], factor) &&
            expr_eq(x->to, value->arg[1 - i / 2], term)) {
            return true;
        }
    }
    return false;
}

static bool change_value(Linear *x, const Stmt *before, const Stmt *loop, StmtList *out)
{
    Step step, first;
    int64_t steps = loop->kind == STMT_FOR ? loop->range.limit.n : 0;
    if (!is_loop_over_steps(loop, 1) || loop->range.span != 0 || loop->n_body != 1 ||
        steps > STEPS_MOST || before == NULL || loop->body[0]->kind != STMT_TILE) {
        return false;
    }
    const Stmt *s = loop->body[0];
    uint32_t rank = x->to->bufs.at[s->dst].rank, d = dim_of(s->at, rank, loop->var);
    if (d == rank || !find_step(x, s, d, 1, &step) ||
        !find_first(x, before, &step, d, &first)) {
        return false;
    }
    VarRef v = kernel_var(x->to, &x->ctx->syms, "t", false);
    Affine t = affine_var(x->arena, v);
    const Expr *factor = with(x, step.factor, loop->var, t),
               *term = with(x, step.term, loop->var, t);
    const Expr *value = first_value(x, first.s, before->var, s, v);
    if (!is_like(x, value, first.before, factor, term)) {
        Expr *at = ARENA_NEW(x->arena, Expr);
        if (value == NULL) {
            return false;
        }
        *at = (Expr){
            .kind = EXPR_INDEX, .dtype = DTYPE_I64, .at = arena_copy(x->arena, &t, sizeof t)};
        const Expr *is_first =
            two(x, OP_EQ, DTYPE_BOOL, at, expr_const(x->arena, number_int(DTYPE_I64, 0)));
        const Expr *of_factor[3] = {is_first, expr_const(x->arena, number_real(DTYPE_F32, 0.0)),
                                    factor};
        const Expr *of_term[3] = {is_first, value, term};
        factor = expr_op(x->arena, OP_SELECT, DTYPE_F32, 3, of_factor);
        term = expr_op(x->arena, OP_SELECT, DTYPE_F32, 3, of_term);
    }
    Stmt *scan = over_steps(x, s, UINT32_MAX, v, steps);
    scan->at = places_with(x, s->at, rank, loop->var, t);
    make_scan_of(x, scan, factor, term);
    out->n--; /* the first step */
    if (d + 1 < rank &&
        elements_of(scan) <= TURNED_MOST) { /* rows of steps are columns there */
        Dim *extent;
        Affine *at;
        BufRef rows;
        Stmt *copy = arena_copy(x->arena, scan, sizeof *scan);
        uint32_t n = shape_of(x, scan, &extent, &at);
        vec_push(x->arena, out,
                 alloc(x, s, x->to->bufs.at[s->dst].name->text, n, extent, &rows));
        copy->fold = OP_COPY;
        copy->begins = copy->decays = false;
        copy->scan = 0;
        copy->value = expr_load(x->arena, x->to, rows, at);
        scan->dst = rows;
        scan->at = at;
        vec_push(x->arena, out, scan);
        scan = copy;
    }
    vec_push(x->arena, out, scan);
    return true;
}

/* ---- a state that a sum reads ---- */

/* What the state is before the first step: the last statement before the loop that sets it copies zeros, which nothing else does. */
static bool begins_with_zeros(const Linear *x, BufRef state, Stmt *const *before, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) {
        const Stmt *s = before[i];
        bool copies = s->kind == STMT_TILE && s->dst == state;
        if (copies || s->kind == STMT_FOR || s->kind == STMT_BLOCK) {
            return copies && s->fold == OP_COPY && s->value->kind == EXPR_LOAD &&
                   is_zeros(x, s->value->buf);
        }
    }
    return false;
}

/* Does nothing but these two statements, and what sets it before the loop, touch the state? */
static bool is_theirs(const Linear *x, BufRef state, const Stmt *map, const Stmt *sum)
{
    uint32_t others = 0;
    StmtWalk w;
    for (const Stmt *s = stmt_first(&w, x->to->body, x->to->n_body); s != NULL;
         s = stmt_next(&w)) {
        if (s->kind == STMT_TILE && s != map && s != sum) {
            others += s->dst == state ? 1 : 0;
            others += reads(s->value, state) ? 2 : 0;
        }
    }
    return others == 1;
}

/* The index of the sum that is the dimension of the state which the sum folds, all of both; n_index: there is none, or several. */
static uint32_t folded_index(const Linear *x, const Stmt *map, const Stmt *sum,
                             const Expr *load, uint32_t *dim)
{
    uint32_t found = sum->n_index, rank = x->to->bufs.at[map->dst].rank;
    for (uint32_t i = 0; i < sum->n_index; i++) {
        VarRef v = sum->index[i].var;
        if (!access_uses(x->to, sum->dst, sum->at, v)) {
            if (found < sum->n_index) {
                return sum->n_index;
            }
            found = i;
            *dim = dim_of(load->at, rank, v);
        }
    }
    return found < sum->n_index && *dim < rank ? found : sum->n_index;
}

static bool is_whole(const Range *r)
{
    return r->start.n == 0 && r->start.base == 0 && r->span == 0 && r->limit.sym < 0;
}

/* The statement over the rows of a block of one of its indices. */
static void in_block(const Linear *x, Stmt *s, VarRef index, Affine first)
{
    TileIndex *all = arena_copy(x->arena, s->index, s->n_index * sizeof *all);
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (all[i].var == index) {
            all[i].range.start = first;
            all[i].range.span = NKI_PARTITIONS;
        }
    }
    s->index = all;
}

static void replace_load(void *user, Expr *e)
{
    const Step *to = user; /* before: the load that takes the place of `factor` */
    if (e->kind == EXPR_LOAD && e->buf == to->factor->buf) {
        *e = *to->before;
    }
}

static bool change_state(Linear *x, const Stmt *loop, StmtList *out)
{
    Arena *a = x->arena;
    Step step;
    if (!is_loop_over_steps(loop, 0) || loop->range.span != 0 || loop->n_body != 2 ||
        loop->range.limit.n > STEPS_MOST) {
        return false;
    }
    const Stmt *map = loop->body[0], *sum = loop->body[1];
    bool fits = map->kind == STMT_TILE && sum->kind == STMT_TILE && sum->fold == OP_SUM &&
                sum->begins && sum->n_first == 0 && sum->scan == 0 && sum->exact == 0 &&
                sum->places == 0 && sum->schedule == NULL;
    if (!fits || !find_step(x, map, UINT32_MAX, 0, &step)) {
        return false;
    }
    uint32_t dim = 0, rank = x->to->bufs.at[map->dst].rank;
    const Expr *load = expr_load_of(sum->value, map->dst);
    uint32_t k = load == NULL ? sum->n_index : folded_index(x, map, sum, load, &dim);
    uint32_t along = dim_of(sum->at, x->to->bufs.at[sum->dst].rank, loop->var);
    bool whole =
        k < sum->n_index && along < x->to->bufs.at[sum->dst].rank && rank == map->n_index;
    for (uint32_t i = 0; whole && i < map->n_index; i++) {
        whole = is_whole(&map->index[i].range) && dim_of(map->at, rank, map->index[i].var) == i;
    }
    for (uint32_t i = 0; whole && i < sum->n_index; i++) {
        uint32_t d = dim_of(load->at, rank, sum->index[i].var);
        whole = is_whole(&sum->index[i].range) && d < rank &&
                dim_eq(sum->index[i].range.limit, map->index[d].range.limit);
    }
    if (!whole || sum->n_index != rank || x->to->bufs.at[sum->dst].dtype != DTYPE_F32 ||
        !begins_with_zeros(x, map->dst, out->at, out->n) || !is_theirs(x, map->dst, map, sum)) {
        return false;
    }
    int64_t steps = loop->range.limit.n;
    uint32_t rows = rank; /* an index that is taken in blocks, so that all stays on chip */
    for (uint32_t d = 0; d < rank; d++) {
        int64_t m = map->index[d].range.limit.n;
        rows = d != dim && rows == rank && m > NKI_PARTITIONS && m % NKI_PARTITIONS == 0 ? d
                                                                                         : rows;
    }
    VarRef block = rows < rank ? kernel_var(x->to, &x->ctx->syms, "rows", true) : 0;
    VarRef own = rows < rank ? map->index[rows].var : UINT32_MAX, other = UINT32_MAX;
    for (uint32_t i = 0; i < sum->n_index && rows < rank; i++) {
        other = dim_of(load->at, rank, sum->index[i].var) == rows ? sum->index[i].var : other;
    }
    Affine from_row = rows < rank ? affine_var(a, block) : affine_const(0);
    VarRef v = kernel_var(x->to, &x->ctx->syms, "t", false), folded = map->index[dim].var;
    VarRef w = kernel_var(x->to, &x->ctx->syms, "s", true);
    Affine t = affine_var(a, v), here = affine_var(a, w);
    Dim *extent;
    Affine *at;
    BufRef all, sums;
    StmtList body = {0}, outer = {0};
    /* the steps, of one position of the folded dimension */
    Stmt *scan = over_steps(x, map, folded, v, steps);
    in_block(x, scan, own, from_row);
    uint32_t n = shape_of(x, scan, &extent, &at);
    vec_push(a, &body, alloc(x, map, x->to->bufs.at[map->dst].name->text, n, extent, &all));
    scan->dst = all;
    scan->at = at;
    make_scan_of(x, scan, with(x, with(x, step.factor, loop->var, t), folded, here),
                 with(x, with(x, step.term, loop->var, t), folded, here));
    vec_push(a, &body, scan);
    /* what they add */
    Stmt *add = over_steps(x, sum, sum->index[k].var, v, steps);
    in_block(x, add, other, from_row);
    n = shape_of(x, add, &extent, &at);
    vec_push(a, &outer, alloc(x, sum, x->to->bufs.at[sum->dst].name->text, n, extent, &sums));
    Stmt *none = arena_copy(a, add, sizeof *add);
    none->fold = OP_COPY;
    none->begins = false;
    none->value = expr_const(a, number_real(DTYPE_F32, 0.0));
    none->dst = sums;
    none->at = at;
    vec_push(a, &outer, none);
    Affine *from = ARENA_ARRAY(a, rank, Affine);
    uint32_t next = 0;
    for (uint32_t d = 0; d < rank;
         d++) { /* as the scan has them: without the folded one, then the steps */
        if (d != dim) {
            from[next++] = d == rows ? affine_add(a, load->at[d], -1, from_row) : load->at[d];
        }
    }
    from[next] = t;
    const Step replace = {.factor = load, .before = expr_load(a, x->to, all, from)};
    const Expr *value = with(x, with(x, sum->value, loop->var, t), sum->index[k].var, here);
    value = expr_with_places(a, value, replace_load, (void *)(uintptr_t)&replace);
    add->value = value;
    add->dst = sums;
    add->at = at;
    add->begins = false;
    vec_push(a, &body, add);
    Stmt *around = arena_copy(a, loop, sizeof *loop);
    around->var = w;
    around->range = map->index[dim].range;
    around->body = body.at;
    around->n_body = body.n;
    vec_push(a, &outer, around);
    Stmt *copy = over_steps(x, sum, sum->index[k].var, v, steps);
    in_block(x, copy, other, from_row);
    copy->fold = OP_COPY;
    copy->begins = false;
    copy->at = places_with(x, sum->at, x->to->bufs.at[sum->dst].rank, loop->var, t);
    copy->value = expr_load(a, x->to, sums, at);
    vec_push(a, &outer, copy);
    if (rows == rank) {
        for (uint32_t i = 0; i < outer.n; i++) {
            vec_push(a, out, outer.at[i]);
        }
        return true;
    }
    Stmt *blocks = arena_copy(a, loop, sizeof *loop);
    blocks->var = block;
    blocks->range = map->index[rows].range;
    blocks->step = NKI_PARTITIONS;
    blocks->body = outer.at;
    blocks->n_body = outer.n;
    vec_push(a, out, blocks);
    return true;
}

/* ---- all of them ---- */

static void change_all(Linear *x, Stmt ***body, uint32_t *n)
{
    StmtList out = {0};
    bool any = false;
    for (uint32_t i = 0; i < *n; i++) {
        Stmt *s = (*body)[i];
        const Stmt *before = i > 0 ? (*body)[i - 1] : NULL;
        bool changed = s->kind == STMT_FOR &&
                       (change_value(x, before, s, &out) || change_state(x, s, &out));
        any |= changed;
        if (!changed) {
            vec_push(x->arena, &out, s);
        }
    }
    x->any |= any;
    if (any) {
        *body = out.at;
        *n = out.n;
    }
}

/* TILED to TILED. Recurrences stand in the kernel's body. */
Kernel *nki_linear_steps(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    Linear x = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    change_all(&x, &x.to->body, &x.to->n_body);
    return x.any ? kernel_numbered(arena, x.to) : (Kernel *)(uintptr_t)k;
}
