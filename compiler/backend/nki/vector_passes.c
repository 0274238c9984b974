/* SPDX-License-Identifier: Apache-2.0 */
/* Shorter passes of the Vector engine, where that is what others wait for.
 *
 * It takes a cycle for each element of two f32 operands where one of them lies in PSUM, and two where both lie in SBUF (the vendor's
 * cost of tensor_tensor). So what it makes for itself, a row of a bank at most, lies in PSUM where banks are left; and what is loaded, which
 * a DMA leaves in SBUF, is copied there by the Scalar engine where that has less to do. And it takes two for x * c + y in one pass
 * (scalar_tensor_tensor); where the Scalar engine has less to do, that multiplies. */
#include "backend/nki/legalise.h"
#include "backend/nki/price.h"

#include <string.h>

#define TRIES 12    /* changes */
#define GAIN  0.995 /* of the time, at most, with one more */
#define COPY  0.97  /* the same with one more copy */

/* What is known of a buffer. */
typedef struct Value {
    bool other; /* used by an engine that reaches no PSUM, or by the Tensor engine */
    bool slow;  /* read with another operand in SBUF */
} Value;

typedef struct Values {
    const Kernel *k;
    Value *at; /* [bufs] */
} Values;

static bool in_psum(const Kernel *k, BufRef b)
{
    return k->bufs.at[b].space == SPACE_ACC;
}

static void note(Values *v, const Operand *o, bool reaches)
{
    v->at[o->buf].other |= !reaches;
}

static bool note_uses(void *user, const Instr *i)
{
    Values *v = user;
    bool vector = i->kind == INSTR_TENSOR || i->kind == INSTR_SCALAR || i->kind == INSTR_BOTH ||
                  i->kind == INSTR_ACTIVATION || i->kind == INSTR_COPY ||
                  i->kind == INSTR_REDUCE;
    bool power = i->op == OP_POW || (i->s0.given && i->s0.op == OP_POW) ||
                 (i->s1.given && i->s1.op == OP_POW);
    if (i->kind == INSTR_ALLOC) {
        return true;
    }
    note(v, &i->dst, vector && !power);
    if (instr_reads(i)) {
        note(v, &i->a, vector && !power);
    }
    if (instr_reads_two(i)) {
        note(v, &i->b, vector && !power);
    }
    const ScalarOperand *const scalar[2] = {&i->s0, &i->s1};
    for (uint32_t s = 0; s < 2; s++) {
        if (scalar[s]->given && scalar[s]->is_tile) {
            note(v, &scalar[s]->tile, false);
        }
    }
    if (i->sums) {
        note(v, &i->sum, false);
    }
    if (i->kind == INSTR_TENSOR || i->kind == INSTR_BOTH) {
        bool a = in_psum(v->k, i->a.buf), b = in_psum(v->k, i->b.buf);
        bool same = i->a.buf == i->b.buf, slow = i->kind == INSTR_TENSOR && !a && !b;
        v->at[i->a.buf].slow |= slow;
        v->at[i->b.buf].slow |= slow;
        v->at[i->a.buf].other |= b || same; /* not both may lie there */
        v->at[i->b.buf].other |= a || same;
    }
    return true;
}

static bool is_candidate(const Kernel *k, const Value *value, BufRef b)
{
    const Buffer *x = &k->bufs.at[b];
    return x->space == SPACE_TILE && x->dtype == DTYPE_F32 && x->rank == 2 &&
           x->extent[1].n * dtype_bytes(DTYPE_F32) <= NKI_PSUM_BANK &&
           x->extent[1].n > NKI_LEAST_CYCLES / 2 && value->slow && !value->other;
}

/* ---- x * c + y ---- */

/* Where a statement stands. */
typedef struct Found {
    Stmt *loop; /* or null */
    uint32_t at;
    Stmt *stmt;
} Found;

static bool find_place(Stmt *around, Stmt *const *body, uint32_t n, uint32_t *left, Found *out)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_TILE && (*left)-- == 0) {
            *out = (Found){around, i, s};
            return true;
        }
        if (stmt_has_body(s) && find_place(s, s->body, s->n_body, left, out)) {
            return true;
        }
    }
    return false;
}

