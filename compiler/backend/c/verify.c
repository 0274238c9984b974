/* SPDX-License-Identifier: Apache-2.0 */
/* What the printer of C relies on, beyond what loop_verify has seen: unrolled indices are few and known, a vector index has unit
 * stride or none, accumulators are small and every element of them is a name, and nothing exceeds what C11 compilers
 * must accept. A LEGAL kernel may come from a file, so each rule ends in a diagnostic. */
#include "backend/c/c.h"
#include "backend/c/legalise.h"
#include "backend/c/product.h"
#include "op/affine.h"

#define MOST_DEPTH       120 /* blocks in blocks: C11 asks for 127 */
#define MOST_PARAMETERS  120 /* C11 asks for 127 */
#define MOST_ACC_BYTES   2048
#define MOST_LOCAL_BYTES 2048 /* of all arrays of a register tile */
#define MOST_UNROLLED    1024

/* The loops around a place. */
typedef struct Around {
    const Stmt *loop;
    const struct Around *outer;
} Around;

typedef struct Check {
    Ctx *ctx;
    const Kernel *k;
    const Around *around; /* or null */
    bool in_tile;         /* after an accumulator of rank >= 1, up to the end of its block */
    int64_t local_bytes;  /* of that register tile's arrays so far */
} Check;

static bool refuse(const Check *c, const Stmt *s, const char *what)
{
    Span span = s != NULL ? s->span : c->k->span;
    diag_unsupported(&c->ctx->diags, E_TARGET, span, "kernel '%.60s': %s", c->k->name->text,
                     what);
    return false;
}

/* A limit that docs/language.md states. */
static bool exceed(const Check *c, const Stmt *s, int most, const char *what)
{
    diag_limit(&c->ctx->diags, E_LIMIT_SIZE, s != NULL ? s->span : c->k->span,
               "kernel '%.60s': target '%s' takes at most %d %s", c->k->name->text,
               c->k->target, most, what);
    return false;
}

/* Bytes of a buffer whose extents are all fixed; -1 otherwise. */
static int64_t fixed_bytes(const Buffer *b)
{
    int64_t bytes = dtype_bytes(b->dtype);
    bool open = false;
    for (uint32_t d = 0; d < b->rank; d++) {
        open |= b->extent[d].sym >= 0;
        bytes = b->extent[d].sym < 0 ? sat_mul(bytes, b->extent[d].n) : bytes;
    }
    return open ? -1 : bytes;
}

static bool check_sizes(const Check *c)
{
    for (uint32_t i = 0; i < c->k->bufs.n; i++) {
        const Buffer *b = &c->k->bufs.at[i];
        int64_t bytes = dtype_bytes(b->dtype); /* strides count, even where an extent is 0 */
        for (uint32_t d = 0; d < b->rank; d++) {
            bytes = b->extent[d].sym < 0 && b->extent[d].n > 1 ? sat_mul(bytes, b->extent[d].n)
                                                               : bytes;
        }
        if (bytes > SIZE_LIMIT / 2) {
            diag_limit(&c->ctx->diags, E_LIMIT_SIZE, b->span.source != 0 ? b->span : c->k->span,
                       "'%.60s' is too large for one array", b->name->text);
            return false;
        }
    }
    return c->k->args.n + dims_given(&c->k->dims) <= MOST_PARAMETERS ||
           exceed(c, NULL, MOST_PARAMETERS, "arguments and open dims");
}

static bool is_named(const Check *c, BufRef buf)
{
    return c->k->bufs.at[buf].space == SPACE_ACC && c->k->bufs.at[buf].rank > 0;
}

static const TileIndex *vector_index(const Stmt *s)
{
    for (uint32_t i = 0; i < s->n_index; i++) {
        if (s->index[i].mode == MODE_VECTOR) {
            return &s->index[i];
        }
    }
    return NULL;
}

/* The expression with all local indices at their start; it must be a number. Allocates nothing lasting. */
static bool start_position(const Check *c, const Stmt *s, Affine x, int64_t *out)
{
    ArenaMark mark = arena_mark(&c->ctx->arena);
    for (uint32_t i = 0; i < s->n_index; i++) {
        x = affine_subst(&c->ctx->arena, x, s->index[i].var, s->index[i].range.start);
    }
    *out = x.base;
    bool constant = x.n == 0;
    arena_reset(&c->ctx->arena, mark);
    return constant;
}

