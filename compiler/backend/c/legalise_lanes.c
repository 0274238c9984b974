/* SPDX-License-Identifier: Apache-2.0 */
/* Values that run as vectors along an index of what is written, in functions of their own. */
#include "backend/c/legalise.h"

#define LANES_SHORTEST 16 /* positions for which a call is worth it */
#define LANES_BYTES    192 /* ... of cheap operations, in all rows: some of the longest vectors */

/* What vectors compute with values of the type: numbers of 16 bits are f32 on the way. */
static DType lane_type(DType t)
{
    return dtype_computes(t);
}

/* How a value runs along an index of what is written: as vectors at all; then without anything to compute, cheaply, or with
 * functions, divisions or conversions, which gain most by it. */
typedef enum ValueLanes { VALUE_NO, VALUE_COPIED, VALUE_CHEAP, VALUE_DEAR } ValueLanes;

/* Is it a comparison of positions, or made of such? It costs an integer or two beside floats. */
static bool is_mask(const Expr *e)
{
    bool logic = e->kind == EXPR_OP && op_info(e->op)->rule == RULE_LOGIC;
    bool order = e->kind == EXPR_OP &&
                 (op_info(e->op)->rule == RULE_ORDER || op_info(e->op)->rule == RULE_EQUAL);
    ExprWalk w;
    if (logic) {
        return is_mask(e->arg[0]) && (e->n_args == 1 || is_mask(e->arg[1]));
    }
    for (const Expr *x = order ? expr_first(&w, e) : NULL; x != NULL; x = expr_next(&w)) {
        if (x != e && (x->kind == EXPR_LOAD || !dtype_is_int(x->dtype) ||
                       (x->kind == EXPR_OP && op_info(x->op)->lanes != LANES_CHEAP))) {
            return false;
        }
    }
    return order;
}

static ValueLanes value_lanes(const Legaliser *l, const Expr *value, DType to,
                              const TileIndex *x)
{
    DType t = lane_type(to), part = dtype_part(t);
    ValueLanes found = dtype_is_half(to) ? VALUE_DEAR : VALUE_COPIED;
    if ((part != DTYPE_F32 && part != DTYPE_F64) ||
        range_typical(l->k, x->range) < LANES_SHORTEST) {
        return VALUE_NO;
    }
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        bool load = e->kind == EXPR_LOAD, op = e->kind == EXPR_OP;
        if (e->dtype == DTYPE_BOOL && t == part && is_mask(e)) {
            expr_skip(&w);
            found = VALUE_DEAR; /* nobody makes vectors of it otherwise */
            continue;
        }
        OpLanes lanes = !op                                     ? LANES_CHEAP
                        : op && e->op == OP_SELECT && t == part ? LANES_CHEAP
                        : t == part                             ? op_info(e->op)->lanes
                        : op_vectorises(e->op, t)               ? LANES_CHEAP
                                                  : LANES_NO; /* see emit_complex.c */
        if (lane_type(e->dtype) != t || lanes == LANES_NO ||
            (load && access_uses(l->k, e->buf, e->at, x->var) &&
             !access_is_unit(l->k, e->buf, e->at, x->var))) {
            return VALUE_NO;
        }
        bool dear = lanes == LANES_DIVIDE || lanes == LANES_FUNCTION || dtype_is_half(e->dtype);
        found = dear ? VALUE_DEAR : op && found == VALUE_COPIED ? VALUE_CHEAP : found;
    }
    return found;
}

bool value_runs(const Legaliser *l, const Expr *value, DType to, const TileIndex *x)
{
    return value_lanes(l, value, to, x) != VALUE_NO;
}

bool value_has_lanes(const Legaliser *l, const Expr *value, DType to, const TileIndex *x)
{
    return value_lanes(l, value, to, x) == VALUE_DEAR;
}

/* Is the statement a function of its own, for each instruction set? At -O2 gcc makes vectors of few loops where they stand, and of
 * none in a loop that threads share. */
static bool is_worth_lanes(const Legaliser *l, const Expr *value, DType to, uint32_t n,
                           const TileIndex *index)
{
    ValueLanes lanes = value_lanes(l, value, to, &index[n - 1]);
    int64_t bytes = dtype_bytes(to);
    for (uint32_t i = 0; i < n; i++) {
        bytes = sat_mul(bytes, range_typical(l->k, index[i].range));
    }
    return lanes == VALUE_DEAR || (lanes == VALUE_CHEAP && bytes >= LANES_BYTES);
}

void written_add(Legaliser *l, uint32_t n, const TileIndex *index, BufRef dst, const Affine *at,
                 Op fold, const Expr *value)
{
    TileIndex *copy = arena_copy(l->arena, index, n * sizeof *index);
    DType t = l->k->bufs.at[dst].dtype;
    bool lanes = fold == OP_COPY && is_worth_lanes(l, value, t, n, copy);
    copy[n - 1].mode = lanes ? MODE_LANES : MODE_LOOP;
    tile_add(l, n, copy, dst, at, fold, value);
}
