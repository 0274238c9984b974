/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of an index of a tile statement without knowing what it means: which accesses use it and at which
 * stride, and how far its range runs. */
#include "backend/c/legalise.h"

#include "op/affine.h"

bool stride_known(const Kernel *k, BufRef buf, const Affine *at, VarRef v, int64_t *out)
{
    const Buffer *b = &k->bufs.at[buf];
    int64_t step = 1;
    bool open = false;
    *out = 0;
    for (uint32_t d = b->rank; d-- > 0;) {
        int64_t coef = affine_coef(at[d], v);
        if (open && coef != 0) {
            return false;
        }
        if (b->group != 0 && coef != 0) { /* to the next line, or group */
            return false;
        }
        bool lines = b->panels != 0 && d == 0; /* within one panel */
        *out = sat_add(*out, sat_mul(coef, lines ? b->panels : step));
        open |= b->extent[d].sym >= 0;
        step = open ? step : sat_mul(step, b->extent[d].n);
    }
    return true;
}

bool access_is_unit(const Kernel *k, BufRef buf, const Affine *at, VarRef v)
{
    const Buffer *b = &k->bufs.at[buf];
    uint32_t last = b->group != 0 ? 0 : b->rank;
    while (last > 0 && dim_is(b->extent[last - 1], 1) && !affine_uses(at[last - 1], v)) {
        last--;
    }
    if (last == 0 || affine_coef(at[last - 1], v) != 1) {
        return false;
    }
    for (uint32_t d = 0; d + 1 < last; d++) {
        if (affine_uses(at[d], v)) {
            return false;
        }
    }
    return true;
}

IndexMode lanes_of(DType t)
{
    DType part = dtype_part(t);
    return part == DTYPE_F32 || part == DTYPE_F64 || dtype_is_half(t) ? MODE_LANES : MODE_LOOP;
}

bool dtype_has_vectors(DType t)
{
    DType part = dtype_part(t);
    return part == DTYPE_F32 || part == DTYPE_F64 || part == DTYPE_I32 || part == DTYPE_I64;
}

bool fold_has_vectors(Op fold, DType t)
{
    if (dtype_is_complex(t)) {
        return fold == OP_SUM;
    }
    bool extreme = (fold == OP_RMIN || fold == OP_RMAX) && dtype_is_float(t);
    return dtype_has_vectors(t) && (fold == OP_SUM || fold == OP_PROD || extreme);
}

int64_t vector_lanes(DType t)
{
    return 64 / dtype_bytes(t);
}

bool op_vectorises(Op op, DType t)
{
    return op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_NEG ||
           (op == OP_DIV && dtype_is_float(t)) || (op == OP_CONJ && dtype_is_complex(t));
}

static bool part_vectorises(const Kernel *k, const Expr *x, VarRef v, DType t, bool *unit)
{
    if (x->kind == EXPR_LOAD && access_uses(k, x->buf, x->at, v)) {
        *unit = true;
        return x->dtype == t && access_is_unit(k, x->buf, x->at, v);
    }
    return x->dtype == t && x->kind != EXPR_INDEX &&
           (x->kind != EXPR_OP || op_vectorises(x->op, t));
}

bool expr_vectorises(const Kernel *k, const Expr *value, VarRef v, DType t, bool *unit)
{
    ExprWalk w;
    const Expr *x = expr_first(&w, value);
    while (x != NULL && part_vectorises(k, x, v, t, unit)) {
        x = expr_next(&w);
    }
    return x == NULL;
}

/* ---- ranges ---- */

int64_t range_typical(const Kernel *k, Range r)
{
    int64_t most = range_most(r);
    if (r.clipped) {
        int64_t limit = dim_typical(&k->dims, r.limit);
        most = limit < most ? limit : most;
    }
    return most;
}

bool range_is_exact(Range r)
{
    if (!r.clipped) {
        return true;
    }
    return r.limit.sym < 0 && r.start.n == 0 &&
           (r.span == 0 || r.start.base + r.span <= r.limit.n);
}

Blocks range_blocks(Range r, int64_t tile, int64_t unit)
{
    Blocks b = {.loop = r};
    int64_t most = range_most(r);
    if (most <= tile) {
        b.most = round_up(most < 1 ? 1 : most, unit);
        b.whole = r;
        if (r.span == 0 || r.span > b.most) { /* a bound that buffers can be measured by */
            b.whole.span = b.most;
        }
        return b;
    }
    b.looped = true;
    b.step = tile;
    b.most = round_up(tile, unit);
    return b;
}

void blocks_open(Legaliser *l, const char *hint, const Blocks *b, Affine *base, Range *block)
{
    if (!b->looped) {
        *base = b->whole.start;
        *block = b->whole;
        return;
    }
    VarRef v = loop_open(l, hint, b->loop, b->step, b->loop.clipped ? FOR_ALL : FOR_FULL);
    *base = affine_var(l->arena, v);
    *block = range_at(*base, b->step, &b->loop);
}
