/* SPDX-License-Identifier: Apache-2.0 */
/* Disjointness of parallel iterations (parallel.h): accesses are gathered while the body is
 * walked, each as an interval of the loop's variable, and compared buffer by buffer at the end.
 */
#include "loop/parallel.h"

#include <stdlib.h>

#include "op/affine.h"

void parallel_access(ParallelLoop *p, Bounds *b, const Stmt *stmt, BufRef buf, const Affine *at,
                     const bool *given, bool writes)
{
    uint32_t rank = p->k->bufs.at[buf].rank;
    Affine *lo = ARENA_ARRAY(p->arena, rank, Affine);
    Affine *hi = ARENA_ARRAY(p->arena, rank, Affine);
    bool *known = ARENA_ARRAY(p->arena, rank, bool);
    for (uint32_t d = 0; d < rank; d++) {
        known[d] = (given == NULL || given[d]) &&
                   bounds_interval(b, at[d], p->n_outer, &lo[d], &hi[d]);
    }
    ParallelAccess a = {buf, writes, p->accesses.n, stmt, lo, hi, known};
    vec_push(p->arena, &p->accesses, a);
}

/* to - from, when they differ by a number only. */
static bool distance(Arena *a, Affine from, Affine to, int64_t *out)
{
    Affine difference = {0};
    if (!affine_try_add(a, to, -1, from, &difference) || difference.n != 0) {
        return false;
    }
    *out = difference.base;
    return true;
}

/* Does dimension d tell iterations apart for all these accesses of one buffer? If not, *culprit
 * is the first that does not fit. */
static bool dimension_tells(const ParallelLoop *p, const ParallelAccess *list, uint32_t n,
                            uint32_t d, uint32_t *culprit)
{
    *culprit = 0;
    if (!list[0].known[d]) {
        return false;
    }
    Affine base = list[0].lo[d];
    int64_t coef = affine_coef(base, p->loop->var);
    int64_t room = 0; /* positions from one iteration to the next */
    int64_t least = 0;
    int64_t greatest = 0;
    if (coef == 0 || coef == INT64_MIN ||
        !i64_try_mul(coef < 0 ? -coef : coef, p->loop->step, &room)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        int64_t lo = 0;
        int64_t hi = 0;
        int64_t width = 0;
        *culprit = i;
        if (!list[i].known[d] || !distance(p->arena, base, list[i].lo[d], &lo) ||
            !distance(p->arena, base, list[i].hi[d], &hi)) {
            return false;
        }
        least = lo < least ? lo : least;
        greatest = hi > greatest ? hi : greatest;
        if (!i64_try_add(greatest, -least, &width) || width >= room) {
            return false;
        }
    }
    return true;
}

/* Is dimension d of the access inside the positions from `base` to the next iteration's, `room` later, and dimension e not before
 * them? */
static bool is_in_corner(const ParallelLoop *p, const ParallelAccess *a, Affine base,
                         int64_t room, uint32_t d, uint32_t e)
{
    int64_t lo = 0, hi = 0, other = 0;
    return a->known[d] && a->known[e] && distance(p->arena, base, a->lo[d], &lo) &&
           distance(p->arena, base, a->hi[d], &hi) &&
           distance(p->arena, base, a->lo[e], &other) && lo >= 0 && hi < room && other >= 0;
}

/* Do dimensions d and e together tell iterations apart, as those of a triangle: is the smaller of the two indices of every
 * access inside the iteration's own positions? */
static bool corner_tells(const ParallelLoop *p, const ParallelAccess *list, uint32_t n,
                         uint32_t d, uint32_t e)
{
    int64_t coef = list[0].known[d] ? affine_coef(list[0].lo[d], p->loop->var) : 0, room = 0;
    coef = coef == 0 && list[0].known[e] ? affine_coef(list[0].lo[e], p->loop->var) : coef;
    if (coef <= 0 || !i64_try_mul(coef, p->loop->step, &room)) {
        return false;
    }
    Affine base =
        affine_add(p->arena, affine_const(0), coef, affine_var(p->arena, p->loop->var));
    for (uint32_t i = 0; i < n; i++) {
        if (!is_in_corner(p, &list[i], base, room, d, e) &&
            !is_in_corner(p, &list[i], base, room, e, d)) {
            return false;
        }
    }
    return true;
}

/* Is dimension d of the one below that of the other, whatever the iterations are? */
static bool is_below(const ParallelLoop *p, const ParallelAccess *x, const ParallelAccess *y,
                     uint32_t d)
{
    int64_t by = 0;
    return x->known[d] && y->known[d] && !affine_uses(x->hi[d], p->loop->var) &&
           !affine_uses(y->lo[d], p->loop->var) &&
           distance(p->arena, x->hi[d], y->lo[d], &by) && by > 0;
}

/* Is the read of nothing that any iteration writes? */
static bool reads_apart(const ParallelLoop *p, const ParallelAccess *list, uint32_t n,
                        const ParallelAccess *read)
{
    uint32_t rank = p->k->bufs.at[read->buf].rank;
    bool apart = !read->writes;
    for (uint32_t i = 0; i < n && apart; i++) {
        apart = !list[i].writes;
        for (uint32_t d = 0; d < rank && !apart; d++) {
            apart = is_below(p, &list[i], read, d) || is_below(p, read, &list[i], d);
        }
    }
    return apart;
}

/* Those accesses first that are not of what no iteration writes. How many? */
static uint32_t without_apart(const ParallelLoop *p, ParallelAccess *list, uint32_t n)
{
    bool *apart = ARENA_ARRAY(p->arena, n, bool);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        apart[i] = reads_apart(p, list, n, &list[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!apart[i]) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

static bool tells(const ParallelLoop *p, const ParallelAccess *list, uint32_t n,
                  uint32_t *culprit)
{
    uint32_t rank = p->k->bufs.at[list[0].buf].rank;
    bool apart = false;
    *culprit = 0;
    for (uint32_t d = 0; d < rank && !apart; d++) {
        uint32_t at = 0;
        apart = dimension_tells(p, list, n, d, &at);
        *culprit = at > *culprit ? at : *culprit;
    }
    for (uint32_t d = 0; d < rank && !apart; d++) {
        for (uint32_t e = d + 1; e < rank && !apart; e++) {
            apart = corner_tells(p, list, n, d, e);
        }
    }
    return apart;
}

static int by_buffer(const void *left, const void *right)
{
    const ParallelAccess *x = left;
    const ParallelAccess *y = right;
    if (x->buf != y->buf) {
        return x->buf < y->buf ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

const Stmt *parallel_conflict(ParallelLoop *p, BufRef *buf)
{
    ParallelAccess *list = p->accesses.at;
    if (p->accesses.n == 0 || p->loop->part == FOR_REST) {
        return NULL; /* nothing shared, or one iteration */
    }
    qsort(list, p->accesses.n, sizeof *list, by_buffer);
    for (uint32_t first = 0, end = 0; first < p->accesses.n; first = end) {
        bool written = false;
        for (end = first; end < p->accesses.n && list[end].buf == list[first].buf; end++) {
            written = written || list[end].writes;
        }
        uint32_t culprit = 0, n = end - first;
        if (!written || tells(p, list + first, n, &culprit)) {
            continue;
        }
        n = without_apart(p, list + first, n);
        if (!tells(p, list + first, n, &culprit)) {
            *buf = list[first].buf;
            return list[first + culprit].stmt;
        }
    }
    return NULL;
}
