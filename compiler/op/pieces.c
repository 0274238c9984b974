/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a tensor. Two are apart if in some dimension one ends before the other begins, or if their positions leave different
 * remainders by what all steps there have in common. */
#include "op/pieces.h"

#include <stdlib.h>

static bool is_one(Dim d)
{
    return d.sym < 0 && d.n <= 1;
}

/* The index's only dimension and its step there; false when it stands in none or in several. */
static bool place_of(uint32_t rank, const Patch *p, VarRef index, uint32_t *dim, int64_t *step)
{
    uint32_t found = 0;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t coef = affine_coef(p->at[d], index);
        if (coef != 0) {
            *dim = d;
            *step = coef < 0 ? -coef : coef;
            found++;
        }
    }
    return found == 1;
}

bool piece_overlaps_itself(uint32_t rank, const Patch *p)
{
    for (VarRef i = 0; i < p->rank; i++) {
        if (dim_is(p->extent[i], 0)) {
            return false;
        }
    }
    for (VarRef i = 0; i < p->rank; i++) {
        uint32_t at = 0, other = 0;
        int64_t step = 0, smaller = 0;
        if (is_one(p->extent[i])) {
            continue;
        }
        if (!place_of(rank, p, i, &at, &step)) {
            return true;
        }
        for (VarRef j = 0; j < p->rank;
             j++) { /* all smaller steps together stay below this one */
            int64_t inner = 0, reach = 0;
            if (j == i || is_one(p->extent[j]) || !place_of(rank, p, j, &other, &inner) ||
                other != at || inner > step || (inner == step && j > i)) {
                continue;
            }
            if (p->extent[j].sym >= 0 || !i64_try_mul(inner, p->extent[j].n - 1, &reach) ||
                !i64_try_add(smaller, reach, &smaller)) {
                return true;
            }
        }
        if (smaller >= step) {
            return true;
        }
    }
    return false;
}

/* The least or the largest position, of open dims. */
static bool extreme(Arena *a, const Patch *p, Affine x, bool most, Affine *out)
{
    *out = affine_const(x.base);
    for (uint32_t i = 0; i < x.n; i++) {
        const AffineTerm t = x.term[i];
        Affine own = {0, 1, &t};
        int64_t times = 1;
        if (!affine_is_dim(t.var)) {
            own = affine_extent(a, p->extent[t.var]);
            own.base--;
            times = (t.coef > 0) == most ? t.coef : 0;
        }
        if (!affine_try_add(a, *out, times, own, out)) {
            return false;
        }
    }
    return true;
}

static bool ends_before(Arena *a, const DimTable *dims, const Patch *p, Affine x,
                        const Patch *q, Affine y, const int64_t *least)
{
    Affine end, begin, room;
    return extreme(a, p, x, true, &end) && extreme(a, q, y, false, &begin) &&
           affine_try_add(a, begin, -1, end, &room) &&
           affine_try_add(a, room, 1, affine_const(-1), &room) &&
           dims_prove(a, dims, room, least);
}

static int64_t common(int64_t x, Affine of)
{
    for (uint32_t i = 0; i < of.n; i++) {
        int64_t y = of.term[i].coef < 0 ? -of.term[i].coef : of.term[i].coef;
        while (y != 0) {
            int64_t rest = x % y;
            x = y;
            y = rest;
        }
    }
    return x;
}

bool pieces_overlap(Arena *scratch, const DimTable *dims, uint32_t rank, const Patch *a,
                    const Patch *b)
{
    ArenaMark mark = arena_mark(scratch);
    int64_t *least = ARENA_ARRAY(scratch, (size_t)dims->list.n + 1, int64_t);
    bool apart = false;
    for (uint32_t s = 0; s < 2; s++) { /* both have elements */
        const Patch *p = s == 0 ? a : b;
        for (uint32_t i = 0; i < p->rank; i++) {
            if (p->extent[i].sym >= 0) {
                least[p->extent[i].sym] = 1;
            }
        }
    }
    for (uint32_t d = 0; d < rank && !apart; d++) {
        int64_t steps = common(common(0, a->at[d]), b->at[d]);
        int64_t difference = 0;
        apart = ends_before(scratch, dims, a, a->at[d], b, b->at[d], least) ||
                ends_before(scratch, dims, b, b->at[d], a, a->at[d], least) ||
                (steps > 1 && i64_try_add(a->at[d].base, -b->at[d].base, &difference) &&
                 difference % steps != 0);
    }
    arena_reset(scratch, mark);
    return !apart;
}

/* ---- many pieces ---- */

/* The positions of a piece in one dimension, where they are numbers. */
typedef struct Reach {
    int64_t first, last;
    uint32_t piece;
} Reach;

static int by_first(const void *x, const void *y)
{
    const Reach *a = x, *b = y;
    return a->first != b->first ? (a->first < b->first ? -1 : 1)
                                : (a->piece > b->piece) - (a->piece < b->piece);
}

static bool reaches_of(Arena *a, uint32_t d, uint32_t n, const Patch *piece, Reach *reach)
{
    for (uint32_t i = 0; i < n; i++) {
        Affine first, last;
        if (!extreme(a, &piece[i], piece[i].at[d], false, &first) ||
            !extreme(a, &piece[i], piece[i].at[d], true, &last) || first.n > 0 || last.n > 0) {
            return false;
        }
        reach[i] = (Reach){first.base, last.base, i};
    }
    qsort(reach, n, sizeof *reach, by_first);
    return true;
}

