/* SPDX-License-Identifier: Apache-2.0 */
/* Which dimensions of buffers are batches: in both operands of a contraction and in its result,
 * or alongside such a dimension in an elementwise statement or a reduction. They are no place
 * for partitions: the Tensor engine takes them one by one, and a block that had them there
 * would be turned before and after. */
#include "backend/nki/home.h"
#include "backend/nki/price.h"
#include "loop/term.h"

#define ROUNDS 16 /* a chain of so many values before a contraction */

/* Is a dimension that moves with `v` marked? With `mark`, all of them are. */
static bool meet_at(Lower *l, BufRef buf, const Affine *at, VarRef v, bool mark)
{
    bool yes = false;
    for (uint32_t d = 0; d < l->from->bufs.at[buf].rank && d < 64; d++) {
        if (affine_uses(at[d], v)) {
            yes |= (l->batch[buf] >> d & 1) != 0;
            l->batch[buf] |= mark ? (uint64_t)1 << d : 0;
        }
    }
    return yes;
}

static bool meet(Lower *l, const Expr *value, VarRef v, bool mark)
{
    ExprWalk w;
    bool yes = false;
    for (const Expr *x = load_first(&w, value); x != NULL; x = load_next(&w)) {
        yes |= meet_at(l, x->buf, x->at, v, mark);
    }
    return yes;
}

static bool is_batch(const Lower *l, const Stmt *s, VarRef v)
{
    const Expr *product = nki_bare(s->value);
    return access_uses(l->from, s->dst, s->at, v) && expr_uses(l->from, product->arg[0], v) &&
           expr_uses(l->from, product->arg[1], v);
}

#define BATCH 64 /* the same for each of the batches that share partitions */
/* terms of the sums of rows and vectors, of which the Tensor engine fills so many partitions and one column */
#define SHORT 16

static int64_t positions(const Stmt *s, uint32_t index)
{
    const Range *r = &s->index[index].range;
    return r->span > 0 ? r->span : r->limit.n - r->start.base;
}

bool batch_is_tiny(const Lower *l, const Stmt *s)
{
    const Expr *product = nki_bare(s->value);
    int64_t own[2] = {1, 1}, terms = 1, batches = 1;
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        bool kept = access_uses(l->from, s->dst, s->at, v);
        int64_t *of = is_batch(l, s, v)                        ? &batches
                      : !kept                                  ? &terms
                      : expr_uses(l->from, product->arg[0], v) ? &own[0]
                                                               : &own[1];
        *of = sat_mul(*of, positions(s, i));
    }
    int64_t each = sat_mul(sat_mul(own[0], own[1]), terms);
    bool vectors = (own[0] == 1 || own[1] == 1) && terms <= SHORT && batches >= BATCH;
    return vectors || (each <= NKI_TINY && each <= sat_mul(batches, BATCH));
}

bool batch_is_all(const Lower *l, const Stmt *s)
{
    bool levels = s->schedule != NULL && s->schedule->n_levels > 0;
    bool all = s->fold != OP_COPY && !levels && tile_kind(s) == TILE_MATMUL;
    for (uint32_t i = 0; i < s->n_index && all; i++) {
        const Range *r = &s->index[i].range;
        VarRef v = s->index[i].var;
        bool one = r->span == 1 || (r->start.n == 0 && r->limit.n - r->start.base == 1);
        all = one || !access_uses(l->from, s->dst, s->at, v) || is_batch(l, s, v);
    }
    return all;
}

static void mark_stmt(Lower *l, const Stmt *s)
{
    bool matmul = s->fold != OP_COPY && tile_kind(s) == TILE_MATMUL && !batch_is_tiny(l, s) &&
                  !batch_is_all(l, s);
    for (uint32_t i = 0; i < s->n_index; i++) {
        VarRef v = s->index[i].var;
        bool here = meet_at(l, s->dst, s->at, v, false) || meet(l, s->value, v, false);
        if (matmul ? is_batch(l, s, v) : here) {
            (void)meet_at(l, s->dst, s->at, v, true);
            (void)meet(l, s->value, v, true);
        }
    }
}

static void mark_all(Lower *l)
{
    StmtWalk w;
    for (const Stmt *s = tile_first(&w, l->from->body, l->from->n_body); s != NULL;
         s = tile_next(&w)) {
        mark_stmt(l, s);
    }
}

static uint64_t marks(const Lower *l)
{
    uint64_t count = 0;
    for (uint32_t b = 0; b < l->from->bufs.n; b++) {
        for (uint32_t d = 0; d < 64; d++) {
            count += l->batch[b] >> d & 1;
        }
    }
    return count;
}

void batch_mark(Lower *l)
{
    uint64_t before = 0, after = 0;
    l->batch = ARENA_ARRAY(l->arena, l->from->bufs.n + 1, uint64_t);
    for (int i = 0; i < ROUNDS && (i == 0 || after != before); i++) {
        before = marks(l);
        mark_all(l);
        after = marks(l);
    }
}
