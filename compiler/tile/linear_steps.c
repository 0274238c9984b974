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
 * The same operations in the same order, so the same numbers.
 *
 * An operation of its own in the graph would let the nest place it, and be a case in every pass; here the loop over steps is three statements.
 * The price of the nest knows that loop only. */
#include "tile/tile.h"

#include "loop/copy.h"

#define STEPS_MOST  8192    /* positions of a row: tiles of 32 KiB a partition */
#define TURNED_MOST 2097152 /* elements that stay on chip until they are turned */

typedef struct Linear {
    Ctx *ctx;
    Arena *arena;
    Kernel *to;
} Linear;

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

/* factor * before + term, with the element `lag` steps before along dimension d in neither of the others. */
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

static const Affine *places_with(Arena *arena, const Affine *at, uint32_t rank, VarRef from,
                                 Affine to)
{
    Affine *out = ARENA_ARRAY(arena, rank, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        out[d] = affine_subst(arena, at[d], from, to);
    }
    return out;
}

static void rename_load(void *user, Expr *e)
{
    const Renamed *r = user;
    uint32_t rank = e->kind == EXPR_INDEX ? 1 : r->k->bufs.at[e->buf].rank;
    e->at = places_with(r->arena, e->at, rank, r->from, r->to);
}

static const Expr *with(const Linear *x, const Expr *e, VarRef from, Affine to)
{
    Renamed r = {x->arena, x->to, from, to};
    return expr_with_places(x->arena, e, rename_load, &r);
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

/* Allocates a buffer of what the statement sets, one dimension for each of its indices, and sets that instead. What is there. */
static const Expr *put_buffer(const Linear *x, Stmts *to, Stmt *s)
{
    Dim *extent = ARENA_ARRAY(x->arena, s->n_index, Dim);
    Affine *at = ARENA_ARRAY(x->arena, s->n_index, Affine);
    for (uint32_t i = 0; i < s->n_index; i++) {
        const Range *r = &s->index[i].range;
        extent[i] = r->span == 0 ? r->limit : dim_fixed(r->span);
        at[i] = affine_add(x->arena, affine_var(x->arena, s->index[i].var), -1, r->start);
    }
    Stmt *alloc = ARENA_NEW(x->arena, Stmt);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = s->span};
    alloc->buf = kernel_buffer(x->to, &x->ctx->syms, x->to->bufs.at[s->dst].name->text,
                               DTYPE_F32, SPACE_TILE, s->n_index, extent);
    x->to->bufs.at[alloc->buf].span = s->span;
    vec_push(x->arena, to, alloc);
    s->dst = alloc->buf;
    s->at = at;
    return expr_load(x->arena, x->to, s->dst, at);
}

/* ---- a value that has all steps ---- */

