/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of more rows than there are partitions lie in chunks of 128 side by side. A statement over such blocks alone takes all chunks at
 * once: row 128 c + r is on partition r, and c a label of the free axis.
 *
 *     m[q] = max(m[q], n[q]) of 256 rows:   m[0:128, 0:2] = max(m[0:128, 0:2], n[0:128, 0:2])
 */
#include "backend/nki/statement.h"

/* Does the access lie in whole chunks of the label's rows, which move nothing else? */
static bool lies_in_chunks(const Lower *l, const Place *x, uint32_t label)
{
    const Home *h = &l->home[x->buf];
    bool fits = h->on_chip && x->rank > 0 && x->n_terms == 0 && !psum_has(l, x->buf) &&
                h->rows_each <= 1 && x->label[h->pdim] == (int32_t)label &&
                x->base[h->pdim] % NKI_PARTITIONS == 0;
    for (uint32_t d = 0; d < x->rank && fits; d++) {
        fits = d == h->pdim || x->label[d] != (int32_t)label;
    }
    return fits;
}

static bool values_lie_so(Lower *l, const Stmt *s, uint32_t label)
{
    Loads loads = {0};
    collect_loads(l, s->value, &loads);
    bool fits = true;
    for (uint32_t i = 0; i < loads.n && fits; i++) {
        fits = l->home[loads.at[i].buf].spread || lies_in_chunks(l, &loads.at[i], label);
    }
    ExprWalk w;
    for (const Expr *e = expr_first(&w, s->value); e != NULL; e = expr_next(&w)) {
        fits &= e->kind != EXPR_INDEX;
    }
    return fits;
}

/* The other labels of the block in the order in which they lie. */
static Labels beside(const Lower *l, const Place *x)
{
    const Home *h = &l->home[x->buf];
    Labels out = {0};
    int64_t stride[LABELS];
    for (uint32_t d = 0; d < x->rank; d++) {
        if (d == h->pdim || x->label[d] < 0) {
            continue;
        }
        uint32_t at = out.n++;
        for (; at > 0 && stride[at - 1] < h->stride[d]; at--) {
            out.at[at] = out.at[at - 1];
            stride[at] = stride[at - 1];
        }
        out.at[at] = (uint8_t)x->label[d];
        stride[at] = h->stride[d];
    }
    return out;
}

bool lower_chunks(Lower *l, const Stmt *s)
{
    Place dst = lower_target(l, s);
    int32_t rows =
        l->home[dst.buf].on_chip && dst.rank > 0 ? dst.label[l->home[dst.buf].pdim] : -1;
    Box full = l->now.full;
    if (rows < 0 || s->fold != OP_COPY || l->now.flat > 0 || l->now.part >= 0 ||
        l->now.turned >= 0 || l->now.next != NULL || l->now.n_labels + 2 >= PART_LABEL ||
        full.n[rows] <= NKI_PARTITIONS || full.n[rows] % NKI_PARTITIONS != 0 ||
        full.s[rows] % NKI_PARTITIONS != 0 || !lies_in_chunks(l, &dst, (uint32_t)rows) ||
        !values_lie_so(l, s, (uint32_t)rows)) {
        return false;
    }
    Labels others = beside(l, &dst);
    int64_t chunks = full.n[rows] / NKI_PARTITIONS, each = labels_count(others, &full);
    if (others.n + 1 != l->now.n_labels || sat_mul(chunks, each) > l->room.tile_elements) {
        return false;
    }
    l->now.cut = (uint32_t)rows;
    l->now.flat = l->now.full.n[rows] = NKI_PARTITIONS;
    l->now.full.s[l->now.n_labels] = 0;
    l->now.full.n[l->now.n_labels] = chunks;
    dst = lower_target(l, s);
    Shape shape = {.p = labels_one((uint32_t)rows), .keep = labels_one(l->now.n_labels)};
    for (uint32_t i = 0; i < others.n; i++) {
        shape.keep.at[shape.keep.n++] = others.at[i];
    }
    statement_assign(l, s, &dst, &shape);
    l->now.full = full;
    l->now.flat = 0;
    l->now.cut = 0;
    return true;
}
