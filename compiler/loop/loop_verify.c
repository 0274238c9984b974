/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a kernel between any two passes, for all values of its open dims. In order: names are identifiers, different among
 * variables and buffers; extents, element types and sizes are in range; arguments are buffers of the caller's memory, each once,
 * numbered; everything else is allocated; a buffer is used between its alloc and the end of that block, a variable inside its loop or
 * statement; ranges start at outer loops; tiles that are unrolled or vectors have a constant span and no clipping; types agree
 * without conversion: an operation's by the op table, a value's with its destination, a fold's with both; every access is inside its
 * buffer (bounds.h), assigned places are distinct, a value does not read what its statement writes, results and inout alone are
 * written among arguments, iterations of parallel loops do not meet (parallel.h). Conservative: what is not proved is refused. */
#include "loop/loop_verify.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/map.h"
#include "op/affine.h"
#include "loop/cascade.h"
#include "loop/clauses.h"
#include "loop/hints.h"
#include "loop/loop_text.h"
#include "loop/loop_verify_clauses.h"
#include "loop/refers.h"
#include "loop/term.h"

typedef struct Verifier {
    Ctx *ctx;
    const Kernel *k;
    const char *stage;
    Arena scratch;
    Bounds bounds;
    bool *visible;      /* [bufs] */
    bool *taken;        /* [bufs]: allocated, and another lies there now */
    uint32_t *block_of; /* [bufs]: where it is allocated */
    uint32_t block;     /* this one: a number of its own, from 1 */
    uint32_t n_blocks;
    uint32_t *loops_at; /* [bufs]: loops around the alloc */
    uint32_t n_loops;   /* around this place */
    uint32_t depth;     /* loops and blocks around this place */
    VEC(ParallelLoop *) parallel;
    const Stmt *at;   /* the statement at hand, or null */
    uint32_t n_tiles; /* tile statements so far */
    uint32_t *alone;  /* [vars]: the last statement that has a dimension for this index alone */
} Verifier;

static bool broken(Verifier *v, const char *format, ...) PRINTF_LIKE(2, 3);
static bool broken(Verifier *v, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    Span span = v->at != NULL && v->at->span.source != 0 ? v->at->span : v->k->span;
    const char *name = v->k->name != NULL ? v->k->name->text : "?";
    if (v->at == NULL) {
        return dump_refuse(v->ctx, span, "%s: kernel '%.60s': %s", v->stage, name, what);
    }
    Text stmt = text_new(&v->scratch);
    loop_text_stmt(v->k, v->at, &stmt);
    return dump_refuse(v->ctx, span, "%s: kernel '%.60s': %s, in `%.200s`", v->stage, name,
                       what, stmt.at);
}

/* The structure itself is wrong (loop/refers.h): the statement is not printed. */
static bool malformed(Verifier *v, const char *what)
{
    v->at = NULL;
    return broken(v, "%s", what);
}

/* ---- declarations ---- */

static bool verify_dim(Verifier *v, Dim d)
{
    const char *wrong = dim_refers(v->k, d);
    if (wrong != NULL) {
        return malformed(v, wrong);
    }
    if (d.sym < 0 && (d.n < 0 || d.n > SIZE_LIMIT)) {
        return broken(v, "the extent %lld is out of range", (long long)d.n);
    }
    return true;
}

