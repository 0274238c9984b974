/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers whose last dimension holds the parts of complex numbers, on the device. Both parts of
 * an element lie beside each other in HBM and in tiles; they are loaded and stored together, in
 * the order they lie, and an operation on one part steps over the other. Views of a `Turn` are
 * views of its operand, or that with parts exchanged and negated, made once for each tile. */
#include "backend/nki/lower.h"

#define FRONT 3 /* words before the operand's own key */

/* ---- finding them ---- */

/* One of the four statements that make a `Turn`: E[at, r, s] = plus or minus B[at, other part]. */
static bool turn_part(const Kernel *k, const Stmt *s, BufRef e, Turn *t, uint32_t *seen)
{
    const Expr *x = s->kind == STMT_TILE && s->dst == e && s->fold == OP_COPY ? s->value : NULL;
    bool minus = x != NULL && x->kind == EXPR_OP && x->op == OP_NEG;
    x = minus ? x->arg[0] : x;
    uint32_t rank = k->bufs.at[e].rank;
    if (x == NULL || x->kind != EXPR_LOAD || k->bufs.at[x->buf].rank + 1 != rank ||
        !buffer_has_parts(k, x->buf) || (*seen != 0 && t->of != x->buf)) {
        return false;
    }
    const Affine *r = &s->at[rank - 2], *i = &s->at[rank - 1], *from = &x->at[rank - 2];
    if (r->n + i->n + from->n > 0 || from->base != (i->base == 0 ? r->base : 1 - r->base)) {
        return false;
    }
    for (uint32_t d = 0; d + 2 < rank; d++) {
        if (!affine_eq(x->at[d], s->at[d]) ||
            !dim_eq(k->bufs.at[e].extent[d], k->bufs.at[x->buf].extent[d])) {
            return false;
        }
    }
    t->of = x->buf;
    t->minus[i->base][r->base] = minus;
    *seen |= 1u << (2 * i->base + r->base);
    return true;
}

/* body[0] allocates it, the four statements after that make it, and nothing changes it, or its
 * operand before it was read last. */
static bool is_turn(const Kernel *k, Stmt *const *body, uint32_t n, Turn *t)
{
    BufRef e = body[0]->buf;
    const Buffer *b = &k->bufs.at[e];
    uint32_t seen = 0;
    if (n < 5 || b->rank < 3 || !dim_is(b->extent[b->rank - 1], 2) ||
        !dim_is(b->extent[b->rank - 2], 2)) {
        return false;
    }
    for (uint32_t i = 1; i < 5; i++) {
        if (!turn_part(k, body[i], e, t, &seen)) {
            return false;
        }
    }
    bool written = false;
    for (uint32_t i = 5; i < n; i++) {
        bool reads = false;
        StmtWalk w;
        for (const Stmt *s = tile_first(&w, body + i, 1); s != NULL; s = tile_next(&w)) {
            reads |= expr_load_of(s->value, e) != NULL;
            written |= s->dst == t->of;
            if (s->dst == e) {
                return false;
            }
        }
        if (reads && written) {
            return false;
        }
    }
    return seen == 15;
}

static void find_turns(const Kernel *k, Stmt *const *body, uint32_t n, Turn *turn)
{
    for (uint32_t i = 0; i < n; i++) {
        Turn t = {.is = true};
        if (stmt_has_body(body[i])) {
            find_turns(k, body[i]->body, body[i]->n_body, turn);
        } else if (body[i]->kind == STMT_ALLOC && is_turn(k, body + i, n - i, &t)) {
            turn[body[i]->buf] = t;
        }
    }
}

void pair_find(Lower *l)
{
    const Kernel *k = l->from;
    bool *pair = ARENA_ARRAY(l->arena, k->bufs.n + 1, bool);
    Turn *turn = ARENA_ARRAY(l->arena, k->bufs.n + 1, Turn);
    for (uint32_t b = 0; b < k->bufs.n; b++) {
        pair[b] = buffer_has_parts(k, b);
    }
    find_turns(k, k->body, k->n_body, turn);
    l->pair = pair;
    l->turn = turn;
}

/* The label that a dimension is, or -1. */
static int32_t label_alone(const Lower *l, Affine x)
{
    for (uint32_t i = 0; i < l->now.n_labels; i++) {
        if (x.n == 1 && x.base == 0 && x.term[0].coef == 1 &&
            x.term[0].var == l->now.stmt->index[i].var) {
            return (int32_t)i;
        }
    }
    return -1;
}

