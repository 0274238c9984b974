/* SPDX-License-Identifier: Apache-2.0 */
/* Long sums of one statement, part by part: no accumulator takes more than PART_MOST additions one after the other. What a part gives is added
 * to the statement's destination, by way of a cascade where there are many (legalise_sums.c):
 *
 *     reduce [i in 0..n] @E[] += ...    ->    for $part in 0..n step 3072 {
 *                                               reduce [i in $part:3072<n] @E[] += ...
 *                                             }
 *
 * A part has as many positions of the innermost indices as are planned for, and of those around them as many as are left then: of long rows a
 * piece, of short ones several. */
#include "backend/c/legalise.h"

/* With the lanes that are left over, those that join each other, and a cascade, a number passes through fewer than 256 additions. */
#define PART_MOST 128

static int64_t units_of(int64_t length, int64_t unit)
{
    return length == INT64_MAX ? length : (length + unit - 1) / unit;
}

/* How many positions of the range are in one part, a multiple of `unit`; 0: all. `*left`: additions, before and after; `last`: it may use all. */
static int64_t part_step(const Legaliser *l, Range r, int64_t unit, bool last, int64_t *left)
{
    int64_t most = units_of(range_most(r), unit), part = *left;
    if (most <= part) {
        *left /= most > 1 ? most : 1;
        return 0;
    }
    while (!last && part / 2 >= units_of(range_typical(l->k, r), unit) && part > 1) {
        part /= 2;
    }
    *left /= part;
    if (r.span > 0 && r.span % unit == 0) {
        return unit * divisor_at_most(r.span / unit, part);
    }
    return r.span > 0 ? divisor_at_most(r.span, unit * part) : unit * part;
}

static bool is_summed(const Legaliser *l, const Stmt *s, uint32_t i)
{
    return !access_uses(l->k, s->dst, s->at, s->index[i].var);
}

/* By index, how many positions of it are in one part; 0: all. Null: the sum has one part. */
static const int64_t *part_steps(const Legaliser *l, const Stmt *s, uint32_t lanes,
                                 int64_t width)
{
    DType t = l->k->bufs.at[s->dst].dtype;
    uint32_t n = s->n_index, outermost = lanes;
    int64_t *step = ARENA_ARRAY(l->arena, (size_t)n + 1, int64_t), left = PART_MOST;
    bool any = false;
    if (s->fold != OP_SUM || !(dtype_is_float(t) || dtype_is_complex(t))) {
        return NULL;
    }
    for (uint32_t i = n; i-- > 0;) {
        outermost = i != lanes && is_summed(l, s, i) ? i : outermost;
    }
    if (lanes < n && is_summed(l, s, lanes)) {
        step[lanes] = part_step(l, s->index[lanes].range, width, lanes == outermost, &left);
    }
    for (uint32_t i = n; i-- > 0;) {
        if (i != lanes && is_summed(l, s, i)) {
            step[i] = part_step(l, s->index[i].range, 1, i == outermost, &left);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        any |= step[i] != 0;
    }
    return any ? step : NULL;
}

bool parts_are_one(const Legaliser *l, const Stmt *s, uint32_t vec, int64_t width)
{
    return part_steps(l, s, vec, width) == NULL;
}

Stmt parts_open(Legaliser *l, const Stmt *s, uint32_t *vec, int64_t width, uint32_t *n_loops)
{
    Stmt part = *s;
    uint32_t n = s->n_index, lanes = *vec, n_subst = 0;
    const int64_t *step = part_steps(l, s, lanes, width);
    *n_loops = 0;
    if (step == NULL) {
        return part;
    }
    TileIndex *index = ARENA_ARRAY(l->arena, (size_t)n + 1, TileIndex);
    Subst *subst = ARENA_ARRAY(l->arena, (size_t)n + 1, Subst);
    part.n_index = 0;
    for (uint32_t i = 0; i < n; i++) {
        TileIndex x = s->index[i];
        if (step[i] != 0) {
            Affine at = affine_var(l->arena, loop_open(l, "part", x.range, step[i], FOR_ALL));
            (*n_loops)++;
            x.range = range_at(at, step[i], &x.range);
            if (step[i] == 1 && i != lanes) {
                subst[n_subst++] = (Subst){x.var, at};
                continue;
            }
        }
        *vec = i == lanes ? part.n_index : *vec;
        index[part.n_index++] = x;
    }
    part.index = index;
    part.value = expr_subst(l->arena, l->k, s->value, subst, n_subst);
    return part;
}

void parts_close(Legaliser *l, uint32_t n_loops)
{
    for (; n_loops > 0; n_loops--) {
        loop_close(l);
    }
}