static void put_before(Kernel *k, const Found *f, Stmt *one, Stmt *two)
{
    uint32_t n = f->loop != NULL ? f->loop->n_body : k->n_body;
    Stmt **old = f->loop != NULL ? f->loop->body : k->body;
    Stmt **body = ARENA_ARRAY(k->arena, n + 2, Stmt *);
    memcpy(body, old, f->at * sizeof *body);
    body[f->at] = one;
    body[f->at + 1] = two;
    memcpy(body + f->at + 2, old + f->at, (n - f->at) * sizeof *body);
    *(f->loop != NULL ? &f->loop->body : &k->body) = body;
    *(f->loop != NULL ? &f->loop->n_body : &k->n_body) = n + 2;
}

/* The kernel with the product of the statement at a place in one of its own, in PSUM; null: it is none, or too long. */
static Kernel *with_product_apart(const Lower *l, const Kernel *k, uint32_t place)
{
    Arena *a = l->arena;
    Kernel *to = kernel_changeable(a, k);
    Found f;
    if (!find_place(NULL, to->body, to->n_body, &place, &f) || f.stmt->n_index != 2 ||
        f.stmt->value->kind != EXPR_OP || f.stmt->value->n_args != 2) {
        return NULL;
    }
    const Stmt *s = f.stmt;
    bool first = affine_uses(s->at[0], s->index[0].var);
    const TileIndex *p = &s->index[first ? 0 : 1], *x = &s->index[first ? 1 : 0];
    const Expr *e = s->value, *arg[2] = {e->arg[0], e->arg[1]};
    uint32_t at = 2;
    for (uint32_t i = 0; i < 2; i++) {
        at = arg[i]->kind == EXPR_OP && arg[i]->op == OP_MUL && arg[i]->dtype == DTYPE_F32 ? i
                                                                                           : at;
    }
    int64_t columns = x->range.limit.n;
    if (at == 2 || columns * dtype_bytes(DTYPE_F32) > NKI_PSUM_BANK ||
        columns <= NKI_LEAST_CYCLES) {
        return NULL;
    }
    Dim *extent = ARENA_ARRAY(a, 2, Dim);
    Affine *place_at = ARENA_ARRAY(a, 2, Affine);
    extent[0] = p->range.limit;
    extent[1] = x->range.limit;
    place_at[0] = affine_var(a, p->var);
    place_at[1] = affine_var(a, x->var);
    const Expr *other = expr_uncast(arg[1 - at]);
    bool beside =
        other->kind == EXPR_LOAD && in_psum(k, other->buf); /* not both may lie there */
    BufRef made = kernel_buffer(to, &l->ctx->syms, "scaled", DTYPE_F32,
                                beside ? SPACE_TILE : SPACE_ACC, 2, extent);
    Stmt *alloc = ARENA_NEW(a, Stmt), *product = arena_copy(a, s, sizeof *s);
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = s->span, .buf = made};
    product->dst = made;
    product->at = place_at;
    product->value = arg[at];
    arg[at] = expr_load(a, to, made, place_at);
    f.stmt->value = expr_op(a, e->op, e->dtype, 2, arg);
    put_before(to, &f, alloc, product);
    return to;
}

typedef struct Both {
    VEC(uint32_t) places;
    Arena *arena;
    int64_t last;
} Both;

static bool note_both(void *user, const Instr *i)
{
    Both *b = user;
    bool is = i->kind == INSTR_BOTH && i->s0.op == OP_MUL && !i->s0.is_tile;
    if (is && (int64_t)i->place > b->last) {
        vec_push(b->arena, &b->places, i->place);
        b->last = i->place;
    }
    return true;
}

/* ---- x * y of what is loaded ---- */