/* Every element of a named accumulator that the statement, all unrolled, touches has a name. */
static bool check_named(const Check *c, const Stmt *s, BufRef buf, const Affine *at)
{
    const Buffer *b = &c->k->bufs.at[buf];
    const TileIndex *vec = vector_index(s);
    for (uint32_t d = 0; d < b->rank; d++) {
        int64_t start = 0;
        if (!start_position(c, s, at[d], &start)) {
            return refuse(c, s, "an accumulator is indexed by a loop");
        }
        int64_t coef = vec != NULL ? affine_coef(at[d], vec->var) : 0;
        bool last = d + 1 == b->rank;
        if (coef != 0 && (!last || coef != 1 || at[d].n > 2 || start != 0 ||
                          vec->range.span != b->extent[d].n)) {
            return refuse(c, s, "a vector is not a whole row of its accumulator");
        }
    }
    return true;
}

/* Is it a multiple of `unit` wherever the loops around stand? A loop's variable is its start and some steps. */
static bool is_multiple(const Check *c, Affine x, int64_t unit)
{
    bool steps = true;
    for (const Around *a = c->around; a != NULL; a = a->outer) {
        int64_t coef = affine_coef(x, a->loop->var);
        steps = steps && (coef % unit) * (a->loop->step % unit) % unit == 0;
        x = coef == 0 ? x : affine_subst(&c->ctx->arena, x, a->loop->var, a->loop->range.start);
    }
    return steps && x.n == 0 && x.base % unit == 0;
}

/* From the first element on, are so many in one panel? */
static bool in_panel(const Check *c, const Stmt *s, BufRef buf, const Affine *at, int64_t reach)
{
    int64_t width = c->k->bufs.at[buf].panels;
    ArenaMark mark = arena_mark(&c->ctx->arena);
    Affine first = at[1];
    for (uint32_t i = 0; i < s->n_index; i++) {
        first = affine_subst(&c->ctx->arena, first, s->index[i].var, s->index[i].range.start);
    }
    bool fits = reach == 1 || (reach <= width && is_multiple(c, first, width));
    arena_reset(&c->ctx->arena, mark);
    return fits || refuse(c, s, "what is unrolled is not in one panel");
}

/* All that is unrolled. */
static bool check_panel(const Check *c, const Stmt *s, BufRef buf, const Affine *at)
{
    int64_t reach = 1;
    for (uint32_t i = 0; i < s->n_index; i++) {
        int64_t coef = affine_coef(at[1], s->index[i].var);
        reach =
            coef < 0 ? INT64_MAX : sat_add(reach, sat_mul(coef, s->index[i].range.span - 1));
    }
    return in_panel(c, s, buf, at, reach);
}

/* Does the sum begin with a group of lines, and end with one, or once for all? */
static bool in_groups(const Check *c, const Stmt *s, const Expr *x, const TileIndex *sum)
{
    int64_t group = c->k->bufs.at[x->buf].group;
    ArenaMark mark = arena_mark(&c->ctx->arena);
    Affine first = affine_subst(&c->ctx->arena, x->at[0], sum->var, sum->range.start);
    bool whole = group == 0 || (is_multiple(c, first, group) && sum->window == NULL &&
                                affine_coef(x->at[0], sum->var) == 1);
    arena_reset(&c->ctx->arena, mark);
    return whole || refuse(c, s, "a product that begins within a group of lines");
}

/* An operand of a product: of a panel its lines, and a tile side by side in it. */
static bool check_side(const Check *c, const Stmt *s, const Expr *x, const TileIndex *own,
                       const TileIndex *sum)
{
    if (c->k->bufs.at[x->buf].panels == 0) {
        return true;
    }
    bool lines = affine_coef(x->at[1], own->var) == 1 && affine_coef(x->at[0], own->var) == 0 &&
                 affine_coef(x->at[1], sum->var) == 0;
    return lines ? in_panel(c, s, x->buf, x->at, own->range.span) && in_groups(c, s, x, sum)
                 : refuse(c, s, "a product of what is no lines of a panel");
}

/* The index of a vector, or of the one position of a row of one; or null. */
static const TileIndex *row_index(const Stmt *s)
{
    const TileIndex *vec = vector_index(s);
    bool one = vec == NULL && s->n_index == 1 && s->index[0].mode == MODE_UNROLL &&
               s->index[0].range.span == 1;
    return one ? &s->index[0] : vec;
}

/* Of what is unrolled, a vector that is a whole row may be added to a cascade of rows. */
static bool check_cascade(const Check *c, const Stmt *s, BufRef buf, const Affine *at)
{
    const TileIndex *vec = row_index(s);
    int64_t start = 0;
    return (s->dst == buf && s->n_index == 1 && vec != NULL && c->k->bufs.at[buf].rank == 1 &&
            affine_coef(at[0], vec->var) == 1 &&
            vec->range.span == c->k->bufs.at[buf].extent[0].n &&
            start_position(c, s, at[0], &start) && start == 0) ||
           refuse(c, s, "an unrolled statement with a cascade that does not add a row to it");
}