/* Of pieces in the order of their first positions: the end of those that begin before piece k ends. */
static uint32_t begins_until(const Reach *reach, uint32_t k, uint32_t n)
{
    uint32_t low = k + 1, high = n;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        bool before = reach[at].first <= reach[k].last;
        low = before ? at + 1 : low;
        high = before ? high : at;
    }
    return low;
}

static uint64_t pairs_of(const Reach *reach, uint32_t n)
{
    uint64_t pairs = 0;
    for (uint32_t k = 0; k < n; k++) {
        pairs += begins_until(reach, k, n) - k - 1;
    }
    return pairs;
}

/* The position at typical sizes. */
static int64_t typical_position(const DimTable *dims, Affine x)
{
    int64_t sum = x.base;
    for (uint32_t i = 0; i < x.n; i++) {
        int64_t size = dim_typical(dims, dim_open(affine_sym(x.term[i].var)));
        sum = sat_add(sum, sat_mul(x.term[i].coef, size));
    }
    return sum;
}

/* Do all pieces lie one behind the other in dimension d, each where the one before ends or later, for all sizes, 0 too? In the order
 * of typical sizes that is a proof for each neighbour. */
static bool stand_in_row(Arena *a, const DimTable *dims, uint32_t d, uint32_t n,
                         const Patch *piece, Reach *reach)
{
    for (uint32_t i = 0; i < n; i++) {
        Affine first;
        if (!extreme(a, &piece[i], piece[i].at[d], false, &first)) {
            return false;
        }
        reach[i] = (Reach){typical_position(dims, first), 0, i};
    }
    qsort(reach, n, sizeof *reach, by_first);
    const int64_t *least = ARENA_ARRAY(a, (size_t)dims->list.n + 1, int64_t);
    bool row = true;
    for (uint32_t i = 0; i + 1 < n && row; i++) {
        ArenaMark mark = arena_mark(a);
        const Patch *p = &piece[reach[i].piece], *q = &piece[reach[i + 1].piece];
        row = ends_before(a, dims, p, p->at[d], q, q->at[d], least);
        arena_reset(a, mark);
    }
    return row;
}

/* Most pieces lie apart in one dimension, whose positions are numbers: only those that do not are compared. */
bool pieces_meet(Arena *scratch, const DimTable *dims, uint32_t rank, uint32_t n,
                 const Patch *piece, uint32_t *x, uint32_t *y)
{
    ArenaMark mark = arena_mark(scratch);
    Reach *best = ARENA_ARRAY(scratch, n, Reach), *reach = ARENA_ARRAY(scratch, n, Reach);
    uint64_t fewest = UINT64_MAX;
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t pairs =
            reaches_of(scratch, d, n, piece, reach) ? pairs_of(reach, n) : UINT64_MAX;
        if (pairs < fewest) {
            Reach *other = best;
            best = reach;
            reach = other;
            fewest = pairs;
        }
    }
    bool found = false;
    for (uint32_t d = 0; fewest == UINT64_MAX && d < rank; d++) {
        if (stand_in_row(scratch, dims, d, n, piece, reach)) {
            arena_reset(scratch, mark);
            return false;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t end = fewest == UINT64_MAX ? n : begins_until(best, k, n);
        for (uint32_t l = k + 1; l < end; l++) {
            uint32_t i = fewest == UINT64_MAX ? k : best[k].piece;
            uint32_t j = fewest == UINT64_MAX ? l : best[l].piece;
            uint32_t low = i < j ? i : j, high = i < j ? j : i;
            bool earlier = !found || high < *y || (high == *y && low < *x);
            if (earlier && pieces_overlap(scratch, dims, rank, &piece[low], &piece[high])) {
                found = true;
                *x = low;
                *y = high;
            }
        }
    }
    arena_reset(scratch, mark);
    return found;
}

static uint64_t product(uint32_t n, const Dim *extent, const int64_t *size, uint64_t prime)
{
    uint64_t p = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t x = extent[i].sym < 0 ? extent[i].n : size[extent[i].sym];
        p = p * ((uint64_t)(x < 0 ? 0 : x) % prime) % prime;
    }
    return p;
}

bool pieces_are_all(Arena *scratch, const DimTable *dims, uint32_t rank, const Dim *shape,
                    uint32_t n, const Patch *piece)
{
    static const uint64_t primes[] = {2147483647, 2147483629};
    ArenaMark mark = arena_mark(scratch);
    int64_t *given = ARENA_ARRAY(scratch, (size_t)dims->list.n + 1, int64_t);
    uint64_t random = 88172645463325252;
    bool all = true;
    for (uint32_t round = 0; round < 24 && all; round++) {
        for (uint32_t d = 0; d < dims->list.n; d++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            given[d] = (int64_t)(random >> 40) % 5000 + 100;
        }
        const int64_t *size = dims_complete(scratch, dims, given);
        for (uint32_t p = 0; p < 2 && all; p++) {
            uint64_t sum = 0;
            for (uint32_t i = 0; i < n; i++) {
                sum += product(piece[i].rank, piece[i].extent, size, primes[p]);
            }
            all = sum % primes[p] == product(rank, shape, size, primes[p]);
        }
    }
    arena_reset(scratch, mark);
    return all;
}