/* The block in which a tile begins. */
static bool find_alloc(Stmt *around, Stmt *const *body, uint32_t n, BufRef buf, Found *out)
{
    for (uint32_t i = 0; i < n; i++) {
        Stmt *s = body[i];
        if (s->kind == STMT_ALLOC && s->buf == buf) {
            *out = (Found){around, i, s};
            return true;
        }
        if (stmt_has_body(s) && find_alloc(s, s->body, s->n_body, buf, out)) {
            return true;
        }
    }
    return false;
}

/* What is known of the loads of tiles and of products of two tiles in SBUF. */
typedef struct Loaded {
    const Kernel *k;
    uint32_t *writes; /* [bufs] instructions of the text, */
    uint32_t *place;  /* and the one that loads all of the tile, from 1 */
    bool *slow;       /* [bufs] read with another operand in SBUF */
} Loaded;

static bool note_loaded(void *user, const Instr *i)
{
    Loaded *n = user;
    if (i->kind == INSTR_ALLOC || !i->dst.on_chip) {
        return true;
    }
    const Dim *extent = n->k->bufs.at[i->dst.buf].extent;
    bool all = i->kind == INSTR_DMA && i->dst.np == extent[0].n && i->dst.nf == extent[1].n;
    bool again = n->place[i->dst.buf] == i->place + 1;
    n->writes[i->dst.buf] += !again;
    n->place[i->dst.buf] = all ? i->place + 1 : n->place[i->dst.buf];
    if (i->kind == INSTR_TENSOR && i->op != OP_POW && i->a.buf != i->b.buf &&
        !in_psum(n->k, i->a.buf) && !in_psum(n->k, i->b.buf)) {
        n->slow[i->a.buf] = n->slow[i->b.buf] = true;
    }
    return true;
}

/* The products of two tiles in SBUF read a copy of the one in PSUM. */
static void read_copy(Kernel *to, BufRef buf, BufRef copy)
{
    StmtWalk w;
    for (Stmt *s = (Stmt *)(uintptr_t)tile_first(&w, to->body, to->n_body); s != NULL;
         s = (Stmt *)(uintptr_t)tile_next(&w)) {
        const Expr *e = s->value, *x[2], *arg[2];
        if (s->fold != OP_COPY || e->kind != EXPR_OP || e->n_args != 2 || e->op == OP_GATHER) {
            continue;
        }
        for (uint32_t i = 0; i < 2; i++) {
            arg[i] = e->arg[i];
            x[i] = expr_uncast(e->arg[i]);
        }
        for (uint32_t i = 0; i < 2; i++) {
            bool here = x[i]->kind == EXPR_LOAD && x[i]->buf == buf &&
                        x[1 - i]->kind == EXPR_LOAD && x[1 - i]->buf != buf &&
                        !in_psum(to, x[1 - i]->buf);
            arg[i] = here ? expr_load(to->arena, to, copy, x[i]->at) : arg[i];
        }
        s->value = expr_op(to->arena, e->op, e->dtype, 2, arg);
    }
}

/* The kernel with a copy in PSUM of a tile that the statement at a place loads; null: it begins elsewhere. */
static Kernel *with_copy_of_loaded(const Lower *l, const Kernel *k, BufRef buf, uint32_t place)
{
    Arena *a = l->arena;
    Kernel *to = kernel_changeable(a, k);
    Found begin, load;
    if (!find_alloc(NULL, to->body, to->n_body, buf, &begin) ||
        !find_place(NULL, to->body, to->n_body, &place, &load) || begin.loop != load.loop ||
        load.stmt->n_index < 2) {
        return NULL;
    }
    const Dim *extent = to->bufs.at[buf].extent;
    BufRef made = kernel_buffer(to, &l->ctx->syms, "again", DTYPE_F32, SPACE_ACC, 2, extent);
    read_copy(to, buf, made);
    Stmt *alloc = ARENA_NEW(a, Stmt), *copy = arena_copy(a, load.stmt, sizeof *copy);
    TileIndex *index = ARENA_ARRAY(a, 2, TileIndex);
    Affine *at = ARENA_ARRAY(a, 2, Affine);
    for (uint32_t d = 0; d < 2; d++) {
        VarRef v = load.stmt->index[d].var;
        index[d] = (TileIndex){.var = v, .range = range_whole(extent[d])};
        at[d] = affine_var(a, v);
    }
    *alloc = (Stmt){.kind = STMT_ALLOC, .span = load.stmt->span, .buf = made};
    copy->n_index = 2;
    copy->index = index;
    copy->dst = made;
    copy->at = at;
    copy->value = expr_load(a, to, buf, at);
    load.at++;
    put_before(to, &load, alloc, copy);
    return to;
}