/* Notes the label of the parts; two of them have no place on the device. */
static void note_part(Lower *l, int32_t label)
{
    if (label >= 0 && label != l->now.turned) {
        if (l->now.part >= 0 && l->now.part != label) {
            lower_refuse(l, l->now.stmt->span, "parts of complex numbers in such an order");
        }
        l->now.part = label;
    }
}

void pair_enter(Lower *l)
{
    ExprWalk w;
    const Stmt *s = l->now.stmt;
    l->now.part = l->now.turned = -1;
    for (const Expr *x = load_first(&w, s->value); x != NULL; x = load_next(&w)) {
        uint32_t rank = l->from->bufs.at[x->buf].rank;
        if (l->turn[x->buf].is) {
            l->now.turned = label_alone(l, x->at[rank - 1]);
            note_part(l, label_alone(l, x->at[rank - 2]));
        }
    }
    for (const Expr *x = load_first(&w, s->value); x != NULL; x = load_next(&w)) {
        if (l->pair[x->buf]) {
            note_part(l, label_alone(l, x->at[l->from->bufs.at[x->buf].rank - 1]));
        }
    }
    if (l->pair[s->dst]) {
        note_part(l, label_alone(l, s->at[l->from->bufs.at[s->dst].rank - 1]));
    }
    l->now.full.s[PART_LABEL] = 0;
    l->now.full.n[PART_LABEL] = 2;
}

void pair_refresh(Lower *l, BufRef buf)
{
    const Turn *t = &l->turn[buf];
    if (t->is) {
        uint32_t rank = l->from->bufs.at[buf].rank;
        l->home[buf] = l->home[t->of];
        l->home[buf].stride[rank - 1] = 0;
    }
}

bool pair_one_part(Lower *l, const Place *x, const Box *box, Place *y, Box *at)
{
    uint32_t last = x->rank - 1;
    if (!l->pair[x->buf] || x->label[last] >= 0 || l->home[x->buf].on_chip) {
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
    return l->pair[x->buf] && x->rank > 1 && x->label[x->rank - 2] == (int32_t)label &&
           !l->home[x->buf].on_chip;
}

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

/* ---- two statements for the two parts ---- */

bool pair_is_split(const Lower *l, const Stmt *re, const Stmt *im)
{
    if (re->kind != STMT_TILE || im->kind != STMT_TILE || re->dst != im->dst ||
        re->fold != OP_COPY || im->fold != OP_COPY || re->n_index != im->n_index ||
        !l->pair[re->dst]) {
        return false;
    }
    for (uint32_t i = 0; i < re->n_index; i++) {
        if (re->index[i].var != im->index[i].var ||
            !range_eq(&re->index[i].range, &im->index[i].range)) {
            return false;
        }
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

static void note_shared(Lower *l, const Expr *value)
{
    ExprWalk w;
    for (const Expr *e = expr_first(&w, value); e != NULL; e = expr_next(&w)) {
        if (e->kind != EXPR_OP) {
            continue;
        }
        uint32_t at = l->now.memo.n;
        uint64_t hash = expr_hash(l->from, e);
        if (map_get(&l->now.memo_hash, hash, &at) &&
            expr_eq(l->from, e, l->now.memo.at[at].e)) {
            l->now.memo.at[at].shared = true;
            expr_skip(&w);
        } else {
            at = l->now.memo.n;
            vec_push(l->arena, &l->now.memo, ((Memo){e, false, NULL}));
            map_put(&l->now.memo_hash, hash, at);
        }
        map_put(&l->now.memo_at, (uint64_t)(uintptr_t)e, at);
    }
}

void memo_begin(Lower *l, const Expr *re, const Expr *im)
{
    l->now.memo.n = 0;
    map_init(&l->now.memo_hash, l->arena);
    map_init(&l->now.memo_at, l->arena);
    note_shared(l, re);
    if (im != NULL) {
        note_shared(l, im);
    }
}

void memo_clear(Lower *l)
{
    for (uint32_t i = 0; i < l->now.memo.n; i++) {
        l->now.memo.at[i].value = NULL;
    }
}

Memo *memo_of(Lower *l, const Expr *e)
{
    uint32_t at = 0;
    bool known = l->now.memo.n > 0 && map_get(&l->now.memo_at, (uint64_t)(uintptr_t)e, &at);
    return known && l->now.memo.at[at].shared ? &l->now.memo.at[at] : NULL;
}