static bool check_access(const Check *c, const Stmt *s, BufRef buf, const Affine *at,
                         bool unrolled)
{
    if (is_named(c, buf)) {
        return unrolled ? check_named(c, s, buf, at)
                        : refuse(c, s, "an accumulator is used without unrolled indices");
    }
    const TileIndex *vec = vector_index(s);
    if (vec != NULL && access_uses(c->k, buf, at, vec->var) &&
        !access_is_unit(c->k, buf, at, vec->var)) {
        return refuse(c, s, "a vector does not stand side by side in memory");
    }
    if (c->k->bufs.at[buf].cascade && unrolled) {
        return check_cascade(c, s, buf, at);
    }
    if (unrolled && c->k->bufs.at[buf].group != 0) {
        return refuse(c, s, "what is unrolled is of panels in groups of lines");
    }
    if (unrolled && c->k->bufs.at[buf].panels != 0) {
        return check_panel(c, s, buf, at);
    }
    return true;
}

static bool check_part(const Check *c, const Stmt *s, const Expr *x, bool unrolled)
{
    DType t = c->k->bufs.at[s->dst].dtype;
    if (x->kind == EXPR_LOAD) {
        return check_access(c, s, x->buf, x->at, unrolled);
    }
    bool plain =
        x->kind == EXPR_OP ? x->dtype == t && op_vectorises(x->op, t) : x->kind != EXPR_INDEX;
    return !unrolled || plain || refuse(c, s, "more than arithmetic in an unrolled statement");
}

static bool check_expr(const Check *c, const Stmt *s, bool unrolled)
{
    ExprWalk w;
    const Expr *x = expr_first(&w, s->value);
    while (x != NULL && check_part(c, s, x, unrolled)) {
        x = expr_next(&w);
    }
    return x == NULL;
}

static bool check_product(const Check *c, const Stmt *s)
{
    Product p;
    const char *problem = c->in_tile ? "too much is unrolled" : product_of(c->k, s, &p);
    if (problem != NULL) {
        return refuse(c, s, problem);
    }
    ProductNumbers n;
    if (s->specialised && !product_numbers(c->k, &p, &n)) {
        return refuse(
            c, s, "a specialised product whose sum and strides are no numbers, or that is cut");
    }
    if (!check_side(c, s, p.a, p.row, p.sum) || !check_side(c, s, p.b, p.column, p.sum)) {
        return false;
    }
    int64_t count = sat_mul(p.row->range.span, p.column->range.span);
    return sat_mul(count, dtype_bytes(p.t)) <= MOST_ACC_BYTES ||
           refuse(c, s, "a product that does not fit registers");
}

static bool reads_rows(const Check *c, const Stmt *s)
{
    ExprWalk w;
    for (const Expr *x = load_first(&w, s->value); x != NULL; x = load_next(&w)) {
        if (c->k->bufs.at[x->buf].cascade && c->k->bufs.at[x->buf].rank > 0) {
            return true;
        }
    }
    return false;
}

