/* SPDX-License-Identifier: Apache-2.0 */
/* Contractions of complex numbers. Two complex operands: one statement with the labels r and s,
 * the operand that has the result's last label turned (complex.h). One complex operand that has
 * the result's last label: one statement with r. One that has not: a statement for each part
 * into a block on chip, which then leaves with both parts beside each other. */
#include "lower/complex.h"

#include "loop/term.h"

#include <string.h>

/* The operand of a product, through blocks that only rename one: the positions a use of the
 * block has, put for the indices of the statement that makes it. */
static Factor factor_of(Splitter *s, const Expr *e)
{
    bool conj = false;
    e = expr_factor(e, &conj);
    Factor f = {e->buf, e->buf, e->at, conj, split_is_complex(s, e->buf)};
    f.conj = f.conj && f.complex;
    const Forward *w = &s->forward[e->buf];
    if (w->def == NULL) {
        return f;
    }
    uint32_t rank = s->from->bufs.at[w->source].rank;
    Affine *at = ARENA_ARRAY(s->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = w->at[d];
    }
    for (uint32_t i = 0; i < w->def->n_index; i++) { /* the block's at = v + rest = use's */
        VarRef v = w->def->index[i].var;
        for (uint32_t d = 0; d < s->from->bufs.at[e->buf].rank; d++) {
            if (!affine_uses(w->def->at[d], v)) {
                continue;
            }
            Affine rest = affine_subst(s->arena, w->def->at[d], v, affine_const(0));
            Affine by = affine_add(s->arena, e->at[d], -1, rest);
            for (uint32_t c = 0; c < rank; c++) { /* all at once: `by` may have v itself */
                if (affine_uses(w->at[c], v)) {
                    at[c] = affine_subst(s->arena, w->at[c], v, by);
                }
            }
        }
    }
    f = (Factor){w->source, w->source, at, w->conj != conj, split_is_complex(s, w->source)};
    f.conj = f.conj && f.complex;
    return f;
}

static bool factor_has(const Splitter *s, const Factor *f, VarRef v)
{
    return access_uses(s->from, f->buf, f->at, v);
}

#define FEW_TERMS 1024 /* of an inner product, whose matmuls are quicker */

/* Is it what a Tensor engine does: something is contracted, all that is contracted is in both operands, and there are rows or columns? Inner
 * products, one for each position or one of many terms, are sums of elementwise products. */
static bool is_contraction(const Splitter *s, const Stmt *stmt, const Factor *a,
                           const Factor *b)
{
    bool any = false, rows = false;
    int64_t terms = 1;
    for (uint32_t i = 0; i < stmt->n_index; i++) {
        VarRef v = stmt->index[i].var;
        bool both = factor_has(s, a, v) && factor_has(s, b, v);
        rows |= !both;
        terms = sat_mul(terms,
                        split_keeps(s, stmt, v) ? INT64_MAX : range_most(stmt->index[i].range));
        if (!split_keeps(s, stmt, v)) {
            any = true;
            if (!both) {
                return false;
            }
        } else if (!factor_has(s, a, v) && !factor_has(s, b, v)) {
            return false;
        }
    }
    DType t = s->to->bufs.at[stmt->dst].dtype;
    rows |= terms <= FEW_TERMS;
    return any && rows && s->to->bufs.at[a->buf].dtype == t &&
           s->to->bufs.at[b->buf].dtype == t;
}

/* Does the result's last index of only one operand come from `a`? */
static bool ends_in(const Splitter *s, const Stmt *stmt, const Factor *a, const Factor *b)
{
    for (uint32_t d = s->from->bufs.at[stmt->dst].rank; d-- > 0;) {
        for (uint32_t i = 0; i < stmt->n_index; i++) {
            VarRef v = stmt->index[i].var;
            bool in_a = factor_has(s, a, v), in_b = factor_has(s, b, v);
            if (affine_uses(stmt->at[d], v) && in_a != in_b) {
                return in_a;
            }
        }
    }
    return false;
}

/* What is made of an operand: over the indices with which the statement reads it, or where some positions are sums of
 * those, over all of it. */
typedef struct Cover {
    Factor f;
    uint32_t n;
    TileIndex *index;
} Cover;