static bool verify_buffer(Verifier *v, const Buffer *b)
{
    const char *name = b->name->text;
    if (!dtype_known(b->dtype) || (int)b->space < 0 || b->space >= SPACE_COUNT) {
        return broken(v, "'@%.60s' has no element type or space", name);
    }
    if (b->rank > RANK_LIMIT) {
        return broken(v, "'@%.60s' has rank %u; at most %d are possible", name, b->rank,
                      RANK_LIMIT);
    }
    int64_t bytes = dtype_bytes(b->dtype);
    for (uint32_t d = 0; d < b->rank; d++) {
        if (!verify_dim(v, b->extent[d])) {
            return false;
        }
        if (b->extent[d].sym < 0 && b->extent[d].n != 0 &&
            !size_mul(bytes, b->extent[d].n, &bytes)) {
            return broken(v, "'@%.60s' is too large", name);
        }
    }
    bool panels = b->rank == 2 && b->param < 0 && b->space != SPACE_ACC &&
                  b->extent[0].sym < 0 && b->extent[1].sym < 0;
    if (b->panels != 0 && (!panels || b->panels < 0 || b->extent[1].n % b->panels != 0)) {
        return broken(v, "'@%.60s' is not made of whole panels", name);
    }
    if (b->stored != DTYPE_NONE &&
        (b->param < 0 || !dtype_is_float(b->dtype) || !dtype_is_storage(b->stored) ||
         dtype_bytes(b->stored) > dtype_bytes(b->dtype))) {
        return broken(v, "'@%.60s' does not hold what is stored", name);
    }
    int64_t size = dtype_bytes(b->dtype);
    bool words = dtype_is_int(b->dtype) && size < 4 && b->group == 4 / size;
    if (b->group != 0 && (b->panels == 0 || !words || b->extent[0].n % b->group != 0)) {
        return broken(v, "'@%.60s' is not made of whole groups of words", name);
    }
    bool pairs = b->rank > 0 && dim_is(b->extent[b->rank - 1], 2) &&
                 (b->dtype == DTYPE_F32 || b->dtype == DTYPE_F64);
    return !b->parts || (pairs && b->param < 0) ||
           broken(v, "'@%.60s' does not hold the parts of complex numbers", name);
}

static bool verify_name(Verifier *v, Map *names, Sym name)
{
    uint32_t before = 0;
    if (name == NULL || !name_is_plain(name)) {
        return broken(v, "a variable or buffer has no identifier as its name");
    }
    if (map_get(names, name->id, &before)) {
        return broken(v, "two variables or buffers are called '%.60s'", name->text);
    }
    map_put(names, name->id, 1);
    return true;
}

