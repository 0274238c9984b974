/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor that is put together of pieces: do they cover it, each element once? */
#ifndef OP_PIECES_H
#define OP_PIECES_H

#include "op/affine.h"

typedef struct Patch {
    uint32_t rank;
    const Dim *extent; /* [rank] of its indices */
    const Affine
        *at; /* [rank of the whole] where an element goes, of its indices and open dims */
} Patch;

/* May two elements of the piece go to one place? What is not seen to be otherwise counts as such. */
bool piece_overlaps_itself(uint32_t rank, const Patch *piece);
/* May an element of each go to one place, likewise? */
bool pieces_overlap(Arena *scratch, const DimTable *dims, uint32_t rank, const Patch *a,
                    const Patch *b);
/* The first two of n pieces of which that is so, *x < *y; false where all lie apart. */
bool pieces_meet(Arena *scratch, const DimTable *dims, uint32_t rank, uint32_t n,
                 const Patch *piece, uint32_t *x, uint32_t *y);
/* Have they as many elements as the whole, for all sizes of the open dims? Looked at for some sizes, modulo primes. */
bool pieces_are_all(Arena *scratch, const DimTable *dims, uint32_t rank, const Dim *shape,
                    uint32_t n, const Patch *piece);

#endif