static Cover cover_of(Splitter *s, const Stmt *stmt, const Factor *f)
{
    const Buffer *b = &s->from->bufs.at[f->buf];
    Cover out = {*f, 0, ARENA_ARRAY(s->arena, stmt->n_index + b->rank + 1, TileIndex)};
    bool sums = false;
    for (uint32_t d = 0; d < b->rank; d++) {
        uint32_t own = 0;
        for (uint32_t i = 0; i < stmt->n_index; i++) {
            own += affine_uses(f->at[d], stmt->index[i].var);
        }
        sums |= own > 1;
    }
    if (!sums) {
        for (uint32_t i = 0; i < stmt->n_index; i++) {
            if (factor_has(s, f, stmt->index[i].var)) {
                out.index[out.n++] = stmt->index[i];
            }
        }
        return out;
    }
    Affine *at = ARENA_ARRAY(s->arena, b->rank + 1, Affine);
    for (uint32_t d = 0; d < b->rank; d++) {
        VarRef v = kernel_var(s->to, &s->ctx->syms, "x", false);
        out.index[out.n++] = (TileIndex){.var = v, .range = range_whole(b->extent[d])};
        at[d] = affine_var(s->arena, v);
    }
    out.f.at = at;
    return out;
}

/* dst[to] = x over the indices of the operand. */
static void emit_part(Splitter *s, const Stmt *stmt, const Cover *c, BufRef dst,
                      const Affine *to, const Expr *x)
{
    Stmt *def = ARENA_NEW(s->arena, Stmt);
    *def = (Stmt){.kind = STMT_TILE,
                  .span = stmt->span,
                  .n_index = c->n,
                  .index = c->index,
                  .dst = dst,
                  .at = to,
                  .fold = OP_COPY,
                  .value = x};
    split_emit(s, def);
}

/* A part of the operand, or minus it. */
static const Expr *signed_part(Splitter *s, const Factor *f, int64_t part, bool minus)
{
    const Expr *x =
        expr_load(s->arena, s->to, f->buf, split_at(s, f->buf, f->at, affine_const(part)));
    return minus ? expr_op(s->arena, OP_NEG, x->dtype, 1, &x) : x;
}

/* E of an operand, and the statements that say what it is. */
static BufRef emit_turn(Splitter *s, const Stmt *stmt, const Factor *f, bool other_conj)
{
    const Buffer like = s->to->bufs.at[f->buf];
    BufRef e = split_new_block(s, "turned", &like, true);
    const bool minus[2][2] = {{false, f->conj},
                              {f->conj == other_conj, other_conj}}; /* [s][r] */
    split_alloc(s, e, stmt->span);
    Cover c = cover_of(s, stmt, f);
    f = &c.f;
    for (int64_t at = 0; at < 4; at++) {
        int64_t i = at / 2, r = at % 2, from = i == 0 ? r : 1 - r;
        Affine *to = ARENA_ARRAY(s->arena, like.rank + 1, Affine);
        memcpy(to, split_at(s, f->buf, f->at, affine_const(r)), like.rank * sizeof *to);
        to[like.rank] = affine_const(i);
        emit_part(s, stmt, &c, e, to, signed_part(s, f, from, minus[i][r]));
    }
    return e;
}

/* The operand at a part; all of a real one. */
static const Expr *load_part(Splitter *s, const Factor *f, Affine part)
{
    const Affine *at = f->complex ? split_at(s, f->buf, f->at, part) : f->at;
    return expr_load(s->arena, s->to, f->held, at);
}

/* Two complex operands, `b` the one with the result's last label. */
static void contract_both(Splitter *s, const Stmt *old, const Factor *a, const Factor *b)
{
    Stmt *out = split_with_part(s, old);
    BufRef e = emit_turn(s, old, b, a->conj);
    uint32_t rank = s->to->bufs.at[b->buf].rank;
    Affine *at = ARENA_ARRAY(s->arena, rank + 1, Affine);
    memcpy(at, split_at(s, b->buf, b->at, affine_var(s->arena, s->part)), rank * sizeof *at);
    at[rank] = affine_var(s->arena, s->turned);
    const Expr *pair[2] = {load_part(s, a, affine_var(s->arena, s->turned)),
                           expr_load(s->arena, s->to, e, at)};
    TileIndex *index = ARENA_ARRAY(s->arena, out->n_index + 1, TileIndex);
    memcpy(index, out->index, out->n_index * sizeof *index);
    index[out->n_index++] = split_both_parts(s->turned);
    out->index = index;
    out->value = expr_op(s->arena, OP_MUL, pair[0]->dtype, 2, pair);
    split_emit(s, out);
}

/* ---- a complex operand that lacks the result's last label ---- */

/* Blocks of what a systolic array of 128 rows makes at a time, as wide as its accumulators. */
#define ROLE_M         128
#define BLOCK_ELEMENTS 2048 /* of a row, each of two parts */

/* The block that both parts gather in: `step` positions of each index of the result. */
typedef struct Gathering {
    const Stmt *old;
    int64_t *step;    /* [n_index]; 0: all of them */
    VarRef *loop;     /* [n_index]: of the indices that have a step */
    TileIndex *index; /* [n_index]: within the loops */
    BufRef block;
    const Affine *at; /* in the block, without the part */
} Gathering;

