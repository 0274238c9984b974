/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about the variables in scope, and proofs from it: that an affine expression of
 * variables and open dims is never negative, and between which positions of an outer loop it
 * lies. A proof is a chain of substitutions: each variable, innermost first, is replaced by a
 * bound on the side that makes the expression smaller; what is left holds only open dims, of
 * which the least values are known. Sound always, complete for what builders and schedules
 * make.
 *
 * Open dims are variables of an Affine (op/affine.h); those that are sums of others stand as these. */
#ifndef LOOP_BOUNDS_H
#define LOOP_BOUNDS_H

#include "loop/loop.h"

typedef struct BoundVar {
    VarRef var;
    Range range;
    int64_t step; /* of a loop; 1 for a local index */
    ForPart part;
    /* var = residue modulo `modulus`; modulus 0: it is `residue`, 1: nothing known */
    int64_t modulus, residue;
    bool has_least; /* is its least value known as a number? */
    int64_t least;
    int64_t dim_least; /* of the limit's open dim, to be restored by pop */
} BoundVar;

typedef struct Bounds {
    Arena *arena; /* for what is kept while a variable is in scope, and for proofs */
    const Kernel *k;
    VEC(BoundVar) vars; /* in scope, outermost first */
    uint32_t *position; /* [vars] 1 + place in `vars`, 0: not in scope */
    int64_t
        *dim_least; /* [open dims]: they are at least that, given that this place is reached */
    uint64_t steps; /* substitutions so far */
    uint64_t most;
} Bounds;

/* Substitutions of all proofs about one kernel, and so many more for each of its statements;
 * past them everything is refused, which is a limit and no fault. */
#define BOUNDS_STEPS           2000000
#define BOUNDS_STEPS_STATEMENT 20
bool bounds_exhausted(const Bounds *b);

void bounds_init(Bounds *b, Arena *arena, const Kernel *k);
bool bounds_in_scope(const Bounds *b, VarRef v);
/* The variables of range.start are in scope. */
void bounds_push(Bounds *b, VarRef v, const Range *range, int64_t step, ForPart part);
void bounds_pop(Bounds *b);
/* Only the iterations of a loop that a test leaves, until `was` is put back. False: the loop is not one to a number by one, or the test begins at
 * other variables than those of loops around. */
bool bounds_narrow(Bounds *b, const Guard *g, BoundVar *was);
void bounds_widen(Bounds *b, const BoundVar *was);

/* 0 <= x, and x < extent, whenever this place is reached. */
bool bounds_at_least_zero(Bounds *b, Affine x);
/* Are places `x` and `y` ([rank]) of a buffer different, each for any values of the statement's indices? So they are when in one
 * dimension every index of the one is above every index of the other. */
bool bounds_apart(Bounds *b, uint32_t rank, const Affine *x, const Affine *y,
                  const bool *given);
bool bounds_below(Bounds *b, Affine x, Dim extent);

/* Do the local indices of `x` make a number digit by digit, as in 20*i + 4*j + k with j below 5 and k below 4? Of the
 * greatest digit the values need not be known. */
bool bounds_are_digits(const Kernel *k, const Stmt *s, Affine x, uint32_t n_moving);
/* Has the range as many values whatever the sizes are? */
static inline bool range_is_constant(const Range *r)
{
    return r->span > 0 ? !r->clipped : r->start.n == 0 && r->limit.sym < 0;
}

/* lo <= x <= hi as expressions of the outermost `n_outer` variables; false when a number
 * overflows. */
bool bounds_interval(Bounds *b, Affine x, uint32_t n_outer, Affine *lo, Affine *hi);

#endif