/* ---- all of it ---- */

static bool is_better(const Lower *l, const Kernel *k, double most, NkiCost *cost)
{
    return nki_measure(k, l->chip, cost) && cost->psum_peak <= NKI_PSUM_BANKS &&
           cost->sbuf_peak <= l->chip->sbuf_bytes && cost->predicted_us < most;
}

/* The kernel with one more value in PSUM, of those from a number on that is then the next one's, or null. */
static Kernel *value_moved(const Lower *l, const Kernel *k, BufRef *from, NkiCost *cost)
{
    const Stmt *bad = NULL;
    const char *why = NULL;
    Values v = {.k = k, .at = ARENA_ARRAY(l->arena, k->bufs.n + 1, Value)};
    if (!instr_walk_brief(k, note_uses, &v, &bad, &why)) {
        return NULL;
    }
    for (BufRef b = *from; b < k->bufs.n; b++) {
        *from = b + 1;
        if (is_candidate(k, &v.at[b], b)) {
            Kernel *to = kernel_like(l->arena, k);
            NkiCost then;
            to->bufs.at[b].space = SPACE_ACC;
            if (is_better(l, to, cost->predicted_us * GAIN, &then)) {
                *cost = then;
                return to;
            }
        }
    }
    return NULL;
}

static Kernel *product_moved(const Lower *l, const Kernel *k, NkiCost *cost)
{
    const Stmt *bad = NULL;
    const char *why = NULL;
    Both b = {.arena = l->arena, .last = -1};
    if (!instr_walk_brief(k, note_both, &b, &bad, &why)) {
        return NULL;
    }
    for (uint32_t i = 0; i < b.places.n; i++) {
        Kernel *to = with_product_apart(l, k, b.places.at[i]);
        NkiCost then;
        if (to != NULL && is_better(l, to, cost->predicted_us * GAIN, &then)) {
            *cost = then;
            return to;
        }
    }
    return NULL;
}

/* The kernel with one more copy of what is loaded, or null. */
static Kernel *loaded_copied(const Lower *l, const Kernel *k, NkiCost *cost)
{
    const Stmt *bad = NULL;
    const char *why = NULL;
    Loaded n = {k, ARENA_ARRAY(l->arena, k->bufs.n + 1, uint32_t),
                ARENA_ARRAY(l->arena, k->bufs.n + 1, uint32_t),
                ARENA_ARRAY(l->arena, k->bufs.n + 1, bool)};
    if (!instr_walk_brief(k, note_loaded, &n, &bad, &why)) {
        return NULL;
    }
    for (BufRef b = 0; b < k->bufs.n; b++) {
        const Buffer *x = &k->bufs.at[b];
        if (!n.slow[b] || n.writes[b] != 1 || n.place[b] == 0 || x->dtype != DTYPE_F32 ||
            x->extent[1].n * dtype_bytes(DTYPE_F32) > NKI_PSUM_BANK) {
            continue;
        }
        Kernel *to = with_copy_of_loaded(l, k, b, n.place[b] - 1);
        NkiCost then;
        if (to != NULL && is_better(l, to, cost->predicted_us * COPY, &then)) {
            *cost = then;
            return to;
        }
    }
    return NULL;
}

Kernel *lower_vector_passes(const Lower *l, Kernel *k, NkiCost *cost)
{
    Kernel *better = k;
    BufRef value = 0;
    for (uint32_t tries = 0; tries < TRIES && better != NULL; tries++) {
        k = better;
        better = value_moved(l, k, &value, cost);
        better = better != NULL ? better : product_moved(l, k, cost);
        better = better != NULL ? better : loaded_copied(l, k, cost);
    }
    return k;
}