/* Positions of an index of the result; 0 where that is not known, or it is no such index. */
static int64_t size_of(const Splitter *s, const Stmt *old, uint32_t i)
{
    const Range *r = &old->index[i].range;
    if (!split_keeps(s, old, old->index[i].var)) {
        return 0;
    }
    if (r->span > 0) {
        return r->span;
    }
    return r->start.n == 0 && r->start.base == 0 && r->limit.sym < 0 ? r->limit.n : 0;
}

/* The largest step of at most `most` that cuts a range into equal tiles, where it is a tile
 * itself. */
static int64_t fitting_step(const Range *r, int64_t most)
{
    int64_t step = most;
    while (r->span > 0 && r->span % step != 0) {
        step--;
    }
    return step;
}

/* Rows of the complex operand by the height of the engine, or several times that of short ones;
 * then few enough of the others. */
static void choose_steps(Splitter *s, Gathering *g, const Factor *complex, const Factor *real)
{
    const Stmt *old = g->old;
    int64_t total = 1, rows = 0;
    uint32_t row = UINT32_MAX;
    for (uint32_t i = 0; i < old->n_index; i++) {
        VarRef v = old->index[i].var;
        int64_t n = size_of(s, old, i);
        total = sat_mul(total, n > 0 ? n : 1);
        if (n > rows && factor_has(s, complex, v) && !factor_has(s, real, v)) {
            rows = n;
            row = i;
        }
    }
    total /= rows > 0 ? rows : 1;
    int64_t high = ROLE_M * (total < BLOCK_ELEMENTS ? BLOCK_ELEMENTS / total : 1);
    if (rows > high) {
        g->step[row] = fitting_step(&old->index[row].range, high);
    }
    for (uint32_t i = 0; i < old->n_index && total > BLOCK_ELEMENTS; i++) {
        int64_t n = size_of(s, old, i);
        if (i != row && n > 1) {
            int64_t rest = total / n;
            g->step[i] = fitting_step(&old->index[i].range,
                                      rest >= BLOCK_ELEMENTS ? 1 : BLOCK_ELEMENTS / rest);
            total = rest * g->step[i];
        }
    }
}

static void make_loops(Splitter *s, Gathering *g)
{
    const Stmt *old = g->old;
    g->loop = ARENA_ARRAY(s->arena, old->n_index, VarRef);
    g->index = arena_copy(s->arena, old->index, old->n_index * sizeof *old->index);
    for (uint32_t i = 0; i < old->n_index; i++) {
        if (g->step[i] > 0) {
            g->loop[i] = kernel_var(s->to, &s->ctx->syms, "part", true);
            Range *r = &g->index[i].range;
            r->start = affine_var(s->arena, g->loop[i]);
            r->span = g->step[i];
        }
    }
}

static void make_block(Splitter *s, Gathering *g)
{
    const Stmt *old = g->old;
    Buffer like = s->to->bufs.at[old->dst];
    uint32_t rank = s->from->bufs.at[old->dst].rank;
    Dim *extent = arena_copy(s->arena, like.extent, like.rank * sizeof *like.extent);
    Affine *at = ARENA_ARRAY(s->arena, rank + 1, Affine);
    for (uint32_t d = 0; d < rank; d++) {
        at[d] = old->at[d];
        for (uint32_t i = 0; i < old->n_index; i++) {
            int64_t n = g->step[i] > 0 ? g->step[i] : size_of(s, old, i);
            if (n > 0 && affine_uses(old->at[d], old->index[i].var)) {
                extent[d] = dim_fixed(n);
                at[d] = affine_add(s->arena, affine_var(s->arena, old->index[i].var), -1,
                                   g->index[i].range.start);
            }
        }
    }
    like.extent = extent;
    g->block = split_new_block(s, "both", &like, false);
    g->at = at;
}

/* A matmul of each part into `to`. */
static void emit_halves(Splitter *s, const Stmt *old, const TileIndex *index, BufRef to,
                        const Affine *at, const Factor *a, const Factor *b)
{
    for (int64_t r = 0; r < 2; r++) {
        const Expr *pair[2] = {load_part(s, a, affine_const(r)),
                               load_part(s, b, affine_const(r))};
        Stmt *half = arena_copy(s->arena, old, sizeof *old);
        half->dst = to;
        half->at = split_at(s, old->dst, at, affine_const(r));
        half->index = index;
        half->value = expr_op(s->arena, OP_MUL, pair[0]->dtype, 2, pair);
        split_emit(s, half);
    }
}