/* The first step in a loop of its own; `before`: the zeros that its product is with, or null. */
static bool find_first(const Linear *x, const Stmt *loop, const Step *step, uint32_t d,
                       Step *out)
{
    const Stmt *s = loop->n_body == 1 ? loop->body[0] : NULL;
    bool one = s != NULL && is_loop_over_steps(loop, 0) && loop->range.span == 1 &&
               is_map(x, s) && s->dst == step->s->dst && is_op(s->value, OP_ADD) &&
               !reads(s->value, s->dst) && access_dim(x->to, s->dst, s->at, loop->var) == d;
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

static bool change_value(Linear *x, const Stmt *before, const Stmt *loop, Stmts *out)
{
    Step step, first;
    int64_t steps = loop->kind == STMT_FOR ? loop->range.limit.n : 0;
    if (!is_loop_over_steps(loop, 1) || loop->range.span != 0 || loop->n_body != 1 ||
        steps > STEPS_MOST || before == NULL || loop->body[0]->kind != STMT_TILE) {
        return false;
    }
    const Stmt *s = loop->body[0];
    uint32_t rank = x->to->bufs.at[s->dst].rank,
             d = access_dim(x->to, s->dst, s->at, loop->var);
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
        if (value == NULL) {
            return false;
        }
        const Expr *is_first = two(x, OP_EQ, DTYPE_BOOL, expr_index(x->arena, DTYPE_I64, t),
                                   expr_const(x->arena, number_int(DTYPE_I64, 0)));
        const Expr *of_factor[3] = {is_first, expr_const(x->arena, number_real(DTYPE_F32, 0.0)),
                                    factor};
        const Expr *of_term[3] = {is_first, value, term};
        factor = expr_op(x->arena, OP_SELECT, DTYPE_F32, 3, of_factor);
        term = expr_op(x->arena, OP_SELECT, DTYPE_F32, 3, of_term);
    }
    Stmt *scan = over_steps(x, s, UINT32_MAX, v, steps);
    scan->at = places_with(x->arena, s->at, rank, loop->var, t);
    make_scan_of(x, scan, factor, term);
    out->n--; /* the first step */
    if (d + 1 < rank &&
        elements_of(scan) <= TURNED_MOST) { /* rows of steps are columns there */
        Stmt *copy = arena_copy(x->arena, scan, sizeof *scan);
        copy->fold = OP_COPY;
        copy->begins = copy->decays = false;
        copy->scan = 0;
        copy->value = put_buffer(x, out, scan);
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

/* A state, and the sum that reads it in each step. */
typedef struct State {
    const Stmt *loop, *map, *sum;
    Step step;
    const Expr *load; /* of the state, by the sum */
    uint32_t rank;    /* of the state, whose dimensions are the indices of `map` in order */
    uint32_t folded;  /* the dimension that the sum folds */
    uint32_t
        rows; /* one that is taken in blocks, so that all stays on chip; the rank: none is */
} State;

static uint32_t dim_of_index(const Linear *x, const State *s, const TileIndex *i)
{
    return access_dim(x->to, s->map->dst, s->load->at, i->var);
}

/* The variable of the sum's index that is a dimension of the state. */
static VarRef index_of_dim(const Linear *x, const State *s, uint32_t dim)
{
    VarRef found = UINT32_MAX;
    for (uint32_t i = 0; i < s->sum->n_index; i++) {
        bool is = dim_of_index(x, s, &s->sum->index[i]) == dim;
        found = is ? s->sum->index[i].var : found;
    }
    return found;
}

/* Are the dimensions of the state the indices of its statement, and those of the sum, which folds one of them? */
static bool find_dims(const Linear *x, State *s)
{
    uint32_t folds = 0;
    bool fine = s->rank == s->map->n_index && s->rank == s->sum->n_index;
    for (uint32_t i = 0; fine && i < s->rank; i++) {
        fine = range_is_whole(&s->map->index[i].range) &&
               access_dim(x->to, s->map->dst, s->map->at, s->map->index[i].var) == i;
    }
    for (uint32_t i = 0; fine && i < s->rank; i++) {
        const TileIndex *index = &s->sum->index[i];
        uint32_t d = dim_of_index(x, s, index);
        bool kept = access_uses(x->to, s->sum->dst, s->sum->at, index->var);
        folds += kept ? 0 : 1;
        s->folded = kept ? s->folded : d;
        fine = d < s->rank && range_is_whole(&index->range) &&
               dim_eq(index->range.limit, s->map->index[d].range.limit);
    }
    return fine && folds == 1;
}

static uint32_t find_rows(const State *s)
{
    for (uint32_t d = 0; d < s->rank; d++) {
        int64_t n = s->map->index[d].range.limit.n;
        if (d != s->folded && n > TILE_ROWS && n % TILE_ROWS == 0) {
            return d;
        }
    }
    return s->rank;
}

static bool find_state(const Linear *x, const Stmt *loop, const Stmts *before, State *s)
{
    if (!is_loop_over_steps(loop, 0) || loop->range.span != 0 || loop->n_body != 2 ||
        loop->range.limit.n > STEPS_MOST) {
        return false;
    }
    const Stmt *map = loop->body[0], *sum = loop->body[1];
    *s = (State){.loop = loop, .map = map, .sum = sum};
    bool fits = map->kind == STMT_TILE && sum->kind == STMT_TILE && sum->fold == OP_SUM &&
                sum->begins && sum->n_first == 0 && sum->scan == 0 && sum->exact == 0 &&
                sum->places == 0 && sum->schedule == NULL &&
                x->to->bufs.at[sum->dst].dtype == DTYPE_F32;
    if (!fits || !find_step(x, map, UINT32_MAX, 0, &s->step)) {
        return false;
    }
    s->rank = x->to->bufs.at[map->dst].rank;
    s->load = expr_load_of(sum->value, map->dst);
    bool steps =
        access_dim(x->to, sum->dst, sum->at, loop->var) < x->to->bufs.at[sum->dst].rank;
    fits = s->load != NULL && steps && find_dims(x, s) &&
           begins_with_zeros(x, map->dst, before->at, before->n) &&
           is_theirs(x, map->dst, map, sum);
    s->rows = fits ? find_rows(s) : s->rank;
    return fits;
}

/* Where the new statements are: the step, the position of the folded dimension, and the first row of a block. */
typedef struct Positions {
    VarRef t;
    Affine folded, row;
} Positions;

/* A statement of the loop over steps as one over all of them, at one position of an index, over a block of another. */
static Stmt *turned(const Linear *x, const State *s, const Positions *p, const Stmt *of,
                    VarRef folded, VarRef rows)
{
    Stmt *out = over_steps(x, of, folded, p->t, s->loop->range.limit.n);
    TileIndex *index = (TileIndex *)(uintptr_t)out->index; /* a copy of ours */
    for (uint32_t i = 0; i < out->n_index && s->rows < s->rank; i++) {
        if (index[i].var == rows) {
            index[i].range.start = p->row;
            index[i].range.span = TILE_ROWS;
        }
    }
    return out;
}

static const Expr *turned_value(const Linear *x, const State *s, const Positions *p,
                                const Expr *value, VarRef folded)
{
    value = with(x, value, s->loop->var, affine_var(x->arena, p->t));
    return with(x, value, folded, p->folded);
}

/* The steps, at one position of the folded dimension: to a buffer of its own. */
static BufRef put_steps(const Linear *x, const State *s, const Positions *p, Stmts *to)
{
    const Stmt *map = s->map;
    VarRef folded = map->index[s->folded].var;
    VarRef rows = s->rows < s->rank ? map->index[s->rows].var : UINT32_MAX;
    Stmt *scan = turned(x, s, p, map, folded, rows);
    put_buffer(x, to, scan);
    make_scan_of(x, scan, turned_value(x, s, p, s->step.factor, folded),
                 turned_value(x, s, p, s->step.term, folded));
    vec_push(x->arena, to, scan);
    return scan->dst;
}

typedef struct Replaced {
    BufRef from;
    const Expr *to;
} Replaced;

static void replace_load(void *user, Expr *e)
{
    const Replaced *r = user;
    if (e->kind == EXPR_LOAD && e->buf == r->from) {
        *e = *r->to;
    }
}

/* What the sum adds, of all steps, which are in a buffer: the folded dimension lacks there, the steps are last. */
static const Expr *added_value(const Linear *x, const State *s, const Positions *p, BufRef all,
                               VarRef folded)
{
    Affine *at = ARENA_ARRAY(x->arena, s->rank, Affine);
    uint32_t n = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
        Affine first = d == s->rows ? p->row : affine_const(0);
        if (d != s->folded) {
            at[n++] = affine_add(x->arena, s->load->at[d], -1, first);
        }
    }
    at[n] = affine_var(x->arena, p->t);
    Replaced r = {s->map->dst, expr_load(x->arena, x->to, all, at)};
    const Expr *value = turned_value(x, s, p, s->sum->value, folded);
    return expr_with_places(x->arena, value, replace_load, &r);
}

static Stmt *loop_of(const Linear *x, const State *s, VarRef v, uint32_t dim, int64_t step,
                     const Stmts *body)
{
    Stmt *out = arena_copy(x->arena, s->loop, sizeof *s->loop);
    out->var = v;
    out->range = s->map->index[dim].range;
    out->step = step;
    out->body = body->at;
    out->n_body = body->n;
    return out;
}

static bool change_state(Linear *x, const Stmt *loop, Stmts *out)
{
    State s;
    if (!find_state(x, loop, out, &s)) {
        return false;
    }
    bool blocks = s.rows < s.rank;
    VarRef block = blocks ? kernel_var(x->to, &x->ctx->syms, "rows", true) : 0;
    Positions p = {.t = kernel_var(x->to, &x->ctx->syms, "t", false),
                   .row = blocks ? affine_var(x->arena, block) : affine_const(0)};
    VarRef each = kernel_var(x->to, &x->ctx->syms, "s", true);
    p.folded = affine_var(x->arena, each);
    VarRef folded = index_of_dim(x, &s, s.folded), rows = index_of_dim(x, &s, s.rows);
    Stmts body = {0}, inner = {0}, *to = blocks ? &inner : out;
    BufRef all = put_steps(x, &s, &p, &body);
    Stmt *add = turned(x, &s, &p, s.sum, folded, rows);
    const Expr *sum_of = put_buffer(x, to, add);
    add->begins = false;
    add->value = added_value(x, &s, &p, all, folded);
    vec_push(x->arena, &body, add);
    Stmt *none = arena_copy(x->arena, add, sizeof *add);
    none->fold = OP_COPY;
    none->value = expr_const(x->arena, number_real(DTYPE_F32, 0.0));
    vec_push(x->arena, to, none);
    vec_push(x->arena, to, loop_of(x, &s, each, s.folded, 1, &body));
    Stmt *copy = turned(x, &s, &p, s.sum, folded, rows);
    copy->fold = OP_COPY;
    copy->begins = false;
    copy->at = places_with(x->arena, s.sum->at, x->to->bufs.at[s.sum->dst].rank, loop->var,
                           affine_var(x->arena, p.t));
    copy->value = sum_of;
    vec_push(x->arena, to, copy);
    if (blocks) {
        vec_push(x->arena, out, loop_of(x, &s, block, s.rows, TILE_ROWS, &inner));
    }
    return true;
}

/* Recurrences stand in the kernel's body. */
Kernel *tile_linear_steps(const Target *target, Ctx *ctx, Arena *arena, const Kernel *k)
{
    (void)target;
    Linear x = {.ctx = ctx, .arena = arena, .to = kernel_changeable(arena, k)};
    Stmts out = {0};
    bool any = false;
    for (uint32_t i = 0; i < k->n_body; i++) {
        Stmt *s = x.to->body[i];
        const Stmt *before = i > 0 ? x.to->body[i - 1] : NULL;
        bool changed = s->kind == STMT_FOR &&
                       (change_value(&x, before, s, &out) || change_state(&x, s, &out));
        any |= changed;
        if (!changed) {
            vec_push(arena, &out, s);
        }
    }
    x.to->body = out.at;
    x.to->n_body = out.n;
    return any ? kernel_numbered(arena, x.to) : (Kernel *)(uintptr_t)k;
}