static bool check_tile(const Check *c, const Stmt *s)
{
    if (s->nontemporal && (c->in_tile || !stmt_may_stream(c->k, s))) {
        return refuse(
            c, s,
            "a non-temporal store of what is no transpose and no product that stores lines");
    }
    if (s->sums > 0) {
        return refuse(c, s, "a map that adds its values up");
    }
    if (s->prefetches > 0 && !stmt_may_prefetch(c->k, s)) {
        return refuse(c, s,
                      "a prefetch of what is no product of a whole tile of real numbers, or a "
                      "specialised one");
    }
    if (stmt_is_product(s)) {
        return check_product(c, s);
    }
    for (uint32_t i = 0; s->begins && i < s->n_index; i++) {
        if (s->index[i].mode != MODE_LOOP ||
            !access_uses(c->k, s->dst, s->at, s->index[i].var)) {
            return refuse(c, s,
                          "a fold that begins and meets an element many times, or is unrolled");
        }
    }
    const Buffer *dst = &c->k->bufs.at[s->dst];
    if (dst->cascade && dst->rank > 0 && row_index(s) == NULL) {
        return refuse(c, s, "a cascade of rows to which something else is added");
    }
    if (reads_rows(c, s) && (s->value->kind != EXPR_LOAD || vector_index(s) != NULL)) {
        return refuse(c, s, "a cascade of rows whose total is not just copied or added");
    }
    int64_t count = 1;
    uint32_t n_loops = 0, n_vectors = 0, n_lanes = 0;
    for (uint32_t i = 0; i < s->n_index; i++) {
        const TileIndex *index = &s->index[i];
        if (index->mode == MODE_LOOP) {
            n_loops++;
            continue;
        }
        if (index->mode == MODE_LANES) {
            n_lanes++;
            continue;
        }
        if (index->range.clipped) {
            return refuse(c, s, "an unrolled index without a constant length");
        }
        n_vectors += index->mode == MODE_VECTOR ? 1 : 0;
        count = sat_mul(count, index->range.span);
    }
    if (n_lanes > 0) {
        DType t = c->k->bufs.at[s->dst].dtype;
        bool last = s->index[s->n_index - 1].mode == MODE_LANES;
        return n_lanes == 1 && last && n_loops + 1 == s->n_index &&
                       (s->fold == OP_COPY || s->places > 0) &&
                       (dtype_part(t) == DTYPE_F32 || dtype_part(t) == DTYPE_F64 ||
                        dtype_is_half(t)) &&
                       !is_named(c, s->dst)
                   ? check_access(c, s, s->dst, s->at, false) && check_expr(c, s, false)
                   : refuse(c, s, "lanes are of the innermost index of a map of floats");
    }
    bool unrolled = n_loops < s->n_index;
    if (unrolled) {
        const TileIndex *vec = vector_index(s);
        DType t = c->k->bufs.at[s->dst].dtype;
        if (n_loops > 0 || n_vectors > 1 || count > MOST_UNROLLED) {
            return refuse(c, s, "too much is unrolled");
        }
        if (s->fold == OP_COPY ? !dtype_has_vectors(t) : !fold_has_vectors(s->fold, t)) {
            return refuse(c, s, "this cannot be unrolled");
        }
        if (vec != NULL && !access_uses(c->k, s->dst, s->at, vec->var)) {
            return refuse(c, s, "a vector is folded into one element");
        }
    }
    return check_access(c, s, s->dst, s->at, unrolled) && check_expr(c, s, unrolled);
}

static bool check_alloc(Check *c, const Stmt *s)
{
    const Buffer *b = &c->k->bufs.at[s->buf];
    int64_t bytes = fixed_bytes(b);
    if (b->space == SPACE_ACC && b->rank > 0) {
        c->in_tile = true;
        if (b->rank > 4 || bytes < 0 || bytes > MOST_ACC_BYTES ||
            !dtype_has_vectors(b->dtype)) {
            return refuse(c, s, "an accumulator that does not fit registers");
        }
    }
    if (s->over > 0 && (b->rank == 0 || c->k->bufs.at[s->over - 1].rank == 0)) {
        return refuse(c, s, "a single element that shares its place");
    }
    if (c->in_tile && b->rank > 0) {
        c->local_bytes = bytes < 0 ? INT64_MAX : sat_add(c->local_bytes, bytes);
        if (c->local_bytes > MOST_ACC_BYTES + MOST_LOCAL_BYTES) {
            return refuse(c, s, "too large an array in a register tile");
        }
    }
    return true;
}

static bool check_block(Check *c, Stmt *const *body, uint32_t n, uint32_t depth)
{
    Check inner = *c; /* what holds to the end of this block */
    for (uint32_t i = 0; i < n; i++) {
        const Stmt *s = body[i];
        bool fine = true;
        if (depth + (s->kind == STMT_TILE ? s->n_index : 1) > MOST_DEPTH) {
            return exceed(c, s, MOST_DEPTH, "loops inside each other");
        }
        switch (s->kind) {
        case STMT_FOR: {
            Check within = inner;
            Around around = {s, inner.around};
            within.around = &around;
            fine = (s->threads == NULL || !c->in_tile ||
                    refuse(c, s, "threads share a loop of a register tile")) &&
                   check_block(&within, s->body, s->n_body, depth + 1);
            break;
        }
        case STMT_BLOCK:
            fine = (s->n_guards == 0 || refuse(c, s, "a block is run in all iterations")) &&
                   check_block(&inner, s->body, s->n_body, depth + 1);
            break;
        case STMT_ALLOC:
            fine = check_alloc(&inner, s);
            break;
        case STMT_TILE:
            fine = check_tile(&inner, s);
            break;
        }
        if (!fine) {
            return false;
        }
    }
    return true;
}

/* C has complex numbers: callers pass them as they are. */
static bool check_args(const Check *c)
{
    bool plain = true;
    for (uint32_t i = 0; i < c->k->args.n; i++) {
        plain = plain && c->k->args.at[i].whole == DTYPE_NONE;
    }
    return plain || refuse(c, NULL, "an argument given as the parts of complex numbers");
}

bool c_verify(const Target *target, Ctx *ctx, const Kernel *k)
{
    (void)target;
    Check c = {.ctx = ctx, .k = k};
    return check_sizes(&c) && check_args(&c) && check_block(&c, k->body, k->n_body, 1);
}
