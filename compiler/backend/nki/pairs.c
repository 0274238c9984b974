/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers whose last dimension holds the parts of complex numbers, on the device. Both parts of
 * an element lie beside each other in HBM and in tiles; they are loaded and stored together, in
 * the order they lie, and an operation on one part steps over the other. */
#include "backend/nki/place.h"

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
        if (affine_is(x, l->now.stmt->index[i].var)) {
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
