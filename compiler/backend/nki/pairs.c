/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers whose last dimension holds the parts of complex numbers, on the device. Both parts of
 * an element lie beside each other in HBM and in tiles; they are loaded and stored together, in
 * the order they lie, and an operation on one part steps over the other. Views of a `Turn` are
 * views of its operand, or that with parts exchanged and negated, made once for each tile. */
#include "backend/nki/lower.h"

#define FRONT 3 /* words before the operand's own key */

void pair_enter(Lower *l)
{
    l->part = l->turned = -1;
    for (uint32_t i = 0; i < l->n_labels; i++) {
        VarRef v = l->stmt->index[i].var;
        l->part = v == l->real.part ? (int32_t)i : l->part;
        l->turned = v == l->real.turned ? (int32_t)i : l->turned;
    }
    l->full.s[PART_LABEL] = 0;
    l->full.n[PART_LABEL] = 2;
}

void pair_refresh(Lower *l, BufRef buf)
{
    const Turn *t = &l->real.turn[buf];
    if (t->is) {
        uint32_t rank = l->from->bufs.at[buf].rank;
        l->home[buf] = l->home[t->of];
        l->home[buf].stride[rank - 1] = 0;
    }
}

bool pair_one_part(Lower *l, const Place *x, const Box *box, Place *y, Box *at)
{
    uint32_t last = x->rank - 1;
    if (!l->real.pair[x->buf] || x->label[last] >= 0 || l->home[x->buf].on_chip) {
        return false;
    }
    *y = *x;
    *at = *box;
    y->base[last] = 0;
    y->label[last] = PART_LABEL;
    at->s[PART_LABEL] = x->base[last];
    at->n[PART_LABEL] = 1;
    return true;
}

/* Is the label, beside the parts, the one that lies contiguous in HBM? */
bool pair_is_unit(const Lower *l, const Place *x, uint32_t label)
{
    return l->real.pair[x->buf] && x->rank > 1 && x->label[x->rank - 2] == (int32_t)label &&
           !l->home[x->buf].on_chip;
}

/* Every second element, from element r. */
static View one_part(View v, int64_t r)
{
    v.f0 += r * v.step;
    v.step *= 2;
    v.nf /= 2;
    return v;
}

static void turn_into(Lower *l, View to, View from, bool minus)
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
static View turn_single(Lower *l, const Place *y, Labels p, Labels f, const Box *box,
                        const int64_t *key, uint32_t n, bool minus)
{
    View src = view_of(l, y, p, f, box), out;
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

View turn_view(Lower *l, const Place *x, Labels p, Labels f, const Box *box)
{
    const Turn *t = &l->real.turn[x->buf];
    Place y = *x;
    y.buf = t->of;
    y.rank = x->rank - 1;
    int32_t label = x->label[x->rank - 1], part = y.label[y.rank - 1];
    int64_t i = x->base[x->rank - 1] + (label < 0 ? 0 : box->s[label]);
    int64_t r = y.base[y.rank - 1] + (part < 0 ? 0 : box->s[part]);
    bool single = part < 0 || box->n[part] == 1;
    if ((label >= 0 && box->n[label] != 1) || (!single && !labels_have(f, (uint32_t)part))) {
        lower_refuse(l, l->stmt->span, "a contraction of complex numbers in such an order");
        return view_ones(l);
    }
    int64_t key[4 * LABELS + 8 + FRONT] = {-11, 2 * t->minus[i][0] + t->minus[i][1], i};
    uint32_t n = FRONT + view_key(l, &y, p, f, box, key + FRONT);
    if (single) {
        y.label[y.rank - 1] = -1;
        y.base[y.rank - 1] = i == 0 ? r : 1 - r;
        return turn_single(l, &y, p, f, box, key, n, t->minus[i][r]);
    }
    View out, src;
    if (i == 0 && !t->minus[0][0] && !t->minus[0][1]) {
        return view_of(l, &y, p, f, box);
    }
    if (cache_find(l, key, n, &out)) {
        return out;
    }
    src = view_of(l, &y, p, f, box);
    out = tile_new(l, "turned", DTYPE_F32, SPACE_TILE, src.np, src.nf);
    for (r = 0; r < 2 && !l->failed; r++) {
        turn_into(l, one_part(out, r), one_part(src, i == 0 ? r : 1 - r), t->minus[i][r]);
    }
    cache_put(l, key, n, out);
    return out;
}

/* ---- two statements for the two parts ---- */

bool pair_is_split(const Lower *l, const Stmt *re, const Stmt *im)
{
    if (re->kind != STMT_TILE || im->kind != STMT_TILE || re->dst != im->dst ||
        re->fold != OP_COPY || im->fold != OP_COPY || re->index != im->index ||
        re->n_index != im->n_index || !l->real.pair[re->dst]) {
        return false;
    }
    uint32_t last = l->from->bufs.at[re->dst].rank - 1;
    for (uint32_t d = 0; d < last; d++) {
        if (!affine_eq(re->at[d], im->at[d])) {
            return false;
        }
    }
    return re->at[last].n == 0 && im->at[last].n == 0 && re->at[last].base == 0 &&
           im->at[last].base == 1;
}

static Memo *find_memo(Lower *l, const Expr *e)
{
    for (uint32_t i = 0; i < l->memo.n; i++) {
        if (l->memo.at[i].e == e) {
            return &l->memo.at[i];
        }
    }
    return NULL;
}

static void note_shared(Lower *l, const Expr *value)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        Memo *known = e->kind == EXPR_OP ? find_memo(l, e) : NULL;
        if (known != NULL) {
            known->shared = true;
            expr_skip(&w);
        } else if (e->kind == EXPR_OP) {
            vec_push(l->arena, &l->memo, ((Memo){e, false, NULL}));
        }
    }
}

void memo_begin(Lower *l, const Expr *re, const Expr *im)
{
    l->memo.n = 0;
    note_shared(l, re);
    note_shared(l, im);
}

void memo_clear(Lower *l)
{
    for (uint32_t i = 0; i < l->memo.n; i++) {
        l->memo.at[i].value = NULL;
    }
}

Memo *memo_of(Lower *l, const Expr *e)
{
    Memo *known = find_memo(l, e);
    return known != NULL && known->shared ? known : NULL;
}