static bool verify_names(Verifier *v)
{
    Map names;
    map_init(&names, &v->scratch);
    for (uint32_t i = 0; i < v->k->vars.n; i++) {
        if (!verify_name(v, &names, v->k->vars.at[i].name)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < v->k->bufs.n; i++) {
        if (!verify_name(v, &names, v->k->bufs.at[i].name) ||
            !verify_buffer(v, &v->k->bufs.at[i])) {
            return false;
        }
    }
    return true;
}

static bool verify_args(Verifier *v)
{
    for (uint32_t i = 0; i < v->k->args.n; i++) {
        Arg arg = v->k->args.at[i];
        if (arg.buf >= v->k->bufs.n) {
            return broken(v, "argument %u is no buffer", i);
        }
        const Buffer *b = &v->k->bufs.at[arg.buf];
        if (b->space != SPACE_ARGUMENT || b->param != (int32_t)i) {
            return broken(v, "'@%.60s' is not numbered as argument %u", b->name->text, i);
        }
        if (!arg_fits(v->k, &arg)) {
            return broken(v, "'@%.60s' does not hold what the caller has, or its parts",
                          b->name->text);
        }
        uint32_t rank = arg_rank(v->k, &arg);
        if (arg.role == ARG_SCALAR && rank != 0) {
            return broken(v, "the scalar '@%.60s' has rank %u", b->name->text, rank);
        }
        v->visible[arg.buf] = true;
    }
    for (uint32_t i = 0; i < v->k->bufs.n; i++) {
        const Buffer *b = &v->k->bufs.at[i];
        if (!v->visible[i] && (b->space == SPACE_ARGUMENT || b->param != -1)) {
            return broken(v, "'@%.60s' is no argument but declared as one", b->name->text);
        }
    }
    return true;
}

static bool verify_head(Verifier *v)
{
    const Kernel *k = v->k;
    if (k->name == NULL || k->name->n == 0 || k->signature == NULL) {
        return broken(v, "it has no name or no signature");
    }
    if (k->form == LOOP_TILED && k->target != NULL) {
        return broken(v, "form tiled is for no target");
    }
    Map names;
    map_init(&names, &v->scratch);
    for (uint32_t d = 0; d < k->dims.list.n; d++) {
        uint32_t before = 0;
        const DimInfo *dim = &k->dims.list.at[d];
        if (dim->name == NULL || map_get(&names, dim->name->id, &before) || dim->typical < 1 ||
            dim->typical > SIZE_LIMIT || dim_problem(&k->dims, d) != NULL) {
            return broken(v, "dim %u lacks a name of its own, a typical size or its factors",
                          d);
        }
        map_put(&names, dim->name->id, d);
    }
    for (uint32_t i = 0; i < k->n_work; i++) {
        for (uint32_t f = 0; f < k->work[i].n; f++) {
            if (!verify_dim(v, k->work[i].factor[f])) {
                return false;
            }
        }
    }
    return verify_names(v) && verify_args(v);
}

/* ---- accesses ---- */

static bool refuse_access(Verifier *v, BufRef buf, const Affine *at, uint32_t d,
                          const char *what)
{
    if (bounds_exhausted(&v->bounds)) {
        return diag_refuse_limit(&v->ctx->diags, E_LIMIT_SIZE, v->k->span,
                                 "%s: kernel '%.60s' takes more than %llu steps to verify",
                                 v->stage, v->k->name->text,
                                 (unsigned long long)v->bounds.most);
    }
    Text access = text_new(&v->scratch);
    loop_text_access(v->k, buf, at, &access);
    return broken(v, "index %u of `%.120s` %s", d + 1, access.at, what);
}

static bool verify_affine(Verifier *v, Affine x)
{
    for (uint32_t i = 0; i < x.n; i++) {
        if (!affine_is_dim(x.term[i].var) && !bounds_in_scope(&v->bounds, x.term[i].var)) {
            return broken(v, "'%.60s' is used outside its loop or statement",
                          v->k->vars.at[x.term[i].var].name->text);
        }
    }
    return true;
}

static bool verify_position(Verifier *v, BufRef buf, const Affine *at, uint32_t d)
{
    if (!verify_affine(v, at[d])) {
        return false;
    }
    if (!bounds_at_least_zero(&v->bounds, at[d])) {
        return refuse_access(v, buf, at, d, "may be below 0");
    }
    return bounds_below(&v->bounds, at[d], v->k->bufs.at[buf].extent[d]) ||
           refuse_access(v, buf, at, d, "may be past the end");
}

static bool verify_access(Verifier *v, BufRef buf, const Affine *at, bool writes)
{
    const Buffer *b = &v->k->bufs.at[buf];
    if (!v->visible[buf]) {
        return broken(v,
                      v->taken[buf] ? "'@%.60s' is used when another buffer has its place"
                                    : "'@%.60s' is used outside the block that allocates it",
                      b->name->text);
    }
    for (uint32_t d = 0; d < b->rank; d++) {
        if (!verify_position(v, buf, at, d)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < v->parallel.n; i++) {
        ParallelLoop *p = v->parallel.at[i];
        if (v->loops_at[buf] < p->n_outer) { /* only loops are in scope around a loop */
            parallel_access(p, &v->bounds, v->at, buf, at, NULL, writes);
        }
    }
    return true;
}

/* ---- values ---- */

/* The very element the statement assigns may be read, unless a fold meets it many times; and what lies apart from all
 * that it assigns. */
static bool verify_read(Verifier *v, const Expr *e)
{
    const Stmt *s = v->at;
    uint32_t rank = v->k->bufs.at[s->dst].rank;
    bool own = e->buf == s->dst && s->fold == OP_COPY;
    if (!verify_access(v, e->buf, e->at, false)) {
        return false;
    }
    for (uint32_t d = 0; own && d < rank; d++) {
        own = affine_eq(e->at[d], s->at[d]);
    }
    if (e->buf == s->dst && !own &&
        (s->fold != OP_COPY || !bounds_apart(&v->bounds, rank, s->at, e->at, NULL))) {
        return broken(v, "the value reads '@%.60s', which the statement writes",
                      v->k->bufs.at[s->dst].name->text);
    }
    return e->dtype == v->k->bufs.at[e->buf].dtype ||
           broken(v, "a load has another type than '@%.60s'", v->k->bufs.at[e->buf].name->text);
}

static bool verify_expr(Verifier *v, const Expr *e);

/* Any element may be read at the positions that are no indices: the statement writes none of them, nor do iterations that run at the same
 * time. Positions that are those of indices are inside of it: back ends test the others alone. */
static bool verify_gather(Verifier *v, const Expr *e)
{
    const Buffer *b = &v->k->bufs.at[e->buf];
    Affine at[RANK_LIMIT] = {{0}};
    bool given[RANK_LIMIT] = {false};
    bool fine = v->visible[e->buf] && !b->cascade && b->panels == 0 && b->dtype == e->dtype &&
                (v->at->sums == 0 || e->buf != v->at->sums - 1);
    for (uint32_t i = 0; i < e->n_args && fine; i++) {
        given[i] = e->arg[i]->kind == EXPR_INDEX;
        at[i] = given[i] ? e->arg[i]->at[0] : at[i];
        fine = e->arg[i]->dtype == DTYPE_I64 && verify_expr(v, e->arg[i]) &&
               (!given[i] || verify_position(v, e->buf, at, i));
    }
    bool own = e->buf == v->at->dst;
    fine = fine && (!own || (v->at->fold == OP_COPY &&
                             bounds_apart(&v->bounds, b->rank, v->at->at, at, given)));
    for (uint32_t i = 0; i < v->parallel.n && fine; i++) {
        ParallelLoop *p = v->parallel.at[i];
        if (v->loops_at[e->buf] < p->n_outer) {
            parallel_access(p, &v->bounds, v->at, e->buf, at, given, false);
        }
    }
    return fine || broken(v, "a gather from '@%.60s', which may change", b->name->text);
}

static bool verify_expr(Verifier *v, const Expr *e)
{
    DType in[3] = {DTYPE_NONE};
    if (e->kind == EXPR_LOAD) {
        return verify_read(v, e);
    }
    if (e->kind == EXPR_INDEX) {
        return verify_affine(v, e->at[0]);
    }
    if (e->kind != EXPR_OP) {
        return true;
    }
    if (e->op == OP_GATHER) {
        return verify_gather(v, e);
    }
    for (uint32_t i = 0; i < e->n_args; i++) { /* as deep as expr_refers allows */
        if (!verify_expr(v, e->arg[i])) {
            return false;
        }
        in[i] = e->arg[i]->dtype;
    }
    DType made = e->dtype;
    if (e->op != OP_CAST &&
        (!op_result_type(e->op, in, e->n_args, &made) || made != e->dtype)) {
        return broken(v, "'%s' has operands of types it does not take, or another result",
                      op_info(e->op)->name);
    }
    return true;
}

/* ---- ranges ---- */

static bool verify_range(Verifier *v, const Range *r)
{
    if (r->span < 0 || r->span > SIZE_LIMIT || (r->span == 0 && !r->clipped)) {
        return broken(v, "a range without an end");
    }
    return verify_affine(v, r->start) && (!r->clipped || verify_dim(v, r->limit));
}

/* At most one value, whatever the dims are. */
static bool is_single(const Range *r)
{
    return r->span == 1 || (r->span == 0 && r->start.n == 0 && r->limit.sym < 0 &&
                            r->limit.n - 1 <= r->start.base);
}

static bool verify_binding(Verifier *v, VarRef var)
{
    if (bounds_in_scope(&v->bounds, var)) {
        return broken(v, "'%.60s' is bound twice", v->k->vars.at[var].name->text);
    }
    return true;
}

/* ---- statements ---- */

/* Assigned places are distinct when each index has a dimension in which no other index of the
 * statement moves, or in which all that move are digits of one number. */
static bool verify_distinct(Verifier *v, const Stmt *s)
{
    uint32_t rank = v->k->bufs.at[s->dst].rank;
    uint32_t now = ++v->n_tiles;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t n_moving = 0;
        for (uint32_t i = 0; i < s->at[d].n; i++) {
            VarRef x = s->at[d].term[i].var;
            n_moving += !affine_is_dim(x) && !v->k->vars.at[x].is_loop;
        }
        bool alone =
            n_moving == 1 || (n_moving > 1 && bounds_are_digits(v->k, s, s->at[d], n_moving));
        for (uint32_t i = 0; alone && i < s->at[d].n && !affine_is_dim(s->at[d].term[i].var);
             i++) {
            v->alone[s->at[d].term[i].var] = now;
        }
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (v->alone[s->index[i].var] != now && !is_single(&s->index[i].range)) {
            return broken(v, "different values of '%.60s' may be assigned to one place",
                          v->k->vars.at[s->index[i].var].name->text);
        }
    }
    return true;
}

static bool verify_fold(Verifier *v, const Stmt *s)
{
    DType t = v->k->bufs.at[s->dst].dtype, made = DTYPE_NONE;
    if (s->fold == OP_COPY) {
        return verify_distinct(v, s);
    }
    if (s->scan > 0 && !verify_distinct(v, s)) {
        return false;
    }
    if (!op_result_type(s->fold, &t, 1, &made) || made != t) {
        return broken(v, "'%s' does not fold %s", op_info(s->fold)->name, dtype_name(t));
    }
    return true;
}

/* The statement's own indices are in scope. */
static bool verify_tile_body(Verifier *v, const Stmt *s)
{
    if (!verify_access(v, s->dst, s->at, true)) {
        return false;
    }
    const Buffer *dst = &v->k->bufs.at[s->dst];
    if (!buffer_is_writable(v->k, s->dst)) {
        return broken(v, "'@%.60s' is only read by this kernel", dst->name->text);
    }
    Clauses has;
    clauses_of(v->k, s, &has);
    for (const Clause *c = has.at; c < has.at + has.n; c++) {
        if (c->at != NULL && !verify_access(v, *c->buf - 1, *c->at, true)) {
            return false;
        }
    }
    if (!verify_fold(v, s) || !verify_expr(v, s->value)) {
        return false;
    }
    ClauseContext around = {&v->scratch, v->k, &v->bounds,
                            (const ParallelLoop *const *)v->parallel.at, v->parallel.n};
    const char *problem = clauses_problem(&around, s);
    problem = problem == NULL ? fold_schedule_problem(&v->scratch, v->k, s) : problem;
    if (problem != NULL) {
        return broken(v, "%s", problem);
    }
    return s->value->dtype == dst->dtype ||
           broken(v, "the value is %s but '@%.60s' is %s", dtype_name(s->value->dtype),
                  dst->name->text, dtype_name(dst->dtype));
}

static bool verify_tile(Verifier *v, const Stmt *s)
{
    bool has_loop = false; /* a product's tile may be cut: it adds up more than it joins */
    for (uint32_t i = 0; i < s->n_index; i++) {
        has_loop |= s->index[i].mode == MODE_LOOP;
    }
    for (uint32_t i = 0; i < s->n_index; i++) {
        const TileIndex *x = &s->index[i];
        if (!verify_binding(v, x->var) || !verify_range(v, &x->range)) {
            return false;
        }
        if (x->window != NULL &&
            (!tile_multiplies(s) || v->k->form == LOOP_TILED || s->begins ||
             access_uses(v->k, s->dst, s->at, x->var) || !verify_affine(v, x->window->lo) ||
             !verify_affine(v, x->window->hi))) {
            return broken(v, "only the sum of a product that has begun has a window");
        }
        if (v->k->form == LOOP_TILED
                ? x->mode != MODE_LOOP
                : (x->mode == MODE_UNROLL || x->mode == MODE_VECTOR) &&
                      !range_is_constant(&x->range) && !(has_loop && x->range.span > 0)) {
            return broken(v,
                          "'%.60s' is unrolled or a vector, which needs form legal and a full "
                          "tile of constant span",
                          v->k->vars.at[x->var].name->text);
        }
    }
    uint32_t pushed = 0;
    bool ok = true;
    for (; ok && pushed < s->n_index; pushed++) {
        /* ranges were checked before any index was in scope, so none starts at another */
        ok = verify_binding(v, s->index[pushed].var);
        bounds_push(&v->bounds, s->index[pushed].var, &s->index[pushed].range, 1, FOR_ALL);
    }
    ok = ok && verify_tile_body(v, s);
    while (pushed-- > 0) {
        bounds_pop(&v->bounds);
    }
    return ok;
}

static bool verify_block(Verifier *v, Stmt *const *body, uint32_t n);

static bool verify_for(Verifier *v, const Stmt *s)
{
    if (!verify_binding(v, s->var) || !verify_range(v, &s->range)) {
        return false;
    }
    if (s->step < 1 || s->step > SIZE_LIMIT) {
        return broken(v, "a step of %lld", (long long)s->step);
    }
    if (s->window != NULL && (s->part == FOR_REST || !verify_affine(v, s->window->lo) ||
                              !verify_affine(v, s->window->hi))) {
        return broken(v, "a loop that is no plain one has a window");
    }
    bounds_push(&v->bounds, s->var, &s->range, s->step, s->part);
    v->n_loops++;
    ParallelLoop p = {.arena = &v->scratch, .k = v->k, .loop = s, .n_outer = v->bounds.vars.n};
    if (s->parallel && v->parallel.n == PARALLEL_DEPTH_LIMIT) {
        return broken(v, "parallel loops are nested more than %d deep", PARALLEL_DEPTH_LIMIT);
    }
    if (s->parallel) {
        vec_push(&v->scratch, &v->parallel, &p);
    }
    bool ok = verify_block(v, s->body, s->n_body);
    v->n_loops--;
    bounds_pop(&v->bounds);
    if (!s->parallel) {
        return ok;
    }
    v->parallel.n--;
    BufRef buf = 0;
    bool alone = s->range.start.n == 0 && s->range.span == 0 && s->range.limit.sym < 0 &&
                 s->range.limit.n <= s->range.start.base + s->step; /* one iteration */
    const Stmt *culprit = ok && !alone ? parallel_conflict(&p, &buf) : NULL;
    if (culprit != NULL) {
        v->at = culprit;
        return broken(v, "iterations of the parallel loop '$%.60s' may meet in '@%.60s'",
                      v->k->vars.at[s->var].name->text, v->k->bufs.at[buf].name->text);
    }
    return ok;
}

static bool is_memory(const Buffer *b)
{
    return (b->space == SPACE_TILE || b->space == SPACE_WORKSPACE) && !b->cascade;
}

/* The buffer that lies there now ends with this; what it lay over has ended before. */
static bool verify_over(Verifier *v, const Stmt *s, BufRef over)
{
    const Buffer *a = &v->k->bufs.at[over], *b = &v->k->bufs.at[s->buf];
    if (over == s->buf || !v->visible[over] || v->block_of[over] != v->block) {
        return broken(v, "'@%.60s' does not live in this block, so nothing can lie over it",
                      a->name->text);
    }
    if (!is_memory(a) || !is_memory(b) || a->dtype != b->dtype) {
        return broken(v, "'@%.60s' and '@%.60s' are not of one element type in memory",
                      b->name->text, a->name->text);
    }
    v->visible[over] = false;
    v->taken[over] = true;
    return true;
}

static bool verify_alloc(Verifier *v, const Stmt *s)
{
    if (v->k->bufs.at[s->buf].space == SPACE_ARGUMENT) {
        return broken(v, "only buffers that are no arguments are allocated");
    }
    if (v->visible[s->buf] || v->taken[s->buf]) {
        return broken(v, "'@%.60s' is allocated twice", v->k->bufs.at[s->buf].name->text);
    }
    if (s->over > 0 && !verify_over(v, s, s->over - 1)) {
        return false;
    }
    v->visible[s->buf] = true;
    v->block_of[s->buf] = v->block;
    v->loops_at[s->buf] = v->n_loops;
    return true;
}

/* A block with the guards from `at` on. */
static bool verify_guarded(Verifier *v, const Stmt *s, uint32_t at)
{
    if (at == s->n_guards) {
        return verify_block(v, s->body, s->n_body);
    }
    Guard g = s->guard[at];
    BoundVar was;
    if (v->k->form != LOOP_LEGAL || s->n_guards > LOOP_DEPTH_LIMIT || g.lo >= g.hi) {
        return broken(v, "blocks of form legal are tested, for some values of loops");
    }
    if (!bounds_narrow(&v->bounds, &g, &was)) {
        return broken(v, "the test of a block is of a loop around it, from a number to a "
                         "number by one, or from loops around that one");
    }
    bool ok = verify_guarded(v, s, at + 1);
    bounds_widen(&v->bounds, &was);
    return ok;
}

static bool verify_stmt(Verifier *v, const Stmt *s)
{
    const char *wrong = stmt_refers(v->k, s);
    if (wrong != NULL) {
        return malformed(v, wrong);
    }
    v->at = s;
    switch (s->kind) {
    case STMT_FOR:
        return verify_for(v, s);
    case STMT_BLOCK:
        return verify_guarded(v, s, 0);
    case STMT_ALLOC:
        return verify_alloc(v, s);
    case STMT_TILE:
        return verify_tile(v, s);
    }
    UNREACHABLE();
}

static bool has_test(Stmt *const *body, uint32_t n, uint32_t i)
{
    return i < n && body[i]->kind == STMT_BLOCK && body[i]->when != NULL;
}

/* Where statement i is the first of some blocks with tests, exactly one of them is run. */
static bool verify_tests(Verifier *v, Stmt *const *body, uint32_t n, uint32_t i)
{
    VEC(const DimTest *) tests = {0};
    if (i > 0 && has_test(body, n, i - 1)) {
        return true;
    }
    for (uint32_t k = i; has_test(body, n, k); k++) {
        vec_push(&v->scratch, &tests, body[k]->when);
    }
    const char *problem = dim_tests_problem(&v->k->dims, tests.n, tests.at);
    return problem == NULL || malformed(v, problem);
}

static bool verify_block(Verifier *v, Stmt *const *body, uint32_t n)
{
    bool ok = true;
    uint32_t done = 0;
    if (v->depth > LOOP_DEPTH_LIMIT) {
        return broken(v, "loops and blocks are nested more than %d deep", LOOP_DEPTH_LIMIT);
    }
    uint32_t outer = v->block;
    v->block = ++v->n_blocks;
    v->depth++;
    for (; ok && done < n; done++) {
        ok = verify_tests(v, body, n, done) && verify_stmt(v, body[done]);
    }
    v->depth--;
    v->block = outer;
    for (uint32_t i = 0; i < done; i++) { /* what was allocated here ends here */
        if (body[i]->kind == STMT_ALLOC && body[i]->buf < v->k->bufs.n) {
            v->visible[body[i]->buf] = v->taken[body[i]->buf] = false;
        }
    }
    return ok;
}

/* Positions require nothing themselves. */
static bool verify_required(Verifier *v)
{
    const Kernel *p = v->k->positions;
    v->at = NULL;
    if (p != NULL && p->positions == NULL && !loop_verify(v->ctx, p, v->stage)) {
        return false;
    }
    const char *problem = required_problem(&v->scratch, v->k);
    return problem == NULL || broken(v, "%s", problem);
}

/* Where callers look for it. */
static bool verify_indefinite(Verifier *v)
{
    const Kernel *k = v->k;
    BufRef first = kernel_indefinite(k);
    if (first == BUF_NONE) {
        return true;
    }
    const Buffer *b = &k->bufs.at[first];
    bool only = true;
    for (BufRef other = first + 1; other < k->bufs.n; other++) {
        only = only && !k->bufs.at[other].indefinite;
    }
    v->at = NULL;
    return (only && b->space == SPACE_WORKSPACE && b->dtype == DTYPE_I64 && b->rank == 1 &&
            dim_is(b->extent[0], 1) && k->n_body > 0 && k->body[0]->kind == STMT_ALLOC &&
            k->body[0]->buf == first) ||
           broken(v, "'indefinite' is one i64[1], the first of the workspace");
}

bool loop_verify(Ctx *ctx, const Kernel *k, const char *stage)
{
    Verifier v = {.ctx = ctx, .k = k, .stage = stage};
    arena_init(&v.scratch, &ctx->budget);
    bounds_init(&v.bounds, &v.scratch, k);
    v.visible = ARENA_ARRAY(&v.scratch, k->bufs.n, bool);
    v.taken = ARENA_ARRAY(&v.scratch, k->bufs.n, bool);
    v.block_of = ARENA_ARRAY(&v.scratch, k->bufs.n, uint32_t);
    v.alone = ARENA_ARRAY(&v.scratch, k->vars.n, uint32_t);
    v.loops_at = ARENA_ARRAY(&v.scratch, k->bufs.n, uint32_t);
    bool ok = verify_head(&v) && verify_block(&v, k->body, k->n_body) && verify_required(&v) &&
              verify_indefinite(&v);
    arena_release(&v.scratch);
    return ok && cascades_verify(ctx, k, stage) && hints_verify(ctx, k, stage);
}
