/* SPDX-License-Identifier: Apache-2.0 */
/* Scans as loops: one along the scanned index that adds an element to what there is so far, and stores that. Loops over the indices
 * before it stand around it; those behind it are a block that is added to as one. Sums that round are added up in blocks, so that
 * no number goes through more than BLOCK + n / BLOCK additions. */
#include "backend/c/legalise.h"

#define BLOCK 512

typedef struct ScanPlan {
    Legaliser *l;
    const Stmt *s;
    uint32_t along; /* number of the index */
    Subst *subst;   /* [along + 1]: of the indices that have become loops */
    uint32_t n_subst;
    uint32_t n_inner; /* indices of the block */
    TileIndex *inner;
} ScanPlan;

static const char *hint_of(const ScanPlan *p, uint32_t index)
{
    return p->l->k->vars.at[p->s->index[index].var].wish->text;
}

static void loop_begin(ScanPlan *p, uint32_t index, Affine *at)
{
    Range range = p->s->index[index].range;
    range.start = *access_subst(p->l->arena, 1, &range.start, p->subst, p->n_subst);
    *at = affine_var(p->l->arena, loop_open(p->l, hint_of(p, index), range, 1, FOR_ALL));
}

/* A block over the inner indices; *at is where their element is in it. */
static BufRef block_new(ScanPlan *p, const char *hint, const Affine **at)
{
    Dim *extent = ARENA_ARRAY(p->l->arena, p->n_inner, Dim);
    Affine *own = ARENA_ARRAY(p->l->arena, p->n_inner, Affine);
    for (uint32_t i = 0; i < p->n_inner; i++) {
        const Range *r = &p->inner[i].range;
        extent[i] = r->span == 0 ? r->limit : dim_fixed(r->span);
        own[i] = var_minus(p->l, p->inner[i].var, r->start);
    }
    *at = own;
    return buffer_declare(p->l, hint, p->l->k->bufs.at[p->s->dst].dtype, SPACE_TILE, p->n_inner,
                          extent);
}

static void block_stmt(ScanPlan *p, BufRef dst, const Affine *at, Op fold, const Expr *value)
{
    Stmt s = {.kind = STMT_TILE,
              .span = p->s->span,
              .name = p->s->name,
              .n_index = p->n_inner,
              .index = p->inner,
              .dst = dst,
              .at = at,
              .fold = fold,
              .value = value};
    tile_legalise(p->l, arena_copy(p->l->arena, &s, sizeof s));
    p->l->from = p->s;
}

/* The result at a position: what there is, and what its block of positions has added. */
static void store(ScanPlan *p, const Expr *sum, const Expr *part)
{
    Legaliser *l = p->l;
    const Buffer *b = &l->k->bufs.at[p->s->dst];
    const Expr *both[2] = {sum, part};
    block_stmt(p, p->s->dst, access_subst(l->arena, b->rank, p->s->at, p->subst, p->n_subst),
               OP_COPY, part == NULL ? sum : expr_op(l->arena, OP_ADD, b->dtype, 2, both));
}

static void scan_along(ScanPlan *p)
{
    Legaliser *l = p->l;
    const Stmt *s = p->s;
    DType t = l->k->bufs.at[s->dst].dtype;
    Range range = s->index[p->along].range;
    bool blocks = s->fold == OP_SUM && !dtype_is_int(t) && !s->decays;
    const Affine *sum_at = NULL, *part_at = NULL;
    const Expr *neutral = expr_const(l->arena, op_neutral(s->fold, t)), *part = NULL;
    BufRef sum = block_new(p, "scan", &sum_at), added = sum;
    block_stmt(p, sum, sum_at, OP_COPY, neutral);
    Affine here;
    if (blocks) {
        VarRef v = loop_open(l, "block", range, BLOCK, FOR_ALL);
        Range inside = {affine_var(l->arena, v), BLOCK, true, range.limit};
        added = block_new(p, "part", &part_at);
        block_stmt(p, added, part_at, OP_COPY, neutral);
        part = load_at(l, added, p->n_inner, part_at);
        here = affine_var(l->arena, loop_open(l, hint_of(p, p->along), inside, 1, FOR_ALL));
    } else {
        part_at = sum_at;
        loop_begin(p, p->along, &here);
    }
    p->subst[p->n_subst++] = (Subst){s->index[p->along].var, here};
    const Expr *value = expr_subst(l->arena, l->k, s->value, p->subst, p->n_subst);
    if (s->decays) {
        const Expr *both[2] = {value->arg[0], load_at(l, sum, p->n_inner, sum_at)};
        block_stmt(p, sum, sum_at, OP_COPY, expr_op(l->arena, OP_MUL, t, 2, both));
        value = value->arg[1];
    }
    if (s->exclusive) {
        store(p, load_at(l, sum, p->n_inner, sum_at), part);
    }
    block_stmt(p, added, part_at, s->fold, value);
    if (!s->exclusive) {
        store(p, load_at(l, sum, p->n_inner, sum_at), part);
    }
    loop_close(l);
    if (blocks) {
        block_stmt(p, sum, sum_at, s->fold, part);
        loop_close(l);
    }
}

void scan_legalise(Legaliser *l, const Stmt *s)
{
    ScanPlan p = {.l = l, .s = s, .along = s->scan - 1};
    p.subst = ARENA_ARRAY(l->arena, s->n_index, Subst);
    p.inner = ARENA_ARRAY(l->arena, s->n_index, TileIndex);
    l->from = s;
    scope_open(l);
    for (uint32_t i = 0; i < p.along; i++) {
        Affine at;
        loop_begin(&p, i, &at);
        p.subst[p.n_subst++] = (Subst){s->index[i].var, at};
    }
    for (uint32_t i = p.along + 1; i < s->n_index; i++) {
        p.inner[p.n_inner++] = s->index[i];
    }
    scan_along(&p);
    for (uint32_t i = 0; i < p.along; i++) {
        loop_close(l);
    }
    block_close(l);
    l->from = NULL;
}