/* block = ..., then dst = block, within the loops. */
static void emit_gathering(Splitter *s, Gathering *g, const Factor *a, const Factor *b)
{
    const Stmt *old = g->old;
    StmtList list = {NULL, 0, 0}, *outer = s->body;
    s->body = &list;
    split_alloc(s, g->block, old->span);
    emit_halves(s, old, g->index, g->block, g->at, a, b);
    Stmt within = *old;
    within.index = g->index;
    Stmt *back = split_with_part(s, &within);
    uint32_t n = 0;
    TileIndex *kept = ARENA_ARRAY(s->arena, back->n_index, TileIndex);
    for (uint32_t i = 0; i < back->n_index; i++) {
        if (back->index[i].var == s->part || split_keeps(s, old, back->index[i].var)) {
            kept[n++] = back->index[i];
        }
    }
    back->index = kept;
    back->n_index = n;
    back->fold = OP_COPY;
    back->begins = false;
    back->value = expr_load(s->arena, s->to, g->block,
                            split_at(s, old->dst, g->at, affine_var(s->arena, s->part)));
    split_emit(s, back);
    for (uint32_t i = old->n_index; i-- > 0;) {
        if (g->step[i] == 0) {
            continue;
        }
        Stmt *loop = ARENA_NEW(s->arena, Stmt);
        *loop = (Stmt){.kind = STMT_FOR,
                       .span = old->span,
                       .var = g->loop[i],
                       .range = old->index[i].range,
                       .step = g->step[i],
                       .body = list.at,
                       .n_body = list.n};
        list = (StmtList){NULL, 0, 0};
        split_emit(s, loop);
    }
    s->body = outer;
    for (uint32_t i = 0; i < list.n; i++) {
        split_emit(s, list.at[i]);
    }
}

static void contract_mixed(Splitter *s, const Stmt *old, const Factor *a, const Factor *b)
{
    bool last = a->complex ? ends_in(s, old, a, b) : ends_in(s, old, b, a);
    bool on_chip = s->to->bufs.at[old->dst].space == SPACE_TILE;
    if (last || (!on_chip && !old->begins)) {
        Stmt *out = split_with_part(s, old);
        const Expr *pair[2] = {load_part(s, a, affine_var(s->arena, s->part)),
                               load_part(s, b, affine_var(s->arena, s->part))};
        out->value = expr_op(s->arena, OP_MUL, pair[0]->dtype, 2, pair);
        split_emit(s, out);
        return;
    }
    if (on_chip) {
        emit_halves(s, old, old->index, old->dst, old->at, a, b);
        return;
    }
    Gathering g = {.old = old};
    g.step = ARENA_ARRAY(s->arena, old->n_index, int64_t);
    choose_steps(s, &g, a->complex ? a : b, a->complex ? b : a);
    make_loops(s, &g);
    make_block(s, &g);
    emit_gathering(s, &g, a, b);
}

/* The operand conjugated, in a block of its own. */
static Factor emit_conj(Splitter *s, const Stmt *stmt, const Factor *f)
{
    const Buffer like = s->to->bufs.at[f->buf];
    BufRef block = split_new_block(s, "conj", &like, false);
    split_alloc(s, block, stmt->span);
    Cover c = cover_of(s, stmt, f);
    for (int64_t part = 0; part < 2; part++) {
        emit_part(s, stmt, &c, block, split_at(s, f->buf, c.f.at, affine_const(part)),
                  signed_part(s, &c.f, part, part == 1));
    }
    return (Factor){f->buf, block, f->at, false, true};
}

void split_contract(Splitter *s, const Stmt *old, Factor a, Factor b)
{
    if (old->schedule != NULL) {
        split_refuse(s, old->span,
                     "levels of a contraction of complex numbers, which are pairs of reals");
    } else if (!a.complex || !b.complex) {
        a = a.conj ? emit_conj(s, old, &a) : a;
        b = b.conj ? emit_conj(s, old, &b) : b;
        contract_mixed(s, old, &a, &b);
    } else if (ends_in(s, old, &a, &b)) {
        contract_both(s, old, &b, &a);
    } else {
        contract_both(s, old, &a, &b);
    }
}

bool split_is_product(Splitter *s, const Stmt *old, Factor *a, Factor *b)
{
    if (old->fold != OP_SUM || tile_kind(old) != TILE_MATMUL ||
        !split_is_complex(s, old->dst)) {
        return false;
    }
    const Expr *e = old->value;
    while (e->op == OP_CAST) {
        e = e->arg[0];
    }
    *a = factor_of(s, e->arg[0]);
    *b = factor_of(s, e->arg[1]);
    return is_contraction(s, old, a, b) && (a->complex || b->complex);
}
