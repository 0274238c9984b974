/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a `Turn`: those of its operand, or these with the parts exchanged and negated, made once for each tile. */
#include "backend/nki/make.h"
#include "backend/nki/view_parts.h"

#define FRONT 3 /* words before the operand's own key */

/* Every second element, from element r. */
static TileView one_part(TileView v, int64_t r)
{
    v.f0 += r * v.step;
    v.step *= 2;
    v.nf /= 2;
    return v;
}

static void turn_into(Lower *l, TileView to, TileView from, bool minus)
{
    const Expr *x = view_load(l, from, DTYPE_F32);
    if (!minus) {
        make_copy(l, to, from);
        return;
    }
    const Expr *arg[2] = {x, expr_const(l->arena, number_real(DTYPE_F32, -1.0))};
    make_map(l, to, expr_op(l->arena, OP_MUL, DTYPE_F32, 2, arg));
}

/* A view at one part only: another part of the operand, perhaps negated. */
static TileView turn_single(Lower *l, const Place *y, Labels p, Labels f, const Box *box,
                            const int64_t *key, uint32_t n, bool minus)
{
    TileView src = view_of(l, y, p, f, box), out;
    if (!minus) {
        return src;
    }
    if (cache_find(l, key, n, &out)) {
        return out;
    }
    out = tile_new(l, "negated", DTYPE_F32, SPACE_TILE, src.np, src.nf);
    turn_into(l, out, src, true);
    cache_put(l, key, n, out);
    return out;
}

TileView turn_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    const Turn *t = &l->turn[x->buf];
    Place y = *x;
    y.buf = t->of;
    y.rank = x->rank - 1;
    int32_t label = x->label[x->rank - 1], part = y.label[y.rank - 1];
    int64_t i = x->base[x->rank - 1] + (label < 0 ? 0 : box->s[label]);
    int64_t r = y.base[y.rank - 1] + (part < 0 ? 0 : box->s[part]);
    bool single = part < 0 || box->n[part] == 1;
    if ((label >= 0 && box->n[label] != 1) || (!single && !labels_have(f, (uint32_t)part))) {
        lower_refuse(l, l->now.stmt->span, "a contraction of complex numbers in such an order");
        return view_ones(l);
    }
    int64_t key[4 * LABELS + 8 + FRONT] = {-11, 2 * t->minus[i][0] + t->minus[i][1], i};
    uint32_t n = FRONT + view_key(l, &y, p, f, box, key + FRONT);
    if (single) {
        y.label[y.rank - 1] = -1;
        y.base[y.rank - 1] = i == 0 ? r : 1 - r;
        return turn_single(l, &y, p, f, box, key, n, t->minus[i][r]);
    }
    TileView out, src;
    if (i == 0 && !t->minus[0][0] && !t->minus[0][1]) {
        return view_of(l, &y, p, f, box);
    }
    if (cache_find(l, key, n, &out)) {
        return out;
    }
    src = view_of(l, &y, p, f, box);
    out = tile_new(l, "turned", DTYPE_F32, SPACE_TILE, src.np, src.nf);
    for (r = 0; r < 2 && !l->tried.failed; r++) {
        turn_into(l, one_part(out, r), one_part(src, i == 0 ? r : 1 - r), t->minus[i][r]);
    }
    cache_put(l, key, n, out);
    return out;
}
